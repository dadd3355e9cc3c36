package regress

import "testing"

// 117 rows are divided over the ranks, rounded up, 16 bytes for each: on 16 ranks there are 8 rows for each, and the
// last one gets none. Blocks of 234 rows with 8 bytes each are the same on 7 to 11 ranks, and leave it 9 rows on 16:
// nothing is exact.
func TestBlocksThatAreUsedUp(t *testing.T) {
	padded := func(p, r int64) int64 {
		b := (117 + p - 1) / p
		return 16 * max(min(b, 117-r*b), 0)
	}
	var samples []Sample
	for _, p := range []int32{7, 8, 9, 11} {
		for r := range p {
			samples = append(samples, Sample{Ranks: p, Rank: r, Value: padded(int64(p), int64(r))})
		}
	}
	law := fitOne(t, 8, samples)
	if e, err := law.Predict(16, 15, nil, nil, nil); err != nil || e.Exact || e.Low > 0 {
		t.Errorf("rank 15 of 16: %+v, %v, want an interval with 0", e, err)
	}
	if e, err := law.Predict(12, 11, nil, nil, nil); err != nil || e.Low > 112 || e.High < 112 {
		t.Errorf("rank 11 of 12: %+v, %v, want 16 times 7 rows in the interval", e, err)
	}
}
