package shim

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// Imports lists the MPI functions that a program calls, itself or through its own shared libraries.
type Imports struct {
	// Languages are the bindings in use, of C, Fortran (mpif.h or use mpi) and Fortran 2008 (use mpi_f08).
	Languages []string
	// Calls are the functions that commq knows, sorted by number.
	Calls []schema.CallID
	// Unknown are names that look like MPI functions but that commq does not know, sorted.
	Unknown []string
	// Wrappers are loaded libraries that wrap MPI themselves, by path: other tools.
	Wrappers []string
	// Missing are libraries that the dynamic linker does not find.
	Missing []string
}

// ReadImports reads the imports of a program (a path) and of the libraries it loads, except those that it loads later
// (by dlopen). The error names the file that is not an ELF executable.
func ReadImports(program string) (*Imports, error) {
	loaded, missing, err := loads(program)
	if err != nil {
		return nil, err
	}
	im := &Imports{Missing: missing}
	calls := map[schema.CallID]bool{}
	unknown, languages := map[string]bool{}, map[string]bool{}
	names := lowerNames()
	for i, path := range append([]string{program}, loaded...) {
		if i > 0 && ofMPI(path) {
			continue
		}
		x, err := elf.Open(path)
		if err != nil {
			if i == 0 {
				return nil, fmt.Errorf("read what %s calls: %w", path, err)
			}
			continue
		}
		symbols, _ := x.DynamicSymbols() // none: a static program
		for _, s := range symbols {
			name, language := plainName(s.Name)
			switch {
			case language == "":
			case s.Section != elf.SHN_UNDEF:
				if i > 0 && (name == "mpi_send" || name == "mpi_init") && !slices.Contains(im.Wrappers, path) {
					im.Wrappers = append(im.Wrappers, path)
				}
			default:
				id, ok := names[name]
				if !ok {
					unknown[s.Name] = true
					continue
				}
				calls[id], languages[language] = true, true
			}
		}
		x.Close()
	}
	for id := range calls {
		im.Calls = append(im.Calls, id)
	}
	slices.Sort(im.Calls)
	im.Unknown, im.Languages = sortedNames(unknown), sortedNames(languages)
	return im, nil
}

// Unrecorded lists the functions that move data, make requests or synchronise, but leave no record.
func (im *Imports) Unrecorded() []string {
	var names []string
	for _, id := range im.Calls {
		if c := &schema.Calls[id]; c.Recorder == "" &&
			(c.Class != schema.ClassOther && !query(c.Name) || c.Name == "MPI_Grequest_start") {
			names = append(names, c.Name)
		}
	}
	return append(names, im.Unknown...)
}

// query reports whether a function only queries or sets something.
func query(name string) bool {
	for _, part := range []string{"_get_", "_set_", "_seek", "_test_inter", "_compare", "_shared_query",
		"_call_errhandler", "_create_errhandler", "_preallocate", "_delete"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

func sortedNames(set map[string]bool) []string {
	var names []string
	for n := range set {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// lowerNames maps lower-case names to the known functions.
func lowerNames() map[string]schema.CallID {
	names := map[string]schema.CallID{}
	for i := range schema.Calls {
		if schema.Calls[i].Name != "" {
			names[strings.ToLower(schema.Calls[i].Name)] = schema.CallID(i)
		}
	}
	return names
}

// plainName returns the lower-case name of the MPI function behind a symbol, and the language of the binding. Both
// are empty for symbols that are not MPI functions.
func plainName(symbol string) (name, language string) {
	switch {
	case strings.HasPrefix(symbol, "MPI_") || strings.HasPrefix(symbol, "MPIX_"):
		if symbol == strings.ToUpper(symbol) && symbol != "MPI_T" { // MPI_IN_PLACE and its like are data
			return "", ""
		}
		if strings.HasPrefix(symbol, "MPI_T_") {
			return "", ""
		}
		return strings.ToLower(symbol), "C"
	case !strings.HasPrefix(symbol, "mpi_"):
		return "", ""
	case strings.HasPrefix(symbol, "mpi_f08") || strings.Contains(symbol, "_MOD_") ||
		strings.HasPrefix(symbol, "mpi_fortran_"):
		return "", ""
	}
	lower := strings.ToLower(symbol)
	for _, suffix := range []string{"_f08ts_", "_f08_"} {
		if n, ok := strings.CutSuffix(lower, suffix); ok {
			return n, "Fortran 2008"
		}
	}
	if n, ok := strings.CutSuffix(lower, "_"); ok {
		return strings.TrimSuffix(n, "_"), "Fortran"
	}
	return "", ""
}

// ofMPI reports whether a library belongs to an MPI library.
func ofMPI(path string) bool {
	name := filepath.Base(path)
	for _, prefix := range []string{"libmpi", "libmpich", "libopen-rte", "libopen-pal", "libpmix", "libpmi",
		"libprrte", "libcommq"} {
		if strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, "libmpiP") &&
			!strings.HasPrefix(name, "libmpitrace") {
			return true
		}
	}
	return false
}

// loads lists the paths of the libraries that the dynamic linker would load, and the names of those it does not find.
func loads(program string) (paths, missing []string, err error) {
	abs, err := filepath.Abs(program)
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(abs); err != nil {
		return nil, nil, err
	}
	cmd := exec.Command("ldd", abs)
	cmd.Env = withoutPreload(os.Environ())
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, nil, fmt.Errorf("list the libraries of %s: %w", program, err)
	}
	for _, line := range strings.Split(string(out), "\n") {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if !ok {
			continue
		}
		path, _, _ := strings.Cut(rest, " (")
		if path == "not found" {
			missing = append(missing, name)
		} else if strings.HasPrefix(path, "/") {
			paths = append(paths, path)
		}
	}
	return paths, missing, nil
}

// Sanitizers returns the libraries of sanitizers (-fsanitize=address, thread and others) that a program needs, by the
// names that it gives. They must come before the shim in LD_PRELOAD: AddressSanitizer ends a program in which another
// library comes first. It is empty if the program cannot be read, or has its sanitizer linked in.
func Sanitizers(program string) []string {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil
	}
	x, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer x.Close()
	needed, _ := x.ImportedLibraries()
	return slices.DeleteFunc(needed, func(name string) bool { return !sanitizer.MatchString(name) })
}

var sanitizer = regexp.MustCompile(`^(lib(asan|tsan|lsan|ubsan|hwasan)\.so|libclang_rt\.[a-z]*san)`)

// withoutPreload removes LD_PRELOAD: preloaded libraries are examined separately.
func withoutPreload(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ),
		func(kv string) bool { return strings.HasPrefix(kv, "LD_PRELOAD=") })
}

// WrapsMPI reports whether a shared library defines functions of MPI.
func WrapsMPI(path string) bool {
	x, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer x.Close()
	symbols, _ := x.DynamicSymbols()
	return slices.ContainsFunc(symbols, func(s elf.Symbol) bool {
		return s.Name == "MPI_Init" &&
			s.Section != elf.SHN_UNDEF
	})
}
