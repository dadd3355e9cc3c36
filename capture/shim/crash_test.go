package shim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/schema"
)

// crashes is the number of programs that each test of this file kills: few in CI, COMMQ_TEST_CRASHES in
// docs/validation/crash.md.
func crashes(t *testing.T, few int) int {
	if s := os.Getenv("COMMQ_TEST_CRASHES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return few
}

// readProgress returns how many calls each rank of crash.c reports.
func readProgress(t *testing.T, path string, ranks int) []uint64 {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may have been killed before it made its file
		t.Fatal(err)
	}
	n := make([]uint64, ranks)
	for i := range n {
		if len(data) >= 8*(i+1) {
			n[i] = binary.LittleEndian.Uint64(data[8*i:])
		}
	}
	return n
}

// checkNumbered compares a rank's records with the calls of crash.c, one by one, and returns how many returned. When
// the process was killed the last call may be in progress.
func checkNumbered(t *testing.T, f *spool.File) uint64 {
	t.Helper()
	calls, open := uint64(0), 0
	ranks, rank := int64(f.Header.Size), int64(f.Header.Rank)
	for i, c := range f.All() {
		if c.Kind == spool.End {
			break
		}
		if c.Kind == spool.KindSum {
			continue
		}
		if c.Kind != spool.KindCall {
			if c.Kind > spool.KindIO || open > 0 && c.Kind != spool.KindHash && c.Kind < spool.KindDef {
				t.Fatalf("%s: slot %d: kind %d", f.Name, i, c.Kind)
			}
			continue
		}
		if open > 0 {
			t.Fatalf("%s: slot %d: a call after one that never returned", f.Name, i)
		}
		if c.T1 == 0 {
			open++
		}
		k := int64(calls) - 1
		calls++
		message, tag, bytes := k/3, int32(k/3%32768), k/3%4097
		want, good := schema.CallInit, true
		switch {
		case k < 0:
		case c.Call == uint16(schema.CallFinalize) || c.Call == uint16(schema.CallAbort):
			want = schema.CallID(c.Call)
		case k%3 == 0:
			want, good = schema.CallIrecv, c.Tag == tag && c.Count == 4097 && int64(c.Peer) == (rank+ranks-1)%ranks
		case k%3 == 1:
			want, good = schema.CallSend, c.Tag == tag && c.Count == bytes && int64(c.Peer) == (rank+1)%ranks
		default:
			want, good = schema.CallWait, c.Req == uint32(message)+1 && (c.T1 == 0 || c.Tag == tag && c.Count == bytes)
		}
		if schema.CallID(c.Call) != want || !good || c.T0 == 0 || c.T1 != 0 && c.T1 < c.T0 {
			t.Fatalf("%s: call %d is %+v, want %s of message %d", f.Name, calls-1, *c, want, message)
		}
	}
	return calls - uint64(open)
}

// checkCrash checks every rank's file: no call that returned is missing (with the write sink, none that was written
// out), and nothing is malformed. Ranks killed in MPI_Init have no file.
func checkCrash(t *testing.T, folder, progress string, ranks int, mapped bool) (calls uint64) {
	t.Helper()
	reported := readProgress(t, progress, ranks)
	paths, err := filepath.Glob(filepath.Join(folder, "*"+spool.Suffix))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range paths {
		f, err := spool.Open(path)
		if err != nil {
			if errors.Is(err, spool.ErrUnwritten) && reported[0] == 0 {
				continue // killed while it made the file
			}
			t.Fatal(err)
		}
		got := checkNumbered(t, f)
		rank := f.Header.Rank
		if damaged := f.Damaged(); len(damaged) > 0 {
			t.Fatalf("%s: the checksums of %v do not fit", path, damaged)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if reported[rank] > 0 {
			found++
		}
		if got > reported[rank]+2 || mapped && got < reported[rank] {
			t.Fatalf("%s: %d calls returned and are recorded, the program made %d", path, got, reported[rank])
		}
		calls += got
	}
	for _, n := range reported {
		if n > 0 {
			found--
		}
	}
	if found != 0 {
		t.Fatalf("%s: %d files; calls by rank: %v", folder, len(paths), reported)
	}
	return calls
}

// singleton starts crash.c without a launcher: a single rank, so that many can be killed per second.
func singleton(t *testing.T, lib, exe, folder, progress, sink string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(exe, progress)
	cmd.Env = testenv.Environ("LD_PRELOAD="+lib, "COMMQ_SPOOL="+folder, "COMMQ_SINK="+sink,
		"OMPI_MCA_ess_singleton_isolated=1", "OMPI_MCA_btl=self")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// TestKilledAtRandom kills programs at any time from MPI_Init on: every call that returned is recorded completely.
func TestKilledAtRandom(t *testing.T) {
	for _, library := range libraries {
		for _, sink := range []string{"mmap", "write", "packed"} {
			t.Run(library+"/"+sink, func(t *testing.T) {
				lib := shimFor(t, library)
				exe := compile(t, "mpicc."+library, filepath.Join(programs, "crash.c"), "-w")
				n := crashes(t, 10)
				rng := rand.New(rand.NewPCG(3, 5))
				dir := t.TempDir()
				var calls uint64
				for i := range n {
					folder, progress := filepath.Join(dir, fmt.Sprint(i)),
						filepath.Join(dir, fmt.Sprint(i, ".progress"))
					cmd := singleton(t, lib, exe, folder, progress, sink)
					if i%8 != 0 { // the others are killed at any time of MPI_Init, too
						for start := time.Now(); time.Since(start) < testenv.Patience; time.Sleep(time.Millisecond) {
							if data, err := os.ReadFile(progress); err == nil && len(data) >= 8 &&
								binary.LittleEndian.Uint64(data) != 0 {
								break
							}
						}
					}
					time.Sleep(time.Duration(rng.ExpFloat64() * 2e7)) // 20 ms on average
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
					calls += checkCrash(t, folder, progress, 1, sink != "write")
					if err := os.RemoveAll(folder); err != nil {
						t.Fatal(err)
					}
				}
				t.Logf("%d killed, %d calls recorded", n, calls)
			})
		}
	}
}

// TestAbortedAndKilledTogether kills one of several ranks, or lets it call MPI_Abort, which ends the others.
func TestAbortedAndKilledTogether(t *testing.T) {
	for _, library := range libraries {
		for _, sink := range []string{"mmap", "write", "packed"} {
			t.Run(library+"/"+sink, func(t *testing.T) {
				lib := shimFor(t, library)
				exe := compile(t, "mpicc."+library, filepath.Join(programs, "crash.c"), "-w")
				rng := rand.New(rand.NewPCG(7, 9))
				dir := t.TempDir()
				for i := range 2 + max(crashes(t, 2)/10, 2) {
					how := "abort"
					if i < 2 {
						how = "segv"
					}
					folder, progress := filepath.Join(dir, fmt.Sprint(i)),
						filepath.Join(dir, fmt.Sprint(i, ".progress"))
					// few: three ranks that spin on two cores are slow
					got := launch(t, library, 3,
						[]string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder, "COMMQ_SINK=" + sink}, exe, progress,
						fmt.Sprint(rng.IntN(500)), how)
					if got.status == 0 || strings.Contains(got.stderr, "commq") {
						t.Fatalf("%s: %+v", how, got)
					}
					checkCrash(t, folder, progress, 3, sink != "write")
					if how == "abort" {
						checkAborted(t, folder, progress)
					}
					if err := os.RemoveAll(folder); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// checkAborted checks that the rank that called MPI_Abort has written everything, with either sink.
func checkAborted(t *testing.T, folder, progress string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.2.0"+spool.Suffix))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%v, %v", paths, err)
	}
	f, err := spool.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, want := checkNumbered(t, f), readProgress(t, progress, 3)[2]; f.Header.Ended != spool.EndedAborted ||
		got != want {
		t.Errorf("%s: ended %d, %d calls, want %d", f.Name, f.Header.Ended, got, want)
	}
}

// TestBufferIsWrittenOut checks that a buffer is written out at the end of a call once it is a second old, and
// immediately on SIGUSR1.
func TestBufferIsWrittenOut(t *testing.T) {
	lib := shimFor(t, OpenMPI)
	dir := t.TempDir()
	source := filepath.Join(dir, "slow.c")
	if err := os.WriteFile(source, []byte(`#include <mpi.h>
#include <unistd.h>
int main(int c, char **v)
{
	MPI_Init(&c, &v);
	for (int i = 0; i < 5; i++)
		MPI_Barrier(MPI_COMM_SELF);
	usleep(1200000);
	MPI_Barrier(MPI_COMM_SELF);
	write(1, "x", 1);
	MPI_Barrier(MPI_COMM_SELF);
	MPI_Barrier(MPI_COMM_SELF);
	pause();
	pause();
}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	exe := compile(t, "mpicc.openmpi", source, "-w")
	folder := filepath.Join(dir, "spool")
	cmd := exec.Command(exe)
	cmd.Env = testenv.Environ("LD_PRELOAD="+lib, "COMMQ_SPOOL="+folder, "COMMQ_SINK=write",
		"OMPI_MCA_ess_singleton_isolated=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	count := func() int {
		paths, _ := filepath.Glob(filepath.Join(folder, "*"+spool.Suffix))
		if len(paths) != 1 {
			return -1
		}
		return len(readSpool(t, paths[0], nil).calls)
	}
	if n := count(); n != 6 && n != 7 { // MPI_Init and five calls before the sixth, or with the sixth
		t.Errorf("%d calls in the file after 1.2 s", n)
	}
	time.Sleep(200 * time.Millisecond)
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	n := 0
	for start := time.Now(); n != 9 && time.Since(start) < testenv.Patience; time.Sleep(10 * time.Millisecond) {
		n = count()
	}
	if n != 9 {
		t.Errorf("%d calls in the file after SIGUSR1, want 9", n)
	}
}
