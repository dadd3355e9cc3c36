package replace

import (
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// finish puts in order what was found.
func (p *Plan) finish() {
	for i := range p.inserted {
		slices.SortStableFunc(p.inserted[i], func(a, b insert) int { return compare(a.before, b.before) })
	}
	p.trailing = make([]map[int64]int64, len(p.inserted))
	for i := range p.trailing {
		p.trailing[i] = p.leftOver(int32(i))
	}
}

// leftOver finds computing before rows that go, of threads that have no row after them: the last row that stays gets it.
func (p *Plan) leftOver(rank int32) map[int64]int64 {
	q := &p.run.ranks[rank]
	left := map[int16]int64{}
	last := map[int16]int64{}
	next, row := 0, int64(0)
	inserts := func(before int64) {
		for ; next < len(p.inserted[rank]) && p.inserted[rank][next].before <= before; next++ {
			in := &p.inserted[rank][next]
			thread := in.joint.parts[in.part].thread
			left[thread], last[thread] = 0, row
			row++
		}
	}
	for seq, ns := range q.compute {
		thread := q.thread[seq]
		gone := p.removed[rank][int64(seq)]
		if gone {
			left[thread] += max(ns, 0)
		}
		inserts(int64(seq))
		if gone {
			continue
		}
		left[thread], last[thread] = 0, row
		row++
	}
	inserts(math.MaxInt64)
	extra := map[int64]int64{}
	for thread, ns := range left {
		if at, ok := last[thread]; ok && ns > 0 {
			extra[at] = ns
		}
	}
	return extra
}

// Row is the row of the new run that a row which stays has become.
func (p *Plan) Row(rank int32, seq int64) int64 {
	gone, _ := slices.BinarySearch(p.gaps[rank], seq)
	return seq - int64(gone) + int64(p.insertsBefore(rank, seq+1))
}

// insertsBefore is the number of collectives that come before rows less than seq.
func (p *Plan) insertsBefore(rank int32, seq int64) int {
	n, _ := slices.BinarySearchFunc(p.inserted[rank], seq, func(in insert, seq int64) int { return compare(in.before, seq) })
	return n
}

// Rows is the number of rows that a rank has in the new run.
func (p *Plan) Rows(rank int32) int64 {
	return int64(len(p.run.ranks[rank].flags) - len(p.gaps[rank]) + len(p.inserted[rank]))
}

// Rewriter makes the rows of the new run of those of the old one.
type Rewriter struct {
	plan  *Plan
	carry map[threadKey]*carried
	parts []schema.Part
}

type threadKey struct {
	rank   int32
	thread int32
}

// carried is what a thread did before rows that are gone.
type carried struct{ compute, instructions, cycles int64 }

// Rewriter begins to make rows.
func (p *Plan) Rewriter() *Rewriter { return &Rewriter{plan: p, carry: map[threadKey]*carried{}} }

// Events appends the rows of the new run that those of b become to out. Each rank's rows come in their order. Times are as they were,
// and null in rows that are new.
func (w *Rewriter) Events(b, out *schema.Events) {
	var e schema.Event
	for i := range b.Rank {
		b.Row(i, &e)
		w.row(&e, out)
	}
}

func (w *Rewriter) row(e *schema.Event, out *schema.Events) {
	p := w.plan
	rank, seq := e.Rank, e.Seq
	from, to := p.insertsBefore(rank, seq), p.insertsBefore(rank, seq+1)
	new := p.Row(rank, seq) - int64(to-from)
	epoch := e.Epoch
	c := w.carried(rank, e.Thread)
	gone := p.removed[rank][seq]
	if gone || w.here(rank, from, to, e.Thread) { // a collective comes behind the burst before the row in whose place it is
		add(&c.compute, e.ComputeNs)
		add(&c.instructions, e.Instructions)
		add(&c.cycles, e.Cycles)
		e.ComputeNs, e.Instructions, e.Cycles = nothing(e.ComputeNs), nothing(e.Instructions), nothing(e.Cycles)
	}
	w.inserts(rank, from, to, new, epoch, out)
	if !gone {
		w.keep(e, c, new+int64(to-from))
		out.Append(e)
	}
	if last := int64(len(p.run.ranks[rank].flags)) - 1; seq == last {
		all := len(p.inserted[rank])
		w.inserts(rank, to, all, p.Rows(rank)-int64(all-to), epoch, out)
	}
}

// here says whether one of these collectives is in the thread.
func (w *Rewriter) here(rank int32, from, to int, thread int32) bool {
	for _, in := range w.plan.inserted[rank][from:to] {
		if t := &in.joint.parts[in.part]; int32(t.thread) == thread && !(t.behind && t.before == t.canon) {
			return true
		}
	}
	return false
}

// nothing is what is left of a burst that goes elsewhere.
func nothing(n int64) int64 {
	if n == schema.NullInt64 {
		return n
	}
	return 0
}

// keep changes a row that stays.
func (w *Rewriter) keep(e *schema.Event, c *carried, new int64) {
	p := w.plan
	old := e.Seq
	e.Seq = new
	w.burst(e, c)
	if e.DoneSeq != schema.NullInt64 {
		e.DoneSeq = p.Row(e.Rank, e.DoneSeq)
	}
	if e.InitSeq != schema.NullInt64 {
		e.InitSeq = p.Row(e.Rank, e.InitSeq)
	}
	if e.Instance != schema.NullInt64 && e.Comm != schema.NullInt32 {
		e.Instance = p.instance(e.Comm, e.Instance)
	}
	switch p.halved[e.Rank][old] {
	case schema.ProcNullSend:
		e.SendPeer, e.SendWorld, e.SendBytes = schema.NullInt32, schema.NullInt32, 0
		e.ProcNull = max(e.ProcNull, 0) | schema.ProcNullSend
		e.PayloadHash, e.PayloadSum, e.PayloadHead = schema.NullInt64, schema.NullInt64, schema.NullInt64
	case schema.ProcNullRecv:
		e.RecvPeer, e.RecvWorld, e.RecvBytes = schema.NullInt32, schema.NullInt32, 0
		e.ProcNull = max(e.ProcNull, 0) | schema.ProcNullRecv
	}
}

// burst adds to a row what was computed before those that are gone.
func (w *Rewriter) burst(e *schema.Event, c *carried) {
	add(&e.ComputeNs, c.compute)
	add(&e.Instructions, c.instructions)
	add(&e.Cycles, c.cycles)
	*c = carried{schema.NullInt64, schema.NullInt64, schema.NullInt64}
	if extra := w.plan.trailing[e.Rank][e.Seq]; extra > 0 {
		add(&e.ComputeNs, extra)
	}
}

// add adds up what may not be known.
func add(sum *int64, n int64) {
	switch {
	case n == schema.NullInt64:
	case *sum == schema.NullInt64:
		*sum = n
	default:
		*sum += n
	}
}

func (w *Rewriter) carried(rank, thread int32) *carried {
	k := threadKey{rank, thread}
	c := w.carry[k]
	if c == nil {
		c = &carried{schema.NullInt64, schema.NullInt64, schema.NullInt64}
		w.carry[k] = c
	}
	return c
}

// inserts writes the collectives of these places.
func (w *Rewriter) inserts(rank int32, from, to int, new int64, epoch int32, out *schema.Events) {
	for k := from; k < to; k++ {
		in := &w.plan.inserted[rank][k]
		var e schema.Event
		parts := w.plan.fill(in, &e)
		e.Seq, e.Epoch = new+int64(k-from), epoch
		w.burst(&e, w.carried(rank, e.Thread))
		if e.ComputeNs == schema.NullInt64 {
			e.ComputeNs = 0
		}
		out.Append(&e)
		for _, x := range parts {
			x.Seq, x.Epoch = e.Seq, epoch
			w.parts = append(w.parts, x)
		}
	}
}

// instance is the number that a collective operation of a communicator has behind those that are new.
func (p *Plan) instance(comm int32, old int64) int64 {
	shifts := p.shifts[comm]
	before := func(n int64) int64 {
		k, _ := slices.BinarySearch(shifts, n+1)
		return int64(k)
	}
	if old < 1<<32 {
		return old + before(old)
	}
	init := old>>32 - 1 // it starts a persistent one
	return old + before(init)<<32
}

// Parts are the rows of parts of the new collectives, in the order of the table, once all events are written.
func (w *Rewriter) Parts() []schema.Part {
	slices.SortFunc(w.parts, func(a, b schema.Part) int {
		for _, d := range [...]int64{int64(a.Epoch) - int64(b.Epoch), int64(a.Rank) - int64(b.Rank), a.Seq - b.Seq, int64(a.PeerWorld) - int64(b.PeerWorld)} {
			if d != 0 {
				return int(max(min(d, 1), -1))
			}
		}
		return 0
	})
	return w.parts
}

// Messages appends those that stay to out, with the rows that their ends have become.
func (p *Plan) Messages(b, out *schema.Messages) {
	var m schema.Message
	for i := range b.Src {
		b.Row(i, &m)
		if p.gone[place{m.Src, m.SendSeq}] {
			continue
		}
		m.SendSeq = p.Row(m.Src, m.SendSeq)
		m.RecvPostSeq = p.Row(m.Dst, m.RecvPostSeq)
		if m.RecvDoneSeq != schema.NullInt64 {
			m.RecvDoneSeq = p.Row(m.Dst, m.RecvDoneSeq)
		}
		out.Append(&m)
	}
}

// Count changes the totals of a run to those of the new one.
func (p *Plan) Count(c *schema.Counts, byName map[string]int64) {
	for i := range p.run.ranks {
		c.Calls += int64(len(p.inserted[i]) - len(p.gaps[i]))
	}
	for _, j := range p.joints {
		c.Collectives++
		if byName != nil {
			byName[p.run.findings[j.finding].Operation.String()]++
		}
		for _, k := range j.messages {
			m := &p.run.messages[k]
			c.Messages--
			c.MessageBytes -= m.bytes
			if m.wildcard {
				c.WildcardReceives--
			}
			if m.verified {
				c.HashesVerified--
			}
			if m.differs {
				c.HashMismatches--
			}
		}
	}
}
