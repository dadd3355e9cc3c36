package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/compare"
	"github.com/commq/commq/detect"
	"github.com/commq/commq/detect/report"
	"github.com/commq/commq/diagnose"
	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// checkOptions are the flags of commq check.
type checkOptions struct {
	files    compare.Files // --rules, --baseline, --source-root
	runs     []string      // --run
	base     []string      // --base
	format   string        // --format
	write    []string      // --write
	memory   int           // --memory
	baseline baselineOptions
	trino    string // the address that engineOptions settle on; "" is DuckDB
	// objects tells DuckDB how to reach the store if it is object storage.
	objects *queries.Objects
	engineOptions
}

func newCheckCommand(a *app) *cobra.Command {
	var o checkOptions
	c := &cobra.Command{
		Use: "check RUN...",
		Short: "Check runs against a baseline and rules: no more messages than before, no slower, no collective " +
			"by hand",
		Long: `check compares runs with a baseline and with the rules in a YAML file. A rule can demand that exact
measures do not grow, stay the same or keep within bounds; that times, tested over several runs, grow by at most some
percent; that measures grow no faster with the number of ranks than a power of it, or follow its equation; that no
collective is done by hand; that no finding of commq diagnose gains more than a part of the time; that an SQL query
gives no row. docs/reference/rules.md describes every kind of rule.

The exit status is 0 when every rule passes, 1 when one is broken, and 2 when one cannot be decided because something
is missing: the baseline, a run, a measure, enough runs. Measures better than the baseline pass with a note.

--write also writes the verdict in other formats: markdown for a comment on a pull request, junit and sarif for tools
that show them, github for annotations. Source paths in it are relative to --source-root.

--write-baseline writes the baseline instead: the exact measures of the runs as sorted YAML, one per line, with a
section for each number of ranks, so that git diff shows what changed in the program. Commit the file. Measures that
differ between runs of one number of ranks are left out and named. --times also keeps the times of the runs, for a
machine that is always the same; otherwise give check runs of the base. --equations also keeps the exact law of the
number of ranks that each measure follows, for the rule equations, which checks runs on any number of ranks; that takes
runs of three or more different numbers of ranks. Measures that follow no exact law are named.`,
		Example: `  commq check 'halo.*' --write-baseline
  commq check --run halo.4
  commq check --run 'pr.*' --base 'main.*' --rules commq-check.yaml
  commq check --run halo.4 --write junit=check.xml --write sarif=check.sarif`,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if o.trino, err = o.address(c, a, slices.Concat(o.runs, o.base), "memory"); err != nil {
				return err
			}
			if o.trino == "" {
				if o.objects, err = a.objectAccess(); err != nil {
					return err
				}
			}
			if err := o.baseline.check(c); err != nil {
				return err
			}
			return runCheck(c.Context(), a, &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.files.Rules, "rules", "commq-check.yaml", "`FILE` with the rules")
	f.StringArrayVar(&o.runs, "run", nil, "`RUN` to check: a name in the store, a path, or a pattern of either "+
		"('pr.*'); may be repeated")
	f.StringArrayVar(&o.base, "base", nil, "`RUN` to compare times with, named likewise")
	f.StringVar(&o.files.Baseline, "baseline", "", "`FILE` with the baseline (default: the one that the rules name)")
	o.baseline.flags(c)
	f.StringVar(&o.format, "format", "text", "`FORMAT` on standard output: "+
		strings.Join(compare.VerdictFormats(), ", "))
	f.StringArrayVar(&o.write, "write", nil, "also write the verdict as `FORMAT=FILE`; may be repeated")
	f.StringVar(&o.files.SourceRoot, "source-root", "",
		"`FOLDER` that source paths are relative to (default: the working directory)")
	f.IntVar(&o.memory, "memory", 4096, "memory in `MIB` that the engine may use")
	o.engineFlags(c)
	register(c, completeRuns(a), "run", "base")
	a.readsRuns(c)
	completeFiles(c, "rules", "yaml", "yml")
	completeFiles(c, "baseline", "yaml", "yml")
	complete(c, "format", compare.VerdictFormats()...)
	var forms []string
	for _, format := range compare.VerdictFormats() {
		forms = append(forms, format+"=")
	}
	register(c, fixed(forms, cobra.ShellCompDirectiveNoSpace), "write")
	a.writes(c)
	completeFolders(c, "source-root")
	completeNothing(c, "memory")
	return c
}

// formatFile is a file to write and its format.
type formatFile struct{ format, file string }

// parseFormatFiles reads the values FORMAT=FILE of --write.
func parseFormatFiles(values []string) (files []formatFile, err error) {
	for _, text := range values {
		format, file, ok := strings.Cut(text, "=")
		if !ok || file == "" || !slices.Contains(compare.VerdictFormats(), format) {
			return nil, fmt.Errorf("--write %s: want FORMAT=FILE with one of %s, for example junit=check.xml", text,
				strings.Join(compare.VerdictFormats(), ", "))
		}
		files = append(files, formatFile{format, file})
	}
	return files, nil
}

// check validates the flags.
func (o *checkOptions) check() (files []formatFile, err error) {
	if len(o.runs) == 0 {
		return nil, errNoRun
	}
	if err := oneOf("format", o.format, compare.VerdictFormats()...); err != nil {
		return nil, err
	}
	if files, err = parseFormatFiles(o.write); err != nil {
		return nil, err
	}
	if root := o.files.SourceRoot; root != "" {
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("--source-root %s: no such folder", root)
		}
	}
	return files, checkMemory(o.memory, leastMemory)
}

func runCheck(ctx context.Context, a *app, o *checkOptions) error {
	files, err := o.check()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := a.checkNew(f.file); err != nil {
			return fmt.Errorf("check: --write %s=%s: %w", f.format, f.file, err)
		}
	}
	if o.baseline.write {
		return runWriteBaseline(ctx, a, o)
	}
	runs, base, err := o.find(ctx, a)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	e := &checkEngine{a, o}
	v, err := compare.CheckFiles(ctx, o.files, runs, base, e)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if v.WallTimes() {
		shared, err := queries.SharedCoresOf(ctx, engineRuns(runs), e.options())
		noteSharedCores(a, shared)
		if err != nil {
			return fmt.Errorf("check: %w", err)
		}
	}
	return o.print(a, v, files)
}

// find finds the runs to check and those of the base, if any are named.
func (o *checkOptions) find(ctx context.Context, a *app) (runs, base []compare.Run, err error) {
	found, err := askedRuns(ctx, a, o.trino, o.runs)
	if err != nil || len(o.base) == 0 {
		return comparedRuns(found), nil, err
	}
	foundBase, err := askedRuns(ctx, a, o.trino, o.base)
	if err != nil {
		return nil, nil, fmt.Errorf("base: %w", err)
	}
	return comparedRuns(found), comparedRuns(foundBase), nil
}

// print writes the verdict to the files and to the screen, and returns the exit status.
func (o *checkOptions) print(a *app, v *compare.Verdict, files []formatFile) error {
	for _, f := range files {
		if err := a.writeFile(f.file, func(w io.Writer) error { return v.Write(w, f.format, version) }); err != nil {
			return err
		}
	}
	if err := v.Write(a.screen(o.format), o.format, version); err != nil {
		return err
	}
	return verdictStatus(v)
}

// verdictStatus returns the exit status of a verdict.
func verdictStatus(v *compare.Verdict) error {
	switch v.Status() {
	case compare.Passed:
		return nil
	case compare.Failed:
		return exitError(exitFailed)
	}
	return exitError(exitCannot)
}

// checkEngine answers what rules ask about runs.
type checkEngine struct {
	a *app
	o *checkOptions
}

func (e *checkEngine) options() queries.Options {
	return queries.Options{MemoryBytes: int64(e.o.memory) << 20, Trino: e.o.trino, Objects: e.o.objects}
}

// Ask asks a query about runs together.
func (e *checkEngine) Ask(ctx context.Context, runs []compare.Run, query string, args map[string]string,
	each func(rows.Row) error) error {
	return askWith(e.options())(ctx, runs, query, args, each)
}

// rowsShown limits the rows of SQL that a finding shows.
const rowsShown = 3

// SQL runs the SELECT of a rule.
func (e *checkEngine) SQL(ctx context.Context, run compare.Run, text string) (first []string, count int64, err error) {
	db, err := queries.Open(ctx, []queries.Run{queries.Run(run)}, e.options())
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	answer, err := db.Query(ctx, text)
	if err != nil {
		return nil, 0, err
	}
	for answer.Next() {
		if count++; count > rowsShown {
			continue
		}
		var words []string
		for k, v := range answer.Row() {
			c := answer.Columns()[k]
			words = append(words, fmt.Sprintf("%s %s", output.Head(c), output.Shown(v, c)))
		}
		first = append(first, strings.Join(words, ", "))
	}
	if err = errors.Join(answer.Err(), answer.Close()); err == nil && count == 0 {
		if lacks := run.LeftOut("it", queries.ReadsOf(text), "what the rule reads"); lacks != "" {
			err = errors.New(lacks)
		}
	}
	return first, count, err
}

// Operations returns the collectives that detection finds.
func (e *checkEngine) Operations() []string { return detect.Operations() }

// withFiles finds the folder of a run whose files a rule reads: here, also if a server answers queries.
func (e *checkEngine) withFiles(r compare.Run) (found run.Found, err error) {
	switch store := e.a.storeDir(); {
	case e.o.objects != nil:
		err = writer.CheckLocal(store)
	case e.o.trino != "":
		found, err = run.Find(store, r.Name)
	default:
		return run.Found{Name: r.Name, Dir: r.Dir, Manifest: r.Manifest}, nil
	}
	if err != nil {
		return found, fmt.Errorf("%w; this rule reads the run's files, so their store must be here (--store)", err)
	}
	return found, sameRows(found, r)
}

// sameRows returns an error if a run of the store has other rows than the one that a server has.
func sameRows(found run.Found, r compare.Run) error {
	if found.Manifest != nil && found.Manifest.Digest != r.Manifest.Digest {
		return errOtherRows(found.Name, found.Dir)
	}
	return nil
}

// ByHand detects collectives that a run does by hand. Detection reads files, also of a run that a server has.
func (e *checkEngine) ByHand(ctx context.Context, r compare.Run) (list []compare.Manual, err error) {
	files, err := e.withFiles(r)
	if err != nil {
		return nil, fmt.Errorf("look for collectives by hand: %w", err)
	}
	found, err := report.FindByHand(ctx, files.Dir, spillPayloads)
	for _, f := range found {
		list = append(list, compare.Manual(f))
	}
	return list, err
}

// CauseRules returns the rules of commq diagnose.
func (e *checkEngine) CauseRules() (names []string) {
	for _, rule := range append(slices.Clone(diagnose.Rules), diagnose.LateStart) {
		names = append(names, string(rule))
	}
	if l, err := readFindings(); err == nil {
		for _, f := range l.all {
			names = append(names, f.Name)
		}
	}
	return names
}

// Causes diagnoses a run, also one that a server has, from its files.
func (e *checkEngine) Causes(ctx context.Context, r compare.Run) (c compare.Causes, err error) {
	found, err := e.withFiles(r)
	if err != nil {
		return c, fmt.Errorf("diagnose: %w", err)
	}
	o := newDiagnoseOptions(e.o.memory, "")
	o.most = 0 // a rule needs the gain itself, however long the simulation takes: a bound may break it
	d, err := o.diagnose(ctx, e.a, found, func(string) {})
	if err != nil {
		return c, err
	}
	c = causesOf(d, r.Manifest)
	if target, err := diagnose.TargetOf(r.Manifest, nil); err == nil && diagnose.IdealNetwork(target.Machine) {
		c.NotLookedFor[string(diagnose.HandWritten)] = "messages take no time on " + d.Machine + ", so no collective " +
			"saves any; no_manual finds them"
	}
	return c, nil
}

// causesOf returns the findings of the diagnosis of a run with this manifest as package compare takes them.
func causesOf(d *diagnose.Diagnosis, m *schema.Manifest) compare.Causes {
	c := compare.Causes{Run: d.Run, TimeNs: d.TimeNs, Machine: d.Machine, Times: m.TimeOrigin, Clock: m.ComputeClock,
		Warnings: d.Warnings, NotLookedFor: map[string]string{}}
	for _, n := range d.NotLookedFor {
		c.NotLookedFor[string(n.Rule)] = n.Why
	}
	if d.TimesSimulated {
		c.Times = "simulated"
	}
	for i := range d.Findings {
		c.Found = append(c.Found, causeOf(d, &d.Findings[i]))
	}
	if f := d.LateStart(); f != nil {
		x := causeOf(d, f)
		x.Apart = true
		c.Found = append(c.Found, x)
	}
	return c
}

func causeOf(d *diagnose.Diagnosis, f *diagnose.Finding) compare.Cause {
	x := compare.Cause{Rule: string(f.Rule), Call: f.Call, Place: f.Place, GainNs: f.GainNs, Share: d.Share(f),
		Bound: f.Bound, Text: f.Title}
	if called := f.Called(); called != "" {
		x.Text += "; " + called
	}
	if file, line := f.FileAndLine(); line > 0 {
		x.File, x.Line = file, int32(line)
	}
	return x
}

// Fit finds the exact law of values over the number of ranks.
func (e *checkEngine) Fit(byRanks map[int64]float64) (*compare.Law, error) { return exactLaw(byRanks) }
