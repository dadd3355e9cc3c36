package extrap

import (
	"strings"
	"testing"
)

// Extra-P takes fewer numbers of ranks than five, and then its models are guesses.
func TestTooFew(t *testing.T) {
	var all []Measurement
	for _, ranks := range []int32{2, 4, 4, 8, 16} {
		all = append(all, Measurement{Ranks: ranks})
	}
	const want = "Extra-P wants 5 numbers of ranks or more for a model; the runs have 4 numbers"
	if got := TooFew(all); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := TooFew(append(all, Measurement{Ranks: 32})); got != "" {
		t.Error(got)
	}
}

func TestWrite(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, []Measurement{{3, "bytes", "", 4097}, {5, "calls", "MPI_Send in f->g (a<b>.c)", 9}}); err != nil {
		t.Fatal(err)
	}
	const want = `{"params":{"p":3},"callpath":"main","metric":"bytes","value":4097}
{"params":{"p":5},"callpath":"main->MPI_Send in f-g (a<b>.c)","metric":"calls","value":9}
`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
}
