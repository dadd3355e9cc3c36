package evidence

import "math"

// Comparisons are comparisons of payloads with what an operation makes of others. Only what is new counts: the same
// values compared again tell nothing. The zero value has none.
type Comparisons struct {
	results map[int64]float64 // bits of each new value
	winner  map[int64]int64   // of each value that was not chosen: the value that was chosen instead, at first
}

// AddResult counts a value that is what an operation makes of others, and none of them. bits are ValueBits or
// BlockBits.
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

// choiceBits returns the bits of choices. Whatever decides them, if it knows nothing of the operation then it ranks the
// values in any order. Each value that was not chosen is below the one that was, so the values are a forest, and the
// chance that a random order is one of this forest is the product of 1/size of all its subtrees (Knuth's hook lengths). A
// value that is chosen before k others has log2(k+1) bits, not k: the second choice is no surprise after the first.
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

// mostValueBits is the most that one value tells: first elements agree within the rounding of some operations.
const mostValueBits = 32

// ValueBits returns what a new value with so many significant bits tells: about 2^digits numbers are as plain as it is. A
// small whole number is often another one's sum by chance, and zero always is.
func ValueBits(digits int) float64 { return float64(min(digits, mostValueBits)) }

// BlockBits is what a block of bytes tells that is where it has to be, or a payload that is the same as another one: as
// the prior.
const BlockBits = PriorBits

// OrderBits is what it tells that the root receives (or sends) the blocks of all other ranks in the order of the ranks:
// tasks and their results come in another one.
func OrderBits(ranks int) float64 { return logFactorial(float64(ranks - 1)) }

// maxEqualBits limits what equal payloads tell: with an operation of the program's own, no result is compared.
const maxEqualBits = 16

// EqualBits returns what it tells that payloads with the same contributors were equal, changed times with a new value.
// first are the hashes of what ranks send first: the collision entropy of these says how surprising it is that two
// payloads are equal. It is limited by what their number can show, and by BlockBits.
func EqualBits(first []int64, changed int64) float64 {
	count, equal, all := map[int64]float64{}, 0.0, float64(len(first))
	for _, hash := range first {
		equal += count[hash]
		count[hash]++
	}
	each := min(BlockBits, math.Log2((all*(all-1)/2+2)/(equal+1)))
	return min(maxEqualBits, each*float64(changed))
}
