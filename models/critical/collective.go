package critical

import "github.com/commq/commq/schema"

type operationKey struct {
	comm     int32
	instance int64
}

// operation is a collective operation of a communicator.
type operation struct {
	comm int32
	last entry   // the rank that entered last; -1 where no time is known
	root entry   // the root; -1 where it is not known
	scan []entry // all ranks, of a scan
}

// entry is a rank that enters a collective operation, and the index of its row.
type entry struct{ rank, row int32 }

// noEntry means no rank.
var noEntry = entry{-1, -1}

// addCollective notes that row i takes part in a collective operation, or makes a persistent one.
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
	if class != schema.ClassCollective && class != schema.ClassComm || call.IsNeighborhood() {
		return
	}
	blocking := call.Operation()
	w.collective = int16(blocking)
	k := operationKey{b.Comm[i], b.Instance[i]}
	n, ok := g.operations[k]
	if !ok {
		n = int32(len(g.collective))
		g.operations[k] = n
		g.collective = append(g.collective, operation{comm: k.comm, last: noEntry, root: noEntry})
	}
	w.operation = n
	q := &g.collective[n]
	if b.RootWorld[i] == b.Rank[i] {
		q.root = entry{b.Rank[i], index}
	}
	if blocking.Is(schema.FactScan) {
		q.scan = append(q.scan, entry{b.Rank[i], index})
	}
}

// addCollectiveWaits finds which rank each rank waited for in collective operations.
func (g *Graph) addCollectiveWaits() {
	g.eachCollectiveRow(func(rank, i int32, w *row) {
		q := &g.collective[w.operation]
		if w.start != unknown && (q.last.rank < 0 || w.start > g.start(q.last)) {
			q.last = entry{rank, i}
		}
	})
	prefixes := map[int32]map[int32]entry{} // of scans, by operation
	g.eachCollectiveRow(func(rank, i int32, w *row) {
		done := g.ranks[rank].completion(i)
		q := &g.collective[w.operation]
		if done < 0 || q.last.rank < 0 {
			return
		}
		needed := q.last
		if call := schema.CallID(w.collective); !g.options.Last {
			switch {
			case call.Is(schema.FactFromRoot):
				needed = q.root
			case call.Is(schema.FactToRoot) && rank != q.root.rank:
				return // only the root waits
			case call.Is(schema.FactScan):
				if prefixes[w.operation] == nil {
					prefixes[w.operation] = g.prefixes(q)
				}
				needed = prefixes[w.operation][rank]
			}
		}
		if needed.rank >= 0 {
			g.addWait(rank, done, needed.rank, needed.row, AwaitsCollective)
		}
	})
}

// start is when a rank entered a collective operation.
func (g *Graph) start(e entry) int64 { return g.ranks[e.rank].rows[e.row].start }

// eachCollectiveRow calls fn with every row that is part of a collective operation, rank by rank.
func (g *Graph) eachCollectiveRow(fn func(rank, i int32, w *row)) {
	for rank := range g.ranks {
		rows := g.ranks[rank].rows
		for i := range rows {
			if rows[i].operation >= 0 {
				fn(int32(rank), int32(i), &rows[i])
			}
		}
	}
}

// prefixes returns for each rank of a scan which of the ranks up to it entered last.
func (g *Graph) prefixes(q *operation) map[int32]entry {
	rows := map[int32]int32{}
	for _, e := range q.scan {
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
