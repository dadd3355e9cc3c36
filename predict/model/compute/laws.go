// Package compute finds the laws of compute times: how long ranks compute before each call, at any number of ranks
// (sections 4.1 and 4.2 of the paper, "computation pattern").
//
// For each site (event) there is a law of the mean time over ranks and calls against the number of ranks: laws.go. If
// instructions and cycles were counted, it is the sum of two laws, of execution and of stalls: split.go. Slots with
// much compute time get a law of their own, others take a fixed share of the site's mean. Ranks at the ends of a
// process grid, the last one or a half of them often compute longer than others: a site's laws are of a reference
// role, and each other role has a factor, roles.go, found in divide.go. What ranks differ by beyond that is chance,
// spread.go. fit.go collects the times of the runs; predict.go applies the laws to a run at another number of ranks.
package compute

import (
	"maps"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/regress"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/slots"
)

// Laws are the laws of a program's compute times.
type Laws struct {
	// Refused is the reason if compute times are not predicted.
	Refused string
	// Doubt is the reason if the times of the training runs may include those of other ranks. There are laws all the
	// same; they are refused until AcceptDoubt is called.
	Doubt string

	clock string              // the compute clock of the training runs
	sites map[int32]*siteLaws // by event
	total *timeLaw            // of all that a rank computes
	// spread has the times of ranks relative to the mean, least first: by chance some ranks
	// compute longer than others at all sites. It is nil if that is unknown or small.
	spread []float64
}

// Clock returns the compute clock of predicted runs: that of the training runs, "none" if compute times are not
// predicted.
func (c *Laws) Clock() string {
	if c.Refused != "" {
		return "none"
	}
	return c.clock
}

// AcceptDoubt has compute times predicted in spite of Doubt.
func (c *Laws) AcceptDoubt() {
	if c.Doubt != "" {
		c.Refused = ""
	}
}

// siteLaws are the laws of the times before the calls of an event.
type siteLaws struct {
	// mean is the law of the mean over ranks and calls, divided by the factors of the ranks' roles.
	mean *timeLaw
	// slots have laws of their own; the times of the others are shares of the mean.
	slots  map[slots.Place]*timeLaw
	shares map[slots.Place]float64
	sorted []slots.Place // of shares; made when it is first needed
	// roles has, by role, the time of a rank relative to the reference role's, see roleFactor; empty if all ranks
	// compute equally long.
	roles map[string]float64
	grid  *pattern.Grid // for roles; nil: a line of all ranks
	// noise is the spread of times around their mean, own around the mean of each rank; nil if unknown. shared is how
	// far ranks have the same noise, see signature.Times.
	noise, own *signature.Spread
	shared     int64
}

// slotLaw returns the law for a slot, and the slot's share of it. A slot that no run has is like the nearest one: the
// calls after the first one of a loop are not like the first one where there are more of them. Where no slot has a law
// of its own, it has the site's mean, so that the shares of all slots still add up to the site's time.
func (s *siteLaws) slotLaw(at slots.Place) (l *timeLaw, share float64) {
	if l := s.slots[at]; l != nil {
		return l, 1
	}
	if share, known := s.shares[at]; known {
		return s.mean, share
	}
	if len(s.slots) == 0 || len(s.shares) == 0 {
		return s.mean, 1
	}
	at = s.nearest(at)
	if l := s.slots[at]; l != nil {
		return l, 1
	}
	return s.mean, s.shares[at]
}

// nearest returns the place with a share that is nearest to another one. It compares index by index, outermost first:
// it takes the largest index up to the wanted one, or the least.
func (s *siteLaws) nearest(at slots.Place) slots.Place {
	if s.sorted == nil {
		s.sorted = slices.SortedFunc(maps.Keys(s.shares),
			func(a, b slots.Place) int { return slices.Compare(a[:], b[:]) })
	}
	left := s.sorted
	for c, wanted := range at {
		beyond := sort.Search(len(left), func(i int) bool { return left[i][c] > wanted })
		index := left[max(beyond-1, 0)][c]
		from := sort.Search(len(left), func(i int) bool { return left[i][c] >= index })
		to := sort.Search(len(left), func(i int) bool { return left[i][c] > index })
		left = left[from:to]
	}
	return left[0]
}

// timeLaw is a law of a time in ns against the number of ranks.
type timeLaw struct {
	points    []regress.Point
	curve     func() *regress.Curve // made when it is first needed; nil if there is only one point
	parts     *splitLaw             // nil unless instructions and cycles were counted
	evaluated map[int32]interval
}

// interval is a predicted value with its bounds.
type interval struct{ value, low, high float64 }

// newTimeLaw finds the law of points; nil if there are none.
func newTimeLaw(points []regress.Point) *timeLaw {
	if len(points) == 0 {
		return nil
	}
	return &timeLaw{points: points, evaluated: map[int32]interval{}, curve: sync.OnceValue(func() *regress.Curve {
		c, _ := regress.Fit(points)
		return c
	})}
}

// evaluate returns the time at a number of ranks, not negative. A law of one point returns that, without an upper
// bound.
func (l *timeLaw) evaluate(ranks int32) interval {
	if x, known := l.evaluated[ranks]; known {
		return x
	}
	var x interval
	switch {
	case l.parts != nil:
		x = l.parts.evaluate(ranks)
	case l.curve() == nil:
		x = interval{l.points[0].Value, 0, math.Inf(1)}
	default:
		p := l.curve().Predict(int64(ranks))
		x = interval{max(p.Value, 0), max(p.Low, 0), max(p.High, 0)}
	}
	l.evaluated[ranks] = x
	return x
}

// ForCycleTime reports whether the laws predict for a cycle time that was set, and not for that of the runs.
func (c *Laws) ForCycleTime() bool {
	for _, s := range c.sites {
		if p := s.mean.parts; p != nil && p.machineCycleNs > 0 {
			return true
		}
	}
	return false
}

// SetCycleTime makes the laws predict times on a machine with this real cycle time in ns, if instructions and cycles
// were counted: executed instructions take its cycles, and stalls as long as in the runs. 0 means the cycle time of the
// runs.
func (c *Laws) SetCycleTime(ns float64) {
	for _, s := range c.sites {
		if p := s.mean.parts; p != nil && p.machineCycleNs != ns {
			p.machineCycleNs = ns
			clear(s.mean.evaluated)
		}
	}
}
