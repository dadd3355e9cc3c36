package simulate

import (
	"math"
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

// 1,024 ranks, 8 on each of 128 nodes, do what a training step with tensor and data parallel groups does. By hand, on
// dgx-h100:
//
//	all-reduce of 2^21 bytes in each node, NVLS:          25 us                            272 GB/s
//	all-gather to 2^24 bytes, a rank of each node, PAT:   8 + 7 x 14/3.5 + 128 x 2.8 us    36 GB/s
//	all-reduce of 2^25 bytes on all, NVLS over a tree:    25 + 2 x 7 x 20.9 us             364 x 1024/2046 GB/s
func TestNCCLOnManyRanks(t *testing.T) {
	const ranks, perNode = 1024, 8
	comms := make([]run.Comm, 1+ranks/perNode+perNode)
	comms[0] = run.Comm{ID: 1}
	var calls [][]call
	for rank := range int32(ranks) {
		node, gpu := 1+rank/perNode, int32(1+ranks/perNode)+rank%perNode
		for _, c := range []int32{0, node, gpu} {
			comms[c].ID = c + 1
			comms[c].Members = append(comms[c].Members, rank)
		}
		calls = append(calls, []call{
			{schema.CallAllreduce, 0, on(node+1, 0, 1<<21, 1<<21)},
			{schema.CallAllgather, 0, on(gpu+1, 0, 1<<17, 1<<24)},
			{schema.CallAllreduce, 0, on(1, 0, 1<<25, 1<<25)},
		})
	}
	m, err := models.Named("dgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	program, rows := rowsOf(nil, comms, calls...)
	r, err := simulated(m, program, Paper, rows)
	if err != nil {
		t.Fatal(err)
	}
	us := 25 + float64(1<<21)/272e3 + 8 + 7*14/3.5 + 128*2.8 + float64(1<<24)/36e3 + 25 + 14*20.9 +
		float64(1<<25)/(364e3*1024/2046)
	want := []NCCLCount{{nccl.NVLS, nccl.Simple, 128}, {nccl.PAT, nccl.Simple, 8}, {nccl.NVLSTree, nccl.Simple, 1}}
	if got := float64(r.Time) / 1e6; math.Abs(got-us) > 0.001 || !slices.Equal(r.NCCL, want) || r.Nodes != 128 {
		t.Errorf("%.3f us, %v, %d nodes; want %.3f us, %v", got, r.NCCL, r.Nodes, us, want)
	}
}

// NCCL does a reduction in both dialects, also where Dimemas would send messages to the root, and an all-reduce without
// bytes or of one rank takes no time and does not count. By hand, on a node of dgx-h100 with 3 GPUs: LL on a ring takes
// 6.6 + 0.6 us for the 4 bytes of the reduce, at 141 GB/s.
func TestNCCLReduces(t *testing.T) {
	comms := []run.Comm{{ID: 1, Members: []int32{0, 1, 2}}, {ID: 2, Members: []int32{0}}}
	var ranks [][]call
	for rank := range 3 {
		calls := []call{
			{schema.CallReduce, 0, func(e *schema.Event) { on(1, 0, 4, 4)(e); e.RootWorld = 1 }},
			{schema.CallAllreduce, 0, on(1, 1, 0, 0)},
		}
		if rank == 0 {
			calls = append(calls, call{schema.CallAllreduce, 0, on(2, 0, 1<<20, 1<<20)})
		}
		ranks = append(ranks, calls)
	}
	for _, dialect := range []Dialect{Paper, Dimemas5} {
		m, err := models.Named("dgx-h100")
		if err != nil {
			t.Fatal(err)
		}
		program, rows := rowsOf(nil, comms, ranks...)
		r, err := simulated(m, program, dialect, rows)
		if err != nil {
			t.Fatal(err)
		}
		if got := Nanoseconds(r.Time); got != 7200 || !slices.Equal(r.NCCL, []NCCLCount{{nccl.Ring, nccl.LL, 1}}) ||
			r.Collectives != 3 || r.Messages != 0 {
			t.Errorf("%s: %d ns, %v, %d collectives, %d messages", dialect, got, r.NCCL, r.Collectives, r.Messages)
		}
	}
}
