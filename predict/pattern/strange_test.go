package pattern

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// strange returns communications that follow a law of the process count, mostly one that fitting does not try.
func strange() map[string]func(p, r int32) (int32, bool) {
	snake := func(g, r int32) int32 {
		if x := r % g; r/g%2 == 1 {
			return r - x + g - 1 - x
		}
		return r
	}
	return map[string]func(p, r int32) (int32, bool){
		"double":               func(p, r int32) (int32, bool) { return 2 * r % p, true },
		"triple":               func(p, r int32) (int32, bool) { return 3 * r % p, true },
		"square":               func(p, r int32) (int32, bool) { return r * r % p, true },
		"a third on":           func(p, r int32) (int32, bool) { return (r + p/3) % p, true },
		"two thirds take part": func(p, r int32) (int32, bool) { return r / 2, r < 2*p/3 },
		"root in the middle":   func(p, r int32) (int32, bool) { return p / 2, r != p/2 },
		"root at a third":      func(p, r int32) (int32, bool) { return p / 3, r != p/3 },
		"leader of four":       func(p, r int32) (int32, bool) { return r / 4 * 4, r%4 != 0 },
		"leaders of four":      func(p, r int32) (int32, bool) { return (r + 4) % p, r%4 == 0 && p%4 == 0 },
		"next leader":          func(p, r int32) (int32, bool) { return 0, r%4 == 0 && r > 0 },
		"to eight workers":     func(p, r int32) (int32, bool) { return min(r+1, 8) % p, r < 8 },
		"seven at most":        func(p, r int32) (int32, bool) { return r + 1, r < min(p-1, 7) },
		"ring of at most ten":  func(p, r int32) (int32, bool) { return (r + 1) % min(p, 10), r < 10 },
		"snake": func(p, r int32) (int32, bool) {
			g := root(p, 2)
			if r == p-1 {
				return None, false
			}
			return snake(g, min(snake(g, r)+1, p-1)), true
		},
		"by the largest prime": func(p, r int32) (int32, bool) { return (r + greedy(p, 1)[0]/2) % p, true },
		"changes at 12":        func(p, r int32) (int32, bool) { return (r + 1 + p/12) % p, true },
		"knight on dims": on(divisor2, func(x, g []int32) bool {
			x[0], x[1] = mod(x[0]+1, g[0]), mod(x[1]+2, g[1])
			return true
		}),
		"checkerboard": on(divisor2, func(x, g []int32) bool {
			ok := (x[0]+x[1])%2 == 0
			x[0]++
			return ok && x[0] < g[0]
		}),
		"skewed": on(divisor2, func(x, g []int32) bool {
			x[1] = mod(x[1]+x[0], g[1])
			return true
		}),
	}
}

// TestStrangePrograms evaluates laws that the library does not have at larger process counts: they may be refused,
// but not answered wrongly. No run can show what changes only beyond the measured process counts, and a number that
// is a power of two in each run is taken for one.
func TestStrangePrograms(t *testing.T) {
	for name, f := range strange() {
		for _, train := range [][]int32{{4, 8, 16, 32}, {4, 9, 16, 25}, {6, 8, 9, 12, 16}, {8, 12, 16, 24},
			{12, 16, 20, 24, 30}} {
			c := truth{name: name, site: name, dst: f}
			p, err := Fit([]Slot{c.slot(train...)}, Options{Sizes: train})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int32{36, 40, 48, 64, 128} {
				if v, text := judge(t, p, c, n); v == wrong {
					t.Errorf("runs at %v: %s: %s", train, lawText(p, name), text)
					break
				}
			}
		}
	}
}

// A family of thousands of slots without a law is given up after few of them.
func TestFamiliesWithoutALawAreGivenUp(t *testing.T) {
	next := rand.New(rand.NewPCG(1, 2))
	var slots []Slot
	for i := range int32(2000) {
		s := Slot{Name: fmt.Sprint(i), Site: "s", Index: []int32{i}}
		for _, p := range []int32{4, 8, 16} {
			m := Mapping{Ranks: p}
			for range p {
				m.Dst = append(m.Dst, next.Int32N(p))
			}
			s.Runs = append(s.Runs, m)
		}
		slots = append(slots, s)
	}
	sizes := []int32{4, 8, 16}
	units, _ := families(slots, sizes)
	s := &searcher{sizes: sizes, classes: classes(sizes), memo: map[string]searchResult{},
		libraries: map[string]*library{}}
	found := s.fit(units[0])
	if len(found.unexplained) != len(slots) || len(s.memo) > 1+2*fewTried {
		t.Errorf("%d of %d slots without a law after %d searches", len(found.unexplained), len(slots), len(s.memo))
	}
}
