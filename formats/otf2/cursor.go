package otf2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Records that OTF2 itself uses, in every kind of file.
const (
	recordEndOfChunk  = 0
	recordEndOfBuffer = 1
	recordEndOfFile   = 2
	recordChunkHeader = 3
	recordTimestamp   = 5
	recordAttributes  = 6
)

// The marks of byte order in chunk headers.
const (
	littleEndian = 'B'
	bigEndian    = '#'
)

// undefined32 and undefined64 stand for no value: no root, no parent.
const (
	undefined32 = 1<<32 - 1
	undefined64 = 1<<64 - 1
)

var errShort = errors.New("the record goes on beyond the end of the data")

// cursor reads values from memory. The first error stays; later reads return 0.
type cursor struct {
	data []byte
	at   int
	big  bool
	err  error
}

// need reports whether n more bytes are there.
func (c *cursor) need(n int) bool {
	if c.err == nil && (n < 0 || n > len(c.data)-c.at) {
		c.err = errShort
	}
	return c.err == nil
}

func (c *cursor) uint8() uint8 {
	if !c.need(1) {
		return 0
	}
	c.at++
	return c.data[c.at-1]
}

// full64 reads a number of fixed size.
func (c *cursor) full64() uint64 {
	if !c.need(8) {
		return 0
	}
	c.at += 8
	if c.big {
		return binary.BigEndian.Uint64(c.data[c.at-8:])
	}
	return binary.LittleEndian.Uint64(c.data[c.at-8:])
}

// uint32 and uint64 read numbers of variable size: one byte with their length, then that many bytes. Length 255 stands
// for a number of all ones.
func (c *cursor) uint32() uint32 {
	v := c.variable(4)
	if v == undefined64 {
		return undefined32
	}
	return uint32(v)
}

func (c *cursor) uint64() uint64 { return c.variable(8) }

func (c *cursor) variable(most int) uint64 {
	size := int(c.uint8())
	switch {
	case size == 255:
		return undefined64
	case size > most && c.err == nil:
		c.err = fmt.Errorf("a number of %d bytes; want at most %d", size, most)
	}
	if c.err == nil && !c.big && c.at+8 <= len(c.data) && size <= 8 { // nearly always
		c.at += size
		return binary.LittleEndian.Uint64(c.data[c.at-size:]) & (1<<(8*size) - 1)
	}
	if !c.need(size) {
		return 0
	}
	var v uint64
	b := c.data[c.at : c.at+size]
	c.at += size
	if c.big {
		for _, x := range b {
			v = v<<8 | uint64(x)
		}
		return v
	}
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// text reads a string that ends with a zero byte.
func (c *cursor) text() string {
	if c.err != nil {
		return ""
	}
	n := bytes.IndexByte(c.data[c.at:], 0)
	if n < 0 {
		c.err = errors.New("a text has no end")
		return ""
	}
	c.at += n + 1
	return string(c.data[c.at-n-1 : c.at-1])
}

// record reads the length of a record and returns a cursor over its content; the cursor itself moves behind it. Later
// versions of OTF2 append fields to records, which the caller does not see.
func (c *cursor) record() cursor {
	n := uint64(c.uint8())
	if n == 255 {
		n = c.full64()
	}
	if c.err == nil && n > uint64(len(c.data)-c.at) {
		c.err = errShort
	}
	if c.err != nil {
		return cursor{err: c.err}
	}
	c.at += int(n)
	return cursor{data: c.data[:c.at], at: c.at - int(n), big: c.big}
}

// remaining returns the number of bytes that were not read.
func (c *cursor) remaining() int { return len(c.data) - c.at }

// count reads a number of members; more of them than bytes are left is an error.
func (c *cursor) count() int {
	n := c.uint32()
	if c.err == nil && uint64(n) > uint64(c.remaining()) {
		c.err = fmt.Errorf("%d members in a record with %d bytes left", n, c.remaining())
	}
	if c.err != nil {
		return 0
	}
	return int(n)
}

// header reads the two bytes that begin each file and chunk: the record and the byte order.
func (c *cursor) header() {
	if id := c.uint8(); c.err == nil && id != recordChunkHeader {
		c.err = fmt.Errorf("byte %d where a chunk begins; want %d", id, recordChunkHeader)
	}
	switch b := c.uint8(); {
	case b == bigEndian:
		c.big = true
	case b == littleEndian:
		c.big = false
	case c.err == nil:
		c.err = fmt.Errorf("byte %#x for the byte order; want %#x or %#x", b, littleEndian, bigEndian)
	}
}
