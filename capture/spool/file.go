package spool

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/schema"
)

// File is an open spool file.
type File struct {
	// Name is the path of the file, for messages.
	Name string
	// Header is a copy of the file's header.
	Header Header
	// Doubtful means that the header's checksum does not fit. Its fields are in range but may be wrong; the slots have
	// checksums of their own.
	Doubtful bool

	n       int          // slots
	slots   []Call       // pages of the file, mapped read-only; nil if they are packed
	packed  *packedSlots // nil if they are not
	damaged []Damage     // blocks of packed slots
	mapped  []byte
	failed  error // the first one of unpacking
}

// Err is the first error of a reader of the file that could not unpack slots. It took them for slots of kind End.
func (f *File) Err() error { return f.failed }

// Len is how many slots the file has room for. Those after the first one of kind End are unused.
func (f *File) Len() int { return f.n }

// Cut leaves out the slots from a number on. Readers that were made before may still return them.
func (f *File) Cut(n int) {
	n = min(n, f.n)
	f.n = n
	if f.packed == nil {
		f.slots = f.slots[:n]
	}
}

// ErrUnwritten means that a file has no header: its process makes it just now, or was killed while it did. Then it has
// recorded no call.
var ErrUnwritten = errors.New("no header is written: the process was killed while it made the file")

// Open maps a spool file and checks its header. Errors name the file and what is wrong with it. Slots must not be used
// after Close.
func Open(path string) (*File, error) {
	f, size, err := bounded.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size == 0 {
		return nil, fmt.Errorf("%s: %w", path, ErrUnwritten)
	}
	if size < HeaderBytes {
		return nil, fmt.Errorf("%s: %d bytes, less than a header: not a spool file, or cut short", path, size)
	}
	if int64(int(size)) != size {
		return nil, fmt.Errorf("%s: %d bytes are more than this machine can map", path, size)
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	s, err := Parse(path, data)
	if errors.Is(err, ErrUnwritten) && len(bytes.TrimLeft(data, "\x00")) > 0 {
		err = fmt.Errorf("%s: damaged header: it is all zeros, and records follow", path)
	}
	if err == nil && s.Header.Packed != 0 {
		if err = syscall.Munmap(data); err == nil {
			return openPacked(path, &s.Header)
		}
		return nil, err
	}
	if err != nil {
		return nil, errors.Join(err, syscall.Munmap(data))
	}
	s.mapped = data
	return s, nil
}

// Parse reads a spool file from memory that is 8-byte aligned. The File shares the memory of data. Of a file whose
// slots are packed it reads the header only.
func Parse(name string, data []byte) (*File, error) {
	if len(data) < HeaderBytes {
		return nil, fmt.Errorf("%s: %d bytes, less than a header: not a spool file, or cut short", name, len(data))
	}
	f := &File{Name: name, Header: *(*Header)(unsafe.Pointer(&data[0]))}
	if f.Header == (Header{}) {
		return nil, fmt.Errorf("%s: %w", name, ErrUnwritten)
	}
	if err := f.Header.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f.Doubtful = !f.Header.fits()
	if f.Header.Packed != 0 {
		return f, nil
	}
	body := data[HeaderBytes:]
	slots := len(body) / SlotBytes
	if err := f.checkTail(body[slots*SlotBytes:]); err != nil {
		return nil, err
	}
	if slots > 0 {
		f.slots, f.n = unsafe.Slice((*Call)(unsafe.Pointer(&body[0])), slots), slots
	}
	return f, nil
}

// checkTail checks the bytes after the last complete slot. There may only be zeros, from a process that was killed.
func (f *File) checkTail(tail []byte) error {
	if len(tail) == 0 || f.Header.Ended != EndedFinalized && len(bytes.Trim(tail, "\x00")) == 0 {
		return nil
	}
	return fmt.Errorf("%s: ends within a record, %d bytes into it: the file was cut short; copy it again, or remove it and ingest with --partial", f.Name, len(tail))
}

// Close unmaps the file.
func (f *File) Close() error {
	if f.mapped == nil {
		return nil
	}
	data := f.mapped
	f.mapped, f.slots, f.packed, f.n = nil, nil, nil, 0
	return syscall.Munmap(data)
}

// maxCalls is more calls than a thread makes in a thousand years.
const maxCalls = 1 << 48

// maxSlots is more slots than they take.
const maxSlots = 1 << 52

func (h *Header) check() error {
	switch {
	case string(h.Magic[:]) != Magic:
		return fmt.Errorf("not a spool file: begins with %q, want %q", h.Magic[:], Magic)
	case h.Version != Version:
		return fmt.Errorf("spool version %d, this commq reads %d: ingest it with the commq that captured it",
			h.Version, Version)
	case h.HeaderBytes != HeaderBytes || h.SlotBytes != SlotBytes:
		return fmt.Errorf("header of %d and slots of %d bytes, want %d and %d", h.HeaderBytes, h.SlotBytes,
			HeaderBytes, SlotBytes)
	case h.Size < 1 || h.Size > schema.MaxRanks || h.Rank < 0 || h.Rank >= h.Size:
		return fmt.Errorf("damaged header: rank %d of %d", h.Rank, h.Size)
	case h.Thread < 0:
		return fmt.Errorf("damaged header: thread %d", h.Thread)
	case h.Dropped > maxCalls || h.Polls > maxCalls:
		return fmt.Errorf("damaged header: %d calls dropped, %d polls", h.Dropped, h.Polls)
	case h.Hash > AlgorithmCRC32 || h.Counters > CountersFake:
		return fmt.Errorf("damaged header: hash algorithm %d, counters %d", h.Hash, h.Counters)
	case h.Packed > 1:
		return fmt.Errorf("damaged header: packed %d", h.Packed)
	case h.Ended > EndedAborted || h.Timer > TimerVirtual || h.ComputeClock > ClockCPU:
		return fmt.Errorf("damaged header: ended %d, timer %d, compute clock %d", h.Ended, h.Timer, h.ComputeClock)
	}
	return nil
}

// Text is the text in a fixed field of the header, up to its terminating zero.
func Text(field []byte) string {
	text, _, _ := bytes.Cut(field, []byte{0})
	return string(text)
}

// The methods As... return a slot as the type that belongs to its Kind.

// AsSide is the slot as a SIDE slot.
func (c *Call) AsSide() *Side { return (*Side)(unsafe.Pointer(c)) }

// AsColl is the slot as a COLL slot.
func (c *Call) AsColl() *Coll { return (*Coll)(unsafe.Pointer(c)) }

// AsParts is the slot as a PARTS slot.
func (c *Call) AsParts() *Parts { return (*Parts)(unsafe.Pointer(c)) }

// AsDone is the slot as a DONE slot.
func (c *Call) AsDone() *Done { return (*Done)(unsafe.Pointer(c)) }

// AsStart is the slot as a START slot.
func (c *Call) AsStart() *Start { return (*Start)(unsafe.Pointer(c)) }

// AsPre is the slot as a PRE slot.
func (c *Call) AsPre() *Pre { return (*Pre)(unsafe.Pointer(c)) }

// AsWide is the slot as a WIDE slot.
func (c *Call) AsWide() *Wide { return (*Wide)(unsafe.Pointer(c)) }

// AsErr is the slot as an ERR slot.
func (c *Call) AsErr() *Err { return (*Err)(unsafe.Pointer(c)) }

// AsSum is the slot as a SUM slot.
func (c *Call) AsSum() *Sum { return (*Sum)(unsafe.Pointer(c)) }

// AsDef is the slot as a DEF slot.
func (c *Call) AsDef() *Def { return (*Def)(unsafe.Pointer(c)) }

// AsBlob is the slot as a BLOB slot.
func (c *Call) AsBlob() *Blob { return (*Blob)(unsafe.Pointer(c)) }

// AsHashes is the slot as a HASH slot.
func (c *Call) AsHashes() *Hashes { return (*Hashes)(unsafe.Pointer(c)) }

// AsRMA is the slot as an RMA slot.
func (c *Call) AsRMA() *RMA { return (*RMA)(unsafe.Pointer(c)) }

// AsIO is the slot as an IO slot.
func (c *Call) AsIO() *IO { return (*IO)(unsafe.Pointer(c)) }
