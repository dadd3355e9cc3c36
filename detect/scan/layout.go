package scan

import (
	"slices"

	"github.com/commq/commq/schema"
)

// layout records the sizes of messages at each address of each rank, over the whole run. It shows whether cutting can
// succeed at all: in most programs no message is large enough to consist of smaller ones side by side.
type layout struct {
	named   map[int32]bool // datatypes
	slots   []addressSizes
	used    int
	crowded bool // too many addresses

	least, most int64 // over all sizes; 0: none
}

// addressSizes has the sizes of messages at an address of a rank.
type addressSizes struct {
	address int64
	rank    int32
	derived bool    // some message has a derived datatype
	list    []int64 // distinct sizes; nil: the slot is free
}

const (
	maxAddresses = 1 << 20
	maxSizesAt   = 1 << 6 // with more, messages are assumed to be divisible
	maxSteps     = 1 << 16
)

func newLayout(named map[int32]bool) *layout {
	return &layout{named: named, slots: make([]addressSizes, 1<<6)}
}

// put records a message end at an address.
func (l *layout) put(rank int32, address, bytes int64, datatype int32) {
	if address == schema.NullInt64 || address == 0 || bytes == 0 {
		return
	}
	if l.most = max(l.most, bytes); l.least == 0 || bytes < l.least {
		l.least = bytes
	}
	if l.crowded {
		return
	}
	s := l.find(rank, address)
	if s.list == nil {
		if l.used >= maxAddresses {
			l.crowded, l.slots = true, nil
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
		l.crowded = l.crowded || len(s.list) > maxSizesAt
	}
}

// placeHash hashes rank and address. Ranks of one program have the same addresses, so the low bits must depend on
// both.
func placeHash(rank int32, address int64) uint64 {
	h := (uint64(address)*0x9e3779b97f4a7c15 ^ uint64(uint32(rank))*0xd1342543de82ef95) * 0xbf58476d1ce4e5b9
	return h ^ h>>32
}

// find returns an address's slot, or a free one for it.
func (l *layout) find(rank int32, address int64) *addressSizes {
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
	l.slots = make([]addressSizes, 2*len(old))
	for _, s := range old {
		if s.list != nil {
			*l.find(s.rank, s.address) = s
		}
	}
}

// mayTile reports whether some message may carry several payloads: a smaller one starts at its address, and smaller
// ones can fill its place side by side. Derived datatypes may be anywhere.
func (l *layout) mayTile() bool {
	if l.crowded {
		return l.least < l.most // a smaller one may be anywhere
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
			if whole > least && l.tiles(s, whole) {
				return true
			}
		}
	}
	return false
}

// tiles reports whether messages smaller than whole can lie side by side from an address to its end.
func (l *layout) tiles(s *addressSizes, whole int64) bool {
	begins, seen := []int64{0}, map[int64]bool{0: true}
	for steps := 0; len(begins) > 0; steps++ {
		if steps > maxSteps {
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
