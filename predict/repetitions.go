package predict

import "slices"

// Repetition says where a phase is repeated on a rank: its rows from First on, Rows in each of Times repetitions.
type Repetition struct {
	First, Rows, Times int64
}

// Repetitions are the places of a phase of the signature, by rank; of a rank that does not have it Times is 0.
func (s *Signature) Repetitions(phase int) []Repetition {
	p := newPhaser(s)
	all := make([]Repetition, s.Ranks)
	for r := range s.Ranks {
		list := p.stretches(r)
		i := slices.IndexFunc(list, func(t stretch) bool { return t.node == s.Phases[phase].Node && t.place == s.Phases[phase].Place })
		if i >= 0 {
			t := &list[i]
			all[r] = Repetition{t.first, (t.end - t.first) / t.weight, t.weight}
		}
	}
	return all
}
