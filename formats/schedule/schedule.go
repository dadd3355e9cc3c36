package schedule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

const null32, null64 = schema.NullInt32, schema.NullInt64

// Kind is the kind of an action.
type Kind uint8

// The kinds of actions.
const (
	// Compute takes Ns.
	Compute Kind = iota
	// Send and Recv are messages. With an ID they are only begun, and a Wait ends them.
	Send
	Recv
	// Wait ends the Send, Recv or CollectiveCall with the same ID, whose other fields it has.
	Wait
	// CollectiveCall is a collective operation.
	CollectiveCall
)

// Action is the next thing a rank does.
type Action struct {
	Kind Kind
	Rank int32 // world rank
	// Ns is the length of Compute.
	Ns int64
	// ID identifies operations that are begun and waited for, from 1 on each rank. It is 0 for an operation that
	// returns when it is done.
	ID int64
	// Sends means that a Wait ends a send.
	Sends bool
	// Unwaited means that no Wait ends this operation, though it has an ID.
	Unwaited bool
	// Peer is the world rank of the other side. Tag is unique for each tag and communicator of the run.
	Peer, Tag int32
	Bytes     int64 // payload
	// Call is that of CollectiveCall, which, too, is only begun if it has an ID.
	Call *Collective
}

// Options control Each.
type Options struct {
	// Command begins errors about what the run lacks.
	Command string
	// Keep reports whether a collective stays one; others become messages. Nil keeps none.
	Keep func(*Collective) bool
	// WaitBuffered keeps the waits for buffered sends. By default they are dropped, as such a send never waits for its
	// receiver.
	WaitBuffered bool
	// Begin gets the number of ranks before the first action; nil means no callback.
	Begin func(ranks int32) error
}

// Notes are sentences about what the actions lack or represent differently, and how often.
type Notes map[string]int64

// Texts returns the notes in order.
func (n Notes) Texts() (texts []string) {
	for what, count := range n {
		texts = append(texts, fmt.Sprintf("%s: %d.", what, count))
	}
	slices.Sort(texts)
	return texts
}

// firstOwnTag is the first tag of those that are not of MPI_COMM_WORLD: real programs do not come near it.
const firstOwnTag = 1 << 30

// collectives stands for the tag of the messages of collectives.
const collectives = null32

// channel is a tag of a communicator.
type channel struct{ comm, tag int32 }

// reader is the state of Each.
type reader struct {
	o         Options
	run       *run.Run
	comms     map[int32]*comm // by id, of which a run may lack some
	ranks     []rankState
	tags      map[channel]int32
	parts     map[rowKey][]schema.Part
	delivered *run.Delivered
	notes     Notes
	do        func(*Action) error
	// noParts means that collectives moved bytes, possibly unknown ones, but no collective has its bytes by peer.
	noParts bool
}

// comm is a communicator.
type comm struct {
	*run.Comm
	place map[int32]int // by world rank; nil if the two are the same
}

// placeOf returns the place of a world rank in the communicator.
func (c *comm) placeOf(world int32) int {
	if c.place == nil {
		return int(world)
	}
	return c.place[world]
}

// rankState has the open requests of a rank.
type rankState struct {
	ids  int64
	done map[int64][]Action      // the waits that a row makes
	made map[int64]schema.CallID // persistent requests by the row that made them
}

type rowKey struct {
	rank int32
	seq  int64
}

// columns are those that actions are made of.
var columns = []string{"rank", "seq", "call", "class", "compute_ns", "comm", "instance", "send_world", "send_tag",
	"send_bytes", "recv_world", "recv_tag", "recv_bytes", "root_world", "proc_null", "request", "done_seq", "init_seq",
	"error_class"}

// Each opens the run in folder dir and passes the actions of all ranks to do: those of a rank in their order, and
// those of different ranks in pieces. It returns the number of ranks, and the notes when all is read.
func Each(ctx context.Context, dir string, o Options, do func(*Action) error) (ranks int32, notes Notes, err error) {
	r, err := run.Open(ctx, dir, run.Need{Command: o.Command, AllCalls: true, ComputeTimes: true})
	if err != nil {
		return 0, nil, err
	}
	for rank, threads := range r.Ranks.Threads {
		if threads > 1 {
			return 0, nil, fmt.Errorf("rank %d has %d threads that call MPI; the format knows one for each rank", rank,
				threads)
		}
	}
	parts := func(t schema.TableInfo) bool { return t.Name == schema.PartsTable.Name && t.Rows > 0 }
	x := &reader{o: o, run: r,
		ranks: make([]rankState, r.Manifest.Ranks), tags: map[channel]int32{}, notes: Notes{}, do: do}
	x.places()
	if x.delivered, err = run.FindDelivered(ctx, r.Opened()); err != nil {
		return 0, nil, err
	}
	if !slices.ContainsFunc(r.Manifest.Tables, parts) {
		if x.noParts, err = movesUnevenly(ctx, r.Opened()); err != nil {
			return 0, nil, err
		}
	}
	if o.Begin != nil {
		if err := o.Begin(r.Manifest.Ranks); err != nil {
			return 0, nil, err
		}
	}
	if err := x.read(ctx); err != nil {
		return 0, nil, err
	}
	return r.Manifest.Ranks, x.notes, nil
}

// unevenCalls are the collectives whose messages only parts tell.
var unevenCalls = []schema.CallID{schema.CallAlltoallv, schema.CallAlltoallw, schema.CallAllgatherv}

// movesUnevenly reports whether a run has a collective with counts for each rank that moved bytes, or may have.
func movesUnevenly(ctx context.Context, from writer.Opened) (moves bool, err error) {
	events, err := from.ReadEpochs(&schema.EventsTable, 1<<13, "call", "class", "send_bytes", "recv_bytes")
	if err != nil {
		return false, err
	}
	var row schema.Event
	look := func(b schema.Batch) error {
		t := b.(*schema.Events)
		for i := range t.Len() {
			t.Row(i, &row)
			call := schema.CallID(row.Call)
			uneven := slices.Contains(unevenCalls, call.Operation()) || call.Is(schema.FactStarts) // a persistent one
			if schema.Class(row.Class) == schema.ClassCollective && uneven && (row.SendBytes != 0 || row.RecvBytes != 0) {
				moves = true
			}
		}
		return nil
	}
	for _, more := events.Epoch(); more && !moves; _, more = events.Epoch() {
		if err := events.Next(ctx, look); err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
	}
	return moves, nil
}

// places notes where each rank is in its communicators.
func (x *reader) places() {
	x.comms = make(map[int32]*comm, len(x.run.Comms))
	for i := range x.run.Comms {
		c := &comm{Comm: &x.run.Comms[i]}
		if !isWorld(c.Comm, len(x.ranks)) {
			c.place = make(map[int32]int, len(c.Members))
			for place, world := range c.Members {
				c.place[world] = place
			}
		}
		x.comms[c.ID] = c
	}
}

// isWorld reports whether a communicator has all ranks in their order.
func isWorld(c *run.Comm, ranks int) bool {
	if len(c.Members) != ranks || c.Inter {
		return false
	}
	for i, world := range c.Members {
		if world != int32(i) {
			return false
		}
	}
	return true
}

// IsWorld reports whether the communicator has all ranks of the run in their order.
func (c *Collective) IsWorld(ranks int32) bool {
	if len(c.Members) != int(ranks) {
		return false
	}
	for i, world := range c.Members {
		if world != int32(i) {
			return false
		}
	}
	return true
}

// read reads events and parts epoch by epoch.
func (x *reader) read(ctx context.Context) error {
	events, err := x.run.Opened().ReadEpochs(&schema.EventsTable, 1<<13, columns...)
	if err != nil {
		return err
	}
	parts, err := x.run.Opened().ReadEpochs(&schema.PartsTable, 1<<13, "rank", "seq", "peer_world", "send_bytes",
		"recv_bytes")
	if err != nil {
		return err
	}
	for {
		epoch, more := events.Epoch()
		if !more {
			return nil
		}
		x.parts = map[rowKey][]schema.Part{}
		for at, ok := parts.Epoch(); ok && at <= epoch; at, ok = parts.Epoch() {
			if err := parts.Next(ctx, x.keepParts); err != nil {
				return err
			}
		}
		if err := events.Next(ctx, x.rows); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
}

func (x *reader) keepParts(b schema.Batch) error {
	t := b.(*schema.Parts)
	var row schema.Part
	for i := range t.Len() {
		t.Row(i, &row)
		k := rowKey{row.Rank, row.Seq}
		x.parts[k] = append(x.parts[k], row)
	}
	return nil
}

func (x *reader) rows(b schema.Batch) error {
	t := b.(*schema.Events)
	var row schema.Event
	for i := range t.Len() {
		t.Row(i, &row)
		if err := x.row(&row); err != nil {
			return err
		}
	}
	return nil
}

// row passes on the compute time before a row, what the row does, and the waits for what it completes.
func (x *reader) row(e *schema.Event) error {
	if e.ComputeNs != null64 && e.ComputeNs > 0 {
		if err := x.do(&Action{Kind: Compute, Rank: e.Rank, Ns: e.ComputeNs}); err != nil {
			return err
		}
	}
	if err := x.own(e); err != nil {
		return err
	}
	return x.waits(e)
}

// waits passes on the waits for what a row completes.
func (x *reader) waits(e *schema.Event) error {
	r := &x.ranks[e.Rank]
	for i := range r.done[e.Seq] {
		if err := x.do(&r.done[e.Seq][i]); err != nil {
			return err
		}
	}
	delete(r.done, e.Seq)
	return nil
}

// own passes on what the row itself does.
func (x *reader) own(e *schema.Event) error {
	call := schema.CallID(e.Call)
	class := schema.Class(e.Class)
	r := &x.ranks[e.Rank]
	if call.Is(schema.FactPersistent) {
		if r.made == nil {
			r.made = map[int64]schema.CallID{}
		}
		r.made[e.Seq] = call
		if class == schema.ClassOther {
			return nil
		}
	}
	if made, ok := r.made[e.InitSeq]; ok && (call == schema.CallStart || call == schema.CallStartall) {
		call = made
	}
	if x.delivered.Complete(e) {
		x.notes["Sends that were cancelled or failed and were left out"]++
	}
	switch class {
	case schema.ClassSend:
		return x.send(e, call, e.Request != null64)
	case schema.ClassRecv:
		return x.recv(e, e.Request != null64, e.DoneSeq)
	case schema.ClassSendrecv:
		done := e.DoneSeq
		if e.Request == null64 {
			done = e.Seq
		}
		if err := x.recv(e, true, done); err != nil {
			return err
		}
		return x.sendUntil(e, done)
	case schema.ClassCollective:
		return x.collective(e, call)
	case schema.ClassRMA:
		x.notes["One-sided calls that were left out"]++
	case schema.ClassIO:
		x.notes["Calls of I/O that were left out"]++
	case schema.ClassComm:
		return x.constructor(e)
	}
	return nil
}

// constructor makes a call that all ranks of a communicator make together a barrier.
func (x *reader) constructor(e *schema.Event) error {
	if e.Instance == null64 {
		return nil
	}
	c, err := x.commOf(e)
	if err != nil || x.leavesOut(e, c) {
		return err
	}
	x.notes["Calls that all ranks of a communicator make together, such as MPI_Comm_split, written as MPI_Barrier"]++
	return x.together(e, c, schema.CallBarrier)
}

// tag returns the number of a tag of a communicator.
func (x *reader) tag(comm, tag int32) int32 {
	if comm == 0 && tag >= 0 && tag < firstOwnTag {
		return tag
	}
	k := channel{comm, tag}
	t, ok := x.tags[k]
	if !ok {
		t = firstOwnTag + int32(len(x.tags))
		x.tags[k] = t
	}
	return t
}

// begin passes on a message that is only begun, and keeps its wait for the row that completes it.
func (x *reader) begin(a Action, done int64) error {
	r := &x.ranks[a.Rank]
	r.ids++
	a.ID, a.Unwaited = r.ids, done == null64
	if err := x.do(&a); err != nil || done == null64 {
		return err
	}
	a.Kind, a.Sends = Wait, a.Kind == Send
	if r.done == nil {
		r.done = map[int64][]Action{}
	}
	r.done[done] = append(r.done[done], a)
	return nil
}

func (x *reader) sendAction(e *schema.Event) Action {
	return Action{Kind: Send, Rank: e.Rank, Peer: e.SendWorld, Tag: x.tag(e.Comm, e.SendTag), Bytes: max(e.SendBytes, 0)}
}

func (x *reader) send(e *schema.Event, call schema.CallID, immediate bool) error {
	if e.SendWorld == null32 {
		return nil // MPI_PROC_NULL, or outside the run
	}
	if call.Is(schema.FactSynchronous) {
		x.notes["Synchronous sends, written as ordinary ones"]++
	}
	if call.Is(schema.FactPartitioned) {
		x.notes["Partitioned sends, written as if all partitions were ready at the start"]++
	}
	a := x.sendAction(e)
	switch {
	case call.Is(schema.FactBuffered) && !x.o.WaitBuffered: // it never waits for its receiver
		return x.begin(a, null64)
	case immediate || call.Is(schema.FactBuffered):
		return x.begin(a, e.DoneSeq)
	case e.SendWorld == e.Rank: // its receive may come after it
		return x.begin(a, null64)
	}
	return x.do(&a)
}

// sendUntil begins the send of an MPI_Sendrecv that the row done completes.
func (x *reader) sendUntil(e *schema.Event, done int64) error {
	if e.SendWorld == null32 {
		return nil
	}
	return x.begin(x.sendAction(e), done)
}

func (x *reader) recv(e *schema.Event, immediate bool, done int64) error {
	if e.RecvWorld == null32 {
		if e.ProcNull == null32 || e.ProcNull&schema.ProcNullRecv == 0 {
			x.notes["Receives that got nothing and were left out"]++
		}
		return nil
	}
	a := Action{Kind: Recv, Rank: e.Rank, Peer: e.RecvWorld, Tag: x.tag(e.Comm, e.RecvTag), Bytes: max(e.RecvBytes, 0)}
	if immediate {
		return x.begin(a, done)
	}
	return x.do(&a)
}

// commOf returns the communicator of a row, nil if nobody knows it.
func (x *reader) commOf(e *schema.Event) (*comm, error) {
	if e.Comm == null32 {
		return nil, nil
	}
	c := x.comms[e.Comm]
	if c == nil {
		return nil, fmt.Errorf("rank %d, seq %d: communicator %d is not in the table comms", e.Rank, e.Seq, e.Comm)
	}
	return c, nil
}

// leavesOut reports whether a collective call on a communicator is left out, and counts it.
func (x *reader) leavesOut(e *schema.Event, c *comm) bool {
	switch {
	case schema.Refused(e.ErrorClass):
		x.notes["Collectives that returned an error and were left out"]++
	case c == nil || c.Inter || c.HasOutside:
		x.notes["Collectives without a communicator, or not of one group of ranks of the run, that were left out"]++
	default:
		return false
	}
	return true
}

// collective passes on a collective call, as it is or as its messages.
func (x *reader) collective(e *schema.Event, call schema.CallID) error {
	c, err := x.commOf(e)
	if err != nil || x.leavesOut(e, c) {
		return err
	}
	return x.together(e, c, call)
}

// together passes on a call that all ranks of a communicator make, as the collective call or as its messages.
func (x *reader) together(e *schema.Event, on *comm, call schema.CallID) error {
	c := x.callOf(e, on, call)
	if x.o.Keep != nil && x.o.Keep(c) {
		a := Action{Kind: CollectiveCall, Rank: e.Rank, Call: c}
		if !c.Blocking {
			return x.begin(a, e.DoneSeq)
		}
		return x.do(&a)
	}
	x.notes.Assume(c)
	if len(c.Members) > 1 || c.Op.IsNeighborhood() {
		x.notes["Calls of collectives that were written as messages"]++
	}
	done := e.Seq
	if !c.Blocking {
		done = e.DoneSeq
	}
	tag := x.tag(e.Comm, collectives)
	for _, round := range c.Rounds() {
		for _, m := range round {
			a := Action{Kind: Recv, Rank: e.Rank, Peer: c.Members[m.Place], Tag: tag, Bytes: m.Bytes}
			if m.Send {
				a.Kind = Send
			}
			if err := x.begin(a, done); err != nil {
				return err
			}
		}
		if c.Blocking {
			if err := x.waits(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// callOf returns the collective call of a row.
func (x *reader) callOf(e *schema.Event, on *comm, call schema.CallID) *Collective {
	op := call.Operation()
	if op == 0 {
		op = schema.CallBarrier
	}
	c := &Collective{Op: op, Blocking: e.Request == null64, Comm: e.Comm, Name: on.Name, Members: on.Members,
		Me: on.placeOf(e.Rank), NoParts: x.noParts}
	if e.RootWorld != null32 {
		c.Root = on.placeOf(e.RootWorld)
	} else if op.Is(schema.FactRooted) {
		c.Root = -1
	}
	c.SendBytes, c.SendUnknown = max(e.SendBytes, 0), e.SendBytes == null64
	c.RecvBytes, c.RecvUnknown = max(e.RecvBytes, 0), e.RecvBytes == null64
	for _, p := range x.parts[rowKey{e.Rank, e.Seq}] {
		if c.SendTo == nil {
			c.SendTo, c.RecvFrom = make([]int64, len(c.Members)), make([]int64, len(c.Members))
		}
		place := on.placeOf(p.PeerWorld)
		c.SendTo[place], c.RecvFrom[place] = max(p.SendBytes, 0), max(p.RecvBytes, 0)
	}
	return c
}
