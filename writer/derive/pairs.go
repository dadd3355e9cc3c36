package derive

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
)

// pairSums makes the rows of the table waits: sums by pair of ranks.
type pairSums struct {
	hosts  []int32 // by rank
	table  pairTable
	recent [256]*pairWaits // a cache of pairs, by hash
}

// pairWaits is a row of waits. It has no pointers, as there may be many millions.
type pairWaits struct {
	key        uint64 // src<<32 | dst
	messages   int64
	send, recv waitSum
	sameHost   int32
}

// waitSum sums times in ns.
type waitSum struct{ waits, ns, max int64 }

func (s *waitSum) add(ns int64) {
	s.waits++
	s.ns += ns
	s.max = max(s.max, ns)
}

// pair returns the row of a pair of ranks.
func (s *pairSums) pair(src, dst int32) *pairWaits {
	key := uint64(uint32(src))<<32 | uint64(uint32(dst))
	cached := &s.recent[(key*0x9e3779b97f4a7c15)>>56]
	if *cached != nil && (*cached).key == key {
		return *cached
	}
	p, added := s.table.findOrAdd(key)
	if added && s.hosts[src] == s.hosts[dst] {
		p.sameHost = 1
	}
	*cached = p
	return p
}

// rows gives the rows of waits to full in batches, in order.
func (s *pairSums) rows(full func(schema.Batch) error) error {
	out := &schema.Waits{}
	for _, k := range s.table.sorted() {
		p := s.table.get(k)
		out.Append(&schema.Wait{Src: int32(p.key >> 32), Dst: int32(p.key), Messages: p.messages,
			LateSends: p.send.waits, LateSendNs: p.send.ns, LateSendMaxNs: p.send.max,
			LateReceives: p.recv.waits, LateReceiveNs: p.recv.ns, LateReceiveMaxNs: p.recv.max})
		if out.Len() == batchRows {
			if err := full(out); err != nil {
				return err
			}
			out.Resize(0)
		}
	}
	return full(out)
}

func (s *pairSums) free() {
	s.table = pairTable{}
	clear(s.recent[:])
}

// pairTable finds pairs by their keys. They are stored in chunks and never move: one slice of all would have to be
// copied as it grows.
type pairTable struct {
	chunks [][]pairWaits
	n      int
	slots  []int32 // an open-addressing hash table of indexes of pairs, plus 1; its size is a power of two
}

const pairChunk = 1 << 9

// get returns the k-th pair that was added.
func (t *pairTable) get(k int32) *pairWaits { return &t.chunks[k/pairChunk][k%pairChunk] }

// findOrAdd returns the pair with that key, and reports whether it is new.
func (t *pairTable) findOrAdd(key uint64) (p *pairWaits, added bool) {
	if 2*t.n >= len(t.slots) {
		t.grow()
	}
	slot := t.slot(key)
	if k := t.slots[slot]; k != 0 {
		return t.get(k - 1), false
	}
	if t.n%pairChunk == 0 {
		t.chunks = append(t.chunks, make([]pairWaits, 0, pairChunk))
	}
	last := &t.chunks[len(t.chunks)-1]
	*last = append(*last, pairWaits{key: key})
	t.n++
	t.slots[slot] = int32(t.n)
	return t.get(int32(t.n - 1)), true
}

// slot returns the slot of the key, or the free slot where it belongs.
func (t *pairTable) slot(key uint64) uint64 {
	mask := uint64(len(t.slots) - 1)
	h := key * 0x9e3779b97f4a7c15
	for i := (h ^ h>>32) & mask; ; i = (i + 1) & mask {
		if k := t.slots[i]; k == 0 || t.get(k-1).key == key {
			return i
		}
	}
}

func (t *pairTable) grow() {
	t.slots = make([]int32, max(1<<8, 2*len(t.slots)))
	for k := range int32(t.n) {
		t.slots[t.slot(t.get(k).key)] = k + 1
	}
}

// sorted lists all pairs in the order of their keys.
func (t *pairTable) sorted() []int32 {
	order := make([]int32, t.n)
	for k := range order {
		order[k] = int32(k)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(t.get(a).key, t.get(b).key) })
	return order
}
