package main

import (
	"context"
	"fmt"

	"github.com/commq/commq/compare"
	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/predict/regress"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
)

// comparedRuns returns runs as package compare has them.
func comparedRuns(runs []queries.Run) (list []compare.Run) {
	for _, r := range runs {
		list = append(list, compare.Run(r))
	}
	return list
}

// engineRuns returns runs as package queries has them.
func engineRuns(runs []compare.Run) (list []queries.Run) {
	for _, r := range runs {
		list = append(list, queries.Run(r))
	}
	return list
}

// distinct rejects two runs of one name.
func distinct(runs []queries.Run) error { return compare.CheckDistinct(comparedRuns(runs)) }

// askWith asks queries about runs with an engine of these options.
func askWith(o queries.Options) compare.AskRuns {
	return func(ctx context.Context, runs []compare.Run, query string, args map[string]string,
		each func(rows.Row) error) error {
		return withEngine(ctx, engineRuns(runs), o, func(ask rows.Ask) error { return ask(ctx, query, args, each) })
	}
}

// findToMeasure finds the runs to measure, with --memory of so many MiB.
func findToMeasure(ctx context.Context, a *app, names []string, memoryMiB int) ([]queries.Run, error) {
	if err := checkMemory(memoryMiB, leastMemory); err != nil {
		return nil, err
	}
	runs, err := runsToMeasure(ctx, a, names, "")
	if err == nil {
		noteUnmeasured(a, runs)
	}
	return runs, err
}

// runsToMeasure finds runs in a folder, or with Trino on the server.
func runsToMeasure(ctx context.Context, a *app, names []string, trino string) ([]queries.Run, error) {
	if trino == "" {
		return findRuns(a, names)
	}
	return askedRuns(ctx, a, trino, names)
}

// noteUnmeasured prints what measures of the runs leave out because the runs do.
func noteUnmeasured(a *app, runs []queries.Run) {
	if q, err := queries.Named([]string{"measures"}); err == nil {
		noteLacking(a, runs, func(m *schema.Manifest) schema.Reads { return q[0].Reads(m, nil) })
	}
}

// simulateOn simulates runs on a machine; nil if none is named.
func simulateOn(a *app, machine string) func(context.Context, compare.Run) (int64, error) {
	if machine == "" {
		return nil
	}
	return func(ctx context.Context, r compare.Run) (ns int64, err error) {
		s, err := openSimulation(ctx, a, r.Dir, simulate.TargetOptions{Machine: machine})
		if err != nil {
			return 0, err
		}
		return s.Nanoseconds(ctx)
	}
}

// exactLaw finds the exact law that values follow over the number of ranks; nil if there is none.
func exactLaw(byRanks map[int64]float64) (*compare.Law, error) {
	law, err := regress.FitExact(byRanks)
	if law == nil {
		return nil, err
	}
	return &compare.Law{Equation: law.Formula, At: law.ValueAt}, nil
}

// leastMemory is the least --memory with which the engine starts.
const leastMemory = 64

// mostMemory is the most MiB of --memory: more than any machine has, and a number of bytes.
const mostMemory = 1 << 40

// checkMemory checks the value of --memory in MiB.
func checkMemory(mib, least int) error {
	switch {
	case mib < least:
		return fmt.Errorf("--memory %d: want at least %d", mib, least)
	case mib > mostMemory:
		return fmt.Errorf("--memory %d: want at most %d", mib, mostMemory)
	}
	return nil
}
