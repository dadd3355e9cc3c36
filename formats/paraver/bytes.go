package paraver

import "github.com/commq/commq/schema"

// settleBytes makes the bytes of a collective those that schema.CollectiveBytes counts. Extrae writes the argument of one
// peer for a personalised exchange, and 0 for a buffer that is MPI_IN_PLACE or that the root of a reduction has too. What
// the export writes stays as it is.
func settleBytes(x *call, root bool, ranks int64) {
	if x.sent == null64 || x.received == null64 || ranks == 0 {
		return
	}
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
}
