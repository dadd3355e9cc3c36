package combine

import (
	"cmp"
	"slices"

	weight "github.com/commq/commq/detect/evidence"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/rankset"
	"github.com/commq/commq/schema"
)

// foldState is the state of a rank during a reduction.
type foldState struct {
	set      rankset.Set
	known    *ledger.Operand   // a payload that it had: sent, recorded, or received complete
	added    []*ledger.Operand // payloads received since then
	first    *ledger.Operand   // its first send
	basis    int8              // where known comes from
	received []*ledger.Operand // all payloads that it added
}

// shape is the pattern of an occurrence, by which ranks have what at the end.
type shape struct {
	op   ledger.Operation
	root int32
}

// folding replays a reduction.
type folding struct {
	facts      *facts
	g          *group
	direct     evidence
	indirect   map[basis]*evidence
	equal      agreement
	regions    int // the largest number of memory regions from which one rank sends
	unseen     rankset.Bits
	varied     bool // payloads differ
	shape      shape
	returned   bool     // the complete result is sent to all
	exclusive  bool     // after its first receive, a rank's sends exclude its own contribution: MPI_Exscan
	withoutOwn evidence // for results that contain only received contributions
	withOwn    evidence // for results that also contain the rank's own, on the same ranks
	partial    bool     // some of these ranks did not record both
}

// basis is the evidence for a comparison beyond the messages of an occurrence.
type basis struct {
	what int8
	cell ledger.Cell
}

// The kinds of evidence for a comparison.
const (
	onMessages int8 = iota // messages only
	onRegions              // two memory regions are assumed to hold the same data
	onRecord               // a record of data that a rank keeps
	onResult               // a message with the result
)

// findReduction searches for operations that combine payloads of one size.
func findReduction(f *facts, g *group, list []*occurrence) *match {
	if b := fold(f, g, list, false); b != nil {
		return b
	}
	return fold(f, g, list, true)
}

func newFolding(f *facts, g *group, without bool) *folding {
	return &folding{facts: f, g: g, direct: newEvidence(), indirect: map[basis]*evidence{},
		unseen: rankset.NewBits(len(g.ranks)), regions: 1,
		exclusive: without, withoutOwn: newEvidence(), withOwn: newEvidence()}
}

// fold returns the reduction that the occurrences replay as, or nil. without means that ranks leave their own
// contribution out.
func fold(facts *facts, g *group, list []*occurrence, without bool) *match {
	bytes := list[0].messages[0].Bytes
	f := newFolding(facts, g, without)
	b := &match{group: g}
	var roots []int32
	for j, o := range list {
		s, ok := f.replay(o, bytes)
		if !ok || j > 0 && s.op != f.shape.op {
			return nil
		}
		f.shape = s
		roots = append(roots, s.root)
	}
	b.op = f.shape.op
	if !f.conclude(b, list, roots) {
		return nil
	}
	for r, rank := range g.ranks {
		if f.unseen.Has(r) {
			b.proof.Unseen = append(b.proof.Unseen, rank)
		}
	}
	for k, o := range list {
		b.instances = append(b.instances, repetition{messages: o.messages, root: roots[k],
			bytes: bytes * int64(f.regions)})
	}
	return b
}

// replay tracks the sets of ranks that have contributed. Two sets that are merged must be disjoint unless one is
// complete.
func (f *folding) replay(o *occurrence, bytes int64) (shape, bool) {
	n := len(f.g.ranks)
	for _, m := range o.messages {
		if m.Bytes != bytes {
			return shape{}, false
		}
		f.varied = f.varied || m.Hash != o.messages[0].Hash
	}
	if o.reach(false) < n-1 {
		return shape{}, false
	}
	ranks, room := make([]foldState, n), f.facts.rules.NewSetRoom()
	for r := range ranks {
		ranks[r].set = rankset.New(n, room)
		ranks[r].set.Add(r)
	}
	carried := make([]rankset.Set, len(o.messages))
	same := map[string]*sentBy{}
	buffers := make([]map[int64]bool, n)
	full := 0
	for r := range ranks {
		m := f.facts.lastRecorded(f.g.ranks[r], o.after[r], o.events[r][0].Seq(), bytes, o.messages[0].Datatype)
		if m != nil {
			ranks[r].known, ranks[r].basis = m, onRecord
		}
	}
	ok := o.walk(func(r int, e ledger.Event) bool {
		at := &ranks[r]
		if e.Send {
			carried[e.M.Index] = at.set.Clone()
			f.checkSend(at, e.M, r)
			if f.checkEqual(same, at, e.M); buffers[r] == nil {
				buffers[r] = map[int64]bool{}
			}
			buffers[r][e.M.Buffer] = true
			return !room.Exhausted()
		}
		got := carried[e.M.Index]
		switch {
		case f.exclusive && len(at.received) == 0:
			at.set = got.Clone()
			at.known, at.added, at.basis = e.M, nil, onMessages
			at.received = append(at.received, e.M)
		case at.set.Disjoint(&got):
			at.set.Join(&got, nil)
			at.added, at.received = append(at.added, e.M), append(at.received, e.M)
		case got.Contains(&at.set):
			at.set = got.Clone()
			at.known, at.added, at.basis = e.M, nil, onMessages
			f.returned = true
		default:
			return false
		}
		return !room.Exhausted()
	})
	f.facts.markOversized(room, o)
	if !ok || f.direct.broken || f.direct.ops == 0 && (f.equal.seen == 0 || f.equal.differ > 0) {
		return shape{}, false
	}
	for r := range ranks {
		if ranks[r].set.Len() == n {
			full++
		}
		f.regions = max(f.regions, len(buffers[r]))
		f.checkResult(&ranks[r], o, r, bytes)
		f.checkRecordedResult(&ranks[r], o, r, bytes)
	}
	if f.exclusive {
		return shape{ledger.Exscan, schema.NullInt32}, excludes(ranks)
	}
	return f.shapeOf(ranks, full, len(o.messages))
}

// checkSend compares a rank's send with the value that it should have.
func (f *folding) checkSend(at *foldState, m *ledger.Operand, r int) {
	switch {
	case at.known == nil:
		if at.first == nil && len(at.added) > 0 {
			f.unseen.Add(r)
		}
	default:
		to := &f.direct
		switch {
		case at.basis != onMessages:
			to = f.indirectOn(basis{what: at.basis})
		case at.known.Buffer != m.Buffer && at.known.Src == m.Src:
			to = f.indirectOn(basis{what: onRegions})
		}
		f.facts.check.compare(to, m, append([]*ledger.Operand{at.known}, at.added...))
	}
	if at.first == nil {
		at.first = m
	}
	at.known, at.added, at.basis = m, nil, onMessages
}

func (f *folding) indirectOn(p basis) *evidence {
	e := f.indirect[p]
	if e == nil {
		n := newEvidence()
		e = &n
		f.indirect[p] = e
	}
	return e
}

// sentBy is a message with a given set of contributors, and the first send of its sender.
type sentBy struct{ m, first *ledger.Operand }

// checkEqual compares the messages of different ranks that have the same contributors.
func (f *folding) checkEqual(same map[string]*sentBy, at *foldState, m *ledger.Operand) {
	if at.set.Len() < 2 {
		return
	}
	key := at.set.Key()
	old := same[key]
	if old == nil {
		same[key] = &sentBy{m, at.first}
		return
	}
	if old.m.Src == m.Src {
		return
	}
	f.equal.seen++
	switch {
	case old.m.Hash != m.Hash:
		f.equal.differ++
	default:
		if old.m.Hash != old.first.Hash {
			f.equal.changed[0]++
		}
		if m.Hash != at.first.Hash {
			f.equal.changed[1]++
		}
	}
}

// agreement counts payloads that must be equal because they have the same contributors.
type agreement struct {
	seen, differ int64
	changed      [2]int64 // equal payloads that differ from the first send of the one sender, or the other
}

// isStrong reports whether only a common operation explains the equal payloads of two ranks.
func (a *agreement) isStrong() bool {
	return a.differ == 0 && a.changed[0] > 0 && a.changed[1] > 0 && a.changed[0]+a.changed[1] >= 4
}

// checkResult compares a rank's final value with its next send or record from the same address.
func (f *folding) checkResult(at *foldState, o *occurrence, r int, bytes int64) {
	if at.known == nil || len(at.added) == 0 {
		return
	}
	events := o.events[r]
	last := events[len(events)-1].Seq()
	list := f.facts.sends[f.g.ranks[r]]
	k, _ := slices.BinarySearchFunc(list, last+1,
		func(m *ledger.Operand, seq int64) int { return cmp.Compare(m.SendSeq, seq) })
	for ; k < len(list) && list[k].SendSeq < o.before[r]; k++ {
		m := list[k]
		if m.Buffer == schema.NullInt64 || m.Buffer != at.known.Buffer {
			continue
		}
		if m.Bytes == bytes && m.Datatype == at.known.Datatype {
			f.facts.check.compare(f.indirectOn(basis{onResult, ledger.Cell{Comm: m.Comm, Datatype: m.Datatype, Tag: m.Tag, Site: m.SendSite, Bytes: m.Bytes}}), m,
				append([]*ledger.Operand{at.known}, at.added...))
		}
		return
	}
	if m := f.facts.firstRecorded(f.g.ranks[r], last, o.before[r], bytes, at.known.Datatype); m != nil {
		f.facts.check.compare(f.indirectOn(basis{what: onResult}), m, append([]*ledger.Operand{at.known}, at.added...))
	}
}

// checkRecordedResult compares a rank's final record with the received contributions, both without and with its own.
func (f *folding) checkRecordedResult(at *foldState, o *occurrence, r int, bytes int64) {
	if len(at.received) == 0 {
		return
	}
	events := o.events[r]
	if m := f.facts.firstRecorded(f.g.ranks[r], events[len(events)-1].Seq(), o.before[r], bytes, at.received[0].Datatype); m != nil {
		f.facts.check.compare(&f.withoutOwn, m, at.received)
		if at.known != nil {
			f.facts.check.compare(&f.withOwn, m, append([]*ledger.Operand{at.known}, at.added...))
			f.partial = f.partial || at.set.Len() < len(f.g.ranks)
		}
	}
}

// agreesWith reports whether there were comparisons and at least one of the operations passed all of them.
func (e *evidence) agreesWith(ops reductions) bool { return e.seen > 0 && !e.broken && e.ops&ops != 0 }

// scans decides between a scan and an exclusive scan from what ranks record. Without records it notes the other as
// possible too.
func (f *folding) scans(b *match, ops reductions, chain bool) {
	without, with := f.withoutOwn.agreesWith(ops), f.withOwn.agreesWith(ops)
	switch {
	case without && !with:
		b.op = ledger.Exscan
		b.checks += f.withoutOwn.seen
	case without || !with:
		b.proof.Others = append(b.proof.Others, ledger.Exscan)
	}
	if chain && !(f.partial && (without || with)) {
		b.proof.Others = append(b.proof.Others, ledger.Reduce)
	}
}

// excludes reports whether each rank ends with the contributions of exactly the ranks before it.
func excludes(ranks []foldState) bool {
	for r := range ranks {
		if r == 0 && len(ranks[0].received) > 0 || r > 0 && (len(ranks[r].received) == 0 || !ranks[r].set.IsPrefix(r)) {
			return false
		}
	}
	return len(ranks) > 2
}

// shapeOf returns the shape of an occurrence.
func (f *folding) shapeOf(ranks []foldState, full, messages int) (shape, bool) {
	n := len(ranks)
	if full == n {
		return shape{ledger.Allreduce, schema.NullInt32}, true
	}
	if full != 1 || n < 3 {
		return shape{}, false
	}
	root := slices.IndexFunc(ranks, func(r foldState) bool { return r.set.Len() == n })
	order := make([]int, n) // for scans: the ranks by their number of contributors
	for r := range ranks {
		order[ranks[r].set.Len()-1] = r
	}
	nested := true
	for k := 0; k < n && nested; k++ {
		nested = ranks[order[k]].set.Len() == k+1 && (k == 0 || ranks[order[k]].set.Contains(&ranks[order[k-1]].set))
	}
	switch {
	case nested && slices.IsSorted(order):
		return shape{ledger.Scan, schema.NullInt32}, true
	case messages == n-1:
		return shape{ledger.Reduce, f.g.ranks[root]}, true
	}
	return shape{}, false
}

// conclude decides which operation was found and how certain that is; it returns false if there is none.
func (f *folding) conclude(b *match, list []*occurrence, roots []int32) bool {
	n := len(f.g.ranks)
	all := f.direct
	b.evidence = map[ledger.Cell]bool{}
	loose := false
	for p, e := range f.indirect {
		if e.seen == 0 {
			continue
		}
		if all.ops&e.ops == 0 || !e.isStrong(all.ops&e.ops) && p.what != onRecord {
			loose = loose || p.what == onRegions
			continue
		}
		all.add(e)
		if p.what == onRegions {
			f.regions = 1
		}
		if p.what == onResult && p.cell != (ledger.Cell{}) {
			b.evidence[p.cell] = true
		}
	}
	if !loose && len(f.indirect) == 0 || b.op != ledger.Allreduce {
		f.regions = 1
	}
	b.checks = all.seen + f.equal.seen - f.equal.differ
	if b.op == ledger.Scan {
		f.scans(b, all.ops, len(list[0].messages) == n-1)
	}
	switch {
	case f.direct.broken:
		return false
	case all.isStrong(all.ops):
		b.proof.Basis, b.proof.Reductions, b.proof.Bits = ledger.ByPayload, all.names(), all.mostBits()
		b.proof.Compared = all.leastExtent()
		return true
	case f.equal.isStrong() && n >= 3 && b.op == ledger.Allreduce:
		b.proof.Basis = ledger.ByPayload // with an operation of the program's own
		b.proof.Bits = weight.EqualBits(firstHashes(list), max(f.equal.changed[0], f.equal.changed[1]))
		return true
	}
	b.proof.Basis = ledger.ByStructure
	if all.seen > 0 && all.ops == 0 || f.equal.differ > 0 || loose || !f.varied || n < 3 ||
		f.facts.check.kinds[f.g.cells[0].Cell.Datatype].class == opaque && list[0].messages[0].Bytes < minOwnBytes ||
		!f.facts.sendsNothingElse(f.g) {
		return false
	}
	switch b.op {
	case ledger.Allreduce:
		messages := len(list[0].messages) // a token that circulates twice returns to the first rank once or twice
		return f.returned && messages >= 2*(n-1) && messages <= 2*n
	case ledger.Reduce:
		for k, o := range list {
			if !isTree(o, roots[k]) {
				return false
			}
		}
		return (slices.Min(roots) == slices.Max(roots) || rootsTakeTurns(roots)) && f.facts.coversComm(f.g)
	}
	return false
}

// firstHashes returns the hashes of what ranks send first.
func firstHashes(list []*occurrence) (out []int64) {
	for _, o := range list {
		for _, events := range o.events {
			if m := nthSend(events, 0); m != nil {
				out = append(out, m.Hash)
			}
		}
	}
	return out
}

// minOwnBytes is the least size of values that a program may combine by an operation of its own. Fewer bytes without a
// type of numbers may be a flag that is passed on.
const minOwnBytes = 9

// isTree reports whether the messages reach a root neither all directly nor along a chain.
func isTree(o *occurrence, root int32) bool {
	direct, children := true, map[int32]int{}
	for _, m := range o.messages {
		direct = direct && m.Dst == root
		children[m.Dst]++
	}
	chain := true
	for _, k := range children {
		chain = chain && k == 1
	}
	return !direct && !chain
}
