// Package python tests the Python package in src and the wheel that has it.
package python

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

// environment returns the folder of the virtual environment with what the tests need.
func environment(t *testing.T) string {
	t.Helper()
	testenv.Need(t, "python3", "flock")
	return testenv.Venv(t, "../scripts", "requirements.txt", "Python packages")
}

// readInputs opens the files of the package, so that go test does not take a result from its cache when one changed.
func readInputs(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			_, err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPackage runs the tests of the package, in tests, with pytest.
func TestPackage(t *testing.T) {
	venv := environment(t)
	testenv.MPI(t, "openmpi")
	testenv.MPI(t, "mpich")
	readInputs(t)
	cache, remove, err := testenv.Cache() // of compiled capture libraries
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	c := exec.Command(filepath.Join(venv, "bin", "python"), "-B", "-m", "pytest", "--durations=5")
	c.Env = testenv.Environ("PYTHONPATH=src", "COMMQ_COMMAND="+testenv.Command(t, ".."), "COMMQ_CACHE="+cache,
		"XDG_CONFIG_HOME="+t.TempDir())
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// TestTypes checks the types of the package and of its tests.
func TestTypes(t *testing.T) {
	venv := environment(t)
	readInputs(t)
	c := exec.Command(filepath.Join(venv, "bin", "mypy"), "--cache-dir", t.TempDir())
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestWheel installs the wheel in a new environment that has nothing else, and asks a query there.
func TestWheel(t *testing.T) {
	venv := environment(t)
	testenv.Need(t, "strip")
	readInputs(t)
	folder := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		var stderr bytes.Buffer
		c := exec.Command(name, args...)
		c.Env = append(os.Environ(), "PYTHONPATH=",
			"PIP_DISABLE_PIP_VERSION_CHECK=1", "COMMQ_COMMAND=")
		c.Stderr = &stderr
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", c, err, out, &stderr)
		}
		return strings.TrimSpace(string(out))
	}
	binary := filepath.Join(folder, "commq")
	run("strip", "-o", binary, testenv.Command(t, ".."))
	wheel := run("../scripts/wheel", binary, folder)
	name := filepath.Base(wheel)
	if !strings.HasPrefix(name, "commq-0.") || !strings.Contains(name, "-py3-none-manylinux_2_") {
		t.Errorf("the wheel is named %s", name)
	}
	run(filepath.Join(venv, "bin", "python"), "-m", "venv", filepath.Join(folder, "venv"))
	python := filepath.Join(folder, "venv", "bin", "python")
	run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-compile", wheel)
	query := []string{"query", "ratio", "--store", "../testdata/runs", "cg.A.4", "--format", "csv"}
	for _, out := range []string{
		run(filepath.Join(folder, "venv", "bin", "commq"), query...),
		run(python, append([]string{"-m", "commq"}, query...)...),
	} {
		if !strings.Contains(out, "point-to-point,6720,1680,") {
			t.Errorf("the query prints\n%s", out)
		}
	}
	said := run(python, "-c",
		"import commq; print(commq.command()); print(commq.open('../testdata/runs')['cg.A.4'].ranks)")
	if want := filepath.Join(folder, "venv", "bin", "commq") + "\n4"; said != want {
		t.Errorf("the package says %q, want %q", said, want)
	}
}
