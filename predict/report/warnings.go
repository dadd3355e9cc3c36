package report

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/model/compute"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/slots"
)

// Warning is an assumption behind a prediction. There is one for each cause.
type Warning struct {
	// Name is for programs, for example few-runs; Text describes what was found.
	Name string `json:"name"`
	Text string `json:"text"`
	// Run is a number of ranks at which a run would tell more; 0 if none is known.
	Run int32 `json:"ranks,omitempty"`
}

// Names of warnings.
const (
	FewRuns = "few-runs"      // too few runs to test the laws
	FarAway = "extrapolation" // far beyond the largest run
	// command lines that differ, so that the runs may be of different problems
	OtherCommands = "other-commands"
	NotExplained  = "not-explained" // messages whose destinations have no law
	Undecided     = "undecided"     // laws that fit all runs conflict, or have no answer
	// laws of sizes or counts that fit all runs conflict, as the extents of the runs' grids divide those of the domain
	LawsDiffer    = "laws-differ"
	Estimated     = "estimates"      // sizes or counts without a law that fits all runs
	ShortAxes     = "short-axes"     // axes of process grids with at most two ranks in all runs
	NewPaths      = "new-call-paths" // call paths that only the largest run has, so that larger runs may have others
	LayoutSwitch  = "layout-switch"  // slabs may be cut along a second axis from some number of ranks on
	LoopCounts    = "loop-counts"    // the number of iterations of loops is uncertain
	TimesOfOneRun = "times-once"     // compute times that only one run has
	// compute times that may include those of other ranks, accepted
	WallClock = compute.WallClock
	Other     = "other"
)

const (
	enoughRuns     = 4
	farFactor      = 2 // times the largest run
	maxNextFactor  = 4 // times the largest run: suggested runs are not larger
	maxNext        = 1 << 12
	minShareOfOnce = 0.01 // of the compute time
)

// Warnings returns the assumptions behind a prediction, which w weighs.
func Warnings(w *Weigher) (all []Warning) {
	m, x, ranks := w.model, w.prediction, w.ranks
	next := suggestableRuns(m, ranks)
	all = append(all, runWarnings(m, ranks, next)...)
	suggested := w.bestForCalls(next, func(int32) bool { return true })
	add := func(name string, run int32, format string, args ...any) {
		all = append(all, Warning{name, fmt.Sprintf(format, args...), run})
	}
	if m.Unexplained > 0 {
		add(NotExplained, 0, "%d of %d messages of the largest run have destinations without a law", m.Unexplained,
			m.Traffic)
	}
	if x != nil && len(x.Unknown) > 0 {
		add(Undecided, suggested, "%d communications are not known at %d ranks: %s", len(x.Unknown), ranks,
			strings.Join(x.Unknown[:min(2, len(x.Unknown))], "; "))
	}
	if x != nil {
		if text, found := x.ConflictWarning(); found {
			add(Undecided, suggested, "%s", text)
		}
	}
	if axes, run := shortAxes(m, next); len(axes) > 0 {
		add(ShortAxes, run, "axes with at most two ranks in all runs, on which + and - look alike: %s",
			strings.Join(axes, ", "))
	}
	all = append(all, sizeWarnings(w, next)...)
	if paths := newPaths(m); paths > 0 {
		run := int32(0)
		if i := slices.IndexFunc(next, func(c int32) bool { return c > m.LargestRun() }); i >= 0 {
			run = next[i]
		}
		add(NewPaths, run, "%d call paths are only in the largest run: larger runs may have others that no run shows",
			paths)
	}
	if switches, _, found := SwitchesLayout(m, ranks); found {
		all = append(all, switches)
	}
	return append(all, otherWarnings(w, next)...)
}

// runWarnings returns the warnings about the runs: their number, their sizes and what they ran.
func runWarnings(m *model.Model, ranks int32, next []int32) (all []Warning) {
	largest := m.LargestRun()
	if one, other := differentCommands(m.Runs()); other != nil {
		all = append(all, Warning{OtherCommands, fmt.Sprintf(
			"the runs on %d and %d ranks have different command lines (%s; %s): laws hold only if both solve the same "+
				"problem", one.Ranks, other.Ranks, shellquote.Join(one.Command...), shellquote.Join(other.Command...)), 0})
	}
	if n := len(m.Training); n < enoughRuns {
		run := int32(0)
		if len(next) > 0 {
			run = next[0]
		}
		all = append(all, Warning{FewRuns,
			fmt.Sprintf("laws rest on %d runs: with %d or more, a wrong one would show", n, enoughRuns), run})
	}
	if ranks > farFactor*largest {
		run := int32(0)
		for _, c := range next {
			if c > largest && c < ranks {
				run = c
			}
		}
		all = append(all, Warning{FarAway, fmt.Sprintf("%d ranks are %.3g times the largest run's %d", ranks,
			float64(ranks)/float64(largest), largest), run})
	}
	return all
}

// otherWarnings returns the warnings about loops and times, and those that have no name of their own.
func otherWarnings(w *Weigher, next []int32) (all []Warning) {
	m, x := w.model, w.prediction
	if x != nil && len(x.Loops) > 0 {
		low, high := int64(math.MaxInt64), int64(0)
		for _, l := range x.Loops {
			low, high = min(low, l.Low), max(high, l.High)
		}
		run := w.bestForCalls(next, func(event int32) bool { return uncertainCount(m.SiteOf(event), x) != nil })
		all = append(all, Warning{LoopCounts,
			fmt.Sprintf("the number of iterations of %s is uncertain: %s (%s)",
				units.Count(int64(len(x.Loops)), "loop"), generate.RangeText(low, high), x.Loops[0].Loop), run})
	}
	if x != nil && x.Compute != nil && m.Times().Doubt != "" {
		all = append(all, Warning{WallClock, m.Times().Doubt, 0})
	}
	if x != nil && x.Compute != nil && x.Compute.Once > minShareOfOnce {
		all = append(all, Warning{TimesOfOneRun,
			fmt.Sprintf("%.0f %% of the compute time is before calls that only one "+
				"run made: nothing tells how it changes", 100*x.Compute.Once), 0})
	}
	for _, w := range m.Warnings {
		if !strings.HasPrefix(w, "axis ") && !strings.HasPrefix(w, "laws rest on") { // these have names
			all = append(all, Warning{Other, w, 0})
		}
	}
	if x != nil {
		for _, w := range x.Warnings {
			all = append(all, Warning{Other, w, 0})
		}
	}
	return all
}

// suggestableRuns returns numbers of ranks at which the program could be run next, ascending: of the same kind as the
// runs (powers of two, squares, cubes, even numbers), not more than the wanted number or the largest run, if that is
// more.
func suggestableRuns(m *model.Model, ranks int32) (next []int32) {
	kinds := []func(int32) bool{
		func(r int32) bool { return bits.OnesCount32(uint32(r)) == 1 },
		func(r int32) bool { q := int32(math.Round(math.Sqrt(float64(r)))); return q*q == r },
		func(r int32) bool { q := int32(math.Round(math.Cbrt(float64(r)))); return q*q*q == r },
		func(r int32) bool { return r%2 == 0 },
	}
	kinds = slices.DeleteFunc(kinds, func(is func(int32) bool) bool {
		return slices.ContainsFunc(m.Training, func(r int32) bool { return !is(r) })
	})
	last := m.LargestRun()
	for r := max(m.Training[0], 2); r <= min(maxNextFactor*last, maxNext) && (r <= max(ranks, last)); r++ {
		if r != ranks && !slices.Contains(m.Training, r) &&
			!slices.ContainsFunc(kinds, func(is func(int32) bool) bool { return !is(r) }) {
			next = append(next, r)
		}
	}
	return next
}

// shortAxes describes the axes of the program's grids that have at most two ranks in all runs, and returns the least
// number of ranks at which all of them have more.
func shortAxes(m *model.Model, next []int32) (axes []string, run int32) {
	for _, class := range m.Pattern.Grids {
		g := class[0]
		if g.Axes < 2 {
			continue
		}
		short := shortAxesOf(&g, m.Training)
		if len(short) == 0 {
			continue
		}
		axes = append(axes, fmt.Sprintf("%d of the %s", len(short), g))
		i := slices.IndexFunc(next, func(r int32) bool {
			d, ok := g.Dims(r)
			return ok && !slices.ContainsFunc(short, func(a int) bool { return d[a] <= 2 })
		})
		if i >= 0 {
			run = max(run, next[i])
		}
	}
	return axes, run
}

func shortAxesOf(g *pattern.Grid, training []int32) (short []int) {
	for a := range g.Axes {
		longest := int32(0)
		for _, r := range training {
			if d, ok := g.Dims(r); ok && a < len(d) {
				longest = max(longest, d[a])
			}
		}
		if longest > 0 && longest <= 2 {
			short = append(short, a)
		}
	}
	return short
}

// newPaths returns the number of calls that only the largest run has.
func newPaths(m *model.Model) (n int) {
	largest := len(m.Training) - 1
	isCall := func(c *signature.Call) bool { return c != nil }
	for _, x := range m.Sites {
		inLargest, before := false, false
		for _, s := range x.Calls.Slots {
			for i, calls := range s.Runs {
				if slices.ContainsFunc(calls, isCall) {
					inLargest, before = inLargest || i == largest, before || i < largest
				}
			}
		}
		if inLargest && !before {
			n++
		}
	}
	return n
}

// differentCommands returns the first run with a command line, and the first whose line is another one; nil if there is
// none.
func differentCommands(runs []*signature.Signature) (one, other *signature.Signature) {
	for _, s := range runs {
		switch {
		case len(s.Command) == 0:
		case one == nil:
			one = s
		case !areAlike(one, s):
			return one, s
		}
	}
	return one, nil
}

// numbers matches the numbers in a command line.
var numbers = regexp.MustCompile(`[0-9]+`)

// areAlike reports whether two runs have the same command line. Numbers may differ if both are the run's number of
// ranks.
func areAlike(a, b *signature.Signature) bool {
	lineA, lineB := strings.Join(a.Command, "\x00"), strings.Join(b.Command, "\x00")
	inA, inB := numbers.FindAllString(lineA, -1), numbers.FindAllString(lineB, -1)
	if len(inA) != len(inB) || numbers.ReplaceAllString(lineA, "0") != numbers.ReplaceAllString(lineB, "0") {
		return false
	}
	for i := range inA {
		if inA[i] != inB[i] && (inA[i] != fmt.Sprint(a.Ranks) || inB[i] != fmt.Sprint(b.Ranks)) {
			return false
		}
	}
	return true
}

// Suggestion is a number of ranks to run the program at next, the names of the warnings that this would settle or test,
// and how much it would settle.
type Suggestion struct {
	// Ranks is a number of ranks to run the program on.
	Ranks int32 `json:"ranks"`
	// Reasons are the names of the warnings that such a run could settle, or what else it would tell.
	Reasons []string `json:"reasons"`
	// Weight is how much it would settle; null if that cannot be weighed, or nothing is unknown.
	Weight *Weight `json:"weight"`
}

// Suggest returns the runs that warnings name, the one that settles most first: most unknown calls, then most calls whose
// rival laws it tells apart, then most bytes of uncertain sizes. Of runs that settle equally much, or that cannot be
// weighed, the one that most warnings name comes first, then the smallest. weigh is Weigher.Weigh.
func Suggest(warnings []Warning, weigh func(ranks int32) (Weight, bool)) (all []Suggestion) {
	for _, w := range warnings {
		if w.Run == 0 {
			continue
		}
		i := slices.IndexFunc(all, func(s Suggestion) bool { return s.Ranks == w.Run })
		if i < 0 {
			i, all = len(all), append(all, Suggestion{Ranks: w.Run})
			if x, ok := weigh(w.Run); ok {
				all[i].Weight = &x
			}
		}
		all[i].Reasons = append(all[i].Reasons, w.Name)
	}
	slices.SortStableFunc(all, func(a, b Suggestion) int {
		none := &Weight{}
		return cmp.Or(compareWeights(*cmp.Or(a.Weight, none), *cmp.Or(b.Weight, none)), len(b.Reasons)-len(a.Reasons),
			int(a.Ranks-b.Ranks))
	})
	return all
}

// maxChecked is the largest number of suggested runs for which the warnings that they would settle are determined.
const maxChecked = 16

// runsWithCall returns the first numbers of ranks, of next, at which some rank sends or receives at a site, so that a
// run shows its sizes. On a grid with one row, for example, nothing is sent between rows.
func runsWithCall(m *model.Model, x *model.Site, next []int32) (all []int32) {
	family := cmp.Or(x.To, x.From)
	isRank := func(dst int32) bool { return dst != pattern.None }
	for _, ranks := range next {
		if len(all) == maxChecked {
			break
		}
		if family == "" || slices.ContainsFunc(x.Calls.Slots, func(s *slots.Slot) bool {
			to, err := m.Pattern.Map(model.SlotName(family, s.Index()), ranks)
			return err == nil && slices.ContainsFunc(to.Mapping().Dst, isRank)
		}) {
			all = append(all, ranks)
		}
	}
	return all
}
