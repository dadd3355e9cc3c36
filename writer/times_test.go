package writer

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Rows put in any order are all read back; reading a row that was not put is an error.
func TestRowTimes(t *testing.T) {
	rows := []int64{3, 0, 7000, 257}
	times, err := NewRowTimes(rows)
	if err != nil {
		t.Fatal(err)
	}
	times.windows = 4 // fewer than the rows of a rank need
	defer times.Close()
	type row struct {
		rank int32
		seq  int64
	}
	var all []row
	for rank, n := range rows {
		for seq := range n {
			if rank != 2 || seq != 300 {
				all = append(all, row{int32(rank), seq})
			}
		}
	}
	g := rand.New(rand.NewPCG(3, 5))
	shuffle := func() { g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) }
	shuffle()
	for _, r := range all {
		if err := times.Put(r.rank, r.seq, 1000*r.seq+int64(r.rank), 1000*r.seq+97); err != nil {
			t.Fatal(err)
		}
	}
	shuffle()
	for _, r := range all {
		if start, end, err := times.Get(r.rank, r.seq); err != nil || start != 1000*r.seq+int64(r.rank) ||
			end != 1000*r.seq+97 {
			t.Fatal(r, start, end, err)
		}
	}
	for _, c := range []struct {
		row
		want string
	}{{row{2, 300}, "rank 2, seq 300: the row has no times"}, {row{1, 0}, "rank 1 has no row 0"},
		{row{4, 0}, "rank 4 has no row"}} {
		if _, _, err := times.Get(c.rank, c.seq); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Error(err)
		}
	}
}
