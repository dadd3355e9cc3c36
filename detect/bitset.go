package detect

import "math/bits"

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (s bitset) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }

func (s bitset) add(i int) { s[i/64] |= 1 << (i % 64) }

func (s bitset) len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// first says whether the members are the numbers below n.
func (s bitset) first(n int) bool {
	for i := range n {
		if !s.has(i) {
			return false
		}
	}
	return s.len() == n
}

// contains says whether a set has all of another; apartFrom whether it has none.
func (s bitset) contains(other bitset) bool {
	for k, w := range other {
		if w&^s[k] != 0 {
			return false
		}
	}
	return true
}

func (s bitset) apartFrom(other bitset) bool {
	for k, w := range other {
		if w&s[k] != 0 {
			return false
		}
	}
	return true
}

// join adds the members of other, and calls added with each that is new.
func (s bitset) join(other bitset, added func(int)) {
	for k, w := range other {
		fresh := w &^ s[k]
		s[k] |= w
		for ; fresh != 0; fresh &= fresh - 1 {
			added(64*k + bits.TrailingZeros64(fresh))
		}
	}
}
