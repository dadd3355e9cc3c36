package critical

import (
	"cmp"
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

type operationKey struct {
	comm     int32
	instance int64
	// fence counts the fences of the window that the instance made, from 1; 0 is the instance itself.
	fence int64
}

// operation is a collective operation of a communicator.
type operation struct {
	operationKey
	call    schema.CallID // its blocking form
	root    entry         // noEntry where it is not known
	entries []entry       // all that entered
}

// entry is a rank that enters a collective operation, and the index of its row.
type entry struct{ rank, row int32 }

// noEntry means no rank.
var noEntry = entry{-1, -1}

// addCollective notes that row i takes part in a collective operation, or makes a persistent one or a window.
func (g *Graph) addCollective(r *rankRows, b *schema.Events, i int, w *row, index int32) {
	call, class := schema.CallID(b.Call[i]), schema.Class(b.Class[i])
	if class == schema.ClassOther {
		if r.inits == nil {
			r.inits = map[int64]schema.CallID{}
		}
		r.inits[b.Seq[i]] = call
		return
	}
	if made, ok := r.inits[b.InitSeq[i]]; ok {
		call = made
	}
	if call.Is(schema.FactCreatesWindow) {
		if r.windows == nil {
			r.windows = map[int64]*window{}
		}
		r.windows[b.Seq[i]] = &window{windowKey: windowKey{b.Comm[i], b.Instance[i]}}
	} else if class != schema.ClassCollective && class != schema.ClassComm {
		return
	}
	n := g.enter(r, w, entry{b.Rank[i], index}, operationKey{comm: b.Comm[i], instance: b.Instance[i]},
		call.Operation())
	if b.RootWorld[i] == b.Rank[i] {
		g.collective[n].root = entry{b.Rank[i], index}
	}
}

// enter adds a row of a rank to an operation, and returns its index in collective.
func (g *Graph) enter(r *rankRows, w *row, e entry, k operationKey, call schema.CallID) int32 {
	n, ok := g.operations[k]
	if !ok {
		n = g.newOperation()
		g.operations[k] = n
		g.collective[n] = operation{operationKey: k, call: call, root: noEntry, entries: g.collective[n].entries[:0]}
	}
	w.operation = n
	q := &g.collective[n]
	q.entries = append(q.entries, e)
	r.open = append(r.open, e.row)
	if len(q.entries) == len(g.members[k.comm]) {
		g.complete = append(g.complete, n)
	}
	return n
}

// newOperation returns an index in collective.
func (g *Graph) newOperation() (n int32) {
	if last := len(g.unused) - 1; last >= 0 {
		n, g.unused = g.unused[last], g.unused[:last]
		return n
	}
	g.collective = append(g.collective, operation{})
	return int32(len(g.collective) - 1)
}

// addCollectiveWaits finds which rank each rank waited for in collective operations and on windows.
func (g *Graph) addCollectiveWaits() {
	g.addPairs()
	g.addLockWaits(math.MaxInt64)
	for n := range g.collective {
		if len(g.collective[n].entries) > 0 {
			g.addWaitsIn(&g.collective[n])
		}
	}
}

// addWaitsIn finds which rank each rank waited for in a collective operation. Where a rank is not known to have
// entered, nobody waited for it.
func (g *Graph) addWaitsIn(q *operation) {
	slices.SortFunc(q.entries, func(a, b entry) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.row, b.row)) })
	last := noEntry
	for _, e := range q.entries {
		if at := g.start(e); at != unknown && (last.rank < 0 || at > g.start(last)) {
			last = e
		}
	}
	if last.rank < 0 {
		return
	}
	prefixes := map[int32]entry(nil)
	if q.call.Is(schema.FactScan) && !g.options.Last {
		prefixes = g.prefixes(q)
	}
	for _, e := range q.entries {
		done := g.ranks[e.rank].completion(e.row)
		if done < 0 {
			continue
		}
		needed := last
		switch {
		case g.options.Last:
		case q.call.IsNeighborhood():
			needed = g.lastSource(q, e)
		case q.call.Is(schema.FactFromRoot):
			needed = q.root
		case q.call.Is(schema.FactToRoot) && e.rank != q.root.rank:
			continue // only the root waits
		case prefixes != nil:
			needed = prefixes[e.rank]
		}
		if needed.rank >= 0 {
			g.addWait(e.rank, done, needed.rank, needed.row, AwaitsCollective)
		}
	}
}

// lastSource is the last to enter of the ranks that a rank receives from in a neighbourhood collective; noEntry where
// they are not known. The entries of q are sorted.
func (g *Graph) lastSource(q *operation, of entry) entry {
	last := noEntry
	for _, rank := range g.sources[q.comm][of.rank] {
		i, found := slices.BinarySearchFunc(q.entries, rank, func(e entry, rank int32) int { return cmp.Compare(e.rank, rank) })
		if !found {
			continue
		}
		if e := q.entries[i]; g.start(e) != unknown && (last.rank < 0 || g.start(e) > g.start(last)) {
			last = e
		}
	}
	return last
}

// start is when a rank entered a collective operation.
func (g *Graph) start(e entry) int64 { return g.ranks[e.rank].rowAt(e.row).start }

// prefixes returns for each rank of a scan which of the ranks up to it entered last.
func (g *Graph) prefixes(q *operation) map[int32]entry {
	rows := map[int32]int32{}
	for _, e := range q.entries {
		rows[e.rank] = e.row
	}
	last, prefix := noEntry, map[int32]entry{}
	for _, rank := range g.members[q.comm] {
		if i, ok := rows[rank]; ok {
			e := entry{rank, i}
			if last.rank < 0 || g.start(e) > g.start(last) {
				last = e
			}
			prefix[rank] = last
		}
	}
	for rank, i := range rows { // the communicator's members are not known
		if _, ok := prefix[rank]; !ok {
			prefix[rank] = entry{rank, i}
		}
	}
	return prefix
}
