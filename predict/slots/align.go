package slots

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/template"
)

// alignment maps the iterations that ranks make of a loop to those that there are in all. At most one kind is set.
type alignment struct {
	// order has the place of each body, for loops of which ranks skip iterations.
	order []int32
	// entries has, by run and value, the iteration at which an execution begins, for loops over the levels of a
	// recursion; ends has, by run, the number of iterations.
	entries [][]int32
	ends    []int32
	// places has, by value, the place of each iteration, for loops over neighbours.
	places [][]int32
	// directions is the number of places of a loop over neighbours, 0 for other loops.
	directions int32
}

// align returns the alignments of all loops, by node.
func align(sig *signature.Signature, runs []Run, s *Slots) []alignment {
	nodes := sig.Nodes()
	executions := make([][]map[int32]bool, len(nodes)) // values, by node and run; nil for loops that do not count
	for _, n := range nodes {
		if n.Loop && !s.Uniform[n.ID] {
			executions[n.ID] = make([]map[int32]bool, len(runs))
		}
	}
	for i, run := range runs {
		visited := map[[2]int32]bool{}
		for r := range run.Ranks {
			sig.VisitExecutions(nodes[0], sig.Roots[run.First+r], visited)
		}
		for k := range visited {
			if byRun := executions[k[0]]; byRun != nil {
				if byRun[i] == nil {
					byRun[i] = map[int32]bool{}
				}
				byRun[i][k[1]] = true
			}
		}
	}
	all := make([]alignment, len(nodes))
	var open []*template.Node // loops that tags do not align
	for _, n := range nodes {
		switch {
		case executions[n.ID] == nil:
		case n.RecursionLevels:
			all[n.ID] = alignLevels(&sig.Values[n.ID], executions[n.ID])
		case s.Periods[n.ID] == 0:
			if all[n.ID].order = alignByTags(sig, n, executions[n.ID]); all[n.ID].order == nil {
				open = append(open, n)
			}
		}
	}
	byMessage := classesByMessage(sig, runs, open)
	for _, n := range open {
		// Bodies of different runs are in different sets, so sets of several runs have the same place.
		if key, keys := byMessage[n.ID].keys(); key != nil && keys <= maxAligned*len(runs) {
			all[n.ID].order = orderByKeys(&sig.Values[n.ID], executions[n.ID], key, keys, lowestPlaces)
		}
	}
	open = slices.DeleteFunc(open, func(n *template.Node) bool { return all[n.ID].order != nil })
	for loop, a := range alignNeighbours(sig, runs, open) {
		all[loop] = a
	}
	return all
}

// alignLevels aligns the levels of a recursion, which ranks may leave early on the way down and join late on the way
// up. The alignment is empty if ranks skip levels.
func alignLevels(v *signature.Values, runs []map[int32]bool) (a alignment) {
	down, up, lowest := false, false, int32(math.MaxInt32)
	deepest := make([]int32, len(runs))
	for i, run := range runs {
		for value := range run {
			from, to := v.RecursionLevels[value][0], v.RecursionLevels[value][1]
			if int64(max(to-from, from-to))+1 != fold.Len(v.Loops[value]) {
				return a
			}
			down, up = down || to > from, up || to < from
			lowest, deepest[i] = min(lowest, from, to), max(deepest[i], from, to)
		}
	}
	if down && up {
		return a
	}
	a.entries, a.ends = make([][]int32, len(runs)), make([]int32, len(runs))
	for i, run := range runs {
		a.entries[i] = make([]int32, len(v.Loops))
		for value := range run {
			from := v.RecursionLevels[value][0]
			entry := from - lowest
			if up {
				entry = deepest[i] - from
			}
			a.entries[i][value] = entry
			a.ends[i] = max(a.ends[i], entry+int32(fold.Len(v.Loops[value])))
		}
	}
	return a
}

// maxAligned is the largest number of distinct iterations of a loop that are aligned by tags.
const maxAligned = 64

// alignByTags finds the order of a loop's iterations, which the tags of their calls identify, from the order in which
// ranks make them: ranks at a border skip the directions in which they have no neighbour. It returns the place of each
// body; nil if no rank skips an iteration that others make, or if tags do not identify the iterations.
func alignByTags(sig *signature.Signature, n *template.Node, runs []map[int32]bool) []int32 {
	v := &sig.Values[n.ID]
	key, keys := tagKeys(sig, n)
	if key == nil {
		return nil
	}
	return orderByKeys(v, runs, key, keys, topologicalPlaces)
}

// orderByKeys finds the order of a loop's iterations, which keys of their bodies identify, from the order in which
// ranks make them. It returns the place of each body; nil if no rank skips an iteration that others make, if a key
// comes twice in an execution, or if ranks make them in different orders. places turns the successors of each key into
// places.
func orderByKeys(v *signature.Values, runs []map[int32]bool, key []int32, keys int,
	places func(successors []map[int32]bool) ([]int32, bool)) []int32 {
	skips := false
	successors := make([]map[int32]bool, keys)
	for _, run := range runs {
		var longest []int32
		var all [][]int32
		for _, value := range slices.Sorted(maps.Keys(run)) {
			sequence, distinct := distinctKeys(v.Loops[value], key)
			if !distinct {
				return nil
			}
			if all = append(all, sequence); len(sequence) > len(longest) {
				longest = sequence
			}
			for i := 1; i < len(sequence); i++ {
				if successors[sequence[i-1]] == nil {
					successors[sequence[i-1]] = map[int32]bool{}
				}
				successors[sequence[i-1]][sequence[i]] = true
			}
		}
		for _, sequence := range all {
			skips = skips || !slices.Equal(sequence, longest[:len(sequence)])
		}
	}
	if !skips {
		return nil
	}
	place, ok := places(successors)
	if !ok {
		return nil
	}
	for i := range key {
		key[i] = place[key[i]]
	}
	return key
}

// tagKeys numbers the bodies of a loop by the tags of their calls, and returns how many numbers there are. The result
// is nil if a body has an inner loop, or there are more than maxAligned numbers.
func tagKeys(sig *signature.Signature, n *template.Node) (key []int32, keys int) {
	v := &sig.Values[n.ID]
	numbers := map[string]int32{}
	key = make([]int32, len(v.Bodies))
	for i, b := range v.Bodies {
		text := ""
		for k := 0; k < len(b); k += 2 {
			c := n.Children[b[k]]
			if c.Loop {
				return nil, 0
			}
			e := sig.Values[c.ID].Events[b[k+1]]
			for _, side := range []signature.Side{e.Send, e.Recv} {
				if side.HasPeer() {
					text += fmt.Sprint(b[k], side[signature.SideTag], " ")
				}
			}
		}
		number, known := numbers[text]
		if !known {
			if number = int32(len(numbers)); number == maxAligned {
				return nil, 0
			}
			numbers[text] = number
		}
		key[i] = number
	}
	return key, len(numbers)
}

// distinctKeys returns the keys of an execution's iterations. distinct is false if one comes twice.
func distinctKeys(iterations []fold.Item, key []int32) (sequence []int32, distinct bool) {
	distinct = true
	fold.Each(iterations, func(body int32) bool {
		distinct = len(sequence) < maxAligned && !slices.Contains(sequence, key[body])
		sequence = append(sequence, key[body])
		return distinct
	})
	return sequence, distinct
}

// topologicalPlaces returns the position of each element in an order in which its successors come later; false if
// there is no such order.
func topologicalPlaces(successors []map[int32]bool) ([]int32, bool) {
	predecessors := make([]int, len(successors))
	for _, next := range successors {
		for k := range next {
			predecessors[k]++
		}
	}
	place := slices.Repeat([]int32{-1}, len(successors))
	for n := range successors {
		free := slices.IndexFunc(predecessors, func(count int) bool { return count == 0 })
		if free < 0 {
			return nil, false
		}
		place[free] = int32(n)
		predecessors[free] = -1
		for k := range successors[free] {
			predecessors[k]--
		}
	}
	return place, true
}

// lowestPlaces returns the lowest place of each element with which its successors come later; false if there is none.
func lowestPlaces(successors []map[int32]bool) ([]int32, bool) {
	place := make([]int32, len(successors))
	for changed := true; changed; {
		changed = false
		for k, next := range successors {
			for s := range next {
				if place[s] <= place[k] {
					place[s], changed = place[k]+1, true
				}
				if int(place[s]) >= len(successors) {
					return nil, false
				}
			}
		}
	}
	return place, true
}
