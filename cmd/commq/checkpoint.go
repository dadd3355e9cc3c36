package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/commq/commq/internal/about"
	"github.com/commq/commq/writer"
)

// longOptions are the checkpoint flags of commands that may take hours.
type longOptions struct {
	checkpoint string        // --checkpoint
	every      time.Duration // --checkpoint-every
}

const checkpointEvery = 5 * time.Minute

func (o *longOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.checkpoint, "checkpoint", "",
		"keep checkpoints in this `FOLDER`, and continue from the last one when "+
			"the same command is started again (docs/method/long-jobs.md)")
	f.DurationVar(&o.every, "checkpoint-every", checkpointEvery,
		"with --checkpoint: the least `TIME` between two checkpoints")
	completeNothing(c, "checkpoint-every")
	completeFolders(c, "checkpoint")
}

func (o *longOptions) check(c *cobra.Command) error {
	switch {
	case o.checkpoint == "" && c.Flags().Changed("checkpoint-every"):
		return errors.New("--checkpoint-every: name a folder for checkpoints with --checkpoint")
	case o.every < 0:
		return fmt.Errorf("--checkpoint-every %v: want a time, for example 5m", o.every)
	}
	return nil
}

// open opens the folder of checkpoints for a task that depends on these facts and on the version of commq. It returns
// nil without --checkpoint.
func (o *longOptions) open(a *app, facts ...writer.Fact) (*writer.Checkpoint, error) {
	if o.checkpoint == "" {
		return nil, nil
	}
	c, err := writer.OpenCheckpoint(o.checkpoint, o.every,
		append([]writer.Fact{{Name: "program", Value: programVersion()}}, facts...))
	if err == nil && c.Saved() && !a.quiet {
		fmt.Fprintf(a.log(), "commq: continuing from the checkpoint in %s\n", o.checkpoint)
	}
	return c, err
}

// checkpointFacts converts pairs of a name and a value to facts.
func checkpointFacts(pairs [][2]string) (facts []writer.Fact) {
	for _, p := range pairs {
		facts = append(facts, writer.Fact{Name: p[0], Value: p[1]})
	}
	return facts
}

// programVersion is commq's version, with the commit that it was built from if known.
func programVersion() string { return strings.TrimSpace(version + " " + about.Commit()) }

// endCheckpoint closes a folder of checkpoints, which may be nil. If the task succeeded, it removes the checkpoint.
func endCheckpoint(folder *writer.Checkpoint, failed error) error {
	switch {
	case folder == nil:
		return nil
	case failed == nil:
		return folder.Done()
	}
	return folder.Close()
}
