// Package clocks puts the timers of all ranks of a job on one clock. It takes the timer readings of each rank's spool
// files and returns the hosts and, for each rank, a Clock that turns ticks into ns since the job's first call.
//
// clock.go has the clock itself, hosts.go finds the clock of each host and its offset to the others. The method is
// described in docs/method/clocks.md.
package clocks

import (
	"cmp"
	"math"
	"slices"

	"github.com/commq/commq/capture/spool"
)

// Pair is a reading of the timer and of CLOCK_MONOTONIC at the same moment.
type Pair struct {
	Tick uint64
	Ns   int64
}

// Clock turns the ticks of a timer into ns. It is piecewise linear and never decreases. Ticks mostly increase, so it
// remembers the piece that it used last; a copy remembers its own.
type Clock struct {
	pieces  []piece
	last    int
	virtual bool  // ticks are picoseconds of virtual time; there are no pieces
	fine    int64 // the resolution less 1: times are rounded down to multiples of fine+1, a power of two
}

// piece is valid from tick on, up to the next piece.
type piece struct {
	tick  uint64
	ns    int64
	slope float64 // ns per tick
	limit int64   // ns of the next piece, which rounding must not exceed
}

// Ns returns the time at a tick. The first and the last piece also apply before and after all pieces.
func (c *Clock) Ns(tick uint64) int64 {
	if c.virtual {
		return (virtualNs(min(max(tick, spool.VirtualStart), 1<<63)) - virtualNs(spool.VirtualStart)) &^ c.fine
	}
	p := &c.pieces[c.last]
	if tick < p.tick || c.last+1 < len(c.pieces) && tick >= c.pieces[c.last+1].tick {
		p = c.find(tick)
	}
	return min(p.ns+int64(math.Floor(p.slope*float64(int64(tick-p.tick)))), p.limit) &^ c.fine
}

// virtualNs rounds picoseconds to whole ns, a half up.
func virtualNs(ps uint64) int64 { return int64((ps + 500) / 1000) }

func (c *Clock) find(tick uint64) *piece {
	k, found := slices.BinarySearchFunc(c.pieces, tick, func(p piece, t uint64) int { return cmp.Compare(p.tick, t) })
	if !found && k > 0 {
		k--
	}
	c.last = k
	return &c.pieces[k]
}

// Span returns the length in ns of an interval in ticks, at the rate of the piece used last.
func (c *Clock) Span(ticks uint64) int64 {
	if c.virtual {
		return virtualNs(min(ticks, 1<<63))
	}
	return int64(c.pieces[c.last].slope * float64(ticks))
}

// New makes a clock from readings. It leaves out readings that would make it go backwards or stand still. If only one
// reading is left, the rate is not known: the clock then counts one ns per tick, and New returns false.
func New(pairs []Pair) (Clock, bool) {
	sorted := slices.Clone(pairs)
	slices.SortFunc(sorted, func(a, b Pair) int { return cmp.Or(cmp.Compare(a.Tick, b.Tick), cmp.Compare(a.Ns, b.Ns)) })
	var rising []Pair
	for _, p := range sorted {
		if n := len(rising); n == 0 || p.Tick > rising[n-1].Tick && p.Ns > rising[n-1].Ns {
			rising = append(rising, p)
		}
	}
	if len(rising) < 2 {
		return unitRate(rising[0]), false
	}
	var c Clock
	for i := range len(rising) - 1 {
		a, b := rising[i], rising[i+1]
		c.pieces = append(c.pieces, piece{a.Tick, a.Ns, float64(b.Ns-a.Ns) / float64(b.Tick-a.Tick), b.Ns})
	}
	c.pieces[len(c.pieces)-1].limit = math.MaxInt64
	return c, true
}

// unitRate returns the clock that counts one ns per tick and passes through p.
func unitRate(p Pair) Clock { return Clock{pieces: []piece{{p.Tick, p.Ns, 1, math.MaxInt64}}} }

// Shifted returns the clock minus offset + drift*(ns-at), where ns and at are times on the clock itself.
func (c Clock) Shifted(offset int64, drift float64, at int64) Clock {
	out := Clock{pieces: slices.Clone(c.pieces)}
	move := func(ns int64) int64 { return ns - offset - int64(math.Round(drift*float64(ns-at))) }
	for i := range out.pieces {
		p := &out.pieces[i]
		p.ns = move(p.ns)
		p.slope *= 1 - drift
		if p.limit != math.MaxInt64 {
			p.limit = move(p.limit)
		}
	}
	return out
}
