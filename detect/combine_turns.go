package detect

import (
	"cmp"
	"slices"
)

// leastTurns is how many times an operation must be done for roots to take turns.
const leastTurns = 2

// turns cuts the messages of a group into the times that one root after another gathers from all others, or, down, sends to all: in each, every
// rank but the root sends (or receives) just once, and no rank does anything of one before it is done with the one before. Nil where
// they are no such times, or where the root is always the same one: then the messages of each way tell it.
func (g *group) turns(down bool) (out []*once) {
	if !g.mayTurn(down) {
		return nil
	}
	events := make([][]operandEvent, len(g.ranks))
	for k, list := range g.lists {
		src, _ := slices.BinarySearch(g.ranks, g.ways[k].src)
		dst, _ := slices.BinarySearch(g.ranks, g.ways[k].dst)
		for _, m := range list {
			events[src] = append(events[src], operandEvent{m, true})
			events[dst] = append(events[dst], operandEvent{m, false})
		}
	}
	for _, list := range events {
		sortEvents(list)
	}
	t := &turning{g: g, events: events, down: down, at: make([]int, len(g.ranks)), key: make([]int, len(g.ranks))}
	roots := map[spot]map[int]bool{}
	for !t.done() {
		root, o := t.next()
		if o == nil {
			if g.whole {
				return nil
			}
			break // not all messages are there
		}
		for _, m := range o.messages {
			at := spotOf(m.comm, m.tag, m.sendSite)
			if roots[at] == nil {
				roots[at] = map[int]bool{}
			}
			roots[at][root] = true
		}
		out = append(out, o)
	}
	if len(out) < leastTurns {
		return nil
	}
	for _, of := range roots {
		if len(of) < 2 { // what is sent here has one root, and is something else
			return nil
		}
	}
	follow(out)
	return out
}

// mayTurn says whether the numbers of messages allow that: each rank sends (receives) at most once each time, and two less often.
func (g *group) mayTurn(down bool) bool {
	total, by := int64(0), map[int32]int64{}
	for k, w := range g.ways {
		total += g.count[k]
		if down {
			by[w.dst] += g.count[k]
		} else {
			by[w.src] += g.count[k]
		}
	}
	times, roots := total/int64(len(g.ranks)-1), 0
	for _, r := range g.ranks {
		if by[r] > times {
			return false
		}
		if by[r] < times {
			roots++
		}
	}
	return total%int64(len(g.ranks)-1) == 0 && times >= leastTurns && roots > 1
}

// turning is how far each rank of a group is.
type turning struct {
	g      *group
	events [][]operandEvent // by rank, in its order
	down   bool
	at     []int // by rank: its first event that is of no time yet
	key    []int // by rank: from where on its next send (down: receive) is looked for
}

func (t *turning) done() bool {
	for r, list := range t.events {
		if t.at[r] < len(list) {
			return false
		}
	}
	return true
}

// next takes the next time, and its root's place.
func (t *turning) next() (root int, o *once) {
	n := len(t.g.ranks)
	keys := make([]*operand, n)
	missing := none // a rank that sends (receives) no more can but be the root
	for r, list := range t.events {
		k := max(t.key[r], t.at[r])
		for k < len(list) && list[k].send == t.down {
			k++
		}
		t.key[r] = k
		if k == len(list) {
			if missing != none {
				return 0, nil
			}
			missing = r
			continue
		}
		keys[r] = list[k].m
	}
	for root := range n {
		if missing != none && missing != root {
			continue
		}
		if list := t.events[root]; t.at[root] == len(list) || list[t.at[root]].send != t.down { // it only gets, or only sends
			continue
		}
		if o := t.rooted(root, keys); o != nil {
			return root, o
		}
	}
	return 0, nil
}

// rooted is the time of which a rank is the root; nil where there is none.
func (t *turning) rooted(root int, keys []*operand) *once {
	n := len(t.g.ranks)
	of := make(map[*operand]bool, n-1)
	o := &once{events: make([][]operandEvent, n), after: make([]int64, n), before: make([]int64, n)}
	for r, m := range keys {
		if r != root {
			of[m] = true
			o.messages = append(o.messages, m)
		}
	}
	ends := 0
	for r, list := range t.events {
		k := t.at[r]
		for k < len(list) && of[list[k].m] {
			k++
		}
		if k == t.at[r] {
			return nil
		}
		o.events[r] = list[t.at[r]:k]
		ends += k - t.at[r]
	}
	if ends != 2*len(of) || len(of) != n-1 { // something else is between
		return nil
	}
	for r := range t.at {
		t.at[r] += len(o.events[r])
	}
	sortMessages(o.messages)
	return o
}

// follow notes for each time where those before and after it are.
func follow(list []*once) {
	for j, o := range list {
		for r, events := range o.events {
			o.after[r], o.before[r] = -1, 1<<62
			if j > 0 {
				last := list[j-1].events[r]
				o.after[r] = last[len(last)-1].seq()
				list[j-1].before[r] = events[0].seq()
			}
		}
	}
}

// sortEvents puts the ends of messages at a rank into its order.
func sortEvents(events []operandEvent) {
	slices.SortStableFunc(events, func(a, b operandEvent) int {
		if d := cmp.Compare(a.seq(), b.seq()); d != 0 || a.send == b.send {
			return d
		}
		if a.send {
			return -1
		}
		return 1
	})
}

func sortMessages(list []*operand) {
	slices.SortFunc(list, func(a, b *operand) int {
		return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.sendSeq, b.sendSeq))
	})
}

// inTurn says whether the roots come again and again in one order.
func inTurn(roots []int32) bool {
	period := 1
	for period < len(roots) && !slices.Contains(roots[:period], roots[period]) {
		period++
	}
	for k := period; k < len(roots); k++ {
		if roots[k] != roots[k-period] {
			return false
		}
	}
	return period > 1
}
