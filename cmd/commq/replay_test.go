package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/replay"
)

// callsByRank counts the calls of each rank. Calls with large counts are played by their plain form, and
// communicators by host as communicators by colour; calls that failed and did nothing are left out.
const callsByRank = `SELECT rank, regexp_replace(regexp_replace(call, '_c$', ''), 'split_type$', 'split') AS call, count(*) AS n
FROM events WHERE error_class IS NULL GROUP BY 1, 2 ORDER BY 1, 2`

// TestReplayMatchesTheRun plays captures of the small programs, which together use every call that can be played: the
// messages, collectives and calls are those of the program.
func TestReplayMatchesTheRun(t *testing.T) {
	captureEnvironment(t)
	for _, c := range []struct {
		program
		library, equal string
	}{
		{program{name: "p2p", ranks: 3}, "mpich",
			"19 messages of 156 bytes in 9 pairs, 0 calls of collectives on 4 communicators"},
		{program{name: "detach", ranks: 3}, "openmpi",
			"1 message of 4 bytes in 1 pair, 0 calls of collectives on 1 communicator"},
		{program{name: "requests", ranks: 3}, "openmpi",
			"23 messages of 116 bytes in 6 pairs, 3 calls of collectives on 3 communicators"},
		{program{name: "probes", ranks: 3}, "openmpi",
			"4 messages of 40 bytes in 1 pair, 0 calls of collectives on 1 communicator"},
		{program{name: "comms", ranks: 5}, "openmpi",
			"7 messages of 28 bytes in 5 pairs, 23 calls of collectives on 11 communicators"},
		{program{name: "comms", ranks: 5}, "mpich",
			"7 messages of 28 bytes in 5 pairs, 23 calls of collectives on 11 communicators"},
		{program{name: "types", ranks: 3}, "openmpi",
			"9 messages of 108 bytes in 3 pairs, 0 calls of collectives on 1 communicator"},
		{program{name: "collectives", ranks: 3}, "mpich",
			"0 messages of 0 bytes in 0 pairs, 117 calls of collectives on 1 communicator"},
		{program{name: "corners", ranks: 3}, "openmpi",
			"0 messages of 0 bytes in 0 pairs, 96 calls of collectives on 2 communicators"},
		{program{name: "neighbors", ranks: 3}, "openmpi",
			"0 messages of 0 bytes in 0 pairs, 54 calls of collectives on 8 communicators"},
		{program{name: "neighbors", ranks: 3}, "mpich",
			"0 messages of 0 bytes in 0 pairs, 54 calls of collectives on 8 communicators"},
		{program{name: "persistent", ranks: 3}, "openmpi",
			"1 message of 4 bytes in 1 pair, 120 calls of collectives on 3 communicators"},
		{program{name: "persistent", ranks: 3}, "mpich",
			"1 message of 4 bytes in 1 pair, 120 calls of collectives on 3 communicators"},
	} {
		t.Run(c.name+"/"+c.library, func(t *testing.T) {
			commq(t, "capture", "build", "--mpi", c.library)
			exe, store := c.build(t, c.library, flavours()[0]), t.TempDir()
			commq(t, "capture", "--store", store, "--name", "a", "-q", "-n", fmt.Sprint(c.ranks), "--", exe)
			out := commq(t, "replay", "--store", store, "--run", "a", "-q", "--compute", "zero")
			if want := "a.replay: equal to a: " + c.equal + "\n"; out != want {
				t.Errorf("got %s want %s", out, want)
			}
			commq(t, "runs", "check", "--store", store, "a.replay")
			calls := func(run string) string {
				return commq(t, "sql", "--store", store, "--run", run, "--format", "csv", callsByRank)
			}
			if d := gocmp.Diff(calls("a"), calls("a.replay")); d != "" {
				t.Errorf("calls of the program, and of its replay:\n%s", d)
			}
		})
	}
}

// TestReplayOfCommittedRuns plays runs of testdata/runs with each library, whichever they were captured with.
func TestReplayOfCommittedRuns(t *testing.T) {
	captureEnvironment(t)
	for _, c := range []struct {
		run, library string
		flags        []string
		equal        string
	}{
		{"cg.A.4", "openmpi", nil, "6,720 messages of 186,395,648 bytes (186 MB) in 8 pairs, 12 calls of collectives on 1 communicator"},
		{"cg.A.4", "mpich", nil, "6,720 messages of 186,395,648 bytes (186 MB) in 8 pairs, 12 calls of collectives on 1 communicator"},
		{"ep.W.4", "mpich", nil, "0 messages of 0 bytes in 0 pairs, 24 calls of collectives on 1 communicator"},
		{"is.W.16", "openmpi", nil, "15 messages of 60 bytes in 15 pairs, 576 calls of collectives on 1 communicator"},
		{"rma.3", "openmpi", []string{"--skip", "rma"},
			"1 message of 4 bytes in 1 pair, 6 calls of collectives on 1 communicator"},
		{"bt-io.S.4", "openmpi", []string{"--skip", "io"}, ""},
	} {
		t.Run(c.run+"/"+c.library, func(t *testing.T) {
			store := t.TempDir()
			args := append([]string{"replay", "--store", store, "--run", filepath.Join(runsDir, c.run), "-q",
				"--compute", "zero", "--mpi", c.library}, c.flags...)
			out := commq(t, args...)
			if want := c.run + ".replay: equal to " + c.run + ": " + c.equal; !strings.HasPrefix(out, want) {
				t.Errorf("got %s want %s", out, want)
			}
		})
	}
}

// TestReplayOfPhases plays the phases of a run: the predicted time is positive, includes both phases, and playing
// takes less time than the run.
func TestReplayOfPhases(t *testing.T) {
	captureEnvironment(t)
	var p replay.PhasePrediction
	out := commq(t, "replay", "--run", filepath.Join(runsDir, "cg.A.4"), "--phases", "--repeat", "3", "--compute",
		"zero", "--mpi", "openmpi", "--format", "json")
	fitsSchema(t, "replay-phases", out)
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Phases) != 2 || p.Phases[0].Weight != 15 || p.Phases[1].Weight != 25 || len(p.Notes) > 0 {
		t.Fatalf("phases of 15 iterations and of 25 conjugate-gradient steps were expected: %+v", p)
	}
	for _, f := range p.Phases {
		if f.TimeNs < f.TimeNsMin || f.TimeNs > f.TimeNsMax || f.TimeNsMin <= 0 {
			t.Errorf("phase %d: %d ns of %d to %d", f.Phase, f.TimeNs, f.TimeNsMin, f.TimeNsMax)
		}
	}
	if sum := p.Phases[0].TotalNs + p.Phases[1].TotalNs; p.PETNs != sum || p.PETNsMin > p.PETNsMax || p.PETNsMin <= 0 {
		t.Errorf("PET %d (%d to %d), the phases have %d", p.PETNs, p.PETNsMin, p.PETNsMax, sum)
	}
}

// TestInterruptedReplayLeavesNothing interrupts phases that would be played for hours: no process and no file
// remains.
func TestInterruptedReplayLeavesNothing(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		t.Run(library, func(t *testing.T) {
			folder := t.TempDir()
			ranks := func() (n int) {
				files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
				for _, f := range files {
					line, _ := os.ReadFile(f)
					if program, rest, _ := strings.Cut(string(line),
						"\x00"); filepath.Base(program) == "commq-replay" && strings.Contains(rest, folder) {
						n++
					}
				}
				return n
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go func() {
				for ctx.Err() == nil && ranks() < 4 {
					time.Sleep(50 * time.Millisecond)
				}
				stop()
			}()
			var errs strings.Builder
			status := execute(ctx, []string{"replay", "--run", filepath.Join(runsDir, "cg.A.4"), "--phases", "--repeat",
				"1000000", "--mpi", library, "--schedule-dir", folder}, nil, io.Discard, &errs)
			if status != exitCannot {
				t.Errorf("exit status %d: %s", status, errs.String())
			}
			for deadline := time.Now().Add(testenv.Patience); ranks() > 0 && time.Now().Before(deadline); {
				time.Sleep(50 * time.Millisecond)
			}
			if n := ranks(); n > 0 {
				t.Errorf("%d ranks go on", n)
			}
			if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestSharedRunHasOnlyTheSchedule exports a run without names and plays it.
func TestSharedRunHasOnlyTheSchedule(t *testing.T) {
	captureEnvironment(t)
	store := t.TempDir()
	shared := filepath.Join(store, "shared")
	commq(t, "export", "replay", "--run", filepath.Join(runsDir, "cg.A.4"), "-o", shared, "--anonymous")
	commq(t, "runs", "check", "--store", store, "shared")
	left := commq(t, "sql", "--store", store, "--run", "shared", "--format", "csv", `SELECT
  (SELECT count(*) FROM events WHERE payload_hash IS NOT NULL OR payload_sum IS NOT NULL OR payload_head IS NOT NULL OR send_buffer IS NOT NULL OR recv_buffer IS NOT NULL) +
  (SELECT count(*) FROM messages WHERE payload_hash IS NOT NULL OR payload_sum IS NOT NULL OR payload_head IS NOT NULL OR src_buffer IS NOT NULL OR dst_buffer IS NOT NULL) +
  (SELECT count(*) FROM callsites WHERE function IS NOT NULL OR file IS NOT NULL OR line IS NOT NULL OR module IS NOT NULL OR build_id IS NOT NULL) +
  (SELECT count(*) FROM comms WHERE name IS NOT NULL) AS n`)
	if left != "n\n0\n" {
		t.Errorf("rows with what should be gone: %s", left)
	}
	for _, query := range []string{"density", "data-density", "collectives", "sizes"} {
		ask := func(run string) string {
			return commq(t, "query", query, "--store", store, "--run", run, "--format", "csv")
		}
		if d := gocmp.Diff(ask(filepath.Join(runsDir, "cg.A.4")), ask("shared")); d != "" {
			t.Errorf("%s of the run, and of what is shared:\n%s", query, d)
		}
	}
	out := commq(t, "replay", "--store", store, "--run", "shared", "-q", "--compute", "zero", "--mpi", "openmpi")
	if want := "shared.replay: equal to shared: 6,720 messages"; !strings.HasPrefix(out, want) {
		t.Errorf("got %s want %s", out, want)
	}
}
