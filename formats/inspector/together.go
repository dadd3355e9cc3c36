package inspector

import (
	"math"

	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// shared is what members of a communicator made together: a collective, or a send and its receive.
type shared struct {
	comm     *comm
	parts    []part
	waiting  int // parts that are not the last of their line yet
	placed   bool
	message  bool
	instance int64 // of a collective, along its communicator
}

// part is the operation of a member.
type part struct {
	in *line
	op *op
}

// line is operations of a member that follow one another: its collectives, its sends or its receives.
type line struct {
	ops   []*op
	left  int   // those that are not placed yet are the first of ops
	limit int64 // the last of them ends before
}

// order finds the operations that members made together and puts them into an order, from the last to the first, that no
// line contradicts. Where lines contradict each other it goes on with one of them; forced counts these.
func (j *job) order(place func(s *shared)) (forced int64) {
	var lines []*line
	instances := map[*comm][]*shared{}
	for _, c := range j.comms {
		lines = append(lines, c.lines()...)
	}
	var ready []*shared
	arrive := func(l *line) {
		for l.left > 0 && l.ops[l.left-1].with.placed {
			l.left--
		}
		if l.left == 0 {
			return
		}
		s := l.ops[l.left-1].with
		if s.waiting--; s.waiting == 0 {
			ready = append(ready, s)
		}
	}
	take := func(s *shared) {
		s.placed = true
		place(s)
		if !s.message {
			instances[s.comm] = append(instances[s.comm], s)
		}
		for _, p := range s.parts {
			if p.in.left > 0 && p.in.ops[p.in.left-1] == p.op {
				arrive(p.in)
			}
		}
	}
	for _, l := range lines {
		arrive(l)
	}
	for next := 0; ; {
		if n := len(ready); n > 0 {
			s := ready[n-1]
			ready = ready[:n-1]
			take(s)
			continue
		}
		for next < len(lines) && lines[next].left == 0 {
			next++
		}
		if next == len(lines) {
			break
		}
		forced++
		take(lines[next].ops[lines[next].left-1].with)
	}
	for _, all := range instances {
		for i, s := range all {
			s.instance = int64(len(all) - 1 - i)
		}
	}
	return forced
}

// collKey tells the collectives of a communicator apart, channel its messages.
type collKey struct {
	call   schema.CallID
	number int64
	repeat int32
}

type channel struct {
	src, dst int32
	nth      int
}

// lines returns the lines of a communicator's members, with what they made together.
func (c *comm) lines() (lines []*line) {
	colls, messages := map[collKey]*shared{}, map[channel]*shared{}
	for _, m := range c.sorted() {
		kinds := map[schema.CallID]*line{}
		nth := map[channel]int{}
		for i := range m.ops {
			o := &m.ops[i]
			kind := schema.CallID(0)
			if o.isMessage() {
				kind = o.call
			}
			l := kinds[kind]
			if l == nil {
				l = &line{limit: math.MaxInt64}
				kinds[kind] = l
				lines = append(lines, l)
			}
			var s *shared
			if !o.isMessage() {
				s = together(colls, collKey{o.call, o.number, o.repeat}, c)
			} else {
				k := channel{src: m.rank, dst: o.peer}
				if o.call == schema.CallIrecv {
					k.src, k.dst = o.peer, m.rank
				}
				direction := channel{k.src, k.dst, int(o.call)}
				k.nth = nth[direction]
				nth[direction]++
				if o.peer == training.Unknown {
					s = &shared{comm: c}
				} else {
					s = together(messages, k, c)
				}
				s.message = true
			}
			s.parts, s.waiting = append(s.parts, part{l, o}), s.waiting+1
			o.with = s
			l.ops = append(l.ops, o)
			l.left++
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
