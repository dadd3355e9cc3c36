// Package bench holds the MPI program of commq calibrate --launch. It makes the messages and collectives from which the
// parameters of a machine are estimated: ping-pongs of all sizes, sends whose receiver comes late, and collectives of
// several sizes and numbers of ranks, and rounds of messages that are sent at once.
package bench

import (
	"context"
	_ "embed"

	"github.com/commq/commq/capture/shim"
)

//go:embed src/bench.c
var source []byte

// PingPongs is the condition, on the table messages, that selects its ping-pongs.
const PingPongs = "tag = 9"

// Before a message with CycleTag the program's rank 0 computes CycleAdds additions, each of which takes a cycle.
const (
	CycleTag  = 14
	CycleAdds = 1 << 17
)

// A message from rank 0 to rank 1 with ClockTag has as many bytes as the processor has MHz by the operating system, one
// with TopClockTag as many as its highest clock has; 0 bytes: not known.
const (
	ClockTag    = 15
	TopClockTag = 16
)

// RoundTag is the smallest tag of rounds: sets of messages of one size that are sent at once, each set with a tag of
// its own. No other message has such a tag.
const RoundTag = 1000

// Name is the file name of the program, without what distinguishes builds.
const Name = "commq-calibrate"

// Build returns the path of the program for an MPI library, shim.OpenMPI or shim.MPICH, compiling it when the cache
// of built shims does not have it. mpicc names a compiler wrapper; when empty, it is looked for. Its arguments are the
// number of rounds, the largest message and the largest collective in bytes.
func Build(ctx context.Context, library, mpicc string) (string, error) {
	return shim.BuildProgram(ctx, shim.BuildOptions{Library: library, Mpicc: mpicc}, Name, source)
}
