package generate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/slots"
)

// peerLaws answers, from the model's patterns, which ranks make a call and with which peers. It caches the answers.
type peerLaws struct {
	model    *model.Model
	ranks    int32
	families map[string][]*pattern.Law
	maps     map[string]*pattern.Map // by slot name; nil: the slot is not there, or unknown
	callers  map[string]*pattern.Map // by slot name: callersIfKnown
	answered map[callAt]*peers
	unknown  *unknowns
	inverses pattern.Inverses
	holes    map[*pattern.Law]bool // by law: whether its family lacks places within its range

	selves int // calls, or places, with which all ranks send to themselves in all runs

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
		callers: map[string]*pattern.Map{}, answered: map[callAt]*peers{}, holes: map[*pattern.Law]bool{},
		unknown: unknown, takeSimplest: takeSimplest, settled: map[string]*pattern.Map{},
		inConflict: map[string]bool{}, uncertain: map[string]bool{}}
	for i := range m.Pattern.Laws {
		l := &m.Pattern.Laws[i]
		p.families[l.Site] = append(p.families[l.Site], l)
	}
	for _, x := range m.Sites {
		for _, l := range p.families[x.To] {
			if l.ShowsNoPartner() && !pattern.IsGuarded(l) {
				p.selves += len(l.Members)
			}
		}
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
	case x.AllCall:
		return true
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

// callersIfKnown returns who makes a site's call at a place by the law of that; nil if none tells, which is not noted.
func (p *peerLaws) callersIfKnown(x *model.Site, index []int32) *pattern.Map {
	if x.In == "" {
		return nil
	}
	name := model.SlotName(x.In, index)
	if m, known := p.maps[name]; known {
		return m
	}
	m, known := p.callers[name]
	if !known {
		var err error
		if m, err = p.evaluate(x.In, name, index); err != nil {
			m = nil
		}
		p.callers[name] = m
	}
	return m
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
	if err == nil && family != x.In && p.ranks > p.model.LargestRun() && p.showsNoPartner(family, index) {
		err = &pattern.Refusal{Slot: name, Ranks: p.ranks, Reason: pattern.Ambiguous,
			Detail: "in all runs ranks send to themselves alone, as along an axis of one rank, which does not tell to whom"}
	}
	if err != nil && p.takeSimplest {
		if m = p.settle(x, family, name, index); m != nil {
			p.inConflict[name], p.uncertain[family], err = true, true, nil
		}
	}
	var refusal *pattern.Refusal
	switch errors.As(err, &refusal); {
	case refusal != nil && refusal.Reason != pattern.Ambiguous && family == x.In && x.FollowsRequests():
		m = nil // its requests tell
	case refusal != nil && refusal.Reason == pattern.Unaligned:
		p.unknown.addLevels(x.Event.ID, name, err.Error())
		m = nil
	case refusal != nil && (refusal.Reason == pattern.Ambiguous || refusal.Reason == pattern.Holes):
		p.unknown.addDoubt(x.Event.ID, name, err.Error())
		m = nil
	case err != nil:
		p.unknown.addCalls(x.Event.ID, name, err.Error())
		m = nil
	}
	p.maps[name] = m
	return m
}

// showsNoPartner reports whether a place of a family has no other partners in the runs than the ranks themselves. One
// call with which all ranks send to themselves is taken for a copy, or for the middle of a stencil; two or more may go
// along an axis of one rank, one in each direction.
func (p *peerLaws) showsNoPartner(family string, index []int32) bool {
	laws := p.families[family]
	var l *pattern.Law
	switch {
	case len(index) > 0 && len(laws) > 0:
		l = p.lawAt(family, index)
	case len(laws) == 1:
		l = laws[0]
	}
	return l != nil && l.ShowsNoPartner() && (pattern.IsGuarded(l) || p.selves > 1)
}

// askTheRest asks for the places of the largest run that no rank reached. Loops whose ends have no law but chance may
// leave out those that have none either: then nothing is known of them.
func (p *peerLaws) askTheRest() {
	if p.ranks <= p.model.LargestRun() {
		return
	}
	lawless := map[string]bool{}
	for _, u := range p.model.Pattern.Unexplained {
		lawless[u.Slot] = true
	}
	for _, x := range p.model.Sites {
		for _, s := range x.Calls.Slots {
			if gap := p.unknown.gaps[x.Event.ID]; gap != nil && gap.Calls != "" {
				break
			}
			isSeen := slices.ContainsFunc(s.Runs[len(s.Runs)-1], func(c *signature.Call) bool { return c != nil })
			for _, family := range []string{x.In, x.To, x.From} {
				if family != "" && isSeen && lawless[model.SlotName(family, s.Index())] {
					p.mapOf(x, family, s.Index())
				}
			}
		}
	}
}

// evaluate returns the map that the laws of a family give for a place; nil if the slot does not exist there.
func (p *peerLaws) evaluate(family, name string, index []int32) (*pattern.Map, error) {
	if s := p.model.PatternSlot(name); s != nil {
		if last, first, ends := p.endOf(s); ends && p.ranks > last {
			return nil, p.refuseBeyond(s, name, last, first)
		}
		return p.model.Pattern.Map(name, p.ranks)
	}
	if len(index) == 0 || len(p.families[family]) == 0 {
		return nil, nil
	}
	law := p.lawAt(family, index)
	if law == nil {
		return nil, p.refuseGrowing(family, name, index)
	}
	switch p.placeIn(law, index) {
	case placeAbsent:
		return nil, nil
	case placeUnknown:
		return nil, &pattern.Refusal{Slot: name, Ranks: p.ranks, Reason: pattern.Holes,
			Detail: "the runs have some of the iterations in the range of the loops and not others, and no law tells which"}
	}
	m, err := law.MapLike(p.ranks, index, &p.inverses)
	if err != nil {
		if all, e := law.Indices(p.ranks); e == nil &&
			!slices.ContainsFunc(all, func(x []int32) bool { return slices.Equal(x, index) }) {
			return nil, nil // the place does not exist
		}
	}
	return m, err
}

// lawAt returns the law of a family for a place that no run has: the one whose places differ from it only in components
// in which they differ from each other. It returns nil if there is none, or if there are several.
func (p *peerLaws) lawAt(family string, index []int32) (law *pattern.Law) {
	for _, l := range p.families[family] {
		if len(l.Members) < 2 || len(l.Members[0].Index) != len(index) || !covers(l, index) {
			continue
		}
		if law != nil {
			return nil
		}
		law = l
	}
	return law
}

// covers reports whether an index agrees with a law's members in the components in which they agree.
func covers(l *pattern.Law, index []int32) bool {
	for c, x := range index {
		first := l.Members[0].Index[c]
		if x != first && !slices.ContainsFunc(l.Members, func(m pattern.Member) bool { return m.Index[c] != first }) {
			return false
		}
	}
	return true
}

// refuseGrowing returns an error for a place that no run has and no law covers, if the family has more places in the
// largest run than in the one before: then it may have still more, but not in iterations of a loop in which no run has
// any while all runs have them in the same ones.
func (p *peerLaws) refuseGrowing(family, name string, index []int32) error {
	n := len(p.model.Training)
	if n < 2 || p.ranks <= p.model.Training[n-1] {
		return nil
	}
	for _, l := range p.families[family] {
		for _, m := range l.Members {
			if len(m.Sizes) > 0 && m.Sizes[0] == p.model.Training[n-1] && !p.isBeside(family, index) {
				return &pattern.Refusal{Slot: name, Ranks: p.ranks, Reason: pattern.UnknownEnd,
					Detail: "the largest run has more iterations than the others, and no law covers further ones"}
			}
		}
	}
	return nil
}

// isBeside reports whether a component of a place has a value that no member of a family has, though all runs with
// members, at least three, have the same values of it.
func (p *peerLaws) isBeside(family string, index []int32) bool {
	for c, x := range index {
		values := map[int32][]int32{} // by number of ranks
		for _, l := range p.families[family] {
			for _, m := range l.Members {
				for _, ranks := range m.Sizes {
					if c < len(m.Index) && !slices.Contains(values[ranks], m.Index[c]) {
						values[ranks] = append(values[ranks], m.Index[c])
					}
				}
			}
		}
		var all [][]int32
		for _, v := range values {
			slices.Sort(v)
			all = append(all, v)
		}
		differ := slices.ContainsFunc(all, func(v []int32) bool { return !slices.Equal(v, all[0]) })
		if len(all) > 2 && !differ && !slices.Contains(all[0], x) {
			return true
		}
	}
	return false
}

// refuseBeyond returns nil if a slot does not occur on a number of ranks, as the run on first and all larger ones lack
// it. It is an error if no run shows whether it does, since the number is below first, or a law of where it occurs says
// so, such as that the number of ranks is odd.
func (p *peerLaws) refuseBeyond(s *pattern.Slot, name string, last, first int32) error {
	why := ""
	if p.ranks < first {
		why = fmt.Sprintf("it occurs up to %d ranks and not from %d on, and no run shows what is between", last, first)
	} else if m, err := p.model.Pattern.Map(name, p.ranks); len(s.Index) == 0 && err == nil && m.HasSender() {
		why = fmt.Sprintf("no run on %d ranks or more has it, but a law that fits all runs does here", first)
	}
	if why == "" {
		return nil
	}
	return &pattern.Refusal{Slot: name, Ranks: p.ranks, Reason: pattern.Ambiguous, Detail: why}
}

// endOf returns the largest run that has a slot and the smallest one that does not, if it exists only on few ranks: all
// runs up to some have it, and the two largest runs or more do not. What is done when an axis has one rank is not done
// when it has more.
func (p *peerLaws) endOf(s *pattern.Slot) (last, first int32, ends bool) {
	for _, m := range s.Runs {
		last = max(last, m.Ranks)
	}
	t, n := p.model.Training, len(s.Runs)
	if len(t) < 3 || len(t)-n < 2 || n != 1+slices.Index(t, last) {
		return 0, 0, false
	}
	return last, t[n], true
}
