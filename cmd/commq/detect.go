package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/payloads"
	"github.com/commq/commq/writer"
)

// detectOptions are the flags of commq detect.
type detectOptions struct {
	run     string // --run
	format  string // --format
	memory  int    // --memory-mib
	options detect.Options
	price   priceOptions
	replay  detectReplayOptions
	long    longOptions
	engineOptions
}

// detectFormats are the formats of the findings.
var detectFormats = [...]string{"table", "json", "csv", "sarif"}

func newDetectCommand(a *app) *cobra.Command {
	var o detectOptions
	c := &cobra.Command{
		Use:   "detect",
		Short: "Find collective operations that a program does by hand",
		Long: `detect finds broadcasts, allgathers, alltoalls and barriers that a run does with point-to-point messages, whatever their
pattern: linear, trees, rings, in segments, with other messages between. It looks at who had a payload before and who has it
after, by the hashes of payloads, so the run must have been captured with --hash crc64 (or crc32).

It finds scatters, gathers, reductions and scans as well, and says how certain it is: verified, where payloads are what the
operation makes of others, by their hashes, sums and first elements; addressed, where sizes fit and blocks lie side by side in
memory; inferred, where only who sends what to whom fits. What a rank contributes without sending it can be made known by
commq_send_to_self (see commq capture api).

--engine has an engine say first where messages are whose payloads several messages have (commq query shared-payloads): of others no hash is read
here. With trino it is the server that the run is registered with, which reads the hashes on all its workers; the findings are the same.

--neighbors asks for exchanges between neighbours as well: who sends to whom and when is all that they rest on. They name the Cartesian grid or the
graph to create.

A finding has the operation that would do it, its ranks, roots and payload, how often it is done, and the calls to remove. One over
a part of a communicator names the ranks that are missing. What was seen holds for this run: whether a program may be changed so
is for its author to say. With --machine it says what each replacement would save there: the run and the one that commq replace
makes of it are simulated. With --replay both are played here, by turns, and what that saves is measured (docs/method/replay-run.md). docs/method/detection.md has the rules; sarif is the format that code review tools read.`,
		Example: `  commq detect --run hpl.16
  commq detect --run hpl.16 --completeness 0.9
  commq detect --run hpl.16 --machine cluster.yaml --ranks 16,64,256
  commq detect --run hpl.4 --machine cluster.yaml --replay
  commq detect --run hpl.16 --format sarif > findings.sarif
  commq detect --run bt.C.64 --engine trino \
      --dsn 'http://ada@trino:8080?catalog=hive&schema=commq'
  commq detect --run hpl.16 --format json --messages > findings.json`,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
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
	f.StringVar(&o.run, "run", "", "`RUN` to look at: a name in the store, or a path")
	f.StringVar(&o.format, "format", "table", "format of the answer: table, json, csv, sarif")
	f.IntVar(&o.options.MinRanks, "min-ranks", detect.DefaultMinRanks, "least number of ranks of a finding, at least 2")
	f.Float64Var(&o.options.Completeness, "completeness", 0, "least part of its communicator's ranks that a finding must have, 0 to 1")
	f.BoolVar(&o.options.Neighbors, "neighbors", false, "look for exchanges between neighbours too")
	f.BoolVar(&o.options.Messages, "messages", false, "with --format json: also every instance with its messages, for commq replace")
	f.IntVar(&o.memory, "memory-mib", detect.DefaultMemoryBytes>>20, "memory in `MIB`: for about 2,700 messages that may be part of a collective in each; more are looked at in several passes")
	o.sharedFlags(c)
	o.long.flags(c)
	o.price.flags(c)
	o.replay.flags(c)
	register(c, completeRuns(a), "run")
	complete(c, "format", detectFormats[:]...)
	completeNothing(c, "min-ranks", "completeness", "memory-mib")
	return c
}

func runDetect(ctx context.Context, a *app, o *detectOptions, shared askShared) (err error) {
	switch {
	case o.run == "":
		return errors.New("no run given; name one with --run")
	case o.memory < 1:
		return fmt.Errorf("--memory-mib %d: want at least 1", o.memory)
	case o.options.MinRanks < 2:
		return fmt.Errorf("--min-ranks %d: want 2 or more", o.options.MinRanks)
	case !(o.options.Completeness >= 0 && o.options.Completeness <= 1):
		return fmt.Errorf("--completeness %v: want a part from 0 to 1", o.options.Completeness)
	case o.options.Messages && o.format != "json":
		return fmt.Errorf("--messages: only --format json has room for them")
	}
	if err := errors.Join(oneOf("format", o.format, detectFormats[:]...), o.price.check()); err != nil {
		return err
	}
	dir, err := writer.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	d := &detection{a: a, dir: dir, name: filepath.Base(dir), shared: shared}
	options := o.options
	options.MemoryBytes = int64(o.memory) << 20
	options.Messages = options.Messages || o.price.machine != "" || o.replay.replay
	if d.manifest, err = writer.ReadManifest(dir); err != nil {
		return err
	}
	if d.kept, err = o.long.open(a, writer.Fact{Name: "task", Value: "detect"}, writer.Fact{Name: "run", Value: d.manifest.Digest},
		writer.Fact{Name: "options", Value: fmt.Sprintf("%+v", options)}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endCheckpoint(d.kept, err)) }()
	if err := d.detect(ctx, options); err != nil {
		return err
	}
	p := d.printed()
	if o.price.machine != "" {
		if err := p.price(ctx, a, dir, &o.price); err != nil {
			return err
		}
	}
	if o.replay.replay {
		if err := p.replayed(ctx, a, dir, &o.replay); err != nil {
			return err
		}
	}
	if !o.options.Messages {
		for i := range p.Findings {
			p.Findings[i].List = nil
		}
	}
	switch o.format {
	case "json":
		if o.options.Messages { // a line for each of its numbers would be too much
			return json.NewEncoder(a.stdout).Encode(p)
		}
		return printJSON(a.stdout, p)
	case "csv":
		return p.csv(a.stdout)
	case "sarif":
		return p.sarif(a.stdout)
	}
	return p.table(a.screen())
}

// detection is a run in which collectives are looked for, and what was found.
type detection struct {
	a         *app // whom to show how far it is; nil: nobody
	dir, name string
	manifest  *schema.Manifest
	result    *detect.Result
	sites     map[int32]printedSite // those of findings
	comms     map[int32]string      // names
	shared    askShared             // who says where payloads come often; nil: nobody
	spill     *os.File              // payloads for which there is no memory; nil: there are none
	kept      *writer.Checkpoint    // what is known between passes; nil: it is not kept
}

// leastMemoryLimit is what is taken whatever is asked for: the program, batches of rows, tables of streams.
const leastMemoryLimit = 256 << 20

// detect looks for collectives.
func (d *detection) detect(ctx context.Context, options detect.Options) (err error) {
	// Garbage is collected more eagerly from there on than by doubling: by that, what is in use at once would be twice as much. A lower GOMEMLIMIT holds.
	limit := cmp.Or(options.MemoryBytes, detect.DefaultMemoryBytes)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(min(max(limit, leastMemoryLimit), debug.SetMemoryLimit(-1))))
	if d.manifest, err = writer.ReadManifest(d.dir); err != nil {
		return err
	}
	if err := d.check(); err != nil {
		return err
	}
	run, err := d.read(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if d.spill != nil {
			err = errors.Join(err, d.spill.Close())
		}
	}()
	look := func() (err error) {
		if d.result, err = detect.Detect(run, options); err != nil {
			return fmt.Errorf("detect: %w", err)
		}
		return nil
	}
	if d.kept != nil {
		run.Border = func(save func(io.Writer) error) error {
			if !d.kept.Due() {
				return nil
			}
			return d.kept.Save(save)
		}
	}
	if d.kept != nil && d.kept.Held() {
		err = d.kept.Load(func(r *bufio.Reader) error { run.State = r; return look() })
	} else {
		err = look()
	}
	if err != nil {
		return err
	}
	return d.readSites(ctx)
}

// hashBits are the widths of payload hashes.
var hashBits = map[string]int{"crc64": 64, "crc32": 32}

// check says what a run lacks.
func (d *detection) check() error {
	m := d.manifest
	switch {
	case hashBits[m.Hash] == 0:
		return fmt.Errorf("detect: run %q was captured without payload hashes; capture it again with --hash crc64", d.name)
	case m.Record == "collectives":
		return fmt.Errorf("detect: run %q has no messages (record %s); capture it again with --record all", d.name, m.Record)
	}
	return nil
}

// detectRows is how many messages are read at once: so few that they stay in the cache while they are looked at.
const detectRows = 1 << 13

// read reads what detection needs beside the messages, and says how to read those.
func (d *detection) read(ctx context.Context) (*detect.Run, error) {
	run := &detect.Run{Ranks: d.manifest.Ranks, Count: d.manifest.Counts.Messages, HashBits: hashBits[d.manifest.Hash]}
	inter := map[int32]bool{}
	d.comms = map[int32]string{}
	err := writer.ReadTable(ctx, d.dir, &schema.CommsTable, smallRows, func(b schema.Batch) error {
		t := b.(*schema.Comms)
		for i, id := range t.Comm {
			if n := len(run.Comms); n == 0 || run.Comms[n-1].ID != id {
				run.Comms = append(run.Comms, detect.Comm{ID: id})
			}
			if t.Name[i] != schema.NullText {
				d.comms[id] = t.Name[i]
			}
			c := &run.Comms[len(run.Comms)-1]
			inter[id] = inter[id] || t.Remote[i] != 0 || t.WorldRank[i] == schema.NullInt32
			c.Members = append(c.Members, t.WorldRank[i])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	run.Comms = slices.DeleteFunc(run.Comms, func(c detect.Comm) bool { return inter[c.ID] })
	err = writer.ReadTable(ctx, d.dir, &schema.DatatypesTable, smallRows, func(b schema.Batch) error {
		t := b.(*schema.Datatypes)
		for i, id := range t.ID {
			run.Datatypes = append(run.Datatypes, detect.Datatype{ID: id, Named: t.Combiner[i] == "named", Name: t.Name[i], Bytes: t.Bytes[i]})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if run.Selves, err = d.readSelves(ctx); err != nil {
		return nil, err
	}
	if run.Functions, err = d.readFunctions(ctx); err != nil {
		return nil, err
	}
	run.Stopped = ctx.Err
	if d.shared != nil {
		run.Shared = func(least int) (map[detect.Stretch]bool, error) { return d.shared(ctx, d.dir, d.manifest, least) }
	}
	run.Spill = func() (payloads.Spill, error) {
		f, err := writer.Scratch("commq-payloads-")
		d.spill = f
		return f, err
	}
	pass := 0
	run.Messages = func(columns []string, add func(b *schema.Messages, rest schema.Rest) error) error {
		pass++
		more, finish := func(int) {}, func() {}
		if d.a != nil {
			more, finish = countProgress(d.a, fmt.Sprintf("detect %s, pass %d", d.name, pass), "messages", run.Count)
		}
		defer finish()
		rows, err := writer.ReadEpochs(d.dir, &schema.MessagesTable, detectRows, detect.Columns...)
		if err != nil {
			return err
		}
		late := slices.DeleteFunc(slices.Clone(detect.Columns), func(name string) bool { return slices.Contains(columns, name) })
		return rows.AllLate(ctx, late, func(b schema.Batch, rest schema.Rest) error {
			more(b.Len())
			return add(b.(*schema.Messages), rest)
		})
	}
	run.Events = func(add func(*schema.Events) error) error {
		rows, err := writer.ReadEpochs(d.dir, &schema.EventsTable, eventRows, detect.EventColumns...)
		if err != nil {
			return err
		}
		return rows.All(ctx, func(b schema.Batch) error { return add(b.(*schema.Events)) })
	}
	return run, nil
}

// readFunctions numbers the functions in which calls stand, by call site.
func (d *detection) readFunctions(ctx context.Context) (map[int32]int32, error) {
	type function struct{ name, file string }
	out, numbers := map[int32]int32{}, map[function]int32{}
	return out, writer.ReadTable(ctx, d.dir, &schema.CallsitesTable, smallRows, func(b schema.Batch) error {
		t := b.(*schema.Callsites)
		for i, id := range t.ID {
			if t.Function[i] == schema.NullText {
				continue
			}
			f := function{t.Function[i], t.File[i]}
			if _, known := numbers[f]; !known {
				numbers[f] = int32(len(numbers))
			}
			out[id] = numbers[f]
		}
		return nil
	})
}

// readSites reads where the findings' call sites are.
func (d *detection) readSites(ctx context.Context) error {
	d.sites = map[int32]printedSite{}
	for id, calls := range d.result.Calls {
		var site printedSite
		for _, call := range calls {
			site.Calls = append(site.Calls, call.String())
		}
		slices.Sort(site.Calls)
		d.sites[id] = site
	}
	if len(d.sites) == 0 {
		return nil
	}
	return writer.ReadTable(ctx, d.dir, &schema.CallsitesTable, smallRows, func(b schema.Batch) error {
		t := b.(*schema.Callsites)
		for i, id := range t.ID {
			s, wanted := d.sites[id]
			if !wanted {
				continue
			}
			s.Place = siteText(t, i)
			if t.Function[i] != schema.NullText {
				s.Function = t.Function[i]
			}
			if t.File[i] != schema.NullText && t.Line[i] != schema.NullInt32 {
				s.File, s.Line = t.File[i], t.Line[i]
			}
			d.sites[id] = s
		}
		return nil
	})
}
