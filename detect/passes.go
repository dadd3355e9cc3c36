package detect

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/payloads"
)

// passes is how messages are looked at for which there is no memory at once: those of some payloads in each pass. Which messages of other payloads there are makes
// no difference to what is found among those of one, so that all passes together find what one would. What is kept of a pass is what was found in it.
type passes struct {
	all     int64             // messages
	sizes   []int64           // messages, and pieces, by bucket of their payloads
	cut     map[payload]bool  // payloads of messages that carry several
	full    map[payload]int64 // by payload of which not all messages are looked at the last one that is
	divided map[int64]bool    // messages by ordinal that are looked at in pieces
	taken   map[int64]bool    // messages by ordinal that were taken as what they are before others were looked at in pieces
	todo    []part
	next    int // of todo

	messages []message // what is kept, in any order
	keys     []rowKey
	found    []*instance
	wholes   map[int64]int32 // by ordinal: place in messages of one that is kept because a piece of it is
}

// part are the payloads that one pass looks at, by their buckets.
type part struct {
	first, end int
	wholes     bool // those of messages that carry several payloads, as what they are
	size       int64
}

// rowKey is where a message is in the run: pieces of messages come behind all messages.
type rowKey struct {
	ordinal int64
	piece   int32 // of the message, from 1 on; 0: the message
}

func (k rowKey) compare(o rowKey) int {
	return cmp.Or(cmp.Compare(min(k.piece, 1), min(o.piece, 1)), cmp.Compare(k.ordinal, o.ordinal), cmp.Compare(k.piece, o.piece))
}

// buckets is how many there are, to which payloads are dealt: a pass looks at one or more of them.
const buckets = 1 << 14

func bucketOf(hash, bytes int64) int { return int(payloads.Key(hash, bytes) % buckets) }

func newPasses() *passes {
	return &passes{sizes: make([]int64, buckets), cut: map[payload]bool{}, full: map[payload]int64{}, divided: map[int64]bool{}, taken: map[int64]bool{},
		wholes: map[int64]int32{}}
}

// count counts a message that may be part of something by its payload, and its pieces by theirs.
func (p *passes) count(of payload, often bool, pieces []piece) {
	p.all++
	if often || len(pieces) > 0 {
		p.sizes[bucketOf(of.hash, of.bytes)]++
	}
	for _, x := range pieces {
		p.sizes[bucketOf(x.hash, x.bytes)]++
		p.cut[of] = true
	}
}

// plan deals the buckets to passes of about so many messages.
func (p *passes) plan(room int64) {
	withCut := map[int]bool{}
	for of := range p.cut {
		withCut[bucketOf(of.hash, of.bytes)] = true
	}
	for _, wholes := range []bool{true, false} {
		at := part{wholes: wholes}
		for b, n := range p.sizes {
			if wholes && !withCut[b] {
				n = 0
			}
			if at.size > 0 && at.size+n > room {
				at.end = b
				p.todo = append(p.todo, at)
				at = part{first: b, wholes: wholes}
			}
			at.size += n
		}
		if at.end = len(p.sizes); at.size > 0 {
			p.todo = append(p.todo, at)
		}
	}
}

// has says whether a payload is of a part.
func (t *part) has(hash, bytes int64) bool {
	b := bucketOf(hash, bytes)
	return b >= t.first && b < t.end
}

// candidate is a message that may be part of something.
type candidate struct {
	b       *schema.Messages
	row     int
	ordinal int64
	payload payload
	pieces  []piece // of which payloads are sent often enough
	often   bool    // its own is
}

// candidates goes through the messages that may be part of what spreads, or too of exchanges, and calls add with those that want wants, when all their columns are
// there. want sees those in streamColumns, of what spreads only those of payloads.
func (d *detector) candidates(exchanges bool, want func(c *candidate) bool, add func(c *candidate, m message)) error {
	columns, exchanged := payloadColumns, exchanges && d.streams.exchangers.any()
	switch {
	case exchanges:
		columns = streamColumns
	case d.streams.selves:
		columns = rankColumns
	}
	ordinal := int64(-1)
	var wanted []candidate
	return d.sharedRows(columns, func(b *schema.Messages, list []int32, looked bool, rest schema.Rest) error {
		wanted = wanted[:0]
		some, err := d.hashes(b, list, looked, exchanged, rest)
		if err != nil {
			return err
		}
		for _, i := range list {
			if d.streams.selves && b.Src[i] == b.Dst[i] {
				continue
			}
			if ordinal++; !some {
				continue
			}
			c := candidate{b: b, row: int(i), ordinal: ordinal}
			c.payload.hash, c.payload.bytes = payloadOf(b, c.row)
			c.pieces, c.often = d.often(ordinal, c.payload)
			if !c.often && len(c.pieces) == 0 && !(exchanged && d.streams.complete(b, c.row)) {
				continue
			}
			if last, some := d.passes.full[c.payload]; some && ordinal > last {
				continue
			}
			if want(&c) {
				wanted = append(wanted, c)
			}
		}
		if len(wanted) == 0 {
			return nil
		}
		if err := rest(wanted[0].row, wanted[len(wanted)-1].row+1); err != nil {
			return err
		}
		for k := range wanted {
			add(&wanted[k], row(b, wanted[k].row))
		}
		return nil
	})
}

// hashes reads those of a batch that were not, because no payload of it comes often, where it has messages of exchanges; some says whether any can be part of
// something.
func (d *detector) hashes(b *schema.Messages, list []int32, looked, exchanged bool, rest schema.Rest) (some bool, err error) {
	if looked {
		return true, nil
	}
	if !exchanged || !slices.ContainsFunc(list, func(i int32) bool { return d.streams.complete(b, int(i)) }) {
		return false, nil
	}
	return true, rest(0, b.Len(), hashColumn)
}

// often says whether a message's payload is sent often enough to be part of something, and which of its pieces are.
func (d *detector) often(ordinal int64, of payload) (pieces []piece, often bool) {
	if len(d.cutUp) > 0 {
		for _, p := range d.cutUp[ordinal] {
			if d.counter.Often(payloads.Key(p.hash, p.bytes)) {
				pieces = append(pieces, p)
			}
		}
	}
	return pieces, d.counter.Often(payloads.Key(of.hash, of.bytes))
}

// fill finds the payloads of which more messages than mostOfPayload may be part of something, among those in classes that have so many.
func (d *detector) fill(kept *keptPayloads) error {
	some := false
	for _, n := range kept.classes {
		some = some || n >= mostOfPayload
	}
	if !some {
		return nil
	}
	counts, full := map[payload]int32{}, map[payload]int64{}
	err := d.candidates(true, func(c *candidate) bool {
		if kept.classes[kept.class(c.payload)] >= mostOfPayload {
			if counts[c.payload]++; counts[c.payload] == mostOfPayload {
				full[c.payload] = c.ordinal
			}
			if counts[c.payload] > mostOfPayload {
				d.result.LeftOut++
				d.result.Replayed--
			}
		}
		return false
	}, nil)
	d.passes.full = full
	return err
}

// partRoom is how many messages one pass looks at, beside what is kept of others.
func (d *detector) partRoom() int64 {
	if d.options.part > 0 {
		return d.options.part
	}
	return max(1, d.mostReplayed()/2)
}

// inPasses finds what spreads in as many passes as it takes.
func (d *detector) inPasses() error {
	p := d.passes
	for p.next < len(p.todo) {
		t := &p.todo[p.next]
		p.next++
		if int64(len(p.messages)) > d.mostReplayed() { // what is found has to be kept
			d.result.LeftOut += t.size
			d.result.NoRoom += t.size
			d.result.Replayed -= t.size
			continue
		}
		if err := d.pass(t); err != nil {
			return err
		}
		if err := d.border(); err != nil {
			return err
		}
	}
	d.messages, d.keys, d.found = p.messages, p.keys, p.found
	p.messages, p.keys, p.found, p.wholes, p.divided, p.taken = nil, nil, nil, nil, nil, nil
	slices.SortStableFunc(d.found, func(a, b *instance) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), a.from.compare(b.from))
	})
	d.inOrder(d.found)
	return nil
}

// pass looks at the messages of one part.
func (d *detector) pass(t *part) error {
	p := d.passes
	d.messages, d.keys, d.found, d.pieces = make([]message, 0, t.size), make([]rowKey, 0, t.size), nil, map[int32][]piece{}
	want := func(c *candidate) bool {
		switch {
		case t.wholes:
			return p.cut[c.payload] && t.has(c.payload.hash, c.payload.bytes)
		case p.taken[c.ordinal]:
			return false
		case len(c.pieces) > 0:
			return p.divided[c.ordinal] && slices.ContainsFunc(c.pieces, func(x piece) bool { return t.has(x.hash, x.bytes) })
		}
		return c.often && t.has(c.payload.hash, c.payload.bytes)
	}
	var divided []candidate
	err := d.candidates(false, want, func(c *candidate, m message) {
		if len(c.pieces) > 0 {
			if d.pieces[int32(len(d.messages))] = c.pieces; !t.wholes {
				m.taken = true
				divided = append(divided, candidate{row: len(d.messages), ordinal: c.ordinal, pieces: c.pieces})
			}
		}
		d.messages, d.keys = append(d.messages, m), append(d.keys, rowKey{c.ordinal, 0})
	})
	if err != nil {
		return err
	}
	if t.wholes {
		d.spreadWholes()
		for m := range d.pieces {
			if !d.messages[m].taken {
				p.divided[d.keys[m].ordinal] = true
			}
		}
		for m := range d.messages {
			if d.messages[m].taken {
				p.taken[d.keys[m].ordinal] = true
			}
		}
	} else {
		for k := range divided {
			c := &divided[k]
			for n, x := range c.pieces {
				if t.has(x.hash, x.bytes) {
					d.messages = append(d.messages, d.pieceOf(int32(c.row), x))
					d.keys = append(d.keys, rowKey{c.ordinal, int32(n) + 1})
				}
			}
		}
		d.spreadAll()
	}
	if err := d.stopped(); err != nil {
		return err
	}
	d.countBeyond()
	d.retain(t)
	return nil
}

// retain keeps what was found in a pass, with its messages.
func (d *detector) retain(t *part) {
	p := d.passes
	at := map[int32]int32{}
	keep := func(m int32) int32 {
		k, known := at[m]
		if !known {
			k = int32(len(p.messages))
			at[m] = k
			p.messages, p.keys = append(p.messages, d.messages[m]), append(p.keys, d.keys[m])
		}
		return k
	}
	for _, i := range d.found {
		i.from, i.stage = d.keys[i.list], 0
		if !t.wholes {
			i.stage = 1
		}
		for k, m := range i.messages {
			i.messages[k] = keep(m)
			if w := d.messages[m].whole; w != none {
				ordinal := d.keys[w].ordinal
				whole, known := p.wholes[ordinal]
				if !known {
					whole = keep(w)
					p.wholes[ordinal] = whole
				}
				p.messages[i.messages[k]].whole = whole
			}
		}
	}
	p.found = append(p.found, d.found...)
	d.messages, d.keys, d.found, d.pieces = nil, nil, nil, nil
}

// inOrder puts messages in the order of the run, those of instances that are listed and those of others, and leaves out what is in no instance.
func (d *detector) inOrder(lists ...[]*instance) {
	used := newBitset(len(d.messages))
	for _, list := range lists {
		for _, i := range list {
			for _, m := range i.messages {
				used.add(int(m))
				if w := d.messages[m].whole; w != none {
					used.add(int(w))
				}
			}
		}
	}
	d.reorder(used, lists...)
}

// reorder puts the messages of a set in the order of the run, and forgets the others.
func (d *detector) reorder(used bitset, lists ...[]*instance) {
	var order []int32
	for m := range d.messages {
		if used.has(m) {
			order = append(order, int32(m))
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return d.keys[a].compare(d.keys[b]) })
	at := make([]int32, len(d.messages))
	messages, keys := make([]message, len(order)), make([]rowKey, len(order))
	for k, m := range order {
		at[m], messages[k], keys[k] = int32(k), d.messages[m], d.keys[m]
	}
	for k := range messages {
		if w := messages[k].whole; w != none {
			messages[k].whole = at[w]
		}
	}
	d.messages, d.keys = messages, keys
	for _, list := range lists {
		for _, i := range list {
			for k, m := range i.messages {
				i.messages[k] = at[m]
			}
		}
	}
}

// present is the place of a message by its ordinal among those with these keys; none where it is not there.
func present(keys []rowKey, ordinal int64) int32 {
	at, found := slices.BinarySearchFunc(keys, rowKey{ordinal, 0}, rowKey.compare)
	if !found {
		return none
	}
	return int32(at)
}

// classWay is a class of messages, by its number, and a way that they go.
type classWay struct {
	class int32
	way
}

func (k classWay) compare(o classWay) int {
	return cmp.Or(cmp.Compare(k.class, o.class), compareWays(k.way, o.way))
}

// openWays is how many messages of each class that nothing has taken go each way; ok is false where they are too many to be counted.
func (d *detector) openWays(kind int) (count map[classWay]int64, classes map[exchange]int32, ok bool, err error) {
	count, classes = map[classWay]int64{}, map[exchange]int32{}
	most, open := max(d.mostReplayed(), mostSampled), int64(0)
	err = d.candidates(true, func(c *candidate) bool {
		if m := present(d.keys, c.ordinal); m != none && d.messages[m].taken {
			return false
		}
		open++
		if k := c.classWay(kind, classes); count[k] > 0 || int64(len(count)) <= most {
			count[k]++
		}
		return false
	}, nil)
	if int64(len(count)) > most {
		d.result.LeftOut += open
		d.result.NoRoom += open
		return nil, nil, false, err
	}
	return count, classes, true, err
}

// classWay is the class of a kind, which gets a number where it has none, and the way of a candidate.
func (c *candidate) classWay(kind int, classes map[exchange]int32) classWay {
	m := message{comm: c.b.Comm[c.row], tag: c.b.Tag[c.row], datatype: c.b.SendDatatype[c.row], sendSite: c.b.SendCallsite[c.row], bytes: c.payload.bytes}
	k := kinds(&m)[kind]
	n, known := classes[k]
	if !known {
		n = int32(len(classes))
		classes[k] = n
	}
	return classWay{n, way{c.b.Src[c.row], c.b.Dst[c.row]}}
}

// circle are the ranks of which each sends to each other equally often, by messages of one class.
type circle struct {
	least classWay
	ways  []classWay
	count int64
}

// circlesOf are those among the ways that nothing has taken: only they can be of alltoalls.
func (d *detector) circlesOf(count map[classWay]int64) (out []*circle) {
	byClass := map[int32][]classWay{}
	for k := range count {
		byClass[k.class] = append(byClass[k.class], k)
	}
	for _, ways := range byClass {
		connected := circles{}
		for _, k := range ways {
			connected.join(k.src, k.dst)
		}
		byCircle, ranks := map[int32]*circle{}, map[int32]int{}
		for rank := range connected {
			ranks[connected.of(rank)]++
		}
		for _, k := range ways {
			root := connected.of(k.src)
			c := byCircle[root]
			if c == nil {
				c = &circle{least: k}
				byCircle[root] = c
			}
			if k.compare(c.least) < 0 {
				c.least = k
			}
			c.ways, c.count = append(c.ways, k), c.count+count[k]
		}
		for root, c := range byCircle {
			n := ranks[root]
			if n >= d.options.MinRanks && len(c.ways) == n*(n-1) && !slices.ContainsFunc(c.ways, func(k classWay) bool { return count[k] != count[c.ways[0]] }) {
				out = append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(a, b *circle) int { return cmp.Or(cmp.Compare(a.count, b.count), a.least.compare(b.least)) })
	return out
}

// exchangesInPasses finds what every rank sends to every other directly, among messages of which those that nothing has taken are not there: they are counted, and
// those read again of which the numbers fit.
func (d *detector) exchangesInPasses(kind int) error {
	count, classes, ok, err := d.openWays(kind)
	if err != nil || !ok {
		return err
	}
	for list := d.circlesOf(count); len(list) > 0; {
		room, n := max(d.partRoom(), d.mostReplayed()-int64(len(d.messages))), int64(0)
		if list[0].count > room && d.options.part == 0 {
			for _, c := range list { // the others are no smaller
				d.result.LeftOut += c.count
				d.result.NoRoom += c.count
			}
			return nil
		}
		wanted := map[classWay]int{}
		k := 0
		for ; k < len(list) && (k == 0 || n+list[k].count <= room); k++ {
			n += list[k].count
			for _, w := range list[k].ways {
				wanted[w] = k
			}
		}
		list = list[k:]
		if err := d.exchangesOf(kind, classes, wanted, k); err != nil {
			return err
		}
		d.inOrder(d.found, d.aside)
	}
	return nil
}

// exchangesOf reads the messages of so many circles, by whose ways they are known, and finds the exchanges among them.
func (d *detector) exchangesOf(kind int, classes map[exchange]int32, wanted map[classWay]int, circles int) error {
	there := d.keys
	err := d.candidates(true, func(c *candidate) bool {
		_, want := wanted[c.classWay(kind, classes)]
		return want && present(there, c.ordinal) == none
	}, func(c *candidate, m message) {
		d.messages, d.keys = append(d.messages, m), append(d.keys, rowKey{c.ordinal, 0})
	})
	if err != nil {
		return err
	}
	all := newBitset(len(d.messages))
	for m := range d.messages {
		all.add(m)
	}
	d.reorder(all, d.found, d.aside)
	lists := make([][]int32, circles)
	for i := range d.messages {
		m := &d.messages[i]
		class, known := classes[kinds(m)[kind]]
		if k, want := wanted[classWay{class, way{m.src, m.dst}}]; known && want && !m.taken {
			lists[k] = append(lists[k], int32(i))
		}
	}
	for _, list := range lists {
		d.exchange(list)
	}
	return d.stopped()
}
