package combine

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
)

// minTurns is the minimum number of occurrences for roots to take turns.
const minTurns = 2

// turns divides the messages of a group into occurrences in which one root after another gathers from all others
// (down: sends to all). In each, every rank but the root sends (down: receives) exactly once, and no rank starts one
// before it has finished the previous one. It returns nil if the messages do not have this form, or if the root never
// changes; cut handles that case.
func (g *group) turns(down bool) (out []*occurrence) {
	if !g.mayTurn(down) {
		return nil
	}
	events := make([][]ledger.Event, len(g.ranks))
	for k, list := range g.lists {
		src, _ := slices.BinarySearch(g.ranks, g.ways[k].Src)
		dst, _ := slices.BinarySearch(g.ranks, g.ways[k].Dst)
		for _, m := range list {
			events[src] = append(events[src], ledger.Event{M: m, Send: true})
			events[dst] = append(events[dst], ledger.Event{M: m, Send: false})
		}
	}
	for _, list := range events {
		sortEvents(list)
	}
	t := &turning{g: g, events: events, down: down, next: make([]int, len(g.ranks)), key: make([]int, len(g.ranks))}
	roots := map[ledger.Place]map[int]bool{}
	for !t.done() {
		root, o := t.take()
		if o == nil {
			if g.isComplete {
				return nil
			}
			break // some messages were not read
		}
		for _, m := range o.messages {
			at := ledger.PlaceOf(m.Comm, m.Tag, m.SendSite)
			if roots[at] == nil {
				roots[at] = map[int]bool{}
			}
			roots[at][root] = true
		}
		out = append(out, o)
	}
	if len(out) < minTurns {
		return nil
	}
	for _, of := range roots {
		if len(of) < 2 { // a single root: not taking turns
			return nil
		}
	}
	setBounds(out)
	return out
}

// mayTurn reports whether the numbers of messages permit turns: each rank sends (down: receives) at most once per
// occurrence, and at least two ranks less often.
func (g *group) mayTurn(down bool) bool {
	total, by := int64(0), map[int32]int64{}
	for k, w := range g.ways {
		total += g.count[k]
		if down {
			by[w.Dst] += g.count[k]
		} else {
			by[w.Src] += g.count[k]
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
	return total%int64(len(g.ranks)-1) == 0 && times >= minTurns && roots > 1
}

// turning is the progress of each rank of a group.
type turning struct {
	g      *group
	events [][]ledger.Event // by rank, in program order
	down   bool
	next   []int // by rank: its first event that is in no occurrence yet
	key    []int // by rank: where the search for its next send (down: receive) starts
}

func (t *turning) done() bool {
	for r, list := range t.events {
		if t.next[r] < len(list) {
			return false
		}
	}
	return true
}

// take extracts the next occurrence and returns its root's place.
func (t *turning) take() (root int, o *occurrence) {
	n := len(t.g.ranks)
	keys := make([]*ledger.Operand, n)
	missing := ledger.None // a rank with no sends (down: receives) left must be the root
	for r, list := range t.events {
		k := max(t.key[r], t.next[r])
		for k < len(list) && list[k].Send == t.down {
			k++
		}
		t.key[r] = k
		if k == len(list) {
			if missing != ledger.None {
				return 0, nil
			}
			missing = r
			continue
		}
		keys[r] = list[k].M
	}
	for root := range n {
		if missing != ledger.None && missing != root {
			continue
		}
		// Such a root only receives (down: only sends).
		if list := t.events[root]; t.next[root] == len(list) || list[t.next[root]].Send != t.down {
			continue
		}
		if o := t.takeRooted(root, keys); o != nil {
			return root, o
		}
	}
	return 0, nil
}

// takeRooted returns the next occurrence with this root, or nil.
func (t *turning) takeRooted(root int, keys []*ledger.Operand) *occurrence {
	n := len(t.g.ranks)
	of := make(map[*ledger.Operand]bool, n-1)
	o := &occurrence{events: make([][]ledger.Event, n), after: make([]int64, n), before: make([]int64, n)}
	for r, m := range keys {
		if r != root {
			of[m] = true
			o.messages = append(o.messages, m)
		}
	}
	ends := 0
	for r, list := range t.events {
		k := t.next[r]
		for k < len(list) && of[list[k].M] {
			k++
		}
		if k == t.next[r] {
			return nil
		}
		o.events[r] = list[t.next[r]:k]
		ends += k - t.next[r]
	}
	if ends != 2*len(of) || len(of) != n-1 { // another event is in between
		return nil
	}
	for r := range t.next {
		t.next[r] += len(o.events[r])
	}
	sortMessages(o.messages)
	return o
}

// setBounds sets after and before of each occurrence.
func setBounds(list []*occurrence) {
	for j, o := range list {
		for r, events := range o.events {
			o.after[r], o.before[r] = -1, 1<<62
			if j > 0 {
				last := list[j-1].events[r]
				o.after[r] = last[len(last)-1].Seq()
				list[j-1].before[r] = events[0].Seq()
			}
		}
	}
}

// sortEvents sorts the events of a rank into program order.
func sortEvents(events []ledger.Event) {
	if !slices.IsSortedFunc(events, ledger.CompareEvents) {
		slices.SortStableFunc(events, ledger.CompareEvents)
	}
}

func sortMessages(list []*ledger.Operand) {
	slices.SortFunc(list, func(a, b *ledger.Operand) int {
		if d := cmp.Compare(a.Src, b.Src); d != 0 {
			return d
		}
		return cmp.Compare(a.SendSeq, b.SendSeq)
	})
}

// rootsTakeTurns reports whether the roots repeat in a fixed order.
func rootsTakeTurns(roots []int32) bool {
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
