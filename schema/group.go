package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// The labels of MPI_Win_lock.
const (
	LabelExclusive = "exclusive"
	LabelShared    = "shared"
)

// GroupOf returns the world ranks in the label of MPI_Win_post or MPI_Win_start, in its order; nil if the label is
// null. A label that is not a list of different ranks below ranks is an error.
func GroupOf(label string, ranks int) ([]int32, error) {
	if label == NullText || label == "" {
		return nil, nil
	}
	names := strings.Split(label, ",")
	group, seen := make([]int32, 0, len(names)), make(map[int32]bool, len(names))
	for _, name := range names {
		rank, err := strconv.ParseUint(name, 10, 31)
		if err != nil || rank >= uint64(ranks) || seen[int32(rank)] {
			return nil, fmt.Errorf("the label %.40q is not a list of different ranks of the %d of the run", label,
				ranks)
		}
		group, seen[int32(rank)] = append(group, int32(rank)), true
	}
	return group, nil
}
