package predict_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
)

// A ring, and a line whose last rank does not send, with shrinking payloads, are predicted exactly.
func TestRingAndLine(t *testing.T) {
	program := func(ranks int) *signature.Run {
		return testruns.Sends(ranks, 2, func(r, i int) (int, int) {
			if i == 1 && r == ranks-1 {
				return -1, 0
			}
			return (r + 1) % ranks, 5040 * 8 / ranks
		})
	}
	var runs []*signature.Signature
	for _, ranks := range []int{3, 4, 5, 6, 7} {
		runs = append(runs, sign(t, program(ranks)))
	}
	m, err := model.New(runs)
	if err != nil {
		t.Fatal(err)
	}
	x := extrapolate(t, m, 12)
	want := report.Score{Ranks: 12, EdgePrecision: 1, EdgeRecall: 1, Messages: 23, Bytes: 23 * 3360}
	if got := report.Compare(x.Signature, sign(t, program(12))); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Random destinations have no law.
func TestRandomDestinations(t *testing.T) {
	var runs []*signature.Signature
	for _, ranks := range []int{9, 11, 14, 17} {
		g := rand.New(rand.NewPCG(uint64(ranks), 8))
		runs = append(runs, sign(t, testruns.Sends(ranks, 1, func(int, int) (int, int) { return g.IntN(ranks), 4097 })))
	}
	m, err := model.New(runs)
	if err != nil {
		t.Fatal(err)
	}
	if m.Unexplained != 17 || m.Traffic != 17 {
		t.Errorf("%d of %d messages are not explained, want all 17", m.Unexplained, m.Traffic)
	}
	if _, err := generate.Predict(t.Context(), m, 20, generate.Options{}); err == nil ||
		!strings.Contains(err.Error(), "are not known there") {
		t.Errorf("got %v", err)
	}
}
