// Package detect finds collective operations that a program does by hand, with point-to-point messages, after Calotoiu, Siebert
// and Wolf, "Pattern-Independent Detection of Manual Collectives in MPI Programs" (EuroMPI 2012). It sees the messages of a run
// with the hashes of their payloads, and asks what was known where before and after, never how the messages were arranged.
// docs/method/detection.md has the rules.
package detect

import (
	"fmt"
	"io"

	"github.com/commq/commq/internal/snapshot"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/payloads"
)

// Operation is a collective operation, by the MPI function that would do it.
type Operation uint8

// The operations that are found.
const (
	Bcast      Operation = iota // a payload that one rank has reaches all the others
	Allgather                   // a payload of each rank, all of one size, reaches all the others
	Allgatherv                  // the same with sizes that differ
	Alltoall                    // each rank sends to each other rank what is for it, all of one size
	Alltoallv                   // the same with sizes that differ
	Barrier                     // empty messages by which every rank waits for every other

	Scatter            // a block of one rank's payload reaches each rank, all of one size
	Scatterv           // the same with sizes that differ
	Gather             // a block of each rank, all of one size, reaches one rank
	Gatherv            // the same with sizes that differ
	Reduce             // what each rank contributes reaches one rank, combined
	Allreduce          // what each rank contributes reaches all ranks, combined
	ReduceScatter      // a block of what each rank contributes reaches each rank, combined
	ReduceScatterBlock // the same, all blocks of one size
	Scan               // what a rank and all before it contribute reaches it, combined
	Exscan             // what all ranks before it contribute reaches a rank, combined

	NeighborAllgather // what a rank has reaches its neighbours, which are others for each rank; Options.Neighbors asks for it
	NeighborAlltoall  // each rank sends to each of its neighbours what is for it, all of one size
	NeighborAlltoallv // the same with sizes that differ
	NeighborAlltoallw // the same with datatypes that differ
)

var operationNames = [...]string{"MPI_Bcast", "MPI_Allgather", "MPI_Allgatherv", "MPI_Alltoall", "MPI_Alltoallv", "MPI_Barrier",
	"MPI_Scatter", "MPI_Scatterv", "MPI_Gather", "MPI_Gatherv", "MPI_Reduce", "MPI_Allreduce", "MPI_Reduce_scatter",
	"MPI_Reduce_scatter_block", "MPI_Scan", "MPI_Exscan", "MPI_Neighbor_allgather", "MPI_Neighbor_alltoall", "MPI_Neighbor_alltoallv",
	"MPI_Neighbor_alltoallw"}

// Operations are the names of all operations that are looked for, without those between neighbours.
func Operations() []string { return operationNames[:NeighborAllgather] }

// String is the name of the MPI function.
func (o Operation) String() string { return operationNames[o] }

// Neighborly says whether each rank has neighbours of its own.
func (o Operation) Neighborly() bool { return o >= NeighborAllgather }

// Rooted says whether the operation has a root.
func (o Operation) Rooted() bool {
	switch o {
	case Bcast, Scatter, Scatterv, Gather, Gatherv, Reduce:
		return true
	}
	return false
}

// Combines says whether the operation is a reduction, which has an MPI_Op.
func (o Operation) Combines() bool { return o >= Reduce && o <= Exscan }

// Certainty says what a finding rests on.
type Certainty uint8

// What a finding rests on, the strongest first.
const (
	// Verified: payloads are what the operation makes of others, by hashes, sums or first elements, wherever that can be seen.
	Verified Certainty = iota
	// Addressed: sizes fit, and the blocks lie side by side in memory; no hash could tell, because a rank's own block was in no message.
	Addressed
	// Inferred: who sends to whom, when and how much fits in every instance, and nothing contradicts.
	Inferred
)

// String is verified, addressed or inferred.
func (c Certainty) String() string { return [...]string{"verified", "addressed", "inferred"}[c] }

// Run is what is looked at: the messages of a run, and what tells of its communicators and datatypes.
type Run struct {
	// Ranks is the number of processes in MPI_COMM_WORLD.
	Ranks int32
	// Count is about how many messages there are; 0 is not known.
	Count int64
	// HashBits is the width of payload_hash: 64 for crc64, 32 for crc32.
	HashBits int
	// Comms are the intracommunicators.
	Comms []Comm
	// Datatypes are the datatypes that messages may name.
	Datatypes []Datatype
	// Selves are what ranks recorded that they have without sending it, in any order.
	Selves []Self
	// Functions are, by call site, the numbers of the functions in which calls stand, where that is known; nil: it is not.
	Functions map[int32]int32
	// Messages calls add with the rows of the table messages in the order of their epochs. add finds the given columns filled, and calls
	// rest before it looks at others of Columns. It does not keep the batch. Messages is called several times, and must
	// give the same rows each time. Rows without a payload_hash are counted and left out. Errors of add and of rest are its errors too.
	Messages func(columns []string, add func(b *schema.Messages, rest schema.Rest) error) error
	// Shared, where not nil, is asked once, before messages are read: somebody else has counted payloads. It names what ranks sent in epochs with a message to
	// another rank whose payload (hash and bytes) at least so many such messages of the run have, or with one whose hash is not known. Of what is not named no
	// payload is looked at to count it. Nil: all are. An error is Detect's too.
	Shared func(least int) (map[Stretch]bool, error)
	// Events calls add with the rows of the table events (the columns named in EventColumns), each rank's in their order. It is called
	// when something was found: messages name only the call sites that send and that complete receives. Nil: there are no others.
	Events func(add func(*schema.Events) error) error
	// Stopped, where not nil, is asked now and then while nothing is read: an error ends the detection.
	Stopped func() error
	// Border, where not nil, is called between passes over the messages: save then writes all that is known. Its error ends the detection.
	Border func(save func(w io.Writer) error) error
	// State is what save wrote in a detection of the same run with the same options, from where this one goes on; nil: it begins.
	State io.Reader
	// Spill, where not nil, opens a file for payloads for which there is no memory: 4 bytes for each message. Without one they are counted roughly then, and
	// more messages are looked at than need be.
	Spill func() (payloads.Spill, error)
}

// Stretch is what a rank sends in an epoch.
type Stretch struct{ Epoch, Src int32 }

// Comm is a communicator.
type Comm struct {
	ID int32
	// Members are the world ranks, by their rank in the communicator.
	Members []int32
}

// Datatype is a datatype.
type Datatype struct {
	ID int32
	// Named says that MPI has it by name; any other may hold the same elements as a named one.
	Named bool
	// Name is that name, Bytes the size of an element.
	Name  string
	Bytes int64
}

// Self is a payload that a rank recorded with commq_send_to_self: what it has without sending it.
type Self struct {
	Rank, Datatype          int32
	Seq, Bytes              int64
	Hash, Sum, Head, Buffer int64 // as in messages
}

// Columns are the columns of messages that Detect reads; the others may be null.
var Columns = []string{"src", "dst", "epoch", "comm", "tag", "bytes", "send_datatype", "send_seq", "recv_post_seq", "recv_done_seq",
	"payload_hash", "payload_sum", "payload_head", "src_buffer", "dst_buffer", "send_callsite", "recv_callsite"}

// DefaultMinRanks is the least number of ranks of a finding: among two a broadcast is a message.
const DefaultMinRanks = 3

// Options say what is looked for. The zero value is the default.
type Options struct {
	// MinRanks is the least number of ranks of a finding; 0 means DefaultMinRanks.
	MinRanks int
	// Completeness is the least part of its communicator's ranks that a finding must reach, from 0 (any) to 1 (all).
	Completeness float64
	// Neighbors asks for exchanges between neighbours too.
	Neighbors bool
	// Messages asks for the messages of every instance.
	Messages bool
	// MemoryBytes is about how much memory may be taken; 0 means DefaultMemoryBytes. It says how many messages that may be part of a collective are looked
	// at, and how many payloads are held before they are spilled.
	MemoryBytes int64

	part int64    // messages that one pass looks at; 0: as many as MemoryBytes has room for
	sets *setRoom // of what is looked at together; nil: as much as MemoryBytes has room for
	held int64    // payloads while they are counted; 0: as many as MemoryBytes has room for
}

// DefaultMemoryBytes has room for 8 million messages that may be part of a collective.
const DefaultMemoryBytes = 3 << 30

// What is taken for a message that is looked at, with what is found in it, and the part of all memory that payloads may take while they are counted, of
// which each takes 4 bytes.
const (
	replayedBytes = DefaultMemoryBytes >> 23
	countedPart   = 6
)

// Result is what was found.
type Result struct {
	// Findings, those with most bytes first.
	Findings []Finding
	// Messages is the number of rows, Unhashed of those that have no payload_hash; Replayed those that the counting pass did
	// not leave aside.
	Messages, Unhashed, Replayed int64
	// LeftOut are messages that could be part of a collective and were not looked at because there are too many of them: beyond the first million of a
	// payload, or those for which Options.MemoryBytes has room. Unclassed are those among which no alltoall was looked for, because they are of more kinds
	// or larger communicators than are kept.
	LeftOut, Unclassed int64
	// NoRoom are those that are left out because there is no memory for them.
	NoRoom int64
	// Neighborhoods is the number of findings that are exchanges between neighbours, whether they are among Findings or not.
	Neighborhoods int
	// FalseMatch bounds the chance that anywhere in the run two different payloads of one size have the same hash.
	FalseMatch float64
	// Calls are the calls at the call sites of the findings, ascending; nil without Run.Events.
	Calls map[int32][]schema.CallID
}

// Finding is a collective operation that the program does by hand, with all its instances that have the same ranks and stand at
// the same lines.
type Finding struct {
	Operation Operation
	// Comm is the communicator that the operation is over, or, where it is over a part of one, the one that its messages are sent in
	// (schema.NullInt32 where they are sent in several).
	Comm int32
	// Ranks are the world ranks that take part, ascending.
	Ranks []int32
	// Missing are the members of Comm that take no part, ascending. Completeness is len(Ranks) over the members of Comm.
	Missing      []int32
	Completeness float64
	// Roots are the world ranks from which an instance spreads, ascending; PossibleRoots are those that could be the root of one
	// just as well, because what they send reaches all others too (figure 6b of the paper); Roots are among them.
	Roots, PossibleRoots []int32
	// Bytes is the payload of an instance: what the root has, or what a rank contributes in all. The least and the largest are
	// equal where all instances have the same.
	BytesMin, BytesMax int64
	// Segments is the largest number of pieces in which an instance goes on its way; 1 is a payload in one piece.
	Segments int
	// Repeats is how many of the instances carry what all ranks have got by an earlier one.
	Repeats int64
	// Messages and MessageBytes are the point-to-point messages of all instances.
	Messages, MessageBytes int64
	// SendSites, RecvSites and DoneSites are the call sites of the calls to remove, ids in callsites, ascending: those that send; those
	// that receive or post a receive; those that complete requests of both, like MPI_Wait. A persistent request's are where it was made
	// and where it was started.
	SendSites, RecvSites, DoneSites []int32
	// Instances is the number of times that the operation is done.
	Instances int64
	// Certainty is what the finding rests on; those of spreading operations are Verified.
	Certainty Certainty
	// Reductions are the MPI_Ops that all that was seen agrees with, by name, the plainest first; empty where nothing could be seen
	// of it, and of operations that do not combine.
	Reductions []string
	// Checks is how many payloads were compared with what the operation makes of others, in all instances, and agreed.
	Checks int64
	// Kept are the ranks whose own contribution is in no message and in no record of commq_send_to_self, ascending: it is inferred.
	Kept []int32
	// Others are operations that fit all that was seen as well: the messages are the same, and what ranks do with them is not known.
	Others []Operation
	// Neighbors are those of an operation between neighbours; nil for others.
	Neighbors *Neighbors
	// RootOrder are the Roots, where they are the roots of the instances in turn: of the first, of the second ... and then again from the
	// beginning. Nil where there is one root, or no such order.
	RootOrder []int32
	// List has the instances, where Options.Messages asks for them.
	List []Instance

	instances []*instance
}

// Instance is one time that an operation is done.
type Instance struct {
	// Root is the world rank of its root; schema.NullInt32 without one.
	Root int32
	// Bytes is its payload, as in Finding.
	Bytes int64
	// RankBytes is the payload of each of Finding.Ranks, where they may differ: the blocks of MPI_Scatterv, MPI_Gatherv, MPI_Allgatherv and
	// MPI_Reduce_scatter. Nil otherwise.
	RankBytes []int64
	// Messages are the messages of it.
	Messages []Message
}

// Message names a message by the rows of its two ends, as the table messages does. DoneSeq is schema.NullInt64 where nothing completed the
// receive.
type Message struct {
	Src, Dst                  int32
	SendSeq, PostSeq, DoneSeq int64
}

// Detect finds the collective operations that are made of point-to-point messages. Errors are those of run.Messages and run.Events.
func Detect(run *Run, options Options) (*Result, error) {
	if options.MinRanks == 0 {
		options.MinRanks = DefaultMinRanks
	}
	if options.MemoryBytes == 0 {
		options.MemoryBytes = DefaultMemoryBytes
	}
	d := &detector{run: run, options: options, named: map[int32]bool{}, result: &Result{}, placed: map[string]Finding{},
		pieces: map[int32][]piece{}, used: map[spot]int64{}, sum: newChecksum(run.HashBits)}
	for _, t := range run.Datatypes {
		d.named[t.ID] = t.Named
	}
	if run.State != nil {
		if err := snapshot.Read(run.State, d); err != nil {
			return nil, fmt.Errorf("go on: %w", err)
		}
	}
	for steps := []func() error{d.read, d.keep, d.spreading, d.making, d.combines, d.halos}; d.steps < len(steps); {
		if err := steps[d.steps](); err != nil {
			return nil, err
		}
		d.steps++
		if err := d.border(); err != nil {
			return nil, err
		}
	}
	d.report()
	return d.result, d.locate()
}

// border is between two passes over the messages.
func (d *detector) border() error {
	if d.run.Border == nil {
		return nil
	}
	return d.run.Border(func(w io.Writer) error { return snapshot.Write(w, d) })
}

// making makes other operations of what spreads.
func (d *detector) making() error {
	for _, look := range []func(){d.doubt, d.neighbourhoods, d.gathers, d.rejoin} {
		if err := d.stopped(); err != nil {
			return err
		}
		look()
	}
	return d.exchangesFirst()
}

// stopped is an error when nobody wants an answer any more.
func (d *detector) stopped() error {
	if d.run.Stopped == nil {
		return nil
	}
	return d.run.Stopped()
}

// mostReplayed is how many messages are looked at.
func (d *detector) mostReplayed() int64 { return max(1, d.options.MemoryBytes/replayedBytes) }

// detector is a run that is looked at.
type detector struct {
	run     *Run           `snapshot:"-"`
	options Options        `snapshot:"-"`
	steps   int            // of Detect that are over
	named   map[int32]bool // datatypes
	result  *Result

	sample   *sample
	shared   map[Stretch]bool  // what Run.Shared said; nil: payloads are looked at everywhere
	messages []message         // those that are replayed
	pieces   map[int32][]piece // of messages that carry several payloads
	used     map[spot]int64
	sum      *checksum `snapshot:"-"`
	found    []*instance
	aside    []*instance        // that may be part of others, which are looked for
	placed   map[string]Finding // what is known of the communicators of ranks

	counter *payloads.Counter
	streams *streams
	cutUp   map[int64][]piece // messages that carry several payloads, by ordinal
	passes  *passes           // nil: all messages that may be part of something are there at once
	keys    []rowKey          // of messages, in passes
}

// message is a message that is replayed.
type message struct {
	src, dst, comm, tag, datatype int32
	sendSite, recvSite            int32
	bytes, hash, head             int64
	sendSeq, postSeq, doneSeq     int64
	buffer, dstBuffer             int64
	whole                         int32 // of a piece: the message that it is part of, an index into detector.messages; else none
	taken                         bool  // it is part of an instance
	beyond                        bool  // sets of the ranks that it connects take too much
}

// none is no message.
const none = -1

// instance is an operation that was found.
type instance struct {
	op       Operation
	root     int32   // world rank
	possible []int32 // world ranks, sorted
	ranks    []int32 // world ranks, sorted
	messages []int32 // indexes into detector.messages
	bytes    int64
	segments int
	repeat   bool
	blank    bool  // its payload is empty, or one element again and again
	first    int64 // send_seq of the root's first message
	last     int64 // of its last
	buffer   int64 // where the root has it

	rankBytes []int64
	checks    int64
	of        *combined // what it is one time of; nil where payloads were only spread

	list  int32  // the first message of those that it was found among
	from  rowKey // which that is in the run, in passes
	stage int8   // 0: it was found among messages as what they are, before others were looked at in pieces
}

// take makes the messages of an instance part of it.
func (d *detector) take(i *instance) {
	for _, m := range i.messages {
		d.messages[m].taken = true
	}
	d.found = append(d.found, i)
}
