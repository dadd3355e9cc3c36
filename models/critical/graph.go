package critical

import (
	"fmt"
	"slices"

	"github.com/commq/commq/schema"
)

// Graph holds the rows of a run, and for each the row of another rank that it waited for. A row takes 56 bytes.
type Graph struct {
	options    Options
	ranks      []rankRows
	operations map[operationKey]int32
	collective []operation       // by the value in operations
	members    map[int32][]int32 // world ranks of communicators, by rank in the communicator

	firstNs, lastNs int64 // when the run begins, 0 or earlier, and when its last call ends
}

// rankRows are a rank's rows in the order of seq.
type rankRows struct {
	rows     []row
	firstSeq int64
	seqs     []int64 // of all rows; nil if no seq is missing
	lastRow  []int32 // by thread: index of its last row + 1
	begin    int64   // when MPI_Init ended, if Options.LeaveOutStartup; else unknown
	inits    map[int64]schema.CallID
}

// row is a call.
type row struct {
	start, end int64 // ns; unknown where the call has none
	done       int64 // seq of the row that completes it; unknown: the row itself; never: no row
	waitedRank int32 // the rank that it waited for, or -1
	waitedRow  int32 // index of the row of that rank at whose start the path continues
	prev       int32 // index of the row before it on the same thread, or -1
	operation  int32 // index of its collective operation, or -1
	site       int32
	call       int16
	collective int16 // the blocking form of its collective operation
	class      uint8
	kind       Kind    // of the time after the wait
	awaits     Awaited // what it waited for
}

const (
	// unknown is a time or seq that is not known.
	unknown = schema.NullInt64
	// never is the value of row.done if no row completes the request.
	never = -1
)

// New returns an empty graph for a run with this number of ranks.
func New(ranks int, o Options) *Graph {
	g := &Graph{options: o, ranks: make([]rankRows, ranks), operations: map[operationKey]int32{},
		members: map[int32][]int32{}}
	for i := range g.ranks {
		g.ranks[i].begin = unknown
	}
	return g
}

// AddMember adds a world rank to a communicator, as the next of its ranks.
func (g *Graph) AddMember(comm, world int32) { g.members[comm] = append(g.members[comm], world) }

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
	index := int32(len(r.rows))
	if err := r.addSeq(b.Seq[i]); err != nil {
		return err
	}
	thread := max(0, int(b.Thread[i]))
	for len(r.lastRow) <= thread {
		r.lastRow = append(r.lastRow, 0)
	}
	w := row{start: b.StartNs[i], end: b.EndNs[i], done: b.DoneSeq[i], waitedRank: -1, prev: r.lastRow[thread] - 1,
		operation: -1, site: b.Callsite[i], call: b.Call[i], class: uint8(b.Class[i])}
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
	switch {
	case n == 0:
		r.firstSeq = seq
	case r.seqs != nil:
		if seq <= r.seqs[n-1] {
			return fmt.Errorf("seq %d comes after %d", seq, r.seqs[n-1])
		}
		r.seqs = append(r.seqs, seq)
	case seq != r.firstSeq+n:
		if seq < r.firstSeq+n {
			return fmt.Errorf("seq %d comes after %d", seq, r.firstSeq+n-1)
		}
		r.seqs = make([]int64, n, 2*n+1)
		for k := range r.seqs {
			r.seqs[k] = r.firstSeq + int64(k)
		}
		r.seqs = append(r.seqs, seq)
	}
	return nil
}

// find returns the index of the row with a seq, or -1.
func (r *rankRows) find(seq int64) int32 {
	if r.seqs != nil {
		if i, ok := slices.BinarySearch(r.seqs, seq); ok {
			return int32(i)
		}
		return -1
	}
	if i := seq - r.firstSeq; seq >= r.firstSeq && i < int64(len(r.rows)) {
		return int32(i)
	}
	return -1
}

// completion returns the index of the row that completes the operation of row i, or -1.
func (r *rankRows) completion(i int32) int32 {
	switch done := r.rows[i].done; done {
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
		r.rows[i].start, r.rows[i].end = start, end
	}
}

// AddMessages adds messages. All rows and their times must have been added.
func (g *Graph) AddMessages(b *schema.Messages) {
	for i, src := range b.Src {
		dst := b.Dst[i]
		if src < 0 || dst < 0 || int(src) >= len(g.ranks) || int(dst) >= len(g.ranks) {
			continue
		}
		from, to := &g.ranks[src], &g.ranks[dst]
		send, post, done := from.find(b.SendSeq[i]), to.find(b.RecvPostSeq[i]), to.find(b.RecvDoneSeq[i])
		if send >= 0 && done >= 0 {
			g.addWait(dst, done, src, send, AwaitsSender)
		}
		if send >= 0 && post >= 0 {
			if p := to.rows[post].prev; p >= 0 && schema.Class(to.rows[p].class) == schema.ClassProbe {
				g.addWait(dst, p, src, send, AwaitsSender)
			}
			if end := from.completion(send); end >= 0 && !g.options.Eager {
				g.addWait(src, end, dst, post, AwaitsReceiver)
			}
		}
	}
}

// addWait notes that row i of a rank waited until another rank began one of its rows. It counts only if that happened
// while row i ran, or at its end (on a network that takes no time both are the same). Of several waits the latest
// counts; of equal ones, the one for the lowest rank.
func (g *Graph) addWait(rank, i, otherRank, otherRow int32, awaits Awaited) {
	w, until := &g.ranks[rank].rows[i], g.ranks[otherRank].rows[otherRow].start
	if until == unknown || w.start == unknown || w.end == unknown || until <= w.start || until > w.end {
		return
	}
	if w.waitedRank >= 0 {
		before := g.ranks[w.waitedRank].rows[w.waitedRow].start
		if until < before || until == before && w.waitedRank <= otherRank {
			return
		}
	}
	w.waitedRank, w.waitedRow, w.awaits, w.kind = otherRank, otherRow, awaits, Transfer
	if awaits == AwaitsCollective {
		w.kind = Collective
	}
}
