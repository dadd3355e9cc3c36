package ingest

import (
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/symbols"
	"github.com/commq/commq/schema"
)

// maxBlockRows is the distance, in rows, of the entries of a rank's index; with tiny epochs it is smaller.
const maxBlockRows = 256

// block is an entry of a rank's index: where a stretch of about maxBlockRows rows begins, and which requests end in it. It
// lets epochs be cut and requests that outlive one be found without reading everything again.
type block struct {
	t0     uint64 // ticks of its first call
	row    int64  // of its first call
	issued uint32 // highest serial number given out before it
	lo, hi uint32 // lowest and highest serial number that ends in it; lo > hi: none
}

// rankSpool is what is known of one rank.
type rankSpool struct {
	rank      int32
	files     []*spool.File // by thread
	blockRows int64

	rows      int64
	finalized bool // its MPI_Finalize or MPI_Session_finalize was recorded
	inited    bool // its MPI_Init was
	switched  bool // MPI_Pcontrol(0) was
	lossy     bool // calls of a thread were dropped
	usesSelf  bool
	polls     uint64
	comms     []commDef // in the order they were defined
	types     []typeDef
	sites     symbols.Sites
	siteID    numbered[int32] // id in callsites by the process's number
	pairs     [][]clockPair   // by thread
	blocks    []block
	at        []int // slot numbers of the blocks, one per thread each
	openCalls []openCall
	lastCall  uint16 // the call it entered last; 0: none

	host  int32
	clock clock

	elsewhere bool             // its records are on another machine: all that is known is what a part's index says
	lastTicks map[int32]uint64 // by thread, of such a rank, where records reached their bound

	whole map[slotAt]int // behind calls that never returned: how many definitions are whole

	starts []epochStart // by epoch; the last is the rank's end
	cross  []crossing   // by serial
}

// slotAt is a slot of a rank: which thread's, and its number there.
type slotAt struct {
	thread int32
	slot   int
}

// openCall is a call that never returned.
type openCall struct {
	call spool.Call
	file string
}

type typeDef struct {
	id     int64
	name   string
	fixed  spool.TypeDef
	global int32
}

// scanner is the state of the first pass over a rank.
type scanner struct {
	*rankSpool
	cur    cursor
	issued uint32
	names  map[int64]int // communicators by number: index in comms
}

// scan is the first pass: definitions, counts and the index.
func (r *rankSpool) scan() error {
	s := scanner{rankSpool: r, cur: newCursor(r.files), names: map[int64]int{}}
	r.pairs = make([][]clockPair, len(r.files))
	r.whole = map[slotAt]int{}
	var g group
	for {
		if r.rows >= int64(len(r.blocks))*r.blockRows {
			s.beginBlock()
		}
		if !s.cur.next(&g) {
			break
		}
		if err := s.group(&g); err != nil {
			return fmt.Errorf("%s: %w", r.files[g.thread].Name, err)
		}
	}
	r.addPolls()
	return nil
}

func (s *scanner) beginBlock() {
	s.blocks = append(s.blocks, block{row: s.rows, issued: s.issued, lo: math.MaxUint32})
	s.at = s.cur.save(s.at)
}

// addPolls prefers the headers' counts, which know the polls behind the last record; a killed process has none.
func (r *rankSpool) addPolls() {
	var said uint64
	for _, f := range r.files {
		said += f.Header.Polls
	}
	r.polls = max(r.polls, said)
}

// group takes in one call, or the definitions at the beginning of a file.
func (s *scanner) group(g *group) error {
	c := g.call()
	if c == nil {
		return s.continued(g, opOther)
	}
	if int(c.Call) >= len(ops) || c.Call == 0 {
		return fmt.Errorf("slot %d: a call with the number %d, known are 1 to %d: was it captured with a newer commq?", g.first, c.Call, len(ops)-1)
	}
	b := &s.blocks[len(s.blocks)-1]
	if b.row == s.rows {
		b.t0 = c.T0
	}
	switch schema.CallID(c.Call) {
	case schema.CallFinalize, schema.CallSessionFinalize:
		s.finalized = true
	case schema.CallInit, schema.CallInitThread:
		s.inited = true
	case schema.CallPcontrol:
		s.switched = s.switched || c.Count == 0
	}
	if c.Comm == selfNumber {
		s.usesSelf = true
	}
	o := ops[c.Call]
	s.lastCall = c.Call
	if c.T1 == 0 {
		s.openCalls = append(s.openCalls, openCall{*c, s.files[g.thread].Name})
		s.rows++
		return s.continued(g, o)
	}
	if c.Req != 0 {
		switch {
		case o == opComplete || o == opTransferEnd:
			b.ends(c.Req)
		case o.issues():
			s.issued = max(s.issued, c.Req)
		}
	}
	if len(g.slots) == 1 {
		s.rows++
		return nil
	}
	return s.continued(g, o)
}

func (b *block) ends(serial uint32) {
	if serial != 0 {
		b.lo, b.hi = min(b.lo, serial), max(b.hi, serial)
	}
}

// continued takes in the slots behind a CALL slot, and counts the call's rows.
func (s *scanner) continued(g *group, o op) error {
	c := g.call()
	b := &s.blocks[len(s.blocks)-1]
	rows := int64(0)
	hasDefs := false
	for i := range g.slots {
		slot := &g.slots[i]
		if slot.Kind == spool.KindDef {
			hasDefs = true
		}
		if slot.Kind > spool.KindIO || c == nil && slot.Kind < spool.KindDef {
			return fmt.Errorf("slot %d: of kind %d: the file is damaged", g.first+i, slot.Kind)
		}
		if c == nil || c.T1 == 0 {
			continue
		}
		n, err := s.slot(b, slot, o)
		if err != nil {
			return fmt.Errorf("slot %d: %w", g.first+i, err)
		}
		rows += n
	}
	if c != nil && c.T1 != 0 {
		s.rows += max(rows, 1)
	}
	if !hasDefs {
		return nil
	}
	whole := 0
	err := g.definitions(func(d *spool.Def, data []byte) error {
		err := s.define(g, d, data)
		if err == nil {
			whole++
		}
		return err
	})
	if c != nil && c.T1 == 0 {
		s.whole[slotAt{g.thread, g.first}] = whole
	}
	return err
}

// slot takes in one continuing slot and returns how many requests it started.
func (s *scanner) slot(b *block, slot *spool.Call, o op) (rows int64, err error) {
	switch slot.Kind {
	case spool.KindDone:
		d := slot.AsDone()
		if int(d.N) > len(d.Done) {
			return 0, fmt.Errorf("a DONE slot with %d entries", d.N)
		}
		for _, e := range d.Done[:d.N] {
			b.ends(e.Req)
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
			b.ends(uint32(w.Value))
		}
	case spool.KindParts:
		if p := slot.AsParts(); int(p.N) > len(p.Part) {
			return 0, fmt.Errorf("a PARTS slot with %d entries", p.N)
		}
	case spool.KindPre:
		s.polls += slot.AsPre().Polls
	}
	return rows, nil
}

// define takes in one definition.
func (s *scanner) define(g *group, d *spool.Def, data []byte) error {
	switch d.What {
	case spool.DefComm:
		c, err := parseComm(data, s.rank)
		if err != nil {
			return err
		}
		c.id, c.parent = d.ID, s.parentOf(c.fixed.Parent)
		if call := g.call(); call != nil {
			c.byTag = c.byTag || madeByTag(schema.CallID(call.Call))
		}
		s.names[d.ID] = len(s.comms)
		s.comms = append(s.comms, c)
	case spool.DefCommName:
		if i, ok := s.names[d.ID]; ok {
			s.comms[i].name, s.comms[i].named = string(data), true
		} else if d.ID == worldNumber || d.ID == selfNumber {
			s.comms = append(s.comms, commDef{id: d.ID, parent: parentNone, predefined: true, name: string(data), named: true})
			s.names[d.ID] = len(s.comms) - 1
		}
	case spool.DefCommFree:
		delete(s.names, d.ID)
	case spool.DefType:
		fixed, name, err := payload[spool.TypeDef](data)
		if err != nil {
			return err
		}
		if fixed.Bytes < 0 {
			return fmt.Errorf("datatype %d of %d bytes", d.ID, fixed.Bytes)
		}
		s.types = append(s.types, typeDef{id: d.ID, name: string(name), fixed: fixed})
	case spool.DefClock:
		pair, _, err := payload[struct{ Tick, Ns uint64 }](data)
		if err != nil {
			return err
		}
		s.pairs[g.thread] = append(s.pairs[g.thread], clockPair{pair.Tick, int64(pair.Ns)})
	case spool.DefModule, spool.DefSite:
		return s.sites.Define(d.What, d.ID, data)
	case spool.DefLabel:
	default:
		return fmt.Errorf("unknown: was it captured with a newer commq?")
	}
	return nil
}

// madeByTag says whether the call makes communicators of ranks that need not have the same parent, or not all of it.
func madeByTag(call schema.CallID) bool {
	switch call {
	case schema.CallCommCreateGroup, schema.CallIntercommCreate, schema.CallCommCreateFromGroup, schema.CallIntercommCreateFromGroups,
		schema.CallCommAccept, schema.CallCommConnect, schema.CallCommJoin:
		return true
	}
	return false
}

// epochStart is where an epoch begins on a rank.
type epochStart struct {
	row    int64
	issued uint32 // highest serial number given out before
	at     []int  // slot numbers, by thread
}

// crossing is how a request (or a matched probe's message) ended that was posted in an earlier epoch.
type crossing struct {
	serial uint32
	flags  uint32
	source int32
	tag    int32
	bytes  int64
	hash   int64 // of what arrived; null: none
	end    completion
	buffer uint64 // of the MPI_Mrecv or MPI_Imrecv that took a matched probe's message
	recv   int64  // seq of that call
}

// completion is the row that completed something.
type completion struct {
	seq    int64
	t0, t1 uint64
	err    int32 // error class; 0: none
	site   int32 // its call site
}

// split cuts the rank's rows into epochs at the given times, and finds the requests that live across a cut.
func (r *rankSpool) split(bounds []int64) error {
	threads := len(r.files)
	cur := newCursor(r.files)
	r.starts = append(r.starts[:0], epochStart{at: make([]int, threads)})
	row, issued := int64(0), uint32(0)
	clk := r.clock
	var g group
	for _, bound := range bounds {
		k := r.blockBefore(bound, row)
		if k >= 0 {
			row, issued = r.blocks[k].row, r.blocks[k].issued
			cur.restore(r.at[k*threads : (k+1)*threads])
		}
		for {
			at := cur.save(nil)
			if !cur.next(&g) {
				r.starts = append(r.starts, epochStart{row, issued, at})
				break
			}
			if c := g.call(); c != nil && clk.at(c.T0) >= bound {
				cur.restore(at)
				r.starts = append(r.starts, epochStart{row, issued, at})
				break
			}
			row += rowsOf(&g)
			issued = max(issued, highestIssued(&g))
		}
	}
	r.starts = append(r.starts, epochStart{row: r.rows})
	if len(bounds) > 0 {
		r.findCrossings()
	}
	return nil
}

// blockBefore is the last block that begins before the time and not before the row; -1: none.
func (r *rankSpool) blockBefore(bound, row int64) int {
	clk := r.clock
	k, _ := slices.BinarySearchFunc(r.blocks, bound, func(b block, t int64) int {
		if b.row < r.rows && clk.at(b.t0) < t {
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

// rowsOf is the number of rows that a group becomes.
func rowsOf(g *group) int64 {
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

// highestIssued is the highest serial number that the call gave out.
func highestIssued(g *group) uint32 {
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

// findCrossings reads the blocks in which a request ends that was posted in an earlier epoch than the block's own.
func (r *rankSpool) findCrossings() {
	epoch := 0
	taken := map[uint32]*crossing{} // messages taken by MPI_Imrecv whose request is not complete yet, by that request
	for k := range r.blocks {
		last := r.rows
		if k+1 < len(r.blocks) {
			last = r.blocks[k+1].row
		}
		first := epoch
		for epoch+2 < len(r.starts) && r.starts[epoch+1].row < last {
			epoch++
		}
		b := &r.blocks[k]
		if b.lo > b.hi || b.lo > r.starts[epoch].issued && !anyWithin(taken, b) {
			continue
		}
		r.blockCrossings(k, last, first, taken)
	}
	for _, c := range taken { // taken, but never completed
		r.cross = append(r.cross, *c)
	}
	slices.SortFunc(r.cross, func(a, b crossing) int { return int(int64(a.serial) - int64(b.serial)) })
}

func anyWithin(taken map[uint32]*crossing, b *block) bool {
	for req := range taken {
		if b.lo <= req && req <= b.hi {
			return true
		}
	}
	return false
}

// blockCrossings reads the rows of block k, up to row last; epoch is that of its first row or an earlier one.
func (r *rankSpool) blockCrossings(k int, last int64, epoch int, taken map[uint32]*crossing) {
	threads := len(r.files)
	cur := newCursor(r.files)
	cur.restore(r.at[k*threads : (k+1)*threads])
	var g group
	for row := r.blocks[k].row; row < last && cur.next(&g); row += rowsOf(&g) {
		c := g.call()
		if c == nil || c.T1 == 0 {
			continue
		}
		for epoch+2 < len(r.starts) && r.starts[epoch+1].row <= row {
			epoch++
		}
		before := r.starts[epoch].issued
		end := completion{row, c.T0, c.T1, errorOf(&g), r.siteOf(c)}
		switch ops[c.Call] {
		case opComplete, opTransferEnd:
			eachDone(&g, func(d spool.DoneEntry) {
				if m := taken[d.Req]; m != nil {
					m.end, m.flags, m.hash = end, d.Flags, arrived(&g, d.Req)
					r.cross = append(r.cross, *m)
					delete(taken, d.Req)
				}
				if d.Req <= before {
					r.cross = append(r.cross, crossing{serial: d.Req, flags: d.Flags, source: d.Source, tag: d.Tag, bytes: d.Bytes, hash: arrived(&g, d.Req), end: end})
				}
			})
		case opMrecv, opImrecv:
			message := messageOf(&g)
			if message == 0 || message > before {
				continue
			}
			m := crossing{serial: message, buffer: c.Buf, recv: row, hash: arrived(&g, 0), end: end}
			if ops[c.Call] == opMrecv || c.Req == 0 {
				r.cross = append(r.cross, m)
				continue
			}
			m.end = completion{seq: schema.NullInt64}
			taken[c.Req] = &m
		}
	}
}

// errorOf is the error class that the call returned, 0 after success.
func errorOf(g *group) int32 {
	for i := 1; i < len(g.slots); i++ {
		if g.slots[i].Kind == spool.KindErr {
			return g.slots[i].AsErr().ErrorClass
		}
	}
	return 0
}

// eachDone calls f for every request that a completion call completed.
func eachDone(g *group, f func(spool.DoneEntry)) {
	c := g.call()
	if c.Req != 0 {
		f(spool.DoneEntry{Req: c.Req, Source: c.Peer, Tag: c.Tag, Flags: uint32(c.Flags), Bytes: c.Count})
	}
	for i := 1; i < len(g.slots); i++ {
		if g.slots[i].Kind == spool.KindDone {
			d := g.slots[i].AsDone()
			for _, e := range d.Done[:d.N] {
				f(e)
			}
		}
	}
}

// messageOf is the serial of the matched message that an MPI_Mrecv or MPI_Imrecv took; 0: none.
func messageOf(g *group) uint32 {
	for i := 1; i < len(g.slots); i++ {
		if w := g.slots[i].AsWide(); w.Kind == spool.KindWide && w.What == spool.WideMessage && w.Value > 0 && w.Value <= math.MaxUint32 {
			return uint32(w.Value)
		}
	}
	return 0
}
