package spread

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/rankset"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Composer builds other operations from broadcasts.
type Composer struct {
	Rules  *ledger.Rules
	Ledger *ledger.Ledger
	Comms  []run.Comm
}

// ofRanks groups instances on the same ranks.
type ofRanks struct {
	ranks    string
	datatype int32
	root     int32
	empty    bool
}

func (c *Composer) ofRanks(i *ledger.Instance) ofRanks {
	return ofRanks{fmt.Sprint(i.Ranks), c.Rules.ElementType(&c.Ledger.Messages[i.Messages[0]], schema.NullInt32), i.Root, i.Bytes == 0}
}

// Gathers merges the segments of a broadcast into one, and concurrent broadcasts of all ranks into allgathers.
func (c *Composer) Gathers() {
	byRoot := map[ofRanks][]*ledger.Instance{}
	var order []ofRanks
	var rest []*ledger.Instance
	for _, i := range c.Ledger.Found {
		if i.Op != ledger.Bcast {
			rest = append(rest, i)
			continue
		}
		k := c.ofRanks(i)
		if byRoot[k] == nil {
			order = append(order, k)
		}
		byRoot[k] = append(byRoot[k], i)
	}
	byRanks := map[ofRanks][]*ledger.Instance{}
	var groups []ofRanks
	for _, k := range order {
		list := byRoot[k]
		slices.SortStableFunc(list, func(a, b *ledger.Instance) int { return cmp.Compare(a.First, b.First) })
		k.root = schema.NullInt32
		if byRanks[k] == nil {
			groups = append(groups, k)
		}
		for _, class := range sharers(c.Ledger.Messages, list, site) { // what is adjacent by accident is sent elsewhere
			byRanks[k] = append(byRanks[k], c.segments(class)...)
		}
	}
	c.Ledger.Found = rest
	for _, k := range groups {
		c.Ledger.Found = append(c.Ledger.Found, c.allgathers(byRanks[k])...)
	}
}

// site returns the call site of a message, or its tag if the site is unknown.
func site(m *ledger.Message) any {
	if m.SendSite == schema.NullInt32 {
		return [2]int32{0, m.Tag}
	}
	return [2]int32{1, m.SendSite}
}

// segments merges successive broadcasts from one root whose payloads are adjacent in its memory.
func (c *Composer) segments(list []*ledger.Instance) (out []*ledger.Instance) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && disjointBuffers(list[:n], list[n]) && !c.tagsDiffer(list[0], list[n]) {
			n++
		}
		batch := slices.Clone(list[:n])
		list = list[n:]
		slices.SortFunc(batch, func(a, b *ledger.Instance) int { return cmp.Compare(uint64(a.Buffer), uint64(b.Buffer)) })
		whole := batch[:1:1]
		before := *batch[0]
		for _, i := range batch[1:] {
			last := whole[len(whole)-1]
			joins := c.adjacent(&before, i)
			before = *i
			if !joins {
				whole = append(whole, i)
				continue
			}
			last.Messages = append(last.Messages, i.Messages...)
			last.Bytes += i.Bytes
			last.Segments += i.Segments
			last.Possible = slices.DeleteFunc(slices.Clone(last.Possible),
				func(r int32) bool { return !slices.Contains(i.Possible, r) })
			last.Repeated = last.Repeated && i.Repeated
			last.First, last.Last = min(last.First, i.First), max(last.Last, i.Last)
		}
		out = append(out, whole...)
	}
	slices.SortStableFunc(out, func(a, b *ledger.Instance) int { return cmp.Compare(a.First, b.First) })
	return out
}

// tagsDiffer reports whether broadcasts of derived datatypes have different tags: the gaps between them are then
// unexplained.
func (c *Composer) tagsDiffer(a, b *ledger.Instance) bool {
	x, y := &c.Ledger.Messages[a.Messages[0]], &c.Ledger.Messages[b.Messages[0]]
	return !c.Rules.Named[x.Datatype] && !c.Rules.Named[y.Datatype] && (x.Comm != y.Comm || x.Tag != y.Tag)
}

// adjacent reports whether the second broadcast's payload follows the first's in memory. A derived datatype has gaps:
// its segments must have one tag and be pieces of a message, or equal parts of a whole except for a remainder.
func (c *Composer) adjacent(a, b *ledger.Instance) bool {
	if a.Bytes == 0 || a.Buffer == schema.NullInt64 || b.Buffer == schema.NullInt64 {
		return false
	}
	x, y := &c.Ledger.Messages[a.Messages[0]], &c.Ledger.Messages[b.Messages[0]]
	end := a.Buffer + a.Bytes
	if end >= b.Buffer || c.Rules.Named[x.Datatype] || c.Rules.Named[y.Datatype] {
		return end == b.Buffer
	}
	more := b.Bytes - a.Bytes
	return x.Comm == y.Comm && x.Tag == y.Tag &&
		(hasPiece(c.Ledger.Messages, a) || hasPiece(c.Ledger.Messages, b) || max(more, -more) < maxElement*int64(len(a.Ranks)))
}

// maxElement is the size of the largest elements that are divided evenly: double precision complex.
const maxElement = 16

// hasPiece reports whether an instance contains a piece of a message.
func hasPiece(messages []ledger.Message, i *ledger.Instance) bool {
	return slices.ContainsFunc(i.Messages, func(m int32) bool { return messages[m].Carrier != ledger.None })
}

// maxSegments limits the number of broadcasts that are tried as segments of one.
const maxSegments = 1 << 12

// disjointBuffers reports whether an instance's payload overlaps no other of the batch in the root's memory.
func disjointBuffers(batch []*ledger.Instance, i *ledger.Instance) bool {
	if i.Buffer == schema.NullInt64 || i.Bytes == 0 || len(batch) >= maxSegments {
		return false
	}
	for _, b := range batch {
		if b.Buffer == schema.NullInt64 || b.Bytes == 0 || uint64(i.Buffer) < uint64(b.Buffer)+uint64(b.Bytes) &&
			uint64(b.Buffer) < uint64(i.Buffer)+uint64(i.Bytes) {
			return false
		}
	}
	return true
}

// allgathers looks for allgathers among broadcasts on the same ranks, first among those with common call sites and
// tags.
func (c *Composer) allgathers(list []*ledger.Instance) (out []*ledger.Instance) {
	for _, shared := range []func(*ledger.Message) any{
		func(m *ledger.Message) any { return [2]int32{m.Tag, m.SendSite} },
		func(m *ledger.Message) any { return m.SendSite },
		func(*ledger.Message) any { return nil },
	} {
		var rest []*ledger.Instance
		for _, class := range sharers(c.Ledger.Messages, list, shared) {
			made, ok := c.allgather(class)
			if ok {
				out = append(out, made...)
			} else {
				rest = append(rest, class...)
			}
		}
		list = rest
	}
	return append(out, list...)
}

// sharers splits instances, keeping their order, by what their messages share.
func sharers(messages []ledger.Message, list []*ledger.Instance, key func(*ledger.Message) any) [][]*ledger.Instance {
	joined := rankset.Groups{}
	first := map[any]int32{}
	for i, in := range list {
		for _, m := range in.Messages {
			k := key(&messages[m])
			j, ok := first[k]
			if !ok {
				first[k] = int32(i)
				continue
			}
			joined.Join(int32(i), j)
		}
	}
	return ledger.GroupBy(list, func(i int, _ *ledger.Instance) (int32, bool) { return joined.Root(int32(i)), true })
}

// allgather merges the k-th broadcasts of all ranks if every rank is a root equally often, unless they come one after
// the other. ok reports whether there are any.
func (c *Composer) allgather(list []*ledger.Instance) (out []*ledger.Instance, ok bool) {
	byRoot := map[int32][]*ledger.Instance{}
	for _, i := range list {
		byRoot[i.Root] = append(byRoot[i.Root], i)
	}
	n := len(list[0].Ranks)
	if len(byRoot) != n || len(list)%n != 0 {
		return nil, false
	}
	for _, of := range byRoot {
		if len(of) != len(list)/n {
			return nil, false
		}
	}
	for k := range len(list) / n {
		var set []*ledger.Instance
		for _, root := range list[0].Ranks {
			set = append(set, byRoot[root][k])
		}
		if oneByOne(c.Ledger.Messages, set) {
			out = append(out, set...)
			continue
		}
		out = append(out, merge(set))
		ok = true
	}
	return out, ok
}

// merge merges broadcasts into an allgather.
func merge(set []*ledger.Instance) *ledger.Instance {
	g := &ledger.Instance{Op: ledger.Allgather, Root: schema.NullInt32, Ranks: set[0].Ranks, Segments: 1, Repeated: true,
		First: set[0].First}
	for _, i := range set {
		g.Messages = append(g.Messages, i.Messages...)
		if i.Bytes != set[0].Bytes {
			g.Op = ledger.Allgatherv
		}
		g.Bytes, g.Segments = max(g.Bytes, i.Bytes), max(g.Segments, i.Segments)
		g.Repeated = g.Repeated && i.Repeated
		g.RankBytes = append(g.RankBytes, i.Bytes) // in the order of the ranks, as in the set
	}
	if g.Op == ledger.Allgather {
		g.RankBytes = nil
	}
	return g
}

// oneByOne reports whether every root had the payloads of all earlier roots before it sent, as in a loop over the
// roots: what it sends may then depend on what it received.
func oneByOne(messages []ledger.Message, set []*ledger.Instance) bool {
	first := map[int32]int64{}
	for _, i := range set {
		first[i.Root] = i.First
	}
	before := map[ledger.Way]bool{}
	for _, i := range set {
		for _, m := range i.Messages {
			if msg := &messages[m]; msg.Dst != i.Root && msg.DoneSeq < first[msg.Dst] {
				before[ledger.Way{Src: i.Root, Dst: msg.Dst}] = true
			}
		}
	}
	return isTotalOrder(before, len(set))
}

// isTotalOrder reports whether a relation orders n things totally.
func isTotalOrder(before map[ledger.Way]bool, n int) bool {
	for w := range before {
		if before[ledger.Way{Src: w.Dst, Dst: w.Src}] {
			return false
		}
	}
	return len(before) == n*(n-1)/2
}
