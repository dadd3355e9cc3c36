package predict_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// Three runs of a ring, and a prediction for eight times the largest: the runs are few and far away. Each warning comes
// once and suggests a run that can be made.
func TestWarnings(t *testing.T) {
	m := train(t, []int{4, 8, 16}, func(ranks int) *signature.Run { return ring(ranks, "cpu") })
	x := extrapolate(t, m, 128)
	w := report.NewWeigher(m, x, 128)
	warnings := report.Warnings(w)
	names := map[string]int{}
	for _, w := range warnings {
		names[w.Name]++
		if w.Run != 0 && (w.Run == 128 || w.Run&(w.Run-1) != 0 || slices.Contains(m.Training, w.Run)) {
			t.Errorf("%s: suggests a run on %d ranks", w.Name, w.Run)
		}
	}
	for _, name := range []string{report.FewRuns, report.FarAway} {
		if names[name] != 1 {
			t.Errorf("%s comes %d times: %+v", name, names[name], warnings)
		}
	}
	if names[report.NotExplained]+names[report.Undecided]+names[report.NewPaths]+names[report.LayoutSwitch] > 0 {
		t.Errorf("unexpected warnings: %+v", warnings)
	}
	for _, s := range report.Suggest(warnings, w.Weigh) {
		if s.Ranks < 2 || len(s.Reasons) == 0 {
			t.Errorf("%+v", s)
		}
	}
	if s := report.Slots(m, x); len(s) != 2 || s[0].Calls != 128 || s[0].Bytes != 128*4097 ||
		s[0].BytesLow != s[0].Bytes ||
		!strings.Contains(s[0].Equation, "K hops from P = 16") {
		t.Errorf("%+v", s)
	}
	if c := report.Cover(m, x, sign(t, ring(128, "cpu"))); c.Numbers != 256 || c.Covered != 256 || c.ExactRight != 256 {
		t.Errorf("%+v", c)
	}
}

// A call that only the largest run has gives a warning.
func TestNewPaths(t *testing.T) {
	m := train(t, []int{4, 8, 16, 32}, func(ranks int) *signature.Run {
		return testruns.Sends(ranks, 2, func(r, i int) (int, int) {
			if i == 1 && ranks < 32 {
				return -1, 0
			}
			return (r + 1) % ranks, 4097
		})
	})
	if !slices.ContainsFunc(report.Warnings(report.NewWeigher(m, nil, 64)),
		func(w report.Warning) bool {
			return w.Name == report.NewPaths && strings.HasPrefix(w.Text, "1 call paths")
		}) {
		t.Errorf("%+v", report.Warnings(report.NewWeigher(m, nil, 64)))
	}
}

// What ranks give in MPI_Alltoallv differs and has no exact law: no formula stands beside their sum. Of blocks of 9600
// elements the laws differ. Each warning has the share of the bytes of the calls that it names.
func TestSharesOfEstimates(t *testing.T) {
	m := train(t, []int{4, 6, 8}, func(ranks int) *signature.Run {
		return testruns.Calls(ranks, nil, func(rank int) []testruns.Call {
			next, last := (rank+1)%ranks, (rank+ranks-1)%ranks
			return []testruns.Call{
				{Call: schema.CallSendrecv, To: next, From: last, Bytes: 9600 / ranks, Root: testruns.None},
				{Site: 1, Call: schema.CallAlltoallv, To: testruns.None, From: testruns.None,
					Bytes: ranks*rank + ranks*(ranks-1)/2, Root: testruns.None},
			}
		})
	})
	x := extrapolate(t, m, 14)
	slots := report.Slots(m, x)
	if len(slots) != 2 || slots[1].Size != "no exact law, and calls of one run differ" {
		t.Fatalf("%+v", slots)
	}
	texts := map[string]string{}
	for _, w := range report.Warnings(report.NewWeigher(m, x, 14)) {
		texts[w.Name] = w.Text
	}
	for i, name := range []string{report.LawsDiffer, report.Estimated} {
		want := fmt.Sprintf(". %d of the %d bytes that are sent (", slots[i].Bytes, slots[0].Bytes+slots[1].Bytes)
		if !strings.Contains(texts[name], want) {
			t.Errorf("%s: %q: want %q", name, texts[name], want)
		}
	}
	x.Unknown = []string{"a communication"} // what is sent is then not known either
	for _, w := range report.Warnings(report.NewWeigher(m, x, 14)) {
		if strings.Contains(w.Text, "bytes that are sent") {
			t.Errorf("%s: %q", w.Name, w.Text)
		}
	}
}

// Runs of different problems give a warning; other numbers of ranks in the command do not.
func TestOtherCommands(t *testing.T) {
	for _, c := range []struct {
		of4, of8 []string
		warned   bool
	}{
		{[]string{"cg.A.4", "-n", "4"}, []string{"cg.A.8", "-n", "8"}, false},
		{[]string{"prog2", "8"}, []string{"prog2", "8"}, false},
		{[]string{"prog", "4"}, []string{"prog", "16"}, true},
		{[]string{"prog", "-a1", "-b"}, []string{"prog", "-a", "-b1"}, true},
		{[]string{"cg.A.x"}, nil, false},
		{[]string{"cg.A.x"}, []string{"cg.B.x"}, true},
		{[]string{"stencil", "-n", "100"}, []string{"stencil", "-n", "200"}, true},
		{[]string{"stencil", "-n", "100"}, []string{"stencil", "-n 100"}, true},
	} {
		var runs []*signature.Signature
		for ranks, command := range map[int][]string{4: c.of4, 8: c.of8} {
			s := sign(t, testruns.Messages(ranks, func(r int) []testruns.Message {
				return []testruns.Message{message(0, (r+1)%ranks, 1, 8)}
			}))
			s.Command = command
			runs = append(runs, s)
		}
		m, err := model.New(runs)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(report.Warnings(report.NewWeigher(m, nil, 16)),
			func(w report.Warning) bool { return w.Name == report.OtherCommands })
		if warned := i >= 0; warned != c.warned {
			t.Errorf("%q and %q: warned %v, want %v", c.of4, c.of8, warned, c.warned)
		}
	}
}
