package detect_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/detect/replace"
	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/check"
)

// wholeRun is a test's run: its messages and their rows of events.
type wholeRun struct {
	*detect.Run
	events   *schema.Events
	messages *schema.Messages
}

// whole makes the rows of events of a program: a blocking call for each end of a message, after a burst of
// computation.
func whole(r *detect.Run) *wholeRun {
	w := &wholeRun{Run: r, events: schema.NewBatch(&schema.EventsTable).(*schema.Events),
		messages: schema.NewBatch(&schema.MessagesTable).(*schema.Messages)}
	var rows []schema.Event
	var messages []schema.Message
	_ = r.Messages(detect.Columns, func(b *schema.Messages, _ schema.Rest) error {
		var m schema.Message
		for i := range b.Src {
			m = schema.NullMessage
			m.Src, m.Dst, m.Comm, m.Tag, m.Bytes, m.PayloadHash = b.Src[i], b.Dst[i], b.Comm[i], b.Tag[i], b.Bytes[i],
				b.PayloadHash[i]
			m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq, m.SendDatatype = b.SendSeq[i], b.RecvPostSeq[i],
				b.RecvDoneSeq[i], b.SendDatatype[i]
			m.SendCallsite, m.RecvCallsite, m.SrcBuffer = b.SendCallsite[i], b.RecvCallsite[i], b.SrcBuffer[i]
			messages = append(messages, m)
			e := schema.NullEvent
			e.Rank, e.Seq, e.Call, e.Class, e.Comm, e.ComputeNs, e.ProcNull = m.Src, m.SendSeq,
				int16(schema.CallSend), int16(schema.ClassSend), m.Comm, 1000+m.SendSeq, 0
			e.SendPeer, e.SendWorld, e.SendTag, e.SendBytes, e.SendDatatype, e.Callsite = m.Dst, m.Dst, m.Tag,
				m.Bytes, m.SendDatatype, m.SendCallsite
			rows = append(rows, e)
			e = schema.NullEvent
			e.Rank, e.Seq, e.Call, e.Class, e.Comm, e.ComputeNs, e.ProcNull = m.Dst, m.RecvPostSeq,
				int16(schema.CallRecv), int16(schema.ClassRecv), m.Comm, 1000+m.RecvPostSeq, 0
			e.RecvPeer, e.RecvWorld, e.RecvTag, e.RecvBytes, e.RecvDatatype, e.PostedAny, e.Callsite = m.Src, m.Src,
				m.Tag, m.Bytes, m.SendDatatype, 0, m.RecvCallsite
			rows = append(rows, e)
		}
		return nil
	})
	for _, x := range r.Selves {
		e := schema.NullEvent
		e.Rank, e.Seq, e.Call, e.Class, e.ComputeNs = x.Rank, x.Seq, int16(schema.CallPcontrol),
			int16(schema.ClassMark), 500
		rows = append(rows, e)
	}
	slices.SortFunc(rows, func(a, b schema.Event) int {
		if a.Rank != b.Rank {
			return int(a.Rank - b.Rank)
		}
		return int(a.Seq - b.Seq)
	})
	slices.SortFunc(messages, func(a, b schema.Message) int {
		if a.Src != b.Src {
			return int(a.Src - b.Src)
		}
		return int(a.SendSeq - b.SendSeq)
	})
	for i := range messages {
		w.messages.Append(&messages[i])
	}
	for i := range rows {
		e := &rows[i]
		n := w.events.Len()
		if i > 0 && rows[i-1].Rank == e.Rank && rows[i-1].Seq == e.Seq { // one call sends and receives
			other := &rows[i-1]
			if other.SendWorld == schema.NullInt32 {
				other, e = e, other
			}
			e.Call, e.Class = int16(schema.CallSendrecv), int16(schema.ClassSendrecv)
			e.SendPeer, e.SendWorld, e.SendTag, e.SendBytes, e.SendDatatype, e.Callsite = other.SendPeer,
				other.SendWorld, other.SendTag, other.SendBytes, other.SendDatatype, other.Callsite
			w.events.Set(n-1, e)
			continue
		}
		due := int64(0)
		if n > 0 && w.events.Rank[n-1] == e.Rank {
			due = w.events.Seq[n-1] + 1
		}
		for ; due < e.Seq; due++ { // unrelated calls
			x := schema.NullEvent
			x.Rank, x.Seq, x.Call, x.Class, x.ComputeNs = e.Rank, due, int16(schema.CallPcontrol),
				int16(schema.ClassMark), 500
			w.events.Append(&x)
		}
		w.events.Append(e)
	}
	return w
}

// source returns the run as replace reads it.
func (w *wholeRun) source() *replace.Source {
	s := &replace.Source{Threads: make([]int32, w.Ranks), TypeBytes: map[int32]int64{},
		Events:   func(add func(*schema.Events) error) error { return add(w.events) },
		Messages: func(add func(*schema.Messages) error) error { return add(w.messages) }}
	for _, c := range w.Comms {
		s.Comms = append(s.Comms, run.Comm{ID: c.ID, Members: c.Members})
	}
	for _, t := range w.Datatypes {
		s.TypeBytes[t.ID] = max(t.Bytes, 1)
	}
	return s
}

// replaced is the run after the findings were replaced.
type replaced struct {
	events   schema.Events
	messages schema.Messages
	parts    []schema.Part
	comms    []schema.Comm
	plan     *replace.Plan
}

func (w *wholeRun) replace(t *testing.T, findings []detect.Finding) *replaced {
	t.Helper()
	var list []replace.Finding
	var which []int
	for i := range findings {
		f := &findings[i]
		op, err := replace.Operation(f.Operation.String())
		if err != nil {
			t.Fatal(err)
		}
		x := replace.Finding{Operation: op, ReduceOp: schema.NullEnum, Comm: f.Comm, Ranks: f.Ranks, Instances: f.List}
		list, which = append(list, x), append(which, i)
	}
	run, err := replace.Read(w.source(), list)
	if err != nil {
		t.Fatal(err)
	}
	r := &replaced{plan: run.Plan(which)}
	rw := r.plan.Rewriter()
	rw.Events(w.events, &r.events)
	r.plan.Messages(w.messages, &r.messages)
	r.parts, r.comms = rw.Parts(), r.plan.Comms()
	return r
}

// check checks the invariants of the run.
func (r *replaced) check(t *testing.T, w *wholeRun) {
	t.Helper()
	m := &schema.Manifest{Ranks: w.Ranks, TimeOrigin: "untimed", ComputeClock: "cpu", Record: "all", Hash: "crc64",
		Callsites: true, Ended: "finalized", Epochs: 1,
		Collectives: map[string]int64{}}
	m.Counts.Calls, m.Counts.Messages = int64(w.events.Len()), int64(w.messages.Len())
	for _, n := range w.messages.Bytes {
		m.Counts.MessageBytes += n
	}
	r.plan.Count(&m.Counts, m.Collectives)
	var problems []string
	c := check.NewChecker(m, func(p check.Problem) { problems = append(problems, p.String()) })
	ranks, comms, sites, types, parts := schema.NewBatch(&schema.RanksTable).(*schema.RankInfos),
		schema.NewBatch(&schema.CommsTable).(*schema.Comms),
		schema.NewBatch(&schema.CallsitesTable).(*schema.Callsites),
		schema.NewBatch(&schema.DatatypesTable).(*schema.Datatypes), schema.NewBatch(&schema.PartsTable).(*schema.Parts)
	for rank := range w.Ranks {
		info := schema.NullRankInfo
		info.Rank, info.Ended, info.Threads, info.Events = rank, schema.EndedFinalized, 1, r.plan.Rows(rank)
		ranks.Append(&info)
		row := schema.NullComm
		row.CommRank, row.WorldRank, row.Kind = rank, rank, int16(schema.CommWorld)
		comms.Append(&row)
	}
	for i := range r.comms {
		comms.Append(&r.comms[i])
	}
	for id := range int32(100) {
		site := schema.NullCallsite
		site.ID = id
		sites.Append(&site)
	}
	for _, x := range w.Datatypes {
		types.Append(&schema.Datatype{ID: x.ID, Name: "MPI_BYTE", Combiner: "named", Bytes: max(x.Bytes, 1),
			ExtentBytes: max(x.Bytes, 1)})
	}
	for i := range r.parts {
		parts.Append(&r.parts[i])
	}
	for _, b := range []schema.Batch{ranks, comms, sites, types, &r.events, &r.messages, parts} {
		c.Add(b.Table().Name, b)
	}
	c.Finish()
	if len(problems) > 0 {
		t.Errorf("the replaced run breaks rules:\n%s", strings.Join(problems, "\n"))
	}
}

// simulates simulates rows on an ideal machine and returns the computing time of each rank.
func simulates(t *testing.T, w *wholeRun, events *schema.Events, comms []schema.Comm) (compute []models.Picoseconds) {
	t.Helper()
	p := &simulate.Program{Threads: make([]int32, w.Ranks)}
	for _, c := range w.Comms {
		p.Comms = append(p.Comms, run.Comm{ID: c.ID, Members: c.Members})
	}
	for _, c := range comms {
		if n := len(p.Comms); p.Comms[n-1].ID != c.Comm {
			p.Comms = append(p.Comms, run.Comm{ID: c.Comm})
		}
		k := &p.Comms[len(p.Comms)-1]
		k.Members = append(k.Members, c.WorldRank)
	}
	m, err := models.Named("ideal")
	if err != nil {
		t.Fatal(err)
	}
	given := false
	res, err := simulate.Simulate(m, p, &simulate.Options{}, func(add func(*schema.Events) error) error {
		if given {
			return io.EOF
		}
		given = true
		return add(events)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range res.Ranks {
		compute = append(compute, r.Compute)
	}
	return compute
}

// tally counts, by operation, the instances of findings and those that were not replaced.
type tally map[detect.Operation][2]int

// checkReplaced replaces all findings and checks the result: it keeps all invariants, has exactly the messages
// outside the findings, the collectives and each rank's computation, and can be simulated.
func checkReplaced(t *testing.T, run *detect.Run, count tally) {
	t.Helper()
	w := whole(run)
	found, err := detect.Detect(w.Run, detect.Options{Messages: true})
	if err != nil {
		t.Fatal(err)
	}
	r := w.replace(t, found.Findings)
	r.check(t, w)
	before, after := simulates(t, w, w.events, nil), simulates(t, w, &r.events, r.comms)
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("computing before, after:\n%s", d)
	}
	out := map[[2]int]bool{}
	for _, x := range r.plan.Left {
		out[[2]int{x.Finding, x.Instance}] = true
	}
	messages := 0
	for f := range found.Findings {
		for i, in := range found.Findings[f].List {
			n := count[found.Findings[f].Operation]
			n[0]++
			if out[[2]int{f, i}] {
				n[1]++
			} else {
				messages += len(in.Messages)
			}
			count[found.Findings[f].Operation] = n
		}
	}
	if got, want := r.messages.Len(), w.messages.Len()-messages; got != want {
		t.Errorf("%d messages stay; want %d", got, want)
	}
	rows := 0
	for i := range r.events.Rank {
		if r.events.SendPeer[i] != schema.NullInt32 {
			rows++
		}
		if r.events.RecvPeer[i] != schema.NullInt32 {
			rows++
		}
	}
	if rows != 2*r.messages.Len() {
		t.Errorf("%d sides of rows send or receive %d messages", rows, r.messages.Len())
	}
}

// few checks that hardly any instance was left unreplaced, and that there are as many as a number for each program.
func (c tally) few(t *testing.T, perProgram int) {
	t.Helper()
	all, left := 0, 0
	for op, n := range c {
		t.Logf("%-24s %6d instances, %4d stay", op, n[0], n[1])
		all, left = all+n[0], left+n[1]
	}
	if want := perProgram * detect.RandomPrograms(t); all < want {
		t.Errorf("%d instances, want %d", all, want)
	}
	if left*100 > all {
		t.Errorf("%d of %d instances stay", left, all)
	}
}

// TestReplaceRandomPrograms replaces what random programs spread by hand, with unrelated messages between.
func TestReplaceRandomPrograms(t *testing.T) {
	count := tally{}
	for seed := range uint64(detect.RandomPrograms(t)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			run, kinds := detect.RandomSpreading(t, seed)
			checkReplaced(t, run, count)
			if t.Failed() {
				t.Log(kinds)
			}
		})
	}
	count.few(t, 3)
}

// TestReplaceRandomCombining replaces what random programs gather, scatter and reduce by hand.
func TestReplaceRandomCombining(t *testing.T) {
	count := tally{}
	for seed := range uint64(detect.RandomPrograms(t)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			run, names := detect.RandomCombining(seed)
			checkReplaced(t, run, count)
			if t.Failed() {
				t.Log(names)
			}
		})
	}
	count.few(t, 5)
}

// TestReplaceNothing: without findings the schedule does not change.
func TestReplaceNothing(t *testing.T) {
	run, _ := detect.RandomSpreading(t, 3)
	w := whole(run)
	r := w.replace(t, nil)
	if d := cmp.Diff(w.events, &r.events); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(w.messages, &r.messages); d != "" {
		t.Error(d)
	}
}
