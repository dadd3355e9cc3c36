package ingest

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// clockPair is the timer and CLOCK_MONOTONIC read together.
type clockPair struct {
	tick uint64
	ns   int64
}

// clock turns ticks into ns on the run's clock: piecewise linear, never decreasing. Its copies are independent; each
// remembers the piece it used last, because ticks mostly increase.
type clock struct {
	pieces  []piece
	last    int
	virtual bool  // ticks are picoseconds of virtual time; there are no pieces
	fine    int64 // the bits below the resolution: times are rounded down to multiples of fine+1, a power of two
}

// piece is valid from tick on, to the next piece.
type piece struct {
	tick  uint64
	ns    int64
	slope float64 // ns per tick
	limit int64   // ns of the next piece: rounding must not overtake it
}

// at is the time at a tick. Before the first piece and behind the last the clock goes on at their rates.
func (c *clock) at(tick uint64) int64 {
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

func (c *clock) find(tick uint64) *piece {
	k, found := slices.BinarySearchFunc(c.pieces, tick, func(p piece, t uint64) int { return cmp.Compare(p.tick, t) })
	if !found && k > 0 {
		k--
	}
	c.last = k
	return &c.pieces[k]
}

// span is the length of an interval in ns.
func (c *clock) span(ticks uint64) int64 {
	if c.virtual {
		return virtualNs(min(ticks, 1<<63))
	}
	return int64(c.pieces[c.last].slope * float64(ticks))
}

// newClock makes a clock from pairs. Pairs that would make it go backwards or stand still are left out; a single pair
// gives the rate 1 and false.
func newClock(pairs []clockPair) (clock, bool) {
	sorted := slices.Clone(pairs)
	slices.SortFunc(sorted, func(a, b clockPair) int { return cmp.Or(cmp.Compare(a.tick, b.tick), cmp.Compare(a.ns, b.ns)) })
	var keep []clockPair
	for _, p := range sorted {
		if n := len(keep); n == 0 || p.tick > keep[n-1].tick && p.ns > keep[n-1].ns {
			keep = append(keep, p)
		}
	}
	if len(keep) < 2 {
		return clock{pieces: []piece{{keep[0].tick, keep[0].ns, 1, math.MaxInt64}}}, false
	}
	var c clock
	for i := range len(keep) - 1 {
		a, b := keep[i], keep[i+1]
		c.pieces = append(c.pieces, piece{a.tick, a.ns, float64(b.ns-a.ns) / float64(b.tick-a.tick), b.ns})
	}
	c.pieces[len(c.pieces)-1].limit = math.MaxInt64
	return c, true
}

// shifted is the clock minus offset + drift*(ns-at), all on the clock itself.
func (c clock) shifted(offset int64, drift float64, at int64) clock {
	out := clock{pieces: slices.Clone(c.pieces)}
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

// host is a machine: ranks of one host name and boot id share its clock.
type host struct {
	name, bootID string
	timer        uint32
	ranks        []*rankSpool
	offsets      offsets
	clock        clock
}

// offsets are a host's clock minus that of rank 0's, at MPI_Init and MPI_Finalize; null where not measured.
type offsets struct {
	init, initError, initAt    int64
	final, finalError, finalAt int64
}

// noOffsets are those of a host that has none.
var noOffsets = offsets{schema.NullInt64, schema.NullInt64, schema.NullInt64, schema.NullInt64, schema.NullInt64, schema.NullInt64}

// maxDrift is more than any two clocks differ in rate: 1 in 1000. A larger one is a measurement gone wrong.
const maxDrift = 1e-3

// setClocks finds the hosts, gives every rank its clock, and makes the earliest call of all the time 0.
func (j *job) setClocks() error {
	j.findHosts()
	if j.virtual() {
		j.setVirtualClocks()
		return nil
	}
	for i := range j.hosts {
		if err := j.setHostClock(&j.hosts[i], i == 0); err != nil {
			return err
		}
	}
	start := int64(math.MaxInt64)
	for _, r := range j.ranks {
		if r.rows > 0 {
			start = min(start, r.clock.at(r.blocks[0].t0))
		}
	}
	if start == math.MaxInt64 {
		start = 0
	}
	for _, r := range j.ranks {
		r.clock = r.clock.shifted(start, 0, 0)
		r.clock.fine = j.o.TimeResolutionNs - 1
	}
	return nil
}

// virtual says whether the times are virtual ones, by simulator ranks. All files are then alike: see checkHeader.
func (j *job) virtual() bool { return j.ranks[0].files[0].Header.Timer == spool.TimerVirtual }

// setVirtualClocks gives all ranks the one virtual clock, which begins at 0 in each: hosts have no offsets.
func (j *job) setVirtualClocks() {
	for i := range j.hosts {
		j.hosts[i].offsets = noOffsets
	}
	for _, r := range j.ranks {
		r.clock = clock{virtual: true, fine: j.o.TimeResolutionNs - 1}
	}
}

// findHosts numbers the machines in the order of the lowest rank on them.
func (j *job) findHosts() {
	number := map[[2]string]int{}
	for _, r := range j.ranks {
		h := &r.files[0].Header
		key := [2]string{spool.Text(h.Host[:]), spool.Text(h.BootID[:])}
		n, ok := number[key]
		if !ok {
			n = len(j.hosts)
			number[key] = n
			j.hosts = append(j.hosts, host{name: key[0], bootID: key[1], timer: h.Timer})
		}
		r.host = int32(n)
		j.hosts[n].ranks = append(j.hosts[n].ranks, r)
	}
}

// setHostClock makes one clock for all ranks of a machine, so that the order of their calls is that of the machine's
// timer; first says that it is the machine of the lowest rank.
func (j *job) setHostClock(h *host, first bool) error {
	base, known := h.reference()
	if !known && h.timer != spool.TimerMonotonic {
		j.warn("The timer of host %s was read only once against a clock: its times are in ticks.", h.name)
	}
	h.setOffsets(first && j.ranks[0].rank == 0)
	offset, drift, at := int64(0), 0.0, int64(0)
	o := &h.offsets
	switch {
	case o.init != schema.NullInt64 && o.final != schema.NullInt64 && o.finalAt != o.initAt:
		offset, at = o.init, o.initAt
		drift = float64(o.final-o.init) / float64(o.finalAt-o.initAt)
		if math.Abs(drift) > maxDrift {
			j.warn("The clock offsets of host %s at MPI_Init and MPI_Finalize, %d and %d ns, differ more than clocks can: the first is used.", h.name, o.init, o.final)
			drift = 0
		}
	case o.init != schema.NullInt64:
		offset = o.init
	case o.final != schema.NullInt64:
		offset = o.final
	default:
		j.warn("The clock offset of host %s was not measured: the times of its ranks do not compare with those of others.", h.name)
	}
	h.clock = base.shifted(offset, drift, at)
	for _, r := range h.ranks {
		if r.files[0].Header.Timer != h.timer {
			return fmt.Errorf("%s: its timer is of kind %d, that of rank %d on the same host %s of kind %d: capture all ranks alike",
				r.files[0].Name, r.files[0].Header.Timer, h.ranks[0].rank, h.name, h.timer)
		}
		r.clock = h.clock
		if h0 := &r.files[0].Header; known && distance(base.at(h0.Clock0Tick), h0.Clock0Ns) > maxSkewNs {
			j.warn("The timer of rank %d does not go with that of its host %s: its times are by its own readings.", r.rank, h.name)
			own, _ := newClock(filePairs(h0, r.pairs[0]))
			r.clock = own.shifted(offset, drift, at)
		}
	}
	return nil
}

// maxSkewNs is how far the readings of two ranks on one machine may be apart before they are taken for different timers.
const maxSkewNs = 1e6

func distance(a, b int64) int64 { return max(a-b, b-a) }

// reference is the host's clock from the pairs of the file whose pairs span the longest time; where no file has two, from
// the pairs of all its files together.
func (h *host) reference() (clock, bool) {
	if h.timer == spool.TimerMonotonic { // ticks are ns
		first := &h.ranks[0].files[0].Header // near the times, so that a double holds the difference exactly
		return clock{pieces: []piece{{uint64(first.Clock0Ns), first.Clock0Ns, 1, math.MaxInt64}}}, true
	}
	var best, all []clockPair
	var span uint64
	for _, r := range h.ranks {
		for t, f := range r.files {
			pairs := filePairs(&f.Header, r.pairs[t])
			all = append(all, pairs...)
			lo, hi := pairs[0].tick, pairs[0].tick
			for _, p := range pairs {
				lo, hi = min(lo, p.tick), max(hi, p.tick)
			}
			if hi-lo > span {
				best, span = pairs, hi-lo
			}
		}
	}
	if best == nil {
		best = all
	}
	return newClock(best)
}

// filePairs are the pairs of a file: those of its header and those between.
func filePairs(h *spool.Header, defined []clockPair) []clockPair {
	pairs := append([]clockPair{{h.Clock0Tick, h.Clock0Ns}}, defined...)
	if h.Clock1Tick != 0 {
		pairs = append(pairs, clockPair{h.Clock1Tick, h.Clock1Ns})
	}
	return pairs
}

// setOffsets takes the offsets of the lowest rank that has them. The machine of rank 0 has none against itself.
func (h *host) setOffsets(isFirst bool) {
	null := int64(schema.NullInt64)
	h.offsets = noOffsets
	for _, r := range h.ranks {
		s, o := &r.files[0].Header, &h.offsets
		if o.init == null && s.OffsetInitNs != null {
			o.init, o.initError, o.initAt = s.OffsetInitNs, s.OffsetInitErrorNs, s.OffsetInitAtNs
		}
		if o.final == null && s.OffsetFinalNs != null {
			o.final, o.finalError, o.finalAt = s.OffsetFinalNs, s.OffsetFinalErrorNs, s.OffsetFinalAtNs
		}
	}
	if isFirst {
		h.offsets.init, h.offsets.initError = 0, 0
		if h.offsets.final != null {
			h.offsets.final, h.offsets.finalError = 0, 0
		}
	}
}

// epochBounds are the times at which epochs 1, 2, ... begin: each epoch has about epochRows rows, by the index.
func (j *job) epochBounds() []int64 {
	n := (j.rows + j.o.epochRows/2) / j.o.epochRows
	if n < 2 {
		return nil
	}
	type sample struct{ ns, rows int64 }
	var samples []sample
	for _, r := range j.ranks {
		clk := r.clock
		for k := range r.blocks {
			end := r.rows
			if k+1 < len(r.blocks) {
				end = r.blocks[k+1].row
			}
			if end > r.blocks[k].row {
				samples = append(samples, sample{clk.at(r.blocks[k].t0), end - r.blocks[k].row})
			}
		}
	}
	slices.SortFunc(samples, func(a, b sample) int { return cmp.Compare(a.ns, b.ns) })
	var bounds []int64
	var before int64
	for _, s := range samples {
		next := int64(len(bounds)+1) * j.rows / n
		if before >= next && s.ns > 0 && (len(bounds) == 0 || s.ns > bounds[len(bounds)-1]) {
			bounds = append(bounds, s.ns)
		}
		before += s.rows
	}
	return bounds
}
