package generate

import (
	"math/rand/v2"
	"testing"

	"github.com/commq/commq/predict/signature/fold"
)

// unfold returns the numbers of items.
func unfold(items []fold.Item) (all []int32) {
	fold.Each(items, func(x int32) bool {
		all = append(all, x)
		return true
	})
	return all
}

// TestZip: what zip visits are the pairs at equal places of the unfolded sequences.
func TestZip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var draw func(depth int) []fold.Item
	draw = func(depth int) (items []fold.Item) {
		for range 1 + rng.IntN(3) {
			if depth > 0 && rng.IntN(2) == 0 {
				items = append(items, fold.Item{Times: int64(2 + rng.IntN(4)), Items: draw(depth - 1)})
			} else {
				items = append(items, fold.Item{Value: int32(rng.IntN(3))})
			}
		}
		return items
	}
	for range 20000 {
		a, b := draw(3), draw(3)
		want, got := map[[2]int32]bool{}, map[[2]int32]bool{}
		x, y := unfold(a), unfold(b)
		for i := range min(len(x), len(y)) {
			want[[2]int32{x[i], y[i]}] = true
		}
		zip(a, b, func(x, y int32) { got[[2]int32{x, y}] = true })
		if len(got) != len(want) {
			t.Fatalf("zip of %v and %v gives %v; want %v", a, b, got, want)
		}
		for k := range want {
			if !got[k] {
				t.Fatalf("zip of %v and %v gives %v; want %v", a, b, got, want)
			}
		}
	}
}

// TestZipRepeats: sequences that repeat as many numbers a million million times are not unfolded.
func TestZipRepeats(t *testing.T) {
	a := []fold.Item{{Value: 1}, {Times: 1e12, Items: []fold.Item{{Value: 1}, {Value: 2}}}}
	b := []fold.Item{{Value: 3}, {Times: 5e11, Items: []fold.Item{{Value: 4}, {Value: 5}}}, {Times: 5e11, Items: []fold.Item{{Value: 6}, {Value: 7}}}}
	n := 0
	zip(a, b, func(int32, int32) { n++ })
	if n != 5 {
		t.Errorf("zip visits %d pairs; want 5", n)
	}
}
