package diagnose

import "slices"

// A chain has at least leastInChain ranks.
const leastInChain = 3

// chain returns the ranks of a late sender if they compute one after the other: each waits for a message of the rank
// before it, and for no other. It returns nil if they are no chain, or if a rank other than the last does not compute.
func (c *cause) chain() (ranks []int32) {
	if c.rule != LateSender {
		return nil
	}
	next, waits := map[int32]int32{}, map[int32]bool{}
	for pair := range c.sends {
		if _, twice := next[pair[0]]; twice || waits[pair[1]] {
			return nil
		}
		next[pair[0]], waits[pair[1]] = pair[1], true
	}
	for rank := range next {
		if !waits[rank] {
			ranks = append(ranks, rank)
		}
	}
	if len(ranks) != 1 {
		return nil // several chains, or a ring
	}
	for rank, more := next[ranks[0]]; more; rank, more = next[rank] {
		ranks = append(ranks, rank)
	}
	last := len(ranks) - 1
	computes := slices.Sorted(slices.Values(ranks[:last]))
	if len(ranks) < leastInChain || last != len(next) || !slices.Equal(computes, c.ranks()) {
		return nil
	}
	return ranks
}
