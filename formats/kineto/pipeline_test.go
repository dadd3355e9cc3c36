package kineto

import (
	"reflect"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

// pipelineJob is a job of testdata/pipeline.py.
type pipelineJob struct{ dp, pp, tp int }

// on is an operation of a rank on a communicator.
type on struct {
	comm string
	call schema.CallID
}

// sums are the calls and the bytes sent of all steps together.
type sums struct{ calls, bytes int64 }

// The arithmetic of testdata/pipeline.py.
const (
	pipelineSteps, microBatches = 2, 2
	activations, layer          = 8 * 120 * 4, 120 * 120 * 4
)

// want returns what each rank does, and the messages between ranks.
func (p pipelineJob) want() (ranks []map[on]sums, messages map[[2]int32]sums) {
	messages = map[[2]int32]sums{}
	stages := "mesh_pp"
	if p.dp*p.tp == 1 {
		stages = "default_pg" // PyTorch makes no second group of all processes
	}
	for rank := range p.dp * p.pp * p.tp {
		stage := rank / p.tp % p.pp
		does := map[on]sums{}
		add := func(comm string, call schema.CallID, calls, bytes int) {
			s := does[on{comm, call}]
			does[on{comm, call}] = sums{s.calls + int64(pipelineSteps*calls), s.bytes + int64(pipelineSteps*calls*bytes)}
		}
		number := 0
		if rank == 0 {
			number = 8 // the root gives the number of the step
		}
		add("default_pg", schema.CallIbcast, 1, number)
		add("mesh_tp", schema.CallIallreduce, 2*microBatches, activations)
		add(stages, schema.CallIallreduce, 1, 4)
		add("mesh_dp", schema.CallIallreduce, 2, layer/p.tp)
		add("mesh_dp", schema.CallIallgather, 1, layer/p.tp/p.dp)
		for _, other := range []int{stage - 1, stage + 1} {
			if other < 0 || other >= p.pp {
				continue
			}
			add(stages, schema.CallIsend, microBatches, activations)
			add(stages, schema.CallIrecv, microBatches, 0)
			messages[[2]int32{int32(rank), int32(rank + (other-stage)*p.tp)}] = sums{pipelineSteps * microBatches,
				pipelineSteps * microBatches * activations}
		}
		ranks = append(ranks, does)
	}
	return ranks, messages
}

// testdata/pipeline.py tells what its processes do: the imported runs have exactly that, on each group, and each
// message goes to the right stage. Gloo's traces tell only the rank in a group of which they tell nothing.
func TestPipelineOnGloo(t *testing.T) {
	for path, job := range map[string]pipelineJob{
		"testdata/pipeline.2": {1, 2, 1},
		"testdata/pipeline.4": {1, 2, 2},
		"testdata/pipeline.8": {2, 2, 2},
	} {
		r := mustImport(t, path)
		text := strings.Join(r.Warnings, "\n")
		if r.Ended != "finalized" || r.Counts.UnmatchedSends != 0 || r.Counts.UnmatchedReceives != 0 ||
			!strings.Contains(text, "Sends and receives whose group the traces do not name: ") {
			t.Errorf("%s: %s, %+v\n%s", path, r.Ended, r.Counts, text)
		}
		names := map[int32]string{}
		for _, m := range r.Comms {
			names[m.Comm] = m.Name
		}
		ranks, messages := job.want()
		for rank, want := range ranks {
			got := map[on]sums{}
			for _, e := range r.Events {
				switch schema.Class(e.Class) {
				case schema.ClassCollective, schema.ClassSend, schema.ClassRecv:
					if e.Rank == int32(rank) {
						k := on{names[e.Comm], schema.CallID(e.Call)}
						got[k] = sums{got[k].calls + 1, got[k].bytes + max(0, e.SendBytes)}
					}
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: rank %d: %v, want %v", path, rank, got, want)
			}
		}
		got := map[[2]int32]sums{}
		for _, m := range r.Messages {
			k := [2]int32{m.Src, m.Dst}
			got[k] = sums{got[k].calls + 1, got[k].bytes + m.Bytes}
		}
		if !reflect.DeepEqual(got, messages) {
			t.Errorf("%s: messages %v, want %v", path, got, messages)
		}
	}
}
