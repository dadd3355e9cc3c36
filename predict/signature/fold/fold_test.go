package fold

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSequenceFoldsRepetitions(t *testing.T) {
	for _, c := range []struct {
		in   []int32
		want string
	}{
		{[]int32{1, 2, 3}, "[1,2,3]"},
		{[]int32{1, 1, 1}, "[[3,1]]"},
		{[]int32{7, 1, 1, 2, 1, 1, 2, 1, 1, 2, 9}, "[7,[3,[2,1],2],9]"},
	} {
		var s Sequence
		for _, x := range c.in {
			s.Add(x)
		}
		var back []int32
		Each(s.Items, func(x int32) bool { back = append(back, x); return true })
		if d := cmp.Diff(c.in, back); d != "" {
			t.Errorf("%v (-in +unfolded):\n%s", c.in, d)
		}
		var parts []string
		for _, x := range s.Items {
			text, err := x.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, string(text))
		}
		if got := "[" + strings.Join(parts, ",") + "]"; got != c.want {
			t.Errorf("%v is folded to %s, want %s", c.in, got, c.want)
		}
	}
}
