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

// 354 rows are divided over the ranks, rounded up: on 32 ranks there are 12 for each, and the last two get none. On 64
// ranks, where there are 6 for each, ranks from 59 on get none.
func TestRanksAfterTheLastBlock(t *testing.T) {
	var samples []Sample
	for _, p := range []int32{2, 4, 8, 16} {
		for r := range p {
			b := (354 + p - 1) / p
			samples = append(samples, Sample{Ranks: p, Rank: r, Value: 2 * int64(max(min(b, 354-r*b), 0))})
		}
	}
	law := fitOne(t, 2, samples)
	for _, x := range []struct{ ranks, rank int32 }{{32, 30}, {32, 31}, {64, 59}, {64, 63}} {
		if e, err := law.Predict(x.ranks, x.rank, nil, nil, nil); err != nil || e.Value != 0 || e.Low != 0 || e.Exact {
			t.Errorf("rank %d of %d: %+v, %v, want 0, which is not exact", x.rank, x.ranks, e, err)
		}
	}
}

// Of such blocks the last ranks send nothing, as they are at the end of an axis: all others have as many rows, and 359
// rows on 64 ranks may be used up before rank 61.
func TestBlocksWithoutTheShortOne(t *testing.T) {
	var samples []Sample
	for _, p := range []int32{2, 4, 8, 16} {
		for r := range p - 1 {
			samples = append(samples, Sample{Ranks: p, Rank: r, Value: 32 * int64(min((359+p-1)/p, 359-r*((359+p-1)/p)))})
		}
	}
	law := fitOne(t, 32, samples)
	if e, err := law.Predict(64, 61, nil, nil, nil); err != nil || e.Exact || e.Low > 0 {
		t.Errorf("rank 61 of 64: %+v, %v, want an interval with 0", e, err)
	}
}
