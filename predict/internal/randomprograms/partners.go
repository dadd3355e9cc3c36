package randomprograms

import "math/rand/v2"

// None means no rank.
const None = -1

// partners tells to whom ranks send: in each of some steps, each rank to one or several.
type partners struct {
	name string
	// steps is the number of steps.
	steps func(ranks place) int
	// to returns to whom a rank sends in a step.
	to func(from place, step int) []int
	// doubling means that the distance doubles with the step, oneAtATime that a rank sends at most one message in a
	// step, and receives at most one.
	doubling, oneAtATime bool
}

func oneStep(place) int { return 1 }

func toOne(rank int) []int {
	if rank == None {
		return nil
	}
	return []int{rank}
}

// drawPartners draws who communicates with whom.
func (g *grammar) drawPartners() partners {
	if g.IntN(50) == 0 {
		return lawless(g.Uint64())
	}
	axis := g.IntN(len(g.layout.extents(g.layout.ranks[0])))
	by := 1 - 2*g.IntN(2)
	switch g.IntN(18) {
	case 0, 1:
		return partners{name: "shift", oneAtATime: true, steps: oneStep, to: func(p place, _ int) []int {
			return toOne(p.moved(axis, by, false))
		}}
	case 2, 3:
		return partners{name: "wrap", oneAtATime: true, steps: oneStep, to: func(p place, _ int) []int {
			return toOne(p.moved(axis, by, true))
		}}
	case 4:
		return g.directions()
	case 5:
		return tree(g.IntN(2) == 0)
	case 6:
		return butterfly(axis)
	case 7:
		return levels(axis, by)
	case 8:
		return partners{name: "pairwise", oneAtATime: true, steps: func(p place) int { return p.ranks - 1 },
			to: func(p place, step int) []int { return []int{(p.rank + step + 1) % p.ranks} }}
	case 9, 10:
		return movingRoot(axis)
	case 11:
		return gather(g.IntN(2) * -1)
	case 12:
		return scatter(g.IntN(2) * -1)
	case 13:
		return partners{name: "triangle", steps: func(p place) int { return p.extents[axis] - 1 },
			to: func(p place, step int) (all []int) {
				for d := 1; step == p.at[axis] && step+d < p.extents[axis]; d++ {
					all = append(all, p.moved(axis, d, false))
				}
				return all
			}}
	case 14:
		return g.mirrored(axis)
	case 15:
		two := func(place) int { return 2 }
		return partners{name: "by parity", oneAtATime: true, steps: two, to: func(p place, step int) []int {
			if p.at[axis]%2 == step {
				return toOne(p.moved(axis, by, false))
			}
			return nil
		}}
	case 16:
		return cannon(axis)
	}
	return butterfly(axis)
}

// directions sends to all neighbours with one call in a loop.
func (g *grammar) directions() partners {
	return partners{name: "directions", oneAtATime: true, steps: func(p place) int { return 2 * len(p.extents) },
		to: func(p place, step int) []int { return toOne(p.moved(step/2, 1-2*(step%2), false)) }}
}

// tree is a binomial tree with root 0, farthest children first; up is from the leaves to the root.
func tree(up bool) partners {
	steps := func(p place) int { return log2(p.ranks) }
	if up {
		return partners{name: "tree up", oneAtATime: true, steps: steps, doubling: true, to: func(p place, step int) []int {
			if p.rank%(2<<step) == 1<<step {
				return []int{p.rank - 1<<step}
			}
			return nil
		}}
	}
	return partners{name: "tree down", oneAtATime: true, steps: steps, to: func(p place, step int) []int {
		by := 1 << (log2(p.ranks) - 1 - step)
		if p.rank%(2*by) == 0 && p.rank+by < p.ranks {
			return []int{p.rank + by}
		}
		return nil
	}}
}

// butterfly is recursive doubling along an axis.
func butterfly(axis int) partners {
	steps := func(p place) int { return log2(p.extents[axis]) }
	return partners{name: "butterfly", oneAtATime: true, steps: steps, doubling: true,
		to: func(p place, step int) []int {
			return toOne(p.moved(axis, (p.at[axis]^1<<step)-p.at[axis], false))
		}}
}

// levels is a multigrid hierarchy: on each level half as many ranks of an axis take part.
func levels(axis, by int) partners {
	steps := func(p place) int { return log2(p.extents[axis]) }
	return partners{name: "levels", oneAtATime: true, steps: steps, doubling: true,
		to: func(p place, step int) []int {
			if p.at[axis]%(1<<step) != 0 {
				return nil
			}
			return toOne(p.moved(axis, by<<step, false))
		}}
}

// movingRoot sends in step k from the k-th rank of an axis to all others.
func movingRoot(axis int) partners {
	return partners{name: "moving root", steps: func(p place) int { return p.extents[axis] },
		to: func(p place, step int) (all []int) {
			for x := range p.extents[axis] {
				if p.at[axis] == step && x != step {
					all = append(all, p.moved(axis, x-step, false))
				}
			}
			return all
		}}
}

// gather sends from all ranks to one: rank 0, or with -1 the last.
func gather(root int) partners {
	return partners{name: "gather", steps: oneStep, to: func(p place, _ int) []int {
		if to := (root + p.ranks) % p.ranks; to != p.rank {
			return []int{to}
		}
		return nil
	}}
}

// scatter sends from one rank to all others.
func scatter(root int) partners {
	return partners{name: "scatter", steps: oneStep, to: func(p place, _ int) (all []int) {
		for r := range p.ranks {
			if p.rank == (root+p.ranks)%p.ranks && r != p.rank {
				all = append(all, r)
			}
		}
		return all
	}}
}

// mirrored exchanges with the rank at the other end of an axis, or over the diagonal of a square.
func (g *grammar) mirrored(axis int) partners {
	if g.layout.name == "squares" {
		return partners{name: "transpose", oneAtATime: true, steps: oneStep, to: func(p place, _ int) []int {
			return []int{p.rankAt([]int{p.at[1], p.at[0]})}
		}}
	}
	return partners{name: "mirror", oneAtATime: true, steps: oneStep, to: func(p place, _ int) []int {
		return toOne(p.moved(axis, p.extents[axis]-1-2*p.at[axis], false))
	}}
}

// cannon shifts each row by its number.
func cannon(axis int) partners {
	return partners{name: "skew", oneAtATime: true, steps: oneStep, to: func(p place, _ int) []int {
		return toOne(p.moved(axis, p.at[(axis+1)%len(p.at)], true))
	}}
}

// lawless sends to random ranks.
func lawless(seed uint64) partners {
	return partners{name: "lawless partners", steps: func(place) int { return 3 }, to: func(p place, step int) []int {
		r := rand.New(rand.NewPCG(seed, uint64(p.ranks)<<40+uint64(p.rank)<<20+uint64(step)))
		if r.IntN(4) == 0 {
			return nil
		}
		return []int{r.IntN(p.ranks)}
	}}
}
