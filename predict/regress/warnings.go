package regress

import (
	"fmt"
	"math/bits"
)

// far is the ratio to the largest or smallest training rank count above which a prediction is far away.
const far = 2

// warnings returns the warnings that depend on the rank counts only.
func (t *table) warnings(ranks int64) (all []Warning) {
	n := len(t.ranks)
	if n < 4 {
		all = append(all, Warning{FewPoints, fmt.Sprintf("%d rank counts can tell few forms apart; use four or more",
			n)})
	}
	least, most := t.ranks[0], t.ranks[n-1]
	switch {
	case ranks > far*most:
		all = append(all, Warning{FarAway, fmt.Sprintf("%d ranks are %s times the largest rank count of the runs, %d",
			ranks,
			threeDigits(float64(ranks)/float64(most)), most)})
	case ranks*far < least:
		all = append(all, Warning{FarAway, fmt.Sprintf("%d ranks are less than half of the smallest rank count of the runs, %d",
			ranks, least)})
	}
	for _, k := range kinds {
		if k.is(ranks) {
			continue
		}
		common := true
		for _, r := range t.ranks {
			common = common && k.is(r)
		}
		if common {
			all = append(all, Warning{OneKind,
				fmt.Sprintf("all rank counts of the runs are %s, and %d is not: the program may behave differently there",
					k.name, ranks)})
			break
		}
	}
	return all
}

// kinds are the kinds of rank counts that programs require.
var kinds = []struct {
	name string
	is   func(int64) bool
}{
	{"powers of two", func(r int64) bool { return bits.OnesCount64(uint64(r)) == 1 }},
	{"squares", func(r int64) bool { _, ok := root(r, 2); return ok }},
	{"cubes", func(r int64) bool { _, ok := root(r, 3); return ok }},
	{"even", func(r int64) bool { return r%2 == 0 }},
}

// Limits of a suggested run: a multiple of the largest training rank count, and a number of ranks that users may have.
const (
	suggestedTimes = 4
	mostSuggested  = 1 << 14
)

// lawsDiffer returns the warning that exact laws predict different values, with the rank count at which a run would
// decide, or that the only one does not show how the program rounds.
func (t *table) lawsDiffer(ranks int64, laws []law) Warning {
	values := map[float64]bool{}
	for _, l := range laws {
		if s, ok := l.value(ranks); ok {
			values[s.value] = true
		}
	}
	if len(values) < 2 && laws[0].kind != ofBlocks {
		return Warning{LawsDiffer,
			fmt.Sprintf("%s fits all values, which do not show how the program rounds at %d ranks", laws[0].text, ranks)}
	}
	text := fmt.Sprintf("%d exact laws fit all values and predict different ones at %d ranks", len(laws), ranks)
	if r, ok := t.decidingRanks(laws); ok {
		text += fmt.Sprintf("; a run on %d ranks would rule out most of them", r)
	}
	return Warning{LawsDiffer, text}
}

// decidingRanks returns the smallest rank count, of the kinds of the training runs, at which the laws differ most.
func (t *table) decidingRanks(laws []law) (best int64, ok bool) {
	seen := map[int64]bool{}
	for _, r := range t.ranks {
		seen[r] = true
	}
	most := 1
	for r := int64(2); r <= min(suggestedTimes*t.ranks[len(t.ranks)-1], mostSuggested); r++ {
		if seen[r] || !t.isOfKinds(r) {
			continue
		}
		values := map[float64]bool{}
		for _, l := range laws {
			if s, ok := l.value(r); ok {
				values[s.low], values[s.high] = true, true
			}
		}
		if len(values) > most {
			most, best = len(values), r
		}
	}
	return best, most > 1
}

// isOfKinds reports whether a rank count has every property that all training rank counts share.
func (t *table) isOfKinds(ranks int64) bool {
	for _, k := range kinds {
		common := true
		for _, r := range t.ranks {
			common = common && k.is(r)
		}
		if common && !k.is(ranks) {
			return false
		}
	}
	return true
}

func threeDigits(x float64) string { return fmt.Sprintf("%.3g", x) }
