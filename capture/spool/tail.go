package spool

import (
	"errors"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"unsafe"
)

// Tail reads a file with packed slots that a running program still writes, as if its slots stood in it one after the other.
type Tail struct {
	path   string
	found  packedFile // the blocks so far, without their bytes
	places []int64    // of their bytes in the file
	next   int64      // where the next block will be
	at     int        // the block whose slots are in slots
	slots  []words
}

// NewTail returns a reader of the file of a path and header.
func NewTail(path string, h *Header) *Tail {
	return &Tail{path: path, found: packedFile{name: path, checks: h.Sums != 0}, next: HeaderBytes, at: -1}
}

// ReadAt reads slots from an offset that a slot has in a file whose slots are not packed. It returns io.EOF where the records
// end for now.
func (t *Tail) ReadAt(buf []byte, offset int64) (n int, err error) {
	f, err := os.Open(t.path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	slot := uint64(offset-HeaderBytes) / SlotBytes
	for len(buf) >= SlotBytes {
		slots, err := t.from(f, slot)
		if err != nil {
			return n, err
		}
		if len(slots) == 0 {
			return n, io.EOF
		}
		used := copy(buf, unsafe.Slice((*byte)(unsafe.Pointer(&slots[0])), len(slots)*SlotBytes)) / SlotBytes
		buf, n, slot = buf[used*SlotBytes:], n+used*SlotBytes, slot+uint64(used)
	}
	return n, nil
}

// Size returns the offset behind the last record that is there now, as in a file whose slots are not packed, and the bytes that
// the records take.
func (t *Tail) Size() (end, bytes int64, err error) {
	f, err := os.Open(t.path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	slot := t.found.end
	for {
		slots, err := t.from(f, slot)
		if err != nil {
			return 0, 0, err
		}
		n := uint64(0)
		for n < uint64(len(slots)) && Kind(slots[n][0]>>16) != End {
			n++
		}
		if slot += n; n == 0 || n < uint64(len(slots)) {
			break
		}
	}
	return HeaderBytes + int64(slot)*SlotBytes, t.next + int64(slot-t.found.end)*SlotBytes, nil
}

// from returns slots from a number on: those of its block, or of the window, or none.
func (t *Tail) from(f *os.File, slot uint64) ([]words, error) {
	for range 5 { // a block may be appended between the readings
		for slot >= t.found.end {
			more, err := t.addBlock(f)
			if err != nil {
				return nil, err
			}
			if !more {
				break
			}
		}
		for i := len(t.places) - 1; i >= 0; i-- {
			if b := &t.found.blocks[i].Block; slot >= b.First && slot < b.First+uint64(b.N) {
				return t.unpacked(f, i, slot-b.First)
			}
		}
		windows, err := os.ReadFile(strings.TrimSuffix(t.path, Suffix) + WindowsSuffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		t.found.window, t.found.base = nil, 0
		if !t.found.findWindow(windows) {
			continue
		}
		if skip := slot - t.found.base; t.found.window != nil && skip < uint64(len(t.found.window)) {
			return t.found.window[skip:], nil
		}
		return nil, nil
	}
	return nil, nil
}

// addBlock adds the next block, if it is there and whole.
func (t *Tail) addBlock(f *os.File) (bool, error) {
	var b Block
	head := make([]byte, blockBytes)
	if _, err := f.ReadAt(head, t.next); err != nil || !t.found.readBlock(&b, head) || b.First != t.found.end ||
		b.N > mostSlots {
		return false, ignoreEOF(err)
	}
	packed := make([]byte, min(int(b.Bytes), mostSlots*(SlotBytes+SlotBytes/2)))
	if _, err := f.ReadAt(packed, t.next+int64(blockBytes)); err != nil {
		return false, ignoreEOF(err)
	}
	if t.found.checks && crc32.Checksum(packed, castagnoli) != b.CRC {
		return false, nil
	}
	t.found.blocks = append(t.found.blocks, placedBlock{Block: b})
	t.places = append(t.places, t.next+int64(blockBytes))
	t.found.end += uint64(b.N)
	t.next += int64(blockBytes) + int64(b.Bytes)
	return true, nil
}

// unpacked returns the slots of a block from one on.
func (t *Tail) unpacked(f *os.File, block int, from uint64) ([]words, error) {
	if t.at != block {
		b := &t.found.blocks[block].Block
		packed := make([]byte, b.Bytes)
		if _, err := f.ReadAt(packed, t.places[block]); err != nil {
			return nil, err
		}
		t.slots, t.at = make([]words, b.N), block
		if err := unpack(t.slots, packed, b.Scale); err != nil {
			return nil, err
		}
	}
	return t.slots[from:], nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
