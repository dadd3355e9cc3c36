package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/commq/commq/internal/kept"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/models"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/models/simulate/stored"
	"github.com/commq/commq/schema"
)

// whatIf simulates a run with changed rows.
type whatIf struct {
	simulation *stored.Simulation
	baseNs     int64 // time of the unchanged run
	step       func(string)
	memory     int64 // limit in bytes; 0 means none
	bounds     bool  // nothing is simulated: gains are bounds
	kept       *kept.Results
}

// run simulates the run with these changes.
func (w *whatIf) run(ctx context.Context, what string, changes ...*change) (*simulate.Result, error) {
	w.step("simulate: " + what)
	w.change(changes...)
	return w.simulation.Simulate(ctx)
}

// rowBytes is the memory that a row of the run takes while simulated times are explained.
const rowBytes = 64

// explain explains the simulated times of the run with these changes. All its rows are in memory.
func (w *whatIf) explain(ctx context.Context, how critical.Options, changes ...*change) (*critical.Explained, error) {
	if n := w.simulation.Run.Manifest.Counts.Calls; w.memory > 0 && n*rowBytes > w.memory {
		return nil, fmt.Errorf("simulated times of %s would take %s of memory; the limit is %s", units.Count(n, "call"),
			units.Bytes(n*rowBytes), units.Bytes(w.memory))
	}
	w.step("simulate")
	w.change(changes...)
	g, result, err := w.simulation.Graph(ctx, how)
	if err != nil {
		return nil, err
	}
	return g.Explain(stored.Finish(result)), nil
}

// change makes the next simulation one with these changes.
func (w *whatIf) change(changes ...*change) { w.applyTo(w.simulation, changes) }

// applyTo makes a simulation one with these changes.
func (w *whatIf) applyTo(s *stored.Simulation, changes []*change) {
	s.Change, s.Keep = fillComputing(s.Run), nil
	// Variation replaces times, the others scale them.
	slices.SortStableFunc(changes, func(a, b *change) int { return cmp.Compare(len(b.each), len(a.each)) })
	for _, c := range changes {
		s.Keep = leastKept(s.Keep, c.keep)
		before := s.Change
		s.Change = func(b *schema.Events) {
			if before != nil {
				before(b)
			}
			c.apply(b)
		}
	}
}

// leastKept keeps the smaller part of the cost of an operation that two changes keep; nil keeps all.
func leastKept(a, b simulate.Keep) simulate.Keep {
	if a == nil || b == nil {
		if a == nil {
			a = b
		}
		return a
	}
	return func(rank int32, seq int64, site int32, call schema.CallID) simulate.Kept {
		return a(rank, seq, site, call).Least(b(rank, seq, site, call))
	}
}

// idealNetwork reports whether messages take no time.
func (w *whatIf) idealNetwork() bool { return IdealNetwork(w.simulation.Target.Machine) }

// IdealNetwork reports whether messages and NCCL's collectives take no time on a machine.
func IdealNetwork(m *models.Machine) bool {
	none := models.Interconnect{}
	return m.Network == none && m.IntraNode == none && (len(m.NCCL.Algorithms) == 0 || m.NCCL.Free)
}

// gain is the time by which the run is shorter with some changes, in ns. It is negative if they make it longer.
func (w *whatIf) gain(ctx context.Context, what string, changes ...*change) (ns int64, err error) {
	err = w.gains(ctx, []*gain{{what, changes, &ns}})
	return ns, err
}

// gain is a gain to simulate: of the changes, with a name for people, and where to put it.
type gain struct {
	what    string
	changes []*change
	ns      *int64
}

// atOnce is the number of simulations at the same time.
const atOnce = 2

// gains simulates gains, some at the same time.
func (w *whatIf) gains(ctx context.Context, all []*gain) error {
	var running sync.WaitGroup
	errs, free := make([]error, len(all)), make(chan bool, atOnce)
	for i, g := range all {
		free <- true
		w.step("simulate: " + g.what)
		one := *w.simulation
		w.applyTo(&one, g.changes)
		running.Go(func() {
			defer func() { <-free }()
			r, err := one.Simulate(ctx)
			if errs[i] = err; err == nil {
				*g.ns = w.baseNs - simulate.Nanoseconds(r.Time)
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// change changes how long ranks compute, before all calls or before those of some call sites, or what operations cost.
type change struct {
	// keep is the part of its cost that each operation keeps; nil keeps all.
	keep simulate.Keep
	// scale changes what is computed, by cell: what is taken away need not be done. nil changes nothing.
	scale map[cell]*scaling
	// at finds the cells; with scale only.
	at *walk
	// each is what computing before each call takes, in ns, by rank and call site; nil leaves it.
	each map[rankSite]int64
	// factor is what computing before the call takes by what it took, by rank and call site; the rest comes after it.
	factor map[rankSite]float64
	// owed is what is still to be computed by a rank, in ns: what was taken away at a call site comes before the next
	// call of the rank that is of no such site, but after the sends that follow at once: they would be late in its
	// place.
	owed map[int32]int64
}

func (c *change) apply(b *schema.Events) {
	for i, rank := range b.Rank {
		was := max(b.ComputeNs[i], 0)
		if c.each != nil {
			if mean, found := c.each[rankSite{rank, b.Callsite[i]}]; found {
				b.ComputeNs[i] = mean
			}
		} else if c.scale != nil {
			at, slice := c.at.next(rank, b.Callsite[i])
			if k := c.scale[at]; k != nil {
				b.ComputeNs[i] = k.computing(slice, was)
			}
		} else if factor, found := c.factor[rankSite{rank, b.Callsite[i]}]; found {
			b.ComputeNs[i] = scaled(was, factor)
			c.owed[rank] += was - b.ComputeNs[i]
		} else if c.owed[rank] > 0 && !(onlySends(schema.CallID(b.Call[i])) && was < c.owed[rank]/hardly) {
			b.ComputeNs[i] = was + c.owed[rank]
			c.owed[rank] = 0
		}
	}
}

// hardly is the part, one in so many, of what was taken away that computing before another send is below if the two
// sends follow each other.
const hardly = 20

// scaling changes the computing of a cell, by slice.
type scaling struct {
	factor []float64 // what computing takes by what it took
	more   []int64   // what computing before each call takes beyond that, in ns
}

// computing is what computing before a call in a slice takes that took was ns.
func (s *scaling) computing(slice int, was int64) int64 {
	if slice >= len(s.factor) {
		return was // the change ends before
	}
	return scaled(was, s.factor[slice]) + s.more[slice]
}

// onlySends reports whether a call sends messages, or starts to, and waits for none.
func onlySends(call schema.CallID) bool {
	return call.Is(schema.FactStarts) || call.Is(schema.FactPointToPoint) && call.Is(schema.FactSends) &&
		!call.Is(schema.FactReceives)
}

func scaled(ns int64, factor float64) int64 { return int64(float64(ns)*factor + 0.5) }

// change is how a run differs that does not have the cause. Without an imbalance all ranks that share the work
// compute as long as their mean; without that of a group, its ranks compute as long as the others where they compute
// longer. Without variation computing before a call always takes a rank its mean time. Without
// any other cause, the ranks that have it compute their excess after the call instead of before it.
func (c *cause) change() *change {
	switch {
	case c.rule == Variation:
		return &change{each: c.mean}
	case c.group:
		return c.computed.changedBy(c.less)
	case c.rule == Imbalance:
		work := workers(c.total)
		return c.even(meanOfWorkers(c.total), func(rank int32) bool { return work[rank] > 0 })
	}
	k := &change{factor: map[rankSite]float64{}, owed: map[int32]int64{}}
	for _, p := range c.parts {
		for rank, excess := range p.excess {
			if computed := p.computed[rank]; computed > 0 {
				for _, site := range p.sites {
					k.factor[rankSite{rank, site}] = max(0, 1-float64(excess)/float64(computed))
				}
			}
		}
	}
	return k
}

// even makes some of the ranks compute as long as ns, by changing what they compute where they differ from the others.
func (c *cause) even(ns float64, some func(rank int32) bool) *change {
	more := make([]int64, len(c.total))
	for rank, total := range c.total {
		if some(int32(rank)) {
			more[rank] = int64(ns) - total
		}
	}
	return c.computed.changedBy(c.computed.cells.spread(more))
}

// changedBy makes ranks compute so many ns more, or less if it is negative, by cell and slice.
func (c *computing) changedBy(more map[cell][]int64) *change {
	k := &change{scale: map[cell]*scaling{}, at: newWalk(c.sites)}
	for at, list := range more {
		s := &scaling{factor: make([]float64, len(list)), more: make([]int64, len(list))}
		for i, ns := range list {
			if was := c.cells[at][i]; was.ns > 0 {
				s.factor[i] = max(0, 1+float64(ns)/float64(was.ns))
			} else if was.calls > 0 {
				s.more[i] = ns / was.calls
			}
		}
		k.scale[at] = s
	}
	return k
}

// withoutExcess is how a run differs whose overloaded ranks compute only as long as the others on average. It is nil
// for other causes, and where there are no others.
func (c *cause) withoutExcess() *change {
	if c.rule != Imbalance {
		return nil
	}
	over := c.excess()
	if c.group {
		return nil
	}
	others := othersThan(over, c.total)
	if len(others) == 0 {
		return nil
	}
	return c.even(meanOf(others), func(rank int32) bool { return over[rank] > 0 })
}
