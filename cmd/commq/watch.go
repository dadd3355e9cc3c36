package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/hang"
	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/internal/printable"
)

type watchOptions struct {
	job      string
	format   string
	interval time.Duration
	once     bool
	hang     hangOptions
}

// spokenFormats are the formats of answers that are not tables.
var spokenFormats = [...]string{"text", "json"}

func newWatchCommand(a *app) *cobra.Command {
	var o watchOptions
	c := &cobra.Command{
		Use:   "watch [flags] spool",
		Short: "Follow a running job, or show who waits for whom in one that hangs or was killed",
		Long: `watch reads the records of a running job every --interval and prints how many ranks have started and
ended, the calls and bytes recorded with their rates, the calls that ranks are in and for how long, the ranks with
the fewest calls, and what could not be recorded. On a terminal the lines stay in place; elsewhere each report is one
line (with --format json, one object).

spool is the folder of the records, or the one that was given to commq capture --spool if it has the records of one
capture. watch waits if the folder is empty, for the job may start later. It ends when all ranks have ended. Exit
status: 0 when they finalized (or with --once), 1 when the job was aborted or killed, 2 when the records were removed
before that could be seen, 130 after Ctrl-C. It reads only headers and new records, so a report is cheap however much
was recorded; calls in files that were large at the start are estimated (~). Records that a process without mapped
files has not written yet are not counted.

--hang reports once, on a job that runs, hangs or was killed: the call that each rank is in, with whom, since when
(seconds since MPI_Init), and which ranks it waits for. It names ranks that wait for each other in a circle
(deadlock), ranks that are, or were lately, in different collective operations at the same place (mismatch), ranks that
have ended (ended), and ranks that others wait for and that wait for nobody (waiting). MPI_Waitany and
MPI_Waitsome are taken to wait for any one of the outstanding requests of the rank. A rank outside MPI computes, or polls
with tests that fail.`,
		Example: `  commq watch /scratch/spool
  commq watch /scratch/spool --hang
  commq watch /scratch/spool --hang --format json
  commq watch /scratch/spool --interval 60s >> progress.log`,
		Args:              wantArgs(1, 1, "the spool folder"),
		ValidArgsFunction: oneFolder,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.hang.check(c); err != nil {
				return err
			}
			return runWatch(c.Context(), a, &o, args[0])
		},
	}
	f := c.Flags()
	f.StringVar(&o.job, "job", "", "id of the job, if the spool has several")
	f.DurationVar(&o.interval, "interval", 2*time.Second, "time between two reports")
	f.BoolVar(&o.once, "once", false, "report once")
	o.hang.flags(c)
	f.StringVar(&o.format, "format", "text", "`FORMAT` of the answer: "+strings.Join(spokenFormats[:], " or "))
	complete(c, "format", spokenFormats[:]...)
	register(c, completeJobs, "job")
	completeNothing(c, "interval")
	return c
}

func runWatch(ctx context.Context, a *app, o *watchOptions, spoolDir string) error {
	if err := oneOf("format", o.format, spokenFormats[:]...); err != nil {
		return err
	}
	if err := checkSpool(spoolDir); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if o.hang.on {
		return reportHang(a, o, ingest.FolderOf(spoolDir))
	}
	if o.interval < 100*time.Millisecond {
		return fmt.Errorf("--interval %s: want at least 100ms", o.interval)
	}
	w := watching{app: a, o: o, dir: spoolDir, inPlace: o.format == "text" && !o.once && understands(a.stdout)}
	watcher, err := w.start(ctx)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if watcher == nil {
		return endedBySignal(ctx)
	}
	defer watcher.Close()
	for {
		p, err := watcher.Look()
		if errors.Is(err, fs.ErrNotExist) && w.reports > 0 {
			return fmt.Errorf("watch: the records in %s are gone (ingested, or removed) and how the job ended was not "+
				"seen; the run that was made of them tells it, or watch with a smaller --interval", w.dir)
		}
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		if err := w.show(p); err != nil {
			return err
		}
		ended := p.State != hang.Running && p.State != hang.Unknown
		switch {
		case ended && p.State != hang.Finalized && !o.once:
			return exitError(exitFailed)
		case ended || o.once:
			return nil
		case !pause(ctx, o.interval):
			return endedBySignal(ctx)
		}
	}
}

// start waits for the first rank. It returns nil if the user interrupts it.
func (w *watching) start(ctx context.Context) (*hang.Watcher, error) {
	given := w.dir
	for noted := false; ; noted = true {
		w.dir = ingest.FolderOf(given)
		jobs, err := ingest.Jobs(w.dir)
		if err != nil {
			return nil, err
		}
		if len(jobs) > 0 || w.o.once {
			return hang.Watch(w.dir, w.o.job)
		}
		if err := ingest.CheckAwaited(w.dir); err != nil {
			return nil, err
		}
		if !noted {
			w.app.note("watch: no records in %s so far; waiting for the first rank", given)
		}
		if !pause(ctx, w.o.interval) {
			return nil, nil
		}
	}
}

// pause waits. It returns false if it is interrupted.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// watching is the state of commq watch.
type watching struct {
	app     *app
	o       *watchOptions
	dir     string
	inPlace bool
	reports int           // so far
	lines   int           // of the last report on the terminal
	before  hang.Progress // at the last report
	last    time.Time     // of the last report
}

// watchReport is one report as JSON.
type watchReport struct {
	// At is when the report was made, in RFC 3339 and UTC.
	At string `json:"at"`
	*hang.Progress
	// CallsPerS is the number of calls recorded per second since the last report; 0 in the first.
	CallsPerS float64 `json:"calls_per_s"`
	// BytesPerS is the number of bytes recorded per second since the last report; 0 in the first.
	BytesPerS float64 `json:"spool_bytes_per_s"`
}

// show prints a report.
func (w *watching) show(p *hang.Progress) error {
	now := time.Now()
	l := watchReport{At: now.UTC().Format(time.RFC3339), Progress: p}
	if s := now.Sub(w.last).Seconds(); w.reports > 0 && s > 0 {
		l.CallsPerS = float64(p.Calls-w.before.Calls) / s
		l.BytesPerS = max(0, float64(p.Bytes-w.before.Bytes)/s) // records that were packed since take fewer bytes
	}
	first := w.reports == 0
	w.reports, w.before, w.last = w.reports+1, *p, now
	if w.o.format == "json" {
		return printJSONLine(w.app.stdout, l)
	}
	parts := l.parts(first)
	text := printable.Text(fmt.Sprintf("%s %s\n", now.Format(time.TimeOnly), strings.Join(parts, "; ")))
	if w.inPlace {
		rows := reportRows(parts, w.app.text().Width)
		text = inPlace(rows, w.lines)
		w.lines = strings.Count(rows, "\n")
	}
	_, err := fmt.Fprint(w.app.stdout, text)
	return err
}

// reportRows returns the parts of a report, each in as many lines as it takes rows on a terminal of so many columns.
func reportRows(parts []string, columns int) string {
	var b strings.Builder
	for _, part := range parts {
		part = printable.Line(part)
		if columns > 1 {
			part = breakLines(printable.Wrap(part, "  ", columns-1), columns-1) // the last column is for the cursor
		}
		b.WriteString(part + "\n")
	}
	return b.String()
}

// breakLines breaks lines that are longer than so many columns, within words too, as a terminal would.
func breakLines(text string, columns int) string {
	var b strings.Builder
	column := 0
	for _, r := range text {
		if r == '\n' {
			column = 0
		} else if column++; column > columns {
			b.WriteByte('\n')
			column = 1
		}
		b.WriteRune(r)
	}
	return b.String()
}

// inPlace makes a text replace the last lines on the terminal.
func inPlace(text string, lines int) string {
	up := ""
	if lines > 0 {
		up = fmt.Sprintf("\x1b[%dA", lines)
	}
	return up + strings.ReplaceAll(text, "\n", "\x1b[K\n") + "\x1b[J"
}

// parts returns the report in words, one part per line or all on one line. The first report has no rates.
func (l *watchReport) parts(first bool) []string {
	about := ""
	if !l.Exact {
		about = "~"
	}
	ranks := fmt.Sprintf("%s: %d of %d ranks", filepath.Base(l.Program), l.Seen, l.Ranks)
	if l.Ended > 0 {
		ranks += fmt.Sprintf(", %d ended", l.Ended)
	}
	rate := func(perSecond string) string {
		if first {
			return ""
		}
		return " (" + perSecond + "/s)"
	}
	counts := fmt.Sprintf("%s%s calls%s, %s of records%s", about, grouped(l.Calls), rate(grouped(int64(l.CallsPerS))),
		inBytes(l.Bytes), rate(inBytes(int64(l.BytesPerS))))
	parts := []string{ranks + ", " + l.State, counts}
	if doing := l.doing(); doing != "" {
		parts = append(parts, doing)
	}
	if len(l.Behind) > 0 && l.Ranks > 1 {
		var few []string
		for _, r := range l.Behind {
			few = append(few, fmt.Sprintf("rank %d (%s)", r.Rank, grouped(r.Calls)))
		}
		parts = append(parts, "fewest calls: "+strings.Join(few, ", "))
	}
	if l.Dropped > 0 {
		parts = append(parts, counted(l.Dropped, "call")+" could not be recorded")
	}
	if l.Limited > 0 {
		parts = append(parts, counted(int64(l.Limited), "rank")+" at the limit of the spool")
	}
	return parts
}

// maxDoing is the maximum number of calls that a report names.
const maxDoing = 3

// doing lists the calls that ranks are in.
func (l *watchReport) doing() string {
	var parts []string
	for i, d := range l.Doing {
		if i == maxDoing {
			parts = append(parts, fmt.Sprintf("%d other calls", len(l.Doing)-maxDoing))
			break
		}
		text := fmt.Sprintf("%d in %s", len(d.Ranks), d.Call)
		if d.Call == "" {
			text = fmt.Sprintf("%d outside MPI", len(d.Ranks))
		}
		if d.LongestNs != nil && *d.LongestNs >= int64(time.Second) {
			text += fmt.Sprintf(" (rank %d for %s)", d.LongestRank,
				time.Duration(*d.LongestNs).Round(100*time.Millisecond))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
