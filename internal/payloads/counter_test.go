package payloads

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A payload is often exactly if a map counts it as often, as long as no two payloads share the bits that identify
// them: of 20,000 keys hardly two of a hundred million times do.
func TestCounterCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	keys, times := drawn(rng)
	for range 50000 { // two in turn, so that no key repeats at once
		for _, k := range []uint64{Key(77, 9), Key(78, 9)} {
			keys = append(keys, k)
			times[k]++
		}
	}
	rng.Shuffle(20000, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for least := 1; least <= MostCounted; least++ {
		for _, spilled := range []bool{false, true} {
			c := NewCounter()
			if spilled {
				c.limit = 5000
			}
			for _, k := range keys {
				c.Add(k)
			}
			c.Finish(least)
			more := 0
			for k, n := range times {
				switch often := c.Often(k); {
				case n >= least && !often:
					t.Fatalf("least %d, spilled %v: a payload that came %d times is none that came often", least,
						spilled, n)
				case n < least && often:
					more++
				}
			}
			if spilled && more == len(times) || !spilled && more > 0 {
				t.Errorf("least %d, spilled %v: %d of %d payloads came less often than they seem to", least, spilled,
					more, len(times))
			}
			if c.Often(Key(5, 5)) && !spilled {
				t.Errorf("least %d: a payload that never came is one that came often", least)
			}
		}
	}
}

// A constant payload fills no memory, however often it comes.
func TestCounterHoldsNoConstants(t *testing.T) {
	c := NewCounter()
	for range 1 << 20 {
		c.Add(Key(77, 7200))
		c.Add(Key(0, 0))
	}
	if c.held > 2*MostCounted {
		t.Errorf("%d keys are held of two payloads", c.held)
	}
	c.Finish(MostCounted)
	if !c.Often(Key(77, 7200)) || !c.Often(Key(0, 0)) {
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
			found := int64(0)
			for x, k := range times {
				if k >= 2 {
					want = append(want, x)
					found += int64(k)
				}
			}
			slices.Sort(want)
			var s sorter
			if got, keys := s.often(chunks, 2); !slices.Equal(got, want) || keys != found {
				t.Errorf("%d numbers, %d different: %d come twice, %d in all, want %d, %d", n, different, len(got),
					keys, len(want), found)
			}
		}
	}
}

// file is a file in memory.
type file struct{ bytes []byte }

func (f *file) WriteAt(b []byte, at int64) (int, error) {
	f.bytes = append(f.bytes[:at], b...)
	return len(b), nil
}

func (f *file) ReadAt(b []byte, at int64) (int, error) { return copy(b, f.bytes[at:]), nil }

// Keys for which there is no memory are counted as exactly in a file.
func TestCounterSpillsToAFile(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 9))
	keys, times := drawn(rng)
	rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for least := 1; least <= MostCounted; least++ {
		c, f := NewCounter(), &file{}
		c.Bound(3000, func() (Spill, error) { return f, nil })
		for _, k := range keys {
			c.Add(k)
		}
		if err := c.Finish(least); err != nil {
			t.Fatal(err)
		}
		for k, n := range times {
			if got := c.Often(k); got != (n >= least) {
				t.Fatalf("least %d: a payload that came %d times came often: %v", least, n, got)
			}
		}
		if len(f.bytes) < 4*len(keys)/2 {
			t.Errorf("the file has %d bytes of %d keys; want most", len(f.bytes), len(keys))
		}
	}
}

// drawn returns 20,000 keys, each once to four times, and how often each is there.
func drawn(rng *rand.Rand) (keys []uint64, times map[uint64]int) {
	times = map[uint64]int{}
	for range 20000 {
		k := Key(rng.Int64(), 4097)
		for range 1 + rng.IntN(4) {
			keys = append(keys, k)
			times[k]++
		}
	}
	return keys, times
}
