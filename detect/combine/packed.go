package combine

import (
	"cmp"
	"math"
	"slices"

	weight "github.com/commq/commq/detect/evidence"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// minPackedRanks is the least number of ranks of a tree or scan of packed objects: among fewer every tree is a star or
// a chain.
const minPackedRanks = 4

// packedScopes group all messages of a call site, of a tag and of a function: packed objects have any size, and a
// recursive function sends from several sites.
func (c *combiner) packedScopes() []func(ledger.Cell) (ledger.Cell, bool) {
	untyped := func(c ledger.Cell) ledger.Cell {
		c.Datatype, c.Bytes = 0, ledger.AnySize
		return c
	}
	in := c.functionScopes()[0]
	return []func(ledger.Cell) (ledger.Cell, bool){
		func(c ledger.Cell) (ledger.Cell, bool) { c.Tag = 0; return untyped(c), c.Site != schema.NullInt32 },
		func(c ledger.Cell) (ledger.Cell, bool) { c.Site = 0; return untyped(c), true },
		func(c ledger.Cell) (ledger.Cell, bool) { return in(untyped(c)) },
	}
}

// findPacked searches for reductions and scans of packed objects: bytes of any size, of which no hash tells what was
// combined. They show by their shape alone, over all ranks of a communicator at calls that send nothing else.
func (c *combiner) findPacked(s *ledger.Sample) (out []*match) {
	for _, scope := range c.packedScopes() {
		for _, g := range c.groups(s, scope) {
			if g.dense || len(g.ranks) < max(minPackedRanks, c.facts.rules.MinRanks) || !c.facts.arePacked(g) ||
				!c.facts.coversComm(g) || !c.facts.sendsNothingElse(g) {
				continue
			}
			out = appendMatch(out, packedScan(c.facts, g)) // first, as the last rank is the root of a tree
			out = appendMatch(out, packedTurns(c.facts, g))
			for _, root := range g.quietest() {
				out = appendMatch(out, packedReduction(c.facts, g, root))
			}
		}
	}
	return out
}

func appendMatch(list []*match, b *match) []*match {
	if b == nil {
		return list
	}
	return append(list, b)
}

// maxRootsTried limits the ranks that are tried as the root of a tree.
const maxRootsTried = 2

// quietest returns the ranks that send least, as a root does.
func (g *group) quietest() []int32 {
	sent := map[int32]int64{}
	for k, w := range g.ways {
		sent[w.Src] += g.count[k]
	}
	ranks := slices.Clone(g.ranks)
	slices.SortStableFunc(ranks, func(a, b int32) int { return cmp.Compare(sent[a], sent[b]) })
	return ranks[:min(len(ranks), maxRootsTried)]
}

// arePacked reports whether no message of a group has a datatype with numbers.
func (f *facts) arePacked(g *group) bool {
	return !slices.ContainsFunc(g.cells, func(of *ledger.CellSample) bool {
		return f.check.kinds[of.Cell.Datatype].class != opaque
	})
}

// packedReduction returns the reduction to a root that a group repeats, or nil. The root may forward the result; then
// the receiver counts as the root.
func packedReduction(f *facts, g *group, root int32) *match {
	tree, onward := g.without(func(w ledger.Way) bool { return w.Src == root })
	times := tree.evenly(len(g.ranks) - 1)
	if times == 0 || len(onward) > int(times) {
		return nil
	}
	list := tree.cut(times, math.MaxInt64)
	if list == nil {
		return nil
	}
	b := newPacked(g, ledger.Reduce, ledger.Gatherv)
	for _, o := range list {
		if !f.addTree(b, tree, o, root) {
			return nil
		}
	}
	if left, ok := passOn(b.instances, onward, list, tree.placeOf(root)); !ok || left > 0 && g.isComplete {
		return nil
	}
	return b
}

// packedTurns returns the reductions to one root after the other that a group repeats, or nil.
func packedTurns(f *facts, g *group) *match {
	b, roots := newPacked(g, ledger.Reduce, ledger.Gatherv), []int32(nil)
	for _, o := range g.turns(false) {
		root := slices.IndexFunc(o.events, func(events []ledger.Event) bool {
			return !slices.ContainsFunc(events, func(e ledger.Event) bool { return e.Send })
		})
		if root < 0 || !f.addTree(b, g, o, g.ranks[root]) {
			return nil
		}
		roots = append(roots, g.ranks[root])
	}
	if !rootsTakeTurns(roots) {
		return nil
	}
	return b
}

// newPacked returns a match without instances.
func newPacked(g *group, op, other ledger.Operation) *match {
	return &match{group: g, op: op, proof: ledger.Proof{Basis: ledger.ByStructure, Unseen: g.ranks,
		Others: []ledger.Operation{other}}}
}

// add adds an instance by the messages of an occurrence.
func (b *match) add(o *occurrence, root int32) {
	in := repetition{messages: o.messages, root: root}
	for _, m := range o.messages {
		in.bytes = max(in.bytes, m.Bytes)
	}
	b.instances = append(b.instances, in)
}

// addTree adds an instance if an occurrence is a tree, and reports whether it is.
func (f *facts) addTree(b *match, g *group, o *occurrence, root int32) bool {
	spare, ok := f.treeOf(g, o, root)
	if ok {
		b.proof.Order -= weight.SpareBits(len(o.messages), spare)
		b.add(o, root)
	}
	return ok
}

// without returns a group less some ways, and the messages of these in the order of their sends.
func (g *group) without(out func(ledger.Way) bool) (rest *group, messages []*ledger.Operand) {
	rest = &group{cells: g.cells, ranks: g.ranks, isComplete: g.isComplete}
	for k, w := range g.ways {
		if out(w) {
			messages = append(messages, g.lists[k]...)
			continue
		}
		rest.ways, rest.lists = append(rest.ways, w), append(rest.lists, g.lists[k])
		rest.count = append(rest.count, g.count[k])
	}
	slices.SortFunc(messages, func(a, b *ledger.Operand) int { return cmp.Compare(a.SendSeq, b.SendSeq) })
	return rest, messages
}

// evenly returns how often each way is used, if that is the same for all and there are at least least ways; otherwise
// 0.
func (g *group) evenly(least int) int64 {
	if len(g.ways) < least || slices.Min(g.count) != slices.Max(g.count) {
		return 0
	}
	return g.count[0]
}

// placeOf returns the place of a rank in a group.
func (g *group) placeOf(rank int32) int {
	at, _ := slices.BinarySearch(g.ranks, rank)
	return at
}

// treeOf reports whether what reaches a root in an occurrence comes up a tree, which is neither a star nor a chain:
// each other rank sends once what it has, after all that it gets. spare is the number of messages that do not reach the
// root.
func (f *facts) treeOf(g *group, o *occurrence, root int32) (spare int, ok bool) {
	n := len(g.ranks)
	needed := o.pastOf(g.placeOf(root))
	sent, children := make([]bool, n), make([]int, n)
	seen := 0
	ok = o.walk(func(r int, e ledger.Event) bool {
		switch {
		case !needed[e.M]:
		case !e.Send:
			children[r]++
			return !sent[r]
		case sent[r]:
			return false
		default:
			sent[r] = true
			seen++
		}
		return true
	})
	if !ok || seen != n-1 || sent[g.placeOf(root)] {
		return 0, false
	}
	return len(o.messages) - seen, slices.Max(children) > 1 && children[g.placeOf(root)] < n-1
}

// pastOf returns the messages that reach a rank, directly or by others.
func (o *occurrence) pastOf(place int) map[*ledger.Operand]bool {
	past, at := map[*ledger.Operand]bool{}, map[*ledger.Operand]int{}
	for r, events := range o.events {
		for _, e := range events {
			if e.Send {
				at[e.M] = r
			}
		}
	}
	until := make([]int64, len(o.events))
	until[place] = math.MaxInt64
	for todo := []int{place}; len(todo) > 0; {
		r := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, e := range o.events[r] {
			if e.Send || past[e.M] || e.M.DoneSeq >= until[r] {
				continue
			}
			past[e.M] = true
			if src := at[e.M]; e.M.SendSeq > until[src] {
				until[src] = e.M.SendSeq
				todo = append(todo, src)
			}
		}
	}
	return past
}

// passOn adds to instances the messages by which the root sends the result to another rank, which it does once at
// most, after it has got all and before the next instance. left is the number of those behind all instances.
func passOn(instances []repetition, onward []*ledger.Operand, list []*occurrence, root int) (left int, ok bool) {
	for k, o := range list {
		if len(onward) == 0 || onward[0].SendSeq > o.before[root] {
			continue
		}
		events := o.events[root]
		if onward[0].SendSeq < events[len(events)-1].Seq() {
			return 0, false
		}
		instances[k].messages = append(slices.Clone(instances[k].messages), onward[0])
		instances[k].root = onward[0].Dst
		onward = onward[1:]
	}
	return len(onward), true
}

// packedScan returns the scan that a group repeats, or nil.
func packedScan(f *facts, g *group) *match {
	times := g.evenly(len(g.ranks))
	if times == 0 {
		return nil
	}
	list := g.cut(times, math.MaxInt64)
	if list == nil {
		return nil
	}
	b := newPacked(g, ledger.Scan, ledger.Exscan)
	for _, o := range list {
		if !f.isScan(g, o) {
			return nil
		}
		b.add(o, schema.NullInt32)
	}
	return b
}

// interval is the ranks from first to last, in the order of their communicator.
type interval struct{ first, last int }

// isScan reports whether each rank hears of all ranks before it, but not every rank of all. What a rank receives always
// extends its interval of known ranks, so the order of ranks is kept.
func (f *facts) isScan(g *group, o *occurrence) bool {
	order, n := f.order(g), len(g.ranks)
	heard, carried := make([]interval, n), make([]interval, len(o.messages))
	for r, rank := range g.ranks {
		at := slices.Index(order, rank)
		heard[r] = interval{at, at}
	}
	ok := o.walk(func(r int, e ledger.Event) bool {
		if e.Send {
			carried[e.M.Index] = heard[r]
			return true
		}
		got := carried[e.M.Index]
		switch {
		case got.last+1 == heard[r].first:
			heard[r].first = got.first
		case heard[r].last+1 == got.first:
			heard[r].last = got.last
		default:
			return false
		}
		return true
	})
	all := 0
	for r, rank := range g.ranks {
		ok = ok && heard[r].first == 0 && heard[r].last >= slices.Index(order, rank)
		if heard[r].last == n-1 {
			all++
		}
	}
	return ok && all < n
}
