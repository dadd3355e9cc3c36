package pattern

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
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

// unbounded is what it weighs, in bits, that the grids do not say how many slots a family has.
const unbounded = 10

// unit is what gets one law: a family, or a slot.
type unit struct {
	name, site string
	slots      []*Slot
	obs        []observation
	vary       []int
	seen       string // key, what was observed
	bounded    []bool // per class, whether it says where the index ends
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
	f := &fitter{p: p, classes: classes(p.Sizes), memo: map[string]found{}, libraries: map[string]*library{}}
	f.fit(slots)
	return p, nil
}

type fitter struct {
	p       *Program
	classes []*class
	units   []*unit
	once    []*unit // slots that are there at one process count only
	// memo has the results of search by what was observed: many sites of a program do the same.
	memo map[string]found
	// libraries are by what they are made of.
	libraries map[string]*library
}

// found is what search has found.
type found struct {
	forms [][]Form
	why   string
}

func (f *fitter) fit(slots []Slot) {
	for _, u := range f.families(slots) {
		f.fitUnit(u)
	}
	chosen, first := f.cover()
	f.settle(first)
	f.fromSiblings()
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
		// Slots of one site and index, told apart by something else, are of families of their own.
		n := 0
		key := func() string { return fmt.Sprintf("%s/%d/%d", s.Site, len(s.Index), n) }
		for bySite[key()] != nil && bySite[key()].has(s.Index) {
			n++
		}
		if u := bySite[key()]; u != nil {
			u.slots = append(u.slots, s)
			continue
		}
		u := &unit{name: s.Site, site: s.Site, slots: []*Slot{s}}
		bySite[key()] = u
		out = append(out, u)
	}
	for _, u := range bySite {
		f.observe(u)
	}
	return out
}

func (u *unit) has(index []int32) bool {
	return slices.ContainsFunc(u.slots, func(s *Slot) bool { return slices.Equal(s.Index, index) })
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
		if why == seenOnce {
			f.once = append(f.once, u)
			return
		}
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
	u.seen = u.key()
	got, ok := f.memo[u.seen]
	if !ok {
		got.why = f.searchNew(u)
		got.forms = u.forms
		f.memo[u.seen] = got
	}
	u.forms = slices.Clone(got.forms)
	for i := range u.forms {
		u.forms[i] = slices.Clone(u.forms[i])
	}
	return got.why
}

// key says what was observed of a unit.
func (u *unit) key() string {
	key := binary.AppendUvarint(nil, uint64(len(u.slots)))
	key = binary.AppendUvarint(key, uint64(len(u.vary)))
	for _, c := range u.vary {
		key = binary.AppendUvarint(key, uint64(c))
	}
	for _, o := range u.obs {
		key = binary.AppendUvarint(key, uint64(o.size))
		for _, list := range [][]int32{o.index, o.m.Dst} {
			key = binary.AppendUvarint(key, uint64(len(list)))
			for _, x := range list {
				key = binary.AppendVarint(key, int64(x))
			}
		}
	}
	return string(key)
}

// seenOnce is why a slot has no law that nothing can be compared with.
const seenOnce = "seen at one process count only"

func (f *fitter) searchNew(u *unit) string {
	sizes := map[int]bool{}
	for _, o := range u.obs {
		sizes[o.size] = true
	}
	if len(sizes) < 2 {
		return seenOnce
	}
	lib := f.library(u.vary, literals(u.obs))
	u.forms = make([][]Form, len(f.classes))
	info := evidence(u.obs)
	found, weak := false, false
	for i, c := range f.classes {
		forms := fitClass(c, u.obs, lib)
		if i == 0 {
			forms = cheapest(append(forms, fitBits(c, u.obs)...))
		}
		forms = cheapest(f.presences(u, c, forms))
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

// library is newLibrary, made once.
func (f *fitter) library(vary []int, literals []int32) *library {
	k := fmt.Sprint(vary, literals)
	if f.libraries[k] == nil {
		f.libraries[k] = newLibrary(vary, literals)
	}
	return f.libraries[k]
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

// presences gives the forms of a slot, where they have senders at a size at which the slot is not there, the conditions that say when
// it is: one form for each that fits. A form without such a condition cannot be asked.
func (f *fitter) presences(u *unit, c *class, forms []Form) []Form {
	if len(u.vary) > 0 {
		return forms // the ranges of the index say which slots are there
	}
	present := make([]bool, len(f.p.Sizes))
	for _, o := range u.obs {
		present[o.size] = true
	}
	if !slices.Contains(present, false) {
		return forms
	}
	conditions := f.conditions(c, slices.Index(present, true))
	var out []Form
	for _, form := range forms {
		sends := f.sends(u, c, form)
		if slices.Equal(sends, present) {
			out = append(out, form)
			continue
		}
		found := false
		for _, k := range conditions {
			o := form
			o.Presence = k
			o.Cost += 3
			if f.presentAs(c, k, sends, present) {
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

// conditions are those that may say at which sizes a slot is there.
func (f *fitter) conditions(c *class, first int) []Presence {
	out := []Presence{{Kind: FromRanks, N: f.p.Sizes[first]}, {Kind: PowersOnly}, {Kind: PowersNever}, {Kind: EvenRanks}, {Kind: OddRanks},
		{Kind: EvenExponent}, {Kind: OddExponent}}
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

// sends says at which sizes a form, which has no condition yet, has senders.
func (f *fitter) sends(u *unit, c *class, form Form) []bool {
	out := make([]bool, len(f.p.Sizes))
	for i, p := range f.p.Sizes {
		out[i] = form.bind(p, c.dims[i], u.slots[0].Index).anyone()
	}
	return out
}

// presentAs says whether what sends at some sizes does so, under a condition, at just the sizes at which the slot is there.
func (f *fitter) presentAs(c *class, k Presence, sends, present []bool) bool {
	for i, p := range f.p.Sizes {
		if (sends[i] && k.holds(p, c.dims[i])) != present[i] {
			return false
		}
	}
	return true
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

// cover chooses the grids: the line, the class of grids that makes the description of all slots shortest, and further ones as long as
// each makes it much shorter. Every class that would do as well in the place of a chosen one, within the margin, is kept beside it:
// few axes make a class the first, but do not rule the others out.
// It returns them, and per class whether it is the line, the first grid, or would do as well as that.
func (f *fitter) cover() (grids []*class, first []bool) {
	const another = 25 // bits that a second grid must save
	for _, u := range f.units {
		u.bounded = make([]bool, len(f.classes))
		for i, c := range f.classes {
			u.bounded[i] = len(u.vary) > 0 && f.bounds(u, c)
			f.ends(u, i)
		}
	}
	chosen := []int{0}
	first = make([]bool, len(f.classes))
	first[0] = true
	rivals := map[int]bool{0: true}
	total := f.total(chosen)
	for len(chosen) < 4 {
		best := -1
		costs := make([]float64, len(f.classes))
		for i, c := range f.classes {
			if slices.Contains(chosen, i) {
				continue
			}
			costs[i] = f.total(append(slices.Clone(chosen), i))
			costs[i] += float64(len(c.dims[0]) + gridRank(c))
			// A grid that saves something is not left out for what it costs: the line is not the only candidate then.
			if save := total - costs[i] + float64(len(c.dims[0])+gridRank(c)); save > 0 && (best < 0 || costs[i] < costs[best]) && (len(chosen) == 1 || save > another) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		for i, cost := range costs {
			if !slices.Contains(chosen, i) && cost <= costs[best]+margin {
				rivals[i] = true
			}
		}
		if chosen = append(chosen, best); len(chosen) == 2 {
			for i := range f.classes {
				first[i] = rivals[i]
			}
			first[best] = true
		}
		total = f.total(chosen)
	}
	for _, i := range chosen {
		grids = append(grids, f.classes[i])
	}
	for i := range f.classes {
		if !rivals[i] {
			for _, u := range f.units {
				u.forms[i] = nil
			}
		}
	}
	return grids, first
}

// bounds says whether the extents of a class, or the process count, say where each component of a family's index ends.
func (f *fitter) bounds(u *unit, c *class) bool {
	form := Form{Grids: c.grids[:1]}
	for _, fs := range u.forms {
		if len(fs) > 0 {
			form = fs[0]
		}
	}
	for _, r := range ranges(u, f.p.Sizes, form, [][]Grid{c.grids[:1]}) {
		if len(r.Low) == 0 || len(r.High) == 0 {
			return false
		}
	}
	return true
}

// ends makes those forms of a family on a class of grids dearer that do not go with where its index ends: steps whose displacement is a power with
// the index in its exponent end where a logarithm does, others where an extent or half of it does.
func (f *fitter) ends(u *unit, class int) {
	const odd = 6 // bits
	forms := u.forms[class]
	if len(u.vary) == 0 || len(forms) == 0 {
		return
	}
	by := map[bool]endKinds{}
	for _, exponential := range []bool{true, false} {
		by[exponential] = f.endsAt(u, f.classes[class], exponential)
	}
	for i := range forms {
		o := &forms[i]
		linear, exponential := o.linear(), o.exponential()
		switch {
		case linear && exponential:
			o.Cost += odd
		case linear && by[false].grows && !by[false].extent:
			o.Cost += odd
		case linear && by[false].grows && !by[false].all && slices.ContainsFunc(o.Rules, func(r Rule) bool { return r.Op == Xor }):
			o.Cost += odd
		case exponential && by[true].grows && !by[true].log:
			o.Cost += odd
		}
	}
	u.forms[class] = cheapest(forms)
}

// endKinds says what the last value of an index can be counted from: something that grows, a logarithm, an extent or half of it, all of an extent.
type endKinds struct{ grows, log, extent, all bool }

func (f *fitter) endsAt(u *unit, c *class, exponential bool) (k endKinds) {
	form := Form{Grids: c.grids[:1]}
	if exponential {
		form.Rules = []Rule{{N: Number{Kind: Power, B: 1}}}
	}
	for _, r := range ranges(u, f.p.Sizes, form, [][]Grid{c.grids[:1]}) {
		for _, b := range r.High {
			k.grows = k.grows || b.Of != FromZero
			k.log = k.log || b.Of == FromFloor || b.Of == FromCeil
			k.extent = k.extent || b.Of == FromAll || b.Of == FromHalf
			k.all = k.all || b.Of == FromAll
		}
		k.grows = k.grows || len(r.High) == 0
	}
	return k
}

// gridRank is what the simplest law of a class costs beside its axes: grids with a fixed extent are the last resort.
func gridRank(c *class) int {
	switch c.grids[0].Shape {
	case Columns:
		return len(c.dims[0])
	case Cascade, Compact, Greedy:
		return 1
	}
	return 0
}

// total is the cost of all units by the cheapest form on the chosen classes; units that show the same are described once.
func (f *fitter) total(chosen []int) float64 {
	sum := 0.0
	counted := map[string]bool{}
	for _, u := range f.units {
		if counted[u.seen] {
			continue
		}
		counted[u.seen] = true
		least := float64(unexplainedCost)
		for _, i := range chosen {
			if fs := u.forms[i]; len(fs) > 0 {
				least = min(least, fs[0].Cost)
			}
		}
		sum += least
		if len(u.vary) > 0 && !slices.ContainsFunc(chosen, func(i int) bool { return u.bounded[i] }) {
			sum += unbounded
		}
	}
	return sum
}

// settle pools each unit's forms on the chosen grids, those of further grids where the first has none, and lets what is decided speak for what is not.
func (f *fitter) settle(first []bool) {
	for _, u := range f.units {
		for i, fs := range u.forms {
			if first[i] {
				u.pool = append(u.pool, fs...)
			}
		}
		for i, fs := range u.forms {
			if !first[i] && len(u.pool) == 0 {
				u.pool = append(u.pool, fs...)
			}
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
	f.transfer()
	f.reuse()
	f.borrowSigns()
	f.findShort()
}

// fromSiblings gives slots that are there at one process count only the laws of others with the axes changed, as far as these have what is seen, and
// nobody who sends at the other process counts: what a program does along one axis when that is long enough, it does along the others.
func (f *fitter) fromSiblings() {
	var forms []Form
	for _, u := range f.units {
		if len(u.vary) > 0 {
			continue
		}
		for _, o := range u.pool {
			if len(o.Rules) > 1 && o.Presence.Kind != Erratic && !slices.ContainsFunc(forms, o.same) {
				forms = append(forms, o)
			}
		}
	}
	for _, u := range f.once {
		for _, o := range forms {
			for _, order := range permutations(len(o.Rules)) {
				p := o.turned(order)
				if !slices.ContainsFunc(u.pool, func(x Form) bool { return x.same(p) }) && f.onlyAt(p, u) {
					u.pool = append(u.pool, p)
				}
			}
		}
		if u.pool = cheapest(u.pool); len(u.pool) == 0 {
			f.unexplained(u.slots[0], seenOnce)
			continue
		}
		u.borrowed = true
		f.units = append(f.units, u)
	}
}

// turned is the form with the axes in another order: axis a does what axis order[a] did.
func (f Form) turned(order []int) Form {
	p := f
	p.Rules = make([]Rule, len(order))
	for a, from := range order {
		p.Rules[a] = f.Rules[from]
		p.Rules[a].From = slices.Index(order, f.Rules[from].From)
		if (f.Presence.Kind == Extent || f.Presence.Kind == OddExtent) && f.Presence.Axis == from {
			p.Presence.Axis = a
		}
	}
	p.Short = nil
	return p
}

// same says whether two forms say the same.
func (f Form) same(o Form) bool {
	return slices.Equal(f.Rules, o.Rules) && f.Bits == o.Bits && f.Where == o.Where && f.Presence == o.Presence && slices.EqualFunc(f.Grids, o.Grids, sameGrid)
}

// onlyAt says whether a form gives what is seen of a unit, and nobody who sends at the other process counts.
func (f *fitter) onlyAt(o Form, u *unit) bool {
	for _, p := range f.p.Sizes {
		dims, ok := o.Grids[0].Dims(p)
		if !ok {
			return false
		}
		m := o.bind(p, dims, nil)
		i := slices.IndexFunc(u.obs, func(x observation) bool { return x.m.Ranks == p })
		if i < 0 && m.anyone() || i >= 0 && !slices.Equal(m.Mapping().Dst, u.obs[i].m.Dst) {
			return false
		}
	}
	return true
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
		s := r.shape()
		out = append(out, s)
	}
	return out
}

// findShort marks the axes along which a form moves though the runs have at most two ranks there, unless a longer axis shows the same
// shape: whether x becomes x+1, the other one, or the even one before it cannot be seen on two ranks.
func (f *fitter) findShort() {
	shown := map[shape]bool{}
	for _, u := range f.units {
		for a, r := range u.pool[0].Rules {
			if r.moves(a) && f.longest(u, a) > 2 && !slices.ContainsFunc(u.pool, func(o Form) bool { return !slices.Contains(o.shapes(), r.shape()) }) {
				shown[r.shape()] = true
			}
		}
	}
	for _, u := range f.units {
		for i := range u.pool {
			for a, r := range u.pool[i].Rules {
				if !r.moves(a) || f.longestOf(u.pool[i], u, a) > 2 {
					continue
				}
				if shown[r.shape()] {
					u.borrowed = true
				} else {
					u.pool[i].Short = append(u.pool[i].Short, a)
				}
			}
		}
	}
}

// moves says whether the rule of axis a does anything to the coordinate.
func (r Rule) moves(a int) bool { return r.Op != Keep || r.From != a }

func (f *fitter) longest(u *unit, a int) int32 { return f.longestOf(u.pool[0], u, a) }

// longestOf is the longest extent of an axis of a form's grid in a unit's runs.
func (f *fitter) longestOf(o Form, u *unit, a int) int32 {
	longest := int32(0)
	for _, s := range u.obs {
		if dims, ok := o.Grids[0].Dims(s.m.Ranks); ok {
			longest = max(longest, dims[a])
		}
	}
	return longest
}

// shape is what the rule has in common with its siblings'.
func (r Rule) shape() shape {
	s := shape{op: r.Op, n: r.N.shape(), guard: r.Guard}
	s.guard.N = r.Guard.N.shape()
	return s
}

// shape is the number without sign and, of a power, without what it counts from: sites count their levels from different ends.
func (n Number) shape() Number {
	n.Negative = false
	if n.Kind == Power {
		n.B, n.C, n.Component = 0, 0, 0
	}
	return n
}

// transfer looks for families that are thinned out alike on all axes that are long enough to show it, with the displacement that the
// guard has: a hierarchy of grids. Their siblings, of other axes and other sites, are then taken to be of the same hierarchy if they
// can be: short axes, or levels that are not coarse enough, do not show it.
func (f *fitter) transfer() {
	var guards []Guard
	hosts := map[Guard][]*unit{}
	for _, u := range f.units {
		if g, ok := f.hierarchy(u); ok {
			if hosts[g] == nil {
				guards = append(guards, g)
			}
			hosts[g] = append(hosts[g], u)
		}
	}
	for _, g := range guards {
		for _, u := range f.units {
			own := g
			if len(u.vary) > 0 {
				if own, _ = u.levels(g, hosts[g]); own.Kind != "" {
					f.give(u, own)
				}
			} else if o, ok := u.guardLike(g); ok {
				own = o // one level of the hierarchy, told by its distance from the coarsest
			}
			var alike []Form
			for _, o := range u.pool {
				if o.thinned(own) {
					alike = append(alike, o)
				}
			}
			if len(alike) > 0 && len(alike) < len(u.pool) {
				u.pool = alike
				u.borrowed = true
			}
		}
	}
}

// levels is the guard of a hierarchy with the unit's own index in the place of the hosts': where a program goes through the levels from the coarsest to the
// finest and back, the index of one way falls where that of the other rises. Slots with the same largest messages in all runs, along the same axis, are of the
// same level. A guard of no kind: sizes say that the unit goes through levels the other way, and not which are the same. It says whether sizes matched at all.
func (u *unit) levels(g Guard, hosts []*unit) (Guard, bool) {
	if g.N.B == 0 || len(u.vary) != 1 {
		return g, false
	}
	mine, axis := u.vary[0], u.pool[0].axis()
	opposite := false
	for _, h := range hosts {
		if h.pool[0].axis() != axis || len(h.vary) != 1 {
			continue
		}
		theirs := g.N.Component
		for _, way := range []int32{1, -1} {
			if by, ok := u.aligned(h, mine, theirs, way); ok {
				g.N.C += g.N.B * by
				g.N.B *= way
				g.N.Component = mine
				return g, true
			}
		}
		opposite = opposite || u.rises(mine)*h.rises(theirs) < 0
	}
	if opposite {
		return Guard{}, false
	}
	return g, false
}

// axis is the axis along which a form moves, -1 where it is none or several.
func (f Form) axis() int {
	if m, ok := f.move(); ok {
		return m.axis
	}
	return -1
}

// aligned is by how much the index of a host's slot, counted the same way or the other, is off from that of the unit's slot of the same level; two slots or more
// have to have the same sizes, and all that have must say the same.
func (u *unit) aligned(h *unit, mine, theirs int, way int32) (by int32, ok bool) {
	n := 0
	for _, s := range u.slots {
		for _, o := range h.slots {
			if len(s.Bytes) == 0 || !slices.Equal(s.Bytes, o.Bytes) {
				continue
			}
			b := o.Index[theirs] - way*s.Index[mine]
			if n > 0 && b != by {
				return 0, false
			}
			by = b
			n++
		}
	}
	return by, n > 1
}

// rises is 1 where the largest messages of the unit's slots rise with a component of the index, -1 where they fall, 0 where they do neither or are not known.
func (u *unit) rises(component int) int {
	all := slices.Clone(u.slots)
	slices.SortStableFunc(all, func(a, b *Slot) int { return int(a.Index[component]) - int(b.Index[component]) })
	up, down := false, false
	for i := 1; i < len(all); i++ {
		a, b := all[i-1].Bytes, all[i].Bytes
		if len(a) == 0 || len(b) == 0 {
			return 0
		}
		up, down = up || b[len(b)-1] > a[len(a)-1], down || b[len(b)-1] < a[len(a)-1]
	}
	switch {
	case up && !down:
		return 1
	case down && !up:
		return -1
	}
	return 0
}

// hierarchy returns the guard, of a family by an index, that all forms of a unit have on each axis with more than two ranks, and whose number is the
// displacement.
func (f *fitter) hierarchy(u *unit) (Guard, bool) {
	for _, r := range u.pool[0].Rules {
		g := r.Guard.floored()
		if g.Kind != LowBits || g.N.Kind != Power || g.N.Log == NoLog || g.N.B == 0 && len(u.vary) > 0 {
			continue
		}
		if !slices.ContainsFunc(u.pool, func(o Form) bool { return !f.shows(o, g) }) {
			return g, true
		}
	}
	return Guard{}, false
}

// shows says whether a form moves by the number of a guard, and has it on all axes with more than two ranks.
func (f *fitter) shows(o Form, g Guard) bool {
	if len(o.Rules) < 2 {
		return false
	}
	moves := false
	for a, r := range o.Rules {
		long := false
		for _, p := range f.p.Sizes {
			dims, ok := o.Grids[0].Dims(p)
			long = long || ok && dims[a] > 2
		}
		if long && r.Guard.floored() != g {
			return false
		}
		if r.Op == Shift || r.Op == Wrap {
			n := r.N
			n.Negative = false
			if (Guard{Kind: g.Kind, N: n, Offset: g.Offset}).floored() != g {
				return false
			}
			moves = true
		}
	}
	return moves
}

// thinned says whether all axes of a form have a guard, and its displacement, if it has one, is by the guard's number.
func (f Form) thinned(g Guard) bool {
	moves, stays := false, true
	for a, r := range f.Rules {
		if r.Guard.floored() != g {
			return false
		}
		stays = stays && !r.moves(a)
		if r.Op == Shift || r.Op == Wrap {
			n := r.N
			n.Negative = false
			if (Guard{Kind: g.Kind, N: n, Offset: g.Offset}).floored() != g {
				return false
			}
			moves = true
		}
	}
	return moves || stays
}

// guardLike returns a guard of the unit's forms of the shape of another.
func (u *unit) guardLike(g Guard) (Guard, bool) {
	for _, o := range u.pool {
		for _, r := range o.Rules {
			if r.Guard.shape() == g.shape() {
				return r.Guard.floored(), true
			}
		}
	}
	return Guard{}, false
}

// shape is the guard with its number's shape.
func (g Guard) shape() Guard {
	g = g.floored()
	g.N = g.N.shape()
	return g
}

// floored is the guard with floor for ceil: on extents that are powers of two they are one.
func (g Guard) floored() Guard {
	if g.N.Log == CeilLog {
		g.N.Log = FloorLog
	}
	return g
}

// give adds to the unit's pool its forms with a guard on all axes, as far as they give its observations.
func (f *fitter) give(u *unit, g Guard) {
	for _, o := range slices.Clone(u.pool) {
		if len(o.Rules) < 2 || slices.ContainsFunc(o.Rules, func(r Rule) bool { return r.Guard.Kind != All }) {
			continue
		}
		at := slices.IndexFunc(f.classes, func(c *class) bool { return slices.EqualFunc(c.grids, o.Grids, sameGrid) })
		seed := slices.Clone(o.Rules)
		seed[0].Guard = g
		Form{Rules: seed}.joined(func(rules []Rule) {
			n := o
			n.Rules, n.joint = slices.Clone(rules), true
			if f.classes[at].explains(n, u.obs) {
				u.pool = append(u.pool, n)
				u.borrowed = true
			}
		})
	}
}

// reuse makes forms cheaper whose shapes are all in the laws of other slots, which show something else and leave no choice.
func (f *fitter) reuse() {
	const discount = 4
	decided := map[shape][]string{} // what the units showed that decide
	for _, u := range f.units {
		for _, s := range u.pool[0].shapes() {
			if !slices.Contains(decided[s], u.seen) && !slices.ContainsFunc(u.pool, func(o Form) bool { return !slices.Contains(o.shapes(), s) }) {
				decided[s] = append(decided[s], u.seen)
			}
		}
	}
	for _, u := range f.units {
		if len(u.pool) < 2 {
			continue
		}
		lacks := func(s shape) bool {
			return !slices.ContainsFunc(decided[s], func(seen string) bool { return seen != u.seen })
		}
		for i := range u.pool {
			shapes := u.pool[i].shapes()
			if len(shapes) == 0 || slices.ContainsFunc(shapes, lacks) {
				continue
			}
			u.pool[i].Cost -= discount
			if u.pool[i].joint {
				u.pool[i].Cost -= discount
			}
		}
		u.pool = cheapest(u.pool)
	}
}

// move is a displacement along one axis only.
type move struct {
	axis     int
	negative bool
	half     bool // half way round: both directions are one
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
	n := f.Rules[at].N
	half := n.B == 0 && n.C == 1 && n.Kind == Divided || n.B == 0 && n.C == -1 && n.Log != NoLog
	return move{axis: at, negative: n.Negative, half: half && f.Rules[at].Op == Wrap}, true
}

// sign is what a unit's forms say of the direction along an axis.
type sign int8

const (
	plus sign = iota
	minus
	open // forms of both directions are left
)

// signBlock is units one after the other that move along one axis in one way but for the direction.
type signBlock struct {
	axis  int
	way   string
	units []*unit
	signs []sign
}

// borrowSigns decides between + and - on an axis with at most two ranks in all runs by the order in which the sibling axes' slots
// have them, if all siblings have one order and it does not contradict what the axis itself says. Siblings are blocks of as many
// slots, else all slots of another axis.
func (f *fitter) borrowSigns() {
	var blocks []signBlock
	whole := map[string]*signBlock{}
	var names []string
	apart := true
	for _, u := range f.units {
		a, s, ok := u.direction()
		if !ok {
			apart = true
			continue
		}
		way := u.pool[0].way()
		if k := len(blocks) - 1; apart || blocks[k].axis != a || blocks[k].way != way {
			blocks = append(blocks, signBlock{axis: a, way: way})
		}
		apart = false
		name := fmt.Sprint(a, way)
		if whole[name] == nil {
			whole[name] = &signBlock{axis: a, way: way}
			names = append(names, name)
		}
		for _, b := range []*signBlock{&blocks[len(blocks)-1], whole[name]} {
			b.units, b.signs = append(b.units, u), append(b.signs, s)
		}
	}
	borrowBlocks(blocks)
	var axes []signBlock
	for _, name := range names {
		b := *whole[name]
		for i, u := range b.units {
			_, b.signs[i], _ = u.direction()
		}
		axes = append(axes, b)
	}
	borrowBlocks(axes)
	f.borrowInSite()
	f.borrowFromPartner()
}

// borrowInSite decides what is open of a slot by the others of its site, which move along other axes in the same way, if these all go one way.
func (f *fitter) borrowInSite() {
	sites := map[string][]*unit{}
	for _, u := range f.units {
		if _, _, ok := u.direction(); ok {
			sites[u.site] = append(sites[u.site], u)
		}
	}
	for _, units := range sites {
		for _, u := range units {
			axis, s, _ := u.direction()
			if s != open {
				continue
			}
			var seen []sign
			for _, o := range units {
				if a, other, _ := o.direction(); a != axis && other != open && !slices.Contains(seen, other) {
					seen = append(seen, other)
				}
			}
			if len(seen) == 1 {
				u.turn(axis, seen[0])
			}
		}
	}
}

// borrowFromPartner decides what is open of a slot by that of the other side of its messages, which goes the other way.
func (f *fitter) borrowFromPartner() {
	of := map[string]*unit{}
	for _, u := range f.units {
		for _, s := range u.slots {
			of[s.Name] = u
		}
	}
	for _, u := range f.units {
		axis, s, ok := u.direction()
		if !ok || s != open {
			continue
		}
		var seen []sign
		for _, x := range u.slots {
			for _, name := range x.Partners {
				o := of[name]
				if o == nil {
					continue
				}
				if a, other, ok := o.direction(); ok && a == axis && !slices.Contains(seen, other) {
					seen = append(seen, other)
				}
			}
		}
		if len(seen) == 1 && seen[0] != open {
			u.turn(axis, plus+minus-seen[0])
		}
	}
}

// turn leaves the forms of one direction.
func (u *unit) turn(axis int, s sign) {
	u.pool = slices.DeleteFunc(u.pool, func(form Form) bool {
		m, moves := form.move()
		return !moves || m.axis != axis || m.negative != (s == minus)
	})
	u.borrowed = true
}

// way is how a form moves, but for axis and direction: operation, number and the guards of all axes.
func (f Form) way() string {
	var parts []string
	for a, r := range f.Rules {
		if r.moves(a) {
			parts = append(parts, fmt.Sprint(r.Op, r.N.shape(), r.Guard.shape()))
		} else if r.Guard.Kind != All {
			parts = append(parts, fmt.Sprint(r.Guard.shape()))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// borrowBlocks decides the open signs of each block by the blocks of other axes.
func borrowBlocks(blocks []signBlock) {
	for _, b := range blocks {
		if !slices.Contains(b.signs, open) {
			continue
		}
		order, ok := siblingOrder(blocks, b)
		if !ok {
			continue
		}
		for i, u := range b.units {
			if b.signs[i] != open {
				continue
			}
			u.turn(b.axis, order[i])
			b.signs[i] = order[i]
		}
	}
}

// siblingOrder returns the order of directions of the blocks of other axes that are as long and decided: there must be one.
func siblingOrder(blocks []signBlock, of signBlock) ([]sign, bool) {
	var order []sign
	for _, b := range blocks {
		if b.axis == of.axis || b.way != of.way || len(b.signs) != len(of.signs) || slices.Contains(b.signs, open) {
			continue
		}
		if order != nil && !slices.Equal(b.signs, order) {
			return nil, false
		}
		order = b.signs
	}
	if order == nil {
		return nil, false
	}
	for i, s := range of.signs {
		if s != open && s != order[i] {
			return nil, false
		}
	}
	return order, true
}

// direction returns the axis that the unit's simplest form moves along, on a grid, and which way: open when other forms move the other
// way. Half way round has no direction.
func (u *unit) direction() (axis int, s sign, ok bool) {
	first, moves := u.pool[0].move()
	if !moves || len(u.pool[0].Rules) < 2 || first.half {
		return 0, 0, false
	}
	for _, form := range u.pool[1:] {
		if m, moves := form.move(); moves && m.axis == first.axis && m.negative != first.negative {
			return first.axis, open, true
		}
	}
	if first.negative {
		return first.axis, minus, true
	}
	return first.axis, plus, true
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
			l.Ranges = ranges(u, f.p.Sizes, u.pool[0], f.p.Grids)
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
	var borrowed []string
	for _, l := range f.p.Laws {
		if l.Borrowed {
			borrowed = append(borrowed, l.Name)
		}
	}
	if n := len(borrowed); n > 0 {
		f.p.Warnings = append(f.p.Warnings, fmt.Sprintf("%d laws take a direction or a shape from sibling axes, because their own have at most two ranks in all runs or none that is thinned out: %s",
			n, strings.Join(borrowed[:min(n, 5)], ", ")))
	}
	if len(f.p.Sizes) < 3 {
		f.p.Warnings = append(f.p.Warnings, fmt.Sprintf("laws rest on %d process counts; a third would test them", len(f.p.Sizes)))
	}
}
