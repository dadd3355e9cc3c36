package predict

import (
	"slices"
	"testing"

	"github.com/commq/commq/predict/pattern"
)

// oddEven sorts by exchanges of neighbours: as many phases as ranks, the pairs beginning at even and odd ranks in turn.
func oddEven(ranks int) *Run {
	return program(ranks, func(rank int) (all []sent) {
		for phase := range ranks {
			to := rank + 1 - 2*((rank+phase)%2)
			if to >= 0 && to < ranks {
				all = append(all, sent{0, to, phase, 8 * block(5040, ranks, 0)})
			}
		}
		return all
	})
}

// cannon moves the blocks of a matrix by their row and column, then by one, again and again.
func cannon(ranks int) *Run {
	q, _ := squarish(ranks)
	return program(ranks, func(rank int) (all []sent) {
		row, column := rank/q, rank%q
		bytes := 8 * block(840, q, 0) * block(840, q, 0)
		left := func(by int) int { return row*q + (column-by+q)%q }
		up := func(by int) int { return (row-by+q)%q*q + column }
		all = append(all, sent{0, left(row), 1, bytes}, sent{1, up(column), 2, bytes})
		for range q - 1 {
			all = append(all, sent{2, left(1), 3, bytes}, sent{3, up(1), 4, bytes})
		}
		return all
	})
}

// redBlack exchanges the cells of one colour, then those of the other, with four neighbours on a grid that is periodic in its rows alone.
func redBlack(ranks int) *Run {
	rows, columns := squarish(ranks)
	return program(ranks, func(rank int) (all []sent) {
		row, column := rank/columns, rank%columns
		for range 7 {
			for colour := range 2 {
				all = append(all, sent{4 * colour, row*columns + (column+1)%columns, 1, 8 * block(126, rows, row) / 2},
					sent{4*colour + 1, row*columns + (column+columns-1)%columns, 2, 8 * block(126, rows, row) / 2})
				if row > 0 {
					all = append(all, sent{4*colour + 2, rank - columns, 3, 4 * block(90, columns, column)})
				}
				if row+1 < rows {
					all = append(all, sent{4*colour + 3, rank + columns, 4, 4 * block(90, columns, column)})
				}
			}
		}
		return all
	})
}

// folded is recursive doubling on any number of ranks: those beyond a power of two give what they have to a neighbour first, and get the result at the end.
func folded(ranks int) *Run {
	power := 1
	for 2*power <= ranks {
		power *= 2
	}
	rest := ranks - power
	world := func(r int) int {
		if r < rest {
			return 2*r + 1
		}
		return r + rest
	}
	return program(ranks, func(rank int) (all []sent) {
		mine := rank - rest
		if rank < 2*rest {
			if rank%2 == 0 {
				return []sent{{0, rank + 1, 1, 4096}}
			}
			mine = rank / 2
		}
		for by := 1; by < power; by *= 2 {
			all = append(all, sent{1, world(mine ^ by), 2, 4096})
		}
		if rank < 2*rest {
			all = append(all, sent{2, rank - 1, 3, 4096})
		}
		return all
	})
}

// pipeline passes each of 24 blocks on from the first rank to the last.
func pipeline(ranks int) *Run {
	return program(ranks, func(rank int) (all []sent) {
		for range 24 {
			if rank+1 < ranks {
				all = append(all, sent{0, rank + 1, 9, 12 * block(720, ranks, rank)})
			}
		}
		return all
	})
}

// corners is a halo exchange of width two with all 26 neighbours on a periodic grid of cubes, the first and the last by one call.
func corners(ranks int) *Run {
	g := 1
	for g*g*g < ranks {
		g++
	}
	return program(ranks, func(rank int) (all []sent) {
		at := [3]int{rank % g, rank / g % g, rank / g / g}
		for range 5 {
			for d := range 27 {
				by := [3]int{d%3 - 1, d/3%3 - 1, d/9 - 1}
				to, bytes := [3]int{}, 8
				for a := range 3 {
					to[a] = (at[a] + by[a] + g) % g
					if by[a] == 0 {
						bytes *= 120 / g
					} else {
						bytes *= 2
					}
				}
				if d != 13 {
					all = append(all, sent{d % 26, to[0] + g*(to[1]+g*to[2]), 9, bytes})
				}
			}
		}
		return all
	})
}

// fourCorners sweeps over a grid from each of its corners in turn, blocks blocks a sweep: a rank waits for its two neighbours upwind, then sends to those downwind. The
// rank at the corner in which a sweep ends has its last block and then, where the next one begins there, the first of that.
func fourCorners(blocks, cells int) func(ranks int) *Run {
	return func(ranks int) *Run {
		rows, columns := squarish(ranks)
		return played(ranks, func(rank int) (all []step) {
			row, column := rank/columns, rank%columns
			for sweep := range 8 {
				dr, dc := 1-2*(sweep%2), 1-2*(sweep/2%2)
				for range blocks {
					for i, way := range []int{-1, 1} {
						if r := row + way*dr; r >= 0 && r < rows {
							all = append(all, step{sent{2 * i, r*columns + column, 10, 16 * block(58, columns, column)}, i == 0})
						}
						if c := column + way*dc; c >= 0 && c < columns {
							all = append(all, step{sent{2*i + 1, row*columns + c, 20, 16 * block(cells, rows, row)}, i == 0})
						}
					}
				}
			}
			return all
		})
	}
}

// others are programs that the forms were not made with.
var others = []struct {
	name     string
	of       func(ranks int) *Run
	training []int
	asked    []int
}{
	{"odd-even sort", oddEven, []int{4, 6, 8, 9, 12, 16}, []int{20, 36}},
	{"Cannon", cannon, []int{4, 9, 16, 25}, []int{36, 49}},
	{"red-black", redBlack, []int{6, 9, 12, 16, 20, 24}, []int{30, 36}},
	{"recursive doubling on any ranks", folded, []int{3, 4, 5, 6, 7, 8, 9, 11, 12, 14}, []int{15, 16, 22}},
	{"pipeline", pipeline, []int{3, 4, 5, 7}, []int{11, 16}},
	{"27 points", corners, []int{27, 64}, []int{125}},
	{"sweeps from four corners", fourCorners(3, 62), []int{4, 6, 8, 9, 12, 16, 18, 24}, []int{27, 30, 48}},
	{"sweeps of one block", fourCorners(1, 62), []int{4, 6, 8, 9, 12, 16, 18, 24}, []int{27, 30, 48}},
}

// TestOutside: programs as others write them are exact at numbers of ranks that were not run.
func TestOutside(t *testing.T) {
	for _, c := range others {
		t.Run(c.name, func(t *testing.T) {
			m := trained(t, c.training, c.of)
			for _, ranks := range c.asked {
				x, err := m.Extrapolate(t.Context(), int32(ranks), nil)
				if err != nil {
					t.Errorf("at %d ranks: %v", ranks, err)
					continue
				}
				measured := signed(t, c.of(ranks))
				if s := x.Signature.Score(measured); s.EdgePrecision != 1 || s.EdgeRecall != 1 || s.MessageError != 0 || s.ByteError != 0 {
					t.Errorf("at %d ranks: %+v", ranks, s)
				}
				if v := m.Coverage(x, measured); len(v.Wrong) > 0 || v.Covered != v.Numbers {
					t.Errorf("at %d ranks: %+v", ranks, v)
				}
			}
		})
	}
}

// TestSuggestedRunSettles: 60 rows of cells are divided by the 2, 3, 4 and 6 rows of ranks of all runs and not by the 8 of 48 ranks. Nothing is said to be exact there that is
// not, and the intervals of the others hold, though the program's columns have 58 cells and 58/g+1 says the same of the rows; the run that is proposed is of more than one column, since a grid of one sends nothing along rows. With it all is exact.
func TestSuggestedRunSettles(t *testing.T) {
	of, training := fourCorners(3, 60), []int{4, 6, 8, 9, 12, 16, 18, 24}
	m := trained(t, training, of)
	var x *Extrapolation
	var measured *Signature
	var err error
	for _, ranks := range []int{27, 48} {
		if x, err = m.Extrapolate(t.Context(), int32(ranks), nil); err != nil {
			t.Fatal(err)
		}
		measured = signed(t, of(ranks))
		if v := m.Coverage(x, measured); len(v.Wrong) > 0 || v.Exact == v.Numbers || v.Covered != v.Numbers {
			t.Errorf("at %d ranks without it: %+v", ranks, v)
		}
	}
	warnings := m.WarningsAt(48, x)
	i := slices.IndexFunc(warnings, func(w Warning) bool { return w.Name == LawsDiffer })
	if i < 0 {
		t.Fatalf("warnings are %+v, want %s", warnings, LawsDiffer)
	}
	next := int(warnings[i].Run)
	if rows, columns := squarish(next); columns < 2 || 60%rows == 0 {
		t.Fatalf("a run on %d ranks is proposed, %d x %d", next, rows, columns)
	}
	m = trained(t, append(training, next), of)
	if x, err = m.Extrapolate(t.Context(), 48, nil); err != nil {
		t.Fatal(err)
	}
	if v := m.Coverage(x, measured); len(v.Wrong) > 0 || v.Exact != v.Numbers {
		t.Errorf("with it: %+v", v)
	}
	if s := x.Signature.Score(measured); s.EdgePrecision != 1 || s.EdgeRecall != 1 || s.MessageError != 0 || s.ByteError != 0 {
		t.Errorf("with it: %+v", s)
	}
}

// TestRootsThatRotate: panels are broadcast by the ranks of a row in turn, by their column: iteration i by column i mod g, with 12 panels on 2 to 4 columns,
// asked on 5.
func TestRootsThatRotate(t *testing.T) {
	grid := &pattern.Grid{Shape: pattern.Cubic, Axes: 2, Order: []int{0, 1}}
	var samples []sample
	for _, q := range []int32{2, 3, 4} {
		for r := range q * q {
			for i := range int32(12) {
				samples = append(samples, sample{point{ranks: q * q, rank: r, peerRank: pattern.None, index: []int32{i}}, int64(i % q)})
			}
		}
	}
	v := &values{ranks: []int32{4, 9, 16}, grids: []*pattern.Grid{grid}, known: map[string]*valueLaw{}}
	l := v.fit(samples, grid, false)
	if err := v.settle(); err != nil {
		t.Fatal(err)
	}
	for i := range int32(12) {
		if s, ok := l.at(&point{ranks: 25, rank: 7, peerRank: pattern.None, index: []int32{i}}); !ok || !s.exact || s.value != int64(i%5) {
			t.Errorf("iteration %d on 25 ranks: %+v, want %d; the law is %s", i, s, i%5, l)
		}
	}
}
