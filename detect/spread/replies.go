package spread

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
)

// Replies withdraws exchanges of every rank with every other in which each message answers one of its receiver: each rank
// asks the others elsewhere, and they answer one question after the other as these come in. No call can do that, as nobody
// knows before who asks. A place where most of the first exchanges are replies has only these.
func Replies(l *ledger.Ledger, all *ledger.Sample) {
	byPlace, ranks := map[ledger.Place][]*ledger.Instance{}, map[int32][]arrival{}
	for _, i := range l.Found {
		if i.Op == ledger.Alltoall || i.Op == ledger.Alltoallv {
			at := l.Messages[i.Messages[0]].Place()
			byPlace[at] = append(byPlace[at], i)
			for _, r := range i.Ranks {
				ranks[r] = nil
			}
		}
	}
	if len(byPlace) == 0 {
		return
	}
	askers := arrivals(l, all, ranks)
	gone := map[*ledger.Instance]bool{}
	for _, list := range byPlace {
		slices.SortFunc(list, func(a, b *ledger.Instance) int { return cmp.Compare(a.First, b.First) })
		first, replies := list[:min(len(list), mostAsked)], 0
		for _, i := range first {
			if areReplies(l.Messages, i, ranks, askers) {
				replies++
			}
		}
		if 4*replies >= 3*len(first) {
			for _, i := range list {
				gone[i] = true
			}
		}
	}
	l.Found = slices.DeleteFunc(l.Found, func(i *ledger.Instance) bool {
		if gone[i] {
			l.Release(i)
		}
		return gone[i]
	})
}

// areReplies reports whether most ranks send nothing but answers in an exchange.
func areReplies(messages []ledger.Message, i *ledger.Instance, arrived map[int32][]arrival, askers map[asker][]int64) bool {
	bySource := map[int32][]int32{}
	for _, m := range i.Messages {
		bySource[messages[m].Src] = append(bySource[messages[m].Src], m)
	}
	answer := 0
	for rank, sends := range bySource {
		slices.SortFunc(sends, func(a, b int32) int { return cmp.Compare(messages[a].SendSeq, messages[b].SendSeq) })
		first, last := &messages[sends[0]], &messages[sends[len(sends)-1]]
		if areAnswers(messages, sends, arrived[rank], func(a *arrival) bool {
			return a.at != first.Place() && hasAsked(askers[asker{rank, a.at}], first.SendSeq, last.SendSeq)
		}) {
			answer++
		}
	}
	return 4*answer >= 3*len(bySource)
}
