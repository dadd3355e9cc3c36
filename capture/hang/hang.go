package hang

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// What State.State may be.
const (
	InCall    = "in_call"   // in an MPI call
	Outside   = "outside"   // outside MPI: computing, or polling with tests that fail
	Finalized = "finalized" // MPI_Finalize returned
	Aborted   = "aborted"   // it called MPI_Abort
	Missing   = "missing"   // it has no records in the folder
)

// What Report.State may be.
const (
	Running = "running" // a process of it lives on this machine
	Killed  = "killed"  // neither finalized nor aborted, and no process of it lives here
)

// Report says what every thread of a job is doing and who waits for whom.
type Report struct {
	// Job is the job's id, Program the path of its executable.
	Job     string `json:"job"`
	Program string `json:"program"`
	// Ranks is the size of MPI_COMM_WORLD, Seen how many of its ranks have records.
	Ranks int32 `json:"ranks"`
	Seen  int   `json:"seen"`
	// State is running, finalized, aborted or killed; a job on other machines that did not end counts as killed.
	State string `json:"state"`
	// EndNs is the latest time that the records speak of, in ns since the first MPI_Init.
	EndNs int64 `json:"end_ns"`
	// Findings are what follows from the threads' states, the most telling first.
	Findings []Finding `json:"findings"`
	// Threads are the states by rank and thread.
	Threads []State `json:"threads"`
}

// What Finding.Kind may be.
const (
	Deadlock = "deadlock" // ranks that wait for each other in a circle
	Mismatch = "mismatch" // ranks in different collective operations at the same place
	Ended    = "ended"    // ranks wait for one that has ended
	Waiting  = "waiting"  // ranks wait for one that waits for nobody
	Unclear  = "unclear"  // something could not be read
)

// Finding is a sentence about a job, and the ranks that it is about.
type Finding struct {
	Kind string `json:"kind"`
	// Ranks of a deadlock are the circle in order; else those that wait.
	Ranks []int32 `json:"ranks"`
	// For is the rank they wait for; null for a deadlock.
	For  *int32 `json:"for"`
	Text string `json:"text"`
}

// State is what a thread does.
type State struct {
	Rank   int32  `json:"rank"`
	Thread int32  `json:"thread"`
	State  string `json:"state"`
	// Call is the call that it is in; outside MPI the last one that it made.
	Call string `json:"call,omitempty"`
	// SinceNs is when it came to this state, in ns since the first MPI_Init (of virtual time in a job with simulator ranks);
	// null where not known.
	SinceNs *int64 `json:"since_ns"`
	// Calls is the number of calls recorded before.
	Calls int64 `json:"calls"`
	// Site is where the call stands in the program, empty where not known.
	Site string `json:"site,omitempty"`
	// Pending are the operations that it waits for: the call itself, or the requests of a completion call. Of MPI_Waitany and
	// MPI_Waitsome they are all that the rank has outstanding.
	Pending []Operation `json:"pending,omitempty"`
	// WaitsFor are the world ranks without which the call cannot return; with Any one of them is enough.
	WaitsFor []int32 `json:"waits_for"`
	Any      bool    `json:"any,omitempty"`
	// Text is the state in words, without times and whom it waits for.
	Text string `json:"text"`

	known bool // that WaitsFor is all it needs
}

// Operation is a send, a receive or a collective operation that is not complete.
type Operation struct {
	Call string `json:"call"`
	// Peer is the world rank that it sends to or wants from; null for MPI_ANY_SOURCE, collectives, and where not known.
	Peer *int32 `json:"peer"`
	// Tag is null for MPI_ANY_TAG and collectives.
	Tag *int32 `json:"tag"`
	// Comm is the communicator's name, or how it was made.
	Comm string `json:"comm,omitempty"`
	// Bytes is the payload of a send, the room of a receive, the send argument of a collective; null where not known.
	Bytes *int64 `json:"bytes"`
	// Instance is the n-th collective operation on the communicator, from 0; null for others.
	Instance *int64 `json:"instance"`
	// Matched says that the other side has posted its part: what is missing is progress alone.
	Matched bool `json:"matched"`
	// WaitsFor are the world ranks that have not done their part; with Any one is enough.
	WaitsFor []int32 `json:"waits_for"`
	Any      bool    `json:"any,omitempty"`
	// Hint is what else is known, a sentence or empty.
	Hint string `json:"hint,omitempty"`
	// Site is where it was posted, empty where not known.
	Site string `json:"site,omitempty"`

	send bool
	null bool // the peer is MPI_PROC_NULL
}

// Report says how things stand at the last Update. Of a running job, what follows for calls that the update before did not
// find in progress yet is left open: the files are read one after the other.
func (j *Job) Report() *Report {
	r := &Report{Job: j.Info.ID, Program: j.Info.Program, Ranks: j.Info.Ranks, Seen: len(j.ranks)}
	a := newAnalysis(j)
	if a.trouble != nil {
		r.Findings = append(r.Findings, Finding{Kind: Unclear, Ranks: []int32{}, Text: "the communicators cannot be told apart: " + a.trouble.Error()})
	}
	r.State = j.state()
	for _, k := range j.sorted() {
		for _, t := range k.threads {
			s := a.describe(t)
			s.known = s.known && (t.seen > 1 || r.State != Running)
			if s.SinceNs != nil {
				r.EndNs = max(r.EndNs, *s.SinceNs)
			}
			r.Threads = append(r.Threads, s)
		}
	}
	next := int32(0)
	var missing []State
	for _, k := range a.ranks {
		for ; next < k.rank && len(missing) < maxMissing; next++ {
			missing = append(missing, absent(next))
		}
		next = k.rank + 1
	}
	for ; next < r.Ranks && len(missing) < maxMissing; next++ {
		missing = append(missing, absent(next))
	}
	r.Threads = append(r.Threads, missing...)
	slices.SortStableFunc(r.Threads, func(x, y State) int { return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Thread, y.Thread)) })
	r.Findings = append(r.Findings, a.mismatches()...)
	r.Findings = append(r.Findings, findings(r.Threads)...)
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	return r
}

// maxMissing bounds how many ranks without records a report lists.
const maxMissing = 1 << 16

func absent(rank int32) State {
	return State{Rank: rank, State: Missing, WaitsFor: []int32{}, Text: "no records"}
}

// state is how the job as a whole stands.
func (j *Job) state() string {
	finalized := len(j.ranks) >= int(j.Info.Ranks)
	for _, r := range j.ranks {
		t := r.threads[0]
		switch t.h.Ended {
		case spool.EndedAborted:
			return Aborted
		case spool.EndedNot:
			finalized = false
		}
	}
	if finalized {
		return Finalized
	}
	for _, r := range j.ranks {
		if lives(&r.threads[0].h) {
			return Running
		}
	}
	return Killed
}

// lives says whether the process that wrote the file lives on this machine.
func lives(h *spool.Header) bool {
	if h.Pid <= 0 || h.Pid > math.MaxInt32 || h.Ended != spool.EndedNot || !onThisMachine(h) {
		return false
	}
	if err := syscall.Kill(int(h.Pid), 0); err != nil && err != syscall.EPERM {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.Pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	if strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X") {
		return false
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", h.Pid))
	return err != nil || strings.HasSuffix(strings.TrimSuffix(exe, " (deleted)"), filepath.Base(spool.Text(h.Program[:])))
}

// onThisMachine says whether the file was written on this machine since it was started.
func onThisMachine(h *spool.Header) bool {
	boot := bootID()
	return boot != "" && boot == spool.Text(h.BootID[:])
}

// bootID tells this start of this machine from all others; empty where it cannot be read.
var bootID = sync.OnceValue(func() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(boot))
})

// analysis is a report while it is made.
type analysis struct {
	job     *Job
	ranks   []*rank
	of      map[int32]*rank
	views   ingest.Views
	trouble error
	start   int64
	flows   map[wire]*flow
	to      map[int32][]wire // channels by destination
	entered map[[2]int32]uint64
	starts  map[[2]int32]map[int64]int64
	ops     map[*posted]*Operation
	open    map[*thread]*Operation
	side    map[*thread]*Operation // what an MPI_Sendrecv in progress receives
}

// wire is a channel between world ranks on a communicator of the run.
type wire struct{ comm, src, dst, tag int32 }

// flow is what went over a channel: posted by the sender, arrived, and taken by receives that are posted.
type flow struct{ sent, received, taken int64 }

func newAnalysis(j *Job) *analysis {
	a := &analysis{job: j, ranks: j.sorted(), of: j.ranks, start: math.MaxInt64, flows: map[wire]*flow{}, to: map[int32][]wire{},
		entered: map[[2]int32]uint64{}, starts: map[[2]int32]map[int64]int64{}, ops: map[*posted]*Operation{}, open: map[*thread]*Operation{}, side: map[*thread]*Operation{}}
	var defs []*ingest.Definitions
	for _, r := range a.ranks {
		defs = append(defs, r.defs)
		a.start = min(a.start, r.threads[0].beganNs())
	}
	a.views, a.trouble = ingest.Unify(j.Info.Ranks, defs)
	for _, r := range a.ranks {
		a.count(r)
	}
	for _, r := range a.ranks {
		a.match(r)
	}
	for _, r := range a.ranks {
		a.meet(r)
	}
	return a
}

// beganNs is when the process called MPI_Init, on the clock of rank 0's host.
func (t *thread) beganNs() int64 { return t.h.Clock0Ns - t.offset() }

func (t *thread) offset() int64 {
	if t.h.OffsetInitNs == schema.NullInt64 {
		return 0
	}
	return t.h.OffsetInitNs
}

// at is a time in ns since the job's start; nil where the clock cannot be read.
func (a *analysis) at(t *thread, tick uint64) *int64 {
	if t.h.Timer == spool.TimerVirtual {
		v := int64((min(max(tick, spool.VirtualStart), 1<<63)-spool.VirtualStart)+500) / 1000
		return &v
	}
	tick1, ns1 := t.h.Clock1Tick, t.h.Clock1Ns
	if t.tick > tick1 {
		tick1, ns1 = t.tick, t.ns
	}
	ns := float64(0)
	switch d := float64(int64(tick - t.h.Clock0Tick)); {
	case t.h.Timer == spool.TimerMonotonic:
		ns = d
	case tick1 > t.h.Clock0Tick:
		ns = d * float64(ns1-t.h.Clock0Ns) / float64(tick1-t.h.Clock0Tick)
	default:
		return nil
	}
	if math.Abs(ns) > 1e17 {
		return nil
	}
	v := t.beganNs() + int64(ns) - a.start
	return &v
}

// view is a communicator as a rank sees it; nil where it is not known.
func (a *analysis) view(r *rank, number int32) *ingest.View {
	if v, ok := a.views[r.rank][number]; ok {
		return &v
	}
	return nil
}

// world is the world rank of a peer; -1 where not known.
func world(v *ingest.View, peer int32) int32 {
	if v == nil || peer < 0 || int(peer) >= len(v.Peers) {
		return -1
	}
	return v.Peers[peer]
}

func (a *analysis) flow(w wire) *flow {
	f := a.flows[w]
	if f == nil {
		f = &flow{}
		a.flows[w] = f
		a.to[w.dst] = append(a.to[w.dst], w)
	}
	return f
}

// count adds up what a rank sent and received, and how far it has come on its communicators.
func (a *analysis) count(r *rank) {
	for c, n := range r.sent {
		if v := a.view(r, c.comm); world(v, c.peer) >= 0 {
			a.flow(wire{v.ID, r.rank, world(v, c.peer), c.tag}).sent += n
		}
	}
	for c, n := range r.received {
		if v := a.view(r, c.comm); world(v, c.peer) >= 0 {
			a.flow(wire{v.ID, world(v, c.peer), r.rank, c.tag}).received += n
		}
	}
	for number, n := range r.next {
		if v := a.view(r, number); v != nil {
			a.entered[[2]int32{r.rank, v.ID}] = n
		}
	}
	for at, n := range r.starts {
		if v := a.view(r, at.comm); v != nil {
			k := [2]int32{r.rank, v.ID}
			if a.starts[k] == nil {
				a.starts[k] = map[int64]int64{}
			}
			a.starts[k][at.instance] = n
		}
	}
	for _, t := range r.threads {
		c := t.open
		if c == nil {
			continue
		}
		v := a.view(r, c.Comm)
		switch k := kindOf(c); {
		case v == nil:
		case (k == kindSend || k == kindSendrecv) && c.Flags&spool.FlagProcNull == 0 && world(v, c.Peer) >= 0:
			a.flow(wire{v.ID, r.rank, world(v, c.Peer), c.Tag}).sent++
		case collective(c):
			a.entered[[2]int32{r.rank, v.ID}] = r.next[c.Comm] + 1
		}
	}
}

// collective says whether a call in progress is the next collective operation on its communicator.
func collective(c *spool.Call) bool {
	k := kindOf(c)
	return (k == kindCollective || k == kindIcollective) && c.Comm != schema.NullInt32 && counts(schema.CallID(c.Call))
}

// match gives the messages that were sent to a rank to the receives that it posted, in their order.
func (a *analysis) match(r *rank) {
	type item struct {
		t0   uint64
		call *spool.Call
		op   *Operation
		peek bool
	}
	var items []item
	for _, p := range r.pending {
		if isRecv(&p.call) {
			op := a.operation(r, &p.call, -1)
			a.ops[p] = op
			items = append(items, item{p.call.T0, &p.call, op, false})
		}
	}
	for _, t := range r.threads {
		if c := t.open; c != nil && (kindOf(c) == kindRecv || kindOf(c) == kindProbe || kindOf(c) == kindMprobe) {
			op := a.operation(r, c, -1)
			a.open[t] = op
			items = append(items, item{c.T0, c, op, kindOf(c) != kindRecv})
		}
		if c := t.open; c != nil && kindOf(c) == kindSendrecv && c.Req != 0 {
			from := receiving(c)
			op := a.operation(r, from, -1)
			a.side[t] = op
			items = append(items, item{c.T0, from, op, false})
		}
	}
	slices.SortFunc(items, func(x, y item) int { return cmp.Or(cmp.Compare(x.t0, y.t0), cmp.Compare(x.call.Req, y.call.Req)) })
	for _, i := range items {
		a.take(r, i.call, i.op, i.peek)
	}
}

// receiving is the receive side of an MPI_Sendrecv in progress: its source is known, its tag is not.
func receiving(c *spool.Call) *spool.Call {
	from := &spool.Call{Call: c.Call, Kind: c.Kind, T0: c.T0, Comm: c.Comm, Peer: int32(c.Req - 1), Tag: schema.NullInt32,
		Dtype: schema.NullInt32, Count: schema.NullInt64, Flags: spool.FlagAnyTag}
	if c.Req == math.MaxUint32 {
		from.Peer, from.Flags = schema.NullInt32, spool.FlagAnyTag|spool.FlagAnySource
	}
	return from
}

// take looks for a message that a receive gets. Where none is there the operation waits for its source.
func (a *analysis) take(r *rank, c *spool.Call, op *Operation, peek bool) {
	v := a.view(r, c.Comm)
	if c.Flags&spool.FlagProcNull != 0 {
		op.Matched = true
		return
	}
	if v == nil {
		return
	}
	anyTag := c.Flags&spool.FlagAnyTag != 0
	want := int32(-1)
	if c.Flags&spool.FlagAnySource == 0 {
		if want = world(v, c.Peer); want < 0 {
			return
		}
	}
	var other []wire
	for _, w := range a.to[r.rank] {
		f := a.flows[w]
		if (want >= 0 && w.src != want) || f.sent <= f.received+f.taken {
			continue
		}
		if w.comm != v.ID || !anyTag && w.tag != c.Tag {
			other = append(other, w)
			continue
		}
		op.Matched = true
		if !peek {
			f.taken++
		}
		return
	}
	op.Hint = hint(other, v.ID)
	if want >= 0 {
		op.WaitsFor = []int32{want}
		return
	}
	op.Any = true
	for _, w := range v.Peers {
		if w >= 0 && w != r.rank {
			op.WaitsFor = append(op.WaitsFor, w)
		}
	}
}

// hint tells of messages that are there, but that the receive does not take.
func hint(other []wire, comm int32) string {
	if len(other) == 0 {
		return ""
	}
	w := slices.MinFunc(other, func(x, y wire) int { return cmp.Or(cmp.Compare(x.src, y.src), cmp.Compare(x.tag, y.tag)) })
	if w.comm != comm {
		return fmt.Sprintf("rank %d has sent it a message with tag %d on another communicator", w.src, w.tag)
	}
	return fmt.Sprintf("rank %d has sent it a message with tag %d", w.src, w.tag)
}

// meet finds what sends and collectives of a rank wait for; the receives of all ranks are matched by then.
func (a *analysis) meet(r *rank) {
	for _, p := range r.pending {
		switch {
		case isSend(&p.call):
			op := a.operation(r, &p.call, -1)
			a.sending(r, &p.call, op, p.ordinal)
			a.ops[p] = op
		case p.instance >= 0:
			op := a.operation(r, &p.call, p.instance)
			a.gather(r, &p.call, op, p.instance, p.ordinal)
			a.ops[p] = op
		case a.ops[p] == nil:
			a.ops[p] = a.operation(r, &p.call, -1)
		}
	}
	for _, t := range r.threads {
		c := t.open
		switch {
		case c == nil || a.open[t] != nil:
		case kindOf(c) == kindSend || kindOf(c) == kindSendrecv:
			op := a.operation(r, c, -1)
			a.sending(r, c, op, r.sent[channel{c.Comm, c.Peer, c.Tag}]+1)
			a.open[t] = op
		case collective(c):
			n := int64(r.next[c.Comm])
			op := a.operation(r, c, n)
			a.gather(r, c, op, n, 0)
			a.open[t] = op
		}
	}
}

// sending says whether the receive of the n-th message on a channel is posted.
func (a *analysis) sending(r *rank, c *spool.Call, op *Operation, n int64) {
	op.send = true
	if c.Flags&spool.FlagProcNull != 0 {
		op.Matched = true
		return
	}
	v := a.view(r, c.Comm)
	dst := world(v, c.Peer)
	if dst < 0 {
		return
	}
	f := a.flow(wire{v.ID, r.rank, dst, c.Tag})
	if n > 0 && n <= f.received+f.taken {
		op.Matched = true
		return
	}
	op.WaitsFor = []int32{dst}
}

// gather says who has not come to a collective operation; start is the number of a persistent one's start, else 0.
func (a *analysis) gather(r *rank, c *spool.Call, op *Operation, n, start int64) {
	v := a.view(r, c.Comm)
	if v == nil || neighbours(c) { // who is whose neighbour does not stand in the records of a call in progress
		return
	}
	root := int32(-1)
	if c.Peer != schema.NullInt32 {
		root = world(v, c.Peer)
	}
	members := v.Own
	if v.Inter() {
		members = append(slices.Clone(v.Own), v.Peers...)
	}
	for _, m := range members {
		k := [2]int32{m, v.ID}
		if m < 0 || m == r.rank || start == 0 && a.entered[k] > uint64(n) || start > 0 && a.starts[k][n] >= start {
			continue
		}
		if m == root { // the others can do nothing before it
			op.WaitsFor = []int32{m}
			return
		}
		op.WaitsFor = append(op.WaitsFor, m)
	}
	slices.Sort(op.WaitsFor)
	op.Matched = len(op.WaitsFor) == 0
}

// operation describes a call as an operation.
func (a *analysis) operation(r *rank, c *spool.Call, instance int64) *Operation {
	op := &Operation{Call: schema.CallID(c.Call).String(), WaitsFor: []int32{}, Site: a.site(r, c.Site), null: c.Flags&spool.FlagProcNull != 0 && instance < 0}
	v := a.view(r, c.Comm)
	if v != nil {
		op.Comm = v.Text()
	}
	if instance >= 0 {
		op.Instance = &instance
	}
	if w := world(v, c.Peer); w >= 0 && c.Peer != schema.NullInt32 {
		op.Peer = &w
	}
	if c.Tag != schema.NullInt32 {
		tag := c.Tag
		op.Tag = &tag
	}
	if size, ok := r.defs.TypeBytes(c.Dtype); ok && c.Count >= 0 && (size == 0 || c.Count <= math.MaxInt64/size) {
		n := c.Count * size
		op.Bytes = &n
	}
	return op
}

// site is a call site in words: its innermost frame; empty where it is not known.
func (a *analysis) site(r *rank, site uint32) string {
	path := r.sites.Path(site)
	if len(path) == 0 {
		return ""
	}
	at := place{offset: path[0].Offset}
	if m := path[0].Module; m != nil {
		at.path, at.id = m.Path, m.BuildID
	}
	text, ok := a.job.places[at]
	if !ok {
		text = a.job.resolver.Describe(path)
		a.job.places[at] = text
	}
	return text
}

// describe is a thread's state.
func (a *analysis) describe(t *thread) State {
	s := State{Rank: t.rank.rank, Thread: t.h.Thread, Calls: t.calls, WaitsFor: []int32{}}
	switch {
	case t.open != nil:
		a.inCall(t, &s)
	case t.h.Ended == spool.EndedAborted:
		s.State, s.Text = Aborted, "called MPI_Abort"
	case t.rank.finalized || t.h.Ended == spool.EndedFinalized:
		s.State, s.Text = Finalized, "finalized"
	default:
		s.State, s.Text = Outside, "outside MPI"
	}
	if t.open == nil && t.last.Call != 0 {
		s.Call = schema.CallID(t.last.Call).String()
		s.SinceNs = a.at(t, t.last.T1)
		s.Site = a.site(t.rank, t.last.Site)
	}
	return s
}

// inCall fills in what a thread's call waits for.
func (a *analysis) inCall(t *thread, s *State) {
	c := t.open
	s.State, s.SinceNs, s.Site = InCall, a.at(t, c.T0), a.site(t.rank, c.Site)
	if int(c.Call) >= len(schema.Calls) || c.Call == 0 {
		s.Call = fmt.Sprintf("call %d", c.Call)
		s.Text = s.Call
		return
	}
	call := schema.CallID(c.Call)
	s.Call = call.String()
	if call == schema.CallFinalize {
		s.known = true
		for _, r := range a.ranks {
			if r != t.rank && !r.finalized && !r.isIn(schema.CallFinalize) {
				s.WaitsFor = append(s.WaitsFor, r.rank)
			}
		}
	}
	if op := a.open[t]; op != nil {
		s.Pending = []Operation{*op}
		s.WaitsFor, s.Any = op.WaitsFor, op.Any
		s.known = op.Matched || len(op.WaitsFor) > 0
		s.Text = op.text()
		if side := a.side[t]; side != nil {
			a.sendrecv(s, op, side)
		}
		return
	}
	s.Text = s.Call
	if v := a.view(t.rank, c.Comm); v != nil {
		s.Text += " on " + v.Text()
	}
	if kindOf(c) == kindComplete {
		if s.Site != "" {
			s.Text += " at " + s.Site
		}
		a.waiting(t, s)
	}
}

// sendrecv adds what an MPI_Sendrecv waits to receive.
func (a *analysis) sendrecv(s *State, send, side *Operation) {
	s.Pending = append(s.Pending, *side)
	s.Text += ", receiving" + peerText(" from", side.Peer, nil, true)
	s.known = s.known && (side.Matched || len(side.WaitsFor) > 0)
	if !side.Matched && send.Bytes != nil && *send.Bytes <= eagerBytes {
		send.WaitsFor, s.WaitsFor = []int32{}, []int32{}
	}
	switch {
	case side.Matched:
	case side.Any && len(send.WaitsFor) == 0:
		s.WaitsFor, s.Any = side.WaitsFor, true
	case side.Any:
		s.known = false // all of some and one of others
	default:
		s.WaitsFor = append(slices.Clone(s.WaitsFor), side.WaitsFor...)
		slices.Sort(s.WaitsFor)
		s.WaitsFor = slices.Compact(s.WaitsFor)
	}
}

// isIn says whether a thread of the rank is in that call.
func (r *rank) isIn(call schema.CallID) bool {
	return slices.ContainsFunc(r.threads, func(t *thread) bool { return t.open != nil && t.open.Call == uint16(call) })
}

// eagerBytes is what MPI libraries send without waiting for the receiver, at most: a smaller send that is still outstanding
// in an MPI_Waitall is most likely complete, when something else is there that it can wait for.
const eagerBytes = 64 << 10

// waiting fills in the requests that a completion call waits for: its own, or all that are outstanding.
func (a *analysis) waiting(t *thread, s *State) {
	c := t.open
	of, exact := t.rank.awaited(c)
	var missing []*Operation
	others := false
	s.known = len(of) > 0 && exact
	for _, p := range of {
		op := a.ops[p]
		s.Pending = append(s.Pending, *op)
		if !op.Matched {
			missing = append(missing, op)
			others = others || !op.send
			s.known = s.known && len(op.WaitsFor) > 0
		}
	}
	s.Any = recorder(c) == "waitany" || recorder(c) == "waitsome"
	if s.Any && len(missing) < len(of) {
		missing = nil // one of them can complete
	}
	for _, op := range missing {
		small := op.send && op.Bytes != nil && *op.Bytes <= eagerBytes
		if small && others && !s.Any {
			continue
		}
		if op.Any && len(missing) == 1 {
			s.Any = true
		} else if op.Any && !s.Any {
			s.known = false // all of some and one of others: who it is in the end cannot be said
			continue
		}
		s.WaitsFor = append(s.WaitsFor, op.WaitsFor...)
	}
	slices.Sort(s.WaitsFor)
	s.WaitsFor = slices.Compact(s.WaitsFor)
	s.Text += a.pendingText(s)
}

// awaited are the outstanding requests that a completion call in progress waits for, by serial. Where it cannot be told which
// of the rank's they are, they are all, and exact is false; MPI_Waitany and MPI_Waitsome can go on by any of all.
func (r *rank) awaited(c *spool.Call) (of []*posted, exact bool) {
	name := recorder(c)
	low, high := c.Req, c.Req
	switch {
	case name == "wait":
	case name == "waitall" && c.Req != 0 && c.Count > 0:
		high = uint32(c.Tag)
	default:
		low, high = 1, math.MaxUint32
	}
	for _, serial := range sortedKeys(r.pending) {
		if serial >= low && serial <= high && serial != 0 {
			of = append(of, r.pending[serial])
		}
	}
	return of, name != "waitall" || c.Count == int64(len(of))
}

// maxNamed is how many outstanding operations a text names.
const maxNamed = 4

// pendingText names what a completion call waits for.
func (a *analysis) pendingText(s *State) string {
	if len(s.Pending) == 0 {
		return ""
	}
	var missing []string
	matched := 0
	for i := range s.Pending {
		if s.Pending[i].Matched {
			matched++
			continue
		}
		missing = append(missing, s.Pending[i].text())
	}
	if len(missing) == 0 {
		return fmt.Sprintf(" for %s that the other side has posted too", plural(matched, "request"))
	}
	text := " for " + strings.Join(missing[:min(len(missing), maxNamed)], "; ")
	if len(missing) > maxNamed {
		text += fmt.Sprintf("; and %d more", len(missing)-maxNamed)
	}
	return text
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func sortedKeys(m map[uint32]*posted) []uint32 {
	keys := make([]uint32, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// text is an operation in words.
func (op *Operation) text() string {
	text := op.Call
	switch {
	case op.null && op.send:
		text += " to MPI_PROC_NULL"
	case op.null:
		text += " from MPI_PROC_NULL"
	case op.Instance != nil:
	case op.send:
		text += peerText(" to", op.Peer, op.Tag, false)
	default:
		text += peerText(" from", op.Peer, op.Tag, op.Any)
	}
	if op.Comm != "" {
		text += " on " + op.Comm
	}
	if op.Bytes != nil && *op.Bytes > 0 {
		text += ", " + plural(int(*op.Bytes), "byte")
	}
	if op.Instance != nil {
		text += fmt.Sprintf(" (its operation %d)", *op.Instance+1)
	}
	if op.Site != "" {
		text += ", at " + op.Site
	}
	if op.Hint != "" {
		text += " (" + op.Hint + ")"
	}
	return text
}

func peerText(to string, peer, tag *int32, any bool) string {
	text := ""
	switch {
	case peer != nil:
		text = fmt.Sprintf("%s rank %d", to, *peer)
	case any:
		text = to + " any rank"
	}
	if tag != nil {
		return text + fmt.Sprintf(", tag %d,", *tag)
	}
	return text
}
