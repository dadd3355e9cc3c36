package queries_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// derivedQueries are queries that are answered from derived tables other than profile.
var derivedQueries = [][]string{
	{"late-senders"}, {"late-receivers"}, {"wait-states", "by", "rank"}, {"wait-states", "until", "last"},
	{"latency"}, {"latency-fit"}, {"message-times"},
	{"collective-wait"}, {"collective-wait", "until", "last"}, {"duplicates"}, {"duplicates", "min-bytes", "4097"},
	{"duplicate-callsites"}, {"duplicate-callsites", "by", "path"},
	{"density"}, {"sizes"}, {"sizes", "unit", "elements"}, {"tags"}, {"communicators"}, {"datatypes"}, {"by-rank"}, {"ratio"},
	{"measures"}, {"density", "collectives", "logical"}, {"density", "collectives", "tree"}, {"density", "collectives", "none"},
	{"data-density"}, {"collectives"}, {"sizes", "collectives", "calls"}, {"locality", "collectives", "rooted"},
	{"sizes", "collectives", "calls", "unit", "elements"}, {"unmatched"},
}

// withoutSums returns a run without its derived tables, except profile.
func withoutSums(run queries.Run) queries.Run {
	m := *run.Manifest
	m.Tables = slices.Clone(m.Tables)
	for i, t := range schema.Tables() {
		if t.Derived && t != &schema.ProfileTable {
			m.Tables[i] = schema.TableInfo{Name: t.Name}
		}
	}
	run.Manifest = &m
	return run
}

// TestDerivedTablesEqualTheirSQL cuts runs into many epochs and compares the derived tables of the writer with those
// that SQL computes from events and messages if the tables are missing.
func TestDerivedTablesEqualTheirSQL(t *testing.T) {
	for _, name := range []string{"pingpong.2", "cg.A.4", "mg.W.32", "is.W.16"} {
		for _, epochs := range []int{1, 40} {
			run := cutIntoEpochs(t, filepath.Join("..", "testdata", "runs", name), epochs)
			fromTables, fromSQL := open(t, run), open(t, withoutSums(run))
			if d := gocmp.Diff(askOpen(t, fromTables, "message-times", "where", "bytes >= 0"),
				askOpen(t, fromTables, "message-times")); d != "" {
				t.Errorf("%s, %d epochs (-where bytes >= 0 +without):\n%s", name, epochs, d)
			}
			for _, q := range []string{"density", "sizes"} {
				if d := gocmp.Diff(askOpen(t, fromTables, q, "where", "bytes >= 0"), askOpen(t, fromTables, q)); d != "" {
					t.Errorf("%s, %d epochs, %s (-where bytes >= 0 +without):\n%s", name, epochs, q, d)
				}
			}
			for i, table := range schema.Tables() {
				if info := run.Manifest.Tables[i]; table.Derived && len(info.Files) == 0 || info.Rows == 0 &&
					(info.Name == "waits" || info.Name == "transfers") {
					t.Errorf("%s: no rows of %s", name, info.Name)
				}
			}
			if named(t, "duplicates").Check(run) == nil {
				if d := gocmp.Diff(askOpen(t, fromTables, "duplicates", "where", "bytes >= 0"),
					askOpen(t, fromTables, "duplicates")); d != "" {
					t.Errorf("%s, %d epochs (-where bytes >= 0 +without):\n%s", name, epochs, d)
				}
			}
			for _, q := range derivedQueries {
				if named(t, q[0]).Check(run) != nil { // mg.W.32 has no rows of calls with messages
					continue
				}
				if d := gocmp.Diff(askOpen(t, fromSQL, q[0], q[1:]...), askOpen(t, fromTables, q[0], q[1:]...)); d != "" {
					t.Errorf("%s, %d epochs, %s (-from SQL +from the table):\n%s", name, epochs, q, d)
				}
			}
		}
	}
}

// TestLostTime: the measure lost_ns is the row all of wait-states, of each of several runs, also where the sums of
// waits are missing. Runs that cannot answer wait-states do not have it.
func TestLostTime(t *testing.T) {
	var runs []queries.Run
	want := map[string]string{}
	for _, name := range []string{"uneven.4", "cg.A.4", "is.W.16", "ep.W.4", "mg.W.32"} {
		run := captured(t, name)
		runs = append(runs, run)
		if named(t, "wait-states").Check(run) != nil {
			continue
		}
		for line := range strings.Lines(ask(t, run, "wait-states")) {
			if cells := strings.Split(line, ","); cells[0] == "all" {
				want[name] = cells[3]
			}
		}
	}
	if len(want) != 4 || want["uneven.4"] == "0" {
		t.Fatal(want)
	}
	lost := func(runs ...queries.Run) map[string]string {
		got := map[string]string{}
		for line := range strings.Lines(askOver(t, runs, "measures")) {
			if cells := strings.Split(line, ","); cells[1] == "lost_ns" {
				got[cells[0]] = cells[3]
			}
		}
		return got
	}
	if d := gocmp.Diff(want, lost(runs...)); d != "" {
		t.Errorf("-wait-states +measures:\n%s", d)
	}
	if got := lost(withoutSums(runs[0]), withoutSums(runs[1])); got["uneven.4"] != want["uneven.4"] ||
		got["cg.A.4"] != want["cg.A.4"] {
		t.Errorf("without sums: %v, want %v", got, want)
	}
}

// sameWithoutSums compares waits in collectives as the writer sums them with those that SQL computes from events.
func sameWithoutSums(t *testing.T, run queries.Run) {
	t.Helper()
	without := withoutSums(run)
	for _, until := range schema.UntilNames {
		if d := gocmp.Diff(ask(t, without, "collective-wait", "until", until),
			ask(t, run, "collective-wait", "until", until)); d != "" {
			t.Errorf("%s, until %s (-from SQL +from the table):\n%s", run.Name, until, d)
		}
	}
}

// cutIntoEpochs writes a run anew, with the rows of each rank in this number of epochs, cut at random places.
func cutIntoEpochs(t *testing.T, dir string, epochs int) queries.Run {
	t.Helper()
	ctx := context.Background()
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	cuts := map[int32][]int64{} // by rank, the seqs at which epochs begin
	store := t.TempDir()
	out, err := writer.Create(store, filepath.Base(dir), writer.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	epochOf := func(rank int32, seq int64) int32 {
		n, found := slices.BinarySearch(cuts[rank], seq)
		if found {
			n++
		}
		return int32(n)
	}
	events, messages := make([]schema.Events, epochs), make([]schema.Messages, epochs)
	for _, table := range []*schema.Table{&schema.RanksTable, &schema.EventsTable, &schema.MessagesTable} {
		err := writer.ReadTable(ctx, dir, table, 1<<16, func(b schema.Batch) error {
			switch x := b.(type) {
			case *schema.RankInfos:
				for i, rank := range x.Rank {
					for range epochs - 1 {
						cuts[rank] = append(cuts[rank], rng.Int64N(x.Events[i]))
					}
					slices.Sort(cuts[rank])
				}
			case *schema.Events:
				var row schema.Event
				for i := range x.Rank {
					x.Row(i, &row)
					row.Epoch = epochOf(row.Rank, row.Seq)
					events[row.Epoch].Append(&row)
				}
			case *schema.Messages:
				var row schema.Message
				for i := range x.Src {
					x.Row(i, &row)
					row.Epoch = max(epochOf(row.Src, row.SendSeq), epochOf(row.Dst, row.RecvPostSeq))
					messages[row.Epoch].Append(&row)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for e := range epochs {
		for _, b := range []schema.Batch{&events[e], sortedMessages(&messages[e])} {
			if err := out.Write(0, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, table := range []*schema.Table{&schema.RanksTable, &schema.CommsTable, &schema.CallsitesTable,
		&schema.DatatypesTable} {
		if err := out.CopyTable(ctx, dir, table, 1<<16, nil); err != nil {
			t.Fatal(err)
		}
	}
	parts := &schema.Parts{}
	err = writer.ReadTable(ctx, dir, &schema.PartsTable, 1<<16, func(b schema.Batch) error {
		var row schema.Part
		for i := range b.Len() {
			b.(*schema.Parts).Row(i, &row)
			row.Epoch = epochOf(row.Rank, row.Seq)
			parts.Append(&row)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Write(0, sortedParts(parts)); err != nil {
		t.Fatal(err)
	}
	m.Epochs = int32(epochs)
	if err := out.Commit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return queries.Run{Name: filepath.Base(dir), Dir: filepath.Join(store, filepath.Base(dir)), Manifest: m}
}

func sortedMessages(b *schema.Messages) *schema.Messages {
	rows := make([]schema.Message, b.Len())
	for i := range rows {
		b.Row(i, &rows[i])
	}
	slices.SortFunc(rows, func(x, y schema.Message) int {
		return cmp.Or(cmp.Compare(x.Src, y.Src), cmp.Compare(x.SendSeq, y.SendSeq))
	})
	out := &schema.Messages{}
	for i := range rows {
		out.Append(&rows[i])
	}
	return out
}

func sortedParts(b *schema.Parts) *schema.Parts {
	rows := make([]schema.Part, b.Len())
	for i := range rows {
		b.Row(i, &rows[i])
	}
	slices.SortFunc(rows, func(x, y schema.Part) int {
		return cmp.Or(cmp.Compare(x.Epoch, y.Epoch), cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Seq, y.Seq),
			cmp.Compare(x.PeerWorld, y.PeerWorld))
	})
	out := &schema.Parts{}
	for i := range rows {
		out.Append(&rows[i])
	}
	return out
}
