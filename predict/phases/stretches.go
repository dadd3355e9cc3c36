package phases

import (
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/template"
)

// stretch is a phase on one rank: the calls from seq first to before seq end.
type stretch struct {
	node, place int32 // as in signature.Phase
	weight      int64 // repetitions
	first, end  int64
	shape       int32
}

// findStretches returns the stretches of a rank in order.
func findStretches(s *shapes, rank int32) []stretch {
	f := &stretchFinder{shapes: s, places: map[int32]int32{}}
	f.visit(s.sig.Nodes()[0], s.sig.Roots[rank])
	return f.found
}

// stretchFinder walks over the calls of a rank.
type stretchFinder struct {
	shapes *shapes
	seq    int64           // of the next call
	places map[int32]int32 // stretches found so far, by loop
	found  []stretch
}

// visit walks over an execution of a loop. Repeated iterations are a stretch; others may contain stretches.
func (f *stretchFinder) visit(loop *template.Node, value int32) {
	v := &f.shapes.sig.Values[loop.ID]
	var bodies []int32
	fold.Each(v.Loops[value], func(body int32) bool { bodies = append(bodies, body); return true })
	for _, item := range f.shapes.refold(loop, v.Loops[value]) {
		now := bodies[:item.Len()]
		bodies = bodies[len(now):]
		if item.Times > 0 {
			first := f.seq
			for _, body := range now {
				f.seq += f.shapes.bodyEvents[loop.ID][body]
			}
			f.found = append(f.found, stretch{loop.ID, f.places[loop.ID], item.Times, first, f.seq,
				f.shapes.number(loop, shapeOfStretch, fold.AppendKey(nil, item.Items))})
			f.places[loop.ID]++
			continue
		}
		b := v.Bodies[now[0]]
		for k := 0; k < len(b); k += 2 {
			if child := loop.Children[b[k]]; child.Loop {
				f.visit(child, b[k+1])
			} else {
				f.seq++
			}
		}
	}
}

// Repetition is where a rank repeats a phase: First is the seq of its first call, Calls the number of calls in one
// repetition, Times the number of repetitions. It is zero for a rank that does not have the phase.
type Repetition struct {
	First, Calls, Times int64
}

// Middle is the middle repetition of a phase, one that is likely to be like most others.
type Middle struct {
	// Phase is the index of the phase, Weight how often it is repeated, and Nth the repetition, from 0.
	Phase       int
	Weight, Nth int64
	// First is the first call of the first repetition on each rank, Calls the number of calls in a repetition there.
	First, Calls []int64
}

// Coverage is the share of a run in its relevant phases.
type Coverage struct {
	Phases    int     // relevant phases
	Others    int     // phases that are not relevant
	TimeShare float64 // of the time of all ranks, 0 to 1; of the logical clock where times are unknown
	CallShare float64 // of the calls of all ranks, 0 to 1
}

// Cover adds up the shares of the phases with at least this share of the run.
func Cover(sig *signature.Signature, leastShare float64) (c Coverage) {
	for i := range sig.Phases {
		p := &sig.Phases[i]
		if !p.Relevant(sig.Ranks, leastShare) {
			c.Others++
			continue
		}
		c.Phases++
		c.TimeShare += p.Share()
		c.CallShare += p.CallShare
	}
	return c
}

// MiddleOfRelevant returns the middle repetition of each phase that has at least this share of the run, and that all
// ranks repeat equally often.
func MiddleOfRelevant(sig *signature.Signature, leastShare float64) (list []Middle) {
	for i := range sig.Phases {
		p := &sig.Phases[i]
		if !p.Relevant(sig.Ranks, leastShare) {
			continue
		}
		m := Middle{Phase: i, Weight: p.Weight, Nth: p.Weight / 2}
		for _, r := range Repetitions(sig, i) {
			m.First, m.Calls = append(m.First, r.First), append(m.Calls, r.Calls)
		}
		list = append(list, m)
	}
	return list
}

// Repetitions returns, by rank, where the phase with this index is repeated.
func Repetitions(sig *signature.Signature, phase int) []Repetition {
	shapes := findShapes(sig)
	p := &sig.Phases[phase]
	all := make([]Repetition, sig.Ranks)
	for r := range sig.Ranks {
		list := findStretches(shapes, r)
		i := slices.IndexFunc(list, func(s stretch) bool { return s.node == p.Node && s.place == p.Place })
		if i >= 0 {
			s := &list[i]
			all[r] = Repetition{s.first, (s.end - s.first) / s.weight, s.weight}
		}
	}
	return all
}
