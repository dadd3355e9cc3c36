package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/shim"
	"github.com/commq/commq/internal/private"
)

// defaultSpool returns the folder for the records of exec without --spool: one node-local folder per user.
func defaultSpool() string {
	if s := os.Getenv("COMMQ_SPOOL"); s != "" {
		return s
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("commq-spool-%d", os.Getuid()))
}

// makeSpool makes the spool folder if it is missing, and returns its absolute path. One that another user made is an
// error: the default has a name that can be guessed.
func makeSpool(dir string) (string, error) {
	abs, err := private.Folder(dir)
	if err != nil {
		return "", fmt.Errorf("make the spool folder (--spool): %w", err)
	}
	return abs, nil
}

type execOptions struct {
	preloadOptions
	simulationOptions
	env environmentOptions
}

func newExecCommand(a *app) *cobra.Command {
	var o execOptions
	c := &cobra.Command{
		Use:   "exec [flags] -- program [args...]",
		Short: "Run one rank under the capture library, inside your own launcher line",
		Long: `exec replaces itself with the program, with the capture library preloaded. Put it before the program
in your own launcher line, then write the run with commq ingest. If the library cannot be built, or
the process may use too little memory (2 GB of addresses), files or threads, the program runs unrecorded, and one
line on stderr tells why.

With --sim-ranks M ask the launcher for M more ranks than the program is to have: the last M simulate the network of
--machine and do not run the program (docs/method/simulator-ranks.md). If the library cannot be built, nothing runs.

--print-env prints shell commands that set the environment of the capture library, for eval. Every MPI program
started from that shell on this machine is then recorded, until you unset LD_PRELOAD; processes without MPI are not
affected. Launchers do not pass the whole environment to ranks on other machines: --mpirun-flags prints the launcher's
options that pass the same variables (LD_PRELOAD and those that begin with COMMQ_); put them into the launcher line.`,
		Example: `  srun -n 64 --mpi=pmix commq exec --spool /scratch/spool -- ./bt.C.x
  srun -n 66 --mpi=pmix commq exec --sim-ranks 2 --machine flat \
      --spool /scratch/spool -- ./bt.C.x
  commq ingest /scratch/spool --name bt.C.64
  eval $(commq exec --print-env ./bt.C.x)
  mpirun -n 64 $(commq exec --print-env --mpirun-flags openmpi \
      --spool /scratch/spool ./bt.C.x) ./bt.C.x`,
		Args:              o.env.check,
		ValidArgsFunction: files,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.simulationOptions.check(c, 0); err != nil {
				return err
			}
			if o.env.print {
				return runPrintEnv(c.Context(), a, &o, args)
			}
			return runExec(c.Context(), a, &o, args)
		},
	}
	c.Flags().SetInterspersed(false)
	o.preloadOptions.flags(c)
	o.simulationOptions.flags(c)
	c.Flags().StringVar(&o.spool, "spool", defaultSpool(), "`FOLDER` for the records, on a local disk")
	completeFolders(c, "spool")
	o.env.flags(c)
	return c
}

// runExec replaces this process with the program. It returns only if that fails.
func runExec(ctx context.Context, a *app, o *execOptions, args []string) error {
	if err := checkProgram(args[0]); err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	path, err := exec.LookPath(args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return err
	}
	if firstRank() {
		o.tell(a)
	}
	environ, err := o.environ(ctx, path)
	if err != nil && o.simRanks > 0 {
		return err // the program would count the simulator ranks as its own
	}
	if err != nil {
		if firstRank() {
			a.warn("%v\ncommq: the program runs without being recorded", err)
		}
		environ = os.Environ()
	}
	if err := syscall.Exec(path, args, environ); err != nil {
		return fmt.Errorf("exec %s: %w", path, err)
	}
	return nil
}

func (o *execOptions) environ(ctx context.Context, program string) ([]string, error) {
	sim, err := o.simulation(0)
	if err != nil {
		return nil, err
	}
	library, err := o.library(program)
	if err != nil {
		return nil, err
	}
	o.each = true
	p, err := o.preload(ctx, library, program, "", sim)
	if err != nil {
		return nil, err
	}
	p.First = shim.Sanitizers(program)
	// Preload the library even on a rank without a spool: it reports that the rank runs unrecorded, and takes part in
	// the agreement of the ranks in MPI_Init. Otherwise the others would wait for it.
	if dir, err := makeSpool(o.spool); err == nil {
		p.Spool = dir
	}
	return p.Environ(os.Environ()), nil
}

// firstRank reports whether this process is rank 0 of its job, according to the launcher's environment, so that a
// message is printed once. Without such a variable it returns true.
func firstRank() bool {
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"} {
		if v := os.Getenv(name); v != "" {
			return v == "0"
		}
	}
	return true
}

// environmentOptions are the flags of commq exec that print the environment instead of starting the program in it.
type environmentOptions struct {
	print    bool   // --print-env
	flagsFor string // --mpirun-flags
}

// launchersOfFlags are the launchers whose options --mpirun-flags knows.
var launchersOfFlags = [...]string{"openmpi", "mpich", "srun"}

func (e *environmentOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&e.print, "print-env", false, "print the shell commands that set the environment of the library, and "+
		"run nothing")
	f.StringVar(&e.flagsFor, "mpirun-flags", "", "with --print-env: print the options of a launcher that pass the "+
		"variables on instead: openmpi (-x), mpich (-genv) or srun (--export)")
	complete(c, "mpirun-flags", launchersOfFlags[:]...)
}

// check validates the flags, and the number of arguments.
func (e *environmentOptions) check(c *cobra.Command, args []string) error {
	if e.flagsFor == "" && !e.print {
		return wantArgs(1, anyNumber, "-- program [args...]")(c, args)
	}
	if !e.print {
		return errors.New("--mpirun-flags is about printing the environment; want --print-env too")
	}
	if e.flagsFor != "" {
		if err := oneOf("mpirun-flags", e.flagsFor, launchersOfFlags[:]...); err != nil {
			return err
		}
	}
	return wantArgs(0, 1, "with --print-env at most a program")(c, args)
}

// runPrintEnv prints the environment in which a program records itself; args name the program, if any.
func runPrintEnv(ctx context.Context, a *app, o *execOptions, args []string) error {
	program := ""
	if len(args) == 1 {
		program = args[0]
	}
	sim, err := o.simulation(0)
	if err != nil {
		return err
	}
	o.tell(a)
	p, err := o.forProgram(ctx, program, sim)
	if err != nil {
		return err
	}
	if p.Spool, err = makeSpool(o.spool); err != nil {
		return err
	}
	if program != "" {
		p.First = shim.Sanitizers(program)
	}
	vars := p.Variables(os.Environ())
	if o.env.flagsFor != "" {
		flags, err := launcherFlags(o.env.flagsFor, vars)
		if err == nil {
			fmt.Fprintln(a.stdout, shellquote.Join(flags...))
		}
		return err
	}
	for _, kv := range vars {
		fmt.Fprintf(a.stdout, "export %s;\n", shellquote.Join(kv))
	}
	return nil
}

// launcherFlags returns the options of a launcher that set variables, given as name=value, in the ranks' environment.
func launcherFlags(launcher string, vars []string) ([]string, error) {
	var flags []string
	for _, kv := range vars {
		name, value, _ := strings.Cut(kv, "=")
		switch launcher {
		case "openmpi":
			flags = append(flags, "-x", kv)
		case "mpich":
			flags = append(flags, "-genv", name, value)
		case "srun":
			if strings.Contains(value, ",") {
				return nil, fmt.Errorf("srun takes commas in --export as separators, and %s is %q; export it "+
					"and use --export=ALL", name, value)
			}
			flags = append(flags, kv)
		}
	}
	if launcher == "srun" {
		return []string{"--export=ALL," + strings.Join(flags, ",")}, nil
	}
	return flags, nil
}
