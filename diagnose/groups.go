package diagnose

import (
	"cmp"
	"maps"
	"slices"

	"github.com/commq/commq/models/critical"
)

// stretch is the computing between two common calls, the unit in which ranks are compared: either before the second
// call, which all ranks make, or before calls that only some of them make. Ranks that take different lines between the
// two may do the same work.
type stretch struct {
	stretchKey
	cells cells
	ns    []int64 // by rank
	// excess is how many ns ranks compute longer there than the mean of the ranks without excess.
	excess map[int32]int64
}

// stretchKey tells stretches apart.
type stretchKey struct {
	end  causeKey // the second common call; empty after the last one of a run
	some bool     // before calls that only some ranks make
}

func (k stretchKey) compare(b stretchKey) int {
	number := map[bool]int{true: 1}
	return cmp.Or(cmp.Compare(k.end.place, b.end.place), cmp.Compare(k.end.call, b.end.call),
		cmp.Compare(number[k.some], number[b.some]))
}

// stretchesOf returns the stretches in which ranks compute for different times, the longest excess first.
func stretchesOf(computed *computing, place func(int32) string, ranks int) (all []*stretch) {
	byKey, byEnd := map[stretchKey]*stretch{}, map[causeKey][]*stretch{}
	divided, common := computed.divided(ranks), computed.common(ranks)
	ends := divided.ends(common)
	for at, list := range divided {
		k := stretchKey{some: common[at.site] == 0}
		if site, found := ends[at.after]; found {
			k.end = causeKey{place: place(site), call: computed.calls[site]}
		}
		s := byKey[k]
		if s == nil {
			s = &stretch{stretchKey: k, cells: cells{}, ns: make([]int64, ranks)}
			byKey[k], byEnd[k.end] = s, append(byEnd[k.end], s)
		}
		s.cells[at] = list
		for _, x := range list {
			s.ns[at.rank] += x.ns
		}
	}
	for _, both := range byEnd {
		total := make([]int64, ranks)
		for _, s := range both {
			s.findExcess()
			for rank, ns := range s.ns {
				total[rank] += ns
			}
		}
		all = append(all, deductOrder(both, total)...)
	}
	sortStretches(all)
	return all
}

// sortStretches puts the stretch with the longest excess first.
func sortStretches(all []*stretch) {
	slices.SortFunc(all, func(a, b *stretch) int {
		return cmp.Or(cmp.Compare(sumOf(b.excess), sumOf(a.excess)), a.compare(b.stretchKey))
	})
}

// ends returns the common call site that follows each common call site most often.
func (c cells) ends(common map[int32]int64) map[int32]int32 {
	calls := map[[2]int32]int64{}
	for at, list := range c {
		if common[at.site] > 0 {
			for _, x := range list {
				calls[[2]int32{at.after, at.site}] += x.calls
			}
		}
	}
	ends := map[int32]int32{}
	for way, n := range calls {
		site, found := ends[way[0]]
		if most := calls[[2]int32{way[0], site}]; !found || n > most || n == most && way[1] < site {
			ends[way[0]] = way[1]
		}
	}
	return ends
}

func (s *stretch) findExcess() {
	s.excess = above(s.ns, meanOf(s.ns))
	var others []int64
	for rank, ns := range s.ns {
		if _, found := s.excess[int32(rank)]; !found {
			others = append(others, ns)
		}
	}
	for rank := range s.excess {
		s.excess[rank] = s.ns[rank] - int64(meanOf(others)+0.5)
	}
}

// less returns the excess to remove, as negative ns, for each cell and slice.
func (s *stretch) less() map[cell][]int64 {
	less := make([]int64, len(s.ns))
	for rank, ns := range s.excess {
		less[rank] = -ns
	}
	return s.cells.spread(less)
}

// deductOrder removes excess that only shows another order of the same work: what every rank that shares the work has
// in some stretch, and what a rank makes up for in other stretches. It returns the stretches with excess left. total is
// the computing of each rank in all stretches, those without excess too.
func deductOrder(all []*stretch, total []int64) (left []*stretch) {
	sum := make([]int64, len(total))
	for _, s := range all {
		for rank, ns := range s.excess {
			sum[rank] += ns
		}
	}
	least, leastTotal := slices.Max(sum), slices.Max(total)
	for rank, ns := range workers(total) {
		least, leastTotal = min(least, sum[rank]), min(leastTotal, ns)
	}
	for _, s := range all {
		for rank, ns := range s.excess {
			real := max(0, min(sum[rank]-least, total[rank]-leastTotal))
			s.excess[rank] = int64(float64(ns) * float64(real) / float64(sum[rank]))
		}
		maps.DeleteFunc(s.excess, func(_ int32, ns int64) bool { return ns <= 0 })
		if len(s.excess) > 0 {
			dropSmall(s.excess)
			left = append(left, s)
		}
	}
	sortStretches(left)
	return left
}

// group is a set of ranks that compute longer than the others in the same stretches.
type group struct {
	stretches []*stretch
	excess    map[int32]int64 // of all of them, by rank
}

// A stretch belongs to a group if the ranks in both have at least sameRanks of the excess of each.
const sameRanks = 2.0 / 3

func (g *group) has(s *stretch) bool {
	ofGroup, ofStretch := int64(0), int64(0)
	for rank, ns := range s.excess {
		if own, found := g.excess[rank]; found {
			ofGroup, ofStretch = ofGroup+own, ofStretch+ns
		}
	}
	return float64(ofGroup) >= sameRanks*float64(sumOf(g.excess)) &&
		float64(ofStretch) >= sameRanks*float64(sumOf(s.excess))
}

func (g *group) add(s *stretch) {
	g.stretches = append(g.stretches, s)
	for rank, ns := range s.excess {
		g.excess[rank] += ns
	}
}

// dropSmall drops the ranks with little excess in the whole group, also from its single stretches.
func (g *group) dropSmall() {
	dropSmall(g.excess)
	for _, s := range g.stretches {
		maps.DeleteFunc(s.excess, func(rank int32, _ int64) bool { return g.excess[rank] == 0 })
	}
}

const (
	// Each group of ranks is a finding of its own. If there are more than mostGroups, or if together they have less
	// than mostExcess of all excess, ranks differ everywhere, and that is one imbalance.
	mostGroups = 4
	mostExcess = 0.8
)

// groupsOfRanks returns the groups of ranks that compute longer than others, without those that are small beside the
// largest one. It returns nil if fewer than two are left, or too many; see mostGroups.
func groupsOfRanks(stretches []*stretch) (all []*group) {
	for _, s := range stretches {
		i := slices.IndexFunc(all, func(g *group) bool { return g.has(s) })
		if i < 0 {
			i, all = len(all), append(all, &group{excess: map[int32]int64{}})
		}
		all[i].add(s)
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

// groupOf returns a function that gives the number, from 1, of the group to which the computing of a rank before a call
// belongs: the first whose excess there is at least half of the delays that come from it. 0 means none.
func groupOf(groups []*cause, delays []*critical.Delay, place func(int32) string) func(rank int32, at causeKey) int {
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
		for _, p := range g.parts {
			for rank, ns := range p.excess {
				k := rankLine{rank, causeKey{place: p.place, call: p.call}}
				if of[k] == 0 && float64(ns) >= float64(delayed[k])/2 {
					of[k] = i + 1
				}
			}
		}
	}
	return func(rank int32, at causeKey) int { return of[rankLine{rank, at}] }
}

// cause returns the group as an imbalance.
func (g *group) cause(computed *computing, place func(int32) string, total []int64) *cause {
	less := map[cell][]int64{}
	for _, s := range g.stretches {
		maps.Copy(less, s.less())
	}
	return &cause{rule: Imbalance, total: total, group: true, less: less, computed: computed,
		parts: partsOf(less, computed, place, len(total))}
}
