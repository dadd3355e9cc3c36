package model

import "slices"

// ConstantCalls returns, by event, how many calls of it each rank of each run makes; 0 if they do not all make as many.
func ConstantCalls(m *Model) []int32 {
	sig := m.Joint.Sig
	constant, distinct := make([]int32, len(sig.Nodes())), slices.Clone(sig.Roots)
	slices.Sort(distinct)
	for i, root := range slices.Compact(distinct) {
		for id, values := range sig.Occurrences([]int32{root}) {
			calls := int64(0)
			for _, n := range values {
				calls += n
			}
			if c := int32(min(calls, 1<<30)); i == 0 {
				constant[id] = c
			} else if constant[id] != c {
				constant[id] = 0
			}
		}
	}
	return constant
}

// IsReshaped reports whether a site is in a loop that is another one than the calls of a rank alone show.
func (x *Site) IsReshaped(m *Model) bool {
	for n := x.Event.Parent; n != nil; n = n.Parent {
		if m.Joint.Reshaped[n] {
			return true
		}
	}
	return false
}

// isReshaped reports the same for a family of slots.
func isReshaped(m *Model, family string) bool {
	return slices.ContainsFunc(m.Sites, func(x *Site) bool {
		return slices.Contains([]string{x.In, x.To, x.From}, family) && x.IsReshaped(m)
	})
}
