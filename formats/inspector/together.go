package inspector

import (
	"math"

	"github.com/commq/commq/schema"
)

// shared is one operation of several members of a communicator: a collective, or a send and its receive.
type shared struct {
	comm     *comm
	parts    []part
	waiting  int // parts that are not the last of their line yet
	placed   bool
	message  bool
	turn     int   // in which it was placed: later ones come earlier in the run
	instance int64 // of a collective, along its communicator
}

// part is the operation of a member.
type part struct {
	in *line
	op *op
}

// line is operations of one member that follow one another: its collectives, its sends or its receives.
type line struct {
	ops   []*op
	left  int   // number of operations not placed yet, the first of ops
	limit int64 // the last of them ends before
}

// order finds the operations that members made together and puts them into an order, from the last to the first, that
// no line contradicts. It calls place for each, and numbers the collectives. Where lines contradict each other it goes
// on with one of them; forced counts these.
func (j *job) order(place func(s *shared)) (forced int64) {
	o := ordering{place: place, collectives: map[*comm][]*shared{}}
	var lines []*line
	j.numbers = map[*comm]int64{}
	for _, c := range j.comms {
		lines = append(lines, c.lines()...)
	}
	for _, l := range lines {
		o.arrive(l)
	}
	for _, l := range lines {
		for o.takeReady(); l.left > 0; o.takeReady() {
			forced++
			o.take(l.ops[l.left-1].with)
		}
	}
	for c, all := range o.collectives {
		j.numbers[c] = int64(len(all))
		for i, s := range all {
			s.instance = int64(len(all) - 1 - i)
		}
	}
	return forced
}

// ordering is the state of order.
type ordering struct {
	place       func(s *shared)
	turns       int
	ready       []*shared // last in all their lines
	collectives map[*comm][]*shared
}

// arrive notes what is last in a line now.
func (o *ordering) arrive(l *line) {
	for l.left > 0 && l.ops[l.left-1].with.placed {
		l.left--
	}
	if l.left == 0 {
		return
	}
	s := l.ops[l.left-1].with
	if s.waiting--; s.waiting == 0 {
		o.ready = append(o.ready, s)
	}
}

// takeReady takes all that is ready, and what becomes so.
func (o *ordering) takeReady() {
	for n := len(o.ready); n > 0; n = len(o.ready) {
		s := o.ready[n-1]
		o.ready = o.ready[:n-1]
		o.take(s)
	}
}

// take puts an operation before those taken so far.
func (o *ordering) take(s *shared) {
	s.placed, s.turn = true, o.turns
	o.turns++
	o.place(s)
	if !s.message {
		o.collectives[s.comm] = append(o.collectives[s.comm], s)
	}
	for _, p := range s.parts {
		if p.in.left > 0 && p.in.ops[p.in.left-1] == p.op {
			o.arrive(p.in)
		}
	}
}

// collKey tells the collectives of a communicator apart, channel its messages.
type collKey struct {
	call   schema.CallID
	number int64
	repeat int32
}

type channel struct {
	src, dst int32
	bytes    int64
	nth      int // of this size
}

// wayOf is a side of a channel: both are at one member if it sends to itself.
type wayOf struct {
	channel
	call schema.CallID
}

// lines returns the lines of a communicator's members, with what they made together.
func (c *comm) lines() (lines []*line) {
	colls, messages := map[collKey]*shared{}, map[channel]*shared{}
	for _, m := range c.sorted() {
		kinds := map[schema.CallID]*line{} // 0: collectives
		nth := map[wayOf]int{}
		for i := range m.ops {
			o := &m.ops[i]
			kind, s := schema.CallID(0), (*shared)(nil)
			switch {
			case !o.isMessage():
				s = together(colls, collKey{o.call, o.number, o.repeat}, c)
			case o.peer < 0:
				kind, s = o.call, &shared{comm: c, message: true}
			default:
				k := channel{src: m.rank, dst: o.peer, bytes: o.bytes}
				if o.call == schema.CallIrecv {
					k.src, k.dst = o.peer, m.rank
				}
				way := wayOf{k, o.call}
				k.nth = nth[way]
				nth[way]++
				kind, s = o.call, together(messages, k, c)
			}
			l := kinds[kind]
			if l == nil {
				l = &line{limit: math.MaxInt64}
				kinds[kind], lines = l, append(lines, l)
			}
			s.message = kind != 0
			s.parts, s.waiting = append(s.parts, part{l, o}), s.waiting+1
			o.with, l.ops, l.left = s, append(l.ops, o), l.left+1
		}
	}
	return lines
}

func together[K comparable](all map[K]*shared, k K, c *comm) *shared {
	s := all[k]
	if s == nil {
		s = &shared{comm: c}
		all[k] = s
	}
	return s
}
