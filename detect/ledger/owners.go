package ledger

import (
	"cmp"
	"slices"
)

// Owners finds the instance of a message by source and row, with 8 bytes per message. A map of all candidates would
// take half as much memory as the candidates themselves.
type Owners struct {
	messages []Message
	found    []*Instance
	ownerOf  []int32           // by message: index in found plus 1; 0: no instance
	bySource map[int32][]int32 // the messages in instances, ordered by send, then instance
}

func NewOwners(messages []Message, found []*Instance) *Owners {
	t := &Owners{messages, slices.Clone(found), make([]int32, len(messages)), map[int32][]int32{}}
	count := map[int32]int{}
	for k, i := range found {
		for _, m := range i.Messages {
			if t.ownerOf[m] == 0 {
				count[messages[m].Src]++
			}
			t.ownerOf[m] = int32(k) + 1
		}
	}
	for src, n := range count {
		t.bySource[src] = make([]int32, 0, n)
	}
	for m, owner := range t.ownerOf {
		if src := messages[m].Src; owner != 0 {
			t.bySource[src] = append(t.bySource[src], int32(m))
		}
	}
	for _, list := range t.bySource {
		slices.SortFunc(list, func(a, b int32) int {
			return cmp.Or(cmp.Compare(messages[a].SendSeq, messages[b].SendSeq), cmp.Compare(t.ownerOf[a], t.ownerOf[b]))
		})
	}
	return t
}

// Owner returns the instance of what a rank sends in a row, the last one if its pieces belong to several; nil if it
// has none.
func (t *Owners) Owner(src int32, seq int64) *Instance {
	list := t.bySource[src]
	behind, _ := slices.BinarySearchFunc(list, seq, func(m int32, seq int64) int {
		if t.messages[m].SendSeq <= seq {
			return -1
		}
		return 1
	})
	if behind == 0 || t.messages[list[behind-1]].SendSeq != seq {
		return nil
	}
	return t.found[t.ownerOf[list[behind-1]]-1]
}
