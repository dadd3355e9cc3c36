package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/commq/commq/predict"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// signOptions are the flags of commq sign.
type signOptions struct {
	run    string // --run
	output string // --output
	check  bool   // --check
}

func newSignCommand(a *app) *cobra.Command {
	var o signOptions
	c := &cobra.Command{
		Use:   "sign",
		Short: "Make the signature of a run: what it did, small enough to be kept",
		Long: `sign makes a run's signature, as PAS2P does: the template of the program, which is its loops and calls as the call paths and their
order show them, and what each rank did of it: how often, with which peers, bytes, tags and communicators, which call completes which
request, and how long it computed before. What ranks and iterations do alike is written once, so that a signature is small when the run is
not. From it every rank's calls can be written again; --check does that and compares them with the run's.

The run has the rows of all its calls. Capture it with --stack 16, so that a call is known by its path from main: the return address
alone, as captures have by default, cannot tell calls of one function that is called from several places. docs/method/prediction.md
says more.`,
		Example: `  commq sign --run bt.W.16 -o bt.W.16.json
  commq sign --run bt.W.16 --check -o bt.W.16.json.gz`,
		Args:              wantArgs(0, 0, "no arguments but flags; name the run with --run"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return runSign(c.Context(), a, &o) },
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "`RUN` to sign: a name in the store, or a path")
	f.StringVarP(&o.output, "output", "o", "", "write the signature to `FILE` instead of standard output; compressed where it ends in .gz")
	f.BoolVar(&o.check, "check", false, "expand the signature and compare it with the run")
	register(c, completeRuns(a), "run")
	completeFiles(c, "output", "json", "gz")
	return c
}

func runSign(ctx context.Context, a *app, o *signOptions) error {
	if o.run == "" {
		return errors.New("no run given; name one with --run")
	}
	run, err := findPredicted(ctx, a, o.run)
	if err != nil {
		return err
	}
	s, err := predict.Sign(run)
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	if o.check {
		if err := s.Compare(run); err != nil {
			return fmt.Errorf("sign of %s: %w", run.Name, err)
		}
	}
	if o.output == "" {
		return s.Write(a.stdout)
	}
	return writeFile(o.output, packed(o.output, s.Write))
}

// findPredicted is the run that a name or path names, as prediction sees it.
func findPredicted(ctx context.Context, a *app, name string) (*predict.Run, error) {
	dir, err := writer.Find(a.storeDir(), name)
	if err != nil {
		return nil, err
	}
	return predicted(ctx, dir)
}

// predicted is the run in a folder as prediction sees it.
func predicted(ctx context.Context, dir string) (*predict.Run, error) {
	m, err := writer.ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	run := &predict.Run{Name: filepath.Base(dir), Manifest: m}
	if run.Comms, err = tableRows[schema.Comm](ctx, dir, &schema.CommsTable); err != nil {
		return nil, err
	}
	if run.Callsites, err = tableRows[schema.Callsite](ctx, dir, &schema.CallsitesTable); err != nil {
		return nil, err
	}
	if run.Datatypes, err = tableRows[schema.Datatype](ctx, dir, &schema.DatatypesTable); err != nil {
		return nil, err
	}
	run.Events = func(add func(*schema.Events) error) error {
		rows, err := writer.ReadEpochs(dir, &schema.EventsTable, eventRows, predict.Columns...)
		if err != nil {
			return err
		}
		return rows.All(ctx, func(b schema.Batch) error { return add(b.(*schema.Events)) })
	}
	return run, nil
}

// tableRows reads the rows of a small table.
func tableRows[R any](ctx context.Context, dir string, t *schema.Table) (all []R, err error) {
	err = writer.ReadTable(ctx, dir, t, smallRows, func(b schema.Batch) error {
		rows := b.(interface{ Row(int, *R) })
		for i := range b.Len() {
			var r R
			rows.Row(i, &r)
			all = append(all, r)
		}
		return nil
	})
	return all, err
}
