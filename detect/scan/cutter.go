package scan

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/crc"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// cutter finds messages that carry several payloads side by side: a rank received pieces and sends them on as one
// message, or receives one message and passes it on in pieces. Memory addresses suggest where to look; the combined
// hashes of the pieces prove it. It sees messages in the order of epochs and looks one epoch back and one ahead.
type cutter struct {
	sum    *crc.Arithmetic
	named  map[int32]bool // predefined datatypes, by id
	found  func(ordinal int64, pieces []ledger.Piece)
	epochs [3][]ledger.Message // the previous, current and next epoch
	first  [3]int64            // the ordinals of their first messages
	epoch  int32               // of the incoming messages
	next   int64               // ordinal of the next message

	failed map[addressRange]int16
	slots  []slot
	used   int
	links  [3][2][]link             // of an epoch's messages: sends, receives
	sorted map[int][]messageEnd     // by slot, cached for this round
	orders map[int32][]messageEnd   // by rank, cached for this round; nil if not needed yet
	known  map[int64][]ledger.Piece // by ordinal, cached for this round; nil if it has none
	open   map[int64]struct{}       // messages being divided
}

// addressRange is a memory area of a rank.
type addressRange struct {
	address, bytes int64
	rank           int32
}

// slot is an address of a rank, with the messages there.
type slot struct {
	address int64
	rank    int32
	least   int64 // smallest size seen
	head    link  // the last message end there
}

// link names a message end: twice the ordinal, plus 1 for a receive. links has the one before it. 0 is none.
type link = int64

// messageEnd is one end of a message, at an address.
type messageEnd struct {
	seq     int64
	ordinal int64
	send    bool
}

const (
	maxSlots    = 1 << 22 // addresses remembered together
	maxInEpoch  = 1 << 21 // messages per epoch
	maxNear     = 8       // message ends tried at an address, before and after
	maxAround   = 64      // message ends tried at a rank, before and after, at any address
	maxTries    = 1 << 12 // per message
	maxPieces   = 1 << 8  // per message
	maxFailures = 1 << 6  // successive failures after which an address is skipped
)

func newCutter(sum *crc.Arithmetic, named map[int32]bool, done func(ordinal int64, pieces []ledger.Piece)) *cutter {
	return &cutter{sum: sum, named: named, found: done, failed: map[addressRange]int16{}, slots: make([]slot, 1<<12), epoch: -1}
}

// add takes the next message.
func (c *cutter) add(m *ledger.Message, epoch int32) {
	if epoch != c.epoch || len(c.epochs[2]) >= maxInEpoch {
		c.nextEpoch()
		c.epoch = epoch
	}
	w := &c.links[2]
	// append would grow by a quarter and copy each message four times
	if n := len(c.epochs[2]); n == cap(c.epochs[2]) {
		c.epochs[2], w[0], w[1] = slices.Grow(c.epochs[2], n+1), slices.Grow(w[0], n+1), slices.Grow(w[1], n+1)
	}
	c.epochs[2] = append(c.epochs[2], *m)
	w[0] = append(w[0], c.put(m.Src, m.Buffer, m.Bytes, 2*c.next+2))
	w[1] = append(w[1], c.put(m.Dst, m.DstBuffer, m.Bytes, 2*c.next+3))
	c.next++
}

// put records a message end at an address and returns the previous one there.
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

// find returns the index of an address's slot, or of a free one for it.
func (c *cutter) find(rank int32, address int64) int {
	mask := uint64(len(c.slots) - 1)
	for i := placeHash(rank, address) & mask; ; i = (i + 1) & mask {
		if s := &c.slots[i]; s.head == 0 || s.address == address && s.rank == rank {
			return int(i)
		}
	}
}

// grow makes room for more addresses, and forgets all if there are too many.
func (c *cutter) grow() {
	old := c.slots
	if len(old) >= maxSlots {
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

// nextEpoch processes the middle epoch and advances.
func (c *cutter) nextEpoch() {
	if len(c.epochs[2]) == 0 && c.epoch < 0 {
		return
	}
	c.cutEpoch()
	e, l := c.epochs[0][:0], c.links[0]
	copy(c.epochs[:], c.epochs[1:])
	copy(c.first[:], c.first[1:])
	copy(c.links[:], c.links[1:])
	c.epochs[2], c.first[2], c.links[2] = e, c.next, [2][]link{l[0][:0], l[1][:0]}
}

// flush processes what is left.
func (c *cutter) flush() {
	c.nextEpoch()
	c.cutEpoch()
}

// cutEpoch processes the middle epoch, or at the end the last one.
func (c *cutter) cutEpoch() {
	c.orders, c.sorted, c.known, c.open = nil, map[int][]messageEnd{}, map[int64][]ledger.Piece{}, map[int64]struct{}{}
	for i := range c.epochs[1] {
		if pieces := c.cut(c.first[1] + int64(i)); pieces != nil {
			c.found(c.first[1]+int64(i), pieces)
		}
	}
}

// messageAt returns the message with an ordinal; nil if it is no longer in memory.
func (c *cutter) messageAt(ordinal int64) (m *ledger.Message, epoch int) {
	for e := range c.epochs {
		if i := ordinal - c.first[e]; i >= 0 && i < int64(len(c.epochs[e])) {
			return &c.epochs[e][i], e
		}
	}
	return nil, 0
}

// cut returns the pieces of a message, recursively; nil if it has none.
func (c *cutter) cut(ordinal int64) []ledger.Piece {
	m, _ := c.messageAt(ordinal)
	if m.Bytes == 0 || !c.hasSmaller(m.Src, m.Buffer, m.Bytes) && !c.hasSmaller(m.Dst, m.DstBuffer, m.Bytes) {
		return nil
	}
	if pieces, known := c.known[ordinal]; known {
		return pieces
	}
	if _, circle := c.open[ordinal]; circle {
		return nil
	}
	c.open[ordinal] = struct{}{}
	t := &tiling{cutter: c, whole: m, ordinal: ordinal}
	var pieces []ledger.Piece
	if t.search() && !t.hasRepeats() && c.sum.Repeated(m.Head, m.Bytes) != uint64(m.Hash) {
		pieces = t.pieces()
	}
	delete(c.open, ordinal)
	c.known[ordinal] = pieces
	return pieces
}

// hasSmaller reports whether a smaller message begins at the address, too.
func (c *cutter) hasSmaller(rank int32, address, bytes int64) bool {
	if address == schema.NullInt64 || address == 0 {
		return false
	}
	s := &c.slots[c.find(rank, address)]
	return s.head != 0 && s.least < bytes
}

// endsAtAddress returns the ends of messages at an address, in the rank's order.
func (c *cutter) endsAtAddress(rank int32, address int64) []messageEnd {
	at := c.find(rank, address)
	if list, ok := c.sorted[at]; ok {
		return list
	}
	var list []messageEnd
	for l := c.slots[at].head; l != 0; {
		ordinal := l/2 - 1
		m, e := c.messageAt(ordinal)
		if m == nil {
			break
		}
		end := int(l & 1)
		x := messageEnd{seq: m.SendSeq, ordinal: ordinal, send: true}
		if end == 1 {
			x.seq, x.send = m.DoneSeq, false
		}
		list = append(list, x)
		l = c.links[e][end][ordinal-c.first[e]]
	}
	slices.SortFunc(list, bySeq)
	c.sorted[at] = list
	return list
}

// tiling is a search for messages that together fill the memory of another one (the whole).
type tiling struct {
	cutter  *cutter
	whole   *ledger.Message
	ordinal int64
	rank    int32
	begin   int64 // address
	seq     int64 // the rank's event that sends or completes the whole
	before  bool  // tiles may come before the whole
	after   bool  // tiles may come after the whole
	tries   int
	tiles   []tile
}

// tile is a message in a tiling.
type tile struct{ ordinal, address int64 }

// search searches for tiles, in this order: later sends of the receiver, later sends of the sender, its earlier
// messages, and a mixture of both. As buffers are reused, the tiles of one operation usually lie on one side of the
// whole in time.
func (t *tiling) search() bool {
	m := t.whole
	for _, try := range []struct{ sender, before, startsAfter bool }{{false, false, true}, {true, false, true},
		{true, true, false}, {true, true, true}} {
		t.rank, t.begin, t.seq = m.Dst, m.DstBuffer, m.DoneSeq
		if try.sender {
			t.rank, t.begin, t.seq = m.Src, m.Buffer, m.SendSeq
		}
		key := addressRange{t.begin, m.Bytes, t.rank}
		if !t.cutter.hasSmaller(t.rank, t.begin, m.Bytes) || t.cutter.failed[key] >= maxFailures {
			continue
		}
		t.before, t.after, t.tries, t.tiles = try.before, try.startsAfter, maxTries, t.tiles[:0]
		if t.cutter.named[m.Datatype] {
			t.tries = maxPieces
		}
		if try.startsAfter && !try.before && !t.cutter.named[m.Datatype] && t.takeNextSends() || t.extend(0, 0) {
			t.cutter.failed[key] = 0
			return true
		}
		t.cutter.failed[key]++
	}
	return false
}

// takeNextSends tries the rank's next sends, up to the size of the whole, in a cyclic order of their addresses. This
// often works for derived datatypes with gaps and parts anywhere in memory.
func (t *tiling) takeNextSends() bool {
	list := t.cutter.endsAt(t.rank)
	at, _ := slices.BinarySearchFunc(list, t.seq, func(s messageEnd, seq int64) int { return cmp.Compare(s.seq, seq) })
	left := t.whole.Bytes
	for _, s := range list[at:min(at+maxAround, len(list))] {
		if m, _ := t.cutter.messageAt(s.ordinal); s.send && s.ordinal != t.ordinal && t.sameChannel(m) && left > 0 {
			t.tiles = append(t.tiles, tile{s.ordinal, m.Buffer})
			left -= m.Bytes
		}
	}
	slices.SortFunc(t.tiles, func(a, b tile) int { return cmp.Compare(uint64(a.address), uint64(b.address)) })
	for range t.tiles {
		hash := uint64(0)
		for _, x := range t.tiles {
			m, _ := t.cutter.messageAt(x.ordinal)
			hash = t.cutter.sum.Join(hash, uint64(m.Hash), m.Bytes)
		}
		if left == 0 && len(t.tiles) > 1 && hash == uint64(t.whole.Hash) {
			return true
		}
		t.tiles = append(t.tiles[1:], t.tiles[0])
	}
	t.tiles = nil
	return false
}

// extend searches for tiles from an offset on. hash is the combined hash of the tiles before it.
func (t *tiling) extend(offset int64, hash uint64) bool {
	if offset == t.whole.Bytes {
		return len(t.tiles) > 1 && hash == uint64(t.whole.Hash)
	}
	if t.tryTile(offset, hash, t.begin+offset, t.cutter.endsAtAddress(t.rank, t.begin+offset)) {
		return true
	}
	if offset == 0 || t.cutter.named[t.whole.Datatype] {
		return false
	}
	// The parts of a derived datatype may lie anywhere in memory, with gaps: the next tile may be at another address
	// that the rank uses with the same tag.
	last := t.tiles[len(t.tiles)-1]
	m, _ := t.cutter.messageAt(last.ordinal)
	for _, p := range t.otherAddresses(last.address + m.Bytes) {
		if t.tryTile(offset, hash, p, t.cutter.endsAtAddress(t.rank, p)) {
			return true
		}
	}
	return false
}

// sameChannel reports whether a message has the communicator and the tag of the whole.
func (t *tiling) sameChannel(m *ledger.Message) bool {
	return m.Tag == t.whole.Tag && m.Comm == t.whole.Comm
}

// otherAddresses returns other addresses that the rank uses shortly before or after the whole, with its communicator
// and tag. They begin with those from an address on.
func (t *tiling) otherAddresses(from int64) (places []int64) {
	list := t.cutter.endsAt(t.rank)
	at, _ := slices.BinarySearchFunc(list, t.seq, func(s messageEnd, seq int64) int { return cmp.Compare(s.seq, seq) })
	for _, s := range list[max(at-maxAround, 0):min(at+maxAround, len(list))] {
		m, _ := t.cutter.messageAt(s.ordinal)
		place := m.DstBuffer
		if s.send {
			place = m.Buffer
		}
		if t.sameChannel(m) && place != schema.NullInt64 && !slices.Contains(places, place) &&
			!slices.ContainsFunc(t.tiles, func(x tile) bool { return x.address == place }) {
			places = append(places, place)
		}
	}
	slices.SortFunc(places, func(a, b int64) int { return cmp.Compare(uint64(a-from), uint64(b-from)) })
	return places
}

// tryTile tries the messages at an address as the next tile, the nearest in time first.
func (t *tiling) tryTile(offset int64, hash uint64, address int64, list []messageEnd) bool {
	at, _ := slices.BinarySearchFunc(list, t.seq, func(s messageEnd, seq int64) int { return cmp.Compare(s.seq, seq) })
	before, after := at-1, at
	for range 2 * maxNear {
		var s messageEnd
		switch {
		case before >= 0 && t.before && (after >= len(list) || !t.after ||
			t.seq-list[before].seq <= list[after].seq-t.seq):
			s = list[before]
			before--
		case after < len(list) && t.after:
			s = list[after]
			after++
		default:
			return false
		}
		m, _ := t.cutter.messageAt(s.ordinal)
		if s.ordinal == t.ordinal || !s.send && (!t.before || s.seq > t.seq) || m.Bytes > t.whole.Bytes-offset ||
			m.Bytes == t.whole.Bytes {
			continue
		}
		if !t.cutter.named[t.whole.Datatype] && !t.sameChannel(m) {
			continue
		}
		if t.tries--; t.tries < 0 || len(t.tiles) >= maxPieces {
			return false
		}
		t.tiles = append(t.tiles, tile{s.ordinal, address})
		if t.extend(offset+m.Bytes, t.cutter.sum.Join(hash, uint64(m.Hash), m.Bytes)) {
			return true
		}
		t.tiles = t.tiles[:len(t.tiles)-1]
	}
	return false
}

// hasRepeats reports whether two tiles have the same payload: then their places are no evidence.
func (t *tiling) hasRepeats() bool {
	seen := map[[2]int64]bool{}
	for _, tile := range t.tiles {
		m, _ := t.cutter.messageAt(tile.ordinal)
		k := [2]int64{m.Hash, m.Bytes}
		if seen[k] {
			return true
		}
		seen[k] = true
	}
	return false
}

// pieces returns the tiles; a tile that was divided itself is replaced by its pieces.
func (t *tiling) pieces() (out []ledger.Piece) {
	for _, tile := range t.tiles {
		m, _ := t.cutter.messageAt(tile.ordinal)
		inner := t.cutter.cut(tile.ordinal)
		if inner == nil {
			inner = []ledger.Piece{{Hash: m.Hash, Bytes: m.Bytes, Head: m.Head}}
		}
		for _, p := range inner {
			p.Offset += tile.address - t.begin
			out = append(out, p)
		}
	}
	return out
}

// endsAt returns the ends of messages at a rank, in the rank's order.
func (c *cutter) endsAt(rank int32) []messageEnd {
	if c.orders == nil {
		c.orders = map[int32][]messageEnd{}
		for e := range c.epochs {
			for i := range c.epochs[e] {
				m, ordinal := &c.epochs[e][i], c.first[e]+int64(i)
				c.orders[m.Src] = append(c.orders[m.Src], messageEnd{m.SendSeq, ordinal, true})
				c.orders[m.Dst] = append(c.orders[m.Dst], messageEnd{m.DoneSeq, ordinal, false})
			}
		}
		for _, list := range c.orders {
			slices.SortFunc(list, bySeq)
		}
	}
	return c.orders[rank]
}

func bySeq(a, b messageEnd) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.ordinal, b.ordinal))
}
