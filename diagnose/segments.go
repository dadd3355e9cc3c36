package diagnose

import (
	"context"
	"math"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// A common call site is one that all ranks that share the work reach equally often. Ranks are compared by what they
// compute between two common calls, whatever calls they make in between: a line that only some ranks reach may do the
// work that others do before other lines.

// cell identifies computing: of one rank, before the calls at one site that come after calls at a given common site.
type cell struct {
	rank int32
	// after is the common call site before it; noSite before the first one.
	after int32
	site  int32
}

// noSite stands for no common call site.
const noSite = -1

// amount is computing, in ns, and the number of calls before which it is.
type amount struct{ ns, calls int64 }

// cells are the computing of ranks by cell and slice. A slice is a part of the run: a fixed number of calls at the
// cell's common site.
type cells map[cell][]amount

// mostSlices limits the slices into which the calls of a common call site are divided.
const mostSlices = 32

// common returns the common call sites, and for each the number of calls in a slice.
func (c *computing) common(ranks int) map[int32]int64 {
	work, reached, rows := workers(c.total(ranks)), map[int32]int{}, map[int32]int64{}
	for at, n := range c.rows {
		if _, works := work[at.rank]; !works || at.site == schema.NullInt32 {
			continue
		}
		if first, found := rows[at.site]; found && first != n {
			reached[at.site] = -ranks // so that it never equals the number of workers
		}
		rows[at.site] = n
		reached[at.site]++
	}
	common := map[int32]int64{}
	for site, n := range reached {
		if n == len(work) {
			common[site] = sliceWidth(rows[site])
		}
	}
	return common
}

// sliceWidth returns the smallest power of two that divides calls into at most mostSlices slices.
func sliceWidth(calls int64) int64 {
	width := int64(1)
	for calls > width*mostSlices {
		width *= 2
	}
	return width
}

// walk finds the cells and slices of the rows of a run. The rows of each rank must come in order.
type walk struct {
	common map[int32]int64
	ranks  map[int32]*place
}

// place is the position of a rank in the run.
type place struct {
	after int32
	slice int
	calls map[int32]int64 // of common call sites so far
}

func newWalk(common map[int32]int64) *walk { return &walk{common: common, ranks: map[int32]*place{}} }

// next returns the cell and slice of the rank's next row.
func (w *walk) next(rank, site int32) (cell, int) {
	p := w.ranks[rank]
	if p == nil {
		p = &place{after: noSite, calls: map[int32]int64{}}
		w.ranks[rank] = p
	}
	at, slice := cell{rank, p.after, site}, p.slice
	if width := w.common[site]; width > 0 {
		p.calls[site]++ // computing after a call mostly prepares the next one, so it belongs to the next slice
		p.after, p.slice = site, min(int(p.calls[site]/width), mostSlices-1)
	}
	return at, slice
}

// divide reads the run again and divides its computing by common calls and slices.
func (c *computing) divide(ctx context.Context, r *run.Run) error {
	c.sites = c.common(int(r.Manifest.Ranks))
	c.cells = cells{}
	at, fill := newWalk(c.sites), fillComputing(r)
	columns := []string{"rank", "callsite", "compute_ns"}
	if fill != nil {
		columns = append(columns, "thread", "start_ns", "end_ns", "poll_ns")
	}
	return r.Events(ctx, columns...)(func(b *schema.Events) error {
		if fill != nil {
			fill(b)
		}
		c.cells.add(at, b)
		return nil
	})
}

func (c cells) add(at *walk, b *schema.Events) {
	for i, rank := range b.Rank {
		k, slice := at.next(rank, b.Callsite[i])
		list := c[k]
		for len(list) <= slice {
			list = append(list, amount{})
		}
		list[slice].ns += max(0, b.ComputeNs[i])
		list[slice].calls++
		c[k] = list
	}
}

// divided returns the cells of the run. If the run was not divided, there are no slices: computing before the calls of
// a common site is one stretch, and all other computing another one.
func (c *computing) divided(ranks int) cells {
	if c.cells != nil {
		return c.cells
	}
	common, all := c.common(ranks), cells{}
	for at, ns := range c.ns {
		k := cell{at.rank, noSite, at.site}
		if common[at.site] > 0 {
			k.after = at.site
		}
		all[k] = []amount{{ns, c.rows[at]}}
	}
	return all
}

// joined returns the cells with the sums of their slices.
func (c cells) joined() cells {
	all := cells{}
	for at, list := range c {
		sum := amount{}
		for _, x := range list {
			sum.ns, sum.calls = sum.ns+x.ns, sum.calls+x.calls
		}
		all[at] = []amount{sum}
	}
	return all
}

// spread distributes a change of each rank's computing, in ns (negative: less), over its cells and slices. An imbalance
// is seldom the same in all parts of a program and at all times, so each cell and slice gets a part in proportion to
// its distance from the mean there: first between common calls, then among the call sites between two of them.
func (c cells) spread(more []int64) map[cell][]int64 {
	between := c.between()
	apart, all := between.differences(more), make([]share, len(more))
	for k, list := range between {
		for i, x := range list {
			all[k.rank].add(x, apart[k][i])
		}
	}
	return c.inside(more, between, func(to cell, i int) int64 {
		return int64(math.Round(float64(more[to.rank]) * all[to.rank].fraction(between[to][i], apart[to][i])))
	})
}

// inside distributes the change of a rank between two common calls, which of returns, among the call sites there.
// Excess beyond the differences at sites that ranks share goes to the sites that only some ranks reach.
func (c cells) inside(more []int64, between cells, of func(interval cell, slice int) int64) map[cell][]int64 {
	differ, someOnly := c.differences(more), c.ofSome(between)
	within, alone := map[cell][]share{}, map[cell][]share{}
	for k, list := range c {
		to := k.interval()
		if within[to] == nil {
			within[to], alone[to] = make([]share, len(between[to])), make([]share, len(between[to]))
		}
		for i, x := range list {
			within[to][i].add(x, differ[k][i])
			if someOnly(k, i) {
				alone[to][i].add(x, 0)
			}
		}
	}
	parts := map[cell][]int64{}
	for k, list := range c {
		if more[k.rank] == 0 {
			continue
		}
		to := k.interval()
		parts[k] = make([]int64, len(list))
		for i, x := range list {
			ns, shared := of(to, i), within[to][i]
			rest := -ns - shared.differ
			if rest <= 0 || alone[to][i].ns == 0 {
				parts[k][i] = int64(math.Round(float64(ns) * shared.fraction(x, differ[k][i])))
				continue
			}
			parts[k][i] = -differ[k][i]
			if someOnly(k, i) {
				parts[k][i] -= int64(math.Round(float64(rest) * alone[to][i].fraction(x, 0)))
			}
		}
	}
	return parts
}

// ofSome returns a function that reports whether only some of the ranks that are between these common calls reach the
// call site of a cell, in a slice.
func (c cells) ofSome(between cells) func(k cell, slice int) bool {
	everyone := func(int32) bool { return true }
	site, interval := c.sums(everyone), between.sums(everyone)
	return func(k cell, slice int) bool {
		k.rank = 0
		return site[k][slice].calls < interval[k.interval()][slice].calls
	}
}

// interval returns the cell that stands for all call sites between the same common calls.
func (k cell) interval() cell { return cell{k.rank, k.after, noSite} }

// between returns the sums over the call sites between two common calls.
func (c cells) between() cells {
	all := cells{}
	for k, list := range c {
		to := k.interval()
		for len(all[to]) < len(list) {
			all[to] = append(all[to], amount{})
		}
		for i, x := range list {
			all[to][i].ns, all[to][i].calls = all[to][i].ns+x.ns, all[to][i].calls+x.calls
		}
	}
	return all
}

// differences returns how far each rank is from the mean in each cell and slice: above it if the rank is to compute
// less, below it if more. Distances on the other side count 0. The mean is over the ranks that reach the cell and do
// not change, or over all that reach it if none of these does.
func (c cells) differences(more []int64) map[cell][]int64 {
	all, others := c.sums(func(int32) bool { return true }), c.sums(func(rank int32) bool { return more[rank] == 0 })
	differ := map[cell][]int64{}
	for k, list := range c {
		differ[k] = make([]int64, len(list))
		of := cell{0, k.after, k.site}
		for i, x := range list {
			sum := all[of][i]
			if rest := others[of]; rest != nil && rest[i].calls > 0 {
				sum = rest[i]
			}
			d := x.ns - sum.ns/max(1, sum.calls)
			if more[k.rank] > 0 {
				d = -d
			}
			if x.calls > 0 {
				differ[k][i] = max(0, d)
			}
		}
	}
	return differ
}

// sums adds up the selected ranks, as cells of rank 0. In the sums calls is the number of ranks that reach the cell.
func (c cells) sums(of func(rank int32) bool) map[cell]*[mostSlices]amount {
	sums := map[cell]*[mostSlices]amount{}
	for k, list := range c {
		if !of(k.rank) {
			continue
		}
		k.rank = 0
		if sums[k] == nil {
			sums[k] = &[mostSlices]amount{}
		}
		for i, x := range list {
			if x.calls > 0 {
				sums[k][i].ns, sums[k][i].calls = sums[k][i].ns+x.ns, sums[k][i].calls+1
			}
		}
	}
	return sums
}

// share divides an amount in proportion to differences; if all are 0, in proportion to time, and then to calls.
type share struct{ differ, ns, calls int64 }

func (s *share) add(x amount, differ int64) {
	s.differ, s.ns, s.calls = s.differ+differ, s.ns+x.ns, s.calls+x.calls
}

// fraction returns the part of one entry, from 0 to 1.
func (s *share) fraction(x amount, differ int64) float64 {
	switch {
	case s.differ > 0:
		return float64(differ) / float64(s.differ)
	case s.ns > 0:
		return float64(x.ns) / float64(s.ns)
	case s.calls > 0:
		return float64(x.calls) / float64(s.calls)
	}
	return 0
}
