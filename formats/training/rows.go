package training

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
)

// entry is a row of a rank before its groups and the clocks are known.
type entry struct {
	kind       entryKind
	thread     int32
	index      int32 // of its operation or step
	start, end int64
	compute    int64
}

type entryKind uint8

const (
	entryStep  entryKind = iota // a step of the training begins
	entryBegin                  // an operation begins
	entryEnd                    // what it takes after all computing is done
)

// layOut makes the entries of a rank in the order of their starts.
func (r *Rank) layOut() {
	r.rows = make([]entry, 0, 2*len(r.Ops)+len(r.Steps))
	for i := range r.Ops {
		op := &r.Ops[i]
		begin := entry{kind: entryBegin, index: int32(i), start: op.StartNs, end: op.StartNs}
		if !r.Device {
			begin.start, begin.end = op.IssuedNs, op.ReturnedNs
		}
		since := r.Busy.idleSince(begin.end, op.EndNs)
		r.rows = append(r.rows, begin, entry{kind: entryEnd, index: int32(i), start: since, end: op.EndNs})
	}
	r.addSteps()
	slices.SortStableFunc(r.rows, func(a, b entry) int { return cmp.Compare(a.start, b.start) })
	r.firstNs = 1<<63 - 1
	if len(r.Busy.spans) > 0 {
		r.firstNs = r.Busy.spans[0].start
	}
	if len(r.rows) > 0 {
		r.firstNs = min(r.firstNs, r.rows[0].start)
	}
	r.thread()
}

// addSteps adds the steps. A device works behind the program: there a step begins after what was issued before it.
func (r *Rank) addSteps() {
	i, latest := 0, int64(-1<<62)
	for n, s := range r.Steps {
		for ; i < len(r.Ops) && r.Ops[i].IssuedNs < s.StartNs; i++ {
			latest = max(latest, r.Ops[i].StartNs)
		}
		at := s.StartNs
		if r.Device {
			at = max(at, latest)
		}
		r.rows = append(r.rows, entry{kind: entryStep, index: int32(n), start: at, end: at})
	}
}

// thread gives the entries threads, one for each stream, and the time computed since the thread's entry before.
func (r *Rank) thread() {
	threads := map[int64]int32{}
	var last []int64
	for i := range r.rows {
		e := &r.rows[i]
		if e.kind != entryStep {
			stream := r.Ops[e.index].Stream
			t, ok := threads[stream]
			if !ok {
				t = int32(len(threads))
				threads[stream] = t
			}
			e.thread = t
		}
		for int(e.thread) >= len(last) {
			last = append(last, r.firstNs)
		}
		before := last[e.thread]
		e.start = max(e.start, before)
		e.end = max(e.end, e.start)
		e.compute = r.Busy.between(before, e.start)
		last[e.thread] = e.end
		if e.kind == entryEnd {
			r.Ops[e.index].doneSeq = int64(i)
		}
	}
	r.threads = max(1, int32(len(threads)))
}

// row makes the row of an entry. Times are on the run's clock.
func (j *job) row(r *rank, seq int64) schema.Event {
	e := &r.rows[seq]
	row := schema.NullEvent
	row.Rank, row.Seq, row.Thread, row.ComputeNs = r.Rank.Rank, seq, e.thread, e.compute
	row.StartNs, row.EndNs = e.start+r.shiftNs, e.end+r.shiftNs
	if j.o.TimeOrigin == untimed {
		row.StartNs, row.EndNs = null64, null64
	}
	if j.o.NoCompute {
		row.ComputeNs = null64
	}
	call := schema.CallCommqMark
	switch e.kind {
	case entryStep:
		row.Label = r.Steps[e.index].Name
	case entryEnd:
		call = schema.CallWait
		row.Request = int64(e.index) + 1
	case entryBegin:
		op := &r.Ops[e.index]
		call = op.Call
		row.Request, row.DoneSeq = int64(e.index)+1, op.doneSeq
		if op.Label != "" {
			row.Label = op.Label
		}
		j.operation(&row, r, op, r.comms[e.index])
	}
	row.Call, row.Class = int16(call), int16(schema.Calls[call].Class)
	return row
}

// operation fills in what an operation moves, and where.
func (j *job) operation(row *schema.Event, r *rank, op *Op, c *comm) {
	root := int32(Unknown)
	size := int64(Unknown)
	if c != nil {
		row.Comm, row.Instance = c.id, op.instance
		size = int64(len(c.ranks))
		if op.Root >= 0 && int(op.Root) < len(c.ranks) {
			root = c.ranks[op.Root]
			row.RootWorld = root
		}
	}
	sends, receives := true, true
	switch op.Call {
	case schema.CallIsend, schema.CallIrecv:
		sends, receives = op.Call == schema.CallIsend, op.Call == schema.CallIrecv
		peers(row, op, c)
	case schema.CallIbcast:
		sends, receives = root == r.Rank.Rank, root != Unknown && root != r.Rank.Rank
	case schema.CallIreduce, schema.CallIgather:
		receives = root == r.Rank.Rank
	case schema.CallIscatter:
		sends = root == r.Rank.Rank
	case schema.CallIbarrier:
		return
	}
	if root != Unknown { // the side on which a rank has nothing is empty, as in captures
		if !sends {
			row.SendBytes = 0
		}
		if !receives {
			row.RecvBytes = 0
		}
	}
	in, out := op.sizes(size)
	if op.InBytes {
		if sends && in >= 0 {
			row.SendBytes = in
		}
		if receives && out >= 0 {
			row.RecvBytes = out
		}
		return
	}
	kind, bytes := j.datatype(op.Type)
	if sends && in >= 0 && bytes > 0 {
		row.SendCount, row.SendDatatype, row.SendBytes = in, kind, in*bytes
	}
	if receives && out >= 0 && bytes > 0 {
		row.RecvCount, row.RecvDatatype, row.RecvBytes = out, kind, out*bytes
	}
}

// peers fills in the other side of a message. Operations of training have no tags.
func peers(row *schema.Event, op *Op, c *comm) {
	row.ProcNull = 0
	if op.Call == schema.CallIsend {
		row.SendPeer, row.SendWorld, row.SendTag = c.local[op.Peer], op.Peer, 0
	} else {
		row.RecvPeer, row.RecvWorld, row.RecvTag, row.PostedAny = c.local[op.Peer], op.Peer, 0, 0
	}
}

// mostElements is more than the elements of any operation: a number that is greater is not believed.
const mostElements = 1 << 48

// sizes returns the elements that a rank gives and gets, where one follows from the other in a group of that size.
func (op *Op) sizes(group int64) (in, out int64) {
	in, out = op.InElements, op.OutElements
	if in > mostElements || out > mostElements {
		return Unknown, Unknown
	}
	switch op.Call {
	case schema.CallIallreduce, schema.CallIbcast, schema.CallIreduce, schema.CallIsend, schema.CallIrecv:
		if in < 0 {
			in = out
		}
		if out < 0 {
			out = in
		}
	case schema.CallIallgather, schema.CallIgather:
		if out < 0 && group > 0 && in >= 0 {
			out = in * group
		}
	case schema.CallIreduceScatterBlock, schema.CallIscatter:
		if out < 0 && group > 0 && in >= 0 {
			out = in / group
		}
	}
	return in, out
}

// parts adds the shares of each rank in an uneven exchange.
func (j *job) parts(b *schema.Parts, row *schema.Event, op *Op, c *comm) {
	if op.Call != schema.CallIalltoallv || c == nil {
		return
	}
	send, recv := shares(op.InSplit, row.SendBytes, len(c.ranks)), shares(op.OutSplit, row.RecvBytes, len(c.ranks))
	if send == nil && recv == nil {
		return
	}
	first := b.Len()
	for i, world := range c.ranks {
		p := schema.NullPart
		p.Rank, p.Seq, p.Epoch, p.PeerWorld = row.Rank, row.Seq, row.Epoch, world
		if send != nil {
			p.SendBytes = send[i]
		}
		if recv != nil {
			p.RecvBytes = recv[i]
		}
		if p.SendBytes != 0 || p.RecvBytes != 0 {
			b.Append(&p)
		}
	}
	sortParts(b, first)
}

// shares splits bytes as split does; nil if it does not say how.
func shares(split []int64, bytes int64, n int) []int64 {
	sum := int64(0)
	for _, x := range split {
		if x < 0 || x > mostElements {
			return nil
		}
		sum += x
	}
	if len(split) != n || sum <= 0 || bytes == null64 || bytes%sum != 0 {
		return nil
	}
	out := make([]int64, n)
	for i, x := range split {
		out[i] = x * (bytes / sum)
	}
	return out
}

// sortParts sorts the rows of a call, which are from first on, by their peer.
func sortParts(b *schema.Parts, first int) {
	rows := make([]schema.Part, b.Len()-first)
	for i := range rows {
		b.Row(first+i, &rows[i])
	}
	slices.SortFunc(rows, func(x, y schema.Part) int { return cmp.Compare(x.PeerWorld, y.PeerWorld) })
	b.Resize(first)
	for i := range rows {
		b.Append(&rows[i])
	}
}

// Later moves all times of a closed rank by ns.
func (r *Rank) Later(ns int64) {
	r.firstNs += ns
	for i := range r.rows {
		r.rows[i].start += ns
		r.rows[i].end += ns
	}
	for i := range r.Ops {
		r.Ops[i].StartNs += ns
		r.Ops[i].EndNs += ns
	}
}
