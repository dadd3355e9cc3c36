package detect

import (
	"cmp"
	"slices"
)

// takers knows which instance a message is part of by its source and its row, in 8 bytes a message: a map of all that is replayed would be
// half as large as what is replayed.
type takers struct {
	messages []message
	found    []*instance
	owner    []int32           // by message: place in found plus 1; 0: it is part of none
	bySource map[int32][]int32 // messages that are part of one, in the order of the sends; then of their instances
}

func newTakers(messages []message, found []*instance) *takers {
	t := &takers{messages, slices.Clone(found), make([]int32, len(messages)), map[int32][]int32{}}
	count := map[int32]int{}
	for k, i := range found {
		for _, m := range i.messages {
			if t.owner[m] == 0 {
				count[messages[m].src]++
			}
			t.owner[m] = int32(k) + 1
		}
	}
	for src, n := range count {
		t.bySource[src] = make([]int32, 0, n)
	}
	for m, owner := range t.owner {
		if src := messages[m].src; owner != 0 {
			t.bySource[src] = append(t.bySource[src], int32(m))
		}
	}
	for _, list := range t.bySource {
		slices.SortFunc(list, func(a, b int32) int {
			return cmp.Or(cmp.Compare(messages[a].sendSeq, messages[b].sendSeq), cmp.Compare(t.owner[a], t.owner[b]))
		})
	}
	return t
}

// of is the instance that what a rank sends in a row is part of, of several (pieces may be of different ones) the last; nil where there is none.
func (t *takers) of(src int32, seq int64) *instance {
	list := t.bySource[src]
	behind, _ := slices.BinarySearchFunc(list, seq, func(m int32, seq int64) int {
		if t.messages[m].sendSeq <= seq {
			return -1
		}
		return 1
	})
	if behind == 0 || t.messages[list[behind-1]].sendSeq != seq {
		return nil
	}
	return t.found[t.owner[list[behind-1]]-1]
}
