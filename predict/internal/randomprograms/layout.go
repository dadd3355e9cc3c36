package randomprograms

// layout is a process grid as a function of the number of ranks.
type layout struct {
	name string
	// extents returns the ranks along each axis; the last axis varies fastest.
	extents func(ranks int) []int
	// ranks are the numbers of ranks on which programs are run, ascending.
	ranks []int
}

var (
	powers  = []int{2, 4, 8, 16, 32, 64, 128}
	squares = []int{4, 9, 16, 25, 36, 49}
	several = []int{4, 6, 8, 9, 12, 16, 18, 20, 24, 30, 36}
)

// layouts are those that programs are drawn from.
var layouts = []layout{
	{"line", func(p int) []int { return []int{p} }, []int{3, 4, 5, 6, 7, 8, 9, 11, 12, 16}},
	{"line of powers", func(p int) []int { return []int{p} }, powers[:6]},
	{"squares", func(p int) []int { return balanced(p, 2) }, squares},
	{"2-D", func(p int) []int { return balanced(p, 2) }, several},
	{"2-D, rows shorter", func(p int) []int { return reversed(balanced(p, 2)) }, several},
	{"2-D of powers", func(p int) []int { return balanced(p, 2) }, powers[1:]},
	{"3-D", func(p int) []int { return balanced(p, 3) }, []int{8, 12, 16, 18, 24, 27, 32, 36, 48}},
	{"3-D of powers", func(p int) []int { return reversed(balanced(p, 3)) }, powers[1:]},
	{"two columns", func(p int) []int { return []int{p / 2, 2} }, []int{4, 6, 8, 10, 12, 16, 20}},
}

// balanced returns the extents of MPI_Dims_create of MPICH: as equal as possible, the largest first.
func balanced(ranks, axes int) []int {
	if axes == 1 {
		return []int{ranks}
	}
	least := 1
	for d := 1; power(d, axes) <= ranks; d++ {
		if ranks%d == 0 {
			least = d
		}
	}
	return append(balanced(ranks/least, axes-1), least)
}

// power returns b to the e.
func power(b, e int) int {
	p := 1
	for range e {
		p *= b
	}
	return p
}

func reversed(extents []int) []int {
	var all []int
	for i := len(extents) - 1; i >= 0; i-- {
		all = append(all, extents[i])
	}
	return all
}

// place is a rank in a grid.
type place struct {
	ranks, rank int
	extents     []int
	at          []int // coordinates
}

// placeOf returns the place of a rank.
func (l *layout) placeOf(ranks, rank int) place {
	p := place{ranks: ranks, rank: rank, extents: l.extents(ranks)}
	p.at = make([]int, len(p.extents))
	for a, rest := len(p.extents)-1, rank; a >= 0; a-- {
		p.at[a] = rest % p.extents[a]
		rest /= p.extents[a]
	}
	return p
}

// rankAt returns the rank at coordinates.
func (p *place) rankAt(at []int) int {
	r := 0
	for a, x := range at {
		r = r*p.extents[a] + x
	}
	return r
}

// moved returns the rank that is by steps further along an axis, None beyond its end unless the axis wraps around.
func (p *place) moved(axis, by int, wrap bool) int {
	at := append([]int(nil), p.at...)
	g := p.extents[axis]
	at[axis] += by
	if wrap {
		at[axis] = (at[axis]%g + g) % g
	}
	if at[axis] < 0 || at[axis] >= g {
		return None
	}
	return p.rankAt(at)
}

// log2 returns the least i with 2^i >= n.
func log2(n int) (i int) {
	for 1<<i < n {
		i++
	}
	return i
}
