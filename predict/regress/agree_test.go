package regress

import (
	"math"
	"testing"
)

// A table and the ranks of runs with the same numbers get the same answer: it is exact for both or for neither, has the
// same value if it is, and an interval of whole numbers with the truth if it is not.
func TestTablesAndRunsAgree(t *testing.T) {
	for _, c := range []struct {
		what  string
		ranks []int32
		value func(p int64) int64
		asked map[int32]bool // whether the answer is exact
	}{
		// 2048 times the blocks of 32 cells fits as well, but has no cell for each of 64 ranks.
		{"65536/P", []int32{4, 8, 16, 32}, func(p int64) int64 { return 65536 / p }, map[int32]bool{64: true, 128: true, 48: false}},
		// One number of each of four runs does not tell blocks of 1000 from products of blocks.
		{"floor(1000/P)", []int32{4, 8, 16, 32}, func(p int64) int64 { return 1000 / p }, map[int32]bool{64: false, 48: false}},
		// Blocks of 24 x 30 cells on 4 x 6 ranks have 32 or 28.
		{"720/P", []int32{4, 6, 8, 12}, func(p int64) int64 { return 720 / p }, map[int32]bool{24: false, 16: false}},
		{"5040/P", []int32{4, 6, 9, 12}, func(p int64) int64 { return 5040 / p }, map[int32]bool{18: true, 36: false}},
		{"3/4 P", []int32{4, 8, 16, 32}, func(p int64) int64 { return 3 * p / 4 }, map[int32]bool{64: true, 10: false}},
		{"constant", []int32{4, 8, 16, 32}, func(int64) int64 { return 4096 }, map[int32]bool{64: true}},
		{"8 (P-1)", []int32{3, 5, 9, 11}, func(p int64) int64 { return 8 * (p - 1) }, map[int32]bool{13: true, 64: true}},
		{"100 + 8 P", []int32{4, 8, 16, 32}, func(p int64) int64 { return 100 + 8*p }, map[int32]bool{64: true}},
	} {
		var points []Point
		var samples []Sample
		for _, p := range c.ranks {
			points = append(points, Point{int64(p), float64(c.value(int64(p)))})
			for r := range p {
				samples = append(samples, Sample{Ranks: p, Rank: r, Value: c.value(int64(p))})
			}
		}
		curve, err := Fit(points)
		if err != nil {
			t.Fatal(err)
		}
		law := fitOne(t, 1, samples)
		for p, exact := range c.asked {
			want := float64(c.value(int64(p)))
			a := curve.Predict(int64(p))
			b, err := law.Predict(p, 0, nil, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			for who, x := range map[string]Expected{
				"table": {Value: a.Value, Low: a.Low, High: a.High, Exact: a.Exact}, "runs": b} {
				if x.Exact != exact || exact && x.Value != want || x.Low > want || x.High < want ||
					!x.Exact && (x.Low != math.Floor(x.Low) || x.High != math.Ceil(x.High)) {
					t.Errorf("%s on %d ranks, by the %s: %+v, want %v, exact: %v", c.what, p, who, x, want, exact)
				}
			}
		}
	}
}
