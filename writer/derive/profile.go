package derive

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
)

// profileRows is the number of rows of profile that are summed at a time, about 250 MB.
const profileRows = 1 << 20

// Profiler makes the rows of the table profile from a file of events. profileRows and the size of an epoch limit its
// memory. It must not be used concurrently.
type Profiler struct {
	most  int // rows at a time, checked at the end of an epoch
	epoch int32
	first int32 // the epoch in which the rows being summed begin

	// The rows, in chunks of profileChunk: a single slice would have to be copied as it grows, and would waste
	// capacity.
	chunks [][]profileSums
	n      int             // number of rows
	slots  []int32         // an open-addressing hash table of indexes of rows, plus 1; its size is a power of two
	next   map[int32]int64 // by rank: nth of its next row

	kinds  []profileKey // keys without their ranks: many ranks share them
	kindOf map[profileKey]int32
	recent [64]int32 // a cache of kinds, by hash
}

// profileSums is a row of profile.
type profileSums struct {
	rank, kind, first                          int32
	nth, calls, sends, receives                int64
	sendBytes, recvBytes, timeNs, minNs, maxNs int64
	firstNs, lastNs, computeNs, polls, pollNs  int64
}

// profileChunk is the number of rows in a chunk.
const profileChunk = 1 << 10

// profileKey identifies a row of profile: all rows of events with these values are summed in it.
type profileKey struct {
	rank, thread, comm, callsite    int32
	errorClass, postedAny, procNull int32
	recvWorld, recvTag              int32
	call, class                     int16
	inProgress                      int32
}

// NewProfiler returns a Profiler.
func NewProfiler() *Profiler {
	return &Profiler{most: profileRows, slots: make([]int32, 1<<8), next: map[int32]int64{},
		kindOf: map[profileKey]int32{}}
}

// Add adds rows of events in the order of the table's key. It gives complete rows of profile to full, sorted by the
// key, and returns full's error.
func (p *Profiler) Add(e *schema.Events, full func(*schema.Profiles) error) error {
	last, k := profileKey{}, -1
	for i, epoch := range e.Epoch {
		if epoch != p.epoch {
			if p.epoch = epoch; p.n > p.most {
				if err := p.Flush(full); err != nil {
					return err
				}
				p.first, k = epoch, -1
			}
		}
		key := keyOf(e, i)
		if k < 0 || key != last {
			last, k = key, p.find(key)
		}
		p.row(k).add(e, i)
	}
	return nil
}

// row returns the k-th row that was made.
func (p *Profiler) row(k int) *profileSums { return &p.chunks[k/profileChunk][k%profileChunk] }

// key returns the key of a row.
func (p *Profiler) key(r *profileSums) profileKey {
	k := p.kinds[r.kind]
	k.rank = r.rank
	return k
}

// kind numbers keys without their ranks.
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

func keyOf(e *schema.Events, i int) profileKey {
	k := profileKey{rank: e.Rank[i], thread: e.Thread[i], comm: e.Comm[i], callsite: e.Callsite[i],
		errorClass: e.ErrorClass[i],
		postedAny:  e.PostedAny[i], procNull: e.ProcNull[i], recvWorld: schema.NullInt32, recvTag: schema.NullInt32,
		call:  e.Call[i],
		class: e.Class[i]}
	if k.postedAny > 0 {
		k.recvWorld, k.recvTag = e.RecvWorld[i], e.RecvTag[i]
	}
	if e.EndNs[i] == schema.NullInt64 && e.StartNs[i] != schema.NullInt64 {
		k.inProgress = 1
	}
	return k
}

// hash mixes the columns, because most of them use few bits.
func (k *profileKey) hash() uint64 {
	const a, b = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := (uint64(uint32(k.rank))<<32 | uint64(uint32(k.callsite))) * a
	h = (h ^ h>>29 ^ uint64(uint16(k.call))<<48 ^ uint64(uint16(k.class))<<40 ^ uint64(uint32(k.comm))) * b
	h = (h ^ h>>32 ^ uint64(uint32(k.recvWorld))<<32 ^ uint64(uint32(k.recvTag))) * a
	h = (h ^ h>>29 ^ uint64(uint32(k.thread))<<32 ^ uint64(uint32(k.postedAny))<<16 ^ uint64(uint32(k.procNull))<<8 ^ uint64(uint32(k.errorClass))<<1 ^ uint64(k.inProgress)) * b
	return h ^ h>>32
}

// find returns the index of the row of a key, and makes the row if there is none.
func (p *Profiler) find(k profileKey) int {
	mask := uint64(len(p.slots) - 1)
	slot := k.hash() & mask
	for ; p.slots[slot] != 0; slot = (slot + 1) & mask {
		if i := int(p.slots[slot] - 1); p.row(i).rank == k.rank && p.key(p.row(i)) == k {
			return i
		}
	}
	n := &schema.NullProfile
	row := profileSums{rank: k.rank, kind: p.kind(k), first: p.first, nth: p.next[k.rank], sendBytes: n.SendBytes,
		recvBytes: n.RecvBytes, timeNs: n.TimeNs, minNs: n.MinNs,
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
	for k := range p.n {
		key := p.key(p.row(k))
		slot := key.hash() & mask
		for ; p.slots[slot] != 0; slot = (slot + 1) & mask {
		}
		p.slots[slot] = int32(k + 1)
	}
}

// profile converts a row to a row of the table.
func (p *Profiler) profile(r *profileSums) schema.Profile {
	k := p.key(r)
	return schema.Profile{Rank: r.rank, Nth: r.nth, Epoch: r.first, Thread: k.thread, Call: k.call, Class: k.class,
		Comm: k.comm, Callsite: k.callsite,
		ErrorClass: k.errorClass, PostedAny: k.postedAny, ProcNull: k.procNull, InProgress: k.inProgress,
		RecvWorld: k.recvWorld, RecvTag: k.recvTag,
		Calls: r.calls, Sends: r.sends, Receives: r.receives, SendBytes: r.sendBytes, RecvBytes: r.recvBytes,
		TimeNs: r.timeNs, MinNs: r.minNs, MaxNs: r.maxNs,
		FirstNs: r.firstNs, LastNs: r.lastNs, ComputeNs: r.computeNs, Polls: r.polls, PollNs: r.pollNs}
}

// add adds row i of events to the sums.
func (r *profileSums) add(e *schema.Events, i int) {
	r.calls++
	if e.SendPeer[i] != schema.NullInt32 {
		r.sends++
	}
	if e.RecvPeer[i] != schema.NullInt32 {
		r.receives++
	}
	sum(&r.sendBytes, e.SendBytes[i])
	sum(&r.recvBytes, e.RecvBytes[i])
	sum(&r.computeNs, e.ComputeNs[i])
	sum(&r.polls, e.Polls[i])
	sum(&r.pollNs, e.PollNs[i])
	start, end := e.StartNs[i], e.EndNs[i]
	if start == schema.NullInt64 {
		return
	}
	if r.firstNs == schema.NullInt64 || start < r.firstNs {
		r.firstNs = start
	}
	if end == schema.NullInt64 {
		r.lastNs = max(r.lastNs, start)
		return
	}
	r.lastNs = max(r.lastNs, end)
	ns := end - start
	sum(&r.timeNs, ns)
	r.maxNs = max(r.maxNs, ns)
	if r.minNs == schema.NullInt64 || ns < r.minNs {
		r.minNs = ns
	}
}

// sum adds x to a sum, which is null as long as all its terms are.
func sum(to *int64, x int64) {
	switch {
	case x == schema.NullInt64:
	case *to == schema.NullInt64:
		*to = x
	default:
		*to += x
	}
}

// Flush gives the remaining rows to full, sorted by the key, unless there are none. It returns full's error.
func (p *Profiler) Flush(full func(*schema.Profiles) error) error {
	if p.n == 0 {
		return nil
	}
	order := make([]int32, p.n)
	for k := range order {
		order[k] = int32(k)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := p.row(int(a)), p.row(int(b))
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.nth, y.nth))
	})
	var batch schema.Profiles
	batch.Resize(p.n)
	for i, k := range order {
		row := p.profile(p.row(int(k)))
		batch.Set(i, &row)
	}
	p.chunks, p.n, p.kinds = nil, 0, nil
	clear(p.kindOf)
	clear(p.slots)
	return full(&batch)
}
