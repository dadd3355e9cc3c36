package regress

import "testing"

// Blocks with a border that the last ones lack are those of a larger extent on few numbers of blocks: 131 cells on 3
// and 4 ranks are ceil(128/g) + 1, with one less on the last. Blocks of a round extent with one border are not doubted.
func TestDoubtfulBorders(t *testing.T) {
	plain := []Cut{{Extent: 128}}
	for _, c := range []struct {
		name string
		cuts [][]Cut
		want bool
	}{
		{"plain", [][]Cut{plain, plain}, false},
		{"one border", [][]Cut{{{Extent: 128, Add: 1}}, plain}, false},
		{"the last lack a cell", [][]Cut{{{Extent: 128, Trim: TrimLast}}, plain}, false},
		{"a border that the last lack", [][]Cut{{{Extent: 128, Add: 1, Trim: TrimLast}}, plain}, true},
		{"one border, extent not round", [][]Cut{{{Extent: 131, Add: 1}}, plain}, true},
		{"equal borders, extent not round", [][]Cut{{{Extent: 131, Add: 1}}, {{Extent: 131, Add: 1}}}, false},
	} {
		if got := (&Hypothesis{Cuts: c.cuts}).hasDoubtfulBorders(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
