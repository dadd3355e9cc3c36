package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// Outcomes for a measure.
const (
	Same     = "same"     // equal; for times, no significant difference in samples large enough to show one
	More     = "more"     // more, for an exact measure; a significantly longer time
	Fewer    = "fewer"    // likewise less
	Differs  = "differs"  // a fingerprint that differs
	Appeared = "appeared" // a part that all new runs have and the base lacks
	Vanished = "vanished" // a part that all runs of the base have and the new ones lack
	Moved    = "moved"    // a renamed call site: same calls as one that vanished
	Varies   = "varies"   // an exact measure that differs between the runs of a side, so that the sides overlap
	Unclear  = "unclear"  // too few samples for the test of a time to find any difference
	Unknown  = "unknown"  // one side lacks the measure, or hashes of fingerprints or clocks of compute times differ
)

// Side is a measure of one set of runs.
type Side struct {
	// N is the number of runs that have it.
	N int `json:"runs"`
	// Low and High are its least and greatest values.
	Low  int64 `json:"low"`
	High int64 `json:"high"`
	// Center is the median. Error is its confidence interval as benchstat writes it ("3%"); empty for exact measures,
	// and for times of too few runs to know one.
	Center float64 `json:"center"`
	Error  string  `json:"error,omitempty"`
	// File and Line are its place in the source.
	File string `json:"file,omitempty"`
	Line int32  `json:"line,omitempty"`
}

// Change is a measure in two sets of runs.
type Change struct {
	// Measure is the name of the measure, as the query measures has it.
	Measure string `json:"measure"`
	// Item is the part that it is of: a call, a size, a place in the source; empty for the whole run.
	Item string `json:"item,omitempty"`
	// Unit is 1 (a count), bytes, ns, or - for a fingerprint, which can only be compared for equality.
	Unit string `json:"unit"`
	// Exact is true if the value depends only on the program, not on the machine's speed.
	Exact bool `json:"exact"`
	// What is the outcome: same, more, fewer, differs, appeared, vanished, moved, varies, unclear or unknown.
	What string `json:"what"`
	// Base is the measure in the runs of the base.
	Base Side `json:"base"`
	// New is the measure in the other runs.
	New Side `json:"new"`
	// P is the p-value of the test of a time: the probability of such a difference by chance. 1 for exact measures.
	P float64 `json:"p"`
	// To is the new name of a call site that moved.
	To string `json:"to,omitempty"`
	// Notes are remarks about it.
	Notes []string `json:"notes,omitempty"`
}

// Key combines the measure and its part.
func (c *Change) Key() string { v := Value{Measure: c.Measure, Item: c.Item}; return v.Key() }

// Ratio is new over base, by their centers. known is false if the base is 0 or a side is missing.
func (c *Change) Ratio() (ratio float64, known bool) {
	if c.Base.N == 0 || c.New.N == 0 || c.Base.Center == 0 || c.Unit == Fingerprint {
		return 0, false
	}
	return c.New.Center / c.Base.Center, true
}

// DiffOptions control how times are compared. The zero value works.
type DiffOptions struct {
	// Alpha is the p-value below which a difference of times is significant; 0 means 0.05.
	Alpha float64
}

const (
	defaultAlpha = 0.05
	confidence   = 0.95
)

// Diff compares two sets of runs, each with one number of ranks, measure by measure in display order.
func Diff(base, new []Sample, o DiffOptions) []Change {
	if o.Alpha == 0 {
		o.Alpha = defaultAlpha
	}
	var all []Change
	for _, key := range keysOf(base, new) {
		all = append(all, diffOf(key, base, new, o))
	}
	moved(all)
	return all
}

// diffOf compares one measure.
func diffOf(key string, base, new []Sample, o DiffOptions) Change {
	b, bv := sideOf(key, base)
	n, nv := sideOf(key, new)
	first := slices.Concat(bv, nv)[0]
	c := Change{Measure: first.Measure, Item: first.Item, Unit: first.Unit, Exact: first.Exact, Base: b, New: n, P: 1}
	switch {
	case b.N < len(base) || n.N < len(new):
		c.What = Unknown
		c.Notes = append(c.Notes, lacking(b, n, len(base), len(new)))
	case c.Unit == Fingerprint && hashes(base, new) != "":
		c.What = Unknown
		c.Notes = append(c.Notes, "payload hashes are of different kinds: "+hashes(base, new))
	case onComputeClock(c.Measure) && clocks(base, new) != "":
		c.What = Unknown
		c.Notes = append(c.Notes, "compute clocks are different: "+clocks(base, new))
	case c.Exact:
		c.exact()
	default:
		c.timed(bv, nv, o)
	}
	return c
}

// hashes names the kinds of payload hashes if the runs have different ones; "" if not, or if they are not known.
func hashes(base, new []Sample) string {
	return differing(base, new, func(s *Sample) string { return s.Hash })
}

// clocks names the compute clocks if the runs have different ones; "" if not, or if they are not known.
func clocks(base, new []Sample) string {
	return differing(base, new, func(s *Sample) string { return s.ComputeClock })
}

// differing lists the values that the runs have, but "", if they are different; "" if not.
func differing(base, new []Sample, value func(*Sample) string) string {
	var kinds []string
	for _, s := range slices.Concat(base, new) {
		if kind := value(&s); kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) < 2 {
		return ""
	}
	return strings.Join(kinds, ", ")
}

// lacking describes which side lacks a measure.
func lacking(b, n Side, bases, news int) string {
	var sides []string
	if b.N < bases {
		sides = append(sides, fmt.Sprintf("%d of %d of base", bases-b.N, bases))
	}
	if n.N < news {
		sides = append(sides, fmt.Sprintf("%d of %d of new", news-n.N, news))
	}
	return "runs that do not hold it: " + strings.Join(sides, ", ")
}

// sideOf returns a measure of a set.
func sideOf(key string, set []Sample) (s Side, values []Value) {
	for i := range set {
		v, known := set[i].Find(key)
		if !known {
			continue
		}
		if s.N == 0 || v.Value < s.Low {
			s.Low = v.Value
		}
		if s.N == 0 || v.Value > s.High {
			s.High = v.Value
		}
		if s.File == "" {
			s.File, s.Line = v.File, v.Line
		}
		s.N++
		values = append(values, v)
	}
	s.Center = float64(s.Low)
	if s.Low != s.High {
		s.Center = benchmath.AssumeNothing.Summary(sampleOf(values, defaultAlpha), confidence).Center
	}
	return s, values
}

// exact compares counts.
func (c *Change) exact() {
	for _, s := range []struct {
		name string
		Side
	}{{"base", c.Base}, {"new", c.New}} {
		if s.Low != s.High {
			c.Notes = append(c.Notes, "differs between the runs of "+s.name)
		}
	}
	switch b, n := c.Base, c.New; {
	case b.Low == b.High && n == (Side{N: n.N, Low: b.Low, High: b.Low, Center: b.Center, File: n.File, Line: n.Line}):
		c.What = Same
	case c.Unit == Fingerprint && (b.Low != b.High || n.Low != n.High):
		c.What = Varies
	case c.Unit == Fingerprint:
		c.What = Differs
	case c.Item != "" && b.High == 0 && n.Low > 0:
		c.What = Appeared
	case c.Item != "" && n.High == 0 && b.Low > 0:
		c.What = Vanished
	case n.Low > b.High:
		c.What = More
	case n.High < b.Low:
		c.What = Fewer
	default:
		c.What = Varies
	}
}

func sampleOf(values []Value, alpha float64) *benchmath.Sample {
	all := make([]float64, len(values))
	for i := range values {
		all[i] = float64(values[i].Value)
	}
	return benchmath.NewSample(all, &benchmath.Thresholds{CompareAlpha: alpha})
}

// leastP returns the least p-value of the Mann-Whitney U-test for samples of these sizes: two (all values of one
// sample below or above the other) of all ways to divide the values.
func leastP(n, m int) float64 {
	ways := 1.0
	for i := 1; i <= n; i++ {
		ways = ways * float64(m+i) / float64(i) // a whole number at each step, so that p is as exact as it can be
	}
	return min(1, 2/ways)
}

// timed compares times, which may have any distribution, by medians and the Mann-Whitney U-test.
func (c *Change) timed(base, new []Value, o DiffOptions) {
	b, n := sampleOf(base, o.Alpha), sampleOf(new, o.Alpha)
	bs, ns := benchmath.AssumeNothing.Summary(b, confidence), benchmath.AssumeNothing.Summary(n, confidence)
	c.Base.Center, c.Base.Error = bs.Center, interval(bs)
	c.New.Center, c.New.Error = ns.Center, interval(ns)
	test := benchmath.AssumeNothing.Compare(b, n)
	c.P = test.P
	for _, w := range test.Warnings {
		c.Notes = append(c.Notes, w.Error())
	}
	switch {
	case leastP(len(base), len(new)) >= o.Alpha:
		c.What = Unclear
	case test.P >= o.Alpha || ns.Center == bs.Center:
		c.What = Same
	case ns.Center > bs.Center:
		c.What = More
	default:
		c.What = Fewer
	}
}

// interval formats a confidence interval relative to its median; empty if either end is unknown, or the median is 0 and
// the interval is not.
func interval(s benchmath.Summary) string {
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) || s.Center == 0 && s.Lo != s.Hi {
		return ""
	}
	if text := s.PctRangeString(); text != "?" {
		return text
	}
	return ""
}

// moved pairs call sites that vanished with new ones of the same call, number of calls and bytes. If several fit,
// none is chosen.
func moved(all []Change) {
	type work struct {
		call         string
		calls, bytes [2]int64
	}
	done := map[string]*work{} // by item
	what := map[string]string{}
	for i := range all {
		c := &all[i]
		if c.Item == "" || !strings.HasPrefix(c.Measure, "site") {
			continue
		}
		w := done[c.Item]
		if w == nil {
			call, _, _ := strings.Cut(c.Item, " in ")
			w = &work{call: call}
			done[c.Item] = w
		}
		side := c.Base
		if c.New.High > 0 {
			side = c.New
		}
		switch c.Measure {
		case "site_calls":
			w.calls, what[c.Item] = [2]int64{side.Low, side.High}, c.What
		case "site_bytes":
			w.bytes = [2]int64{side.Low, side.High}
		}
	}
	from, to := map[work][]string{}, map[work][]string{}
	for item, w := range done {
		switch what[item] {
		case Vanished:
			from[*w] = append(from[*w], item)
		case Appeared:
			to[*w] = append(to[*w], item)
		}
	}
	names := map[string]string{}
	for w, items := range from {
		if len(items) == 1 && len(to[w]) == 1 {
			names[items[0]], names[to[w][0]] = to[w][0], ""
		}
	}
	for i := range all {
		if to, is := names[all[i].Item]; is && strings.HasPrefix(all[i].Measure, "site") && all[i].Item != "" &&
			(all[i].What == Vanished || all[i].What == Appeared) {
			all[i].What, all[i].To = Moved, to
		}
	}
}
