package predict

import (
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/regress"
)

// loneLaw is of a number of bytes that was seen at one number of ranks alone, the same on all ranks. Nothing shows how it changes. What it is elsewhere
// is said by its kin: laws of other communications of the program, with the axes of their grid in any order, that say this number there.
type loneLaw struct {
	Value int64 `json:"value"`
	Ranks int32 `json:"ranks"`
	Kin   []kin `json:"kin,omitempty"`
}

// kin is a law that has all samples of a lone number.
type kin struct {
	Law  *regress.Law  `json:"law"`
	Grid *pattern.Grid `json:"grid"`
	// Order says which axis of the grid each axis of the law is; Index are the places in loops for which the law is asked.
	Order []int   `json:"order"`
	Index []int32 `json:"index,omitempty"`
	Unit  int64   `json:"unit,omitempty"`
}

// at is what kin say; without kin, the number that was seen, between nothing and no known end. It is exact only where it was seen.
func (l *loneLaw) at(p *point) (said, bool) {
	if p.ranks == l.Ranks {
		return exactly(l.Value), true
	}
	votes := map[int64]int{}
	r := said{value: l.Value, low: l.Value, high: l.Value}
	most := 0
	for i := range l.Kin {
		e, ok := l.Kin[i].at(p)
		if !ok {
			continue
		}
		r.low, r.high = min(r.low, e.low), max(r.high, e.high)
		votes[e.value]++
		most = max(most, votes[e.value])
	}
	if most == 0 {
		r.low, r.high = 0, whole(math.Inf(1))
		return r, true
	}
	values := slices.DeleteFunc(sortedKeys(votes), func(v int64) bool { return votes[v] < most })
	r.value = values[0]
	return r, true
}

func (k *kin) at(p *point) (said, bool) {
	dims, ok := k.Grid.Dims(p.ranks)
	if !ok {
		return said{}, false
	}
	coords, _ := k.Grid.Coords(p.ranks, p.rank)
	e, err := k.Law.At(p.ranks, p.rank, turned(dims, k.Order), turned(coords, k.Order), k.Index)
	if err != nil || e.Low < 0 || math.IsInf(e.High, 0) {
		return said{}, false
	}
	u := max(k.Unit, 1)
	return said{u * whole(e.Value), u * whole(math.Floor(e.Low)), u * whole(math.Ceil(e.High)), e.Exact}, true
}

// turned are the numbers of axes in another order.
func turned(of []int32, order []int) []int32 {
	out := make([]int32, len(order))
	for i, o := range order {
		out[i] = of[o]
	}
	return out
}

// loneValue is a lone law and its samples.
type loneValue struct {
	samples []sample
	law     *loneLaw
}

// mostKinAxes is the largest number of axes of which all orders are tried.
const mostKinAxes = 3

// relate finds the kin of lone numbers among the laws that were settled.
func (v *values) relate(settled []*valueLaw) {
	if len(v.lone) == 0 {
		return
	}
	var all []kin
	seen := map[string]bool{}
	for _, l := range settled {
		for _, k := range l.kin(nil) {
			if text := k.text(); !seen[text] {
				seen[text] = true
				all = append(all, k)
			}
		}
	}
	for _, o := range v.lone {
		for _, k := range all {
			for _, order := range orders(len(k.Order)) {
				k.Order = order
				if k.has(o.samples) {
					o.law.Kin = append(o.law.Kin, k)
				}
			}
		}
	}
}

// text tells kin apart.
func (k *kin) text() string {
	return k.Grid.String() + " " + k.Law.String() + " " + fmt.Sprint(k.Index)
}

// has says whether the law has all samples.
func (k *kin) has(samples []sample) bool {
	return !slices.ContainsFunc(samples, func(s sample) bool {
		e, ok := k.at(&s.at)
		return !ok || e.value != s.value
	})
}

// kin are the exact laws of blocks of a grid in a law, at each of its places.
func (l *valueLaw) kin(index []int32) (all []kin) {
	switch {
	case l.Root != nil:
		return append(l.Root.kin(index), l.Others.kin(index)...)
	case len(l.Places) > 0:
		for _, p := range l.Places {
			all = append(all, p.Law.kin(p.Index)...)
		}
	case l.Group != nil && l.Group.exact && l.Group.Grid != nil && !l.Group.Peer && len(l.Group.Keep) == len(index) && l.Group.Grid.Axes <= mostKinAxes:
		all = append(all, kin{Law: l.Group.Law, Grid: l.Group.Grid, Order: orders(l.Group.Grid.Axes)[0], Index: index, Unit: l.Group.Unit})
	}
	return all
}

// orders are all orders of the first numbers, the ascending one first.
func orders(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, o := range orders(n - 1) {
		for at := n - 1; at >= 0; at-- {
			all = append(all, slices.Insert(slices.Clone(o), at, n-1))
		}
	}
	return all
}
