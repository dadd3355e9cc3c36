package diagnose

import (
	"context"
	"math"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// A common call site is one that all ranks that share the work reach equally often. What a rank computes between two
// common calls is compared with what the others compute there, whatever calls each of them makes in between: at a line
// that only some ranks reach they may do what others do before other lines.

// cell is what one rank computes before the calls of a call site that follow calls of a common one.
type cell struct {
	rank int32
	// after is the common call site before it; noSite before the first one.
	after int32
	site  int32
}

// noSite stands for no common call site.
const noSite = -1

// amount is computing, and the number of calls that it comes before.
type amount struct{ ns, calls int64 }

// cells are the computing of ranks, by cell and slice of the run: equally many calls of the common call site.
type cells map[cell][]amount

// mostSlices is how many slices the calls of a common call site are divided into at most.
const mostSlices = 32

// common returns the common call sites, and for each the number of its calls in a slice.
func (c *computing) common(ranks int) map[int32]int64 {
	work, reached, rows := workers(c.total(ranks)), map[int32]int{}, map[int32]int64{}
	for at, n := range c.rows {
		if _, works := work[at.rank]; !works || at.site == schema.NullInt32 {
			continue
		}
		if first, found := rows[at.site]; found && first != n {
			reached[at.site] = -ranks // never that of all
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

// sliceWidth is the smallest power of two by which so many calls make at most mostSlices slices.
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

// place is where in the run a rank is.
type place struct {
	after int32
	slice int
	calls map[int32]int64 // of common call sites so far
}

func newWalk(common map[int32]int64) *walk { return &walk{common: common, ranks: map[int32]*place{}} }

// next is the cell and slice of the rank's next row.
func (w *walk) next(rank, site int32) (cell, int) {
	p := w.ranks[rank]
	if p == nil {
		p = &place{after: noSite, calls: map[int32]int64{}}
		w.ranks[rank] = p
	}
	at, slice := cell{rank, p.after, site}, p.slice
	if width := w.common[site]; width > 0 {
		p.calls[site]++ // what follows leads to the next call in most programs
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

// divided are the cells of the run. In one that was not divided computing before the calls of a common site is between
// two common calls, and all other computing together.
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

// joined returns the cells with all slices together.
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

// spread divides what each rank is to compute more, or less if it is negative. It returns ns for each cell and slice.
// An imbalance is seldom the same in all parts of a program and at all times, so a rank's time goes to where it
// computes less than the ranks do on average, or more, in proportion to the difference: first between common calls, and
// then at the call sites between two of them.
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

// inside divides what ranks are to compute more between two common calls, of, among the call sites there. What a rank
// computes longer than it differs from others at the sites that it shares with them, it does where only some ranks
// come.
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

// ofSome reports of which cells and slices not all ranks that come between the common calls reach the call site.
func (c cells) ofSome(between cells) func(k cell, slice int) bool {
	everyone := func(int32) bool { return true }
	site, interval := c.sums(everyone), between.sums(everyone)
	return func(k cell, slice int) bool {
		k.rank = 0
		return site[k][slice].calls < interval[k.interval()][slice].calls
	}
}

// interval is the cell of all call sites between the same common calls.
func (k cell) interval() cell { return cell{k.rank, k.after, noSite} }

// between sums the call sites between common calls.
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

// differences are by how much ranks compute more than the ranks do on average that are to compute less, and less those
// that are to compute more. The average is that of the ranks that reach the cell and are to stay as they are, or else
// of all that reach it.
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

// sums are of some ranks together, as cells of rank 0; calls is the number of ranks.
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

// share divides something by differences, or by time where there are none, or else by calls.
type share struct{ differ, ns, calls int64 }

func (s *share) add(x amount, differ int64) {
	s.differ, s.ns, s.calls = s.differ+differ, s.ns+x.ns, s.calls+x.calls
}

// fraction is the part of one of them, from 0 to 1.
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
