package diagnose

import (
	"cmp"
	"maps"
	"slices"

	"github.com/commq/commq/models/critical"
)

// line is what ranks compute before one call of the program.
type line struct {
	key   causeKey
	sites []int32
	ns    []int64 // by rank
	// excess is by how many ns ranks compute longer there than the mean of the ranks that do not.
	excess map[int32]int64
}

// linesOf are the lines before which ranks compute differently long, the one with the longest excess first.
func linesOf(computed *computing, place func(int32) string, ranks int) (all []*line) {
	byKey := map[causeKey]*line{}
	for at, ns := range computed.ns {
		k := causeKey{place: place(at.site), call: computed.calls[at.site]}
		l := byKey[k]
		if l == nil {
			l = &line{key: k, ns: make([]int64, ranks)}
			byKey[k] = l
		}
		if l.ns[at.rank] += ns; !slices.Contains(l.sites, at.site) {
			l.sites = append(l.sites, at.site)
		}
	}
	for _, l := range byKey {
		if l.findExcess(); len(l.excess) > 0 {
			slices.Sort(l.sites)
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b *line) int {
		return cmp.Or(cmp.Compare(sumOf(b.excess), sumOf(a.excess)), cmp.Compare(a.key.place, b.key.place),
			cmp.Compare(a.key.call, b.key.call))
	})
	return all
}

func (l *line) findExcess() {
	l.excess = above(l.ns, meanOf(l.ns))
	var others []int64
	for rank, ns := range l.ns {
		if _, found := l.excess[int32(rank)]; !found {
			others = append(others, ns)
		}
	}
	for rank := range l.excess {
		l.excess[rank] = l.ns[rank] - int64(meanOf(others)+0.5)
	}
}

// deductOrder takes away the excess that every rank has somewhere that shares the work, and what a rank has more at one
// line and less at others: then the ranks do the same work in another order, which is no imbalance. lines keep what is
// left. total is the time that each rank computes.
func deductOrder(lines []*line, total []int64) (left []*line) {
	sum := make([]int64, len(total))
	for _, l := range lines {
		for rank, ns := range l.excess {
			sum[rank] += ns
		}
	}
	least, leastTotal := slices.Max(sum), slices.Max(total)
	for rank, ns := range workers(total) {
		least, leastTotal = min(least, sum[rank]), min(leastTotal, ns)
	}
	for _, l := range lines {
		for rank, ns := range l.excess {
			real := max(0, min(sum[rank]-least, total[rank]-leastTotal))
			l.excess[rank] = int64(float64(ns) * float64(real) / float64(sum[rank]))
		}
		maps.DeleteFunc(l.excess, func(_ int32, ns int64) bool { return ns <= 0 })
		if len(l.excess) > 0 {
			dropSmall(l.excess)
			left = append(left, l)
		}
	}
	slices.SortStableFunc(left, func(a, b *line) int { return cmp.Compare(sumOf(b.excess), sumOf(a.excess)) })
	return left
}

// group are ranks that compute longer than the others before the same lines.
type group struct {
	lines  []*line
	excess map[int32]int64 // of all lines, by rank
}

// sameRanks is the part of the excess of both a group and a line that the ranks must have that are in both, for the line
// to be one of the group's.
const sameRanks = 2.0 / 3

func (g *group) has(l *line) bool {
	ofGroup, ofLine := int64(0), int64(0)
	for rank, ns := range l.excess {
		if own, found := g.excess[rank]; found {
			ofGroup, ofLine = ofGroup+own, ofLine+ns
		}
	}
	return float64(ofGroup) >= sameRanks*float64(sumOf(g.excess)) && float64(ofLine) >= sameRanks*float64(sumOf(l.excess))
}

func (g *group) add(l *line) {
	g.lines = append(g.lines, l)
	for rank, ns := range l.excess {
		g.excess[rank] += ns
	}
}

// dropSmall drops the ranks that hardly matter in the whole group, whatever they are at one line.
func (g *group) dropSmall() {
	dropSmall(g.excess)
	for _, l := range g.lines {
		maps.DeleteFunc(l.excess, func(rank int32, _ int64) bool { return g.excess[rank] == 0 })
	}
	g.lines = slices.DeleteFunc(g.lines, func(l *line) bool { return len(l.excess) == 0 })
}

const (
	// mostGroups is how many groups of ranks are findings of their own. Where there are more, or they have together less
	// than mostExcess of all excess, ranks differ everywhere, and that is one imbalance.
	mostGroups = 4
	mostExcess = 0.8
)

// groupsOfRanks are the groups of ranks that compute longer than others, if there are several: those that matter beside
// the largest one. It is nil for an imbalance of one group, or without groups.
func groupsOfRanks(lines []*line) (all []*group) {
	for _, l := range lines {
		i := slices.IndexFunc(all, func(g *group) bool { return g.has(l) })
		if i < 0 {
			i, all = len(all), append(all, &group{excess: map[int32]int64{}})
		}
		all[i].add(l)
	}
	longest, sum, kept := int64(0), int64(0), int64(0)
	for _, g := range all {
		g.dropSmall()
		longest, sum = max(longest, g.excess[topOf(g.excess)]), sum+sumOf(g.excess)
	}
	all = slices.DeleteFunc(all, func(g *group) bool {
		return float64(g.excess[topOf(g.excess)]) < leastPart*float64(longest)
	})
	for _, g := range all {
		kept += sumOf(g.excess)
	}
	if len(all) < 2 || len(all) > mostGroups || float64(kept) < mostExcess*float64(sum) {
		return nil
	}
	return all
}

// groupOf tells of which group of ranks the computing of a rank before a call is: that from which at least half of the
// delays there follow. The numbers begin at 1; 0 is none.
func groupOf(groups []*group, delays []*critical.Delay, place func(int32) string) func(rank int32, at causeKey) int {
	type rankLine struct {
		rank int32
		at   causeKey
	}
	delayed, of := map[rankLine]int64{}, map[rankLine]int{}
	for _, d := range delays {
		if d.Kind == critical.Compute {
			delayed[rankLine{d.Rank, causeKey{place: place(d.Site), call: d.Call}}] += d.ExcessNs
		}
	}
	for i, g := range groups {
		for _, l := range g.lines {
			for rank, ns := range l.excess {
				if k := (rankLine{rank, l.key}); float64(ns) >= float64(delayed[k])/2 {
					of[k] = i + 1
				}
			}
		}
	}
	return func(rank int32, at causeKey) int { return of[rankLine{rank, at}] }
}

// cause is the imbalance that a group is.
func (g *group) cause(total []int64) *cause {
	c := &cause{rule: Imbalance, total: total, group: true}
	for _, l := range g.lines {
		p := &part{place: l.key.place, call: l.key.call, sites: l.sites, excess: l.excess, computed: map[int32]int64{}}
		for rank := range l.excess {
			p.computed[rank] = l.ns[rank]
		}
		c.parts = append(c.parts, p)
	}
	sortParts(c.parts)
	return c
}
