package predict

import "slices"

// splitShare is the part of the iterations with the rest of a loop that have iterations without it before them, where the first calls are a loop of
// their own.
const splitShare = 0.9

// split makes a loop of the first nodes of loops, where it is repeated before the rest comes: a loop that begins with a loop has the same head. It
// says whether there was one; then what ranks did is to be found again.
func (s *Signature) split() (did bool) {
	for _, n := range s.nodes {
		if !n.Loop || len(n.Children) < 2 {
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
		whole, after := 0, 0 // iterations that have some of the rest; those that come after ones that have not
		for _, l := range v.Loops {
			short := 0
			each(l, func(body int32) bool {
				b := v.Bodies[body]
				if b[len(b)-2] < m {
					short++
					return true
				}
				whole++
				if short > 0 && b[0] < m {
					after++
				}
				short = 0
				return true
			})
		}
		if whole >= 2 && float64(after) >= splitShare*float64(whole) {
			return int(m)
		}
	}
	return 0
}
