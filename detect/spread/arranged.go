package spread

import (
	"slices"

	"github.com/commq/commq/detect/evidence"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Arrange gives broadcasts the bits of their arrangement (Instance.Arranged): the root sends to all others of a
// communicator in rank order, at a call that sends nothing else, and they receive it at calls that receive nothing
// else. A root that hands out tasks, or answers, would send in another order.
func Arrange(r *ledger.Rules, l *ledger.Ledger, all *ledger.Sample, comms []run.Comm) {
	a := &arrangement{ledger: l, members: map[int32][]int32{}, foreign: map[ledger.Place]bool{}}
	for _, c := range comms {
		a.members[c.ID] = c.Members
	}
	byPlace, sent := map[ledger.Place][]*ledger.Instance{}, map[ledger.Place]int64{}
	for _, i := range l.Found {
		if i.Op == ledger.Bcast && a.isInOrder(i) {
			at := l.Messages[i.Messages[0]].Place()
			byPlace[at] = append(byPlace[at], i)
			sent[at] += int64(len(i.Messages))
		}
	}
	if len(byPlace) == 0 {
		return
	}
	a.findForeign(all)
	for at, list := range byPlace {
		if a.foreign[at] || sent[at] != r.Sent[at] {
			continue
		}
		for k, i := range list {
			i.Arranged = evidence.ArrangedBits(len(i.Ranks), k == 0)
		}
	}
}

// arrangement is the state of Arrange.
type arrangement struct {
	ledger  *ledger.Ledger
	members map[int32][]int32     // of communicators
	foreign map[ledger.Place]bool // what is sent there is received where other places' messages are, too
}

// isInOrder reports whether a root sends a payload that is not empty to all others of a communicator, at one place and
// in the order of ranks, perhaps beginning behind its own.
func (a *arrangement) isInOrder(i *ledger.Instance) bool {
	m := &a.ledger.Messages[i.Messages[0]]
	members := a.members[m.Comm]
	if i.Bytes == 0 || i.Segments > 1 || m.SendSite == schema.NullInt32 || len(members) != len(i.Ranks) ||
		len(i.Messages) != len(members)-1 || hasPiece(a.ledger.Messages, i) {
		return false
	}
	sends, root := rootSends(a.ledger.Messages, i)
	own := slices.Index(members, root)
	if own < 0 || len(sends) != len(members)-1 {
		return false
	}
	ascends, turns := true, true
	for k, at := range sends {
		to := &a.ledger.Messages[at]
		if to.Place() != m.Place() || to.Comm != m.Comm {
			return false
		}
		plain := k
		if plain >= own {
			plain++
		}
		ascends = ascends && to.Dst == members[plain]
		turns = turns && to.Dst == members[(own+1+k)%len(members)]
	}
	return ascends || turns
}

// findForeign finds the places whose messages are received at a call that also receives those of other places.
func (a *arrangement) findForeign(all *ledger.Sample) {
	type receiver struct{ comm, site int32 }
	from := map[receiver]ledger.Place{}
	note := func(m *ledger.Message) {
		if m.Src == m.Dst {
			return
		}
		k, at := receiver{m.Comm, m.RecvSite}, m.Place()
		if old, known := from[k]; !known {
			from[k] = at
		} else if old != at {
			a.foreign[old], a.foreign[at] = true, true
		}
	}
	for _, of := range all.Order {
		for _, list := range of.Ways {
			for k := range list.List {
				note(&list.List[k].Message)
			}
		}
	}
	for k := range a.ledger.Messages {
		if m := &a.ledger.Messages[k]; m.Bytes == 0 { // the sample has no empty ones
			note(m)
		}
	}
}
