package pattern

import "slices"

// What is sent is received: a law of sends, inverted, tells from whom ranks receive, and the other way. It helps where
// one side is simple and the other is not, as in trees, and where the runs leave one side open and not the other.

// addInverses gives laws the law of the other side of their messages. Slots of a site without any law get a law that
// has only this.
func addInverses(p *Program, all []Slot) {
	laws := map[string]int{} // by name of slot
	byName := map[string]*Slot{}
	for i := range all {
		byName[all[i].Name] = &all[i]
	}
	for i := range p.Laws {
		for _, m := range p.Laws[i].Members {
			laws[m.Slot] = i
		}
	}
	known := slices.Clone(p.Laws) // without inverses
	inverseOf := func(slots []*Slot) (inverse *Law, only bool) {
		i, ok := otherSide(slots, byName, laws)
		if !ok {
			return nil, false
		}
		l := known[i]
		return &l, isOnlySide(slots, i, laws)
	}
	for i := range p.Laws {
		var slots []*Slot
		for _, m := range p.Laws[i].Members {
			slots = append(slots, byName[m.Slot])
		}
		p.Laws[i].Inverse, p.Laws[i].Paired = inverseOf(slots)
	}
	lawless := map[string][]*Slot{} // by site
	var sites []string
	for _, u := range p.Unexplained {
		s := byName[u.Slot]
		if lawless[s.Site] == nil {
			sites = append(sites, s.Site)
		}
		lawless[s.Site] = append(lawless[s.Site], s)
	}
	for _, site := range sites {
		slots := lawless[site]
		if slices.ContainsFunc(p.Laws, func(l Law) bool { return l.Site == site }) {
			continue
		}
		if other, _ := inverseOf(slots); other != nil {
			l := Law{Name: site, Site: site, Training: p.Sizes, Inverse: other}
			l.addMembers(slots)
			p.Laws = append(p.Laws, l)
			p.Unexplained = slices.DeleteFunc(p.Unexplained,
				func(u Unexplained) bool { return byName[u.Slot].Site == site })
		}
	}
}

// otherSide returns the law, of those given by name of slot, that covers the other side of the messages of slots, each
// at the same index. ok is false if there is none, or if it covers these slots, too.
func otherSide(slots []*Slot, byName map[string]*Slot, laws map[string]int) (law int, ok bool) {
	law = -1
	for _, s := range slots {
		at := slices.IndexFunc(s.Partners, func(name string) bool {
			i, has := laws[name]
			return has && (law < 0 || i == law) && byName[name] != nil && slices.Equal(byName[name].Index, s.Index)
		})
		if at < 0 {
			return 0, false
		}
		law = laws[s.Partners[at]]
	}
	own, has := laws[slots[0].Name]
	return law, law >= 0 && !(has && own == law)
}

// isOnlySide reports whether no law but the one given may have the other side of messages of slots: where few ranks
// lie along an axis, those in both directions are the same.
func isOnlySide(slots []*Slot, law int, laws map[string]int) bool {
	return !slices.ContainsFunc(slots, func(s *Slot) bool {
		return slices.ContainsFunc(s.Partners, func(name string) bool {
			i, has := laws[name]
			return !has || i != law
		})
	})
}

// inverse returns the map from receivers to senders; false if a rank receives from several.
func (m *Map) inverse() (*Map, bool) {
	if m.absent {
		return m, true
	}
	table := slices.Repeat([]int32{None}, int(m.Ranks))
	for r := range m.Ranks {
		if dst, sends := m.Dst(r); sends {
			if table[dst] != None {
				return nil, false
			}
			table[dst] = r
		}
	}
	return &Map{Ranks: m.Ranks, Dims: m.Dims, Borrowed: m.Borrowed, table: table}, true
}

// Inverses are the maps that laws of the other side gave last, with their inverses. To find an inverse takes a time that
// grows with the ranks, and the places of a family, which may be as many, often have the same map. The zero value has
// none.
type Inverses struct{ last map[*Law]*inverted }

// inverted is a map and its inverse, nil if a rank receives from several; and whether the inverse equals another map.
type inverted struct {
	m, inverse, other *Map
	equal             bool
}

// mapOf returns the map from receivers to senders that a law of the other side gives; nil if a rank receives from several.
func (x *Inverses) mapOf(l *Law, ranks int32, index []int32) (*Map, error) {
	m, err := l.ownMap(ranks, index)
	if err != nil {
		return nil, err
	}
	return x.inverse(l, m), nil
}

// inverse returns the inverse of a map that a law gave; nil if a rank receives from several.
func (x *Inverses) inverse(l *Law, m *Map) *Map {
	if last := x.last[l]; last != nil && last.m.isBoundLike(m) {
		return last.inverse
	}
	inverse, _ := m.inverse()
	if x.last == nil {
		x.last = map[*Law]*inverted{}
	}
	x.last[l] = &inverted{m: m, inverse: inverse}
	return inverse
}

// areEqual reports whether a map has the same destinations as the inverse that inverse returned last for a law.
func (x *Inverses) areEqual(l *Law, m, inverse *Map) bool {
	last := x.last[l]
	if last.other == nil || !last.other.isBoundLike(m) {
		last.other, last.equal = m, equalMaps(m, inverse)
	}
	return last.equal
}

// isBoundLike reports whether two maps are the same because the same numbers are in the same rules.
func (m *Map) isBoundLike(n *Map) bool {
	return m.Ranks == n.Ranks && m.absent == n.absent && m.Borrowed == n.Borrowed && m.table == nil && n.table == nil &&
		m.where == n.where && slices.Equal(m.Dims, n.Dims) && slices.Equal(m.rules, n.rules) && slices.Equal(m.bits, n.bits)
}
