package writer

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/check"
)

// waited writes a valid run in which no derived table is empty: rank 0 sends a payload to rank 1 twice, 40 ns after
// rank 1 began to wait for it, and both meet in a barrier, where rank 1 arrives 100 ns late.
func waited(t *testing.T) (dir string) {
	t.Helper()
	store := t.TempDir()
	r, err := Create(store, "waited", Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Abort()
	ranks, comms, events, messages := &schema.RankInfos{}, &schema.Comms{}, &schema.Events{}, &schema.Messages{}
	for rank := range int32(2) {
		ranks.Append(&schema.RankInfo{Rank: rank, Threads: 1, Ended: schema.EndedFinalized, Events: 3})
		comms.Append(&schema.Comm{CommRank: rank, WorldRank: rank, Name: schema.NullText, Parent: schema.NullInt32,
			CartDims: schema.NullText, CartPeriods: schema.NullText, GraphEdges: schema.NullText})
		for seq := range int64(3) {
			e := schema.NullEvent
			e.Rank, e.Seq, e.Comm, e.StartNs, e.EndNs = rank, seq, 0, 1000*seq, 1000*seq+90
			switch {
			case seq == 2:
				e.Call, e.Class, e.Instance = int16(schema.CallBarrier), int16(schema.ClassCollective), 0
				e.StartNs, e.EndNs = 2000+100*int64(rank), 2109
			case rank == 0:
				e.Call, e.Class, e.SendPeer, e.SendWorld, e.SendTag, e.SendBytes, e.ProcNull = int16(schema.CallSend),
					int16(schema.ClassSend), 1, 1, 9, 4097, 0
				e.StartNs += 40
			default:
				e.Call, e.Class, e.RecvPeer, e.RecvWorld, e.RecvTag, e.RecvBytes, e.PostedAny,
					e.ProcNull = int16(schema.CallRecv), int16(schema.ClassRecv), 0, 0, 9, 4097, 0, 0
				m := schema.NullMessage
				m.Src, m.Dst, m.Comm, m.Tag, m.Bytes, m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = 0, 1, 0, 9, 4097, seq,
					seq, seq
				m.SendStartNs, m.SendEndNs, m.RecvPostNs, m.RecvStartNs, m.RecvEndNs = e.StartNs+40, e.EndNs,
					e.StartNs, e.StartNs, e.EndNs
				m.PayloadHash, m.PayloadHead, m.SendCount = 77, 9, 4097
				messages.Append(&m)
			}
			events.Append(&e)
		}
	}
	for _, b := range []schema.Batch{ranks, comms, events, messages} {
		if err := r.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	m := testManifest()
	m.Ranks, m.Epochs, m.EndNs, m.Hash = 2, 1, 2109, "crc64"
	m.Counts.Calls, m.Counts.Messages, m.Counts.MessageBytes, m.Counts.Collectives = 6, 2, 2*4097, 1
	m.Collectives = map[string]int64{"MPI_Barrier": 1}
	if err := r.Commit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(store, "waited")
}

// tampered replaces the rows of a derived table, with a file and a digest that agree with the manifest.
func tampered(t *testing.T, dir string, table *schema.Table, rows schema.Batch) {
	t.Helper()
	at := slices.Index(schema.Tables(), table)
	files := newTableFiles(&place{name: "tampered", dir: t.TempDir()})
	if rows.Len() > 0 {
		if err := files.write(0, rows); err != nil {
			t.Fatal(err)
		}
	}
	info, err := files.closeTable(table)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, table.Name)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(files.dir, table.Name), filepath.Join(dir, table.Name)); err != nil &&
		len(info.Files) > 0 {
		t.Fatal(err)
	}
	edit(t, dir, func(m *schema.Manifest) { m.Tables[at] = info })
}

// Check finds a derived table whose rows do not follow from the other tables, reports just that error, and does so
// even if file, manifest and digest agree.
func TestCheckFindsTamperedDerivedTables(t *testing.T) {
	dir := waited(t)
	if problems, err := Check(context.Background(), dir); err != nil || len(problems) > 0 {
		t.Fatalf("of what is whole: %v, %v", problems, err)
	}
	repeats, collectives, channels := &schema.Repeats{}, &schema.CollectiveWaits{}, &schema.Channels{}
	readAll(t, dir, &schema.ChannelsTable, 10, func(b *schema.Channels, i int) {
		var row schema.Channel
		b.Row(i, &row)
		channels.Append(&row)
	})
	readAll(t, dir, &schema.RepeatsTable, 10, func(b *schema.Repeats, i int) {
		var row schema.Repeat
		b.Row(i, &row)
		repeats.Append(&row)
	})
	readAll(t, dir, &schema.CollectiveWaitsTable, 10, func(b *schema.CollectiveWaits, i int) {
		var row schema.CollectiveWait
		b.Row(i, &row)
		collectives.Append(&row)
	})
	if repeats.Len() != 1 || repeats.Again[0] != 1 || collectives.Len() == 0 || collectives.WaitNs[0] != 100 {
		t.Fatalf("the run has the repeats %+v and the waits %+v", repeats, collectives)
	}
	if channels.Len() == 0 || channels.Messages[0] == 0 {
		t.Fatalf("the run has the channels %+v", channels)
	}
	calls, parts := &schema.CollectiveCalls{}, &schema.CollectiveParts{}
	readAll(t, dir, &schema.CollectiveCallsTable, 10, func(b *schema.CollectiveCalls, i int) {
		var row schema.CollectiveCall
		b.Row(i, &row)
		calls.Append(&row)
	})
	if calls.Len() == 0 || calls.Calls[0] == 0 {
		t.Fatalf("the run has the collective calls %+v", calls)
	}
	calls.Operations[0]++
	parts.Append(&schema.CollectivePart{Messages: 1, Call: calls.Call[0]})
	channels.Messages[0]++
	repeats.Again[0] = 3
	collectives.WaitNs[0] = 101
	for _, test := range []struct {
		rows schema.Batch
		rule string
		want string
	}{
		{repeats, check.RuleRepeats, "the 1 rows are not the 1 sums of the rows of messages; commq runs profile makes them again"},
		{&schema.Repeats{}, check.RuleRepeats, "the 0 rows are not the 1 sums of the rows of messages"},
		{channels, "channels", "rows of channels are not the "},
		{&schema.Channels{}, "channels", "the 0 rows of channels are not the "},
		{calls, "collective-calls", "rows of collective_calls are not the "},
		{&schema.CollectiveCalls{}, "collective-calls", "the 0 rows of collective_calls are not the "},
		{parts, check.RuleCollectiveParts, "the 1 rows are not the 0 sums of the rows of parts"},
		{collectives, "waits", "rows of collective_waits are not the "},
		{&schema.CollectiveWaits{}, "waits", "the 0 rows of collective_waits are not the "},
	} {
		dir := waited(t)
		tampered(t, dir, test.rows.Table(), test.rows)
		problems, err := Check(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(problems) != 1 || problems[0].Rule != test.rule || !strings.Contains(problems[0].What, test.want) {
			t.Errorf("%s of %d rows: found %v; want %q (%s)", test.rows.Table().Name, test.rows.Len(), problems,
				test.want, test.rule)
		}
		if err := MakeProfile(context.Background(), dir); err != nil {
			t.Fatal(err)
		}
		if problems, err := Check(context.Background(), dir); err != nil || len(problems) > 0 {
			t.Errorf("%s, made again: %v, %v", test.rows.Table().Name, problems, err)
		}
	}
}
