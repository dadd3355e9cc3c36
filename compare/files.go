package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/schema"
)

// Engine answers CheckFiles' questions about runs.
type Engine interface {
	// Ask asks a named query about several runs together.
	Ask(ctx context.Context, runs []Run, query string, args map[string]string, each func(rows.Row) error) error
	// SQL runs a SELECT on one run. It returns the first rows in words, and the number of rows. If there are no rows
	// and the run lacks part of what the SELECT reads, that is an error.
	SQL(ctx context.Context, run Run, text string) (first []string, count int64, err error)
	// ByHand returns the collectives that a run does by hand; with an error the list is incomplete. Operations returns
	// the names of all collectives that a rule may name.
	ByHand(ctx context.Context, run Run) ([]Manual, error)
	Operations() []string
	// Causes returns the findings of commq diagnose in a run; CauseRules lists all rules of commq diagnose.
	Causes(ctx context.Context, run Run) (Causes, error)
	CauseRules() []string
	// Fit finds the exact law that values follow over the number of ranks; nil if there is none.
	Fit(byRanks map[int64]float64) (*Law, error)
}

// Files are the files that CheckFiles reads.
type Files struct {
	// Rules is the path of the rules.
	Rules string
	// Baseline is the path of the baseline; empty means the one that the rules name.
	Baseline string
	// SourceRoot is the folder to which paths in the verdict are relative; empty means the working directory.
	SourceRoot string
}

// CheckFiles checks runs by the rules in a file. base are runs to compare times with, if any.
func CheckFiles(ctx context.Context, files Files, runs, base []Run, engine Engine) (*Verdict, error) {
	rules, err := openRules(files.Rules)
	if err != nil {
		return nil, err
	}
	e := &Evidence{Operations: engine.Operations(), CauseRules: engine.CauseRules()}
	if e.Baseline, err = openBaseline(files, rules); err != nil {
		return nil, err
	}
	if e.New, err = MeasureComplete(ctx, runs, engine.Ask); err != nil {
		return nil, err
	}
	if e.Base, err = MeasureComplete(ctx, base, engine.Ask); err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	if len(base) > 0 {
		for _, r := range slices.Concat(base, runs) {
			if err := base[0].CheckAlike(r); err != nil {
				return nil, fmt.Errorf("%w; capture them alike", err)
			}
		}
	}
	e.Kept = KeptRows(runs)
	e.connect(ctx, runs, engine)
	v := &Verdict{Rules: files.rules(), Results: Check(rules, e)}
	for _, r := range runs {
		v.Runs = append(v.Runs, r.Name)
	}
	for i := range v.Results {
		for k := range v.Results[i].Findings {
			f := &v.Results[i].Findings[k]
			f.File = files.relative(f.File)
		}
	}
	return v, nil
}

// connect lets the functions of the evidence ask the engine.
func (e *Evidence) connect(ctx context.Context, runs []Run, engine Engine) {
	named := func(name string) Run {
		return runs[slices.IndexFunc(runs, func(r Run) bool { return r.Name == name })]
	}
	e.Grow = func(measure string, ranks []int32) ([]Growth, error) {
		var series []Run
		for i, r := range runs {
			if len(ranks) == 0 || slices.Contains(ranks, r.Manifest.Ranks) {
				r.Name = fmt.Sprintf("the runs %d", i) // the query groups series by name: these runs are one
				series = append(series, r)
			}
		}
		g, err := MeasureGrowth(ctx, measure,
			func(ctx context.Context, query string, args map[string]string, each func(rows.Row) error) error {
				return engine.Ask(ctx, series, query, args, each)
			})
		if err != nil {
			return nil, err
		}
		return []Growth{*g}, nil
	}
	e.Lacks = func(run, measure string) string { r := named(run); return r.lacks(measure) }
	e.ByHand = func(name string) ([]Manual, error) {
		r := named(name)
		found, err := engine.ByHand(ctx, r)
		if lacks := r.LeftOut("run "+name, schema.ReadsMessages, "what was searched"); err == nil && lacks != "" {
			err = errors.New(lacks) // what was found counts all the same
		}
		return found, err
	}
	e.Causes = func(run string) (Causes, error) { return engine.Causes(ctx, named(run)) }
	e.Rows = func(run, sql string) ([]string, int64, error) { return engine.SQL(ctx, named(run), sql) }
	e.Fit = engine.Fit
}

func openRules(name string) (*Rules, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w; write one (docs/reference/rules.md has the rules), or name it with --rules", err)
	}
	rules, err := ReadRules(name, f)
	return rules, errors.Join(err, f.Close())
}

// BaselineName returns the path of the baseline that the user or the rules name; empty if neither does.
func (f *Files) BaselineName() (string, error) {
	if f.Baseline != "" {
		return f.Baseline, nil
	}
	rules, err := openRules(f.Rules)
	if err != nil {
		return "", fmt.Errorf("%w; or name the baseline with --baseline", err)
	}
	return f.baselineName(rules)
}

// baselineName is BaselineName for rules that are read already. They may be a stranger's, and errors show the beginning of
// a file that is no baseline: they name none outside their folder and the working folder.
func (f *Files) baselineName(rules *Rules) (string, error) {
	if f.Baseline != "" || rules.Baseline == "" {
		return f.Baseline, nil
	}
	dir, name := filepath.Dir(f.Rules), rules.Baseline
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	if !bounded.IsInside(dir, name) && !bounded.IsInside(".", name) {
		return "", fmt.Errorf("rules %s: the baseline %.200q is outside the folder of the rules, and of the one you are in; "+
			"name it with --baseline", f.Rules, rules.Baseline)
	}
	return name, nil
}

// openBaseline reads the baseline that the user or the rules name; nil if neither does.
func openBaseline(files Files, rules *Rules) (*Baseline, error) {
	name, err := files.baselineName(rules)
	if name == "" || err != nil {
		return nil, err
	}
	var f *os.File
	if files.Baseline != "" { // the user's, which may be a pipe
		f, err = os.Open(name)
	} else {
		f, _, err = bounded.OpenRegular(name)
	}
	if err != nil {
		return nil, fmt.Errorf("baseline: %w; write it with commq check --write-baseline, and commit it", err)
	}
	b, err := ReadBaseline(name, f)
	return b, errors.Join(err, f.Close())
}

// rules returns the path of the rules in the verdict: relative to the source root where the user names one above them.
func (f *Files) rules() string {
	if abs, err := filepath.Abs(f.Rules); err == nil && f.SourceRoot != "" {
		if rel := f.relative(abs); !filepath.IsAbs(rel) {
			return rel
		}
	}
	return f.relative(f.Rules)
}

// relative makes an absolute path below the source root relative, as in the repository.
func (f *Files) relative(file string) string {
	root := f.SourceRoot
	if root == "" {
		root = "."
	}
	root, err := filepath.Abs(root)
	if err != nil || !filepath.IsAbs(file) {
		return file
	}
	if rel, err := filepath.Rel(root, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}
