package filehash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"
)

// smallTable is a table of a captured run.
const smallTable = "../../testdata/runs/pingpong.2/datatypes/0000.parquet"

// TestChangedHeaders flips each bit of what Headers reads, and each eighth of what it does not read.
func TestChangedHeaders(t *testing.T) {
	file, err := os.ReadFile(smallTable)
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(file))
	want, err := Headers(context.Background(), bytes.NewReader(file), size)
	if err != nil {
		t.Fatal(err)
	}
	footer, err := footerBytes(bytes.NewReader(file), size)
	if err != nil {
		t.Fatal(err)
	}
	s := structs{file: bytes.NewReader(file), end: size - footer}
	pages, structs, bits := 0, 0, 0
	for at := int64(4); at < s.end; {
		b, data, err := s.read(at)
		if err != nil {
			t.Fatal(err)
		}
		structs++
		if data > 0 {
			pages++
		}
		for bit := 8 * at; bit < 8*(at+int64(len(b))); bit++ {
			bits++
			if got := flipped(file, bit); got == want {
				t.Errorf("struct %d: byte %d, bit %d: the same hash", structs, bit/8, bit%8)
			}
		}
		for bit := 8 * (at + int64(len(b))); bit < 8*(at+int64(len(b))+data); bit += 8 {
			if got := flipped(file, bit); got != want {
				t.Errorf("data of page %d: byte %d: another hash", pages, bit/8)
			}
		}
		at += int64(len(b)) + data
	}
	t.Logf("%d bits flipped in %d structs", bits, structs)
	if pages < 3 || structs <= pages {
		t.Errorf("%d pages, %d structs", pages, structs)
	}
}

// TestHostileHeaders: a page is at most as long as the file, and as the 32 bits of its size tell.
func TestHostileHeaders(t *testing.T) {
	const footer = "\x00\x00\x00\x00PAR1"
	for _, c := range []struct{ file, want string }{
		{"PAR1\x15\x00\x15\x00\x15\x04\x00ab" + footer, ""},
		{"PAR1\x15\x00\x15\x00\x15\x06\x00ab" + footer, "a page of 3 bytes, of which the file has 2"},
		{"PAR1\x15\x00\x15\x00\x15\x05\x00ab" + footer, "no header of a page or column at byte 4"},
		{"PAR1\x15\x00\x15\x00\x15\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00" + footer,
			"a page of 2147483647 bytes, of which the file has 0"},
		{"PAR1\x15\x00\x15" + footer, "no header of a page or column at byte 4"},
	} {
		_, err := Headers(t.Context(), strings.NewReader(c.file), int64(len(c.file)))
		expect(t, fmt.Sprintf("%q", c.file), err, c.want)
	}
}

// flipped returns the hash of the headers of a file with one bit changed, 0 for an error.
func flipped(file []byte, bit int64) uint64 {
	changed := bytes.Clone(file)
	changed[bit/8] ^= 1 << (bit % 8)
	sum, err := Headers(context.Background(), bytes.NewReader(changed), int64(len(changed)))
	if err != nil {
		return 0
	}
	return sum
}

// FuzzHeaders compares what Apache's library makes of a Thrift struct, and looks for panics.
func FuzzHeaders(f *testing.F) {
	file, err := os.ReadFile(smallTable)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Add([]byte("PAR1\x15\x00\x15\x06\x15\x06\x00abc\x00\x00\x00\x00PAR1"))
	// a field of each type, lists of truth values and of maps, a field whose number is not a difference
	f.Add([]byte("PAR1\x11\x12\x13\x07\x14\x08\x15\x09\x16\x0a\x1712345678\x18\x02xy\x19\x21\x01\x02\x1a\x15\x03" +
		"\x1b\x01\x85\x01x\x05\x19\x1b\x01\x55\x02\x04\x1c\x15\x02\x00\x05\x06\x0a\x00"))
	f.Fuzz(func(t *testing.T, file []byte) {
		_, _ = Headers(context.Background(), bytes.NewReader(file), int64(len(file)))
		if len(file) < 4 {
			return
		}
		length, data, err := parseStruct(file[4:])
		wantLength, wantData, theirs := byLibrary(file[4:])
		if theirs == nil && (err != nil || length != wantLength || data != wantData) {
			t.Errorf("%d bytes, data of %d, %v; by the library %d, %d", length, data, err, wantLength, wantData)
		}
	})
}

// byLibrary does what parseStruct does.
func byLibrary(b []byte) (length int, data int64, err error) {
	ctx := context.Background()
	in := &thrift.TMemoryBuffer{Buffer: bytes.NewBuffer(b)}
	p := thrift.NewTCompactProtocolConf(in, nil)
	if _, err := p.ReadStructBegin(ctx); err != nil {
		return 0, 0, err
	}
	for {
		_, kind, id, err := p.ReadFieldBegin(ctx)
		switch {
		case err != nil:
			return 0, 0, err
		case kind == thrift.STOP:
			return len(b) - in.Len(), data, nil
		case id == compressedSize && kind == thrift.I32:
			n, err := p.ReadI32(ctx)
			if err != nil || n < 0 {
				return 0, 0, errors.Join(err, errStruct)
			}
			data = int64(n)
		default:
			if err := p.Skip(ctx, kind); err != nil {
				return 0, 0, err
			}
		}
	}
}
