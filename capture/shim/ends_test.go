package shim

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

// TestLastFlushFails writes all records at the end, to a file that may not become that large: what was written can be
// read.
func TestLastFlushFails(t *testing.T) {
	const kib, n = 64, 2000
	lib := shimFor(t, OpenMPI)
	exe := compile(t, "mpicc.openmpi", filepath.Join(programs, "many.c"), "-w")
	folder := filepath.Join(t.TempDir(), "spool")
	script := fmt.Sprintf("ulimit -f %d; exec env LD_PRELOAD=%s COMMQ_SPOOL=%s COMMQ_SINK=write %s %d", kib, lib, folder, exe, n)
	if got := run(t, []string{"OMPI_MCA_btl=self"}, "mpirun.openmpi", "-n", "1", "bash", "-c", script); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	d := dumpFolder(t, folder)[0]
	if len(d.calls) == 0 || d.header.Dropped == 0 || len(d.calls)+int(d.header.Dropped) != 3*n+4 {
		t.Errorf("%d calls and %d dropped of %d", len(d.calls), d.header.Dropped, 3*n+4)
	}
}

// leavesSource is a program whose handler of a signal calls exit. The signal comes while the shim writes its buffer.
const leavesSource = `#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static int armed;
static void leave(int s) { (void)s; exit(7); }
ssize_t pwrite64(int f, const void *p, size_t n, off_t at)
{
	if (armed && n > 65536) {
		armed = 0;
		raise(SIGTERM);
	}
	return syscall(SYS_pwrite64, f, p, n, at);
}
ssize_t pwrite(int f, const void *p, size_t n, off_t at) { return pwrite64(f, p, n, at); }
int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	signal(SIGTERM, leave);
	armed = 1;
	for (int i = 0; i < 100000; i++)
		MPI_Barrier(MPI_COMM_SELF);
	return 1;
}
`

// TestExitWhileTheBufferIsWritten checks that a program ends whose handler calls exit at that moment, and that its
// records are not taken for damaged.
func TestExitWhileTheBufferIsWritten(t *testing.T) {
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			lib := shimFor(t, library)
			exe := compile(t, "mpicc."+library, source(t, "leaves.c", leavesSource), "-w", "-rdynamic")
			folder := filepath.Join(t.TempDir(), "spool")
			got := launch(t, library, 1, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder, "COMMQ_SINK=write"},
				"timeout", "-s", "KILL", fmt.Sprint(testenv.Patience.Seconds()), exe)
			if got.status != 7 {
				t.Fatalf("%+v", got)
			}
			dumpFolder(t, folder)
		})
	}
}
