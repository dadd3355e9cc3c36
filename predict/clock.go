package predict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// Clock is the logical time of every call, as PAS2P orders them: a call is one tick after the one before it on its rank; one that receives or completes
// receives, at least one after the sends; one that ends a collective is as late as the last rank that entered it. Sends wait for nobody, nor does
// what a call sends for what it receives: that is sent one tick after the call before it.
type Clock struct {
	// Ticks are, by rank, those of its calls, from 1.
	Ticks [][]int32
	// Last is the largest.
	Last int32
}

// need is a message, by channel and its number there, or, where collective, a collective operation.
type need struct {
	channel    int32
	number     int32
	collective bool
}

const none = -1

// channel is messages that overtake one another not.
type channel struct {
	comm, src, dst, tag int32
}

type instance struct {
	comm   int32
	number int64
}

// clockwork ticks. It holds what is under way, not what was.
type clockwork struct {
	sig         *Signature
	visit       func(rank int32, seq int64, tick int32)
	channels    map[channel]int32
	collectives map[instance]int32
	queues      []queue // by channel
	entered     []int32 // ranks in a collective, by its number
	size        []int32
	latest      []int32
	left        []int32          // ranks that have not come out of it
	free        []int32          // numbers of collectives that are over
	keys        []instance       // of collectives, by number
	waiting     map[need][]int32 // ranks
	ready       []int32          // ranks that can go on
	ranks       []clockRank
	last        int32
}

// queue are the messages of a channel.
type queue struct {
	sent   []int32 // ticks; received: those that are
	first  int32   // number of sent[0]
	done   int32   // of sent, from its start, are received
	posted int32   // receives so far
}

const received = -1

// clockRank is where a rank is.
type clockRank struct {
	cursor    cursor
	at        *Node  // the call that is to come; nil: none is read yet
	send      int32  // its channel; none: it does not send
	enters    int32  // the collective that it has to enter; none
	needs     []need // what it waits for
	later     []need // what a call that completes it waits for
	seq       int64  // of that call
	tick      int32  // of the one before
	made      []int32
	open      map[post][]need
	instances map[int32]int64
}

// Clock finds the logical time of every call. It is an error when ranks wait for one another for ever, or for a message that is never sent: it names
// them.
func (s *Signature) Clock() (*Clock, error) {
	c := &Clock{Ticks: make([][]int32, s.Ranks)}
	var err error
	c.Last, _, err = s.ticks(func(rank int32, _ int64, tick int32) { c.Ticks[rank] = append(c.Ticks[rank], tick) })
	if err != nil {
		return nil, err
	}
	return c, nil
}

// ticks calls visit with the logical time of every call, each rank's in their order. It returns the last, and says of messages that are sent and
// not received, or received and not sent, which they are.
func (s *Signature) ticks(visit func(rank int32, seq int64, tick int32)) (last int32, unmatched []string, err error) {
	w := &clockwork{sig: s, visit: visit, channels: map[channel]int32{}, collectives: map[instance]int32{}, waiting: map[need][]int32{}, ranks: make([]clockRank, s.Ranks)}
	for r := range w.ranks {
		w.ranks[r] = clockRank{cursor: s.cursor(int32(r)), made: make([]int32, len(s.nodes)), open: map[post][]need{}, instances: map[int32]int64{}}
		w.ready = append(w.ready, int32(r))
	}
	for len(w.ready) > 0 {
		now := w.ready
		w.ready = nil
		for _, rank := range now {
			w.advance(rank)
		}
	}
	var stuck []string
	for r := range w.ranks {
		if p := &w.ranks[r]; p.at != nil {
			stuck = append(stuck, fmt.Sprintf("rank %d at seq %d, %s, for %s", r, p.seq, s.Symbols[p.at.Symbol].Call, w.lacks(p)))
		}
	}
	if n := len(stuck); n > 0 {
		return 0, nil, fmt.Errorf("%d ranks wait for ever: %s", n, strings.Join(stuck[:min(n, 3)], "; "))
	}
	return w.last, w.unmatched(), nil
}

// unmatched says which messages have no partner.
func (w *clockwork) unmatched() (all []string) {
	var keys []channel
	for k, id := range w.channels {
		if q := &w.queues[id]; q.first+int32(len(q.sent)) != q.posted {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b channel) int {
		return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst), cmp.Compare(a.comm, b.comm), cmp.Compare(a.tag, b.tag))
	})
	for _, k := range keys {
		q := &w.queues[w.channels[k]]
		all = append(all, fmt.Sprintf("rank %d sends %d messages with tag %d on communicator %d to rank %d, which receives %d", k.src, q.first+int32(len(q.sent)), k.tag, k.comm, k.dst, q.posted))
	}
	return all
}

// blocking are the recorders of calls that receive before they return.
var blocking = map[string]bool{"recv": true, "sendrecv": true, "mrecv": true}

// read reads a rank's next call; false: there is none.
func (w *clockwork) read(rank int32) bool {
	p := &w.ranks[rank]
	n, value := p.cursor.next()
	p.at = n
	if n == nil {
		return false
	}
	c := w.sig.Values[n.ID].Events[value]
	sym := &w.sig.Symbols[n.Symbol]
	class := w.sig.classOf(n, c)
	p.send, p.enters, p.needs, p.later = none, none, p.needs[:0], nil
	comm := c.Comm.int32()
	if (class == schema.ClassSend || class == schema.ClassSendrecv) && len(c.Send) > 0 && c.Send[SidePeer] != null {
		p.send = w.channel(channel{comm, rank, rank + c.Send[SidePeer].int32(), c.Send[SideTag].int32()})
	}
	if (class == schema.ClassRecv || class == schema.ClassSendrecv) && len(c.Recv) > 0 && c.Recv[SidePeer] != null {
		ch := w.channel(channel{comm, rank + c.Recv[SidePeer].int32(), rank, c.Recv[SideTag].int32()})
		x := need{ch, w.queues[ch].posted, false}
		w.queues[ch].posted++
		if blocking[schema.Calls[sym.call].Recorder] {
			p.needs = append(p.needs, x)
		} else {
			p.later = append(p.later, x)
		}
	}
	if c.Instance && class == schema.ClassCollective && c.Init == nil {
		p.enters = w.collective(comm, p.instances[comm])
		x := need{p.enters, 0, true}
		if c.Request {
			p.later = append(p.later, x)
		} else {
			p.needs = append(p.needs, x)
		}
	}
	if c.Instance {
		p.instances[comm]++
	}
	for _, q := range c.Completes {
		first := p.made[q[0]] - 1 - q[1]
		for k := range q[2] {
			at := post{q[0], first + k}
			p.needs = append(p.needs, p.open[at]...)
			delete(p.open, at)
		}
	}
	if p.later != nil {
		p.open[post{n.ID, p.made[n.ID]}] = p.later
	}
	p.made[n.ID]++
	return true
}

func classNamed(name string) schema.Class {
	for i, n := range schema.ClassNames {
		if n == name {
			return schema.Class(i)
		}
	}
	return schema.ClassOther
}

func (w *clockwork) channel(k channel) int32 {
	id, known := w.channels[k]
	if !known {
		id = int32(len(w.queues))
		w.channels[k] = id
		w.queues = append(w.queues, queue{})
	}
	return id
}

func (w *clockwork) collective(comm int32, number int64) int32 {
	k := instance{comm, number}
	id, known := w.collectives[k]
	if known {
		return id
	}
	if n := len(w.free); n > 0 {
		id, w.free = w.free[n-1], w.free[:n-1]
	} else {
		id = int32(len(w.entered))
		w.entered, w.size, w.latest, w.left, w.keys = append(w.entered, 0), append(w.size, 0), append(w.latest, 0), append(w.left, 0), append(w.keys, k)
	}
	w.keys[id] = k
	w.collectives[k] = id
	size := int32(0)
	if c := w.sig.comms[comm]; c != nil {
		for _, group := range [2]Ranks{c.Members, c.Remote} {
			for _, world := range group {
				if world >= 0 {
					size++
				}
			}
		}
	}
	w.entered[id], w.size[id], w.latest[id], w.left[id] = 0, size, 0, size
	return id
}

// quantum is how many calls a rank makes before others have their turn: so no rank is far ahead of those that receive what it sends.
const quantum = 256

// advance lets a rank go on for a while, as far as it can.
func (w *clockwork) advance(rank int32) {
	p := &w.ranks[rank]
	for range quantum {
		if p.at == nil && !w.read(rank) {
			return
		}
		tick := p.tick + 1
		if id := p.send; id != none {
			p.send = none // a call that sends and receives comes here again when it waited
			q := &w.queues[id]
			q.sent = append(q.sent, tick)
			w.wake(need{id, q.first + int32(len(q.sent)) - 1, false})
		}
		if id := p.enters; id != none {
			p.enters = none // it comes here again when it waited
			w.entered[id]++
			w.latest[id] = max(w.latest[id], tick)
			if w.entered[id] == w.size[id] {
				w.wake(need{id, 0, true})
			}
		}
		for _, x := range p.needs {
			t, there := w.time(x)
			if !there {
				w.waiting[x] = append(w.waiting[x], rank)
				return
			}
			tick = max(tick, t)
		}
		for _, x := range p.needs {
			w.over(x)
		}
		w.visit(rank, p.seq, tick)
		w.last = max(w.last, tick)
		p.at, p.tick = nil, tick
		p.seq++
	}
	w.ready = append(w.ready, rank)
}

func (w *clockwork) wake(x need) {
	if ranks, some := w.waiting[x]; some {
		delete(w.waiting, x)
		w.ready = append(w.ready, ranks...)
	}
}

// time is the earliest tick of a call that needs x, once it is there.
func (w *clockwork) time(x need) (int32, bool) {
	if x.collective {
		return w.latest[x.channel], w.entered[x.channel] >= w.size[x.channel]
	}
	q := &w.queues[x.channel]
	if at := int(x.number - q.first); at < len(q.sent) {
		return q.sent[at] + 1, true
	}
	return 0, false
}

// over forgets what a call has waited for.
func (w *clockwork) over(x need) {
	if x.collective {
		if w.left[x.channel]--; w.left[x.channel] == 0 {
			delete(w.collectives, w.keys[x.channel])
			w.free = append(w.free, x.channel)
		}
		return
	}
	q := &w.queues[x.channel]
	q.sent[x.number-q.first] = received
	for int(q.done) < len(q.sent) && q.sent[q.done] == received {
		q.done++
	}
	if 2*int(q.done) >= len(q.sent) {
		q.sent = append(q.sent[:0], q.sent[q.done:]...)
		q.first, q.done = q.first+q.done, 0
	}
}

// lacks says what a rank waits for.
func (w *clockwork) lacks(p *clockRank) string {
	for _, x := range p.needs {
		if _, there := w.time(x); there {
			continue
		}
		if x.collective {
			return fmt.Sprintf("a collective that %d of %d ranks entered", w.entered[x.channel], w.size[x.channel])
		}
		for k, id := range w.channels {
			if id == x.channel {
				q := &w.queues[id]
				return fmt.Sprintf("message %d from rank %d with tag %d on communicator %d, of which %d are sent", x.number, k.src, k.tag, k.comm, q.first+int32(len(q.sent)))
			}
		}
	}
	return "nothing"
}
