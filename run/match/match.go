// Package match pairs sends with receives by MPI's non-overtaking rule: on each channel, that is communicator, source,
// destination and tag, the n-th send meets the n-th receive in posting order. It holds only what still waits for its
// partner. docs/method/matching.md describes the rule and what counts as a send or a receive.
package match

import "slices"

// Channel identifies messages that are matched in order: a send and a receive must agree on it. Source and destination
// are world ranks.
type Channel struct {
	Comm, Src, Dst, Tag int32
	// Part identifies partitioned requests; ordinary messages have 0. The n-th that the sender makes meets the n-th of
	// the receiver. In a trace that numbers its messages it is the message's number.
	Part int32
}

// Send is a posted send. Its fields are columns of messages; null where unknown.
type Send struct {
	Channel
	Datatype int32
	Seq      int64 // of the row that sent or started it
	StartNs  int64 // of that row
	EndNs    int64 // of that row
	Bytes    int64 // column bytes
	Count    int64 // column count
	Buffer   int64 // column src_buffer
	Callsite int32 // of that row
	Payload  Payload
	// Hidden marks a message that is counted but has no row.
	Hidden bool
}

// Payload holds the hashes of the sent data, as in the columns payload_hash, payload_sum and payload_head; null if
// there are none.
type Payload struct {
	Hash, Sum, Head int64
}

// Recv is a posted receive with its result: a wildcard has the source and tag of its status here.
type Recv struct {
	Channel
	// Any is non-zero when it was posted with a wildcard.
	Any     int32
	PostSeq int64 // of the row that posted or started it
	PostNs  int64 // start of that row
	DoneSeq int64 // of the row that completed it
	StartNs int64 // of that row
	EndNs   int64 // of that row
	Buffer  int64
	// Bytes is the received size. Matching does not look at it.
	Bytes int64
	// Callsite is the call site of the completing row.
	Callsite int32
	Hash     int64 // of the received data, as in the column recv_hash
}

// Matcher pairs the sends and receives that it is given. Sends of one channel must come in posting order, and so must
// receives; the two may be interleaved at will. The zero value is ready to use.
type Matcher struct {
	table []entry // open addressing, linear probing; the length is a power of two
	used  int     // entries that have a channel
	live  int     // entries whose queue is not empty
	sends pool[Send]
	recvs pool[Recv]
}

// entry is a channel with the queue of what waits on it, either sends or receives.
type entry struct {
	Channel
	head, tail int32 // nodes of recvs when positive, of sends when negative; 0: nothing waits
	used       bool
}

// pool holds the queued values; node numbers begin at 1.
type pool[T any] struct {
	values []T
	next   []int32
	free   int32
}

func (p *pool[T]) put(v *T) int32 {
	if p.free == 0 {
		p.values, p.next = append(p.values, *v), append(p.next, 0)
		return int32(len(p.values))
	}
	n := p.free
	p.free = p.next[n-1]
	p.values[n-1], p.next[n-1] = *v, 0
	return n
}

func (p *pool[T]) release(n int32) {
	p.next[n-1] = p.free
	p.free = n
}

// Send adds the next send of its channel. It returns the receive that waited for it, valid until the next call of
// Recv or Sweep, or nil when the send now waits.
func (m *Matcher) Send(s *Send) *Recv {
	e := m.entry(s.Channel)
	if e.head > 0 {
		n := e.head
		m.pop(e, m.recvs.next[n-1])
		m.recvs.release(n)
		return &m.recvs.values[n-1]
	}
	n := m.sends.put(s)
	if e.head == 0 {
		e.head, m.live = -n, m.live+1
	} else {
		m.sends.next[-e.tail-1] = n
	}
	e.tail = -n
	return nil
}

// Recv adds the next receive of its channel. It returns the send that waited for it, valid until the next call of a
// method, or nil when the receive now waits.
func (m *Matcher) Recv(r *Recv) *Send {
	e := m.entry(r.Channel)
	if e.head < 0 {
		n := -e.head
		m.pop(e, -m.sends.next[n-1])
		m.sends.release(n)
		return &m.sends.values[n-1]
	}
	n := m.recvs.put(r)
	if e.head == 0 {
		e.head, m.live = n, m.live+1
	} else {
		m.recvs.next[e.tail-1] = n
	}
	e.tail = n
	return nil
}

// tidy puts the free nodes in order, so that what is queued together lies together in memory.
func (p *pool[T]) tidy() {
	const free = -1
	for n := p.free; n != 0; {
		n, p.next[n-1] = p.next[n-1], free
	}
	p.free = 0
	for i, next := range slices.Backward(p.next) {
		if next == free {
			p.next[i], p.free = p.free, int32(i+1)
		}
	}
}

func (m *Matcher) pop(e *entry, next int32) {
	e.head = next
	if next == 0 {
		e.tail = 0
		m.live--
	}
}

// Waiting returns the numbers of sends and receives that wait for a partner.
func (m *Matcher) Waiting() (sends, recvs int64) {
	m.Each(func(*Send) { sends++ }, func(*Recv) { recvs++ })
	return sends, recvs
}

// Each calls the functions for everything that waits, in no particular order.
func (m *Matcher) Each(send func(*Send), recv func(*Recv)) {
	for i := range m.table {
		for n := m.table[i].head; n > 0; n = m.recvs.next[n-1] {
			recv(&m.recvs.values[n-1])
		}
		for n := -m.table[i].head; n > 0; n = m.sends.next[n-1] {
			send(&m.sends.values[n-1])
		}
	}
}

// Sweep forgets channels on which nothing waits once they are the majority, because a program that never uses a tag
// twice must not fill the memory. It also puts free memory in order, so that what is queued next lies together. Call it
// now and then.
func (m *Matcher) Sweep() {
	m.sends.tidy()
	m.recvs.tidy()
	if m.used > 4096 && m.used > 4*m.live {
		m.rehash(m.live)
	}
}

const minTable = 64

// entry finds or makes the entry of a channel.
func (m *Matcher) entry(c Channel) *entry {
	if 4*(m.used+1) > 3*len(m.table) {
		m.rehash(m.used + 1)
	}
	mask := uint32(len(m.table) - 1)
	for i := hash(c) & mask; ; i = (i + 1) & mask {
		e := &m.table[i]
		if !e.used {
			e.Channel, e.used = c, true
			m.used++
			return e
		}
		if e.Channel == c {
			return e
		}
	}
}

// rehash makes a table for at least n entries. It keeps the entries that have a queue, and others while there is
// space.
func (m *Matcher) rehash(n int) {
	size := minTable
	for size < 2*n {
		size *= 2
	}
	old := m.table
	keepEmpty := n > m.live
	m.table, m.used = make([]entry, size), 0
	mask := uint32(size - 1)
	for k := range old {
		e := &old[k]
		if !e.used || e.head == 0 && !keepEmpty {
			continue
		}
		i := hash(e.Channel) & mask
		for m.table[i].used {
			i = (i + 1) & mask
		}
		m.table[i] = *e
		m.used++
	}
}

func hash(c Channel) uint32 {
	h := (uint64(uint32(c.Src))<<32 | uint64(uint32(c.Dst))) * 0x9E3779B97F4A7C15
	h ^= (uint64(uint32(c.Tag))<<32 | uint64(uint32(c.Comm))) * 0xC2B2AE3D27D4EB4F
	h += uint64(uint32(c.Part)) * 0x165667B19E3779F9
	h ^= h >> 29
	h *= 0xBF58476D1CE4E5B9
	return uint32(h >> 32)
}

// Pair is a matched send and receive.
type Pair struct {
	Send Send
	Recv Recv
}
