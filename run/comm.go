package run

import (
	"context"
	"slices"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Outside stands among the members of a communicator for a process outside the run's MPI_COMM_WORLD.
const Outside int32 = -1

// Comm is a communicator.
type Comm struct {
	// ID is its id in the tables, Parent that of the communicator it was made from, schema.NullInt32 for none.
	ID, Parent int32
	// Kind is how it was made.
	Kind schema.CommKind
	// Inter marks an intercommunicator.
	Inter bool
	// HasOutside marks a communicator with a process outside the run's MPI_COMM_WORLD.
	HasOutside bool
	// FirstGroup is the size of an intercommunicator's first group, and that of the whole of an intracommunicator.
	FirstGroup int32
	// Name is the name it was given; "" for none.
	Name string
	// Members are the world ranks of its members by their rank in it, or Outside. An intercommunicator has those of its
	// first group before those of the other.
	Members []int32
	// topology has its neighbourhoods; nil where it has none, or only those of the communicator that it is a copy of.
	topology *topology
}

// Inside returns the members that are processes of the run's MPI_COMM_WORLD. The result may be Members itself.
func (c *Comm) Inside() []int32 {
	if !c.HasOutside {
		return c.Members
	}
	return slices.DeleteFunc(slices.Clone(c.Members), func(rank int32) bool { return rank == Outside })
}

// Intra returns the intracommunicators whose members are all of the run's MPI_COMM_WORLD.
func Intra(comms []Comm) (intra []Comm) {
	for i := range comms {
		if !comms[i].Inter && !comms[i].HasOutside {
			intra = append(intra, comms[i])
		}
	}
	return intra
}

// readComms reads the communicators of a run. All members share one array: a run may have a million
// communicators of one rank.
func readComms(ctx context.Context, from writer.Opened) ([]Comm, error) {
	var comms []Comm
	var members []int32
	var ends []int
	err := from.ReadTable(ctx, &schema.CommsTable, smallRows, func(b schema.Batch) error {
		t := b.(*schema.Comms)
		for i, id := range t.Comm {
			if n := len(comms); n == 0 || comms[n-1].ID != id {
				comms = append(comms, Comm{ID: id, Parent: t.Parent[i], Kind: schema.CommKind(t.Kind[i])})
				ends = append(ends, len(members))
			}
			c := &comms[len(comms)-1]
			c.addMember(t, i)
			world := t.WorldRank[i]
			if world == schema.NullInt32 {
				world = Outside
			}
			members = append(members, world)
			ends[len(ends)-1] = len(members)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, first := 0, 0; i < len(comms); i++ {
		comms[i].Members = members[first:ends[i]:ends[i]]
		first = ends[i]
	}
	return comms, nil
}

// addMember takes what row i of the table says of the communicator, but for the member itself.
func (c *Comm) addMember(t *schema.Comms, i int) {
	if t.Name[i] != schema.NullText {
		c.Name = t.Name[i]
	}
	c.addTopology(t, i)
	c.HasOutside = c.HasOutside || t.WorldRank[i] == schema.NullInt32
	if t.Remote[i] != 0 {
		c.Inter = true
	} else {
		c.FirstGroup++
	}
}
