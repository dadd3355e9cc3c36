package pattern

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// Program is the laws of all slots of a program: its process grids, and one law per family or slot.
type Program struct {
	// Sizes are the process counts of the training runs, ascending.
	Sizes []int32 `json:"sizes"`
	// Grids are the process grids, besides the line of all ranks, with which the laws of all slots have the shortest
	// description. Each entry has the grid laws that the training runs cannot tell apart. It is empty when no law needs
	// a grid.
	Grids       [][]Grid      `json:"grids"`
	Laws        []Law         `json:"laws"`
	Unexplained []Unexplained `json:"unexplained"`
	// Warnings are assumptions behind the laws.
	Warnings []string `json:"warnings"`
	// Twins are further grids that the runs do not rule out, one of each kind: nothing that the program does goes with
	// Grids and not with them.
	Twins []Grid `json:"twins,omitempty"`
	// Possible are the grids of two and three axes that the runs do not rule out: a loop may count along an axis of a
	// grid that no message shows.
	Possible []Grid `json:"possible,omitempty"`
	// Open are further grids on which the description of all slots is hardly longer than on Grids: one of each kind.
	// Numbers may have laws on them.
	Open []Grid `json:"open,omitempty"`
}

// Unexplained is a slot without a law, and the reason.
type Unexplained struct {
	Slot string `json:"slot"`
	Why  string `json:"why"`
}

// Law is the rule of a slot, or of a whole family of slots.
type Law struct {
	Name    string   `json:"name"` // of the slot, or the site of a family
	Site    string   `json:"site"`
	Members []Member `json:"members"`
	// Forms are all hypotheses that reproduce the training runs and cost at most a few bits more than the simplest,
	// which is the first.
	Forms []Form `json:"forms"`
	// Ranges are, per component of the index, the values that exist at a process count. It is empty for a single slot.
	Ranges []Range `json:"ranges,omitempty"`
	// Borrowed means that a sign or shape was taken from sibling axes, as the law's own axis has at most two ranks in
	// all runs.
	Borrowed bool `json:"borrowed,omitempty"`
	// Halved are grids with an axis that cannot be told, in the runs, from the half of all ranks that the law is about.
	Halved []Grid `json:"halved,omitempty"`
	// Implied are axes on which the runs cannot show a guard, as one half of their two ranks does all of the law.
	Implied []AxisHalf `json:"implied,omitempty"`
	// Sizes are the process counts at which a rank sends.
	Sizes []int32 `json:"sizes"`
	// Training are the process counts of all runs.
	Training []int32 `json:"training"`
	// Inverse is the law of the other side of its messages, if that is known: what is sent is received. Where the law
	// has no answer of its own, it is the inverse of that one's. A law without Forms has only this.
	Inverse *Law `json:"inverse,omitempty"`
	// Doubtful means that the loops around the slots may be other ones: then a range that changed once is no law.
	Doubtful bool `json:"doubtful,omitempty"`
	// Paired means that no other law can be that of the other side.
	Paired bool `json:"paired,omitempty"`
}

// ShowsGrid reports whether some law is simplest on a grid of several axes.
func (p *Program) ShowsGrid() bool {
	return slices.ContainsFunc(p.Laws, func(l Law) bool {
		return len(l.Forms) > 0 && len(l.Forms[0].Grids) > 0 && l.Forms[0].Grids[0].Axes > 1
	})
}

// Member is a slot that a law covers.
type Member struct {
	Slot  string  `json:"slot"`
	Index []int32 `json:"index,omitempty"`
	// Sizes are the process counts at which the slot occurs.
	Sizes []int32         `json:"sizes"`
	Local []LocalEquation `json:"local"`
}

// Options are the options of Fit; the zero value works.
type Options struct {
	// Sizes are the process counts of all runs, also of those in which no slot occurs. nil means those of the slots.
	Sizes []int32
}

// Fit finds the laws of slots. It returns an error when the table of a slot is malformed. Slots without a law are in
// Program.Unexplained.
func Fit(slots []Slot, opt Options) (*Program, error) {
	sizes := slices.Clone(opt.Sizes)
	for _, s := range slots {
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("find the law of a communication: %w", err)
		}
		if opt.Sizes == nil {
			for _, m := range s.Runs {
				sizes = append(sizes, m.Ranks)
			}
		}
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	if len(sizes) >= 2 {
		p := fit(slots, sizes)
		if mayBeOfBox(slots, p.Unexplained, sizes) {
			p.dropGrids(slots, "most messages without a law go to neighbours on a grid of least surface for some box, and the "+
				"runs do not tell for which")
		}
		return p, nil
	}
	p := &Program{Sizes: sizes}
	for _, s := range slots {
		p.Unexplained = append(p.Unexplained,
			Unexplained{s.Name, "runs at one process count show no law; capture the program at others"})
	}
	return p, nil
}

// fit finds the laws of slots at two or more process counts, stage by stage.
func fit(slots []Slot, sizes []int32) *Program {
	p := &Program{Sizes: sizes}
	all, unexplained := families(slots, sizes)
	p.Unexplained = append(p.Unexplained, unexplained...)
	search := &searcher{sizes: sizes, classes: classes(sizes), memo: map[string]searchResult{},
		libraries: map[string]*library{}}
	var units, single []*unit
	for _, u := range all {
		found := search.fit(u)
		units = append(units, found.units...)
		single = append(single, found.single...)
		p.Unexplained = append(p.Unexplained, found.unexplained...)
	}
	searched := map[*unit][][]Form{}
	for _, u := range units {
		searched[u] = slices.Clone(u.forms)
	}
	cover := &gridCover{units: units, classes: search.classes, sizes: sizes, others: otherSides(units)}
	cover.stencils = findStencils(units, search.classes, searched, cover.others)
	chosen, first := cover.choose()
	units, unexplained = poolForms(units, first)
	p.Unexplained = append(p.Unexplained, unexplained...)
	units, unexplained = dropLonely(units, otherSites(slots))
	p.Unexplained = append(p.Unexplained, unexplained...)
	transferHierarchies(units, search.classes, sizes)
	preferSharedShapes(units)
	borrowSigns(units)
	markShortAxes(units)
	markNarrowGuards(units)
	twins := cover.addTwins(units, searched)
	borrowed, unexplained := fitFromSiblings(single, units, sizes)
	markNarrowGuards(borrowed)
	units = append(units, borrowed...)
	p.Unexplained = append(p.Unexplained, unexplained...)
	for _, c := range chosen {
		if len(c.dims[0]) > 1 {
			p.Grids = append(p.Grids, c.grids)
			for _, d := range twins[c] {
				p.Twins = append(p.Twins, d.grids[0])
			}
		}
	}
	p.Open = cover.openGrids(chosen, searched)
	p.Possible = possibleGrids(chosen, search.classes, units, searched)
	addAsSeen(units, len(sizes))
	for _, u := range units {
		l := u.law(sizes, p.Grids)
		l.addPossibleEnds(u, sizes, p.Possible)
		l.Halved = u.halvedBy(&l, search.classes)
		l.Implied = u.impliedHalves(&l, p.Possible)
		p.Laws = append(p.Laws, l)
	}
	dropUnshownEnds(p.Laws)
	addInverses(p, slots)
	p.Warnings = warnings(p, chosen)
	return p
}

// poolForms gives each unit its forms on the line and the first grid, or those on further grids if it has none there.
// It drops units without any.
func poolForms(units []*unit, first []bool) (kept []*unit, unexplained []Unexplained) {
	for _, u := range units {
		for i, fs := range u.forms {
			if first[i] {
				u.pool = append(u.pool, fs...)
			}
		}
		for i, fs := range u.forms {
			if !first[i] && len(u.pool) == 0 {
				u.pool, u.further = append(u.pool, fs...), true
			}
		}
		if u.pool = cheapest(u.pool); len(u.pool) > 0 {
			kept = append(kept, u)
			continue
		}
		for _, s := range u.slots {
			unexplained = append(unexplained, Unexplained{s.Name, "no law gives all its destinations"})
		}
	}
	return kept, unexplained
}

// dropLonely drops units whose law may be chance and of which no message has a law at its other side: sends and
// receives determine each other. others are the sites at the other side of a site's messages.
func dropLonely(units []*unit, others map[string][]string) (kept []*unit, unexplained []Unexplained) {
	explained := map[string]bool{}
	for _, u := range units {
		explained[u.site] = true
		for _, s := range u.slots {
			explained[s.Name] = true
		}
	}
	for _, u := range units {
		lonely := len(others[u.site]) > 0 && (u.pool[0].Cost > plain || u.pool[0].isGuarded()) &&
			!slices.ContainsFunc(others[u.site], func(site string) bool { return explained[site] })
		if !lonely && !u.mayBeChance() || u.isAnswered(explained) && !(u.further && u.isSingle()) {
			kept = append(kept, u)
			continue
		}
		why := "the law that it has may be chance, as it needs a grid that no other call uses"
		if len(others[u.site]) > 0 {
			why = "the law that it has may be chance, as the other side of its messages has none"
		}
		for _, s := range u.slots {
			unexplained = append(unexplained, Unexplained{s.Name, why})
		}
	}
	return kept, unexplained
}

// isGuarded reports whether the form moves along one axis only for some ranks of another one.
func (f Form) isGuarded() bool {
	return slices.ContainsFunc(f.Rules, func(r Rule) bool { return r.Op == Keep && r.Guard.Kind != All })
}

// otherSites returns, by site, the sites of which the pairs of ranks are those of its own, seen from the other side.
func otherSites(all []Slot) map[string][]string {
	type sums struct{ forth, back uint64 }
	type pair struct {
		site             string
		ranks, rank, dst int32
	}
	of, seen := map[string]*sums{}, map[pair]bool{}
	for i := range all {
		s := &all[i]
		if of[s.Site] == nil {
			of[s.Site] = &sums{}
		}
		for _, m := range s.Runs {
			for r, dst := range m.Dst {
				if k := (pair{s.Site, m.Ranks, int32(r), dst}); dst != None && !seen[k] {
					seen[k] = true
					of[s.Site].forth += HashPair(m.Ranks, int32(r), dst)
					of[s.Site].back += HashPair(m.Ranks, dst, int32(r))
				}
			}
		}
	}
	byBack := map[uint64][]string{}
	for site, x := range of {
		byBack[x.back] = append(byBack[x.back], site)
	}
	others := map[string][]string{}
	for site, x := range of {
		others[site] = slices.DeleteFunc(slices.Clone(byBack[x.forth]), func(o string) bool { return o == site })
	}
	return others
}

// HashPair returns a number for a pair of ranks of a run, whose sums are not equal for other pairs but by chance.
func HashPair(ranks, from, to int32) uint64 {
	h := fnv.New64a()
	var b [12]byte
	binary.LittleEndian.PutUint32(b[:], uint32(ranks))
	binary.LittleEndian.PutUint32(b[4:], uint32(from))
	binary.LittleEndian.PutUint32(b[8:], uint32(to))
	_, _ = h.Write(b[:]) // it never fails
	return h.Sum64()
}

// mayBeChance reports whether the law of a unit is on a grid of its own, or not plain and of messages whose other
// side is known or along several axes.
func (u *unit) mayBeChance() bool {
	f := u.pool[0]
	moved := 0
	for a, r := range f.Rules {
		if r.moves(a) {
			moved++
		}
	}
	known := slices.ContainsFunc(u.slots, func(s *Slot) bool { return len(s.Partners) > 0 })
	return u.further || f.Cost > plain && (known || moved > 1)
}

// isSingle reports whether each run has one message of the unit: the other side is then as little evidence as this one.
func (u *unit) isSingle() bool {
	return !slices.ContainsFunc(u.obs, func(o observation) bool { return o.m.senders() > 1 })
}

// isAnswered reports whether the other side of messages of the unit has a law.
func (u *unit) isAnswered(explained map[string]bool) bool {
	return slices.ContainsFunc(u.slots, func(s *Slot) bool {
		return slices.ContainsFunc(s.Partners, func(name string) bool { return explained[name] })
	})
}

// law returns the law of a unit from the forms in its pool.
func (u *unit) law(sizes []int32, grids [][]Grid) Law {
	l := Law{Name: u.name, Site: u.site, Forms: u.pool, Borrowed: u.borrowed, Training: sizes}
	l.addMembers(u.slots)
	if len(u.vary) > 0 {
		l.Ranges = rangesOfAll(u, sizes, grids)
	}
	return l
}

// addMembers adds the slots that a law covers.
func (l *Law) addMembers(all []*Slot) {
	for _, s := range all {
		m := Member{Slot: s.Name, Index: s.Index}
		shown := Slot{Name: s.Name}
		for _, p := range l.Training {
			if r, ok := s.run(p); ok {
				m.Sizes = append(m.Sizes, p)
				shown.Runs = append(shown.Runs, r)
			}
		}
		m.Local = shown.LocalEquations()
		l.Members = append(l.Members, m)
		l.Sizes = append(l.Sizes, m.Sizes...)
	}
	slices.Sort(l.Sizes)
	l.Sizes = slices.Compact(l.Sizes)
}

// warnings returns the assumptions behind the laws of a program on the chosen grids.
func warnings(p *Program, chosen []*class) (warnings []string) {
	for _, c := range chosen {
		for a := range c.dims[0] {
			longest := int32(0)
			for _, d := range c.dims {
				longest = max(longest, d[a])
			}
			if longest <= 2 && len(c.dims[0]) > 1 {
				warnings = append(warnings, fmt.Sprintf(
					"axis %s of the %s has at most two ranks in all runs, so that + and - cannot be told apart on it; a run with more ranks there can",
					axisName(a), c.grids[0]))
			}
		}
	}
	var borrowed []string
	for _, l := range p.Laws {
		if l.Borrowed {
			borrowed = append(borrowed, l.Name)
		}
	}
	if n := len(borrowed); n > 0 {
		warnings = append(warnings, fmt.Sprintf("%d laws take a direction or a shape from sibling axes, as their own axes have at most two ranks in all runs, or too few to show a hierarchy: %s",
			n, strings.Join(borrowed[:min(n, 5)], ", ")))
	}
	if len(p.Sizes) < 3 {
		warnings = append(warnings, fmt.Sprintf("laws rest on %d process counts; a third would test them",
			len(p.Sizes)))
	}
	return warnings
}
