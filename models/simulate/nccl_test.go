package simulate

import (
	"slices"
	"testing"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/nccl"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Four ranks on two nodes all-reduce 2^20 bytes on all of them, and then on the ranks of each node. By hand, on
// dgx-h100 with two GPUs and two NICs a node (4 channels of 24 GB/s between nodes; inside a node 12 of 30), where each
// is the fastest protocol:
//
//	ring of all, LL128:     14 + 4 x 1.9 + 2 x 4 = 29.6 us     0.92 x 96 x 4/6 = 58.88 GB/s                    47,409 ns
//	ring of two, LL:        6.6 + 2 x 0.6 = 7.8 us             141 x 2/2 GB/s                                  15,237 ns
//	tree of all, LL128:     14 + 2(1.25 + 8.5) = 33.5 us       4 x 36.7 x 0.85/2 x 0.6 = 37.434 GB/s           61,511 ns
//	tree of two, Simple:    8.4 + 2 x 4 = 16.4 us              0.92 x 360/2 x 0.5 = 82.8 GB/s                  29,064 ns
func TestNCCL(t *testing.T) {
	const bytes = 1 << 20
	comms := []run.Comm{{ID: 1, Members: []int32{0, 1, 2, 3}}, {ID: 2, Members: []int32{0, 1}},
		{ID: 3, Members: []int32{2, 3}}}
	var ranks [][]call
	for rank := range 4 {
		ranks = append(ranks, []call{
			{schema.CallAllreduce, 0, on(1, 0, bytes, bytes)},
			{schema.CallAllreduce, 0, on(int32(2+rank/2), 0, bytes, bytes)},
		})
	}
	for _, c := range []struct {
		algorithm string
		ns        int64
		counts    []NCCLCount
	}{
		{"nccl-ring", 47_409 + 15_237, []NCCLCount{{nccl.Ring, nccl.LL, 2}, {nccl.Ring, nccl.LL128, 1}}},
		{"nccl-tree", 61_511 + 29_064, []NCCLCount{{nccl.Tree, nccl.LL128, 1}, {nccl.Tree, nccl.Simple, 2}}},
		{"nccl", 47_409 + 15_237, []NCCLCount{{nccl.Ring, nccl.LL, 2}, {nccl.Ring, nccl.LL128, 1}}},
	} {
		for _, dialect := range []Dialect{Paper, Dimemas5} {
			m, err := models.Named("dgx-h100")
			if err != nil {
				t.Fatal(err)
			}
			for _, kv := range [][2]string{{"cpus_per_node", "2"}, {"nccl.nics_per_node", "2"},
				{"collectives.all", c.algorithm}} {
				if err := m.Set(kv[0], kv[1]); err != nil {
					t.Fatal(err)
				}
			}
			program, rows := rowsOf(nil, comms, ranks...)
			r, err := simulated(m, program, dialect, rows)
			if err != nil {
				t.Fatal(err)
			}
			if got := Nanoseconds(r.Time); got < c.ns-1 || got > c.ns+1 || !slices.Equal(r.NCCL, c.counts) {
				t.Errorf("%s, %s: %d ns, %v; want %d ns, %v", c.algorithm, dialect, got, r.NCCL, c.ns, c.counts)
			}
		}
	}
}
