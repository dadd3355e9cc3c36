package predict

import (
	"fmt"
	"math"
	"slices"
)

// Capture is one of several captures of a program on the same number of ranks.
type Capture struct {
	// Run is the name of the run, Digest its digest.
	Run    string `json:"run"`
	Digest string `json:"digest"`
}

// Pool makes one signature of those on the same number of ranks: captures of one program, whose compute times differ by what else the machine did. It is the
// first one's, with the median over the captures of the mean compute time of each call that differs (and of its instructions and cycles), for each event. It is
// an error where captures do not make the same calls, or have their compute times of different clocks. Others are returned as they are, all by number of ranks.
func Pool(runs []*Signature) ([]*Signature, error) {
	all := slices.Clone(runs)
	slices.SortStableFunc(all, func(a, b *Signature) int { return int(a.Ranks) - int(b.Ranks) })
	var pooled []*Signature
	for from, to := 0, 0; from < len(all); from = to {
		for to = from; to < len(all) && all[to].Ranks == all[from].Ranks; to++ {
		}
		s, err := pool(all[from:to])
		if err != nil {
			return nil, err
		}
		pooled = append(pooled, s)
	}
	return pooled, nil
}

// pool is one signature of captures on one number of ranks.
func pool(captures []*Signature) (*Signature, error) {
	first := captures[0]
	if len(captures) == 1 {
		return first, nil
	}
	s := *first
	s.Values = slices.Clone(first.Values)
	s.Captures = first.captures()
	times := [][]pooledTimes{first.pooledTimes()}
	for _, other := range captures[1:] {
		if other.ComputeClock != first.ComputeClock {
			return nil, fmt.Errorf("runs %q and %q on %d ranks have compute times of different clocks, %q and %q; give those of one", first.Run, other.Run, first.Ranks,
				first.ComputeClock, other.ComputeClock)
		}
		of, err := first.timesOf(other)
		if err != nil {
			return nil, err
		}
		times = append(times, of)
		s.Captures = append(s.Captures, other.captures()...)
		if x := other.Oversubscribed; x != nil && (*x || s.Oversubscribed == nil) {
			s.Oversubscribed = x
		}
	}
	for id := range s.Values {
		of := make([]*pooledTimes, len(times))
		for i := range times {
			of[i] = &times[i][id]
		}
		s.Values[id].pool(of)
	}
	return &s, nil
}

// captures are those that the signature is of.
func (s *Signature) captures() []Capture {
	if s.Captures != nil {
		return slices.Clone(s.Captures)
	}
	return []Capture{{s.Run, s.Digest}}
}

// pooledTimes are the compute times of a capture at an event of the first one.
type pooledTimes struct {
	calls []meanTime // by call
	times *Times     // of the event there
}

// meanTime is the sum of the times of calls, and how many these are.
type meanTime struct {
	ns float64
	n  int64
}

// mean is not a number where there are none.
func (m meanTime) mean() float64 { return m.ns / float64(m.n) }

// pooledTimes are the signature's own.
func (s *Signature) pooledTimes() []pooledTimes {
	of, occurrences := make([]pooledTimes, len(s.Values)), s.occurrences()
	for id := range s.Values {
		v := &s.Values[id]
		of[id] = pooledTimes{make([]meanTime, len(v.Events)), v.Times}
		for i, c := range v.Events {
			if ns := v.meanNs(c); !math.IsNaN(ns) {
				n := occurrences[id][i]
				of[id].calls[i] = meanTime{ns * float64(n), n}
			}
		}
	}
	return of
}

// timesOf are the times of another capture at the signature's events and calls. It is an error where a rank does not make the same calls.
func (s *Signature) timesOf(other *Signature) ([]pooledTimes, error) {
	of := make([]pooledTimes, len(s.Values))
	for id := range s.Values {
		of[id].calls = make([]meanTime, len(s.Values[id].Events))
	}
	mine, theirs := s.paths(false), other.paths(false)
	for rank := range s.Ranks {
		a, b := s.cursor(rank), other.cursor(rank)
		for seq := 0; ; seq++ {
			n, i := a.next()
			m, k := b.next()
			if n == nil && m == nil {
				break
			}
			if n == nil || m == nil {
				return nil, fmt.Errorf("runs %q and %q on %d ranks are not captures of the same: rank %d ends after %d calls in one of them; give one of them", s.Run, other.Run, s.Ranks, rank, seq)
			}
			c, d := s.Values[n.ID].Events[i], other.Values[m.ID].Events[k]
			if what := s.differs(other, c, d); mine[n.ID] != theirs[m.ID] || what != "" {
				if what == "" {
					what = "which call it is, or where"
				}
				return nil, fmt.Errorf("runs %q and %q on %d ranks are not captures of the same: rank %d, seq %d: %s and %s differ in %s; give one of them", s.Run, other.Run, s.Ranks,
					rank, seq, s.name(n), other.name(m), what)
			}
			if ns := other.Values[m.ID].meanNs(d); !math.IsNaN(ns) {
				x := &of[n.ID].calls[i]
				x.ns += ns
				x.n++
			}
			of[n.ID].times = other.Values[m.ID].Times
		}
	}
	return of, nil
}

// differs says in what two captures' calls differ; empty: they do the same. Communicators and datatypes have numbers of their own in each.
func (s *Signature) differs(other *Signature, a, b *Call) string {
	side := func(a, b Side) bool {
		if len(a) != len(b) {
			return true
		}
		for i := range a {
			if i != SideDatatype && a[i] != b[i] {
				return true
			}
		}
		return false
	}
	members := func(s *Signature, c *Call) Ranks {
		if of := s.comms[c.Comm.int32()]; of != nil {
			return of.Members
		}
		return nil
	}
	switch {
	case side(a.Send, b.Send):
		return "what is sent"
	case side(a.Recv, b.Recv):
		return "what is received"
	case value(a.Root, -1) != value(b.Root, -1):
		return "the root"
	case a.ReduceOp != b.ReduceOp || a.Class != b.Class:
		return "what they do"
	case !slices.Equal(members(s, a), members(other, b)):
		return "the communicator"
	}
	return ""
}

// pool gives an event the medians of times, the first of which are its own.
func (v *Values) pool(captures []*pooledTimes) {
	if len(v.Events) == 0 || v.Times == nil {
		return
	}
	sum, count := 0.0, int64(0)
	events := make([]*Call, len(v.Events))
	for i, c := range v.Events {
		var means []float64
		for _, of := range captures {
			if x := of.calls[i]; x.n > 0 {
				means = append(means, x.mean())
			}
		}
		kept := *c
		events[i] = &kept
		own := captures[0].calls[i]
		if len(means) == 0 {
			continue
		}
		mean := Median(means)
		if c.ComputeNs != nil {
			ns := int64(math.Round(mean))
			kept.ComputeNs = &ns
		}
		sum += mean * float64(own.n)
		count += own.n
	}
	if count == 0 {
		return
	}
	v.Events = events
	t := &Times{Compute: pooledSpread(captures, func(t *Times) *Spread { return &t.Compute })}
	t.Compute.Sum, t.Compute.Count = int64(math.Round(sum)), count
	for _, x := range []struct {
		to *(*Spread)
		of func(t *Times) *Spread
	}{{&t.Instructions, func(t *Times) *Spread { return t.Instructions }}, {&t.Cycles, func(t *Times) *Spread { return t.Cycles }}, {&t.Noise, func(t *Times) *Spread { return t.Noise }}} {
		if x.of(v.Times) != nil {
			s := pooledSpread(captures, x.of)
			*x.to = &s
		}
	}
	v.Times = t
}

// pooledSpread has the medians of the captures' numbers.
func pooledSpread(captures []*pooledTimes, of func(*Times) *Spread) (s Spread) {
	for _, x := range []func(*Spread) *int64{func(s *Spread) *int64 { return &s.Count }, func(s *Spread) *int64 { return &s.Sum }, func(s *Spread) *int64 { return &s.Low },
		func(s *Spread) *int64 { return &s.Median }, func(s *Spread) *int64 { return &s.High }} {
		var all []float64
		for _, c := range captures {
			if c.times == nil {
				continue
			}
			if from := of(c.times); from != nil {
				all = append(all, float64(*x(from)))
			}
		}
		*x(&s) = int64(math.Round(Median(all)))
	}
	return s
}

// Median is the middle of the values, of which there is one; of an even number of them the mean of the two in the middle. It is in their unit.
func Median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
