package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
)

// checked gives a run to a Checker, in the order that it requires, and lists the problems.
func checked(t *testing.T, m *schema.Manifest, text string) []string {
	t.Helper()
	var found []string
	c := NewChecker(m, func(p Problem) { found = append(found, p.String()) })
	for _, b := range schematest.ParseRows(t, text) {
		c.Add(b.Table().Name, b)
	}
	c.Finish()
	return found
}

func TestCheckerFindsNothingWrong(t *testing.T) {
	if found := checked(t, schematest.TinyManifest(), schematest.TinyRun); len(found) > 0 {
		t.Errorf("in a run that keeps all rules: %v", found)
	}
}

// Each breach of a rule is found, named and placed. Where a change also breaks other rules, these are listed too.
func TestCheckerFindsBreaches(t *testing.T) {
	// rules about files, which are tested with files
	broken := map[string]bool{RuleFiles: true, RuleDigests: true, RuleRepeats: true, RuleCollectiveParts: true}
	broken["rma"], broken["io"] = true, true // tested below
	broken["activity"] = true                // only large runs have the table: tested in package writer
	for _, test := range []struct {
		old, new string
		manifest func(*schema.Manifest)
		want     []string
	}{
		{old: "rank=1 events=3 ended=finalized", new: "rank=1 events=3 ended=killed",
			want: []string{"the run ended finalized, but 1 of its 3 ranks did not finalize (ended)"}},
		{old: "dst=0 comm=0 tag=9", new: "dst=0 comm=0 tag=null",
			want: []string{"messages: rank 0, seq 0: tag is null (not-null)"}},
		{old: "parts rank=0 seq=2 peer_world=2 send_bytes=30", new: "parts rank=0 seq=2 peer_world=1 send_bytes=30",
			want: []string{"parts: rank 0, seq 2: the row has the same key as the row before it (sorted)"}},
		{old: "parts rank=0 seq=2 peer_world=1 send_bytes=70",
			new:  "parts rank=0 seq=2 epoch=1 peer_world=1 send_bytes=70",
			want: []string{"parts: rank 0, seq 2: the row belongs before the row that precedes it (sorted)"}},
		{old: "parts rank=2 seq=0 peer_world=0", new: "parts rank=2 seq=0 peer_world=3",
			want: []string{"parts: rank 2, seq 0: peer_world is 3 in a run of 3 ranks (ranks)"}},
		{manifest: func(m *schema.Manifest) { m.Ranks = 4 }, want: []string{"ranks has 3 rows; the manifest says 4 ranks (ranks)"}},
		{manifest: func(m *schema.Manifest) { m.Epochs = 1 }, old: "events rank=0 seq=3 epoch=1", new: "events rank=0 seq=3 epoch=1", want: []string{
			"events: rank 0, seq 3: epoch 1 of 1 (epochs)", "events: rank 0, seq 4: epoch 1 of 1 (epochs)",
			"events: rank 0, seq 5: epoch 1 of 1 (epochs)",
			"events: rank 0, seq 6: epoch 1 of 1 (epochs)", "events: rank 1, seq 2: epoch 1 of 1 (epochs)",
			"events: rank 2, seq 1: epoch 1 of 1 (epochs)",
			"events: rank 2, seq 2: epoch 1 of 1 (epochs)", "messages: rank 0, seq 3: epoch 1 of 1 (epochs)",
			"messages: rank 2, seq 1: epoch 1 of 1 (epochs)"}},
		{old: "seq=4 epoch=1 call=MPI_Wait", new: "seq=4 epoch=0 call=MPI_Wait", want: []string{
			"events: rank 0, seq 4: the row belongs before the row that precedes it (sorted)",
			"events: rank 0, seq 4: epoch 0 after 1 (epochs)"}},
		{old: "seq=2 epoch=1 call=MPI_Wait", new: "seq=3 epoch=1 call=MPI_Wait",
			want: []string{"events: rank 1, seq 3: seq 3 follows 1 (seq)"}},
		{old: "start_ns=90 end_ns=95", new: "start_ns=90 end_ns=85",
			want: []string{"events: rank 1, seq 0: end 5 ns before start (times)"}},
		{old: "recv_start_ns=410 recv_end_ns=900", new: "recv_start_ns=910 recv_end_ns=900",
			want: []string{"messages: rank 0, seq 3: the receive ends 10 ns before it starts (times)"}},
		{old: "start_ns=200 end_ns=300", new: "start_ns=200 end_ns=300 poll_ns=-7",
			want: []string{"events: rank 0, seq 2: poll_ns is -7 (times)"}},
		{old: "send_start_ns=420 send_end_ns=430", new: "send_start_ns=570 send_end_ns=580",
			manifest: func(m *schema.Manifest) { m.TimeOrigin, m.Record = "virtual", "messages" },
			want:     []string{"messages: rank 2, seq 1: received 10 ns before it was sent (causality)"}},
		{old: "send_start_ns=420 send_end_ns=430", new: "send_start_ns=570 send_end_ns=580",
			manifest: func(m *schema.Manifest) { m.Record = "messages" }},
		{manifest: func(m *schema.Manifest) { m.Payloads = new(int64); *m.Payloads = 5 },
			want: []string{"payloads (the fingerprint of the messages): found 0; the manifest says 5 (counts)"}},
		{manifest: func(m *schema.Manifest) { m.EndNs = 901 }, want: []string{"the latest end is at 900 ns; the manifest's end_ns is 901 (times)"}},
		{old: "start_ns=510 end_ns=520", new: "start_ns=390 end_ns=520",
			want: []string{"events: rank 0, seq 4: thread 0 starts the call 10 ns before the call before it (thread-order)",
				"overlapping_calls (those that end after the next one of their thread began): found 1; the manifest says 0 (counts)"}},
		{old: "start_ns=410 end_ns=900", new: "start_ns=410 end_ns=900 thread=32768",
			want: []string{"events: rank 1, seq 2: the number of the thread is 32768; want 0 to 32767 (thread-order)"}},
		{old: "ranks rank=1 events=3", new: "ranks rank=1 events=3 threads=32769",
			want: []string{"ranks: rank 1: the rank has 32769 threads; want 0 to 32768 (ranks)"}},
		{old: "start_ns=510 end_ns=520", new: "start_ns=null end_ns=520",
			want: []string{"events: rank 0, seq 4: start_ns is null in a run that is measured (untimed)"}},
		{old: "comms comm=0 comm_rank=2 world_rank=2", new: "comms comm=0 comm_rank=3 world_rank=2", want: []string{
			"comms: communicator 0: comm_rank 3, expected 2 (comms)"}},
		{old: "comms comm=3 comm_rank=1 world_rank=0 parent=0", new: "comms comm=3 comm_rank=1 world_rank=2 parent=0",
			want: []string{
				"comms: communicator 3: world rank 2 is a member twice (comms)",
				"events: rank 0, seq 5: the rank is not a member of communicator 3 (members)",
				"events: rank 0, seq 6: the rank is not a member of communicator 3 (members)",
				"events: rank 2, seq 1: send_world is 0; rank 1 of communicator 3 is world rank 2 (peers)",
				"messages: rank 2, seq 1: world rank 0 is not a member of communicator 3 (members)"}},
		{old: "world_rank=2 parent=0", new: "world_rank=2 parent=4",
			want: []string{"communicator 3: its parent 4 has no row in comms (comms)"}},
		{old: "datatypes id=5", new: "datatypes id=6",
			want: []string{"events: rank 0, seq 0: send_datatype is 5, which has no row in datatypes (references)",
				"events: rank 0, seq 1: recv_datatype is 5, which has no row in datatypes (references)"}},
		{old: "callsites id=1 parent=0", new: "callsites id=1 parent=9",
			want: []string{"callsites: parent is 9, which has no row in callsites (references)",
				"callsites: the parent of call site 1 is 9, which is no earlier row (callsites)"}},
		{old: "callsites id=1 parent=0", new: "callsites id=1 parent=2", want: []string{
			"callsites: the parent of call site 1 is 2, which is no earlier row (callsites)"}},
		{old: "callsites id=2", new: "callsites id=3",
			want: []string{"callsites: row 2 of callsites has the id 3 (callsites)"}},
		{manifest: func(m *schema.Manifest) { m.Callsites = false }, want: []string{
			"events: rank 0, seq 0: callsite is 1 in a run that was captured without call sites (callsites)"}},
		{old: "send_peer=1 send_world=1", new: "send_peer=2 send_world=1",
			want: []string{"events: rank 0, seq 3: send_world is 1; rank 2 of communicator 0 is world rank 2 (peers)"}},
		{old: "send_peer=1 send_world=1", new: "send_peer=3 send_world=1",
			want: []string{"events: rank 0, seq 3: send_peer is 3 in communicator 0 of 3 ranks (peers)"}},
		{old: "posted_any=3 request=1", new: "posted_any=4 request=1",
			want: []string{"events: rank 2, seq 2: posted_any is 4 (flags)"}},
		{old: "posted_any=1 proc_null=0", new: "posted_any=1 proc_null=2",
			want: []string{"events: rank 0, seq 1: a receive from MPI_PROC_NULL has recv_peer 0 (flags)",
				"rank 0, seq 1: a message names this row as its receive; there is no such row (messages)"}},
		{old: "request=1 done_seq=4", new: "request=1 done_seq=0",
			want: []string{"events: rank 0, seq 0: done_seq is 0, not a later row (requests)"}},
		{old: "request=1 done_seq=4", new: "request=1 done_seq=7",
			want: []string{"rank 0, seq 0: done_seq is 7; the rank's last row is 6 (requests)"}},
		{old: "end_ns=310 comm=0 instance=0", new: "end_ns=310 comm=0 instance=1",
			want: []string{"events: rank 1, seq 1: instance 1 on communicator 0, expected 0 (instances)",
				"rank 1: 2 collective operations on communicator 0; its rank 0 made 1 (instances)"}},
		{old: "events rank=2 seq=0 call=MPI_Alltoallv", new: "events rank=2 seq=0 call=MPI_Alltoallw",
			want: []string{"rank 2: the collective operations on communicator 0 are not those of its rank 0 (instances)"}},
		{old: "send_bytes=70 recv_bytes=10", new: "send_bytes=71 recv_bytes=10",
			want: []string{"parts: rank 0, seq 2: the parts send 101 bytes, the call 100 (parts)"}},
		{old: "parts rank=1 seq=1 peer_world=0 send_bytes=10 recv_bytes=70",
			new:  "parts rank=1 seq=1 peer_world=0 send_bytes=10 recv_bytes=69",
			want: []string{"parts: rank 1, seq 1: the parts receive 69 bytes, the call 70 (parts)"}},
		{old: "parts rank=1 seq=1", new: "parts rank=1 seq=2",
			want: []string{"rank 1, seq 2: parts of a row that is not a collective call with a count per peer (parts)"}},
		{old: "dst=1 epoch=1 comm=0 tag=9", new: "dst=1 epoch=1 comm=0 tag=8",
			want: []string{"messages: rank 0, seq 3: the send has tag 9, its message 8 (messages)",
				"messages: rank 1, seq 0: the receive has tag 9, its message 8 (messages)"}},
		{old: "bytes=5 send_seq=1", new: "bytes=5 send_seq=0",
			want: []string{"rank 2, seq 0: a message names this row as its send; there is no such row (messages)"}},
		{old: "recv_post_seq=5 recv_done_seq=6", new: "recv_post_seq=5 recv_done_seq=5",
			want: []string{"messages: rank 0, seq 5: the receive has done_seq 6, its message 5 (messages)"}},
		{old: "recv_post_seq=5 recv_done_seq=6", new: "recv_post_seq=5 recv_done_seq=4",
			want: []string{"messages: rank 0, seq 5: the receive has done_seq 6, its message 4 (messages)",
				"messages: rank 2, seq 1: recv_done_seq 4 before recv_post_seq 5 at rank 0 (message-rows)"}},
		{manifest: func(m *schema.Manifest) { m.Counts.UnmatchedSends = 1 }, want: []string{"0 send rows have no message; the manifest says 1 are unmatched (messages)"}},
		{manifest: func(m *schema.Manifest) { m.Counts.MessageBytes++ }, want: []string{"message_bytes: found 4142; the manifest says 4143 (counts)"}},
		{manifest: func(m *schema.Manifest) { m.Counts.Collectives = 3 }, want: []string{"collectives: found 1; the manifest says 3 (counts)"}},
		{manifest: func(m *schema.Manifest) { m.Collectives = map[string]int64{"MPI_Alltoall": 1} }, want: []string{
			"collectives by MPI_Alltoall: found 0; the manifest says 1 (counts)",
			"collectives by MPI_Alltoallv: found 1; the manifest says 0 (counts)"}},
		{manifest: func(m *schema.Manifest) { m.Counts.InProgress = 1 }, want: []string{"in_progress: found 0; the manifest says 1 (counts)"}},
		{old: "rank=2 events=3", new: "rank=2 events=4",
			want: []string{"calls (the sum of ranks.events): found 14; the manifest says 13 (counts)",
				"rank 2: 3 rows of events; ranks says 4 (counts)"}},
		{manifest: func(m *schema.Manifest) { m.TimeOrigin = "untimed"; m.EndNs = 900 }, want: []string{
			"events: rank 0, seq 0: start_ns is 100 in an untimed run (untimed)",
			"events: rank 0, seq 0: end_ns is 110 in an untimed run (untimed)",
			"messages: rank 0, seq 0: send_start_ns is 100 in an untimed run (untimed)",
			"messages: rank 0, seq 0: send_end_ns is 110 in an untimed run (untimed)",
			"messages: rank 0, seq 0: recv_post_ns is 120 in an untimed run (untimed)",
			"messages: rank 0, seq 0: recv_start_ns is 120 in an untimed run (untimed)",
			"messages: rank 0, seq 0: recv_end_ns is 150 in an untimed run (untimed)"}},
		{old: "send_bytes=100 recv_bytes=30", new: "send_bytes=100 recv_bytes=30 payload_hash=-7",
			want: []string{"events: rank 0, seq 2: payload_hash is -7; the manifest's hash is none (hashes)"}},
		{manifest: func(m *schema.Manifest) { m.Hash = "crc64" }, old: "recv_end_ns=900", new: "recv_end_ns=900 payload_hash=5 recv_hash=9", want: []string{
			"messages: rank 0, seq 3: recv_hash is 9; the manifest's hash_verify is false (hashes)",
			"hashes_verified: found 1; the manifest says 0 (hashes)",
			"hash_mismatches: found 1; the manifest says 0 (hashes)"}},
		{manifest: func(m *schema.Manifest) {
			m.Hash, m.HashVerify, m.Counts.HashesVerified, m.Counts.HashMismatches = "crc64", true, 3, 1
		},
			old: "recv_end_ns=900", new: "recv_end_ns=900 payload_hash=5 recv_hash=9",
			want: []string{"hashes_verified: found 1; the manifest says 3 (hashes)"}},
		{manifest: func(m *schema.Manifest) {
			m.Tables = []schema.TableInfo{{Name: "profile", Files: []schema.FileInfo{{Path: "profile/0000.parquet"}}}}
		}, want: []string{"the 0 rows of profile are not the 13 sums of the rows of events; commq runs profile makes them again (profile)"}},
		{manifest: func(m *schema.Manifest) {
			m.Tables = []schema.TableInfo{{Name: "waits", Files: []schema.FileInfo{{Path: "waits/0000.parquet"}}}}
		}, want: []string{"the 0 rows of waits are not the 3 sums of the rows of events and messages; commq runs profile makes them again (waits)"}},
		{manifest: func(m *schema.Manifest) {
			m.Tables = []schema.TableInfo{{Name: "channels", Files: []schema.FileInfo{{Path: "channels/0000.parquet"}}}}
		}, want: []string{"the 0 rows of channels are not the 3 sums of the rows of messages; commq runs profile makes them again (channels)"}},
		{manifest: func(m *schema.Manifest) {
			m.Tables = []schema.TableInfo{{Name: "collective_calls", Files: []schema.FileInfo{{Path: "collective_calls/0000.parquet"}}}}
		}, want: []string{"the 0 rows of collective_calls are not the 3 sums of the rows of events; commq runs profile makes them again (collective-calls)"}},
		// messages of three sizes; and three ranks that wait for different ranks
		{manifest: func(m *schema.Manifest) {
			m.Tables = []schema.TableInfo{{Name: "transfers",
				Files: []schema.FileInfo{{Path: "transfers/0000.parquet"}}}}
		}, want: []string{"the 0 rows of transfers are not the 3 sums of the rows of events and messages; commq runs profile makes them again (waits)"}},
		{manifest: func(m *schema.Manifest) {
			m.Tables = []schema.TableInfo{{Name: "collective_waits",
				Files: []schema.FileInfo{{Path: "collective_waits/0000.parquet"}}}}
		}, want: []string{"the 0 rows of collective_waits are not the 6 sums of the rows of events and messages; commq runs profile makes them again (waits)"}},
	} {
		text, m := schematest.TinyRun, schematest.TinyManifest()
		if test.old != "" {
			if strings.Count(text, test.old) != 1 {
				t.Fatalf("%q stands %d times in the run", test.old, strings.Count(text, test.old))
			}
			text = strings.Replace(text, test.old, test.new, 1)
		}
		if test.manifest != nil {
			test.manifest(m)
		}
		found := checked(t, m, text)
		if d := cmp.Diff(test.want, found); d != "" {
			t.Errorf("%s -> %s (-want +found):\n%s", test.old, test.new, d)
		}
		for _, p := range found {
			broken[p[strings.LastIndex(p, "(")+1:len(p)-1]] = true
		}
	}
	for _, r := range Rules() {
		if !broken[r.Name] {
			t.Errorf("no case breaks the rule %s", r.Name)
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString(schematest.TinyRun)
	for i := range 40 {
		fmt.Fprintf(&text, "parts rank=2 seq=%d epoch=1 peer_world=0 send_bytes=1\n", i)
	}
	var found []string
	for _, p := range checked(t, schematest.TinyManifest(), text.String()) {
		if strings.HasSuffix(p, "(parts)") {
			found = append(found, p)
		}
	}
	if len(found) != problemsPerRule+1 || !strings.Contains(found[problemsPerRule], "30 more of this kind") {
		t.Errorf("40 problems were reported as %d lines, the last %q", len(found), found[len(found)-1])
	}
}
