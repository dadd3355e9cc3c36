// Package spoolgen writes spool files as the shim does, for tests and benchmarks that need records without MPI.
package spoolgen

import (
	"bufio"
	"fmt"
	"io"
	"unsafe"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// Writer writes one spool file. The first error of the underlying writer sticks and is returned by Close.
type Writer struct {
	w   *bufio.Writer
	err error

	sums   bool         // write SUM slots
	number uint32       // of the next of them
	from   uint64       // the first slot that none covers yet
	slots  []spool.Call // from there on
	header spool.Header
}

// sumEvery is how many slots a SUM slot covers.
const sumEvery = 64

// NewWriter writes the header and returns a Writer for the slots after it. It fills in the fields that are the same
// in all spool files: magic, sizes and version. With h.Sums there are SUM slots.
func NewWriter(w io.Writer, h spool.Header) *Writer {
	copy(h.Magic[:], spool.Magic)
	h.HeaderBytes, h.SlotBytes, h.Version = spool.HeaderBytes, spool.SlotBytes, spool.Version
	s := &Writer{w: bufio.NewWriterSize(w, 1<<18), sums: h.Sums != 0}
	s.header = h
	s.write(unsafe.Slice((*byte)(unsafe.Pointer(&h)), unsafe.Sizeof(h)))
	return s
}

// FileName is the name of a spool file.
func FileName(h *spool.Header) string {
	return fmt.Sprintf("%016x.%d.%d%s", h.Job, h.Rank, h.Thread, spool.Suffix)
}

// NewCall is a CALL slot. Its fields have the values that the shim writes when a call does not use them.
func NewCall(call schema.CallID, t0, t1 uint64) spool.Call {
	return spool.Call{Call: uint16(call), Kind: spool.KindCall, T0: t0, T1: t1,
		Comm: schema.NullInt32, Peer: schema.NullInt32, Tag: schema.NullInt32, Dtype: schema.NullInt32}
}

// NewColl is a COLL slot without an operation or arguments.
func NewColl(instance uint64) spool.Coll {
	return spool.Coll{Kind: spool.KindColl, Op: 0xffff, Rdtype: schema.NullInt32, Instance: instance,
		Rcount: schema.NullInt64, Sbytes: schema.NullInt64, Rbytes: schema.NullInt64}
}

// NewRMA is an RMA slot of a window without arguments.
func NewRMA(window int32) spool.RMA {
	return spool.RMA{Kind: spool.KindRMA, Op: 0xffff, Window: window, Tdtype: schema.NullInt32,
		Rdtype: schema.NullInt32,
		Disp:   schema.NullInt64, Tcount: schema.NullInt64, Rcount: schema.NullInt64, Obytes: schema.NullInt64,
		Tbytes: schema.NullInt64}
}

// NewIO is an IO slot of a call on a file. bytes is what the call moved, or schema.NullInt64.
func NewIO(file int32, bytes int64) spool.IO {
	return spool.IO{Kind: spool.KindIO, File: file, Offset: schema.NullInt64, Bytes: bytes}
}

// RMA writes an RMA slot.
func (s *Writer) RMA(c spool.RMA) { c.Kind = spool.KindRMA; put(s, &c) }

// IO writes an IO slot.
func (s *Writer) IO(c spool.IO) { c.Kind = spool.KindIO; put(s, &c) }

// Call writes a CALL slot.
func (s *Writer) Call(c *spool.Call) { put(s, c) }

// Side writes a SIDE slot.
func (s *Writer) Side(c spool.Side) { c.Kind = spool.KindSide; put(s, &c) }

// Coll writes a COLL slot.
func (s *Writer) Coll(c spool.Coll) { c.Kind = spool.KindColl; put(s, &c) }

// Pre writes a PRE slot.
func (s *Writer) Pre(c spool.Pre) { c.Kind = spool.KindPre; put(s, &c) }

// Wide writes a WIDE slot.
func (s *Writer) Wide(what uint16, value int64) {
	put(s, &spool.Wide{What: what, Kind: spool.KindWide, Value: value})
}

// Err writes an ERR slot.
func (s *Writer) Err(class int32) { put(s, &spool.Err{Kind: spool.KindErr, ErrorClass: class}) }

// Truncate writes the ERR slot of a call that failed with MPI_ERR_TRUNCATE, whose value in the MPI library is class.
func (s *Writer) Truncate(class int32) {
	put(s, &spool.Err{Kind: spool.KindErr, Flags: spool.TruncateError, ErrorClass: class})
}

// Parts writes PARTS slots, two entries each.
func (s *Writer) Parts(parts ...spool.Part) {
	for len(parts) > 0 {
		slot := spool.Parts{Kind: spool.KindParts}
		slot.N = uint16(copy(slot.Part[:], parts))
		parts = parts[slot.N:]
		put(s, &slot)
	}
}

// Done writes DONE slots, two entries each.
func (s *Writer) Done(done ...spool.DoneEntry) {
	for len(done) > 0 {
		slot := spool.Done{Kind: spool.KindDone}
		slot.N = uint16(copy(slot.Done[:], done))
		done = done[slot.N:]
		put(s, &slot)
	}
}

// Hash writes a HASH slot.
func (s *Writer) Hash(h spool.Hashes) { h.Kind = spool.KindHash; put(s, &h) }

// Pair is a started persistent request: its new serial number, and that of the call that made it.
type Pair struct{ Req, Template uint32 }

// Start writes START slots, seven entries each.
func (s *Writer) Start(pairs ...Pair) {
	for len(pairs) > 0 {
		slot := spool.Start{Kind: spool.KindStart}
		for i := range slot.Start {
			if i < len(pairs) {
				slot.Start[i].Req, slot.Start[i].Template = pairs[i].Req, pairs[i].Template
				slot.N++
			}
		}
		pairs = pairs[slot.N:]
		put(s, &slot)
	}
}

// DefComm writes the definition of a communicator; lists are its members, remote members, extents, periods and edges in
// the order of the layout, with the lengths in def.
func (s *Writer) DefComm(id int64, def spool.CommDef, lists ...[]int32) {
	payload := append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&def)), unsafe.Sizeof(def))...)
	for _, l := range lists {
		if len(l) > 0 {
			payload = append(payload, unsafe.Slice((*byte)(unsafe.Pointer(&l[0])), 4*len(l))...)
		}
	}
	s.Def(spool.DefComm, id, payload)
}

// DefType writes the definition of a datatype.
func (s *Writer) DefType(id int64, name string, combiner int32, bytes, extent int64) {
	def := spool.TypeDef{Bytes: bytes, Extent: extent, Combiner: combiner}
	s.Def(spool.DefType, id, append(append([]byte(nil),
		unsafe.Slice((*byte)(unsafe.Pointer(&def)), unsafe.Sizeof(def))...), name...))
}

// DefClock writes a pair of clock readings.
func (s *Writer) DefClock(tick uint64, ns int64) {
	pair := [2]uint64{tick, uint64(ns)}
	s.Def(spool.DefClock, 0, unsafe.Slice((*byte)(unsafe.Pointer(&pair)), unsafe.Sizeof(pair)))
}

// Def writes a DEF slot and its payload.
func (s *Writer) Def(what uint16, id int64, payload []byte) {
	put(s, &spool.Def{What: what, Kind: spool.KindDef, Bytes: uint32(len(payload)), ID: id})
	for len(payload) > 0 {
		b := spool.Blob{Kind: spool.KindBlob}
		b.N = uint16(copy(b.Data[:], payload))
		payload = payload[b.N:]
		put(s, &b)
	}
}

// Zeros writes n unused slots, as they follow the last record of a process that was killed.
func (s *Writer) Zeros(n int) {
	for range n {
		put(s, &spool.Call{})
	}
}

// Sum writes a SUM slot that covers all slots before it.
func (s *Writer) Sum() {
	c := spool.Sum{Number: s.number, From: s.from, N: uint64(len(s.slots)), CRC: spool.SumSlots(s.slots)}
	c.Seal()
	s.number++
	s.from += c.N
	s.slots = s.slots[:0]
	put(s, &c)
}

// Sealed returns the header of a file with sums as the process leaves it at its end, after Close.
func (s *Writer) Sealed() []byte {
	h := s.header
	h.Summed = s.from
	h.Slots = s.from + uint64(len(s.slots))
	h.Seal()
	return unsafe.Slice((*byte)(unsafe.Pointer(&h)), unsafe.Sizeof(h))
}

// Close writes what is buffered and returns the first error.
func (s *Writer) Close() error {
	if s.sums && len(s.slots) > 1 {
		s.Sum()
	}
	if s.err == nil {
		s.err = s.w.Flush()
	}
	return s.err
}

func put[T any](s *Writer, slot *T) {
	s.write(unsafe.Slice((*byte)(unsafe.Pointer(slot)), unsafe.Sizeof(*slot)))
	if !s.sums {
		return
	}
	s.slots = append(s.slots, *(*spool.Call)(unsafe.Pointer(slot)))
	if len(s.slots) > sumEvery {
		s.Sum()
	}
}

func (s *Writer) write(b []byte) {
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
}
