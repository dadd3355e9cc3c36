package diagnose

import (
	"slices"
	"testing"

	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
)

// A stretch may end before its cells do: what is computed later stays.
func TestChangesEndWithTheirStretch(t *testing.T) {
	c := &computing{sites: map[int32]int64{7: 1}, cells: cells{}}
	b := &schema.Events{}
	for range 4 {
		b.Append(&schema.Event{Callsite: 7, ComputeNs: 100})
	}
	c.cells.add(newWalk(c.sites), b)
	k := c.changedBy(map[cell][]int64{{0, 7, 7}: {0, -50}}) // of the slices 0 to 3
	k.apply(b)
	if want := []int64{100, 50, 100, 100}; !slices.Equal(b.ComputeNs, want) {
		t.Errorf("computed %v; want %v", b.ComputeNs, want)
	}
}

// On a network without costs NCCL's collectives still take time, except on the ideal machine itself.
func TestIdealNetworkHasNoNCCL(t *testing.T) {
	m, err := models.Named("dgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	free := *m
	free.Network, free.IntraNode = models.Interconnect{}, models.Interconnect{}
	if IdealNetwork(m) || IdealNetwork(&free) || !IdealNetwork(m.Ideal()) {
		t.Error(IdealNetwork(m), IdealNetwork(&free), IdealNetwork(m.Ideal()))
	}
}
