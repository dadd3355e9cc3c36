package predict_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/report"
)

// A model from a file predicts what the model did that was written: the same calls, intervals, times and warnings.
func TestKeptModelsPredictTheSame(t *testing.T) {
	for _, c := range []struct {
		name  string
		runs  []int
		ranks int32
	}{
		{"mg.W", []int{4, 8, 16, 32}, 64}, {"cg.W", []int{4, 8, 16, 32}, 64}, {"bt.W", []int{4, 9, 16, 25}, 36},
		{"is.W", []int{4, 8, 16}, 32}, {"halo", []int{4, 6, 9, 12, 16}, 36}, {"lu.W", []int{4, 8, 16}, 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := trainOn(t, c.name, c.runs...)
			var file bytes.Buffer
			if err := m.Write(&file); err != nil {
				t.Fatal(err)
			}
			kept, err := model.Read(&file)
			if err != nil {
				t.Fatal(err)
			}
			want, got := describe(t, m, c.ranks), describe(t, kept, c.ranks)
			for i := range want {
				if want[i] != got[i] {
					t.Errorf("part %d differs: got %.300s, want %.300s", i, got[i], want[i])
				}
			}
		})
	}
}

// describe returns all of a prediction as texts: the calls, what is said about them, and the times.
func describe(t *testing.T, m *model.Model, ranks int32) (texts []string) {
	t.Helper()
	x, err := generate.Predict(t.Context(), m, ranks, generate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	warnings := report.Warnings(report.NewWeigher(m, x, ranks))
	for _, part := range []any{x.Signature, report.Slots(m, x), warnings, m.Warnings, x.Numbers,
		x.Inexact, x.Loops} {
		text, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}
