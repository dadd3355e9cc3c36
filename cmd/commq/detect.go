package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/detect/report"
	"github.com/commq/commq/detect/stored"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// detectOptions are the flags of commq detect.
type detectOptions struct {
	run     string // --run
	format  string // --format
	memory  int    // --memory
	options detect.Options
	price   priceOptions
	replay  detectReplayOptions
	all     bool // --all
	long    longOptions
	engineOptions
}

// detectFormats are the formats of the findings.
var detectFormats = [...]string{"table", "json", "csv", "sarif"}

func newDetectCommand(a *app) *cobra.Command {
	var o detectOptions
	c := &cobra.Command{
		Use:   "detect RUN",
		Short: "Find collective operations that a program does by hand",
		Long: `detect finds collective operations that a run does with point-to-point messages: broadcasts,
allgathers, alltoalls, barriers, scatters, gathers, reductions, scans and exchanges between neighbours, whatever their
pattern: linear, trees, rings, in segments, with other messages between. By the hashes of payloads it follows which rank
had a payload before and which has it after. Captures have these hashes by default.

Each finding is one change of the program: the operation that would do it, with the count and datatype that its call
takes, its ranks and roots, how often it is done, and the calls to remove. Several groups of ranks that do it at the same
lines are one finding. It names the missing ranks if it covers only part of a communicator. Its evidence is weighed
against chance, in bits: verified findings have 20 or more from payloads (chance makes one in a million runs), inferred
ones 10 or more. --all also shows candidates, which have less. A program can record what a rank contributes without
sending it: commq_send_to_self (see commq capture api). Findings hold for this run; whether the program may be changed
is for its author to say.

Exchanges between neighbours are found by who sends to whom and when; the finding names the Cartesian grid or the graph
to create.

In a run without hashes, such as an imported trace, detect guesses by structure: which messages have the sources,
destinations, sizes and order of a ring, of recursive doubling or halving, of dissemination, or of each rank sending to
each other. Such findings are candidates: nothing shows that the data moves so. --machine, --replay, --messages, --engine
and --format sarif need hashes.

--machine prices each replacement: it simulates the run and the one that commq replace makes of it. --replay plays
both here by turns and measures what that saves (docs/method/replay-run.md).

--engine lets an engine find first the messages whose payloads several messages have (commq query shared-payloads);
detect then reads no other hashes. With trino that is a server that has the run registered, and its workers read the
hashes. The findings are the same.

docs/method/detection.md has the rules; sarif is the format that code review tools read.`,
		Example: `  commq detect hpl.16
  commq detect --run hpl.16 --completeness 0.9
  commq detect --run lammps.6 --all
  commq detect --run hpl.16 --machine cluster.yaml --ranks 16,64,256
  commq detect --run hpl.4 --machine cluster.yaml --replay
  commq detect --run hpl.16 --format sarif > findings.sarif
  commq detect --run bt.C.64 --engine trino \
      --dsn 'http://ada@trino:8080?catalog=hive&schema=commq'
  commq detect --run hpl.16 --format json --messages > findings.json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := errors.Join(o.replay.check(c), o.long.check(c)); err != nil {
				return err
			}
			shared, err := o.shared(c, a)
			if err != nil {
				return err
			}
			return runDetect(c.Context(), a, &o, shared)
		},
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "`RUN` to search: a name in the store, or a path")
	f.StringVar(&o.format, "format", "table", "`FORMAT` of the answer: table, json, csv, sarif")
	f.IntVar(&o.options.MinRanks, "min-ranks", detect.DefaultMinRanks, "least number of ranks of a finding, at least 2")
	f.Float64Var(&o.options.Completeness, "completeness", 0,
		"least fraction of its communicator's ranks that a finding must have, 0 to 1")
	f.BoolVar(&o.all, "all", false, "also show candidates: findings that chance may have made")
	f.BoolVar(&o.options.Messages, "messages", false,
		"with --format json: also list every instance with its messages, for commq replace")
	f.IntVar(&o.memory, "memory", detect.DefaultMemoryBytes>>20,
		"memory in `MIB`; each is enough for about 2,700 messages that may be part of a collective, and more are "+
			"searched in several passes")
	o.sharedFlags(c)
	o.long.flags(c)
	o.price.flags(c)
	o.replay.addFlags(c)
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	complete(c, "format", detectFormats[:]...)
	completeNothing(c, "min-ranks", "completeness", "memory")
	return c
}

// check validates the flags.
func (o *detectOptions) check() error {
	switch {
	case o.run == "":
		return errNoRun
	case o.options.MinRanks < 2:
		return fmt.Errorf("--min-ranks %d: want 2 or more", o.options.MinRanks)
	case !(o.options.Completeness >= 0 && o.options.Completeness <= 1):
		return fmt.Errorf("--completeness %v: want a fraction from 0 to 1", o.options.Completeness)
	case o.options.Messages && o.format != "json":
		return fmt.Errorf("--messages: only --format json has room for them")
	case o.replay.replay && o.format != "table" && o.format != "json":
		return fmt.Errorf("--replay with --format %s: only table and json have room for what was measured", o.format)
	}
	return errors.Join(checkMemory(o.memory, 1), oneOf("format", o.format, detectFormats[:]...), o.price.check())
}

func runDetect(ctx context.Context, a *app, o *detectOptions, shared askShared) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	found, err := run.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	r, err := run.Open(ctx, found.Dir, stored.NeedToGuess)
	if err != nil {
		return err
	}
	d := o.detection(a, r, shared)
	if d.Guesses() && (d.Options.Messages || d.Shared != nil || o.format == "sarif") {
		return stored.Need.Check(r.Name, r.Manifest) // a guess is no reason to change a program
	}
	kept, err := o.long.open(a, checkpointFacts(d.Identity())...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endCheckpoint(kept, err)) }()
	if kept != nil {
		d.Checkpoint = kept
	}
	answer, err := report.Detect(ctx, d)
	if err != nil {
		return err
	}
	if !o.all && !d.Guesses() {
		answer.DropCandidates()
	}
	if err := o.price.add(ctx, a, r, answer); err != nil {
		return err
	}
	if err := o.replay.add(ctx, a, r, answer); err != nil {
		return err
	}
	if err := o.print(a, answer); err != nil {
		return err
	}
	noteLacking(a, queriedRuns([]run.Found{found}), func(*schema.Manifest) schema.Reads { return schema.ReadsMessages })
	return nil
}

// detection is the detection that the flags ask for.
func (o *detectOptions) detection(a *app, r *run.Run, shared askShared) *stored.Detection {
	d := &stored.Detection{Run: r, Options: o.options, Spill: spillPayloads}
	d.Options.MemoryBytes = int64(o.memory) << 20
	d.Options.Messages = d.Options.Messages || o.price.target.Machine != "" || o.replay.replay
	if shared != nil {
		d.Shared = func(ctx context.Context, least int) (map[detect.Stretch]bool, error) {
			return shared(ctx, r, least)
		}
	}
	d.Progress = func(pass int) (func(int), func()) {
		return countProgress(a, fmt.Sprintf("detect %s, pass %d", r.Name, pass), "messages", r.Manifest.Counts.Messages)
	}
	return d
}

// spillPayloads opens a file for payloads that do not fit into memory.
func spillPayloads() (stored.SpillFile, error) { return writer.Scratch("commq-payloads-") }

// print writes the answer in the format that the flags name.
func (o *detectOptions) print(a *app, answer *report.Report) error {
	if !o.options.Messages {
		answer.DropLists()
	}
	switch o.format {
	case "json":
		if o.options.Messages { // indented, it would have a line for each number
			return printJSONLine(a.stdout, answer)
		}
		return printJSON(a.stdout, answer)
	case "csv":
		return answer.CSV(a.stdout)
	case "sarif":
		return answer.SARIF(a.stdout, version)
	}
	var b strings.Builder
	if err := answer.Text(&b); err != nil {
		return err
	}
	return a.prose(b.String())
}
