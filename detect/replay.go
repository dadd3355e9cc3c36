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
}

// event is an end of a message.
type event struct {
	message int32 // index into what is replayed
	send    bool
}

// place is where an event is.
type place struct{ rank, at int }

// newReplay makes a replay of messages: of all, by indexes into list.
func newReplay(all []message, list []int32) *replay {
	r := &replay{sends: make([]place, len(list)), recvs: make([]place, len(list)), gone: make([]bool, len(list))}
	index := map[int32]int{}
	for _, m := range list {
		index[all[m].src], index[all[m].dst] = 0, 0
	}
	for rank := range index {
		r.ranks = append(r.ranks, rank)
	}
	slices.Sort(r.ranks)
	for i, rank := range r.ranks {
		index[rank] = i
	}
	r.events, r.begin = make([][]event, len(r.ranks)), make([]int, len(r.ranks))
	for i, m := range list {
		src, dst := index[all[m].src], index[all[m].dst]
		r.events[src] = append(r.events[src], event{int32(i), true})
		r.events[dst] = append(r.events[dst], event{int32(i), false})
	}
	seq := func(e event) int64 {
		if e.send {
			return all[list[e.message]].sendSeq
		}
		return all[list[e.message]].doneSeq
	}
	for rank, events := range r.events {
		slices.SortStableFunc(events, func(a, b event) int {
			if c := cmp.Compare(seq(a), seq(b)); c != 0 || a.send == b.send {
				return c
			}
			if a.send { // what a call sends does not depend on what it receives
				return -1
			}
			return 1
		})
		r.number(rank)
	}
	return r
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
	b := &replay{ranks: r.ranks, events: make([][]event, len(r.ranks)), sends: make([]place, len(messages)), recvs: make([]place, len(messages)),
		gone: make([]bool, len(messages)), begin: make([]int, len(r.ranks))}
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
	sent := map[int32]bool{}
	for moved := true; moved; {
		moved = false
		for rank := range at {
			for range r.ranks {
				if at[rank] == len(r.events[rank]) {
					break
				}
				e := r.events[rank][at[rank]]
				gone := r.gone[e.message]
				if !gone && !e.send && !sent[e.message] {
					break
				}
				at[rank]++
				moved = true
				if gone {
					continue
				}
				if e.send {
					sent[e.message] = true
				} else {
					delete(sent, e.message)
				}
				if visit(rank, at[rank]-1, e) {
					return true
				}
			}
		}
	}
	return false
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
	from := make([]bitset, n)
	for q := range from {
		from[q] = newBitset(n)
	}
	know := make([]int, n) // how many ranks have got something from it
	knows := make([]int, n)
	full := 0
	out := reached{rank: rank, upTo: make([]int, n)}
	carried := map[int32]bitset{}
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
			carried[e.message] = slices.Clone(from[q])
			return false // what a send adds to nobody's knowledge is no end
		}
		before := knows[q]
		from[q].join(carried[e.message], func(o int) { done = add(q, o) || done })
		delete(carried, e.message)
		if knows[q] == n && before < n && (g == allToAll || q == rank) {
			out.upTo[q] = at + 1
		}
		return done
	})
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
	carries := map[int32]bool{}
	r.walk(func(q, at int, e event) bool {
		switch {
		case e.send:
			carries[e.message] = has[q]
		case carries[e.message] && !has[q]:
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
func (r *replay) reaches(messages []int32) []bitset {
	b := r.backward(messages)
	n := len(r.ranks)
	sets := make([]bitset, n)
	for q := range sets {
		sets[q] = newBitset(n)
		sets[q].add(q)
	}
	carried := map[int32]bitset{}
	b.walk(func(q, _ int, e event) bool {
		if e.send {
			carried[e.message] = slices.Clone(sets[q])
			return false
		}
		sets[q].join(carried[e.message], func(int) {})
		delete(carried, e.message)
		return false
	})
	return sets
}

// owners are the ranks that send one of the messages before they receive one: they have the payload from elsewhere.
func (r *replay) owners(messages []int32) []int {
	first := map[int]event{}
	see := func(p place, e event) {
		old, ok := first[p.rank]
		if !ok || p.at < r.at(old) {
			first[p.rank] = e
		}
	}
	for _, m := range messages {
		see(r.sends[m], event{m, true})
		see(r.recvs[m], event{m, false})
	}
	var owners []int
	for rank, e := range first {
		if e.send {
			owners = append(owners, rank)
		}
	}
	slices.Sort(owners)
	return owners
}

// at is where an event is in its rank's order.
func (r *replay) at(e event) int {
	if e.send {
		return r.sends[e.message].at
	}
	return r.recvs[e.message].at
}
