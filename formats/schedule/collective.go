package schedule

import "github.com/commq/commq/schema"

// Collective is a rank's call of a collective operation on an intracommunicator.
type Collective struct {
	// Op is the blocking form of the operation; Blocking means that the call is blocking.
	Op       schema.CallID
	Blocking bool
	// Comm is the number of the communicator in the run, Name its name, "" for none.
	Comm int32
	Name string
	// Members are the world ranks of the communicator, Me and Root ranks in it. Root is 0 for operations without a
	// root, and -1 if the row does not have it.
	Members  []int32
	Me, Root int
	// SendBytes and RecvBytes are the bytes of the row, 0 where it has none; then SendUnknown or RecvUnknown is set.
	SendBytes, RecvBytes     int64
	SendUnknown, RecvUnknown bool
	// SendTo and RecvFrom are the bytes by rank in the communicator, if the row has parts: at the root of MPI_Gatherv
	// and MPI_Scatterv, on all ranks of MPI_Alltoallv and of neighbourhood collectives, and on the receiving side of
	// MPI_Allgatherv.
	SendTo, RecvFrom []int64
	// NoParts means that no call of the run has parts, though some moved bytes. MPI_Alltoallv, MPI_Alltoallw and
	// MPI_Allgatherv then have unknown peers: all ranks exchange even shares of their bytes.
	NoParts bool
}

// Message is one message of a collective, as one of its ends sees it.
type Message struct {
	Send  bool
	Place int   // rank of the other end in the communicator
	Bytes int64 // payload
}

// RootOrFirst returns the root, or the first rank where the row does not tell it.
func (c *Collective) RootOrFirst() int { return max(c.Root, 0) }

// Assume notes what is assumed of a collective whose row lacks its root or its size.
func (n Notes) Assume(c *Collective) {
	if c.Root < 0 {
		n["Collectives whose root the run does not have, written with the first rank as root"]++
	}
	if c.SendUnknown && c.RecvUnknown && c.Op != schema.CallBarrier {
		n["Collectives whose size the run does not have, written as empty"]++
	}
}

// signalBytes is the size of a message that carries no data: simulators do not know empty ones.
const signalBytes = 1

// Rounds returns the messages of the rank, round by round: it begins a round when all its messages of the round
// before have arrived. Broadcasts and reductions go along binomial trees, an MPI_Allreduce is a reduction to the
// first rank and a broadcast from there, a barrier is the dissemination algorithm (Hensgen, Finkel and Manber 1988),
// scans go from rank to rank, MPI_Allgather goes around a ring, MPI_Alltoall is pairwise, and what has a root and
// parts goes directly.
func (c *Collective) Rounds() [][]Message {
	if len(c.Members) < 2 && !c.Op.IsNeighborhood() {
		return nil
	}
	root := c.RootOrFirst()
	switch c.Op {
	case schema.CallBcast:
		return c.down(root, max(c.SendBytes, c.RecvBytes))
	case schema.CallReduce:
		return c.up(root, max(c.SendBytes, c.RecvBytes))
	case schema.CallAllreduce:
		return append(c.up(0, c.SendBytes), c.down(0, c.SendBytes)...)
	case schema.CallReduceScatter, schema.CallReduceScatterBlock:
		total := c.SendBytes
		return append(c.up(0, total), c.scatter(0, total, nil)...)
	case schema.CallGather, schema.CallGatherv:
		return c.gather(root)
	case schema.CallScatter, schema.CallScatterv:
		return c.scatter(root, c.SendBytes, c.SendTo)
	case schema.CallAllgather:
		return c.ring()
	case schema.CallAllgatherv:
		return c.pairwise(c.known(func(int) int64 { return c.SendBytes }), c.known(c.receivedFrom))
	case schema.CallAlltoall:
		return c.pairwise(c.sentTo, c.receivedFrom)
	case schema.CallAlltoallv, schema.CallAlltoallw:
		return c.pairwise(c.known(c.sentTo), c.known(c.receivedFrom))
	case schema.CallScan, schema.CallExscan:
		return c.chain()
	}
	if c.Op.IsNeighborhood() {
		return c.neighbours()
	}
	return c.dissemination()
}

// share returns a rank's part of bytes that are spread evenly; the first ranks have the rest.
func (c *Collective) share(total int64, place int) int64 {
	n := int64(len(c.Members))
	part := total / n
	if int64(place) < total%n {
		part++
	}
	return part
}

// Shares returns the bytes by place: those given, or even ones of a total where there are none.
func (c *Collective) Shares(bytes []int64, total int64) []int64 {
	if bytes != nil {
		return bytes
	}
	shares := make([]int64, len(c.Members))
	for place := range shares {
		shares[place] = c.share(total, place)
	}
	return shares
}

// known returns the bytes by place, at least those of a signal where nobody knows them: whether there is a message must
// not depend on what only one of its ends has.
func (c *Collective) known(bytes func(place int) int64) func(place int) int64 {
	if !c.NoParts {
		return bytes
	}
	return func(place int) int64 { return max(bytes(place), signalBytes) }
}

// sentTo and receivedFrom return the bytes sent to a place, and received from it.
func (c *Collective) sentTo(place int) int64 {
	if c.SendTo != nil {
		return c.SendTo[place]
	}
	return c.share(c.SendBytes, place)
}

func (c *Collective) receivedFrom(place int) int64 {
	if c.RecvFrom != nil {
		return c.RecvFrom[place]
	}
	return c.share(c.RecvBytes, place)
}

// binomial returns the parent of the rank in a binomial tree, -1 for the root, and its children, the largest subtree
// first.
func (c *Collective) binomial(root int) (parent int, children []int) {
	n := len(c.Members)
	me := (c.Me - root + n) % n
	parent = -1
	bit := 1
	for ; bit < n; bit <<= 1 {
		if me&bit != 0 {
			parent = (me - bit + root) % n
			break
		}
	}
	for bit >>= 1; bit > 0; bit >>= 1 {
		if me+bit < n {
			children = append(children, (me+bit+root)%n)
		}
	}
	return parent, children
}

// down sends bytes from the root to all.
func (c *Collective) down(root int, bytes int64) (rounds [][]Message) {
	parent, children := c.binomial(root)
	if parent >= 0 {
		rounds = append(rounds, []Message{{false, parent, bytes}})
	}
	for _, child := range children {
		rounds = append(rounds, []Message{{true, child, bytes}})
	}
	return rounds
}

// up sends bytes from all to the root.
func (c *Collective) up(root int, bytes int64) (rounds [][]Message) {
	parent, children := c.binomial(root)
	for i := len(children) - 1; i >= 0; i-- {
		rounds = append(rounds, []Message{{false, children[i], bytes}})
	}
	if parent >= 0 {
		rounds = append(rounds, []Message{{true, parent, bytes}})
	}
	return rounds
}

func (c *Collective) gather(root int) [][]Message {
	if c.Me != root {
		return [][]Message{{{true, root, c.SendBytes}}}
	}
	var round []Message
	for place := range c.Members {
		if place != c.Me {
			round = append(round, Message{false, place, c.receivedFrom(place)})
		}
	}
	return [][]Message{round}
}

// scatter sends a part to each; parts nil means even ones.
func (c *Collective) scatter(root int, total int64, parts []int64) [][]Message {
	if c.Me != root {
		return [][]Message{{{false, root, c.RecvBytes}}}
	}
	var round []Message
	for place := range c.Members {
		if place == c.Me {
			continue
		}
		bytes := c.share(total, place)
		if parts != nil {
			bytes = parts[place]
		}
		round = append(round, Message{true, place, bytes})
	}
	return [][]Message{round}
}

func (c *Collective) ring() (rounds [][]Message) {
	n := len(c.Members)
	for range n - 1 {
		rounds = append(rounds, []Message{{false, (c.Me + n - 1) % n, c.SendBytes}, {true, (c.Me + 1) % n, c.SendBytes}})
	}
	return rounds
}

// pairwise exchanges with the ranks at distance 1, 2, ... A part without bytes is no message.
func (c *Collective) pairwise(to, from func(place int) int64) (rounds [][]Message) {
	n := len(c.Members)
	for k := 1; k < n; k++ {
		var round []Message
		if src := (c.Me - k + n) % n; from(src) > 0 {
			round = append(round, Message{false, src, from(src)})
		}
		if dst := (c.Me + k) % n; to(dst) > 0 {
			round = append(round, Message{true, dst, to(dst)})
		}
		if len(round) > 0 {
			rounds = append(rounds, round)
		}
	}
	return rounds
}

// chain receives from the rank before and sends to the one after it.
func (c *Collective) chain() (rounds [][]Message) {
	if c.Me > 0 {
		rounds = append(rounds, []Message{{false, c.Me - 1, c.SendBytes}})
	}
	if c.Me < len(c.Members)-1 {
		rounds = append(rounds, []Message{{true, c.Me + 1, c.SendBytes}})
	}
	return rounds
}

// neighbours exchanges with all places that have a part, at once.
func (c *Collective) neighbours() [][]Message {
	var round []Message
	for place := range c.RecvFrom {
		if c.RecvFrom[place] > 0 {
			round = append(round, Message{false, place, c.RecvFrom[place]})
		}
	}
	for place := range c.SendTo {
		if c.SendTo[place] > 0 {
			round = append(round, Message{true, place, c.SendTo[place]})
		}
	}
	if round == nil {
		return nil
	}
	return [][]Message{round}
}

func (c *Collective) dissemination() (rounds [][]Message) {
	n := len(c.Members)
	for k := 1; k < n; k <<= 1 {
		rounds = append(rounds,
			[]Message{{false, (c.Me - k + n) % n, signalBytes}, {true, (c.Me + k) % n, signalBytes}})
	}
	return rounds
}
