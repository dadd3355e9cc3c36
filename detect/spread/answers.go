package spread

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
)

// arrival is a message received by a root.
type arrival struct {
	seq int64
	src int32
	of  ledger.Payload
	at  ledger.Place
}

// asker is a rank, and a place at which it sends.
type asker struct {
	rank int32
	at   ledger.Place
}

// Answers withdraws broadcasts in which the root talks to one rank after the other: each message answers one of its
// receiver (a task or the word to stop, an acknowledgement), or is answered before the root sends the next one (a token
// that says "your turn", a ping-pong). The latter needs a payload that is too small to be a value (maxToken), or an
// answer of the same size, from another place if most ranks are roots; others are broadcasts. If at least three
// quarters of the first broadcasts of a root at a place (of all roots, if most ranks are roots) are conversations, all
// are withdrawn; otherwise none is: a single broadcast may look like a conversation by chance, and all may lack later
// answers.
func Answers(l *ledger.Ledger, all *ledger.Sample) {
	byPlace := map[rootPlace][]*ledger.Instance{}
	roots, talkers := map[int32][]arrival{}, map[ledger.Place]map[int32]bool{}
	for _, i := range l.Found {
		if sends, root := rootSends(l.Messages, i); len(sends) > 1 {
			k := rootPlace{root, l.Messages[sends[0]].Place()}
			byPlace[k], roots[root] = append(byPlace[k], i), nil
			if talkers[k.place] == nil {
				talkers[k.place] = map[int32]bool{}
			}
			talkers[k.place][root] = true
		}
	}
	if len(roots) == 0 {
		return
	}
	askers := arrivals(l, all, roots)
	of := map[rootPlace]*tally{}
	for k, list := range byPlace {
		group, asks := k, func(*ledger.Instance) func(*arrival) bool { return anything }
		mutual := 2*len(talkers[k.place]) >= len(list[0].Ranks)
		if mutual {
			group.root = everyRoot
			asks = func(i *ledger.Instance) func(*arrival) bool {
				return func(a *arrival) bool {
					return a.at != k.place && hasAsked(askers[asker{k.root, a.at}], i.First, i.Last)
				}
			}
		}
		if of[group] == nil {
			of[group] = &tally{}
		}
		slices.SortFunc(list, func(a, b *ledger.Instance) int { return cmp.Compare(a.First, b.First) })
		of[group].add(list, func(i *ledger.Instance) bool {
			return isConversation(l.Messages, i, roots[k.root], asks(i), mutual)
		})
	}
	gone := map[*ledger.Instance]bool{}
	for _, t := range of {
		if t.areTalks() {
			for _, i := range t.all {
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

// hasAsked reports whether a rank that sends in the rows asked did so before row first, and not again until row last. A
// rank that exchanges a count and then the data with one rank after the other sends again before each answer.
func hasAsked(asked []int64, first, last int64) bool {
	next, _ := slices.BinarySearch(asked, first)
	return next > 0 && (next == len(asked) || asked[next] > last)
}

// everyRoot stands for all roots of a place, where all ranks talk.
const everyRoot = -1

// tally counts the conversations among the first broadcasts of a root at a place, or of all its roots.
type tally struct {
	all                   []*ledger.Instance
	asked, talks, answers int
}

// minAnswers is the number of messages that must be answers at a place, unless they are tokens: between three ranks,
// both messages of a broadcast follow one of their receiver by chance in one of four cases.
const minAnswers = 3

// areTalks reports whether the broadcasts are conversations.
func (t *tally) areTalks() bool {
	return 4*t.talks >= 3*t.asked && (t.answers >= minAnswers || t.all[0].Bytes <= maxToken)
}

// add adds the broadcasts of a root, in order.
func (t *tally) add(list []*ledger.Instance, isConversation func(*ledger.Instance) bool) {
	t.all = append(t.all, list...)
	for _, i := range list[:min(len(list), mostAsked)] {
		t.asked++
		if isConversation(i) {
			t.talks++
			t.answers += len(i.Ranks) - 1
		}
	}
}

// anything accepts every arrival.
func anything(*arrival) bool { return true }

// rootSends returns the messages that the root sends, in order: the root of a direct broadcast, or the rank for which
// all wait in a barrier. It returns none for other operations.
func rootSends(messages []ledger.Message, i *ledger.Instance) (sends []int32, root int32) {
	root = i.Root
	switch first := &messages[i.Messages[0]]; {
	case i.Op == ledger.Barrier && isHub(messages, i, first.Src):
		root = first.Src
	case i.Op == ledger.Barrier && isHub(messages, i, first.Dst):
		root = first.Dst
	case i.Op != ledger.Bcast || !direct(messages, i):
		return nil, root
	}
	for _, m := range i.Messages {
		if messages[m].Src == root {
			sends = append(sends, m)
		}
	}
	slices.SortFunc(sends, func(a, b int32) int { return cmp.Compare(messages[a].SendSeq, messages[b].SendSeq) })
	return sends, root
}

// isHub reports whether a rank takes part in all messages of an instance.
func isHub(messages []ledger.Message, i *ledger.Instance, rank int32) bool {
	return !slices.ContainsFunc(i.Messages, func(m int32) bool { return messages[m].Src != rank && messages[m].Dst != rank })
}

// mostAsked is the number of broadcasts of a place that show whether all of them are conversations.
const mostAsked = 32

// rootPlace is a root, and where it sends.
type rootPlace struct {
	root  int32
	place ledger.Place
}

// arrivals adds to each root the messages that it receives, in order, and returns the rows in which roots send, by
// place.
func arrivals(l *ledger.Ledger, all *ledger.Sample, roots map[int32][]arrival) map[asker][]int64 {
	askers := map[asker][]int64{}
	add := func(m *ledger.Message) {
		if _, is := roots[m.Src]; is {
			k := asker{m.Src, m.Place()}
			askers[k] = append(askers[k], m.SendSeq)
		}
		if list, is := roots[m.Dst]; is && m.Src != m.Dst {
			roots[m.Dst] = append(list, arrival{m.DoneSeq, m.Src, ledger.Payload{Hash: m.Hash, Bytes: m.Bytes}, m.Place()})
		}
	}
	for _, of := range all.Order {
		for w, list := range of.Ways {
			_, from := roots[w.Src]
			if _, to := roots[w.Dst]; !to && !from {
				continue
			}
			for k := range list.List {
				add(&list.List[k].Message)
			}
		}
	}
	for k := range l.Messages {
		if m := &l.Messages[k]; m.Bytes == 0 { // the sample has no empty ones
			add(m)
		}
	}
	for _, list := range roots {
		slices.SortFunc(list, func(a, b arrival) int { return cmp.Compare(a.seq, b.seq) })
	}
	for _, list := range askers {
		slices.Sort(list)
	}
	return askers
}

// isConversation reports whether all messages of a broadcast answer their receivers, or are answered one by one. Only
// arrivals for which asks is true are questions. mutual means that all ranks ask and answer; then messages from the
// same place are no answers.
func isConversation(messages []ledger.Message, i *ledger.Instance, list []arrival, asks func(*arrival) bool,
	mutual bool) bool {
	sends, _ := rootSends(messages, i)
	at := messages[sends[0]].Place()
	counts := func(a *arrival) bool { return !mutual || a.at != at }
	return areAnswers(messages, sends, list, asks) ||
		i.Op == ledger.Bcast && areAnswered(messages, sends, list, counts)
}

// areAnswers reports whether each of these messages answers the last message that their sender received before: it came
// from the receiver, after the message before was sent. Of messages that one call completed any may be the last. list
// has what the sender receives; only arrivals for which asks is true are questions.
func areAnswers(messages []ledger.Message, sends []int32, list []arrival, asks func(*arrival) bool) bool {
	for k, at := range sends {
		m := &messages[at]
		last := rowOf(list, firstFrom(list, m.SendSeq)-1)
		if len(last) == 0 || k > 0 && last[0].seq <= messages[sends[k-1]].SendSeq ||
			!slices.ContainsFunc(last, func(a arrival) bool { return a.src == m.Dst && asks(&a) }) {
			return false
		}
	}
	return true
}

// areAnswered reports whether a rank gets an answer to each of these messages before it sends the next one. Of messages
// that one call completed any may be the answer. Only arrivals for which counts is true are answers.
func areAnswered(messages []ledger.Message, sends []int32, list []arrival, counts func(*arrival) bool) bool {
	for k, at := range sends {
		m := &messages[at]
		next := rowOf(list, firstFrom(list, m.SendSeq))
		if len(next) == 0 || k < len(sends)-1 && next[0].seq >= messages[sends[k+1]].SendSeq ||
			!slices.ContainsFunc(next, func(a arrival) bool {
				return a.src == m.Dst && counts(&a) && (m.Bytes <= maxToken || a.of.Bytes == m.Bytes)
			}) {
			return false
		}
	}
	return true
}

// rowOf returns the arrivals in the same row as the one with this index; none if there is no such index.
func rowOf(list []arrival, k int) []arrival {
	if k < 0 || k >= len(list) {
		return nil
	}
	from, to := k, k+1
	for from > 0 && list[from-1].seq == list[k].seq {
		from--
	}
	for to < len(list) && list[to].seq == list[k].seq {
		to++
	}
	return list[from:to]
}

// firstFrom returns the index of the first arrival in a row or later.
func firstFrom(list []arrival, seq int64) int {
	next, _ := slices.BinarySearchFunc(list, seq, func(a arrival, seq int64) int { return cmp.Compare(a.seq, seq) })
	return next
}
