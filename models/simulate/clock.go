package simulate

import "github.com/commq/commq/models"

// Picoseconds is the unit of simulated time.
type Picoseconds = models.Picoseconds

// event is something that will happen at a given time. Events at the same time happen in the order in which they were
// scheduled.
type event struct {
	at      Picoseconds
	order   uint64
	subject int32 // index of the thread, message, ... that the event is about: see eventKind
	kind    eventKind
}

type eventKind uint8

const (
	burstEnds      eventKind = iota // of a thread
	messageReady                    // a message's latency has passed: it needs links and a bus now
	messageEnds                     // a message has left its links
	collectiveEnds                  // of a collective
	probeWakes                      // of a thread that is blocked in a probe
	messageArrives                  // on a channel whose receiver may wait for it
	receivePosted                   // on a channel, by a thread that ran ahead
	messageStarts                   // of a message whose receive was posted by a thread that ran ahead
)

func (a *event) before(b *event) bool { return a.at < b.at || a.at == b.at && a.order < b.order }

// clock is the simulated time, and the queue of the events after it.
type clock struct {
	now    Picoseconds
	events eventQueue
}

// after returns the time d after now, at most models.Forever.
func (c *clock) after(d Picoseconds) Picoseconds { return min(c.now+d, models.Forever) }

// schedule adds an event to the queue.
func (c *clock) schedule(at Picoseconds, kind eventKind, subject int32) {
	c.events.push(at, kind, subject)
}

// eventQueue is a heap in which every node has four children. The event scheduled last is often the first to happen,
// so one event is kept outside the heap.
type eventQueue struct {
	heap      []event
	held      event
	holding   bool
	scheduled uint64
}

func (q *eventQueue) push(at Picoseconds, kind eventKind, subject int32) {
	q.scheduled++
	e := event{at, q.scheduled, subject, kind}
	switch {
	case !q.holding:
		q.held, q.holding = e, true
	case e.at < q.held.at: // at equal times the held one goes first: it is older
		q.up(q.held)
		q.held = e
	default:
		q.up(e)
	}
}

// pop removes the next event. It returns false when the queue is empty.
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

// up appends an event to the heap and moves it up to its place.
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

// down replaces the root of the heap and moves it down to its place.
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

// none means no thread, message, request, channel or node.
const none = int32(-1)
