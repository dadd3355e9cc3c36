package detect

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/payloads"
)

// exchange is what the messages of a complete exchange have in common. Of one whose sizes differ bytes is anySize.
type exchange struct {
	comm, tag, datatype, site int32
	bytes                     int64
}

const anySize = -1

// mostExchanges bounds how many different ones are looked at, and mostExchangeRanks the square of their ranks that is kept of each.
const (
	mostExchanges     = 1 << 12
	mostExchangeRanks = 1 << 11
)

// exchangers notes, for each class of messages, which ranks of its communicator send to which.
type exchangers struct {
	place map[int32]map[int32]int // of a world rank in a communicator, by id
	least int
	pairs map[exchange]*pairs
	large map[int32]bool // communicators of too many ranks
	// unclassed are messages that were not looked at: of large communicators, and those of more classes than are kept.
	unclassed int64
}

// pairs are which ranks send to which, by their places in the communicator.
type pairs struct {
	ranks    int
	set      bitset
	exchange bitset // once all are known: the ranks of which each sends to each that it is connected with
}

func newExchangers(run *Run, least int) *exchangers {
	e := &exchangers{place: map[int32]map[int32]int{}, least: least, pairs: map[exchange]*pairs{}, large: map[int32]bool{}}
	for _, c := range run.Comms {
		if len(c.Members) < least || len(c.Members) > mostExchangeRanks {
			e.large[c.ID] = len(c.Members) > mostExchangeRanks
			continue
		}
		place := map[int32]int{}
		for i, r := range c.Members {
			place[r] = i
		}
		e.place[c.ID] = place
	}
	return e
}

// kinds are the classes that a message may be of.
func kinds(m *message) [2]exchange {
	k := exchange{m.comm, m.tag, m.datatype, m.sendSite, m.bytes}
	any := k
	any.bytes = anySize
	return [2]exchange{k, any}
}

// add notes who sends to whom, and says whether it does.
func (e *exchangers) add(m *message) (classed bool) {
	place := e.place[m.comm]
	src, known := place[m.src]
	dst, too := place[m.dst]
	if !known || !too {
		return !e.large[m.comm]
	}
	for _, k := range kinds(m) {
		p := e.pairs[k]
		if p == nil {
			if len(e.pairs) >= mostExchanges {
				continue
			}
			p = &pairs{ranks: len(place), set: newBitset(len(place) * len(place))}
			e.pairs[k] = p
		}
		p.set.add(src*p.ranks + dst)
		classed = classed || k.bytes == anySize
	}
	return classed
}

// complete says whether in one of the message's classes every rank that its source is connected with sends to every other.
func (e *exchangers) complete(m *message) bool {
	for _, k := range kinds(m) {
		p := e.pairs[k]
		if p == nil {
			continue
		}
		if p.exchange == nil {
			p.finish(e.least)
		}
		if p.exchange.has(e.place[m.comm][m.src]) {
			return true
		}
	}
	return false
}

// any says whether there is any complete exchange.
func (e *exchangers) any() bool {
	for _, p := range e.pairs {
		if p.exchange == nil {
			p.finish(e.least)
		}
		if p.exchange.len() > 0 {
			return true
		}
	}
	return false
}

// finish finds the complete exchanges: a rank, those it sends to, and each of them sends to just the others.
func (p *pairs) finish(least int) {
	n := p.ranks
	p.exchange = newBitset(n)
	circle := make([]bitset, n) // a rank and those that it sends to
	for r := range n {
		circle[r] = newBitset(n)
		circle[r].add(r)
		for q := range n {
			if p.set.has(r*n + q) {
				circle[r].add(q)
			}
		}
	}
	for r := range n {
		same := circle[r].len() >= least
		for q := 0; q < n && same; q++ {
			if circle[r].has(q) != circle[q].has(r) || circle[r].has(q) && !slices.Equal(circle[r], circle[q]) {
				same = false
			}
		}
		if same {
			p.exchange.add(r)
		}
	}
}

// mostOfPayload bounds how many messages of one payload are looked at, the first ones.
const mostOfPayload = 1 << 20

const hashColumn = "payload_hash"

// Columns of messages that the passes look at. All others, beside those of a message that is kept, are read only where they are needed.
var (
	payloadColumns = []string{"bytes", hashColumn}
	rankColumns    = append([]string{"src", "dst"}, payloadColumns...)
	streamColumns  = append([]string{"comm", "send_datatype", "tag", "send_callsite"}, rankColumns...)
	bufferColumns  = append([]string{"src_buffer", "dst_buffer"}, streamColumns...)
)

// read reads the messages to count them; then once more to cut messages, where any can be cut.
func (d *detector) read() error {
	d.sample = newSample(d.run.Ranks)
	l := &streams{detector: d, exchangers: newExchangers(d.run, d.options.MinRanks), perSize: map[int64]int64{}, all: map[streamKey]*stream{},
		layout: newLayout(d.named)}
	often := min(d.options.MinRanks-1, payloads.MostCounted)
	if err := d.askShared(often); err != nil {
		return err
	}
	counter := d.newCounter()
	if err := d.count(counter, l); err != nil {
		return err
	}
	d.cutUp = map[int64][]piece{}
	if l.layout.tiled() {
		whole := d.shared != nil // pieces count with the messages that are sent whole: then all have to be counted
		if whole {
			d.shared, counter = nil, d.newCounter()
		}
		if err := d.cuts(counter, whole, d.cutUp); err != nil {
			return err
		}
	}
	l.layout = nil
	if err := counter.Finish(often); err != nil {
		return err
	}
	l.tally()
	d.sample.over = true
	d.result.Unclassed = l.exchangers.unclassed
	d.result.FalseMatch = falseMatch(l.perSize, d.run.HashBits)
	d.counter, d.streams = counter, l
	return nil
}

func (d *detector) newCounter() *payloads.Counter {
	c := payloads.NewCounter()
	c.Bound(cmp.Or(d.options.held, d.options.MemoryBytes/(countedPart*4)), d.run.Spill)
	return c
}

// count counts payloads, and what is asked of streams.
func (d *detector) count(counter *payloads.Counter, l *streams) error {
	return d.sharedRows(bufferColumns, func(b *schema.Messages, list []int32, looked bool, rest schema.Rest) (err error) {
		var counted sync.WaitGroup
		if looked {
			counted.Go(func() {
				for _, i := range list {
					if b.Src[i] != b.Dst[i] {
						counter.Add(payloads.Key(payloadOf(b, int(i))))
					}
				}
			})
		}
		defer counted.Wait()
		for _, i := range list {
			if err := l.add(b, int(i), rest); err != nil {
				return err
			}
		}
		return nil
	})
}

// cuts finds the messages that carry several payloads, by their ordinals, and counts those; with whole also what messages have as they are.
func (d *detector) cuts(counter *payloads.Counter, whole bool, cuts map[int64][]piece) error {
	c := newCutter(d.sum, d.named, func(ordinal int64, pieces []piece) {
		cuts[ordinal] = pieces
		for _, p := range pieces {
			counter.Add(payloads.Key(p.hash, p.bytes))
		}
	})
	err := d.rows(Columns, func(b *schema.Messages, list []int32, _ schema.Rest) error {
		for _, i := range list {
			if b.Src[i] != b.Dst[i] {
				m := row(b, int(i))
				if whole {
					counter.Add(payloads.Key(m.hash, m.bytes))
				}
				c.add(&m, b.Epoch[i])
			}
		}
		return nil
	})
	if err == nil {
		c.flush()
	}
	return err
}

// spreading finds what spreads: at once where the messages that may be part of something have room, else in passes.
func (d *detector) spreading() error {
	if d.passes == nil {
		d.spreads()
		d.countBeyond()
		return d.stopped()
	}
	return d.inPasses()
}

// room is how many messages there is room for at once.
func (d *detector) room() int64 {
	if d.options.part > 0 {
		return d.options.part
	}
	return d.mostReplayed()
}

// keep keeps the messages whose payload, or a piece of it, is sent often enough, and those of complete exchanges. Where they have no room it only counts them.
func (d *detector) keep() error {
	columns, exchanged := payloadColumns, d.streams.exchangers.any()
	switch {
	case exchanged:
		columns = streamColumns
	case d.streams.selves:
		columns = rankColumns
	}
	ordinal, kept, counted, whole := int64(-1), newKeptPayloads(), newPasses(), true
	most := d.room()
	d.messages = make([]message, 0, min(d.counter.Found(), most)) // to grow step by step would take more than twice as much
	var rows []int32                                              // of the batch that are kept
	err := d.sharedRows(columns, func(b *schema.Messages, list []int32, looked bool, rest schema.Rest) error {
		rows = rows[:0]
		if some, err := d.hashes(b, list, looked, exchanged, rest); err != nil || !some {
			return err
		}
		for _, i := range list {
			if d.streams.selves && b.Src[i] == b.Dst[i] {
				continue
			}
			ordinal++
			hash, bytes := payloadOf(b, int(i))
			of := payload{hash: hash, bytes: bytes}
			pieces, often := d.often(ordinal, of)
			if len(pieces) == 0 && !often && !(exchanged && d.streams.complete(b, int(i))) {
				continue
			}
			counted.count(of, often, pieces)
			if whole && kept.full(of, d.messages) {
				d.result.LeftOut++
				continue
			}
			if whole && int64(len(d.messages)) >= most {
				whole = false
				d.messages, d.pieces, rows = nil, map[int32][]piece{}, nil
			}
			if kept.add(of); !whole {
				continue
			}
			if len(pieces) > 0 {
				d.pieces[int32(len(d.messages))] = pieces
			}
			d.messages = append(d.messages, message{hash: hash, bytes: bytes})
			rows = append(rows, i)
		}
		if len(rows) == 0 {
			return nil
		}
		if err := rest(int(rows[0]), int(rows[len(rows)-1])+1); err != nil {
			return err
		}
		added := d.messages[len(d.messages)-len(rows):]
		for k, i := range rows {
			added[k] = row(b, int(i))
		}
		return nil
	})
	if err != nil || whole {
		d.result.Replayed = int64(len(d.messages))
		return err
	}
	d.passes, d.result.Replayed, d.result.LeftOut = counted, counted.all, 0
	if err := d.fill(kept); err != nil {
		return err
	}
	d.passes.plan(d.partRoom())
	return nil
}

// rows goes through batches of messages, of which it reads these columns, with the list of those whose payload is known. rest reads the
// other columns of the batch.
func (d *detector) rows(columns []string, visit func(b *schema.Messages, list []int32, rest schema.Rest) error) error {
	var list []int32
	d.result.Messages, d.result.Unhashed = 0, 0
	return d.run.Messages(columns, func(b *schema.Messages, rest schema.Rest) error {
		list = list[:0]
		for i := range b.Src {
			if hashed(b, i) {
				list = append(list, int32(i))
			}
		}
		d.result.Messages += int64(len(b.Src))
		d.result.Unhashed += int64(len(b.Src) - len(list))
		return visit(b, list, rest)
	})
}

// falseMatch bounds the chance of a false match by the birthday bound, size by size.
func falseMatch(perSize map[int64]int64, width int) float64 {
	pairs := 0.0
	for size, n := range perSize {
		if size == 0 {
			continue // there is one empty payload
		}
		pairs += float64(n) * float64(n-1) / 2
	}
	return min(1, math.Ldexp(pairs, -width))
}

// hashed says whether the payload of row i is known: the empty one is without a hash.
func hashed(b *schema.Messages, i int) bool {
	return b.PayloadHash[i] != schema.NullInt64 || b.Bytes[i] == 0
}

// payloadOf is the hash and size of row i: the empty one has none.
func payloadOf(b *schema.Messages, i int) (hash, bytes int64) {
	if b.Bytes[i] == 0 {
		return 0, 0
	}
	return b.PayloadHash[i], b.Bytes[i]
}

// row is row i of the table.
func row(b *schema.Messages, i int) message {
	m := message{src: b.Src[i], dst: b.Dst[i], comm: b.Comm[i], tag: b.Tag[i], datatype: b.SendDatatype[i], sendSite: b.SendCallsite[i],
		recvSite: b.RecvCallsite[i], head: b.PayloadHead[i], sendSeq: b.SendSeq[i], postSeq: b.RecvPostSeq[i],
		doneSeq: b.RecvDoneSeq[i], buffer: b.SrcBuffer[i], dstBuffer: b.DstBuffer[i], whole: none}
	if m.doneSeq == schema.NullInt64 {
		m.doneSeq = math.MaxInt64 // nobody knows that it is there
	}
	m.hash, m.bytes = payloadOf(b, i)
	return m
}
