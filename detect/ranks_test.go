package detect

import (
	"runtime"
	"testing"

	"github.com/commq/commq/detect/combine"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// torus returns a run of side^3 ranks on a periodic grid. Each repeatedly sends its own payload to its six
// neighbours, with one call site per direction. The rows are made as they are read.
func torus(side int, times int) *Run {
	n := side * side * side
	world := run.Comm{}
	for r := range n {
		world.Members = append(world.Members, int32(r))
	}
	run := &Run{Ranks: int32(n), HashBits: 64, Comms: []run.Comm{world, {ID: 1, Members: world.Members}},
		Datatypes: []combine.Datatype{{ID: 7, Named: true, Name: "MPI_DOUBLE", Bytes: 8}}}
	strides := [3]int{side * side, side, 1}
	run.Messages = allColumns(func(add func(*schema.Messages) error) error {
		for turn := range times {
			for first := 0; first < n; first += 1 << 10 {
				b := schema.NewBatch(&schema.MessagesTable).(*schema.Messages)
				last := min(n, first+1<<10)
				b.Resize(6 * (last - first))
				for i := range b.Src {
					rank, way := first+i/6, i%6
					axis := strides[way/2]
					at := rank / axis % side
					to := (at + 1) % side
					if way%2 == 1 {
						to = (at + side - 1) % side
					}
					seq := int64(6*turn + way)
					b.Src[i], b.Dst[i], b.Comm[i], b.Tag[i], b.Bytes[i] = int32(rank), int32(rank+(to-at)*axis), 1,
						int32(way), 4608
					b.PayloadHash[i], b.PayloadHead[i], b.PayloadSum[i] = (int64(turn)<<40|int64(6*rank+way))*0x5851f42d4c957f2d, int64(rank), schema.NullInt64
					b.SendSeq[i], b.RecvPostSeq[i], b.RecvDoneSeq[i] = seq, seq, seq
					b.SendCallsite[i], b.RecvCallsite[i], b.SendDatatype[i] = int32(3+way%2), int32(3+way%2), 7
					b.SrcBuffer[i], b.DstBuffer[i] = 1<<20+8192*int64(way), 1<<21+8192*int64(way)
				}
				if err := add(b); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return run
}

// allocated returns the number of bytes that a function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Memory per rank does not grow with the number of ranks when each communicates with a few others.
func TestMemoryIsLinearInRanks(t *testing.T) {
	perRank := func(side int) (bytes float64) {
		run := torus(side, 1)
		return float64(allocated(func() {
			if got := found(t, run, Options{}); len(got) > 0 {
				t.Errorf("%d ranks: found %v, want nothing", run.Ranks, got)
			}
		})) / float64(run.Ranks)
	}
	few, many := perRank(12), perRank(24)
	t.Logf("%.0f and %.0f bytes per rank", few, many)
	if many > 2*few {
		t.Errorf("a rank takes %.0f bytes of %d ranks, %.0f of %d", few, 12*12*12, many, 24*24*24)
	}
}
