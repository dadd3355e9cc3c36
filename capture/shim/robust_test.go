package shim

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/schema"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// launchBoth launches a program of testdata/programs with and without the shim and returns both outcomes and the
// spool.
func launchBoth(t *testing.T, library, exe string, ranks int, env []string, args ...string) (bare, got outcome,
	folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "spool")
	line := append([]string{exe}, args...)
	bare = launch(t, library, ranks, nil, line...)
	got = launch(t, library, ranks, append([]string{"LD_PRELOAD=" + shimFor(t, library), "COMMQ_SPOOL=" + folder},
		env...), line...)
	return bare, got, folder
}

// names lists the names of a thread's calls.
func (d *dumper) names() []string {
	var names []string
	for _, c := range d.calls {
		names = append(names, schema.CallID(c.Call).String())
	}
	return names
}

func TestEnds(t *testing.T) {
	process := regexp.MustCompile(`PID [0-9]+`) // MPICH's launcher says who was killed
	first := []string{"MPI_Init", "MPI_Barrier"}
	for _, library := range libraries {
		exe := ""
		for _, c := range []struct {
			how   string
			sink  string
			ended uint32   // of rank 0
			calls []string // of rank 0
		}{
			{"status", "mmap", spool.EndedFinalized, append(first, "MPI_Finalize")},
			{"early", "mmap", spool.EndedNot, first},
			{"early", "write", spool.EndedNot, first},
			{"early", "packed", spool.EndedNot, first},
			{"abort", "mmap", spool.EndedAborted, append(first, "MPI_Abort")},
			{"abort", "write", spool.EndedAborted, append(first, "MPI_Abort")},
			{"handler", "mmap", spool.EndedAborted, append(first, "MPI_Send")},
			{"handler", "write", spool.EndedAborted, append(first, "MPI_Send")},
			{"handler", "packed", spool.EndedAborted, append(first, "MPI_Send")},
			{"killed", "mmap", spool.EndedNot, first},
			{"killed", "packed", spool.EndedNot, first},
			{"fork", "mmap", spool.EndedFinalized, append(first, "MPI_Barrier", "MPI_Finalize")},
			{"fork", "write", spool.EndedFinalized, append(first, "MPI_Barrier", "MPI_Finalize")},
			{"errors", "mmap", spool.EndedFinalized, append(first, "MPI_Send", "MPI_Finalize")},
			{"clone", "mmap", spool.EndedFinalized,
				append(append(first, slices.Repeat([]string{"MPI_Barrier"}, 200)...), "MPI_Finalize")},
			{"threads", "mmap", spool.EndedFinalized, []string{"MPI_Init_thread", "MPI_Barrier", "MPI_Finalize"}},
			{"threads", "packed", spool.EndedFinalized, []string{"MPI_Init_thread", "MPI_Barrier", "MPI_Finalize"}},
			{"threads", "write", spool.EndedFinalized, []string{"MPI_Init_thread", "MPI_Barrier", "MPI_Finalize"}},
			{"failed", "mmap", spool.EndedFinalized,
				append(first, "MPI_Irecv", "MPI_Send", "MPI_Test", "MPI_Irecv", "MPI_Send", "MPI_Waitany",
					"MPI_Recv_init", "MPI_Start", "MPI_Send", "MPI_Testall",
					"MPI_Recv_init", "MPI_Start", "MPI_Waitall", "MPI_Send", "MPI_Waitall", "MPI_Finalize")},
			{"truncated", "mmap", spool.EndedFinalized, append(first, "MPI_Isend", "MPI_Recv", "MPI_Wait", "MPI_Irecv",
				"MPI_Send", "MPI_Wait", "MPI_Irecv", "MPI_Send", "MPI_Waitany", "MPI_Finalize")},
			{"callback", "mmap", spool.EndedFinalized,
				append(first, "MPI_Comm_dup", "MPI_Bcast", "MPI_Comm_free", "MPI_Bcast", "MPI_Finalize")},
			{"requests", "mmap", spool.EndedFinalized, append(first, "MPI_Comm_dup", "MPI_Recv_init", "MPI_Irecv", "MPI_Send",
				"MPI_Comm_free", "MPI_Irecv", "MPI_Irecv", "MPI_Send", "MPI_Send", "MPI_Wait", "MPI_Wait", "MPI_Finalize")},
			{"closed", "mmap", spool.EndedFinalized, append(first, "MPI_Finalize")},
		} {
			t.Run(library+"/"+c.how+"/"+c.sink, func(t *testing.T) {
				testenv.MPI(t, library)
				if exe == "" {
					exe = filepath.Join(built.dir, "ends-"+library)
					if err := os.Rename(compile(t, "mpicc."+library, filepath.Join(programs, "ends.c"), "-w",
						"-pthread"), exe); err != nil {
						t.Fatal(err)
					}
				}
				ranks := 3
				if c.how == "early" { // of several, MPICH's launcher kills those that are not as quick
					ranks = 1
				}
				bare, got, folder := launchBoth(t, library, exe, ranks, []string{"COMMQ_SINK=" + c.sink}, c.how)
				// MPICH's launcher may see the end of a connection before the end of its process, and then makes up a
				// status.
				for try := 0; c.how == "early" && try < 5 && strings.Contains(bare.stdout+got.stdout, "Hangup"); try++ {
					bare, got, folder = launchBoth(t, library, exe, ranks, []string{"COMMQ_SINK=" + c.sink}, c.how)
				}
				if process.ReplaceAllString(bare.stdout, "") != process.ReplaceAllString(got.stdout, "") ||
					bare.status != got.status || strings.Contains(got.stderr, "commq") {
					t.Errorf("without the shim: %+v\nwith it: %+v", bare, got)
				}
				d := dumpFolder(t, folder)[0]
				if diff := cmp.Diff(c.calls, d.names()); diff != "" || d.header.Ended != c.ended {
					t.Errorf("rank 0 ended %d, want %d; calls (-want +got):\n%s", d.header.Ended, c.ended, diff)
				}
				if c.how == "failed" && (d.calls[4].Req != d.calls[2].Req || d.calls[7].Req != d.calls[5].Req) {
					t.Errorf("the requests of %q and %q are taken for others", d.lines[4], d.lines[7])
				}
				if c.how == "failed" && !strings.Contains(d.lines[11], fmt.Sprintf(" (%d", d.calls[9].Req)) {
					t.Errorf("%s: does not complete the request of %s", d.lines[11], d.lines[9])
				}
				if c.how == "failed" && len(d.calls) == len(c.calls) {
					done := fmt.Sprintf(" (%d", d.calls[13].Req)
					if strings.Contains(d.lines[14], done) || !strings.Contains(d.lines[16], done) {
						t.Errorf("%s\n%s: only the second completes the request of %s", d.lines[14], d.lines[16],
							d.lines[13])
					}
				}
				if c.how == "requests" && (d.calls[11].Req != d.calls[7].Req || d.calls[12].Req != d.calls[8].Req) {
					t.Errorf("%q and %q do not complete %q and %q", d.lines[11], d.lines[12], d.lines[7], d.lines[8])
				}
				if c.how == "truncated" {
					checkTruncated(t, library, d.lines)
				}
				if c.how == "callback" && !strings.Contains(d.lines[5], "size=8") {
					t.Errorf("%s: the datatype has 8 bytes", d.lines[5])
				}
				if c.how == "errors" && !strings.HasSuffix(d.lines[2], " error=6") {
					t.Errorf("%s: not MPI_ERR_RANK, which is 6 in both libraries", d.lines[2])
				}
			})
		}
	}
}

// madeInside makes two communicators in the copy function of an attribute; its ranks use them first in different order.
const madeInside = `#include <mpi.h>
static MPI_Comm a, b;
static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
	*flag = 0;
	MPI_Comm_dup(MPI_COMM_WORLD, &a);
	return MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &b);
}
int main(int argc, char **argv)
{
	int rank, key, x = 0;
	MPI_Comm first, second;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, 0);
	MPI_Comm_dup(MPI_COMM_WORLD, &first);
	MPI_Comm_set_attr(first, key, 0);
	MPI_Comm_dup(first, &second);
	if (rank == 0) {
		MPI_Send(&x, 1, MPI_INT, 1, 9, a);
		MPI_Send(&x, 1, MPI_INT, 1, 9, b);
	} else {
		MPI_Recv(&x, 1, MPI_INT, 0, 9, b, MPI_STATUS_IGNORE);
		MPI_Recv(&x, 1, MPI_INT, 0, 9, a, MPI_STATUS_IGNORE);
	}
	MPI_Finalize();
	return 0;
}
`

// TestCommunicatorsMadeInsideCalls: each rank numbers them in the order in which it made them, by which commq ingest
// finds out which are the same.
func TestCommunicatorsMadeInsideCalls(t *testing.T) {
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			testenv.MPI(t, library)
			exe := compile(t, "mpicc."+library, source(t, "inside.c", madeInside), "-w")
			bare, got, folder := launchBoth(t, library, exe, 2, nil)
			all := dumpFolder(t, folder)
			if bare != got || got.status != 0 || len(all) != 2 || len(all[0].calls) != 6 || len(all[1].calls) != 6 {
				t.Fatalf("without the shim %+v, with it %+v, %d files", bare, got, len(all))
			}
			sends, receives := all[0].calls[3:5], all[1].calls[3:5]
			if sends[0].Comm >= sends[1].Comm || receives[0].Comm <= receives[1].Comm {
				t.Errorf("sends on communicators %d, %d; receives on %d, %d", sends[0].Comm, sends[1].Comm,
					receives[0].Comm, receives[1].Comm)
			}
		})
	}
}

// checkTruncated checks the receives of ends.c that were too small: they know whose message they took. Open MPI 4.1
// reports the error only in the status of those that have a request.
func checkTruncated(t *testing.T, library string, lines []string) {
	t.Helper()
	class := map[string]string{OpenMPI: "15", MPICH: "14"}[library]
	for _, i := range []int{3, 7, 10} {
		failed := strings.HasSuffix(lines[i], " error="+class+" truncated")
		if !strings.Contains(lines[i], " peer=0 tag=5") || !failed && (library == MPICH || i == 3) {
			t.Errorf("%s: not truncated, with the source and tag of the message", lines[i])
		}
	}
}

// TestSections checks the datatypes that MPICH's Fortran module makes for sections of arrays: they appear and
// disappear unseen by the shim, all with one handle.
func TestSections(t *testing.T) {
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			testenv.MPI(t, library)
			if _, err := exec.LookPath("mpifort." + library); err != nil {
				testenv.Skip(t, err.Error())
			}
			exe := compile(t, "mpifort."+library, filepath.Join(programs, "sections.f90"))
			_, got, folder := launchBoth(t, library, exe, 1, nil)
			if got != (outcome{"", "", 0}) {
				t.Fatalf("%+v", got)
			}
			d := dumpFolder(t, folder)[0]
			for i := 1; i <= 4; i++ {
				line := d.lines[3*i-1]
				if !strings.HasSuffix(line, fmt.Sprintf(" count=%d size=4", 10*i)) &&
					!strings.HasSuffix(line, fmt.Sprintf(" count=1 size=%dx", 40*i)) {
					t.Errorf("%s: not %d bytes", line, 40*i)
				}
			}
		})
	}
}

// TestKilledInsideACall checks that if a rank is killed, its call in progress is recorded without an end.
func TestKilledInsideACall(t *testing.T) {
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			testenv.MPI(t, library)
			exe := compile(t, "mpicc."+library, filepath.Join(programs, "ends.c"), "-w", "-pthread")
			_, _, folder := launchBoth(t, library, exe, 2, nil, "killed")
			d := dumpFolder(t, folder)[1]
			last := d.calls[len(d.calls)-1]
			if got := schema.CallID(last.Call); got != schema.CallRecv || last.T0 == 0 || last.T1 != 0 ||
				last.Tag != 9 {
				t.Errorf("last call of the rank that waited: %s, t0 %d, t1 %d, tag %d", got, last.T0, last.T1, last.Tag)
			}
		})
	}
}

// TestHarmlessElsewhere checks that the shim does nothing in processes that are not MPI programs, and needs nothing.
func TestHarmlessElsewhere(t *testing.T) {
	for _, library := range libraries {
		lib := shimFor(t, library)
		for _, args := range [][]string{{"env", "-i", "PATH=/usr/bin:/bin", "sh", "-c", "echo hi; exit 3"},
			{"sh", "-c", "ls / | wc -l"}, {"python3", "-c", "import ctypes, os; print(os.getpid() > 0)"}} {
			if _, err := exec.LookPath(args[0]); err != nil {
				continue
			}
			bare := run(t, nil, args...)
			got := run(t, []string{"LD_BIND_NOW=1", "LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + t.TempDir()}, args...)
			if bare != got {
				t.Errorf("%s: %v: %+v, without the shim %+v", library, args, got, bare)
			}
		}
	}
}

// TestWrongLibrary checks that with the other library's shim a program runs unrecorded and prints one message.
func TestWrongLibrary(t *testing.T) {
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			other := OpenMPI
			if library == OpenMPI {
				other = MPICH
			}
			lib := shimFor(t, other)
			exe := compile(t, "mpicc."+library, filepath.Join(programs, "comms.c"), "-w")
			folder := filepath.Join(t.TempDir(), "spool")
			got := launch(t, library, 5, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder}, exe)
			if got.status != 0 || got.stdout != "ok\n" || strings.Count(got.stderr, "commq: the shim is for ") != 1 {
				t.Errorf("%+v", got)
			}
			if _, err := os.Stat(folder); err == nil {
				t.Errorf("something was recorded")
			}
		})
	}
}

// TestNoSpool checks that a program runs without a spool, and that one line gives the reason.
func TestNoSpool(t *testing.T) {
	for _, library := range libraries {
		lib := shimFor(t, library)
		exe := compile(t, "mpicc."+library, filepath.Join(programs, "types.c"), "-w")
		for _, c := range []struct{ name, variable, want string }{
			{"unset", "COMMQ_OTHER=1", "COMMQ_SPOOL is not set"},
			{"not a folder", "COMMQ_SPOOL=/dev/null/spool", "commq: rank 0 and 2 more: spool /dev/null/spool: "},
		} {
			got := launch(t, library, 3, []string{"LD_PRELOAD=" + lib, c.variable}, exe)
			if got.status != 0 || got.stdout != "ok\n" || !strings.Contains(got.stderr, c.want) ||
				strings.Count(got.stderr, "commq:") != 1 {
				t.Errorf("%s, %s: %+v", library, c.name, got)
			}
		}
	}
}

// TestGrowth fills several windows, and puts more slots into one call than fit a window: 8000 x 4 slots, and 8000 in
// one call, of 64 bytes, are 2.5 MB.
func TestGrowth(t *testing.T) {
	const n = 8000
	for _, library := range libraries {
		lib := shimFor(t, library)
		exe := compile(t, "mpicc."+library, filepath.Join(programs, "many.c"), "-w")
		for _, sink := range []string{"mmap", "write", "packed"} {
			count := n
			if sink != "mmap" {
				count = 5 * n // one call of more than its 1 MiB of buffer, or its window of 0.5 MiB
			}
			folder := filepath.Join(t.TempDir(), "spool")
			got := launch(t, library, 1, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder, "COMMQ_SINK=" + sink},
				exe, fmt.Sprint(count))
			if got != (outcome{"ok\n", "", 0}) {
				t.Fatalf("%s, %s: %+v", library, sink, got)
			}
			checkMany(t, dumpFolder(t, folder)[0], count)
		}
	}
}

// The header has the cores that a process may use: here the last of those that this test may use.
func TestHeaderHasCores(t *testing.T) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:")
	list, _, _ = strings.Cut(strings.TrimSpace(list), "\n")
	last := list[strings.LastIndexAny(list, ",-")+1:]
	for _, library := range libraries {
		folder := filepath.Join(t.TempDir(), "spool")
		exe := compile(t, "mpicc."+library, filepath.Join(programs, "many.c"), "-w")
		got := launch(t, library, 1, []string{"LD_PRELOAD=" + shimFor(t, library), "COMMQ_SPOOL=" + folder}, "taskset", "-c", last, exe, "1")
		if got != (outcome{"ok\n", "", 0}) {
			t.Fatalf("%s: %+v", library, got)
		}
		var cores []string
		mask := dumpFolder(t, folder)[0].header.Cores
		for i := range 8 * len(mask) {
			if mask[i/8]>>(i%8)&1 == 1 {
				cores = append(cores, fmt.Sprint(i))
			}
		}
		if !slices.Equal(cores, []string{last}) {
			t.Errorf("%s: cores %v, want %s", library, cores, last)
		}
	}
}

func checkMany(t *testing.T, d *dumper, n int) {
	t.Helper()
	if len(d.calls) != 3*n+4 || len(d.lines) != len(d.calls) {
		t.Fatalf("%d calls, want %d", len(d.calls), 3*n+4)
	}
	all := d.lines[3*n+1]
	if !strings.HasPrefix(all, "MPI_Waitall (1 peer=0 tag=2 bytes=4) (2 peer=0") || strings.Count(all, "(") != 2*n ||
		!strings.HasSuffix(all, fmt.Sprintf(" (%d)", 2*n)) {
		t.Errorf("%.100s...: %d completed, want %d", all, strings.Count(all, "("), 2*n)
	}
	if d.lines[n] != "MPI_Sendrecv comm=1 peer=0 tag=1 count=1 size=4 < peer=0 tag=1 count=1 size=4 bytes=4" {
		t.Errorf("%s", d.lines[n])
	}
}

// TestDiskFull checks that on a full disk recording stops, the program continues, and the records so far are
// complete.
func TestDiskFull(t *testing.T) {
	testenv.Root(t, "a full disk is also in the stories of cmd/commq, in a user namespace")
	disk, err := diskInMemory("tmpfs", "3m")
	if err != nil {
		testenv.Skip(t, fmt.Sprintf("a small file system cannot be made here: %v", err))
	}
	defer disk.Close()
	mount := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), disk.Fd())
	for _, library := range libraries {
		lib := shimFor(t, library)
		exe := compile(t, "mpicc."+library, filepath.Join(programs, "many.c"), "-w")
		for _, sink := range []string{"mmap", "write", "packed"} {
			folder, n := filepath.Join(mount, library+sink), 30000
			if sink == "packed" { // it needs a fifth of the space, but first that of its windows
				n = 60000
				if err := os.WriteFile(filepath.Join(mount, "other"), make([]byte, 1<<20), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := launch(t, library, 1, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder, "COMMQ_SINK=" + sink},
				exe, fmt.Sprint(n))
			if got.status != 0 || got.stdout != "ok\n" || !strings.Contains(got.stderr, "no space left on device") &&
				!strings.Contains(got.stderr, "No space left on device") {
				t.Fatalf("%s, %s: %+v", library, sink, got)
			}
			d := dumpFolder(t, folder)[0]
			if len(d.calls)+int(d.header.Dropped) != 3*n+4 || d.header.Dropped == 0 ||
				d.header.Ended != spool.EndedFinalized {
				t.Errorf("%s, %s: %d calls and %d dropped of %d, ended %d", library, sink, len(d.calls),
					d.header.Dropped, 3*n+4, d.header.Ended)
			}
			if err := errors.Join(os.RemoveAll(folder), os.RemoveAll(filepath.Join(mount, "other"))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// largePages is a library that tells the capture library that pages have 64 KiB, as on many machines with arm64.
const largePages = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
long sysconf(int name)
{
	long (*real)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
	Dl_info caller;
	if (name == _SC_PAGESIZE && dladdr(__builtin_return_address(0), &caller) && strstr(caller.dli_fname, "libcommq"))
		return 65536;
	return real(name);
}
`

// TestDiskFullWithLargePages checks that a program runs without recording where not one page of a file fits.
func TestDiskFullWithLargePages(t *testing.T) {
	testenv.Root(t, "it mounts a full disk")
	disk, err := diskInMemory("tmpfs", "64k")
	if err != nil {
		testenv.Skip(t, fmt.Sprintf("a small file system cannot be made here: %v", err))
	}
	defer disk.Close()
	mount := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), disk.Fd())
	if err := os.WriteFile(filepath.Join(mount, "other"), make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "pages.c")
	if err := os.WriteFile(source, []byte(largePages), 0o600); err != nil {
		t.Fatal(err)
	}
	pages := compile(t, "cc", source, "-shared", "-fPIC")
	for _, library := range libraries {
		lib := shimFor(t, library)
		exe := compile(t, "mpicc."+library, filepath.Join(programs, "many.c"), "-w")
		for _, sink := range []string{"mmap", "packed"} {
			got := launch(t, library, 1, []string{"LD_PRELOAD=" + pages + ":" + lib,
				"COMMQ_SPOOL=" + filepath.Join(mount, library+sink), "COMMQ_SINK=" + sink}, "timeout", "60", exe, "10")
			if got.status != 0 || got.stdout != "ok\n" || !strings.Contains(got.stderr, "No space left on device") {
				t.Errorf("%s, %s: %+v", library, sink, got)
			}
		}
	}
}

// diskInMemory returns the folder of a file system in memory, of a size unless that is "". It is mounted nowhere, so
// nothing of it stays when the test is killed.
func diskInMemory(kind, size string) (*os.File, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fs)
	if size != "" {
		err = unix.FsconfigSetString(fs, "size", size)
	}
	if err := errors.Join(err, unix.FsconfigCreate(fs)); err != nil {
		return nil, err
	}
	folder, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(folder), kind), nil
}

func TestThreads(t *testing.T) {
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			lib := shimFor(t, library)
			exe := compile(t, "mpicc."+library, filepath.Join(programs, "threads.c"), "-w", "-pthread")
			folder := filepath.Join(t.TempDir(), "spool")
			got := launch(t, library, 1, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder}, exe)
			if got.stdout == "no threads\n" {
				testenv.Skip(t, "the library has no MPI_THREAD_MULTIPLE")
			}
			if got != (outcome{"ok\n", "", 0}) {
				t.Fatalf("%+v", got)
			}
			checkThreads(t, dumpFolder(t, folder))
		})
	}
}

// checkThreads checks the main thread and four workers: every serial is made and completed once, by the thread that
// made it.
func checkThreads(t *testing.T, all []*dumper) {
	t.Helper()
	const n = 3000
	if len(all) != 5 || len(all[0].calls) != 2 {
		t.Fatalf("%d files, the first of %d calls; want 5, and MPI_Init_thread and MPI_Finalize", len(all),
			len(all[0].calls))
	}
	if n := all[0].header.Threads; n != 5 {
		t.Errorf("the header of thread 0 has %d threads, want 5", n)
	}
	serials := map[uint32]bool{}
	for i, d := range all[1:] {
		if int(d.header.Thread) != i+1 || d.header.ThreadLevel != 3 || len(d.calls) != 3*n {
			t.Errorf("thread %d of level %d: %d calls, want %d", d.header.Thread, d.header.ThreadLevel, len(d.calls),
				3*n)
		}
		tag := d.calls[0].Tag
		for j := 0; j+2 < len(d.calls); j += 3 {
			recv, send := d.calls[j].Req, d.calls[j+1].Req
			if serials[recv] || serials[send] || recv == 0 || send == 0 {
				t.Fatalf("thread %d, call %d: serials %d and %d are not new", i+1, j, recv, send)
			}
			serials[recv], serials[send] = true, true
			if want := fmt.Sprintf("MPI_Waitall (%d peer=0 tag=%d bytes=4) (%d)", recv, tag,
				send); d.lines[j+2] != want {
				t.Fatalf("thread %d, call %d: %s, want %s", i+1, j+2, d.lines[j+2], want)
			}
		}
	}
}

func TestClocks(t *testing.T) {
	for _, library := range libraries {
		lib := shimFor(t, library)
		exe := compile(t, "mpicc."+library, filepath.Join(programs, "burn.c"), "-w")
		for _, c := range []struct {
			clock string
			code  uint32
			// minimum and maximum compute time before the second, third and fourth barrier, beyond what the program
			// measured itself
			ms [3][2]float64
		}{
			{"cpu", spool.ClockCPU, [3][2]float64{{-1, 6}, {0, 3}, {-1, 6}}},
			{"wall", spool.ClockWall, [3][2]float64{{-1, 2940}, {60, 3000}, {-1, 2960}}},
			{"none", spool.ClockNone, [3][2]float64{{0, 0}, {0, 0}, {0, 0}}},
		} {
			folder := filepath.Join(t.TempDir(), "spool")
			got := launch(t, library, 1, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder, "COMMQ_CLOCK=" +
				c.clock}, exe)
			var seen [3]float64 // ms of CPU; before the third barrier it sleeps
			if n, err := fmt.Sscanf(got.stdout, "ok %f %f\n", &seen[0], &seen[2]); n != 2 ||
				got != (outcome{got.stdout, "", 0}) || seen[0] < 60 || seen[2] < 40 {
				t.Fatalf("%s, %s: %+v: %v", library, c.clock, got, err)
			}
			if c.code == spool.ClockNone {
				seen = [3]float64{}
			}
			d := dumpFolder(t, folder)[0]
			if d.header.ComputeClock != c.code || d.header.Polls != 1 || len(d.pre) != 1 || d.pre[0].Polls != 1 ||
				d.pre[0].PollTicks == 0 {
				t.Errorf("%s, %s: clock %d, %d polls, %+v", library, c.clock, d.header.ComputeClock, d.header.Polls,
					d.pre)
			}
			for i, want := range c.ms {
				if ms := float64(d.calls[i+2].ComputeNs)/1e6 - seen[i]; ms < want[0] || ms > want[1] {
					t.Errorf("%s, %s: %.3f ms of compute more before barrier %d than the program's %.3f, want %v",
						library, c.clock, ms, i+2, seen[i], want)
				}
			}
		}
	}
}

// TestHosts gives a rank a clock that is one hour ahead, on a host with another name.
func TestHosts(t *testing.T) {
	testenv.Root(t, "another clock takes a time namespace")
	if out, err := exec.Command("unshare", "--time", "--monotonic", "3600", "--fork",
		"true").CombinedOutput(); err != nil {
		testenv.Skip(t, fmt.Sprintf("another clock cannot be made here: %s", firstLine(out)))
	}
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			lib := shimFor(t, library)
			exe := compile(t, "mpicc."+library, filepath.Join(programs, "types.c"), "-w")
			folder := filepath.Join(t.TempDir(), "spool")
			v := []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder}
			args := append([]string{"mpirun." + library, "-n", "1", "env"},
				append(v, exe, ":", "-n", "2", "unshare", "--time", "--monotonic", "3600", "--fork", "env")...)
			got := run(t, nil, append(args, append(v, exe)...)...)
			if got != (outcome{"ok\n", "", 0}) {
				t.Fatalf("%+v", got)
			}
			for i, d := range dumpFolder(t, folder) {
				h, want := d.header, int64(0)
				if i > 0 {
					want = 3600e9
				}
				for _, o := range [][2]int64{{h.OffsetInitNs, h.OffsetInitErrorNs},
					{h.OffsetFinalNs, h.OffsetFinalErrorNs}} {
					if off := o[0] - want; off > o[1] || -off > o[1] || o[1] > 1e9 || i > 0 && o[1] == 0 {
						t.Errorf("rank %d: offset %d ns, error %d ns, want %d", i, o[0], o[1], want)
					}
				}
			}
		})
	}
}
