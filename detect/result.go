package detect

import (
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/neighbours"
	"github.com/commq/commq/schema"
)

// Result is the outcome of a detection.
type Result struct {
	// Findings are sorted by bytes, most first.
	Findings []Finding
	// Messages is the number of rows, Unhashed the number of those without payload_hash, Replayed the number of
	// candidates after the counting pass.
	Messages, Unhashed, Replayed int64
	// LeftOut is the number of candidates not looked at: those beyond the first million with one payload, and those
	// that exceed Options.MemoryBytes. Unclassed is the number of messages in which no alltoall was looked for,
	// because they belong to too many kinds or too large communicators.
	LeftOut, Unclassed int64
	// NoRoom is the number left out for lack of memory.
	NoRoom int64
	// FalseMatch bounds the probability that two different payloads of the same size anywhere in the run have the
	// same hash.
	FalseMatch float64
	// Calls lists the calls at the call sites of the findings, ascending; nil without Run.Events.
	Calls map[int32][]schema.CallID
}

// Finding is a collective operation that the program does by hand: all its instances with the same ranks at the same
// lines.
type Finding struct {
	Operation ledger.Operation
	// Comm is the communicator of the operation or, if it covers only part of one, the communicator of its messages
	// (schema.NullInt32 if they use several).
	Comm int32
	// Ranks are the participating world ranks, ascending.
	Ranks []int32
	// Missing are the members of Comm that do not participate, ascending. Completeness is len(Ranks) divided by the
	// size of Comm.
	Missing      []int32
	Completeness float64
	// Roots are the world ranks of the instances' roots, ascending. PossibleRoots also has those that could be the
	// root, because what they send reaches all others too (Figure 6b of the paper).
	Roots, PossibleRoots []int32
	// Bytes is the payload of an instance: what the root has, or the total contribution of a rank. The minimum and
	// maximum differ if instances do.
	BytesMin, BytesMax int64
	// BlockMin and BlockMax are the bytes that a rank sends to each neighbour in an instance of MPI_Neighbor_alltoall; 0
	// for other operations.
	BlockMin, BlockMax int64
	// Datatypes are the datatypes of the messages (ids in datatypes), ascending.
	Datatypes []int32
	// Segments is the largest number of pieces in which an instance is transferred; 1 means whole.
	Segments int
	// Repeats is the number of instances whose payload all ranks already had from an earlier one.
	Repeats int64
	// Messages and MessageBytes count the point-to-point messages of all instances.
	Messages, MessageBytes int64
	// SendSites, RecvSites and DoneSites are the call sites (ids in callsites, ascending) of the calls to remove:
	// sends; receives, blocking or posted; and completions such as MPI_Wait. A persistent request has the sites where
	// it was made and started.
	SendSites, RecvSites, DoneSites []int32
	// Instances is the number of times the operation is done.
	Instances int64
	// Certainty follows from Bits, the evidence against chance, and from Basis: what the finding rests on. See package
	// evidence.
	Certainty ledger.Certainty
	Bits      float64
	Basis     ledger.Basis
	// Reductions are the names of the MPI_Ops consistent with everything seen, plainest first; empty if nothing was
	// seen, and for operations that do not combine.
	Reductions []string
	// Compared is how much of the payloads was compared for the Reductions, the least in any instance.
	Compared ledger.Extent
	// Checks is the number of payloads, over all instances, that were compared with the operation's result and
	// agreed.
	Checks int64
	// Kept are the ranks, ascending, whose own contribution is inferred: it is in no message and no record of
	// commq_send_to_self.
	Kept []int32
	// Others are other operations that fit everything seen: the messages are the same, and what the ranks do with
	// them is unknown.
	Others []ledger.Operation
	// Alternatives are operations over other ranks, or by other messages, that share messages with this one. They are
	// not findings of their own, because only one collective can replace a message.
	Alternatives []Alternative
	// Neighbors describes an operation between neighbours; nil for others.
	Neighbors *neighbours.Neighbors
	// RootOrder lists the Roots in the order in which instances have them, periodically; nil if there is one root or
	// no such order.
	RootOrder []int32
	// List has the instances if Options.Messages is set.
	List []Instance

	instances []*ledger.Instance
}

// Instance is one occurrence of an operation.
type Instance struct {
	// Root is the world rank of the root; schema.NullInt32 if there is none.
	Root int32
	// Bytes is the payload, as in Finding.
	Bytes int64
	// RankBytes is the payload of each of Finding.Ranks for operations where they may differ (MPI_Scatterv,
	// MPI_Gatherv, MPI_Allgatherv, MPI_Reduce_scatter); nil for others.
	RankBytes []int64
	// Messages are the messages of the instance.
	Messages []Message
}

// Message identifies a message by the rows of its two ends, as the table messages does. DoneSeq is schema.NullInt64
// if nothing completed the receive.
type Message struct {
	Src, Dst                  int32
	SendSeq, PostSeq, DoneSeq int64
}
