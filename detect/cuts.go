package detect

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
)

// piece is a part of a message's payload that is itself sent or received at one end of the message.
type piece struct {
	hash, bytes, head int64
	offset            int64 // of its address behind the message's
}

// cutter finds messages that carry several payloads side by side: what a rank had got in pieces and sends on as one, or gets as one and
// passes on in pieces. Memory addresses say where to look, the hashes of the pieces joined say whether it is so. It sees
// the messages in the order of their epochs, and looks one epoch back and one ahead.
type cutter struct {
	sum    *checksum
	named  map[int32]bool // datatypes
	done   func(ordinal int64, pieces []piece)
	epochs [3][]message // the epoch before, the one that is looked at, the one after
	first  [3]int64     // the ordinal of their first messages
	epoch  int32        // of what comes in
	next   int64        // the ordinal of the next message

	failed map[sited]int16
	slots  []slot
	used   int
	links  [3][2][]link       // of an epoch's messages: sends, receives
	sorted map[int][]side     // by slot, in the round
	orders map[int32][]side   // by rank, in the round; nil where none was asked for
	known  map[int64][]piece  // by ordinal, in the round; nil for what has none
	busy   map[int64]struct{} // what is being cut
}

// sited is something of a size at an address of a rank.
type sited struct {
	address, bytes int64
	rank           int32
}

// slot is what a rank has at an address.
type slot struct {
	address int64
	rank    int32
	least   int64 // the smallest size
	head    link  // the last end of a message there
}

// link names an end of a message: twice the ordinal, and 1 for a receive; the next one back is in links. 0 is none.
type link = int64

// side is an end of a message at an address.
type side struct {
	seq     int64
	ordinal int64
	send    bool
}

const (
	mostSlots    = 1 << 22 // addresses that are remembered at once
	mostInWindow = 1 << 21 // messages of an epoch
	mostNear     = 8       // ends of messages at an address that are tried, before and after
	mostAround   = 64      // ends of messages at a rank, before and after, at any address
	mostTries    = 1 << 12 // for a message
	mostPieces   = 1 << 8  // of a message
	mostFailures = 1 << 6  // one after the other, after which an address is left alone
)

func newCutter(sum *checksum, named map[int32]bool, done func(ordinal int64, pieces []piece)) *cutter {
	return &cutter{sum: sum, named: named, done: done, failed: map[sited]int16{}, slots: make([]slot, 1<<12), epoch: -1}
}

// add takes the next message.
func (c *cutter) add(m *message, epoch int32) {
	if epoch != c.epoch || len(c.epochs[2]) >= mostInWindow {
		c.turn()
		c.epoch = epoch
	}
	w := &c.links[2]
	if n := len(c.epochs[2]); n == cap(c.epochs[2]) { // append would grow by a quarter, and copy each message four times
		c.epochs[2], w[0], w[1] = slices.Grow(c.epochs[2], n+1), slices.Grow(w[0], n+1), slices.Grow(w[1], n+1)
	}
	c.epochs[2] = append(c.epochs[2], *m)
	w[0] = append(w[0], c.put(m.src, m.buffer, m.bytes, 2*c.next+2))
	w[1] = append(w[1], c.put(m.dst, m.dstBuffer, m.bytes, 2*c.next+3))
	c.next++
}

// put notes that an end of a message is at an address and returns the end that was there last.
func (c *cutter) put(rank int32, address, bytes int64, l link) (before link) {
	if address == schema.NullInt64 || address == 0 || bytes == 0 {
		return 0
	}
	if 2*c.used >= len(c.slots) {
		c.grow()
	}
	s := &c.slots[c.find(rank, address)]
	if s.head == 0 {
		c.used++
		*s = slot{address: address, rank: rank, least: bytes}
	}
	before, s.head = s.head, l
	s.least = min(s.least, bytes)
	return before
}

// find is the index of an address's slot, or of the free one that it would have.
func (c *cutter) find(rank int32, address int64) int {
	mask := uint64(len(c.slots) - 1)
	for i := placeHash(rank, address) & mask; ; i = (i + 1) & mask {
		if s := &c.slots[i]; s.head == 0 || s.address == address && s.rank == rank {
			return int(i)
		}
	}
}

// grow makes room for more addresses; where there are too many it forgets them all.
func (c *cutter) grow() {
	old := c.slots
	if len(old) >= mostSlots {
		clear(old)
		clear(c.failed)
		c.used = 0
		return
	}
	c.slots = make([]slot, 2*len(old))
	for _, s := range old {
		if s.head != 0 {
			c.slots[c.find(s.rank, s.address)] = s
		}
	}
}

// turn looks at the epoch in the middle, and goes on to the next.
func (c *cutter) turn() {
	if len(c.epochs[2]) == 0 && c.epoch < 0 {
		return
	}
	c.look()
	e, l := c.epochs[0][:0], c.links[0]
	copy(c.epochs[:], c.epochs[1:])
	copy(c.first[:], c.first[1:])
	copy(c.links[:], c.links[1:])
	c.epochs[2], c.first[2], c.links[2] = e, c.next, [2][]link{l[0][:0], l[1][:0]}
}

// flush looks at what is left.
func (c *cutter) flush() {
	c.turn()
	c.look()
}

// look looks at the epoch in the middle, or at what is there when the last has come.
func (c *cutter) look() {
	c.orders, c.sorted, c.known, c.busy = nil, map[int][]side{}, map[int64][]piece{}, map[int64]struct{}{}
	for i := range c.epochs[1] {
		if pieces := c.cut(c.first[1] + int64(i)); pieces != nil {
			c.done(c.first[1]+int64(i), pieces)
		}
	}
}

// at is a message by its ordinal; nil where it is gone.
func (c *cutter) at(ordinal int64) (m *message, epoch int) {
	for e := range c.epochs {
		if i := ordinal - c.first[e]; i >= 0 && i < int64(len(c.epochs[e])) {
			return &c.epochs[e][i], e
		}
	}
	return nil, 0
}

// cut finds the pieces of a message, those of pieces too; nil where it has none.
func (c *cutter) cut(ordinal int64) []piece {
	m, _ := c.at(ordinal)
	if m.bytes == 0 || !c.mixed(m.src, m.buffer, m.bytes) && !c.mixed(m.dst, m.dstBuffer, m.bytes) {
		return nil
	}
	if pieces, known := c.known[ordinal]; known {
		return pieces
	}
	if _, circle := c.busy[ordinal]; circle {
		return nil
	}
	c.busy[ordinal] = struct{}{}
	t := &tiling{cutter: c, whole: m, ordinal: ordinal}
	var pieces []piece
	if t.found() && !t.alike() && c.sum.repeated(m.head, m.bytes) != uint64(m.hash) {
		pieces = t.pieces()
	}
	delete(c.busy, ordinal)
	c.known[ordinal] = pieces
	return pieces
}

// mixed says whether something smaller is at the address too.
func (c *cutter) mixed(rank int32, address, bytes int64) bool {
	if address == schema.NullInt64 || address == 0 {
		return false
	}
	s := &c.slots[c.find(rank, address)]
	return s.head != 0 && s.least < bytes
}

// sides are the ends of messages at an address, in the rank's order.
func (c *cutter) sides(rank int32, address int64) []side {
	at := c.find(rank, address)
	if list, ok := c.sorted[at]; ok {
		return list
	}
	var list []side
	for l := c.slots[at].head; l != 0; {
		ordinal := l/2 - 1
		m, e := c.at(ordinal)
		if m == nil {
			break
		}
		end := int(l & 1)
		x := side{seq: m.sendSeq, ordinal: ordinal, send: true}
		if end == 1 {
			x.seq, x.send = m.doneSeq, false
		}
		list = append(list, x)
		l = c.links[e][end][ordinal-c.first[e]]
	}
	slices.SortFunc(list, bySeq)
	c.sorted[at] = list
	return list
}

// tiling is a search for messages that lie side by side where another one lies.
type tiling struct {
	*cutter
	whole   *message
	ordinal int64
	rank    int32
	begin   int64 // address
	seq     int64 // when the whole is there
	before  bool  // tiles may be there before the whole is
	after   bool  // and after
	tries   int
	tiles   []tile
}

// tile is a message in a tiling.
type tile struct{ ordinal, address int64 }

// found looks for tiles: what the receiver sends later, what the sender sends later, what it has sent or received before, and what is
// mixed. Buffers are used again and again, and what is of one operation is on one side in time.
func (t *tiling) found() bool {
	m := t.whole
	for _, try := range []struct{ sender, before, after bool }{{false, false, true}, {true, false, true}, {true, true, false}, {true, true, true}} {
		t.rank, t.begin, t.seq = m.dst, m.dstBuffer, m.doneSeq
		if try.sender {
			t.rank, t.begin, t.seq = m.src, m.buffer, m.sendSeq
		}
		key := sited{t.begin, m.bytes, t.rank}
		if !t.mixed(t.rank, t.begin, m.bytes) || t.failed[key] >= mostFailures {
			continue
		}
		t.before, t.after, t.tries, t.tiles = try.before, try.after, mostTries, t.tiles[:0]
		if t.named[m.datatype] {
			t.tries = mostPieces
		}
		if try.after && !try.before && !t.named[m.datatype] && t.next() || t.from(0, 0) {
			t.failed[key] = 0
			return true
		}
		t.failed[key]++
	}
	return false
}

// next tries what the rank sends next, as much as the whole has, in the order of addresses from any of them on: where a derived datatype
// has gaps, and parts anywhere in memory, that often is it.
func (t *tiling) next() bool {
	list := t.order(t.rank)
	at, _ := slices.BinarySearchFunc(list, t.seq, func(s side, seq int64) int { return cmp.Compare(s.seq, seq) })
	left := t.whole.bytes
	for _, s := range list[at:min(at+mostAround, len(list))] {
		if m, _ := t.at(s.ordinal); s.send && s.ordinal != t.ordinal && t.together(m) && left > 0 {
			t.tiles = append(t.tiles, tile{s.ordinal, m.buffer})
			left -= m.bytes
		}
	}
	slices.SortFunc(t.tiles, func(a, b tile) int { return cmp.Compare(uint64(a.address), uint64(b.address)) })
	for range t.tiles {
		hash := uint64(0)
		for _, x := range t.tiles {
			m, _ := t.at(x.ordinal)
			hash = t.sum.join(hash, uint64(m.hash), m.bytes)
		}
		if left == 0 && len(t.tiles) > 1 && hash == uint64(t.whole.hash) {
			return true
		}
		t.tiles = append(t.tiles[1:], t.tiles[0])
	}
	t.tiles = nil
	return false
}

// from looks for tiles from an offset on; hash is that of what is before.
func (t *tiling) from(offset int64, hash uint64) bool {
	if offset == t.whole.bytes {
		return len(t.tiles) > 1 && hash == uint64(t.whole.hash)
	}
	if t.place(offset, hash, t.begin+offset, t.sides(t.rank, t.begin+offset)) {
		return true
	}
	if offset == 0 || t.named[t.whole.datatype] {
		return false
	}
	// A derived datatype may have gaps, and parts anywhere in memory: what was sent with the same tag tells where the next tile lies.
	last := t.tiles[len(t.tiles)-1]
	m, _ := t.at(last.ordinal)
	for _, p := range t.places(last.address + m.bytes) {
		if t.place(offset, hash, p, t.sides(t.rank, p)) {
			return true
		}
	}
	return false
}

// together says whether a message is in the whole's communicator and has its tag.
func (t *tiling) together(m *message) bool { return m.tag == t.whole.tag && m.comm == t.whole.comm }

// places are other addresses that the rank uses at about the time of the whole, in its communicator and with its tag: those from an
// address on first.
func (t *tiling) places(from int64) (places []int64) {
	list := t.order(t.rank)
	at, _ := slices.BinarySearchFunc(list, t.seq, func(s side, seq int64) int { return cmp.Compare(s.seq, seq) })
	for _, s := range list[max(at-mostAround, 0):min(at+mostAround, len(list))] {
		m, _ := t.at(s.ordinal)
		place := m.dstBuffer
		if s.send {
			place = m.buffer
		}
		if t.together(m) && place != schema.NullInt64 && !slices.Contains(places, place) &&
			!slices.ContainsFunc(t.tiles, func(x tile) bool { return x.address == place }) {
			places = append(places, place)
		}
	}
	slices.SortFunc(places, func(a, b int64) int { return cmp.Compare(uint64(a-from), uint64(b-from)) })
	return places
}

// place tries the messages at an address as the next tile, the nearest in time first.
func (t *tiling) place(offset int64, hash uint64, address int64, list []side) bool {
	at, _ := slices.BinarySearchFunc(list, t.seq, func(s side, seq int64) int { return cmp.Compare(s.seq, seq) })
	before, after := at-1, at
	for range 2 * mostNear {
		var s side
		switch {
		case before >= 0 && t.before && (after >= len(list) || !t.after || t.seq-list[before].seq <= list[after].seq-t.seq):
			s = list[before]
			before--
		case after < len(list) && t.after:
			s = list[after]
			after++
		default:
			return false
		}
		m, _ := t.at(s.ordinal)
		if s.ordinal == t.ordinal || !s.send && (!t.before || s.seq > t.seq) || m.bytes > t.whole.bytes-offset || m.bytes == t.whole.bytes {
			continue
		}
		if !t.named[t.whole.datatype] && !t.together(m) {
			continue
		}
		if t.tries--; t.tries < 0 || len(t.tiles) >= mostPieces {
			return false
		}
		t.tiles = append(t.tiles, tile{s.ordinal, address})
		if t.from(offset+m.bytes, t.sum.join(hash, uint64(m.hash), m.bytes)) {
			return true
		}
		t.tiles = t.tiles[:len(t.tiles)-1]
	}
	return false
}

// alike says whether two tiles are the same: then where they lie says little.
func (t *tiling) alike() bool {
	seen := map[[2]int64]bool{}
	for _, tile := range t.tiles {
		m, _ := t.at(tile.ordinal)
		k := [2]int64{m.hash, m.bytes}
		if seen[k] {
			return true
		}
		seen[k] = true
	}
	return false
}

// pieces are the tiles, and instead of a tile that has pieces those.
func (t *tiling) pieces() (out []piece) {
	for _, tile := range t.tiles {
		m, _ := t.at(tile.ordinal)
		inner := t.cut(tile.ordinal)
		if inner == nil {
			inner = []piece{{hash: m.hash, bytes: m.bytes, head: m.head}}
		}
		for _, p := range inner {
			p.offset += tile.address - t.begin
			out = append(out, p)
		}
	}
	return out
}

// order are the ends of messages at a rank, in its order.
func (c *cutter) order(rank int32) []side {
	if c.orders == nil {
		c.orders = map[int32][]side{}
		for e := range c.epochs {
			for i := range c.epochs[e] {
				m, ordinal := &c.epochs[e][i], c.first[e]+int64(i)
				c.orders[m.src] = append(c.orders[m.src], side{m.sendSeq, ordinal, true})
				c.orders[m.dst] = append(c.orders[m.dst], side{m.doneSeq, ordinal, false})
			}
		}
		for _, list := range c.orders {
			slices.SortFunc(list, bySeq)
		}
	}
	return c.orders[rank]
}

func bySeq(a, b side) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.ordinal, b.ordinal))
}
