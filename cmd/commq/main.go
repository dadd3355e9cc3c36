package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/commq/commq/internal/about"
	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/internal/secrets"
)

// version is the version of commq.
var version = about.Version()

// Exit statuses of commq itself; commq capture and commq exec return the program's own if it ran.
const (
	exitDone   = 0
	exitFailed = 1 // a check failed
	exitCannot = 2 // commq could not do its task
	// The reader of the answer closed the pipe, as head does; shells report this status for other programs in that
	// case.
	exitPipe = 128 + int(syscall.SIGPIPE)
)

// exitError is an exit status without a message.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// app holds what all commands share: the standard streams and the global flags. It has many methods because each way of
// printing (tables, durations, notes, progress) needs both; no method knows of another's command.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	// inherited is stdout as a program that commq runs gets it: the same file, not a pipe to commq.
	inherited io.Writer
	stderr    io.Writer
	store     string // --store; empty: $COMMQ_STORE, else ./runs
	quiet     bool   // --quiet
	// replace is --replace, of commands that write.
	replace bool
	exact   bool // --exact
	args    []string
}

// storeDir returns the folder or URL of the store.
func (a *app) storeDir() string {
	if a.store != "" {
		return a.store
	}
	if s := os.Getenv("COMMQ_STORE"); s != "" {
		return s
	}
	return "runs"
}

// out is stdout for texts for people: it escapes control characters and workflow commands of programs and files.
func (a *app) out() io.Writer { return printable.Writer(a.stdout) }

// log is stderr, escaped like out.
func (a *app) log() io.Writer { return printable.Writer(a.stderr) }

// screen is stdout for an answer in a format. What people read is escaped like out. What programs read, such as JSON,
// CSV and SQL, stays as it is, since each format escapes its own texts; on a terminal control characters are made
// visible in it as well.
func (a *app) screen(format string) io.Writer {
	switch {
	case format == "text", format == "table", format == "markdown", onTerminal(a.stdout):
		return a.out()
	}
	return a.stdout
}

// maskAndEscape prepares an error, a warning or a note for stderr: it masks secrets that other libraries and programs
// repeat in their messages, such as the password in the address of a proxy, and escapes control characters.
func maskAndEscape(text string) string { return printable.Text(secrets.Text(text)) }

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "commq",
		Short: "Answer questions about how MPI programs communicate",
		Long: `commq captures the communication of an unmodified MPI program as Parquet tables and answers questions
about it with SQL.

A run is a folder of Parquet tables and a manifest. Runs are in a store, a folder: --store, else $COMMQ_STORE, else
./runs. Exit status: 0 done, 1 a check failed, 2 could not do it, 128 plus the number of the signal that ended it
(130 after Ctrl-C); capture and exec return the status of what they run. Results go to stdout; summaries, notes and, on
a terminal, progress go to stderr, unless --quiet. A terminal gets colours unless $NO_COLOR is set.`,
		Example: `  commq capture --name ring.4 -n 4 -- ./ring
  commq query density --run ring.4
  commq sql --run ring.4 "SELECT call, count(*) FROM events GROUP BY call"`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { a.printHelp(c, "", nil) })
	root.PersistentFlags().StringVar(&a.store, "store", "", "`FOLDER` of runs (default $COMMQ_STORE, else ./runs)")
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false,
		"print no summaries, notes and progress, only warnings and errors")
	completeStore(root)
	tellVersion(root)
	addCommands(a, root)
	for _, c := range root.Commands() {
		showWorking(a, c)
	}
	root.SetHelpCommand(newHelpCommand())
	explainMistakes(root)
	return root
}

// execute runs one command line and returns the exit status. Tests call it instead of main.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &answerWriter{w: stdout}
	a := &app{stdin: stdin, stdout: out, inherited: stdout, stderr: stderr, args: args}
	root := newRootCommand(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var exit exitError
	if err == nil || errors.As(err, &exit) { // an exit status says nothing about an answer that was not written
		err = cmp.Or(out.failed(), err)
	}
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &exit):
		return int(exit)
	case errors.Is(err, syscall.EPIPE):
		return exitPipe
	}
	if by := signalError(0); errors.As(context.Cause(ctx), &by) {
		fmt.Fprintf(stderr, "commq: %s\n", maskAndEscape(signalText(by, err)))
		return 128 + int(by) // as shells do
	}
	fmt.Fprintf(stderr, "commq: %s\n", maskAndEscape(errorText(err)))
	return exitCannot
}

// signalText says which signal ended a command. The first line of the command's error says no more; further lines say
// what is left and what to do with it.
func signalText(by signalError, err error) string {
	text := "ended by a signal: " + by.Error()
	if _, rest, more := strings.Cut(err.Error(), "\n"); more {
		text += "\n" + rest
	}
	return text
}

// signalError is the signal that ended a command.
type signalError syscall.Signal

func (e signalError) Error() string { return syscall.Signal(e).String() }

// endedBySignal is the exit status of a command that a signal has ended, without a message; nil if none has.
func endedBySignal(ctx context.Context) error {
	if by := signalError(0); errors.As(context.Cause(ctx), &by) {
		return exitError(128 + int(by)) // as shells do
	}
	return nil
}

// signalRepeats is how long the signal that ends a command may come again without killing it: timeout sends it to the
// command and then to its process group.
const signalRepeats = time.Second

// untilSignalled returns a context that ends on a signal, with a signalError as its cause. A later signal kills as
// usual: not all work ends with the context.
func untilSignalled(signals ...os.Signal) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	c := make(chan os.Signal, 1)
	signal.Notify(c, signals...)
	go func() {
		if s, ok := (<-c).(syscall.Signal); ok {
			cancel(signalError(s))
			time.AfterFunc(signalRepeats, func() { signal.Stop(c) })
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
	if !signal.Ignored(syscall.SIGPIPE) { // a closed pipe becomes an error, so that files are closed and removed
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ) // at a limit of file sizes writing fails, with a message
	status := execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
