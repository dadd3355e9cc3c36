package law

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/regress"
	"github.com/commq/commq/predict/slots"
)

// attempt is a way to describe samples to package regress.
type attempt struct {
	own      bool          // with the grid of the communication, instead of grid
	grid     *pattern.Grid // nil: without coordinates
	peer     bool          // with coordinates of the other side
	distance bool          // with the distance to the other side
	turn     int32         // with the rank shifted by turn times a component of the index
	back     int           // that component, counted from the last
	along    *pattern.Grid // with the rank shifted by turn times its coordinate on it; a rival only
	axis     int           // that of the coordinate
	columns  bool          // grid has few columns; a rival only
	twin     bool          // grid is one that the runs do not rule out; a rival only
}

// mostTurned is the number of components of the index by which ranks may be moved round.
const mostTurned = 2

// attempts returns what Settle tries, in this order.
func (f *Fitter) attempts() []attempt {
	var all []attempt
	for back := range mostTurned {
		all = append(all, attempt{turn: 1, back: back}, attempt{turn: -1, back: back},
			attempt{turn: 1, back: back, peer: true}, attempt{turn: -1, back: back, peer: true})
	}
	all = append(all, attempt{own: true})
	for _, peer := range []bool{false, true} {
		all = append(all, attempt{peer: peer})
		for _, g := range f.grids {
			all = append(all, attempt{grid: g, peer: peer})
		}
	}
	return append(all, attempt{distance: true})
}

// Settle finds the laws that are still open, by package regress: each attempt is for all that no earlier one found an
// exact law for. A law without any exact one keeps the first estimate.
func (f *Fitter) Settle() error {
	open := f.open
	f.open = nil
	var laws []*Law
	for _, o := range open {
		laws = append(laws, o.law)
	}
	defer func() { f.relateSingles(laws) }()
	all := slices.Clone(open)
	for _, t := range f.attempts() {
		var err error
		if open, err = settleBy(t, open); err != nil {
			return err
		}
	}
	if err := f.findRivals(all); err != nil {
		return err
	}
	for i := range all {
		f.addTwins(&all[i])
	}
	return nil
}

// settleBy makes an attempt and returns what is still open.
func settleBy(t attempt, open []openLaw) ([]openLaw, error) {
	var groups []regress.Group
	var requests []groupRequest
	var rest []openLaw
	for i := range open {
		o := &open[i]
		grid := t.grid
		if t.own {
			grid = o.grid
		} else if !t.peer && !t.distance && t.turn == 0 && equalGrids(grid, o.grid) { // same as the first attempt
			rest = append(rest, *o)
			continue
		}
		if gs, rs, ok := groupsOf(o, grid, t, len(requests)); ok {
			groups, requests = append(groups, gs...), append(requests, rs...)
		} else {
			rest = append(rest, *o)
		}
	}
	if len(groups) == 0 {
		return open, nil
	}
	found, _, err := regress.FitGroups(groups, regress.Options{})
	if err != nil {
		return nil, err
	}
	byLaw := map[*Law][]groupRequest{}
	var order []*openLaw
	for i, l := range found {
		r := requests[i]
		r.law.Law, r.law.exact = l, l.Exact()
		if byLaw[r.open.law] == nil {
			order = append(order, r.open)
		}
		byLaw[r.open.law] = append(byLaw[r.open.law], r)
	}
	for _, o := range order {
		was := *o.law
		combine(o, byLaw[o.law])
		if !o.law.IsExact() {
			rest = append(rest, *o)
			if was.Group != nil || was.Places != nil {
				*o.law = was
			}
		}
	}
	return rest, nil
}

func equalGrids(a, b *pattern.Grid) bool {
	return a == b || a != nil && b != nil && reflect.DeepEqual(a, b)
}

// groupRequest is a group of samples given to package regress, and the law that it is for.
type groupRequest struct {
	open  *openLaw
	index []int32
	law   *GroupLaw
}

// minDistances is the least number of distinct distances for a law over distances.
const minDistances = 3

// groupsOf divides the samples of a law into groups, one for each place that makes a difference. number is part of the
// groups' names. ok is false if the samples cannot be described so.
func groupsOf(o *openLaw, grid *pattern.Grid, t attempt,
	number int) (groups []regress.Group, requests []groupRequest, ok bool) {
	kept := relevantComponents(o.samples)
	if t.distance && (!haveDistances(o.samples) || len(kept) == slots.MaxLoops) {
		return nil, nil, false
	}
	turn := Turn{}
	if t.turn != 0 {
		if kept, turn, ok = t.turnedBy(o, kept); !ok {
			return nil, nil, false
		}
	}
	family := fmt.Sprint(number)
	groupAt := map[slots.Place]int{}
	for _, s := range o.samples {
		x := regress.Sample{Ranks: s.Point.Ranks, Rank: s.Point.Rank, Index: selectComponents(s.Point.Index, kept),
			Value: s.Value}
		if t.peer {
			if x.Rank = s.Point.PeerRank; x.Rank < 0 {
				return nil, nil, false
			}
		}
		x.Rank = turn.move(x.Rank, x.Ranks, s.Point.Index)
		if grid != nil {
			if x.Dims, ok = grid.Dims(s.Point.Ranks); !ok {
				return nil, nil, false
			}
			x.Coords, _ = grid.Coords(s.Point.Ranks, x.Rank)
		}
		if t.distance {
			d, _ := s.Point.logDistance()
			x.Index = append(x.Index, d)
		}
		k := slots.PlaceOf(x.Index)
		i, known := groupAt[k]
		if !known {
			i = len(groups)
			groupAt[k] = i
			groups = append(groups, regress.Group{Name: fmt.Sprint(family, x.Index), Family: family, Unit: o.unit})
			requests = append(requests, groupRequest{o, x.Index,
				&GroupLaw{Grid: grid, Keep: kept, Peer: t.peer, Distance: t.distance, Turn: turn}})
		}
		if s.Point.PeerRank != s.Point.Rank { // with one rank along an axis messages go to the rank itself
			groups[i].Along = commonAxis(groups[i].Along, axisAlong(grid, &s.Point))
		}
		groups[i].Samples = append(groups[i].Samples, x)
	}
	for i := range groups {
		groups[i].Along = max(groups[i].Along, 0)
	}
	return groups, requests, true
}

// turnedBy returns the components of the index that are left if ranks are moved round by one of them, or by a
// coordinate, and how; false if the values do not depend on it, unless a law of them is known already, or still
// differ for what is one rank then.
func (t attempt) turnedBy(o *openLaw, kept []int) (left []int, turn Turn, ok bool) {
	by := len(o.samples[0].Point.Index) - 1 - t.back
	turn = Turn{Sign: t.turn, Component: by, Grid: t.along, Axis: t.axis}
	switch {
	case t.along != nil:
		left, turn.Component = kept, 0
	case by < 0 || !o.rival && !slices.Contains(kept, by):
		return nil, turn, false
	default:
		left = slices.DeleteFunc(slices.Clone(kept), func(k int) bool { return k == by })
	}
	moved := slices.Clone(o.samples)
	for i := range moved {
		p := &moved[i].Point
		if t.peer {
			p.Rank = p.PeerRank
		}
		if p.Rank = turn.move(p.Rank, p.Ranks, p.Index); p.Rank < 0 {
			return nil, turn, false
		}
	}
	return left, turn, areDetermining(moved, left)
}

// commonAxis returns the axis of two messages; -1 if they have different ones or none.
func commonAxis(known, axis int) int {
	if axis == 0 || known != 0 && known != axis {
		return -1
	}
	return axis
}

// axisAlong returns 1 + the only axis of a grid along which a message goes; 0 if there is none.
func axisAlong(grid *pattern.Grid, p *Point) (along int) {
	if grid == nil || p.PeerRank < 0 {
		return 0
	}
	from, ok := grid.Coords(p.Ranks, p.Rank)
	to, has := grid.Coords(p.Ranks, p.PeerRank)
	if !ok || !has {
		return 0
	}
	for a := range from {
		switch {
		case from[a] == to[a]:
		case along != 0:
			return 0
		default:
			along = a + 1
		}
	}
	return along
}

// haveDistances reports whether all samples have a distance to the other side, with enough distinct ones.
func haveDistances(samples []Sample) bool {
	distances := map[int32]bool{}
	for i := range samples {
		d, ok := samples[i].Point.logDistance()
		if !ok {
			return false
		}
		distances[d] = true
	}
	return len(distances) >= minDistances
}

// combine makes a law of the laws of its groups.
func combine(o *openLaw, requests []groupRequest) {
	first := requests[0].law
	*o.law = Law{Group: first}
	if len(requests) == 1 {
		return
	}
	// A law of the whole family is the same for all of its groups.
	text := first.Law.String()
	if first.exact && !slices.ContainsFunc(requests, func(r groupRequest) bool {
		return !r.law.exact || r.law.Law.String() != text
	}) && fitsAll(o.law, o.samples) {
		return
	}
	if first.Distance { // laws of single distances tell nothing about others
		first.exact = false
		return
	}
	*o.law = Law{}
	for _, r := range requests {
		o.law.Places = append(o.law.Places, PlaceLaw{r.index, &Law{Group: r.law}})
	}
	slices.SortFunc(o.law.Places, func(a, b PlaceLaw) int { return slices.Compare(a.Index, b.Index) })
	o.law.Keep = first.Keep
	rejectChance(o.law.Places)
}

// rejectChance makes no law of a place exact if more than a quarter of the places have none: then what differs from
// place to place follows no law, and some places fit one by chance, as two equal numbers fit a constant.
func rejectChance(places []PlaceLaw) {
	without := 0
	for _, p := range places {
		if !p.Law.Group.exact {
			without++
		}
	}
	if 4*without <= len(places) {
		return
	}
	for _, p := range places {
		p.Law.Group.exact = false
	}
}

// fitsAll reports whether a law has the value of each sample.
func fitsAll(l *Law, samples []Sample) bool {
	for _, s := range samples {
		if r, ok := l.Evaluate(&s.Point); !ok || r.Value != s.Value {
			return false
		}
	}
	return true
}
