package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A bound that is no number of bytes of the shim's is refused.
func TestSpoolBound(t *testing.T) {
	for bound, want := range map[string]int64{"10EB": 0, "5EB": 5e18, "1MB": 1e6} {
		got, err := (&captureOptions{maxSpool: bound, ranks: 1}).spoolBound()
		if got != want || (err != nil) != (want == 0) {
			t.Errorf("%s: %d, %v; want %d", bound, got, err, want)
		}
	}
}

// TestDryRunReportsSimulators: a mark of a simulator rank in the spool that cannot be removed is an error of
// commq capture --dry-run too.
func TestDryRunReportsSimulators(t *testing.T) {
	captureEnvironment(t)
	launcher := filepath.Join(t.TempDir(), "launcher")
	// the launcher's command line contains the variables of the ranks
	script := `#!/bin/sh
for word; do case $word in COMMQ_SPOOL=*) COMMQ_SPOOL=${word#COMMQ_SPOOL=};; esac; done
mkdir -p "$COMMQ_SPOOL/simulator-3.lock/x"
`
	if err := os.WriteFile(launcher, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		args := []string{"capture", "--store", t.TempDir(), "--spool", t.TempDir(), "--mpi", "mpich", "--launcher", launcher,
			"--sim-ranks", "1", "--machine", "flat", "--clock", "none"}
		if dry {
			args = append(args, "--dry-run")
		}
		status, _, errs := commandLine("", append(args, "--", launcher)...)
		if status != exitCannot || !strings.Contains(errs, "wait for the simulator ranks: ") ||
			!strings.Contains(errs, "simulator-3.lock") {
			t.Errorf("dry run %v: status %d, %q; want %d and the error of the simulator ranks", dry, status, errs, exitCannot)
		}
	}
}
