package law

import (
	"slices"

	"github.com/commq/commq/predict/pattern"
)

// addTwins adds to a law of blocks the same law on other grids that the runs do not rule out, if the axes that it uses
// have the same ranks on them in all runs.
func (f *Fitter) addTwins(o *openLaw) {
	for _, g := range o.law.placeGroups() {
		if g.Grid == nil || g.Grid.Axes < 2 || g.Law == nil || !g.exact {
			continue
		}
		used, known := g.Law.Axes()
		if !known || len(used) == 0 {
			continue
		}
		for i := range f.twins {
			twin := &f.twins[i]
			if axes := mapAxes(g.Grid, twin, used, o.samples); axes != nil && !equalGrids(g.Grid, twin) {
				g.Rivals = append(g.Rivals, &GroupLaw{Law: g.Law, Grid: twin, Axes: axes, Keep: g.Keep, Peer: g.Peer,
					exact: true})
			}
		}
	}
}

// mapAxes returns, for each axis of a grid, the axis of another one that has the same ranks in all samples, -1 for
// those that are not used; nil if a used axis has none.
func mapAxes(grid, other *pattern.Grid, used []int, samples []Sample) []int {
	axes := slices.Repeat([]int{-1}, grid.Axes)
	for _, a := range used {
		for b := range other.Axes {
			if axes[a] < 0 && !slices.ContainsFunc(samples, func(s Sample) bool {
				return !grid.SharesAxis(a, *other, b, s.Point.Ranks)
			}) {
				axes[a] = b
			}
		}
		if axes[a] < 0 {
			return nil
		}
	}
	return axes
}
