package diagnose

import (
	"fmt"
	"testing"
)

// Ranks with an excess at different lines are groups; the same ranks at several lines are one, as are ranks that do the
// same work at other lines.
func TestGroupsOfRanks(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines [][]int64 // computing of each rank, by line
		want  string
	}{
		{"two groups", [][]int64{{20, 20, 20, 25}, {3, 3, 0, 0}}, "[map[0:3 1:3] map[3:5]]"},
		{"a rank at one line, with another at a second", [][]int64{{20, 20, 20, 25}, {20, 20, 24, 24}},
			"[map[2:4 3:4] map[3:5]]"},
		{"the same ranks at two lines", [][]int64{{20, 25, 20, 25}, {20, 23, 20, 23}}, "[]"},
		{"another order", [][]int64{{5, 0, 5, 0}, {20, 25, 20, 25}}, "[]"},
		{"another order, and more to do", [][]int64{{24, 24, 30, 0}, {0, 0, 0, 24}}, "[]"},
		{"a small second group", [][]int64{{20, 20, 20, 60}, {21, 20, 20, 20}}, "[]"},
	} {
		computed := &computing{ns: map[rankSite]int64{}}
		total := make([]int64, len(c.lines[0]))
		for site, ns := range c.lines {
			for rank, x := range ns {
				computed.ns[rankSite{int32(rank), int32(site)}] = x
				total[rank] += x
			}
		}
		var got []map[int32]int64
		lines := linesOf(computed, func(site int32) string { return fmt.Sprint(site) }, len(total))
		for _, g := range groupsOfRanks(deductOrder(lines, total)) {
			got = append(got, g.excess)
		}
		if text := fmt.Sprint(got); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
}
