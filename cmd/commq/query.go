package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/commq/commq/capture/doctor"
	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/queries/plot"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// answerOptions are the flags of every command that prints rows.
type answerOptions struct {
	runs    []string         // --run
	format  string           // --format
	output  string           // --output
	limit   int              // --limit
	memory  int              // --memory
	threads int              // --threads
	verify  bool             // --verify
	trino   string           // URL of the Trino server; "" is DuckDB
	objects *queries.Objects // access to the store if it is object storage; else nil
	engineOptions
}

func (o *answerOptions) flags(c *cobra.Command, a *app) {
	f := c.Flags()
	f.StringArrayVar(&o.runs, "run", nil, "`RUN` to ask: a name in the store, a path, or a pattern of either "+
		"('sp.A.*'); may be repeated")
	f.StringVar(&o.format, "format", "", "`FORMAT` of the rows: "+
		strings.Join(output.Formats(), ", ")+" (default: by the ending of --output, else table)")
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write the rows to, or with --sql the SQL (default: standard output)")
	f.IntVar(&o.limit, "limit", 0, "print at most `N` rows, 0 for all (default: all; 40 of a table on a terminal)")
	f.IntVar(&o.memory, "memory", 4096, "memory in `MIB` that the engine may use before it spills to the "+
		"folder for temporary files")
	f.IntVar(&o.threads, "threads", 0, "number `N` of cores that the engine may use (default: all)")
	f.BoolVar(&o.verify, "verify", false, "first compare every file of the runs with its hash in the manifest; "+
		"without it sizes, footers, headers and pages read are verified")
	a.exactFlag(c)
	o.engineFlags(c)
	complete(c, "format", output.Formats()...)
	register(c, completeRuns(a), "run")
	completeFiles(c, "output")
	completeNothing(c, "limit", "memory", "threads")
	a.writes(c)
}

func (o *answerOptions) engine() queries.Options {
	return queries.Options{MemoryBytes: int64(o.memory) << 20, Threads: o.threads, Trino: o.trino, Objects: o.objects,
		Verify: o.verify, ByColumn: output.Binary(o.format)}
}

// check validates the flags and sets the format.
func (o *answerOptions) check(a *app, c *cobra.Command) (err error) {
	if o.trino, err = o.address(c, a, o.runs, "memory", "threads", "verify"); err != nil {
		return err
	}
	if o.trino == "" {
		if o.objects, err = a.objectAccess(); err != nil {
			return err
		}
	}
	if len(o.runs) == 0 {
		return errNoRun
	}
	if o.limit < 0 {
		return fmt.Errorf("--limit %d: want a number of rows, 0 for all", o.limit)
	}
	if err := checkMemory(o.memory, leastMemory); err != nil {
		return err
	}
	if o.threads < 0 {
		return fmt.Errorf("--threads %d: want a number of cores, 0 for all", o.threads)
	}
	if o.format == "" {
		if o.format, err = o.formatOfOutput(c.Flags().Lookup("plot")); err != nil {
			return err
		}
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

// formatOfOutput returns the format that the name of the output's file asks for. A picture is asked for by another
// flag, plot, which may be nil.
func (o *answerOptions) formatOfOutput(plots *pflag.Flag) (string, error) {
	switch isPicture := slices.Contains(plot.Formats(), plot.FormatOf(o.output)); {
	case !isPicture || plots != nil && plots.Value.String() == o.output: // one file for both is another error
		return output.ByName(o.output), nil
	case plots != nil && !plots.Changed:
		return "", fmt.Errorf("--output %s: rows are no picture; --plot %s draws one", o.output, o.output)
	}
	return "", fmt.Errorf("--output %s: rows are no picture; name their format with --format", o.output)
}

// findRuns finds the runs that names, paths and patterns match.
func findRuns(a *app, names []string) ([]queries.Run, error) {
	found, err := run.FindAll(a.storeDir(), names)
	return queriedRuns(found), err
}

// queriedRuns converts runs to the type that package queries uses.
func queriedRuns(found []run.Found) (runs []queries.Run) {
	for _, f := range found {
		runs = append(runs, queries.Run{Name: f.Name, Dir: f.Dir, Manifest: f.Manifest})
	}
	return runs
}

// terminalRows is the number of table rows printed to a terminal without --limit.
const terminalRows = 40

// print writes the rows to the output and in the format of the flags.
func (o *answerOptions) print(a *app, c *cobra.Command, rows queries.Rows) error {
	if o.output != "" {
		limited := output.Limit(rows, o.limit)
		return a.writeFile(o.output, func(w io.Writer) error { return a.writeRowsTo(w, o.format, limited) })
	}
	limit := o.limit
	if o.format == "table" && onTerminal(a.stdout) && !c.Flags().Changed("limit") {
		limit = terminalRows
	}
	limited := output.Limit(rows, limit)
	if err := a.writeRows(o.format, limited); err != nil {
		return err
	}
	if limited.More() && o.limit == 0 {
		a.note("the first %d rows; --limit 0 prints all, --output FILE.csv keeps them", limit)
	}
	return nil
}

func newQueryCommand(a *app) *cobra.Command {
	var list bool
	var format string
	c := &cobra.Command{
		Use:   "query NAME --run RUN",
		Short: "Ask one of commq's queries about runs",
		Long: `query asks one or more runs a query whose SQL commq knows. commq query --list lists them, commq query
NAME --help describes one, and --sql prints its SQL as a start for your own.

Several runs give one answer with a leading column run. A run is an argument or a value of --run. Both take patterns,
in quotes: 'sp.A.*' is each run of that name.

Your own queries are files NAME.sql in the folder $XDG_CONFIG_HOME/commq/queries (else ~/.config/commq/queries) and
work in the same way; docs/method/own-queries.md tells how to write one.`,
		Example: `  commq query --list
  commq query density --run bt.C.64
  commq query density bt.C.64 --plot bt.png
  commq query density cg.A.16 --where "tag = 9 AND bytes > 1024"
  commq query density --run 'cg.A.*' --format csv
  commq query sizes bt.C.64 -o sizes.csv`,
	}
	c.Flags().BoolVar(&list, "list", false, "list the queries")
	c.Flags().StringVar(&format, "format", "table", "`FORMAT` of the list: "+strings.Join(output.Formats(), ", "))
	complete(c, "format", output.Formats()...)
	c.RunE = func(c *cobra.Command, args []string) error {
		l, err := a.queryLibrary()
		switch {
		case err != nil:
			return err
		case len(args) > 0:
			_, err := l.find(args[0])
			return err
		case list:
			if err := refuseUnknown(c, a.args); err != nil {
				return err
			}
			return runQueryList(a, l, format)
		}
		return errors.New("no query named; commq query --list names them")
	}
	c.Args = cobra.ArbitraryArgs
	c.FParseErrWhitelist.UnknownFlags = true // a misspelt query may have unknown flags: complain about its name instead
	l, err := a.askable()
	if err != nil { // RunE reports it
		return c
	}
	for _, q := range l.all {
		ask := newAskCommand(a, l, q)
		c.AddCommand(ask)
		hideSwitches(c.Flags(), ask.Flags())
	}
	return c
}

// refuseUnknown parses a command line again, without the flags that the command hides, and returns an error about the
// first one that it does not have.
func refuseUnknown(c *cobra.Command, args []string) error {
	known := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known.AddFlag(f)
		}
	})
	if err := known.Parse(args); err != nil {
		return flagMistake(c, err)
	}
	return nil
}

// hideSwitches adds to, hidden, the flags of from that take no value. Without them cobra would take the name of the
// query in "query --exact density" for the value of an unknown flag.
func hideSwitches(to, from *pflag.FlagSet) {
	from.VisitAll(func(f *pflag.Flag) {
		if f.NoOptDefVal != "" && to.Lookup(f.Name) == nil {
			hidden := *f
			hidden.Hidden = true
			to.AddFlag(&hidden)
		}
	})
}

// runQueryList lists the queries; for people the user's own come last, under the name of their folder.
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
	var names, summaries []string
	own := 0
	for _, q := range l.all {
		names, summaries = append(names, q.Name), append(summaries, q.Summary)
		if q.File == "" {
			own++
		}
	}
	return listNames(a, names, summaries, own, l.dir)
}

// listNames prints names with what they are about. Those from index own on are the user's, in folder dir.
func listNames(a *app, names, texts []string, own int, dir string) error {
	width := len(slices.MaxFunc(names, func(a, b string) int { return len(a) - len(b) }))
	var b strings.Builder
	for i, name := range names {
		if i == own {
			fmt.Fprintf(&b, "\nYour own, in %s:\n", dir)
		}
		fmt.Fprintf(&b, "%-*s  %s\n", width, name, texts[i])
	}
	_, err := io.WriteString(a.out(), b.String())
	return err
}

// listedQueryColumns are the columns of the list of queries.
var listedQueryColumns = []queries.Column{
	{Name: "name", Type: "VARCHAR", Doc: "Name of the query, as commq query NAME has it."},
	{Name: "summary", Type: "VARCHAR", Doc: "What it answers."},
	{Name: "source", Type: "VARCHAR", Doc: "Paper and section that the measure comes from, or why it is there."},
	{Name: "needs", Type: "VARCHAR", Doc: "Tables and facts that a run must have for it, separated by commas."},
	{Name: "plot", Type: "VARCHAR", Doc: "Kind of picture that --plot draws; null if it draws none."},
	{Name: "file", Type: "VARCHAR", Doc: "File of a query of your own; null for those of commq."}}

// listedQueries returns queries as rows.
func listedQueries(all []*queries.Query) queries.Rows {
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
	return queries.RowsOf(listedQueryColumns, rows)
}

// askOptions are the flags of one query.
type askOptions struct {
	answerOptions
	pictureOptions
	sql  bool // --sql
	args map[string]string
	// startup is the time that the answers leave out.
	startup queries.Startup
	// shared are the runs whose ranks shared cores, if the query is about times.
	shared []queries.SharedCores
	// leftOut says of which runs the compute times leave out what is neither computing nor MPI, if the query needs
	// them.
	leftOut []string
}

// newAskCommand makes the command of one query from its header.
func newAskCommand(a *app, l *library, q *queries.Query) *cobra.Command {
	o := askOptions{args: map[string]string{}}
	c := &cobra.Command{
		Use:     q.Name + " --run RUN",
		Short:   strings.TrimSuffix(q.Summary, "."),
		Long:    q.Summary,
		Example: exampleLines(q.Examples()),
		RunE: func(c *cobra.Command, _ []string) error {
			l.warnings(a, q.Name)
			return runAsk(c.Context(), a, c, q, &o)
		},
	}
	c.SetHelpFunc(func(c *cobra.Command, _ []string) {
		own := map[string]bool{}
		for _, p := range q.Params {
			own[p.Name] = true
		}
		a.printHelp(c, q.Help(helpWidth(a.stdout)), own)
	})
	o.flags(c, a)
	a.readsRuns(c)
	f := c.Flags()
	f.BoolVar(&o.sql, "sql", false, "print the SQL instead of running it; the duckdb shell runs what it prints")
	if q.Plot != nil {
		o.pictureFlags(c, "draw the rows into a `FILE`.png, .svg or .pdf, and print them only with --format "+
			"or --output")
		if q.Plot.Kind == "matrix" {
			o.colourFlag(c)
		}
	}
	for i, p := range q.Params {
		f.Var(&paramValue{p: p, args: o.args}, p.Name, firstSentence(p.Doc))
		completeParam(c, &q.Params[i])
	}
	return c
}

// firstSentence shortens a text to fit a flag's line; the full text is printed above the flags.
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

// Set adds a condition to earlier ones, which must hold too. Another value takes the place of an earlier one.
func (v *paramValue) Set(s string) error {
	err := v.p.Check(s)
	if earlier, given := v.args[v.p.Name]; given && v.p.Kind == "condition" {
		s = v.p.BothConditions(earlier, s)
	}
	v.args[v.p.Name] = s
	return err
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
	if err := o.checkSQL(c); err != nil {
		return err
	}
	runs, err := askedRuns(ctx, a, o.trino, o.runs)
	if err != nil {
		return err
	}
	if err := distinct(runs); err != nil {
		return err
	}
	if err := cmp.Or(q.CheckWindow(o.args, runs), q.CheckBase(o.args, runs)); err != nil {
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
	if note := o.startup.Note(); err == nil && note != "" && (o.format == "table" || o.plot != "") {
		a.note("%s", note)
	}
	if err == nil {
		noteLacking(a, runs, func(m *schema.Manifest) schema.Reads { return q.Reads(m, o.args) })
	}
	if err == nil && len(q.Origins) > 0 {
		noteCoarseTimes(a, runs)
		noteSharedCores(a, o.shared)
		noteLeftOut(a, o.leftOut)
	}
	return err
}

// noteLacking prints what each of the runs lacks of its program's calls, where an answer that reads such rows of it
// lacks them too. With --quiet it is silent about what was left out by request.
func noteLacking(a *app, runs []queries.Run, reads func(*schema.Manifest) schema.Reads) {
	for _, r := range runs {
		switch text := run.LeftOut(r.Name, r.Manifest, reads(r.Manifest), "this answer"); {
		case text == "":
		case r.Manifest.Counts.Dropped > 0:
			a.warn("%s", text)
		default:
			a.note("%s", text)
		}
	}
}

// noteLeftOut prints that compute times leave out sleep and the like, if o.leftOut has such sentences.
func noteLeftOut(a *app, sentences []string) {
	for _, s := range sentences {
		a.note("%s", s)
	}
}

// noteLeftOutOf prints that the compute times of a run leave out sleep and the like, if they do.
func noteLeftOutOf(ctx context.Context, a *app, r *run.Run) {
	if a.quiet {
		return
	}
	of := queries.Run{Name: r.Name, Dir: r.Dir, Manifest: r.Manifest}
	sentences, err := queries.LeftOutOf(ctx, []queries.Run{of}, queries.Options{Threads: 1})
	if err != nil {
		a.note("whether compute times of %s leave out sleep is not known: %v", r.Name, err)
	}
	noteLeftOut(a, sentences)
}

// noteSharedCores prints the names of the runs whose times are mostly waiting for a core.
func noteSharedCores(a *app, shared []queries.SharedCores) {
	for i, s := range shared {
		if i == 1 && len(shared) > 2 {
			a.note("the ranks of %s likewise, from %s to %s", counted(int64(len(shared)-1), "more run"), s.Run,
				shared[len(shared)-1].Run)
			return
		}
		a.note("%s", s.Note())
	}
}

// noteCoarseTimes prints the names of the runs whose times are too coarse for most queries about times.
func noteCoarseTimes(a *app, runs []queries.Run) {
	for _, r := range runs {
		if coarse := doctor.CoarseTimes(r.Manifest); coarse != "" {
			a.note("run %s: %s; shorter times are missing from the answer or rounded up to that (captured with "+
				"--time-resolution-ns)", r.Name, coarse)
		}
	}
}

// batches groups the runs by how the query takes them: one by one, or all together.
func batches(q *queries.Query, runs []queries.Run) [][]queries.Run {
	if q.OverRuns {
		return [][]queries.Run{runs}
	}
	return slices.Collect(slices.Chunk(runs, 1))
}

// ask asks the query about all runs, and passes the combined rows to use.
func (o *askOptions) ask(ctx context.Context, q *queries.Query, runs []queries.Run,
	use func(queries.Rows) error) error {
	answer := &answers{ctx: ctx, o: o, q: q, batches: batches(q, runs)}
	rows, err := queries.Concat(answer.next)
	if err != nil {
		return errors.Join(err, answer.close())
	}
	err = use(rows)
	return errors.Join(err, rows.Close(), answer.close())
}

// answers asks several batches one after the other, with one engine open at a time.
type answers struct {
	ctx     context.Context
	o       *askOptions
	q       *queries.Query
	batches [][]queries.Run
	asked   int // batches
	db      *queries.DB
}

func (s *answers) next() (queries.Rows, error) {
	if err := s.close(); err != nil || s.asked == len(s.batches) {
		return nil, err
	}
	batch := s.batches[s.asked]
	s.asked++
	var err error
	if s.db, err = queries.Open(s.ctx, batch, s.o.engine()); err != nil {
		return nil, err
	}
	if err := s.askAboutTimes(batch); err != nil {
		return nil, err
	}
	rows, err := s.db.Ask(s.ctx, s.q, s.o.args)
	if err == nil && len(s.batches) > 1 {
		rows = queries.InRun(batch[0].Name, rows)
	}
	return rows, err
}

// askAboutTimes asks the runs of a batch what people must know about their times, if they can answer at all.
func (s *answers) askAboutTimes(batch []queries.Run) error {
	for _, r := range batch {
		if s.q.Check(r) != nil {
			return nil // Ask reports it
		}
	}
	if s.q.LeavesOutStartup(s.o.args) {
		startup, err := s.db.Startup(s.ctx)
		if err != nil {
			return err
		}
		s.o.startup.Add(startup)
	}
	if len(s.q.Origins) == 0 {
		return nil
	}
	shared, err := s.db.SharedCores(s.ctx)
	if !slices.Contains(s.q.Needs, "compute") {
		s.o.shared = append(s.o.shared, shared...)
		return err
	}
	for _, r := range shared { // the CPU clock does not count waiting for a core
		if left := r.LeftOut(); left != "" {
			s.o.leftOut = append(s.o.leftOut, left)
		}
	}
	return err
}

func (s *answers) close() error {
	if s.db == nil {
		return nil
	}
	db := s.db
	s.db = nil
	return db.Close()
}

// checkSQL refuses flags about rows with --sql, which asks nothing.
func (o *askOptions) checkSQL(c *cobra.Command) error {
	for _, name := range []string{"plot", "format"} {
		if f := c.Flags().Lookup(name); o.sql && f != nil && f.Changed {
			return fmt.Errorf("--%s %s: --sql prints SQL, not rows; leave out one of them", name, f.Value)
		}
	}
	return nil
}

// printSQL prints the SQL that would run, or writes it to the file of --output.
func printSQL(ctx context.Context, a *app, q *queries.Query, o *askOptions, runs []queries.Run) error {
	return a.writeAnswer(o.output, "sql", func(w io.Writer) error { return writeSQL(ctx, w, q, o, runs) })
}

// writeSQL writes the views that the SQL needs, then the SQL that would run.
func writeSQL(ctx context.Context, w io.Writer, q *queries.Query, o *askOptions, runs []queries.Run) error {
	for _, batch := range batches(q, runs) {
		db, err := queries.Open(ctx, batch, o.engine())
		if err != nil {
			return err
		}
		text, err := db.Text(ctx, q, o.args)
		whole := db.Runnable(text)
		if err := errors.Join(err, db.Close()); err != nil {
			return err
		}
		names := make([]string, len(batch))
		for i, run := range batch {
			names[i] = printable.Line(run.Name) // a line break would end the comment
		}
		if _, err := fmt.Fprintf(w, "-- %s of run %s\n%s;\n", q.Name, strings.Join(names, ", "), whole); err != nil {
			return err
		}
	}
	return nil
}

func (o *askOptions) checkPlot() error {
	if o.plot != "" && o.plot == o.output {
		return fmt.Errorf("--plot %s: --output is the same file; name another", o.plot)
	}
	return o.checkPicture()
}

// drawAnswer draws the rows, and also prints them with --format or --output.
func drawAnswer(ctx context.Context, a *app, c *cobra.Command, q *queries.Query, o *askOptions,
	runs []queries.Run) error {
	if err := q.CheckRuns(len(runs)); err != nil {
		return err
	}
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
	if err := o.writePicture(d); err != nil {
		return err
	}
	if !c.Flags().Changed("format") && o.output == "" {
		a.note("%s drawn", o.plot)
		return nil
	}
	return o.print(a, c, queries.Again(kept))
}
