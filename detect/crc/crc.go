// Package crc does arithmetic with cyclic redundancy checks: the hash of a concatenation, of a part, and of an XOR from
// the hashes of its pieces.
package crc

import (
	"encoding/binary"
	"hash/crc32"
	"hash/crc64"
	"math/bits"
	"sync/atomic"
)

// Arithmetic computes with payload hashes: cyclic redundancy checks with inverted register and result, CRC-64/XZ or
// zlib's CRC-32. docs/method/payload-hashes.md has the laws.
type Arithmetic struct {
	Width      int
	polynomial uint64     // reflected
	powers     [64]uint64 // x^(8 2^k) mod the polynomial, reflected
	sum        func([]byte) uint64
	factors    [1 << 6]atomic.Pointer[factor]
}

// factor is the multiplier that turns the hash of 8 bytes into the hash of those 8 bytes repeated.
type factor struct {
	times   int64
	product uint64
}

var ecma = crc64.MakeTable(crc64.ECMA)

// New returns the arithmetic of hashes of 64 or 32 bits.
func New(width int) *Arithmetic {
	c := &Arithmetic{Width: 64, polynomial: crc64.ECMA, sum: func(b []byte) uint64 { return crc64.Checksum(b, ecma) }}
	if width == 32 {
		c = &Arithmetic{Width: 32, polynomial: crc32.IEEE,
			sum: func(b []byte) uint64 { return uint64(crc32.ChecksumIEEE(b)) }}
	}
	p := uint64(1) << (c.Width - 2) // x
	for range 3 {
		p = c.multiply(p, p)
	}
	for k := range c.powers {
		c.powers[k] = p
		p = c.multiply(p, p)
	}
	return c
}

// multiply returns a times b modulo the polynomial; the highest bit is x^0.
func (c *Arithmetic) multiply(a, b uint64) (product uint64) {
	for m := uint64(1) << (c.Width - 1); m != 0; m >>= 1 {
		if a&m != 0 {
			product ^= b
		}
		b = b>>1 ^ c.polynomial&-(b&1)
	}
	return product
}

// Join returns the hash of a concatenation: first the bytes with hash a, then n bytes with hash b.
func (c *Arithmetic) Join(a, b uint64, n int64) uint64 {
	for rest := uint64(n); rest != 0; rest &= rest - 1 {
		a = c.multiply(c.powers[bits.TrailingZeros64(rest)], a)
	}
	return a ^ b
}

// Repeated returns the hash of n bytes that repeat the 8 bytes of head.
func (c *Arithmetic) Repeated(head, n int64) uint64 {
	var first [8]byte
	binary.LittleEndian.PutUint64(first[:], uint64(head))
	if n < 8 {
		return c.sum(first[:n])
	}
	return c.Join(c.multiply(c.factor(n/8), c.sum(first[:])), c.sum(first[:n%8]), n%8)
}

// factor returns the multiplier for times repetitions, the sum of x^64k. Results are cached, because message sizes
// recur.
func (c *Arithmetic) factor(times int64) uint64 {
	place := &c.factors[uint64(times)*0x9e3779b97f4a7c15>>58]
	if f := place.Load(); f != nil && f.times == times {
		return f.product
	}
	by, power, size := uint64(0), uint64(1)<<(c.Width-1), int64(8) // for no repetition, and for one
	for count := times; count != 0; count >>= 1 {
		if count&1 != 0 {
			by = c.Join(by, power, size)
		}
		power, size = c.Join(power, power, size), 2*size
	}
	place.Store(&factor{times, by})
	return by
}

// Tail reconstructs the n bytes after the first 8 of a payload from its hash; head has the first 8, low byte first,
// and n is at most the width of the hash. ok is false if no such bytes exist.
func (c *Arithmetic) Tail(head int64, n int, hash uint64) (rest uint64, ok bool) {
	var first [8]byte
	binary.LittleEndian.PutUint64(first[:], uint64(head))
	mask := ^uint64(0) >> (64 - c.Width)
	at := ^hash & mask
	for range 8 * n {
		if at>>(c.Width-1) != 0 {
			at = (at^c.polynomial)<<1 | 1
		} else {
			at <<= 1
		}
		at &= mask
	}
	at ^= ^c.sum(first[:]) & mask
	return at, 8*n >= 64 || at>>(8*n) == 0
}
