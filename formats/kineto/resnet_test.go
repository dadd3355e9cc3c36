package kineto

import (
	"slices"
	"testing"

	"github.com/commq/commq/schema"
)

// rebuilt are the elements of the buckets in which DistributedDataParallel reduces the gradients of ResNet-50, in their
// order: the public traces of it on GPUs with NCCL have the same (docs/validation/training.md).
var rebuilt = []int64{2_049_000, 7_875_584, 6_563_840, 6_637_568, 2_431_040}

// parameters are those of ResNet-50, all of them floats.
const parameters = 25_557_032

// testdata/resnet.py trains ResNet-50: in step 0 all gradients are one bucket, after it they are five.
func TestBucketsOfResNet(t *testing.T) {
	r := mustImport(t, "testdata/resnet.2")
	if r.Ended != "finalized" || r.Ranks != 2 {
		t.Errorf("%s, %d ranks", r.Ended, r.Ranks)
	}
	const means, batches, buckets, sizes = 53_120 * 4, 53 * 8, 162 * 4, 5 * 4 // what process 0 broadcasts
	for rank := range int32(2) {
		var reduced, received [][]int64 // by step
		for _, e := range r.Events {
			n := len(reduced) - 1
			switch {
			case e.Rank != rank:
			case e.Class == int16(schema.ClassMark):
				reduced, received = append(reduced, nil), append(received, nil)
			case e.Call == int16(schema.CallIallreduce):
				reduced[n] = append(reduced[n], e.SendCount)
				if e.SendBytes != 4*e.SendCount || e.RecvBytes != e.SendBytes || e.Comm != 0 {
					t.Errorf("rank %d: %d elements, %d B sent, %d B received on communicator %d", rank, e.SendCount,
						e.SendBytes, e.RecvBytes, e.Comm)
				}
			case e.Call == int16(schema.CallIbcast):
				received[n] = append(received[n], e.SendBytes+e.RecvBytes) // one of them is 0
				if e.RootWorld != 0 {
					t.Errorf("rank %d: a broadcast of rank %d", rank, e.RootWorld)
				}
			}
		}
		wantReduced := [][]int64{{parameters}, rebuilt, rebuilt, rebuilt}
		wantReceived := [][]int64{{means, batches}, {buckets, sizes, means, batches}, {means, batches}, {means, batches}}
		if !slices.EqualFunc(reduced, wantReduced, slices.Equal) {
			t.Errorf("rank %d: buckets %v, want %v", rank, reduced, wantReduced)
		}
		if !slices.EqualFunc(received, wantReceived, slices.Equal) {
			t.Errorf("rank %d: broadcasts %v, want %v", rank, received, wantReceived)
		}
	}
}
