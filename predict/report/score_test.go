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

// Suggestions are ordered by how many warnings name a run, then by its ranks.
func TestSuggest(t *testing.T) {
	got := report.Suggest([]report.Warning{{Name: "a", Run: 16}, {Name: "b"}, {Name: "c", Run: 8}, {Name: "d", Run: 32},
		{Name: "e", Run: 32}})
	want := []report.Suggestion{{Ranks: 32, Reasons: []string{"d", "e"}}, {Ranks: 8, Reasons: []string{"c"}},
		{Ranks: 16, Reasons: []string{"a"}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
