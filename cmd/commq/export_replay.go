package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

type exportReplayOptions struct {
	run       string // --run
	output    string // --output
	anonymous bool   // --anonymous
}

func newExportReplayCommand(a *app) *cobra.Command {
	var o exportReplayOptions
	c := &cobra.Command{
		Use:   "replay [flags]",
		Short: "Write a run that can be given away: its schedule, without data, hosts and command line",
		Long: `replay writes a run that has what a program did and not what it worked on: calls, peers, tags, bytes, communicators and times stay, and
go the hashes and first bytes of payloads, addresses of buffers, counters, names of hosts and the command line. It is a run like any other: queries,
simulate, phases and replay read it. --anonymous also takes away what the program calls things: functions, files, lines and modules of call sites,
names of phases, files and communicators, and texts of warnings; offsets of call sites stay, which tell calls apart.`,
		Example: `  commq export replay --run hpl.16 -o shared/hpl.16
  commq export replay --run hpl.16 -o shared/customer.16 --anonymous
  commq replay --run shared/customer.16`,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return runExportReplay(c.Context(), a, &o) },
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "run to write: a name in the store, or a path")
	f.BoolVar(&o.anonymous, "anonymous", false, "also without the names that the program gives")
	f.StringVarP(&o.output, "output", "o", "", "folder to write; it must not be there yet")
	for _, name := range []string{"run", "output"} {
		_ = c.MarkFlagRequired(name)
	}
	register(c, completeRuns(a), "run")
	completeFolders(c, "output")
	return c
}

func runExportReplay(ctx context.Context, a *app, o *exportReplayOptions) error {
	dir, err := writer.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	m, err := writer.ReadManifest(dir)
	if err != nil {
		return err
	}
	out, err := writer.Create(filepath.Dir(o.output), filepath.Base(o.output), writer.Options{Check: true})
	if err != nil {
		return fmt.Errorf("export replay: %w", err)
	}
	defer out.Abort()
	for _, t := range schema.Tables() {
		if err := out.CopyTable(ctx, dir, t, copyRows, func(b schema.Batch) error { o.strip(b); return nil }); err != nil {
			return fmt.Errorf("export replay: %s: %w", o.run, err)
		}
	}
	if err := out.Commit(o.stripped(m)); err != nil {
		return fmt.Errorf("export replay: %s: %w", o.run, err)
	}
	return nil
}

// strip takes from rows what is no part of the schedule.
func (o *exportReplayOptions) strip(b schema.Batch) {
	switch t := b.(type) {
	case *schema.Events:
		nullAll(t.SendBuffer, t.RecvBuffer, t.PayloadHash, t.PayloadSum, t.PayloadHead, t.Instructions, t.Cycles)
		if o.anonymous {
			for i, label := range t.Label {
				if !plainLabel(label) {
					t.Label[i] = schema.NullText
				}
			}
		}
	case *schema.Messages:
		nullAll(t.PayloadHash, t.PayloadSum, t.PayloadHead, t.RecvHash, t.SrcBuffer, t.DstBuffer)
	case *schema.Callsites:
		if o.anonymous {
			nullTexts(t.Module, t.BuildID, t.Function, t.File)
			for i := range t.Line {
				t.Line[i] = schema.NullInt32
			}
		}
	case *schema.Comms:
		if o.anonymous {
			nullTexts(t.Name)
		}
	case *schema.Datatypes:
		for i, combiner := range t.Combiner {
			if o.anonymous && combiner != "named" {
				t.Name[i] = schema.NullText
			}
		}
	}
}

// plainLabel says whether a label says nothing of the program: switches, numbers, and what simulations need.
func plainLabel(label string) bool {
	if _, err := strconv.ParseInt(label, 10, 64); err == nil {
		return true
	}
	return slices.Contains([]string{schema.NullText, "off", "on", simulate.DimemasSync1, simulate.DimemasSync3}, label)
}

func nullAll(columns ...[]int64) {
	for _, c := range columns {
		for i := range c {
			c[i] = schema.NullInt64
		}
	}
}

func nullTexts(columns ...[]string) {
	for _, c := range columns {
		for i := range c {
			c[i] = schema.NullText
		}
	}
}

// stripped is the manifest of what is left.
func (o *exportReplayOptions) stripped(from *schema.Manifest) *schema.Manifest {
	m := *from
	m.Hash, m.HashVerify, m.Counters = "none", false, ""
	m.Counts.HashesVerified, m.Counts.HashMismatches = 0, 0
	m.Warnings = nil
	for _, w := range from.Warnings {
		named := func(host string) bool { return host != "" && strings.Contains(w, host) }
		if !o.anonymous && !slices.ContainsFunc(from.Origin.Hosts, named) {
			m.Warnings = append(m.Warnings, w)
		}
	}
	library := from.Origin.MPI // what is behind its version may name who built it, and where
	if end := strings.IndexAny(library, ",\n\t"); end >= 0 {
		library = library[:end]
	}
	m.Origin = schema.Origin{Name: filepath.Base(o.output), Commq: version, MPI: library}
	return &m
}
