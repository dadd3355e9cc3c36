package doctor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/capture/launch"
	"github.com/commq/commq/capture/shim"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// tinyProgram is the program of the self-check: a message of 4097 bytes with tag 9, and a barrier.
const tinyProgram = `#include <mpi.h>
static char b[4097];
int main(int argc, char **argv)
{
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 1)
		MPI_Send(b, sizeof b, MPI_BYTE, 0, 9, MPI_COMM_WORLD);
	else
		MPI_Recv(b, sizeof b, MPI_BYTE, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
`

// selfCheckTime is how long the tiny program may run. Compiling is not limited: how long it takes says nothing about
// captures.
const selfCheckTime = time.Minute

// selfCheck captures the tiny program with an MPI library and compares the counts of its run. The capture library is
// compiled, or brought by commq.
func selfCheck(ctx context.Context, o MachineOptions, target shim.Target, brought bool, launcher string) Finding {
	name := target.Library + " capture"
	work, err := os.MkdirTemp("", "commq-doctor-")
	if err != nil {
		return failure(name, "name a writable folder for temporary files in $TMPDIR", "%v", err)
	}
	defer os.RemoveAll(work)
	note := ""
	build := shim.BuildOptions{Library: target.Library, Mpicc: target.Mpicc, Compiling: o.Compiling,
		Note:    func(text string) { note = text },
		Waiting: func(string) {}} // nothing is wrong with a library that another process has built
	if brought {
		build.Mpicc = ""
	}
	m, err := captureTiny(ctx, o, work, target, build, launcher)
	const want = "1 message of 4,097 bytes and 1 barrier on 2 ranks"
	switch {
	case err != nil:
		return failure(name, "commq capture build --mpi "+target.Library+" says more", "%v", err)
	case m.Ranks != 2 || m.Counts.Messages != 1 || m.Counts.MessageBytes != 4097 || m.Collectives["MPI_Barrier"] != 1:
		return failure(name, "do not trust captures with this library; commq capture of your own small program may "+
			"show why", "a program of 2 ranks was recorded as %s of %s on %s, want %s",
			units.Count(m.Counts.Messages, "message"), units.ExactBytes(m.Counts.MessageBytes),
			units.Count(int64(m.Ranks), "rank"), want)
	}
	if note != "" {
		return warning(name, "captures work; commq capture build --mpicc "+target.Mpicc+" compiles again",
			"%s. With it a program of 2 ranks was recorded correctly: %s", note, want)
	}
	return ok(name, "a program of 2 ranks was recorded correctly: %s", want)
}

// captureTiny compiles the tiny program, runs it with the capture library that build describes, and ingests what it
// recorded in the folder work.
func captureTiny(ctx context.Context, o MachineOptions, work string, target shim.Target, build shim.BuildOptions,
	launcher string) (*schema.Manifest, error) {
	folder, err := programFolder()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	program, err := compileTiny(ctx, folder, target)
	if err != nil {
		return nil, err
	}
	spool := filepath.Join(work, "spool")
	if err := os.Mkdir(spool, 0o700); err != nil {
		return nil, err
	}
	build.Program = program
	lib, err := shim.Build(ctx, build)
	if err != nil {
		return nil, err
	}
	if err := launchTiny(ctx, launcher, lib, program, spool, selfCheckTime); err != nil {
		return nil, err
	}
	out, err := writer.Create(filepath.Join(work, "runs"), "tiny", writer.Options{})
	if err != nil {
		return nil, err
	}
	return ingest.Ingest(ctx, spool, out, ingest.Options{Origin: schema.Origin{Commq: o.Version}})
}

// programFolder makes a folder for the tiny program: in the cache folder, from which capture libraries are loaded, as the
// folder for temporary files may be mounted so that no program in it can run (noexec).
func programFolder() (string, error) {
	if cache := cacheFolder(); cache != "" && os.MkdirAll(cache, 0o700) == nil {
		if folder, err := os.MkdirTemp(cache, "doctor-"); err == nil {
			return folder, nil
		}
	}
	return os.MkdirTemp("", "commq-doctor-")
}

// compileTiny compiles the tiny program in a folder and returns its path.
func compileTiny(ctx context.Context, work string, target shim.Target) (program string, err error) {
	source, program := filepath.Join(work, "tiny.c"), filepath.Join(work, "tiny")
	if err := os.WriteFile(source, []byte(tinyProgram), 0o600); err != nil {
		return "", err
	}
	if out, err := exec.CommandContext(ctx, target.Mpicc, "-o", program, source).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s cannot compile a program: %w: %s", target.Mpicc, err, lastLine(out))
	}
	return program, nil
}

// launchTiny runs the tiny program on 2 ranks under the shim lib, for as long as limit.
func launchTiny(ctx context.Context, launcher, lib, program, spool string, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %s", limit))
	defer cancel()
	job := launch.Job{Launcher: []string{launcher}, Ranks: 2, Program: []string{program},
		Preload: launch.Preload{Shim: lib, Spool: spool, Clock: "cpu"}}
	line := job.Line()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), "OMPI_MCA_rmaps_base_oversubscribe=1")
	for _, name := range launch.RootVariables {
		cmd.Env = append(cmd.Env, name+"=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s cannot run a program of 2 ranks: %w: %s", launcher, cmp.Or(context.Cause(ctx), err),
			lastLine(out))
	}
	return nil
}
