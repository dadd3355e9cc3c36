package otf2

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The fields of records: v is a number of variable size, F one of 8 bytes, I one of 4, b a byte, s a text. #(...) is a
// number of variable size and so many times what is in the brackets, %(...) the same with a byte; * is v until the end.
var definitionFields = map[uint8]string{5: "vvvv", 8: "bvvbvb", 10: "vs", 11: "vvbv", 12: "vvvv", 13: "vvbvv", 14: "vvbvv",
	15: "vvvbvvvvbbv", 18: "vvb#(v)bbv", 19: "vvvbbbbvv", 20: "v%(v)bb", 22: "vvvvv", 23: "vvb", 24: "vvvv", 30: "vvvb",
	31: "vvv%(v)", 33: "vvv", 34: "vvvv", 36: "vvbbvv", 38: "vvv", 40: "vvvbvvv", 43: "vvvvvv"}

var localFields = map[uint8]string{5: "bvb*", 6: "FvF"}

var eventFields = map[uint8]string{6: "#(vbv)", 10: "F", 11: "b", 14: "vvvv", 15: "vvvvv", 18: "vvvv", 19: "vvvvv", 22: "",
	23: "bvvvv", 31: "v%(bv)", 33: "vv", 35: "v", 36: "v", 37: "", 38: "bvvvvv", 39: "vvv", 40: "vvvb", 41: "vvvb",
	43: "vvv", 44: "vvb", 46: "vvvv", 47: "vvvv", 48: "vvbvvv", 49: "vv", 50: "vv", 52: "vv", 53: "bv", 54: "b", 66: "vv",
	67: "v", 68: "vvv", 69: "vbvv", 70: "v", 72: "vvbv", 75: "vbvvv", 77: "vv", 78: "vvv", 79: "vv", 84: "v", 85: "v",
	86: "bvvvvv", 87: "v", 88: "v"}

// swapper turns the numbers of a file around in place.
type swapper struct {
	t  testing.TB
	b  []byte
	at int
}

func (s *swapper) full(n int) { slices.Reverse(s.b[s.at : s.at+n]); s.at += n }

// variable turns a number of variable size, and returns it.
func (s *swapper) variable() (v uint64) {
	n := int(s.b[s.at])
	s.at++
	if n == 255 {
		return undefined64
	}
	for i := range n {
		v |= uint64(s.b[s.at+i]) << (8 * i)
	}
	s.full(n)
	return v
}

// record turns the fields of a record that ends there.
func (s *swapper) record(fields string, end int) {
	for i := 0; i < len(fields); i++ {
		switch fields[i] {
		case 'v':
			s.variable()
		case 'F':
			s.full(8)
		case 'I':
			s.full(4)
		case 'b':
			s.at++
		case 's':
			s.at += bytes.IndexByte(s.b[s.at:], 0) + 1
		case '*':
			for s.at < end {
				s.variable()
			}
		default:
			n := uint64(s.b[s.at])
			if fields[i] == '#' {
				n = s.variable()
			} else {
				s.at++
			}
			inside, rest, _ := strings.Cut(fields[i+2:], ")")
			s.record(strings.Repeat(inside, int(n))+rest, end)
			return
		}
	}
	if end >= 0 && s.at != end {
		s.t.Fatalf("fields %s end at byte %d; the record at %d", fields, s.at, end)
	}
}

// file turns a file of definitions or events with chunks of so many bytes.
func (s *swapper) file(chunk int, fields map[uint8]string, events bool) {
	for s.at < len(s.b) {
		if s.at%chunk == 0 {
			s.b[s.at+1] = bigEndian
			s.at += 2
			s.record("FF", -1)
			continue
		}
		id := s.b[s.at]
		s.at++
		switch {
		case id == recordEndOfChunk:
			s.at = (s.at + chunk - 1) / chunk * chunk
		case id == recordEndOfFile || id == recordEndOfBuffer:
			return
		case events && id == recordTimestamp:
			s.full(8)
		case events && isSingle[id]:
			s.variable()
		default:
			layout, ok := fields[id]
			if !ok {
				s.t.Fatalf("byte %d: the fields of record %d are not known here", s.at-1, id)
			}
			n := int(s.b[s.at])
			if s.at++; n == 255 {
				n = int(binary.LittleEndian.Uint64(s.b[s.at:]))
				s.full(8)
			}
			s.record(layout, s.at+n)
		}
	}
}

// changed copies an archive, with what change makes of each of its files.
func changed(t testing.TB, anchor string, change func(name string, b []byte) []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(anchor))); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.otf2", "*.def", "*/*.def", "*/*.evt"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, change(strings.TrimPrefix(file, dir), b), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	return filepath.Join(dir, filepath.Base(anchor))
}

// testChunk is the size of chunks that archive.c writes.
const testChunk = 1 << 18

// turned is an archive as a machine writes it whose numbers begin with the most significant byte.
func turned(t testing.TB, anchor string) string {
	t.Helper()
	return changed(t, anchor, func(name string, b []byte) []byte {
		s := &swapper{t: t, b: b}
		switch {
		case strings.HasSuffix(name, ".otf2"):
			b[1] = bigEndian
			s.at = 2
			s.record("sbbbbbFFbbFFsssI", -1)
			if n := binary.BigEndian.Uint32(b[s.at-4:]); n != 0 {
				t.Fatalf("%d properties in the anchor", n)
			}
			s.record("FII", -1)
		case strings.HasSuffix(name, ".evt"):
			s.file(testChunk, eventFields, true)
		case strings.Count(name, "/") == 1:
			s.file(testChunk, definitionFields, false)
		default:
			s.file(testChunk, localFields, false)
		}
		return b
	})
}

// packing says how blocks of a compressed archive are written.
type packing struct {
	// order is that of the mark before each block: the writing machine's. Sizes are little-endian on all.
	order binary.ByteOrder
	// ends tells that a block is a whole stream of zlib; OTF2's library only flushes.
	ends bool
	// padded tells that a block has as many bytes in the file as when decompressed, as some versions of the library
	// write it.
	padded bool
}

// packed is an archive whose files are compressed with zlib, chunk by chunk.
func packed(t testing.TB, anchor string, p packing) string {
	t.Helper()
	return changed(t, anchor, func(name string, b []byte) []byte {
		if strings.HasSuffix(name, ".otf2") {
			at := 2 + len("OTF2\x00") + 5 + 8 + 8 + 1
			if b[at] != compressionNone {
				t.Fatalf("compression %d", b[at])
			}
			b[at] = compressionZlib
			return b
		}
		var out bytes.Buffer
		last := uint32(0)
		for chunk := range slices.Chunk(b, testChunk) {
			var z bytes.Buffer
			w, err := zlib.NewWriterLevel(&z, 4)
			if err == nil {
				_, err = w.Write(chunk)
			}
			if err == nil {
				err = w.Flush()
			}
			if err == nil && p.ends {
				err = w.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			size := uint32(z.Len())
			var head [20]byte
			p.order.PutUint64(head[:], 0x00000000ffffffff)
			for i, x := range []uint32{size, uint32(len(chunk)), last} {
				binary.LittleEndian.PutUint32(head[8+4*i:], x)
			}
			out.Write(head[:])
			out.Write(z.Bytes())
			if p.padded && z.Len() < len(chunk) {
				out.Write(bytes.Repeat([]byte{0xa5}, len(chunk)-z.Len()))
			}
			last = size
		}
		return out.Bytes()
	})
}

// variants are an archive as machines of either byte order write it, and compressed.
func variants(t *testing.T, anchor string) map[string]string {
	t.Helper()
	big := turned(t, anchor)
	all := map[string]string{"little endian": anchor, "big endian": big}
	for _, p := range []packing{{order: binary.LittleEndian}, {order: binary.LittleEndian, ends: true},
		{order: binary.LittleEndian, padded: true}} {
		all[fmt.Sprintf("zlib, ends %v, padded %v", p.ends, p.padded)] = packed(t, anchor, p)
	}
	all["zlib, big endian"] = packed(t, big, packing{order: binary.BigEndian})
	return all
}

// FuzzBlocks: whatever a compressed file holds, its blocks are read to their end or an error names a place.
func FuzzBlocks(f *testing.F) {
	for _, p := range []packing{{order: binary.LittleEndian}, {order: binary.BigEndian, ends: true},
		{order: binary.LittleEndian, padded: true}} {
		at := packed(f, "testdata/ping-pong/traces.otf2", p)
		b, err := os.ReadFile(filepath.Join(filepath.Dir(at), "traces.def"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(append(slices.Clone(b), b...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newInflater(bytes.NewReader(b))
		for {
			block, err := r.block()
			if err != nil {
				break
			}
			if len(block) > mostBlock || r.at > int64(len(b)) {
				t.Fatalf("%d bytes, at %d of %d", len(block), r.at, len(b))
			}
		}
	})
}
