package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Extra-P refuses files in which a metric of a place has not a value at each number of ranks. MG's runs of class W differ
// in what was recorded and in which sizes of messages they have; the Allreduces send 1,024 bytes for each rank.
func TestExportExtrap(t *testing.T) {
	out := filepath.Join(t.TempDir(), "mg.jsonl")
	mustCommq(t, "export", "extrap", "--run", filepath.Join("..", "..", "testdata", "runs", "mg.W.*"), "-o", out)
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type key struct{ callpath, metric string }
	values := map[key]map[int32]float64{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var l struct {
			Params           struct{ P int32 }
			Callpath, Metric string
			Value            float64
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		k := key{l.Callpath, l.Metric}
		if values[k] == nil {
			values[k] = map[int32]float64{}
		}
		values[k][l.Params.P] = l.Value
	}
	for k, v := range values {
		if len(v) != 5 || !strings.HasPrefix(k.callpath, "main") {
			t.Errorf("%v: %v", k, v)
		}
	}
	for p, v := range values[key{"main->MPI_Allreduce", "collective_bytes"}] {
		if v != 1024*float64(p) {
			t.Errorf("%d ranks: %v bytes of Allreduce, want %d", p, v, 1024*p)
		}
	}
	if len(values[key{"main->MPI_Allreduce", "collective_bytes"}]) == 0 || len(values[key{"main", "ranks"}]) != 0 {
		t.Error(len(values))
	}
}
