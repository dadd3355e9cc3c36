package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/capture/shim"
	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/schema"
)

// lines are findings without what to do about them.
func lines(list []Finding) (out []string) {
	for _, f := range list {
		out = append(out, string(f.Status)+" "+f.Check+": "+f.Found)
	}
	return out
}

func TestManifestsAreChecked(t *testing.T) {
	three := 3
	for name, c := range map[string]struct {
		m    schema.Manifest
		want []string
	}{
		"healthy": {schema.Manifest{Ended: "finalized", Record: "all", TimeOrigin: "measured", HashVerify: true,
			Counts: schema.Counts{HashesVerified: 4097}}, []string{
			"ok end: all ranks finalized",
			"ok dropped: no call",
			"ok unmatched: every message has both sides",
			"ok payload hashes: 4,097 messages arrived as they were sent"}},
		"killed": {schema.Manifest{Ended: "killed", Record: "messages", Filters: []string{"MPI_I*", "-MPI_Wait"},
			TimeOrigin: "measured", TimeResolutionNs: 1024, Origin: schema.Origin{ExitStatus: &three},
			Counts: schema.Counts{InProgress: 1, Dropped: 7, UnmatchedSends: 5}}, []string{
			"warning end: killed, 1 call never returned",
			"warning exit status: 3",
			"failed dropped: 7 calls could not be recorded: counts are too small",
			"ok left out: by request: record messages, filters MPI_I* -MPI_Wait; the manifest's counts include everything",
			"ok times: by request: its times were rounded down to multiples of 1.02 us; ask it about counts and bytes",
			"warning unmatched: 5 sends and 0 receives without a partner"}},
		"corrupt": {schema.Manifest{Ended: "finalized", Record: "all", TimeOrigin: "untimed", TimeResolutionNs: 1024,
			Counts: schema.Counts{HashesVerified: 1000, HashMismatches: 1}}, []string{
			"ok end: all ranks finalized",
			"ok dropped: no call",
			"ok unmatched: every message has both sides",
			"failed payload hashes: 1 message of 1,000 arrived with another hash"}},
	} {
		list := checkManifest(&c.m)
		if diff := cmp.Diff(c.want, lines(list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if AnyFailed(list) == (name == "healthy") {
			t.Errorf("%s: AnyFailed is %v", name, AnyFailed(list))
		}
	}
}

// The warnings of a captured run say what to do. An imported run cannot be captured again: its warnings are notes.
func TestWarningsOfRunsAreRepeated(t *testing.T) {
	m := schema.Manifest{Warnings: []string{"rank 1: odd", "rank 2: even"}}
	const do = "ask about the rest of the run; for what it names, mend the cause and capture again"
	want := []Finding{{"ingest said", Warning, "rank 1: odd", do}, {"ingest said", Warning, "rank 2: even", do}}
	if diff := cmp.Diff(want, IngestWarnings(&m)); diff != "" {
		t.Errorf("captured (-want +got):\n%s", diff)
	}
	m.Origin.Trace = &schema.Trace{Format: "dim"}
	want = []Finding{{"import said", OK, "of its trace (dim): rank 1: odd", ""},
		{"import said", OK, "of its trace (dim): rank 2: even", ""}}
	if diff := cmp.Diff(want, IngestWarnings(&m)); diff != "" {
		t.Errorf("imported (-want +got):\n%s", diff)
	}
}

// answer is a run whose queries have these rows.
func answer(m *schema.Manifest, header rows.Header, values ...[]any) *Run {
	return &Run{Manifest: m, Ask: func(_ context.Context, _ string, _ map[string]string, each func(rows.Row) error) error {
		for _, v := range values {
			if err := each(rows.Row{Header: header, Values: v}); err != nil {
				return err
			}
		}
		return nil
	}}
}

func TestLatenciesBeyondTheErrorOfTheClocksFail(t *testing.T) {
	header := rows.NewHeader("src", "dst", "messages", "beyond", "worst_ns", "bound_ns")
	within := []any{int32(3), int32(5), int64(2), int64(0), int64(900), int64(1000)}
	beyond := []any{int32(5), int32(0), int64(9), int64(1), int64(5000), int64(1000)}
	timed := &schema.Manifest{TimeOrigin: "measured", Record: "all"}
	for _, c := range []struct {
		rows [][]any
		want string
	}{
		{nil, "ok latencies: no message was received before it was sent"},
		{[][]any{within}, "warning latencies: 2 messages received before they were sent; the worst from 3 to 5 by 900 ns, " +
			"where the clocks are known to 1 us"},
		{[][]any{within, beyond}, "failed latencies: 11 messages received before they were sent; the worst from 5 to 0 " +
			"by 5 us, where the clocks are known to 1 us"},
	} {
		list, err := answer(timed, header, c.rows...).latencies(context.Background())
		if diff := cmp.Diff([]string{c.want}, lines(list)); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	for _, m := range []*schema.Manifest{{TimeOrigin: "untimed"}, {TimeOrigin: "measured", Record: "collectives"}} {
		if list, err := answer(m, header, beyond).latencies(context.Background()); list != nil || err != nil {
			t.Errorf("a run without latencies: %v, %v", list, err)
		}
	}
}

func TestOverlapsAreCounted(t *testing.T) {
	header := rows.NewHeader("seq", "rank", "next_call", "call")
	first, second := []any{int64(9), int32(3), "MPI_Recv", "MPI_Send"},
		[]any{int64(1), int32(4), "MPI_Wait", "MPI_Test"}
	r := answer(&schema.Manifest{TimeOrigin: "measured"}, header, first, second)
	list, err := r.overlaps(context.Background())
	want := []string{"failed double capture: 2 overlaps of calls of one thread (first: rank 3, seq 9: MPI_Send and MPI_Recv)"}
	if diff := cmp.Diff(want, lines(list)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	broken := errors.New("engine")
	r.Ask = func(context.Context, string, map[string]string, func(rows.Row) error) error { return broken }
	if _, err := r.overlaps(context.Background()); !errors.Is(err, broken) {
		t.Errorf("the engine's error: %v", err)
	}
}

func TestFoldersAreTried(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b")
	if f := writableFolder("store", deep, "x"); f.Status != OK || f.Found != deep+" can be written to" {
		t.Errorf("%+v", f)
	}
	if _, err := os.Stat(deep); !os.IsNotExist(err) {
		t.Errorf("the check made the folder: %v", err)
	}
	if f := writableFolder("cache", "", "do this"); f.Status != Failed || f.Do != "do this" {
		t.Errorf("%+v", f)
	}
	if f := writableFolder("store", "/proc/nowhere", "do this"); f.Status != Failed {
		t.Errorf("%+v", f)
	}
}

// exec and the library refuse a spool folder that others can write to.
func TestSpoolFolderOfOthers(t *testing.T) {
	for mode, want := range map[os.FileMode]string{0o700: "", 0o770: "its group can write to it", 0o777: "everybody can"} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if f := spoolFolder(dir); want != "" && (f.Status != Warning || !strings.Contains(f.Found, want)) ||
			want == "" && strings.Contains(f.Found, "can write") {
			t.Errorf("%v: %+v", mode, f)
		}
	}
}

func TestLastLineSkipsRulers(t *testing.T) {
	if got := lastLine([]byte("-----\nno slots\n  said mpirun \n-----\n\n")); got != "said mpirun" {
		t.Errorf("%q", got)
	}
}

// script writes an executable shell script.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// The limit is on the program: a compiler may take as long as it needs.
func TestTheProgramIsLimited(t *testing.T) {
	launcher := script(t, "exec sleep 600")
	err := launchTiny(context.Background(), launcher, "lib.so", "tiny", t.TempDir(), 50*time.Millisecond)
	if want := launcher + " cannot run a program of 2 ranks: it did not end within 50ms"; err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The program of the self-check is not in the folder for temporary files, which may be mounted noexec.
func TestSelfCheckProgramCanRun(t *testing.T) {
	temporary, cache := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("COMMQ_CACHE", cache)
	mpicc := script(t, `case "$*" in *tiny*) echo "program $2" >&2; exit 1;; esac`)
	f := selfCheck(context.Background(), MachineOptions{}, shim.Target{Library: shim.OpenMPI, Mpicc: mpicc}, false, "mpirun")
	if f.Status != Failed || !strings.Contains(f.Found, "program "+cache+"/") {
		t.Errorf("%s\n%s\nwant the program below %s", f.Status, f.Found, cache)
	}
	for _, folder := range []string{temporary, cache} {
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", folder, left, err)
		}
	}
}

// A compiler that fails on the capture library fails the check, in plain words and with its last lines.
func TestSelfCheckTellsWhatTheCompilerSaid(t *testing.T) {
	t.Setenv("COMMQ_CACHE", t.TempDir())
	mpicc := script(t, `case "$*" in
*--version*) echo gcc 12;;
*-E*) echo "#define OPEN_MPI 1"; echo "#define OMPI_MAJOR_VERSION 4"; echo "#define OMPI_MINOR_VERSION 1"; echo "#define OMPI_RELEASE_VERSION 4";;
*tiny*) ;;
*) echo "spool.c:7: error: odd" >&2; exit 1;;
esac`)
	f := selfCheck(context.Background(), MachineOptions{}, shim.Target{Library: shim.OpenMPI, Mpicc: mpicc}, false, "mpirun")
	want := mpicc + ` failed (exit status 1) on the capture library for Open MPI 4.1.4
    spool.c:7: error: odd
check that the wrapper compiles a program of your own, or name another one with --mpicc`
	if f.Status != Failed || f.Found != want {
		t.Errorf("%s\n%s\nwant\n%s", f.Status, f.Found, want)
	}
}
