package law

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/commq/commq/predict/pattern"
)

// Sum is a constant plus multiples of features.
type Sum struct {
	Constant int64
	Terms    []Term
	cost     float64 // description length in bits
}

// Term is a multiple of a feature.
type Term struct {
	Times   int64
	Feature Feature
}

// Limits of sums; costs are in bits.
const (
	sumMargin  = 3  // sums may cost this much more than the simplest one
	sumSurplus = 2  // the samples must have this much more information than the sum costs
	maxFactor  = 64 // largest multiple of a feature
	leastShown = 4  // values of two features, or of a product of two, that show a sum: fewer fit many
)

// String writes the sum as a formula.
func (s *Sum) String() string {
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

func (s *Sum) evaluate(p *Point) (int64, bool) {
	v := s.Constant
	for _, t := range s.Terms {
		x, ok := t.Feature.evaluate(p)
		if !ok {
			return 0, false
		}
		v += t.Times * x
	}
	return v, true
}

// roundedOtherwise returns those of some sums that have logarithms, with these rounded down, or halves of extents,
// rounded up, if they fit all samples then: runs on powers of two, or with even extents, do not show how a program
// rounds.
func roundedOtherwise(sums []Sum, samples []Sample) (all []Sum) {
	for _, s := range sums {
		rounds := false
		s.Terms = slices.Clone(s.Terms)
		for i := range s.Terms {
			other, has := s.Terms[i].Feature.roundedOtherwise()
			s.Terms[i].Feature, rounds = other, rounds || has
		}
		if rounds && s.isAlways(samples) {
			all = append(all, s)
		}
	}
	return all
}

// findSums returns the sums of at most two features, or of a product of two, that fit all samples and are simpler than
// the samples, the simplest first.
func findSums(samples []Sample, grid *pattern.Grid) (found []Sum) {
	if found = findSumsOf(samples, features(&samples[0].Point, grid)); len(found) == 0 {
		found = findSumsOf(samples, wrappedFeatures(&samples[0].Point, grid))
	}
	return withProducts(found, samples, grid)
}

// withProducts adds to sums the multiples of a product that fit all samples and are about as simple, or simpler; to sums
// of two features those of a product and one of its factors, too. Sums that are less simple stay as rivals of them: on
// few numbers of ranks they are the same. A product comes first, or alone, only if it has leastShown values or more.
func withProducts(found []Sum, samples []Sample, grid *pattern.Grid) []Sum {
	columns, varying := varyingFeatures(samples, productFeatures(grid))
	available := information(samples)
	var shown, others []Sum
	add := func(s Sum, isShown bool) {
		s.cost = sumCost(&s)
		switch isShown = isShown && s.cost+sumSurplus <= available+numberCost(s.Constant); {
		case isShown && (len(found) == 0 || s.cost < found[0].cost):
			shown = append(shown, s)
		case len(found) > 0 && s.cost <= found[0].cost+sumMargin:
			others = append(others, s)
		}
	}
	for i, f := range varying {
		if c, ok := solveLine(samples, columns[i]); ok {
			add(Sum{Constant: c[0], Terms: []Term{{c[1], f}}}, hasValues(columns[i], leastShown))
		}
		if len(found) == 0 || len(found[0].Terms) < 2 {
			continue
		}
		one, with := f, *f.With
		one.With = nil
		factors, of := varyingFeatures(samples, []Feature{one, with})
		for k := range of { // (P-1) log2 P and P (log2 P + 1) are on planes of P and log2 P, too
			if c, ok := solvePlane(samples, columns[i], factors[k]); ok {
				add(Sum{Constant: c[0], Terms: []Term{{c[1], f}, {c[2], of[k]}}}, true)
			}
		}
	}
	slices.SortStableFunc(shown, func(a, b Sum) int { return cmp.Compare(a.cost, b.cost) })
	return slices.Concat(shown, found, others)
}

// hasValues reports whether a column has so many different values.
func hasValues(column []int64, atLeast int) bool {
	values := map[int64]bool{}
	for _, v := range column {
		values[v] = true
	}
	return len(values) >= atLeast
}

func findSumsOf(samples []Sample, candidates []Feature) (found []Sum) {
	columns, varying := varyingFeatures(samples, candidates)
	available := information(samples)
	var weak []Sum // the samples have too little information to show them
	add := func(s Sum) {
		if s.cost = sumCost(&s); s.cost+sumSurplus <= available+numberCost(s.Constant) {
			found = append(found, s)
		} else {
			weak = append(weak, s)
		}
	}
	for i := range varying {
		if c, ok := solveLine(samples, columns[i]); ok {
			add(Sum{Constant: c[0], Terms: []Term{{c[1], varying[i]}}})
		}
	}
	if len(found) == 0 {
		for i := range varying {
			for j := range i {
				if c, ok := solvePlane(samples, columns[j], columns[i]); ok {
					add(Sum{Constant: c[0], Terms: []Term{{c[1], varying[j]}, {c[2], varying[i]}}})
				}
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Sum) int { return cmp.Compare(a.cost, b.cost) })
	for i := range found {
		if found[i].cost > found[0].cost+sumMargin {
			found = found[:i]
			break
		}
	}
	return withSimpler(found, weak)
}

// withSimpler adds to sums that samples show those that fit and are simpler than the first of them: although there is
// too little information to show them, they are its rivals.
func withSimpler(found, weak []Sum) []Sum {
	if len(found) == 0 {
		return nil
	}
	simpler := slices.DeleteFunc(weak, func(s Sum) bool { return s.cost > found[0].cost })
	slices.SortStableFunc(simpler, func(a, b Sum) int { return cmp.Compare(a.cost, b.cost) })
	return append(simpler, found...)
}

// varyingFeatures returns the features that all samples have and that are not constant, with their values.
func varyingFeatures(samples []Sample, candidates []Feature) (columns [][]int64, varying []Feature) {
	for _, f := range candidates {
		column := make([]int64, len(samples))
		ok, varies := true, false
		for i := range samples {
			x, has := f.evaluate(&samples[i].Point)
			column[i], ok = x, ok && has
			varies = varies || x != column[0]
		}
		if ok && varies {
			columns, varying = append(columns, column), append(varying, f)
		}
	}
	return columns, varying
}

// information returns an estimate of the information in the values of samples, in bits.
func information(samples []Sample) float64 {
	values := map[int64]bool{}
	largest := int64(1)
	for _, s := range samples {
		values[s.Value] = true
		largest = max(largest, s.Value, -s.Value)
	}
	return float64(len(values)) * math.Log2(float64(largest)+2)
}

// sumCost returns how many bits it takes to name a sum.
func sumCost(s *Sum) float64 {
	cost := numberCost(s.Constant)
	for _, t := range s.Terms {
		cost += t.Feature.cost() + numberCost(t.Times-1)
		if t.Times < 0 {
			cost += 1 - numberCost(t.Times-1) + numberCost(-t.Times-1)
		}
	}
	return cost
}

// numberCost returns how many bits it takes to name a number.
func numberCost(n int64) float64 {
	if n == 0 {
		return 0
	}
	return 1 + 2*math.Log2(float64(max(n, -n)))
}

// solveLine finds integers with value = c0 + c1 x for all samples.
func solveLine(samples []Sample, x []int64) (c [2]int64, ok bool) {
	k := slices.IndexFunc(x, func(y int64) bool { return y != x[0] })
	dv, dx := samples[k].Value-samples[0].Value, x[k]-x[0]
	if dv == 0 || dv%dx != 0 || tooLarge(dv/dx) {
		return c, false
	}
	c[1] = dv / dx
	c[0] = samples[0].Value - c[1]*x[0]
	for i, s := range samples {
		if s.Value != c[0]+c[1]*x[i] {
			return c, false
		}
	}
	return c, true
}

func tooLarge(factor int64) bool { return factor > maxFactor || factor < -maxFactor }

// solvePlane finds integers with value = c0 + c1 x + c2 y for all samples.
func solvePlane(samples []Sample, x, y []int64) (c [3]int64, ok bool) {
	v0 := samples[0].Value
	first := -1
	for n := 1; n < len(samples); n++ {
		dx, dy, dv := x[n]-x[0], y[n]-y[0], samples[n].Value-v0
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
		ex, ey, ev := x[first]-x[0], y[first]-y[0], samples[first].Value-v0
		d := dx*ey - dy*ex
		if d == 0 {
			continue
		}
		n1, n2 := dv*ey-dy*ev, dx*ev-dv*ex
		if n1%d != 0 || n2%d != 0 {
			return c, false
		}
		c[1], c[2] = n1/d, n2/d
		if c[1] == 0 || c[2] == 0 || tooLarge(c[1]) || tooLarge(c[2]) {
			return c, false
		}
		c[0] = v0 - c[1]*x[0] - c[2]*y[0]
		distinct := map[[2]int64]bool{}
		for i, s := range samples {
			if s.Value != c[0]+c[1]*x[i]+c[2]*y[i] {
				return c, false
			}
			distinct[[2]int64{x[i], y[i]}] = true
		}
		return c, len(distinct) >= leastShown
	}
	return c, false
}
