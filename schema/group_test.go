package schema

import (
	"slices"
	"strings"
	"testing"
)

func TestGroupOf(t *testing.T) {
	for _, c := range []struct {
		label string
		want  []int32
		fails bool
	}{
		{NullText, nil, false}, {"", nil, false}, {"3", []int32{3}, false}, {"5,0,3", []int32{5, 0, 3}, false},
		{"6", nil, true}, {"3,3", nil, true}, {"-1", nil, true}, {"1,", nil, true}, {"exclusive", nil, true},
	} {
		got, err := GroupOf(c.label, 6)
		if !slices.Equal(got, c.want) || (err != nil) != c.fails {
			t.Errorf("%q: %v, %v", c.label, got, err)
		}
	}
}

func FuzzGroupOf(f *testing.F) {
	for _, label := range []string{NullText, "5,0,3", "3,3", ",", "99999999999"} {
		f.Add(label)
	}
	f.Fuzz(func(t *testing.T, label string) {
		group, err := GroupOf(label, 6)
		if err != nil && group != nil || err == nil && label != NullText && label != "" &&
			strings.Count(label, ",") != len(group)-1 {
			t.Errorf("%q: %v, %v", label, group, err)
		}
		for _, rank := range group {
			if rank < 0 || rank >= 6 {
				t.Errorf("%q: rank %d", label, rank)
			}
		}
	})
}
