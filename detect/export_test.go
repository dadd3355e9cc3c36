package detect

import (
	"math/rand/v2"
	"testing"
)

// RandomPrograms is how many random programs a test makes.
func RandomPrograms(t *testing.T) int { return randomPrograms(t) }

// RandomSpreading is the run of a random program that spreads payloads, with noise, and what is in it.
func RandomSpreading(t *testing.T, seed uint64) (run *Run, kinds []string) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7))}
	p := g.program()
	return p.run(t, g.Rand, g.noise()), g.kinds
}

// RandomCombining is the run of a random program that combines payloads, and what is in it.
func RandomCombining(seed uint64) (run *Run, names []string) {
	g := randomMachine(seed)
	return g.run(), g.names
}
