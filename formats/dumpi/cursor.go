package dumpi

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// cursor reads the numbers of a part of a file, which are big-endian. The first error stays; after it all numbers
// are 0.
type cursor struct {
	in  *bufio.Reader
	at  int64 // of the next byte, in the file
	end int64 // of the part
	err error
	buf [8]byte
}

// newCursor reads the bytes of a file from one to before another.
func newCursor(f io.ReaderAt, from, to int64, size int) *cursor {
	return &cursor{in: bufio.NewReaderSize(io.NewSectionReader(f, from, to-from), size), at: from, end: to}
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// bytes reads n bytes, at most 8.
func (c *cursor) bytes(n int) []byte {
	if c.err == nil {
		if _, err := io.ReadFull(c.in, c.buf[:n]); err != nil {
			c.fail("the file, or its part, ends in a record")
		}
	}
	if c.err != nil {
		clear(c.buf[:])
		return c.buf[:n]
	}
	c.at += int64(n)
	return c.buf[:n]
}

func (c *cursor) int8() int64  { return int64(int8(c.bytes(1)[0])) }
func (c *cursor) int16() int64 { return int64(int16(binary.BigEndian.Uint16(c.bytes(2)))) }
func (c *cursor) int32() int64 { return int64(int32(binary.BigEndian.Uint32(c.bytes(4)))) }
func (c *cursor) int64() int64 { return int64(binary.BigEndian.Uint64(c.bytes(8))) }

func (c *cursor) uint8() uint8   { return c.bytes(1)[0] }
func (c *cursor) uint16() uint16 { return binary.BigEndian.Uint16(c.bytes(2)) }
func (c *cursor) uint32() uint32 { return binary.BigEndian.Uint32(c.bytes(4)) }

// length reads the length of an array whose elements have at least each bytes.
func (c *cursor) length(each int64) int {
	at := c.at
	n := c.int32()
	if n < 0 || n*each > c.end-c.at {
		c.fail("an array of %d elements at byte %d; %d bytes follow", n, at, c.end-c.at)
		return 0
	}
	return int(n)
}

// skip skips n bytes.
func (c *cursor) skip(n int64) {
	if c.err != nil {
		return
	}
	if n > c.end-c.at {
		c.fail("%d bytes at byte %d; %d follow", n, c.at, c.end-c.at)
		return
	}
	for n > 0 {
		k, err := c.in.Discard(int(min(n, 1<<20)))
		c.at, n = c.at+int64(k), n-int64(k)
		if err != nil {
			c.fail("the file, or its part, ends in a record")
			return
		}
	}
}

// text reads n bytes as a text.
func (c *cursor) text(n int) string {
	if c.err != nil || int64(n) > c.end-c.at {
		c.fail("a text of %d bytes at byte %d; %d follow", n, c.at, c.end-c.at)
		return ""
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c.in, b); err != nil {
		c.fail("the file, or its part, ends in a text")
		return ""
	}
	c.at += int64(n)
	return string(b)
}

// shortText reads a text with a length of 16 bits before it.
func (c *cursor) shortText() string { return c.text(int(c.uint16())) }
