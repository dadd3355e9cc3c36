package predict

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"strings"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/regress"
)

// sample is a number that a rank of a run has somewhere.
type sample struct {
	at    point
	value int64
}

// point is where a number is asked for.
type point struct {
	ranks, rank int32
	peerRank    int32   // the other side; negative: none
	index       []int32 // iterations of loops
	root        bool    // the rank is the collective's root
}

// said is what a law says of a point.
type said struct {
	value, low, high int64
	exact            bool
}

func exactly(v int64) said { return said{v, v, v, true} }

// valueLaw says a number for any point. One of its parts is not nil, or there is no number.
type valueLaw struct {
	// Constant is a number that is everywhere the same.
	Constant *int64 `json:"constant,omitempty"`
	// Root and Others are the laws of roots of collectives and of the other ranks.
	Root   *valueLaw `json:"root,omitempty"`
	Others *valueLaw `json:"others,omitempty"`
	// Sums are all sums of small multiples of features that have all samples and are about as simple, the simplest first.
	Sums []sum `json:"sums,omitempty"`
	// Group is a law of package regress.
	Group *groupLaw `json:"group,omitempty"`
	// Places are laws of each place in the loops, where there is no law of all.
	Places []placeLaw `json:"places,omitempty"`
	// Keep are the components of the index that Places have.
	Keep []int `json:"keep,omitempty"`
	// Lone is of a number that one number of ranks alone has.
	Lone *loneLaw `json:"lone,omitempty"`
}

// placeLaw is the law of a place.
type placeLaw struct {
	Index []int32   `json:"index"`
	Law   *valueLaw `json:"law"`
}

// groupLaw is a law of blocks of a grid, or a curve against the number of ranks.
type groupLaw struct {
	Law  *regress.Law  `json:"law"`
	Grid *pattern.Grid `json:"grid,omitempty"`
	// Keep are the components of the index that the law has.
	Keep []int `json:"keep,omitempty"`
	// Peer says that coordinates are those of the other side.
	Peer bool `json:"peer,omitempty"`
	// Far says that the law has one component of the index more: the logarithm of how far away the other side is.
	Far bool `json:"far,omitempty"`
	// Unit is what the law's number is multiplied with; 0: 1.
	Unit  int64 `json:"unit,omitempty"`
	exact bool
	cache map[groupPlace]said
}

type groupPlace struct {
	ranks int32
	x, g  [maxGridAxes]int32
	index place
}

// maxGridAxes is the largest number of axes of a grid.
const maxGridAxes = 5

// sum is a constant and multiples of features.
type sum struct {
	Constant int64  `json:"constant"`
	Terms    []term `json:"terms"`
	cost     float64
}

type term struct {
	Times   int64   `json:"times"`
	Feature feature `json:"of"`
}

// feature is a number that a point has.
type feature struct {
	Kind featureKind   `json:"kind"`
	N    int           `json:"n,omitempty"`    // component of the index, or axis
	Grid *pattern.Grid `json:"grid,omitempty"` // of coordinates and extents
	Of   int           `json:"of,omitempty"`   // component of the index that turns round the axis N
}

type featureKind string

// Features: coordinates x and extents g are of an axis of a grid.
const (
	ofIndex    featureKind = "i"
	ofCoord    featureKind = "x"
	ofPeer     featureKind = "peer x"
	ofLeft     featureKind = "g-1-x"
	ofExtent   featureKind = "g"
	ofLog      featureKind = "log2 g"
	ofHalf     featureKind = "g/2"
	ofRank     featureKind = "rank"
	ofPeerRank featureKind = "peer"
	ofRanks    featureKind = "P"
	ofRanksLog featureKind = "log2 P"
	ofPower    featureKind = "2^i"
	ofTurn     featureKind = "i mod g"
)

// of is the feature's number, and false where the point has none.
func (f feature) of(p *point) (int64, bool) {
	switch f.Kind {
	case ofIndex:
		if f.N >= len(p.index) {
			return 0, false
		}
		return int64(p.index[f.N]), true
	case ofPower:
		if f.N >= len(p.index) || p.index[f.N] > 40 || p.index[f.N] < 0 {
			return 0, false
		}
		return 1 << p.index[f.N], true
	case ofRank:
		return int64(p.rank), true
	case ofPeerRank:
		return int64(p.peerRank), p.peerRank >= 0
	case ofRanks:
		return int64(p.ranks), true
	case ofRanksLog:
		return logOf(p.ranks)
	case ofPeer:
		if p.peerRank < 0 {
			return 0, false
		}
		x, ok := f.Grid.Coords(p.ranks, p.peerRank)
		if !ok || f.N >= len(x) {
			return 0, false
		}
		return int64(x[f.N]), true
	}
	dims, ok := f.Grid.Dims(p.ranks)
	if !ok || f.N >= len(dims) {
		return 0, false
	}
	g := dims[f.N]
	switch f.Kind {
	case ofExtent:
		return int64(g), true
	case ofLog:
		return logOf(g)
	case ofHalf:
		return int64(g / 2), true
	case ofTurn:
		if f.Of >= len(p.index) || p.index[f.Of] < 0 || g < 1 {
			return 0, false
		}
		return int64(p.index[f.Of] % g), true
	}
	x, _ := f.Grid.Coords(p.ranks, p.rank)
	if f.Kind == ofLeft {
		return int64(g - 1 - x[f.N]), true
	}
	return int64(x[f.N]), true
}

// logOf is the logarithm to base 2, rounded up.
func logOf(n int32) (l int64, ok bool) {
	for int64(1)<<l < int64(n) {
		l++
	}
	return l, n > 0
}

func (f feature) String() string {
	switch f.Kind {
	case ofRank, ofPeerRank, ofRanks, ofRanksLog:
		return string(f.Kind)
	case ofLeft:
		return fmt.Sprintf("(g%d-1-x%d)", f.N, f.N)
	case ofHalf:
		return fmt.Sprintf("floor(g%d/2)", f.N)
	case ofTurn:
		return fmt.Sprintf("(i%d mod g%d)", f.Of, f.N)
	}
	return fmt.Sprintf("%s%d", f.Kind, f.N)
}

// cost of naming a feature, in bits.
func (f feature) cost() float64 {
	switch f.Kind {
	case ofIndex, ofRanks, ofExtent:
		return 1
	case ofHalf, ofLeft, ofPower, ofRank, ofPeerRank, ofTurn:
		return 3
	}
	return 1.5
}

// String is the law for people.
func (l *valueLaw) String() string {
	switch {
	case l.Constant != nil:
		return fmt.Sprint(*l.Constant)
	case l.Root != nil:
		return fmt.Sprintf("%s at the root, else %s", l.Root, l.Others)
	case len(l.Sums) > 0:
		text := l.Sums[0].String()
		if n := len(l.Sums); n > 1 {
			text += fmt.Sprintf(" {or %d others}", n-1)
		}
		return text
	case l.Group != nil:
		text := l.Group.Law.String()
		if l.Group.Unit > 1 {
			text = fmt.Sprintf("%d (%s)", l.Group.Unit, text)
		}
		switch {
		case l.Group.Peer:
			text += " of the peer"
		case l.Group.Far:
			text += fmt.Sprintf(", i%d the logarithm of the distance to the peer", len(l.Group.Keep))
		}
		return text
	case l.Lone != nil:
		return fmt.Sprintf("%d, seen on %d ranks alone", l.Lone.Value, l.Lone.Ranks)
	case len(l.Places) > 0:
		return fmt.Sprintf("%d laws by place, the first %s", len(l.Places), l.Places[0].Law)
	}
	return "nothing"
}

func (s sum) String() string {
	var b strings.Builder
	if s.Constant != 0 || len(s.Terms) == 0 {
		fmt.Fprint(&b, s.Constant)
	}
	for _, t := range s.Terms {
		switch {
		case t.Times == 1 && b.Len() == 0:
		case t.Times == 1:
			b.WriteByte('+')
		case t.Times == -1:
			b.WriteByte('-')
		default:
			if t.Times > 0 && b.Len() > 0 {
				b.WriteByte('+')
			}
			fmt.Fprintf(&b, "%d ", t.Times)
		}
		b.WriteString(t.Feature.String())
	}
	return b.String()
}

// exact says whether the law has all samples.
func (l *valueLaw) exact() bool {
	switch {
	case l.Root != nil:
		return l.Root.exact() && l.Others.exact()
	case l.Group != nil:
		return l.Group.exact
	case l.Lone != nil:
		return false
	case len(l.Places) > 0:
		return !slices.ContainsFunc(l.Places, func(p placeLaw) bool { return !p.Law.exact() })
	}
	return true
}

// at is what the law says of a point; false where there is no number.
func (l *valueLaw) at(p *point) (said, bool) {
	switch {
	case l.Constant != nil:
		return exactly(*l.Constant), true
	case l.Root != nil:
		if p.root {
			return l.Root.at(p)
		}
		return l.Others.at(p)
	case len(l.Sums) > 0:
		return l.sums(p)
	case l.Group != nil:
		return l.Group.at(p)
	case len(l.Places) > 0:
		return l.place(p)
	case l.Lone != nil:
		return l.Lone.at(p)
	}
	return said{}, false
}

func (l *valueLaw) sums(p *point) (r said, ok bool) {
	for _, s := range l.Sums {
		v, known := s.at(p)
		switch {
		case !known:
		case !ok:
			r, ok = exactly(v), true
		default:
			r.low, r.high = min(r.low, v), max(r.high, v)
		}
	}
	r.exact = r.low == r.high
	return r, ok
}

func (s *sum) at(p *point) (int64, bool) {
	v := s.Constant
	for _, t := range s.Terms {
		x, ok := t.Feature.of(p)
		if !ok {
			return 0, false
		}
		v += t.Times * x
	}
	return v, true
}

// place is the law of the point's place; of one that no run has, what the nearest says, which is not certain.
func (l *valueLaw) place(p *point) (said, bool) {
	i, found := slices.BinarySearchFunc(l.Places, keep(p.index, l.Keep), func(a placeLaw, b []int32) int { return slices.Compare(a.Index, b) })
	if found {
		return l.Places[i].Law.at(p)
	}
	r, ok := l.Places[max(i-1, 0)].Law.at(p)
	r.exact = false
	return r, ok
}

func (g *groupLaw) at(p *point) (said, bool) {
	var dims, coords []int32
	rank := p.rank
	if g.Peer {
		if rank = p.peerRank; rank < 0 {
			return said{}, false
		}
	}
	if g.Grid != nil {
		var ok bool
		if dims, ok = g.Grid.Dims(p.ranks); !ok {
			return said{}, false
		}
		coords, _ = g.Grid.Coords(p.ranks, rank)
	}
	k := groupPlace{ranks: p.ranks}
	copy(k.g[:], dims)
	if copy(k.x[:], coords); g.Grid == nil {
		k.x[0] = rank
	}
	index := keep(p.index, g.Keep)
	if g.Far {
		far, ok := p.far()
		if !ok {
			return said{}, false
		}
		index = append(index, far)
	}
	copy(k.index[:], index)
	if s, known := g.cache[k]; known {
		return s, true
	}
	e, err := g.Law.At(p.ranks, rank, dims, coords, index)
	if err != nil {
		return said{}, false
	}
	unit := max(g.Unit, 1)
	s := said{value: unit * whole(e.Value), low: unit * whole(math.Floor(e.Low)), high: unit * whole(math.Ceil(e.High)), exact: e.Exact && g.exact}
	if g.cache == nil {
		g.cache = map[groupPlace]said{}
	}
	g.cache[k] = s
	return s, true
}

// far is the logarithm of how many ranks away the other side is; false where that is no power of two.
func (p *point) far() (log int32, ok bool) {
	d := max(p.rank-p.peerRank, p.peerRank-p.rank)
	return int32(bits.TrailingZeros32(uint32(d))), p.peerRank >= 0 && d > 0 && d&(d-1) == 0
}

// whole rounds, within what an int64 holds with room for a unit.
func whole(x float64) int64 {
	const most = 1 << 50
	return int64(math.Round(max(-most, min(x, most))))
}

func keep(index []int32, components []int) []int32 {
	var out []int32
	for _, c := range components {
		if c < len(index) {
			out = append(out, index[c])
		}
	}
	return out
}

// values fits the laws of numbers of a program.
type values struct {
	ranks []int32         // of the runs
	grids []*pattern.Grid // of the program, the first of each kind
	known map[string]*valueLaw
	// open are what package regress has to find, all together, as programs have one domain.
	open []openValue
	// lone are those that one number of ranks alone has.
	lone []loneValue
}

// openValue is a law that is not found yet.
type openValue struct {
	samples []sample
	grid    *pattern.Grid
	law     *valueLaw
}

// fit finds a law of samples: constant, of roots and others, a sum of small multiples of features; what is left is found by settle.
func (v *values) fit(samples []sample, grid *pattern.Grid, numbers bool) *valueLaw {
	if len(samples) == 0 {
		return &valueLaw{}
	}
	if l := constantLaw(samples); l != nil {
		if first := samples[0].at.ranks; numbers && !slices.ContainsFunc(samples, func(s sample) bool { return s.at.ranks != first }) {
			l = &valueLaw{Lone: &loneLaw{Value: samples[0].value, Ranks: first}}
			v.lone = append(v.lone, loneValue{samples, l.Lone})
		}
		return l
	}
	key := fmt.Sprint(numbers, grid) + keyOf(samples)
	if l := v.known[key]; l != nil {
		return l
	}
	l := &valueLaw{}
	v.known[key] = l
	var roots, others []sample
	for _, s := range samples {
		if s.at.root {
			s.at.root = false
			roots = append(roots, s)
		} else {
			others = append(others, s)
		}
	}
	if len(roots) > 0 && len(others) > 0 {
		l.Root, l.Others = v.fit(roots, grid, numbers), v.fit(others, grid, numbers)
		return l
	}
	if !numbers {
		if l.Sums = v.sumsOf(samples, grid); len(l.Sums) > 0 {
			return l
		}
	}
	v.open = append(v.open, openValue{samples, grid, l})
	return l
}

// keyOf tells samples apart.
func keyOf(samples []sample) string {
	var key []byte
	for i := range samples {
		p := &samples[i].at
		root := int64(0)
		if p.root {
			root = 1
		}
		for _, x := range [...]int64{samples[i].value, int64(p.ranks), int64(p.rank), int64(p.peerRank), root, int64(len(p.index))} {
			key = binary.AppendVarint(key, x)
		}
		for _, x := range p.index {
			key = binary.AppendVarint(key, int64(x))
		}
	}
	return string(key)
}

func constantLaw(samples []sample) *valueLaw {
	c := samples[0].value
	for _, s := range samples {
		if s.value != c {
			return nil
		}
	}
	return &valueLaw{Constant: &c}
}

// features are those that a law of samples may have, of a grid.
func (v *values) features(p *point, grid *pattern.Grid) (all []feature) {
	for i := range p.index {
		all = append(all, feature{Kind: ofIndex, N: i}, feature{Kind: ofPower, N: i})
	}
	all = append(all, feature{Kind: ofRanks}, feature{Kind: ofRanksLog}, feature{Kind: ofRank}, feature{Kind: ofPeerRank})
	if grid != nil {
		for a := range grid.Axes {
			for _, k := range []featureKind{ofExtent, ofLog, ofHalf, ofCoord, ofLeft, ofPeer} {
				all = append(all, feature{Kind: k, N: a, Grid: grid})
			}
		}
	}
	return all
}

// turns are features of what goes round an axis of a grid from iteration to iteration, as the root of a broadcast of panels that are dealt out.
func turns(p *point, grid *pattern.Grid) (all []feature) {
	if grid == nil {
		return nil
	}
	for i := range p.index {
		for a := range grid.Axes {
			all = append(all, feature{Kind: ofTurn, N: a, Of: i, Grid: grid})
		}
	}
	return all
}

// Costs of sums, in bits.
const (
	sumMargin  = 3  // how much dearer than the simplest a sum is kept
	sumSurplus = 2  // what samples have to say more than the sum
	mostTimes  = 64 // largest multiple of a feature
)

// sumsOf finds the sums of at most two features that have all samples, as far as these say more than naming the sum takes.
func (v *values) sumsOf(samples []sample, grid *pattern.Grid) (found []sum) {
	if found = sumsOfFeatures(samples, v.features(&samples[0].at, grid)); len(found) == 0 {
		found = sumsOfFeatures(samples, turns(&samples[0].at, grid))
	}
	return found
}

func sumsOfFeatures(samples []sample, all []feature) (found []sum) {
	var columns [][]int64
	kept := all[:0:0]
	for _, f := range all {
		column := make([]int64, len(samples))
		ok, varies := true, false
		for i := range samples {
			x, has := f.of(&samples[i].at)
			column[i], ok = x, ok && has
			varies = varies || x != column[0]
		}
		if ok && varies {
			columns, kept = append(columns, column), append(kept, f)
		}
	}
	values := map[int64]bool{}
	most := int64(1)
	for _, s := range samples {
		values[s.value] = true
		most = max(most, abs(s.value))
	}
	info := float64(len(values)) * math.Log2(float64(most)+2)
	add := func(s sum) {
		s.cost = numberCost(s.Constant)
		for _, t := range s.Terms {
			s.cost += t.Feature.cost() + numberCost(t.Times-1)
			if t.Times < 0 {
				s.cost += 1 - numberCost(t.Times-1) + numberCost(-t.Times-1)
			}
		}
		if s.cost+sumSurplus <= info+numberCost(s.Constant) {
			found = append(found, s)
		}
	}
	for i := range kept {
		if c, ok := solveLine(samples, columns[i]); ok {
			add(sum{Constant: c[0], Terms: []term{{c[1], kept[i]}}})
		}
	}
	if len(found) == 0 {
		for i := range kept {
			for j := range i {
				if c, ok := solvePlane(samples, columns[j], columns[i]); ok {
					add(sum{Constant: c[0], Terms: []term{{c[1], kept[j]}, {c[2], kept[i]}}})
				}
			}
		}
	}
	slices.SortStableFunc(found, func(a, b sum) int { return cmp.Compare(a.cost, b.cost) })
	for i := range found {
		if found[i].cost > found[0].cost+sumMargin {
			return found[:i]
		}
	}
	return found
}

// numberCost is what it takes to name a number, in bits.
func numberCost(n int64) float64 {
	if n == 0 {
		return 0
	}
	return 1 + 2*math.Log2(float64(abs(n)))
}

// solveLine finds c0 + c1 x with whole numbers.
func solveLine(samples []sample, x []int64) (c [2]int64, ok bool) {
	k := slices.IndexFunc(x, func(y int64) bool { return y != x[0] })
	dv, dx := samples[k].value-samples[0].value, x[k]-x[0]
	if dv == 0 || dv%dx != 0 || abs(dv/dx) > mostTimes {
		return c, false
	}
	c[1] = dv / dx
	c[0] = samples[0].value - c[1]*x[0]
	for i, s := range samples {
		if s.value != c[0]+c[1]*x[i] {
			return c, false
		}
	}
	return c, true
}

// solvePlane finds c0 + c1 x + c2 y with whole numbers.
func solvePlane(samples []sample, x, y []int64) (c [3]int64, ok bool) {
	v0 := samples[0].value
	first := -1
	for n := 1; n < len(samples); n++ {
		dx, dy, dv := x[n]-x[0], y[n]-y[0], samples[n].value-v0
		if dx == 0 && dy == 0 {
			if dv != 0 {
				return c, false
			}
			continue
		}
		if first < 0 {
			first = n
			continue
		}
		ex, ey, ev := x[first]-x[0], y[first]-y[0], samples[first].value-v0
		d := dx*ey - dy*ex
		if d == 0 {
			continue
		}
		n1, n2 := dv*ey-dy*ev, dx*ev-dv*ex
		if n1%d != 0 || n2%d != 0 {
			return c, false
		}
		c[1], c[2] = n1/d, n2/d
		if c[1] == 0 || c[2] == 0 || abs(c[1]) > mostTimes || abs(c[2]) > mostTimes {
			return c, false
		}
		c[0] = v0 - c[1]*x[0] - c[2]*y[0]
		distinct := map[[2]int64]bool{}
		for i, s := range samples {
			if s.value != c[0]+c[1]*x[i]+c[2]*y[i] {
				return c, false
			}
			distinct[[2]int64{x[i], y[i]}] = true
		}
		return c, len(distinct) > 3
	}
	return c, false
}

// matters are the components of the index that values depend on: those are left out that can be, one after the other.
func matters(samples []sample) []int {
	kept := []int{}
	for i := range samples[0].at.index {
		kept = append(kept, i)
	}
	for i := len(samples[0].at.index) - 1; i >= 0; i-- {
		less := slices.DeleteFunc(slices.Clone(kept), func(k int) bool { return k == i })
		type key struct {
			ranks, rank int32
			index       place
		}
		seen := map[key]int64{}
		same := true
		for _, s := range samples {
			k := key{ranks: s.at.ranks, rank: s.at.rank}
			copy(k.index[:], keep(s.at.index, less))
			if x, known := seen[k]; known && x != s.value {
				same = false
				break
			}
			seen[k] = s.value
		}
		if same {
			kept = less
		}
	}
	return kept
}

// settle finds the laws that are open, by package regress: with the grid of the communication, those of the program and without one, with coordinates of
// the rank and of its peer, of all places together or of each, the first that is exact.
func (v *values) settle() error {
	type try struct {
		grid      *pattern.Grid
		peer, far bool
	}
	left := v.open
	v.open = nil
	var laws []*valueLaw
	for _, o := range left {
		laws = append(laws, o.law)
	}
	defer func() { v.relate(laws) }()
	var tries []try
	for _, peer := range []bool{false, true} {
		tries = append(tries, try{grid: nil, peer: peer})
		for _, g := range v.grids {
			tries = append(tries, try{grid: g, peer: peer})
		}
	}
	tries = append(tries, try{far: true})
	own := true
	for _, t := range append([]try{{}}, tries...) {
		var groups []regress.Group
		var asked []groupAsked
		var rest []openValue
		for i := range left {
			o := &left[i]
			grid := t.grid
			if own {
				grid = o.grid
			} else if !t.peer && !t.far && sameGrid(grid, o.grid) { // it was tried
				rest = append(rest, *o)
				continue
			}
			if gs, as, ok := o.groups(grid, t.peer, t.far, len(asked)); ok {
				groups, asked = append(groups, gs...), append(asked, as...)
			} else {
				rest = append(rest, *o)
			}
		}
		own = false
		if len(groups) == 0 {
			continue
		}
		laws, _, err := regress.FitGroups(groups, regress.Options{})
		if err != nil {
			return err
		}
		byValue := map[*valueLaw][]groupAsked{}
		var order []*openValue
		for i, l := range laws {
			a := asked[i]
			a.law.Law, a.law.exact = l, l.Exact()
			if byValue[a.open.law] == nil {
				order = append(order, a.open)
			}
			byValue[a.open.law] = append(byValue[a.open.law], a)
		}
		for _, o := range order {
			was := *o.law
			o.take(byValue[o.law])
			if !o.law.exact() {
				rest = append(rest, *o)
				if was.Group != nil || was.Places != nil {
					*o.law = was // the first estimate stays: that of the communication's own grid
				}
			}
		}
		left = slices.Clone(rest)
	}
	return nil
}

// sameGrid says whether grids are the same, or there is none.
func sameGrid(a, b *pattern.Grid) bool {
	return a == b || a != nil && b != nil && reflect.DeepEqual(a, b)
}

// groupAsked is a group of samples and what it is for.
type groupAsked struct {
	open  *openValue
	index []int32
	law   *groupLaw
}

// leastFar is how many different distances messages must go for a law of them.
const leastFar = 3

// groups are what package regress is asked for a value: a group for each place that matters.
func (o *openValue) groups(grid *pattern.Grid, peer, far bool, n int) (groups []regress.Group, asked []groupAsked, ok bool) {
	kept := matters(o.samples)
	if far {
		distances := map[int32]bool{}
		for i := range o.samples {
			d, is := o.samples[i].at.far()
			if !is {
				return nil, nil, false
			}
			distances[d] = true
		}
		if len(distances) < leastFar || len(kept) == maxLoops {
			return nil, nil, false
		}
	}
	name := fmt.Sprint(n)
	at := map[place]int{}
	for _, s := range o.samples {
		x := regress.Sample{Ranks: s.at.ranks, Rank: s.at.rank, Index: keep(s.at.index, kept), Value: s.value}
		if peer {
			if x.Rank = s.at.peerRank; x.Rank < 0 {
				return nil, nil, false
			}
		}
		if grid != nil {
			if x.Dims, ok = grid.Dims(s.at.ranks); !ok {
				return nil, nil, false
			}
			x.Coords, _ = grid.Coords(s.at.ranks, x.Rank)
		}
		if far {
			d, _ := s.at.far()
			x.Index = append(x.Index, d)
		}
		k := placeOf(x.Index)
		i, known := at[k]
		if !known {
			i = len(groups)
			at[k] = i
			groups = append(groups, regress.Group{Name: fmt.Sprint(name, x.Index), Family: name})
			asked = append(asked, groupAsked{open: o, index: x.Index, law: &groupLaw{Grid: grid, Keep: kept, Peer: peer, Far: far}})
		}
		groups[i].Samples = append(groups[i].Samples, x)
	}
	return groups, asked, true
}

// take puts the laws of the places together.
func (o *openValue) take(asked []groupAsked) {
	first := asked[0].law
	*o.law = valueLaw{Group: first}
	if len(asked) == 1 {
		return
	}
	// A law of the family is the same in all members.
	text := first.Law.String()
	if first.exact && !slices.ContainsFunc(asked, func(a groupAsked) bool { return !a.law.exact || a.law.Law.String() != text }) && o.holds() {
		return
	}
	if first.Far { // a law of each distance says nothing of others
		first.exact = false
		return
	}
	*o.law = valueLaw{}
	for _, a := range asked {
		o.law.Places = append(o.law.Places, placeLaw{a.index, &valueLaw{Group: a.law}})
	}
	slices.SortFunc(o.law.Places, func(a, b placeLaw) int { return slices.Compare(a.Index, b.Index) })
	o.law.Keep = first.Keep
}

// holds says whether the law has all samples.
func (o *openValue) holds() bool {
	for _, s := range o.samples {
		if r, ok := o.law.at(&s.at); !ok || r.value != s.value {
			return false
		}
	}
	return true
}
