package replace

import (
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// Plan lists the messages to remove and the places of the collectives that replace them.
type Plan struct {
	run      *Run
	removed  []map[int64]bool  // rows, per rank
	halved   []map[int64]int32 // rows that lose one side, per rank: the side that becomes MPI_PROC_NULL
	gone     map[place]bool    // removed messages, by the row that sends them
	joints   []*joint
	inserted [][]insert // per rank, in order
	gaps     [][]int64  // removed rows per rank, ascending
	comms    newComms
	shifts   map[int32][]int64 // per communicator: the instances before which new ones are inserted, ascending
	// computing before removed rows after which their thread has no row, per rank, by the new row that gets it
	trailing  []map[int64]int64
	collected []int // number of new collectives, per finding

	// Left are the instances that are not replaced.
	Left []Left
}

// Left is an instance that could not be replaced.
type Left struct {
	// Finding and Instance are its indices.
	Finding, Instance int
	// Why is the reason.
	Why string
}

// joint is an instance to replace: one new collective.
type joint struct {
	finding, instance int
	messages          []int32
	parts             []part // per rank of the finding
	comm              int32
	number            int64 // its instance on comm, among the old ones
	own               int64 // its instance on comm, in the new run
	parked            int
	fired             bool
	reached           bool
}

// part is a rank's part of an instance.
type part struct {
	rank   int32
	thread int16
	// rows: the first of the instance, the one that the collective replaces, and the last
	first, canon, last int64
	site               int32
	sends              bool // it contributes operands
	// the collective comes after the row before canon: the computing before canon is done after the collective
	behind          bool
	parked, slipped bool
	before          int64 // the row before which the collective is inserted
	sent, got       []int32
}

// insert is a collective at its place in a rank's rows.
type insert struct {
	before int64
	joint  *joint
	part   int
}

// Plan plans the replacement of the findings with these indices among those that Read got.
func (r *Run) Plan(findings []int) *Plan {
	left := map[[2]int]string{}
	for {
		p := &Plan{run: r, inserted: make([][]insert, len(r.ranks)), gone: map[place]bool{}, comms: newComms{run: r, made: map[string]int32{}},
			shifts: map[int32][]int64{}, collected: make([]int, len(r.findings))}
		p.choose(findings, left)
		p.remove()
		stuck := p.place()
		if stuck == nil {
			p.finish()
			for _, f := range findings {
				for i := range r.findings[f].Instances {
					if why, ok := left[[2]int{f, i}]; ok {
						p.Left = append(p.Left, Left{f, i, why})
					}
				}
			}
			return p
		}
		left[[2]int{stuck.finding, stuck.instance}] = "the ranks cannot all come to it: what some of them wait for before it is sent after it"
	}
}

// Collectives returns the number of collectives that replace a finding's messages.
func (p *Plan) Collectives(finding int) int { return p.collected[finding] }

// Total returns the number of collectives that replace messages of all findings.
func (p *Plan) Total() (n int) {
	for _, of := range p.collected {
		n += of
	}
	return n
}

// Comms returns the rows of the new communicators.
func (p *Plan) Comms() []schema.Comm { return p.comms.rows }

// choose makes a joint of each instance that is not in left.
func (p *Plan) choose(findings []int, left map[[2]int]string) {
	r := p.run
	for _, f := range findings {
		for i := range r.findings[f].Instances {
			if _, out := left[[2]int{f, i}]; out {
				continue
			}
			j := &joint{finding: f, instance: i}
			for k := r.first[f][i]; k < r.first[f][i+1]; k++ {
				if r.messages[k].partitioned {
					left[[2]int{f, i}] = "it has messages in partitions"
				}
				j.messages = append(j.messages, int32(k))
			}
			if _, out := left[[2]int{f, i}]; out {
				continue
			}
			j.take(r)
			p.joints = append(p.joints, j)
		}
	}
	for _, j := range p.joints {
		j.comm = p.comms.commOf(j)
	}
}

// payload identifies the content of a message: two messages of an instance with the same payload carry the same data.
type payload struct{ hash, bytes int64 }

// take finds the rows of each rank that belong to the instance, and where the collective goes.
func (j *joint) take(r *Run) {
	f := &r.findings[j.finding]
	for _, rank := range f.Ranks {
		j.parts = append(j.parts, part{rank: rank, first: math.MaxInt64, last: -1, canon: -1, site: schema.NullInt32})
	}
	for _, k := range j.messages {
		m := &r.messages[k]
		s, _ := slices.BinarySearch(f.Ranks, m.Src)
		d, _ := slices.BinarySearch(f.Ranks, m.Dst)
		j.parts[s].sent = append(j.parts[s].sent, k)
		j.parts[d].got = append(j.parts[d].got, k)
	}
	for k := range j.parts {
		j.parts[k].place(r, f.Operation)
	}
}

// place finds the rows of a rank. The collective goes where the rank first sends the last of its operands, because
// then all of them are ready. For a rank without operands it goes where its first receive completes.
func (t *part) place(r *Run, op schema.CallID) {
	slices.SortFunc(t.sent, func(a, b int32) int { return compare(r.messages[a].SendSeq, r.messages[b].SendSeq) })
	got := map[payload]int64{} // the first row that has it
	firstDone := int64(math.MaxInt64)
	var doneSite int32
	for _, k := range t.got {
		m := &r.messages[k]
		done := m.DoneSeq
		if done == schema.NullInt64 {
			done = m.recvRow
		}
		t.first, t.last = min(t.first, m.PostSeq), max(t.last, done)
		if done < firstDone {
			firstDone, doneSite = done, m.recvSite
		}
		x := payload{m.hash, m.bytes}
		if at, ok := got[x]; !ok || done < at {
			got[x] = done
		}
	}
	sent := map[payload]bool{}
	for _, k := range t.sent {
		m := &r.messages[k]
		t.first, t.last = min(t.first, m.SendSeq), max(t.last, m.SendSeq)
		x := payload{m.hash, m.bytes}
		at, passed := got[x]
		switch {
		case op == schema.CallBarrier && t.sends: // a rank has arrived at its first send
		case sent[x] || passed && at < m.SendSeq && op != schema.CallBarrier:
		default:
			t.sends, t.canon, t.site = true, m.SendSeq, m.sendSite
		}
		sent[x] = true
	}
	if !t.sends {
		t.canon, t.site = firstDone, doneSite
		t.behindSendrecv(r)
	}
	if t.canon == math.MaxInt64 || t.canon < 0 { // no messages: it joins wherever it can
		t.canon = none
		return
	}
	t.thread = r.ranks[t.rank].thread[t.canon]
}

// behindSendrecv moves the collective behind an MPI_Sendrecv that only loses its receive. Its send does not belong to
// the instance and must not wait, so the collective goes before the thread's next row.
func (t *part) behindSendrecv(r *Run) {
	sends := func(k int32) bool { return r.messages[k].SendSeq == t.canon }
	halved := slices.ContainsFunc(t.got, func(k int32) bool {
		m := &r.messages[k]
		return m.recvRow == t.canon && m.kind[1] == schema.ClassSendrecv && !m.otherNull[1]
	})
	if !halved || slices.ContainsFunc(t.sent, sends) {
		return
	}
	thread := r.ranks[t.rank].thread
	for seq := t.canon + 1; seq < int64(len(thread)); seq++ {
		if thread[seq] == thread[t.canon] {
			t.canon, t.behind = seq, true
			t.last = max(t.last, seq)
			return
		}
	}
}

// remove finds the rows to remove: those of the messages, and calls that completed nothing else.
func (p *Plan) remove() {
	r := p.run
	p.removed, p.halved = make([]map[int64]bool, len(r.ranks)), make([]map[int64]int32, len(r.ranks))
	for i := range r.ranks {
		p.removed[i], p.halved[i] = map[int64]bool{}, map[int64]int32{}
	}
	for _, j := range p.joints {
		for _, k := range j.messages {
			m := &r.messages[k]
			p.gone[place{m.Src, m.SendSeq}] = true
			p.side(m.Src, m.SendSeq, m.kind[0], m.otherNull[0], schema.ProcNullSend)
			p.side(m.Dst, m.recvRow, m.kind[1], m.otherNull[1], schema.ProcNullRecv)
			if m.recvRow != m.PostSeq {
				p.removed[m.Dst][m.PostSeq] = true
			}
		}
	}
	for i := range r.ranks {
		q := &r.ranks[i]
		for k := range q.probes {
			if n := q.probes[k].found; n.src != none && p.gone[place{n.src, n.sendSeq}] {
				p.removed[i][q.probes[k].seq] = true
			}
		}
		ended := map[int64]int32{}
		for seq := range p.removed[i] {
			if done := q.done[seq]; done != schema.NullInt64 {
				ended[done]++
			}
		}
		for done, n := range ended {
			if n == q.ends[done] && q.flags[done]&rowComplete != 0 {
				p.removed[i][done] = true
			}
		}
		gaps := make([]int64, 0, len(p.removed[i]))
		for seq := range p.removed[i] {
			gaps = append(gaps, seq)
		}
		slices.Sort(gaps)
		p.gaps = append(p.gaps, gaps)
	}
}

// side removes one side of a row, and the whole row if no other side is left.
func (p *Plan) side(rank int32, seq int64, class schema.Class, otherNull bool, side int32) {
	if class != schema.ClassSendrecv || otherNull || p.halved[rank][seq] != 0 && p.halved[rank][seq] != side {
		delete(p.halved[rank], seq)
		p.removed[rank][seq] = true
		return
	}
	p.halved[rank][seq] = side
}
