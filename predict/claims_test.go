package predict_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// nearSquare returns the rows and columns of the most even grid, which has at least as many columns as rows.
func nearSquare(ranks int) (rows, columns int) {
	rows = 1
	for r := 1; r*r <= ranks; r++ {
		if ranks%r == 0 {
			rows = r
		}
	}
	return rows, ranks / rows
}

// markedLater repeats three times: a send to the previous rank where there are more than two columns, a message to the
// next rank from one row, and one to a partner. On few ranks nothing shows where an iteration ends.
func markedLater(ranks int) *signature.Run {
	_, columns := nearSquare(ranks)
	return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		none := testruns.None
		add := func(site int, call schema.CallID, to, from int) {
			all = append(all, testruns.Call{Site: site, Call: call, To: to, From: from, Bytes: 8, Root: none})
		}
		before := (rank + ranks - 1) % ranks
		for i := range 3 {
			if columns > 2 {
				add(0, schema.CallSend, before, none)
			}
			if rank/columns == i {
				add(1, schema.CallSend, (rank+1)%ranks, none)
			}
			if before/columns == i {
				add(2, schema.CallRecv, none, before)
			}
			if to := rank + 1 - 2*((rank+i)%2); to >= 0 && to < ranks {
				add(3, schema.CallSend, to, none)
			}
		}
		return all
	})
}

// perRow exchanges with one neighbour, then the other, once for each row of a grid, and does three things more each
// time, one of them only on the higher ranks.
func perRow(ranks int) *signature.Run {
	rows, columns := nearSquare(ranks)
	return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		add := func(site int, call schema.CallID, to, from int) {
			all = append(all, testruns.Call{Site: site, Call: call, To: to, From: from, Bytes: 8, Root: testruns.None})
		}
		for range rows {
			for i := range 2 {
				if to := rank + 1 - 2*((rank+i)%2); to >= 0 && to < ranks {
					add(0, schema.CallSend, to, testruns.None)
				}
				for k := range 2 {
					row, column := rank/columns, rank%columns
					row = (row + 1 - 2*k + rows) % rows
					add(1, schema.CallSend, row*columns+column, testruns.None)
					add(2, schema.CallSend, 0, testruns.None)
					other := rank ^ 1<<i
					if rank > i && other < ranks {
						add(3, schema.CallSend, other, testruns.None)
					}
					if other > i && other < ranks {
						add(4, schema.CallRecv, testruns.None, other)
					}
				}
			}
		}
		return all
	})
}

// onceThenThree sends once on four ranks and three times on more, to one rank or each time to another.
func onceThenThree(toOthers int) func(ranks int) *signature.Run {
	return func(ranks int) *signature.Run {
		return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
			for i := range 3 {
				if ranks > 4 || i == 0 {
					all = append(all, message(0, (rank+1)%ranks, 1, 8), message(1, (rank+1+toOthers*i)%ranks, 1, 8))
				}
			}
			return all
		})
	}
}

// halving sends once for each time that the number of ranks can be halved, rounded down.
func halving(ranks int) *signature.Run {
	return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
		for p := ranks; p > 1; p /= 2 {
			all = append(all, message(0, (rank+1)%ranks, 1, 8))
		}
		return all
	})
}

// pairsInTwo has two barriers in each of three steps, after which pairs of ranks exchange: after the first one only
// even ranks send, after the second one all, on 12 ranks or more.
func pairsInTwo(ranks int) *signature.Run {
	return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		none := testruns.None
		for range 3 {
			all = append(all, testruns.Call{Site: 2, Call: schema.CallAllreduce, To: none, From: none, Bytes: 8, Root: none})
			for i := range 2 {
				all = append(all, testruns.Call{Site: 0, Call: schema.CallBarrier, To: none, From: none, Root: none})
				if i == 0 && rank%2 == 0 || i == 1 && ranks >= 12 {
					all = append(all, testruns.Call{Site: 1, Call: schema.CallSend, To: rank ^ 1, From: none, Bytes: 8, Root: none})
				}
			}
		}
		return all
	})
}

// everyRow exchanges with the ranks from the next one on, one for each row of a grid of four rows or more.
func everyRow(ranks int) *signature.Run {
	rows, _ := nearSquare(ranks)
	return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		none := testruns.None
		for i := max(0, 4-rows); i < rows; i++ {
			if to := rank + 1 + i; to < ranks {
				all = append(all, testruns.Call{Site: 0, Call: schema.CallSend, To: to, From: none, Bytes: 8, Root: none})
			}
			if from := rank - 1 - i; from >= 0 {
				all = append(all, testruns.Call{Site: 1, Call: schema.CallRecv, To: none, From: from, Bytes: 8, Root: none})
			}
		}
		return all
	})
}

// withoutRows deals 20 rows to the ranks, the remainder to the first: rank 0 sends each its rows, and none to ranks
// that have none.
func withoutRows(ranks int) *signature.Run {
	return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		none := testruns.None
		for range 7 {
			for r := 1; r < ranks && rank == 0; r++ {
				if n := block(20, ranks, r); n > 0 {
					all = append(all,
						testruns.Call{Site: 0, Call: schema.CallSend, To: r, From: none, Bytes: 8 * n, Root: none})
				}
			}
			if n := block(20, ranks, rank); n > 0 && rank > 0 {
				all = append(all,
					testruns.Call{Site: 1, Call: schema.CallRecv, To: none, From: 0, Bytes: 8 * n, Root: none})
			}
			all = append(all, testruns.Call{Site: 2, Call: schema.CallBarrier, To: none, From: none, Root: none})
		}
		return all
	})
}

// roundedUp deals 60 rows in blocks that are rounded up, and exchanges in a ring of the ranks
// that have some.
func roundedUp(ranks int) *signature.Run {
	rows := func(rank int) int {
		largest := (60 + ranks - 1) / ranks
		return max(0, min(largest, 60-rank*largest))
	}
	return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		some := 0
		for r := range ranks {
			if rows(r) > 0 {
				some++
			}
		}
		for range 5 {
			if rank < some {
				all = append(all, testruns.Call{Site: 0, Call: schema.CallSendrecv, To: (rank + 1) % some,
					From: (rank + some - 1) % some, Bytes: 80, Root: testruns.None})
			}
			all = append(all, testruns.Call{Site: 1, Call: schema.CallAllgatherv, To: testruns.None, From: testruns.None,
				Bytes: 8 * rows(rank), Root: testruns.None})
		}
		return all
	})
}

// withinRadius exchanges with as many of the next ranks as a radius of an eighth of the domain reaches.
func withinRadius(ranks int) *signature.Run {
	return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
		for range 5 {
			for k := 1; k <= (ranks+7)/8; k++ {
				all = append(all, message(0, (rank+k)%ranks, k, 320))
			}
		}
		return all
	})
}

// leastSurface exchanges with the next rank along each axis of a torus, whose extents cut a box of so many cells along
// the axes into parts of the least surface. Messages have a byte for each cell of a face, or all the same size.
func leastSurface(faces bool, cells ...int) func(ranks int) *signature.Run {
	extents := func(ranks int) (best []int) {
		least := 0.0
		var try func(left int, extents []int)
		try = func(left int, extents []int) {
			if len(extents) < len(cells)-1 {
				for f := 1; f <= left; f++ {
					if left%f == 0 {
						try(left/f, append(slices.Clone(extents), f))
					}
				}
				return
			}
			surface := 0.0
			for a, g := range append(extents, left) {
				surface += float64(g) / float64(cells[a])
			}
			if best == nil || surface < least-1e-9 {
				best, least = append(extents, left), surface
			}
		}
		try(ranks, nil)
		return best
	}
	return func(ranks int) *signature.Run {
		g := extents(ranks)
		return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
			for axis, stride := 0, 1; axis < len(g); axis++ {
				x, face := rank/stride%g[axis], 1
				for other := 0; faces && other < len(g); other++ {
					if other != axis {
						below := 1
						for _, e := range g[:other] {
							below *= e
						}
						face *= block(cells[other], g[other], rank/below%g[other])
					}
				}
				for i, to := range []int{(x + 1) % g[axis], (x + g[axis] - 1) % g[axis]} {
					all = append(all, message(2*axis+i, rank+(to-x)*stride, 1, 64*face))
				}
				stride *= g[axis]
			}
			return all
		})
	}
}

// threeThenFour repeats a ring three times on fewer than 12 ranks, then four times, with longer messages each time, and
// one to the rank after the next.
func threeThenFour(ranks int) *signature.Run {
	return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
		for i := range 3 + min(ranks/12, 1) {
			all = append(all, message(0, (rank+1)%ranks, 1, 4000+800*i))
		}
		return append(all, message(1, (rank+2)%ranks, 1, 8))
	})
}

// toOthers sends times(ranks) messages, each to another rank, and exchanges with the neighbours on a torus.
func toOthers(times func(ranks int) int) func(ranks int) *signature.Run {
	return func(ranks int) *signature.Run {
		rows, columns := nearSquare(ranks)
		return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
			row, column := rank/columns, rank%columns
			for i, to := range []int{(row+1)%rows*columns + column, (row+rows-1)%rows*columns + column,
				row*columns + (column+1)%columns, row*columns + (column+columns-1)%columns} {
				all = append(all, message(1+i, to, 1, 100))
			}
			for i := range times(ranks) {
				all = append(all, message(0, (rank+1+i)%ranks, 1, 8))
			}
			return all
		})
	}
}

// alongShortest sums up once for each rank along the shortest axis of the most even box.
func alongShortest(ranks int) *signature.Run {
	shortest := 1
	for a := 1; a*a*a <= ranks; a++ {
		for b := a; ranks%a == 0 && a*b*b <= ranks; b++ {
			if ranks/a%b == 0 {
				shortest = a
			}
		}
	}
	return testruns.Calls(ranks, nil, func(int) (all []testruns.Call) {
		for range shortest {
			all = append(all, testruns.Call{Site: 0, Call: schema.CallAllreduce, To: testruns.None, From: testruns.None,
				Bytes: 8, Root: testruns.None})
		}
		return all
	})
}

// barrierWhere exchanges in a ring and has a barrier on some numbers of ranks, three times.
func barrierWhere(has func(ranks int) bool) func(ranks int) *signature.Run {
	return func(ranks int) *signature.Run {
		return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
			none := testruns.None
			for range 3 {
				all = append(all, testruns.Call{Site: 0, Call: schema.CallSendrecv, To: (rank + 1) % ranks,
					From: (rank + ranks - 1) % ranks, Bytes: 80, Root: none})
				if has(ranks) {
					all = append(all, testruns.Call{Site: 1, Call: schema.CallBarrier, To: none, From: none, Root: none})
				}
			}
			return all
		})
	}
}

// claim is a program whose runs leave more than one possibility for what it does on more ranks.
type claim struct {
	name            string
	run             func(ranks int) *signature.Run
	training, asked []int
}

// judgeClaims reports predictions that are called exact and are wrong, and intervals that do not hold.
func judgeClaims(t *testing.T, claims []claim) {
	for _, c := range claims {
		m := train(t, c.training, c.run)
		for _, ranks := range c.asked {
			x, err := generate.Predict(t.Context(), m, int32(ranks), generate.Options{})
			if x == nil {
				t.Fatal(err)
			}
			if v := report.Judge(m, x, sign(t, c.run(ranks))); len(v.Places) > 0 || v.Edges.Wrong > 0 {
				t.Errorf("%s, at %d ranks: edges %+v, %+v", c.name, ranks, v.Edges, v.Places)
			}
		}
	}
}

// Nothing that is called exact is wrong where the runs leave more than one possibility.
func TestClaims(t *testing.T) {
	judgeClaims(t, []claim{
		{"iterations that small runs do not show", markedLater, []int{4, 8, 16, 32}, []int{64}},
		{"a loop over rows that the smallest run does not show", perRow, []int{2, 4, 6, 8}, []int{12, 20}},
		{"once, then three times", onceThenThree(0), []int{4, 8, 16, 32}, []int{64}},
		{"once, then three times, to others", onceThenThree(1), []int{4, 8, 16, 32}, []int{64}},
		{"a logarithm, on powers of two", halving, []int{2, 4, 8, 16}, []int{24, 32, 48}},
		{"a family that seems to grow beyond a loop that does not", pairsInTwo, []int{6, 8, 12, 16}, []int{20, 24}},
		{"partners in steps, as many as rows in the two runs that have any", everyRow, []int{4, 8, 16, 32}, []int{64}},
		{"ranks without rows, blocks rounded up", roundedUp, []int{4, 5, 6, 10, 12}, []int{16, 18, 24, 36}},
		{"ranks without rows", withoutRows, []int{4, 6, 8, 12, 16}, []int{24, 36}},
		{"a share of the ranks, rounded up", withinRadius, []int{4, 6, 8, 12, 16}, []int{24, 36}},
		{"a box cut for the least surface", leastSurface(false, 8, 12, 20), []int{4, 8, 12, 16}, []int{24, 36, 64}},
		{"a long box cut for the least surface", leastSurface(false, 369, 147, 61), []int{4, 6, 8, 12, 16}, []int{64}},
		{"a plane cut for the least surface", leastSurface(true, 100, 60), []int{4, 6, 8, 12, 16, 24}, []int{36, 48}},
		{"a box whose third axis is short", leastSurface(true, 48, 36, 20), []int{4, 6, 8, 12, 16}, []int{18, 24, 30, 36}},
		{"an eighth of the ranks and two, as a logarithm has it", toOthers(func(p int) int { return p/8 + 2 }),
			[]int{4, 6, 8, 12, 16}, []int{24, 30, 36}},
		{"a sixth of the ranks, as a logarithm has it", toOthers(func(p int) int { return (p + 5) / 6 }),
			[]int{4, 6, 8, 12, 16}, []int{20, 24, 30, 36}},
		{"three others, then four, as a law of a grid has it", toOthers(func(p int) int { return 3 + min(p/12, 1) }),
			[]int{4, 6, 8, 12, 16}, []int{30, 36}},
		{"the root of the ranks, as an extent has it", toOthers(func(p int) int { return int(math.Sqrt(float64(p))) }),
			[]int{4, 6, 8, 12, 16}, []int{18, 32}},
		{"a loop along an axis that only sums up", alongShortest, []int{8, 12, 16, 18}, []int{27}},
		{"a barrier on few ranks", barrierWhere(func(p int) bool { return p < 10 }), []int{4, 8, 16, 32}, []int{9, 64}},
		{"a barrier on less than half of the most", barrierWhere(func(p int) bool { return p < 20 }), []int{4, 8, 16, 32},
			[]int{6, 12, 18, 64}},
		{"a barrier on many ranks", barrierWhere(func(p int) bool { return p > 9 }), []int{4, 8, 12, 16}, []int{10, 24}},
		{"a barrier on the most ranks", barrierWhere(func(p int) bool { return p > 13 }), []int{4, 8, 12, 16}, []int{24}},
		{"a barrier where the ranks are no power of two", barrierWhere(func(p int) bool { return p&(p-1) != 0 }),
			[]int{6, 12, 16, 32}, []int{24, 64}},
		{"a barrier in the middle", barrierWhere(func(p int) bool { return p == 8 }), []int{4, 8, 12, 16}, []int{6, 24}},
		{"a barrier where three divides", barrierWhere(func(p int) bool { return p%3 == 0 }), []int{4, 6, 8, 9, 12}, []int{16, 18}},
		{"three times, then four, as a law of a grid has it", threeThenFour, []int{4, 6, 8, 12, 16}, []int{23, 29}},
	})
}

// movedRoots broadcasts from roots that no law gives.
func movedRoots(ranks int) *signature.Run {
	return testruns.Calls(ranks, nil, func(int) (all []testruns.Call) {
		for i := range 9 {
			all = append(all, testruns.Call{Site: 0, Call: schema.CallBcast, To: testruns.None, From: testruns.None,
				Bytes: 8, Root: i * i * i * 11 % ranks})
		}
		return all
	})
}

// A root is not estimated: a rank near the right one is a wrong one.
func TestRootsAreNotEstimated(t *testing.T) {
	x, err := generate.Predict(t.Context(), train(t, []int{4, 6, 8, 12, 16}, movedRoots), 24, generate.Options{})
	if err == nil || x.Run != nil || len(x.Gaps) != 1 {
		t.Errorf("run %v, gaps %v, %v: want no run and one gap", x.Run != nil, x.Gaps, err)
	}
}

// halfRoots broadcasts from the middle rank.
func halfRoots(ranks int) *signature.Run {
	return testruns.Calls(ranks, nil, func(int) []testruns.Call {
		return []testruns.Call{{Site: 0, Call: schema.CallBcast, To: testruns.None, From: testruns.None, Bytes: 8,
			Root: ranks / 2}}
	})
}

// Runs on even numbers of ranks do not show how a program rounds half of an odd number.
func TestRootsAreNotRounded(t *testing.T) {
	for ranks, known := range map[int32]bool{24: true, 15: false} {
		x, err := generate.Predict(t.Context(), train(t, []int{4, 6, 8, 12, 16}, halfRoots), ranks, generate.Options{})
		if known != (err == nil) || known != (x.Run != nil) || known != (len(x.Gaps) == 0) {
			t.Errorf("%d ranks: run %v, gaps %v, %v: want a run: %v", ranks, x.Run != nil, x.Gaps, err, known)
		}
	}
}

// collected sends one message from each rank to the first, which takes them as they come.
func collected(ranks int) *signature.Run {
	return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		none, order := testruns.None, rand.New(rand.NewPCG(uint64(ranks), 1))
		for range 7 {
			if rank > 0 {
				all = append(all,
					testruns.Call{Site: 1, Call: schema.CallSend, To: 0, From: none, Bytes: 144, Root: none})
			} else {
				for _, i := range order.Perm(ranks - 1) {
					all = append(all,
						testruns.Call{Site: 0, Call: schema.CallRecv, To: none, From: 1 + i, Bytes: 144, Root: none})
				}
			}
			all = append(all, testruns.Call{Site: 2, Call: schema.CallBarrier, To: none, From: none, Root: none})
		}
		return all
	})
}

// Messages to one rank are known though the order in which it takes them is not.
func TestMessagesInAnyOrder(t *testing.T) {
	m := train(t, []int{4, 6, 8, 12, 16}, collected)
	x, err := generate.Predict(t.Context(), m, 24, generate.Options{})
	if err == nil {
		t.Error("a run was made, whose receives have no law")
	}
	v := report.Judge(m, x, sign(t, collected(24)))
	if len(v.Places) > 0 || v.Edges.Exact != 23 || v.Messages.Exact != 23 {
		t.Errorf("%+v", v)
	}
}

// Targets of one-sided communication and neighbours in a graph are not predicted: no run is made without them, and a
// partial answer says so. Of an exchange that is no product of totals a warning says that pairs have no law.
func TestWhatIsNotPredicted(t *testing.T) {
	put := func(ranks int) *signature.Run {
		return testruns.Calls(ranks, nil, func(rank int) []testruns.Call {
			return []testruns.Call{{Call: schema.CallPut, To: (rank + 1) % ranks, From: testruns.None, Bytes: 8,
				Root: testruns.None}}
		})
	}
	graph := func(ranks int) *signature.Run {
		all := make([]int32, ranks)
		for r := range all {
			all[r] = int32(r)
		}
		run := testruns.Calls(ranks, [][]int32{all}, func(int) []testruns.Call {
			return []testruns.Call{{Call: schema.CallNeighborAllgather, To: testruns.None, From: testruns.None, Bytes: 8,
				Root: testruns.None, Comm: 1}}
		})
		for i := range run.Comms {
			if run.Comms[i].Kind == int16(schema.CommSplit) {
				run.Comms[i].Kind = int16(schema.CommDistGraph)
			}
		}
		return run
	}
	for name, run := range map[string]func(ranks int) *signature.Run{"put": put, "graph": graph} {
		m := train(t, []int{4, 6, 8, 12}, run)
		x, err := generate.Predict(t.Context(), m, 24, generate.Options{})
		if err == nil || x.Run != nil || len(x.Gaps) != 1 {
			t.Fatalf("%s: run %v, gaps %v, %v: want no run and one gap", name, x.Run != nil, x.Gaps, err)
		}
		p := report.NewPartial(report.NewWeigher(m, x, 24))
		if p == nil || p.Unknown != 1 || p.Gaps[0].Unknown != "peers" || p.Gaps[0].Calls.Value != 24 ||
			p.Gaps[0].Bytes.Value != 192 {
			t.Errorf("%s: %+v: want peers of 24 calls with 192 bytes unknown", name, p)
		}
		if v := report.Judge(m, x, sign(t, run(24))); v.Calls.Exact != 24 {
			t.Errorf("%s: %+v: want 24 numbers of calls known", name, v)
		}
	}
	exchange := func(ranks int) *signature.Run {
		return testruns.Calls(ranks, nil, func(int) []testruns.Call {
			return []testruns.Call{{Call: schema.CallAlltoallv, To: testruns.None, From: testruns.None, Bytes: 8,
				Root: testruns.None}}
		})
	}
	x := extrapolate(t, train(t, []int{4, 6, 8, 12}, exchange), 24)
	if !slices.ContainsFunc(x.Warnings, func(w string) bool { return strings.Contains(w, "pair of ranks exchanges") }) {
		t.Errorf("warnings %q: want one about what pairs exchange", x.Warnings)
	}
}
