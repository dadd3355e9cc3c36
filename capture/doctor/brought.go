package doctor

import (
	"context"

	"github.com/commq/commq/capture/shim"
)

// broughtLibrary checks the capture library that commq brings, where that is the choice for an MPI library and a
// program, which may be empty.
func broughtLibrary(ctx context.Context, library, program string, choice shim.Choice) Finding {
	path, err := shim.Build(ctx, shim.BuildOptions{Library: library, Mpicc: shim.NoMpicc, Program: program})
	if err != nil {
		return failure(library, "install the compiler wrapper of the program's MPI library, or make the cache folder writable "+
			"($COMMQ_CACHE names another)", "%v", err)
	}
	if text := shim.PreloadFails(ctx, path); text != "" {
		return failure(library, "load the module of a compiler, so that commq compiles one for this machine",
			"the capture library that commq brings cannot be loaded: %s", text)
	}
	if choice.Note != "" {
		return warning(library, "mend the compiler wrapper of the program's MPI library, or name it with --mpicc; captures "+
			"work without it", "%s; the brought one loads", choice.Note)
	}
	return ok(library, "captures take the library that commq brings for %s, which loads; --mpicc compiles one",
		choice.ABI.Title)
}
