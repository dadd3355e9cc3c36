package critical

import (
	"cmp"
	"slices"

	"github.com/commq/commq/run"
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

// collectives finds the waits in collective operations.
type collectives struct {
	ranks    allRows
	last     bool // Options.Last
	index    map[operationKey]int32
	all      []operation                 // by the value in index
	complete []int32                     // indexes in all: all members entered
	unused   []int32                     // indexes in all
	members  map[int32][]int32           // world ranks of communicators, by rank in the communicator
	sources  map[int32]map[int32][]int32 // world ranks that each one receives from in neighbourhood collectives
	second   map[int32]map[int32]bool    // world ranks of the second groups of intercommunicators
}

// entry is a rank that enters a collective operation, and the index of its row.
type entry struct{ rank, row int32 }

// noEntry means no rank.
var noEntry = entry{-1, -1}

// add notes that row i takes part in a collective operation, or creates a persistent one or a window.
func (c *collectives) add(r *rankRows, b *schema.Events, i int, w *row, index int32) {
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
		r.windows[b.Seq[i]] = &window{WindowKey: run.WindowKey{Comm: b.Comm[i], Instance: b.Instance[i]}}
	} else if class != schema.ClassCollective && class != schema.ClassComm {
		return
	}
	n := c.enter(r, w, entry{b.Rank[i], index}, operationKey{comm: b.Comm[i], instance: b.Instance[i]},
		call.Operation())
	if b.RootWorld[i] == b.Rank[i] {
		c.all[n].root = entry{b.Rank[i], index}
	}
}

// enter adds a row of a rank to an operation, and returns its index in all.
func (c *collectives) enter(r *rankRows, w *row, e entry, k operationKey, call schema.CallID) int32 {
	n, ok := c.index[k]
	if !ok {
		n = c.newOperation()
		c.index[k] = n
		c.all[n] = operation{operationKey: k, call: call, root: noEntry, entries: c.all[n].entries[:0]}
	}
	w.operation = n
	q := &c.all[n]
	q.entries = append(q.entries, e)
	r.open = append(r.open, e.row)
	if len(q.entries) == len(c.members[k.comm]) {
		c.complete = append(c.complete, n)
	}
	return n
}

// newOperation returns an index in all.
func (c *collectives) newOperation() (n int32) {
	if last := len(c.unused) - 1; last >= 0 {
		n, c.unused = c.unused[last], c.unused[:last]
		return n
	}
	c.all = append(c.all, operation{})
	return int32(len(c.all) - 1)
}

// addWaitsIn finds which rank each rank waited for in a collective operation. Ranks that are not known to have entered
// are not waited for.
func (c *collectives) addWaitsIn(q *operation) {
	slices.SortFunc(q.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.row, b.row))
	})
	last := c.lastOf(q, nil)
	if last.rank < 0 {
		return
	}
	second := c.second[q.comm]
	apart := len(second) > 0 && !c.last && q.call != 0 // not for constructors, which need all
	var lastOfOther map[bool]entry
	if apart {
		lastOfOther = map[bool]entry{
			true:  c.lastOf(q, func(rank int32) bool { return !second[rank] }),
			false: c.lastOf(q, func(rank int32) bool { return second[rank] })}
	}
	prefixes := map[int32]entry(nil)
	if q.call.Is(schema.FactScan) && !c.last {
		prefixes = c.prefixes(q)
	}
	for _, e := range q.entries {
		done := c.ranks[e.rank].completion(e.row)
		if done < 0 {
			continue
		}
		needed := last
		if apart {
			needed = lastOfOther[second[e.rank]]
		}
		switch {
		case c.last:
		case apart && q.call.Is(schema.FactFromRoot) && second[e.rank] == second[q.root.rank]:
			continue // the root's own group gets nothing
		case q.call.IsNeighborhood():
			needed = c.lastSource(q, e)
		case q.call.Is(schema.FactFromRoot):
			needed = q.root
		case q.call.Is(schema.FactToRoot) && e.rank != q.root.rank:
			continue // only the root waits
		case prefixes != nil:
			needed = prefixes[e.rank]
		}
		if needed.rank >= 0 {
			c.ranks.addWait(e.rank, done, needed.rank, needed.row, AwaitsCollective)
		}
	}
}

// lastOf returns the rank that entered last of those that count, the lowest of several; noEntry if there is none. nil
// counts all. The entries of q are sorted.
func (c *collectives) lastOf(q *operation, counts func(rank int32) bool) entry {
	last := noEntry
	for _, e := range q.entries {
		if at := c.ranks.start(e); at != unknown && (counts == nil || counts(e.rank)) &&
			(last.rank < 0 || at > c.ranks.start(last)) {
			last = e
		}
	}
	return last
}

// lastSource returns the rank that entered last of those from which a rank receives in a neighbourhood collective;
// noEntry if they are unknown. The entries of q are sorted.
func (c *collectives) lastSource(q *operation, of entry) entry {
	last := noEntry
	for _, rank := range c.sources[q.comm][of.rank] {
		i, found := slices.BinarySearchFunc(q.entries, rank, func(e entry, rank int32) int {
			return cmp.Compare(e.rank, rank)
		})
		if !found {
			continue
		}
		if e := q.entries[i]; c.ranks.start(e) != unknown && (last.rank < 0 || c.ranks.start(e) > c.ranks.start(last)) {
			last = e
		}
	}
	return last
}

// prefixes returns for each rank of a scan which of the ranks up to it entered last.
func (c *collectives) prefixes(q *operation) map[int32]entry {
	rows := map[int32]int32{}
	for _, e := range q.entries {
		rows[e.rank] = e.row
	}
	last, prefix := noEntry, map[int32]entry{}
	for _, rank := range c.members[q.comm] {
		if i, ok := rows[rank]; ok {
			e := entry{rank, i}
			if last.rank < 0 || c.ranks.start(e) > c.ranks.start(last) {
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

// addComplete adds the waits in collective operations that all ranks entered and completed.
func (c *collectives) addComplete() {
	again := c.complete[:0]
	for _, n := range c.complete {
		if q := &c.all[n]; c.completed(q) {
			c.addWaitsIn(q)
			c.free(n)
		} else {
			again = append(again, n)
		}
	}
	c.complete = again
}

// completed reports whether the rows that complete an operation were read.
func (c *collectives) completed(q *operation) bool {
	for _, e := range q.entries {
		r := &c.ranks[e.rank]
		if done := r.rowAt(e.row).done; done != unknown && done > r.lastSeq {
			return false
		}
	}
	return true
}

// free forgets an operation.
func (c *collectives) free(n int32) {
	q := &c.all[n]
	for _, e := range q.entries {
		c.ranks[e.rank].rowAt(e.row).operation = -1
	}
	delete(c.index, q.operationKey)
	q.entries = q.entries[:0]
	c.unused = append(c.unused, n)
}
