package critical

import "github.com/commq/commq/schema"

// Walk follows the path back from the end of the rank that ends last (the lowest of several), and calls emit with
// each segment, the last one first. Segments join without gaps, none is empty, and together they take duration: the
// ns from 0, or from the first row if that starts before 0, to that end. With LeaveOutStartup the path leads back to the
// end of MPI_Init on whatever rank it is then. finish has the time at which each rank ends,
// where that is known to be after its last row; it may be nil. A run without times has a duration of 0 and no path.
func (g *Graph) Walk(finish []int64, emit func(Segment)) (duration int64) {
	g.addCollectiveWaits()
	rank, i, at := g.lastRank(finish)
	if rank < 0 {
		return 0
	}
	begin, end := g.begin(), at
	segment := func(rank int32, w *row, kind Kind, from int64) {
		if from = max(from, begin); from < at {
			emit(Segment{rank, w.site, schema.CallID(w.call), kind, from, at})
			at = from
		}
	}
	w := &g.ranks[rank].rows[i]
	if w.end != unknown {
		segment(rank, w, Compute, w.end)
	}
	left, leftAt := map[*row]bool{}, at // rows where the walk went to another rank, at time leftAt
	for {
		if at != leftAt {
			clear(left)
			leftAt = at
		}
		switch {
		case w.start == unknown: // its time is not known
		case w.waitedRank >= 0 && g.ranks[w.waitedRank].rows[w.waitedRow].start <= at && !left[w]:
			s := g.ranks[w.waitedRank].rows[w.waitedRow].start
			if s == at {
				left[w] = true // only once, so that rows that wait for each other do not make a loop
			}
			segment(rank, w, w.kind, s)
			rank, i = w.waitedRank, w.waitedRow
			w = &g.ranks[rank].rows[i]
		default:
			segment(rank, w, w.kindWithoutWait(), w.start)
		}
		if w.prev < 0 {
			from := begin
			if b := g.ranks[rank].begin; b != unknown {
				from = b
			}
			segment(rank, w, Compute, from)
			return end - at
		}
		before := &g.ranks[rank].rows[w.prev]
		if end := before.lastTime(); end != unknown {
			segment(rank, w, Compute, end)
		}
		w = before
	}
}

// kindWithoutWait is the kind of the time in a call that did not wait for another rank.
func (w *row) kindWithoutWait() Kind {
	switch schema.Class(w.class) {
	case schema.ClassSend, schema.ClassRecv, schema.ClassSendrecv, schema.ClassProbe, schema.ClassComplete:
		return PointToPoint
	case schema.ClassCollective:
		return Collective
	}
	return Other
}

// lastTime is the end of a row, or its start if it never returned.
func (w *row) lastTime() int64 {
	if w.end == unknown {
		return w.start
	}
	return w.end
}

// lastRank returns the rank that ends last, its last row, and its end. rank is -1 when no row has a time.
func (g *Graph) lastRank(finish []int64) (rank, index int32, at int64) {
	rank = -1
	for k := range g.ranks {
		lastRow, end := int32(-1), int64(unknown)
		for i := range g.ranks[k].rows {
			if e := g.ranks[k].rows[i].lastTime(); e != unknown && (lastRow < 0 || e > end) {
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

// begin is where walks end: at 0, or at the start of the first row if that is before 0.
func (g *Graph) begin() int64 {
	begin := int64(0)
	for k := range g.ranks {
		for i := range g.ranks[k].rows {
			if s := g.ranks[k].rows[i].start; s != unknown {
				begin = min(begin, s)
			}
		}
	}
	return begin
}
