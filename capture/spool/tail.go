package spool

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"unsafe"

	"github.com/commq/commq/internal/bounded"
)

// Tail reads a file with packed slots that a running program still writes, as if its slots stood in it one after the
// other.
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

// ReadAt reads slots from an offset that a slot has in a file whose slots are not packed. It returns io.EOF where the
// records end for now.
func (t *Tail) ReadAt(buf []byte, offset int64) (n int, err error) {
	f, _, err := bounded.OpenRegular(t.path)
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

// Size returns the offset behind the last record that is there now, as in a file whose slots are not packed, and the
// bytes that the records take.
func (t *Tail) Size() (end, bytes int64, err error) {
	f, _, err := bounded.OpenRegular(t.path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	if err := t.addBlocks(f); err != nil {
		return 0, 0, err
	}
	slots, err := t.inWindow(f, t.found.end)
	if err != nil {
		return 0, 0, err
	}
	n := int64(0)
	for n < int64(len(slots)) && Kind(slots[n][0]>>16) != End {
		n++
	}
	return HeaderBytes + (int64(t.found.end)+n)*SlotBytes, t.next + n*SlotBytes, nil
}

// from returns slots from a number on: those of its block, or of the window, or none.
func (t *Tail) from(f *os.File, slot uint64) ([]words, error) {
	if slot >= t.found.end {
		if err := t.addBlocks(f); err != nil {
			return nil, err
		}
	}
	if block := t.blockOf(slot); block >= 0 {
		return t.fromBlock(f, block, slot)
	}
	window, err := t.inWindow(f, slot)
	if block := t.blockOf(slot); err == nil && block >= 0 { // it became one meanwhile
		return t.fromBlock(f, block, slot)
	}
	return window, err
}

// blockOf returns the last block that has a slot; -1 if none has.
func (t *Tail) blockOf(slot uint64) int {
	for i := len(t.places) - 1; i >= 0; i-- {
		if b := &t.found.blocks[i].Block; slot >= b.First && slot < b.First+uint64(b.N) {
			return i
		}
	}
	return -1
}

// inWindow returns the slots of the window from a number on. A window that was read is good if no block has been
// appended since the blocks were: only then is it filled again.
func (t *Tail) inWindow(f *os.File, slot uint64) ([]words, error) {
	for range mostReadings {
		blocks := len(t.places)
		if _, err := t.found.readWindow(0); err != nil {
			return nil, err
		}
		if err := t.addBlocks(f); err != nil {
			return nil, err
		}
		if len(t.places) > blocks {
			continue
		}
		if skip := slot - t.found.base; t.found.window != nil && slot >= t.found.base && skip < mostSlots {
			return t.found.window[skip:], nil
		}
		return nil, nil
	}
	return nil, nil
}

// addBlocks adds the blocks that are there by now.
func (t *Tail) addBlocks(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	head := make([]byte, blockBytes)
	for {
		var b Block
		rest := info.Size() - t.next - int64(blockBytes)
		if rest < 0 {
			return nil
		}
		if _, err := f.ReadAt(head, t.next); err != nil {
			return err
		}
		if !t.found.readBlock(&b, head) || !t.found.isNext(&b, rest, 0) {
			return nil // not all of it is written, or it is damaged
		}
		t.found.add(&b, nil)
		t.places = append(t.places, t.next+int64(blockBytes))
		t.next += int64(blockBytes) + int64(b.Bytes)
	}
}

// fromBlock returns the slots of a block from a number on. A call that had more slots than a window begins the block:
// as it is since it returned.
func (t *Tail) fromBlock(f *os.File, block int, slot uint64) ([]words, error) {
	b := &t.found.blocks[block].Block
	if t.at != block {
		slots, err := t.unpacked(f, block)
		if err != nil {
			return nil, err
		}
		if first := asCall(&slots[0]); first.Kind == KindCall && first.T1 == 0 {
			if slots[0], err = t.callSince(f, block, slots[0]); err != nil {
				return nil, err
			}
			if asCall(&slots[0]).T1 == 0 { // it has not returned yet
				return slots[slot-b.First:], nil
			}
		}
		t.slots, t.at = slots, block
	}
	return t.slots[slot-b.First:], nil
}

// callSince returns the CALL slot that begins a block as it is since the call has returned, if it has.
func (t *Tail) callSince(f *os.File, block int, call words) (words, error) {
	number := t.found.blocks[block].First
	for i := block + 1; ; i++ {
		var slots []words
		var err error
		if i < len(t.places) {
			slots, err = t.unpacked(f, i)
		} else {
			slots, err = t.inWindow(f, t.found.end)
		}
		if err != nil {
			return call, err
		}
		for k := range slots {
			if Kind(slots[k][0]>>16) == KindCall {
				return call, nil
			}
			all := unsafe.Slice(asCall(&slots[k]), len(slots)-k)
			if n, c, ok := returned(all); ok && n == number {
				return *(*words)(unsafe.Pointer(&c)), nil
			}
		}
		if i >= len(t.places) {
			return call, nil
		}
	}
}

func asCall(slot *words) *Call { return (*Call)(unsafe.Pointer(slot)) }

// unpacked returns the slots of a block.
func (t *Tail) unpacked(f *os.File, block int) ([]words, error) {
	b := &t.found.blocks[block].Block
	packed := make([]byte, b.Bytes)
	if _, err := f.ReadAt(packed, t.places[block]); err != nil {
		return nil, err
	}
	slots := make([]words, b.N)
	if t.found.checks && crc32.Checksum(packed, castagnoli) != b.CRC {
		return nil, fmt.Errorf("%s: slots %d to %d: their checksum does not fit", t.path, b.First, b.First+uint64(b.N)-1)
	}
	if err := unpack(slots, packed, b.Scale); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: slots %d to %d", t.path, b.First, b.First+uint64(b.N)-1), err)
	}
	return slots, nil
}
