package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
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
	accept    []string // --accept
	machine   string   // --machine
	dialect   string   // --dialect
	set       []string // --set
	keep      bool     // --keep
	name      string   // --name
	suggest   bool     // --suggest
	all       bool     // --all
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
the predicted and the measured pairs of ranks that talk, and their messages and bytes. Several captures on that many ranks are all left out: with
--machine they tell how far apart the times of two captures are, and so how near a prediction of the time can be.

Where the runs do not tell, there is no answer: destinations without a law, laws that agree on all runs and not on what is asked, or less
than --explained of the messages explained, or a field in slabs that the program may cut otherwise there (layout-switch). Then the exit status is 2, and what is known is printed all the same.
--accept takes the layout to stay as it is, or the simplest of laws that disagree (undecided). Four runs or more are
needed for most programs, captured with --stack 16, so that a call is known by its path from main. Several captures on one number of ranks are one
run with the medians of their compute times; they have to make the same calls. docs/method/prediction.md has the method.`,
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
	acceptFlag(c, &o.accept)
	f.BoolVar(&o.keep, "keep", false, "write the predicted run into the store, as commq extrapolate does")
	f.StringVar(&o.name, "name", "", "`NAME` of that run, which --keep does not need (default: the largest training run's, with the number of ranks and .extrapolated)")
	f.BoolVar(&o.suggest, "suggest", false, "also say on how many ranks to run the program next, and for what")
	f.BoolVar(&o.all, "all", false, fmt.Sprintf("list all communications, not the %d with most bytes", mostSlots))
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
	if err := checkAccept(o.accept); err != nil {
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
		held = training[len(training)-1]
		ranks = held.Ranks
		training = slices.DeleteFunc(training, func(s *predict.Signature) bool { return s.Ranks == ranks })
	}
	m, err := newModel(ctx, training)
	if err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	p := printedPrediction{Ranks: ranks, Training: m.Training, TrainingMessages: m.Traffic, TrainingUnexplained: m.Unexplained, all: o.all,
		Unexplained: []unexplained{}, Slots: []predict.SlotReport{}}
	for _, u := range m.Pattern.Unexplained {
		p.unexplained(u.Slot, u.Why)
	}
	p.Laws = m.Laws()
	if o.machine != "" {
		s, err := o.onMachine("")
		if err != nil {
			return err
		}
		m.OnCycle(s.machine.CycleNs)
	}
	x, err := extrapolate(ctx, a, m, ranks, o.explained, o.accept)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var refused error
	if err != nil {
		refused = fmt.Errorf("predict: %w", err)
	} else {
		p.fill(m, x, held)
		if o.keep || o.name != "" {
			p.Run = cmp.Or(o.name, extrapolatedName(m, ranks))
			if _, err := saveExtrapolation(ctx, a, m, x, p.Run); err != nil {
				return err
			}
		}
		refused = o.time(ctx, a, m, x, held, &p)
	}
	p.Warnings = append([]predict.Warning{}, m.WarningsAt(ranks, x)...)
	if o.suggest {
		p.Suggestions = append([]predict.Suggestion{}, predict.Suggest(p.Warnings)...)
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
	Numbers  int64             `json:"numbers"`
	Inexact  int64             `json:"numbers_inexact"`
	Score    *predict.Score    `json:"holdout,omitempty"`
	Coverage *predict.Coverage `json:"coverage,omitempty"`
	// Time is the predicted execution time, TimeRefused why there is none though it was asked for.
	Time        *predictedTime `json:"time,omitempty"`
	TimeRefused string         `json:"time_refused,omitempty"`
	// Run is the name of the run that was written; empty: none was.
	Run string `json:"run,omitempty"`
	// Laws are those of destinations.
	Laws []predict.PrintedLaw `json:"laws"`
	// Slots are what is said of each call, those with most bytes first.
	Slots []predict.SlotReport `json:"communications"`
	// Unexplained is what has no law, by reason.
	Unexplained []unexplained        `json:"unexplained"`
	Warnings    []predict.Warning    `json:"warnings"`
	Suggestions []predict.Suggestion `json:"suggestions,omitempty"`

	all bool // slots in the table
}

// unexplained is communications that have no law for one reason.
type unexplained struct {
	Why   string   `json:"why"`
	Slots []string `json:"communications"`
}

func (p *printedPrediction) unexplained(slot, why string) {
	for i := range p.Unexplained {
		if p.Unexplained[i].Why == why {
			p.Unexplained[i].Slots = append(p.Unexplained[i].Slots, slot)
			return
		}
	}
	p.Unexplained = append(p.Unexplained, unexplained{why, []string{slot}})
}

func (p *printedPrediction) fill(m *predict.Model, x *predict.Extrapolation, held *predict.Signature) {
	messages, bytes, collectives := x.Signature.Traffic()
	p.Messages, p.Bytes, p.Collectives = &messages, &bytes, &collectives
	p.Numbers, p.Inexact = x.Numbers, x.Inexact
	p.Slots = m.Slots(x)
	if held != nil {
		score, coverage := x.Signature.Score(held), m.Coverage(x, held)
		p.Score, p.Coverage = &score, &coverage
	}
}

// mostSlots is how many communications are listed without --all.
const mostSlots = 10

func (p *printedPrediction) table(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d ranks, from runs at %s: %s of the messages of the largest have a law\n", p.Ranks, ranksList(p.Training),
		percent(1-float64(p.TrainingUnexplained)/float64(max(p.TrainingMessages, 1))))
	if p.Messages != nil {
		fmt.Fprintf(&b, "predicted: %s with %s bytes, %s; %d of %d numbers are estimates\n", counted(*p.Messages, "message"), grouped(*p.Bytes),
			counted(*p.Collectives, "call")+" of collectives", p.Inexact, p.Numbers)
	}
	p.holdout(&b)
	if p.Time != nil {
		if err := p.Time.print(&b); err != nil {
			return err
		}
	}
	if p.Run != "" {
		fmt.Fprintf(&b, "written as %s: commq simulate --run %s --machine MACHINE times it\n", p.Run, p.Run)
	}
	p.slots(&b)
	for _, u := range p.Unexplained {
		fmt.Fprintf(&b, "not explained: %s: %s\n", some(u.Slots), u.Why)
	}
	if len(p.Warnings) > 0 {
		b.WriteByte('\n')
	}
	for _, t := range p.Warnings {
		fmt.Fprintf(&b, "warning: %s: %s", t.Name, t.Text)
		if t.Run > 0 {
			fmt.Fprintf(&b, "; a run on %d would tell", t.Run)
		}
		b.WriteByte('\n')
	}
	switch {
	case len(p.Suggestions) > 0:
		fmt.Fprintln(&b, "\nrun next:")
		for _, s := range p.Suggestions {
			fmt.Fprintf(&b, "  on %d ranks, for %s\n", s.Ranks, strings.Join(s.Reasons, ", "))
		}
	case p.Suggestions != nil:
		fmt.Fprintln(&b, "\nno run is known that would settle more")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// holdout prints how far the prediction is from the run that was left out.
func (p *printedPrediction) holdout(b *strings.Builder) {
	s, c := p.Score, p.Coverage
	if s == nil {
		return
	}
	fmt.Fprintf(b, "measured: %s with %s bytes\n", counted(s.Messages, "message"), grouped(s.Bytes))
	fmt.Fprintf(b, "pairs of ranks: precision %.4g, recall %.4g; off by %s of the messages, %s of the bytes, %s of the calls of collectives\n",
		s.EdgePrecision, s.EdgeRecall, percent(s.MessageError), percent(s.ByteError), percent(s.CollectiveError))
	if c.Numbers == 0 {
		return
	}
	fmt.Fprintf(b, "intervals: %s of %s hold; of %s that were said to be exact %s are", percent(float64(c.Covered)/float64(c.Numbers)), counted(c.Numbers, "size"),
		grouped(c.Exact), grouped(c.ExactRight))
	if c.WidthMedian != nil {
		fmt.Fprintf(b, "; the others are %s wide", percent(*c.WidthMedian))
	}
	fmt.Fprintf(b, "\nsaid to be exact and wrong: %s\n", grouped(c.Exact-c.ExactRight))
	for i := range c.Wrong {
		w := &c.Wrong[i]
		fmt.Fprintf(b, "  %s: %s, the first on rank %d: %s bytes predicted, %s measured\n", w.Call, counted(w.Numbers, "size"), w.Rank, grouped(w.Predicted), grouped(w.Measured))
	}
}

// slots prints what is said of communications.
func (p *printedPrediction) slots(b *strings.Builder) {
	list := p.Slots
	if !p.all {
		list = list[:min(len(list), mostSlots)]
	}
	if len(list) > 0 {
		b.WriteByte('\n')
	}
	for i := range list {
		r := &list[i]
		fmt.Fprintf(b, "%s: %s, %s bytes", r.Call, counted(r.Calls, "call"), grouped(r.Bytes))
		switch {
		case r.BytesHigh == math.MaxInt64:
			fmt.Fprintf(b, " (%s or more)", grouped(r.BytesLow))
		case r.BytesLow != r.BytesHigh:
			fmt.Fprintf(b, " (%s to %s)", grouped(r.BytesLow), grouped(r.BytesHigh))
		}
		b.WriteByte('\n')
		for _, line := range [][2]string{{"to", r.Destinations}, {"equation", r.Equation}, {"bytes", r.Size}, {"among", r.Members}} {
			if line[1] != "" {
				fmt.Fprintf(b, "  %s: %s\n", line[0], line[1])
			}
		}
	}
	if n := len(p.Slots) - len(list); n > 0 {
		fmt.Fprintf(b, "%d more with less bytes; --all lists them\n", n)
	}
}

// ranksList lists numbers of ranks.
func ranksList(ranks []int32) string {
	var all []string
	for _, r := range ranks {
		all = append(all, fmt.Sprint(r))
	}
	return strings.Join(all, ", ")
}

// some names the first of names.
func some(names []string) string {
	if n := len(names); n > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), n-3)
	}
	return strings.Join(names, ", ")
}
