package spill

import (
	"strings"
	"testing"
)

// What is added in turn comes back rank by rank.
func TestRanksOneAfterAnother(t *testing.T) {
	s, err := Create(3)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		rank int32
		text string
	}{{2, "c"}, {0, "a"}, {0, "A"}, {2, "C"}, {0, "!"}} {
		if err := s.Append(x.rank, []byte(x.text)); err != nil {
			t.Fatal(err)
		}
	}
	for rank, want := range []string{"aA!", "", "cC"} {
		var b strings.Builder
		if err := s.CopyTo(int32(rank), &b); err != nil || b.String() != want || s.Bytes(int32(rank)) != int64(len(want)) {
			t.Errorf("rank %d: %q, %v; want %q", rank, b.String(), err, want)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
