package pattern

import "testing"

// TestTopologies: neighbours on a grid are named after it, also along diagonals when other communications reveal its
// extents; other patterns have no topology.
func TestTopologies(t *testing.T) {
	at := func(dims [3]int32, by [3]int32, wraps bool) Mapping {
		return mapping(dims[0]*dims[1]*dims[2], func(r int32) (int32, bool) {
			x := [3]int32{r / dims[2] / dims[1], r / dims[2] % dims[1], r % dims[2]}
			for a, n := range dims {
				if x[a] += by[a]; wraps {
					x[a] = (x[a] + n) % n
				} else if x[a] < 0 || x[a] >= n {
					return 0, false
				}
			}
			return (x[0]*dims[1]+x[1])*dims[2] + x[2], true
		})
	}
	for name, c := range map[string]struct {
		of   []Mapping
		want []string
	}{
		// Table 1 of the paper: [+1{+3,+4}], [-3{+1,+4}] on 16 ranks.
		"BT": {[]Mapping{at([3]int32{1, 4, 4}, [3]int32{0, 0, 1}, true)}, []string{"torus 4 x 4 (0, +1)"}},
		"ring": {[]Mapping{at([3]int32{1, 1, 7}, [3]int32{0, 0, 1}, true),
			at([3]int32{1, 1, 7}, [3]int32{0, 0, -2}, true)}, []string{"ring (+1)", "ring (-2)"}},
		"line": {[]Mapping{at([3]int32{1, 1, 7}, [3]int32{0, 0, 1}, false)}, []string{"mesh 7 (+1)"}},
		"mesh": {[]Mapping{at([3]int32{1, 3, 4}, [3]int32{0, 0, -1}, false),
			at([3]int32{1, 3, 4}, [3]int32{0, 1, 0}, false)}, []string{"mesh 3 x 4 (0, -1)", "mesh 3 x 4 (+1, 0)"}},
		"torus, diagonal": {[]Mapping{at([3]int32{1, 5, 4}, [3]int32{0, 1, 0}, true),
			at([3]int32{1, 5, 4}, [3]int32{0, -1, 1}, true)}, []string{"torus 5 x 4 (+1, 0)", "torus 5 x 4 (-1, +1)"}},
		"three axes": {[]Mapping{at([3]int32{3, 4, 5}, [3]int32{0, 0, 1}, true),
			at([3]int32{3, 4, 5}, [3]int32{0, -1, 0}, true), at([3]int32{3, 4, 5}, [3]int32{1, 0, 0}, true)},
			[]string{"torus 3 x 4 x 5 (0, 0, +1)", "torus 3 x 4 x 5 (0, -1, 0)", "torus 3 x 4 x 5 (+1, 0, 0)"}},
		"one axis of three": {[]Mapping{at([3]int32{3, 4, 5}, [3]int32{0, 1, 0}, true)},
			[]string{"torus 3 x 4 x 5 (0, +1, 0)"}},
		"others": {[]Mapping{{Ranks: 7, Dst: []int32{3, -1, 0, 0, 6, -1, 2}},
			mapping(7, func(r int32) (int32, bool) { return 0, r != 0 }),
			mapping(7, func(r int32) (int32, bool) { return r, true })}, []string{"", "", ""}},
		// A mesh in which one more rank does not send is not a mesh.
		"a hole": {[]Mapping{mapping(6, func(r int32) (int32, bool) {
			return r + 1, r%3 < 2 &&
				r != 3
		})}, []string{""}},
	} {
		for i, s := range Topologies(c.of) {
			got := ""
			if s != nil {
				got = s.String()
			}
			if got != c.want[i] {
				t.Errorf("%s, %d: %q, want %q", name, i, got, c.want[i])
			}
		}
	}
}
