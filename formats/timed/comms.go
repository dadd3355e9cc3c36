package timed

import "github.com/commq/commq/schema"

// Comm is a communicator of the run.
type Comm struct {
	ID     int32
	Kind   schema.CommKind
	Name   string // schema.NullText: none
	Parent *Comm  // nil: none is known
	// Dims and Periods are those of a Cartesian topology, as in the table comms.
	Dims, Periods string
	// Groups are the world ranks of its members, by rank in the group; an intercommunicator has two groups.
	Groups [2][]int32
	rankOf [2]map[int32]int32 // world rank to rank in the group
}

// NewComm returns a communicator of one or two groups of world ranks.
func NewComm(kind schema.CommKind, groups ...[]int32) *Comm {
	c := &Comm{Kind: kind, Name: schema.NullText, Dims: schema.NullText, Periods: schema.NullText}
	switch kind {
	case schema.CommWorld:
		c.Name = "MPI_COMM_WORLD"
	case schema.CommSelf:
		c.Name = "MPI_COMM_SELF"
	}
	for i, g := range groups {
		c.Groups[i], c.rankOf[i] = g, make(map[int32]int32, len(g))
		for rank, world := range g {
			c.rankOf[i][world] = int32(rank)
		}
	}
	return c
}

// Inter reports whether the communicator has two groups.
func (c *Comm) Inter() bool { return c.Groups[1] != nil }

// Has reports whether a world rank is a member.
func (c *Comm) Has(world int32) bool {
	for i := range c.Groups {
		if _, ok := c.rankOf[i][world]; ok {
			return true
		}
	}
	return false
}

// RankOf returns the rank of a member, a world rank, in its group.
func (c *Comm) RankOf(member int32) int32 {
	if rank, ok := c.rankOf[0][member]; ok {
		return rank
	}
	return c.rankOf[1][member]
}

// Own returns the world ranks of a member's own group.
func (c *Comm) Own(member int32) []int32 {
	if _, ok := c.rankOf[0][member]; c.Inter() && !ok {
		return c.Groups[1]
	}
	return c.Groups[0]
}

// PeerRanks returns the world ranks of the group that a member communicates with: its own, or the other one of two.
func (c *Comm) PeerRanks(member int32) []int32 {
	if _, ok := c.rankOf[0][member]; c.Inter() && ok {
		return c.Groups[1]
	}
	return c.Groups[0]
}

// Peer returns the world rank of a rank that a member names.
func (c *Comm) Peer(member int32, rank int64) (int32, bool) {
	g := c.PeerRanks(member)
	if rank < 0 || rank >= int64(len(g)) {
		return null32, false
	}
	return g[rank], true
}

// leads reports whether collective operations are counted at this rank.
func (c *Comm) leads(rank int32) bool { return c.Groups[0][0] == rank }

// Comms are the communicators of a run. Number 0 is MPI_COMM_WORLD; those for MPI_COMM_SELF come last, one for each
// rank that uses it.
type Comms struct {
	all    []*Comm
	selfs  []bool // ranks that used MPI_COMM_SELF in the first pass
	selfID []int32
}

// unnumbered is the number of a rank's MPI_COMM_SELF that the first pass did not see yet.
const unnumbered = -1

// NewComms returns the communicators of a run of this many ranks, with MPI_COMM_WORLD alone.
func NewComms(ranks int) *Comms {
	world := make([]int32, ranks)
	for i := range world {
		world[i] = int32(i)
	}
	return &Comms{all: []*Comm{NewComm(schema.CommWorld, world)}, selfs: make([]bool, ranks),
		selfID: make([]int32, ranks)}
}

// World returns MPI_COMM_WORLD.
func (s *Comms) World() *Comm { return s.all[0] }

// All returns the communicators by number.
func (s *Comms) All() []*Comm { return s.all }

// Add numbers a communicator.
func (s *Comms) Add(c *Comm) {
	c.ID = int32(len(s.all))
	s.all = append(s.all, c)
}

// Self returns MPI_COMM_SELF of a rank. The first pass only notes that the rank needs one.
func (s *Comms) Self(rank int32) *Comm {
	s.selfs[rank] = true
	if id := s.selfID[rank]; id != 0 {
		return s.all[id]
	}
	c := NewComm(schema.CommSelf, []int32{rank})
	c.ID = unnumbered
	return c
}

// Numbered returns the communicator with that number, of a rank: -1 is its MPI_COMM_SELF in the first pass.
func (s *Comms) Numbered(id, rank int32) *Comm {
	if id < 0 {
		return s.Self(rank)
	}
	return s.all[id]
}

// placeSelf gives a communicator to each rank that used MPI_COMM_SELF.
func (s *Comms) placeSelf() {
	for rank, is := range s.selfs {
		if is {
			c := NewComm(schema.CommSelf, []int32{int32(rank)})
			s.Add(c)
			s.selfID[rank] = c.ID
		}
	}
}

// rows returns the table comms.
func (s *Comms) rows() *schema.Comms {
	b := &schema.Comms{}
	for _, c := range s.all {
		row := schema.NullComm
		row.Comm, row.Kind, row.Name, row.CartDims, row.CartPeriods = c.ID, int16(c.Kind), c.Name, c.Dims, c.Periods
		if c.Parent != nil {
			row.Parent = c.Parent.ID
			if c.Parent.Kind == schema.CommSelf { // the first pass had no number for it
				row.Parent = s.selfID[c.Parent.Groups[0][0]]
			}
		}
		for remote, g := range c.Groups {
			for rank, world := range g {
				row.Remote, row.CommRank, row.WorldRank = int32(remote), int32(rank), world
				b.Append(&row)
			}
		}
	}
	return b
}
