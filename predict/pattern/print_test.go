package pattern

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProgramText prints a ring and a slot without a law.
func TestProgramText(t *testing.T) {
	ring := truth{name: "ring", site: "ring", dst: func(p, r int32) (int32, bool) { return (r + 1) % p, true }}
	wild := Slot{Name: "wild", Site: "wild", Runs: []Mapping{{Ranks: 3, Dst: []int32{2, 2, 1}},
		{Ranks: 5, Dst: []int32{4, 0, 0, 1, 1}}, {Ranks: 7, Dst: []int32{1, 6, 0, 0, 2, 5, 3}}}}
	p, err := Fit([]Slot{ring.slot(3, 5, 7), wild}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := `
runs at [3 5 7] ranks
ring: dst = wrap_rank(+1) on a line of P
  [+1{+(P-1),+P}], [-(P-1){+1,+P}]; P = 7+K, K hops from P = 7
     3  [+1{+2,+3}], [-2{+1,+3}]  static, dependent
     5  [+1{+4,+5}], [-4{+1,+5}]  static, dependent
     7  [+1{+6,+7}], [-6{+1,+7}]  static, dependent
wild: no law: no law gives all its destinations
`
	if d := cmp.Diff(strings.TrimPrefix(want, "\n"), p.String()); d != "" {
		t.Error(d)
	}
}
