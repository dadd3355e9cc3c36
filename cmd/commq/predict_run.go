package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/predict/extrapolated"
	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/schema"
)

// conditionFlags adds the flags that set the conditions for an answer.
func conditionFlags(c *cobra.Command, to *extrapolated.Conditions) {
	c.Flags().Float64Var(&to.Explained, "explained", 0.95,
		"least fraction of the messages whose destinations must have a law, 0 to 1")
	c.Flags().StringSliceVar(&to.Accept, "accept", nil, "answer in spite of a `WARNING` that would refuse the answer: "+
		strings.Join(extrapolated.Acceptable, ", "))
	completeNothing(c, "explained")
	complete(c, "accept", extrapolated.Acceptable...)
}

func checkConditions(c *extrapolated.Conditions) error {
	if !(c.Explained >= 0 && c.Explained <= 1) {
		return fmt.Errorf("--explained %v: want a fraction from 0 to 1", c.Explained)
	}
	for _, name := range c.Accept {
		if err := oneOf("accept", name, extrapolated.Acceptable...); err != nil {
			return err
		}
	}
	return nil
}

// saveExtrapolation writes the run under a name into the store.
func saveExtrapolation(ctx context.Context, a *app, m *model.Model, x *generate.Prediction,
	name string) (*schema.Manifest, error) {
	return extrapolated.Save(ctx, m, x, extrapolated.Target{Store: a.storeDir(), Name: name, Replace: a.replace,
		Commq:    version,
		Progress: func(stage string) (func(done, total int64), func()) { return newProgress(a, stage, "calls") }})
}

// extrapolate predicts the run at a number of ranks and shows progress. See extrapolated.Extrapolate.
func extrapolate(ctx context.Context, a *app, m *model.Model, ranks int32,
	conditions extrapolated.Conditions) (*generate.Prediction, error) {
	show, clear := statusLine(a)
	defer clear()
	return extrapolated.Extrapolate(ctx, m, ranks, conditions, func(done, all int32) {
		if done%256 == 0 || done == all {
			show(fmt.Sprintf("extrapolating: %s of %s", grouped(int64(done)), counted(int64(all), "rank")))
		}
	})
}

// textOf returns what describes a communication of a model for people.
func textOf(m *model.Model) func(communication string) string {
	return func(communication string) string { return model.TextOf(m, communication) }
}

// printLaws prints a law per line; textOf describes its communication.
func printLaws(w io.Writer, laws []model.PrintedLaw, textOf func(string) string) error {
	for _, l := range laws {
		forms := ""
		if l.Forms > 1 {
			forms = fmt.Sprintf(" (%d laws)", l.Forms)
		}
		if _, err := fmt.Fprintf(w, "%s: %s%s\n", textOf(l.Communication), l.Law, forms); err != nil {
			return err
		}
	}
	return nil
}

// printUnexplained prints the communications without a law, a line for each reason. Their slots are not told apart.
func printUnexplained(b *strings.Builder, all []report.Unexplained, textOf func(string) string) {
	for _, u := range all {
		var names []string
		for _, slot := range u.Slots {
			if name := textOf(slot); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		fmt.Fprintf(b, "not explained: %s: %s\n", firstNames(names), u.Why)
	}
}
