package regress

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// law is an exact integer law that has every value of a table.
type law struct {
	// at is what it says of a number of ranks; low and high differ from value where the points leave a number of it open. ok is false where it
	// says nothing: a root that is not whole.
	at func(ranks int64) (s said, ok bool)
	// bits is the evidence for it: of the values that its coefficients did not need, less those of the laws of its kind that were tried.
	bits float64
	kind int // simplest first
	// length of a block law is what it takes to say it, in bits or so: programs' extents are round, and halos thin.
	length float64
	text   string // P is the number of ranks
}

// said is a law's value at a number of ranks.
type said struct{ low, value, high float64 }

// enough is the evidence in bits from which on a law stands alone. Below, what least squares say belongs to the interval: small numbers of
// few runs follow many laws.
const enough = 7

// whole is an integer function of the number of ranks; ok is false where it has no value.
type whole struct {
	name string
	at   func(ranks int64) (num, den int64, ok bool)
}

// root is the integer whose k-th power is x.
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

// edges are the edge of a line, square and cube of ranks.
var edges = []struct {
	name string
	root int
}{{"P", 1}, {"sqrt(P)", 2}, {"cbrt(P)", 3}}

// wholes are the functions that exact laws are made of, simplest first.
func wholes() (all []whole) {
	for _, e := range edges {
		of := func(name string, f func(g int64) (num, den int64)) {
			all = append(all, whole{name, func(ranks int64) (int64, int64, bool) {
				g, ok := root(ranks, e.root)
				if !ok || g > 1<<20 {
					return 0, 0, false
				}
				num, den := f(g)
				return num, den, true
			}})
		}
		of(e.name, func(g int64) (int64, int64) { return g, 1 })
		of("1/"+e.name, func(g int64) (int64, int64) { return 1, g })
		of("("+e.name+"-1)", func(g int64) (int64, int64) { return g - 1, 1 })
		of("("+e.name+"-1)/"+e.name, func(g int64) (int64, int64) { return g - 1, g })
		of("("+e.name+"-1)/"+e.name+"^2", func(g int64) (int64, int64) { return g - 1, g * g })
		of(e.name+"^2", func(g int64) (int64, int64) { return g * g, 1 })
		of("1/"+e.name+"^2", func(g int64) (int64, int64) { return 1, g * g })
		of(e.name+" ("+e.name+"-1)", func(g int64) (int64, int64) { return g * (g - 1), 1 })
		if e.root > 1 {
			of("1/"+e.name+"^3", func(g int64) (int64, int64) { return 1, g * g * g })
		}
	}
	logs := func(name string, f func(p, l int64) (num, den int64), up bool, whole_ bool) {
		all = append(all, whole{name, func(ranks int64) (int64, int64, bool) {
			l := int64(0)
			for 1<<(l+1) <= ranks {
				l++
			}
			if exact := 1<<l == ranks; whole_ && !exact {
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

// exactLaws are the laws that have all the points, simplest first; none where values are not whole or differ at one number of ranks.
func exactLaws(points []Point) (all []law) {
	most := 0.0
	for i, p := range points {
		if p.Value != math.Trunc(p.Value) || math.Abs(p.Value) >= 1<<53 || i > 0 && p.Ranks == points[i-1].Ranks && p.Value != points[i-1].Value {
			return nil
		}
		most = max(most, math.Abs(p.Value))
	}
	points = slices.CompactFunc(slices.Clone(points), func(a, b Point) bool { return a.Ranks == b.Ranks })
	if l, ok := constantLaw(points, most); ok {
		return []law{l} // and every other law with nothing that changes
	}
	shapes := wholes()
	for _, w := range shapes {
		if l, ok := scaledLaw(points, w); ok {
			l.bits = evidence(points, 1, most, len(shapes))
			all = append(all, l)
		}
	}
	if len(all) == 0 && len(points) > 2 {
		for _, w := range shapes {
			if l, ok := affineLaw(points, w); ok {
				l.bits = evidence(points, 2, most, len(shapes))
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

// evidence is how many bits speak for a law: each value beyond those that its coefficients need would by chance be any number up to the
// largest, and so many laws of the kind were tried.
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
	return law{text: number(y), bits: max(evidence(points, 1, most, 1), float64(enough*min(len(points)-2, 1))),
		at: func(int64) (said, bool) { return said{y, y, y}, true }}, true
}

// scaledLaw is c g(P).
func scaledLaw(points []Point, w whole) (law, bool) {
	var c *big.Rat
	for _, p := range points {
		num, den, ok := w.at(p.Ranks)
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
	return law{kind: 1, text: ratText(c) + " " + w.name, at: func(ranks int64) (said, bool) {
		num, den, ok := w.at(ranks)
		if !ok {
			return said{}, false
		}
		y, _ := new(big.Rat).Mul(c, big.NewRat(num, den)).Float64()
		return said{y, y, y}, true
	}}, true
}

// oddest is the largest denominator of a coefficient of an affine law: halves, thirds, quarters.
const oddest = 12

// affineLaw is a + b g(P), with coefficients that are whole but for a small denominator.
func affineLaw(points []Point, w whole) (law, bool) {
	var x, y []*big.Rat
	for _, p := range points {
		num, den, ok := w.at(p.Ranks)
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
	if !a.Denom().IsInt64() || !b.Denom().IsInt64() || a.Denom().Int64() > oddest || b.Denom().Int64() > oddest {
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
	return law{kind: 2, text: ratText(a) + sign + ratText(new(big.Rat).Abs(b)) + " " + w.name, at: func(ranks int64) (said, bool) {
		num, den, ok := w.at(ranks)
		if !ok {
			return said{}, false
		}
		y, _ := value(big.NewRat(num, den)).Float64()
		return said{y, y, y}, true
	}}, true
}

func ratText(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return "(" + r.RatString() + ")"
}

// mostUnit is the largest w of a block law that is tried.
const mostUnit = 1 << 16

// blockLaws are w (block+h)^d, block the floor or ceiling of N/g for the edge g of a line, square or cube of ranks.
func blockLaws(points []Point) (all []law) {
	var common int64
	for _, p := range points {
		if p.Value < 0 {
			return nil
		}
		common = gcd(common, int64(p.Value))
	}
	for w := min(common, mostUnit); w > 0; w-- {
		if common%w != 0 {
			continue
		}
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

// block is w (floor(N/g)+h)^d, or with the ceiling, g the root of the number of ranks.
type block struct {
	w, h int64
	d    int
	root int
	up   bool
	edge string
}

// blockLaw finds the extents N with which a block law has all points.
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
	at := func(n, g int64) float64 {
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
	return law{kind: 3, length: length, text: fmt.Sprintf("%d %s", b.w, text), at: func(ranks int64) (said, bool) {
		g, ok := root(ranks, b.root)
		if !ok || n < g { // fewer cells than ranks: the program divides them otherwise, or does not run
			return said{}, false
		}
		return said{at(least, g), at(n, g), at(most, g)}, true
	}}, true
}

// roundest is the number of a range that most powers of two divide, then the smallest.
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

// byLaws predicts by the exact laws that say something of a number of ranks; thin ones share the interval with least squares.
func (c *Curve) byLaws(ranks int64, laws []law, thin bool) Prediction {
	p := Prediction{Ranks: ranks, Form: Exact, Alternatives: []Alternative{}, Warnings: []Warning{}}
	zero := 0.0
	first := true
	said := map[float64]bool{}
	for _, l := range laws {
		s, ok := l.at(ranks)
		if !ok {
			continue
		}
		if first {
			p.Value, p.Low, p.High, p.Formula, first = s.value, s.low, s.high, l.text, false
			said[s.value] = true
			continue
		}
		p.Low, p.High = math.Min(p.Low, s.low), math.Max(p.High, s.high)
		if !said[s.value] {
			said[s.value] = true
			p.Alternatives = append(p.Alternatives, Alternative{Form: Exact, Formula: l.text, Value: s.value, LeaveOneOut: &zero})
		}
	}
	p.LeaveOneOut, p.RollingOrigin = &zero, &zero
	p.Warnings = append(p.Warnings, c.warnings(ranks)...)
	if p.Low < p.High {
		p.Warnings = append(p.Warnings, c.lawsDiffer(ranks, laws))
	}
	if thin {
		f := c.byForms(ranks)
		p.Low, p.High = math.Min(p.Low, f.Low), math.Max(p.High, f.High)
		p.Alternatives = append(p.Alternatives, f.alternative())
		if w := c.uncertain(&p); w != nil {
			p.Warnings = append(p.Warnings, *w)
		}
	}
	p.Exact = p.Low == p.High
	return p
}
