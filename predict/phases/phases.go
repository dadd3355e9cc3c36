// Package phases finds the phases of a signature: sequences of calls that ranks repeat, not themselves part of a larger
// repetition. Two iterations are alike here if they make the same calls, whatever the peers and sizes.
//
//   - shapes.go numbers what ranks did at each node so that alike things have the same number.
//   - stretches.go finds where each rank repeats alike iterations, its stretches, and how often.
//   - phases.go collects the stretches of all ranks into phases, with logical time (package clock). The weight of a
//     phase is the largest number of repetitions of a rank.
//   - times.go adds the times of the calls, if there are any: when each rank was in which phase (Band), and how long a
//     repetition takes.
package phases

import (
	"cmp"
	"math"
	"slices"

	"github.com/commq/commq/predict/phases/clock"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// Result has the phases of a run.
type Result struct {
	// Phases are in template order. Ticks is the last time of the logical clock.
	Phases []signature.Phase
	Ticks  int32
	// Bands tell when each rank was in which phase: for each rank all of it, then its phases in order.
	Bands []Band
	// Unmatched describes sends and receives without a partner.
	Unmatched []string
}

// Find finds the phases of a signature. events gives the rows of the run for their times, as in signature.Run; nil
// means an untimed run. The error is that of events, or of the logical clock if ranks wait forever.
func Find(sig *signature.Signature, events func(add func(*schema.Events) error) error) (*Result, error) {
	c, err := collect(sig)
	if err != nil {
		return nil, err
	}
	r := &Result{Ticks: c.ticks, Unmatched: c.unmatched}
	if events != nil {
		t := newTimer(c)
		err := events(func(b *schema.Events) error {
			for i, rank := range b.Rank {
				t.add(rank, b.Seq[i], b.StartNs[i], b.EndNs[i])
				t.leaveOutStartup(schema.CallID(b.Call[i]), b.StartNs[i], b.EndNs[i])
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if t.setTimes() {
			r.Bands = t.timedBands()
		}
	}
	if r.Bands == nil {
		r.Bands = c.untimedBands()
	}
	inOrder := slices.Clone(c.phases)
	r.Phases = c.sorted()
	for i := range r.Bands {
		b := &r.Bands[i]
		if b.Phase == WholeRank {
			continue
		}
		was := &inOrder[b.Phase]
		b.Phase = slices.IndexFunc(r.Phases,
			func(p signature.Phase) bool { return p.Node == was.Node && p.Place == was.Place })
	}
	return r, nil
}

// WithTimes returns the phases with times from a simulation of the run. rows passes every call's start and end in ns to
// add, each rank's calls ordered by seq; its error is returned.
func WithTimes(sig *signature.Signature,
	rows func(add func(rank int32, seq, start, end int64)) error) ([]signature.Phase, error) {
	c, err := collect(sig)
	if err != nil {
		return nil, err
	}
	t := newTimer(c)
	if err := rows(t.add); err != nil {
		return nil, err
	}
	t.setTimes()
	return c.sorted(), nil
}

// collection has the phases of all ranks in the order in which they were found.
type collection struct {
	stretches [][]stretch // by rank
	index     map[phaseKey]int
	phases    []signature.Phase
	forms     []map[int32]bool // distinct sequences of calls, by phase
	ranks     []rankTicks
	ticks     int32
	unmatched []string
}

type phaseKey struct{ node, place int32 }

// phaseOf returns the index of a stretch's phase.
func (c *collection) phaseOf(s *stretch) int { return c.index[phaseKey{s.node, s.place}] }

// rankTicks records the ticks of some calls of a rank.
type rankTicks struct {
	seqs  []int64 // of the calls, ascending; -1 is before the first call and has tick 0
	ticks []int32
	last  int32 // tick of the rank's last call
}

// note takes the ticks of a rank's calls, in order.
func (x *rankTicks) note(seq int64, tick int32) {
	x.last = tick
	for len(x.ticks) < len(x.seqs) && x.seqs[len(x.ticks)] < 0 {
		x.ticks = append(x.ticks, 0)
	}
	for len(x.ticks) < len(x.seqs) && x.seqs[len(x.ticks)] == seq {
		x.ticks = append(x.ticks, tick)
	}
}

// next returns the seq of the next call whose tick is recorded.
func (x *rankTicks) next() int64 {
	if len(x.ticks) < len(x.seqs) {
		return x.seqs[len(x.ticks)]
	}
	return math.MaxInt64
}

// collect finds the phases without times and runs the logical clock.
func collect(sig *signature.Signature) (*collection, error) {
	shapes := findShapes(sig)
	c := &collection{index: map[phaseKey]int{}, ranks: make([]rankTicks, sig.Ranks)}
	for r := range sig.Ranks {
		c.stretches = append(c.stretches, findStretches(shapes, r))
		for _, s := range c.stretches[r] {
			c.ranks[r].seqs = append(c.ranks[r].seqs, s.first-1, s.end-1)
		}
	}
	result, err := clock.RunSome(sig, func(rank int32) int64 { return c.ranks[rank].next() },
		func(rank int32, seq int64, tick int32) { c.ranks[rank].note(seq, tick) })
	if err != nil {
		return nil, err
	}
	c.ticks, c.unmatched = result.Last, result.Unmatched
	var ticks []int64 // in all repetitions and ranks, by phase
	for r, list := range c.stretches {
		for k := range list {
			i := c.add(&list[k])
			if i == len(ticks) {
				ticks = append(ticks, 0)
			}
			from, to := c.borders(r, k)
			ticks[i] += int64(to - from)
		}
	}
	for i := range c.phases {
		p := &c.phases[i]
		p.Forms = len(c.forms[i])
		p.Ticks = float64(ticks[i]) / float64(p.Ranks) / float64(p.Weight)
		p.CallShare = float64(p.Calls) / float64(max(sig.Calls, 1))
	}
	return c, nil
}

// borders returns the ticks of the calls before and at the end of the k-th stretch of a rank.
func (c *collection) borders(rank, k int) (from, to int32) {
	return c.ranks[rank].ticks[2*k], c.ranks[rank].ticks[2*k+1]
}

// add adds a stretch to its phase and returns the phase's index.
func (c *collection) add(s *stretch) int {
	key := phaseKey{s.node, s.place}
	i, known := c.index[key]
	events := (s.end - s.first) / s.weight
	if !known {
		i = len(c.phases)
		c.index[key] = i
		c.phases = append(c.phases,
			signature.Phase{Node: s.node, Place: s.place, WeightMin: s.weight, EventsMin: events})
		c.forms = append(c.forms, map[int32]bool{})
	}
	p := &c.phases[i]
	p.Weight = max(p.Weight, s.weight)
	p.WeightMin, p.WeightMax = min(p.WeightMin, s.weight), p.Weight
	p.EventsMin, p.EventsMax = min(p.EventsMin, events), max(p.EventsMax, events)
	p.Ranks++
	p.Calls += s.end - s.first
	c.forms[i][s.shape] = true
	return i
}

// sorted sorts the phases into template order. It invalidates index.
func (c *collection) sorted() []signature.Phase {
	slices.SortFunc(c.phases, func(a, b signature.Phase) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Place, b.Place))
	})
	return c.phases
}
