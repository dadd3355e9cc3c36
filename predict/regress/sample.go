package regress

import (
	"cmp"
	"fmt"
	"slices"
)

// Sample is one value of one communication, loop or computation: bytes, a count, iterations.
type Sample struct {
	Ranks int32 `json:"ranks"`
	Rank  int32 `json:"rank"`
	// extents of the process grid of the run; nil means a line of all ranks
	Dims   []int32 `json:"dims,omitempty"`
	Coords []int32 `json:"coords,omitempty"` // of the rank on the grid
	Index  []int32 `json:"index,omitempty"`  // in its families: level, step
	Value  int64   `json:"value"`
}

// Group is the samples for one law: those of one slot over ranks and runs.
type Group struct {
	Name string
	// Family names groups that may share a law with different indices, such as the levels of a multigrid: a law of all
	// their samples is tried first. It is empty for none.
	Family  string
	Samples []Sample
	// Along is 1 + the axis of the grid along which all messages of the group go; 0 if there is none.
	Along int
	// Unit is the size of an element in bytes if the values are sizes: then all are whole numbers of elements, and
	// predicted values are too, and not negative. It is 0 for other numbers.
	Unit int64
}

// rows returns the distinct samples of groups that have the same unit, in elements. ok is false if values are no whole
// numbers of elements, and as rowsOf says.
func (g *Group) rows(samples []Sample) (rows []row, ok bool) {
	if g.Unit <= 1 {
		return rowsOf(samples)
	}
	counts := slices.Clone(samples)
	for i := range counts {
		if counts[i].Value%g.Unit != 0 {
			return nil, false
		}
		counts[i].Value /= g.Unit
	}
	return rowsOf(counts)
}

// row is a distinct sample with all numbers as int64.
type row struct {
	ranks, rank int64
	g, x        []int64
	index       []int64
	v           int64
	runs        int // number of samples
}

// gridOf returns the grid of a sample, which is a line if it has none.
func gridOf(s *Sample) (dims, coords []int32) {
	if len(s.Dims) == 0 {
		return []int32{s.Ranks}, []int32{s.Rank}
	}
	return s.Dims, s.Coords
}

// wide converts numbers.
func wide(xs []int32) []int64 { return widen(nil, xs) }

// widen appends converted numbers.
func widen(to []int64, xs []int32) []int64 {
	for _, x := range xs {
		to = append(to, int64(x))
	}
	return to
}

// rowsOf returns the distinct samples. ok is false when two samples of one place differ in value, or grids in their
// number of axes.
func rowsOf(samples []Sample) (rows []row, ok bool) {
	ordered := make([]row, 0, len(samples))
	count := 0
	for i := range samples {
		count += max(1, len(samples[i].Dims)) + max(1, len(samples[i].Coords)) + len(samples[i].Index)
	}
	numbers := make([]int64, 0, count) // of all rows
	part := func(xs []int32) []int64 {
		from := len(numbers)
		numbers = widen(numbers, xs)
		return numbers[from:len(numbers):len(numbers)]
	}
	for i := range samples {
		s := &samples[i]
		dims, coords := gridOf(s)
		if len(coords) != len(dims) {
			return nil, false
		}
		ordered = append(ordered, row{ranks: int64(s.Ranks), rank: int64(s.Rank), g: part(dims), x: part(coords),
			index: part(s.Index), v: s.Value, runs: 1})
	}
	slices.SortFunc(ordered, func(a, b row) int {
		if c := slices.Compare(a.g, b.g); c != 0 {
			return c
		}
		if c := slices.Compare(a.x, b.x); c != 0 {
			return c
		}
		if c := slices.Compare(a.index, b.index); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.ranks, b.ranks), cmp.Compare(a.v, b.v))
	})
	for _, r := range ordered {
		if len(rows) > 0 {
			last := &rows[len(rows)-1]
			if len(last.g) != len(r.g) || len(last.index) != len(r.index) {
				return nil, false
			}
			if slices.Equal(last.g, r.g) && slices.Equal(last.x, r.x) && slices.Equal(last.index, r.index) &&
				last.ranks == r.ranks {
				if last.v != r.v {
					return nil, false
				}
				last.runs++
				continue
			}
		}
		rows = append(rows, r)
	}
	return rows, true
}

// spread orders rows so that the first ones differ most: one of each run and value, then the others. Checks of a law
// then fail early.
func spread(rows []row) []row {
	type key struct{ ranks, v int64 }
	seen := map[key]bool{}
	var first, rest []row
	for _, r := range rows {
		if k := (key{r.ranks, r.v}); !seen[k] {
			seen[k] = true
			first = append(first, r)
		} else {
			rest = append(rest, r)
		}
	}
	return append(first, rest...)
}

// newPlace returns the place of a rank as a row without a value.
func newPlace(ranks, rank int32, dims, coords, index []int32) (row, error) {
	s := Sample{Ranks: ranks, Rank: rank, Dims: dims, Coords: coords, Index: index}
	d, c := gridOf(&s)
	if len(d) != len(c) {
		return row{}, fmt.Errorf("rank %d of %d: %d axes and %d coordinates", rank, ranks, len(d), len(c))
	}
	return row{ranks: int64(ranks), rank: int64(rank), g: wide(d), x: wide(c), index: wide(index)}, nil
}
