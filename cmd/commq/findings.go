package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/detect/replace"
	"github.com/commq/commq/detect/report"
	"github.com/commq/commq/detect/stored"
	"github.com/commq/commq/diagnose"
	simulated "github.com/commq/commq/models/simulate/stored"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// findingLibrary are the rules of commq diagnose that are files.
type findingLibrary struct {
	// all are commq's, then the user's own, each sorted by name.
	all []*queries.Finding
	// dir is the folder of the user's own; "" for a user without a folder of settings.
	dir string
	// unusable are files in dir that are not valid.
	unusable []queries.Unusable
}

// readFindings reads all finding files. An error means that one of commq's own is invalid.
func readFindings() (*findingLibrary, error) {
	all, err := queries.Findings()
	if err != nil {
		return nil, err
	}
	l := &findingLibrary{all: all, dir: ownFolder("findings")}
	if l.dir != "" {
		known := queries.FindingNames()
		for _, rule := range diagnose.Rules {
			known = append(known, string(rule))
		}
		var own []*queries.Finding
		own, l.unusable = queries.OwnFindings(l.dir, known)
		l.all = append(l.all, own...)
	}
	return l, nil
}

// findingRows limits the rows of the tables events and messages that a finding file reads, unless it is asked to read
// more.
const findingRows = 1_000_000_000

// ask asks the files of a run, and puts what they say into the options of its diagnosis. It returns the mistakes in
// files, for warnings.
func (l *findingLibrary) ask(ctx context.Context, found run.Found, search queries.Search,
	to *diagnose.Options) ([]error, error) {
	answers, err := search.Look(ctx, queriedRuns([]run.Found{found})[0], l.all)
	if err != nil {
		return nil, err
	}
	var mistakes []error
	for _, u := range l.unusable {
		mistakes = append(mistakes, u.Err)
	}
	for i := range answers {
		x := &answers[i]
		why := x.Not
		if x.Err != nil {
			mistakes = append(mistakes, x.Err)
			why = "its file has a mistake"
		}
		if why != "" {
			to.NotLookedFor = append(to.NotLookedFor, diagnose.NotLookedFor{Rule: diagnose.Rule(x.Finding.Name),
				Why: why})
		}
		for k := range x.Found {
			to.Evidence = append(to.Evidence, evidenceOf(x.Finding, &x.Found[k]))
		}
	}
	return mistakes, nil
}

// evidenceOf turns a row of a finding file into what package diagnose takes.
func evidenceOf(f *queries.Finding, row *queries.Found) diagnose.Evidence {
	e := diagnose.Evidence{Rule: diagnose.Rule(f.Name), Advice: f.Advice, Way: diagnose.Way(f.Gain),
		Callsite: row.Callsite, Call: row.Call, Ranks: row.Ranks, CostNs: row.CostNs, Found: row.Text,
		Latency: row.Latency, Bytes: row.Bytes}
	for i, c := range f.EvidenceColumns() {
		unit := c.Unit
		if c.Share {
			unit = "share"
		}
		e.Values = append(e.Values, diagnose.Value{Name: c.Name, Value: row.Evidence[i], Unit: unit})
	}
	return e
}

// mostByHand is how many messages a run has at most in which diagnose looks for collectives made by hand. Each that is
// found takes a simulation.
const mostByHand = 1 << 20

// askByHand looks for collectives made by hand, unless messages take no time in the simulations of the diagnosis: then
// nothing is saved by a collective.
func askByHand(ctx context.Context, r *run.Run, to *diagnose.Options) error {
	target, err := diagnose.TargetOf(r.Manifest, to.Target)
	if err != nil || diagnose.IdealNetwork(target.Machine) || r.Manifest.Counts.Messages == 0 {
		return err
	}
	why := ""
	if err := cmp.Or(stored.Need.Check(r.Name, r.Manifest), replace.Need.Check(r.Name, r.Manifest),
		simulated.Need.Check(r.Name, r.Manifest)); err != nil {
		why = err.Error()
	} else if n := r.Manifest.Counts.Messages; n > mostByHand {
		why = fmt.Sprintf("the run has %s; ask commq detect", counted(n, "message"))
	}
	if why != "" {
		to.NotLookedFor = append(to.NotLookedFor, diagnose.NotLookedFor{Rule: diagnose.HandWritten, Why: why})
		return nil
	}
	to.Progress("look for " + string(diagnose.HandWritten))
	found, err := report.PriceByHand(ctx, r, target, spillPayloads)
	for i := range found {
		x := &found[i]
		if x.SavedNs == nil || *x.SavedNs <= 0 {
			continue
		}
		to.Evidence = append(to.Evidence, diagnose.Evidence{Rule: diagnose.HandWritten, Way: diagnose.WayGain,
			Callsite: schema.NullInt32, Place: x.Place, Call: x.Call, Ranks: x.Ranks, CostNs: *x.SavedNs,
			Found:  "By hand: " + x.Text,
			Values: []diagnose.Value{{Name: "collective", Value: x.Operation}}})
	}
	return err
}

// listedRuleColumns are the columns of the list of rules.
var listedRuleColumns = []queries.Column{
	{Name: "rule", Type: "VARCHAR", Doc: "Name of the rule."},
	{Name: "question", Type: "VARCHAR", Doc: "What it answers."},
	{Name: "gain", Type: "VARCHAR", Doc: "How its gain is found: simulated or bound."},
	{Name: "advice", Type: "VARCHAR", Doc: "What to do about what it finds."},
	{Name: "needs", Type: "VARCHAR", Doc: "Tables and facts that a run must have for a rule from a file, separated " +
		"by commas; null for others."},
	{Name: "source", Type: "VARCHAR", Doc: "Where a rule from a file comes from; null for others."},
	{Name: "file", Type: "VARCHAR", Doc: "File of a rule of your own; null for those of commq."}}

// listRules lists the rules of commq diagnose; for people the user's own come last, under the name of their folder.
func listRules(a *app, format string) error {
	l, err := readFindings()
	if err != nil {
		return err
	}
	defer func() {
		for _, u := range l.unusable {
			a.warn("left out: %v", u.Err)
		}
	}()
	if format != "table" {
		return output.Write(a.stdout, format, l.rows())
	}
	var names, questions []string
	for _, rule := range append(slices.Clone(diagnose.Rules), diagnose.LateStart) {
		names, questions = append(names, string(rule)), append(questions, rule.Question())
	}
	own := len(names)
	for _, f := range l.all {
		names, questions = append(names, f.Name), append(questions, f.Summary)
		if f.File == "" {
			own++
		}
	}
	return listNames(a, names, questions, own, l.dir)
}

// rows returns all rules as rows.
func (l *findingLibrary) rows() queries.Rows {
	var rows [][]any
	for _, rule := range append(slices.Clone(diagnose.Rules), diagnose.LateStart) {
		rows = append(rows, []any{string(rule), rule.Question(), rule.Gain(), rule.Advice(), nil, nil, nil})
	}
	for _, f := range l.all {
		gain := "simulated"
		if f.Gain == string(diagnose.WayBound) {
			gain = "bound"
		}
		row := []any{f.Name, f.Summary, gain, f.Advice, strings.Join(f.Needs, ","), f.Source, nil}
		if f.File != "" {
			row[6] = f.File
		}
		rows = append(rows, row)
	}
	return queries.RowsOf(listedRuleColumns, rows)
}

// checkList checks the flags of a list of rules.
func (o *diagnoseOptions) checkList() error {
	if !slices.Contains([]string{"table", "json", "csv"}, o.format) {
		return fmt.Errorf("--format %s: a list of rules is table, json or csv", o.format)
	}
	if len(o.runs) > 0 {
		return errors.New("--list: it is of no run; leave the run out")
	}
	return nil
}
