package shim

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

// TestHeadersOfLibraries compiles the sources against the mpi.h of several libraries, with all warnings as errors:
// users compile without warnings, by compilers that nobody has tried.
func TestHeadersOfLibraries(t *testing.T) {
	testenv.Need(t, "gcc")
	files, err := filepath.Glob("src/*.c")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	recording, simulating := []string{}, []string{"-DCQ_SIM=1", "-Wno-deprecated-declarations"}
	bridge := append(simulating, "-DCQ_BRIDGE=1")
	check := func(library string, command []string, forms ...[]string) {
		for _, flags := range forms {
			args := append(append(command[1:len(command):len(command)], flags...), "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra",
				"-Werror", "-fPIC", "-fsyntax-only")
			if out, err := exec.Command(command[0], append(args, files...)...).CombinedOutput(); err != nil {
				t.Errorf("%s, %q: %v\n%s", library, flags, err, out)
			}
		}
	}
	for _, library := range libraries {
		testenv.MPI(t, library)
		check(library, []string{"mpicc." + library}, simulating)
	}
	for version, forms := range map[string][][]string{"mpich3": {recording, simulating, bridge}, "mpich5": {recording},
		"openmpi5": {recording}} {
		folder := testenv.Venv(t, "../../scripts", "../../packaging/"+version+".txt", "headers of "+version)
		check(version, []string{"gcc", "-I" + filepath.Join(folder, "include")}, forms...)
	}
}
