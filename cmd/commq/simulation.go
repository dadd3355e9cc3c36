package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/launch"
	"github.com/commq/commq/capture/shim"
	"github.com/commq/commq/capture/simrank"
	"github.com/commq/commq/models"
)

// simulationOptions are the flags of commands that start programs beside simulator ranks.
type simulationOptions struct {
	simRanks int    // --sim-ranks
	machine  string // --machine
}

func (o *simulationOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&o.simRanks, "sim-ranks", 0, "number of simulator ranks, which give the program the times of --machine "+
		"(docs/method/simulator-ranks.md)")
	f.StringVar(&o.machine, "machine", "", "`FILE` of the machine whose network they simulate: "+machineKinds())
	registerMachines(c)
	completeNothing(c, "sim-ranks")
}

// check checks the flags without reading the machine, and rejects flags that conflict with simulator ranks. ranks is
// the program's number of ranks, or 0 if unknown.
func (o *simulationOptions) check(c *cobra.Command, ranks int) error {
	switch given := c.Flags().Changed("sim-ranks"); {
	case given && o.simRanks < 1:
		return fmt.Errorf("--sim-ranks %d: want the number of simulator ranks, 1 or more", o.simRanks)
	case given && ranks > 0 && o.simRanks > ranks:
		return fmt.Errorf("--sim-ranks %d: the program has only %d ranks; each simulator rank needs a rank to "+
			"simulate for",
			o.simRanks, ranks)
	case given && o.machine == "":
		return fmt.Errorf("--sim-ranks: name the machine that they simulate with --machine: a YAML file, or one of %s",
			strings.Join(models.Names(), ", "))
	case given && c.Flags().Changed("counters"):
		return errors.New("--counters: with --sim-ranks it would also count what ranks do for the simulation; " +
			"count in a capture without --sim-ranks")
	case given && c.Flags().Changed("max-spool"):
		return errors.New("--max-spool: does not limit the records of a job with --sim-ranks; name a folder that has " +
			"room for them with --spool (--dry-run estimates how much they need)")
	case !given && c.Flags().Changed("machine"):
		return errors.New("--machine: is for simulator ranks; give their number with --sim-ranks")
	}
	return nil
}

// simulation reads the machine and describes the simulation for the launcher; nil without simulator ranks.
func (o *simulationOptions) simulation(ranks int) (*launch.Simulation, error) {
	if o.simRanks == 0 {
		return nil, nil
	}
	m, err := loadForRanks(o.machine, ranks)
	if err != nil {
		return nil, err
	}
	machine, err := machineArgument(o.machine)
	if err != nil {
		return nil, err
	}
	command, err := simulatorCommand()
	if err != nil {
		return nil, err
	}
	return &launch.Simulation{Ranks: o.simRanks, Command: command, Machine: machine, CPURatio: m.CPURatio,
		CPUs: m.CPUs(), Description: m.Description}, nil
}

// loadForRanks reads a machine, and rejects one that simulator ranks cannot simulate.
func loadForRanks(pathOrName string, ranks int) (*models.Machine, error) {
	m, err := models.Load(pathOrName)
	if err != nil {
		return nil, fmt.Errorf("--machine: %w", err)
	}
	if _, err := m.Stateless(ranks); err != nil {
		return nil, err
	}
	if m.CPURatio == 0 {
		return nil, fmt.Errorf("--machine: %s: the CPU ratio is 0, infinitely fast; a running program cannot have "+
			"such CPUs: simulate a captured run on them (commq simulate)", m.Name)
	}
	return m, nil
}

// simulatorCommand returns the program that simulator ranks start: this one, or $COMMQ_SIM_COMMAND.
func simulatorCommand() (string, error) {
	if command := os.Getenv("COMMQ_SIM_COMMAND"); command != "" {
		return command, nil
	}
	command, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program, which simulator ranks start: %w; name it in $COMMQ_SIM_COMMAND", err)
	}
	return command, nil
}

// machineArgument returns the value of --machine for simulator ranks, which may run in another folder: an absolute
// path, or the name of a machine.
func machineArgument(pathOrName string) (string, error) {
	if _, err := os.Stat(pathOrName); err != nil { // not a file, so models.Load found the name
		return pathOrName, nil
	}
	return filepath.Abs(pathOrName)
}

// addBridge builds the program of the simulator ranks, if the launcher can start it beside the program.
func (o *preloadOptions) addBridge(ctx context.Context, library, program string, s *launch.Simulation,
	launcher []string, ranks int) error {
	if s == nil || ranks == 0 || !launch.TakesPrograms(ctx, launcher) {
		return nil
	}
	var err error
	s.Bridge, err = shim.Build(ctx, shim.BuildOptions{Library: library, Mpicc: o.mpicc, Program: program,
		Launcher: launcher[0], Form: shim.Bridge, Compiling: o.compiling})
	return err
}

// simulatorPatience is how long simulator ranks may write to the spool after the program has ended.
const simulatorPatience = time.Minute

// waitForSimulators waits until the simulator ranks on this machine have written what they received. lost reports
// whether some of them ended before the program.
func (o *simulationOptions) waitForSimulators(ctx context.Context, a *app, spoolDir string) (lost bool, err error) {
	if o.simRanks == 0 {
		return false, nil
	}
	died, err := simrank.Wait(ctx, spoolDir, simulatorPatience)
	tellDied(a, died)
	return died > 0, err
}

// tellDied tells of simulator ranks whose processes failed.
func tellDied(a *app, died int) {
	if died > 0 {
		fmt.Fprintf(a.log(), "commq: the process of %s ended before the program did: "+
			"the run has what was recorded until then\n", counted(int64(died), "simulator rank"))
	}
}
