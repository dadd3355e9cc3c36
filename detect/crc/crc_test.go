package crc

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// TestChecksum compares combined hashes with hashes of the bytes themselves; the first is the check value of
// CRC-64/XZ.
func TestChecksum(t *testing.T) {
	if h := New(64).sum([]byte("123456789")); h != 0x995dc9bbdf1939fa {
		t.Errorf("CRC-64 of 123456789 is %x, want 995dc9bbdf1939fa", h)
	}
	rnd := rand.New(rand.NewPCG(5, 3))
	for _, width := range []int{32, 64} {
		c := New(width)
		for range 300 {
			data := make([]byte, rnd.IntN(5000))
			for i := range data {
				data[i] = byte(rnd.Uint32())
			}
			cut := rnd.IntN(len(data) + 1)
			a, b := data[:cut], data[cut:]
			if got, want := c.Join(c.sum(a), c.sum(b), int64(len(b))), c.sum(data); got != want {
				t.Fatalf("%d bits, %d and %d bytes: joined %x, want %x", width, len(a), len(b), got, want)
			}
			head := rnd.Int64()
			n := rnd.IntN(1000)
			var first [8]byte
			binary.LittleEndian.PutUint64(first[:], uint64(head))
			if got, want := c.Repeated(head, int64(n)), c.sum(bytes.Repeat(first[:], n/8+1)[:n]); got != want {
				t.Fatalf("%d bits, %x for %d bytes: %x, want %x", width, head, n, got, want)
			}
			behind := 1 + rnd.IntN(width/8)
			tail := rnd.Uint64() >> (64 - 8*behind)
			var last [8]byte
			binary.LittleEndian.PutUint64(last[:], tail)
			whole := c.sum(append(first[:], last[:behind]...))
			if got, ok := c.Tail(head, behind, whole); !ok || got != tail {
				t.Fatalf("%d bits, %d bytes behind %x: %x, %v, want %x", width, behind, head, got, ok, tail)
			}
			if _, ok := c.Tail(head, behind, whole^1<<(width-1)); ok && behind < width/8 {
				t.Fatalf("%d bits, %d bytes behind %x: found with a hash that is of none", width, behind, head)
			}
		}
	}
}
