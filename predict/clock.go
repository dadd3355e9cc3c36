package predict

import (
	"fmt"
	"strings"

	"github.com/commq/commq/schema"
)

// Clock is the logical time of every call, as PAS2P orders them: a call is one tick after the one before it on its rank; one that receives or completes
// receives, at least one after the sends; one that ends a collective is as late as the last rank that entered it. Sends wait for nobody.
type Clock struct {
	// Ticks are, by rank, those of its calls, from 1.
	Ticks [][]int32
	// Last is the largest.
	Last int32
}

// clockOp is what a call does to the clock.
type clockOp struct {
	send         int32 // channel, none: it does not send
	enters       int32 // collective, none
	needs, until int32 // of its rank's needs
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

// clockwork ticks.
type clockwork struct {
	sig         *Signature
	channels    map[channel]int32
	collectives map[instance]int32
	sent        [][]int32 // ticks of messages, by channel
	posted      []int32   // receives so far, by channel
	entered     []int32   // ranks in a collective, by its number
	size        []int32
	latest      []int32
	waiting     map[need][]int32 // ranks
	ranks       []clockRank
}

type clockRank struct {
	ops   []clockOp
	needs []need
	ticks []int32
}

// Clock finds the logical time of every call. It is an error when ranks wait for one another for ever, or for a message that is never sent: it names
// them.
func (s *Signature) Clock() (*Clock, error) {
	w := &clockwork{sig: s, channels: map[channel]int32{}, collectives: map[instance]int32{}, waiting: map[need][]int32{}, ranks: make([]clockRank, s.Ranks)}
	for r := range w.ranks {
		w.read(int32(r))
	}
	ready := make([]int32, s.Ranks)
	for r := range ready {
		ready[r] = int32(r)
	}
	for len(ready) > 0 {
		rank := ready[len(ready)-1]
		ready = w.advance(rank, ready[:len(ready)-1])
	}
	c := &Clock{}
	var stuck []string
	for r := range w.ranks {
		p := &w.ranks[r]
		if at := len(p.ticks); at < len(p.ops) {
			stuck = append(stuck, fmt.Sprintf("rank %d at seq %d, %s, for %s", r, at, w.callAt(int32(r), at), w.lacks(p, at)))
		} else if at > 0 {
			c.Last = max(c.Last, p.ticks[at-1])
		}
		c.Ticks = append(c.Ticks, p.ticks)
	}
	if n := len(stuck); n > 0 {
		return nil, fmt.Errorf("%d ranks wait for ever: %s", n, strings.Join(stuck[:min(n, 3)], "; "))
	}
	return c, nil
}

// blocking are the recorders of calls that receive before they return.
var blocking = map[string]bool{"recv": true, "sendrecv": true, "mrecv": true}

// read makes the operations of a rank.
func (w *clockwork) read(rank int32) {
	p := &w.ranks[rank]
	type made struct{ needs []need } // what a call that completes this one waits for
	calls := make([][]made, len(w.sig.nodes))
	instances := map[int32]int64{}
	w.sig.Walk(rank, func(n *Node, c *Call) {
		sym := &w.sig.Symbols[n.Symbol]
		class := schema.Calls[sym.call].Class
		if c.Class != "" {
			class = classNamed(c.Class)
		}
		op := clockOp{send: none, enters: none, needs: int32(len(p.needs))}
		var later []need
		comm := c.Comm.int32()
		if (class == schema.ClassSend || class == schema.ClassSendrecv) && len(c.Send) > 0 && c.Send[SidePeer] != null {
			op.send = w.channel(channel{comm, rank, rank + c.Send[SidePeer].int32(), c.Send[SideTag].int32()})
		}
		if (class == schema.ClassRecv || class == schema.ClassSendrecv) && len(c.Recv) > 0 && c.Recv[SidePeer] != null {
			ch := w.channel(channel{comm, rank + c.Recv[SidePeer].int32(), rank, c.Recv[SideTag].int32()})
			x := need{ch, w.posted[ch], false}
			w.posted[ch]++
			if blocking[schema.Calls[sym.call].Recorder] {
				p.needs = append(p.needs, x)
			} else {
				later = append(later, x)
			}
		}
		if c.Instance && class == schema.ClassCollective && c.Init == nil {
			op.enters = w.collective(comm, instances[comm])
			x := need{op.enters, 0, true}
			if c.Request {
				later = append(later, x)
			} else {
				p.needs = append(p.needs, x)
			}
		}
		if c.Instance {
			instances[comm]++
		}
		for _, q := range c.Completes {
			first := len(calls[q[0]]) - 1 - int(q[1])
			for k := range int(q[2]) {
				if at := first + k; at >= 0 {
					p.needs = append(p.needs, calls[q[0]][at].needs...)
				}
			}
		}
		calls[n.ID] = append(calls[n.ID], made{later})
		op.until = int32(len(p.needs))
		p.ops = append(p.ops, op)
	})
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
		id = int32(len(w.sent))
		w.channels[k] = id
		w.sent, w.posted = append(w.sent, nil), append(w.posted, 0)
	}
	return id
}

func (w *clockwork) collective(comm int32, number int64) int32 {
	k := instance{comm, number}
	id, known := w.collectives[k]
	if !known {
		id = int32(len(w.entered))
		w.collectives[k] = id
		size := int32(0)
		if c := w.sig.comms[comm]; c != nil {
			for _, world := range append(append(Ranks{}, c.Members...), c.Remote...) {
				if world >= 0 {
					size++
				}
			}
		}
		w.entered, w.size, w.latest = append(w.entered, 0), append(w.size, size), append(w.latest, 0)
	}
	return id
}

// advance lets a rank go on as far as it can, and adds those that waited for it to ready.
func (w *clockwork) advance(rank int32, ready []int32) []int32 {
	p := &w.ranks[rank]
	for at := len(p.ticks); at < len(p.ops); at = len(p.ticks) {
		op := &p.ops[at]
		tick := int32(1)
		if at > 0 {
			tick = p.ticks[at-1] + 1
		}
		if id := op.enters; id != none {
			op.enters = none // it comes here again when it waited
			w.entered[id]++
			w.latest[id] = max(w.latest[id], tick)
			if w.entered[id] == w.size[id] {
				ready = w.wake(need{id, 0, true}, ready)
			}
		}
		for _, x := range p.needs[op.needs:op.until] {
			t, there := w.time(x)
			if !there {
				w.waiting[x] = append(w.waiting[x], rank)
				return ready
			}
			tick = max(tick, t)
		}
		p.ticks = append(p.ticks, tick)
		if op.send != none {
			w.sent[op.send] = append(w.sent[op.send], tick)
			ready = w.wake(need{op.send, int32(len(w.sent[op.send]) - 1), false}, ready)
		}
	}
	return ready
}

func (w *clockwork) wake(x need, ready []int32) []int32 {
	if ranks, some := w.waiting[x]; some {
		delete(w.waiting, x)
		ready = append(ready, ranks...)
	}
	return ready
}

// time is the earliest tick of a call that needs x, once it is there.
func (w *clockwork) time(x need) (int32, bool) {
	if x.collective {
		return w.latest[x.channel], w.entered[x.channel] >= w.size[x.channel]
	}
	if sent := w.sent[x.channel]; int(x.number) < len(sent) {
		return sent[x.number] + 1, true
	}
	return 0, false
}

// callAt is the call at a rank's seq.
func (w *clockwork) callAt(rank int32, at int) string {
	name, seq := "", 0
	w.sig.Walk(rank, func(n *Node, _ *Call) {
		if seq == at {
			name = w.sig.Symbols[n.Symbol].Call
		}
		seq++
	})
	return name
}

// lacks says what an operation waits for.
func (w *clockwork) lacks(p *clockRank, at int) string {
	for _, x := range p.needs[p.ops[at].needs:p.ops[at].until] {
		if _, there := w.time(x); there {
			continue
		}
		if x.collective {
			return fmt.Sprintf("a collective that %d of %d ranks entered", w.entered[x.channel], w.size[x.channel])
		}
		for k, id := range w.channels {
			if id == x.channel {
				return fmt.Sprintf("message %d from rank %d with tag %d on communicator %d, of which %d are sent", x.number, k.src, k.tag, k.comm, len(w.sent[id]))
			}
		}
	}
	return "nothing"
}
