package pattern

import (
	"fmt"
	"math/bits"
	"slices"
)

// Slot is one communication of a program in runs at several process counts. In each run a rank sends to at most one
// other rank there.
type Slot struct {
	Name string `json:"name"`
	// Site names the place in the program. Slots of one site whose Index is not nil are a family: one law may cover
	// them all.
	Site string `json:"site"`
	// Index is the slot's place in its family: level, step of an exchange, ordinal of a message. nil means that it is
	// in no family.
	Index []int32 `json:"index,omitempty"`
	// Partners are the names of the slots at the other side of its messages, as far as they are known: the receives
	// of a slot of sends, or the sends of a slot of receives.
	Partners []string  `json:"partners,omitempty"`
	Runs     []Mapping `json:"runs"`
	// Bytes is the largest message in each of Runs, sent or received; nil when it is not known. Slots of two families
	// with equal sizes are on the same level.
	Bytes []int64 `json:"bytes,omitempty"`
}

// Mapping is the destination of each rank in one run. Ranks are those of the world or of a communicator, as the caller
// chooses.
type Mapping struct {
	Ranks int32 `json:"ranks"`
	// Dst has an entry per rank: the rank to which it sends, which may be itself, or None.
	Dst []int32 `json:"dst"`
}

// None is the entry of Mapping.Dst of a rank that does not send.
const None int32 = -1

// check returns an error unless the table has one entry per rank and each entry is a rank or None.
func (m Mapping) check() error {
	if m.Ranks < 1 || int(m.Ranks) != len(m.Dst) {
		return fmt.Errorf("%d ranks with a table of %d destinations: one is needed per rank", m.Ranks, len(m.Dst))
	}
	for r, d := range m.Dst {
		if d < None || d >= m.Ranks {
			return fmt.Errorf("rank %d of %d sends to %d, which is no rank", r, m.Ranks, d)
		}
	}
	return nil
}

// senders counts the ranks that send.
func (m Mapping) senders() int {
	n := 0
	for _, d := range m.Dst {
		if d != None {
			n++
		}
	}
	return n
}

// Distances returns the paper's matrix of distances, of which a slot has one entry per row: destination minus source.
// sends is false for ranks that do not send.
func (m Mapping) Distances() (distance []int32, sends []bool) {
	distance, sends = make([]int32, len(m.Dst)), make([]bool, len(m.Dst))
	for r, d := range m.Dst {
		if d != None {
			distance[r], sends[r] = d-int32(r), true
		}
	}
	return distance, sends
}

// Dependent reports whether the communication forms a chain: the destination of a rank itself sends to a third rank,
// so that ranks which receive before they send would wait for one another in a row. Pairs that exchange messages, and
// senders that receive nothing, are not dependent. The paper names the property (section 4.2) without a definition;
// this is our interpretation.
func (m Mapping) Dependent() bool {
	for r, d := range m.Dst {
		if d == None || d == int32(r) {
			continue
		}
		if e := m.Dst[d]; e != None && e != int32(r) && e != d {
			return true
		}
	}
	return false
}

// run returns the slot's mapping at a process count, and false when it has none or no rank sends there.
func (s Slot) run(ranks int32) (Mapping, bool) {
	for _, m := range s.Runs {
		if m.Ranks == ranks && m.senders() > 0 {
			return m, true
		}
	}
	return Mapping{}, false
}

// check returns an error when a table of the slot is malformed.
func (s Slot) check() error {
	for _, m := range s.Runs {
		if err := m.check(); err != nil {
			return fmt.Errorf("slot %q: %w", s.Name, err)
		}
	}
	return nil
}

// contradiction returns a process count at which two runs of the slot differ: then there is no law.
func (s Slot) contradiction() (int32, bool) {
	for i, a := range s.Runs {
		for _, b := range s.Runs[:i] {
			if a.Ranks == b.Ranks && !slices.Equal(a.Dst, b.Dst) {
				return a.Ranks, true
			}
		}
	}
	return 0, false
}

// powerOfTwo reports whether n is 1, 2, 4, ...
func powerOfTwo(n int32) bool { return n > 0 && n&(n-1) == 0 }

// log2 returns floor(log2 n), for n of at least 1.
func log2(n int32) int32 { return int32(bits.Len32(uint32(n))) - 1 }

// log2up returns ceil(log2 n), for n of at least 1.
func log2up(n int32) int32 { return int32(bits.Len32(uint32(n - 1))) }
