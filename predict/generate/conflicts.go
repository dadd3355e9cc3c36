package generate

import (
	"maps"
	"slices"

	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/slots"
)

// settle picks one of several conflicting laws of a slot; nil if none matches the other side of the messages.
func (p *peerLaws) settle(x *model.Site, family, name string, index []int32) *pattern.Map {
	if m, known := p.settled[name]; known {
		return m
	}
	rivals := p.rivals(name)
	switch {
	case len(rivals) == 0:
		return nil
	case family == x.In:
		p.settled[name] = p.settleParticipants(x, rivals, index)
	default:
		p.settleSides(p.model.PatternSlot(name), family == x.To)
	}
	return p.settled[name]
}

// rivals returns the maps that the conflicting laws of a slot give, the simplest first; nil if it has no law.
func (p *peerLaws) rivals(name string) []*pattern.Map {
	if m, err := p.model.Pattern.Map(name, p.ranks); err == nil {
		return []*pattern.Map{m}
	}
	return p.model.Pattern.Rivals(name, p.ranks)
}

// settleSides picks laws for all slots that have the same messages: the simplest law of the senders that all of them
// allow, with receivers to match.
func (p *peerLaws) settleSides(s *pattern.Slot, sends bool) {
	senders, receivers := []string{s.Name}, s.Partners
	if len(s.Partners) > 0 {
		if other := p.model.PatternSlot(s.Partners[0]); other != nil && slices.Contains(other.Partners, s.Name) {
			senders = other.Partners
		}
	}
	if !sends {
		senders, receivers = receivers, senders
	}
	if len(senders) == 0 {
		senders, receivers = receivers, nil
	}
	for _, simplest := range p.rivals(senders[0]) {
		to := simplest.Mapping().Dst
		found := map[string]*pattern.Map{}
		if p.matchRivals(senders, to, found) && p.matchRivals(receivers, inverse(to), found) {
			maps.Copy(p.settled, found)
			return
		}
	}
}

// matchRivals finds for each slot the law with the given destinations, and adds it to found. It returns false if a slot
// has none.
func (p *peerLaws) matchRivals(names []string, dst []int32, found map[string]*pattern.Map) bool {
	for _, name := range names {
		rivals := p.rivals(name)
		k := slices.IndexFunc(rivals, func(m *pattern.Map) bool { return slices.Equal(m.Mapping().Dst, dst) })
		if k < 0 {
			return false
		}
		found[name] = rivals[k]
	}
	return true
}

// inverse returns from whom each rank receives a message, given to whom each sends.
func inverse(to []int32) []int32 {
	from := slices.Repeat([]int32{pattern.None}, len(to))
	for r, dst := range to {
		if dst != pattern.None {
			from[dst] = int32(r)
		}
	}
	return from
}

// settleParticipants picks a law of which ranks make a call: the one with the ranks that made the requests that the
// call completes, otherwise the simplest.
func (p *peerLaws) settleParticipants(x *model.Site, rivals []*pattern.Map, index []int32) *pattern.Map {
	if x.Completes == nil {
		return rivals[0]
	}
	makes := make([]bool, p.ranks)
	for _, y := range p.model.Sites {
		if x.Completes.Events[y.Event.ID] {
			for r := range makes {
				makes[r] = makes[r] || p.participates(y, int32(r), index)
			}
		}
	}
	k := slices.IndexFunc(rivals, func(m *pattern.Map) bool {
		for r, want := range makes {
			if hasRank(m, int32(r)) != want {
				return false
			}
		}
		return true
	})
	return rivals[max(k, 0)]
}

// countConflicts notes in the result for which slots a conflict was resolved, and counts the messages of their sites.
func (g *generator) countConflicts() {
	resolved := map[string]bool{}
	for name, m := range g.peers.settled {
		if m != nil && g.peers.inConflict[name] {
			resolved[name] = true
		}
	}
	x := g.result
	x.Conflicts = slices.Sorted(maps.Keys(resolved))
	if len(x.Conflicts) == 0 {
		return
	}
	occurrences := g.sig.Occurrences(g.sig.Roots)
	for _, s := range g.model.Sites {
		if !s.Sends {
			continue
		}
		conflict := slices.ContainsFunc(s.Calls.Slots,
			func(slot *slots.Slot) bool { return resolved[model.SlotName(s.To, slot.Index())] })
		for i, c := range g.sig.Values[s.Event.ID].Events {
			if !c.Send.HasPeer() {
				continue
			}
			n := occurrences[s.Event.ID][i]
			if x.Messages += n; conflict {
				x.ConflictMessages += n
			}
		}
	}
}
