package replay

import (
	"fmt"
	"strings"

	"github.com/commq/commq/schema"
)

// opcode is an operation of the player; its name is that of the MPI function without MPI_.
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

// collectiveNames are the collectives that opcode Collective plays, from 0.
var collectiveNames = strings.Fields(`Barrier Bcast Reduce Allreduce Scan Exscan Reduce_scatter Reduce_scatter_block
	Gather Gatherv Scatter Scatterv Allgather Allgatherv Alltoall Alltoallv Alltoallw
	Neighbor_allgather Neighbor_allgatherv Neighbor_alltoall Neighbor_alltoallv Neighbor_alltoallw`)

// Forms of a collective.
const (
	formBlocking = iota
	formNonblocking
	formInit // makes a persistent request
)

// flagMayFail marks an operation whose call returned an error when it was captured.
const flagMayFail = 1

// The tables below are made once and only read.
var (
	// opcodes are the opcodes by name.
	opcodes = func() map[string]opcode {
		byName := map[string]opcode{}
		for i, name := range opNames {
			byName[name] = opcode(i + 1)
		}
		return byName
	}()
	// opcodeOf has the opcode of each call, by schema.CallID; 0 if it has none. A form with large counts is played as
	// the plain form.
	opcodeOf = func() []opcode {
		of := make([]opcode, len(schema.Calls))
		for i, name := range opNames {
			for _, suffix := range []string{"", "_c"} {
				if id, ok := schema.CallByName("MPI_" + name + suffix); ok {
					of[id] = opcode(i + 1)
				}
			}
		}
		of[schema.CallInitThread] = of[schema.CallInit]
		return of
	}()
	// collectives are the indices in collectiveNames, by blocking call.
	collectives = func() map[schema.CallID]int64 {
		index := map[schema.CallID]int64{}
		for i, name := range collectiveNames {
			if id, ok := schema.CallByName("MPI_" + name); ok {
				index[id] = int64(i)
			}
		}
		return index
	}()
)

// definitions returns the C macros that the player's source needs of this package and of schema.
func definitions() string {
	var b strings.Builder
	for i, name := range opNames {
		fmt.Fprintf(&b, "#define OP_%s %d\n", name, i+1)
	}
	for i, name := range collectiveNames {
		fmt.Fprintf(&b, "#define COLL_%s %d\n", name, i)
	}
	fmt.Fprintf(&b, "#define MAGIC %dLL\n#define HEADER_WORDS %d\n#define RANK_WORDS %d\n", magic, headerWords,
		rankWords)
	fmt.Fprintf(&b, "#define FLAG_MAY_FAIL %d\n#define FIRST_OP_MPI %d\n", flagMayFail, schema.OpMax)
	b.WriteString("#define REDUCE_OPS ")
	for _, name := range schema.OpNames[schema.OpMax:] {
		fmt.Fprintf(&b, "%s, ", name)
	}
	b.WriteString("\n")
	return b.String()
}
