package shim

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/commq/commq/capture/shim/abi"
)

//go:generate go run ./internal/gen .

//go:embed src
var sources embed.FS

//go:embed api
var api embed.FS

// APINames are the files that let a program talk to the capture library: commq.f90 for Fortran, commq.h for C.
var APINames = []string{"commq.f90", "commq.h"}

// API returns the text of one of APINames.
func API(name string) ([]byte, error) {
	text, err := api.ReadFile("api/" + name)
	if err != nil {
		return nil, fmt.Errorf("api %q: want one of %s", name, strings.Join(APINames, ", "))
	}
	return text, nil
}

// The MPI libraries that the shim can be built for, as Detect names them.
const (
	OpenMPI = abi.OpenMPI
	MPICH   = abi.MPICH
)

// library holds facts about an MPI library that are needed outside C.
type library struct {
	title   string
	wrapper []string // compiler wrappers that belong to it, by name
	macro   string   // that its mpi.h defines
	pkg     string   // Debian's package
}

func known(name string) (library, error) {
	switch name {
	case OpenMPI:
		return library{"Open MPI", []string{"mpicc.openmpi"}, "OPEN_MPI", "libopenmpi-dev"}, nil
	case MPICH:
		return library{"MPICH", []string{"mpicc.mpich"}, "MPICH_VERSION", "libmpich-dev"}, nil
	}
	return library{}, fmt.Errorf("unknown MPI library %q: openmpi and mpich are known", name)
}

// sourceFiles returns the names of the embedded sources, sorted, and their contents.
func sourceFiles() ([]string, map[string][]byte, error) {
	entries, err := fs.ReadDir(sources, "src")
	if err != nil {
		return nil, nil, err
	}
	var names []string
	files := map[string][]byte{}
	for _, e := range entries {
		data, err := sources.ReadFile("src/" + e.Name())
		if err != nil {
			return nil, nil, err
		}
		names = append(names, e.Name())
		files[e.Name()] = data
	}
	return names, files, nil
}
