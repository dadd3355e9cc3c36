package replay

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/commq/commq/schema"
)

// neverTag is the tag of receives that never got a message. MPI guarantees tags up to it, and the schedule sends no
// message with it.
const neverTag = 32767

// procNull is MPI_PROC_NULL in the schedule.
const procNull = -1

// mostBytes is more than any call sends or receives: rows that claim more are wrong.
const mostBytes = 1 << 40

var errUnknownPeer = errors.New("the rank that it sends to is not known")

// scheduler makes the operations of all ranks, row by row.
type scheduler struct {
	comms    *commTable
	types    *typeTable
	found    *findings
	windows  *windowPlan
	notes    notes
	skipping bool // classes of calls are left out
}

// schedule reads the rows and returns the ranks with their operations.
func (s *scheduler) schedule(src *Source, f *filter) ([]*rankState, error) {
	ranks := make([]*rankState, len(src.Ranks))
	early := map[int]bool{}
	for rank := range ranks {
		ranks[rank] = newRankState(int32(rank), &s.found.ranks[rank], s.comms)
		emitEarlyComms(ranks[rank], s.comms, early)
	}
	for range early {
		s.notes.count("Communicators that no call of the run is seen to make, made before its first")
	}
	var e schema.Event
	err := src.Events(func(rows *schema.Events) error {
		for i := range rows.Len() {
			rows.Row(i, &e)
			ok, _, err := f.check(&e) // the survey has counted the notes
			if err != nil {
				return err
			}
			r := ranks[e.Rank]
			if len(r.starting) > 0 && !r.continuesStartall(&e) {
				r.flushStartall()
			}
			if !ok {
				r.leaveOut(&e)
				continue
			}
			if err := s.add(r, &e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, r := range ranks {
		if err := s.finish(r); err != nil {
			return nil, err
		}
	}
	return ranks, nil
}

// finish completes the operations of a rank.
func (s *scheduler) finish(r *rankState) error {
	r.flushStartall()
	r.leaveWindow()
	r.appendWindows(s.windows.list)
	if !r.ended {
		e := schema.NullEvent
		r.emit(opcodes["Finalize"], &e)
	}
	if r.out.recvArea = r.area.end; r.area.end > mostBytes {
		return fmt.Errorf("rank %d has receives of %d bytes open at the same time", r.rank, r.area.end)
	}
	return nil
}

// add makes the operation of a row. With windows only their rows are played, and before them, without computing, the
// rows that make the communicators and persistent requests that they use.
func (s *scheduler) add(r *rankState, e *schema.Event) error {
	if len(s.windows.list) == 0 {
		return s.operation(r, e)
	}
	w := s.windows.played(rowKey{e.Rank, e.Seq})
	if w == nil {
		r.leaveWindow()
		e.ComputeNs, r.pending = 0, 0
		if !s.windows.needs(r, e) {
			return nil
		}
		return s.operation(r, e)
	}
	r.enterWindow(w)
	ok, note := w.contains(r, e, s.comms)
	if note != "" {
		s.notes.count(note)
	}
	if !ok {
		return nil
	}
	return s.operation(r, e)
}

// operation makes the operation of a row.
func (s *scheduler) operation(r *rankState, e *schema.Event) error {
	if r.ended {
		return fmt.Errorf("%s: a call after MPI_Finalize", nameRow(e))
	}
	call, op := schema.CallID(e.Call), opcodeOf[e.Call]
	facts := call.Facts()
	switch {
	case facts&schema.FactCollective != 0:
		return s.collective(r, e)
	case facts&schema.FactProbes != 0:
		return s.probe(r, e, op)
	case facts&(schema.FactSends|schema.FactReceives) == schema.FactSends|schema.FactReceives:
		return s.sendrecv(r, e, op)
	case facts&schema.FactSends != 0:
		return s.send(r, e, op)
	case facts&(schema.FactReceives|schema.FactMatched) == schema.FactReceives|schema.FactMatched:
		return s.matchedReceive(r, e, op)
	case facts&schema.FactReceives != 0:
		return s.receive(r, e, op)
	case facts&schema.FactStarts != 0:
		return s.start(r, e)
	case facts&schema.FactCompletes != 0:
		return s.complete(r, e, op)
	case facts&schema.FactCreatesCommunicator != 0:
		return s.construct(r, e)
	case schema.Class(schema.Calls[call].Class) == schema.ClassComplete:
		return s.request(r, e, op)
	}
	switch schema.Calls[call].Recorder {
	case "init":
		r.leaveOut(e)
	case "finalize":
		r.emit(op, e)
		r.ended = true
	case "plain":
		r.emit(op, e)
	case "pcontrol":
		r.emit(op, e, pcontrolLevel(e.Label))
	case "comm_free":
		r.emit(op, e, s.comms.index(e))
	default:
		return fmt.Errorf("%s: this call cannot be played", nameRow(e))
	}
	return nil
}

// pcontrolLevel returns the level in the label of a row of MPI_Pcontrol.
func pcontrolLevel(label string) int64 {
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

// sendArgs returns count, type, destination and tag.
func (s *scheduler) sendArgs(e *schema.Event) ([]int64, data, error) {
	d := s.types.counted(e.SendCount, e.SendDatatype, e.SendBytes)
	dest := int64(e.SendPeer)
	switch {
	case e.ProcNull != schema.NullInt32 && e.ProcNull&schema.ProcNullSend != 0:
		dest = procNull
	case e.SendPeer == schema.NullInt32:
		return nil, d, fmt.Errorf("%s: %w", nameRow(e), errUnknownPeer)
	}
	if err := checkCount(e, d, s.types); err != nil {
		return nil, d, err
	}
	return []int64{d.count, d.kind, dest, int64(max(e.SendTag, 0))}, d, nil
}

// receiveArgs returns count, type, source and tag of the received message. If no message was received, they are those
// of a message that no rank sends.
func (s *scheduler) receiveArgs(e *schema.Event) ([]int64, data, error) {
	d, from := s.types.counted(e.RecvCount, e.RecvDatatype, e.RecvBytes), envelopeOf(e)
	return []int64{d.count, d.kind, from.source, from.tag}, d, checkCount(e, d, s.types)
}

func receivesProcNull(e *schema.Event) bool {
	return e.ProcNull != schema.NullInt32 && e.ProcNull&schema.ProcNullRecv != 0
}

// checkCount checks that calls without large counts take the count.
func checkCount(e *schema.Event, d data, types *typeTable) error {
	switch {
	case d.count > math.MaxInt32:
		return fmt.Errorf("%s: %d elements are more than a call that has no large counts takes", nameRow(e), d.count)
	case d.count < 0 || types.span(d) > mostBytes:
		return fmt.Errorf("%s: %d elements of %d bytes", nameRow(e), d.count, types.words[d.kind].bytes)
	}
	return nil
}

func (s *scheduler) send(r *rankState, e *schema.Event, op opcode) error {
	args, d, err := s.sendArgs(e)
	if err != nil {
		return err
	}
	call, bytes := schema.CallID(e.Call), s.types.span(d)
	r.reserveSend(bytes)
	if call.Is(schema.FactBuffered) {
		r.reserveBuffered(bytes)
	}
	args = append(args, s.comms.index(e))
	if call.Is(schema.FactMakesRequest) {
		args = append(args, r.post(e, 0, bytes, call.Is(schema.FactPersistent)).slot)
	}
	r.emit(op, e, args...)
	return nil
}

func (s *scheduler) receive(r *rankState, e *schema.Event, op opcode) error {
	args, d, err := s.receiveArgs(e)
	if err != nil {
		return err
	}
	call, bytes := schema.CallID(e.Call), s.types.span(d)
	args = append(args, s.comms.index(e))
	if call.Is(schema.FactBlocking) {
		r.emit(op, e, append(args, r.reserveReceive(bytes))...)
		return nil
	}
	if call.Is(schema.FactPersistent) {
		s.persistentReceive(r, e, op, args, max(bytes, 1))
		return nil
	}
	q := r.post(e, max(bytes, 1), 0, false)
	r.emit(op, e, append(args, q.piece.offset, q.slot)...)
	return nil
}

// matchedReceive receives the message that a matched probe found.
func (s *scheduler) matchedReceive(r *rankState, e *schema.Event, op opcode) error {
	d := s.types.counted(e.RecvCount, e.RecvDatatype, e.RecvBytes)
	if err := checkCount(e, d, s.types); err != nil {
		return err
	}
	message, ok := r.messages[e.InitSeq]
	switch {
	case ok:
		delete(r.messages, e.InitSeq)
	case receivesProcNull(e):
		message = -1 // MPI_MESSAGE_NO_PROC
	default:
		return fmt.Errorf("%s: no probe of the rank found the message that it receives", nameRow(e))
	}
	bytes := s.types.span(d)
	if schema.CallID(e.Call).Is(schema.FactBlocking) {
		r.emit(op, e, d.count, d.kind, message, r.reserveReceive(bytes))
		return nil
	}
	q := r.post(e, max(bytes, 1), 0, false)
	r.emit(op, e, d.count, d.kind, message, q.piece.offset, q.slot)
	return nil
}

func (s *scheduler) probe(r *rankState, e *schema.Event, op opcode) error {
	args, _, err := s.receiveArgs(e)
	if err != nil {
		return err
	}
	if args[3] == neverTag && args[2] == 0 && e.RecvPeer == schema.NullInt32 {
		return fmt.Errorf("%s: the message that it found is not known", nameRow(e))
	}
	args = append(args[2:], s.comms.index(e))
	if schema.CallID(e.Call).Is(schema.FactMatched) {
		r.messages[e.Seq] = r.out.messages
		args = append(args, r.out.messages)
		r.out.messages++
	}
	r.emit(op, e, args...)
	return nil
}

func (s *scheduler) sendrecv(r *rankState, e *schema.Event, op opcode) error {
	args, out, err := s.sendArgs(e)
	if err != nil {
		return err
	}
	in, d, err := s.receiveArgs(e)
	if err != nil {
		return err
	}
	args = append(append(args, in...), s.comms.index(e))
	bytes := max(s.types.span(d), s.types.span(out))
	r.reserveSend(s.types.span(out))
	if schema.CallID(e.Call).Is(schema.FactBlocking) {
		r.emit(op, e, append(args, r.reserveReceive(bytes))...)
		return nil
	}
	q := r.post(e, max(bytes, 1), 0, false)
	r.emit(op, e, append(args, q.piece.offset, q.slot)...)
	return nil
}

// start starts a persistent request; the rows of one MPI_Startall are gathered.
func (s *scheduler) start(r *rankState, e *schema.Event) error {
	q := r.made[e.InitSeq]
	if q == nil {
		if e.InitSeq == schema.NullInt64 && e.Request == schema.NullInt64 {
			r.leaveOut(e)
			s.notes.count("Starts of no request, left out")
			return nil
		}
		return fmt.Errorf("%s: no call of the rank made the request that it starts", nameRow(e))
	}
	q = q.started(e)
	if e.Request != schema.NullInt64 {
		r.requests[e.Request] = q
	}
	r.activate(e, q)
	if e.SendBytes != schema.NullInt64 && q.call.Is(schema.FactBuffered) {
		r.reserveBuffered(e.SendBytes)
	}
	if e.Call == int16(schema.CallStart) {
		r.emit(opcodeOf[e.Call], e, q.slot)
		return nil
	}
	if len(r.starting) == 0 {
		r.startRow = *e
	}
	r.starting = append(r.starting, q)
	return nil
}

// complete makes the operation of a call that completes requests: exactly those that it completed in the run.
func (s *scheduler) complete(r *rankState, e *schema.Event, op opcode) error {
	list := r.done[e.Seq]
	delete(r.done, e.Seq)
	if len(list) == 0 && e.Request != schema.NullInt64 && r.requests[e.Request] == nil {
		if s.skipping { // the request of a call that is left out
			r.leaveOut(e)
			return nil
		}
		return fmt.Errorf("%s: no call of the rank made request %d, which it completes", nameRow(e), e.Request)
	}
	args := []int64{int64(len(list))}
	for _, q := range list {
		args = append(args, q.slot)
		r.complete(q)
	}
	r.emit(op, e, args...)
	return nil
}

// request makes the operation of a call on one request that it does not complete.
func (s *scheduler) request(r *rankState, e *schema.Event, op opcode) error {
	q := r.requests[e.Request]
	if q == nil {
		r.leaveOut(e)
		s.notes.count("Calls on requests that no call of the rank made, left out")
		return nil
	}
	if op != opcodes["Request_free"] {
		r.emit(op, e, q.slot)
		return nil
	}
	row := *e
	for _, q := range q.siblings() {
		r.emit(op, &row, q.slot)
		row.ComputeNs = 0
	}
	return nil
}
