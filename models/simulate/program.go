package simulate

import (
	"io"

	"github.com/commq/commq/internal/snapshot"
	"github.com/commq/commq/models"
	"github.com/commq/commq/models/nccl"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Program describes the ranks of a run and their communicators. Their calls come separately, as rows of events.
type Program struct {
	// Threads is the number of threads that call MPI, per rank.
	Threads []int32
	// Comms are the communicators. Processes outside the run's MPI_COMM_WORLD do not take part.
	Comms []run.Comm
	// Ungrouped are the windows whose groups are ignored, because one of them is not recorded: run.Run.Ungrouped.
	Ungrouped map[run.WindowKey]bool
	// Callsite returns the place of a call site in the program, for errors, or "" when it is not known. It may be nil.
	Callsite func(id int32) string
}

// Dialect is a set of simulation rules.
type Dialect uint8

const (
	// Paper follows Girona, Labarta and Badia (equations 1 to 4): a message takes L + S/B, and the latency is the
	// network's.
	Paper Dialect = iota
	// Dimemas5 does the same as Dimemas 5.5.0.
	Dimemas5
)

// Dialects are the names of the dialects.
var Dialects = []string{"paper", "dimemas5"}

func (d Dialect) String() string { return Dialects[d] }

// Options select how to simulate. The zero value simulates in dialect Paper without limits or callbacks.
type Options struct {
	// Dialect is the rules of the simulator to follow.
	Dialect Dialect
	// Done is called when a row is over; the rows of a thread are reported in the order in which they end. nil means
	// no callback.
	Done func(rank int32, seq int64, start, end Picoseconds)
	// MemoryBytes limits the memory for rows that were read but not yet simulated, and for messages and requests in
	// progress. Above it the simulation ends with an error that names the rank that is behind. 0 means no limit.
	MemoryBytes int64
	// Border is called after an epoch was read, with the number of epochs so far. save writes a checkpoint: the whole
	// state of the simulation. An error of Border ends the simulation. nil means no checkpoints.
	Border func(epochs int, save func(w io.Writer) error) error
	// Keep returns which part of its cost each operation keeps; nil means that all keep theirs. It goes with no
	// checkpoint.
	Keep Keep
	// State is a checkpoint to continue from, made by a simulation of the same program on the same machine with the
	// same options. next must then return the rows that come after those already read. nil means to start at the
	// beginning.
	State io.Reader
}

// Times are a rank's times: the sums of its threads' times, except Finish.
type Times struct {
	// Finish is when its last thread ends, since the start of the run.
	Finish Picoseconds
	// Compute is the time that it computes.
	Compute Picoseconds
	// IO is the time that it reads and writes files by MPI.
	IO Picoseconds
	// PointToPoint and Collective are the times in calls of these kinds. Waiting and Latency are parts of both: the
	// time blocked, and the time busy with a latency.
	PointToPoint, Collective, Waiting, Latency Picoseconds
	// CPUWait is the time that it waits for a CPU of its node.
	CPUWait Picoseconds
}

// NCCLCount is a number of collectives that NCCL does by an algorithm with a protocol.
type NCCLCount struct {
	Algorithm   nccl.Algorithm
	Protocol    nccl.Protocol
	Collectives int64
}

// Result is the outcome of a simulation.
type Result struct {
	// Ranks are the times of each rank.
	Ranks []Times
	// Time is when the last rank ends, since the start of the run.
	Time Picoseconds
	// Operations is the number of operations, and Events the number of events that they took.
	Operations, Events int64
	// Messages and Bytes count what was sent point to point.
	Messages, Bytes int64
	// Collectives and CollectiveBytes count the collective operations and what their ranks send, as a run's counts do.
	// FallbackCollectives and FallbackCollectiveBytes count those of them that used the phases of another operation.
	Collectives, CollectiveBytes                 int64
	FallbackCollectives, FallbackCollectiveBytes int64
	// ObjectOperations counts the operations of all ranks of a communicator that make communicators, windows or files,
	// and fences of windows.
	ObjectOperations int64
	// NCCL counts the collectives that NCCL does, by algorithm and protocol.
	NCCL []NCCLCount
	// Nodes is the number of nodes.
	Nodes int
	// Threads is the largest number of threads of a rank.
	Threads int32
}

// Simulate runs the program on the machine. Whenever a rank has nothing left to do it calls next, which passes the
// rows of the next epoch to add, in any number of batches and each rank's in order, and returns io.EOF after the last
// epoch. Errors name ranks that wait for ever, collectives that do not match, and messages without a partner.
func Simulate(m *models.Machine, p *Program, o *Options,
	next func(add func(*schema.Events) error) error) (r *Result, err error) {
	if o != nil && o.State != nil {
		defer snapshot.Guard(&err)
	}
	e, err := newEngine(m, p, o, next)
	if err != nil {
		return nil, err
	}
	if err := e.run(); err != nil {
		return nil, err
	}
	return e.result(), nil
}
