package predict

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/schema"
)

// Warning is what an answer hangs on, said once for a cause.
type Warning struct {
	// Name is one of the constants, for programs; Text what was found.
	Name string `json:"name"`
	Text string `json:"text"`
	// Run is the number of ranks at which a run would tell; 0: none is known.
	Run int32 `json:"run,omitempty"`
}

// Names of warnings.
const (
	FewRuns       = "few-runs"       // fewer runs than can test a law
	FarAway       = "extrapolation"  // far beyond the largest run
	NotExplained  = "not-explained"  // messages whose destinations have no law
	Undecided     = "undecided"      // laws that have all runs disagree about what is asked, or have no answer there
	LawsDiffer    = "laws-differ"    // sizes or counts by laws that have all runs and disagree: the extents of the runs' grids divide the domain's
	Estimated     = "estimates"      // sizes or counts that no law has
	ShortAxes     = "short-axes"     // axes of process grids with at most two ranks in all runs
	NewPaths      = "new-call-paths" // call paths that the largest run alone has: larger ones may have others
	LayoutSwitch  = "layout-switch"  // slabs may be cut along two axes from some number of ranks on
	LoopCounts    = "loop-counts"    // how often loops are repeated is not certain
	TimesOfOneRun = "times-once"     // compute times that one run alone has
	Other         = "other"
)

// UncertainLoop is a loop of which it is not certain how often it is repeated.
type UncertainLoop struct {
	Loop      string
	Low, High int64
}

// Bounds of warnings.
const (
	enoughRuns  = 4
	farTimes    = 2
	largestNext = 4 // times the largest run: as far as runs are proposed
	mostNext    = 1 << 12
	loneShare   = 0.01 // of the compute time
	slabPart    = 2    // a field may have an axis of half the planes of a cube
)

// WarningsAt is what an answer for a number of ranks hangs on. x is what Extrapolate said, whether it refused or not; nil where it was not asked.
func (m *Model) WarningsAt(ranks int32, x *Extrapolation) (all []Warning) {
	next := m.candidates(ranks)
	largest := m.Training[len(m.Training)-1]
	add := func(name string, run int32, format string, args ...any) {
		all = append(all, Warning{name, fmt.Sprintf(format, args...), run})
	}
	if n := len(m.Training); n < enoughRuns {
		add(FewRuns, first(next), "laws rest on %d runs: with %d or more, one that is wrong would show", n, enoughRuns)
	}
	if ranks > farTimes*largest {
		run := int32(0)
		for _, c := range next {
			if c > largest && c < ranks {
				run = c
			}
		}
		add(FarAway, run, "%d ranks are %.3g times the largest run's %d", ranks, float64(ranks)/float64(largest), largest)
	}
	suggested := int32(0)
	if s := m.Pattern.Suggest(ranks, next); len(s) > 0 {
		suggested = s[0].Ranks
	}
	if m.Unexplained > 0 {
		add(NotExplained, 0, "%d of %d messages of the largest run go where no law says", m.Unexplained, m.Traffic)
	}
	if x != nil && len(x.Unknown) > 0 {
		add(Undecided, suggested, "%d communications are not known at %d ranks: %s", len(x.Unknown), ranks, strings.Join(x.Unknown[:min(2, len(x.Unknown))], "; "))
	}
	if x != nil {
		if text, is := x.Undecided(); is {
			add(Undecided, suggested, "%s", text)
		}
	}
	if axes, run := m.shortAxes(next); len(axes) > 0 {
		add(ShortAxes, run, "axes with at most two ranks in all runs, on which + and - look alike: %s", strings.Join(axes, ", "))
	}
	all = append(all, m.numberWarnings(x, next)...)
	if paths := m.newPaths(); paths > 0 {
		run := int32(0)
		if i := slices.IndexFunc(next, func(c int32) bool { return c > largest }); i >= 0 {
			run = next[i]
		}
		add(NewPaths, run, "%d call paths are in the largest run alone: larger ones may have others that no run shows", paths)
	}
	if w, is := m.SwitchesLayout(ranks); is {
		all = append(all, w)
	}
	all = append(all, m.otherWarnings(x)...)
	return all
}

// otherWarnings are of loops and times, and those of the laws of destinations that have no name of their own.
func (m *Model) otherWarnings(x *Extrapolation) (all []Warning) {
	if x != nil && len(x.Loops) > 0 {
		low, high := int64(math.MaxInt64), int64(0)
		for _, l := range x.Loops {
			low, high = min(low, l.Low), max(high, l.High)
		}
		all = append(all, Warning{LoopCounts, fmt.Sprintf("how often %d loops are repeated is not certain: %d to %d times (%s)", len(x.Loops), low, high, x.Loops[0].Loop), 0})
	}
	if x != nil && x.Compute != nil && x.Compute.Once > loneShare {
		all = append(all, Warning{TimesOfOneRun, fmt.Sprintf("%.0f %% of the compute time is before calls that one run alone made: nothing tells how it changes", 100*x.Compute.Once), 0})
	}
	for _, w := range m.Warnings {
		if !strings.HasPrefix(w, "axis ") && !strings.HasPrefix(w, "laws rest on") { // said above
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

func first(next []int32) int32 {
	if len(next) == 0 {
		return 0
	}
	return next[0]
}

// candidates are numbers of ranks below the one asked for, or the largest run's, at which the program could be run next, ascending: of the same kind as
// the runs, up to largestNext times the largest.
func (m *Model) candidates(ranks int32) (next []int32) {
	kinds := []func(int32) bool{
		func(r int32) bool { return bits.OnesCount32(uint32(r)) == 1 },
		func(r int32) bool { q := int32(math.Round(math.Sqrt(float64(r)))); return q*q == r },
		func(r int32) bool { q := int32(math.Round(math.Cbrt(float64(r)))); return q*q*q == r },
		func(r int32) bool { return r%2 == 0 },
	}
	kinds = slices.DeleteFunc(kinds, func(is func(int32) bool) bool {
		return slices.ContainsFunc(m.Training, func(r int32) bool { return !is(r) })
	})
	last := m.Training[len(m.Training)-1]
	for r := max(m.Training[0], 2); r <= min(largestNext*last, mostNext) && (r <= max(ranks, last)); r++ {
		if r != ranks && !slices.Contains(m.Training, r) && !slices.ContainsFunc(kinds, func(is func(int32) bool) bool { return !is(r) }) {
			next = append(next, r)
		}
	}
	return next
}

// shortAxes are the axes of the program's grids that have at most two ranks in all runs, and the least number of ranks at which they all have more.
func (m *Model) shortAxes(next []int32) (axes []string, run int32) {
	for _, class := range m.Pattern.Grids {
		g := class[0]
		if g.Axes < 2 {
			continue
		}
		var short []int
		for a := range g.Axes {
			longest := int32(0)
			for _, r := range m.Training {
				if d, ok := g.Dims(r); ok && a < len(d) {
					longest = max(longest, d[a])
				}
			}
			if longest > 0 && longest <= 2 {
				short = append(short, a)
			}
		}
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

// numberWarnings are those of sizes and counts.
func (m *Model) numberWarnings(x *Extrapolation, next []int32) (all []Warning) {
	if x == nil || x.told == nil {
		return nil
	}
	var differ, estimated []string
	run := int32(0)
	for _, s := range m.sites {
		for _, n := range []struct {
			what string
			law  *valueLaw
		}{{"bytes", s.sendBytes}, {"bytes", s.recvBytes}, {"count", s.sendCount}, {"tag", s.sendTag}} {
			if n.law == nil || len(x.told[n.law]) == 0 {
				continue
			}
			text := n.what + " of " + m.t.name(s.node)
			if n.law.exact() {
				if !slices.Contains(differ, text) {
					differ = append(differ, text)
				}
				if run == 0 {
					run = resolves(n.law, m.makes(s, next))
				}
			} else if !slices.Contains(estimated, text) {
				estimated = append(estimated, text)
			}
		}
	}
	list := func(of []string) string {
		text := strings.Join(of[:min(3, len(of))], ", ")
		if len(of) > 3 {
			text += fmt.Sprintf(" and %d more", len(of)-3)
		}
		return text
	}
	if len(differ) > 0 {
		all = append(all, Warning{LawsDiffer, "laws that have all runs say different things (mostly since the extents of the runs' grids all divide the domain's): " + list(differ), run})
	}
	if len(estimated) > 0 {
		e := m.estimates(x)
		if e.bytes == 0 { // what is received is estimated, and what is sent is known
			return append(all, Warning{Estimated, "no law has all runs, and there is an interval: " + list(estimated), 0})
		}
		interval := fmt.Sprintf("from %d to %d", e.low, e.high)
		if e.high == math.MaxInt64 {
			interval = fmt.Sprintf("from %d to no known end", e.low)
		}
		all = append(all, Warning{Estimated, fmt.Sprintf("no law has all runs: %s. %.3g %% of the bytes that are sent, %d, are estimates, in an interval %s that holds if what the runs show goes on; sizes that depend on data need not go on",
			list(estimated), 100*float64(e.bytes)/float64(max(e.all, 1)), e.bytes, interval), 0})
	}
	return all
}

// estimatedBytes is how much of what is sent is not known exactly, of all.
type estimatedBytes struct{ all, bytes, low, high int64 }

// estimates adds up the bytes of all sends and collective operations.
func (m *Model) estimates(x *Extrapolation) (e estimatedBytes) {
	if x.Signature == nil {
		return e
	}
	occurrences := x.Signature.occurrences()
	for _, s := range m.sites {
		if class := schema.Calls[m.t.Symbols[s.node.Symbol].call].Class; !s.sends && class != schema.ClassCollective {
			continue
		}
		for i, c := range x.Signature.Values[s.node.ID].Events {
			if len(c.Send) == 0 || c.Send[SideBytes] == null {
				continue
			}
			n, v := occurrences[s.node.ID][i], int64(c.Send[SideBytes])
			e.all = addUp(e.all, n, v)
			if b, known := x.told[s.sendBytes][v]; known {
				e.bytes, e.low, e.high = addUp(e.bytes, n, v), addUp(e.low, n, max(b[0], 0)), addUp(e.high, n, b[1])
			}
		}
	}
	return e
}

// resolves is the number of ranks at which the laws that a number has differ most; 0: none is known.
func resolves(l *valueLaw, next []int32) int32 {
	switch {
	case l.Root != nil:
		return cmp.Or(resolves(l.Root, next), resolves(l.Others, next))
	case l.Group == nil || l.Group.Law == nil:
		return 0
	}
	grid := func(ranks int32) ([]int32, func(int32) []int32, bool) {
		if l.Group.Grid == nil {
			return nil, func(int32) []int32 { return nil }, true
		}
		dims, ok := l.Group.Grid.Dims(ranks)
		return dims, func(rank int32) []int32 { c, _ := l.Group.Grid.Coords(ranks, rank); return c }, ok
	}
	index := make([]int32, len(l.Group.Keep))
	run, _, _, _ := l.Group.Law.Resolve(next, grid, index)
	return run
}

// mostAsked is of how many numbers of ranks it is asked which would resolve what laws differ in.
const mostAsked = 16

// makes are the first numbers of ranks of next at which some rank sends or receives at a site, so that a run has its sizes: on a grid of one row nothing goes from row
// to row.
func (m *Model) makes(x *siteModel, next []int32) (all []int32) {
	family := cmp.Or(x.to, x.from)
	for _, ranks := range next {
		if len(all) == mostAsked {
			break
		}
		if family == "" || slices.ContainsFunc(x.slots, func(s *slot) bool {
			to, err := m.Pattern.At(slotName(family, s.index()), ranks)
			return err == nil && slices.ContainsFunc(to.Mapping().Dst, func(dst int32) bool { return dst != pattern.None })
		}) {
			all = append(all, ranks)
		}
	}
	return all
}

// newPaths counts the calls that the largest run alone has.
func (m *Model) newPaths() (n int) {
	last := len(m.t.runs) - 1
	for _, x := range m.sites {
		in, before := false, false
		for _, s := range x.slots {
			for i, calls := range s.runs {
				if slices.ContainsFunc(calls, func(c *Call) bool { return c != nil }) {
					in, before = in || i == last, before || i < last
				}
			}
		}
		if in && !before {
			n++
		}
	}
	return n
}

// SwitchesLayout is the warning LayoutSwitch, and whether there is one at a number of ranks. It looks for fields that are cut in slabs: all ranks send all
// others the same, which becomes less as the square of their number grows. Slabs are planes, and the program has to cut a second axis, in another layout,
// when ranks are more than planes. How many there are no run shows; a cube of elements would have the cube root of them.
func (m *Model) SwitchesLayout(ranks int32) (w Warning, is bool) {
	for _, x := range m.sites {
		if x.comm == nil || x.comm.world < 0 || x.like == nil || len(x.sendLike) == 0 {
			continue
		}
		if call := m.t.Symbols[x.node.Symbol].call; call != schema.CallAlltoall && call != schema.CallIalltoall {
			continue
		}
		total, same, runs := int64(0), true, 0
		for _, s := range x.slots {
			for i, calls := range s.runs {
				p := int64(m.Training[i])
				for _, c := range calls {
					if c == nil || len(c.Send) == 0 || c.Send[SideBytes] == null {
						continue
					}
					t := int64(c.Send[SideBytes]) * p
					if total != 0 && t != total {
						same = false
					}
					total = t
				}
				runs++
			}
		}
		if !same || total == 0 || runs < 2 {
			continue
		}
		element := m.bytesOf(x.sendLike[SideDatatype].int32())
		planes := int32(math.Cbrt(float64(total)/float64(element))) / slabPart
		if ranks > planes && ranks > m.Training[len(m.Training)-1] {
			return Warning{LayoutSwitch, fmt.Sprintf("%s turns a field of %d elements that is cut in slabs: a field that is no cube may have fewer planes than %d ranks, and then the program cuts it otherwise, which no run shows",
				m.t.name(x.node), total/element, ranks), ranks}, true
		}
	}
	return w, false
}

// bytesOf is the size of a datatype; 8 where it is not known.
func (m *Model) bytesOf(datatype int32) int64 {
	for _, d := range m.t.Datatypes {
		if d.ID == datatype && d.Bytes > 0 {
			return d.Bytes
		}
	}
	return 8
}

// Suggestion is a number of ranks to run the program at next, and which warnings that would settle or test.
type Suggestion struct {
	Ranks   int32    `json:"ranks"`
	Reasons []string `json:"reasons"`
}

// Suggest are the numbers of ranks that warnings name, the one that settles most first, of equals the smallest.
func Suggest(warnings []Warning) (all []Suggestion) {
	for _, w := range warnings {
		if w.Run == 0 {
			continue
		}
		i := slices.IndexFunc(all, func(s Suggestion) bool { return s.Ranks == w.Run })
		if i < 0 {
			i, all = len(all), append(all, Suggestion{Ranks: w.Run})
		}
		all[i].Reasons = append(all[i].Reasons, w.Name)
	}
	slices.SortStableFunc(all, func(a, b Suggestion) int {
		return cmp.Or(len(b.Reasons)-len(a.Reasons), int(a.Ranks-b.Ranks))
	})
	return all
}

// SlotReport is what is said of the calls at a place in the program.
type SlotReport struct {
	// Call says which call it is, and where.
	Call string `json:"call"`
	// Destinations is the law of whom ranks send to, Equation its general equation as in Figure 7 of the paper; empty where there is none.
	Destinations string `json:"destinations,omitempty"`
	Equation     string `json:"equation,omitempty"`
	// Size is the law of the bytes that a call sends; Members of the ranks of its communicator: all, or some.
	Size    string `json:"bytes_law,omitempty"`
	Members string `json:"communicator,omitempty"`
	// Calls is how many all ranks make, Bytes what they send in them, from BytesLow to BytesHigh.
	Calls     int64 `json:"calls"`
	Bytes     int64 `json:"bytes"`
	BytesLow  int64 `json:"bytes_low"`
	BytesHigh int64 `json:"bytes_high"`
}

// Slots are what is said of each call that sends, or takes part in a collective, those with most bytes first.
func (m *Model) Slots(x *Extrapolation) (all []SlotReport) {
	if x.Signature == nil {
		return nil
	}
	occurrences := x.Signature.occurrences()
	for _, s := range m.sites {
		class := schema.Calls[m.t.Symbols[s.node.Symbol].call].Class
		if !s.sends && class != schema.ClassCollective {
			continue
		}
		r := SlotReport{Call: m.t.name(s.node)}
		for i, c := range x.Signature.Values[s.node.ID].Events {
			n := occurrences[s.node.ID][i]
			r.Calls += n
			if len(c.Send) == 0 || c.Send[SideBytes] == null {
				continue
			}
			v := int64(c.Send[SideBytes])
			low, high := v, v
			if b, known := x.told[s.sendBytes][v]; known {
				low, high = b[0], b[1]
			}
			r.Bytes, r.BytesLow, r.BytesHigh = r.Bytes+n*v, r.BytesLow+n*max(low, 0), addUp(r.BytesHigh, n, high)
		}
		if r.Calls == 0 {
			continue
		}
		r.Destinations, r.Equation = m.equation(s.to)
		if s.sendBytes != nil && r.Bytes > 0 {
			r.Size = s.sendBytes.String()
		}
		if s.comm != nil && !s.sends {
			r.Members = "all ranks"
			if s.comm.world < 0 {
				r.Members, _ = m.equation(s.comm.slot)
				r.Members = "some ranks: each with the next, " + r.Members
			}
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b SlotReport) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return all
}

// addUp is sum + n x, math.MaxInt64 where that is more.
func addUp(sum, n, x int64) int64 {
	if x > (math.MaxInt64-sum)/max(n, 1) {
		return math.MaxInt64
	}
	return sum + n*x
}

// equation is the law of a family in words, and its general equation where it has one.
func (m *Model) equation(family string) (law, equation string) {
	if family == "" {
		return "", ""
	}
	for i := range m.Pattern.Laws {
		l := &m.Pattern.Laws[i]
		if l.Site != family || len(l.Forms) == 0 {
			continue
		}
		for _, member := range l.Members {
			if g, ok := l.General(member); ok {
				equation = g.String()
				break
			}
		}
		return l.Forms[0].String(), equation
	}
	for _, u := range m.Pattern.Unexplained {
		if strings.HasPrefix(u.Slot, family) {
			return "no law: " + u.Why, ""
		}
	}
	return "", ""
}
