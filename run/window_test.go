package run

import (
	"testing"

	"github.com/commq/commq/schema"
	"github.com/google/go-cmp/cmp"
)

// TestUngrouped: of four windows of rank 0 the second lacks the group of a start, the third only that of a post that
// failed, and the fourth has a post without a group on rank 1 alone, where it is the first one.
func TestUngrouped(t *testing.T) {
	events, seq := &schema.Events{}, [2]int64{}
	add := func(rank int32, call schema.CallID, set func(*schema.Event)) {
		e := schema.NullEvent
		e.Rank, e.Seq, e.Call, e.Class, e.Comm = rank, seq[rank], int16(call), int16(schema.Calls[call].Class), 0
		set(&e)
		seq[rank]++
		events.Append(&e)
	}
	window := func(instance int64) func(*schema.Event) {
		return func(e *schema.Event) { e.Instance = instance }
	}
	on := func(made int64, label string, class int32) func(*schema.Event) {
		return func(e *schema.Event) { e.InitSeq, e.Label, e.ErrorClass = made, label, class }
	}
	for instance := range int64(4) {
		add(0, schema.CallWinCreate, window(instance))
	}
	add(0, schema.CallWinPost, on(0, "0-1", schema.NullInt32))
	add(0, schema.CallWinStart, on(1, "0", schema.NullInt32))
	add(0, schema.CallWinStart, on(1, schema.NullText, schema.NullInt32))
	add(0, schema.CallWinPost, on(2, schema.NullText, 8))
	add(0, schema.CallWinPost, on(3, schema.LabelNone, schema.NullInt32))
	add(1, schema.CallWinCreate, window(3))
	add(1, schema.CallWinPost, on(0, schema.NullText, schema.NullInt32))
	comms := commRows(t, "0 world MPI_COMM_WORLD 0 1")
	m := threeRanks()
	m.Ranks = 2
	r, err := Open(t.Context(), write(t, t.TempDir(), "windows", m, events, comms, endedRanks(seq[:])), Need{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Ungrouped(t.Context())
	if diff := cmp.Diff(map[WindowKey]bool{{0, 1}: true, {0, 3}: true}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// endedRanks are ranks of one thread with so many rows.
func endedRanks(rows []int64) *schema.RankInfos {
	ranks := &schema.RankInfos{}
	for rank, n := range rows {
		row := schema.NullRankInfo
		row.Rank, row.Threads, row.Events, row.Ended = int32(rank), 1, n, schema.EndedFinalized
		ranks.Append(&row)
	}
	return ranks
}
