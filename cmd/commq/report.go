package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/doctor"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/report"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// reportOptions are the flags of commq report.
type reportOptions struct {
	runs    []string // --run
	output  string   // --output
	more    []string // --query
	limit   int      // --limit
	memory  int      // --memory
	threads int      // --threads
}

func newReportCommand(a *app) *cobra.Command {
	var o reportOptions
	c := &cobra.Command{
		Use:   "report RUN...",
		Short: "Write an HTML page about runs: why they are slow, facts, pictures and tables",
		Long: `report writes one HTML file about one or several runs. Any browser shows it, without a network or
other files. It begins with what commq diagnose finds, each cause with a picture, then has what each run is and how it was captured, whether the
recording is sound (commq doctor), and the five measures
(density, data-density, ratio, collectives, sizes; for several runs also scaling) as pictures and as tables that sort
and copy. Runs with times and every call also get efficiency, wait-states, time-by-rank and callsite-time. Each answer has the
command for it, or why a run cannot give it. --query adds more queries, with their defaults.

RUN is a name in the store, a path, or a pattern of either ('sp.A.*').`,
		Example: `  commq report bt.C.64 -o bt.html
  commq report 'sp.A.*' -o sp.html
  commq report cg.A.16 --query timeline --query unmatched`,
		RunE: func(c *cobra.Command, _ []string) error { return runReport(c.Context(), a, &o, o.runs) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.runs, "run", nil, "`RUN` to report on: a name in the store, a path, or a pattern of either; "+
		"may be repeated")
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	f.StringVarP(&o.output, "output", "o", "report.html", "`FILE` to write the page to")
	f.StringArrayVar(&o.more, "query", nil, "query to add to the measures; may be repeated")
	f.IntVar(&o.limit, "limit", 200, "at most `N` rows of a table")
	f.IntVar(&o.memory, "memory", 4096, "memory in `MIB` that the engine may use before it spills to the folder "+
		"for temporary files")
	f.IntVar(&o.threads, "threads", 0, "number `N` of cores that the engine may use (default: all)")
	completeQueries(a, c, "query")
	a.writes(c)
	completeFiles(c, "output", "html")
	completeNothing(c, "limit", "memory", "threads")
	return c
}

func runReport(ctx context.Context, a *app, o *reportOptions, args []string) error {
	switch {
	case len(args) == 0:
		return errNoRun
	case o.limit < 1:
		return fmt.Errorf("--limit %d: want at least 1", o.limit)
	case o.threads < 0:
		return fmt.Errorf("--threads %d: want a number of cores, 0 for all", o.threads)
	}
	if err := checkMemory(o.memory, leastMemory); err != nil {
		return err
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
	var lacking []string
	err = a.writeFile(o.output, func(w io.Writer) (err error) {
		lacking, err = writeReport(ctx, a, o, l.all, runs, w)
		return err
	})
	if err != nil {
		return err
	}
	a.note("%s written", o.output)
	for _, text := range lacking {
		a.note("%s", text)
	}
	return nil
}

// writeReport writes the page, and returns what it says that the runs lack.
func writeReport(ctx context.Context, a *app, o *reportOptions, all []*queries.Query, runs []queries.Run,
	w io.Writer) (lacking []string, err error) {
	show, clear := statusLine(a)
	defer clear()
	inputs := make([]report.Input, len(runs))
	for i, run := range runs {
		in, err := reportInput(ctx, a, run, o.memory)
		if err != nil {
			return nil, err
		}
		inputs[i] = in
	}
	r, err := report.Build(ctx, inputs, report.Options{
		Engine: queries.Options{MemoryBytes: int64(o.memory) << 20, Threads: o.threads},
		More:   o.more, Queries: all, Rows: o.limit, Version: version,
		Progress: func(step string, done, total int) {
			show(fmt.Sprintf("report: %d of %d: %s", done+1, total, report.Printable(step)))
		},
	})
	if err != nil {
		return nil, err
	}
	return r.Lacking, r.Write(w)
}

// reportInput returns the facts of a run, and how to find what the report says of it besides the answers of queries.
func reportInput(ctx context.Context, a *app, r queries.Run, memoryMiB int) (report.Input, error) {
	in := report.Input{Run: r, Args: runArgs(a, r), Lacks: func(reads schema.Reads) string {
		return run.LeftOut(r.Name, r.Manifest, reads, "this report")
	}}
	found := run.Found{Name: r.Name, Dir: r.Dir, Manifest: r.Manifest}
	for _, fact := range append(found.Facts(false), found.CaptureFacts()...) {
		in.Facts = append(in.Facts, report.Fact(fact))
	}
	tells, err := run.Discloses(ctx, r.Dir, r.Manifest)
	if err != nil {
		return in, err
	}
	if tells != "" {
		in.Facts = append(in.Facts, report.Fact{Name: "discloses", Value: tells})
	}
	in.Examine = func(ctx context.Context, in *report.Input) error {
		list, doubts, err := doctor.ExamineContents(ctx, r.Dir, doctorEngine)
		if err != nil {
			return err
		}
		for _, x := range list {
			in.Findings = append(in.Findings,
				report.Finding{Check: x.Check, Status: string(x.Status), Found: x.Found, Do: x.Do})
		}
		in.Diagnosis, err = reportDiagnosis(ctx, a, found, memoryMiB, doubtTexts(doubts))
		return err
	}
	return in, nil
}

// runArgs returns the arguments of commq query that name a run: its name if it is in the store, else its folder.
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
