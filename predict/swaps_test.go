package predict_test

import (
	"testing"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// molecular is a program that moves particles, as molecular dynamics does: in each step all ranks swap those near
// their borders with both neighbours along each of three axes, in a loop over directions; in some, ranks send those
// that left to one neighbour along each axis, and to the other where there are two. At the end of the first of two runs
// rank 0 asks all others for theirs. size returns the bytes of a swap; with thin parts, ranks need those behind their
// neighbours too.
type molecular struct {
	size func(rank, step, swap int) int
	thin int // extents from which on parts are thin
}

func (m molecular) run(ranks int) *signature.Run {
	dims, axis := []int{1, 1, 1}, 2
	for p := ranks; p > 1; p /= 2 {
		dims[axis] *= 2
		axis = (axis + 2) % 3
	}
	return testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		add := func(site int, call schema.CallID, to, from, bytes int) {
			all = append(all, testruns.Call{Site: site, Call: call, To: to, From: from, Bytes: bytes, Root: testruns.None})
		}
		none := testruns.None
		strides := []int{dims[1] * dims[2], dims[2], 1}
		neighbour := func(axis, by int) int {
			x := rank / strides[axis] % dims[axis]
			return rank + ((x+by+dims[axis])%dims[axis]-x)*strides[axis]
		}
		swaps := func(site, step int) {
			swap := 0
			for axis, extent := range dims {
				times := 1
				if extent >= m.thin {
					times = 2
				}
				for range times {
					for _, by := range []int{-1, 1} {
						add(site, schema.CallSend, neighbour(axis, by), none, m.size(rank, step, swap))
						add(site+1, schema.CallRecv, none, neighbour(axis, -by), m.size(neighbour(axis, -by), step, swap))
						swap++
					}
				}
			}
		}
		for repeat := range 2 {
			add(0, schema.CallBarrier, none, none, 0)
			for step := range 4 {
				if step == 2 {
					for axis, extent := range dims {
						add(1, schema.CallSend, neighbour(axis, -1), none, 4)
						add(2, schema.CallRecv, none, neighbour(axis, 1), 4)
						if extent > 2 {
							add(3, schema.CallSend, neighbour(axis, 1), none, 4)
							add(4, schema.CallRecv, none, neighbour(axis, -1), 4)
						}
					}
				}
				swaps(5, 4*repeat+step)
			}
			if repeat == 1 {
				continue
			}
			for other := 1; other < ranks; other++ {
				switch rank {
				case 0:
					add(7, schema.CallSend, other, none, 0)
					add(8, schema.CallRecv, none, other, 40)
				case other:
					add(9, schema.CallRecv, none, 0, 0)
					add(10, schema.CallSend, 0, none, 40)
				}
			}
		}
		return all
	})
}

// Swaps of constant size are known, and the second sends of those that left, which the axes begin to have one by one.
func TestSwaps(t *testing.T) {
	m := molecular{func(int, int, int) int { return 80 }, 1 << 20}
	x, measured := extrapolate(t, train(t, []int{8, 16, 32, 64}, m.run), 128), sign(t, m.run(128))
	if s := report.Compare(x.Signature, measured); !isPerfect(s) {
		t.Errorf("%+v", s)
	}
}

// Swaps of sizes that follow the data are known as long as no axis is longer than in the runs. Beyond, ranks may need
// more of them: their number is unknown.
func TestSwapsOfAnySize(t *testing.T) {
	data := func(rank, step, swap int) int { return 24 * (10 + (rank*7919+step*104729+swap*1299709)%31) }
	for _, c := range []struct {
		training    []int
		ranks, thin int
		exact       int64 // the least percentage of numbers of calls
	}{
		{[]int{8, 16, 32}, 64, 1 << 20, 75},
		{[]int{8, 16, 32, 64}, 128, 8, 50},
	} {
		m := molecular{data, c.thin}
		model := train(t, c.training, m.run)
		x, err := generate.Predict(t.Context(), model, int32(c.ranks), generate.Options{})
		if x == nil {
			t.Fatal(err)
		}
		v := report.Judge(model, x, sign(t, m.run(c.ranks)))
		all := v.Calls.Exact + v.Calls.Wrong + v.Calls.Inside + v.Calls.Outside + v.Calls.Unknown
		if len(v.Places) > 0 || 100*v.Calls.Exact < c.exact*all {
			t.Errorf("at %d ranks, thin from %d: %+v", c.ranks, c.thin, v)
		}
	}
}
