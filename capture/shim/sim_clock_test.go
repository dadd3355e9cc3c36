package shim

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/capture/simrank"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/testenv"
)

// clocked runs a program beside simulator ranks of a machine with 10 us and 1 GB/s, without compute times. It also
// returns the folder of its records.
func clocked(t testing.TB, library string, ranks, sims int, program ...string) (outcome, string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "spool")
	machine, err := filepath.Abs("../../models/machines/flat.yaml")
	if err != nil {
		t.Fatal(err)
	}
	common := append(simulation(t), "COMMQ_SPOOL="+folder, "COMMQ_SIM_MACHINE="+machine, "COMMQ_CLOCK=none")
	lib := formFor(t, library, Simulated)
	also := common
	if library == MPICH {
		lib += ":" + yielding(t)
		also = append(slices.Clone(common), "LD_PRELOAD="+yielding(t))
	}
	args := append([]string{"mpirun." + library, "-n", fmt.Sprint(ranks), "env", "LD_PRELOAD=" + lib}, common...)
	args = append(append(args, program...), ":", "-n", fmt.Sprint(sims), "env")
	return run(t, nil, append(append(args, also...), formFor(t, library, Bridge))...), folder
}

// TestVirtualTimes checks that messages, and calls that wait for them, take the computed times, to the picosecond,
// with any number of simulator ranks; and that all records exist.
func TestVirtualTimes(t *testing.T) {
	for _, library := range libraries {
		for _, sims := range []int{1, 2} {
			t.Run(fmt.Sprint(library, sims), func(t *testing.T) {
				exe := compile(t, "mpicc."+library, filepath.Join(programs, "sim_messages.c"), "-w")
				got, folder := clocked(t, library, 3, sims, exe)
				if got != (outcome{"ok\n", "", 0}) {
					t.Fatalf("%+v", got)
				}
				all := dumpFolder(t, folder)
				if len(all) != 3 {
					t.Fatalf("records of %d ranks", len(all))
				}
				for i, d := range all {
					h := d.header
					if h.Timer != spool.TimerVirtual || int(h.Rank) != i || int(h.Size) != 3 ||
						h.Ended != spool.EndedFinalized || h.Dropped != 0 {
						t.Errorf("file %d: timer %d, rank %d of %d, ended %d, dropped %d", i, h.Timer, h.Rank, h.Size,
							h.Ended, h.Dropped)
					}
					names := d.names()
					if names[0] != "MPI_Init" || names[len(names)-1] != "MPI_Finalize" {
						t.Errorf("rank %d: calls from %s to %s", i, names[0], names[len(names)-1])
					}
					var last uint64 = 1000000
					for n, c := range d.calls {
						if c.T0 < last || c.T1 < c.T0 {
							t.Errorf("rank %d: call %d, %s, from %d to %d behind %d", i, n, names[n], c.T0, c.T1, last)
						}
						last = c.T1
					}
				}
			})
		}
	}
}

// TestEndsOfSimulations ends each kind of process early: no process hangs, a message explains what happened, and the
// records so far exist.
func TestEndsOfSimulations(t *testing.T) {
	for _, library := range libraries {
		testenv.MPI(t, library)
		exe := compile(t, "mpicc."+library, filepath.Join(programs, "sim_ends.c"), "-w")
		for _, c := range []struct {
			how      string
			says     string // on stderr
			status   bool   // the exit status is as without the failure
			recorded bool   // also calls up to the end, not only those already sent
		}{
			{"the process is killed", "commq: simulator rank 0: the simulating process has ended; the program goes on without virtual time, and nothing more is recorded\n", true, false},
			{"the bridge is killed", "", false, false},
			{"abort", "", false, true},
			{"crash", "", false, false},
			{"exit", "", false, true},
		} {
			t.Run(library+"/"+c.how, func(t *testing.T) {
				got, folder := clocked(t, library, 2, 1, exe, c.how)
				if !strings.Contains(got.stderr, c.says) || (got.status == 0) != c.status {
					t.Errorf("%+v", got)
				}
				if _, err := simrank.Wait(t.Context(), folder, testenv.Patience); err != nil {
					t.Error(err)
				}
				files, err := filepath.Glob(filepath.Join(folder, "*"+spool.Suffix))
				if err != nil || len(files) != 2 {
					t.Fatalf("%v, %v: want the records of two ranks", files, err)
				}
				if n := len(readSpool(t, files[0], nil).calls); c.recorded && n < 3000 {
					t.Errorf("%d calls of rank 0 are recorded", n)
				}
			})
		}
	}
}
