package generate

import (
	"slices"

	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/slots"
)

// peerLaws answers, from the model's patterns, which ranks make a call and with which peers. It caches the answers.
type peerLaws struct {
	model    *model.Model
	ranks    int32
	families map[string][]*pattern.Law
	maps     map[string]*pattern.Map // by slot name; nil: the slot is not there, or unknown
	answered map[callAt]*peers
	unknown  *unknowns

	takeSimplest bool
	settled      map[string]*pattern.Map // chosen of conflicting laws, by slot name; nil: no choice is possible
	inConflict   map[string]bool         // slots whose laws conflict
	uncertain    map[string]bool         // families with such slots
}

// callAt is an event at a place.
type callAt struct {
	event int32
	place slots.Place
}

// peers are the maps of a site at a place: which ranks make the call, to whom it sends, from whom it receives. A map
// is nil if the site has no such family, or the answer is unknown.
type peers struct{ in, to, from *pattern.Map }

func newPeerLaws(m *model.Model, ranks int32, takeSimplest bool, unknown *unknowns) *peerLaws {
	p := &peerLaws{model: m, ranks: ranks, families: map[string][]*pattern.Law{}, maps: map[string]*pattern.Map{},
		answered: map[callAt]*peers{}, unknown: unknown, takeSimplest: takeSimplest,
		settled: map[string]*pattern.Map{}, inConflict: map[string]bool{}, uncertain: map[string]bool{}}
	for i := range m.Pattern.Laws {
		l := &m.Pattern.Laws[i]
		p.families[l.Site] = append(p.families[l.Site], l)
	}
	return p
}

// peersOf returns the maps of a site at a place.
func (p *peerLaws) peersOf(x *model.Site, index []int32) *peers {
	k := callAt{x.Event.ID, slots.PlaceOf(index)}
	a, known := p.answered[k]
	if !known {
		a = &peers{}
		for _, f := range []struct {
			family string
			answer **pattern.Map
		}{{x.In, &a.in}, {x.To, &a.to}, {x.From, &a.from}} {
			if f.family != "" {
				*f.answer = p.mapOf(x, f.family, index)
			}
		}
		p.answered[k] = a
	}
	return a
}

// participates reports whether a rank makes a site's call at a place.
func (p *peerLaws) participates(x *model.Site, rank int32, index []int32) bool {
	var m *pattern.Map
	switch a := p.peersOf(x, index); {
	case x.In != "":
		m = a.in
	case x.To != "":
		m = a.to
	case x.From != "":
		m = a.from
	default:
		return len(index) == 0 || x.Calls.Slot(slots.PlaceOf(index)) != nil || len(x.Calls.Slots) == 0
	}
	return hasRank(m, rank)
}

// hasRank reports whether a map, which may be nil, has a destination for a rank.
func hasRank(m *pattern.Map, rank int32) bool {
	if m == nil {
		return false
	}
	_, found := m.Dst(rank)
	return found
}

// mapOf returns the map of a family at a place; nil if the slot is not there, or unknown.
func (p *peerLaws) mapOf(x *model.Site, family string, index []int32) *pattern.Map {
	name := model.SlotName(family, index)
	if m, known := p.maps[name]; known {
		return m
	}
	m, err := p.evaluate(family, name, index)
	if err != nil && p.takeSimplest {
		if m = p.settle(x, family, name, index); m != nil {
			p.inConflict[name], p.uncertain[family], err = true, true, nil
		}
	}
	if err != nil {
		p.unknown.addCalls(x.Event.ID, name, err.Error())
		m = nil
	}
	p.maps[name] = m
	return m
}

// evaluate returns what the laws of a family give for a place; nil if the slot is not there.
func (p *peerLaws) evaluate(family, name string, index []int32) (*pattern.Map, error) {
	if s := p.model.PatternSlot(name); s != nil {
		if p.isGone(s) {
			return nil, nil
		}
		return p.model.Pattern.Map(name, p.ranks)
	}
	laws := p.families[family]
	if len(laws) != 1 || len(index) == 0 || len(laws[0].Members) < 2 {
		return nil, nil
	}
	m, err := laws[0].Map(p.ranks, index)
	if err != nil {
		if all, e := laws[0].Indices(p.ranks); e == nil &&
			!slices.ContainsFunc(all, func(x []int32) bool { return slices.Equal(x, index) }) {
			return nil, nil // there is no such place
		}
	}
	return m, err
}

// isGone reports whether a slot exists only on few ranks: the two largest runs or more do not have it. What is done
// when an axis has one rank is not done when it has more.
func (p *peerLaws) isGone(s *pattern.Slot) bool {
	last := int32(0)
	for _, m := range s.Runs {
		last = max(last, m.Ranks)
	}
	n := len(p.model.Training)
	return p.ranks > last && n > 2 && last < p.model.Training[n-2]
}
