package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/writer"
)

// What a check can come to.
const (
	checkOK      = "ok"
	checkWarning = "warning"
	checkFailed  = "failed"
)

// checked is what one check of doctor came to.
type checked struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	// Found is what was found, Do what helps; empty where all is well.
	Found string `json:"found"`
	Do    string `json:"do,omitempty"`
}

// checkup collects checks.
type checkup struct {
	checks []checked
}

func (c *checkup) add(check, status, do, found string, args ...any) {
	c.checks = append(c.checks, checked{check, status, fmt.Sprintf(found, args...), do})
}

func (c *checkup) ok(check, found string, args ...any) { c.add(check, checkOK, "", found, args...) }
func (c *checkup) warn(check, do, found string, args ...any) {
	c.add(check, checkWarning, do, found, args...)
}
func (c *checkup) fail(check, do, found string, args ...any) {
	c.add(check, checkFailed, do, found, args...)
}

func (c *checkup) failed() bool {
	for _, x := range c.checks {
		if x.Status == checkFailed {
			return true
		}
	}
	return false
}

type doctorOptions struct {
	format string
	mpi    string
	spool  string
	quick  bool
}

func newDoctorCommand(a *app) *cobra.Command {
	var o doctorOptions
	c := &cobra.Command{
		Use:   "doctor [flags] [run|program]",
		Short: "Check that this machine can capture, that a program can be captured, or that a run is sound",
		Long: `doctor without an argument checks the machine: compilers, launchers, libraries, counters, the folders for records and
the cache; and captures a tiny program of two ranks with each MPI library that is there.

With a program it says which MPI library and which languages it uses, which functions of MPI it calls that commq does not
record, and what else is there that wraps MPI. With a run it says what is wrong with it or missing from it: ranks, calls
that could not be recorded, unmatched messages, times that run backwards, changed payloads, double capture.

Each check is ok, a warning or failed, with what was found and what to do. Exit status: 0 when nothing failed, 1 when
something did, 2 when the checks could not be made.`,
		Example: `  commq doctor
  commq doctor ./bt.C.x
  commq doctor bt.C.64 --format json`,
		Args:              wantArgs(0, 1, "a run or a program, or nothing"),
		ValidArgsFunction: completeRunOrFile(a),
		RunE:              func(c *cobra.Command, args []string) error { return runDoctor(c.Context(), a, &o, args) },
	}
	f := c.Flags()
	f.StringVar(&o.format, "format", "text", "format of the answer: text or json")
	f.StringVar(&o.mpi, "mpi", "", "MPI library to check, openmpi or mpich (default: all that are installed)")
	f.StringVar(&o.spool, "spool", "", "folder for the records to check (default: the folder for temporary files)")
	f.BoolVar(&o.quick, "quick", false, "compile and run nothing")
	complete(c, "format", hangFormats[:]...)
	complete(c, "mpi", "openmpi", "mpich")
	completeFolders(c, "spool")
	return c
}

func runDoctor(ctx context.Context, a *app, o *doctorOptions, args []string) error {
	if err := oneOf("format", o.format, hangFormats[:]...); err != nil {
		return err
	}
	if o.mpi != "" {
		if err := oneOf("mpi", o.mpi, "openmpi", "mpich"); err != nil {
			return err
		}
	}
	var c checkup
	if err := c.about(ctx, a, o, args); err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	var err error
	if o.format == "json" {
		err = printJSON(a.stdout, c.checks)
	} else {
		err = c.print(a.stdout)
	}
	if err == nil && c.failed() {
		return exitError(exitFailed)
	}
	return err
}

// about checks what the argument names: a program where it is an executable file, else a run.
func (c *checkup) about(ctx context.Context, a *app, o *doctorOptions, args []string) error {
	if len(args) == 0 {
		c.machine(ctx, a, o)
		return ctx.Err()
	}
	if info, err := os.Stat(args[0]); err == nil && info.Mode().IsRegular() {
		return c.program(ctx, args[0])
	}
	dir, err := writer.Find(a.storeDir(), args[0])
	if err == nil {
		return c.run(ctx, a, dir)
	}
	if path, e := exec.LookPath(args[0]); e == nil {
		return c.program(ctx, path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: neither a program nor a run: %w", args[0], err)
	}
	return err
}

// print prints a line for each check, the names aligned, and under it what to do.
func (c *checkup) print(w io.Writer) error {
	width := 0
	for _, x := range c.checks {
		width = max(width, len(x.Check))
	}
	var b strings.Builder
	paint, colours := painter(w), map[string]string{checkOK: green, checkWarning: yellow, checkFailed: red}
	count := map[string]int{}
	for _, x := range c.checks {
		count[x.Status]++
		fmt.Fprintf(&b, "%s  %-*s  %s\n", paint(colours[x.Status], fmt.Sprintf("%-7s", x.Status)), width, printable.Line(x.Check), printable.Line(x.Found))
		if x.Do != "" {
			fmt.Fprintf(&b, "%-7s  %-*s  -> %s\n", "", width, "", printable.Line(x.Do))
		}
	}
	fmt.Fprintf(&b, "%s ok, %s, %d failed\n", counted(int64(count[checkOK]), "check"), counted(int64(count[checkWarning]), "warning"), count[checkFailed])
	_, err := io.WriteString(w, b.String())
	return err
}
