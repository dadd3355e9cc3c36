package randomprograms

import "math/rand/v2"

// size tells how many elements a rank sends in a step to a rank.
type size func(from place, to, step int) int

// blockOf returns the length of part x of n cells that are divided over g ranks, of which the first may have one more.
func blockOf(n, g, x int) int {
	if x < n%g {
		return n/g + 1
	}
	return n / g
}

// paddedOf returns the length of part x of n cells if each has n/g, rounded up, and the last ones what is left.
func paddedOf(n, g, x int) int {
	b := (n + g - 1) / g
	return max(min(b, n-x*b), 0)
}

// cumulativeOf returns the length of part x of n cells that begins at n x / g, rounded down.
func cumulativeOf(n, g, x int) int { return n*(x+1)/g - n*x/g }

// drawSize draws a size and the name of its kind. The domain has the cells along each axis. steps is true if the
// communication is in steps that double the distance.
func (g *grammar) drawSize(steps bool) (name string, s size) {
	kind := g.IntN(30)
	if steps && g.IntN(2) == 0 {
		return "doubling size", func(_ place, _, step int) int { return 3 << step }
	}
	axis, other := g.IntN(len(g.domain)), g.IntN(len(g.domain))
	n, m := g.domain[axis], g.domain[other]
	factor := 1 + g.IntN(5)
	cut := [3]func(n, g, x int) int{blockOf, paddedOf, cumulativeOf}
	part := func(how int, of place, a, n int) int { return cut[how](n, of.extents[a], of.at[a]) }
	switch kind {
	case 0, 1, 2, 3, 4, 5:
		how := g.IntN(3)
		return []string{"block", "padded block", "cumulative block"}[how], func(from place, _, _ int) int {
			return factor * part(how, from, axis, n)
		}
	case 6, 7, 8, 9:
		if axis == other {
			break
		}
		return "product of blocks", func(from place, _, _ int) int {
			return factor * part(0, from, axis, n) * part(0, from, other, m)
		}
	case 10, 11:
		return "block with halo", func(from place, _, _ int) int { return factor * (part(0, from, axis, n) + 2) }
	case 12, 13:
		share := g.IntN(4000) + 2000
		return "share of all", func(from place, _, _ int) int { return share / from.ranks }
	case 14, 15:
		return "block of the partner", func(from place, to, _ int) int {
			p := g.layout.placeOf(from.ranks, to)
			return factor * part(0, p, axis, n)
		}
	case 16, 17:
		return "block of rank - step", func(from place, _, step int) int {
			return factor * blockOf(n*7, from.ranks, ((from.rank-step)%from.ranks+from.ranks)%from.ranks)
		}
	case 18:
		seed := g.Uint64()
		return "lawless size", func(from place, to, step int) int {
			return 50 + rand.New(rand.NewPCG(seed, uint64(from.ranks)<<40+uint64(from.rank)<<20+uint64(step))).IntN(90)
		}
	}
	c := 1 + g.IntN(5000)
	return "constant size", func(place, int, int) int { return c }
}
