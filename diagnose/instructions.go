package diagnose

import (
	"fmt"
	"maps"
	"slices"

	"github.com/commq/commq/internal/units"
)

// sameWork is the advice if ranks compute longer without executing more.
const sameWork = "The same work takes longer on these ranks: look for slower or shared cores, memory of another " +
	"socket, and caches, before the work is distributed in another way."

// work tells, for the title of an imbalance, whether ranks that compute longer also execute more instructions; "" if
// they were not counted. slower means that they hardly do: their additional instructions explain less than half of the
// additional time.
func (c *cause) work() (text string, slower bool) {
	if c.rule != Imbalance || c.computed == nil || c.computed.instructions == nil {
		return "", false
	}
	ranks, sites := c.ranks(), map[int32]bool(nil)
	if c.group {
		first := c.parts[0]
		ranks, sites = slices.Sorted(maps.Keys(first.excess)), map[int32]bool{}
		for site := range first.bySite {
			sites[site] = true
		}
	}
	executed := besideOthers(c.computed.instructions, ranks, len(c.total), sites)
	longer := besideOthers(c.computed.ns, ranks, len(c.total), sites)
	if executed == 0 || longer == 0 {
		return "", false
	}
	they := "it executes"
	if len(ranks) > 1 {
		they = "they execute"
	}
	return fmt.Sprintf("; %s %s times as many instructions as the others there", they, units.Number(executed)),
		executed-1 < (longer-1)/2
}

// besideOthers returns the mean of some ranks over the mean of the others, before calls at some sites; nil means all
// sites. It returns 0 if one of the means is unknown.
func besideOthers(all map[rankSite]int64, ranks []int32, of int, sites map[int32]bool) float64 {
	own, others := int64(0), int64(0)
	for at, n := range all {
		if sites != nil && !sites[at.site] {
			continue
		}
		if slices.Contains(ranks, at.rank) {
			own += n
		} else {
			others += n
		}
	}
	if rest := of - len(ranks); rest > 0 && others > 0 {
		return float64(own) / float64(len(ranks)) / (float64(others) / float64(rest))
	}
	return 0
}
