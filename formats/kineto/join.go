package kineto

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/commq/commq/formats/exectrace"
	"github.com/commq/commq/formats/training"
)

// executions are the execution traces of a job, by rank, and how many calls of how many ranks they completed.
type executions struct {
	byRank        map[int32]*exectrace.Told
	ranks, joined int
}

// tellAll reads the execution traces of a job. A file is of the rank that its nodes tell, else of that in its name.
func tellAll(f *files) (*executions, error) {
	x := &executions{byRank: map[int32]*exectrace.Told{}}
	var all []*exectrace.Told
	seen := map[int32]bool{}
	for _, path := range f.executions {
		told, err := exectrace.Tell(path)
		if err != nil {
			return nil, err
		}
		all = append(all, told)
		seen[told.Rank] = true
	}
	for _, told := range all {
		if told.Rank < 0 || len(seen) < len(all) {
			rank, ok := rankOf(filepath.Base(told.File))
			if !ok {
				return nil, fmt.Errorf("%s: neither its nodes nor its name tell the rank of this execution trace; want a name "+
					"such as et-3.json", told.File)
			}
			told.Rank = rank
		}
		if other := x.byRank[told.Rank]; other != nil {
			return nil, fmt.Errorf("%s and %s are execution traces of rank %d; want one of each rank", other.File, told.File,
				told.Rank)
		}
		x.byRank[told.Rank] = told
	}
	return x, nil
}

// warnings tell what execution traces told, and which had no trace to complete.
func (x *executions) warnings() (list []string) {
	if x.ranks > 0 {
		list = append(list, fmt.Sprintf("Execution traces of %d ranks complete the sizes, roots, splits and groups of %d "+
			"calls; the times are the profiler's.", x.ranks, x.joined))
	}
	if n := len(x.byRank); n > 0 {
		list = append(list, fmt.Sprintf("Execution traces of ranks that have no trace of the profiler, which are not "+
			"used: %d.", n))
	}
	return list
}

// pair is a call of a process and what its execution trace tells of it.
type pair struct {
	call *hostCall
	told training.Op
}

// join completes the calls of a process by its execution trace. Both know a function by its number; where the profiler
// wrote no numbers, the n-th operation of one is the n-th of the other. If they contradict each other anywhere, they
// are not of the same process and steps, and the execution trace is not used.
func (t *trace) join(x *executions) {
	told := x.byRank[t.Rank.Rank]
	if told == nil {
		return
	}
	delete(x.byRank, t.Rank.Rank)
	pairs, why := t.pairs(told)
	for _, p := range pairs {
		if !p.fits() && why == "" {
			why = fmt.Sprintf("function %d is %s (%s) there, and %s (%s) for the profiler", p.call.function, p.told.Call,
				sizeText(p.told.InElements), p.call.call, sizeText(p.call.in))
		}
	}
	if why != "" {
		t.Warnings = append(t.Warnings, fmt.Sprintf("%s does not belong to %s, and is not used: %s.",
			filepath.Base(told.File), filepath.Base(t.File), why))
		return
	}
	for _, g := range told.Groups {
		t.group(g.Name, g.Description, widen(g.Ranks))
	}
	t.HasGroups = t.HasGroups || told.HasGroups
	for _, p := range pairs {
		group := training.Unknown
		if g := p.told.Group; g >= 0 {
			group = t.group(told.Groups[g].Name, told.Groups[g].Description, widen(told.Groups[g].Ranks))
		}
		p.call.completeExactly(&p.told, group)
	}
	x.ranks++
	x.joined += len(pairs)
}

func sizeText(elements int64) string {
	if elements < 0 {
		return "size unknown"
	}
	return fmt.Sprintf("%d elements", elements)
}

// pairs finds the calls that an execution trace knows; why says why it knows none.
func (t *trace) pairs(told *exectrace.Told) (pairs []pair, why string) {
	numbered := false
	for _, list := range [][]hostCall{t.params, t.marked, t.asked} {
		for i := range list {
			numbered = numbered || list[i].function > 0
			if op, ok := told.ByNumber[list[i].function]; ok {
				pairs = append(pairs, pair{&list[i], op})
			}
		}
	}
	if numbered {
		if len(pairs) == 0 {
			why = "none of its functions has the number of one that the profiler saw communicate"
		}
		return pairs, why
	}
	return t.pairsInOrder(told)
}

// pairsInOrder finds the calls of a trace without numbers of functions.
func (t *trace) pairsInOrder(told *exectrace.Told) (pairs []pair, why string) {
	calls := t.params
	if len(calls) == 0 {
		calls = t.marked
	}
	if len(calls) != len(told.InOrder) {
		return nil, fmt.Sprintf("it has %d operations, and the profiler %d", len(told.InOrder), len(calls))
	}
	slices.SortStableFunc(calls, func(a, b hostCall) int { return cmp.Compare(a.start, b.start) })
	for i := range calls {
		pairs = append(pairs, pair{&calls[i], told.InOrder[i]})
	}
	return pairs, ""
}

// fits reports whether both sides of a pair can be the same call.
func (p *pair) fits() bool {
	return training.AreAlike(p.call.call, p.told.Call) &&
		(p.call.in < 0 || p.told.InElements < 0 || p.call.in == p.told.InElements || p.call.in == p.told.OutElements)
}

// completeExactly adds to a call what an execution trace tells of it.
func (c *hostCall) completeExactly(op *training.Op, group int) {
	if c.group < 0 {
		c.group = group
	}
	if c.in < 0 || op.InElements >= 0 && op.OutElements >= 0 {
		c.in, c.out = op.InElements, op.OutElements
	}
	if c.kind == "" {
		c.kind = op.Type
	}
	if c.root < 0 {
		c.root = op.Root
	}
	if c.peer < 0 {
		c.peer, c.inGroup = op.Peer, op.PeerInGroup
	}
	if len(c.inSplit) == 0 && len(c.outSplit) == 0 {
		c.inSplit, c.outSplit = op.InSplit, op.OutSplit
	}
}

func widen(ranks []int32) []int64 {
	list := make([]int64, len(ranks))
	for i, r := range ranks {
		list[i] = int64(r)
	}
	return list
}
