package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/commq/commq/internal/nearest"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
)

// Outcomes of a rule.
const (
	Passed    = "passed"
	Failed    = "failed"
	Undecided = "undecided" // something that the verdict needs is missing, and nothing that is there breaks the rule
)

// Finding is one violation, or one thing that is missing.
type Finding struct {
	// Message says what was found, what the rule allows and where it comes from.
	Message string `json:"message"`
	// File and Line are its place in the source; empty and 0 if unknown.
	File string `json:"file,omitempty"`
	Line int32  `json:"line,omitempty"`
	// run is the run in Message, if it is about one.
	run string
}

// Result is the verdict on a rule.
type Result struct {
	// Rule is the rule's name.
	Rule string `json:"rule"`
	// Kind is the key that the rule has beside its name, for example no_more.
	Kind string `json:"kind"`
	// Status is passed, failed or undecided.
	Status string `json:"status"`
	// Findings list what is wrong or, for an undecided rule, what is missing.
	Findings []Finding `json:"findings"`
	// Notes list what is better than required, and what was checked.
	Notes []string `json:"notes"`
	// Line is the rule's line in its file.
	Line int `json:"line"`

	// wall means that the rule is about times in which ranks may wait for a core.
	wall bool
}

// Verdict is the answer of commq check.
type Verdict struct {
	// Rules is the file of rules; Runs are the checked runs.
	Rules string   `json:"rules"`
	Runs  []string `json:"runs"`
	// Results are the verdicts on the rules, in the order of their file.
	Results []Result `json:"results"`
}

// WallTimes reports whether a rule is about times that are longer where ranks share cores: all but those of the CPU
// clock.
func (v *Verdict) WallTimes() bool {
	return slices.ContainsFunc(v.Results, func(r Result) bool { return r.wall })
}

// Status combines the results of all rules: undecided if any is, else failed if any is.
func (v *Verdict) Status() string {
	status := Passed
	for i := range v.Results {
		switch v.Results[i].Status {
		case Undecided:
			return Undecided
		case Failed:
			status = Failed
		}
	}
	if len(v.Results) == 0 { // nothing was checked
		return Undecided
	}
	return status
}

// Growth is the growth of a measure with the number of ranks.
type Growth struct {
	// Series names the runs that were fitted together.
	Series string
	// Exponent is the exponent of the power law, with its 95 % confidence interval from Low to High; these are NaN
	// for two points.
	Exponent, Low, High float64
	// Ranks and Values are the points, sorted by ranks.
	Ranks  []int32
	Values []float64
}

// fittedRanks counts the numbers of ranks that a power law can be fitted to: those with a value above 0.
func (g *Growth) fittedRanks() int {
	fitted := map[int32]bool{}
	for i, ranks := range g.Ranks {
		if g.Values[i] > 0 {
			fitted[ranks] = true
		}
	}
	return len(fitted)
}

// Manual is a collective that a run does by hand.
type Manual struct {
	// Operation is the collective that would replace it: MPI_Bcast.
	Operation string
	// Text says over which ranks, how often and how much.
	Text string
	File string
	Line int32
}

// Evidence is the data that rules are applied to. Its functions are called when a rule needs them; their errors leave
// the rule undecided.
type Evidence struct {
	// New are the runs to check, and Kept describes the rows that each of them keeps. Base are the runs to compare
	// times with, if any.
	New  []Sample
	Kept []string
	Base []Sample
	// Lacks returns a sentence about calls that a run lacks and that a measure counts, or that fit it if it is a
	// pattern; "" if there are none. nil means that no run lacks any.
	Lacks func(run, measure string) string
	// Baseline has the measures of earlier runs; nil if there is none.
	Baseline *Baseline
	// Grow returns how a measure grows over the runs with these numbers of ranks; no numbers means all runs.
	Grow func(measure string, ranks []int32) ([]Growth, error)
	// Operations are the names of all collectives that a rule may name. ByHand returns those that a run does by hand;
	// with an error the list is incomplete.
	Operations []string
	ByHand     func(run string) ([]Manual, error)
	// CauseRules are the names of all rules of commq diagnose. Causes returns the findings of a run.
	CauseRules []string
	Causes     func(run string) (Causes, error)
	// Rows returns the first rows of an SQL query on a run, in words, and the number of all rows.
	Rows func(run, sql string) (first []string, count int64, err error)
	// Fit finds the laws of the baseline's values over the number of ranks.
	Fit Fit
}

// Check applies each rule. A rule that could not examine all of its data never passes.
func Check(rules *Rules, e *Evidence) []Result {
	var results []Result
	for i := range rules.Rules {
		r := &rules.Rules[i]
		j := &judge{Rule: r, e: e, result: Result{Rule: r.Name, Kind: r.Kind, Line: r.Line, Findings: []Finding{},
			Notes: []string{}}}
		j.judge()
		j.result.Findings = grouped(j.result.Findings)
		for _, f := range grouped(j.better) {
			j.note("%s", f.Message)
		}
		results = append(results, j.result)
	}
	return results
}

// judge applies one rule to the evidence.
type judge struct {
	*Rule
	e      *Evidence
	result Result
	better []Finding // notes about single runs
}

func (j *judge) judge() {
	j.result.Status = Passed
	runs := j.runs()
	switch {
	case len(runs) == 0 && len(j.Ranks) > 0:
		j.missing("no run of %s ranks is checked; give one with --run", list(j.Ranks))
		return
	case len(runs) == 0:
		j.missing("no run is checked; give one with --run")
		return
	}
	for _, ranks := range j.Ranks {
		if !slices.ContainsFunc(runs, func(i int) bool { return j.e.New[i].Ranks == ranks }) {
			j.missing("no run of %s is checked; give one with --run", plural(int64(ranks), "rank"))
		}
	}
	if j.lacking(runs) {
		return
	}
	switch j.Kind {
	case NoMore, SameAs:
		j.counts(runs)
	case Bound:
		j.bound(runs)
	case Time:
		j.result.wall = slices.ContainsFunc(j.Measures,
			func(key string) bool { return !strings.HasPrefix(key, "compute_ns") })
		j.time(runs)
	case Scaling:
		j.scaling()
	case NoManual:
		j.noManual(runs)
	case NoRows:
		j.noRows(runs)
	case Equations:
		j.equations(runs)
	case NoFinding:
		j.noFinding(runs)
	}
}

// lacking reports whether runs lack calls that the measures of the rule count, with findings if they do.
func (j *judge) lacking(runs []int) (some bool) {
	if j.e.Lacks == nil || slices.Contains([]string{NoManual, NoRows, NoFinding}, j.Kind) { // measures of no kind
		return false
	}
	for _, i := range runs {
		for _, measure := range j.Measures {
			if text := j.e.Lacks(j.e.New[i].Run, measure); text != "" {
				j.missing("%s", text)
				some = true
			}
		}
	}
	return some
}

// runs returns the indexes of the runs that the rule applies to.
func (j *judge) runs() (at []int) {
	for i := range j.e.New {
		if j.isFor(j.e.New[i].Ranks) {
			at = append(at, i)
		}
	}
	return at
}

// missing adds what is missing. A rule that is broken stays so: no other run or measure can mend that.
func (j *judge) missing(format string, args ...any) {
	if j.result.Status != Failed {
		j.result.Status = Undecided
	}
	j.result.Findings = append(j.result.Findings, Finding{Message: fmt.Sprintf(format, args...)})
}

func (j *judge) broken(f Finding) {
	j.result.Status = Failed
	j.result.Findings = append(j.result.Findings, f)
}

func (j *judge) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(j.result.Notes, text) {
		j.result.Notes = append(j.result.Notes, text)
	}
}

func list(ranks []int32) string {
	var words []string
	for _, n := range ranks {
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, ", ")
}

// section returns the baseline's section for a run; nil, with a finding, if there is none to compare with.
func (j *judge) section(i int) *Section {
	s := &j.e.New[i]
	if j.e.Baseline == nil {
		j.missing("no baseline; name one in the rules (baseline: FILE), and write it with commq check " +
			"--write-baseline")
		return nil
	}
	section := j.e.Baseline.Sections[s.Ranks]
	switch {
	case section == nil:
		j.missing("run %s has %s, and the baseline none of so many; write it with commq check "+
			"--write-baseline", s.Run,
			plural(int64(s.Ranks), "rank"))
	case j.keepsAs(i, section):
		return section
	}
	return nil
}

// keepsAs reports whether a run keeps the rows that the runs of a section keep, with a finding if it does not.
func (j *judge) keepsAs(i int, section *Section) bool {
	if section.Kept != j.e.Kept[i] {
		j.missing("run %s keeps other rows (%s) than the runs of the baseline (%s); capture it as those",
			j.e.New[i].Run, j.e.Kept[i], section.Kept)
	}
	return section.Kept == j.e.Kept[i]
}

// counts compares exact measures with the baseline.
func (j *judge) counts(runs []int) {
	if j.e.Baseline != nil { // the baseline has runs that were not checked: a job that did not run
		for _, ranks := range slices.Sorted(maps.Keys(j.e.Baseline.Sections)) {
			if j.isFor(ranks) && !slices.ContainsFunc(runs, func(i int) bool { return j.e.New[i].Ranks == ranks }) {
				j.missing("the baseline has runs of %s, and none is checked; give one with --run, or name ranks in "+
					"the rule", plural(int64(ranks), "rank"))
			}
		}
	}
	for _, i := range runs {
		section := j.section(i)
		if section == nil {
			continue
		}
		changes := Diff(section.samples(j.e.New[i].Ranks), j.e.New[i:i+1], DiffOptions{})
		j.patterns(i, changes)
		for k := range changes {
			if c := &changes[k]; c.Exact && j.matches(c.Key()) {
				j.change(&j.e.New[i], c, changes)
			}
		}
		for _, key := range section.LeftOut { // parts that the run lacks: 0, which is not known to be the base's
			if j.matches(key) && !slices.ContainsFunc(changes, func(c Change) bool { return c.Key() == key }) {
				j.missing("%s of run %s cannot be compared: %s", key, j.e.New[i].Run, baselineLacks)
			}
		}
	}
}

// baselineLacks says why the baseline has no value of a measure.
const baselineLacks = "the baseline lacks it; commq check --write-baseline leaves out, and names, what differs between " +
	"its runs"

// patterns reports names in the rule that match no measure of the run or the baseline.
func (j *judge) patterns(i int, changes []Change) {
	for _, pattern := range j.Measures {
		known := slices.ContainsFunc(changes, func(c Change) bool { return c.Exact && matched(pattern, c.Key()) })
		if whole, _, part := strings.Cut(pattern, "/"); !known && part { // a call that neither makes
			known = slices.ContainsFunc(changes,
				func(c Change) bool { return c.Measure == whole && c.Item == "" && c.What != Unknown })
		}
		run := j.e.New[i].Run
		if slices.ContainsFunc(changes, func(c Change) bool { return !c.Exact && matched(pattern, c.Key()) }) && !known {
			j.missing("%s of run %s is a time, which differs from run to run; check it with %s", pattern, run, Time)
			continue
		}
		if !known {
			var names []string
			for k := range changes {
				if changes[k].Exact {
					names = append(names, changes[k].Key())
				}
			}
			j.missing("run %s and its baseline have no exact measure %q%s", run, pattern,
				nearest.HintOr(pattern, names, fmt.Sprintf("commq query measures --run %s lists them", run)))
		}
	}
}

// change judges one exact measure.
func (j *judge) change(s *Sample, c *Change, all []Change) {
	was, is := number(c.Base.Low, c.Unit), number(c.New.Low, c.Unit)
	switch {
	case c.What == Same, c.What == Moved:
	case c.What == Unknown:
		j.missing("%s of run %s cannot be compared: %s", c.Key(), s.Run, c.whyUnknown())
	case j.Kind == NoMore && c.Unit == Fingerprint:
		j.missing("%s is a fingerprint, of which nothing is more; check it with %s", c.Key(), SameAs)
	case j.Kind == NoMore && c.New.Low < c.Base.Low:
		j.better = append(j.better, Finding{run: s.Run, Message: fmt.Sprintf("%s of run %s is %s, the baseline has "+
			"%s: better; commq check --write-baseline keeps it", c.Key(), s.Run, is, was)})
	default:
		percent := ""
		if ratio, known := c.Ratio(); known {
			percent = " (" + percentText(ratio-1) + ")"
		}
		f := Finding{Message: fmt.Sprintf("%s of run %s is %s, the baseline has %s%s", c.Key(), s.Run, is, was,
			percent), File: c.New.File, Line: c.New.Line, run: s.Run}
		if c.Item == "" || f.File == "" {
			j.blame(&f, c, all)
		}
		j.broken(f)
	}
}

// whyUnknown says why a measure cannot be compared with the baseline.
func (c *Change) whyUnknown() string {
	switch {
	case c.Base.N > 0 && c.New.N > 0:
		return c.Notes[0]
	case c.New.N > 0:
		return baselineLacks
	}
	return "the run does not hold it"
}

// mostBlamed is the largest number of places that a finding names.
const mostBlamed = 3

// blame names the places in the source that caused an increase: those that call more, or send more.
func (j *judge) blame(f *Finding, c *Change, all []Change) {
	places := "site_calls"
	if strings.Contains(c.Measure, "bytes") {
		places = "site_bytes"
	}
	call := ""
	if c.Measure == "calls" || strings.HasPrefix(c.Measure, "collective") {
		call = c.Item
	}
	var grown []*Change
	for i := range all {
		p := &all[i]
		fits := p.Measure == places && p.Item != "" && p.What != Moved && p.What != Unknown && p.New.Low != p.Base.Low &&
			(call == "" || strings.HasPrefix(p.Item, call+" in "))
		if fits && counts(c.Measure, p.Item) {
			grown = append(grown, p)
		}
	}
	slices.SortStableFunc(grown,
		func(a, b *Change) int { return int(sign(b.New.Low - b.Base.Low - (a.New.Low - a.Base.Low))) })
	for i, p := range grown {
		if i == mostBlamed || i > 0 && p.New.Low < p.Base.Low {
			break
		}
		what := "call"
		if places == "site_bytes" {
			what = "byte"
		}
		where := p.Item
		if p.New.Line > 0 {
			where += fmt.Sprintf(", line %d", p.New.Line)
		}
		f.Message += fmt.Sprintf("; %s: %s, before %s", where, units.Count(p.New.Low, what), number(p.Base.Low, "1"))
		if f.File == "" {
			f.File, f.Line = p.New.File, p.New.Line
		}
	}
}

func sign(n int64) int64 {
	switch {
	case n > 0:
		return 1
	case n < 0:
		return -1
	}
	return 0
}

// counts reports whether an exact measure counts the calls of a place, for example "MPI_Isend in f (f.c)". What
// MPI_Start and MPI_Startall start is not known here: they count in all.
func counts(measure, place string) bool {
	name, _, _ := strings.Cut(place, " in ")
	call, known := schema.CallByName(name)
	switch {
	case call.Is(schema.FactStarts), strings.HasPrefix(measure, "calls"), strings.HasPrefix(measure, "site"):
		return true
	case strings.HasPrefix(measure, "collective"):
		return known && schema.Calls[call].Class == schema.ClassCollective
	case measure == "unmatched_receives":
		return call.Is(schema.FactPointToPoint | schema.FactReceives)
	}
	return call.Is(schema.FactPointToPoint | schema.FactSends)
}

// grouped joins findings that differ only in the run: "messages of 5 runs (a b c ... e) is 120".
func grouped(all []Finding) []Finding {
	joined := []Finding{}
	runs := map[Finding][]string{} // by the finding without its run
	without := func(f Finding) Finding {
		f.Message, f.run = strings.Replace(f.Message, " of run "+f.run+" is ", " of run \x00 is ", 1), ""
		return f
	}
	for _, f := range all {
		key := without(f)
		if f.run == "" || runs[key] == nil {
			joined = append(joined, f)
		}
		if f.run != "" {
			runs[key] = append(runs[key], f.run)
		}
	}
	for i := range joined {
		f := &joined[i]
		if names := runs[without(*f)]; f.run != "" && len(names) > 1 {
			if len(names) > fewNames {
				names = slices.Concat(names[:fewNames-1], []string{"...", names[len(names)-1]})
			}
			of := fmt.Sprintf(" of %d runs (%s) is ", len(runs[without(*f)]), strings.Join(names, " "))
			f.Message = strings.Replace(f.Message, " of run "+f.run+" is ", of, 1)
		}
	}
	return joined
}

// bound checks a measure against bounds.
func (j *judge) bound(runs []int) {
	for _, i := range runs {
		s := &j.e.New[i]
		v, known := s.Find(j.Measures[0])
		switch {
		case !known:
			j.missing("run %s has no measure %q; commq query measures --run %s lists them", s.Run, j.Measures[0], s.Run)
		case v.Value == 0 && strings.ContainsAny(v.Item, wildcards) && !s.has(v.Key()): // names of C++ can have a *
			j.missing("run %s has no %q: a bound is of one measure or part, not of all that fit a pattern", s.Run, v.Key())
		case v.Unit == Fingerprint:
			j.missing("%s is a fingerprint, which has no bounds; check it with %s", v.Key(), SameAs)
		case j.AtMost != nil && v.Value > *j.AtMost:
			j.broken(Finding{Message: fmt.Sprintf("%s of run %s is %s, at most %s is allowed", v.Key(), s.Run,
				number(v.Value, v.Unit), number(*j.AtMost, v.Unit)), File: v.File, Line: v.Line, run: s.Run})
		case j.AtLeast != nil && v.Value < *j.AtLeast:
			j.broken(Finding{Message: fmt.Sprintf("%s of run %s is %s, at least %s is wanted", v.Key(), s.Run,
				number(v.Value, v.Unit), number(*j.AtLeast, v.Unit)), File: v.File, Line: v.Line, run: s.Run})
		}
	}
}

// time tests whether a time is longer than allowed: than every time of the base, each increased by the percentage.
func (j *judge) time(runs []int) {
	by := map[int32][]Sample{}
	var order []int32
	for _, i := range runs {
		ranks := j.e.New[i].Ranks
		if by[ranks] == nil {
			order = append(order, ranks)
		}
		by[ranks] = append(by[ranks], j.e.New[i])
	}
	key := j.Measures[0]
	for _, ranks := range order {
		var base []Sample
		for _, s := range j.e.Base {
			if s.Ranks == ranks {
				base = append(base, s)
			}
		}
		if len(base) == 0 && j.e.Baseline != nil && j.e.Baseline.Sections[ranks] != nil {
			base = j.e.Baseline.Sections[ranks].times(ranks, key)
		}
		j.compareTimes(key, ranks, base, by[ranks])
	}
}

func (j *judge) compareTimes(key string, ranks int32, base, new []Sample) {
	b, bv := sideOf(key, base)
	n, nv := sideOf(key, new)
	switch {
	case n.N < len(new) || n.N > 0 && nv[0].Exact:
		j.missing("%s is no time of all runs of %s; commq query measures lists those of a run", key,
			plural(int64(ranks), "rank"))
		return
	case b.N < len(base):
		j.missing("%s is no time of all runs of the base", key)
		return
	case onComputeClock(key) && clocks(base, new) != "":
		j.missing("%s of %s cannot be compared: compute clocks are different: %s; capture base and new with one --clock",
			key, plural(int64(ranks), "rank"), clocks(base, new))
		return
	case b.N < j.Runs || n.N < j.Runs:
		j.missing("not enough data: %s of %s was measured in %s of the base and %d of the new ones, and the rule "+
			"wants %d of each; capture more, base and new in turn",
			key, plural(int64(ranks), "rank"), plural(int64(b.N), "run"), n.N, j.Runs)
		return
	}
	if b.High == 0 && n.High == 0 {
		j.missing("%s of %s is 0 in all runs of the base and all new ones: no call of theirs counts in it, and there "+
			"is nothing to compare; name a time that they have (commq query measures)", key,
			plural(int64(ranks), "rank"))
		return
	}
	allowed := slices.Clone(bv)
	for i := range allowed {
		allowed[i].Value = int64(math.Ceil(float64(allowed[i].Value) * (1 + j.Percent/100)))
	}
	plain := Change{Base: b, New: n}
	plain.timed(bv, nv, DiffOptions{Alpha: j.Alpha})
	c := Change{Base: b, New: n}
	c.timed(allowed, nv, DiffOptions{Alpha: j.Alpha})
	text := fmt.Sprintf("%s with %s: %s, the base %s", key, plural(int64(ranks), "rank"), timeText(plain.New),
		timeText(plain.Base))
	if ratio, known := plain.Ratio(); known {
		text += ": " + percentText(ratio-1)
	}
	switch {
	case c.What == Unclear:
		j.missing("not enough data: %d and %d runs cannot have a p-value below %v", b.N, n.N, j.Alpha)
	case c.What == More:
		j.broken(Finding{Message: fmt.Sprintf("%s; more than the %v %% that are allowed (p=%.4f n=%s)", text,
			j.Percent, c.P, sizes(&c))})
	case plain.New.Center > plain.Base.Center*(1+j.Percent/100):
		j.note("%s; more than the %v %% that are allowed, but that can be chance (p=%.4f, not below alpha %v; n=%s)",
			text, j.Percent, c.P, j.Alpha, sizes(&c))
	default:
		j.note("%s; at most %v %% more are allowed (n=%s)", text, j.Percent, sizes(&c))
	}
}

// scaling checks how a measure grows.
func (j *judge) scaling() {
	all, err := j.e.Grow(j.Measures[0], j.Ranks)
	if err != nil {
		j.missing("%v", err)
		return
	}
	if len(all) == 0 {
		j.missing("no runs to see how %s grows", j.Measures[0])
	}
	for _, g := range all {
		if n := g.fittedRanks(); n < j.Points {
			j.missing("not enough data: %s of %s is known and above 0 for %s, and the rule wants %d; capture runs of more",
				j.Measures[0], g.Series, plural(int64(n), "number")+" of ranks", j.Points)
			continue
		}
		var points []string
		for i := range g.Ranks {
			if text := fmt.Sprintf("%.6g with %d", g.Values[i], g.Ranks[i]); !slices.Contains(points, text) {
				points = append(points, text)
			}
		}
		text := fmt.Sprintf("%s of %s grows as ranks^%.3g (%s ranks)", j.Measures[0], g.Series,
			math.Round(g.Exponent*1e6)/1e6+0, strings.Join(points, ", "))
		switch {
		case math.IsNaN(g.Exponent):
			j.missing("no power law fits %s of %s: %s ranks", j.Measures[0], g.Series, strings.Join(points, ", "))
		case j.ExponentAtMost != nil && g.Exponent > *j.ExponentAtMost+exponentError:
			j.broken(Finding{Message: fmt.Sprintf("%s; an exponent of at most %v is allowed", text, *j.ExponentAtMost)})
		case j.ExponentAtLeast != nil && g.Exponent < *j.ExponentAtLeast-exponentError:
			j.broken(Finding{Message: fmt.Sprintf("%s; an exponent of at least %v is wanted", text,
				*j.ExponentAtLeast)})
		default:
			j.note("%s", text)
		}
	}
}

// exponentError is the rounding error allowed for an exponent.
const exponentError = 1e-9

// noManual checks for collectives written by hand.
func (j *judge) noManual(runs []int) {
	for _, name := range j.Measures {
		if strings.HasPrefix(name, "MPI_Neighbor_") {
			j.missing("%s: exchanges between neighbours do not count as collectives by hand; commq detect lists them", name)
			continue
		}
		if name != "all" && !slices.ContainsFunc(j.e.Operations, func(o string) bool { return matched(name, o) }) {
			j.missing("unknown collective %q%s", name, nearest.HintOr(name, j.e.Operations,
				"there are all, "+strings.Join(j.e.Operations, ", ")))
		}
	}
	for _, i := range runs {
		s := &j.e.New[i]
		found, err := j.e.ByHand(s.Run)
		some := false
		for _, m := range found {
			if slices.Contains(j.Measures, "all") || j.matches(m.Operation) {
				some = true
				j.broken(Finding{Message: fmt.Sprintf("run %s does %s by hand: %s", s.Run, m.Operation, m.Text),
					File: m.File, Line: m.Line})
			}
		}
		if err != nil && !some {
			j.missing("%v", err)
		}
	}
}

// noRows checks that an SQL query returns nothing.
func (j *judge) noRows(runs []int) {
	for _, i := range runs {
		first, count, err := j.e.Rows(j.e.New[i].Run, j.SQL)
		if err != nil {
			j.missing("run %s: %v", j.e.New[i].Run, err)
			continue
		}
		if count > 0 {
			more := ""
			if n := count - int64(len(first)); n > 0 {
				more = fmt.Sprintf("; and %d more", n)
			}
			j.broken(Finding{Message: fmt.Sprintf("run %s gives %s: %s%s", j.e.New[i].Run, plural(count, "row"),
				strings.Join(first, "; "), more)})
		}
	}
}
