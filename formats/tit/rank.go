package tit

import (
	"fmt"
	"io"
	"math"

	"github.com/commq/commq/schema"
)

// key identifies the message that a wait waits for.
type key struct{ src, dst, tag int32 }

// pending is a request that is not completed yet.
type pending struct {
	seq, request int64
	epoch        int32
	row          int // index in its epoch
}

// rank turns the actions of a rank into rows.
type rank struct {
	job   *job
	me    int32
	facts *facts
	lines *lines
	first bool // the first pass, which only learns

	seq, request, instance int64
	compute                int64
	byDefault              int // datatype of sizes without one
	callsite               int32
	open                   map[key][]pending
	opened                 []key // in the order in which their first was opened; some may be closed
	ended                  bool
}

// facts has what the first pass found out about a rank for the second.
type facts struct {
	rows int64
	// done maps a row to the row in a later epoch that completes it; bytes has the size of the message for receives
	// that state another.
	done, bytes map[int64]int64
}

// decode appends the rank's rows of an epoch.
func (r *rank) decode(e int32, b *schema.Events, parts *schema.Parts) error {
	for r.seq < int64(e+1)*r.job.window && !r.ended {
		words, err := r.lines.read()
		if err == io.EOF {
			r.end(e, b)
			return nil
		}
		if err == nil {
			err = r.action(words, e, b, parts)
		}
		if err != nil {
			return r.lines.bad(err)
		}
	}
	return nil
}

// newRow returns the next row of the rank; add appends it.
func (r *rank) newRow(e int32, call schema.CallID) schema.Event {
	row := schema.NullEvent
	row.Rank, row.Seq, row.Epoch, row.ComputeNs = r.me, r.seq, e, r.compute
	row.Call, row.Class, row.Callsite = int16(call), int16(schema.Calls[call].Class), r.callsite
	r.compute = 0
	return row
}

func (r *rank) add(b *schema.Events, row *schema.Event) {
	b.Append(row)
	r.seq++
}

// end adds MPI_Finalize, and before it a wait for what is still open: smpirun waits for it too.
func (r *rank) end(e int32, b *schema.Events) {
	r.ended = true
	if len(r.open) > 0 {
		r.job.tally.open++
		r.waitall(e, b)
	}
	row := r.newRow(e, schema.CallFinalize)
	r.add(b, &row)
	r.facts.rows = r.seq
}

// action adds the rows of an action.
func (r *rank) action(words []string, e int32, b *schema.Events, parts *schema.Parts) error {
	if len(words) < 2 {
		return fmt.Errorf("rank %d has no action in this line; want one such as 0 send 1 0 4096", r.me)
	}
	f := &fields{all: words[2:]}
	name := words[1]
	if call, ok := collectives[name]; ok {
		r.collective(f, call, e, b, parts)
	} else if err := r.localAction(f, name, e, b); err != nil {
		return err
	}
	if f.err != nil {
		return fmt.Errorf("%s of rank %d: %w", name, r.me, f.err)
	}
	return nil
}

// localAction adds the rows of an action that is not collective.
func (r *rank) localAction(f *fields, name string, e int32, b *schema.Events) error {
	switch name {
	case "init":
		r.byDefault = byteType
		if f.has(0) {
			r.byDefault = doubleType
		}
	case "compute":
		r.computes(f, f.number(0, "the number of operations", 0, math.MaxInt64/4)/r.job.o.flopsPerSecond()*1e9)
	case "sleep":
		r.job.tally.sleeps++
		r.sleeps(f)
	case "send", "isend":
		r.send(f, name == "isend", e, b)
	case "recv", "irecv":
		r.recv(f, name == "irecv", e, b)
	case "sendRecv":
		r.sendrecv(f, e, b)
	case "wait":
		r.wait(f, e, b)
	case "waitall":
		r.waitall(e, b)
	case "test":
		r.job.tally.tests++
	case "location":
		r.location(f)
	case "finalize":
	case "comm_size", "comm_split", "comm_dup":
		r.job.tally.comms++
	default:
		return fmt.Errorf("there is no action %.40q; smpirun -replay would stop here too", name)
	}
	return nil
}

// mostComputeNs is half of what an int64 holds: the compute time of a rank.
const mostComputeNs = 1 << 62

// computes adds compute time; of a line without an error only.
func (r *rank) computes(f *fields, ns float64) {
	if ns = math.Round(ns); f.err != nil {
		return
	}
	if !(ns >= 0 && ns < float64(mostComputeNs-r.compute)) {
		f.fail("the rank computes for %.3g ns more, which are too many: is the speed right?", ns)
		return
	}
	r.compute += int64(ns)
}

// sleeps counts sleeping as computing: in both the rank does not communicate.
func (r *rank) sleeps(f *fields) {
	if !f.has(0) {
		f.fail("field 1 is missing: the time in seconds")
		return
	}
	var s float64
	if _, err := fmt.Sscan(f.all[0], &s); err != nil || !(s >= 0 && s < 1e9) {
		f.fail("the time is %q; want seconds", f.all[0])
		return
	}
	r.computes(f, s*1e9)
}

// location notes the place in the source of the actions that follow.
func (r *rank) location(f *fields) {
	line := f.number(1, "the line", -1, math.MaxInt32)
	if f.err == nil {
		r.callsite = r.job.site(f.all[0], int32(line))
	}
}

// message reads the partner, tag and size of a message.
func (r *rank) message(f *fields) (peer, tag int32, count int64, kind int) {
	return f.rank(0, "the other rank", len(r.job.facts)), f.tag(1), f.count(2, "the number of elements"),
		f.datatype(3, r.byDefault)
}

func (r *rank) send(f *fields, immediate bool, e int32, b *schema.Events) {
	peer, tag, count, kind := r.message(f)
	if f.err != nil {
		return
	}
	row := r.newRow(e, schema.CallSend)
	if immediate {
		row = r.immediate(&row, schema.CallIsend, key{r.me, peer, tag}, e, b)
	}
	r.sends(&row, peer, tag, count, kind)
	r.add(b, &row)
}

func (r *rank) sends(row *schema.Event, peer, tag int32, count int64, kind int) {
	row.Comm, row.SendPeer, row.SendWorld, row.SendTag, row.ProcNull = 0, peer, peer, tag, 0
	row.SendCount, row.SendDatatype, row.SendBytes = count, r.job.datatype(kind), count*datatypes[kind].bytes
}

func (r *rank) recvs(row *schema.Event, peer, tag int32, count int64, kind int) {
	row.Comm, row.RecvPeer, row.RecvWorld, row.RecvTag, row.ProcNull, row.PostedAny = 0, peer, peer, tag, 0, 0
	row.RecvCount, row.RecvDatatype, row.RecvBytes = count, r.job.datatype(kind), count*datatypes[kind].bytes
	if bytes, ok := r.facts.bytes[row.Seq]; ok {
		row.RecvBytes = bytes
	}
}

// immediate makes a row begin a request.
func (r *rank) immediate(row *schema.Event, call schema.CallID, k key, e int32, b *schema.Events) schema.Event {
	r.request++
	row.Call, row.Request = int16(call), r.request
	if done, ok := r.facts.done[r.seq]; ok {
		row.DoneSeq = done
	}
	if r.open == nil {
		r.open = map[key][]pending{}
	}
	if len(r.open[k]) == 0 {
		r.opened = append(r.opened, k)
	}
	r.open[k] = append(r.open[k], pending{r.seq, r.request, e, b.Len()})
	return *row
}

func (r *rank) recv(f *fields, immediate bool, e int32, b *schema.Events) {
	if f.has(2) && f.all[2] == "-1" { // unknown, found by probing: that of the message
		f.all[2] = "0"
	}
	peer, tag, count, kind := r.message(f)
	if f.err != nil {
		return
	}
	row := r.newRow(e, schema.CallRecv)
	if immediate {
		row = r.immediate(&row, schema.CallIrecv, key{peer, r.me, tag}, e, b)
	}
	r.recvs(&row, peer, tag, count, kind)
	r.add(b, &row)
}

// sendrecv reads COUNT DESTINATION COUNT SOURCE DATATYPE DATATYPE. The tags are not told; SimGrid uses 0.
func (r *rank) sendrecv(f *fields, e int32, b *schema.Events) {
	ranks := len(r.job.facts)
	out, dst := f.count(0, "the number of elements sent"), f.rank(1, "the destination", ranks)
	in, src := f.count(2, "the number of elements received"), f.rank(3, "the source", ranks)
	outKind, inKind := f.datatype(4, r.byDefault), f.datatype(5, r.byDefault)
	if f.err != nil {
		return
	}
	row := r.newRow(e, schema.CallSendrecv)
	r.sends(&row, dst, 0, out, outKind)
	r.recvs(&row, src, 0, in, inKind)
	r.add(b, &row)
}

// wait completes the first request that is open on a channel. Without one SimGrid does nothing: a test found it done.
func (r *rank) wait(f *fields, e int32, b *schema.Events) {
	ranks := len(r.job.facts)
	k := key{f.rank(0, "the source", ranks), f.rank(1, "the destination", ranks), f.tag(2)}
	if f.err != nil {
		return
	}
	q := r.open[k]
	if len(q) == 0 {
		r.job.tally.lone++
		return
	}
	row := r.newRow(e, schema.CallWait)
	row.Request = q[0].request
	r.complete(q[0], e, b)
	if len(q) == 1 {
		delete(r.open, k)
	} else {
		r.open[k] = q[1:]
	}
	r.forget()
	r.add(b, &row)
}

// forget shortens the list of opened channels when most of them are closed.
func (r *rank) forget() {
	if len(r.opened) < 2*len(r.open)+16 {
		return
	}
	kept := r.opened[:0]
	seen := map[key]bool{}
	for _, k := range r.opened {
		if len(r.open[k]) > 0 && !seen[k] {
			seen[k] = true
			kept = append(kept, k)
		}
	}
	r.opened = kept
}

// waitall completes all that is open, as SimGrid does whatever number the action has.
func (r *rank) waitall(e int32, b *schema.Events) {
	row := r.newRow(e, schema.CallWaitall)
	for _, k := range r.opened {
		for _, p := range r.open[k] {
			r.complete(p, e, b)
		}
		delete(r.open, k)
	}
	r.opened = r.opened[:0]
	r.add(b, &row)
}

// complete notes that the next row completes a request.
func (r *rank) complete(p pending, e int32, b *schema.Events) {
	if p.epoch == e {
		b.DoneSeq[p.row] = r.seq
	} else if r.first {
		if r.facts.done == nil {
			r.facts.done = map[int64]int64{}
		}
		r.facts.done[p.seq] = r.seq
	}
}
