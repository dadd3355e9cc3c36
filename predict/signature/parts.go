package signature

import "github.com/commq/commq/schema"

// Collectives with a count per peer have rows in the table parts. Often these follow from what each rank sends and
// receives in total: the root of MPI_Gatherv receives from each rank what that rank sends, as does each rank of
// MPI_Allgatherv; the root of MPI_Scatterv sends what each rank receives. For MPI_Alltoallv and MPI_Alltoallw totals
// are not enough in general, but they are when blocks of a matrix change from a distribution by rows to one by columns:
// then rank r sends to p the product of what r sends and what p receives, divided by the sum of all sends.

// PartsRule tells how the parts of a collective follow from the totals of the ranks.
type PartsRule uint8

const (
	NoParts       PartsRule = iota
	PartsRecvRoot           // the root receives from each rank what that rank sends
	PartsSendRoot           // the root sends to each rank what that rank receives
	PartsRecvAll            // every rank receives from each rank what that rank sends
	PartsExchange           // every pair exchanges the product of its totals, see PartsProduct
)

// PartsRuleOf returns the rule of an MPI function. Calls that make persistent requests have none.
func PartsRuleOf(call schema.CallID) PartsRule {
	if call.Is(schema.FactPersistent) {
		return NoParts
	}
	switch call.Operation() {
	case schema.CallGatherv:
		return PartsRecvRoot
	case schema.CallScatterv:
		return PartsSendRoot
	case schema.CallAllgatherv:
		return PartsRecvAll
	case schema.CallAlltoallv, schema.CallAlltoallw:
		return PartsExchange
	}
	return NoParts
}

// PartsProduct is the value of Values.Parts for an event at which, in each operation, what a rank sends to a peer is
// what it sends in total times what the peer receives in total, divided by what all ranks send.
const PartsProduct = "product"

// MaxParts is the largest number of rows of parts that are checked, or that a generated run gets.
const MaxParts = 1 << 22

// ProductShare returns mine*theirs/all, the bytes between two ranks with these totals. ok is false if it is not a
// whole number.
func ProductShare(mine, theirs, all int64) (bytes int64, ok bool) {
	switch {
	case mine == 0 || theirs == 0:
		return 0, true
	case all <= 0 || theirs > (1<<62)/mine:
		return 0, false
	}
	return mine * theirs / all, mine*theirs%all == 0
}
