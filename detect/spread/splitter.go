package spread

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
)

// splitter divides the messages of one payload on connected ranks into instances.
type splitter struct {
	finder     *finder
	list       []int32
	blank      bool // the payload
	replay     *replay
	found      []*ledger.Instance
	firstSends []event      // by instance: the root's first send
	ways       []ledger.Way // those of the last instance, sorted, without redundant messages
}

// markOversized marks messages whose search ended because their sets take too much room.
func (s *splitter) markOversized() {
	if s.replay.room.Exhausted() {
		for _, m := range s.list {
			s.finder.messages[m].Oversized = !s.finder.messages[m].Taken
		}
	}
}

// wasteful reports that too many messages of the instances are redundant, which shows that the payload is also sent
// for other reasons. In the last scope this applies only to blank payloads and to messages that repeat a way within
// an instance.
func (s *splitter) wasteful(last bool) bool {
	messages, ways, needed := 0, 0, len(s.found)*(len(s.replay.ranks)-1)
	for _, i := range s.found {
		messages += len(i.Messages)
		different := map[ledger.Way]bool{}
		for _, m := range i.Messages {
			different[ledger.Way{Src: s.finder.messages[m].Src, Dst: s.finder.messages[m].Dst}] = true
		}
		ways += len(different)
	}
	return !last && messages > 2*needed || s.blank && 2*messages > 3*needed || 2*messages > 3*ways
}

// broadcast finds the earliest broadcast to all ranks in what is left.
func (s *splitter) broadcast() (root int, messages []int32, frontier []int, ok bool) {
	out, ok := s.replay.reach(oneToAll, anyRank)
	if !ok {
		return
	}
	frontier, messages = s.replay.causalPast(out.upTo)
	owners := s.replay.owners(messages)
	if len(owners) != 1 && 2*len(owners) >= len(s.replay.ranks) {
		return 0, nil, nil, false // all ranks already have it: nothing spreads
	}
	if slices.Contains(owners, out.rank) {
		return out.rank, messages, frontier, true
	}
	for _, owner := range owners {
		if out, ok = s.replay.reach(oneToAll, owner); ok {
			frontier, messages = s.replay.causalPast(out.upTo)
			return owner, messages, frontier, true
		}
	}
	return 0, nil, nil, false
}

// continuesLast reports that these messages begin by repeating the ways of the last instance, and adds what comes
// before that to the last instance: the way home of a token is not a broadcast from another root.
func (s *splitter) continuesLast(messages []int32) bool {
	if len(s.found) == 0 {
		return false
	}
	begun := s.firstSends[len(s.firstSends)-1]
	start := s.replay.sends[begun.message]
	like := &s.finder.messages[s.list[begun.message]]
	upTo := make([]int, len(s.replay.ranks))
	copy(upTo, s.replay.start)
	for _, m := range messages {
		if c := &s.finder.messages[s.list[m]]; c.Src != like.Src || c.Dst != like.Dst || c.SendSite != like.SendSite {
			continue
		}
		at := s.replay.sends[m].index
		if old := upTo[start.rank]; old == s.replay.start[start.rank] || at < old {
			upTo[start.rank] = at
		}
	}
	if upTo[start.rank] == s.replay.start[start.rank] {
		return false
	}
	frontier, before := s.replay.causalPast(upTo)
	if len(before) == 0 || slices.ContainsFunc(before,
		func(m int32) bool { return slices.Contains(s.ways, s.way(m)) }) {
		return false
	}
	begin := slices.Clone(s.replay.start)
	s.replay.drop(frontier, before)
	if _, next, _, ok := s.broadcast(); !ok || !slices.Equal(s.waysOf(next), s.ways) {
		for _, m := range before {
			s.replay.gone[m] = false
		}
		copy(s.replay.start, begin)
		return false
	}
	last := s.found[len(s.found)-1]
	last.Messages = append(last.Messages, s.global(before)...)
	return true
}

// trim removes from an instance what was sent before its broadcast began.
func (s *splitter) trim(messages *[]int32, root int) (early []int32) {
	b := s.replay.backward(*messages)
	out, ok := b.reach(allToOne, root)
	if !ok {
		return nil
	}
	_, kept := b.causalPast(out.upTo)
	for i, m := range *messages {
		if _, needed := slices.BinarySearch(kept, int32(i)); !needed {
			early = append(early, m)
		}
	}
	if len(early) == 0 {
		return nil
	}
	*messages = slices.DeleteFunc(*messages, func(m int32) bool { return slices.Contains(early, m) })
	return early
}

// pick returns the elements at the given indexes.
func pick(messages, places []int32) []int32 {
	out := make([]int32, len(places))
	for i, p := range places {
		out[i] = messages[p]
	}
	return out
}

// global converts indexes of the replay's messages to the ledger's.
func (s *splitter) global(messages []int32) []int32 {
	return pick(s.list, messages)
}

// addInstance adds an instance.
func (s *splitter) addInstance(root int, messages []int32) {
	var first, last event
	for i, found := 0, false; i < len(messages); i++ {
		p := s.replay.sends[messages[i]]
		if p.rank != root {
			continue
		}
		e := event{messages[i], true}
		if !found || p.index < s.replay.position(first) {
			first = e
		}
		if !found || p.index > s.replay.position(last) {
			last = e
		}
		found = true
	}
	begun := &s.finder.messages[s.list[first.message]]
	s.ways = s.waysOf(messages)
	s.firstSends = append(s.firstSends, first)
	s.found = append(s.found, &ledger.Instance{Op: ledger.Bcast, Root: s.replay.ranks[root], Ranks: s.replay.ranks,
		Messages: s.global(messages),
		Bytes:    begun.Bytes, Segments: 1, Repeated: len(s.found) > 0, First: begun.SendSeq,
		Last: s.finder.messages[s.list[last.message]].SendSeq, Buffer: begun.Buffer})
}

// absorb adds redundant messages that are sent at the call sites of the last instance to it, and returns the others.
func (s *splitter) absorb(messages []int32) (others []int32) {
	if len(messages) == 0 {
		return nil
	}
	last, sites := s.found[len(s.found)-1], s.sites()
	for _, m := range messages {
		if sites[s.finder.messages[s.list[m]].SendSite] {
			last.Messages = append(last.Messages, s.list[m])
		} else {
			others = append(others, m)
		}
	}
	return others
}

// sites returns the call sites that send the last instance.
func (s *splitter) sites() map[int32]bool {
	sites := map[int32]bool{}
	for _, m := range s.found[len(s.found)-1].Messages {
		sites[s.finder.messages[m].SendSite] = true
	}
	return sites
}

// finish determines the possible roots of the instances and takes their messages.
func (s *splitter) finish() {
	index := map[int32]int32{}
	for i, m := range s.list {
		index[m] = int32(i)
	}
	var all []int32
	for _, i := range s.found {
		for _, m := range i.Messages {
			all = append(all, index[m])
		}
	}
	var possible []int32
	for rank, set := range s.replay.receivers(all) {
		if set.Len() == len(s.replay.ranks) {
			possible = append(possible, s.replay.ranks[rank])
		}
	}
	for _, i := range s.found {
		i.Possible, i.Blank = possible, s.blank
		s.finder.take(i)
	}
}

// splitRest looks for broadcasts among the messages independent of those found.
func (s *splitter) splitRest(messages []int32, last bool) (rest []int32) {
	list := s.global(messages)
	slices.Sort(list)
	for _, c := range connected(s.finder.messages, list) {
		rest = append(rest, s.finder.broadcasts(c, last)...)
	}
	return rest
}

// absorbSpare adds messages between two ranks that no barrier needs to the barrier before them and returns the
// others: the end of a token's second lap tells nobody anything.
func (s *splitter) absorbSpare(messages []int32) (rest []int32) {
	for _, c := range connected(s.finder.messages, messages) {
		ranks := map[int32]bool{}
		for _, m := range c {
			ranks[s.finder.messages[m].Src], ranks[s.finder.messages[m].Dst] = true, true
		}
		if len(ranks) >= s.finder.rules.MinRanks || !s.sites()[s.finder.messages[c[0]].SendSite] {
			rest = append(rest, c...)
			continue
		}
		for _, m := range c {
			before := s.found[0]
			for _, i := range s.found {
				if i.Messages[0] < m {
					before = i
				}
			}
			before.Messages = append(before.Messages, m)
			s.finder.messages[m].Taken = true
		}
	}
	return rest
}

// isBarrier reports whether messages by which every rank hears of every other form one barrier: no way is used twice,
// unless one rank begins and all others wait for it (a token that goes around twice). What neighbours tell each other
// step by step is not a barrier.
func (s *splitter) isBarrier(messages []int32) bool {
	ways := map[ledger.Way]bool{}
	twice := false
	for _, m := range messages {
		w := s.way(m)
		twice = twice || ways[w]
		ways[w] = true
	}
	return !twice || len(s.replay.owners(messages)) == 1
}

// waysOf returns the ways of messages, sorted.
func (s *splitter) waysOf(messages []int32) []ledger.Way {
	out := make([]ledger.Way, len(messages))
	for i, m := range messages {
		out[i] = s.way(m)
	}
	slices.SortFunc(out, func(a, b ledger.Way) int { return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst)) })
	return out
}

func (s *splitter) way(m int32) ledger.Way {
	return ledger.Way{Src: s.finder.messages[s.list[m]].Src, Dst: s.finder.messages[s.list[m]].Dst}
}

// pairwise reports whether there is one message from every rank to every other.
func (s *splitter) pairwise(messages []int32) bool {
	n := len(s.replay.ranks)
	return len(messages) == n*(n-1) && len(slices.Compact(s.waysOf(messages))) == len(messages)
}

// completePairwise extends a barrier by the messages that follow if together every rank then sends to every other
// once: all ranks had heard of all others before the last messages.
func (s *splitter) completePairwise(messages []int32) []int32 {
	n := len(s.replay.ranks)
	ways := map[ledger.Way]bool{}
	for _, m := range messages {
		ways[s.way(m)] = true
	}
	if len(ways) != len(messages) || len(messages) >= n*(n-1) {
		return messages
	}
	more, upTo := s.following(ways)
	if len(messages)+len(more) != n*(n-1) {
		return messages
	}
	frontier, _ := s.replay.causalPast(upTo)
	s.replay.drop(frontier, more)
	return append(messages, more...)
}

// following returns the next messages that go other ways, as far as each rank's order allows.
func (s *splitter) following(ways map[ledger.Way]bool) (messages []int32, upTo []int) {
	upTo = slices.Clone(s.replay.start)
	stopped := make([]bool, len(s.replay.ranks))
	going := len(stopped)
	in := map[int32]bool{}
	s.replay.walk(func(rank, at int, e event) bool {
		switch {
		case stopped[rank]:
		case e.send && ways[s.way(e.message)], !e.send && !in[e.message]:
			stopped[rank] = true
			going--
		default:
			if e.send {
				ways[s.way(e.message)] = true
				in[e.message] = true
				messages = append(messages, e.message)
			}
			upTo[rank] = at + 1
		}
		return going == 0
	})
	slices.Sort(messages)
	return messages, upTo
}
