package diagnose

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// gaps measures the time between the calls of each thread.
type gaps struct {
	lastNs map[[2]int32]int64 // by rank and thread: when the last call returned
}

func newGaps() *gaps { return &gaps{lastNs: map[[2]int32]int64{}} }

// before returns the time between row i and the row before it on its thread, without polling, in ns. Rows must come in
// order. known is false for the first row of a thread and for rows without times.
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
// time between calls is computing. It returns nil for other runs.
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

// computing has the time that ranks compute before the calls of each call site.
type computing struct {
	ns   map[rankSite]int64 // on the run's compute_clock
	rows map[rankSite]int64 // number of calls
	// squares are the sums of the squares of these times.
	squares map[rankSite]float64
	// instructions are the instructions that ranks execute before the calls; nil if they were not counted.
	instructions map[rankSite]int64
	// sites are the common call sites with the calls of a slice, and cells the computing by cell and slice; nil before
	// divide.
	sites map[int32]int64
	cells cells
	// wallNs is the time between the calls of each thread, without polling, and cpuNs the computing in it; sums of all
	// threads.
	wallNs, cpuNs int64
	calls         map[int32]schema.CallID // by call site
	gaps          *gaps                   `snapshot:"-"`
	fill          func(*schema.Events)    `snapshot:"-"` // of fillComputing
}

// computeColumns are the columns that computing needs in addition to those of critical paths.
var computeColumns = []string{"compute_ns", "poll_ns"}

func newComputing(r *run.Run) *computing {
	c := &computing{ns: map[rankSite]int64{}, rows: map[rankSite]int64{}, squares: map[rankSite]float64{},
		calls: map[int32]schema.CallID{}, gaps: newGaps(), fill: fillComputing(r)}
	if r.Manifest.Counters != "" {
		c.instructions = map[rankSite]int64{}
	}
	return c
}

// columns returns the columns of events that it needs in addition to those of critical paths.
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

// total returns the computing time of each rank, in ns.
func (c *computing) total(ranks int) []int64 {
	total := make([]int64, ranks)
	for at, ns := range c.ns {
		total[at.rank] += ns
	}
	return total
}

// mean returns the mean computing before a call, in ns. Calls at unknown sites have none: they may be anywhere.
func (c *computing) mean() map[rankSite]int64 {
	mean := make(map[rankSite]int64, len(c.ns))
	for at, rows := range c.rows {
		if at.site != schema.NullInt32 {
			mean[at] = (c.ns[at] + rows/2) / rows
		}
	}
	return mean
}

// mostVaried returns the call before which computing varies most, by the sum over ranks of standard deviation times
// number of calls. It returns the zero key if computing never varies.
func (c *computing) mostVaried(place func(int32) string) (at causeKey) {
	sum, most := map[causeKey]float64{}, 0.0
	for _, of := range slices.SortedFunc(maps.Keys(c.squares), rankSite.compare) { // so that sums round in one way
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

// cpuShare returns the fraction of the time between calls in which ranks computed. It is below 1 if they waited for a
// CPU, or for anything else outside MPI.
func (c *computing) cpuShare() float64 {
	if c.wallNs == 0 {
		return 1
	}
	return min(1, float64(c.cpuNs)/float64(c.wallNs))
}
