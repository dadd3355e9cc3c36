package critical

import (
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// rankRows are a rank's rows in order of seq. Indices of rows count the dropped ones too.
type rankRows struct {
	rows     []row
	dropped  int32 // number of rows before the first of rows
	firstSeq int64 // seq of the first of rows
	lastSeq  int64
	seqs     []int64 // of all rows in rows; nil if no seq is missing
	lastRow  []int32 // by thread: index of its last row + 1
	begin    int64   // with Options.LeaveOutStartup when MPI_Init ended; otherwise unknown
	inits    map[int64]schema.CallID
	windows  map[int64]*window // by the seq of the row that made it
	// sendInits are the calls that made persistent sends, of those that are synchronous or buffered, by their seq;
	// sends are their starts, by row.
	sendInits map[int64]schema.CallID
	sends     map[int32]schema.CallID

	// Used by explanations (window.go).
	expected, read int64   // numbers of rows in the run, and read so far
	lastStart      int64   // of the last row
	open           []int32 // rows of collective operations
	pinned         int32   // this row and those after it are needed
	tails          []tail  // by thread
	tip            exit    // of the dropped row that ends last
}

// row is a call.
type row struct {
	start, end int64 // ns; unknown where the call has none
	done       int64 // seq of the row that completes it; unknown: the row itself; never: no row
	waitedRank int32 // the rank that it waited for, or -1
	waitedRow  int32 // index of the row at whose start the path continues on that rank; if left is set, its node
	prev       int32 // index of the row before it on the same thread, or -1
	operation  int32 // index of its collective operation, or -1
	place      int32 // index of its call site in Graph.places
	node       int32 // its node of the tree, noNode or onStack
	call       int16
	thread     int16
	class      uint8
	kind       Kind    // kind of the time after the wait
	awaits     Awaited // what it waited for
	left       bool    // its wait is explained
}

const (
	// unknown is a time or seq that is not known.
	unknown = schema.NullInt64
	// never is the value of row.done if no row completes the request.
	never = -1
)

// rowAt returns row i.
func (r *rankRows) rowAt(i int32) *row { return &r.rows[i-r.dropped] }

// end returns the index after the last row.
func (r *rankRows) end() int32 { return r.dropped + int32(len(r.rows)) }

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

// noteSend notes a row that makes or starts a persistent send which is synchronous or buffered.
func (r *rankRows) noteSend(b *schema.Events, i int, index int32) {
	call := schema.CallID(b.Call[i])
	if call.Is(schema.FactPersistent) && call.IsAny(schema.FactSynchronous|schema.FactBuffered) {
		if r.sendInits == nil {
			r.sendInits, r.sends = map[int64]schema.CallID{}, map[int32]schema.CallID{}
		}
		r.sendInits[b.Seq[i]] = call
	} else if made, found := r.sendInits[b.InitSeq[i]]; found && call.Is(schema.FactStarts) {
		r.sends[index] = made
	}
}

// sendCall returns the call that made the send of a row; the row itself where it is not known to be persistent. Each
// send is asked for once.
func (r *rankRows) sendCall(row int32) schema.CallID {
	if made, found := r.sends[row]; found {
		delete(r.sends, row)
		return made
	}
	return schema.CallID(r.rowAt(row).call)
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

// beginOr returns where a path to the first row of a thread ends: at the end of MPI_Init if that was left out,
// otherwise at first.
func (r *rankRows) beginOr(first int64) int64 {
	if r.begin != unknown {
		return r.begin
	}
	return first
}

// allRows are the rows of all ranks, by rank.
type allRows []rankRows

// row returns the row of an entry.
func (a allRows) row(e entry) *row { return a[e.rank].rowAt(e.row) }

// start returns when a row began.
func (a allRows) start(e entry) int64 { return a[e.rank].rowAt(e.row).start }

// has reports whether a row was not dropped.
func (a allRows) has(e entry) bool { return e.row >= a[e.rank].dropped }

// over reports whether a row was dropped or had ended by until.
func (a allRows) over(e entry, until int64) bool { return !a.has(e) || a.row(e).lastTime() <= until }

// addWait adds a wait of row i of a rank for another rank to begin one of its rows. It counts only if that happened
// while row i ran, or at its end (on a network that takes no time both are the same). Of several waits the latest
// counts; of equal ones, the one for the lowest rank.
func (a allRows) addWait(rank, i, otherRank, otherRow int32, awaits Awaited) {
	w, until := a[rank].rowAt(i), a[otherRank].rowAt(otherRow).start
	if w.left {
		return // only where clocks disagree
	}
	if until == unknown || w.start == unknown || w.end == unknown || until <= w.start || until > w.end {
		return
	}
	if w.waitedRank >= 0 {
		before := a[w.waitedRank].rowAt(w.waitedRow).start
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

// settled returns the time up to which all rows were read, with their waits for rows that began by then.
func (a allRows) settled() int64 {
	t := int64(math.MaxInt64)
	for k := range a {
		r := &a[k]
		if r.lastStart == unknown && r.read < r.expected {
			return math.MinInt64
		}
		if r.read < r.expected {
			t = min(t, r.lastStart)
		}
		for len(r.open) > 0 && (r.open[0] < r.dropped || r.rowAt(r.open[0]).operation < 0) {
			r.open = r.open[1:]
		}
		if len(r.open) > 0 {
			t = min(t, r.rowAt(r.open[0]).start)
		}
	}
	return t
}

// cause returns the row that row p waited for, if the path from the end of p, or from an earlier time, leads there.
func (a allRows) cause(p *row, at int64) *row {
	if p.left || p.waitedRank < 0 {
		return nil
	}
	if c := a[p.waitedRank].rowAt(p.waitedRow); c.start <= min(at, p.lastTime()) {
		return c
	}
	return nil
}

// lastRank returns the rank that ends last, its last row, and its end. rank is -1 when no row has a time.
func (a allRows) lastRank(finish []int64) (rank, index int32, at int64) {
	rank = -1
	for k := range a {
		lastRow, end := int32(-1), int64(unknown)
		for i := range a[k].rows {
			if e := a[k].rows[i].lastTime(); e != unknown && (lastRow < 0 || e > end) {
				lastRow, end = int32(i), e
			}
		}
		if lastRow < 0 {
			continue
		}
		if finish != nil {
			end = max(end, finish[k])
		}
		if rank < 0 || end > at {
			rank, index, at = int32(k), lastRow, end
		}
	}
	return rank, index, at
}

// begin returns where walks end: at 0, or at the start of the first row if that is earlier.
func (a allRows) begin() int64 {
	begin := int64(0)
	for k := range a {
		for i := range a[k].rows {
			if s := a[k].rows[i].start; s != unknown {
				begin = min(begin, s)
			}
		}
	}
	return begin
}
