package filehash

import (
	"context"
	"errors"
	"io"

	"github.com/zeebo/xxh3"
)

// Headers returns the hash of what a Parquet file of size bytes has between its first four bytes and its footer, but for
// the data of pages: the headers of pages, the metadata behind each column and the index of pages. They are Thrift
// structs in the compact protocol, one behind the other; the data of a page is behind its header. A checksum in the data
// tells when it was changed, but nothing else does when a header says that the page has fewer rows.
func Headers(ctx context.Context, file io.ReaderAt, size int64) (uint64, error) {
	footer, err := footerBytes(file, size)
	if err != nil {
		return 0, err
	}
	s := structs{file: file, end: size - footer}
	hash := xxh3.New()
	for at := int64(len("PAR1")); at < s.end; {
		bytes, data, err := s.read(at)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return 0, err
		}
		_, _ = hash.Write(bytes) // hashing does not fail
		at += int64(len(bytes))
		if data > s.end-at {
			return 0, mismatch("a page of %d bytes, of which the file has %d: it was changed", data, s.end-at)
		}
		at += data
	}
	return hash.Sum64(), nil
}

// structs reads the Thrift structs of a Parquet file up to its footer, which begins at end.
type structs struct {
	file   io.ReaderAt
	end    int64
	buffer []byte // what was read at position first
	first  int64
}

// blockBytes is how much is read at a time: the headers of several small pages, or little of the data of a large one.
// Structs of more than mostStruct are not read: those of the largest files have less than 1 MB.
const (
	blockBytes = 4 << 10
	mostStruct = 16 << 20
	larger     = 8 // times as many bytes as before, where a struct does not end
)

// read returns the bytes of the struct at a position, and how many bytes of a page's data follow it.
func (s *structs) read(at int64) (bytes []byte, data int64, err error) {
	for n := int64(64); ; n *= larger { // the header of a page has about 20
		n = min(n, s.end-at)
		b, err := s.window(at, n)
		if err != nil {
			return nil, 0, err
		}
		length, data, err := parseStruct(b)
		if err == nil {
			return b[:length], data, nil
		}
		if n == s.end-at || n*larger > mostStruct {
			return nil, 0, mismatch("no header of a page or column at byte %d (%v): the file was changed", at, err)
		}
	}
}

// window returns n bytes at a position.
func (s *structs) window(at, n int64) ([]byte, error) {
	if at < s.first || at+n > s.first+int64(len(s.buffer)) {
		s.first = at
		s.buffer = append(s.buffer[:0], make([]byte, min(max(n, blockBytes), s.end-at))...)
		if _, err := s.file.ReadAt(s.buffer, at); err != nil {
			s.buffer = s.buffer[:0]
			return nil, err
		}
	}
	return s.buffer[at-s.first:][:n], nil
}

// compressedSize is the number of PageHeader's field compressed_page_size in parquet.thrift. No other struct between
// the pages has a number of 32 bits there.
const compressedSize = 3

// parseStruct returns the length of the Thrift struct that b begins with, and how many bytes of a page's data follow it.
func parseStruct(b []byte) (length int, data int64, err error) {
	t := compact{bytes: b}
	id := int16(0)
	for !t.failed {
		head := t.byte()
		kind := head & 0xf
		if kind == compactStop {
			break
		}
		if delta := int16(head >> 4); delta != 0 {
			id += delta
		} else {
			id = int16(t.varint())
		}
		if id == compressedSize && kind == compactI32 {
			data = int64(t.varint())
		} else {
			t.skip(kind, false, mostDepth)
		}
	}
	if t.failed || data < 0 {
		return 0, 0, errStruct
	}
	return t.at, data, nil
}

// errStruct is that bytes are no Thrift struct, or end before it does.
var errStruct = errors.New("no Thrift struct")
