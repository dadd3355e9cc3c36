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

// toNextRow sends a message to the next row of a grid that is as even as possible.
func toNextRow(ranks int) *signature.Run {
	rows, columns := squarish(ranks)
	return testruns.Messages(ranks, func(r int) (all []testruns.Message) {
		if r/columns+1 < rows {
			all = append(all, message(3, r+columns, 9, 4097))
		}
		return all
	})
}

// Runs on 4, 6 and 14 ranks have two columns, so that many laws fit, and the runs do not tell which one is right on 24.
// A run on 8 ranks has two columns, too: it is suggested as the runs are few, but after one with three columns, which
// settles everything.
func TestSuggestedRunSettlesMost(t *testing.T) {
	const wanted = 24
	training := []int{4, 6, 14}
	m := train(t, training, toNextRow)
	x, err := generate.Predict(t.Context(), m, wanted, generate.Options{})
	if err == nil {
		t.Fatalf("the runs tell the grid on %d ranks", wanted)
	}
	weigher := report.NewWeigher(m, x, wanted)
	all := report.Suggest(report.Warnings(weigher), weigher.Weigh)
	if len(all) != 2 || all[0].Ranks != 12 || all[1].Ranks != 8 {
		t.Fatalf("suggests %+v, want runs on 12 and 8 ranks", all)
	}
	if w := all[0].Weight; w == nil || w.UnknownCalls == 0 || w.SettledCalls != w.UnknownCalls {
		t.Errorf("on 12 ranks: %+v, want all settled", w)
	}
	if w := all[1].Weight; w == nil || w.SettledCalls != 0 {
		t.Errorf("on 8 ranks: %+v, want none settled", w)
	}
	if p := report.NewPartial(weigher); p.Gaps[0].Run != 12 {
		t.Errorf("%+v: want a run on 12 ranks", p.Gaps[0])
	}
	if _, err := generate.Predict(t.Context(), train(t, append(training, 8), toNextRow), wanted,
		generate.Options{}); err == nil {
		t.Error("a run on 8 ranks settles it")
	}
	x = extrapolate(t, train(t, append(training, 12), toNextRow), wanted)
	if s := report.Compare(x.Signature, sign(t, toNextRow(wanted))); !isPerfect(s) {
		t.Errorf("with a run on 12 ranks: %+v", s)
	}
}

// Rival laws of communicators, roots and numbers of iterations are asked, too. With the suggested run all is known.
func TestSuggestedRunSettlesOtherLaws(t *testing.T) {
	const wanted = 24
	rows := func(p int) int { return p / short(p) }
	root := func(p, _ int) []testruns.Call {
		return []testruns.Call{{Call: schema.CallBcast, To: testruns.None, From: testruns.None, Bytes: 8, Root: rows(p) - 1}}
	}
	for name, c := range map[string]struct {
		program  func(ranks int) *signature.Run
		training []int
		warning  string
	}{
		"communicators": {divided(schema.CallAllreduce, func(p, r int) int { return r / short(p) }, nil),
			[]int{4, 6, 8, 10}, report.Undecided},
		"roots":      {fivePoint(root), []int{4, 6, 10, 14}, report.Undecided},
		"iterations": {fivePoint(barriers(rows)), []int{4, 6, 10, 14}, report.LoopCounts},
	} {
		m := train(t, c.training, c.program)
		x, _ := generate.Predict(t.Context(), m, wanted, generate.Options{})
		w := report.NewWeigher(m, x, wanted)
		all := report.Suggest(report.Warnings(w), w.Weigh)
		if len(all) == 0 || !slices.Contains(all[0].Reasons, c.warning) || all[0].Weight.SettledCalls == 0 {
			t.Errorf("%s: suggests %+v, want %s first", name, all, c.warning)
			continue
		}
		x = extrapolate(t, train(t, append(c.training, int(all[0].Ranks)), c.program), wanted)
		if v := report.Judge(m, x, sign(t, c.program(wanted))); len(x.Loops) > 0 || v.Calls.Unknown+v.Calls.Wrong > 0 {
			t.Errorf("%s: with a run on %d ranks: loops %v, %+v", name, all[0].Ranks, x.Loops, v)
		}
	}
}
