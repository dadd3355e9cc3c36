package paraver

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// held is a side of a message that waits for the call it belongs to.
type held struct {
	key
	thread int64
	side
	// skip is 0 while the side waits. Of a taken one it leads to the next that may wait, this many places further.
	skip int
}

// key orders the sides of a kind: by time, physical receives of one time by the logical receive, then by the message.
type key struct {
	at     int64
	posted int64 // of physical receives, 0 of others
	number int64
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.at, o.at), cmp.Compare(k.posted, o.posted), cmp.Compare(k.number, o.number))
}

// span is a range of keys, both ends included.
type span struct{ from, to key }

// between returns the span of all sides between two times.
func between(first, last int64) span {
	return span{key{first, math.MinInt64, math.MinInt64}, key{last, math.MaxInt64, math.MaxInt64}}
}

// postedBetween returns the span of the physical receives at a time whose logical receives are between two times.
func postedBetween(at, first, last int64) span {
	return span{key{at, first, math.MinInt64}, key{at, last, math.MaxInt64}}
}

// hold makes the waiting side of an item.
func hold(x *item) held {
	h := held{key: key{at: x.at, number: x.side.number}, thread: x.thread, side: x.side}
	if x.kind == itemDone {
		h.key.posted = x.side.posted
	}
	return h
}

// lane has the sides of a kind and thread. They come by time; those of one time are sorted before the first search.
// Sides that were taken stay in place, so that taking one does not move the others.
type lane struct {
	sides  []held
	head   int // those before were dropped
	sorted int // those before are in order
}

// find returns the first waiting side of a span, and -1 if there is none.
func (l *lane) find(in span) int {
	if l.sorted < len(l.sides) {
		slices.SortFunc(l.sides[l.sorted:], func(a, b held) int { return a.compare(b.key) })
		l.sorted = len(l.sides)
	}
	i, _ := slices.BinarySearchFunc(l.sides[l.head:], in.from, func(s held, k key) int { return s.compare(k) })
	i = l.waits(l.head + i)
	if i == len(l.sides) || l.sides[i].compare(in.to) > 0 {
		return -1
	}
	return i
}

// waits returns the first place from i on whose side waits. It shortens the way for the next search.
func (l *lane) waits(i int) int {
	to := i
	for to < len(l.sides) && l.sides[to].skip > 0 {
		to += l.sides[to].skip
	}
	for i < to {
		next := i + l.sides[i].skip
		l.sides[i].skip = to - i
		i = next
	}
	return to
}

// drop forgets the sides before a time and calls fn with those that still wait.
func (l *lane) drop(begin int64, fn func(*held)) {
	for l.head < len(l.sides) && l.sides[l.head].at < begin {
		if s := &l.sides[l.head]; s.skip == 0 {
			fn(s)
		}
		l.head++
	}
	if 2*l.head < len(l.sides) {
		return
	}
	n := copy(l.sides, l.sides[l.head:])
	l.sides, l.sorted, l.head = l.sides[:n], max(l.sorted-l.head, 0), 0
}

// pool has the waiting sides of a kind, by thread.
type pool struct {
	lanes map[int64]*lane
	all   []*lane
	first int64 // no side is before this time
}

func newPool() *pool { return &pool{lanes: map[int64]*lane{}, first: math.MaxInt64} }

// add adds a side, which is not before those that were added.
func (p *pool) add(s held) {
	l := p.lanes[s.thread]
	if l == nil {
		l = &lane{}
		p.lanes[s.thread] = l
		p.all = append(p.all, l)
	}
	l.sides = append(l.sides, s)
	p.first = min(p.first, s.at)
}

// spot is the place of a waiting side; without a lane there is none.
type spot struct {
	lane *lane
	at   int
}

// side returns the side at a spot, or nil.
func (s spot) side() *held {
	if s.lane == nil {
		return nil
	}
	return &s.lane.sides[s.at]
}

// take takes the side from its spot; false if there is none.
func (s spot) take() (held, bool) {
	x := s.side()
	if x == nil {
		return held{}, false
	}
	x.skip = 1
	return *x, true
}

// earlier returns the spot with the earlier side.
func earlier(a, b spot) spot {
	if a.lane == nil || b.lane != nil && b.side().compare(a.side().key) < 0 {
		return b
	}
	return a
}

// own finds the first side of a thread in a span.
func (p *pool) own(thread int64, in span) spot {
	return p.lanes[thread].spot(in)
}

// spot is find for a lane that may be nil.
func (l *lane) spot(in span) spot {
	if l == nil {
		return spot{}
	}
	if i := l.find(in); i >= 0 {
		return spot{l, i}
	}
	return spot{}
}

// any finds the first side in a span: of the thread, or if it has none, of all.
func (p *pool) any(thread int64, in span) spot {
	best := p.own(thread, in)
	if best.lane != nil {
		return best
	}
	for _, l := range p.all {
		if len(l.sides) > 0 {
			best = earlier(best, l.spot(in))
		}
	}
	return best
}

// drop forgets the sides before a time and calls fn with those that still wait.
func (p *pool) drop(begin int64, fn func(*held)) {
	if p.first >= begin {
		return
	}
	p.first = math.MaxInt64
	for _, l := range p.all {
		l.drop(begin, fn)
		if l.head < len(l.sides) {
			p.first = min(p.first, l.sides[l.head].at)
		}
	}
}

// pending are the physical receives of nonblocking receives, the earliest first: sides get here in any order of time.
type pending struct{ heap pendingHeap }

func (p *pending) add(s held) { heap.Push(&p.heap, s) }

// next takes the earliest side if it is not after a time.
func (p *pending) next(last int64) (held, bool) {
	if len(p.heap) == 0 || p.heap[0].at > last {
		return held{}, false
	}
	return heap.Pop(&p.heap).(held), true
}

// pendingHeap implements heap.Interface.
type pendingHeap []held

func (h pendingHeap) Len() int           { return len(h) }
func (h pendingHeap) Less(i, j int) bool { return h[i].compare(h[j].key) < 0 }
func (h pendingHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *pendingHeap) Push(x any)        { *h = append(*h, x.(held)) }
func (h *pendingHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// matched are the messages that matched probes found and no call has received, in the order of the probes.
type matched struct {
	order []held
	waits map[int64]bool // by message
}

func (m *matched) add(s held) {
	m.order = append(m.order, s)
	m.waits[s.side.number] = true
}

// remove removes a message that a call received.
func (m *matched) remove(number int64) {
	delete(m.waits, number)
	for len(m.order) > 0 && !m.waits[m.order[0].side.number] {
		m.order = m.order[1:]
	}
}

// next takes the first message; false if there is none.
func (m *matched) next() (held, bool) {
	if len(m.order) == 0 {
		return held{}, false
	}
	s := m.order[0]
	m.remove(s.side.number)
	return s, true
}
