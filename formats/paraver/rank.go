package paraver

import (
	"math"

	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// reader hands over the calls of a rank. It keeps a call until it has read all that begins before the call ends, as
// that has the sides of messages that belong to it.
type reader struct {
	j      *job
	rank   int32
	in     *stream
	head   item // the next one, if there is one
	has    bool
	window []*item // calls
	// ends counts the calls of the window that complete requests, by the time they end.
	ends map[int64]int
	// Sides that wait for their calls. A physical receive is in received until a nonblocking receive has posted its
	// message, then in pending.
	sends, postings, received *pool
	pending                   pending
	receivedAt                map[int64]int64 // times of the sides in received, by message
	// posted are the messages whose receives wait for a call that completes them, matched those that MPI_Mprobe found.
	posted  map[int64]bool
	matched matched
	spent   map[int64]int64
	// habits tell by thread when the receives of nonblocking calls are posted: at their begin or end.
	habits map[int64]habit
	serial uint64
	counts joined
}

// habit is the moment at which a nonblocking receive counts as posted: the export writes the begin of the call, Extrae
// its end.
type habit int

const (
	habitUnknown habit = iota
	habitBegin
	habitEnd
)

// joined counts what a rank's calls and sides have in common.
type joined struct {
	outsideSends, outsideReceives int64 // sides of messages that belong to no call
	silentSends, silentReceives   int64 // calls without a message
	noComm                        int64 // collectives without a communicator
}

// untold is added to the numbers of requests that have no message, as those of messages are smaller.
const untold = 1 << 40

func (j *job) reader(rank int32) (*reader, error) {
	r := &reader{j: j, rank: rank, in: j.scan.items.open(rank), ends: map[int64]int{}, sends: newPool(),
		postings: newPool(), received: newPool(), receivedAt: map[int64]int64{}, posted: map[int64]bool{},
		matched: matched{waits: map[int64]bool{}}, spent: map[int64]int64{}, habits: map[int64]habit{}}
	return r, r.advance()
}

// advance reads the next item.
func (r *reader) advance() (err error) {
	r.has, err = r.in.next(&r.head)
	return err
}

// Next reads the next call; false after the last.
func (r *reader) Next(c *timed.Call) (bool, error) {
	for {
		if len(r.window) > 0 && (!r.has || r.head.at > r.window[0].until()) {
			x := r.window[0]
			r.window = r.window[1:]
			if completes(x) {
				r.leave(x.end)
			}
			r.drop(x.at)
			if r.fill(x, c) {
				return true, nil
			}
			continue
		}
		if !r.has {
			r.drop(math.MaxInt64)
			return false, nil
		}
		r.add(r.head)
		if err := r.advance(); err != nil {
			return false, err
		}
	}
}

// add adds an item: a call to the window, a side to those that wait for their calls.
func (r *reader) add(x item) {
	switch x.kind {
	case itemCall:
		r.window = append(r.window, &x)
		if completes(&x) {
			r.ends[x.end]++
		}
	case itemSent:
		r.sends.add(hold(&x))
	case itemPosted:
		r.postings.add(hold(&x))
	case itemDone:
		if r.posted[x.side.number] {
			r.pending.add(hold(&x))
			return
		}
		r.received.add(hold(&x))
		r.receivedAt[x.side.number] = x.at
	}
}

// completes reports whether a call completes requests.
func completes(x *item) bool { return schema.CallID(x.id).Is(schema.FactCompletes) }

// leave takes a call that completes requests out of ends.
func (r *reader) leave(end int64) {
	if r.ends[end]--; r.ends[end] == 0 {
		delete(r.ends, end)
	}
}

// until returns the time up to which sides may belong to a call.
func (x *item) until() int64 {
	if x.end == null64 {
		return x.at
	}
	return x.end
}

// drop forgets sides before a time at which the oldest call begins: they belong to no call.
func (r *reader) drop(begin int64) {
	r.sends.drop(begin, func(*held) { r.counts.outsideSends++ })
	r.postings.drop(begin, func(*held) {}) // the physical receive counts
	r.received.drop(begin, func(s *held) {
		r.counts.outsideReceives++
		delete(r.receivedAt, s.side.number)
	})
	for s, ok := r.pending.next(begin - 1); ok; s, ok = r.pending.next(begin - 1) {
		r.counts.outsideReceives++
		delete(r.posted, s.side.number)
	}
}

// fill makes a call; false for one that has no row.
func (r *reader) fill(x *item, c *timed.Call) bool {
	id := schema.CallID(x.id)
	class := schema.Calls[id].Class
	if !hasRow(id) {
		r.spent[x.thread] += x.until() - x.at
		return false
	}
	c.Reset()
	row := &c.Row
	row.Rank, row.Thread, row.Call, row.Class = r.rank, int32(x.thread), int16(id), int16(class)
	row.StartNs, row.EndNs, row.Callsite = x.at, x.end, narrow(x.site)
	c.SpentNs = r.spent[x.thread]
	delete(r.spent, x.thread)
	switch class {
	case schema.ClassSend, schema.ClassSendrecv:
		r.send(x, c)
		if class == schema.ClassSendrecv {
			r.receive(x, c)
		}
	case schema.ClassRecv:
		r.receive(x, c)
	case schema.ClassProbe:
		if id.Is(schema.FactMatched) {
			r.probe(x)
		}
	case schema.ClassComplete:
		if id.Is(schema.FactStarts) {
			r.start(x, c)
		} else if completes(x) {
			r.complete(x, c)
		}
	case schema.ClassCollective:
		r.collective(x, row)
	}
	if id.Is(schema.FactMakesRequest) && !id.Is(schema.FactPersistent) && len(c.Posts) == 0 {
		r.lose(c)
	}
	return true
}

// hasRow reports whether calls get a row. Calls on windows and files have none, as the trace does not tell which.
func hasRow(id schema.CallID) bool {
	x := &schema.Calls[id]
	return id != 0 && x.Recorder != "" && x.Class != schema.ClassRMA && x.Class != schema.ClassIO
}

// lose adds a request that no call of the trace completes.
func (r *reader) lose(c *timed.Call) {
	r.serial++
	c.Posts = append(c.Posts, untold+r.serial)
	c.Ends = append(c.Ends, timed.Ending{Request: untold + r.serial, Lost: true})
}

// send gives a call the message that was sent when it began.
func (r *reader) send(x *item, c *timed.Call) {
	s, ok := r.sends.any(x.thread, between(x.at, x.at)).take()
	if !ok {
		r.counts.silentSends++
		return
	}
	c.Pair.Sent = sent(&c.Row, &s.side)
}

// sent fills the send side of a row, and returns the number of the message.
func sent(row *schema.Event, s *side) int32 {
	row.Comm, row.SendPeer, row.SendWorld = worldID, int32(s.peer), int32(s.peer)
	row.SendTag, row.SendBytes = int32(s.tag), s.bytes
	row.ProcNull = 0
	return int32(s.number)
}

// got fills in what a receive got, and returns the number of the message.
func got(o *timed.Outcome, s *side) int32 {
	o.Comm, o.RecvPeer, o.RecvWorld, o.RecvTag, o.RecvBytes = worldID, int32(s.peer), int32(s.peer), int32(s.tag), s.bytes
	return int32(s.number)
}

// worldID is the communicator of all messages: the trace does not tell theirs, and it has all ranks.
const worldID = 0

// receive gives a call its message. A blocking receive ends when its message arrives; a nonblocking one posts it.
func (r *reader) receive(x *item, c *timed.Call) {
	id := schema.CallID(x.id)
	if id.Is(schema.FactNonblocking) {
		if s, ok := r.post(x, id); ok {
			r.await(&s, c)
		} else {
			r.counts.silentReceives++
		}
		return
	}
	in := postedBetween(x.end, x.at, math.MaxInt64)
	if id.Is(schema.FactMatched) { // the export has the receive posted by the probe
		in = between(x.end, x.end)
	}
	s, ok := r.arrived(r.received.any(x.thread, in))
	if !ok {
		r.counts.silentReceives++
		return
	}
	o := timed.NullOutcome
	c.Pair.Received = got(&o, &s.side)
	o.Receive(&c.Row)
	c.Row.ProcNull = 0
	posting := key{at: s.side.posted, number: s.side.number}
	r.postings.own(s.thread, span{posting, posting}).take()
	r.matched.remove(s.side.number)
}

// arrived takes a physical receive out of those that no nonblocking receive has posted.
func (r *reader) arrived(from spot) (held, bool) {
	s, ok := from.take()
	if ok {
		delete(r.receivedAt, s.side.number)
	}
	return s, ok
}

// await notes that a call posted the receive of a message, which another call will complete.
func (r *reader) await(s *held, c *timed.Call) {
	number := s.side.number
	c.Posts = append(c.Posts, uint64(number))
	r.posted[number] = true
	if at, ok := r.receivedAt[number]; ok {
		k := key{at, s.side.posted, number}
		if done, ok := r.arrived(r.received.own(s.thread, span{k, k})); ok {
			r.pending.add(done)
		}
	}
}

// post returns the posting of a nonblocking receive.
func (r *reader) post(x *item, id schema.CallID) (s held, ok bool) {
	habit := r.habits[x.thread]
	if habit != habitEnd {
		if s, ok = r.postings.any(x.thread, between(x.at, x.at)).take(); ok && x.at != x.end {
			r.habits[x.thread] = habitBegin
		}
	}
	if !ok && habit != habitBegin {
		if s, ok = r.postings.any(x.thread, between(x.end, x.end)).take(); ok {
			r.habits[x.thread] = habitEnd
		}
	}
	if !ok && id.Is(schema.FactMatched) {
		s, ok = r.matched.next()
	}
	return s, ok
}

// probe keeps the message that a probe matched, which the export takes as posted by the probe.
func (r *reader) probe(x *item) {
	if s, ok := r.postings.any(x.thread, between(x.at, x.at)).take(); ok {
		r.matched.add(s)
	}
}

// start gives MPI_Start and MPI_Startall the messages that begin inside of them: a row each.
func (r *reader) start(x *item, c *timed.Call) {
	base := c.Row
	for len(c.Posts) == 0 || schema.CallID(x.id) == schema.CallStartall || x.times > 1 {
		send, posting := r.started(x)
		first := earlier(send, posting)
		s, ok := first.take()
		if !ok {
			return
		}
		r.starts(&base, &s, first == send, c)
	}
}

// started finds the next send and the next receive that begin inside of a call. The export writes all with the first
// thread and with the begin of the call. So only sides of its own thread count after the begin.
func (r *reader) started(x *item) (send, posting spot) {
	inside := between(x.at, max(x.at, x.end-1))
	send, posting = r.sends.own(x.thread, inside), r.postings.own(x.thread, inside)
	if send.lane == nil && posting.lane == nil {
		begin := between(x.at, x.at)
		send, posting = r.sends.any(x.thread, begin), r.postings.any(x.thread, begin)
	}
	return send, posting
}

// starts adds the row of a persistent operation.
func (r *reader) starts(base *schema.Event, s *held, sends bool, c *timed.Call) {
	row, pair := &c.Row, &c.Pair
	if len(c.Posts) > 0 {
		c.More, c.MorePairs = append(c.More, *base), append(c.MorePairs, timed.Pair{})
		row, pair = &c.More[len(c.More)-1], &c.MorePairs[len(c.MorePairs)-1]
	}
	if sends {
		row.Class = int16(schema.ClassSend)
		pair.Sent = sent(row, &s.side)
		r.lose(c)
		return
	}
	row.Class = int16(schema.ClassRecv)
	r.await(s, c)
}

// complete gives a call the posted receives whose messages arrived in it: at its end, as the export writes them, or
// while its thread was in it, as Extrae does. The thread in the record decides only where no other call that completes
// requests ends then: the export writes the first thread whichever completed the message.
func (r *reader) complete(x *item, c *timed.Call) {
	var others []held
	for s, ok := r.pending.next(x.until()); ok; s, ok = r.pending.next(x.until()) {
		if s.at != x.end && (s.thread != x.thread || r.ends[s.at] > 0) {
			others = append(others, s)
			continue
		}
		delete(r.posted, s.side.number)
		end := timed.Ending{Request: uint64(s.side.number), Received: true, Got: timed.NullOutcome}
		end.Pair = got(&end.Got, &s.side)
		c.Ends = append(c.Ends, end)
	}
	for _, s := range others {
		r.pending.add(s)
	}
}

// collective fills the row of a collective.
func (r *reader) collective(x *item, row *schema.Event) {
	row.Comm, row.SendBytes, row.RecvBytes = narrow(x.comm), x.sent, x.received
	if x.comm == null64 {
		r.counts.noComm++
		return
	}
	if x.rooted != null64 {
		row.RootWorld = r.j.scan.roots.rootOf(x.comm, x.rooted)
	}
}

// Site returns the call site, which the scan numbered.
func (r *reader) Site(id int32) int32 { return id }

// Read returns the bytes that were read.
func (r *reader) Read() int64 { return r.in.read }

// Close does nothing: all ranks read one file.
func (r *reader) Close() {}
