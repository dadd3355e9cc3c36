package simulate

// ring is a first-in-first-out queue of numbers. It allocates only when it holds more than one, which is rare.
type ring[T int32 | Picoseconds] struct {
	front T
	count int32
	rest  *fifo[T] // the items after front
}

// fifo is a queue in a slice, whose items before head have been taken.
type fifo[T any] struct {
	items []T
	head  int
}

func (r *ring[T]) empty() bool { return r.count == 0 }

func (r *ring[T]) len() int { return int(r.count) }

func (r *ring[T]) first() T { return r.front }

func (r *ring[T]) push(x T) {
	if r.count++; r.count == 1 {
		r.front = x
		return
	}
	if r.rest == nil {
		r.rest = new(fifo[T])
	}
	r.rest.push(x)
}

// insert puts x into a sorted ring: it goes before the trailing items for which after returns true.
func (r *ring[T]) insert(x T, after func(T) bool) {
	r.push(x)
	if r.count == 1 {
		return
	}
	rest := r.rest.items[r.rest.head:]
	i := len(rest) - 1
	for ; i > 0 && after(rest[i-1]); i-- {
		rest[i] = rest[i-1]
	}
	rest[i] = x
	if i == 0 && after(r.front) {
		r.front, rest[0] = x, r.front
	}
}

// pop removes the first number; it returns none when the ring is empty.
func (r *ring[T]) pop() T {
	if r.count == 0 {
		return T(none)
	}
	x := r.front
	if r.count--; r.count > 0 {
		r.front = r.rest.pop()
	}
	return x
}

// values returns the numbers in the queue, in order.
func (r *ring[T]) values() (values []T) {
	if r.count > 0 {
		values = append(values, r.front)
	}
	if r.count > 1 {
		values = append(values, r.rest.items[r.rest.head:]...)
	}
	return values
}

func (f *fifo[T]) push(x T) {
	if f.head > 32 && 2*f.head >= len(f.items) {
		f.items = f.items[:copy(f.items, f.items[f.head:])]
		f.head = 0
	}
	f.items = append(f.items, x)
}

func (f *fifo[T]) pop() T {
	x := f.items[f.head]
	if f.head++; f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	}
	return x
}
