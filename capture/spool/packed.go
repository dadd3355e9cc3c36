package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"github.com/commq/commq/internal/bounded"
)

// blockBytes is the size of a Block.
const blockBytes = int(unsafe.Sizeof(Block{}))

// mostSlots limits the slots of a block: those of a window.
const mostSlots = WindowBytes/SlotBytes - 1

// A packed slot has at least a byte that tells which words follow, at most two, a key of two, and nine for each word and
// the compute time.
const (
	leastPacked = 1
	mostPacked  = 4 + 9*(1+SlotBytes/8)
)

// mostReadings limits how often a file is read again because the program that writes it has gone on meanwhile.
const mostReadings = 5

// packedFile is a file with blocks of packed slots, and its windows.
type packedFile struct {
	name    string
	checks  bool // blocks have checksums
	blocks  []placedBlock
	end     uint64 // number of the slot behind the last block
	skipped int    // bytes at the end of the file that are no block
	damaged []Damage
	window  []words // the slots of the present window; nil: there is none
	base    uint64  // number of the first of these
}

// placedBlock is a block whose header is whole. packed is nil if its bytes are not.
type placedBlock struct {
	Block
	packed []byte
}

// openPacked finds the blocks of a file and its windows. While the program runs a window may be packed and filled
// again between the two readings: then there is one block more, and it reads again.
func openPacked(path string, h *Header) (*File, error) {
	for reading := 1; ; reading++ {
		data, err := mapped(path)
		if err != nil {
			return nil, err
		}
		p := &packedFile{name: path, checks: h.Sums != 0}
		p.findBlocks(data)
		grew, err := p.readWindow(int64(len(data)))
		if err == nil && (!grew || reading == mostReadings) {
			if grew {
				p.window = nil
			}
			return p.file(h, data), nil
		}
		if err = errors.Join(err, syscall.Munmap(data)); err != nil {
			return nil, err
		}
	}
}

// mapped returns the bytes of a file, read-only.
func mapped(path string) ([]byte, error) {
	f, size, err := bounded.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return data, nil
}

// findBlocks finds the blocks. Bytes that are no header of a block are left out, up to the next one that is.
func (p *packedFile) findBlocks(data []byte) {
	at, skipped := HeaderBytes, 0
	for at+blockBytes <= len(data) {
		var b Block
		rest := data[at+blockBytes:]
		if !p.readBlock(&b, data[at:at+blockBytes]) || !p.isNext(&b, int64(len(rest)), skipped) {
			at, skipped = at+4, skipped+4
			continue
		}
		p.lose(b.First)
		packed := rest[:b.Bytes]
		if p.checks && crc32.Checksum(packed, castagnoli) != b.CRC {
			p.damaged = append(p.damaged, Damage{int(b.First), int(b.First) + int(b.N)})
			packed = nil
		}
		p.add(&b, packed)
		at, skipped = at+blockBytes+int(b.Bytes), 0
	}
	p.skipped = max(0, len(data)-at+skipped)
}

// add adds a block. It may begin with slots of the one before, if the thread was interrupted before it left its window.
func (p *packedFile) add(b *Block, packed []byte) {
	p.blocks = append(p.blocks, placedBlock{*b, packed})
	p.end = max(p.end, b.First+uint64(b.N))
}

// lose notes that the slots from the end of the blocks to before a number are damaged.
func (p *packedFile) lose(to uint64) {
	if to > p.end {
		p.damaged = append(p.damaged, Damage{int(p.end), int(to)})
		p.end = to
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

// isNext reports whether a block can follow those found so far, after skipped bytes and with rest bytes left.
func (p *packedFile) isNext(b *Block, rest int64, skipped int) bool {
	bytes, n := int64(b.Bytes), int64(b.N)
	last := len(p.blocks) - 1
	return bytes <= rest && bytes%4 == 0 && n > 0 && n <= mostSlots && n*leastPacked <= bytes && bytes <= n*mostPacked+3 &&
		b.First <= p.end+inBytes(skipped) && (last < 0 || b.First >= p.blocks[last].First && b.First+uint64(n) >= p.end)
}

// inBytes returns the most slots that blocks of n bytes can hold.
func inBytes(n int) uint64 { return uint64(n) * mostSlots / uint64(blockBytes) }

// readWindow finds the window that continues the blocks, and reports whether the file with the blocks, which had so
// many bytes, has grown meanwhile.
func (p *packedFile) readWindow(size int64) (grew bool, err error) {
	windows, err := bounded.ReadRegular(strings.TrimSuffix(p.name, Suffix)+WindowsSuffix, 2*WindowBytes)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	p.findWindow(windows)
	info, err := os.Stat(p.name)
	if err != nil {
		return false, err
	}
	return info.Size() > size, nil
}

// findWindow finds the window that continues the blocks: that with the highest number that is not beyond their end.
// If that of both is, the last blocks are damaged, and it is the one with the lower number.
func (p *packedFile) findWindow(windows []byte) {
	p.window = nil
	var beyond *Base
	for at := 0; at+WindowBytes <= len(windows); at += WindowBytes {
		b := (*Base)(unsafe.Pointer(&windows[at]))
		if b.Kind != KindBase || b.Number == 0 {
			continue
		}
		switch first := b.Number - 1; {
		case first > p.end && first-p.end <= inBytes(p.skipped) && (beyond == nil || b.Number < beyond.Number):
			beyond = b
		case first <= p.end && p.end-first <= mostSlots && (p.window == nil || first > p.base):
			p.take(b)
		}
	}
	if p.window == nil && beyond != nil {
		p.lose(beyond.Number - 1)
		p.take(beyond)
	}
}

// take takes the window that begins with a base.
func (p *packedFile) take(b *Base) {
	p.base = b.Number - 1
	p.window = unsafe.Slice((*words)(unsafe.Add(unsafe.Pointer(b), SlotBytes)), mostSlots)
}

// file returns the file with its blocks and what stands behind them in the window. data are the bytes of the blocks.
func (p *packedFile) file(h *Header, data []byte) *File {
	var rest []words
	if p.window != nil {
		rest = slices.Clone(p.window[p.end-p.base:])
	}
	f := &File{Name: p.name, Header: *h, Doubtful: !h.fits(), mapped: data}
	if h.Check != 0 && !f.Doubtful && h.Slots > p.end+uint64(len(rest)) { // the last blocks are not there
		p.lose(min(h.Slots, p.end+max(1, inBytes(p.skipped))))
	}
	f.damaged = p.damaged
	f.packed = &packedSlots{blocks: p.blocks, rest: rest, end: int(p.end)}
	f.n = int(p.end) + len(rest)
	return f
}

// returned reports whether slots begin with a DEF RETURN: the number of a CALL slot whose call had more slots than a
// window, and what it is since the call has returned.
func returned(slots []Call) (number uint64, call Call, ok bool) {
	d := slots[0].AsDef()
	if slots[0].Kind != KindDef || d.What != DefReturn || d.Bytes != SlotBytes || d.ID < 0 {
		return 0, call, false
	}
	var whole bytes.Buffer
	for k := 1; k < len(slots) && whole.Len() < SlotBytes; k++ {
		switch slots[k].Kind {
		case KindBlob:
			b := slots[k].AsBlob()
			whole.Write(b.Data[:min(int(b.N), len(b.Data))])
		case KindSum:
		default:
			return 0, call, false
		}
	}
	if whole.Len() != SlotBytes {
		return 0, call, false
	}
	copy(bytesOf(unsafe.Slice(&call, 1)), whole.Bytes())
	return uint64(d.ID), call, true
}
