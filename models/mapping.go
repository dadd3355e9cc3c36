package models

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/commq/commq/schema"
)

// MappingText returns the node of each rank as text without the file of --mapping, in runs of ranks: 0x4 are four ranks
// on node 0, 0-3 are four ranks on the nodes 0 to 3, 5 is one rank on node 5.
func MappingText(nodes []int) string {
	var runs []string
	for rank := 0; rank < len(nodes); {
		first, same, next := nodes[rank], 1, 1
		for rank+same < len(nodes) && nodes[rank+same] == first {
			same++
		}
		for rank+next < len(nodes) && nodes[rank+next] == first+next {
			next++
		}
		text := strconv.Itoa(first)
		switch {
		case same > 1:
			text += "x" + strconv.Itoa(same)
		case next > 1:
			if after := rank + next; after < len(nodes) && nodes[after] == nodes[after-1] {
				next-- // the last one begins ranks of one node
			}
			if next > 1 {
				text += "-" + strconv.Itoa(first+next-1)
			}
		}
		runs = append(runs, text)
		rank += max(same, next)
	}
	return strings.Join(runs, ",")
}

// ReadMappingText reads what MappingText returned.
func ReadMappingText(text string) (nodes []int, err error) {
	for run := range strings.SplitSeq(text, ",") {
		first, step, count, ok := readRanks(run)
		if !ok || count > schema.MaxRanks-len(nodes) {
			return nil, fmt.Errorf("%q is not a mapping such as 0x4,1x4 (four ranks on each of the nodes 0 and 1) or "+
				"0-3 (one on each), of at most %d ranks", run, schema.MaxRanks)
		}
		for range count {
			nodes = append(nodes, first)
			first += step
		}
	}
	return nodes, nil
}

// readRanks reads some ranks of a mapping: the node of the first, how much larger that of each further one is, and
// their number.
func readRanks(text string) (first, step, count int, ok bool) {
	node := func(text string) int {
		n, err := strconv.ParseUint(text, 10, 31)
		ok = ok && err == nil
		return int(n)
	}
	ok = true
	if a, b, same := strings.Cut(text, "x"); same {
		first, count = node(a), node(b)
	} else if a, b, many := strings.Cut(text, "-"); many {
		first, step = node(a), 1
		count = node(b) - first + 1
	} else {
		first, count = node(text), 1
	}
	return first, step, count, ok && count > 0
}
