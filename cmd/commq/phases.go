package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/commq/commq/predict"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/queries/plot"
	"github.com/commq/commq/schema"
)

// phasesOptions are the flags of commq phases.
type phasesOptions struct {
	run       string  // --run
	threshold float64 // --threshold
	all       bool    // --all
	format    string  // --format
	plot      string  // --plot
}

func newPhasesCommand(a *app) *cobra.Command {
	var o phasesOptions
	c := &cobra.Command{
		Use:   "phases",
		Short: "Which sequences of calls a run repeats, how often, and how much of it they are",
		Long: `phases finds the phases of a run and their weights, as PAS2P does: the outermost sequences of calls that ranks repeat. One whose
weight all ranks agree on is a phase of the program. Relevant ones have at least --threshold of the ranks' time (of their calls, in an untimed
run); the others are left out but with --all. events is the calls of a repetition on a rank: where ranks differ the least and the most.
ticks is how long a repetition is on the logical clock, on which a receive is after its send and a collective as late as its last rank.
--plot draws when each rank was in which phase: over time, or in an untimed run over the logical clock.

Capture the run with --stack 16, so that a call is known by its path from main. docs/method/prediction.md has the method.`,
		Example: `  commq phases --run bt.W.16
  commq phases --run mg.W.64 --threshold 0.05 --format json
  commq phases --run bt.W.16 --plot phases.png`,
		Args:              wantArgs(0, 0, "no arguments but flags; name the run with --run"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf("format", o.format, runsFormats[:]...); err != nil {
				return err
			}
			return runPhases(c.Context(), a, &o, c.Flags().Changed("format"))
		},
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "`RUN` to look at: a name in the store, or a path")
	f.Float64Var(&o.threshold, "threshold", 0.01, "least part of the time that a relevant phase has, 0 to 1")
	f.BoolVar(&o.all, "all", false, "also phases that are not relevant, and those whose weight ranks do not agree on")
	f.StringVar(&o.plot, "plot", "", "draw when ranks were in phases into a `FILE`.png, .svg or .pdf; the rows are printed only with --format")
	formatFlag(c, &o.format)
	register(c, completeRuns(a), "run")
	completeFiles(c, "plot", plot.Formats()...)
	completeNothing(c, "threshold")
	return c
}

func runPhases(ctx context.Context, a *app, o *phasesOptions, rowsToo bool) error {
	switch {
	case o.run == "":
		return errors.New("no run given; name one with --run")
	case !(o.threshold >= 0 && o.threshold <= 1):
		return fmt.Errorf("--threshold %v: want a part from 0 to 1", o.threshold)
	}
	if o.plot != "" {
		if err := plot.Known(o.plot); err != nil {
			return err
		}
	}
	run, err := findPredicted(ctx, a, o.run)
	if err != nil {
		return err
	}
	s, err := predict.Sign(run)
	if err != nil {
		return fmt.Errorf("phases: %w", err)
	}
	rows, covered := phaseRows(s, o)
	if o.plot != "" {
		d := phaseChart(s, o, covered)
		if err := writeFile(o.plot, func(w io.Writer) error { return d.Draw(w, plot.FormatOf(o.plot)) }); err != nil {
			return err
		}
		if !rowsToo {
			a.note("%s drawn", o.plot)
			return nil
		}
	}
	if o.format == "table" {
		if err := phasesSummary(a.screen(), s, covered); err != nil {
			return err
		}
	}
	return output.Write(a.screen(), o.format, rows)
}

// shareOf is what a phase has of the run: of its time, or where that is not known of its calls.
func shareOf(p *predict.Phase) float64 {
	if p.TimeShare != nil {
		return *p.TimeShare
	}
	return p.CallShare
}

// relevant says whether a phase is one of the program with enough of the run.
func (o *phasesOptions) relevant(s *predict.Signature, p *predict.Phase) bool {
	return p.Agrees(s.Ranks) && shareOf(p) >= o.threshold
}

// coverage is what the phases that are told have of the run.
type coverage struct {
	phases, other int
	share, calls  float64
}

// text says what the relevant phases cover.
func (c coverage) text(s *predict.Signature) string {
	time := percent(c.share) + " of the time and "
	if s.TimeOrigin == "untimed" {
		time = ""
	}
	return fmt.Sprintf("%s with %s%s of %s", counted(int64(c.phases), "relevant phase"), time, percent(c.calls), counted(s.Calls, "call"))
}

// phaseColumns are the columns of the answer.
var phaseColumns = []queries.Column{{Name: "phase", Type: "INTEGER"}, {Name: "weight", Type: "BIGINT"}, {Name: "weight_min", Type: "BIGINT"}, {Name: "ranks", Type: "INTEGER"},
	{Name: "events_min", Type: "BIGINT"}, {Name: "events_max", Type: "BIGINT"}, {Name: "forms", Type: "INTEGER"}, {Name: "ticks", Type: "DOUBLE"},
	{Name: "call_share", Type: "DOUBLE"}, {Name: "time_ns", Type: "BIGINT", Unit: "ns"}, {Name: "time_share", Type: "DOUBLE"}, {Name: "relevant", Type: "BOOLEAN"}}

func phaseRows(s *predict.Signature, o *phasesOptions) (queries.Rows, coverage) {
	var rows [][]any
	var c coverage
	for i := range s.Phases {
		p := &s.Phases[i]
		relevant := o.relevant(s, p)
		if relevant {
			c.phases++
			c.share += shareOf(p)
			c.calls += p.CallShare
		} else {
			c.other++
		}
		if !relevant && !o.all {
			continue
		}
		var ns, share any
		if p.TimeNs != nil {
			ns, share = *p.TimeNs, rounded6(*p.TimeShare)
		}
		rows = append(rows, []any{int32(i + 1), p.Weight, p.WeightMin, p.Ranks, p.EventsMin, p.EventsMax, int32(p.Forms), rounded6(p.Ticks), rounded6(p.CallShare), ns, share, relevant})
	}
	return queries.RowsOf(phaseColumns, rows), c
}

// phasesSummary says in a line what phases cover.
func phasesSummary(w io.Writer, s *predict.Signature, c coverage) error {
	_, err := fmt.Fprintf(w, "phases of %s on %d ranks: %s, and %d that are not; the logical clock ends at %d\n\n", s.Run, s.Ranks, c.text(s), c.other, s.Ticks)
	return err
}

// Series of a picture of phases that are no phases, or none that are told.
const (
	otherPhases  = "phases not relevant"
	outsidePhase = "outside of phases"
)

// phaseChart draws when each rank was in which phase: over time, or where that is not known over the logical clock.
func phaseChart(s *predict.Signature, o *phasesOptions, c coverage) plot.Drawing {
	d := &plot.Chart{Title: "Phases of " + s.Run, Kind: "bands", Y: plot.Axis{Name: "rank", Whole: true}, Series: "phase: weight, part of the run", Note: c.text(s)}
	bands := s.Bands()
	timed := len(bands) > 0 && bands[0].FromNs != schema.NullInt64
	d.X = plot.Axis{Name: "logical clock, ticks", Unit: "1", Whole: true}
	if timed {
		d.X = plot.Axis{Name: "time", Unit: "ns", Whole: true}
	}
	names, some := make([]string, len(s.Phases)), false
	for i := range s.Phases {
		p := &s.Phases[i]
		if names[i] = otherPhases; o.all || o.relevant(s, p) {
			names[i] = fmt.Sprintf("%d: %s x, %s", i+1, weightText(p), percent(shareOf(p)))
			d.Order = append(d.Order, names[i])
		}
		some = some || names[i] == otherPhases
	}
	if some {
		d.Greys = append(d.Greys, otherPhases)
	}
	d.Greys = append(d.Greys, outsidePhase)
	for _, b := range bands {
		v := plot.Value{Series: outsidePhase, Y: float64(b.Rank), X: float64(b.FromTick), To: float64(b.ToTick)}
		if b.Phase != predict.Whole {
			v.Series = names[b.Phase]
		}
		if timed {
			v.X, v.To = float64(b.FromNs), float64(b.ToNs)
		}
		d.Add(v)
	}
	return d
}

// weightText is how often a phase is repeated: from the rank that does least to the one that does most.
func weightText(p *predict.Phase) string {
	if p.WeightMin == p.WeightMax {
		return grouped(p.WeightMin)
	}
	return grouped(p.WeightMin) + " to " + grouped(p.WeightMax)
}
