package report

import (
	"slices"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/model/law"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/slots"
)

// maxAskedRanks is the number of ranks, spread over all, at which laws of numbers are compared.
const maxAskedRanks = 64

// ask returns a question if laws differ at the wanted number of ranks; else nil.
func (w *Weigher) ask(answers func(ranks int32) []int) *question {
	wanted := answers(w.ranks)
	if len(wanted) == 0 || slices.Min(wanted) == slices.Max(wanted) {
		return nil
	}
	return &question{wanted, answers}
}

// doubtOf makes a doubt of those questions that are not nil. Without any no run is known to settle it.
func doubtOf(all ...*question) *doubt {
	return &doubt{questions: slices.DeleteFunc(all, func(q *question) bool { return q == nil })}
}

// doubtsOfLoops returns what is not known of the loops around a site.
func (w *Weigher) doubtsOfLoops(s *model.Site) (all []*doubt) {
	for n := s.Event.Parent; n != nil; n = n.Parent {
		for i := range w.prediction.Loops {
			if l := &w.prediction.Loops[i]; l.Node == n.ID {
				if w.loops[n.ID] == nil {
					w.loops[n.ID] = w.doubtOfLoop(l)
				}
				all = append(all, w.loops[n.ID])
			}
		}
		// no law tells how often ranks repeat it
		if w.model.Ragged[n.ID] && !w.model.Uniform[n.ID] && !s.Calls.DiffersAlong(n) {
			all = append(all, doubtOf())
		}
	}
	return all
}

// doubtOfLoop asks the rival laws of a loop's number of iterations, unless it may have more or less than by these.
func (w *Weigher) doubtOfLoop(x *generate.UncertainLoop) *doubt {
	l := w.model.Iterations[x.Node]
	if x.Widened || l.IsEmpty() || !l.IsExact() || l.DependsOnIndex() {
		return doubtOf()
	}
	low, high := x.High, x.Low
	for _, p := range pointsOn(w.ranks, nil, false) {
		e, ok := l.Evaluate(&p)
		if !ok {
			return doubtOf()
		}
		low, high = min(low, e.Low), max(high, e.High)
	}
	if x.Low < low || x.High > high {
		return doubtOf()
	}
	return doubtOf(w.ask(func(ranks int32) []int { return l.Answers(pointsOn(ranks, nil, false)) }))
}

// doubtsOfPartners returns what is not known of who makes a call, sends to whom and receives from whom: by its own laws
// or, if these have an answer, by those of the other side of its messages.
func (w *Weigher) doubtsOfPartners(s *model.Site, slot *slots.Slot) (all []*doubt) {
	var others []string
	for _, family := range []string{s.To, s.From, s.In} {
		if family == "" {
			continue
		}
		name := model.SlotName(family, slot.Index())
		if !w.isKnown(name) {
			all = append(all, w.doubtOfSlot(name))
		}
		if x := w.model.PatternSlot(name); x != nil {
			others = append(others, x.Partners...)
		}
	}
	if len(all) > 0 {
		return all
	}
	for _, name := range others {
		if w.isKnown(name) {
			continue
		}
		if d := w.doubtOfSlot(name); len(d.questions) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// isKnown reports whether the destinations of a slot are known at the wanted number of ranks.
func (w *Weigher) isKnown(name string) bool {
	known, asked := w.known[name]
	if !asked {
		if q := w.asked[name]; q != nil {
			_, err := q[0].Map(w.ranks)
			known = err == nil
		}
		w.known[name] = known
	}
	return known
}

// doubtOfSlot asks which law of a slot is right.
func (w *Weigher) doubtOfSlot(name string) *doubt {
	d := w.partners[name]
	if d == nil {
		d = &doubt{}
		for _, q := range w.asked[name] {
			if asked := w.ask(q.Answers); asked != nil {
				d.questions = append(d.questions, asked)
			}
		}
		w.partners[name] = d
	}
	return d
}

// doubtsOfComm returns what is not known of who is together in communicators.
func (w *Weigher) doubtsOfComm(g *model.CommGroup) []*doubt {
	d, known := w.comms[g]
	if !known {
		d = w.doubtOfComm(g)
		w.comms[g] = d
	}
	if d == nil {
		return nil
	}
	return []*doubt{d}
}

// doubtOfComm asks the rival laws of who is together in communicators, and that of the next members; nil if it is
// known.
func (w *Weigher) doubtOfComm(g *model.CommGroup) *doubt {
	law, nextIsKnown := w.model.Partition(g), w.isKnown(g.Slot)
	switch {
	case law == nil || law.Ordered && !law.Alone && !law.Overlap && len(law.Forms) == 0:
		if nextIsKnown {
			return nil
		}
		return w.doubtOfSlot(g.Slot)
	case len(law.Forms) == 0 || !law.Ordered || law.Alone || law.Overlap:
		return doubtOf()
	}
	q := w.ask(func(ranks int32) []int {
		var next *pattern.Map
		if nextIsKnown {
			next, _ = w.asked[g.Slot][0].Map(ranks)
		}
		return law.Answers(ranks, next)
	})
	if _, err := law.Sets(w.ranks); q == nil && err == nil {
		return nil
	}
	return doubtOf(q)
}

// weighBytes weighs bytes of a site's calls whose laws differ.
func (w *Weigher) weighBytes(s *model.Site, total int64) *weighed {
	x := &weighed{total: total}
	for _, slot := range spreadOver(s.Calls.Slots, maxPlaces) {
		var d doubt
		for _, root := range []bool{false, true} {
			q := w.ask(func(ranks int32) []int { return s.Send.Bytes.Answers(w.senders(s, slot, ranks, root)) })
			if q != nil {
				d.questions = append(d.questions, q)
			}
		}
		if len(d.questions) > 0 {
			x.places = append(x.places, weighedPlace{callsInLargest(slot), []*doubt{&d}})
		}
	}
	return x
}

// senders returns the points of the calls of a slot that send; nil if the receivers are not known.
func (w *Weigher) senders(s *model.Site, slot *slots.Slot, ranks int32, root bool) (points []law.Point) {
	all := pointsOn(ranks, slot.Index(), root)
	if s.To == "" {
		return all
	}
	q := w.asked[model.SlotName(s.To, slot.Index())]
	if q == nil {
		return nil
	}
	to, err := q[0].Map(ranks)
	if err != nil {
		return nil
	}
	for _, p := range all {
		if dst, sends := to.Dst(p.Rank); sends {
			p.PeerRank = dst
			points = append(points, p)
		}
	}
	return points
}

// doubtsOfRoot asks the rival laws of the root of a site's calls, unless it is known.
func (w *Weigher) doubtsOfRoot(s *model.Site, slot *slots.Slot) []*doubt {
	if s.Root.IsEmpty() {
		return nil
	}
	exact := true
	for _, p := range pointsOn(w.ranks, slot.Index(), false) {
		e, ok := s.Root.Evaluate(&p)
		exact = exact && ok && e.Exact
	}
	if exact {
		return nil
	}
	return []*doubt{doubtOf(w.ask(func(ranks int32) []int {
		return s.Root.Answers(pointsOn(ranks, slot.Index(), false))
	}))}
}

// pointsOn returns the points of at most maxAskedRanks ranks, spread over all, the last among them, at a place in the
// loops.
func pointsOn(ranks int32, index []int32, root bool) (points []law.Point) {
	n := min(ranks, maxAskedRanks)
	for i := range n {
		rank := int32(int64(i) * int64(ranks-1) / int64(max(n-1, 1)))
		points = append(points, law.Point{Ranks: ranks, Rank: rank, PeerRank: pattern.None, Index: index, Root: root})
	}
	return points
}

// spreadOut returns at most maxChecked of numbers, in even distances.
func spreadOut(numbers []int32) []int32 { return spreadOver(numbers, maxChecked) }

// spreadOver returns at most a number of items, in even distances.
func spreadOver[T any](all []T, most int) (some []T) {
	n := min(len(all), most)
	for i := range n {
		some = append(some, all[i*len(all)/n])
	}
	return some
}
