package ledger

// Operation is a collective operation, named by the MPI function that does it.
type Operation uint8

// Operations that can be found.
const (
	Bcast      Operation = iota // the payload of one rank reaches all others
	Allgather                   // a payload of each rank, all of one size, reaches all others
	Allgatherv                  // the same with different sizes
	Alltoall                    // each rank sends a separate payload to each other rank, all of one size
	Alltoallv                   // the same with different sizes
	Barrier                     // empty messages by which every rank waits for every other

	Scatter            // a block of one rank's payload reaches each rank, all of one size
	Scatterv           // the same with different sizes
	Gather             // a block of each rank, all of one size, reaches one rank
	Gatherv            // the same with different sizes
	Reduce             // the combined contributions of all ranks reach one rank
	Allreduce          // the combined contributions of all ranks reach all ranks
	ReduceScatter      // a block of the combined contributions reaches each rank
	ReduceScatterBlock // the same, all blocks of one size
	Scan               // the combined contributions of a rank and all before it reach that rank
	Exscan             // the combined contributions of all ranks before a rank reach it

	// the payload of a rank reaches its own set of neighbours
	NeighborAllgather
	NeighborAlltoall  // each rank sends a separate payload to each neighbour, all of one size
	NeighborAlltoallv // the same with different sizes
	NeighborAlltoallw // the same with different datatypes
)

var operationNames = [...]string{"MPI_Bcast", "MPI_Allgather", "MPI_Allgatherv", "MPI_Alltoall", "MPI_Alltoallv",
	"MPI_Barrier",
	"MPI_Scatter", "MPI_Scatterv", "MPI_Gather", "MPI_Gatherv", "MPI_Reduce", "MPI_Allreduce", "MPI_Reduce_scatter",
	"MPI_Reduce_scatter_block", "MPI_Scan", "MPI_Exscan", "MPI_Neighbor_allgather", "MPI_Neighbor_alltoall",
	"MPI_Neighbor_alltoallv",
	"MPI_Neighbor_alltoallw"}

// Operations returns the names of all operations that can be found, without those between neighbours.
func Operations() []string { return operationNames[:NeighborAllgather] }

// String returns the name of the MPI function.
func (o Operation) String() string { return operationNames[o] }

// Neighborly reports whether each rank has its own neighbours.
func (o Operation) Neighborly() bool { return o >= NeighborAllgather }

// Rooted reports whether the operation has a root.
func (o Operation) Rooted() bool {
	switch o {
	case Bcast, Scatter, Scatterv, Gather, Gatherv, Reduce:
		return true
	}
	return false
}

// Certainty tells how sure a finding is.
type Certainty uint8

// The certainties, most certain first. Package evidence decides which a finding has.
const (
	// Verified: hashes, sums or first elements confirm that payloads result from the operation, and chance would not do
	// that in a million runs.
	Verified Certainty = iota
	// Inferred: chance does not do this in a thousand runs.
	Inferred
	// Candidate: chance may have done it.
	Candidate
)

// String returns verified, inferred or candidate.
func (c Certainty) String() string { return [...]string{"verified", "inferred", "candidate"}[c] }

// Basis is the kind of evidence for a finding of package combine.
type Basis uint8

// The bases, strongest first.
const (
	// ByPayload: hashes, sums or first elements confirm that payloads result from the operation, wherever that can be
	// seen.
	ByPayload Basis = iota
	// ByAddress: the sizes fit and the blocks are adjacent in memory. Hashes could not tell, because a rank's own
	// block is in no message.
	ByAddress
	// ByStructure: sources, destinations, order and sizes fit in every instance, and nothing contradicts.
	ByStructure
)

// String returns payload, address or structure.
func (b Basis) String() string { return [...]string{"payload", "address", "structure"}[b] }

// Extent is the part of payloads that a comparison covers.
type Extent uint8

// The extents, the largest first. What comes behind the others was not compared.
const (
	AllElements Extent = iota
	FirstBytes         // the first 8 bytes
	FirstElement
)

// String returns all elements, first 8 bytes or first element.
func (e Extent) String() string {
	return [...]string{"all elements", "first 8 bytes", "first element"}[e]
}

// Instance is one occurrence of an operation.
type Instance struct {
	Op       Operation
	Root     int32   // world rank
	Possible []int32 // world ranks, sorted
	Ranks    []int32 // world ranks, sorted
	Messages []int32 // indexes into Ledger.Messages
	Bytes    int64
	Segments int
	Repeated bool
	Blank    bool  // the payload is empty, or one element repeated
	First    int64 // send_seq of the root's first message
	Last     int64 // send_seq of its last message
	Buffer   int64 // address of the payload at the root

	// Arranged is the evidence in bits of the order in which the root of a broadcast sends; 0 if it is in none.
	Arranged float64

	// More is how often the operation is done besides, by the same calls. Rows then has the rows of all times, for each
	// of Messages, and perhaps those of other instances like it.
	More int64
	Rows []*Rows

	RankBytes []int64
	Checks    int64
	Proof     *Proof // nil if payloads were only spread

	FirstListed int32  // the first of the messages in which it was found
	FirstKey    RowKey // the position of that message in the run, for passes
	Stage       int8   // 0: found among whole messages, before others were divided into pieces
}

// Times returns how often the operation is done.
func (i *Instance) Times() int64 { return 1 + i.More }

// Proof is the evidence that the instances of an operation share.
type Proof struct {
	Basis      Basis
	Bits       float64 // of the comparisons of payloads that agree: -log2 of the chance that they do
	Order      float64 // the same of the order in which the blocks come, if Basis is ByStructure
	Reductions []string
	Compared   Extent      // how much of the payloads was compared for the Reductions
	Unseen     []int32     // world ranks whose own contribution was not seen
	Others     []Operation // other operations that fit as well
}
