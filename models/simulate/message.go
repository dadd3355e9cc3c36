package simulate

// message is a message in progress.
type message struct {
	bytes, seq int64
	at         Picoseconds // when it was sent; in channel.sends (Dimemas) when it arrives
	src, dst   int32       // ranks
	channel    int32       // none for a one-sided transfer; in a Reduce made of messages the collective, see asWaiter
	to         int32       // taker of the receive that it was matched with
	sender     int32       // taker that continues when it has been received or, in Dimemas, when it starts
	next, prev int32       // in a queue for links
	site       int32
	call       int16
	sync       bool // waits for its receiver
	started    bool
	arrived    bool
	out, in    bool // holds the link outwards, inwards
	waitsIn    bool // holds the link outwards and is queued for the one inwards
}

// A taker identifies who waits for a message or a collective: a blocked thread, or the request of a nonblocking
// operation.
func takerOf(thread int32) int32 { return -2 - thread }
func isThread(taker int32) bool  { return taker < none }
func threadOf(taker int32) int32 { return -2 - taker }

// messagePool holds the messages in progress.
type messagePool struct {
	items []message
	free  int32
}

// add returns an unused message.
func (p *messagePool) add() int32 {
	m := p.free
	if m == none {
		p.items = append(p.items, message{})
		return int32(len(p.items) - 1)
	}
	p.free = p.items[m].next
	return m
}

// release frees a message.
func (p *messagePool) release(m int32) {
	p.items[m].next = p.free
	p.free = m
}

// list is a doubly linked queue of messages, through message.next and message.prev.
type list struct{ first, last int32 }

func (p *messagePool) pushBack(l *list, m int32) {
	x := &p.items[m]
	x.next, x.prev = none, l.last
	if l.last == none {
		l.first = m
	} else {
		p.items[l.last].next = m
	}
	l.last = m
}

func (p *messagePool) pushFront(l *list, m int32) {
	x := &p.items[m]
	x.next, x.prev = l.first, none
	if l.first == none {
		l.last = m
	} else {
		p.items[l.first].prev = m
	}
	l.first = m
}

func (p *messagePool) remove(l *list, m int32) {
	x := &p.items[m]
	if x.prev == none {
		l.first = x.next
	} else {
		p.items[x.prev].next = x.next
	}
	if x.next == none {
		l.last = x.prev
	} else {
		p.items[x.next].prev = x.prev
	}
}

func (p *messagePool) popFront(l *list) int32 {
	m := l.first
	if m != none {
		p.remove(l, m)
	}
	return m
}
