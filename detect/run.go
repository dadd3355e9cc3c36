package detect

import (
	"io"

	"github.com/commq/commq/detect/combine"
	"github.com/commq/commq/detect/rankset"
	"github.com/commq/commq/detect/scan"
	"github.com/commq/commq/internal/payloads"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Run is the input of a detection: the messages of a run, its communicators and datatypes.
type Run struct {
	// Ranks is the number of processes in MPI_COMM_WORLD.
	Ranks int32
	// Count is the approximate number of messages; 0 means unknown.
	Count int64
	// HashBits is the width of payload_hash: 64 for crc64, 32 for crc32.
	HashBits int
	// Comms are the intracommunicators.
	Comms []run.Comm
	// Datatypes are the datatypes of the messages.
	Datatypes []combine.Datatype
	// Selves are payloads that ranks recorded without sending them, in any order.
	Selves []combine.Self
	// Functions maps call sites to numbers of functions; nil if unknown.
	Functions map[int32]int32
	// Lines maps call sites to numbers of lines, which have a call site for each path to them; nil if unknown.
	Lines map[int32]int32
	// Messages calls add with batches of the table messages in the order of epochs. The given columns are filled; add
	// calls rest before it looks at others of Columns. It does not keep the batch. Messages is called several times
	// and must produce the same rows each time. Rows without payload_hash are counted and left out. Errors of add and
	// rest are returned.
	Messages func(columns []string, add func(b *schema.Messages, rest schema.Rest) error) error
	// Shared, unless nil, is called once before messages are read and returns which epochs of which senders have a
	// message to another rank whose payload (hash and bytes) occurs in at least least such messages of the run, or
	// whose hash is unknown. Payloads elsewhere are not counted. nil means count everywhere. Its error is Detect's
	// too.
	Shared func(least int) (map[scan.Stretch]bool, error)
	// Events calls add with batches of the table events (the columns in EventColumns), each rank's in order. It is
	// called once something was found, because messages name only the call sites that send and that complete
	// receives. nil means there are no other sites.
	Events func(add func(*schema.Events) error) error
	// Stopped, unless nil, is called from time to time while nothing is read; an error ends the detection.
	Stopped func() error
	// Border, unless nil, is called between passes over the messages; save writes the state. Its error ends the
	// detection.
	Border func(save func(w io.Writer) error) error
	// State is what save wrote in a detection of the same run with the same options, which this one continues; nil
	// starts anew.
	State io.Reader
	// Spill, unless nil, opens a file for payloads that do not fit in memory: 4 bytes per message. Without it such
	// payloads are counted roughly, and more messages are looked at than necessary.
	Spill func() (payloads.Spill, error)
}

// Options control the detection. The zero value is the default.
type Options struct {
	// MinRanks is the least number of ranks of a finding; 0 means DefaultMinRanks.
	MinRanks int
	// Completeness is the least fraction of its communicator's ranks in a finding, from 0 (any) to 1 (all).
	Completeness float64
	// Messages lists the messages of every instance.
	Messages bool
	// MemoryBytes is the approximate memory to use; 0 means DefaultMemoryBytes. It limits the number of candidate
	// messages in memory and of payloads counted without spilling.
	MemoryBytes int64

	part int64         // messages in one pass; 0: as many as fit in MemoryBytes
	sets *rankset.Room // room for sets; nil: a part of MemoryBytes
	held int64         // payloads counted in memory; 0: as many as fit in MemoryBytes
}

// DefaultMemoryBytes has room for 8 million candidate messages.
const DefaultMemoryBytes = 3 << 30

// Memory for one candidate message with what is found in it, and the part of all memory for counting payloads, each
// of which takes 4 bytes.
const (
	replayedBytes = DefaultMemoryBytes >> 23
	countedPart   = 6
)
