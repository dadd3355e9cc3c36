package randomprograms

import (
	"fmt"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/schema"
)

// division puts ranks into communicators: those of one color are together, those of color None are in none. In each
// step there may be others.
type division struct {
	name  string
	steps func(place) int
	color func(p place, step int) int
}

// drawDivision draws who is together.
func (g *grammar) drawDivision() division {
	axis := g.IntN(len(g.domain))
	k := 2 + g.IntN(3)
	line := func(p place) int { // the number of the line of ranks that differ on the axis
		at := append([]int(nil), p.at...)
		at[axis] = 0
		return p.rankAt(at)
	}
	of := func(name string, color func(p place) int) division {
		return division{name, oneStep, func(p place, _ int) int { return color(p) }}
	}
	switch g.IntN(12) {
	case 0, 1:
		return of("lines", line)
	case 2:
		return of("planes", func(p place) int { return p.at[axis] })
	case 3:
		return of("halves", func(p place) int { return 2 * p.rank / p.ranks })
	case 4:
		return of("halves of lines", func(p place) int { return 2*line(p) + 2*p.at[axis]/p.extents[axis] })
	case 5:
		return of("even and odd of lines", func(p place) int { return 2*line(p) + p.at[axis]%2 })
	case 6:
		return of(fmt.Sprint("neighbours, ", k), func(p place) int { return p.rank / k })
	case 7:
		return of(fmt.Sprint("every ", k), func(p place) int { return p.rank % k })
	case 8:
		return of("firsts of lines", func(p place) int { return min(p.at[axis], 1) * None })
	case 9:
		return of(fmt.Sprint("firsts of neighbours, ", k), func(p place) int { return min(p.rank%k, 1) * None })
	case 10:
		return of("half", func(p place) int { return 2 * p.rank / p.ranks * None })
	}
	return division{"halved again and again", func(p place) int { return log2(p.ranks) }, func(p place, step int) int {
		return p.rank << (step + 1) / p.ranks
	}}
}

// drawOnParts makes a leaf a collective on parts of the ranks, or on those of two divisions in turn, and returns its
// features.
func (g *grammar) drawOnParts(l *leaf) (features []string) {
	for range 1 + g.IntN(4)/3 {
		d := g.drawDivision()
		l.divisions = append(l.divisions, d)
		features = append(features, d.name)
	}
	if len(l.divisions) > 1 {
		features = append(features, "communicators in turn")
	}
	size, of := g.drawSize(false)
	l.size = of
	l.collective = schema.CallAllreduce
	name := "allreduce of parts"
	if g.IntN(2) == 0 {
		l.collective, name = schema.CallBcast, "bcast in parts"
	}
	return append(features, name, size)
}

// partAt is a division in a step.
type partAt struct {
	of   *division
	step int
}

// comms are the communicators of a run.
type comms struct {
	members [][]int32
	ids     map[partAt][]int // by rank: an index of members plus 1; 0: it is in none
}

func newComms() *comms { return &comms{ids: map[partAt][]int{}} }

// idsOf returns the communicators of a division in a step, those with low ranks first.
func (c *comms) idsOf(d *division, step int, places []place) []int {
	key := partAt{d, step}
	if ids, known := c.ids[key]; known {
		return ids
	}
	ids, byColor := make([]int, len(places)), map[int]int{}
	for r, p := range places {
		color := d.color(p, step)
		if color == None {
			continue
		}
		if byColor[color] == 0 {
			c.members = append(c.members, nil)
			byColor[color] = len(c.members)
		}
		ids[r] = byColor[color]
		c.members[ids[r]-1] = append(c.members[ids[r]-1], int32(r))
	}
	c.ids[key] = ids
	return ids
}

// communicateInParts makes a leaf's calls on parts of the ranks. All of a part give as much as the first of it, which
// is the root of a broadcast.
func (e *execution) communicateInParts(l *leaf) {
	for i := range l.divisions {
		d := &l.divisions[i]
		for step := range d.steps(e.here) {
			id := e.comms.idsOf(d, step, e.places)[e.here.rank]
			if id == 0 {
				continue
			}
			first := int(e.comms.members[id-1][0])
			c := testruns.Call{Site: l.site, Call: l.collective, To: None, From: None, Root: None, Comm: id,
				Bytes: l.element * l.size(e.places[first], first, 0), Element: l.element}
			if l.collective == schema.CallBcast {
				c.Root = first
			}
			e.add(c)
		}
	}
}
