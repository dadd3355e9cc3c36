package regress

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// searcher finds the exact laws of one group.
type searcher struct {
	rows    []row   // the most different first
	extents []int64 // known extents; nil to try all up to limit
	limit   int64
	runs    int  // number of rank counts
	budget  *int // number of further groups that may be searched for multipartitions without success
	found   []Hypothesis
	names   names
	divided map[axisLevel][]quotient // results of candidates for the current extents

	// For the cut that was tried last: which placements fit two rows, and the extents of the blocks of these rows.
	fits          []bool
	near, distant []int64
}

// mostKept is the largest number of exact laws of a group that are kept. If there are more, the interval includes
// curves.
const mostKept = 256

// full reports whether mostKept laws were found.
func (s *searcher) full() bool { return len(s.found) >= mostKept }

func newSearcher(rows []row) *searcher {
	s := &searcher{rows: spread(rows)}
	seen := map[int64]bool{}
	for _, r := range rows {
		seen[r.ranks] = true
	}
	s.runs = len(seen)
	return s
}

// holds reports whether a law reproduces all rows.
func (s *searcher) holds(h *Hypothesis) bool {
	for i := range s.rows {
		if y, ok := h.value(&s.rows[i], &s.names); !ok || y.value != float64(s.rows[i].v) {
			return false
		}
	}
	return true
}

// constant finds the law of equal values.
func (s *searcher) constant() bool {
	for _, r := range s.rows {
		if r.v != s.rows[0].v {
			return false
		}
	}
	s.found = append(s.found, Hypothesis{C: float64(s.rows[0].v)})
	return true
}

// nearlyEqual reports whether two values are equal except for rounding.
func nearlyEqual(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Max(math.Abs(a), math.Abs(b)) }

// scaled finds laws that are C times powers of the grid's extents and at most one other function.
func (s *searcher) scaled() {
	axes := len(s.rows[0].g)
	factors := append([]variable{{}}, variables(axes, len(s.rows[0].index))...)
	powers := make([]int, axes)
	var try func(a int)
	try = func(a int) {
		if a < axes {
			if !s.isIndependent(a) {
				try(a + 1)
				return
			}
			for p := -2; p <= 2; p++ {
				powers[a] = p
				try(a + 1)
			}
			return
		}
		for _, f := range factors {
			if f.value != nil && (f.name[0] == 'P' || f.name[0] == 'g' || f.name[0] == 'x' || f.name[0] == '[') {
				continue // covered by powers, or 0 at some places
			}
			if c, ok := s.scale(powers, f); ok {
				s.found = append(s.found, Hypothesis{C: c, Powers: trimmed(powers), Factor: f.name})
			}
		}
	}
	try(0)
	least := math.MaxInt
	for _, h := range s.found {
		least = min(least, h.size())
	}
	s.found = slices.DeleteFunc(s.found, func(h Hypothesis) bool { return h.size() > least })
}

// size returns the number of powers and functions of a law without cuts.
func (h *Hypothesis) size() (n int) {
	for _, p := range h.Powers {
		n += max(p, -p)
	}
	if h.Factor != "" {
		n++
	}
	return n
}

// isIndependent reports whether the extents of an axis differ between rows, and are not those of an axis before it.
func (s *searcher) isIndependent(a int) bool {
	if !slices.ContainsFunc(s.rows, func(r row) bool { return r.g[a] != s.rows[0].g[a] }) {
		return false
	}
	for b := range a {
		if !slices.ContainsFunc(s.rows, func(r row) bool { return r.g[a] != r.g[b] }) {
			return false
		}
	}
	return true
}

// trimmed returns a copy of powers, or nil when all are 0.
func trimmed(powers []int) []int {
	for _, p := range powers {
		if p != 0 {
			return slices.Clone(powers)
		}
	}
	return nil
}

// scale returns the coefficient of a product that reproduces all rows.
func (s *searcher) scale(powers []int, f variable) (c float64, ok bool) {
	first := true
	for i := range s.rows {
		r := &s.rows[i]
		y := 1.0
		for a, p := range powers {
			for range p {
				y *= float64(r.g[a])
			}
			for range -p {
				y /= float64(r.g[a])
			}
		}
		if f.value != nil {
			v, ok := f.value(r)
			if !ok {
				return 0, false
			}
			y *= v
		}
		switch {
		case y == 0 && r.v == 0:
		case y == 0:
			return 0, false
		case first:
			c, first = float64(r.v)/y, false
		case !nearlyEqual(c, float64(r.v)/y):
			return 0, false
		}
	}
	if r := math.Round(c); nearlyEqual(r, c) {
		c = r
	}
	return c, !first && c != 0
}

// affine finds laws that are a constant plus one or two functions of the place with simple coefficients.
func (s *searcher) affine() {
	all := variables(len(s.rows[0].g), len(s.rows[0].index))
	columns := make([][]float64, 0, len(all))
	kept := all[:0:0]
	for _, v := range all {
		column := make([]float64, len(s.rows))
		ok, varies := true, false
		for i := range s.rows {
			y, has := v.value(&s.rows[i])
			column[i], ok = y, ok && has
			varies = varies || y != column[0]
		}
		if ok && varies && !slices.ContainsFunc(columns, func(c []float64) bool { return proportional(c, column) }) {
			columns, kept = append(columns, column), append(kept, v)
		}
	}
	for i := range kept {
		if h, ok := s.line(kept, columns, i); ok {
			s.found = append(s.found, h)
		}
	}
	if len(s.found) > 0 {
		return
	}
	for i := range kept {
		for j := range i {
			if h, ok := s.plane(kept, columns, j, i); ok {
				s.found = append(s.found, h)
			}
		}
	}
}

// proportional reports whether one column is another one times a factor plus a constant.
func proportional(a, b []float64) bool {
	k := 0
	for k < len(a) && a[k] == a[0] {
		k++
	}
	if k == len(a) {
		return true
	}
	m := (b[k] - b[0]) / (a[k] - a[0])
	for i := range a {
		if math.Abs(b[0]+m*(a[i]-a[0])-b[i]) > 1e-9 {
			return false
		}
	}
	return m != 0
}

// simple rounds a coefficient to a fraction with a small denominator, and reports whether it was one.
func simple(c float64) (float64, bool) {
	r := math.Round(c*largestDenominator) / largestDenominator
	return r, math.Abs(r-c) <= 1e-9*math.Max(1, math.Abs(c))
}

// line fits a constant and one function.
func (s *searcher) line(vs []variable, columns [][]float64, i int) (h Hypothesis, ok bool) {
	x := columns[i]
	k := slices.IndexFunc(x, func(y float64) bool { return y != x[0] })
	v0 := float64(s.rows[0].v)
	b, ok1 := simple((float64(s.rows[k].v) - v0) / (x[k] - x[0]))
	a, ok2 := simple(v0 - b*x[0])
	if !ok1 || !ok2 || b == 0 || distinct(x) < 3 || b < 0 && vs[i].grows() {
		return h, false
	}
	for n := range x {
		if !nearlyEqual(a+b*x[n], float64(s.rows[n].v)) {
			return h, false
		}
	}
	return Hypothesis{C: a, Sum: []Summand{{b, vs[i].name}}}, true
}

// plane fits a constant and two functions.
func (s *searcher) plane(vs []variable, columns [][]float64, i, j int) (h Hypothesis, ok bool) {
	x, y := columns[i], columns[j]
	difference := func(n int) (float64, float64, float64) {
		return x[n] - x[0], y[n] - y[0], float64(s.rows[n].v - s.rows[0].v)
	}
	for m := 1; m < len(x); m++ {
		xm, ym, vm := difference(m)
		if xm == 0 && ym == 0 {
			if vm != 0 {
				return h, false
			}
			continue
		}
		for n := m + 1; n < len(x); n++ {
			xn, yn, vn := difference(n)
			det := xm*yn - xn*ym
			if det == 0 {
				continue
			}
			b, ok1 := simple((vm*yn - vn*ym) / det)
			c, ok2 := simple((xm*vn - xn*vm) / det)
			a, ok3 := simple(float64(s.rows[0].v) - b*x[0] - c*y[0])
			if !ok1 || !ok2 || !ok3 || b == 0 || c == 0 || pairs(x, y) < 5 || b < 0 && vs[i].grows() || c < 0 &&
				vs[j].grows() {
				return h, false
			}
			for n := range x {
				if !nearlyEqual(a+b*x[n]+c*y[n], float64(s.rows[n].v)) {
					return h, false
				}
			}
			return Hypothesis{C: a, Sum: []Summand{{b, vs[i].name}, {c, vs[j].name}}}, true
		}
		return h, false
	}
	return h, false
}

// grows reports whether a variable grows without bound with the number of ranks: with a negative coefficient the law
// would change its sign.
func (v *variable) grows() bool { return v.name[0] != '[' && v.name[0] != 'i' && v.name[0] != '2' }

func pairs(x, y []float64) int {
	seen := map[[2]float64]bool{}
	for n := range x {
		seen[[2]float64{x[n], y[n]}] = true
	}
	return len(seen)
}

func distinct(xs []float64) int {
	xs = slices.Clone(xs)
	slices.Sort(xs)
	return len(slices.Compact(xs))
}

// leveling is a Level with its index.
type leveling struct {
	level Level
	index int
}

// levelings returns the levelings to try.
func (s *searcher) levelings() []leveling {
	all := []leveling{{NoLevel, 0}}
	for i := range s.rows[0].index {
		if slices.ContainsFunc(s.rows, func(r row) bool { return r.index[i] != s.rows[0].index[i] }) {
			all = append(all, leveling{Halved, i}, leveling{Doubled, i})
		}
	}
	return all
}

// indexOf returns the index of a row, or 0 without a level.
func (l leveling) indexOf(r *row) int64 {
	if l.level == NoLevel {
		return 0
	}
	return r.index[l.index]
}

// common returns the greatest common divisor of all values.
func (s *searcher) common() (c int64) {
	for _, r := range s.rows {
		c = gcd(c, r.v)
	}
	return c
}

// units returns the divisors of a number that are tried as coefficients of a product. Bytes are usually multiples of
// 8 or 4, so these come first, smaller ones before larger.
func units(common int64) (all []int64) {
	for w := int64(1); w*w <= common && w <= mostUnit; w++ {
		if common%w == 0 {
			all = append(all, w)
			if w*w != common {
				all = append(all, common/w)
			}
		}
	}
	slices.SortFunc(all, func(a, b int64) int { return cmp.Or(cmp.Compare(oddness(a), oddness(b)), cmp.Compare(a, b)) })
	return all
}

// oddness returns 0 for multiples of 8, 1 for other multiples of 4, and 2 for other numbers.
func oddness(w int64) int {
	switch {
	case w%8 == 0:
		return 0
	case w%4 == 0:
		return 1
	}
	return 2
}

// spots returns the places along an axis with the required factors. ok is false when a place requires two factors, when
// all require the same, and when the axis has the same extent in all rows.
func (s *searcher) spots(l leveling, a int, want []int64) (all []spot, ok bool) {
	seen := map[[3]int64]int64{}
	varies, cut := false, false
	for n := range s.rows {
		r := &s.rows[n]
		cut = cut || r.g[a] != s.rows[0].g[a]
		k := [3]int64{r.g[a], r.x[a], l.indexOf(r)}
		if w, had := seen[k]; had {
			if w != want[n] {
				return nil, false
			}
			continue
		}
		seen[k] = want[n]
		varies = varies || want[n] != want[0]
		all = append(all, spot{k[0], k[1], k[2], want[n]})
	}
	return all, varies && cut
}

// oneCut finds laws that are a coefficient times a cut along one axis.
func (s *searcher) oneCut(l leveling, a int) {
	want := make([]int64, len(s.rows))
	for _, w := range units(s.common()) {
		for n := range s.rows {
			want[n] = s.rows[n].v / w
		}
		spots, ok := s.spots(l, a, want)
		if !ok {
			return
		}
		if cuts := s.allowed(findCuts(l.level, spots)); len(cuts) > 0 {
			s.found = append(s.found, Hypothesis{C: float64(w), Level: l.level, LevelIndex: l.index, Axes: []int{a},
				Cuts: [][]Cut{cuts}})
		}
	}
}

// allowed drops cuts whose extents are not known, if any are.
func (s *searcher) allowed(cuts []Cut) []Cut {
	if s.extents == nil {
		return cuts
	}
	return slices.DeleteFunc(cuts, func(c Cut) bool { return !slices.Contains(s.extents, c.Extent) })
}

// axisLevel is an axis with a leveling.
type axisLevel struct {
	leveling leveling
	axis     int
}

// quotient is a cut that divides all values, and the quotients.
type quotient struct {
	cut  Cut
	rest []int64
}

// quotients returns the candidates along an axis for the values, which are computed only once.
func (s *searcher) quotients(l leveling, a int) []quotient {
	k := axisLevel{l, a}
	all, known := s.divided[k]
	if known {
		return all
	}
	values := make([]int64, len(s.rows))
	for n := range s.rows {
		values[n] = s.rows[n].v
	}
	s.candidates(l, a, values, func(cut Cut, rest []int64) { all = append(all, quotient{cut, slices.Clone(rest)}) })
	if s.divided == nil {
		s.divided = map[axisLevel][]quotient{}
	}
	s.divided[k] = all
	return all
}

// candidates calls use with the cuts along an axis that divide all numbers in want, one of those with equal factors.
// rest are the quotients, which are valid until use returns.
func (s *searcher) candidates(l leveling, a int, want []int64, use func(c Cut, rest []int64)) {
	if !slices.ContainsFunc(s.rows, func(r row) bool { return r.g[a] != s.rows[0].g[a] }) {
		return
	}
	extents := s.extents
	if extents == nil {
		for n := int64(2); n <= s.limit; n++ {
			extents = append(extents, n)
		}
	}
	seen := map[string]bool{}
	factors, rest := make([]int64, len(s.rows)), make([]int64, len(s.rows))
	few := s.rows[:min(len(s.rows), 2)] // the most different rows exclude most cuts
	able := make([]nearDivisors, len(few))
	for _, n := range extents {
	roundings:
		for _, rounding := range roundings {
			for k := range few {
				r := &few[k]
				if !able[k].has(want[k], rounding.block(l.level.scale(n, l.indexOf(r)), r.g[a], r.x[a])) {
					continue roundings
				}
			}
			r0 := &s.rows[0]
			block := rounding.block(l.level.scale(n, l.indexOf(r0)), r0.g[a], r0.x[a])
			for _, add := range halos {
			trims:
				for _, trim := range trims {
					if f := block + add - trim.cells(r0.g[a], r0.x[a]); f < 1 || want[0]%f != 0 {
						continue
					}
					c := Cut{n, rounding, add, trim}
					varies := false
					for k := range s.rows {
						r := &s.rows[k]
						f := c.value(l.level, l.indexOf(r), r.g[a], r.x[a])
						if f < 1 || want[k]%f != 0 {
							continue trims
						}
						factors[k], rest[k] = f, want[k]/f
						varies = varies || f != factors[0]
					}
					if !varies {
						continue
					}
					key := profile(factors)
					if seen[key] {
						continue
					}
					seen[key] = true
					use(c, rest)
				}
			}
		}
	}
}

// nearDivisors remembers for blocks whether they, with some halo and trim, divide a number: 0 not known, 1 yes, 2 no.
type nearDivisors []byte

func (d *nearDivisors) has(want, block int64) bool {
	const most = 1 << 10 // blocks that are remembered
	if block < 0 || block >= most {
		return dividesNear(want, block)
	}
	for int64(len(*d)) <= block {
		*d = append(*d, 0)
	}
	if (*d)[block] == 0 {
		(*d)[block] = 2
		if dividesNear(want, block) {
			(*d)[block] = 1
		}
	}
	return (*d)[block] == 1
}

// dividesNear reports whether a number is divisible by a factor that a cut can have with a block, see halos and
// Trim.cells.
func dividesNear(want, block int64) bool {
	for f := max(1, block-4); f <= block+2; f++ {
		if want%f == 0 {
			return true
		}
	}
	return false
}

// profile encodes numbers as a map key.
func profile(xs []int64) string {
	b := make([]byte, 0, 2*len(xs))
	for _, x := range xs {
		for ; x >= 0x80; x >>= 7 {
			b = append(b, byte(x)|0x80)
		}
		b = append(b, byte(x))
	}
	return string(b)
}

// twoCuts finds laws that are a coefficient times cuts along two axes.
func (s *searcher) twoCuts(l leveling, a, b int) {
	want := make([]int64, len(s.rows))
	for _, q := range s.quotients(l, b) {
		if s.full() {
			return
		}
		s.second(l, a, b, q, want)
	}
}

// second finds the other factor of a product with a cut along axis b. want is scratch space.
func (s *searcher) second(l leveling, a, b int, q quotient, want []int64) {
	var common int64
	for _, x := range q.rest {
		common = gcd(common, x)
	}
	for _, w := range units(common) {
		for n := range q.rest {
			want[n] = q.rest[n] / w
		}
		spots, ok := s.spots(l, a, want)
		if !ok {
			return
		}
		cuts := s.allowed(findCuts(l.level, spots))
		if len(cuts) == 0 {
			continue
		}
		for n := range s.rows {
			r := &s.rows[n]
			want[n] = q.cut.value(l.level, l.indexOf(r), r.g[b], r.x[b])
		}
		others, _ := s.spots(l, b, want)
		equivalent := s.allowed(findCuts(l.level, others))
		if len(equivalent) == 0 { // the range of extents is too wide: only the cut itself is known
			equivalent = []Cut{q.cut}
		}
		s.found = append(s.found, Hypothesis{C: float64(w), Level: l.level, LevelIndex: l.index, Axes: []int{a, b},
			Cuts: [][]Cut{cuts, equivalent}})
	}
}

// threeCuts finds laws with cuts along three axes, among known extents.
func (s *searcher) threeCuts(l leveling) {
	want := make([]int64, len(s.rows))
	for _, third := range s.quotients(l, 2) {
		s.candidates(l, 1, third.rest, func(second Cut, rest []int64) {
			if s.full() {
				return
			}
			var common int64
			for _, x := range rest {
				common = gcd(common, x)
			}
			for _, w := range units(common) {
				for n := range rest {
					want[n] = rest[n] / w
				}
				spots, ok := s.spots(l, 0, want)
				if !ok {
					return
				}
				if cuts := s.allowed(findCuts(l.level, spots)); len(cuts) > 0 {
					s.found = append(s.found,
						Hypothesis{C: float64(w), Level: l.level, LevelIndex: l.index, Axes: []int{0, 1, 2},
							Cuts: [][]Cut{cuts, {second}, {third.cut}}})
				}
			}
		})
	}
}

// mostFailures is the number of groups that are searched for multipartitions of any extent without success. After that
// only known extents are tried.
const mostFailures = 24

// mostCells is the largest extent of a multipartition that is tried when no extent is known.
const mostCells = 512

// partitions finds sums over the cells of a diagonal multipartition, of faces or edges.
func (s *searcher) partitions() bool {
	far := 0
	for n := range s.rows {
		r := &s.rows[n]
		if len(r.g) != 2 || r.g[0] != r.g[1] || r.v <= 0 {
			return false
		}
		if r.v != s.rows[0].v {
			far = n
		}
	}
	extents, before := s.extents, len(s.found)
	if extents == nil {
		if *s.budget == 0 {
			return false
		}
		defer func() {
			if len(s.found) == before {
				*s.budget--
			}
		}()
		for n := s.rows[0].g[0]; n <= mostCells; n++ {
			extents = append(extents, n)
		}
	}
	placements := s.placements(far)
	for _, n := range extents {
		for _, rounding := range []Rounding{RestFirst, RestLast} {
			for _, trim := range trims {
				s.faces(placements, Cut{Extent: n, Rounding: rounding, Trim: trim}, far)
			}
		}
	}
	return len(s.found) > before
}

// placement is the position of a rank's cells, and which of their faces are sent. For two rows it has the places of
// these cells along the two axes of the face.
type placement struct {
	partition     Partition
	a0, a1        int
	near, distant [][2]int64
	like          int // the first placement with the same places
}

// placements returns the placements to try, with the places in the first row and in row far.
func (s *searcher) placements(far int) (all []placement) {
	sent := []Partition{{Skip: TrimLast}, {Skip: TrimFirst}, {}}
	for i := range s.rows[0].index {
		sent = append(sent, Partition{Step: 1, StepIndex: i}, Partition{Step: -1, StepIndex: i})
	}
	first := map[string]int{}
	for normal := range 3 {
		for _, p := range sent {
			for turn := range 4 {
				p.Sign, p.Swap, p.Normal = 1-2*int64(turn%2), turn > 1, normal
				w := placement{partition: p, a0: (normal + 1) % 3, a1: (normal + 2) % 3}
				w.near, w.distant = w.places(&s.rows[0]), w.places(&s.rows[far])
				if len(w.near) > 0 && len(w.distant) > 0 {
					k := fmt.Sprint(w.near, w.distant)
					if _, known := first[k]; !known {
						first[k] = len(all)
					}
					w.like = first[k]
					all = append(all, w)
				}
			}
		}
	}
	return all
}

// places returns the places of the cells of a rank along the axes of the face, sorted.
func (w *placement) places(r *row) (all [][2]int64) {
	w.partition.cells(r, func(cell [3]int64) bool { all = append(all, [2]int64{cell[w.a0], cell[w.a1]}); return true })
	slices.SortFunc(all, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
	return all
}

// faces tries all halos of the cells' extents: a sum of products (b0+h0)(b1+h1) consists of four sums for all h.
func (s *searcher) faces(placements []placement, cut Cut, far int) {
	near, distant := &s.rows[0], &s.rows[far]
	s.near, s.distant = cut.extents(s.near[:0], near.g[0]), cut.extents(s.distant[:0], distant.g[0])
	b0, b1 := s.near, s.distant
	if len(s.fits) != len(placements) {
		s.fits = make([]bool, len(placements))
	}
	for i := range placements {
		w := &placements[i]
		if w.like < i && !s.fits[w.like] {
			continue
		}
		s.fits[i] = false
		m0, m1 := momentsOf(w.near, b0), momentsOf(w.distant, b1)
		// The coefficient is the same for both rows: first distant.v - second near.v is 0, and linear in the moments.
		var d moments
		for k := range d {
			d[k] = m0[k]*distant.v - m1[k]*near.v
		}
		for _, h0 := range usualHalos {
			least, more := d[0]+h0*d[2], d[1]+h0*d[3]
			if l, m := max(least, -least), max(more, -more); l > mostHalo*m {
				continue // no h1 makes it 0
			}
			for _, h1 := range usualHalos {
				if least+h1*more != 0 {
					continue
				}
				first := m0.with(h0, h1)
				if first <= 0 || near.v%first != 0 || s.full() {
					continue
				}
				s.fits[i] = true
				c0, c1 := cut, cut
				c0.Add, c1.Add = h0, h1
				where := w.partition
				h := Hypothesis{C: float64(near.v / first), Axes: []int{w.a0, w.a1}, Cuts: [][]Cut{{c0}, {c1}},
					Partition: &where}
				if s.holds(&h) {
					s.found = append(s.found, h)
				}
			}
		}
	}
}

// extents appends the extents of all g blocks.
func (c *Cut) extents(to []int64, g int64) []int64 {
	for x := range g {
		to = append(to, c.value(NoLevel, 0, g, x))
	}
	return to
}

// moments are the sums over cells of b0 b1, b0, b1 and 1.
type moments [4]int64

// momentsOf returns the moments of cells at places whose blocks have the extents b.
func momentsOf(places [][2]int64, b []int64) (m moments) {
	for _, p := range places {
		x, y := b[p[0]], b[p[1]]
		m[0], m[1], m[2], m[3] = m[0]+x*y, m[1]+x, m[2]+y, m[3]+1
	}
	return m
}

// with returns the sum of (b0+h0)(b1+h1).
func (m *moments) with(h0, h1 int64) int64 { return m[0] + h1*m[1] + h0*m[2] + h0*h1*m[3] }
