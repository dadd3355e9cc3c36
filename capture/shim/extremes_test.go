package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/testenv"
)

// TestExtremes runs programs with many outstanding requests, calls, communicators and threads: they must say ok as
// without the shim, each call must have its record, and the memory that the shim takes must not grow with the number of
// calls. COMMQ_TEST_LONG=1 runs 10^6 requests, 10^7 calls, 10^4 communicators, and 10^5 calls of 16 threads each.
// MPICH has at most 262,144 requests, and a started persistent one is two of them.
func TestExtremes(t *testing.T) {
	long := os.Getenv("COMMQ_TEST_LONG") != ""
	for _, c := range []struct {
		how          string
		ranks        int
		few, many    int
		mpich        int             // instead of many, if not 0
		calls        func(n int) int // of rank 0, with MPI_Init_thread, MPI_Reduce and MPI_Finalize
		bytesEach    int             // of memory for each of n that the shim may take
		threadsOfOne int
	}{
		{"requests", 2, 10_000, 20_000, 0, func(n int) int { return 2*n + 5 }, 400, 1},
		{"posted", 1, 50_000, 1_000_000, 250_000, func(n int) int { return 2*n + 4 }, 250, 1},
		{"started", 1, 50_000, 1_000_000, 120_000, func(n int) int { return 3*n + 5 }, 350, 1},
		{"calls", 1, 100_000, 10_000_000, 0, func(n int) int { return n + 3 }, 0, 1},
		{"comms", 1, 2000, 10_000, 0, func(n int) int { return 3*n + 3 }, 600, 1},
		{"threads", 1, 1000, 100_000, 0, func(n int) int { return 16*n + 16 + 3 }, 0, 17},
	} {
		for _, library := range libraries {
			t.Run(c.how+"/"+library, func(t *testing.T) {
				testenv.MPI(t, library)
				n := c.few
				if long {
					n = c.many
				}
				if long && library == MPICH && c.mpich != 0 {
					n = c.mpich
				}
				exe := compile(t, "mpicc."+library, filepath.Join(programs, "extremes.c"), "-w", "-pthread")
				bare, got, folder := launchBoth(t, library, exe, c.ranks, nil, c.how, strconv.Itoa(n))
				if got.status != 0 || got.stderr != bare.stderr {
					t.Fatalf("without the shim %+v, with it %+v", bare, got)
				}
				before, after := peak(t, bare), peak(t, got)
				// two windows of 0.5 MiB for each thread, and what the process has once
				most := before + int64(c.bytesEach)*int64(n)/1000 + 3_000 + 1_500*int64(c.threadsOfOne)
				if after > most {
					t.Errorf("%d kB of memory, %d without the shim; want at most %d", after, before, most)
				}
				t.Logf("n %d: %d kB of memory, %d without the shim", n, after, before)
				calls := 0
				files, err := filepath.Glob(filepath.Join(folder, "*.0.*.cqs"))
				if err != nil || len(files) != c.threadsOfOne {
					t.Fatalf("%d files of rank 0, %v", len(files), err)
				}
				for _, file := range files {
					calls += recordedCalls(t, file)
				}
				if want := c.calls(n); calls != want {
					t.Errorf("rank 0 has %d calls; want %d", calls, want)
				}
			})
		}
	}
}

// recordedCalls returns the number of calls in a file; each must have returned.
func recordedCalls(t *testing.T, path string) (calls int) {
	t.Helper()
	f, err := spool.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range f.All() {
		if c.Kind == spool.KindCall {
			if calls++; c.T1 < c.T0 {
				t.Fatalf("%s: call %d has not returned", path, calls)
			}
		}
	}
	return calls
}

// peak returns the memory in kB that extremes printed.
func peak(t *testing.T, o outcome) int64 {
	t.Helper()
	text, ok := strings.CutPrefix(strings.TrimSpace(o.stdout), "ok ")
	kB, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		t.Fatal(fmt.Errorf("%+v: %w", o, err))
	}
	return kB
}
