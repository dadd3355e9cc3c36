package simulate

import (
	"fmt"
	"math"

	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// rules are the differences between the dialects.
type rules struct {
	cpuLatency bool // CPUs are busy during the latency, at both ends
	// a receive takes the message that arrives first, not the one sent first; a sender that waits for its receiver
	// continues when its message starts
	arrivalOrder     bool
	selfWaits        bool // a send to its own rank waits for its receiver
	thresholdDecides bool // the eager threshold, if there is one, overrides the mode of the call
	busCollectives   bool // a collective occupies all buses
	wholeNodes       bool // a collective takes place between nodes, then in a second phase inside each node
	reduceMessages   bool // MPI_Reduce consists of messages from every rank
}

var rulesOf = [...]rules{Paper: {}, Dimemas5: {true, true, true, true, true, true, true}}

// setting holds what does not change during a simulation: the machine, the program, and the placement of ranks on
// nodes. Checkpoints leave it out, because the caller provides it again.
type setting struct {
	rules   rules                                      `snapshot:"-"`
	machine *models.Machine                            `snapshot:"-"`
	program *Program                                   `snapshot:"-"`
	options *Options                                   `snapshot:"-"`
	next    func(add func(*schema.Events) error) error `snapshot:"-"` // of Simulate
	memory  func() int64                               `snapshot:"-"` // engine.memory

	nodes       []models.Node   `snapshot:"-"`
	costs       []nodeCosts     `snapshot:"-"` // by node
	nodeOf      []int32         `snapshot:"-"` // by rank
	firstThread []int32         `snapshot:"-"` // by rank
	commIndex   map[int32]int32 `snapshot:"-"` // by a communicator's id

	between, inside transferCache `snapshot:"-"` // between nodes, and inside one
}

// newSetting places the ranks of a program on the nodes of a machine.
func newSetting(m *models.Machine, p *Program, o *Options) (*setting, error) {
	nodes, nodeOf, err := m.Place(len(p.Threads))
	if err != nil {
		return nil, err
	}
	x := &setting{rules: rulesOf[o.Dialect], machine: m, program: p, options: o, nodeOf: nodeOf,
		commIndex: make(map[int32]int32, len(p.Comms))}
	for i := range nodes {
		n := m.NodeAt(i)
		x.nodes = append(x.nodes, n)
		x.costs = append(x.costs, nodeCosts{n.CPURatio, n.Latency, n.IntraNode.Latency})
	}
	threads := int32(0)
	for _, n := range p.Threads {
		x.firstThread = append(x.firstThread, threads)
		threads += max(n, 1)
	}
	for k, c := range p.Comms {
		x.commIndex[c.ID] = int32(k)
	}
	return x, nil
}

// contended reports whether messages can wait for links or buses.
func (x *setting) contended() bool {
	if x.machine.Network.Buses != 0 {
		return true
	}
	for i := range x.nodes {
		n := &x.nodes[i]
		if n.InputLinks != 0 || n.OutputLinks != 0 || n.IntraNode.Buses != 0 || n.IntraNode.InputLinks != 0 ||
			n.IntraNode.OutputLinks != 0 {
			return true
		}
	}
	return false
}

// nodeCosts caches the constants of a node that every operation needs.
type nodeCosts struct {
	cpuRatio        float64
	latency, inside Picoseconds // to other nodes, and between its own ranks
}

// scaled returns how long the node computes what took ns on the machine of the run.
func (n *nodeCosts) scaled(ns int64) Picoseconds {
	switch {
	case ns <= 0 || n.cpuRatio == 0:
		return 0
	case n.cpuRatio == 1:
		if ns > int64(models.Forever)/1000 {
			return models.Forever
		}
		return Picoseconds(ns * 1000)
	}
	return Picoseconds(min(math.Round(float64(ns)*1000/n.cpuRatio), float64(models.Forever)))
}

// latency returns the latency of a message between two ranks.
func (x *setting) latency(src, dst int32) Picoseconds {
	from, to := x.nodeOf[src], x.nodeOf[dst]
	if from == to {
		return x.costs[from].inside
	}
	return x.costs[from].latency
}

// transfer returns how long bytes take between two nodes, or inside one, after the latency.
func (x *setting) transfer(from, to int32, bytes int64) Picoseconds {
	switch {
	case from != to:
		return x.between.transfer(&x.machine.Network, bytes)
	case x.machine.Uneven != nil:
		return x.nodes[from].IntraNode.Transfer(bytes)
	}
	return x.inside.transfer(&x.machine.IntraNode, bytes)
}

// transferCache caches transfer times by message size.
type transferCache [256]struct {
	bytes int64
	took  Picoseconds
	known bool
}

func (c *transferCache) transfer(i *models.Interconnect, bytes int64) Picoseconds {
	k := &c[uint64(bytes)*0x9e3779b97f4a7c15>>56]
	if k.bytes != bytes || !k.known {
		k.bytes, k.took, k.known = bytes, i.Transfer(bytes), true
	}
	return k.took
}

// waitsForReceiver reports whether a send of rank src returns only when its receiver has the message (rendezvous)
// instead of at once (eager).
func (x *setting) waitsForReceiver(o *op, src int32) bool {
	return x.rules.waitsForReceiver(x.machine, o.flags, o.send, o.peer == src)
}

// waitsForReceiver reports the same of a send with these flags, of so many bytes. toSelf: it is to its own rank.
func (r *rules) waitsForReceiver(m *models.Machine, flags uint8, bytes int64, toSelf bool) bool {
	switch {
	case r.selfWaits && toSelf:
		return true
	case r.thresholdDecides && m.EagerThresholdGiven:
		return bytes >= m.EagerThresholdBytes
	case flags&flagBuffered != 0:
		return false
	}
	return flags&flagSync != 0 || bytes >= m.EagerThresholdBytes
}

// site returns the place of a call site for an error text, " at file.c:17", or "" when it is not known.
func (x *setting) site(id int32) string {
	if x.program.Callsite == nil || id == schema.NullInt32 {
		return ""
	}
	if where := x.program.Callsite(id); where != "" {
		return " at " + where
	}
	return ""
}

// tooLong is the error for a simulated time that does not fit.
func tooLong() error {
	return fmt.Errorf("the program takes longer than %d days of simulated time; does the machine file give the "+
		"bandwidth in another unit?", int64(models.Forever)/86_400_000_000_000_000)
}
