package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/hang"
	"github.com/commq/commq/schema"
)

// hangOptions are the flags of commq watch that report once who waits for whom.
type hangOptions struct {
	on    bool // --hang
	limit int  // --limit
}

func (h *hangOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&h.on, "hang", false, "report once what each rank is doing and who waits for whom")
	f.IntVar(&h.limit, "limit", 0, "with --hang: at most `N` lines of text, 0 for all")
	completeNothing(c, "limit")
}

// check rejects flags for following a job with --hang, and the other way round.
func (h *hangOptions) check(c *cobra.Command) error {
	switch {
	case h.on && c.Flags().Changed("interval"):
		return errors.New("--interval is for following a job; --hang reports once")
	case !h.on && c.Flags().Changed("limit"):
		return errors.New("--limit is about the report of --hang; want --hang too")
	case h.limit < 0:
		return fmt.Errorf("--limit %d: want a number of lines, 0 for all", h.limit)
	}
	return nil
}

// reportHang prints what the ranks of a job are doing and who waits for whom.
func reportHang(a *app, o *watchOptions, spoolDir string) error {
	j, err := hang.Open(spoolDir, o.job)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	r, err := standstill(j)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if o.format == "json" {
		return printJSON(a.stdout, r)
	}
	return r.Write(a.out(), o.hang.limit)
}

// standstill reads a running job twice: calls in progress both times are stuck.
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

// hangPause is the minimum time that a call of a running job must last to count as stuck.
const hangPause = 200 * time.Millisecond

// hangLines is the maximum number of lines of the report that capture and ingest print.
const hangLines = 20

// printStuck prints what the ranks were doing when a job ended with calls in progress. over tells that the launcher has
// ended. Errors are ignored: if the spool cannot be read, ingest has reported it.
func printStuck(w io.Writer, m *schema.Manifest, spoolDir string, over bool) {
	if m.Counts.InProgress == 0 {
		return
	}
	j, err := hang.Open(spoolDir, m.Origin.Job)
	if err != nil {
		return
	}
	j.Over = over // ranks that a signal ends may outlive their launcher
	r, err := standstill(j)
	if err != nil {
		return
	}
	fmt.Fprint(w, "who waits for whom: ")
	_ = r.Write(w, hangLines)
}
