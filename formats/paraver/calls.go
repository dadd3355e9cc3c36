package paraver

import (
	"strings"

	"github.com/commq/commq/schema"
)

// Types of events, as written by Extrae and Dimemas' prv2dim.
const (
	typePointToPoint = 50000001
	typeCollective   = 50000002
	typeOther        = 50000003
	typeOneSided     = 50000004
	typeIO           = 50000005
	// For a collective: bytes sent and received, whether the task is the root (only on the root), and the
	// communicator.
	typeSent, typeReceived, typeRoot, typeComm = 50100001, 50100002, 50100003, 50100004
	// Function and line of the call site.
	typeFunction, typeLine = 70000001, 80000001
	// Calls without a number in Extrae; the value is commq's.
	typeUnnumbered = 47000001
)

// numbered lists the calls with a number in Extrae, starting at 1. Their large-count forms share the numbers.
var numbered = strings.Fields(`Send Recv Isend Irecv Wait Waitall Bcast Barrier Reduce Allreduce
Alltoall Alltoallv Gather Gatherv Scatter Scatterv Allgather Allgatherv Comm_rank Comm_size
Comm_create Comm_dup Comm_split Comm_group Comm_free Comm_remote_group Comm_remote_size Comm_test_inter Comm_compare Scan
Init Finalize Bsend Ssend Rsend Ibsend Issend Irsend Test Cancel
Sendrecv Sendrecv_replace Cart_create Cart_shift Cart_coords Cart_get Cart_map Cart_rank Cart_sub Cartdim_get
Dims_create Graph_get Graph_map Graph_create Graph_neighbors Graphdims_get Graph_neighbors_count Topo_test Waitany Waitsome
Probe Iprobe Win_create Win_free Put Get Accumulate Win_fence Win_start Win_complete
Win_post Win_wait Win_test Win_lock Win_unlock Pack Unpack Op_create Op_free Reduce_scatter
Attr_delete Attr_get Attr_put Group_difference Group_excl Group_free Group_incl Group_intersection Group_rank Group_range_excl
Group_range_incl Group_size Group_translate_ranks Group_union Group_compare Intercomm_create Intercomm_merge Keyval_free Keyval_create Abort
Error_class Errhandler_create Errhandler_free Errhandler_get Error_string Errhandler_set Get_processor_name Initialized Wtick Wtime
Address Bsend_init Buffer_attach Buffer_detach Request_free Recv_init Send_init Get_count Get_elements Pack_size
Rsend_init Ssend_init Start Startall Testall Testany Test_cancelled Testsome Type_commit Type_contiguous
Type_extent Type_free Type_hindexed Type_hvector Type_indexed Type_lb Type_size Type_struct Type_ub Type_vector
File_open File_close File_read File_read_all File_write File_write_all File_read_at File_read_at_all File_write_at File_write_at_all
Comm_spawn Comm_spawn_multiple Request_get_status Ireduce Iallreduce Ibarrier Ibcast Ialltoall Ialltoallv Iallgather
Iallgatherv Igather Igatherv Iscatter Iscatterv Ireduce_scatter Iscan Reduce_scatter_block Ireduce_scatter_block Alltoallw
Ialltoallw Get_accumulate Dist_graph_create Neighbor_allgather Ineighbor_allgather Neighbor_allgatherv Ineighbor_allgatherv Neighbor_alltoall Ineighbor_alltoall Neighbor_alltoallv
Ineighbor_alltoallv Neighbor_alltoallw Ineighbor_alltoallw Fetch_and_op Compare_and_swap Win_flush Win_flush_all Win_flush_local Win_flush_local_all Mprobe
Improbe Mrecv Imrecv Init_thread`)

// States of Paraver.
const (
	stateRunning       = 1
	stateWaiting       = 3
	stateBlockingSend  = 4
	stateSynchronising = 5
	stateTest          = 6
	stateWait          = 8
	stateImmediateSend = 10
	stateImmediateRecv = 11
	stateIO            = 12
	stateGroup         = 13
	stateOthers        = 15
	stateSendrecv      = 16
	stateMemory        = 17
)

// stateNames are the names of the states in a Paraver configuration.
var stateNames = []string{"Idle", "Running", "Not created", "Waiting a message", "Blocking Send", "Synchronization",
	"Test/Probe",
	"Scheduling and Fork/Join", "Wait/WaitAll", "Blocked", "Immediate Send", "Immediate Receive", "I/O",
	"Group Communication", "Tracing Disabled",
	"Others", "Send Receive", "Memory transfer"}

// stateColours are their colours.
var stateColours = [][3]int{{117, 195, 255}, {0, 0, 255}, {255, 255, 255}, {255, 0, 0}, {255, 0, 174}, {179, 0, 0},
	{0, 255, 0}, {255, 255, 0},
	{235, 0, 0}, {0, 162, 0}, {255, 0, 255}, {100, 100, 177}, {172, 174, 41}, {255, 144, 26}, {2, 255, 177},
	{192, 224, 0}, {66, 66, 66}, {189, 168, 100}}

// code is the encoding of a call in a trace.
type code struct{ typ, value, state int }

// codes has the code of each call id; it is computed once and then only read.
var codes = func() []code {
	numbers := map[string]int{}
	for i, name := range numbered {
		numbers["MPI_"+name] = i + 1
	}
	all := make([]code, len(schema.Calls))
	for id, c := range schema.Calls {
		value, ok := numbers[strings.TrimSuffix(c.Name, "_c")]
		typ := typeOf(&c)
		if !ok {
			typ, value = typeUnnumbered, id
		}
		all[id] = code{typ, value, stateOf(&c)}
	}
	return all
}()

func typeOf(c *schema.Call) int {
	switch c.Class {
	case schema.ClassSend, schema.ClassRecv, schema.ClassSendrecv, schema.ClassProbe:
		return typePointToPoint
	case schema.ClassComplete:
		if !c.ID.Is(schema.FactCompletes) && c.ID.IsAny(schema.FactStarts|schema.FactFrees|schema.FactTests) {
			return typeOther
		}
		return typePointToPoint
	case schema.ClassCollective:
		return typeCollective
	case schema.ClassRMA:
		return typeOneSided
	case schema.ClassIO:
		return typeIO
	}
	return typeOther
}

func stateOf(c *schema.Call) int {
	immediate := c.ID.Is(schema.FactNonblocking)
	switch c.Class {
	case schema.ClassSend:
		if immediate {
			return stateImmediateSend
		}
		return stateBlockingSend
	case schema.ClassRecv:
		if immediate {
			return stateImmediateRecv
		}
		return stateWaiting
	case schema.ClassSendrecv:
		return stateSendrecv
	case schema.ClassProbe:
		return stateTest
	case schema.ClassComplete:
		if c.ID.Is(schema.FactCompletes | schema.FactBlocking) {
			return stateWait
		}
		return stateTest
	case schema.ClassCollective:
		if c.ID.Operation() == schema.CallBarrier {
			return stateSynchronising
		}
		return stateGroup
	case schema.ClassRMA:
		return stateMemory
	case schema.ClassIO:
		return stateIO
	}
	return stateOthers
}
