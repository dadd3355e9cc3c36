package schema

import (
	"cmp"
	"slices"
)

// profileRows is how many rows of profile are summed at a time: about 250 MB.
const profileRows = 1 << 20

// Profiler makes the rows of the table profile of those of a file of events. Its memory is bounded by profileRows and an epoch. It is for one
// goroutine at a time.
type Profiler struct {
	most  int // rows at a time, checked where an epoch ends
	epoch int32
	first int32 // epoch that the rows at hand begin in

	chunks [][]profileSums // the rows, profileChunk in each but the last: one slice of all would have to be copied as it grows, and be too large by a part
	n      int             // of rows
	slots  []int32         // an open hash table of places of rows, plus 1; its size is a power of two
	next   map[int32]int64

	kinds  []profileKey // of rows, without their ranks: of many ranks that do the same there are few
	kindOf map[profileKey]int32
	recent [64]int32 // kinds that came lately, by their hashes
}

// profileSums is a row of profile: its kind says what it sums.
type profileSums struct {
	rank, kind, first                          int32
	nth, calls, sends, receives                int64
	sendBytes, recvBytes, timeNs, minNs, maxNs int64
	firstNs, lastNs, computeNs, polls, pollNs  int64
}

// profileChunk is how many rows lie together.
const profileChunk = 1 << 10

// profileKey are the columns in which the rows of events agree that are summed in one row of profile.
type profileKey struct {
	rank, thread, comm, callsite    int32
	errorClass, postedAny, procNull int32
	recvWorld, recvTag              int32
	call, class                     int16
	inProgress                      int32
}

// NewProfiler returns a Profiler.
func NewProfiler() *Profiler {
	return &Profiler{most: profileRows, slots: make([]int32, 1<<8), next: map[int32]int64{}, kindOf: map[profileKey]int32{}}
}

// Add adds rows of events, which come in the order of the table's key, and gives the rows of profile that are complete to full, sorted by the
// key. It returns full's error.
func (p *Profiler) Add(e *Events, full func(*Profiles) error) error {
	last, at := profileKey{}, -1
	for i, epoch := range e.Epoch {
		if epoch != p.epoch {
			if p.epoch = epoch; p.n > p.most {
				if err := p.Flush(full); err != nil {
					return err
				}
				p.first, at = epoch, -1
			}
		}
		key := keyOf(e, i)
		if at < 0 || key != last {
			last, at = key, p.find(key)
		}
		p.row(at).add(e, i)
	}
	return nil
}

// row is the row at a place.
func (p *Profiler) row(at int) *profileSums { return &p.chunks[at/profileChunk][at%profileChunk] }

// key are the columns by which a row is found.
func (p *Profiler) key(r *profileSums) profileKey {
	k := p.kinds[r.kind]
	k.rank = r.rank
	return k
}

// kind is the number of what a key says beside its rank.
func (p *Profiler) kind(k profileKey) int32 {
	k.rank = 0
	last := &p.recent[k.hash()%uint64(len(p.recent))]
	if int(*last) < len(p.kinds) && p.kinds[*last] == k {
		return *last
	}
	n, known := p.kindOf[k]
	if !known {
		n = int32(len(p.kinds))
		p.kinds = append(p.kinds, k)
		p.kindOf[k] = n
	}
	*last = n
	return n
}

func keyOf(e *Events, i int) profileKey {
	k := profileKey{rank: e.Rank[i], thread: e.Thread[i], comm: e.Comm[i], callsite: e.Callsite[i], errorClass: e.ErrorClass[i],
		postedAny: e.PostedAny[i], procNull: e.ProcNull[i], recvWorld: NullInt32, recvTag: NullInt32, call: e.Call[i], class: e.Class[i]}
	if k.postedAny > 0 {
		k.recvWorld, k.recvTag = e.RecvWorld[i], e.RecvTag[i]
	}
	if e.EndNs[i] == NullInt64 && e.StartNs[i] != NullInt64 {
		k.inProgress = 1
	}
	return k
}

// hash mixes the columns, most of which have few bits.
func (k *profileKey) hash() uint64 {
	const a, b = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := (uint64(uint32(k.rank))<<32 | uint64(uint32(k.callsite))) * a
	h = (h ^ h>>29 ^ uint64(uint16(k.call))<<48 ^ uint64(uint16(k.class))<<40 ^ uint64(uint32(k.comm))) * b
	h = (h ^ h>>32 ^ uint64(uint32(k.recvWorld))<<32 ^ uint64(uint32(k.recvTag))) * a
	h = (h ^ h>>29 ^ uint64(uint32(k.thread))<<32 ^ uint64(uint32(k.postedAny))<<16 ^ uint64(uint32(k.procNull))<<8 ^ uint64(uint32(k.errorClass))<<1 ^ uint64(k.inProgress)) * b
	return h ^ h>>32
}

// find is the place of the row of a key, which it makes where it is not there.
func (p *Profiler) find(k profileKey) int {
	mask := uint64(len(p.slots) - 1)
	slot := k.hash() & mask
	for ; p.slots[slot] != 0; slot = (slot + 1) & mask {
		if at := int(p.slots[slot] - 1); p.row(at).rank == k.rank && p.key(p.row(at)) == k {
			return at
		}
	}
	n := &NullProfile
	row := profileSums{rank: k.rank, kind: p.kind(k), first: p.first, nth: p.next[k.rank], sendBytes: n.SendBytes, recvBytes: n.RecvBytes, timeNs: n.TimeNs, minNs: n.MinNs,
		maxNs: n.MaxNs, firstNs: n.FirstNs, lastNs: n.LastNs, computeNs: n.ComputeNs, polls: n.Polls, pollNs: n.PollNs}
	p.next[k.rank]++
	last := len(p.chunks) - 1
	if p.n%profileChunk == 0 {
		p.chunks, last = append(p.chunks, nil), last+1
	}
	p.chunks[last] = append(p.chunks[last], row)
	p.n++
	p.slots[slot] = int32(p.n)
	if 2*p.n > len(p.slots) {
		p.grow()
	}
	return p.n - 1
}

func (p *Profiler) grow() {
	p.slots = make([]int32, 2*len(p.slots))
	mask := uint64(len(p.slots) - 1)
	for at := range p.n {
		key := p.key(p.row(at))
		slot := key.hash() & mask
		for ; p.slots[slot] != 0; slot = (slot + 1) & mask {
		}
		p.slots[slot] = int32(at + 1)
	}
}

// profile is the row as the table has it.
func (p *Profiler) profile(r *profileSums) Profile {
	k := p.key(r)
	return Profile{Rank: r.rank, Nth: r.nth, Epoch: r.first, Thread: k.thread, Call: k.call, Class: k.class, Comm: k.comm, Callsite: k.callsite,
		ErrorClass: k.errorClass, PostedAny: k.postedAny, ProcNull: k.procNull, InProgress: k.inProgress, RecvWorld: k.recvWorld, RecvTag: k.recvTag,
		Calls: r.calls, Sends: r.sends, Receives: r.receives, SendBytes: r.sendBytes, RecvBytes: r.recvBytes, TimeNs: r.timeNs, MinNs: r.minNs, MaxNs: r.maxNs,
		FirstNs: r.firstNs, LastNs: r.lastNs, ComputeNs: r.computeNs, Polls: r.polls, PollNs: r.pollNs}
}

// add adds row i of events to the sums.
func (r *profileSums) add(e *Events, i int) {
	r.calls++
	if e.SendPeer[i] != NullInt32 {
		r.sends++
	}
	if e.RecvPeer[i] != NullInt32 {
		r.receives++
	}
	sum(&r.sendBytes, e.SendBytes[i])
	sum(&r.recvBytes, e.RecvBytes[i])
	sum(&r.computeNs, e.ComputeNs[i])
	sum(&r.polls, e.Polls[i])
	sum(&r.pollNs, e.PollNs[i])
	start, end := e.StartNs[i], e.EndNs[i]
	if start == NullInt64 {
		return
	}
	if r.firstNs == NullInt64 || start < r.firstNs {
		r.firstNs = start
	}
	if end == NullInt64 {
		r.lastNs = max(r.lastNs, start)
		return
	}
	r.lastNs = max(r.lastNs, end)
	ns := end - start
	sum(&r.timeNs, ns)
	r.maxNs = max(r.maxNs, ns)
	if r.minNs == NullInt64 || ns < r.minNs {
		r.minNs = ns
	}
}

// sum adds x to a sum that is null while all are.
func sum(to *int64, x int64) {
	switch {
	case x == NullInt64:
	case *to == NullInt64:
		*to = x
	default:
		*to += x
	}
}

// Flush gives the rows that are there to full, sorted by the key; there may be none. It returns full's error.
func (p *Profiler) Flush(full func(*Profiles) error) error {
	if p.n == 0 {
		return nil
	}
	order := make([]int32, p.n)
	for at := range order {
		order[at] = int32(at)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := p.row(int(a)), p.row(int(b))
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.nth, y.nth))
	})
	var batch Profiles
	batch.Resize(p.n)
	for i, at := range order {
		row := p.profile(p.row(int(at)))
		batch.Set(i, &row)
	}
	p.chunks, p.n, p.kinds = nil, 0, nil
	clear(p.kindOf)
	clear(p.slots)
	return full(&batch)
}

// lacksProfile says whether the run has no table profile.
func (m *Manifest) lacksProfile() bool {
	for _, t := range m.Tables {
		if t.Name == ProfileTable.Name {
			return len(t.Files) == 0
		}
	}
	return true
}

// checkProfile makes the profile again.
func checkProfile(c *Checker, b Batch) {
	if c.manifest.lacksProfile() {
		return
	}
	e, ok := b.(*Events)
	if !ok {
		c.profiled.Add(b)
		return
	}
	p := c.sums[c.file]
	if p == nil {
		p = NewProfiler()
		c.sums[c.file] = p
	}
	p.Add(e, c.addSums) // addSums returns no error
}

func (c *Checker) addSums(b *Profiles) error {
	c.summed.Add(b)
	return nil
}

func finishProfile(c *Checker) {
	for _, p := range c.sums {
		p.Flush(c.addSums) // likewise
	}
	if c.profiled.Rows() != c.summed.Rows() || c.profiled.Sum() != c.summed.Sum() {
		c.wrong("the %d rows of profile are not the %d sums of the rows of events; commq runs profile makes them again", c.profiled.Rows(), c.summed.Rows())
	}
}
