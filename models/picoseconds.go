package models

import (
	"math/big"
	"math/bits"
)

// Picoseconds is a time or a duration in units of 1e-12 s. Durations are computed exactly and rounded once, half up, to
// a whole picosecond; errors of rounding to nanoseconds would add up.
type Picoseconds int64

// Forever is the longest duration, 53 days; longer ones are cut to it. The sum of two durations does not overflow.
const Forever Picoseconds = 1<<62 - 1

const perSecond = 1_000_000_000_000

// Transfer returns how long bytes take, S/B (with the B of each piece), without latency and without waiting. Negative
// bytes count as 0.
func (i *Interconnect) Transfer(bytes int64) Picoseconds {
	if i.Pieces[0].AboveBytes != 0 {
		return i.inPieces(bytes)
	}
	if i.BytesPerSecond == 0 || bytes <= 0 {
		return 0
	}
	if i.BytesPer > 1 {
		t := new(big.Int).Mul(big.NewInt(bytes), big.NewInt(perSecond))
		return rounded(t.Mul(t, big.NewInt(i.BytesPer)), big.NewInt(i.BytesPerSecond))
	}
	b := uint64(i.BytesPerSecond)
	hi, lo := bits.Mul64(uint64(bytes), perSecond)
	lo, carry := bits.Add64(lo, b/2, 0) // half up: with an odd b the remainder is never exactly half
	hi += carry
	if hi >= b {
		return Forever
	}
	q, _ := bits.Div64(hi, lo, b)
	if q >= uint64(Forever) {
		return Forever
	}
	return Picoseconds(q)
}

// inPieces is Transfer for an interconnect with pieces. The time of each piece is rounded.
func (i *Interconnect) inPieces(bytes int64) Picoseconds {
	link := Interconnect{BytesPerSecond: i.BytesPerSecond, BytesPer: i.BytesPer}
	from := int64(0)
	var t Picoseconds
	for _, p := range i.Pieces {
		if p.AboveBytes == 0 || bytes <= p.AboveBytes {
			break
		}
		t = t.plus(link.Transfer(p.AboveBytes - from)).plus(p.Step)
		link, from = Interconnect{BytesPerSecond: p.BytesPerSecond}, p.AboveBytes
	}
	return t.plus(link.Transfer(bytes - from))
}

// plus returns the sum of two durations.
func (p Picoseconds) plus(q Picoseconds) Picoseconds { return min(p+q, Forever) }

// rounded returns num/den, which is not negative, rounded half up.
func rounded(num, den *big.Int) Picoseconds {
	q := new(big.Int).Lsh(num, 1)
	q.Add(q, den)
	q.Quo(q, new(big.Int).Lsh(den, 1))
	if !q.IsInt64() || q.Int64() > int64(Forever) {
		return Forever
	}
	return Picoseconds(q.Int64())
}
