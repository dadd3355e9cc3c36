package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/models/simulate/stored"
	"github.com/commq/commq/models/sweep"
	"github.com/commq/commq/queries"
)

// sweepOptions are the flags of commq simulate that simulate a run on many machines.
type sweepOptions struct {
	sweeps []string // --sweep
	pictureOptions
	within      float64 // --within
	referenceNs int64   // --reference-ns
	memory      int     // --memory
}

func (o *sweepOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&o.sweeps, "sweep", nil,
		"simulate a machine for each value of a key: `KEY=VALUES`, where VALUES are A..B:log:N, A..B:lin:N or a list "+
			"separated by commas; repeat it for all combinations of several keys")
	o.pictureFlags(c, "draw the sweep into a `FILE`.png, .svg or .pdf: lines over one key, a heat map "+
		"over two; the rows are printed only with --format")
	f.Float64Var(&o.within, "within", 0, "instead of all rows, the least and greatest value of each key whose time is "+
		"within this `FRACTION` of the reference's (0.1: 10 %)")
	f.Int64Var(&o.referenceNs, "reference-ns", 0,
		"time in `NS` that a sweep compares with (default: the predicted time "+
			"on the machine as it is)")
	f.IntVar(&o.memory, "memory", 1024, "memory in `MIB` for the rows of a run that a sweep keeps; each "+
		"simulation "+
		"reads what does not fit by itself. Without --sweep: memory for calls that are read and not simulated yet, "+
		"4096 by default; beyond it the simulation ends")
	completeNothing(c, "within", "reference-ns", "memory")
	register(c, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"latency_ns=", "bandwidth_bytes_per_s=", "buses=", "cpu_ratio=", "eager_threshold_bytes="},
			cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}, "sweep")
}

// check checks the flags as far as possible without a run.
func (o *sweepOptions) check(c *cobra.Command) error {
	if err := checkMemory(o.memory, 1); err != nil {
		return err
	}
	if len(o.sweeps) == 0 {
		for _, name := range []string{"plot", "within", "reference-ns"} {
			if c.Flags().Changed(name) {
				return fmt.Errorf("--%s: it is for sweeps; name a key and its values with --sweep, "+
					"for example --sweep latency_ns=1e3..1e5:log:20", name)
			}
		}
		return nil
	}
	for _, name := range []string{"name", "split", "critical-path"} {
		if f := c.Flags().Lookup(name); f != nil && f.Changed {
			return fmt.Errorf("--%s: it is for one simulation, and --sweep makes many", name)
		}
	}
	switch {
	case c.Flags().Changed("within") && (math.IsNaN(o.within) || o.within <= 0 || o.within >= 1):
		return fmt.Errorf("--within %g: want a fraction above 0 and below 1, for example 0.1", o.within)
	case o.referenceNs < 0 || c.Flags().Changed("reference-ns") && o.referenceNs == 0:
		return fmt.Errorf("--reference-ns %d: want a time above 0", o.referenceNs)
	}
	return o.checkPicture()
}

// sweepResult is a grid of machines and the times of some runs on them.
type sweepResult struct {
	grid *sweep.Grid
	runs []*sweep.Times
	note string // names the machine and its dialect
}

// runSweep simulates runs on many machines.
func runSweep(ctx context.Context, a *app, c *cobra.Command, o *simulateOptions) error {
	if len(o.runs) == 0 {
		return errNoRun
	}
	target, err := readTarget(a, o.target)
	if err != nil {
		return err
	}
	simulations, err := sweep.OpenAll(ctx, a.storeDir(), o.runs, target)
	if err != nil {
		return err
	}
	grid, err := sweep.NewGrid(target.Machine, o.sweep.sweeps)
	if err != nil {
		return err
	}
	noteChanges(a, grid, simulations, o.target.Set)
	if err := o.sweep.checkPlot(grid, len(simulations)); err != nil {
		return err
	}
	show, clear := statusLine(a)
	defer clear()
	s := &sweepResult{grid: grid, note: targetText(target)}
	options := sweep.Options{ReferenceNs: o.sweep.referenceNs, MemoryBytes: int64(o.sweep.memory) << 20,
		Progress: sweepProgress(len(simulations)*(len(grid.Machines)+1), show)}
	for _, simulation := range simulations {
		noteUntimed(a, simulation)
		warnOfThreads(a, simulation)
		times, err := sweep.Simulate(ctx, simulation, grid, options)
		if err != nil {
			return err
		}
		s.runs = append(s.runs, times)
	}
	clear()
	if err := s.show(a, c, o); err != nil {
		return err
	}
	return sweep.CheckAll(grid, s.runs)
}

// noteChanges notes what the swept keys take from the machine, and which of them and of set change nothing.
func noteChanges(a *app, grid *sweep.Grid, simulations []*stored.Simulation, set []string) {
	for _, key := range grid.LostPieces {
		noteLostPieces(a, "--sweep "+key)
	}
	var ranks []int32
	for _, s := range simulations {
		ranks = append(ranks, s.Run.Manifest.Ranks)
	}
	noteOneNode(a, "--set", set, ranks, grid.Machines...)
	noteOneNode(a, "--sweep", grid.Keys(), ranks, grid.Machines...)
}

// targetText names a machine, its dialect and its changes.
func targetText(t *simulate.Target) string {
	return strings.Join(append([]string{t.Machine.Name, "dialect " + t.Dialect.String()}, t.Changes...), ", ")
}

// sweepProgress shows on a terminal how many of all simulations are done. The result may be called concurrently.
func sweepProgress(all int, show func(string)) func() {
	var lock sync.Mutex
	var last time.Time
	done, began := 0, time.Now()
	return func() {
		lock.Lock()
		defer lock.Unlock()
		done++
		now := time.Now()
		if now.Sub(last) < progressEvery {
			return
		}
		last = now
		left := time.Duration(float64(now.Sub(began)) / float64(done) * float64(all-done))
		show(fmt.Sprintf("sweep: %d%% of %s, %s left", 100*done/all, counted(int64(all), "simulation"),
			left.Round(time.Second)))
	}
}

// show prints or draws the times.
func (s *sweepResult) show(a *app, c *cobra.Command, o *simulateOptions) error {
	rows := s.rows()
	if o.sweep.within != 0 {
		var err error
		if rows, err = s.spanRows(o.sweep.within); err != nil {
			return err
		}
	}
	if o.sweep.plot != "" {
		if err := s.draw(&o.sweep); err != nil {
			return err
		}
		if !c.Flags().Changed("format") {
			a.note("%s drawn", o.sweep.plot)
			return nil
		}
	}
	return a.writeRows(o.format, rows)
}

// axisColumn describes the column of an axis: of whole numbers, else of numbers, else of text.
func axisColumn(a *sweep.Axis) queries.Column {
	c := queries.Column{Name: a.Key, Type: "BIGINT", Unit: "1"}
	for _, x := range a.Numbers {
		switch {
		case math.IsNaN(x):
			c.Type = "VARCHAR"
			return c
		case x != math.Trunc(x) || math.Abs(x) >= 1<<53:
			c.Type = "DOUBLE"
		}
	}
	return c
}

// axisValue is value i of an axis, in the type of its column.
func axisValue(a *sweep.Axis, i int, column queries.Column) any {
	switch column.Type {
	case "BIGINT":
		return int64(a.Numbers[i])
	case "DOUBLE":
		return a.Numbers[i]
	}
	return a.Values[i]
}

// runColumn is the first column of an answer about several runs.
var runColumn = queries.Column{Name: "run", Type: "VARCHAR", Doc: "Name of the run."}

// sweepColumns follow the columns of the axes.
var sweepColumns = []queries.Column{{Name: "predicted_ns", Type: "BIGINT", Unit: "ns",
	Doc: "Predicted time; null if this combination cannot be simulated."},
	{Name: "ratio", Type: "DOUBLE", Unit: "1", Doc: "The same by the reference time; null without one."}}

// spanColumns are the columns of a sweep with --within.
var spanColumns = []queries.Column{runColumn,
	{Name: "parameter", Type: "VARCHAR", Doc: "Key of the machine that was swept."},
	{Name: "least", Type: "DOUBLE", Doc: "Least of its values with a predicted time near the reference; null if none " +
		"has."},
	{Name: "greatest", Type: "DOUBLE", Doc: "Greatest of these values."},
	{Name: "near", Type: "BIGINT", Unit: "1", Doc: "Number of combinations with a predicted time near the reference."},
	{Name: "combinations", Type: "BIGINT", Unit: "1", Doc: "Number of all combinations."},
	{Name: "reference_ns", Type: "BIGINT", Unit: "ns", Doc: "Time that the predicted ones are compared with."}}

// rows has a row for each run and combination. It includes the column run if there are several runs.
func (s *sweepResult) rows() queries.Rows {
	several := len(s.runs) > 1
	var columns []queries.Column
	if several {
		columns = append(columns, runColumn)
	}
	first := len(columns) // the first axis
	for _, a := range s.grid.Axes {
		columns = append(columns, axisColumn(a))
	}
	columns = append(columns, sweepColumns...)
	var rows [][]any
	for _, r := range s.runs {
		for i := range r.PredictedNs {
			var row []any
			if several {
				row = append(row, r.Run)
			}
			for k, v := range s.grid.Indexes(i) {
				row = append(row, axisValue(s.grid.Axes[k], v, columns[first+k]))
			}
			rows = append(rows, append(row, timeAndRatio(r, i)...))
		}
	}
	return queries.RowsOf(columns, rows)
}

// timeAndRatio returns the last two columns of combination i; null if it has no time.
func timeAndRatio(r *sweep.Times, i int) []any {
	switch ratio, ok := r.Ratio(i); {
	case r.PredictedNs[i] < 0:
		return []any{nil, nil}
	case !ok:
		return []any{r.PredictedNs[i], nil}
	default:
		return []any{r.PredictedNs[i], ratio}
	}
}

// spanRows has a row for each run and axis, like Figure 1 of Girona, Labarta and Badia.
func (s *sweepResult) spanRows(within float64) (queries.Rows, error) {
	var rows [][]any
	for _, r := range s.runs {
		for k, a := range s.grid.Axes {
			if err := a.CheckNumeric(); err != nil {
				return nil, err
			}
			row := []any{r.Run, a.Key, nil, nil, int64(0), int64(len(s.grid.Machines)), r.ReferenceNs}
			if span := s.grid.FindSpan(r, k, within); span.Combinations > 0 {
				row[2], row[3], row[4] = span.Least, span.Greatest, int64(span.Combinations)
			}
			rows = append(rows, row)
		}
	}
	return queries.RowsOf(spanColumns, rows), nil
}
