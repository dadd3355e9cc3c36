package spread

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
)

// Replies withdraws exchanges of every rank with every other in which each message answers one of its receiver: each
// rank asks the others elsewhere, and they answer the questions in the order in which these come in. No collective can
// replace that, because the order is not known beforehand. If at least three quarters of the first exchanges of a place
// are replies, all are withdrawn; otherwise none is. A barrier is withdrawn if each of its messages acknowledges data.
func Replies(l *ledger.Ledger, all *ledger.Sample) {
	byPlace, ranks := map[ledger.Place][]*ledger.Instance{}, map[int32][]arrival{}
	var barriers []*ledger.Instance
	for _, i := range l.Found {
		at := l.Messages[i.Messages[0]].Place()
		if i.Op == ledger.Barrier {
			barriers = append(barriers, i)
		}
		if i.Op == ledger.Alltoall || i.Op == ledger.Alltoallv {
			byPlace[at] = append(byPlace[at], i)
		}
		if i.Op == ledger.Alltoall || i.Op == ledger.Alltoallv || i.Op == ledger.Barrier {
			for _, r := range i.Ranks {
				ranks[r] = nil
			}
		}
	}
	if len(ranks) == 0 {
		return
	}
	askers := arrivals(l, all, ranks)
	gone := map[*ledger.Instance]bool{}
	for _, i := range barriers {
		gone[i] = areReplies(l.Messages, i, ranks, askers)
	}
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

// areReplies reports whether most ranks send nothing but answers in an exchange, or all ranks in a barrier.
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
			if i.Op == ledger.Barrier { // its messages are empty; the others may ask more in between
				return a.at != first.Place() && a.of.Bytes > 0
			}
			return a.at != first.Place() && hasAsked(askers[asker{rank, a.at}], first.SendSeq, last.SendSeq)
		}) {
			answer++
		}
	}
	if i.Op == ledger.Barrier {
		return answer == len(bySource)
	}
	return 4*answer >= 3*len(bySource)
}

// maxWord is the largest message in bytes that may only tell a rank that it may send.
const maxWord = 8

// sentTo is a message as its sender sees it.
type sentTo struct {
	seq, bytes int64
	dst        int32
}

// Pongs withdraws gathers of the answers of a ping-pong: between two messages that the root receives it sends the next
// rank one of the same size, too large to be the word that this rank may send. A place where most of the first gathers
// are such answers has only these.
func Pongs(l *ledger.Ledger, all *ledger.Sample) {
	byPlace, sends := map[ledger.Place][]*ledger.Instance{}, map[int32][]sentTo{}
	for _, i := range l.Found {
		if (i.Op == ledger.Gather || i.Op == ledger.Gatherv) && (i.Proof == nil || i.Proof.Basis != ledger.ByPayload) {
			at := l.Messages[i.Messages[0]].Place()
			byPlace[at], sends[i.Root] = append(byPlace[at], i), nil
		}
	}
	if len(byPlace) == 0 {
		return
	}
	for _, of := range all.Order {
		for w, list := range of.Ways {
			if _, is := sends[w.Src]; !is {
				continue
			}
			for k := range list.List {
				m := &list.List[k].Message
				sends[w.Src] = append(sends[w.Src], sentTo{m.SendSeq, m.Bytes, m.Dst})
			}
		}
	}
	for _, list := range sends {
		slices.SortFunc(list, func(a, b sentTo) int { return cmp.Compare(a.seq, b.seq) })
	}
	gone := map[*ledger.Instance]bool{}
	for _, list := range byPlace {
		slices.SortFunc(list, func(a, b *ledger.Instance) int { return cmp.Compare(a.First, b.First) })
		first, pongs := list[:min(len(list), mostAsked)], 0
		for _, i := range first {
			if arePongs(l.Messages, i, sends[i.Root]) {
				pongs++
			}
		}
		for _, i := range list {
			gone[i] = 4*pongs >= 3*len(first)
		}
	}
	l.Found = slices.DeleteFunc(l.Found, func(i *ledger.Instance) bool {
		if gone[i] {
			l.Release(i)
		}
		return gone[i]
	})
}

// arePongs reports whether the root sends each rank a message of the size that it then receives from it, after what it
// received from the rank before. The first row of the instance need not have a message before it.
func arePongs(messages []ledger.Message, i *ledger.Instance, sends []sentTo) bool {
	order := slices.Clone(i.Messages)
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(messages[a].DoneSeq, messages[b].DoneSeq) })
	before := int64(-1)
	for _, k := range order {
		m := &messages[k]
		next, _ := slices.BinarySearchFunc(sends, m.DoneSeq, func(s sentTo, seq int64) int { return cmp.Compare(s.seq, seq) })
		if next == 0 || m.Bytes <= maxWord || sends[next-1].seq <= before || sends[next-1].dst != m.Src ||
			sends[next-1].bytes != m.Bytes {
			return false
		}
		before = m.DoneSeq
	}
	return true
}
