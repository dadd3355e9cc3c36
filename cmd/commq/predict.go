package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/predict/extrapolated"
	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/times"
	"github.com/commq/commq/predict/training"
)

// predictOptions are the flags of commq predict.
type predictOptions struct {
	runs       []string                // --run
	models     string                  // --models
	ranks      int32                   // --ranks
	holdout    bool                    // --holdout
	target     simulate.TargetOptions  // --machine, --dialect, --set
	name       string                  // --name
	conditions extrapolated.Conditions // --explained, --accept
	suggest    bool                    // --suggest
	all        bool                    // --all
	format     string                  // --format
}

func newPredictCommand(a *app) *cobra.Command {
	var o predictOptions
	c := &cobra.Command{
		Use:   "predict [RUN...]",
		Short: "Predict what a program communicates at a number of ranks that it was not run at",
		Long: `predict finds, from runs of a program at several numbers of ranks, who talks to whom, how much and how
often, and predicts it for another number: messages, bytes and collectives. It makes the predicted run, call by call,
and checks it: every receive has its send, and ranks do not wait for one another for ever. --holdout leaves the largest
run out, predicts it from the others, and compares: the predicted and the measured pairs of ranks that talk, and their
messages and bytes. If there are several captures on that many ranks all are left out: with --machine they show how far
apart the times of two captures are, and so how near a prediction of the time can be.

--models predicts from the laws in a file of commq fit --run instead. --name writes the predicted run into the store:
it is a run like any other, but untimed, so that queries answer on it and commq simulate predicts how long it takes on
a machine. Memory grows with how much ranks differ, not with the number of calls.

The runs may not settle everything: destinations have no law, laws that agree on all runs disagree at this number of
ranks (undecided), less than --explained of the messages are explained, or the program may cut a field into other pieces
there (layout-switch). Then predict prints the communications that are fully known. For each other one it prints the
reason, the run that may settle it, and its totals if they go on as in the runs. It writes no run, and the exit status
is 2. --accept assumes that the layout stays as it is, or takes the simplest of the laws that disagree.

Most programs need four runs or more, captured with --stack 16, so that a call is known by its path from main. Several
captures on one number of ranks count as one run with the medians of their compute times; they must make the same calls.
docs/method/prediction.md has the method.`,
		Example: `  commq predict 'bt.W.*' --holdout
  commq predict --run 'cg.W.*' --ranks 64 --format json
  commq fit --run 'cg.W.*' -o models.json
  commq predict --models models.json --ranks 1024 --name cg.W.1024
  commq simulate --run cg.W.1024 --machine myrinet`,
		RunE: func(c *cobra.Command, _ []string) error { return runPredict(c.Context(), a, &o) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.runs, "run", nil, "`RUN` to learn from: a name in the store, a path, a pattern of either, or "+
		"a signature file (commq export signature); may be repeated")
	f.Int32VarP(&o.ranks, "ranks", "n", 0, "number `N` of ranks to predict for")
	f.BoolVar(&o.holdout, "holdout", false, "leave the largest run out, predict it and compare")
	conditionFlags(c, &o.conditions)
	f.StringVar(&o.models, "models", "", "`FILE` of commq fit --run with the laws; - is standard input")
	f.StringVar(&o.name, "name", "", "write the predicted run into the store, as `NAME`")
	f.BoolVar(&o.suggest, "suggest", false, "also suggest on how many ranks to run the program next, why, and "+
		"how much that would settle")
	f.BoolVar(&o.all, "all", false, fmt.Sprintf("list all communications, not only the %d with most bytes",
		slotsListed))
	f.StringVar(&o.target.Machine, "machine", "", "also predict the execution time on the machine of "+
		"`FILE`: "+machineKinds())
	f.StringVar(&o.target.Dialect, "dialect", "", "how messages and collectives behave there: "+dialectKinds)
	f.StringArrayVar(&o.target.Set, "set", nil,
		"change a `KEY=VALUE` of the machine, as commq simulate does; may be repeated")
	f.StringVar(&o.format, "format", "table", "`FORMAT` of the answer: table, json")
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	a.writes(c)
	registerMachines(c)
	completeFiles(c, "models", "json", "gz")
	complete(c, "dialect", simulate.Dialects...)
	complete(c, "format", "table", "json")
	completeNothing(c, "ranks", "name")
	return c
}

func (o *predictOptions) check() error {
	switch {
	case len(o.runs) == 0 && o.models == "":
		return errors.New("no runs given; name them with --run, or their laws with --models (commq fit --run " +
			"makes the file)")
	case len(o.runs) > 0 && o.models != "":
		return errors.New("--run and --models: want only one of them")
	case o.holdout && o.models != "":
		return errors.New("--holdout: laws are there already; name the runs with --run")
	case o.holdout && o.ranks != 0:
		return errors.New("--ranks and --holdout: want only one of them; --holdout predicts " +
			"the largest run from the others")
	case !o.holdout && o.ranks == 0:
		return errors.New("predict: want the number of ranks to predict for, --ranks 64, or --holdout")
	case o.ranks < 0:
		return fmt.Errorf("--ranks %d: want 1 or more", o.ranks)
	}
	if err := cmp.Or(checkConditions(&o.conditions), checkUsed(o.target, "predicted times")); err != nil {
		return err
	}
	return oneOf("format", o.format, "table", "json")
}

func runPredict(ctx context.Context, a *app, o *predictOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.name != "" { // before the laws are searched, not after
		if err := extrapolated.CheckRanks(o.ranks); err != nil {
			return fmt.Errorf("--ranks with --name: %w; leave out --name", err)
		}
		if err := a.checkName(o.name); err != nil {
			return err
		}
	}
	m, held, err := o.learn(ctx, a)
	if err != nil {
		return err
	}
	target, err := o.readTarget(a, m)
	if err != nil {
		return err
	}
	p := newPrintedPrediction(m, o)
	x, refused := extrapolate(ctx, a, m, o.ranks, o.conditions)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if held != nil {
		verdict := report.Judge(m, x, held)
		p.Verdict = &verdict
	}
	w := report.NewWeigher(m, x, o.ranks)
	if refused != nil {
		refused = fmt.Errorf("predict: %w", refused)
		p.Partial, p.Slots = report.NewPartial(w), append(p.Slots, report.CertainSlots(m, x)...)
	} else {
		p.fill(m, x, held)
		if err := o.keepRun(ctx, a, m, x, p); err != nil {
			return err
		}
		refused = o.predictTime(ctx, a, m, x, held, p, target)
	}
	p.warn(w, o.suggest)
	return errors.Join(p.print(a, o.format), refused)
}

// learn reads the laws, or finds those of the training runs. held is a run that was left out for --holdout, else nil.
func (o *predictOptions) learn(ctx context.Context, a *app) (m *model.Model, held *signature.Signature, err error) {
	if o.models != "" {
		m, err = training.ReadModels(o.models, a.stdin)
		return m, nil, err
	}
	runs, err := signAll(ctx, a, o.runs)
	if err != nil {
		return nil, nil, err
	}
	runs, held = o.leaveOut(runs)
	if m, err = training.FindLaws(ctx, runs); err != nil {
		return nil, nil, fmt.Errorf("predict: %w", err)
	}
	return m, held, nil
}

// readTarget reads the machine to predict the time on, and tells the model its cycle time; nil for no machine.
func (o *predictOptions) readTarget(a *app, m *model.Model) (*simulate.Target, error) {
	if o.target.Machine == "" {
		return nil, nil
	}
	target, err := readTarget(a, o.target)
	if err == nil {
		m.Times().SetCycleTime(target.Machine.CycleNs)
	}
	return target, err
}

// leaveOut takes the runs on the largest number of ranks out of the training for --holdout, and returns one of them;
// held is nil without --holdout. The number of ranks to predict for is then theirs.
func (o *predictOptions) leaveOut(runs []*signature.Signature) (training []*signature.Signature,
	held *signature.Signature) {
	if !o.holdout {
		return runs, nil
	}
	held = runs[len(runs)-1]
	o.ranks = held.Ranks
	return slices.DeleteFunc(runs, func(s *signature.Signature) bool { return s.Ranks == held.Ranks }), held
}

// keepRun writes the predicted run for --name.
func (o *predictOptions) keepRun(ctx context.Context, a *app, m *model.Model, x *generate.Prediction,
	p *printedPrediction) error {
	if o.name == "" {
		return nil
	}
	p.Run = o.name
	_, err := saveExtrapolation(ctx, a, m, x, p.Run)
	return err
}

// printedPrediction is the answer of commq predict.
type printedPrediction struct {
	// Ranks is the number of ranks that was predicted for.
	Ranks int32 `json:"ranks"`
	// Training has the numbers of ranks of the training runs.
	Training []int32 `json:"training"`
	// TrainingMessages is the number of messages of the largest training run.
	TrainingMessages int64 `json:"training_messages"`
	// TrainingUnexplained is how many of them have no law.
	TrainingUnexplained int64 `json:"training_messages_unexplained"`
	// Messages, Bytes and Collectives (calls) are the predicted numbers; null when the prediction is refused.
	Messages    *int64 `json:"messages"`
	Bytes       *int64 `json:"message_bytes"`
	Collectives *int64 `json:"collective_calls"`
	// MessagesLow is the lower bound of Messages, null like it.
	MessagesLow *int64 `json:"low_messages"`
	// MessagesHigh is the upper bound of Messages; the largest number of 64 bits if none is known,
	// null like it.
	MessagesHigh *int64 `json:"high_messages"`
	// BytesLow is the lower bound of Bytes, null like it.
	BytesLow *int64 `json:"low_message_bytes"`
	// BytesHigh is the upper bound of Bytes; the largest number of 64 bits if none is known,
	// null like it.
	BytesHigh *int64 `json:"high_message_bytes"`
	// CollectivesLow is the lower bound of Collectives, null like it.
	CollectivesLow *int64 `json:"low_collective_calls"`
	// CollectivesHigh is the upper bound of Collectives; the largest number of 64 bits if none is known,
	// null like it.
	CollectivesHigh *int64 `json:"high_collective_calls"`
	// Inexact is how many of Numbers (bytes, counts, tags) are estimates: no law fits all runs, or those that do
	// disagree here.
	Numbers int64 `json:"numbers"`
	Inexact int64 `json:"numbers_inexact"`
	// Partial is what is known if not all is; null when all is known, or nothing.
	Partial *report.Partial `json:"partial,omitempty"`
	// Verdict counts, with --holdout, which numbers are right, unknown and wrong.
	Verdict *report.Verdict `json:"verdict,omitempty"`
	// Score compares the prediction with the run that was left out, with --holdout.
	Score *report.Score `json:"holdout,omitempty"`
	// Coverage tells how many predicted numbers are right, with --holdout.
	Coverage *report.Coverage `json:"coverage,omitempty"`
	// Time is the predicted execution time; TimeRefused tells why there is none although a machine was given.
	Time        *times.Prediction `json:"time,omitempty"`
	TimeRefused string            `json:"time_refused,omitempty"`
	// Run is the name of the run that was written; "" for none.
	Run string `json:"run,omitempty"`
	// Laws are the laws of destinations.
	Laws []model.PrintedLaw `json:"laws"`
	// Slots describe each call, those with most bytes first.
	Slots []report.SlotReport `json:"communications"`
	// Unexplained lists communications without a law, by reason.
	Unexplained []report.Unexplained `json:"unexplained"`
	// Warnings are assumptions behind the prediction.
	Warnings []report.Warning `json:"warnings"`
	// Suggestions are numbers of ranks to run next, with --suggest.
	Suggestions []report.Suggestion `json:"suggestions,omitempty"`

	all   bool  // the table lists all slots
	loops int64 // the number of iterations of so many is uncertain
	// textOf describes a communication for people.
	textOf func(communication string) string
}

// newPrintedPrediction begins the answer with what is known of the model.
func newPrintedPrediction(m *model.Model, o *predictOptions) *printedPrediction {
	return &printedPrediction{Ranks: o.ranks, Training: m.Training, TrainingMessages: m.Traffic,
		TrainingUnexplained: m.Unexplained, all: o.all,
		Unexplained: report.UnexplainedOf(m), Slots: []report.SlotReport{}, Laws: m.Laws(), textOf: textOf(m)}
}

// warn adds warnings, and with suggest the runs that would settle them.
func (p *printedPrediction) warn(w *report.Weigher, suggest bool) {
	p.Warnings = append([]report.Warning{}, report.Warnings(w)...)
	if suggest {
		p.Suggestions = append([]report.Suggestion{}, report.Suggest(p.Warnings, w.Weigh)...)
	}
}

func (p *printedPrediction) print(a *app, format string) error {
	if format == "json" {
		return printJSON(a.stdout, p)
	}
	return p.table(a)
}

func (p *printedPrediction) fill(m *model.Model, x *generate.Prediction, held *signature.Signature) {
	t := report.NewTotals(m, x)
	p.Messages, p.MessagesLow, p.MessagesHigh = &t.Messages.Value, &t.Messages.Low, &t.Messages.High
	p.Bytes, p.BytesLow, p.BytesHigh = &t.Bytes.Value, &t.Bytes.Low, &t.Bytes.High
	p.Collectives, p.CollectivesLow, p.CollectivesHigh = &t.Collectives.Value, &t.Collectives.Low, &t.Collectives.High
	p.Numbers, p.Inexact, p.loops = x.Numbers, x.Inexact, int64(len(x.Loops))
	p.Slots = report.Slots(m, x)
	if held != nil {
		score, coverage := report.Compare(x.Signature, held), report.Cover(m, x, held)
		p.Score, p.Coverage = &score, &coverage
	}
}

// slotsListed limits the communications that are listed without --all.
const slotsListed = 10

func (p *printedPrediction) table(a *app) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d ranks, from runs at %s: %s of the messages of the largest run have a law\n", p.Ranks,
		ranksList(p.Training),
		percent(1-float64(p.TrainingUnexplained)/float64(max(p.TrainingMessages, 1))))
	if p.Messages != nil {
		fmt.Fprintf(&b, "predicted: %s%s with %s, %s%s; %d of %d numbers are estimates",
			counted(*p.Messages, "message"), boundsText(*p.MessagesLow, *p.MessagesHigh, grouped),
			boundedBytes(*p.Bytes, *p.BytesLow, *p.BytesHigh),
			counted(*p.Collectives, "call")+" of collectives",
			boundsText(*p.CollectivesLow, *p.CollectivesHigh, grouped), p.Inexact, p.Numbers)
		if p.loops > 0 {
			fmt.Fprintf(&b, "; how often %s repeat is uncertain", counted(p.loops, "loop"))
		}
		b.WriteByte('\n')
	}
	p.partial(&b)
	p.heldOut(&b)
	if p.Time != nil {
		if err := printTime(a, &b, p.Time); err != nil {
			return err
		}
	}
	if p.Run != "" {
		fmt.Fprintf(&b, "written as %s: commq simulate --run %s --machine MACHINE predicts its times\n", p.Run, p.Run)
	}
	p.slots(&b)
	printUnexplained(&b, p.Unexplained, p.textOf)
	if len(p.Warnings) > 0 {
		b.WriteByte('\n')
	}
	printWarnings(&b, p.Warnings)
	switch {
	case len(p.Suggestions) > 0:
		fmt.Fprintln(&b, "\nrun next:")
		for _, s := range p.Suggestions {
			fmt.Fprintf(&b, "  on %d ranks, for %s%s\n", s.Ranks, strings.Join(s.Reasons, ", "), settledText(s.Weight))
		}
	case p.Suggestions != nil:
		fmt.Fprintln(&b, "\nno other run is known to settle more")
	}
	return a.prose(b.String())
}

// settledText describes how much a run would settle; empty if that cannot be weighed.
func settledText(w *report.Weight) string {
	if w == nil {
		return ""
	}
	var parts []string
	if w.UnknownCalls > 0 {
		text := fmt.Sprintf("settles %s of %s", grouped(w.SettledCalls), counted(w.UnknownCalls, "unknown call"))
		if w.NarrowedCalls > 0 {
			text += fmt.Sprintf(" and rules out some laws of %s more", grouped(w.NarrowedCalls))
		}
		parts = append(parts, text)
	}
	if w.UncertainBytes > 0 {
		parts = append(parts, fmt.Sprintf("rules out laws of sizes for %s of %s that are uncertain",
			inBytes(w.NarrowedBytes), inBytes(w.UncertainBytes)))
	}
	return ": " + strings.Join(parts, "; ")
}

// printWarnings prints warnings, with the runs that may settle them.
func printWarnings(b *strings.Builder, warnings []report.Warning) {
	for _, t := range warnings {
		fmt.Fprintf(b, "warning: %s: %s", t.Name, t.Text)
		if t.Run > 0 {
			fmt.Fprintf(b, "; a run on %d ranks may settle it", t.Run)
		}
		b.WriteByte('\n')
	}
}

// boundedBytes writes a sum of bytes, exactly if it is exact, else with its interval.
func boundedBytes(n, low, high int64) string {
	if low == high {
		return bytesText(n)
	}
	return inBytes(n) + boundsText(low, high, inBytes)
}

// gapsListed limits the gaps that are listed without --all.
const gapsListed = 5

// partial tells what is known of a run of which not all is known.
func (p *printedPrediction) partial(b *strings.Builder) {
	k := p.Partial
	if k == nil {
		return
	}
	fmt.Fprintf(b, "known: %d of %d communications: %s with %s between %s, %s of collectives\n", k.Known,
		k.Known+k.Unknown, counted(k.Messages, "message"), boundedBytes(k.Bytes, k.BytesLow, k.BytesHigh),
		counted(k.Edges, "pair")+" of ranks",
		counted(k.Collectives, "call"))
	list := k.Gaps
	if !p.all {
		list = list[:min(len(list), gapsListed)]
	}
	for i := range list {
		g := &list[i]
		fmt.Fprintf(b, "unknown: %s: %s: %s\n", g.Call, g.Unknown, g.Why)
		fmt.Fprintf(b, "  if the totals go on as in the runs: %s, %s\n", totalText(&g.Calls, "calls", grouped),
			totalText(&g.Bytes, "bytes", inBytes))
		spreadText(b, g)
		if g.Run > 0 {
			fmt.Fprintf(b, "  a run on %d ranks may settle it\n", g.Run)
		}
	}
	if n := len(k.Gaps) - len(list); n > 0 {
		fmt.Fprintf(b, "%d more unknown communications; --all lists them\n", n)
	}
}

// spreadText tells how calls and bytes are spread over the ranks that make a call, unless all of them make as many.
func spreadText(b *strings.Builder, g *report.Gap) {
	if g.Callers.Value < 2 {
		return
	}
	all := []string{totalText(&g.Callers, "callers", grouped)}
	for _, x := range []struct {
		what string
		of   *report.SpreadTrend
		text func(int64) string
	}{{"calls of one", &g.CallsOfACaller, grouped}, {"bytes of one", &g.BytesOfACaller, inBytes}} {
		if x.of.Least.High == nil || x.of.Most.High == nil {
			continue
		}
		if x.of.Least.Value == x.of.Most.Value && x.of.Least.Low == *x.of.Most.High {
			all = append(all, fmt.Sprintf("%s %s", x.what, x.text(x.of.Most.Value)))
			continue
		}
		all = append(all, fmt.Sprintf("%s %s to %s, half of them %s to %s", x.what, x.text(x.of.Least.Low),
			x.text(*x.of.Most.High), x.text(x.of.Quarter.Value), x.text(x.of.ThreeQuarters.Value)))
	}
	fmt.Fprintf(b, "  %s\n", strings.Join(all, "; "))
}

// totalText describes a total with its interval.
func totalText(t *report.Total, what string, text func(int64) string) string {
	switch {
	case t.High == nil:
		return what + " unknown"
	case t.Low == *t.High:
		return fmt.Sprintf("%s %s", what, text(t.Value))
	}
	return fmt.Sprintf("%s %s (%s to %s)", what, text(t.Value), text(t.Low), text(*t.High))
}

// heldOut compares with the run that was left out: first all its numbers, then the sizes of calls that both runs make,
// which can all be right although calls are missing.
func (p *printedPrediction) heldOut(b *strings.Builder) {
	p.verdict(b)
	p.holdout(b)
}

// verdict tells which numbers of the run that was left out were predicted.
func (p *printedPrediction) verdict(b *strings.Builder) {
	if p.Verdict == nil {
		return
	}
	b.WriteString("held out:")
	for i, x := range []struct {
		what  string
		tally *report.Tally
	}{{"edges", &p.Verdict.Edges}, {"calls", &p.Verdict.Calls}, {"messages", &p.Verdict.Messages},
		{"bytes", &p.Verdict.Bytes}} {
		if i > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(b, " %s %s", x.what, tallyText(x.tally))
	}
	b.WriteByte('\n')
	for _, w := range p.Verdict.Places {
		fmt.Fprintf(b, "  wrong: %s of %s on %s, the first %d: %s predicted, %s measured\n", w.Number, w.Call,
			counted(w.Ranks, "rank"), w.Rank, grouped(w.Predicted), grouped(w.Measured))
	}
}

// tallyText lists the counts of a tally that are not 0.
func tallyText(t *report.Tally) string {
	var all []string
	for _, x := range []struct {
		n    int64
		what string
	}{{t.Exact, "exact"}, {t.Inside, "in their interval"}, {t.Outside, "outside of it"}, {t.Unknown, "unknown"},
		{t.Wrong, "wrong"}} {
		if x.n > 0 {
			all = append(all, grouped(x.n)+" "+x.what)
		}
	}
	if all == nil {
		return "none"
	}
	return strings.Join(all, ", ")
}

// holdout compares the prediction with the run that was left out.
func (p *printedPrediction) holdout(b *strings.Builder) {
	s, c := p.Score, p.Coverage
	if s == nil {
		return
	}
	fmt.Fprintf(b, "measured: %s with %s\n", counted(s.Messages, "message"), bytesText(s.Bytes))
	fmt.Fprintf(b, "pairs of ranks: precision %s, recall %s; off by %s of the messages, %s of the bytes, "+
		"%s of the calls of collectives\n",
		percent(s.EdgePrecision), percent(s.EdgeRecall), percent(s.MessageError), percent(s.ByteError),
		percent(s.CollectiveError))
	if c.Numbers == 0 {
		return
	}
	fmt.Fprintf(b, "only calls that both runs make: intervals of %s of %s hold; of %s that were predicted as exact %s are",
		percent(float64(c.Covered)/float64(c.Numbers)), counted(c.Numbers, "size"),
		grouped(c.Exact), grouped(c.ExactRight))
	if c.WidthMedian != nil {
		fmt.Fprintf(b, "; the others are %s wide", percent(*c.WidthMedian))
	}
	fmt.Fprintf(b, "\nsizes predicted as exact and wrong, of these calls: %s\n",
		grouped(c.Exact-c.ExactRight))
	for i := range c.Wrong {
		w := &c.Wrong[i]
		fmt.Fprintf(b, "  %s: %s, the first on rank %d: %s bytes predicted, %s measured\n", w.Call,
			counted(w.Numbers, "size"), w.Rank, grouped(w.Predicted), grouped(w.Measured))
	}
}

// slots prints the communications with most bytes, or all.
func (p *printedPrediction) slots(b *strings.Builder) {
	list := p.Slots
	if !p.all {
		list = list[:min(len(list), slotsListed)]
	}
	if len(list) > 0 {
		b.WriteByte('\n')
	}
	for i := range list {
		r := &list[i]
		fmt.Fprintf(b, "%s: %s%s, %s%s\n", r.Call, counted(r.Calls, "call"), boundsText(r.CallsLow, r.CallsHigh, grouped),
			inBytes(r.Bytes), boundsText(r.BytesLow, r.BytesHigh, inBytes))
		for _, line := range [][2]string{{"to", r.Destinations}, {"equation", r.Equation}, {"bytes", r.Size},
			{"among", r.Members}} {
			if line[1] != "" {
				fmt.Fprintf(b, "  %s: %s\n", line[0], line[1])
			}
		}
	}
	if n := len(p.Slots) - len(list); n > 0 {
		fmt.Fprintf(b, "%d more with fewer bytes; --all lists them\n", n)
	}
}

// boundsText describes the bounds of a number; empty if it is certain.
func boundsText(low, high int64, text func(int64) string) string {
	switch {
	case low == high:
		return ""
	case high == math.MaxInt64:
		return fmt.Sprintf(" (%s or more)", text(low))
	}
	return fmt.Sprintf(" (%s to %s)", text(low), text(high))
}

// ranksList writes numbers of ranks.
func ranksList(ranks []int32) string {
	var all []string
	for _, r := range ranks {
		all = append(all, fmt.Sprint(r))
	}
	return strings.Join(all, ", ")
}

// firstNames lists the first names, and counts the others.
func firstNames(names []string) string {
	if n := len(names); n > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), n-3)
	}
	return strings.Join(names, ", ")
}
