package neighbours

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
)

// If a run repeats an exchange at least leastRepeated times, only the first searched repetitions are searched, and the
// result is extended to the rest.
const (
	searched      = 8
	leastRepeated = 4 * searched
)

// outlineBytes is the memory for rows, in bytes per message of Input.Room: a message that is read completely takes six
// times as much.
const outlineBytes = 64

// repetition has the messages of the wanted cells as equal repetitions: in each, every stream has its share of
// messages, and each rank sends and receives them in the same order.
type repetition struct {
	times   int64
	streams []ledger.Stream
	lists   [][]ledger.Operand // by stream: the messages of the first repetitions, as many as are searched
	numbers map[*ledger.Operand]message
	rows    map[ledger.Stream]*ledger.Outline
}

// message is a message's stream, and its number in that.
type message struct{ stream, at int32 }

// repeated returns the exchanges of a run whose wanted messages are equal repetitions: it searches the first ones and
// counts the others. It returns nil if they are not equal repetitions; then all messages must be searched.
func (x *search) repeated(in *Input, l *ledger.Ledger, want map[ledger.Cell]bool) ([]*halo, error) {
	r := repetitionOf(x.head, want)
	if r == nil || r.sharesPlaces(l) {
		return nil, nil
	}
	var extended []extension
	for k := searched - 2; k <= searched; k++ {
		e := r.extensions(x.find(r.sample(x.head, want, k)))
		if k > searched-2 && !continues(extended, e) {
			return nil, nil
		}
		extended = e
	}
	halos := r.extend(extended)
	if halos == nil {
		return nil, nil
	}
	if ok, err := in.Outline(r.rows, in.Room*outlineBytes); err != nil || !ok || !r.isRegular() {
		return nil, err
	}
	return halos, nil
}

// repetitionOf divides the messages of the wanted cells; nil if there are too few repetitions.
func repetitionOf(s *ledger.Sample, want map[ledger.Cell]bool) *repetition {
	r := &repetition{numbers: map[*ledger.Operand]message{}, rows: map[ledger.Stream]*ledger.Outline{}}
	for _, of := range s.Order {
		for w, messages := range of.Ways {
			if want[of.Cell] && w.Src != w.Dst {
				r.times = divisor(r.times, messages.Count)
			}
		}
	}
	if r.times < leastRepeated {
		return nil
	}
	for _, of := range s.Order {
		if !want[of.Cell] {
			continue
		}
		for _, w := range ledger.SortedWays(of.Ways) {
			messages := of.Ways[w]
			n := messages.Count / r.times
			if w.Src == w.Dst || n == 0 {
				continue
			}
			if int64(len(messages.List)) < searched*n {
				return nil
			}
			list := messages.List[:searched*n]
			for k := range list {
				r.numbers[&list[k]] = message{int32(len(r.streams)), int32(k)}
			}
			stream := ledger.Stream{Cell: of.Cell, Way: w}
			r.streams, r.lists = append(r.streams, stream), append(r.lists, list)
			r.rows[stream] = &ledger.Outline{Places: make([]ledger.Rows, n)}
		}
	}
	return r
}

// divisor returns the greatest common divisor.
func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// share returns the number of a stream's messages in one repetition.
func (r *repetition) share(stream int32) int32 { return int32(len(r.lists[stream]) / searched) }

// sharesPlaces reports whether a message of an instance is sent where messages of the repetitions are.
func (r *repetition) sharesPlaces(l *ledger.Ledger) bool {
	type source struct{ comm, site int32 }
	places, sources := map[ledger.Place]bool{}, map[source]bool{}
	for _, s := range r.streams {
		places[ledger.PlaceOf(s.Comm, s.Tag, s.Site)], sources[source{s.Src, s.Site}] = true, true
	}
	return slices.ContainsFunc(l.Found, func(i *ledger.Instance) bool {
		return slices.ContainsFunc(i.Messages, func(k int32) bool {
			m := &l.Messages[k]
			return places[m.Place()] || sources[source{m.Src, m.SendSite}]
		})
	})
}

// sample returns the messages of the first repetitions.
func (r *repetition) sample(of *ledger.Sample, want map[ledger.Cell]bool, repetitions int) *ledger.Sample {
	s := &ledger.Sample{Cells: map[ledger.Cell]*ledger.CellSample{}, Closed: true}
	lists := map[ledger.Stream][]ledger.Operand{}
	for k, stream := range r.streams {
		lists[stream] = r.lists[k][:repetitions*int(r.share(int32(k)))]
	}
	for _, c := range of.Order {
		if !want[c.Cell] {
			continue
		}
		part := &ledger.CellSample{Cell: c.Cell, Ways: map[ledger.Way]*ledger.WaySample{}}
		for w := range c.Ways {
			if list := lists[ledger.Stream{Cell: c.Cell, Way: w}]; len(list) > 0 {
				part.Ways[w] = &ledger.WaySample{Count: int64(len(list)), List: list}
			}
		}
		s.Cells[c.Cell], s.Order = part, append(s.Order, part)
	}
	return s
}

// extension is an exchange among the first repetitions.
type extension struct {
	*halo
	messages [][]message // of each instance
	each     int         // instances that one more repetition adds
}

// extensions notes the messages of exchanges, which the next search numbers anew.
func (r *repetition) extensions(found []*halo) (out []extension) {
	for _, h := range found {
		e := extension{halo: h}
		for _, in := range h.instances {
			list := make([]message, len(in))
			for k, m := range in {
				list[k] = r.numbers[m]
			}
			slices.SortFunc(list, func(a, b message) int {
				return cmp.Or(cmp.Compare(a.stream, b.stream), cmp.Compare(a.at, b.at))
			})
			e.messages = append(e.messages, list)
		}
		out = append(out, e)
	}
	return out
}

// continues reports whether the exchanges found among one more repetition are the same, and sets what it adds.
func continues(before, after []extension) bool {
	if len(before) != len(after) {
		return false
	}
	for k := range after {
		a, b := &before[k], &after[k]
		b.each = len(b.instances) - len(a.instances)
		if b.each <= 0 || a.each > 0 && a.each != b.each || a.comm != b.comm || !slices.Equal(a.ways, b.ways) {
			return false
		}
	}
	return true
}

// extend adds the repetitions that were not searched to exchanges; nil if these do not repeat.
func (r *repetition) extend(found []extension) (out []*halo) {
	for _, e := range found {
		for k := range len(e.messages) - e.each {
			if !slices.EqualFunc(e.messages[k], e.messages[k+e.each], func(a, b message) bool {
				return a.stream == b.stream && a.at+r.share(a.stream) == b.at
			}) {
				return nil
			}
		}
		if len(e.instances) < 2*e.each {
			return nil
		}
		e.halo.repeats, e.halo.times, e.halo.of = e.each, r.times-searched, r
		out = append(out, e.halo)
	}
	return out
}

// rowsOf returns the rows of the messages that are to a message what it is to its repetition.
func (r *repetition) rowsOf(m *ledger.Operand) *ledger.Rows {
	n := r.numbers[m]
	return &r.rows[r.streams[n.stream]].Places[n.at%r.share(n.stream)]
}

// end is one end of the messages in one place of the repetitions.
type end struct {
	series *ledger.Series
	first  int64
	number int32 // twice the message's, plus one for the receive
}

// isRegular reports whether each rank sends and receives in the same order in all repetitions, and ends each before
// it begins the next.
func (r *repetition) isRegular() bool {
	byRank, number := map[int32][]end{}, int32(0)
	for k, s := range r.streams {
		for p := range r.rows[s].Places {
			rows, m := &r.rows[s].Places[p], &r.lists[k][p]
			if rows.Send.Len() != r.times || !rows.PostIsDone && !rows.Post.Compares(&rows.Post, 1, -1) {
				return false
			}
			byRank[s.Src] = append(byRank[s.Src], end{&rows.Send, m.SendSeq, number})
			byRank[s.Dst] = append(byRank[s.Dst], end{&rows.Done, m.DoneSeq, number + 1})
			number += 2
		}
	}
	for _, ends := range byRank {
		slices.SortFunc(ends, func(a, b end) int {
			return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.number&1, b.number&1), cmp.Compare(a.number, b.number))
		})
		for k := range ends[1:] {
			if !ends[k].series.Compares(ends[k+1].series, 0, cmp.Compare(ends[k].first, ends[k+1].first)) {
				return false
			}
		}
		if !ends[len(ends)-1].series.Compares(ends[0].series, 1, -1) {
			return false
		}
	}
	return true
}
