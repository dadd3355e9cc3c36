package detect

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/commq/commq/schema"
)

// payload is what messages of one content have in common.
type payload struct {
	hash, bytes int64
	datatype    int32 // where it is a named one, and there are others: the datatypes must agree
}

// payloads are the messages of each payload, in the order of their first messages.
func (d *detector) payloads() [][]int32 {
	byContent := split(d.messages, d.all(), func(m *message) payload { return payload{m.hash, m.bytes, 0} })
	var out [][]int32
	for _, list := range byContent {
		only := d.onlyNamed(list)
		out = append(out, split(d.messages, list, func(m *message) int32 { return d.elements(m, only) })...)
	}
	return out
}

// onlyNamed is the only named datatype of messages; null where there are none or several.
func (d *detector) onlyNamed(list []int32) int32 {
	only := schema.NullInt32
	for _, i := range list {
		if t := d.messages[i].datatype; d.named[t] && t != only {
			if only != schema.NullInt32 {
				return schema.NullInt32
			}
			only = t
		}
	}
	return only
}

// elements is the named datatype of a message; a derived one agrees with the only named one that there is.
func (d *detector) elements(m *message, only int32) int32 {
	switch {
	case m.bytes == 0:
		return 0
	case d.named[m.datatype]:
		return m.datatype
	}
	return only
}

// all are the messages that no instance has taken.
func (d *detector) all() []int32 {
	var list []int32
	for i := range d.messages {
		if !d.messages[i].taken {
			list = append(list, int32(i))
		}
	}
	return list
}

// split splits messages by a key, in the order of first messages.
func split[K comparable](messages []message, list []int32, key func(*message) K) (out [][]int32) {
	same := 0 // so many from the first on have one key: often all do
	for same < len(list) && key(&messages[list[same]]) == key(&messages[list[0]]) {
		same++
	}
	if same == 0 {
		return nil
	}
	out = append(out, list[:same:same])
	if same == len(list) {
		return out
	}
	last, at := key(&messages[list[0]]), 0
	index := map[K]int{last: 0}
	for _, i := range list[same:] {
		if k := key(&messages[i]); k != last {
			known := false
			if at, known = index[k]; !known {
				at = len(out)
				index[k] = at
				out = append(out, nil)
			}
			last = k
		}
		out[at] = append(out[at], i)
	}
	return out
}

// connected splits messages by what their ranks are connected by: independent communications are no collective.
func (d *detector) connected(list []int32) [][]int32 {
	if len(list) == 0 {
		return nil
	}
	n := newNumbers(d.messages, list)
	c := newNumberedCircles(len(n.ranks))
	for _, i := range list {
		c.join(n.of(d.messages[i].src), n.of(d.messages[i].dst))
	}
	return split(d.messages, list, func(m *message) int32 { return c.of(n.of(m.src)) })
}

// scope is what messages of one payload have in common that are looked at together.
type scope [3]int32

// scopes are what messages of one payload are looked at together by, the widest first. Where a payload is sent about for several
// reasons (a constant one is), communicators, tags and call sites tell them apart.
var scopes = []func(*message) scope{
	func(*message) scope { return scope{} },
	func(m *message) scope { return scope{m.comm} },
	func(m *message) scope { return scope{m.comm, m.tag} },
	func(m *message) scope { return scope{m.comm, m.tag, m.sendSite} },
}

// spreads finds barriers and broadcasts. A message that carries several payloads is looked at as what it is first, and in pieces where it
// is part of no broadcast so.
func (d *detector) spreads() {
	if len(d.pieces) > 0 {
		d.spreadWholes()
		d.divide()
	}
	d.spreadAll()
}

// spreadWholes looks at payloads of messages that carry several, as what they are.
func (d *detector) spreadWholes() {
	d.apart(d.payloads(), func(d *detector, list []int32) {
		if slices.ContainsFunc(list, func(m int32) bool { return d.pieces[m] != nil }) {
			d.scoped(list, scopes, d.broadcasts)
		}
	})
}

// spreadAll looks at all payloads of messages that nothing has taken.
func (d *detector) spreadAll() {
	d.apart(d.payloads(), func(d *detector, list []int32) {
		if d.messages[list[0]].bytes > mostToken && d.star(list) {
			return
		}
		if d.messages[list[0]].bytes != 0 {
			if tokens, others := d.tokens(list); len(tokens) > 0 {
				list = d.scoped(tokens, scopes[3:], func(list []int32, _ bool) []int32 { return d.barriers(list) })
				list = append(list, others...)
				slices.Sort(list)
			}
			d.scoped(list, scopes, d.broadcasts)
			return
		}
		narrowest := slices.Clone(scopes[1:]) // a barrier needs no more than what is sent at one place, where that is one
		slices.Reverse(narrowest)
		list = d.scoped(list, narrowest, func(list []int32, _ bool) []int32 { return d.barriers(list) })
		d.scoped(list, scopes[1:], d.broadcasts)
	})
}

// countBeyond counts the messages that could not be looked at to the end.
func (d *detector) countBeyond() {
	for i := range d.messages {
		if m := &d.messages[i]; m.beyond {
			m.beyond = false
			d.result.LeftOut++
			d.result.NoRoom++
		}
	}
}

// star takes the messages of a payload that one rank sends to each of some others once, and says whether they are that. It is the broadcast that
// scoped and broadcasts would find of them, without a replay.
func (d *detector) star(list []int32) bool {
	n, root := len(list)+1, d.messages[list[0]].src
	if n < d.options.MinRanks {
		return false
	}
	for _, m := range list {
		if d.messages[m].src != root {
			return false
		}
	}
	numbers := make([]int32, 2*n) // one piece of memory: there are millions
	ranks, messages, possible := numbers[:n:n], numbers[n:2*n-1:2*n-1], numbers[2*n-1:]
	for k, m := range list {
		ranks[k] = d.messages[m].dst
	}
	ranks[n-1], possible[0] = root, root
	slices.Sort(ranks)
	for k := range ranks[1:] {
		if ranks[k] == ranks[k+1] {
			return false
		}
	}
	copy(messages, list)
	first, last := &d.messages[list[0]], &d.messages[list[0]]
	for _, m := range list[1:] {
		if d.messages[m].sendSeq < first.sendSeq {
			first = &d.messages[m]
		}
		if d.messages[m].sendSeq > last.sendSeq {
			last = &d.messages[m]
		}
	}
	d.take(&instance{op: Bcast, root: root, ranks: ranks, possible: possible, messages: messages, bytes: first.bytes, segments: 1, blank: d.blank(first),
		first: first.sendSeq, last: last.sendSeq, buffer: first.buffer})
	return true
}

// mostToken is the size in bytes of the largest payload that may be there only because something must be sent. More may be a value: what goes round a ring
// is a broadcast then (the fifth of the micro-benchmarks of Calotoiu and others, Figure 6).
const mostToken = 1

// tokens are the messages of a payload that may as well be empty: small, and all that the calls that send them ever send.
func (d *detector) tokens(list []int32) (tokens, others []int32) {
	if m := &d.messages[list[0]]; m.bytes > mostToken {
		return nil, list
	}
	sent := map[spot]int64{}
	for _, m := range list {
		sent[d.messages[m].spot()]++
	}
	for _, m := range list {
		if s := d.messages[m].spot(); sent[s] == d.used[s] {
			tokens = append(tokens, m)
		} else {
			others = append(others, m)
		}
	}
	return tokens, others
}

// mostTogether is about how many messages one goroutine looks at before it asks for others.
const mostTogether = 1 << 10

// apart calls look with each list of messages, on all processors, and finds what is found in the order of the lists: which messages
// there are in others makes no difference to a list.
func (d *detector) apart(lists [][]int32, look func(d *detector, list []int32)) {
	var ends []int // of what is looked at together
	for k, n := 0, 0; k < len(lists); k++ {
		if n += len(lists[k]); n >= mostTogether || k == len(lists)-1 {
			ends, n = append(ends, k+1), 0
		}
	}
	found := make([][]*instance, len(ends))
	var next atomic.Int32
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(ends)) {
		all.Go(func() {
			for {
				k := int(next.Add(1)) - 1
				if k >= len(ends) || d.stopped() != nil { // who asks for what was found asks that too
					return
				}
				begin := 0
				if k > 0 {
					begin = ends[k-1]
				}
				own := *d // what it finds is its own
				own.found = nil
				for _, list := range lists[begin:ends[k]] {
					before := len(own.found)
					look(&own, list)
					for _, i := range own.found[before:] {
						i.list = list[0]
					}
				}
				found[k] = own.found
			}
		})
	}
	all.Wait()
	for _, list := range found {
		d.found = append(d.found, list...)
	}
}

// scoped looks in one scope after the other, and returns what is left.
func (d *detector) scoped(list []int32, scopes []func(*message) scope, look func(list []int32, last bool) []int32) []int32 {
	for k, scope := range scopes {
		var rest []int32
		for _, part := range split(d.messages, list, scope) {
			for _, c := range d.connected(part) {
				rest = append(rest, look(c, k == len(scopes)-1)...)
			}
		}
		slices.Sort(rest)
		list = rest
	}
	return list
}

// spread is the messages of one payload on connected ranks that are being cut into instances.
type spread struct {
	*detector
	list   []int32
	blank  bool // the payload
	replay *replay
	found  []*instance
	first  []event // of each instance: the root's first send
	ways   []way   // of the last instance, sorted, without what is redundant
}

// broadcasts cuts connected messages of one payload into broadcasts to all their ranks, and returns what is left. Where most of the
// messages would be redundant, the payload is sent about for other reasons too: the last scope alone takes it for a broadcast.
func (d *detector) broadcasts(list []int32, last bool) []int32 {
	s := &spread{detector: d, list: list, replay: d.newReplay(list)}
	if len(s.replay.ranks) < d.options.MinRanks {
		return list
	}
	var rest []int32
	for {
		root, messages, frontier, ok := s.broadcast()
		if !ok {
			break
		}
		if s.again(messages) {
			continue
		}
		early := s.trim(&messages, root)
		s.replay.drop(frontier, append(slices.Clone(messages), early...))
		s.note(root, messages)
		rest = append(rest, s.redundant(early)...)
	}
	s.noRoom()
	if len(s.found) == 0 {
		return list
	}
	var late []int32
	for m, gone := range s.replay.gone {
		if !gone {
			late = append(late, int32(m))
		}
	}
	rest = append(rest, s.redundant(late)...)
	s.blank = d.blank(&d.messages[s.list[0]])
	if s.wasteful(last) {
		return list
	}
	s.end()
	return s.others(rest, last)
}

// noRoom notes that messages could not be looked at to the end because sets of their ranks take too much.
func (s *spread) noRoom() {
	if s.replay.room.over() {
		for _, m := range s.list {
			s.messages[m].beyond = !s.messages[m].taken
		}
	}
}

// wasteful says that too many of the instances' messages are redundant: a payload that also goes about for other reasons shows so. In
// the last scope those of a blank payload are, and those that go the same way again within an instance.
func (s *spread) wasteful(last bool) bool {
	messages, ways, needed := 0, 0, len(s.found)*(len(s.replay.ranks)-1)
	for _, i := range s.found {
		messages += len(i.messages)
		different := map[way]bool{}
		for _, m := range i.messages {
			different[way{s.messages[m].src, s.messages[m].dst}] = true
		}
		ways += len(different)
	}
	return !last && messages > 2*needed || s.blank && 2*messages > 3*needed || 2*messages > 3*ways
}

// broadcast finds the earliest broadcast to all ranks in what is left.
func (s *spread) broadcast() (root int, messages []int32, frontier []int, ok bool) {
	out, ok := s.replay.reach(oneToAll, anyRank)
	if !ok {
		return
	}
	frontier, messages = s.replay.past(out.upTo)
	owners := s.replay.owners(messages)
	if len(owners) != 1 && 2*len(owners) >= len(s.replay.ranks) {
		return 0, nil, nil, false // they have it already: nothing spreads
	}
	if slices.Contains(owners, out.rank) {
		return out.rank, messages, frontier, true
	}
	for _, owner := range owners {
		if out, ok = s.replay.reach(oneToAll, owner); ok {
			frontier, messages = s.replay.past(out.upTo)
			return owner, messages, frontier, true
		}
	}
	return 0, nil, nil, false
}

// again says that the last instance begins again, in the same ways, among these messages, and gives what comes before to that
// instance: a token's way home is no broadcast of another root.
func (s *spread) again(messages []int32) bool {
	if len(s.found) == 0 {
		return false
	}
	begun := s.first[len(s.first)-1]
	start := s.replay.sends[begun.message]
	like := &s.messages[s.list[begun.message]]
	upTo := make([]int, len(s.replay.ranks))
	copy(upTo, s.replay.begin)
	for _, m := range messages {
		if c := &s.messages[s.list[m]]; c.src != like.src || c.dst != like.dst || c.sendSite != like.sendSite {
			continue
		}
		at := s.replay.sends[m].at
		if old := upTo[start.rank]; old == s.replay.begin[start.rank] || at < old {
			upTo[start.rank] = at
		}
	}
	if upTo[start.rank] == s.replay.begin[start.rank] {
		return false
	}
	frontier, before := s.replay.past(upTo)
	if len(before) == 0 || slices.ContainsFunc(before, func(m int32) bool { return slices.Contains(s.ways, s.way(m)) }) {
		return false
	}
	begin := slices.Clone(s.replay.begin)
	s.replay.drop(frontier, before)
	if _, next, _, ok := s.broadcast(); !ok || !slices.Equal(s.waysOf(next), s.ways) {
		for _, m := range before {
			s.replay.gone[m] = false
		}
		copy(s.replay.begin, begin)
		return false
	}
	last := s.found[len(s.found)-1]
	last.messages = append(last.messages, s.global(before)...)
	return true
}

// trim takes out of an instance what was sent before its broadcast began.
func (s *spread) trim(messages *[]int32, root int) (early []int32) {
	b := s.replay.backward(*messages)
	out, ok := b.reach(allToOne, root)
	if !ok {
		return nil
	}
	_, kept := b.past(out.upTo)
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

// pick is the messages at the places.
func pick(messages, places []int32) []int32 {
	out := make([]int32, len(places))
	for i, p := range places {
		out[i] = messages[p]
	}
	return out
}

// global turns indexes of the replay's messages into the detector's.
func (s *spread) global(messages []int32) []int32 {
	return pick(s.list, messages)
}

// note makes an instance.
func (s *spread) note(root int, messages []int32) {
	var first, last event
	for i, found := 0, false; i < len(messages); i++ {
		p := s.replay.sends[messages[i]]
		if p.rank != root {
			continue
		}
		e := event{messages[i], true}
		if !found || p.at < s.replay.at(first) {
			first = e
		}
		if !found || p.at > s.replay.at(last) {
			last = e
		}
		found = true
	}
	begun := &s.messages[s.list[first.message]]
	s.ways = s.waysOf(messages)
	s.first = append(s.first, first)
	s.found = append(s.found, &instance{op: Bcast, root: s.replay.ranks[root], ranks: s.replay.ranks, messages: s.global(messages),
		bytes: begun.bytes, segments: 1, repeat: len(s.found) > 0, first: begun.sendSeq, last: s.messages[s.list[last.message]].sendSeq, buffer: begun.buffer})
}

// redundant gives messages that an instance does without to the last one, where they are sent at its call sites, and returns the others.
func (s *spread) redundant(messages []int32) (others []int32) {
	if len(messages) == 0 {
		return nil
	}
	last, sites := s.found[len(s.found)-1], s.sites()
	for _, m := range messages {
		if sites[s.messages[s.list[m]].sendSite] {
			last.messages = append(last.messages, s.list[m])
		} else {
			others = append(others, m)
		}
	}
	return others
}

// sites are the call sites that send what the last instance is made of.
func (s *spread) sites() map[int32]bool {
	sites := map[int32]bool{}
	for _, m := range s.found[len(s.found)-1].messages {
		sites[s.messages[m].sendSite] = true
	}
	return sites
}

// end tells of the instances which ranks else could be their roots, and takes them.
func (s *spread) end() {
	index := map[int32]int32{}
	for i, m := range s.list {
		index[m] = int32(i)
	}
	var all []int32
	for _, i := range s.found {
		for _, m := range i.messages {
			all = append(all, index[m])
		}
	}
	var possible []int32
	for rank, set := range s.replay.reaches(all) {
		if set.len() == len(s.replay.ranks) {
			possible = append(possible, s.replay.ranks[rank])
		}
	}
	for _, i := range s.found {
		i.possible, i.blank = possible, s.blank
		s.take(i)
	}
}

// others looks for broadcasts among what has nothing to do with those that were found.
func (s *spread) others(messages []int32, last bool) (rest []int32) {
	list := s.global(messages)
	slices.Sort(list)
	for _, c := range s.connected(list) {
		rest = append(rest, s.broadcasts(c, last)...)
	}
	return rest
}

// barriers cuts connected empty messages into barriers of all their ranks, and returns what is left.
func (d *detector) barriers(list []int32) []int32 {
	s := &spread{detector: d, list: list, replay: d.newReplay(list)}
	if len(s.replay.ranks) < d.options.MinRanks {
		return list
	}
	for {
		out, ok := s.replay.reach(allToAll, anyRank)
		if !ok {
			break
		}
		frontier, messages := s.replay.past(out.upTo)
		s.replay.drop(frontier, messages)
		if all := s.exchanged(messages); s.pairwise(all) {
			messages = all
		} else {
			b := s.replay.backward(messages)
			if out, ok = b.reach(allToAll, anyRank); ok {
				_, needed := b.past(out.upTo)
				messages = pick(messages, needed)
			}
			messages = s.exchanged(messages)
		}
		if s.waits(messages) {
			i := &instance{op: Barrier, root: schema.NullInt32, ranks: s.replay.ranks, messages: s.global(messages), segments: 1}
			if d.messages[list[0]].bytes > 0 {
				i.of = &combined{certainty: Inferred}
			}
			s.found = append(s.found, i)
			s.take(i)
		}
	}
	s.noRoom()
	rest := slices.DeleteFunc(list, func(m int32) bool { return d.messages[m].taken })
	if len(s.found) == 0 {
		return rest
	}
	return s.spare(rest)
}

// spare gives messages between two ranks that no barrier needs to the one before them, and returns the others: the last of a token's
// second lap tells nobody anything.
func (s *spread) spare(messages []int32) (rest []int32) {
	for _, c := range s.connected(messages) {
		ranks := map[int32]bool{}
		for _, m := range c {
			ranks[s.messages[m].src], ranks[s.messages[m].dst] = true, true
		}
		if len(ranks) >= s.options.MinRanks || !s.sites()[s.messages[c[0]].sendSite] {
			rest = append(rest, c...)
			continue
		}
		for _, m := range c {
			before := s.found[0]
			for _, i := range s.found {
				if i.messages[0] < m {
					before = i
				}
			}
			before.messages = append(before.messages, m)
			s.messages[m].taken = true
		}
	}
	return rest
}

// waits says whether messages by which every rank hears of every other are one barrier: none goes the same way twice, unless one
// rank begins and all others wait for it (a token that goes round twice). What neighbours tell each other step by step is none.
func (s *spread) waits(messages []int32) bool {
	ways := map[way]bool{}
	twice := false
	for _, m := range messages {
		w := s.way(m)
		twice = twice || ways[w]
		ways[w] = true
	}
	return !twice || len(s.replay.owners(messages)) == 1
}

// way is a message's source and destination.
type way struct{ src, dst int32 }

// waysOf are the ways of messages, sorted.
func (s *spread) waysOf(messages []int32) []way {
	out := make([]way, len(messages))
	for i, m := range messages {
		out[i] = s.way(m)
	}
	slices.SortFunc(out, func(a, b way) int { return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst)) })
	return out
}

func (s *spread) way(m int32) way {
	return way{s.messages[s.list[m]].src, s.messages[s.list[m]].dst}
}

// pairwise says whether messages are one from every rank to every other.
func (s *spread) pairwise(messages []int32) bool {
	n := len(s.replay.ranks)
	return len(messages) == n*(n-1) && len(slices.Compact(s.waysOf(messages))) == len(messages)
}

// exchanged adds to the messages of a barrier those that follow, where together every rank sends to every other once: all had
// heard of all by others before the last of them.
func (s *spread) exchanged(messages []int32) []int32 {
	n := len(s.replay.ranks)
	ways := map[way]bool{}
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
	frontier, _ := s.replay.past(upTo)
	s.replay.drop(frontier, more)
	return append(messages, more...)
}

// following are the next messages that go other ways, as far as each rank's order allows.
func (s *spread) following(ways map[way]bool) (messages []int32, upTo []int) {
	upTo = slices.Clone(s.replay.begin)
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
