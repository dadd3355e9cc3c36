package shim

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/schema"
	"github.com/google/go-cmp/cmp"
)

// TestJumpedOut checks that a thread continues to be recorded after an error handler has jumped out of a call,
// whether or not the next call is deeper in the stack. The abandoned call never returned; calls from inside it are
// not recorded.
func TestJumpedOut(t *testing.T) {
	for _, library := range libraries {
		for _, compiler := range []string{"mpicc.", "mpicxx."} { // by longjmp, by an exception
			t.Run(compiler+library, func(t *testing.T) {
				testenv.MPI(t, library)
				testenv.Need(t, compiler+library)
				checkJumpedOut(t, library, compile(t, compiler+library, filepath.Join(programs, "thrown.c"), "-w",
					"-O1", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"))
			})
		}
	}
}

func checkJumpedOut(t *testing.T, library, exe string) {
	t.Helper()
	for _, sink := range []string{"mmap", "write", "packed"} {
		bare, got, folder := launchBoth(t, library, exe, 1, []string{"COMMQ_SINK=" + sink})
		if bare != got || got != (outcome{"ok\n", "", 0}) {
			t.Fatalf("without the shim: %+v\nwith it: %+v", bare, got)
		}
		data, err := filepath.Glob(filepath.Join(folder, "*"+spool.Suffix))
		if err != nil || len(data) != 1 {
			t.Fatalf("%v, %v", data, err)
		}
		d := readSpool(t, data[0], nil)
		want := []string{"MPI_Init", "MPI_Barrier", "MPI_Send", "MPI_Sendrecv", "MPI_Send", "MPI_Barrier",
			"MPI_Sendrecv", "MPI_Send", "MPI_Sendrecv", "MPI_Barrier", "MPI_Finalize"}
		if diff := cmp.Diff(want, d.names()); diff != "" {
			t.Fatalf("%s: calls (-want +got):\n%s", sink, diff)
		}
		for i, c := range d.calls {
			if left := schema.CallID(c.Call) == schema.CallSend; left != (c.T1 == 0) {
				t.Errorf("%s: call %d, %s: t1 %d", sink, i, schema.CallID(c.Call), c.T1)
			}
		}
	}
}

// TestForkInHandler forks in a signal handler at any time, also inside the recorder's own code: the children do not
// touch the records, and no call is lost.
func TestForkInHandler(t *testing.T) {
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			lib := shimFor(t, library)
			exe := compile(t, "mpicc."+library, filepath.Join(programs, "forks.c"), "-w")
			for _, sink := range []string{"mmap", "write", "packed"} {
				folder := filepath.Join(t.TempDir(), "spool")
				got := launch(t, library, 1, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder, "COMMQ_SINK=" +
					sink}, exe)
				n, err := strconv.Atoi(strings.TrimSpace(got.stdout))
				if err != nil || got.status != 0 || got.stderr != "" {
					t.Fatalf("%s: %+v", sink, got)
				}
				paths, err := filepath.Glob(filepath.Join(folder, "*"))
				if err != nil || len(paths) != 1 {
					t.Fatalf("%s: %v, %v; want one file", sink, paths, err)
				}
				f, err := spool.Open(paths[0])
				if err != nil {
					t.Fatal(err)
				}
				calls := map[schema.CallID]int{}
				for _, c := range f.All() {
					if c.Kind == spool.End {
						break
					} else if c.Kind == spool.KindCall {
						calls[schema.CallID(c.Call)]++
					}
				}
				if diff := cmp.Diff(map[schema.CallID]int{schema.CallInit: 1, schema.CallBarrier: n,
					schema.CallFinalize: 1}, calls); diff != "" || f.Header.Ended != spool.EndedFinalized ||
					f.Header.Dropped != 0 {
					t.Errorf("%s: ended %d, %d dropped; calls (-want +got):\n%s", sink, f.Header.Ended,
						f.Header.Dropped, diff)
				}
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestNoHookedMemory checks that the shim gets its memory from the kernel: in libc's mmap and munmap the hooks of
// MPI's memory registration would take locks, and a handler that forks would deadlock.
func TestNoHookedMemory(t *testing.T) {
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			f, err := elf.Open(shimFor(t, library))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			imported, err := f.ImportedSymbols()
			if err != nil || len(imported) == 0 {
				t.Fatal(imported, err)
			}
			for _, s := range imported {
				if slices.Contains([]string{"mmap", "mmap64", "munmap", "mremap", "madvise", "sbrk", "brk", "shmat",
					"shmdt"}, s.Name) {
					t.Errorf("the shim calls libc's %s", s.Name)
				}
			}
		})
	}
}

// TestSignal checks that SIGUSR1 makes a mark if the program does not use the signal, and only then.
func TestSignal(t *testing.T) {
	between := []string{"MPI_Init_thread", "MPI_Barrier", "commq_mark", "MPI_Barrier", "MPI_Barrier", "MPI_Finalize"}
	without := slices.DeleteFunc(slices.Clone(between), func(s string) bool { return s == "commq_mark" })
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			testenv.MPI(t, library)
			exe := compile(t, "mpicc."+library, filepath.Join(programs, "signals.c"), "-w", "-pthread")
			for _, c := range []struct {
				how, sink string
				calls     []string
				marks     uint64
				bare      bool // it also ends well without the shim
			}{
				{"between", "mmap", between, 1, false},
				{"between", "write", between, 1, false},
				{"in a call", "mmap", []string{"MPI_Init_thread", "MPI_Barrier", "MPI_Comm_dup", "commq_mark",
					"MPI_Comm_free", "MPI_Barrier", "MPI_Barrier", "MPI_Finalize"}, 1, false},
				{"elsewhere", "mmap", nil, 1, false}, // before or behind the next call of the thread that makes one
				{"before", "mmap", without, 0, true},
				{"after", "mmap", without, 0, true},
				{"ignored", "mmap", without, 0, true},
			} {
				folder := filepath.Join(t.TempDir(), "spool")
				got := launch(t, library, 1, []string{"LD_PRELOAD=" + shimFor(t, library), "COMMQ_SPOOL=" + folder,
					"COMMQ_SINK=" + c.sink}, exe, c.how)
				if got.status != 0 || got.stderr != "" {
					t.Fatalf("%s: %+v", c.how, got)
				}
				if c.bare {
					if bare := launch(t, library, 1, nil, exe, c.how); bare != got {
						t.Errorf("%s: %+v, without the shim %+v", c.how, got, bare)
					}
				}
				checkMarks(t, c.how, dumpMarks(t, folder), c.calls, c.marks)
			}
		})
	}
}

// dumpMarks reads the file of the first thread; marks lie within other calls.
func dumpMarks(t *testing.T, folder string) *dumper {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.0"+spool.Suffix))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%v, %v", paths, err)
	}
	return readSpool(t, paths[0], nil)
}

func checkMarks(t *testing.T, how string, d *dumper, want []string, marks uint64) {
	t.Helper()
	if d.header.Marks != marks || (d.header.MarkNs == 0) != (marks == 0) {
		t.Errorf("%s: %d marks, the last at %d ns; want %d", how, d.header.Marks, d.header.MarkNs, marks)
	}
	if want != nil {
		if diff := cmp.Diff(want, d.names()); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", how, diff)
		}
	}
	for i, c := range d.calls {
		if schema.CallID(c.Call) != schema.CallCommqMark {
			continue
		}
		if !strings.Contains(d.lines[i], `["SIGUSR1"]`) || c.T0 != c.T1 || c.T0 < d.calls[i-1].T0 ||
			i+1 < len(d.calls) && c.T0 > d.calls[i+1].T0 {
			t.Errorf("%s: %s, at %d to %d; the call before began at %d", how, d.lines[i], c.T0, c.T1, d.calls[i-1].T0)
		}
		if inside := c.T0 < d.calls[i-1].T1; how != "elsewhere" && inside != (how == "in a call") {
			t.Errorf("%s: the mark at %d, the call before from %d to %d", how, c.T0, d.calls[i-1].T0, d.calls[i-1].T1)
		}
	}
}

// TestCounters checks the synthetic counters: the k-th gap (from 0) has 20k+5 instructions and 12k+4 cycles; a failed
// poll adds its gap to that of the next call.
func TestCounters(t *testing.T) {
	for _, library := range libraries {
		lib := shimFor(t, library)
		exe := compile(t, "mpicc."+library, filepath.Join(programs, "burn.c"), "-w")
		folder := filepath.Join(t.TempDir(), "spool")
		got := launch(t, library, 1, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder, "COMMQ_COUNTERS=fake"}, exe)
		if !strings.HasPrefix(got.stdout, "ok ") || got != (outcome{got.stdout, "", 0}) {
			t.Fatalf("%s: %+v", library, got)
		}
		d := dumpFolder(t, folder)[0]
		if d.header.Counters != spool.CountersFake || len(d.pre) != len(d.calls) {
			t.Fatalf("%s: counters %d, %d PRE slots for %d calls", library, d.header.Counters, len(d.pre), len(d.calls))
		}
		if p := d.pre[0]; p.Instructions != schema.NullInt64 || p.Cycles != schema.NullInt64 {
			t.Errorf("%s: MPI_Init: %d instructions, %d cycles before it", library, p.Instructions, p.Cycles)
		}
		k := int64(0)
		for i, p := range d.pre[1:] {
			var instructions, cycles int64
			for range p.Polls + 1 {
				instructions += 20*k + 5
				cycles += 12*k + 4
				k++
			}
			if p.Instructions != instructions || p.Cycles != cycles {
				t.Errorf("%s: call %d after %d polls: %d instructions and %d cycles, want %d and %d", library, i+1,
					p.Polls, p.Instructions, p.Cycles, instructions, cycles)
			}
		}
		if d.header.Polls == 0 {
			t.Errorf("%s: no polls", library)
		}
	}
}

// TestCountersOfTheMachine checks that a machine without counters causes one message, and that the program is
// recorded without them.
func TestCountersOfTheMachine(t *testing.T) {
	lib := shimFor(t, OpenMPI)
	exe := compile(t, "mpicc.openmpi", filepath.Join(programs, "burn.c"), "-w")
	folder := filepath.Join(t.TempDir(), "spool")
	got := launch(t, OpenMPI, 1, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder, "COMMQ_COUNTERS=perf"}, exe)
	d := dumpFolder(t, folder)[0]
	if got.status != 0 || !strings.HasPrefix(got.stdout, "ok ") || len(d.calls) < 5 {
		t.Fatalf("%+v, %d calls", got, len(d.calls))
	}
	switch d.header.Counters {
	case spool.CountersNone:
		if strings.Count(got.stderr, "commq: instructions and cycles are not counted: perf_event_open: ") != 1 {
			t.Errorf("%+v", got)
		}
	case spool.CountersPerf:
		for i, p := range d.pre[1:] {
			if p.Instructions <= 0 || p.Cycles <= 0 {
				t.Errorf("call %d: %d instructions, %d cycles", i+1, p.Instructions, p.Cycles)
			}
		}
	}
}

// TestLimit checks that recording stops at the limit, with both sinks, and that the records so far are complete.
func TestLimit(t *testing.T) {
	const n = 30000
	lib := shimFor(t, OpenMPI)
	exe := compile(t, "mpicc.openmpi", filepath.Join(programs, "many.c"), "-w")
	for _, sink := range []string{"mmap", "write", "packed"} {
		folder, n, limit := filepath.Join(t.TempDir(), "spool"), n, uint64(200_000)
		if sink == "packed" {
			n, limit = 50*n, 5<<20
		}
		got := launch(t, OpenMPI, 1, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder, "COMMQ_SINK=" + sink,
			fmt.Sprint("COMMQ_MAX_SPOOL=", limit)}, exe, fmt.Sprint(n))
		if got != (outcome{"ok\n", "", 0}) {
			t.Fatalf("%s: %+v", sink, got)
		}
		d := dumpFolder(t, folder)[0]
		h, bytes := d.header, folderBytes(t, folder)
		if h.Limit != limit || h.Limited != 1 || h.Ended != spool.EndedFinalized ||
			len(d.calls)+int(h.Dropped) != 3*n+4 || bytes > limit || bytes < limit-limit/20 {
			t.Errorf("%s: limit %d, limited %d, ended %d, %d calls and %d dropped of %d, %d bytes", sink, h.Limit,
				h.Limited, h.Ended, len(d.calls), h.Dropped, 3*n+4, bytes)
		}
	}
}

// folderBytes returns the size of the files in a folder.
func folderBytes(t *testing.T, folder string) (all uint64) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		all += uint64(info.Size())
	}
	return all
}

// TestCountingSink checks that the null sink counts what the other sinks write.
func TestCountingSink(t *testing.T) {
	lib := shimFor(t, OpenMPI)
	exe := compile(t, "mpicc.openmpi", filepath.Join(programs, "many.c"), "-w")
	headers := map[string]spool.Header{}
	for _, sink := range []string{"mmap", "null", "write"} {
		folder := filepath.Join(t.TempDir(), "spool")
		got := launch(t, OpenMPI, 1, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder, "COMMQ_SINK=" + sink},
			exe, "5000")
		if got != (outcome{"ok\n", "", 0}) {
			t.Fatalf("%s: %+v", sink, got)
		}
		d := dumpFolder(t, folder)[0]
		headers[sink] = d.header
		if sink == "null" {
			if len(d.data) != spool.HeaderBytes || d.header.Calls != 3*5000+4 ||
				d.header.Ended != spool.EndedFinalized {
				t.Errorf("%d bytes, %d calls counted, ended %d", len(d.data), d.header.Calls, d.header.Ended)
			}
		} else if slots := (len(d.data) - spool.HeaderBytes) / spool.SlotBytes; d.header.Slots != uint64(slots) {
			t.Errorf("%s: %d slots in the header, %d in the file", sink, d.header.Slots, slots)
		}
	}
	// SUM slots stand a little differently, by the size of the buffer
	if a, b := headers["write"].Slots, headers["null"].Slots; max(a, b)-min(a, b) > a/200 {
		t.Errorf("%d slots, counted %d", a, b)
	}
}

// TestNoFallocateNoMap checks that records are written by write(2) on a file system without fallocate (ramfs has none)
// and on one without shared mappings.
func TestNoFallocateNoMap(t *testing.T) {
	lib := shimFor(t, OpenMPI)
	exe := compile(t, "mpicc.openmpi", filepath.Join(programs, "many.c"), "-w")
	check := func(name, folder, preload string) {
		got := launch(t, OpenMPI, 1, []string{"LD_PRELOAD=" + preload, "COMMQ_SPOOL=" + folder}, exe, "8000")
		if got != (outcome{"ok\n", "", 0}) {
			t.Fatalf("%s: %+v", name, got)
		}
		d := dumpFolder(t, folder)[0]
		if d.header.Slots != uint64(len(d.data)-spool.HeaderBytes)/spool.SlotBytes || d.header.Packed != 0 {
			t.Errorf("%s: %d slots in %d bytes, packed %d", name, d.header.Slots, len(d.data), d.header.Packed)
		}
		checkMany(t, d, 8000)
	}
	for name, without := range map[string]string{
		"fallocate": replacement(t, `#include <errno.h>
int fallocate(int f, int m, long o, long n) { errno = EOPNOTSUPP; return -1; }
int fallocate64(int f, int m, long o, long n) { errno = EOPNOTSUPP; return -1; }`),
		"mmap": failingPages(t, "a[3] & MAP_SHARED", "ENODEV"),
	} {
		check(name, filepath.Join(t.TempDir(), "spool"), without+":"+lib)
	}
	testenv.Root(t, "it mounts a ramfs")
	disk, err := diskInMemory("ramfs", "")
	if err != nil {
		testenv.Skip(t, fmt.Sprintf("a ramfs cannot be made here: %v", err))
	}
	defer disk.Close()
	check("ramfs", fmt.Sprintf("/proc/%d/fd/%d/spool", os.Getpid(), disk.Fd()), lib)
}

// TestFileSizeLimit checks that a limit on file sizes bounds the records, from 8 KiB on; with a smaller limit the
// rank runs unrecorded.
func TestFileSizeLimit(t *testing.T) {
	lib := shimFor(t, OpenMPI)
	exe := compile(t, "mpicc.openmpi", filepath.Join(programs, "many.c"), "-w")
	for _, c := range []struct {
		sink   string
		kib    int
		record bool
	}{{"mmap", 300, true}, {"mmap", 64, true}, {"mmap", 4, false}, {"write", 300, true}, {"write", 64, true}} {
		folder := filepath.Join(t.TempDir(), "spool")
		script := fmt.Sprintf("ulimit -f %d; exec env LD_PRELOAD=%s COMMQ_SPOOL=%s COMMQ_SINK=%s %s 8000", c.kib, lib,
			folder, c.sink, exe)
		got := run(t, []string{"OMPI_MCA_btl=self"}, "mpirun.openmpi", "-n", "1", "bash", "-c", script)
		if got.status != 0 || got.stdout != "ok\n" || strings.Count(got.stderr, "commq: ") != 1 ||
			!strings.Contains(got.stderr, "File too large") {
			t.Fatalf("%+v: %+v", c, got)
		}
		if !c.record {
			continue
		}
		d := dumpFolder(t, folder)[0]
		if len(d.calls)+int(d.header.Dropped) != 3*8000+4 || len(d.data) > c.kib<<10 || len(d.data) < c.kib<<9 {
			t.Errorf("%+v: %d calls and %d dropped of %d, %d bytes", c, len(d.calls), d.header.Dropped, 3*8000+4,
				len(d.data))
		}
	}
}
