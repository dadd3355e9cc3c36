package critical

import (
	"cmp"
	"maps"
	"slices"
)

// Step is the part of the path on some neighbouring ranks between two times, in ns since the start of the run.
type Step struct {
	// Rank is the first of Ranks neighbouring ranks.
	Rank, Ranks  int32
	FromNs, ToNs int64
	// Ns is the time by Kind.
	Ns [Kinds]int64
}

// Change is a point at which the path changes its rank: From is the rank before AtNs (since the start of the run), To
// the one after it.
type Change struct {
	From, To int32
	AtNs     int64
}

// A trace has the path in fineSteps steps up to its end, its changes of rank (unless there are more than mostChanges,
// too many to see), and, if asked for, its segments (unless there are more than mostSegments, 64 MB).
const (
	fineSteps    = 1 << 13
	mostChanges  = 1000
	mostSegments = 1 << 21
)

// trace is the path over time.
type trace struct {
	stepNs  int64
	cells   map[traceKey]*[Kinds]int64
	changes []Change
	// segments are those of the path, the last one first; nil if they are not kept or too many.
	segments []Segment
	keep     bool
}

type traceKey struct {
	step int64
	rank int32
}

// add takes in the next segment of the walk, which leads back in time. before is the rank of the segment after it; -1
// if this is the last one.
func (t *trace) add(s Segment, before int32) {
	if before < 0 {
		t.stepNs, t.cells = max(s.To, 0)/fineSteps+1, map[traceKey]*[Kinds]int64{}
	} else if before != s.Rank && len(t.changes) <= mostChanges {
		t.changes = append(t.changes, Change{s.Rank, before, s.To})
	}
	switch {
	case t.keep && len(t.segments) < mostSegments:
		t.segments = append(t.segments, s)
	case t.keep:
		t.keep, t.segments = false, nil
	}
	for from := s.From; from < s.To; {
		step := floorDiv(from, t.stepNs)
		to := min(s.To, (step+1)*t.stepNs)
		k := traceKey{step, s.Rank}
		if t.cells[k] == nil {
			t.cells[k] = new([Kinds]int64)
		}
		t.cells[k][s.Kind] += to - from
		from = to
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Steps returns the path by rank and time, in at most steps steps of time and rows rows of neighbouring ranks. The
// options must have asked for a trace.
func (p *Path) Steps(ranks, steps, rows int) []Step {
	if p.trace == nil || len(p.trace.cells) == 0 {
		return nil
	}
	first, last := int64(0), int64(0)
	for i, k := range slices.SortedFunc(maps.Keys(p.trace.cells), byStep) {
		if i == 0 {
			first = k.step
		}
		last = k.step
	}
	per, inRow := (last-first)/int64(steps)+1, int32((ranks-1)/rows+1)
	joined := map[traceKey]*Step{}
	for k, ns := range p.trace.cells {
		to := traceKey{(k.step - first) / per, k.rank / inRow}
		s := joined[to]
		if s == nil {
			from := (first + to.step*per) * p.trace.stepNs
			s = &Step{Rank: to.rank * inRow, Ranks: min(inRow, int32(ranks)-to.rank*inRow), FromNs: from,
				ToNs: from + per*p.trace.stepNs}
			joined[to] = s
		}
		for kind := range ns {
			s.Ns[kind] += ns[kind]
		}
	}
	all := make([]Step, 0, len(joined))
	for _, s := range joined {
		all = append(all, *s)
	}
	slices.SortFunc(all,
		func(a, b Step) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.FromNs, b.FromNs)) })
	return all
}

func byStep(a, b traceKey) int { return cmp.Compare(a.step, b.step) }

// Changes returns where the path changes its rank, the last one first; nil if there are more than mostChanges.
func (p *Path) Changes() []Change {
	if p.trace == nil || len(p.trace.changes) > mostChanges {
		return nil
	}
	return p.trace.changes
}

// Within returns the parts of the path between two times, in order, and 0. If there are more than most parts, they are
// joined: one for each rank in each of equal steps, with the kind and call that took most time there; then stepNs is
// the length of a step. The options must have asked for a trace.
func (p *Path) Within(fromNs, toNs int64, most int) (parts []Segment, stepNs int64) {
	if p.trace == nil {
		return nil, 0
	}
	all := p.trace.segments
	if all == nil {
		all, stepNs = p.trace.ofCells(), p.trace.stepNs
	}
	for _, s := range slices.Backward(all) {
		if s.From < toNs && s.To > fromNs {
			s.From, s.To = max(s.From, fromNs), min(s.To, toNs)
			parts = append(parts, s)
		}
	}
	for step := max(4*(toNs-fromNs)/int64(max(most, 1)), 1); len(parts) > most; step *= 2 {
		parts, stepNs = inSteps(parts, fromNs, step), max(step, stepNs)
		if step > toNs-fromNs {
			break
		}
	}
	return parts, stepNs
}

// ofCells returns a part for each cell, the last one first.
func (t *trace) ofCells() (parts []Segment) {
	for k, ns := range t.cells {
		kind := slices.Index(ns[:], slices.Max(ns[:]))
		parts = append(parts, Segment{Rank: k.rank, Site: -1, Kind: Kind(kind), From: k.step * t.stepNs,
			To: (k.step + 1) * t.stepNs})
	}
	slices.SortFunc(parts, func(a, b Segment) int { return -byTime(a, b) })
	return parts
}

func byTime(a, b Segment) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Rank, b.Rank))
}

// inSteps joins the parts of each rank in each step of stepNs after fromNs: the longest one stands for all.
func inSteps(parts []Segment, fromNs, stepNs int64) []Segment {
	longest := map[traceKey]Segment{}
	for _, s := range parts {
		for from := s.From; from < s.To; {
			k := traceKey{(from - fromNs) / stepNs, s.Rank}
			to := min(s.To, fromNs+(k.step+1)*stepNs)
			if was, known := longest[k]; !known || to-from > was.To-was.From {
				longest[k] = Segment{Rank: s.Rank, Site: s.Site, Call: s.Call, Kind: s.Kind, From: from, To: to}
			}
			from = to
		}
	}
	joined := make([]Segment, 0, len(longest))
	for k, s := range longest {
		s.From, s.To = fromNs+k.step*stepNs, fromNs+(k.step+1)*stepNs
		joined = append(joined, s)
	}
	slices.SortFunc(joined, byTime)
	return joined
}
