package replace

import (
	"fmt"
	"slices"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Finding is a collective operation that replaces messages, with all its instances.
type Finding struct {
	// Number names it in errors; several groups of ranks may share one.
	Number int
	// Operation is the blocking collective to call.
	Operation schema.CallID
	// ReduceOp is the operation of a reduction, schema.NullEnum for others.
	ReduceOp int16
	// Comm is its communicator, or one that contains all of Ranks; schema.NullInt32 if none is known.
	Comm int32
	// Ranks are the world ranks that take part, ascending.
	Ranks []int32
	// Instances are the executions of the operation.
	Instances []detect.Instance
}

// Source is a run that has the rows of all calls.
type Source struct {
	// Threads is the number of threads that call MPI, per rank.
	Threads []int32
	// Comms are the communicators, ascending by id.
	Comms []run.Comm
	// TypeBytes are the sizes of datatypes.
	TypeBytes map[int32]int64
	// Events and Messages call add with the rows of their tables (the columns in EventColumns and MessageColumns).
	// The events of each rank come in order.
	Events   func(add func(*schema.Events) error) error
	Messages func(add func(*schema.Messages) error) error
}

// EventColumns and MessageColumns are the columns that Read reads.
var (
	EventColumns = []string{"rank", "seq", "thread", "call", "class", "compute_ns", "comm", "instance", "recv_world",
		"recv_tag",
		"recv_datatype", "recv_buffer", "posted_any", "proc_null", "done_seq", "init_seq"}
	MessageColumns = []string{"src", "dst", "comm", "tag", "bytes", "send_datatype", "send_seq", "recv_post_seq",
		"recv_done_seq",
		"payload_hash", "recv_hash", "src_buffer", "dst_buffer", "send_callsite", "recv_callsite"}
)

// Operations are the collectives that can replace messages.
var Operations = []schema.CallID{schema.CallBcast, schema.CallAllgather, schema.CallAllgatherv, schema.CallAlltoall,
	schema.CallAlltoallv,
	schema.CallBarrier, schema.CallGather, schema.CallGatherv, schema.CallScatter, schema.CallScatterv,
	schema.CallReduce,
	schema.CallAllreduce, schema.CallReduceScatter, schema.CallReduceScatterBlock, schema.CallScan, schema.CallExscan,
	schema.CallNeighborAllgather, schema.CallNeighborAllgatherv, schema.CallNeighborAlltoall,
	schema.CallNeighborAlltoallv,
	schema.CallNeighborAlltoallw}

// Operation returns the collective with that MPI name; an error if it cannot replace messages.
func Operation(name string) (schema.CallID, error) {
	for _, op := range Operations {
		if op.String() == name {
			return op, nil
		}
	}
	return 0, fmt.Errorf("operation %q is none that can be put in place; want one of %v", name, Operations)
}

// Run is a run in which collectives can replace messages.
type Run struct {
	source   *Source
	ranks    []rank
	findings []Finding
	messages []message // of all findings
	first    [][]int   // by finding and instance: index of its first message
	members  map[int32]*run.Comm
	syncs    map[syncKey]int32 // how many ranks take part in an existing operation
}

// Flags of a row.
const (
	rowComplete = 1 << iota // its class is complete
	rowWaits                // it completes receives
	rowSyncs                // it is a collective operation of a communicator, or its start
	rowProbe
	rowSends // it is a call that both sends and receives
)

// rank holds what is kept of a rank's rows, indexed by seq.
type rank struct {
	flags   []uint8
	thread  []int16
	compute []int64 // ns; NullInt64 means unknown
	done    []int64
	ends    []int32 // requests that the row completes
	syncs   map[int64]sync
	needs   []need // messages that it receives, by the row that completes them
	probes  []probe
	reader  readerState
}

// sync is a row that is a collective operation, or its nonblocking start.
type sync struct {
	comm     int32
	instance int64
	blocks   bool
	counts   bool // it counts among the communicator's operations
}

// need is a message that a row completes.
type need struct {
	done    int64
	src     int32
	sendSeq int64
	message int32 // index in Run.messages, or none
}

const none = -1

// probe is a row that waits for a message.
type probe struct {
	seq       int64
	comm, src int32
	tag       int32
	found     need // its message; src is none if unknown
	matches   bool // it also receives the message
}

// message is a message that a finding names.
type message struct {
	detect.Message
	finding, instance int
	comm, tag         int32
	datatype          int32
	bytes, hash       int64
	srcBuffer         int64
	sendSite          int32
	recvSite          int32
	verified, differs bool

	known        bool // the run has it
	recvRow      int64
	recvDatatype int32
	recvBuffer   int64
	wildcard     bool
	otherNull    [2]bool // the other side of the row that sends, or receives, is MPI_PROC_NULL
	kind         [2]schema.Class
	partitioned  bool
}

// Read reads a run whose messages are to be replaced. It is an error if the findings name messages that the run
// lacks.
func Read(s *Source, findings []Finding) (*Run, error) {
	r := &Run{source: s, ranks: make([]rank, len(s.Threads)), findings: findings, members: map[int32]*run.Comm{},
		syncs: map[syncKey]int32{}}
	for i := range s.Comms {
		r.members[s.Comms[i].ID] = &s.Comms[i]
	}
	if err := r.take(findings); err != nil {
		return nil, err
	}
	if err := r.readMessages(); err != nil {
		return nil, err
	}
	if err := r.readEvents(); err != nil {
		return nil, err
	}
	r.findProbed()
	return r, nil
}

// take adds the messages of the findings.
func (r *Run) take(findings []Finding) error {
	for f := range findings {
		x := &findings[f]
		if !slices.Contains(Operations, x.Operation) {
			return fmt.Errorf("finding %d: operation %s is none that can be put in place", x.Number, x.Operation)
		}
		if len(x.Ranks) < 2 || !isAscending(x.Ranks) {
			return fmt.Errorf("finding %d: its ranks are %v; want two or more, ascending", x.Number, x.Ranks)
		}
		for _, rank := range x.Ranks {
			if rank < 0 || int(rank) >= len(r.ranks) {
				return fmt.Errorf("finding %d: it names rank %d; the run has %d", x.Number, rank, len(r.ranks))
			}
		}
		r.first = append(r.first, nil)
		for i := range x.Instances {
			in := &x.Instances[i]
			r.first[f] = append(r.first[f], len(r.messages))
			if x.Operation.Is(schema.FactRooted) {
				if _, ok := slices.BinarySearch(x.Ranks, in.Root); !ok {
					return fmt.Errorf("finding %d, instance %d: its root is not among its ranks", x.Number, i+1)
				}
			}
			if in.RankBytes != nil && len(in.RankBytes) != len(x.Ranks) {
				return fmt.Errorf("finding %d, instance %d: it says what %d of its %d ranks have", x.Number, i+1,
					len(in.RankBytes), len(x.Ranks))
			}
			if len(in.Messages) == 0 {
				return fmt.Errorf("finding %d, instance %d: it names no messages", x.Number, i+1)
			}
			for _, m := range in.Messages {
				for _, rank := range [2]int32{m.Src, m.Dst} {
					if _, ok := slices.BinarySearch(x.Ranks, rank); !ok {
						return fmt.Errorf("finding %d, instance %d: a message from rank %d to rank %d, which are not both among its ranks", x.Number, i+1, m.Src, m.Dst)
					}
				}
				r.messages = append(r.messages,
					message{Message: m, finding: f, instance: i, kind: [2]schema.Class{none, none}})
			}
		}
		r.first[f] = append(r.first[f], len(r.messages))
	}
	return nil
}

// isAscending reports whether each rank is larger than the one before it.
func isAscending(ranks []int32) bool {
	for i := 1; i < len(ranks); i++ {
		if ranks[i] <= ranks[i-1] {
			return false
		}
	}
	return true
}

// place identifies a row.
type place struct {
	rank int32
	seq  int64
}

// readMessages reads the findings' messages, and from all others which row waits for which message.
func (r *Run) readMessages() error {
	named := map[place]int32{}
	for i := range r.messages {
		m := &r.messages[i]
		at := place{m.Src, m.SendSeq}
		if other, twice := named[at]; twice {
			o := &r.messages[other]
			return fmt.Errorf("findings %d and %d both have the message that rank %d sends with seq %d", r.findings[o.finding].Number,
				r.findings[m.finding].Number, m.Src, m.SendSeq)
		}
		named[at] = int32(i)
	}
	err := r.source.Messages(func(b *schema.Messages) error {
		for i := range b.Src {
			n := need{done: b.RecvDoneSeq[i], src: b.Src[i], sendSeq: b.SendSeq[i], message: none}
			if k, ok := named[place{b.Src[i], b.SendSeq[i]}]; ok {
				n.message = k
				if err := r.messages[k].fill(b, i); err != nil {
					return fmt.Errorf("finding %d, %w", r.findings[r.messages[k].finding].Number, err)
				}
			}
			if dst := b.Dst[i]; dst >= 0 && int(dst) < len(r.ranks) {
				q := &r.ranks[dst]
				q.needs = append(q.needs, n)
				q.reader.posted = append(q.reader.posted,
					posted{channel{b.Comm[i], b.Src[i], b.Tag[i]}, b.RecvPostSeq[i], n})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range r.messages {
		if m := &r.messages[i]; !m.known {
			return fmt.Errorf("finding %d, instance %d: the run has no message that rank %d sends with seq %d",
				r.findings[m.finding].Number, m.instance+1, m.Src, m.SendSeq)
		}
	}
	for i := range r.ranks {
		q := &r.ranks[i]
		q.needs = slices.DeleteFunc(q.needs, func(n need) bool { return n.done == schema.NullInt64 })
		slices.SortStableFunc(q.needs, func(a, b need) int { return compare(a.done, b.done) })
		slices.SortStableFunc(q.reader.posted, func(a, b posted) int { return compare(a.post, b.post) })
	}
	return nil
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// fill copies row i of the table.
func (m *message) fill(b *schema.Messages, i int) error {
	if m.known || b.Dst[i] != m.Dst || b.RecvPostSeq[i] != m.PostSeq || b.RecvDoneSeq[i] != m.DoneSeq {
		return fmt.Errorf("instance %d: the message that rank %d sends with seq %d is received by rank %d with seq %d; the "+
			"finding says rank %d, seq %d", m.instance+1, m.Src, m.SendSeq, b.Dst[i], b.RecvPostSeq[i], m.Dst, m.PostSeq)
	}
	m.known = true
	m.comm, m.tag, m.bytes, m.datatype, m.hash = b.Comm[i], b.Tag[i], b.Bytes[i], b.SendDatatype[i], b.PayloadHash[i]
	m.srcBuffer, m.sendSite, m.recvSite = b.SrcBuffer[i], b.SendCallsite[i], b.RecvCallsite[i]
	m.recvDatatype, m.recvBuffer, m.recvRow = schema.NullInt32, schema.NullInt64, m.PostSeq
	m.verified = b.PayloadHash[i] != schema.NullInt64 && b.RecvHash[i] != schema.NullInt64
	m.differs = m.verified && b.PayloadHash[i] != b.RecvHash[i]
	return nil
}
