package detect

import "github.com/commq/commq/schema"

// stream is the messages of a cell from one rank to another: what is asked of a message by its cell and its ranks is asked once of its stream.
type stream struct {
	streamKey
	count     int64
	classed   bool        // its messages may be of a complete exchange
	exchanged exchanged   // and are, once that was asked
	sampled   *sampledWay // nil: none of them is kept

	buffer, dstBuffer int64 // of the last one
}

type streamKey struct {
	cell
	way
}

// exchanged says whether messages are of a complete exchange.
type exchanged int8

const (
	notAsked exchanged = iota
	inExchange
	inNoExchange
)

// streams finds the streams of messages. Those that are asked for again and again are found without the map.
type streams struct {
	*detector
	exchangers *exchangers
	layout     *layout         // nil once all messages were seen
	perSize    map[int64]int64 // messages by their size; what is too much is counted as anySize
	all        map[streamKey]*stream
	selves     bool // there are messages from a rank to itself
	recent     [1 << 14]*stream
}

const (
	mostStreams = 1 << 20 // that are remembered at once
	mostSizes   = 1 << 16
)

// of is the stream of row i.
func (l *streams) of(b *schema.Messages, i int) *stream {
	k := streamKey{cellOf(b, i), way{b.Src[i], b.Dst[i]}}
	h := (uint64(uint32(k.src))<<32 | uint64(uint32(k.dst))) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32 ^ uint64(k.bytes) ^ uint64(uint32(k.tag))<<40 ^ uint64(uint32(k.site))<<20 ^ uint64(uint32(k.datatype))<<52) * 0xbf58476d1ce4e5b9
	place := &l.recent[h>>50]
	if *place != nil && (*place).streamKey == k {
		return *place
	}
	found := l.all[k]
	if found == nil {
		if len(l.all) >= mostStreams {
			l.forget()
		}
		found = &stream{streamKey: k}
		l.begin(found)
		l.all[k] = found
	}
	*place = found
	return found
}

// begin asks what is the same for all messages of a stream.
func (l *streams) begin(n *stream) {
	if !l.sample.over {
		n.sampled = l.sample.way(n.cell, n.way)
	}
	if n.src == n.dst {
		l.selves = true
	} else {
		m := n.message()
		n.classed = l.exchangers.add(&m)
	}
}

// message is what all messages of a stream are.
func (n *stream) message() message {
	return message{src: n.src, dst: n.dst, comm: n.comm, tag: n.tag, datatype: n.datatype, sendSite: n.site, bytes: n.bytes}
}

// add counts row i, and keeps it if it is one of the first.
func (l *streams) add(b *schema.Messages, i int, rest schema.Rest) error {
	n := l.of(b, i)
	n.count++
	if n.src != n.dst && (n.count == 1 || n.buffer != b.SrcBuffer[i] || n.dstBuffer != b.DstBuffer[i]) {
		n.buffer, n.dstBuffer = b.SrcBuffer[i], b.DstBuffer[i]
		l.layout.put(n.src, n.buffer, n.bytes, n.datatype)
		l.layout.put(n.dst, n.dstBuffer, n.bytes, n.datatype)
	}
	if n.sampled == nil {
		return nil
	}
	if !l.sample.wants(n.sampled) {
		n.sampled.count++
		return nil
	}
	if err := rest(i, b.Len()); err != nil {
		return err
	}
	l.sample.add(n.sampled, b, i)
	return nil
}

// complete says whether row i may be of a complete exchange.
func (l *streams) complete(b *schema.Messages, i int) bool {
	n := l.of(b, i)
	if n.exchanged == notAsked {
		m := n.message()
		n.exchanged = inNoExchange
		if l.exchangers.complete(&m) {
			n.exchanged = inExchange
		}
	}
	return n.exchanged == inExchange
}

// tally adds up what the streams have counted.
func (l *streams) tally() {
	for _, n := range l.all {
		if n.src == n.dst || n.count == 0 {
			continue
		}
		l.used[spotOf(n.comm, n.tag, n.site)] += n.count
		size := n.bytes
		if _, known := l.perSize[size]; !known && len(l.perSize) >= mostSizes {
			size = anySize
		}
		l.perSize[size] += n.count
		if !n.classed {
			l.exchangers.unclassed += n.count
		}
		n.count = 0
	}
}

// forget makes room for other streams.
func (l *streams) forget() {
	l.tally()
	clear(l.all)
	clear(l.recent[:])
}
