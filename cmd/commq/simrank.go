package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/simrank"
	"github.com/commq/commq/models"
)

// newSimrankCommand is the command that simulator ranks start; users do not.
func newSimrankCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "simrank",
		Short: "Answer a simulator rank's events; simulator ranks start it",
		Long: `simrank reads the events of a simulator rank from stdin, writes its answers to stdout and the records of the program's ranks into
files of the spool. $COMMQ_SIM_MACHINE is the machine, $COMMQ_SPOOL the spool's folder. With $COMMQ_SIM_VERBOSE set it says at the
end what it has seen.`,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(c *cobra.Command, _ []string) error { return runSimrank(c.Context(), a) },
	}
}

func runSimrank(ctx context.Context, a *app) error {
	name, folder := os.Getenv("COMMQ_SIM_MACHINE"), os.Getenv("COMMQ_SPOOL")
	if name == "" || folder == "" {
		return errors.New("simrank: $COMMQ_SIM_MACHINE and $COMMQ_SPOOL are not both set; commq capture --sim-ranks starts it with them")
	}
	m, err := readMachine(name)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // by what is said to a launcher that is gone
	done, err := simrank.Hold(folder)
	if err != nil {
		return fmt.Errorf("simrank: %w", err)
	}
	o := simrank.Options{Machine: m, Spool: folder, Log: a.stderr, Verbose: os.Getenv("COMMQ_SIM_VERBOSE") != ""}
	if err := simrank.Run(ctx, a.stdin, a.stdout, o); err != nil {
		return fmt.Errorf("simrank: %w", err)
	}
	done()
	return nil
}

// readMachine reads a machine: a file in YAML or a configuration of Dimemas, or one that commq knows by name.
func readMachine(value string) (*models.Machine, error) {
	f, err := os.Open(value)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(value, "/.") {
		return models.Named(value)
	}
	if err != nil {
		return nil, fmt.Errorf("machine %s: %w; the names that are no files are %s", value, err, strings.Join(models.Names(), ", "))
	}
	defer f.Close()
	r := bufio.NewReader(f)
	start, _ := r.Peek(r.Size()) // whoever reads on meets the error
	if !models.IsCFG(start) {
		return models.Read(value, r)
	}
	return models.ReadCFG(value, r, func(name string) (io.ReadCloser, error) { return openBeside(value, name) })
}

// openBeside opens a file that another one names: in that one's folder, else, as Dimemas does, in the working directory.
func openBeside(other, name string) (*os.File, error) {
	if filepath.IsAbs(name) {
		return os.Open(name)
	}
	f, err := os.Open(filepath.Join(filepath.Dir(other), name))
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if g, here := os.Open(name); here == nil {
		return g, nil
	}
	return nil, err
}
