package simulate

// channel is where messages of one source, destination, tag and communicator meet their receives.
type channel struct {
	src, dst, tag, comm int32
	refs                int32 // messages, requests and probes that name it
	aheadSends          bool
	// In posting order (paper): sends are the messages that no receive has taken, receives what was posted and has no message.
	// In the order of arrival (Dimemas): sends are the messages that are there, receives the streams that are blocked, waiting
	// the messages that wait for their receiver, and ahead what one side did that the other did not yet: of sends 1 for those that
	// wait for their receiver, else 0; of receives when those that do not block were posted, and blocking for others.
	sends, receives ring[int32]
	ahead           ring[Picoseconds]
	waiting         ring[int32]
}

// idle says that nothing names the channel.
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

// channelTable finds channels by key: open addressing, and channels that nothing names go when they have become many.
type channelTable struct {
	slots    []int32 // index of the channel + 1; 0: free
	channels []channel
	used     int
	free     []int32
	sweepAt  int
}

// minSweep is the number of channels from which on those that are not used are looked for.
const minSweep = 1 << 12

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
	n := t.fresh()
	c := &t.channels[n]
	c.src, c.dst, c.tag, c.comm = k.src, k.dst, k.tag, k.comm
	t.slots[i] = n + 1
	t.used++
	return n
}

func (t *channelTable) fresh() int32 {
	if n := len(t.free); n > 0 {
		c := t.free[n-1]
		t.free = t.free[:n-1]
		return c
	}
	t.channels = append(t.channels, channel{})
	return int32(len(t.channels) - 1)
}

// grow drops channels that nothing names, and doubles the table where that is not enough.
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
