package shim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// badCompiler is a wrapper that knows an mpi.h of Open MPI 4.1.4 and then ends as its lines say.
func badCompiler(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mpicc")
	text := `#!/bin/sh
case "$1" in
--version) echo gcc 12; exit;;
-E) echo "#define OPEN_MPI 1"; echo "#define OMPI_MAJOR_VERSION 4"; echo "#define OMPI_MINOR_VERSION 1"; echo "#define OMPI_RELEASE_VERSION 4"; exit;;
esac
` + lines + "\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCompilersThatFail(t *testing.T) {
	for _, c := range []struct {
		name, lines string
		want        []string
	}{
		{"error", `for i in 1 2 3 4 5 6; do echo "spool.c:$i: error: no such thing" >&2; echo >&2; done; exit 1`, []string{
			"MPICC failed (exit status 1) on the capture library for Open MPI 4.1.4",
			"    spool.c:2: error: no such thing", "    spool.c:3: error: no such thing", "    spool.c:4: error: no such thing",
			"    spool.c:5: error: no such thing", "    spool.c:6: error: no such thing",
			"check that the wrapper compiles a program of your own, or name another one with --mpicc"}},
		{"killed", `kill -9 $$`, []string{
			"MPICC was stopped by a signal (killed) while it worked on the capture library for Open MPI 4.1.4",
			"the machine may have run out of memory, or a limit of the batch system was reached: try again on a login node"}},
		{"full", `echo "cannot write out.o: No space left on device"; exit 1`, []string{
			"MPICC failed (exit status 1) on the capture library for Open MPI 4.1.4",
			"    cannot write out.o: No space left on device",
			"name a cache folder with more space in $COMMQ_CACHE, and one for temporary files in $TMPDIR"}},
		{"long", `printf '%01000d\n' 7; exit 3`, []string{
			"MPICC failed (exit status 3) on the capture library for Open MPI 4.1.4",
			"    " + strings.Repeat("0", outputWidth) + " ...",
			"check that the wrapper compiles a program of your own, or name another one with --mpicc"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			mpicc, told := badCompiler(t, c.lines), ""
			_, err := Build(context.Background(), BuildOptions{Library: OpenMPI, Mpicc: mpicc, Cache: t.TempDir(),
				Compiling: func(what string) { told = what }})
			var compile *CompileError
			want := strings.ReplaceAll(strings.Join(c.want, "\n"), "MPICC", mpicc)
			if !errors.As(err, &compile) || err.Error() != want {
				t.Errorf("error\n%v\nwant\n%s", err, want)
			}
			if told != "the capture library for Open MPI 4.1.4" {
				t.Errorf("told of %q", told)
			}
		})
	}
}

// A source is named without the folder of the build, which is gone when the error is read.
func TestCompilerMessagesNameSourcesAlone(t *testing.T) {
	mpicc := badCompiler(t, `for last; do :; done; echo "$last:7: error: odd"; exit 1`)
	_, err := Build(context.Background(), BuildOptions{Library: OpenMPI, Mpicc: mpicc, Cache: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), ".c:7: error: odd") || strings.Contains(err.Error(), ".build-") {
		t.Errorf("error %v", err)
	}
}

func TestCancelledCompileSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	mpicc := badCompiler(t, "exec sleep 600")
	_, err := Build(ctx, BuildOptions{Library: OpenMPI, Mpicc: mpicc, Cache: t.TempDir(),
		Compiling: func(string) { cancel(errors.New("interrupted")) }})
	if err == nil || err.Error() != "compiling the capture library for Open MPI 4.1.4: interrupted" {
		t.Errorf("error %v", err)
	}
}
