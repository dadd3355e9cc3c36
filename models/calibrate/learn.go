package calibrate

import (
	"context"
	"math"

	sqlrows "github.com/commq/commq/internal/rows"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// LearnOptions say what is learnt from a run, and how.
type LearnOptions struct {
	// CPUsPerNode is the machine's; 0 takes the most ranks on a host.
	CPUsPerNode int
	// Through names the quantile that summarizes equal messages and operations: one of Throughs.
	Through string
	// Where is a condition on the columns of messages from which latency and bandwidth are learnt.
	Where string
	// Pieces allows bandwidths that depend on the size.
	Pieces bool
	// Eager asks for sends whose receiver came late; runs without measured times cannot answer that.
	Eager bool
	// CycleTag and CycleAdds describe the program of commq calibrate --launch: its first rank makes CycleAdds additions
	// before a message with CycleTag. CycleAdds is 0 for any other program.
	CycleTag  int32
	CycleAdds int64
}

// through is a column of the query message-times and the quantile that it holds.
type through struct {
	column   string
	quantile Quantile
}

var throughs = map[string]through{"minimum": {"min_ns", Minimum}, "quartile": {"q25_ns", LowerQuartile},
	"median": {"median_ns", Median}}

// Throughs are the values of LearnOptions.Through.
var Throughs = []string{"minimum", "quartile", "median"}

// Learn learns a machine from a run. ask asks queries of it.
func Learn(ctx context.Context, r *run.Run, ask sqlrows.Ask, o LearnOptions) (*Calibration, error) {
	in := &Input{Name: r.Name, CPUsPerNode: o.CPUsPerNode, Quantile: throughs[o.Through].quantile, Pieces: o.Pieces}
	if err := in.askMessages(ctx, ask, o); err != nil {
		return nil, err
	}
	in.Hosts, in.RanksPerHost = countHosts(r.Ranks.Host)
	var err error
	if r.Manifest.Record != "messages" {
		if in.Collectives, err = readCollectives(ctx, r); err != nil {
			return nil, err
		}
	}
	if o.CycleAdds > 0 && r.Manifest.ComputeClock != "none" {
		if in.CycleNs, err = readCycle(ctx, r, o); err != nil {
			return nil, err
		}
	}
	return Calibrate(in)
}

// askMessages asks for the times of messages, and for sends whose receiver came late.
func (in *Input) askMessages(ctx context.Context, ask sqlrows.Ask, o LearnOptions) error {
	column := throughs[o.Through].column
	err := ask(ctx, "message-times", map[string]string{"where": o.Where}, func(row sqlrows.Row) error {
		p := Point{Bytes: row.Int("bytes"), Messages: row.Int("messages"), Ns: float64(row.Int(column))}
		if row.Bool("same_host") {
			in.Inside = append(in.Inside, p)
		} else {
			in.Between = append(in.Between, p)
		}
		return nil
	})
	if err != nil || !o.Eager {
		return err
	}
	return ask(ctx, "eager", nil, func(row sqlrows.Row) error {
		in.Eager = append(in.Eager,
			Eager{Bytes: row.Int("bytes"), Returned: row.Int("eager"), Waited: row.Int("rendezvous")})
		return nil
	})
}

// countHosts counts the machines of ranks, and the most ranks on one.
func countHosts(hosts []int32) (n, ranksPerHost int) {
	ranks := map[int32]int{}
	for _, h := range hosts {
		ranks[h]++
		ranksPerHost = max(ranksPerHost, ranks[h])
	}
	return len(ranks), ranksPerHost
}

// readCycle finds the cycle time of the CPUs in ns: the shortest of the rounds that compute a known number of
// additions, of a cycle each. It is 0 when there is none.
func readCycle(ctx context.Context, r *run.Run, o LearnOptions) (float64, error) {
	least := int64(math.MaxInt64)
	err := r.Events(ctx, "rank", "send_tag", "compute_ns")(func(e *schema.Events) error {
		for i, tag := range e.SendTag {
			if tag == o.CycleTag && e.ComputeNs[i] > 0 {
				least = min(least, e.ComputeNs[i])
			}
		}
		return nil
	})
	if err != nil || least == math.MaxInt64 {
		return 0, err
	}
	return float64(least) / float64(o.CycleAdds), nil
}

// readCollectives gathers the collective operations of a run. Intercommunicators do not count, as the paper's model
// does not know their groups, nor do communicators with ranks of other programs.
func readCollectives(ctx context.Context, r *run.Run) (*Collectives, error) {
	c := &Collectives{Members: map[int32]int{}}
	for _, comm := range run.Intra(r.Comms) {
		c.Members[comm.ID] = len(comm.Members)
	}
	return c, r.Events(ctx, Columns...)(func(b *schema.Events) error { c.Add(b); return nil })
}
