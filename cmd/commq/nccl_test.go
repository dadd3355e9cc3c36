package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/commq/commq/models/simulate/stored"
)

// A training job that was recorded on CPUs runs on nodes of two H100 each: no shorter than the busiest rank computes, no
// longer than that network's collectives one after the other would make it, and slower by trees than by rings.
func TestSimulateTraining(t *testing.T) {
	store := t.TempDir()
	mustCommq(t, "import", filepath.Join("..", "..", "formats", "kineto", "testdata", "gloo.4"), "--store", store)
	predicted := map[string]int64{}
	for _, c := range []struct {
		algorithm string
		longest   int64 // of the 21 collectives, ns
		want      []stored.PredictedNCCL
	}{
		// On 2 nodes of 2, LL on a ring takes 6.6 + 4 x 1 + 2 x 2.7 us, of a broadcast 6.6 + 4 x 2.7 us.
		{"nccl-ring", 20_000, []stored.PredictedNCCL{{Algorithm: "ring", Protocol: "LL", Collectives: 21}}},
		// LL on a tree: 6.8 + 2(0.6 + 5) us. The broadcasts are rings.
		{"nccl-tree", 25_000, []stored.PredictedNCCL{{Algorithm: "ring", Protocol: "LL", Collectives: 3},
			{Algorithm: "tree", Protocol: "LL", Collectives: 18}}},
	} {
		out := mustCommq(t, "simulate", "gloo.4", "--store", store, "--machine", "dgx-h100", "--set", "cpus_per_node=2",
			"--set", "collectives.all="+c.algorithm, "--format", "json")
		var p stored.Answer
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Fatal(err)
		}
		busiest := int64(0)
		for _, r := range p.Ranks {
			busiest = max(busiest, r.ComputeNs)
		}
		if p.Nodes != 2 || busiest == 0 || p.PredictedNs < busiest || p.PredictedNs < *p.IdealNs ||
			p.PredictedNs > *p.IdealNs+21*c.longest {
			t.Errorf("%s: %d nodes, %d ns, ideal network %d ns, busiest rank %d ns", c.algorithm, p.Nodes, p.PredictedNs,
				*p.IdealNs, busiest)
		}
		if len(p.NCCL) != len(c.want) {
			t.Fatalf("%s: %+v; want %+v", c.algorithm, p.NCCL, c.want)
		}
		for i, n := range p.NCCL {
			if n != c.want[i] {
				t.Errorf("%s: %+v; want %+v", c.algorithm, n, c.want[i])
			}
		}
		predicted[c.algorithm] = p.PredictedNs
	}
	if predicted["nccl-tree"] <= predicted["nccl-ring"] {
		t.Errorf("by trees %d ns, by rings %d ns", predicted["nccl-tree"], predicted["nccl-ring"])
	}
}
