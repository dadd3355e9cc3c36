package simrank

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

const testJob = 0xabc

// machine reads a machine from text.
func machine(t testing.TB, text string) *models.Machine {
	t.Helper()
	m, err := models.Read("test.yaml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// tenMicros is 10 us + 1 ns per byte.
const tenMicros = "network: {latency_ns: 10000, bandwidth_bytes_per_s: 1000000000}"

// input is an event, with its data if it is RECORDS.
type input struct {
	Event
	data []byte
}

func encode(all ...input) []byte {
	var b []byte
	for _, e := range all {
		b = append(e.append(b), e.data...)
	}
	return b
}

func hello(rank, ranks int32) input {
	return input{Event: Event{Kind: Hello, Rank: rank, Peer: ranks, N: testJob, Bytes: Version}}
}

func left(rank int32) input { return input{Event: Event{Kind: Left, Rank: rank, Peer: 1}} }

func records(rank, thread int32, at uint64, data []byte) input {
	return input{Event{Kind: Records, Rank: rank, Peer: thread, N: at, Bytes: int64(len(data))}, data}
}

// outcome is what a Run wrote and returned.
type outcome struct {
	answers []Event
	log     string
	spool   string
	err     error
}

func runOn(t testing.TB, m *models.Machine, input []byte) outcome {
	t.Helper()
	r := outcome{spool: t.TempDir()}
	var out, log bytes.Buffer
	r.err = Run(context.Background(), bytes.NewReader(input), &out, Options{Machine: m, Spool: r.spool, Log: &log})
	r.log = log.String()
	for b := out.Bytes(); len(b) > 0; b = b[EventBytes:] {
		var e Event
		e.decode(b)
		r.answers = append(r.answers, e)
	}
	return r
}

// mustRun is a Run that must end without errors and warnings.
func mustRun(t testing.TB, all ...input) outcome {
	t.Helper()
	r := runOn(t, machine(t, tenMicros), encode(all...))
	if r.err != nil || r.log != "" {
		t.Fatalf("%v\n%s", r.err, r.log)
	}
	return r
}

func TestMessages(t *testing.T) {
	r := mustRun(t, hello(0, 5), hello(3, 5),
		input{Event: Event{Kind: Sent, Rank: 3, Peer: 4, Tag: 9, Key: 77, TimePs: 1_000_000, Bytes: 4097}},
		input{Event: Event{Kind: Sent, Rank: 0, Peer: 3, Tag: -1, Key: 78, TimePs: 2_000_000}},
		left(0), left(3))
	want := []Event{
		// 10 us + 4097 x 1 ns
		{Kind: Arrives, Rank: 4, Peer: 3, Tag: 9, Key: 77, TimePs: 1_000_000, DelayPs: 14_097_000, Bytes: 4097},
		{Kind: Arrives, Rank: 3, Peer: 0, Tag: -1, Key: 78, TimePs: 2_000_000, DelayPs: 10_000_000},
	}
	if diff := cmp.Diff(want, r.answers); diff != "" {
		t.Error(diff)
	}
}

// All leave when the last one has entered and the operation's time is over, with the root's sizes where there is a
// root. Here ranks 1 and 4, which have sent their hello to another simulator, take part.
func TestCollectives(t *testing.T) {
	enter := func(call schema.CallID, rank, of int32, n uint64, ps, bytes, received int64, flags uint32) input {
		return input{Event: Event{Kind: Entered, Call: uint16(call), Rank: rank, Peer: of, N: n, Key: 5, TimePs: ps,
			Bytes: bytes, Received: received, Flags: flags}}
	}
	null := schema.NullInt64
	r := mustRun(t, hello(0, 5),
		enter(schema.CallBcast, 4, 3, 0, 7_000_000, null, 100, 0),
		enter(schema.CallBcast, 0, 3, 0, 3_000_000, 100, null, FlagRoot),
		// a rank that does not wait for the Bcast: MPI_Iallreduce
		enter(schema.CallAllreduce, 0, 3, 1, 90_000_000, 8, 8, 0),
		enter(schema.CallBcast, 1, 3, 0, 5_000_000, null, 100, 0),
		enter(schema.CallAllreduce, 1, 3, 1, 60_000_000, 8, 8, 0),
		enter(schema.CallAllreduce, 4, 3, 1, 60_000_000, 8, 8, 0),
		enter(schema.CallGather, 4, 3, 2, 30_000_000, 10, null, 0),
		enter(schema.CallGather, 1, 3, 2, 40_000_000, 10, 10, FlagRoot),
		enter(schema.CallGather, 0, 3, 2, 20_000_000, 10, null, 0),
		left(0))
	leaves := func(call schema.CallID, rank int32, n uint64, ps int64) Event {
		return Event{Kind: Leaves, Call: uint16(call), Rank: rank, Peer: 3, N: n, Key: 5, TimePs: ps}
	}
	want := []Event{
		// Bcast: LOG MAX of 3 ranks: 2 x (10 us + 100 ns) after the last, at 7 us
		leaves(schema.CallBcast, 4, 0, 27_200_000), leaves(schema.CallBcast, 0, 0, 27_200_000),
		leaves(schema.CallBcast, 1, 0, 27_200_000),
		// Allreduce: 2 x (10 us + 16 ns) in, 2 x (10 us + 8 ns) out, after 90 us
		leaves(schema.CallAllreduce, 0, 1, 130_048_000), leaves(schema.CallAllreduce, 1, 1, 130_048_000),
		leaves(schema.CallAllreduce, 4, 1, 130_048_000),
		// Gather of 10 bytes each: LOG MEAN of the 10 and 3 x 10 bytes of the root: 2 x (10 us + 20 ns) after 40 us
		leaves(schema.CallGather, 4, 2, 60_040_000), leaves(schema.CallGather, 1, 2, 60_040_000),
		leaves(schema.CallGather, 0, 2, 60_040_000),
	}
	if diff := cmp.Diff(want, r.answers); diff != "" {
		t.Error(diff)
	}
}

func TestRecords(t *testing.T) {
	head, body := bytes.Repeat([]byte{0}, 4096), bytes.Repeat([]byte{7}, 64<<10)
	r := mustRun(t, hello(0, 3), hello(2, 3),
		records(2, 0, 0, head), records(2, 0, 4096, body), records(2, 1, 0, head),
		records(2, 0, 4096+64<<10, body[:128]),
		records(2, 0, 64, []byte("abcdefgh")), // written again
		input{Event: Event{Kind: Sync, Rank: 2}}, left(2), left(0))
	if diff := cmp.Diff([]Event{{Kind: Synced, Rank: 2}}, r.answers); diff != "" {
		t.Error(diff)
	}
	want := append(append(bytes.Clone(head), body...), body[:128]...)
	copy(want[64:], "abcdefgh")
	for name, want := range map[string][]byte{"0000000000000abc.2.0.cqs": want, "0000000000000abc.2.1.cqs": head} {
		if got, err := os.ReadFile(filepath.Join(r.spool, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, want %d: %v", name, len(got), len(want), err)
		}
	}
	got, err := os.ReadFile(filepath.Join(r.spool, "0000000000000abc.simulator.0.json"))
	if want := `"ranks":2,"events":10,"messages":0,"message_bytes":0,"record_bytes":73864,`; err != nil ||
		!strings.Contains(string(got), want) {
		t.Errorf("%v: %s\nwant %s", err, got, want)
	}
}

// However the pipe cuts the events, also within an event and within records.
func TestCutsBetweenReads(t *testing.T) {
	var all []input
	all = append(all, hello(1, 2))
	for i := range 50 {
		all = append(all, input{Event: Event{Kind: Sent, Rank: 1, Peer: 0, Bytes: int64(i), TimePs: int64(i)}},
			records(1, 3, uint64(i*77), bytes.Repeat([]byte{byte(i)}, 77)))
	}
	input := encode(append(all, left(1))...)
	want := runOn(t, machine(t, tenMicros), input)
	for name, in := range map[string]io.Reader{"bytes": iotest.OneByteReader(bytes.NewReader(input)),
		"halves":       iotest.HalfReader(bytes.NewReader(input)),
		"with the end": iotest.DataErrReader(bytes.NewReader(input))} {
		var out, log bytes.Buffer
		dir := t.TempDir()
		if err := Run(t.Context(), in, &out, Options{Machine: machine(t, tenMicros), Spool: dir,
			Log: &log}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		const file = "0000000000000abc.1.3.cqs"
		got, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || len(got) != 50*77 || got[49*77] != 49 || got[49*77-1] != 48 {
			t.Errorf("%s: %v, %d bytes", name, err, len(got))
		}
		if out.Len() != 50*EventBytes || len(want.answers) != 50 || log.Len() != 0 {
			t.Errorf("%s: %d bytes of answers\n%s", name, out.Len(), log.String())
		}
	}
}

// A simulator rank that writes all its events before it reads an answer is not stopped, although no pipe holds them.
func TestEventsAreReadWhileAnswersAreNot(t *testing.T) {
	const messages = 100_000
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- Run(t.Context(), inRead, outWrite,
			Options{Machine: machine(t, tenMicros), Spool: t.TempDir(), Log: io.Discard})
		outWrite.Close()
	}()
	var b []byte
	h := hello(0, 2)
	b = h.append(b)
	for i := range messages {
		e := Event{Kind: Sent, Rank: 0, Peer: 1, Tag: int32(i)}
		b = e.append(b)
	}
	l := left(0)
	b = l.append(b)
	if err := inWrite.SetWriteDeadline(time.Now().Add(testenv.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := inWrite.Write(b); err != nil {
		t.Fatal(err)
	}
	inWrite.Close()
	answers, err := io.ReadAll(outRead)
	if err != nil || len(answers) != messages*EventBytes {
		t.Fatalf("%v, %d bytes", err, len(answers))
	}
	for i := range messages {
		var e Event
		if e.decode(answers[i*EventBytes:]); e.Tag != int32(i) {
			t.Fatalf("answer %d is of message %d", i, e.Tag)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestMalformed(t *testing.T) {
	event := func(e Event) input { return input{Event: e} }
	for _, c := range []struct {
		want string
		all  []input
	}{
		{"event 1: kind 0: no such event; is the simulator rank from another version of commq?",
			[]input{event(Event{})}},
		{"event 2: kind 17: no such event", []input{hello(0, 2), event(Event{Kind: Arrives})}},
		{"event 1: rank 3 has version 9 of the simulator protocol, this commq has 1: build the shim again",
			[]input{event(Event{Kind: Hello, Rank: 3, Peer: 5, Bytes: 9})}},
		{"event 1: hello of rank 5 of 5: no such rank", []input{hello(5, 5)}},
		{"event 1: hello of rank -1 of 5: no such rank", []input{hello(-1, 5)}},
		{"event 1: hello of rank 3 of -5: no such rank", []input{hello(3, -5)}},
		{"event 2: hello of rank 2: it is in job 0000000000000abc of 4 ranks, others are in job 0000000000000abc of 5 ranks",
			[]input{hello(0, 5), hello(2, 4)}},
		{"event 2: hello of rank 2: it is in job 0000000000000abd",
			[]input{hello(0, 5), event(Event{Kind: Hello, Rank: 2, Peer: 5, N: testJob + 1, Bytes: Version})}},
		{"event 2: second hello of rank 3", []input{hello(3, 5), hello(3, 5)}},
		{"event 1: message from rank 0 to rank 1 in a program of 0", []input{event(Event{Kind: Sent, Peer: 1})}},
		{"event 2: message from rank 0 to rank 5 in a program of 5",
			[]input{hello(0, 5), event(Event{Kind: Sent, Peer: 5})}},
		{"event 2: message from rank -1 to rank 3 in a program of 5",
			[]input{hello(0, 5), event(Event{Kind: Sent, Rank: -1, Peer: 3})}},
		{"event 2: event of kind 2 from rank 0: time -1 ps is negative",
			[]input{hello(0, 5), event(Event{Kind: Sent, Peer: 3, TimePs: -1})}},
		{"event 2: event of kind 3 from rank 0: time -1 ps is negative",
			[]input{hello(0, 5), event(Event{Kind: Entered, Peer: 3, TimePs: -1, Call: 38})}},
		{"event 2: rank 0 enters a collective of 0 ranks", []input{hello(0, 5), event(Event{Kind: Entered, Call: 38})}},
		{"event 2: rank -2 enters a collective of 3 ranks",
			[]input{hello(0, 5), event(Event{Kind: Entered, Call: 38, Rank: -2, Peer: 3})}},
		{"event 2: rank 0 enters a collective with the call number 65535, which does not exist",
			[]input{hello(0, 5), event(Event{Kind: Entered, Call: 65535, Peer: 3})}},
		{"event 2: event of kind 4 from rank 3, which has sent no hello or has left",
			[]input{hello(0, 5), records(3, 0, 0, nil)}},
		{"event 3: event of kind 4 from rank 0, which has sent no hello or has left",
			[]input{hello(0, 5), left(0), records(0, 0, 0, nil)}},
		{"event 3: event of kind 6 from rank 0, which has sent no hello or has left",
			[]input{hello(0, 5), left(0), left(0)}},
		{"event 2: event of kind 5 from rank 5, which", []input{hello(0, 5), event(Event{Kind: Sync, Rank: 5})}},
		{"event 2: rank 0, thread 0: 65537 bytes of records at 3; there are at most 65536",
			[]input{hello(0, 5), records(0, 0, 3, make([]byte, 65537))}},
		{"event 2: rank 0, thread 0: -1 bytes of records",
			[]input{hello(0, 5), event(Event{Kind: Records, Bytes: -1})}},
		{"event 2: rank 0, thread -1: 0 bytes of records", []input{hello(0, 5), records(0, -1, 0, nil)}},
		{"event 2: rank 0, thread 0: 0 bytes of records at 9223372036854775808",
			[]input{hello(0, 5), records(0, 0, 1<<63, nil)}},
		{"event 2: rank 0: the input ends within its records: the simulator rank was killed",
			[]input{hello(0, 5), {Event{Kind: Records, Bytes: 9}, []byte("abc")}}},
	} {
		if r := runOn(t, machine(t, tenMicros), encode(c.all...)); r.err == nil ||
			!strings.Contains(r.err.Error(), c.want) {
			t.Errorf("got %v\nwant %s", r.err, c.want)
		}
	}
	r := runOn(t, machine(t, tenMicros), encode(hello(0, 5))[:71])
	if r.err == nil || !strings.Contains(r.err.Error(),
		"event 1: the input ends within it: the simulator rank was killed") {
		t.Error(r.err)
	}
	r = runOn(t, machine(t, tenMicros+"\nnodes: 4"), encode(hello(0, 5)))
	if r.err == nil || !strings.Contains(r.err.Error(), "5 ranks cannot share these CPUs equally") {
		t.Error(r.err)
	}
	r = runOn(t, machine(t, "network: {latency_ns: 1, bandwidth_bytes_per_s: 1, buses: 3}"), nil)
	if r.err == nil || !strings.Contains(r.err.Error(), "network.buses is 3") {
		t.Error(r.err)
	}
}

// What came before is kept, and it is said what did not end.
func TestWhatDidNotEnd(t *testing.T) {
	var all []input
	for rank := range int32(12) {
		all = append(all, hello(rank, 13))
	}
	for n := range uint64(7) {
		for rank := range int32(3) {
			all = append(all, input{Event: Event{Kind: Entered, Call: uint16(schema.CallBarrier), Rank: 5 - rank,
				Peer: 4, N: n, Key: 0xfeed}})
		}
	}
	all = append(all, records(3, 0, 0, head()),
		input{Event: Event{Kind: Left, Rank: 0, TimePs: 70, N: 3, Bytes: 5, Received: 2}})
	r := runOn(t, machine(t, tenMicros), encode(all...))
	want := "commq simrank: ranks 1, 2, 3, 4, 5, 6, 7, 8 and 3 more ended without leaving; what they recorded is kept\n"
	for _, n := range "01234" {
		want += "commq simrank: only 3 of 4 ranks entered MPI_Barrier, number " +
			string(n) + " on communicator 000000000000feed: ranks 3, 4, 5\n"
	}
	want += "commq simrank: and 2 more collectives\n"
	if diff := cmp.Diff(want, r.log); r.err != nil || diff != "" || len(r.answers) != 0 {
		t.Errorf("%v, %v\n%s", r.err, r.answers, diff)
	}
	if got, err := os.ReadFile(filepath.Join(r.spool, "0000000000000abc.3.0.cqs")); err != nil ||
		!bytes.Equal(got, head()) {
		t.Errorf("%v: %d bytes", err, len(got))
	}
	got, err := os.ReadFile(filepath.Join(r.spool, "0000000000000abc.simulator.0.json"))
	wantSummary := `{"job":"0000000000000abc","simulator":0,"ranks":12,"events":35,"messages":0,"message_bytes":0,"record_bytes":4096,"collectives":0,"collectives_open":7,"choices":5,"out_of_order":3,"early":2,"machine":"test.yaml","description":"` + tenMicros + `","last_ps":70}` + "\n"
	if diff := cmp.Diff(wantSummary, string(got)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestRanksInDifferentCollectives(t *testing.T) {
	enter := func(call schema.CallID, rank, of int32) input {
		return input{Event: Event{Kind: Entered, Call: uint16(call), Rank: rank, Peer: of}}
	}
	r := runOn(t, machine(t, tenMicros), encode(hello(0, 2), enter(schema.CallBcast, 0, 2),
		enter(schema.CallReduce, 1, 2), left(0)))
	want := "commq simrank: rank 0 is in MPI_Bcast of 2 ranks, but rank 1 is in MPI_Reduce of 2 ranks at the same place: it gets the time of the first\n"
	if diff := cmp.Diff(want, r.log); r.err != nil || diff != "" || len(r.answers) != 2 {
		t.Errorf("%v, %v\n%s", r.err, r.answers, diff)
	}
}

// Times that no program has do not overflow.
func TestForever(t *testing.T) {
	enter := input{Event: Event{Kind: Entered, Call: uint16(schema.CallBarrier), Peer: 1, TimePs: math.MaxInt64,
		Bytes: math.MaxInt64}}
	sent := input{Event: Event{Kind: Sent, TimePs: math.MaxInt64, Bytes: math.MaxInt64}}
	r := mustRun(t, hello(0, 1), enter, sent, left(0))
	if len(r.answers) != 2 || r.answers[0].TimePs != int64(models.Forever) ||
		r.answers[1].TimePs+r.answers[1].DelayPs < 0 {
		t.Errorf("%+v", r.answers)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// Without anyone who wants answers the records are still kept.
func TestAnswersThatNobodyReads(t *testing.T) {
	dir := t.TempDir()
	var all []input
	all = append(all, hello(0, 2), records(0, 0, 0, head()))
	for range 2000 {
		all = append(all, input{Event: Event{Kind: Sent, Peer: 1}})
	}
	all = append(all, records(0, 0, 4096, slots(3)), left(0))
	err := Run(t.Context(), bytes.NewReader(encode(all...)), brokenPipe{},
		Options{Machine: machine(t, tenMicros), Spool: dir, Log: io.Discard})
	if !errors.Is(err, syscall.EPIPE) {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "0000000000000abc.0.0.cqs")); err != nil || len(got) != 4096+3*64 {
		t.Errorf("%v: %d bytes", err, len(got))
	}
}

func TestCancelled(t *testing.T) {
	in, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, in, io.Discard, Options{Machine: machine(t, tenMicros), Spool: t.TempDir(), Log: io.Discard})
	}()
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(testenv.Patience):
		t.Fatal("still running")
	}
}

// Whatever comes: an error or an end, and never more answers than events.
func FuzzRun(f *testing.F) {
	f.Add(encode(hello(0, 2), hello(1, 2), input{Event: Event{Kind: Sent, Peer: 1, Bytes: 9}},
		records(0, 0, 0, head()), records(0, 0, 4096, slots(3)), left(0), left(1)))
	f.Add(encode(hello(0, 3), input{Event: Event{Kind: Entered, Call: 19, Peer: 2, Key: 5, Bytes: 8, Received: 8}},
		input{Event: Event{Kind: Entered, Call: 19, Peer: 2, Rank: 1, Key: 5, TimePs: 8, Bytes: 8, Received: 8}},
		input{Event: Event{Kind: Sync}}))
	f.Add(encode(input{Event: Event{Kind: Entered, Call: 40, Peer: 1, Flags: FlagRoot, TimePs: 1 << 62,
		Bytes: 1 << 62}}))
	m := machine(f, tenMicros)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		_ = Run(t.Context(), bytes.NewReader(data), &out, Options{Machine: m, Spool: dir, Log: io.Discard})
		if out.Len()%EventBytes != 0 || out.Len() > len(data) {
			t.Errorf("%d bytes of answers to %d", out.Len(), len(data))
		}
		for b := out.Bytes(); len(b) > 0; b = b[EventBytes:] {
			var e Event
			if e.decode(b); e.Kind < Arrives || e.Kind > Synced || e.TimePs < 0 || e.DelayPs < 0 ||
				e.TimePs+e.DelayPs < 0 {
				t.Errorf("%+v", e)
			}
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := os.Remove(filepath.Join(dir, file.Name())); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// takeEvents returns a function that has a simulator take the events.
func takeEvents(t testing.TB, b []byte) func() {
	s := &simulator{o: Options{Log: io.Discard}, gathering: map[instance]*gathering{}, ranks: make([]uint8, 64)}
	var err error
	if s.network, err = machine(t, tenMicros).Stateless(64); err != nil {
		t.Fatal(err)
	}
	return func() {
		if n, err := s.takeEvents(b); err != nil || n != len(b) || len(s.batch) != len(b) {
			t.Fatalf("%d of %d bytes taken, %d answered: %v", n, len(b), len(s.batch), err)
		}
		s.batch = s.batch[:0]
	}
}

// half are so many messages and collectives of 64 ranks.
func half(events int) []byte {
	var b []byte
	for i := range events {
		e := Event{Kind: Sent, Rank: int32(i / 2 % 64), Peer: int32(i % 64), Bytes: 4097, Key: 77, TimePs: int64(i)}
		if i%2 == 1 {
			e = Event{Kind: Entered, Call: uint16(schema.CallAllreduce), Rank: int32(i / 2 % 64), Peer: 64,
				N: uint64(i / 128), Key: 77, TimePs: int64(i), Bytes: 8, Received: 8}
		}
		b = e.append(b)
	}
	return b
}

func TestEventsTakeNoMemory(t *testing.T) {
	take := takeEvents(t, half(12_800))
	take()
	if n := testing.AllocsPerRun(10, take); n > 1 {
		t.Errorf("%.0f allocations for 12,800 events", n)
	}
}

func BenchmarkTake(b *testing.B) {
	const events = 12_800
	take := takeEvents(b, half(events))
	b.ReportAllocs()
	for b.Loop() {
		take()
	}
	b.ReportMetric(float64(b.N)*events/b.Elapsed().Seconds(), "events/s")
}
