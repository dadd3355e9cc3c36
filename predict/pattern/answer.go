package pattern

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Range is the values of a component of a family's index as a function of the process count.
type Range struct {
	// Low and High are all laws that fit the least and the largest value in the training runs.
	Low  []Bound `json:"low"`
	High []Bound `json:"high"`
}

// Bound is a law for the least or largest value of an index: Of + C.
type Bound struct {
	Of BoundOf `json:"of"`
	// Grid and Axis select the extent; with a nil Grid it is the process count.
	Grid *Grid `json:"grid,omitempty"`
	Axis int   `json:"axis,omitempty"`
	// Times is a further axis of the grid, plus 1, whose extent the other one is multiplied by; 0 means none.
	Times int `json:"times,omitempty"`
	// Per is the divisor of FromShare and FromShareUp.
	Per int32 `json:"per,omitempty"`
	C   int32 `json:"c"`
}

// BoundOf is the variable part of a Bound.
type BoundOf string

// The variable parts; g is an extent or the process count, n is Per.
const (
	FromZero  BoundOf = "0"
	FromFloor BoundOf = "floor(log2 g)"
	FromCeil  BoundOf = "ceil(log2 g)"
	FromAll   BoundOf = "g"
	FromHalf  BoundOf = "floor(g/2)"
	FromFall  BoundOf = "-floor(log2 g)"

	FromShare   BoundOf = "floor(g/n)"
	FromShareUp BoundOf = "ceil(g/n)"
	FromRoot    BoundOf = "floor(sqrt g)"
	FromRootUp  BoundOf = "ceil(sqrt g)"
)

// value returns the bound at a process count, and false when its grid has no extents there, or Per is no divisor.
func (b Bound) value(ranks int32) (int32, bool) {
	g := ranks
	if b.Grid != nil {
		dims, ok := b.Grid.Dims(ranks)
		if !ok {
			return 0, false
		}
		g = dims[b.Axis]
		if b.Times > 0 {
			g *= dims[b.Times-1]
		}
	}
	switch b.Of {
	case FromFloor:
		return log2(g) + b.C, true
	case FromCeil:
		return log2up(g) + b.C, true
	case FromFall:
		return b.C - log2(g), true
	case FromAll:
		return g + b.C, true
	case FromHalf:
		return g/2 + b.C, true
	case FromShare, FromShareUp:
		if b.Per < 1 {
			return 0, false
		}
		if b.Of == FromShare {
			return g/b.Per + b.C, true
		}
		return (g-1)/b.Per + 1 + b.C, true
	case FromRoot:
		return int32(math.Sqrt(float64(g))) + b.C, true
	case FromRootUp:
		return int32(math.Ceil(math.Sqrt(float64(g)))) + b.C, true
	}
	return b.C, true
}

// ranges finds the laws of the values of each component of the index.
func ranges(u *unit, sizes []int32, form Form, grids [][]Grid) []Range {
	out := make([]Range, len(u.slots[0].Index))
	for c := range out {
		low, high := u.spans(c)
		out[c] = Range{Low: bounds(low, sizes, form, grids), High: bounds(high, sizes, form, grids)}
		out[c].keepEmpty(high, sizes)
		out[c].dropRoundedLogarithms(&form, sizes, high)
		out[c].High = append(out[c].High, loopEnds(high, sizes, form)...)
		if u.endsWithPartners(c, high, sizes, form) {
			out[c].preferExtents(&form, sizes, high)
		}
	}
	return out
}

// spans returns the least and the largest value of a component of the index by the number of the size.
func (u *unit) spans(component int) (low, high map[int]int32) {
	low, high = map[int]int32{}, map[int]int32{}
	for _, o := range u.obs {
		v := o.index[component]
		if _, ok := low[o.size]; !ok {
			low[o.size], high[o.size] = v, v
		}
		low[o.size], high[o.size] = min(low[o.size], v), max(high[o.size], v)
	}
	return low, high
}

// rangesOfAll finds the laws of the values of each component of the index by all forms of a unit: whether the index
// is an exponent or a displacement tells where it ends, and the forms may differ in that.
func rangesOfAll(u *unit, sizes []int32, grids [][]Grid) []Range {
	type way struct{ exponential, linear bool }
	all := ranges(u, sizes, u.pool[0], grids)
	seen := []way{{u.pool[0].exponential(), u.pool[0].linear()}}
	for _, f := range u.pool[1:] {
		w := way{f.exponential(), f.linear()}
		if slices.Contains(seen, w) {
			continue
		}
		seen = append(seen, w)
		for c, r := range ranges(u, sizes, f, grids) {
			if slices.ContainsFunc(all[c].High, func(b Bound) bool { return b.Of != FromZero }) { // it grows
				all[c].High = append(all[c].High, r.High...)
			}
		}
	}
	return all
}

// endsWithPartners reports whether, in all runs, a component of the index goes on as long as any rank has a partner: at
// the next value none has.
func (u *unit) endsWithPartners(component int, last map[int]int32, sizes []int32, form Form) bool {
	for _, o := range u.obs {
		if o.index[component] != last[o.size] {
			continue
		}
		dims, ok := form.Grids[0].Dims(sizes[o.size])
		next := slices.Clone(o.index)
		next[component]++
		if !ok || form.bind(sizes[o.size], dims, next).HasSender() {
			return false
		}
	}
	return true
}

// loopEnds returns laws of the largest value of an index that is an exponent, if it is constant in all runs: the
// logarithms of extents that are constant, too. The loop may be over these.
func loopEnds(high map[int]int32, sizes []int32, form Form) (out []Bound) {
	if !form.exponential() {
		return nil
	}
	grid := form.Grids[0]
	for a := range min(grid.Axes, len(form.Rules)) {
		if form.Rules[a].N.B == 0 {
			continue
		}
		for _, of := range []BoundOf{FromFloor, FromCeil} {
			b, first, fits, constant := Bound{Of: of, Grid: &grid, Axis: a}, true, true, true
			last := int32(0)
			for i, v := range high {
				b.C = 0
				log, ok := b.value(sizes[i])
				if first {
					last = v - log
				}
				fits = fits && ok && v-log == last
				constant = constant && v == high[firstKey(high)]
				first = false
			}
			if b.C = last; fits && constant {
				out = append(out, b)
			}
		}
	}
	return out
}

// firstKey returns the least key.
func firstKey(m map[int]int32) int {
	least := math.MaxInt
	for k := range m {
		least = min(least, k)
	}
	return least
}

// preferExtents keeps only those laws of the largest value that count up to an extent, or to its logarithm where
// distances double, if there are some: the loop is one over all partners. If all extents are powers of two, they do not
// tell how the logarithm is rounded. Fewer than three different ends do not tell a loop over an extent from one over
// its logarithm.
func (r *Range) preferExtents(form *Form, sizes []int32, seen map[int]int32) {
	if !enoughEnds(seen) {
		return
	}
	is := func(b Bound) bool { return b.Of == FromAll }
	if !form.linear() {
		is = func(b Bound) bool { return b.Of == FromCeil }
		if !form.exponential() || !slices.ContainsFunc(r.High, func(b Bound) bool { return is(b) && b.isRounded(sizes) }) {
			return
		}
	}
	if slices.ContainsFunc(r.High, is) {
		r.High = slices.DeleteFunc(slices.Clone(r.High), func(b Bound) bool { return !is(b) })
	}
}

// isRounded reports whether the logarithm of some extent is no whole number.
func (b Bound) isRounded(sizes []int32) bool {
	up, down := b, b
	up.Of, down.Of = FromCeil, FromFloor
	return slices.ContainsFunc(sizes, func(p int32) bool {
		x, ok := up.value(p)
		y, _ := down.value(p)
		return ok && x != y
	})
}

// keepEmpty keeps the laws of the largest value that lie below the least value wherever no rank sends: there the
// range must be empty. If no law does, all stay.
func (r *Range) keepEmpty(seen map[int]int32, sizes []int32) {
	var left []Bound
	for _, b := range r.High {
		ok := true
		for i, p := range sizes {
			if _, some := seen[i]; some {
				continue
			}
			last, known := b.value(p)
			for _, lo := range r.Low {
				first, also := lo.value(p)
				ok = ok && (!known || !also || last < first)
			}
		}
		if ok {
			left = append(left, b)
		}
	}
	if len(left) > 0 {
		r.High = left
	}
}

// roundedUp returns a bound of half an extent rounded up, and others as they are.
func (b Bound) roundedUp() Bound {
	if b.Of == FromHalf {
		b.Of, b.Per = FromShareUp, 2
	}
	return b
}

// bounds returns the laws that reproduce the value at each size. If all values are equal, the only law is the
// constant. Laws of the process count come before laws of the extents of the program's grids.
func bounds(values map[int]int32, sizes []int32, form Form, grids [][]Grid) []Bound {
	try := func(b Bound) bool { return b.isAlways(values, sizes) }
	var some int32
	for _, v := range values {
		some = v
	}
	if b := (Bound{Of: FromZero, C: some}); try(b) {
		return append([]Bound{b}, unvariedEnds(some, values, sizes)...)
	}
	of := []BoundOf{FromFloor, FromCeil}
	if !form.exponential() {
		of = append(of, FromAll, FromHalf)
	}
	extents := []Bound{{}}
	for _, alike := range grids {
		for i := range alike {
			for a := range alike[i].Axes {
				extents = append(extents, Bound{Grid: &alike[i], Axis: a})
			}
		}
	}
	var out []Bound
	for _, b := range extents {
		for _, b.Of = range of {
			for b.C = -4; b.C <= 4; b.C++ {
				if !try(b) {
					continue
				}
				out = append(out, b)
				if up := b.roundedUp(); up != b && try(up) { // even extents do not show how a half is rounded
					out = append(out, up)
				}
			}
		}
	}
	if len(out) == 0 && len(values) > 2 {
		for _, b := range extents { // values may fall, as coarser levels are spread over more ranks
			for i, v := range values {
				b.Of, b.C = FromFall, 0
				if less, ok := b.value(sizes[i]); ok {
					b.C = v - less
				}
				break
			}
			if try(b) {
				out = append(out, b)
			}
		}
	}
	return out
}

// unvariedEnds returns laws of a constant largest value which count up to a logarithm of the process count that did not
// vary in the runs, either.
func unvariedEnds(last int32, values map[int]int32, sizes []int32) (out []Bound) {
	for _, of := range []BoundOf{FromFloor, FromCeil} {
		b, fits := Bound{Of: of, C: -1}, last > 0
		for i := range values {
			v, _ := b.value(sizes[i])
			fits = fits && v == last
		}
		if fits {
			out = append(out, b)
		}
	}
	return out
}

// negative returns the index at which the family begins at a process count, if it is below 0 although no run has a
// negative index.
func (l Law) negative(ranks int32) (first int32, is bool) {
	for c, r := range l.Ranges {
		if slices.ContainsFunc(l.Members, func(m Member) bool { return m.Index[c] < 0 }) {
			continue
		}
		for _, b := range r.Low {
			if v, ok := b.value(ranks); ok && b.Of == FromFall && v < 0 {
				return v, true
			}
		}
	}
	return 0, false
}

// exponential reports whether the index is an exponent in the form: then it ends at a logarithm.
func (f Form) exponential() bool {
	return slices.ContainsFunc(f.Rules, func(r Rule) bool {
		return (r.N.Kind == Power || r.N.Kind == Divided) &&
			r.N.B != 0
	})
}

// HasSenders reports whether the form has a sender at a process count and an index.
func (f Form) HasSenders(ranks int32, index []int32) bool {
	dims, ok := f.Grids[0].Dims(ranks)
	return ok && f.bind(ranks, dims, index).HasSender()
}

// linear reports whether the index is a displacement or a coordinate in the form, and not an exponent.
func (f Form) linear() bool {
	return slices.ContainsFunc(f.Rules, func(r Rule) bool { return r.N.Kind == Literal && r.N.B != 0 && r.numbered() })
}

// span returns the least and the largest value by any law of the range; ok is false when there is none.
func (r Range) span(ranks int32) (lo, hi int32, ok bool) {
	lo, hi = math.MaxInt32, math.MinInt32
	for _, b := range r.Low {
		if v, ok := b.value(ranks); ok {
			lo = min(lo, v)
		}
	}
	for _, b := range r.High {
		if v, ok := b.value(ranks); ok {
			hi = max(hi, v)
		}
	}
	return lo, hi, lo != math.MaxInt32 && hi != math.MinInt32 && !(lo > hi && r.falls())
}

// falls reports whether the largest value falls as extents grow.
func (r Range) falls() bool {
	return slices.ContainsFunc(r.High, func(b Bound) bool { return b.Of == FromFall })
}

// Reason is the kind of a Refusal.
type Reason string

// The reasons of a Refusal.
const (
	Undefined  Reason = "undefined"     // the law has no grid for that process count
	Ambiguous  Reason = "ambiguous"     // laws that all give the training runs differ there
	NoLaw      Reason = "no law"        // the slot is unexplained
	UnknownEnd Reason = "unknown range" // how many members a family has there is not known
	Holes      Reason = "unknown place" // a family has some of the places in its range and not others
	Unsteady   Reason = "unsteady"      // no law says at which process counts the slot occurs
	Unaligned  Reason = "unaligned"     // the runs do not show which levels of a hierarchy leave out ranks
)

// Refusal is the error when the training runs do not determine the destinations of a slot.
type Refusal struct {
	Slot   string // name of the slot
	Ranks  int32  // the wanted number of ranks
	Reason Reason
	Detail string // the reason in words
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("destinations of %s at %d ranks: %s: %s", r.Slot, r.Ranks, r.Reason, r.Detail)
}

// Map returns the map of a slot, given by its name, at a process count. The error is a *Refusal when the runs do not
// determine it.
func (p *Program) Map(slot string, ranks int32) (*Map, error) {
	for i := range p.Laws {
		for _, m := range p.Laws[i].Members {
			if m.Slot == slot {
				return p.Laws[i].Map(ranks, m.Index)
			}
		}
	}
	for _, u := range p.Unexplained {
		if u.Slot == slot {
			return nil, &Refusal{Slot: slot, Ranks: ranks, Reason: NoLaw, Detail: u.Why}
		}
	}
	return nil, fmt.Errorf("destinations at %d ranks: no slot %q was fitted", ranks, slot)
}

// Rivals returns the different maps of a slot, given by its name, at a process count at which forms disagree, that of
// the simplest form first. It is nil where Map has an answer, and where it refuses for another reason.
func (p *Program) Rivals(slot string, ranks int32) []*Map {
	for i := range p.Laws {
		l := &p.Laws[i]
		for _, m := range l.Members {
			if m.Slot != slot {
				continue
			}
			if len(l.Forms) == 0 || l.Forms[0].Presence.Kind == Erratic {
				return nil
			}
			maps, _, missing, _ := l.bind(ranks, m.Index)
			if len(maps) < 2 || len(missing) > 0 {
				return nil
			}
			if in, err := l.inRange(ranks, m.Index, maps); err != nil || in.absent {
				return nil
			}
			return maps
		}
	}
	return nil
}

// Dst returns the destination of a single rank, as Map does for all.
func (l Law) Dst(ranks, rank int32, index []int32) (dst int32, sends bool, err error) {
	m, err := l.Map(ranks, index)
	if err != nil {
		return None, false, err
	}
	dst, sends = m.Dst(rank)
	return dst, sends, nil
}

// Map returns the map at a process count, for an index in the family (nil for a slot without index). The index need not
// occur in a run, if the family's ranges include it. The error is a *Refusal.
func (l Law) Map(ranks int32, index []int32) (*Map, error) {
	return l.MapLike(ranks, index, &Inverses{})
}

// MapLike is Map for callers that ask for many places of a family: it takes inverses that are known.
func (l Law) MapLike(ranks int32, index []int32, known *Inverses) (*Map, error) {
	m, err := l.ownMap(ranks, index)
	if l.Inverse == nil || l.Paired && l.cost()+margin < l.Inverse.cost() {
		return m, err
	}
	inverse, otherErr := known.mapOf(l.Inverse, ranks, index)
	switch { // rivals of the simpler side have inverses, which are rivals of the other side
	case isAmbiguous(err) && l.cost() < l.Inverse.cost():
		return nil, err
	case l.Paired && isAmbiguous(otherErr) && l.Inverse.cost() < l.cost():
		return nil, otherErr
	case l.Paired && l.Inverse.cost()+margin < l.cost() && (inverse != nil || otherErr != nil):
		return inverse, otherErr
	case err != nil && inverse != nil:
		return inverse, nil
	case err != nil || !l.Paired || inverse == nil || known.areEqual(l.Inverse, m, inverse):
		return m, err
	}
	return nil, &Refusal{Slot: l.Name, Ranks: ranks, Reason: Ambiguous,
		Detail: fmt.Sprintf("it is not the other side of %s, as it is in all runs", l.Inverse.Name)}
}

// isAmbiguous reports whether an error is that laws disagree.
func isAmbiguous(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Reason == Ambiguous
}

// cost returns the description length of the simplest form, in bits; infinite if there is none.
func (l Law) cost() float64 {
	if len(l.Forms) == 0 {
		return math.Inf(1)
	}
	return l.Forms[0].Cost
}

// ownMap is Map by the law's own forms.
func (l Law) ownMap(ranks int32, index []int32) (*Map, error) {
	refuse := func(r Reason, format string, args ...any) (*Map, error) {
		name := l.Name
		if len(l.Members) > 1 {
			name = fmt.Sprintf("%s%v", name, index)
		}
		return nil, &Refusal{Slot: name, Ranks: ranks, Reason: r, Detail: fmt.Sprintf(format, args...)}
	}
	if len(index) != len(l.Members[0].Index) {
		return refuse(UnknownEnd, "the index has %d components, those of the slots %d", len(index),
			len(l.Members[0].Index))
	}
	if len(l.Forms) == 0 {
		return refuse(NoLaw, "neither its destinations nor, at that process count, the other side of its messages have one")
	}
	if l.Forms[0].Presence.Kind == Erratic {
		return refuse(Unsteady, "it occurs at %v of the runs' %v ranks, for which there is no law", l.Sizes, l.Training)
	}
	maps, of, missing, short := l.bind(ranks, index)
	if f := l.unaligned(ranks); f != nil && len(maps) > 0 {
		return refuse(Unaligned, "the runs have at most %d ranks on an axis, which do not show which levels %s leaves out",
			l.longest(f), f)
	}
	if len(maps) == 0 {
		return refuse(Undefined, "the law holds for %s", strings.Join(missing, " or "))
	}
	if len(missing) > 0 {
		return refuse(Undefined, "all runs were of %s; a run at another process count would show the law there",
			strings.Join(missing, " or "))
	}
	if first, is := l.negative(ranks); is {
		return refuse(UnknownEnd, "it would begin at index %d: no run shows what the program does before the first iteration", first)
	}
	m, err := maps[0], error(nil)
	if len(l.Ranges) > 0 {
		if m, err = l.inRange(ranks, index, maps); err != nil {
			return nil, err
		}
		if m.absent {
			return m, nil
		}
	}
	if by := l.divided(ranks); by != "" && slices.ContainsFunc(maps, (*Map).HasSender) {
		return refuse(Ambiguous, "the runs do not tell which it is: %s", by)
	}
	if len(l.Sizes) == 1 && ranks > l.Sizes[0] && !m.HasSender() {
		return refuse(Unsteady, "seen at %d ranks only, and none takes part here by the law of other calls", l.Sizes[0])
	}
	if by := l.guarded(m); by != "" {
		return refuse(Ambiguous, "%s: a guard on it may keep some from it", by)
	}
	if short != "" && len(maps) == 1 {
		return refuse(Ambiguous, "the runs have at most %s; a run with more there shows how", short)
	}
	if len(maps) > 1 {
		texts := make([]string, 0, 4)
		for _, f := range of[:min(len(of), 4)] {
			texts = append(texts, f.String())
		}
		return refuse(Ambiguous, "%d laws that give all runs differ: %s", len(maps), strings.Join(texts, "; "))
	}
	return m, nil
}

// bind evaluates the law's forms. It returns the maps that differ, the form of each, the domains of forms that are not
// defined for this process count, and what the runs have too few ranks for, or "".
func (l Law) bind(ranks int32, index []int32) (maps []*Map, of []Form, missing []string, short string) {
	maps, of, missing, short, _ = bindNumbered(&l, ranks, index)
	return maps, of, missing, short
}

// bindNumbered is Law.bind. It also returns, in the order of the forms and their grids, the number of the map of each;
// undefinedAnswer for none.
func bindNumbered(l *Law, ranks int32, index []int32) (maps []*Map, of []Form, missing []string, short string,
	numbers []int) {
	for _, f := range l.Forms {
		for _, g := range f.Grids {
			dims, ok := g.Dims(ranks)
			if !ok {
				numbers = append(numbers, undefinedAnswer)
				if !slices.Contains(missing, g.Domain()) {
					missing = append(missing, g.Domain())
				}
				continue
			}
			m := f.bind(ranks, dims, index)
			m.Borrowed = l.Borrowed
			for _, a := range f.Short {
				// A form that moves to coordinate 0 does not move if all are there. That an axis beside a plane
				// always has two ranks is no law before a run has more on other axes.
				if (dims[a] > 2 || g.unusual()) && m.moves(a) {
					short = "two ranks on an axis that " + f.String() + " moves along"
				}
			}
			for _, a := range f.Narrow {
				if most := l.mostNarrow(&f, a); dims[a] > most && m.HasSender() {
					short = fmt.Sprintf("%d ranks on an axis on which %s names a coordinate", most, f)
				}
			}
			if m.HasSender() && f.roundsUnseen(g, l.Training, dims) {
				short = "extents of which " + f.String() + " takes an even part"
			}
			i := slices.IndexFunc(maps, func(o *Map) bool { return equalMaps(o, m) })
			if i < 0 {
				i, maps = len(maps), append(maps, m)
				of = append(of, Form{Grids: []Grid{g}, Rules: f.Rules, Bits: f.Bits, Listed: f.Listed, Where: f.Where,
					Presence: f.Presence})
			}
			numbers = append(numbers, i)
		}
	}
	return maps, of, missing, short, numbers
}

// mostNarrow returns the longest extent of an axis on which the guard of a form that names a coordinate is known: if
// the law was seen on one number of ranks, that which the axis has there.
func (l *Law) mostNarrow(f *Form, axis int) int32 {
	if len(l.Sizes) == 1 {
		if dims, ok := f.Grids[0].Dims(l.Sizes[0]); ok {
			return dims[axis]
		}
	}
	return narrowExtent
}

// unaligned returns a form whose levels are not known on a number of ranks, see Form.Unaligned; nil if there is none.
func (l *Law) unaligned(ranks int32) *Form {
	for i := range l.Forms {
		f := &l.Forms[i]
		if dims, ok := f.Grids[0].Dims(ranks); f.Unaligned && ok && slices.Max(dims) > l.longest(f) {
			return f
		}
	}
	return nil
}

// IsLonger reports whether the grid of the law's first form has an axis on a number of ranks that is longer than any of
// its axes in the runs.
func IsLonger(l *Law, ranks int32) bool {
	if len(l.Forms) == 0 || len(l.Forms[0].Grids) == 0 {
		return false
	}
	dims, ok := l.Forms[0].Grids[0].Dims(ranks)
	return ok && slices.Max(dims) > l.longest(&l.Forms[0])
}

// longest returns the longest extent of an axis of a form's grid in the runs.
func (l *Law) longest(f *Form) (longest int32) {
	for _, p := range l.Training {
		if dims, ok := f.Grids[0].Dims(p); ok {
			longest = max(longest, slices.Max(dims))
		}
	}
	return longest
}

// moves reports whether a rank sends to another coordinate of an axis.
func (m *Map) moves(axis int) bool {
	for r := range m.Ranks {
		if dst, ok := m.Dst(r); ok && coords(m.Dims, r)[axis] != coords(m.Dims, dst)[axis] {
			return true
		}
	}
	return false
}

// inRange returns the first of maps when the index exists at the process count, an empty map when it does not, and a
// *Refusal when that is not known.
func (l Law) inRange(ranks int32, index []int32, maps []*Map) (*Map, error) {
	if ranks > l.Training[len(l.Training)-1] && l.Doubtful && changesOnce(&l) && slices.ContainsFunc(maps, (*Map).HasSender) {
		return nil, &Refusal{Slot: l.Name, Ranks: ranks, Reason: UnknownEnd,
			Detail: fmt.Sprintf("it occurs at %d and %d ranks only, with another range of its index", l.Sizes[0], l.Sizes[1])}
	}
	for c, r := range l.Ranges {
		in, out := 0, 0
		for _, lo := range r.Low {
			for _, hi := range r.High {
				first, ok1 := lo.value(ranks)
				last, ok2 := hi.value(ranks)
				if ok1 && ok2 && index[c] >= first && index[c] <= last {
					in++
				} else {
					out++
				}
			}
		}
		switch {
		case in > 0 && out == 0:
			continue
		case in == 0 && out > 0:
			return &Map{Ranks: ranks, Dims: maps[0].Dims, absent: true}, nil
		}
		if in == 0 && l.steady(index, ranks) {
			continue
		}
		if !slices.ContainsFunc(maps, (*Map).HasSender) {
			continue
		}
		return nil, &Refusal{Slot: l.Name, Ranks: ranks, Reason: UnknownEnd,
			Detail: fmt.Sprintf("it is not known whether index %v exists at that process count", index)}
	}
	return maps[0], nil
}

// changesOnce reports whether the law occurs at two process counts only, and a component of its index has another range
// at the one than at the other: two points are on any line.
func changesOnce(l *Law) bool {
	if len(l.Sizes) != 2 {
		return false
	}
	for c := range l.Ranges {
		var low, high [2]int32
		for i, p := range l.Sizes {
			low[i], high[i] = math.MaxInt32, math.MinInt32
			for _, m := range l.Members {
				if slices.Contains(m.Sizes, p) {
					low[i], high[i] = min(low[i], m.Index[c]), max(high[i], m.Index[c])
				}
			}
		}
		if low[0] != low[1] || high[0] != high[1] {
			return true
		}
	}
	return false
}

// steady reports whether a member occurs in all runs from some process count on, which is not above ranks.
func (l Law) steady(index []int32, ranks int32) bool {
	for _, m := range l.Members {
		if slices.Equal(m.Index, index) {
			return len(m.Sizes) > 0 && slices.Equal(m.Sizes, l.Training[len(l.Training)-len(m.Sizes):]) &&
				ranks >= m.Sizes[0]
		}
	}
	return false
}

// Last predicts the largest value of a component of the index at a process count. least and most differ if the laws
// do. ok is false if there is no prediction, or only one that falls below the least value: all runs have that.
func (l Law) Last(ranks int32, component int) (least, most int32, ok bool) {
	if len(l.Forms) == 0 && l.Inverse != nil {
		return l.Inverse.Last(ranks, component)
	}
	if component >= len(l.Ranges) {
		return 0, 0, false
	}
	least, most = math.MaxInt32, math.MinInt32
	for _, b := range l.Ranges[component].High {
		if v, known := b.value(ranks); known {
			least, most = min(least, v), max(most, v)
		}
	}
	if lo, hi, some := l.Ranges[component].span(ranks); !some && lo > hi {
		return 0, 0, false
	}
	return least, most, least <= most
}

// Indices returns the indices of the family at which ranks send at a process count: those of the runs and, by the
// ranges, new ones. The error is a *Refusal.
func (l Law) Indices(ranks int32) ([][]int32, error) {
	if len(l.Forms) == 0 && l.Inverse != nil {
		return l.Inverse.Indices(ranks)
	}
	var out [][]int32
	if len(l.Ranges) == 0 {
		for _, m := range l.Members {
			out = append(out, m.Index)
		}
		return out, nil
	}
	places := [][]int32{nil}
	for c, r := range l.Ranges {
		lo, hi, ok := r.span(ranks)
		if !ok {
			return nil, &Refusal{Slot: l.Name, Ranks: ranks, Reason: UnknownEnd,
				Detail: fmt.Sprintf("there is no law for where component %d of the index ends", c)}
		}
		var next [][]int32
		for _, p := range places {
			for v := lo; v <= hi; v++ {
				next = append(next, append(slices.Clone(p), v))
			}
		}
		places = next
	}
	for _, p := range places {
		m, err := l.Map(ranks, p)
		if err != nil {
			return nil, err
		}
		if m.HasSender() {
			out = append(out, p)
		}
	}
	return out, nil
}
