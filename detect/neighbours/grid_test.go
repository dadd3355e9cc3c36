package neighbours

import (
	"fmt"
	"testing"
)

// TestNeighborsOfGrids gives exchanges of 12 ranks as steps from each rank to its neighbours on a grid of 3 x 4 with
// a periodic second dimension, and the expected grid, worked out by hand.
func TestNeighborsOfGrids(t *testing.T) {
	grid := func(r int, along ...int) (out []int) {
		x, y := r/4, r%4
		for _, k := range along {
			switch {
			case k == 0 && x > 0:
				out = append(out, r-4)
			case k == 1:
				out = append(out, x*4+(y+1)%4)
			}
		}
		return out
	}
	for _, c := range []struct {
		name string
		to   func(r int) []int
		want string
	}{
		{"both dimensions", func(r int) []int { return grid(r, 0, 1) }, "3 to 4, [3 4] [false true] along []"},
		{"the second", func(r int) []int { return grid(r, 1) }, "2 to 2, [3 4] [false true] along [1]"},
		{"a chain", func(r int) []int {
			if r == 11 {
				return nil
			}
			return []int{r + 1}
		}, "1 to 2, [12] [false] along []"},
		{"a ring", func(r int) []int { return []int{(r + 1) % 12} }, "2 to 2, [12] [true] along []"},
		{"a cube of two by two by three", func(r int) (out []int) {
			for _, step := range []int{6, 3} {
				if r/step%2 == 0 {
					out = append(out, r+step)
				}
			}
			if r%3 < 2 {
				out = append(out, r+1)
			}
			return out
		}, "3 to 4, [2 2 3] [false false false] along []"},
		{"with the next but one", func(r int) []int { return []int{(r + 1) % 12, (r + 2) % 12} }, "4 to 4, [] [] along []"},
		{"a star", func(r int) []int {
			if r == 5 {
				return nil
			}
			return []int{5}
		}, "1 to 11, [] [] along []"},
	} {
		graph := make([]map[int]bool, 12)
		for r := range graph {
			graph[r] = map[int]bool{}
		}
		for r := range graph {
			for _, q := range c.to(r) {
				graph[r][q], graph[q][r] = true, true
			}
		}
		x := NeighborsOf(graph)
		if got := fmt.Sprintf("%d to %d, %v %v along %v", x.Least, x.Most, x.Dims, x.Periods, x.Along); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
