package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/predict"
)

// predictOptions are the flags of commq predict.
type predictOptions struct {
	runs      []string // --runs
	ranks     int32    // --ranks
	holdout   bool     // --holdout
	explained float64  // --explained
	machine   string   // --machine
	dialect   string   // --dialect
	set       []string // --set
	keep      bool     // --keep
	name      string   // --name
	format    string   // --format
}

func newPredictCommand(a *app) *cobra.Command {
	var o predictOptions
	c := &cobra.Command{
		Use:   "predict",
		Short: "What a program would communicate at a number of ranks that it was not run at",
		Long: `predict finds, from runs of a program at several numbers of ranks, who talks to whom, how much and how often, and says it for another
number: messages, bytes and collectives. What is predicted is made as a run, call by call, and looked at: every receive has its send, and ranks
do not wait for one another for ever. With --holdout the largest run is left out and predicted from the others, and how far off that is is told:
the predicted and the measured pairs of ranks that talk, and their messages and bytes.

Where the runs do not tell, there is no answer: destinations without a law, laws that agree on all runs and not on what is asked, or less
than --explained of the messages explained. Then the exit status is 2, and what is known is printed all the same. Four runs or more are
needed for most programs, captured with --stack 16, so that a call is known by its path from main. docs/method/prediction.md has the method.`,
		Example: `  commq predict --runs 'bt.W.*' --holdout
  commq predict --runs cg.W.4,cg.W.8,cg.W.16,cg.W.32 --ranks 64 --format json`,
		Args:              wantArgs(0, 0, "no arguments but flags; name the runs with --runs"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return runPredict(c.Context(), a, &o) },
	}
	f := c.Flags()
	f.StringSliceVar(&o.runs, "runs", nil, "`RUNS` to learn from, separated by commas: names, paths or patterns of runs, or of files of commq sign")
	f.Int32Var(&o.ranks, "ranks", 0, "number of ranks to predict")
	f.BoolVar(&o.holdout, "holdout", false, "leave the largest run out, predict it and compare")
	explainedFlag(c, &o.explained)
	f.BoolVar(&o.keep, "keep", false, "write the predicted run into the store, as commq extrapolate does")
	f.StringVar(&o.name, "name", "", "`NAME` of that run, which --keep does not need (default: the largest training run's, with the number of ranks and .extrapolated)")
	f.StringVar(&o.machine, "machine", "", "also predict the execution time on a machine: a YAML file, a configuration of Dimemas, or one of "+strings.Join(models.Names(), ", "))
	f.StringVar(&o.dialect, "dialect", "", "how messages and collectives behave there: "+strings.Join(simulate.Dialects, ", ")+" (default: dimemas5 for a configuration of Dimemas, else paper)")
	f.StringArrayVar(&o.set, "set", nil, "change a `KEY=VALUE` of the machine, as commq simulate does; several times for several")
	f.StringVar(&o.format, "format", "table", "format of the answer: table, json")
	register(c, completeRuns(a), "runs")
	register(c, fixed(models.Names(), cobra.ShellCompDirectiveDefault), "machine")
	complete(c, "dialect", simulate.Dialects...)
	complete(c, "format", "table", "json")
	completeNothing(c, "ranks", "set", "name")
	return c
}

func runPredict(ctx context.Context, a *app, o *predictOptions) error {
	switch {
	case len(o.runs) == 0:
		return errors.New("no runs given; name them with --runs")
	case o.holdout == (o.ranks != 0):
		return errors.New("want either --ranks, or --holdout")
	case o.ranks < 0:
		return fmt.Errorf("--ranks %d: want 1 or more", o.ranks)
	}
	if err := checkExplained(o.explained); err != nil {
		return err
	}
	if err := oneOf("format", o.format, "table", "json"); err != nil {
		return err
	}
	training, err := signatures(ctx, a, o.runs)
	if err != nil {
		return err
	}
	ranks, held := o.ranks, (*predict.Signature)(nil)
	if o.holdout {
		last := len(training) - 1
		held, training = training[last], training[:last]
		ranks = held.Ranks
	}
	m, err := newModel(ctx, training)
	if err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	p := printedPrediction{Ranks: ranks, Training: m.Training, TrainingMessages: m.Traffic, TrainingUnexplained: m.Unexplained, Warnings: m.Warnings}
	p.Laws = m.Laws()
	for _, u := range m.Pattern.Unexplained {
		p.Unexplained = append(p.Unexplained, u.Slot+": "+u.Why)
	}
	var refused error
	if x, err := extrapolate(ctx, a, m, ranks, o.explained); err != nil {
		refused = fmt.Errorf("predict: %w", err)
		p.Warnings = append(p.Warnings, x.Warnings...)
	} else {
		p.fill(x, held)
		if o.keep || o.name != "" {
			p.Run = cmp.Or(o.name, extrapolatedName(m, ranks))
			if _, err := saveExtrapolation(ctx, a, m, x, p.Run); err != nil {
				return err
			}
		}
		refused = o.time(ctx, a, m, x, held, &p)
	}
	if o.format == "json" {
		err = printJSON(a.stdout, &p)
	} else {
		err = p.table(a.screen())
	}
	return errors.Join(err, refused)
}

// printedPrediction is the answer.
type printedPrediction struct {
	Ranks               int32   `json:"ranks"`
	Training            []int32 `json:"training"`
	TrainingMessages    int64   `json:"training_messages"`
	TrainingUnexplained int64   `json:"training_messages_unexplained"`
	// Messages, Bytes and Collectives (calls) are those that are predicted; null where that is refused.
	Messages    *int64 `json:"messages"`
	Bytes       *int64 `json:"bytes"`
	Collectives *int64 `json:"collective_calls"`
	// Inexact is how many of Numbers (bytes, counts, tags) are estimates: no law has all runs, or laws that do disagree here.
	Numbers int64          `json:"numbers"`
	Inexact int64          `json:"numbers_inexact"`
	Score   *predict.Score `json:"holdout,omitempty"`
	// Time is the predicted execution time, TimeRefused why there is none though it was asked for.
	Time        *predictedTime `json:"time,omitempty"`
	TimeRefused string         `json:"time_refused,omitempty"`
	// Run is the name of the run that was written; empty: none was.
	Run         string               `json:"run,omitempty"`
	Laws        []predict.PrintedLaw `json:"laws"`
	Unexplained []string             `json:"unexplained"`
	Warnings    []string             `json:"warnings"`
}

func (p *printedPrediction) fill(x *predict.Extrapolation, held *predict.Signature) {
	messages, bytes, collectives := x.Signature.Traffic()
	p.Messages, p.Bytes, p.Collectives = &messages, &bytes, &collectives
	p.Numbers, p.Inexact = x.Numbers, x.Inexact
	p.Warnings = append(p.Warnings, x.Warnings...)
	if held != nil {
		score := x.Signature.Score(held)
		p.Score = &score
	}
}

func (p *printedPrediction) table(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d ranks, from runs at %v; %d of %d messages of the largest have no law\n", p.Ranks, p.Training, p.TrainingUnexplained, p.TrainingMessages)
	if p.Messages != nil {
		fmt.Fprintf(&b, "predicted: %s with %d bytes, %s; %d of %d numbers are estimates\n", counted(*p.Messages, "message"), *p.Bytes, counted(*p.Collectives, "call")+" of collectives", p.Inexact, p.Numbers)
	}
	if s := p.Score; s != nil {
		fmt.Fprintf(&b, "measured: %s with %d bytes\npairs of ranks: precision %.4g, recall %.4g; off by %s of the messages, %s of the bytes, %s of the calls of collectives\n",
			counted(s.Messages, "message"), s.Bytes, s.EdgePrecision, s.EdgeRecall, percent(s.MessageError), percent(s.ByteError), percent(s.CollectiveError))
	}
	if p.Time != nil {
		if err := p.Time.print(&b); err != nil {
			return err
		}
	}
	if p.Run != "" {
		fmt.Fprintf(&b, "written as %s: commq simulate --run %s --machine MACHINE times it\n", p.Run, p.Run)
	}
	if err := lawsText(&b, p.Laws); err != nil {
		return err
	}
	for _, u := range p.Unexplained {
		fmt.Fprintf(&b, "not explained: %s\n", u)
	}
	for _, t := range p.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", t)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
