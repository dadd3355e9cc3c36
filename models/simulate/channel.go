package simulate

import "fmt"

// channel matches the messages of one source, destination, tag and communicator with their receives.
type channel struct {
	src, dst, tag, comm int32
	refs                int32 // messages, requests and probes that refer to it

	// Paper: sends holds messages that have no receive yet, and receives the takers that have no message yet.
	// Dimemas: sends holds the messages that have arrived, and receives the blocked threads.
	sends, receives ring[int32]

	// Only in Dimemas. ahead holds the operations by which one side is ahead of the other. With aheadSends these are
	// sends: 1 for a send that waits for its receiver, 0 for others. Otherwise they are receives: the time at which a
	// nonblocking receive was posted, or the constant blocking. waiting holds the messages that wait for their
	// receiver.
	aheadSends bool
	ahead      ring[Picoseconds]
	waiting    ring[int32]
}

// post notes a receive (Dimemas): at is its time, or blocking. It reports whether its send came first and waits for
// it.
func (c *channel) post(at Picoseconds) bool {
	if c.aheadSends && !c.ahead.empty() {
		return c.ahead.pop() != 0
	}
	c.aheadSends = false
	c.ahead.push(at)
	return false
}

// idle reports whether nothing refers to the channel.
func (c *channel) idle() bool {
	return c.refs == 0 && c.sends.empty() && c.receives.empty() && c.waiting.empty() && c.ahead.empty()
}

type channelKey struct{ src, dst, tag, comm int32 }

func (k channelKey) hash() uint64 {
	h := (uint64(uint32(k.src))<<32 | uint64(uint32(k.dst))) * 0x9e3779b97f4a7c15
	h ^= h >> 29
	h = (h ^ (uint64(uint32(k.tag))<<32 | uint64(uint32(k.comm)))) * 0xbf58476d1ce4e5b9
	return h ^ h>>32
}

// channelTable finds channels by key, with open addressing. It reuses idle channels once there are many.
type channelTable struct {
	slots    []int32 // index of the channel + 1; 0 for a free slot
	channels []channel
	used     int
	free     []int32
	sweepAt  int // number of channels at which to search for idle ones
}

// minSweep is the smallest channelTable.sweepAt.
const minSweep = 1 << 12

// find returns the channel with this key and adds it if it is new.
func (t *channelTable) find(k channelKey) int32 {
	if 2*t.used >= len(t.slots) {
		t.grow()
	}
	mask := uint64(len(t.slots) - 1)
	i := k.hash() & mask
	for t.slots[i] != 0 {
		c := &t.channels[t.slots[i]-1]
		if c.src == k.src && c.dst == k.dst && c.tag == k.tag && c.comm == k.comm {
			return t.slots[i] - 1
		}
		i = (i + 1) & mask
	}
	n := t.add()
	c := &t.channels[n]
	c.src, c.dst, c.tag, c.comm = k.src, k.dst, k.tag, k.comm
	t.slots[i] = n + 1
	t.used++
	return n
}

// fault says what is wrong with a table that was read from a file; it is empty if nothing is. A wrong count would make
// the table grow without bound, or search for a free slot forever.
func (t *channelTable) fault() string {
	used := 0
	for _, n := range t.slots {
		if n != 0 {
			used++
		}
	}
	switch n := len(t.slots); {
	case used != t.used:
		return fmt.Sprintf("its table of channels has %d, and says %d", used, t.used)
	case n&(n-1) != 0 || n > 0 && used == n:
		return fmt.Sprintf("its table of channels has %d slots, %d of them used", n, used)
	}
	return ""
}

// add returns an unused channel.
func (t *channelTable) add() int32 {
	if n := len(t.free); n > 0 {
		c := t.free[n-1]
		t.free = t.free[:n-1]
		return c
	}
	t.channels = append(t.channels, channel{})
	return int32(len(t.channels) - 1)
}

// grow drops idle channels, and enlarges the table if that is not enough.
func (t *channelTable) grow() {
	if t.used >= max(t.sweepAt, minSweep) {
		for i := range t.slots {
			if t.slots[i] == 0 {
				continue
			}
			if c := &t.channels[t.slots[i]-1]; c.idle() {
				t.free = append(t.free, t.slots[i]-1)
				t.slots[i] = 0
				t.used--
			}
		}
		t.sweepAt = 2 * t.used
	}
	size := max(len(t.slots), 64)
	for 4*t.used >= size {
		size *= 2
	}
	old := t.slots
	t.slots = make([]int32, size)
	mask := uint64(size - 1)
	for _, n := range old {
		if n == 0 {
			continue
		}
		c := &t.channels[n-1]
		i := channelKey{c.src, c.dst, c.tag, c.comm}.hash() & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = n
	}
}
