package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
)

// hpccInput is a small problem for all of HPCC's tests on 4 ranks, in the format of hpccinf.txt.
// HPL does not look ahead: if it does, it cuts its updates where a panel arrives, and the residual has one of two values.
const hpccInput = `HPLinpack benchmark input file
commq
HPL.out output file name (if any)
8 device out (6=stdout,7=stderr,file)
1 # of problems sizes (N)
500 Ns
1 # of NBs
40 NBs
0 PMAP process mapping (0=Row-,1=Column-major)
1 # of process grids (P x Q)
2 Ps
2 Qs
16.0 threshold
1 # of panel fact
2 PFACTs (0=left, 1=Crout, 2=Right)
1 # of recursive stopping criterium
4 NBMINs (>= 1)
1 # of panels in recursion
2 NDIVs
1 # of recursive panel fact.
1 RFACTs (0=left, 1=Crout, 2=Right)
1 # of broadcast
1 BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1 # of lookahead depth
0 DEPTHs (>=0)
2 SWAP (0=bin-exch,1=long,2=mix)
64 swapping threshold
0 L1 in (0=transposed,1=no-transposed) form
0 U in (0=transposed,1=no-transposed) form
1 Equilibration (0=no,1=yes)
8 memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0 Number of additional problem sizes for PTRANS
1200 values of N
0 number of additional blocking sizes for PTRANS
40 values of NB
`

var (
	hpccFloat   = regexp.MustCompile(`\d+(\.\d+)?[eE][-+]?\d+|\d+\.\d+`)
	hpccVarying = regexp.MustCompile(`^(Current time|Node selected|max number of ping|max client pings|Hostname|Each test below will take| *\(= )`)
	hpccUpdates = regexp.MustCompile(`(Number of updates EXECUTED = |ExeUpdates=)\d+`)
	hpccBlanks  = regexp.MustCompile(`[ *]+`)
)

// hpccResults returns HPCC's output without timings and values that depend on them: every decimal fraction is masked
// except in the lines of HPL's residuals, which are results. RandomAccess times a few updates and executes as many as
// that speed allows in its time bound, so their number depends on timing, too; whether the updates were right is
// compared. PTRANS leaves out lines of CPU times that are 0.
func hpccResults(t *testing.T, dir string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "hpccoutf.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, line := range strings.Split(string(data), "\n") {
		switch {
		case strings.HasPrefix(line, "CPU "): // PTRANS has it only if its CPU clock ticked; the result is in its line WALL
			continue
		case hpccVarying.MatchString(line):
			line = hpccVarying.FindString(line)
		case !strings.Contains(line, "||Ax-b||"):
			line = hpccFloat.ReplaceAllString(hpccUpdates.ReplaceAllString(line, "${1}#"), "#")
		}
		lines = append(lines, hpccBlanks.ReplaceAllString(line, " "))
	}
	return lines
}

func TestHPCCRunsUnchanged(t *testing.T) {
	testenv.MPI(t, "openmpi")
	testenv.Need(t, "hpcc")
	native, captured := t.TempDir(), t.TempDir()
	for _, dir := range []string{native, captured} {
		if err := os.WriteFile(filepath.Join(dir, "hpccinf.txt"), []byte(hpccInput), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("mpirun.openmpi", "-n", "4", "hpcc")
	// With several threads, the BLAS adds up in the order that the load of the machine gives.
	env := testenv.Environ("OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
	cmd.Dir, cmd.Env = native, env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("hpcc itself: %v\n%s", err, out)
	}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	store := t.TempDir()
	t.Chdir(captured)
	commq(t, "capture", "--store", store, "--name", "hpcc.4", "-n", "4", "--", "hpcc")

	want, got := hpccResults(t, native), hpccResults(t, captured)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hpcc's output without (-) and with (+) capture:\n%s", diff)
	}
	text := strings.Join(got, "\n")
	if passed := strings.Count(text, "PASSED"); passed != 6 || strings.Contains(text, "FAILED") {
		t.Errorf("%d checks passed, or one failed:\n%s", passed, text)
	}
	commq(t, "runs", "check", "--store", store, "hpcc.4")
	polls := commq(t, "sql", "--store", store, "--run", "hpcc.4", "--format", "csv",
		"SELECT sum(polls) > 10000 AS p FROM events")
	if polls != "p\ntrue\n" {
		t.Errorf("hpcc polls with MPI_Testany all the time; counted more than 10,000: %q", polls)
	}
}
