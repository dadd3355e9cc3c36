package law

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/regress"
)

// SingleLaw is the law of a size that was seen at only one number of ranks, equal on all of them, so that nothing shows
// how it changes. Relatives suggest its value elsewhere: they are laws of other communications that give the same size
// there, with the axes of their grid in some order.
type SingleLaw struct {
	Value     int64 // the size that was seen
	Ranks     int32 // the number of ranks at which it was seen
	Relatives []relative
}

// relative is a law that fits all samples of a single size.
type relative struct {
	law  *regress.Law
	grid *pattern.Grid
	// order has, for each axis of the law, the axis of the grid.
	order []int
	index []int32 // the place for which the law is evaluated
}

// Evaluate returns the value that most relatives have, the smallest of several. No run shows which of them are right, or
// whether any is: the bounds cover all of them, widened by the ratio of the numbers of ranks. Without relatives it
// returns the value that was seen, without an upper bound. It is exact only at the number of ranks where the size was
// seen.
func (l *SingleLaw) Evaluate(p *Point) (Estimate, bool) {
	if p.Ranks == l.Ranks {
		return Exactly(l.Value), true
	}
	votes := map[int64]int{}
	r := Estimate{Value: l.Value, Low: l.Value, High: l.Value}
	most := 0
	for i := range l.Relatives {
		e, ok := l.Relatives[i].evaluate(p)
		if !ok {
			continue
		}
		r.Low, r.High = min(r.Low, e.Low), max(r.High, e.High)
		votes[e.Value]++
		most = max(most, votes[e.Value])
	}
	if most == 0 {
		r.Low, r.High = 0, round(math.Inf(1))
		return r, true
	}
	for _, v := range slices.Sorted(maps.Keys(votes)) {
		if votes[v] == most {
			r.Value = v
			break
		}
	}
	less, more := float64(min(p.Ranks, l.Ranks)), float64(max(p.Ranks, l.Ranks))
	r.Low, r.High = round(math.Floor(float64(r.Low)*less/more)), round(math.Ceil(float64(r.High)*more/less))
	return r, true
}

func (k *relative) evaluate(p *Point) (Estimate, bool) {
	dims, ok := k.grid.Dims(p.Ranks)
	if !ok {
		return Estimate{}, false
	}
	coords, _ := k.grid.Coords(p.Ranks, p.Rank)
	e, err := k.law.Predict(p.Ranks, p.Rank, permute(dims, k.order), permute(coords, k.order), k.index)
	if err != nil || e.Low < 0 || math.IsInf(e.High, 0) {
		return Estimate{}, false
	}
	return Estimate{round(e.Value), round(math.Floor(e.Low)), round(math.Ceil(e.High)), e.Exact}, true
}

// permute returns the numbers of axes in another order.
func permute(numbers []int32, order []int) []int32 {
	permuted := make([]int32, len(order))
	for i, axis := range order {
		permuted[i] = numbers[axis]
	}
	return permuted
}

// singleSamples are the samples of a single size.
type singleSamples struct {
	samples []Sample
	law     *SingleLaw
}

// maxPermutedAxes is the largest number of axes of which all orders are tried.
const maxPermutedAxes = 3

// relateSingles finds the relatives of single sizes among the laws that were settled.
func (f *Fitter) relateSingles(settled []*Law) {
	if len(f.single) == 0 {
		return
	}
	var all []relative
	seen := map[string]bool{}
	for _, l := range settled {
		for _, k := range l.asRelatives(nil) {
			if key := k.key(); !seen[key] {
				seen[key] = true
				all = append(all, k)
			}
		}
	}
	for _, s := range f.single {
		for _, k := range all {
			for _, order := range permutations(len(k.order)) {
				k.order = order
				if k.fitsAll(s.samples) {
					s.law.Relatives = append(s.law.Relatives, k)
				}
			}
		}
	}
}

// key tells relatives apart.
func (k *relative) key() string {
	return k.grid.String() + " " + k.law.String() + " " + fmt.Sprint(k.index)
}

// fitsAll reports whether the law has the value of each sample.
func (k *relative) fitsAll(samples []Sample) bool {
	return !slices.ContainsFunc(samples, func(s Sample) bool {
		e, ok := k.evaluate(&s.Point)
		return !ok || e.Value != s.Value
	})
}

// asRelatives returns the exact laws of blocks of a grid that a law consists of, at each of its places. index is the
// place of the law itself.
func (l *Law) asRelatives(index []int32) (all []relative) {
	switch {
	case l.Root != nil:
		return append(l.Root.asRelatives(index), l.Others.asRelatives(index)...)
	case len(l.Places) > 0:
		for _, p := range l.Places {
			all = append(all, p.Law.asRelatives(p.Index)...)
		}
	case l.Group != nil && l.Group.exact && l.Group.Grid != nil && !l.Group.Peer && len(l.Group.Keep) == len(index) &&
		l.Group.Grid.Axes <= maxPermutedAxes:
		all = append(all, relative{law: l.Group.Law, grid: l.Group.Grid, order: permutations(l.Group.Grid.Axes)[0],
			index: index})
	}
	return all
}

// permutations returns all orders of the numbers below n, the ascending one first.
func permutations(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, p := range permutations(n - 1) {
		for i := n - 1; i >= 0; i-- {
			all = append(all, slices.Insert(slices.Clone(p), i, n-1))
		}
	}
	return all
}
