package detect

import (
	"math/rand/v2"
	"testing"
)

// RandomPrograms returns the number of random programs per test.
func RandomPrograms(t *testing.T) int { return randomPrograms(t) }

// RandomSpreading returns the run of a random program that spreads payloads, with noise, and the kinds of its
// operations.
func RandomSpreading(t testing.TB, seed uint64) (run *Run, kinds []string) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7))}
	p := g.program()
	return p.run(t, g.Rand, g.noise()), g.kinds
}

// RandomCombining returns the run of a random program that combines payloads, and the names of its operations.
func RandomCombining(seed uint64) (run *Run, names []string) {
	g := randomMachine(seed)
	return g.run(), g.names
}
