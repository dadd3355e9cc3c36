package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/capture/simrank"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

type ingestOptions struct {
	run     string
	job     string
	filter  filterOptions
	partial bool
	keep    bool
	// resolution is --time-resolution-ns.
	resolution int64
	// noSymbols is --no-symbols.
	noSymbols bool
}

func newIngestCommand(a *app) *cobra.Command {
	var o ingestOptions
	c := &cobra.Command{
		Use:   "ingest [flags] spool",
		Short: "Make a run from the records of commq exec or commq env, or of a crashed job",
		Long: `ingest reads the records that the ranks of a program left in the spool folder, matches sends with receives, and writes
a run. The records are removed when the run is written, unless --keep is given. Where every node has a spool of its own,
copy the files of all into one folder first; several jobs may lie in one folder (--job chooses).

What a crashed or killed job recorded until then becomes a run too: calls that never returned have no end, and after the
summary stands what each rank was doing and who waited for whom (commq hang SPOOL has all of it).`,
		Example: `  commq ingest /scratch/spool --run bt.C.64
  commq ingest /scratch/spool --run crashed --partial --keep`,
		Args:              wantArgs(1, 1, "the spool folder"),
		ValidArgsFunction: oneFolder,
		RunE:              func(c *cobra.Command, args []string) error { return runIngest(c.Context(), a, &o, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "name of the run to write (default: the program's name and the number of ranks, bt.C.x.64)")
	f.StringVar(&o.job, "job", "", "id of the job, where the spool has several")
	o.filter.flags(c)
	f.Int64Var(&o.resolution, "time-resolution-ns", 1, "round times down to multiples of this power of two: smaller runs")
	f.BoolVar(&o.partial, "partial", false, "accept a spool in which ranks are missing or records were cut off")
	f.BoolVar(&o.keep, "keep", false, "keep the records")
	register(c, completeJobs, "job")
	completeNothing(c, "run", "time-resolution-ns")
	f.BoolVar(&o.noSymbols, "no-symbols", false, "do not look up functions and source lines of call sites: module, build id and offset are there all the same")
	return c
}

// filterOptions are the flags that say which rows a run keeps.
type filterOptions struct {
	record string   // --record
	calls  []string // --calls
}

func (o *filterOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.record, "record", ingest.RecordAll, "rows of events to keep: all; messages (matched messages, collectives and what is unmatched); collectives (no point-to-point communication)")
	f.StringSliceVar(&o.calls, "calls", nil, `rows of events to keep by MPI name: patterns as MPI_I*, or with - in front those to leave out: "-MPI_Wait*"; messages go with the rows that sent them`)
	complete(c, "record", ingest.RecordAll, ingest.RecordMessages, ingest.RecordCollectives)
	register(c, completeCalls, "calls")
}

func (o *filterOptions) check() error {
	if err := oneOf("record", o.record, ingest.RecordAll, ingest.RecordMessages, ingest.RecordCollectives); err != nil {
		return err
	}
	if err := ingest.CheckCalls(o.calls); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

// runIngest writes a job of the spool as a run and removes its records.
func runIngest(ctx context.Context, a *app, o *ingestOptions, spoolDir string) error {
	if err := o.filter.check(); err != nil {
		return err
	}
	if err := checkResolution(o.resolution); err != nil {
		return err
	}
	if _, err := simrank.Wait(ctx, spoolDir, simulatorPatience); err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	job, err := ingest.Find(spoolDir, o.job)
	if err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	name := o.run
	if name == "" {
		name = fmt.Sprintf("%s.%d", writer.NameFor(filepath.Base(job.Program)), job.Ranks)
	}
	out, err := writer.Create(a.storeDir(), name, writer.Options{})
	if err != nil {
		return err
	}
	defer out.Abort()
	m, err := ingestJob(ctx, a, spoolDir, out, ingest.Options{Record: o.filter.record, Calls: o.filter.calls, Job: job.ID, Partial: o.partial, TimeResolutionNs: o.resolution, NoSymbols: o.noSymbols, Origin: schema.Origin{Commq: version}})
	if err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	printSummary(a.summaries(), m)
	printStuck(a.summaries(), m, spoolDir)
	if o.keep {
		return nil
	}
	return removeRecords(spoolDir, slices.Concat(job.Files, job.Summaries))
}

// removeRecords removes the files of a job, and the folder when nothing else is in it.
func removeRecords(dir string, files []string) error {
	var errs []error
	for _, name := range files {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	_ = os.Remove(dir) // fails where it is not empty
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the run is written, but its records could not be removed: %w", err)
	}
	return nil
}
