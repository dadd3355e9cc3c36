package ingest

import (
	"fmt"

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

// cursor walks the groups of a rank. It merges the rank's threads in the order in which calls were entered.
type cursor struct {
	threads []thread
}

// thread reads a file of a rank. slots are the slots read so far; the next group begins at pos.
type thread struct {
	reader *spool.Reader
	slots  []spool.Call
	pos    int
}

func newCursor(files []*spool.File) cursor {
	c := cursor{threads: make([]thread, len(files))}
	for i, f := range files {
		c.threads[i].reader = spool.NewReader(f)
	}
	return c
}

// ended reports whether the thread has no more groups.
func (t *thread) ended() bool {
	if len(t.slots) == 0 {
		t.slots = t.reader.From(t.pos, 1)
	}
	return len(t.slots) == 0 || t.slots[0].Kind == spool.End
}

// next moves to the next group, whose slots are good until the next move. It returns false at the end.
func (c *cursor) next(g *group) bool {
	k := 0
	if len(c.threads) > 1 {
		k = c.earliest()
	}
	t := &c.threads[k]
	if t.ended() {
		return false
	}
	end := t.groupEnd()
	g.thread, g.first, g.slots = int32(k), t.pos, t.slots[:end]
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

// earliest returns the thread whose next group was entered first. Groups with only definitions come before all calls.
func (c *cursor) earliest() int {
	best, bestT0 := 0, ^uint64(0)
	for k := range c.threads {
		t := &c.threads[k]
		if t.ended() {
			continue
		}
		s := &t.slots[0]
		if s.Kind != spool.KindCall {
			return k
		}
		if s.T0 < bestT0 {
			best, bestT0 = k, s.T0
		}
	}
	return best
}

// save appends the position of each thread, as a slot number, to positions.
func (c *cursor) save(positions []int) []int {
	for i := range c.threads {
		positions = append(positions, c.threads[i].pos)
	}
	return positions
}

// restore goes back to positions that save returned.
func (c *cursor) restore(positions []int) {
	for i := range c.threads {
		c.threads[i].pos, c.threads[i].slots = positions[i], nil
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
