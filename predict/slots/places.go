package slots

import (
	"fmt"
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/template"
)

// FindVisits finds the sites of runs with their visits, but no slots. It is an error if there are more than maxVisits
// distinct calls.
func FindVisits(sig *signature.Signature, runs []Run, maxVisits int) (*Slots, error) {
	nodes := sig.Nodes()
	s := &Slots{Uniform: make([]bool, len(nodes)), Periods: make([]int32, len(nodes)),
		Iterations: make([]map[Position]int32, len(nodes))}
	w := &walker{sig: sig, runs: runs, slots: s, sites: make([]*Site, len(nodes)), maxVisits: maxVisits}
	for _, n := range nodes {
		if n.Loop {
			s.Iterations[n.ID] = map[Position]int32{}
			s.Uniform[n.ID] = n.ID == 0 || allUniform(sig.Values[n.ID].Loops)
			if !s.Uniform[n.ID] && !n.RecursionLevels {
				s.Periods[n.ID] = findPeriod(&sig.Values[n.ID])
			}
			continue
		}
		site := &Site{Event: n}
		for l := n.Parent; l != nil; l = l.Parent {
			if !s.Uniform[l.ID] {
				site.Components = append(Components(l, s.Periods[l.ID]), site.Components...)
			}
		}
		if len(site.Components) > MaxLoops {
			return nil, fmt.Errorf("%s is nested in %d loops whose iterations differ: peers and sizes may depend on "+
				"all of these at once, which runs at %d numbers of ranks cannot tell (the limit is %d loops)",
				sig.NodeName(n), len(site.Components), len(runs), MaxLoops)
		}
		s.Sites = append(s.Sites, site)
		w.sites[n.ID] = site
	}
	w.alignments = align(sig, runs, s)
	for i := range w.alignments {
		s.Directions = append(s.Directions, w.alignments[i].directions)
	}
	for i, run := range runs {
		for r := range run.Ranks {
			w.run, w.rank = int32(i), r
			if err := w.visit(nodes[0], sig.Roots[run.First+r]); err != nil {
				return nil, err
			}
		}
	}
	for _, site := range s.Sites {
		reduce(sig, s, site)
	}
	return s, nil
}

// allUniform reports whether in each execution of a loop all iterations are equal.
func allUniform(loops [][]fold.Item) bool {
	for _, l := range loops {
		if len(l) > 1 || len(l) == 1 && l[0].Times > 0 && (len(l[0].Items) != 1 || l[0].Items[0].Times > 0) {
			return false
		}
	}
	return true
}

// Bounds of the period of a loop.
const (
	minPeriod = 2
	maxPeriod = 8
)

// findPeriod returns after how many iterations the calls of a loop come again, in all executions that have two periods
// or more; 0 if they do not. Such a loop is a loop over an inner one that makes the same call with other arguments each
// time, as for the axes of a grid.
func findPeriod(v *signature.Values) int32 {
	callsOf := make([]string, len(v.Bodies)) // which children an iteration executes
	for i, b := range v.Bodies {
		var places []int32
		for k := 0; k < len(b); k += 2 {
			places = append(places, b[k])
		}
		callsOf[i] = fmt.Sprint(places)
	}
	for m := minPeriod; m <= maxPeriod; m++ {
		if hasPeriod(v, callsOf, m) {
			return int32(m)
		}
	}
	return 0
}

func hasPeriod(v *signature.Values, callsOf []string, m int) bool {
	found := false
	for _, l := range v.Loops {
		var all []string
		fold.Each(l, func(body int32) bool {
			all = append(all, callsOf[body])
			return true
		})
		if len(all)%m != 0 {
			return false
		}
		for i := range all {
			if i >= m && all[i] != all[i-m] {
				return false
			}
		}
		found = found || len(all) >= 2*m && slices.ContainsFunc(all[:m], func(x string) bool { return x != all[0] })
	}
	return found
}

// walker notes the visits of all ranks, rank by rank.
type walker struct {
	sig        *signature.Signature
	runs       []Run
	slots      *Slots
	sites      []*Site // by node
	alignments []alignment
	maxVisits  int
	visits     int
	run, rank  int32
	index      []int32 // of the current place
}

// visit walks over what the rank did at a node.
func (w *walker) visit(n *template.Node, value int32) error {
	here := Position{w.run, w.rank, PlaceOf(w.index)}
	if !n.Loop {
		if w.visits++; w.visits > w.maxVisits {
			return fmt.Errorf("the runs have more than %d distinct calls: nothing regular is found in them",
				w.maxVisits)
		}
		site := w.sites[n.ID]
		site.Visits = append(site.Visits, Visit{here.Run, here.Rank, here.Place, value})
		return nil
	}
	v := &w.sig.Values[n.ID]
	iterations := w.slots.Iterations[n.ID]
	iterations[here] = int32(fold.Len(v.Loops[value]))
	if w.slots.Uniform[n.ID] {
		if l := v.Loops[value]; len(l) > 0 {
			first := l[0].Value
			if l[0].Times > 0 {
				first = l[0].Items[0].Value
			}
			return w.visitIteration(n, v.Bodies[first])
		}
		return nil
	}
	a := &w.alignments[n.ID]
	depth, iteration, nth := len(w.index), int32(0), 0
	if a.entries != nil {
		iteration, iterations[here] = a.entries[w.run][value], a.ends[w.run]
	}
	components := Components(n, w.slots.Periods[n.ID])
	var err error
	fold.Each(v.Loops[value], func(body int32) bool {
		switch {
		case a.order != nil:
			iteration = a.order[body]
			iterations[here] = iteration + 1 // the last one is the farthest
		case a.places != nil:
			iteration, iterations[here] = a.places[value][nth], a.directions
		}
		nth++
		for _, c := range components {
			w.index = append(w.index, c.Index(iteration))
		}
		err = w.visitIteration(n, v.Bodies[body])
		w.index = w.index[:depth]
		iteration++
		return err == nil
	})
	return err
}

func (w *walker) visitIteration(loop *template.Node, body []int32) error {
	for i := 0; i < len(body); i += 2 {
		if err := w.visit(loop.Children[body[i]], body[i+1]); err != nil {
			return err
		}
	}
	return nil
}
