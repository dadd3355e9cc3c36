package randomprograms

import (
	"fmt"
	"math/rand/v2"

	"github.com/commq/commq/schema"
)

// grammar draws a program.
type grammar struct {
	*rand.Rand
	layout   layout
	domain   []int // cells along each axis
	features [][]string
	onParts  bool // most statements are collectives on parts of the ranks
	// withNulls draws which statements call MPI_PROC_NULL; nil if none do.
	withNulls *rand.Rand
	// withRequests draws how statements complete their requests; nil if they make none. left is set if requests that
	// no statement completes yet may be open.
	withRequests *rand.Rand
	left         bool
}

// Limits of programs.
const (
	maxItems   = 3
	maxDepth   = 2
	trainRuns  = 4
	askedRuns  = 2
	leastCells = 4         // of a rank along an axis, on the largest number of ranks
	mostCalls  = 2_000_000 // of all ranks on the largest number of ranks
	mostSites  = 26        // one for each letter
)

// New draws the program with a number: the first of its kind that makes no more than mostCalls calls.
func New(number uint64) *Program {
	return (&grammar{Rand: rand.New(rand.NewPCG(number, 25))}).drawSmall()
}

// NewOnParts draws the program with a number of those that make most of their calls on communicators that have some of
// the ranks each.
func NewOnParts(number uint64) *Program {
	return (&grammar{Rand: rand.New(rand.NewPCG(number, 26)), onParts: true}).drawSmall()
}

// NewWithNulls draws the program of New with a number, in which some of the statements where each rank has at most one
// partner on either side make the calls of all ranks, with MPI_PROC_NULL where there is no partner.
func NewWithNulls(number uint64) *Program {
	return (&grammar{Rand: rand.New(rand.NewPCG(number, 25)), withNulls: rand.New(rand.NewPCG(number, 27))}).drawSmall()
}

// drawSmall draws programs until one makes no more than mostCalls calls, at no more than mostSites call sites.
func (g *grammar) drawSmall() *Program {
	for {
		if p := g.draw(); p.Sites() <= mostSites && !p.exceeds(mostCalls, p.Ask[askedRuns-1]) {
			return p
		}
	}
}

// draw draws a program.
func (g *grammar) draw() *Program {
	g.domain, g.features, g.left = nil, nil, false
	g.layout = layouts[g.IntN(len(layouts))]
	first := g.IntN(len(g.layout.ranks) - trainRuns - askedRuns + 1)
	p := &Program{Train: g.layout.ranks[first : first+trainRuns],
		Ask: g.layout.ranks[first+trainRuns : first+trainRuns+askedRuns]}
	for a := range g.layout.extents(p.Train[0]) {
		longest := 1
		for _, ranks := range p.Ask {
			longest = max(longest, g.layout.extents(ranks)[a])
		}
		g.domain = append(g.domain, longest*leastCells+g.IntN(120))
	}
	p.layout = g.layout
	for range 1 + g.IntN(g.IntN(maxItems)+1) {
		p.items = append(p.items, g.drawItem(0, nil)...)
	}
	if p.hasRequests = g.withRequests != nil; p.hasRequests {
		p.items = append(p.items, g.drawWait("at the end", nil))
	}
	p.features = g.features
	return p
}

// drawItem draws a leaf, or a loop that is nested in depth others and what waits for its requests, with the features
// that the loops around it give.
func (g *grammar) drawItem(depth int, around []string) []item {
	if depth == maxDepth || g.IntN(4) > 0 {
		return []item{{leaf: g.drawLeaf(depth, around)}}
	}
	l := g.drawLoop(depth)
	inside := append(append([]string(nil), around...), l.name)
	for range 1 + g.IntN(3)/2 {
		l.body = append(l.body, g.drawItem(depth+1, inside)...)
	}
	return g.withWaits(l, around)
}

// drawLoop draws the head of a loop.
func (g *grammar) drawLoop(depth int) *loop {
	switch kind := g.IntN(5); {
	case kind == 0:
		axis := g.IntN(len(g.domain))
		return &loop{name: "loop over an axis", count: func(p place, _ []int) int { return p.extents[axis] }}
	case kind == 1:
		return &loop{name: "loop to log P", count: func(p place, _ []int) int { return log2(p.ranks) }}
	case kind == 2 && depth > 0:
		return &loop{name: "triangular loop", count: func(_ place, around []int) int { return around[len(around)-1] + 1 }}
	}
	n := 2 + g.IntN(6)
	return &loop{name: "repeat", count: func(place, []int) int { return n }}
}

// drawLeaf draws a communication.
func (g *grammar) drawLeaf(depth int, around []string) *leaf {
	l := &leaf{site: len(g.features), element: 1 << g.IntN(4)}
	g.features = append(g.features, nil, nil)
	if g.onParts && g.IntN(4) > 0 {
		l.features = append(g.drawOnParts(l), around...)
	} else if g.IntN(6) == 0 {
		l.features = append(g.drawCollective(l, depth), around...)
	} else {
		l.partners = g.drawPartners()
		guard, holds := g.drawGuard()
		size, of := g.drawSize(l.partners.doubling)
		l.guard, l.size = holds, of
		l.features = append([]string{l.partners.name, size, guard}, around...)
		if g.withNulls != nil && l.partners.oneAtATime {
			if l.nulls = nulls(g.withNulls.IntN(int(allNulls))); l.nulls != noNulls {
				l.features = append(l.features, l.nulls.String())
			}
		}
		if g.withRequests != nil {
			g.drawRequests(l)
		}
	}
	l.features = append(l.features, "layout "+g.layout.name)
	for site := l.site; site < len(g.features); site++ {
		g.features[site] = l.features
	}
	return l
}

// drawGuard draws who takes part.
func (g *grammar) drawGuard() (name string, holds func(place) bool) {
	axis := g.IntN(len(g.domain))
	switch g.IntN(12) {
	case 0:
		return "guard: first of an axis", func(p place) bool { return p.at[axis] == 0 }
	case 1:
		return "guard: not last of an axis", func(p place) bool { return p.at[axis] < p.extents[axis]-1 }
	case 2:
		return "guard: even", func(p place) bool { return p.at[axis]%2 == 0 }
	}
	return "no guard", func(place) bool { return true }
}

// drawCollective makes a leaf a collective and returns its features.
func (g *grammar) drawCollective(l *leaf, depth int) []string {
	size, of := g.drawSize(false)
	l.root = func(place, []int) int { return None }
	l.collective = schema.CallAllreduce
	name := "allreduce"
	if g.IntN(2) == 0 {
		root := g.IntN(2) * -1
		l.collective, name = schema.CallBcast, "bcast"
		l.root = func(p place, around []int) int { return (root + p.ranks) % p.ranks }
		if depth > 0 {
			name = "bcast from a moving root"
			l.root = func(p place, around []int) int { return around[len(around)-1] % p.ranks }
		}
	}
	l.size = func(from place, to, step int) int { // all ranks give as much
		from.rank, from.at = 0, make([]int, len(from.at))
		return of(from, to, step)
	}
	return []string{name, fmt.Sprint(size)}
}
