package diagnose

import "github.com/commq/commq/schema"

// rankSite is a call site of one rank.
type rankSite struct{ rank, site int32 }

// computing is how long ranks compute before the calls of each call site.
type computing struct {
	ns   map[rankSite]int64 // on the run's compute_clock
	rows map[rankSite]int64 // number of calls
	// wallNs is the time between calls of a thread, less polling, and cpuNs what it computed in it, of all threads together.
	wallNs, cpuNs int64
	calls         map[int32]schema.CallID // by call site
	lastNs        map[[2]int32]int64      // by rank and thread: when the last call returned
}

// computeColumns are the columns that computing needs besides those of critical paths.
var computeColumns = []string{"compute_ns", "poll_ns"}

func newComputing() *computing {
	return &computing{ns: map[rankSite]int64{}, rows: map[rankSite]int64{}, calls: map[int32]schema.CallID{}, lastNs: map[[2]int32]int64{}}
}

func (c *computing) add(b *schema.Events) {
	for i, ns := range b.ComputeNs {
		thread := [2]int32{b.Rank[i], b.Thread[i]}
		last, later := c.lastNs[thread]
		c.rows[rankSite{b.Rank[i], b.Callsite[i]}]++
		if ns > 0 {
			c.ns[rankSite{b.Rank[i], b.Callsite[i]}] += ns
			c.calls[b.Callsite[i]] = schema.CallID(b.Call[i])
		}
		if later && b.StartNs[i] > last {
			c.wallNs += max(0, b.StartNs[i]-last-max(0, b.PollNs[i]))
			c.cpuNs += max(0, ns)
		}
		if b.EndNs[i] != schema.NullInt64 {
			c.lastNs[thread] = b.EndNs[i]
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

// mean is the time that computing before a call takes on average, in ns.
func (c *computing) mean() map[rankSite]int64 {
	mean := make(map[rankSite]int64, len(c.ns))
	for at, ns := range c.ns {
		mean[at] = (ns + c.rows[at]/2) / c.rows[at]
	}
	return mean
}

// cpuShare is the part of the time between calls in which the ranks computed: less than 1 where they waited for a CPU, or
// for something else that is not MPI.
func (c *computing) cpuShare() float64 {
	if c.wallNs == 0 {
		return 1
	}
	return min(1, float64(c.cpuNs)/float64(c.wallNs))
}
