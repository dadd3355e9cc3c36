package predict

import (
	"fmt"
	"slices"

	"github.com/commq/commq/schema"
)

// A slot is a communication: a call of the template at a place in those loops along which something about it changes. In it a rank does at most one
// thing. Loops whose iterations are all the same have no place.

// place is where in the loops around it a call is made: the iteration of each loop that is kept, the outermost first.
type place [maxLoops]int32

// maxLoops is how many loops around a call can have places.
const maxLoops = 8

// done is a call that a rank made at a place.
type done struct {
	run   int32
	rank  int32 // of that run
	place place
	call  int32 // in the node's Values
}

// site is an event of the joint template with all that ranks did there.
type site struct {
	node  *Node
	loops []round // around it, of which places are kept, outermost first
	all   []done
	slots []*slot // in the order of their places
	at    map[place]*slot
	// sends and receives say what it is.
	sends, receives bool
}

// round is a component of places: the iteration of a loop, or, where the calls of its iterations come again and again after a period, which time that
// is, or which iteration of the period.
type round struct {
	loop   *Node
	period int32 // 0: none
	within bool  // the iteration of the period
}

// of is the component at an iteration.
func (r round) of(iteration int32) int32 {
	switch {
	case r.period == 0:
		return iteration
	case r.within:
		return iteration % r.period
	}
	return iteration / r.period
}

// rounds are the components of places that a loop has.
func rounds(n *Node, period int32) []round {
	if period == 0 {
		return []round{{loop: n}}
	}
	return []round{{n, period, false}, {n, period, true}}
}

// slot is a site at a place.
type slot struct {
	site  *site
	place place
	runs  [][]*Call // by run and rank; nil: the rank does not make the call here
}

// mostDone bounds what is kept of all sites.
const mostDone = 1 << 23

// slotter finds slots.
type slotter struct {
	*training
	uniform []bool      // loops, by node, whose iterations are all the same wherever a rank goes through them
	periods []int32     // of loops, by node; 0: none
	order   [][]int32   // by node of loops of which ranks skip iterations, the place of each body among all iterations
	enters  [][][]int32 // by node of loops of which ranks lack the first or the last iterations, by run and value: at which of all iterations they begin
	last    [][]int32   // of these, by run: how many iterations there are
	sites   []*site
	byNode  []*site
	count   int
	run     int32
	rank    int32
	at      []int32 // the place of the loops that it is in and that are not uniform
	// iterations is how many iterations a loop has, by node and where.
	iterations []map[where]int32
	most       int // bounds count
}

// slots finds the sites and slots of all runs.
func (t *training) slots() ([]*site, *slotter, error) {
	s, err := t.places(mostDone)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range s.sites {
		if err := w.fill(t); err != nil {
			return nil, nil, err
		}
	}
	return s.sites, s, nil
}

// places finds the sites of all runs with all that ranks did there, each at its place; most bounds how much that is.
func (t *training) places(most int) (*slotter, error) {
	s := &slotter{training: t, uniform: make([]bool, len(t.nodes)), periods: make([]int32, len(t.nodes)), byNode: make([]*site, len(t.nodes)),
		iterations: make([]map[where]int32, len(t.nodes)), most: most}
	for _, n := range t.nodes {
		if n.Loop {
			s.iterations[n.ID] = map[where]int32{}
			if s.uniform[n.ID] = n.ID == 0 || uniform(t.Values[n.ID].Loops); !s.uniform[n.ID] && !n.levels {
				s.periods[n.ID] = period(&t.Values[n.ID])
			}
			continue
		}
		w := &site{node: n, at: map[place]*slot{}}
		for l := n.parent; l != nil; l = l.parent {
			if !s.uniform[l.ID] {
				w.loops = append(rounds(l, s.periods[l.ID]), w.loops...)
			}
		}
		if len(w.loops) > maxLoops {
			return nil, fmt.Errorf("call %s is in %d loops, one in the other, and what is done changes from iteration to iteration of each: whom it goes to and how much it is may hang on all of these at once, "+
				"which runs at %d numbers of ranks do not tell (laws are looked for with at most %d)", t.name(n), len(w.loops), len(t.runs), maxLoops)
		}
		s.sites = append(s.sites, w)
		s.byNode[n.ID] = w
	}
	s.align()
	for i, run := range t.runs {
		for r := range run.Ranks {
			s.run, s.rank = int32(i), r
			if err := s.walk(t.nodes[0], t.Roots[t.base[i]+r]); err != nil {
				return nil, err
			}
		}
	}
	for _, w := range s.sites {
		s.reduce(w)
	}
	return s, nil
}

// uniform says whether in each execution of a loop all iterations are the same.
func uniform(loops [][]Item) bool {
	for _, l := range loops {
		if len(l) > 1 || len(l) == 1 && l[0].Times > 0 && (len(l[0].Items) != 1 || l[0].Items[0].Times > 0) {
			return false
		}
	}
	return true
}

// Bounds of the period of a loop.
const (
	leastPeriod = 2
	mostPeriod  = 8
)

// period is after how many iterations the calls of a loop come again, in all executions that have two periods or more; 0: they do not. It is a loop of
// loops whose inner one is the same call with something else each time, as the axes of a grid.
func period(v *Values) int32 {
	made := make([]string, len(v.Bodies)) // what is called
	for i, b := range v.Bodies {
		var places []int32
		for k := 0; k < len(b); k += 2 {
			places = append(places, b[k])
		}
		made[i] = fmt.Sprint(places)
	}
	fits := func(m int) bool {
		some := false
		for _, l := range v.Loops {
			var all []string
			each(l, func(body int32) bool {
				all = append(all, made[body])
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
			some = some || len(all) >= 2*m && slices.ContainsFunc(all[:m], func(x string) bool { return x != all[0] })
		}
		return some
	}
	for m := leastPeriod; m <= mostPeriod; m++ {
		if fits(m) {
			return int32(m)
		}
	}
	return 0
}

// walk goes through what the rank did at a node.
func (s *slotter) walk(n *Node, value int32) error {
	v := &s.Values[n.ID]
	if !n.Loop {
		if s.count++; s.count > s.most {
			return fmt.Errorf("the runs have more than %d calls that are not alike: nothing regular is found in them", s.most)
		}
		d := done{run: s.run, rank: s.rank, call: value}
		copy(d.place[:], s.at)
		w := s.byNode[n.ID]
		w.all = append(w.all, d)
		return nil
	}
	iteration := func(b []int32) error {
		for i := 0; i < len(b); i += 2 {
			if err := s.walk(n.Children[b[i]], b[i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	here := where{run: s.run, rank: s.rank}
	copy(here.place[:], s.at)
	s.iterations[n.ID][here] = int32(countItems(v.Loops[value]))
	if s.uniform[n.ID] {
		if l := v.Loops[value]; len(l) > 0 {
			first := l[0].Value
			if l[0].Times > 0 {
				first = l[0].Items[0].Value
			}
			return iteration(v.Bodies[first])
		}
		return nil
	}
	depth, count := len(s.at), int32(0)
	if s.enters[n.ID] != nil {
		count, s.iterations[n.ID][here] = s.enters[n.ID][s.run][value], s.last[n.ID][s.run]
	}
	all := rounds(n, s.periods[n.ID])
	var err error
	each(v.Loops[value], func(body int32) bool {
		if order := s.order[n.ID]; order != nil {
			count = order[body]
			s.iterations[n.ID][here] = count + 1 // the last one is the farthest
		}
		for _, r := range all {
			s.at = append(s.at, r.of(count))
		}
		err = iteration(v.Bodies[body])
		s.at = s.at[:depth]
		count++
		return err == nil
	})
	return err
}

// name says what a node is, for people.
func (s *Signature) name(n *Node) string {
	if n.Loop {
		return fmt.Sprintf("loop %d", n.ID)
	}
	sym := &s.Symbols[n.Symbol]
	if sym.Frame == nil {
		return fmt.Sprintf("%s (%d)", sym.Call, n.ID)
	}
	f := s.frame(*sym.Frame)
	switch {
	case f == nil:
		return fmt.Sprintf("%s (%d)", sym.Call, n.ID)
	case f.Line != nil:
		return fmt.Sprintf("%s in %s, %s:%d (%d)", sym.Call, f.Function, f.File, *f.Line, n.ID)
	}
	return fmt.Sprintf("%s in %s+%#x (%d)", sym.Call, f.Function, value(f.Offset, 0), n.ID)
}

func (s *Signature) frame(id int32) *Frame {
	i, found := slices.BinarySearchFunc(s.Frames, id, func(f Frame, id int32) int { return int(f.ID) - int(id) })
	if !found {
		return nil
	}
	return &s.Frames[i]
}

type where struct {
	run, rank int32
	place     place
}

// reduce leaves out the loops along which a site is always the same: the call is the same at each of their iterations, and is made in all of
// them.
func (s *slotter) reduce(w *site) {
	var drop []int
	for i := range w.loops {
		if s.constant(w, i) {
			drop = append(drop, i)
		}
	}
	for _, i := range slices.Backward(drop) {
		var kept []done
		for _, d := range w.all {
			if d.place[i] == 0 {
				copy(d.place[i:], d.place[i+1:])
				d.place[maxLoops-1] = 0
				kept = append(kept, d)
			}
		}
		w.all = kept
		w.loops = slices.Delete(w.loops, i, i+1)
	}
}

// constant says whether loop i does not matter.
func (s *slotter) constant(w *site, i int) bool {
	type seen struct{ call, count int32 }
	at := map[where]*seen{}
	events := s.Values[w.node.ID].Events
	for _, d := range w.all {
		k := where{d.run, d.rank, d.place}
		k.place[i] = 0
		x := at[k]
		if x == nil {
			x = &seen{call: d.call}
			at[k] = x
		}
		if x.call != d.call && !same(events[x.call], events[d.call]) {
			return false
		}
		x.count++
	}
	r := w.loops[i]
	first := slices.IndexFunc(w.loops, func(o round) bool { return o.loop == r.loop })
	for k, x := range at {
		for j := first; j < maxLoops; j++ { // the loop's execution is at the places of those around it
			k.place[j] = 0
		}
		want := s.iterations[r.loop.ID][k]
		switch {
		case r.within:
			want = r.period
		case r.period > 0:
			want /= r.period
		}
		if x.count != want {
			return false
		}
	}
	return true
}

// same says whether calls are the same but for which earlier calls they complete.
func same(a, b *Call) bool {
	return a == b || a.Comm == b.Comm && slices.Equal(a.Send, b.Send) && slices.Equal(a.Recv, b.Recv) && value(a.Root, -1) == value(b.Root, -1) && a.ReduceOp == b.ReduceOp &&
		value(a.Error, 0) == value(b.Error, 0) && value(a.PostedAny, -1) == value(b.PostedAny, -1) && value(a.ProcNull, -1) == value(b.ProcNull, -1)
}

// fill makes the slots.
func (w *site) fill(t *training) error {
	sym := &t.Symbols[w.node.Symbol]
	class := schema.Calls[sym.call].Class
	w.sends = class == schema.ClassSend || class == schema.ClassSendrecv
	w.receives = class == schema.ClassRecv || class == schema.ClassSendrecv
	events := t.Values[w.node.ID].Events
	for _, d := range w.all {
		x := w.at[d.place]
		if x == nil {
			x = &slot{site: w, place: d.place}
			for _, s := range t.runs {
				x.runs = append(x.runs, make([]*Call, s.Ranks))
			}
			w.at[d.place] = x
			w.slots = append(w.slots, x)
		}
		x.runs[d.run][d.rank] = events[d.call]
	}
	w.all = nil
	slices.SortFunc(w.slots, func(a, b *slot) int { return slices.Compare(a.place[:], b.place[:]) })
	return nil
}
