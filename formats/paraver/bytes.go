package paraver

import (
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// settleBytes makes the bytes of a collective those that schema.CollectiveBytes counts. Extrae writes the argument of
// one peer for MPI_Alltoall, and 0 for a buffer that is MPI_IN_PLACE and for what the root of a reduction sends. What
// the export writes stays as it is. It returns false, and sets them to null, for collectives of neighbours and on
// intercommunicators: Extrae counts these by the size of the communicator, and the trace does not tell the neighbours.
func settleBytes(x *call, root bool, c *timed.Comm) bool {
	if x.sent == null64 || x.received == null64 {
		return true
	}
	if c.Inter() || schema.CallID(x.id).IsNeighborhood() {
		x.sent, x.received = null64, null64
		return false
	}
	ranks := int64(len(c.Groups[0]))
	switch schema.CallID(x.id).Operation() {
	case schema.CallReduce:
		if root && x.sent == 0 {
			x.sent = x.received
		}
	case schema.CallAlltoall:
		if x.sent == 0 || x.received/ranks == x.sent {
			x.sent = x.received
		}
	case schema.CallAllgather:
		if x.sent == 0 {
			x.sent = x.received / ranks
		}
	case schema.CallReduceScatterBlock:
		if x.sent == 0 && x.received < mostBytes/ranks {
			x.sent = x.received * ranks
		}
	case schema.CallGather:
		if root && x.sent == 0 {
			x.sent = x.received / ranks
		}
	case schema.CallScatter:
		if root && x.received == 0 {
			x.received = x.sent / ranks
		}
	}
	return true
}
