package model

import (
	"slices"

	"github.com/commq/commq/predict/pattern"
)

// addBoxes adds, to the grids that the runs cannot tell apart, those that cut the program's domain into parts of the
// least surface, if its sides differ: sizes of messages show the domain. It reports whether there are any.
func addBoxes(m *Model) (added bool) {
	for i, alike := range m.Pattern.Grids {
		for _, sides := range domainsOn(m, &alike[0]) {
			for _, box := range pattern.BoxesOf(sides) {
				if areAlike(m, &box, &alike[0]) {
					m.Pattern.AddAlike(i, box)
					added = true
				}
			}
		}
	}
	return added
}

// domainsOn returns the program's domain along the axes of a grid, if its sides differ: the most cells that laws of
// sizes have there, and in the proportions of the bytes of lines along them if laws may count in cells of other sizes.
// There are none if the laws do not show all axes.
func domainsOn(m *Model, grid *pattern.Grid) (all [][]int64) {
	cells, bytes := make([]int64, grid.Axes), make([]int64, grid.Axes)
	sizesOpen := false // the runs do not tell the bytes of a cell
	widen := func(sides []int64, axis int, extent int64) {
		if axis < len(sides) {
			sides[axis] = max(sides[axis], extent)
		}
	}
	for _, x := range m.Sites {
		for _, g := range slices.Concat(x.Send.Bytes.Groups(), x.Recv.Bytes.Groups()) {
			if g.Grid == nil || g.Grid.Axes != grid.Axes || !areAlike(m, g.Grid, grid) {
				continue
			}
			for axis, extent := range g.Domain() {
				widen(cells, axis, extent)
			}
			if axis, n, unsure, ok := g.LineBytes(); ok {
				widen(bytes, axis, n)
				sizesOpen = sizesOpen || unsure
			}
		}
	}
	for i, sides := range [][]int64{cells, bytes} {
		if (i == 0 || sizesOpen) && slices.Min(sides) > 0 && slices.Max(sides) != slices.Min(sides) {
			all = append(all, sides)
		}
	}
	return all
}

// areAlike reports whether two grids have the same extents in all runs.
func areAlike(m *Model, a, b *pattern.Grid) bool {
	return !slices.ContainsFunc(m.Training, func(ranks int32) bool {
		x, ok := a.Dims(ranks)
		y, has := b.Dims(ranks)
		return !ok || !has || !slices.Equal(x, y)
	})
}
