package schema

import (
	"cmp"
	"slices"
)

// collectiveSums makes the rows of the table collective_waits. Rows of events are kept until their epoch is whole; what is known of an operation
// until all members of its communicator have entered it; and a call that completes operations until it is met and all of these are known.
type collectiveSums struct {
	ranks int
	kept  []collectiveRow
	comms map[int32]*waitComm
	made  map[uint64]CallID             // by sideKey: the calls that made persistent collectives
	ends  map[uint64]*completingCall    // by sideKey
	sums  map[collectiveKey]*untilWaits // of ranks in communicators
	held  int                           // rows of operations that are not whole
	full  bool                          // there was more than carriedRows of them
}

// collectiveRow is what is needed of a row of events.
type collectiveRow struct {
	rank, comm, root int32
	call             CallID
	makes            bool
	request          bool
	seq, instance    int64
	start, end       int64
	done, init       int64
}

// waitComm is a communicator.
type waitComm struct {
	members []waitMember
	places  []int32         // in members plus 1, by world rank; nil: byRank says it
	byRank  map[int32]int32 // likewise
	inter   bool
	open    map[int64]*operation // by instance
	free    []*operation
}

type waitMember struct {
	rank, commRank int32
	own            int8 // group
	lastCall       CallID
	last           *untilWaits // what sums has of lastCall
}

// operation is a collective operation that not all members have entered yet.
type operation struct{ entries []collectiveEntry }

// collectiveEntry is a rank that entered one.
type collectiveEntry struct {
	member     int32 // place in waitComm.members
	pattern    int16
	call       CallID
	root       int32
	start, end int64
	request    bool
	ends       *completingCall // of a request that something completes
	needed     int64           // of a scan: the latest entry up to this rank
}

// completingCall completed operations that began in calls before it. It waits for the last of them.
type completingCall struct {
	start, end int64
	there      bool
	open       int // operations that are not whole
	counted    []*collectiveSum
	longest    [len(untilBoth)]*awaitedOperation
}

// awaitedOperation is an operation and whom a rank waits for in it.
type awaitedOperation struct {
	key      collectiveKey
	comm     int32
	instance int64
	cause    int32 // NullInt32: nobody
	needed   int64 // NullInt64: not known
}

type collectiveKey struct {
	rank, comm int32
	call       CallID
}

// untilWaits are the sums of a rank's operations of one kind, for each answer to whom it waits for.
type untilWaits [len(untilBoth)]collectiveSum

var untilBoth = [...]int16{UntilNeeded, UntilLast}

type collectiveSum struct{ calls, waits, ns, max, caused, causedNs int64 }

func newCollectiveSums(ranks int) collectiveSums {
	return collectiveSums{ranks: ranks, comms: map[int32]*waitComm{}, made: map[uint64]CallID{}, ends: map[uint64]*completingCall{}, sums: map[collectiveKey]*untilWaits{}}
}

// waitPattern is the pattern of waits in an operation.
func waitPattern(c CallID) int16 {
	switch c.Operation() {
	case CallBarrier:
		return WaitAtBarrier
	case CallBcast, CallScatter, CallScatterv:
		return LateBroadcast
	case CallReduce, CallGather, CallGatherv:
		return EarlyReduce
	case CallScan, CallExscan:
		return EarlyScan
	}
	return WaitAtNxN
}

// addComms takes in members of communicators; those outside the run take no part.
func (s *collectiveSums) addComms(b *Comms) {
	for i, rank := range b.WorldRank {
		c := s.comms[b.Comm[i]]
		if c == nil {
			c = &waitComm{byRank: map[int32]int32{}, open: map[int64]*operation{}}
			s.comms[b.Comm[i]] = c
		}
		c.inter = c.inter || b.Remote[i] == 1
		if uint32(rank) < uint32(s.ranks) {
			c.members = append(c.members, waitMember{rank: rank, commRank: b.CommRank[i], own: int8(b.Remote[i])})
			c.byRank[rank] = int32(len(c.members))
		}
	}
}

// member is the place of a world rank in members; negative: it is none.
func (c *waitComm) member(rank int32, ranks int) int32 {
	const share = 8 // of the ranks that are members: then an array is small enough
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

// keep keeps the rows of collectives, and of calls that make persistent ones.
func (s *collectiveSums) keep(e *Events) {
	for i, class := range e.Class {
		makes := Class(class) == ClassOther
		if !makes && Class(class) != ClassCollective || e.Instance[i] == NullInt64 || !makes && e.Comm[i] == NullInt32 {
			continue
		}
		s.kept = append(s.kept, collectiveRow{rank: e.Rank[i], comm: e.Comm[i], root: e.RootWorld[i], call: CallID(e.Call[i]), makes: makes,
			request: e.Request[i] != NullInt64, seq: e.Seq[i], instance: e.Instance[i], start: e.StartNs[i], end: e.EndNs[i], done: e.DoneSeq[i], init: e.InitSeq[i]})
	}
}

// epoch adds the rows that were kept; w has the other rows of their epoch.
func (s *collectiveSums) epoch(w *WaitSums) {
	for i := range s.kept {
		if r := &s.kept[i]; r.makes {
			s.made[sideKey(r.rank, r.seq)] = r.call
		}
	}
	for i := range s.kept {
		if r := &s.kept[i]; !r.makes && !s.full {
			s.enter(r)
		}
	}
	s.kept = s.kept[:0]
	for key, end := range s.ends {
		if rank, seq := sideOf(key); !end.there {
			if row := w.row(rank, seq); row != nil && row.there {
				end.start, end.end, end.there = row.start, row.end, true
			}
		}
		if end.there && end.open == 0 {
			s.completed(end)
			delete(s.ends, key)
		}
	}
	if s.held+len(s.ends) > carriedRows {
		s.full, s.held = true, 0
		clear(s.comms)
		clear(s.ends)
	}
}

// enter adds a rank that enters an operation.
func (s *collectiveSums) enter(r *collectiveRow) {
	if r.init != NullInt64 {
		if call, ok := s.made[sideKey(r.rank, r.init)]; ok {
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
	at := c.member(r.rank, s.ranks)
	if at < 0 {
		return
	}
	e := collectiveEntry{member: at, pattern: waitPattern(r.call), call: r.call, root: r.root, start: r.start, end: r.end, request: r.request}
	if op := r.call.Operation(); op != 0 {
		e.call = op
	}
	if r.request && r.done != NullInt64 {
		key := sideKey(r.rank, r.done)
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
		s.whole(r.comm, c, r.instance, op)
	}
}

// whole adds up an operation that nobody else enters.
func (s *collectiveSums) whole(comm int32, c *waitComm, instance int64, op *operation) {
	if slices.ContainsFunc(op.entries, func(e collectiveEntry) bool { return e.pattern == EarlyScan }) {
		scanned(c, op.entries)
	}
	var last [2]*collectiveEntry // of either group: who entered last
	for i := range op.entries {
		e := &op.entries[i]
		own := c.members[e.member].own
		if x := last[own]; x == nil || e.start > x.start || e.start == x.start && c.members[e.member].rank < c.members[x.member].rank {
			last[own] = e
		}
	}
	root, rootNs := NullInt32, NullInt64
	for i := range op.entries {
		e := &op.entries[i]
		if e.request && e.ends == nil {
			continue // it never ended
		}
		needs := c.members[e.member].own
		if c.inter {
			needs = 1 - needs
		}
		cause, needed := NullInt32, NullInt64
		if x := last[needs]; x != nil {
			cause, needed = c.members[x.member].rank, x.start
		}
		s.await(comm, c, instance, e, UntilLast, cause, needed)
		rank := c.members[e.member].rank
		switch {
		case e.pattern == WaitAtBarrier || e.pattern == WaitAtNxN || e.pattern == EarlyReduce && rank == e.root:
		case e.pattern == LateBroadcast:
			if root != e.root {
				root, rootNs = e.root, c.entered(op, e.root)
			}
			cause, needed = root, rootNs
		default:
			cause, needed = NullInt32, e.needed
		}
		s.await(comm, c, instance, e, UntilNeeded, cause, needed)
		if e.ends != nil {
			e.ends.open--
		}
	}
	s.held -= len(op.entries)
	op.entries = op.entries[:0]
	delete(c.open, instance)
	c.free = append(c.free, op)
}

// entered is when a world rank entered; NullInt64: it did not.
func (c *waitComm) entered(op *operation, rank int32) int64 {
	for i := range op.entries {
		if e := &op.entries[i]; c.members[e.member].rank == rank {
			return e.start
		}
	}
	return NullInt64
}

// scanned finds for each entry of a scan the latest of the ranks up to it.
func scanned(c *waitComm, entries []collectiveEntry) {
	slices.SortFunc(entries, func(a, b collectiveEntry) int {
		return cmp.Compare(c.members[a.member].commRank, c.members[b.member].commRank)
	})
	latest := int64(NullInt64)
	for i := range entries {
		if e := &entries[i]; e.pattern == EarlyScan {
			latest = max(latest, e.start)
			e.needed = latest
		}
	}
}

// await adds that a rank needed cause, which entered at needed.
func (s *collectiveSums) await(comm int32, c *waitComm, instance int64, e *collectiveEntry, until int16, cause int32, needed int64) {
	m := &c.members[e.member]
	key := collectiveKey{m.rank, comm, e.call}
	if m.last == nil || m.lastCall != e.call {
		m.lastCall, m.last = e.call, s.of(key)
	}
	sum := &m.last[until]
	if e.ends == nil {
		sum.calls++
		s.wait(sum, comm, e.call, until, cause, needed, e.start, e.end)
		return
	}
	e.ends.counted = append(e.ends.counted, sum)
	x := awaitedOperation{key, comm, instance, cause, needed}
	if l := e.ends.longest[until]; l == nil || x.needed > l.needed || x.needed == l.needed && cmp.Or(cmp.Compare(comm, l.comm), cmp.Compare(instance, l.instance)) < 0 {
		e.ends.longest[until] = &x
	}
}

// of are the sums of a rank's operations of one kind.
func (s *collectiveSums) of(key collectiveKey) *untilWaits {
	u := s.sums[key]
	if u == nil {
		u = &untilWaits{}
		s.sums[key] = u
	}
	return u
}

// wait adds what was lost from start to end until cause had entered at needed.
func (s *collectiveSums) wait(sum *collectiveSum, comm int32, call CallID, until int16, cause int32, needed, start, end int64) {
	if needed == NullInt64 || start == NullInt64 || needed <= start {
		return
	}
	ns := needed - start
	if end != NullInt64 {
		ns = min(needed, end) - start
	}
	if ns <= 0 {
		return
	}
	sum.waits++
	sum.ns += ns
	sum.max = max(sum.max, ns)
	if cause != NullInt32 {
		by := &s.of(collectiveKey{cause, comm, call})[until]
		by.caused++
		by.causedNs += ns
	}
}

// completed adds up a call that completed operations.
func (s *collectiveSums) completed(c *completingCall) {
	for _, sum := range c.counted {
		sum.calls++
	}
	for k, x := range c.longest {
		if x != nil {
			s.wait(&s.of(x.key)[k], x.comm, x.key.call, int16(k), x.cause, x.needed, c.start, c.end)
		}
	}
}

// rows gives the rows of collective_waits to full, some at a time; there says that there are: not too much would have had to be kept. It returns full's error.
func (s *collectiveSums) rows(full func(Batch) error) (there bool, err error) {
	for comm, c := range s.comms { // operations that some member never entered
		for instance, op := range c.open {
			s.whole(comm, c, instance, op)
		}
	}
	for _, end := range s.ends {
		if end.there {
			s.completed(end)
		}
	}
	clear(s.ends)
	if s.full {
		return false, nil
	}
	s.comms = nil // they hold members, and what they entered
	keys := make([]collectiveKey, 0, len(s.sums))
	for key := range s.sums {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b collectiveKey) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.comm, b.comm), cmp.Compare(a.call, b.call))
	})
	out := &CollectiveWaits{}
	last, nth := int32(-1), int64(0)
	for _, key := range keys {
		for _, until := range untilBoth {
			x := s.sums[key][until]
			if x == (collectiveSum{}) {
				continue
			}
			if key.rank != last {
				last, nth = key.rank, 0
			}
			out.Append(&CollectiveWait{Rank: key.rank, Nth: nth, Until: until, Pattern: waitPattern(key.call), Call: int16(key.call), Comm: key.comm,
				Calls: x.calls, Waits: x.waits, WaitNs: x.ns, MaxNs: x.max, Caused: x.caused, CausedNs: x.causedNs})
			nth++
			if out.Len() == givenRows {
				if err := full(out); err != nil {
					return true, err
				}
				out.Resize(0)
			}
		}
	}
	return true, full(out)
}
