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
	probeWakes    // of a stream
	receivePosted // of a channel, by a stream that was ahead
	messageStarts // the receive that it waited for was posted by a stream that was ahead
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

// ring is a queue of numbers.
type ring[T int32 | Picoseconds] struct {
	items []T
	head  int
}

func (r *ring[T]) empty() bool { return r.head == len(r.items) }

func (r *ring[T]) len() int { return len(r.items) - r.head }

func (r *ring[T]) push(x T) {
	if r.head > 32 && 2*r.head >= len(r.items) {
		r.items = r.items[:copy(r.items, r.items[r.head:])]
		r.head = 0
	}
	r.items = append(r.items, x)
}

func (r *ring[T]) first() T { return r.items[r.head] }

// pop takes the first out; none when it is empty.
func (r *ring[T]) pop() T {
	if r.empty() {
		return T(none)
	}
	x := r.items[r.head]
	if r.head++; r.head == len(r.items) {
		r.items, r.head = r.items[:0], 0
	}
	return x
}

// none is no stream, message, request, channel or node.
const none = int32(-1)
