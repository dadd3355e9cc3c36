package combine

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/rankset"
	"github.com/commq/commq/schema"
)

// slicing is a reduction that leaves one block at each rank, by ring or recursive halving: each rank sends every
// block but its own exactly once, from its place in memory, and adds received blocks to its own.
type slicing struct {
	g     *group
	own   []int64 // by rank: bytes of the block that it ends with
	base  []int64 // by rank: address where its vector begins
	total int64   // bytes of the vector
}

// findReduceScatter searches for reductions that leave one block at each rank.
func findReduceScatter(f *facts, g *group, list []*occurrence) *match {
	n := len(g.ranks)
	if n < max(3, f.rules.MinRanks) || f.anyOwned(list) || f.check.kinds[g.cells[0].Cell.Datatype].class == opaque {
		return nil
	}
	for _, s := range slicings(f, g, list) {
		fits := true
		for _, o := range list {
			if fits = s.replay(o); !fits {
				break
			}
		}
		if !fits {
			continue
		}
		return s.match(list, s.passed(list))
	}
	return nil
}

// passing compares what ranks receive for a block with what they then send of it. Payloads that differ from each other
// and all go on unchanged are gathered, not combined.
type passing struct {
	combined bool // some of it differs, or no block is sent as it came
	allEqual bool // the payloads of each occurrence are equal
	inPlace  bool // all of it is sent from where it was received
}

func (s *slicing) passed(list []*occurrence) passing {
	type place struct {
		rank      int
		at, bytes int64
	}
	p, same := passing{allEqual: true, inPlace: true}, false
	for _, o := range list {
		received := map[place]*ledger.Operand{}
		o.walk(func(r int, e ledger.Event) bool {
			p.allEqual = p.allEqual && e.M.Hash == o.messages[0].Hash
			src, _ := slices.BinarySearch(s.g.ranks, e.M.Src)
			k := place{r, e.M.Buffer - s.base[src], e.M.Bytes}
			if !e.Send {
				received[k] = e.M
			} else if m := received[k]; m != nil {
				p.inPlace = p.inPlace && m.DstBuffer == e.M.Buffer
				same, p.combined = same || m.Hash == e.M.Hash, p.combined || m.Hash != e.M.Hash
			}
			return true
		})
	}
	p.combined = p.combined || !same
	return p
}

// match returns the match of the occurrences; nil if what they pass on shows that they combine nothing. If payloads are
// all equal, an allgather fits as well; it is the likelier one if ranks receive blocks where they send them from, since
// they would overwrite what they add.
func (s *slicing) match(list []*occurrence, passed passing) *match {
	b := &match{group: s.g, op: ledger.ReduceScatter, proof: ledger.Proof{Basis: ledger.ByStructure, Unseen: s.g.ranks}}
	bytes, blocks := s.total, s.own
	if slices.Min(s.own) == slices.Max(s.own) {
		b.op, blocks = ledger.ReduceScatterBlock, nil
	}
	switch {
	case passed.combined:
	case !passed.allEqual || blocks != nil:
		return nil
	case passed.inPlace:
		b.op, bytes, b.proof.Unseen = ledger.Allgather, s.own[0], nil
		b.proof.Others = []ledger.Operation{ledger.ReduceScatterBlock}
	default:
		b.proof.Others = []ledger.Operation{ledger.Allgather}
	}
	for _, o := range list {
		b.instances = append(b.instances,
			repetition{messages: o.messages, root: schema.NullInt32, bytes: bytes, rankBytes: blocks})
	}
	return b
}

// slicings returns the possible layouts of the blocks. All ranks together send ranks-1 vectors; the part of the
// vector that a rank never sends is its own block. A rank whose own block is the first sends as if its vector began
// with the second.
func slicings(f *facts, g *group, list []*occurrence) (out []*slicing) {
	n := len(g.ranks)
	low, high, sent := make([]int64, n), make([]int64, n), make([]int64, n)
	for r := range low {
		low[r] = 1<<63 - 1
	}
	total := int64(0)
	for _, o := range list {
		for _, m := range o.messages {
			r, _ := slices.BinarySearch(g.ranks, m.Src)
			if m.Buffer == schema.NullInt64 || m.Buffer < 0 {
				return nil
			}
			low[r], high[r] = min(low[r], m.Buffer), max(high[r], m.Buffer+m.Bytes)
			sent[r] += m.Bytes
			total += m.Bytes
		}
	}
	times := int64(len(list))
	if total%(times*int64(n-1)) != 0 {
		return nil
	}
	s := slicing{g: g, total: total / times / int64(n-1)}
	var ends []int
	for r := range n {
		own := s.total - sent[r]/times
		s.own = append(s.own, own)
		if sent[r]%times != 0 || own <= 0 {
			return nil
		}
		switch high[r] - low[r] {
		case s.total:
		case s.total - own:
			ends = append(ends, r)
		default:
			return nil
		}
	}
	if len(ends) != 2 {
		return nil
	}
	// Each rank needs a set for each block, and there are as many blocks as ranks.
	if room := f.rules.NewSetRoom(); int64(n)*int64(n)*int64(n/8+rankset.BytesOfSet) > f.rules.MemoryBytes {
		room.Runs = -1
		for _, o := range list {
			f.markOversized(room, o)
		}
		return nil
	}
	for _, first := range ends {
		x := s
		x.base = slices.Clone(low)
		x.base[first] -= x.own[first]
		out = append(out, &x)
	}
	return out
}

// maxCutsPerRank limits the number of places at which a vector is cut.
const maxCutsPerRank = 4

// cutsOf returns the offsets at which an occurrence cuts the vector, including both ends, ascending. It returns nil
// if there are too many or one is outside the vector.
func (s *slicing) cutsOf(o *occurrence) []int64 {
	cuts := []int64{0, s.total}
	for _, m := range o.messages {
		r, _ := slices.BinarySearch(s.g.ranks, m.Src)
		at := m.Buffer - s.base[r]
		if at < 0 || at+m.Bytes > s.total {
			return nil
		}
		cuts = append(cuts, at, at+m.Bytes)
	}
	slices.Sort(cuts)
	if cuts = slices.Compact(cuts); len(cuts) > maxCutsPerRank*len(s.g.ranks) {
		return nil
	}
	return cuts
}

// replay tracks the set of contributors of each block. Each block must end, complete, at exactly one rank.
func (s *slicing) replay(o *occurrence) bool {
	n := len(s.g.ranks)
	cuts := s.cutsOf(o)
	if cuts == nil {
		return false
	}
	blocks := len(cuts) - 1
	sets := make([][]rankset.Bits, n)
	sent := make([]rankset.Bits, n)
	for r := range sets {
		sent[r] = rankset.NewBits(blocks)
		for range blocks {
			b := rankset.NewBits(n)
			b.Add(r)
			sets[r] = append(sets[r], b)
		}
	}
	type slice struct {
		first int
		sets  []rankset.Bits
	}
	carried := make([]slice, len(o.messages))
	ok := o.walk(func(r int, e ledger.Event) bool {
		if e.Send {
			at := e.M.Buffer - s.base[r]
			from, _ := slices.BinarySearch(cuts, at)
			to, _ := slices.BinarySearch(cuts, at+e.M.Bytes)
			c := slice{first: from}
			for b := from; b < to; b++ {
				if sent[r].Has(b) {
					return false
				}
				sent[r].Add(b)
				c.sets = append(c.sets, slices.Clone(sets[r][b]))
			}
			carried[e.M.Index] = c
			return true
		}
		c := carried[e.M.Index]
		for k, set := range c.sets {
			b := c.first + k
			if sent[r].Has(b) || !sets[r][b].Disjoint(set) {
				return false
			}
			sets[r][b].Join(set, func(int) {})
		}
		return true
	})
	if !ok {
		return false
	}
	owned := rankset.NewBits(blocks)
	for r := range sets {
		own := int64(0)
		for b := range blocks {
			if sent[r].Has(b) {
				continue
			}
			if owned.Has(b) || sets[r][b].Len() != n {
				return false
			}
			owned.Add(b)
			own += cuts[b+1] - cuts[b]
		}
		if own != s.own[r] {
			return false
		}
	}
	return owned.Len() == blocks
}

// joinAllgathers joins a reduce-scatter with the allgather that follows it: together they are an allreduce.
func joinAllgathers(l *ledger.Ledger, b *match) {
	n := int64(len(b.group.ranks))
	var behind []*ledger.Instance
	for _, i := range l.Found {
		if i.Proof != nil || !slices.Equal(i.Ranks, b.group.ranks) {
			continue
		}
		if i.Op == ledger.Allgather && b.op == ledger.ReduceScatterBlock && i.Bytes*n == b.instances[0].bytes ||
			i.Op == ledger.Allgatherv && b.op == ledger.ReduceScatter && slices.Equal(i.RankBytes, b.instances[0].rankBytes) {
			behind = append(behind, i)
		}
	}
	slices.SortFunc(behind, func(x, y *ledger.Instance) int { return cmp.Compare(lastSend(l.Messages, x), lastSend(l.Messages, y)) })
	var after []*ledger.Instance
	for k, in := range b.instances {
		at := slices.IndexFunc(behind, func(i *ledger.Instance) bool { return follows(l.Messages, in.messages, i) })
		if at < 0 || k+1 < len(b.instances) &&
			lastSend(l.Messages, behind[at]) > firstSend(b.instances[k+1].messages, l.Messages[behind[at].Messages[0]].Src) {
			return
		}
		after = append(after, behind[at])
	}
	for k, i := range after {
		for _, m := range l.Carriers(i.Messages) {
			b.instances[k].messages = append(b.instances[k].messages, &ledger.Operand{Message: l.Messages[m]})
		}
	}
	b.op, b.proof.Others = ledger.Allreduce, nil
	for k := range b.instances {
		b.instances[k].rankBytes = nil
	}
}

// lastSend returns the last send of the first sender of an instance.
func lastSend(messages []ledger.Message, i *ledger.Instance) (last int64) {
	src := messages[i.Messages[0]].Src
	for _, m := range i.Messages {
		if m := &messages[m]; m.Src == src {
			last = max(last, m.SendSeq)
		}
	}
	return last
}

// firstSend returns the first send of a rank among messages.
func firstSend(messages []*ledger.Operand, src int32) int64 {
	first := int64(1<<63 - 1)
	for _, m := range messages {
		if m.Src == src {
			first = min(first, m.SendSeq)
		}
	}
	return first
}

// follows reports whether each rank sends its part of an instance after everything in before.
func follows(messages []ledger.Message, before []*ledger.Operand, i *ledger.Instance) bool {
	last := map[int32]int64{}
	for _, m := range before {
		last[m.Src] = max(last[m.Src], m.SendSeq)
		last[m.Dst] = max(last[m.Dst], m.DoneSeq)
	}
	for _, m := range i.Messages {
		if m := &messages[m]; m.SendSeq <= last[m.Src] {
			return false
		}
	}
	return true
}
