package models

import (
	"math/big"
	"math/bits"
)

// Picoseconds is a time or a duration in units of 1e-12 s. Durations are computed exactly and rounded once, half up, to a whole
// picosecond: rounding to nanoseconds adds up.
type Picoseconds int64

// Forever, 53 days, is the longest duration: what takes longer takes Forever. The sum of two does not overflow.
const Forever Picoseconds = 1<<62 - 1

const perSecond = 1_000_000_000_000

// Transfer is how long so many bytes take, S/B (in each piece its own B): without latency, and without waiting for anything. Negative bytes count as 0.
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
	lo, carry := bits.Add64(lo, b/2, 0) // half up: for an odd b the half is never met
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

// inPieces is Transfer with pieces: each piece's bytes by its own bandwidth, rounded for itself.
func (i *Interconnect) inPieces(bytes int64) Picoseconds {
	whole := Interconnect{BytesPerSecond: i.BytesPerSecond, BytesPer: i.BytesPer}
	at := int64(0)
	var t Picoseconds
	for _, p := range i.Pieces {
		if p.AboveBytes == 0 || bytes <= p.AboveBytes {
			break
		}
		t = t.plus(whole.Transfer(p.AboveBytes - at)).plus(p.Step)
		whole, at = Interconnect{BytesPerSecond: p.BytesPerSecond}, p.AboveBytes
	}
	return t.plus(whole.Transfer(bytes - at))
}

// plus is the sum of two durations.
func (p Picoseconds) plus(q Picoseconds) Picoseconds { return min(p+q, Forever) }

// rounded is num/den, not negative, half up.
func rounded(num, den *big.Int) Picoseconds {
	q := new(big.Int).Lsh(num, 1)
	q.Add(q, den)
	q.Quo(q, new(big.Int).Lsh(den, 1))
	if !q.IsInt64() || q.Int64() > int64(Forever) {
		return Forever
	}
	return Picoseconds(q.Int64())
}
