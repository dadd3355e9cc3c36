package shim

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/commq/commq/capture/spool"
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

// leavesSource is a program whose handler of a signal calls exit, or forks a child that goes on. The signal comes
// while the shim writes its buffer, or a block.
const leavesSource = `#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static int armed, forks;
static pid_t parent;
static void leave(int s)
{
	int status = 1;
	(void)s;
	if (!forks)
		exit(7);
	pid_t child = fork();
	if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
		_exit(8);
}
ssize_t pwrite64(int f, const void *p, size_t n, off_t at)
{
	if (armed && n > 8192) {
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
	parent = getpid();
	forks = argc > 1;
	armed = 1;
	for (int i = 0; i < 100000; i++) {
		MPI_Barrier(MPI_COMM_SELF);
		if (getpid() != parent)
			_exit(0);
	}
	MPI_Finalize();
	return !forks;
}
`

// TestExitWhileTheBufferIsWritten checks that a program ends whose handler calls exit at that moment, and that its
// records are not taken for damaged; and that one whose handler forks then has all its records.
func TestExitWhileTheBufferIsWritten(t *testing.T) {
	for _, library := range libraries {
		lib := shimFor(t, library)
		exe := compile(t, "mpicc."+library, source(t, "leaves.c", leavesSource), "-w", "-rdynamic")
		for _, sink := range []string{"write", "packed"} {
			for _, how := range []string{"exit", "fork"} {
				t.Run(library+"/"+sink+"/"+how, func(t *testing.T) {
					args, want := []string{"timeout", "-s", "KILL", fmt.Sprint(testenv.Patience.Seconds()), exe}, 7
					if how == "fork" {
						args, want = append(args, how), 0
					}
					folder := filepath.Join(t.TempDir(), "spool")
					got := launch(t, library, 1, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder, "COMMQ_SINK=" + sink}, args...)
					if got.status != want {
						t.Fatalf("%+v", got)
					}
					d := dumpFolder(t, folder)[0]
					if how == "fork" && (len(d.calls) != 100002 || d.header.Dropped != 0) {
						t.Errorf("%d calls, %d dropped", len(d.calls), d.header.Dropped)
					}
					if sink == "packed" && len(d.calls) < 4000 {
						t.Errorf("%d calls before the end", len(d.calls))
					}
				})
			}
		}
	}
}

// sessionsSource is a program that ends its only session and then begins another use of MPI, in the way of its
// argument. The handle is that of no info.
const sessionsSource = `#include <mpi.h>
#include <signal.h>
#include <string.h>
int main(int argc, char **argv)
{
	const char *how = argv[1];
	MPI_Session s;
	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
	MPI_Session_finalize(&s);
	if (strcmp(how, "dies") == 0)
		MPI_Session_init((MPI_Info)0x1234567, MPI_ERRORS_ARE_FATAL, &s);
	if (strcmp(how, "init") == 0) {
		MPI_Init(&argc, &argv);
		raise(SIGKILL);
	}
	return 0;
}
`

// TestEndsAfterSessions checks that a process has not ended well when MPI was used again after its last session.
func TestEndsAfterSessions(t *testing.T) {
	lib := shimFor(t, MPICH)
	exe := compile(t, "mpicc.mpich", source(t, "sessions.c", sessionsSource), "-w")
	for how, want := range map[string]uint32{"": spool.EndedFinalized, "dies": spool.EndedNot, "init": spool.EndedNot} {
		folder := filepath.Join(t.TempDir(), "spool")
		launch(t, MPICH, 1, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder, "COMMQ_JOB=7"}, exe, how)
		d := dumpFolder(t, folder)[0]
		if d.header.Ended != want || (how != "") != (len(d.calls) > 2) {
			t.Errorf("%q: ended %d, want %d; calls %v", how, d.header.Ended, want, d.names())
		}
	}
}

// lateSession is a program that begins a session while requests are outstanding.
const lateSession = `#include <mpi.h>
int main(int argc, char **argv)
{
	int got[2], sent = 1;
	MPI_Request r[2];
	MPI_Session s;
	MPI_Init(&argc, &argv);
	MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_SELF, &r[0]);
	MPI_Recv_init(&got[1], 1, MPI_INT, 0, 2, MPI_COMM_SELF, &r[1]);
	MPI_Start(&r[1]);
	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
	MPI_Send(&sent, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
	MPI_Send(&sent, 1, MPI_INT, 0, 2, MPI_COMM_SELF);
	MPI_Wait(&r[0], MPI_STATUS_IGNORE);
	MPI_Wait(&r[1], MPI_STATUS_IGNORE);
	MPI_Start(&r[1]);
	MPI_Send(&sent, 1, MPI_INT, 0, 2, MPI_COMM_SELF);
	MPI_Wait(&r[1], MPI_STATUS_IGNORE);
	MPI_Request_free(&r[1]);
	MPI_Session_finalize(&s);
	MPI_Finalize();
	return 0;
}
`

// TestRequestsBeforeASession: a session may bring threads, so requests are then kept by thread; those from before it
// are found all the same.
func TestRequestsBeforeASession(t *testing.T) {
	lib := shimFor(t, MPICH)
	exe := compile(t, "mpicc.mpich", source(t, "late.c", lateSession), "-w")
	folder := filepath.Join(t.TempDir(), "spool")
	launch(t, MPICH, 1, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder}, exe)
	d := dumpFolder(t, folder)[0]
	if len(d.calls) != 15 {
		t.Fatalf("calls %v", d.names())
	}
	for wait, posted := range map[int]int{7: 1, 8: 3, 11: 9} {
		if d.calls[wait].Req == 0 || d.calls[wait].Req != d.calls[posted].Req {
			t.Errorf("%q does not complete %q", d.lines[wait], d.lines[posted])
		}
	}
}
