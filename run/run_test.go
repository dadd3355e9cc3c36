package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// commRows reads a table of communicators: a line each with id, kind, name (- for none) and the world ranks of the
// members, "x" for a process outside MPI_COMM_WORLD and "|" before the second group. "dims=3" before them is a grid
// that is not periodic; "to=1,2" before a member is where it sends to.
func commRows(t *testing.T, text string) *schema.Comms {
	t.Helper()
	rows := &schema.Comms{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		row := schema.NullComm
		row.Comm, row.Kind = number(t, words[0]), int16(slices.Index(schema.CommKindNames, words[1]))
		if words[2] != "-" {
			row.Name = words[2]
		}
		for _, w := range words[3:] {
			if dims, found := strings.CutPrefix(w, "dims="); found {
				row.CartDims, row.CartPeriods = dims, strings.Repeat("0", strings.Count(dims, ",")+1)
				continue
			}
			if to, found := strings.CutPrefix(w, "to="); found {
				row.GraphEdges = to
				continue
			}
			switch w {
			case "|":
				row.Remote, row.CommRank = 1, 0
				continue
			case "x":
				row.WorldRank = schema.NullInt32
			default:
				row.WorldRank = number(t, w)
			}
			rows.Append(&row)
			row.CommRank, row.GraphEdges = row.CommRank+1, schema.NullText
		}
	}
	return rows
}

// eventRows reads rows of events: a line each with rank, seq, epoch, start_ns and end_ns.
func eventRows(t *testing.T, text string) *schema.Events {
	t.Helper()
	rows := &schema.Events{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		row := schema.NullEvent
		row.Rank, row.Seq, row.Epoch = number(t, words[0]), int64(number(t, words[1])), number(t, words[2])
		row.StartNs, row.EndNs = int64(number(t, words[3])), int64(number(t, words[4]))
		row.Call, row.Class = int16(schema.CallBarrier), int16(schema.ClassCollective)
		row.Polls, row.PollNs = 3, 97
		rows.Append(&row)
	}
	return rows
}

func number(t *testing.T, word string) int32 {
	t.Helper()
	n, err := strconv.Atoi(word)
	if err != nil {
		t.Fatal(err)
	}
	return int32(n)
}

// threeRanks returns the manifest of a measured run of 3 ranks.
func threeRanks() *schema.Manifest {
	return &schema.Manifest{Ranks: 3, TimeOrigin: "measured", TimeResolutionNs: 1, ComputeClock: "cpu", Record: "all",
		Hash: "none", Ended: "finalized", Epochs: 1}
}

// write writes a run of these tables into the store and returns its folder. Without one of ranks it has a row for each.
func write(t *testing.T, store, name string, m *schema.Manifest, tables ...schema.Batch) string {
	t.Helper()
	out, err := writer.Create(store, name, writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	if !slices.ContainsFunc(tables, func(b schema.Batch) bool { return b.Table() == &schema.RanksTable }) {
		tables = append(tables, endedRanks(make([]int64, m.Ranks)))
	}
	for _, b := range tables {
		if err := out.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Commit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(store, name)
}

// A number of ranks that the table ranks does not have is an error: readers keep something for each.
func TestEveryRankHasARow(t *testing.T) {
	store := t.TempDir()
	for rows, want := range map[int]string{1: "has 1 rows", 2: "has 2 rows", 3: "", 4: "has more rows"} {
		ranks := endedRanks(make([]int64, rows))
		for i := range ranks.Rank {
			ranks.Rank[i] = min(ranks.Rank[i], 2)
		}
		dir := write(t, store, fmt.Sprint("r", rows), threeRanks(), ranks)
		_, opened := Open(t.Context(), dir, Need{})
		_, read := ReadManifest(t.Context(), dir, Need{})
		for _, err := range []error{opened, read} {
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%d rows: %v; want %q", rows, err, want)
			}
		}
	}
}

func TestOpenReadsTheSmallTables(t *testing.T) {
	ranks := &schema.RankInfos{}
	for rank := range int32(3) {
		row := schema.NullRankInfo
		row.Rank, row.Host, row.Threads, row.Events, row.Ended = rank, rank/2, 1+rank%2, 0, schema.EndedFinalized
		ranks.Append(&row)
	}
	types := &schema.Datatypes{}
	types.Append(&schema.Datatype{ID: 0, Name: "MPI_DOUBLE", Combiner: "named", Bytes: 8, ExtentBytes: 8})
	dir := write(t, t.TempDir(), "three", threeRanks(), ranks, types, commRows(t, `
		0 world MPI_COMM_WORLD 0 1 2
		1 split - 2 0
		2 inter - 0 2 | 1
		3 other - 1 x 2
		4 cart - dims=3 0 1 2
		5 dist_graph - to=1,2 0 to=0 1 2`))
	r, err := Open(t.Context(), dir, Need{AllCalls: true, Times: true})
	if err != nil {
		t.Fatal(err)
	}
	none := schema.NullInt32
	want := []Comm{
		{ID: 0, Parent: none, Kind: schema.CommWorld, FirstGroup: 3, Name: "MPI_COMM_WORLD", Members: []int32{0, 1, 2}},
		{ID: 1, Parent: none, Kind: schema.CommSplit, FirstGroup: 2, Members: []int32{2, 0}},
		{ID: 2, Parent: none, Kind: schema.CommInter, Inter: true, FirstGroup: 2, Members: []int32{0, 2, 1}},
		{ID: 3, Parent: none, Kind: schema.CommOther, HasOutside: true, FirstGroup: 3, Members: []int32{1, Outside, 2}},
		{ID: 4, Parent: none, Kind: schema.CommCart, FirstGroup: 3, Members: []int32{0, 1, 2},
			topology: &topology{dims: []int32{3}, periods: []int32{0}}},
		{ID: 5, Parent: none, Kind: schema.CommDistGraph, FirstGroup: 3, Members: []int32{0, 1, 2},
			topology: &topology{targets: [][]int32{{1, 2}, {0}}}},
	}
	if diff := cmp.Diff(want, r.Comms, cmp.AllowUnexported(Comm{}, topology{})); diff != "" {
		t.Error(diff)
	}
	if got := r.Comms[3].Inside(); !slices.Equal(got, []int32{1, 2}) {
		t.Errorf("members inside MPI_COMM_WORLD: %v", got)
	}
	if got := Intra(r.Comms); len(got) != 4 || got[1].ID != 1 || got[2].ID != 4 {
		t.Errorf("intracommunicators: %+v", got)
	}
	if diff := cmp.Diff(Ranks{Threads: []int32{1, 2, 1}, Rows: []int64{0, 0, 0}, Host: []int32{0, 0, 1}},
		r.Ranks); diff != "" {
		t.Error(diff)
	}
	if len(r.Datatypes) != 1 || r.Datatypes[0].Bytes != 8 || r.Name != "three" {
		t.Errorf("%s: %+v", r.Name, r.Datatypes)
	}
}

func TestOpenReportsAllMissingNeeds(t *testing.T) {
	for _, c := range []struct {
		name string
		m    schema.Manifest
		need Need
		want string
	}{
		{"nothing needed", schema.Manifest{Record: "messages", TimeOrigin: "untimed"}, Need{}, ""},
		{"record", schema.Manifest{Record: "messages"}, Need{Command: "replay", AllCalls: true},
			`replay: run "r" does not have the rows of all calls (record messages); capture it again with --record all`},
		{"filters", schema.Manifest{Record: "all", Filters: []string{"pcontrol", "call:MPI_S*"}}, Need{AllCalls: true},
			"run \"r\" does not have the rows of all calls (pcontrol, call:MPI_S*); capture it again without filters and with a program " +
				"that does not switch recording off (MPI_Pcontrol)"},
		{"dropped", schema.Manifest{Record: "all", Counts: schema.Counts{Dropped: 4097}}, Need{NoneDropped: true},
			`run "r" misses 4,097 calls that could not be recorded; capture it again with more space for the spool`},
		{"clock", schema.Manifest{ComputeClock: "none"}, Need{Command: "simulate", ComputeTimes: true},
			`simulate: run "r" was captured without compute times; capture it again with --clock cpu`},
		{"hashes", schema.Manifest{Hash: "none"}, Need{Hashes: true},
			`run "r" was captured without payload hashes; capture it again with --hash crc64`},
		{"hashes of a trace", schema.Manifest{Hash: "none", Origin: schema.Origin{Trace: &schema.Trace{Format: "otf2"}}},
			Need{Hashes: true}, `run "r" has no payload hashes; its trace (otf2) does not tell that: record the program ` +
				`with commq capture, with --hash crc64`},
		{"untimed", schema.Manifest{TimeOrigin: "untimed"}, Need{Times: true},
			`run "r" is untimed; commq simulate --name NAME gives it the times of a machine`},
		{"aborted", schema.Manifest{Ended: "aborted"}, Need{Playable: true},
			`run "r" was aborted before its end; only a run whose ranks all reached MPI_Finalize can be played`},
		{"several", schema.Manifest{Record: "collectives", ComputeClock: "none", Hash: "none", TimeOrigin: "untimed"},
			Need{Command: "x", AllCalls: true, Messages: true, ComputeTimes: true, Hashes: true, Times: true,
				TimesAdvice: "simulate it"},
			`x: run "r" is untimed, was captured without payload hashes, ` +
				`does not have the rows of all calls (record collectives), has no messages (record collectives) and ` +
				`was captured without compute times; ` +
				`capture it again with --hash crc64, with --record all and with --clock cpu; simulate it`},
	} {
		got := ""
		if err := c.need.Check("r", &c.m); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestStreamsRestartAndSkipEpochs(t *testing.T) {
	m := threeRanks()
	m.Epochs = 2
	dir := write(t, t.TempDir(), "two", m, eventRows(t, `
		0 0 0 10 20
		1 0 0 11 21`), eventRows(t, `
		0 1 1 30 40
		1 1 1 31 41`))
	r, err := Open(t.Context(), dir, Need{})
	if err != nil {
		t.Fatal(err)
	}
	stream := r.Events(t.Context(), "rank", "seq", "start_ns")
	for range 2 {
		var got []string
		if err := stream(func(b *schema.Events) error {
			for i := range b.Rank {
				got = append(got, fmt.Sprint(b.Rank[i], b.Seq[i], b.StartNs[i], b.EndNs[i] == schema.NullInt64))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		want := []string{"0 0 10 true", "1 0 11 true", "0 1 30 true", "1 1 31 true"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	full := errors.New("full")
	if err := stream(func(*schema.Events) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v, want the error of the reader", err)
	}
	epochs, err := r.EventEpochs("seq")
	if err != nil {
		t.Fatal(err)
	}
	if err := epochs.Skip(); err != nil {
		t.Fatal(err)
	}
	var seqs []int64
	add := func(b *schema.Events) error { seqs = append(seqs, b.Seq...); return nil }
	if err := epochs.Next(t.Context(), add); err != nil || !slices.Equal(seqs, []int64{1, 1}) {
		t.Errorf("%v, %v", seqs, err)
	}
	if err := epochs.Next(t.Context(), add); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want io.EOF", err)
	}
}

func TestPlacesOfCallSites(t *testing.T) {
	sites := &schema.Callsites{}
	for i, change := range []func(*schema.Callsite){
		func(s *schema.Callsite) { s.File, s.Line, s.Function = "solver.f", 12, "solve" },
		func(s *schema.Callsite) { s.Function = "main" },
		func(s *schema.Callsite) { s.Module, s.Offset = "a.out", 0x1234 },
		func(*schema.Callsite) {},
	} {
		row := schema.NullCallsite
		row.ID = int32(i)
		change(&row)
		sites.Append(&row)
	}
	dir := write(t, t.TempDir(), "sites", threeRanks(), sites)
	r, err := Open(t.Context(), dir, Need{})
	if err != nil {
		t.Fatal(err)
	}
	place := r.Place(t.Context())
	for id, want := range map[int32]string{0: "solver.f:12", 1: "main", 2: "a.out+0x1234", 3: "", 4: "", -1: ""} {
		if got := place(id); got != want {
			t.Errorf("call site %d: %q, want %q", id, got, want)
		}
	}
	for want, got := range map[string]string{
		"MPI_Send in solve at solver.f:12": SiteText("MPI_Send", "solve", "solver.f:12"),
		"MPI_Send at main":                 SiteText("MPI_Send", "main", "main"),
		"MPI_Send":                         SiteText("MPI_Send", "", ""),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFindResolvesNamesPathsAndPatterns(t *testing.T) {
	store, elsewhere := t.TempDir(), t.TempDir()
	for _, name := range []string{"cg.A.16", "cg.A.4", "is.A.4"} {
		write(t, store, name, threeRanks())
	}
	path := write(t, elsewhere, "far.3", threeRanks())
	for _, c := range []struct{ given, want string }{
		{"cg.A.4", "cg.A.4"},
		{path, "far.3"},
		{"cg.*", "cg.A.4 cg.A.16"},
		{"*.4 cg.*", "cg.A.4 is.A.4 cg.A.16"}, // cg.A.4 matches twice and comes once
		{"cg.A.4 cg.A.4", "cg.A.4 cg.A.4"},
	} {
		found, err := FindAll(store, strings.Fields(c.given))
		if err != nil {
			t.Errorf("%s: %v", c.given, err)
			continue
		}
		var names []string
		for _, f := range found {
			names = append(names, f.Name)
			if f.Manifest.Ranks != 3 || !filepath.IsAbs(f.Dir) {
				t.Errorf("%s: %+v", c.given, f)
			}
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.given, got, c.want)
		}
	}
	if f, err := Find(store, "is.A.4"); err != nil || f.Name != "is.A.4" || f.Manifest.Ranks != 3 {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := Find(store, "is.A.5"); err == nil || !strings.Contains(err.Error(), "did you mean is.A.4") {
		t.Errorf("%v, want a suggestion", err)
	}
}

func TestRewriteResetsTimeDependentFields(t *testing.T) {
	ranks := &schema.RankInfos{}
	row := schema.NullRankInfo
	row.Threads, row.Events, row.Polls, row.ClockOffsetInitNs, row.Ended = 1, 1, 3, 9, schema.EndedFinalized
	ranks.Append(&row)
	m := threeRanks()
	m.Ranks, m.EndNs = 1, 20
	m.Counts = schema.Counts{Calls: 1, Polls: 3, InProgress: 2, Choices: 5, OutOfOrder: 4, EarlyCollectives: 6}
	m.Origin.Simulation = &schema.Simulation{Ranks: 1}
	store := t.TempDir()
	source, err := Open(t.Context(), write(t, store, "source", m, ranks, eventRows(t, "0 0 0 10 20")), Need{})
	if err != nil {
		t.Fatal(err)
	}
	for _, origin := range []string{"", "untimed", "simulated"} {
		w, err := NewRewriter(source, Rewrite{Store: store, Name: "new" + origin, Commq: "1.2.3", TimeOrigin: origin})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		tags := map[*schema.Table]Change{&schema.EventsTable: func(b schema.Batch) (schema.Batch, error) {
			b.(*schema.Events).SendTag[0] = 9
			return b, nil
		}}
		if err := w.CopyAll(t.Context(), tags); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(t.Context(), w.Manifest()); err != nil {
			t.Fatal(err)
		}
		r, err := Open(context.Background(), filepath.Join(store, "new"+origin), Need{})
		if err != nil {
			t.Fatal(err)
		}
		events, err := Rows[schema.Event](t.Context(), r, &schema.EventsTable)
		if err != nil {
			t.Fatal(err)
		}
		infos, err := Rows[schema.RankInfo](t.Context(), r, &schema.RanksTable)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(events[0].SendTag, events[0].StartNs, events[0].Polls, infos[0].Polls,
			infos[0].ClockOffsetInitNs, r.Manifest.TimeOrigin, r.Manifest.Counts.Polls, r.Manifest.Counts.Choices,
			r.Manifest.Origin.Simulation == nil, r.Manifest.Origin.Commq)
		null := schema.NullInt64
		want := map[string]string{
			"":          fmt.Sprint(9, 10, 3, 3, 9, "measured", 3, 5, false, "1.2.3"),
			"untimed":   fmt.Sprint(9, null, null, 0, null, "untimed", 0, 0, true, "1.2.3"),
			"simulated": fmt.Sprint(9, 10, null, 0, null, "simulated", 0, 0, true, "1.2.3"),
		}[origin]
		if got != want {
			t.Errorf("%q: %s\nwant %s", origin, got, want)
		}
	}
}
