package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/predict/phases"
	"github.com/commq/commq/predict/training"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/replay"
	"github.com/commq/commq/replay/stored"
	"github.com/commq/commq/run"
)

// runReplayPhases plays one repetition of each relevant phase several times, and predicts the time of the whole.
func runReplayPhases(ctx context.Context, a *app, o *replayOptions) error {
	p, err := o.read(ctx, a)
	if err != nil {
		return err
	}
	answer := stored.NewPhasePrediction(p.run, o.repeat)
	windows, err := addPhases(ctx, answer, p.run, o.threshold)
	if err != nil {
		return fmt.Errorf("replay --phases: %w", err)
	}
	s, err := p.schedule(ctx, replay.Options{Windows: windows, Repeat: o.repeat})
	if err != nil {
		return err
	}
	t, err := p.measure(ctx, a, s)
	if err != nil {
		return err
	}
	answer.Notes = s.Notes
	answer.SetTimes(t)
	if o.format == "json" {
		return printJSON(a.stdout, answer)
	}
	return printPlayed(a, answer)
}

// addPhases adds the relevant phases of a run to the answer, and returns what is played of them.
func addPhases(ctx context.Context, answer *replay.PhasePrediction, r *run.Run, threshold float64) ([]replay.Window,
	error) {
	sig, err := training.SignRun(ctx, r.Dir)
	if err != nil {
		return nil, err
	}
	var windows []replay.Window
	for _, m := range phases.MiddleOfRelevant(sig, threshold) {
		f := &sig.Phases[m.Phase]
		answer.AddPhase(m.Phase+1, f.Weight, f.TimeNs, f.Share())
		windows = append(windows, replay.Window{First: m.First, Rows: m.Calls, Times: m.Weight, Nth: m.Nth})
	}
	if len(windows) == 0 {
		return nil, fmt.Errorf("run %q has no phase that all ranks repeat equally often and that has %v of the time; "+
			"commq phases --run %s --all lists what it repeats", r.Name, threshold, r.Name)
	}
	return windows, nil
}

// measure plays a schedule without capturing it, and reads its times.
func (p *played) measure(ctx context.Context, a *app, s *replay.Schedule) (*replay.Times, error) {
	folder, err := os.MkdirTemp(p.folder, "commq-times-")
	if err != nil {
		return nil, fmt.Errorf("replay: make a folder for the times: %w; name a writable one with --schedule-dir", err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "times")
	command, library, remove, err := p.write(ctx, s, file)
	if err != nil {
		return nil, err
	}
	defer remove()
	c := captureOptions{launcher: p.launcher}
	line, err := c.launcherLine(ctx, library)
	if err != nil {
		return nil, err
	}
	line = append(append(line, "-n", strconv.Itoa(s.Ranks)), command...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Stdout, cmd.Stderr = a.stderr, a.stderr
	// A launcher that is killed leaves its ranks behind; SIGTERM lets it end them. In a group of its own it does not
	// get the terminal's signal too: at the second one it would not clean up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("replay %s: %s: %w", p.name, line[0], err)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("replay %s: its times: %w; name a folder that all nodes see with --schedule-dir",
			p.name, err)
	}
	defer f.Close()
	t, err := s.ReadTimes(f)
	if err != nil {
		return nil, fmt.Errorf("replay %s: %w", p.name, err)
	}
	return t, nil
}

var playedColumns = []queries.Column{{Name: "phase", Type: "INTEGER"}, {Name: "weight", Type: "BIGINT", Unit: "1"},
	{Name: "time_ns", Type: "BIGINT", Unit: "ns"},
	{Name: "time_min_ns", Type: "BIGINT", Unit: "ns"}, {Name: "time_max_ns", Type: "BIGINT", Unit: "ns"},
	{Name: "total_ns", Type: "BIGINT", Unit: "ns"},
	{Name: "run_time_ns", Type: "BIGINT", Unit: "ns"}, {Name: "share", Type: "DOUBLE", Unit: "1", Share: true}}

// printPlayed writes the prediction and its phases for people.
func printPlayed(a *app, s *replay.PhasePrediction) error {
	w := a.out()
	text := fmt.Sprintf("predicted execution time of %s on %d ranks: %s (%s to %s in %s), from phases with %s of "+
		"its time\n", s.Run, s.Ranks, units.Duration(s.PETNs), units.Duration(s.PETNsMin), units.Duration(s.PETNsMax),
		counted(int64(s.Repeat), "repetition"), percent(s.Coverage))
	text += "they were played in " + units.Duration(s.PlayedNs)
	if s.RunNs != nil {
		text += fmt.Sprintf("; the run itself took %s, %s times as long", units.Duration(*s.RunNs),
			units.Number(float64(*s.RunNs)/float64(max(s.PlayedNs, 1))))
	}
	if _, err := fmt.Fprint(w, text, "\n\n"); err != nil {
		return err
	}
	var rows [][]any
	for i := range s.Phases {
		f := &s.Phases[i]
		var run any
		if f.RunNs != nil {
			run = *f.RunNs
		}
		rows = append(rows, []any{int32(f.Phase), f.Weight, f.TimeNs, f.TimeNsMin, f.TimeNsMax, f.TotalNs, run,
			rounded6(f.Share)})
	}
	if err := a.writeRows("table", queries.RowsOf(playedColumns, rows)); err != nil {
		return err
	}
	for _, n := range s.Notes {
		if _, err := fmt.Fprintln(w, n); err != nil {
			return err
		}
	}
	return nil
}

// checkPhases validates the flags of --phases.
func (o *replayOptions) checkPhases(c *cobra.Command) error {
	for _, name := range []string{"repeat", "threshold"} {
		if c.Flags().Changed(name) && !o.phases {
			return fmt.Errorf("--%s is about phases; want --phases too", name)
		}
	}
	for _, name := range []string{"name", "gather", "replace"} {
		if c.Flags().Changed(name) && o.phases {
			return fmt.Errorf("--%s: --phases writes no run; leave out one of them", name)
		}
	}
	switch {
	case o.repeat < 1:
		return fmt.Errorf("--repeat %d: want 1 or more", o.repeat)
	case !(o.threshold >= 0 && o.threshold <= 1):
		return fmt.Errorf("--threshold %v: want a fraction from 0 to 1", o.threshold)
	}
	return nil
}
