package scan

import (
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// stream is the messages of a cell from one rank to another. What depends only on cell and ranks is looked up once
// per stream.
type stream struct {
	streamKey
	count     int64
	classed   bool              // its messages may be part of a complete exchange
	exchanged exchanged         // whether they are, once known
	sampled   *ledger.WaySample // nil: none is kept

	buffer, dstBuffer int64   // of the last message
	after             *stream // the stream of the message that followed the last one; nil: not known
}

type streamKey = ledger.Stream

// recentStreams is the size of a table of streams by slotOf.
const recentStreams = 1 << 14

// slotOf returns the place of a stream in a table of recentStreams.
func slotOf(k *streamKey) uint64 {
	h := (uint64(uint32(k.Src))<<32 | uint64(uint32(k.Dst))) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32 ^ uint64(k.Bytes) ^ uint64(uint32(k.Tag))<<40 ^ uint64(uint32(k.Site))<<20 ^
		uint64(uint32(k.Datatype))<<52) * 0xbf58476d1ce4e5b9
	return h >> 50
}

// exchanged is whether messages are part of a complete exchange.
type exchanged int8

const (
	notAsked exchanged = iota
	inExchange
	inNoExchange
)

// streams finds the streams of messages. Those used repeatedly are found without the map.
type streams struct {
	sample     *ledger.Sample
	used       map[ledger.Place]int64 // number of messages sent at each place
	Exchangers *exchangers
	layout     *layout         // nil once all messages were seen
	perSize    map[int64]int64 // number of messages by size; too many sizes are counted as anySize
	all        map[streamKey]*stream
	selves     bool // some rank sends to itself
	recent     [recentStreams]*stream
	last       *stream // of the row looked up last
}

const (
	maxStreams = 1 << 20 // remembered together
	maxSizes   = 1 << 16
)

// streamOf returns the stream of row i.
func streamOf(b *schema.Messages, i int) streamKey {
	return streamKey{Cell: ledger.CellOf(b, i), Way: ledger.Way{Src: b.Src[i], Dst: b.Dst[i]}}
}

// hasRow reports whether row i belongs to a stream.
func hasRow(k *streamKey, b *schema.Messages, i int) bool {
	return b.Dst[i] == k.Dst && b.SendCallsite[i] == k.Site && b.Tag[i] == k.Tag && b.Bytes[i] == k.Bytes &&
		b.Src[i] == k.Src && b.Comm[i] == k.Comm && b.SendDatatype[i] == k.Datatype
}

// lookup returns the stream of row i. Most follow the stream that they followed before.
func (l *streams) lookup(b *schema.Messages, i int) *stream {
	if last := l.last; last != nil && last.after != nil && hasRow(&last.after.streamKey, b, i) {
		l.last = last.after
		return l.last
	}
	found := l.search(b, i)
	if l.last != nil {
		l.last.after = found
	}
	l.last = found
	return found
}

// search returns the stream of row i from the tables, or adds it.
func (l *streams) search(b *schema.Messages, i int) *stream {
	k := streamOf(b, i)
	place := &l.recent[slotOf(&k)]
	if *place != nil && (*place).streamKey == k {
		return *place
	}
	found := l.all[k]
	if found == nil {
		if len(l.all) >= maxStreams {
			l.forget()
		}
		found = &stream{streamKey: k}
		l.start(found)
		l.all[k] = found
	}
	*place = found
	return found
}

// start looks up what is the same for all messages of a stream.
func (l *streams) start(n *stream) {
	if !l.sample.Closed {
		n.sampled = l.sample.WayOf(n.Cell, n.Way)
	}
	if n.Src == n.Dst {
		l.selves = true
	} else {
		m := n.message()
		n.classed = l.Exchangers.add(&m)
	}
}

// message returns what all messages of a stream have in common.
func (n *stream) message() ledger.Message {
	return ledger.Message{Src: n.Src, Dst: n.Dst, Comm: n.Comm, Tag: n.Tag, Datatype: n.Datatype, SendSite: n.Site,
		Bytes: n.Bytes}
}

// add counts row i and keeps it if it is among the first.
func (l *streams) add(b *schema.Messages, i int, rest schema.Rest) error {
	n := l.lookup(b, i)
	n.count++
	if n.Src != n.Dst && (n.count == 1 || n.buffer != b.SrcBuffer[i] || n.dstBuffer != b.DstBuffer[i]) {
		n.buffer, n.dstBuffer = b.SrcBuffer[i], b.DstBuffer[i]
		l.layout.put(n.Src, n.buffer, n.Bytes, n.Datatype)
		l.layout.put(n.Dst, n.dstBuffer, n.Bytes, n.Datatype)
	}
	if n.sampled == nil {
		return nil
	}
	if !l.sample.Keeps(n.sampled) {
		n.sampled.Count++
		return nil
	}
	if err := rest(i, b.Len()); err != nil {
		return err
	}
	l.sample.Add(n.sampled, b, i)
	return nil
}

// inExchange reports whether row i may be part of a complete exchange.
func (l *streams) inExchange(b *schema.Messages, i int) bool {
	n := l.lookup(b, i)
	if n.exchanged == notAsked {
		m := n.message()
		n.exchanged = inNoExchange
		if l.Exchangers.inExchange(&m) {
			n.exchanged = inExchange
		}
	}
	return n.exchanged == inExchange
}

// tally adds up the counts of the streams.
func (l *streams) tally() {
	for _, n := range l.all {
		if n.Src == n.Dst || n.count == 0 {
			continue
		}
		l.used[ledger.PlaceOf(n.Comm, n.Tag, n.Site)] += n.count
		size := n.Bytes
		if _, known := l.perSize[size]; !known && len(l.perSize) >= maxSizes {
			size = ledger.AnySize
		}
		l.perSize[size] += n.count
		if !n.classed {
			l.Exchangers.Unclassed += n.count
		}
		n.count = 0
	}
}

// forget makes room for other streams.
func (l *streams) forget() {
	l.tally()
	clear(l.all)
	clear(l.recent[:])
	l.last = nil
}
