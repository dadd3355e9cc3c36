package paraver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// imported imports a trace from memory as a run that breaks no rule.
func imported(t testing.TB, prv, pcf, row string, o Options) (*formatstest.Run, error) {
	t.Helper()
	return formatstest.Import(t, func(k *formatstest.Memory) (*schema.Manifest, error) {
		in, err := newLines("trace.prv", strings.NewReader(prv), int64(len(prv)))
		if err != nil {
			return nil, err
		}
		names := newLabels()
		for _, f := range []struct {
			name, text string
			read       func(*lines) error
		}{{"trace.pcf", pcf, names.configuration}, {"trace.row", row, names.rows}} {
			in, err := newLines(f.name, strings.NewReader(f.text), int64(len(f.text)))
			if err == nil {
				err = f.read(in)
			}
			if err != nil {
				return nil, err
			}
		}
		return importTo(context.Background(), in, names, k, o)
	})
}

// sizes are the sizes that traces are imported with: the answer must not depend on them.
var sizes = map[string]timed.Options{
	"usual":            {},
	"few rows":         {EpochRows: 3, ShardRows: 5, Keep: 1},
	"an epoch per row": {EpochRows: 1, ShardRows: 1, Keep: 2},
}

// The traces of testdata become the tables beside them.
func TestTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]string{}
			for _, f := range a.Files {
				parts[f.Name] = string(f.Data)
			}
			for name, o := range sizes {
				r, err := imported(t, parts["trace.prv"], parts["trace.pcf"], parts["trace.row"], o)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got := formatstest.Tables(r)
				got["sites"] = siteTable(r)
				tables := 0
				for _, table := range []string{"rows", "messages", "comms", "ranks", "counts", "sites", "said"} {
					want, ok := parts[table]
					if !ok {
						continue
					}
					tables++
					if d := gocmp.Diff(want, got[table]); d != "" {
						t.Errorf("%s: %s: %s\n%s", name, table, d, got[table])
					}
				}
				if tables == 0 {
					t.Error("there are no tables to compare")
				}
			}
		})
	}
}

// siteTable is the table of call sites as text, with the rows that have them.
func siteTable(r *formatstest.Run) string {
	var b strings.Builder
	for i := range r.Callsites {
		c := &r.Callsites[i]
		fmt.Fprintf(&b, "%d", c.ID)
		for _, text := range []string{c.Function, c.Module, c.File} {
			if text != schema.NullText {
				fmt.Fprintf(&b, " %s", text)
			}
		}
		for _, n := range []struct {
			name string
			v    int32
		}{{"line", c.Line}, {"below", c.Parent}} {
			if n.v != null32 {
				fmt.Fprintf(&b, " %s %d", n.name, n.v)
			}
		}
		for k := range r.Events {
			if e := &r.Events[k]; e.Callsite == c.ID {
				fmt.Fprintf(&b, ", %d.%d", e.Rank, e.Seq)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// messageCalls returns the calls that sent, posted and completed a message.
func messageCalls(r *formatstest.Run, m *schema.Message) (calls [3]string) {
	rows := [][2]int64{{int64(m.Src), m.SendSeq}, {int64(m.Dst), m.RecvPostSeq}, {int64(m.Dst), m.RecvDoneSeq}}
	for i, at := range rows {
		k, ok := slices.BinarySearchFunc(r.Events, at, func(e schema.Event, at [2]int64) int {
			return cmp.Or(cmp.Compare(int64(e.Rank), at[0]), cmp.Compare(e.Seq, at[1]))
		})
		if ok {
			calls[i] = schema.CallID(r.Events[k].Call).String()
		}
	}
	return calls
}

// message is what a trace keeps of a message: all but its communicator.
func message(r *formatstest.Run, m *schema.Message) string {
	return fmt.Sprintln(m.Src, m.Dst, m.Tag, m.Bytes, m.SendStartNs, m.RecvPostNs, m.RecvEndNs, messageCalls(r, m))
}

// kept is what a trace keeps of a run, as text: calls with their times and collectives, messages, communicators.
func kept(r *formatstest.Run) (calls, messages, comms []string) {
	members := map[int32][]int32{}
	for i := range r.Comms {
		members[r.Comms[i].Comm] = append(members[r.Comms[i].Comm], r.Comms[i].WorldRank)
	}
	for _, m := range members {
		comms = append(comms, fmt.Sprint(m))
	}
	functions := map[int32]string{null32: ""}
	for i := range r.Callsites {
		functions[r.Callsites[i].ID] = fmt.Sprint(r.Callsites[i].Function, " ", r.Callsites[i].Line)
	}
	for i := range r.Events {
		e := &r.Events[i]
		if !hasRow(schema.CallID(e.Call)) {
			continue
		}
		text := fmt.Sprint(e.Rank, e.Thread, schema.CallID(e.Call), e.StartNs, e.EndNs, " ", functions[e.Callsite])
		if schema.Class(e.Class) == schema.ClassCollective && e.Instance != null64 {
			text += fmt.Sprint(" ", members[e.Comm], e.SendBytes, e.RecvBytes, e.RootWorld)
		}
		calls = append(calls, text)
	}
	for i := range r.Messages {
		messages = append(messages, message(r, &r.Messages[i]))
	}
	for _, all := range [][]string{calls, messages, comms} {
		slices.Sort(all)
	}
	return calls, messages, comms
}

// A run that is exported and imported has the same calls, messages, communicators, collectives and call sites.
func TestRoundTrip(t *testing.T) {
	runs := []string{smallRun(t)}
	for _, name := range []string{"pingpong.2", "rma.3", "cg.A.4", "bt-io.S.4", "uneven.4"} {
		runs = append(runs, filepath.Join("..", "..", "testdata", "runs", name))
	}
	for _, dir := range runs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var trace, names, rows strings.Builder
			if _, err := Export(t.Context(), dir, &trace, &names, &rows); err != nil {
				t.Fatal(err)
			}
			got, err := imported(t, trace.String(), names.String(), rows.String(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := formatstest.Stored(t, dir)
			if !slices.Equal(got.Origin.Hosts, want.Origin.Hosts) {
				t.Errorf("hosts %v, want %v", got.Origin.Hosts, want.Origin.Hosts)
			}
			gotCalls, gotMessages, gotComms := kept(got)
			wantCalls, wantMessages, wantComms := kept(want)
			if len(wantCalls) == 0 {
				t.Fatal("the run has no calls")
			}
			for _, d := range []string{gocmp.Diff(wantCalls, gotCalls), gocmp.Diff(wantMessages, gotMessages),
				gocmp.Diff(wantComms, gotComms)} {
				if d != "" {
					t.Errorf("%.3000s", d)
				}
			}
		})
	}
}

// A trace in a file, also compressed, becomes a run of the store that breaks no rule; it needs no other files.
func TestImportFile(t *testing.T) {
	dir := t.TempDir()
	a, err := txtar.ParseFile("testdata/extrae.txt")
	if err != nil {
		t.Fatal(err)
	}
	packed := formatstest.Gzip(t, string(a.Files[0].Data))
	if err := os.WriteFile(filepath.Join(dir, "ring.prv.gz"), []byte(packed), 0o666); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var read, all int64
	var o Options
	o.Progress = func(r, a int64) {
		mu.Lock()
		defer mu.Unlock()
		read, all = max(read, r), a
	}
	m, err := ImportFile(t.Context(), filepath.Join(dir, "ring.prv.gz"), dir, "", o)
	if err != nil {
		t.Fatal(err)
	}
	if m.Origin.Name != "ring" || m.Counts.Messages != 4 || !strings.Contains(strings.Join(m.Warnings, "\n"),
		"There is no .pcf and no .row beside the trace") || m.Origin.Hosts[0] != "node1" {
		t.Errorf("%s: %+v %q", m.Origin.Name, m.Counts, m.Warnings)
	}
	if read != all || all != 3*int64(len(packed)) {
		t.Errorf("progress ends with %d of %d", read, all)
	}
	problems, err := writer.Check(t.Context(), filepath.Join(dir, "ring"))
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cut.prv.gz"), []byte(packed[:len(packed)/2]), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ImportFile(t.Context(), filepath.Join(dir, "cut.prv.gz"), dir, "", Options{}); err == nil ||
		!strings.Contains(err.Error(), "cut.prv.gz:") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "cut")); !errors.Is(err, os.ErrNotExist) {
		t.Error("there is a run of a damaged trace")
	}
}

// A trace that Extrae wrote has the messages that commq recorded of the same program, sent, posted and completed by the
// same calls, and its call sites.
func TestExtrae(t *testing.T) {
	store := t.TempDir()
	if _, err := ImportFile(t.Context(), "testdata/requests/requests.prv", store, "", Options{}); err != nil {
		t.Fatal(err)
	}
	r := formatstest.Stored(t, filepath.Join(store, "requests"))
	counts := map[string]int{}
	for i := range r.Messages {
		m := &r.Messages[i]
		line := fmt.Sprintf("%d,%d,%d,%d", m.Src, m.Dst, m.Tag, m.Bytes)
		for _, call := range messageCalls(r, m) {
			line += "," + call
		}
		counts[line]++
	}
	var got []string
	for line, n := range counts {
		got = append(got, fmt.Sprintf("%s,%d", line, n))
	}
	want, err := os.ReadFile("testdata/requests/messages.csv")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(want), "\n")
	lines := strings.Fields(rows)
	slices.Sort(got)
	slices.Sort(lines)
	if d := gocmp.Diff(lines, got); d != "" {
		t.Error(d)
	}
	if c := r.Counts; c.UnmatchedSends+c.UnmatchedReceives+c.InProgress != 0 || r.Ended != "finalized" || r.Ranks != 3 {
		t.Errorf("%+v, %s", c, r.Ended)
	}
	test := slices.IndexFunc(r.Events, func(e schema.Event) bool { return schema.CallID(e.Call) == schema.CallTest })
	if site := r.Callsites[r.Events[test].Callsite]; site.Function != "zero" || site.File != "requests.c" {
		t.Errorf("%+v", site)
	}
}

const twoRanks = "#Paraver (x at y):900_ns:1(2):1:2(1:1,1:1),1\nc:1:1:2:1:2\n"

// Errors name the file, the line, and what was found there.
// Sizes of 2 to 4 GiB are negative numbers in the trace, and no other numbers are taken for them.
func TestSizesOfManyBytes(t *testing.T) {
	var s scan
	for size, want := range map[int64]int64{5: 5, -1294967296: 3000000000, 3000000000: 3000000000, -1 << 40: null64,
		1 << 60: null64} {
		if got := s.bytes(size); got != want {
			t.Errorf("%d: %d bytes, want %d", size, got, want)
		}
	}
	if s.tally.wrapped != 1 {
		t.Errorf("%d sizes are counted as negative", s.tally.wrapped)
	}
}

// Names that compilers append to a function's are part of it.
func TestFunctionOf(t *testing.T) {
	for text, want := range map[string]string{"foo": "foo", "foo [foo(int)]": "foo(int)",
		"foo(int) [clone .isra.0]": "foo(int) [clone .isra.0]", "??": schema.NullText} {
		if _, _, got := functionOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestDamaged(t *testing.T) {
	for _, c := range []struct{ trace, want string }{
		{"", "trace.prv:1: the file is empty"},
		{"#Parcours\n", `trace.prv:1: the line begins with "#Parcours"; want "#Paraver ("`},
		{"#Paraver (x at y:9_ns\n", "trace.prv:1: \"#Paraver (x at y:9_ns\" has no end of the date"},
		{"#Paraver (x at y):9.5_ns:1(1):1:1(1:1)\n", `trace.prv:1: the length of the trace is "9.5"`},
		{"#Paraver (x at y):9_ns:2(1):1:1(1:1)\n", "trace.prv:1: nodes: there are 1 in the brackets, and 2 before them"},
		{"#Paraver (x at y):9_ns:1(1):0\n", `trace.prv:1: the number of applications is "0"`},
		{"#Paraver (x at y):9_ns:1(1):1:2(1:1)\n", "trace.prv:1: application 1: there are 1 in the brackets, and 2"},
		{"#Paraver (x at y):9_ns:1(1):1:0()\n", "trace.prv:1: application 1: it has no tasks"},
		{"#Paraver (x at y):9_ns:1(1):1:1(0:1)\n", `trace.prv:1: application 1: task 1 is "0:1"; want THREADS:NODE`},
		{twoRanks + "2:1:1:1:1:100:5", "trace.prv:3: the file ends within a line, at \"2:1:1:1:1:100:5\": it was cut off"},
		{twoRanks + "\n2:1:1:1:1:100\n", "trace.prv:4: an event record of 6 numbers; want 2:CPU:"},
		{twoRanks + "2:1:1:1:1:100:7:8:9\n", "trace.prv:3: an event record of 9 numbers"},
		{twoRanks + "2:1:1:3:1:100:7:8\n", "trace.prv:3: task 3 of application 1; the first line has 2"},
		{twoRanks + "2:1:2:1:1:100:7:8\n", "trace.prv:3: application 2; the first line has 1"},
		{twoRanks + "2:1:1:1:2:100:7:8\n", "trace.prv:3: thread 2 of task 1.1; the first line has 1"},
		{twoRanks + "2:1:1:1:1:-100:7:8\n", "trace.prv:3: the time -100 is not between 0 and"},
		{twoRanks + "2:1:1:1:1:1OO:7:8\n", "trace.prv:3: field 5 of \"1:1:1:1:1OO:7:8\" is no number"},
		{twoRanks + "2:1:1:1:1:99999999999999999999:7:8\n", "trace.prv:3: field 5 of"},
		{twoRanks + "1:1:1:1:1:2\n", "trace.prv:3: a state of 6 numbers; want 1:CPU:"},
		{twoRanks + "3:1:1:1:1:2:3\n", "trace.prv:3: a communication of 7 numbers; want 3:CPU:"},
		{twoRanks + "3:1:1:1:1:2:3:4:1:7:1:2:3:4:5\n", "trace.prv:3: receiver: task 7 of application 1"},
		{twoRanks + "3:1:1:1:1:2:3:4:1:2:1:2:3:4503599627370496:5\n", "trace.prv:3: a message of 4503599627370496 bytes"},
		{twoRanks + "3:1:1:1:1:2:3:4:1:2:1:2:3:4:4294967296\n", "trace.prv:3: 4294967296 is no tag of a message"},
		{twoRanks + "3:1:1:1:1:2:3:4:1:2:1:2:3:4:2147483648\n", "trace.prv:3: 2147483648 is no tag of a message"},
		{"#Paraver (x at y):9_ns:1(1):1:1(2000000000:1)\n", "trace.prv:1: application 1: task 1 has 2000000000 threads"},
		{twoRanks + strings.Repeat("i:1:2:1:1:1:2\n", mostHalves+1), "trace.prv:4099: there are more than 4096 intercomm"},
		{twoRanks + "c:1:2:2:1\n", "trace.prv:3: a communicator of 1 members has another size"},
		{twoRanks + "c:1:2:2:1:3\n", "trace.prv:3: communicator 2 has task 3; the first line has 2"},
		{twoRanks + "c:1:2:2:1:1\n", "trace.prv:3: communicator 2 has task 1 twice"},
		{twoRanks + "c:1:1:1:1\n", "trace.prv:3: communicator 1 of application 1 is defined twice"},
		{twoRanks + "c:1:2:0\n", "trace.prv:3: communicator 2 has no members"},
		{twoRanks + "i:1:2:0\n", "trace.prv:3: an intercommunicator has 3 numbers"},
		{twoRanks + "\x00\x01\n", `trace.prv:3: "\x00\x01" is no record; want one that begins with its kind`},
	} {
		_, err := imported(t, c.trace, "", "", Options{})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v\nwant %s", c.trace, err, c.want)
		}
	}
	for _, c := range []struct{ pcf, row, want string }{
		{"EVENT_TYPE\n9 x y\n", "", `trace.pcf:2: "9 x y" has no type of events; want COLOUR TYPE NAME`},
		{"EVENT_TYPE\n9 7 y\nVALUES\nfive MPI_Send\n", "", `trace.pcf:4: "five MPI_Send" begins with no number`},
		{"", "LEVEL NODE SIZE x\n", `trace.row:1: "x" is no number of nodes`},
		{strings.Repeat("x", 2*mostText), "", "trace.pcf:1: the line has more than 1048576 bytes"},
	} {
		if _, err := imported(t, twoRanks, c.pcf, c.row, Options{}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q %q: %v\nwant %s", c.pcf, c.row, err, c.want)
		}
	}
}

// The answer does not change when the records of a trace are sorted on disk.
func TestSortedOnDisk(t *testing.T) {
	x := newItems(2)
	x.sorter.most, x.chunk = 200, 30
	defer x.close()
	var want [2][]item
	for i := range int64(300) {
		rank := int32(i % 3 / 2)
		one := item{kind: i % 4, at: 1000 - i, thread: i % 2}
		if one.kind == itemCall {
			one.call = call{id: 9, end: null64, times: 1, sent: i, received: null64, comm: 0, rooted: null64, site: -i}
		} else {
			one.side = side{number: i, peer: 1, tag: -5, bytes: 1 << 40, posted: i}
		}
		want[rank] = slices.Insert(want[rank], 0, one)
		if err := x.add(rank, &one); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.sort(); err != nil {
		t.Fatal(err)
	}
	for rank := range want {
		in := x.open(int32(rank))
		for i := range want[rank] {
			var got item
			if more, err := in.next(&got); !more || err != nil || got != want[rank][i] {
				t.Fatalf("%d, %d: %+v, %v, %v; want %+v", rank, i, got, more, err, want[rank][i])
			}
		}
		var got item
		if more, err := in.next(&got); more || err != nil {
			t.Error(more, err)
		}
	}
}

func FuzzImport(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		prv, pcf, row := string(a.Files[0].Data), string(a.Files[1].Data), string(a.Files[2].Data)
		f.Add(prv, pcf, row)
		f.Add(formatstest.Gzip(f, prv), formatstest.Gzip(f, pcf), formatstest.Gzip(f, row))
	}
	f.Add("#Paraver (x):9:0:1:2(1:1,1:1)\n3:0:1:1:1:2:3:0:1:2:1:4:5:6:7\n2:0:1:1:1:2:50000001:1:50000001:0\n",
		"EVENT_TYPE\n0 70000001 x\nVALUES\n1 f [g]\n", "LEVEL NODE SIZE 1\nx")
	f.Fuzz(func(t *testing.T, prv, pcf, row string) {
		defer time.AfterFunc(10*time.Second, func() { panic("slow") }).Stop()
		_, _ = imported(t, prv, pcf, row, Options{Keep: 2, EpochRows: 4})
	})
}
