package detect

import (
	"slices"

	"github.com/commq/commq/schema"
)

// layout is which sizes of messages there are at the addresses of ranks, in the whole run. It says whether it is worth while to look for
// messages that carry several payloads at all: most programs have none that smaller ones could lie in side by side.
type layout struct {
	named map[int32]bool // datatypes
	slots []sizes
	used  int
	full  bool // there are too many addresses

	least, most int64 // of all sizes; 0: there is none
}

// sizes are those of the messages at an address of a rank.
type sizes struct {
	address int64
	rank    int32
	derived bool    // a message has a datatype that is no named one
	list    []int64 // each once; nil: the slot is free
}

const (
	mostAddresses = 1 << 20
	mostSizesAt   = 1 << 6 // with more it is taken for granted that messages can be cut
	mostSteps     = 1 << 16
)

func newLayout(named map[int32]bool) *layout {
	return &layout{named: named, slots: make([]sizes, 1<<6)}
}

// put notes that an end of a message is at an address.
func (l *layout) put(rank int32, address, bytes int64, datatype int32) {
	if address == schema.NullInt64 || address == 0 || bytes == 0 {
		return
	}
	if l.most = max(l.most, bytes); l.least == 0 || bytes < l.least {
		l.least = bytes
	}
	if l.full {
		return
	}
	s := l.find(rank, address)
	if s.list == nil {
		if l.used >= mostAddresses {
			l.full, l.slots = true, nil
			return
		}
		if l.used++; 2*l.used > len(l.slots) {
			l.grow()
			s = l.find(rank, address)
		}
		s.address, s.rank = address, rank
	}
	s.derived = s.derived || !l.named[datatype]
	if !slices.Contains(s.list, bytes) {
		s.list = append(s.list, bytes)
		l.full = l.full || len(s.list) > mostSizesAt
	}
}

// placeHash is a hash of an address of a rank, whose low bits depend on all of both: ranks of one program have the same addresses.
func placeHash(rank int32, address int64) uint64 {
	h := (uint64(address)*0x9e3779b97f4a7c15 ^ uint64(uint32(rank))*0xd1342543de82ef95) * 0xbf58476d1ce4e5b9
	return h ^ h>>32
}

// find is an address's slot, or the free one that it would have.
func (l *layout) find(rank int32, address int64) *sizes {
	mask := uint64(len(l.slots) - 1)
	for i := placeHash(rank, address) & mask; ; i = (i + 1) & mask {
		if s := &l.slots[i]; s.list == nil || s.address == address && s.rank == rank {
			return s
		}
	}
}

// grow makes room for more addresses.
func (l *layout) grow() {
	old := l.slots
	l.slots = make([]sizes, 2*len(old))
	for _, s := range old {
		if s.list != nil {
			*l.find(s.rank, s.address) = s
		}
	}
}

// tiled says whether any message may carry several payloads, as the cutter sees it: something smaller is at its address, and smaller
// messages could lie side by side in its place. Those of derived datatypes may lie anywhere.
func (l *layout) tiled() bool {
	if l.full {
		return l.least < l.most // what is smaller may be anywhere
	}
	for i := range l.slots {
		s := &l.slots[i]
		if len(s.list) < 2 {
			continue
		}
		if s.derived {
			return true
		}
		least := slices.Min(s.list)
		for _, whole := range s.list {
			if whole > least && l.fits(s, whole) {
				return true
			}
		}
	}
	return false
}

// fits says whether messages smaller than the whole can lie side by side from an address to its end.
func (l *layout) fits(s *sizes, whole int64) bool {
	begins, seen := []int64{0}, map[int64]bool{0: true}
	for steps := 0; len(begins) > 0; steps++ {
		if steps > mostSteps {
			return true
		}
		offset := begins[len(begins)-1]
		begins = begins[:len(begins)-1]
		for _, bytes := range l.find(s.rank, s.address+offset).list {
			end := offset + bytes
			switch {
			case bytes == whole || end > whole || seen[end]:
			case end == whole:
				return true
			default:
				seen[end] = true
				begins = append(begins, end)
			}
		}
	}
	return false
}
