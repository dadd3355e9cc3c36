package law

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/regress"
	"github.com/commq/commq/predict/slots"
)

// Point is where a number is seen or predicted.
type Point struct {
	Ranks, Rank int32
	PeerRank    int32   // rank of the other side; negative: none
	Index       []int32 // place in the loops, as slots.Slot.Index
	Root        bool    // the rank is the root of the collective
}

// Sample is a number that a rank of a run has at a point.
type Sample struct {
	Point Point
	Value int64
}

// Estimate is the value of a law at a point, which lies between Low and High inclusive; High is math.MaxInt64 if there
// is no upper bound. Exact means that the law fits all samples and nothing contradicts it; then Low and High equal
// Value.
type Estimate struct {
	Value, Low, High int64
	Exact            bool
}

// Times returns the estimate of n times a number, for n above 0. No bound is beyond Unbounded.
func (e Estimate) Times(n int64) Estimate {
	times := func(v int64) int64 {
		if v > Unbounded/n || v < -Unbounded/n {
			return round(float64(v) * float64(n))
		}
		return v * n
	}
	return Estimate{times(e.Value), times(e.Low), times(e.High), e.Exact}
}

// InShares widens an estimate to multiples of a number of bytes.
func (e Estimate) InShares(bytes int64) Estimate {
	if e.Low%bytes != 0 && e.Low > 0 {
		e.Low, e.Exact = e.Low-e.Low%bytes, false
	}
	if over := e.High % bytes; over != 0 && e.High > 0 && e.High < Unbounded {
		e.High, e.Exact = e.High-over+bytes, false
	}
	return e
}

// Exactly returns an exact estimate.
func Exactly(v int64) Estimate { return Estimate{v, v, v, true} }

// Law gives a number at any point. At most one of Constant, Root (with Others), Sums, Group, Places and Single is set;
// none means that there is no such number.
type Law struct {
	// Constant is a number that is the same at all points.
	Constant *int64
	// Root and Others are the laws of roots of collectives and of the other ranks.
	Root, Others *Law
	// Sums are all sums that fit the samples and are about as simple as the simplest, which comes first.
	Sums []Sum
	// Group is a law of package regress.
	Group *GroupLaw
	// Places has a law for each place in the loops if no law covers them all, ordered by index. Keep are the components
	// of a point's index that distinguish the places.
	Places []PlaceLaw
	Keep   []int
	// Single is a number that was seen at only one number of ranks.
	Single *SingleLaw
}

// PlaceLaw is the law of a place in the loops.
type PlaceLaw struct {
	Index []int32 // the components that Law.Keep names
	Law   *Law
}

// NewConstant returns the law of a number that is the same everywhere.
func NewConstant(v int64) *Law { return &Law{Constant: &v} }

// IsEmpty reports whether there is no such number. A nil law is empty.
func (l *Law) IsEmpty() bool {
	return l == nil || l.Constant == nil && l.Root == nil && l.Group == nil && l.Single == nil &&
		len(l.Sums)+len(l.Places) == 0
}

// Unvarying returns the number that all samples have, if they have one.
func (l *Law) Unvarying() (number int64, same bool) {
	switch {
	case l.Constant != nil:
		return *l.Constant, true
	case len(l.Sums) > 0 && len(l.Sums[0].Terms) == 0:
		return l.Sums[0].Constant, true
	}
	return 0, false
}

// IsExact reports whether the law fits all samples.
func (l *Law) IsExact() bool {
	switch {
	case l.Root != nil:
		return l.Root.IsExact() && l.Others.IsExact()
	case l.Group != nil:
		return l.Group.exact
	case l.Single != nil:
		return false
	case len(l.Places) > 0:
		return !slices.ContainsFunc(l.Places, func(p PlaceLaw) bool { return !p.Law.IsExact() })
	}
	return true
}

// IsOfRanks reports whether the simplest sum that fits all samples needs the number of ranks only.
func (l *Law) IsOfRanks() bool {
	return l != nil && len(l.Sums) > 0 && len(l.Sums[0].Terms) > 0 &&
		!slices.ContainsFunc(l.Sums[0].Terms, func(t Term) bool { return t.Feature.Grid != nil || t.Feature.With != nil })
}

// IsOfLogs reports whether the simplest sum that fits all samples has a logarithm.
func (l *Law) IsOfLogs() bool {
	return l != nil && len(l.Sums) > 0 && slices.ContainsFunc(l.Sums[0].Terms, func(t Term) bool {
		return t.Feature.Kind == FeatureRanksLog || t.Feature.Kind == FeatureRanksFloor || t.Feature.Kind == FeatureExtentLog
	})
}

// HasConstant reports whether the simplest sum that fits all samples adds a constant that is not -1, 0 or 1.
func (l *Law) HasConstant() bool {
	return l != nil && len(l.Sums) > 0 && (l.Sums[0].Constant < -1 || l.Sums[0].Constant > 1)
}

// IsOfGrid reports whether the simplest sum that fits all samples needs a grid, and is other than the extent of an axis
// or one less.
func (l *Law) IsOfGrid() bool {
	if l == nil || len(l.Sums) == 0 {
		return false
	}
	s := &l.Sums[0]
	isExtent := len(s.Terms) == 1 && s.Terms[0].Times == 1 && s.Terms[0].Feature.Kind == FeatureExtent &&
		s.Terms[0].Feature.With == nil && !s.Terms[0].Feature.Upto && (s.Constant == 0 || s.Constant == -1)
	return !isExtent && slices.ContainsFunc(s.Terms, func(t Term) bool { return t.Feature.Grid != nil })
}

// DependsOnIndex reports whether the law gives different iterations different numbers. A nil law does not.
func (l *Law) DependsOnIndex() bool {
	if l.IsEmpty() {
		return false
	}
	return len(l.Places) > 0 || l.Group != nil && len(l.Group.Keep) > 0 ||
		slices.ContainsFunc(l.Sums, func(s Sum) bool {
			return slices.ContainsFunc(s.Terms, func(t Term) bool { return t.Feature.dependsOnIndex() })
		})
}

// TextAt describes the law for people, as it is at a number of ranks.
func (l *Law) TextAt(ranks int64) string {
	switch {
	case l.Constant != nil:
		return fmt.Sprint(*l.Constant)
	case l.Root != nil:
		return fmt.Sprintf("%s at the root, else %s", l.Root.TextAt(ranks), l.Others.TextAt(ranks))
	case len(l.Sums) > 0:
		text := l.Sums[0].String()
		if n := len(l.Sums); n > 1 {
			text += fmt.Sprintf(" {or %d others}", n-1)
		}
		return text
	case l.Group != nil:
		return l.Group.TextAt(ranks)
	case l.Single != nil:
		return fmt.Sprintf("%d, seen only on %d ranks", l.Single.Value, l.Single.Ranks)
	case len(l.Places) > 0:
		return fmt.Sprintf("%d laws by place, the first %s", len(l.Places), l.Places[0].Law.TextAt(ranks))
	}
	return "nothing"
}

// Evaluate returns the law's value at a point; false if there is no such number there.
func (l *Law) Evaluate(p *Point) (Estimate, bool) {
	switch {
	case l.Constant != nil:
		return Exactly(*l.Constant), true
	case l.Root != nil && p.Root:
		return l.Root.Evaluate(p)
	case l.Root != nil:
		return l.Others.Evaluate(p)
	case len(l.Sums) > 0:
		return evaluateSums(l.Sums, p)
	case l.Group != nil:
		return l.Group.Evaluate(p)
	case len(l.Places) > 0:
		return l.evaluatePlace(p)
	case l.Single != nil:
		return l.Single.Evaluate(p)
	}
	return Estimate{}, false
}

// evaluateSums returns the value of the simplest sum, bounded by those of the others.
func evaluateSums(sums []Sum, p *Point) (r Estimate, ok bool) {
	for i := range sums {
		v, known := sums[i].evaluate(p)
		switch {
		case !known:
		case !ok:
			r, ok = Exactly(v), true
		default:
			r.Low, r.High = min(r.Low, v), max(r.High, v)
		}
	}
	r.Exact = r.Low == r.High
	return r, ok
}

// evaluatePlace evaluates the law of the point's place. For a place that no run has, it evaluates the law of the
// nearest one; the result is not exact then, and its bounds are beyond those of all places: sizes of the levels of a
// hierarchy grow by a ratio.
func (l *Law) evaluatePlace(p *Point) (Estimate, bool) {
	i, found := slices.BinarySearchFunc(l.Places, selectComponents(p.Index, l.Keep),
		func(a PlaceLaw, b []int32) int { return slices.Compare(a.Index, b) })
	if found {
		return l.Places[i].Law.Evaluate(p)
	}
	r, ok := l.Places[max(i-1, 0)].Law.Evaluate(p)
	low, high := l.beyondPlaces(p)
	r.Low, r.High, r.Exact = min(r.Low, low), max(r.High, high), false
	return r, ok
}

// beyondPlaces returns the bounds of all places, further apart by the largest ratio of neighbouring ones, twice, as
// that ratio may grow.
func (l *Law) beyondPlaces(p *Point) (low, high int64) {
	ratio, last := 1.0, 0.0
	low, high = Unbounded, -Unbounded
	for i := range l.Places {
		e, ok := l.Places[i].Law.Evaluate(p)
		if !ok {
			continue
		}
		if v := float64(e.Value); last > 0 && v > 0 {
			ratio = max(ratio, v/last, last/v)
		}
		low, high, last = min(low, e.Low), max(high, e.High), float64(e.Value)
	}
	if low < 0 {
		return low, high
	}
	return round(math.Floor(float64(low) / ratio / ratio)), round(math.Ceil(float64(high) * ratio * ratio))
}

// selectComponents returns some components of an index.
func selectComponents(index []int32, components []int) []int32 {
	var selected []int32
	for _, c := range components {
		if c < len(index) {
			selected = append(selected, index[c])
		}
	}
	return selected
}

// GroupLaw is a law of package regress: of blocks of a grid, or a curve over the number of ranks.
type GroupLaw struct {
	Law  *regress.Law
	Grid *pattern.Grid // nil: a curve
	// Keep are the components of a point's index that the law depends on.
	Keep []int
	// Peer means that the coordinates are those of the other side.
	Peer bool
	// Axes has, if it is not nil, for each axis of the law the axis of Grid, -1 for those that make no difference.
	Axes []int
	// Distance means that the law has one more component of the index: the logarithm of the distance to the other side.
	Distance bool
	// Turn moves the rank round the line of all ranks, before anything else.
	Turn Turn
	// Rivals fit all samples, too, with the coordinates of the other side of messages or of another grid: where they
	// differ, nothing is exact.
	Rivals []*GroupLaw

	exact bool
	cache map[groupPoint]Estimate
}

// Turn moves ranks round the line of all ranks by Sign times a component of the index: the number of rank r is then
// that of the block (r + Sign i) mod P. With a grid it is the rank's coordinate on an axis, as in a loop in whose step
// i the ranks with coordinate i send. Sign is 1 or -1; 0 moves none.
type Turn struct {
	Sign      int32         `json:"sign"`
	Component int           `json:"component"`
	Grid      *pattern.Grid `json:"grid,omitempty"`
	Axis      int           `json:"axis,omitempty"`
}

// move returns the rank whose number a rank has at an index.
func (t Turn) move(rank, ranks int32, index []int32) int32 {
	if t.Sign == 0 || rank < 0 {
		return rank
	}
	by := int32(0)
	if t.Grid != nil {
		if coords, ok := t.Grid.Coords(ranks, rank); ok {
			by = coords[t.Axis]
		}
	} else if t.Component < len(index) {
		by = index[t.Component]
	}
	return ((rank+t.Sign*by)%ranks + ranks) % ranks
}

// groupPoint is all of a point that a group law depends on.
type groupPoint struct {
	ranks        int32
	coords, dims [maxGridAxes]int32
	index        slots.Place
}

// maxGridAxes is the largest number of axes of a grid.
const maxGridAxes = 5

// TextAt describes the law for people, as it is at a number of ranks.
func (g *GroupLaw) TextAt(ranks int64) string {
	switch text := g.Law.TextAt(ranks); {
	case !g.Law.Exact():
		return text
	case g.Turn.Sign != 0:
		of := "rank"
		if g.Peer {
			of = "peer"
		}
		if g.Turn.Grid != nil {
			return text + fmt.Sprintf(" of rank (%s%+d x%d) mod P", of, g.Turn.Sign, g.Turn.Axis)
		}
		return text + fmt.Sprintf(" of rank (%s%+d i%d) mod P", of, g.Turn.Sign, g.Turn.Component)
	case g.Peer:
		return text + " of the peer"
	case g.Distance:
		return text + fmt.Sprintf(", i%d the logarithm of the distance to the peer", len(g.Keep))
	default:
		return text
	}
}

// Evaluate returns the law's value at a point, bounded by those of its rivals; false if it has none.
func (g *GroupLaw) Evaluate(p *Point) (Estimate, bool) {
	e, ok := g.evaluate(p)
	if !ok {
		return e, false
	}
	for _, r := range g.Rivals {
		if other, has := r.evaluate(p); has && (other.Low < e.Low || other.High > e.High) {
			e.Low, e.High, e.Exact = min(e.Low, other.Low), max(e.High, other.High), false
		}
	}
	return e, true
}

// evaluate returns the law's own value.
func (g *GroupLaw) evaluate(p *Point) (Estimate, bool) {
	var dims, coords []int32
	rank := p.Rank
	if g.Peer {
		if rank = p.PeerRank; rank < 0 {
			return Estimate{}, false
		}
	}
	rank = g.Turn.move(rank, p.Ranks, p.Index)
	if g.Grid != nil {
		var ok bool
		if dims, ok = g.Grid.Dims(p.Ranks); !ok {
			return Estimate{}, false
		}
		coords, _ = g.Grid.Coords(p.Ranks, rank)
		if g.Axes != nil {
			dims, coords = choose(dims, g.Axes, 1), choose(coords, g.Axes, 0)
		}
	}
	k := groupPoint{ranks: p.Ranks}
	copy(k.dims[:], dims)
	if copy(k.coords[:], coords); g.Grid == nil {
		k.coords[0] = rank
	}
	index := selectComponents(p.Index, g.Keep)
	if g.Distance {
		log, ok := p.logDistance()
		if !ok {
			return Estimate{}, false
		}
		index = append(index, log)
	}
	copy(k.index[:], index)
	if s, known := g.cache[k]; known {
		return s, true
	}
	e, err := g.Law.Predict(p.Ranks, rank, dims, coords, index)
	if err != nil {
		return Estimate{}, false
	}
	s := Estimate{round(e.Value), round(math.Floor(e.Low)), round(math.Ceil(e.High)), e.Exact && g.exact}
	if g.cache == nil {
		g.cache = map[groupPoint]Estimate{}
	}
	g.cache[k] = s
	return s, true
}

// choose returns the numbers of some axes, otherwise for -1.
func choose(numbers []int32, axes []int, otherwise int32) []int32 {
	chosen := make([]int32, len(axes))
	for i, a := range axes {
		chosen[i] = otherwise
		if a >= 0 {
			chosen[i] = numbers[a]
		}
	}
	return chosen
}

// logDistance returns the logarithm to base 2 of the distance in ranks to the other side; false if that is not a power
// of two.
func (p *Point) logDistance() (log int32, ok bool) {
	d := max(p.Rank-p.PeerRank, p.PeerRank-p.Rank)
	return int32(bits.TrailingZeros32(uint32(d))), p.PeerRank >= 0 && d > 0 && d&(d-1) == 0
}

// Unbounded is the bound of a number without an upper bound.
const Unbounded = 1 << 50

// round rounds to an integer within +-Unbounded.
func round(x float64) int64 {
	return int64(math.Round(max(-Unbounded, min(x, Unbounded))))
}

// Groups returns the group laws that a law consists of; nil if it has others.
func (l *Law) Groups() (all []*GroupLaw) {
	switch {
	case l == nil:
	case l.Root != nil:
		all = append(l.Root.Groups(), l.Others.Groups()...)
	case l.Group != nil:
		all = []*GroupLaw{l.Group}
	}
	for i := range all {
		if all[i].Law == nil {
			return nil
		}
	}
	return all
}

// Domain returns, by axis, the extents of the program's domain that a law of blocks of a grid found; nil if the law is
// not exact or has no grid.
func (g *GroupLaw) Domain() map[int]int64 {
	if g.Grid == nil || len(g.Law.Laws) == 0 || !g.exact {
		return nil
	}
	return g.Law.Laws[0].Domain()
}

// LineBytes returns the bytes of a line of the whole domain along an axis, if the law is exact and of blocks of that
// line alone: laws of cells of other sizes have other extents, but the same bytes. unsure is true if such laws fit too;
// ok is false if the law is another one.
func (g *GroupLaw) LineBytes() (axis int, bytes int64, unsure, ok bool) {
	domain := g.Domain()
	if len(domain) != 1 {
		return 0, 0, false, false
	}
	first := &g.Law.Laws[0]
	for axis, extent := range domain {
		unsure := slices.ContainsFunc(g.Law.Laws, func(h regress.Hypothesis) bool { return h.C != first.C })
		return axis, int64(first.C) * extent, unsure, true
	}
	return 0, 0, false, false
}

// LeavesOut reports whether a law of blocks along all ranks, or a rival of blocks that are rounded up, leaves ranks
// without cells.
func (l *Law) LeavesOut(ranks int32) bool {
	return slices.ContainsFunc(l.Groups(), func(g *GroupLaw) bool {
		if g.Grid != nil || !g.exact || len(g.Law.Laws) == 0 {
			return false
		}
		cells, isBlock := g.Law.Laws[0].Domain()[0]
		if !isBlock || cells < int64(ranks) {
			return isBlock
		}
		largest := (cells + int64(ranks) - 1) / int64(ranks)
		return len(g.Law.Laws) > 1 && (cells+largest-1)/largest < int64(ranks)
	})
}

// ResolvingRun returns the candidate number of ranks at which the rival laws behind a number differ most: a run there
// shows which of them is right. It returns 0 if they agree at all candidates.
func (l *Law) ResolvingRun(candidates []int32) int32 {
	switch {
	case l.Root != nil:
		if run := l.Root.ResolvingRun(candidates); run != 0 {
			return run
		}
		return l.Others.ResolvingRun(candidates)
	case l.Group == nil || l.Group.Law == nil:
		return 0
	}
	grid := func(ranks int32) ([]int32, func(int32) []int32, bool) {
		if l.Group.Grid == nil {
			return nil, func(int32) []int32 { return nil }, true
		}
		dims, ok := l.Group.Grid.Dims(ranks)
		return dims, func(rank int32) []int32 { c, _ := l.Group.Grid.Coords(ranks, rank); return c }, ok
	}
	run, _, _, _ := l.Group.Law.Resolve(candidates, grid, make([]int32, len(l.Group.Keep)))
	return run
}
