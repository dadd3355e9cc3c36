package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/compare"
	"github.com/commq/commq/detect"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/writer"
)

// checkOptions are the flags of commq check.
type checkOptions struct {
	rules    string   // --rules
	runs     []string // --run
	base     []string // --base
	baseline string   // --baseline
	format   string   // --format
	write    []string // --write
	root     string   // --source-root
	memory   int      // --memory-mib
	trino    string   // the address that engineOptions settle on; "" is DuckDB
	engineOptions
}

// asks is who answers.
func (o *checkOptions) asks() queries.Options {
	return queries.Options{MemoryBytes: int64(o.memory) << 20, Trino: o.trino}
}

func newCheckCommand(a *app) *cobra.Command {
	var o checkOptions
	c := &cobra.Command{
		Use:   "check --run RUN",
		Short: "Check whether runs keep to rules: no more messages than before, and what else a file says",
		Long: `check compares runs with a baseline (commq baseline write) and with rules in a file of YAML: exact measures must not be more than before,
or must be the same, or within bounds; times must not be longer by more than some percent, by a test over several runs; measures must not
grow faster with the number of ranks than a power; no collective may be done by hand; an SQL query must give no row. docs/method/check.md
has all of them.

The exit status is 0 where every rule passes, 1 where one is broken, and 2 where one cannot be decided because something is missing: the
baseline, a run, a measure, enough runs. What is better than the baseline passes, and is said.

--write writes the verdict in further formats: markdown for a comment on a pull request, junit and sarif for tools that show them, github
for annotations. Places in the source are relative to --source-root.`,
		Example: `  commq check --run halo.4
  commq check --run 'pr.*' --base 'main.*' --rules commq-check.yaml
  commq check --run halo.4 --write junit=check.xml --write sarif=check.sarif`,
		Args:              wantArgs(0, 0, "no arguments but flags; name the runs with --run"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if o.trino, err = o.address(c, "memory-mib"); err != nil {
				return err
			}
			return runCheck(c.Context(), a, &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.rules, "rules", "commq-check.yaml", "`FILE` with the rules")
	f.StringArrayVar(&o.runs, "run", nil, "`RUN` to check: a name in the store, a path, or a pattern of either ('pr.*'); several times for several")
	f.StringArrayVar(&o.base, "base", nil, "`RUN` that times are compared with, likewise")
	f.StringVar(&o.baseline, "baseline", "", "`FILE` with the baseline (default: the one that the rules name)")
	f.StringVar(&o.format, "format", "text", "`FORMAT` on standard output: "+strings.Join(compare.VerdictFormats(), ", "))
	f.StringArrayVar(&o.write, "write", nil, "also write the verdict as `FORMAT=FILE`; several times for several")
	f.StringVar(&o.root, "source-root", "", "`FOLDER` that paths of sources are relative to (default: the working directory)")
	f.IntVar(&o.memory, "memory-mib", 4096, "memory in `MIB` that the engine may use")
	o.engineOptions.flags(c)
	register(c, completeRuns(a), "run", "base")
	completeFiles(c, "rules", "yaml", "yml")
	completeFiles(c, "baseline", "yaml", "yml")
	complete(c, "format", compare.VerdictFormats()...)
	var forms []string
	for _, format := range compare.VerdictFormats() {
		forms = append(forms, format+"=")
	}
	register(c, fixed(forms, cobra.ShellCompDirectiveNoSpace), "write")
	completeFolders(c, "source-root")
	completeNothing(c, "memory-mib")
	return c
}

// file is a format and the file that is to have it.
type formatFile struct{ format, file string }

// check says what is wrong with the flags.
func (o *checkOptions) check() (files []formatFile, err error) {
	if len(o.runs) == 0 {
		return nil, errors.New("no run given; name one with --run")
	}
	if err := oneOf("format", o.format, compare.VerdictFormats()...); err != nil {
		return nil, err
	}
	for _, text := range o.write {
		format, file, ok := strings.Cut(text, "=")
		if !ok || file == "" || !slices.Contains(compare.VerdictFormats(), format) {
			return nil, fmt.Errorf("--write %s: want FORMAT=FILE with one of %s, for example junit=check.xml", text, strings.Join(compare.VerdictFormats(), ", "))
		}
		files = append(files, formatFile{format, file})
	}
	return files, nil
}

func runCheck(ctx context.Context, a *app, o *checkOptions) error {
	files, err := o.check()
	if err != nil {
		return err
	}
	c := &checking{ctx: ctx, a: a, o: o}
	v, err := c.verdict()
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	for _, f := range files {
		if err := writeFile(f.file, func(w io.Writer) error { return v.Write(w, f.format, version) }); err != nil {
			return err
		}
	}
	if err := v.Write(a.screen(), o.format, version); err != nil {
		return err
	}
	switch v.Status() {
	case compare.Passed:
		return nil
	case compare.Failed:
		return exitError(exitFailed)
	}
	return exitError(exitCannot)
}

// checking is a check that goes on.
type checking struct {
	ctx     context.Context
	a       *app
	o       *checkOptions
	runs    []queries.Run
	samples []compare.Sample
}

// verdict reads what there is and asks the rules.
func (c *checking) verdict() (*compare.Verdict, error) {
	f, err := os.Open(c.o.rules)
	if err != nil {
		return nil, fmt.Errorf("%w; write one (docs/method/check.md has the rules), or name it with --rules", err)
	}
	rules, err := compare.ReadRules(c.o.rules, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	baseline, err := c.readBaseline(rules)
	if err != nil {
		return nil, err
	}
	if c.runs, c.samples, err = checkedRuns(c.ctx, c.a, c.o.runs, c.o.asks()); err != nil {
		return nil, err
	}
	e := &compare.Evidence{New: c.samples, Kept: keptBy(c.runs), Baseline: baseline, Grow: c.grow, Operations: detect.Operations(), ByHand: c.byHand, Rows: c.rows,
		Equation: func(key string) (string, error) { return equationOf(c.samples, key) }}
	if len(c.o.base) > 0 {
		var base []queries.Run
		if base, e.Base, err = checkedRuns(c.ctx, c.a, c.o.base, c.o.asks()); err != nil {
			return nil, fmt.Errorf("base: %w", err)
		}
		for _, r := range slices.Concat(base, c.runs) {
			if text := alike(base[0], r); text != "" {
				return nil, fmt.Errorf("%s; capture them alike", text)
			}
		}
	}
	v := &compare.Verdict{Rules: c.relative(c.o.rules), Results: compare.Check(rules, e)}
	for _, r := range c.runs {
		v.Runs = append(v.Runs, r.Name)
	}
	for i := range v.Results {
		for k := range v.Results[i].Findings {
			v.Results[i].Findings[k].File = c.relative(v.Results[i].Findings[k].File)
		}
	}
	return v, nil
}

// readBaseline reads the baseline that the command line or the rules name; nil where none does.
func (c *checking) readBaseline(rules *compare.Rules) (*compare.Baseline, error) {
	name := c.o.baseline
	if name == "" && rules.Baseline != "" {
		if name = rules.Baseline; !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(c.o.rules), name)
		}
	}
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w; write it with commq baseline write, and commit it", err)
	}
	b, err := compare.ReadBaseline(name, f)
	return b, errors.Join(err, f.Close())
}

// relative is a path of the source as the repository has it, where it lies under --source-root.
func (c *checking) relative(file string) string {
	root := c.o.root
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

// grow asks the query scaling.
func (c *checking) grow(measure string, ranks []int32) (all []compare.Growth, err error) {
	q, err := queries.Named([]string{"scaling"})
	if err != nil {
		return nil, err
	}
	var runs []queries.Run
	for i, r := range c.runs {
		if len(ranks) == 0 || slices.Contains(ranks, r.Manifest.Ranks) {
			r.Name = fmt.Sprintf("the runs %d", i) // one series, whatever they are called
			runs = append(runs, r)
		}
	}
	db, err := queries.Open(c.ctx, runs, c.o.asks())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Ask(c.ctx, q[0], map[string]string{"measure": measure})
	if err != nil {
		return nil, err
	}
	g := compare.Growth{Series: "the runs", Exponent: math.NaN(), Low: math.NaN(), High: math.NaN()}
	unknown := 0
	for rows.Next() { // series, run, ranks, x, y, fitted, slope, slope_low, slope_high
		r := rows.Row()
		y, known := r[4].(float64)
		if !known {
			unknown++
			continue
		}
		g.Ranks, g.Values = append(g.Ranks, r[2].(int32)), append(g.Values, y)
		for to, value := range map[*float64]any{&g.Exponent: r[6], &g.Low: r[7], &g.High: r[8]} {
			if x, ok := value.(float64); ok {
				*to = x
			}
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	if unknown > 0 {
		return nil, fmt.Errorf("%s of %s is not known: they do not hold it", measure, counted(int64(unknown), "run"))
	}
	return []compare.Growth{g}, nil
}

// byHand looks for collectives that a run does by hand.
func (c *checking) byHand(name string) (all []compare.Manual, err error) {
	i := slices.IndexFunc(c.runs, func(r queries.Run) bool { return r.Name == name })
	dir := c.runs[i].Dir
	if c.o.trino != "" { // the server knows its rows; detection reads files
		if dir, err = writer.Find(c.a.storeDir(), name); err != nil {
			return nil, fmt.Errorf("look for collectives by hand: %w; this rule reads the run's files, so their store must be here (--store)", err)
		}
	}
	d := &detection{dir: dir, name: name}
	if err := d.detect(c.ctx, detect.Options{MinRanks: detect.DefaultMinRanks}); err != nil {
		return nil, err
	}
	p := d.printed()
	for k := range p.Findings {
		f := &p.Findings[k]
		if f.neighborly() {
			continue
		}
		m := compare.Manual{Operation: f.Operation, Text: f.over() + ": " + f.amount()}
		for _, site := range f.SendSites {
			if site.File != "" && m.File == "" {
				m.File, m.Line = site.File, site.Line
			}
		}
		all = append(all, m)
	}
	return all, nil
}

// checkedRows is how many rows of SQL a finding has.
const checkedRows = 3

// rows asks a run the SQL of a rule.
func (c *checking) rows(name, text string) (first []string, count int64, err error) {
	i := slices.IndexFunc(c.runs, func(r queries.Run) bool { return r.Name == name })
	db, err := queries.Open(c.ctx, c.runs[i:i+1], c.o.asks())
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Query(c.ctx, text)
	if err != nil {
		return nil, 0, err
	}
	for rows.Next() {
		if count++; count > checkedRows {
			continue
		}
		var words []string
		for k, v := range rows.Row() {
			words = append(words, fmt.Sprintf("%s %s", rows.Columns()[k].Name, output.Shown(v, rows.Columns()[k])))
		}
		first = append(first, strings.Join(words, ", "))
	}
	return first, count, errors.Join(rows.Err(), rows.Close())
}
