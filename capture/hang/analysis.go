package hang

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/capture/ingest/handles"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// analysis finds out what the operations in progress wait for. count adds up what each rank has sent, received and
// entered, matchReceives assigns messages to posted receives, and matchOthers then examines sends and collectives.
// The methods in threads.go describe the threads with the result.
type analysis struct {
	job   *Job
	ranks []*rank // ascending
	views handles.Views
	err   error // why there are no views
	start int64 // when the job started, on the clock of rank 0's host, in ns

	traffic traffic
	entered map[memberKey]uint64          // collective operations that a rank has entered, by number
	starts  map[memberKey]map[int64]int64 // starts of its persistent ones, by instance

	// the operations in progress
	posted    map[*posted]*Operation // requests
	open      map[*thread]*Operation // calls
	receiving map[*thread]*Operation // the receive sides of MPI_Sendrecv
}

// memberKey is a rank in a communicator of the run.
type memberKey struct{ rank, comm int32 }

// route is a channel between world ranks on a communicator of the run.
type route struct{ comm, src, dst, tag int32 }

// flow counts the messages of a route: sent, received, and assigned to posted receives.
type flow struct{ sent, received, taken int64 }

// arrived returns the number of messages that a receive has taken or will take.
func (f *flow) arrived() int64 { return f.received + f.taken }

// traffic has the messages of a job by route.
type traffic struct {
	flows map[route]*flow
	to    map[int32][]route // by destination
}

// flow returns the flow of a route, and makes it if the route is new.
func (t *traffic) flow(w route) *flow {
	f := t.flows[w]
	if f == nil {
		f = &flow{}
		t.flows[w] = f
		t.to[w.dst] = append(t.to[w.dst], w)
	}
	return f
}

func newAnalysis(j *Job) *analysis {
	a := &analysis{job: j, ranks: j.sorted(), start: math.MaxInt64,
		traffic: traffic{map[route]*flow{}, map[int32][]route{}},
		entered: map[memberKey]uint64{}, starts: map[memberKey]map[int64]int64{},
		posted: map[*posted]*Operation{}, open: map[*thread]*Operation{}, receiving: map[*thread]*Operation{}}
	var defs []*handles.Definitions
	for _, r := range a.ranks {
		defs = append(defs, r.defs)
		a.start = min(a.start, r.threads[0].beganNs())
	}
	a.views, a.err = handles.NewViews(j.Info.Ranks, defs)
	for _, r := range a.ranks {
		a.count(r)
	}
	for _, r := range a.ranks {
		a.matchReceives(r)
	}
	for _, r := range a.ranks {
		a.matchOthers(r)
	}
	return a
}

// beganNs returns when the process called MPI_Init, on the clock of rank 0's host.
func (t *thread) beganNs() int64 { return t.h.Clock0Ns - t.offset() }

func (t *thread) offset() int64 {
	if t.h.OffsetInitNs == schema.NullInt64 {
		return 0
	}
	return t.h.OffsetInitNs
}

// view returns a communicator as a rank sees it; nil when it is not known.
func (a *analysis) view(r *rank, number int32) *handles.View {
	if v, ok := a.views[r.rank][number]; ok {
		return &v
	}
	return nil
}

// worldRank returns the world rank of a peer; -1 when it is not known.
func worldRank(v *handles.View, peer int32) int32 {
	if v == nil || peer < 0 || int(peer) >= len(v.Peers) {
		return -1
	}
	return v.Peers[peer]
}

// count adds up what a rank has sent and received, and how many collective operations it has entered on each
// communicator.
func (a *analysis) count(r *rank) {
	for c, n := range r.sent {
		if v := a.view(r, c.comm); worldRank(v, c.peer) >= 0 {
			a.traffic.flow(route{v.ID, r.rank, worldRank(v, c.peer), c.tag}).sent += n
		}
	}
	for c, n := range r.received {
		if v := a.view(r, c.comm); worldRank(v, c.peer) >= 0 {
			a.traffic.flow(route{v.ID, worldRank(v, c.peer), r.rank, c.tag}).received += n
		}
	}
	for number, n := range r.next {
		if v := a.view(r, number); v != nil {
			a.entered[memberKey{r.rank, v.ID}] = n
		}
	}
	for p, n := range r.starts {
		if v := a.view(r, p.comm); v != nil {
			k := memberKey{r.rank, v.ID}
			if a.starts[k] == nil {
				a.starts[k] = map[int64]int64{}
			}
			a.starts[k][p.instance] = n
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
		case (k == kindSend || k == kindSendrecv) && c.Flags&spool.FlagProcNull == 0 && worldRank(v, c.Peer) >= 0:
			a.traffic.flow(route{v.ID, r.rank, worldRank(v, c.Peer), c.Tag}).sent++
		case isCollective(c):
			a.entered[memberKey{r.rank, v.ID}] = r.next[c.Comm] + 1
		}
	}
}

// isCollective reports whether a call in progress is the next collective operation on its communicator.
func isCollective(c *spool.Call) bool {
	k := kindOf(c)
	return (k == kindCollective || k == kindIcollective) && c.Comm != schema.NullInt32 &&
		involvesAll(schema.CallID(c.Call))
}

// matchReceives assigns the messages sent to a rank to its posted receives, in posting order.
func (a *analysis) matchReceives(r *rank) {
	type item struct {
		t0   uint64
		call *spool.Call
		op   *Operation
		peek bool // a probe: the message stays for another receive
	}
	var items []item
	for _, p := range r.pending {
		if isRecv(&p.call) {
			op := a.operation(r, &p.call, -1)
			a.posted[p] = op
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
			from := receiveSide(c)
			op := a.operation(r, from, -1)
			a.receiving[t] = op
			items = append(items, item{c.T0, from, op, false})
		}
	}
	slices.SortFunc(items, func(x, y item) int { return cmp.Or(cmp.Compare(x.t0, y.t0), cmp.Compare(x.call.Req, y.call.Req)) })
	for _, i := range items {
		a.matchReceive(r, i.call, i.op, i.peek)
	}
}

// receiveSide returns the receive side of an MPI_Sendrecv in progress. Its source is recorded, its tag is not.
func receiveSide(c *spool.Call) *spool.Call {
	from := &spool.Call{Call: c.Call, Kind: c.Kind, T0: c.T0, Comm: c.Comm, Peer: int32(c.Req - 1),
		Tag:   schema.NullInt32,
		Dtype: schema.NullInt32, Count: schema.NullInt64, Flags: spool.FlagAnyTag}
	if c.Req == math.MaxUint32 {
		from.Peer, from.Flags = schema.NullInt32, spool.FlagAnyTag|spool.FlagAnySource
	}
	return from
}

// matchReceive finds a message for a receive. Without one, the operation waits for its source.
func (a *analysis) matchReceive(r *rank, c *spool.Call, op *Operation, peek bool) {
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
		if want = worldRank(v, c.Peer); want < 0 {
			return
		}
	}
	var others []route
	for _, w := range a.traffic.to[r.rank] {
		f := a.traffic.flows[w]
		if (want >= 0 && w.src != want) || f.sent <= f.arrived() {
			continue
		}
		if w.comm != v.ID || !anyTag && w.tag != c.Tag {
			others = append(others, w)
			continue
		}
		op.Matched = true
		if !peek {
			f.taken++
		}
		return
	}
	op.Hint = otherMessage(others, v.ID)
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

// otherMessage describes a message that was sent to the rank but does not match the receive.
func otherMessage(others []route, comm int32) string {
	if len(others) == 0 {
		return ""
	}
	w := slices.MinFunc(others, func(x, y route) int { return cmp.Or(cmp.Compare(x.src, y.src), cmp.Compare(x.tag, y.tag)) })
	if w.comm != comm {
		return fmt.Sprintf("rank %d has sent it a message with tag %d on another communicator", w.src, w.tag)
	}
	return fmt.Sprintf("rank %d has sent it a message with tag %d", w.src, w.tag)
}

// matchOthers finds what the sends and collectives of a rank wait for. It needs the receives of all ranks to be
// matched.
func (a *analysis) matchOthers(r *rank) {
	for _, p := range r.pending {
		switch {
		case isSend(&p.call):
			op := a.operation(r, &p.call, -1)
			a.matchSend(r, &p.call, op, p.ordinal)
			a.posted[p] = op
		case p.instance >= 0:
			op := a.operation(r, &p.call, p.instance)
			a.matchCollective(r, &p.call, op, p.instance, p.ordinal)
			a.posted[p] = op
		case a.posted[p] == nil:
			a.posted[p] = a.operation(r, &p.call, -1)
		}
	}
	for _, t := range r.threads {
		c := t.open
		switch {
		case c == nil || a.open[t] != nil:
		case kindOf(c) == kindSend || kindOf(c) == kindSendrecv:
			op := a.operation(r, c, -1)
			a.matchSend(r, c, op, r.sent[channel{c.Comm, c.Peer, c.Tag}]+1)
			a.open[t] = op
		case isCollective(c):
			n := int64(r.next[c.Comm])
			op := a.operation(r, c, n)
			a.matchCollective(r, c, op, n, 0)
			a.open[t] = op
		}
	}
}

// matchSend finds out whether the receive for the n-th message on a channel is posted.
func (a *analysis) matchSend(r *rank, c *spool.Call, op *Operation, n int64) {
	op.send = true
	if c.Flags&spool.FlagProcNull != 0 {
		op.Matched = true
		return
	}
	v := a.view(r, c.Comm)
	dst := worldRank(v, c.Peer)
	if dst < 0 {
		return
	}
	f := a.traffic.flow(route{v.ID, r.rank, dst, c.Tag})
	if n > 0 && n <= f.arrived() {
		op.Matched = true
		return
	}
	op.WaitsFor = []int32{dst}
}

// matchCollective finds the ranks that have not entered a collective operation. start is the number of its start if
// it is persistent, else 0.
func (a *analysis) matchCollective(r *rank, c *spool.Call, op *Operation, n, start int64) {
	v := a.view(r, c.Comm)
	if v == nil || schema.CallID(c.Call).IsNeighborhood() { // the neighbours of a call in progress are not recorded
		return
	}
	root := int32(-1)
	if c.Peer != schema.NullInt32 {
		root = worldRank(v, c.Peer)
	}
	members := v.Own
	if v.Inter {
		members = append(slices.Clone(v.Own), v.Peers...)
	}
	for _, m := range members {
		k := memberKey{m, v.ID}
		if m < 0 || m == r.rank || start == 0 && a.entered[k] > uint64(n) || start > 0 && a.starts[k][n] >= start {
			continue
		}
		if m == root { // without the root the others cannot continue
			op.WaitsFor = []int32{m}
			return
		}
		op.WaitsFor = append(op.WaitsFor, m)
	}
	slices.Sort(op.WaitsFor)
	op.Matched = len(op.WaitsFor) == 0
}

// operation describes a call as an operation, but not what it waits for.
func (a *analysis) operation(r *rank, c *spool.Call, instance int64) *Operation {
	op := &Operation{Call: schema.CallID(c.Call).String(), WaitsFor: []int32{}, Site: a.site(r, c.Site),
		null: c.Flags&spool.FlagProcNull != 0 && instance < 0}
	v := a.view(r, c.Comm)
	if v != nil {
		op.Comm = v.Text()
	}
	if instance >= 0 {
		op.Instance = &instance
	}
	if w := worldRank(v, c.Peer); w >= 0 && c.Peer != schema.NullInt32 {
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
