package ingest

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/commq/commq/capture/ingest/clocks"
	"github.com/commq/commq/capture/ingest/internal/dense"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// epochStart is the start of an epoch on a rank.
type epochStart struct {
	row    int64
	issued uint32 // highest serial number given out before
}

// crossing says how a request (or the message of a matched probe) ended that was posted in an earlier epoch.
type crossing struct {
	serial uint32
	flags  uint32
	source int32
	tag    int32
	bytes  int64
	hash   int64 // of what arrived; null: none
	end    completion
	buffer uint64 // of the MPI_Mrecv or MPI_Imrecv that received a matched probe's message
	// withdrawn: a receive that was cancelled and then freed; see freeRequest. It says nothing of other requests.
	withdrawn bool
}

// completion refers to the row that completed a request or a message.
type completion struct {
	seq    int64
	t0, t1 uint64
	err    int32 // error class; 0: none
	site   int32 // its call site
	// truncated: err is MPI_ERR_TRUNCATE. A receive that failed with it took its message.
	truncated bool
}

// tookNothing reports whether a receive that the row ended took no message, because the call failed.
func (c *completion) tookNothing() bool { return c.err != 0 && !c.truncated }

// epochBounds returns the times at which epochs 1, 2, ... begin, so that each has about epochRows of the rows. It
// counts whole blocks of the ranks.
func epochBounds(ranks []*rankSpool, rows, epochRows int64) []int64 {
	n := (rows + epochRows/2) / epochRows
	n = min(n, math.MaxInt16) // more row groups than a file of Parquet may have
	if n < 2 {
		return nil
	}
	type sample struct{ ns, rows int64 }
	var samples []sample
	for _, r := range ranks {
		clk := r.clock
		for k := range r.blocks {
			end := r.facts.Rows
			if k+1 < len(r.blocks) {
				end = r.blocks[k+1].row
			}
			if end > r.blocks[k].row {
				samples = append(samples, sample{clk.Ns(r.blocks[k].t0), end - r.blocks[k].row})
			}
		}
	}
	slices.SortFunc(samples, func(a, b sample) int { return cmp.Compare(a.ns, b.ns) })
	var bounds []int64
	var before int64
	for _, s := range samples {
		next := int64(len(bounds)+1) * rows / n
		if before >= next && s.ns > 0 && (len(bounds) == 0 || s.ns > bounds[len(bounds)-1]) {
			bounds = append(bounds, s.ns)
		}
		before += s.rows
	}
	return bounds
}

// cutEpochs cuts the rows of all ranks into epochs that begin at the given times, and finds the requests that are
// pending across a border.
func cutEpochs(ctx context.Context, ranks []*rankSpool, bounds []int64, workers int) error {
	return parallel(ctx, workers, len(ranks), func(i int) error {
		r := ranks[i]
		c := cutter{files: r.files, blocks: r.blocks, positions: r.positions, rows: r.facts.Rows, clock: r.clock,
			siteID: &r.siteID, withdrawn: r.withdrawn}
		c.cut(bounds)
		if len(bounds) > 0 {
			c.findCrossings()
		}
		r.starts, r.crossing = c.starts, c.crossings
		return nil
	})
}

// cutter cuts the rows of one rank into epochs.
type cutter struct {
	files     []*spool.File
	blocks    []block
	positions []position
	rows      int64
	clock     clocks.Clock
	siteID    *dense.Map[int32]
	withdrawn map[uint32]bool // requests that were cancelled and then freed

	starts    []epochStart
	crossings []crossing
	// messages received by an MPI_Imrecv that is not complete, by the serial number of its request
	taken map[uint32]*crossing
}

// cut finds where the epochs begin.
func (r *cutter) cut(bounds []int64) {
	cur := newCursor(r.files)
	var here position
	r.starts = []epochStart{{}}
	row, issued := int64(0), uint32(0)
	var g group
	for _, bound := range bounds {
		k := r.blockBefore(bound, row)
		if k >= 0 {
			row, issued = r.blocks[k].row, r.blocks[k].issued
			cur.restore(r.positions[k])
		}
		for {
			here = cur.save(here)
			if !cur.next(&g) {
				r.starts = append(r.starts, epochStart{row, issued})
				break
			}
			if c := g.call(); c != nil && r.clock.Ns(c.T0) >= bound {
				cur.restore(here)
				r.starts = append(r.starts, epochStart{row, issued})
				break
			}
			row += g.rows()
			issued = max(issued, g.highestIssued())
		}
	}
	r.starts = append(r.starts, epochStart{row: r.rows})
}

// blockBefore returns the last block that begins before the time and not before the row, or -1.
func (r *cutter) blockBefore(bound, row int64) int {
	k, _ := slices.BinarySearchFunc(r.blocks, bound, func(b block, t int64) int {
		if b.row < r.rows && r.clock.Ns(b.t0) < t {
			return -1
		}
		return 1
	})
	k--
	if k < 0 || r.blocks[k].row < row {
		return -1
	}
	return k
}

// rows returns the number of rows that a group becomes.
func (g *group) rows() int64 {
	c := g.call()
	if c == nil {
		return 0
	}
	if ops[c.Call] != opStartall || c.T1 == 0 {
		return 1
	}
	n := int64(0)
	for i := range g.slots {
		if g.slots[i].Kind == spool.KindStart {
			n += int64(g.slots[i].AsStart().N)
		}
	}
	return max(n, 1)
}

// highestIssued returns the highest serial number that the call gave out.
func (g *group) highestIssued() uint32 {
	c := g.call()
	if c == nil || c.T1 == 0 {
		return 0
	}
	high := uint32(0)
	if ops[c.Call].issues() {
		high = c.Req
	}
	for i := 1; i < len(g.slots); i++ {
		if g.slots[i].Kind == spool.KindStart {
			st := g.slots[i].AsStart()
			for _, e := range st.Start[:st.N] {
				high = max(high, e.Req)
			}
		}
	}
	return high
}

// findCrossings reads the blocks in which a request ends that was posted in an earlier epoch.
func (r *cutter) findCrossings() {
	epoch := 0
	r.taken = map[uint32]*crossing{}
	cur := newCursor(r.files)
	for k := range r.blocks {
		end := r.rows
		if k+1 < len(r.blocks) {
			end = r.blocks[k+1].row
		}
		first := epoch
		for epoch+2 < len(r.starts) && r.starts[epoch+1].row < end {
			epoch++
		}
		b := &r.blocks[k]
		if b.lo > b.hi || b.lo > r.starts[epoch].issued && !r.endsTaken(b) {
			continue
		}
		r.readBlock(&cur, k, end, first)
	}
	for _, c := range r.taken { // received, but the request was never completed
		r.crossings = append(r.crossings, *c)
	}
	slices.SortFunc(r.crossings, func(a, b crossing) int { return int(int64(a.serial) - int64(b.serial)) })
}

// endsTaken reports whether the request of a taken message may end in the block.
func (r *cutter) endsTaken(b *block) bool {
	for req := range r.taken {
		if b.lo <= req && req <= b.hi {
			return true
		}
	}
	return false
}

// readBlock collects the crossings in block k, up to row end. epoch is not later than that of the block's first row.
func (r *cutter) readBlock(cur *cursor, k int, end int64, epoch int) {
	cur.restore(r.positions[k])
	var g group
	for row := r.blocks[k].row; row < end && cur.next(&g); row += g.rows() {
		c := g.call()
		if c == nil || c.T1 == 0 {
			continue
		}
		for epoch+2 < len(r.starts) && r.starts[epoch+1].row <= row {
			epoch++
		}
		before := r.starts[epoch].issued
		by := completion{seq: row, t0: c.T0, t1: c.T1, site: siteOf(r.siteID, c)}
		by.err, by.truncated = g.failure()
		switch ops[c.Call] {
		case opComplete, opTransferEnd:
			r.addEnded(&g, by, before)
		case opMrecv, opImrecv:
			r.addReceived(&g, by, before)
		case opRequestFree:
			if c.Req <= before && r.withdrawn[c.Req] {
				r.crossings = append(r.crossings, crossing{serial: c.Req, flags: spool.FlagCancelled,
					hash: schema.NullInt64, end: by, withdrawn: true})
			}
		}
	}
}

// addEnded adds the requests that a completion call ended, if they were issued before the epoch of the call.
func (r *cutter) addEnded(g *group, by completion, before uint32) {
	received := g.receivedHashes()
	g.eachDone(func(d spool.DoneEntry) {
		if m := r.taken[d.Req]; m != nil {
			m.end, m.flags, m.hash = by, d.Flags, received.get(d.Req)
			r.crossings = append(r.crossings, *m)
			delete(r.taken, d.Req)
		}
		if d.Req <= before {
			r.crossings = append(r.crossings,
				crossing{serial: d.Req, flags: d.Flags, source: d.Source, tag: d.Tag, bytes: d.Bytes,
					hash: received.get(d.Req), end: by})
		}
	})
}

// addReceived adds the message that an MPI_Mrecv or MPI_Imrecv received, if it was probed before the epoch of the call.
func (r *cutter) addReceived(g *group, by completion, before uint32) {
	message := g.message()
	if message == 0 || message > before {
		return
	}
	c := g.call()
	m := crossing{serial: message, buffer: c.Buf, hash: g.receivedHash(0), end: by}
	if ops[c.Call] == opMrecv || c.Req == 0 {
		r.crossings = append(r.crossings, m)
		return
	}
	m.end = completion{seq: schema.NullInt64}
	r.taken[c.Req] = &m
}

// siteOf returns the id of a call's site; null when it has none.
func siteOf(ids *dense.Map[int32], c *spool.Call) int32 {
	if c.Site == 0 || c.Site > 1<<31-1 {
		return schema.NullInt32
	}
	if id, ok := ids.Get(int32(c.Site)); ok {
		return id
	}
	return schema.NullInt32
}
