package signature

import (
	"strconv"
	"strings"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// Version is the version of the signature format.
const Version = 1

// Signature is a run's template and what each rank did at its nodes. Expand turns it back into the calls of a rank.
type Signature struct {
	// Version is the version of the format.
	Version int `json:"commq_signature"`
	// Run is the name of the run, Digest its digest.
	Run    string `json:"run"`
	Digest string `json:"digest"`
	// Captures lists the captures whose compute times were pooled; nil if the times are those of the run alone.
	Captures []Capture `json:"captures,omitempty"`
	// Ranks is the number of processes.
	Ranks int32 `json:"ranks"`
	// Calls is the number of rows of events that the signature expands to.
	Calls int64 `json:"calls"`
	// ComputeClock and TimeOrigin are copied from the run's manifest.
	ComputeClock string `json:"compute_clock"`
	TimeOrigin   string `json:"time_origin"`
	// Evidence is how the run came about: captured, imported, predicted, replaced, simulated or replayed; empty in
	// files of older versions.
	Evidence string `json:"evidence,omitempty"`
	// Command is the program, without its folder, and its arguments, as the manifest has them; nil if that is unknown.
	Command []string `json:"command,omitempty"`
	// Oversubscribed is true if a host had more ranks than CPUs, so that ranks shared them; nil if that is unknown.
	Oversubscribed *bool `json:"oversubscribed,omitempty"`
	// Stack is the largest number of frames in a call path; 0 if calls have no call sites.
	Stack int32 `json:"stack,omitempty"`
	// Comms, Datatypes and Frames are the communicators, datatypes and frames of call paths.
	Comms     []Comm     `json:"comms"`
	Datatypes []Datatype `json:"datatypes"`
	Frames    []Frame    `json:"frames,omitempty"`
	// Symbols are the distinct calls of the program.
	Symbols []Symbol `json:"symbols"`
	// Template is the root of the template.
	Template *template.Node `json:"template"`
	// Values has, by node ID, the distinct things that ranks did at the node.
	Values []Values `json:"values"`
	// Roots has, by rank, the index of the root's value in the loops of the first of Values.
	Roots []int32 `json:"roots"`

	// Ticks is the last time of the logical clock. Phases are in template order.
	Ticks  int32   `json:"ticks"`
	Phases []Phase `json:"phases"`
	// Communications tell to whom ranks send, in template order. Irregular is the reason if they could not be found.
	Communications []Communication `json:"communications,omitempty"`
	Irregular      string          `json:"communications_irregular,omitempty"`

	// Set by Link:
	nodes []*template.Node
	comms map[int32]*Comm
	// By node, set when first needed: whether other calls refer to the event's calls, and whether by init_seq.
	referenced, initializes []bool
}

// Comm is a communicator.
type Comm struct {
	// ID is the communicator's id in the run.
	ID int32 `json:"id"`
	// Parent is the id of the communicator that it was made from; nil for MPI_COMM_WORLD and others without one.
	Parent *int32 `json:"parent,omitempty"`
	// Kind tells how it was made, as in the table comms.
	Kind string `json:"kind"`
	// Name is its name, if it has one.
	Name string `json:"name,omitempty"`
	// Dims and Periods describe a Cartesian topology as in the table comms.
	Dims    string `json:"cart_dims,omitempty"`
	Periods string `json:"cart_periods,omitempty"`
	// Members has the world rank of each member, by its rank in the communicator; Remote has the same for the other
	// group of an intercommunicator. -1 is a process outside of MPI_COMM_WORLD.
	Members Ranks `json:"members"`
	Remote  Ranks `json:"remote,omitempty"`

	ranks, remoteRanks map[int32]int32 // by world rank, set by Link
}

// RankOf returns the rank of a world rank in the communicator's (local) group.
func (c *Comm) RankOf(world int32) (rank int32, member bool) {
	rank, member = c.ranks[world]
	return rank, member
}

// peerRank returns the rank by which a world rank addresses another one: in the other group for intercommunicators.
func (c *Comm) peerRank(rank, world int32) int32 {
	group := c.ranks
	if len(c.Remote) > 0 {
		if _, local := c.ranks[rank]; local {
			group = c.remoteRanks
		}
	}
	if peer, known := group[world]; known {
		return peer
	}
	return schema.NullInt32
}

// Extents returns the extents of the communicator's Cartesian topology; nil if it has none.
func (c *Comm) Extents() []int32 { return ParseExtents(c.Dims) }

// ParseExtents reads extents as the column cart_dims has them; nil if the text is empty or malformed.
func ParseExtents(text string) (extents []int32) {
	if text == "" {
		return nil
	}
	for _, field := range strings.Split(text, ",") {
		n, err := strconv.ParseInt(field, 10, 32)
		if err != nil {
			return nil
		}
		extents = append(extents, int32(n))
	}
	return extents
}

// Datatype is a datatype.
type Datatype struct {
	// ID is the datatype's id in the run.
	ID int32 `json:"id"`
	// Name is its name, if it has one.
	Name string `json:"name,omitempty"`
	// Bytes is the size of an element.
	Bytes int64 `json:"bytes"`
}

// Frame is a frame of call paths. A frame follows its parent in Signature.Frames.
type Frame struct {
	// ID is the frame's id in the run.
	ID int32 `json:"id"`
	// Parent is the id of the frame that called it; nil for the outermost.
	Parent *int32 `json:"parent,omitempty"`
	// Module is the file of the executable or library.
	Module string `json:"module,omitempty"`
	// BuildID is the build id of the module, hexadecimal.
	BuildID string `json:"build_id,omitempty"`
	// Offset is the place of the call in the module, in bytes.
	Offset *int64 `json:"offset,omitempty"`
	// Function is the function of the program.
	Function string `json:"function,omitempty"`
	// File is its source file.
	File string `json:"file,omitempty"`
	// Line is the line in it.
	Line *int32 `json:"line,omitempty"`
}

// Symbol is an MPI call at a place in the program.
type Symbol struct {
	// Call is the name of the MPI function.
	Call string `json:"call"`
	// Frame is the innermost frame of the call path; nil if call sites are unknown.
	Frame *int32 `json:"frame,omitempty"`
	// Comm is the communicator, the first of those that the program knows by one name; only set if call sites are
	// unknown and the call, or what it completes, has one.
	Comm *int32 `json:"comm,omitempty"`
	// Completes is the name of the MPI function that begins what the call completes; only set if call sites are
	// unknown, the call has no communicator, and all that it completes is begun alike.
	Completes string `json:"completes,omitempty"`

	// CallID is the id of Call.
	CallID schema.CallID `json:"-"`
}

// Values are the distinct things that ranks did at a node, referred to by index: in Events for an event, in Loops for
// a loop.
type Values struct {
	// Events are the distinct calls of an event.
	Events []*Call `json:"events,omitempty"`
	// Bodies are the distinct iterations of a loop. An iteration is a list of pairs: the place of a child that was
	// executed, and the child's value.
	Bodies [][]int32 `json:"bodies,omitempty"`
	// Loops are the distinct executions of a loop: sequences of indexes in Bodies.
	Loops [][]fold.Item `json:"loops,omitempty"`
	// Times tells how long ranks computed before the calls of an event; nil if unknown.
	Times *Times `json:"times,omitempty"`
	// Parts is the rule that determines what the event's collectives send to each peer: product, or empty if there is
	// none.
	Parts string `json:"parts,omitempty"`

	// RecursionLevels has the first and the last level of each of Loops for a loop over the levels of a recursion. It
	// is set only while several runs are joined.
	RecursionLevels [][2]int32 `json:"-"`
}

// Capture is one of several captures of a program on the same number of ranks.
type Capture struct {
	// Run is the name of the run, Digest its digest.
	Run    string `json:"run"`
	Digest string `json:"digest"`
}

// Phase is a sequence of calls that ranks repeat, not itself part of a larger repetition.
type Phase struct {
	// Node is the template's loop whose iterations the phase is. Place numbers the phases of this loop on a rank.
	Node  int32 `json:"node"`
	Place int32 `json:"place,omitempty"`
	// Weight is the number of repetitions. WeightMin and WeightMax bound it if ranks differ; Weight is the largest.
	Weight    int64 `json:"weight"`
	WeightMin int64 `json:"weight_min"`
	WeightMax int64 `json:"weight_max"`
	// Ranks is the number of ranks that have the phase.
	Ranks int32 `json:"ranks"`
	// EventsMin and EventsMax bound the number of calls in a repetition over the ranks. Forms is the number of distinct
	// sequences of calls.
	EventsMin int64 `json:"events_min"`
	EventsMax int64 `json:"events_max"`
	Forms     int   `json:"forms"`
	// Ticks is the mean logical time of a repetition.
	Ticks float64 `json:"ticks"`
	// Calls is the number of calls in all repetitions on all ranks, CallShare its fraction of all calls.
	Calls     int64   `json:"calls"`
	CallShare float64 `json:"call_share"`
	// TimeNs is the mean time of a repetition over ranks, TimeShare the fraction of the ranks' time in all
	// repetitions, MPI_Init and MPI_Finalize left out. Both are nil in an untimed run.
	TimeNs    *int64   `json:"time_ns,omitempty"`
	TimeShare *float64 `json:"time_share,omitempty"`
}

// Agrees reports whether all ranks of the run repeat the phase equally often. Only then it is a phase as PAS2P
// defines it.
func (p *Phase) Agrees(ranks int32) bool { return p.Ranks == ranks && p.WeightMin == p.WeightMax }

// Share is the phase's fraction of the time of the run, or of its calls if times are unknown.
func (p *Phase) Share() float64 {
	if p.TimeShare != nil {
		return *p.TimeShare
	}
	return p.CallShare
}

// Relevant reports whether all ranks of the run repeat the phase equally often and it has at least this share of it.
func (p *Phase) Relevant(ranks int32, leastShare float64) bool {
	return p.Agrees(ranks) && p.Share() >= leastShare
}

// Communication is an event at which ranks send, at those iterations of its loops in which each rank has the same
// destination. It has what section 4.2 of the paper needs before it looks for a communication's general equation: the
// numbers of EC1 and EC2, dependency, static or dynamic, and the distance matrix.
type Communication struct {
	// Phase is the index, from 1, of the phase whose loop the event is in; the one with most
	// calls if a loop has several phases; 0 if the event is in none.
	Phase int `json:"phase,omitempty"`
	// Number counts the communications of the phase from 1.
	Number int `json:"communication"`
	// Event is the node ID of the event.
	Event int32 `json:"event"`
	// Places is the number of places in the event's loops where ranks do this. Loops that make no difference have no
	// places.
	Places int `json:"places"`
	// Calls and Bytes are the number of sends and the bytes sent at the event, by all of its communications together.
	Calls int64 `json:"event_calls"`
	Bytes int64 `json:"event_bytes"`
	// Dynamic is true if the destination is an exchange or permutation of the bits of the source, given by EC1;
	// otherwise the pattern is static. On two ranks a shift is an exchange too.
	Dynamic bool         `json:"dynamic"`
	EC1     *pattern.EC1 `json:"ec1,omitempty"`
	// Dependent is true if messages travel on: some destination sends to a third rank.
	Dependent bool `json:"dependent"`
	// Distances is the distance matrix, destination minus source in world ranks. Each source's row has one entry, so
	// it is stored as the displacements of EC2 with their repetitions. For a static pattern it is the EC2.
	Distances pattern.EC2 `json:"distances"`
	// Topology is the ring, mesh or torus between whose neighbours a static pattern sends; nil if there is none. The
	// extents of the grid are common to all communications of the phase.
	Topology *pattern.Topology `json:"topology,omitempty"`
}

// Equation returns the local equation: EC1 for a dynamic communication, else EC2.
func (c *Communication) Equation() string {
	if c.EC1 != nil {
		return c.EC1.String()
	}
	return c.Distances.String()
}
