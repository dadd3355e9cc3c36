package liballprof

import (
	"strings"

	"github.com/commq/commq/schema"
)

// layouts are the arguments of the functions of MPI in the order of their C prototypes, which is that of a line. Each
// is a letter: s send count, r receive count, S and R their datatypes, b both counts and B both datatypes; d
// destination, f source, t tag of both, u and v tags of the send and the receive; c communicator, o root, p operation,
// q request, n number of requests, C and D counts of the send and the receive for each rank; k color, y key, l and m
// local and remote leader, e peer communicator, h high, w the variable of the communicator that is made or freed; x
// what is not read: addresses, statuses, results. Counts for each rank and displacements (X) have an address before
// them in newer traces.
const layouts = `
Send xsSdtc
Bsend xsSdtc
Ssend xsSdtc
Rsend xsSdtc
Recv xrRftcx
Isend xsSdtcq
Ibsend xsSdtcq
Issend xsSdtcq
Irsend xsSdtcq
Irecv xrRftcq
Send_init xsSdtcq
Bsend_init xsSdtcq
Ssend_init xsSdtcq
Rsend_init xsSdtcq
Recv_init xrRftcq
Start q
Startall nq
Wait qx
Waitall nqx
Waitany nqxx
Waitsome nqxxx
Test qxx
Testall nqxx
Testany nqxxx
Testsome nqxxx
Request_free q
Cancel q
Sendrecv xsSduxrRfvcx
Sendrecv_replace xbBdufvcx
Probe ftcx
Iprobe ftcxx
Barrier c
Bcast xbBoc
Gather xsSxrRoc
Gatherv xsSxDXRoc
Scatter xsSxrRoc
Scatterv xCXSxrRoc
Allgather xsSxrRc
Allgatherv xsSxDXRc
Alltoall xsSxrRc
Alltoallv xCXSxDXRc
Reduce xxbBpoc
Allreduce xxbBpc
Reduce_scatter xxCBpc
Scan xxbBpc
Exscan xxbBpc
Comm_dup cw
Comm_split ckyw
Comm_create cxw
Comm_size cx
Comm_rank cx
Comm_free w
Cart_create cxxxxw
Intercomm_create clemtw
Intercomm_merge chw
Init xx
Init_thread xxxx
Finalize
`

// function is a function of MPI with the arguments of its lines.
type function struct {
	call   schema.CallID
	layout string
	counts int // arguments with a value for each rank
}

// functions are those of layouts, by name.
var functions = parseLayouts()

func parseLayouts() map[string]function {
	all := map[string]function{}
	for line := range strings.Lines(layouts) {
		name, layout, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" {
			continue
		}
		call, ok := schema.CallByName("MPI_" + name)
		if !ok {
			panic("no call of MPI: " + name)
		}
		f := function{call: call, layout: layout}
		for _, c := range layout {
			if strings.ContainsRune("CDX", c) {
				f.counts++
			}
		}
		all["MPI_"+name] = f
	}
	return all
}

// ops are liballprof's numbers of reduction operations, as reduce_op; others are of the program.
var ops = []schema.Op{schema.OpUser, schema.OpMin, schema.OpMax, schema.OpSum, schema.OpProd, schema.OpLand,
	schema.OpBand, schema.OpLor, schema.OpBor, schema.OpLxor, schema.OpBxor, schema.OpMinloc, schema.OpMaxloc}
