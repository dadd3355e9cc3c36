package main

import (
	"slices"

	"github.com/commq/commq/predict/signature/fold"
)

// table gives each distinct key a number.
type table struct {
	words  []uint64
	begins []int32 // of each key in words; one more at the end
	slots  []int32 // number plus 1, by hash; 0: free
	keys   int     // their bytes, written as numbers
}

func newTable() table { return table{begins: []int32{0}, slots: make([]int32, 1<<10)} }

func (t *table) len() int { return len(t.begins) - 1 }

// entries returns the table's bytes.
func (t *table) entries() int { return t.keys }

func (t *table) is(id int32, key []uint64) bool {
	return slices.Equal(t.words[t.begins[id]:t.begins[id+1]], key)
}

func hash(key []uint64) (h uint64) {
	for _, w := range key {
		h = (h ^ w) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

// find returns the number of a key, and enters it if it is new.
func (t *table) find(key []uint64) int32 {
	i := hash(key) & uint64(len(t.slots)-1)
	for ; t.slots[i] != 0; i = (i + 1) & uint64(len(t.slots)-1) {
		if t.is(t.slots[i]-1, key) {
			return t.slots[i] - 1
		}
	}
	id := int32(t.len())
	t.slots[i] = id + 1
	t.words = append(t.words, key...)
	t.begins = append(t.begins, int32(len(t.words)))
	for _, w := range key {
		t.keys += varint(w)
	}
	if 2*t.len() > len(t.slots) {
		t.grow()
	}
	return id
}

func (t *table) grow() {
	t.slots = make([]int32, 2*len(t.slots))
	for id := range int32(t.len()) {
		i := hash(t.words[t.begins[id]:t.begins[id+1]]) & uint64(len(t.slots)-1)
		for t.slots[i] != 0 {
			i = (i + 1) & uint64(len(t.slots)-1)
		}
		t.slots[i] = id + 1
	}
}

// expected is the cheapest online form. After each call it expects the one that came last time, and writes only the
// calls that are others, each with how many came as expected before it.
type expected struct {
	table
	next   []int32 // by call: number plus 1 of the one that is expected after it; first the one at the beginning
	last   int32   // number plus 1
	run    uint64
	misses int
	bytes  int

	// The misses folded: in a loop with loops in it they repeat themselves, too.
	tokens table
	again  fold.Sequence
	folds  bool
}

func newExpected(folds bool) *expected {
	return &expected{table: newTable(), next: make([]int32, 1), tokens: newTable(), folds: folds}
}

func (e *expected) add(key []uint64) {
	id := e.next[e.last] - 1
	if id >= 0 && e.is(id, key) {
		e.run++
	} else {
		id = e.miss(key)
	}
	e.last = id + 1
}

func (e *expected) miss(key []uint64) int32 {
	id := e.find(key)
	if int(id)+1 == len(e.next) {
		e.next = append(e.next, 0)
	}
	e.next[e.last] = id + 1
	e.misses++
	e.bytes += varint(e.run) + varint(uint64(id))
	if e.folds {
		e.again.Add(e.tokens.find([]uint64{e.run, uint64(id)}))
	}
	e.run = 0
	return id
}

// size returns the bytes of the calls, without those of the table.
func (e *expected) size() int {
	if e.folds {
		return e.tokens.keys + len(fold.AppendKey(nil, e.again.Items))
	}
	return e.bytes
}

// folded is the form of our signatures: the numbers of the calls, with what repeats written once.
type folded struct {
	table
	fold.Sequence
}

func (f *folded) add(key []uint64) { f.Add(f.find(key)) }

func (f *folded) size() int { return len(fold.AppendKey(nil, f.Items)) }
