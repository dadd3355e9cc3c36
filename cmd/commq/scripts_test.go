package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/commq/commq/capture/shim"
	"github.com/commq/commq/internal/testenv"
)

// shimCache is the cache in which the tests of this package share compiled shims.
var shimCache string

// withCache runs the tests with the cache of testenv.Cache.
type withCache struct{ tests *testing.M }

func (w withCache) Run() int {
	var remove func()
	var err error
	if shimCache, remove, err = testenv.Cache(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer remove()
	os.Setenv("XDG_CONFIG_HOME", filepath.Join(shimCache, "config")) // without the user's own queries
	// Simulator ranks start commq; this process, a test binary, would run all tests again.
	command, err := exec.LookPath("commq")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	os.Setenv("COMMQ_SIM_COMMAND", command)
	return w.tests.Run()
}

func TestMain(m *testing.M) {
	testscript.Main(withCache{m}, map[string]func(){"commq": main})
}

// TestScripts runs the stories in testdata/scripts: command lines and their output.
func TestScripts(t *testing.T) {
	testscript.Run(t, scripts(t, "../../testdata/scripts"))
}

// TestMPIScripts runs the stories that need both MPI libraries.
func TestMPIScripts(t *testing.T) {
	for _, library := range []string{shim.OpenMPI, shim.MPICH} {
		testenv.MPI(t, library)
		for _, form := range []shim.Form{shim.Recording, shim.Simulated, shim.Bridge} { // else each story does
			_, err := shim.Build(t.Context(), shim.BuildOptions{Library: library, Form: form, Cache: shimCache})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	p := scripts(t, "../../testdata/scripts/mpi")
	setup, yielding := p.Setup, testenv.Yielding(t)
	p.Setup = func(env *testscript.Env) error {
		env.Setenv("LD_PRELOAD", yielding)
		return setup(env)
	}
	testscript.Run(t, p)
}

// unshare returns the command that gives a story mounts of its own, for full disks; if the user is not root, it adds
// a user namespace.
func unshare() string {
	if os.Getuid() == 0 {
		return "unshare -m"
	}
	return "unshare -r -m"
}

func scripts(t *testing.T, dir string) testscript.Params {
	runs, err := filepath.Abs(runsDir)
	if err != nil {
		t.Fatal(err)
	}
	return testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			env.Setenv("RUNS", runs)
			env.Setenv("SIGNATURES", filepath.Join(filepath.Dir(runs), "signatures"))
			env.Setenv("COMMQ_CACHE", shimCache)
			env.Setenv("UNSHARE", unshare())
			env.Setenv("COMMQ_SIM_COMMAND", os.Getenv("COMMQ_SIM_COMMAND"))
			for _, kv := range testenv.Environ() {
				if name, value, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "OMPI_") {
					env.Setenv(name, value)
				}
			}
			return os.Mkdir(filepath.Join(env.WorkDir, "tmp"), 0o755)
		},
	}
}
