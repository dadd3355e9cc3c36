package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/detect/replace"
	"github.com/commq/commq/detect/report"
	"github.com/commq/commq/detect/stored"
	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/run"
)

// replaceOptions are the flags of commq replace.
type replaceOptions struct {
	run      string // --run
	findings string // --findings
	finding  []int  // --finding
	name     string // --name
}

func newReplaceCommand(a *app) *cobra.Command {
	var o replaceOptions
	c := &cobra.Command{
		Use:   "replace RUN",
		Short: "Replace messages by the collective operations that they do by hand",
		Long: `replace writes the run that a program would have if it called the collective operations that commq
detect found: the sends, receives and waits of their messages are gone, and each rank that takes part has a row of
the collective. What ranks compute stays. The run is untimed; commq simulate tells what it takes on a machine.

--findings is the answer of commq detect --format json --messages; without it replace detects by itself. A rank calls
the collective when the last of its operands is there, or, if it has none, where it needs the first data;
docs/method/replace.md has the rules. Instances that would make ranks wait for each other forever stay as they are
and are listed.`,
		Example: `  commq replace hpl.16
  commq replace --run hpl.16 --finding 1,3 --name hpl.16.bcast
  commq detect --run hpl.16 --format json --messages > findings.json
  commq replace --run hpl.16 --findings findings.json
  commq simulate --run hpl.16.replaced --machine myrinet`,
		RunE: func(c *cobra.Command, _ []string) error { return runReplace(c.Context(), a, &o) },
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "`RUN` with the messages: a name in the store, or a path")
	f.StringVar(&o.findings, "findings", "", "`FILE` with the findings, of commq detect --format json --messages; "+
		"- is standard input (default: detect them)")
	f.IntSliceVar(&o.finding, "finding", nil, "numbers of the findings to replace, from 1 (default: all)")
	f.StringVar(&o.name, "name", "", "`NAME` of the new run (default: the run's with .replaced)")
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	completeFiles(c, "findings")
	a.writes(c)
	completeNothing(c, "finding", "name")
	return c
}

func runReplace(ctx context.Context, a *app, o *replaceOptions) error {
	if o.run == "" {
		return errNoRun
	}
	found, err := run.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	r, err := run.Open(ctx, found.Dir, replace.Need)
	if err != nil {
		return err
	}
	name := cmp.Or(o.name, r.Name+".replaced")
	if err := a.checkName(name); err != nil {
		return err
	}
	answer, findings, err := o.readFindings(ctx, a, r)
	if err != nil {
		return err
	}
	which, err := answer.Indices(o.finding)
	if err != nil {
		return fmt.Errorf("--%w", err) // finding N: ...
	}
	replaceable, err := replace.Open(ctx, r, findings)
	if err != nil {
		return err
	}
	plan := replaceable.Plan(which)
	if plan.Total() == 0 {
		printLeft(a, plan, findings)
		return nothingReplaced(r.Name, plan)
	}
	done, err := plan.Write(ctx, r, run.Rewrite{Store: a.storeDir(), Name: name, Replace: a.replace, Commq: version})
	if err != nil {
		return err
	}
	printLeft(a, plan, findings)
	_, err = fmt.Fprintf(a.out(), "%s: %s instead of %s of %s; untimed: commq simulate --run %s --machine "+
		"MACHINE times it\n",
		name, counted(done.Collectives, "collective"), counted(done.Messages, "message"), r.Name, name)
	return err
}

// nothingReplaced is the error of a replacement that would change nothing.
func nothingReplaced(name string, plan *replace.Plan) error {
	if len(plan.Left) == 0 {
		return fmt.Errorf("replace: no collective made by hand was found in run %q; nothing was written", name)
	}
	return fmt.Errorf("replace: none of %s in run %q can be replaced; nothing was written",
		counted(int64(len(plan.Left)), "instance"), name)
}

// printLeft lists the instances that stay as they are, with the reason.
func printLeft(a *app, plan *replace.Plan, findings []replace.Finding) {
	for _, l := range plan.Left {
		fmt.Fprintf(a.log(), "commq: finding %d, instance %d stays: %s\n", findings[l.Finding].Number, l.Instance+1,
			l.Why)
	}
}

// readFindings reads the file of findings; without one it detects them.
func (o *replaceOptions) readFindings(ctx context.Context, a *app, r *run.Run) (*report.Report, []replace.Finding,
	error) {
	if o.findings == "" {
		if err := stored.Need.Check(r.Name, r.Manifest); err != nil {
			return nil, nil, err
		}
		answer, err := report.Detect(ctx, &stored.Detection{Run: r, Options: detect.Options{Messages: true},
			Spill: spillPayloads})
		if err != nil {
			return nil, nil, err
		}
		answer.DropCandidates()
		findings, err := answer.Replaceable()
		return answer, findings, err
	}
	data, err := readInput(a.stdin, o.findings)
	if err != nil {
		return nil, nil, fmt.Errorf("--findings: %w", err)
	}
	answer := &report.Report{}
	if err := json.Unmarshal(data, answer); err != nil {
		return nil, nil, fmt.Errorf("--findings %s: %w; want the answer of commq detect --format json --messages",
			o.findings, err)
	}
	if answer.RunDigest != r.Manifest.Digest {
		return nil, nil, fmt.Errorf("--findings %s: the findings are of run %q with the digest %s; run %q has %s: "+
			"commq detect --run %s --format json --messages makes its own", o.findings, answer.Run,
			cmp.Or(answer.RunDigest, "(none)"), r.Name, r.Manifest.Digest, r.Name)
	}
	findings, err := answer.Replaceable()
	if err != nil {
		return nil, nil, fmt.Errorf("--findings %s: %w", o.findings, err)
	}
	return answer, findings, nil
}

// readInput reads a file, or standard input for "-".
func readInput(stdin io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return bounded.ReadAll(stdin, bounded.TextBytes)
	}
	return bounded.ReadFile(file, bounded.TextBytes)
}
