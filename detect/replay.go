package detect

import (
	"cmp"
	"slices"
)

// replay re-enacts messages of one payload on their ranks, forward or backward, in an order that knows no clocks: a rank's own
// order, in which a send stands where it was posted and a receive where it was complete, and each send before its receive.
type replay struct {
	ranks  []int32   // world ranks, sorted
	events [][]event // by rank, in its order
	sends  []place   // of a message
	recvs  []place
	gone   []bool // messages that an earlier instance took
	begin  []int  // by rank: the events before are of earlier instances

	walks   int32   // so many there were
	sent    []int32 // by message: the walk in which it is on its way
	carries []int32 // by message: the walk in which it carries what is looked for
	carried []rankSet
	spare   []rankSet // of messages that have come
	room    *setRoom  // of all sets
}

// event is an end of a message.
type event struct {
	message int32 // index into what is replayed
	send    bool
}

// place is where an event is.
type place struct{ rank, at int }

// newReplay makes a replay of the messages of a list.
func (d *detector) newReplay(list []int32) *replay {
	all := d.messages
	numbers := newNumbers(all, list)
	r := blankReplay(numbers.ranks, len(list), d.newSetRoom())
	ends := make([]int, len(r.ranks)+1)
	for i, m := range list {
		src, dst := numbers.of(all[m].src), numbers.of(all[m].dst)
		r.sends[i].rank, r.recvs[i].rank = int(src), int(dst)
		ends[src]++
		ends[dst]++
	}
	r.reserve(ends)
	for i := range list {
		src, dst := r.sends[i].rank, r.recvs[i].rank
		r.events[src] = append(r.events[src], event{int32(i), true})
		r.events[dst] = append(r.events[dst], event{int32(i), false})
	}
	var timed []timedEvent
	for rank, events := range r.events {
		timed = slices.Grow(timed[:0], len(events))[:len(events)]
		for k, e := range events {
			timed[k] = timedEvent{all[list[e.message]].doneSeq, e}
			if e.send {
				timed[k].seq = all[list[e.message]].sendSeq
			}
		}
		if !slices.IsSortedFunc(timed, compareTimed) {
			slices.SortFunc(timed, compareTimed)
			for k := range timed {
				events[k] = timed[k].event
			}
		}
		r.number(rank)
	}
	return r
}

// timedEvent is an event and when it is, in its rank's order.
type timedEvent struct {
	seq int64
	event
}

func compareTimed(a, b timedEvent) int {
	switch {
	case a.seq != b.seq:
		return cmp.Compare(a.seq, b.seq)
	case a.send == b.send:
		return cmp.Compare(a.message, b.message)
	case a.send: // what a call sends does not depend on what it receives
		return -1
	}
	return 1
}

// blankReplay is a replay of so many messages, of which nothing is known yet.
func blankReplay(ranks []int32, messages int, room *setRoom) *replay {
	places := make([]place, 2*messages)
	return &replay{ranks: ranks, room: room, events: make([][]event, len(ranks)), sends: places[:messages:messages], recvs: places[messages:],
		gone: make([]bool, messages), begin: make([]int, len(ranks))}
}

// reserve makes room for so many events of each rank.
func (r *replay) reserve(events []int) {
	all := make([]event, 2*len(r.sends))
	for rank := range r.events {
		n := events[rank]
		r.events[rank], all = all[:0:n], all[n:]
	}
}

// number notes where a rank's events are.
func (r *replay) number(rank int) {
	for at, e := range r.events[rank] {
		if e.send {
			r.sends[e.message] = place{rank, at}
		} else {
			r.recvs[e.message] = place{rank, at}
		}
	}
}

// backward is the replay of some of its messages from the end to the beginning: who sent receives. The messages' numbers in it are
// their places in the list.
func (r *replay) backward(messages []int32) *replay {
	b := blankReplay(r.ranks, len(messages), r.room)
	ends := make([]int, len(r.ranks))
	for _, m := range messages {
		ends[r.sends[m].rank]++
		ends[r.recvs[m].rank]++
	}
	b.reserve(ends)
	for i, m := range messages {
		src, dst := r.sends[m].rank, r.recvs[m].rank
		b.events[src] = append(b.events[src], event{int32(i), false})
		b.events[dst] = append(b.events[dst], event{int32(i), true})
	}
	at := func(e event) int { return r.at(event{messages[e.message], !e.send}) }
	for rank, events := range b.events {
		slices.SortFunc(events, func(x, y event) int { return cmp.Compare(at(y), at(x)) })
		b.number(rank)
	}
	return b
}

// walk visits the events from begin on, a few of each rank in turn, so that no rank runs far ahead of the others, until visit says
// stop or there are no more. What it says is whether it was stopped.
func (r *replay) walk(visit func(rank, at int, e event) (stop bool)) bool {
	at := slices.Clone(r.begin)
	if r.sent == nil {
		r.sent = make([]int32, len(r.sends))
	}
	r.walks++
	for moved := true; moved; {
		moved = false
		for rank := range at {
			for range r.ranks {
				if at[rank] == len(r.events[rank]) {
					break
				}
				e := r.events[rank][at[rank]]
				gone := r.gone[e.message]
				if !gone && !e.send && r.sent[e.message] != r.walks {
					break
				}
				at[rank]++
				moved = true
				if gone {
					continue
				}
				if e.send {
					r.sent[e.message] = r.walks
				}
				if visit(rank, at[rank]-1, e) {
					return true
				}
			}
		}
	}
	return false
}

// carry notes that a message is on its way with a set.
func (r *replay) carry(message int32, set *rankSet) {
	if r.carried == nil {
		r.carried = make([]rankSet, len(r.sends))
	}
	own := &r.carried[message]
	if n := len(r.spare); own.empty() && n > 0 {
		*own, r.spare = r.spare[n-1], r.spare[:n-1]
	}
	own.set(set)
}

// come gives the set that a message carries, until another one is carried.
func (r *replay) come(message int32) *rankSet {
	r.spare = append(r.spare, r.carried[message])
	r.carried[message] = rankSet{}
	return &r.spare[len(r.spare)-1]
}

// goal says when enough is known.
type goal int8

const (
	oneToAll goal = iota // all ranks have got something from some rank, or from one that is named
	allToOne             // a rank has got something from all ranks
	allToAll             // all ranks have got something from all ranks
)

// anyRank is no rank.
const anyRank = -1

// reached is how far a replay got: which rank the goal was reached for, and the events by which each rank did its part.
type reached struct {
	rank int
	upTo []int // by rank: the number of its events up to the last that the goal needs; 0: none
}

// reach replays until the goal is reached, with the sets of ranks from which each rank has got something. rank is the one that the
// goal is about, or anyRank.
func (r *replay) reach(g goal, rank int) (reached, bool) {
	n := len(r.ranks)
	if r.room.again(); r.room.over() {
		return reached{}, false
	}
	from := make([]rankSet, n)
	for q := range from {
		from[q] = newRankSet(n, r.room)
	}
	know := make([]int, n) // how many ranks have got something from it
	knows := make([]int, n)
	full := 0
	out := reached{rank: rank, upTo: make([]int, n)}
	add := func(q, o int) (done bool) {
		know[o]++
		knows[q]++
		if knows[q] == n {
			full++
		}
		switch g {
		case oneToAll:
			if know[o] == n && (rank == anyRank || o == rank) {
				out.rank = o
				return true
			}
		case allToOne:
			return q == rank && knows[q] == n
		case allToAll:
			return full == n
		}
		return false
	}
	ok := r.walk(func(q, at int, e event) bool {
		done := false
		if !from[q].has(q) {
			from[q].add(q)
			done = add(q, q)
		}
		if e.send {
			r.carry(e.message, &from[q])
			return false // what a send adds to nobody's knowledge is no end
		}
		before := knows[q]
		from[q].join(r.come(e.message), func(o int) { done = add(q, o) || done })
		if knows[q] == n && before < n && (g == allToAll || q == rank) {
			out.upTo[q] = at + 1
		}
		return done || r.room.over()
	})
	ok = ok && !r.room.over()
	if ok && g == oneToAll {
		r.learned(&out)
	}
	return out, ok
}

// learned finds where each rank first got something from the one that all have got something from.
func (r *replay) learned(out *reached) {
	has := make([]bool, len(r.ranks))
	has[out.rank] = true
	missing := len(r.ranks) - 1
	if r.carries == nil {
		r.carries = make([]int32, len(r.sends))
	}
	r.walk(func(q, at int, e event) bool {
		switch {
		case e.send:
			if has[q] {
				r.carries[e.message] = r.walks
			}
		case r.carries[e.message] == r.walks && !has[q]:
			has[q] = true
			out.upTo[q] = at + 1
			missing--
		}
		return missing == 0
	})
}

// past is the causal past of a goal: how many of each rank's events it has, and the messages that are sent in it.
func (r *replay) past(upTo []int) (frontier []int, messages []int32) {
	frontier = slices.Clone(r.begin)
	var todo []place
	for rank, at := range upTo {
		todo = append(todo, place{rank, at})
	}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for at := frontier[p.rank]; at < p.at; at++ {
			e := r.events[p.rank][at]
			switch {
			case r.gone[e.message]:
			case e.send:
				messages = append(messages, e.message)
			default:
				s := r.sends[e.message]
				todo = append(todo, place{s.rank, s.at + 1})
			}
		}
		frontier[p.rank] = max(frontier[p.rank], p.at)
	}
	slices.Sort(messages)
	return frontier, messages
}

// drop takes an instance's messages out of the replay, which then goes on behind it.
func (r *replay) drop(frontier []int, messages []int32) {
	for _, m := range messages {
		r.gone[m] = true
	}
	copy(r.begin, frontier)
}

// reaches are, by rank, the ranks that its messages have reached at the end of a backward replay of all that is left, as in figure 4
// of the paper; each is a member of its own.
func (r *replay) reaches(messages []int32) []rankSet {
	b := r.backward(messages)
	n := len(r.ranks)
	sets := make([]rankSet, n)
	for q := range sets {
		sets[q] = newRankSet(n, r.room)
		sets[q].add(q)
	}
	b.walk(func(q, _ int, e event) bool {
		if e.send {
			b.carry(e.message, &sets[q])
			return false
		}
		sets[q].join(b.come(e.message), nil)
		return false
	})
	return sets
}

// owners are the ranks that send one of the messages before they receive one: they have the payload from elsewhere.
func (r *replay) owners(messages []int32) []int {
	first := make([]event, len(r.ranks))
	seen := make([]bool, len(r.ranks))
	see := func(p place, e event) {
		if !seen[p.rank] || p.at < r.at(first[p.rank]) {
			first[p.rank], seen[p.rank] = e, true
		}
	}
	for _, m := range messages {
		see(r.sends[m], event{m, true})
		see(r.recvs[m], event{m, false})
	}
	var owners []int
	for rank, e := range first {
		if seen[rank] && e.send {
			owners = append(owners, rank)
		}
	}
	return owners
}

// at is where an event is in its rank's order.
func (r *replay) at(e event) int {
	if e.send {
		return r.sends[e.message].at
	}
	return r.recvs[e.message].at
}
