package main

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/commq/commq/predict/signature/fold"
)

// TestExpectedKeepsTheSequence: the misses, folded, with how many calls came as expected, give all calls again.
func TestExpectedKeepsTheSequence(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var want []int32
		e := newExpected(true)
		for loop := range uint64(1 + rng.IntN(4)) {
			body := 1 + rng.Uint64N(5)
			for range rng.IntN(30) {
				for i := range body {
					key := []uint64{loop * i, rng.Uint64N(20) / 19}
					e.add(key)
					want = append(want, e.find(key))
				}
			}
		}
		if got := unfolded(e); !slices.Equal(got, want) {
			t.Fatalf("%v of %v", got, want)
		}
	}
}

// unfolded returns the numbers of the calls.
func unfolded(e *expected) (calls []int32) {
	next, last := map[int32]int32{}, int32(-1)
	expect := func(n uint64) {
		for range n {
			last = next[last]
			calls = append(calls, last)
		}
	}
	fold.Each(e.again.Items, func(token int32) bool {
		miss := e.tokens.words[2*token:][:2]
		expect(miss[0])
		next[last] = int32(miss[1])
		last = next[last]
		calls = append(calls, last)
		return true
	})
	expect(e.run)
	return calls
}
