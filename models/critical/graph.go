package critical

import (
	"fmt"
	"math"

	"github.com/commq/commq/schema"
)

// Graph holds rows of a run, and for each the row of another rank that it waited for. A row takes 56 bytes. Rows that
// were explained are dropped (window.go).
type Graph struct {
	options     Options
	ranks       allRows
	collectives collectives
	windows     oneSided
	places      places

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

// New returns an empty graph for a run with this number of ranks.
func New(ranks int, o Options) *Graph {
	g := &Graph{options: o, ranks: make(allRows, ranks), places: places{index: map[site]int32{}}}
	g.collectives = collectives{ranks: g.ranks, last: o.Last, index: map[operationKey]int32{},
		members: map[int32][]int32{}, sources: map[int32]map[int32][]int32{}, second: map[int32]map[int32]bool{}}
	g.windows = oneSided{ranks: g.ranks, collectives: &g.collectives, unpaired: map[signalKey]*unpaired{},
		holds: map[lockKey][]*hold{}}
	for i := range g.ranks {
		g.ranks[i].begin, g.ranks[i].lastStart, g.ranks[i].tip.node = unknown, unknown, noNode
	}
	return g
}

// AddMember adds a world rank to a communicator, as the next of its ranks.
func (g *Graph) AddMember(comm, world int32) {
	g.collectives.members[comm] = append(g.collectives.members[comm], world)
}

// AddToSecondGroup adds a world rank to the second group of an intercommunicator.
func (g *Graph) AddToSecondGroup(comm, world int32) {
	if g.collectives.second[comm] == nil {
		g.collectives.second[comm] = map[int32]bool{}
	}
	g.collectives.second[comm][world] = true
}

// AddSources adds the world ranks that a world rank receives from in neighbourhood collectives of a communicator.
func (g *Graph) AddSources(comm, world int32, sources []int32) {
	if g.collectives.sources[comm] == nil {
		g.collectives.sources[comm] = map[int32][]int32{}
	}
	g.collectives.sources[comm][world] = append(g.collectives.sources[comm][world], sources...)
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
		operation: -1, place: g.places.number(b.Callsite[i], schema.CallID(b.Call[i])), node: noNode, call: b.Call[i],
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
	if !g.options.Eager {
		r.noteSend(b, i, index)
	}
	if b.Instance[i] != schema.NullInt64 && b.Comm[i] != schema.NullInt32 {
		g.collectives.add(r, b, i, &w, index)
	}
	if schema.Class(w.class) == schema.ClassRMA {
		if err := g.windows.add(r, b, i, &w, index); err != nil {
			return err
		}
	}
	if r.read++; w.start != unknown {
		r.lastStart = w.start
	}
	r.rows = append(r.rows, w)
	return nil
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
			m.Src, m.Dst, m.Bytes, m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = src, dst, b.Bytes[i], b.SendSeq[i],
				b.RecvPostSeq[i], b.RecvDoneSeq[i]
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
			g.ranks.addWait(dst, p, src, send, AwaitsSender)
		}
		if !g.options.Eager {
			addSendWait(g, entry{src, send}, entry{dst, post}, b.Bytes[i])
		}
	}
}

// addSendWait adds to g the wait of a send, or of the row that completes it, for its receive to be posted.
func addSendWait(g *Graph, send, post entry, bytes int64) {
	r, w := &g.ranks[send.rank], g.ranks.row(send)
	call, awaits := r.sendCall(send.row), AwaitsReceiver
	nonblocking := w.done != unknown && r.find(w.done) != send.row
	if wait := g.options.SendWaits; wait != nil && !wait(call, send.rank, post.rank, bytes, nonblocking) {
		return
	}
	if call.Is(schema.FactSynchronous) {
		awaits = AwaitsReceiverSync
	}
	if w.done == unknown {
		g.ranks.addWait(send.rank, send.row, post.rank, post.row, awaits)
	} else {
		g.addWaitOf(send.rank, w.done, post, awaits)
	}
}

// addCollectiveWaits finds which rank each rank waited for in collective operations and on windows.
func (g *Graph) addCollectiveWaits() {
	g.windows.addPairs()
	g.windows.addLockWaits(math.MaxInt64)
	for n := range g.collectives.all {
		if q := &g.collectives.all[n]; len(q.entries) > 0 {
			g.collectives.addWaitsIn(q)
		}
	}
}
