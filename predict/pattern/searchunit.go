package pattern

import (
	"fmt"
	"math"
	"math/bits"
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
		if parts := s.simplerParts(u); parts != nil {
			return searchOutcome{units: parts}
		}
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
	if parts == nil {
		unexplained(u.slots, fmt.Sprintf("%s; more than a quarter of the %d slots of its site have no law", why,
			len(u.slots)))
		return out
	}
	for _, part := range parts {
		switch {
		case len(part.forms) > 0:
			out.units = append(out.units, part)
		case isSeenOnce(part):
			out.single = append(out.single, part)
		default:
			unexplained(part.slots, why)
		}
	}
	return out
}

// fewSlots is the largest number of slots of a family of which each may have a law of its own.
const fewSlots = 4

// simplerParts returns the slots of a small family, each with a law of its own, if these laws together are simpler than
// that of the family: a loop over the axes of a grid does something else in each iteration. It returns nil otherwise.
func (s *searcher) simplerParts(u *unit) []*unit {
	most := 2.0 * plain
	if len(u.slots) == 2 { // two numbers are on many a curve
		most = plain
	}
	if len(u.slots) < 2 || len(u.slots) > fewSlots || u.leastCost() <= most {
		return nil
	}
	var parts []*unit
	sum := 0.0
	for _, slot := range u.slots {
		part := &unit{name: u.site + fmt.Sprint(slot.Index), site: u.site, slots: []*Slot{slot}}
		part.observe(s.sizes)
		if s.search(part) != "" {
			return nil
		}
		parts = append(parts, part)
		sum += part.leastCost()
	}
	if sum >= u.leastCost() {
		return nil
	}
	return parts
}

// leastCost returns the cost of the simplest form of a unit.
func (u *unit) leastCost() float64 {
	least := math.Inf(1)
	for _, forms := range u.forms {
		for _, f := range forms {
			least = min(least, f.Cost)
		}
	}
	return least
}

// isSeenOnce reports whether the unit is a slot that occurs at a single process count.
func isSeenOnce(u *unit) bool { return len(u.slots) == 1 && len(u.obs) == 1 }

// split divides a family into parts so that as few slots as possible have no law. It returns nil if more than a quarter
// have none however it is divided: if the destinations of a site follow no law, some slots still fit one by chance. The
// search of a division stops when that is clear, or when most of the slots tried have none: a family can have
// thousands. A slot of a small family that occurs once does not count, as on an axis that only the largest run makes
// long enough.
func (s *searcher) split(u *unit) []*unit {
	var best []*unit
	once := 0
	if len(u.slots) <= fewSlots {
		for _, slot := range u.slots {
			if len(slot.Runs) == 1 {
				once++
			}
		}
	}
	if 2*once > len(u.slots) {
		once = 0
	}
	least := (len(u.slots)-once)/4 + 1
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
		bad, tried := 0, 0
		for _, part := range spreadOut(parts) {
			part.observe(s.sizes)
			if tried += len(part.slots); s.search(part) == "" || once > 0 && isSeenOnce(part) {
				continue
			}
			if bad += len(part.slots); bad >= least || tried >= fewTried && 2*bad > tried {
				return
			}
		}
		best, least = parts, bad
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

// fewTried is the number of slots of a family that are tried before most of them can show that it has no law.
const fewTried = 16

// spreadOut returns parts in an order in which the first ones are far apart: that of their places with reversed bits.
func spreadOut(parts []*unit) (all []*unit) {
	width := bits.Len(uint(len(parts) - 1))
	for k := range uint(1) << width {
		if place := bits.Reverse(k) >> (bits.UintSize - width); place < uint(len(parts)) {
			all = append(all, parts[place])
		}
	}
	return all
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
