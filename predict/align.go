package predict

import (
	"fmt"
	"math"
	"slices"
)

// mostAligned is how many different iterations a loop may have whose iterations are told apart by tags.
const mostAligned = 64

// align finds the loops of which ranks skip iterations, as ranks at a border skip the directions in which they have no neighbour, and puts their iterations
// in one order by the tags of their calls: of each body of such a loop its place in that order.
func (s *slotter) align() {
	s.order, s.enters, s.last = make([][]int32, len(s.nodes)), make([][][]int32, len(s.nodes)), make([][]int32, len(s.nodes))
	seen := make([][]map[int32]bool, len(s.nodes)) // executions, by node and run
	for _, n := range s.nodes {
		if n.Loop && !s.uniform[n.ID] {
			seen[n.ID] = make([]map[int32]bool, len(s.runs))
		}
	}
	for i, run := range s.runs {
		visited := map[[2]int32]bool{}
		for r := range run.Ranks {
			s.executions(s.nodes[0], s.Roots[s.base[i]+r], visited)
		}
		for k := range visited {
			if of := seen[k[0]]; of != nil {
				if of[i] == nil {
					of[i] = map[int32]bool{}
				}
				of[i][k[1]] = true
			}
		}
	}
	for _, n := range s.nodes {
		switch {
		case seen[n.ID] == nil:
		case n.levels:
			s.byLevel(n, seen[n.ID])
		case s.periods[n.ID] == 0:
			s.order[n.ID] = s.ordered(n, seen[n.ID])
		}
	}
}

// byLevel puts the iterations of a loop of levels of a recursion in the order of the levels: ranks may leave it early on the way down, and join it late on the
// way up. It does nothing where ranks skip levels.
func (s *slotter) byLevel(n *Node, runs []map[int32]bool) {
	v := &s.Values[n.ID]
	down, up, least := false, false, int32(math.MaxInt32)
	most := make([]int32, len(runs)) // the deepest level
	for i, run := range runs {
		for value := range run {
			from, to := v.levels[value][0], v.levels[value][1]
			if abs(int64(to-from))+1 != countItems(v.Loops[value]) {
				return
			}
			down, up = down || to > from, up || to < from
			least, most[i] = min(least, from, to), max(most[i], from, to)
		}
	}
	if down && up {
		return
	}
	s.enters[n.ID], s.last[n.ID] = make([][]int32, len(runs)), make([]int32, len(runs))
	for i, run := range runs {
		s.enters[n.ID][i] = make([]int32, len(v.Loops))
		for value := range run {
			from := v.levels[value][0]
			at := from - least
			if up {
				at = most[i] - from
			}
			s.enters[n.ID][i][value] = at
			s.last[n.ID][i] = max(s.last[n.ID][i], at+int32(countItems(v.Loops[value])))
		}
	}
}

// executions notes what is done below a node, each thing once.
func (s *slotter) executions(n *Node, value int32, visited map[[2]int32]bool) {
	k := [2]int32{n.ID, value}
	if !n.Loop || visited[k] {
		return
	}
	visited[k] = true
	v := &s.Values[n.ID]
	bodies := map[int32]bool{}
	each(v.Loops[value], func(body int32) bool {
		bodies[body] = true
		return true
	})
	for body := range bodies {
		b := v.Bodies[body]
		for i := 0; i < len(b); i += 2 {
			s.executions(n.Children[b[i]], b[i+1], visited)
		}
	}
}

// ordered is the place of each body of a loop; nil where no rank of a run skips an iteration that others make, and where tags do not tell them apart.
func (s *slotter) ordered(n *Node, runs []map[int32]bool) []int32 {
	v := &s.Values[n.ID]
	ids := map[string]int32{}
	key := make([]int32, len(v.Bodies))
	for i, b := range v.Bodies {
		text := ""
		for k := 0; k < len(b); k += 2 {
			c := n.Children[b[k]]
			if c.Loop {
				return nil
			}
			e := s.Values[c.ID].Events[b[k+1]]
			for _, side := range []Side{e.Send, e.Recv} {
				if !peerless(side) {
					text += fmt.Sprint(b[k], side[SideTag], " ")
				}
			}
		}
		id, known := ids[text]
		if !known {
			if id = int32(len(ids)); id == mostAligned {
				return nil
			}
			ids[text] = id
		}
		key[i] = id
	}
	skips := false
	after := make([]map[int32]bool, len(ids))
	for _, run := range runs {
		var longest []int32
		var all [][]int32
		for _, value := range sortedKeys(run) {
			var keys []int32
			distinct := true
			each(v.Loops[value], func(body int32) bool {
				distinct = len(keys) < mostAligned && !slices.Contains(keys, key[body])
				keys = append(keys, key[body])
				return distinct
			})
			if !distinct {
				return nil
			}
			if all = append(all, keys); len(keys) > len(longest) {
				longest = keys
			}
			for i := 1; i < len(keys); i++ {
				if after[keys[i-1]] == nil {
					after[keys[i-1]] = map[int32]bool{}
				}
				after[keys[i-1]][keys[i]] = true
			}
		}
		for _, keys := range all {
			skips = skips || !slices.Equal(keys, longest[:len(keys)])
		}
	}
	if !skips {
		return nil
	}
	place, ok := places(after)
	if !ok {
		return nil
	}
	for i := range key {
		key[i] = place[key[i]]
	}
	return key
}

// places are where things stand in the order that has each after those that it comes after; false where there is none.
func places(after []map[int32]bool) ([]int32, bool) {
	before := make([]int, len(after))
	for _, next := range after {
		for k := range next {
			before[k]++
		}
	}
	place := slices.Repeat([]int32{-1}, len(after))
	for n := range after {
		free := slices.IndexFunc(before, func(b int) bool { return b == 0 })
		if free < 0 {
			return nil, false
		}
		place[free] = int32(n)
		before[free] = -1
		for k := range after[free] {
			before[k]--
		}
	}
	return place, true
}
