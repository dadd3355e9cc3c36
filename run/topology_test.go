package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// The ranks that each rank receives from in a neighbourhood collective, by MPI 4.0, section 8.6.
func TestSources(t *testing.T) {
	members := []int32{5, 4, 3, 2, 1, 0}
	for _, c := range []struct {
		name  string
		comms []Comm
		want  map[int32][][]int32
	}{
		{"a grid of 2 by 3, periodic in the second dimension", []Comm{{ID: 7, Kind: schema.CommCart, Members: members,
			topology: &topology{dims: []int32{2, 3}, periods: []int32{0, 1}}}},
			map[int32][][]int32{7: {{2, 3, 4}, {1, 5, 3}, {0, 4, 5}, {5, 0, 1}, {4, 2, 0}, {3, 1, 2}}}},
		{"a star with edges to its centre, and a duplicate of it", []Comm{
			{ID: 1, Kind: schema.CommDistGraph, Members: []int32{3, 2, 1}, topology: &topology{targets: [][]int32{{1}, {0}, {0}}}},
			{ID: 2, Kind: schema.CommDup, Parent: 1, Members: []int32{3, 2, 1}}},
			map[int32][][]int32{1: {{2, 1}, {3}, nil}, 2: {{2, 1}, {3}, nil}}},
		{"none", []Comm{{ID: 0, Kind: schema.CommWorld, Members: []int32{0, 1}},
			{ID: 1, Kind: schema.CommDup, Parent: 0, Members: []int32{0, 1}}}, map[int32][][]int32{}},
		{"extents that are not those of the ranks", []Comm{{ID: 1, Kind: schema.CommCart, Members: []int32{0, 1},
			topology: &topology{dims: []int32{0, 9}}}}, map[int32][][]int32{1: {nil, nil}}},
	} {
		if diff := cmp.Diff(c.want, Sources(c.comms)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
