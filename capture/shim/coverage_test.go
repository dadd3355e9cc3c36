package shim

import (
	"debug/elf"
	"encoding/csv"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/capture/shim/abi"
	"github.com/commq/commq/internal/testenv"
)

// callRow holds the fields of a line of calls.csv that the tests need.
type callRow struct {
	treatment, recorder string
	// by MPI library: it has the call in C, as mpi_x_, as a mpi_x_f08_ to be wrapped
	c, f77, f08 map[string]bool
}

// callRows reads calls.csv, without commq's own calls.
func callRows(t *testing.T) map[string]callRow {
	t.Helper()
	f, err := os.Open("../../schema/calls.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]callRow{}
	for _, l := range lines[1:] {
		field := func(name string) string { return l[slices.Index(lines[0], name)] }
		if !strings.HasPrefix(field("name"), "MPI") {
			continue
		}
		rows[field("name")] = callRow{
			treatment: field("treatment"), recorder: field("recorder"),
			c:   map[string]bool{OpenMPI: field("openmpi") == "1", MPICH: field("mpich") == "1"},
			f77: map[string]bool{OpenMPI: field("openmpi_f77") == "1"},
			f08: map[string]bool{OpenMPI: field("openmpi_f08") == "1", MPICH: field("mpich_f08") == "pmpir_f08"},
		}
	}
	return rows
}

var (
	function = regexp.MustCompile(`\b(MPIX?_\w+)\s*\(`)
	mpiName  = regexp.MustCompile(`^MPIX?_\w+$`)
)

// declared lists the functions that the library's mpi.h declares.
func declared(t *testing.T, library string) map[string]bool {
	t.Helper()
	cmd := exec.Command("mpicc."+library, "-E", "-x", "c", "-")
	cmd.Stdin = strings.NewReader("#include <mpi.h>\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range function.FindAllStringSubmatch(string(out), -1) {
		names[m[1]] = true
	}
	return names
}

// exported lists the functions of a shared library whose names match.
func exported(t *testing.T, path string, name *regexp.Regexp) map[string]bool {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC && name.MatchString(s.Name) {
			names[s.Name] = true
		}
	}
	return names
}

// libraryPath is the path of the MPI library that programs are linked to.
func libraryPath(t *testing.T, library string) string {
	t.Helper()
	exe := compile(t, "mpicc."+library, filepath.Join(programs, "burn.c"))
	for _, line := range strings.Split(run(t, nil, "ldd", exe).stdout, "\n") {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " => ")
		if path, _, ok := strings.Cut(rest, " ("); ok && abi.HasC(library, name) {
			return path
		}
	}
	t.Fatalf("ldd %s names no MPI library", exe)
	return ""
}

// notCalls are names in mpi.h, or symbols of a library, that no program calls as MPI functions.
var notCalls = map[string]string{
	"MPI_AINT_ADD_F90":       "a helper of Open MPI's Fortran module",
	"MPI_AINT_DIFF_F90":      "a helper of Open MPI's Fortran module",
	"MPI_WTICK_F90":          "a helper of Open MPI's Fortran module",
	"MPI_WTIME_F90":          "a helper of Open MPI's Fortran module",
	"MPI_CONVERSION_FN_NULL": "a callback to be passed, as MPI_COMM_NULL_COPY_FN",
	"MPI_Aint":               "a type, where mpi.h of MPICH declares a function that returns one",
}

func TestEveryFunctionOfTheLibrariesHasARow(t *testing.T) {
	rows := callRows(t)
	for _, library := range libraries {
		testenv.MPI(t, library)
		names := declared(t, library)
		maps.Copy(names, exported(t, libraryPath(t, library), mpiName))
		if len(names) < 350 {
			t.Errorf("%s: only %d functions found", library, len(names))
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if _, ok := rows[name]; !ok && notCalls[name] == "" {
				t.Errorf("%s has %s, which has no row in calls.csv", library, name)
			}
		}
	}
}

// unrecorded are calls that should be recorded but are not, with the reason.
var unrecorded = map[string]string{
	"MPIX_Comm_agree":  "MPICH's form of fault tolerance, not standard: it runs as without us",
	"MPIX_Comm_revoke": "as MPIX_Comm_agree",
	"MPIX_Comm_shrink": "as MPIX_Comm_agree; the communicator is known from its first use",
}

// alsoWrapped are symbols that are wrapped in addition to a call's usual spellings, with the reason.
var alsoWrapped = map[string]string{
	"mpich mpi_pcontrol_":                      "MPICH's Fortran calls the C function without its second argument, which must not be looked for",
	"mpich mpi_win_allocate_f08_large_":        "the large-count form in mpi_f08 of a call without a buffer argument",
	"mpich mpi_win_allocate_shared_f08_large_": "the large-count form in mpi_f08 of a call without a buffer argument",
	"openmpi mpi_alloc_mem_cptr_":              "what use mpi calls with a type(c_ptr)",
	"openmpi mpi_win_allocate_cptr_":           "what use mpi calls with a type(c_ptr)",
	"openmpi mpi_win_allocate_shared_cptr_":    "what use mpi calls with a type(c_ptr)",
	"openmpi mpi_win_shared_query_cptr_":       "what use mpi calls with a type(c_ptr)",
}

// spellings are the symbols by which programs reach a call in a library; the shim must have all of them.
func (r callRow) spellings(name, library string) []string {
	var s []string
	low := strings.ToLower(name)
	if r.c[library] {
		s = append(s, name)
	}
	if r.f77[library] {
		s = append(s, low+"_")
	}
	if r.f08[library] {
		s = append(s, low+"_f08_")
	}
	return s
}

func TestTheShimWrapsWhatIsRecordedAndNothingElse(t *testing.T) {
	rows := callRows(t)
	for _, library := range libraries {
		wrapped := exported(t, shimFor(t, library), regexp.MustCompile(`^(MPI|mpi)x?X?_`))
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			r := rows[name]
			for _, s := range r.spellings(name, library) {
				switch {
				case r.recorder == "" && r.treatment == "record" && unrecorded[name] == "":
					t.Errorf("%s: %s is to be recorded, but has no recorder", library, name)
				case r.recorder != "" && !wrapped[s]:
					t.Errorf("%s: the shim has no %s (recorder %s)", library, s, r.recorder)
				case r.recorder == "" && wrapped[s]:
					t.Errorf("%s: the shim wraps %s, which has no recorder", library, s)
				}
				delete(wrapped, s)
			}
		}
		for _, s := range slices.Sorted(maps.Keys(wrapped)) {
			if alsoWrapped[library+" "+s] == "" {
				t.Errorf("%s: the shim wraps %s, which is no spelling of a call that the library has", library, s)
			}
		}
	}
}
