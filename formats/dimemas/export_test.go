package dimemas

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// exported returns a run as a trace.
func exported(t testing.TB, dir string, o ExportOptions) (string, []string) {
	t.Helper()
	var text strings.Builder
	notes, err := Export(context.Background(), dir, &text, o)
	if err != nil {
		t.Fatal(err)
	}
	return text.String(), notes
}

// onDisk imports a trace and returns the run's folder.
func onDisk(t testing.TB, text string, o Options) string {
	t.Helper()
	store := t.TempDir()
	out, err := writer.Create(store, "run", writer.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Import(context.Background(), strings.NewReader(text), int64(len(text)), out, o); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(store, "run")
}

// records returns the lines of a trace without header and offsets.
func records(text string) []string {
	var lines []string
	for _, l := range strings.Split(text, "\n")[1:] {
		if !strings.HasPrefix(l, "s:") {
			lines = append(lines, l)
		}
	}
	return lines
}

// Captured runs become traces that say the same as runs as the runs do: exported again they are the same, record by
// record. The offsets are right.
func TestExportOfCapturedRuns(t *testing.T) {
	for _, name := range []string{"cg.A.4", "is.W.16", "mg.W.16", "sp.W.4", "ft.W.16"} {
		text, _ := exported(t, "../../testdata/runs/"+name, ExportOptions{})
		dir := onDisk(t, text, Options{Name: name + ".dim"})
		m, err := writer.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		of, err := writer.ReadManifest("../../testdata/runs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if m.Counts.Messages != of.Counts.Messages || m.Counts.MessageBytes != of.Counts.MessageBytes ||
			m.Counts.UnmatchedSends+m.Counts.UnmatchedReceives != 0 || len(m.Warnings) != 0 {
			t.Errorf("%s: %+v, the run has %+v; %q", name, m.Counts, of.Counts, m.Warnings)
		}
		for call, n := range of.Collectives {
			if call != "MPI_Barrier" && m.Collectives[call] != n { // MPI_Comm_* become barriers
				t.Errorf("%s: %d %s, the run has %d", name, m.Collectives[call], call, n)
			}
		}
		if a, b := computed(t, dir), computed(t, "../../testdata/runs/"+name); a != b {
			t.Errorf("%s: %d ns computed, the run has %d", name, a, b)
		}
		again, _ := exported(t, dir, ExportOptions{})
		if diff := cmp.Diff(records(text), records(again)); diff != "" {
			t.Errorf("%s: %.2000s", name, diff)
		}
	}
}

// computed returns the sum of a run's compute times.
func computed(t *testing.T, dir string) (ns int64) {
	t.Helper()
	err := writer.ReadTable(context.Background(), dir, &schema.EventsTable, 4096, func(b schema.Batch) error {
		for _, x := range b.(*schema.Events).ComputeNs {
			if x != null64 {
				ns += x
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// Every kind of record survives export and import, except for those that Dimemas does not accept.
func TestExport(t *testing.T) {
	text := file(
		`d:1:1:3:0:1:2 d:1:2:2:2:0 1:0.000001000 2:1:-1:4097:9:1:0 2:1:-1:5:9:1:1 1:0.000000002 2:1:-1:6:9:1:2 2:1:-1:7:9:1:3 10:1:1:1:0:11:0:1 10:10:2:2:0:8:0:3 10:10:2:2:0:8:0:1`,
		`1:0.000000000 3:0:-1:4097:9:1:0 3:0:-1:5:9:1:1 20:7:8 3:0:-1:5:9:1:2 3:0:-1:6:9:1:0 3:0:-1:7:9:1:1 1:0.500000000 3:0:-1:7:9:1:2 10:1:1:0:0:0:11:1 1:0.250000000`,
		`1:0.000000000 10:1:1:0:0:0:11:1 10:10:2:2:0:8:8:3 10:10:2:2:0:8:8:1`)
	dir := onDisk(t, text, Options{Name: "t.dim", Events: true})
	got, notes := exported(t, dir, ExportOptions{})
	want := records(text)
	for i, l := range want { // events end a burst, also one of zero length
		if strings.HasPrefix(l, "20:") {
			want = append(want[:i:i], append([]string{"1:1:0:0.000000000"}, want[i:]...)...)
			break
		}
	}
	if diff := cmp.Diff(want, records(got)); diff != "" || len(notes) != 0 {
		t.Error(diff, notes)
	}
	// From 6 bytes on sends wait for their receivers; MPI_Ssend does anyway.
	got, _ = exported(t, dir, ExportOptions{EagerThresholdBytes: 6})
	for _, l := range []string{"2:0:0:1:-1:4097:9:1:1", "2:0:0:1:-1:5:9:1:1", "2:0:0:1:-1:6:9:1:3"} {
		if !strings.Contains(got, "\n"+l+"\n") {
			t.Errorf("no %s in\n%s", l, got)
		}
	}
}

// Tags and sizes that Dimemas does not take, and sends to oneself.
func TestExportForDimemas(t *testing.T) {
	dir := onDisk(t, file(`d:1:1:1:0 1:0.000000000 3:0:-1:5:3121:1:1 2:0:-1:5:3121:1:0 3:0:-1:5:3121:1:2 3:0:-1:5:60000:1:1 2:0:-1:5:60000:1:1 3:0:-1:5:60000:1:2 10:11:1:0:0:3000000000:8:1`), Options{Name: "t.dim"})
	got, notes := exported(t, dir, ExportOptions{})
	want := []string{"d:1:1:1:0", "1:0:0:0.000000000", "3:0:0:0:-1:5:3122:1:1", "2:0:0:0:-1:5:3122:1:2",
		"3:0:0:0:-1:5:3122:1:2",
		"3:0:0:0:-1:5:3123:1:1", "2:0:0:0:-1:5:3123:1:3", "3:0:0:0:-1:5:3123:1:2", "10:0:0:11:1:0:0:2147483647:8:1", ""}
	if diff := cmp.Diff(want, records(got)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Sizes of collectives above 2147483647 bytes, which were written as that many: Dimemas keeps them in 32 bits: 1.",
		"Tags that have another number in the trace, as Dimemas takes 3121 and those from 49370 on for something else: 2."}, notes); diff != "" {
		t.Error(diff)
	}
}

func TestExportRefused(t *testing.T) {
	_, err := Export(context.Background(), "../../testdata/runs/bt.C.64", &strings.Builder{}, ExportOptions{})
	if err == nil || !strings.Contains(err.Error(),
		"does not have the rows of all calls (record messages); capture it again with --record all") {
		t.Error(err)
	}
	for want, m := range map[string]*schema.Manifest{
		"does not have the rows of all calls (call:MPI_I*); capture it again without filters": {Record: "all", ComputeClock: "cpu",
			Filters: []string{"call:MPI_I*"}},
		"was captured without compute times; capture it again with --clock cpu": {Record: "all", ComputeClock: "none"},
	} {
		if err := need.Check("r", m); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

// What was cancelled or failed has no records; a receive that was too small has its message.
func TestExportOfFailedCalls(t *testing.T) {
	text, notes := exported(t, formatstest.WriteFailed(t), ExportOptions{})
	var got []string
	for _, l := range records(text) {
		if !strings.HasPrefix(l, "1:") && !strings.HasPrefix(l, "d:") && l != "" {
			got = append(got, l)
		}
	}
	want := []string{"2:0:0:1:-1:31:7:1:0", "2:0:0:1:-1:50:8:1:0",
		"3:1:0:0:-1:31:7:1:0", "3:1:0:0:-1:50:8:1:1", "3:1:0:0:-1:50:8:1:2"}
	texts := []string{"Collectives that returned an error and were left out: 2.",
		"Receives that got nothing and were left out: 1.",
		"Sends that were cancelled or failed and were left out: 1."}
	if d := cmp.Diff(want, got) + cmp.Diff(texts, notes); d != "" {
		t.Error(d)
	}
}

// A collective whose communicator nobody knows is left out and counted; the one after it stays.
func TestExportWithoutCommunicator(t *testing.T) {
	text, notes := exported(t, formatstest.WriteRows(t, `
ranks rank=0 events=3 ended=finalized
comms comm=0 comm_rank=0 world_rank=0
events rank=0 seq=0 call=MPI_Allreduce start_ns=10 end_ns=11 compute_ns=5 send_bytes=8 recv_bytes=8
events rank=0 seq=1 call=MPI_Barrier start_ns=20 end_ns=21 compute_ns=5 comm=0 instance=0 send_bytes=0 recv_bytes=0
events rank=0 seq=2 call=MPI_Finalize start_ns=90 end_ns=91 compute_ns=5
`, &schema.Manifest{Ranks: 1, EndNs: 91, Counts: schema.Counts{Calls: 3, Collectives: 1},
		Collectives: map[string]int64{"MPI_Barrier": 1}}), ExportOptions{})
	want := []string{"d:1:1:1:0", "1:0:0:0.000000010", "10:0:0:0:1:0:0:0:0:1", "1:0:0:0.000000005", ""}
	texts := []string{"Collectives without a communicator that were left out: 1."}
	if d := cmp.Diff(want, records(text)) + cmp.Diff(texts, notes); d != "" {
		t.Error(d)
	}
}

// Only a mark whose whole label is TYPE:VALUE is an event.
func TestExportOfMarks(t *testing.T) {
	for label, want := range map[string]string{"7:8": "20:0:0:7:8", "7:8:9": "", "7:8step": "", "7": "", ":8": "",
		"-7:8": "", "step": "", "0:18446744073709551615": "20:0:0:0:18446744073709551615", "7:18446744073709551616": ""} {
		rows := fmt.Sprintf(`
ranks rank=0 events=2 ended=finalized
comms comm=0 comm_rank=0 world_rank=0
events rank=0 seq=0 call=commq_mark start_ns=10 end_ns=10 compute_ns=5 label=%s
events rank=0 seq=1 call=MPI_Finalize start_ns=90 end_ns=91 compute_ns=5
`, label)
		text, _ := exported(t, formatstest.WriteRows(t, rows, &schema.Manifest{Ranks: 1, EndNs: 91,
			Counts: schema.Counts{Calls: 2}}), ExportOptions{})
		got := slices.DeleteFunc(records(text), func(l string) bool { return !strings.HasPrefix(l, "20:") })
		if strings.Join(got, " ") != want {
			t.Errorf("%q becomes %q, want %q", label, got, want)
		}
	}
}
