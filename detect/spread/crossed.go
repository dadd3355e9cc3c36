package spread

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
)

// crossing is a message, by the rows of its send and receive.
type crossing struct{ sent, done int64 }

// road identifies messages: from one rank to another, sent at one place with one tag.
type road struct {
	ledger.Way
	at  ledger.Place
	tag int32
}

// roadOf returns the road of a message.
func (c *crossings) roadOf(m *ledger.Message) road {
	r := road{ledger.Way{Src: m.Src, Dst: m.Dst}, m.Place(), m.Tag}
	if c.anyTag {
		r.tag = 0
	}
	return r
}

// roadBack returns the road of messages from the receiver of a message to its sender.
func (c *crossings) roadBack(m *ledger.Message) road {
	r := c.roadOf(m)
	r.Src, r.Dst = r.Dst, r.Src
	return r
}

// Crossed withdraws broadcasts that are parts of an exchange, in which a rank happens to send its partners the same. A
// receiver then sends back at the same place, with the same tag, before either has received. If the message back is
// part of a broadcast itself, more than half of the messages must cross one: a few broadcasts may overlap, and
// broadcasts by all ranks are an allgather, which is merged before. Segments that the root scattered may be exchanged.
// all has the messages outside broadcasts, but may lack later ones: if half of the first broadcasts of a root cross,
// all count as crossed.
func Crossed(l *ledger.Ledger, all *ledger.Sample) {
	byRoot := map[rootPlace][]*ledger.Instance{}
	c := &crossings{messages: l.Messages, back: map[road][]crossing{}}
	for _, i := range l.Found {
		if i.Op == ledger.Bcast && i.Bytes > 0 && !hasPiece(l.Messages, i) && (i.Segments == 1 || direct(l.Messages, i)) {
			k := rootPlace{i.Root, l.Messages[i.Messages[0]].Place()}
			byRoot[k] = append(byRoot[k], i)
			for _, m := range i.Messages {
				c.back[c.roadBack(&l.Messages[m])] = nil
			}
		}
	}
	if len(byRoot) == 0 {
		return
	}
	c.collect(all)
	gone := map[*ledger.Instance]bool{}
	for _, list := range byRoot {
		for _, i := range list {
			gone[i] = c.cross(i, byRoot)
		}
		if halfOfFirst(list, func(i *ledger.Instance) bool { return gone[i] }) {
			for _, i := range list {
				gone[i] = true
			}
		}
	}
	l.Found = slices.DeleteFunc(l.Found, func(i *ledger.Instance) bool {
		if gone[i] {
			l.Release(i)
		}
		return gone[i]
	})
}

// halfOfFirst reports whether at least half of the first instances of a place cross. It sorts the list.
func halfOfFirst(list []*ledger.Instance, crosses func(*ledger.Instance) bool) bool {
	// gathers have no first row: they stay in the order in which they were found
	slices.SortStableFunc(list, func(a, b *ledger.Instance) int { return cmp.Compare(a.First, b.First) })
	first, some := list[:min(len(list), mostAsked)], 0
	for _, i := range first {
		if crosses(i) {
			some++
		}
	}
	return 2*some >= len(first)
}

// crossings has the messages that may cross those of broadcasts.
type crossings struct {
	messages []ledger.Message
	anyTag   bool                // messages with different tags may meet
	back     map[road][]crossing // on the roads back, in order
	spread   map[sending]bool    // the messages of broadcasts; nil before they are needed
}

// sending identifies a message by its sender and the row in which it is sent.
type sending struct {
	src int32
	seq int64
}

// collect notes the messages on the roads back.
func (c *crossings) collect(all *ledger.Sample) {
	for _, of := range all.Order {
		for _, list := range of.Ways {
			for k := range list.List {
				m := &list.List[k].Message
				if old, wanted := c.back[c.roadOf(m)]; wanted {
					c.back[c.roadOf(m)] = append(old, crossing{m.SendSeq, m.DoneSeq})
				}
			}
		}
	}
	for _, list := range c.back {
		slices.SortFunc(list, func(a, b crossing) int { return cmp.Compare(a.sent, b.sent) })
	}
}

// cross reports whether messages cross a broadcast so that it is part of an exchange.
func (c *crossings) cross(i *ledger.Instance, broadcasts map[rootPlace][]*ledger.Instance) bool {
	met := 0
	for _, k := range i.Messages {
		m := &c.messages[k]
		back, meets := c.meets(m)
		if !meets {
			continue
		}
		met++
		if c.spread == nil {
			c.note(broadcasts)
		}
		if !c.spread[sending{m.Dst, back.sent}] {
			return true
		}
	}
	return 2*met > len(i.Messages)
}

// note notes the messages of broadcasts.
func (c *crossings) note(broadcasts map[rootPlace][]*ledger.Instance) {
	c.spread = map[sending]bool{}
	for _, list := range broadcasts {
		for _, i := range list {
			for _, k := range i.Messages {
				c.spread[sending{c.messages[k].Src, c.messages[k].SendSeq}] = true
			}
		}
	}
}

// Scattered withdraws scatters and gathers that are parts of an exchange of all with all: for more than half of their
// messages the receiver sends one back, at the same place, before either has received. The tag may be the sender's
// rank. Instances whose blocks were compared with the whole stay. If half of the first ones at a place cross, all do.
func Scattered(l *ledger.Ledger, all *ledger.Sample) {
	byPlace := map[ledger.Place][]*ledger.Instance{}
	c := &crossings{messages: l.Messages, anyTag: true, back: map[road][]crossing{}}
	for _, i := range l.Found {
		switch i.Op {
		case ledger.Scatter, ledger.Scatterv, ledger.Gather, ledger.Gatherv:
			if i.Proof != nil && i.Proof.Basis == ledger.ByPayload {
				continue
			}
			at := l.Messages[i.Messages[0]].Place()
			byPlace[at] = append(byPlace[at], i)
			for _, m := range i.Messages {
				c.back[c.roadBack(&l.Messages[m])] = nil
			}
		}
	}
	if len(byPlace) == 0 {
		return
	}
	c.collect(all)
	gone := map[*ledger.Instance]bool{}
	for _, list := range byPlace {
		if !halfOfFirst(list, func(i *ledger.Instance) bool { return 2*c.met(i) > len(i.Messages) }) {
			continue
		}
		for _, i := range list {
			gone[i] = true
		}
	}
	l.Found = slices.DeleteFunc(l.Found, func(i *ledger.Instance) bool {
		if gone[i] {
			l.Release(i)
		}
		return gone[i]
	})
}

// met returns how many messages of an instance meet one on the road back.
func (c *crossings) met(i *ledger.Instance) (met int) {
	for _, k := range i.Messages {
		if _, meets := c.meets(&c.messages[k]); meets {
			met++
		}
	}
	return met
}

// meets returns the last message that m's receiver sent back before it received m, and whether it was in flight when m
// was sent.
func (c *crossings) meets(m *ledger.Message) (back crossing, does bool) {
	list := c.back[c.roadBack(m)]
	// messages with a tag do not overtake each other: the last one sent is received last
	next, _ := slices.BinarySearchFunc(list, m.DoneSeq, func(x crossing, seq int64) int { return cmp.Compare(x.sent, seq) })
	if next == 0 || list[next-1].done < m.SendSeq {
		return crossing{}, false
	}
	return list[next-1], true
}
