package detect

import (
	"encoding/binary"
	"slices"
)

// rankSet is a set of numbers of ranks. Of few ranks it is a bit for each; of many it is the runs of numbers side by side that are in it, because of a
// million ranks most have to do with few others, and a bit for each of each other would be 125 GB.
type rankSet struct {
	bits bitset // nil: runs
	runs []run
	room *setRoom // of runs
}

// run are the numbers from first to before end.
type run struct{ first, end int32 }

// mostBits is the largest number of ranks of which sets are bits.
const mostBits = 1 << 12

// setRoom is how much sets of many ranks may take, in all, in what is looked at together. Where it is used up they are worth nothing any more: over says so.
type setRoom struct {
	all, runs, members int64
	bits               int // sets of up to so many ranks are bits
}

// What there is room for: so much memory of sets, of which none is given back while messages are looked at together, and so many members that are
// told one by one, which takes some seconds.
const (
	setPart     = 4       // of all memory, one of so many
	mostMembers = 1 << 30 // that are told
	bytesOfRun  = 8
	bytesOfSet  = 32
)

func (d *detector) newSetRoom() *setRoom {
	all := d.options.MemoryBytes / setPart / bytesOfRun
	room := setRoom{all: all, runs: all, members: mostMembers, bits: mostBits}
	if d.options.sets != nil {
		room = *d.options.sets
	}
	return &room
}

// again says that all sets are given back.
func (r *setRoom) again() {
	if !r.over() {
		r.runs = r.all
	}
}

func (r *setRoom) over() bool { return r.runs < 0 || r.members < 0 }

// newRankSet is an empty set of numbers below n.
func newRankSet(n int, room *setRoom) rankSet {
	if n <= room.bits {
		return rankSet{bits: newBitset(n)}
	}
	return rankSet{room: room}
}

// find is the place of the first run that ends behind i.
func (s *rankSet) find(i int32) int {
	at, _ := slices.BinarySearchFunc(s.runs, i, func(r run, i int32) int {
		if r.end <= i {
			return -1
		}
		return 1
	})
	return at
}

func (s *rankSet) has(i int) bool {
	if s.bits != nil {
		return s.bits.has(i)
	}
	at := s.find(int32(i))
	return at < len(s.runs) && s.runs[at].first <= int32(i)
}

func (s *rankSet) add(i int) {
	if s.bits != nil {
		s.bits.add(i)
		return
	}
	s.join(&rankSet{runs: []run{{int32(i), int32(i) + 1}}}, nil)
}

func (s *rankSet) len() (n int) {
	if s.bits != nil {
		return s.bits.len()
	}
	for _, r := range s.runs {
		n += int(r.end - r.first)
	}
	return n
}

// first says whether the members are the numbers below n.
func (s *rankSet) first(n int) bool {
	if s.bits != nil {
		return s.bits.first(n)
	}
	return len(s.runs) == 1 && s.runs[0] == run{0, int32(n)} || n == 0 && len(s.runs) == 0
}

// empty says whether nothing was ever put into a set.
func (s *rankSet) empty() bool { return s.bits == nil && s.runs == nil }

// set makes a set, which may be empty, one of the members of other.
func (s *rankSet) set(other *rankSet) {
	if other.bits != nil {
		s.bits = append(s.bits[:0], other.bits...)
		return
	}
	if s.room = other.room; cap(s.runs) < len(other.runs) {
		if s.room.runs -= int64(len(other.runs)); s.room.over() {
			return
		}
	}
	s.runs = append(s.runs[:0], other.runs...)
}

// clone is a set of the same members.
func (s *rankSet) clone() rankSet {
	if s.bits != nil {
		return rankSet{bits: slices.Clone(s.bits)}
	}
	s.room.runs -= int64(len(s.runs))
	if s.room.over() {
		return rankSet{room: s.room}
	}
	return rankSet{runs: slices.Clone(s.runs), room: s.room}
}

// join adds the members of other, and calls added, unless it is nil, with each that is new, in ascending order.
func (s *rankSet) join(other *rankSet, added func(int)) {
	if s.bits != nil {
		if added == nil {
			added = func(int) {}
		}
		s.bits.join(other.bits, added)
		return
	}
	if len(other.runs) == 0 || s.room.over() {
		return
	}
	if added != nil {
		s.missing(other, added)
	}
	joined := s.runs[:0:0]
	a, b := s.runs, other.runs
	for len(a) > 0 || len(b) > 0 {
		var next run
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
	s.room.runs -= int64(len(joined))
	s.runs = joined
}

// missing calls told with each member of other that is not in s.
func (s *rankSet) missing(other *rankSet, told func(int)) {
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
			if s.room.members -= int64(end - i); s.room.over() {
				return
			}
			for ; i < end; i++ {
				told(int(i))
			}
		}
	}
}

// contains says whether a set has all of another; apartFrom whether it has none.
func (s *rankSet) contains(other *rankSet) bool {
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

func (s *rankSet) apartFrom(other *rankSet) bool {
	if s.bits != nil {
		return s.bits.apartFrom(other.bits)
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

// key is the same for sets of the same members, and for no others among sets of as many ranks.
func (s *rankSet) key() string {
	var b []byte
	for _, w := range s.bits {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	for _, r := range s.runs {
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, uint32(r.first)), uint32(r.end))
	}
	return string(b)
}
