package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/capture/simrank"
	"github.com/commq/commq/schema"
)

type ingestOptions struct {
	name    string // --name
	job     string // --job
	filter  filterOptions
	partial bool // --partial
	keep    bool // --keep
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
		Short: "Make a run from the records of commq exec or of a crashed job",
		Long: `ingest reads the records that the ranks of a program wrote to the spool folder, matches sends with
receives, and writes a run. It then removes the records, unless --keep is given. If every node has its own spool,
copy the files of all into one folder first, or ingest on every node with --parts. A folder may have several jobs;
--job chooses one.

With --parts N, N processes ingest the records of N folders, each on its own node, together into a store that all
see:

    srun --ntasks-per-node=1 commq ingest /tmp/spool --name r --parts 8

Each reads and writes its part and waits for the others when it needs them; the last to finish makes the run. The run
is the same as that of one ingest of all records, and appears complete or not at all. If a process is killed, start
it again: finished work is kept in the hidden folder .RUN.parts of the store. If all nodes see one spool folder,
--part I (from 0) gives each process its share of the ranks:

    srun --ntasks-per-node=1 \
        sh -c 'commq ingest spool --name r --parts 8 --part $SLURM_PROCID'

A crashed or killed job becomes a run with what it recorded: calls that never returned have no end. After the summary
ingest prints what each rank was doing and who waited for whom (commq watch --hang SPOOL prints all of it).`,
		Example: `  commq ingest /scratch/spool --name bt.C.64
  commq ingest /scratch/spool --name crashed --partial --keep
  srun --ntasks-per-node=1 commq ingest /tmp/spool --name r --parts 8`,
		Args:              wantArgs(1, 1, "the spool folder"),
		ValidArgsFunction: oneFolder,
		RunE: func(c *cobra.Command, args []string) error {
			return runIngest(c.Context(), a, &o, args[0])
		},
	}
	f := c.Flags()
	f.StringVar(&o.name, "name", "", "`NAME` of the run to write (default: the program's name and the number of "+
		"ranks, bt.C.x.64)")
	f.StringVar(&o.job, "job", "", "id of the job, if the spool has several")
	o.filter.flags(c)
	f.Int64Var(&o.resolution, "time-resolution-ns", 1,
		"round times down to multiples of this power of two: smaller runs")
	f.BoolVar(&o.partial, "partial", false, "accept a spool in which ranks are missing or records were cut off")
	f.BoolVar(&o.keep, "keep", false, "keep the records")
	register(c, completeJobs, "job")
	f.IntVar(&o.parts, "parts", 0, "number of processes that ingest together, each the records of its own node's "+
		"folder")
	f.IntVar(&o.part, "part", -1, "with --parts if all nodes see one spool folder: the share of the ranks for "+
		"this process, from 0")
	noDefault(f, "part")
	f.DurationVar(&o.wait, "wait", time.Hour,
		"with --parts: how long to wait for progress of the other processes; 0 is forever")
	a.writes(c)
	completeNothing(c, "name", "time-resolution-ns", "parts", "part", "wait")
	f.BoolVar(&o.noSymbols, "no-symbols", false,
		"do not look up functions and source lines of call sites; module, build id and offset are kept")
	return c
}

// filterOptions are the flags that choose the rows of a run.
type filterOptions struct {
	record string   // --record
	calls  []string // --calls
}

func (o *filterOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.record, "record", ingest.RecordAll,
		"rows of events to keep: all; messages (matched messages, collectives and what is unmatched); collectives "+
			"(no point-to-point communication)")
	f.StringSliceVar(&o.calls, "calls", nil, `rows of events to keep by MPI name: patterns such as MPI_I*, or with a leading - those to leave out: "-MPI_Wait*"; messages are kept with the rows that sent them`)
	complete(c, "record", ingest.RecordAll, ingest.RecordMessages, ingest.RecordCollectives)
	register(c, completeCalls, "calls")
}

func (o *filterOptions) check() error {
	if err := oneOf("record", o.record, ingest.RecordAll, ingest.RecordMessages, ingest.RecordCollectives); err != nil {
		return err
	}
	if err := ingest.CheckCalls(o.calls, o.record); err != nil {
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
	if err := checkSpool(spoolDir); err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	died, err := simrank.Wait(ctx, spoolDir, simulatorPatience)
	if err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	tellDied(a, died)
	options := o.partOptions(a)
	update, finish := newProgress(a, "ingesting", "calls")
	options.Progress = update
	done, err := ingest.IngestInto(ctx, spoolDir, a.storeDir(), o.name, options)
	finish()
	switch {
	case err != nil:
		return fmt.Errorf("ingest: %w", err)
	case done.Before:
		fmt.Fprintf(a.log(), "run %s holds job %s already; its records in %s are not needed any more\n", done.Run,
			done.Job, spoolDir)
		return nil
	case done.Manifest != nil:
		printSummary(a.summaries(), done.Manifest)
		warnUnfinished(a, done.Manifest)
	}
	if o.parts == 0 {
		printStuck(a.log(), done.Manifest, spoolDir, false)
	}
	if died > 0 {
		a.warn("the records are kept: %s", spoolDir)
		return exitError(exitCannot)
	}
	if o.keep {
		return nil
	}
	return done.RemoveRecords()
}

// partOptions are the options that the flags choose.
func (o *ingestOptions) partOptions(a *app) ingest.PartOptions {
	p := ingest.PartOptions{Parts: o.parts, Patience: o.wait,
		Options: ingest.Options{Record: o.filter.record, Calls: o.filter.calls, Job: o.job, Partial: o.partial,
			TimeResolutionNs: o.resolution, NoSymbols: o.noSymbols, Replace: a.replace,
			Origin: schema.Origin{Commq: version}}}
	if o.part >= 0 {
		p.Share, p.Shares = o.part, o.parts
	}
	if !a.quiet {
		p.Waiting = func(what string) { fmt.Fprintf(a.log(), "waiting for %s\n", what) }
	}
	return p
}

// checkParts validates --parts, --part and --wait.
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
