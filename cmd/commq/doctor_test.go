package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/capture/doctor"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/schema"
)

// outcome is the result of a command line.
type outcome struct {
	stdout, stderr string
	status         int
}

func runLine(args ...string) outcome {
	var out, errs bytes.Buffer
	status := execute(context.Background(), args, strings.NewReader(""), &out, &errs)
	return outcome{out.String(), errs.String(), status}
}

// sick writes the spool of a job of 4 ranks; rank 2 has no file. Rank 3 is on another host, whose clock is known to 1
// us. Rank 0 received its message of 4097 bytes 5 us before it was sent. It sent another message that was not
// received, and 3 of its calls could not be recorded. Rank 1 never returned from a receive.
func sick(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const start = 1_000_000_000
	for _, rank := range []int32{0, 1, 3} {
		h := spool.Header{Rank: rank, Size: 4, Job: 0x51c4, Timer: spool.TimerTSC, ComputeClock: spool.ClockCPU,
			Ended:      spool.EndedFinalized,
			Clock0Tick: start, Clock0Ns: start, Clock1Tick: 2 * start, Clock1Ns: 2 * start, RealtimeNs: 1_700_000_000e9,
			OffsetFinalNs: schema.NullInt64, OffsetFinalErrorNs: schema.NullInt64, OffsetFinalAtNs: schema.NullInt64}
		copy(h.Host[:], "node0")
		copy(h.Program[:], "/nowhere/sick")
		copy(h.MPILibrary[:], "Open MPI v4.1.4")
		if rank == 3 {
			copy(h.Host[:], "node1")
			h.OffsetInitErrorNs, h.OffsetInitAtNs, h.Dropped = 1000, start, 3
		}
		if rank == 1 {
			h.Ended = spool.EndedNot
		}
		var b bytes.Buffer
		s := spoolgen.NewWriter(&b, h)
		call := func(id schema.CallID, t0, t1 uint64, peer int32, req uint32) {
			c := spoolgen.NewCall(id, start+t0, start+t1)
			if t1 == 0 {
				c.T1 = 0
			}
			if id != schema.CallInit && id != schema.CallFinalize {
				c.Comm, c.Peer, c.Tag, c.Dtype, c.Count, c.Req = 0, peer, 9, 6, 4097, req
			}
			s.Call(&c)
		}
		call(schema.CallInit, 100, 200, 0, 0)
		s.DefType(6, "MPI_BYTE", 0, 1, 1)
		switch rank {
		case 0:
			call(schema.CallRecv, 1000, 10_000, 3, 4097)
		case 1:
			call(schema.CallRecv, 1000, 0, 2, 0)
		case 3:
			call(schema.CallSend, 15_000, 16_000, 0, 0)
			call(schema.CallSend, 17_000, 18_000, 0, 0)
		}
		if rank != 1 {
			call(schema.CallFinalize, 20_000, 21_000, 0, 0)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, spoolgen.FileName(&h)), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDoctorOfARun(t *testing.T) {
	dir, store := sick(t), t.TempDir()
	for _, name := range []string{"sick", "again"} {
		if got := runLine("--store", store, "ingest", dir, "--name", name, "--partial", "--keep"); got.status != 0 {
			t.Fatalf("%+v", got)
		}
	}
	got := runLine("--store", store, "doctor", "sick")
	want := `warning  end             killed, 1 call never returned
                         -> the run's warnings name the calls; commq watch --hang says more about a spool that was kept
failed   dropped         3 calls could not be recorded: counts are too small
                         -> capture again with more room: a larger --max-spool, or another --spool
warning  unmatched       1 send and 1 receive without a partner
                         -> expected when a program does not reach MPI_Finalize
failed   ranks           no records of 1 of 4: 2
                         -> put the records of all nodes into one folder and ingest again; a rank that could not write its spool said so on stderr
ok       clocks          offsets between hosts are known to 1 us
failed   latencies       1 message received before they were sent; the worst from 3 to 0 by 5 us, where the clocks are known to 1 us
                         -> commq query negative-latencies lists the pairs; do not trust times between these ranks
ok       double capture  no calls of a thread overlap
warning  same job        the job is also run again
                         -> queries over both count it twice; commq runs remove one
ok       functions       the program /nowhere/sick is not here, so its calls were not checked
`
	checks, _, _ := strings.Cut(got.stdout, "warning  ingest said")
	if diff := cmp.Diff(want, checks); diff != "" || got.status != 1 {
		t.Errorf("status %d, %s (-want +got):\n%s", got.status, got.stderr, diff)
	}
	got = runLine("--store", store, "doctor", "sick", "--format", "json")
	var list []doctor.Finding
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || got.status != 1 ||
		list[1] != (doctor.Finding{Check: "dropped", Status: doctor.Failed,
			Found: "3 calls could not be recorded: counts are too small",
			Do:    "capture again with more room: a larger --max-spool, or another --spool"}) {
		t.Errorf("status %d, %v, %s", got.status, err, got.stdout)
	}
	got = runLine("--store", store, "query", "negative-latencies", "--run", "sick", "--format", "csv")
	if want := "src,dst,messages,beyond,worst_ns,bound_ns\n3,0,1,1,5000,1000\n"; got.stdout != want {
		t.Errorf("%+v, want %s", got, want)
	}
}

// doctor reports of programs: their library, languages, and the MPI functions that they call and commq does not
// record.
func TestDoctorOfAProgram(t *testing.T) {
	testenv.MPI(t, "openmpi")
	testenv.MPI(t, "mpich")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := write("a.c", `#include <mpi.h>
int MPIX_Our_own(void); int MPIX_Our_own(void) { return 0; }
static int q(void *e, MPI_Status *s) { (void)e; (void)s; return 0; }
static int f(void *e) { (void)e; return 0; }
static int k(void *e, int c) { (void)e; (void)c; return 0; }
int main(int argc, char **argv) { MPI_Request r; MPI_Init(&argc, &argv); MPI_Grequest_start(q, f, k, 0, &r); MPI_Finalize(); return 0; }
`)
	f := write("b.f90", "program b\nuse mpi_f08\ninteger :: e\ncall MPI_Init(e)\ncall MPI_Barrier(MPI_COMM_WORLD, e)\ncall MPI_Finalize(e)\nend\n")
	compile := func(args ...string) {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	compile("mpicc.mpich", "-o", dir+"/a", c)
	compile("mpif90.openmpi", "-o", dir+"/b", f)
	compile("cc", "-static", "-x", "c", "-o", dir+"/static", write("s.c", "int main(void) { return 0; }\n"))
	write("script", "#!/bin/sh\nmpirun\n")
	for _, x := range []struct {
		program string
		status  int
		want    []string
	}{
		{"a", 0, []string{"ok       MPI library  mpich; ", "ok       languages    C\n",
			"warning  functions    3 functions of MPI called, of which not recorded: MPI_Grequest_start\n"}},
		{"b", 0, []string{"ok       MPI library  openmpi; ", "ok       languages    Fortran 2008\n",
			"ok       functions    3 functions of MPI called; all that communicate are recorded\n"}},
		{"static", 1, []string{"failed   MPI library  it is statically linked, so nothing can be preloaded into it\n",
			"-> link it dynamically\n"}},
		{"script", 1, []string{"failed   MPI library  it is not an ELF executable (a script?)\n"}},
	} {
		got := runLine("doctor", filepath.Join(dir, x.program))
		for _, want := range x.want {
			if !strings.Contains(got.stdout, want) || got.status != x.status {
				t.Errorf("%s: status %d, want %d and %q in\n%s%s", x.program, got.status, x.status, want, got.stdout,
					got.stderr)
			}
		}
	}
	if got := runLine("doctor", "./nothing.here"); got.status != 2 || !strings.Contains(got.stderr, "./nothing.here") {
		t.Errorf("%+v", got)
	}
}

// On a machine that can run the other tests, no check of doctor fails.
func TestDoctorOfTheMachine(t *testing.T) {
	testenv.MPI(t, "openmpi")
	testenv.MPI(t, "mpich")
	var out, errs bytes.Buffer
	status := execute(context.Background(), []string{"doctor", "--quick"}, strings.NewReader(""), &out, &errs)
	if status != 0 || !strings.Contains(out.String(), "mpirun.mpich") || !strings.Contains(out.String(), " 0 failed") {
		t.Errorf("status %d\n%s%s", status, &out, &errs)
	}
	t.Setenv("PATH", t.TempDir())
	if got := runLine("doctor", "--quick", "--spool", "/proc/nowhere"); got.status != 1 ||
		!strings.Contains(got.stdout, "failed   MPI ") || !strings.Contains(got.stdout, "failed   spool folder") {
		t.Errorf("without anything: %+v", got)
	}
}

// What was found may have several lines; they stand below each other.
func TestFindingsOfSeveralLines(t *testing.T) {
	var b bytes.Buffer
	a := &app{stdout: &b}
	err := printFindings(a, []doctor.Finding{{Check: "system", Status: doctor.OK, Found: "linux"},
		{Check: "openmpi capture", Status: doctor.Failed, Found: "mpicc failed\n    spool.c:7: \x1b[31modd", Do: "mend it"}})
	want := `ok       system           linux
failed   openmpi capture  mpicc failed
                              spool.c:7: \x1b[31modd
                          -> mend it
1 check ok, 0 warnings, 1 failed
`
	if err != nil || b.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, &b, want)
	}
}
