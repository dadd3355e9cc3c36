package paraver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

const (
	// lastNs is after all times of a trace.
	lastNs = 1 << 61
	// mostBytes is the largest number of bytes that a call may move.
	mostBytes = 1 << 50
)

// scan reads the records of a trace.
type scan struct {
	*layout
	*labels
	in      *lines
	items   *items
	ranks   []scanned
	sites   sites
	roots   roots
	numbers []int64
	frames  []frame
	tally   tally
}

// scanned is the state of a rank.
type scanned struct {
	main    openCall
	threads map[int32]*openCall // all but the first
	rooted  map[int64]int64     // collectives with a root so far, by communicator
}

// openCall is a call of a thread that has not ended.
type openCall struct {
	item
	open bool
	typ  int64
	left int64 // ends to come
	root bool  // the rank is the root
}

// roots are the roots of collectives, by communicator: -1 where the trace does not tell.
type roots map[int64][]int32

// set notes the root of a collective.
func (r roots) set(comm, number int64, rank int32) {
	for int64(len(r[comm])) <= number {
		r[comm] = append(r[comm], -1)
	}
	r[comm][number] = rank
}

// rootOf returns the root of a collective, null if the trace does not tell.
func (r roots) rootOf(comm, number int64) int32 {
	if of := r[comm]; number >= 0 && number < int64(len(of)) && of[number] >= 0 {
		return of[number]
	}
	return null32
}

func newScan(in *lines, l *layout, names *labels) *scan {
	return &scan{layout: l, labels: names, in: in, items: newItems(len(l.tasks)), ranks: make([]scanned, len(l.tasks)),
		sites: sites{labels: names, byKey: map[siteKey]int32{}, byText: map[siteText]int32{}}, roots: roots{},
		tally: newTally()}
}

// read reads all lines after the first, and sorts what they have. progress is called from time to time.
func (s *scan) read(ctx context.Context, progress func()) error {
	for n := 0; ; n++ {
		if n%reportLines == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			progress()
		}
		line, err := s.in.next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = s.line(line)
		}
		if err != nil {
			return err
		}
	}
	for rank := range s.ranks {
		r := &s.ranks[rank]
		if err := s.leave(int32(rank), &r.main); err != nil {
			return err
		}
		for _, number := range slices.Sorted(maps.Keys(r.threads)) {
			if err := s.leave(int32(rank), r.threads[number]); err != nil {
				return err
			}
		}
		r.threads, r.rooted = nil, nil
	}
	return s.items.sort()
}

// reportLines is the number of lines between two reports of progress.
const reportLines = 1 << 14

// leave takes a call that never ended.
func (s *scan) leave(rank int32, t *openCall) error {
	if !t.open {
		return nil
	}
	t.open, t.end = false, null64
	return s.add(rank, t)
}

// line takes a line.
func (s *scan) line(line []byte) (err error) {
	if len(bytes.TrimSpace(line)) == 0 || line[0] == '#' {
		return nil
	}
	kind, rest, _ := bytes.Cut(line, []byte{':'})
	switch string(kind) {
	case "1", "2", "3", "c", "i":
	default:
		return s.unknown(string(kind), line)
	}
	if s.numbers, err = fields(s.numbers[:0], rest); err == nil {
		switch kind[0] {
		case '1':
			err = s.state(s.numbers)
		case '2':
			err = s.events(s.numbers)
		case '3':
			err = s.message(s.numbers)
		case 'c':
			err = s.addComm(s.numbers)
		case 'i':
			err = s.addInter(s.numbers)
		}
	}
	if err != nil {
		return s.in.bad("%w", err)
	}
	return nil
}

// longestKind is more than the length of a word that may begin a record.
const longestKind = 8

// unknown counts a record of a kind that is not known. A line that begins otherwise is damaged.
func (s *scan) unknown(kind string, line []byte) error {
	plain := kind != "" && len(kind) < longestKind && len(kind) < len(line)
	for i := range len(kind) {
		c := kind[i] | 0x20
		plain = plain && (c >= 'a' && c <= 'z' || kind[i] >= '0' && kind[i] <= '9')
	}
	if !plain {
		return s.in.bad("%q is no record; want one that begins with its kind and a colon, as 1: (state), 2: (events) or "+
			"3: (communication)", head(line))
	}
	if _, ok := s.tally.kinds[kind]; !ok {
		if len(s.tally.kinds) == mostKinds {
			return s.in.bad("%q begins with the %dth kind of records that is not known; want 1:, 2: and 3:", head(line),
				mostKinds+1)
		}
		s.tally.kindAt[kind] = s.in.number
	}
	s.tally.kinds[kind]++
	return nil
}

// mostCounted is the number of different types of events, or of calls, that are counted one by one.
const mostCounted = 1 << 16

// count counts one more, unless there are too many different ones.
func count[K comparable](of map[K]int64, what K) {
	if _, ok := of[what]; ok || len(of) < mostCounted {
		of[what]++
	}
}

// mostKinds is more than the kinds of records that a program writes.
const mostKinds = 20

// time converts a time to ns.
func (s *scan) time(x int64) (int64, error) {
	if x < 0 || x >= lastNs/s.scale {
		return 0, fmt.Errorf("the time %d is not between 0 and %d", x, lastNs/s.scale)
	}
	return x * s.scale, nil
}

// state counts a state.
func (s *scan) state(n []int64) error {
	if len(n) != 7 {
		return fmt.Errorf("a state of %d numbers; want 1:CPU:APPLICATION:TASK:THREAD:BEGIN:END:STATE", len(n)+1)
	}
	s.tally.states++
	_, _, err := s.place(n[1], n[2], n[3])
	return err
}

// thread returns the state of a thread.
func (s *scan) thread(rank, number int32) *openCall {
	r := &s.ranks[rank]
	if number == 0 {
		return &r.main
	}
	t := r.threads[number]
	if t == nil {
		if r.threads == nil {
			r.threads = map[int32]*openCall{}
		}
		t = &openCall{}
		r.threads[number] = t
	}
	return t
}

// events takes an event record: begins and ends of calls, and what belongs to them.
func (s *scan) events(n []int64) error {
	if len(n) < 7 || len(n)%2 != 1 {
		return fmt.Errorf("an event record of %d numbers; want 2:CPU:APPLICATION:TASK:THREAD:TIME:TYPE:VALUE, TYPE:VALUE "+
			"for each further event", len(n)+1)
	}
	s.tally.eventRecords++
	rank, number, err := s.place(n[1], n[2], n[3])
	if err != nil {
		return err
	}
	at, err := s.time(n[4])
	if err != nil {
		return err
	}
	t := s.thread(rank, number)
	s.frames = s.frames[:0]
	for i := 5; i < len(n); i += 2 {
		typ, value := n[i], n[i+1]
		switch {
		case s.isCall(typ) && value != 0:
			err = s.begin(t, rank, number, at, typ, value)
		case s.isCall(typ):
			err = s.end(t, rank, at, typ)
		case !t.open || t.at != at || !s.argument(t, rank, n[1], typ, value):
			count(s.tally.types, typ)
		}
		if err != nil {
			return err
		}
	}
	s.settle(t, rank, at)
	return nil
}

// begin begins a call. One that is open then never ends, but for calls of the same times.
func (s *scan) begin(t *openCall, rank, thread int32, at, typ, value int64) (err error) {
	s.tally.calls++
	id, ok := s.call(typ, value)
	if !ok {
		count(s.tally.numbers, typeValue{typ, value})
		id = 0
	} else if !hasRow(id) {
		s.tally.mute[id]++
	}
	if t.open && t.at == at && t.id == int64(id) && t.typ == typ {
		t.times, t.left = t.times+1, t.left+1
		return nil
	}
	if t.open {
		s.tally.nested++
		err = s.leave(rank, t)
	}
	*t = openCall{open: true, typ: typ, left: 1, item: item{kind: itemCall, at: at, thread: int64(thread),
		call: call{id: int64(id), times: 1, sent: null64, received: null64, comm: null64, rooted: null64,
			site: null64}}}
	return err
}

// end ends a call.
func (s *scan) end(t *openCall, rank int32, at, typ int64) error {
	if !t.open || t.typ != typ {
		s.tally.unpaired++
		return nil
	}
	if t.left--; t.left > 0 {
		return nil
	}
	s.settle(t, rank, t.at)
	t.open, t.end = false, max(at, t.at)
	return s.add(rank, t)
}

// add adds a call that is complete.
func (s *scan) add(rank int32, t *openCall) error {
	if t.comm != null64 {
		if c := s.comms.All()[t.comm]; !settleBytes(&t.call, t.root, c) {
			s.tally.bytesUnsaid++
		}
	}
	return s.items.add(rank, &t.item)
}

// argument takes an event about the call that began at this time; false if it is not one.
func (s *scan) argument(t *openCall, rank int32, application, typ, value int64) bool {
	switch typ {
	case typeSent:
		t.sent = s.bytes(value)
	case typeReceived:
		t.received = s.bytes(value)
	case typeRoot:
		t.root = value != 0
	case typeComm:
		c := s.commOf[commKey{application, value}]
		if c == nil || !c.Has(rank) {
			s.tally.noComm++
			return true
		}
		t.comm = int64(c.ID)
	default:
		level, line := levelOf(typ)
		if level == 0 {
			return false
		}
		s.frames = addFrame(s.frames, level, line, value)
	}
	return true
}

// bytes reads a size. Extrae writes its lower 32 bits; null if it cannot be a size.
func (s *scan) bytes(size int64) int64 {
	if size < 0 && size >= math.MinInt32 {
		size += 1 << 32
		s.tally.wrapped++
	}
	if size < 0 || size > mostBytes {
		return null64
	}
	return size
}

// settle notes the call site and the root of a call that began on this line.
func (s *scan) settle(t *openCall, rank int32, at int64) {
	if !t.open || t.at != at {
		return
	}
	if len(s.frames) > 0 {
		if id := s.sites.site(s.frames); id != null32 {
			t.site = int64(id)
		}
		s.frames = s.frames[:0]
	}
	if t.comm == null64 || t.rooted != null64 || !schema.CallID(t.id).Is(schema.FactRooted) ||
		s.comms.All()[t.comm].Inter() { // whose roots Extrae does not know
		return
	}
	r := &s.ranks[rank]
	if r.rooted == nil {
		r.rooted = map[int64]int64{}
	}
	t.rooted = r.rooted[t.comm]
	r.rooted[t.comm]++
	if t.root {
		s.roots.set(t.comm, t.rooted, rank)
	}
}

// message takes a communication record: both sides of a message.
func (s *scan) message(n []int64) error {
	if len(n) != 14 {
		return fmt.Errorf("a communication of %d numbers; want 3:CPU:APPLICATION:TASK:THREAD:LOGICAL SEND:PHYSICAL SEND:"+
			"CPU:APPLICATION:TASK:THREAD:LOGICAL RECEIVE:PHYSICAL RECEIVE:SIZE:TAG", len(n)+1)
	}
	src, from, err := s.place(n[1], n[2], n[3])
	if err != nil {
		return fmt.Errorf("sender: %w", err)
	}
	dst, to, err := s.place(n[7], n[8], n[9])
	if err != nil {
		return fmt.Errorf("receiver: %w", err)
	}
	var times [4]int64
	for i, x := range []int64{n[4], n[5], n[10], n[11]} {
		if times[i], err = s.time(x); err != nil {
			return err
		}
	}
	size, tag := s.bytes(n[12]), n[13]
	if size == null64 {
		return fmt.Errorf("a message of %d bytes", n[12])
	}
	if tag < math.MinInt32 || tag > math.MaxUint32 || int32(tag) == null32 {
		return fmt.Errorf("%d is no tag of a message", tag)
	}
	number := s.tally.messages%math.MaxInt32 + 1
	s.tally.messages++
	x := item{kind: itemSent, at: times[0], thread: int64(from), side: side{number: number, peer: int64(dst),
		tag: int64(int32(tag)), bytes: size, posted: times[2]}}
	if err := s.items.add(src, &x); err != nil {
		return err
	}
	x.kind, x.at, x.thread, x.peer = itemPosted, times[2], int64(to), int64(src)
	if err := s.items.add(dst, &x); err != nil {
		return err
	}
	x.kind, x.at = itemDone, times[3]
	return s.items.add(dst, &x)
}
