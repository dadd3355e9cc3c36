package diagnose

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// gaps are the times between the calls of each thread.
type gaps struct {
	lastNs map[[2]int32]int64 // by rank and thread: when the last call returned
}

func newGaps() *gaps { return &gaps{lastNs: map[[2]int32]int64{}} }

// before returns the time between row i and the row before it on its thread, less polling, in ns. Rows must come in
// order. A first row has none, nor has a row of an untimed run.
func (g *gaps) before(b *schema.Events, i int) (ns int64, known bool) {
	if b.StartNs[i] == schema.NullInt64 {
		return 0, false
	}
	thread := [2]int32{b.Rank[i], b.Thread[i]}
	last, known := g.lastNs[thread]
	if known {
		ns = max(0, b.StartNs[i]-last-max(0, b.PollNs[i]))
	}
	if b.EndNs[i] != schema.NullInt64 {
		g.lastNs[thread] = b.EndNs[i]
	}
	return ns, known
}

// fillComputing returns a function that sets the compute times of a run that was captured without a clock for them: all
// time between calls. It is nil for other runs.
func fillComputing(r *run.Run) func(*schema.Events) {
	if r.Manifest.ComputeClock != "none" {
		return nil
	}
	g := newGaps()
	return func(b *schema.Events) {
		for i := range b.Rank {
			b.ComputeNs[i], _ = g.before(b, i)
		}
	}
}

// rankSite is a call site of one rank.
type rankSite struct{ rank, site int32 }

func (a rankSite) compare(b rankSite) int {
	return cmp.Or(cmp.Compare(a.site, b.site), cmp.Compare(a.rank, b.rank))
}

// computing is how long ranks compute before the calls of each call site.
type computing struct {
	ns   map[rankSite]int64 // on the run's compute_clock
	rows map[rankSite]int64 // number of calls
	// squares are the sums of the squares of these times.
	squares map[rankSite]float64
	// instructions are those that ranks execute before the calls; nil if they were not counted.
	instructions map[rankSite]int64
	// sites are the common call sites, and cells the computing by them and in the course of the run; nil before divide.
	sites map[int32]int64
	cells cells
	// wallNs is the time between calls of a thread, less polling, and cpuNs what it computed in it, of all threads
	// together.
	wallNs, cpuNs int64
	calls         map[int32]schema.CallID // by call site
	gaps          *gaps                   `snapshot:"-"`
	fill          func(*schema.Events)    `snapshot:"-"` // of fillComputing
}

// computeColumns are the columns that computing needs besides those of critical paths.
var computeColumns = []string{"compute_ns", "poll_ns"}

func newComputing(r *run.Run) *computing {
	c := &computing{ns: map[rankSite]int64{}, rows: map[rankSite]int64{}, squares: map[rankSite]float64{},
		calls: map[int32]schema.CallID{}, gaps: newGaps(), fill: fillComputing(r)}
	if r.Manifest.Counters != "" {
		c.instructions = map[rankSite]int64{}
	}
	return c
}

// columns are the columns of events that it needs besides those of critical paths.
func (c *computing) columns() []string {
	if c.instructions != nil {
		return append(slices.Clone(computeColumns), "instructions")
	}
	return computeColumns
}

func (c *computing) add(b *schema.Events) {
	if c.fill != nil {
		c.fill(b)
	}
	for i, ns := range b.ComputeNs {
		at := rankSite{b.Rank[i], b.Callsite[i]}
		c.rows[at]++
		if ns > 0 {
			c.ns[at] += ns
			c.squares[at] += float64(ns) * float64(ns)
			c.calls[at.site] = schema.CallID(b.Call[i])
		}
		if c.instructions != nil && b.Instructions[i] > 0 {
			c.instructions[at] += b.Instructions[i]
		}
		if gap, known := c.gaps.before(b, i); known {
			c.wallNs += gap
			c.cpuNs += max(0, ns)
		}
	}
}

// total is the time that each of the ranks computes.
func (c *computing) total(ranks int) []int64 {
	total := make([]int64, ranks)
	for at, ns := range c.ns {
		total[at.rank] += ns
	}
	return total
}

// mean is the time that computing before a call takes on average, in ns. Calls whose site is not known have none:
// they may be anywhere.
func (c *computing) mean() map[rankSite]int64 {
	mean := make(map[rankSite]int64, len(c.ns))
	for at, rows := range c.rows {
		if at.site != schema.NullInt32 {
			mean[at] = (c.ns[at] + rows/2) / rows
		}
	}
	return mean
}

// mostVaried is the call before which the times of computing vary most: where the standard deviations of the ranks'
// times, each as often as there are times, add up to most. It is none if they never vary.
func (c *computing) mostVaried(place func(int32) string) (at causeKey) {
	sum, most := map[causeKey]float64{}, 0.0
	for _, of := range slices.SortedFunc(maps.Keys(c.squares), rankSite.compare) { // in order, so that sums round in one way
		if of.site == schema.NullInt32 {
			continue
		}
		k := causeKey{place: place(of.site), call: c.calls[of.site]}
		ns := float64(c.ns[of])
		sum[k] += math.Sqrt(max(0, c.squares[of]*float64(c.rows[of])-ns*ns))
		if sum[k] > most {
			at, most = k, sum[k]
		}
	}
	return at
}

// cpuShare is the part of the time between calls in which the ranks computed: less than 1 where they waited for a
// CPU, or for something else that is not MPI.
func (c *computing) cpuShare() float64 {
	if c.wallNs == 0 {
		return 1
	}
	return min(1, float64(c.cpuNs)/float64(c.wallNs))
}
