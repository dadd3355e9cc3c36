package neighbours

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
)

// roundsOf divides messages into rounds, each sorted by source and send; nil if that is impossible. A rank's sends are
// in a later round than what it has received before, and in none before that of its last send; it sends to another rank
// once per round. What one call completes is of one round.
func roundsOf(list []*ledger.Operand) [][]*ledger.Operand {
	for k, m := range list {
		m.At = int32(k)
	}
	byRank := eventsOf(list)
	rounds := leastRounds(boundsOf(byRank, len(list)))
	if rounds == nil {
		return nil
	}
	most := slices.Max(rounds)
	if most > 2*len(list)/len(byRank) { // too few messages per round
		return nil
	}
	of := map[*ledger.Operand]int{}
	for k, m := range list {
		of[m] = rounds[k]
	}
	return inRounds(list, of, most)
}

// bound says that a message is in no earlier round than another one, or in a later one.
type bound struct {
	than  int32
	later bool
}

// boundsOf returns the bounds of each of n messages, by the order of the events of each rank.
func boundsOf(byRank map[int32][]ledger.Event, n int) [][]bound {
	bounds := make([][]bound, n)
	add := func(m *ledger.Operand, than int32, later bool) {
		if than >= 0 && than != m.At {
			bounds[m.At] = append(bounds[m.At], bound{than, later})
		}
	}
	for _, events := range byRank {
		sent, received, last := int32(-1), int32(-1), map[int32]int32{}
		for k := 0; k < len(events); {
			if m := events[k].M; events[k].Send {
				add(m, sent, false)
				add(m, received, true)
				if to, again := last[m.Dst]; again {
					add(m, to, true)
				}
				sent, last[m.Dst] = m.At, m.At
				k++
				continue
			}
			first := events[k].M
			for ; k < len(events) && !events[k].Send && events[k].M.DoneSeq == first.DoneSeq; k++ {
				add(events[k].M, received, false)
				received = events[k].M.At
			}
			add(first, received, false)
		}
	}
	return bounds
}

// settling finds the rounds of messages. Messages that bound each other are in one round: Tarjan's algorithm finds
// these components, each after those that bound it.
type settling struct {
	bounds [][]bound
	rounds []int
	order  []int32 // in which messages were reached, from 1; 0: not yet
	low    []int32 // the least order of an open message that this one leads to
	open   []int32 // messages whose component is not complete, in the order in which they were reached
	isOpen []bool
	path   []visit // from the message where the search began to the current one
}

// visit is a message on the path, and the next of its bounds to follow.
type visit struct {
	message int32
	next    int
}

// leastRounds returns the least round of each message within its bounds, from 1; nil if a message would have to be in a
// later round than itself.
func leastRounds(bounds [][]bound) []int {
	n := len(bounds)
	s := &settling{bounds: bounds, rounds: make([]int, n), order: make([]int32, n), low: make([]int32, n),
		isOpen: make([]bool, n)}
	reached := int32(0)
	enter := func(m int32) {
		reached++
		s.order[m], s.low[m], s.isOpen[m] = reached, reached, true
		s.open, s.path = append(s.open, m), append(s.path, visit{message: m})
	}
	for m := range int32(n) {
		if s.order[m] > 0 {
			continue
		}
		for enter(m); len(s.path) > 0; {
			if than, more := s.follow(); more {
				if s.order[than] == 0 {
					enter(than)
				}
			} else if !s.leave() {
				return nil
			}
		}
	}
	return s.rounds
}

// follow returns the message of the next bound of the last one on the path; false if there is none left.
func (s *settling) follow() (than int32, more bool) {
	at := &s.path[len(s.path)-1]
	if at.next == len(s.bounds[at.message]) {
		return 0, false
	}
	than = s.bounds[at.message][at.next].than
	at.next++
	if s.isOpen[than] {
		s.low[at.message] = min(s.low[at.message], s.order[than])
	}
	return than, true
}

// leave ends the visit of the last message on the path. It returns false if the component that is complete with it has
// no round.
func (s *settling) leave() bool {
	m := s.path[len(s.path)-1].message
	if s.path = s.path[:len(s.path)-1]; len(s.path) > 0 {
		from := s.path[len(s.path)-1].message
		s.low[from] = min(s.low[from], s.low[m])
	}
	if s.low[m] < s.order[m] {
		return true
	}
	from := len(s.open) - 1
	for s.open[from] != m {
		from--
	}
	component := s.open[from:]
	s.open = s.open[:from]
	round := 1
	for _, k := range component {
		for _, b := range s.bounds[k] {
			switch {
			case s.isOpen[b.than] && b.later:
				return false
			case b.later:
				round = max(round, s.rounds[b.than]+1)
			default: // 0 within the component
				round = max(round, s.rounds[b.than])
			}
		}
	}
	for _, k := range component {
		s.rounds[k], s.isOpen[k] = round, false
	}
	return true
}

// inRounds returns the messages by round; nil if a rank sends to another twice in one.
func inRounds(list []*ledger.Operand, of map[*ledger.Operand]int, most int) [][]*ledger.Operand {
	out := make([][]*ledger.Operand, most)
	for _, m := range list {
		out[of[m]-1] = append(out[of[m]-1], m)
	}
	for _, round := range out {
		slices.SortFunc(round, func(a, b *ledger.Operand) int {
			return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.SendSeq, b.SendSeq))
		})
		ways := map[ledger.Way]bool{}
		for _, m := range round {
			ways[ledger.Way{Src: m.Src, Dst: m.Dst}] = true
		}
		if len(ways) < len(round) {
			return nil
		}
	}
	return out
}
