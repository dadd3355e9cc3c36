package predict_test

import (
	"testing"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// alternating makes a run in which each rank calls MPI_Allreduce from one place on two communicators in turn: that of so
// many neighbours, and that of its half of the ranks.
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

// As many calls on other communicators are wrong.
func TestOtherCommunicatorsAreWrong(t *testing.T) {
	const ranks = 32
	m := train(t, []int{8, 12, 16, 24}, alternating(2))
	v := report.Judge(m, extrapolate(t, m, ranks), sign(t, alternating(4)(ranks)))
	if v.Calls.Wrong != ranks || len(v.Places) != 1 || v.Places[0].Number != "members" || v.Places[0].Predicted != 3*2+3*16 ||
		v.Places[0].Measured != 3*4+3*16 {
		t.Errorf("%+v", v)
	}
}
