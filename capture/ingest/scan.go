package ingest

import (
	"context"
	"fmt"
	"math"

	"github.com/commq/commq/capture/ingest/clocks"
	"github.com/commq/commq/capture/ingest/handles"
	"github.com/commq/commq/capture/ingest/internal/dense"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/symbols"
	"github.com/commq/commq/schema"
)

// rankSpool is one rank: its records, and what the stages find out about it.
type rankSpool struct {
	rank  int32
	files []*spool.File // by thread

	// found by cutDamaged
	damage []damage

	// found by scan
	facts     rankFacts
	blocks    []block
	positions []position // where the blocks begin
	sites     symbols.Sites
	complete  map[slotAt]int  // after calls that never returned: how many definitions are complete
	withdrawn map[uint32]bool // requests that were cancelled and then freed; nil: none

	// set by newPlan
	clock  clocks.Clock     // take a copy: it remembers its last use
	siteID dense.Map[int32] // id in callsites by the process's number

	// set by cutEpochs
	starts   []epochStart // by epoch; the last is the end of the rank
	crossing []crossing   // by serial

	// remote means that the records are on another machine, so that only what is in the index of their part is known.
	// Then lastTicks has, by thread, the time at which the records reached their limit.
	remote    bool
	lastTicks map[int32]uint64
}

// rankFacts are the results of the first pass that other parts of the job need too. Equal records give equal gob
// encodings, so it has no maps.
type rankFacts struct {
	Rows      int64
	Finalized bool  // it recorded MPI_Finalize or MPI_Session_finalize
	Switched  bool  // it recorded MPI_Pcontrol(0)
	Lossy     bool  // calls of a thread are missing: they were dropped, or their records are damaged
	Damaged   int64 // calls whose records are damaged or behind damage, at least
	Polls     uint64
	Handles   *handles.Definitions
	Pairs     [][]clocks.Pair // by thread
	Open      []spool.Call    // calls that never returned
	LastCall  uint16          // the call it entered last; 0: none
}

// maxBlockRows is the distance in rows between the blocks of a rank, unless epochs are tiny.
const maxBlockRows = 256

// block is a stretch of about maxBlockRows rows: where it begins, and which requests end in it. With blocks, epochs
// can be cut, and requests that outlive one found, without reading everything again.
type block struct {
	t0     uint64 // ticks of its first call
	row    int64  // of its first call
	issued uint32 // highest serial number given out before it
	lo, hi uint32 // lowest and highest serial number that ends in it; lo > hi: none
}

// slotAt is a slot of a rank: the thread and the number of the slot in its file.
type slotAt struct {
	thread int32
	slot   int
}

// scanner is the state of the first pass over a rank.
type scanner struct {
	r      *rankSpool // filled in
	cur    cursor
	issued uint32 // highest serial number given out so far
	// requests that MPI_Cancel was called on, until they end
	cancelled map[uint32]bool
}

// scanRanks is the first pass: it finds the definitions, counts and blocks of every rank.
func scanRanks(ctx context.Context, ranks []*rankSpool, o *Options) error {
	blockRows := int64(maxBlockRows)
	if o.epochRows > 0 {
		blockRows = min(blockRows, max(1, o.epochRows/64))
	}
	err := parallel(ctx, o.Workers, len(ranks), func(i int) error { return scanRank(ranks[i], blockRows) })
	if err != nil {
		return err
	}
	return checkRecorded(ranks)
}

// scanRank is the first pass over one rank.
func scanRank(r *rankSpool, blockRows int64) error {
	r.cutDamaged()
	r.facts.Damaged = r.damagedCalls()
	r.facts.Handles = handles.NewDefinitions(r.rank, r.files[0].Name)
	r.facts.Handles.SessionsOnly = r.files[0].Header.Sessions != 0 // until there is an MPI_Init
	r.facts.Pairs = make([][]clocks.Pair, len(r.files))
	r.complete = map[slotAt]int{}
	s := scanner{r: r, cur: newCursor(r.files)}
	var g group
	for {
		if r.facts.Rows >= int64(len(r.blocks))*blockRows {
			s.beginBlock()
		}
		if !s.cur.next(&g) {
			break
		}
		if err := s.scanGroup(&g); err != nil {
			if e := r.unpacked(); e != nil { // what was unpacked before the error may be wrong, too
				return e
			}
			return fmt.Errorf("%s: %w", r.files[g.thread].Name, err)
		}
	}
	if err := r.unpacked(); err != nil {
		return err
	}
	// The headers also count the polls after the last record, but only if the process ended normally.
	var polls uint64
	for _, f := range r.files {
		polls += f.Header.Polls
	}
	r.facts.Polls = max(r.facts.Polls, polls)
	return nil
}

// unpacked is the first error of unpacking the rank's records.
func (r *rankSpool) unpacked() error {
	for _, f := range r.files {
		if err := f.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) beginBlock() {
	s.r.blocks = append(s.r.blocks, block{row: s.r.facts.Rows, issued: s.issued, lo: math.MaxUint32})
	s.r.positions = append(s.r.positions, s.cur.save(position{}))
}

// scanGroup scans one call, or the definitions at the beginning of a file.
func (s *scanner) scanGroup(g *group) error {
	c := g.call()
	if c == nil {
		return s.scanContinuation(g, opOther)
	}
	if int(c.Call) >= len(ops) || c.Call == 0 {
		return fmt.Errorf("slot %d: a call with the number %d, known are 1 to %d: was it captured with a newer commq?",
			g.first, c.Call, len(ops)-1)
	}
	facts, b := &s.r.facts, &s.r.blocks[len(s.r.blocks)-1]
	if b.row == facts.Rows {
		b.t0 = c.T0
	}
	switch schema.CallID(c.Call) {
	case schema.CallFinalize, schema.CallSessionFinalize:
		facts.Finalized = true
	case schema.CallInit, schema.CallInitThread:
		facts.Handles.SessionsOnly = false
	case schema.CallPcontrol:
		facts.Switched = facts.Switched || c.Count == 0
	}
	if c.Comm == handles.Self {
		facts.Handles.UsesSelf = true
	}
	o := ops[c.Call]
	facts.LastCall = c.Call
	if c.T1 == 0 {
		facts.Open = append(facts.Open, *c)
		facts.Rows++
		return s.scanContinuation(g, o)
	}
	if c.Req != 0 {
		switch {
		case o == opComplete || o == opTransferEnd:
			s.addEnd(b, c.Req)
		case schema.CallID(c.Call) == schema.CallCancel:
			if s.cancelled == nil {
				s.cancelled = map[uint32]bool{}
			}
			s.cancelled[c.Req] = true
		case o == opRequestFree && s.cancelled[c.Req]:
			s.addWithdrawn(b, c.Req)
		case o.issues():
			s.issued = max(s.issued, c.Req)
		}
	}
	if len(g.slots) == 1 {
		facts.Rows++
		return nil
	}
	return s.scanContinuation(g, o)
}

// addWithdrawn notes that a request that was cancelled is freed in the block.
func (s *scanner) addWithdrawn(b *block, serial uint32) {
	if s.r.withdrawn == nil {
		s.r.withdrawn = map[uint32]bool{}
	}
	s.r.withdrawn[serial] = true
	s.addEnd(b, serial)
}

// addEnd notes that a request ends in the block.
func (s *scanner) addEnd(b *block, serial uint32) {
	b.addEnd(serial)
	if len(s.cancelled) > 0 {
		delete(s.cancelled, serial)
	}
}

// addEnd notes that a request, or a matched message, ends in the block.
func (b *block) addEnd(serial uint32) {
	if serial != 0 {
		b.lo, b.hi = min(b.lo, serial), max(b.hi, serial)
	}
}

// scanContinuation scans the slots after a CALL slot and counts the rows of the call.
func (s *scanner) scanContinuation(g *group, o op) error {
	c := g.call()
	b := &s.r.blocks[len(s.r.blocks)-1]
	rows := int64(0)
	hasDefs := false
	for i := range g.slots {
		slot := &g.slots[i]
		if slot.Kind == spool.KindDef {
			hasDefs = true
		}
		if slot.Kind > spool.KindSum || c == nil && slot.Kind < spool.KindDef {
			return fmt.Errorf("slot %d: of kind %d: the file is damaged", g.first+i, slot.Kind)
		}
		if c == nil || c.T1 == 0 {
			continue
		}
		n, err := s.scanSlot(b, slot, o)
		if err != nil {
			return fmt.Errorf("slot %d: %w", g.first+i, err)
		}
		rows += n
	}
	if c != nil && c.T1 != 0 {
		s.r.facts.Rows += max(rows, 1)
	}
	if !hasDefs {
		return nil
	}
	complete := 0
	err := g.definitions(func(d *spool.Def, payload []byte) error {
		err := s.define(g, d, payload)
		if err == nil {
			complete++
		}
		return err
	})
	if c != nil && c.T1 == 0 {
		s.r.complete[slotAt{g.thread, g.first}] = complete
	}
	return err
}

// scanSlot scans one continuing slot and returns how many rows it adds: the requests that an MPI_Startall started.
func (s *scanner) scanSlot(b *block, slot *spool.Call, o op) (rows int64, err error) {
	switch slot.Kind {
	case spool.KindDone:
		d := slot.AsDone()
		if int(d.N) > len(d.Done) {
			return 0, fmt.Errorf("a DONE slot with %d entries", d.N)
		}
		for _, e := range d.Done[:d.N] {
			s.addEnd(b, e.Req)
		}
	case spool.KindStart:
		st := slot.AsStart()
		if int(st.N) > len(st.Start) {
			return 0, fmt.Errorf("a START slot with %d entries", st.N)
		}
		for _, e := range st.Start[:st.N] {
			s.issued = max(s.issued, e.Req)
		}
		rows = int64(st.N)
		if o != opStartall {
			rows = 0
		}
	case spool.KindWide:
		if w := slot.AsWide(); w.What == spool.WideMessage && w.Value > 0 && w.Value <= math.MaxUint32 {
			b.addEnd(uint32(w.Value))
		}
	case spool.KindParts:
		if p := slot.AsParts(); int(p.N) > len(p.Part) {
			return 0, fmt.Errorf("a PARTS slot with %d entries", p.N)
		}
	case spool.KindPre:
		s.r.facts.Polls += slot.AsPre().Polls
	}
	return rows, nil
}

// define notes a definition.
func (s *scanner) define(g *group, d *spool.Def, payload []byte) error {
	switch d.What {
	case spool.DefComm, spool.DefCommName, spool.DefCommFree, spool.DefType:
		call := schema.CallID(0)
		if c := g.call(); c != nil {
			call = schema.CallID(c.Call)
		}
		return s.r.facts.Handles.Add(call, d, payload)
	case spool.DefClock:
		pair, _, err := handles.Payload[struct{ Tick, Ns uint64 }](payload)
		if err != nil {
			return err
		}
		s.r.facts.Pairs[g.thread] = append(s.r.facts.Pairs[g.thread], clocks.Pair{Tick: pair.Tick, Ns: int64(pair.Ns)})
	case spool.DefModule, spool.DefSite:
		return s.r.sites.Define(d.What, d.ID, payload)
	case spool.DefLabel, spool.DefReturn:
	default:
		return fmt.Errorf("unknown: was it captured with a newer commq?")
	}
	return nil
}
