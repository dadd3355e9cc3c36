package writer

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/derive"
)

// active writes a valid run with just enough calls for the table activity: two ranks call the same function again and
// again. waits begins the sums as ingest does, so that they are made as rows are written and not from the files.
func active(t *testing.T, waits bool) (dir string, m *schema.Manifest) {
	t.Helper()
	store := t.TempDir()
	r := mustCreate(t, store, "active")
	defer r.Abort()
	ranks, comms, events := &schema.RankInfos{}, &schema.Comms{}, &schema.Events{}
	const calls = derive.ActivityCalls / 2
	for rank := range int32(2) {
		ranks.Append(&schema.RankInfo{Rank: rank, Threads: 1, Ended: schema.EndedFinalized, Events: calls})
		comms.Append(&schema.Comm{CommRank: rank, WorldRank: rank, Name: schema.NullText, Parent: schema.NullInt32,
			CartDims: schema.NullText, CartPeriods: schema.NullText, GraphEdges: schema.NullText})
		for seq := range int64(calls) {
			e := schema.NullEvent
			e.Rank, e.Seq, e.Call, e.Class = rank, seq, int16(schema.CallAbort), int16(schema.ClassOther)
			e.StartNs, e.EndNs = 1000*seq, 1000*seq+97+int64(rank)
			events.Append(&e)
		}
	}
	if waits {
		w := r.SumWaits(ranks.Host, comms, true)
		w.AddEvents(events)
	}
	for _, b := range []schema.Batch{ranks, comms, events} {
		if err := r.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	m = testManifest()
	m.Ranks, m.Epochs, m.EndNs = 2, 1, events.EndNs[events.Len()-1]
	m.Counts.Calls = 2 * calls
	if err := r.Commit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(store, "active"), m
}

// TestWriterMakesActivity makes the table as rows are written, from files and anew, and finds one with a wrong row.
func TestWriterMakesActivity(t *testing.T) {
	at := slices.Index(schema.Tables(), &schema.ActivityTable)
	dir, read := active(t, false)
	_, summed := active(t, true)
	if got, want := summed.Tables[at], read.Tables[at]; got.Digest != want.Digest || got.Rows == 0 {
		t.Errorf("as rows were written %+v, from files %+v", got, want)
	}
	rows, calls := &schema.ActivityCells{}, map[int32]int64{} // calls by step_power
	readAll(t, dir, &schema.ActivityTable, 100, func(b *schema.ActivityCells, i int) {
		var row schema.ActivityCell
		b.Row(i, &row)
		rows.Append(&row)
		calls[row.StepPower] += row.Calls
	})
	// 262,144 calls in 131 ms: 1,365 cells; with steps of 2^18 ns it is 500 for each rank, then 125 of 2^20 ns.
	if len(calls) != 2 || calls[18] != derive.ActivityCalls || calls[20] != derive.ActivityCalls {
		t.Fatalf("calls by step_power: %v", calls)
	}
	check := func(what, want string) {
		t.Helper()
		problems, err := Check(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" && len(problems) > 0 || want != "" && (len(problems) != 1 || !strings.Contains(problems[0].What, want)) {
			t.Errorf("%s: found %v; want %q", what, problems, want)
		}
	}
	check("whole", "")
	rows.TimeNs[3]++
	tampered(t, dir, &schema.ActivityTable, rows)
	check("a wrong time", "rows of activity are not the")
	tampered(t, dir, &schema.ActivityTable, &schema.ActivityCells{})
	check("no rows", "the 0 rows of activity are not the")
	if err := MakeProfile(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	check("made again", "")
}
