package ingest

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/commq/commq/capture/ingest/clocks"
	"github.com/commq/commq/capture/ingest/handles"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// decoder makes the rows of one rank, epoch by epoch. decodeEpoch walks the records, and decodeCall hands each call
// to the method for its kind. That method fills in the row, and notes the requests that the call posts or completes.
type decoder struct {
	r      *rankSpool
	cur    cursor
	empty  schema.Event // the initial value of a row
	hashed bool         // there are payload hashes
	sited  bool         // there are call sites

	group group
	call  call
	row   schema.Event // of the current call
	label string       // of the call; empty: none

	rows        epochRows
	times       timeline
	filter      rowFilter
	ends        envelopes
	requests    requestTable
	completions completions
	crossings   crossings
	collectives collectives
	persistent  persistentRequests
	probed      probedMessages
	objects     objects

	noSite int64 // calls without call site, when sites were captured
}

// newDecoder makes the decoder of a rank.
func newDecoder(p *plan, r *rankSpool) *decoder {
	h := &r.files[0].Header
	library := spool.Text(h.MPILibrary[:])
	resolver := handles.NewResolver(p.comms, r.facts.Handles)
	d := &decoder{r: r, cur: newCursor(r.files), empty: schema.NullEvent,
		hashed: h.Hash != spool.AlgorithmNone, sited: h.Stack > 0,
		filter: rowFilter{selection: &p.filter},
		ends: envelopes{rank: r.rank, lateProbes: len(r.files) > 1 && !postsProbes(library),
			listsUnmatched: p.filter.record == RecordMessages},
		crossings:   crossings{list: r.crossing, starts: r.starts, clock: r.clock},
		collectives: collectives{rank: r.rank, counts: map[collectiveKey]int64{}},
		persistent:  persistentRequests{rank: r.rank, templates: map[uint32]*template{}},
		probed:      probedMessages{}, objects: objects{map[int32]maker{}, map[int32]maker{}}}
	d.call = call{group: &d.group, handles: resolver, rank: r.rank}
	d.completions = completions{rows: &d.rows, handles: resolver, ends: &d.ends}
	d.empty.Rank = r.rank
	if h.ComputeClock != spool.ClockNone {
		d.empty.ComputeNs = 0
	}
	d.empty.Polls, d.empty.PollNs = 0, 0
	d.times = newTimeline(r, h)
	return d
}

// postsProbes reports whether a matched probe that waits has a place among the posted receives in the MPI library with
// this version text. In Open MPI it does; MPICH looks for a message until there is one.
func postsProbes(library string) bool { return strings.HasPrefix(library, "Open MPI") }

// call is the call being decoded: its records, and what the handlers of calls need to know about it.
type call struct {
	group   *group
	handles *handles.Resolver
	rank    int32

	slot *spool.Call // the CALL slot
	op   op
	view int32      // its communicator, an index of handles; -1: none
	by   completion // refers to this call, for rows that it completes
	// lenient means that the arguments may not make sense: the call failed or did not return, or a thread of the rank
	// stopped recording, so that definitions may be missing.
	lenient bool
}

// epochRows are the rows of one rank in the current epoch, in the events of its shard.
type epochRows struct {
	events *schema.Events
	base   int   // index of the rank's first row in events
	n      int   // rows of the rank so far
	seq    int64 // of the next row
	epoch  int32
}

// add adds a row.
func (w *epochRows) add(r *schema.Event) {
	w.events.Set(w.base+w.n, r)
	w.n++
	w.seq++
}

// decodeEpoch makes the rows of the next epoch, which are rows base and following of events.
func (d *decoder) decodeEpoch(epoch int32, events *schema.Events, base int) error {
	d.rows.events, d.rows.base, d.rows.n, d.rows.epoch = events, base, 0, epoch
	d.ends.reset()
	d.collectives.parts = d.collectives.parts[:0]
	end := d.r.starts[epoch+1].row
	d.filter.begin(end - d.rows.seq)
	for d.rows.seq < end {
		if !d.cur.next(&d.group) {
			return fmt.Errorf("%s: has %d calls, but %d were read before: was it changed meanwhile?", d.r.files[0].Name,
				d.rows.seq, end)
		}
		if err := d.decodeGroup(); err != nil {
			return fmt.Errorf("%s: slot %d: %w", d.r.files[d.group.thread].Name, d.group.first, err)
		}
	}
	d.crossings.apply(&d.completions, &d.requests, d.probed)
	d.ends.orderRecvs()
	d.ends.countOpen()
	return nil
}

// decodeGroup makes the rows of one call.
func (d *decoder) decodeGroup() error {
	slot := d.group.call()
	d.label = ""
	if len(d.group.slots) > 1 || slot == nil {
		if err := d.redefine(slot); err != nil || slot == nil {
			return err
		}
	}
	r := &d.row
	*r = d.empty
	r.Seq, r.Epoch, r.Thread = d.rows.seq, d.rows.epoch, d.group.thread
	r.Call, r.Class = int16(slot.Call), int16(schema.Calls[slot.Call].Class)
	if d.label != "" {
		r.Label = d.label
	}
	d.times.set(&d.group, r)
	if r.Callsite = siteOf(&d.r.siteID, slot); r.Callsite == schema.NullInt32 && d.sited &&
		schema.Class(r.Class) != schema.ClassMark {
		d.noSite++
	}
	if len(d.group.slots) > 1 && d.hashed {
		d.group.setSentHashes(0, r)
	}
	c := &d.call
	c.slot, c.op = slot, ops[slot.Call]
	c.by = completion{seq: r.Seq, t0: slot.T0, t1: slot.T1, site: r.Callsite}
	if r.ErrorClass != schema.NullInt32 {
		c.by.err, c.by.truncated = d.group.failure()
	}
	c.lenient = slot.T1 == 0 || c.by.err != 0 || d.r.facts.Lossy
	if err := d.decodeCall(c, r); err != nil {
		return fmt.Errorf("%s: %w", schema.CallNames[slot.Call], err)
	}
	return nil
}

// errHalfWritten ends the definitions after a call that never returned, behind the last one that the first pass found
// complete.
var errHalfWritten = errors.New("half written")

// redefine applies the definitions in the group.
func (d *decoder) redefine(slot *spool.Call) error {
	complete := math.MaxInt
	if slot != nil && slot.T1 == 0 {
		complete = d.r.complete[slotAt{d.group.thread, d.group.first}]
	}
	return d.group.definitions(func(def *spool.Def, payload []byte) error {
		if complete--; complete < 0 {
			return errHalfWritten
		}
		if def.What == spool.DefLabel {
			d.label = handles.ValidText(string(payload))
		}
		d.call.handles.Redefine(def)
		return nil
	})
}

// decodeCall fills in the row according to the kind of the call, and adds it. MPI_Startall adds several rows.
func (d *decoder) decodeCall(c *call, r *schema.Event) (err error) {
	if err := c.findComm(r); err != nil {
		return err
	}
	posts := false // the call may have made a request
	switch c.op {
	case opSend, opIsend, opSendrecv, opIsendrecv:
		return d.send(c, r)
	case opRecv, opIrecv:
		return d.receive(c, r)
	case opSendInit, opRecvInit:
		return d.initPersistent(c, r)
	case opProbe, opMprobe:
		return d.probe(c, r)
	case opMrecv, opImrecv:
		return d.receiveMatched(c, r)
	case opComplete:
		d.complete(c, r)
		return nil
	case opRequestFree:
		d.freeRequest(c, r)
		return nil
	case opRequestStatus:
		c.setRequest(r)
		if p := d.requests.get(c.slot.Req); p != nil && schema.CallID(c.slot.Call) == schema.CallCancel {
			p.cancelled = true
		}
	case opStart, opStartall:
		return d.start(c, r)
	case opCollective, opIcollective, opCollectiveInit, opCommNew, opCommIdup:
		return d.collective(c, r)
	case opReady:
		d.readyPartitions(c, r)
		return nil
	case opControl:
		d.control(c, r)
		return nil
	case opRMA, opRMARequest:
		err = d.objects.setOneSided(c, r)
		posts = true
	case opWin:
		err = d.objects.setSynchronisation(c, r)
	case opWinNew:
		addMade(d.objects.windows, c, r)
	case opFileOpen:
		addMade(d.objects.files, c, r)
	case opFile:
		_, err = d.objects.setFile(c, r)
	case opTransfer, opTransferStart:
		err = d.objects.setTransfer(c, r)
		posts = true
	case opTransferEnd:
		if _, err := d.objects.setFile(c, r); err != nil {
			return err
		}
		d.complete(c, r)
		return nil
	case opSelf:
		err = c.setSendBuffer(r)
	}
	switch {
	case err != nil:
		return err
	case posts:
		d.addPosted(c, r, d.posted(c.slot.Req, c.view))
	default:
		d.add(r)
	}
	return nil
}

// add adds the row and moves on to the next.
func (d *decoder) add(r *schema.Event) {
	if d.filter.apply(d.rows.n, r) {
		d.collectives.dropParts(r.Seq)
	}
	d.rows.add(r)
}

// pend adds a request that the current row posted.
func (d *decoder) pend(p pending, r *schema.Event) {
	r.Request = int64(p.serial)
	p.keep = d.filter.keeps(d.rows.n, r)
	d.requests.put(p)
}

// posted returns a request of the current row, without a send or a receive so far.
func (d *decoder) posted(serial uint32, view int32) pending {
	return pending{serial: serial, epoch: d.rows.epoch, row: int32(d.rows.n), recv: -1, send: -1, view: view}
}

// addPosted adds the row of a call that may have made a request.
func (d *decoder) addPosted(c *call, r *schema.Event, p pending) {
	if c.op != opRecv && c.op != opSendrecv && p.serial != 0 {
		d.pend(p, r)
	}
	d.add(r)
}

// Levels of MPI_Pcontrol that switch recording; those from 2 on mark phases.
const (
	levelOff = 0
	levelOn  = 1
)

// control makes the row of MPI_Pcontrol. It switches recording for the whole process, including its other threads.
func (d *decoder) control(c *call, r *schema.Event) {
	switch c.slot.Count {
	case levelOff:
		r.Label = "off"
	case levelOn:
		r.Label = "on"
		d.filter.off = false
	default:
		if r.Label == schema.NullText {
			r.Label = strconv.FormatInt(c.slot.Count, 10)
		}
	}
	d.add(r)
	if c.slot.Count == levelOff {
		d.filter.off = true
	}
}

// timeline sets the times of a rank's rows.
type timeline struct {
	clock     clocks.Clock
	lastEnd   []int64 // by thread: when its last call ended
	lastStart []int64 // by thread: when its last call began
	clocked   bool    // compute time was measured
	counted   bool    // instructions and cycles were
	backwards int64   // times that were raised to the latest one before them
	endNs     int64   // the latest end
}

func newTimeline(r *rankSpool, h *spool.Header) timeline {
	t := timeline{clock: r.clock, lastEnd: make([]int64, len(r.files)), lastStart: make([]int64, len(r.files)),
		clocked: h.ComputeClock != spool.ClockNone, counted: h.Counters != spool.CountersNone}
	for i := range t.lastEnd {
		t.lastEnd[i], t.lastStart[i] = math.MinInt64, math.MinInt64
	}
	return t
}

// set sets when the call was made, the compute time before it, and its error class.
func (t *timeline) set(g *group, r *schema.Event) {
	c := &g.slots[0]
	r.StartNs = t.clock.Ns(c.T0)
	last := t.lastEnd[g.thread]
	if schema.CallID(c.Call) == schema.CallCommqMark { // a signal's mark follows the call during which it came
		last = t.lastStart[g.thread]
		defer func(end int64) { t.lastEnd[g.thread] = max(end, t.lastEnd[g.thread]) }(t.lastEnd[g.thread])
	}
	if r.StartNs < last {
		r.StartNs = last
		t.backwards++
	}
	t.lastStart[g.thread] = r.StartNs
	t.lastEnd[g.thread] = r.StartNs
	if c.T1 != 0 {
		r.EndNs = t.clock.Ns(c.T1)
		if r.EndNs < r.StartNs {
			r.EndNs = r.StartNs
			t.backwards++
		}
		t.lastEnd[g.thread] = r.EndNs
		t.endNs = max(t.endNs, r.EndNs)
	}
	if t.clocked {
		r.ComputeNs = int64(c.ComputeNs)
	}
	for i := 1; i < len(g.slots) && c.T1 != 0; i++ {
		switch s := &g.slots[i]; s.Kind {
		case spool.KindPre:
			p := s.AsPre()
			if t.clocked && c.ComputeNs == math.MaxUint32 {
				r.ComputeNs = int64(p.ComputeNs)
			}
			r.Polls, r.PollNs = int64(p.Polls), t.clock.Span(p.PollTicks)
			if t.counted {
				r.Instructions, r.Cycles = p.Instructions, p.Cycles
			}
		case spool.KindErr:
			r.ErrorClass = s.AsErr().ErrorClass
		}
	}
}
