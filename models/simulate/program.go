// Package simulate is a discrete-event simulator: what a program's calls would take on another machine. The semantics of its
// two dialects are in docs/method/simulator.md.
package simulate

import (
	"fmt"
	"io"

	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// Program is who runs, and in which communicators. What they do comes as rows of events.
type Program struct {
	// Threads is the number of threads that call MPI, per rank.
	Threads []int32
	// Comms are the communicators.
	Comms []Comm
	// Callsite says in words where call site id stands in the program, for errors; nil or "" when that is not known.
	Callsite func(id int32) string

	first  []int32 // first stream of each rank
	commOf map[int32]int32
}

// Comm is a communicator of the run.
type Comm struct {
	// ID is its id in the table comms.
	ID int32
	// Members are the world ranks of its members; of an intercommunicator of both groups. Processes outside the run's
	// MPI_COMM_WORLD are not among them.
	Members []int32
	// Inter says that it is an intercommunicator.
	Inter bool
}

// Dialect is how a program runs on a machine.
type Dialect uint8

const (
	// Paper follows Girona, Labarta and Badia (equations 1 to 4): a message takes L + S/B, and the latency is the network's.
	Paper Dialect = iota
	// Dimemas5 does what Dimemas 5.5.0 does.
	Dimemas5
)

// Dialects are the names of the dialects.
var Dialects = []string{"paper", "dimemas5"}

func (d Dialect) String() string { return Dialects[d] }

// rules are where the dialects differ.
type rules struct {
	cpuLatency       bool // the latency is time of the CPUs, at both ends
	arrivalOrder     bool // a receive takes what arrives first, not what was sent first; a sender that waits goes on when its message starts
	selfWaits        bool // a send to oneself waits for its receiver
	thresholdDecides bool // a threshold that was given goes before the call's own mode
	busCollectives   bool // a collective takes all buses
	wholeNodes       bool // a collective's ranks are nodes, with a phase inside them after that between them
	reduceMessages   bool // MPI_Reduce is a message from everyone
}

var rulesOf = [...]rules{Paper: {}, Dimemas5: {true, true, true, true, true, true, true}}

// Options say how to simulate.
type Options struct {
	Dialect Dialect
	// Done is called for each row when it is over, for those of a thread in the order in which they end; nil: nobody is interested.
	Done func(rank int32, seq int64, start, end Picoseconds)
	// MemoryBytes bounds what is kept of rows that were read and are not simulated yet, and of messages and requests under way; beyond it the
	// simulation ends with an error that says who is behind. 0 is no bound.
	MemoryBytes int64
	// Border is called when rows were read, with the number of times that next had some: then save writes all that the simulation knows. Its
	// error ends the simulation. Nil: nobody keeps anything.
	Border func(epochs int, save func(w io.Writer) error) error
	// State is what save wrote in a simulation of the same program on the same machine with the same options, from where this one goes on; next then goes on
	// behind the rows that had been read. Nil: it begins.
	State io.Reader
}

// Times are a rank's times; its threads' added up, but Finish, which is the last one's.
type Times struct {
	// Finish is when it ends.
	Finish Picoseconds
	// Compute is what it computes.
	Compute Picoseconds
	// PointToPoint and Collective are inside calls of these kinds, Waiting of that is blocked, and Latency busy in them.
	PointToPoint, Collective, Waiting, Latency Picoseconds
	// CPUWait is what it waits for a CPU of its node.
	CPUWait Picoseconds
}

// Result is what a simulation found.
type Result struct {
	// Ranks are the times of each rank.
	Ranks []Times
	// Time is when the last one ends.
	Time Picoseconds
	// Operations are how many were simulated, and Events how many went through the queue of events for that.
	Operations, Events int64
	// Messages and Bytes are what was sent point to point.
	Messages, Bytes int64
	// Collectives and CollectiveBytes count all collective operations, and what their ranks send and receive in them; those
	// with Fallback in their names the ones that took another operation's phases.
	Collectives, CollectiveBytes                 int64
	FallbackCollectives, FallbackCollectiveBytes int64
	// Nodes is how many nodes there were.
	Nodes int
}

// collective counts one in.
func (r *Result) collective(o *op, bytes int64) {
	r.Collectives++
	r.CollectiveBytes += bytes
	if o.flags&flagFallback != 0 {
		r.FallbackCollectives++
		r.FallbackCollectiveBytes += bytes
	}
}

// Simulate runs the program on the machine. next is called whenever a rank has nothing left to do: it passes the rows of the
// next epoch to add, in any number of batches, each rank's in order, and returns io.EOF when there are no more. Errors say who
// waits for what when the program cannot go on, which collectives do not match, and which messages have no partner.
func Simulate(m *models.Machine, p *Program, o *Options, next func(add func(*schema.Events) error) error) (*Result, error) {
	e, err := newEngine(m, p, o, next)
	if err != nil {
		return nil, err
	}
	if err := e.run(); err != nil {
		return nil, err
	}
	return e.results(), nil
}

func newEngine(m *models.Machine, p *Program, o *Options, next func(add func(*schema.Events) error) error) (*engine, error) {
	e := &engine{rules: rulesOf[o.Dialect], machine: m, options: o, more: next, freeReq: none, freeMsg: none}
	if err := e.place(p); err != nil {
		return nil, err
	}
	if err := e.communicators(p); err != nil {
		return nil, err
	}
	e.input = newRows(e)
	return e, nil
}

// place puts the streams on the nodes of the machine.
func (e *engine) place(p *Program) error {
	own := *p
	e.program = &own
	nodes, of, err := e.machine.Place(len(p.Threads))
	if err != nil {
		return err
	}
	e.nodes, e.nodeOf = make([]node, nodes), of
	e.buses.total = e.machine.Network.Buses
	e.free = e.buses.total == 0
	for i := range e.nodes {
		n := &e.nodes[i]
		n.Node = e.machine.NodeAt(i)
		e.paces = append(e.paces, pace{n.CPURatio, n.Latency, n.IntraNode.Latency})
		n.cpus, n.first, n.last = int32(n.CPUs), none, none
		n.port = newPort(n.InputLinks, n.OutputLinks, n.HalfDuplex)
		n.buses.total = n.IntraNode.Buses
		e.free = e.free && !n.port.finite && n.buses.total == 0 && n.IntraNode.InputLinks == 0 && n.IntraNode.OutputLinks == 0
	}
	for rank, threads := range p.Threads {
		own.first = append(own.first, int32(len(e.streams)))
		for range max(threads, 1) {
			e.streams = append(e.streams, stream{rank: int32(rank), node: of[rank], next: none})
		}
	}
	e.running = len(e.streams)
	e.lookahead, e.current = e.free && e.roomy(), none
	if !e.free {
		e.ports = make([]port, len(p.Threads))
		for rank := range e.ports {
			i := &e.nodes[of[rank]].IntraNode
			e.ports[rank] = newPort(i.InputLinks, i.OutputLinks, i.HalfDuplex)
		}
	}
	return nil
}

// communicators takes in the communicators.
func (e *engine) communicators(p *Program) error {
	e.program.commOf = make(map[int32]int32, len(p.Comms))
	on := make([]int32, len(e.nodes)) // last communicator seen on the node, + 1
	for k, c := range p.Comms {
		e.program.commOf[c.ID] = int32(k)
		g := comm{id: c.ID, size: int32(len(c.Members)), world: c.Members, root: none}
		for _, rank := range c.Members {
			if rank < 0 || int(rank) >= len(p.Threads) {
				return fmt.Errorf("communicator %d has rank %d, and the run has %d", c.ID, rank, len(p.Threads))
			}
			if n := e.nodeOf[rank]; on[n] != int32(k)+1 {
				on[n] = int32(k) + 1
				g.nodes++
			}
		}
		e.comms = append(e.comms, g)
	}
	return nil
}

// results adds up what was found.
func (e *engine) results() *Result {
	r := &e.result
	r.Nodes = len(e.nodes)
	r.Ranks = make([]Times, len(e.program.Threads))
	for i := range e.streams {
		s := &e.streams[i]
		t := &r.Ranks[s.rank]
		t.Finish = max(t.Finish, s.times.Finish)
		t.Compute += s.times.Compute
		t.PointToPoint += s.times.PointToPoint
		t.Collective += s.times.Collective
		t.Waiting += s.times.Waiting
		t.Latency += s.times.Latency
		t.CPUWait += s.times.CPUWait
		r.Time = max(r.Time, t.Finish)
	}
	return r
}
