package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

const lateModule = `#include <mpi.h>
int start(void)
{
	MPI_Comm own;
	int one = 1, sum = 0;
	if (MPI_Init(0, 0) || MPI_Comm_dup(MPI_COMM_WORLD, &own))
		return 1;
	if (MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, own) || MPI_Comm_free(&own) || MPI_Finalize())
		return 2;
	return sum == 1 ? 0 : 3;
}
`

const lateMain = `#include <dlfcn.h>
#include <string.h>
int main(int argc, char **argv)
{
	void *module = argc == 3 ? dlopen(argv[1], RTLD_NOW | (strcmp(argv[2], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL)) : 0;
	int (*start)(void) = module ? (int (*)(void))dlsym(module, "start") : 0;
	return start ? start() : 4;
}
`

// A module may load an MPI library of another family than the shim is for, as Python does, when it is too late to start
// the program again. Handles that are pointers are passed on, and nothing is recorded; MPICH's are too short for that.
func TestLibraryOfAnotherFamilyLoadedByAModule(t *testing.T) {
	testenv.Need(t, "gcc")
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	source := write("module.c", lateModule)
	exe := compile(t, "gcc", write("main.c", lateMain))
	testenv.OnAMD64(t, "MPICH 5")
	mpich5 := testenv.Venv(t, "../../scripts", "../../packaging/mpich5.txt", "MPICH 5")
	const unrecorded = "the program has loaded another MPI library; it runs unrecorded\n"
	const ends = "the program has loaded another MPI library; its calls cannot be passed on, so it ends: "
	abi := mpich5 + "/bin/mpicc_abi"
	standard, err := Build(t.Context(), BuildOptions{Library: MPICH, Mpicc: abi, Cache: built.cache})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, shim, module, says string }{
		{OpenMPI, shimFor(t, OpenMPI), "mpicc.mpich", unrecorded},
		{OpenMPI, shimFor(t, OpenMPI), abi, unrecorded},
		{MPICH, shimFor(t, MPICH), "mpicc.openmpi", ends},
		{MPICH, shimFor(t, MPICH), abi, ends},
		{"standard", standard, "mpicc.mpich", unrecorded},
		{"standard", standard, abi, ""},
	} {
		so := compile(t, c.module, source, "-shared", "-fPIC", "-Wl,--no-as-needed")
		for _, scope := range []string{"local", "global"} {
			t.Run(c.name+"/"+filepath.Base(c.module)+"/"+scope, func(t *testing.T) {
				spool := filepath.Join(t.TempDir(), "spool")
				env := []string{"COMMQ_SPOOL=" + spool, "LD_LIBRARY_PATH=" + mpich5 + "/lib"}
				if got := run(t, env, exe, so, scope); got.status != 0 {
					t.Fatalf("without the shim: %+v", got)
				}
				got := run(t, append(env, "LD_PRELOAD="+c.shim), exe, so, scope)
				if (got.status == 0) != (c.says != ends) || !strings.Contains(got.stderr, c.says) {
					t.Errorf("%+v", got)
				}
				_, err := os.Stat(spool)
				if recorded := err == nil; recorded != (c.says == "") {
					t.Errorf("recorded: %t", recorded)
				}
			})
		}
	}
}

// A shim without the functions of MPI 4 tells where the program's library has them; the other calls are recorded.
func TestLibraryWithMoreFunctions(t *testing.T) {
	testenv.Need(t, "gcc")
	source := filepath.Join(t.TempDir(), "main.c")
	program := strings.Replace(lateModule, "int start(void)", "int main(void)", 1)
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	testenv.OnAMD64(t, "Open MPI 5")
	five := testenv.Venv(t, "../../scripts", "../../packaging/openmpi5.txt", "Open MPI 5")
	exe := compile(t, five+"/bin/mpicc", source)
	spool := filepath.Join(t.TempDir(), "spool")
	env := []string{"LD_PRELOAD=" + shimFor(t, OpenMPI), "COMMQ_SPOOL=" + spool, "LD_LIBRARY_PATH=" + five + "/lib",
		"OMPI_MCA_btl=self"} // a rank alone would leave 16 MiB in /dev/shm
	got := run(t, env, exe)
	const want = "commq: the program's MPI library has functions of MPI 4 whose calls are not recorded; --mpicc " +
		"and the library's own wrapper compile a capture library that records them\n"
	if got.status != 0 || got.stderr != want {
		t.Fatalf("%+v", got)
	}
	if text := text(dumpFolder(t, spool)); strings.Count(text, "MPI_Allreduce") != 1 {
		t.Errorf("recorded\n%s", text)
	}
}
