package neighbours

import (
	"slices"

	"github.com/commq/commq/detect/ledger"
)

// minAxisRanks is the least number of ranks of a grid with two axes.
const minAxisRanks = 4

// isPairwise reports whether each rank of a repeated exchange sends to one other, which sends back.
func (x *search) isPairwise(h *halo) bool {
	n := len(h.ranks)
	if n < max(x.minRanks, minAxisRanks) || len(h.instances) < MinInstances || len(h.ways) != n {
		return false
	}
	for k, w := range h.ways {
		if _, back := slices.BinarySearchFunc(h.ways, ledger.Way{Src: w.Dst, Dst: w.Src}, ledger.CompareWays); !back ||
			k > 0 && h.ways[k-1].Src == w.Src {
			return false
		}
	}
	return x.areInTurn(h)
}

// axes returns the pairwise exchanges along an axis of two ranks: together with other exchanges, which are done as
// often, they join the ranks to a grid. The steps of recursive doubling join them, too. So either one of the others is
// along an axis of more ranks, or each sends twice, to the neighbours on both sides, which are one rank.
func (x *search) axes(pairs, others []*halo) (out []*halo) {
	for _, p := range pairs {
		same := slices.DeleteFunc(slices.Clone(pairs), func(q *halo) bool { return !q.goesWith(p) })
		sites := sitesOf(same)
		same = slices.DeleteFunc(same, func(q *halo) bool { return !x.sendsTwice(q, sites) })
		if slices.Contains(same, p) && x.formGrid(same...) || slices.ContainsFunc(others, func(h *halo) bool {
			return h.goesWith(p) && x.formGrid(p, h)
		}) {
			out = append(out, p)
		}
	}
	return out
}

// sitesOf returns the call sites that send exchanges.
func sitesOf(list []*halo) map[int32]bool {
	sites := map[int32]bool{}
	for _, h := range list {
		for c := range h.cells {
			sites[c.Site] = true
		}
	}
	return sites
}

// goesWith reports whether two exchanges are between the same ranks and as frequent.
func (h *halo) goesWith(other *halo) bool {
	return h.comm == other.comm && len(h.instances) == len(other.instances) && slices.Equal(h.ranks, other.ranks)
}

// formGrid reports whether exchanges between the same ranks are along different axes of one grid.
func (x *search) formGrid(list ...*halo) bool {
	place, graph := map[int32]int{}, make([]map[int]bool, len(list[0].ranks))
	for k, rank := range x.order(list[0]) {
		place[rank], graph[k] = k, map[int]bool{}
	}
	edges := 0
	for _, h := range list {
		for _, w := range h.ways {
			if a, b := place[w.Src], place[w.Dst]; !graph[a][b] {
				graph[a][b], edges = true, edges+1
			}
		}
	}
	if edges <= len(list[0].ways) { // all are along the same axis
		return false
	}
	grid := NeighborsOf(graph)
	return len(grid.Dims) > 1 && grid.Along == nil
}

// order returns the ranks of an exchange in the order of its communicator.
func (x *search) order(h *halo) []int32 {
	for _, c := range x.comms {
		if c.ID == h.comm && len(c.Members) == len(h.ranks) && ledger.HasRanks(&c, h.ranks) {
			return c.Members
		}
	}
	return h.ranks
}

// sendsTwice reports whether each rank sends to its partner twice each time, messages of one size: before it receives
// any, or one after the other by the same line. sites are those of all exchanges that may be along axes of the same
// grid.
func (x *search) sendsTwice(h *halo, sites map[int32]bool) bool {
	single := func(in []*ledger.Operand) bool { return len(in) != 2*len(h.ways) || !areTwins(in) }
	return !slices.ContainsFunc(h.instances, single) || x.repeatsAtOnce(h, sites)
}

// areTwins reports whether all messages from one rank to another have the same size and datatype.
func areTwins(in []*ledger.Operand) bool {
	first := map[ledger.Way]*ledger.Operand{}
	for _, m := range in {
		w := ledger.Way{Src: m.Src, Dst: m.Dst}
		if old := first[w]; old == nil {
			first[w] = m
		} else if old.Bytes != m.Bytes || old.Datatype != m.Datatype {
			return false
		}
	}
	return true
}

// repeatsAtOnce reports whether the first rank sends to its partner an even number of times before it sends to another
// one by the same lines, at some sites, each two messages of the same size and datatype.
func (x *search) repeatsAtOnce(h *halo, sites map[int32]bool) bool {
	lines := map[int32]bool{}
	for c := range h.cells {
		lines[x.line(c.Site)] = true
	}
	var last *ledger.Operand // the first of two
	others := false
	for _, e := range x.eventsOf(h.ranks[0]) {
		m := x.list[e.message()]
		if !e.sends() || m.Comm != h.comm || !sites[m.SendSite] || !lines[x.line(m.SendSite)] {
			continue
		}
		_, partner := slices.BinarySearchFunc(h.ways, ledger.Way{Src: m.Src, Dst: m.Dst}, ledger.CompareWays)
		switch {
		case partner && last == nil:
			last = m
		case partner && last.Bytes == m.Bytes && last.Datatype == m.Datatype:
			last = nil
		case partner || last != nil:
			return false
		default:
			others = true
		}
	}
	return others && last == nil
}

// line returns the line of a call site, or a number of its own.
func (x *search) line(site int32) int32 { return (&pieces{lines: x.lines}).line(site) }
