package replay

import (
	"context"
	_ "embed"

	"github.com/commq/commq/capture/shim"
)

//go:embed src/player.c
var player []byte

// Build returns the path of the player for an MPI library, shim.OpenMPI or shim.MPICH; it compiles the player when the
// cache of built shims does not have it. mpicc names a compiler wrapper; "" searches for one. The player's arguments
// are the schedule's file, how it computes (busy, sleep or zero), and for a schedule with windows the file that it
// writes their times to.
func Build(ctx context.Context, library, mpicc string) (string, error) {
	return shim.BuildProgram(ctx, shim.BuildOptions{Library: library, Mpicc: mpicc}, "commq-replay",
		append([]byte(definitions()), player...))
}
