package critical

import (
	"fmt"
	"slices"

	"github.com/commq/commq/schema"
)

// Graph holds rows of a run, and for each the row of another rank that it waited for. A row takes 56 bytes. Rows that
// were explained are dropped (window.go).
type Graph struct {
	options    Options
	ranks      []rankRows
	operations map[operationKey]int32
	collective []operation                 // by the value in operations
	complete   []int32                     // indexes in collective: all members entered
	unused     []int32                     // indexes in collective
	members    map[int32][]int32           // world ranks of communicators, by rank in the communicator
	sources    map[int32]map[int32][]int32 // world ranks that each one receives from in neighbourhood collectives
	unpaired   map[signalKey]*unpaired
	pairs      []pair              // whose waits were not added yet
	holds      map[lockKey][]*hold // locks that rows may wait for
	placeOf    map[site]int32
	places     []site // by the value in placeOf

	// Of explanations.
	tree     tree
	delays   *delays
	deferred []deferred
	late     schema.Messages // messages whose rows were not all read yet
	stack    []entry         // of visit
	retimed  bool            // the rows' times were replaced
	windowed bool            // rows are explained while others are still to come

	firstNs, lastNs int64 // when the run begins, 0 or earlier, and when its last call ends
}

// site is a call site and the call there.
type site struct {
	site int32
	call schema.CallID
}

// rankRows are a rank's rows in the order of seq. The index of a row counts those that were dropped too.
type rankRows struct {
	rows     []row
	dropped  int32 // number of rows before the first of rows
	firstSeq int64 // of rows
	lastSeq  int64
	seqs     []int64 // of all rows in rows; nil if no seq is missing
	lastRow  []int32 // by thread: index of its last row + 1
	begin    int64   // when MPI_Init ended, if Options.LeaveOutStartup; else unknown
	inits    map[int64]schema.CallID
	windows  map[int64]*window // by the seq of the row that made it

	// Of explanations (window.go).
	expected, read int64   // number of rows of the run, and of those that were read
	lastStart      int64   // of the last row
	open           []int32 // rows of collective operations
	pinned         int32   // this row and those after it are needed
	tails          []tail  // by thread
	tip            exit    // of the row that ends last of those that were dropped
}

// row is a call.
type row struct {
	start, end int64 // ns; unknown where the call has none
	done       int64 // seq of the row that completes it; unknown: the row itself; never: no row
	waitedRank int32 // the rank that it waited for, or -1
	waitedRow  int32 // index of the row of that rank at whose start the path continues; if left, its node
	prev       int32 // index of the row before it on the same thread, or -1
	operation  int32 // index of its collective operation, or -1
	place      int32 // index of its call site in Graph.places
	node       int32 // its node of the tree, noNode or onStack
	call       int16
	thread     int16
	class      uint8
	kind       Kind    // of the time after the wait
	awaits     Awaited // what it waited for
	left       bool    // its wait is explained
}

// rowAt returns row i.
func (r *rankRows) rowAt(i int32) *row { return &r.rows[i-r.dropped] }

// end is the index after the last row.
func (r *rankRows) end() int32 { return r.dropped + int32(len(r.rows)) }

const (
	// unknown is a time or seq that is not known.
	unknown = schema.NullInt64
	// never is the value of row.done if no row completes the request.
	never = -1
)

// New returns an empty graph for a run with this number of ranks.
func New(ranks int, o Options) *Graph {
	g := &Graph{options: o, ranks: make([]rankRows, ranks), operations: map[operationKey]int32{},
		members: map[int32][]int32{}, sources: map[int32]map[int32][]int32{}, placeOf: map[site]int32{},
		unpaired: map[signalKey]*unpaired{}, holds: map[lockKey][]*hold{}}
	for i := range g.ranks {
		g.ranks[i].begin, g.ranks[i].lastStart, g.ranks[i].tip.node = unknown, unknown, noNode
	}
	return g
}

// AddMember adds a world rank to a communicator, as the next of its ranks.
func (g *Graph) AddMember(comm, world int32) { g.members[comm] = append(g.members[comm], world) }

// AddSources adds the world ranks that a world rank receives from in neighbourhood collectives of a communicator.
func (g *Graph) AddSources(comm, world int32, sources []int32) {
	if g.sources[comm] == nil {
		g.sources[comm] = map[int32][]int32{}
	}
	g.sources[comm][world] = append(g.sources[comm][world], sources...)
}

// AddEvents adds rows, each rank's in ascending order of seq. Rows of a rank outside the run, or out of order, are an
// error.
func (g *Graph) AddEvents(b *schema.Events) error {
	for i, rank := range b.Rank {
		if rank < 0 || int(rank) >= len(g.ranks) {
			return fmt.Errorf("rank %d, seq %d: the run has %d ranks", rank, b.Seq[i], len(g.ranks))
		}
		if err := g.addRow(&g.ranks[rank], b, i); err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return nil
}

func (g *Graph) addRow(r *rankRows, b *schema.Events, i int) error {
	index := r.end()
	if err := r.addSeq(b.Seq[i]); err != nil {
		return err
	}
	thread := max(0, int(b.Thread[i]))
	for len(r.lastRow) <= thread {
		r.lastRow, r.tails = append(r.lastRow, 0), append(r.tails, tail{exit: exit{node: noNode}})
	}
	w := row{start: b.StartNs[i], end: b.EndNs[i], done: b.DoneSeq[i], waitedRank: -1, prev: r.lastRow[thread] - 1,
		operation: -1, place: g.place(b.Callsite[i], schema.CallID(b.Call[i])), node: noNode, call: b.Call[i],
		thread: int16(thread), class: uint8(b.Class[i])}
	if w.start != unknown {
		g.firstNs, g.lastNs = min(g.firstNs, w.start), max(g.lastNs, w.lastTime())
	}
	if g.options.LeaveOutStartup {
		r.leaveOutStartup(&w)
	}
	r.lastRow[thread] = index + 1
	if w.done == unknown && b.Request[i] != schema.NullInt64 {
		w.done = never
	}
	if b.Instance[i] != schema.NullInt64 && b.Comm[i] != schema.NullInt32 {
		g.addCollective(r, b, i, &w, index)
	}
	if schema.Class(w.class) == schema.ClassRMA {
		if err := g.addSynchronisation(r, b, i, &w, index); err != nil {
			return err
		}
	}
	if r.read++; w.start != unknown {
		r.lastStart = w.start
	}
	r.rows = append(r.rows, w)
	return nil
}

// leaveOutStartup reduces a row of MPI_Init to the moment when it ended, and one of MPI_Finalize to when it began.
func (r *rankRows) leaveOutStartup(w *row) {
	switch call := schema.CallID(w.call); {
	case w.end == unknown:
	case call.Is(schema.FactInitializes):
		w.start, r.begin = w.end, w.end
	case call.Is(schema.FactFinalizes):
		w.end = w.start
	}
}

// addSeq records the seq of the next row.
func (r *rankRows) addSeq(seq int64) error {
	n := int64(len(r.rows))
	if r.end() > 0 && seq <= r.lastSeq {
		return fmt.Errorf("seq %d comes after %d", seq, r.lastSeq)
	}
	r.lastSeq = seq
	switch {
	case n == 0:
		r.firstSeq, r.seqs = seq, nil
	case r.seqs != nil:
		r.seqs = append(r.seqs, seq)
	case seq != r.firstSeq+n:
		r.seqs = make([]int64, n, 2*n+1)
		for k := range r.seqs {
			r.seqs[k] = r.firstSeq + int64(k)
		}
		r.seqs = append(r.seqs, seq)
	}
	return nil
}

// place returns the index of a call site.
func (g *Graph) place(at int32, call schema.CallID) int32 {
	k := site{at, call}
	i, known := g.placeOf[k]
	if !known {
		i = int32(len(g.places))
		g.placeOf[k] = i
		g.places = append(g.places, k)
	}
	return i
}

// find returns the index of the row with a seq, or -1 if there is none or it was dropped.
func (r *rankRows) find(seq int64) int32 {
	if r.seqs != nil {
		if i, ok := slices.BinarySearch(r.seqs, seq); ok {
			return r.dropped + int32(i)
		}
		return -1
	}
	if i := seq - r.firstSeq; seq >= r.firstSeq && i < int64(len(r.rows)) {
		return r.dropped + int32(i)
	}
	return -1
}

// completion returns the index of the row that completes the operation of row i, or -1.
func (r *rankRows) completion(i int32) int32 {
	switch done := r.rowAt(i).done; done {
	case unknown:
		return i
	case never:
		return -1
	default:
		return r.find(done)
	}
}

// SetTime replaces the times of a row, in ns, by simulated ones. A row that does not exist is ignored.
func (g *Graph) SetTime(rank int32, seq, start, end int64) {
	r := &g.ranks[rank]
	if i := r.find(seq); i >= 0 {
		w := r.rowAt(i)
		w.start, w.end = start, end
		if !g.retimed {
			g.firstNs, g.lastNs, g.retimed = 0, 0, true
		}
		g.firstNs, g.lastNs = min(g.firstNs, start), max(g.lastNs, end)
		if g.options.LeaveOutStartup {
			r.leaveOutStartup(w)
		}
	}
}

// AddMessages adds messages. All rows and their times must have been added.
func (g *Graph) AddMessages(b *schema.Messages) {
	var m schema.Message
	for i, src := range b.Src {
		dst := b.Dst[i]
		if src < 0 || dst < 0 || int(src) >= len(g.ranks) || int(dst) >= len(g.ranks) {
			continue
		}
		from, to := &g.ranks[src], &g.ranks[dst]
		if g.windowed && (b.SendSeq[i] > from.lastSeq || b.RecvPostSeq[i] > to.lastSeq) {
			m.Src, m.Dst, m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = src, dst, b.SendSeq[i], b.RecvPostSeq[i],
				b.RecvDoneSeq[i]
			g.late.Append(&m)
			continue
		}
		send, post := from.find(b.SendSeq[i]), to.find(b.RecvPostSeq[i])
		if send < 0 {
			continue
		}
		g.addWaitOf(dst, b.RecvDoneSeq[i], entry{src, send}, AwaitsSender)
		if post < 0 {
			continue
		}
		if p := to.rowAt(post).prev; p >= to.dropped && schema.Class(to.rowAt(p).class) == schema.ClassProbe {
			g.addWait(dst, p, src, send, AwaitsSender)
		}
		if done := from.rowAt(send).done; g.options.Eager {
		} else if done == unknown {
			g.addWait(src, send, dst, post, AwaitsReceiver)
		} else {
			g.addWaitOf(src, done, entry{dst, post}, AwaitsReceiver)
		}
	}
}

// addWait notes that row i of a rank waited until another rank began one of its rows. It counts only if that happened
// while row i ran, or at its end (on a network that takes no time both are the same). Of several waits the latest
// counts; of equal ones, the one for the lowest rank.
func (g *Graph) addWait(rank, i, otherRank, otherRow int32, awaits Awaited) {
	w, until := g.ranks[rank].rowAt(i), g.ranks[otherRank].rowAt(otherRow).start
	if w.left {
		return // only where clocks disagree
	}
	if until == unknown || w.start == unknown || w.end == unknown || until <= w.start || until > w.end {
		return
	}
	if w.waitedRank >= 0 {
		before := g.ranks[w.waitedRank].rowAt(w.waitedRow).start
		if until < before || until == before && w.waitedRank <= otherRank {
			return
		}
	}
	w.waitedRank, w.waitedRow, w.awaits, w.kind = otherRank, otherRow, awaits, Transfer
	switch {
	case schema.Class(w.class) == schema.ClassRMA:
		w.kind = Other
	case awaits == AwaitsCollective:
		w.kind = Collective
	}
}
