package pattern

import (
	"slices"
)

// addPresences adds to forms of a slot the conditions under which it occurs, if the forms have senders at sizes at
// which the slot does not occur: one form for each condition that fits, or Erratic if none does.
func (s *searcher) addPresences(u *unit, c *class, forms []Form) []Form {
	if len(u.vary) > 0 {
		return forms // the ranges of the index tell which slots occur
	}
	present := make([]bool, len(s.sizes))
	for _, o := range u.obs {
		present[o.size] = true
	}
	if !slices.Contains(present, false) {
		return forms
	}
	conditions := conditions(s.sizes, c, slices.Index(present, true))
	var out []Form
	for _, form := range forms {
		sends := s.sendingSizes(u, c, form)
		if slices.Equal(sends, present) {
			out = append(out, form)
			continue
		}
		found := false
		for _, k := range conditions {
			o := form
			o.Presence = k
			o.Cost += 3
			if s.presentUnder(c, k, sends, present) {
				out = append(out, o)
				found = true
			}
		}
		if !found {
			form.Presence = Presence{Kind: Erratic}
			form.Cost += 8
			out = append(out, form)
		}
	}
	return out
}

// conditions returns the conditions that are tried for the sizes at which a slot occurs, of which first is the index of
// the first.
func conditions(sizes []int32, c *class, first int) []Presence {
	out := []Presence{{Kind: FromRanks, N: sizes[first]}, {Kind: PowersOnly}, {Kind: PowersNever},
		{Kind: EvenRanks}, {Kind: OddRanks},
		{Kind: EvenExponent}, {Kind: OddExponent}}
	if first > 0 && sizes[first-1]+1 < sizes[first] { // it may begin anywhere between
		out = append(out, Presence{Kind: FromRanks, N: sizes[first-1] + 1})
	}
	for n := int32(3); n <= 8; n++ {
		out = append(out, Presence{Kind: MultipleOf, N: n})
	}
	for a := range c.dims[0] {
		out = append(out, Presence{Kind: OddExtent, Axis: a})
		for n := int32(1); n <= 4; n++ {
			out = append(out, Presence{Kind: Extent, Axis: a, N: n})
		}
	}
	return out
}

// sendingSizes reports for each size whether a form without a condition has senders there.
func (s *searcher) sendingSizes(u *unit, c *class, form Form) []bool {
	out := make([]bool, len(s.sizes))
	for i, p := range s.sizes {
		out[i] = form.bind(p, c.dims[i], u.slots[0].Index).HasSender()
	}
	return out
}

// presentUnder reports whether a slot that sends at some sizes does so, under a condition, at exactly those at which it
// occurs.
func (s *searcher) presentUnder(c *class, k Presence, sends, present []bool) bool {
	for i, p := range s.sizes {
		if (sends[i] && k.holds(p, c.dims[i])) != present[i] {
			return false
		}
	}
	return true
}
