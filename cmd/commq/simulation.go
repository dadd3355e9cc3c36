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

// simulationOptions are the flags of every command that starts programs with simulator ranks.
type simulationOptions struct {
	simRanks int    // --sim-ranks
	machine  string // --machine
}

func (o *simulationOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&o.simRanks, "sim-ranks", 0, "number of simulator ranks, which give the program the times of --machine (docs/method/simulator-ranks.md)")
	f.StringVar(&o.machine, "machine", "", "machine whose network they simulate: a YAML file, a configuration of Dimemas, or one of "+strings.Join(models.Names(), ", "))
	register(c, fixed(models.Names(), cobra.ShellCompDirectiveDefault), "machine")
	completeNothing(c, "sim-ranks")
}

// check looks at what can be seen without reading the machine, and at options that do not go with simulator ranks. ranks is the program's number of ranks, 0 where it is not known.
func (o *simulationOptions) check(c *cobra.Command, ranks int) error {
	switch given := c.Flags().Changed("sim-ranks"); {
	case given && o.simRanks < 1:
		return fmt.Errorf("--sim-ranks %d: want the number of simulator ranks, 1 or more", o.simRanks)
	case given && ranks > 0 && o.simRanks > ranks:
		return fmt.Errorf("--sim-ranks %d: more than the %d of the program; each has to have a rank to simulate for", o.simRanks, ranks)
	case given && o.machine == "":
		return fmt.Errorf("--sim-ranks: say with --machine which machine they simulate: a YAML file, or one of %s", strings.Join(models.Names(), ", "))
	case given && c.Flags().Changed("counters"):
		return errors.New("--counters: with --sim-ranks it would count what ranks do for the simulation too; count in a capture without")
	case given && c.Flags().Changed("max-spool"):
		return errors.New("--max-spool: the records of a job with --sim-ranks have no bound; name a folder with room for them with --spool (--dry-run says how much)")
	case !given && c.Flags().Changed("machine"):
		return errors.New("--machine: it is for simulator ranks; say how many with --sim-ranks")
	}
	return nil
}

// simulation reads the machine and says what the ranks need; nil without simulator ranks. A machine that cannot be simulated
// here is an error.
func (o *simulationOptions) simulation(ranks int) (*launch.Simulation, error) {
	if o.simRanks == 0 {
		return nil, nil
	}
	m, err := readMachine(o.machine)
	if err != nil {
		return nil, fmt.Errorf("--machine: %w", err)
	}
	if _, err := m.Stateless(ranks); err != nil {
		return nil, err
	}
	if m.CPURatio == 0 {
		return nil, fmt.Errorf("--machine: %s: the CPU ratio is 0, infinitely fast; a program that runs cannot have such CPUs: simulate a captured run on them (commq simulate)", m.Name)
	}
	machine, err := machineFor(o.machine)
	if err != nil {
		return nil, err
	}
	command := os.Getenv("COMMQ_SIM_COMMAND")
	if command == "" {
		if command, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find this program, which simulator ranks start: %w; name it in $COMMQ_SIM_COMMAND", err)
		}
	}
	return &launch.Simulation{Ranks: o.simRanks, Command: command, Machine: machine, CPURatio: m.CPURatio, CPUs: m.CPUs(), Description: m.Description}, nil
}

// machineFor is what simulator ranks are told: the path of a machine's file, which they may see from another folder, or a name.
func machineFor(named string) (string, error) {
	if _, err := os.Stat(named); err != nil { // then readMachine has found the name
		return named, nil
	}
	return filepath.Abs(named)
}

// addBridge builds the program of the simulator ranks, where the launcher's line can hold it beside the program.
func (o *preloadOptions) addBridge(ctx context.Context, library string, s *launch.Simulation, launcher []string, ranks int) error {
	if s == nil || ranks == 0 || !launch.TakesPrograms(ctx, launcher) {
		return nil
	}
	var err error
	s.Bridge, err = shim.Build(ctx, shim.BuildOptions{Library: library, Mpicc: o.mpicc, Form: shim.Bridge})
	return err
}

// simulatorPatience is how long simulator ranks may write to the spool after the program has ended.
const simulatorPatience = time.Minute

// waitForSimulators waits until the simulator ranks of this machine have written what they were told, and says when some of
// them ended before the program: lost.
func (o *simulationOptions) waitForSimulators(ctx context.Context, a *app, spoolDir string) (lost bool, err error) {
	if o.simRanks == 0 {
		return false, nil
	}
	died, err := simrank.Wait(ctx, spoolDir, simulatorPatience)
	if died > 0 {
		fmt.Fprintf(a.stderr, "commq: the process of %s ended before the program did: the run has what was recorded until then\n", counted(int64(died), "simulator rank"))
	}
	return died > 0, err
}
