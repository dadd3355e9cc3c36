package spool

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
)

// packer compiles the shim's packer into a program that packs the slots of its standard input.
func packer(t *testing.T) string {
	t.Helper()
	testenv.Need(t, "cc")
	src, err := filepath.Abs("../shim/src")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.c"), filepath.Join(dir, "pack")
	if err := os.WriteFile(source, []byte(`#include "pack.h"
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	static uint8_t slots[1 << 20], packed[1 << 21];
	static cq_packer p;
	size_t n = 0;
	for (ssize_t got; (got = read(0, slots + n, sizeof slots - n)) > 0;)
		n += (size_t)got;
	size_t bytes = cq_pack(&p, slots, n / CQ_SLOT_BYTES, SCALE, packed);
	return write(1, packed, bytes) != (ssize_t)bytes;
}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-DSCALE=123456", "-I"+src, "-o", program,
		source, filepath.Join(src, "pack.c")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// pack packs slots as the shim does.
func pack(t *testing.T, program string, slots []words) []byte {
	t.Helper()
	cmd := exec.Command(program)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = binary.Write(in, binary.LittleEndian, slots)
		_ = in.Close()
	}()
	packed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// someSlots are slots as recorders write them, and as they never do: all kinds, numbers of all sizes.
func someSlots(rng *rand.Rand, n int) []words {
	slots := make([]words, n)
	tick := uint64(1) << 50
	for i := range slots {
		s := &slots[i]
		if i > 0 && rng.IntN(3) > 0 {
			*s = slots[rng.IntN(i)]
		}
		for range rng.IntN(8) {
			s[rng.IntN(len(s))] += rng.Uint64() >> rng.IntN(64) * (1 - 2*uint64(rng.IntN(2)))
		}
		s[0] = s[0]&^(0xff<<16) | uint64(1+rng.IntN(16))<<16
		if Kind(s[0]>>16) == KindCall {
			tick += rng.Uint64() >> (30 + rng.IntN(34))
			s[1], s[2] = tick, tick+rng.Uint64()>>(30+rng.IntN(34))
			if rng.IntN(20) == 0 {
				s[2] = 0
			}
		}
	}
	return slots
}

func TestPackedSlotsAreTheSame(t *testing.T) {
	program, rng := packer(t), rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		slots := someSlots(rng, n*n)
		packed := pack(t, program, slots)
		for ; len(packed)%4 != 0; packed = append(packed, 0) {
		}
		got := make([]words, len(slots))
		if err := unpack(got, packed, 123456); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(slots, got); diff != "" {
			t.Fatalf("%d slots (-packed +unpacked):\n%s", n*n, diff)
		}
	}
}

// FuzzUnpack unpacks any bytes: an error or slots.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte{0x80, 0xff, 1, 3, 5, 7, 9, 11, 13, 15, 17}, uint16(1))
	f.Add([]byte{0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8}, uint16(2))
	f.Fuzz(func(t *testing.T, packed []byte, n uint16) {
		slots := make([]words, int(n)%mostSlots)
		if err := unpack(slots, packed, 1<<20); err == nil && len(packed) < leastPacked*len(slots) {
			t.Fatalf("%d slots of %d bytes", len(slots), len(packed))
		}
	})
}

// packedBytes is a file of blocks with so many slots each; the slots in windows are those behind the blocks.
func packedBytes(t *testing.T, program string, slots []words, blocks ...int) (file []byte) {
	t.Helper()
	h := Header{HeaderBytes: HeaderBytes, SlotBytes: SlotBytes, Version: Version, Size: 1, Sums: 1, Packed: 1}
	copy(h.Magic[:], Magic)
	for _, n := range blocks {
		h.Slots += uint64(n)
	}
	h.Seal()
	file, err := binary.Append(nil, binary.LittleEndian, &h)
	if err != nil {
		t.Fatal(err)
	}
	first := 0
	for _, n := range blocks {
		packed := pack(t, program, slots[first:first+n])
		for ; len(packed)%4 != 0; packed = append(packed, 0) {
		}
		b := Block{Scale: 123456, First: uint64(first), N: uint32(n), Bytes: uint32(len(packed)),
			CRC: crc32.Checksum(packed, castagnoli)}
		copy(b.Magic[:], BlockMagic)
		head, err := binary.Append(nil, binary.LittleEndian, &b)
		if err != nil {
			t.Fatal(err)
		}
		binary.LittleEndian.PutUint32(head[blockBytes-4:], crc32.Checksum(head[:blockBytes-4], castagnoli))
		file = append(append(file, head...), packed...)
		first += n
	}
	return file
}

// window is a window of a windows' file with slots from a number on.
func window(t *testing.T, slots []words, first int) []byte {
	t.Helper()
	w, err := binary.Append(nil, binary.LittleEndian, &Base{Kind: KindBase, Number: uint64(first) + 1})
	if err == nil {
		w, err = binary.Append(w, binary.LittleEndian, slots[first:])
	}
	if err != nil {
		t.Fatal(err)
	}
	return append(w, make([]byte, WindowBytes-len(w))...)
}

// writeFiles writes a file and its windows; nil: none.
func writeFiles(t *testing.T, file, windows []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "0.0.0"+Suffix)
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	if windows != nil {
		if err := os.WriteFile(path[:len(path)-len(Suffix)]+WindowsSuffix, windows, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// filled returns the slots of a file up to the end of its records, read in pieces of any size, some of them twice.
func filled(t *testing.T, f *File) (all []words) {
	t.Helper()
	r, rng := NewReader(f), rand.New(rand.NewPCG(7, 8))
	for len(all) < f.Len() {
		at := len(all) - rng.IntN(len(all)+1)*rng.IntN(2)
		got := asWords(r.From(at, rng.IntN(40)))
		if n := min(len(got), len(all)-at); !slices.Equal(all[at:at+n], got[:n]) {
			t.Fatalf("slots from %d on are others when they are read again", at)
		} else {
			all = append(all, got[n:]...)
		}
	}
	if f.Err() != nil {
		t.Fatal(f.Err())
	}
	end := slices.IndexFunc(all, func(s words) bool { return Kind(s[0]>>16) == End })
	if end >= 0 {
		all = all[:end]
	}
	return all
}

// The slots are those of the blocks and, behind them, of the window that continues the blocks, whichever of the two
// it is and wherever the process was killed: before and after the base of the next window has its number.
func TestWindowContinuesBlocks(t *testing.T) {
	program := packer(t)
	slots := someSlots(rand.New(rand.NewPCG(3, 4)), 300)
	file := packedBytes(t, program, slots, 100, 80)
	old, now, next := window(t, slots, 0), window(t, slots, 100), window(t, slots, 180)
	none := make([]byte, WindowBytes)
	for name, windows := range map[string][]byte{
		"the block is written":   slices.Concat(old, now),
		"the window was changed": slices.Concat(next, now),
		"a block is there twice": slices.Concat(old, now),
		"the first window":       slices.Concat(next, none),
	} {
		file := file
		if name == "a block is there twice" { // the thread was interrupted behind the first and went on later
			file = packedBytes(t, program, slots, 100, 60)
			file = append(file, packedBytes(t, program, slots, 100, 80)[len(packedBytes(t, program, slots, 100)):]...)
		}
		path := writeFiles(t, file, windows)
		f, err := Open(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(slots, filled(t, f)); diff != "" || len(f.damaged) > 0 {
			t.Errorf("%s: damaged %v; (-want +got):\n%s", name, f.damaged, diff)
		}
		tail := NewTail(path, &f.Header)
		buf := make([]byte, 7*SlotBytes)
		for i := 0; i < 300; i += 7 {
			n, err := tail.ReadAt(buf, HeaderBytes+int64(i)*SlotBytes)
			got := make([]words, min(7, 300-i))
			if _, e := binary.Decode(buf[:n], binary.LittleEndian, got); e != nil || err != nil {
				t.Fatalf("%s: slot %d: %v, %v", name, i, err, e)
			}
			if diff := cmp.Diff(slots[i:i+len(got)], got); diff != "" {
				t.Fatalf("%s: slots from %d on, read one after the other (-want +got):\n%s", name, i, diff)
			}
		}
		if end, bytes, err := NewTail(path, &f.Header).Size(); err != nil || end != HeaderBytes+300*SlotBytes ||
			bytes != int64(len(file))+120*SlotBytes {
			t.Errorf("%s: ends at %d, %d bytes, %v", name, end, bytes, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A call that had more slots than a window begins a block, and what it is since it returned follows.
func TestCallThatLeftItsWindow(t *testing.T) {
	program := packer(t)
	call := Call{Call: 7, Kind: KindCall, T0: 1000, Comm: 1}
	slots := []words{*(*words)(unsafe.Pointer(&call))}
	for range 50 {
		slots = append(slots, words{uint64(KindDone) << 16})
	}
	call.T1, call.Req = 2000, 3
	blobs := bytesOf(unsafe.Slice(&call, 1))
	d := Def{What: DefReturn, Kind: KindDef, Bytes: SlotBytes}
	slots = append(slots, *(*words)(unsafe.Pointer(&d)))
	for len(blobs) > 0 {
		b := Blob{Kind: KindBlob}
		b.N = uint16(copy(b.Data[:], blobs))
		blobs = blobs[b.N:]
		slots = append(slots, *(*words)(unsafe.Pointer(&b)))
	}
	path := writeFiles(t, packedBytes(t, program, slots, 20, 20), slices.Concat(window(t, slots, 40), make([]byte, WindowBytes)))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := NewReader(f).From(0, 1)[0]; got != call {
		t.Errorf("%+v, want %+v", got, call)
	}
	buf := make([]byte, SlotBytes)
	if n, err := NewTail(path, &f.Header).ReadAt(buf, HeaderBytes); n != SlotBytes || err != nil ||
		*(*Call)(unsafe.Pointer(&buf[0])) != call {
		t.Errorf("%d bytes, %v: %v", n, err, buf)
	}
}

// Many blocks that begin with a call without an end are read in a moment: what follows the first is not read again for
// each of them.
func TestBlocksOfUnendedCalls(t *testing.T) {
	call := Call{Call: 7, Kind: KindCall, T0: 1000, Comm: 1}
	var slots []words
	var blocks []int
	for range 64 {
		slots, blocks = append(slots, *(*words)(unsafe.Pointer(&call))), append(blocks, 1)
	}
	f, err := Open(writeFiles(t, packedBytes(t, packer(t), slots, blocks...), nil))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for _, got := range f.All() {
		if n++; *got != call {
			t.Fatalf("%+v; want %+v", *got, call)
		}
	}
	if n != 64 {
		t.Errorf("%d slots", n)
	}
}

// The windows may be a link that a stranger made, to a file that never ends.
func TestWindowsWithoutEnd(t *testing.T) {
	path := writeFiles(t, packedBytes(t, packer(t), someSlots(rand.New(rand.NewPCG(5, 6)), 20), 20), nil)
	windows := path[:len(path)-len(Suffix)] + WindowsSuffix
	if err := os.Symlink("/dev/zero", windows); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || err.Error() != windows+" is not a regular file" {
		t.Errorf("a device: %v", err)
	}
	if err := errors.Join(os.Remove(windows), os.WriteFile(windows, make([]byte, 2*WindowBytes+1), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "has 1048577 bytes; files of its kind") {
		t.Errorf("too long: %v", err)
	}
}

// A changed byte of a block is damage that names its slots; the others are whole. A file that is cut short has the
// blocks before.
func TestDamagedBlocks(t *testing.T) {
	program, rng := packer(t), rand.New(rand.NewPCG(5, 6))
	slots := someSlots(rng, 90)
	file := packedBytes(t, program, slots, 30, 30, 30)
	open := func(data []byte) (got []words, damaged []Damage) {
		f, err := Open(writeFiles(t, data, nil))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return filled(t, f), f.damaged
	}
	for range 200 {
		changed, at := slices.Clone(file), HeaderBytes+rng.IntN(len(file)-HeaderBytes)
		changed[at] ^= 1 << rng.IntN(8)
		if _, damaged := open(changed); !slices.Equal(damaged, []Damage{{0, 30}}) &&
			!slices.Equal(damaged, []Damage{{30, 60}}) && !slices.Equal(damaged, []Damage{{60, 90}}) {
			t.Fatalf("byte %d: damaged %v", at, damaged)
		}
	}
	for range 50 {
		cut := HeaderBytes + rng.IntN(len(file)-HeaderBytes)
		got, damaged := open(file[:cut])
		if len(damaged) != 1 || damaged[0].First != len(got) || len(got)%30 != 0 || len(got) > 60 ||
			!slices.Equal(got, slots[:len(got)]) {
			t.Fatalf("cut at byte %d: damaged %v, %d slots", cut, damaged, len(got))
		}
	}
}

// What is cut is not read, also where it was unpacked together with what is not, and a long read is not copied again
// and again.
func TestCutPacked(t *testing.T) {
	program := packer(t)
	slots := someSlots(rand.New(rand.NewPCG(9, 10)), 5000)
	f, err := Open(writeFiles(t, packedBytes(t, program, slots, 2000, 3000), nil))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, n := NewReader(f), 1
	for ; len(r.From(3, n)) >= n; n++ { // as if one call had all of them
	}
	if n != 4998 {
		t.Errorf("%d slots behind the third; want 4997", n-1)
	}
	for _, cut := range []int{4990, 2010, 10, 20} {
		f.Cut(cut)
		last := 0
		for i := range f.All() {
			last = i
		}
		if want := min(cut, 10); cut <= 20 && last != want-1 || cut > 20 && last != cut-1 || f.Len() > cut {
			t.Errorf("cut at %d: the last slot is %d of %d", cut, last, f.Len())
		}
	}
}

// FuzzPacked reads any blocks and windows: no slot is beyond what the bytes can hold.
func FuzzPacked(f *testing.F) {
	f.Add([]byte(BlockMagic), []byte{0, 0, 16}, false)
	f.Fuzz(func(t *testing.T, blocks, windows []byte, checks bool) {
		p := packedFile{name: "fuzz", checks: checks}
		p.findBlocks(append(make([]byte, HeaderBytes), blocks...))
		if p.end > uint64(len(blocks))*mostSlots/uint64(blockBytes)+uint64(len(blocks)) {
			t.Fatalf("%d slots of %d bytes", p.end, len(blocks))
		}
		full := make([]byte, 2*WindowBytes)
		copy(full, windows)
		p.findWindow(full)
		if p.end > 1<<20 {
			return
		}
		s := p.file(&Header{}, nil)
		for range s.All() {
		}
		r := NewReader(s)
		for at := s.Len() - 1; at >= 0; at -= 1 + s.Len()/20 {
			if len(r.From(at, 3)) < min(3, s.Len()-at) {
				t.Fatalf("slots from %d on are missing, of %d", at, s.Len())
			}
		}
	})
}
