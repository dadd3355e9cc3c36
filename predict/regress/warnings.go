package regress

import (
	"fmt"
	"math/bits"
)

// far is how many times the largest number of ranks seen, or which part of the smallest, is far.
const far = 2

// warnings are those that come of the numbers of ranks alone.
func (c *Curve) warnings(ranks int64) (all []Warning) {
	n := len(c.ranks)
	if n < 4 {
		all = append(all, Warning{FewPoints, fmt.Sprintf("%d numbers of ranks: few forms can be told apart; runs on four or more would", n)})
	}
	least, most := c.ranks[0], c.ranks[n-1]
	switch {
	case ranks > far*most:
		all = append(all, Warning{FarAway, fmt.Sprintf("%d ranks are %s times the largest number seen, %d", ranks, number3(float64(ranks)/float64(most)), most)})
	case ranks*far < least:
		all = append(all, Warning{FarAway, fmt.Sprintf("%d ranks are fewer than half of the smallest number seen, %d", ranks, least)})
	}
	for _, k := range kinds {
		if k.is(ranks) {
			continue
		}
		same := true
		for _, r := range c.ranks {
			same = same && k.is(r)
		}
		if same {
			all = append(all, Warning{OneKind, fmt.Sprintf("all numbers of ranks seen are %s, %d is not: the program may do something else there", k.name, ranks)})
			break
		}
	}
	return all
}

// kinds of numbers of ranks that programs ask for.
var kinds = []struct {
	name string
	is   func(int64) bool
}{
	{"powers of two", func(r int64) bool { return bits.OnesCount64(uint64(r)) == 1 }},
	{"squares", func(r int64) bool { _, ok := root(r, 2); return ok }},
	{"cubes", func(r int64) bool { _, ok := root(r, 3); return ok }},
	{"even", func(r int64) bool { return r%2 == 0 }},
}

// Where another run is looked for: up to so many times the largest number of ranks seen, and no more than people have.
const (
	suggestedTimes = 4
	mostSuggested  = 1 << 14
)

// lawsDiffer says that the laws that remain say different things, and where a run would decide.
func (c *Curve) lawsDiffer(ranks int64, laws []law) Warning {
	text := fmt.Sprintf("%d exact laws have all values and say different things of %d ranks", len(laws), ranks)
	if r, ok := c.decides(laws); ok {
		text += fmt.Sprintf("; a run on %d would tell more of them apart", r)
	}
	return Warning{LawsDiffer, text}
}

// decides is the smallest number of ranks of the kind of those seen at which the laws differ most.
func (c *Curve) decides(laws []law) (best int64, ok bool) {
	seen := map[int64]bool{}
	for _, r := range c.ranks {
		seen[r] = true
	}
	most := 1
	for r := int64(2); r <= min(suggestedTimes*c.ranks[len(c.ranks)-1], mostSuggested); r++ {
		if seen[r] || !c.ofKind(r) {
			continue
		}
		values := map[float64]bool{}
		for _, l := range laws {
			if s, ok := l.at(r); ok {
				values[s.low], values[s.high] = true, true
			}
		}
		if len(values) > most {
			most, best = len(values), r
		}
	}
	return best, most > 1
}

// ofKind reports whether a number of ranks is of every kind that all seen are of.
func (c *Curve) ofKind(ranks int64) bool {
	for _, k := range kinds {
		same := true
		for _, r := range c.ranks {
			same = same && k.is(r)
		}
		if same && !k.is(ranks) {
			return false
		}
	}
	return true
}

func number3(x float64) string { return fmt.Sprintf("%.3g", x) }
