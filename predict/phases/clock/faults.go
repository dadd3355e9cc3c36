package clock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// The clock does not count all messages of a channel: it skips repetitions and forgets channels. What a fault says of
// them is counted when there is one.

// stuckListed limits the ranks that an error describes.
const stuckListed = 3

// checkFinished returns an error that names ranks that still wait.
func (c *clock) checkFinished() error {
	var stuck []string
	n := 0
	for r := range c.ranks {
		p := &c.ranks[r]
		if p.event == nil {
			continue
		}
		if n++; n <= stuckListed {
			stuck = append(stuck, fmt.Sprintf("rank %d at seq %d, %s, for %s", r, p.seq,
				c.sig.Symbols[p.event.Symbol].Call, c.missing(p)))
		}
	}
	if n > 0 {
		return fmt.Errorf("%d ranks wait forever: %s", n, strings.Join(stuck, "; "))
	}
	return nil
}

// missing describes what a rank waits for.
func (c *clock) missing(p *rankState) string {
	for _, x := range p.needs {
		if _, met := c.earliest(x); met {
			continue
		}
		if x.collective {
			k := &c.collectives[x.index]
			return fmt.Sprintf("a collective that %d of %d ranks entered", k.entered, k.size)
		}
		for k, index := range c.channels {
			if index == x.index {
				q := &c.queues[index]
				sent := c.sentSoFar(k)
				return fmt.Sprintf("message %d from rank %d with tag %d on communicator %d, of which %d are sent",
					sent+int64(x.number-q.first)-int64(len(q.sent)), k.Src, k.Tag, k.Comm, sent)
			}
		}
	}
	return "nothing"
}

// sentSoFar returns the number of messages that are sent on a channel, when no rank can go on: a call that waits has
// sent what it sends.
func (c *clock) sentSoFar(k signature.Channel) (sent int64) {
	if k.Src < 0 || k.Src >= int32(len(c.ranks)) {
		return 0
	}
	cursor := c.sig.Cursor(k.Src)
	for range c.ranks[k.Src].seq + 1 {
		n, value := cursor.Next()
		if n == nil {
			break
		}
		if call := c.sig.Values[n.ID].Events[value]; sends(c.sig.Class(n, call), call) && call.SendChannel(k.Src) == k {
			sent++
		}
	}
	return sent
}

// messages are the numbers of messages that the two sides of a channel have in all of a run.
type messages struct{ sent, received int64 }

// unmatched describes the channels on which messages have no partner.
func (c *clock) unmatched() (all []string) {
	var keys []signature.Channel
	counts := map[signature.Channel]*messages{}
	for k, index := range c.channels {
		if q := &c.queues[index]; q.first+int32(len(q.sent)) != q.posted {
			keys = append(keys, k)
			counts[k] = &messages{}
		}
	}
	c.count(counts)
	slices.SortFunc(keys, func(a, b signature.Channel) int {
		return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst), cmp.Compare(a.Comm, b.Comm),
			cmp.Compare(a.Tag, b.Tag))
	})
	for _, k := range keys {
		all = append(all, fmt.Sprintf(
			"rank %d sends %d messages with tag %d on communicator %d to rank %d, which receives %d", k.Src,
			counts[k].sent, k.Tag, k.Comm, k.Dst, counts[k].received))
	}
	return all
}

// count counts the messages of some channels.
func (c *clock) count(counts map[signature.Channel]*messages) {
	takePart := map[int32]bool{}
	for k := range counts {
		takePart[k.Src], takePart[k.Dst] = true, true
	}
	for rank := range takePart {
		if rank < 0 || rank >= int32(len(c.ranks)) {
			continue
		}
		signature.WalkTimes(c.sig, rank, func(n *template.Node, call *signature.Call, times int64) {
			class := c.sig.Class(n, call)
			if sends(class, call) {
				if x := counts[call.SendChannel(rank)]; x != nil {
					x.sent += times
				}
			}
			if receives(class, call) {
				if x := counts[call.RecvChannel(rank)]; x != nil {
					x.received += times
				}
			}
		})
	}
}

// sends reports whether a call of a class sends a message.
func sends(class schema.Class, call *signature.Call) bool {
	return (class == schema.ClassSend || class == schema.ClassSendrecv) && call.Send.HasPeer()
}

// receives reports whether a call of a class receives a message.
func receives(class schema.Class, call *signature.Call) bool {
	return (class == schema.ClassRecv || class == schema.ClassSendrecv) && call.Recv.HasPeer()
}
