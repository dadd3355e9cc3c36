package combine

import (
	"cmp"
	"slices"

	weight "github.com/commq/commq/detect/evidence"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/rankset"
	"github.com/commq/commq/schema"
)

// findGathering searches for operations that assemble blocks.
func findGathering(f *facts, g *group, list []*occurrence) *match {
	return findJoining(f, g, list, false)
}

// findScattering searches for operations that divide a payload into blocks: gatherings in reverse.
func findScattering(f *facts, g *group, list []*occurrence) *match {
	return findJoining(f, g, list, true)
}

// joiner replays a gathering.
type joiner struct {
	facts     *facts
	g         *group
	checks    int64 // assembled payloads that equal their parts, by hash
	joined    weight.Comparisons
	addressed int64 // assembled payloads that equal their parts, by address
	unseen    int64 // assembled payloads that could not be compared
	passedOn  int64 // those of them that were sent on, not kept by the root
	ownUnseen rankset.Bits
	varied    bool
	own       []int64 // of the last occurrence, by rank: the bytes of its block; -1: unknown
	root      int
	backward  bool
	overlaid  bool // roots receive all blocks at one address, in every occurrence
	inOrder   bool // roots receive (backward: send) the blocks in rank order in every occurrence
	called    bool // before each block, roots tell its rank by an empty message, in every occurrence
}

func newJoiner(f *facts, g *group, backward bool) *joiner {
	return &joiner{facts: f, g: g, ownUnseen: rankset.NewBits(len(g.ranks)), root: -1, backward: backward, overlaid: true,
		inOrder: true, called: true}
}

func findJoining(f *facts, g *group, list []*occurrence, backward bool) *match {
	n := len(g.ranks)
	if n < f.rules.MinRanks {
		return nil
	}
	j := newJoiner(f, g, backward)
	b := &match{group: g}
	all, same := true, true
	var roots []int32
	for k, o := range list {
		turned := o
		if o.reach(backward) < n {
			return nil
		}
		if backward {
			turned = o.reversed()
		}
		root, ok := j.replay(turned)
		if !ok || k > 0 && (root < 0) != (j.root < 0) {
			return nil
		}
		j.root = root
		all = all && root < 0
		in := repetition{messages: o.messages, root: schema.NullInt32, rankBytes: slices.Clone(j.own)}
		if root >= 0 {
			in.root = g.ranks[root]
			roots = append(roots, in.root)
		}
		block := int64(-1)
		for _, own := range j.own {
			if own >= 0 && block >= 0 && own != block {
				same = false
			}
			block = max(block, own)
		}
		for r, own := range in.rankBytes {
			if own < 0 {
				in.rankBytes[r] = block // nothing is known about the root's own block
			}
			in.bytes += in.rankBytes[r]
		}
		if all {
			in.bytes = block
		}
		b.instances = append(b.instances, in)
	}
	if !j.conclude(b, roots, same, len(list)) || !all && f.anyOwned(list) {
		return nil
	}
	for r, rank := range g.ranks {
		if j.ownUnseen.Has(r) {
			b.proof.Unseen = append(b.proof.Unseen, rank)
		}
	}
	if same {
		for k := range b.instances {
			if b.instances[k].rankBytes = nil; b.op == ledger.Reduce {
				b.instances[k].bytes = b.instances[k].messages[0].Bytes
			}
		}
	}
	return b
}

// conclude decides which operation was found and how certain that is.
func (j *joiner) conclude(b *match, roots []int32, same bool, times int) bool {
	if len(roots) == 0 { // every rank has all blocks
		if j.backward || j.checks == 0 || j.unseen > 0 {
			return false
		}
		b.op, b.proof.Basis, b.checks = ledger.Allgather, ledger.ByPayload, j.checks
		b.proof.Bits = j.joined.Bits()
		if !same {
			b.op = ledger.Allgatherv
		}
		return true
	}
	b.checks = j.checks
	order := j.orderEvidence(roots[0], times, j.g.blocksOf(b.instances[0].messages, roots[0]))
	apart := !j.backward || j.facts.receivedApart(j.g) // the first tasks go out in order, too, and others follow
	if apart {
		b.proof.Order = order
	}
	b.op = map[bool]ledger.Operation{false: ledger.Gather, true: ledger.Scatter}[j.backward]
	if !same {
		b.op++
	}
	switch {
	case !j.varied:
		return false
	case j.unseen == 0 && j.addressed == 0 && j.checks > 0:
		b.proof.Basis, b.proof.Bits = ledger.ByPayload, j.joined.Bits()
	case j.unseen == 0:
		b.proof.Basis = ledger.ByAddress
	default:
		b.proof.Basis = ledger.ByStructure
		if j.overlaid && !j.called && same && !j.backward &&
			j.facts.check.kinds[j.g.cells[0].Cell.Datatype].class != opaque && !j.facts.sizesDiffer(j.g, roots[0]) {
			// blocks that all arrive at one address are reduced as they come, or else used at once
			b.op, b.proof.Others = ledger.Reduce, []ledger.Operation{ledger.Gather}
		}
		// without hashes nothing shows that forwarded messages contain the received blocks
		return apart && (same || order >= minOrderBits && j.passedOn == 0) &&
			(slices.Min(roots) == slices.Max(roots) || rootsTakeTurns(roots)) && j.facts.coversComm(j.g) &&
			j.facts.sendsNothingElse(j.g)
	}
	return true
}

// minOrderBits is the least evidence, in bits, from the order of blocks of several sizes that they belong together.
const minOrderBits = 6.5

// gatherState is the state of a rank during a gathering.
type gatherState struct {
	set      rankset.Set
	own      int64             // bytes of its block; -1: not known yet
	known    *ledger.Operand   // the payload that it sent or recorded
	added    []*ledger.Operand // blocks received since then
	received []*ledger.Operand // all blocks received
	total    int64             // bytes of received
}

// replay tracks the set of ranks whose blocks each message contains; each message must be as long as its blocks. It
// returns the place of the rank that has all blocks at the end, or -1 if all ranks have them.
func (j *joiner) replay(o *occurrence) (root int, ok bool) {
	n := len(j.g.ranks)
	ranks, room := make([]gatherState, n), j.facts.rules.NewSetRoom()
	for r := range ranks {
		ranks[r] = gatherState{set: rankset.New(n, room), own: -1}
		ranks[r].set.Add(r)
	}
	carried := make([]rankset.Set, len(o.messages))
	for _, m := range o.messages {
		j.varied = j.varied || m.Hash != o.messages[0].Hash
	}
	ok = o.walk(func(r int, e ledger.Event) bool {
		at := &ranks[r]
		if !e.Send {
			got := carried[e.M.Index]
			if !at.set.Disjoint(&got) {
				return false
			}
			at.set.Join(&got, nil)
			at.added, at.received, at.total = append(at.added, e.M), append(at.received, e.M), at.total+e.M.Bytes
			return !room.Exhausted()
		}
		carried[e.M.Index] = at.set.Clone()
		return j.checkSend(at, o, e.M, r) && !room.Exhausted()
	})
	j.facts.markOversized(room, o)
	if !ok {
		return 0, false
	}
	full := 0
	for r := range ranks {
		if ranks[r].set.Len() == n {
			full++
			root = r
		}
	}
	j.own = j.own[:0]
	for r := range ranks {
		j.own = append(j.own, ranks[r].own)
	}
	switch {
	case full == n:
		return -1, true
	case full != 1 || len(o.messages) != n-1 || ranks[root].own >= 0:
		return 0, false
	}
	j.checkRoot(&ranks[root], o, root)
	return root, true
}

// agrees counts a payload that equals its blocks joined together.
func (j *joiner) agrees(whole *ledger.Operand) {
	j.checks++
	j.joined.AddResult(whole.Hash, weight.BlockBits)
}

// checkSend checks a message that consists of blocks.
func (j *joiner) checkSend(at *gatherState, o *occurrence, m *ledger.Operand, r int) bool {
	if at.own >= 0 {
		if m.Bytes != at.own+at.total || len(at.added) == 0 {
			return false
		}
		if !j.facts.check.isConcatenation(m, append([]*ledger.Operand{at.known}, at.added...)) {
			return false
		}
		j.agrees(m)
		at.known, at.added = m, nil
		return true
	}
	at.own = m.Bytes - at.total
	if at.own <= 0 {
		return false
	}
	if len(at.received) > 0 {
		own := j.ownBlock(o, r, at.own, m.Datatype)
		switch {
		case own != nil && j.facts.check.isConcatenation(m, append([]*ledger.Operand{own}, at.received...)):
			j.agrees(m)
		case j.sideBySide(m, at.received):
			j.addressed++
			j.ownUnseen.Add(r)
		default:
			j.unseen++
			j.passedOn++
			j.ownUnseen.Add(r)
		}
	}
	at.known, at.added = m, nil
	return true
}

// ownBlock returns a rank's own block if it recorded it.
func (j *joiner) ownBlock(o *occurrence, r int, bytes int64, datatype int32) *ledger.Operand {
	after, before := o.after[r], o.before[r]
	if !j.backward { // the payload before its first send
		before = o.events[r][len(o.events[r])-1].Seq() + 1
	}
	return j.facts.lastRecorded(j.g.ranks[r], after, before, bytes, datatype)
}

// sideBySide reports whether the blocks lie within the whole without gaps or overlaps.
func (j *joiner) sideBySide(whole *ledger.Operand, blocks []*ledger.Operand) bool {
	if whole.Buffer == schema.NullInt64 {
		return false
	}
	end := whole.Buffer
	for _, b := range byAddress(blocks) {
		if b.DstBuffer == schema.NullInt64 || b.DstBuffer < end {
			return false
		}
		end = b.DstBuffer + b.Bytes
	}
	return end <= whole.Buffer+whole.Bytes
}

func byAddress(blocks []*ledger.Operand) []*ledger.Operand {
	out := slices.Clone(blocks)
	slices.SortFunc(out, func(a, b *ledger.Operand) int { return cmp.Compare(uint64(a.DstBuffer), uint64(b.DstBuffer)) })
	return out
}

// checkRoot checks how the blocks lie in the root's memory: side by side, with a gap only for its own.
func (j *joiner) checkRoot(at *gatherState, o *occurrence, r int) {
	j.overlaid = j.overlaid && !slices.ContainsFunc(at.received, func(m *ledger.Operand) bool {
		return m.DstBuffer != at.received[0].DstBuffer || m.DstBuffer == schema.NullInt64
	})
	j.checkOrder(at, o, r)
	gaps, gap := 0, int64(0)
	end := int64(schema.NullInt64)
	for _, b := range byAddress(at.received) {
		if b.DstBuffer == schema.NullInt64 || end != schema.NullInt64 && b.DstBuffer < end {
			gaps = 2
			break
		}
		if end != schema.NullInt64 && b.DstBuffer > end {
			gaps++
			gap = b.DstBuffer - end
		}
		end = b.DstBuffer + b.Bytes
	}
	if gaps == 1 {
		at.own = gap
	}
	same := int64(0)
	for q, own := range j.own {
		if q != r && (same == 0 || own == same) {
			same = own
		} else if q != r {
			same = -1
		}
	}
	if gaps == 1 && same > 0 && gap != same {
		gaps = 2
	}
	if own := j.ownBlock(o, r, max(gap, same), at.received[0].Datatype); own == nil {
		j.ownUnseen.Add(r)
	} else if whole := j.wholeAt(o, r, at.total+own.Bytes); whole != nil &&
		j.facts.check.isConcatenation(whole, append([]*ledger.Operand{own}, at.received...)) {
		j.agrees(whole)
		return
	}
	switch {
	case gaps > 1 && j.strides(at.received):
		j.addressed++
	case gaps > 1:
		j.unseen++
	default:
		j.addressed++
		j.own[r] = gap
		if gap == 0 {
			j.own[r] = -1
		}
	}
}

// checkOrder checks in which order the root receives (backward: sends) blocks, and whether it calls for each.
func (j *joiner) checkOrder(at *gatherState, o *occurrence, r int) {
	order, last, after := j.facts.order(j.g), -1, o.after[r]
	received := slices.Clone(at.received)
	if j.backward {
		slices.Reverse(received)
	}
	for _, m := range received {
		place := slices.Index(order, m.Src)
		j.inOrder = j.inOrder && place > last
		j.called = j.called && !j.backward && j.facts.tells(j.g.ranks[r], m.Src, after, m.DoneSeq)
		last, after = place, m.DoneSeq
	}
}

// strides reports whether the blocks of the other ranks have slots of equal size at the root, in rank order. A block
// may fill part of its slot.
func (j *joiner) strides(blocks []*ledger.Operand) bool {
	if len(blocks) != len(j.g.ranks)-1 || len(blocks) < 3 {
		return false
	}
	sorted := slices.Clone(blocks)
	slices.SortFunc(sorted, func(a, b *ledger.Operand) int { return cmp.Compare(a.Src, b.Src) })
	place := func(m *ledger.Operand) int64 {
		r, _ := slices.BinarySearch(j.g.ranks, m.Src)
		return int64(r)
	}
	stride := int64(0)
	for k, m := range sorted[1:] {
		before := sorted[k]
		ranks := place(m) - place(before)
		if m.DstBuffer == schema.NullInt64 || before.DstBuffer == schema.NullInt64 || ranks <= 0 ||
			(m.DstBuffer-before.DstBuffer)%ranks != 0 {
			return false
		}
		if of := (m.DstBuffer - before.DstBuffer) / ranks; k == 0 {
			stride = of
		} else if of != stride {
			return false
		}
	}
	return !slices.ContainsFunc(blocks, func(m *ledger.Operand) bool { return m.Bytes > stride })
}

// wholeAt returns the root's complete payload if it recorded or sends it: after it has received all blocks, or before
// it sends any.
func (j *joiner) wholeAt(o *occurrence, r int, bytes int64) *ledger.Operand {
	rank := j.g.ranks[r]
	after, before := o.events[r][len(o.events[r])-1].Seq(), o.before[r]
	if j.backward {
		after, before = o.after[r], after
	}
	for _, list := range [][]*ledger.Operand{j.facts.records[rank], j.facts.sends[rank]} {
		at, _ := slices.BinarySearchFunc(list, after+1,
			func(m *ledger.Operand, seq int64) int { return cmp.Compare(m.SendSeq, seq) })
		for ; at < len(list) && list[at].SendSeq < before; at++ {
			if list[at].Bytes == bytes {
				return list[at]
			}
		}
	}
	return nil
}
