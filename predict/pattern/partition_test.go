package pattern

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// sets groups ranks by color; ranks with color None are in no set.
func sets(ranks int32, color func(r int32) int32) Sets {
	s := Sets{Ranks: ranks}
	at := map[int32]int{}
	for r := range ranks {
		c := color(r)
		if c == None {
			continue
		}
		if _, ok := at[c]; !ok {
			at[c] = len(s.Sets)
			s.Sets = append(s.Sets, nil)
		}
		s.Sets[at[c]] = append(s.Sets[at[c]], r)
	}
	return s
}

// TestPartitions fits communicators at small process counts and compares them with the truth at larger ones.
func TestPartitions(t *testing.T) {
	sq, pow, many := []int32{4, 9, 16}, []int32{4, 8, 16, 32}, []int32{4, 6, 8, 9, 12, 16}
	for name, c := range map[string]struct {
		color       func(p, r int32) int32
		train, test []int32
		text        string
	}{
		"world":   {func(p, r int32) int32 { return 0 }, []int32{2, 4, 8}, []int32{16, 31}, "all ranks"},
		"rows":    {func(p, r int32) int32 { return r / square(p)[0] }, sq, []int32{25, 64}, "ranks that differ in x on a q x q grid"},
		"columns": {func(p, r int32) int32 { return r % square(p)[0] }, sq, []int32{25, 64}, "ranks that differ in y on a q x q grid"},
		"dealt rows": {func(p, r int32) int32 { return r / bits2(p)[0] }, pow, []int32{128},
			"ranks that differ in x on a 2^ceil(n/2) x 2^floor(n/2) grid"},
		"divisor rows": {func(p, r int32) int32 { return r / divisor2(p)[0] }, many, []int32{20, 36}, "ranks that differ in x on a balanced 2-D grid, extents ascending"},
		"mod 3":        {func(p, r int32) int32 { return r % 3 }, []int32{6, 9, 12}, []int32{15, 30}, "ranks that differ in y on a 3 x P/3 grid"},
		"mod 2 of any": {func(p, r int32) int32 { return r % 2 }, []int32{2, 3, 4, 5, 6, 7}, []int32{8, 9, 64},
			"ranks that differ in rank by an even number on a line of P"},
		"mod 3 of any": {func(p, r int32) int32 { return r % 3 }, []int32{4, 6, 7, 9}, []int32{10, 11, 64},
			"ranks that differ in rank by a multiple of 3 on a line of P"},
		"four in a row": {func(p, r int32) int32 { return r / 4 }, []int32{5, 6, 7, 9, 10, 11}, []int32{12, 13, 64},
			"ranks that differ in rank within 4 in a row on a line of P"},
		"halves": {func(p, r int32) int32 { return r / (p / 2) }, []int32{4, 8, 12, 16}, []int32{6, 30},
			"ranks that differ in rank within a half on a line of P"},
		"halves of rows": {func(p, r int32) int32 { q := square(p)[0]; return 2*(r/q) + 2*(r%q)/q }, []int32{4, 16, 36}, []int32{64},
			"ranks that differ in x within a half on a q x q grid"},
		"odd and even of columns": {func(p, r int32) int32 { q := square(p)[0]; return 2*(r%q) + r/q%2 }, []int32{4, 9, 16}, []int32{25},
			"ranks that differ in y by an even number on a q x q grid"},
		"pairs of rows": {func(p, r int32) int32 { q := square(p)[0]; return q*(r/q) + r%q/2 }, sq, []int32{25, 64},
			"ranks that differ in x within 2 in a row on a q x q grid"},
		"row leaders":   {func(p, r int32) int32 { return -min(r%square(p)[0], 1) }, sq, []int32{25, 64}, "ranks that differ in y with x first on a q x q grid"},
		"all but first": {func(p, r int32) int32 { return min(r, 1) - 1 }, []int32{3, 4, 8}, []int32{16, 31}, "one of all ranks with rank not first on a line of P"},
	} {
		t.Run(name, func(t *testing.T) {
			part := Partition{Name: name}
			for _, p := range c.train {
				part.Runs = append(part.Runs, sets(p, func(r int32) int32 { return c.color(p, r) }))
			}
			laws := FitPartitions([]Partition{part}, nil)
			if len(laws[0].Forms) == 0 {
				t.Fatal(laws[0].Why)
			}
			if got := laws[0].Forms[0].String(); got != c.text {
				t.Errorf("the law is %q, want %q", got, c.text)
			}
			for _, p := range c.test {
				want := sets(p, func(r int32) int32 { return c.color(p, r) })
				if got, err := laws[0].Sets(p); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("at %d: %v, %v, want %v", p, got, err, want)
				}
			}
		})
	}
}

// TestPartitionsRefused has communicators without a law, and a law that is undefined at the requested process count.
func TestPartitionsRefused(t *testing.T) {
	rows := Partition{Name: "rows"}
	odd, alone := Partition{Name: "odd"}, Partition{Name: "alone"}
	for i, q := range []int32{2, 3, 4} {
		rows.Runs = append(rows.Runs, sets(q*q, func(r int32) int32 { return r / q }))
		alone.Runs = append(alone.Runs, sets(q*q, func(r int32) int32 { return r }))
		odd.Runs = append(odd.Runs, sets(q*q,
			func(r int32) int32 { return []int32{r * r % 5 / 3, r * r % 7 / 3, r * r % 11 / 3}[i] }))
	}
	one := Partition{Name: "one alone"} // every second rank, or rank 1 and the others
	for _, p := range []int32{2, 3} {
		one.Runs = append(one.Runs, sets(p, func(r int32) int32 { return r % 2 }))
	}
	thirds, roots := Partition{Name: "thirds"}, Partition{Name: "root"}
	for _, p := range []int32{7, 8, 9} { // three in a row, or a third of all
		thirds.Runs = append(thirds.Runs, sets(p, func(r int32) int32 { return r / ((p + 2) / 3) }))
	}
	for p := int32(4); p <= 8; p++ { // every second, or every one by the root of all
		roots.Runs = append(roots.Runs, sets(p, func(r int32) int32 { return r % 2 }))
	}
	dealt := Partition{Name: "dealt"} // a plane, or planes of a box
	for _, p := range []int32{4, 8, 16, 32} {
		dealt.Runs = append(dealt.Runs, sets(p, func(r int32) int32 { return r / bits2(p)[0] }))
	}
	rows8 := Partition{Name: "rows of 2 x 4"} // of the first eight ranks: halves of 8 and of 9, or four each
	for _, p := range []int32{8, 9} {
		rows8.Runs = append(rows8.Runs, sets(p, func(r int32) int32 {
			if r >= 8 {
				return None
			}
			return r / 4
		}))
	}
	twice := Partition{Name: "twice", Runs: []Sets{{Ranks: 2, Sets: [][]int32{{0, 1}, {1}}}}}
	laws := FitPartitions([]Partition{rows, odd, alone, dealt, twice, rows8, one, thirds, roots}, nil)
	var r *Refusal
	if _, err := laws[3].Sets(64); !errors.As(err, &r) || r.Reason != Ambiguous {
		t.Errorf("rows of a plane, or planes of a box: %v, want %s", err, Ambiguous)
	}
	if got, err := laws[5].Sets(12); !errors.As(err, &r) || r.Reason != Ambiguous {
		t.Errorf("rows of 2 x 4 on 12: %v, %v, want %s", got, err, Ambiguous)
	}
	if !laws[2].Alone || len(laws[2].Forms) > 0 {
		t.Errorf("communicators of one rank each have the law %+v", laws[2])
	}
	for i, want := range []Reason{Undefined, NoLaw} {
		var r *Refusal
		if _, err := laws[i].Sets(20); !errors.As(err, &r) || !slices.Contains([]Reason{want, Ambiguous}, r.Reason) {
			t.Errorf("%s at 20: %v, want %s", laws[i].Name, err, want)
		}
	}
	for _, l := range laws[6:] {
		if len(l.Forms) > 0 {
			t.Errorf("%s: a law from few runs: %v", l.Name, l.Forms[0])
		}
	}
	if len(laws[4].Forms) > 0 || laws[4].Why == "" {
		t.Error("a rank in two communicators is no partition")
	}
}
