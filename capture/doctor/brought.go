package doctor

import (
	"context"
	"os"
	"os/exec"

	"github.com/commq/commq/capture/shim"
)

// broughtLibrary checks the capture library that commq brings for an MPI library without a compiler wrapper.
func broughtLibrary(ctx context.Context, library string) Finding { return broughtFor(ctx, library, "") }

// broughtFor is broughtLibrary for a program: for the version of the MPI library that it loads.
func broughtFor(ctx context.Context, library, program string) Finding {
	abi, err := shim.FindABI(ctx, library, program)
	if err != nil {
		return failure(library, "", "%v", err)
	}
	path, err := shim.Build(ctx, shim.BuildOptions{Library: library, Mpicc: shim.NoMpicc, Program: program})
	if err != nil {
		return failure(library, "", "%v", err)
	}
	if text := preloadFails(ctx, path); text != "" {
		return failure(library, "load the module of a compiler, so that commq compiles one for this machine",
			"the capture library that commq brings cannot be loaded: %s", text)
	}
	return ok(library, "no compiler wrapper; captures take the library that commq brings for %s, which loads", abi.Title)
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
