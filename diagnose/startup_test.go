package diagnose

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Ranks are late that begin MPI_Init after the longest pause, if the others wait for them in it.
func TestLateOf(t *testing.T) {
	for _, c := range []struct {
		name   string
		starts []start
		ranks  []int32
		ns     int64
	}{
		{"one", []start{{0, 0, 3, 900}, {1, 0, 500, 901}, {2, 0, 0, 900}}, []int32{1}, 497},
		{"two", []start{{0, 0, 600, 900}, {1, 0, 500, 901}, {2, 0, 0, 900}}, []int32{1, 0}, 500},
		{"nobody waits", []start{{0, 0, 0, 400}, {1, 0, 500, 901}}, nil, 0},
		{"at once", []start{{0, 0, 7, 400}, {1, 0, 7, 400}}, nil, 0},
	} {
		late, ns := lateOf(c.starts)
		var ranks []int32
		for _, s := range late {
			ranks = append(ranks, s.rank)
		}
		if diff := cmp.Diff(c.ranks, ranks); diff != "" || ns != c.ns {
			t.Errorf("%s: %d ns, want %d; %s", c.name, ns, c.ns, diff)
		}
	}
}

func TestLateTitle(t *testing.T) {
	for want, c := range map[string]struct {
		late  []int32
		early []start
	}{
		"Ranks 0, 2 and 3 begin MPI_Init 229 ms after rank 1, which waits in it": {[]int32{0, 2, 3}, []start{{rank: 1}}},
		"Rank 2 begins MPI_Init 229 ms after the others, which wait in it":       {[]int32{2}, []start{{rank: 0}, {rank: 1}}},
		"Ranks 2 and 3 begin MPI_Init 229 ms after the others, which wait in it": {[]int32{2, 3}, []start{{rank: 0}, {rank: 1}}},
	} {
		if got := lateTitle(c.late, c.early, 229e6); got != want {
			t.Errorf("got %q want %q", got, want)
		}
	}
}
