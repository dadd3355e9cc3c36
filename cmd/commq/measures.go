package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/commq/commq/compare"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
)

// measure measures runs, in their order. Names of runs must differ. A run without any row is an error, as it has nothing to compare.
func measure(ctx context.Context, runs []queries.Run, o queries.Options) (all []compare.Sample, err error) {
	if err := distinct(runs); err != nil {
		return nil, err
	}
	q, err := queries.Named([]string{"measures"})
	if err != nil {
		return nil, err
	}
	db, err := queries.Open(ctx, runs, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Ask(ctx, q[0], nil)
	if err != nil {
		return nil, err
	}
	values := map[string][]compare.Value{}
	for rows.Next() {
		r := rows.Row()
		v := compare.Value{Measure: r[1].(string), Item: r[2].(string), Value: r[3].(int64), Unit: r[4].(string), Exact: r[5].(bool)}
		if file, ok := r[6].(string); ok {
			v.File = file
		}
		if line, ok := r[7].(int32); ok {
			v.Line = line
		}
		run := r[0].(string)
		values[run] = append(values[run], v)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	for _, r := range runs {
		if len(values[r.Name]) == 0 {
			return nil, fmt.Errorf("run %q is empty: it has no row of any call or message; capture it again", r.Name)
		}
		all = append(all, compare.Sample{Run: r.Name, Ranks: r.Manifest.Ranks, Values: values[r.Name]})
	}
	return all, nil
}

// measureSimulated adds the time that each run would take on a machine.
func measureSimulated(ctx context.Context, a *app, runs []queries.Run, samples []compare.Sample, machine string) error {
	for i, r := range runs {
		o := simulateOptions{run: r.Dir, machine: machine}
		s, err := o.simulation(ctx, a)
		if err != nil {
			return err
		}
		result, err := s.simulate(ctx, s.machine)
		if err != nil {
			return fmt.Errorf("simulate %s on %s: %w", r.Name, s.machine.Name, err)
		}
		samples[i].Values = append(samples[i].Values, compare.Value{Measure: compare.Simulated, Value: inNs(result.Time), Unit: "ns"})
	}
	return nil
}

// incomplete says why the counts of a run are not those of the program; empty where they are.
func incomplete(m *schema.Manifest) string {
	switch {
	case m.Ended != "finalized":
		return fmt.Sprintf("was %s before MPI_Finalize; capture it again", m.Ended)
	case m.Counts.Dropped > 0:
		return fmt.Sprintf("misses %s that could not be recorded; capture it again with more space for the spool", counted(m.Counts.Dropped, "call"))
	case m.Counts.InProgress > 0:
		return fmt.Sprintf("has %s that never returned; capture it again", counted(m.Counts.InProgress, "call"))
	}
	return ""
}

// alike says how two runs were captured differently, so that their counts cannot be compared; empty where they can.
func alike(a, b queries.Run) string {
	switch m, n := a.Manifest, b.Manifest; {
	case m.Record != n.Record:
		return fmt.Sprintf("run %q was captured with --record %s and run %q with --record %s", a.Name, m.Record, b.Name, n.Record)
	case !slices.Equal(m.Filters, n.Filters):
		return fmt.Sprintf("run %q was captured with the filters %q and run %q with %q", a.Name, m.Filters, b.Name, n.Filters)
	}
	return ""
}
