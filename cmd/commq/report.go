package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/report"
	"github.com/commq/commq/schema"
)

// reportOptions are the flags of commq report.
type reportOptions struct {
	output  string   // --output
	more    []string // --query
	rows    int      // --rows
	memory  int      // --memory-mib
	threads int      // --threads
}

func newReportCommand(a *app) *cobra.Command {
	var o reportOptions
	c := &cobra.Command{
		Use:   "report RUN...",
		Short: "Write one HTML page about runs: what they are, findings, pictures and tables",
		Long: `report writes one HTML file about one or several runs that any browser shows, without a network and without any other
file: what each run is and how it was captured, what commq doctor finds in it, the five measures (density, data-density,
ratio, collectives, sizes; of several runs also scaling) as pictures and as tables that sort and copy, of runs that keep
times and every call also efficiency, wait-states and time-by-rank, and the commands that get each of them. --query puts
more queries on the page, with their defaults. What a run cannot answer is said there.

RUN is a name in the store, a path, or a pattern of either ('sp.A.*').`,
		Example: `  commq report bt.C.64 -o bt.html
  commq report 'sp.A.*' -o sp.html
  commq report bt.C.64 --query calls --query unmatched`,
		Args:              wantArgs(1, anyNumber, "names of runs"),
		ValidArgsFunction: completeRuns(a),
		RunE:              func(c *cobra.Command, args []string) error { return runReport(c.Context(), a, &o, args) },
	}
	f := c.Flags()
	f.StringVarP(&o.output, "output", "o", "report.html", "file to write the page to")
	f.StringArrayVar(&o.more, "query", nil, "query to ask besides the measures; give it several times for several")
	f.IntVar(&o.rows, "rows", 200, "rows that a table has at most")
	f.IntVar(&o.memory, "memory-mib", 4096, "memory that the engine may use, in MiB; beyond it spills to the folder for temporary files")
	f.IntVar(&o.threads, "threads", 0, "cores that the engine may use (default: all)")
	completeQueries(a, c, "query")
	completeFiles(c, "output", "html")
	completeNothing(c, "rows", "memory-mib", "threads")
	return c
}

func runReport(ctx context.Context, a *app, o *reportOptions, args []string) error {
	switch {
	case o.rows < 1:
		return fmt.Errorf("--rows %d: want at least 1", o.rows)
	case o.memory < 64:
		return fmt.Errorf("--memory-mib %d: want at least 64", o.memory)
	case o.threads < 0:
		return fmt.Errorf("--threads %d: want a number of cores, 0 for all", o.threads)
	}
	l, err := a.queryLibrary()
	if err != nil {
		return err
	}
	for _, name := range o.more {
		if _, err := l.find(name); err != nil {
			return fmt.Errorf("--query %s: %w", name, err)
		}
		l.warnings(a, name)
	}
	runs, err := findRuns(a, args)
	if err != nil {
		return err
	}
	if err := distinct(runs); err != nil {
		return err
	}
	err = writeFile(o.output, func(w io.Writer) error { return writeReport(ctx, a, o, l.all, runs, w) })
	if err == nil {
		a.note("%s written", o.output)
	}
	return err
}

func writeReport(ctx context.Context, a *app, o *reportOptions, all []*queries.Query, runs []queries.Run, w io.Writer) error {
	show, clear := statusLine(a)
	defer clear()
	inputs := make([]report.Input, len(runs))
	for i, run := range runs {
		show(fmt.Sprintf("report: check of %s", report.Printable(run.Name)))
		in, err := reportInput(ctx, a, run)
		if err != nil {
			return err
		}
		inputs[i] = in
	}
	r, err := report.Build(ctx, inputs, report.Options{
		Engine: queries.Options{MemoryBytes: int64(o.memory) << 20, Threads: o.threads},
		More:   o.more, Queries: all, Rows: o.rows, Version: version,
		Progress: func(step string, done, total int) {
			show(fmt.Sprintf("report: %d of %d: %s", done+1, total, report.Printable(step)))
		},
	})
	if err != nil {
		return err
	}
	return r.Write(w)
}

// reportInput is what the report says of a run before any query of it.
func reportInput(ctx context.Context, a *app, run queries.Run) (report.Input, error) {
	in := report.Input{Run: run, Args: runArgs(a, run)}
	fact := func(name, format string, args ...any) {
		in.Facts = append(in.Facts, report.Fact{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	runLines(fact, run.Dir, run.Manifest)
	captureLines(fact, run.Manifest)
	var c checkup
	if err := c.ofRun(ctx, run); err != nil {
		return in, err
	}
	c.warnings(run.Manifest)
	for _, x := range c.checks {
		in.Findings = append(in.Findings, report.Finding{Check: x.Check, Status: x.Status, Found: x.Found, Do: x.Do})
	}
	return in, nil
}

// captureLines say how a run was captured.
func captureLines(line func(name, format string, args ...any), m *schema.Manifest) {
	if m.Origin.Label != "" {
		line("label", "%s", m.Origin.Label)
	}
	if len(m.Origin.Hosts) > 0 {
		line("hosts", "%s", strings.Join(m.Origin.Hosts, ", "))
	}
	with := []string{"record " + m.Record, "clock " + m.ComputeClock, "hash " + m.Hash}
	if m.HashVerify {
		with[2] += ", verified"
	}
	switch {
	case m.Callsites:
		with = append(with, "call sites of "+counted(int64(max(m.Stack, 1)), "frame"))
	default:
		with = append(with, "no call sites")
	}
	if m.Counters != "" {
		with = append(with, "counters "+m.Counters)
	}
	if len(m.Filters) > 0 {
		with = append(with, "filters "+strings.Join(m.Filters, " "))
	}
	line("captured with", "%s", strings.Join(with, "; "))
	line("written by", "commq %s, schema version %d", m.Origin.Commq, m.SchemaVersion)
}

// runArgs are the arguments of commq query that name a run: its name where it lies in the store, else its folder.
func runArgs(a *app, run queries.Run) []string {
	store, err := filepath.Abs(a.storeDir())
	if err == nil && filepath.Dir(run.Dir) == store {
		if a.store != "" {
			return []string{"--store", a.store, "--run", run.Name}
		}
		return []string{"--run", run.Name}
	}
	return []string{"--run", run.Dir}
}
