package clocks

import (
	"math/rand/v2"
	"testing"
)

// A timer of 2 ticks per ns until tick 2000 (ns 6000 to 7000), then of 4 (to ns 7500 at tick 4000).
func TestClocksArePiecewiseLinear(t *testing.T) {
	c, ok := New([]Pair{{0, 6000}, {4000, 7500}, {2000, 7000}, {3000, 7100}, {3500, 6900}}[:3])
	if !ok {
		t.Fatal("no rate")
	}
	for _, x := range []struct {
		tick uint64
		ns   int64
	}{{0, 6000}, {1, 6000}, {2, 6001}, {1999, 6999}, {2000, 7000}, {2004, 7001}, {4000, 7500}, {4400, 7600},
		{1000, 6500}} {
		if got := c.Ns(x.tick); got != x.ns {
			t.Errorf("tick %d is at %d ns, want %d", x.tick, got, x.ns)
		}
	}
	if got := c.Span(2000); got != 1000 {
		t.Errorf("2000 ticks in the first piece are %d ns, want 1000", got)
	}
}

func TestClocksNeverGoBackwards(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		var pairs []Pair
		for range 2 + rng.IntN(5) {
			pairs = append(pairs, Pair{rng.Uint64N(1000), rng.Int64N(700)})
		}
		c, _ := New(pairs)
		c = c.Shifted(rng.Int64N(500), (rng.Float64()-0.5)*2*maxDrift, rng.Int64N(500))
		last := c.Ns(0)
		for tick := uint64(1); tick < 1500; tick++ {
			now := c.Ns(tick)
			if now < last {
				t.Fatalf("pairs %v: %d ns at tick %d, %d before", pairs, now, tick, last)
			}
			last = now
		}
		if other := c.Ns(3); other != (&Clock{pieces: c.pieces}).Ns(3) {
			t.Fatalf("pairs %v: at(3) depends on what was asked before", pairs)
		}
	}
}

// One tick is 2 ns: ticks 0, 511, 512 and 1300 are 0, 1022, 1024 and 2600 ns.
func TestTimesAreRoundedDownToTheResolution(t *testing.T) {
	c, _ := New([]Pair{{0, 0}, {1000, 2000}})
	c.fine = 1024 - 1
	for tick, want := range map[uint64]int64{0: 0, 511: 0, 512: 1024, 1300: 2048} {
		if got := c.Ns(tick); got != want {
			t.Errorf("tick %d is %d ns, want %d", tick, got, want)
		}
	}
}
