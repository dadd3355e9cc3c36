package scan

import (
	"testing"

	"github.com/commq/commq/schema"
)

// Only payloads that lie side by side within a larger one are worth searching.
func TestLayoutTiled(t *testing.T) {
	for _, c := range []struct {
		name string
		put  [][4]int64 // rank, address, bytes, datatype; 7 is a named one
		want bool
	}{
		{"one size", [][4]int64{{3, 4096, 800, 7}, {3, 8192, 400, 7}}, false},
		{"two sizes, nothing behind", [][4]int64{{3, 4096, 800, 7}, {3, 4096, 500, 7}}, false},
		{"the rest at another rank", [][4]int64{{3, 4096, 800, 7}, {3, 4096, 500, 7}, {5, 4596, 300, 7}}, false},
		{"side by side", [][4]int64{{3, 4096, 800, 7}, {3, 4096, 500, 7}, {3, 4596, 300, 7}}, true},
		{"one too many", [][4]int64{{3, 4096, 800, 7}, {3, 4096, 500, 7}, {3, 4596, 301, 7}}, false},
		{"three, and others", [][4]int64{{3, 4096, 900, 7}, {3, 4096, 500, 7}, {3, 4596, 301, 7}, {3, 4596, 300, 7},
			{3, 4896, 100, 7}}, true},
		{"a derived datatype", [][4]int64{{3, 4096, 800, 7}, {3, 4096, 500, 12}}, true},
		{"nowhere", [][4]int64{{3, schema.NullInt64, 800, 12}, {3, schema.NullInt64, 500, 12}, {3, 0, 5, 12},
			{3, 0, 9, 12}}, false},
	} {
		l := newLayout(map[int32]bool{7: true})
		for _, p := range c.put {
			l.put(int32(p[0]), p[1], p[2], int32(p[3]))
		}
		if l.mayTile() != c.want {
			t.Errorf("%s: %v, want %v", c.name, !c.want, c.want)
		}
	}
}

// All ranks may use the same addresses; their places must still spread over the hash table.
func TestPlacesOfManyRanksSpreadOverHashTable(t *testing.T) {
	const ranks, slots = 100_000, 1 << 20
	taken := map[uint64]int{}
	most := 0
	for rank := range int32(ranks) {
		for _, address := range []int64{0x7f1234560010, 0x7f1234580020, 0x55d0aa31c2a0} {
			at := placeHash(rank, address) % slots
			taken[at]++
			most = max(most, taken[at])
		}
	}
	if most > 12 { // with 300,000 in 2^20 slots the chance of this is 10^-12
		t.Errorf("%d of %d addresses have one place of %d", most, 3*ranks, slots)
	}
}
