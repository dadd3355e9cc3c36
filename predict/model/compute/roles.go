package compute

import (
	"strings"

	"github.com/commq/commq/predict/pattern"
)

// roleOf returns the role of a rank: for each axis of the grid o (the only rank), f (the first), l (the last) or
// i (inside). Without a grid, ranks are a line.
func roleOf(g *pattern.Grid, ranks, rank int32) string {
	dims, coords := []int32{ranks}, []int32{rank}
	if g != nil {
		if d, ok := g.Dims(ranks); ok {
			if c, ok := g.Coords(ranks, rank); ok {
				dims, coords = d, c
			}
		}
	}
	var role strings.Builder
	for a, d := range dims {
		switch {
		case d == 1:
			role.WriteByte('o')
		case coords[a] == 0:
			role.WriteByte('f')
		case coords[a] == d-1:
			role.WriteByte('l')
		default:
			role.WriteByte('i')
		}
	}
	return role.String()
}

// roleFactor returns the time of a role relative to the mean; 1 if no run has the role.
func (s *siteLaws) roleFactor(role string) float64 {
	if f, known := s.roles[role]; known {
		return f
	}
	return 1
}
