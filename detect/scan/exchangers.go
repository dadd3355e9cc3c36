package scan

import (
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/rankset"
	"github.com/commq/commq/run"
)

// maxClasses limits the number of classes, and mostExchangeRanks the memory per class, which grows with the square of
// the ranks.
const (
	maxClasses    = 1 << 12
	maxClassRanks = 1 << 11
)

// exchangers records, for each class of messages, which ranks of its communicator send to which.
type exchangers struct {
	place    map[int32]map[int32]int // rank in the communicator, by communicator id and world rank
	minRanks int
	pairs    map[ledger.Class]*pairs
	large    map[int32]bool // communicators with too many ranks
	// Unclassed counts messages not looked at: those in large communicators, and those of more classes than are kept.
	Unclassed int64
}

// pairs records which ranks send to which, by rank in the communicator.
type pairs struct {
	ranks    int
	set      rankset.Bits
	exchange rankset.Bits // set at the end: ranks each of which sends to all that it is connected with
}

func newExchangers(comms []run.Comm, least int) *exchangers {
	e := &exchangers{place: map[int32]map[int32]int{}, minRanks: least, pairs: map[ledger.Class]*pairs{},
		large: map[int32]bool{}}
	for _, c := range comms {
		if len(c.Members) < least || len(c.Members) > maxClassRanks {
			e.large[c.ID] = len(c.Members) > maxClassRanks
			continue
		}
		place := map[int32]int{}
		for i, r := range c.Members {
			place[r] = i
		}
		e.place[c.ID] = place
	}
	return e
}

// add records who sends to whom, and reports whether it could.
func (e *exchangers) add(m *ledger.Message) (classed bool) {
	place := e.place[m.Comm]
	src, known := place[m.Src]
	dst, too := place[m.Dst]
	if !known || !too {
		return !e.large[m.Comm]
	}
	for _, k := range ledger.Classes(m) {
		p := e.pairs[k]
		if p == nil {
			if len(e.pairs) >= maxClasses {
				continue
			}
			p = &pairs{ranks: len(place), set: rankset.NewBits(len(place) * len(place))}
			e.pairs[k] = p
		}
		p.set.Add(src*p.ranks + dst)
		classed = classed || k.Bytes == ledger.AnySize
	}
	return classed
}

// inExchange reports whether, in one of the message's classes, all ranks connected with its source send to each
// other.
func (e *exchangers) inExchange(m *ledger.Message) bool {
	for _, k := range ledger.Classes(m) {
		p := e.pairs[k]
		if p == nil {
			continue
		}
		if p.exchange == nil {
			p.finish(e.minRanks)
		}
		if p.exchange.Has(e.place[m.Comm][m.Src]) {
			return true
		}
	}
	return false
}

// hasExchange reports whether there is any complete exchange.
func (e *exchangers) hasExchange() bool {
	for _, p := range e.pairs {
		if p.exchange == nil {
			p.finish(e.minRanks)
		}
		if p.exchange.Len() > 0 {
			return true
		}
	}
	return false
}

// finish finds the complete exchanges: a rank and those it sends to, where each sends exactly to the others.
func (p *pairs) finish(least int) {
	n := p.ranks
	p.exchange = rankset.NewBits(n)
	circle := make([]rankset.Bits, n) // a rank and those that it sends to
	for r := range n {
		circle[r] = rankset.NewBits(n)
		circle[r].Add(r)
		for q := range n {
			if p.set.Has(r*n + q) {
				circle[r].Add(q)
			}
		}
	}
	for r := range n {
		same := circle[r].Len() >= least
		for q := 0; q < n && same; q++ {
			if circle[r].Has(q) != circle[q].Has(r) || circle[r].Has(q) && !slices.Equal(circle[r], circle[q]) {
				same = false
			}
		}
		if same {
			p.exchange.Add(r)
		}
	}
}
