package diagnose

import (
	"fmt"
	"slices"
)

// Window is the part of a run in which a finding is seen best: some ranks around the longest wait.
type Window struct {
	// FromNs and ToNs are when it begins and ends, after the start of the run.
	FromNs int64 `json:"from_ns"`
	ToNs   int64 `json:"to_ns"`
	// Ranks are the rank that waited, those that caused it, and neighbours, in ascending order.
	Ranks []int32 `json:"ranks"`
}

// A window has windowRanks ranks; at most windowCauses of them cause the finding.
const (
	windowRanks  = 8
	windowCauses = 4
)

// window returns the part of the run that shows a finding best; nil if it has no waits, or if they are of simulated
// times, which the run does not have.
func (d *Diagnosis) window(f *Finding) *Window {
	if d.TimesSimulated || len(f.Waits) == 0 || f.Waits[0].LongestNs <= 0 {
		return nil
	}
	longest := f.longest()
	margin := longest.OwnNs / 2
	w := &Window{FromNs: max(0, longest.AtNs-margin), ToNs: longest.AtNs + longest.OwnNs + margin}
	w.add(longest.Rank)
	for _, rank := range f.Ranks[:min(windowCauses, len(f.Ranks))] {
		w.add(rank)
	}
	for away := int32(1); len(w.Ranks) < windowRanks && int(away) < d.Ranks; away++ {
		for _, rank := range []int32{longest.Rank - away, longest.Rank + away} {
			if rank >= 0 && int(rank) < d.Ranks && len(w.Ranks) < windowRanks {
				w.add(rank)
			}
		}
	}
	slices.Sort(w.Ranks)
	return w
}

// longest returns the instance that cost most, or the longest single wait if there are no instances.
func (f *Finding) longest() (x Instance) {
	if in := f.Instances; in != nil && in.Of == ofWaits && len(in.Longest) > 0 {
		return in.Longest[0]
	}
	for _, w := range f.Waits {
		if w.LongestNs > x.OwnNs {
			x = Instance{AtNs: w.LongestAtNs, Rank: w.LongestRank, OwnNs: w.LongestNs}
		}
	}
	return x
}

func (w *Window) add(rank int32) {
	if !slices.Contains(w.Ranks, rank) {
		w.Ranks = append(w.Ranks, rank)
	}
}

// Args returns the arguments with which the query timeline shows the window.
func (w *Window) Args() map[string]string {
	return map[string]string{"from-s": seconds(w.FromNs), "to-s": seconds(w.ToNs)}
}

func seconds(ns int64) string { return fmt.Sprintf("%d.%09d", ns/1e9, ns%1e9) }

// RankComputing returns the computing time of each rank in the whole run, in ns.
func (d *Diagnosis) RankComputing() []int64 { return d.computing }

// ComputingNs returns the computing time of all ranks together; 0 if it is unknown.
func (d *Diagnosis) ComputingNs() int64 {
	if d.Efficiency == nil {
		return 0
	}
	return int64(d.Efficiency.Parallel * float64(d.SimulatedNs) * float64(d.Ranks))
}
