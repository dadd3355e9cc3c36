package replay

import (
	"fmt"
	"strings"

	"github.com/commq/commq/schema"
)

// opcode is what the player does; its name is that of the MPI function without MPI_.
type opcode int64

// opNames are the names of the opcodes, from 1.
var opNames = strings.Fields(`
	Init Finalize
	Send Bsend Ssend Rsend Isend Ibsend Issend Irsend Send_init Bsend_init Ssend_init Rsend_init
	Recv Irecv Recv_init Mrecv Imrecv Probe Iprobe Mprobe Improbe
	Sendrecv Sendrecv_replace Isendrecv Isendrecv_replace
	Start Startall Wait Waitall Waitany Waitsome Test Testall Testany Testsome Request_get_status Request_free Cancel
	Buffer_detach Pcontrol
	Comm_dup Comm_dup_with_info Comm_idup Comm_idup_with_info Comm_split Comm_create Comm_create_group
	Cart_create Cart_sub Graph_create Dist_graph_create Dist_graph_create_adjacent Intercomm_create Intercomm_merge
	Comm_free Comm_disconnect
	Compute Collective Phase Phase_end`)

// collectiveNames are the operations of opcode Collective, from 0, each in three forms: it blocks, does not, or makes a persistent request.
var collectiveNames = strings.Fields(`Barrier Bcast Reduce Allreduce Scan Exscan Reduce_scatter Reduce_scatter_block Gather Gatherv Scatter Scatterv
	Allgather Allgatherv Alltoall Alltoallv Alltoallw
	Neighbor_allgather Neighbor_allgatherv Neighbor_alltoall Neighbor_alltoallv Neighbor_alltoallw`)

// Forms of a collective.
const (
	formBlocking = iota
	formNonblocking
	formInit
)

// Operations that need more than the sums of bytes.
const (
	flagMayFail = 1 // the call returned an error when it was captured
)

var (
	opcodes     = map[string]opcode{}
	collectives = map[schema.CallID]int64{}
	// opcodeOf is what plays a call, 0 for none: the form for large counts is played as the other.
	opcodeOf = make([]opcode, len(schema.Calls))
)

func init() {
	for i, name := range opNames {
		opcodes[name] = opcode(i + 1)
	}
	byName := map[string]schema.CallID{}
	for i := range schema.Calls {
		name := schema.Calls[i].Name
		byName[name] = schema.Calls[i].ID
		base := strings.TrimSuffix(strings.TrimPrefix(name, "MPI_"), "_c")
		if base == "Init_thread" {
			base = "Init"
		}
		if op, ok := opcodes[base]; ok && strings.HasPrefix(name, "MPI_") {
			opcodeOf[i] = op
		}
	}
	for i, name := range collectiveNames {
		collectives[byName["MPI_"+name]] = int64(i)
	}
}

// definitions are what the player's source needs to know of this package and of schema.
func definitions() string {
	var b strings.Builder
	for i, name := range opNames {
		fmt.Fprintf(&b, "#define OP_%s %d\n", name, i+1)
	}
	for i, name := range collectiveNames {
		fmt.Fprintf(&b, "#define COLL_%s %d\n", name, i)
	}
	fmt.Fprintf(&b, "#define MAGIC %dLL\n#define HEADER_WORDS %d\n#define RANK_WORDS %d\n#define FLAG_MAY_FAIL %d\n#define FIRST_OP_MPI %d\n", magic, headerWords, rankWords, flagMayFail, schema.OpMax)
	b.WriteString("#define REDUCE_OPS ")
	for _, name := range schema.OpNames[schema.OpMax:] {
		fmt.Fprintf(&b, "%s, ", name)
	}
	b.WriteString("\n")
	return b.String()
}
