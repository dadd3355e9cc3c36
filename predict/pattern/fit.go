package pattern

import (
	"fmt"
	"slices"
)

// Program is what the slots of a program say together: its grids, and a law per family or slot.
type Program struct {
	// Sizes are the process counts of the training runs, ascending.
	Sizes []int32 `json:"sizes"`
	// Grids are the process grids that explain most with least, beside the line of all ranks; in each entry the laws that the
	// training runs cannot tell apart. Empty when no law needs a grid.
	Grids       [][]Grid      `json:"grids"`
	Laws        []Law         `json:"laws"`
	Unexplained []Unexplained `json:"unexplained"`
	// Warnings say what an answer may hang on.
	Warnings []string `json:"warnings"`
}

// Unexplained is a slot that has no law, and the reason.
type Unexplained struct {
	Slot string `json:"slot"`
	Why  string `json:"why"`
}

// Law is the rule of a slot, or of a family of slots together.
type Law struct {
	Name    string   `json:"name"` // of the slot, or the site of a family
	Site    string   `json:"site"`
	Members []Member `json:"members"`
	// Forms are all the laws that give the training runs and are within a few bits of the simplest, which is the first.
	Forms []Form `json:"forms"`
	// Ranges say, per component of the index, which values there are at a process count. Empty for a law of one slot.
	Ranges []Range `json:"ranges,omitempty"`
	// Borrowed says that a sign or shape was taken from sibling axes: the law's own axis has at most two ranks in all runs.
	Borrowed bool `json:"borrowed,omitempty"`
	// Sizes are the process counts at which somebody sends.
	Sizes []int32 `json:"sizes"`
	// Training are the process counts of all runs.
	Training []int32 `json:"training"`
}

// Member is a slot that a law covers.
type Member struct {
	Slot  string  `json:"slot"`
	Index []int32 `json:"index,omitempty"`
	// Sizes are the process counts at which the slot is there.
	Sizes []int32         `json:"sizes"`
	Local []LocalEquation `json:"local"`
}

// Options are of Fit; the zero value works.
type Options struct {
	// Sizes are the process counts of all runs, also of those in which no slot is seen. Nil: those of the slots.
	Sizes []int32
}

// surplus is the number of bits by which the observations must outweigh a law: below it a law of that cost fits by chance.
const surplus = 6

// unexplainedCost is what a slot without law weighs when grids are compared, in bits.
const unexplainedCost = 60

// unit is what gets one law: a family, or a slot.
type unit struct {
	name, site string
	slots      []*Slot
	obs        []observation
	vary       []int
	// forms has what fits, per class; pool what is kept.
	forms    [][]Form
	pool     []Form
	borrowed bool
}

// Fit finds the laws of slots. It returns an error when a slot's table is none; what has no law is in Program.Unexplained.
func Fit(slots []Slot, opt Options) (*Program, error) {
	p := &Program{Sizes: slices.Clone(opt.Sizes)}
	for _, s := range slots {
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("find the law of a communication: %w", err)
		}
		if opt.Sizes == nil {
			for _, m := range s.Runs {
				p.Sizes = append(p.Sizes, m.Ranks)
			}
		}
	}
	slices.Sort(p.Sizes)
	p.Sizes = slices.Compact(p.Sizes)
	if len(p.Sizes) < 2 {
		for _, s := range slots {
			p.Unexplained = append(p.Unexplained, Unexplained{Slot: s.Name, Why: "runs at one process count show no law; capture the program at others"})
		}
		return p, nil
	}
	f := &fitter{p: p, classes: classes(p.Sizes)}
	f.fit(slots)
	return p, nil
}

type fitter struct {
	p       *Program
	classes []*class
	units   []*unit
}

func (f *fitter) fit(slots []Slot) {
	for _, u := range f.families(slots) {
		f.fitUnit(u)
	}
	chosen := f.cover()
	f.settle(chosen)
	for _, c := range chosen {
		if len(c.dims[0]) > 1 {
			f.p.Grids = append(f.p.Grids, c.grids)
		}
	}
	f.laws()
	f.warn(chosen)
}

// families joins the slots of one site whose indices tell them apart. A slot that differs between runs of one size has no law.
func (f *fitter) families(slots []Slot) []*unit {
	var out []*unit
	bySite := map[string]*unit{}
	for i := range slots {
		s := &slots[i]
		if size, ok := s.contradiction(); ok {
			f.unexplained(s, fmt.Sprintf("two runs of %d ranks differ: whom a rank sends to is not decided by the process count", size))
			continue
		}
		if s.Index == nil {
			out = append(out, f.unit(s.Name, s.Site, s))
			continue
		}
		key := fmt.Sprintf("%s/%d", s.Site, len(s.Index))
		if u, ok := bySite[key]; ok {
			u.slots = append(u.slots, s)
			continue
		}
		u := &unit{name: s.Site, site: s.Site, slots: []*Slot{s}}
		bySite[key] = u
		out = append(out, u)
	}
	for _, u := range bySite {
		f.observe(u)
	}
	return out
}

func (f *fitter) unit(name, site string, slots ...*Slot) *unit {
	u := &unit{name: name, site: site, slots: slots}
	f.observe(u)
	return u
}

// observe collects what the slots of a unit show.
func (f *fitter) observe(u *unit) {
	for _, s := range u.slots {
		for i, p := range f.p.Sizes {
			if m, ok := s.run(p); ok {
				u.obs = append(u.obs, observation{size: i, index: s.Index, m: m})
			}
		}
	}
	if len(u.slots) == 1 {
		u.name = u.slots[0].Name
		return
	}
	for c := range u.slots[0].Index {
		if slices.ContainsFunc(u.slots, func(s *Slot) bool { return s.Index[c] != u.slots[0].Index[c] }) {
			u.vary = append(u.vary, c)
		}
	}
}

func (f *fitter) unexplained(s *Slot, why string) {
	f.p.Unexplained = append(f.p.Unexplained, Unexplained{Slot: s.Name, Why: why})
}

// fitUnit finds the forms of a unit; a family without a law of its own falls into parts, by one component of the index if that
// helps, else into its slots.
func (f *fitter) fitUnit(u *unit) {
	why := f.search(u)
	if why == "" {
		f.units = append(f.units, u)
		return
	}
	if len(u.slots) == 1 {
		f.unexplained(u.slots[0], why)
		return
	}
	parts := f.split(u)
	bad := 0
	for _, part := range parts {
		if len(part.forms) == 0 {
			bad += len(part.slots)
		}
	}
	// Where a site's destinations follow no law, some will look as if they did.
	if 4*bad > len(u.slots) {
		for _, s := range u.slots {
			f.unexplained(s, fmt.Sprintf("%s; %d of the %d slots of its site have no law", why, bad, len(u.slots)))
		}
		return
	}
	for _, part := range parts {
		if len(part.forms) > 0 {
			f.units = append(f.units, part)
			continue
		}
		for _, s := range part.slots {
			f.unexplained(s, why)
		}
	}
}

// split returns the parts of a family with the least number of slots without law.
func (f *fitter) split(u *unit) []*unit {
	var best []*unit
	least := len(u.slots) + 1
	try := func(key func(*Slot) string) {
		var parts []*unit
		at := map[string]*unit{}
		for _, s := range u.slots {
			k := key(s)
			if at[k] == nil {
				at[k] = &unit{name: u.site + k, site: u.site}
				parts = append(parts, at[k])
			}
			at[k].slots = append(at[k].slots, s)
		}
		if len(parts) == 1 {
			return
		}
		bad := 0
		for _, part := range parts {
			f.observe(part)
			if f.search(part) != "" {
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

// search fills in the forms of a unit per class and returns "", or why there are none.
func (f *fitter) search(u *unit) string {
	sizes := map[int]bool{}
	for _, o := range u.obs {
		sizes[o.size] = true
	}
	if len(sizes) < 2 {
		return "seen at one process count only"
	}
	lib := newLibrary(u.vary, literals(u.obs))
	u.forms = make([][]Form, len(f.classes))
	info := evidence(u.obs)
	found, weak := false, false
	for i, c := range f.classes {
		forms := fitClass(c, u.obs, u.vary, lib)
		if i == 0 {
			forms = cheapest(append(forms, fitBits(c, u.obs)...))
		}
		f.presences(u, c, forms)
		forms = cheapest(forms)
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

// literals are the displacements of the first observation.
func literals(obs []observation) []int32 {
	var out []int32
	for r, d := range obs[0].m.Dst {
		if by := d - int32(r); d != None && !slices.Contains(out, by) && len(out) < 8 {
			out = append(out, by)
		}
	}
	return out
}

// presences adds to the forms of a slot, where they have senders at a size at which the slot is not there, the condition that says
// when it is. A form without such a condition cannot be asked.
func (f *fitter) presences(u *unit, c *class, forms []Form) {
	if len(u.vary) > 0 {
		return // the ranges of the index say which slots are there
	}
	present := make([]bool, len(f.p.Sizes))
	for _, o := range u.obs {
		present[o.size] = true
	}
	if !slices.Contains(present, false) {
		return
	}
	for i := range forms {
		f.presence(u, c, &forms[i], present)
	}
}

func (f *fitter) presence(u *unit, c *class, form *Form, present []bool) {
	clash := false
	for i, p := range f.p.Sizes {
		if !present[i] && form.bind(p, c.dims[i], u.slots[0].Index).anyone() {
			clash = true
		}
	}
	if !clash {
		return
	}
	first := slices.Index(present, true)
	candidates := []Presence{{Kind: FromRanks, N: f.p.Sizes[first]}, {Kind: PowersOnly}, {Kind: PowersNever}, {Kind: EvenRanks},
		{Kind: OddRanks}, {Kind: EvenExponent}, {Kind: OddExponent}}
	for a := range c.dims[0] {
		candidates = append(candidates, Presence{Kind: OddExtent, Axis: a})
		for n := int32(1); n <= 4; n++ {
			candidates = append(candidates, Presence{Kind: Extent, Axis: a, N: n})
		}
	}
	for _, k := range candidates {
		fits := true
		for i, p := range f.p.Sizes {
			q := *form
			q.Presence = k
			there := q.bind(p, c.dims[i], u.slots[0].Index).anyone()
			fits = fits && there == present[i]
		}
		if fits {
			form.Presence = k
			form.Cost += 3
			return
		}
	}
	form.Presence = Presence{Kind: Erratic}
	form.Cost += 8
}

// anyone says whether some rank sends.
func (m *Map) anyone() bool {
	for r := range m.Ranks {
		if _, ok := m.Dst(r); ok {
			return true
		}
	}
	return false
}

// cover chooses the grids: the line, and as long as it makes the description of all slots shorter the class that shortens it most.
// Classes that would do as well as the chosen one, within the margin, are kept beside it.
func (f *fitter) cover() []*class {
	chosen := map[int]bool{0: true}
	total := f.total(chosen)
	for len(chosen) < 8 {
		best, least := -1, total
		costs := make([]float64, len(f.classes))
		for i, c := range f.classes {
			if chosen[i] {
				continue
			}
			chosen[i] = true
			costs[i] = f.total(chosen) + 5*float64(len(c.dims[0])) + float64(gridRank(c))
			delete(chosen, i)
			if costs[i] < least {
				best, least = i, costs[i]
			}
		}
		if best < 0 {
			break
		}
		for i, cost := range costs {
			if !chosen[i] && cost <= least+margin && cost > 0 && len(chosen) < 8 {
				chosen[i] = true
			}
		}
		total = f.total(chosen)
	}
	var out []*class
	for i, c := range f.classes {
		if chosen[i] {
			out = append(out, c)
		} else {
			for _, u := range f.units {
				u.forms[i] = nil
			}
		}
	}
	return out
}

// gridRank is what the simplest law of a class costs beside its axes: grids with a fixed extent are the last resort.
func gridRank(c *class) int {
	switch c.grids[0].Shape {
	case Columns:
		return 6
	case Cascade, Compact, Greedy:
		return 1
	}
	return 0
}

// total is the cost of all units by the cheapest form on the chosen classes.
func (f *fitter) total(chosen map[int]bool) float64 {
	sum := 0.0
	for _, u := range f.units {
		least := float64(unexplainedCost)
		for i := range chosen {
			if fs := u.forms[i]; len(fs) > 0 {
				least = min(least, fs[0].Cost)
			}
		}
		sum += least
	}
	return sum
}

// settle pools each unit's forms on the chosen grids, and lets what is decided speak for what is not.
func (f *fitter) settle(chosen []*class) {
	for _, u := range f.units {
		for _, fs := range u.forms {
			u.pool = append(u.pool, fs...)
		}
		u.pool = cheapest(u.pool)
	}
	f.units = slices.DeleteFunc(f.units, func(u *unit) bool {
		if len(u.pool) > 0 {
			return false
		}
		for _, s := range u.slots {
			f.unexplained(s, "no law gives all its destinations")
		}
		return true
	})
	f.reuse()
	f.borrowSigns()
}

// shape is a rule without sign and axis: what siblings share.
type shape struct {
	op    Op
	n     Number
	guard Guard
}

// shapes are the shapes of a form's rules that do something.
func (f Form) shapes() []shape {
	var out []shape
	for a, r := range f.Rules {
		if r.Op == Keep && r.From == a && r.Guard.Kind == All {
			continue
		}
		s := shape{op: r.Op, n: r.N, guard: r.Guard}
		s.n.Negative = false
		out = append(out, s)
	}
	return out
}

// reuse makes forms cheaper whose shapes are all in the laws of slots that leave no choice.
func (f *fitter) reuse() {
	const discount = 4
	decided := map[shape]bool{}
	for _, u := range f.units {
		for _, s := range u.pool[0].shapes() {
			if !slices.ContainsFunc(u.pool, func(o Form) bool { return !slices.Contains(o.shapes(), s) }) {
				decided[s] = true
			}
		}
	}
	for _, u := range f.units {
		if len(u.pool) < 2 {
			continue
		}
		for i := range u.pool {
			shapes := u.pool[i].shapes()
			if len(shapes) > 0 && !slices.ContainsFunc(shapes, func(s shape) bool { return !decided[s] }) {
				u.pool[i].Cost -= discount
			}
		}
		u.pool = cheapest(u.pool)
	}
}

// move is a rule that shifts along one axis only.
type move struct {
	axis     int
	negative bool
	shape    shape
}

// move returns the form's one axis of displacement.
func (f Form) move() (move, bool) {
	at := -1
	for a, r := range f.Rules {
		if r.Op == Keep && r.From == a {
			continue
		}
		if at >= 0 || r.Op != Shift && r.Op != Wrap {
			return move{}, false
		}
		at = a
	}
	if at < 0 || f.Bits != NoBits {
		return move{}, false
	}
	r := f.Rules[at]
	m := move{axis: at, negative: r.N.Negative, shape: shape{op: r.Op, n: r.N}}
	m.shape.n.Negative = false
	return m, true
}

// borrowSigns decides between + and - on an axis with at most two ranks in all runs by the order in which the sibling axes' slots
// have them, if all that are decided agree.
func (f *fitter) borrowSigns() {
	for a := range maxAxes {
		var open []*unit
		for _, u := range f.units {
			if f.signOpen(u, a) {
				open = append(open, u)
			}
		}
		if len(open) == 0 {
			continue
		}
		signs, ok := f.siblingSigns(a, len(open))
		if !ok {
			continue
		}
		for i, u := range open {
			u.pool = slices.DeleteFunc(u.pool, func(form Form) bool {
				m, ok := form.move()
				return ok && m.axis == a && m.negative != signs[i]
			})
			u.borrowed = true
		}
	}
}

// signOpen says whether all of a unit's forms on its grid move along axis a alone, in both directions.
func (f *fitter) signOpen(u *unit, a int) bool {
	var plus, minus bool
	for _, form := range u.pool {
		m, ok := form.move()
		if !ok || m.axis != a || len(form.Rules) < 2 {
			return false
		}
		plus = plus || !m.negative
		minus = minus || m.negative
	}
	return plus && minus
}

// siblingSigns returns the order of signs on the other axes, which must be one: true is minus.
func (f *fitter) siblingSigns(a, n int) ([]bool, bool) {
	by := map[int][]bool{}
	for _, u := range f.units {
		var of *move
		decided := true
		for _, form := range u.pool {
			m, ok := form.move()
			if !ok || m.axis == a || of != nil && (m.axis != of.axis || m.negative != of.negative) {
				decided = false
				break
			}
			of = &m
		}
		if decided && of != nil {
			by[of.axis] = append(by[of.axis], of.negative)
		}
	}
	var signs []bool
	for _, s := range by {
		if len(s) != n || signs != nil && !slices.Equal(s, signs) {
			return nil, false
		}
		signs = s
	}
	return signs, signs != nil
}

// laws turns what is left into the program's laws.
func (f *fitter) laws() {
	for _, u := range f.units {
		l := Law{Name: u.name, Site: u.site, Forms: u.pool, Borrowed: u.borrowed, Training: f.p.Sizes}
		for _, s := range u.slots {
			m := Member{Slot: s.Name, Index: s.Index}
			shown := Slot{Name: s.Name}
			for _, p := range f.p.Sizes {
				if r, ok := s.run(p); ok {
					m.Sizes = append(m.Sizes, p)
					shown.Runs = append(shown.Runs, r)
				}
			}
			m.Local = shown.LocalEquations()
			l.Members = append(l.Members, m)
			l.Sizes = append(l.Sizes, m.Sizes...)
		}
		slices.Sort(l.Sizes)
		l.Sizes = slices.Compact(l.Sizes)
		if len(u.vary) > 0 {
			l.Ranges = ranges(u, f.p.Sizes, u.pool[0])
		}
		f.p.Laws = append(f.p.Laws, l)
	}
}

// warn says what the answers hang on.
func (f *fitter) warn(chosen []*class) {
	for _, c := range chosen {
		for a := range c.dims[0] {
			longest := int32(0)
			for _, d := range c.dims {
				longest = max(longest, d[a])
			}
			if longest <= 2 && len(c.dims[0]) > 1 {
				f.p.Warnings = append(f.p.Warnings, fmt.Sprintf(
					"axis %s of the %s has at most two ranks in all runs: + and - on it look alike; a run with more ranks there tells them apart",
					axisName(a), c.grids[0]))
			}
		}
	}
	for _, l := range f.p.Laws {
		if l.Borrowed {
			f.p.Warnings = append(f.p.Warnings, fmt.Sprintf("%s: the direction is taken from its sibling axes", l.Name))
		}
	}
	if len(f.p.Sizes) < 3 {
		f.p.Warnings = append(f.p.Warnings, fmt.Sprintf("laws rest on %d process counts; a third would test them", len(f.p.Sizes)))
	}
}
