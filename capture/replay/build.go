package replay

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/commq/commq/schema"
)

// neverTag is the tag of receives that never got a message: MPI has tags up to it at least, and no message is sent with it here.
const neverTag = 32767

// rankState is what is known of a rank while its operations are made.
type rankState struct {
	rank         int32
	last         int64 // seq
	firstUse     map[int32]int64
	constructors []constructor
	starts       map[int64]*schema.Event // first start of persistent collectives, by the row that made them
	inits        map[int64]schema.CallID // rows that made persistent collectives
	spares       int

	out      rankSchedule
	pending  int64 // compute time of rows that are left out, ns
	area     area
	requests map[int64]*request   // open, by serial number
	made     map[int64]*request   // persistent, by row
	done     map[int64][]*request // that a row completes, by row
	messages map[int64]int64      // of matched probes, by row
	free     []int64              // slots of requests
	starting []*request           // of an MPI_Startall whose other rows follow
	startRow schema.Event
	ended    bool
	window   *windowState // that its rows are in; nil: none
	before   []int64      // words before it
}

// request is a request of a rank.
type request struct {
	slot       int64
	piece      piece
	persistent bool
	over       bool          // completed
	call       schema.CallID // that made it
}

// emit appends an operation: its code, flags and number of arguments, the compute time before it, its row, and the arguments.
func (s *rankState) emit(op opcode, e *schema.Event, args ...int64) {
	flags := int64(0)
	if e.ErrorClass != schema.NullInt32 {
		flags = flagMayFail
	}
	compute := s.pending + max(e.ComputeNs, 0)
	s.pending = 0
	s.out.words = append(s.out.words, int64(op)|flags<<16|int64(len(args))<<32, compute, e.Seq)
	s.out.words = append(s.out.words, args...)
}

// post makes a request of a row, completed by the row that done_seq names.
func (s *rankState) post(e *schema.Event, recvBytes, sendBytes int64, persistent bool) *request {
	r := &request{persistent: persistent, call: schema.CallID(e.Call)}
	if recvBytes > 0 {
		r.piece = s.area.take(recvBytes)
	}
	s.sends(sendBytes)
	if n := len(s.free); n > 0 {
		r.slot = s.free[n-1]
		s.free = s.free[:n-1]
	} else {
		r.slot = s.out.requests
		s.out.requests++
	}
	if e.Request != schema.NullInt64 {
		s.requests[e.Request] = r
	}
	if persistent {
		s.made[e.Seq] = r
	} else {
		s.completedBy(e, r)
	}
	return r
}

// completedBy notes which row completes a request.
func (s *rankState) completedBy(e *schema.Event, r *request) {
	r.over = false
	if s.window != nil && !slices.Contains(s.window.posted[s.rank], r) {
		s.window.posted[s.rank] = append(s.window.posted[s.rank], r)
	}
	if e.DoneSeq != schema.NullInt64 {
		s.done[e.DoneSeq] = append(s.done[e.DoneSeq], r)
	}
}

// sends sees to it that the send area has so many bytes.
func (s *rankState) sends(bytes int64) { s.out.sendArea = max(s.out.sendArea, bytes) }

// room is the offset of a piece of the receive area for the time of one call.
func (s *rankState) room(bytes int64) int64 {
	p := s.area.take(bytes)
	s.area.give(p)
	return p.at
}

// build makes the operations of all ranks.
func (b *builder) build() error {
	for i := range b.ranks {
		s := &b.ranks[i]
		s.last = -1
		s.requests, s.made, s.done, s.messages = map[int64]*request{}, map[int64]*request{}, map[int64][]*request{}, map[int64]int64{}
		s.out.self = -1
		for k, c := range b.comms {
			if c.kind == schema.CommSelf && c.groups[0][0] == s.rank {
				s.out.self = int64(k)
			}
		}
		b.before(s)
	}
	var e schema.Event
	err := b.src.Events(func(rows *schema.Events) error {
		for i := range rows.Len() {
			rows.Row(i, &e)
			ok, err := b.unnoted(&e)
			if err != nil {
				return err
			}
			s := &b.ranks[e.Rank]
			if len(s.starting) > 0 && !s.continues(&e) {
				s.startall()
			}
			if !ok {
				s.pending += max(e.ComputeNs, 0)
				continue
			}
			make := b.row
			if len(b.windows) > 0 {
				make = b.windowRow
			}
			if err := make(s, &e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range b.ranks {
		s := &b.ranks[i]
		if len(s.starting) > 0 {
			s.startall()
		}
		s.leave()
		b.appendWindows(s)
		if !s.ended {
			e := schema.NullEvent
			s.emit(opcodes["Finalize"], &e)
		}
		if s.out.recvArea = s.area.end; s.area.end > mostBytes {
			return fmt.Errorf("rank %d has receives of %d bytes open at a time", s.rank, s.area.end)
		}
		b.out.ranks = append(b.out.ranks, s.out)
	}
	b.out.init = int64(b.level)
	return nil
}

// unnoted is playable for the second time.
func (b *builder) unnoted(e *schema.Event) (bool, error) {
	notes := b.notes
	b.notes = map[string]int64{}
	ok, err := b.playable(e)
	b.notes = notes
	return ok, err
}

// row makes the operation of a row.
func (b *builder) row(s *rankState, e *schema.Event) error {
	if s.ended {
		return fmt.Errorf("%s: a call after MPI_Finalize", at(e))
	}
	c := &schema.Calls[e.Call]
	op := opcodeOf[e.Call]
	switch c.Recorder {
	case "init":
		s.pending += max(e.ComputeNs, 0)
		return nil
	case "finalize":
		s.emit(op, e)
		s.ended = true
		return nil
	case "send", "isend", "send_init":
		return b.send(s, e, op)
	case "recv", "irecv", "recv_init":
		return b.recv(s, e, op)
	case "mrecv", "imrecv":
		return b.mrecv(s, e, op)
	case "probe", "iprobe", "mprobe", "improbe":
		return b.probe(s, e, op)
	case "sendrecv", "isendrecv":
		return b.sendrecv(s, e, op)
	case "start", "startall":
		return b.start(s, e)
	case "wait", "waitall", "waitany", "waitsome", "test", "testall", "testany", "testsome":
		return b.completes(s, e, op)
	case "request_get_status", "request_free", "cancel":
		return b.request(s, e, op)
	case "plain":
		s.emit(op, e)
		return nil
	case "pcontrol":
		s.emit(op, e, level(e.Label))
		return nil
	case "comm_new", "comm_idup":
		return b.construct(s, e)
	case "comm_free":
		s.emit(op, e, b.comm(e))
		return nil
	case "collective", "icollective", "collective_init":
		return b.collective(s, e)
	}
	return fmt.Errorf("%s: this call cannot be played", at(e))
}

// level is that of a row of MPI_Pcontrol.
func level(label string) int64 {
	switch label {
	case "off":
		return 0
	case "on":
		return 1
	}
	if n, err := strconv.ParseInt(label, 10, 32); err == nil {
		return n
	}
	return 2
}

// comm is the index of a row's communicator.
func (b *builder) comm(e *schema.Event) int64 {
	if k, ok := b.commOf[e.Comm]; ok {
		return int64(k)
	}
	return int64(b.commOf[0])
}

// procNull is what stands for MPI_PROC_NULL in the schedule.
const procNull = -1

var errNobody = errors.New("whom it sends to is not known")

// sendSide are count, type, destination and tag.
func (b *builder) sendSide(s *rankState, e *schema.Event) ([]int64, data, error) {
	d := b.counted(e.SendCount, e.SendDatatype, e.SendBytes)
	dest := int64(e.SendPeer)
	switch {
	case e.ProcNull != schema.NullInt32 && e.ProcNull&schema.ProcNullSend != 0:
		dest = procNull
	case e.SendPeer == schema.NullInt32:
		return nil, d, fmt.Errorf("%s: %w", at(e), errNobody)
	}
	if err := b.fits(e, d); err != nil {
		return nil, d, err
	}
	return []int64{d.count, d.kind, dest, int64(max(e.SendTag, 0))}, d, nil
}

// mostBytes is more than any call sends or receives: rows that say more are wrong.
const mostBytes = 1 << 40

// fits says that a count is one that the calls for small counts take.
func (b *builder) fits(e *schema.Event, d data) error {
	switch {
	case d.count > math.MaxInt32:
		return fmt.Errorf("%s: %d elements are more than a call that has no large counts takes", at(e), d.count)
	case d.count < 0 || b.span(d) > mostBytes:
		return fmt.Errorf("%s: %d elements of %d bytes", at(e), d.count, b.out.types[d.kind].bytes)
	}
	return nil
}

// recvSide are count, type, source and tag: those of what was received, or where nothing was those of a message that nobody sends.
func (b *builder) recvSide(e *schema.Event) ([]int64, data, error) {
	d := b.counted(e.RecvCount, e.RecvDatatype, e.RecvBytes)
	source, tag := int64(e.RecvPeer), int64(e.RecvTag)
	switch {
	case e.ProcNull != schema.NullInt32 && e.ProcNull&schema.ProcNullRecv != 0:
		source, tag = procNull, int64(max(e.RecvTag, 0))
	case e.RecvPeer == schema.NullInt32 || e.RecvTag == schema.NullInt32:
		source, tag = 0, neverTag
	}
	return []int64{d.count, d.kind, source, tag}, d, b.fits(e, d)
}

func (b *builder) send(s *rankState, e *schema.Event, op opcode) error {
	args, d, err := b.sendSide(s, e)
	if err != nil {
		return err
	}
	name := opNames[op-1]
	s.sends(b.span(d))
	if name[0] == 'B' || name[:2] == "Ib" {
		s.buffered(b, d)
	}
	args = append(args, b.comm(e))
	if name[0] == 'I' || len(name) > 5 && name[len(name)-5:] == "_init" {
		r := s.post(e, 0, b.span(d), schema.Class(e.Class) == schema.ClassOther)
		args = append(args, r.slot)
	}
	s.emit(op, e, args...)
	return nil
}

// overhead is more than what an MPI library adds to a buffered message, in bytes.
const overhead = 512

// buffered sees to it that there is room for another buffered message. How many are there at a time is not known: for all of them, up to a bound.
func (s *rankState) buffered(b *builder, d data) {
	const most = 256 << 20
	s.out.bsend = max(min(s.out.bsend+b.span(d)+overhead, most), b.span(d)+overhead)
}

func (b *builder) recv(s *rankState, e *schema.Event, op opcode) error {
	args, d, err := b.recvSide(e)
	if err != nil {
		return err
	}
	if op == opcodes["Recv"] {
		s.emit(op, e, append(args, b.comm(e), s.room(b.span(d)))...)
		return nil
	}
	r := s.post(e, max(b.span(d), 1), 0, schema.Class(e.Class) == schema.ClassOther)
	s.emit(op, e, append(args, b.comm(e), r.piece.at, r.slot)...)
	return nil
}

// mrecv receives what a matched probe found.
func (b *builder) mrecv(s *rankState, e *schema.Event, op opcode) error {
	d := b.counted(e.RecvCount, e.RecvDatatype, e.RecvBytes)
	if err := b.fits(e, d); err != nil {
		return err
	}
	slot, ok := s.messages[e.InitSeq]
	switch {
	case ok:
		delete(s.messages, e.InitSeq)
	case e.ProcNull != schema.NullInt32 && e.ProcNull&schema.ProcNullRecv != 0:
		slot = -1 // MPI_MESSAGE_NO_PROC
	default:
		return fmt.Errorf("%s: no probe of the rank found the message that it receives", at(e))
	}
	if op == opcodes["Mrecv"] {
		s.emit(op, e, d.count, d.kind, slot, s.room(b.span(d)))
		return nil
	}
	r := s.post(e, max(b.span(d), 1), 0, false)
	s.emit(op, e, d.count, d.kind, slot, r.piece.at, r.slot)
	return nil
}

func (b *builder) probe(s *rankState, e *schema.Event, op opcode) error {
	args, _, err := b.recvSide(e)
	if err != nil {
		return err
	}
	if args[3] == neverTag && args[2] == 0 && e.RecvPeer == schema.NullInt32 {
		return fmt.Errorf("%s: what it found is not known", at(e))
	}
	args = append(args[2:], b.comm(e))
	if schema.Calls[e.Call].Recorder == "mprobe" || schema.Calls[e.Call].Recorder == "improbe" {
		s.messages[e.Seq] = s.out.messages
		args = append(args, s.out.messages)
		s.out.messages++
	}
	s.emit(op, e, args...)
	return nil
}

func (b *builder) sendrecv(s *rankState, e *schema.Event, op opcode) error {
	args, out, err := b.sendSide(s, e)
	if err != nil {
		return err
	}
	in, d, err := b.recvSide(e)
	if err != nil {
		return err
	}
	args = append(append(args, in...), b.comm(e))
	bytes := max(b.span(d), b.span(out))
	s.sends(b.span(out))
	if op == opcodes["Sendrecv"] || op == opcodes["Sendrecv_replace"] {
		s.emit(op, e, append(args, s.room(bytes))...)
		return nil
	}
	r := s.post(e, max(bytes, 1), 0, false)
	s.emit(op, e, append(args, r.piece.at, r.slot)...)
	return nil
}

// start starts a persistent request: rows of MPI_Startall are gathered.
func (b *builder) start(s *rankState, e *schema.Event) error {
	r := s.made[e.InitSeq]
	if r == nil {
		if e.InitSeq == schema.NullInt64 && e.Request == schema.NullInt64 {
			s.pending += max(e.ComputeNs, 0)
			b.note("Starts of no request, left out")
			return nil
		}
		return fmt.Errorf("%s: no call of the rank made the request that it starts", at(e))
	}
	if e.Request != schema.NullInt64 {
		s.requests[e.Request] = r
	}
	s.completedBy(e, r)
	if e.SendBytes != schema.NullInt64 && (r.call == schema.CallBsendInit || r.call == schema.CallBsendInitC) {
		s.buffered(b, data{e.SendBytes, typeOfBytes})
	}
	if e.Call == int16(schema.CallStart) {
		s.emit(opcodeOf[e.Call], e, r.slot)
		return nil
	}
	if len(s.starting) == 0 {
		s.startRow = *e
	}
	s.starting = append(s.starting, r)
	return nil
}

// continues says whether the row is another request of the MPI_Startall before it: it has no compute time of its own, and the request is another.
func (s *rankState) continues(e *schema.Event) bool {
	f := &s.startRow
	if e.Call != f.Call || e.Callsite != f.Callsite || e.ComputeNs != schema.NullInt64 && e.ComputeNs != 0 || e.StartNs != f.EndNs {
		return false
	}
	r := s.made[e.InitSeq]
	for _, x := range s.starting {
		if x == r {
			return false
		}
	}
	return true
}

func (s *rankState) startall() {
	args := []int64{int64(len(s.starting))}
	for _, r := range s.starting {
		args = append(args, r.slot)
	}
	s.emit(opcodes["Startall"], &s.startRow, args...)
	s.starting = s.starting[:0]
}

// completes makes the operation of a call that completes requests: exactly those that it did.
func (b *builder) completes(s *rankState, e *schema.Event, op opcode) error {
	list := s.done[e.Seq]
	delete(s.done, e.Seq)
	if len(list) == 0 && e.Request != schema.NullInt64 && s.requests[e.Request] == nil {
		if len(b.o.Skip) > 0 { // that of a call which is left out
			s.pending += max(e.ComputeNs, 0)
			return nil
		}
		return fmt.Errorf("%s: no call of the rank made request %d, which it completes", at(e), e.Request)
	}
	args := []int64{int64(len(list))}
	for _, r := range list {
		args = append(args, r.slot)
		r.over = true
		if !r.persistent {
			s.free = append(s.free, r.slot)
			s.area.give(r.piece)
		}
	}
	s.emit(op, e, args...)
	return nil
}

// request makes the operation of a call about one request that it does not complete.
func (b *builder) request(s *rankState, e *schema.Event, op opcode) error {
	r := s.requests[e.Request]
	if r == nil {
		s.pending += max(e.ComputeNs, 0)
		b.note("Calls about a request that nothing is known of, left out")
		return nil
	}
	s.emit(op, e, r.slot)
	return nil
}

func outOfOrder(e *schema.Event, last int64) error {
	return fmt.Errorf("%s: it comes after row %d of the rank", at(e), last)
}

func notMember(e *schema.Event) error {
	return fmt.Errorf("%s: the rank is no member of communicator %d", at(e), e.Comm)
}
