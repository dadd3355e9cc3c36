package regress

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// law is an exact integer law that reproduces every value of a table.
type law struct {
	// value returns the law's value at a rank count. ok is false where it has none, as a root is not an integer.
	value func(ranks int64) (v bounds, ok bool)
	// bits is the evidence for it: the information in the values that did not determine its coefficients, less that of
	// choosing among the laws of its kind.
	bits float64
	kind lawKind
	// onLine means that a law of blocks divides an extent among all ranks, not among those of an axis.
	onLine bool
	// length is the description length of a block law in bits: programs have round extents and thin halos.
	length float64
	text   string // P is the number of ranks
	// hasRoots reports whether the root or logarithm in the law is whole at a rank count; nil means always.
	hasRoots func(ranks int64) bool
}

// lawKind is a kind of exact law, simplest first.
type lawKind int

const (
	ofConstant lawKind = iota
	ofRatio
	ofSum
	ofBlocks
)

// bounds is a law's value. low and high differ from value if the points leave a coefficient open.
type bounds struct{ low, value, high float64 }

// enough is the evidence in bits from which a law needs no support. Below it the interval includes that of least
// squares, as small values of few runs fit many laws.
const enough = 7

// ratioTerm is a rational function of the number of ranks; ok is false where it has no value. onLine means that the
// term is the number of ranks, less one or not, or is divided by it.
type ratioTerm struct {
	name   string
	value  func(ranks int64) (num, den int64, ok bool)
	onLine bool
}

// has reports whether the term has a value at a rank count.
func (w *ratioTerm) has(ranks int64) bool { _, _, ok := w.value(ranks); return ok }

// root returns the integer whose k-th power is x, if there is one.
func root(x int64, k int) (int64, bool) {
	if x < 0 {
		return 0, false
	}
	r := int64(math.Round(math.Pow(float64(x), 1/float64(k))))
	p := int64(1)
	for range k {
		if r != 0 && p > math.MaxInt64/r {
			return 0, false
		}
		p *= r
	}
	return r, p == x
}

// edges are the edges of a line, square and cube of ranks.
var edges = []struct {
	name string
	root int
}{{"P", 1}, {"sqrt(P)", 2}, {"cbrt(P)", 3}}

// ratioTerms returns the functions that exact laws consist of, simplest first.
func ratioTerms() (all []ratioTerm) {
	for _, e := range edges {
		add := func(name string, f func(g int64) (num, den int64)) {
			all = append(all, ratioTerm{name: name, value: func(ranks int64) (int64, int64, bool) {
				g, ok := root(ranks, e.root)
				if !ok || g > 1<<20 {
					return 0, 0, false
				}
				num, den := f(g)
				return num, den, true
			}, onLine: e.root == 1})
		}
		add(e.name, func(g int64) (int64, int64) { return g, 1 })
		add("1/"+e.name, func(g int64) (int64, int64) { return 1, g })
		add("("+e.name+"-1)", func(g int64) (int64, int64) { return g - 1, 1 })
		add("("+e.name+"-1)/"+e.name, func(g int64) (int64, int64) { return g - 1, g })
		add("("+e.name+"-1)/"+e.name+"^2", func(g int64) (int64, int64) { return g - 1, g * g })
		add(e.name+"^2", func(g int64) (int64, int64) { return g * g, 1 })
		add("1/"+e.name+"^2", func(g int64) (int64, int64) { return 1, g * g })
		add(e.name+" ("+e.name+"-1)", func(g int64) (int64, int64) { return g * (g - 1), 1 })
		if e.root > 1 {
			add("1/"+e.name+"^3", func(g int64) (int64, int64) { return 1, g * g * g })
		}
	}
	logs := func(name string, f func(p, l int64) (num, den int64), up, onlyPowers bool) {
		all = append(all, ratioTerm{name: name, value: func(ranks int64) (int64, int64, bool) {
			l := int64(0)
			for 1<<(l+1) <= ranks {
				l++
			}
			if exact := 1<<l == ranks; onlyPowers && !exact {
				return 0, 0, false
			} else if up && !exact {
				l++
			}
			num, den := f(ranks, l)
			return num, den, true
		}})
	}
	logs("log2(P)", func(_, l int64) (int64, int64) { return l, 1 }, false, true)
	logs("ceil(log2(P))", func(_, l int64) (int64, int64) { return l, 1 }, true, false)
	logs("floor(log2(P))", func(_, l int64) (int64, int64) { return l, 1 }, false, false)
	logs("P log2(P)", func(p, l int64) (int64, int64) { return p * l, 1 }, false, true)
	logs("log2(P)/P", func(p, l int64) (int64, int64) { return l, p }, false, true)
	logs("log2(P)^2", func(_, l int64) (int64, int64) { return l * l, 1 }, false, true)
	return all
}

// exactLaws returns the laws that reproduce all points, simplest first. There are none if values are not integers or
// differ at one rank count.
func exactLaws(points []Point) (all []law) {
	most := 0.0
	for i, p := range points {
		if p.Value != math.Trunc(p.Value) || math.Abs(p.Value) >= 1<<53 || i > 0 && p.Ranks == points[i-1].Ranks &&
			p.Value != points[i-1].Value {
			return nil
		}
		most = max(most, math.Abs(p.Value))
	}
	points = slices.CompactFunc(slices.Clone(points), func(a, b Point) bool { return a.Ranks == b.Ranks })
	if l, ok := constantLaw(points, most); ok {
		return append([]law{l}, l.multiplesOfLogs(points)...) // other laws would fit with a factor of 0
	}
	terms := ratioTerms()
	for _, w := range terms {
		if l, ok := scaledLaw(points, w); ok {
			l.bits = evidence(points, 1, most, len(terms))
			all = append(all, l)
		}
	}
	if len(all) == 0 && len(points) > 2 {
		for _, w := range terms {
			if l, ok := affineLaw(points, w); ok {
				l.bits = evidence(points, 2, most, len(terms))
				all = append(all, l)
			}
		}
	}
	blocks := blockLaws(points)
	for _, l := range blocks {
		l.bits = evidence(points, 2, most, 1<<8)
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b law) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.length, b.length))
	})
	return all
}

// evidence returns the evidence for a law in bits. Each value beyond those that determine the coefficients could have
// been any number up to the largest; choosing among the laws of the kind that were tried counts against it.
func evidence(points []Point, coefficients int, most float64, tried int) float64 {
	return float64(len(points)-coefficients)*math.Log2(most+1) - math.Log2(float64(tried))
}

func constantLaw(points []Point, most float64) (law, bool) {
	for _, p := range points {
		if p.Value != points[0].Value {
			return law{}, false
		}
	}
	y := points[0].Value
	return law{text: exactNumber(y), bits: max(evidence(points, 1, most, 1), float64(enough*min(len(points)-2, 1))),
		value: func(int64) (bounds, bool) { return bounds{y, y, y}, true }}, true
}

// multiplesOfLogs returns the laws that are a multiple of the logarithm of the number of ranks, rounded up or down, if
// it is the same, and more than 1, in all runs: these do not tell whether a constant comes from it.
func (l *law) multiplesOfLogs(points []Point) (all []law) {
	for _, w := range ratioTerms() {
		if w.name != "ceil(log2(P))" && w.name != "floor(log2(P))" {
			continue
		}
		logarithm := func(p Point) int64 { n, _, _ := w.value(p.Ranks); return n }
		n := logarithm(points[0])
		if n < 2 || points[0].Value == 0 || math.Mod(points[0].Value, float64(n)) != 0 ||
			slices.ContainsFunc(points, func(p Point) bool { return logarithm(p) != n }) {
			continue
		}
		if multiple, ok := scaledLaw(points, w); ok {
			multiple.bits = l.bits
			all = append(all, multiple)
		}
	}
	return all
}

// scaledLaw fits c g(P).
func scaledLaw(points []Point, w ratioTerm) (law, bool) {
	var c *big.Rat
	for _, p := range points {
		num, den, ok := w.value(p.Ranks)
		if !ok {
			return law{}, false
		}
		if num == 0 {
			if p.Value != 0 {
				return law{}, false
			}
			continue
		}
		v := new(big.Rat).Mul(new(big.Rat).SetInt64(int64(p.Value)), big.NewRat(den, num))
		if c == nil {
			c = v
		} else if c.Cmp(v) != 0 {
			return law{}, false
		}
	}
	if c == nil || c.Sign() == 0 {
		return law{}, false
	}
	return law{kind: ofRatio, text: ratText(c) + " " + w.name, hasRoots: w.has,
		value: w.times(new(big.Rat), c, points)}, true
}

// times returns the values of a + b g(P). Where it divides b, these are bounded by how a program may round.
func (w *ratioTerm) times(a, b *big.Rat, points []Point) func(ranks int64) (bounds, bool) {
	divided := share{whole: b}
	for _, p := range points {
		_, parts, _ := w.value(p.Ranks)
		if divided.parts = append(divided.parts, parts); w.onLine && parts == p.Ranks {
			divided.ranks = append(divided.ranks, parts)
		}
	}
	if len(divided.ranks) < len(points) {
		divided.ranks = nil
	}
	return func(ranks int64) (bounds, bool) {
		num, den, ok := w.value(ranks)
		if !ok {
			return bounds{}, false
		}
		exact := new(big.Rat).Mul(b, big.NewRat(num, den))
		y, _ := exact.Add(exact, a).Float64()
		if den == 1 {
			return bounds{y, y, y}, true
		}
		from, _ := a.Float64()
		low, high := divided.around(den)
		if num == den-1 { // all but a share
			all, _ := b.Float64()
			low, high = from+all-high, from+all-low
		} else {
			low, high = from+float64(num)*low, from+float64(num)*high
		}
		return bounds{min(low, y), y, max(high, y)}, true
	}
}

// largestDenominator is that of the coefficients of an affine law: halves, thirds, quarters.
const largestDenominator = 12

// affineLaw fits a + b g(P), whose coefficients have small denominators.
func affineLaw(points []Point, w ratioTerm) (law, bool) {
	var x, y []*big.Rat
	for _, p := range points {
		num, den, ok := w.value(p.Ranks)
		if !ok {
			return law{}, false
		}
		x, y = append(x, big.NewRat(num, den)), append(y, new(big.Rat).SetInt64(int64(p.Value)))
	}
	last := len(x) - 1
	dx := new(big.Rat).Sub(x[last], x[0])
	if dx.Sign() == 0 {
		return law{}, false
	}
	b := new(big.Rat).Quo(new(big.Rat).Sub(y[last], y[0]), dx)
	a := new(big.Rat).Sub(y[0], new(big.Rat).Mul(b, x[0]))
	if !a.Denom().IsInt64() || !b.Denom().IsInt64() || a.Denom().Int64() > largestDenominator ||
		b.Denom().Int64() > largestDenominator {
		return law{}, false
	}
	value := func(x *big.Rat) *big.Rat { return new(big.Rat).Add(a, new(big.Rat).Mul(b, x)) }
	for i := range x {
		if value(x[i]).Cmp(y[i]) != 0 {
			return law{}, false
		}
	}
	sign := " + "
	if b.Sign() < 0 {
		sign = " - "
	}
	return law{kind: ofSum, text: ratText(a) + sign + ratText(new(big.Rat).Abs(b)) + " " + w.name,
		hasRoots: w.has, value: w.times(a, b, points)}, true
}

func ratText(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return "(" + r.RatString() + ")"
}

// mostUnit bounds the search for the factor w of a block law: it is at most that, or the number divided by as much.
const mostUnit = 1 << 16

// blockLaws returns the laws w (block+h)^d that fit, where block is the floor or ceiling of N/g and g the edge of a
// line, square or cube of ranks.
func blockLaws(points []Point) (all []law) {
	var common int64
	for _, p := range points {
		if p.Value < 0 {
			return nil
		}
		common = gcd(common, int64(p.Value))
	}
	for _, w := range slices.Backward(slices.Sorted(slices.Values(units(common)))) {
		for _, e := range edges {
			for d := 1; d <= max(e.root, 2); d++ {
				for _, h := range []int64{0, 1, -1, 2, -2} {
					for _, up := range []bool{false, true} {
						if l, ok := blockLaw(points, block{w, h, d, e.root, up, e.name}); ok {
							all = append(all, l)
						}
					}
				}
			}
		}
	}
	return all
}

// block is the law w (floor(N/g)+h)^d, or that with the ceiling, where g is a root of the number of ranks.
type block struct {
	w, h int64
	d    int
	root int
	up   bool
	edge string
}

// blockLaw finds the extents N for which a block law reproduces all points.
func blockLaw(points []Point, b block) (law, bool) {
	least, most := int64(1), int64(math.MaxInt64)
	for _, p := range points {
		g, ok := root(p.Ranks, b.root)
		if !ok {
			return law{}, false
		}
		r, ok := root(int64(p.Value)/b.w, b.d)
		if size := r - b.h; !ok || size < 1 || size > math.MaxInt64/4/g {
			return law{}, false
		} else if b.up {
			least, most = max(least, (size-1)*g+1), min(most, size*g)
		} else {
			least, most = max(least, size*g), min(most, size*g+g-1)
		}
	}
	if least > most {
		return law{}, false
	}
	n := roundest(least, most)
	rounding := "floor"
	if b.up {
		rounding = "ceil"
	}
	text := fmt.Sprintf("%s(%d/%s)", rounding, n, b.edge)
	if b.h != 0 {
		text = fmt.Sprintf("(%s%+d)", text, b.h)
	}
	if b.d > 1 {
		text += fmt.Sprintf("^%d", b.d)
	}
	value := func(n, g int64) float64 {
		size := n / g
		if b.up {
			size = (n + g - 1) / g
		}
		return float64(b.w) * math.Pow(float64(max(size+b.h, 0)), float64(b.d))
	}
	length := math.Log2(float64(n>>bits.TrailingZeros64(uint64(n)))) + 2*math.Abs(float64(b.h))
	if b.up {
		length++
	}
	hasRoots := func(ranks int64) bool { _, ok := root(ranks, b.root); return ok }
	return law{kind: ofBlocks, onLine: b.root == 1, length: length, text: fmt.Sprintf("%d %s", b.w, text),
		hasRoots: hasRoots, value: func(ranks int64) (bounds, bool) {
			g, ok := root(ranks, b.root)
			if !ok || !hasCellForEach(n, g) {
				return bounds{}, false
			}
			return bounds{value(least, g), value(n, g), value(most, g)}, true
		}}, true
}

// roundest returns the number of a range that is divisible by the largest power of two.
func roundest(least, most int64) int64 {
	for step := int64(1) << 62; step > 1; step /= 2 {
		if n := (least + step - 1) / step * step; n >= least && n <= most {
			return n
		}
	}
	return least
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	if a < 0 {
		return -a
	}
	return a
}

// byLaws predicts by the exact laws that have a value at a rank count. If their evidence is thin, or one gives a value
// that cannot be, the interval includes that of least squares.
func (c *Curve) byLaws(ranks int64, laws []law, thin bool) Prediction {
	zero := 0.0
	p := Prediction{Ranks: ranks, Form: Exact, Low: math.Inf(1), High: math.Inf(-1), LeaveOneOut: &zero,
		RollingOrigin: &zero, Alternatives: []Alternative{}, Warnings: []Warning{}}
	possible := c.addLaws(&p, laws)
	p.Warnings = append(p.Warnings, c.table.warnings(ranks)...)
	if p.Low < p.High {
		p.Warnings = append(p.Warnings, c.table.lawsDiffer(ranks, laws))
	}
	if thin || !possible && p.Low == p.High {
		f := c.byForms(ranks)
		p.Low, p.High = math.Floor(math.Min(p.Low, f.Low)), math.Ceil(math.Max(p.High, f.High)) // values are whole
		p.Alternatives = append(p.Alternatives, f.alternative())
		if w := uncertainty(&p); w != nil {
			p.Warnings = append(p.Warnings, *w)
		}
	}
	p.Exact = p.Low == p.High && possible
	return p
}

// addLaws adds the values of laws to a prediction: of the first one that has one there, bounded by all. All values of
// the table are whole, so a fraction, and a negative value where none was, are no possible values: the program rounds
// somehow, and the values around bound the interval. possible is false if some law gives such a value.
func (c *Curve) addLaws(p *Prediction, laws []law) (possible bool) {
	possible = true
	zero := 0.0
	values := domain{Negative: slices.ContainsFunc(c.table.points, func(p Point) bool { return p.Value < 0 })}
	seen := map[float64]bool{}
	for _, l := range laws {
		s, ok := l.value(p.Ranks)
		if !ok {
			continue
		}
		possible = possible && values.has(s.value)
		value := values.nearest(s.value)
		s.low, s.high = values.outward(s.low, s.high)
		p.Low, p.High = math.Min(p.Low, s.low), math.Max(p.High, s.high)
		switch {
		case len(seen) == 0:
			p.Value, p.Formula = value, l.text
		case !seen[s.value]:
			p.Alternatives = append(p.Alternatives,
				Alternative{Form: Exact, Formula: l.text, Value: value, LeaveOneOut: &zero})
		}
		seen[s.value] = true
	}
	return possible
}
