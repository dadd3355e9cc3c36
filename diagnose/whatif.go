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
	baseNs     int64        // time of the unchanged run
	step       func(string) // is called with the name of each simulation
	memory     int64        // limit in bytes; 0 means none
	bounds     bool         // nothing is simulated: gains are bounds
	kept       *kept.Results

	result    *simulate.Result    // of the unchanged run; nil before it is simulated
	explained *critical.Explained // its times; nil before they are explained
}

// keptRowBytes limits the rows that are kept in memory for all simulations; each simulation reads the rest from disk.
const keptRowBytes = 64 << 20

// keepRows reads the rows of the run once for all simulations, up to keptRowBytes.
func (w *whatIf) keepRows(ctx context.Context) (err error) {
	limit := int64(keptRowBytes)
	if w.memory > 0 {
		limit = min(limit, w.memory)
	}
	w.simulation.Rows, err = stored.ReadRows(ctx, w.simulation.Run, limit)
	return err
}

// unchanged returns the simulation of the unchanged run, which is made once.
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

// rowBytes is the memory that one row of the run takes while simulated times are explained.
const rowBytes = 64

// rowsBytes is the memory that all rows take while simulated times are explained. A simulation needs less.
func (w *whatIf) rowsBytes() int64 { return max(1, w.simulation.Run.Manifest.Counts.Calls*rowBytes) }

// explainable returns an error if the memory is too small to explain simulated times, which needs all rows at once.
func (w *whatIf) explainable() error {
	if w.memory > 0 && w.rowsBytes() > w.memory {
		return fmt.Errorf("simulated times of %s would take %s of memory; the limit is %s",
			units.Count(w.simulation.Run.Manifest.Counts.Calls, "call"), units.Bytes(w.rowsBytes()),
			units.Bytes(w.memory))
	}
	return nil
}

// explainUnchanged explains the simulated times of the unchanged run, once.
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

// explain simulates the unchanged run and explains its times.
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

// explainEach explains the simulated times of the run without each of the findings, and those of the unchanged run.
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

// leastKept combines two changes: each operation keeps the smaller part of its cost. nil keeps all.
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

// gain simulates the run with some changes and returns by how many ns it gets shorter; negative if it gets longer.
func (w *whatIf) gain(ctx context.Context, what string, changes ...*change) (ns int64, err error) {
	err = w.gains(ctx, []*gain{{what, changes, &ns}})
	return ns, err
}

// gain is one simulation to make: what it is, for people, its changes, and where the gain goes.
type gain struct {
	what    string
	changes []*change
	ns      *int64
}

// atOnce returns the number of simulations to run in parallel: one per core, fewer if memory cannot hold all rows of
// the run for each, but at least least.
func (w *whatIf) atOnce(least int) int {
	n := runtime.GOMAXPROCS(0)
	if w.memory > 0 {
		n = int(min(int64(n), w.memory/w.rowsBytes()))
	}
	return max(n, least)
}

// leastAtOnce simulations run in parallel whatever the memory: few simulations keep all rows of a run.
const leastAtOnce = 2

// gains simulates all gains, several in parallel.
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

// change is a change of the run: of how long ranks compute before some or all calls, or of what operations cost.
type change struct {
	// keep is the part of its cost that each operation keeps; nil keeps all.
	keep simulate.Keep
	// scale changes the computing of cells. What it removes is not done later. nil changes nothing.
	scale map[cell]*scaling
	// at finds the cells of rows; set together with scale.
	at *walk
	// each is the new computing before each call, in ns, by rank and call site; nil leaves it unchanged.
	each map[rankSite]int64
	// factor scales the computing before a call, by rank and call site. What it removes is done after the call; see
	// owed.
	factor map[rankSite]float64
	// owed is computing that was removed by factor and not inserted yet, in ns by rank. It is inserted before the
	// rank's next call at another site, but after sends that follow at once: inserted before them it would delay them.
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

// A send follows another one at once if the computing before it is below 1/hardly of what is owed.
const hardly = 20

// scaling changes the computing of a cell, by slice.
type scaling struct {
	factor []float64 // new time over old time
	more   []int64   // ns added before each call; for computing that took no time so far
}

// computing returns the new length, in ns, of computing in a slice that took was ns.
func (s *scaling) computing(slice int, was int64) int64 {
	if slice >= len(s.factor) {
		return was // beyond the slices that change
	}
	return scaled(was, s.factor[slice]) + s.more[slice]
}

// onlySends reports whether a call sends messages, or starts to, and waits for none.
func onlySends(call schema.CallID) bool {
	return call.Is(schema.FactStarts) || call.Is(schema.FactPointToPoint) && call.Is(schema.FactSends) &&
		!call.Is(schema.FactReceives)
}

func scaled(ns int64, factor float64) int64 { return int64(float64(ns)*factor + 0.5) }

// change returns the change that removes the cause. Without an imbalance, all ranks that share the work compute as long
// as their mean. Without the imbalance of a group, its ranks compute as long as the others where they compute longer.
// Without variation, a rank always computes its mean time before a call. Without any other cause, its ranks compute
// their excess after the call instead of before it.
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

// even returns the change after which the selected ranks compute ns in all. It changes what they compute where they
// differ from the others.
func (c *cause) even(ns float64, some func(rank int32) bool) *change {
	more := make([]int64, len(c.total))
	for rank, total := range c.total {
		if some(int32(rank)) {
			more[rank] = int64(ns) - total
		}
	}
	return c.computed.changedBy(c.computed.cells.spread(more))
}

// changedBy returns the change after which ranks compute more ns longer (negative: shorter), by cell and slice.
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

// withoutExcess returns the change after which the overloaded ranks compute only as long as the mean of the others, and
// nobody computes the rest. It is nil for other causes, for the imbalance of a group, and if there are no other ranks.
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
