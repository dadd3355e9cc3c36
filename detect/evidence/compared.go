package evidence

import "math"

// Comparisons collect comparisons of payloads with the results of an operation on other payloads. Each new value counts
// once: comparing the same values again adds nothing. The zero value has none.
type Comparisons struct {
	results map[int64]float64 // bits of each new value
	winner  map[int64]int64   // by value that was not chosen: the value first chosen instead of it
}

// AddResult counts a value that is the result of an operation on other values and equals none of them. bits are
// ValueBits or BlockBits.
func (c *Comparisons) AddResult(value int64, bits float64) {
	if c.results == nil {
		c.results = map[int64]float64{}
	}
	c.results[value] = bits
}

// AddChoice counts a value that was chosen instead of another one, as the maximum or minimum is.
func (c *Comparisons) AddChoice(chosen, other int64) {
	if c.winner == nil {
		c.winner = map[int64]int64{}
	}
	if _, known := c.winner[other]; !known {
		c.winner[other] = chosen
	}
}

// Add adds other comparisons.
func (c *Comparisons) Add(other *Comparisons) {
	for value, bits := range other.results {
		c.AddResult(value, bits)
	}
	for loser, chosen := range other.winner {
		c.AddChoice(chosen, loser)
	}
}

// Bits returns -log2 of the chance that all comparisons agree: the bits of all new values, and of all choices.
func (c *Comparisons) Bits() float64 {
	bits := c.choiceBits()
	for _, b := range c.results {
		bits += b
	}
	return bits
}

// choiceBits returns the bits of choices. If chance decided them, it would rank the values in any order. Each value
// that was not chosen is below the one that was, so the values are a forest, and the chance that a random order agrees
// with it is the product of 1/size of all its subtrees (Knuth's hook lengths). A value that is chosen before k others
// has log2(k+1) bits, not k: the second choice is no surprise after the first.
func (c *Comparisons) choiceBits() (bits float64) {
	below, size := map[int64]int{}, map[int64]float64{}
	for loser, chosen := range c.winner {
		below[chosen]++
		size[loser], size[chosen] = 1, 1
	}
	var ready []int64 // values whose subtrees are complete; those in a cycle never are
	for value := range size {
		if below[value] == 0 {
			ready = append(ready, value)
		}
	}
	for len(ready) > 0 {
		value := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		bits += math.Log2(size[value])
		chosen, lost := c.winner[value]
		if !lost {
			continue
		}
		size[chosen] += size[value]
		if below[chosen]--; below[chosen] == 0 {
			ready = append(ready, chosen)
		}
	}
	return bits
}

// mostValueBits limits the bits of one value: first elements agree only within the rounding of some operations.
const mostValueBits = 32

// ValueBits returns the bits of a new value with this many significant binary digits: about 2^digits values are as
// simple. A small whole number is often a sum of others by chance, and zero always is.
func ValueBits(digits int) float64 { return float64(min(digits, mostValueBits)) }

// BlockBits is the evidence of a block at its expected address, or of a payload equal to another one: the prior.
const BlockBits = PriorBits

// OrderBits returns the evidence, in bits, of a root that receives (or sends) the blocks of the other ranks in rank
// order. Tasks and their results come in other orders.
func OrderBits(ranks int) float64 { return logFactorial(float64(ranks - 1)) }

// maxEqualBits limits the bits of equal payloads: with an operation of the program's own, no result is compared.
const maxEqualBits = 16

// EqualBits returns the evidence, in bits, that payloads with the same contributors were equal, changed times with a
// new value. first has the hashes of the first messages of ranks. Their collision entropy says how surprising equal
// payloads are; it is limited by BlockBits and by what the number of hashes can show.
func EqualBits(first []int64, changed int64) float64 {
	count, equal, all := map[int64]float64{}, 0.0, float64(len(first))
	for _, hash := range first {
		equal += count[hash]
		count[hash]++
	}
	each := min(BlockBits, math.Log2((all*(all-1)/2+2)/(equal+1)))
	return min(maxEqualBits, each*float64(changed))
}
