package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/predict"
)

// extrapolateOptions are the flags of commq extrapolate.
type extrapolateOptions struct {
	models    string   // --models
	ranks     int32    // --ranks
	name      string   // --name
	explained float64  // --explained
	accept    []string // --accept
}

func newExtrapolateCommand(a *app) *cobra.Command {
	var o extrapolateOptions
	c := &cobra.Command{
		Use:   "extrapolate",
		Short: "Make the run that a program would be at a number of ranks that it was not run at",
		Long: `extrapolate writes a run: what each rank would call at another number of ranks, with peers, bytes, tags and communicators, by the laws
that commq fit found in smaller runs. It is a run as any other, but untimed: queries answer on it, commq simulate says what it takes on a
machine. Before it gets its name it is looked at: every receive has its send and every send its receive, and the logical clock comes to its
end, so that no rank waits for ever.

Where the models do not tell there is no run: destinations without a law, laws that agree on all runs and not on what is asked, or less than
--explained of the messages explained, or a field in slabs that may be cut otherwise there (layout-switch). Then the exit status is 2.
With --accept undecided the simplest of laws that disagree is taken, if sends and receives have one together; which messages these are is told. Numbers (bytes, counts)
that no law has exactly are estimates; how many there are is told, and written into the run's manifest. Memory grows with what ranks do that is different, not with the number of calls.`,
		Example: `  commq fit --runs 'cg.W.*' -o models.json
  commq extrapolate --models models.json --ranks 1024
  commq simulate --run cg.W.1024.extrapolated --machine myrinet`,
		Args:              wantArgs(0, 0, "no arguments but flags; name the models with --models"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return runExtrapolate(c.Context(), a, &o) },
	}
	f := c.Flags()
	f.StringVar(&o.models, "models", "", "`FILE` of commq fit --runs; - is standard input")
	f.Int32Var(&o.ranks, "ranks", 0, "number of ranks of the run")
	f.StringVar(&o.name, "name", "", "`NAME` of the run (default: that of the largest run the models are of, with the number of ranks and .extrapolated)")
	explainedFlag(c, &o.explained)
	acceptFlag(c, &o.accept)
	completeFiles(c, "models", "json", "gz")
	completeNothing(c, "ranks", "name")
	return c
}

// explainedFlag is the flag that says how much must have a law.
func explainedFlag(c *cobra.Command, to *float64) {
	c.Flags().Float64Var(to, "explained", 0.95, "least part of the messages whose destinations must have a law, 0 to 1")
	completeNothing(c, "explained")
}

// acceptable are the warnings in spite of which there is an answer when it is asked for.
var acceptable = []string{predict.LayoutSwitch, predict.Undecided}

// acceptFlag is the flag that names warnings which would refuse an answer.
func acceptFlag(c *cobra.Command, to *[]string) {
	c.Flags().StringSliceVar(to, "accept", nil, "answer in spite of a `WARNING` that would refuse it: "+strings.Join(acceptable, ", "))
	complete(c, "accept", acceptable...)
}

// checkAccept looks at it.
func checkAccept(names []string) error {
	for _, name := range names {
		if err := oneOf("accept", name, acceptable...); err != nil {
			return err
		}
	}
	return nil
}

// checkExplained looks at it.
func checkExplained(part float64) error {
	if !(part >= 0 && part <= 1) {
		return fmt.Errorf("--explained %v: want a part from 0 to 1", part)
	}
	return nil
}

func runExtrapolate(ctx context.Context, a *app, o *extrapolateOptions) error {
	switch {
	case o.models == "":
		return errors.New("no models given; name a file with --models (commq fit --runs makes it)")
	case o.ranks < 1:
		return fmt.Errorf("--ranks %d: want 1 or more", o.ranks)
	}
	if err := checkExplained(o.explained); err != nil {
		return err
	}
	if err := checkAccept(o.accept); err != nil {
		return err
	}
	m, err := readModels(ctx, a, o.models)
	if err != nil {
		return err
	}
	x, err := extrapolate(ctx, a, m, o.ranks, o.explained, o.accept)
	if err != nil {
		return fmt.Errorf("extrapolate: %w", err)
	}
	for _, w := range append(slices.Clone(m.Warnings), x.Warnings...) {
		a.note("%s", w)
	}
	for _, w := range m.WarningsAt(o.ranks, x) {
		if w.Name == predict.Estimated || w.Name == predict.LayoutSwitch || w.Name == predict.Undecided {
			a.warn("%s: %s", w.Name, w.Text)
		}
	}
	name := cmp.Or(o.name, extrapolatedName(m, o.ranks))
	manifest, err := saveExtrapolation(ctx, a, m, x, name)
	if err != nil {
		return err
	}
	exact := "all numbers exact"
	if x.Inexact > 0 {
		exact = fmt.Sprintf("%s of %s numbers are estimates", grouped(x.Inexact), grouped(x.Numbers))
	}
	c := &manifest.Counts
	_, err = fmt.Fprintf(a.stdout, "%s: %s, %s with %s, %s; %s; untimed: commq simulate --run %s --machine MACHINE times it\n", name,
		counted(int64(manifest.Ranks), "rank"), counted(c.Messages, "message"), bytesText(c.MessageBytes), counted(c.Collectives, "collective"), exact, name)
	return err
}

// extrapolatedName is what a run is called that has no name given: the largest training run's, with another number of ranks.
func extrapolatedName(m *predict.Model, ranks int32) string {
	runs := m.Runs()
	last := runs[len(runs)-1]
	return fmt.Sprintf("%s.%d.extrapolated", strings.TrimSuffix(last.Run, fmt.Sprintf(".%d", last.Ranks)), ranks)
}

// readModels reads models from a file, or from stdin for "-".
func readModels(ctx context.Context, a *app, file string) (*predict.Model, error) {
	in := a.stdin
	if file != "-" {
		f, err := openPacked(file)
		if err != nil {
			return nil, fmt.Errorf("--models: %w", err)
		}
		defer f.Close()
		in = f
	}
	runs, laws, err := predict.ReadModels(in)
	if err != nil {
		return nil, fmt.Errorf("--models %s: %w", file, err)
	}
	m, err := newModel(ctx, runs)
	if err != nil {
		return nil, fmt.Errorf("--models %s: %w", file, err)
	}
	if !slices.Equal(laws, m.Laws()) {
		a.warn("--models %s: the laws in the file are not those that this commq finds in its runs, which are taken; commq fit writes them", file)
	}
	return m, nil
}

// newModel finds the laws of runs.
func newModel(ctx context.Context, runs []*predict.Signature) (*predict.Model, error) {
	return await(ctx, func() (*predict.Model, error) { return predict.NewModel(runs) })
}

// await calls a function that only computes, and goes on without it when ctx ends.
func await[T any](ctx context.Context, compute func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := compute()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// extrapolate makes the run at a number of ranks, where enough of the messages is explained. On an error the extrapolation has what is known all the same.
func extrapolate(ctx context.Context, a *app, m *predict.Model, ranks int32, explained float64, accept []string) (*predict.Extrapolation, error) {
	if share := 1 - float64(m.Unexplained)/float64(max(m.Traffic, 1)); share < explained {
		return &predict.Extrapolation{}, fmt.Errorf("laws explain only %s of the messages of the largest run, less than --explained %v", percent(share), explained)
	}
	if w, is := m.SwitchesLayout(ranks); is && !slices.Contains(accept, w.Name) {
		return &predict.Extrapolation{}, fmt.Errorf("at %d ranks: %s: %s; with --accept %s the layout is taken to stay as it is", ranks, w.Name, w.Text, w.Name)
	}
	show, clear := statusLine(a)
	defer clear()
	make := m.Extrapolate
	if slices.Contains(accept, predict.Undecided) {
		make = m.ExtrapolateUndecided
	}
	x, err := await(ctx, func() (*predict.Extrapolation, error) {
		return make(ctx, ranks, func(done, all int32) {
			if done%256 == 0 || done == all {
				show(fmt.Sprintf("extrapolating: %s of %s", grouped(int64(done)), counted(int64(all), "rank")))
			}
		})
	})
	if x == nil {
		x = &predict.Extrapolation{}
	}
	return x, err
}

// lawsText prints laws for people.
func lawsText(w io.Writer, laws []predict.PrintedLaw) error {
	for _, l := range laws {
		forms := ""
		if l.Forms > 1 {
			forms = fmt.Sprintf(" (%d laws)", l.Forms)
		}
		if _, err := fmt.Fprintf(w, "%s: %s%s\n", l.Communication, l.Law, forms); err != nil {
			return err
		}
	}
	return nil
}
