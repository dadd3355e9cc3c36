package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/predict"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// signOptions are the flags of commq sign.
type signOptions struct {
	run    string // --run
	output string // --output
	check  bool   // --check
	format string // --format
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

It has the phases with their weights, and for each communication what is needed before a rule for more ranks is looked for: whether the destination
is an exchange or permutation of the bits of the source (dynamic) or not (static), whether messages go on from rank to rank (dependent), and the
distances from sources to destinations, as displacements with their repetitions. --format table prints that for people. --run also takes a signature
that was kept.

The run has the rows of all its calls. Capture it with --stack 16, so that a call is known by its path from main: the return address
alone, as captures have by default, cannot tell calls of one function that is called from several places. docs/method/prediction.md
says more.`,
		Example: `  commq sign --run bt.W.16 -o bt.W.16.json
  commq sign --run bt.W.16 --check -o bt.W.16.json.gz
  commq sign --run bt.W.16.json.gz --format table`,
		Args:              wantArgs(0, 0, "no arguments but flags; name the run with --run"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf("format", o.format, signFormats[:]...); err != nil {
				return err
			}
			return runSign(c.Context(), a, &o, o.output == "" || c.Flags().Changed("format"))
		},
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "`RUN` to sign: a name in the store, or a path; or a file of commq sign")
	f.StringVarP(&o.output, "output", "o", "", "write the signature to `FILE` instead of standard output; compressed where it ends in .gz")
	f.BoolVar(&o.check, "check", false, "expand the signature and compare it with the run")
	f.StringVar(&o.format, "format", "json", "what is printed where --output is not given, or both are: json (the signature), or its phases and communications as a "+
		strings.Join(signFormats[1:], ", "))
	register(c, completeRuns(a), "run")
	completeFiles(c, "output", "json", "gz")
	complete(c, "format", signFormats[:]...)
	return c
}

// signFormats are the formats of what sign prints: the first is the signature itself.
var signFormats = [...]string{"json", "table", "csv"}

func runSign(ctx context.Context, a *app, o *signOptions, print bool) error {
	if o.run == "" {
		return errors.New("no run given; name one with --run")
	}
	s, err := o.sign(ctx, a)
	if err != nil {
		return err
	}
	if o.output != "" {
		if err := writeFile(o.output, packed(o.output, s.Write)); err != nil {
			return err
		}
	}
	switch {
	case !print:
		return nil
	case o.format == "json":
		return s.Write(a.stdout)
	case o.format == "table":
		if err := signSummary(a.screen(), s); err != nil {
			return err
		}
	}
	return output.Write(a.screen(), o.format, communicationRows(s))
}

// sign makes the signature of a run, or reads one that was kept.
func (o *signOptions) sign(ctx context.Context, a *app) (*predict.Signature, error) {
	files, err := signatureFiles(o.run)
	switch {
	case err != nil:
		return nil, err
	case len(files) > 1:
		return nil, fmt.Errorf("--run %s: %d files; name one", o.run, len(files))
	case len(files) == 1 && o.check:
		return nil, fmt.Errorf("--check: it compares a signature with its run's rows, and %s has none; name the run", files[0])
	case len(files) == 1:
		s, err := readSignature(files[0])
		if err == nil {
			s.FindCommunications()
		}
		return s, err
	}
	run, err := findPredicted(ctx, a, o.run)
	if err != nil {
		return nil, err
	}
	s, err := predict.Sign(run)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	if o.check {
		if err := s.Compare(run); err != nil {
			return nil, fmt.Errorf("sign of %s: %w", run.Name, err)
		}
	}
	return s, nil
}

// signSummary says what a signature has, and its phases.
func signSummary(w io.Writer, s *predict.Signature) error {
	var b strings.Builder
	loops, events := s.Loops()
	fmt.Fprintf(&b, "signature of %s: %s, %s of %s in %s; the logical clock ends at %d\n", s.Run, counted(int64(s.Ranks), "rank"), counted(s.Calls, "call"),
		counted(int64(events), "event"), counted(int64(loops), "loop"), s.Ticks)
	for i := range s.Phases {
		p := &s.Phases[i]
		agree := ""
		if !p.Agrees(s.Ranks) {
			agree = fmt.Sprintf("; %s has it, and not all as often", counted(int64(p.Ranks), "rank"))
			if p.Ranks != 1 {
				agree = fmt.Sprintf("; %d ranks have it, and not all as often", p.Ranks)
			}
		}
		fmt.Fprintf(&b, "phase %d: weight %s, %s a repetition, %s of the run%s\n", i+1, weightText(p), counted(p.EventsMax, "call"), percent(shareOf(p)), agree)
	}
	if s.Irregular != "" {
		fmt.Fprintf(&b, "communications: not told: %s\n", s.Irregular)
	}
	b.WriteByte('\n')
	_, err := io.WriteString(printable.Writer(w), b.String())
	return err
}

// communicationColumns are the columns of the communications of a signature.
var communicationColumns = []queries.Column{{Name: "phase", Type: "INTEGER"}, {Name: "weight", Type: "BIGINT", Unit: "1"}, {Name: "communication", Type: "INTEGER"},
	{Name: "event", Type: "INTEGER"}, {Name: "call", Type: "VARCHAR"}, {Name: "places", Type: "INTEGER", Unit: "1"}, {Name: "event_calls", Type: "BIGINT", Unit: "1"},
	{Name: "event_bytes", Type: "BIGINT", Unit: "B"}, {Name: "pattern", Type: "VARCHAR"}, {Name: "topology", Type: "VARCHAR"}, {Name: "dependent", Type: "BOOLEAN"}, {Name: "equation", Type: "VARCHAR"}}

func communicationRows(s *predict.Signature) queries.Rows {
	var rows [][]any
	for i := range s.Communications {
		c := &s.Communications[i]
		var phase, weight any
		if c.Phase > 0 {
			phase, weight = int32(c.Phase), s.Phases[c.Phase-1].Weight
		}
		kind := "static"
		if c.Dynamic {
			kind = "dynamic"
		}
		var topology any
		if c.Topology != nil {
			topology = c.Topology.String()
		}
		rows = append(rows, []any{phase, weight, int32(c.Number), c.Event, s.CallName(c.Event), int32(c.Places), c.Calls, c.Bytes, kind, topology, c.Dependent, c.Equation()})
	}
	return queries.RowsOf(communicationColumns, rows)
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
	run.Parts = func(add func(*schema.Parts) error) error {
		return writer.ReadTable(ctx, dir, &schema.PartsTable, smallRows, func(b schema.Batch) error { return add(b.(*schema.Parts)) })
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
