package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/schema"
)

// Evidence is one row of the answer of a rule from a file, with what the file says of all its rows, or one finding of
// package detect (HandWritten).
type Evidence struct {
	// Rule is the file's name.
	Rule Rule
	// Advice says what to do.
	Advice string
	// Way is how the gain is found.
	Way Way
	// Callsite is the call site; schema.NullInt32 if there is no single one.
	Callsite int32
	// Place is the place of the call site if Callsite is not known.
	Place string
	// Call is the MPI function there.
	Call string
	// Ranks are the ranks that cause it; nil means all.
	Ranks []int32
	// CostNs is an upper bound of the time, in ns of the run's own times, that the run loses by it.
	CostNs int64
	// Found says what is wrong, as a title.
	Found string
	// Latency and Bytes are the factors, from 0 to 1, by which the latency and the bytes of the messages and
	// collectives of these ranks at the call site count without the fault.
	Latency, Bytes float64
	// Values are the numbers and texts that the rule gives as evidence.
	Values []Value
}

// Way is how the gain of a finding from a file is found.
type Way string

// The ways.
const (
	// WayBound: the cost is a bound of the gain.
	WayBound Way = "bound"
	// WayMessages: a simulation in which messages and collectives keep the factors Latency and Bytes.
	WayMessages Way = "messages"
	// WayGain: the cost is a gain that was simulated on the machine of the diagnosis.
	WayGain Way = "gain"
	// WayStandard: a simulation in which synchronous sends are standard ones.
	WayStandard Way = "standard"
)

// Value is a number or text that a rule from a file gives as evidence.
type Value struct {
	// Name is its name.
	Name string `json:"name"`
	// Value is a number, a text, true or false; null is not known.
	Value any `json:"value"`
	// Unit is its unit: ns, bytes, bytes/s, elements, 1 (how many), share (a part of 1) or empty (a name).
	Unit string `json:"unit"`
}

// text writes a value for people.
func (v *Value) text() string {
	number, known := 0.0, true
	switch x := v.Value.(type) {
	case nil:
		return "not known"
	case int64:
		number = float64(x)
	case float64:
		number = x
	default:
		known = false
	}
	switch {
	case !known || v.Unit == "":
		return fmt.Sprint(v.Value)
	case v.Unit == "ns":
		return units.WithUnit(number, units.Times)
	case v.Unit == "bytes":
		return units.WithUnit(number, units.Sizes)
	case v.Unit == "bytes/s":
		return units.Rate(number)
	case v.Unit == "share":
		return units.Percent(number)
	}
	if n, whole := v.Value.(int64); whole {
		return units.Comma(n)
	}
	return units.Number(number)
}

// NotLookedFor is a rule that was not looked for in the run.
type NotLookedFor struct {
	// Rule is its name.
	Rule Rule `json:"rule"`
	// Why is the reason: what the run lacks, how large it is, or a mistake in the file.
	Why string `json:"why"`
}

// At most mostOfFile findings of one file are kept, and at most mostSimulatedOfFile of them simulated: those with the
// largest cost.
const (
	mostOfFile          = 10
	mostSimulatedOfFile = 3
)

// bounds returns a function that sets the gain of a finding from a file to its bound: its cost, at most the time of the
// run. With simulated times the cost, which is of the run's own times, is also limited to the time of the place on the
// critical path.
func (q *search) bounds(path *critical.Path, simulated bool, place func(int32) string) func(e *Evidence, f *Finding) {
	onPath := map[string]int64{}
	for _, g := range path.GroupBy([]critical.Key{critical.ByCallsite}, place) {
		onPath[g.Callsite] = g.TotalNs() - g.Ns[critical.Compute]
	}
	return func(e *Evidence, f *Finding) {
		f.GainNs, f.Bound = min(e.CostNs, q.d.TimeNs), e.Way != WayGain
		if simulated && f.Place != "" && f.Bound {
			f.GainNs = min(f.GainNs, onPath[f.Place])
		}
	}
}

// byLine groups the evidence of a rule at one line, whose call sites differ only in the call path, and sets the places.
func byLine(all []Evidence, place func(int32) string) (groups [][]Evidence) {
	type line struct {
		rule        Rule
		place, call string
	}
	at := map[line]int{}
	for _, e := range all {
		if e.Callsite == schema.NullInt32 || place(e.Callsite) == "" {
			groups = append(groups, []Evidence{e})
			continue
		}
		e.Place = place(e.Callsite)
		k := line{e.Rule, e.Place, e.Call}
		i, found := at[k]
		if !found {
			at[k] = len(groups)
			groups = append(groups, []Evidence{e})
			continue
		}
		groups[i] = append(groups[i], e)
	}
	return groups
}

// together makes one finding of the evidence at one line: the text and values of the costliest call path, and the costs
// and ranks of all.
func together(group []Evidence) (e Evidence, f Finding) {
	e = group[0]
	f = newFinding(e.Rule, e.Found)
	if e.Callsite != schema.NullInt32 {
		f.bySite = map[int32]int64{}
		for _, one := range group {
			f.bySite[one.Callsite] += one.CostNs
		}
	}
	for _, other := range group[1:] {
		e.CostNs += other.CostNs
		if e.Ranks != nil && other.Ranks != nil {
			e.Ranks = slices.Concat(e.Ranks, other.Ranks)
		} else {
			e.Ranks = nil
		}
	}
	if n := len(group) - 1; n > 0 {
		f.Title += fmt.Sprintf("; so it is on %s to this line", units.Count(int64(n), "other way"))
	}
	f.Advice, f.Place, f.Call, f.Evidence = cmp.Or(e.Advice, f.Advice), e.Place, e.Call, e.Values
	f.Ranks = append(f.Ranks, e.Ranks...)
	slices.Sort(f.Ranks)
	f.Ranks = slices.Compact(f.Ranks)
	return e, f
}

// fromFiles adds the findings of rules from files.
func (q *search) fromFiles(ctx context.Context, groups [][]Evidence, bound func(*Evidence, *Finding)) error {
	number := map[Rule]int{}
	for _, group := range groups {
		e, f := together(group)
		if number[e.Rule]++; number[e.Rule] > mostOfFile {
			continue
		}
		bound(&e, &f)
		if keep := keepOf(group, q.w.idealNetwork()); keep != nil && !q.w.bounds &&
			number[e.Rule] <= mostSimulatedOfFile {
			f.without = func() *change { return &change{keep: keep} }
			gain, err := q.w.gain(ctx, "without "+string(e.Rule), f.without())
			if err != nil {
				return err
			}
			f.GainNs, f.Bound = min(max(gain, 0), q.d.TimeNs), false
		}
		q.d.Findings = append(q.d.Findings, f)
	}
	return nil
}

// keepOf returns the part of their cost that the operations of a group keep; nil if the gain is a bound.
func keepOf(group []Evidence, idealNetwork bool) (keep simulate.Keep) {
	for i := range group {
		keep = leastKept(keep, group[i].keep(idealNetwork))
	}
	return keep
}

// keep returns the part of their cost that the operations of these ranks at the call site keep; nil if the gain is a
// bound. On an ideal network messages cost nothing, so factors would gain nothing.
func (e *Evidence) keep(idealNetwork bool) simulate.Keep {
	kept := simulate.Kept{Latency: e.Latency, Bytes: e.Bytes}
	switch {
	case e.Way == WayStandard:
		kept = simulate.Kept{Latency: 1, Bytes: 1, Standard: true}
	case e.Way != WayMessages || idealNetwork:
		return nil
	}
	call, _ := schema.CallByName(e.Call)
	return func(rank int32, _ int64, site int32, of schema.CallID) simulate.Kept {
		if site != e.Callsite || site == schema.NullInt32 && of != call || e.Ranks != nil && !slices.Contains(e.Ranks,
			rank) {
			return simulate.KeptAll
		}
		return kept
	}
}

// evidenceText lists the evidence of a finding for people.
func (f *Finding) evidenceText(s *strings.Builder) {
	if len(f.Evidence) == 0 {
		return
	}
	fmt.Fprintf(s, "\nevidence:\n")
	for i := range f.Evidence {
		v := &f.Evidence[i]
		fmt.Fprintf(s, "  %s: %s\n", strings.ReplaceAll(v.Name, "_", " "), v.text())
	}
}

// leftOut writes the last paragraph: how many findings are not shown, and how many rules were not looked for. left says
// how to see them. If it is empty, these rules and the time left out are listed.
func (d *Diagnosis) leftOut(rest int, left string) string {
	var parts []string
	if left == "" {
		if d.StartupNs > 0 {
			parts = append(parts, fmt.Sprintf("\nleft out: MPI_Init and MPI_Finalize, %s", units.Duration(d.StartupNs)))
		}
		for _, n := range d.NotLookedFor {
			parts = append(parts, fmt.Sprintf("\nnot looked for: %s: %s", n.Rule, n.Why))
		}
		return strings.Join(append(parts, ""), "\n")
	}
	if rest > 0 {
		parts = append(parts, units.Count(int64(rest), "smaller finding"))
	}
	if n := len(d.NotLookedFor); n > 0 {
		parts = append(parts, units.Count(int64(n), "rule")+" not looked for")
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("\n%s: %s\n", strings.Join(parts, ", "), left)
}

// boundOf returns, in words, what bounds the gain of a finding.
func (f *Finding) boundOf() string {
	if f.excess {
		return "what these ranks compute more than they had to, all together"
	}
	if slices.Contains(Rules, f.Rule) {
		return "the time of these calls on the critical path"
	}
	return "the time that they cost by this rule"
}
