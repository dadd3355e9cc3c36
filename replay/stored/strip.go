package stored

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Stripper removes everything from a run that is not needed to play it.
type Stripper struct {
	// Anonymous also removes the names that the program gives: functions, files, lines and modules of call sites, names
	// of phases, files and communicators, and texts of warnings.
	Anonymous bool
}

// Write writes the run without data, hosts and command line.
func (s *Stripper) Write(ctx context.Context, source *run.Run, how run.Rewrite) error {
	how.Check = true
	out, err := run.NewRewriter(source, how)
	if err != nil {
		return err
	}
	defer out.Abort()
	for _, t := range schema.Tables() {
		err := out.Copy(ctx, t, func(b schema.Batch) (schema.Batch, error) { s.strip(b); return b, nil })
		if err != nil {
			return err
		}
	}
	return out.Commit(ctx, s.manifest(out.Manifest(), how))
}

// strip removes data and names from rows.
func (s *Stripper) strip(b schema.Batch) {
	switch t := b.(type) {
	case *schema.Events:
		setNull(t.SendBuffer, t.RecvBuffer, t.PayloadHash, t.PayloadSum, t.PayloadHead, t.Instructions, t.Cycles)
		if s.Anonymous {
			for i, label := range t.Label {
				if !neutralLabel(label) && !schema.CallID(t.Call[i]).Is(schema.FactOneSided) {
					t.Label[i] = schema.NullText
				}
			}
		}
	case *schema.Messages:
		setNull(t.PayloadHash, t.PayloadSum, t.PayloadHead, t.RecvHash, t.SrcBuffer, t.DstBuffer)
	case *schema.Callsites:
		if s.Anonymous {
			setNullTexts(t.Module, t.BuildID, t.Function, t.File)
			for i := range t.Line {
				t.Line[i] = schema.NullInt32
			}
		}
	case *schema.Comms:
		if s.Anonymous {
			setNullTexts(t.Name)
		}
	case *schema.Datatypes:
		for i, combiner := range t.Combiner {
			if s.Anonymous && combiner != "named" {
				t.Name[i] = schema.NullText
			}
		}
	}
}

// neutralLabel reports whether a label reveals nothing about the program: switches, numbers, and labels that
// simulations need.
func neutralLabel(label string) bool {
	if _, err := strconv.ParseInt(label, 10, 64); err == nil {
		return true
	}
	return slices.Contains([]string{schema.NullText, "off", "on", simulate.DimemasSync1, simulate.DimemasSync3}, label)
}

func setNull(columns ...[]int64) {
	for _, c := range columns {
		for i := range c {
			c[i] = schema.NullInt64
		}
	}
}

func setNullTexts(columns ...[]string) {
	for _, c := range columns {
		for i := range c {
			c[i] = schema.NullText
		}
	}
}

// manifest strips a manifest.
func (s *Stripper) manifest(m *schema.Manifest, how run.Rewrite) *schema.Manifest {
	from := *m
	m.Hash, m.HashVerify, m.Counters = "none", false, ""
	m.Counts.HashesVerified, m.Counts.HashMismatches = 0, 0
	m.Warnings = nil
	for _, w := range from.Warnings {
		namesHost := func(host string) bool { return host != "" && strings.Contains(w, host) }
		if !s.Anonymous && !slices.ContainsFunc(from.Origin.Hosts, namesHost) {
			m.Warnings = append(m.Warnings, w)
		}
	}
	library := from.Origin.MPI // drop what follows the version: it may name the builder and folders
	if end := strings.IndexAny(library, ",\n\t"); end >= 0 {
		library = library[:end]
	}
	m.Origin = schema.Origin{Name: how.Name, Commq: how.Commq, MPI: library}
	keepEvidence(&m.Origin, &from.Origin)
	return m
}

// keepEvidence keeps how the run came about, without the names of other runs: what commq made must not look like a
// capture.
func keepEvidence(to, from *schema.Origin) {
	if p := from.Prediction; p != nil {
		to.Prediction = &schema.Prediction{Runs: []schema.PredictedFrom{}, Numbers: p.Numbers, Inexact: p.Inexact}
	}
	if r := from.Replacement; r != nil {
		to.Replacement = &schema.Replacement{Collectives: r.Collectives, Messages: r.Messages, Left: r.Left}
	}
	if r := from.Replay; r != nil {
		to.Replay = &schema.Replay{Compute: r.Compute, Skip: r.Skip, Of: r.Of}
	}
	if s := from.Simulation; s != nil {
		to.Simulation = &schema.Simulation{Ranks: s.Ranks, Dialect: s.Dialect}
	}
	if t := from.Trace; t != nil {
		to.Trace = &schema.Trace{Format: t.Format}
	}
}
