package handles

import (
	"strings"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// dups are the definitions of a rank of 4 that made so many duplicates of MPI_COMM_WORLD. Rank 0, their leader, lists
// the members.
func dups(rank int32, n int) *Definitions {
	d := NewDefinitions(rank, "file")
	for i := range n {
		c := Comm{ID: int64(i + 2), Parent: parentWorld, Fixed: spool.CommDef{Kind: int32(schema.CommDup),
			Instance: uint64(i), Size: 4, Rank: rank}}
		if rank == 0 {
			c.Members, c.Fixed.Members = []int32{0, 1, 2, 3}, 4
		}
		d.Comms = append(d.Comms, c)
	}
	return d
}

// TestManyCommunicators: members that a definition lists do not count against the limit for damaged files; those that
// only a size claims do.
func TestManyCommunicators(t *testing.T) {
	const made = 10
	whole := []*Definitions{dups(0, made), dups(1, made), dups(2, made), dups(3, made)}
	if table, _, err := unify(4, whole, 3); err != nil || len(table.comms) != 1+made {
		t.Errorf("%v", err)
	}
	_, _, err := unify(4, whole[1:], 4*made-1)
	if err == nil || !strings.Contains(err.Error(), "file: its communicators have") {
		t.Errorf("without the leader: %v", err)
	}
	if _, _, err := unify(4, whole[1:], 4*made); err != nil {
		t.Errorf("without the leader, at the limit: %v", err)
	}
}
