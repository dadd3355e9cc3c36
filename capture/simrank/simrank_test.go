package simrank

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// said is an event, for RECORDS with its data.
type said struct {
	Event
	data []byte
}

func encode(all ...said) []byte {
	var b []byte
	for _, e := range all {
		b = append(e.append(b), e.data...)
	}
	return b
}

func hello(rank, ranks int32) said {
	return said{Event: Event{Kind: Hello, Rank: rank, Peer: ranks, N: testJob, Bytes: Version}}
}

func left(rank int32) said { return said{Event: Event{Kind: Left, Rank: rank, Peer: 1}} }

func records(rank, thread int32, at uint64, data []byte) said {
	return said{Event{Kind: Records, Rank: rank, Peer: thread, N: at, Bytes: int64(len(data))}, data}
}

// ran is what a Run did.
type ran struct {
	answers []Event
	log     string
	spool   string
	err     error
}

func runOn(t testing.TB, m *models.Machine, input []byte) ran {
	t.Helper()
	r := ran{spool: t.TempDir()}
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

// good is a Run without errors and complaints.
func good(t testing.TB, all ...said) ran {
	t.Helper()
	r := runOn(t, machine(t, tenMicros), encode(all...))
	if r.err != nil || r.log != "" {
		t.Fatalf("%v\n%s", r.err, r.log)
	}
	return r
}

func TestMessages(t *testing.T) {
	r := good(t, hello(0, 5), hello(3, 5),
		said{Event: Event{Kind: Sent, Rank: 3, Peer: 4, Tag: 9, Key: 77, TimePs: 1_000_000, Bytes: 4097}},
		said{Event: Event{Kind: Sent, Rank: 0, Peer: 3, Tag: -1, Key: 78, TimePs: 2_000_000}},
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

// All leave when the last one has entered and the operation's time is over, with the root's sizes where there is a root. Here
// ranks 1 and 4, which said hello to another simulator, take part.
func TestCollectives(t *testing.T) {
	enter := func(call schema.CallID, rank, of int32, n uint64, ps, bytes, received int64, flags uint32) said {
		return said{Event: Event{Kind: Entered, Call: uint16(call), Rank: rank, Peer: of, N: n, Key: 5, TimePs: ps, Bytes: bytes, Received: received, Flags: flags}}
	}
	null := schema.NullInt64
	r := good(t, hello(0, 5),
		enter(schema.CallBcast, 4, 3, 0, 7_000_000, null, 100, 0),
		enter(schema.CallBcast, 0, 3, 0, 3_000_000, 100, null, FlagRoot),
		enter(schema.CallAllreduce, 0, 3, 1, 90_000_000, 8, 8, 0), // a rank that does not wait for the Bcast: MPI_Iallreduce
		enter(schema.CallBcast, 1, 3, 0, 5_000_000, null, 100, 0),
		enter(schema.CallAllreduce, 1, 3, 1, 60_000_000, 8, 8, 0),
		enter(schema.CallAllreduce, 4, 3, 1, 60_000_000, 8, 8, 0),
		left(0))
	leaves := func(call schema.CallID, rank int32, n uint64, ps int64) Event {
		return Event{Kind: Leaves, Call: uint16(call), Rank: rank, Peer: 3, N: n, Key: 5, TimePs: ps}
	}
	want := []Event{
		// Bcast: LOG MAX of 3 ranks: 2 x (10 us + 100 ns) after the last, at 7 us
		leaves(schema.CallBcast, 4, 0, 27_200_000), leaves(schema.CallBcast, 0, 0, 27_200_000), leaves(schema.CallBcast, 1, 0, 27_200_000),
		// Allreduce: 2 x (10 us + 16 ns) in, 2 x (10 us + 8 ns) out, after 90 us
		leaves(schema.CallAllreduce, 0, 1, 130_048_000), leaves(schema.CallAllreduce, 1, 1, 130_048_000), leaves(schema.CallAllreduce, 4, 1, 130_048_000),
	}
	if diff := cmp.Diff(want, r.answers); diff != "" {
		t.Error(diff)
	}
}

func TestRecords(t *testing.T) {
	head, body := bytes.Repeat([]byte{0}, 4096), bytes.Repeat([]byte{7}, 64<<10)
	r := good(t, hello(0, 3), hello(2, 3),
		records(2, 0, 0, head), records(2, 0, 4096, body), records(2, 1, 0, head), records(2, 0, 4096+64<<10, body[:128]),
		records(2, 0, 64, []byte("abcdefgh")), // written again
		said{Event: Event{Kind: Sync, Rank: 2}}, left(2), left(0))
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
	if want := `"ranks":2,"events":10,"messages":0,"message_bytes":0,"record_bytes":73864,`; err != nil || !strings.Contains(string(got), want) {
		t.Errorf("%v: %s\nwant %s", err, got, want)
	}
}
