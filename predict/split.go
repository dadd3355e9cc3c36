package predict

import "slices"

// splitShare is the part of the executions of a loop that must look as if its first calls were a loop of their own.
const splitShare = 0.9

// split makes a loop of the first nodes of loops, where it is repeated before the rest comes: a loop that begins with a loop has the same head. It
// says whether there was one; then what ranks did is to be found again.
func (s *Signature) split() (did bool) {
	for _, n := range s.nodes {
		if !n.Loop || n.levels || len(n.Children) < 2 {
			continue
		}
		if m := s.inner(n); m > 0 {
			inner := &Node{Loop: true, Children: slices.Clone(n.Children[:m])}
			n.Children = append([]*Node{inner}, n.Children[m:]...)
			did = true
		}
	}
	return did
}

// inner is how many of the first nodes of a loop are a loop of their own; 0: none.
func (s *Signature) inner(n *Node) int {
	v := &s.Values[n.ID]
	var ends []int32
	for _, b := range v.Bodies {
		ends = append(ends, b[len(b)-2]+1)
	}
	slices.Sort(ends)
	for _, m := range slices.Compact(ends) {
		if int(m) == len(n.Children) {
			break
		}
		fits, repeats, all := 0, false, 0
		for _, l := range v.Loops {
			least, most, short := int64(-1), int64(0), int64(0) // iterations without the rest before one that has some of it
			each(l, func(body int32) bool {
				b := v.Bodies[body]
				if b[len(b)-2] < m {
					short++
					return true
				}
				if b[0] >= m { // it has nothing else
					least = 0
					most = max(most, 1)
				} else {
					if least < 0 || short < least {
						least = short
					}
					most = max(most, short)
				}
				short = 0
				return true
			})
			if least < 0 {
				continue // the rest is not there
			}
			all++
			if least > 0 || most == 0 && short == 0 {
				fits++
			}
			repeats = repeats || least > 0
		}
		if repeats && float64(fits) >= splitShare*float64(all) {
			return int(m)
		}
	}
	return 0
}

// merge makes one loop of two, one in the other, where no rank goes round both: ranks at different borders of a grid go round a loop by different ones
// of its calls, and with calls on three borders or more there is no nesting that all of them show. It says whether there were two; then what
// ranks did is to be found again.
func (s *Signature) merge() (did bool) {
	for _, n := range s.nodes[1:] {
		if !n.Loop || n.levels {
			continue
		}
		for i := 0; i < len(n.Children); i++ {
			if c := n.Children[i]; c.Loop && !c.levels && s.alternate(n, c) {
				n.Children = slices.Concat(n.Children[:i], c.Children, n.Children[i+1:])
				return true // what ranks did at the loop is to be found before the next
			}
		}
	}
	return false
}

// alternate says whether ranks go round a loop or round one in it, never both, and some do either.
func (s *Signature) alternate(n, inner *Node) bool {
	v, in := &s.Values[n.ID], &s.Values[inner.ID]
	long := make([]bool, len(v.Bodies)) // iterations in which the inner loop is gone round
	some := false
	for i, b := range v.Bodies {
		for k := 0; k < len(b); k += 2 {
			if b[k] == inner.place && countItems(in.Loops[b[k+1]]) > 1 {
				if len(b) > 2 {
					return false
				}
				long[i], some = true, true
			}
		}
	}
	if !some {
		return false
	}
	round := false
	for _, l := range v.Loops {
		if countItems(l) < 2 {
			continue
		}
		round = true
		if !each(l, func(body int32) bool { return !long[body] }) {
			return false
		}
	}
	return round
}
