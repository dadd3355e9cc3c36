package testruns

import "github.com/commq/commq/predict/signature"

// Levels of the recursion in Cycles, and the cells of the finest level along an axis.
const (
	levels = 7
	cells  = 512
)

// recursive makes a run of a function that calls itself at one place. The call path of a site at a level has the
// function's frame once for each level.
func recursive(ranks int, steps func(rank int) []Step) *signature.Run {
	run := Steps(ranks, steps)
	for level := range int32(levels) {
		parent := 'a' + level - 1 + 100
		if level == 0 {
			parent = 'z'
		}
		addFrame(run, 'a'+level+100, parent, "cycle")
	}
	for level := range levels {
		for site := range 8 {
			addFrame(run, int32('a'+siteAt(site, level)), int32('a'+level+100), string(rune('A'+site)))
		}
	}
	return run
}

// siteAt returns the number of a site at a level of the recursion.
func siteAt(site, level int) int { return 200 + 10*level + site }

// Cycles makes a multigrid run: cycles over grids of which only some ranks have the coarser ones. On the way down
// every second rank of a level gives its part to the rank before it and waits until it gets it back. Sizes depend on
// the level. times is how often each level is entered from the one above.
func Cycles(ranks, times int) *signature.Run {
	return recursive(ranks, func(rank int) (all []Step) {
		stride := func(level int) int { return max(1, ranks<<level/64) }
		bytes := func(level int) int { return 8 * cells >> level }
		add := func(site, level, to, bytes int, receives bool) {
			all = append(all, Step{Message{siteAt(site, level), to, 1 + site/2, bytes}, receives})
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
			if level == levels-1 {
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
