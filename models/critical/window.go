package critical

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Explained is the critical path of a run, and the delays that caused its waits.
type Explained struct {
	Path   *Path
	Delays []*Delay
}

// tail is the last dropped row of a thread, with what explanations of later waits need of it and of the rows before it.
type tail struct {
	exit        // where the path goes from the row's end; node is noNode if no row was dropped
	since int64 // when the last wait of the thread ended, or when the thread began
	own   []spent
}

// spent is the time that a thread spent on an activity.
type spent struct {
	activity int32
	ns       int64
}

// deferred is a wait for a row of another rank to begin, of a row that was not read yet.
type deferred struct {
	rank   int32
	seq    int64
	other  entry
	awaits Awaited
}

// addWaitOf adds a wait of the row with this seq, or defers it until the row is read.
func (g *Graph) addWaitOf(rank int32, seq int64, other entry, awaits Awaited) {
	r := &g.ranks[rank]
	if i := r.find(seq); i >= 0 {
		g.ranks.addWait(rank, i, other.rank, other.row, awaits)
	} else if seq > r.lastSeq {
		g.deferred = append(g.deferred, deferred{rank, seq, other, awaits})
	}
}

// addDeferred adds the waits of rows that have been read since.
func (g *Graph) addDeferred() {
	waiting := g.deferred
	g.deferred = g.deferred[:0]
	for _, d := range waiting {
		if d.other.row >= g.ranks[d.other.rank].dropped { // rows that were dropped began before those not read yet
			g.addWaitOf(d.rank, d.seq, d.other, d.awaits)
		}
	}
	late := g.late
	g.late = schema.Messages{}
	g.AddMessages(&late)
}

// addWaits adds the waits of the rows read so far, and returns the time up to which all are known.
func (g *Graph) addWaits() (settled int64) {
	g.addDeferred()
	g.collectives.addComplete()
	g.windows.addPairs()
	settled = g.ranks.settled()
	g.windows.addLockWaits(settled)
	return settled
}

// advance explains the waits for rows that began by until, and drops the rows that are no longer needed.
func (d *delays) advance(until int64) {
	g := d.g
	var waits []wait
	for rank := range g.ranks {
		r := &g.ranks[rank]
		r.pinned = math.MaxInt32
		for i := r.dropped; i < r.end() && r.rowAt(i).start <= until; i++ {
			g.visit(int32(rank), i)
			if w := r.rowAt(i); w.waitedRank >= 0 && !w.left {
				cause := entry{w.waitedRank, w.waitedRow}
				waits = append(waits, wait{cause, entry{int32(rank), i}, g.ranks.start(cause) - w.start})
			}
		}
	}
	d.explainAll(waits, until)
	for rank := range g.ranks {
		g.drop(&g.ranks[rank], until)
	}
	if t := &g.tree; len(t.nodes) > 2*t.kept+1<<16 {
		g.compact()
	}
}

// drop drops the first rows of a rank: those that ended by until.
func (g *Graph) drop(r *rankRows, until int64) {
	n := int32(0)
	for ; int(n) < len(r.rows) && r.dropped+n < r.pinned; n++ {
		w := &r.rows[n]
		if w.start > until || w.lastTime() > until || w.operation >= 0 || w.waitedRank >= 0 && !w.left ||
			!g.options.Eager && !r.completes(w, until) {
			break
		}
		g.leave(r, w)
	}
	if n == 0 {
		return
	}
	r.dropped += n
	if r.seqs != nil {
		r.firstSeq, r.seqs = r.seqs[n-1]+1, append(r.seqs[:0], r.seqs[n:]...)
	} else {
		r.firstSeq += int64(n)
	}
	r.rows = append(r.rows[:0], r.rows[n:]...)
}

// completes reports whether the operation of a row is complete at a time, if it is not a receive: its sender may wait
// until then.
func (r *rankRows) completes(w *row, until int64) bool {
	if w.done == unknown || w.done == never || schema.Class(w.class) == schema.ClassRecv {
		return true
	}
	i := r.find(w.done)
	return i < 0 && w.done <= r.lastSeq || i >= 0 && r.rowAt(i).lastTime() <= until
}

// leave adds a row to the tail of its thread.
func (g *Graph) leave(r *rankRows, w *row) {
	t := &r.tails[w.thread]
	from := t.at
	if t.node == noNode {
		from = r.beginOr(min(g.firstNs, w.start))
		t.since = from
	}
	t.exit = g.exitOf(w, math.MaxInt64)
	if r.tip.node == noNode || t.at > r.tip.at {
		r.tip = t.exit
	}
	if w.left {
		t.own, t.since = t.own[:0], t.at
		return
	}
	if w.start != unknown {
		t.spend(activityOf(w.place, Compute), w.start-from)
		t.spend(activityOf(w.place, w.kindWithoutWait()), t.at-w.start)
	}
}

func (t *tail) spend(activity int32, ns int64) {
	if ns <= 0 {
		return
	}
	for i := range t.own {
		if t.own[i].activity == activity {
			t.own[i].ns += ns
			return
		}
	}
	t.own = append(t.own, spent{activity, ns})
}

// compact compacts the tree.
func (g *Graph) compact() {
	var live []*int32
	var cuts []int64
	for k := range g.ranks {
		r := &g.ranks[k]
		live, cuts = append(live, &r.tip.node), append(cuts, r.beginOr(g.firstNs))
		for i := range r.tails {
			live, cuts = append(live, &r.tails[i].node), append(cuts, r.tails[i].since)
		}
		for i := range r.rows {
			w := &r.rows[i]
			live = append(live, &w.node)
			if w.left {
				live = append(live, &w.waitedRow)
			}
			if w.waitedRank >= 0 {
				cuts = append(cuts, w.lastTime())
			}
		}
	}
	g.tree.compact(live, cuts)
}

// Explain explains the rows of a graph that were not explained yet, and returns the result. finish has the time at
// which each rank ends, as for Walk. The graph is empty then.
func (g *Graph) Explain(finish []int64) *Explained {
	d := g.explaining()
	g.addCollectiveWaits()
	for n := range g.collectives.all {
		if len(g.collectives.all[n].entries) > 0 {
			g.collectives.free(int32(n))
		}
	}
	d.advanceTo(math.MaxInt64)
	return &Explained{g.treePath(finish), d.sorted()}
}

// advanceRows is the number of rows that are explained at a time.
const advanceRows = 1 << 17

// advanceTo does what advance does, some rows at a time.
func (d *delays) advanceTo(until int64) {
	first, last, rows := int64(math.MaxInt64), int64(math.MinInt64), 0
	for k := range d.g.ranks {
		for i := range d.g.ranks[k].rows {
			if at := d.g.ranks[k].rows[i].start; at != unknown && at <= until {
				rows++
				first, last = min(first, at), max(last, at)
			}
		}
	}
	steps := int64(rows / advanceRows)
	for n := range steps {
		d.advance(first + (last-first)/(steps+1)*(n+1))
	}
	d.advance(until)
}

// treePath is the critical path, of a graph whose rows are all dropped. It has no trace and no numbers of segments.
func (g *Graph) treePath(finish []int64) *Path {
	p, at := &Path{LastRank: -1, parts: map[pathKey]*Part{}}, int64(0)
	for k := range g.ranks {
		tip := &g.ranks[k].tip
		if tip.node == noNode {
			continue
		}
		end := tip.at
		if finish != nil {
			end = max(end, finish[k])
		}
		if p.LastRank < 0 || end > at {
			p.LastRank, at = int32(k), end
		}
	}
	if p.LastRank < 0 {
		return p
	}
	p.EndNs = at
	tip := g.ranks[p.LastRank].tip
	add := func(s seg) {
		a := g.places.activity(s.rank, s.activity)
		k := pathKey{a.Rank, a.Site, a.Call}
		if p.parts[k] == nil {
			p.parts[k] = &Part{}
		}
		p.parts[k].Ns[a.Kind] += s.ns
		p.DurationNs += s.ns
	}
	add(seg{p.LastRank, activityOf(tip.place, Compute), at - tip.at})
	from := len(g.tree.segs)
	node := g.tree.addExit(p.LastRank, tip, tip.at)
	for _, s := range g.tree.segs[from:] {
		add(s)
	}
	g.tree.walkBack(node, math.MinInt64/2, add)
	if g.options.LeaveOutStartup {
		p.StartupNs = g.lastNs - g.firstNs - p.DurationNs
	}
	return p
}

// Explain explains the waits of a run with times, and finds its critical path. It takes options and callback as Read
// does. It keeps only rows on which later ones may depend, mostly one epoch. It is an error if these and the paths take
// more than bytes bytes; 0 means no limit.
func Explain(ctx context.Context, r *run.Run, o Options, bytes int64, also func(*schema.Events),
	more ...string) (*Explained, error) {
	o = optionsFor(r, o)
	g, err := NewForRun(ctx, r, o)
	if err != nil {
		return nil, err
	}
	for k := range g.ranks {
		g.ranks[k].expected = r.Ranks.Rows[k]
	}
	g.windowed = true
	d := g.explaining()
	events, err := r.EventEpochs(eventColumns(append([]string{"epoch"}, more...))...)
	if err != nil {
		return nil, err
	}
	messages, err := r.MessageEpochs(MessageColumns...)
	if err != nil {
		return nil, err
	}
	for last := int32(-1); ; {
		err := events.Next(ctx, func(b *schema.Events) error {
			if also != nil {
				also(b)
			}
			for _, epoch := range b.Epoch {
				last = max(last, epoch)
			}
			return g.AddEvents(b)
		})
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := readMessages(ctx, g, messages, int64(last)); err != nil {
			return nil, err
		}
		d.advanceTo(g.addWaits())
		if need := g.bytes(); bytes > 0 && need > bytes {
			return nil, fmt.Errorf("to explain its waits takes more than %s of memory", units.Bytes(bytes))
		}
	}
	if err := readMessages(ctx, g, messages, math.MaxInt64); err != nil {
		return nil, err
	}
	g.addDeferred()
	g.collectives.complete = nil
	return g.Explain(nil), nil
}

// readMessages adds the messages of all epochs up to one.
func readMessages(ctx context.Context, g *Graph, m *run.MessageEpochs, last int64) error {
	for {
		epoch, found := m.Epoch()
		if !found || epoch > last {
			return nil
		}
		if err := m.Next(ctx, func(b *schema.Messages) error { g.AddMessages(b); return nil }); err != nil {
			return err
		}
	}
}

// bytes is the memory that rows and paths take.
func (g *Graph) bytes() (n int64) {
	for k := range g.ranks {
		n += int64(cap(g.ranks[k].rows)) * 56
	}
	return n + int64(cap(g.tree.nodes))*24 + int64(cap(g.tree.segs))*16
}
