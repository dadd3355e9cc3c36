package derive

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
)

// collectiveSums makes the rows of the table collective_waits. It keeps rows of events until their epoch is complete,
// and an operation until all members of its communicator have entered it. A call that completes operations is kept
// until its own row was added and all these operations are complete.
type collectiveSums struct {
	ranks int
	kept  []collectiveRow
	comms map[int32]*waitComm
	made  map[uint64]schema.CallID      // by rowKey: the calls that made persistent collectives
	ends  map[uint64]*completingCall    // by rowKey
	sums  map[collectiveKey]*untilWaits // of ranks in communicators
	held  int                           // rows of operations that are not complete
	full  bool                          // more than carriedRows of them
}

// collectiveRow is a row of events that enters a collective operation, or makes a persistent one.
type collectiveRow struct {
	rank, comm, root int32
	call             schema.CallID
	makes            bool
	request          bool
	seq, instance    int64
	start, end       int64
	done, init       int64
}

// waitComm is a communicator.
type waitComm struct {
	members []waitMember
	places  []int32         // index in members plus 1, by world rank; nil while byRank is used
	byRank  map[int32]int32 // the same
	inter   bool
	open    map[int64]*operation // by instance
	free    []*operation
}

type waitMember struct {
	rank, commRank int32
	group          int8 // 0 or 1
	lastCall       schema.CallID
	last           *untilWaits // the sums of lastCall
}

// operation is a collective operation that some members have not entered yet.
type operation struct{ entries []collectiveEntry }

// collectiveEntry is the entry of a rank into an operation.
type collectiveEntry struct {
	member     int32 // index in waitComm.members
	pattern    int16
	call       schema.CallID
	root       int32
	start, end int64
	request    bool
	ends       *completingCall // the call that completes its request; nil when nothing does
	needed     int64           // in a scan, the latest entry of the ranks up to this one
}

// completingCall is a call that completes operations begun by earlier calls. It waits for the last of them.
type completingCall struct {
	start, end int64
	present    bool // its own row was added
	open       int  // operations that are not complete
	counted    []*collectiveSum
	longest    [len(untilKinds)]*awaitedOperation
}

// awaitedOperation is an operation, and the rank whose entry another rank waits for.
type awaitedOperation struct {
	key      collectiveKey
	comm     int32
	instance int64
	cause    int32 // NullInt32 means none
	needed   int64 // when cause entered; NullInt64 when not known
}

type collectiveKey struct {
	rank, comm int32
	call       schema.CallID
}

// untilWaits are the sums of a rank's operations of one kind, by untilKinds.
type untilWaits [len(untilKinds)]collectiveSum

// untilKinds are the two moments until which a rank may have to wait.
var untilKinds = [...]int16{schema.UntilNeeded, schema.UntilLast}

type collectiveSum struct{ calls, waits, ns, max, caused, causedNs int64 }

func newCollectiveSums(ranks int) collectiveSums {
	return collectiveSums{ranks: ranks, comms: map[int32]*waitComm{}, made: map[uint64]schema.CallID{},
		ends: map[uint64]*completingCall{}, sums: map[collectiveKey]*untilWaits{}}
}

// waitPattern returns the wait pattern of an operation.
func waitPattern(c schema.CallID) int16 {
	switch c.Operation() {
	case schema.CallBarrier:
		return schema.WaitAtBarrier
	case schema.CallBcast, schema.CallScatter, schema.CallScatterv:
		return schema.LateBroadcast
	case schema.CallReduce, schema.CallGather, schema.CallGatherv:
		return schema.EarlyReduce
	case schema.CallScan, schema.CallExscan:
		return schema.EarlyScan
	}
	return schema.WaitAtNxN
}

// addComms adds members of communicators. It ignores those outside the run.
func (s *collectiveSums) addComms(b *schema.Comms) {
	for i, rank := range b.WorldRank {
		c := s.comms[b.Comm[i]]
		if c == nil {
			c = &waitComm{byRank: map[int32]int32{}, open: map[int64]*operation{}}
			s.comms[b.Comm[i]] = c
		}
		c.inter = c.inter || b.Remote[i] == 1
		if uint32(rank) < uint32(s.ranks) {
			m := waitMember{rank: rank, commRank: b.CommRank[i]}
			if b.Remote[i] == 1 { // a damaged run may have another number
				m.group = 1
			}
			c.members = append(c.members, m)
			c.byRank[rank] = int32(len(c.members))
		}
	}
}

// member returns the index of a world rank in members; negative when it is not a member.
func (c *waitComm) member(rank int32, ranks int) int32 {
	const share = 8 // an array by world rank is used if at least 1/8 of the ranks are members
	if c.places == nil && c.byRank != nil && len(c.members)*share >= ranks {
		c.places = make([]int32, ranks)
		for rank, k := range c.byRank {
			c.places[rank] = k
		}
		c.byRank = nil
	}
	switch {
	case c.places == nil:
		return c.byRank[rank] - 1
	case uint32(rank) < uint32(len(c.places)):
		return c.places[rank] - 1
	}
	return -1
}

// keep keeps the rows of collectives, and of calls that make persistent collectives. Failed ones waited for nobody.
func (s *collectiveSums) keep(e *schema.Events) {
	for i, class := range e.Class {
		makes := schema.Class(class) == schema.ClassOther
		if !makes && schema.Class(class) != schema.ClassCollective || e.Instance[i] == schema.NullInt64 ||
			!makes && e.Comm[i] == schema.NullInt32 || e.ErrorClass[i] != schema.NullInt32 {
			continue
		}
		s.kept = append(s.kept, collectiveRow{rank: e.Rank[i], comm: e.Comm[i], root: e.RootWorld[i],
			call: schema.CallID(e.Call[i]), makes: makes,
			request: e.Request[i] != schema.NullInt64, seq: e.Seq[i], instance: e.Instance[i], start: e.StartNs[i],
			end: e.EndNs[i], done: e.DoneSeq[i], init: e.InitSeq[i]})
	}
}

// epoch adds the rows that were kept; calls has all rows of their epoch.
func (s *collectiveSums) epoch(calls *epochCalls) {
	for i := range s.kept {
		if r := &s.kept[i]; r.makes {
			s.made[schema.RowKey(r.rank, r.seq)] = r.call
		}
	}
	for i := range s.kept {
		if r := &s.kept[i]; !r.makes && !s.full {
			s.enter(r)
		}
	}
	s.kept = s.kept[:0]
	for key, end := range s.ends {
		if rank, seq := schema.RowOf(key); !end.present {
			if row := calls.row(rank, seq); row != nil && row.present {
				end.start, end.end, end.present = row.start, row.end, true
			}
		}
		if end.present && end.open == 0 {
			s.addCompleting(end)
			delete(s.ends, key)
		}
	}
	if s.held+len(s.ends) > carriedRows {
		s.full, s.held = true, 0
		clear(s.comms)
		clear(s.ends)
	}
}

// enter adds the entry of a rank into an operation.
func (s *collectiveSums) enter(r *collectiveRow) {
	if r.init != schema.NullInt64 {
		if call, ok := s.made[schema.RowKey(r.rank, r.init)]; ok {
			r.call = call
		}
	}
	if r.call.IsNeighborhood() {
		return
	}
	c := s.comms[r.comm]
	if c == nil {
		return
	}
	member := c.member(r.rank, s.ranks)
	if member < 0 {
		return
	}
	e := collectiveEntry{member: member, pattern: waitPattern(r.call), call: r.call, root: r.root, start: r.start,
		end: r.end, request: r.request}
	if op := r.call.Operation(); op != 0 {
		e.call = op
	}
	if r.request && r.done != schema.NullInt64 {
		key := schema.RowKey(r.rank, r.done)
		if e.ends = s.ends[key]; e.ends == nil {
			e.ends = &completingCall{}
			s.ends[key] = e.ends
		}
		e.ends.open++
	}
	op := c.open[r.instance]
	if op == nil {
		op = &operation{}
		if n := len(c.free); n > 0 {
			op, c.free = c.free[n-1], c.free[:n-1]
		}
		c.open[r.instance] = op
	}
	op.entries = append(op.entries, e)
	if s.held++; len(op.entries) == len(c.members) {
		s.complete(r.comm, c, r.instance, op)
	}
}

// complete adds the waits of an operation that no further rank enters.
func (s *collectiveSums) complete(comm int32, c *waitComm, instance int64, op *operation) {
	if slices.ContainsFunc(op.entries, func(e collectiveEntry) bool { return e.pattern == schema.EarlyScan }) {
		setScanNeeds(c, op.entries)
	}
	var last [2]*collectiveEntry // the last to enter, by group
	for i := range op.entries {
		e := &op.entries[i]
		group := c.members[e.member].group
		if x := last[group]; x == nil || e.start > x.start || e.start == x.start &&
			c.members[e.member].rank < c.members[x.member].rank {
			last[group] = e
		}
	}
	root, rootNs := schema.NullInt32, schema.NullInt64
	for i := range op.entries {
		e := &op.entries[i]
		if e.request && e.ends == nil {
			continue // it never ended
		}
		needs := c.members[e.member].group
		if c.inter {
			needs = 1 - needs
		}
		cause, needed := schema.NullInt32, schema.NullInt64
		if x := last[needs]; x != nil {
			cause, needed = c.members[x.member].rank, x.start
		}
		s.await(comm, c, instance, e, schema.UntilLast, cause, needed)
		rank := c.members[e.member].rank
		switch {
		case e.pattern == schema.WaitAtBarrier || e.pattern == schema.WaitAtNxN || e.pattern == schema.EarlyReduce &&
			rank == e.root:
		case e.pattern == schema.LateBroadcast:
			if root != e.root {
				root, rootNs = e.root, c.entered(op, e.root)
			}
			cause, needed = root, rootNs
		default:
			cause, needed = schema.NullInt32, e.needed
		}
		s.await(comm, c, instance, e, schema.UntilNeeded, cause, needed)
		if e.ends != nil {
			e.ends.open--
		}
	}
	s.held -= len(op.entries)
	op.entries = op.entries[:0]
	delete(c.open, instance)
	c.free = append(c.free, op)
}

// entered returns when a world rank entered an operation; NullInt64 when it did not.
func (c *waitComm) entered(op *operation, rank int32) int64 {
	for i := range op.entries {
		if e := &op.entries[i]; c.members[e.member].rank == rank {
			return e.start
		}
	}
	return schema.NullInt64
}

// setScanNeeds sets, for each entry of a scan, the latest entry of the ranks up to it.
func setScanNeeds(c *waitComm, entries []collectiveEntry) {
	slices.SortFunc(entries, func(a, b collectiveEntry) int {
		return cmp.Compare(c.members[a.member].commRank, c.members[b.member].commRank)
	})
	latest := int64(schema.NullInt64)
	for i := range entries {
		if e := &entries[i]; e.pattern == schema.EarlyScan {
			latest = max(latest, e.start)
			e.needed = latest
		}
	}
}

// await adds a rank that waited for cause, which entered at needed.
func (s *collectiveSums) await(comm int32, c *waitComm, instance int64, e *collectiveEntry, until int16, cause int32,
	needed int64) {
	m := &c.members[e.member]
	key := collectiveKey{m.rank, comm, e.call}
	if m.last == nil || m.lastCall != e.call {
		m.lastCall, m.last = e.call, s.sumsOf(key)
	}
	sum := &m.last[until]
	if e.ends == nil {
		sum.calls++
		s.wait(sum, comm, e.call, until, cause, needed, e.start, e.end)
		return
	}
	e.ends.counted = append(e.ends.counted, sum)
	x := awaitedOperation{key, comm, instance, cause, needed}
	if l := e.ends.longest[until]; l == nil || x.needed > l.needed || x.needed == l.needed &&
		cmp.Or(cmp.Compare(comm, l.comm), cmp.Compare(instance, l.instance)) < 0 {
		e.ends.longest[until] = &x
	}
}

// sumsOf returns the sums of a rank's operations of one kind.
func (s *collectiveSums) sumsOf(key collectiveKey) *untilWaits {
	u := s.sums[key]
	if u == nil {
		u = &untilWaits{}
		s.sums[key] = u
	}
	return u
}

// wait adds the time between start and end that a call waited for cause, which entered at needed.
func (s *collectiveSums) wait(sum *collectiveSum, comm int32, call schema.CallID, until int16, cause int32, needed,
	start,
	end int64) {
	if needed == schema.NullInt64 || start == schema.NullInt64 || needed <= start {
		return
	}
	ns := needed - start
	if end != schema.NullInt64 {
		ns = min(needed, end) - start
	}
	if ns <= 0 {
		return
	}
	sum.waits++
	sum.ns += ns
	sum.max = max(sum.max, ns)
	if cause != schema.NullInt32 {
		by := &s.sumsOf(collectiveKey{cause, comm, call})[until]
		by.caused++
		by.causedNs += ns
	}
}

// addCompleting adds the waits of a call that completed operations.
func (s *collectiveSums) addCompleting(c *completingCall) {
	for _, sum := range c.counted {
		sum.calls++
	}
	for k, x := range c.longest {
		if x != nil {
			s.wait(&s.sumsOf(x.key)[k], x.comm, x.key.call, int16(k), x.cause, x.needed, c.start, c.end)
		}
	}
}

// rows gives the rows of collective_waits to full in batches. ok is false when they would have taken too much memory.
// The error is full's.
func (s *collectiveSums) rows(full func(schema.Batch) error) (ok bool, err error) {
	for comm, c := range s.comms { // operations that some member never entered
		for instance, op := range c.open {
			s.complete(comm, c, instance, op)
		}
	}
	for _, end := range s.ends {
		if end.present {
			s.addCompleting(end)
		}
	}
	clear(s.ends)
	if s.full {
		return false, nil
	}
	s.comms = nil // frees members and open operations
	keys := make([]collectiveKey, 0, len(s.sums))
	for key := range s.sums {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b collectiveKey) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.comm, b.comm), cmp.Compare(a.call, b.call))
	})
	out := &schema.CollectiveWaits{}
	last, nth := int32(-1), int64(0)
	for _, key := range keys {
		for _, until := range untilKinds {
			x := s.sums[key][until]
			if x == (collectiveSum{}) {
				continue
			}
			if key.rank != last {
				last, nth = key.rank, 0
			}
			out.Append(&schema.CollectiveWait{Rank: key.rank, Nth: nth, Until: until, Pattern: waitPattern(key.call),
				Call: int16(key.call), Comm: key.comm,
				Calls: x.calls, Waits: x.waits, WaitNs: x.ns, MaxNs: x.max, Caused: x.caused, CausedNs: x.causedNs})
			nth++
			if out.Len() == batchRows {
				if err := full(out); err != nil {
					return true, err
				}
				out.Resize(0)
			}
		}
	}
	return true, full(out)
}
