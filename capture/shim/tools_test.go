package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

// toolSource is a small tool that wraps some functions of MPI, as profilers do, and prints what it counted.
const toolSource = `#include <mpi.h>
#include <stdio.h>
static int inits, sends, gathers;
int MPI_Init(int *c, char ***v) { inits++; return PMPI_Init(c, v); }
int MPI_Send(const void *b, int n, MPI_Datatype t, int d, int g, MPI_Comm c) { sends++; return PMPI_Send(b, n, t, d, g, c); }
int MPI_Allgather(const void *a, int b, MPI_Datatype c, void *d, int e, MPI_Datatype f, MPI_Comm g)
{
	gathers++;
	return PMPI_Allgather(a, b, c, d, e, f, g);
}
int MPI_Finalize(void)
{
	int r;
	PMPI_Comm_rank(MPI_COMM_WORLD, &r);
	fprintf(stderr, "tool: rank %d: %d init, %d sends, %d allgathers\n", r, inits, sends, gathers);
	return PMPI_Finalize();
}
`

// threeSends is a program in which rank 0 sends three messages to rank 1.
const threeSends = `#include <mpi.h>
int main(int argc, char **argv)
{
	int r, x = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &r);
	for (int i = 0; i < 3; i++) {
		if (r == 0)
			MPI_Send(&x, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
		else
			MPI_Recv(&x, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Finalize();
	return 0;
}
`

// source writes a program's text to a file.
func source(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestAnotherToolIsChained preloads a tool behind the shim, and links a program with it: it sees the program's calls,
// and not those of the shim, and the records have all calls.
func TestAnotherToolIsChained(t *testing.T) {
	for _, library := range libraries {
		t.Run(library, func(t *testing.T) {
			testenv.MPI(t, library)
			tool := filepath.Join(t.TempDir(), "libtool.so")
			if err := os.Rename(compile(t, "mpicc."+library, source(t, "tool.c", toolSource), "-shared", "-fPIC"),
				tool); err != nil {
				t.Fatal(err)
			}
			plain := compile(t, "mpicc."+library, source(t, "three.c", threeSends))
			linked := compile(t, "mpicc."+library, source(t, "three.c", threeSends), "-Wl,--no-as-needed", tool,
				"-Wl,-rpath,"+filepath.Dir(tool))
			for how, exe := range map[string]string{"preloaded": plain, "linked": linked} {
				folder, preload := filepath.Join(t.TempDir(), "spool"), shimFor(t, library)
				if how == "preloaded" {
					preload += ":" + tool
				}
				got := launch(t, library, 2, []string{"LD_PRELOAD=" + preload, "COMMQ_SPOOL=" + folder}, exe)
				for _, line := range []string{"tool: rank 0: 1 init, 3 sends, 0 allgathers",
					"tool: rank 1: 1 init, 0 sends, 0 allgathers"} {
					if got.status != 0 || !strings.Contains(got.stderr, line) {
						t.Errorf("%s: status %d, no %q in %q", how, got.status, line, got.stderr)
					}
				}
				want := []string{"MPI_Init", "MPI_Send", "MPI_Send", "MPI_Send", "MPI_Finalize"}
				if calls := dumpFolder(t, folder)[0].names(); !slices.Equal(calls, want) {
					t.Errorf("%s: rank 0 has %v", how, calls)
				}
			}
		})
	}
}

// TestSanitizedProgramsRun runs programs with the sanitizers of the compiler, their libraries before the shim.
func TestSanitizedProgramsRun(t *testing.T) {
	for _, kind := range []string{"address", "undefined", "thread"} {
		t.Run(kind, func(t *testing.T) {
			testenv.MPI(t, OpenMPI)
			exe := compile(t, "mpicc.openmpi", source(t, "three.c", threeSends), "-fsanitize="+kind)
			first := Sanitizers(exe)
			if len(first) == 0 {
				testenv.Skip(t, "the compiler links this sanitizer into the program")
			}
			const quiet = "ASAN_OPTIONS=detect_leaks=0" // of the MPI library's own
			if bare := launch(t, OpenMPI, 2, []string{quiet, "TSAN_OPTIONS=report_bugs=0"}, exe); bare.status != 0 {
				testenv.Skip(t, "without commq: "+bare.stderr)
			}
			folder := filepath.Join(t.TempDir(), "spool")
			got := launch(t, OpenMPI, 2, []string{"LD_PRELOAD=" + strings.Join(append(first, shimFor(t, OpenMPI)), ":"),
				"COMMQ_SPOOL=" + folder, quiet, "TSAN_OPTIONS=report_bugs=0"}, exe)
			if got.status != 0 || got.stderr != "" {
				t.Fatalf("%+v", got)
			}
			if calls := dumpFolder(t, folder)[0].names(); len(calls) != 5 {
				t.Errorf("rank 0 has %v", calls)
			}
		})
	}
}

// TestOnlyTheOwnerReadsAndMakesTheSpool: folder and files are for their owner alone, and a folder that another user
// made before, or can write to, is refused.
func TestOnlyTheOwnerReadsAndMakesTheSpool(t *testing.T) {
	testenv.MPI(t, OpenMPI)
	exe := compile(t, "mpicc.openmpi", source(t, "three.c", threeSends))
	env := func(folder string) []string {
		return []string{"LD_PRELOAD=" + shimFor(t, OpenMPI), "COMMQ_SPOOL=" + folder}
	}
	folder := filepath.Join(t.TempDir(), "a", "spool")
	if got := launch(t, OpenMPI, 2, env(folder), exe); got.status != 0 || got.stderr != "" {
		t.Fatalf("%+v", got)
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for path, want := range map[string]os.FileMode{folder: 0o700, filepath.Dir(folder): 0o700,
		filepath.Join(folder, files[0].Name()): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	refused := func(how, folder string) {
		got := launch(t, OpenMPI, 2, env(folder), exe)
		if got.status != 0 || strings.Count(got.stderr, "these ranks run unrecorded") != 1 ||
			!strings.Contains(got.stderr, "the folder belongs to another user, or other users can write to it") {
			t.Errorf("%s: %+v", how, got)
		}
		if files, err := os.ReadDir(folder); err != nil || len(files) != 0 {
			t.Errorf("%s: %d files, %v", how, len(files), err)
		}
	}
	for _, mode := range []os.FileMode{0o707, 0o770} {
		open := filepath.Join(t.TempDir(), "open")
		if err := os.Mkdir(open, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(open, mode); err != nil {
			t.Fatal(err)
		}
		refused(fmt.Sprintf("mode %o", mode), open)
	}
	testenv.Root(t, "to make a folder of another user")
	planted, link := filepath.Join(t.TempDir(), "planted"), filepath.Join(t.TempDir(), "link")
	if err := os.Mkdir(planted, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(planted, 1843, 1843); err != nil {
		t.Fatal(err)
	}
	refused("another user's", planted)
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if err := os.Lchown(link, 1843, 1843); err != nil {
		t.Fatal(err)
	}
	refused("by another user's link", link)
}

// TestPlantedShimIsRefused: a library in the cache that another user made would run in the user's programs.
func TestPlantedShimIsRefused(t *testing.T) {
	testenv.Root(t, "to make a file of another user")
	for _, planted := range []string{"shim", "shim/x", "shim/x/libcommq.so"} {
		cache := t.TempDir()
		folder := filepath.Join(cache, "shim", "x")
		file := filepath.Join(folder, "libcommq.so")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("library"), 0o600); err != nil {
			t.Fatal(err)
		}
		if there, err := cached(folder, file); !there || err != nil {
			t.Fatalf("before: %v, %v", there, err)
		}
		if err := os.Lchown(filepath.Join(cache, planted), 1843, 1843); err != nil {
			t.Fatal(err)
		}
		if there, err := cached(folder, file); there || err == nil ||
			!strings.Contains(err.Error(), "belongs to user 1843") {
			t.Errorf("%s is another user's: %v, %v", planted, there, err)
		}
	}
}
