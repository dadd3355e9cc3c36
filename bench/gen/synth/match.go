package synth

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/commq/commq/schema"
)

// end is one end of a message. MPI matches ends with equal keys in order.
type end struct {
	src, dst, comm int32
	tag            int16
	op             int32
}

func compareEnds(a, b end) int {
	return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst), cmp.Compare(a.comm, b.comm),
		cmp.Compare(a.tag, b.tag), cmp.Compare(a.op, b.op))
}

// match finds the partner of each send and receive, and the ops that complete each request.
func (s *Section) match() error {
	n := len(s.ops)
	s.partner, s.from, s.done = filled(n), filled(n), filled(n)
	s.awaits, s.requestOf = make([][2]int32, n), make([]int32, n)
	ranks := len(s.first) - 1
	s.requests, s.sends, s.dropped = make([]int32, ranks), make([]int32, ranks), make([]int32, ranks)
	var sends, receives []end
	for rank := range ranks {
		first, last := s.first[rank], s.first[rank+1]
		for i := first; i < last; i++ {
			o := &s.ops[i]
			if o.SendTo != None {
				sends = append(sends, end{int32(rank), o.SendTo, o.Comm, o.SendTag, i})
				s.sends[rank]++
			}
			if schema.Calls[o.Call].Class.PointToPoint() {
				s.dropped[rank]++
			}
			if o.RecvFrom != None {
				receives = append(receives, end{o.RecvFrom, int32(rank), o.Comm, o.RecvTag, i})
			}
			if o.isRequest() {
				s.requestOf[i] = s.requests[rank]
				s.requests[rank]++
			}
			s.complete(first, i)
		}
	}
	if len(sends) != len(receives) {
		return fmt.Errorf("%d sends and %d receives", len(sends), len(receives))
	}
	slices.SortFunc(sends, compareEnds)
	slices.SortFunc(receives, compareEnds)
	for i := range sends {
		a, b := sends[i], receives[i]
		if a.src != b.src || a.dst != b.dst || a.comm != b.comm || a.tag != b.tag ||
			s.ops[a.op].SendBytes != s.ops[b.op].RecvBytes {
			return fmt.Errorf("the send %+v has no receive; the next is %+v", a, b)
		}
		s.partner[a.op], s.from[b.op] = b.op, a.op
	}
	return nil
}

// complete records the ops that op i completes; the rank's ops begin at first.
func (s *Section) complete(first, i int32) {
	o := &s.ops[i]
	s.awaits[i] = [2]int32{i, i}
	switch schema.CallID(o.Call) {
	case schema.CallIrecv, schema.CallIsend:
		s.awaits[i] = [2]int32{i + 1, i}
	case schema.CallWait:
		s.awaits[i] = [2]int32{first + o.Completes, first + o.Completes}
		s.done[first+o.Completes] = i
	case schema.CallWaitall:
		s.awaits[i] = [2]int32{first + o.Completes, i - 1}
		for k := first + o.Completes; k < i; k++ {
			if s.ops[k].isRequest() && s.done[k] == None {
				s.done[k] = i
			}
		}
	}
}

func filled(n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = None
	}
	return v
}

// segment describes a rank's part of a round: it ends op first if that was entered earlier (resumed), makes the ops
// up to last, and enters op last if that must wait for others (enters).
type segment struct {
	rank, first, last int32
	resumed, enters   bool
}

// order assigns the calls to rounds, such that a call waits only for calls entered in earlier rounds. The ranks
// within a round are then independent of each other.
func (s *Section) order(p *Program) error {
	s.group(p)
	ranks := len(s.first) - 1
	entered := make([]int32, len(s.ops)) // round + 1
	left := make([]int32, len(s.groups)) // members that have not entered yet
	whole := make([]int32, len(s.groups))
	for g, members := range s.groups {
		left[g] = int32(len(members))
	}
	at, waiting := slices.Clone(s.first[:ranks]), make([]bool, ranks)
	active := make([]int32, 0, ranks)
	for r := range ranks {
		active = append(active, int32(r))
	}
	for round := int32(1); len(active) > 0; round++ {
		var segments []segment
		var ready []int32
		before := func(op int32) bool { return entered[op] != 0 && entered[op] < round }
		keep := active[:0]
		for _, r := range active {
			seg := segment{rank: r, first: at[r], resumed: waiting[r]}
			i, last := at[r], s.first[r+1]
			moved := false
			for i < last {
				if !waiting[r] {
					entered[i], waiting[r], moved = round, true, true
					if g := s.groupOf[i]; g != None {
						if left[g]--; left[g] == 0 {
							whole[g] = round
							ready = append(ready, g)
						}
					}
				}
				if !s.ends(i, before, whole, round) {
					break
				}
				i, waiting[r], moved = i+1, false, true
			}
			if i < last {
				keep = append(keep, r)
			}
			if !moved {
				continue
			}
			seg.last, seg.enters = i, i < last && waiting[r] && !(seg.resumed && i == seg.first)
			at[r] = i
			segments = append(segments, seg)
		}
		if len(segments) == 0 {
			return fmt.Errorf("%d ranks wait for each other, rank %d among them", len(keep), keep[0])
		}
		active = keep
		s.rounds, s.ready = append(s.rounds, segments), append(s.ready, ready)
	}
	return nil
}

// ends reports whether op i can end: whether everything it waits for was entered before this round.
func (s *Section) ends(i int32, before func(int32) bool, whole []int32, round int32) bool {
	o := &s.ops[i]
	if g := s.groupOf[i]; g != None {
		switch schema.CallID(o.Call) {
		case schema.CallBcast:
			return s.isRoot(i) || before(s.rootOf(g))
		case schema.CallReduce:
			return !s.isRoot(i) || whole[g] != 0 && whole[g] < round
		}
		return whole[g] != 0 && whole[g] < round
	}
	for k, last := s.waitsFor(i); k <= last; k++ {
		if s.from[k] != None && (k == i || s.done[k] == i) && !before(s.from[k]) {
			return false
		}
	}
	return true
}

// waitsFor returns the range of ops that contains those whose messages op i waits for.
func (s *Section) waitsFor(i int32) (first, last int32) { return s.awaits[i][0], s.awaits[i][1] }

func (s *Section) isRoot(i int32) bool {
	return s.rootOf(s.groupOf[i]) == i
}

// rootOf returns the root's op of a rooted collective. The root is rank 0 of the communicator.
func (s *Section) rootOf(g int32) int32 { return s.groups[g][0] }

// group finds the collectives and their ops.
func (s *Section) group(p *Program) {
	type key struct{ comm, number int32 }
	s.groupOf, s.perTurn = filled(len(s.ops)), make([]int32, len(p.Comms))
	numbers := map[key]int32{}
	for i := range s.ops {
		o := &s.ops[i]
		if !o.isCollective() {
			continue
		}
		k := key{o.Comm, o.Completes}
		g, ok := numbers[k]
		if !ok {
			g = int32(len(s.groups))
			numbers[k] = g
			s.groups = append(s.groups, nil)
		}
		s.groups[g] = append(s.groups[g], int32(i))
		s.groupOf[i] = g
		s.perTurn[o.Comm] = max(s.perTurn[o.Comm], o.Completes+1)
	}
}
