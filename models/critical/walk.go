package critical

import "github.com/commq/commq/schema"

// Walk follows the path back from the end of the rank that ends last (the lowest of several), and calls emit with
// each segment, the last one first. Segments join without gaps, none is empty, and together they take duration: the
// ns from 0, or from the first row if that starts before 0, to that end. With LeaveOutStartup the path leads back to
// the end of MPI_Init on whatever rank it is then. finish has the time at which each rank ends, where that is known to
// be after its last row; it may be nil. A run without times has a duration of 0 and no path.
func (g *Graph) Walk(finish []int64, emit func(Segment)) (duration int64) {
	g.addCollectiveWaits()
	rank, i, at := g.ranks.lastRank(finish)
	if rank < 0 {
		return 0
	}
	w := newWalker(g, at, g.ranks.begin(), emit)
	if last := g.ranks[rank].rowAt(i); last.end != unknown {
		w.segment(rank, last, Compute, last.end)
	}
	for i >= 0 {
		rank, i = w.inside(rank, i)
		i = w.before(rank, i)
	}
	return at - w.at
}

// walker walks back in time along the rows that others waited for.
type walker struct {
	g         *Graph
	at, begin int64 // where the walk is, and where it ends
	emit      func(Segment)
	left      map[*row]bool // rows where the walk went to another rank, at time leftAt
	leftAt    int64
}

// newWalker returns a walker from one time back to another.
func newWalker(g *Graph, at, begin int64, emit func(Segment)) *walker {
	return &walker{g: g, at: at, begin: begin, emit: emit, left: map[*row]bool{}, leftAt: at}
}

// segment emits the time from from, or from the walk's end, to where the walk is.
func (w *walker) segment(rank int32, r *row, kind Kind, from int64) {
	if from = max(from, w.begin); from < w.at {
		w.emit(Segment{rank, w.g.places.all[r.place].site, schema.CallID(r.call), kind, from, w.at})
		w.at = from
	}
}

// inside walks back through a row. It returns the row before whose start the walk continues: the same row, or the row
// of another rank that it waited for.
func (w *walker) inside(rank, i int32) (int32, int32) {
	r := w.g.ranks[rank].rowAt(i)
	if w.at != w.leftAt {
		clear(w.left)
		w.leftAt = w.at
	}
	switch {
	case r.start == unknown: // its time is not known
	case r.waitedRank >= 0 && w.g.ranks[r.waitedRank].rowAt(r.waitedRow).start <= w.at && !w.left[r]:
		s := w.g.ranks[r.waitedRank].rowAt(r.waitedRow).start
		if s == w.at {
			w.left[r] = true // only once, so that rows that wait for each other do not make a loop
		}
		w.segment(rank, r, r.kind, s)
		return r.waitedRank, r.waitedRow
	default:
		w.segment(rank, r, r.kindWithoutWait(), r.start)
	}
	return rank, i
}

// before walks back through the computing before a row, and returns the row before it on its thread. After the first
// row of a thread it ends the walk and returns -1.
func (w *walker) before(rank, i int32) int32 {
	r := w.g.ranks[rank].rowAt(i)
	if r.prev < 0 {
		from := w.begin
		if b := w.g.ranks[rank].begin; b != unknown {
			from = b
		}
		w.segment(rank, r, Compute, from)
		return -1
	}
	if end := w.g.ranks[rank].rowAt(r.prev).lastTime(); end != unknown {
		w.segment(rank, r, Compute, end)
	}
	return r.prev
}

// kindWithoutWait returns the kind of the time in a call that did not wait for another rank.
func (w *row) kindWithoutWait() Kind {
	switch schema.Class(w.class) {
	case schema.ClassSend, schema.ClassRecv, schema.ClassSendrecv, schema.ClassProbe, schema.ClassComplete:
		return PointToPoint
	case schema.ClassCollective:
		return Collective
	}
	return Other
}

// lastTime returns the end of a row, or its start if it never returned.
func (w *row) lastTime() int64 {
	if w.end == unknown {
		return w.start
	}
	return w.end
}
