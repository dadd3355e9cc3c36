package predict_test

import (
	"slices"
	"testing"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// oddEven returns an odd-even sort: as many phases as ranks, in which neighbours exchange, paired from even and odd
// ranks in turn.
func oddEven(ranks int) *signature.Run {
	return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
		for phase := range ranks {
			to := rank + 1 - 2*((rank+phase)%2)
			if to >= 0 && to < ranks {
				all = append(all, message(0, to, phase, 8*block(5040, ranks, 0)))
			}
		}
		return all
	})
}

// cannon moves the blocks of a matrix by their row and column first, then repeatedly by one.
func cannon(ranks int) *signature.Run {
	q, _ := squarish(ranks)
	return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
		row, column := rank/q, rank%q
		bytes := 8 * block(840, q, 0) * block(840, q, 0)
		left := func(by int) int { return row*q + (column-by+q)%q }
		up := func(by int) int { return (row-by+q)%q*q + column }
		all = append(all, message(0, left(row), 1, bytes), message(1, up(column), 2, bytes))
		for range q - 1 {
			all = append(all, message(2, left(1), 3, bytes), message(3, up(1), 4, bytes))
		}
		return all
	})
}

// redBlack exchanges the cells of one colour, then those of the other, with four neighbours on a grid that is periodic
// only along its rows.
func redBlack(ranks int) *signature.Run {
	rows, columns := squarish(ranks)
	return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
		row, column := rank/columns, rank%columns
		for range 7 {
			for colour := range 2 {
				all = append(all, message(4*colour, row*columns+(column+1)%columns, 1, 8*block(126, rows, row)/2),
					message(4*colour+1, row*columns+(column+columns-1)%columns, 2, 8*block(126, rows, row)/2))
				if row > 0 {
					all = append(all, message(4*colour+2, rank-columns, 3, 4*block(90, columns, column)))
				}
				if row+1 < rows {
					all = append(all, message(4*colour+3, rank+columns, 4, 4*block(90, columns, column)))
				}
			}
		}
		return all
	})
}

// folded is recursive doubling on any number of ranks: those beyond a power of two send their data to a neighbour first
// and get the result at the end.
func folded(ranks int) *signature.Run {
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
	return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
		mine := rank - rest
		if rank < 2*rest {
			if rank%2 == 0 {
				return []testruns.Message{message(0, rank+1, 1, 4096)}
			}
			mine = rank / 2
		}
		for by := 1; by < power; by *= 2 {
			all = append(all, message(1, world(mine^by), 2, 4096))
		}
		if rank < 2*rest {
			all = append(all, message(2, rank-1, 3, 4096))
		}
		return all
	})
}

// pipeline passes 24 blocks from the first rank to the last.
func pipeline(ranks int) *signature.Run {
	return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
		for range 24 {
			if rank+1 < ranks {
				all = append(all, message(0, rank+1, 9, 12*block(720, ranks, rank)))
			}
		}
		return all
	})
}

// corners returns a halo exchange of width two with all 26 neighbours on a periodic grid of cubes. The first and the
// last neighbour share a call.
func corners(ranks int) *signature.Run {
	g := 1
	for g*g*g < ranks {
		g++
	}
	return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
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
					all = append(all, message(d%26, to[0]+g*(to[1]+g*to[2]), 9, bytes))
				}
			}
		}
		return all
	})
}

// fourCorners sweeps over a grid from each of its corners in turn, with this number of blocks in a sweep: a rank
// waits for its two upwind neighbours, then sends to the downwind ones. If a sweep begins at the corner where the
// last one ended, the rank there handles the last block of one and the first block of the other.
func fourCorners(blocks, cells int) func(ranks int) *signature.Run {
	return func(ranks int) *signature.Run {
		rows, columns := squarish(ranks)
		return testruns.Steps(ranks, func(rank int) (all []testruns.Step) {
			row, column := rank/columns, rank%columns
			for sweep := range 8 {
				dr, dc := 1-2*(sweep%2), 1-2*(sweep/2%2)
				for range blocks {
					for i, way := range []int{-1, 1} {
						if r := row + way*dr; r >= 0 && r < rows {
							all = append(all,
								testruns.Step{Message: message(2*i, r*columns+column, 10,
									16*block(58, columns, column)),
									Receives: i == 0})
						}
						if c := column + way*dc; c >= 0 && c < columns {
							all = append(all,
								testruns.Step{Message: message(2*i+1, row*columns+c, 20, 16*block(cells, rows, row)),
									Receives: i == 0})
						}
					}
				}
			}
			return all
		})
	}
}

// outsidePrograms are programs that the forms of laws were not made for.
var outsidePrograms = []struct {
	name     string
	run      func(ranks int) *signature.Run
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
	{"a loop that grows from nothing", growing, []int{4, 6, 8, 12}, []int{16, 20}},
	{"neighbours on a line, as a list", listed(onLine, 1), []int{2, 4, 8, 16}, []int{24, 32}},
	{"4 neighbours as a list", listed(onPlane, 1), []int{4, 6, 9, 12, 16}, []int{20, 36}},
	{"8 neighbours as a list", listed(onPlane, 2), []int{6, 9, 12, 16, 20}, []int{25, 36}},
	{"6 neighbours as a list", listed(inCube, 1), []int{4, 8, 16, 32, 64}, []int{128, 256}},
	{"26 neighbours as a list", listed(inCube, 3), []int{8, 27, 64}, []int{125}},
	{"transpose", transposed, []int{2, 4, 6, 8}, []int{12, 20}},
	{"sweeps that end with a corner", sweeping, []int{2, 4, 6, 8}, []int{12, 20}},
	{"sweeps of one block", fourCorners(1, 62), []int{4, 6, 8, 9, 12, 16, 18, 24}, []int{27, 30, 48}},
}

// listed returns a halo of which each rank has a list: one call in a loop over the neighbours that it has, in the
// order of their ranks, all with the same tag. Neighbours are those on a grid without periodic borders whose
// coordinates are at most 1 apart, and together at most apart.
func listed(extents func(ranks int) []int, apart int) func(ranks int) *signature.Run {
	return func(ranks int) *signature.Run {
		grid := extents(ranks)
		coordinates := func(rank int) (at []int) {
			for _, e := range grid {
				at = append(at, rank%e)
				rank /= e
			}
			return at
		}
		return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
			for range 4 {
				for to := range ranks {
					sum, most, other := 0, 0, coordinates(to)
					for a, x := range coordinates(rank) {
						by := max(x-other[a], other[a]-x)
						sum, most = sum+by, max(most, by)
					}
					if most == 1 && sum <= apart {
						all = append(all, message(0, to, 7, 8<<(4-sum)))
					}
				}
			}
			return all
		})
	}
}

// transposed sends a block to each other rank, in the order of their distances, once before a barrier and three times
// after it: loops with nothing between their executions.
func transposed(ranks int) *signature.Run {
	return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		for iteration := range 4 {
			if iteration == 1 {
				all = append(all, testruns.Call{Site: 2, Call: schema.CallBarrier, To: testruns.None, From: testruns.None,
					Root: testruns.None})
			}
			for phase := 1; phase < ranks; phase++ {
				c := testruns.Call{Tag: phase, Bytes: 8 * block(840, ranks, 0) * block(840, ranks, 0), Element: 8,
					Root: testruns.None}
				send, receive := c, c
				send.Call, send.To, send.From = schema.CallSend, (rank-phase+ranks)%ranks, testruns.None
				receive.Site, receive.Call, receive.To, receive.From = 1, schema.CallRecv, testruns.None, (rank+phase)%ranks
				all = append(all, send, receive)
			}
		}
		return all
	})
}

// sweeping passes 63 lines from the first rank to the last, which then sends a corner to the first: once before a
// barrier and three times after it. Ranks in the middle have nothing between two sweeps.
func sweeping(ranks int) *signature.Run {
	none := testruns.Call{To: testruns.None, From: testruns.None, Root: testruns.None}
	return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		add := func(site int, call schema.CallID, to, from, bytes int) {
			c := none
			c.Site, c.Call, c.Bytes = site, call, bytes
			if to >= 0 && to < ranks {
				c.To = to
			} else if to != testruns.None {
				return
			}
			if from >= 0 {
				c.From = from
			}
			all = append(all, c)
		}
		for iteration := range 4 {
			if iteration == 1 {
				add(4, schema.CallBarrier, testruns.None, testruns.None, 0)
			}
			for range 63 {
				if rank > 0 {
					add(0, schema.CallRecv, testruns.None, rank-1, 8)
				}
				add(1, schema.CallSend, rank+1, testruns.None, 8)
			}
			if rank == ranks-1 {
				add(2, schema.CallSend, 0, testruns.None, 16)
			}
			if rank == 0 {
				add(3, schema.CallRecv, testruns.None, ranks-1, 16)
			}
		}
		return all
	})
}

// growing returns a loop over all ranks whose inner loop grows from nothing. The runs look as if the inner loop came
// last in an iteration: then the last one has none.
func growing(ranks int) *signature.Run {
	return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
		for i := range ranks {
			for range i {
				all = append(all, message(0, (rank+1)%ranks, 1, 8))
			}
			all = append(all, message(1, (rank+2)%ranks, 2, 8))
		}
		return all
	})
}

func onLine(ranks int) []int { return []int{ranks} }

func onPlane(ranks int) []int {
	rows, columns := squarish(ranks)
	return []int{columns, rows}
}

// inCube deals the factors 2 of the number of ranks to three axes, or takes its cube root.
func inCube(ranks int) []int {
	e := []int{1, 1, 1}
	for a := 0; e[0]*e[1]*e[2] < ranks && ranks&(ranks-1) == 0; a = (a + 1) % 3 {
		e[a] *= 2
	}
	for e[0]*e[1]*e[2] < ranks {
		e = []int{e[0] + 1, e[0] + 1, e[0] + 1}
	}
	return e
}

// These programs are predicted exactly at numbers of ranks that were not run.
func TestOutsidePrograms(t *testing.T) {
	for _, c := range outsidePrograms {
		t.Run(c.name, func(t *testing.T) {
			m := train(t, c.training, c.run)
			for _, ranks := range c.asked {
				x, err := generate.Predict(t.Context(), m, int32(ranks), generate.Options{})
				if err != nil {
					t.Errorf("at %d ranks: %v", ranks, err)
					continue
				}
				measured := sign(t, c.run(ranks))
				if s := report.Compare(x.Signature, measured); !isPerfect(s) {
					t.Errorf("at %d ranks: %+v", ranks, s)
				}
				if v := report.Cover(m, x, measured); len(v.Wrong) > 0 || v.Covered != v.Numbers {
					t.Errorf("at %d ranks: %+v", ranks, v)
				}
			}
		})
	}
}

// 60 rows of cells divide evenly over the 2, 3, 4 and 6 rows of ranks of the training runs, but not over the 8 rows
// of 48 ranks. Therefore no wrong number may be called exact, and the intervals must hold; the law 58/g+1 of the
// program's columns fits the rows, too. The suggested run has more than one column, since a grid with one column
// sends nothing along rows. With this run everything is exact.
func TestSuggestedRunMakesLawsExact(t *testing.T) {
	of, training := fourCorners(3, 60), []int{4, 6, 8, 9, 12, 16, 18, 24}
	m := train(t, training, of)
	var x *generate.Prediction
	var measured *signature.Signature
	var err error
	for _, ranks := range []int{27, 48} {
		if x, err = generate.Predict(t.Context(), m, int32(ranks), generate.Options{}); err != nil {
			t.Fatal(err)
		}
		measured = sign(t, of(ranks))
		if v := report.Cover(m, x, measured); len(v.Wrong) > 0 || v.Exact == v.Numbers || v.Covered != v.Numbers {
			t.Errorf("at %d ranks without it: %+v", ranks, v)
		}
	}
	warnings := report.Warnings(report.NewWeigher(m, x, 48))
	i := slices.IndexFunc(warnings, func(w report.Warning) bool { return w.Name == report.LawsDiffer })
	if i < 0 {
		t.Fatalf("warnings %+v, want %s", warnings, report.LawsDiffer)
	}
	next := int(warnings[i].Run)
	if rows, columns := squarish(next); columns < 2 || 60%rows == 0 {
		t.Fatalf("suggests a run on %d ranks, %d x %d", next, rows, columns)
	}
	m = train(t, append(training, next), of)
	if x, err = generate.Predict(t.Context(), m, 48, generate.Options{}); err != nil {
		t.Fatal(err)
	}
	if v := report.Cover(m, x, measured); len(v.Wrong) > 0 || v.Exact != v.Numbers {
		t.Errorf("with it: %+v", v)
	}
	if s := report.Compare(x.Signature, measured); !isPerfect(s) {
		t.Errorf("with it: %+v", s)
	}
}
