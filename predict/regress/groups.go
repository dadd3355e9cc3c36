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

// Options say how laws of groups are looked for. The zero value serves.
type Options struct {
	// MostExtent is the largest domain along an axis that is tried where two axes matter and no extent is known from other groups; 0: 512.
	MostExtent int64
}

// Law is what a group's value is at any place: exact laws, all that have every sample, or where there is none a curve against the number of
// ranks for each role (first, last or inner along each axis).
type Law struct {
	Name string
	// Laws have every sample, preferred first; empty: there is none.
	Laws []Hypothesis
	// Roles are the curves where no law is exact, by the role's name; "" is of all ranks.
	roles map[string]*role
	// ranks are the numbers of ranks that were seen, ascending.
	ranks []int64
	thin  bool // the laws have too little evidence to stand alone
	open  bool // there were more laws than are kept
	// rivals are simpler than the preferred law with cuts, but of extents that the program's other groups do not have. They say nothing of what is exact:
	// where the laws disagree they widen the interval.
	rivals []Hypothesis

	names    names
	textOnce sync.Once
	texts    []string
}

// role is what was seen of ranks at the same sides of the grid.
type role struct {
	Points []Point `json:"points"` // the least, middle and largest value of each number of ranks
	once   sync.Once
	fitted *Curve
	lock   sync.Mutex
	said   map[int64]Expected // by ranks
}

// at is the curve's prediction, made once for each number of ranks.
func (r *role) at(ranks int64) Expected {
	r.lock.Lock()
	defer r.lock.Unlock()
	e, ok := r.said[ranks]
	if !ok {
		p := r.curve().At(ranks)
		e = Expected{Value: p.Value, Low: p.Low, High: p.High, Form: p.Formula}
		if r.said == nil {
			r.said = map[int64]Expected{}
		}
		r.said[ranks] = e
	}
	return e
}

// curve is fitted when it is first asked for, as most groups have exact laws; nil where one number of ranks was seen.
func (r *role) curve() *Curve {
	r.once.Do(func() { r.fitted, _ = Fit(r.Points) })
	return r.fitted
}

// Expected is what a law says of one place.
type Expected struct {
	Value     float64
	Low, High float64 // where it is, of exact laws the least and most of all; infinite where nothing is known
	Exact     bool    // all laws that remain agree
	Form      string  // the law, for people
}

// FitGroups learns the law of each group, in their order. Extents that explain most groups are preferred for all: programs have one domain.
// The extents it settled on are returned, most used first.
func FitGroups(groups []Group, o Options) (laws []*Law, extents []int64, err error) {
	for i := range groups {
		if len(groups[i].Samples) == 0 {
			return nil, nil, fmt.Errorf("group %q has no samples", groups[i].Name)
		}
	}
	found := searchAll(groups, o)
	extents = settle(found)
	for i := range groups {
		l, err := newLaw(&groups[i], found[i], extents)
		if err != nil {
			return nil, nil, err
		}
		laws = append(laws, l)
	}
	return laws, extents, nil
}

// searchAll finds the exact laws of all groups: those of families together, where they have one, then of each group, easy ones first, so that what
// they say of extents helps the others.
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
		if rows, ok := rowsOf(all); ok && indexed(rows) {
			tasks = append(tasks, task{rows, keyOf(rows), members, true})
		}
	}
	for i := range groups {
		if rows, ok := rowsOf(groups[i].Samples); ok {
			tasks = append(tasks, task{rows, keyOf(rows), []int{i}, false})
		}
	}
	// The largest values first: these are of the domain's faces, and say its extents to the others.
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(mean(b.rows), mean(a.rows)) })
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(is(b.family), is(a.family)) })
	var known []int64
	budgets := map[bool]*int{true: new(int), false: new(int)} // of families and of groups
	*budgets[true], *budgets[false] = inVain/2, inVain
	for pass := range 3 {
		searched := map[asked]answer{} // sites of a program often send the same
		for _, t := range tasks {
			if done[t.members[0]] {
				continue
			}
			k, budget := asked{t.key, t.family, len(known)}, budgets[t.family]
			x, again := searched[k]
			if !again {
				s := newSearcher(t.rows)
				s.limit, s.budget = limit, budget
				had := *budget
				s.pass(pass, known)
				x = answer{s.found, had - *budget}
				searched[k] = x
			} else {
				*budget = max(0, *budget-x.spent)
			}
			if pass == 1 {
				for i := range x.found {
					known = withExtents(known, &x.found[i])
				}
			}
			if len(x.found) == 0 {
				continue
			}
			for _, i := range t.members {
				found[i], done[i] = x.found, true
			}
		}
		if pass == 0 {
			known = settle(found)
		}
	}
	return found
}

// task is samples of which a law is looked for: of a group, or of a family of groups together.
type task struct {
	rows    []row
	key     string // the same for the same rows
	members []int
	family  bool
}

// asked is what the laws that a pass finds hang on: rows, and how many extents are known, which only become more.
type asked struct {
	key    string
	family bool
	known  int
}

// answer is what a pass found, and what it took of the budget.
type answer struct {
	found []Hypothesis
	spent int
}

// keyOf tells rows apart.
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

// pass looks for laws: 0, those that need no search for extents; 1, others, with extents that are known, else all; 2, with those that are known by then.
func (s *searcher) pass(pass int, known []int64) {
	switch pass {
	case 0:
		s.easy()
	case 1:
		if s.extents = known; len(known) == 0 || !s.hard() {
			s.extents, s.found, s.divided = nil, nil, nil
			s.hard()
		}
	case 2:
		if s.extents = known; len(known) > 0 {
			s.hard()
		}
	}
}

func mean(rows []row) (m float64) {
	for _, r := range rows {
		m += float64(r.v) / float64(len(rows))
	}
	return m
}

// indexed reports whether rows differ in an index.
func indexed(rows []row) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return !slices.Equal(r.index, rows[0].index) })
}

// easy looks for laws that need no search for extents. What grows by a law of a few numbers is not also looked for among blocks.
func (s *searcher) easy() {
	if s.constant() || s.runs < 2 {
		return
	}
	s.scaled()
	if slices.ContainsFunc(s.found, func(h Hypothesis) bool { return len(h.Powers) == 0 }) {
		return // the number of ranks does not matter
	}
	s.affine()
	if len(s.rows[0].g) == 1 || slices.ContainsFunc(s.found, func(h Hypothesis) bool { return h.falls() }) || len(s.found) == 0 {
		if slices.ContainsFunc(s.rows, func(r row) bool { return r.v <= 0 }) {
			return
		}
		for _, l := range s.levelings() {
			for a := range s.rows[0].g {
				s.one(l, a)
			}
		}
		if len(s.found) > 0 && !slices.ContainsFunc(s.found, func(h Hypothesis) bool { return len(h.Axes) > 0 }) {
			s.hard() // C/(g0 g1) of extents that all divide: blocks say the same, until one does not
		}
	}
}

// falls reports whether a law has a grid's extent below the line.
func (h *Hypothesis) falls() bool {
	return slices.ContainsFunc(h.Powers, func(p int) bool { return p < 0 })
}

// hard looks for laws of several axes and of multipartitions.
func (s *searcher) hard() bool {
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
				s.two(l, b, a)
			}
		}
	}
	if len(s.found) == before && axes >= 3 && s.extents != nil {
		for _, l := range s.levelings() {
			s.three(l)
		}
	}
	return len(s.found) > before || s.partitions()
}

func withExtents(known []int64, h *Hypothesis) []int64 {
	for _, cuts := range h.Cuts {
		for _, c := range cuts {
			if !slices.Contains(known, c.Extent) {
				known = append(known, c.Extent)
			}
		}
	}
	return known
}

// settle finds few extents with which all groups that have cuts keep a law: again and again those which most of the groups left can have.
func settle(found [][]Hypothesis) (chosen []int64) {
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
						// The others of this law's axes have to be settled or the same.
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
		best := most(votes)
		if len(best) == 0 { // laws of two extents that nobody else has: the first of them
			for i := range found {
				if left[i] {
					for _, cuts := range first(found[i]).Cuts {
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
			if left[i] && slices.ContainsFunc(found[i], func(h Hypothesis) bool { return len(h.Cuts) > 0 && h.possible(-1, chosen) }) {
				delete(left, i)
			}
		}
	}
	return chosen
}

// first is the preferred law with cuts.
func first(hs []Hypothesis) *Hypothesis {
	for i := range hs {
		if len(hs[i].Cuts) > 0 {
			return &hs[i]
		}
	}
	return &Hypothesis{}
}

// possible reports whether all cuts but that of one axis can have extents that are among some; a cut of that axis has the last of them.
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

// most are the extents with most votes; nothing says which of several it is.
func most(votes map[int64]int) (best []int64) {
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

// newLaw keeps of a group's laws those that agree with the program's extents, and learns its curves.
func newLaw(g *Group, found []Hypothesis, extents []int64) (*Law, error) {
	l := &Law{Name: g.Name, roles: map[string]*role{}}
	for i := range g.Samples {
		s := &g.Samples[i]
		r, err := place(s.Ranks, s.Rank, s.Dims, s.Coords, s.Index)
		if err != nil {
			return nil, fmt.Errorf("group %q: %w", g.Name, err)
		}
		if s.Ranks < 1 {
			return nil, fmt.Errorf("group %q: a sample of %d ranks", g.Name, s.Ranks)
		}
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
	l.weigh()
	return l, nil
}

// weigh finds whether the laws have too little evidence: fewer different values than three, that are not all the same.
func (l *Law) weigh() {
	values := map[float64]bool{}
	for _, p := range l.roles[""].Points {
		values[p.Value] = true
	}
	l.thin = l.open || len(values) == 2 || len(l.ranks) < 2
}

// reduce leaves what curves are fitted to.
func (r *role) reduce() {
	slices.SortFunc(r.Points, func(a, b Point) int { return cmp.Or(cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Value, b.Value)) })
	r.Points = slices.Compact(r.Points)
	r.Points = r.ends()
}

// ends are the least, middle and largest value of each number of ranks: ranks that differ are no more evidence than that.
func (r *role) ends() (all []Point) {
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

// role is where along each axis a rank is.
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

// preferred leaves of each law the cuts with the program's extents, where it has such, and of all laws those that then have them; then of these
// such with a unit that is a multiple of 4, if there are any.
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
	if slices.ContainsFunc(with, func(h Hypothesis) bool { return odd(int64(h.C)) < 2 }) {
		with = slices.DeleteFunc(with, func(h Hypothesis) bool { return odd(int64(h.C)) == 2 })
	}
	slices.SortStableFunc(with, func(a, b Hypothesis) int {
		return cmp.Or(cmp.Compare(math.Round(100*a.length()), math.Round(100*b.length())), cmp.Compare(odd(int64(a.C)), odd(int64(b.C))), cmp.Compare(a.C, b.C))
	})
	// A law with blocks explains one without that falls: values are whole.
	if len(with) > 0 && slices.ContainsFunc(without, func(h Hypothesis) bool { return h.falls() }) {
		return append(with, without...)
	}
	return append(without, with...)
}

// simpler are the laws found, with those of their cuts, that take less than the first of the laws with cuts.
func simpler(found, laws []Hypothesis) (all []Hypothesis) {
	with := first(laws)
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
				one := h
				one.Cuts = slices.Clone(h.Cuts)
				if one.Cuts[a] = []Cut{c}; one.length() < limit {
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

// length is how many bits or so a law takes, smaller is preferred: what is added, what is trimmed, how extents are cut, and that extents and
// units are round numbers.
func (h *Hypothesis) length() float64 {
	n := roundness(int64(h.C)) + 2*float64(odd(int64(h.C)))
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

// haloBits is what it takes to say what is added to a block.
var haloBits = map[int64]float64{0: 0, 1: 2, 2: 2, -1: 3, -2: 3}

func (c *Cut) length() float64 {
	n := roundness(c.Extent) + haloBits[c.Add] + float64(slices.Index(roundings, c.Rounding))
	if c.Trim != NoTrim {
		n += 3
	}
	return n
}

// roundness is the bits of a number without the zeros at its end: 0 for powers of two.
func roundness(n int64) float64 {
	for n > 0 && n%2 == 0 {
		n /= 2
	}
	return math.Log2(math.Max(float64(n), 1))
}

// At is what the law says of a rank at a number of ranks, with the grid that it will have.
func (l *Law) At(ranks, rank int32, dims, coords, index []int32) (Expected, error) {
	r, err := place(ranks, rank, dims, coords, index)
	if err != nil {
		return Expected{}, err
	}
	e := Expected{Low: math.Inf(1), High: math.Inf(-1)}
	low, high := e.Low, e.High
	empty := false // a law of cells says that there are none, though some of its cuts have one: then the others are not certain
	for i := range l.Laws {
		s, ok := l.Laws[i].at(&r, &l.names)
		if !ok {
			if s, ok = l.Laws[i].anyCut(&r, &l.names); ok {
				empty = true
				low, high = math.Min(low, s.low), math.Max(high, s.high)
			}
			continue
		}
		if e.Form == "" {
			e.Value, e.Form = s.value, l.text(i)
		}
		e.Low, e.High = math.Min(e.Low, s.low), math.Max(e.High, s.high)
	}
	if empty && e.Low == e.High {
		e.Low, e.High = math.Min(e.Low, low), math.Max(e.High, high)
	}
	if e.Form != "" && (!l.thin || slices.Contains(l.ranks, r.ranks)) {
		e.Exact = e.Low == e.High && !empty
		l.widen(&e, &r)
		return e, nil
	}
	f := l.byRole(&r)
	if e.Form == "" {
		return f, nil
	}
	e.Low, e.High = math.Min(e.Low, f.Low), math.Max(e.High, f.High)
	e.Exact = e.Low == e.High && !empty
	l.widen(&e, &r)
	return e, nil
}

// widen makes the interval of what is not exact hold what simpler laws say.
func (l *Law) widen(e *Expected, r *row) {
	for i := range l.rivals {
		if s, ok := l.rivals[i].anyCut(r, &l.names); ok && !e.Exact {
			e.Low, e.High = math.Min(e.Low, s.low), math.Max(e.High, s.high)
		}
	}
}

// text is a law as people read it, made once.
func (l *Law) text(i int) string {
	l.textOnce.Do(func() {
		for k := range l.Laws {
			l.texts = append(l.texts, l.Laws[k].String())
		}
	})
	return l.texts[i]
}

// byRole is what the curve of a rank's role says, with what ranks of that role differed by; of all ranks where the role was not seen.
func (l *Law) byRole(r *row) Expected {
	to := l.roles[r.role()]
	if to == nil || to.curve() == nil && l.roles[""].curve() != nil {
		to = l.roles[""]
	}
	if to.curve() == nil {
		p := to.Points[len(to.Points)/2]
		return Expected{Value: p.Value, Low: math.Inf(-1), High: math.Inf(1), Form: fmt.Sprintf("%s, seen on %d ranks alone", number(p.Value), p.Ranks)}
	}
	return to.at(r.ranks)
}

// Exact reports whether the group has an exact law.
func (l *Law) Exact() bool { return len(l.Laws) > 0 }

// Resolve is the number of ranks of those proposed at which the exact laws differ most for the ranks of a grid, and what they then say; ok is false
// where they agree at all. grid gives the grid's extents at a number of ranks.
func (l *Law) Resolve(candidates []int32, grid func(ranks int32) (dims []int32, coords func(rank int32) []int32, ok bool), index []int32) (ranks int32, low, high float64, ok bool) {
	most := 0.0
	for _, p := range candidates {
		dims, coords, has := grid(p)
		if !has {
			continue
		}
		for rank := range p {
			e, err := l.At(p, rank, dims, coords(rank), index)
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

// String is the preferred law, and how many others there are; or the curve of all ranks.
func (l *Law) String() string {
	switch n := len(l.Laws); {
	case n == 1:
		return l.Laws[0].String()
	case n > 1:
		return fmt.Sprintf("%s {or %d other laws}", l.Laws[0].String(), n-1)
	}
	if c := l.roles[""].curve(); c != nil {
		return "about " + c.At(l.ranks[len(l.ranks)-1]).Formula
	}
	return fmt.Sprintf("seen on %d ranks alone", l.ranks[0])
}

// keptLaw is a law as JSON.
type keptLaw struct {
	Name string       `json:"name"`
	Laws []Hypothesis `json:"laws"`
	Open bool         `json:"open,omitempty"`
	// Rivals are those that widen intervals.
	Rivals []Hypothesis     `json:"rivals,omitempty"`
	Roles  map[string]*role `json:"roles"`
}

// MarshalJSON keeps the law: the hypotheses, and the points of the curves, which are fitted again.
func (l *Law) MarshalJSON() ([]byte, error) {
	return json.Marshal(keptLaw{l.Name, l.Laws, l.open, l.rivals, l.roles})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *Law) UnmarshalJSON(b []byte) error {
	var k keptLaw
	if err := json.Unmarshal(b, &k); err != nil {
		return err
	}
	if k.Roles[""] == nil || len(k.Roles[""].Points) == 0 {
		return errors.New("a law without points")
	}
	l.Name, l.Laws, l.open, l.rivals, l.roles, l.ranks = k.Name, k.Laws, k.Open, k.Rivals, k.Roles, nil
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
	l.ranks = slices.Compact(l.ranks)
	l.weigh()
	return nil
}
