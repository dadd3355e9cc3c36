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
)

// defaultSpool is where exec and env let the ranks write when nobody says otherwise: one node-local folder per user.
func defaultSpool() string {
	if s := os.Getenv("COMMQ_SPOOL"); s != "" {
		return s
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("commq-spool-%d", os.Getuid()))
}

// makeSpool makes the spool folder where it is missing and gives its absolute path.
func makeSpool(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return "", fmt.Errorf("make the spool folder: %w; name another with --spool", err)
	}
	return abs, nil
}

type execOptions struct {
	preloadOptions
	simulationOptions
}

func newExecCommand(a *app) *cobra.Command {
	var o execOptions
	c := &cobra.Command{
		Use:   "exec [flags] -- program [args...]",
		Short: "Be one rank: run the program under the capture library, inside your own launcher line",
		Long: `exec replaces itself by the program, with the capture library preloaded. Put it before the program in your own
launcher line, then write the run with commq ingest. If the library cannot be had, the program runs all the same,
unrecorded, and one line on stderr says why.

With --sim-ranks M the line asks for M ranks more than the program is to have: the last M simulate the network of --machine
and do not run the program (docs/method/simulator-ranks.md). If the library cannot be had, nothing runs.`,
		Example: `  srun -n 64 commq exec --spool /scratch/spool -- ./bt.C.x
  srun -n 66 commq exec --sim-ranks 2 --machine flat \
      --spool /scratch/spool -- ./bt.C.x
  commq ingest /scratch/spool --run bt.C.64`,
		Args:              wantArgs(1, anyNumber, "-- program [args...]"),
		ValidArgsFunction: files,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.simulationOptions.check(c, 0); err != nil {
				return err
			}
			return runExec(c.Context(), a, &o, args)
		},
	}
	c.Flags().SetInterspersed(false)
	o.preloadOptions.flags(c)
	o.simulationOptions.flags(c)
	c.Flags().StringVar(&o.spool, "spool", defaultSpool(), "`FOLDER` for the records, on a local disk")
	completeFolders(c, "spool")
	return c
}

// runExec replaces this process by the program. It only returns when that cannot be done.
func runExec(ctx context.Context, a *app, o *execOptions, args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return err
	}
	environ, err := o.environ(ctx, path)
	if err != nil && o.simRanks > 0 {
		return err // it would run with the simulator ranks as ranks of its own
	}
	if err != nil {
		if firstRank() {
			fmt.Fprintf(a.stderr, "commq: %v\ncommq: the program runs without being recorded\n", err)
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
	p, err := o.preload(ctx, library, sim)
	if err != nil {
		return nil, err
	}
	// A rank whose spool cannot be made is preloaded all the same: the library says that it runs unrecorded, and takes its part
	// in what the ranks agree on in MPI_Init. Without it there the others would wait for it.
	if dir, err := makeSpool(o.spool); err == nil {
		p.Spool = dir
	}
	return p.Environ(os.Environ()), nil
}

// firstRank says whether this process is rank 0 of its job, as far as the launcher's environment tells, so that a
// message comes once.
func firstRank() bool {
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"} {
		if v := os.Getenv(name); v != "" {
			return v == "0"
		}
	}
	return true
}

type envOptions struct {
	preloadOptions
	simulationOptions
	flagsFor string // --mpirun-flags
}

// launchersOfFlags are the launchers that env knows the flags of.
var launchersOfFlags = [...]string{"openmpi", "mpich", "srun"}

func newEnvCommand(a *app) *cobra.Command {
	var o envOptions
	c := &cobra.Command{
		Use:   "env [program]",
		Short: "Print the environment that makes MPI programs record themselves",
		Long: `env prints shell commands that set the environment of the capture library, for eval. Every MPI program started
from that shell on this machine is then recorded; processes without MPI are not affected.

Launchers that start ranks on other machines do not pass all of the environment on. --mpirun-flags prints the launcher's
options that do, with the same variables (LD_PRELOAD and those that begin with COMMQ_), to stand in the launcher line
instead of eval; commq exec does without either.

With --sim-ranks M every MPI program that is started needs M ranks more than it is to have, as with commq exec.`,
		Example: `  eval $(commq env ./bt.C.x)
  mpirun -n 64 ./bt.C.x
  unset LD_PRELOAD
  commq ingest $COMMQ_SPOOL --run bt.C.64
  mpirun -n 64 $(commq env --mpirun-flags openmpi --spool /scratch/spool \
      ./bt.C.x) ./bt.C.x`,
		Args:              wantArgs(0, 1, "at most a program"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.simulationOptions.check(c, 0); err != nil {
				return err
			}
			return runEnv(c.Context(), a, &o, args)
		},
	}
	o.preloadOptions.flags(c)
	o.simulationOptions.flags(c)
	f := c.Flags()
	f.StringVar(&o.spool, "spool", defaultSpool(), "`FOLDER` for the records, on a local disk")
	completeFolders(c, "spool")
	f.StringVar(&o.flagsFor, "mpirun-flags", "", "print the options of a launcher that pass the variables on: openmpi (-x), mpich (-genv) or srun (--export)")
	complete(c, "mpirun-flags", launchersOfFlags[:]...)
	return c
}

func runEnv(ctx context.Context, a *app, o *envOptions, args []string) error {
	if o.flagsFor != "" {
		if err := oneOf("mpirun-flags", o.flagsFor, launchersOfFlags[:]...); err != nil {
			return err
		}
	}
	program := ""
	if len(args) == 1 {
		program = args[0]
	}
	sim, err := o.simulation(0)
	if err != nil {
		return err
	}
	p, err := o.forProgram(ctx, program, sim)
	if err != nil {
		return err
	}
	if p.Spool, err = makeSpool(o.spool); err != nil {
		return err
	}
	vars := p.Variables(os.Environ())
	if o.flagsFor != "" {
		flags, err := launcherFlags(o.flagsFor, vars)
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

// launcherFlags are the options of a launcher that set variables, given as name=value, for the ranks.
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
				return nil, fmt.Errorf("env: srun takes commas in --export as separators, and %s is %q; export it and use --export=ALL", name, value)
			}
			flags = append(flags, kv)
		}
	}
	if launcher == "srun" {
		return []string{"--export=ALL," + strings.Join(flags, ",")}, nil
	}
	return flags, nil
}
