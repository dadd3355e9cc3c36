package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/commq/commq/replay/stored"
	"github.com/commq/commq/run"
)

type exportReplayOptions struct {
	run       string // --run
	output    string // --output
	anonymous bool   // --anonymous
}

func newExportReplayCommand(a *app) *cobra.Command {
	var o exportReplayOptions
	c := &cobra.Command{
		Use:   "replay RUN",
		Short: "Write a run that can be given away: its calls, without data, hosts and command line",
		Long: `replay writes a run that tells what a program did and not what it worked on. Calls, peers, tags,
bytes, communicators and times stay; hashes and first bytes of payloads, addresses of buffers, counters, host names
and the command line go. The result is a run like any other: queries, simulate, phases and replay read it.
--anonymous also removes the names that the program gives: functions, files, lines and modules of call sites, names
of phases, files and communicators, and texts of warnings. Offsets of call sites stay, to tell calls apart.`,
		Example: `  commq export replay hpl.16 -o shared/hpl.16
  commq export replay --run hpl.16 -o shared/customer.16 --anonymous
  commq replay --run shared/customer.16`,
		RunE: func(c *cobra.Command, _ []string) error { return runExportReplay(c.Context(), a, &o) },
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "`RUN` to write: a name in the store, or a path")
	f.BoolVar(&o.anonymous, "anonymous", false, "also remove the names that the program gives")
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write: the folder of the new run")
	for _, name := range []string{"run", "output"} {
		_ = c.MarkFlagRequired(name)
	}
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	a.writes(c)
	completeFolders(c, "output")
	return c
}

func runExportReplay(ctx context.Context, a *app, o *exportReplayOptions) error {
	found, err := run.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	r, err := run.Open(ctx, found.Dir, run.Need{})
	if err != nil {
		return err
	}
	o.output = filepath.Clean(o.output) // a path that ends in a slash is its own folder
	s := &stored.Stripper{Anonymous: o.anonymous}
	err = s.Write(ctx, r,
		run.Rewrite{Store: filepath.Dir(o.output), Name: filepath.Base(o.output), Replace: a.replace, Commq: version})
	if err != nil {
		return fmt.Errorf("export replay: %s: %w", o.run, err)
	}
	disclose(ctx, a, o.output, o.output)
	return nil
}
