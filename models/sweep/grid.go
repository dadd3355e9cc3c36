package sweep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/models"
)

// Grid is all combinations of the values of some axes; the last axis changes fastest.
type Grid struct {
	Axes []*Axis
	// LostPieces are the swept keys that replace bandwidths by size with one for all sizes.
	LostPieces []string
	// Machines has the machine of each combination, in that order.
	Machines []*models.Machine
}

// NewGrid parses the axes and makes a machine for each combination, from m.
func NewGrid(m *models.Machine, axes []string) (*Grid, error) {
	g := &Grid{}
	for _, text := range axes {
		a, err := ParseAxis(m, text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(g.Axes, func(b *Axis) bool { return b.Key == a.Key }) {
			return nil, fmt.Errorf("--sweep %s: %s is swept already", text, a.Key)
		}
		g.Axes = append(g.Axes, a)
		if models.LosesPieces(m, a.Key) {
			g.LostPieces = append(g.LostPieces, a.Key)
		}
	}
	n := g.points()
	if n > MaxPoints {
		return nil, fmt.Errorf("--sweep: more than %d combinations; give fewer values", MaxPoints)
	}
	for i := range n {
		p, err := g.machine(m, i)
		if err != nil {
			return nil, err
		}
		g.Machines = append(g.Machines, p)
	}
	return g, nil
}

// Keys returns the swept keys.
func (g *Grid) Keys() (keys []string) {
	for _, a := range g.Axes {
		keys = append(keys, a.Key)
	}
	return keys
}

// points returns the number of combinations, or some number above MaxPoints.
func (g *Grid) points() int {
	n := 1
	for _, a := range g.Axes {
		if n *= len(a.Values); n > MaxPoints {
			return n
		}
	}
	return n
}

// machine makes the machine of combination i.
func (g *Grid) machine(m *models.Machine, i int) (*models.Machine, error) {
	p := *m
	for k, v := range g.Indexes(i) {
		if err := p.Set(g.Axes[k].Key, g.Axes[k].Values[v]); err != nil {
			return nil, fmt.Errorf("--sweep %s: %w", g.Describe(i), err)
		}
	}
	if err := p.Consistent(); err != nil {
		return nil, fmt.Errorf("--sweep %s: %w; set the other one with --set", g.Describe(i), err)
	}
	return &p, nil
}

// Indexes returns the index of combination i's value on each axis.
func (g *Grid) Indexes(i int) []int {
	indexes := make([]int, len(g.Axes))
	for k := len(g.Axes) - 1; k >= 0; k-- {
		n := len(g.Axes[k].Values)
		indexes[k], i = i%n, i/n
	}
	return indexes
}

// Describe writes the keys and values of combination i for people.
func (g *Grid) Describe(i int) string {
	var text []string
	for k, v := range g.Indexes(i) {
		text = append(text, g.Axes[k].Key+"="+g.Axes[k].Values[v])
	}
	return strings.Join(text, " ")
}
