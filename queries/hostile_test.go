package queries_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/queries/plot"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// ringRun is a program in which ranks pass messages around a ring and use a little of everything, so that nearly
// every query has rows. Rank 0's last send has no receive. text returns the texts in the tables, given what each of
// them names.
type ringRun struct {
	ranks int
	text  func(what string) string
}

// ringRows are the rows of each rank, the last of which only rank 0 has.
const ringRows = 15

func (g ringRun) write(t testing.TB, store, name string, m schema.Manifest) queries.Run {
	t.Helper()
	run, err := writer.Create(store, name, writer.Options{Check: g.ranks < 10})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Abort()
	events, messages, comms, ranks := &schema.Events{}, &schema.Messages{}, &schema.Comms{}, &schema.RankInfos{}
	sites, types := &schema.Callsites{}, &schema.Datatypes{}
	for rank := range g.ranks {
		g.rank(rank, events)
		g.send(rank, messages)
		c, i := schema.NullComm, schema.NullRankInfo
		c.CommRank, c.WorldRank, c.Kind, c.Name = int32(rank), int32(rank), int16(schema.CommWorld),
			g.text("communicator")
		i.Rank, i.Host, i.Threads, i.Ended, i.Events = int32(rank), int32(rank/48), 1, schema.EndedFinalized, ringRows-1
		i.ClockErrorInitNs, i.ClockErrorFinalNs = 3, 5
		if rank == 0 {
			i.Events++
		}
		comms.Append(&c)
		ranks.Append(&i)
	}
	for id := range int32(3) {
		c := schema.NullCallsite
		c.ID, c.Module, c.Offset, c.Function, c.File, c.Line = id, g.text("module"), int64(id)*16,
			g.text(fmt.Sprint("function", id)), g.text("source"), 9+id
		if id > 0 {
			c.Parent = 0
		}
		sites.Append(&c)
	}
	types.Append(&schema.Datatype{ID: 0, Name: g.text("datatype"), Combiner: "named", Bytes: 1, ExtentBytes: 1})
	for _, b := range []schema.Batch{events, messages, comms, ranks, sites, types} {
		if err := run.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	m.Origin.Label, m.Origin.Command, m.Origin.MPI, m.Origin.Hosts = g.text("label"), []string{g.text("program")},
		g.text("mpi"), []string{g.text("host")}
	m.EndNs = slices.Max(events.EndNs)
	m.Counts = schema.Counts{Calls: int64(events.Len()), Messages: int64(messages.Len()),
		MessageBytes: int64(messages.Len()) * 4097,
		Collectives:  3, UnmatchedSends: 1, WildcardReceives: int64(g.ranks)}
	if err := run.Commit(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(store, name)
	read, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	return queries.Run{Name: name, Dir: dir, Manifest: read}
}

// at returns when row seq of a rank begins and ends: after 600 ns, on odd ranks 690 ns.
func (g ringRun) at(rank int, seq int64) (start, end int64) {
	return seq*1000 + int64(rank%7*30), seq*1000 + int64(rank%7*30+600+rank%2*90)
}

// rank appends the rows of a rank.
func (g ringRun) rank(rank int, events *schema.Events) {
	next, last := int32((rank+1)%g.ranks), int32((rank+g.ranks-1)%g.ranks)
	send := func(e *schema.Event) {
		e.Comm, e.SendPeer, e.SendWorld, e.SendTag, e.SendCount, e.SendDatatype, e.SendBytes, e.ProcNull = 0, next,
			next, 9, 4097, 0, 4097, 0
	}
	receive := func(e *schema.Event) {
		e.Comm, e.RecvPeer, e.RecvWorld, e.RecvTag, e.RecvCount, e.RecvDatatype, e.RecvBytes, e.ProcNull,
			e.PostedAny = 0, last, last, 9, 4097, 0, 4097, 0, 0
	}
	for seq, r := range [ringRows]struct {
		call  schema.CallID
		class schema.Class
		fill  func(e *schema.Event)
	}{
		{schema.CallInit, schema.ClassOther, func(e *schema.Event) {}},
		{schema.CallIrecv, schema.ClassRecv, func(e *schema.Event) {
			receive(e)
			e.PostedAny, e.Request, e.DoneSeq = schema.AnySource|schema.AnyTag, 1, 3
		}},
		{schema.CallIsend, schema.ClassSend, func(e *schema.Event) { send(e); e.Request, e.DoneSeq = 2, 4 }},
		{schema.CallWait, schema.ClassComplete, func(e *schema.Event) { e.Request = 1 }},
		{schema.CallWait, schema.ClassComplete, func(e *schema.Event) { e.Request = 2 }},
		{schema.CallSendrecv, schema.ClassSendrecv, func(e *schema.Event) { send(e); receive(e) }},
		{schema.CallBarrier, schema.ClassCollective,
			func(e *schema.Event) { e.Comm, e.Instance, e.SendBytes, e.RecvBytes = 0, 0, 0, 0 }},
		{schema.CallAllreduce, schema.ClassCollective, func(e *schema.Event) {
			e.Comm, e.Instance, e.SendCount, e.SendDatatype, e.SendBytes, e.RecvCount, e.RecvDatatype, e.RecvBytes = 0,
				1, 24, 0, 24, 24, 0, 24
		}},
		{schema.CallBcast, schema.ClassCollective, func(e *schema.Event) {
			e.Comm, e.Instance, e.RootWorld, e.SendBytes, e.RecvBytes = 0, 2, 0, 0, 17
			if rank == 0 {
				e.SendBytes, e.RecvBytes = 17, 0
			}
		}},
		{schema.CallFileOpen, schema.ClassIO,
			func(e *schema.Event) { e.Comm, e.Instance, e.Label = 0, 3, g.text("file") }},
		{schema.CallFileWriteAt, schema.ClassIO, func(e *schema.Event) {
			e.Comm, e.InitSeq, e.SendCount, e.SendDatatype, e.SendBytes = 0, 9, 800, 0, 800
		}},
		{schema.CallWinCreate, schema.ClassRMA, func(e *schema.Event) { e.Comm, e.Instance = 0, 4 }},
		{schema.CallPut, schema.ClassRMA, func(e *schema.Event) {
			e.Comm, e.InitSeq, e.SendPeer, e.SendWorld, e.SendCount, e.SendDatatype, e.SendBytes, e.ProcNull = 0, 11,
				next, next, 12, 0, 12, 0
		}},
		{schema.CallFinalize, schema.ClassOther, func(e *schema.Event) {}},
		{schema.CallIsend, schema.ClassSend, func(e *schema.Event) { send(e); e.SendTag, e.Request = 5, 3 }},
	} {
		if seq == ringRows-1 && rank > 0 {
			return
		}
		e := schema.NullEvent
		e.Rank, e.Seq, e.Call, e.Class, e.Callsite, e.ComputeNs = int32(rank), int64(seq), int16(r.call),
			int16(r.class), int32(seq%3), 310
		e.StartNs, e.EndNs = g.at(rank, e.Seq)
		r.fill(&e)
		events.Append(&e)
	}
}

// send appends the two messages of a rank, of one payload.
func (g ringRun) send(rank int, messages *schema.Messages) {
	dst := (rank + 1) % g.ranks
	for _, seqs := range [][3]int64{{2, 1, 3}, {5, 5, 5}} {
		m := schema.NullMessage
		m.Src, m.Dst, m.Tag, m.Bytes, m.SendCount, m.SendDatatype = int32(rank), int32(dst), 9, 4097, 4097, 0
		m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = seqs[0], seqs[1], seqs[2]
		m.SendStartNs, m.SendEndNs = g.at(rank, seqs[0])
		m.RecvPostNs, _ = g.at(dst, seqs[1])
		m.RecvStartNs, m.RecvEndNs = g.at(dst, seqs[2])
		m.PayloadHash, m.PayloadHead = 77, 7
		m.SendCallsite, m.RecvCallsite = int32(seqs[0]%3), int32(seqs[2]%3)
		messages.Append(&m)
	}
}

// hostile returns a text that breaks any consumer that does not treat it as plain text.
func hostile(what string) string {
	return `it's "` + what + "\"; DROP VIEW messages; --\x1b[31m\x1b]0;gone\x07\u009b2J\x7f\r\n\t\u202e<script>alert(1)</script>|`$(reboot)`\\%s{{where}}"
}

// hostileName returns the part of hostile that can name a folder that the engine can open.
func hostileName() string { return strings.NewReplacer("/", "!", `\`, "!").Replace(hostile("run")) }

// renamed moves a run to a folder whose name no run made by commq has.
func renamed(t testing.TB, run queries.Run, name string) queries.Run {
	t.Helper()
	dir := filepath.Join(filepath.Dir(run.Dir), name)
	if err := os.Rename(run.Dir, dir); err != nil {
		t.Fatal(err)
	}
	return queries.Run{Name: name, Dir: dir, Manifest: run.Manifest}
}

func all(t testing.TB) []*queries.Query {
	t.Helper()
	all, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// choicesThatFit returns the sets of everyChoice, completed by the further parameters that some choices need.
func choicesThatFit(t *testing.T, q *queries.Query, run queries.Run) []map[string]string {
	sets := everyChoice(t, q)
	for _, args := range sets {
		if args["topology"] == "torus" || args["topology"] == "tree" {
			args["dims"] = "3x5"
		}
		if args["mapping"] == "file" {
			var b strings.Builder
			b.WriteString("rank,node\n")
			for rank := range run.Manifest.Ranks {
				fmt.Fprintf(&b, "%d,%d\n", rank, rank%3)
			}
			args["rankmap"] = filepath.Join(t.TempDir(), "map.csv")
			if err := os.WriteFile(args["rankmap"], []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return sets
}

// answered returns the answer to a query, read into memory.
func answered(t testing.TB, db *queries.DB, q *queries.Query, args map[string]string) queries.Rows {
	t.Helper()
	rows, err := db.Ask(context.Background(), q, args)
	if err != nil {
		t.Fatalf("%s %v: %v", q.Name, args, err)
	}
	kept, err := queries.Keep(rows)
	if err := errors.Join(err, rows.Close()); err != nil {
		t.Fatalf("%s %v: %v", q.Name, args, err)
	}
	return kept
}

// printed prints rows in a format.
func printed(t testing.TB, rows queries.Rows, format string) string {
	t.Helper()
	var b bytes.Buffer
	if err := output.Write(&b, format, queries.Again(rows)); err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	return b.String()
}

// TestHostileNames asks every query, with every choice of its parameters, of a run in which every text is hostile,
// and prints and draws the answers in every format.
func TestHostileNames(t *testing.T) {
	run := renamed(t, ringRun{5, hostile}.write(t, t.TempDir(), "ring.5", example.Manifest(5)), hostileName())
	db := open(t, run)
	for _, q := range all(t) {
		for _, args := range choicesThatFit(t, q, run) {
			rows := answered(t, db, q, args)
			checkPrinted(t, fmt.Sprint(q.Name, args), queries.InRun(run.Name, rows))
			if q.Plot != nil && len(args) == 0 {
				checkDrawn(t, q, rows, run, args)
			}
		}
	}
	for _, c := range []struct{ query, column, what string }{
		{"communicators", "name", "communicator"}, {"datatypes", "name", "datatype"}, {"files", "file", "file"},
		{"callsites", "function", "function2"}, {"callsite-time", "module", "module"},
		{"duplicate-callsites", "file", "source"},
	} {
		rows := answered(t, db, named(t, c.query), nil)
		at := slices.IndexFunc(rows.Columns(), func(x queries.Column) bool { return x.Name == c.column })
		found := false
		for rows.Next() {
			found = found || rows.Row()[at] == hostile(c.what)
		}
		if !found {
			t.Errorf("%s: no %s is %q", c.query, c.column, hostile(c.what))
		}
	}
	rows, err := db.Query(context.Background(), "SELECT count(*), min(run) = max(run), min(run) FROM messages")
	if got, want := text(t, rows, err), "10,true,"; !strings.HasPrefix(got, want) {
		t.Errorf("messages: %q; want %q", got, want)
	}
}

// checkPrinted compares the output in each format with the rows, and looks for control sequences of terminals in the
// formats for people.
func checkPrinted(t *testing.T, what string, rows queries.Rows) {
	t.Helper()
	rows, err := queries.Keep(rows)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for again := queries.Again(rows); again.Next(); n++ {
	}
	for _, format := range []string{"table", "markdown"} {
		out := printed(t, rows, format)
		if i := strings.IndexFunc(out, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }); i >= 0 {
			t.Errorf("%s: %s holds %q", what, format, out[i:min(len(out), i+20)])
		}
		head := map[string]int{"table": 1, "markdown": 2}[format]
		if lines := strings.Count(out, "\n"); lines != n+head {
			t.Errorf("%s: %s has %d lines for %d rows:\n%s", what, format, lines, n, out)
		}
	}
	records, err := csv.NewReader(strings.NewReader(printed(t, rows, "csv"))).ReadAll()
	if err != nil || len(records) != n+1 {
		t.Errorf("%s: csv has %d records for %d rows, %v", what, len(records), n, err)
	}
	var objects []map[string]any
	if err := json.Unmarshal([]byte(printed(t, rows, "json")), &objects); err != nil || len(objects) != n {
		t.Errorf("%s: json has %d objects for %d rows, %v", what, len(objects), n, err)
	}
	again := queries.Again(rows)
	for i := 0; again.Next() && i < min(len(objects), len(records)-1); i++ {
		for k, c := range again.Columns() {
			want, isText := again.Row()[k].(string)
			if !isText {
				continue
			}
			if got := objects[i][c.Name]; got != want {
				t.Errorf("%s: row %d: json has %s %q; want %q", what, i, c.Name, got, want)
			}
			// RFC 4180 readers treat \r
			//  in a field as
			// .
			if got := records[i+1][k]; got != printable.Cell(strings.ReplaceAll(want, "\r\n", "\n")) {
				t.Errorf("%s: row %d: csv has %s %q; want %q", what, i, c.Name, got, want)
			}
		}
	}
	for _, format := range []string{"parquet", "arrow"} {
		if out := printed(t, rows, format); len(out) < 100 {
			t.Errorf("%s: %s of %d bytes", what, format, len(out))
		}
	}
}

// checkDrawn draws the rows in every format; the SVG must be well-formed and have no element but those of pictures.
func checkDrawn(t *testing.T, q *queries.Query, rows queries.Rows, run queries.Run, args map[string]string) {
	t.Helper()
	d, err := q.Drawing(queries.Again(rows), []queries.Run{run}, args)
	if err != nil {
		t.Errorf("draw %s: %v", q.Name, err)
		return
	}
	for _, format := range []string{"png", "pdf", "svg"} {
		var b bytes.Buffer
		if err := d.Draw(&b, plot.Options{Format: format}); err != nil || b.Len() < 500 {
			t.Errorf("draw %s as %s: %d bytes, %v", q.Name, format, b.Len(), err)
		}
		if format == "svg" {
			checkSVG(t, q.Name, b.Bytes())
		}
	}
}

func checkSVG(t *testing.T, what string, svg []byte) {
	t.Helper()
	known := []string{"svg", "g", "path", "text", "image", "rect", "defs", "style", "title"}
	dec := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Errorf("%s: the SVG is not well-formed: %v", what, err)
			return
		}
		if e, ok := token.(xml.StartElement); ok && !slices.Contains(known, e.Name.Local) {
			t.Errorf("%s: the SVG has an element %s", what, e.Name.Local)
		}
	}
}

// TestOneRank asks every query of a run of one rank, which sends to itself.
func TestOneRank(t *testing.T) {
	run := ringRun{1, func(what string) string { return what }}.write(t, t.TempDir(), "ring.1", example.Manifest(1))
	db := open(t, run)
	for _, q := range all(t) {
		for _, args := range choicesThatFit(t, q, run) {
			rows := answered(t, db, q, args)
			checkPrinted(t, fmt.Sprint(q.Name, args), rows)
			if q.Plot != nil && len(args) == 0 {
				checkDrawn(t, q, rows, run, args)
			}
		}
	}
	for _, c := range []struct{ query, want string }{
		{"density", "0,0,2,8194"},
		{"partners", "0,0,0,0,0,0,0,0,,,,2,8194"},
		{"ratio", "1,point-to-point,2,2,0.4\n1,collective,3,3,0.6"},
		{"locality", "self,0,1,2,8194,1,1,0"},
		{"unmatched", "0,14,send,MPI_Isend,0,0,5,4097"},
		{"tags", "0,9,2,8194,4097,4097,1,1,1"},
		{"duplicates", "0,0,2,8194,1,4097,1,4097,0,0,0"},
		{"late-senders", ""},
	} {
		same(t, c.query, ask(t, run, c.query), c.want)
	}
}

// TestEmptyRunIsDrawn draws the answers about runs without rows. TestEveryQueryKeepsItsHeader checks that these
// answers are empty.
func TestEmptyRunIsDrawn(t *testing.T) {
	run := newRun(t, "empty.1", "", example.Manifest(1))
	db := open(t, run)
	for _, q := range all(t) {
		if rows := answered(t, db, q, nil); q.Plot != nil {
			checkPrinted(t, q.Name, rows)
			checkDrawn(t, q, rows, run, nil)
		}
	}
}

// TestCrowd asks every query of a run of 100,000 ranks with four events' worth of traffic each.
func TestCrowd(t *testing.T) {
	const ranks = 100_000
	run := ringRun{ranks, func(what string) string { return what }}.write(t, t.TempDir(), "crowd.100000", example.Manifest(ranks))
	db, err := queries.Open(context.Background(), []queries.Run{run}, queries.Options{MemoryBytes: 1 << 30, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	want := map[string]int{ // rows
		"density": 3*ranks - 4, // the ring, and to and from rank 0, of which two pairs are in the ring
		"by-rank": ranks, "partners": ranks, "ratio": 2, "collectives": 3, "unmatched": 1, "tags": 1, "files": 1,
		"one-sided": ranks, "wildcards": ranks, "time-by-rank": ranks,
	}
	for _, q := range all(t) {
		rows := answered(t, db, q, nil)
		n := 0
		for again := queries.Again(rows); again.Next(); n++ {
		}
		if w, ok := want[q.Name]; ok && n != w {
			t.Errorf("%s: %d rows; want %d", q.Name, n, w)
		}
		if q.Plot == nil {
			continue
		}
		d, err := q.Drawing(queries.Again(rows), []queries.Run{run}, nil)
		if err != nil {
			t.Errorf("draw %s: %v", q.Name, err)
			continue
		}
		formats := []string{"svg"} // it could grow with the rows
		if q.Name == "density" || q.Name == "by-rank" {
			formats = []string{"svg", "png", "pdf"}
		}
		for _, format := range formats {
			var b bytes.Buffer
			if err := d.Draw(&b, plot.Options{Format: format}); err != nil || b.Len() > 12<<20 {
				t.Errorf("draw %s as %s: %d bytes, %v", q.Name, format, b.Len(), err)
			}
		}
	}
	for _, mode := range []string{"logical", "tree", "none"} {
		rows := answered(t, db, named(t, "density"), map[string]string{"collectives": mode})
		messages := int64(0)
		for rows.Next() {
			messages += rows.Row()[2].(int64)
		}
		// Two messages of each rank, and of the barrier and the allreduce an edge up and one down, of the broadcast
		// one.
		want := int64(2*ranks + 5*(ranks-1))
		if mode == "none" {
			want = 2 * ranks
		}
		if messages != want {
			t.Errorf("density with collectives %s: %d messages; want %d", mode, messages, want)
		}
	}
}

// damages are ways in which a table's file can be wrong. Each changes the file; with size set, the manifest is
// changed to the new size.
var damages = []struct {
	what string
	size bool // the manifest has the file's new size
	do   func(t *testing.T, db *queries.DB, file string, table *schema.Table)
	want string
}{
	{"empty", false, truncate(0, 1), "has 0 bytes, the manifest says"},
	{"empty, and the manifest knows", true, truncate(0, 1), "not a whole Parquet file"},
	{"cut in the middle", false, truncate(1, 2), "bytes, the manifest says"},
	{"cut in the middle, and the manifest knows", true, truncate(1, 2), "not a whole Parquet file"},
	{"another program's", true, foreign("SELECT 3 AS a, 'x' AS b"), "no column"},
	{"of other types", true, foreignTypes, "is VARCHAR; want"},
	{"without a column", true, withoutColumn, "no column"},
	{"text", true, func(t *testing.T, _ *queries.DB, file string, _ *schema.Table) {
		if err := os.WriteFile(file, []byte(strings.Repeat("src,dst,bytes\n", 30)), 0o644); err != nil {
			t.Fatal(err)
		}
	}, "not a whole Parquet file"},
}

func truncate(num, den int64) func(*testing.T, *queries.DB, string, *schema.Table) {
	return func(t *testing.T, _ *queries.DB, file string, _ *schema.Table) {
		info, err := os.Stat(file)
		if err == nil {
			err = os.Truncate(file, info.Size()*num/den)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// foreign replaces the file by the result of an SQL query.
func foreign(sql string) func(*testing.T, *queries.DB, string, *schema.Table) {
	return func(t *testing.T, db *queries.DB, file string, _ *schema.Table) {
		rows, err := db.Query(context.Background(), sql)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var b bytes.Buffer
		if err := errors.Join(output.Write(&b, "parquet", rows), os.WriteFile(file, b.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func foreignTypes(t *testing.T, db *queries.DB, file string, table *schema.Table) {
	columns := make([]string, len(table.Columns))
	for i, c := range table.Columns {
		columns[i] = `'7' AS "` + c.Name + `"`
	}
	foreign("SELECT "+strings.Join(columns, ", "))(t, db, file, table)
}

func withoutColumn(t *testing.T, db *queries.DB, file string, table *schema.Table) {
	columns := make([]string, len(table.Columns)-1)
	for i, c := range table.Columns[1:] {
		columns[i] = `"` + c.Name + `"`
	}
	foreign("SELECT "+strings.Join(columns, ", ")+" FROM "+table.Name)(t, db, file, table)
}

// TestDamagedTables damages each table of a run in each way: the error of opening it names the file, what was found,
// and what to do.
func TestDamagedTables(t *testing.T) {
	whole := ringRun{3, func(what string) string { return what }}.write(t, t.TempDir(), "ring.3", example.Manifest(3))
	db := open(t, whole)
	for _, table := range schema.Tables() {
		for _, d := range damages {
			run := queries.Run{Name: "hurt.3", Dir: filepath.Join(t.TempDir(), "it's hurt")}
			if err := os.CopyFS(run.Dir, os.DirFS(whole.Dir)); err != nil {
				t.Fatal(err)
			}
			m := *whole.Manifest
			m.Tables = slices.Clone(m.Tables)
			run.Manifest = &m
			at := slices.IndexFunc(m.Tables, func(i schema.TableInfo) bool { return i.Name == table.Name })
			path := m.Tables[at].Files[0].Path
			d.do(t, db, filepath.Join(run.Dir, path), table)
			if d.size {
				info, err := os.Stat(filepath.Join(run.Dir, path))
				if err != nil {
					t.Fatal(err)
				}
				m.Tables[at].Files = []schema.FileInfo{{Path: path, Rows: m.Tables[at].Rows, Bytes: info.Size()}}
			}
			err := askTable(t, run, table)
			if err == nil {
				t.Errorf("%s %s: no error", table.Name, d.what)
				continue
			}
			for _, want := range []string{`run "hurt.3": ` + path, d.want, `commq runs check "` + run.Dir + `"`} {
				if !strings.Contains(strings.ReplaceAll(err.Error(), `'`+strings.ReplaceAll(run.Dir, `'`, `'\''`)+`'`,
					`"`+run.Dir+`"`), want) && !strings.Contains(err.Error(), want) {
					t.Errorf("%s %s: error %v; want one with %q", table.Name, d.what, err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%s %s: error of several lines: %v", table.Name, d.what, err)
			}
		}
	}
}

// askTable opens a run and asks for a table of it. It returns the error of either.
func askTable(t *testing.T, run queries.Run, table *schema.Table) error {
	db, err := queries.Open(context.Background(), []queries.Run{run}, queries.Options{Threads: 1})
	if err != nil {
		return err
	}
	defer db.Close()
	if rows, err := db.Query(context.Background(), "SELECT end_ns FROM runs"); err != nil {
		t.Errorf("%s is damaged, and a query that does not name it fails: %v", table.Name, err)
	} else if err := rows.Close(); err != nil {
		t.Error(err)
	}
	rows, err := db.Query(context.Background(), "SELECT count(*) FROM "+strings.ToUpper(table.Name))
	if err != nil {
		return err
	}
	return rows.Close()
}

// TestFlippedBytes changes a byte of a table's file at many places. Every query then either answers or fails with an
// error; the process never crashes.
func TestFlippedBytes(t *testing.T) {
	run := ringRun{3, func(what string) string { return what }}.write(t, t.TempDir(), "ring.3", example.Manifest(3))
	before := map[string]string{}
	db := open(t, run)
	for _, q := range all(t) {
		before[q.Name] = printed(t, answered(t, db, q, nil), "csv")
	}
	failed, other := 0, 0
	for _, table := range []string{"events/0000.parquet", "messages/0000.parquet", "callsites/0000.parquet"} {
		file := filepath.Join(run.Dir, table)
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 24 {
			flipped := slices.Clone(whole)
			flipped[4+i*(len(whole)-8)/24] ^= 0x5a
			if err := os.WriteFile(file, flipped, 0o644); err != nil {
				t.Fatal(err)
			}
			for k, q := range all(t) {
				if k%8 != i%8 { // each query at three places
					continue
				}
				got, err := tried(run, q)
				switch {
				case err != nil:
					failed++
				case cmp.Diff(before[q.Name], got) != "":
					other++
				}
			}
		}
		if err := os.WriteFile(file, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if failed == 0 || other > 0 {
		t.Errorf("%d answers failed, %d changed: want all that change to fail", failed, other)
	}
}

// tried returns the answer to a query as CSV, or the error.
func tried(run queries.Run, q *queries.Query) (string, error) {
	db, err := queries.Open(context.Background(), []queries.Run{run}, queries.Options{Threads: 1})
	if err != nil {
		return "", err
	}
	defer db.Close()
	rows, err := db.Ask(context.Background(), q, nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var b bytes.Buffer
	err = output.Write(&b, "csv", rows)
	return b.String(), err
}
