package ledger

import (
	"slices"

	"github.com/commq/commq/detect/rankset"
)

// Ledger has the messages that the stages look at, and the instances found among them.
type Ledger struct {
	Messages []Message
	Keys     []RowKey          // positions of the messages in the run, for passes
	Pieces   map[int32][]Piece // of messages that carry several payloads
	Found    []*Instance
}

// Take marks the messages of an instance as part of it.
func Take(messages []Message, i *Instance) {
	for _, m := range i.Messages {
		messages[m].Taken = true
	}
}

func (l *Ledger) Take(i *Instance) {
	Take(l.Messages, i)
	l.Found = append(l.Found, i)
}

// Release marks the messages of an instance as free.
func (l *Ledger) Release(i *Instance) {
	for _, m := range i.Messages {
		l.Messages[m].Taken = false
	}
}

// Untaken returns the messages that belong to no instance.
func Untaken(messages []Message) []int32 {
	var list []int32
	for i := range messages {
		if !messages[i].Taken {
			list = append(list, int32(i))
		}
	}
	return list
}

// CountOversized counts the messages whose search ran out of room.
func (l *Ledger) CountOversized() (n int64) {
	for i := range l.Messages {
		if m := &l.Messages[i]; m.Oversized {
			m.Oversized = false
			n++
		}
	}
	return n
}

// Divide replaces free messages that carry several payloads by their pieces.
func (l *Ledger) Divide() {
	whole := make([]int32, 0, len(l.Pieces))
	for m := range l.Pieces {
		if !l.Messages[m].Taken {
			whole = append(whole, m)
		}
	}
	slices.Sort(whole)
	for _, w := range whole {
		l.Messages[w].Taken = true
		for _, p := range l.Pieces[w] {
			l.Messages = append(l.Messages, l.PieceOf(w, p))
		}
	}
}

// PieceOf returns a piece as a message.
func (l *Ledger) PieceOf(w int32, p Piece) Message {
	m := l.Messages[w]
	m.Hash, m.Bytes, m.Head, m.Carrier, m.Taken = p.Hash, p.Bytes, p.Head, w, false
	m.Buffer, m.DstBuffer = m.Buffer+p.Offset, m.DstBuffer+p.Offset
	return m
}

// Rejoin restores messages none of whose pieces belongs to an instance. Later stages do not see the pieces.
func (l *Ledger) Rejoin() {
	inUse := map[int32]bool{}
	for i := range l.Messages {
		if m := &l.Messages[i]; m.Carrier != None && m.Taken {
			inUse[m.Carrier] = true
		}
	}
	for i := range l.Messages {
		if m := &l.Messages[i]; m.Carrier != None && !m.Taken {
			m.Taken = true
			l.Messages[m.Carrier].Taken = inUse[m.Carrier]
		}
	}
}

// Carriers returns messages, each once and sorted, with pieces replaced by the messages that carry them.
func (l *Ledger) Carriers(messages []int32) []int32 {
	out := slices.Clone(messages)
	for k, i := range out {
		if w := l.Messages[i].Carrier; w != None {
			out[k] = w
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// InOrder sorts the messages of all instances, listed and others, into the order of the run, and drops the rest.
func (l *Ledger) InOrder(lists ...[]*Instance) {
	used := rankset.NewBits(len(l.Messages))
	for _, list := range lists {
		for _, i := range list {
			for _, m := range i.Messages {
				used.Add(int(m))
				if w := l.Messages[m].Carrier; w != None {
					used.Add(int(w))
				}
			}
		}
	}
	l.Reorder(used, lists...)
}

// Reorder sorts the messages of a set into the order of the run and drops the others.
func (l *Ledger) Reorder(used rankset.Bits, lists ...[]*Instance) {
	var order []int32
	for m := range l.Messages {
		if used.Has(m) {
			order = append(order, int32(m))
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return l.Keys[a].Compare(l.Keys[b]) })
	at := make([]int32, len(l.Messages))
	messages, keys := make([]Message, len(order)), make([]RowKey, len(order))
	for k, m := range order {
		at[m], messages[k], keys[k] = int32(k), l.Messages[m], l.Keys[m]
	}
	for k := range messages {
		if w := messages[k].Carrier; w != None {
			messages[k].Carrier = at[w]
		}
	}
	l.Messages, l.Keys = messages, keys
	for _, list := range lists {
		for _, i := range list {
			for k, m := range i.Messages {
				i.Messages[k] = at[m]
			}
		}
	}
}

// Present returns the index of the message with that ordinal among the keys; None if it is missing.
func Present(keys []RowKey, ordinal int64) int32 {
	at, found := slices.BinarySearchFunc(keys, RowKey{ordinal, 0}, RowKey.Compare)
	if !found {
		return None
	}
	return int32(at)
}
