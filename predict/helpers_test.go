package predict_test

import (
	"compress/gzip"
	"fmt"
	"os"
	"testing"

	"github.com/commq/commq/predict"
	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
)

// sign makes the signature of a run.
func sign(t testing.TB, run *signature.Run) *signature.Signature {
	t.Helper()
	s, _, err := predict.Sign(run)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// train makes a model of a program's runs at these numbers of ranks.
func train(t testing.TB, ranks []int, program func(ranks int) *signature.Run) *model.Model {
	t.Helper()
	var runs []*signature.Signature
	for _, p := range ranks {
		runs = append(runs, sign(t, program(p)))
	}
	m, err := model.New(runs)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// extrapolate predicts the run at a number of ranks.
func extrapolate(t testing.TB, m *model.Model, ranks int) *generate.Prediction {
	t.Helper()
	x, err := generate.Predict(t.Context(), m, int32(ranks), generate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// message returns a message that a rank sends at a call site.
func message(site, to, tag, bytes int) testruns.Message {
	return testruns.Message{Site: site, To: to, Tag: tag, Bytes: bytes}
}

// isPerfect reports whether all messages and bytes were predicted.
func isPerfect(s report.Score) bool {
	return s.EdgePrecision == 1 && s.EdgeRecall == 1 && s.MessageError == 0 && s.ByteError == 0
}

// readRun reads the signature of a program's run from testdata.
func readRun(t *testing.T, name string, ranks int) *signature.Signature {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("../testdata/signatures/%s.%d.json.gz", name, ranks))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	s, err := signature.Read(z)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// trainOn makes a model of runs from testdata.
func trainOn(t *testing.T, name string, ranks ...int) *model.Model {
	t.Helper()
	var runs []*signature.Signature
	for _, p := range ranks {
		runs = append(runs, readRun(t, name, p))
	}
	m, err := model.New(runs)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
