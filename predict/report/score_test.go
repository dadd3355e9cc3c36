package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/sign"
)

// signSends signs a run of three ranks in which each sends one message, to a rank by its own number; negative: none.
func signSends(t *testing.T, to, bytes [3]int) *signature.Signature {
	t.Helper()
	s, err := sign.FromRows(testruns.Sends(3, 1, func(r, _ int) (int, int) { return to[r], bytes[r] }))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Predicted pairs are 0-1 and 1-2; 0-1 really occurs, with 20 bytes more, and so does 2-0, which was not predicted.
// So of 2 messages one is superfluous and one is missing, as are 20 + 50 + 60 of 180 bytes.
func TestCompare(t *testing.T) {
	predicted := signSends(t, [3]int{1, 2, -1}, [3]int{100, 50, 0})
	measured := signSends(t, [3]int{1, -1, 0}, [3]int{120, 0, 60})
	want := report.Score{Ranks: 3, EdgePrecision: 0.5, EdgeRecall: 0.5, MessageError: 1, ByteError: 130. / 180,
		Messages: 2, Bytes: 180}
	if d := cmp.Diff(want, report.Compare(predicted, measured)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// Suggestions are ordered by what they settle, not by how many warnings name a run: two warnings name 32 ranks, where
// 10 calls are settled, and one names 16, where 1,000 are. What settles nothing or cannot be weighed comes last, by how
// many warnings name it, then by ranks.
func TestSuggest(t *testing.T) {
	weights := map[int32]report.Weight{16: {UnknownCalls: 1500, SettledCalls: 1000, ToldCalls: 1000},
		32: {UnknownCalls: 1500, SettledCalls: 10, ToldCalls: 10}, 64: {UnknownCalls: 1500},
		12: {UnknownCalls: 1500, SettledCalls: 10, NarrowedCalls: 5, ToldCalls: 12},
		20: {UnknownCalls: 1500, UncertainBytes: 8, NarrowedBytes: 8}}
	got := report.Suggest([]report.Warning{{Name: "a", Run: 16}, {Name: "b"}, {Name: "c", Run: 8}, {Name: "d", Run: 32},
		{Name: "e", Run: 32}, {Name: "f", Run: 64}, {Name: "g", Run: 64}, {Name: "h", Run: 12}, {Name: "i", Run: 20}},
		func(ranks int32) (report.Weight, bool) {
			w, ok := weights[ranks]
			return w, ok
		})
	weight := func(ranks int32) *report.Weight { w := weights[ranks]; return &w }
	want := []report.Suggestion{{16, []string{"a"}, weight(16)}, {12, []string{"h"}, weight(12)},
		{32, []string{"d", "e"}, weight(32)}, {20, []string{"i"}, weight(20)}, {64, []string{"f", "g"}, weight(64)},
		{8, []string{"c"}, nil}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
