package combine

import (
	"math"
	"slices"

	"github.com/commq/commq/detect/ledger"
)

// searchFunc searches for an operation that a group performs in every occurrence; nil means none.
type searchFunc func(f *facts, g *group, list []*occurrence) *match

// matchGroup searches for an operation that uses all messages of a group.
func (c *combiner) matchGroup(g *group) *match {
	n := len(g.ranks)
	if n < c.facts.rules.MinRanks && (n < 2 || c.facts.rules.MinRanks > ledger.DefaultMinRanks) {
		return nil
	}
	if g.hasAlltoalls {
		return nil
	}
	if g.dense {
		return c.matchTurns(g)
	}
	times := int64(0)
	for _, count := range g.count {
		times = gcd(times, count)
	}
	tried := map[int64]bool{}
	for _, per := range []int64{1, 2, int64(n - 1), int64(2 * (n - 1)), times} {
		if times%per != 0 || tried[per] {
			continue
		}
		tried[per] = true
		if begin := g.cut(times/per, 2); begin == nil || !c.mayMatch(g, begin[:1]) {
			continue
		}
		list := g.cut(times/per, math.MaxInt64)
		if list == nil {
			continue
		}
		if g.hasAllgathers {
			if b := findReduction(c.facts, g, list); b != nil && b.proof.Basis == ledger.ByPayload {
				return b
			}
			continue
		}
		for _, look := range []searchFunc{findReduction, findGathering, findScattering, findReduceScatter} {
			if b := look(c.facts, g, list); b != nil {
				return b
			}
		}
	}
	return c.matchTurns(g)
}

// matchTurns searches for operations whose roots take turns.
func (c *combiner) matchTurns(g *group) *match {
	if len(g.ranks) < max(3, c.facts.rules.MinRanks) || g.hasAllgathers {
		return nil
	}
	if list := g.turns(false); list != nil {
		for _, look := range []searchFunc{findReduction, findGathering} {
			if b := look(c.facts, g, list); b != nil {
				return b
			}
		}
	}
	if list := g.turns(true); list != nil {
		return findScattering(c.facts, g, list)
	}
	return nil
}

// mayMatch reports whether the first occurrence can be any operation. Most groups are none, and fail here before the
// other occurrences are examined.
func (c *combiner) mayMatch(g *group, first []*occurrence) bool {
	bytes := first[0].messages[0].Bytes
	for _, without := range []bool{false, true} {
		if _, ok := newFolding(c.facts, g, without).replay(first[0], bytes); ok {
			return true
		}
	}
	for _, backward := range []bool{false, true} {
		o := first[0]
		if o.reach(backward) < len(g.ranks) {
			continue
		}
		if backward {
			o = o.reversed()
		}
		if _, ok := newJoiner(c.facts, g, backward).replay(o); ok {
			return true
		}
	}
	return slices.ContainsFunc(slicings(c.facts, g, first), func(s *slicing) bool { return s.replay(first[0]) })
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
