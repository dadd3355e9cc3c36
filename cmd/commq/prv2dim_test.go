//go:build dimemas

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// prv2dim returns Dimemas' translator of Paraver traces, which is beside the binary that $COMMQ_DIMEMAS names.
func prv2dim(t *testing.T) string {
	t.Helper()
	binary := os.Getenv("COMMQ_DIMEMAS")
	if binary == "" {
		t.Fatal("COMMQ_DIMEMAS does not name the Dimemas binary, beside which prv2dim is")
	}
	return filepath.Join(filepath.Dir(binary), "prv2dim")
}

// Dimemas' own translator reads the run from an exported trace: every message and collective, and, for simulated
// times, what each rank computes, to the nanosecond. (For measured times it counts all time between calls, where a
// run has CPU time.)
func TestPrvReadByPrv2dim(t *testing.T) {
	translator := prv2dim(t)
	store := t.TempDir()
	linkRuns(t, store, runsDir)
	for _, run := range []string{"cg.A.4", "mg.W.16", "is.W.16", "ft.W.16", "sp.W.4", "pingpong.2"} {
		mustCommq(t, "simulate", "--store", store, "--run", run, "--machine", "flat", "--name", run+".flat")
		for _, name := range []string{run, run + ".flat"} {
			base := filepath.Join(t.TempDir(), "trace")
			mustCommq(t, "export", "prv", "--store", store, "--run", name, "-o", base+".prv")
			out, err := exec.Command(translator, "-s", base+".prv", base+".dim").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "TRANSLATION FINISHED") {
				t.Fatalf("prv2dim: %v\n%s", err, out)
			}
			read := name + ".read"
			mustCommq(t, "import", "dim", base+".dim", "--name", read, "--store", store)
			for _, of := range []string{
				"SELECT count(*), sum(bytes), count(DISTINCT (src, dst, tag, bytes)) FROM messages",
				"SELECT src, dst, tag, bytes, count(*) FROM messages GROUP BY ALL ORDER BY ALL",
				"SELECT rank, call, send_bytes, recv_bytes, root_world, count(*) FROM events WHERE class = 'collective' GROUP BY ALL ORDER BY ALL",
			} {
				want := mustCommq(t, "sql", "--store", store, "--run", name, "--format", "csv", of)
				if got := mustCommq(t, "sql", "--store", store, "--run", read, "--format", "csv", of); got != want {
					t.Errorf("%s: %s: prv2dim reads\n%.2000s\nand the run has\n%.2000s", name, of, got, want)
				}
			}
			const compute = "SELECT rank, sum(compute_ns) FROM events GROUP BY rank ORDER BY rank"
			want := mustCommq(t, "sql", "--store", store, "--run", name, "--format", "csv", compute)
			if got := mustCommq(t, "sql", "--store", store, "--run", read, "--format", "csv", compute); got != want &&
				strings.HasSuffix(name, ".flat") {
				t.Errorf("%s: prv2dim reads\n%s\nand the run has\n%s", name, got, want)
			}
		}
	}
}
