package compute

import (
	"fmt"
	"math"
	"strings"

	"github.com/commq/commq/predict/pattern"
)

// A role is a group of ranks that compute equally long at a site, relative to the others. A division assigns a role to
// each rank. A role carries the name of its division.
type division struct {
	name string
	of   func(g *pattern.Grid, ranks, rank int32) string
}

// divisions are the divisions that are tried, the simplest first.
var divisions = []division{
	{"all", func(*pattern.Grid, int32, int32) string { return "" }},
	{"last", func(_ *pattern.Grid, ranks, rank int32) string { return either(rank == ranks-1, "last", "others") }},
	{"first", func(_ *pattern.Grid, _, rank int32) string { return either(rank == 0, "first", "others") }},
	{"half", func(_ *pattern.Grid, ranks, rank int32) string { return either(2*rank < ranks, "lower", "upper") }},
	{"parity", func(_ *pattern.Grid, _, rank int32) string { return either(rank%2 == 0, "even", "odd") }},
	{"ends", endsOf},
	{"quarter", func(_ *pattern.Grid, ranks, rank int32) string { return fmt.Sprint(4 * rank / ranks) }},
	{"eighth", func(_ *pattern.Grid, ranks, rank int32) string { return fmt.Sprint(8 * rank / ranks) }},
}

func either(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// endsOf returns the position of a rank along each axis of the grid: o (the only rank), f (the first), l (the last) or
// i (inside). Without a grid, ranks are a line.
func endsOf(g *pattern.Grid, ranks, rank int32) string {
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

// exponent is the mark of the role's exponent in siteLaws.roles: a role's time relative to the reference role's is
// roles[role] * ranks^roles[role+exponent].
const exponent = "^"

// roleOf returns the role of a rank at a site.
func (s *siteLaws) roleOf(ranks, rank int32) string {
	for role := range s.roles {
		name, _, _ := strings.Cut(role, ":")
		for _, d := range divisions {
			if d.name == name {
				return d.name + ":" + d.of(s.grid, ranks, rank)
			}
		}
		break // all are of one division
	}
	return ""
}

// roleFactor returns the time of a rank relative to the reference role's; 1 if no run has its role.
func (s *siteLaws) roleFactor(ranks, rank int32) float64 {
	role := s.roleOf(ranks, rank)
	factor, known := s.roles[role]
	if !known {
		return 1
	}
	return factor * math.Pow(float64(ranks), s.roles[role+exponent])
}

// factors returns the factors of all ranks of a run.
func (s *siteLaws) factors(ranks int32) []float64 {
	all := make([]float64, ranks)
	for r := range all {
		if all[r] = 1; len(s.roles) > 0 {
			all[r] = s.roleFactor(ranks, int32(r))
		}
	}
	return all
}
