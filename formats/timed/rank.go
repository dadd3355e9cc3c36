package timed

import "github.com/commq/commq/schema"

// slot is a row of a rank on its way to the table, with what completed its receive.
type slot struct {
	row     schema.Event
	waiting int // requests of it that are not completed
	// doneStart, doneEnd and doneSite are those of the row that completed a receive.
	doneStart, doneEnd int64
	doneSite           int32
	doneReader         int // the reader that knows that call site
	received           bool
	cancelled          bool
	atMost             bool
	pair               Pair
	to, from           []int64
}

// source is a reader with the call that it read last.
type source struct {
	Reader
	head Call
	has  bool
}

// thread is the state of a thread of a rank.
type thread struct {
	lastEnd       int64            // of the call before
	spent         int64            // time since then that is no computing of the program
	polls, pollNs int64            // since its last row
	pending       map[uint64]*slot // its open requests: traces number them by thread
}

// rankReader makes the rows of a rank: it merges the calls of its threads in the order of their starts, and completes
// the rows of requests when these are completed. Until then it keeps rows back, up to a limit. The completion of older
// rows is noted by the first pass for the second (far).
type rankReader struct {
	j       *Job
	sources []*source
	threads []thread
	started bool

	ring   []*slot // rows kept back, the oldest first
	given  *slot   // what next returned last, if nothing else refers to it
	spare  []*slot // to use again
	serial int64
	seq    int64
	ended  bool

	instances map[int32]int64
	windows   map[uint32]int64 // seq of the call that made it
	handles   map[uint32]int64
	inits     map[uint64]int64 // and a persistent request

	unknown  patterns // of receives whose message the trace does not tell
	lost     int64    // completions of requests that no call made
	far      map[int64]*slot
	sizes    map[int64]int64
	learning bool
	reported int64
}

// rankReader begins to read a rank.
func (j *Job) rankReader(rank int32, learning bool) (*rankReader, error) {
	readers, err := j.trace.Open(rank, learning)
	if err != nil {
		return nil, err
	}
	f := &j.facts[rank]
	r := &rankReader{j: j, instances: map[int32]int64{}, windows: map[uint32]int64{},
		handles: map[uint32]int64{}, inits: map[uint64]int64{}, far: f.far, sizes: f.sizes, learning: learning,
		unknown: patterns{}}
	for _, x := range readers {
		r.sources = append(r.sources, &source{Reader: x})
	}
	return r, nil
}

func (r *rankReader) close() {
	for _, s := range r.sources {
		s.Close()
	}
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
			if s.waiting > 0 && !r.ended && r.j.skims() {
				return nil, ErrLearn
			}
			r.ring = r.ring[1:]
			return r.give(s), nil
		}
		if r.ended {
			return nil, nil
		}
		if err := r.advance(); err != nil {
			return nil, err
		}
	}
}

// give completes a row that is not kept back any more.
func (r *rankReader) give(s *slot) *slot {
	switch {
	case s.waiting > 0 && !r.learning:
		if f, ok := r.far[s.row.Seq]; ok {
			f.row.Callsite, f.doneSite = s.row.Callsite, r.sources[f.doneReader].Site(f.doneSite)
			if f.row.Comm == unnumbered {
				f.row.Comm = r.j.comms.selfID[f.row.Rank]
			}
			s = f
		}
	case s.waiting > 0 && !r.ended:
		r.far[s.row.Seq] = s // the first pass keeps it until it is completed
	case s.waiting == 0:
		r.given = s
	}
	if bytes, ok := r.sizes[s.row.Seq]; ok && !r.learning && s.atMost {
		s.row.RecvBytes = bytes
	}
	r.number(s)
	return s
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
		for _, s := range r.sources {
			if err := s.refill(); err != nil {
				return err
			}
		}
	}
	first := -1
	for i, s := range r.sources {
		if s.has && (first < 0 || s.head.Row.StartNs < r.sources[first].head.Row.StartNs) {
			first = i
		}
	}
	if first < 0 {
		r.ended = true
		return nil
	}
	r.take(&r.sources[first].head, first)
	return r.sources[first].refill()
}

func (s *source) refill() (err error) {
	s.has, err = s.Next(&s.head)
	return err
}

// thread returns what is known of a thread.
func (r *rankReader) thread(number int32) *thread {
	for int(number) >= len(r.threads) {
		r.threads = append(r.threads, thread{lastEnd: null64})
	}
	return &r.threads[number]
}

// take makes the rows of a call of a reader.
func (r *rankReader) take(c *Call, reader int) {
	if c.Settle != nil {
		c.Settle(c)
	}
	row := &c.Row
	t := r.thread(row.Thread)
	t.spent += c.SpentNs
	if c.Poll {
		t.polls++
		t.pollNs += row.EndNs - row.StartNs
		return
	}
	if t.lastEnd != null64 {
		row.ComputeNs = max(0, row.StartNs-t.lastEnd-t.pollNs-t.spent)
	}
	if row.EndNs != null64 {
		t.lastEnd = row.EndNs
	}
	if t.polls > 0 {
		row.Polls, row.PollNs = t.polls, t.pollNs
	}
	t.polls, t.pollNs, t.spent = 0, 0, 0
	r.made(c)
	if c.Makes != 0 {
		r.inits[c.Makes] = r.seq
	}
	s := r.push(row)
	s.atMost, s.pair, s.to, s.from = c.AtMost, c.Pair, c.To, c.From
	for i := range c.Posts {
		if i > 0 && len(c.More) > 0 {
			s = r.push(&c.More[i-1])
			s.atMost = c.AtMost
			if i <= len(c.MorePairs) {
				s.pair = c.MorePairs[i-1]
			}
		}
		if i == 0 || len(c.More) > 0 {
			r.serial++
			s.row.Request = r.serial
		}
		if i < len(c.Inits) {
			if seq, ok := r.inits[c.Inits[i]]; ok {
				s.row.InitSeq = seq
			}
		}
		s.waiting++
		if t.pending == nil {
			t.pending = map[uint64]*slot{}
		}
		t.pending[c.Posts[i]] = s
	}
	for i := range c.Ends {
		r.end(c, &c.Ends[i], reader)
	}
}

// made notes the call that made a window or a file, or finds it.
func (r *rankReader) made(c *Call) {
	id, by := c.Window, r.windows
	if schema.Class(c.Row.Class) == schema.ClassIO {
		id, by = c.Handle, r.handles
	}
	if id == Unused {
		return
	}
	if schema.CallID(c.Row.Call).IsAny(schema.FactCreatesWindow | schema.FactOpensFile) {
		by[id] = r.seq
	} else if seq, ok := by[id]; ok {
		c.Row.InitSeq = seq
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
	s.row = *row
	s.row.Seq = r.seq
	s.doneStart, s.doneEnd, s.doneSite, s.doneReader = null64, null64, null32, 0
	s.waiting, s.received, s.cancelled, s.atMost = 0, false, false, false
	s.pair, s.to, s.from = Pair{}, nil, nil
	r.seq++
	r.ring = append(r.ring, s)
	return s
}

// pending removes and returns the row that waits for a request of a thread, or of another thread if it has none.
func (r *rankReader) pending(number int32, request uint64) *slot {
	of := r.threads[number].pending
	s, ok := of[request]
	for t := 0; !ok && t < len(r.threads); t++ {
		of = r.threads[t].pending
		s, ok = of[request]
	}
	delete(of, request)
	return s
}

// end completes a request.
func (r *rankReader) end(c *Call, x *Ending, reader int) {
	s := r.pending(c.Row.Thread, x.Request)
	if s == nil {
		r.lost++
		return
	}
	s.waiting--
	if x.Lost {
		delete(r.far, s.row.Seq)
		return
	}
	done := &r.ring[len(r.ring)-1].row
	if done.Seq <= s.row.Seq {
		return // completed by the call that made it
	}
	s.row.DoneSeq = done.Seq
	if len(c.Ends) == 1 && c.Row.Class == int16(schema.ClassComplete) {
		done.Request = s.row.Request
	}
	switch {
	case x.Received:
		x.Got.Receive(&s.row)
		s.atMost, s.pair.Received = false, x.Pair
	case x.Collected:
		x.Got.Collect(&s.row)
	}
	s.cancelled = s.cancelled || x.Cancelled
	if s.row.Class == int16(schema.ClassSend) && s.cancelled {
		s.row.SendBytes = null64
	}
	if s.row.Class != int16(schema.ClassRecv) && !x.Received {
		return
	}
	if s.cancelled {
		s.row.RecvPeer, s.row.RecvWorld, s.row.RecvTag, s.row.RecvBytes = null32, null32, null32, null64
	} else {
		s.received = true
		s.doneStart, s.doneEnd, s.doneSite, s.doneReader = done.StartNs, done.EndNs, done.Callsite, reader
	}
}
