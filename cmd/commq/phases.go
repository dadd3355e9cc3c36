package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/commq/commq/predict"
	"github.com/commq/commq/predict/phases"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/training"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/plot"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// phasesOptions are the flags of commq phases.
type phasesOptions struct {
	run       string  // --run
	threshold float64 // --threshold
	all       bool    // --all
	format    string  // --format
	pictureOptions
}

func newPhasesCommand(a *app) *cobra.Command {
	var o phasesOptions
	c := &cobra.Command{
		Use:   "phases RUN",
		Short: "Show which sequences of calls a run repeats, how often, and their share of it",
		Long: `phases finds the phases of a run and their weights, as PAS2P does: the outermost sequences of calls that
ranks repeat. A sequence that all ranks repeat as often is a phase of the program. Phases with at least --threshold of
the ranks' time between MPI_Init and MPI_Finalize (of their calls, in an untimed run) are relevant; others are listed
only with --all. events is the number of calls of a repetition on a rank: the least and the most of all ranks. ticks is
how long a repetition is on the logical clock, on which a receive is after its send and a collective as late as its last
rank. --plot draws when each rank was in which phase: over time, or over the logical clock in an untimed run.

Capture the run with --stack 16, so that a call is known by its path from main. docs/method/prediction.md has the
method.`,
		Example: `  commq phases bt.W.16
  commq phases --run mg.W.64 --threshold 0.05 --format json
  commq phases --run bt.W.16 --plot phases.png`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf("format", o.format, runsFormats[:]...); err != nil {
				return err
			}
			return runPhases(c.Context(), a, &o, c.Flags().Changed("format"))
		},
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "`RUN` to look at: a name in the store, or a path")
	f.Float64Var(&o.threshold, "threshold", 0.01, "least fraction of the time that a relevant phase has, 0 to 1")
	f.BoolVar(&o.all, "all", false, "also list phases that are not relevant, and those that ranks repeat differently "+
		"often")
	o.pictureFlags(c, "draw when ranks were in which phase into a `FILE`.png, .svg or .pdf; the rows "+
		"are printed only with --format")
	a.writes(c)
	formatFlag(c, &o.format)
	a.exactFlag(c)
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	completeNothing(c, "threshold")
	return c
}

func runPhases(ctx context.Context, a *app, o *phasesOptions, rowsToo bool) error {
	switch {
	case o.run == "":
		return errNoRun
	case !(o.threshold >= 0 && o.threshold <= 1):
		return fmt.Errorf("--threshold %v: want a fraction from 0 to 1", o.threshold)
	}
	if err := o.checkPicture(); err != nil {
		return err
	}
	found, err := run.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	r, err := training.Open(ctx, found.Dir)
	if err != nil {
		return err
	}
	s, bands, err := predict.Sign(r)
	if err != nil {
		return fmt.Errorf("phases: %w", err)
	}
	if err := noteSharedCoresOf(ctx, a, found); err != nil {
		return err
	}
	rows, covered := phaseRows(s, o, a.exact), phases.Cover(s, o.threshold)
	if o.plot != "" {
		if err := o.writePicture(phaseChart(s, bands, o, covered)); err != nil {
			return err
		}
		if !rowsToo {
			a.note("%s drawn", o.plot)
			return nil
		}
	}
	if o.format == "table" {
		if err := phasesSummary(a, s, covered); err != nil {
			return err
		}
	}
	return a.writeRows(o.format, rows)
}

// coverageText writes the coverage for people.
func coverageText(c phases.Coverage, s *signature.Signature) string {
	time := percent(c.TimeShare) + " of the time and "
	if s.TimeOrigin == "untimed" {
		time = ""
	}
	return fmt.Sprintf("%s with %s%s of %s", counted(int64(c.Phases), "relevant phase"), time, percent(c.CallShare),
		counted(s.Calls, "call"))
}

// phaseColumns are the columns of the answer.
var phaseColumns = []queries.Column{{Name: "phase", Type: "INTEGER", Doc: "Number of the phase, from 1, in program " +
	"order."},
	{Name: "weight", Type: "BIGINT", Unit: "1", Doc: "How often it is repeated, the most of all ranks."},
	{Name: "weight_min", Type: "BIGINT", Unit: "1", Doc: "How often the rank repeats it that does so least."},
	{Name: "ranks", Type: "INTEGER", Unit: "1", Doc: "Number of ranks that have it."},
	{Name: "events_min", Type: "BIGINT", Unit: "1", Doc: "Calls of a repetition on a rank, the least."},
	{Name: "events_max", Type: "BIGINT", Unit: "1", Doc: "Calls of a repetition on a rank, the most."},
	{Name: "forms", Type: "INTEGER", Unit: "1", Doc: "Number of different sequences of calls."},
	{Name: "ticks", Type: "DOUBLE", Unit: "1", Doc: "Mean length of a repetition on the logical clock."},
	{Name: "call_share", Type: "DOUBLE", Unit: "1", Share: true, Doc: "Share of all calls that all repetitions have."},
	{Name: "time_ns", Type: "BIGINT", Unit: "ns", Doc: "Mean time of a repetition over ranks; null in an untimed run."},
	{Name: "time_share", Type: "DOUBLE", Unit: "1", Share: true,
		Doc: "Share of the ranks' time that all repetitions take, MPI_Init and MPI_Finalize left out; null in an " +
			"untimed run."},
	{Name: "relevant", Type: "BOOLEAN", Doc: "Whether all ranks repeat it as often and its share is --threshold or " +
		"more."}}

// phaseRows returns a row per phase, for the relevant ones or all.
func phaseRows(s *signature.Signature, o *phasesOptions, exact bool) queries.Rows {
	var rows [][]any
	for i := range s.Phases {
		p := &s.Phases[i]
		if relevant := p.Relevant(s.Ranks, o.threshold); relevant || o.all {
			var shown any = relevant
			if o.format == "table" && !o.all && !exact { // all are: the column is left out
				shown = nil
			}
			rows = append(rows, append([]any{int32(i + 1)}, append(phaseRow(p), shown)...))
		}
	}
	return queries.RowsOf(phaseColumns, rows)
}

// phaseRow returns the columns of a phase between its number and relevant.
func phaseRow(p *signature.Phase) []any {
	var ns, share any
	if p.TimeNs != nil {
		ns, share = *p.TimeNs, rounded6(*p.TimeShare)
	}
	return []any{p.Weight, p.WeightMin, p.Ranks, p.EventsMin, p.EventsMax, int32(p.Forms), rounded6(p.Ticks),
		rounded6(p.CallShare), ns, share}
}

// phasesSummary prints one line about the coverage of the phases.
func phasesSummary(a *app, s *signature.Signature, c phases.Coverage) error {
	return a.prose(fmt.Sprintf("phases of %s on %d ranks: %s, and %d others; the logical clock ends at %s\n\n",
		s.Run, s.Ranks, coverageText(c, s), c.Others, grouped(int64(s.Ticks))))
}

// The grey series of a picture of phases.
const (
	otherPhases  = "phases not relevant"
	outsidePhase = "outside of phases"
)

// phaseChart draws the phase of each rank over time, or over the logical clock if times are unknown.
func phaseChart(s *signature.Signature, bands []phases.Band, o *phasesOptions, c phases.Coverage) plot.Drawing {
	d := &plot.Chart{Title: "Phases: " + s.Run, Kind: "bands", Y: plot.Axis{Name: "rank", Integers: true},
		Series: "phase: weight, part of the run", Note: coverageText(c, s)}
	timed := len(bands) > 0 && bands[0].FromNs != schema.NullInt64
	d.X = plot.Axis{Name: "logical clock [ticks]", Unit: "1", Integers: true}
	if timed {
		d.X = plot.Axis{Name: "time", Unit: "ns", Integers: true}
	}
	names, others := make([]string, len(s.Phases)), false
	for i := range s.Phases {
		p := &s.Phases[i]
		if names[i] = otherPhases; o.all || p.Relevant(s.Ranks, o.threshold) {
			names[i] = fmt.Sprintf("%d: %s x, %s", i+1, weightText(p), percent(p.Share()))
			d.Order = append(d.Order, names[i])
		}
		others = others || names[i] == otherPhases
	}
	if others {
		d.Greys = append(d.Greys, otherPhases)
	}
	d.Greys = append(d.Greys, outsidePhase)
	for _, b := range bands {
		v := plot.Value{Series: outsidePhase, Y: float64(b.Rank), X: float64(b.FromTick), To: float64(b.ToTick)}
		if b.Phase != phases.WholeRank {
			v.Series = names[b.Phase]
		}
		if timed {
			v.X, v.To = float64(b.FromNs), float64(b.ToNs)
		}
		d.Add(v)
	}
	return d
}

// weightText writes how often ranks repeat a phase.
func weightText(p *signature.Phase) string {
	if p.WeightMin == p.WeightMax {
		return grouped(p.WeightMin)
	}
	return grouped(p.WeightMin) + " to " + grouped(p.WeightMax)
}
