package chakra

import (
	"fmt"

	"github.com/commq/commq/schema"
)

// row makes a row of a rank: a step, or MPI_Finalize after the last.
func (j *job) row(me int32, seq int64) schema.Event {
	r := j.ranks[me]
	row := schema.NullEvent
	row.Rank, row.Seq = me, seq
	call := schema.CallFinalize
	if seq == int64(len(r.steps)) {
		row.ComputeNs = r.restNs
	} else {
		s := &r.steps[seq]
		o := &r.ops[s.op]
		row.ComputeNs, row.Request = s.computeNs, int64(s.op)+1
		if call = schema.CallWait; !s.wait {
			call = o.call
			row.DoneSeq = o.done
			j.operation(&row, o)
		}
	}
	row.Call, row.Class = int16(call), int16(schema.Calls[call].Class)
	return row
}

// operation fills in what an operation moves, and where.
func (j *job) operation(row *schema.Event, o *op) {
	c := j.commOf(row.Rank, o)
	if c == nil {
		return
	}
	row.Comm = c.id
	bytes := o.bytes
	if bytes < 0 {
		bytes = null64
	}
	switch o.call {
	case schema.CallIbsend:
		row.SendPeer, row.SendWorld, row.SendTag, row.SendBytes, row.ProcNull = o.peer, o.peer, o.tag, max(bytes, 0), 0
	case schema.CallIrecv:
		row.RecvPeer, row.RecvWorld, row.RecvTag, row.RecvBytes = o.peer, o.peer, o.tag, max(bytes, 0)
		row.ProcNull, row.PostedAny = 0, 0
	default:
		row.Instance = o.instance
		if int(o.root) < len(c.ranks) && o.root >= 0 && hasRoot(o.call) {
			row.RootWorld = c.ranks[o.root]
			row.SendBytes, row.RecvBytes = schema.CollectiveBytes(o.call.Operation(), schema.CollectiveArgs{
				Peers: int64(len(c.ranks)), Group: int64(len(c.ranks)), Root: row.RootWorld == row.Rank, Send: bytes, Recv: bytes})
		} else {
			row.SendBytes, row.RecvBytes = sizes(o.call, bytes, int64(len(c.ranks)))
		}
		j.sums(row, o, c)
	}
}

// sums sets the size at a rank that sends or receives the parts of all ranks to their sum: ranks may give different
// ones. If parts differ in size, what a rank receives is unknown, as only the sum of what it gives is known.
func (j *job) sums(row *schema.Event, o *op, c *comm) {
	total := j.totals[c.id][o.instance].bytes
	if total < 0 {
		total = null64
	}
	isRoot := row.RootWorld == row.Rank
	switch {
	case j.isUneven(o, c):
		row.RecvBytes = null64
	case o.call == schema.CallIallgather, o.call == schema.CallIgather && isRoot:
		row.RecvBytes = total
	case o.call == schema.CallIscatter && isRoot:
		row.SendBytes = total
	}
}

// isUneven reports whether a rank gives the ranks of its group parts that are not all of one size, or gets such: its
// bytes do not divide evenly, or another rank gives others.
func (j *job) isUneven(o *op, c *comm) bool {
	return divides(o.call) && (j.totals[c.id][o.instance].differ || o.bytes > 0 && o.bytes%int64(len(c.ranks)) != 0)
}

// divides reports whether ranks give a part of their bytes to each rank.
func divides(call schema.CallID) bool {
	return call == schema.CallIalltoall || call == schema.CallIreduceScatterBlock
}

// hasRoot reports whether a collective has a root.
func hasRoot(call schema.CallID) bool { return call.Is(schema.FactRooted) }

// sizes returns what a rank gives and gets in a collective on n ranks, of whose input a trace tells the bytes. Which
// rank is the root it does not tell, and so not what the root gives or gets. Of a broadcast, all ranks then get it.
func sizes(call schema.CallID, bytes, n int64) (send, recv int64) {
	args := schema.CollectiveArgs{Peers: n, Group: n, Send: bytes, Recv: bytes}
	switch call {
	case schema.CallIbcast:
		return null64, bytes
	case schema.CallIscatter:
		return null64, null64
	case schema.CallIreduce, schema.CallIgather:
		return bytes, null64
	case schema.CallIalltoall, schema.CallIreduceScatterBlock:
		if bytes == null64 || bytes%n != 0 {
			return bytes, null64
		}
		args.Send, args.Recv = bytes/n, bytes/n
	}
	return schema.CollectiveBytes(call.Operation(), args)
}

func (j *job) commRows() (rows []schema.Comm) {
	for _, c := range j.comms {
		row := schema.NullComm
		row.Comm, row.Kind = c.id, int16(schema.CommOther)
		if c.id == 0 {
			row.Kind = int16(schema.CommWorld)
		}
		row.Name = c.name
		if c.name == "" {
			row.Name = "MPI_COMM_WORLD"
		}
		for place, world := range c.ranks {
			row.CommRank, row.WorldRank = int32(place), world
			rows = append(rows, row)
		}
	}
	return rows
}

// warnings tell what the format lacks, and what has no row.
func (j *job) warnings() []string {
	t := &j.tally
	for i, r := range j.ranks {
		for _, s := range r.steps {
			if s.wait {
				continue
			}
			o := &r.ops[s.op]
			if hasRoot(o.call) && o.root < 0 {
				t.rootless++
			}
			if c := j.commOf(int32(i), o); c != nil && j.isUneven(o, c) {
				t.uneven++
			}
		}
	}
	w := []string{"Chakra traces have no payload hashes, datatypes and buffers; these columns are null. The run has no " +
		"times: its rows are in an order that the dependencies of the nodes allow, and a wait stands before the first " +
		"node that depends on an operation.",
		fmt.Sprintf("Read: %d nodes, of which %d communicate.", t.nodes, t.comm)}
	say := func(n int64, what string) {
		if n > 0 {
			w = append(w, fmt.Sprintf("%s: %d.", what, n))
		}
	}
	say(t.launches, "Nodes that launch a collective, which has a node of its own")
	say(t.unknown, "Dependencies on nodes that are not in the trace")
	say(t.callers, "Ranks whose dependencies of control go in a circle with those of data and do not count: they name the "+
		"callers of nodes")
	say(t.untimed, "Nodes that compute and do not tell how long")
	say(t.unsized, "Operations whose size the trace does not tell")
	say(t.rootless, "Operations with a root, which the trace does not name; what the root gives or gets is null, and "+
		"all ranks get a broadcast")
	say(t.uneven, "All-to-alls and reduce-scatters with parts of different sizes, of which the trace tells only the "+
		"sum that a rank gives; what it gets is null")
	say(t.outside, "Operations on a group that their rank is not a member of; they have no communicator")
	say(j.lone, "Sends and receives whose other side has no trace, left out")
	say(j.resized, "Receives of another size than the message that is theirs by the order of the channel; they have the "+
		"message's")
	say(j.assumed, "Groups whose ranks the traces do not list; they have the ranks that use them")
	return w
}
