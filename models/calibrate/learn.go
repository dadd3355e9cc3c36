package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	sqlrows "github.com/commq/commq/internal/rows"
	"github.com/commq/commq/models/simulate"
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
	// Launched describes the program of commq calibrate --launch; nil for a run of any other program.
	Launched *Launched
}

// Launched describes the program of commq calibrate --launch.
type Launched struct {
	// Its first rank makes CycleAdds additions before a message with CycleTag.
	CycleTag  int32
	CycleAdds int64
	// A message with ClockTag has as many bytes as the processor has MHz by the operating system, one with TopClockTag
	// as many as its highest clock has; 0 is not known.
	ClockTag, TopClockTag int32
	// RoundTag is the smallest tag of rounds: messages of one tag are sent at once.
	RoundTag int32
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
	nodes, placed, err := nodesOf(r)
	if err != nil {
		return nil, err
	}
	in.Nodes = nodes
	if err := in.askMessages(ctx, ask, o, placed); err != nil {
		return nil, err
	}
	in.Hosts, in.RanksPerHost = countHosts(nodes)
	if r.Manifest.Record != "messages" {
		if in.Collectives, err = readCollectives(ctx, r); err != nil {
			return nil, err
		}
	}
	if o.Launched != nil {
		if err := in.readLaunched(ctx, r, o.Launched); err != nil {
			return nil, err
		}
	}
	return Calibrate(in)
}

// nodesOf returns the node of each rank: the host, or, in virtual and simulated times, the node of the machine. placed
// is true for a node of the machine.
func nodesOf(r *run.Run) (nodes []int32, placed bool, err error) {
	s := r.Manifest.Origin.Simulation
	if r.Manifest.TimeOrigin == "measured" || s == nil || s.Description == "" {
		return r.Ranks.Host, false, nil
	}
	target, err := simulate.TargetOf(s)
	if err != nil {
		return nil, false, fmt.Errorf("run %q: the machine of its times: %w", r.Name, err)
	}
	_, nodes, err = target.Machine.Place(len(r.Ranks.Host))
	return nodes, true, err
}

// askMessages asks for the times of messages, and for sends whose receiver came late. placed: the ranks are on the
// nodes of a machine, not on hosts.
func (in *Input) askMessages(ctx context.Context, ask sqlrows.Ask, o LearnOptions, placed bool) error {
	var err error
	if placed {
		same := sameNode(in.Nodes)
		for _, inside := range []bool{true, false} {
			where := fmt.Sprintf("(%s) AND %s", o.Where, same)
			if !inside {
				where = fmt.Sprintf("(%s) AND NOT %s", o.Where, same)
			}
			err = errors.Join(err, in.askTimes(ctx, ask, o, where, func(sqlrows.Row) bool { return inside }))
		}
	} else {
		err = in.askTimes(ctx, ask, o, o.Where, func(row sqlrows.Row) bool { return row.Bool("same_host") })
	}
	if err != nil || !o.Eager {
		return err
	}
	return ask(ctx, "eager", nil, func(row sqlrows.Row) error {
		in.Eager = append(in.Eager,
			Eager{Bytes: row.Int("bytes"), Returned: row.Int("eager"), Waited: row.Int("rendezvous")})
		return nil
	})
}

// askTimes asks for the times of messages that meet a condition. inside tells which rows are of messages inside a node.
func (in *Input) askTimes(ctx context.Context, ask sqlrows.Ask, o LearnOptions, where string,
	inside func(sqlrows.Row) bool) error {
	column := throughs[o.Through].column
	return ask(ctx, "message-times", map[string]string{"where": where}, func(row sqlrows.Row) error {
		p := Point{Bytes: row.Int("bytes"), Messages: row.Int("messages"), Ns: float64(row.Int(column)),
			MinNs: float64(row.Int("min_ns")), MedianNs: float64(row.Int("median_ns"))}
		if inside(row) {
			in.Inside = append(in.Inside, p)
		} else {
			in.Between = append(in.Between, p)
		}
		return nil
	})
}

// sameNode is a condition on messages: their ranks are on one node.
func sameNode(nodes []int32) string {
	node := func(rank string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "CASE %s", rank)
		for r, n := range nodes {
			fmt.Fprintf(&b, " WHEN %d THEN %d", r, n)
		}
		return b.String() + " END"
	}
	return fmt.Sprintf("%s = %s", node("src"), node("dst"))
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

// readLaunched reads what only the program of commq calibrate --launch has: rounds and samples of the cycle time.
func (in *Input) readLaunched(ctx context.Context, r *run.Run, l *Launched) error {
	in.Sharing = r.Manifest.TimeOrigin == "measured" && len(r.Manifest.SharedCores()) > 0
	rounds := map[int32][]Transfer{}
	err := r.Messages(ctx, "src", "dst", "tag", "bytes", "send_start_ns",
		"recv_end_ns")(func(b *schema.Messages) error {
		for i, tag := range b.Tag {
			switch {
			case tag == l.ClockTag:
				in.StatedMHz = b.Bytes[i]
			case tag == l.TopClockTag:
				in.StatedMHz, in.StatedTop = b.Bytes[i], true
			case tag >= l.RoundTag && b.SendStartNs[i] != schema.NullInt64 && b.RecvEndNs[i] != schema.NullInt64:
				rounds[tag] = append(rounds[tag],
					Transfer{b.Src[i], b.Dst[i], b.Bytes[i], b.SendStartNs[i], b.RecvEndNs[i]})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, tag := range slices.Sorted(maps.Keys(rounds)) {
		slices.SortFunc(rounds[tag], func(a, b Transfer) int {
			return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst))
		})
		in.Rounds = append(in.Rounds, rounds[tag])
	}
	if r.Manifest.ComputeClock == "none" {
		return nil
	}
	return r.Events(ctx, "rank", "send_tag", "compute_ns")(func(e *schema.Events) error {
		for i, tag := range e.SendTag {
			if tag == l.CycleTag && e.ComputeNs[i] > 0 {
				in.CyclesNs = append(in.CyclesNs, float64(e.ComputeNs[i])/float64(l.CycleAdds))
			}
		}
		return nil
	})
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
