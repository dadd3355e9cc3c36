package rankset

import "math/bits"

// Bits is a set of small numbers.
type Bits []uint64

func NewBits(n int) Bits { return make(Bits, (n+63)/64) }

func (s Bits) Has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }

func (s Bits) Add(i int) { s[i/64] |= 1 << (i % 64) }

func (s Bits) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// isPrefix reports whether the members are exactly the numbers below n.
func (s Bits) isPrefix(n int) bool {
	for i := range n {
		if !s.Has(i) {
			return false
		}
	}
	return s.Len() == n
}

// contains reports whether a set has all members of another; apartFrom, whether it has none.
func (s Bits) contains(other Bits) bool {
	for k, w := range other {
		if w&^s[k] != 0 {
			return false
		}
	}
	return true
}

func (s Bits) Disjoint(other Bits) bool {
	for k, w := range other {
		if w&s[k] != 0 {
			return false
		}
	}
	return true
}

// Join adds the members of other and calls added with each new one.
func (s Bits) Join(other Bits, added func(int)) {
	for k, w := range other {
		fresh := w &^ s[k]
		s[k] |= w
		for ; fresh != 0; fresh &= fresh - 1 {
			added(64*k + bits.TrailingZeros64(fresh))
		}
	}
}
