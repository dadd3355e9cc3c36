package otf2

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
)

const runs = "../../testdata/runs"

// carried clears what OTF2 does not carry from the row of a captured run; see docs/reference/otf2.md.
func carried(e *schema.Event) {
	n := schema.NullEvent
	e.Epoch, e.ComputeNs, e.Polls, e.PollNs = 0, n.ComputeNs, n.Polls, n.PollNs
	e.SendCount, e.SendDatatype, e.SendBuffer, e.RecvCount, e.RecvDatatype, e.RecvBuffer = n.SendCount, n.SendDatatype,
		n.SendBuffer, n.RecvCount, n.RecvDatatype, n.RecvBuffer
	e.ReduceOp, e.PostedAny, e.ErrorClass, e.Label, e.InitSeq = n.ReduceOp, n.PostedAny, n.ErrorClass, n.Label, n.InitSeq
	e.PayloadHash, e.PayloadSum, e.PayloadHead, e.Instructions, e.Cycles = n.PayloadHash, n.PayloadSum, n.PayloadHead,
		n.Instructions, n.Cycles
	e.Request, e.Callsite = n.Request, n.Callsite // numbers of their own; compared by done_seq and by path
	if class := schema.Class(e.Class); class == schema.ClassRMA || class == schema.ClassIO {
		rank, seq, thread, call, start, end := e.Rank, e.Seq, e.Thread, e.Call, e.StartNs, e.EndNs
		*e = n
		e.Rank, e.Seq, e.Thread, e.Call, e.Class, e.StartNs, e.EndNs = rank, seq, thread, call, int16(class), start, end
	}
	e.Epoch = 0
}

// paths returns each row's call path as text.
func paths(events []schema.Event, sites []schema.Callsite) []string {
	var all []string
	for i := range events {
		var path []string
		for s := events[i].Callsite; s != null32; s = sites[s].Parent {
			f := &sites[s]
			function, file := f.Function, f.File
			if function == schema.NullText && f.Module != schema.NullText {
				function = fmt.Sprintf("%s+%#x", f.Module, max(f.Offset, 0))
			}
			path = append(path, fmt.Sprintf("%q %q %d", function, file, max(f.Line, 0)))
		}
		all = append(all, strings.Join(path, " < "))
	}
	return all
}

// Captured runs go out and come back as they were, but for what the format does not carry.
func TestThereAndBack(t *testing.T) {
	for _, name := range []string{"cg.A.4", "sp.W.4", "mg.W.16", "ft.W.16", "pingpong.2", "bt-io.S.4", "rma.3",
		"uneven.4"} {
		t.Run(name, func(t *testing.T) {
			was := formatstest.Stored(t, filepath.Join(runs, name))
			out := filepath.Join(t.TempDir(), "trace")
			if _, err := Export(context.Background(), filepath.Join(runs, name), out); err != nil {
				t.Fatal(err)
			}
			for _, keep := range []int{0, 3} { // skimmed, and learned
				is, err := imported(t, filepath.Join(out, ExportName),
					Options{EpochRows: 5000, Keep: keep})
				if err != nil {
					t.Fatal(err)
				}
				compareRuns(t, was, is)
			}
		})
	}
}

func compareRuns(t *testing.T, was, is *formatstest.Run) {
	t.Helper()
	if len(was.Events) != len(is.Events) {
		t.Fatalf("%d rows became %d", len(was.Events), len(is.Events))
	}
	a, b := paths(was.Events, was.Callsites), paths(is.Events, is.Callsites)
	differ := 0
	for i := range was.Events {
		x, y := was.Events[i], is.Events[i]
		carried(&x)
		carried(&y)
		if d := cmp.Diff(x, y); (d != "" || a[i] != b[i]) && differ < 5 {
			t.Errorf("%s\n%s\n%s\n%s", formatstest.Line(&was.Events[i]), d, a[i], b[i])
			differ++
		}
	}
	if was.Counts.Messages != is.Counts.Messages || was.Counts.MessageBytes != is.Counts.MessageBytes ||
		was.Counts.Collectives != is.Counts.Collectives || was.EndNs != is.EndNs || was.Ended != is.Ended {
		t.Errorf("%+v became %+v", was.Counts, is.Counts)
	}
	for i := range min(len(was.Messages), len(is.Messages)) {
		x, y := was.Messages[i], is.Messages[i]
		if x.SendSeq != y.SendSeq || x.RecvPostSeq != y.RecvPostSeq || x.RecvDoneSeq != y.RecvDoneSeq ||
			x.SendEndNs != y.SendEndNs || x.RecvEndNs != y.RecvEndNs || x.RecvPostNs != y.RecvPostNs {
			t.Fatalf("message %d: %+v became %+v", i, x, y)
		}
	}
	for i := range min(len(was.Comms), len(is.Comms)) {
		x, y := was.Comms[i], is.Comms[i]
		if x.Comm != y.Comm || x.WorldRank != y.WorldRank || x.Name != y.Name || x.Parent != y.Parent ||
			x.CartDims != y.CartDims || x.CartPeriods != y.CartPeriods {
			t.Errorf("%+v became %+v", x, y)
		}
	}
}

// otf2-print, of OTF2's own library, reads what the export writes without a warning, and counts the same events.
func TestOtf2Print(t *testing.T) {
	testenv.Need(t, "otf2-print")
	for name, want := range map[string]map[string]int{
		"cg.A.4":  {"MPI_ISEND": 0, "MPI_SEND": 6720, "MPI_IRECV": 6720},
		"mg.W.16": {}, "bt-io.S.4": {},
	} {
		was := formatstest.Stored(t, filepath.Join(runs, name))
		out := filepath.Join(t.TempDir(), "trace")
		if _, err := Export(context.Background(), filepath.Join(runs, name), out); err != nil {
			t.Fatal(err)
		}
		text, err := exec.Command("otf2-print", "-Werror", "-A", filepath.Join(out, ExportName)).CombinedOutput()
		if err != nil || strings.Contains(string(text), "warning") ||
			strings.Contains(string(text), "[OTF2]") {
			t.Fatalf("%s: %v\n%.3000s", name, err, text)
		}
		got := map[string]int{}
		for _, m := range regexp.MustCompile(`(?m)^([A-Z_]+) +[0-9]+ +[0-9]+ `).FindAllStringSubmatch(string(text), -1) {
			got[m[1]]++
		}
		for event, n := range want {
			if got[event] != n {
				t.Errorf("%s: %d events %s, want %d", name, got[event], event, n)
			}
		}
		if n := got["MPI_SEND"] + got["MPI_ISEND"]; int64(n) != was.Counts.Messages+was.Counts.UnmatchedSends {
			t.Errorf("%s: %d sends of %d messages", name, n, was.Counts.Messages)
		}
	}
}

// TestExportWantsAllCalls: a run of which a filter left calls out is refused before anything is written.
func TestExportWantsAllCalls(t *testing.T) {
	manifest, err := os.ReadFile(filepath.Join(runs, "cg.A.4", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "some")
	filtered := strings.Replace(string(manifest), `"record": "all",`, `"record": "all", "filters": ["call:MPI_I*"],`, 1)
	file := filepath.Join(dir, "manifest.json")
	err = errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(file, []byte(filtered), 0o666), schematest.SealManifest(file))
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	_, err = Export(t.Context(), dir, out)
	const want = `run "some" does not have the rows of all calls (call:MPI_I*); capture it again without filters`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := os.Stat(out); err == nil {
		t.Errorf("%s was made", out)
	}
}

// A cancelled receive comes back as one, what failed without a message, and a receive that was too small with its own.
func TestFailedCallsThereAndBack(t *testing.T) {
	dir := formatstest.WriteFailed(t)
	out := filepath.Join(t.TempDir(), "trace")
	notes, err := Export(t.Context(), dir, out)
	if err != nil {
		t.Fatal(err)
	}
	is, err := imported(t, filepath.Join(out, ExportName), Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := is.Counts
	got := []int64{c.Messages, c.MessageBytes, c.UnmatchedSends, c.UnmatchedReceives, c.Collectives}
	texts := []string{"Collectives that returned an error, without records: 2.",
		"Receives that got nothing, whose requests are written as cancelled: 1.",
		"Sends that were cancelled or failed, without records: 1."}
	if d := cmp.Diff([]int64{2, 81, 0, 0, 0}, got) + cmp.Diff(texts, notes); d != "" {
		t.Error(d)
	}
}

// backAgain exports a run of these rows, and returns what an import makes of the trace and the notes of the export.
func backAgain(t *testing.T, rows string, m *schema.Manifest) (map[string]string, []string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "trace")
	notes, err := Export(t.Context(), formatstest.WriteRows(t, rows, m), out)
	if err != nil {
		t.Fatal(err)
	}
	is, err := imported(t, filepath.Join(out, ExportName), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return formatstest.Tables(is), notes
}

// A call that never returned comes back as one, also below frames; one that others follow ends where the next begins.
func TestCallsThatNeverReturned(t *testing.T) {
	got, notes := backAgain(t, `
ranks rank=0 events=3 ended=killed
comms comm=0 comm_rank=0 world_rank=0
callsites id=0 function=main
callsites id=1 parent=0 function=solve
events rank=0 seq=0 call=MPI_Barrier start_ns=10 comm=0 instance=0 send_bytes=0 recv_bytes=0 compute_ns=5 callsite=1
events rank=0 seq=1 call=MPI_Barrier start_ns=20 end_ns=30 comm=0 instance=1 send_bytes=0 recv_bytes=0 compute_ns=5 callsite=0
events rank=0 seq=2 call=MPI_Barrier start_ns=40 comm=0 instance=2 send_bytes=0 recv_bytes=0 compute_ns=5 callsite=1
`, &schema.Manifest{Ranks: 1, EndNs: 30, Ended: "killed", Callsites: true, Stack: 2,
		Counts:      schema.Counts{Calls: 3, Collectives: 3, InProgress: 2},
		Collectives: map[string]int64{"MPI_Barrier": 3}})
	rows := `0.0 Barrier comm=0 sent=0 received=0 instance=0 [10-20]
0.1 Barrier comm=0 sent=0 received=0 instance=1 [20-30] compute=0
0.2 Barrier comm=0 sent=0 received=0 instance=2 [40--] compute=10
`
	texts := []string{"Calls that never returned, though others of their thread follow: they end where the next " +
		"begins: 1."}
	if d := cmp.Diff(rows, got["rows"]) + cmp.Diff(texts, notes); d != "" {
		t.Error(d)
	}
}

// MPI_Isendrecv, which has one request for two messages, comes back with both.
func TestIsendrecv(t *testing.T) {
	rows, want := "", ""
	for rank := range 2 {
		rows += fmt.Sprintf(`ranks rank=%[1]d events=3 ended=finalized
comms comm=0 comm_rank=%[1]d world_rank=%[1]d
events rank=%[1]d seq=0 call=MPI_Isendrecv start_ns=10 end_ns=15 comm=0 send_peer=%[2]d send_world=%[2]d send_tag=5 send_bytes=8 recv_peer=%[2]d recv_world=%[2]d recv_tag=5 recv_bytes=8 posted_any=0 proc_null=0 request=1 done_seq=1 compute_ns=5
events rank=%[1]d seq=1 call=MPI_Wait start_ns=20 end_ns=30 request=1 compute_ns=5
events rank=%[1]d seq=2 call=MPI_Finalize start_ns=90 end_ns=91 compute_ns=60
messages src=%[1]d dst=%[2]d comm=0 tag=5 bytes=8 send_seq=0 send_start_ns=10 send_end_ns=15 recv_post_seq=0 recv_done_seq=1 recv_post_ns=10 recv_start_ns=20 recv_end_ns=30
`, rank, 1-rank)
		want += fmt.Sprintf(`%[1]d.0 Isendrecv comm=0 to=%[2]d stag=5 from=%[2]d rtag=5 sent=8 received=8 request=1 done=1 [10-15]
%[1]d.1 Wait [20-30] compute=5
%[1]d.2 Finalize [90-91] compute=60
`, rank, 1-rank)
	}
	got, _ := backAgain(t, rows, &schema.Manifest{Ranks: 2, EndNs: 91,
		Counts: schema.Counts{Calls: 6, Messages: 2, MessageBytes: 16}})
	messages := "0.0 -> 1.0 done 1, comm 0 tag 5: 8\n1.0 -> 0.0 done 1, comm 0 tag 5: 8\n"
	if d := cmp.Diff(want, got["rows"]) + cmp.Diff(messages, got["messages"]); d != "" {
		t.Error(d)
	}
}

// Definitions may be longer than a usual chunk, such as the group of a hundred thousand ranks, or here a name.
func TestLongDefinitions(t *testing.T) {
	rows := func(length int) string {
		return fmt.Sprintf(`
ranks rank=0 events=1 ended=finalized
comms comm=0 comm_rank=0 world_rank=0
callsites id=0 function=%s
events rank=0 seq=0 call=MPI_Finalize start_ns=90 end_ns=91 compute_ns=5 callsite=0
`, strings.Repeat("f", length))
	}
	m := func() *schema.Manifest {
		return &schema.Manifest{Ranks: 1, EndNs: 91, Callsites: true, Stack: 1, Counts: schema.Counts{Calls: 1}}
	}
	for _, length := range []int{exportChunk - 40, exportChunk, 3 * exportChunk} {
		out := filepath.Join(t.TempDir(), "trace")
		if _, err := Export(t.Context(), formatstest.WriteRows(t, rows(length), m()), out); err != nil {
			t.Fatal(err)
		}
		is, err := imported(t, filepath.Join(out, ExportName), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(is.Callsites[0].Function); n != length {
			t.Errorf("a name of %d characters, was %d", n, length)
		}
		if text, err := exec.Command("otf2-print", "-Werror", filepath.Join(out, ExportName)).CombinedOutput(); err != nil &&
			!errors.Is(err, exec.ErrNotFound) {
			t.Errorf("%v\n%.3000s", err, text)
		}
	}
	_, err := Export(t.Context(), formatstest.WriteRows(t, rows(mostChunk), m()), filepath.Join(t.TempDir(), "trace"))
	if err == nil || !strings.HasSuffix(err.Error(), "traces.def: a record of 16777229 bytes; a chunk has 16777216") {
		t.Error(err)
	}
}

// The root of a collective on an intercommunicator is known to itself and to the other group.
func TestRootsOfIntercommunicators(t *testing.T) {
	rows, want := "", ""
	for rank := range 3 {
		rows += fmt.Sprintf("ranks rank=%d events=3 ended=finalized\ncomms comm=0 comm_rank=%d world_rank=%d\n", rank, rank, rank)
	}
	rows += `comms comm=1 comm_rank=0 world_rank=1 kind=inter
comms comm=1 comm_rank=1 world_rank=0 kind=inter
comms comm=1 remote=1 comm_rank=0 world_rank=2 kind=inter
`
	for rank, bcasts := range [][2]string{{"send_bytes=0 recv_bytes=0", "root_world=2 send_bytes=0 recv_bytes=9"},
		{"root_world=1 send_bytes=8 recv_bytes=0", "root_world=2 send_bytes=0 recv_bytes=9"},
		{"root_world=1 send_bytes=0 recv_bytes=8", "root_world=2 send_bytes=9 recv_bytes=0"}} {
		for i, columns := range bcasts {
			rows += fmt.Sprintf("events rank=%d seq=%d call=MPI_Bcast start_ns=%d end_ns=%d comm=1 instance=%d %s\n", rank, i,
				10*i, 10*i+5, i, columns)
			columns = strings.NewReplacer("root_world", "root", "send_bytes", "sent", "recv_bytes", "received").Replace(columns)
			want += fmt.Sprintf("%d.%d Bcast comm=1 %s instance=%d [%d-%d]", rank, i, columns, i, 10*i, 10*i+5)
			want += []string{"\n", " compute=5\n"}[i]
		}
		rows += fmt.Sprintf("events rank=%d seq=2 call=MPI_Finalize start_ns=90 end_ns=91\n", rank)
		want += fmt.Sprintf("%d.2 Finalize [90-91] compute=75\n", rank)
	}
	got, _ := backAgain(t, rows, &schema.Manifest{Ranks: 3, EndNs: 91,
		Counts: schema.Counts{Calls: 9, Collectives: 2}, Collectives: map[string]int64{"MPI_Bcast": 2}})
	if d := cmp.Diff(want, got["rows"]); d != "" {
		t.Error(d)
	}
}

// Probes come back with what they found, but for its bytes, and otf2-print reads past their records.
func TestProbesThereAndBack(t *testing.T) {
	const rows = `
ranks rank=0 events=5 ended=finalized
comms comm=0 comm_rank=0 world_rank=0
events rank=0 seq=0 call=MPI_Isend start_ns=10 end_ns=15 comm=0 send_peer=0 send_world=0 send_tag=5 send_bytes=8 proc_null=0 request=1 done_seq=3
events rank=0 seq=1 call=MPI_Mprobe start_ns=20 end_ns=25 comm=0 recv_peer=0 recv_world=0 recv_tag=5 recv_bytes=8 posted_any=0 proc_null=0
events rank=0 seq=2 call=MPI_Mrecv start_ns=30 end_ns=35 comm=0 recv_peer=0 recv_world=0 recv_tag=5 recv_bytes=8 posted_any=0 proc_null=0 init_seq=1
events rank=0 seq=3 call=MPI_Wait start_ns=40 end_ns=45 request=1
events rank=0 seq=4 call=MPI_Finalize start_ns=90 end_ns=91
messages src=0 dst=0 comm=0 tag=5 bytes=8 send_seq=0 send_start_ns=10 send_end_ns=15 recv_post_seq=1 recv_done_seq=2 recv_post_ns=20 recv_start_ns=30 recv_end_ns=35
`
	m := &schema.Manifest{Ranks: 1, EndNs: 91, Counts: schema.Counts{Calls: 5, Messages: 1, MessageBytes: 8}}
	out := filepath.Join(t.TempDir(), "trace")
	notes, err := Export(t.Context(), formatstest.WriteRows(t, rows, m), out)
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	is, err := imported(t, filepath.Join(out, ExportName), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := `0.0 Isend comm=0 to=0 stag=5 sent=8 request=1 done=3 [10-15]
0.1 Mprobe comm=0 from=0 rtag=5 [20-25] compute=5
0.2 Mrecv comm=0 from=0 rtag=5 received=8 [30-35] compute=5
0.3 Wait request=1 [40-45] compute=5
0.4 Finalize [90-91] compute=45
`
	if d := cmp.Diff(want, formatstest.Tables(is)["rows"]); d != "" {
		t.Error(d)
	}
	text, err := exec.Command("otf2-print", "-Werror", filepath.Join(out, ExportName)).CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%v\n%s", err, text)
	}
}
