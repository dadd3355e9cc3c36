// Package critical finds the critical path of a run: the chain of computing and communicating that its duration is made of, walked back
// from the end of the last rank, as Böhme et al. do ("Scalable Critical-Path Based Performance Analysis", IPDPS 2012, after Yang and
// Miller, 1988). The rule and what it cannot know are in docs/method/critical-path.md.
package critical

import (
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// Kind is what the time of a piece of the path is spent on.
type Kind uint8

const (
	// Compute is outside MPI, before a call.
	Compute Kind = iota
	// PointToPoint is in a call of point-to-point communication that waited for nobody, or after what it waited for was there.
	PointToPoint
	// Transfer is from when the other side of a message was ready to the end of the call that waited for it.
	Transfer
	// Collective is in a collective operation: of a rank that waited, from when the last one that it needed had come.
	Collective
	// Other is in all other calls.
	Other
	// Kinds is how many there are.
	Kinds
)

func (k Kind) String() string {
	return [Kinds]string{"compute", "point-to-point", "transfer", "collective", "other"}[k]
}

// Segment is a piece of the path: what a rank did from one time to another, in ns.
type Segment struct {
	Rank int32
	// Site and Call are those of the call in which the time was spent, or, of Compute, before which.
	Site     int32
	Call     schema.CallID
	Kind     Kind
	From, To int64
}

// Options say what a rank waits for.
type Options struct {
	// Last says that in every collective operation all wait for the last rank, as in simulated and virtual times. Otherwise a rank waits
	// for those whose data it needs.
	Last bool
	// Eager says that no send waits for its receiver.
	Eager bool
}

// Graph is the rows of a run, with what each waited for. It takes 56 bytes for each row.
type Graph struct {
	options Options
	ranks   []rankRows
	groups  map[groupKey]int32
	groupOf []group
	members map[int32][]int32 // world ranks of communicators, by comm_rank
}

// rankRows are a rank's rows in the order of seq.
type rankRows struct {
	rows    []row
	first   int64   // seq of the first
	seqs    []int64 // of all, where some are missing
	threads []int32 // last row of each thread, +1
	inits   map[int64]schema.CallID
}

// row is a call.
type row struct {
	start, end int64 // ns; unknown where the call has none
	done       int64 // seq of the row that completes it; none where that is itself
	other      int32 // rank that it waited for; -1: none
	index      int32 // row of that rank with whose start the path goes on
	prev       int32 // row before of the same thread; -1
	group      int32 // its collective operation; -1
	site       int32
	call       int16
	operation  int16 // of a collective, by its blocking form
	class      uint8
	kind       Kind // of the time after what it waited for
}

const unknown = schema.NullInt64

type groupKey struct {
	comm     int32
	instance int64
}

// group is a collective operation: who came last, and who was the root.
type group struct {
	comm            int32
	last, lastIndex int32
	root, rootIndex int32
	scan            []enter
}

// enter is when a rank came.
type enter struct {
	rank, index int32
}

// New is an empty graph of so many ranks.
func New(ranks int, o Options) *Graph {
	g := &Graph{options: o, ranks: make([]rankRows, ranks), groups: map[groupKey]int32{}, members: map[int32][]int32{}}
	return g
}

// AddMember says that world rank is the next one of a communicator, in the order of its ranks there.
func (g *Graph) AddMember(comm, world int32) { g.members[comm] = append(g.members[comm], world) }

// Columns are the columns of events that a graph needs.
var Columns = []string{"rank", "seq", "thread", "call", "class", "start_ns", "end_ns", "comm", "instance", "root_world", "request", "done_seq", "init_seq", "callsite"}

// MessageColumns are the columns of messages that a graph needs.
var MessageColumns = []string{"src", "dst", "send_seq", "recv_post_seq", "recv_done_seq"}

// AddEvents takes rows in, each rank's in the order of seq. It is an error when a rank is none of the run's or a seq does not grow.
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
	index, seq := int32(len(r.rows)), b.Seq[i]
	if err := r.number(seq); err != nil {
		return err
	}
	thread := max(0, int(b.Thread[i]))
	for len(r.threads) <= thread {
		r.threads = append(r.threads, 0)
	}
	w := row{start: b.StartNs[i], end: b.EndNs[i], done: unknown, other: -1, prev: r.threads[thread] - 1, group: -1, site: b.Callsite[i],
		call: b.Call[i], class: uint8(b.Class[i])}
	r.threads[thread] = index + 1
	if w.done = b.DoneSeq[i]; w.done == unknown && b.Request[i] != schema.NullInt64 {
		w.done = never
	}
	if b.Instance[i] != schema.NullInt64 && b.Comm[i] != schema.NullInt32 {
		g.collective(r, b, i, &w, index)
	}
	r.rows = append(r.rows, w)
	return nil
}

// never is the done of a row that nothing completes.
const never = -1

// number notes the seq of the next row.
func (r *rankRows) number(seq int64) error {
	n := int64(len(r.rows))
	switch {
	case n == 0:
		r.first = seq
	case r.seqs != nil:
		if seq <= r.seqs[n-1] {
			return fmt.Errorf("seq %d comes after %d", seq, r.seqs[n-1])
		}
		r.seqs = append(r.seqs, seq)
	case seq != r.first+n:
		if seq < r.first+n {
			return fmt.Errorf("seq %d comes after %d", seq, r.first+n-1)
		}
		r.seqs = make([]int64, n, 2*n+1)
		for k := range r.seqs {
			r.seqs[k] = r.first + int64(k)
		}
		r.seqs = append(r.seqs, seq)
	}
	return nil
}

// find is the index of a seq; -1 where there is none.
func (r *rankRows) find(seq int64) int32 {
	if r.seqs != nil {
		if i, ok := slices.BinarySearch(r.seqs, seq); ok {
			return int32(i)
		}
		return -1
	}
	if i := seq - r.first; seq >= r.first && i < int64(len(r.rows)) {
		return int32(i)
	}
	return -1
}

// collective notes that a row is part of a collective operation, or makes a persistent one.
func (g *Graph) collective(r *rankRows, b *schema.Events, i int, w *row, index int32) {
	call := schema.CallID(b.Call[i])
	if schema.Class(b.Class[i]) == schema.ClassOther {
		if r.inits == nil {
			r.inits = map[int64]schema.CallID{}
		}
		r.inits[b.Seq[i]] = call
		return
	}
	if made, ok := r.inits[b.InitSeq[i]]; ok {
		call = made
	}
	operation := call.Operation()
	if class := schema.Class(b.Class[i]); class != schema.ClassCollective && class != schema.ClassComm || neighbours[operation] {
		return
	}
	w.operation = int16(operation)
	k := groupKey{b.Comm[i], b.Instance[i]}
	n, ok := g.groups[k]
	if !ok {
		n = int32(len(g.groupOf))
		g.groups[k] = n
		g.groupOf = append(g.groupOf, group{comm: k.comm, last: -1, root: -1})
	}
	w.group = n
	q := &g.groupOf[n]
	if b.RootWorld[i] == b.Rank[i] {
		q.root, q.rootIndex = b.Rank[i], index
	}
	if patterns[operation] == toPrefix {
		q.scan = append(q.scan, enter{b.Rank[i], index})
	}
}

// pattern is whom a rank waits for in a collective operation.
type pattern uint8

const (
	toAll    pattern = iota // the last
	toRoot                  // the root
	atRoot                  // at the root the last, elsewhere nobody
	toPrefix                // the last up to its own rank
)

// patterns is by the blocking form of the operation; it is made once and only read.
var patterns, neighbours = func() (p map[schema.CallID]pattern, n map[schema.CallID]bool) {
	p, n = map[schema.CallID]pattern{}, map[schema.CallID]bool{}
	for _, c := range schema.Calls {
		switch strings.TrimPrefix(c.Name, "MPI_") {
		case "Bcast", "Scatter", "Scatterv":
			p[c.ID] = toRoot
		case "Reduce", "Gather", "Gatherv":
			p[c.ID] = atRoot
		case "Scan", "Exscan":
			p[c.ID] = toPrefix
		}
		if strings.Contains(c.Name, "_Neighbor_") || strings.Contains(c.Name, "_Ineighbor_") {
			n[c.ID.Operation()] = true
		}
	}
	return p, n
}()

// SetTime gives a row other times, in ns: those of a simulation. A row that there is not is ignored.
func (g *Graph) SetTime(rank int32, seq, start, end int64) {
	r := &g.ranks[rank]
	if i := r.find(seq); i >= 0 {
		r.rows[i].start, r.rows[i].end = start, end
	}
}

// AddMessages takes messages in, when all rows and their times are there.
func (g *Graph) AddMessages(b *schema.Messages) {
	for i, src := range b.Src {
		dst := b.Dst[i]
		if src < 0 || dst < 0 || int(src) >= len(g.ranks) || int(dst) >= len(g.ranks) {
			continue
		}
		from, to := &g.ranks[src], &g.ranks[dst]
		send, post, done := from.find(b.SendSeq[i]), to.find(b.RecvPostSeq[i]), to.find(b.RecvDoneSeq[i])
		if send >= 0 && done >= 0 {
			g.waits(dst, done, src, send, Transfer)
		}
		if send >= 0 && post >= 0 {
			if p := to.rows[post].prev; p >= 0 && schema.Class(to.rows[p].class) == schema.ClassProbe {
				g.waits(dst, p, src, send, Transfer)
			}
			if end := from.completes(send); end >= 0 && !g.options.Eager {
				g.waits(src, end, dst, post, Transfer)
			}
		}
	}
}

// completes is the row that completes what a row begins; -1 where nothing does.
func (r *rankRows) completes(i int32) int32 {
	switch done := r.rows[i].done; done {
	case unknown:
		return i
	case never:
		return -1
	default:
		return r.find(done)
	}
}

// waits notes that a row of a rank waited until another rank began a row, when that was while it ran, or when it ended: on a network that
// takes no time both are one. Of several the last counts, and of
// those at one time the one of the lowest rank.
func (g *Graph) waits(rank, i, other, index int32, kind Kind) {
	w, at := &g.ranks[rank].rows[i], g.ranks[other].rows[index].start
	if at == unknown || w.start == unknown || w.end == unknown || at <= w.start || at > w.end {
		return
	}
	if w.other >= 0 {
		if had := g.ranks[w.other].rows[w.index].start; at < had || at == had && w.other <= other {
			return
		}
	}
	w.other, w.index, w.kind = other, index, kind
}

// collectives finds out whom ranks waited for in collective operations.
func (g *Graph) collectives() {
	g.each(func(rank, i int32, w *row) {
		q := &g.groupOf[w.group]
		if at := w.start; at != unknown && (q.last < 0 || at > g.ranks[q.last].rows[q.lastIndex].start) {
			q.last, q.lastIndex = rank, i
		}
	})
	prefixes := map[int32]map[int32]enter{} // of scans
	g.each(func(rank, i int32, w *row) {
		done := g.ranks[rank].completes(i)
		q := &g.groupOf[w.group]
		if done < 0 || q.last < 0 {
			return
		}
		needed := enter{q.last, q.lastIndex}
		if !g.options.Last {
			switch patterns[schema.CallID(w.operation)] {
			case toRoot:
				if q.root < 0 {
					return
				}
				needed = enter{q.root, q.rootIndex}
			case atRoot:
				if rank != q.root {
					return
				}
			case toPrefix:
				if prefixes[w.group] == nil {
					prefixes[w.group] = g.prefixes(q)
				}
				needed = prefixes[w.group][rank]
			}
		}
		g.waits(rank, done, needed.rank, needed.index, Collective)
	})
}

// each calls fn with every row that is part of a collective operation, rank by rank.
func (g *Graph) each(fn func(rank, i int32, w *row)) {
	for rank := range g.ranks {
		rows := g.ranks[rank].rows
		for i := range rows {
			if rows[i].group >= 0 {
				fn(int32(rank), int32(i), &rows[i])
			}
		}
	}
}

// prefixes is, for each rank in a scan, the last to come of those up to it.
func (g *Graph) prefixes(q *group) map[int32]enter {
	came := map[int32]int32{}
	for _, e := range q.scan {
		came[e.rank] = e.index
	}
	last, of := enter{-1, -1}, map[int32]enter{}
	for _, rank := range g.members[q.comm] {
		if i, ok := came[rank]; ok {
			at := g.ranks[rank].rows[i].start
			if last.rank < 0 || at > g.ranks[last.rank].rows[last.index].start {
				last = enter{rank, i}
			}
			of[rank] = last
		}
	}
	for rank, i := range came { // of a communicator whose members are not known
		if _, ok := of[rank]; !ok {
			of[rank] = enter{rank, i}
		}
	}
	return of
}

// inside is what a call's time is where it waited for nobody.
func (w *row) inside() Kind {
	switch schema.Class(w.class) {
	case schema.ClassSend, schema.ClassRecv, schema.ClassSendrecv, schema.ClassProbe, schema.ClassComplete:
		return PointToPoint
	case schema.ClassCollective:
		return Collective
	}
	return Other
}

// Walk walks the path back from the end of the last rank, of several the lowest, and calls emit with its pieces, the last first. Each
// begins where the next one in time ends, none is empty, and together they take duration, the ns from 0 (from the first row where that is
// before) to that end. finish is when each rank ends, where that is known to be after its last row, and may be nil. A run without
// times has a duration of 0 and no path.
func (g *Graph) Walk(finish []int64, emit func(Segment)) (duration int64) {
	g.collectives()
	rank, i, at := g.last(finish)
	if rank < 0 {
		return 0
	}
	begin := g.begin()
	duration = at - begin
	piece := func(rank int32, w *row, kind Kind, from int64) {
		if from = max(from, begin); from < at {
			emit(Segment{rank, w.site, schema.CallID(w.call), kind, from, at})
			at = from
		}
	}
	w := &g.ranks[rank].rows[i]
	if w.end != unknown {
		piece(rank, w, Compute, w.end)
	}
	left, leftAt := map[*row]bool{}, at // rows that the walk went over to another rank from, at this time
	for {
		if at != leftAt {
			clear(left)
			leftAt = at
		}
		switch {
		case w.start == unknown: // nobody knows when it was
		case w.other >= 0 && g.ranks[w.other].rows[w.index].start <= at && !left[w]: // once: rows that wait for each other are no path
			s := g.ranks[w.other].rows[w.index].start
			if s == at {
				left[w] = true
			}
			piece(rank, w, w.kind, s)
			rank, i = w.other, w.index
			w = &g.ranks[rank].rows[i]
		default:
			piece(rank, w, w.inside(), w.start)
		}
		if w.prev < 0 {
			piece(rank, w, Compute, begin)
			return duration
		}
		before := &g.ranks[rank].rows[w.prev]
		if end := before.ends(); end != unknown {
			piece(rank, w, Compute, end)
		}
		w = before
	}
}

// ends is when a row ends: of one that never returned when it began.
func (w *row) ends() int64 {
	if w.end == unknown {
		return w.start
	}
	return w.end
}

// last is the rank that ends last, the row after which it does, and when; rank is -1 when no row has a time.
func (g *Graph) last(finish []int64) (rank, index int32, at int64) {
	rank = -1
	for k := range g.ranks {
		mine, end := int32(-1), int64(unknown)
		for i := range g.ranks[k].rows {
			if e := g.ranks[k].rows[i].ends(); e != unknown && (mine < 0 || e > end) {
				mine, end = int32(i), e
			}
		}
		if mine < 0 {
			continue
		}
		if finish != nil {
			end = max(end, finish[k])
		}
		if rank < 0 || end > at {
			rank, index, at = int32(k), mine, end
		}
	}
	return rank, index, at
}

// begin is where walks end: 0, or the first row's start where that is before.
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
