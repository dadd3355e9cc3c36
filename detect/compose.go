package detect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/commq/commq/schema"
)

// ofRanks is the key of instances on the same ranks.
type ofRanks struct {
	ranks    string
	datatype int32
	root     int32
	empty    bool
}

func (d *detector) ofRanks(i *instance) ofRanks {
	return ofRanks{fmt.Sprint(i.ranks), d.elements(&d.messages[i.messages[0]], schema.NullInt32), i.root, i.bytes == 0}
}

// gathers makes one broadcast of those of its segments, and allgathers of broadcasts that go on together.
func (d *detector) gathers() {
	byRoot := map[ofRanks][]*instance{}
	var order []ofRanks
	var rest []*instance
	for _, i := range d.found {
		if i.op != Bcast {
			rest = append(rest, i)
			continue
		}
		k := d.ofRanks(i)
		if byRoot[k] == nil {
			order = append(order, k)
		}
		byRoot[k] = append(byRoot[k], i)
	}
	byRanks := map[ofRanks][]*instance{}
	var groups []ofRanks
	for _, k := range order {
		list := byRoot[k]
		slices.SortStableFunc(list, func(a, b *instance) int { return cmp.Compare(a.first, b.first) })
		k.root = schema.NullInt32
		if byRanks[k] == nil {
			groups = append(groups, k)
		}
		for _, class := range d.sharing(list, whence) { // what lies side by side by accident is sent elsewhere
			byRanks[k] = append(byRanks[k], d.segments(class)...)
		}
	}
	d.found = rest
	for _, k := range groups {
		d.found = append(d.found, d.allgathers(byRanks[k])...)
	}
}

// whence is the call site of a message, or its tag where that is not known.
func whence(m *message) any {
	if m.sendSite == schema.NullInt32 {
		return [2]int32{0, m.tag}
	}
	return [2]int32{1, m.sendSite}
}

// segments puts together broadcasts from one root, in its order, whose payloads lie side by side in its memory.
func (d *detector) segments(list []*instance) (out []*instance) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && apart(list[:n], list[n]) && !d.parted(list[0], list[n]) {
			n++
		}
		batch := slices.Clone(list[:n])
		list = list[n:]
		slices.SortFunc(batch, func(a, b *instance) int { return cmp.Compare(uint64(a.buffer), uint64(b.buffer)) })
		whole := batch[:1:1]
		before := *batch[0]
		for _, i := range batch[1:] {
			last := whole[len(whole)-1]
			joins := d.beside(&before, i)
			before = *i
			if !joins {
				whole = append(whole, i)
				continue
			}
			last.messages = append(last.messages, i.messages...)
			last.bytes += i.bytes
			last.segments += i.segments
			last.possible = slices.DeleteFunc(slices.Clone(last.possible), func(r int32) bool { return !slices.Contains(i.possible, r) })
			last.repeat = last.repeat && i.repeat
			last.first, last.last = min(last.first, i.first), max(last.last, i.last)
		}
		out = append(out, whole...)
	}
	slices.SortStableFunc(out, func(a, b *instance) int { return cmp.Compare(a.first, b.first) })
	return out
}

// parted says whether broadcasts of derived datatypes are sent with different tags: what lies between them is not known.
func (d *detector) parted(a, b *instance) bool {
	x, y := &d.messages[a.messages[0]], &d.messages[b.messages[0]]
	return !d.named[x.datatype] && !d.named[y.datatype] && (x.comm != y.comm || x.tag != y.tag)
}

// beside says whether what the second broadcast sends lies behind what the first does. A derived datatype has gaps: then they must be
// sent with the same tag, and be parts of a message, or a whole cut into parts of equal size but for a remainder.
func (d *detector) beside(a, b *instance) bool {
	if a.bytes == 0 || a.buffer == schema.NullInt64 || b.buffer == schema.NullInt64 {
		return false
	}
	x, y := &d.messages[a.messages[0]], &d.messages[b.messages[0]]
	end := a.buffer + a.bytes
	if end >= b.buffer || d.named[x.datatype] || d.named[y.datatype] {
		return end == b.buffer
	}
	more := b.bytes - a.bytes
	return x.comm == y.comm && x.tag == y.tag && (d.apiece(a) || d.apiece(b) || max(more, -more) < mostElement*int64(len(a.ranks)))
}

// mostElement is the size of the largest elements that are cut evenly: complex numbers in double precision.
const mostElement = 16

// apiece says whether a message of an instance is part of another.
func (d *detector) apiece(i *instance) bool {
	return slices.ContainsFunc(i.messages, func(m int32) bool { return d.messages[m].whole != none })
}

// mostSegments bounds how many broadcasts are looked at for segments of one.
const mostSegments = 1 << 12

// apart says whether an instance's payload lies in memory of the root that no other of the batch's lies in.
func apart(batch []*instance, i *instance) bool {
	if i.buffer == schema.NullInt64 || i.bytes == 0 || len(batch) >= mostSegments {
		return false
	}
	for _, b := range batch {
		if b.buffer == schema.NullInt64 || b.bytes == 0 || uint64(i.buffer) < uint64(b.buffer)+uint64(b.bytes) && uint64(b.buffer) < uint64(i.buffer)+uint64(i.bytes) {
			return false
		}
	}
	return true
}

// allgathers looks for allgathers among broadcasts on the same ranks: first of all among those that share call sites and tags.
func (d *detector) allgathers(list []*instance) (out []*instance) {
	for _, shared := range []func(*message) any{
		func(m *message) any { return [2]int32{m.tag, m.sendSite} },
		func(m *message) any { return m.sendSite },
		func(*message) any { return nil },
	} {
		var rest []*instance
		for _, class := range d.sharing(list, shared) {
			made, ok := d.allgather(class)
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

// sharing splits instances, in their order, by what their messages share.
func (d *detector) sharing(list []*instance, key func(*message) any) [][]*instance {
	sharers := circles{}
	first := map[any]int32{}
	for i, in := range list {
		for _, m := range in.messages {
			k := key(&d.messages[m])
			j, ok := first[k]
			if !ok {
				first[k] = int32(i)
				continue
			}
			sharers.join(int32(i), j)
		}
	}
	return byKey(list, func(i int, _ *instance) (int32, bool) { return sharers.of(int32(i)), true })
}

// allgather makes allgathers of the k-th broadcasts of all ranks, where each rank is as often a root as every other, unless they come one
// after the other. It says whether there is any.
func (d *detector) allgather(list []*instance) (out []*instance, ok bool) {
	byRoot := map[int32][]*instance{}
	for _, i := range list {
		byRoot[i.root] = append(byRoot[i.root], i)
	}
	n := len(list[0].ranks)
	if len(byRoot) != n || len(list)%n != 0 {
		return nil, false
	}
	for _, of := range byRoot {
		if len(of) != len(list)/n {
			return nil, false
		}
	}
	for k := range len(list) / n {
		var set []*instance
		for _, root := range list[0].ranks {
			set = append(set, byRoot[root][k])
		}
		if d.oneByOne(set) {
			out = append(out, set...)
			continue
		}
		out = append(out, together(set))
		ok = true
	}
	return out, ok
}

// together is the allgather of broadcasts.
func together(set []*instance) *instance {
	g := &instance{op: Allgather, root: schema.NullInt32, ranks: set[0].ranks, segments: 1, repeat: true, first: set[0].first}
	for _, i := range set {
		g.messages = append(g.messages, i.messages...)
		if i.bytes != set[0].bytes {
			g.op = Allgatherv
		}
		g.bytes, g.segments = max(g.bytes, i.bytes), max(g.segments, i.segments)
		g.repeat = g.repeat && i.repeat
		g.rankBytes = append(g.rankBytes, i.bytes) // in the order of the ranks, as the set is
	}
	if g.op == Allgather {
		g.rankBytes = nil
	}
	return g
}

// oneByOne says whether broadcasts of all ranks come in an order in which every root has had the payloads of all before, as in a
// loop over the roots: what is sent may then depend on what was received.
func (d *detector) oneByOne(set []*instance) bool {
	first := map[int32]int64{}
	for _, i := range set {
		first[i.root] = i.first
	}
	before := map[way]bool{}
	for _, i := range set {
		for _, m := range i.messages {
			if msg := &d.messages[m]; msg.dst != i.root && msg.doneSeq < first[msg.dst] {
				before[way{i.root, msg.dst}] = true
			}
		}
	}
	return total(before, len(set))
}

// total says whether a relation orders n things totally: each two one way or the other.
func total(before map[way]bool, n int) bool {
	for w := range before {
		if before[way{w.dst, w.src}] {
			return false
		}
	}
	return len(before) == n*(n-1)/2
}

// exchanges finds what every rank sends to every other directly, among messages of one size first.
func (d *detector) exchanges() error {
	for kind := range kinds(&message{}) {
		if d.passes != nil {
			if err := d.exchangesInPasses(kind); err != nil {
				return err
			}
			continue
		}
		byKind := split(d.messages, d.all(), func(m *message) exchange { return kinds(m)[kind] })
		for _, list := range byKind {
			for _, c := range d.connected(list) {
				d.exchange(c)
			}
		}
	}
	return nil
}

// exchangesFirst takes broadcasts that roots do themselves, without the help of others, for parts of alltoalls where they are some: a rank may
// send the same to all others in one.
func (d *detector) exchangesFirst() error {
	d.found = slices.DeleteFunc(d.found, func(i *instance) bool {
		if i.op != Bcast || !d.direct(i) || i.segments > 1 || slices.ContainsFunc(i.messages, func(m int32) bool { return d.messages[m].whole != none }) {
			return false
		}
		d.aside = append(d.aside, i)
		for _, m := range i.messages {
			d.messages[m].taken = false
		}
		return true
	})
	if err := d.exchanges(); err != nil {
		return err
	}
	for _, i := range d.aside {
		if !slices.ContainsFunc(i.messages, func(m int32) bool { return d.messages[m].taken }) {
			d.take(i)
		}
	}
	d.aside = nil
	return nil
}

// exchange makes alltoalls of messages of one class on connected ranks, where all of them are part of one.
func (d *detector) exchange(list []int32) {
	n := len(newNumbers(d.messages, list).ranks)
	if n < d.options.MinRanks || len(list)%(n*(n-1)) != 0 {
		return
	}
	ways := map[way][]int32{}
	for _, m := range list {
		w := way{d.messages[m].src, d.messages[m].dst}
		if ways[w] = append(ways[w], m); len(ways[w]) > len(list)/(n*(n-1)) {
			return
		}
	}
	if len(ways) != n*(n-1) {
		return
	}
	times := len(list) / len(ways)
	for _, w := range ways {
		if len(w) != times {
			return
		}
		slices.SortFunc(w, func(a, b int32) int { return cmp.Compare(d.messages[a].sendSeq, d.messages[b].sendSeq) })
	}
	var found []*instance
	ends := map[int32]int64{} // of the instance before, by rank
	for k := range times {
		i := d.alltoall(ways, k)
		if i.bytes == 0 || !d.after(i, ends) || d.rotates(i) {
			return
		}
		found = append(found, i)
	}
	for _, i := range found {
		d.take(i)
	}
}

// alltoall is the instance of the k-th message of each way.
func (d *detector) alltoall(ways map[way][]int32, k int) *instance {
	i := &instance{op: Alltoall, root: schema.NullInt32, segments: 1}
	sizes := map[int64]bool{}
	sum := map[int32]int64{}
	for w, list := range ways {
		m := &d.messages[list[k]]
		i.messages = append(i.messages, list[k])
		sizes[m.bytes] = true
		if sum[w.src] == 0 {
			i.ranks = append(i.ranks, w.src)
		}
		sum[w.src] += max(m.bytes, 1)
		i.bytes = max(i.bytes, m.bytes)
	}
	slices.Sort(i.messages)
	slices.Sort(i.ranks)
	i.ranks = slices.Compact(i.ranks)
	i.first = d.messages[i.messages[0]].sendSeq
	if len(sizes) > 1 {
		i.op, i.bytes = Alltoallv, 0
		for _, s := range sum {
			i.bytes = max(i.bytes, s)
		}
		return i
	}
	i.bytes *= int64(len(i.ranks) - 1)
	return i
}

// after says whether every rank sends its part of the instance after all that it sends in the instance before, and notes its end.
func (d *detector) after(i *instance, ends map[int32]int64) bool {
	last := map[int32]int64{}
	for _, m := range i.messages {
		m := &d.messages[m]
		if end, ok := ends[m.src]; ok && m.sendSeq <= end {
			return false
		}
		last[m.src] = max(last[m.src], m.sendSeq)
	}
	for r, end := range last {
		ends[r] = end
	}
	return true
}

// rotates says whether an exchange is a loop over roots that scatter, or that gather, one after the other.
func (d *detector) rotates(i *instance) bool {
	firstSend, lastRecv := map[int32]int64{}, map[int32]int64{}
	for _, m := range i.messages {
		m := &d.messages[m]
		if s, ok := firstSend[m.src]; !ok || m.sendSeq < s {
			firstSend[m.src] = m.sendSeq
		}
		lastRecv[m.dst] = max(lastRecv[m.dst], m.doneSeq)
	}
	scatters, gathers := map[way]bool{}, map[way]bool{}
	for _, m := range i.messages {
		m := &d.messages[m]
		if m.doneSeq < firstSend[m.dst] {
			scatters[way{m.src, m.dst}] = true
		}
		if m.sendSeq > lastRecv[m.src] {
			gathers[way{m.src, m.dst}] = true
		}
	}
	return total(scatters, len(i.ranks)) || total(gathers, len(i.ranks))
}
