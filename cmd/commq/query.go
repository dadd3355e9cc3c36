package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/queries/plot"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// answerOptions are the flags of every command that prints rows.
type answerOptions struct {
	runs    []string         // --run
	format  string           // --format
	output  string           // --output
	limit   int              // --limit
	memory  int              // --memory-mib
	threads int              // --threads
	trino   string           // the address that engineOptions settle on; "" is DuckDB
	objects *queries.Objects // how the store is reached where it is object storage; else nil
	engineOptions
}

func (o *answerOptions) flags(c *cobra.Command, a *app) {
	f := c.Flags()
	f.StringArrayVar(&o.runs, "run", nil, "`RUN` to ask: a name in the store, a path, or a pattern of either ('sp.A.*'); give it several times for several runs")
	f.StringVar(&o.format, "format", "", "`FORMAT` of the rows: "+strings.Join(output.Formats(), ", ")+" (default: by the ending of --output, else table)")
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write the rows to (default: standard output)")
	f.IntVar(&o.limit, "limit", 0, "print at most `N` rows, 0 for all (default: all; 40 of a table on a terminal)")
	f.IntVar(&o.memory, "memory-mib", 4096, "memory in `MIB` that the engine may use; beyond, it spills to the folder for temporary files")
	f.IntVar(&o.threads, "threads", 0, "`CORES` that the engine may use (default: all)")
	o.engineOptions.flags(c)
	complete(c, "format", output.Formats()...)
	register(c, completeRuns(a), "run")
	completeFiles(c, "output")
	completeNothing(c, "limit", "memory-mib", "threads")
}

func (o *answerOptions) engine() queries.Options {
	return queries.Options{MemoryBytes: int64(o.memory) << 20, Threads: o.threads, Trino: o.trino, Objects: o.objects}
}

// check validates the flags and settles the format.
func (o *answerOptions) check(a *app, c *cobra.Command) (err error) {
	if o.trino, err = o.address(c, "memory-mib", "threads"); err != nil {
		return err
	}
	if o.trino == "" {
		if o.objects, err = a.objectAccess(); err != nil {
			return err
		}
	}
	if len(o.runs) == 0 {
		return errors.New("no run given; name one with --run")
	}
	if o.limit < 0 {
		return fmt.Errorf("--limit %d: want a number of rows, 0 for all", o.limit)
	}
	if o.memory < 64 {
		return fmt.Errorf("--memory-mib %d: want at least 64", o.memory)
	}
	if o.threads < 0 {
		return fmt.Errorf("--threads %d: want a number of cores, 0 for all", o.threads)
	}
	if o.format == "" {
		o.format = output.ByName(o.output)
	}
	if o.format == "" {
		o.format = "table"
	}
	if err := output.Known(o.format); err != nil {
		return err
	}
	if output.Binary(o.format) && o.output == "" && onTerminal(a.stdout) {
		return fmt.Errorf("--format %s is not for a terminal; name a file with --output, or pipe it", o.format)
	}
	return nil
}

// findRuns finds the runs named, or meant by a pattern, and reads their manifests. A run is called what the user called it in
// the store, else by the name of its folder. A run that a pattern finds again is not taken twice.
func findRuns(a *app, names []string) ([]queries.Run, error) {
	var runs []queries.Run
	fromPattern := map[string]bool{} // by folder
	for _, name := range names {
		dirs, pattern, err := writer.FindAll(a.storeDir(), name)
		if err != nil {
			return nil, err
		}
		for _, dir := range dirs {
			dir, err := filepath.Abs(dir)
			if err != nil {
				return nil, err
			}
			if before, again := fromPattern[dir]; again && (before || pattern) {
				continue
			}
			fromPattern[dir] = pattern
			m, err := writer.ReadManifest(dir)
			if err != nil {
				return nil, err
			}
			runs = append(runs, queries.Run{Name: filepath.Base(dir), Dir: dir, Manifest: m})
		}
	}
	return runs, nil
}

// terminalRows is how many rows of a table go to a terminal unless the user says otherwise.
const terminalRows = 40

// print writes the rows where and as the flags say.
func (o *answerOptions) print(a *app, c *cobra.Command, rows queries.Rows) error {
	if o.output != "" {
		limited := output.Limit(rows, o.limit)
		return writeFile(o.output, func(w io.Writer) error { return output.Write(w, o.format, limited) })
	}
	limit := o.limit
	if o.format == "table" && onTerminal(a.stdout) && !c.Flags().Changed("limit") {
		limit = terminalRows
	}
	limited := output.Limit(rows, limit)
	if err := output.Write(a.screen(), o.format, limited); err != nil {
		return err
	}
	if limited.More() && o.limit == 0 {
		a.note("the first %d rows; --limit 0 prints all, --output FILE.csv keeps them", limit)
	}
	return nil
}

// writeFile writes a file beside its place and moves it there when it is complete, so that nobody reads half of it.
func writeFile(name string, write func(io.Writer) error) (err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() { // /dev/null, a pipe
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(f.Name())))
		}
	}()
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(f.Name(), name)
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func newQueryCommand(a *app) *cobra.Command {
	var list bool
	var format string
	c := &cobra.Command{
		Use:   "query NAME --run RUN",
		Short: "Answer a canned question about runs",
		Long: `query asks one or more runs a question that commq knows the SQL of. commq query --list names the questions,
commq query NAME --help says what one answers, and --sql prints its SQL to start your own from.

Several runs give one answer with a leading column run. --run takes patterns, in quotes: 'sp.A.*' is each run of that name.

Your own queries, files NAME.sql in the folder $XDG_CONFIG_HOME/commq/queries (else ~/.config/commq/queries), are asked the same way;
docs/method/own-queries.md says how to write one.`,
		Example: `  commq query --list
  commq query density --run bt.C.64
  commq query density --run cg.A.16 --where "tag = 9 AND bytes > 1024"
  commq query density --run 'cg.A.*' --format csv
  commq query data-density --run bt.C.64 --plot bt.png`,
	}
	c.Flags().BoolVar(&list, "list", false, "list the queries")
	c.Flags().StringVar(&format, "format", "table", "`FORMAT` of the list: "+strings.Join(output.Formats(), ", "))
	complete(c, "format", output.Formats()...)
	c.RunE = func(_ *cobra.Command, args []string) error {
		l, err := a.queryLibrary()
		switch {
		case err != nil:
			return err
		case len(args) > 0:
			_, err := l.find(args[0])
			return err
		case list:
			return runQueryList(a, l, format)
		}
		return errors.New("no query named; commq query --list names them")
	}
	c.Args = cobra.ArbitraryArgs
	c.FParseErrWhitelist.UnknownFlags = true // a query's own: of a misspelt name its flags are not what is wrong
	l, err := a.askable()
	if err != nil { // RunE says it
		return c
	}
	for _, q := range l.all {
		c.AddCommand(newAskCommand(a, l, q))
	}
	return c
}

// runQueryList lists the queries: for people the user's own apart from commq's, with where they come from.
func runQueryList(a *app, l *library, format string) error {
	if err := output.Known(format); err != nil {
		return err
	}
	defer l.warnings(a, "")
	if format != "table" {
		if output.Binary(format) && onTerminal(a.stdout) {
			return fmt.Errorf("--format %s is not for a terminal; pipe it", format)
		}
		return output.Write(a.stdout, format, listedQueries(l.all))
	}
	width := 0
	for _, q := range l.all {
		width = max(width, len(q.Name))
	}
	var b strings.Builder
	own := false
	for _, q := range l.all {
		if q.File != "" && !own {
			own = true
			fmt.Fprintf(&b, "\nYour own, in %s:\n", l.dir)
		}
		fmt.Fprintf(&b, "%-*s  %s\n", width, q.Name, q.Summary)
	}
	_, err := io.WriteString(a.stdout, b.String())
	return err
}

// listedQueries are queries as rows.
func listedQueries(all []*queries.Query) queries.Rows {
	var columns []queries.Column
	for _, name := range []string{"name", "summary", "source", "needs", "plot", "file"} {
		columns = append(columns, queries.Column{Name: name, Type: "VARCHAR"})
	}
	var rows [][]any
	for _, q := range all {
		row := []any{q.Name, q.Summary, q.Source, strings.Join(q.Needs, ","), nil, nil}
		if q.Plot != nil {
			row[4] = q.Plot.Kind
		}
		if q.File != "" {
			row[5] = q.File
		}
		rows = append(rows, row)
	}
	return queries.RowsOf(columns, rows)
}

// askOptions are the flags of one canned query.
type askOptions struct {
	answerOptions
	sql  bool   // --sql
	plot string // --plot
	args map[string]string
}

// newAskCommand makes the command of one query from its header.
func newAskCommand(a *app, l *library, q *queries.Query) *cobra.Command {
	o := askOptions{args: map[string]string{}}
	c := &cobra.Command{
		Use:     q.Name + " --run RUN",
		Short:   strings.TrimSuffix(q.Summary, "."),
		Long:    q.Summary,
		Example: exampleLines(q.Examples()),
		Args:    wantArgs(0, 0, "no arguments but flags; name the run with --run"),
		RunE: func(c *cobra.Command, _ []string) error {
			l.warnings(a, q.Name)
			return runAsk(c.Context(), a, c, q, &o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.SetHelpFunc(func(c *cobra.Command, _ []string) {
		own := map[string]bool{}
		for _, p := range q.Params {
			own[p.Name] = true
		}
		printHelp(c, q.Help(helpWidth(a.stdout)), own)
	})
	o.flags(c, a)
	f := c.Flags()
	f.BoolVar(&o.sql, "sql", false, "print the SQL instead of running it; the duckdb shell runs what it prints")
	if q.Plot != nil {
		f.StringVar(&o.plot, "plot", "", "draw the rows into a `FILE`.png, .svg or .pdf; they are printed only with --format or --output")
		completeFiles(c, "plot", plot.Formats()...)
	}
	for i, p := range q.Params {
		f.Var(&paramValue{p: p, args: o.args}, p.Name, firstSentence(p.Doc))
		completeParam(c, &q.Params[i])
	}
	return c
}

// firstSentence is what a flag's line has of a text that stands in full above it.
func firstSentence(s string) string {
	if i := strings.IndexAny(s, ".:"); i >= 0 {
		return s[:i]
	}
	return s
}

// paramValue is the flag of a query's parameter.
type paramValue struct {
	p    queries.Param
	args map[string]string
}

func (v *paramValue) String() string {
	if value, ok := v.args[v.p.Name]; ok {
		return value
	}
	return v.p.Default
}

func (v *paramValue) Set(s string) error {
	v.args[v.p.Name] = s
	return v.p.Check(s)
}

func (v *paramValue) Type() string {
	switch v.p.Kind {
	case "choice", "integer", "number":
		return v.p.Domain()
	}
	return v.p.Kind
}

// runAsk asks each run in turn and prints or draws the answers.
func runAsk(ctx context.Context, a *app, c *cobra.Command, q *queries.Query, o *askOptions) error {
	if err := o.check(a, c); err != nil {
		return err
	}
	if err := o.checkPlot(); err != nil {
		return err
	}
	runs, err := askedRuns(ctx, a, o.trino, o.runs)
	if err != nil {
		return err
	}
	if err := distinct(runs); err != nil {
		return err
	}
	switch {
	case o.sql:
		return printSQL(ctx, a, q, o, runs)
	case o.plot != "":
		err = drawAnswer(ctx, a, c, q, o, runs)
	default:
		err = o.ask(ctx, q, runs, func(rows queries.Rows) error { return o.print(a, c, rows) })
	}
	if err == nil && len(q.Origins) > 0 {
		noteCoarseTimes(a, runs)
	}
	return err
}

// noteCoarseTimes says which runs have times that are too coarse for most questions about them.
func noteCoarseTimes(a *app, runs []queries.Run) {
	for _, r := range runs {
		if coarse := coarseTimes(r.Manifest); coarse != "" {
			a.note("run %s: %s; what is shorter is not in the answer, or has that length (captured with --time-resolution-ns)", r.Name, coarse)
		}
	}
}

// coarseTimes says what the times were rounded to, and is empty where they were not. From a microsecond on, times of messages
// and calls are of that size or shorter.
func coarseTimes(m *schema.Manifest) string {
	if m.TimeOrigin == "untimed" || m.TimeResolutionNs < 1000 {
		return ""
	}
	return fmt.Sprintf("its times were rounded down to multiples of %s", time.Duration(m.TimeResolutionNs))
}

func distinct(runs []queries.Run) error {
	for i, r := range runs {
		if slices.ContainsFunc(runs[:i], func(other queries.Run) bool { return other.Name == r.Name }) {
			return fmt.Errorf("two runs are called %q; each may be given once", r.Name)
		}
	}
	return nil
}

// batches are the runs that the query is asked of together: each by itself, or all.
func batches(q *queries.Query, runs []queries.Run) [][]queries.Run {
	if q.OverRuns {
		return [][]queries.Run{runs}
	}
	return slices.Collect(slices.Chunk(runs, 1))
}

// ask opens the runs, asks them, and gives use the rows of all.
func (o *askOptions) ask(ctx context.Context, q *queries.Query, runs []queries.Run, use func(queries.Rows) error) error {
	answer := &answers{ctx: ctx, o: o, q: q, batches: batches(q, runs)}
	rows, err := queries.Concat(answer.next)
	if err != nil {
		return errors.Join(err, answer.close())
	}
	err = use(rows)
	return errors.Join(err, rows.Close(), answer.close())
}

// answers gives the answers of several batches one after the other, one engine at a time.
type answers struct {
	ctx     context.Context
	o       *askOptions
	q       *queries.Query
	batches [][]queries.Run
	at      int
	db      *queries.DB
}

func (s *answers) next() (queries.Rows, error) {
	if err := s.close(); err != nil || s.at == len(s.batches) {
		return nil, err
	}
	batch := s.batches[s.at]
	s.at++
	var err error
	if s.db, err = queries.Open(s.ctx, batch, s.o.engine()); err != nil {
		return nil, err
	}
	rows, err := s.db.Ask(s.ctx, s.q, s.o.args)
	if err == nil && len(s.batches) > 1 {
		rows = queries.InRun(batch[0].Name, rows)
	}
	return rows, err
}

func (s *answers) close() error {
	if s.db == nil {
		return nil
	}
	db := s.db
	s.db = nil
	return db.Close()
}

// printSQL prints what would run, with the views before it.
func printSQL(ctx context.Context, a *app, q *queries.Query, o *askOptions, runs []queries.Run) error {
	for _, batch := range batches(q, runs) {
		db, err := queries.Open(ctx, batch, o.engine())
		if err != nil {
			return err
		}
		text, err := db.Text(ctx, q, o.args)
		whole := db.Whole(text)
		if err := errors.Join(err, db.Close()); err != nil {
			return err
		}
		names := make([]string, len(batch))
		for i, run := range batch {
			names[i] = printable.Line(run.Name) // a comment ends with its line
		}
		if _, err := fmt.Fprintf(a.screen(), "-- %s of run %s\n%s;\n", q.Name, strings.Join(names, ", "), whole); err != nil {
			return err
		}
	}
	return nil
}

func (o *askOptions) checkPlot() error {
	if o.plot == "" {
		return nil
	}
	if o.plot == o.output {
		return fmt.Errorf("--plot %s: --output is the same file", o.plot)
	}
	return plot.Known(o.plot)
}

// drawAnswer draws the rows, and prints them too where the user says how.
func drawAnswer(ctx context.Context, a *app, c *cobra.Command, q *queries.Query, o *askOptions, runs []queries.Run) error {
	var kept queries.Rows
	err := o.ask(ctx, q, runs, func(rows queries.Rows) error {
		copied, err := queries.Keep(rows)
		kept = copied
		return err
	})
	if err != nil {
		return err
	}
	d, err := q.Drawing(kept, runs, o.args)
	if err != nil {
		return err
	}
	if err := writeFile(o.plot, func(w io.Writer) error { return d.Draw(w, plot.FormatOf(o.plot)) }); err != nil {
		return err
	}
	if !c.Flags().Changed("format") && o.output == "" {
		a.note("%s drawn", o.plot)
		return nil
	}
	return o.print(a, c, queries.Again(kept))
}
