package main

import (
	"context"
	"encoding/json"
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
	hang     bool
}

func newWatchCommand(a *app) *cobra.Command {
	var o watchOptions
	c := &cobra.Command{
		Use:   "watch [flags] spool",
		Short: "Follow a running job: calls, bytes, and the calls that its ranks are in",
		Long: `watch looks at the records of a running job every --interval and prints how many ranks have started and ended, calls
recorded and bytes of records with their rates, the calls that ranks are in and for how long, the ranks with the fewest
calls, and what could not be recorded. On a terminal the lines stay in place; elsewhere each look is one line (with
--format json, one object).

It ends when all ranks have ended. Exit status: 0 when they finalized (or with --once), 1 when the job was aborted or
killed. It reads headers and what is new, so a look costs little however much was recorded; of files that were large
already, calls are estimated (~). Records that a process without mapped files has not written out yet are not seen.`,
		Example: `  commq watch /scratch/spool
  commq watch /scratch/spool --once --hang
  commq watch /scratch/spool --interval 60s >> progress.log`,
		Args:              wantArgs(1, 1, "the spool folder"),
		ValidArgsFunction: oneFolder,
		RunE:              func(c *cobra.Command, args []string) error { return runWatch(c.Context(), a, &o, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&o.job, "job", "", "id of the job, where the spool has several")
	f.DurationVar(&o.interval, "interval", 2*time.Second, "time between two looks")
	f.BoolVar(&o.once, "once", false, "look once")
	f.BoolVar(&o.hang, "hang", false, "print who waits for whom too (see commq hang); reads all records once")
	f.StringVar(&o.format, "format", "text", "format of the answer: text or json")
	complete(c, "format", hangFormats[:]...)
	register(c, completeJobs, "job")
	completeNothing(c, "interval")
	return c
}

func runWatch(ctx context.Context, a *app, o *watchOptions, spoolDir string) error {
	if err := oneOf("format", o.format, hangFormats[:]...); err != nil {
		return err
	}
	if o.interval < 100*time.Millisecond {
		return fmt.Errorf("--interval %s: want at least 100ms", o.interval)
	}
	w := watching{app: a, o: o, dir: spoolDir, inPlace: o.format == "text" && !o.once && understands(a.stdout)}
	watcher, err := w.start(ctx)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	for watcher != nil {
		p, err := watcher.Look()
		if errors.Is(err, fs.ErrNotExist) && w.looks > 0 {
			a.warn("watch: %v", err)
			return nil
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
			return nil
		}
	}
	return nil
}

// start waits for the first rank; nil: the user gave up.
func (w *watching) start(ctx context.Context) (*hang.Watcher, error) {
	for said := false; ; said = true {
		jobs, err := ingest.Jobs(w.dir)
		if err != nil {
			return nil, err
		}
		if len(jobs) > 0 || w.o.once {
			return hang.Watch(w.dir, w.o.job)
		}
		if !said {
			w.app.note("watch: %s is empty so far; waiting for the first rank", w.dir)
		}
		if !pause(ctx, w.o.interval) {
			return nil, nil
		}
	}
}

// pause waits; false: it was interrupted.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// watching is what watch prints.
type watching struct {
	app     *app
	o       *watchOptions
	dir     string
	inPlace bool
	looks   int
	lines   int // on the terminal
	before  hang.Progress
	at      time.Time
	hang    *hang.Job
}

// look is one look as JSON.
type look struct {
	At string `json:"at"`
	*hang.Progress
	CallsPerS float64      `json:"calls_per_s"`
	BytesPerS float64      `json:"bytes_per_s"`
	Hang      *hang.Report `json:"hang,omitempty"`
}

// show prints a look.
func (w *watching) show(p *hang.Progress) error {
	now := time.Now()
	l := look{At: now.UTC().Format(time.RFC3339), Progress: p}
	if s := now.Sub(w.at).Seconds(); w.looks > 0 && s > 0 {
		l.CallsPerS, l.BytesPerS = float64(p.Calls-w.before.Calls)/s, float64(p.Bytes-w.before.Bytes)/s
	}
	first := w.looks == 0
	w.looks, w.before, w.at = w.looks+1, *p, now
	if w.o.hang {
		r, err := w.report(p.Job)
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		l.Hang = r
	}
	if w.o.format == "json" {
		return json.NewEncoder(w.app.stdout).Encode(l)
	}
	var b strings.Builder
	parts := l.parts(first)
	if w.inPlace {
		b.WriteString(strings.Join(parts, "\n") + "\n")
	} else {
		fmt.Fprintf(&b, "%s %s\n", now.Format(time.TimeOnly), strings.Join(parts, "; "))
	}
	if l.Hang != nil {
		if err := l.Hang.Write(&b, hangLines); err != nil {
			return err
		}
	}
	text := printable.Text(b.String())
	if w.inPlace {
		text = inPlace(text, w.lines)
		w.lines = strings.Count(b.String(), "\n")
	}
	_, err := fmt.Fprint(w.app.stdout, text)
	return err
}

// inPlace lets text stand where so many lines stand now.
func inPlace(text string, lines int) string {
	up := ""
	if lines > 0 {
		up = fmt.Sprintf("\x1b[%dA", lines)
	}
	return up + strings.ReplaceAll(text, "\n", "\x1b[K\n") + "\x1b[J"
}

// report reads on in the records and says who waits for whom.
func (w *watching) report(job string) (*hang.Report, error) {
	if w.hang == nil {
		j, err := hang.Open(w.dir, job)
		if err != nil {
			return nil, err
		}
		w.hang = j
		if w.o.once {
			time.Sleep(hangPause)
		}
	}
	if err := w.hang.Update(); err != nil {
		return nil, err
	}
	return w.hang.Report(), nil
}

// parts are a look in words, in parts that can stand in lines or behind each other. Without a look before there are no
// rates.
func (l *look) parts(first bool) []string {
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
	counts := fmt.Sprintf("%s%s calls%s, %s%s", about, grouped(l.Calls), rate(grouped(int64(l.CallsPerS))), inBytes(l.Bytes), rate(inBytes(int64(l.BytesPerS))))
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

// maxDoing is how many calls a look names.
const maxDoing = 3

// doing says which calls the ranks are in.
func (l *look) doing() string {
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
			text += fmt.Sprintf(" (rank %d for %s)", d.LongestRank, time.Duration(*d.LongestNs).Round(100*time.Millisecond))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
