package diagnose

import (
	"cmp"
	"maps"
	"slices"

	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/schema"
)

// cause is computing that made ranks wait: before one call of the program, or, in an imbalance, wherever ranks compute
// longer than others.
type cause struct {
	rule Rule
	// group means that the imbalance is of one of several groups of ranks, which compute longer at different lines.
	group bool
	// parts are the calls before which the computing is, the longest excess first.
	parts []*part
	// total is the time that each rank computes in the whole run, in ns.
	total []int64
	// computed is the run's computing; of an imbalance only.
	computed *computing
	// less is the excess to remove, as negative ns by cell and slice; of a group only.
	less map[cell][]int64
	// mean is the mean computing before a call, in ns; of variation only.
	mean map[rankSite]int64
	// varies is the call before which computing varies most; of variation only.
	varies causeKey
	// waitNs is the time that ranks waited because of it, and waits the calls that waited. syncNs is the part of
	// synchronous sends, and standardNs that of all other sends.
	waitNs, syncNs, standardNs int64
	waits                      []Wait
	lost                       lost
	// sends has the pairs of ranks of which the second waited for a message of the first.
	sends map[[2]int32]bool
	// found are its instances; nil if nobody waited.
	found *Instances
	// speeds convert its computing to the machine's time.
	speeds speeds
}

// part is the computing before one call of the program.
type part struct {
	place string
	call  schema.CallID
	// sites are the call sites of the place, one for each call path to it.
	sites []int32
	// excess is how much longer than needed ranks computed in the run, in ns; see critical.Delay. It has only ranks
	// that matter.
	excess map[int32]int64
	// computed is the time that each rank computes there, in ns; ranks that never do have no entry.
	computed map[int32]int64
	// bySite is the excess of all ranks by call site.
	bySite map[int32]int64
}

// excessNs returns the excess of all ranks and parts together, in the machine's time.
func (c *cause) excessNs() (ns int64) {
	for _, excess := range c.excess() {
		ns += excess
	}
	return ns
}

// excess returns the excess by rank, in the machine's time.
func (c *cause) excess() map[int32]int64 {
	sum := map[int32]int64{}
	for _, p := range c.parts {
		for rank, ns := range c.speeds.allOnMachine(p.excess) {
			sum[rank] += ns
		}
	}
	return sum
}

// ranks returns the ranks that cause it, in ascending order.
func (c *cause) ranks() []int32 { return slices.Sorted(maps.Keys(c.excess())) }

// topOf returns the rank with the largest excess, the lowest of several.
func topOf(excess map[int32]int64) int32 {
	top := int32(-1)
	for _, rank := range slices.Sorted(maps.Keys(excess)) {
		if top < 0 || excess[rank] > excess[top] {
			top = rank
		}
	}
	return top
}

// A rank is named if its excess is at least leastPart of the largest excess of a rank.
const leastPart = 0.2

// dropSmall drops ranks with less than leastPart of the largest excess.
func dropSmall(excess map[int32]int64) {
	most := float64(excess[topOf(excess)])
	maps.DeleteFunc(excess, func(_ int32, ns int64) bool { return float64(ns) < leastPart*most })
}

// overloaded returns the ranks that compute longer than the mean of those that share the work, and by how many ns.
func overloaded(total []int64) map[int32]int64 { return above(total, meanOfWorkers(total)) }

// above returns the ranks that compute longer than the mean, and by how many ns.
func above(total []int64, mean float64) map[int32]int64 {
	ranks := map[int32]int64{}
	for rank, ns := range total {
		if excess := float64(ns) - mean; excess > 0 {
			ranks[int32(rank)] = int64(excess)
		}
	}
	dropSmall(ranks)
	return ranks
}

// imbalanced reports for each overloaded rank whether its delays come from its total: whether its computing beyond the
// mean of the other ranks is at least half of the delays. The rest only compute while somebody waits for them.
// Computing that several ranks wait for counts once.
func imbalanced(delays []*critical.Delay, overloaded map[int32]int64, computed *computing,
	total []int64) map[int32]bool {
	excess, ranks := map[int32]int64{}, map[int32]bool{}
	bySite := map[rankSite]int64{}
	for _, d := range delays {
		if d.Kind == critical.Compute {
			bySite[rankSite{d.Rank, d.Site}] += d.ExcessNs
		}
	}
	for at, ns := range bySite {
		excess[at.rank] += min(ns, computed.ns[at])
	}
	mean := meanOfWorkers(total)
	if others := othersThan(overloaded, total); len(others) > 0 {
		mean = meanOf(others)
	}
	for rank := range overloaded {
		ranks[rank] = float64(total[rank])-mean >= float64(excess[rank])/2
	}
	return ranks
}

// othersThan returns the computing times, in ns, of the ranks that share the work and are not overloaded.
func othersThan(overloaded map[int32]int64, total []int64) (others []int64) {
	for rank, ns := range workers(total) {
		if _, found := overloaded[rank]; !found {
			others = append(others, ns)
		}
	}
	return others
}

// gatherer sums delays by cause.
type gatherer struct {
	place     func(int32) string
	imbalance func(rank int32, at causeKey) int // of imbalancesOf
	byKey     map[causeKey]*gathered
}

// causeKey identifies a cause. All parts of an imbalance are one cause, which has no place.
type causeKey struct {
	imbalance int // its number from 1; 0 for other causes
	place     string
	call      schema.CallID
}

// waitKey identifies waits: the kind of wait, and the line and call that wait.
type waitKey struct {
	awaits critical.Awaited // of kindOf
	place  string
	call   schema.CallID
}

// gathered is a cause, with what is needed until it is complete.
type gathered struct {
	cause
	byPlace map[causeKey]*part
	byWait  map[waitKey]*Wait
	// forNs is the time waited by kind of wait, and collectiveNs by collective operation.
	forNs        map[critical.Awaited]int64
	collectiveNs map[schema.CallID]int64
}

// causesOf gathers the delays that are computing. It returns the imbalances first, unless all ranks compute equally
// long, then variation, then the others, the longest excess first. place names call sites. The excess of delays is in
// the time of a machine with these speeds.
func causesOf(delays []*critical.Delay, computed *computing, place func(int32) string, ranks int,
	machine speeds) (causes []*cause) {
	total := computed.total(ranks)
	delays = machine.delays(delays)
	imbalances, of := imbalancesOf(delays, computed, place, total)
	g := gatherer{place: place, imbalance: of, byKey: map[causeKey]*gathered{}}
	for _, d := range delays {
		if d.Kind == critical.Compute {
			g.add(d)
		}
	}
	for i, c := range imbalances {
		c.speeds = machine
		k := causeKey{imbalance: i + 1}
		if waits := g.byKey[k]; waits != nil {
			waits.joinLongest(place)
			c.waitNs, c.waits, c.lost = waits.waitNs, waits.sortedWaits(), waits.lost
		}
		delete(g.byKey, k)
	}
	for _, c := range g.byKey {
		c.speeds = machine
		c.joinLongest(place)
		c.complete(computed, total)
		causes = append(causes, &c.cause)
	}
	slices.SortFunc(causes, func(a, b *cause) int {
		return cmp.Or(cmp.Compare(b.excessNs(), a.excessNs()), cmp.Compare(a.parts[0].place, b.parts[0].place),
			cmp.Compare(a.parts[0].call, b.parts[0].call))
	})
	return slices.Concat(imbalances, []*cause{{rule: Variation, mean: computed.mean(),
		varies: computed.mostVaried(place)}}, causes)
}

// imbalancesOf returns the imbalances, one for each group of ranks, or one of the whole run. of returns the number
// (from 1; 0 for none) of the imbalance to which the computing of a rank before a call belongs.
func imbalancesOf(delays []*critical.Delay, computed *computing, place func(int32) string, total []int64) (all []*cause,
	of func(rank int32, at causeKey) int) {
	over := overloaded(total)
	if len(over) == 0 {
		return nil, func(int32, causeKey) int { return 0 }
	}
	if groups := groupsOfRanks(deductOrder(stretchesOf(computed, place, len(total)), total)); len(groups) > 0 {
		for _, g := range groups {
			all = append(all, g.cause(computed, place, total))
		}
		return all, groupOf(all, delays, place)
	}
	less := make([]int64, len(total))
	for rank, ns := range over {
		less[rank] = -ns
	}
	ranks := imbalanced(delays, over, computed, total)
	c := &cause{rule: Imbalance, total: total, computed: computed}
	c.parts = partsOf(computed.divided(len(total)).joined().spread(less), computed, place, len(total))
	return []*cause{c}, func(rank int32, _ causeKey) int {
		if ranks[rank] {
			return 1
		}
		return 0
	}
}

// partsOf returns the calls before which ranks compute their excess. less is the excess by cell and slice, as negative
// ns.
func partsOf(less map[cell][]int64, computed *computing, place func(int32) string, ranks int) (parts []*part) {
	byPlace, all := map[causeKey]*part{}, computed.divided(ranks).joined()
	for at, list := range less {
		sum := int64(0)
		for _, ns := range list {
			sum -= ns
		}
		if sum == 0 {
			continue
		}
		k := causeKey{place: place(at.site), call: computed.calls[at.site]}
		p := byPlace[k]
		if p == nil {
			p = &part{place: k.place, call: k.call, excess: map[int32]int64{}, computed: map[int32]int64{},
				bySite: map[int32]int64{}}
			byPlace[k], parts = p, append(parts, p)
		}
		p.excess[at.rank] += sum
		p.computed[at.rank] += all[at][0].ns
		p.bySite[at.site] += sum
	}
	sortParts(parts)
	return parts
}

func sortParts(parts []*part) {
	slices.SortFunc(parts, func(a, b *part) int {
		return cmp.Or(cmp.Compare(sumOf(b.excess), sumOf(a.excess)), cmp.Compare(a.place, b.place),
			cmp.Compare(a.call, b.call))
	})
}

func (g *gatherer) add(d *critical.Delay) {
	at := causeKey{place: g.place(d.Site), call: d.Call}
	key := at
	if number := g.imbalance(d.Rank, at); number > 0 {
		key = causeKey{imbalance: number}
	}
	c := g.byKey[key]
	if c == nil {
		c = &gathered{byPlace: map[causeKey]*part{}, byWait: map[waitKey]*Wait{}, forNs: map[critical.Awaited]int64{},
			collectiveNs: map[schema.CallID]int64{}}
		c.sends = map[[2]int32]bool{}
		g.byKey[key] = c
	}
	p := c.byPlace[at]
	if p == nil {
		p = &part{place: at.place, call: at.call, excess: map[int32]int64{}, computed: map[int32]int64{},
			bySite: map[int32]int64{}}
		c.byPlace[at], c.parts = p, append(c.parts, p)
	}
	if !slices.Contains(p.sites, d.Site) {
		p.sites = append(p.sites, d.Site)
	}
	for _, to := range d.Receivers {
		c.sends[[2]int32{d.Rank, to}] = true
	}
	p.excess[d.Rank] += d.ExcessNs
	p.bySite[d.Site] += d.ExcessNs
	c.waitNs += d.Ns
	c.lost.add(d)
	for where, w := range d.Places {
		awaits := kindOf(where.For)
		c.forNs[awaits] += w.Ns
		switch where.For {
		case critical.AwaitsReceiver:
			c.standardNs += w.Ns
		case critical.AwaitsReceiverSync:
			c.syncNs += w.Ns
		case critical.AwaitsCollective:
			c.collectiveNs[where.Call] += w.Ns
		}
		c.addWait(waitKey{awaits, g.place(where.Site), where.Call}, where.Site, w)
	}
}

// kindOf returns the kind of a wait for a late receiver whether its send is synchronous or not, and other kinds as they
// are.
func kindOf(a critical.Awaited) critical.Awaited {
	if a == critical.AwaitsReceiverSync {
		return critical.AwaitsReceiver
	}
	return a
}

// addWait adds the waits at a call site to those of the same line.
func (c *gathered) addWait(k waitKey, site int32, w *critical.Waits) {
	to := c.byWait[k]
	if to == nil {
		to = &Wait{For: k.awaits.String(), Place: k.place, Call: k.call.String(), Callers: []Caller{},
			bySite: map[int32]int64{}}
		c.byWait[k] = to
	}
	to.Ns += w.Ns
	to.bySite[site] += w.Ns
	to.calls += w.Calls
	if w.LongestNs > to.LongestNs || w.LongestNs == to.LongestNs && w.LongestAtNs < to.LongestAtNs {
		to.LongestNs, to.LongestRank, to.LongestAtNs = w.LongestNs, w.LongestRank, w.LongestAtNs
	}
}

// joinLongest corrects the longest waits by the instances: there a wait that several kinds of computing cause is one
// wait.
func (c *gathered) joinLongest(place func(int32) string) {
	for _, x := range c.lost.longest {
		w := c.byWait[waitKey{kindOf(x.For), place(x.Site), x.Call}]
		if w != nil && x.OwnNs > w.LongestNs {
			w.LongestNs, w.LongestRank, w.LongestAtNs = x.OwnNs, x.Rank, x.AtNs
		}
	}
}

// complete adds the computing of the whole run to a cause, drops ranks that matter little, and names its rule.
func (c *gathered) complete(computed *computing, total []int64) {
	c.total = total
	for _, p := range c.parts {
		slices.Sort(p.sites)
		for at, ns := range computed.ns {
			if _, found := slices.BinarySearch(p.sites, at.site); found {
				p.computed[at.rank] += ns
			}
		}
		for rank, ns := range p.excess { // sends that follow each other at once count the same computing
			p.excess[rank] = min(ns, p.computed[rank])
		}
		dropSmall(p.excess)
	}
	sortParts(c.parts)
	c.waits, c.rule = c.sortedWaits(), c.ruleByWaits()
}

// sortedWaits returns the calls that waited, the longest first.
func (c *gathered) sortedWaits() (all []Wait) {
	for _, w := range c.byWait {
		w.Calls = max(1, int64(w.calls+0.5))
		all = append(all, *w)
	}
	slices.SortFunc(all, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.Place, b.Place), cmp.Compare(a.Call, b.Call),
			cmp.Compare(a.For, b.For))
	})
	return all
}

func sumOf(all map[int32]int64) (sum int64) {
	for _, n := range all {
		sum += n
	}
	return sum
}

// A rank shares the work if it computes more than leastWork of the mean. One rank that computes less is a master that
// gives out tasks, or writes files. Several are ranks without work, and then all ranks count.
const leastWork = 0.1

// workers returns the computing times of the ranks that share the work, in ns by rank.
func workers(total []int64) map[int32]int64 {
	least, all := leastWork*meanOf(total), map[int32]int64{}
	for rank, ns := range total {
		if float64(ns) > least {
			all[int32(rank)] = ns
		}
	}
	if len(all) == len(total)-1 && len(all) > 1 {
		return all
	}
	for rank, ns := range total {
		all[int32(rank)] = ns
	}
	return all
}

// meanOfWorkers returns the mean computing time of the ranks that share the work, in ns; 0 if nobody computes.
func meanOfWorkers(total []int64) float64 {
	all := workers(total)
	return float64(sumOf(all)) / float64(max(1, len(all)))
}

func meanOf(all []int64) float64 {
	sum := 0.0
	for _, x := range all {
		sum += float64(x)
	}
	return sum / float64(len(all))
}
