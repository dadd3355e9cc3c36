package detect

import (
	"encoding/binary"
	"hash/crc32"
	"hash/crc64"
	"math/bits"
	"sync/atomic"
)

// checksum does arithmetic with payload hashes, which are cyclic redundancy checks whose register and result are inverted: CRC-64/XZ
// or zlib's CRC-32. docs/method/payload-hashes.md has the laws.
type checksum struct {
	width      int
	polynomial uint64     // reflected
	powers     [64]uint64 // x^(8 2^k) mod the polynomial, reflected
	of         func([]byte) uint64
	factors    [1 << 6]atomic.Pointer[factor]
}

// factor is what the hash of 8 bytes is multiplied by to have that of the same 8 bytes so many times.
type factor struct {
	times int64
	by    uint64
}

var ecma = crc64.MakeTable(crc64.ECMA)

// newChecksum is the arithmetic of hashes of 64 or 32 bits.
func newChecksum(width int) *checksum {
	c := &checksum{width: 64, polynomial: crc64.ECMA, of: func(b []byte) uint64 { return crc64.Checksum(b, ecma) }}
	if width == 32 {
		c = &checksum{width: 32, polynomial: crc32.IEEE, of: func(b []byte) uint64 { return uint64(crc32.ChecksumIEEE(b)) }}
	}
	p := uint64(1) << (c.width - 2) // x
	for range 3 {
		p = c.multiply(p, p)
	}
	for k := range c.powers {
		c.powers[k] = p
		p = c.multiply(p, p)
	}
	return c
}

// multiply is a b mod the polynomial; the highest bit is x^0.
func (c *checksum) multiply(a, b uint64) (product uint64) {
	for m := uint64(1) << (c.width - 1); m != 0; m >>= 1 {
		if a&m != 0 {
			product ^= b
		}
		b = b>>1 ^ c.polynomial&-(b&1)
	}
	return product
}

// join is the hash of what has hash a and then what has hash b and n bytes.
func (c *checksum) join(a, b uint64, n int64) uint64 {
	for rest := uint64(n); rest != 0; rest &= rest - 1 {
		a = c.multiply(c.powers[bits.TrailingZeros64(rest)], a)
	}
	return a ^ b
}

// repeated is the hash of n bytes in which the first 8, head, come again and again.
func (c *checksum) repeated(head, n int64) uint64 {
	var first [8]byte
	binary.LittleEndian.PutUint64(first[:], uint64(head))
	if n < 8 {
		return c.of(first[:n])
	}
	return c.join(c.multiply(c.factor(n/8), c.of(first[:])), c.of(first[:n%8]), n%8)
}

// factor is the factor for so many times, the sum of x^64k. Sizes of messages come again and again.
func (c *checksum) factor(times int64) uint64 {
	place := &c.factors[uint64(times)*0x9e3779b97f4a7c15>>58]
	if f := place.Load(); f != nil && f.times == times {
		return f.by
	}
	by, power, size := uint64(0), uint64(1)<<(c.width-1), int64(8) // of no bytes, and 1
	for count := times; count != 0; count >>= 1 {
		if count&1 != 0 {
			by = c.join(by, power, size)
		}
		power, size = c.join(power, power, size), 2*size
	}
	place.Store(&factor{times, by})
	return by
}

// rest are the n bytes behind the first 8 of a payload, head, low byte first; n is at most the width of the hash. It says whether there are
// such bytes: what is only changed by the bytes that come can be told from what was before and what is behind.
func (c *checksum) rest(head int64, n int, hash uint64) (rest uint64, ok bool) {
	var first [8]byte
	binary.LittleEndian.PutUint64(first[:], uint64(head))
	mask := ^uint64(0) >> (64 - c.width)
	at := ^hash & mask
	for range 8 * n {
		if at>>(c.width-1) != 0 {
			at = (at^c.polynomial)<<1 | 1
		} else {
			at <<= 1
		}
		at &= mask
	}
	at ^= ^c.of(first[:]) & mask
	return at, 8*n >= 64 || at>>(8*n) == 0
}
