package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/detect/report"
	"github.com/commq/commq/schema"
)

// manualFindings are the collectives that testdata/programs/manual.* does by hand on 5 ranks: function, operation,
// ranks, roots, possible roots, payload in bytes, segments, instances, repeats, messages, the calls that send, those
// that receive, and those that complete requests.
var manualFindings = []string{
	"allgather MPI_Allgather 0-4 roots [] [] 4000 bytes 1 segments 2 instances 0 repeats 40 messages [MPI_Sendrecv] [MPI_Sendrecv] []",
	"alltoall MPI_Alltoall 0-4 roots [] [] 112 bytes 1 segments 1 instances 0 repeats 20 messages [MPI_Isend] [MPI_Irecv] [MPI_Waitall]",
	"barrier MPI_Barrier 0-4 roots [] [] 0 bytes 1 segments 3 instances 0 repeats 45 messages [MPI_Sendrecv] [MPI_Sendrecv] []",
	"halo MPI_Neighbor_alltoall 0-4 roots [] [] 8000 bytes 1 segments 5 instances 0 repeats 50 messages [MPI_Sendrecv] [MPI_Sendrecv] []",
	"linear MPI_Bcast 0-4 roots [0] [0] 4000 bytes 1 segments 1 instances 0 repeats 4 messages [MPI_Send] [MPI_Recv] []",
	"nested MPI_Bcast 0-4 roots [0 1 2 3 4] [0 1 2 3 4] 4000 bytes 1 segments 5 instances 0 repeats 20 messages [MPI_Send] [MPI_Recv] []",
	"nested MPI_Bcast 0-4 roots [0] [0] 4 bytes 1 segments 1 instances 0 repeats 4 messages [MPI_Send] [MPI_Recv] []",
	"part MPI_Bcast 0-1,3-4 roots [1] [1] 4000 bytes 1 segments 1 instances 0 repeats 3 messages [MPI_Send] [MPI_Recv] []",
	"pipeline MPI_Bcast 0-4 roots [4] [4] 4000 bytes 4 segments 1 instances 0 repeats 16 messages [MPI_Send] [MPI_Recv] []",
	"redundant MPI_Bcast 0-4 roots [0] [0 1] 4000 bytes 1 segments 1 instances 0 repeats 5 messages [MPI_Send] [MPI_Recv] []",
	"repeated MPI_Bcast 0-4 roots [0] [0] 4000 bytes 1 segments 2 instances 1 repeats 8 messages [MPI_Send] [MPI_Recv] []",
	"ring MPI_Bcast 0-4 roots [0] [0 1 2 3 4] 4 bytes 1 segments 3 instances 2 repeats 15 messages [MPI_Send] [MPI_Recv] []",
	"tree MPI_Bcast 0-4 roots [0] [0] 4000 bytes 1 segments 10 instances 0 repeats 40 messages [MPI_Isend] [MPI_Irecv] [MPI_Wait MPI_Waitall]",
}

// TestDetectReadsEveryEpoch has a broadcast whose second message is in a later epoch than its first.
func TestDetectReadsEveryEpoch(t *testing.T) {
	store := t.TempDir()
	message := func(epoch, src, dst int32) schema.Message {
		m := schema.NullMessage
		m.Epoch, m.Src, m.Dst, m.Tag, m.Bytes, m.PayloadHash = epoch, src, dst, 9, 4097, 4711
		m.Comm, m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = 0, int64(2*epoch+1), int64(2*epoch), int64(2*epoch)
		return m
	}
	writeSmall(t, store, "pipe.3", 3, message(0, 0, 1), message(1, 1, 2))
	var d report.Report
	if err := json.Unmarshal([]byte(commq(t, "detect", "--store", store, "--run", "pipe.3", "--all", "--format", "json")),
		&d); err != nil {
		t.Fatal(err)
	}
	want := []string{"MPI_Bcast 0-2 roots [0]"}
	if got := manualLines(&d); len(got) != 1 || !strings.Contains(got[0], want[0]) {
		t.Errorf("found %q, want %q", got, want)
	}
	sameWithEngine(t, store, "pipe.3")
}

// sameWithEngine compares the findings with and without an engine that selects messages first.
func sameWithEngine(t *testing.T, store, run string) {
	t.Helper()
	args := []string{"detect", "--store", store, "--run", run, "--format", "json", "--all"}
	plain := commq(t, args...)
	if diff := gocmp.Diff(plain, commq(t, append(args, "--engine", "duckdb")...)); diff != "" ||
		!strings.Contains(plain, `"operation"`) {
		t.Errorf("%s without and with --engine duckdb:\n%s", run, diff)
	}
}

// TestDetectAsksAnEngineFirst: for committed runs the findings are the same, also if messages have several payloads.
func TestDetectAsksAnEngineFirst(t *testing.T) {
	for _, run := range []string{"cg.A.16", "mg.W.16"} {
		sameWithEngine(t, runsDir, run)
	}
}

// TestDetectFindsCollectivesByHand captures figure 6 of the paper, and more, in C and Fortran under both libraries.
func TestDetectFindsCollectivesByHand(t *testing.T) {
	captureEnvironment(t)
	p := program{name: "manual", ranks: 5}
	for _, library := range []string{"openmpi", "mpich"} {
		commq(t, "capture", "build", "--mpi", library)
		for _, f := range flavours() {
			t.Run(library+"/"+f.name, func(t *testing.T) {
				f.flags = append(slices.Clone(f.flags), "-g")
				if f.suffix == ".F90" {
					f.flags = append(f.flags, "-J"+t.TempDir()) // output folder of modules
				}
				exe, store := p.build(t, library, f), t.TempDir()
				out := commq(t, "capture", "--store", store, "--name", "manual", "-q", "--hash", "crc64", "-n", "5",
					"--", exe)
				if out != "ok\n" {
					t.Fatalf("the program prints %q, want ok", out)
				}
				var d report.Report
				if err := json.Unmarshal([]byte(commq(t, "detect", "--store", store, "--run", "manual", "--all", "--format",
					"json")), &d); err != nil {
					t.Fatal(err)
				}
				if diff := gocmp.Diff(manualFindings, manualLines(&d)); diff != "" {
					t.Errorf("want, got:\n%s", diff)
				}
				if s := commq(t, "detect", "--store", store, "--run", "manual", "--all"); !strings.Contains(s,
					"MPI_Send in ") || !strings.Contains(s, "/manual"+f.suffix+":") {
					t.Errorf("the table does not say where to look:\n%s", s)
				}
			})
		}
	}
}

// manualLines returns findings as in manualFindings. The names of Fortran procedures begin with their module.
func manualLines(d *report.Report) []string {
	var out []string
	for _, f := range d.Findings {
		var functions []string
		for _, s := range f.SendSites {
			name := s.Function[strings.LastIndexAny(s.Function, "_:")+1:]
			if !slices.Contains(functions, name) {
				functions = append(functions, name)
			}
		}
		g := &f.Groups[0]
		out = append(out, fmt.Sprintf("%s %s %s roots %v %v %d bytes %d segments %d instances %d repeats %d messages %v %v %v", strings.Join(functions, "+"), f.Operation,
			report.Ranges(g.Ranks), g.Roots, g.PossibleRoots, f.PayloadBytesMax, f.Segments, f.Instances, f.Repeats,
			f.Messages, callsAt(f.SendSites), callsAt(f.ReceiveSites), callsAt(f.CompletionSites)))
	}
	slices.Sort(out)
	return out
}

// callsAt returns the different calls at some call sites.
func callsAt(sites []report.Site) (calls []string) {
	for _, s := range sites {
		calls = append(calls, s.Calls...)
	}
	slices.Sort(calls)
	return slices.Compact(calls)
}

// TestDetectErrors: a run without hashes, and wrong flags.
func TestDetectErrors(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--run pingpong.2 --machine myrinet",
			`commq: detect: run "pingpong.2" was captured without payload hashes; capture it again with --hash crc64` + "\n"},
		{"", "commq: no run given; name one as an argument or with --run\n"},
		{"--run pingpong.2 --min-ranks 1", "commq: --min-ranks 1: want 2 or more\n"},
		{"--run pingpong.2 --completeness 1.5", "commq: --completeness 1.5: want a fraction from 0 to 1\n"},
	} {
		status, out, errs := commandLine("", append([]string{"detect", "--store", runsDir},
			strings.Fields(c.args)...)...)
		if status != 2 || out != "" || errs != c.want {
			t.Errorf("commq detect %s: status %d, stdout %q, stderr %q; want 2, nothing and %q", c.args, status, out,
				errs, c.want)
		}
	}
}
