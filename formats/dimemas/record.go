package dimemas

import (
	"fmt"

	"github.com/commq/commq/schema"
)

// recordType is the number at the start of a record.
type recordType int32

const (
	recordNoop       recordType = 0
	recordBurst      recordType = 1
	recordSend       recordType = 2
	recordRecv       recordType = 3
	recordCollective recordType = 10
	recordGPUBurst   recordType = 11
	recordEvent      recordType = 20
)

// record is a line of a task.
type record struct {
	kind recordType
	task int32
	// ps is the duration of a burst.
	ps int64
	// peer, tag and comm describe a message; sent is its size in bytes.
	peer, tag, comm int32
	// mode has the bits of a send, the kind of a receive, or the synchronization of a collective.
	mode int32
	// op and root describe a collective: its number, and is_root or, for MPI_Reduce, the root's task. comm is set
	// too.
	op, root       int32
	sent, received int64
	// eventType and value describe an event.
	eventType, value uint64
}

// Bits of a send's mode.
const (
	sendRendezvous = 1
	sendImmediate  = 2
)

// Modes of a receive.
const (
	recvBlocking = iota
	recvImmediate
	recvWait
)

// Modes of a collective.
const (
	collectiveStart = iota
	collectiveBlocking
	collectiveWait
	collectiveByMessages // the ranks send to the root
)

// Numbers of collective operations. Those from firstNonblocking on are the nonblocking forms of the ones before.
const (
	opReduce         = 10
	firstNonblocking = 16
)

// operations lists the collective operations by number.
var operations = [firstNonblocking]schema.CallID{
	schema.CallBarrier, schema.CallBcast, schema.CallGather, schema.CallGatherv, schema.CallScatter,
	schema.CallScatterv,
	schema.CallAllgather, schema.CallAllgatherv, schema.CallAlltoall, schema.CallAlltoallv, schema.CallReduce,
	schema.CallAllreduce, schema.CallReduceScatter, schema.CallReduceScatterBlock, schema.CallScan,
	schema.CallAlltoallw,
}

// nonblocking lists their nonblocking forms.
var nonblocking = [firstNonblocking]schema.CallID{
	schema.CallIbarrier, schema.CallIbcast, schema.CallIgather, schema.CallIgatherv, schema.CallIscatter,
	schema.CallIscatterv,
	schema.CallIallgather, schema.CallIallgatherv, schema.CallIalltoall, schema.CallIalltoallv, schema.CallIreduce,
	schema.CallIallreduce, schema.CallIreduceScatter, schema.CallIreduceScatterBlock, schema.CallIscan,
	schema.CallIalltoallw,
}

// Operation returns Dimemas' number for the blocking form of a collective, and false if it has none.
func Operation(c schema.CallID) (int, bool) {
	for n, op := range operations {
		if op == c {
			return n, true
		}
	}
	return 0, false
}

// field describes one number of a record.
type field struct {
	name  string
	least int64
	most  int64
}

const (
	maxInt32 = 1<<31 - 1
	maxInt64 = 1<<63 - 1
	minInt32 = -maxInt32 // the next lower number is null
)

var (
	messageFields = []field{{"task", -1, maxInt32}, {"thread", minInt32, maxInt32}, {"bytes", 0, maxInt64},
		{"tag", minInt32, maxInt32}, {"communicator", minInt32, maxInt32}, {"", 0, 3}}
	collectiveFields = []field{{"operation", 0, 2*firstNonblocking - 1}, {"communicator", minInt32, maxInt32},
		{"is_root", 0, maxInt32}, {"root_thread", 0, maxInt32},
		{"bytes_sent", 0, maxInt64}, {"bytes_received", 0, maxInt64}, {"synchronism", 0, 3}}
)

// parseRecord parses a line. Its error says what was found and what to do, but not where.
func parseRecord(line []byte, r *record) error {
	*r = record{}
	line = trimEnd(line)
	kind, line, _, err := number(line, field{"record type", 0, maxInt32})
	if err != nil {
		return fmt.Errorf("found %s; want a record TYPE:TASK:THREAD:FIELDS", quoted(line))
	}
	r.kind = recordType(kind)
	task, line, more, err := number(line, field{"task", 0, maxInt32})
	if err != nil || !more {
		return fmt.Errorf("record %d: the task is missing or no number; want TYPE:TASK:THREAD:FIELDS", kind)
	}
	r.task = int32(task)
	thread, line, more, err := number(line, field{"thread", 0, maxInt32})
	if err != nil {
		return fmt.Errorf("record %d of task %d: %w", kind, task, err)
	}
	if thread != 0 {
		return fmt.Errorf("record of thread %d of task %d; commq reads tasks of one thread, thread 0", thread, task)
	}
	if !more && r.kind != recordNoop {
		return fmt.Errorf("record %d of task %d has no fields after the thread", kind, task)
	}
	if err := r.fields(line); err != nil {
		return fmt.Errorf("%s of task %d: %w", r.kind, task, err)
	}
	return nil
}

func (k recordType) String() string {
	switch k {
	case recordNoop:
		return "no-op"
	case recordBurst:
		return "CPU burst"
	case recordSend:
		return "send"
	case recordRecv:
		return "receive"
	case recordCollective:
		return "collective"
	case recordGPUBurst:
		return "GPU burst"
	case recordEvent:
		return "event"
	}
	return fmt.Sprintf("record %d", int32(k))
}

// fields parses what follows the thread.
func (r *record) fields(rest []byte) error {
	switch r.kind {
	case recordNoop:
		return nil
	case recordBurst:
		ps, err := parseSeconds(rest)
		r.ps = ps
		return err
	case recordSend:
		return r.message(rest, "synchronism")
	case recordRecv:
		return r.message(rest, "kind")
	case recordCollective:
		return r.collective(rest)
	case recordEvent:
		return r.event(rest)
	case recordGPUBurst:
		return fmt.Errorf("what accelerators compute has no place in a run; trace the program without them")
	}
	return fmt.Errorf("there is no such type; there are 0 (no-op), 1 (CPU burst), 2 (send), 3 (receive), 10 " +
		"(collective) and 20 (event)")
}

// message parses a send or a receive, with or without the partner's thread.
func (r *record) message(rest []byte, last string) error {
	var v [6]int64
	fields := [6]field(messageFields)
	fields[5].name = last
	if last == "kind" {
		fields[5].most = recvWait
	}
	v[1] = -1
	n := 1 + count(rest, ':')
	if n != 5 && n != 6 {
		return fmt.Errorf("%d fields after the thread; want task:thread:bytes:tag:communicator:%s, thread -1", n, last)
	}
	for i := range fields {
		if n == 5 && i == 1 {
			continue
		}
		var err error
		if v[i], rest, _, err = number(rest, fields[i]); err != nil {
			return err
		}
	}
	if v[1] != -1 && v[1] != -2 {
		return fmt.Errorf("the partner is thread %d: a dependency between threads, which commq does not read; "+
			"messages of MPI have -1", v[1])
	}
	if v[0] == -1 {
		return fmt.Errorf("the partner is task -1; MPI_ANY_SOURCE cannot be replayed: write the task that it was " +
			"received from")
	}
	r.peer, r.sent, r.tag, r.comm, r.mode = int32(v[0]), v[2], int32(v[3]), int32(v[4]), int32(v[5])
	return nil
}

func (r *record) collective(rest []byte) error {
	n := 1 + count(rest, ':')
	if n != 6 && n != 7 {
		return fmt.Errorf("%d fields after the thread; want "+
			"operation:communicator:is_root:root_thread:bytes_sent:bytes_received:synchronism", n)
	}
	v := [7]int64{6: collectiveBlocking}
	for i := range n {
		var err error
		if v[i], rest, _, err = number(rest, collectiveFields[i]); err != nil {
			return err
		}
	}
	r.op, r.comm, r.root, r.sent, r.received, r.mode = int32(v[0]), int32(v[1]), int32(v[2]), v[4], v[5], int32(v[6])
	switch {
	case r.op >= firstNonblocking && (r.mode == collectiveBlocking || r.mode == collectiveByMessages):
		return fmt.Errorf("operation %d is nonblocking, and the synchronism is %d; want 0 (start) or 2 (wait)", r.op,
			r.mode)
	case r.mode == collectiveByMessages && r.op != opReduce:
		return fmt.Errorf("synchronism 3 of operation %d; only MPI_Reduce, operation %d, has it", r.op, opReduce)
	case r.op%firstNonblocking != opReduce && r.root > 1:
		return fmt.Errorf("is_root is %d; want 1 on the root and 0 elsewhere", r.root)
	}
	return nil
}

func (r *record) event(rest []byte) error {
	var ok bool
	if r.eventType, rest, ok = unsigned(rest); ok && len(rest) > 0 && rest[0] == ':' {
		if r.value, rest, ok = unsigned(rest[1:]); ok && len(rest) == 0 {
			return nil
		}
	}
	return fmt.Errorf("its fields are no event; want type:value, two numbers")
}

func trimEnd(b []byte) []byte {
	for len(b) > 0 {
		switch b[len(b)-1] {
		case '\n', '\r', ' ', '\t':
			b = b[:len(b)-1]
		default:
			return b
		}
	}
	return b
}

func count(b []byte, c byte) int {
	n := 0
	for _, x := range b {
		if x == c {
			n++
		}
	}
	return n
}

// number parses the number at the start of b, up to a colon or the end. more is true if a colon followed; rest is
// what follows it.
func number(b []byte, f field) (v int64, rest []byte, more bool, err error) {
	i := 0
	for i < len(b) && b[i] == ' ' {
		i++
	}
	negative := i < len(b) && b[i] == '-'
	if negative {
		i++
	}
	begin := i
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if v > (maxInt64-9)/10 {
			x := uint64(v)*10 + uint64(b[i]-'0')
			if v > maxInt64/10 || x > maxInt64 {
				return 0, b, false, f.wrong(b)
			}
			v = int64(x)
			continue
		}
		v = v*10 + int64(b[i]-'0')
	}
	if negative {
		v = -v
	}
	if i == begin || i < len(b) && b[i] != ':' || v < f.least || v > f.most {
		return 0, b, false, f.wrong(b)
	}
	if i == len(b) {
		return v, nil, false, nil
	}
	return v, b[i+1:], true, nil
}

func (f field) wrong(found []byte) error {
	for i, c := range found {
		if c == ':' {
			found = found[:i]
			break
		}
	}
	return fmt.Errorf("%s is %s; want a whole number from %d to %d", f.name, quoted(found), f.least, f.most)
}

// unsigned parses a 64-bit unsigned number.
func unsigned(b []byte) (v uint64, rest []byte, ok bool) {
	i := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		d := uint64(b[i] - '0')
		if v > (1<<64-1-d)/10 {
			return 0, b, false
		}
		v = v*10 + d
	}
	return v, b[i:], i > 0
}

// quoted quotes what was found, for a message.
func quoted(b []byte) string {
	const most = 60
	if len(b) > most {
		return fmt.Sprintf("%.*q...", most, b)
	}
	return fmt.Sprintf("%q", b)
}
