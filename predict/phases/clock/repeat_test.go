package clock_test

import (
	"compress/gzip"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/commq/commq/predict/phases/clock"
	"github.com/commq/commq/predict/signature"
)

// Ticks do not depend on whether repetitions are skipped: those of the calls that are visited all the same are equal,
// and so is the last tick. Of CG on 16 ranks most calls are skipped: it repeats 15 times 25 iterations.
func TestSkippedRepetitions(t *testing.T) {
	for name, most := range map[string]float64{"cg.W.16": 0.2, "lu.W.8": 0.5, "sp.W.9": 0.2, "bt.W.16": 0.2, "mg.W.8": 1,
		"is.W.8": 1, "halo.12": 0.7} {
		t.Run(name, func(t *testing.T) {
			s := readSignature(t, name)
			all := make([][]int32, s.Ranks)
			want, err := clock.Run(s, func(rank int32, _ int64, tick int32) { all[rank] = append(all[rank], tick) })
			if err != nil {
				t.Fatal(err)
			}
			visited, seen := 0, make([]int64, s.Ranks)
			wanted := func(rank int32) int64 { // a call in the middle, then none
				if middle := int64(len(all[rank]) / 2); seen[rank] <= middle {
					return middle
				}
				return math.MaxInt64
			}
			got, err := clock.RunSome(s, wanted, func(rank int32, seq int64, tick int32) {
				if visited++; all[rank][seq] != tick {
					t.Fatalf("rank %d, call %d: tick %d, want %d", rank, seq, tick, all[rank][seq])
				}
				if middle := int64(len(all[rank]) / 2); seen[rank] <= middle && seq > middle {
					t.Fatalf("rank %d: call %d was not visited", rank, middle)
				}
				seen[rank] = seq + 1
			})
			if err != nil || got.Last != want.Last || len(got.Unmatched) != len(want.Unmatched) {
				t.Errorf("%v, %v; want %v", got, err, want)
			}
			for rank, n := range seen {
				if n != int64(len(all[rank])) {
					t.Errorf("rank %d: %d calls, want %d", rank, n, len(all[rank]))
				}
			}
			if share := float64(visited) / float64(s.Calls); share > most {
				t.Errorf("%.0f %% of the calls are visited, want at most %.0f %%", 100*share, 100*most)
			}
		})
	}
}

func readSignature(t *testing.T, name string) *signature.Signature {
	t.Helper()
	f, err := os.Open(filepath.Join("../../../testdata/signatures", name+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	s, err := signature.Read(z)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
