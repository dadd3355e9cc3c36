package otf2

import (
	"math/bits"
	"strings"

	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// regionKind tells what an import does with a region.
type regionKind struct {
	known bool
	call  schema.CallID // 0: no call of MPI
	mute  bool          // a call that commq does not record
	name  string
}

// regionOf returns what a region is, by its name.
func (j *job) regionOf(id uint32) regionKind {
	name := j.strings[j.regions[id].name]
	k := regionKind{known: true, name: name}
	k.call, k.mute = callOf(name)
	return k
}

// callOf finds the MPI call with that name, which Fortran wrappers write in their own way.
func callOf(name string) (call schema.CallID, mute bool) {
	if len(name) < 5 || !strings.EqualFold(name[:4], "MPI_") {
		return 0, false
	}
	call, ok := schema.CallByName(name)
	if !ok {
		rest := strings.TrimRight(strings.ToLower(name[4:]), "_")
		if rest == "" {
			return 0, false
		}
		if call, ok = schema.CallByName("MPI_" + strings.ToUpper(rest[:1]) + rest[1:]); !ok {
			return 0, false
		}
	}
	return call, schema.Calls[call].Recorder == ""
}

// reader reads the calls of a location.
type reader struct {
	j       *job
	rank    int32
	thread  int32
	stream  *stream
	local   *local
	clock   clock
	sites   *sites
	comms   commCache
	kinds   []regionKind          // by region, below fewRegions
	high    map[uint32]regionKind // of the others
	path    []int32               // nodes of the regions that were entered, outside MPI
	depth   int                   // of regions inside a call of MPI
	current *timed.Call           // what Next fills in
	makes   bool                  // current makes a window or a file
	probed  bool                  // current is a probe that found a message
	shared  *shared
	late    []func(c *timed.Call) // what current has done when it is taken
	open    bool                  // current is a call that has not returned
	done    bool                  // current is complete
	spent   int64                 // flushing buffers since the last call
	prev    int64                 // the latest time: later ones are not before it
	counts  tally
}

// tally counts what an import reads and skips.
type tally struct {
	events   int64
	skipped  [256]int64 // events by record
	unknown  [256]int64
	mute     map[string]int64 // calls that get no row
	outside  int64            // records of MPI outside a call
	unpaired int64            // leaves without an enter
	noRecord int64            // collectives without a record
	fits     [3]int64         // collectives of Score-P, by how their bytes were found
}

// ns returns a time of the location in ns since the first tick of the trace, not before the times that it returned
// earlier.
func (r *reader) ns(ticks uint64) int64 {
	r.prev = max(r.prev, r.j.ns(r.clock.correct(ticks)))
	return r.prev
}

// ns converts ticks; times before the first tick are negative.
func (d *definitions) ns(t uint64) int64 {
	if t < d.offset {
		return -scale(d.offset-t, d.resolution)
	}
	return scale(t-d.offset, d.resolution)
}

func scale(ticks, resolution uint64) int64 {
	if resolution == 1e9 {
		return int64(min(ticks, 1<<61))
	}
	high, low := bits.Mul64(ticks, 1e9)
	if high >= resolution {
		return 1 << 61
	}
	q, _ := bits.Div64(high, low, resolution)
	return int64(min(q, 1<<61))
}

// Next reads the next call; false after the last.
func (r *reader) Next(c *timed.Call) (bool, error) {
	var e event
	r.current = c
	for !r.done {
		more, err := r.stream.next(&e)
		if err != nil {
			return false, err
		}
		if !more {
			if !r.open {
				return false, nil
			}
			r.open, r.done = false, true // a call that never returned
			r.current.Row.EndNs = null64
			break
		}
		r.counts.events++
		if err := r.event(&e); err != nil {
			return false, err
		}
	}
	r.done = false
	r.complete()
	return true, nil
}

// complete completes a call with what only its end tells. A test that completed nothing is a poll, unless commq wrote
// the trace, which writes no failed tests.
func (r *reader) complete() {
	c := r.current
	row := &c.Row
	id := schema.CallID(row.Call)
	c.SpentNs, r.spent = r.spent, 0
	c.Poll = !r.j.ours && id.Is(schema.FactTests) && len(c.Ends) == 0 && !r.probed && len(c.Posts) == 0 &&
		row.EndNs != null64
	row.Callsite = r.sites.id(row.Callsite)
	for i := range c.More {
		c.More[i].Callsite = row.Callsite
	}
	switch schema.Class(row.Class) {
	case schema.ClassSend, schema.ClassRecv, schema.ClassSendrecv:
		row.ProcNull = noPeer(c, id)
		for i := range c.More {
			c.More[i].ProcNull = 0
		}
	case schema.ClassCollective:
		if row.Comm == null32 && len(c.Posts) == 0 {
			r.counts.noRecord++
		}
	case schema.ClassRMA:
		if send, recv := schema.Sides(id); (send || recv) && row.ProcNull == null32 {
			row.ProcNull, row.Comm = 0, null32
		}
	}
}

// noPeer returns proc_null of a row: a side without a record is to or from MPI_PROC_NULL.
func noPeer(c *timed.Call, call schema.CallID) (flags int32) {
	if call.Is(schema.FactStarts) {
		return 0
	}
	if call.Is(schema.FactSends) && c.Row.SendWorld == null32 {
		flags |= schema.ProcNullSend
	}
	if call.Is(schema.FactReceives) && c.Row.RecvWorld == null32 && len(c.Posts) == 0 {
		flags |= schema.ProcNullRecv
	}
	return flags
}

// Site returns the id of a call site that the first pass knew by its node.
func (r *reader) Site(node int32) int32 { return r.sites.id(node) }

// Read returns the number of events that were read.
func (r *reader) Read() int64 { return r.counts.events }

// Close closes the file of the location.
func (r *reader) Close() { r.stream.close() }

// event takes an event.
func (r *reader) event(e *event) error {
	switch e.id {
	case evtEnter:
		r.enter(r.local.global(mapRegion, uint32(e.number)), -1, e.time)
	case evtLeave:
		r.leave(e.time)
	case evtContextEnter:
		id := r.local.global(mapContext, e.fields.uint32())
		r.enter(r.j.contexts[id].region, int64(id), e.time)
	case evtContextLeave:
		r.leave(e.time)
	case evtBufferFlush:
		begin := r.ns(e.time)
		r.spent += r.ns(e.fields.full64()) - begin
	default:
		return r.record(e)
	}
	if e.id > evtLeave && e.fields.err != nil {
		return r.stream.bad(e.offset, "event %d: %w", e.id, e.fields.err)
	}
	return nil
}

// enter enters a region; context is that of a sampled trace, or -1.
func (r *reader) enter(id uint32, context int64, ticks uint64) {
	if r.open {
		r.depth++
		return
	}
	k := r.kind(id)
	if k.call == 0 || k.mute {
		node := r.sites.child(r.top(), id, context)
		r.path = append(r.path, node)
		if k.mute {
			r.counts.mute[k.name]++
		}
		return
	}
	site := r.top()
	if context >= 0 {
		site = r.sites.context(uint32(context), false)
	}
	r.begin(k.call, r.ns(ticks), site)
}

func (r *reader) top() int32 {
	if n := len(r.path); n > 0 {
		return r.path[n-1]
	}
	return null32
}

// fewRegions is more than the regions of usual traces, whose numbers count from 0.
const fewRegions = 1 << 12

// kind returns what a region is.
func (r *reader) kind(id uint32) regionKind {
	if id >= fewRegions {
		k, ok := r.high[id]
		if !ok {
			k = r.j.regionOf(id)
			r.high[id] = k
		}
		return k
	}
	if int(id) >= len(r.kinds) {
		r.kinds = append(r.kinds, make([]regionKind, int(id)+1-len(r.kinds))...)
	}
	if k := &r.kinds[id]; !k.known {
		*k = r.j.regionOf(id)
	}
	return r.kinds[id]
}

// begin begins a call.
func (r *reader) begin(id schema.CallID, start int64, site int32) {
	r.current.Reset()
	r.makes, r.probed = false, false
	row := &r.current.Row
	row.Rank, row.Thread, row.Call, row.Class = r.rank, r.thread, int16(id), int16(schema.Calls[id].Class)
	row.StartNs, row.Callsite = start, site
	r.sites.use(site)
	r.open, r.depth = true, 0
}

// leave leaves a region.
func (r *reader) leave(ticks uint64) {
	switch {
	case r.open && r.depth > 0:
		r.depth--
	case r.open:
		r.finish(r.ns(ticks))
	case len(r.path) > 0:
		r.path = r.path[:len(r.path)-1]
	default:
		r.counts.unpaired++
	}
}

// finish ends the call.
func (r *reader) finish(end int64) {
	row := &r.current.Row
	row.EndNs = end
	for i := range r.current.More {
		r.current.More[i].StartNs, r.current.More[i].EndNs = end, end
	}
	r.open, r.done = false, true
}

// record takes a record of MPI, which is inside a call, or is a call of its own.
func (r *reader) record(e *event) error {
	like := callLike(e)
	switch {
	case !isOperation(e.id) || !r.open:
	case r.current.Row.Class == int16(schema.ClassIO):
		if r.depth == 0 { // else another library's, such as POSIX
			r.operation(e)
			return e.fields.err
		}
	case e.id == evtIoComplete:
		f := e.fields
		f.uint32()
		f.uint64()
		r.completes(operationRequest|f.uint64(), nil)
		return f.err
	}
	if like == 0 || r.foreign(e.id) {
		if e.id > lastEvent {
			r.counts.unknown[e.id]++
		} else {
			r.counts.skipped[e.id]++
		}
		return nil
	}
	alone := !r.open
	if alone {
		if opensOnly(e.id) {
			return nil
		}
		r.counts.outside++
		r.begin(like, r.ns(e.time), r.top())
	}
	if err := r.fill(e); err != nil {
		return r.stream.bad(e.offset, "event %d: %w", e.id, err)
	}
	if !isSingle[e.id] && e.fields.err != nil {
		return r.stream.bad(e.offset, "event %d: %w", e.id, e.fields.err)
	}
	if alone {
		r.finish(r.current.Row.StartNs)
	}
	return nil
}

// opensOnly reports whether a record outside any call makes no row: another one follows, or nothing happened.
func opensOnly(id uint8) bool {
	return id == evtCollBegin || id == evtRmaCollBegin || id == evtRequestTest
}

// isOperation reports whether an event is one of the I/O on an open file.
func isOperation(id uint8) bool {
	return id == evtIoDestroy || id == evtIoBegin || id == evtIoIssued || id == evtIoComplete
}

// foreign reports whether a record is not one of MPI: POSIX opens files outside calls of MPI and inside of them, where
// that is a region of its own; and SHMEM completes accesses.
func (r *reader) foreign(id uint8) bool {
	return id == evtIoCreate && (!r.open || r.depth > 0) || id == evtRmaCompleteNonBlocking && !r.open
}

// callLike returns the call that a record outside any call stands for; 0 for records that are skipped.
func callLike(e *event) schema.CallID {
	switch e.id {
	case evtSend:
		return schema.CallSend
	case evtIsend:
		return schema.CallIsend
	case evtIrecvRequest:
		return schema.CallIrecv
	case evtRecv:
		return schema.CallRecv
	case evtIsendComplete, evtIrecv, evtNBCComplete, evtCancelled, evtRequestTest, evtImrecv:
		return schema.CallWait
	case evtCollBegin, evtCollEnd:
		return collectiveCall(e.fields)
	case evtNBCRequest:
		return schema.CallIbarrier
	case evtProbe:
		return schema.CallProbe
	case evtMrecv:
		return schema.CallMrecv
	case evtImrecvRequest:
		return schema.CallImrecv
	case evtWinCreate:
		return schema.CallWinCreate
	case evtWinDestroy:
		return schema.CallWinFree
	case evtRmaCollBegin, evtRmaCollEnd:
		return schema.CallWinFence
	case evtRmaRequestLock, evtRmaAcquireLock:
		return schema.CallWinLock
	case evtRmaReleaseLock:
		return schema.CallWinUnlock
	case evtRmaSync:
		return schema.CallWinSync
	case evtRmaPut:
		return schema.CallPut
	case evtRmaGet:
		return schema.CallGet
	case evtRmaAtomic:
		return schema.CallGetAccumulate
	case evtRmaCompleteNonBlocking:
		return schema.CallWait
	case evtIoCreate:
		return schema.CallFileOpen
	}
	return 0
}

// collectives are the operations of OTF2's collective records.
var collectives = [...]schema.CallID{schema.CallBarrier, schema.CallBcast, schema.CallGather, schema.CallGatherv,
	schema.CallScatter, schema.CallScatterv, schema.CallAllgather, schema.CallAllgatherv, schema.CallAlltoall,
	schema.CallAlltoallv, schema.CallAlltoallw, schema.CallAllreduce, schema.CallReduce, schema.CallReduceScatter,
	schema.CallScan, schema.CallExscan, schema.CallReduceScatterBlock}

// collectiveCall returns the call of a record MPI_COLLECTIVE_END.
func collectiveCall(fields cursor) schema.CallID {
	if op := fields.uint8(); int(op) < len(collectives) {
		return collectives[op]
	}
	return schema.CallBarrier
}
