package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

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

	result    *simulate.Result    // of the unchanged run; nil before it is simulated
	explained *critical.Explained // its times; nil before they are explained
}

// keptRowBytes is the memory that rows of the run may take which all simulations read. They read the others again.
const keptRowBytes = 64 << 20

// keepRows reads the rows of the run for all simulations.
func (w *whatIf) keepRows(ctx context.Context) (err error) {
	limit := int64(keptRowBytes)
	if w.memory > 0 {
		limit = min(limit, w.memory)
	}
	w.simulation.Rows, err = stored.ReadRows(ctx, w.simulation.Run, limit)
	return err
}

// unchanged simulates the run as it is, once.
func (w *whatIf) unchanged(ctx context.Context) (*simulate.Result, error) {
	if w.result == nil {
		w.step("simulate: as it is")
		r, err := w.changed().Simulate(ctx)
		if err != nil {
			return nil, err
		}
		w.result = r
	}
	return w.result, nil
}

// rowBytes is the memory that a row of the run takes while simulated times are explained.
const rowBytes = 64

// rowsBytes is the memory that all rows of the run take then, and more than those of a simulation.
func (w *whatIf) rowsBytes() int64 { return max(1, w.simulation.Run.Manifest.Counts.Calls*rowBytes) }

// explainable returns why there is too little memory to explain simulated times, which takes that of all rows.
func (w *whatIf) explainable() error {
	if w.memory > 0 && w.rowsBytes() > w.memory {
		return fmt.Errorf("simulated times of %s would take %s of memory; the limit is %s",
			units.Count(w.simulation.Run.Manifest.Counts.Calls, "call"), units.Bytes(w.rowsBytes()),
			units.Bytes(w.memory))
	}
	return nil
}

// explainUnchanged explains the simulated times of the run as it is, once.
func (w *whatIf) explainUnchanged(ctx context.Context) (*critical.Explained, error) {
	if w.explained == nil {
		if err := w.explainable(); err != nil {
			return nil, err
		}
		w.step("simulate")
		if err := w.explain(ctx); err != nil {
			return nil, err
		}
	}
	return w.explained, nil
}

// explain simulates the run as it is and explains its times.
func (w *whatIf) explain(ctx context.Context) (err error) {
	w.explained, w.result, err = explain(ctx, w.changed())
	return err
}

// explain explains the times of a simulation.
func explain(ctx context.Context, s *stored.Simulation) (*critical.Explained, *simulate.Result, error) {
	g, result, err := s.Graph(ctx, leaveOutStartup)
	if err != nil {
		return nil, nil, err
	}
	return g.Explain(stored.Finish(result)), result, nil
}

// explainEach explains the simulated times of the run without each of some findings, and of the run as it is.
func (w *whatIf) explainEach(ctx context.Context, findings []*Finding) ([]*critical.Explained, error) {
	w.step("simulate")
	without := make([]*critical.Explained, len(findings))
	var parallel errgroup.Group
	parallel.SetLimit(w.atOnce(1))
	if w.explained == nil {
		parallel.Go(func() error { return w.explain(ctx) })
	}
	for i, f := range findings {
		one := w.changed(f.without())
		parallel.Go(func() (err error) { without[i], _, err = explain(ctx, one); return err })
	}
	return without, parallel.Wait()
}

// changed returns the simulation of the run with these changes.
func (w *whatIf) changed(changes ...*change) *stored.Simulation {
	s := *w.simulation
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
	return &s
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

// atOnce is the number of simulations at the same time: as many as there are cores, if each may have all rows of the
// run in memory, and at least so many.
func (w *whatIf) atOnce(least int) int {
	n := runtime.GOMAXPROCS(0)
	if w.memory > 0 {
		n = int(min(int64(n), w.memory/w.rowsBytes()))
	}
	return max(n, least)
}

// leastAtOnce is the number of simulations at the same time in any memory: few keep all rows of a run.
const leastAtOnce = 2

// gains simulates gains, some at the same time.
func (w *whatIf) gains(ctx context.Context, all []*gain) error {
	errs := make([]error, len(all))
	var parallel errgroup.Group
	parallel.SetLimit(w.atOnce(leastAtOnce))
	for i, g := range all {
		w.step("simulate: " + g.what)
		one := w.changed(g.changes...)
		parallel.Go(func() error {
			r, err := one.Simulate(ctx)
			if errs[i] = err; err == nil {
				*g.ns = w.baseNs - simulate.Nanoseconds(r.Time)
			}
			return nil
		})
	}
	_ = parallel.Wait() // of errs
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
