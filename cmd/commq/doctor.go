package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/doctor"
	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/queries"
)

// doctorOptions are the flags of commq doctor.
type doctorOptions struct {
	format string // --format
	run    string // --run
	mpi    string // --mpi
	spool  string // --spool
	quick  bool   // --quick
}

func newDoctorCommand(a *app) *cobra.Command {
	var o doctorOptions
	c := &cobra.Command{
		Use:   "doctor [flags] [run|program]",
		Short: "Check that this machine can capture, that a program can be captured, or that a run is sound",
		Long: `doctor without an argument checks the machine: compilers, launchers, libraries, counters, the folders
for records and the cache. It also captures a tiny program of two ranks with each MPI library it finds.

With a program it names the MPI library and the languages, the functions of MPI that commq does not record, and other
tools that wrap MPI. With a run it reports what is wrong or missing: ranks, lost calls, unmatched messages, times
that run backwards, changed payloads, calls recorded twice.

Each check is ok, a warning or failed, with what was found and what to do. Exit status: 0 when nothing failed, 1 when
something did, 2 when the checks could not be made.`,
		Example: `  commq doctor
  commq doctor ./bt.C.x
  commq doctor bt.C.64
  commq doctor --run ./somewhere/ring.4 --format json`,
		Args:              wantArgs(0, 1, "a run or a program, or nothing"),
		ValidArgsFunction: completeRunOrFile(a),
		RunE:              func(c *cobra.Command, args []string) error { return runDoctor(c.Context(), a, &o, args) },
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "`RUN` to check: a name in the store, a path, or a pattern of either. An argument "+
		"may be a run or a program, --run is always a run")
	register(c, completeRuns(a), "run")
	beforeRun(c, func(args []string) error {
		if o.run != "" && len(args) > 0 {
			return fmt.Errorf("doctor: unexpected argument %q; want one run or program", args[0])
		}
		return a.settleOne(c)
	})
	f.StringVar(&o.format, "format", "text", "`FORMAT` of the answer: text or json")
	f.StringVar(&o.mpi, "mpi", "", "MPI library to check, openmpi or mpich (default: all that are installed)")
	f.StringVar(&o.spool, "spool", "", "`FOLDER` for the records to check (default: the folder for temporary files)")
	f.BoolVar(&o.quick, "quick", false, "compile and run nothing")
	complete(c, "format", spokenFormats[:]...)
	complete(c, "mpi", "openmpi", "mpich")
	completeFolders(c, "spool")
	return c
}

func runDoctor(ctx context.Context, a *app, o *doctorOptions, args []string) error {
	if err := oneOf("format", o.format, spokenFormats[:]...); err != nil {
		return err
	}
	if o.mpi != "" {
		if err := oneOf("mpi", o.mpi, "openmpi", "mpich"); err != nil {
			return err
		}
	}
	list, err := examine(ctx, a, o, args)
	if err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	if o.format == "json" {
		err = printJSON(a.stdout, list)
	} else {
		err = printFindings(a, list)
	}
	if err == nil && doctor.AnyFailed(list) {
		return exitError(exitFailed)
	}
	return err
}

// examine checks the run of --run, or what the argument names, a program or a run; without both the machine.
func examine(ctx context.Context, a *app, o *doctorOptions, args []string) ([]doctor.Finding, error) {
	if o.run != "" {
		return doctor.ExamineRun(ctx, a.storeDir(), o.run, doctorEngine)
	}
	if len(args) == 0 {
		step, clear := statusLine(a)
		defer clear()
		compiling := noteCompiling(a)
		if note := compiling; note != nil {
			compiling = func(what string) { clear(); note(what) }
		}
		list := doctor.Machine(ctx, doctor.MachineOptions{MPI: o.mpi, Spool: o.spool, Store: a.storeDir(),
			Quick: o.quick, Version: version, Compiling: compiling, Step: step})
		return list, ctx.Err()
	}
	return doctor.Examine(ctx, a.storeDir(), args[0], doctorEngine)
}

// doctorEngine opens the engine over a run.
func doctorEngine(ctx context.Context, r *doctor.Run, use func(rows.Ask) error) error {
	return withEngine(ctx, []queries.Run{{Name: r.Name, Dir: r.Dir, Manifest: r.Manifest}}, queries.Options{}, use)
}

// printFindings prints a line for each check, with names aligned, and below it what to do.
func printFindings(a *app, list []doctor.Finding) error {
	width, columns := 0, a.text().Width
	if columns == 0 {
		columns = allColumns
	}
	for _, f := range list {
		width = max(width, len(f.Check))
	}
	var b strings.Builder
	paint := painter(a.stdout)
	below := strings.Repeat(" ", 7+2+width+2)
	colours := map[doctor.Status]string{doctor.OK: green, doctor.Warning: yellow, doctor.Failed: red}
	count := map[doctor.Status]int{}
	for _, f := range list {
		count[f.Status]++
		status := paint(colours[f.Status], fmt.Sprintf("%-7s", f.Status))
		fmt.Fprintf(&b, "%s  %-*s  ", status, width, printable.Line(f.Check))
		for i, line := range strings.Split(printable.Text(f.Found), "\n") {
			if i > 0 {
				b.WriteString(below)
			}
			if len(below)+len(line) > columns {
				line = printable.Wrap(line, below, columns)
			}
			b.WriteString(line + "\n")
		}
		if f.Do != "" {
			b.WriteString(below + "-> " + printable.Wrap(printable.Line(f.Do), below+"   ", columns) + "\n")
		}
	}
	fmt.Fprintf(&b, "%s ok, %s, %d failed\n", counted(int64(count[doctor.OK]), "check"),
		counted(int64(count[doctor.Warning]), "warning"), count[doctor.Failed])
	_, err := io.WriteString(a.stdout, b.String())
	return err
}
