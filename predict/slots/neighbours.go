package slots

import (
	"maps"
	"slices"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// Where ranks go through lists of their neighbours, one at the border of a grid has fewer of them: the first in its
// list may be in another direction than the first of an inner rank. Iterations are the same if the neighbour is in
// the same direction on the grid.

// maxNeighbours is the largest number of directions in which ranks have neighbours: a cube has 26.
const maxNeighbours = 32

// neighbourLoop is a loop whose iterations each talk to one other rank.
type neighbourLoop struct {
	node  *template.Node
	lists [][]int32 // by value: the distances to the neighbours, in the order of the iterations
	// visits are the runs and ranks that execute the loop, and the values with which they do.
	visits []listVisit
	// anyOrder means that the loop does no more than to receive from any source, so that the order of a list is chance.
	anyOrder bool
}

// listVisit is a list that a rank has.
type listVisit struct{ run, rank, value int32 }

// direction is the coordinates of a neighbour less the own ones; layouts have at most four axes.
type direction [4]int32

// inRuns tells whether a direction is in the largest run, and in the second largest.
type inRuns struct{ largest, second bool }

// compare orders directions as the ranks that lie there.
func (d direction) compare(e direction) int {
	for a := len(d) - 1; a >= 0; a-- {
		if d[a] != e[a] {
			return int(d[a] - e[a])
		}
	}
	return 0
}

// alignNeighbours returns the alignments of loops over neighbours, by loop: only of those of which some rank skips a
// direction.
func alignNeighbours(sig *signature.Signature, runs []Run, loops []*template.Node) map[int32]alignment {
	var candidates []*neighbourLoop
	for _, n := range loops {
		if l := neighbourLists(sig, n); l != nil {
			candidates = append(candidates, l)
		}
	}
	if len(candidates) == 0 || len(runs) < 2 {
		return nil
	}
	visitLists(sig, runs, candidates)
	sizes := make([]int32, len(runs))
	for i, run := range runs {
		sizes[i] = run.Ranks
	}
	layouts := pattern.Layouts(sizes)
	found := map[int32]alignment{}
	for _, l := range candidates {
		if l.skips(int32(len(runs)-1)) && l.areNeighbours(sizes) {
			if places, directions := l.places(layouts); places != nil {
				found[l.node.ID] = alignment{places: places, directions: directions}
			}
		}
	}
	return found
}

// neighbourLists returns a loop with its lists; nil if an iteration does not talk to just one rank, or an execution to
// one twice or to more than maxNeighbours.
func neighbourLists(sig *signature.Signature, n *template.Node) *neighbourLoop {
	v := &sig.Values[n.ID]
	distance := make([]int32, len(v.Bodies))
	l := &neighbourLoop{node: n, anyOrder: true}
	for i := range v.Bodies {
		to, ok := l.onlyPeer(sig, v.Bodies[i])
		if !ok {
			return nil
		}
		distance[i] = to
	}
	for _, items := range v.Loops {
		list, distinct := distinctKeys(items, distance)
		if !distinct || len(list) > maxNeighbours {
			return nil
		}
		l.lists = append(l.lists, list)
	}
	return l
}

// onlyPeer returns the distance to the rank that an iteration talks to; false if there is none, or several.
func (l *neighbourLoop) onlyPeer(sig *signature.Signature, body []int32) (distance int32, ok bool) {
	for k := 0; k < len(body); k += 2 {
		c := l.node.Children[body[k]]
		if c.Loop {
			return 0, false
		}
		e := sig.Values[c.ID].Events[body[k+1]]
		for _, side := range []signature.Side{e.Send, e.Recv} {
			if !side.HasPeer() {
				continue
			}
			if to := side[signature.SidePeer].Int32(); !ok {
				distance, ok = to, true
			} else if to != distance {
				return 0, false
			}
		}
		l.anyOrder = l.anyOrder && len(body) == 2 && !e.Send.HasPeer() && e.PostedAny != nil &&
			*e.PostedAny&schema.AnySource != 0
	}
	return distance, ok
}

// visitLists notes which ranks have which lists.
func visitLists(sig *signature.Signature, runs []Run, loops []*neighbourLoop) {
	byNode := map[int32]*neighbourLoop{}
	for _, l := range loops {
		byNode[l.node.ID] = l
	}
	for i, run := range runs {
		for r := range run.Ranks {
			visited := map[[2]int32]bool{}
			sig.VisitExecutions(sig.Nodes()[0], sig.Roots[run.First+r], visited)
			for k := range visited {
				if l := byNode[k[0]]; l != nil {
					l.visits = append(l.visits, listVisit{int32(i), r, k[1]})
				}
			}
		}
	}
}

// skips reports whether some ranks of the largest run have fewer neighbours than others, and whether they skip others
// than the last ones of a list.
func (l *neighbourLoop) skips(largest int32) bool {
	var longest []int32
	shortest := maxNeighbours
	for _, v := range l.visits {
		if list := l.lists[v.value]; v.run == largest {
			shortest = min(shortest, len(list))
			if len(list) > len(longest) {
				longest = list
			}
		}
	}
	return shortest < len(longest) && slices.ContainsFunc(l.visits, func(v listVisit) bool {
		list := l.lists[v.value]
		return v.run == largest && !slices.Equal(list, longest[:len(list)])
	})
}

// areNeighbours reports whether each rank is in the list of those in its own list, and whether some rank of the
// largest run has a neighbour with a neighbour that is not its own: in groups of ranks that all talk to one another
// there are no directions.
func (l *neighbourLoop) areNeighbours(sizes []int32) bool {
	of := make([]map[int32]map[int32]bool, len(sizes)) // neighbours by run and rank
	for i := range of {
		of[i] = map[int32]map[int32]bool{}
	}
	for _, v := range l.visits {
		if of[v.run][v.rank] == nil {
			of[v.run][v.rank] = map[int32]bool{v.rank: true}
		}
		for _, by := range l.lists[v.value] {
			of[v.run][v.rank][v.rank+by] = true
		}
	}
	beyond := false
	for i, neighbours := range of {
		for rank, own := range neighbours {
			for other := range own {
				if other < 0 || other >= sizes[i] || !neighbours[other][rank] {
					return false
				}
				beyond = beyond || i == len(of)-1 && !maps.Equal(own, neighbours[other])
			}
		}
	}
	return beyond
}

// places returns the places of the iterations of each value, and how many there are, on the layout with the fewest
// directions. It returns nil if the two largest runs do not have the same directions, if ranks list them in different
// orders, or if ranks with the same list have neighbours in different directions. Of layouts with as few directions the
// first counts: places tell only which iterations are the same, and laws are then looked for on all grids.
func (l *neighbourLoop) places(layouts [][][]int32) (places [][]int32, directions int32) {
	var best [][]direction // by visit
	var fewest map[direction]inRuns
	for _, extents := range layouts {
		got, seen := l.directionsOn(extents)
		if seen != nil && (fewest == nil || len(seen) < len(fewest)) {
			best, fewest = got, seen
		}
	}
	for _, in := range fewest {
		if in.largest != in.second {
			return nil, 0
		}
	}
	if len(fewest) < 2 {
		return nil, 0
	}
	return l.placesOf(best, slices.SortedFunc(maps.Keys(fewest), direction.compare))
}

// directionsOn returns the directions of the lists of all visits on grids with these extents, and in which runs each
// one is; nil if one leads further than to the next rank of an axis, or if there are too many.
func (l *neighbourLoop) directionsOn(extents [][]int32) (all [][]direction, runs map[direction]inRuns) {
	runs = map[direction]inRuns{}
	for _, v := range l.visits {
		from := coordinates(extents[v.run], v.rank)
		list := make([]direction, len(l.lists[v.value]))
		for k, by := range l.lists[v.value] {
			to := coordinates(extents[v.run], v.rank+by)
			for a := range to {
				if list[k][a] = to[a] - from[a]; max(list[k][a], -list[k][a]) > 1 {
					return nil, nil
				}
			}
			seen := runs[list[k]]
			seen.largest = seen.largest || int(v.run) == len(extents)-1
			seen.second = seen.second || int(v.run) == len(extents)-2
			if runs[list[k]] = seen; len(runs) > maxNeighbours {
				return nil, nil
			}
		}
		all = append(all, list)
	}
	return all, runs
}

// coordinates returns the place of a rank on a grid, axis 0 varying fastest, as pattern.Grid.Coords does, without
// memory of its own: it is asked for every neighbour of every rank on every layout.
func coordinates(extents []int32, rank int32) (at direction) {
	for a, e := range extents {
		at[a] = rank % e
		rank /= e
	}
	return at
}

// placesOf returns the places of the iterations of each value: the directions, which are sorted, in an order in which
// all ranks list them.
func (l *neighbourLoop) placesOf(visited [][]direction, sorted []direction) (places [][]int32, directions int32) {
	number := map[direction]int32{}
	for i, d := range sorted {
		number[d] = int32(i)
	}
	successors := make([]map[int32]bool, len(sorted))
	places = make([][]int32, len(l.lists))
	for i, v := range l.visits {
		own := make([]int32, len(visited[i]))
		for k, d := range visited[i] {
			own[k] = number[d]
			if k == 0 || l.anyOrder {
				continue
			}
			if successors[own[k-1]] == nil {
				successors[own[k-1]] = map[int32]bool{}
			}
			successors[own[k-1]][own[k]] = true
		}
		if places[v.value] != nil && !slices.Equal(places[v.value], own) {
			return nil, 0
		}
		places[v.value] = own
	}
	place, ok := topologicalPlaces(successors)
	if !ok {
		return nil, 0
	}
	for _, own := range places {
		for k := range own {
			own[k] = place[own[k]]
		}
	}
	return places, int32(len(sorted))
}
