package regress

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

// Options are the options of FitGroups. The zero value works.
type Options struct {
	// MostExtent is the largest extent of a domain that is tried if two axes matter and no extent is known from other
	// groups; 0 means 512.
	MostExtent int64
}

// Law is the value of a group as a function of the place: all exact laws that reproduce every sample, or, if there are
// none, a curve over the number of ranks for each role (first, last or inner along each axis).
type Law struct {
	Name string
	// Laws are the exact laws, preferred ones first. It is empty when there is none.
	Laws []Hypothesis
	// roles are the curves by the role's name; "" is all ranks.
	roles map[string]*role
	// ranks are the training rank counts, ascending.
	ranks []int64
	// domain is the set of possible values.
	domain domain
	thin   bool // the laws have too little evidence, see weigh: intervals include the curves
	lonely bool // the preferred law has borders that make up for wrong extents: intervals include the curves
	// ofFewNumbers means that the laws may be laws of another division: see isOfFewNumbers. Intervals include the
	// curves.
	ofFewNumbers bool
	open         bool // there were more than mostKept laws
	onLine       bool // the samples have no grid, or one with a single axis
	along        bool // the numbers are of messages along an axis of the grid
	// few are the numbers of blocks into which the runs divide the extent of a cut of the preferred law, by the
	// number of the cut, if these give fewer lengths than enoughDivisions: a law of blocks is not exact for others.
	few map[int][]int64
	// rivals are simpler than the preferred law with cuts, but have extents that other groups of the program do not
	// have. They do not make a prediction inexact, but widen the interval if the laws disagree.
	rivals []Hypothesis
	// lengths are the values by the extents of axes, if these determine them.
	lengths []lengths

	names    names
	sides    sync.Map // what sidesOf returns, by rank count
	textOnce sync.Once
	texts    []string
}

// role is the samples of ranks at the same sides of the grid.
type role struct {
	Points      []Point `json:"points"` // the least, middle and largest value at each rank count
	fit         sync.Once
	fitted      *Curve
	lock        sync.Mutex
	predictions map[int64]Expected // by rank count
}

// predict returns the curve's prediction at a rank count, which is computed once.
func (r *role) predict(ranks int64) Expected {
	r.lock.Lock()
	defer r.lock.Unlock()
	e, ok := r.predictions[ranks]
	if !ok {
		p := r.curve().Predict(ranks)
		e = Expected{Value: p.Value, Low: p.Low, High: p.High, Form: p.Formula}
		if p.Exact { // there is no exact law for the group, so that of a curve through few of its values proves nothing
			forms := r.curve().byForms(ranks)
			e.Low, e.High = math.Min(e.Low, forms.Low), math.Max(e.High, forms.High)
		}
		if r.predictions == nil {
			r.predictions = map[int64]Expected{}
		}
		r.predictions[ranks] = e
	}
	return e
}

// curve returns the curve, or nil if there is only one rank count. It is fitted on first use, because most groups
// have exact laws and need none.
func (r *role) curve() *Curve {
	r.fit.Do(func() { r.fitted, _ = Fit(r.Points) })
	return r.fitted
}

// Expected is the prediction of a law at one place.
type Expected struct {
	Value     float64
	Low, High float64 // interval; of exact laws their least and largest value; infinite when nothing is known
	Exact     bool    // all exact laws agree
	Form      string  // the law as text
}

// FitGroups learns the law of each group, in their order. A program has one domain, so extents that explain most groups
// are preferred for all. It returns the chosen extents, the most used first.
func FitGroups(groups []Group, o Options) (laws []*Law, extents []int64, err error) {
	for i := range groups {
		if len(groups[i].Samples) == 0 {
			return nil, nil, fmt.Errorf("group %q has no samples", groups[i].Name)
		}
	}
	found := searchAll(groups, o)
	extents = chooseExtents(found)
	for i := range groups {
		l, err := newLaw(&groups[i], found[i], extents)
		if err != nil {
			return nil, nil, err
		}
		l.domain = domainOf(&groups[i])
		laws = append(laws, l)
	}
	weighAll(laws)
	countDivisions(groups, laws)
	markAxesThatMatter(groups, laws)
	markMergedAxes(groups, laws)
	return laws, extents, nil
}

// searchAll finds the exact laws of all groups: first of whole families, then of each group. Groups that need no search
// for extents come first, as their extents help with the others.
func searchAll(groups []Group, o Options) [][]Hypothesis {
	limit := cmp.Or(o.MostExtent, 512)
	found := make([][]Hypothesis, len(groups))
	done := make([]bool, len(groups))
	families := map[string][]int{}
	var names []string
	for i := range groups {
		if f := groups[i].Family; f != "" {
			if families[f] == nil {
				names = append(names, f)
			}
			families[f] = append(families[f], i)
		}
	}
	var tasks []task
	for _, name := range names {
		members := families[name]
		if len(members) < 2 {
			continue
		}
		var all []Sample
		for _, i := range members {
			all = append(all, groups[i].Samples...)
		}
		if rows, ok := groups[members[0]].rows(all); ok && indexed(rows) {
			tasks = append(tasks, task{rows, keyOf(rows), members, true, groups[members[0]].Unit})
		}
	}
	for i := range groups {
		if rows, ok := groups[i].rows(groups[i].Samples); ok {
			tasks = append(tasks, task{rows, keyOf(rows), []int{i}, false, groups[i].Unit})
		}
	}
	// The largest values first: they are faces of the domain, whose extents help with the others.
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(mean(b.rows), mean(a.rows)) })
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(indicator(b.family), indicator(a.family)) })
	var known []int64
	budgets := map[bool]*int{true: new(int), false: new(int)} // of families and of groups
	*budgets[true], *budgets[false] = mostFailures/2, mostFailures
	for pass := range 3 {
		searched := map[searchKey]searchResult{} // many sites of a program have the same samples
		for _, t := range tasks {
			if done[t.members[0]] {
				continue
			}
			k, budget := searchKey{t.key, t.family, len(known)}, budgets[t.family]
			x, again := searched[k]
			if !again {
				s := newSearcher(t.rows)
				s.limit, s.budget = limit, budget
				before := *budget
				s.search(pass, known)
				x = searchResult{s.found, before - *budget}
				searched[k] = x
			} else {
				*budget = max(0, *budget-x.spent)
			}
			if pass == 1 {
				for i := range x.found {
					known = addExtents(known, &x.found[i])
				}
			}
			if len(x.found) == 0 {
				continue
			}
			for _, i := range t.members {
				found[i], done[i] = inBytes(x.found, t.unit), true
			}
		}
		if pass == 0 {
			known = chooseExtents(found)
		}
	}
	return found
}

// task is the input of one search: the samples of a group, or of a family of groups.
type task struct {
	rows    []row
	key     string // is equal for equal rows
	members []int
	family  bool
	unit    int64 // bytes of an element
}

// inBytes converts laws in elements to laws in bytes.
func inBytes(counts []Hypothesis, unit int64) []Hypothesis {
	if unit <= 1 {
		return counts
	}
	sizes := slices.Clone(counts)
	for i := range sizes {
		sizes[i].C *= float64(unit)
		sizes[i].Sum = slices.Clone(sizes[i].Sum)
		for k := range sizes[i].Sum {
			sizes[i].Sum[k].C *= float64(unit)
		}
	}
	return sizes
}

// searchKey identifies a search in a pass: its rows, and the number of known extents, which only grows.
type searchKey struct {
	key    string
	family bool
	known  int
}

// searchResult is the laws found, and the part of the budget that was spent.
type searchResult struct {
	found []Hypothesis
	spent int
}

// keyOf encodes rows as a map key.
func keyOf(rows []row) string {
	var key []byte
	for i := range rows {
		r := &rows[i]
		key = binary.AppendVarint(binary.AppendVarint(key, r.ranks), r.v)
		for _, xs := range [][]int64{r.g, r.x, r.index} {
			key = binary.AppendUvarint(key, uint64(len(xs)))
			for _, x := range xs {
				key = binary.AppendVarint(key, x)
			}
		}
	}
	return string(key)
}

// search finds laws. Pass 0 finds those that need no search for extents, pass 1 others with known extents or else all
// extents, and pass 2 those with the extents that are known after pass 1.
func (s *searcher) search(pass int, known []int64) {
	switch pass {
	case 0:
		s.withoutExtents()
	case 1:
		if s.extents = known; len(known) == 0 || !s.withExtents() {
			s.extents, s.found, s.divided = nil, nil, nil
			s.withExtents()
		}
	case 2:
		if s.extents = known; len(known) > 0 {
			s.withExtents()
		}
	}
}

// mean returns the mean value.
func mean(rows []row) (m float64) {
	for _, r := range rows {
		m += float64(r.v) / float64(len(rows))
	}
	return m
}

// indexed reports whether the rows differ in an index.
func indexed(rows []row) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return !slices.Equal(r.index, rows[0].index) })
}

// withoutExtents finds laws that need no search for extents. If a law with few numbers fits and grows, blocks are not
// tried.
func (s *searcher) withoutExtents() {
	if s.constant() || s.runs < 2 {
		return
	}
	s.scaled()
	if slices.ContainsFunc(s.found, func(h Hypothesis) bool { return len(h.Powers) == 0 }) {
		return // the number of ranks does not matter
	}
	s.affine()
	if len(s.rows[0].g) == 1 || slices.ContainsFunc(s.found, func(h Hypothesis) bool { return h.falls() }) ||
		len(s.found) == 0 {
		if slices.ContainsFunc(s.rows, func(r row) bool { return r.v <= 0 }) {
			return
		}
		for _, l := range s.levelings() {
			for a := range s.rows[0].g {
				s.oneCut(l, a)
			}
		}
		if len(s.found) > 0 && !slices.ContainsFunc(s.found, func(h Hypothesis) bool { return len(h.Axes) > 0 }) {
			s.withExtents() // C/(g0 g1): blocks are equal to that as long as all extents are divisible
		}
	}
}

// falls reports whether a law has a grid's extent in the denominator.
func (h *Hypothesis) falls() bool {
	return slices.ContainsFunc(h.Powers, func(p int) bool { return p < 0 })
}

// withExtents finds laws with cuts along several axes and of multipartitions. It reports whether there are any.
func (s *searcher) withExtents() bool {
	if s.runs < 2 {
		return false
	}
	before := len(s.found)
	if slices.ContainsFunc(s.rows, func(r row) bool { return r.v <= 0 }) {
		return false
	}
	axes := len(s.rows[0].g)
	for a := 0; a < axes; a++ {
		for b := range a {
			for _, l := range s.levelings() {
				s.twoCuts(l, b, a)
			}
		}
	}
	if len(s.found) == before && axes >= 3 && s.extents != nil {
		for _, l := range s.levelings() {
			s.threeCuts(l)
		}
	}
	return len(s.found) > before || s.partitions()
}

// addExtents adds the extents of a law to the known ones.
func addExtents(known []int64, h *Hypothesis) []int64 {
	for _, cuts := range h.Cuts {
		for _, c := range cuts {
			if !slices.Contains(known, c.Extent) {
				known = append(known, c.Extent)
			}
		}
	}
	return known
}

// chooseExtents chooses few extents with which all groups that have cuts keep a law: repeatedly those that most of the
// remaining groups can have.
func chooseExtents(found [][]Hypothesis) (chosen []int64) {
	left := map[int]bool{}
	for i, hs := range found {
		if slices.ContainsFunc(hs, func(h Hypothesis) bool { return len(h.Cuts) > 0 }) {
			left[i] = true
		}
	}
	for len(left) > 0 {
		votes := map[int64]int{}
		for i := range found {
			if !left[i] {
				continue
			}
			mine := map[int64]bool{}
			for k := range found[i] {
				h := &found[i][k]
				for a, cuts := range h.Cuts {
					for _, c := range cuts {
						// The extents along the other axes of this law have to be chosen already, or the same.
						if !mine[c.Extent] && h.possible(a, append(slices.Clone(chosen), c.Extent)) {
							mine[c.Extent] = true
						}
					}
				}
			}
			for n := range mine {
				votes[n]++
			}
		}
		best := mostVotes(votes)
		if len(best) == 0 { // only laws with two extents that no other group has: take the first
			for i := range found {
				if left[i] {
					for _, cuts := range firstWithCuts(found[i]).Cuts {
						if n := cuts[0].Extent; !slices.Contains(chosen, n) {
							chosen = append(chosen, n)
						}
					}
					break
				}
			}
		} else {
			chosen = append(chosen, best...)
		}

		for i := range found {
			if left[i] && slices.ContainsFunc(found[i],
				func(h Hypothesis) bool { return len(h.Cuts) > 0 && h.possible(-1, chosen) }) {
				delete(left, i)
			}
		}
	}
	return chosen
}

// firstWithCuts returns the preferred law with cuts, or an empty law.
func firstWithCuts(hs []Hypothesis) *Hypothesis {
	for i := range hs {
		if len(hs[i].Cuts) > 0 {
			return &hs[i]
		}
	}
	return &Hypothesis{}
}

// possible reports whether the cuts along all axes but one can have extents among those given.
func (h *Hypothesis) possible(axis int, extents []int64) bool {
	for a, cuts := range h.Cuts {
		if a == axis {
			continue
		}
		if !slices.ContainsFunc(cuts, func(c Cut) bool { return slices.Contains(extents, c.Extent) }) {
			return false
		}
	}
	return true
}

// mostVotes returns the extents with most votes.
func mostVotes(votes map[int64]int) (best []int64) {
	least := 1
	for _, v := range votes {
		least = max(least, v)
	}
	for n, v := range votes {
		if v == least {
			best = append(best, n)
		}
	}
	slices.Sort(best)
	return best
}

// newLaw keeps those laws of a group that have the program's extents, and collects the points of its curves.
func newLaw(g *Group, found []Hypothesis, extents []int64) (*Law, error) {
	l := &Law{Name: g.Name, roles: map[string]*role{}, along: g.Along > 0}
	var rows []row
	for i := range g.Samples {
		s := &g.Samples[i]
		r, err := newPlace(s.Ranks, s.Rank, s.Dims, s.Coords, s.Index)
		if err != nil {
			return nil, fmt.Errorf("group %q: %w", g.Name, err)
		}
		if s.Ranks < 1 {
			return nil, fmt.Errorf("group %q: a sample has %d ranks; want at least 1", g.Name, s.Ranks)
		}
		l.onLine = len(r.g) == 1
		r.v = s.Value
		rows = append(rows, r)
		p := Point{int64(s.Ranks), float64(s.Value)}
		names := []string{"", r.role()}
		for _, name := range names {
			if l.roles[name] == nil {
				l.roles[name] = &role{}
			}
			l.roles[name].Points = append(l.roles[name].Points, p)
		}
		l.ranks = append(l.ranks, p.Ranks)
	}
	slices.Sort(l.ranks)
	l.ranks = slices.Compact(l.ranks)
	for _, r := range l.roles {
		r.reduce()
	}
	l.Laws, l.open = preferred(found, extents), len(found) >= mostKept
	l.rivals = simpler(found, l.Laws)
	if len(l.Laws) > 0 {
		l.Laws = append(l.Laws, l.Laws[0].divided(rows)...)
	}
	if len(l.Laws) == 0 {
		l.lengths = lengthsOf(rows)
	}
	return l, nil
}

// reduce drops all points but those to which curves are fitted.
func (r *role) reduce() {
	slices.SortFunc(r.Points, func(a, b Point) int { return cmp.Or(cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Value, b.Value)) })
	r.Points = slices.Compact(r.Points)
	r.Points = r.extremes()
}

// extremes returns the least, middle and largest value at each rank count: further ranks are no further evidence.
func (r *role) extremes() (all []Point) {
	for i := 0; i < len(r.Points); {
		j := i
		for j < len(r.Points) && r.Points[j].Ranks == r.Points[i].Ranks {
			j++
		}
		all = append(all, r.Points[i])
		if j-i > 2 {
			all = append(all, r.Points[(i+j)/2])
		}
		if j-i > 1 {
			all = append(all, r.Points[j-1])
		}
		i = j
	}
	return all
}

// role describes where along each axis a rank is: first, last, inner, or the only one.
func (r *row) role() string {
	var b strings.Builder
	for a := range r.g {
		switch {
		case r.g[a] == 1:
			b.WriteByte('1')
		case r.x[a] == 0:
			b.WriteByte('f')
		case r.x[a] == r.g[a]-1:
			b.WriteByte('l')
		default:
			b.WriteByte('i')
		}
	}
	for _, i := range r.index {
		fmt.Fprintf(&b, ",%d", i)
	}
	return b.String()
}

// preferred returns the laws with only those cuts that have the program's extents, and drops laws without such cuts.
// If the coefficient of some laws is a multiple of 4, it drops those whose coefficient is not.
func preferred(found []Hypothesis, extents []int64) []Hypothesis {
	var with, without []Hypothesis
	for _, h := range found {
		if len(h.Cuts) == 0 {
			without = append(without, h)
			continue
		}
		kept, ok := h, true
		kept.Cuts = nil
		for _, cuts := range h.Cuts {
			var mine []Cut
			for _, c := range cuts {
				if slices.Contains(extents, c.Extent) {
					mine = append(mine, c)
				}
			}
			slices.SortStableFunc(mine, func(a, b Cut) int { return cmp.Compare(a.length(), b.length()) })
			ok = ok && len(mine) > 0
			kept.Cuts = append(kept.Cuts, mine)
		}
		if ok {
			with = append(with, kept)
		}
	}
	if slices.ContainsFunc(with, func(h Hypothesis) bool { return oddness(int64(h.C)) < 2 }) {
		with = slices.DeleteFunc(with, func(h Hypothesis) bool { return oddness(int64(h.C)) == 2 })
	}
	slices.SortStableFunc(with, func(a, b Hypothesis) int {
		return cmp.Or(cmp.Compare(math.Round(100*a.length()), math.Round(100*b.length())),
			cmp.Compare(oddness(int64(a.C)), oddness(int64(b.C))), cmp.Compare(a.C, b.C))
	})
	// A law with blocks explains a falling law without them, as values are integers.
	if len(with) > 0 && slices.ContainsFunc(without, func(h Hypothesis) bool { return h.falls() }) {
		return append(with, without...)
	}
	return append(without, with...)
}

// simpler returns the laws, with only those cuts, whose description is shorter than that of the preferred law with
// cuts.
func simpler(found, laws []Hypothesis) (all []Hypothesis) {
	with := firstWithCuts(laws)
	if len(with.Cuts) == 0 {
		return nil
	}
	limit := with.length()
	for _, h := range found {
		kept := h
		kept.Cuts = nil
		for a, cuts := range h.Cuts {
			var mine []Cut
			for _, c := range cuts {
				single := h
				single.Cuts = slices.Clone(h.Cuts)
				if single.Cuts[a] = []Cut{c}; single.length() < limit {
					mine = append(mine, c)
				}
			}
			if len(mine) > 0 {
				kept.Cuts = append(kept.Cuts, mine)
			}
		}
		if len(kept.Cuts) == len(h.Cuts) && len(h.Cuts) > 0 {
			all = append(all, kept)
		}
	}
	return all
}

// length returns the description length of a law, about in bits: halos, trims, roundings, and how round its extents
// and coefficient are. Shorter laws are preferred.
func (h *Hypothesis) length() float64 {
	n := roundness(int64(h.C)) + 2*float64(oddness(int64(h.C)))
	for _, cuts := range h.Cuts {
		n += cuts[0].length()
	}
	if h.Level != NoLevel {
		n++
	}
	if len(h.Cuts) == 2 && h.Cuts[0][0].Extent == h.Cuts[1][0].Extent {
		n -= roundness(h.Cuts[0][0].Extent)
	}
	return n
}

// haloBits is the description length of a halo.
var haloBits = map[int64]float64{0: 0, 1: 2, 2: 2, -1: 3, -2: 3, 4: 5, 5: 5, 3: 5, 6: 6}

func (c *Cut) length() float64 {
	n := roundness(c.Extent) + haloBits[c.Add] + float64(slices.Index(roundings, c.Rounding))
	if c.Trim != NoTrim {
		n += 3
	}
	return n
}

// roundness returns the number of bits of a number without its trailing zero bits: 0 for powers of two.
func roundness(n int64) float64 {
	for n > 0 && n%2 == 0 {
		n /= 2
	}
	return math.Log2(math.Max(float64(n), 1))
}

// Predict returns the prediction for a rank at a rank count, on the grid that it has there. Value, Low and High are
// whole numbers of elements, and not negative if no sample was. It is an error if dims and coords have different
// lengths.
func (l *Law) Predict(ranks, rank int32, dims, coords, index []int32) (Expected, error) {
	r, err := newPlace(ranks, rank, dims, coords, index)
	if err != nil {
		return Expected{}, err
	}
	e, known := l.byLaws(&r)
	if known && (!l.thin && !l.lonely && !l.ofFewNumbers && !l.isNewDivision(&r) || slices.Contains(l.ranks, r.ranks)) {
		l.widen(&e, &r)
		return l.domain.settle(e, &r), nil
	}
	f := l.byRole(&r)
	if !known {
		if i := slices.IndexFunc(l.Laws, func(h Hypothesis) bool { return h.isUsedUpAt(&r) }); i >= 0 {
			f.Value, f.Low, f.Form = 0, math.Min(f.Low, 0), l.text(i)
		}
		return l.domain.settle(f, &r), nil
	}
	if e.Low, e.High = math.Min(e.Low, f.Low), math.Max(e.High, f.High); e.Low != e.High || l.isNewDivision(&r) {
		e.Exact = false
	} else if l.lonely {
		e.Low, e.High, e.Exact = e.Low-l.domain.unit(), e.High+l.domain.unit(), false
	}
	l.widen(&e, &r)
	return l.domain.settle(e, &r), nil
}

// byLaws returns the value of the preferred exact law that has one at a place, bounded by all of them; false if none
// has. It is exact if all laws agree. A law whose value cannot be one (a fraction of an element, a negative size)
// does not hold at the place: the program rounds somehow, so the value around it bounds the interval, and nothing is
// exact.
func (l *Law) byLaws(r *row) (e Expected, known bool) {
	e = Expected{Low: math.Inf(1), High: math.Inf(-1)}
	low, high := e.Low, e.High
	empty := false // the preferred cut of a law has no cells here, but others have
	doubtful := false
	enough := slices.ContainsFunc(l.Laws, func(h Hypothesis) bool { return h.hasCells(r) })
	for i := range l.Laws {
		if enough && !l.Laws[i].hasCells(r) {
			continue
		}
		s, ok := l.Laws[i].value(r, &l.names)
		if !ok {
			if s, ok = l.Laws[i].valueOfAnyCut(r, &l.names); ok {
				low, high = math.Min(low, s.low), math.Max(high, s.high)
			}
			empty = empty || ok || l.Laws[i].isEmptyAt(r)
			continue
		}
		if !l.domain.has(s.value) {
			doubtful = true
			s.low, s.high = l.domain.outward(s.low, s.high)
		}
		if e.Form == "" {
			e.Value, e.Form = s.value, l.text(i)
		}
		e.Low, e.High = math.Min(e.Low, s.low), math.Max(e.High, s.high)
	}
	if empty {
		if e.Low == e.High && low <= high {
			e.Low, e.High = math.Min(e.Low, low), math.Max(e.High, high)
		}
		e.Low = math.Min(e.Low, 0) // a rank without cells sends nothing, or a message without data
	}
	if !enough && e.Form != "" && slices.ContainsFunc(l.Laws, func(h Hypothesis) bool { return len(h.Cuts) > 0 }) {
		e.Low, doubtful = math.Min(e.Low, 0), true // there are more ranks than cells
	}
	e.Exact = e.Low == e.High && !empty && !doubtful
	if e.Form != "" && !slices.Contains(l.ranks, r.ranks) {
		l.boundRemainders(&e, r)
		l.boundShares(&e)
		l.boundSides(&e, r)
		l.boundSquares(&e, r)
	}
	return e, e.Form != ""
}

// widen extends an interval to the values of rivals. Where one differs nothing is exact: it describes the samples in
// fewer words than the preferred law, which is preferred only because its extents are those of other groups.
func (l *Law) widen(e *Expected, r *row) {
	for i := range l.rivals {
		if s, ok := l.rivals[i].valueOfAnyCut(r, &l.names); ok {
			e.Low, e.High = math.Min(e.Low, s.low), math.Max(e.High, s.high)
			e.Exact = e.Exact && e.Low == e.High
		}
	}
}

// text returns the text of law i.
func (l *Law) text(i int) string {
	l.textOnce.Do(func() {
		for k := range l.Laws {
			l.texts = append(l.texts, l.Laws[k].String())
		}
	})
	return l.texts[i]
}

// byRole predicts by the curve of the rank's role, or by that of all ranks when the role does not occur in the samples.
// The interval has room for ranks that differ as much as those of one run did, and for one element more or less.
func (l *Law) byRole(r *row) Expected {
	to := l.roles[r.role()]
	if to == nil || to.curve() == nil && l.roles[""].curve() != nil {
		to = l.roles[""]
	}
	if to.curve() == nil {
		p := to.Points[len(to.Points)/2]
		return Expected{Value: p.Value, Low: math.Inf(-1), High: math.Inf(1),
			Form: fmt.Sprintf("%s, seen at %d ranks only", number(p.Value), p.Ranks)}
	}
	e := to.predict(r.ranks)
	less, more := to.spread()
	e.Low = math.Min(e.Low, e.Value*less) - l.domain.unit()
	e.High = math.Max(e.High, e.Value*more) + l.domain.unit()
	if all := l.roles[""]; to.runs() <= fewRuns && all.runs() > to.runs() {
		// Two numbers follow a curve whatever they are: those of all ranks show how far they scatter.
		other := all.predict(r.ranks)
		e.Low, e.High = math.Min(e.Low, other.Low), math.Max(e.High, other.High)
	}
	l.byLength(&e, r)
	return e
}

// fewRuns is the number of runs that show nothing of how values scatter around a curve.
const fewRuns = 2

// runs returns on how many numbers of ranks the role occurs.
func (r *role) runs() (n int) {
	for i, p := range r.Points {
		if i == 0 || p.Ranks != r.Points[i-1].Ranks {
			n++
		}
	}
	return n
}

// spread returns the least and the largest ratio of a value to the middle one of its run.
func (r *role) spread() (least, most float64) {
	least, most = 1, 1
	for i := 0; i < len(r.Points); {
		j := i
		for j < len(r.Points) && r.Points[j].Ranks == r.Points[i].Ranks {
			j++
		}
		if middle := r.Points[(i+j)/2].Value; middle > 0 {
			least, most = math.Min(least, r.Points[i].Value/middle), math.Max(most, r.Points[j-1].Value/middle)
		}
		i = j
	}
	return math.Max(least, 0), most
}

// DependsOnPlace reports whether the preferred law gives ranks of one run different values.
func (l *Law) DependsOnPlace() bool {
	if len(l.Laws) == 0 {
		return false
	}
	h := &l.Laws[0]
	return len(h.Cuts) > 0 || h.Partition != nil ||
		slices.ContainsFunc(h.Sum, func(s Summand) bool { return strings.Contains(s.Variable, "x") })
}

// Axes returns the axes of the grid on which the exact laws depend; false if that is not known.
func (l *Law) Axes() (axes []int, known bool) {
	for i := range l.Laws {
		h := &l.Laws[i]
		if len(h.Sum) > 0 || h.Factor != "" || h.Partition != nil {
			return nil, false
		}
		axes = append(axes, h.Axes...)
		for a, p := range h.Powers {
			if p != 0 {
				axes = append(axes, a)
			}
		}
	}
	slices.Sort(axes)
	return slices.Compact(axes), true
}

// IsSupported reports whether the group has an exact law with enough evidence, although it may be one of few numbers.
func (l *Law) IsSupported() bool { return len(l.Laws) > 0 && !l.thin }

// Exact reports whether the group has an exact law.
func (l *Law) Exact() bool { return len(l.Laws) > 0 }

// Resolve returns that rank count of the candidates at which the exact laws differ most, and their least and largest
// value there. ok is false when they agree at all candidates. grid returns the grid at a rank count.
func (l *Law) Resolve(candidates []int32, grid func(ranks int32) (dims []int32, coords func(rank int32) []int32, ok bool), index []int32) (ranks int32, low, high float64, ok bool) {
	most := 0.0
	for _, p := range candidates {
		dims, coords, has := grid(p)
		if !has {
			continue
		}
		for rank := range p {
			e, err := l.Predict(p, rank, dims, coords(rank), index)
			if err != nil || e.Value == 0 || math.IsInf(e.High-e.Low, 0) {
				continue
			}
			if d := (e.High - e.Low) / math.Abs(e.Value); d > most {
				most, ranks, low, high, ok = d, p, e.Low, e.High, true
			}
		}
	}
	return ranks, low, high, ok
}

// String returns the text of the law at the largest rank count of the runs.
func (l *Law) String() string { return l.TextAt(l.ranks[len(l.ranks)-1]) }

// TextAt returns the preferred law and the number of others. Without one it returns the curve that gives the numbers at
// a rank count, unless they differ in a run: no formula of the rank count gives these.
func (l *Law) TextAt(ranks int64) string {
	switch n := len(l.Laws); {
	case n == 1:
		return l.Laws[0].String()
	case n > 1:
		return fmt.Sprintf("%s {or %d other laws}", l.Laws[0].String(), n-1)
	}
	all := l.roles[""]
	switch {
	case all.curve() == nil:
		return fmt.Sprintf("seen at %d ranks only", l.ranks[0])
	case len(all.Points) > all.runs():
		return "no exact law, and calls of one run differ"
	}
	return "about " + all.curve().Predict(ranks).Formula
}

// storedLaw is a law as JSON.
type storedLaw struct {
	Name string       `json:"name"`
	Laws []Hypothesis `json:"laws"`
	Open bool         `json:"open,omitempty"`
	// Few are the numbers of blocks of the cuts of the preferred law that the runs make in few ways.
	Few map[int][]int64 `json:"few,omitempty"`
	// Rivals are the laws that widen intervals.
	Rivals []Hypothesis `json:"rivals,omitempty"`
	Domain domain       `json:"domain"`
	Thin   bool         `json:"thin,omitempty"`
	Lonely bool         `json:"lonely,omitempty"`
	// OfFewNumbers means that the laws may be laws of another division.
	OfFewNumbers bool `json:"of_few_numbers,omitempty"`
	// OnLine and Along tell whether the samples have a grid, and whether messages go along one of its axes.
	OnLine  bool             `json:"on_line,omitempty"`
	Along   bool             `json:"along,omitempty"`
	Lengths []lengths        `json:"lengths,omitempty"`
	Roles   map[string]*role `json:"roles"`
}

// MarshalJSON stores the hypotheses, and the points of the curves, which are fitted again when they are needed.
func (l *Law) MarshalJSON() ([]byte, error) {
	return json.Marshal(storedLaw{l.Name, l.Laws, l.open, l.few, l.rivals, l.domain, l.thin, l.lonely, l.ofFewNumbers, l.onLine,
		l.along, l.lengths, l.roles})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (l *Law) UnmarshalJSON(b []byte) error {
	var k storedLaw
	if err := json.Unmarshal(b, &k); err != nil {
		return err
	}
	if k.Roles[""] == nil || len(k.Roles[""].Points) == 0 {
		return errors.New("a law without points")
	}
	l.Name, l.Laws, l.open, l.rivals, l.domain, l.roles, l.ranks = k.Name, k.Laws, k.Open, k.Rivals, k.Domain, k.Roles, nil
	for name, r := range l.roles {
		if r == nil || len(r.Points) == 0 {
			return fmt.Errorf("a law without points for %q", name)
		}
		r.reduce()
	}
	for _, h := range slices.Concat(l.Laws, l.rivals) {
		if len(h.Cuts) != len(h.Axes) || slices.ContainsFunc(h.Cuts, func(c []Cut) bool { return len(c) == 0 }) {
			return errors.New("a law whose axes and cuts do not match")
		}
	}
	for _, p := range l.roles[""].Points {
		l.ranks = append(l.ranks, p.Ranks)
	}
	slices.Sort(l.ranks)
	l.ranks, l.thin, l.lonely, l.ofFewNumbers, l.few = slices.Compact(l.ranks), k.Thin, k.Lonely, k.OfFewNumbers, k.Few
	l.onLine, l.along, l.lengths = k.OnLine, k.Along, k.Lengths
	return checkLengths(l.lengths)
}
