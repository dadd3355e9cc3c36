package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/simrank"
	"github.com/commq/commq/models"
)

// newSimrankCommand returns the command that simulator ranks start; users do not run it.
func newSimrankCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "simrank",
		Short: "Answer the events of a simulator rank, which starts it",
		Long: `simrank reads the events of a simulator rank from stdin, writes its answers to stdout, and writes the
records of the program's ranks into files of the spool. $COMMQ_SIM_MACHINE names the machine, $COMMQ_SPOOL the spool's
folder. With $COMMQ_SIM_VERBOSE set it reports at the end what it received.`,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(c *cobra.Command, _ []string) error { return runSimrank(c.Context(), a) },
	}
}

func runSimrank(ctx context.Context, a *app) error {
	o, err := simrankOptions(a)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // raised by the log when the launcher has ended
	done, err := simrank.Hold(o.Spool)
	if err != nil {
		return fmt.Errorf("simrank: %w", err)
	}
	if err := simrank.Run(ctx, a.stdin, a.inherited, o); err != nil {
		return fmt.Errorf("simrank: %w", err)
	}
	done()
	return nil
}

// simrankOptions reads the environment.
func simrankOptions(a *app) (o simrank.Options, err error) {
	name, folder := os.Getenv("COMMQ_SIM_MACHINE"), os.Getenv("COMMQ_SPOOL")
	if name == "" || folder == "" {
		return o, errors.New("simrank: $COMMQ_SIM_MACHINE and $COMMQ_SPOOL are not both set; " +
			"commq capture --sim-ranks starts it with them")
	}
	o = simrank.Options{Spool: folder, Log: a.stderr, Verbose: os.Getenv("COMMQ_SIM_VERBOSE") != ""}
	o.Machine, err = models.Load(name)
	return o, err
}
