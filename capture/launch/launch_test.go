package launch

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
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

// TestRunStartsAProgramWithAnEqualsSignInItsPath starts a program that env(1) would take for a variable: its arguments,
// its name and its status must be what they are without commq.
func TestRunStartsAProgramWithAnEqualsSignInItsPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "n=4 $x")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "ring=1")
	script := "#!/bin/sh\necho \"$0|$COMMQ_CLOCK\"; printf '[%s]' \"$@\"; exit 7\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	j, out := job(t, "")
	j.Program = []string{program, "a=b", "", "two words", "$HOME"}
	status, err := j.Run(context.Background())
	want := program + "|cpu\n[a=b][][two words][$HOME]"
	if err != nil || status != 7 || out.String() != want {
		t.Fatalf("status %d, output %q, %v; want 7 and %q", status, out, err, want)
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
	ended := make(chan struct{})
	go func() {
		for end := time.Now().Add(testenv.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if _, err := os.Stat(ready); err == nil {
				_ = syscall.Kill(os.Getpid(), syscall.SIGUSR1)
				return
			}
			select {
			case <-ended:
				return
			default:
			}
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM) // Run forwards it, and the program ends
	}()
	status, err := j.Run(context.Background())
	close(ended)
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
		"/d/libcommq-sim.so:/b.so":   "/c/libcommq.so:/b.so",
	} {
		if got := p.Variables([]string{"LD_PRELOAD=" + old})[0]; got != "LD_PRELOAD="+want {
			t.Errorf("LD_PRELOAD=%q: %s, want %s", old, got, want)
		}
	}
}

func TestSanitizersComeBeforeTheShim(t *testing.T) {
	p := Preload{Shim: "/c/libcommq.so", First: []string{"libasan.so.8"}, Spool: "s", Clock: "wall"}
	for old, want := range map[string]string{"": "libasan.so.8:/c/libcommq.so",
		"/b.so:libasan.so.8": "libasan.so.8:/c/libcommq.so:/b.so"} {
		if got := p.Variables([]string{"LD_PRELOAD=" + old})[0]; got != "LD_PRELOAD="+want {
			t.Errorf("LD_PRELOAD=%q: %s, want %s", old, got, want)
		}
	}
}

func TestEnvironReplacesWhatIsThere(t *testing.T) {
	p := Preload{Shim: "/c/libcommq.so", Spool: "s", Clock: "wall"}
	got := p.Environ([]string{"COMMQ_SPOOL=old", "HOME=/h", "LD_PRELOAD=/a.so", "COMMQ_SPOOLER=x"})
	want := []string{"HOME=/h", "COMMQ_SPOOLER=x", "LD_PRELOAD=/c/libcommq.so:/a.so", "COMMQ_SPOOL=s",
		"COMMQ_CLOCK=wall"}
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
		if _, err := Find(context.Background(), "mpich"); err == nil ||
			!strings.Contains(err.Error(), "apt-get install mpich") {
			t.Fatalf("error %v; want one that says what to install", err)
		}
	})
}

func TestExportedVariablesStandBeforeTheLaunchersOptions(t *testing.T) {
	t.Setenv("LD_PRELOAD", "")
	j := Job{Launcher: []string{"mpirun", "-x", "LD_PRELOAD=/b.so", "numactl", "-l"}, Ranks: 3,
		Program: []string{"./ring", "9"},
		Preload: Preload{Shim: "/c/libcommq.so", Spool: "/s p", Clock: "wall"}, Export: true}
	want := []string{"mpirun", "-x", "LD_PRELOAD=/c/libcommq.so", "-x", "COMMQ_SPOOL=/s p", "-x", "COMMQ_CLOCK=wall",
		"-x", "LD_PRELOAD=/b.so", "numactl", "-l", "-n", "3", "env", "LD_PRELOAD=/c/libcommq.so", "COMMQ_SPOOL=/s p",
		"COMMQ_CLOCK=wall", "./ring", "9"}
	if diff := cmp.Diff(want, j.Line()); diff != "" {
		t.Error(diff)
	}
}

// Simulator ranks are a second program behind a colon, without the preload; where they cannot be, the job has more
// ranks, which MPI_Init tells apart.
func TestSimulatorRanksInTheLine(t *testing.T) {
	t.Setenv("LD_PRELOAD", "/b.so")
	sim := &Simulation{Ranks: 2, Bridge: "/c/commq-bridge", Command: "/bin/commq", Machine: "/m.yaml", CPURatio: 1.25,
		CPUs: 2}
	j := Job{Launcher: []string{"mpirun", "--oversubscribe"}, Ranks: 3, Program: []string{"./ring", "9"}, Export: true,
		Preload: Preload{Shim: "/c/libcommq-sim.so", Spool: "/s", Clock: "none", Simulation: sim}}
	sims := []string{"COMMQ_SPOOL=/s", "COMMQ_CLOCK=none", "COMMQ_SIM_COMMAND=/bin/commq",
		"COMMQ_SIM_MACHINE=/m.yaml", "COMMQ_SIM_CPU_RATIO=1.25", "COMMQ_SIM_CPUS=2"}
	vars := append([]string{"LD_PRELOAD=/c/libcommq-sim.so:/b.so"}, sims...)
	want := []string{"mpirun"}
	for _, v := range vars {
		want = append(want, "-x", v)
	}
	want = slices.Concat(want, []string{"--oversubscribe", "-n", "3", "env"}, vars,
		[]string{"./ring", "9", ":", "-n", "2", "env", "-u", "LD_PRELOAD"}, sims, []string{"/c/commq-bridge"})
	if diff := cmp.Diff(want, j.Line()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"mpirun", "--oversubscribe", "-n", "3", ":", "-n", "2", "commq-bridge"},
		j.Words()); diff != "" {
		t.Error(diff)
	}

	j.Launcher, j.Export, sim.Bridge, sim.CPURatio, sim.CPUs = []string{"srun"}, false, "", 1, 0
	vars = append(slices.Clone(vars[:len(vars)-2]), "COMMQ_SIM_RANKS=2")
	want = slices.Concat([]string{"srun", "-n", "5", "env"}, vars, []string{"./ring", "9"})
	if diff := cmp.Diff(want, j.Line()); diff != "" {
		t.Error(diff)
	}
	j.Ranks = 0
	if diff := cmp.Diff([]string{"srun"}, j.Words()); diff != "" {
		t.Error(diff)
	}
}

func TestTakesPrograms(t *testing.T) {
	for _, library := range []string{"openmpi", "mpich"} {
		testenv.MPI(t, library)
		path, err := Find(context.Background(), library)
		if err != nil || !TakesPrograms(context.Background(), []string{path, "-q"}) {
			t.Errorf("%s: %q, %v", library, path, err)
		}
	}
	for _, name := range []string{launcher(t), "env", "/no/such/mpirun"} {
		if TakesPrograms(context.Background(), []string{name}) {
			t.Errorf("%s takes programs", name)
		}
	}
}

func TestOnlyOpenMPIsOwnLauncherTakesExports(t *testing.T) {
	for _, library := range []string{"openmpi", "mpich"} {
		testenv.MPI(t, library)
	}
	t.Setenv("HOME", t.TempDir())
	ctx := context.Background()
	openmpi, err := Find(ctx, "openmpi")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		launcher, environ []string
		want              bool
	}{
		"its own":             {[]string{openmpi, "-x", "A=3"}, []string{"B=5"}, true},
		"MPICH's":             {[]string{"mpirun.mpich"}, nil, false},
		"a script":            {[]string{launcher(t)}, nil, false},
		"not there":           {[]string{"/no/such/mpirun"}, nil, false},
		"the list as option":  {[]string{openmpi, "--mca", "mca_base_env_list", "A=3"}, nil, false},
		"the list in environ": {[]string{openmpi}, []string{"OMPI_MCA_mca_base_env_list=A=3"}, false},
		"a file of options":   {[]string{openmpi, "--tune", "file"}, nil, false},
	} {
		if got := TakesExports(ctx, c.launcher, c.environ); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	file := filepath.Join(os.Getenv("HOME"), ".openmpi", "mca-params.conf")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("mca_base_env_list = A=3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if TakesExports(ctx, []string{openmpi}, nil) {
		t.Error("the list in the user's file: Open MPI refuses -x")
	}
}

// The origin of a run has the user's program and what was launched, and the machine of simulator ranks.
func TestOriginOfJob(t *testing.T) {
	j := Job{Launcher: []string{"mpirun", "--oversubscribe"}, Ranks: 3, Program: []string{"./a", "7"}}
	o := j.Origin(5)
	if !slices.Equal(o.Command, j.Program) || !slices.Equal(o.Launcher, j.Words()) || *o.ExitStatus != 5 ||
		o.Simulation != nil {
		t.Errorf("%+v", o)
	}
	j.Preload.Simulation = &Simulation{Ranks: 2, Machine: "flat", Description: "latency_ns: 4097"}
	if s := j.Origin(0).Simulation; s == nil || s.Ranks != 2 || s.Machine != "flat" || s.Description == "" {
		t.Errorf("%+v", s)
	}
}

func TestEachAlone(t *testing.T) {
	for _, c := range []struct {
		ranks, jobs int
		largest     int32
		want        bool
	}{{4, 4, 1, true}, {4, 1, 4, false}, {1, 1, 1, false}, {4, 4, 2, false}, {4, 2, 1, false}, {0, 3, 1, false}} {
		if got := (Job{Ranks: c.ranks}).EachAlone(c.jobs, c.largest); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestRefusesRoot(t *testing.T) {
	for _, library := range []string{"openmpi", "mpich"} {
		testenv.MPI(t, library)
	}
	both := []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}
	for name, c := range map[string]struct {
		launcher, environ []string
		user              int
		want              bool
	}{
		"root":                   {[]string{"mpirun.openmpi", "-x", "A=3"}, []string{"B=5"}, 0, true},
		"another user":           {[]string{"mpirun.openmpi"}, nil, 1000, false},
		"both variables":         {[]string{"mpirun.openmpi"}, both, 0, false},
		"without the second one": {[]string{"mpirun.openmpi"}, both[:1], 0, true},
		"not 1":                  {[]string{"mpirun.openmpi"}, []string{both[0], both[1][:31] + "0"}, 0, true},
		"its option":             {[]string{"mpirun.openmpi", "--allow-run-as-root"}, nil, 0, false},
		"MPICH's":                {[]string{"mpirun.mpich"}, nil, 0, false},
		"not there":              {[]string{"/no/such/mpirun"}, nil, 0, false},
	} {
		if got := RefusesRoot(context.Background(), c.launcher, c.environ, c.user); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestIsLauncher(t *testing.T) {
	for program, want := range map[string]bool{"mpirun": true, "/usr/bin/mpiexec.hydra": true, "mpirun.openmpi": true, "srun": true,
		"./ring": false, "./mpirun_test": false, "hpcc": false} {
		if IsLauncher(program) != want {
			t.Errorf("%s is taken for a launcher: %t", program, !want)
		}
	}
}
