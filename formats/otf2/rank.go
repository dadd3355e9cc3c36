package otf2

import "github.com/commq/commq/schema"

// slot is a row of a rank on its way to the table, with what completed its receive.
type slot struct {
	row     schema.Event
	waiting int // requests of it that are not completed
	// doneStart, doneEnd and doneSite are those of the row that completed a receive.
	doneStart, doneEnd int64
	doneSite           int32
	doneThread         int32
	received           bool
}

// requestKey is a request of a rank: OTF2's numbers are unique in a location.
type requestKey struct {
	thread int32
	number uint64
}

// rankReader makes the rows of a rank: it merges the calls of its threads in the order of their starts, and fills the
// rows of requests in when these are completed. It keeps rows back until then, at most so many; what happens to the
// rows of older requests, the first pass notes for the second (far).
type rankReader struct {
	j       *job
	rank    int32
	threads []*reader
	heads   []call
	has     []bool
	started bool

	ring    []*slot // rows kept back, the oldest first
	given   *slot   // what next returned last, if nothing else refers to it
	spare   []*slot // to use again
	pending map[requestKey]*slot
	serial  int64
	seq     int64
	ended   bool

	instances map[int32]int64
	windows   map[uint32]int64 // seq of the call that made it
	handles   map[uint32]int64

	polls, pollNs []int64 // by thread, since its last row
	far           map[int64]*slot
	learning      bool
}

// next returns the next row of the rank, nil after the last. It is valid until the next call.
func (r *rankReader) next() (*slot, error) {
	if r.given != nil {
		r.spare = append(r.spare, r.given)
		r.given = nil
	}
	for {
		if n := len(r.ring); n > 0 && (r.ring[0].waiting == 0 || n > r.j.keep || r.ended) {
			s := r.ring[0]
			r.ring = r.ring[1:]
			if s.waiting > 0 && !r.learning {
				if f, ok := r.far[s.row.Seq]; ok {
					f.row.Callsite, f.doneSite = s.row.Callsite, r.threads[f.doneThread].sites.id(f.doneSite)
					s = f
				}
			} else if s.waiting > 0 && !r.ended {
				// The first pass keeps it until it is completed.
				r.far[s.row.Seq] = s
			} else if s.waiting == 0 {
				r.given = s
			}
			r.number(s)
			return s, nil
		}
		if r.ended {
			return nil, nil
		}
		if err := r.advance(); err != nil {
			return nil, err
		}
	}
}

// number gives a row its instance, which depends on the order of rows.
func (r *rankReader) number(s *slot) {
	row := &s.row
	call := schema.CallID(row.Call)
	counts := schema.Class(row.Class) == schema.ClassCollective && !call.Is(schema.FactStarts) ||
		call.IsAny(schema.FactCreatesCommunicator|schema.FactCreatesWindow|schema.FactOpensFile)
	if row.Comm == null32 || !counts || call == schema.CallCommCreateGroup || call == schema.CallIntercommCreate {
		return
	}
	row.Instance = r.instances[row.Comm]
	r.instances[row.Comm]++
}

// advance takes the call that starts next.
func (r *rankReader) advance() error {
	if !r.started {
		r.started = true
		for t := range r.threads {
			if err := r.refill(t); err != nil {
				return err
			}
		}
	}
	first := -1
	for t, has := range r.has {
		if has && (first < 0 || r.heads[t].row.StartNs < r.heads[first].row.StartNs) {
			first = t
		}
	}
	if first < 0 {
		r.ended = true
		return nil
	}
	r.take(&r.heads[first], first)
	return r.refill(first)
}

func (r *rankReader) refill(t int) (err error) {
	r.has[t], err = r.threads[t].next(&r.heads[t])
	return err
}

// take makes the rows of a call. A test that completed nothing becomes a poll, unless commq wrote the trace, which
// writes no failed tests.
func (r *rankReader) take(c *call, t int) {
	th := r.threads[t]
	row := &c.row
	id := schema.CallID(row.Call)
	spent := th.spent
	th.spent = 0
	if !r.j.ours && id.Is(schema.FactTests) && len(c.ends) == 0 && !c.probed && len(c.posts) == 0 && row.EndNs != null64 {
		r.polls[t]++
		r.pollNs[t] += row.EndNs - row.StartNs
		return
	}
	if th.lastEnd != null64 {
		row.ComputeNs = max(0, row.StartNs-th.lastEnd-r.pollNs[t]-spent)
	}
	if row.EndNs != null64 {
		th.lastEnd = row.EndNs
	}
	if r.polls[t] > 0 {
		row.Polls, row.PollNs = r.polls[t], r.pollNs[t]
		r.polls[t], r.pollNs[t] = 0, 0
	}
	r.finishRow(c, th)
	s := r.push(row)
	for i := range c.posts {
		if i > 0 && len(c.more) > 0 {
			s = r.push(&c.more[i-1])
		}
		if i == 0 || len(c.more) > 0 {
			r.serial++
			s.row.Request = r.serial
		}
		s.waiting++
		r.pending[requestKey{row.Thread, c.posts[i]}] = s
	}
	for i := range c.ends {
		r.end(c, &c.ends[i], row.Thread)
	}
}

// finishRow completes a row with what is known of its rank.
func (r *rankReader) finishRow(c *call, th *reader) {
	row := &c.row
	row.Callsite = th.sites.id(row.Callsite)
	for i := range c.more {
		c.more[i].Callsite = row.Callsite
	}
	call := schema.CallID(row.Call)
	switch schema.Class(row.Class) {
	case schema.ClassSend, schema.ClassRecv, schema.ClassSendrecv:
		row.ProcNull = r.noPeer(c, call)
		for i := range c.more {
			c.more[i].ProcNull = 0
		}
	case schema.ClassCollective:
		if row.Comm == null32 && len(c.posts) == 0 {
			th.counts.noRecord++
		}
	case schema.ClassRMA:
		r.made(c, c.window, r.windows)
		if send, recv := schema.Sides(call); (send || recv) && row.ProcNull == null32 {
			row.ProcNull, row.Comm = 0, null32
		}
	case schema.ClassIO:
		r.made(c, c.handle, r.handles)
	}
}

// noPeer returns proc_null of a row: a side without a record is to or from MPI_PROC_NULL.
func (r *rankReader) noPeer(c *call, call schema.CallID) (flags int32) {
	if call.Is(schema.FactStarts) {
		return 0
	}
	if call.Is(schema.FactSends) && c.row.SendWorld == null32 {
		flags |= schema.ProcNullSend
	}
	if call.Is(schema.FactReceives) && c.row.RecvWorld == null32 && len(c.posts) == 0 {
		flags |= schema.ProcNullRecv
	}
	return flags
}

// made notes the call that made a window or a file, or finds it.
func (r *rankReader) made(c *call, id uint32, by map[uint32]int64) {
	if schema.CallID(c.row.Call).IsAny(schema.FactCreatesWindow | schema.FactOpensFile) {
		by[id] = r.seq
	} else if seq, ok := by[id]; ok && id != undefined32 {
		c.row.InitSeq = seq
	}
}

// push numbers a row and keeps it back.
func (r *rankReader) push(row *schema.Event) *slot {
	var s *slot
	if n := len(r.spare); n > 0 {
		s, r.spare = r.spare[n-1], r.spare[:n-1]
	} else {
		s = new(slot)
	}
	*s = slot{row: *row, doneStart: null64, doneEnd: null64, doneSite: null32}
	s.row.Seq = r.seq
	r.seq++
	r.ring = append(r.ring, s)
	return s
}

// end completes a request.
func (r *rankReader) end(c *call, x *ending, thread int32) {
	key := requestKey{thread, x.request}
	s, ok := r.pending[key]
	for t := 0; !ok && t < len(r.threads); t++ {
		key.thread = int32(t)
		s, ok = r.pending[key]
	}
	if !ok {
		r.threads[thread].counts.lostEnds++
		return
	}
	delete(r.pending, key)
	s.waiting--
	done := &r.ring[len(r.ring)-1].row
	if done.Seq <= s.row.Seq {
		return // completed by the call that made it
	}
	s.row.DoneSeq = done.Seq
	if len(c.ends) == 1 && c.row.Class == int16(schema.ClassComplete) {
		done.Request = s.row.Request
	}
	switch from := &x.row; {
	case x.received:
		s.row.Comm, s.row.RecvPeer, s.row.RecvWorld, s.row.RecvTag, s.row.RecvBytes = from.Comm, from.RecvPeer,
			from.RecvWorld, from.RecvTag, from.RecvBytes
		s.received = true
		s.doneStart, s.doneEnd, s.doneSite, s.doneThread = done.StartNs, done.EndNs, done.Callsite, thread
	case x.collected:
		s.row.Comm, s.row.SendBytes, s.row.RecvBytes, s.row.RootWorld = from.Comm, from.SendBytes, from.RecvBytes,
			from.RootWorld
	}
}
