package otf2

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Event records. Numbers up to lastEvent are those of OTF2 3.2.
const (
	evtBufferFlush, evtMeasurement, evtEnter, evtLeave, evtSend, evtIsend, evtIsendComplete = 10, 11, 12, 13, 14, 15, 16

	evtIrecvRequest, evtRecv, evtIrecv, evtRequestTest, evtCancelled, evtCollBegin, evtCollEnd = 17, 18, 19, 20, 21,
		22, 23

	evtOmpFork, evtOmpTaskCreate, evtOmpTaskComplete, evtMetric = 24, 28, 30, 31

	evtWinCreate, evtWinDestroy, evtRmaCollBegin, evtRmaCollEnd, evtRmaRequestLock, evtRmaAcquireLock = 35, 36, 37, 38,
		40, 41

	evtRmaReleaseLock, evtRmaSync, evtRmaPut, evtRmaGet, evtRmaAtomic = 43, 44, 46, 47, 48

	evtRmaCompleteNonBlocking = 50

	evtContextEnter, evtContextLeave, evtIoCreate, evtIoDestroy, evtIoBegin, evtIoIssued, evtIoComplete = 66, 67, 69, 70,
		75, 77, 78

	evtNBCRequest, evtNBCComplete, evtProbe, evtMrecv, evtImrecvRequest, evtImrecv = 85, 86, 89, 90, 91, 92

	firstEvent, lastEvent = 10, 92
)

// eventNames are the names of events that an import skips, in the words of otf2-print.
var eventNames = map[uint8]string{10: "BUFFER_FLUSH", 11: "MEASUREMENT_ON_OFF", 24: "OMP_FORK", 25: "OMP_JOIN",
	26: "OMP_ACQUIRE_LOCK", 27: "OMP_RELEASE_LOCK", 28: "OMP_TASK_CREATE", 29: "OMP_TASK_SWITCH",
	30: "OMP_TASK_COMPLETE", 31: "METRIC", 32: "PARAMETER_STRING", 33: "PARAMETER_INT", 34: "PARAMETER_UNSIGNED_INT",
	39: "RMA_GROUP_SYNC", 42: "RMA_TRY_LOCK", 45: "RMA_WAIT_CHANGE", 49: "RMA_OP_COMPLETE_BLOCKING",
	50: "RMA_OP_COMPLETE_NON_BLOCKING", 51: "RMA_OP_TEST", 52: "RMA_OP_COMPLETE_REMOTE", 53: "THREAD_FORK",
	54: "THREAD_JOIN", 55: "THREAD_TEAM_BEGIN", 56: "THREAD_TEAM_END", 57: "THREAD_ACQUIRE_LOCK",
	58: "THREAD_RELEASE_LOCK", 59: "THREAD_TASK_CREATE", 60: "THREAD_TASK_SWITCH",
	61: "THREAD_TASK_COMPLETE", 62: "THREAD_CREATE", 63: "THREAD_BEGIN", 64: "THREAD_WAIT",
	65: "THREAD_END", 68: "CALLING_CONTEXT_SAMPLE", 69: "IO_CREATE_HANDLE", 70: "IO_DESTROY_HANDLE",
	71: "IO_DUPLICATE_HANDLE", 72: "IO_SEEK", 73: "IO_CHANGE_STATUS_FLAGS", 74: "IO_DELETE_FILE",
	75: "IO_OPERATION_BEGIN", 76: "IO_OPERATION_TEST", 77: "IO_OPERATION_ISSUED",
	78: "IO_OPERATION_COMPLETE", 79: "IO_OPERATION_CANCELLED", 80: "IO_ACQUIRE_LOCK", 81: "IO_RELEASE_LOCK",
	82: "IO_TRY_LOCK", 83: "PROGRAM_BEGIN", 84: "PROGRAM_END", 87: "COMM_CREATE",
	88: "COMM_DESTROY"}

// eventName returns the name of a skipped event.
func eventName(id uint8) string {
	if name, ok := eventNames[id]; ok {
		return name
	}
	return fmt.Sprint("record ", id)
}

// isSingle tells of the numbers of records whether these are one number and have no length.
var isSingle = [256]bool{evtEnter: true, evtLeave: true, evtIsendComplete: true, evtIrecvRequest: true,
	evtRequestTest: true, evtCancelled: true, evtOmpFork: true, evtOmpTaskCreate: true, evtOmpTaskCreate + 1: true,
	evtOmpTaskComplete: true}

const (
	// windowBytes is the part of an event file in memory; longer records enlarge it.
	windowBytes = 64 << 10
	// enough is more than the longest timestamp and record head.
	enough      = 64
	chunkHeader = 18
)

// event is a record of an event file.
type event struct {
	id     uint8
	time   uint64 // as written, in ticks
	number uint64 // of a record that is one number
	fields cursor // of all others
	offset int64  // of the record in the file
}

// stream reads the events of a location. The zero location, with in nil, has none.
type stream struct {
	in    io.ReadCloser
	path  string
	chunk int64 // bytes of a chunk
	head  int64 // where the next chunk begins

	c      cursor // over the window
	window []byte
	base   int64 // offset of the window in the file
	time   uint64
	ended  bool
	eof    bool
}

// openStream opens the event file of a location.
func (a *archive) openStream(location uint64) (*stream, error) {
	in, path, err := a.eventFile(location)
	if err != nil || in == nil {
		return &stream{path: path, ended: true}, err
	}
	return &stream{in: in, path: path, chunk: int64(a.chunkBytes), window: make([]byte, 0, windowBytes)}, nil
}

// close closes the file.
func (s *stream) close() {
	if s.in != nil {
		_ = s.in.Close()
	}
}

// offset returns the offset of the next byte.
func (s *stream) offset() int64 { return s.base + int64(s.c.at) }

func (s *stream) bad(offset int64, format string, args ...any) error {
	return fmt.Errorf("%s: byte %d: %w", s.path, offset, fmt.Errorf(format, args...))
}

// fill brings at least n bytes into the window, or all that are left in the file.
func (s *stream) fill(n int) error {
	if s.c.remaining() >= n || s.eof {
		return nil
	}
	rest := copy(s.window[:cap(s.window)], s.window[s.c.at:])
	s.base += int64(s.c.at)
	if n > cap(s.window) {
		s.window = append(make([]byte, 0, 2*n), s.window[:rest]...)
	}
	s.window = s.window[:cap(s.window)]
	k, err := io.ReadAtLeast(s.in, s.window[rest:], n-rest)
	s.window = s.window[:rest+k]
	s.c.data, s.c.at = s.window, 0
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		s.eof, err = true, nil
	}
	if err != nil {
		return s.bad(s.base+int64(rest+k), "%w", err)
	}
	return nil
}

// next reads the next event; false after the last. Fields of the event are valid until the next call.
func (s *stream) next(e *event) (bool, error) {
	for !s.ended {
		if s.quick(e) {
			return true, nil
		}
		if s.c.remaining() < enough {
			if err := s.fill(enough); err != nil {
				return false, err
			}
		}
		at := s.offset()
		if at >= s.head {
			if s.c.remaining() == 0 && s.eof && at > 0 {
				break // the last chunk is full
			}
			if err := s.header(at); err != nil {
				return false, err
			}
			continue
		}
		id := s.c.uint8()
		if s.c.err != nil {
			return false, s.bad(at, "the file ends without an end mark")
		}
		if id >= firstEvent {
			e.id, e.time, e.offset = id, s.time, at
			return true, s.content(e)
		}
		if err := s.internal(id, at); err != nil {
			return false, err
		}
	}
	s.ended = true
	return false, nil
}

// quick reads the next event if it and its timestamp are whole in the window and end well before it and their chunk do,
// as nearly all are; else false, and next reads on from there, with all checks.
func (s *stream) quick(e *event) bool {
	if s.c.big || s.c.err != nil {
		return false
	}
	data := s.c.data
	if inChunk := s.head - s.base; inChunk < int64(len(data)) {
		data = data[:max(inChunk, 0)]
	}
	for at := s.c.at; at+enough <= len(data); at = s.c.at {
		id, n := data[at], int(data[at+1])
		switch {
		case id == recordTimestamp:
			s.time = binary.LittleEndian.Uint64(data[at+1:])
			s.c.at += 9
			continue
		case id < firstEvent:
			return false
		case isSingle[id]:
			if n > 8 {
				return false
			}
			e.number = binary.LittleEndian.Uint64(data[at+2:]) & (1<<(8*n) - 1)
		default:
			if n == 255 || at+2+n > len(data) {
				return false
			}
			e.fields = cursor{data: data[:at+2+n], at: at + 2}
		}
		e.id, e.time, e.offset = id, s.time, s.base+int64(at)
		s.c.at += 2 + n
		return true
	}
	return false
}

// header reads what each chunk begins with.
func (s *stream) header(at int64) error {
	if at > s.head {
		return s.bad(at, "a record goes on beyond its chunk, which ends at byte %d", s.head)
	}
	s.head += s.chunk
	s.c.header()
	if s.c.need(16) {
		s.c.at += 16
	}
	if s.c.err != nil {
		return s.bad(at, "%w", s.c.err)
	}
	return nil
}

// internal reads a record that is no event.
func (s *stream) internal(id uint8, at int64) error {
	switch id {
	case recordTimestamp:
		if s.time = s.c.full64(); s.c.err != nil {
			return s.bad(at, "timestamp: %w", s.c.err)
		}
	case recordAttributes:
		var skipped event
		return s.record(&skipped, at)
	case recordEndOfChunk:
		return s.skip(s.head - s.offset())
	case recordEndOfFile, recordEndOfBuffer:
		s.ended = true
	default:
		return s.bad(at, "record %d is unknown", id)
	}
	return nil
}

// skip passes over n bytes.
func (s *stream) skip(n int64) error {
	for n > 0 {
		if err := s.fill(1); err != nil {
			return err
		}
		k := min(n, int64(s.c.remaining()))
		if k == 0 {
			return nil
		}
		s.c.at += int(k)
		n -= k
	}
	return nil
}

// content reads what follows the number of an event.
func (s *stream) content(e *event) error {
	if !isSingle[e.id] {
		return s.record(e, e.offset)
	}
	if e.number = s.c.uint64(); s.c.err != nil {
		return s.bad(e.offset, "event %d: %w", e.id, s.c.err)
	}
	return nil
}

// record reads a record with a length.
func (s *stream) record(e *event, at int64) error {
	before := s.c.at
	if e.fields = s.c.record(); s.c.err == nil {
		return nil
	}
	// It goes on beyond the window.
	head := cursor{data: s.c.data, at: before, big: s.c.big}
	n, first := uint64(head.uint8()), 1
	if n == 255 {
		n, first = head.full64(), 9
	}
	if head.err != nil || n > uint64(s.chunk) {
		return s.bad(at, "event %d has a length of %d bytes, in chunks of %d", e.id, n, s.chunk)
	}
	s.c.at, s.c.err = before, nil
	if err := s.fill(first + int(n)); err != nil {
		return err
	}
	if e.fields = s.c.record(); s.c.err != nil {
		return s.bad(at, "event %d: %w", e.id, s.c.err)
	}
	return nil
}
