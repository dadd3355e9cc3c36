package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/training"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/run"
)

// exportSignatureOptions are the flags of commq export signature.
type exportSignatureOptions struct {
	run    string // --run
	output string // --output
	check  bool   // --check
	format string // --format
}

func newExportSignatureCommand(a *app) *cobra.Command {
	var o exportSignatureOptions
	c := &cobra.Command{
		Use:   "signature RUN",
		Short: "Write the signature of a run: what it did, small enough to keep",
		Long: `signature writes a run's signature, as PAS2P does: the template of the program, which is its loops and
calls as the call paths and their order show them, and what each rank did of it: how often, with which peers, bytes,
tags and communicators, which call completes which request, and how long it computed before. What ranks or iterations
have in common is written once: a signature is small when the run is not. All calls of all ranks can be written
again from it; --check does that and compares them with the run.

A signature has the phases with their weights. For each communication it has what is needed to look for a rule at more
ranks: whether the destination is an exchange or permutation of the bits of the source (dynamic) or not (static),
whether messages go on from rank to rank (dependent), and the distances from sources to destinations, as displacements
with their repetitions. --format table prints that for people. --run also takes a signature file. A signature, and the
models made of it, name the program, its arguments, functions and source files.

The run needs the rows of all its calls. Capture it with --stack 16, so that a call is known by its path from main: the
return address alone, as captures have by default, cannot tell calls of one function apart that is called from several
places. docs/method/prediction.md has the method.`,
		Example: `  commq export signature bt.W.16 -o bt.W.16.json
  commq export signature --run bt.W.16 --check -o bt.W.16.json.gz
  commq export signature --run bt.W.16.json.gz --format table`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf("format", o.format, signFormats[:]...); err != nil {
				return err
			}
			return runExportSignature(c.Context(), a, &o, o.output == "" || c.Flags().Changed("format"))
		},
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "`RUN` to write: a name in the store, or a path; or a signature file")
	f.StringVarP(&o.output, "output", "o", "",
		"write the signature to `FILE` instead of standard output, compressed if it ends in .gz")
	f.BoolVar(&o.check, "check", false, "expand the signature and compare it with the run")
	f.StringVar(&o.format, "format", "json", "`FORMAT` of what is printed without --output, or besides: json (the "+
		"signature), or its phases and communications as "+strings.Join(signFormats[1:], " or "))
	a.exactFlag(c)
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	a.writes(c)
	completeFiles(c, "output", "json", "gz")
	complete(c, "format", signFormats[:]...)
	return c
}

// signFormats are the formats of what signature prints; json is the signature itself.
var signFormats = [...]string{"json", "table", "csv"}

func runExportSignature(ctx context.Context, a *app, o *exportSignatureOptions, print bool) error {
	if o.run == "" {
		return errNoRun
	}
	s, err := training.SignOrRead(ctx, a.storeDir(), o.run, o.check)
	if err != nil {
		return err
	}
	if o.output != "" {
		if err := a.writeFile(o.output, training.Compressed(o.output, s.Write)); err != nil {
			return err
		}
	}
	discloseSignature(ctx, a, o, print)
	switch {
	case !print || o.output == standardOutput:
		return nil
	case o.format == "json":
		return s.Write(a.stdout)
	case o.format == "table":
		if err := signSummary(a.screen(o.format), s); err != nil {
			return err
		}
	}
	return a.writeRows(o.format, communicationRows(s))
}

// discloseSignature notes what a signature that was made of a run, and written or printed, tells of it.
func discloseSignature(ctx context.Context, a *app, o *exportSignatureOptions, print bool) {
	if o.output == "" && (!print || o.format != "json") {
		return
	}
	if files, err := training.FindFiles(o.run); err != nil || len(files) > 0 { // of a signature
		return
	}
	name := o.output
	if name == "" || name == standardOutput {
		name = "the signature"
	}
	if found, err := run.Find(a.storeDir(), o.run); err == nil {
		disclose(ctx, a, found.Dir, name)
	}
}

// signSummary prints the size of a signature, and its phases.
func signSummary(w io.Writer, s *signature.Signature) error {
	var b strings.Builder
	loops, events := s.Template.LoopsAndEvents()
	fmt.Fprintf(&b, "signature of %s: %s, %s of %s in %s; the logical clock ends at %d\n", s.Run,
		counted(int64(s.Ranks), "rank"), counted(s.Calls, "call"),
		counted(int64(events), "event"), counted(int64(loops), "loop"), s.Ticks)
	for i := range s.Phases {
		p := &s.Phases[i]
		agree := ""
		if !p.Agrees(s.Ranks) {
			agree = "; not all ranks repeat it as often, and " + ranksHaveIt(p.Ranks)
		}
		fmt.Fprintf(&b, "phase %d: weight %s, %s a repetition, %s of the run%s\n", i+1, weightText(p),
			counted(p.EventsMax, "call"), percent(p.Share()), agree)
	}
	if s.Irregular != "" {
		fmt.Fprintf(&b, "communications are not known: %s\n", s.Irregular)
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// communicationColumns are the columns of the communications of a signature.
var communicationColumns = []queries.Column{{Name: "phase", Type: "INTEGER"},
	{Name: "weight", Type: "BIGINT", Unit: "1"}, {Name: "communication", Type: "INTEGER"},
	{Name: "event", Type: "INTEGER"}, {Name: "call", Type: "VARCHAR"}, {Name: "places", Type: "INTEGER", Unit: "1"},
	{Name: "event_calls", Type: "BIGINT", Unit: "1"},
	{Name: "event_bytes", Type: "BIGINT", Unit: "bytes"}, {Name: "pattern", Type: "VARCHAR"},
	{Name: "topology", Type: "VARCHAR"}, {Name: "dependent", Type: "BOOLEAN"}, {Name: "equation", Type: "VARCHAR"}}

func communicationRows(s *signature.Signature) queries.Rows {
	var rows [][]any
	for i := range s.Communications {
		c := &s.Communications[i]
		var phase, weight any
		if c.Phase > 0 {
			phase, weight = int32(c.Phase), s.Phases[c.Phase-1].Weight
		}
		rows = append(rows, append([]any{phase, weight}, communicationRow(c, s.CallName(c.Event))...))
	}
	return queries.RowsOf(communicationColumns, rows)
}

// communicationRow has the columns of a communication from its number on.
func communicationRow(c *signature.Communication, call string) []any {
	pattern := "static"
	if c.Dynamic {
		pattern = "dynamic"
	}
	var topology any
	if c.Topology != nil {
		topology = c.Topology.String()
	}
	return []any{int32(c.Number), c.Event, call, int32(c.Places), c.Calls, c.Bytes, pattern, topology, c.Dependent,
		c.Equation()}
}

// ranksHaveIt describes how many ranks have a phase.
func ranksHaveIt(ranks int32) string {
	if ranks == 1 {
		return "1 rank has it"
	}
	return fmt.Sprintf("%d ranks have it", ranks)
}
