package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/commq/commq/capture/replay"
	"github.com/commq/commq/predict"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/schema"
)

// playedPhase is a phase that was played.
type playedPhase struct {
	// Phase is its number, from 1, as commq phases has it, Weight how often the program repeats it.
	Phase  int   `json:"phase"`
	Weight int64 `json:"weight"`
	// TimeNs is the mean of the repetitions, since the whole takes their sum, each the mean over ranks; the other two are the shortest and the longest.
	TimeNs    int64 `json:"time_ns"`
	TimeNsMin int64 `json:"time_ns_min"`
	TimeNsMax int64 `json:"time_ns_max"`
	// TotalNs is TimeNs times the weight.
	TotalNs int64 `json:"total_ns"`
	// RunNs is the time of a repetition in the run that was played, and Share its part of the ranks' time, of calls in an untimed run.
	RunNs *int64  `json:"run_time_ns"`
	Share float64 `json:"share"`
}

// playedSignature is the answer of commq replay --phases.
type playedSignature struct {
	Run    string        `json:"run"`
	Ranks  int32         `json:"ranks"`
	Repeat int           `json:"repeat"`
	Phases []playedPhase `json:"phases"`
	// PETNs is the predicted execution time, the sum of each phase's time times its weight (PAS2P, equation 1); the other two are the least and the
	// greatest of the sums that single repetitions give.
	PETNs    int64 `json:"pet_ns"`
	PETNsMin int64 `json:"pet_ns_min"`
	PETNsMax int64 `json:"pet_ns_max"`
	// Coverage is what the phases have of the run's time, of its calls where it is untimed.
	Coverage float64 `json:"coverage"`
	// RunNs is how long the run that was played took; nil when its times were not measured.
	RunNs *int64 `json:"run_ns"`
	// PlayedNs is how long the phases were played in all.
	PlayedNs int64    `json:"played_ns"`
	Notes    []string `json:"notes,omitempty"`
}

// runReplayPhases plays one repetition of each relevant phase some times, and says what the whole would take.
func runReplayPhases(ctx context.Context, a *app, o *replayOptions) error {
	p, err := readPlayed(ctx, a, o.run, &o.playOptions)
	if err != nil {
		return err
	}
	run, err := predicted(ctx, p.dir)
	if err != nil {
		return err
	}
	sig, err := predict.Sign(run)
	if err != nil {
		return fmt.Errorf("replay --phases: %w", err)
	}
	answer := &playedSignature{Run: p.name, Ranks: sig.Ranks, Repeat: o.repeat}
	var windows []replay.Window
	for i := range sig.Phases {
		f := &sig.Phases[i]
		if !f.Agrees(sig.Ranks) || shareOf(f) < o.threshold {
			continue
		}
		windows = append(windows, windowOf(sig, i))
		answer.Coverage += shareOf(f)
		answer.Phases = append(answer.Phases, playedPhase{Phase: i + 1, Weight: f.Weight, RunNs: f.TimeNs, Share: shareOf(f)})
	}
	if len(windows) == 0 {
		return fmt.Errorf("replay --phases: run %q has no phase that all ranks repeat as often and that has %v of the time; commq phases --run %s --all says what it repeats", p.name, o.threshold, p.name)
	}
	s, err := p.schedule(ctx, replay.Options{Skip: o.skip, Windows: windows, Repeat: o.repeat})
	if err != nil {
		return err
	}
	answer.Notes = s.Notes
	t, err := p.measure(ctx, a, s)
	if err != nil {
		return err
	}
	answer.fill(t, p.manifest)
	if o.format == "json" {
		return printJSON(a.stdout, answer)
	}
	return answer.table(a.screen())
}

// windowOf is the middle repetition of a phase.
func windowOf(sig *predict.Signature, phase int) replay.Window {
	w := replay.Window{Times: sig.Phases[phase].Weight, Nth: sig.Phases[phase].Weight / 2}
	for _, r := range sig.Repetitions(phase) {
		w.First, w.Rows = append(w.First, r.First), append(w.Rows, r.Rows)
	}
	return w
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
	// A launcher that is killed leaves its ranks; asked once, it ends them. A terminal would ask it as well, and the second time it does not clean up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("replay %s: %s: %w", p.name, line[0], err)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("replay %s: its times: %w; name a folder that all nodes see with --schedule-dir", p.name, err)
	}
	defer f.Close()
	t, err := s.ReadTimes(f)
	if err != nil {
		return nil, fmt.Errorf("replay %s: %w", p.name, err)
	}
	return t, nil
}

// fill puts times into the answer.
func (s *playedSignature) fill(t *replay.Times, m *schema.Manifest) {
	sums := make([]float64, s.Repeat)
	for i := range s.Phases {
		f := &s.Phases[i]
		ns := t.Repetitions(i)
		for k, x := range ns {
			sums[k] += x * float64(f.Weight)
		}
		mean := stat.Mean(ns, nil)
		f.TimeNs, f.TimeNsMin, f.TimeNsMax = int64(mean), int64(slices.Min(ns)), int64(slices.Max(ns))
		f.TotalNs = int64(mean * float64(f.Weight))
		s.PETNs += f.TotalNs
	}
	s.PETNsMin, s.PETNsMax = int64(slices.Min(sums)), int64(slices.Max(sums))
	s.PlayedNs = t.Whole()
	if m.TimeOrigin == "measured" {
		s.RunNs = &m.EndNs
	}
}

var playedColumns = []queries.Column{{Name: "phase", Type: "INTEGER"}, {Name: "weight", Type: "BIGINT"}, {Name: "time_ns", Type: "BIGINT", Unit: "ns"},
	{Name: "time_ns_min", Type: "BIGINT", Unit: "ns"}, {Name: "time_ns_max", Type: "BIGINT", Unit: "ns"}, {Name: "total_ns", Type: "BIGINT", Unit: "ns"},
	{Name: "run_time_ns", Type: "BIGINT", Unit: "ns"}, {Name: "share", Type: "DOUBLE"}}

func (s *playedSignature) table(w io.Writer) error {
	span := func(ns int64) string { return time.Duration(ns).Round(10 * time.Microsecond).String() }
	text := fmt.Sprintf("predicted execution time of %s on %d ranks: %s (%s to %s in %s), of phases that have %s of its time\n", s.Run, s.Ranks, span(s.PETNs), span(s.PETNsMin), span(s.PETNsMax),
		counted(int64(s.Repeat), "repetition"), percent(s.Coverage))
	text += "they were played in " + span(s.PlayedNs)
	if s.RunNs != nil {
		text += fmt.Sprintf("; the run itself took %s, %.3g times as long", span(*s.RunNs), float64(*s.RunNs)/float64(max(s.PlayedNs, 1)))
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
		rows = append(rows, []any{int32(f.Phase), f.Weight, f.TimeNs, f.TimeNsMin, f.TimeNsMax, f.TotalNs, run, rounded6(f.Share)})
	}
	if err := output.Write(w, "table", queries.RowsOf(playedColumns, rows)); err != nil {
		return err
	}
	for _, n := range s.Notes {
		if _, err := fmt.Fprintln(w, n); err != nil {
			return err
		}
	}
	return nil
}

// checkPhases looks at the flags that go with --phases, or only without.
func (o *replayOptions) checkPhases() error {
	switch {
	case o.phases && o.name != "":
		return errors.New("--name: --phases makes no run")
	case o.repeat < 1:
		return fmt.Errorf("--repeat %d: want 1 or more", o.repeat)
	case !(o.threshold >= 0 && o.threshold <= 1):
		return fmt.Errorf("--threshold %v: want a part from 0 to 1", o.threshold)
	}
	return nil
}
