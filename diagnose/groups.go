package diagnose

import (
	"cmp"
	"maps"
	"slices"

	"github.com/commq/commq/models/critical"
)

// stretch is what ranks compute between two common calls: before the second one, which all ranks make, or before calls
// that only some of them make. Ranks are compared there and not line by line: at a line that only some ranks reach they
// may do what others do before other lines.
type stretch struct {
	stretchKey
	cells cells
	ns    []int64 // by rank
	// excess is by how many ns ranks compute longer there than the mean of the ranks that do not.
	excess map[int32]int64
}

// stretchKey tells stretches apart.
type stretchKey struct {
	end  causeKey // the second common call; none after the last one of a run
	some bool     // before calls that only some ranks make
}

func (k stretchKey) compare(b stretchKey) int {
	number := map[bool]int{true: 1}
	return cmp.Or(cmp.Compare(k.end.place, b.end.place), cmp.Compare(k.end.call, b.end.call),
		cmp.Compare(number[k.some], number[b.some]))
}

// stretchesOf are the stretches in which ranks compute differently long, the one with the longest excess first.
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

// ends are the common call sites that follow others most often, by the one before.
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

// less is the excess to take away, as negative ns, for each cell and slice where the ranks have it.
func (s *stretch) less() map[cell][]int64 {
	less := make([]int64, len(s.ns))
	for rank, ns := range s.excess {
		less[rank] = -ns
	}
	return s.cells.spread(less)
}

// deductOrder takes away the excess that every rank has somewhere that shares the work, and what a rank has more in one
// stretch and less in others: then the ranks do the same work in another order, which is no imbalance. It returns the
// stretches with what is left. total is the time that each rank computes in all of them, and in others that do not
// differ.
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

// group are ranks that compute longer than the others in the same places.
type group struct {
	stretches []*stretch
	excess    map[int32]int64 // of all of them, by rank
}

// sameRanks is the part of the excess of both a group and a stretch that the ranks must have that are in both, for the
// stretch to be one of the group's.
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

// dropSmall drops the ranks that hardly matter in the whole group, whatever they are in one stretch.
func (g *group) dropSmall() {
	dropSmall(g.excess)
	for _, s := range g.stretches {
		maps.DeleteFunc(s.excess, func(rank int32, _ int64) bool { return g.excess[rank] == 0 })
	}
}

const (
	// mostGroups is how many groups of ranks are findings of their own. Where there are more, or they have together
	// less than mostExcess of all excess, ranks differ everywhere, and that is one imbalance.
	mostGroups = 4
	mostExcess = 0.8
)

// groupsOfRanks are the groups of ranks that compute longer than others, if there are several: those that matter beside
// the largest one. It is nil for an imbalance of one group, or without groups.
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

// groupOf tells of which imbalance of a group the computing of a rank before a call is: that from which at least half
// of the delays there follow. The numbers begin at 1; 0 is none.
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

// cause is the imbalance that a group is.
func (g *group) cause(computed *computing, place func(int32) string, total []int64) *cause {
	less := map[cell][]int64{}
	for _, s := range g.stretches {
		maps.Copy(less, s.less())
	}
	return &cause{rule: Imbalance, total: total, group: true, less: less, computed: computed,
		parts: partsOf(less, computed, place, len(total))}
}
