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

// alternating makes a run in which each rank calls MPI_Allreduce from one place on two communicators in turn: that of
// so many neighbours, and that of its half of the ranks.
func alternating(neighbours int) func(ranks int) *signature.Run {
	return func(ranks int) *signature.Run {
		comms := make([][]int32, ranks/neighbours+2)
		for r := range ranks {
			comms[r/neighbours] = append(comms[r/neighbours], int32(r))
			half := ranks/neighbours + 2*r/ranks
			comms[half] = append(comms[half], int32(r))
		}
		return testruns.Calls(ranks, comms, func(r int) (all []testruns.Call) {
			for range 3 {
				for bytes, comm := range []int{1 + r/neighbours, 1 + ranks/neighbours + 2*r/ranks} {
					all = append(all, testruns.Call{Call: schema.CallAllreduce, To: testruns.None, From: testruns.None,
						Root: testruns.None, Bytes: 10 + bytes, Comm: comm})
				}
			}
			return all
		})
	}
}

// A call at one place in the program that uses several communicators in turn is predicted on each of them.
func TestSeveralCommunicatorsAtOnePlace(t *testing.T) {
	m := train(t, []int{8, 12, 16, 24}, alternating(2))
	for _, ranks := range []int{32, 40} {
		x, measured := extrapolate(t, m, ranks), sign(t, alternating(2)(ranks))
		if s := report.Compare(x.Signature, measured); !isPerfect(s) {
			t.Errorf("at %d ranks: %+v", ranks, s)
		}
		if v := report.Judge(m, x, measured); len(v.Places) > 0 || v.Calls.Exact != int64(ranks) {
			t.Errorf("at %d ranks: %+v", ranks, v)
		}
	}
}

// As many calls on other communicators are wrong, of other sizes or with other members.
func TestOtherCommunicatorsAreWrong(t *testing.T) {
	const ranks = 32
	m := train(t, []int{8, 12, 16, 24}, alternating(2))
	v := report.Judge(m, extrapolate(t, m, ranks), sign(t, alternating(4)(ranks)))
	if v.Calls.Wrong != ranks || len(v.Places) != 1 || v.Places[0].Number != "members" || v.Places[0].Predicted != 3*2+3*16 ||
		v.Places[0].Measured != 3*4+3*16 {
		t.Errorf("%+v", v)
	}
	parity := divided(schema.CallBarrier, func(_, r int) int { return r % 2 }, nil)
	halves := divided(schema.CallBarrier, func(p, r int) int { return 2 * r / p }, nil)
	m = train(t, []int{4, 8, 12, 16}, parity)
	if v := report.Judge(m, extrapolate(t, m, ranks), sign(t, halves(ranks))); v.Calls.Wrong != ranks {
		t.Errorf("even and odd in place of halves: %+v", v)
	}
}

// divided makes a run in which the ranks of a color call on a communicator of their own, three times; those below 0 do
// not. order puts its members in order; nil leaves them in that of the world.
func divided(call schema.CallID, color func(p, r int) int, order func(members []int32)) func(ranks int) *signature.Run {
	return func(ranks int) *signature.Run {
		var comms [][]int32
		of, at := make([]int, ranks), map[int]int{}
		for r := range ranks {
			c := color(ranks, r)
			if c < 0 {
				continue
			}
			if at[c] == 0 {
				comms = append(comms, nil)
				at[c] = len(comms)
			}
			of[r] = at[c]
			comms[at[c]-1] = append(comms[at[c]-1], int32(r))
		}
		for _, members := range comms {
			if order != nil {
				order(members)
			}
		}
		return testruns.Calls(ranks, comms, func(r int) (all []testruns.Call) {
			for range 3 {
				if of[r] > 0 {
					c := testruns.Call{Call: call, To: testruns.None, From: testruns.None, Root: testruns.None, Bytes: 8,
						Comm: of[r]}
					if call == schema.CallBcast {
						c.Root = int(comms[of[r]-1][0])
					}
					all = append(all, c)
				}
			}
			return all
		})
	}
}

// short returns the smaller extent of a balanced plane.
func short(p int) (d int) {
	for i := 1; i*i <= p; i++ {
		if p%i == 0 {
			d = i
		}
	}
	return d
}

// Runs that do not tell who is together in larger ones make no prediction of it: no call is wrong.
func TestCommunicatorsWithRivals(t *testing.T) {
	for name, c := range map[string]struct {
		color      func(p, r int) int
		train, ask []int
	}{
		"pairs, or rows of a plane": {func(p, r int) int { return r / short(p) },
			[]int{4, 6, 8, 10}, []int{12, 16, 24}},
		"every second, or columns": {func(p, r int) int { return r % short(p) },
			[]int{4, 6, 8, 10}, []int{12, 16, 24}},
		"four in a row, or the other rows": {func(p, r int) int { return r / (p / short(p)) },
			[]int{8, 12, 16}, []int{20, 24, 36}},
		"halves, or the other rows": {func(p, r int) int { return r / (p / short(p)) },
			[]int{4, 6, 8, 10}, []int{12, 16, 24}},
		"rank < size/2": {func(p, r int) int { return min(r/(p/2), 1) },
			[]int{4, 6, 8, 10}, []int{11, 12, 15}},
		"one rank each, or halves of rows": {func(p, r int) int { return 2*(r/short(p)) + 2*(r%short(p))/short(p) },
			[]int{4, 6, 8, 10}, []int{12, 16}},
	} {
		for _, call := range []schema.CallID{schema.CallAllreduce, schema.CallBcast} {
			program := divided(call, c.color, nil)
			m := train(t, c.train, program)
			for _, ranks := range c.ask {
				x, err := generate.Predict(t.Context(), m, int32(ranks), generate.Options{})
				if err != nil && x == nil {
					continue
				}
				if v := report.Judge(m, x, sign(t, program(ranks))); len(v.Places) > 0 {
					t.Errorf("%s, %s at %d: %+v", name, call, ranks, v.Places)
				}
			}
		}
	}
}

// Ranks in a communicator may be in the reverse order of the world; other orders are not known.
func TestOrderOfMembers(t *testing.T) {
	color := func(_, r int) int { return r % 2 }
	const ranks = 20
	program := divided(schema.CallBcast, color, slices.Reverse)
	m := train(t, []int{8, 12, 14, 16}, program)
	x, measured := extrapolate(t, m, ranks), sign(t, program(ranks))
	if v := report.Judge(m, x, measured); len(v.Places) > 0 || v.Calls.Exact != ranks {
		t.Errorf("reversed: %+v", v)
	}
	for _, c := range x.Signature.Comms {
		if c.Kind == "split" && (len(c.Members) != ranks/2 || c.Members[0] < c.Members[1]) {
			t.Errorf("reversed: %v", c.Members)
		}
	}
	rotated := divided(schema.CallBcast, color, func(all []int32) {
		copy(all, append(all[1:len(all):len(all)], all[0]))
	})
	m = train(t, []int{8, 12, 14, 16}, rotated)
	if x, err := generate.Predict(t.Context(), m, ranks, generate.Options{}); err == nil {
		t.Errorf("rotated: %+v", report.Judge(m, x, sign(t, rotated(ranks))))
	}
}

// Both groups of an intercommunicator call on it. That only one of them does is not predicted.
func TestBothGroupsCall(t *testing.T) {
	program := func(ranks int) *signature.Run {
		var low []int32
		for r := range ranks / 2 {
			low = append(low, int32(r))
		}
		run := testruns.Calls(ranks, [][]int32{low}, func(int) []testruns.Call {
			return []testruns.Call{{Call: schema.CallBarrier, To: testruns.None, From: testruns.None, Root: testruns.None,
				Comm: 1}}
		})
		for r := ranks / 2; r < ranks; r++ {
			row := schema.NullComm
			row.Comm, row.Remote, row.CommRank, row.WorldRank = 1, 1, int32(r-ranks/2), int32(r)
			run.Comms = append(run.Comms, row)
		}
		for i := range run.Comms {
			if run.Comms[i].Comm == 1 {
				run.Comms[i].Kind = int16(schema.CommInter)
			}
		}
		return run
	}
	const ranks = 20
	m := train(t, []int{8, 12, 14, 16}, program)
	x, err := generate.Predict(t.Context(), m, ranks, generate.Options{})
	if x == nil {
		t.Fatal(err)
	}
	if v := report.Judge(m, x, sign(t, program(ranks))); len(v.Places) > 0 || v.Calls.Exact+v.Calls.Unknown != ranks {
		t.Errorf("%v, %+v", err, v)
	}
}
