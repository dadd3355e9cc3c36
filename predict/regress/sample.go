package regress

import (
	"cmp"
	"fmt"
	"slices"
)

// Sample is one value of one communication, loop or computation: bytes, a count, iterations.
type Sample struct {
	Ranks  int32   `json:"ranks"`
	Rank   int32   `json:"rank"`
	Dims   []int32 `json:"dims,omitempty"`   // extents of the process grid of that run; none found: nil, then it is a line of all ranks
	Coords []int32 `json:"coords,omitempty"` // the rank's place in it, as long as Dims
	Index  []int32 `json:"index,omitempty"`  // places in the families that it is in: level, step
	Value  int64   `json:"value"`
}

// Group is what one law is looked for: the samples of one slot over ranks and runs.
type Group struct {
	Name string
	// Family names groups that may be one thing at several indices, as the levels of a multigrid: first a law of all their samples is looked
	// for. Empty: none.
	Family  string
	Samples []Sample
}

// row is a distinct sample in a form that is quick to work on.
type row struct {
	ranks, rank int64
	g, x        []int64
	index       []int64
	v           int64
	runs        int // samples that are this row
}

// onLine gives a sample without a grid one: a line.
func onLine(s *Sample) (dims, coords []int32) {
	if len(s.Dims) == 0 {
		return []int32{s.Ranks}, []int32{s.Rank}
	}
	return s.Dims, s.Coords
}

func wide(xs []int32) []int64 { return widen(nil, xs) }

// widen appends numbers.
func widen(to []int64, xs []int32) []int64 {
	for _, x := range xs {
		to = append(to, int64(x))
	}
	return to
}

// rowsOf are the distinct samples; ok is false where two that agree in all else differ in value, or grids differ in their number of axes.
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
		dims, coords := onLine(s)
		if len(coords) != len(dims) {
			return nil, false
		}
		ordered = append(ordered, row{ranks: int64(s.Ranks), rank: int64(s.Rank), g: part(dims), x: part(coords), index: part(s.Index), v: s.Value, runs: 1})
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
			if slices.Equal(last.g, r.g) && slices.Equal(last.x, r.x) && slices.Equal(last.index, r.index) && last.ranks == r.ranks {
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

// spread orders rows so that the first ones differ most: of each run and value one, then the others. Searches stop at the first that does not fit.
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

// place is where a law is asked for.
func place(ranks, rank int32, dims, coords, index []int32) (row, error) {
	s := Sample{Ranks: ranks, Rank: rank, Dims: dims, Coords: coords, Index: index}
	d, c := onLine(&s)
	if len(d) != len(c) {
		return row{}, fmt.Errorf("rank %d of %d: %d axes and %d coordinates", rank, ranks, len(d), len(c))
	}
	return row{ranks: int64(ranks), rank: int64(rank), g: wide(d), x: wide(c), index: wide(index)}, nil
}
