package filehash

import "encoding/binary"

// The types of values in Thrift's compact protocol.
const (
	compactStop = iota // the end of a struct
	compactTrue
	compactFalse
	compactByte
	compactI16
	compactI32
	compactI64
	compactDouble
	compactBinary
	compactList
	compactSet
	compactMap
	compactStruct
	compactUUID
)

// mostDepth is how many structs and lists may be within each other; those of Parquet have at most five.
const mostDepth = 64

// compact skips values of Thrift's compact protocol. Apache's library takes at least three times as long, 20 ms for 20
// million messages, which DuckDB adds in 60 ms; the fuzz target compares the two. failed is set when the bytes end too
// early or are no such value.
type compact struct {
	bytes  []byte
	at     int
	failed bool
}

func (t *compact) byte() byte {
	if t.at >= len(t.bytes) {
		t.failed = true
		return 0
	}
	t.at++
	return t.bytes[t.at-1]
}

// varint returns a number that is coded in zigzag.
func (t *compact) varint() int32 {
	n := t.uvarint()
	return int32(n>>1) ^ -int32(n&1)
}

// uvarint returns the last 32 bits of a number, as Apache's library does where a number of 32 bits should be.
func (t *compact) uvarint() (n uint32) {
	for i := range binary.MaxVarintLen64 {
		b := t.byte()
		n |= uint32(b&0x7f) << (7 * i)
		if b < 0x80 {
			return n
		}
	}
	t.failed = true
	return 0
}

func (t *compact) jump(n uint32) {
	if int64(n) > int64(len(t.bytes)-t.at) {
		t.failed = true
		return
	}
	t.at += int(n)
}

// skip goes to the end of a value. A truth value takes a byte in a list, and none in a struct.
func (t *compact) skip(kind byte, inList bool, depth int) {
	if depth == 0 {
		t.failed = true
	}
	if t.failed {
		return
	}
	switch kind {
	case compactTrue, compactFalse:
		if inList {
			t.jump(1)
		}
	case compactByte:
		t.jump(1)
	case compactI16, compactI32, compactI64:
		t.uvarint()
	case compactDouble:
		t.jump(8)
	case compactUUID:
		t.jump(16)
	case compactBinary:
		t.jump(t.uvarint())
	case compactList, compactSet:
		head := t.byte()
		n := uint32(head >> 4)
		if n == 15 {
			n = t.uvarint()
		}
		for ; n > 0 && !t.failed; n-- {
			t.skip(head&0xf, true, depth-1)
		}
	case compactMap:
		n := t.uvarint()
		if n == 0 {
			return
		}
		kinds := t.byte()
		for ; n > 0 && !t.failed; n-- {
			t.skip(kinds>>4, true, depth-1)
			t.skip(kinds&0xf, true, depth-1)
		}
	case compactStruct:
		for !t.failed {
			head := t.byte()
			if head&0xf == compactStop {
				return
			}
			if head>>4 == 0 {
				t.varint() // the number of the field
			}
			t.skip(head&0xf, false, depth-1)
		}
	default:
		t.failed = true
	}
}
