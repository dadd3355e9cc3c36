package spread

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/rankset"
	"github.com/commq/commq/schema"
)

// finder finds spreading operations among messages. Several finders may work on disjoint lists of the same messages
// in parallel.
type finder struct {
	rules    *ledger.Rules
	messages []ledger.Message
	pieces   map[int32][]ledger.Piece // of messages that carry several payloads
	found    []*ledger.Instance
}

func (f *finder) take(i *ledger.Instance) {
	ledger.Take(f.messages, i)
	f.found = append(f.found, i)
}

// payloads groups the messages by payload, in the order of first messages.
func (f *finder) payloads() [][]int32 {
	byContent := split(f.messages, ledger.Untaken(f.messages), func(m *ledger.Message) ledger.Payload {
		return ledger.Payload{Hash: m.Hash, Bytes: m.Bytes, Datatype: 0}
	})
	var out [][]int32
	for _, list := range byContent {
		only := f.rules.OnlyNamedType(f.messages, list)
		out = append(out, split(f.messages, list, func(m *ledger.Message) int32 { return f.rules.ElementType(m, only) })...)
	}
	return out
}

// split splits messages by a key, in the order of first messages.
func split[K comparable](messages []ledger.Message, list []int32, key func(*ledger.Message) K) (out [][]int32) {
	same := 0 // length of the prefix with one key: often everything
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

// connected splits messages into connected sets of ranks: independent communication is not a collective.
func connected(messages []ledger.Message, list []int32) [][]int32 {
	if len(list) == 0 {
		return nil
	}
	n := newNumbering(messages, list)
	c := rankset.NewNumberedGroups(len(n.ranks))
	for _, i := range list {
		c.Join(n.number(messages[i].Src), n.number(messages[i].Dst))
	}
	return split(messages, list, func(m *ledger.Message) int32 { return c.Root(n.number(m.Src)) })
}

// scope is a grouping key for messages of one payload.
type scope [3]int32

// scopes are grouping keys, widest first. If a payload is sent for several reasons (a constant is), communicators,
// tags and call sites separate them.
var scopes = []func(*ledger.Message) scope{
	func(*ledger.Message) scope { return scope{} },
	func(m *ledger.Message) scope { return scope{m.Comm} },
	func(m *ledger.Message) scope { return scope{m.Comm, m.Tag} },
	func(m *ledger.Message) scope { return scope{m.Comm, m.Tag, m.SendSite} },
}

// All finds barriers and broadcasts among the messages of a ledger. A message that carries several payloads is tried
// as a whole first, then in pieces.
func All(r *ledger.Rules, l *ledger.Ledger) {
	if len(l.Pieces) > 0 {
		SpreadWholes(r, l)
		l.Divide()
	}
	SpreadAll(r, l)
}

// SpreadWholes tries messages that carry several payloads as wholes.
func SpreadWholes(r *ledger.Rules, l *ledger.Ledger) {
	f := &finder{rules: r, messages: l.Messages, pieces: l.Pieces}
	l.Found = append(l.Found, f.inParallel(f.payloads(), func(f *finder, list []int32) {
		if slices.ContainsFunc(list, func(m int32) bool { return f.pieces[m] != nil }) {
			f.inScopes(list, scopes, f.broadcasts)
		}
	})...)
}

// SpreadAll tries all free messages.
func SpreadAll(r *ledger.Rules, l *ledger.Ledger) {
	f := &finder{rules: r, messages: l.Messages}
	l.Found = append(l.Found, f.inParallel(f.payloads(), func(f *finder, list []int32) {
		if f.messages[list[0]].Bytes > maxToken && f.takeStar(list) {
			return
		}
		if f.messages[list[0]].Bytes != 0 {
			if tokens, others := f.tokens(list); len(tokens) > 0 {
				list = f.inScopes(tokens, scopes[3:], func(list []int32, _ bool) []int32 { return f.barriers(list) })
				list = append(list, others...)
				slices.Sort(list)
			}
			f.inScopes(list, scopes, f.broadcasts)
			return
		}
		// an exchange of blocks of several sizes has empty ones, too
		list = slices.DeleteFunc(slices.Clone(list), func(m int32) bool { return f.rules.IsFilled(&f.messages[m]) })
		// for a barrier the place is enough, if there is only one
		narrowest := slices.Clone(scopes[1:])
		slices.Reverse(narrowest)
		list = f.inScopes(list, narrowest, func(list []int32, _ bool) []int32 { return f.barriers(list) })
		f.inScopes(list, scopes[1:], f.broadcasts)
	})...)
}

// takeStar takes the messages of a payload that one rank sends directly, once, to each of several others. This finds
// the same broadcast as the replay, but faster. It reports whether it did.
func (f *finder) takeStar(list []int32) bool {
	n, root := len(list)+1, f.messages[list[0]].Src
	if n < f.rules.MinRanks {
		return false
	}
	for _, m := range list {
		if f.messages[m].Src != root {
			return false
		}
	}
	numbers := make([]int32, 2*n) // one allocation: there are millions
	ranks, messages, possible := numbers[:n:n], numbers[n:2*n-1:2*n-1], numbers[2*n-1:]
	for k, m := range list {
		ranks[k] = f.messages[m].Dst
	}
	ranks[n-1], possible[0] = root, root
	slices.Sort(ranks)
	for k := range ranks[1:] {
		if ranks[k] == ranks[k+1] {
			return false
		}
	}
	copy(messages, list)
	first, last := &f.messages[list[0]], &f.messages[list[0]]
	for _, m := range list[1:] {
		if f.messages[m].SendSeq < first.SendSeq {
			first = &f.messages[m]
		}
		if f.messages[m].SendSeq > last.SendSeq {
			last = &f.messages[m]
		}
	}
	f.take(&ledger.Instance{Op: ledger.Bcast, Root: root, Ranks: ranks, Possible: possible, Messages: messages, Bytes: first.Bytes,
		Segments: 1, Blank: f.rules.Blank(first),
		First: first.SendSeq, Last: last.SendSeq, Buffer: first.Buffer})
	return true
}

// maxToken is the largest payload in bytes that may exist only because something must be sent. A larger one may be a
// value, so that one passed around a ring is a broadcast (the fifth micro-benchmark of Calotoiu and others, Figure
// 6).
const maxToken = 1

// tokens separates the messages whose payload might as well be empty: small, and the only payload that their calls
// ever send.
func (f *finder) tokens(list []int32) (tokens, others []int32) {
	if m := &f.messages[list[0]]; m.Bytes > maxToken {
		return nil, list
	}
	sent := map[ledger.Place]int64{}
	for _, m := range list {
		sent[f.messages[m].Place()]++
	}
	for _, m := range list {
		if s := f.messages[m].Place(); sent[s] == f.rules.Sent[s] {
			tokens = append(tokens, m)
		} else {
			others = append(others, m)
		}
	}
	return tokens, others
}

// minBatch is the approximate number of messages that a goroutine takes at a time.
const minBatch = 1 << 10

// inParallel calls look with each list of messages on all processors, and returns the findings in the order of the
// lists. The lists must be independent. A panic of one continues in the caller, which may catch it.
func (f *finder) inParallel(lists [][]int32, look func(f *finder, list []int32)) []*ledger.Instance {
	var ends []int // of the batches
	for k, n := 0, 0; k < len(lists); k++ {
		if n += len(lists[k]); n >= minBatch || k == len(lists)-1 {
			ends, n = append(ends, k+1), 0
		}
	}
	found := make([][]*ledger.Instance, len(ends))
	var next atomic.Int32
	var all sync.WaitGroup
	var panicked atomic.Value
	for range min(runtime.GOMAXPROCS(0), len(ends)) {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					panicked.Store(fmt.Sprintf("%v\n%s", p, debug.Stack()))
				}
			}()
			for {
				k := int(next.Add(1)) - 1
				if k >= len(ends) || f.rules.Stopped() != nil { // the caller checks Stopped too
					return
				}
				begin := 0
				if k > 0 {
					begin = ends[k-1]
				}
				own := finder{rules: f.rules, messages: f.messages, pieces: f.pieces}
				for _, list := range lists[begin:ends[k]] {
					before := len(own.found)
					look(&own, list)
					for _, i := range own.found[before:] {
						i.FirstListed = list[0]
					}
				}
				found[k] = own.found
			}
		})
	}
	all.Wait()
	if p := panicked.Load(); p != nil {
		panic(p)
	}
	return slices.Concat(found...)
}

// inScopes tries one scope after the other and returns the messages left.
func (f *finder) inScopes(list []int32, scopes []func(*ledger.Message) scope, look func(list []int32, last bool) []int32) []int32 {
	for k, scope := range scopes {
		var rest []int32
		for _, part := range split(f.messages, list, scope) {
			for _, c := range connected(f.messages, part) {
				rest = append(rest, look(c, k == len(scopes)-1)...)
			}
		}
		slices.Sort(rest)
		list = rest
	}
	return list
}

// broadcasts divides connected messages of one payload into broadcasts to all their ranks and returns the messages
// left. If most messages would be redundant, the payload is also sent for other reasons; then only the last scope
// accepts a broadcast.
func (f *finder) broadcasts(list []int32, last bool) []int32 {
	s := &splitter{finder: f, list: list, replay: newReplay(f.messages, list, f.rules.NewSetRoom())}
	if len(s.replay.ranks) < f.rules.MinRanks {
		return list
	}
	var rest []int32
	for {
		root, messages, frontier, ok := s.broadcast()
		if !ok {
			break
		}
		if s.continuesLast(messages) {
			continue
		}
		early := s.trim(&messages, root)
		s.replay.drop(frontier, append(slices.Clone(messages), early...))
		s.addInstance(root, messages)
		rest = append(rest, s.absorb(early)...)
	}
	s.markOversized()
	if len(s.found) == 0 {
		return list
	}
	var late []int32
	for m, gone := range s.replay.gone {
		if !gone {
			late = append(late, int32(m))
		}
	}
	rest = append(rest, s.absorb(late)...)
	s.blank = f.rules.Blank(&f.messages[s.list[0]])
	if s.wasteful(last) {
		return list
	}
	s.finish()
	return s.splitRest(rest, last)
}

// barriers divides connected empty messages into barriers of all their ranks and returns the messages left.
func (f *finder) barriers(list []int32) []int32 {
	s := &splitter{finder: f, list: list, replay: newReplay(f.messages, list, f.rules.NewSetRoom())}
	if len(s.replay.ranks) < f.rules.MinRanks {
		return list
	}
	for {
		out, ok := s.replay.reach(allToAll, anyRank)
		if !ok {
			break
		}
		frontier, messages := s.replay.causalPast(out.upTo)
		s.replay.drop(frontier, messages)
		if all := s.completePairwise(messages); s.pairwise(all) {
			messages = all
		} else {
			b := s.replay.backward(messages)
			if out, ok = b.reach(allToAll, anyRank); ok {
				_, needed := b.causalPast(out.upTo)
				messages = pick(messages, needed)
			}
			messages = s.completePairwise(messages)
		}
		if s.isBarrier(messages) {
			i := &ledger.Instance{Op: ledger.Barrier, Root: schema.NullInt32, Ranks: s.replay.ranks, Messages: s.global(messages),
				Segments: 1}
			if f.messages[list[0]].Bytes > 0 {
				i.Proof = &ledger.Proof{Basis: ledger.ByStructure}
			}
			s.found = append(s.found, i)
			s.finder.take(i)
		}
	}
	s.markOversized()
	rest := slices.DeleteFunc(list, func(m int32) bool { return f.messages[m].Taken })
	if len(s.found) == 0 {
		return rest
	}
	return s.absorbSpare(rest)
}

// numbering numbers the ranks of messages from 0 on, ascending.
type numbering struct {
	ranks []int32 // world ranks, sorted
	least int32
	table []int32         // by world rank, starting at least
	index map[int32]int32 // used if the table would be much larger than the number of messages
}

func newNumbering(all []ledger.Message, list []int32) *numbering {
	n := &numbering{}
	if len(list) == 0 {
		return n
	}
	least, most := all[list[0]].Src, all[list[0]].Src
	for _, m := range list {
		least, most = min(least, all[m].Src, all[m].Dst), max(most, all[m].Src, all[m].Dst)
	}
	n.least = least
	if span := int(most) - int(least) + 1; span <= 8*len(list)+64 {
		n.table = make([]int32, span)
		for _, m := range list {
			n.table[all[m].Src-least], n.table[all[m].Dst-least] = 1, 1
		}
		for i, used := range n.table {
			if used != 0 {
				n.table[i] = int32(len(n.ranks))
				n.ranks = append(n.ranks, least+int32(i))
			}
		}
		return n
	}
	n.index = map[int32]int32{}
	for _, m := range list {
		n.index[all[m].Src], n.index[all[m].Dst] = 0, 0
	}
	for rank := range n.index {
		n.ranks = append(n.ranks, rank)
	}
	slices.Sort(n.ranks)
	for i, rank := range n.ranks {
		n.index[rank] = int32(i)
	}
	return n
}

// number returns the number of a rank.
func (n *numbering) number(rank int32) int32 {
	if n.index != nil {
		return n.index[rank]
	}
	return n.table[rank-n.least]
}
