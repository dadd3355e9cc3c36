package pattern

import (
	"errors"
	"slices"
)

// Question is about the destinations of a slot: which of the rival forms of a law is right?
type Question struct {
	law   *Law
	index []int32
	known *Inverses // of all questions of a program
}

// Questions returns, by the name of the slot, its question, and that about the other side of its messages if this has
// a law.
func (p *Program) Questions() map[string][]Question {
	all, known := map[string][]Question{}, &Inverses{}
	for i := range p.Laws {
		l := &p.Laws[i]
		for _, m := range l.Members {
			if all[m.Slot] != nil {
				continue
			}
			all[m.Slot] = []Question{{l, m.Index, known}}
			if l.Inverse != nil {
				all[m.Slot] = append(all[m.Slot], Question{l.Inverse, m.Index, known})
			}
		}
	}
	return all
}

// Map returns the answer at a process count, as Law.Map does.
func (q Question) Map(ranks int32) (*Map, error) { return q.law.MapLike(ranks, q.index, q.known) }

// SeveralAnswers stands, in place of a number, for the answers of several laws, or for what no run shows, whatever it
// is; undefinedAnswer for a form that is not defined at the process count.
const (
	undefinedAnswer = -1
	SeveralAnswers  = -2
)

// Answers numbers the answers that the law's forms give at a process count, in the order of the forms: forms with the
// same number have the same answer. One more number is for what no run shows, such as the partners along a longer axis:
// it is another one where the answer depends on that, else that of the first form. Answers is nil if no form is asked.
func (q Question) Answers(ranks int32) (numbers []int) {
	l := q.law
	if len(l.Forms) == 0 || l.Forms[0].Presence.Kind == Erratic || l.unaligned(ranks) != nil ||
		len(q.index) != len(l.Members[0].Index) {
		return nil
	}
	different, _, _, short, numbers := bindNumbered(l, ranks, q.index)
	switch in, unseen := q.isUnseen(ranks, different, short); {
	case !in:
		return make([]int, len(numbers)+1)
	case unseen:
		return append(numbers, SeveralAnswers)
	}
	return append(numbers, numbers[0])
}

// isUnseen reports whether the answer at a process count depends on what no run shows. in is false if the index does
// not exist there; short is as bind returns it.
func (q Question) isUnseen(ranks int32, different []*Map, short string) (in, unseen bool) {
	if len(different) == 0 {
		return true, false
	}
	if len(q.law.Ranges) > 0 {
		m, err := q.law.inRange(ranks, q.index, different)
		if err != nil {
			return true, true
		}
		if m.absent {
			return m == different[0], false
		}
	}
	if len(different) > 1 || short != "" {
		return true, short != ""
	}
	_, err := q.law.ownMap(ranks, q.index)
	var r *Refusal
	return true, errors.As(err, &r) && (r.Reason == Ambiguous || r.Reason == UnknownEnd)
}

// Answers numbers the answers that the forms of a partition give at a process count, as Question.Answers does. next is
// what the law of the next members gives there, a rival of all forms; nil if it is not asked.
func (l PartitionLaw) Answers(ranks int32, next *Map) (numbers []int) {
	var different [][]int32
	number := func(members []int32) int {
		i := slices.IndexFunc(different, func(o []int32) bool { return slices.Equal(o, members) })
		if i < 0 {
			i, different = len(different), append(different, members)
		}
		return i
	}
	unseen := false
	for _, f := range l.Forms {
		for _, g := range f.Grids {
			dims, ok := g.Dims(ranks)
			if !ok {
				numbers = append(numbers, undefinedAnswer)
				continue
			}
			unseen = unseen || f.roundsUnseen(g, l.Training, dims)
			numbers = append(numbers, number(f.sets(ranks, dims).next()))
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	byNext, rounded := numbers[0], numbers[0]
	if next != nil {
		byNext = number(next.Mapping().Dst)
	}
	if unseen {
		rounded = SeveralAnswers
	}
	return append(numbers, byNext, rounded)
}

// next returns, by rank, the next member of its communicator, the first after the last; None for ranks in none.
func (s Sets) next() []int32 {
	next := slices.Repeat([]int32{None}, int(s.Ranks))
	for _, set := range s.Sets {
		for i, r := range set {
			next[r] = set[(i+1)%len(set)]
		}
	}
	return next
}
