package extrap

import (
	"strings"
	"testing"
)

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
