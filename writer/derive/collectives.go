package derive

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"github.com/commq/commq/schema"
)

// CollectiveSums makes the rows of the tables collective_calls and collective_parts from those of events and parts, in
// any order but that parts follow the events of their calls. Its memory is bounded: a run that needs more than
// callsRows rows of a table, or more of what must be remembered for it, lacks that table. It must not be used
// concurrently.
type CollectiveSums struct {
	most      int // rows of a table
	rows      []callsRow
	index     map[callsKey]int32
	recent    [64]int32 // indexes in rows of keys found lately, by a cheap hash
	inits     map[uint64]int16
	instances map[instanceChunk]*[instanceWords]uint64
	lastAt    instanceChunk
	last      *[instanceWords]uint64 // the chunk lastAt; nil: none yet
	tooMany   bool

	parted       map[uint64]partedCall // calls whose rows of parts may follow, by rowKey
	parts        map[partKey]partSum
	tooManyParts bool
}

const (
	callsRows      = 1 << 21 // of each of the two tables
	collectiveKept = 1 << 20 // requests made, and chunks of instances
	partedCalls    = 1 << 21
	instanceWords  = 8 // in a chunk
)

// callsKey identifies a row of collective_calls. A start whose request was made by a call not yet seen has the
// seq of that call in init, else init is -1.
type callsKey struct {
	rank, comm, root, sendType, recvType int32
	call, bytesPower, countPower         int16
	sends                                bool
	init                                 int64
}

type callsRow struct {
	callsKey
	calls, sendBytes, recvBytes int64
}

// instanceChunk identifies the instances chunk*64*instanceWords and following of a communicator.
type instanceChunk struct {
	comm  int32
	chunk uint64
}

// partedCall is a call that can have rows of parts, or a start of such a request.
type partedCall struct {
	call int16
	init int64 // as in callsKey
}

type partKey struct {
	rank, peer int32
	partedCall
}

type partSum struct{ messages, bytes int64 }

// NewCollectiveSums returns a CollectiveSums.
func NewCollectiveSums() *CollectiveSums {
	return &CollectiveSums{most: callsRows, index: map[callsKey]int32{}, inits: map[uint64]int16{},
		instances: map[instanceChunk]*[instanceWords]uint64{}, parted: map[uint64]partedCall{},
		parts: map[partKey]partSum{}}
}

// CollectiveColumns lists the columns of events that CollectiveSums reads.
func CollectiveColumns() []string {
	return []string{"rank", "seq", "call", "class", "comm", "instance", "send_count", "send_datatype", "send_bytes",
		"recv_count", "recv_datatype", "recv_bytes", "root_world", "init_seq", "error_class"}
}

// Add adds rows of events.
func (s *CollectiveSums) Add(e *schema.Events) {
	for i, class := range e.Class {
		switch {
		case schema.Class(class) == schema.ClassCollective:
			if e.ErrorClass[i] == schema.NullInt32 {
				s.add(e, i)
			}
		case schema.Class(class) == schema.ClassOther && e.Instance[i] != schema.NullInt64:
			if len(s.inits) == collectiveKept {
				s.giveUp()
				s.giveUpParts()
			} else if !s.tooMany || !s.tooManyParts {
				s.inits[schema.RowKey(e.Rank[i], e.Seq[i])] = e.Call[i]
			}
		}
	}
}

// add adds row i of events, a collective call.
func (s *CollectiveSums) add(e *schema.Events, i int) {
	call, init := e.Call[i], int64(-1)
	if schema.CallID(call).Is(schema.FactStarts) && e.InitSeq[i] != schema.NullInt64 {
		init = e.InitSeq[i]
		call, init = s.made(e.Rank[i], call, init)
	}
	s.remember(e, i, partedCall{call, init})
	if s.tooMany {
		return
	}
	sendBytes, recvBytes := orZero(e.SendBytes[i]), orZero(e.RecvBytes[i])
	size, count := sendBytes, e.SendCount[i]
	if sendBytes <= 0 {
		size = recvBytes
	}
	if count == schema.NullInt64 {
		count = orZero(e.RecvCount[i])
	}
	r := s.row(callsKey{rank: e.Rank[i], comm: e.Comm[i], root: e.RootWorld[i], sendType: e.SendDatatype[i],
		recvType: e.RecvDatatype[i], call: call, bytesPower: powerAbove(size), countPower: powerAbove(count),
		sends: sendBytes > 0, init: init})
	if r == nil {
		return
	}
	r.calls++
	r.sendBytes += sendBytes
	r.recvBytes += recvBytes
	if e.Comm[i] != schema.NullInt32 {
		s.operation(e.Comm[i], e.Instance[i])
	}
}

// made returns the call that made a request, and -1; or start and init unchanged if that call was not seen yet.
func (s *CollectiveSums) made(rank int32, start int16, init int64) (call int16, seq int64) {
	if call, known := s.inits[schema.RowKey(rank, init)]; known {
		return call, -1
	}
	return start, init
}

func orZero(n int64) int64 {
	if n == schema.NullInt64 {
		return 0
	}
	return n
}

// remember keeps a call that can have rows of parts.
func (s *CollectiveSums) remember(e *schema.Events, i int, c partedCall) {
	id := schema.CallID(c.call)
	if s.tooManyParts || !id.Is(schema.FactNeighborhood) && !id.Is(schema.FactVariableCounts) && !id.Is(schema.FactStarts) {
		return
	}
	if len(s.parted) == partedCalls {
		s.giveUpParts()
		return
	}
	s.parted[schema.RowKey(e.Rank[i], e.Seq[i])] = c
}

// operation counts an instance of a communicator once.
func (s *CollectiveSums) operation(comm int32, instance int64) {
	const width = 64 * instanceWords
	n := uint64(instance)
	at := instanceChunk{comm, n / width}
	chunk := s.last
	if chunk == nil || at != s.lastAt {
		chunk = s.instances[at]
	}
	if chunk == nil {
		if len(s.instances) == collectiveKept {
			s.giveUp()
			return
		}
		chunk = &[instanceWords]uint64{}
		s.instances[at] = chunk
	}
	s.lastAt, s.last = at, chunk
	chunk[n%width/64] |= 1 << (n % 64)
}

// row returns the row of a key; nil when there are too many.
func (s *CollectiveSums) row(key callsKey) *callsRow {
	h := uint32(key.call)*31 + uint32(key.comm)*17 + uint32(key.root)*7 + uint32(key.bytesPower)
	recent := &s.recent[h%uint32(len(s.recent))]
	if int(*recent) < len(s.rows) && s.rows[*recent].callsKey == key {
		return &s.rows[*recent]
	}
	at, known := s.index[key]
	if !known {
		if len(s.rows) == s.most {
			s.giveUp()
			return nil
		}
		at = int32(len(s.rows))
		s.rows = append(s.rows, callsRow{callsKey: key})
		s.index[key] = at
	}
	*recent = at
	return &s.rows[at]
}

// giveUp frees what collective_calls needs: the run will lack it.
func (s *CollectiveSums) giveUp() {
	s.tooMany, s.rows, s.index, s.instances, s.last = true, nil, nil, nil, nil
}

// giveUpParts frees what collective_parts needs: the run will lack it.
func (s *CollectiveSums) giveUpParts() { s.tooManyParts, s.parted, s.parts = true, nil, nil }

// AddParts adds rows of parts. Those of calls that no event has are left out.
func (s *CollectiveSums) AddParts(p *schema.Parts) {
	for i, bytes := range p.SendBytes {
		if s.tooManyParts {
			return
		}
		c, known := s.parted[schema.RowKey(p.Rank[i], p.Seq[i])]
		if !known || bytes <= 0 {
			continue
		}
		key := partKey{p.Rank[i], p.PeerWorld[i], c}
		sum, known := s.parts[key]
		if !known && len(s.parts) == s.most {
			s.giveUpParts()
			return
		}
		sum.messages++
		sum.bytes += bytes
		s.parts[key] = sum
	}
}

// Calls returns the rows of collective_calls; nil when there are too many.
func (s *CollectiveSums) Calls() *schema.CollectiveCalls {
	if s.tooMany {
		return nil
	}
	rows := s.resolved()
	slices.SortFunc(rows, func(a, b callsRow) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.comm, b.comm), compareCalls(a.call, b.call),
			cmp.Compare(a.root, b.root), cmp.Compare(a.sendType, b.sendType), cmp.Compare(a.recvType, b.recvType),
			cmp.Compare(a.bytesPower, b.bytesPower), cmp.Compare(a.countPower, b.countPower), compareBools(a.sends, b.sends))
	})
	operations := s.operations()
	out := &schema.CollectiveCalls{}
	nth := int64(0)
	for i := range rows {
		r := &rows[i]
		if nth++; i == 0 || rows[i-1].rank != r.rank {
			nth = 0
		}
		out.Append(&schema.CollectiveCall{Rank: r.rank, Nth: nth, Comm: r.comm, Call: r.call, RootWorld: r.root,
			SendDatatype: r.sendType, RecvDatatype: r.recvType, BytesPower: int32(r.bytesPower),
			CountPower: int32(r.countPower), Calls: r.calls, SendBytes: r.sendBytes, RecvBytes: r.recvBytes,
			Operations: operations[r.comm]})
		delete(operations, r.comm) // only the first row has them
	}
	return out
}

// resolved returns the rows with the calls that made requests in the place of those that start them, each key once.
func (s *CollectiveSums) resolved() []callsRow {
	t := CollectiveSums{most: s.most, index: map[callsKey]int32{}}
	for i := range s.rows {
		r := &s.rows[i]
		key := r.callsKey
		if key.init >= 0 {
			key.call, _ = s.made(key.rank, key.call, key.init)
			key.init = -1
		}
		to := t.row(key)
		to.calls += r.calls
		to.sendBytes += r.sendBytes
		to.recvBytes += r.recvBytes
	}
	return t.rows
}

// operations counts the instances of each communicator.
func (s *CollectiveSums) operations() map[int32]int64 {
	n := map[int32]int64{}
	for at, chunk := range s.instances {
		for _, word := range chunk {
			n[at.comm] += int64(bits.OnesCount64(word))
		}
	}
	return n
}

// compareCalls compares calls by name.
func compareCalls(a, b int16) int {
	return cmp.Compare(schema.CallNames[a], schema.CallNames[b])
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Parts returns the rows of collective_parts; nil when there are too many.
func (s *CollectiveSums) Parts() *schema.CollectiveParts {
	if s.tooManyParts {
		return nil
	}
	sums := map[partKey]partSum{}
	for key, sum := range s.parts {
		if key.init >= 0 {
			key.call, _ = s.made(key.rank, key.call, key.init)
			key.init = -1
		}
		all := sums[key]
		sums[key] = partSum{all.messages + sum.messages, all.bytes + sum.bytes}
	}
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b partKey) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.peer, b.peer), compareCalls(a.call, b.call))
	})
	out := &schema.CollectiveParts{}
	nth := int64(0)
	for i, key := range keys {
		if nth++; i == 0 || keys[i-1].rank != key.rank {
			nth = 0
		}
		sum := sums[key]
		out.Append(&schema.CollectivePart{Rank: key.rank, Nth: nth, PeerWorld: key.peer, Call: key.call,
			Messages: sum.messages, Bytes: sum.bytes})
	}
	return out
}
