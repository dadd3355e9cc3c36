package critical

import (
	"cmp"
	"maps"
	"slices"
)

// Step is the part of the path that is on some neighbouring ranks between two times.
type Step struct {
	// Rank is the first one of Ranks ranks.
	Rank, Ranks  int32
	FromNs, ToNs int64
	// Ns is the time by Kind.
	Ns [Kinds]int64
}

// Change is where the path goes on in another rank: From is the rank before AtNs, To the one after it.
type Change struct {
	From, To int32
	AtNs     int64
}

// A trace has the path in fineSteps steps of the time up to its end, and its changes of rank unless there are too many
// to be seen.
const (
	fineSteps   = 1 << 13
	mostChanges = 1000
)

// trace is where the path is over time.
type trace struct {
	stepNs  int64
	cells   map[traceKey]*[Kinds]int64
	changes []Change
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

// Steps returns the path in at most so many steps of time and rows of ranks, by rank and time. The options must have
// asked for a trace.
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

// Changes returns where the path changes its rank, the last one first; nil if that is more often than can be seen.
func (p *Path) Changes() []Change {
	if p.trace == nil || len(p.trace.changes) > mostChanges {
		return nil
	}
	return p.trace.changes
}
