package diagnose

import (
	"cmp"
	"maps"
	"slices"

	"github.com/commq/commq/models/critical"
)

// Instances are what a finding is made of: on which ranks, when, and the longest single ones.
type Instances struct {
	// Of is what the times are of: waits (of all ranks because of the cause), computing (longer than the mean before
	// this call) or calls (in these calls, from the first to the last).
	Of string `json:"of"`
	// Ranks are the ranks that cause it with their parts, the largest first.
	Ranks []RankShare `json:"ranks"`
	// OverTime are equal parts of the time of the run, and what was lost in each.
	OverTime []TimeSlice `json:"over_time"`
	// Longest are the instances that cost most, at most five.
	Longest []Instance `json:"longest"`
	// Before are the calls that led to the cause, the ones that took most time first; only of the finding that is asked
	// for.
	Before []Chain `json:"before"`
}

// RankShare is a rank's part of a finding.
type RankShare struct {
	// Rank is the rank.
	Rank int32 `json:"rank"`
	// Ns is what it computed longer than it had to (of waits), or than the mean, or its time in the calls.
	Ns int64 `json:"ns"`
	// Share is that part of the sum over all ranks.
	Share float64 `json:"share"`
}

// TimeSlice is a part of the time of a run.
type TimeSlice struct {
	// FromNs and ToNs are when it begins and ends, after the start of the run.
	FromNs int64 `json:"from_ns"`
	ToNs   int64 `json:"to_ns"`
	// Ns is the time lost in it, by all ranks together.
	Ns int64 `json:"ns"`
}

// Instance is one time that a finding cost.
type Instance struct {
	// AtNs is when it began, after the start of the run.
	AtNs int64 `json:"at_ns"`
	// Rank is the rank that waited (the longest, if several did), computed or called.
	Rank int32 `json:"rank"`
	// Ns is the time lost, by all ranks that waited together.
	Ns int64 `json:"ns"`
	// OwnNs is what Rank lost of it.
	OwnNs int64 `json:"own_ns"`
	// For is what the rank waited for: late sender, late receiver or wait at collective. It is empty if it did not
	// wait.
	For string `json:"for"`
	// Peer is the rank that it waited for, or that it sent to or received from; null if there is none.
	Peer *int32 `json:"peer"`
	// Place is the place of the call in the program, and Call the MPI function.
	Place string `json:"callsite"`
	Call  string `json:"call"`
}

// Chain are calls that a rank made one after the other.
type Chain struct {
	// Calls are the calls, the last one being that of the finding.
	Calls []Step `json:"calls"`
	// Ns is the computing between the last two, or of calls the time in the last one; of all ranks that cause the
	// finding.
	Ns int64 `json:"ns"`
	// Times is how often they came in this order.
	Times int64 `json:"times"`
}

// Step is a call of a chain.
type Step struct {
	// Place is its place in the program, and Call the MPI function.
	Place string `json:"callsite"`
	Call  string `json:"call"`
}

// The values of Instances.Of.
const (
	ofWaits     = "waits"
	ofComputing = "computing"
	ofCalls     = "calls"
)

// timeSlices is the number of parts of the run's time.
const timeSlices = 10

// lost has the time lost in waits because of a cause: over time, and the longest waits.
type lost struct {
	course  critical.Course
	longest []critical.Instance
}

func (l *lost) add(d *critical.Delay) {
	l.course.Add(d.Course)
	l.longest = critical.AddInstances(l.longest, d.Longest...)
}

// instances returns the waits because of a cause; nil if there are none.
func (c *cause) instances(path *critical.Path, place func(int32) string) *Instances {
	if c.waitNs == 0 {
		return nil
	}
	in := &Instances{Of: ofWaits, Ranks: shares(c.excess()), Longest: []Instance{}, Before: []Chain{},
		OverTime: slicesOf(&c.lost.course, path.EndNs-path.DurationNs, path.EndNs)}
	for _, x := range c.lost.longest {
		in.Longest = append(in.Longest, Instance{AtNs: x.AtNs, Rank: x.Rank, Ns: x.Ns, OwnNs: x.OwnNs,
			For: x.For.String(), Peer: &x.Peer, Place: place(x.Site), Call: x.Call.String()})
	}
	return in
}

// shares returns the parts of ranks, the largest first.
func shares(ns map[int32]int64) []RankShare {
	sum, all := sumOf(ns), make([]RankShare, 0, len(ns))
	for _, rank := range slices.Sorted(maps.Keys(ns)) {
		all = append(all, RankShare{rank, ns[rank], float64(ns[rank]) / float64(max(1, sum))})
	}
	slices.SortStableFunc(all, func(a, b RankShare) int { return cmp.Compare(b.Ns, a.Ns) })
	return all
}

// slicesOf divides a time of the run into equal parts, with the time lost in each.
func slicesOf(c *critical.Course, from, to int64) []TimeSlice {
	all := make([]TimeSlice, timeSlices)
	at := func(i int) int64 { return from + (to-from)*int64(i)/timeSlices }
	for i, ns := range c.Slices(from, to, timeSlices) {
		all[i] = TimeSlice{at(i), at(i + 1), ns}
	}
	return all
}
