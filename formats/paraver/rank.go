package paraver

import (
	"slices"

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
	pool   []item  // sides that belong to no call so far
	spent  map[int64]int64
	// posted are the messages whose receives wait for a call that completes them, matched those that MPI_Mprobe found.
	posted  map[int64]bool
	matched []item
	// habits tell by thread when the receives of nonblocking calls are posted: at their begin or end.
	habits map[int64]habit
	serial uint64
	counts joined
}

// habit is when a nonblocking receive counts as posted: the export writes the begin of the call, Extrae its end.
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

// untold begins the numbers of requests that no message has.
const untold = 1 << 40

func (j *job) reader(rank int32) (*reader, error) {
	r := &reader{j: j, rank: rank, in: j.scan.items.open(rank), spent: map[int64]int64{}, posted: map[int64]bool{},
		habits: map[int64]habit{}}
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
			told := r.fill(x, c)
			r.drop()
			if told {
				return true, nil
			}
			continue
		}
		if !r.has {
			r.dropAll()
			return false, nil
		}
		if r.head.kind == itemCall {
			x := r.head
			r.window = append(r.window, &x)
		} else {
			r.pool = append(r.pool, r.head)
		}
		if err := r.advance(); err != nil {
			return false, err
		}
	}
}

// until returns the time up to which sides may belong to a call.
func (x *item) until() int64 {
	if x.end == null64 {
		return x.at
	}
	return x.end
}

// drop forgets sides that belong to no call: those before all calls that are left.
func (r *reader) drop() {
	if len(r.pool) == 0 {
		return
	}
	begin := int64(1 << 62)
	if r.has {
		begin = r.head.at
	}
	if len(r.window) > 0 {
		begin = min(begin, r.window[0].at)
	}
	r.pool = slices.DeleteFunc(r.pool, func(s item) bool {
		if s.at < begin {
			r.counts.outside(&s)
		}
		return s.at < begin
	})
}

// dropAll forgets all sides.
func (r *reader) dropAll() {
	for i := range r.pool {
		r.counts.outside(&r.pool[i])
	}
	r.pool = nil
}

// outside counts a side that belongs to no call; a posting is none of its own.
func (n *joined) outside(s *item) {
	switch s.kind {
	case itemSent:
		n.outsideSends++
	case itemDone:
		n.outsideReceives++
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
		} else if id.Is(schema.FactCompletes) {
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

// lose adds a request of which the trace does not tell what completes it.
func (r *reader) lose(c *timed.Call) {
	r.serial++
	c.Posts = append(c.Posts, untold+r.serial)
	c.Ends = append(c.Ends, timed.Ending{Request: untold + r.serial, Lost: true})
}

// take takes the first side of a kind that belongs to a call, one of its thread before those of others: the export
// writes all messages between first threads.
func (r *reader) take(kind int64, x *item, belongs func(s *item) bool) (item, bool) {
	best := -1
	for i := range r.pool {
		s := &r.pool[i]
		if s.kind != kind || !belongs(s) {
			continue
		}
		if s.thread == x.thread {
			best = i
			break
		}
		if best < 0 {
			best = i
		}
	}
	if best < 0 {
		return item{}, false
	}
	s := r.pool[best]
	r.pool = slices.Delete(r.pool, best, best+1)
	return s, true
}

// send gives a call the message that was sent when it began.
func (r *reader) send(x *item, c *timed.Call) {
	s, ok := r.take(itemSent, x, func(s *item) bool { return s.at == x.at })
	if !ok {
		r.counts.silentSends++
		return
	}
	c.Pair.Sent = sent(&c.Row, &s)
}

// sent fills the send side of a row, and returns the number of the message.
func sent(row *schema.Event, s *item) int32 {
	row.Comm, row.SendPeer, row.SendWorld = worldID, int32(s.peer), int32(s.peer)
	row.SendTag, row.SendBytes = int32(s.tag), s.bytes
	row.ProcNull = 0
	return int32(s.number)
}

// got fills in what a receive got, and returns the number of the message.
func got(o *timed.Outcome, s *item) int32 {
	o.Comm, o.RecvPeer, o.RecvWorld, o.RecvTag, o.RecvBytes = worldID, int32(s.peer), int32(s.peer), int32(s.tag), s.bytes
	return int32(s.number)
}

// worldID is the communicator of all messages: the trace does not tell theirs, and it has all ranks.
const worldID = 0

// receive gives a call its message: a blocking one that which arrived when it ended, any other one that which it
// posted.
func (r *reader) receive(x *item, c *timed.Call) {
	id := schema.CallID(x.id)
	if id.Is(schema.FactNonblocking) {
		if s, ok := r.post(x, id); ok {
			r.posted[s.number] = true
			c.Posts = append(c.Posts, uint64(s.number))
		} else {
			r.counts.silentReceives++
		}
		return
	}
	arrived := func(exact bool) func(s *item) bool {
		return func(s *item) bool {
			return s.at == x.end && !r.posted[s.number] && (s.posted == x.at || !exact && s.posted >= x.at ||
				!exact && id.Is(schema.FactMatched))
		}
	}
	s, ok := r.take(itemDone, x, arrived(true))
	if !ok {
		s, ok = r.take(itemDone, x, arrived(false))
	}
	if !ok {
		r.counts.silentReceives++
		return
	}
	o := timed.NullOutcome
	c.Pair.Received = got(&o, &s)
	o.Receive(&c.Row)
	c.Row.ProcNull = 0
	r.take(itemPosted, x, func(p *item) bool { return p.number == s.number })
	r.matched = slices.DeleteFunc(r.matched, func(p item) bool { return p.number == s.number })
}

// post returns the posting of a nonblocking receive.
func (r *reader) post(x *item, id schema.CallID) (s item, ok bool) {
	habit := r.habits[x.thread]
	if habit != habitEnd {
		if s, ok = r.take(itemPosted, x, func(s *item) bool { return s.at == x.at }); ok && x.at != x.end {
			r.habits[x.thread] = habitBegin
		}
	}
	if !ok && habit != habitBegin {
		if s, ok = r.take(itemPosted, x, func(s *item) bool { return s.at == x.end }); ok {
			r.habits[x.thread] = habitEnd
		}
	}
	if !ok && id.Is(schema.FactMatched) && len(r.matched) > 0 {
		s, r.matched, ok = r.matched[0], r.matched[1:], true
	}
	return s, ok
}

// probe keeps the message that a probe matched, which the export takes as posted by the probe.
func (r *reader) probe(x *item) {
	if s, ok := r.take(itemPosted, x, func(s *item) bool { return s.at == x.at }); ok {
		r.matched = append(r.matched, s)
	}
}

// start gives MPI_Start and MPI_Startall the messages that begin inside of them: a row each.
func (r *reader) start(x *item, c *timed.Call) {
	base := c.Row
	inside := func(s *item) bool {
		return s.kind != itemDone && (s.at == x.at || s.at > x.at && s.at < x.end && s.thread == x.thread)
	}
	for i := 0; i < len(r.pool) && (len(c.Posts) == 0 || schema.CallID(x.id) == schema.CallStartall || x.times > 1); {
		if s := r.pool[i]; inside(&s) {
			r.pool = slices.Delete(r.pool, i, i+1)
			r.starts(&base, &s, c)
		} else {
			i++
		}
	}
}

// starts adds the row of a persistent operation.
func (r *reader) starts(base *schema.Event, s *item, c *timed.Call) {
	row, pair := &c.Row, &c.Pair
	if len(c.Posts) > 0 {
		c.More, c.MorePairs = append(c.More, *base), append(c.MorePairs, timed.Pair{})
		row, pair = &c.More[len(c.More)-1], &c.MorePairs[len(c.MorePairs)-1]
	}
	if s.kind == itemSent {
		row.Class = int16(schema.ClassSend)
		pair.Sent = sent(row, s)
		r.lose(c)
		return
	}
	row.Class = int16(schema.ClassRecv)
	r.posted[s.number] = true
	c.Posts = append(c.Posts, uint64(s.number))
}

// complete gives a call the posted receives whose messages arrived in it.
func (r *reader) complete(x *item, c *timed.Call) {
	r.pool = slices.DeleteFunc(r.pool, func(s item) bool {
		if s.kind != itemDone || !r.posted[s.number] || s.at < x.at || s.at > x.until() ||
			s.thread != x.thread && s.at != x.end {
			return false
		}
		delete(r.posted, s.number)
		end := timed.Ending{Request: uint64(s.number), Received: true, Got: timed.NullOutcome}
		end.Pair = got(&end.Got, &s)
		c.Ends = append(c.Ends, end)
		return true
	})
}

// collective fills the row of a collective.
func (r *reader) collective(x *item, row *schema.Event) {
	row.Comm, row.SendBytes, row.RecvBytes = narrow(x.comm), x.sent, x.received
	if x.comm == null64 {
		r.counts.noComm++
		return
	}
	if x.rooted != null64 {
		row.RootWorld = r.j.scan.roots.of(x.comm, x.rooted)
	}
}

// Site returns the call site, which the scan numbered.
func (r *reader) Site(id int32) int32 { return id }

// Read returns the bytes that were read.
func (r *reader) Read() int64 { return r.in.read }

// Close does nothing: all ranks read one file.
func (r *reader) Close() {}
