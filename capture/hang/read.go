// Package hang reports what the ranks of a job are doing, whether it runs, hangs or was killed. From the job's spool
// it reads the call that each thread is in, the pending requests, and how far each rank is with the collective
// operations of each communicator. From these it concludes which ranks wait for which others, and whether they wait
// in a circle.
//
// The files are still being written, so any record may be incomplete. A Job remembers where it stopped reading:
// another look costs only what was written since.
//
// In reading order: read.go reads the files, report.go makes a Report, analysis.go matches messages and collectives,
// threads.go describes the threads, mismatch.go compares collectives, graph.go finds circles, text.go prints. watch.go follows a job by the ends of its
// files alone. alive.go waits until all processes have ended.
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
	"github.com/commq/commq/capture/ingest/handles"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/symbols"
	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/schema"
)

// Job reads the spool of a job. It is not safe for concurrent use.
type Job struct {
	// Info comes from the folder and the first header.
	Info ingest.JobInfo
	// Over means that the launcher has ended: a process that a signal has not ended yet does not count as running.
	Over bool

	dir     string
	threads map[string]*thread // by file name
	ranks   map[int32]*rank
	buf     []byte

	resolver symbols.Resolver
	places   map[place]string // descriptions of addresses
}

// place is an address in a module's file.
type place struct {
	path, id string
	offset   uint64
}

// Open reads the spool folder of a job; see ingest.Find for id and for errors.
func Open(dir, id string) (*Job, error) {
	info, err := ingest.Find(dir, id)
	if err != nil {
		return nil, err
	}
	j := &Job{Info: *info, dir: dir, threads: map[string]*thread{}, ranks: map[int32]*rank{}, buf: make([]byte, 1<<20),
		resolver: symbols.Resolver{Started: info.Started}, places: map[place]string{}}
	return j, j.Update()
}

// Update reads what was written since the last time, including files of new ranks and threads. It reads all files
// even if one of them is damaged; the error names that file.
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
		// ingest removes the files when their run is written
		if err := j.readFile(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// readFile continues reading one file.
func (j *Job) readFile(name string) error {
	f, _, err := bounded.OpenRegular(filepath.Join(j.dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	t := j.threads[name]
	if t != nil && t.complete {
		return nil
	}
	h, err := readHeader(f)
	if errors.Is(err, spool.ErrUnwritten) {
		return nil
	}
	if err != nil {
		return err
	}
	if t == nil {
		t = j.add(name, h)
	}
	t.h = *h
	before := t.open
	var records io.ReaderAt = f
	if t.tail != nil {
		records = t.tail
	}
	if err := t.read(records, j.buf); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	if before == nil || t.open == nil || before.T0 != t.open.T0 {
		t.seen = 0
	}
	t.seen++
	t.complete = h.Ended != spool.EndedNot && t.open == nil
	return nil
}

// readHeader reads a file's header and checks it.
func readHeader(f *os.File) (*spool.Header, error) {
	data := make([]byte, spool.HeaderBytes)
	switch n, err := f.ReadAt(data, 0); {
	case errors.Is(err, io.EOF) && n > 0:
		return nil, fmt.Errorf("%s: shorter than a header: not a spool file, or cut short", f.Name())
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
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
	if h.Packed != 0 {
		t.tail = spool.NewTail(filepath.Join(j.dir, name), h)
	}
	j.threads[name] = t
	r.threads = append(r.threads, t)
	return t
}

// sorted returns the ranks and their threads in ascending order.
func (j *Job) sorted() []*rank {
	ranks := slices.SortedFunc(maps.Values(j.ranks), func(a, b *rank) int { return cmp.Compare(a.rank, b.rank) })
	for _, r := range ranks {
		slices.SortFunc(r.threads, func(a, b *thread) int { return cmp.Compare(a.h.Thread, b.h.Thread) })
	}
	return ranks
}

// rank is the state of one process.
type rank struct {
	rank    int32
	threads []*thread
	defs    *handles.Definitions
	sites   symbols.Sites

	pending   map[uint32]*posted // requests that are not complete, by serial number
	templates map[uint32]*posted // persistent ones
	early     map[uint32]bool    // completion read before the post, by another thread
	sent      map[channel]int64  // messages sent, by communicator number, peer and tag
	received  map[channel]int64
	next      map[int32]uint64 // collective operations completed, by communicator number
	last      map[int32]*lastOperations
	starts    map[start]int64 // of persistent collective operations
	finalized bool
	crowded   bool // too many channels to count its messages
}

// channel is a sequence of messages that cannot overtake each other. comm is the process's own number for the
// communicator.
type channel struct{ comm, peer, tag int32 }

// start identifies a persistent collective operation: the communicator, and the number on it of the operation that
// made the request.
type start struct {
	comm     int32
	instance int64
}

// posted is a call that made a request, or a send.
type posted struct {
	call     spool.Call
	site     uint32
	ordinal  int64 // from 1: of a send its number on the channel, of a started collective the number of the start
	instance int64 // of a collective; else -1
	// cancelled: MPI_Cancel was called on it
	cancelled bool
}

// maxChannels limits the memory for a program that uses ever new tags.
const maxChannels = 1 << 20

func newRank(number int32, file string) *rank {
	return &rank{rank: number, defs: handles.NewDefinitions(number, file), pending: map[uint32]*posted{},
		templates: map[uint32]*posted{},
		early:     map[uint32]bool{}, sent: map[channel]int64{}, received: map[channel]int64{},
		next: map[int32]uint64{}, last: map[int32]*lastOperations{},
		starts: map[start]int64{}}
}

// thread is a thread, whose file is being read.
type thread struct {
	name     string
	rank     *rank
	h        spool.Header
	pos      int64       // of the next slot
	tail     *spool.Tail // of a file whose slots are packed; else nil
	complete bool        // the process has ended, and everything is read
	calls    int64
	tick     uint64 // with ns: a reading of the timer and the clock, later than the first one in the header
	ns       int64

	cur  current     // the call whose slots are being read
	open *spool.Call // the call that it is in; nil: none
	seen int         // number of updates that found it in that call
	last spool.Call  // the last call that returned
	def  *spool.Def  // a definition whose payload is not complete
	data []byte
}

// current is a call that returned, with the slots that continue it.
type current struct {
	ok     bool // there is a current call
	call   spool.Call
	coll   bool
	number uint64 // of a collective: its number on its communicator
	side   spool.Side
	done   []spool.DoneEntry
	starts [][2]uint32
	err    bool
	// truncated: it failed, but took a message that was longer than its buffer
	truncated bool
}

const slotBytes = spool.SlotBytes

// read reads up to the end of the records.
func (t *thread) read(f io.ReaderAt, buf []byte) error {
	t.open = nil
	for {
		n, err := f.ReadAt(buf, t.pos)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		slots := n / slotBytes
		full := slots == len(buf)/slotBytes
		used, more := t.readSlots(unsafe.Slice((*spool.Call)(unsafe.Pointer(&buf[0])), slots), full)
		t.pos += int64(used) * slotBytes
		if !more || !full {
			t.flush()
			return nil
		}
	}
}

// readSlots reads slots. It returns how many it has read for good, and whether to continue after them. The rest must
// be read again later: the call in progress, and the end of the records. full means that the file continues after s.
func (t *thread) readSlots(s []spool.Call, full bool) (used int, more bool) {
	for i := range s {
		c := &s[i]
		switch {
		case c.Kind == spool.End:
			return i, false
		case c.Kind == spool.KindCall:
			t.flush()
			if c.T1 == 0 {
				abandoned, end := callFollows(s[i+1:])
				if !abandoned && !end && full && i > 0 {
					return i, true // only the next part of the file shows whether another call follows
				}
				if !abandoned {
					call := *c
					t.open = &call
					return i, false
				}
			}
			t.begin(c)
		case c.Kind == spool.KindBlob && t.def != nil:
			t.addBlob(c.AsBlob())
		default:
			t.continueCall(c)
		}
	}
	return len(s), true
}

// callFollows reports whether another call follows. If so, the program left the call before it, which has no end, by
// a jump (longjmp). end is true when the records end before another call.
func callFollows(rest []spool.Call) (follows, end bool) {
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

// continueCall reads a slot after the CALL slot.
func (t *thread) continueCall(s *spool.Call) {
	c := &t.cur
	if s.Kind == spool.KindDef {
		d := *s.AsDef()
		t.def, t.data = nil, nil
		if d.Bytes <= maxPayload {
			t.def = &d
			t.define()
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
		c.err, c.truncated = true, s.AsErr().Flags&spool.TruncateError != 0
	}
}

// maxPayload limits the memory for a damaged definition. The members of a communicator of 2^24 ranks fit.
const maxPayload = 1 << 26

// addBlob adds a part of the payload of a definition.
func (t *thread) addBlob(b *spool.Blob) {
	t.data = append(t.data, b.Data[:min(int(b.N), len(b.Data))]...)
	t.define()
}

// define applies a definition once its payload is complete. It skips a damaged definition, so that its object is
// unknown.
func (t *thread) define() {
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

// flush applies the call whose slots have all been read.
func (t *thread) flush() {
	c := &t.cur
	if !c.ok {
		return
	}
	t.rank.apply(c, len(t.rank.threads) > 1)
	*c = current{done: c.done[:0], starts: c.starts[:0]}
}

// apply applies a call that returned. threads is true when the rank has several threads.
func (r *rank) apply(c *current, threads bool) {
	call := &c.call
	if schema.CallID(call.Call) == schema.CallFinalize {
		r.finalized = true
	}
	if c.coll && call.Comm != schema.NullInt32 && involvesAll(schema.CallID(call.Call)) && c.number < 1<<62 {
		r.next[call.Comm] = max(r.next[call.Comm], c.number+1)
		r.remember(call, c.number)
	}
	r.complete(c, threads)
	if c.truncated {
		r.truncate(c)
	}
	if !c.err {
		r.begin(c)
	}
}

// begin applies what a call sends, receives and posts. It did not fail.
func (r *rank) begin(c *current) {
	call := &c.call
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
			if made := r.templates[s[1]]; made != nil {
				r.start(call, s[0], *made)
			}
		}
	case kindCancel:
		if p := r.pending[call.Req]; p != nil {
			p.cancelled = true
		}
	case kindFree:
		r.free(call.Req)
	}
}

// start posts a persistent request that the call started. started is a copy of what its constructor posted.
func (r *rank) start(call *spool.Call, serial uint32, started posted) {
	started.call.T0, started.call.Site = call.T0, call.Site
	if isSend(&started.call) {
		r.send(&started)
	}
	if started.instance >= 0 {
		operation := start{started.call.Comm, started.instance}
		r.starts[operation]++
		started.ordinal = r.starts[operation]
	}
	r.post(serial, &started)
}

// free forgets a request. A receive with a source and a tag still takes its message, unless it was cancelled; what one
// of any source took is not known.
func (r *rank) free(serial uint32) {
	if p := r.pending[serial]; p != nil && isRecv(&p.call) && !p.cancelled && !isWildcard(p.call.Flags) {
		r.receive(p.call.Comm, p.call.Peer, p.call.Tag, p.call.Flags)
	}
	delete(r.templates, serial)
	delete(r.pending, serial)
}

// truncate counts the message of a blocking receive that was too small for it, and the send of such an MPI_Sendrecv.
func (r *rank) truncate(c *current) {
	const known = ^uint8(spool.FlagNoStatus) // the bytes are not; source and tag are
	switch kindOf(&c.call) {
	case kindRecv:
		r.receive(c.call.Comm, c.call.Peer, c.call.Tag, c.call.Flags&known)
	case kindSendrecv:
		r.send(&posted{call: c.call})
		if c.side.Kind == spool.KindSide {
			r.receive(c.call.Comm, c.side.Peer, c.side.Tag, c.side.Flags&known)
		}
	}
}

// complete ends the requests that a call completed. threads is true when the rank has several threads.
func (r *rank) complete(c *current, threads bool) {
	if kindOf(&c.call) != kindComplete {
		return
	}
	end := func(e spool.DoneEntry) {
		p := r.pending[e.Req]
		delete(r.pending, e.Req)
		switch {
		case p == nil && threads && e.Req != 0 && len(r.early) < maxChannels:
			r.early[e.Req] = true
		case p != nil && isRecv(&p.call) && e.Flags&(spool.FlagCancelled|spool.FlagNoStatus) == 0:
			r.receive(p.call.Comm, e.Source, e.Tag, uint8(e.Flags))
		case p != nil && isSend(&p.call) && e.Flags&spool.FlagCancelled != 0:
			r.unsend(p)
		}
	}
	if c.call.Req != 0 {
		end(spool.DoneEntry{Req: c.call.Req, Source: c.call.Peer, Tag: c.call.Tag, Flags: uint32(c.call.Flags)})
	}
	for _, e := range c.done {
		end(e)
	}
}

// post adds a request, unless another thread has completed it already.
func (r *rank) post(serial uint32, p *posted) {
	if serial == 0 {
		return
	}
	if r.early[serial] {
		delete(r.early, serial)
		if isRecv(&p.call) && !isWildcard(p.call.Flags) {
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

// unsend takes back a send that was cancelled: it was no message, so those behind it come before.
func (r *rank) unsend(p *posted) {
	if p.ordinal == 0 {
		return
	}
	c := channel{p.call.Comm, p.call.Peer, p.call.Tag}
	r.sent[c]--
	for _, q := range r.pending {
		if isSend(&q.call) && q.ordinal > p.ordinal && c == (channel{q.call.Comm, q.call.Peer, q.call.Tag}) {
			q.ordinal--
		}
	}
}

// isWildcard reports whether a receive with these flags takes messages of any source or tag.
func isWildcard(flags uint8) bool { return flags&(spool.FlagAnySource|spool.FlagAnyTag) != 0 }

// receive counts a message that was received.
func (r *rank) receive(comm, peer, tag int32, flags uint8) {
	if flags&(spool.FlagProcNull|spool.FlagNoStatus) == 0 && peer != schema.NullInt32 {
		r.count(r.received, channel{comm, peer, tag})
	}
}

// count counts a message and returns its number on the channel; 0 when there are too many channels.
func (r *rank) count(messages map[channel]int64, c channel) int64 {
	n := messages[c] + 1
	if n == 1 && len(messages) >= maxChannels {
		r.crowded = true
		return 0
	}
	messages[c] = n
	return n
}

// kind groups the calls that this package reads in the same way.
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
	kindCancel
	kindMprobe
	kindProbe
	kindMrecv
	kindComplete
	kindCollective
	kindIcollective
	kindRequest // makes a request that is neither a message nor a collective
)

// kinds is indexed by call id. It is made once and only read.
var kinds = func() []kind {
	byRecorder := map[string]kind{"send": kindSend, "isend": kindIsend, "recv": kindRecv, "irecv": kindIrecv,
		"sendrecv": kindSendrecv, "isendrecv": kindIsend,
		"send_init": kindInit, "recv_init": kindInit, "start": kindStart, "startall": kindStart,
		"request_free": kindFree, "cancel": kindCancel,
		"mprobe": kindMprobe, "improbe": kindMprobe, "probe": kindProbe, "mrecv": kindMrecv, "imrecv": kindIrecv,
		"wait": kindComplete, "waitall": kindComplete, "waitany": kindComplete, "waitsome": kindComplete,
		"test": kindComplete, "testall": kindComplete, "testany": kindComplete, "testsome": kindComplete,
		"collective": kindCollective, "comm_new": kindCollective, "win_new": kindCollective,
		"file_open":   kindCollective,
		"icollective": kindIcollective, "comm_idup": kindIcollective, "collective_init": kindInit,
		"psend_init": kindInit, "precv_init": kindInit,
		"rma_request": kindRequest, "file_irw": kindRequest}
	t := make([]kind, len(schema.Calls))
	for i := range schema.Calls {
		t[i] = byRecorder[schema.Calls[i].Recorder]
	}
	return t
}()

func kindOf(c *spool.Call) kind {
	if int(c.Call) >= len(kinds) {
		return kindOther
	}
	return kinds[c.Call]
}

// isSend reports whether the call sends, or makes a request that does. Partitioned requests are not followed.
func isSend(c *spool.Call) bool {
	switch kindOf(c) {
	case kindSend, kindIsend, kindSendrecv:
		return true
	case kindInit:
		return schema.CallID(c.Call).Is(schema.FactSends) && !schema.CallID(c.Call).Is(schema.FactPartitioned)
	}
	return false
}

// isRecv reports whether the call makes a request that receives. Not MPI_Imrecv: its message was taken by the matched
// probe. Partitioned requests are not followed.
func isRecv(c *spool.Call) bool {
	k, call := kindOf(c), schema.CallID(c.Call)
	return (k == kindIrecv || k == kindInit) && call.Is(schema.FactReceives) &&
		!call.IsAny(schema.FactMatched|schema.FactPartitioned)
}

// involvesAll reports whether all ranks of the communicator take part in the call. MPI_Comm_create_group and
// MPI_Intercomm_create are the exceptions.
func involvesAll(call schema.CallID) bool {
	return call != schema.CallCommCreateGroup && call != schema.CallIntercommCreate
}
