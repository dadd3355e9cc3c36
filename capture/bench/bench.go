// Package bench holds the MPI program of commq calibrate --launch, which makes the messages and collectives that a machine is
// learnt from: ping-pongs of all sizes, sends whose receiver comes late, and collectives of several sizes and numbers of ranks.
package bench

import (
	"context"
	_ "embed"

	"github.com/commq/commq/capture/shim"
)

//go:embed src/bench.c
var source []byte

// PingPongs is the condition on messages that its ping-pongs meet.
const PingPongs = "tag = 9"

// Before a message with CycleTag the program's rank 0 computes CycleAdds additions, each of which takes a cycle.
const (
	CycleTag  = 14
	CycleAdds = 1 << 20
)

// Name is what the program's file is called, but for what tells builds apart.
const Name = "commq-calibrate"

// Build returns the path of the program for an MPI library, shim.OpenMPI or shim.MPICH, compiling it when the cache of built
// shims does not have it. mpicc names a compiler wrapper; "": it is found. Its arguments are the number of rounds, the largest
// message and the largest collective in bytes.
func Build(ctx context.Context, library, mpicc string) (string, error) {
	return shim.BuildProgram(ctx, shim.BuildOptions{Library: library, Mpicc: mpicc}, Name, source)
}
