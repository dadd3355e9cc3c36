package detect

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/commq/commq/schema"
)

// sketch counts payloads by hashes of theirs up to 3, in bounded memory: it never says too few. A payload has two counters of 2 bits in one line
// of 64 bytes.
type sketch [][8]uint64

const (
	countersPerMessage = 16
	leastLines         = 1 << 12
	mostLines          = 1 << 23 // 512 MiB
	someLines          = 1 << 19 // 32 MiB: where the number of messages is not known
	mostCounted        = 3
)

// newSketch is a sketch for so many messages; 0 is not known.
func newSketch(messages int64) sketch {
	lines := int64(someLines)
	if messages > 0 {
		lines = leastLines
		for lines < mostLines && lines*256 < messages*countersPerMessage {
			lines *= 2
		}
	}
	return make(sketch, lines)
}

// key is a hash of a payload, by which it is counted: its low bits say in which line.
func key(hash, bytes int64) uint64 {
	h := (uint64(hash) ^ bits.RotateLeft64(uint64(bytes)*0x9e3779b97f4a7c15, 29)) * 0xbf58476d1ce4e5b9
	h ^= h >> 31
	return h * 0x94d049bb133111eb
}

// counters are where a payload is counted: the line, and the word and shift of each of the two.
func (s sketch) counters(key uint64) (line *[8]uint64, words, shifts [2]uint) {
	g := key >> 40
	return &s[key&uint64(len(s)-1)], [2]uint{uint(g & 3), 4 + uint(g>>2&3)}, [2]uint{uint(g>>4&31) * 2, uint(g>>9&31) * 2}
}

func (s sketch) add(key uint64) {
	line, words, shifts := s.counters(key)
	for k, w := range words {
		if line[w]>>shifts[k]&3 < mostCounted {
			line[w] += 1 << shifts[k]
		}
	}
}

// most is no less than how often the payload was counted, as far as a counter counts.
func (s sketch) most(key uint64) int {
	line, words, shifts := s.counters(key)
	return int(min(line[words[0]]>>shifts[0]&3, line[words[1]]>>shifts[1]&3))
}

// keyed is the payload of a row.
type keyed struct {
	key uint64
	row int32
}

// byLine are the payloads of rows in the order of the parts of the sketch where they are counted: a part stays in the cache while its payloads
// are.
type byLine struct{ list, sorted []keyed }

const partBits = 8

func (o *byLine) sort(s sketch, b *schema.Messages, rows []int32) []keyed {
	var starts [1<<partBits + 1]int32
	shift := max(bits.Len(uint(len(s)-1))-partBits, 0)
	part := func(key uint64) uint64 { return key & uint64(len(s)-1) >> shift }
	o.list = slices.Grow(o.list[:0], len(rows))[:len(rows)]
	o.sorted = slices.Grow(o.sorted[:0], len(rows))[:len(rows)]
	for k, i := range rows {
		o.list[k] = keyed{key(payloadOf(b, int(i))), i}
		starts[part(o.list[k].key)+1]++
	}
	for p := range 1 << partBits {
		starts[p+1] += starts[p]
	}
	for _, x := range o.list {
		at := &starts[part(x.key)]
		o.sorted[*at] = x
		*at++
	}
	return o.sorted
}

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

// mostOfPayload bounds how many messages of one payload are looked at, the first ones, and mostReplayed those of all: 2 GiB.
const (
	mostOfPayload = 1 << 20
	mostReplayed  = 1 << 24
)

// read reads the messages twice: once to count, once to keep what can be part of a collective.
func (d *detector) read() error {
	s := newSketch(d.run.Count)
	d.sample = newSample(d.run.Ranks)
	l := &streams{detector: d, exchangers: newExchangers(d.run, d.options.MinRanks), perSize: map[int64]int64{}, all: map[streamKey]*stream{}}
	cuts := map[int64][]piece{}
	var found []piece
	var order byLine
	c := newCutter(d.sum, d.named, func(ordinal int64, pieces []piece) {
		cuts[ordinal] = pieces
		found = append(found, pieces...)
	})
	err := d.rows(func(b *schema.Messages, list []int32) {
		var all sync.WaitGroup
		all.Go(func() {
			for _, x := range order.sort(s, b, list) {
				if b.Src[x.row] != b.Dst[x.row] {
					s.add(x.key)
				}
			}
		})
		all.Go(func() {
			for _, i := range list {
				l.add(b, int(i))
			}
		})
		for _, i := range list {
			if b.Src[i] != b.Dst[i] {
				m := row(b, int(i))
				c.add(&m, b.Epoch[i])
			}
		}
		all.Wait()
	})
	if err != nil {
		return err
	}
	c.flush()
	for _, p := range found {
		s.add(key(p.hash, p.bytes))
	}
	l.tally()
	d.sample.over = true
	d.result.Messages, d.result.Unhashed = 0, 0 // counted again
	d.result.Unclassed = l.exchangers.unclassed
	d.result.FalseMatch = falseMatch(l.perSize, d.run.HashBits)
	least := min(d.options.MinRanks-1, mostCounted)
	ordinal, kept := int64(-1), map[payload]int32{}
	var spreads []bool
	return d.rows(func(b *schema.Messages, list []int32) {
		spreads = slices.Grow(spreads[:0], len(b.Src))[:len(b.Src)]
		for _, x := range order.sort(s, b, list) {
			spreads[x.row] = s.most(x.key) >= least
		}
		for _, i := range list {
			if b.Src[i] == b.Dst[i] {
				continue
			}
			ordinal++
			pieces := slices.DeleteFunc(cuts[ordinal], func(p piece) bool { return s.most(key(p.hash, p.bytes)) < least })
			if len(pieces) == 0 && !spreads[i] && !l.complete(b, int(i)) {
				continue
			}
			m := row(b, int(i))
			of := payload{hash: m.hash, bytes: m.bytes}
			if kept[of]++; kept[of] > mostOfPayload || len(d.messages) >= mostReplayed {
				d.result.LeftOut++
				continue
			}
			if len(pieces) > 0 {
				d.pieces[int32(len(d.messages))] = pieces
			}
			d.messages = append(d.messages, m)
			d.result.Replayed++
		}
	})
}

// rows goes through batches of messages with the list of those whose payload is known.
func (d *detector) rows(visit func(b *schema.Messages, list []int32)) error {
	var list []int32
	return d.run.Messages(func(b *schema.Messages) error {
		list = list[:0]
		for i := range b.Src {
			if hashed(b, i) {
				list = append(list, int32(i))
			}
		}
		d.result.Messages += int64(len(b.Src))
		d.result.Unhashed += int64(len(b.Src) - len(list))
		visit(b, list)
		return nil
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
