package law

import (
	"slices"

	"github.com/commq/commq/predict/pattern"
)

// findRivals finds, for laws that depend on the coordinates of a rank, those that fit all samples with other
// coordinates: of the other side of messages, or on the line of all ranks. On the runs' numbers of ranks they may be
// the same, and differ on others. Other grids are no rivals: patterns have shown which one the program has.
func (f *Fitter) findRivals(all []openLaw) error {
	for _, t := range slices.Concat(f.attempts(), columnsOf(all), f.attemptsOnTwins(), f.attemptsAlongAxes()) {
		if t.distance {
			continue
		}
		var trial []openLaw
		var owners []*Law
		for i := range all {
			o := all[i]
			if !o.law.mayHaveRivals(t) || !t.isRivalOf(o.law.placeGroups()[0], o.grid) ||
				t.columns && !varyInRun(o.samples) || t.twin && hasAxesOf(o.law.placeGroups()[0].Grid, t.grid, o.samples) {
				continue
			}
			owners = append(owners, o.law)
			o.law, o.rival = &Law{}, true
			trial = append(trial, o)
		}
		if _, err := settleBy(t, trial); err != nil {
			return err
		}
		for i := range trial {
			addRivals(owners[i], trial[i].law)
		}
	}
	for i := range all {
		all[i].addOwnCoordinates()
	}
	return nil
}

// enoughTold is the number of samples that show that blocks are those of the other side of messages and not those of
// the rank itself: a block has one of two lengths, so each of them is one bit, and ten ways to count the blocks are
// tried.
const enoughTold = 10

// addOwnCoordinates adds to laws of blocks of the other side the same ones of the rank itself, if these fail in few
// samples only.
func (o *openLaw) addOwnCoordinates() {
	if !o.law.dependsOnPlace() {
		return
	}
	for _, g := range o.law.placeGroups() {
		if !g.Peer || g.Grid != nil {
			continue
		}
		own := &GroupLaw{Law: g.Law, Keep: g.Keep, Turn: g.Turn, exact: true}
		told := map[[3]int32]bool{}
		for _, s := range o.samples {
			if e, ok := own.evaluate(&s.Point); !ok || e.Value != s.Value {
				told[[3]int32{s.Point.Ranks, s.Point.Rank, s.Point.PeerRank}] = true
			}
		}
		if len(told) < enoughTold {
			g.Rivals = append(g.Rivals, own)
		}
	}
}

// columnsOf returns attempts with grids of few columns, on which the ranks of all samples have places: with little
// remainder their blocks are those of twice as many cells, or more, on the line of all ranks.
func columnsOf(all []openLaw) (attempts []attempt) {
	const mostColumns = 4
	for f := int32(2); f <= mostColumns; f++ {
		if slices.ContainsFunc(all, func(o openLaw) bool {
			return slices.ContainsFunc(o.samples, func(s Sample) bool { return s.Point.Ranks%f != 0 })
		}) {
			continue
		}
		for _, peer := range []bool{false, true} {
			for _, order := range [][]int{{0, 1}, {1, 0}} {
				line := pattern.Grid{Shape: pattern.Line, Axes: 1, Order: []int{0}}
				attempts = append(attempts, attempt{peer: peer, columns: true,
					grid: &pattern.Grid{Shape: pattern.Columns, Axes: 2, Order: order, Fixed: f, Rest: &line}})
			}
		}
	}
	return attempts
}

// attemptsOnTwins returns attempts with the grids that the runs do not rule out: a law of blocks over the axes of one
// grid may be one over the axes of another, which only further ranks tell apart.
func (f *Fitter) attemptsOnTwins() (attempts []attempt) {
	for i := range f.others {
		for _, peer := range []bool{false, true} {
			attempts = append(attempts, attempt{grid: &f.others[i], peer: peer, twin: true})
		}
	}
	return attempts
}

// attemptsAlongAxes returns attempts with ranks moved round by their coordinates: where the step of a loop is the
// coordinate of the ranks that send in it, a block of rank - step is one of rank - coordinate.
func (f *Fitter) attemptsAlongAxes() (attempts []attempt) {
	for _, g := range f.grids {
		for axis := range g.Axes {
			for _, peer := range []bool{false, true} {
				attempts = append(attempts, attempt{turn: 1, along: g, axis: axis, peer: peer},
					attempt{turn: -1, along: g, axis: axis, peer: peer})
			}
		}
	}
	return attempts
}

// hasAxesOf reports whether a grid has each axis of another one in all samples: then addTwins finds the same law there.
func hasAxesOf(grid, other *pattern.Grid, samples []Sample) bool {
	all := make([]int, other.Axes)
	for a := range all {
		all[a] = a
	}
	return mapAxes(other, grid, all, samples) != nil
}

// mayHaveRivals reports whether an exact law may have rivals by an attempt: if it depends on places, or, on other
// grids, on extents.
func (l *Law) mayHaveRivals(t attempt) bool {
	return l.dependsOnPlace() || t.twin && l.IsExact() && slices.ContainsFunc(l.placeGroups(), func(g *GroupLaw) bool {
		return g.Grid != nil && g.Law != nil
	})
}

// dependsOnPlace reports whether an exact law gives ranks of one run different numbers.
func (l *Law) dependsOnPlace() bool {
	return l.IsExact() && slices.ContainsFunc(l.placeGroups(), func(g *GroupLaw) bool {
		return !g.Distance && g.Law != nil && g.Law.DependsOnPlace()
	})
}

// placeGroups returns the group laws of a law, by place in the loops.
func (l *Law) placeGroups() (all []*GroupLaw) {
	if l.Group != nil {
		return []*GroupLaw{l.Group}
	}
	for _, p := range l.Places {
		if p.Law.Group != nil {
			all = append(all, p.Law.Group)
		}
	}
	return all
}

// isRivalOf reports whether an attempt has other coordinates than a law: those of the other side on the same grid, or
// those on the line of all ranks. grid is that of the communication.
func (t attempt) isRivalOf(g *GroupLaw, grid *pattern.Grid) bool {
	if t.twin {
		return g.Grid != nil && t.peer == g.Peer && !equalGrids(t.grid, g.Grid)
	}
	with := t.grid
	if t.own {
		with = grid
	}
	if t.turn != 0 || t.columns {
		return g.Grid == nil && (g.Turn.Sign == 0 || t.turn != 0)
	}
	same := equalGrids(with, g.Grid)
	return same && (t.peer != g.Peer || g.Turn.Sign != 0) || !same && with == nil && !t.own
}

// addRivals adds the group laws of an exact law as rivals to those of another one, but those that may fit by chance: at
// places where too little is seen, unless the same law is seen at others.
func addRivals(l, rival *Law) {
	if rival.IsEmpty() || !rival.IsExact() {
		return
	}
	mine, others := l.placeGroups(), rival.placeGroups()
	supported := map[string]bool{}
	for _, g := range others {
		if g.Law.IsSupported() {
			supported[g.Law.Laws[0].String()] = true
		}
	}
	for i, g := range mine {
		var other *GroupLaw
		switch {
		case len(others) == len(mine):
			other = others[i]
		case len(others) == 1:
			other = others[0]
		}
		if other != nil && len(other.Law.Laws) > 0 && supported[other.Law.Laws[0].String()] {
			g.Rivals = append(g.Rivals, other)
		}
	}
}
