// Package simrank is the commq process beside a simulator rank. It tells the ranks of the program when messages
// arrive and when collectives end, and writes their records into the spool. capture/shim/src/sim.h describes the
// events; event.go has the same in Go.
//
// simulator (simrank.go) reads events and computes times, answers sends the answers, disk writes the records.
package simrank

import "encoding/binary"

// Version is CQ_SIM_VERSION, EventBytes the size of an event on the pipe, RecordBytes the most bytes that follow a
// RECORDS event (CQ_SIM_DATA).
const (
	Version     = 1
	EventBytes  = 72
	RecordBytes = 64 << 10
)

// Kind is the kind of an event.
type Kind uint16

// Kinds of events from the ranks of the program, and of the answers to them.
const (
	Hello   Kind = 1
	Sent    Kind = 2
	Entered Kind = 3
	Records Kind = 4
	Sync    Kind = 5
	Left    Kind = 6

	Arrives Kind = 17
	Leaves  Kind = 18
	Synced  Kind = 19
	Gone    Kind = 20
)

// FlagRoot is set when the rank is the root of the collective.
const FlagRoot = 1

// Event is cq_sim_event, field by field; the comments there tell which fields a kind uses.
type Event struct {
	Kind     Kind
	Call     uint16
	Rank     int32
	Peer     int32
	Tag      int32
	Flags    uint32
	Spare    int32
	Key      uint64
	N        uint64
	TimePs   int64
	DelayPs  int64
	Bytes    int64
	Received int64
}

// decode reads an event from its bytes.
func (e *Event) decode(b []byte) {
	_ = b[EventBytes-1]
	o := binary.LittleEndian
	e.Kind = Kind(o.Uint16(b[0:]))
	e.Call = o.Uint16(b[2:])
	e.Rank = int32(o.Uint32(b[4:]))
	e.Peer = int32(o.Uint32(b[8:]))
	e.Tag = int32(o.Uint32(b[12:]))
	e.Flags = o.Uint32(b[16:])
	e.Spare = int32(o.Uint32(b[20:]))
	e.Key = o.Uint64(b[24:])
	e.N = o.Uint64(b[32:])
	e.TimePs = int64(o.Uint64(b[40:]))
	e.DelayPs = int64(o.Uint64(b[48:]))
	e.Bytes = int64(o.Uint64(b[56:]))
	e.Received = int64(o.Uint64(b[64:]))
}

// append appends the bytes of an event to b.
func (e *Event) append(b []byte) []byte {
	o := binary.LittleEndian
	b = o.AppendUint16(b, uint16(e.Kind))
	b = o.AppendUint16(b, e.Call)
	b = o.AppendUint32(b, uint32(e.Rank))
	b = o.AppendUint32(b, uint32(e.Peer))
	b = o.AppendUint32(b, uint32(e.Tag))
	b = o.AppendUint32(b, e.Flags)
	b = o.AppendUint32(b, uint32(e.Spare))
	b = o.AppendUint64(b, e.Key)
	b = o.AppendUint64(b, e.N)
	b = o.AppendUint64(b, uint64(e.TimePs))
	b = o.AppendUint64(b, uint64(e.DelayPs))
	b = o.AppendUint64(b, uint64(e.Bytes))
	return o.AppendUint64(b, uint64(e.Received))
}
