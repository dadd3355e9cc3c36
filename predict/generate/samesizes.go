package generate

import (
	"maps"
	"slices"

	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/model/law"
	"github.com/commq/commq/predict/signature"
)

// checkSizes reconciles the sizes predicted for the two sides of a message: if they differ, both get an interval that
// covers both; if only one is exact, it takes the other's interval. Sites whose sizes differ in the runs too are left
// alone. In a loop of uncertain length the sides may differ in number, but not in size, so only intervals are shared.
func (g *generator) checkSizes() {
	a := g.model.Exchanges()
	known := g.knownGroups(a)
	groups := groupsWithout(g.model, a, g.unknown.lacksCalls)
	g.dropConstant(a, groups)
	here := sides{a, g.sig, 0, g.ranks, groups}
	differ := here.differingSizes()
	maps.DeleteFunc(differ, func(x route, _ bool) bool { return !known[x.group] })
	if len(differ) == 0 && !hasInexactSizes(g.result, g.model.Sites, a, groups) {
		return
	}
	t := g.model.Joint
	for i, run := range t.Runs {
		there := sides{a, t.Sig, t.First[i], run.Ranks, groups}
		for k := range there.differingSizes() {
			delete(groups, k.group)
		}
	}
	if len(differ) > 0 {
		g.widenSizes(&here, differ)
	}
	g.shareBounds(&here)
}

// hasInexactSizes reports whether the law of a size in the groups gave values that are not exact.
func hasInexactSizes(p *Prediction, sites []*model.Site, a *model.Exchanges, groups map[int32]bool) bool {
	return slices.ContainsFunc(sites, func(x *model.Site) bool {
		group, some := a.GroupOf(x.Event.ID)
		return some && groups[group] && (p.HasInexact(x.Send.Bytes) || p.HasInexact(x.Recv.Bytes))
	})
}

// shareBounds gives an exact size the interval that the same size has at the other side of the group's messages: laws
// that rival the other side's were not tried on this side. A size that another law of the other side gives as exact is
// left alone.
func (g *generator) shareBounds(messages *sides) {
	type sideOf struct {
		group int32
		sends bool
	}
	times := map[sideOf]map[size]int64{}
	messages.visit(func(x *sideOfMessage) {
		of := sideOf{x.group, x.sends}
		if times[of] == nil {
			times[of] = map[size]int64{}
		}
		times[of][x.sizeOf(g.model)] += x.times
	})
	bounds := map[sideOf]map[int64]Bounds{}
	for of, here := range times {
		bounds[of] = boundsBySize(g.result, here)
	}
	for of, here := range times {
		for x, n := range here {
			b, inexact := bounds[sideOf{of.group, !of.sends}][x.bytes]
			if _, known := g.result.BoundsOf(x.law, x.bytes); inexact && !known {
				g.result.addBounds(x.law, law.Estimate{Value: x.bytes, Low: b.Low, High: b.High})
				g.result.Inexact += n
			}
		}
	}
}

// boundsBySize returns the intervals of the sizes that no law of a side gave as exact. Intervals of laws by place are
// left out: they are due to too few samples of a place, and say nothing about a law of all places.
func boundsBySize(x *Prediction, sizes map[size]int64) map[int64]Bounds {
	bounds, exact := map[int64]Bounds{}, map[int64]bool{}
	for s := range sizes {
		b, inexact := x.BoundsOf(s.law, s.bytes)
		if inexact && s.law.Group == nil {
			continue
		}
		if exact[s.bytes] = exact[s.bytes] || !inexact; exact[s.bytes] {
			delete(bounds, s.bytes)
			continue
		}
		if had, known := bounds[s.bytes]; known {
			b = Bounds{min(b.Low, had.Low), max(b.High, had.High)}
		}
		bounds[s.bytes] = b
	}
	return bounds
}

// dropConstant drops groups of sites whose messages all have constant sizes.
func (g *generator) dropConstant(a *model.Exchanges, groups map[int32]bool) {
	varies := map[int32]bool{}
	for _, x := range g.model.Sites {
		for _, l := range []*law.Law{x.Send.Bytes, x.Recv.Bytes} {
			if group, some := a.GroupOf(x.Event.ID); some && !l.IsEmpty() && l.Constant == nil {
				varies[group] = true
			}
		}
	}
	for group := range groups {
		if !varies[group] {
			delete(groups, group)
		}
	}
}

// differingSizes returns the routes on which the sizes sent differ from the sizes received, in whatever order.
func (s *sides) differingSizes() map[route]bool {
	sums := map[route]uint64{}
	s.visit(func(x *sideOfMessage) {
		hash := mix(uint64(x.side[signature.SideBytes])) * uint64(x.times)
		if !x.sends {
			hash = -hash
		}
		if sums[x.route] += hash; sums[x.route] == 0 {
			delete(sums, x.route)
		}
	})
	differ := map[route]bool{}
	for k := range sums {
		differ[k] = true
	}
	return differ
}

// mix hashes a number so that sums of hashes differ for different multisets of numbers, except by chance: the last step
// of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// size is the number of bytes of a side of a message, with its law.
type size struct {
	law   *law.Law
	bytes int64
}

// sizeOf returns the size of a side of a message.
func (x *sideOfMessage) sizeOf(m *model.Model) size {
	at := m.SiteOf(x.event.ID)
	if x.sends {
		return size{at.Send.Bytes, int64(x.side[signature.SideBytes])}
	}
	return size{at.Recv.Bytes, int64(x.side[signature.SideBytes])}
}

// widenSizes gives the sizes of messages on routes an interval that includes the size at the other side. Sends and
// receives of a route are paired in order.
func (g *generator) widenSizes(messages *sides, routes map[route]bool) {
	numbered := numberedSizes{numbers: map[size]int32{}}
	all := messages.inOrder(g.model, routes, &numbered)
	met := map[[2]int32]bool{}
	for k, sent := range all {
		if k.sends {
			zip(sent, all[sentOrReceived{k.route, false}], func(x, y int32) { met[[2]int32{x, y}] = true })
		}
	}
	for pair := range met {
		from, to := numbered.sizes[pair[0]], numbered.sizes[pair[1]]
		if from.bytes == to.bytes {
			continue
		}
		low, high := min(from.bytes, to.bytes), max(from.bytes, to.bytes)
		for _, x := range []size{from, to} {
			if _, inexact := g.result.BoundsOf(x.law, x.bytes); !inexact {
				g.result.Inexact++
			}
			g.result.addBounds(x.law, law.Estimate{Value: x.bytes, Low: low, High: high})
		}
	}
}
