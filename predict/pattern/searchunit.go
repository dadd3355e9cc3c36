package pattern

import (
	"fmt"
	"slices"
)

// surplus is the number of bits by which the observations must outweigh a law. A law that costs more would fit by
// chance.
const surplus = 6

// searcher finds the forms of units, one after the other.
type searcher struct {
	sizes     []int32
	classes   []*class
	memo      map[string]searchResult // by unit.key
	libraries map[string]*library
}

// searchResult is the forms of a unit per class, or why there are none.
type searchResult struct {
	forms [][]Form
	why   string
}

// searchOutcome is the result of searching a unit: the unit or its parts with forms, slots that occur at a single
// process count, and slots without a law.
type searchOutcome struct {
	units, single []*unit
	unexplained   []Unexplained
}

// fit finds the forms of a unit. A family without a law of its own is split into parts, by one component of the index
// if that helps, else into its slots.
func (s *searcher) fit(u *unit) (out searchOutcome) {
	why := s.search(u)
	if why == "" {
		return searchOutcome{units: []*unit{u}}
	}
	unexplained := func(slots []*Slot, why string) {
		for _, slot := range slots {
			out.unexplained = append(out.unexplained, Unexplained{slot.Name, why})
		}
	}
	if len(u.slots) == 1 {
		if why == seenOnce {
			return searchOutcome{single: []*unit{u}}
		}
		unexplained(u.slots, why)
		return out
	}
	parts := s.split(u)
	bad := 0
	for _, part := range parts {
		if len(part.forms) == 0 {
			bad += len(part.slots)
		}
	}
	// If the destinations of a site follow no law, some slots will still fit one by chance.
	if 4*bad > len(u.slots) {
		unexplained(u.slots, fmt.Sprintf("%s; %d of the %d slots of its site have no law", why, bad, len(u.slots)))
		return out
	}
	for _, part := range parts {
		if len(part.forms) > 0 {
			out.units = append(out.units, part)
		} else {
			unexplained(part.slots, why)
		}
	}
	return out
}

// split divides a family into parts so that as few slots as possible have no law.
func (s *searcher) split(u *unit) []*unit {
	var best []*unit
	least := len(u.slots) + 1
	try := func(key func(*Slot) string) {
		var parts []*unit
		byKey := map[string]*unit{}
		for _, slot := range u.slots {
			k := key(slot)
			if byKey[k] == nil {
				byKey[k] = &unit{name: u.site + k, site: u.site}
				parts = append(parts, byKey[k])
			}
			byKey[k].slots = append(byKey[k].slots, slot)
		}
		if len(parts) == 1 {
			return
		}
		bad := 0
		for _, part := range parts {
			part.observe(s.sizes)
			if s.search(part) != "" {
				bad += len(part.slots)
			}
		}
		if bad < least {
			best, least = parts, bad
		}
	}
	if len(u.vary) > 1 {
		for _, c := range u.vary {
			try(func(s *Slot) string { return fmt.Sprintf("[i%d=%d]", c, s.Index[c]) })
		}
	}
	if least > 0 {
		try(func(s *Slot) string { return fmt.Sprint(s.Index) })
	}
	return best
}

// search sets the forms of a unit per class and returns "", or why there are none.
func (s *searcher) search(u *unit) string {
	u.seen = u.key()
	got, ok := s.memo[u.seen]
	if !ok {
		got.why = s.searchNew(u)
		got.forms = u.forms
		s.memo[u.seen] = got
	}
	u.forms = slices.Clone(got.forms)
	for i := range u.forms {
		u.forms[i] = slices.Clone(u.forms[i])
	}
	return got.why
}

// seenOnce is why a slot has no law that occurs at a single process count.
const seenOnce = "seen at one process count only"

// searchNew searches for forms of observations that no earlier unit had.
func (s *searcher) searchNew(u *unit) string {
	sizes := map[int]bool{}
	for _, o := range u.obs {
		sizes[o.size] = true
	}
	if len(sizes) < 2 {
		return seenOnce
	}
	lib := s.library(u.vary, literals(u.obs))
	u.forms = make([][]Form, len(s.classes))
	info := evidence(u.obs)
	found, weak := false, false
	for i, c := range s.classes {
		forms := fitClass(c, u.obs, lib)
		if i == 0 {
			forms = cheapest(append(forms, fitBits(c, u.obs)...))
		}
		forms = cheapest(s.addPresences(u, c, forms))
		if len(forms) > 0 && forms[0].Cost+surplus > info {
			weak = true
			continue
		}
		u.forms[i] = forms
		found = found || len(forms) > 0
	}
	switch {
	case found:
		return ""
	case weak:
		u.forms = nil
		return "too few messages to tell a law from chance"
	}
	u.forms = nil
	return "no law gives all its destinations"
}

// library returns the candidates for a unit, which units share.
func (s *searcher) library(vary []int, literals []int32) *library {
	k := fmt.Sprint(vary, literals)
	if s.libraries[k] == nil {
		s.libraries[k] = newLibrary(vary, literals)
	}
	return s.libraries[k]
}

// literals returns the displacements in the first observation, at most 8.
func literals(obs []observation) []int32 {
	var out []int32
	for r, d := range obs[0].m.Dst {
		if by := d - int32(r); d != None && !slices.Contains(out, by) && len(out) < 8 {
			out = append(out, by)
		}
	}
	return out
}
