package signature_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/commq/commq/internal/mutate"
	"github.com/commq/commq/predict"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/signature"
)

// A broken signature gives an error; one that can be read can be expanded, or gives an error.
func FuzzRead(f *testing.F) {
	s, _, err := predict.Sign(testruns.Scripts("iababz", "iabz"))
	if err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.String())
	f.Add(`{"commq_signature":1,"ranks":1,"template":{"loop":true},"values":[{"loops":[[[9,[9,0]]]]}],"roots":[0]}`)
	f.Fuzz(fuzzRead)
}

func fuzzRead(t *testing.T, text string) {
	s, err := signature.Read(strings.NewReader(text))
	if err != nil || s.Calls > 1<<16 {
		return
	}
	for r := range s.Ranks {
		_, _ = s.Expand(r)
	}
}

// The same with a good signature, its values changed.
func FuzzReadEdited(f *testing.F) {
	s, _, err := predict.Sign(testruns.Scripts("iababz", "iabz"))
	if err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{0, 9, 1, 8, 1, 0, 4, 7})
	f.Fuzz(func(t *testing.T, edits []byte) { fuzzRead(t, mutate.JSON(b.String(), edits)) })
}
