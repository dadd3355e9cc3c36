package generate

import (
	"math"
	"slices"

	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/model/law"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature/template"
)

// mayReachFurther reports whether a loop over neighbours may need more iterations than in all runs: the sizes of its
// messages have no law, as those of atoms near a border, and an axis of their grid is longer than any of the runs'.
// Where ranks have thinner parts of a domain than in all runs, what they need may reach past their neighbours.
func mayReachFurther(g *generator, n *template.Node) bool {
	if g.ranks <= g.model.LargestRun() {
		return false
	}
	if _, same := g.model.Iterations[n.ID].Unvarying(); !same {
		return false
	}
	return slices.ContainsFunc(g.model.Sites, func(x *model.Site) bool {
		if x.Event.Parent != n || !x.Calls.DiffersAlong(n) || (x.Send.Bytes.IsEmpty() || x.Send.Bytes.IsExact()) &&
			(x.Recv.Bytes.IsEmpty() || x.Recv.Bytes.IsExact()) {
			return false
		}
		if !x.ChangesPeers(x.Event.Parent) {
			return false
		}
		laws := slices.Concat(g.peers.families[x.To], g.peers.families[x.From])
		return slices.ContainsFunc(laws, func(l *pattern.Law) bool { return pattern.IsLonger(l, g.ranks) })
	})
}

// endsAsSeen reports whether only the number of iterations in the runs shows where a loop ends: each rank has the same
// peers in all iterations. A loop with an inner loop counts only if that has no messages, and nothing shows a grid along
// which the outer one may count.
func endsAsSeen(g *generator, n *template.Node) bool {
	hasGrid := len(g.model.Pattern.Grids) > 0
	return !slices.ContainsFunc(g.model.Sites, func(x *model.Site) bool {
		return x.Event.IsIn(n) && (x.Event.Parent != n && (hasGrid || x.Sends || x.Receives) || x.ChangesPeers(n))
	})
}

// enoughRuns is the number of runs from which on a single law that gives their iterations is trusted.
const enoughRuns = 4

// mayFollowData reports whether the number of iterations of a loop may follow the data: it is not the same in all runs,
// and messages in the loop have destinations without a law, as on the coarser grids of a solver. It does not if one law
// alone has it in enough runs, as P - 1 where one rank receives from all others.
func mayFollowData(g *generator, n *template.Node) bool {
	if g.ranks <= g.model.LargestRun() {
		return false
	}
	l := g.model.Iterations[n.ID]
	if _, same := l.Unvarying(); same || len(l.Sums) == 1 && len(g.model.Training) >= enoughRuns {
		return false
	}
	hasNone := func(family string) bool { return family != "" && len(g.peers.families[family]) == 0 }
	return slices.ContainsFunc(g.model.Sites, func(x *model.Site) bool {
		return x.Event.IsIn(n) && (x.Sends && hasNone(x.To) || x.Receives && hasNone(x.From))
	})
}

// widenByShares widens a number of iterations by laws that need no grid of ranks and fit all runs too: a share of the
// ranks, rounded up, or down but at least 1, and the root of their number, rounded either way. Another law of a grid
// than the extent of an axis, or one less, fits by chance: then the loop may end as in the largest run, or a step
// later. Where messages show a grid, a loop along it is no chance: then only the root of the number of ranks, plus a
// constant, is a rival of the extent of an axis. A multiple of the number of ranks is simpler, but no logarithm of it.
func widenByShares(g *generator, n *template.Node, e law.Estimate) law.Estimate {
	s, known := g.shares[n.ID]
	if !known {
		s = sharesOf(g, n)
		g.shares[n.ID] = s
	}
	if len(s) > 0 && (s[0] < e.Low || s[len(s)-1] > e.High) {
		e.Low, e.High, e.Exact = min(e.Low, s[0]), max(e.High, s[len(s)-1]), false
	}
	return e
}

// sharesOf returns, ascending, what such laws give for a loop.
func sharesOf(g *generator, n *template.Node) (all []int64) {
	counts, l := g.model.IterationsAt[n.ID], g.model.Iterations[n.ID]
	if _, same := l.Unvarying(); same || len(counts) < 2 || l.IsOfRanks() && !l.IsOfLogs() {
		return nil
	}
	showsGrid := g.model.Pattern.ShowsGrid()
	first := int64(0)
	switch {
	case l.IsOfRanks():
		first = 2 // a logarithm is no simpler than a part, but than a root
	case showsGrid && !l.IsOfGrid():
		return rootsOf(g, counts)
	}
	for k := first; k < 2*int64(g.model.LargestRun())+2; k++ {
		if isShare(g, counts, k, 0) {
			all = append(all, share(k, int64(g.ranks)))
		}
	}
	switch {
	case l.IsOfRanks():
		if l.HasConstant() && len(counts) < enoughRuns { // so few steps of a solver look like a logarithm
			all = append(all, lastSteps(counts)...)
		}
	case showsGrid:
		all = append(all, rootsOf(g, counts)...)
	case l.IsOfGrid():
		all = append(all, lastSteps(counts)...)
	}
	slices.Sort(all)
	return all
}

// rootsOf returns what the root of the number of ranks, rounded down or up, and a constant give for a loop, if they
// give the counts of all runs.
func rootsOf(g *generator, counts []int64) (all []int64) {
	for k := range int64(2) {
		if more := counts[0] - share(k, int64(g.model.Training[0])); isShare(g, counts, k, more) {
			all = append(all, max(0, share(k, int64(g.ranks))+more))
		}
	}
	slices.Sort(all)
	return all
}

// isShare reports whether a loop has, in all runs, more iterations in addition to the k-th share of the ranks.
func isShare(g *generator, counts []int64, k, more int64) bool {
	for i, n := range counts {
		if share(k, int64(g.model.Training[i]))+more != n {
			return false
		}
	}
	return true
}

// lastSteps returns the number of iterations in the largest run, and what it is if it changes once more by as much as
// it did before. counts are of the runs in the order of their numbers of ranks.
func lastSteps(counts []int64) []int64 {
	last := counts[len(counts)-1]
	for _, before := range slices.Backward(counts) {
		if before != last {
			return []int64{last, max(0, 2*last-before)}
		}
	}
	return []int64{last}
}

// share returns the k-th share of a number of ranks: its root, rounded down or up, then its parts, rounded up or down.
func share(k, ranks int64) int64 {
	root, n := int64(math.Sqrt(float64(ranks))), k/2
	switch {
	case k == 1 && root*root < ranks:
		return root + 1
	case n == 0:
		return root
	case k%2 == 0:
		return (ranks + n - 1) / n
	}
	return max(1, ranks/n)
}
