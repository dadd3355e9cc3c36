package replace

import (
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// finish sorts the inserted collectives and assigns the computing that is left over.
func (p *Plan) finish() {
	for i := range p.inserted {
		slices.SortStableFunc(p.inserted[i], func(a, b insert) int { return compare(a.before, b.before) })
	}
	p.trailing = make([]map[int64]int64, len(p.inserted))
	for i := range p.trailing {
		p.trailing[i] = p.leftOver(int32(i))
	}
}

// leftOver finds computing before removed rows after which their thread has no row. The thread's last remaining row
// gets it.
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

// Row returns the new number of a row that stays.
func (p *Plan) Row(rank int32, seq int64) int64 {
	gone, _ := slices.BinarySearch(p.gaps[rank], seq)
	return seq - int64(gone) + int64(p.insertsBefore(rank, seq+1))
}

// insertsBefore returns the number of collectives inserted before rows less than seq.
func (p *Plan) insertsBefore(rank int32, seq int64) int {
	n, _ := slices.BinarySearchFunc(p.inserted[rank], seq,
		func(in insert, seq int64) int { return compare(in.before, seq) })
	return n
}

// Rows returns the number of rows that a rank has in the new run.
func (p *Plan) Rows(rank int32) int64 {
	return int64(len(p.run.ranks[rank].flags) - len(p.gaps[rank]) + len(p.inserted[rank]))
}

// Rewriter turns the rows of the old run into those of the new one.
type Rewriter struct {
	plan  *Plan
	carry map[threadKey]*carried
	parts []schema.Part
}

type threadKey struct {
	rank   int32
	thread int32
}

// carried is the work of a thread before removed rows; it is added to the thread's next row.
type carried struct{ compute, instructions, cycles int64 }

// Rewriter returns a Rewriter that starts at the first row.
func (p *Plan) Rewriter() *Rewriter { return &Rewriter{plan: p, carry: map[threadKey]*carried{}} }

// Events appends to out the rows of the new run that the rows of b become. Each rank's rows must come in order. Times
// stay as they were, and are null in new rows.
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
	// the collective comes after the burst before the row that it replaces
	if gone || w.here(rank, from, to, e.Thread) {
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

// here reports whether one of these collectives belongs to the thread.
func (w *Rewriter) here(rank int32, from, to int, thread int32) bool {
	for _, in := range w.plan.inserted[rank][from:to] {
		if t := &in.joint.parts[in.part]; int32(t.thread) == thread && !(t.behind && t.before == t.canon) {
			return true
		}
	}
	return false
}

// nothing returns what remains of a burst that moves to another row: 0, or null if it was unknown.
func nothing(n int64) int64 {
	if n == schema.NullInt64 {
		return n
	}
	return 0
}

// keep adapts a row that stays.
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

// burst adds the computing before removed rows to a row.
func (w *Rewriter) burst(e *schema.Event, c *carried) {
	add(&e.ComputeNs, c.compute)
	add(&e.Instructions, c.instructions)
	add(&e.Cycles, c.cycles)
	*c = carried{schema.NullInt64, schema.NullInt64, schema.NullInt64}
	if extra := w.plan.trailing[e.Rank][e.Seq]; extra > 0 {
		add(&e.ComputeNs, extra)
	}
}

// add adds n to a sum; either may be unknown.
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
		parts := w.plan.run.fill(in, &e)
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

// instance returns the new number of a communicator's collective operation, counting the inserted ones.
func (p *Plan) instance(comm int32, old int64) int64 {
	shifts := p.shifts[comm]
	before := func(n int64) int64 {
		k, _ := slices.BinarySearch(shifts, n+1)
		return int64(k)
	}
	if old < 1<<32 {
		return old + before(old)
	}
	init := old>>32 - 1 // it starts a persistent operation
	return old + before(init)<<32
}

// Parts returns the rows of parts of the new collectives, in the order of the table, once all events are written.
func (w *Rewriter) Parts() []schema.Part {
	slices.SortFunc(w.parts, func(a, b schema.Part) int {
		for _, d := range [...]int64{int64(a.Epoch) - int64(b.Epoch), int64(a.Rank) - int64(b.Rank), a.Seq - b.Seq,
			int64(a.PeerWorld) - int64(b.PeerWorld)} {
			if d != 0 {
				return int(max(min(d, 1), -1))
			}
		}
		return 0
	})
	return w.parts
}

// Messages appends the messages that stay to out, with the new rows of their ends.
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
