package clock

import "github.com/commq/commq/predict/signature"

// Ranks pause between two repetitions. When all of them pause and nothing is in flight, only their ticks depend on what
// happened before. If each rank then does one repetition up to the next such cut, and all ticks have grown by the same
// number, further repetitions only add that number again: they are skipped.

// pauses has the conditions for a cut.
type pauses struct {
	ranks   []int32 // the paused ranks
	ended   int32   // ranks at their end
	pending int64   // messages that were not received, and receives that were not completed
	last    []*cut  // by depth in the loops
}

// cut is the state at a moment when all ranks pause.
type cut struct {
	ranks []rankCut // by rank
}

// rankCut is the state of a rank at a cut.
type rankCut struct {
	at   signature.Cursor
	seq  int64
	tick int32
}

// pause pauses a rank until all others wait or pause.
func (c *clock) pause(rank int32) {
	c.pauses.ranks = append(c.pauses.ranks, rank)
}

// resume continues paused ranks: all of them, or, if their depths differ, only those deepest in loops, as the others
// may pause for a loop around. It returns false if no rank is paused.
func (c *clock) resume() bool {
	paused := c.pauses.ranks
	if len(paused) == 0 {
		return false
	}
	deepest, equal := 0, true
	for i, rank := range paused {
		d := c.ranks[rank].cursor.Depth()
		equal = equal && (i == 0 || d == deepest)
		deepest = max(deepest, d)
	}
	if equal && len(paused)+int(c.pauses.ended) == len(c.ranks) && c.pauses.pending == 0 && len(c.open) == 0 {
		c.meet(c.cutAt(deepest))
	}
	c.pauses.ranks = nil
	for _, rank := range paused {
		if c.ranks[rank].cursor.Depth() < deepest {
			c.pauses.ranks = append(c.pauses.ranks, rank)
		} else {
			c.ready = append(c.ready, rank)
		}
	}
	return true
}

// cutAt returns the last cut at a depth, which is empty at first.
func (c *clock) cutAt(depth int) *cut {
	for len(c.pauses.last) <= depth {
		c.pauses.last = append(c.pauses.last, nil)
	}
	if c.pauses.last[depth] == nil {
		c.pauses.last[depth] = &cut{ranks: make([]rankCut, len(c.ranks))}
	}
	return c.pauses.last[depth]
}

// meet skips the repetitions that only add a constant to the last cut, and records this cut.
func (c *clock) meet(last *cut) {
	if grows, times := c.steady(last); times > 0 {
		c.skip(last, grows, times)
	}
	for _, rank := range c.pauses.ranks {
		p, x := &c.ranks[rank], &last.ranks[rank]
		p.cursor.Mark(&x.at)
		x.seq, x.tick = p.seq, p.tick
	}
}

// steady returns by how much ticks have grown since the last cut, and how many repetitions may be skipped: 0 if ranks
// differ in it, or did not do one repetition.
func (c *clock) steady(last *cut) (grows int32, times int64) {
	for i, rank := range c.pauses.ranks {
		p, x := &c.ranks[rank], &last.ranks[rank]
		if p.seq == x.seq || !p.cursor.IsOneRepetitionAfter(&x.at) {
			return 0, 0
		}
		most := min(p.cursor.RepetitionsLeft()-1, (c.wanted(rank)-p.seq)/(p.seq-x.seq))
		if i == 0 {
			grows, times = p.tick-x.tick, most
		}
		if p.tick-x.tick != grows {
			return 0, 0
		}
		times = min(times, most)
	}
	return grows, times
}

// skip skips repetitions of all ranks that pause. Operations of communicators and messages of channels are not counted
// on: none is open, so that ranks still agree on their numbers.
func (c *clock) skip(last *cut, grows int32, times int64) {
	for _, rank := range c.pauses.ranks {
		p := &c.ranks[rank]
		p.cursor.Skip(times)
		p.seq += times * (p.seq - last.ranks[rank].seq)
		p.tick += int32(times) * grows
	}
}
