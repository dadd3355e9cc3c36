package shim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/commq/commq/capture/shim/abi"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/testenv"
	"github.com/google/go-cmp/cmp"
)

// libraries are the MPI libraries of the tests.
var libraries = []string{OpenMPI, MPICH}

var built = struct {
	sync.Mutex
	path  map[string]string
	yield string
	// dir is a folder of this package's tests, cache that of testenv.Cache.
	dir, cache string
}{path: map[string]string{}}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "commq-shim-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	built.dir = dir
	cache, remove, err := testenv.Cache()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	built.cache = cache
	status := m.Run()
	remove()
	os.RemoveAll(dir)
	os.Exit(status)
}

// shimFor builds the shim, once per test run.
func shimFor(t testing.TB, library string) string {
	t.Helper()
	testenv.MPI(t, library)
	built.Lock()
	defer built.Unlock()
	if p := built.path[library]; p != "" {
		return p
	}
	p, err := Build(context.Background(), BuildOptions{Library: library, Cache: built.cache})
	if err != nil {
		t.Fatal(err)
	}
	built.path[library] = p
	return p
}

// outcome is the result of running a program.
type outcome struct {
	stdout, stderr string
	status         int
}

// run runs a command for at most twice testenv.Patience.
func run(t testing.TB, env []string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*testenv.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = testenv.Environ(env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%s: not done after ten minutes\n%s%s", strings.Join(args, " "), out.Bytes(), errs.Bytes())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// yielding is testenv.Yielding, computed once per test run.
func yielding(t testing.TB) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.yield == "" {
		lib, err := os.ReadFile(testenv.Yielding(t))
		if err != nil {
			t.Fatal(err)
		}
		built.yield = filepath.Join(built.dir, "yield.so")
		if err := os.WriteFile(built.yield, lib, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return built.yield
}

// launch runs a program on ranks of an MPI library; with a shim, its variables are set in the ranks only.
func launch(t testing.TB, library string, ranks int, variables []string, program ...string) outcome {
	t.Helper()
	args := []string{"mpirun." + library, "-n", fmt.Sprint(ranks)}
	if library == MPICH || slices.ContainsFunc(variables,
		func(v string) bool { return strings.Contains(v, "libcommq-sim") }) {
		variables = append([]string{"LD_PRELOAD=" + yielding(t)}, variables...)
		for i, v := range variables[1:] {
			if strings.HasPrefix(v, "LD_PRELOAD=") {
				variables[i+1] = v + ":" + yielding(t)
			}
		}
	}
	if len(variables) > 0 {
		args = append(append(args, "env"), variables...)
	}
	return run(t, nil, append(args, program...)...)
}

// compile compiles a program of testdata/programs.
func compile(t testing.TB, compiler, source string, flags ...string) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "program")
	args := append([]string{compiler}, flags...)
	if o := run(t, nil, append(args, "-o", exe, source)...); o.status != 0 {
		t.Fatalf("%s: %s", strings.Join(args, " "), o.stderr)
	}
	return exe
}

const programs = "../../testdata/programs"

// flavour is a language of the programs: suffix of the file's name, compiler, its flags, and the sinks to try.
type flavour struct {
	name, suffix, compiler string
	flags, sinks           []string
}

// compileOnce compiles a program that no test changes as the tests of cmd/commq do, which share it; see
// testenv.Compile.
func compileOnce(t testing.TB, library, name string, f flavour) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "program")
	testenv.Compile(t, exe, f.compiler+library, filepath.Join(programs, name+f.suffix),
		append(slices.Clone(f.flags), "-D"+strings.ToUpper(library))...)
	return exe
}

var flavours = []flavour{
	{"c", ".c", "mpicc.", []string{"-w"}, []string{"mmap", "write", "packed"}},
	{"mpifh", ".F90", "mpif90.", []string{"-w", "-fallow-argument-mismatch", "-DMPIFH"}, []string{"mmap"}},
	{"usempi", ".F90", "mpif90.", []string{"-w", "-fallow-argument-mismatch", "-DUSEMPI"}, []string{"mmap"}},
	{"f08", ".F90", "mpif90.", []string{"-w", "-DF08"}, []string{"mmap"}},
}

// TestPrograms runs programs that do the same in every language, so their expected rows are the same; NAME.want has
// them, written by hand.
func TestPrograms(t *testing.T) {
	for _, p := range []struct {
		name  string
		ranks int
	}{{"p2p", 3}, {"requests", 3}, {"probes", 3}, {"collectives", 3}, {"comms", 5}, {"types", 3}, {"guard", 3}} {
		want, err := os.ReadFile(filepath.Join(programs, p.name+".want"))
		if err != nil {
			t.Fatal(err)
		}
		for _, library := range libraries {
			for _, f := range flavours {
				if _, err := os.Stat(filepath.Join(programs, p.name+f.suffix)); err != nil {
					continue // guard is in C only
				}
				t.Run(p.name+"/"+library+"/"+f.name, func(t *testing.T) {
					lib := shimFor(t, library)
					exe := compileOnce(t, library, p.name, f)
					bare := launchBare(t, library, p.ranks, exe)
					for _, sink := range f.sinks {
						checkProgram(t, library, lib, exe, sink, bare, wanted(string(want), p.ranks), p.ranks)
					}
				})
			}
		}
	}
}

// TestTheTableOfVersions checks what docs/COMPAT.md says of Debian's libraries: their languages, and on that Debian
// their versions.
func TestTheTableOfVersions(t *testing.T) {
	names := map[string]string{"c": "C", "mpifh": "mpif.h", "usempi": "use mpi", "f08": "use mpi_f08"}
	var languages []string
	for _, f := range flavours {
		languages = append(languages, names[f.name])
	}
	if want := append(languages, "mpi4py"); !slices.Equal(abi.Languages, want) { // mpi4py: python/tests/test_capture.py
		t.Errorf("the table has programs in %q, the tests in %q", abi.Languages, want)
	}
	debian, _ := os.ReadFile("/etc/debian_version")
	for _, v := range abi.Versions {
		if v.Compiled != abi.CI || v.Requirements != "" || !strings.HasPrefix(string(debian), strings.TrimPrefix(v.From, "Debian ")+".") {
			continue
		}
		testenv.MPI(t, v.Family().Library)
		target, err := FindTarget(t.Context(), v.Family().Library, "mpicc."+v.Family().Library)
		if err != nil || target.Version != v.Version {
			t.Errorf("the table has %s %s, this machine %s, %v", v.Library, v.Version, target.Version, err)
		}
	}
}

// launchBare launches a program without the shim.
func launchBare(t *testing.T, library string, ranks int, exe string) outcome {
	t.Helper()
	bare := launch(t, library, ranks, nil, exe)
	if bare.status != 0 || bare.stdout != "ok\n" {
		t.Fatalf("without the shim: status %d, %q, %q", bare.status, bare.stdout, bare.stderr)
	}
	return bare
}

// checkProgram compares what a program shows with what it shows without the shim (bare), and its records with want.
func checkProgram(t *testing.T, library, lib, exe, sink string, bare outcome, want string, ranks int) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "spool", sink)
	got := launch(t, library, ranks, []string{"LD_PRELOAD=" + lib, "COMMQ_SPOOL=" + folder, "COMMQ_SINK=" + sink}, exe)
	if diff := cmp.Diff(bare, got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Fatalf("the shim shows (-without +with):\n%s", diff)
	}
	all := dumpFolder(t, folder)
	if len(all) != ranks {
		t.Fatalf("%d files for %d ranks", len(all), ranks)
	}
	for i, d := range all {
		h := d.header
		if int(h.Rank) != i || int(h.Size) != ranks || h.Ended != spool.EndedFinalized || h.Dropped != 0 {
			t.Errorf("file %d: rank %d of %d, ended %d, dropped %d", i, h.Rank, h.Size, h.Ended, h.Dropped)
		}
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(text(all), "\n")); diff != "" {
		t.Errorf("sink %s (-want +got):\n%s", sink, diff)
	}
}

// wanted converts a .want file to the form of text: a line that begins with digits and a colon belongs to those ranks,
// other lines to the rank of the last line "rank N"; lines that begin with # are comments.
func wanted(s string, ranks int) string {
	rows := make([]string, ranks)
	block := -1
	for _, line := range strings.Split(s, "\n") {
		of, rest, found := strings.Cut(line, ": ")
		switch {
		case strings.HasPrefix(line, "#"), line == "":
		case strings.HasPrefix(line, "rank "):
			fmt.Sscan(line[len("rank "):], &block)
		case found && strings.Trim(of, "0123456789") == "":
			for _, digit := range of {
				rows[digit-'0'] += rest + "\n"
			}
		default:
			rows[block] += line + "\n"
		}
	}
	var b strings.Builder
	for r, lines := range rows {
		fmt.Fprintf(&b, "rank %d\n%s", r, lines)
	}
	return b.String()
}
