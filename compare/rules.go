package compare

import (
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/commq/commq/internal/keyed"
)

// Rules are the rules in a file that commq check applies.
type Rules struct {
	// Baseline is the path of the baseline, relative to the file; empty if there is none.
	Baseline string
	// Rules are in the order of the file.
	Rules []Rule
}

// Kinds of rules: the key that a rule has beside its name.
const (
	NoMore    = "no_more"    // measures are at most those of the baseline
	SameAs    = "same"       // measures equal those of the baseline
	Bound     = "bound"      // a measure is within bounds
	Time      = "time"       // a time is not longer than in the base
	Scaling   = "scaling"    // a measure grows no faster than a power of the number of ranks
	NoManual  = "no_manual"  // no collective is written by hand
	NoRows    = "no_rows"    // an SQL query returns no rows
	Equations = "equations"  // measures follow the baseline's equations
	NoFinding = "no_finding" // no finding of commq diagnose costs more than a part of the time
)

// kinds lists the kinds of rules.
var kinds = []string{NoMore, SameAs, Bound, Time, Scaling, NoManual, NoRows, Equations, NoFinding}

// owned has the keys that belong to one kind of rule.
var owned = map[string][]string{Bound: {"at_most", "at_least"}, Time: {"at_most_percent_more", "alpha", "runs"},
	Scaling: {"exponent_at_most", "exponent_at_least", "points"}, NoFinding: {"above_percent"}}

// Rule is one rule.
type Rule struct {
	// Name is the rule's name, Line its line in the file, Kind one of the kinds above.
	Name string
	Line int
	Kind string
	// Measures are keys of measures, patterns of keys as in path.Match (but * also matches slashes), names of
	// collectives, or of findings.
	Measures []string
	// SQL is the query of NoRows.
	SQL string
	// Ranks are the numbers of ranks that the rule applies to; empty means all.
	Ranks []int32
	// AtMost and AtLeast are bounds of a measure; nil means no bound.
	AtMost, AtLeast *int64
	// Percent is the allowed increase of a time. Alpha is the p-value and Runs the least number of runs per side that
	// a verdict needs.
	Percent float64
	Alpha   float64
	Runs    int
	// ExponentAtMost and ExponentAtLeast bound the exponent of the power law. Points is the least number of different
	// rank counts.
	ExponentAtMost, ExponentAtLeast *float64
	Points                          int
	// AbovePercent is the part of the time that a finding may cost.
	AbovePercent float64
}

// Defaults for times and scaling. A p-value below 0.01 needs at least five runs per side.
const (
	ruleAlpha  = 0.01
	ruleRuns   = 5
	rulePoints = 3

	ruleAbovePercent = 1 // as commq diagnose --least
)

// ReadRules reads rules. name, a path, is for messages. Errors name the line, the key, what was found and what is
// wanted.
func ReadRules(name string, r io.Reader) (*Rules, error) {
	rules := &Rules{}
	err := readYAML("rules", name, r, func(root *yaml.Node) error {
		return keyed.Mapping(root, "", rules.keys())
	})
	if err != nil {
		return nil, err
	}
	return rules, nil
}

// keys returns the keys of the file.
func (rs *Rules) keys() []keyed.Key {
	var version int
	return []keyed.Key{
		{Name: "commq_check", Required: true, Set: keyed.Integer(&version, 1, 1), Doc: keyed.Doc{
			Means: "The version of this form.", Example: "1"}},
		{Name: "baseline", Set: keyed.Text(&rs.Baseline), Doc: keyed.Doc{
			Means:   "The file of the baseline, relative to this file and in its folder or the working folder, or below. `--baseline` names any other.",
			Default: "none; `no_more`, `same` and `equations` need one", Example: "commq-baseline.yaml"}},
		{Name: "rules", Required: true, Set: keyed.List("rules", rs.read), Doc: keyed.Doc{
			Means: "The rules.", Example: "[{name: no more messages, no_more: [messages]}]"}},
	}
}

// read reads one rule.
func (rs *Rules) read(v *yaml.Node, at string) error {
	r := Rule{Line: v.Line, Alpha: ruleAlpha, Runs: ruleRuns, Points: rulePoints, Percent: math.NaN(),
		AbovePercent: ruleAbovePercent}
	if err := keyed.Mapping(v, at, r.keys()); err != nil {
		return err
	}
	if err := r.consistent(v, at); err != nil {
		return err
	}
	for i := range rs.Rules {
		if rs.Rules[i].Name == r.Name {
			return keyed.ErrorAt(v, fmt.Sprintf("%s: the rule of line %d is called %q too; give each its own name", at,
				rs.Rules[i].Line, r.Name))
		}
	}
	rs.Rules = append(rs.Rules, r)
	return nil
}

// keys returns the keys of a rule.
func (r *Rule) keys() []keyed.Key {
	var listed []string
	kind := func(name string, set func(*yaml.Node, string) error, example, means string) keyed.Key {
		return keyed.Key{Name: name, Doc: keyed.Doc{Means: means, Example: example},
			Set: func(v *yaml.Node, at string) error {
				if r.Kind != "" {
					return keyed.ErrorAt(v, fmt.Sprintf("%s: the rule has %s already; make a rule of each", at, r.Kind))
				}
				r.Kind = name
				err := set(v, at)
				if listed != nil {
					r.Measures = listed
				}
				return err
			}}
	}
	list := func(what string) func(*yaml.Node, string) error {
		return keyed.List(what, func(v *yaml.Node, at string) error {
			var text string
			if err := keyed.Text(&text)(v, at); err != nil {
				return err
			}
			if _, err := path.Match(text, ""); err != nil {
				return keyed.Wrong(v, at, "a name, or a pattern with * and ?, whose brackets are closed")
			}
			if why := unknownPart(text); why != "" {
				return keyed.ErrorAt(v, at+": "+why)
			}
			listed = append(listed, text)
			return nil
		})
	}
	one := func(v *yaml.Node, at string) error {
		var text string
		if err := keyed.Text(&text)(v, at); err != nil {
			return keyed.Wrong(v, at, "a measure")
		}
		if why := unknownPart(text); why != "" {
			return keyed.ErrorAt(v, at+": "+why)
		}
		listed = []string{text}
		return nil
	}
	measured := func(v *yaml.Node, at string) error {
		if err := one(v, at); err != nil {
			return err
		}
		why := unknownMeasure(v.Value)
		if v.Value == Simulated {
			why = Simulated + " is a measure of commq diff --machine alone; check has no machine"
		}
		if why != "" {
			return keyed.ErrorAt(v, at+": "+why)
		}
		return nil
	}
	return append([]keyed.Key{
		{Name: "name", Required: true, Set: keyed.Text(&r.Name), Doc: keyed.Doc{
			Means: "What the answer calls the rule; no two are alike.", Example: "no more messages"}},
		kind(NoMore, list("measures"), `[messages, "messages/*"]`,
			"No exact measure is greater than in the baseline. One that is less is reported."),
		kind(SameAs, list("measures"), `[payloads]`, "Exact measures are those of the baseline."),
		kind(Bound, measured, "partners_max", "The measure is within `at_most` and `at_least`."),
		kind(Time, measured, "compute_ns",
			"The time is not longer than that of the base by `at_most_percent_more`. The base is the runs of "+
				"`--base`, or a baseline with `--times`."),
		kind(Scaling, one, "messages-per-rank",
			"The measure grows with the ranks as a power of them whose exponent is within `exponent_at_most` and "+
				"`exponent_at_least`. The measure is one of the query [scaling](../QUERIES.md#scaling)."),
		kind(NoManual, list("collectives, or all"), "[all]",
			"[No collective is done by hand](../method/detection.md): none at all, or none of those that are named, "+
				"as `[MPI_Bcast]`. Exchanges between neighbours, which most halos are, do not count; `commq detect` "+
				"lists them. Needs runs with payload hashes, as captures have by default."),
		kind(NoRows, keyed.Text(&r.SQL), "SELECT * FROM messages WHERE tag > 100",
			"This query over [the tables](../SCHEMA.md) of one run gives no row."),
		kind(Equations, list("measures"), "[messages]",
			"The measure of a whole run follows the equation of the baseline, an exact law of the number of ranks, "+
				"at any number of ranks; with as many ranks as a run of the baseline it has that run's value. The "+
				"baseline was written with `--equations` over runs of three numbers of ranks or more."),
		kind(NoFinding, list("findings, or all"), "[all]",
			"No [finding of commq diagnose](../method/diagnose.md#the-rules) gains more than `above_percent` of the "+
				"run's time: none at all, or none of those named, as `[imbalance, \"late-*\"]`; `all` leaves out "+
				"late-start, whose time is not part of the run's. One that is named and was not looked for, because "+
				"the run has too little for it, leaves the rule undecided. Of runs on equally many ranks the median "+
				"counts. Needs runs with times, captured with `--record all`."),
	}, r.limits()...)
}

// limits returns the keys that say for which runs a rule is and what it allows. Its kind decides which of them it may
// have.
func (r *Rule) limits() []keyed.Key {
	return []keyed.Key{
		{Name: "ranks", Set: keyed.List("numbers of ranks", func(v *yaml.Node, at string) error {
			var n int
			err := keyed.Integer(&n, 1, math.MaxInt32)(v, at)
			r.Ranks = append(r.Ranks, int32(n))
			return err
		}), Doc: keyed.Doc{Means: "The rule is for runs with these numbers of ranks.", Default: "all runs",
			Example: "[4, 8]"}},
		{Name: "at_most", Set: optional(&r.AtMost), Doc: keyed.Doc{
			Means: "Greatest value.", Unit: "that of the measure", Default: "no bound", Example: "6"}},
		{Name: "at_least", Set: optional(&r.AtLeast), Doc: keyed.Doc{
			Means: "Least value.", Unit: "that of the measure", Default: "no bound", Example: "2"}},
		{Name: "at_most_percent_more", Set: real(&r.Percent, 0, 10000), Doc: keyed.Doc{
			Means: "How much longer the time may be.", Unit: "%", Default: "must be there", Example: "10"}},
		{Name: "alpha", Set: real(&r.Alpha, 0.000001, 0.5), Doc: keyed.Doc{
			Means:   "The rule is broken only if the p-value of the Mann-Whitney U-test is below this.",
			Default: "`" + decimal(ruleAlpha) + "`", Example: "0.05"}},
		{Name: "runs", Set: keyed.Integer(&r.Runs, 2, 1000), Doc: keyed.Doc{
			Means:   "Runs that each side must have; with fewer the rule is undecided.",
			Default: fmt.Sprintf("`%d`", ruleRuns), Example: "8"}},
		{Name: "exponent_at_most", Set: exponent(&r.ExponentAtMost), Doc: keyed.Doc{
			Means: "Greatest exponent.", Default: "no bound", Example: "0.05"}},
		{Name: "exponent_at_least", Set: exponent(&r.ExponentAtLeast), Doc: keyed.Doc{
			Means: "Least exponent.", Default: "no bound", Example: "-0.05"}},
		{Name: "points", Set: keyed.Integer(&r.Points, 2, 1000), Doc: keyed.Doc{
			Means:   "Numbers of ranks that there must be; with fewer the rule is undecided.",
			Default: fmt.Sprintf("`%d`", rulePoints), Example: "4"}},
		{Name: "above_percent", Set: real(&r.AbovePercent, 0, 100), Doc: keyed.Doc{
			Means: "The gain that a finding may have.", Unit: "% of the run's time",
			Default: fmt.Sprintf("`%d`", ruleAbovePercent), Example: "2"}},
	}
}

// optional accepts a count.
func optional(to **int64) func(*yaml.Node, string) error {
	return func(v *yaml.Node, at string) error {
		*to = new(int64)
		return keyed.Integer(*to, 0, math.MaxInt64)(v, at)
	}
}

// real accepts a number from least to most.
func real(to *float64, least, most float64) func(*yaml.Node, string) error {
	return func(v *yaml.Node, at string) error {
		x := keyed.Number(v)
		if x != nil {
			*to, _ = x.Float64()
		}
		if x == nil || *to < least || *to > most {
			return keyed.Wrong(v, at, "a number from "+decimal(least)+" to "+decimal(most))
		}
		return nil
	}
}

// decimal formats a number without an exponent.
func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// exponent accepts a number, which may be negative.
func exponent(to **float64) func(*yaml.Node, string) error {
	return func(v *yaml.Node, at string) error {
		*to = new(float64)
		positive := *v
		positive.Value = strings.TrimPrefix(v.Value, "-")
		if err := real(*to, 0, 100)(&positive, at); err != nil {
			return keyed.Wrong(v, at, "an exponent from -100 to 100")
		}
		if positive.Value != v.Value {
			**to = -**to
		}
		return nil
	}
}

// consistent reports what the rule lacks, or has without using it.
func (r *Rule) consistent(v *yaml.Node, at string) error {
	switch {
	case r.Kind == "":
		return keyed.ErrorAt(v, fmt.Sprintf("%s says nothing to check; add one of %s", at, strings.Join(kinds, ", ")))
	case r.Kind == Bound && r.AtMost == nil && r.AtLeast == nil:
		return keyed.ErrorAt(v, at+" has no bound; add at_most or at_least")
	case r.Kind == Bound && r.AtMost != nil && r.AtLeast != nil && *r.AtMost < *r.AtLeast:
		return keyed.ErrorAt(v, fmt.Sprintf("%s.at_most is %d and at_least %d: nothing is between", at, *r.AtMost,
			*r.AtLeast))
	case r.Kind == Scaling && r.ExponentAtMost == nil && r.ExponentAtLeast == nil:
		return keyed.ErrorAt(v, at+" has no bound; add exponent_at_most or exponent_at_least")
	case r.Kind == Scaling && r.ExponentAtMost != nil && r.ExponentAtLeast != nil &&
		*r.ExponentAtMost < *r.ExponentAtLeast:
		return keyed.ErrorAt(v, fmt.Sprintf("%s.exponent_at_most is %v and exponent_at_least %v: nothing is between", at,
			*r.ExponentAtMost, *r.ExponentAtLeast))
	case r.Kind == Time && math.IsNaN(r.Percent):
		return keyed.ErrorAt(v, at+".at_most_percent_more is missing; add how many percent longer the time may be")
	}
	for _, kind := range kinds {
		for _, name := range owned[kind] {
			if kind != r.Kind && keyed.Has(v, name) {
				return keyed.ErrorAt(v, fmt.Sprintf("%s.%s is of a rule with %s; this one has %s", at, name, kind,
					r.Kind))
			}
		}
	}
	if r.Kind == Time && leastP(r.Runs, r.Runs) >= r.Alpha {
		return keyed.ErrorAt(v, fmt.Sprintf("%s: %d runs of each side cannot have a p-value below %v (the least is "+
			"%.2g); ask for more runs, or set alpha", at, r.Runs, r.Alpha, leastP(r.Runs, r.Runs)))
	}
	return nil
}

// matches reports whether the rule names a measure's key. * also matches slashes.
func (r *Rule) matches(key string) bool {
	for _, pattern := range r.Measures {
		if matched(pattern, key) {
			return true
		}
	}
	return false
}

func matched(pattern, key string) bool {
	flat := strings.NewReplacer("/", "\x00")
	ok, err := path.Match(flat.Replace(pattern), flat.Replace(key))
	return err == nil && ok || pattern == key
}

// isFor reports whether the rule applies to runs with this number of ranks.
func (r *Rule) isFor(ranks int32) bool {
	for _, n := range r.Ranks {
		if n == ranks {
			return true
		}
	}
	return len(r.Ranks) == 0
}
