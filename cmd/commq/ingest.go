package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

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
	// parts, part and wait are --parts, --part and --wait.
	parts, part int
	wait        time.Duration
}

func newIngestCommand(a *app) *cobra.Command {
	var o ingestOptions
	c := &cobra.Command{
		Use:   "ingest [flags] spool",
		Short: "Make a run from the records of commq exec or commq env, or of a crashed job",
		Long: `ingest reads the records that the ranks of a program left in the spool folder, matches sends with receives, and writes
a run. The records are removed when the run is written, unless --keep is given. Where every node has a spool of its own,
copy the files of all into one folder first, or start an ingest on every node with --parts; several jobs may lie in one
folder (--job chooses).

With --parts N the job's records are in N folders, each on its own node, and N processes ingest them together into a store
that all see, each those of its own folder:

    srun --ntasks-per-node=1 commq ingest /tmp/spool --run r --parts 8

Each reads and writes its part, and waits for the others where it needs them; the one that finishes last makes the run. The
run is the same as that of one ingest of all records, and appears whole or not at all. Where a process is killed, start it
again: what was done is kept in the hidden folder .RUN.parts of the store. Where all nodes see one spool folder, --part I
(from 0; $SLURM_PROCID) gives each process its share of the ranks.

What a crashed or killed job recorded until then becomes a run too: calls that never returned have no end, and after the
summary stands what each rank was doing and who waited for whom (commq hang SPOOL has all of it).`,
		Example: `  commq ingest /scratch/spool --run bt.C.64
  commq ingest /scratch/spool --run crashed --partial --keep
  srun --ntasks-per-node=1 commq ingest /tmp/spool --run r --parts 8`,
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
	f.IntVar(&o.parts, "parts", 0, "ingest with so many processes, each the records of its own node's folder; all are given the same number")
	f.IntVar(&o.part, "part", -1, "with --parts where all nodes see one spool folder: which share of the ranks this process ingests, from 0")
	f.DurationVar(&o.wait, "wait", time.Hour, "with --parts: how long to wait for something new from the other processes; 0 is for ever")
	completeNothing(c, "run", "time-resolution-ns", "parts", "part", "wait")
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
	if err := o.checkParts(); err != nil {
		return fmt.Errorf("ingest: %w", err)
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
	options := ingest.Options{Record: o.filter.record, Calls: o.filter.calls, Job: job.ID, Partial: o.partial, TimeResolutionNs: o.resolution, NoSymbols: o.noSymbols, Origin: schema.Origin{Commq: version}}
	if o.parts > 0 {
		return o.ingestPart(ctx, a, spoolDir, name, job, options)
	}
	out, err := writer.Create(a.storeDir(), name, writer.Options{})
	if err != nil {
		return err
	}
	defer out.Abort()
	m, err := ingestJob(ctx, a, spoolDir, out, options)
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

// checkParts says what is wrong with --parts, --part and --wait.
func (o *ingestOptions) checkParts() error {
	switch {
	case o.parts < 0:
		return fmt.Errorf("--parts %d: want the number of processes that ingest the job together", o.parts)
	case o.part >= 0 && o.parts == 0:
		return fmt.Errorf("--part %d: say with --parts of how many", o.part)
	case o.part < -1, o.part >= max(o.parts, 1):
		return fmt.Errorf("--part %d: want 0 to %d", o.part, o.parts-1)
	case o.wait < 0:
		return fmt.Errorf("--wait %v: want how long to wait, or 0", o.wait)
	}
	return nil
}

// ingestPart ingests the records of one node, beside the processes that do so on others.
func (o *ingestOptions) ingestPart(ctx context.Context, a *app, spoolDir, name string, job *ingest.JobInfo, options ingest.Options) error {
	parts, err := writer.OpenParts(a.storeDir(), name, job.ID)
	if err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	if parts == nil {
		fmt.Fprintf(a.stderr, "run %s holds job %s already; its records in %s are not needed any more\n", name, job.ID, spoolDir)
		return nil
	}
	po := ingest.PartOptions{Options: options, Parts: o.parts, Patience: o.wait}
	if o.part >= 0 {
		po.Share, po.Shares = o.part, o.parts
	}
	if !a.quiet {
		po.Waiting = func(what string) { fmt.Fprintf(a.stderr, "waiting for %s\n", what) }
	}
	update, finish := newProgress(a, "ingesting", "calls")
	po.Progress = update
	m, err := ingest.IngestPart(ctx, spoolDir, parts, po)
	finish()
	if err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	if m != nil {
		printSummary(a.summaries(), m)
	}
	if o.keep {
		return nil
	}
	files, err := ingest.ShareOf(job, po.Share, po.Shares)
	if err != nil {
		return err
	}
	return removeRecords(spoolDir, files)
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
