package predict_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
)

// partly is a program of which only a part has a law: each rank sends 4097 bytes to the next at site 3, and 5 bytes at
// site 5 to a rank that follows no rule, the square of its number plus the number of ranks.
func partly(ranks int) *signature.Run {
	return testruns.Messages(ranks, func(r int) []testruns.Message {
		return []testruns.Message{message(3, (r+1)%ranks, 9, 4097), message(5, (r*r*r+3*r*r+ranks*ranks/3)%ranks, 9, 5)}
	})
}

// What is known of a run is told although not all is: 29 messages of 4097 bytes. The others are as many as ranks in all
// runs, so that 29 are expected, with 5 bytes each. Nothing that is claimed is wrong.
func TestPartialAnswer(t *testing.T) {
	m := train(t, []int{5, 7, 11, 13}, partly)
	x, err := generate.Predict(t.Context(), m, 29, generate.Options{})
	if err == nil || x.Run != nil {
		t.Fatalf("a run was predicted of which a part has no law: %v", err)
	}
	p := report.NewPartial(report.NewWeigher(m, x, 29))
	if p == nil || p.Known != 1 || p.Unknown != 1 || p.Messages != 29 || p.Bytes != 29*4097 || p.Edges != 29 {
		t.Fatalf("%+v", p)
	}
	g := p.Gaps[0]
	if g.Unknown != "calls" || g.Why == "" || len(g.Seen) != 4 ||
		g.Seen[3] != (report.Seen{Ranks: 13, Calls: 13, Bytes: 65, Callers: 13,
			CallsOfACaller: report.Spread{Least: 1, Quarter: 1, Median: 1, ThreeQuarters: 1, Most: 1},
			BytesOfACaller: report.Spread{Least: 5, Quarter: 5, Median: 5, ThreeQuarters: 5, Most: 5}}) {
		t.Errorf("%+v", g)
	}
	if g.Calls.Value != 29 || !g.Calls.InAllRuns || g.Bytes.Value != 145 {
		t.Errorf("totals: %+v, %+v", g.Calls, g.Bytes)
	}
	v := report.Judge(m, x, sign(t, partly(29)))
	if v.Edges.Wrong+v.Calls.Wrong+v.Messages.Wrong+v.Bytes.Wrong != 0 || v.Messages.Exact != 29 ||
		v.Messages.Unknown != 29 || v.Bytes.Exact != 29 {
		t.Errorf("%+v", v)
	}
}

// Which worker takes how many of 840 tasks has no law. That all of them are taken is one, and how they are spread over the
// workers is as in the runs.
func TestWorkIsADistribution(t *testing.T) {
	const tasks = 840
	shares := func(workers int) []int { // the first is slow and the last fast, by how much differs from run to run
		skew := 0.4 + 0.1*float64(workers*7%4)
		all := make([]int, workers)
		left := tasks
		for i := range all[:workers-1] {
			part := (1 - skew/2) + skew*float64((i*5+workers)%workers)/float64(workers)
			all[i] = int(part * tasks / float64(workers))
			left -= all[i]
		}
		all[workers-1] = left
		return all
	}
	program := func(ranks int) *signature.Run {
		work := shares(ranks - 1)
		return testruns.Messages(ranks, func(r int) (all []testruns.Message) {
			if r == 0 {
				return append(all, message(3, 1, 9, 8))
			}
			for range work[r-1] {
				all = append(all, message(5, 0, 9, 16))
			}
			return append(all, message(7, (r*r*r+3*r*r+ranks*ranks/3)%ranks, 9, 5)) // to whom has no law
		})
	}
	m := train(t, []int{5, 7, 11, 13, 17}, program)
	x, err := generate.Predict(t.Context(), m, 25, generate.Options{})
	p := report.NewPartial(report.NewWeigher(m, x, 25))
	if p == nil || len(p.Gaps) != 2 {
		t.Fatalf("%v: %+v", err, p)
	}
	g := p.Gaps[0] // that of most calls
	if g.Calls.Value != tasks || !g.Calls.InAllRuns || g.Callers.Value != 24 || !g.Callers.InAllRuns {
		t.Errorf("calls %+v, callers %+v", g.Calls, g.Callers)
	}
	work := shares(24)
	slices.Sort(work)
	for name, c := range map[string]struct {
		got  report.Total
		want int
	}{
		"least": {g.CallsOfACaller.Least, work[0]}, "quarter": {g.CallsOfACaller.Quarter, work[5]},
		"median": {g.CallsOfACaller.Median, work[11]}, "three quarters": {g.CallsOfACaller.ThreeQuarters, work[17]},
		"most":           {g.CallsOfACaller.Most, work[23]},
		"bytes of least": {g.BytesOfACaller.Least, 16 * work[0]}, "bytes of most": {g.BytesOfACaller.Most, 16 * work[23]},
	} {
		if c.got.High == nil || c.got.Low > int64(c.want) || *c.got.High < int64(c.want) || c.got.Low == *c.got.High ||
			*c.got.High > 4*int64(c.want) {
			t.Errorf("%s: %+v; want %d", name, c.got, c.want)
		}
	}
}

// What is in a loop that may repeat another number of times is not known: 3, 5, 4 and 9 messages to the next rank have
// no law, though their destinations have one.
func TestUncertainCountIsUnknown(t *testing.T) {
	times := map[int]int{5: 3, 7: 5, 11: 4, 13: 9}
	m := train(t, []int{5, 7, 11, 13}, func(ranks int) *signature.Run {
		return testruns.Messages(ranks, func(r int) (all []testruns.Message) {
			for range times[ranks] {
				all = append(all, message(3, (r+1)%ranks, 9, 4097))
			}
			return append(all, message(5, (r*r*r+3*r*r+ranks*ranks/3)%ranks, 9, 5), message(7, (r+2)%ranks, 9, 70))
		})
	})
	x, err := generate.Predict(t.Context(), m, 29, generate.Options{})
	p := report.NewPartial(report.NewWeigher(m, x, 29))
	if err == nil || p == nil || p.Known != 1 || p.Unknown != 2 || p.Messages != 29 || p.Bytes != 29*70 {
		t.Fatalf("%v, %+v", err, p)
	}
	if why := p.Gaps[0].Why; !strings.HasPrefix(why, "there may be ") || !strings.Contains(why, "iterations of loop") {
		t.Errorf("%+v", p.Gaps)
	}
	if certain := report.CertainSlots(m, x); len(certain) != 1 || certain[0].Bytes != 29*70 {
		t.Errorf("%+v: want the last call", certain)
	}
	listed := report.Slots(m, x)
	if len(listed) != 2 {
		t.Fatalf("%+v: want the two with a law", listed)
	}
	loop, known := listed[0], listed[1]
	if loop.CallsLow >= loop.Calls || loop.CallsHigh <= loop.Calls || loop.BytesLow != 4097*loop.CallsLow ||
		loop.BytesHigh != 4097*loop.CallsHigh {
		t.Errorf("%+v: want bounds of calls and of bytes", loop)
	}
	if all := report.NewTotals(m, x); all.Messages.Value != loop.Calls+known.Calls ||
		all.Messages.Low != loop.CallsLow+29 || all.Messages.High != loop.CallsHigh+29 ||
		all.Bytes.Low != loop.BytesLow+29*70 || all.Bytes.High != loop.BytesHigh+29*70 {
		t.Errorf("%+v: want the sums of %+v and %+v", all, loop, known)
	}
	if known.CallsLow != 29 || known.CallsHigh != 29 || known.BytesLow != 29*70 || known.BytesHigh != 29*70 {
		t.Errorf("%+v: want no bounds", known)
	}
}

// A prediction that claims a wrong number is found out: of a ring that turns round above 20 ranks every edge is wrong.
func TestJudgeFindsWrongNumbers(t *testing.T) {
	ring := func(ranks int) *signature.Run {
		return testruns.Messages(ranks, func(r int) []testruns.Message {
			if ranks > 20 {
				return []testruns.Message{message(3, (r+ranks-1)%ranks, 9, 70)}
			}
			return []testruns.Message{message(3, (r+1)%ranks, 9, 77)}
		})
	}
	m := train(t, []int{5, 7, 11, 13}, ring)
	v := report.Judge(m, extrapolate(t, m, 29), sign(t, ring(29)))
	if v.Edges.Wrong != 2*29 || v.Messages.Exact != 29 || v.Bytes.Wrong != 29 || len(v.Places) != 1 {
		t.Fatalf("%+v", v)
	}
	if w := v.Places[0]; w.Number != "bytes" || w.Ranks != 29 || w.Predicted != 77 || w.Measured != 70 {
		t.Errorf("%+v", w)
	}
}

// MG on 64 and 128 ranks, from 4 to 32: its levels are left by ever more ranks, and waits go with them. What is known
// is right.
func TestNothingOfMGIsWrong(t *testing.T) {
	m := trainOn(t, "mg.W", 4, 8, 16, 32)
	for _, ranks := range []int{64, 128} {
		x, _ := generate.Predict(t.Context(), m, int32(ranks), generate.Options{})
		v := report.Judge(m, x, readRun(t, "mg.W", ranks))
		for what, tally := range map[string]report.Tally{"edges": v.Edges, "calls": v.Calls, "messages": v.Messages,
			"bytes": v.Bytes} {
			if tally.Wrong != 0 || tally.Exact == 0 {
				t.Errorf("%d ranks, %s: %+v; %+v", ranks, what, tally, v.Places)
			}
		}
	}
	if _, err := model.New(m.Runs()[:1]); err == nil {
		t.Error("a model of one run")
	}
}
