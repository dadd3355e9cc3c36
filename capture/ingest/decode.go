package ingest

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/commq/commq/capture/match"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// decoder makes the rows of one rank, epoch by epoch.
type decoder struct {
	*rankSpool
	comms *commTable
	cur   cursor
	g     group
	clk   clock
	nulls schema.Event // what a row begins as

	views     []view
	viewOf    numbered[int32]    // index in views by the process's number
	types     numbered[dataType] // by the process's number
	nextComm  int                // definitions met so far
	nextType  int
	reqs      reqTable
	messages  map[uint32]*message
	templates map[uint32]*template
	windows   map[int32]maker // by the process's number
	opened    map[int32]maker // files, the same
	nextCross int
	waitCross []int // crossings whose request was not posted yet
	truncate  int32 // the library's MPI_ERR_TRUNCATE
	hashed    bool  // there are hashes

	seq    int64   // of the next row
	lastNs []int64 // by thread: where its last call ended
	// lastStartNs is, by thread, where its last row began.
	lastStartNs []int64
	counted     bool // instructions and cycles were
	epoch       int32
	events      *schema.Events
	base        int          // the epoch's first row of this rank in events
	n           int          // rows of this rank so far
	row         schema.Event // being filled
	current     completion   // the call being decoded

	sends   []int32 // rows (from base) that are sends; -1: not a message after all
	recvs   []match.Recv
	state   []recvState
	parts   []part
	found   []part // those of the call being decoded
	sel     *selection
	keep    []bool         // by row: it is written; nil: everything is
	hidden  []bool         // by row: left out by a filter; nil: there is none
	off     bool           // recording was switched off by MPI_Pcontrol
	unknown map[int64]bool // with RecordMessages: rows that are unmatched
	label   string         // that the call being decoded carries; empty: none

	partOf    map[int32]int32 // Part of the channel, by row, for the epoch's partitioned sends
	partsMade map[partKey]int32

	bySource  [][]int32      // indexes in recvs by the shard that matches them
	unmatched map[int64]bool // rows of receives that matching never sees and that have no partner

	count counts
}

// recvState says what is known of a receive for matching.
type recvState uint8

const (
	recvKnown recvState = iota // source and tag are
	recvOpen                   // a wildcard that nobody knows what it got
	recvVoid                   // cancelled, or failed
	recvAlien                  // from a process outside MPI_COMM_WORLD, or one whose world rank is not known
)

// counts are a rank's share of the manifest's.
type counts struct {
	sends, recvs                int64 // unmatched from the beginning: what matching never sees
	backwards                   int64
	endNs                       int64
	byName                      map[schema.CallID]map[int32]int64 // collective calls by communicator
	alien                       int64
	noSite                      int64 // calls without call site, where sites were captured
	unknownTypes, unknownCommID int64
}

// view is a communicator as the rank sees it.
type view struct {
	id    int32
	world bool
	inter bool
	group int64   // size of the own group
	size  int64   // of the group that peers are ranks in
	peers []int32 // world ranks of that group; -1 where not known
	rank  int32   // own rank
}

type dataType struct {
	id    int32
	bytes int64
}

// message is a matched probe's message until it is received.
type message struct {
	view      int32
	peer, tag int32
	bytes     int64
	seq       int64 // of the probe
	epoch     int32
	recv      int32 // index in recvs of that epoch
	known     *crossing
}

// template is a persistent request: the row of the call that made it, with the bytes that a start moves, and the class
// of its starts.
type template struct {
	row   schema.Event
	view  int32
	class schema.Class
	seq   int64
	parts []part // of a collective
	next  int64  // instance of a collective's next start
	part  int32  // Part of the channel of a partitioned request; else 0
	each  int64  // elements of one partition
}

// partKey is the channel of a partitioned request without Part, and which side of it the rank is.
type partKey struct {
	match.Channel
	send bool
}

type part struct {
	seq        int64
	world      int32
	send, recv int64
}

// libraryTruncate is MPI_ERR_TRUNCATE of the MPI library with that version text.
func libraryTruncate(text string) int32 {
	if strings.HasPrefix(text, "MPICH") {
		return 14
	}
	return 15 // Open MPI, and the MPI ABI
}

// newDecoder makes the decoder of a rank.
func newDecoder(j *job, r *rankSpool) *decoder {
	d := &decoder{rankSpool: r, comms: j.comms, cur: newCursor(r.files), clk: r.clock, nulls: schema.NullEvent,
		sel: &j.sel, messages: map[uint32]*message{}, templates: map[uint32]*template{}, windows: map[int32]maker{}, opened: map[int32]maker{}, lastNs: make([]int64, len(r.files)), lastStartNs: make([]int64, len(r.files)),
		counted:  r.files[0].Header.Counters != spool.CountersNone,
		truncate: libraryTruncate(spool.Text(r.files[0].Header.MPILibrary[:]))}
	for t := range d.lastNs {
		d.lastNs[t], d.lastStartNs[t] = math.MinInt64, math.MinInt64
	}
	d.hashed = r.files[0].Header.Hash != spool.AlgorithmNone
	d.count.byName = map[schema.CallID]map[int32]int64{}
	d.nulls.Rank = r.rank
	if r.files[0].Header.ComputeClock != spool.ClockNone {
		d.nulls.ComputeNs = 0
	}
	d.nulls.Polls, d.nulls.PollNs = 0, 0
	d.addView(worldNumber, 0, r.rank)
	if self, ok := j.comms.self[r.rank]; ok {
		d.addView(selfNumber, self, 0)
	}
	// The first definition of a number stands for it until the decoder meets one: with several threads a call can come
	// before the call of another thread that defined what both use.
	for i := len(r.comms) - 1; i >= 0; i-- {
		if _, ok := predefined(&r.comms[i]); !ok {
			d.addView(r.comms[i].id, r.comms[i].global, r.comms[i].fixed.Rank)
		}
	}
	for i := len(r.types) - 1; i >= 0; i-- {
		t := &r.types[i]
		d.types.set(t.id, dataType{t.global, t.fixed.Bytes})
	}
	return d
}

// addView makes a number of the process stand for a communicator of the run, in which the process has that rank.
func (d *decoder) addView(number int64, id, rank int32) {
	m := &d.comms.comms[id]
	v := view{id: id, world: id == 0, inter: len(m.groups[1]) > 0, rank: rank}
	own := m.groups[0]
	if v.inter && (int(rank) >= len(own) || own[rank] != d.rank) {
		own, v.peers = m.groups[1], m.groups[0]
	} else if v.inter {
		v.peers = m.groups[1]
	} else {
		v.peers = own
	}
	v.group, v.size = int64(len(own)), int64(len(v.peers))
	d.viewOf.set(number, int32(len(d.views)))
	d.views = append(d.views, v)
}

// decode makes the rows of the next epoch, which are rows base and following of events.
func (d *decoder) decode(epoch int32, events *schema.Events, base int) error {
	d.epoch, d.events, d.base, d.n = epoch, events, base, 0
	d.sends, d.recvs, d.state, d.parts = d.sends[:0], d.recvs[:0], d.state[:0], d.parts[:0]
	end := d.starts[epoch+1].row
	if d.keep != nil {
		d.keep = make([]bool, end-d.seq)
	}
	if d.sel.filters() {
		d.hidden = make([]bool, end-d.seq)
	}
	clear(d.partOf)
	for d.seq < end {
		if !d.cur.next(&d.g) {
			return fmt.Errorf("%s: %d calls where %d were read before: was it changed meanwhile?", d.files[0].Name, d.seq, end)
		}
		if err := d.group(); err != nil {
			return fmt.Errorf("%s: slot %d: %w", d.files[d.g.thread].Name, d.g.first, err)
		}
	}
	d.applyCrossings(d.seq)
	d.setAside()
	return nil
}

// group makes the rows of one call.
func (d *decoder) group() error {
	c := d.g.call()
	d.label = ""
	if len(d.g.slots) > 1 || c == nil {
		if err := d.definitions(); err != nil || c == nil {
			return err
		}
	}
	r := &d.row
	*r = d.nulls
	r.Seq, r.Epoch, r.Thread = d.seq, d.epoch, d.g.thread
	r.Call, r.Class = int16(c.Call), int16(schema.Calls[c.Call].Class)
	if d.label != "" {
		r.Label = d.label
	}
	d.times(c, r)
	if r.Callsite = d.siteOf(c); r.Callsite == schema.NullInt32 && d.files[0].Header.Stack > 0 && schema.Class(r.Class) != schema.ClassMark {
		d.count.noSite++
	}
	d.current.site = r.Callsite
	if len(d.g.slots) > 1 && d.hashed {
		d.payload(0, r)
	}
	if err := d.call(c, r); err != nil {
		return fmt.Errorf("%s: %w", schema.CallNames[c.Call], err)
	}
	return nil
}

// put writes the row and moves on to the next.
func (d *decoder) put() {
	d.wanted(&d.row)
	d.hide(&d.row)
	d.events.Set(d.base+d.n, &d.row)
	d.n++
	d.seq++
}

// times fills in when the call was made, and what came before it.
func (d *decoder) times(c *spool.Call, r *schema.Event) {
	r.StartNs = d.clk.at(c.T0)
	last := d.lastNs[d.g.thread]
	if schema.CallID(c.Call) == schema.CallCommqMark { // a signal's mark stands behind the call that it came in
		last = d.lastStartNs[d.g.thread]
		defer func(end int64) { d.lastNs[d.g.thread] = max(end, d.lastNs[d.g.thread]) }(d.lastNs[d.g.thread])
	}
	if r.StartNs < last {
		r.StartNs = last
		d.count.backwards++
	}
	d.lastStartNs[d.g.thread] = r.StartNs
	d.lastNs[d.g.thread] = r.StartNs
	d.current = completion{seq: d.seq, t0: c.T0, t1: c.T1}
	if c.T1 != 0 {
		r.EndNs = d.clk.at(c.T1)
		if r.EndNs < r.StartNs {
			r.EndNs = r.StartNs
			d.count.backwards++
		}
		d.lastNs[d.g.thread] = r.EndNs
		d.count.endNs = max(d.count.endNs, r.EndNs)
	}
	clocked := d.nulls.ComputeNs != schema.NullInt64
	if clocked {
		r.ComputeNs = int64(c.ComputeNs)
	}
	for i := 1; i < len(d.g.slots) && c.T1 != 0; i++ {
		switch s := &d.g.slots[i]; s.Kind {
		case spool.KindPre:
			p := s.AsPre()
			if clocked && c.ComputeNs == math.MaxUint32 {
				r.ComputeNs = int64(p.ComputeNs)
			}
			r.Polls, r.PollNs = int64(p.Polls), d.clk.span(p.PollTicks)
			if d.counted {
				r.Instructions, r.Cycles = p.Instructions, p.Cycles
			}
		case spool.KindErr:
			r.ErrorClass = s.AsErr().ErrorClass
			d.current.err = r.ErrorClass
		}
	}
}

// errHalfWritten ends the definitions behind a call that never returned, where the first pass has seen the last whole one.
var errHalfWritten = errors.New("half written")

// definitions applies the definitions in the group.
func (d *decoder) definitions() error {
	left := math.MaxInt
	if c := d.g.call(); c != nil && c.T1 == 0 {
		left = d.whole[slotAt{d.g.thread, d.g.first}]
	}
	return d.g.definitions(func(def *spool.Def, data []byte) error {
		if left--; left < 0 {
			return errHalfWritten
		}
		switch def.What {
		case spool.DefComm:
			c := &d.rankSpool.comms[d.nextComm]
			d.nextComm++
			if _, ok := predefined(c); !ok {
				d.addView(c.id, c.global, c.fixed.Rank)
			}
		case spool.DefCommName:
			if d.nextComm < len(d.rankSpool.comms) && d.rankSpool.comms[d.nextComm].predefined {
				d.nextComm++ // the first pass made an entry for the name alone
			}
		case spool.DefLabel:
			d.label = validText(string(data))
		case spool.DefType:
			t := &d.rankSpool.types[d.nextType]
			d.nextType++
			d.types.set(t.id, dataType{t.global, t.fixed.Bytes})
		}
		return nil
	})
}

// view looks a communicator up and puts it into the row; -1: the call has none.
func (d *decoder) view(c *spool.Call, r *schema.Event) (int32, error) {
	if c.Comm == schema.NullInt32 {
		return -1, nil
	}
	v, ok := d.viewOf.get(c.Comm)
	if !ok {
		if d.wrong() {
			return -1, nil
		}
		return -1, fmt.Errorf("communicator %d is not defined", c.Comm)
	}
	r.Comm = d.views[v].id
	return v, nil
}

// worldOf is the world rank of a peer; null where the communicator's member is not known.
func (d *decoder) worldOf(v, peer int32) (int32, error) {
	if v < 0 {
		return schema.NullInt32, fmt.Errorf("rank %d of no communicator", peer)
	}
	w := &d.views[v]
	if peer < 0 || int64(peer) >= w.size {
		return schema.NullInt32, fmt.Errorf("rank %d of a communicator of %d ranks", peer, w.size)
	}
	if w.world {
		return peer, nil
	}
	if p := w.peers[peer]; p >= 0 {
		return p, nil
	}
	return schema.NullInt32, nil
}

// peer is a rank that the program named and its world rank; both are null when a call failed because there is none.
func (d *decoder) peer(v, peer int32) (rank, world int32, err error) {
	world, err = d.worldOf(v, peer)
	if err != nil && d.wrong() {
		return schema.NullInt32, schema.NullInt32, nil
	}
	return peer, world, err
}

// wrong says that the call failed or did not return: then its arguments may be anything. So they may where a thread of the
// rank stopped recording: what others use may be defined in what it did not record.
func (d *decoder) wrong() bool { return d.current.t1 == 0 || d.current.err != 0 || d.lossy }

// sized is the number of bytes of count elements of a datatype, and its id in the run.
func (d *decoder) sized(number int32, count int64) (id int32, bytes int64, err error) {
	if number == schema.NullInt32 {
		return schema.NullInt32, schema.NullInt64, nil
	}
	t, ok := d.types.get(number)
	if !ok {
		if d.wrong() { // its definition was not written any more
			return schema.NullInt32, schema.NullInt64, nil
		}
		return 0, 0, fmt.Errorf("datatype %d is not defined", number)
	}
	if count == schema.NullInt64 {
		return t.id, schema.NullInt64, nil
	}
	hi, lo := bits.Mul64(uint64(count), uint64(t.bytes))
	if count < 0 || hi != 0 || lo > math.MaxInt64 {
		if d.wrong() {
			return t.id, schema.NullInt64, nil
		}
		return 0, 0, fmt.Errorf("%d elements of %d bytes", count, t.bytes)
	}
	return t.id, int64(lo), nil
}

func address(buf uint64) int64 {
	if buf == 0 {
		return schema.NullInt64
	}
	return int64(buf)
}
