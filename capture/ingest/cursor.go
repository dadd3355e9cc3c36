package ingest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/commq/commq/capture/spool"
)

// group is a CALL slot and the slots that continue it. The first group of a file may have only definitions.
type group struct {
	thread int32
	first  int // slot number in the thread's file
	slots  []spool.Call
}

// call returns the CALL slot of the group, or nil if the group has only definitions.
func (g *group) call() *spool.Call {
	if g.slots[0].Kind != spool.KindCall {
		return nil
	}
	return &g.slots[0]
}

// cursor walks the groups of a rank. It merges the rank's threads in the order in which calls were entered. A program
// may start very many short threads, so a step and a position only deal with those that have begun and not ended.
type cursor struct {
	threads []thread
	order   []int32 // threads with calls, by the entry of their first one
	leads   int     // threads whose definitions before the first call have been passed
	begun   int     // threads of order that have begun
	live    []int32 // those of them that have not ended: a heap by the entry of their next call
	moved   bool    // the first of live has moved on, and may have to go down
}

// thread reads a file of a rank. slots are the slots read so far; the next group begins at pos.
type thread struct {
	file   *spool.File
	reader *spool.Reader // nil: has not begun, or has ended
	slots  []spool.Call
	pos    int
	lead   int    // slots with definitions before the first call
	first  uint64 // when the first call was entered
}

// position is where a cursor is.
type position struct {
	leads, begun int
	live         []threadPosition
}

type threadPosition struct {
	thread int32
	pos    int
}

func newCursor(files []*spool.File) cursor {
	c := cursor{threads: make([]thread, len(files))}
	for i, f := range files {
		t := &c.threads[i]
		if t.file = f; t.findFirst() {
			c.order = append(c.order, int32(i))
		}
		t.close()
	}
	slices.SortFunc(c.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(c.threads[a].first, c.threads[b].first), cmp.Compare(a, b))
	})
	return c
}

// findFirst finds the first call of the thread; false means that it has none.
func (t *thread) findFirst() bool {
	if t.ended() {
		return false
	}
	if t.slots[0].Kind != spool.KindCall {
		t.lead = t.groupEnd()
	}
	if t.lead == len(t.slots) || t.slots[t.lead].Kind != spool.KindCall {
		return false
	}
	t.first = t.slots[t.lead].T0
	return true
}

// seek goes to a slot.
func (t *thread) seek(pos int) {
	if t.reader == nil {
		t.reader = spool.NewReader(t.file)
	}
	t.pos, t.slots = pos, nil
}

// close gives the memory of the reader back.
func (t *thread) close() { t.reader, t.slots, t.pos = nil, nil, 0 }

// ended reports whether the thread has no more groups.
func (t *thread) ended() bool {
	if t.reader == nil {
		t.seek(t.pos)
	}
	if len(t.slots) == 0 {
		t.slots = t.reader.From(t.pos, 1)
	}
	return len(t.slots) == 0 || t.slots[0].Kind == spool.End
}

// next moves to the next group, whose slots are good until the next move. It returns false at the end.
func (c *cursor) next(g *group) bool {
	c.settle()
	k := c.lead()
	if k < 0 {
		c.begin()
		if len(c.live) == 0 {
			return false
		}
		k, c.moved = c.live[0], true
	}
	t := &c.threads[k]
	if t.ended() {
		return false
	}
	end := t.groupEnd()
	g.thread, g.first, g.slots = k, t.pos, t.slots[:end]
	t.slots = t.slots[end:]
	t.pos += end
	return true
}

// groupEnd returns how many slots the next group has.
func (t *thread) groupEnd() int {
	for end := 1; ; end++ {
		if end == len(t.slots) {
			if t.slots = t.reader.From(t.pos, end+1); end == len(t.slots) {
				return end
			}
		}
		if t.slots[end].Kind <= spool.KindCall {
			return end
		}
	}
}

// lead returns the next thread that has definitions before its first call, which come before all calls; -1: none.
func (c *cursor) lead() int32 {
	for c.leads < len(c.threads) {
		k := int32(c.leads)
		if c.leads++; k > 0 {
			c.threads[k-1].close() // until it begins
		}
		if c.threads[k].lead > 0 {
			c.threads[k].seek(0)
			return k
		}
	}
	return -1
}

// begin begins the next thread if its first call comes before those of all that have begun.
func (c *cursor) begin() {
	if c.begun == len(c.order) {
		return
	}
	k := c.order[c.begun]
	t := &c.threads[k]
	if len(c.live) > 0 && !earlier(t.first, k, c.entry(c.live[0]), c.live[0]) {
		return
	}
	t.seek(t.lead)
	if c.begun++; t.ended() {
		return
	}
	c.live = append(c.live, k)
	for i := len(c.live) - 1; i > 0 && c.less(i, (i-1)/2); i = (i - 1) / 2 {
		c.live[i], c.live[(i-1)/2] = c.live[(i-1)/2], c.live[i]
	}
}

// settle puts the thread that moved last in its place.
func (c *cursor) settle() {
	if !c.moved {
		return
	}
	c.moved = false
	if t := &c.threads[c.live[0]]; t.ended() {
		t.close()
		last := len(c.live) - 1
		c.live[0] = c.live[last]
		c.live = c.live[:last]
	}
	c.down(0)
}

// down moves a thread of live down to where it belongs.
func (c *cursor) down(i int) {
	for {
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(c.live); k++ {
			if c.less(k, least) {
				least = k
			}
		}
		if least == i {
			return
		}
		c.live[i], c.live[least] = c.live[least], c.live[i]
		i = least
	}
}

func (c *cursor) less(i, k int) bool {
	return earlier(c.entry(c.live[i]), c.live[i], c.entry(c.live[k]), c.live[k])
}

// entry returns when a live thread entered its next call.
func (c *cursor) entry(k int32) uint64 { return c.threads[k].slots[0].T0 }

// earlier reports whether the call of thread a comes before that of thread b, given when they were entered.
func earlier(t0 uint64, a int32, u0 uint64, b int32) bool { return t0 < u0 || t0 == u0 && a < b }

// save returns the position; it uses the memory of an old one.
func (c *cursor) save(p position) position {
	c.settle()
	p.leads, p.begun, p.live = c.leads, c.begun, p.live[:0]
	for _, k := range c.live {
		p.live = append(p.live, threadPosition{k, c.threads[k].pos})
	}
	return p
}

// restore goes back to a position that save returned.
func (c *cursor) restore(p position) {
	for _, k := range c.live {
		c.threads[k].close()
	}
	c.leads, c.begun, c.live, c.moved = p.leads, p.begun, c.live[:0], false
	for _, l := range p.live {
		t := &c.threads[l.thread]
		t.seek(l.pos)
		if !t.ended() {
			c.live = append(c.live, l.thread)
		}
	}
	for i := len(c.live)/2 - 1; i >= 0; i-- {
		c.down(i)
	}
}

// definitions passes every complete definition in the group to take, in order, with its payload. An incomplete
// definition is an error, except after a call that never returned: there it may be half written, and it is the last
// one.
func (g *group) definitions(take func(d *spool.Def, payload []byte) error) error {
	c := g.call()
	for i := 0; i < len(g.slots); i++ {
		if g.slots[i].Kind != spool.KindDef {
			continue
		}
		d := g.slots[i].AsDef()
		payload, used, err := blobs(d, g.slots[i+1:])
		if err == nil {
			err = take(d, payload)
		}
		if err != nil && c != nil && c.T1 == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("slot %d: definition of kind %d: %w", g.first+i, d.What, err)
		}
		i += used
	}
	return nil
}

// blobs collects the payload of a definition from the slots after it, among which there may be SUM slots.
func blobs(d *spool.Def, slots []spool.Call) (data []byte, used int, err error) {
	want := int(d.Bytes)
	if want > 56*len(slots) {
		return nil, 0, fmt.Errorf("%d bytes of payload, but at most %d follow", want, 56*len(slots))
	}
	data = make([]byte, 0, want)
	for len(data) < want {
		if used < len(slots) && slots[used].Kind == spool.KindSum {
			used++
			continue
		}
		if used == len(slots) || slots[used].Kind != spool.KindBlob {
			return nil, 0, fmt.Errorf("%d bytes of payload follow, want %d", len(data), want)
		}
		b := slots[used].AsBlob()
		if b.N == 0 || int(b.N) > len(b.Data) || len(data)+int(b.N) > want {
			return nil, 0, fmt.Errorf("a BLOB slot with %d bytes", b.N)
		}
		data = append(data, b.Data[:b.N]...)
		used++
	}
	return data, used, nil
}
