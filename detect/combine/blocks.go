package combine

import (
	"slices"

	weight "github.com/commq/commq/detect/evidence"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// star is the messages of a call site that go to one rank from all others of a group, or from it to all others, always
// of one size for each.
type star struct {
	site  int32
	ranks []int32 // sorted, with the hub
	hub   int32
	sizes []int64 // by rank; the hub's is 0
}

// receiver is a call that completes receives, in a communicator.
type receiver struct{ comm, site int32 }

// indexStars lists the stars of each communicator.
func (f *facts) indexStars(s *ledger.Sample) {
	f.stars = map[int32][]star{}
	for _, cells := range ledger.GroupBy(s.Order, func(_ int, of *ledger.CellSample) ([2]int32, bool) {
		return [2]int32{of.Cell.Comm, of.Cell.Site}, of.Cell.Site != schema.NullInt32
	}) {
		if x := starOf(cells); x != nil {
			comm := cells[0].Cell.Comm
			f.stars[comm] = append(f.stars[comm], *x)
		}
	}
}

// indexReceivers adds the sites whose messages each call receives.
func (f *facts) indexReceivers(s *ledger.Sample) {
	for _, of := range s.Order {
		if of.Cell.Site == schema.NullInt32 {
			continue
		}
		for w, list := range of.Ways {
			for k := range list.List {
				f.receive(w, &list.List[k].Message)
			}
		}
	}
}

// receive notes where a message is received.
func (f *facts) receive(w ledger.Way, m *ledger.Message) {
	if w.Src == w.Dst || m.RecvSite == schema.NullInt32 {
		return
	}
	at := receiver{m.Comm, m.RecvSite}
	if f.received[at] == nil {
		f.received[at] = map[int32]bool{}
	}
	f.received[at][m.SendSite] = true
}

// starOf returns the star that the cells of a call site are, or nil.
func starOf(cells []*ledger.CellSample) *star {
	sizes, ways := map[ledger.Way]int64{}, []ledger.Way(nil)
	for _, of := range cells {
		for w := range of.Ways {
			if sizes[w] != 0 && sizes[w] != of.Cell.Bytes || w.Src == w.Dst {
				return nil
			}
			if sizes[w] == 0 {
				ways = append(ways, w)
			}
			sizes[w] = of.Cell.Bytes
		}
	}
	if len(ways) < 2 {
		return nil
	}
	toHub := ways[0].Dst == ways[1].Dst
	hub := func(w ledger.Way) (hub, other int32) {
		if toHub {
			return w.Dst, w.Src
		}
		return w.Src, w.Dst
	}
	x := &star{site: cells[0].Cell.Site}
	x.hub, _ = hub(ways[0])
	x.ranks = []int32{x.hub}
	bySource := map[int32]int64{}
	for _, w := range ways {
		h, other := hub(w)
		if h != x.hub || bySource[other] != 0 {
			return nil
		}
		bySource[other] = sizes[w]
		x.ranks = append(x.ranks, other)
	}
	slices.Sort(x.ranks)
	for _, r := range x.ranks {
		x.sizes = append(x.sizes, bySource[r])
	}
	return x
}

// maxAlike limits how many stars with the same blocks count: they may follow from one habit.
const maxAlike = 2

// alike returns the number of other call sites, up to maxAlike, at which the same ranks send the same hub, or get from
// it, as many elements by rank, of any type; 0 if all blocks are of one size.
func (f *facts) alike(g *group, hub int32, sizes []int64) (n int) {
	others := slices.DeleteFunc(slices.Clone(sizes), func(s int64) bool { return s == 0 })
	if slices.Min(others) == slices.Max(others) {
		return 0
	}
	own := sitesOf(g)
	for _, x := range f.stars[g.cells[0].Cell.Comm] {
		if !own[x.site] && x.hub == hub && slices.Equal(x.ranks, g.ranks) && areProportional(x.sizes, sizes) {
			n++
		}
	}
	return min(n, maxAlike)
}

// areProportional reports whether sizes are the same multiple, or fraction, of others, which are not all 0.
func areProportional(a, b []int64) bool {
	at := slices.IndexFunc(b, func(size int64) bool { return size != 0 })
	for k := range a {
		if a[k]*b[at] != b[k]*a[at] {
			return false
		}
	}
	return true
}

// tagsTellRanks reports whether the messages of a group have a tag for each rank other than the hub, ascending with
// the ranks in the order of the communicator.
func (f *facts) tagsTellRanks(g *group, hub int32) bool {
	tagOf := map[int32]int32{}
	for _, of := range g.cells {
		for w := range of.Ways {
			other := w.Src
			if other == hub {
				other = w.Dst
			}
			if _, inside := slices.BinarySearch(g.ranks, other); !inside || w.Src != hub && w.Dst != hub {
				continue
			}
			if old, known := tagOf[other]; known && old != of.Cell.Tag {
				return false
			}
			tagOf[other] = of.Cell.Tag
		}
	}
	last, first := int32(0), true
	for _, rank := range f.order(g) {
		tag, known := tagOf[rank]
		if !known {
			continue
		}
		if !first && tag <= last {
			return false
		}
		last, first = tag, false
	}
	return !first
}

// receivedApart reports whether the calls that receive a group's messages receive no others, as far as they are known.
func (f *facts) receivedApart(g *group) bool {
	own := sitesOf(g)
	for _, list := range g.lists {
		for _, m := range list {
			for site := range f.received[receiver{m.Comm, m.RecvSite}] {
				if !own[site] {
					return false
				}
			}
		}
	}
	return true
}

// orderEvidence returns the bits of the order in which blocks come to a root (backward: go out), in every occurrence,
// of tags that tell the ranks, and of the same blocks at other calls. sizes are those of one occurrence by rank.
func (j *joiner) orderEvidence(root int32, times int, sizes []int64) float64 {
	if !j.inOrder {
		return 0
	}
	each := weight.OrderBits(len(j.g.ranks))
	bits := each * float64(times)
	if j.facts.tagsTellRanks(j.g, root) {
		bits += each
	}
	return bits + each*float64(j.facts.alike(j.g, root, sizes))
}

// blocksOf returns the sizes of the blocks of an occurrence that goes straight to a root, or from it, by rank; the
// root's is 0.
func (g *group) blocksOf(messages []*ledger.Operand, root int32) []int64 {
	out := make([]int64, len(g.ranks))
	for _, m := range messages {
		other := m.Src
		if other == root {
			other = m.Dst
		}
		out[g.placeOf(other)] = m.Bytes
	}
	return out
}
