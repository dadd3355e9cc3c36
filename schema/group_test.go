package schema

import (
	"slices"
	"testing"
)

func TestGroupOf(t *testing.T) {
	for _, c := range []struct {
		label string
		want  []int32
		fails bool
	}{
		{NullText, nil, false}, {"", nil, false}, {LabelNone, []int32{}, false}, {"3", []int32{3}, false},
		{"5,0,3", []int32{5, 0, 3}, false}, {"0-5", []int32{0, 1, 2, 3, 4, 5}, false},
		{"4,0-2,5-5", []int32{4, 0, 1, 2, 5}, false},
		{"6", nil, true}, {"3,3", nil, true}, {"-1", nil, true}, {"1,", nil, true}, {"exclusive", nil, true},
		{"0-6", nil, true}, {"2-1", nil, true}, {"0-2,1", nil, true}, {"1-", nil, true}, {"1-2-3", nil, true},
		{"0-99999999999", nil, true}, {"none,1", nil, true},
	} {
		got, err := GroupOf(c.label, 6)
		if !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) || (err != nil) != c.fails {
			t.Errorf("%q: %v, %v", c.label, got, err)
		}
	}
}

func FuzzGroupOf(f *testing.F) {
	for _, label := range []string{NullText, LabelNone, "5,0,3", "4,0-2", "3,3", ",", "2-1", "99999999999"} {
		f.Add(label)
	}
	f.Fuzz(func(t *testing.T, label string) {
		group, err := GroupOf(label, 6)
		if known := label != NullText && label != ""; (group != nil) != (err == nil && known) {
			t.Errorf("%q: %v, %v", label, group, err)
		}
		seen := map[int32]bool{}
		for _, rank := range group {
			if rank < 0 || rank >= 6 || seen[rank] {
				t.Errorf("%q: rank %d", label, rank)
			}
			seen[rank] = true
		}
	})
}
