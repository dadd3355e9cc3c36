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
	"github.com/commq/commq/capture/shim"
	"github.com/commq/commq/replay"
	"github.com/commq/commq/replay/stored"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
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
	f.StringVar(&o.mpi, "mpi", "", "MPI library to play it with, openmpi or mpich (default: the run's own if it "+
		"is installed, else the installed one)")
	f.StringVar(&o.mpicc, "mpicc", "", "MPI compiler wrapper that compiles the player (default: found in $PATH)")
	f.StringVar(&o.launcher, "launcher", "", `launcher and its options, for example "mpirun --oversubscribe" (default: the mpirun of the MPI library)`)
	f.StringVar(&o.compute, "compute", "busy",
		"what ranks do while the program computed: busy (use the CPU as long), sleep, or zero (nothing)")
	f.StringSliceVar(&o.skip, "skip", nil, "leave out these classes of calls, which cannot be played: rma, io, spawn")
	f.StringVar(&o.folder, "schedule-dir", "",
		"existing folder for the schedule, visible to all nodes (default: the folder for temporary files)")
	f.Int64Var(&o.eager, "eager-threshold-bytes", -1,
		"when the run is checked: size from which on a send waits for its receiver (default: no size in a run "+
			"that a program made, since that ended; else 4096)")
	noDefault(f, "eager-threshold-bytes")
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
		Use:   "replay RUN",
		Short: "Play a run: make the same MPI calls without the program",
		Long: `replay launches as many ranks as a run has. They make the calls of the run: the same messages to the
same ranks with the same tags, on the same communicators, of as many bytes, with the same requests, and the same
collectives. While the program computed they compute as long, or do what --compute tells. Wildcard receives get the
messages that they got. Replay needs neither the program nor its data: payloads are empty. It plays captured,
imported and extrapolated runs, and runs in which collectives were replaced.

The replay is captured as a run with measured times and compared with the original, message by message and collective
by collective. If they differ, replay prints the first difference and exits with status 1. On several nodes it needs
--gather, as commq capture does, and --schedule-dir.

Before launching anything replay checks the run. Messages without a partner, collectives that do not match, ranks
that wait for each other forever and calls that cannot be played are errors that name the ranks and calls.

--phases plays only the phases (commq phases), one repetition of each, --repeat times. Their times multiplied by the
repetitions in the program predict the time that the program would take here (PAS2P, equation 1), in seconds instead
of hours. No run is written. docs/method/replay-run.md describes how every call is played.`,
		Example: `  commq replay cg.A.4
  commq replay --run bt.W.16 --mpi mpich --compute zero --name bt.W.16.bare
  commq replay --run bt.A.16 --phases --repeat 10
  commq replay --run bt-io.S.4 --skip io --launcher "mpirun --oversubscribe"`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf("format", o.format, "text", "json"); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			if err := o.checkPhases(c); err != nil {
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
	f.IntVarP(&o.ranks, "ranks", "n", 0, "number `N` of ranks; it must be the run's (default: that)")
	f.StringVar(&o.name, "name", "", "`NAME` of the new run (default: the run's with .replay)")
	f.StringVar(&o.format, "format", "text", "`FORMAT` of the answer: text or json")
	f.StringVar(&o.gather, "gather", "", "shell command, run after the ranks, that copies the records of other "+
		"nodes into the folder $COMMQ_SPOOL")
	f.BoolVar(&o.phases, "phases", false, "play only the relevant phases, and predict the time of the whole")
	f.IntVar(&o.repeat, "repeat", 5, "with --phases: how often each is played, after once to warm up")
	f.Float64Var(&o.threshold, "threshold", 0.01,
		"with --phases: least fraction of the time that a phase must have to be played, 0 to 1")
	o.playOptions.flags(c)
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	complete(c, "format", "text", "json")
	a.writes(c)
	completeNothing(c, "ranks", "name", "repeat", "threshold", "gather")
	return c
}

func runReplay(ctx context.Context, a *app, o *replayOptions) error {
	p, err := o.read(ctx, a)
	if err != nil {
		return err
	}
	name := cmp.Or(o.name, p.name+".replay")
	if err := a.checkName(name); err != nil {
		return err
	}
	s, err := p.schedule(ctx, replay.Options{})
	if err != nil {
		return err
	}
	for _, n := range s.Notes {
		fmt.Fprintf(a.summaries(), "replay %s: %s\n", p.name, n)
	}
	if err := p.play(ctx, a, s, name, o.gather); err != nil {
		return err
	}
	noteLeftOutOf(ctx, a, p.run)
	return p.compare(ctx, a, filepath.Join(a.storeDir(), name), o.format)
}

// read opens the run to be played, and checks the number of its ranks.
func (o *replayOptions) read(ctx context.Context, a *app) (*played, error) {
	p, err := readPlayed(ctx, a, o.run, &o.playOptions)
	if err != nil {
		return nil, err
	}
	if ranks := int(p.run.Manifest.Ranks); o.ranks != 0 && o.ranks != ranks {
		return nil, fmt.Errorf("-n %d: run %q has %d ranks and can only be played by as many; commq predict tells what "+
			"it would do on others", o.ranks, p.name, ranks)
	}
	return p, nil
}

// played is a run to be played, and the flags that tell how.
type played struct {
	*playOptions
	run    *run.Run
	name   string // in messages
	source *replay.Source
}

// readPlayed opens a run to be played.
func readPlayed(ctx context.Context, a *app, nameOrPath string, o *playOptions) (*played, error) {
	if nameOrPath == "" {
		return nil, errNoRun
	}
	found, err := run.Find(a.storeDir(), nameOrPath)
	if err != nil {
		return nil, err
	}
	r, source, err := stored.Open(ctx, found.Dir)
	if err != nil {
		return nil, err
	}
	return &played{playOptions: o, run: r, name: r.Name, source: source}, nil
}

// schedule makes the schedule of a run, and checks that its ranks would come to an end.
func (p *played) schedule(ctx context.Context, o replay.Options) (*replay.Schedule, error) {
	o.Skip = p.skip
	s, err := stored.Schedule(ctx, p.run, p.source, stored.Options{Options: o, EagerThresholdBytes: p.eager})
	if err != nil {
		return nil, fmt.Errorf("replay %s: %w", p.name, err)
	}
	return s, nil
}

// library returns the MPI library to play the run with.
func (p *played) library() (string, error) {
	if p.mpi != "" {
		return p.mpi, nil
	}
	own := ""
	switch text := p.run.Manifest.Origin.MPI; {
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

// write writes the schedule to a file, and returns the command that plays it. remove removes the file.
func (p *played) write(ctx context.Context, s *replay.Schedule, times string) (command []string, library string,
	remove func(), err error) {
	if library, err = p.library(); err != nil {
		return nil, "", nil, err
	}
	player, err := replay.Build(ctx, library, p.mpicc)
	if err != nil {
		return nil, "", nil, err
	}
	f, err := os.CreateTemp(p.folder, "commq-schedule-")
	if err != nil {
		return nil, "", nil, fmt.Errorf("replay: make the file of the schedule: %w; name a writable folder with "+
			"--schedule-dir", err)
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

// play plays the schedule under capture, and writes the run.
func (p *played) play(ctx context.Context, a *app, s *replay.Schedule, name, gather string) error {
	command, library, remove, err := p.write(ctx, s, "")
	if err != nil {
		return err
	}
	defer remove()
	c := captureOptions{name: name, ranks: int(p.run.Manifest.Ranks), launcher: p.launcher, gather: gather,
		resolution:     1,
		format:         "text",
		preloadOptions: preloadOptions{mpi: library, mpicc: p.mpicc, clock: "cpu", hash: "none"},
		filter:         filterOptions{record: ingest.RecordAll},
		origin:         func(o *schema.Origin) { stored.SetOrigin(o, p.run, p.compute, p.skip) }}
	err = runCapture(ctx, a, &c, command)
	// not our exit status: 1 would mean that the runs differ
	if status := exitError(0); errors.As(err, &status) {
		return fmt.Errorf("replay %s: %s ended with status %d; what was recorded until then is run %q", p.name,
			filepath.Base(command[0]), int(status), name)
	}
	if err != nil {
		return fmt.Errorf("replay %s: %w", p.name, err)
	}
	return nil
}

// compare compares the communication of what was played, in folder dir, with that of the run.
func (p *played) compare(ctx context.Context, a *app, dir, format string) error {
	got, err := run.Open(ctx, dir, run.Need{})
	if err != nil {
		return err
	}
	c, err := stored.Compare(ctx, p.run, got)
	if err != nil {
		return err
	}
	switch {
	case format == "json":
		err = printJSON(a.stdout, c)
	case c.Difference == "":
		_, err = fmt.Fprintf(a.out(), "%s: equal to %s: %s of %s in %s, %s on %s\n", got.Name, p.name,
			counted(c.Messages, "message"), bytesText(c.Bytes),
			counted(int64(c.Pairs), "pair"), counted(c.Collectives, "call")+" of collectives",
			counted(int64(c.Comms), "communicator"))
	default:
		_, err = fmt.Fprintf(a.out(), "%s: differs from %s: %s\n", got.Name, p.name, c.Difference)
	}
	if err == nil && c.Difference != "" {
		return exitError(exitFailed)
	}
	return err
}
