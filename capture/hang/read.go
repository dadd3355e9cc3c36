// Package hang says what the ranks of a job are doing, from the spool that they write: of a job that runs, hangs, or was
// killed. It knows the call that each thread is in, which requests are outstanding and how far each rank has come with the
// collective operations of each communicator; from these follows who waits for whom, and whether that is a circle.
//
// It reads files that are being written: everything in them may be half there. A Job remembers where it stopped reading, so
// that looking again costs what was written since.
package hang

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/symbols"
	"github.com/commq/commq/schema"
)

// Job is a job whose spool is read. It is not safe for concurrent use.
type Job struct {
	// Info is what the folder and the first header say.
	Info ingest.JobInfo

	dir     string
	threads map[string]*thread // by file name
	ranks   map[int32]*rank
	buf     []byte

	resolver symbols.Resolver
	places   map[place]string // where addresses are in words
}

// place is an address in a module's file.
type place struct {
	path, id string
	offset   uint64
}

// Open reads the spool folder of a job; see ingest.Find for what id means. The error says what lies there instead.
func Open(dir, id string) (*Job, error) {
	info, err := ingest.Find(dir, id)
	if err != nil {
		return nil, err
	}
	j := &Job{Info: *info, dir: dir, threads: map[string]*thread{}, ranks: map[int32]*rank{}, buf: make([]byte, 1<<20),
		resolver: symbols.Resolver{Started: info.Started}, places: map[place]string{}}
	return j, j.Update()
}

// Update reads what was written since. Files of ranks and threads that are new are taken in. A file that cannot be read as
// a spool file is an error that names it; the others are read all the same.
func (j *Job) Update() error {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return fmt.Errorf("read the spool: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), j.Info.ID+".") || !strings.HasSuffix(e.Name(), spool.Suffix) {
			continue
		}
		if err := j.file(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) { // a run that was ingested takes its files away
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// file reads on in one file.
func (j *Job) file(name string) error {
	f, err := os.Open(filepath.Join(j.dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	t := j.threads[name]
	if t != nil && t.over {
		return nil
	}
	h, err := readHeader(f)
	if err != nil {
		return err
	}
	if t == nil {
		t = j.add(name, h)
	}
	t.h = *h
	before := t.open
	if err := t.read(f, j.buf); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	if before == nil || t.open == nil || before.T0 != t.open.T0 {
		t.seen = 0
	}
	t.seen++
	t.over = h.Ended != spool.EndedNot && t.open == nil
	return nil
}

// readHeader reads a file's header and checks it.
func readHeader(f *os.File) (*spool.Header, error) {
	data := make([]byte, spool.HeaderBytes)
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, fmt.Errorf("%s: shorter than a header: not a spool file, or cut short", f.Name())
	}
	s, err := spool.Parse(f.Name(), data)
	if err != nil {
		return nil, err
	}
	return &s.Header, nil
}

func (j *Job) add(name string, h *spool.Header) *thread {
	r := j.ranks[h.Rank]
	if r == nil {
		r = newRank(h.Rank, name)
		j.ranks[h.Rank] = r
	}
	t := &thread{name: name, rank: r, pos: spool.HeaderBytes}
	j.threads[name] = t
	r.threads = append(r.threads, t)
	return t
}

// sorted are the ranks in their order, their threads in theirs.
func (j *Job) sorted() []*rank {
	ranks := slices.SortedFunc(maps.Values(j.ranks), func(a, b *rank) int { return cmp.Compare(a.rank, b.rank) })
	for _, r := range ranks {
		slices.SortFunc(r.threads, func(a, b *thread) int { return cmp.Compare(a.h.Thread, b.h.Thread) })
	}
	return ranks
}

// rank is what is known of one process.
type rank struct {
	rank    int32
	threads []*thread
	defs    *ingest.Definitions
	sites   symbols.Sites

	pending   map[uint32]*posted // requests that are not complete, by serial
	templates map[uint32]*posted // persistent ones
	early     map[uint32]bool    // completed before the thread that posted them was read
	sent      map[channel]int64  // messages sent, by communicator number, peer and tag
	received  map[channel]int64
	next      map[int32]uint64 // collective operations completed, by communicator number
	starts    map[start]int64  // of persistent collective operations
	finalized bool
	crowded   bool // too many channels to tell messages apart
}

// channel is where messages do not overtake each other. Until a report it has the process's own number of the communicator.
type channel struct{ comm, peer, tag int32 }

// start is a persistent collective operation: communicator, and which operation on it made its request.
type start struct {
	comm     int32
	instance int64
}

// posted is a call that made a request.
type posted struct {
	call     spool.Call
	site     uint32
	ordinal  int64 // of a send: the n-th on its channel; of a started collective operation: the n-th start; from 1
	instance int64 // of a collective; -1: none
}

// maxChannels bounds the memory that a program with ever new tags needs.
const maxChannels = 1 << 20

func newRank(number int32, file string) *rank {
	return &rank{rank: number, defs: ingest.NewDefinitions(number, file), pending: map[uint32]*posted{}, templates: map[uint32]*posted{},
		early: map[uint32]bool{}, sent: map[channel]int64{}, received: map[channel]int64{}, next: map[int32]uint64{}, starts: map[start]int64{}}
}

// thread is a file while it is read.
type thread struct {
	name  string
	rank  *rank
	h     spool.Header
	pos   int64 // of the next slot
	over  bool  // it has ended, and everything is read
	calls int64
	tick  uint64 // a later pair of ticks and ns than the header's first, from the slots
	ns    int64

	cur  current     // the call whose slots are being read
	open *spool.Call // the call that it is in
	seen int         // how many updates have found it in that call
	last spool.Call  // the last call that returned
	def  *spool.Def  // a definition whose payload is not complete
	data []byte
}

// current is a call that returned, with what continues it.
type current struct {
	ok     bool
	call   spool.Call
	coll   bool
	number uint64 // of the collective on its communicator
	side   spool.Side
	done   []spool.DoneEntry
	starts [][2]uint32
	err    bool
}

const slotBytes = spool.SlotBytes

// read reads on as far as there is something to read.
func (t *thread) read(f io.ReaderAt, buf []byte) error {
	t.open = nil
	for {
		n, err := f.ReadAt(buf, t.pos)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		slots := n / slotBytes
		full := slots == len(buf)/slotBytes
		used, more := t.slots(unsafe.Slice((*spool.Call)(unsafe.Pointer(&buf[0])), slots), full)
		t.pos += int64(used) * slotBytes
		if !more || !full {
			t.flush()
			return nil
		}
	}
}

// slots takes in slots as far as they can be used, and returns how many, and whether to read on behind them. What is left is
// to be read again: the call in progress, and the end. full says that the file goes on.
func (t *thread) slots(s []spool.Call, full bool) (used int, more bool) {
	for i := range s {
		c := &s[i]
		switch {
		case c.Kind == spool.End:
			return i, false
		case c.Kind == spool.KindCall:
			t.flush()
			if c.T1 == 0 {
				left, end := abandoned(s[i+1:])
				if !left && !end && full && i > 0 {
					return i, true // whether another call follows is in the next part of the file
				}
				if !left {
					call := *c
					t.open = &call
					return i, false
				}
			}
			t.begin(c)
		case c.Kind == spool.KindBlob && t.def != nil:
			t.blob(c.AsBlob())
		default:
			t.continued(c)
		}
	}
	return len(s), true
}

// abandoned says whether another call follows: then one without an end was left by a jump, not by a return. end says that
// the records end before one does.
func abandoned(rest []spool.Call) (left, end bool) {
	for i := range rest {
		switch rest[i].Kind {
		case spool.End:
			return false, true
		case spool.KindCall:
			return true, false
		}
	}
	return false, false
}

// begin begins a call.
func (t *thread) begin(c *spool.Call) {
	t.calls++
	t.def, t.data = nil, nil
	if c.T1 == 0 || c.Call == 0 || int(c.Call) >= len(schema.Calls) {
		return
	}
	t.cur.ok, t.cur.call = true, *c
	t.last = *c
}

// continued takes in a slot behind the CALL slot.
func (t *thread) continued(s *spool.Call) {
	c := &t.cur
	if s.Kind == spool.KindDef {
		d := *s.AsDef()
		t.def, t.data = nil, nil
		if d.Bytes <= maxPayload {
			t.def = &d
			t.defined()
		}
		return
	}
	if !c.ok {
		return
	}
	switch s.Kind {
	case spool.KindColl:
		c.coll, c.number = true, s.AsColl().Instance
	case spool.KindSide:
		c.side = *s.AsSide()
	case spool.KindDone:
		d := s.AsDone()
		c.done = append(c.done, d.Done[:min(int(d.N), len(d.Done))]...)
	case spool.KindStart:
		st := s.AsStart()
		for _, p := range st.Start[:min(int(st.N), len(st.Start))] {
			c.starts = append(c.starts, [2]uint32{p.Req, p.Template})
		}
	case spool.KindErr:
		c.err = true
	}
}

// maxPayload bounds what a damaged definition can make us hold: the members of a communicator of 2^24 ranks.
const maxPayload = 1 << 26

// blob takes in a part of a definition's payload.
func (t *thread) blob(b *spool.Blob) {
	t.data = append(t.data, b.Data[:min(int(b.N), len(b.Data))]...)
	t.defined()
}

// defined hands on a definition whose payload is complete. One that cannot be read is left out: what it defines is then not
// known.
func (t *thread) defined() {
	if len(t.data) < int(t.def.Bytes) {
		return
	}
	if t.def.What == spool.DefClock && len(t.data) >= 16 {
		t.tick, t.ns = *(*uint64)(unsafe.Pointer(&t.data[0])), *(*int64)(unsafe.Pointer(&t.data[8]))
	}
	call := schema.CallID(0)
	if t.calls > 0 {
		call = schema.CallID(t.last.Call)
	}
	_ = t.rank.defs.Add(call, t.def, t.data)
	_ = t.rank.sites.Define(t.def.What, t.def.ID, t.data)
	t.def, t.data = nil, nil
}

// flush takes in the call whose slots are all read.
func (t *thread) flush() {
	c := &t.cur
	if !c.ok {
		return
	}
	t.rank.took(c, len(t.rank.threads) > 1)
	*c = current{done: c.done[:0], starts: c.starts[:0]}
}

// took takes in a call that returned.
func (r *rank) took(c *current, threads bool) {
	call := &c.call
	if schema.CallID(call.Call) == schema.CallFinalize {
		r.finalized = true
	}
	if c.coll && call.Comm != schema.NullInt32 && counts(schema.CallID(call.Call)) && c.number < 1<<62 {
		r.next[call.Comm] = max(r.next[call.Comm], c.number+1)
	}
	r.completed(c, threads)
	if c.err {
		return
	}
	p := &posted{call: *call, site: call.Site, instance: -1}
	if c.coll {
		p.instance = int64(c.number)
	}
	switch kindOf(call) {
	case kindSend:
		r.send(p)
	case kindIsend, kindIcollective:
		if kindOf(call) == kindIsend {
			r.send(p)
		}
		r.post(call.Req, p)
	case kindIrecv, kindRequest:
		r.post(call.Req, p)
	case kindRecv:
		r.receive(call.Comm, call.Peer, call.Tag, call.Flags)
	case kindMprobe:
		if call.Req != 0 {
			r.receive(call.Comm, call.Peer, call.Tag, call.Flags)
		}
	case kindSendrecv:
		r.send(p)
		if c.side.Kind == spool.KindSide {
			r.receive(call.Comm, c.side.Peer, c.side.Tag, c.side.Flags)
		}
	case kindInit:
		r.templates[call.Req] = p
	case kindStart:
		for _, s := range c.starts {
			if of := r.templates[s[1]]; of != nil {
				started := *of
				started.call.T0, started.call.Site = call.T0, call.Site
				if isSend(&started.call) {
					r.send(&started)
				}
				if started.instance >= 0 {
					at := start{started.call.Comm, started.instance}
					r.starts[at]++
					started.ordinal = r.starts[at]
				}
				r.post(s[0], &started)
			}
		}
	case kindFree:
		delete(r.templates, call.Req)
		delete(r.pending, call.Req)
	}
}

// completed ends the requests that a call completed.
func (r *rank) completed(c *current, threads bool) {
	if kindOf(&c.call) != kindComplete {
		return
	}
	one := func(e spool.DoneEntry) {
		p := r.pending[e.Req]
		delete(r.pending, e.Req)
		switch {
		case p == nil && threads && e.Req != 0 && len(r.early) < maxChannels:
			r.early[e.Req] = true
		case p != nil && isRecv(&p.call) && e.Flags&(spool.FlagCancelled|spool.FlagNoStatus) == 0:
			r.receive(p.call.Comm, e.Source, e.Tag, uint8(e.Flags))
		}
	}
	if c.call.Req != 0 {
		one(spool.DoneEntry{Req: c.call.Req, Source: c.call.Peer, Tag: c.call.Tag, Flags: uint32(c.call.Flags)})
	}
	for _, e := range c.done {
		one(e)
	}
}

// post notes a request.
func (r *rank) post(serial uint32, p *posted) {
	if serial == 0 {
		return
	}
	if r.early[serial] {
		delete(r.early, serial)
		if isRecv(&p.call) && p.call.Flags&(spool.FlagAnySource|spool.FlagAnyTag) == 0 {
			r.receive(p.call.Comm, p.call.Peer, p.call.Tag, p.call.Flags)
		}
		return
	}
	r.pending[serial] = p
}

// send counts a message.
func (r *rank) send(p *posted) {
	if p.call.Flags&spool.FlagProcNull != 0 {
		return
	}
	c := channel{p.call.Comm, p.call.Peer, p.call.Tag}
	p.ordinal = r.count(r.sent, c)
}

// receive counts a message that arrived.
func (r *rank) receive(comm, peer, tag int32, flags uint8) {
	if flags&(spool.FlagProcNull|spool.FlagNoStatus) == 0 && peer != schema.NullInt32 {
		r.count(r.received, channel{comm, peer, tag})
	}
}

func (r *rank) count(of map[channel]int64, c channel) int64 {
	n := of[c] + 1
	if n == 1 && len(of) >= maxChannels {
		r.crowded = true
		return 0
	}
	of[c] = n
	return n
}

// kind is how a call's slots are read here.
type kind uint8

const (
	kindOther kind = iota
	kindSend
	kindIsend
	kindRecv
	kindIrecv
	kindSendrecv
	kindInit
	kindStart
	kindFree
	kindMprobe
	kindProbe
	kindMrecv
	kindComplete
	kindCollective
	kindIcollective
	kindRequest // makes a request that waits for something else
)

// kinds is indexed by call id. It is made once and only read.
var kinds = func() []kind {
	of := map[string]kind{"send": kindSend, "isend": kindIsend, "recv": kindRecv, "irecv": kindIrecv, "sendrecv": kindSendrecv, "isendrecv": kindIsend,
		"send_init": kindInit, "recv_init": kindInit, "start": kindStart, "startall": kindStart, "request_free": kindFree,
		"mprobe": kindMprobe, "improbe": kindMprobe, "probe": kindProbe, "mrecv": kindMrecv, "imrecv": kindIrecv,
		"wait": kindComplete, "waitall": kindComplete, "waitany": kindComplete, "waitsome": kindComplete,
		"test": kindComplete, "testall": kindComplete, "testany": kindComplete, "testsome": kindComplete,
		"collective": kindCollective, "comm_new": kindCollective, "win_new": kindCollective, "file_open": kindCollective,
		"icollective": kindIcollective, "comm_idup": kindIcollective, "collective_init": kindInit, "psend_init": kindInit, "precv_init": kindInit,
		"rma_request": kindRequest, "file_irw": kindRequest}
	t := make([]kind, len(schema.Calls))
	for i := range schema.Calls {
		t[i] = of[schema.Calls[i].Recorder]
	}
	return t
}()

func kindOf(c *spool.Call) kind {
	if int(c.Call) >= len(kinds) {
		return kindOther
	}
	return kinds[c.Call]
}

// isSend says whether the call sends, or makes a request that does.
func isSend(c *spool.Call) bool {
	switch kindOf(c) {
	case kindSend, kindIsend, kindSendrecv:
		return true
	case kindInit:
		return recorder(c) == "send_init"
	}
	return false
}

// isRecv says whether the call makes a request that receives.
func isRecv(c *spool.Call) bool {
	switch kindOf(c) {
	case kindIrecv:
		return recorder(c) == "irecv"
	case kindInit:
		return recorder(c) == "recv_init"
	}
	return false
}

func recorder(c *spool.Call) string { return schema.Calls[c.Call].Recorder }

// neighbours says whether a collective operation is one with neighbours alone.
func neighbours(c *spool.Call) bool {
	return strings.Contains(schema.CallID(c.Call).String(), "eighbor")
}

// counts says whether all of the communicator take part in the call: not in MPI_Comm_create_group and MPI_Intercomm_create.
func counts(call schema.CallID) bool {
	return call != schema.CallCommCreateGroup && call != schema.CallIntercommCreate
}
