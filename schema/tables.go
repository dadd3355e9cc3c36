package schema

import "slices"

// side lists the columns of one side of a communication; prefix is send or recv.
func side(prefix, goname, verb, from string) []Column {
	return []Column{
		{Name: prefix + "_peer", Goname: goname + "Peer", Type: Int32, Nullable: true, Unit: "1",
			Doc: "Rank in comm (in the remote group of an intercommunicator) that this row " +
				verb + "; null for MPI_PROC_NULL and when there is no single peer." + from},
		{Name: prefix + "_world", Goname: goname + "World", Type: Int32, Nullable: true, Unit: "1",
			Doc: "World rank of " + prefix + "_peer."},
		{Name: prefix + "_tag", Goname: goname + "Tag", Type: Int32, Nullable: true, Unit: "1", Doc: "Message tag." +
			from},
		{Name: prefix + "_count", Goname: goname + "Count", Type: Int64, Nullable: true, Unit: "elements",
			Doc: "The call's count argument, in elements of " +
				prefix + "_datatype: for v- and w-collectives the sum of " +
				"the counts, for a started partitioned request all partitions, for MPI_Pready* and MPI_Parrived the " +
				"partitions they handle."},
		{Name: prefix + "_datatype", Goname: goname + "Datatype", Type: Int32, Nullable: true, Doc: "Id in datatypes."},
		{Name: prefix + "_bytes", Goname: goname + "Bytes", Type: Int64, Nullable: true, Unit: "bytes",
			Doc: "Payload bytes that this rank " + verb + "; null also of a collective that returned an error." + from},
		{Name: prefix + "_buffer", Goname: goname + "Buffer", Type: Int64, Nullable: true,
			Doc: "Address of the buffer in the rank's memory (a bit pattern); null for MPI_IN_PLACE and MPI_BOTTOM."},
	}
}

func join(parts ...[]Column) []Column {
	var all []Column
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// EventsTable describes the table events: one row per MPI call.
var EventsTable = Table{
	Name: "events", Goname: "Event", Sharded: true, Key: []string{"epoch", "rank", "seq"},
	Doc: "One row per MPI call that was recorded. MPI_Startall has one row per request: the first spans the call, " +
		"the others start and end at its end. Failed tests and probes are counted in polls of the rank's next row, " +
		"not recorded. In long runs the rows of an epoch that are not point-to-point (class collective, comm, rma, " +
		"io, mark, other) have a row group of their own after the others, sorted in the same way.",
	Columns: join([]Column{
		{Name: "rank", Goname: "Rank", Type: Int32, Unit: "1", Doc: "World rank that made the call."},
		{Name: "seq", Goname: "Seq", Type: Int64, Unit: "1",
			Doc: "Number of the row along its rank, from 0, in the order in which calls were entered."},
		{Name: "epoch", Goname: "Epoch", Type: Int32, Unit: "1",
			Doc: "Time window in which the call began (in an untimed run a window of seq); it never decreases " +
				"along a rank."},
		{Name: "thread", Goname: "Thread", Type: Int32, Unit: "1",
			Doc: "Thread that made the call, numbered from 0 in the order threads first called MPI."},
		{Name: "call", Goname: "Call", Type: Enum, Names: CallNames,
			Doc: "The MPI function, for example MPI_Isend; Fortran calls have the C name."},
		{Name: "class", Goname: "Class", Type: Enum, Names: ClassNames,
			Doc: "Kind of call: send, recv, sendrecv, probe, complete, collective, comm, rma, io, mark or other. A " +
				"call that starts a persistent request has the class of the operation (send, recv, collective); " +
				"the call that made the request is other, and so are MPI_Pready* and MPI_Parrived, which complete " +
				"nothing."},
		{Name: "start_ns", Goname: "StartNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "When the call was entered, in ns since the run's start, on one clock for all ranks; null in an " +
				"untimed run."},
		{Name: "end_ns", Goname: "EndNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "When the call returned; null in an untimed run and for a call that never returned."},
		{Name: "compute_ns", Goname: "ComputeNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "Compute time of this thread since its previous row, outside MPI and without polling, on the " +
				"run's compute_clock."},
		{Name: "polls", Goname: "Polls", Type: Int64, Nullable: true, Unit: "1", Counts: true,
			Doc: "Failed MPI_Test*, MPI_Iprobe and MPI_Improbe calls since the thread's previous row."},
		{Name: "poll_ns", Goname: "PollNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "Time spent in these failed calls."},
		{Name: "comm", Goname: "Comm", Type: Int32, Nullable: true,
			Doc: "Communicator, an id in comms; null when the call has none."},
		{Name: "instance", Goname: "Instance", Type: Int64, Nullable: true, Unit: "1",
			Doc: "For collectives, constructors of communicators and windows, and MPI_File_open: number of the " +
				"collective operation on this communicator, from 0, the same on all its ranks; it counts on while " +
				"recording is off. A started persistent collective has (n+1) x 2^32 + k, where n is the instance " +
				"of the call that made it and k counts its starts from 0. Null for MPI_Comm_create_group and " +
				"MPI_Intercomm_create, which only some members need to call, and for constructors without a parent."},
	},
		side("send", "Send", "sends to", ""),
		side("recv", "Recv", "receives from", " For a receive: what arrived, by its status."),
		[]Column{
			{Name: "root_world", Goname: "RootWorld", Type: Int32, Nullable: true, Unit: "1",
				Doc: "World rank of a rooted collective's root."},
			{Name: "reduce_op", Goname: "ReduceOp", Type: Enum, Nullable: true, Names: OpNames,
				Doc: "Reduction operation; user for one made by MPI_Op_create."},
			{Name: "posted_any", Goname: "PostedAny", Type: Int32, Nullable: true, Unit: "1",
				Doc: "How a receive or probe was posted: bit 0 MPI_ANY_SOURCE, bit 1 MPI_ANY_TAG; null when there " +
					"is no receive side, and for one-sided communication and I/O."},
			{Name: "proc_null", Goname: "ProcNull", Type: Int32, Nullable: true, Unit: "1",
				Doc: "Bit 0: the peer of the send side is MPI_PROC_NULL; bit 1: that of the receive side is. " +
					"Likewise for the target of one-sided communication. Null when no side has a peer."},
			{Name: "request", Goname: "Request", Type: Int64, Nullable: true,
				Doc: "Serial number, unique on its rank, of the request that the call made, started or completed " +
					"(never a handle value). A split collective of I/O has one too: its begin makes it, its end " +
					"completes it. Null for calls that complete several requests; these are found by done_seq."},
			{Name: "done_seq", Goname: "DoneSeq", Type: Int64, Nullable: true, Unit: "1",
				Doc: "On a row that posted or started a request: seq of the call that completed it, or of the " +
					"MPI_Request_free of a receive that was cancelled; null when no call did."},
			{Name: "init_seq", Goname: "InitSeq", Type: Int64, Nullable: true, Unit: "1",
				Doc: "On a row of MPI_Start or MPI_Startall: seq of the call that made the persistent request. On " +
					"a row of MPI_Mrecv or MPI_Imrecv: seq of the probe that matched the message. On RMA and I/O " +
					"rows: seq of the call that made the window or opened the file."},
			{Name: "error_class", Goname: "ErrorClass", Type: Int32, Nullable: true, Unit: "1",
				Doc: "MPI error class when the call returned one; null after MPI_SUCCESS."},
			{Name: "label", Goname: "Label", Type: Text, Nullable: true,
				Doc: "Name in the call's arguments: the phase of MPI_Pcontrol (off, on, the name given, or the " +
					"level) and of commq_mark, the file of MPI_File_open and MPI_File_delete, the program of " +
					"MPI_Comm_spawn, the group of MPI_Win_post and MPI_Win_start (world ranks and ranges of them, as 4,0-2, or none; " +
					"null if that takes more than 4,096 bytes), the type of MPI_Win_lock (exclusive or shared). On " +
					"rows imported from Dimemas: details that the call has no column for (dimemas sync 1 on MPI_Reduce, TYPE:VALUE of an event); " +
					"from NCCL Inspector: algorithm and protocol (RING LL), from Nsight Systems with the reduction and type " +
					"(Sum f32 RING LL)."},
			{Name: "callsite", Goname: "Callsite", Type: Int32, Nullable: true,
				Doc: "Place in the program that made the call, an id in callsites."},
			{Name: "payload_hash", Goname: "PayloadHash", Type: Int64, Nullable: true,
				Doc: "Hash of the payload that this rank contributes (a bit pattern), for collectives, one-sided " +
					"calls, commq_send_to_self, and sends whose message is missing or in a later epoch. The hashes " +
					"of messages are in the table messages."},
			{Name: "payload_sum", Goname: "PayloadSum", Type: Int64, Nullable: true,
				Doc: "Linear hash of the payload's elements, modulo 2^64 (a bit pattern); null unless all are " +
					"integers of one type."},
			{Name: "payload_head", Goname: "PayloadHead", Type: Int64, Nullable: true,
				Doc: "First 8 bytes of the payload, little endian, filled with zeros when it is shorter (a bit " +
					"pattern)."},
			{Name: "instructions", Goname: "Instructions", Type: Int64, Nullable: true, Unit: "1", Counts: true,
				Doc: "Instructions retired in the compute gap before the call; null when not counted."},
			{Name: "cycles", Goname: "Cycles", Type: Int64, Nullable: true, Unit: "1", Counts: true,
				Doc: "CPU cycles of the compute gap before the call; null when not counted."},
		}),
}

// MessagesTable describes the table messages: one row per matched point-to-point message.
var MessagesTable = Table{
	Name: "messages", Goname: "Message", Sharded: true, Key: []string{"epoch", "src", "send_seq"},
	Doc: "One row per matched point-to-point message. Sends and receives are matched by MPI's rule: by the message " +
		"handle for matched probes, else in posting order per communicator, source, destination and tag.",
	Columns: []Column{
		{Name: "src", Goname: "Src", Type: Int32, Unit: "1", Doc: "World rank that sent it."},
		{Name: "dst", Goname: "Dst", Type: Int32, Unit: "1", Doc: "World rank that received it."},
		{Name: "epoch", Goname: "Epoch", Type: Int32, Unit: "1",
			Doc: "The later of the epochs of the row that sent it and the row that posted its receive, so that a " +
				"reader of epochs in order knows both rows when it reads the message."},
		{Name: "comm", Goname: "Comm", Type: Int32, Doc: "Communicator, an id in comms."},
		{Name: "tag", Goname: "Tag", Type: Int32, Unit: "1", Doc: "Message tag."},
		{Name: "bytes", Goname: "Bytes", Type: Int64, Unit: "bytes", Doc: "Payload bytes."},
		{Name: "send_count", Goname: "SendCount", Type: Int64, Nullable: true, Unit: "elements",
			Doc: "Number of elements of send_datatype that were sent."},
		{Name: "send_datatype", Goname: "SendDatatype", Type: Int32, Nullable: true,
			Doc: "Datatype at the sender, an id in datatypes."},
		{Name: "send_seq", Goname: "SendSeq", Type: Int64, Unit: "1",
			Doc: "seq, at src, of the row that sent or started it."},
		{Name: "send_start_ns", Goname: "SendStartNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "start_ns of that row."},
		{Name: "send_end_ns", Goname: "SendEndNs", Type: Int64, Nullable: true, Unit: "ns", Doc: "end_ns of that row."},
		{Name: "recv_post_seq", Goname: "RecvPostSeq", Type: Int64, Unit: "1",
			Doc: "seq, at dst, of the row that posted or started the receive (of the matched probe for MPI_Mrecv " +
				"and MPI_Imrecv)."},
		{Name: "recv_done_seq", Goname: "RecvDoneSeq", Type: Int64, Nullable: true, Unit: "1",
			Doc: "seq, at dst, of the row that completed the receive; for a blocking receive the receiving row " +
				"itself."},
		{Name: "recv_post_ns", Goname: "RecvPostNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "start_ns of the posting row."},
		{Name: "recv_start_ns", Goname: "RecvStartNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "start_ns of the completing row."},
		{Name: "recv_end_ns", Goname: "RecvEndNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "end_ns of the completing row."},
		{Name: "payload_hash", Goname: "PayloadHash", Type: Int64, Nullable: true,
			Doc: "Hash of the payload, taken at the send (a bit pattern)."},
		{Name: "payload_sum", Goname: "PayloadSum", Type: Int64, Nullable: true,
			Doc: "Linear hash of the payload's elements, modulo 2^64 (a bit pattern); null unless all are integers " +
				"of one type."},
		{Name: "payload_head", Goname: "PayloadHead", Type: Int64, Nullable: true,
			Doc: "First 8 bytes of the payload, little endian, filled with zeros when it is shorter (a bit pattern)."},
		{Name: "recv_hash", Goname: "RecvHash", Type: Int64, Nullable: true,
			Doc: "Hash of the payload as received (a bit pattern), with --hash-verify; it differs from " +
				"payload_hash when the message was changed on its way, or hashed wrongly."},
		{Name: "src_buffer", Goname: "SrcBuffer", Type: Int64, Nullable: true,
			Doc: "Address of the send buffer in src's memory (a bit pattern)."},
		{Name: "dst_buffer", Goname: "DstBuffer", Type: Int64, Nullable: true,
			Doc: "Address of the receive buffer in dst's memory (a bit pattern)."},
		{Name: "send_callsite", Goname: "SendCallsite", Type: Int32, Nullable: true,
			Doc: "Call site of the sending row."},
		{Name: "recv_callsite", Goname: "RecvCallsite", Type: Int32, Nullable: true,
			Doc: "Call site of the completing row."},
	},
}

// PartsTable describes the table parts: the per-peer bytes of v- and w-collectives.
var PartsTable = Table{
	Name: "parts", Goname: "Part", Key: []string{"epoch", "rank", "seq", "peer_world"},
	Doc: "Bytes per peer of v-, w- and neighbourhood collectives: one row per rank, call and peer that exchange " +
		"bytes, where the rank's arguments have a count per peer. That is at the root of MPI_Gatherv and " +
		"MPI_Scatterv, at every rank of MPI_Alltoallv, on the receive side of MPI_Allgatherv, and on both sides of " +
		"every neighbourhood collective. For a persistent collective each start has rows, the call that makes it " +
		"has none.",
	Columns: []Column{
		{Name: "rank", Goname: "Rank", Type: Int32, Unit: "1", Doc: "World rank that made the call."},
		{Name: "seq", Goname: "Seq", Type: Int64, Unit: "1", Doc: "seq of the call in events."},
		{Name: "epoch", Goname: "Epoch", Type: Int32, Unit: "1", Doc: "epoch of the call in events."},
		{Name: "peer_world", Goname: "PeerWorld", Type: Int32, Unit: "1", Doc: "World rank of the peer."},
		{Name: "send_bytes", Goname: "SendBytes", Type: Int64, Unit: "bytes", Doc: "Bytes sent to the peer."},
		{Name: "recv_bytes", Goname: "RecvBytes", Type: Int64, Unit: "bytes", Doc: "Bytes received from the peer."},
	},
}

// CommsTable describes the table comms: the members of each communicator.
var CommsTable = Table{
	Name: "comms", Goname: "Comm", Key: []string{"comm", "remote", "comm_rank"},
	Doc: "One row per member of each communicator. 0 is MPI_COMM_WORLD; MPI_COMM_SELF is a separate communicator " +
		"for each rank that used it.",
	Columns: []Column{
		{Name: "comm", Goname: "Comm", Type: Int32, Doc: "Id of the communicator, unique in the run."},
		{Name: "remote", Goname: "Remote", Type: Int32, Unit: "1",
			Doc: "0 for an intracommunicator and for the first group of an intercommunicator (the one with the " +
				"lowest world rank), 1 for its other group."},
		{Name: "comm_rank", Goname: "CommRank", Type: Int32, Unit: "1",
			Doc: "Rank in the communicator (in its group)."},
		{Name: "world_rank", Goname: "WorldRank", Type: Int32, Nullable: true, Unit: "1",
			Doc: "World rank of that member; null for a process outside this run's MPI_COMM_WORLD."},
		{Name: "name", Goname: "Name", Type: Text, Nullable: true, Doc: "Name given by MPI_Comm_set_name or by MPI."},
		{Name: "parent", Goname: "Parent", Type: Int32, Nullable: true, Doc: "Communicator it was made from."},
		{Name: "kind", Goname: "Kind", Type: Enum, Names: CommKindNames,
			Doc: "How it was made: world, self, dup, split, create, cart, graph, dist_graph, inter, merge, other."},
		{Name: "cart_dims", Goname: "CartDims", Type: Text, Nullable: true,
			Doc: "Extents of a Cartesian topology, comma-separated, for example 4,2."},
		{Name: "cart_periods", Goname: "CartPeriods", Type: Text, Nullable: true,
			Doc: "Periodicity of each dimension, 1 or 0, comma-separated."},
		{Name: "graph_edges", Goname: "GraphEdges", Type: Text, Nullable: true,
			Doc: "Neighbours that this member of a graph topology sends to (ranks in the communicator), " +
				"comma-separated."},
	},
}

// RanksTable describes the table ranks: one row per process of MPI_COMM_WORLD.
var RanksTable = Table{
	Name: "ranks", Goname: "RankInfo", Key: []string{"rank"},
	Doc: "One row per process of MPI_COMM_WORLD.",
	Columns: []Column{
		{Name: "rank", Goname: "Rank", Type: Int32, Unit: "1", Doc: "World rank."},
		{Name: "host", Goname: "Host", Type: Int32, Unit: "1",
			Doc: "Number of the machine it ran on, from 0 in the order of their lowest ranks; the manifest's " +
				"origin has the names."},
		{Name: "threads", Goname: "Threads", Type: Int32, Unit: "1", Counts: true, Doc: "Threads that called MPI."},
		{Name: "thread_level", Goname: "ThreadLevel", Type: Int32, Nullable: true, Unit: "1",
			Doc: "Thread support that MPI provided: 0 single, 1 funneled, 2 serialized, 3 multiple."},
		{Name: "ended", Goname: "Ended", Type: Enum, Names: EndedNames,
			Doc: "How the process ended: finalized, aborted (it called MPI_Abort) or killed (neither)."},
		{Name: "events", Goname: "Events", Type: Int64, Unit: "1", Counts: true, Doc: "Calls recorded on this rank."},
		{Name: "polls", Goname: "Polls", Type: Int64, Unit: "1", Counts: true,
			Doc: "Failed tests and probes on this rank."},
		{Name: "dropped", Goname: "Dropped", Type: Int64, Unit: "1", Counts: true,
			Doc: "Calls that were not recorded because no space was left."},
		{Name: "clock_offset_init_ns", Goname: "ClockOffsetInitNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "This host's clock minus rank 0's, at MPI_Init; 0 on rank 0's host."},
		{Name: "clock_error_init_ns", Goname: "ClockErrorInitNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "Bound on the error of that offset: half the shortest round trip."},
		{Name: "clock_offset_final_ns", Goname: "ClockOffsetFinalNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "This host's clock minus rank 0's, at MPI_Finalize; null when the rank did not reach it."},
		{Name: "clock_error_final_ns", Goname: "ClockErrorFinalNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "Bound on the error of that offset."},
	},
}

// CallsitesTable describes the table callsites: call paths as a tree.
var CallsitesTable = Table{
	Name: "callsites", Goname: "Callsite", Key: []string{"id"},
	Doc: "One row per frame of the call paths from which MPI was called; a path is a row and its parents.",
	Columns: []Column{
		{Name: "id", Goname: "ID", Type: Int32, Doc: "Id of the call site."},
		{Name: "parent", Goname: "Parent", Type: Int32, Nullable: true,
			Doc: "The caller's call site; null for the outermost frame that was recorded."},
		{Name: "module", Goname: "Module", Type: Text, Nullable: true,
			Doc: "File name of the executable or shared library."},
		{Name: "build_id", Goname: "BuildID", Type: Text, Nullable: true, Doc: "Build id of the module, hexadecimal."},
		{Name: "offset", Goname: "Offset", Type: Int64, Nullable: true, Unit: "bytes",
			Doc: "Offset of the return address in the module."},
		{Name: "function", Goname: "Function", Type: Text, Nullable: true,
			Doc: "Function, if debug information names it."},
		{Name: "file", Goname: "File", Type: Text, Nullable: true, Doc: "Source file, if debug information names it."},
		{Name: "line", Goname: "Line", Type: Int32, Nullable: true, Unit: "1", Doc: "Source line."},
	},
}

// DatatypesTable describes the table datatypes.
var DatatypesTable = Table{
	Name: "datatypes", Goname: "Datatype", Key: []string{"id"},
	Doc: "One row per datatype that a recorded call used; types with the same name, constructor, size and extent " +
		"share a row.",
	Columns: []Column{
		{Name: "id", Goname: "ID", Type: Int32, Doc: "Id of the datatype, unique in the run."},
		{Name: "name", Goname: "Name", Type: Text, Nullable: true,
			Doc: "Name, for example MPI_DOUBLE; null for an unnamed derived type."},
		{Name: "combiner", Goname: "Combiner", Type: Text, Nullable: true,
			Doc: "Constructor, for example named, vector, struct."},
		{Name: "bytes", Goname: "Bytes", Type: Int64, Unit: "bytes",
			Doc: "Size of one element: its payload without gaps."},
		{Name: "extent_bytes", Goname: "ExtentBytes", Type: Int64, Unit: "bytes",
			Doc: "Extent of one element: its span in memory."},
	},
}

// ProfileTable describes the table profile: the flat profile of each rank.
var ProfileTable = Table{
	Name: "profile", Goname: "Profile", Sharded: true, Derived: true, Key: []string{"epoch", "rank", "nth"},
	Doc: "The flat profile: for each rank, one row sums all rows of events with the same values in the columns " +
		"from thread to recv_tag. It is derived from events, has about a thousandth of its rows, and every run has " +
		"it. When a file of events has more than a million such combinations, some have several rows, so always " +
		"add them up.",
	Columns: []Column{
		{Name: "rank", Goname: "Rank", Type: Int32, Unit: "1", Doc: "World rank that made the calls."},
		{Name: "nth", Goname: "Nth", Type: Int64, Unit: "1",
			Doc: "Number of the row along its rank, from 0, in the order of first calls."},
		{Name: "epoch", Goname: "Epoch", Type: Int32, Unit: "1",
			Doc: "Earliest epoch that the row may sum: 0 unless a file of the run has more than a million rows of " +
				"profile."},
		{Name: "thread", Goname: "Thread", Type: Int32, Unit: "1", Doc: "thread of the rows of events."},
		{Name: "call", Goname: "Call", Type: Enum, Names: CallNames,
			Doc: "call of the rows of events: the MPI function."},
		{Name: "class", Goname: "Class", Type: Enum, Names: ClassNames, Doc: "class of the rows of events."},
		{Name: "comm", Goname: "Comm", Type: Int32, Nullable: true, Doc: "comm of the rows of events, an id in comms."},
		{Name: "callsite", Goname: "Callsite", Type: Int32, Nullable: true,
			Doc: "callsite of the rows of events, an id in callsites."},
		{Name: "error_class", Goname: "ErrorClass", Type: Int32, Nullable: true, Unit: "1",
			Doc: "error_class of the rows of events; null after MPI_SUCCESS."},
		{Name: "posted_any", Goname: "PostedAny", Type: Int32, Nullable: true, Unit: "1",
			Doc: "posted_any of the rows of events."},
		{Name: "proc_null", Goname: "ProcNull", Type: Int32, Nullable: true, Unit: "1",
			Doc: "proc_null of the rows of events."},
		{Name: "in_progress", Goname: "InProgress", Type: Int32, Unit: "1", Counts: true,
			Doc: "1 for calls that never returned, which have a start_ns and no end_ns; else 0."},
		{Name: "recv_world", Goname: "RecvWorld", Type: Int32, Nullable: true, Unit: "1",
			Doc: "recv_world of the rows of events where posted_any is 1 or more; null in all other rows."},
		{Name: "recv_tag", Goname: "RecvTag", Type: Int32, Nullable: true, Unit: "1", Doc: "recv_tag of the rows " +
			"of events where posted_any is 1 or more; null in all other rows."},
		{Name: "calls", Goname: "Calls", Type: Int64, Unit: "1", Counts: true,
			Doc: "Number of rows of events: calls, and for MPI_Startall started requests."},
		{Name: "sends", Goname: "Sends", Type: Int64, Unit: "1", Counts: true, Doc: "Number of these rows with a " +
			"send_peer."},
		{Name: "receives", Goname: "Receives", Type: Int64, Unit: "1", Counts: true, Doc: "Number of these rows " +
			"with a recv_peer."},
		{Name: "send_bytes", Goname: "SendBytes", Type: Int64, Nullable: true, Unit: "bytes",
			Doc: "Sum of send_bytes; null when all are null."},
		{Name: "recv_bytes", Goname: "RecvBytes", Type: Int64, Nullable: true, Unit: "bytes",
			Doc: "Sum of recv_bytes; null when all are null."},
		{Name: "time_ns", Goname: "TimeNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "Sum of end_ns - start_ns; null for calls that never returned and in an untimed run."},
		{Name: "min_ns", Goname: "MinNs", Type: Int64, Nullable: true, Unit: "ns", Doc: "The shortest of these calls."},
		{Name: "max_ns", Goname: "MaxNs", Type: Int64, Nullable: true, Unit: "ns", Doc: "The longest of these calls."},
		{Name: "first_ns", Goname: "FirstNs", Type: Int64, Nullable: true, Unit: "ns", Doc: "Earliest start_ns."},
		{Name: "last_ns", Goname: "LastNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "Latest end_ns; for calls that never returned, latest start_ns."},
		{Name: "compute_ns", Goname: "ComputeNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "Sum of compute_ns; null when all are null."},
		{Name: "polls", Goname: "Polls", Type: Int64, Nullable: true, Unit: "1", Counts: true,
			Doc: "Sum of polls; null when all are null."},
		{Name: "poll_ns", Goname: "PollNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "Sum of poll_ns; null when all are null."},
	},
}

// WaitsTable describes the table waits: who waited for whom.
var WaitsTable = Table{
	Name: "waits", Goname: "Wait", Derived: true, Key: []string{"src", "dst"},
	Doc: "One row per pair of ranks with messages from one to the other: how often and how long calls of either " +
		"waited for the other, as defined in docs/method/wait-states.md. It is derived from events and messages, " +
		"for runs with times that keep all calls.",
	Columns: []Column{
		{Name: "src", Goname: "Src", Type: Int32, Unit: "1", Doc: "World rank that sent."},
		{Name: "dst", Goname: "Dst", Type: Int32, Unit: "1", Doc: "World rank that received."},
		{Name: "messages", Goname: "Messages", Type: Int64, Unit: "1", Counts: true, Doc: "Messages from src to dst."},
		{Name: "late_sends", Goname: "LateSends", Type: Int64, Unit: "1", Counts: true,
			Doc: "Calls of dst that waited for src to send (Late Sender)."},
		{Name: "late_send_ns", Goname: "LateSendNs", Type: Int64, Unit: "ns", Doc: "Time lost in these calls."},
		{Name: "late_send_max_ns", Goname: "LateSendMaxNs", Type: Int64, Unit: "ns",
			Doc: "The longest time lost in one of them."},
		{Name: "late_receives", Goname: "LateReceives", Type: Int64, Unit: "1", Counts: true,
			Doc: "Calls of src that waited for dst to post its receive (Late Receiver). Meaningless in virtual " +
				"times, where every send is eager."},
		{Name: "late_receive_ns", Goname: "LateReceiveNs", Type: Int64, Unit: "ns", Doc: "Time lost in these calls."},
		{Name: "late_receive_max_ns", Goname: "LateReceiveMaxNs", Type: Int64, Unit: "ns",
			Doc: "The longest time lost in one of them."},
	},
}

// TransfersTable describes the table transfers: how long messages took.
var TransfersTable = Table{
	Name: "transfers", Goname: "Transfer", Derived: true, Key: []string{"same_host", "bytes", "timed", "step"},
	Doc: "How long messages took, by size: for each size a row with the number of all messages, and rows by step " +
		"of time for those whose receiver was waiting for them alone (see docs/method/wait-states.md). It is " +
		"derived from messages and ranks, for runs that have waits, unless there are more than a million different " +
		"sizes and steps.",
	Columns: []Column{
		{Name: "same_host", Goname: "SameHost", Type: Int32, Unit: "1",
			Doc: "1 for messages between ranks of one host (ranks.host), 0 for those between hosts."},
		{Name: "bytes", Goname: "Bytes", Type: Int64, Unit: "bytes", Doc: "Size of the messages."},
		{Name: "timed", Goname: "Timed", Type: Int32, Unit: "1",
			Doc: "1 for messages whose time is known, 0 for all messages of that size."},
		{Name: "step", Goname: "Step", Type: Int32, Unit: "1",
			Doc: "128 times the natural logarithm of the time in ns, rounded down; -1 for times that are not " +
				"positive, and 0 when timed is 0."},
		{Name: "messages", Goname: "Messages", Type: Int64, Unit: "1", Counts: true, Doc: "Number of these messages."},
		{Name: "min_ns", Goname: "MinNs", Type: Int64, Nullable: true, Unit: "ns",
			Doc: "Shortest time, from the start of the send to the end of the call that completed the receive."},
		{Name: "max_ns", Goname: "MaxNs", Type: Int64, Nullable: true, Unit: "ns", Doc: "Longest time."},
	},
}

// CollectiveWaitsTable describes the table collective_waits: who waited in collectives.
var CollectiveWaitsTable = Table{
	Name: "collective_waits", Goname: "CollectiveWait", Derived: true, Key: []string{"rank", "nth"},
	Doc: "One row per rank, collective operation, communicator and value of until: how often and how long the rank " +
		"waited in these operations for others to enter, and others for it, as defined in " +
		"docs/method/wait-states.md. It is derived from events and comms, for runs with times that keep the rows " +
		"of collectives.",
	Columns: []Column{
		{Name: "rank", Goname: "Rank", Type: Int32, Unit: "1", Doc: "World rank."},
		{Name: "nth", Goname: "Nth", Type: Int64, Unit: "1", Doc: "Number of the row along its rank, from 0."},
		{Name: "until", Goname: "Until", Type: Enum, Names: UntilNames,
			Doc: "Which rank a wait ends with. needed: the last of the ranks whose entry it needs for its result, " +
				"or to know that all have entered. last: the last rank to enter. Each operation is counted under " +
				"both."},
		{Name: "pattern", Goname: "Pattern", Type: Enum, Names: WaitPatternNames,
			Doc: "wait-at-barrier, wait-at-nxn, late-broadcast, early-reduce or early-scan."},
		{Name: "call", Goname: "Call", Type: Enum, Names: CallNames,
			Doc: "The operation by the name of its blocking call, whether it was nonblocking or persistent."},
		{Name: "comm", Goname: "Comm", Type: Int32, Doc: "Communicator, an id in comms."},
		{Name: "calls", Goname: "Calls", Type: Int64, Unit: "1", Counts: true,
			Doc: "Operations that the rank took part in and completed; neighbourhood collectives and calls that " +
				"returned an error do not count."},
		{Name: "waits", Goname: "Waits", Type: Int64, Unit: "1", Counts: true, Doc: "Operations it waited in."},
		{Name: "wait_ns", Goname: "WaitNs", Type: Int64, Unit: "ns", Doc: "Time lost in these operations."},
		{Name: "max_ns", Goname: "MaxNs", Type: Int64, Unit: "ns", Doc: "The longest time lost in one of them."},
		{Name: "caused", Goname: "Caused", Type: Int64, Unit: "1", Counts: true,
			Doc: "How often another rank waited and this rank was the last it needed; 0 in scans if `until` is 'needed'."},
		{Name: "caused_ns", Goname: "CausedNs", Type: Int64, Unit: "ns", Doc: "Time that the other ranks lost by " +
			"that."},
	},
}

// UntilNames are the values of the column until.
var UntilNames = []string{"needed", "last"}

// Indexes into UntilNames.
const (
	UntilNeeded int16 = iota
	UntilLast
)

// WaitPatternNames are the values of the column pattern.
var WaitPatternNames = []string{"wait-at-barrier", "wait-at-nxn", "late-broadcast", "early-reduce", "early-scan"}

// Indexes into WaitPatternNames.
const (
	WaitAtBarrier int16 = iota
	WaitAtNxN
	LateBroadcast
	EarlyReduce
	EarlyScan
)

// RepeatsTable describes the table repeats: payloads that were sent again.
var RepeatsTable = Table{
	Name: "repeats", Goname: "Repeat", Derived: true, Key: []string{"src", "nth"},
	Doc: "Messages with a payload that their source had sent before: one row sums those with the same values in " +
		"the columns from dst to blank. Payloads are the same when their hash, first eight bytes, length and " +
		"element count are; collectives and empty messages do not count. It is derived from messages, in runs " +
		"where it has at most a million rows.",
	Columns: []Column{
		{Name: "src", Goname: "Src", Type: Int32, Unit: "1", Doc: "World rank that sent."},
		{Name: "nth", Goname: "Nth", Type: Int64, Unit: "1", Doc: "Number of the row along its source, from 0."},
		{Name: "dst", Goname: "Dst", Type: Int32, Unit: "1", Doc: "World rank that received."},
		{Name: "callsite", Goname: "Callsite", Type: Int32, Nullable: true,
			Doc: "send_callsite of the messages, an id in callsites."},
		{Name: "bytes", Goname: "Bytes", Type: Int64, Unit: "bytes", Doc: "Size of each of the messages."},
		{Name: "blank", Goname: "Blank", Type: Int32, Unit: "1",
			Doc: "1 for payloads that begin with eight zero bytes, or are shorter and all zero; else 0."},
		{Name: "again", Goname: "Again", Type: Int64, Unit: "1", Counts: true,
			Doc: "Messages whose payload src had sent to dst before."},
		{Name: "copied", Goname: "Copied", Type: Int64, Unit: "1", Counts: true,
			Doc: "Messages whose payload src had sent to other ranks before, but not to dst."},
	},
}

// ChannelsTable describes the table channels: who sent how much to whom.
var ChannelsTable = Table{
	Name: "channels", Goname: "Channel", Derived: true, Key: []string{"src", "nth"},
	Doc: "Messages from one rank to another: one row sums those with the same source, destination, communicator, " +
		"tag and datatype, and sizes within a factor of two. Its number of rows does not grow with the length of a " +
		"run: read it, and not messages, for sums of messages and bytes. It is derived from messages, in runs where " +
		"it has at most two million rows.",
	Columns: []Column{
		{Name: "src", Goname: "Src", Type: Int32, Unit: "1", Doc: "World rank that sent."},
		{Name: "nth", Goname: "Nth", Type: Int64, Unit: "1", Doc: "Number of the row along its source, from 0."},
		{Name: "dst", Goname: "Dst", Type: Int32, Unit: "1", Doc: "World rank that received."},
		{Name: "comm", Goname: "Comm", Type: Int32, Doc: "Communicator, an id in comms."},
		{Name: "tag", Goname: "Tag", Type: Int32, Unit: "1", Doc: "Message tag."},
		{Name: "datatype", Goname: "Datatype", Type: Int32, Nullable: true,
			Doc: "send_datatype of the messages, an id in datatypes."},
		{Name: "bytes_power", Goname: "BytesPower", Type: Int32, Unit: "1",
			Doc: "The smallest power of two that is at least the size of each message, by its exponent; -1 for " +
				"messages of 0 bytes."},
		{Name: "count_power", Goname: "CountPower", Type: Int32, Nullable: true, Unit: "1",
			Doc: "The same for send_count: the elements of each message."},
		{Name: "messages", Goname: "Messages", Type: Int64, Unit: "1", Counts: true, Doc: "Number of these messages."},
		{Name: "bytes", Goname: "Bytes", Type: Int64, Unit: "bytes", Doc: "Sum of their bytes."},
		{Name: "min_bytes", Goname: "MinBytes", Type: Int64, Unit: "bytes", Doc: "The smallest of them."},
		{Name: "max_bytes", Goname: "MaxBytes", Type: Int64, Unit: "bytes", Doc: "The largest of them."},
		{Name: "count", Goname: "Count", Type: Int64, Nullable: true, Unit: "elements",
			Doc: "Sum of send_count; null when it is null."},
	},
}

// CollectiveCallsTable describes the table collective_calls: which collectives each rank called.
var CollectiveCallsTable = Table{
	Name: "collective_calls", Goname: "CollectiveCall", Derived: true, Key: []string{"rank", "nth"},
	Doc: "Collective calls of a rank: one row sums the rows of events of class collective without an error that " +
		"have the same communicator, call, root and datatypes, and sizes within a factor of two, and apart from " +
		"each other those that send bytes and those that do not. Read it, and not events, for sums over collectives. It is " +
		"derived from events, in runs where it has at most two million rows.",
	Columns: []Column{
		{Name: "rank", Goname: "Rank", Type: Int32, Unit: "1", Doc: "World rank that made the calls."},
		{Name: "nth", Goname: "Nth", Type: Int64, Unit: "1", Doc: "Number of the row along its rank, from 0."},
		{Name: "comm", Goname: "Comm", Type: Int32, Nullable: true, Doc: "Communicator, an id in comms."},
		{Name: "call", Goname: "Call", Type: Enum, Names: CallNames,
			Doc: "The MPI function; of started persistent collectives the one that made the request, for example " +
				"MPI_Bcast_init, or MPI_Start or MPI_Startall where the run does not have that call."},
		{Name: "root_world", Goname: "RootWorld", Type: Int32, Nullable: true, Unit: "1",
			Doc: "World rank of a rooted collective's root."},
		{Name: "send_datatype", Goname: "SendDatatype", Type: Int32, Nullable: true, Doc: "Id in datatypes."},
		{Name: "recv_datatype", Goname: "RecvDatatype", Type: Int32, Nullable: true, Doc: "Id in datatypes."},
		{Name: "bytes_power", Goname: "BytesPower", Type: Int32, Unit: "1",
			Doc: "The smallest power of two that is at least the size of each call, by its exponent; -1 for 0 bytes. " +
				"The size is what the rank sends, or receives where it sends nothing."},
		{Name: "count_power", Goname: "CountPower", Type: Int32, Unit: "1",
			Doc: "The same for the elements of each call: its send_count, or recv_count where that is null; -1 also " +
				"where both are."},
		{Name: "calls", Goname: "Calls", Type: Int64, Unit: "1", Counts: true, Doc: "Number of these calls."},
		{Name: "send_bytes", Goname: "SendBytes", Type: Int64, Unit: "bytes",
			Doc: "Sum of their send_bytes. Either every call of the row sends bytes, or none does."},
		{Name: "recv_bytes", Goname: "RecvBytes", Type: Int64, Unit: "bytes", Doc: "Sum of their recv_bytes."},
		{Name: "operations", Goname: "Operations", Type: Int64, Unit: "1", Counts: true,
			Doc: "On the first row of a communicator (by rank, then nth) the number of collective operations on it, one " +
				"for all ranks together; 0 on its other rows, so that sums are right."},
	},
}

// CollectivePartsTable describes the table collective_parts: what v-, w- and neighbourhood collectives send to each
// rank.
var CollectivePartsTable = Table{
	Name: "collective_parts", Goname: "CollectivePart", Derived: true, Key: []string{"rank", "nth"},
	Doc: "Data that a rank sends to a peer in collectives whose arguments have a count per peer: one row sums the " +
		"rows of parts with bytes to send that have the same rank, peer and call. It is derived from parts and " +
		"events, in runs where it has at most two million rows.",
	Columns: []Column{
		{Name: "rank", Goname: "Rank", Type: Int32, Unit: "1", Doc: "World rank that made the calls."},
		{Name: "nth", Goname: "Nth", Type: Int64, Unit: "1", Doc: "Number of the row along its rank, from 0."},
		{Name: "peer_world", Goname: "PeerWorld", Type: Int32, Unit: "1", Doc: "World rank of the peer."},
		{Name: "call", Goname: "Call", Type: Enum, Names: CallNames, Doc: "The MPI function, as in collective_calls."},
		{Name: "messages", Goname: "Messages", Type: Int64, Unit: "1", Counts: true, Doc: "Parts with bytes to send."},
		{Name: "bytes", Goname: "Bytes", Type: Int64, Unit: "bytes", Doc: "Sum of their send_bytes."},
	},
}

// ActivityTable describes the table activity: what each rank did over time.
var ActivityTable = Table{
	Name: "activity", Goname: "ActivityCell", Derived: true,
	Key: []string{"rank_power", "step_power", "start_ns", "rank", "nth"},
	Doc: "What ranks did over time, in steps of 2^step_power ns from the run's start and for blocks of 2^rank_power " +
		"neighbouring ranks: one row sums a class of calls of a block in a step. Each resolution, a pair of " +
		"rank_power and step_power, covers the whole run, so read one of them and never add up two; " +
		"docs/adr/0028-activity-over-time-is-a-table.md says which there are. Rows that would be 0 are left out. It " +
		"is derived from events and messages. Runs without times or all calls have no rows, nor have those with " +
		"fewer than 262,144 calls, which are read as fast.",
	Columns: []Column{
		{Name: "rank_power", Goname: "RankPower", Type: Int32, Unit: "1", Doc: "A block has 2^rank_power ranks."},
		{Name: "step_power", Goname: "StepPower", Type: Int32, Unit: "1", Doc: "A step lasts 2^step_power ns."},
		{Name: "start_ns", Goname: "StartNs", Type: Int64, Unit: "ns",
			Doc: "When the step begins, a multiple of its length."},
		{Name: "rank", Goname: "Rank", Type: Int32, Unit: "1",
			Doc: "The lowest world rank of the block, a multiple of its number of ranks."},
		{Name: "nth", Goname: "Nth", Type: Int32, Unit: "1", Doc: "Number of the row in its step and block, from 0."},
		{Name: "class", Goname: "Class", Type: Enum, Names: ActivityNames,
			Doc: "class of the rows of events; sent: the messages whose send was entered in the step; operations: the " +
				"collective operations that a rank of the block was the first to enter, in the step. Of several ranks at once " +
				"it is the lowest. Calls that returned an error are no operations."},
		{Name: "calls", Goname: "Calls", Type: Int64, Unit: "1", Counts: true,
			Doc: "Calls that were entered in the step; of sent the messages, of operations the operations."},
		{Name: "time_ns", Goname: "TimeNs", Type: Int64, Unit: "ns",
			Doc: "Time in calls of the class within the step, summed over ranks and threads; a call that never " +
				"returned lasts to the end of the last call. 0 of sent and operations."},
		{Name: "bytes", Goname: "Bytes", Type: Int64, Unit: "bytes",
			Doc: "Payload of the messages; of operations what all their ranks send; 0 of calls."},
	},
}

// ActivityNames are the values of the column class of activity: those of events, then sent and operations.
var ActivityNames = append(slices.Clip(ClassNames), "sent", "operations")

// ActivitySent and ActivityOperations are the indices of sent and operations in ActivityNames.
var (
	ActivitySent       = int16(len(ClassNames))
	ActivityOperations = ActivitySent + 1
)

// ComputeClocks are the values of Manifest.ComputeClock.
var ComputeClocks = []string{"cpu", "wall", "device", "none"}

// EndedNames are the values of the column ended.
var EndedNames = []string{"finalized", "aborted", "killed"}

// Indexes into EndedNames.
const (
	EndedFinalized int16 = iota
	EndedAborted
	EndedKilled
)

// Tables lists every table of a run.
func Tables() []*Table {
	return []*Table{&EventsTable, &MessagesTable, &PartsTable, &CommsTable, &RanksTable, &CallsitesTable,
		&DatatypesTable, &ProfileTable, &WaitsTable, &TransfersTable, &CollectiveWaitsTable,
		&RepeatsTable, &ChannelsTable, &CollectiveCallsTable, &CollectivePartsTable, &ActivityTable}
}

// IsDerived reports whether the table of that name is derived.
func IsDerived(name string) bool {
	return slices.ContainsFunc(Tables(), func(t *Table) bool { return t.Derived && t.Name == name })
}

// RowKey packs the rank and seq of a row of events into one map key: 24 bits and 40 bits. Larger ones share keys.
func RowKey(rank int32, seq int64) uint64 { return uint64(uint32(rank))<<40 | uint64(seq)&(1<<40-1) }

// RowOf unpacks a RowKey.
func RowOf(key uint64) (rank int32, seq int64) { return int32(key >> 40), int64(key & (1<<40 - 1)) }
