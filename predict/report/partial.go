package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/regress"
	"github.com/commq/commq/predict/signature"
)

// Partial is the part of a prediction whose calls and partners are certain, and its gaps.
type Partial struct {
	// Known is the number of calls of the program that send or take part in collective operations and are predicted
	// completely.
	Known int `json:"known_communications"`
	// Unknown is the number of the others, which Gaps describe.
	Unknown int `json:"unknown_communications"`
	// Messages is the number of messages of the completely predicted communications.
	Messages int64 `json:"known_messages"`
	// Bytes are their payload.
	Bytes int64 `json:"known_message_bytes"`
	// BytesLow is the lower bound of Bytes, which differs where sizes are estimates.
	BytesLow int64 `json:"low_known_message_bytes"`
	// BytesHigh is the upper bound of Bytes; the largest number of 64 bits if none is known.
	BytesHigh int64 `json:"high_known_message_bytes"`
	// Collectives is the number of calls of collective operations of the completely predicted communications.
	Collectives int64 `json:"known_collective_calls"`
	// Edges is the number of pairs of ranks with messages whose receivers are known.
	Edges int64 `json:"known_edges"`
	// Gaps are the communications that are not predicted completely, those with most calls first.
	Gaps []Gap `json:"gaps"`
}

// Gap is a communication that is not predicted completely.
type Gap struct {
	// Call names the call and its place.
	Call string `json:"call"`
	// Unknown is the part that is not predicted: calls (who makes them, how often, with whom), or only sizes or peers.
	Unknown string `json:"unknown"`
	// Why is the reason.
	Why string `json:"why"`
	// Run is the number of ranks at which a run would settle most of these calls, or rule out laws of most; 0 if none is
	// known.
	Run int32 `json:"ranks,omitempty"`
	// Calls is the number of calls of all ranks if the trend of the runs' totals continues.
	Calls Total `json:"calls"`
	// Bytes is the number of bytes that they send, likewise.
	Bytes Total `json:"bytes"`
	// Callers is the number of ranks that make it, if the runs' numbers continue.
	Callers Total `json:"callers"`
	// CallsOfACaller is how many of the calls each of these ranks makes, as a distribution: which rank makes how many is
	// not known.
	CallsOfACaller SpreadTrend `json:"calls_of_a_caller"`
	// BytesOfACaller is how many bytes each of them sends, likewise.
	BytesOfACaller SpreadTrend `json:"bytes_of_a_caller"`
	// Seen are the totals and distributions in the training runs.
	Seen []Seen `json:"seen"`
}

// Total is a number of all ranks together.
type Total struct {
	// Value is the most likely value.
	Value int64 `json:"value"`
	// Low is the lower bound.
	Low int64 `json:"low"`
	// High is the upper bound; null if nothing is known.
	High *int64 `json:"high"`
	// Law is the law of the totals.
	Law string `json:"law,omitempty"`
	// InAllRuns tells whether all runs follow it to the unit.
	InAllRuns bool `json:"holds_in_all_runs"`
}

// Seen are the calls of a communication in a training run.
type Seen struct {
	// Ranks is the number of ranks of the run.
	Ranks int32 `json:"ranks"`
	// Calls is the number of calls of all ranks.
	Calls int64 `json:"calls"`
	// Bytes is the number of bytes that they send.
	Bytes int64 `json:"bytes"`
	// Callers is the number of ranks that make them.
	Callers int64 `json:"callers"`
	// CallsOfACaller is how many each of these ranks makes.
	CallsOfACaller Spread `json:"calls_of_a_caller"`
	// BytesOfACaller is how many bytes each of them sends.
	BytesOfACaller Spread `json:"bytes_of_a_caller"`
}

// NewPartial returns the known part of a prediction with gaps, which w weighs; nil if it has no gaps, or if nothing is
// known.
func NewPartial(w *Weigher) *Partial {
	m, x, ranks := w.model, w.prediction, w.ranks
	if x.Signature == nil || len(x.Gaps) == 0 {
		return nil
	}
	p, known := &Partial{Gaps: []Gap{}}, Totals{}
	occurrences := x.Signature.Occurrences(x.Signature.Roots)
	next := suggestableRuns(m, ranks)
	for _, s := range m.Sites {
		switch gap, counts := gapOf(m, x, s); {
		case !counts:
		case gap == nil:
			p.Known++
			known.addSite(x, s, occurrences[s.Event.ID], interval{1, 1})
		default:
			p.Unknown++
			p.Gaps = append(p.Gaps, newGap(m, s, gap, ranks))
			p.Gaps[len(p.Gaps)-1].Run = w.bestForCalls(next, func(event int32) bool { return event == s.Event.ID })
		}
	}
	p.Messages, p.Collectives = known.Messages.Value, known.Collectives.Value
	p.Bytes, p.BytesLow, p.BytesHigh = known.Bytes.Value, known.Bytes.Low, known.Bytes.High
	p.Edges = int64(len(edgesOf(x.Signature, x.Gaps)))
	slices.SortStableFunc(p.Gaps, func(a, b Gap) int { return cmp.Compare(b.Calls.Value, a.Calls.Value) })
	return p
}

// gapOf returns why a site's calls are not predicted completely; nil if they are. counts tells whether they send, take
// part in collective operations, or have peers that are not predicted.
func gapOf(m *model.Model, x *generate.Prediction, s *model.Site) (gap *generate.Gap, counts bool) {
	gap = x.Gaps[s.Event.ID]
	counts = sendsBytes(m, s) || gap != nil && gap.Peers != ""
	if gap == nil || gap.Calls == "" {
		gap = cmp.Or(uncertainCount(s, x), conflictGap(s, x), gap)
	}
	return gap, counts
}

// uncertainCount returns the gap of a site inside a loop with an uncertain number of iterations; nil if there is no
// such loop.
func uncertainCount(s *model.Site, x *generate.Prediction) *generate.Gap {
	for n := s.Event; n != nil; n = n.Parent {
		for _, l := range x.Loops {
			if l.Node == n.ID {
				return &generate.Gap{Calls: fmt.Sprintf("there may be %s iterations of %s", generate.RangeText(l.Low, l.High),
					l.Loop)}
			}
		}
	}
	return nil
}

// conflictGap returns the gap of a site whose calls may be those of one of several laws that was picked; nil if none was.
func conflictGap(s *model.Site, x *generate.Prediction) *generate.Gap {
	if len(x.Conflicts) == 0 || !inConflict(s) {
		return nil
	}
	return &generate.Gap{Calls: "one of the laws that fit all runs was picked, and they conflict"}
}

// newGap describes a gap and the totals of the runs.
func newGap(m *model.Model, s *model.Site, gap *generate.Gap, ranks int32) Gap {
	g := Gap{Call: m.NodeName(s.Event), Unknown: "calls", Why: shorten(gap.Calls)}
	switch {
	case gap.Calls != "":
	case gap.Sizes != "":
		g.Unknown, g.Why = "sizes", shorten(gap.Sizes)
	default:
		g.Unknown, g.Why = "peers", shorten(gap.Peers)
	}
	var calls, bytes, callers []regress.Point
	for i := range m.Training {
		seen := seenOf(m, s, i)
		g.Seen = append(g.Seen, seen)
		point := func(value int64) regress.Point {
			return regress.Point{Ranks: int64(seen.Ranks), Value: float64(value)}
		}
		calls, bytes, callers = append(calls, point(seen.Calls)), append(bytes, point(seen.Bytes)),
			append(callers, point(seen.Callers))
	}
	g.Calls, g.Bytes, g.Callers = newTotal(calls, ranks), newTotal(bytes, ranks), newTotal(callers, ranks)
	g.CallsOfACaller = continueSpreads(g.Seen, func(x *Seen) (Spread, int64) { return x.CallsOfACaller, x.Calls },
		g.Calls, g.Callers, ranks)
	g.BytesOfACaller = continueSpreads(g.Seen, func(x *Seen) (Spread, int64) { return x.BytesOfACaller, x.Bytes },
		g.Bytes, g.Callers, ranks)
	return g
}

// shorten cuts a reason after its first laws.
func shorten(why string) string {
	first, _, _ := strings.Cut(why, "; ")
	return first
}

// seenOf adds up the calls of a site in a run.
func seenOf(m *model.Model, s *model.Site, run int) Seen {
	x := Seen{Ranks: m.Training[run]}
	var ofCalls, ofBytes []int64
	sig, first := m.Joint.Sig, m.Joint.First[run]
	for rank := range x.Ranks {
		calls, bytes := int64(0), int64(0)
		sig.VisitTimes(first+rank, s.Event.ID, func(value int32, times int64) {
			c := sig.Values[s.Event.ID].Events[value]
			if s.Sends && !sig.SendsMessage(sig.Nodes()[s.Event.ID], c) {
				return
			}
			calls += times
			if c.Send.HasBytes() {
				bytes += times * int64(c.Send[signature.SideBytes])
			}
		})
		x.Calls, x.Bytes = x.Calls+calls, x.Bytes+bytes
		if calls > 0 {
			ofCalls, ofBytes = append(ofCalls, calls), append(ofBytes, bytes)
		}
	}
	x.Callers, x.CallsOfACaller, x.BytesOfACaller = int64(len(ofCalls)), spreadOf(ofCalls), spreadOf(ofBytes)
	return x
}

// newTotal continues the totals of runs to another number of ranks.
func newTotal(seen []regress.Point, ranks int32) (t Total) {
	curve, err := regress.Fit(seen)
	if err != nil {
		return Total{}
	}
	p := curve.Predict(int64(ranks))
	t.Value, t.Low = limited(p.Value), limited(math.Floor(p.Low))
	t.Law, t.InAllRuns = p.Formula, p.Form == regress.Exact
	if !math.IsInf(p.High, 0) {
		high := limited(math.Ceil(p.High))
		t.High = &high
	}
	return t
}

// limited rounds to a number that is not negative.
func limited(x float64) int64 { return int64(math.Round(max(0, min(x, 1<<62)))) }
