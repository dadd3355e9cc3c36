// Package pattern finds the rules by which the ranks of a program choose whom they send to, from runs at a few process counts, and
// asks them at another: local equations per communication and process count, the process grid of the program, and general
// equations in the process count, after Panadero, Wong, Rexachs and Luque, "Predicting the communication pattern evolution for
// scalability analysis" (2013). It sees slots, which are tables of destinations, and knows neither runs nor files.
//
// A law is found when it gives every destination of every training run exactly. All laws that are about as simple as the simplest
// are kept, and asked together: where they disagree there is no answer but a Refusal that names them.
// docs/method/prediction-patterns.md has the rules.
package pattern

import (
	"fmt"
	"math/bits"
	"slices"
)

// Slot is one communication of a program, as runs at several process counts show it: each rank sends to at most one other there.
type Slot struct {
	Name string `json:"name"`
	// Site names the place in the program. Slots of one site whose Index is not nil are a family: one law may cover them all.
	Site string `json:"site"`
	// Index is the slot's place in its family: level, step of an exchange, ordinal of a message. Nil when there is none.
	Index []int32 `json:"index,omitempty"`
	// Partners are the names of the slots of the other side of its messages, as far as that is known: they receive from where this one is whom it
	// sends to, or the reverse.
	Partners []string  `json:"partners,omitempty"`
	Runs     []Mapping `json:"runs"`
	// Bytes is the largest message in each of Runs; nil where it is not known. Slots of two families that have the same are of the same level. Of receives: what comes.
	Bytes []int64 `json:"bytes,omitempty"`
}

// Mapping is whom each rank sends to in one run. A rank is one of the world or of a communicator; the caller says which.
type Mapping struct {
	Ranks int32 `json:"ranks"`
	// Dst has an entry per rank: the rank that it sends to, which may be itself, or -1 when it does not send here.
	Dst []int32 `json:"dst"`
}

// None is the entry of Mapping.Dst of a rank that does not send.
const None int32 = -1

// check returns an error when the mapping's table has not one entry per rank, or an entry is no rank.
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

// Distances is the paper's matrix of distances of a slot with one destination per source, kept as its one entry per row:
// destination minus source, and false for ranks that do not send.
func (m Mapping) Distances() (distance []int32, sends []bool) {
	distance, sends = make([]int32, len(m.Dst)), make([]bool, len(m.Dst))
	for r, d := range m.Dst {
		if d != None {
			distance[r], sends[r] = d-int32(r), true
		}
	}
	return distance, sends
}

// Dependent says whether the communication chains: some rank's destination itself sends to a third one, so that a program that
// receives before it sends would have the ranks wait for one another in a row. Pairs that exchange, and senders that are
// nobody's destination, are not dependent. The paper names the property (section 4.2) and does not define it; this is our reading.
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

// run returns the slot's mapping at a process count, and false when it has none or nobody sends there.
func (s Slot) run(ranks int32) (Mapping, bool) {
	for _, m := range s.Runs {
		if m.Ranks == ranks && m.senders() > 0 {
			return m, true
		}
	}
	return Mapping{}, false
}

// check returns an error that says what is wrong with the slot's tables.
func (s Slot) check() error {
	for _, m := range s.Runs {
		if err := m.check(); err != nil {
			return fmt.Errorf("slot %q: %w", s.Name, err)
		}
	}
	return nil
}

// contradiction returns a process count at which two runs of the slot differ: then no law in the process count exists.
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

// powerOfTwo says whether n is 1, 2, 4, ...
func powerOfTwo(n int32) bool { return n > 0 && n&(n-1) == 0 }

// log2 is floor(log2 n), for n of at least 1.
func log2(n int32) int32 { return int32(bits.Len32(uint32(n))) - 1 }

// log2up is ceil(log2 n), for n of at least 1.
func log2up(n int32) int32 { return int32(bits.Len32(uint32(n - 1))) }
