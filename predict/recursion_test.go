package predict

import (
	"testing"

	"github.com/commq/commq/schema"
)

// Levels of a recursion in the tests, and the cells of the finest along an axis.
const (
	depth = 7
	cells = 512
)

// recursive makes a run of a function that calls itself at one place: calls of site s at a level have the function's frame as often as the level says.
func recursive(ranks int, says func(rank int) []step) *Run {
	run := played(ranks, says)
	frame := func(id, parent int, function string) {
		f := schema.NullCallsite
		f.ID, f.Parent, f.Function = int32(id), int32(parent), function
		run.Callsites = append(run.Callsites, f)
	}
	for level := range depth {
		parent := 'a' + level - 1 + 100
		if level == 0 {
			parent = 'z'
		}
		frame('a'+level+100, parent, "cycle")
	}
	for level := range depth {
		for site := range 8 {
			frame('a'+siteAt(site, level), 'a'+level+100, string(rune('A'+site)))
		}
	}
	return run
}

// siteAt is a site at a level of the recursion.
func siteAt(site, level int) int { return 200 + 10*level + site }

// thinned are cycles over grids of which fewer ranks have the coarser ones: on the way down every second rank of a level gives what it has to the one before it and waits,
// until it gets it back. Sizes are those of the level.
func thinned(ranks int) *Run { return cycles(ranks, 1) }

// cycles are thinned, with the coarser level gone to so many times from each.
func cycles(ranks, times int) *Run {
	return recursive(ranks, func(rank int) (all []step) {
		stride := func(level int) int { return max(1, ranks<<level/64) }
		bytes := func(level int) int { return 8 * cells >> level }
		add := func(site, level, to, bytes int, receives bool) {
			all = append(all, step{sent{siteAt(site, level), to, 1 + site/2, bytes}, receives})
		}
		exchange := func(site, level int) {
			add(site, level, (rank+stride(level))%ranks, bytes(level), false)
			add(site+1, level, (rank+ranks-stride(level))%ranks, bytes(level), true)
		}
		var cycle func(level int)
		cycle = func(level int) {
			if rank%stride(level) != 0 {
				return
			}
			exchange(0, level)
			if level == depth-1 {
				return
			}
			s, next := stride(level), stride(level+1)
			gives, takes := next > s && rank%next != 0, next > s && rank%next == 0
			if gives {
				add(2, level, rank-s, bytes(level)/2, false)
			}
			if takes {
				add(3, level, rank+s, bytes(level)/2, true)
			}
			for range times {
				cycle(level + 1)
			}
			if takes {
				add(4, level, rank+s, bytes(level)/2, false)
			}
			if gives {
				add(5, level, rank-s, bytes(level)/2, true)
			}
			exchange(6, level)
			exchange(6, level)
		}
		for range 3 {
			cycle(0)
		}
		return all
	})
}

// TestLevelsOfRecursion: what a function does that calls itself is known on levels on which more ranks do it; not where they would do it before the first level.
func TestLevelsOfRecursion(t *testing.T) {
	m := trained(t, []int{2, 4, 8, 16}, thinned)
	for _, ranks := range []int{32, 64} {
		x, err := m.Extrapolate(t.Context(), int32(ranks), nil)
		if err != nil {
			t.Fatal(err)
		}
		measured := signed(t, thinned(ranks))
		if s := x.Signature.Score(measured); s.EdgePrecision != 1 || s.EdgeRecall != 1 || s.MessageError != 0 || s.ByteError != 0 {
			t.Errorf("at %d ranks: %+v", ranks, s)
		}
		if v := m.Coverage(x, measured); len(v.Wrong) > 0 || v.Covered != v.Numbers {
			t.Errorf("at %d ranks: %+v", ranks, v)
		}
	}
	if _, err := m.Extrapolate(t.Context(), 128, nil); err == nil {
		t.Error("128 ranks: there is a run, whose first level no run shows")
	}
}

// TestRecursionThatBranches: levels of a function that calls itself twice are no iterations of a loop.
func TestRecursionThatBranches(t *testing.T) {
	var runs []*Signature
	for _, ranks := range []int{2, 4} {
		runs = append(runs, signed(t, cycles(ranks, 2)))
	}
	joint, err := join(runs)
	if err != nil {
		t.Fatal(err)
	}
	if joint.levels {
		t.Error("its levels are iterations")
	}
	if joint, err = join([]*Signature{signed(t, thinned(2)), signed(t, thinned(4))}); err != nil {
		t.Fatal(err)
	}
	if !joint.levels {
		t.Error("levels of a function that calls itself once are no iterations")
	}
}
