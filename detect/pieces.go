package detect

import "slices"

// divide puts pieces in place of messages that carry several payloads and that nothing has taken.
func (d *detector) divide() {
	whole := make([]int32, 0, len(d.pieces))
	for m := range d.pieces {
		if !d.messages[m].taken {
			whole = append(whole, m)
		}
	}
	slices.Sort(whole)
	for _, w := range whole {
		d.messages[w].taken = true
		for _, p := range d.pieces[w] {
			d.messages = append(d.messages, d.pieceOf(w, p))
		}
	}
}

// pieceOf is a piece of a message.
func (d *detector) pieceOf(w int32, p piece) message {
	m := d.messages[w]
	m.hash, m.bytes, m.head, m.whole, m.taken = p.hash, p.bytes, p.head, w, false
	m.buffer, m.dstBuffer = m.buffer+p.offset, m.dstBuffer+p.offset
	return m
}

// rejoin puts messages back together of whose pieces none is part of anything; pieces are gone for what comes after.
func (d *detector) rejoin() {
	inUse := map[int32]bool{}
	for i := range d.messages {
		if m := &d.messages[i]; m.whole != none && m.taken {
			inUse[m.whole] = true
		}
	}
	for i := range d.messages {
		if m := &d.messages[i]; m.whole != none && !m.taken {
			m.taken = true
			d.messages[m.whole].taken = inUse[m.whole]
		}
	}
}

// wholes are messages, each once, with those that pieces are part of instead of the pieces; sorted.
func (d *detector) wholes(messages []int32) []int32 {
	out := slices.Clone(messages)
	for k, i := range out {
		if w := d.messages[i].whole; w != none {
			out[k] = w
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
