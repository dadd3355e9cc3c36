package launch

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
)

// launcher writes a shell script that stands in for mpirun: it drops "-n N" and runs the rest.
func launcher(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mpirun")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nshift 2\nexec \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func job(t *testing.T, script string) (Job, *bytes.Buffer) {
	var out bytes.Buffer
	return Job{
		Launcher: []string{launcher(t)}, Ranks: 3, Program: []string{"sh", "-c", script},
		Preload: Preload{Shim: "", Spool: "/spool dir", Clock: "cpu"},
		Stdin:   strings.NewReader("4097\n"), Stdout: &out, Stderr: &out,
	}, &out
}

func TestRunPassesStreamsEnvironmentAndStatusThrough(t *testing.T) {
	j, out := job(t, `read x; echo "got $x"; echo "$COMMQ_SPOOL $COMMQ_CLOCK" >&2; exit 3`)
	status, err := j.Run(context.Background())
	if err != nil || status != 3 {
		t.Fatalf("status %d, %v; want 3", status, err)
	}
	if diff := cmp.Diff("got 4097\n/spool dir cpu\n", out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestRunReportsTheSignalThatEndedTheProgram(t *testing.T) {
	j, _ := job(t, `kill -SEGV $$`)
	status, err := j.Run(context.Background())
	if err != nil || status != 128+int(syscall.SIGSEGV) {
		t.Fatalf("status %d, %v; want 139", status, err)
	}
}

func TestRunForwardsSignals(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	j, out := job(t, `trap 'echo usr1; exit 9' USR1; : > "`+ready+`"; while :; do sleep 0.05; done`)
	go func() {
		for i := 0; i < 200; i++ {
			if _, err := os.Stat(ready); err == nil {
				_ = syscall.Kill(os.Getpid(), syscall.SIGUSR1)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	status, err := j.Run(context.Background())
	if err != nil || status != 9 || out.String() != "usr1\n" {
		t.Fatalf("status %d, output %q, %v; want 9 and usr1", status, out, err)
	}
}

func TestRunWithoutALauncherIsAnError(t *testing.T) {
	j, _ := job(t, "true")
	j.Launcher = []string{"/no/such/mpirun"}
	if _, err := j.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "/no/such/mpirun") {
		t.Fatalf("error %v; want one that names the launcher", err)
	}
}

func TestAnExistingPreloadStaysBehindOurs(t *testing.T) {
	p := Preload{Shim: "/c/libcommq.so", Spool: "s", Clock: "wall"}
	for old, want := range map[string]string{
		"":                           "/c/libcommq.so",
		"/usr/lib/libjemalloc.so":    "/c/libcommq.so:/usr/lib/libjemalloc.so",
		"/a.so /c/libcommq.so:/b.so": "/c/libcommq.so:/a.so:/b.so",
	} {
		if got := p.Variables([]string{"LD_PRELOAD=" + old})[0]; got != "LD_PRELOAD="+want {
			t.Errorf("LD_PRELOAD=%q: %s, want %s", old, got, want)
		}
	}
}

func TestEnvironReplacesWhatIsThere(t *testing.T) {
	p := Preload{Shim: "/c/libcommq.so", Spool: "s", Clock: "wall"}
	got := p.Environ([]string{"COMMQ_SPOOL=old", "HOME=/h", "LD_PRELOAD=/a.so", "COMMQ_SPOOLER=x"})
	want := []string{"HOME=/h", "COMMQ_SPOOLER=x", "LD_PRELOAD=/c/libcommq.so:/a.so", "COMMQ_SPOOL=s", "COMMQ_CLOCK=wall"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFind(t *testing.T) {
	for _, library := range []string{"openmpi", "mpich"} {
		t.Run(library, func(t *testing.T) {
			testenv.MPI(t, library)
			path, err := Find(context.Background(), library)
			if err != nil || !strings.HasPrefix(path, "/") {
				t.Fatalf("%q, %v", path, err)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if _, err := Find(context.Background(), "mpich"); err == nil || !strings.Contains(err.Error(), "apt-get install mpich") {
			t.Fatalf("error %v; want one that says what to install", err)
		}
	})
}
