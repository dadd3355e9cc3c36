package predict

import (
	"context"
	"fmt"
	"slices"

	"github.com/commq/commq/predict/pattern"
)

// ExtrapolateUndecided is Extrapolate where laws that all have the runs may say different things of whom ranks send to at that number of ranks: of those
// with which the sends and the receives of a communication are each other's, the simplest is taken. Extrapolation.Settled names the communications, and
// Undecided says how many messages go by them. Where the runs do not tell for another reason it is an error as ever.
func (m *Model) ExtrapolateUndecided(ctx context.Context, ranks int32, progress Progress) (*Extrapolation, error) {
	return m.extrapolate(ctx, ranks, progress, true)
}

// Undecided is the warning of communications whose laws disagree and of which the simplest was taken; false where there is none.
func (x *Extrapolation) Undecided() (text string, is bool) {
	if len(x.Settled) == 0 {
		return "", false
	}
	return fmt.Sprintf("laws that all have the runs disagree about %d communications (%s), by which %d of %d messages go; the simplest law is taken: who sends there and how much may be otherwise",
		len(x.Settled), x.Settled[0], x.SettledMessages, x.Messages), true
}

// settle takes one of the laws of a slot that disagree; nil where none goes with the other side of the messages.
func (g *generator) settle(x *siteModel, family, name string, index []int32) *pattern.Map {
	if m, known := g.settled[name]; known {
		return m
	}
	var chosen *pattern.Map
	switch rivals := g.rivals(name); {
	case len(rivals) == 0:
	case family == x.in:
		chosen = g.settleTakers(x, rivals, index)
		g.settled[name] = chosen
	default:
		g.settleSides(g.slot(name), family == x.to)
		chosen = g.settled[name]
	}
	return chosen
}

// rivals are the maps that laws of a slot say, the simplest first; none where the slot cannot be asked at all.
func (g *generator) rivals(name string) []*pattern.Map {
	if m, err := g.Pattern.At(name, g.ranks); err == nil {
		return []*pattern.Map{m}
	}
	return g.Pattern.Rivals(name, g.ranks)
}

// settleSides takes laws of all slots that have the same messages: the simplest law of the sends that all of them allow, with the receives it needs.
func (g *generator) settleSides(s *pattern.Slot, sends bool) {
	both := [2][]string{{s.Name}, s.Partners} // that send, that receive
	if len(s.Partners) > 0 {
		if other := g.slot(s.Partners[0]); other != nil && slices.Contains(other.Partners, s.Name) {
			both[0] = other.Partners
		}
	}
	if !sends {
		both[0], both[1] = both[1], both[0]
	}
	if len(both[0]) == 0 {
		both[0], both[1] = both[1], nil
	}
	for _, simplest := range g.rivals(both[0][0]) {
		to := simplest.Mapping().Dst
		found, all := map[string]*pattern.Map{}, true
		for i, names := range both {
			want := to
			if i == 1 {
				want = inverse(to)
			}
			for _, name := range names {
				of := g.rivals(name)
				k := slices.IndexFunc(of, func(m *pattern.Map) bool { return slices.Equal(m.Mapping().Dst, want) })
				if all = all && k >= 0; all {
					found[name] = of[k]
				}
			}
		}
		if all {
			for name, m := range found {
				g.settled[name] = m
			}
			return
		}
	}
}

// inverse is whom each rank gets a message from, where whom each sends to is given.
func inverse(to []int32) []int32 {
	from := slices.Repeat([]int32{pattern.None}, len(to))
	for r, dst := range to {
		if dst != pattern.None {
			from[dst] = int32(r)
		}
	}
	return from
}

// settleTakers takes a law of who makes a call: that of the ranks that made the requests which it completes, else the simplest.
func (g *generator) settleTakers(x *siteModel, rivals []*pattern.Map, index []int32) *pattern.Map {
	makes := make([]bool, g.ranks)
	for _, y := range g.sites {
		if x.of[y.node.ID] {
			for r := range makes {
				makes[r] = makes[r] || g.takes(y, int32(r), index)
			}
		}
	}
	k := slices.IndexFunc(rivals, func(m *pattern.Map) bool {
		for r, want := range makes {
			if _, is := m.Dst(int32(r)); is != want {
				return false
			}
		}
		return true
	})
	return rivals[max(k, 0)]
}

// uncertain says whether a number is of a communication of which one law was taken: what is sent there nothing tells.
func (g *generator) uncertain(x *siteModel, what string) bool {
	return (what == "bytes" || what == "count") && (g.rivalSite[x.to] || g.rivalSite[x.from])
}

// tellSettled counts the messages of the slots of which a law was taken, and all.
func (g *generator) tellSettled() {
	messages := map[string]int64{}
	for name, m := range g.settled {
		if m != nil && g.wasRival[name] {
			messages[name] = 0
		}
	}
	x := g.result
	x.Settled = sortedKeys(messages)
	if len(x.Settled) == 0 {
		return
	}
	occurrences := g.signer.sig.occurrences()
	for _, s := range g.sites {
		if !s.sends {
			continue
		}
		settled := slices.ContainsFunc(s.slots, func(o *slot) bool { _, is := messages[slotName(s.to, o.index())]; return is })
		for i, c := range g.signer.sig.Values[s.node.ID].Events {
			if peerless(c.Send) {
				continue
			}
			n := occurrences[s.node.ID][i]
			if x.Messages += n; settled {
				x.SettledMessages += n
			}
		}
	}
}
