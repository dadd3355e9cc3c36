package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// LabelNone is the label of MPI_Win_post and MPI_Win_start when the group is empty.
const LabelNone = "none"

// The labels of MPI_Win_lock.
const (
	LabelExclusive = "exclusive"
	LabelShared    = "shared"
)

// GroupOf returns the world ranks in the label of MPI_Win_post or MPI_Win_start, in its order: 5,0-3 are 5, 0, 1, 2 and
// 3. It returns nil if the label is null: the group is not known. A label that is not a list of different ranks below
// ranks is an error.
func GroupOf(label string, ranks int) ([]int32, error) {
	switch label {
	case NullText, "":
		return nil, nil
	case LabelNone:
		return []int32{}, nil
	}
	group, seen := []int32(nil), make(map[int32]bool)
	for part := range strings.SplitSeq(label, ",") {
		first, last, ok := rankRange(part, ranks)
		for rank := first; rank <= last && ok; rank++ {
			group, ok = append(group, rank), !seen[rank]
			seen[rank] = true
		}
		if !ok {
			return nil, fmt.Errorf("the label %.40q is not a list of different ranks of the %d of the run", label,
				ranks)
		}
	}
	return group, nil
}

// rankRange reads a rank below ranks, or two as FIRST-LAST.
func rankRange(text string, ranks int) (first, last int32, ok bool) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	a, err := strconv.ParseUint(from, 10, 31)
	b, err2 := strconv.ParseUint(to, 10, 31)
	return int32(a), int32(b), err == nil && err2 == nil && a <= b && b < uint64(ranks)
}
