package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/hang"
	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/capture/launch"
	"github.com/commq/commq/capture/shim"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/kept"
	"github.com/commq/commq/internal/secrets"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// preloadOptions are the flags of all commands that preload the shim.
type preloadOptions struct {
	mpi   string // --mpi
	mpicc string // --mpicc
	spool string // --spool
	clock string // --clock
	hash  string // --hash
	// verify is --hash-verify.
	verify bool
	stack  int // --stack
	// counters is --counters.
	counters bool
	// compiling is called before the shim is compiled; see noteCompiling.
	compiling func(what string)
	// note is called with what is unusual about the shim; nil means no callback.
	note func(text string)
	// each means that every rank of a job preloads the shim for itself, as with commq exec.
	each bool
}

func (o *preloadOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.mpi, "mpi", "", "MPI library of the program, openmpi or mpich (default: the one that the "+
		"program is linked to)")
	f.StringVar(&o.mpicc, "mpicc", "", "MPI compiler wrapper that compiles the shim (default: a release of commq takes one "+
		"that it brings, otherwise found in $PATH; none only takes one that it brings)")
	f.StringVar(&o.clock, "clock", "cpu", "compute time between calls: cpu (thread CPU time), wall or none")
	f.StringVar(&o.hash, "hash", "crc64", "hash of each payload: crc64, crc32 or none")
	f.BoolVar(&o.verify, "hash-verify", false, "also hash received payloads, and compare")
	f.IntVar(&o.stack, "stack", 1, "frames of a call site: 1 is the call's return address, 0 none; more need libunwind")
	f.BoolVar(&o.counters, "counters", false, "count instructions and cycles between calls, if the machine allows it")
	complete(c, "mpi", "openmpi", "mpich")
	complete(c, "hash", "crc64", "crc32", "none")
	complete(c, "clock", "cpu", "wall", "none")
	completeFiles(c, "mpicc")
	completeNothing(c, "stack")
}

// checkResolution validates --time-resolution-ns, before the program runs.
func checkResolution(ns int64) error {
	if ns < 1 || ns > 1<<30 || ns&(ns-1) != 0 {
		return fmt.Errorf("--time-resolution-ns %d: want a power of two from 1 to 2^30", ns)
	}
	return nil
}

// maxStack is the number of frames that a call site may have.
const maxStack = 64

// check validates the flags.
func (o *preloadOptions) check() error {
	if err := oneOf("clock", o.clock, "cpu", "wall", "none"); err != nil {
		return err
	}
	if o.verify && o.hash == "none" {
		return errors.New("--hash-verify: with --hash none there is nothing to compare")
	}
	if o.stack < 0 || o.stack > maxStack {
		return fmt.Errorf("--stack %d: want 0 to %d frames", o.stack, maxStack)
	}
	return oneOf("hash", o.hash, "crc64", "crc32", "none")
}

// library returns the MPI library to capture: --mpi, else the one that the program is linked to.
func (o *preloadOptions) library(program string) (string, error) {
	if err := o.check(); err != nil {
		return "", err
	}
	if o.mpi == "" {
		if err := checkProgram(program); err != nil {
			return "", err
		}
		library, err := shim.Detect(program)
		if err != nil && launch.IsLauncher(program) {
			err = fmt.Errorf("%s is a launcher, and not the program to capture; name the program after --: commq capture -n 4 "+
				"--launcher %[1]s -- ./program, or %[1]s -n 4 commq exec -- ./program", program)
		}
		return library, err
	}
	return o.mpi, oneOf("mpi", o.mpi, "openmpi", "mpich")
}

// preload builds the shim for a library, a program and its launcher, which may be empty, and returns what a rank's
// environment needs. s is nil without simulator ranks.
func (o *preloadOptions) preload(ctx context.Context, library, program, launcher string,
	s *launch.Simulation) (launch.Preload, error) {
	form := shim.Recording
	if s != nil {
		form = shim.Simulated
	}
	if cache, err := kept.CacheFolder(); err == nil && strings.ContainsAny(cache, " :") { // before compiling
		return launch.Preload{}, fmt.Errorf("preload from %q: the dynamic linker splits LD_PRELOAD at spaces and "+
			"colons; name a cache folder without them in $COMMQ_CACHE", cache)
	}
	path, err := shim.Build(ctx, shim.BuildOptions{Library: library, Mpicc: o.mpicc, Program: program,
		Launcher: launcher, Form: form, Ranks: o.each, Compiling: o.compiling, Note: o.note})
	if err != nil {
		return launch.Preload{}, err
	}
	p := launch.Preload{Shim: path, Spool: o.spool, Clock: o.clock, Hash: o.hash, Verify: o.verify, Stack: &o.stack,
		Simulation: s}
	if o.counters {
		p.Counters = "perf"
	}
	return p, nil
}

type captureOptions struct {
	preloadOptions
	simulationOptions
	name     string // --name
	ranks    int    // -n
	launcher string // --launcher
	filter   filterOptions
	// resolution is --time-resolution-ns.
	resolution int64
	// gather is --gather, a shell command that copies the records of the other nodes.
	gather   string
	keep     bool   // --keep
	maxSpool string // --max-spool
	dryRun   bool   // --dry-run
	// keepSecrets is --keep-secrets.
	keepSecrets bool
	format      string // --format, of what --dry-run prints
	// origin changes the origin in the run's manifest; nil changes nothing.
	origin func(*schema.Origin)
}

func newCaptureCommand(a *app) *cobra.Command {
	var o captureOptions
	c := &cobra.Command{
		Use:   "capture [flags] -- program [args...]",
		Short: "Run an MPI program and keep its communication as a run",
		Long: `capture runs an unmodified MPI program with a preloaded library that records its MPI calls, and writes
them as a run.

The program's input, output, signals and exit status pass through unchanged: capture exits with the launcher's status,
or with 2 when the program could not be launched or the run could not be written. That is so after Ctrl-C too: Open
MPI's mpirun ends with 1 then. A program that crashes or is interrupted also leaves a run, with what was recorded. A
release of commq brings the library; else it is compiled, once per MPI library and compiler (commq capture build).

With --sim-ranks M the program runs in the virtual time of a machine: the network of --machine, and computing by
--clock. M extra ranks, which the program does not see, simulate the network; MPI_Wtime and the run have virtual time
(docs/method/simulator-ranks.md). Without -n, ask for the extra ranks in the launcher's own options.

On several nodes each rank writes to the same folder on its own node; --gather is the command that copies all records
to this node before the run is written (docs/method/launchers.md).

In your own launcher line (a batch script, several programs) put 'commq exec --' before the program, and call 'commq
ingest' afterwards.`,
		Example: `  commq capture --name ring.4 -n 4 -- ./ring
  commq capture --name bt.C.64 -n 64 --record messages \
      --launcher "mpirun --oversubscribe" -- ./bt.C.x
  commq capture -n 64 --launcher "srun -N 2 --mpi=pmix" \
      --gather 'ssh node2 tar -C $COMMQ_SPOOL -c . | tar -C $COMMQ_SPOOL -x' \
      -- ./bt.C.x
  commq capture -n 64 --sim-ranks 2 --machine flat --clock none -- ./bt.C.x
  commq query density --run ring.4`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: files,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("ranks") && o.ranks < 1 {
				return fmt.Errorf("-n %d: want the number of ranks, 1 or more", o.ranks)
			}
			if err := o.simulationOptions.check(c, o.ranks); err != nil {
				return err
			}
			return runCapture(c.Context(), a, &o, args)
		},
	}
	c.Flags().SetInterspersed(false)
	o.preloadOptions.flags(c)
	o.simulationOptions.flags(c)
	f := c.Flags()
	f.StringVar(&o.name, "name", "", "`NAME` of the run to write (default: the program's name, with -n also the "+
		"number `N` of ranks: bt.C.x.64)")
	f.IntVarP(&o.ranks, "ranks", "n", 0, "number `N` of ranks, passed to the launcher as -n (default: left to the "+
		"launcher)")
	f.StringVar(&o.launcher, "launcher", "", `launcher and its options, for example "mpirun --oversubscribe" (default: the mpirun of the program's MPI library)`)
	o.filter.flags(c)
	f.Int64Var(&o.resolution, "time-resolution-ns", 1,
		"round times down to multiples of this power of two: smaller runs")
	f.StringVar(&o.spool, "spool", "", "existing `FOLDER` for the records while the program runs, on a local disk "+
		"(default: the folder for temporary files)")
	f.StringVar(&o.gather, "gather", "", "shell command, run after the program, that copies the records of other "+
		"nodes into the folder $COMMQ_SPOOL")
	f.StringVar(&o.maxSpool, "max-spool", "",
		"most bytes of records of the whole job, for example 10GiB, divided by the ranks; later calls are "+
			"counted, not recorded")
	f.BoolVar(&o.dryRun, "dry-run", false, "keep no records and write no run, but report how much a capture would "+
		"write")
	f.StringVar(&o.format, "format", "text", "`FORMAT` of what --dry-run prints: text or json")
	f.BoolVar(&o.keep, "keep-spool", false, "keep the spool after the run was written")
	f.BoolVar(&o.keepSecrets, "keep-secrets", false, "keep the command line as it is; without this, words that look "+
		"like secrets (--password x, API_TOKEN=x, http://user:x@host) are xxxxx in the run")
	complete(c, "format", "text", "json")
	completeFiles(c, "launcher")
	a.writes(c)
	completeFolders(c, "spool")
	completeNothing(c, "name", "ranks", "time-resolution-ns", "gather", "max-spool")
	c.AddCommand(newCaptureBuildCommand(a), newCaptureAPICommand(a))
	return c
}

// runCapture launches the program, and writes the run from the records of its ranks.
func runCapture(ctx context.Context, a *app, o *captureOptions, args []string) error {
	if err := o.checkFlags(args); err != nil {
		return err
	}
	bound, err := o.spoolBound()
	if err != nil {
		return err
	}
	name := o.runName(args[0])
	if !o.dryRun {
		if err := a.checkName(name); err != nil {
			return err
		}
	}
	if info, err := os.Stat(o.spool); o.spool != "" && (err != nil || !info.IsDir()) {
		return fmt.Errorf("capture: --spool %s: no such folder; make it, or name another", o.spool)
	}
	job, err := o.prepare(ctx, a, args)
	if err != nil {
		return err
	}
	var out *writer.Run
	if !o.dryRun {
		// before hours of computing, not after
		if out, err = writer.Create(a.storeDir(), name, writer.Options{Replace: a.replace}); err != nil {
			return err
		}
		defer out.Abort()
	}
	spoolDir, err := o.newSpool()
	if err != nil {
		return err
	}
	// the folder is different for each launch
	job.Preload.Spool, job.Preload.Job, job.Preload.MaxSpool = spoolDir, filepath.Base(spoolDir), bound
	if o.dryRun {
		job.Preload.Sink, job.Preload.MaxSpool = "null", 0
	}
	defer holdSignals()()
	status, err := job.Run(ctx)
	if err != nil {
		os.RemoveAll(spoolDir)
		return err
	}
	// a Ctrl-C until here was for the program
	waitForRanks(context.WithoutCancel(ctx), a, spoolDir)
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	defer stop()
	lost, err := o.waitForSimulators(ctx, a, spoolDir)
	if err == nil {
		err = gather(ctx, a, o.gather, spoolDir)
	}
	if o.dryRun {
		return o.finishDryRun(ctx, a, spoolDir, job.Launcher, status, lost, err)
	}
	absent := 0
	if err == nil {
		absent, err = o.ingest(ctx, a, out, name, spoolDir, job, status, lost)
	}
	if err = o.leaveSpool(a, name, spoolDir, absent, err); err != nil && !errors.Is(err, errNothing) {
		return fmt.Errorf("%w\nthe records are kept: commq ingest %s --name NAME (the program's exit status was %d)",
			err, spoolDir, status)
	}
	if err != nil && status != 0 {
		// the exit status is the program's all the same
		fmt.Fprint(a.log(), secrets.Text(o.failedText(ctx, err, status, job.Launcher)))
	}
	if status != 0 {
		return exitError(status)
	}
	if err == nil && lost {
		return exitError(exitCannot)
	}
	return err
}

// newSpool makes a folder for the records of one launch, and returns its absolute path: ranks may begin in another
// working directory, or change it before MPI_Init.
func (o *captureOptions) newSpool() (string, error) {
	dir, err := os.MkdirTemp(o.spool, spool.FolderPrefix)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", fmt.Errorf("capture: make a spool folder: %w; name a writable one with --spool", err)
	}
	return dir, nil
}

// runName returns the name of the run to write.
func (o *captureOptions) runName(program string) string {
	if o.name != "" {
		return o.name
	}
	name := writer.NameFor(filepath.Base(program))
	if o.ranks > 0 {
		name = fmt.Sprintf("%s.%d", name, o.ranks)
	}
	return name
}

// leaveSpool removes the records unless ingest failed, --keep-spool keeps them, or some ranks are absent from them: the
// records of those may lie on other nodes. It returns the error of ingest, or errNothing if no rank recorded anything.
func (o *captureOptions) leaveSpool(a *app, name, spoolDir string, absent int, err error) error {
	switch {
	case errors.Is(err, ingest.ErrNoJob):
		os.RemoveAll(spoolDir)
		return errNothing
	case err != nil:
		return err
	case absent > 0:
		again := []string{"commq", "ingest", spoolDir, "--name", name, "--replace"}
		if a.store != "" {
			again = append(again, "--store", a.store)
		}
		a.warn("%s without records here; those of the others are kept: copy the records of the other nodes to %s, then %s",
			counted(int64(absent), "rank"), spoolDir, shellquote.Join(again...))
		return nil
	case o.keep:
		fmt.Fprintf(a.log(), "commq: the records are kept: %s\n", spoolDir)
		return nil
	}
	if err := os.RemoveAll(spoolDir); err != nil {
		a.warn("run %s is written; its records in %s could not be removed: %v", name, spoolDir, err)
	}
	return nil
}

// holdSignals keeps signals from killing commq until release is called, also a second one between the handlers of the
// program's launch and of what comes after it: the records of the program must not be lost.
func holdSignals() (release func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	return func() { signal.Stop(c) }
}

// ranksPatience is how long ranks may record after the launcher has ended.
const ranksPatience = 10 * time.Second

// waitForRanks waits until the ranks on this machine record no more: the launcher may end before they do. An interrupt
// ends the wait alone.
func waitForRanks(ctx context.Context, a *app, spoolDir string) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if living := hang.WaitForRanks(ctx, spoolDir, ranksPatience); len(living) > 0 {
		a.warn("capture: the launcher has ended, but not %s (the first: rank %d): what they record from now on is lost",
			units.Count(int64(len(living)), "rank"), living[0])
	}
}

// checkFlags checks the values of flags, and that there is a program.
func (o *captureOptions) checkFlags(args []string) error {
	if len(args) == 0 {
		return errors.New("capture: no program given; say commq capture -n 4 -- ./program")
	}
	if err := o.filter.check(); err != nil {
		return err
	}
	if err := checkResolution(o.resolution); err != nil {
		return err
	}
	return oneOf("format", o.format, "text", "json")
}

// failedText explains a failed launcher, and what to do if no rank recorded anything.
func (o *captureOptions) failedText(ctx context.Context, err error, status int, launcher []string) string {
	if !errors.Is(err, errNothing) {
		return fmt.Sprintf("commq: %v\n", err)
	}
	if launch.RefusesRoot(ctx, launcher, os.Environ(), os.Getuid()) {
		return fmt.Sprintf("commq: capture: there is no run: Open MPI refuses to start programs as root; set %s=1 and "+
			"%s=1\n", launch.RootVariables[0], launch.RootVariables[1])
	}
	hint := fmt.Sprintf("commq: %v\ncommq: the launcher ended with status %d; it may have said above why.", err, status)
	if o.launcher == "" {
		hint += " Give it options with --launcher, for example --launcher \"mpirun --oversubscribe\" for more " +
			"ranks than cores"
	}
	return hint + "\n"
}

// gather runs the user's command that copies the records of the other nodes here. Its output goes to stderr: stdout is
// the program's.
func gather(ctx context.Context, a *app, command, spoolDir string) error {
	if command == "" {
		return nil
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "COMMQ_SPOOL="+spoolDir)
	cmd.Stdout, cmd.Stderr = a.stderr, a.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("capture: --gather %q: %w", secrets.Text(command), err)
	}
	return nil
}

// prepare finds and builds what the launch needs, before the program starts.
func (o *captureOptions) prepare(ctx context.Context, a *app, args []string) (launch.Job, error) {
	sim, err := o.simulation(o.ranks)
	if err != nil {
		return launch.Job{}, err
	}
	library, err := o.library(args[0])
	if err != nil {
		return launch.Job{}, err
	}
	launcher, err := o.launcherLine(ctx, library)
	if err != nil {
		return launch.Job{}, err
	}
	o.tell(a)
	preload, err := o.preload(ctx, library, args[0], launcher[0], sim)
	if err != nil {
		return launch.Job{}, err
	}
	preload.First = shim.Sanitizers(args[0])
	if err := o.addBridge(ctx, library, args[0], sim, launcher, o.ranks); err != nil {
		return launch.Job{}, err
	}
	return launch.Job{Launcher: launcher, Ranks: o.ranks, Program: args, Preload: preload,
		Export: library == "openmpi" && launch.TakesExports(ctx, launcher, os.Environ()),
		Stdin:  a.stdin, Stdout: a.inherited, Stderr: a.stderr}, nil
}

func (o *captureOptions) launcherLine(ctx context.Context, library string) ([]string, error) {
	if o.launcher == "" {
		path, err := launch.Find(ctx, library)
		return []string{path}, err
	}
	line, err := shellquote.Split(o.launcher)
	if err != nil || len(line) == 0 {
		return nil, fmt.Errorf("--launcher %q: not a command line: %v", secrets.Text(o.launcher), err)
	}
	if _, err := exec.LookPath(line[0]); err != nil {
		return nil, fmt.Errorf("--launcher %q: %w", secrets.Text(o.launcher), err)
	}
	return line, nil
}

// errNothing tells that the spool is empty.
var errNothing = fmt.Errorf("capture: %w", ingest.ErrNoJob)

// maskSecrets masks words of the command line that look like secrets, because runs are passed on to others. It returns
// how many it masked.
func (o *captureOptions) maskSecrets(origin *schema.Origin) (masked int) {
	if o.keepSecrets {
		return 0
	}
	command, n := secrets.Args(origin.Command)
	launcher, m := secrets.Args(origin.Launcher)
	origin.Command, origin.Launcher = command, launcher
	return n + m
}

// ingest writes a run for each job in the spool, and returns the number of ranks without records. status is the
// launcher's; lost tells that simulator ranks ended before the program.
func (o *captureOptions) ingest(ctx context.Context, a *app, out *writer.Run, name, spoolDir string, job launch.Job,
	status int, lost bool) (absent int, err error) {
	origin := job.Origin(status)
	origin.Commq = version
	masked := o.maskSecrets(&origin)
	if o.origin != nil {
		o.origin(&origin)
	}
	update, finish := newProgress(a, "ingesting", "calls")
	defer finish()
	options := ingest.Options{Record: o.filter.record, Calls: o.filter.calls, Origin: origin,
		Replace: a.replace, Partial: status != 0 || lost, TimeResolutionNs: o.resolution, Progress: update}
	jobs, largest := 0, int32(0)
	err = ingest.IngestAll(ctx, spoolDir, out, a.storeDir(), name, options, func(m *schema.Manifest, without int) {
		finish()
		absent += without
		jobs, largest = jobs+1, max(largest, m.Ranks)
		printSummary(a.summaries(), m)
		warnUnfinished(a, m)
		printStuck(a.log(), m, spoolDir, true)
		if masked > 0 {
			a.warn("the run has %s in place of %s of the command line that looked like a secret; --keep-secrets keeps "+
				"the line as it is", secrets.Mask, units.Count(int64(masked), "word"))
			masked = 0 // once for all jobs
		}
	})
	if err == nil && job.EachAlone(jobs, largest) {
		a.warn("-n %d gave %[1]d jobs of one rank each: %s is perhaps of another MPI library than the program; name the "+
			"launcher of the program's own with --launcher", job.Ranks, job.Launcher[0])
	}
	return absent, err
}

// warnUnfinished tells with --quiet that a job did not finish, and the warnings of its run; the summary has both.
func warnUnfinished(a *app, m *schema.Manifest) {
	if !a.quiet || m.Ended == schema.EndedNames[schema.EndedFinalized] {
		return
	}
	a.warn("run %s: the job was %s before MPI_Finalize", m.Origin.Name, m.Ended)
	for _, warning := range m.Warnings {
		a.warn("run %s: %s", m.Origin.Name, warning)
	}
}

func newCaptureBuildCommand(a *app) *cobra.Command {
	var o preloadOptions
	c := &cobra.Command{
		Use:   "build [program]",
		Short: "Make the capture library ready and print its path",
		Long: `build makes the capture library for the program's MPI library (or the one named by --mpi) ready in the
cache ($COMMQ_CACHE, else the user's cache folder) and prints its path. capture and exec do this by themselves. A
release of commq takes the library that it brings, if that serves the MPI library; else the library is compiled with
the MPI compiler wrapper of the MPI library. --mpicc compiles in any case.`,
		Example: `  commq capture build --mpi openmpi
  commq capture build ./bt.C.x`,
		Args:              wantArgs(0, 1, "at most a program"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			program := ""
			if len(args) == 1 {
				program = args[0]
			}
			o.tell(a)
			p, err := o.forProgram(c.Context(), program, nil)
			if err == nil {
				fmt.Fprintln(a.stdout, p.Shim)
			}
			return err
		},
	}
	o.flags(c)
	return c
}

// tell lets the user know of a shim that is compiled or unusual.
func (o *preloadOptions) tell(a *app) {
	o.compiling = noteCompiling(a)
	o.note = func(text string) { a.warn("%s", text) }
}

// forProgram builds the shim for a program, or without one for --mpi or the only installed MPI library.
func (o *preloadOptions) forProgram(ctx context.Context, program string, s *launch.Simulation) (launch.Preload, error) {
	if program == "" && o.mpi == "" {
		only, err := onlyLibrary(o.mpicc)
		switch {
		case err != nil && o.mpicc == "" && s == nil && len(shim.Prebuilt()) > 0:
			return launch.Preload{}, errors.New("no single compiler wrapper tells the MPI library: name the program, or the " +
				"library with --mpi; commq brings a capture library for each")
		case err != nil:
			return launch.Preload{}, err
		}
		o.mpi = only
	}
	library, err := o.library(program)
	if err != nil {
		return launch.Preload{}, err
	}
	return o.preload(ctx, library, program, "", s)
}

// onlyLibrary returns the MPI library whose compiler wrapper is installed, if there is only one.
func onlyLibrary(mpicc string) (string, error) {
	if mpicc == shim.NoMpicc {
		return "", fmt.Errorf("with --mpicc %s, name the program or its MPI library (--mpi)", mpicc)
	}
	var found []string
	var errs error
	for _, library := range []string{"openmpi", "mpich"} {
		if _, err := shim.FindMpicc(library, mpicc); err != nil {
			errs = errors.Join(errs, err)
		} else {
			found = append(found, library)
		}
	}
	switch len(found) {
	case 0:
		return "", errs
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("several MPI libraries are installed (%s): name one of them with --mpi",
		strings.Join(found, ", "))
}
