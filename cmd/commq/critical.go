package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/queries/plot"
	"github.com/commq/commq/run"
)

// criticalOptions are the flags of commq critical-path.
type criticalOptions struct {
	run    string   // --run
	by     []string // --by
	until  string   // --until
	init   string   // --init
	format string   // --format
	pictureOptions
	limit int // --limit
}

// pathKeys are the values of --by; sitesAndCalls is its default.
var pathKeys, sitesAndCalls = []string{"callsite", "call", "rank"}, []string{"callsite", "call"}

func newCriticalPathCommand(a *app) *cobra.Command {
	var o criticalOptions
	c := &cobra.Command{
		Use:   "critical-path RUN",
		Short: "Show which calls a run's duration consists of: its critical path",
		Long: `critical-path walks a run back from the end of its last rank. Where that rank waited for a message, or
for others in a collective, the path goes on in the rank that it waited for. The pieces add up to the
program's duration, from the end of MPI_Init on the rank that the path leads to, to the last start of MPI_Finalize (with
--init include, of the two too), to the nanosecond: making anything else faster would not make the run shorter. Times are of computing before a call, of being
inside point-to-point calls, collective calls and others, and of transfer: the time after the other side of a message
was ready. docs/method/critical-path.md has the rule.

The run needs times and the rows of all its calls; commq simulate --critical-path shows the path on another machine.`,
		Example: `  commq critical-path mg.W.16
  commq critical-path --run mg.W.16 --by call
  commq critical-path --run mg.W.16 --by rank --format csv
  commq critical-path --run mg.W.16 --plot path.png`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf("format", o.format, runsFormats[:]...); err != nil {
				return err
			}
			return runCriticalPath(c.Context(), a, &o, c.Flags().Changed("format"))
		},
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "`RUN` to walk: a name in the store, or a path")
	f.StringSliceVar(&o.by, "by", sitesAndCalls, "what rows are grouped by: any of "+strings.Join(pathKeys, ", ")+
		", separated by commas")
	f.StringVar(&o.until, "until", "needed", "which ranks a rank waits for in a collective: needed, those whose data "+
		"it needs, or last, the last rank of all")
	f.StringVar(&o.init, "init", "leave-out", "whether MPI_Init and MPI_Finalize are part of the path: leave-out or "+
		"include")
	f.IntVar(&o.limit, "limit", 0, "print at most `N` rows, 0 for all")
	a.writes(c)
	o.pictureFlags(c, "draw on which rank the path is when into a `FILE`.png, .svg or .pdf; the rows are printed "+
		"only with --format")
	formatFlag(c, &o.format)
	a.exactFlag(c)
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	complete(c, "by", append(pathKeys, "callsite,rank", "call,rank", "callsite,call,rank")...)
	complete(c, "until", "needed", "last")
	complete(c, "init", "leave-out", "include")
	completeNothing(c, "limit")
	return c
}

func (o *criticalOptions) check() error {
	switch {
	case o.run == "":
		return errNoRun
	case len(o.by) == 0:
		return fmt.Errorf("--by: want any of %s, separated by commas", strings.Join(pathKeys, ", "))
	case o.limit < 0:
		return fmt.Errorf("--limit %d: want a number of rows, 0 for all", o.limit)
	}
	for _, key := range o.by {
		if err := oneOf("by", key, pathKeys...); err != nil {
			return err
		}
	}
	if err := oneOf("init", o.init, "leave-out", "include"); err != nil {
		return err
	}
	return errors.Join(oneOf("until", o.until, "needed", "last"), o.checkPicture())
}

func runCriticalPath(ctx context.Context, a *app, o *criticalOptions, rowsToo bool) error {
	if err := o.check(); err != nil {
		return err
	}
	found, err := run.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	r, err := run.Open(ctx, found.Dir, critical.Need)
	if err != nil {
		return err
	}
	path, err := critical.FromRun(ctx, r,
		critical.Options{Last: o.until == "last", LeaveOutStartup: o.init == "leave-out", Trace: o.plot != ""})
	if err != nil {
		return err
	}
	if o.plot != "" {
		if err := o.writePicture(pathPicture(path, r)); err != nil {
			return err
		}
		if !rowsToo {
			a.note("%s drawn", o.plot)
			return noteSharedCoresOf(ctx, a, found)
		}
	}
	if o.format == "table" {
		if err := pathSummary(a, path, r.Name); err != nil {
			return err
		}
	}
	err = a.writeRows(o.format, output.Limit(pathRows(path, o.by, r.Place(ctx)), o.limit))
	startup := queries.Startup{Ns: path.StartupNs, RunNs: path.StartupNs + path.DurationNs}
	if note := startup.Note(); err == nil && o.format == "table" && note != "" {
		a.note("%s", note)
	}
	if err != nil {
		return err
	}
	return noteSharedCoresOf(ctx, a, found)
}

// noteSharedCoresOf prints that the ranks of a run shared cores, if they did.
func noteSharedCoresOf(ctx context.Context, a *app, r run.Found) error {
	if r.Manifest.TimeOrigin != "measured" {
		return nil
	}
	shared, err := queries.SharedCoresOf(ctx, queriedRuns([]run.Found{r}), queries.Options{Threads: 1})
	noteSharedCores(a, shared)
	return err
}

// pathSteps and pathRanks limit the resolution of the picture: steps of time and rows of ranks of a few pixels each.
const pathSteps, pathRanks = 550, 350

// pathPicture draws on which rank the path is when, in the colours of its kinds, and its changes of rank as lines.
func pathPicture(p *critical.Path, r *run.Run) plot.Drawing {
	t := &plot.Timeline{Path: true, Title: "Critical path: " + r.Name, Series: "part of the path",
		Kinds: []string{"compute", "transfer", "other",
			"collective", "point-to-point"}}
	ranks := int(r.Manifest.Ranks)
	for _, s := range p.Steps(ranks, pathSteps, pathRanks) {
		for kind, ns := range s.Ns {
			if ns > 0 {
				t.AddTime(int(s.Rank), int(s.Ranks), float64(s.FromNs), float64(s.ToNs), critical.Kind(kind).String(),
					float64(ns))
			}
		}
	}
	t.Ranks = ranks
	for _, c := range p.Changes() {
		t.AddMessage(int(c.From), int(c.To), float64(c.AtNs), float64(c.AtNs))
	}
	t.Note = counted(int64(p.RankChanges), "change") + " of rank"
	if p.RankChanges > 0 && p.Changes() == nil {
		t.Note += ", too many for lines"
	}
	if p.DurationNs > 0 {
		t.Note = p.Shares() + "; " + t.Note
	}
	return t
}

// pathSummary prints one line about the path, or nothing if the run takes no time.
func pathSummary(a *app, p *critical.Path, name string) error {
	if p.DurationNs == 0 {
		return nil
	}
	_, err := fmt.Fprintf(a.out(), "critical path of %s: %s back from rank %d, with %s: %s\n\n", name,
		a.duration(p.DurationNs), p.LastRank, counted(int64(p.RankChanges), "change")+" of rank", p.Shares())
	return err
}

// pathKeyColumns are the columns that the path can be grouped by, in the order of pathKeys.
var pathKeyColumns = []queries.Column{{Name: "callsite", Type: "VARCHAR",
	Doc: "Place of the call in the program; null if it is not known."},
	{Name: "call", Type: "VARCHAR", Doc: "MPI function that the time was spent in, or before."},
	{Name: "rank", Type: "INTEGER", Doc: "Rank that the path leads through."}}

// pathColumns are the columns of times.
var pathColumns = []queries.Column{
	{Name: "path_ns", Type: "BIGINT", Unit: "ns", Doc: "Time of the path, the sum of the five times below."},
	{Name: "share", Type: "DOUBLE", Unit: "1", Share: true, Doc: "The same as a fraction of the path's length."},
	{Name: "compute_ns", Type: "BIGINT", Unit: "ns", Doc: "Time of computing before the calls."},
	{Name: "point_to_point_ns", Type: "BIGINT", Unit: "ns", Doc: "Time inside point-to-point calls."},
	{Name: "transfer_ns", Type: "BIGINT", Unit: "ns", Doc: "Time after the other side of a message was ready."},
	{Name: "collective_ns", Type: "BIGINT", Unit: "ns", Doc: "Time inside collective calls."},
	{Name: "other_ns", Type: "BIGINT", Unit: "ns", Doc: "Time inside other calls."},
	{Name: "pieces", Type: "BIGINT", Unit: "1", Doc: "Pieces of the path."}}

// pathRows groups the path by some of pathKeys, the longest part first.
func pathRows(p *critical.Path, by []string, place func(site int32) string) queries.Rows {
	keys := make([]critical.Key, len(by))
	for i, name := range by {
		keys[i] = critical.Key(name)
	}
	var rows [][]any
	for _, part := range p.Parts(keys, place) {
		var site any
		if part.Callsite != nil {
			site = *part.Callsite
		}
		row := groupedBy[any](by, site, part.Call, part.Rank)
		rows = append(rows, append(row, part.PathNs, part.Share, part.ComputeNs, part.PointToPointNs, part.TransferNs,
			part.CollectiveNs, part.OtherNs, part.Pieces))
	}
	columns := groupedBy(by, pathKeyColumns[0], pathKeyColumns[1], pathKeyColumns[2])
	return queries.RowsOf(append(columns, pathColumns...), rows)
}

// groupedBy picks the values that belong to the keys of by, from one value per key of pathKeys.
func groupedBy[T any](by []string, values ...T) (picked []T) {
	for i, key := range pathKeys {
		if slices.Contains(by, key) {
			picked = append(picked, values[i])
		}
	}
	return picked
}

// rounded6 rounds a number to six decimals.
func rounded6(x float64) float64 { return math.Round(x*1e6) / 1e6 }
