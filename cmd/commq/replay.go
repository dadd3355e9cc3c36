package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/capture/replay"
	"github.com/commq/commq/capture/shim"
	"github.com/commq/commq/models"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// playOptions are the flags of every command that plays runs.
type playOptions struct {
	mpi      string   // --mpi
	mpicc    string   // --mpicc
	launcher string   // --launcher
	compute  string   // --compute
	skip     []string // --skip
	folder   string   // --schedule-dir
	eager    int64    // --eager-threshold-bytes; less than 0: not given
}

func (o *playOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.mpi, "mpi", "", "MPI library to play it with, openmpi or mpich (default: the run's own where it is installed, else the one that is)")
	f.StringVar(&o.mpicc, "mpicc", "", "MPI compiler wrapper that compiles the player (default: found in $PATH)")
	f.StringVar(&o.launcher, "launcher", "", `launcher and its options, for example "mpirun --oversubscribe" (default: the mpirun of the MPI library)`)
	f.StringVar(&o.compute, "compute", "busy", "what ranks do where the program computed: busy (as long, on the CPU), sleep, or zero (nothing)")
	f.StringSliceVar(&o.skip, "skip", nil, "classes of calls to leave out, which cannot be played: rma, io, spawn")
	f.StringVar(&o.folder, "schedule-dir", "", "existing folder for the schedule that ranks read, one that all nodes see (default: the folder for temporary files)")
	f.Int64Var(&o.eager, "eager-threshold-bytes", -1, "size from which on a send is taken to wait for its receiver when the run is checked (default: none does in a run that a program made, since that ended; else 4096)")
	f.Lookup("eager-threshold-bytes").DefValue = ""
	complete(c, "mpi", "openmpi", "mpich")
	complete(c, "compute", "busy", "sleep", "zero")
	complete(c, "skip", replay.SkipRMA, replay.SkipIO, replay.SkipSpawn)
	completeFiles(c, "mpicc")
	completeFiles(c, "launcher")
	completeFolders(c, "schedule-dir")
	completeNothing(c, "eager-threshold-bytes")
}

func (o *playOptions) check() error {
	for _, class := range o.skip {
		if err := oneOf("skip", class, replay.SkipRMA, replay.SkipIO, replay.SkipSpawn); err != nil {
			return err
		}
	}
	if o.mpi != "" {
		if err := oneOf("mpi", o.mpi, "openmpi", "mpich"); err != nil {
			return err
		}
	}
	return oneOf("compute", o.compute, "busy", "sleep", "zero")
}

// replayOptions are the flags of commq replay.
type replayOptions struct {
	playOptions
	run    string // --run
	ranks  int    // --ranks
	name   string // --name
	format string // --format
	gather string // --gather
	// phases is --phases, repeat and threshold are --repeat and --threshold.
	phases    bool
	repeat    int
	threshold float64
}

func newReplayCommand(a *app) *cobra.Command {
	var o replayOptions
	c := &cobra.Command{
		Use:   "replay",
		Short: "Execute a run: the same calls, without the program",
		Long: `replay launches as many ranks as a run has, which make the calls of the run: the same messages to the same ranks with the same tags, on the
same communicators, of as many bytes, with the same requests, and the same collectives; where the program computed they compute as long, or do what
--compute says. Wildcards get what they got. It needs neither the program nor its data: what is sent is empty. The run may be a captured one, one in
which collectives were replaced, an imported or an extrapolated one.

What is played is captured, and is a run with measured times. It is compared with the one that was played, message by message and collective by
collective; where they differ the first difference is told and the exit status is 1. On several nodes it needs --gather, as commq capture does, and
--schedule-dir.

Before anything is launched the run is checked: messages without a partner, collectives that do not match, ranks that wait for each other for ever and
calls that cannot be played are errors that name the ranks and calls.

With --phases only the phases are played (commq phases), one repetition of each, --repeat times: what they take times how often the program repeats
them is the time that the program would take here, by PAS2P's equation 1. That needs seconds where the program needs hours. No run is written.
docs/method/replay-run.md has what is played how.`,
		Example: `  commq replay --run cg.A.4
  commq replay --run bt.W.16 --mpi mpich --compute zero --name bt.W.16.bare
  commq replay --run bt.A.16 --phases --repeat 10
  commq replay --run bt-io.S.4 --skip io --launcher "mpirun --oversubscribe"`,
		Args:              wantArgs(0, 0, "no arguments but flags; name the run with --run"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf("format", o.format, "text", "json"); err != nil {
				return err
			}
			if err := o.checkPhases(); err != nil {
				return err
			}
			if o.phases {
				return runReplayPhases(c.Context(), a, &o)
			}
			return runReplay(c.Context(), a, &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "`RUN` to play: a name in the store, or a path")
	f.IntVarP(&o.ranks, "ranks", "n", 0, "number of ranks, which is the run's (default: that)")
	f.StringVar(&o.name, "name", "", "`NAME` of the new run (default: the run's with .replay)")
	f.StringVar(&o.format, "format", "text", "what the answer is printed as: text or json")
	f.StringVar(&o.gather, "gather", "", "shell command, run after the ranks, that copies the records of other nodes into the folder $COMMQ_SPOOL")
	f.BoolVar(&o.phases, "phases", false, "play the relevant phases only, and say what the whole would take")
	f.IntVar(&o.repeat, "repeat", 5, "how often a phase is played with --phases, after once to warm up")
	f.Float64Var(&o.threshold, "threshold", 0.01, "least part of the time that a phase has which --phases plays, 0 to 1")
	o.playOptions.flags(c)
	register(c, completeRuns(a), "run")
	complete(c, "format", "text", "json")
	completeNothing(c, "ranks", "name", "repeat", "threshold", "gather")
	return c
}

func runReplay(ctx context.Context, a *app, o *replayOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	p, err := readPlayed(ctx, a, o.run, &o.playOptions)
	if err != nil {
		return err
	}
	if ranks := int(p.manifest.Ranks); o.ranks != 0 && o.ranks != ranks {
		return fmt.Errorf("-n %d: run %q has %d ranks, and is played by as many; commq predict says what it would do on others", o.ranks, p.name, ranks)
	}
	s, err := p.schedule(ctx, replay.Options{Skip: o.skip})
	if err != nil {
		return err
	}
	for _, n := range s.Notes {
		fmt.Fprintf(a.summaries(), "replay %s: %s\n", p.name, n)
	}
	name := cmp.Or(o.name, p.name+".replay")
	if err := p.play(ctx, a, s, name, o.gather); err != nil {
		return err
	}
	return p.compare(ctx, a, filepath.Join(a.storeDir(), name), o.format)
}

// played is a run that is to be played.
type played struct {
	*playOptions
	dir, name string
	manifest  *schema.Manifest
	source    *replay.Source
}

// readPlayed reads what there is to know about a run before it is played.
func readPlayed(ctx context.Context, a *app, run string, o *playOptions) (*played, error) {
	if run == "" {
		return nil, errors.New("no run given; name one with --run")
	}
	dir, err := writer.Find(a.storeDir(), run)
	if err != nil {
		return nil, err
	}
	p := &played{playOptions: o, dir: dir, name: filepath.Base(dir), source: &replay.Source{}}
	if p.manifest, err = writer.ReadManifest(dir); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.source.Ranks, err = tableRows[schema.RankInfo](ctx, dir, &schema.RanksTable); err != nil {
		return nil, err
	}
	if p.source.Comms, err = tableRows[schema.Comm](ctx, dir, &schema.CommsTable); err != nil {
		return nil, err
	}
	if p.source.Datatypes, err = tableRows[schema.Datatype](ctx, dir, &schema.DatatypesTable); err != nil {
		return nil, err
	}
	if p.source.Parts, err = tableRows[schema.Part](ctx, dir, &schema.PartsTable); err != nil {
		return nil, err
	}
	p.source.Events = streamEvents(ctx, dir, replay.Columns...)
	p.source.Messages = streamMessages(ctx, dir, replay.MessageColumns...)
	return p, nil
}

// streamEvents gives the rows of events of a run, some columns of them.
func streamEvents(ctx context.Context, dir string, columns ...string) func(add func(*schema.Events) error) error {
	return func(add func(*schema.Events) error) error {
		rows, err := writer.ReadEpochs(dir, &schema.EventsTable, eventRows, columns...)
		if err != nil {
			return err
		}
		return rows.All(ctx, func(b schema.Batch) error { return add(b.(*schema.Events)) })
	}
}

// streamMessages gives the rows of messages of a run, some columns of them.
func streamMessages(ctx context.Context, dir string, columns ...string) func(add func(*schema.Messages) error) error {
	return func(add func(*schema.Messages) error) error {
		rows, err := writer.ReadEpochs(dir, &schema.MessagesTable, eventRows, columns...)
		if err != nil {
			return err
		}
		return rows.All(ctx, func(b schema.Batch) error { return add(b.(*schema.Messages)) })
	}
}

// check says what the run lacks.
func (p *played) check() error {
	m := p.manifest
	switch {
	case m.Record != "all":
		return fmt.Errorf("replay: run %q does not have the rows of all calls (record %s); capture it again with --record all", p.name, m.Record)
	case len(m.Filters) > 0:
		return fmt.Errorf("replay: run %q does not have the rows of all calls (%s); capture it again without filters", p.name, strings.Join(m.Filters, ", "))
	case m.Counts.Dropped > 0:
		return fmt.Errorf("replay: run %q misses %s that could not be recorded; capture it again with more space for the spool", p.name, counted(m.Counts.Dropped, "call"))
	case m.Ended != "finalized":
		return fmt.Errorf("replay: run %q was %s before its end; only a run whose ranks all reached MPI_Finalize can be played", p.name, m.Ended)
	}
	return nil
}

// schedule makes the schedule of a run after a look at whether its ranks would come to an end.
func (p *played) schedule(ctx context.Context, o replay.Options) (*replay.Schedule, error) {
	s, err := replay.New(p.source, &o)
	if err != nil {
		return nil, fmt.Errorf("replay %s: %w", p.name, err)
	}
	machine, err := readMachine("flat")
	if err != nil {
		return nil, err
	}
	sim := &runSimulation{dir: p.dir, name: p.name, manifest: p.manifest}
	if err := sim.readProgram(ctx); err != nil {
		return nil, err
	}
	ideal := machine.Ideal()
	ideal.EagerThresholdBytes = p.eagerThreshold()
	if _, err := sim.simulate(ctx, ideal); err != nil {
		hint := ""
		if ideal.EagerThresholdBytes != models.NoThreshold {
			hint = fmt.Sprintf("\nsends of %d bytes and more are taken to wait for their receivers; where those of your MPI library do not, say so with --eager-threshold-bytes", ideal.EagerThresholdBytes)
		}
		return nil, fmt.Errorf("replay %s: it would not come to an end: %w%s", p.name, err, hint)
	}
	return s, nil
}

// leastEager is the size from which on sends of a run that no program made are taken to wait: no MPI library in common use lets smaller ones wait.
const leastEager = 4096

// eagerThreshold is the size from which on sends are taken to wait for their receivers when the run is checked.
func (p *played) eagerThreshold() int64 {
	switch {
	case p.eager >= 0:
		return p.eager
	case p.manifest.TimeOrigin == "measured" || p.manifest.TimeOrigin == "virtual":
		return models.NoThreshold
	}
	return leastEager
}

// library is the MPI library that the run is played with.
func (p *played) library() (string, error) {
	if p.mpi != "" {
		return p.mpi, nil
	}
	own := ""
	switch text := p.manifest.Origin.MPI; {
	case strings.Contains(text, "Open MPI"):
		own = shim.OpenMPI
	case strings.Contains(text, "MPICH"):
		own = shim.MPICH
	}
	if own != "" {
		if _, err := shim.FindMpicc(own, p.mpicc); err == nil {
			return own, nil
		}
	}
	return onlyLibrary(p.mpicc)
}

// write writes the schedule into a file, and returns the command that plays it. remove removes the file.
func (p *played) write(ctx context.Context, s *replay.Schedule, times string) (command []string, library string, remove func(), err error) {
	if library, err = p.library(); err != nil {
		return nil, "", nil, err
	}
	player, err := replay.Build(ctx, library, p.mpicc)
	if err != nil {
		return nil, "", nil, err
	}
	f, err := os.CreateTemp(p.folder, "commq-schedule-")
	if err != nil {
		return nil, "", nil, fmt.Errorf("replay: make the file of the schedule: %w; name a writable folder with --schedule-dir", err)
	}
	remove = func() { os.Remove(f.Name()) }
	out := bufio.NewWriter(f)
	_, err = s.WriteTo(out)
	if err = errors.Join(err, out.Flush(), f.Close()); err != nil {
		remove()
		return nil, "", nil, fmt.Errorf("replay: write the schedule: %w", err)
	}
	command = []string{player, f.Name(), p.compute}
	if times != "" {
		command = append(command, times)
	}
	return command, library, remove, nil
}

// play launches the ranks under capture, and writes the run.
func (p *played) play(ctx context.Context, a *app, s *replay.Schedule, name, gather string) error {
	command, library, remove, err := p.write(ctx, s, "")
	if err != nil {
		return err
	}
	defer remove()
	c := captureOptions{run: name, ranks: int(p.manifest.Ranks), launcher: p.launcher, gather: gather, resolution: 1, format: "text",
		preloadOptions: preloadOptions{mpi: library, mpicc: p.mpicc, clock: "cpu", hash: "none"}, filter: filterOptions{record: ingest.RecordAll},
		origin: func(o *schema.Origin) {
			o.Command = nil
			o.Replay = &schema.Replay{Run: p.name, RunDigest: p.manifest.Digest, Compute: p.compute, Skip: p.skip}
		}}
	err = runCapture(ctx, a, &c, command)
	if status := exitError(0); errors.As(err, &status) { // of the launcher: it is not ours, which would say that the runs differ
		return fmt.Errorf("replay %s: %s ended with status %d; what was recorded until then is run %q", p.name, filepath.Base(command[0]), int(status), name)
	}
	if err != nil {
		return fmt.Errorf("replay %s: %w", p.name, err)
	}
	return nil
}

// side is a run as it is compared.
func side(ctx context.Context, dir string) (*replay.Side, error) {
	s := &replay.Side{Name: filepath.Base(dir), Events: streamEvents(ctx, dir, replay.Columns...)}
	var err error
	if s.Comms, err = tableRows[schema.Comm](ctx, dir, &schema.CommsTable); err != nil {
		return nil, err
	}
	s.Messages = streamMessages(ctx, dir, replay.MessageColumns...)
	return s, nil
}

// compare says whether what was played is what the run has.
func (p *played) compare(ctx context.Context, a *app, dir, format string) error {
	want, err := side(ctx, p.dir)
	if err != nil {
		return err
	}
	got, err := side(ctx, dir)
	if err != nil {
		return err
	}
	c, err := replay.Compare(want, got)
	if err != nil {
		return fmt.Errorf("replay %s: compare with %s: %w", p.name, got.Name, err)
	}
	switch {
	case format == "json":
		err = printJSON(a.stdout, c)
	case c.Difference == "":
		_, err = fmt.Fprintf(a.stdout, "%s: equal to %s: %s of %s in %s, %s on %s\n", got.Name, p.name, counted(c.Messages, "message"), bytesText(c.Bytes),
			counted(int64(c.Pairs), "pair"), counted(c.Collectives, "call")+" of collectives", counted(int64(c.Comms), "communicator"))
	default:
		_, err = fmt.Fprintf(a.stdout, "%s: differs from %s: %s\n", got.Name, p.name, c.Difference)
	}
	if err == nil && c.Difference != "" {
		return exitError(exitFailed)
	}
	return err
}
