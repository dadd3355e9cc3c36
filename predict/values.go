package predict

import (
	"fmt"
	"math"
	"slices"

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
	dims, coord []int32 // of the grid that goes with it; nil: none
	peer        []int32 // coordinates of the other side; nil: none
	index       []int32 // iterations of loops
	root        bool    // the rank is the collective's root
}

// said is what a law says of a point.
type said struct {
	value, low, high int64
	exact            bool
}

// valueLaw says a number for any point.
type valueLaw struct {
	text  string
	exact bool // it has all samples
	at    func(p *point) (said, bool)
}

func exactly(v int64) (said, bool) { return said{v, v, v, true}, true }

// fitValue finds a law of samples. Laws that have all samples come first, the simplest of them; where none has, there are those of each place in the
// loops by the number of ranks alone, by least squares, which only bound.
func fitValue(samples []sample) *valueLaw {
	if len(samples) == 0 {
		return &valueLaw{text: "nothing", exact: true, at: func(*point) (said, bool) { return said{}, false }}
	}
	if l := constantLaw(samples); l != nil {
		return l
	}
	if l := rootLaw(samples); l != nil {
		return l
	}
	for _, try := range []func([]sample) *valueLaw{linearLaw, blockLaw, indexLaw, ranksLaw} {
		if l := try(samples); l != nil {
			return l
		}
	}
	return boundLaw(samples)
}

// rootLaw is one law for roots of collectives and one for the other ranks.
func rootLaw(samples []sample) *valueLaw {
	var roots, others []sample
	for _, s := range samples {
		if s.at.root {
			s.at.root = false
			roots = append(roots, s)
		} else {
			others = append(others, s)
		}
	}
	if len(roots) == 0 || len(others) == 0 {
		return nil
	}
	a, b := fitValue(roots), fitValue(others)
	return &valueLaw{text: fmt.Sprintf("%s at the root, else %s", a.text, b.text), exact: a.exact && b.exact, at: func(p *point) (said, bool) {
		if p.root {
			return a.at(p)
		}
		return b.at(p)
	}}
}

func constantLaw(samples []sample) *valueLaw {
	v := samples[0].value
	for _, s := range samples {
		if s.value != v {
			return nil
		}
	}
	return &valueLaw{text: fmt.Sprint(v), exact: true, at: func(*point) (said, bool) { return exactly(v) }}
}

// feature is a number that a linear law may depend on.
type feature struct {
	name string
	of   func(p *point) (int64, bool)
}

func features(p *point) (all []feature) {
	at := func(name string, of func(p *point) []int32, n int) {
		for i := range n {
			all = append(all, feature{fmt.Sprintf("%s%d", name, i), func(p *point) (int64, bool) {
				if l := of(p); i < len(l) {
					return int64(l[i]), true
				}
				return 0, false
			}})
		}
	}
	at("i", func(p *point) []int32 { return p.index }, len(p.index))
	at("x", func(p *point) []int32 { return p.coord }, len(p.coord))
	at("peer x", func(p *point) []int32 { return p.peer }, len(p.peer))
	at("g", func(p *point) []int32 { return p.dims }, len(p.dims))
	all = append(all, feature{"rank", func(p *point) (int64, bool) { return int64(p.rank), true }},
		feature{"P", func(p *point) (int64, bool) { return int64(p.ranks), true }})
	return all
}

// linearLaw is c0 + c1 f1, or c0 + c1 f1 + c2 f2, with whole c of features: tags are like that.
func linearLaw(samples []sample) *valueLaw {
	all := features(&samples[0].at)
	none := feature{"", func(*point) (int64, bool) { return 0, true }}
	for i, f := range all {
		if l := linearIn(samples, f, none); l != nil {
			return l
		}
		for _, g := range all[:i] {
			if l := linearIn(samples, g, f); l != nil {
				return l
			}
		}
	}
	return nil
}

// leastForLinear is how many more samples than coefficients a linear law must have that differ.
const leastForLinear = 3

func linearIn(samples []sample, f, g feature) *valueLaw {
	type pair struct{ f, g int64 }
	seen := map[pair]int64{}
	var order []pair
	for _, s := range samples {
		x, ok := f.of(&s.at)
		y, also := g.of(&s.at)
		if !ok || !also {
			return nil
		}
		v, known := seen[pair{x, y}]
		if known && v != s.value {
			return nil
		}
		if !known {
			seen[pair{x, y}] = s.value
			order = append(order, pair{x, y})
		}
	}
	coefficients := 2
	if g.name != "" {
		coefficients = 3
	}
	if len(order) < coefficients+leastForLinear {
		return nil
	}
	a := order[0]
	var c1, c2 int64
	solved := false
	for i := 1; i < len(order) && !solved; i++ { // two differences that are independent
		for j := 0; j < i; j++ {
			p, q := order[i], order[j]
			df, dg, dv := p.f-a.f, p.g-a.g, seen[p]-seen[a]
			ef, eg, ev := q.f-a.f, q.g-a.g, seen[q]-seen[a]
			if g.name == "" {
				if df == 0 || dv%df != 0 {
					continue
				}
				c1, solved = dv/df, true
				break
			}
			d := df*eg - dg*ef
			if d == 0 {
				continue
			}
			n1, n2 := dv*eg-dg*ev, df*ev-dv*ef
			if n1%d != 0 || n2%d != 0 {
				return nil
			}
			c1, c2, solved = n1/d, n2/d, true
			break
		}
	}
	if !solved || g.name != "" && (c1 == 0 || c2 == 0) {
		return nil
	}
	c0 := seen[a] - c1*a.f - c2*a.g
	for p, v := range seen {
		if v != c0+c1*p.f+c2*p.g {
			return nil
		}
	}
	text := fmt.Sprintf("%d%+d %s", c0, c1, f.name)
	if g.name != "" {
		text += fmt.Sprintf("%+d %s", c2, g.name)
	}
	return &valueLaw{text: text, exact: true, at: func(p *point) (said, bool) {
		x, ok := f.of(p)
		y, also := g.of(p)
		if !ok || !also {
			return said{}, false
		}
		return exactly(c0 + c1*x + c2*y)
	}}
}

// block is the length of part x of n cut into g parts, the first ones longer.
func block(n, g, x int64) int64 {
	b := n / g
	if x < n%g {
		b++
	}
	return b
}

// Bounds of block laws.
const (
	mostExtent = 1 << 12
	leastHalo  = -2
	mostHalo   = 4
)

// axisLaw is a factor of a block law: the length of the rank's part of an axis with halo, or (axis < 0) nothing.
type axisLaw struct {
	axis    int
	n, halo int64
}

func (a axisLaw) of(p *point) int64 {
	return block(a.n, int64(p.dims[a.axis]), int64(p.coord[a.axis])) + a.halo
}

// blockLaw is w times the lengths of parts of one or two axes. All laws that have the samples are kept, so that where they differ there is an interval.
func blockLaw(samples []sample) *valueLaw {
	axes := len(samples[0].at.dims)
	if axes == 0 {
		return nil
	}
	type key struct {
		x [3][2]int32
	}
	distinct := map[key]sample{}
	for _, s := range samples {
		if len(s.at.dims) != axes || axes > 3 {
			return nil
		}
		var k key
		for a := range axes {
			k.x[a] = [2]int32{s.at.dims[a], s.at.coord[a]}
		}
		if d, known := distinct[k]; known && d.value != s.value {
			return nil
		}
		distinct[k] = s
	}
	var list []sample
	for _, s := range distinct {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b sample) int {
		return int(a.at.ranks-b.at.ranks)*1<<16 + int(a.at.rank-b.at.rank)
	})
	if len(list) < 4 {
		return nil
	}
	var found [][]axisLaw
	var weights []int64
	fits := func(laws ...axisLaw) {
		w := int64(0)
		for i := range list {
			size := int64(1)
			for _, l := range laws {
				size *= l.of(&list[i].at)
			}
			switch {
			case size <= 0 || list[i].value%size != 0 || i > 0 && list[i].value/size != w:
				return
			}
			w = list[i].value / size
		}
		if w%4 == 0 {
			found, weights = append(found, slices.Clone(laws)), append(weights, w)
		}
	}
	for a := range axes {
		for n := int64(1); n <= mostExtent; n++ {
			for h := int64(leastHalo); h <= mostHalo; h++ {
				fits(axisLaw{a, n, h})
			}
		}
	}
	if len(found) == 0 {
		for a := range axes {
			for b := range a {
				for n := int64(2); n <= mostExtent/4; n++ {
					for h := int64(leastHalo); h <= mostHalo; h++ {
						for k := int64(leastHalo); k <= mostHalo; k++ {
							fits(axisLaw{a, n, h}, axisLaw{b, n, k})
						}
					}
				}
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	text := fmt.Sprint(weights[0])
	for _, l := range found[0] {
		text += fmt.Sprintf(" (block(%d,g%d,x%d)%+d)", l.n, l.axis, l.axis, l.halo)
	}
	if len(found) > 1 {
		text += fmt.Sprintf(" or %d others", len(found)-1)
	}
	return &valueLaw{text: text, exact: true, at: func(p *point) (said, bool) {
		if len(p.dims) != axes {
			return said{}, false
		}
		var r said
		for i, laws := range found {
			v := weights[i]
			for _, l := range laws {
				v *= l.of(p)
			}
			if i == 0 {
				r = said{v, v, v, true}
			}
			r.low, r.high = min(r.low, v), max(r.high, v)
		}
		r.exact = r.low == r.high
		return r, true
	}}
}

// indexLaw is a number for each place in the loops, whatever the rank and the number of ranks; of places that no run has, one that grows by a constant
// or a factor.
func indexLaw(samples []sample) *valueLaw {
	if len(samples[0].at.index) == 0 {
		return nil
	}
	by := map[string]int64{}
	line := map[int64]int64{} // by the last index, where that is all there is
	for _, s := range samples {
		k := fmt.Sprint(s.at.index)
		if v, known := by[k]; known && v != s.value {
			return nil
		}
		by[k] = s.value
		line[int64(s.at.index[len(s.at.index)-1])] = s.value
	}
	single := len(samples[0].at.index) == 1 && len(line) >= 3
	first, ratio, step := int64(0), int64(0), int64(0)
	geometric, arithmetic := single, single
	if single {
		keys := sortedKeys(line)
		first = keys[0]
		a, b := line[keys[0]], line[keys[1]]
		step = b - a
		if a > 0 && b%a == 0 {
			ratio = b / a
		}
		for i, k := range keys {
			if k != first+int64(i) {
				arithmetic, geometric = false, false
				break
			}
			arithmetic = arithmetic && line[k] == a+int64(i)*step
			geometric = geometric && ratio > 0 && (i == 0 || line[k] == line[keys[i-1]]*ratio)
		}
	}
	return &valueLaw{text: fmt.Sprintf("one of %d by place", len(by)), exact: true, at: func(p *point) (said, bool) {
		if v, known := by[fmt.Sprint(p.index)]; known {
			return exactly(v)
		}
		if len(p.index) == 0 {
			return said{}, false
		}
		i := int64(p.index[len(p.index)-1]) - first
		switch {
		case arithmetic:
			return exactly(line[first] + i*step)
		case geometric && i >= 0 && i < 40:
			v := line[first]
			for range i {
				v *= ratio
			}
			return exactly(v)
		}
		return said{}, false
	}}
}

// ranksLaw is a number for each place in the loops that depends on the number of ranks alone.
func ranksLaw(samples []sample) *valueLaw {
	l := byRanks(samples)
	if l == nil || !l.exact {
		return nil
	}
	return l
}

// boundLaw is the same, where ranks differ, of the mean over ranks: it is never exact.
func boundLaw(samples []sample) *valueLaw { return byRanks(samples) }

func byRanks(samples []sample) *valueLaw {
	type sums struct {
		sum, n, low, high int64
	}
	places := map[string]map[int32]*sums{}
	exact := true
	for _, s := range samples {
		k := fmt.Sprint(s.at.index)
		if places[k] == nil {
			places[k] = map[int32]*sums{}
		}
		x := places[k][s.at.ranks]
		if x == nil {
			x = &sums{low: s.value, high: s.value}
			places[k][s.at.ranks] = x
		}
		exact = exact && x.low == s.value
		x.sum += s.value
		x.n++
		x.low, x.high = min(x.low, s.value), max(x.high, s.value)
	}
	curves := map[string]*regress.Curve{}
	text := ""
	for _, k := range sortedKeys(places) {
		var points []regress.Point
		for _, ranks := range sortedKeys(places[k]) {
			x := places[k][ranks]
			points = append(points, regress.Point{Ranks: int64(ranks), Value: float64(x.sum) / float64(x.n)})
		}
		c, err := regress.Fit(points)
		if err != nil {
			continue
		}
		curves[k] = c
		if text == "" {
			text = c.At(points[len(points)-1].Ranks).Formula
		}
	}
	if len(curves) > 1 {
		text = fmt.Sprintf("%d laws by place, the first %s", len(curves), text)
	}
	type key struct {
		ranks int32
		place string
	}
	answers := map[key]said{} // a curve is asked once for each number of ranks
	return &valueLaw{text: text, exact: exact, at: func(p *point) (said, bool) {
		k := key{p.ranks, fmt.Sprint(p.index)}
		if s, known := answers[k]; known {
			return s, true
		}
		c := curves[k.place]
		if c == nil {
			return said{}, false
		}
		q := c.At(int64(p.ranks))
		s := said{int64(math.Round(q.Value)), int64(math.Floor(q.Low)), int64(math.Ceil(q.High)), exact && q.Exact}
		answers[k] = s
		return s, true
	}}
}
