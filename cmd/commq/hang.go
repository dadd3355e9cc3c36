package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/hang"
	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/schema"
)

type hangOptions struct {
	job    string
	format string
	lines  int
}

// hangFormats are the formats of commq hang.
var hangFormats = [...]string{"text", "json"}

func newHangCommand(a *app) *cobra.Command {
	var o hangOptions
	c := &cobra.Command{
		Use:   "hang [flags] spool",
		Short: "Say what each rank of a hanging, killed or running job is doing, and who waits for whom",
		Long: `hang reads the records that the ranks of a job have left in the spool folder so far, while they run or after they were
killed, and prints what every rank is doing: the call it is in, with whom, since when (seconds since MPI_Init), and
which ranks it waits for. Ranks that wait for each other in a circle are named (deadlock), as are ranks that are in
different collective operations at the same place (mismatch), ranks that have ended (ended) and those that the others
wait for and that wait for nobody (waiting).

What a call of several requests (MPI_Waitany) waits for is taken from all requests that the rank has outstanding. A rank
outside MPI computes, or polls with tests that fail.`,
		Example: `  commq hang /scratch/spool
  commq hang /scratch/spool --format json
  commq capture --run stuck -n 4 --launcher "timeout 60 mpirun" -- ./stuck`,
		Args:              wantArgs(1, 1, "the spool folder"),
		ValidArgsFunction: oneFolder,
		RunE:              func(_ *cobra.Command, args []string) error { return runHang(a, &o, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&o.job, "job", "", "id of the job, where the spool has several")
	f.StringVar(&o.format, "format", "text", "format of the answer: text or json")
	f.IntVar(&o.lines, "lines", 0, "print at most so many lines of text, 0 for all")
	complete(c, "format", hangFormats[:]...)
	register(c, completeJobs, "job")
	completeNothing(c, "lines")
	return c
}

func runHang(a *app, o *hangOptions, spoolDir string) error {
	if err := oneOf("format", o.format, hangFormats[:]...); err != nil {
		return err
	}
	if o.lines < 0 {
		return fmt.Errorf("--lines %d: want a number of lines, 0 for all", o.lines)
	}
	j, err := hang.Open(spoolDir, o.job)
	if err != nil {
		return fmt.Errorf("hang: %w", err)
	}
	r, err := standstill(j)
	if err != nil {
		return fmt.Errorf("hang: %w", err)
	}
	if o.format == "json" {
		return printJSON(a.stdout, r)
	}
	return r.Write(printable.Writer(a.stdout), o.lines)
}

// standstill reads a running job twice: calls that are in progress both times stand still.
func standstill(j *hang.Job) (*hang.Report, error) {
	r := j.Report()
	if r.State != hang.Running {
		return r, nil
	}
	time.Sleep(hangPause)
	if err := j.Update(); err != nil {
		return nil, err
	}
	return j.Report(), nil
}

// hangPause is how long a call of a running job must last to count as standing still.
const hangPause = 200 * time.Millisecond

// hangLines is how long the report is that capture and ingest print.
const hangLines = 20

// printStuck prints what the ranks were doing when a job ended with calls in progress. It is a help beside the run: where the
// spool cannot be read so, ingest has said what is wrong with it.
func printStuck(w io.Writer, m *schema.Manifest, spoolDir string) {
	if m.Counts.InProgress == 0 {
		return
	}
	j, err := hang.Open(spoolDir, m.Origin.Job)
	if err != nil {
		return
	}
	r, err := standstill(j) // ranks that a signal ends may outlive their launcher by a little
	if err != nil {
		return
	}
	fmt.Fprint(w, "who waits for whom: ")
	_ = r.Write(w, hangLines)
}
