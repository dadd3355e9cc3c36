package writer

import (
	"slices"
	"testing"
)

// Ranks without rows get a file too, the last ones the last.
func TestShards(t *testing.T) {
	for _, c := range []struct {
		rows    []int64
		perFile int64
		of      []int
		shards  int
	}{
		{[]int64{3, 0}, 0, []int{0, 0}, 1},
		{[]int64{0, 5, 5, 0, 0}, 5, []int{0, 0, 1, 1, 1}, 2},
		{[]int64{0, 0}, 0, []int{0, 0}, 1},
		{[]int64{9, 9, 9}, 1, []int{0, 0, 1}, 2},
	} {
		of, shards := Shards(c.rows, c.perFile)
		if !slices.Equal(of, c.of) || shards != c.shards {
			t.Errorf("%v by %d: %v in %d, want %v in %d", c.rows, c.perFile, of, shards, c.of, c.shards)
		}
	}
}
