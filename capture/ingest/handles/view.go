package handles

import (
	"fmt"

	"github.com/commq/commq/schema"
)

// View is a communicator as one rank sees it.
type View struct {
	// ID is the communicator's id in the run.
	ID int32
	// Name is empty when the communicator was not named.
	Name string
	Kind schema.CommKind
	// Own are the world ranks of the rank's own group, -1 where one is not known.
	Own []int32
	// Peers are the world ranks of the group that peers belong to: Own, or the remote group of an intercommunicator.
	Peers []int32
	// Rank is the rank's index in Own.
	Rank int32
	// Inter is true for an intercommunicator.
	Inter bool
}

// view returns communicator id as seen by the process with this world rank, which has this rank in its group.
func (t *Table) view(id, world, rank int32) View {
	m := &t.comms[id]
	v := View{ID: id, Name: m.name, Kind: schema.CommKind(m.kind), Own: m.groups[0], Peers: m.groups[0], Rank: rank}
	if len(m.groups[1]) == 0 {
		return v
	}
	v.Inter, v.Peers = true, m.groups[1]
	if int(rank) >= len(v.Own) || v.Own[rank] != world {
		v.Own, v.Peers = v.Peers, v.Own
	}
	return v
}

// Views are the communicators of a job by rank and the rank's own numbers.
type Views map[int32]map[int32]View

// maxNumber is the highest number of a communicator that a CALL slot can hold.
const maxNumber = 1<<31 - 1

// NewViews finds out which communicators of different ranks are the same, and returns how each rank sees its own. It
// is for readers of a spool that is still being written, and treats MPI_COMM_SELF as used everywhere. size is that of
// MPI_COMM_WORLD. The error names the file that is damaged.
func NewViews(size int32, ranks []*Definitions) (Views, error) {
	for _, d := range ranks {
		d.UsesSelf = true
	}
	table, _, err := UnifyComms(size, ranks)
	if err != nil {
		return nil, err
	}
	views := Views{}
	for _, r := range ranks {
		numbers := map[int32]View{World: table.view(0, r.Rank, r.Rank)}
		if self, ok := table.self[r.Rank]; ok {
			numbers[Self] = table.view(self, r.Rank, 0)
		}
		for i := range r.Comms {
			c := &r.Comms[i]
			if _, ok := c.identify(); !ok && c.ID >= 0 && c.ID <= maxNumber {
				numbers[int32(c.ID)] = table.view(c.global, r.Rank, c.Fixed.Rank)
			}
		}
		views[r.Rank] = numbers
	}
	return views, nil
}

// Text describes the communicator: its name, or else how it was made and its size.
func (v *View) Text() string {
	if v.Name != "" {
		return v.Name
	}
	kind := "a communicator"
	if k := int(v.Kind); k >= 0 && k < len(schema.CommKindNames) {
		kind = "a " + schema.CommKindNames[k] + " communicator"
	}
	if v.Inter {
		return fmt.Sprintf("%s of %d and %d ranks", kind, len(v.Own), len(v.Peers))
	}
	return fmt.Sprintf("%s of %d ranks", kind, len(v.Own))
}
