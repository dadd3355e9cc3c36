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

// A packed slot has at least a key and the mask of its words, at most nine bytes more for each word and the compute time.
const (
	leastPacked = 2
	mostPacked  = leastPacked + 9*(1+SlotBytes/8)
)

// mostReadings is how often a file is read again because the program that writes it has gone on meanwhile.
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

// openPacked reads a file with blocks and its windows. While the program runs a window may be packed and filled again between the
// two readings: then there is one block more, and it reads again.
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
			f, e := p.file(h)
			return f, errors.Join(e, syscall.Munmap(data))
		}
		if err = errors.Join(err, syscall.Munmap(data)); err != nil {
			return nil, err
		}
	}
}

// mapped returns the bytes of a file, read-only.
func mapped(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
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

// isNext reports whether a block can follow those found so far, behind so many skipped bytes and before so many others.
func (p *packedFile) isNext(b *Block, rest int64, skipped int) bool {
	bytes, n := int64(b.Bytes), int64(b.N)
	return bytes <= rest && bytes%4 == 0 && n <= mostSlots && n*leastPacked <= bytes && bytes <= n*mostPacked+3 &&
		b.First <= p.end+inBytes(skipped)
}

// inBytes is how many slots blocks of so many bytes have at most.
func inBytes(n int) uint64 { return uint64(n) * mostSlots / uint64(blockBytes) }

// readWindow finds the window that continues the blocks, and reports whether the file with the blocks, which had so many bytes,
// has grown meanwhile.
func (p *packedFile) readWindow(size int64) (grew bool, err error) {
	windows, err := os.ReadFile(strings.TrimSuffix(p.name, Suffix) + WindowsSuffix)
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

// findWindow finds the window that continues the blocks: that with the highest number that is not beyond their end. If that of both
// is, the last blocks are damaged, and it is the one with the lower number.
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

// file unpacks the blocks and takes the rest from the window.
func (p *packedFile) file(h *Header) (*File, error) {
	var rest []words
	if p.window != nil {
		rest = p.window[p.end-p.base:]
	}
	f := &File{Name: p.name, Header: *h, Doubtful: !h.fits(), packed: true}
	if h.Check != 0 && !f.Doubtful && h.Slots > p.end+uint64(len(rest)) { // the last blocks are not there
		p.lose(min(h.Slots, p.end+max(1, inBytes(p.skipped))))
	}
	f.damaged = p.damaged
	slots := int(p.end) + len(rest)
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
	for i := range f.Slots {
		if number, call, ok := returned(f.Slots[i:]); ok && number < uint64(i) && f.Slots[number].Kind == KindCall {
			f.Slots[number] = call
		}
	}
	return f, nil
}

// returned reports whether slots begin with a DEF RETURN: the number of a CALL slot whose call had more slots than a window, and
// what it is since the call has returned.
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

// temporary returns zeroed memory in a file without a name, so that the system can write it out: in the folder of the
// records, which had room for them, else in that for temporary files.
func temporary(folder string, size int) ([]byte, error) {
	var errs []error
	for _, dir := range []string{folder, os.TempDir()} {
		f, err := nameless(dir)
		if err == nil {
			memory, e := mapNew(f, size)
			if err = errors.Join(e, f.Close()); err == nil {
				return memory, nil
			}
		}
		errs = append(errs, fmt.Errorf("a temporary file of %d bytes in %s: %w", size, dir, err))
	}
	return nil, errors.Join(errs...)
}

// nameless makes a file without a name in a folder.
func nameless(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), dir), nil
	}
	f, err := os.CreateTemp(dir, "commq-slots-") // NFS and Lustre have none without a name
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// mapNew makes a file as long as it is to be, with its space, and maps it.
func mapNew(f *os.File, size int) ([]byte, error) {
	fd := int(f.Fd())
	err := unix.EINTR
	for err == unix.EINTR {
		err = asErrno(unix.Fallocate(fd, 0, 0, int64(size))) // a full disk must be an error, not a signal
	}
	if err == unix.EOPNOTSUPP {
		err = asErrno(unix.Ftruncate(fd, int64(size)))
	}
	if err != 0 {
		return nil, err
	}
	return syscall.Mmap(fd, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

// asErrno is the number of a system call's error; 0 for none.
func asErrno(err error) unix.Errno {
	var number unix.Errno
	if err != nil && !errors.As(err, &number) {
		return unix.EIO
	}
	return number
}
