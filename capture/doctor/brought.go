package doctor

import (
	"context"
	"os"
	"os/exec"

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
	if text := preloadFails(ctx, path); text != "" {
		return failure(library, "load the module of a compiler, so that commq compiles one for this machine",
			"the capture library that commq brings cannot be loaded: %s", text)
	}
	if choice.Note != "" {
		return warning(library, "mend or remove the compiler wrapper, or name another with --mpicc; captures work without it",
			"%s, which loads", choice.Note)
	}
	return ok(library, "no compiler wrapper; captures take the library that commq brings for %s, which loads",
		choice.ABI.Title)
}

// preloadFails returns what the dynamic linker says when it cannot preload a library: it goes on without it. Empty
// means that it can.
func preloadFails(ctx context.Context, library string) string {
	cmd := exec.CommandContext(ctx, "true")
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+library)
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		return err.Error()
	}
	return lastLine(out)
}
