// Command commq answers questions about how MPI programs communicate. Each command is in a file of its own; what it
// does is in the packages capture, writer and queries.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/commq/commq/internal/printable"
)

// version is the version of commq; releases set it with -ldflags "-X main.version=...".
var version = "0.1.0-dev"

// Exit statuses of commq itself; commq capture and commq exec give the program's own where it ran.
const (
	exitDone   = 0
	exitFailed = 1                          // a check failed
	exitCannot = 2                          // could not do it
	exitPipe   = 128 + int(syscall.SIGPIPE) // who reads the answer has read enough, as head does: what the shell says of other programs
)

// exitError ends commq with a status and no further message.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// app is what all commands share: where they print and the global flags.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	store  string // --store; empty: $COMMQ_STORE, else ./runs
	quiet  bool   // --quiet
	args   []string
}

// storeDir is the folder that runs lie in.
func (a *app) storeDir() string {
	if a.store != "" {
		return a.store
	}
	if s := os.Getenv("COMMQ_STORE"); s != "" {
		return s
	}
	return "runs"
}

// screen is stdout for what may hold texts of programs: on a terminal none of them drives it.
func (a *app) screen() io.Writer {
	if onTerminal(a.stdout) {
		return printable.Writer(a.stdout)
	}
	return a.stdout
}

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "commq",
		Short: "Answer questions about how MPI programs communicate",
		Long: `commq captures the communication of an unmodified MPI program as Parquet tables and answers questions about it with SQL.

A run is a folder of Parquet tables and a manifest; runs lie in a store: --store, else $COMMQ_STORE, else ./runs.
Exit status: 0 done, 1 a check failed, 2 could not do it, 128 and a signal's number (130 after Ctrl-C) where one ended it. Results go to stdout, everything else to stderr: summaries, notes and,
on a terminal, progress, all of which --quiet leaves out. Words have colours on a terminal, unless $NO_COLOR is set.`,
		Example: `  commq capture --run ring.4 -n 4 -- ./ring
  commq query density --run ring.4
  commq sql --run ring.4 "SELECT call, count(*) FROM events GROUP BY call"`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { printHelp(c, "", nil) })
	root.PersistentFlags().StringVar(&a.store, "store", "", "`FOLDER` of runs (default $COMMQ_STORE, else ./runs)")
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "no summaries, notes and progress; warnings and errors all the same")
	completeStore(root)
	for _, c := range commands(a) {
		root.AddCommand(c)
	}
	return root
}

// run executes one command line and returns the exit status. It is main without the process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, args: args}
	root := newRootCommand(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var exit exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &exit):
		return int(exit)
	case errors.Is(err, syscall.EPIPE):
		return exitPipe
	}
	if by := signalError(0); errors.As(context.Cause(ctx), &by) {
		fmt.Fprintf(stderr, "commq: ended by a signal: %v\n", by)
		return 128 + int(by) // what the shell says of other programs
	}
	fmt.Fprintf(stderr, "commq: %s\n", printable.Text(err.Error()))
	return exitCannot
}

// anyNumber is no upper bound of wantArgs.
const anyNumber = -1

// wantArgs accepts from least (0 or 1) to most arguments that are not flags, and says otherwise what is wanted.
func wantArgs(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		n := len(args)
		switch {
		case n >= least && (n <= most || most == anyNumber):
			return nil
		case n < least:
			return fmt.Errorf("%s: nothing given; want %s", c.CommandPath(), what)
		}
		return fmt.Errorf("%s: %q is too much; want %s", c.CommandPath(), args[most], what)
	}
}

// signalError says which signal ended a command.
type signalError syscall.Signal

func (e signalError) Error() string { return syscall.Signal(e).String() }

// untilSignalled is a context that a signal ends, with a signalError for its cause.
func untilSignalled(signals ...os.Signal) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	c := make(chan os.Signal, 1)
	signal.Notify(c, signals...)
	go func() {
		if s, ok := (<-c).(syscall.Signal); ok {
			cancel(signalError(s))
		}
	}()
	return ctx, func() {
		signal.Stop(c)
		close(c)
		cancel(nil)
	}
}

func main() {
	ctx, stop := untilSignalled(os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGPIPE) { // a closed pipe is an error, so that what is open is closed and removed
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
	status := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
