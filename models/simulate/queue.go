package simulate

import "github.com/commq/commq/models"

// Picoseconds is the unit of simulated time.
type Picoseconds = models.Picoseconds

// event is something that happens at a time. Of events at one time the one that was planned first happens first.
type event struct {
	at    Picoseconds
	order uint64
	what  int32 // a stream, a message or a collective
	kind  eventKind
}

type eventKind uint8

const (
	burstEnds eventKind = iota // of a stream
	messageReady
	messageEnds
	collectiveEnds
	probeWakes     // of a stream
	messageArrives // on a channel, whose receiver may wait for it
	receivePosted  // of a channel, by a stream that was ahead
	messageStarts  // the receive that it waited for was posted by a stream that was ahead
)

func (a *event) before(b *event) bool { return a.at < b.at || a.at == b.at && a.order < b.order }

// eventQueue is a heap whose nodes have four children, beside an event that is not in it: what is planned last is often what
// happens next.
type eventQueue struct {
	heap    []event
	held    event
	holding bool
	planned uint64
}

func (q *eventQueue) push(at Picoseconds, kind eventKind, what int32) {
	q.planned++
	e := event{at, q.planned, what, kind}
	switch {
	case !q.holding:
		q.held, q.holding = e, true
	case e.at < q.held.at: // it is younger: at the same time the other goes first
		q.up(q.held)
		q.held = e
	default:
		q.up(e)
	}
}

// pop takes the next event out; false when there is none.
func (q *eventQueue) pop(e *event) bool {
	if q.holding && (len(q.heap) == 0 || q.held.before(&q.heap[0])) {
		*e, q.holding = q.held, false
		return true
	}
	if len(q.heap) == 0 {
		return false
	}
	*e = q.heap[0]
	last := len(q.heap) - 1
	moved := q.heap[last]
	q.heap = q.heap[:last]
	if last > 0 {
		q.down(&moved)
	}
	return true
}

func (q *eventQueue) up(e event) {
	q.heap = append(q.heap, e)
	h := q.heap
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

// down puts an event in the place of the first.
func (q *eventQueue) down(e *event) {
	h := q.heap
	i := 0
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(h)); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if !h[least].before(e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = *e
}

// ring is a queue of numbers. Most hold one or none, and need no more memory then.
type ring[T int32 | Picoseconds] struct {
	front T
	count int32
	rest  *fifo[T] // behind the first
}

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

// insert puts x before those at the end that go after it.
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

// pop takes the first out; none when it is empty.
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

// all are those in the queue, in order.
func (r *ring[T]) all() (all []T) {
	if r.count > 0 {
		all = append(all, r.front)
	}
	if r.count > 1 {
		all = append(all, r.rest.items[r.rest.head:]...)
	}
	return all
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

// none is no stream, message, request, channel or node.
const none = int32(-1)
