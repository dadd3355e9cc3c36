package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestExecWithoutMeans checks that commq exec starts its program unrecorded where commq itself cannot start, with one
// line that says so, and that other commands end with one line and status 2.
func TestExecWithoutMeans(t *testing.T) {
	const program = `/bin/sh -c 'echo ran "$@"; exit 7' sh --spool -- 1`
	for _, c := range []struct {
		name, limit, args string
		stdout, stderr    string // of stderr the beginning of its only line
		status            int
	}{
		{"memory", "ulimit -v 1900000", "exec -- " + program, "ran --spool -- 1\n", "may use 1900000 kB", 7},
		{"flags", "ulimit -v 1900000", "exec --spool /nowhere --hash 32 -- " + program, "ran --spool -- 1\n",
			"may use 1900000 kB", 7},
		{"without --", "ulimit -v 1900000", "exec " + program, "ran --spool -- 1\n", "may use 1900000 kB", 7},
		{"files", "ulimit -n 7", "exec -- " + program, "ran --spool -- 1\n", "may open 7 files", 7},
		{"another rank says nothing", "ulimit -v 1900000; export PMI_RANK=1", "exec -- " + program,
			"ran --spool -- 1\n", "", 7},
		{"no such program", "ulimit -v 1900000; export PMI_RANK=1", "exec -- /none", "", "exec /none: No such file", 2},
		{"flags without --", "ulimit -v 1900000", "exec --hash 32 /bin/echo no", "", "may use 1900000 kB", 2},
		{"a -- of the program", "ulimit -v 1900000", "exec --hash 32 echo -- echo no", "", "may use 1900000 kB", 2},
		{"environment", "ulimit -v 1900000", "exec --print-env -- " + program, "", "may use 1900000 kB", 2},
		{"simulator ranks", "ulimit -v 1900000", "exec --sim-ranks 2 -- " + program, "", "may use 1900000 kB", 2},
		{"another command", "ulimit -v 1900000", "runs list", "", "may use 1900000 kB", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := exec.Command("bash", "-c", c.limit+` && exec "$COMMQ" `+c.args)
			for _, v := range os.Environ() { // the test itself may run as a rank
				if !strings.Contains(v, "_RANK=") && !strings.HasPrefix(v, "SLURM_PROCID=") {
					run.Env = append(run.Env, v)
				}
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			run.Env = append(run.Env, "COMMQ="+self)
			var stdout, stderr strings.Builder
			run.Stdout, run.Stderr = &stdout, &stderr
			_ = run.Run() // its status is checked
			lines := strings.Count(stderr.String(), "\n")
			if got := run.ProcessState.ExitCode(); got != c.status || stdout.String() != c.stdout ||
				!strings.Contains(stderr.String(), c.stderr) || lines > 1 || (c.stderr == "") != (lines == 0) {
				t.Errorf("status %d, stdout %q, stderr %q", got, stdout.String(), stderr.String())
			}
		})
	}
}
