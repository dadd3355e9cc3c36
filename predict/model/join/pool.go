package join

import (
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/internal/stats"
	"github.com/commq/commq/predict/internal/nulls"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
)

// Pool merges signatures on the same number of ranks: captures of one run whose compute times differ because of other
// load on the machine. The result is the first capture's signature, in which the mean compute time of each distinct
// call and the distribution of each event are replaced by the medians over the captures. Single captures are returned
// unchanged. It is an error if captures do not make the same calls, or have compute times of different clocks. The
// result is ordered by number of ranks.
func Pool(runs []*signature.Signature) ([]*signature.Signature, error) {
	all := slices.Clone(runs)
	slices.SortStableFunc(all, func(a, b *signature.Signature) int { return int(a.Ranks) - int(b.Ranks) })
	var pooled []*signature.Signature
	for from, to := 0, 0; from < len(all); from = to {
		for to = from; to < len(all) && all[to].Ranks == all[from].Ranks; to++ {
		}
		s, err := poolCaptures(all[from:to])
		if err != nil {
			return nil, err
		}
		pooled = append(pooled, s)
	}
	return pooled, nil
}

// poolCaptures merges captures on one number of ranks.
func poolCaptures(captures []*signature.Signature) (*signature.Signature, error) {
	first := captures[0]
	if len(captures) == 1 {
		return first, nil
	}
	s := *first
	s.Values = slices.Clone(first.Values)
	s.Captures = capturesOf(first)
	var times [][]captureTimes
	for _, other := range captures {
		if other.ComputeClock != first.ComputeClock {
			return nil, fmt.Errorf(
				"runs %q and %q on %d ranks have compute times of different clocks, %q and %q; give "+
					"those of one clock", first.Run, other.Run, first.Ranks, first.ComputeClock, other.ComputeClock)
		}
		t, err := timesAt(first, other)
		if err != nil {
			return nil, err
		}
		times = append(times, t)
		if other == first {
			continue
		}
		s.Captures = append(s.Captures, capturesOf(other)...)
		if x := other.Oversubscribed; x != nil && (*x || s.Oversubscribed == nil) {
			s.Oversubscribed = x
		}
	}
	for id := range s.Values {
		byCapture := make([]*captureTimes, len(times))
		for i := range times {
			byCapture[i] = &times[i][id]
		}
		poolEvent(&s.Values[id], byCapture)
	}
	return &s, nil
}

// capturesOf returns the captures that a signature's compute times are from.
func capturesOf(s *signature.Signature) []signature.Capture {
	if s.Captures != nil {
		return slices.Clone(s.Captures)
	}
	return []signature.Capture{{Run: s.Run, Digest: s.Digest}}
}

// captureTimes are the compute times of a capture at an event of the first capture.
type captureTimes struct {
	calls []callTime // by value
	times *signature.Times
}

// callTime sums the times before calls with a value: before those that follow a call of another event, and before the
// others. isSplit means that the others have times of their own in the capture.
type callTime struct {
	first, others timeSum
	isSplit       bool
}

// all sums up both.
func (t *callTime) all() timeSum { return timeSum{t.first.ns + t.others.ns, t.first.n + t.others.n} }

// timeSum is the sum of the times of n calls.
type timeSum struct {
	ns float64
	n  int64
}

// add adds a time; NaN is none.
func (t *timeSum) add(ns float64) {
	if !math.IsNaN(ns) {
		t.ns += ns
		t.n++
	}
}

// timesAt returns the times of a capture at the nodes and values of the first one. It is an error if a rank does
// not make the same calls in both.
func timesAt(first, other *signature.Signature) ([]captureTimes, error) {
	times := make([]captureTimes, len(first.Values))
	for id := range first.Values {
		times[id].calls = make([]callTime, len(first.Values[id].Events))
	}
	paths, otherPaths := first.EventPaths(false), other.EventPaths(false)
	different := func(format string, args ...any) error {
		return fmt.Errorf("runs %q and %q on %d ranks are not captures of the same run: %s; give one of them",
			first.Run, other.Run, first.Ranks, fmt.Sprintf(format, args...))
	}
	for rank := range first.Ranks {
		a, b := first.Cursor(rank), other.Cursor(rank)
		var last *template.Node
		for seq := 0; ; seq++ {
			n, i := a.Next()
			m, k := b.Next()
			if n == nil && m == nil {
				break
			}
			if n == nil || m == nil {
				return nil, different("rank %d ends after %d calls in one of them", rank, seq)
			}
			c, d := first.Values[n.ID].Events[i], other.Values[m.ID].Events[k]
			what := ""
			if other != first {
				what = difference(first, other, c, d)
			}
			if what == "" && paths[n.ID] != otherPaths[m.ID] {
				what = "the call or its place"
			}
			if what != "" {
				return nil, different("rank %d, seq %d: %s and %s differ in %s", rank, seq, first.NodeName(n),
					other.NodeName(m), what)
			}
			x, isFirst := &times[n.ID].calls[i], n != last
			x.isSplit = d.FirstNs != nil
			if isFirst {
				x.first.add(other.Values[m.ID].MeanNs(d, isFirst))
			} else {
				x.others.add(other.Values[m.ID].MeanNs(d, isFirst))
			}
			last = n
			times[n.ID].times = other.Values[m.ID].Times
		}
	}
	return times, nil
}

// difference names the first thing in which calls of two captures differ; empty if they do the same. Communicators and
// datatypes have ids of their own in each capture.
func difference(first, other *signature.Signature, a, b *signature.Call) string {
	differ := func(a, b signature.Side) bool {
		if len(a) != len(b) {
			return true
		}
		for i := range a {
			if i != signature.SideDatatype && a[i] != b[i] {
				return true
			}
		}
		return false
	}
	members := func(s *signature.Signature, c *signature.Call) signature.Ranks {
		if comm := s.CommByID(c.Comm.Int32()); comm != nil {
			return comm.Members
		}
		return nil
	}
	switch {
	case differ(a.Send, b.Send):
		return "what is sent"
	case differ(a.Recv, b.Recv):
		return "what is received"
	case nulls.Value(a.Root, -1) != nulls.Value(b.Root, -1):
		return "the root"
	case a.ReduceOp != b.ReduceOp || a.Class != b.Class:
		return "the operation"
	case !slices.Equal(members(first, a), members(other, b)):
		return "the communicator"
	}
	return ""
}

// poolEvent replaces the times of an event by medians.
func poolEvent(v *signature.Values, captures []*captureTimes) {
	if len(v.Events) == 0 || v.Times == nil {
		return
	}
	sum, count := 0.0, int64(0)
	events := make([]*signature.Call, len(v.Events))
	for i, c := range v.Events {
		kept := *c
		events[i] = &kept
		of := func(time func(*callTime) timeSum) *int64 {
			mean, n := medianOf(captures, i, time)
			sum += mean * float64(n)
			count += n
			if n == 0 {
				return nil
			}
			ns := int64(math.Round(mean))
			return &ns
		}
		if isMostlySplit(captures, i) {
			kept.FirstNs = of(func(t *callTime) timeSum { return t.first })
			kept.ComputeNs = of(func(t *callTime) timeSum { return t.others })
			continue
		}
		kept.FirstNs = nil
		if ns := of((*callTime).all); c.ComputeNs != nil && ns != nil {
			kept.ComputeNs = ns
		}
	}
	if count == 0 {
		return
	}
	v.Events = events
	t := &signature.Times{
		Compute: *poolSpread(captures, func(t *signature.Times) *signature.Spread { return &t.Compute })}
	t.Compute.Sum, t.Compute.Count = int64(math.Round(sum)), count
	if v.Times.Instructions != nil {
		t.Instructions = poolSpread(captures, func(t *signature.Times) *signature.Spread { return t.Instructions })
	}
	if v.Times.Cycles != nil {
		t.Cycles = poolSpread(captures, func(t *signature.Times) *signature.Spread { return t.Cycles })
	}
	if v.Times.Noise != nil {
		t.Noise = poolSpread(captures, func(t *signature.Times) *signature.Spread { return t.Noise })
	}
	t.Shared = int64(math.Round(stats.Median(sharedNoise(captures))))
	t.ByRank = poolRanks(captures)
	if t.ByRank != nil && slices.ContainsFunc(captures, func(c *captureTimes) bool { return c.times.AroundRanks() != nil }) {
		t.OwnNoise = poolSpread(captures, (*signature.Times).AroundRanks)
	}
	v.Times = t
}

// isMostlySplit reports whether most captures have times of their own for the first calls with a value.
func isMostlySplit(captures []*captureTimes, value int) bool {
	split := 0
	for _, t := range captures {
		if t.calls[value].isSplit {
			split++
		}
	}
	return 2*split > len(captures)
}

// medianOf returns the median over captures of the mean times before calls with a value, and how many of these calls
// the first capture has; 0 if no capture has any.
func medianOf(captures []*captureTimes, value int, time func(*callTime) timeSum) (mean float64, n int64) {
	var means []float64
	for _, t := range captures {
		if x := time(&t.calls[value]); x.n > 0 {
			means = append(means, x.ns/float64(x.n))
		}
	}
	if len(means) == 0 {
		return 0, 0
	}
	return stats.Median(means), time(&captures[0].calls[value]).n
}

// sharedNoise returns how far ranks share their noise in each capture with times.
func sharedNoise(captures []*captureTimes) (all []float64) {
	for _, c := range captures {
		if c.times != nil {
			all = append(all, float64(c.times.Shared))
		}
	}
	return all
}

// poolRanks returns the medians of the captures' ratios of ranks; nil if no capture has any.
func poolRanks(captures []*captureTimes) (by []int64) {
	for _, c := range captures {
		if c.times != nil && len(c.times.ByRank) > len(by) {
			by = make([]int64, len(c.times.ByRank))
		}
	}
	for rank := range by {
		var all []float64
		for _, c := range captures {
			if c.times != nil {
				all = append(all, c.times.RankFactor(int32(rank)))
			}
		}
		by[rank] = int64(math.Round(1000 * stats.Median(all)))
	}
	return by
}

// poolSpread returns a distribution whose numbers are the medians of the captures'.
func poolSpread(captures []*captureTimes, spread func(*signature.Times) *signature.Spread) *signature.Spread {
	median := func(number func(*signature.Spread) int64) int64 {
		var all []float64
		for _, c := range captures {
			if c.times == nil {
				continue
			}
			if s := spread(c.times); s != nil {
				all = append(all, float64(number(s)))
			}
		}
		return int64(math.Round(stats.Median(all)))
	}
	return &signature.Spread{
		Count:  median(func(s *signature.Spread) int64 { return s.Count }),
		Sum:    median(func(s *signature.Spread) int64 { return s.Sum }),
		Low:    median(func(s *signature.Spread) int64 { return s.Low }),
		Median: median(func(s *signature.Spread) int64 { return s.Median }),
		High:   median(func(s *signature.Spread) int64 { return s.High })}
}
