package kineto

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/commq/commq/formats/exectrace"
	"github.com/commq/commq/formats/training"
)

// executions are the execution traces of a job, by rank, and how many operations of how many ranks they completed.
type executions struct {
	byRank        map[int32]*exectrace.Operations
	ranks, joined int
}

// readExecutions reads the execution traces of a job. A file is of the rank that its nodes tell; the name counts where
// they tell none.
func readExecutions(f *files) (*executions, error) {
	x := &executions{byRank: map[int32]*exectrace.Operations{}}
	for _, path := range f.executions {
		execution, err := exectrace.ReadOperations(path)
		if err != nil {
			return nil, err
		}
		rank := execution.Rank
		if rank < 0 {
			var ok bool
			if rank, ok = rankOf(filepath.Base(path)); !ok {
				return nil, fmt.Errorf("%s: neither its nodes nor its name tell the rank of this execution trace; want a name "+
					"such as et-3.json", path)
			}
		}
		if other := x.byRank[rank]; other != nil {
			return nil, fmt.Errorf("%s and %s are execution traces of rank %d; want one of each rank", other.File, path, rank)
		}
		x.byRank[rank] = execution
	}
	return x, nil
}

// count counts what the execution trace of a process added to its operations.
func (x *executions) count(t *trace) {
	if t.joined > 0 {
		x.ranks++
		x.joined += t.joined
	}
}

// warnings tell what execution traces added, and which had no trace to complete.
func (x *executions) warnings() (list []string) {
	if x.ranks > 0 {
		list = append(list, fmt.Sprintf("Execution traces of %d ranks complete the sizes, roots, splits and groups of %d "+
			"operations; the times are the profiler's.", x.ranks, x.joined))
	}
	if n := len(x.byRank); n > 0 {
		list = append(list, fmt.Sprintf("Execution traces of ranks that have no trace of the profiler, which are not "+
			"used: %d.", n))
	}
	return list
}

// pair is a call of the profiler's trace, and the same call as the execution trace has it.
type pair struct {
	call *hostCall
	op   training.Op
}

// join completes the calls of a process by its execution trace. The two must be of the same process and steps: if they
// contradict each other anywhere, the execution trace is not used, and a warning says why.
func (t *trace) join(x *executions) {
	execution := x.byRank[t.Rank.Rank]
	if execution == nil {
		return
	}
	delete(x.byRank, t.Rank.Rank)
	pairs, contradiction := t.pair(execution)
	for i := range pairs {
		if contradiction == "" {
			contradiction = pairs[i].contradiction()
		}
	}
	if contradiction != "" {
		t.Warnings = append(t.Warnings, fmt.Sprintf("%s does not belong to %s, and is not used: %s.",
			filepath.Base(execution.File), filepath.Base(t.File), contradiction))
		return
	}
	for _, g := range execution.Groups {
		t.group(g.Name, g.Description, widen(g.Ranks))
	}
	t.HasGroups = t.HasGroups || execution.HasGroups
	for i := range pairs {
		c, op := pairs[i].call, &pairs[i].op
		c.joined = c.add(&hostCall{in: op.InElements, out: op.OutElements, kind: op.Type, root: op.Root, peer: op.Peer,
			inGroup: op.PeerInGroup, inSplit: op.InSplit, outSplit: op.OutSplit})
		if c.group < 0 && op.Group >= 0 {
			g := &execution.Groups[op.Group]
			c.group, c.joined = t.group(g.Name, g.Description, widen(g.Ranks)), true
		}
	}
}

// pair pairs the calls of the two traces of a process: those with the same number of a function, if the profiler wrote
// numbers, else the n-th operation of one with the n-th of the other. A contradiction says why they are not of one
// process.
func (t *trace) pair(x *exectrace.Operations) (pairs []pair, contradiction string) {
	if t.pid >= 0 && x.PID >= 0 && t.pid != x.PID {
		return nil, fmt.Sprintf("it is of process %d, and the profiler's of process %d", x.PID, t.pid)
	}
	numbered := false
	for _, list := range [][]hostCall{t.params, t.marked, t.asked} {
		for i := range list {
			numbered = numbered || list[i].function > 0
			if op, ok := x.ByNumber[list[i].function]; ok {
				pairs = append(pairs, pair{&list[i], op})
			}
		}
	}
	if !numbered {
		return t.pairInOrder(x)
	}
	if len(pairs) == 0 {
		contradiction = "none of its functions has the number of one that the profiler saw communicate"
	}
	return pairs, contradiction
}

// pairInOrder pairs the calls of a trace without numbers of functions.
func (t *trace) pairInOrder(x *exectrace.Operations) (pairs []pair, contradiction string) {
	calls := t.params
	if len(calls) == 0 {
		calls = t.marked
	}
	if len(calls) != len(x.InOrder) {
		return nil, fmt.Sprintf("it has %d operations, and the profiler %d", len(x.InOrder), len(calls))
	}
	slices.SortStableFunc(calls, func(a, b hostCall) int { return cmp.Compare(a.start, b.start) })
	for i := range calls {
		pairs = append(pairs, pair{&calls[i], x.InOrder[i]})
	}
	return pairs, ""
}

// contradiction says in what the two sides of a pair cannot be the same call; empty if they can.
func (p *pair) contradiction() string {
	c, op := p.call, &p.op
	which := fmt.Sprintf("function %d", c.function)
	if c.function < 0 {
		which = "an operation"
	}
	differ := func(format string, here, there any) string {
		return fmt.Sprintf("%s is "+format+" there, and "+format+" for the profiler", which, op.Call, there, c.call, here)
	}
	typeHere, _ := training.Type(c.kind)
	typeThere, _ := training.Type(op.Type)
	switch {
	case !training.AreAlike(c.call, op.Call) || !p.haveSameSize():
		return differ("%s (%s)", sizeText(c.in, c.out), sizeText(op.InElements, op.OutElements))
	case typeHere != typeThere && typeHere != "" && typeThere != "":
		return differ("%s of %s", typeHere, typeThere)
	case c.root >= 0 && op.Root >= 0 && c.root != op.Root:
		return differ("%s with root %d", c.root, op.Root)
	case c.peer >= 0 && op.Peer >= 0 && c.peer != op.Peer:
		return differ("%s with rank %d", c.peer, op.Peer)
	}
	return ""
}

// haveSameSize compares the sizes that both sides of a pair know. The shapes of some calls of c10d begin with what the
// process gets (reduce_scatter_): without the size of that, the profiler's other size may be it.
func (p *pair) haveSameSize() bool {
	c, op := p.call, &p.op
	same := func(a, b int64) bool { return a < 0 || b < 0 || a == b }
	return same(c.in, op.InElements) && same(c.out, op.OutElements) || c.out < 0 && c.in == op.OutElements
}

// sizeText says how many elements a call gives and gets.
func sizeText(in, out int64) string {
	switch {
	case in < 0 && out < 0:
		return "size unknown"
	case out < 0 || in == out:
		return fmt.Sprintf("%d elements", in)
	case in < 0:
		return fmt.Sprintf("%d elements received", out)
	}
	return fmt.Sprintf("%d elements, %d received", in, out)
}

func widen(ranks []int32) []int64 {
	list := make([]int64, len(ranks))
	for i, r := range ranks {
		list[i] = int64(r)
	}
	return list
}
