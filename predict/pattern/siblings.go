package pattern

import (
	"slices"
)

// fitFromSiblings fits slots that occur at a single process count with the forms of other units, with the axes
// permuted: a program usually does the same along all axes that are long enough. A form must reproduce the
// observation and have no senders at the other process counts.
func fitFromSiblings(single, units []*unit, sizes []int32) (fitted []*unit, unexplained []Unexplained) {
	var forms []Form
	for _, u := range units {
		if len(u.vary) > 0 {
			continue
		}
		for _, o := range u.pool {
			if len(o.Rules) > 1 && o.Presence.Kind != Erratic && !slices.ContainsFunc(forms, o.equal) {
				forms = append(forms, o)
			}
		}
	}
	for _, u := range single {
		for _, o := range forms {
			for _, order := range permutations(len(o.Rules)) {
				p := o.permuted(order)
				if !slices.ContainsFunc(u.pool, func(x Form) bool { return x.equal(p) }) && u.explainedBy(p, sizes) {
					u.pool = append(u.pool, p)
				}
			}
		}
		if u.pool = cheapest(u.pool); len(u.pool) == 0 {
			unexplained = append(unexplained, Unexplained{u.slots[0].Name, seenOnce})
			continue
		}
		u.borrowed = true
		fitted = append(fitted, u)
	}
	return fitted, unexplained
}

// permuted returns the form with its axes in another order: axis a has the rule of axis order[a].
func (f Form) permuted(order []int) Form {
	p := f
	p.Rules = make([]Rule, len(order))
	for a, from := range order {
		p.Rules[a] = f.Rules[from]
		p.Rules[a].From = slices.Index(order, f.Rules[from].From)
		if (f.Presence.Kind == Extent || f.Presence.Kind == OddExtent) && f.Presence.Axis == from {
			p.Presence.Axis = a
		}
	}
	p.Short, p.Narrow = nil, nil
	return p
}

// equal reports whether two forms are the same law.
func (f Form) equal(o Form) bool {
	return slices.Equal(f.Rules, o.Rules) && slices.Equal(f.Listed, o.Listed) && f.Bits == o.Bits &&
		f.Where == o.Where && f.Presence == o.Presence &&
		slices.EqualFunc(f.Grids, o.Grids, sameGrid)
}

// explainedBy reports whether a form gives exactly the observations of the unit, and no senders at the other process
// counts.
func (u *unit) explainedBy(o Form, sizes []int32) bool {
	for _, p := range sizes {
		dims, ok := o.Grids[0].Dims(p)
		if !ok {
			return false
		}
		m := o.bind(p, dims, nil)
		i := slices.IndexFunc(u.obs, func(x observation) bool { return x.m.Ranks == p })
		if i < 0 && m.HasSender() || i >= 0 && !slices.Equal(m.Mapping().Dst, u.obs[i].m.Dst) {
			return false
		}
	}
	return true
}
