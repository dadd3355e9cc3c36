package spread

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/rankset"
)

// replay re-enacts messages of one payload, forward or backward, without using clocks: events of a rank are in the
// rank's own order (a send where it was posted, a receive where it completed), and each send precedes its receive.
type replay struct {
	ranks  []int32    // world ranks, sorted
	events [][]event  // by rank, in its order
	sends  []position // by message
	recvs  []position
	gone   []bool // messages taken by earlier instances
	start  []int  // by rank: earlier events belong to earlier instances

	walks   int32   // number of walks so far
	sent    []int32 // by message: the walk in which it is on its way
	carries []int32 // by message: the walk in which it carries what is looked for
	carried []rankset.Set
	spare   []rankset.Set // freed by received messages
	room    *rankset.Room // for all sets
}

// event is one end of a message.
type event struct {
	message int32 // index into the replayed messages
	send    bool
}

// position is the place of an event.
type position struct{ rank, index int }

// newReplay returns a replay of the messages in a list.
func newReplay(all []ledger.Message, list []int32, room *rankset.Room) *replay {
	numbers := newNumbering(all, list)
	r := blankReplay(numbers.ranks, len(list), room)
	ends := make([]int, len(r.ranks)+1)
	for i, m := range list {
		src, dst := numbers.number(all[m].Src), numbers.number(all[m].Dst)
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
			timed[k] = timedEvent{all[list[e.message]].DoneSeq, e}
			if e.send {
				timed[k].seq = all[list[e.message]].SendSeq
			}
		}
		if !slices.IsSortedFunc(timed, compareTimed) {
			slices.SortFunc(timed, compareTimed)
			for k := range timed {
				events[k] = timed[k].event
			}
		}
		r.indexEvents(rank)
	}
	return r
}

// timedEvent is an event with its place in its rank's order.
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

// blankReplay returns an empty replay with room for this many messages.
func blankReplay(ranks []int32, messages int, room *rankset.Room) *replay {
	places := make([]position, 2*messages)
	return &replay{ranks: ranks, room: room, events: make([][]event, len(ranks)), sends: places[:messages:messages],
		recvs: places[messages:],
		gone:  make([]bool, messages), start: make([]int, len(ranks))}
}

// reserve allocates the events of each rank.
func (r *replay) reserve(events []int) {
	all := make([]event, 2*len(r.sends))
	for rank := range r.events {
		n := events[rank]
		r.events[rank], all = all[:0:n], all[n:]
	}
}

// indexEvents stores the positions of a rank's events.
func (r *replay) indexEvents(rank int) {
	for at, e := range r.events[rank] {
		if e.send {
			r.sends[e.message] = position{rank, at}
		} else {
			r.recvs[e.message] = position{rank, at}
		}
	}
}

// backward returns the reversed replay of some messages, in which senders receive. They are numbered by their index
// in the list.
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
	at := func(e event) int { return r.position(event{messages[e.message], !e.send}) }
	for rank, events := range b.events {
		slices.SortFunc(events, func(x, y event) int { return cmp.Compare(at(y), at(x)) })
		b.indexEvents(rank)
	}
	return b
}

// walk visits the events from start on, a few of each rank in turn so that no rank runs far ahead, until visit
// returns true or none are left. It reports whether visit stopped it.
func (r *replay) walk(visit func(rank, at int, e event) (stop bool)) bool {
	at := slices.Clone(r.start)
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

// send puts a message on its way with a set.
func (r *replay) send(message int32, set *rankset.Set) {
	if r.carried == nil {
		r.carried = make([]rankset.Set, len(r.sends))
	}
	own := &r.carried[message]
	if n := len(r.spare); own.Empty() && n > 0 {
		*own, r.spare = r.spare[n-1], r.spare[:n-1]
	}
	own.Assign(set)
}

// receive returns the set that a message carries, valid until another one is sent.
func (r *replay) receive(message int32) *rankset.Set {
	r.spare = append(r.spare, r.carried[message])
	r.carried[message] = rankset.Set{}
	return &r.spare[len(r.spare)-1]
}

// goal is the condition that ends a walk.
type goal int8

const (
	oneToAll goal = iota // all ranks got something from some rank, or from a given one
	allToOne             // a rank got something from all ranks
	allToAll             // all ranks got something from all ranks
)

// anyRank means no particular rank.
const anyRank = -1

// goalReached is the result of reaching a goal: the rank for which it was reached, and the events by which each rank
// did its part.
type goalReached struct {
	rank int
	upTo []int // by rank: the number of events up to the last one needed; 0: none
}

// reach replays until the goal is reached, tracking the set of ranks from which each rank got something. rank is the
// goal's rank, or anyRank.
func (r *replay) reach(g goal, rank int) (goalReached, bool) {
	n := len(r.ranks)
	if r.room.Reset(); r.room.Exhausted() {
		return goalReached{}, false
	}
	from := make([]rankset.Set, n)
	for q := range from {
		from[q] = rankset.New(n, r.room)
	}
	know := make([]int, n) // by rank: the number of ranks that got something from it
	knows := make([]int, n)
	full := 0
	out := goalReached{rank: rank, upTo: make([]int, n)}
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
		if !from[q].Has(q) {
			from[q].Add(q)
			done = add(q, q)
		}
		if e.send {
			r.send(e.message, &from[q])
			return false // a send that spreads nothing new does not end a walk
		}
		before := knows[q]
		from[q].Join(r.receive(e.message), func(o int) { done = add(q, o) || done })
		if knows[q] == n && before < n && (g == allToAll || q == rank) {
			out.upTo[q] = at + 1
		}
		return done || r.room.Exhausted()
	})
	ok = ok && !r.room.Exhausted()
	if ok && g == oneToAll {
		r.firstReceipts(&out)
	}
	return out, ok
}

// firstReceipts finds where each rank first got something from the rank whose payload reached all.
func (r *replay) firstReceipts(out *goalReached) {
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

// causalPast returns the causal past of a goal: the number of events of each rank in it, and the messages sent in it.
func (r *replay) causalPast(upTo []int) (frontier []int, messages []int32) {
	frontier = slices.Clone(r.start)
	var todo []position
	for rank, at := range upTo {
		todo = append(todo, position{rank, at})
	}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for at := frontier[p.rank]; at < p.index; at++ {
			e := r.events[p.rank][at]
			switch {
			case r.gone[e.message]:
			case e.send:
				messages = append(messages, e.message)
			default:
				s := r.sends[e.message]
				todo = append(todo, position{s.rank, s.index + 1})
			}
		}
		frontier[p.rank] = max(frontier[p.rank], p.index)
	}
	slices.Sort(messages)
	return frontier, messages
}

// drop removes an instance's messages from the replay, which then continues after it.
func (r *replay) drop(frontier []int, messages []int32) {
	for _, m := range messages {
		r.gone[m] = true
	}
	copy(r.start, frontier)
}

// receivers returns, for each rank, the ranks that its messages reach, by a backward replay of all that is left, as
// in Figure 4 of the paper; each rank reaches itself.
func (r *replay) receivers(messages []int32) []rankset.Set {
	b := r.backward(messages)
	n := len(r.ranks)
	sets := make([]rankset.Set, n)
	for q := range sets {
		sets[q] = rankset.New(n, r.room)
		sets[q].Add(q)
	}
	b.walk(func(q, _ int, e event) bool {
		if e.send {
			b.send(e.message, &sets[q])
			return false
		}
		sets[q].Join(b.receive(e.message), nil)
		return false
	})
	return sets
}

// owners returns the ranks that send one of the messages before they receive any: they have the payload from
// elsewhere.
func (r *replay) owners(messages []int32) []int {
	first := make([]event, len(r.ranks))
	seen := make([]bool, len(r.ranks))
	see := func(p position, e event) {
		if !seen[p.rank] || p.index < r.position(first[p.rank]) {
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

// position returns the index of an event in its rank's order.
func (r *replay) position(e event) int {
	if e.send {
		return r.sends[e.message].index
	}
	return r.recvs[e.message].index
}
