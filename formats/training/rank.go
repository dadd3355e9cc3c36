package training

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/schema"
)

const null32, null64 = schema.NullInt32, schema.NullInt64

// Unknown stands for a number that a trace does not have: of bytes, ranks, places in a group.
const Unknown = -1

// Op is an operation of a process with others: a collective, a send or a receive.
type Op struct {
	// Call is the nonblocking MPI call that does the same.
	Call schema.CallID
	// Group is an index into the Groups of its rank, or Unknown.
	Group int
	// Seq is its number along the group, or Unknown. Only the order matters, unless Options.Numbered is set.
	Seq int64
	// IssuedNs is when the process asked for it, and ReturnedNs when that call returned. StartNs and EndNs are when it
	// ran, on the device if there is one. All are in ns on the clock of the process.
	IssuedNs, ReturnedNs, StartNs, EndNs int64
	// Stream is the stream that it ran on: operations of one stream do not overlap.
	Stream int64
	// InElements and OutElements are the numbers of elements that the process gives and gets, or Unknown.
	InElements, OutElements int64
	// Type is the type of the elements, as Type names it; empty if unknown. InBytes means that the elements are counted
	// in bytes, whatever their type is.
	Type    string
	InBytes bool
	// Root is the root of a rooted collective, as a rank in the group, or Unknown.
	Root int32
	// Peer is the world rank of the other side of a send or a receive; with PeerInGroup its rank in the group.
	Peer        int32
	PeerInGroup bool
	// InSplit and OutSplit are the shares of each rank of the group in an uneven exchange, in any unit; empty if even.
	InSplit, OutSplit []int64
	// Label has other facts from the trace; empty if there are none.
	Label string

	instance int64 // on its communicator, null if none
	doneSeq  int64 // of the row that completes it
}

// Group is a group of processes that communicate.
type Group struct {
	Name        string  // unique among the groups of a process
	Description string  // what it is for, "mesh_tp"; may be empty
	Ranks       []int32 // the world ranks of its members; empty if unknown
}

// Step is the start of a step of the training.
type Step struct {
	Name    string
	StartNs int64 // on the clock of the process
}

// Rank is the contents of the trace of a process. Fill Busy, then call Close.
type Rank struct {
	File   string // for messages
	Rank   int32  // world rank
	World  int32  // number of processes of the job, 0 if unknown
	Host   string // empty if unknown
	Groups []Group
	Ops    []Op
	Steps  []Step
	Busy   Busy
	// Device means that operations run on a device beside the program; without one the process itself issues them and
	// waits for them.
	Device bool
	// HasGroups means that the trace lists all groups of the process.
	HasGroups bool
	// Warnings are sentences on what the trace lacks.
	Warnings []string
	// Events is the number of events read, Dropped the number of operations that the tracer says it lost.
	Events, Dropped int64

	members int // of all groups
	rows    []entry
	threads int32
	firstNs int64 // when it first computed or communicated
}

// mostMembers limits the members of all groups of a process together: more than any job has, and so few that wrong
// numbers in a small file do not take all memory.
const mostMembers = 4 * importing.MostRanks

// KeepMembers counts members of a group that the reader of a trace is about to keep. Too many are an error.
func (r *Rank) KeepMembers(g *Group) error {
	if r.members += len(g.Ranks); r.members > mostMembers {
		return fmt.Errorf("group %q: the groups of the process have more than %d members together", g.Name, mostMembers)
	}
	return nil
}

// OnlyGroup gives operations without a group the only one that the process is in, if it is in one only.
func (r *Rank) OnlyGroup() {
	if !r.HasGroups || len(r.Groups) != 1 {
		return
	}
	for i := range r.Ops {
		if r.Ops[i].Group == Unknown {
			r.Ops[i].Group = 0
		}
	}
}

// Close lays out the rows, with the time computed between them, and drops Busy, which takes the most memory.
func (r *Rank) Close() {
	r.Busy.compact()
	slices.SortStableFunc(r.Ops, func(a, b Op) int { return cmp.Compare(a.IssuedNs, b.IssuedNs) })
	slices.SortStableFunc(r.Steps, func(a, b Step) int { return cmp.Compare(a.StartNs, b.StartNs) })
	r.order()
	r.layOut()
	r.Busy = Busy{}
}

// order lets no operation begin before one that was issued earlier on the same group, as threads that take operations
// from a queue may do.
func (r *Rank) order() {
	latest := map[int]int64{}
	for i := range r.Ops {
		op := &r.Ops[i]
		if !r.Device {
			op.Stream = 0
		}
		if before, ok := latest[op.Group]; ok && op.Group != Unknown {
			op.StartNs = max(op.StartNs, before)
		}
		latest[op.Group] = op.StartNs
		op.ReturnedNs = max(op.ReturnedNs, op.IssuedNs)
		op.EndNs = max(op.EndNs, op.StartNs)
		if !r.Device {
			op.EndNs = max(op.EndNs, op.ReturnedNs)
		}
	}
}
