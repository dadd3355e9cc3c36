package combine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/commq/commq/detect/crc"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/rankset"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// group is a set of messages that one operation may consist of: those of one or more cells, on connected ranks.
type group struct {
	cells         []*ledger.CellSample
	ranks         []int32 // world ranks, sorted
	ways          []ledger.Way
	lists         [][]*ledger.Operand // by way, in send order
	count         []int64             // by way, including messages that were not read
	isComplete    bool
	dense         bool // more ways than any operation has that assembles payloads at one root
	hasAllgathers bool // it contains messages of allgathers over all its ranks
	hasAlltoalls  bool // it contains messages of alltoalls over fewer ranks, perhaps rounds of one over all ranks
}

// combiner searches for operations that assemble, divide or reduce payloads.
type combiner struct {
	facts     *facts
	selves    []Self
	functions map[int32]int32
}

// Input is the input of Find.
type Input struct {
	Rules     *ledger.Rules
	Comms     []run.Comm
	Datatypes []Datatype
	Selves    []Self
	Functions map[int32]int32 // function of each call site, as in Run
	HashBits  int
	Room      int64 // the number of messages that may be read completely
	// Whole reads all messages of the wanted cells.
	Whole func(want map[ledger.Cell]bool) (*ledger.Sample, error)
}

// Find searches for operations that assemble, divide or reduce payloads, using the hashes of the messages, and adds
// them to the ledger. beyond is the number of messages that were not examined for lack of memory.
func Find(in *Input, l *ledger.Ledger, first *ledger.Sample) (beyond int64, err error) {
	c := &combiner{selves: in.Selves, functions: in.Functions, facts: &facts{rules: in.Rules, comms: in.Comms,
		check:  &checker{kindsByDatatype(in.Datatypes), crc.New(max(in.HashBits, 32))},
		takers: ledger.NewOwners(l.Messages, l.Found)}}
	c.facts.indexTokens(l.Messages)
	c.facts.survey(first)
	best, want, whole, beyond := affordable(c.findMatches(first), first, in.Room)
	if !whole {
		all, err := in.Whole(want)
		if err != nil {
			return 0, err
		}
		best = c.findMatches(all)
	}
	for _, b := range best {
		if b.op == ledger.ReduceScatterBlock || b.op == ledger.ReduceScatter {
			joinAllgathers(l, b)
		}
		c.record(l, b)
	}
	return beyond + c.facts.oversized, nil
}

// affordable returns the matches whose messages all fit into room, and the cells of these messages; whole reports
// that the sample already contains all of them. beyond is the number of messages in the other matches.
func affordable(all []*match, s *ledger.Sample, room int64) (best []*match, want map[ledger.Cell]bool, whole bool, beyond int64) {
	want, whole = map[ledger.Cell]bool{}, true
	best = slices.DeleteFunc(all, func(b *match) bool {
		cells := slices.Clone(b.group.cells)
		for k := range b.evidence {
			cells = append(cells, s.Cells[k])
		}
		count := int64(0)
		for _, of := range cells {
			if !want[of.Cell] {
				count += of.Count()
			}
		}
		if count > room {
			beyond += count
			return true
		}
		room -= count
		for _, of := range cells {
			want[of.Cell] = true
			whole = whole && of.IsComplete()
		}
		return false
	})
	return best, want, whole, beyond
}

// findMatches returns the best matches that share no message.
func (c *combiner) findMatches(s *ledger.Sample) []*match {
	c.facts.index(s, c.selves)
	var all []*match
	searched := map[string]bool{}
	for _, scope := range slices.Concat(cellScopes, c.functionScopes()) {
		for _, g := range c.groups(s, scope) {
			if key := g.key(); !searched[key] { // most scopes lead to the same groups
				searched[key] = true
				if found := c.matchGroup(g); found != nil {
					all = append(all, found)
				}
			}
		}
	}
	all = append(all, c.findUpDown(s)...)
	all = append(all, c.findBruck(s)...)
	all = append(all, c.findPacked(s)...)
	slices.SortStableFunc(all, func(a, b *match) int {
		return cmp.Or(cmp.Compare(a.proof.Basis/ledger.ByStructure, b.proof.Basis/ledger.ByStructure),
			cmp.Compare(len(b.group.ranks), len(a.group.ranks)),
			cmp.Compare(a.proof.Basis, b.proof.Basis), cmp.Compare(b.size(), a.size()))
	})
	used := map[*ledger.Operand]bool{}
	var best []*match
	for _, b := range all {
		if b.overlaps(used) {
			continue
		}
		for _, list := range b.group.lists {
			for _, m := range list {
				used[m] = true
			}
		}
		best = append(best, b)
	}
	return append(best, c.findPairs(s, best, used)...)
}

// overlaps reports whether any message of the match is used. All messages count: a group of several cells may share
// only later messages of a way with another match.
func (b *match) overlaps(used map[*ledger.Operand]bool) bool {
	isUsed := func(m *ledger.Operand) bool { return used[m] }
	return slices.ContainsFunc(b.group.lists, func(list []*ledger.Operand) bool {
		return slices.ContainsFunc(list, isUsed)
	})
}

func (b *match) size() int { return len(b.group.ways) }

// cellScopes are the keys by which cells are grouped, one search for each.
var cellScopes = []func(ledger.Cell) (ledger.Cell, bool){
	func(c ledger.Cell) (ledger.Cell, bool) { c.Tag = 0; return c, c.Site != schema.NullInt32 },
	func(c ledger.Cell) (ledger.Cell, bool) { c.Site = 0; return c, true },
	func(c ledger.Cell) (ledger.Cell, bool) { c.Site, c.Tag = 0, 0; return c, true },
	func(c ledger.Cell) (ledger.Cell, bool) {
		c.Tag, c.Bytes = 0, ledger.AnySize
		return c, c.Site != schema.NullInt32
	},
	func(c ledger.Cell) (ledger.Cell, bool) { c.Site, c.Bytes = 0, ledger.AnySize; return c, true },
	func(c ledger.Cell) (ledger.Cell, bool) { c.Site, c.Tag, c.Bytes = 0, 0, ledger.AnySize; return c, true },
}

// functionScopes group the cells whose call sites are in the same function: the two halves of a tree (up and down),
// or the messages that surplus ranks exchange before and after the main part.
func (c *combiner) functionScopes() []func(ledger.Cell) (ledger.Cell, bool) {
	in := func(k ledger.Cell) (ledger.Cell, bool) {
		f, known := c.functions[k.Site]
		k.Site, k.Tag = f, 0
		return k, known
	}
	untagged := func(k ledger.Cell) (ledger.Cell, bool) { k.Bytes = ledger.AnySize; return in(k) }
	tagged := func(k ledger.Cell) (ledger.Cell, bool) { // a compiler may unroll a loop; others send other tags
		tag := k.Tag
		k, known := untagged(k)
		k.Tag = tag
		return k, known
	}
	return []func(ledger.Cell) (ledger.Cell, bool){in, untagged, tagged}
}

// sitesOf returns the call sites that send a group's messages.
func sitesOf(g *group) map[int32]bool {
	out := map[int32]bool{}
	for _, of := range g.cells {
		out[of.Cell.Site] = true
	}
	return out
}

// key identifies a group by its cells and one of its ranks: groups of the same cells share no rank.
func (g *group) key() string {
	key := binary.LittleEndian.AppendUint32(nil, uint32(g.ranks[0]))
	for _, of := range g.cells {
		key = binary.LittleEndian.AppendUint32(key, uint32(of.Number))
	}
	return string(key)
}

// maxWays returns the largest number of ways that an operation with a root can have; a group with more is dense.
func maxWays(ranks int) int {
	log := 0
	for n := 1; n < ranks; n *= 2 {
		log++
	}
	return ranks * (log + 2)
}

// groups returns the cells of a scope, divided into groups of connected ranks.
func (c *combiner) groups(s *ledger.Sample, scope func(ledger.Cell) (ledger.Cell, bool)) (out []*group) {
	for _, class := range ledger.GroupBy(s.Order, func(_ int, of *ledger.CellSample) (ledger.Cell, bool) { return scope(of.Cell) }) {
		out = append(out, c.components(class)...)
	}
	return out
}

// components divides cells into groups of connected ranks. It omits groups with messages that already belong to
// another operation (isTaken).
func (c *combiner) components(class []*ledger.CellSample) (out []*group) {
	connected := rankset.Groups{}
	for _, of := range class {
		for w := range of.Ways {
			if w.Src != w.Dst {
				connected.Join(w.Src, w.Dst)
			}
		}
	}
	groups := map[int32]*group{}
	at := map[ledger.Way]int{}
	for _, of := range class {
		seen := map[int32]bool{}
		for _, w := range ledger.SortedWays(of.Ways) {
			if w.Src == w.Dst {
				continue
			}
			list := of.Ways[w]
			root := connected.Root(w.Src)
			g := groups[root]
			if g == nil {
				g = &group{isComplete: true}
				groups[root] = g
				out = append(out, g)
			}
			if !seen[root] {
				seen[root] = true
				g.cells = append(g.cells, of)
			}
			k, ok := at[w]
			if !ok {
				k = len(g.ways)
				at[w] = k
				g.ways, g.lists, g.count = append(g.ways, w), append(g.lists, nil), append(g.count, 0)
				g.ranks = append(g.ranks, w.Src, w.Dst)
			}
			g.count[k] += list.Count
			g.isComplete = g.isComplete && list.Count == int64(len(list.List))
			for i := range list.List {
				g.lists[k] = append(g.lists[k], &list.List[i])
			}
		}
	}
	for _, g := range out {
		slices.Sort(g.ranks)
		g.ranks = slices.Compact(g.ranks)
		for _, list := range g.lists {
			slices.SortFunc(list, func(a, b *ledger.Operand) int { return cmp.Compare(a.SendSeq, b.SendSeq) })
		}
	}
	for _, g := range out {
		g.dense = len(g.ways) > maxWays(len(g.ranks))
	}
	return slices.DeleteFunc(out, c.isTaken)
}

// isTaken reports whether a group contains messages of operations other than broadcasts and allgathers. An allgather
// over fewer ranks may be one round of recursive doubling. An allgather over all ranks may be a reduction of pairs
// that selects another rank's pair each time.
func (c *combiner) isTaken(g *group) bool {
	for _, list := range g.lists {
		for _, m := range list {
			i := c.facts.owner(m)
			if i == nil || i.Op == ledger.Bcast {
				continue
			}
			if i.Op == ledger.Alltoall && len(i.Ranks) < len(g.ranks) {
				g.hasAlltoalls = true
				continue
			}
			if i.Op != ledger.Allgather && i.Op != ledger.Allgatherv {
				return true
			}
			g.hasAllgathers = g.hasAllgathers || len(i.Ranks) >= len(g.ranks)
		}
	}
	return false
}

// match is an operation that a group repeats.
type match struct {
	group     *group
	op        ledger.Operation
	proof     ledger.Proof // shared by all instances
	checks    int64
	instances []repetition
	evidence  map[ledger.Cell]bool // cells of messages that carry results
}

// repetition is one occurrence of a match.
type repetition struct {
	messages  []*ledger.Operand
	root      int32 // world rank
	bytes     int64
	rankBytes []int64
}

// findUpDown joins messages that go up to a root with those that come down from it: an allreduce.
func (c *combiner) findUpDown(s *ledger.Sample) (out []*match) {
	type kind struct {
		ranks          string
		comm, datatype int32
		bytes, count   int64
	}
	ups, downs := map[kind][]*group{}, map[kind][]*group{}
	var order []kind
	for k, scope := range cellScopes[:2] {
		for _, g := range c.groups(s, scope) {
			if g.dense || len(g.ways) != len(g.ranks)-1 || slices.Min(g.count) != slices.Max(g.count) {
				continue
			}
			if k == 1 && len(g.cells) == 1 && g.cells[0].Cell.Site != schema.NullInt32 {
				continue // the first scope already has this group
			}
			of := g.cells[0].Cell
			id := kind{fmt.Sprint(g.ranks), of.Comm, of.Datatype, of.Bytes, g.count[0]}
			if converges(g, false) {
				if ups[id] == nil {
					order = append(order, id)
				}
				ups[id] = append(ups[id], g)
			}
			if converges(g, true) && (len(g.ranks) > 2 || !converges(g, false)) { // a chain does both ways
				downs[id] = append(downs[id], g)
			}
		}
	}
	for _, id := range order {
		for _, up := range ups[id] {
			for _, down := range downs[id] {
				if g := joinGroups(up, down); g != nil {
					if b := c.matchGroup(g); b != nil && b.op == ledger.Allreduce {
						out = append(out, b)
					}
				}
			}
		}
	}
	return out
}

// converges reports whether every rank but one sends to exactly one rank (reverse: receives from exactly one).
func converges(g *group, reverse bool) bool {
	out := map[int32]bool{}
	for _, w := range g.ways {
		r := w.Src
		if reverse {
			r = w.Dst
		}
		if out[r] {
			return false
		}
		out[r] = true
	}
	return true
}

// joinGroups returns one group with the messages of both, or nil if they share a way.
func joinGroups(a, b *group) *group {
	for _, w := range a.ways {
		if slices.Contains(b.ways, w) {
			return nil
		}
	}
	return &group{cells: slices.Concat(a.cells, b.cells), ranks: a.ranks, ways: slices.Concat(a.ways, b.ways),
		lists: slices.Concat(a.lists, b.lists),
		count: slices.Concat(a.count, b.count), isComplete: a.isComplete && b.isComplete}
}

// maxPairBytes is the largest payload, in bytes, of an exchange that findPairs accepts.
const maxPairBytes = 64

// findPairs returns exchanges of a few numbers between two ranks that also have a verified allreduce with the same
// pattern. A two-rank exchange has no later result to compare, so these matches are inferred.
func (c *combiner) findPairs(s *ledger.Sample, best []*match, used map[*ledger.Operand]bool) (out []*match) {
	twos := map[string]*match{}
	for _, b := range best {
		if b.op == ledger.Allreduce && b.proof.Basis == ledger.ByPayload && len(b.group.ranks) == 2 {
			twos[fmt.Sprint(b.group.ranks, b.group.cells[0].Cell.Datatype)] = b
		}
	}
	if len(twos) == 0 {
		return nil
	}
	for _, g := range c.groups(s, cellScopes[0]) {
		like := twos[fmt.Sprint(g.ranks, g.cells[0].Cell.Datatype)]
		b := &match{group: g, op: ledger.Allreduce, proof: ledger.Proof{Basis: ledger.ByStructure}}
		if like == nil || len(g.ways) != 2 || g.cells[0].Cell.Bytes > maxPairBytes || b.overlaps(used) ||
			slices.Min(g.count) != slices.Max(g.count) {
			continue
		}
		for k := range min(len(g.lists[0]), len(g.lists[1])) {
			x, y := g.lists[0][k], g.lists[1][k]
			if x.DoneSeq < y.SendSeq || y.DoneSeq < x.SendSeq { // y answers x, or x answers y
				b = nil
				break
			}
			b.instances = append(b.instances,
				repetition{messages: []*ledger.Operand{x, y}, root: schema.NullInt32, bytes: x.Bytes})
		}
		if b != nil {
			out = append(out, b)
		}
	}
	return out
}

// record adds the instances of a match to the ledger and removes the broadcasts that they consist of. A broadcast
// that also has other messages is replaced only by a verified match.
func (c *combiner) record(l *ledger.Ledger, b *match) {
	rests := b.proof // a copy, so that instances do not keep the operands in memory
	gone := map[*ledger.Instance]bool{}
	covered := map[*ledger.Instance]int{}
	for k := range b.instances {
		for _, m := range b.instances[k].messages {
			if old := c.facts.owner(m); old != nil {
				covered[old]++
			}
		}
	}
	for old, n := range covered {
		if (n < len(old.Messages) || old.Op != ledger.Bcast && b.op != ledger.Allreduce && b.op != ledger.Alltoall) &&
			b.proof.Basis != ledger.ByPayload {
			return
		}
	}
	for k := range b.instances {
		in := &b.instances[k]
		i := &ledger.Instance{Op: b.op, Root: in.root, Ranks: b.group.ranks, Bytes: in.bytes, RankBytes: in.rankBytes,
			Segments: 1, Proof: &rests}
		if k == 0 {
			i.Checks = b.checks
		}
		first := true
		for _, m := range in.messages {
			if old := c.facts.owner(m); old != nil {
				gone[old] = true
			}
			if m.Src == in.root && first {
				i.First, i.Buffer, first = m.SendSeq, m.Buffer, false
			}
			m.Message.Taken = true
			i.Messages = append(i.Messages, int32(len(l.Messages)))
			l.Messages = append(l.Messages, m.Message)
		}
		l.Found = append(l.Found, i)
	}
	l.Found = slices.DeleteFunc(l.Found, func(i *ledger.Instance) bool { return gone[i] })
}
