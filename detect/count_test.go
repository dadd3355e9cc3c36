package detect

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// What came often is just what comes so often in a map, where no payloads share the bits that name them: of 20,000 keys hardly two of a hundred
// million times do.
func TestCounterCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	var keys []uint64
	times := map[uint64]int{}
	for range 20000 {
		k := key(rng.Int64(), 4097)
		for range 1 + rng.IntN(4) {
			keys = append(keys, k)
			times[k]++
		}
	}
	for range 50000 { // two in turn, so that neither is the one that came last
		for _, k := range []uint64{key(77, 9), key(78, 9)} {
			keys = append(keys, k)
			times[k]++
		}
	}
	rng.Shuffle(20000, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for least := 1; least <= mostCounted; least++ {
		for _, spilled := range []bool{false, true} {
			c := newCounter()
			if spilled {
				c.limit = 5000
			}
			for _, k := range keys {
				c.add(k)
			}
			c.finish(least)
			more := 0
			for k, n := range times {
				switch often := c.isOften(k); {
				case n >= least && !often:
					t.Fatalf("least %d, spilled %v: a payload that came %d times is none that came often", least, spilled, n)
				case n < least && often:
					more++
				}
			}
			if spilled && more == len(times) || !spilled && more > 0 {
				t.Errorf("least %d, spilled %v: %d of %d payloads came less often than they seem to", least, spilled, more, len(times))
			}
			if c.isOften(key(5, 5)) && !spilled {
				t.Errorf("least %d: a payload that never came is one that came often", least)
			}
		}
	}
}

// A constant payload fills no memory, however often it comes.
func TestCounterHoldsNoConstants(t *testing.T) {
	c := newCounter()
	for range 1 << 20 {
		c.add(key(77, 7200))
		c.add(key(0, 0))
	}
	if c.held > 2*mostCounted {
		t.Errorf("%d keys are held of two payloads", c.held)
	}
	c.finish(mostCounted)
	if !c.isOften(key(77, 7200)) || !c.isOften(key(0, 0)) {
		t.Error("they did not come often")
	}
}

func TestSorterSorts(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 3))
	for _, n := range []int{0, 1, 7, 9, 1000, 100000} {
		for _, different := range []uint32{3, 4097, 1 << 31} {
			var chunks [][]uint32
			times := map[uint32]int{}
			for k := range n {
				if k%1000 == 0 {
					chunks = append(chunks, nil)
				}
				x := rng.Uint32N(different) * (math.MaxUint32 / different)
				chunks[len(chunks)-1] = append(chunks[len(chunks)-1], x)
				times[x]++
			}
			var want []uint32
			for x, k := range times {
				if k >= 2 {
					want = append(want, x)
				}
			}
			slices.Sort(want)
			var s sorter
			if got := s.often(chunks, 2); !slices.Equal(got, want) {
				t.Errorf("%d numbers, %d different: %d come twice, want %d", n, different, len(got), len(want))
			}
		}
	}
}

// What lies side by side in a larger one's place is worth looking for, nothing else is.
func TestLayoutTiled(t *testing.T) {
	for _, c := range []struct {
		name string
		put  [][4]int64 // rank, address, bytes, datatype; 7 is a named one
		want bool
	}{
		{"one size", [][4]int64{{3, 4096, 800, 7}, {3, 8192, 400, 7}}, false},
		{"two sizes, nothing behind", [][4]int64{{3, 4096, 800, 7}, {3, 4096, 500, 7}}, false},
		{"the rest at another rank", [][4]int64{{3, 4096, 800, 7}, {3, 4096, 500, 7}, {5, 4596, 300, 7}}, false},
		{"side by side", [][4]int64{{3, 4096, 800, 7}, {3, 4096, 500, 7}, {3, 4596, 300, 7}}, true},
		{"one too many", [][4]int64{{3, 4096, 800, 7}, {3, 4096, 500, 7}, {3, 4596, 301, 7}}, false},
		{"three, and others", [][4]int64{{3, 4096, 900, 7}, {3, 4096, 500, 7}, {3, 4596, 301, 7}, {3, 4596, 300, 7}, {3, 4896, 100, 7}}, true},
		{"a derived datatype", [][4]int64{{3, 4096, 800, 7}, {3, 4096, 500, 12}}, true},
		{"nowhere", [][4]int64{{3, schema.NullInt64, 800, 12}, {3, schema.NullInt64, 500, 12}, {3, 0, 5, 12}, {3, 0, 9, 12}}, false},
	} {
		l := newLayout(map[int32]bool{7: true})
		for _, p := range c.put {
			l.put(int32(p[0]), p[1], p[2], int32(p[3]))
		}
		if l.tiled() != c.want {
			t.Errorf("%s: %v, want %v", c.name, !c.want, c.want)
		}
	}
}

// A law: the same run gives the same findings, with the same instances, however many processors there are.
func TestSameFindingsOnAnyProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	inside := cmp.Exporter(func(reflect.Type) bool { return true })
	for seed := range uint64(12) {
		var first *Result
		for _, n := range []int{1, 2, 5} {
			runtime.GOMAXPROCS(n)
			rng := rand.New(rand.NewPCG(seed, 11))
			g := &generator{Rand: rng}
			p := g.program()
			for range 60 { // enough payloads for several goroutines
				g.site += 10
				g.broadcast(g.ranks())
			}
			r, err := Detect(p.run(t, rng, g.noise()), Options{Neighbors: true, Messages: true})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = r
			} else if d := cmp.Diff(first, r, inside); d != "" {
				t.Fatal(fmt.Sprintf("seed %d, %d processors: ", seed, n) + d)
			}
		}
	}
}
