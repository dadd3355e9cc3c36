package rankset

import (
	"encoding/binary"
	"slices"
)

// Set is a set of ranks. For few ranks it has a bit for each. For many it has the runs of consecutive members: with a
// million ranks, most of which reach few others, bits would take 125 GB.
type Set struct {
	bits Bits // nil: runs are used
	runs []span
	room *Room // limits the runs
}

// span is the numbers from first up to, not including, end.
type span struct{ first, end int32 }

// maxBits is the largest number of ranks for which sets are bits.
const maxBits = 1 << 12

// Room limits the memory of the sets in one search. When it is used up the sets are invalid, and over is true.
type Room struct {
	All, Runs, Members int64
	maxBits            int // sets for up to this many ranks are bits
}

// Limits: memory for sets, none of which is freed during a search, and visited members, which takes some seconds.
const (
	setPart    = 4       // sets get 1/setPart of all memory
	maxMembers = 1 << 30 // members that are visited
	bytesOfRun = 8
	BytesOfSet = 32
)

// NewRoom returns the room for sets in a detection that may take so much memory in all.
func NewRoom(memoryBytes int64) Room {
	all := memoryBytes / setPart / bytesOfRun
	return Room{All: all, Runs: all, Members: maxMembers, maxBits: maxBits}
}

// Reset frees all sets.
func (r *Room) Reset() {
	if !r.Exhausted() {
		r.Runs = r.All
	}
}

func (r *Room) Exhausted() bool { return r.Runs < 0 || r.Members < 0 }

// New returns an empty set of numbers below n.
func New(n int, room *Room) Set {
	if n <= room.maxBits {
		return Set{bits: NewBits(n)}
	}
	return Set{room: room}
}

// find returns the index of the first run that ends after i.
func (s *Set) find(i int32) int {
	at, _ := slices.BinarySearchFunc(s.runs, i, func(r span, i int32) int {
		if r.end <= i {
			return -1
		}
		return 1
	})
	return at
}

func (s *Set) Has(i int) bool {
	if s.bits != nil {
		return s.bits.Has(i)
	}
	at := s.find(int32(i))
	return at < len(s.runs) && s.runs[at].first <= int32(i)
}

func (s *Set) Add(i int) {
	if s.bits != nil {
		s.bits.Add(i)
		return
	}
	s.Join(&Set{runs: []span{{int32(i), int32(i) + 1}}}, nil)
}

func (s *Set) Len() (n int) {
	if s.bits != nil {
		return s.bits.Len()
	}
	for _, r := range s.runs {
		n += int(r.end - r.first)
	}
	return n
}

// IsPrefix reports whether the members are exactly the numbers below n.
func (s *Set) IsPrefix(n int) bool {
	if s.bits != nil {
		return s.bits.isPrefix(n)
	}
	return len(s.runs) == 1 && s.runs[0] == span{0, int32(n)} || n == 0 && len(s.runs) == 0
}

// Empty reports whether the set is empty.
func (s *Set) Empty() bool { return s.bits == nil && s.runs == nil }

// Assign copies the members of other into a set.
func (s *Set) Assign(other *Set) {
	if other.bits != nil {
		s.bits = append(s.bits[:0], other.bits...)
		return
	}
	if s.room = other.room; cap(s.runs) < len(other.runs) {
		if s.room.Runs -= int64(len(other.runs)); s.room.Exhausted() {
			return
		}
	}
	s.runs = append(s.runs[:0], other.runs...)
}

// Clone returns a copy.
func (s *Set) Clone() Set {
	if s.bits != nil {
		return Set{bits: slices.Clone(s.bits)}
	}
	s.room.Runs -= int64(len(s.runs))
	if s.room.Exhausted() {
		return Set{room: s.room}
	}
	return Set{runs: slices.Clone(s.runs), room: s.room}
}

// Join adds the members of other and calls added, unless nil, with each new one in ascending order.
func (s *Set) Join(other *Set, added func(int)) {
	if s.bits != nil {
		if added == nil {
			added = func(int) {}
		}
		s.bits.Join(other.bits, added)
		return
	}
	if len(other.runs) == 0 || s.room.Exhausted() {
		return
	}
	if added != nil {
		s.visitMissing(other, added)
	}
	joined := s.runs[:0:0]
	a, b := s.runs, other.runs
	for len(a) > 0 || len(b) > 0 {
		var next span
		if len(b) == 0 || len(a) > 0 && a[0].first <= b[0].first {
			next, a = a[0], a[1:]
		} else {
			next, b = b[0], b[1:]
		}
		if n := len(joined); n > 0 && joined[n-1].end >= next.first {
			joined[n-1].end = max(joined[n-1].end, next.end)
		} else {
			joined = append(joined, next)
		}
	}
	if len(joined) <= cap(s.runs) {
		s.runs = append(s.runs[:0], joined...)
		return
	}
	s.room.Runs -= int64(len(joined))
	s.runs = joined
}

// visitMissing calls visit with each member of other that is not in s.
func (s *Set) visitMissing(other *Set, visit func(int)) {
	at := 0
	for _, r := range other.runs {
		for i := r.first; i < r.end; {
			for at < len(s.runs) && s.runs[at].end <= i {
				at++
			}
			end := r.end
			if at < len(s.runs) {
				if s.runs[at].first <= i {
					i = min(end, s.runs[at].end)
					continue
				}
				end = min(end, s.runs[at].first)
			}
			if s.room.Members -= int64(end - i); s.room.Exhausted() {
				return
			}
			for ; i < end; i++ {
				visit(int(i))
			}
		}
	}
}

// Contains reports whether a set has all members of another; apartFrom, whether it has none.
func (s *Set) Contains(other *Set) bool {
	if s.bits != nil {
		return s.bits.contains(other.bits)
	}
	for _, r := range other.runs {
		if at := s.find(r.first); at == len(s.runs) || s.runs[at].first > r.first || s.runs[at].end < r.end {
			return false
		}
	}
	return true
}

func (s *Set) Disjoint(other *Set) bool {
	if s.bits != nil {
		return s.bits.Disjoint(other.bits)
	}
	few, many := s, other
	if len(few.runs) > len(many.runs) {
		few, many = many, few
	}
	for _, r := range few.runs {
		if at := many.find(r.first); at < len(many.runs) && many.runs[at].first < r.end {
			return false
		}
	}
	return true
}

// Key returns a text that is equal for sets with the same members and different for others, among sets of equally
// many ranks.
func (s *Set) Key() string {
	var b []byte
	for _, w := range s.bits {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	for _, r := range s.runs {
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, uint32(r.first)), uint32(r.end))
	}
	return string(b)
}
