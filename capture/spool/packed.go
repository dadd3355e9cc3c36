package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// blockBytes is the size of a Block.
const blockBytes = int(unsafe.Sizeof(Block{}))

// mostSlots is how many slots a block has at most: those of a window.
const mostSlots = WindowBytes/SlotBytes - 1

// A packed slot has at least a key and the mask of its words.
const leastPacked = 2

// packedFile is a file with blocks of packed slots, and its windows.
type packedFile struct {
	name    string
	checks  bool // blocks have checksums
	blocks  []placedBlock
	end     uint64 // number of the slot behind the last block
	damaged []Damage
	window  []words // the slots of the present window; nil: there is none
	base    uint64  // number of the first of these
}

// placedBlock is a block whose header is whole.
type placedBlock struct {
	Block
	packed []byte
}

// openPacked reads a file with blocks and its windows. A program that is still running may pack a window between the two
// readings, so it reads again if the window does not continue the blocks.
func openPacked(path string, h *Header) (*File, error) {
	var p *packedFile
	for range 5 {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		windows, err := os.ReadFile(strings.TrimSuffix(path, Suffix) + WindowsSuffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		p = &packedFile{name: path, checks: h.Sums != 0}
		p.findBlocks(data)
		if p.findWindow(windows) {
			break
		}
	}
	return p.file(h)
}

// findBlocks finds the blocks. What is damaged is left out, up to the next block that is whole.
func (p *packedFile) findBlocks(data []byte) {
	skipped := 0
	for at := HeaderBytes; at+blockBytes <= len(data); {
		var b Block
		rest := data[at+blockBytes:]
		if !p.readBlock(&b, data[at:at+blockBytes]) || !p.isNext(&b, len(rest), skipped) {
			at, skipped = at+4, skipped+4
			continue
		}
		if b.First > p.end {
			p.damaged = append(p.damaged, Damage{int(p.end), int(b.First)})
		}
		packed := rest[:b.Bytes]
		if p.checks && crc32.Checksum(packed, castagnoli) != b.CRC {
			p.damaged = append(p.damaged, Damage{int(b.First), int(b.First) + int(b.N)})
			packed = nil
		}
		p.blocks = append(p.blocks, placedBlock{b, packed})
		p.end = b.First + uint64(b.N)
		at, skipped = at+blockBytes+int(b.Bytes), 0
	}
}

// readBlock reads the header of a block; false if there is none.
func (p *packedFile) readBlock(b *Block, data []byte) bool {
	if string(data[:len(BlockMagic)]) != BlockMagic {
		return false
	}
	_, err := binary.Decode(data, binary.LittleEndian, b)
	return err == nil && (!p.checks || b.Check == crc32.Checksum(data[:unsafe.Offsetof(b.Check)], castagnoli))
}

// isNext reports whether a block can follow those found so far, behind so many skipped bytes.
func (p *packedFile) isNext(b *Block, rest, skipped int) bool {
	return int64(b.Bytes) <= int64(rest) && b.Bytes%4 == 0 &&
		b.N <= mostSlots && int64(b.N)*leastPacked <= int64(b.Bytes) && b.First >= p.end &&
		b.First-p.end <= uint64(skipped)*mostSlots/uint64(blockBytes)
}

// findWindow finds the window that continues the blocks: that with the highest number that is not beyond their end. It
// returns false if there is none though there are windows.
func (p *packedFile) findWindow(windows []byte) bool {
	found := len(windows) == 0
	for ; len(windows) >= WindowBytes; windows = windows[WindowBytes:] {
		b := (*Base)(unsafe.Pointer(&windows[0]))
		if b.Kind != KindBase || b.Number == 0 || b.Number-1 > p.end || p.end-(b.Number-1) > mostSlots {
			continue
		}
		if !found || b.Number-1 > p.base {
			found, p.base = true, b.Number-1
			p.window = unsafe.Slice((*words)(unsafe.Pointer(&windows[SlotBytes])), mostSlots)
		}
	}
	return found
}

// file unpacks the blocks and takes the rest from the window.
func (p *packedFile) file(h *Header) (*File, error) {
	var rest []words
	if p.window != nil {
		rest = p.window[p.end-p.base:]
	}
	slots := int(p.end) + len(rest)
	f := &File{Name: p.name, Header: *h, Doubtful: !h.fits(), packed: true, damaged: p.damaged}
	if slots == 0 {
		return f, nil
	}
	memory, err := temporary(filepath.Dir(p.name), slots*SlotBytes)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", p.name, err)
	}
	f.mapped = memory
	all := unsafe.Slice((*words)(unsafe.Pointer(&memory[0])), slots)
	for i := range p.blocks {
		b := &p.blocks[i]
		if b.packed == nil {
			continue
		}
		if err := unpack(all[b.First:b.First+uint64(b.N)], b.packed, b.Scale); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: slots %d to %d: %w", p.name, b.First, b.First+uint64(b.N)-1, err), f.Close())
		}
	}
	copy(all[p.end:], rest)
	f.Slots = unsafe.Slice((*Call)(unsafe.Pointer(&memory[0])), slots)
	f.setReturns()
	return f, nil
}

// setReturns completes the CALL slots of calls with more slots than a window: DEF RETURN slots have what they are.
func (f *File) setReturns() {
	for i := range f.Slots {
		d := f.Slots[i].AsDef()
		if f.Slots[i].Kind != KindDef || d.What != DefReturn || d.Bytes != SlotBytes || d.ID < 0 || d.ID >= int64(i) {
			continue
		}
		var whole bytes.Buffer
		for k := i + 1; k < len(f.Slots) && whole.Len() < SlotBytes && f.Slots[k].Kind != KindCall; k++ {
			if f.Slots[k].Kind == KindBlob {
				b := f.Slots[k].AsBlob()
				whole.Write(b.Data[:min(int(b.N), len(b.Data))])
			}
		}
		if whole.Len() == SlotBytes && f.Slots[d.ID].Kind == KindCall {
			copy(bytesOf(f.Slots[d.ID:d.ID+1]), whole.Bytes())
		}
	}
}

// temporary returns zeroed memory in a file without a name, so that the system can write it out: in the folder of the
// records, which had room for them, else in that for temporary files.
func temporary(folder string, size int) ([]byte, error) {
	var errs []error
	for _, dir := range []string{folder, os.TempDir()} {
		fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err == nil {
			memory, e := mapFile(fd, size)
			if err = errors.Join(e, unix.Close(fd)); err == nil {
				return memory, nil
			}
		}
		errs = append(errs, fmt.Errorf("a temporary file of %d bytes in %s: %w", size, dir, err))
	}
	return nil, errors.Join(errs...)
}

// mapFile makes a file as long as it is to be, with its space, and maps it.
func mapFile(fd, size int) ([]byte, error) {
	err := unix.Fallocate(fd, 0, 0, int64(size)) // a full disk must be an error, not a signal
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = unix.Ftruncate(fd, int64(size))
	}
	if err != nil {
		return nil, err
	}
	return syscall.Mmap(fd, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}
