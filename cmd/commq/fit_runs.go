package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/training"
)

// fittedRuns is the answer of commq fit --run.
type fittedRuns struct {
	// Runs are the training runs, by number of ranks.
	Runs []fittedRun `json:"runs"`
	// TrainingMessages is the number of messages of the largest run.
	TrainingMessages int64 `json:"training_messages"`
	// TrainingUnexplained is how many of them have no law.
	TrainingUnexplained int64 `json:"training_messages_unexplained"`
	// Grids are the process grids of the laws.
	Grids []model.PrintedGrid `json:"grids"`
	// Laws are the laws of destinations.
	Laws []model.PrintedLaw `json:"laws"`
	// Unexplained lists communications without a law, by reason.
	Unexplained []report.Unexplained `json:"unexplained"`
	// Warnings are assumptions behind the laws: those that predictions have at any number of ranks.
	Warnings []report.Warning `json:"warnings"`

	// textOf describes a communication for people.
	textOf func(communication string) string
}

// fittedRun is a training run.
type fittedRun struct {
	// Run is the name of the run.
	Run string `json:"run"`
	// Ranks is its number of ranks.
	Ranks int32 `json:"ranks"`
	// Calls is its number of MPI calls.
	Calls int64 `json:"calls"`
	// Captures are the captures on that number of ranks whose compute times are pooled; nil for one capture.
	Captures []signature.Capture `json:"captures,omitempty"`
}

func runFitRuns(ctx context.Context, a *app, o *fitOptions) error {
	runs, err := signAll(ctx, a, o.runs)
	if err != nil {
		return err
	}
	m, err := training.FindLaws(ctx, runs)
	if err != nil {
		return fmt.Errorf("fit: %w", err)
	}
	if err := writeModels(a, o.output, m); err != nil {
		return err
	}
	if o.output == standardOutput {
		return nil
	}
	p := describeModel(m)
	if o.format == "json" {
		return printJSON(a.stdout, p)
	}
	return p.print(a.out(), o.output)
}

// writeModels writes the models to a file; "" is no file.
func writeModels(a *app, file string, m *model.Model) error {
	if file == "" {
		return nil
	}
	return a.writeFile(file, training.Compressed(file, m.Write))
}

// describeModel makes the answer from a model.
func describeModel(m *model.Model) *fittedRuns {
	p := &fittedRuns{TrainingMessages: m.Traffic, TrainingUnexplained: m.Unexplained, Grids: m.Grids(), Laws: m.Laws(),
		Unexplained: report.UnexplainedOf(m),
		Warnings:    append([]report.Warning{}, report.Warnings(report.NewWeigher(m, nil, m.LargestRun()))...),
		textOf:      textOf(m)}
	for _, s := range m.Runs() {
		p.Runs = append(p.Runs, fittedRun{s.Run, s.Ranks, s.Calls, s.Captures})
	}
	return p
}

// print prints the answer for people; output is the file of models, "" for none.
func (p *fittedRuns) print(w io.Writer, output string) error {
	var b strings.Builder
	for _, r := range p.Runs {
		fmt.Fprintf(&b, "%s: %s, %s", r.Run, counted(int64(r.Ranks), "rank"), counted(r.Calls, "call"))
		if n := len(r.Captures); n > 0 {
			var names []string
			for _, c := range r.Captures {
				names = append(names, c.Run)
			}
			fmt.Fprintf(&b, "; compute times are the medians of %d captures: %s", n, strings.Join(names, ", "))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s of %s of the largest run have no law\n", grouped(p.TrainingUnexplained),
		counted(p.TrainingMessages, "message"))
	for _, g := range p.Grids {
		fmt.Fprintln(&b, g)
	}
	if err := printLaws(&b, p.Laws, p.textOf); err != nil {
		return err
	}
	printUnexplained(&b, p.Unexplained, p.textOf)
	printWarnings(&b, p.Warnings)
	if output != "" {
		fmt.Fprintf(&b, "%s: commq predict --models %s --ranks P --name NAME makes the run at P ranks\n", output,
			output)
	}
	_, err := io.WriteString(printable.Writer(w), b.String())
	return err
}

// signAll makes or reads the signatures of runs and signature files, by their number of ranks, and shows progress.
func signAll(ctx context.Context, a *app, patterns []string) ([]*signature.Signature, error) {
	show, clear := statusLine(a)
	defer clear()
	return training.SignAll(ctx, a.storeDir(), patterns, training.Watch{
		Progress: func(done, total int) { show(fmt.Sprintf("signed %d of %s", done, counted(int64(total), "run"))) },
		Skipped:  func(text string) { a.warn("%s", text) },
	})
}
