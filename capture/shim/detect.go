package shim

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/commq/commq/capture/shim/abi"
)

// Detect returns the MPI library (OpenMPI or MPICH) that a program is linked to, directly or through its own
// libraries. program is a path, or a name that is looked up in $PATH. If it finds no library, the error gives the
// reason: the program is absent, not an executable of this system (a script), statically linked, or linked to an
// unknown MPI library or none.
func Detect(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("detect the MPI library of %s: no such program (or it is not executable)", program)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("detect the MPI library: %w", err)
	}
	defer f.Close()
	magic := make([]byte, 4)
	if _, err := f.ReadAt(magic, 0); err != nil || string(magic) != elf.ELFMAG {
		return "", fmt.Errorf("detect the MPI library of %s: it is not an ELF executable (a script?); name the library with --mpi openmpi or --mpi mpich", program)
	}
	x, err := elf.NewFile(f)
	if err != nil {
		return "", fmt.Errorf("detect the MPI library of %s: %w", program, err)
	}
	return detectELF(program, x, func() ([]string, error) { return transitive(path) })
}

// detectELF is Detect for an ELF file; all lists the sonames of all libraries that the program would load.
func detectELF(program string, x *elf.File, all func() ([]string, error)) (string, error) {
	direct, err := x.ImportedLibraries()
	if err != nil {
		return "", fmt.Errorf("detect the MPI library of %s: read its dynamic section: %w", program, err)
	}
	if name := libraryOf(direct); name != "" {
		return name, nil
	}
	if !interpreted(x) {
		return "", fmt.Errorf("detect the MPI library of %s: it is statically linked, so nothing can be preloaded into it; link it dynamically", program)
	}
	loaded, err := all()
	if err != nil {
		return "", fmt.Errorf("detect the MPI library of %s: %w", program, err)
	}
	if name := libraryOf(loaded); name != "" {
		return name, nil
	}
	if definesMPI(x) {
		return "", fmt.Errorf("detect the MPI library of %s: the MPI library is linked into it statically; link it dynamically (without -static or libmpi*.a)", program)
	}
	if other := otherMPI(append(direct, loaded...)); other != "" {
		return "", fmt.Errorf("detect the MPI library of %s: it is linked to %s; Open MPI 4 and 5 "+
			"(libmpi.so.40), the ABI of MPICH 3 and later (libmpi.so.12) and that of MPI 5 (libmpi_abi.so.1) are known", program, other)
	}
	return "", fmt.Errorf("detect the MPI library of %s: it is not an MPI program (linked to no MPI library); where it loads one later or starts another program, name the library with --mpi openmpi or --mpi mpich", program)
}

// interpreted reports whether the program starts through a dynamic linker.
func interpreted(x *elf.File) bool {
	for _, p := range x.Progs {
		if p.Type == elf.PT_INTERP {
			return true
		}
	}
	return false
}

// libraryOf returns the MPI library among sonames, or "".
func libraryOf(sonames []string) string {
	for _, s := range sonames {
		if name := abi.LibraryOf(s); name != "" {
			return name
		}
	}
	return ""
}

// otherMPI returns a soname that looks like an MPI library from another vendor or of another version, or "".
func otherMPI(sonames []string) string {
	for _, s := range sonames {
		if abi.IsUnknown(s) {
			return s
		}
	}
	return ""
}

// transitive lists the sonames of all libraries that the dynamic linker would load, found or not.
func transitive(path string) ([]string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	out, err := exec.Command("ldd", abs).Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("list its libraries: %w", err)
	}
	var names []string
	for _, line := range strings.Split(string(out), "\n") {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			names = append(names, filepath.Base(name))
		}
	}
	return names, nil
}

// definesMPI reports whether the program itself contains MPI_Init.
func definesMPI(x *elf.File) bool {
	symbols, err := x.Symbols()
	if err != nil { // stripped
		symbols, _ = x.DynamicSymbols()
	}
	for _, s := range symbols {
		if (s.Name == "MPI_Init" || s.Name == "PMPI_Init") && s.Section != elf.SHN_UNDEF {
			return true
		}
	}
	return false
}

// needsMPI reports whether a shared library itself needs an MPI library, which the shim must not.
func needsMPI(path string) (bool, error) {
	x, err := elf.Open(path)
	if err != nil {
		return false, err
	}
	defer x.Close()
	libs, err := x.ImportedLibraries()
	return libraryOf(libs) != "" || otherMPI(libs) != "", err
}

// firstLine is the first line of a tool's output, for messages.
func firstLine(out []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	return string(line)
}
