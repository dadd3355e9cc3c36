package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/queries/plot"
	"github.com/commq/commq/writer"
)

// sweepOptions are the flags of commq simulate that simulate a run on many machines.
type sweepOptions struct {
	sweeps      []string // --sweep
	plot        string   // --plot
	within      float64  // --within
	referenceNs int64    // --reference-ns
	memory      int      // --memory-mib
}

// mostPoints is how many combinations a sweep may have.
const mostPoints = 1_000_000

func (o *sweepOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&o.sweeps, "sweep", nil, "simulate on a machine for each value of a key: `KEY=VALUES`, where values are A..B:log:N, A..B:lin:N or a list with commas; several times for all combinations")
	f.StringVar(&o.plot, "plot", "", "draw the sweep into a `FILE`.png, .svg or .pdf: lines over one key, a heat map over two; the rows are printed only with --format")
	f.Float64Var(&o.within, "within", 0, "instead of all rows, the least and greatest value of each key whose time is within this `FRACTION` of the reference's (0.1: 10 %)")
	f.Int64Var(&o.referenceNs, "reference-ns", 0, "time in `NS` that a sweep compares with (default: the predicted one on the machine as it is)")
	f.IntVar(&o.memory, "memory-mib", 1024, "memory in `MIB` for the rows of a run that a sweep keeps; of a larger run each simulation reads the rest by itself. Without --sweep: for calls that are read and not simulated yet, 4096 if it is not given; beyond it the simulation ends")
	completeFiles(c, "plot", plot.Formats()...)
	completeNothing(c, "within", "reference-ns", "memory-mib")
	register(c, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"latency_ns=", "bandwidth_bytes_per_s=", "buses=", "cpu_ratio=", "eager_threshold_bytes="}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}, "sweep")
}

// check looks at what can be seen without reading a run.
func (o *sweepOptions) check(c *cobra.Command) error {
	if o.memory < 1 {
		return fmt.Errorf("--memory-mib %d: want at least 1", o.memory)
	}
	if len(o.sweeps) == 0 {
		for _, name := range []string{"plot", "within", "reference-ns"} {
			if c.Flags().Changed(name) {
				return fmt.Errorf("--%s: it is for sweeps; name a key and its values with --sweep, for example --sweep latency_ns=1e3..1e5:log:20", name)
			}
		}
		return nil
	}
	for _, name := range []string{"save", "split", "critical-path"} {
		if f := c.Flags().Lookup(name); f != nil && f.Changed {
			return fmt.Errorf("--%s: it is for one simulation, and --sweep makes many", name)
		}
	}
	switch {
	case c.Flags().Changed("within") && (math.IsNaN(o.within) || o.within <= 0 || o.within >= 1):
		return fmt.Errorf("--within %g: want a fraction above 0 and below 1, for example 0.1", o.within)
	case o.referenceNs < 0 || c.Flags().Changed("reference-ns") && o.referenceNs == 0:
		return fmt.Errorf("--reference-ns %d: want a time above 0", o.referenceNs)
	case o.plot != "":
		return plot.Known(o.plot)
	}
	return nil
}

// sweepAxis is a key of the machine and the values that it takes.
type sweepAxis struct {
	key    string
	values []string  // as Machine.Set takes them
	number []float64 // NaN for a word
	log    bool
}

// sweepRange is A..B:log:N.
var sweepRange = regexp.MustCompile(`^([^.,:]+(?:\.[^.,:]+)?)\.\.([^,:]+):([a-z]+):([^,:]+)$`)

// parseSweep reads KEY=VALUES. Values that the machine takes only whole are rounded, and equal ones come once.
func parseSweep(m *models.Machine, text string) (*sweepAxis, error) {
	wrong := func(what string) error {
		return fmt.Errorf("--sweep %s: %s; want KEY=VALUES, for example latency_ns=1e3..1e5:log:20, buses=1..16:lin:16 or buses=1,2,4,unlimited", text, what)
	}
	key, values, ok := strings.Cut(text, "=")
	if !ok || values == "" {
		return nil, wrong("it has no values")
	}
	a := &sweepAxis{key: key}
	take := func(value string) error {
		scratch := *m
		if err := scratch.Set(key, value); err != nil {
			return err
		}
		if !slices.Contains(a.values, value) {
			x, err := strconv.ParseFloat(value, 64)
			if err != nil {
				x = math.NaN()
			}
			a.values, a.number = append(a.values, value), append(a.number, x)
		}
		return nil
	}
	r := sweepRange.FindStringSubmatch(values)
	if r == nil {
		if strings.ContainsAny(values, ":") || strings.Contains(values, "..") {
			return nil, wrong("its values are no range and no list")
		}
		for value := range strings.SplitSeq(values, ",") {
			if err := take(value); err != nil {
				return nil, fmt.Errorf("--sweep %s: %w", text, err)
			}
		}
		return a, nil
	}
	from, err1 := strconv.ParseFloat(r[1], 64)
	to, err2 := strconv.ParseFloat(r[2], 64)
	n, err3 := strconv.Atoi(r[4])
	a.log = r[3] == "log"
	switch {
	case err1 != nil || err2 != nil || !(from < to) || math.IsInf(from, 0) || math.IsInf(to, 0):
		return nil, wrong("its range is not from a number to a greater one")
	case !a.log && r[3] != "lin":
		return nil, wrong(fmt.Sprintf("%q is neither log nor lin", r[3]))
	case a.log && from <= 0:
		return nil, wrong("a logarithmic range begins above 0")
	case err3 != nil || n < 2 || n > mostPoints:
		return nil, wrong(fmt.Sprintf("%q is no number of values from 2 to %d", r[4], mostPoints))
	}
	for i := range n {
		x := steps(from, to, i, n, a.log)
		first := take(strconv.FormatFloat(x, 'f', -1, 64))
		if first == nil {
			continue
		}
		if err := take(strconv.FormatFloat(math.Round(x), 'f', -1, 64)); err != nil {
			return nil, fmt.Errorf("--sweep %s: %w", text, first)
		}
	}
	return a, nil
}

// steps is value i of n from one number to another, to as many digits as tell it from its neighbours a hundred times over.
func steps(from, to float64, i, n int, log bool) float64 {
	switch i {
	case 0:
		return from
	case n - 1:
		return to
	}
	f := float64(i) / float64(n-1)
	x, distance := from+(to-from)*f, (to-from)/float64(n-1)
	if log {
		x = from * math.Pow(to/from, f)
		distance = x * (1 - math.Pow(from/to, 1/float64(n-1)))
	}
	digits := math.Ceil(2 - math.Log10(distance))
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', max(0, int(digits)), 64), 64)
	if err != nil {
		return x
	}
	if digits < 0 {
		unit := math.Pow(10, -digits)
		rounded = math.Round(x/unit) * unit
	}
	return rounded
}

// sweep is what is simulated: all combinations, the last key's values changing fastest.
type sweep struct {
	axes     []*sweepAxis
	runs     []*sweptRun
	several  bool // runs
	machines []*models.Machine
}

// sweptRun is a run and the times it was predicted.
type sweptRun struct {
	*runSimulation
	reference int64   // ns
	predicted []int64 // ns, by combination; -1 where there is none
	errs      []error
}

// points is the number of combinations.
func (s *sweep) points() int {
	n := 1
	for _, a := range s.axes {
		if n *= len(a.values); n > mostPoints {
			return n
		}
	}
	return n
}

// at is where each key's value of combination i stands.
func (s *sweep) at(i int) []int {
	of := make([]int, len(s.axes))
	for k := len(s.axes) - 1; k >= 0; k-- {
		n := len(s.axes[k].values)
		of[k], i = i%n, i/n
	}
	return of
}

// values are the keys and values of combination i, for messages.
func (s *sweep) values(i int) string {
	var text []string
	for k, v := range s.at(i) {
		text = append(text, s.axes[k].key+"="+s.axes[k].values[v])
	}
	return strings.Join(text, " ")
}

// read parses the keys and makes the machines.
func (s *sweep) read(o *sweepOptions, m *models.Machine) error {
	for _, text := range o.sweeps {
		a, err := parseSweep(m, text)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(s.axes, func(b *sweepAxis) bool { return b.key == a.key }) {
			return fmt.Errorf("--sweep %s: %s is swept already", text, a.key)
		}
		s.axes = append(s.axes, a)
	}
	n := s.points()
	if n > mostPoints {
		return fmt.Errorf("--sweep: more than %d combinations; give fewer values", mostPoints)
	}
	for i := range n {
		p := *m
		for k, v := range s.at(i) {
			if err := p.Set(s.axes[k].key, s.axes[k].values[v]); err != nil {
				return fmt.Errorf("--sweep %s: %w", s.values(i), err)
			}
		}
		if err := p.Consistent(); err != nil {
			return fmt.Errorf("--sweep %s: %w; set the other one with --set", s.values(i), err)
		}
		s.machines = append(s.machines, &p)
	}
	return nil
}

// runSweep simulates runs on many machines.
func runSweep(ctx context.Context, a *app, c *cobra.Command, o *simulateOptions) error {
	s := &sweep{}
	if err := s.open(ctx, a, o); err != nil {
		return err
	}
	if err := o.sweep.checkPlot(s); err != nil {
		return err
	}
	show, clear := statusLine(a)
	progress := s.progress(show)
	for _, r := range s.runs {
		if err := s.simulate(ctx, r, &o.sweep, progress); err != nil {
			clear()
			return err
		}
	}
	clear()
	if err := s.show(a, c, o); err != nil {
		return err
	}
	return s.failed()
}

// open reads which runs and machines there are.
func (s *sweep) open(ctx context.Context, a *app, o *simulateOptions) error {
	var dirs []string
	for _, name := range o.runs {
		found, _, err := writer.FindAll(a.storeDir(), name)
		if err != nil {
			return err
		}
		dirs = append(dirs, found...)
	}
	s.several = len(dirs) > 1
	for _, dir := range dirs {
		if slices.ContainsFunc(s.runs, func(r *sweptRun) bool { return r.name == filepath.Base(dir) }) {
			return fmt.Errorf("two runs are called %q; each may be given once", filepath.Base(dir))
		}
		one := *o
		one.run = dir
		r, err := one.simulation(ctx, a)
		if err != nil {
			return err
		}
		site, lock := r.program.Callsite, new(sync.Mutex)
		r.program.Callsite = func(id int32) string {
			lock.Lock()
			defer lock.Unlock()
			return site(id)
		}
		s.runs = append(s.runs, &sweptRun{runSimulation: r})
	}
	if len(s.runs) == 0 {
		return errors.New("no run given; name one with --run")
	}
	return s.read(&o.sweep, s.runs[0].machine)
}

// progress says on a terminal how far it is.
func (s *sweep) progress(show func(string)) func() {
	var lock sync.Mutex
	var last time.Time
	done, began, all := 0, time.Now(), len(s.runs)*(len(s.machines)+1)
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
		show(fmt.Sprintf("sweep: %d%% of %s, %s left", 100*done/all, counted(int64(all), "simulation"), left.Round(time.Second)))
	}
}

// simulate simulates a run on all machines, on as many CPUs as there are. Its rows are read once, where they fit.
func (s *sweep) simulate(ctx context.Context, r *sweptRun, o *sweepOptions, progress func()) error {
	rows, err := keepRows(ctx, r.dir, int64(o.memory)<<20)
	if err != nil {
		return fmt.Errorf("simulate %s: %w", r.name, err)
	}
	one := func(m *models.Machine) (int64, error) {
		defer progress()
		options := r.options
		result, err := simulate.Simulate(m, r.program, &options, rows.source(ctx))
		if err != nil {
			return -1, err
		}
		return inNs(result.Time), nil
	}
	if r.reference = o.referenceNs; r.reference == 0 {
		if r.reference, err = one(r.machine); err != nil {
			return fmt.Errorf("simulate %s on %s, which the sweep compares with: %w; --reference-ns gives another time", r.name, r.machine.Name, err)
		}
	}
	r.predicted, r.errs = make([]int64, len(s.machines)), make([]error, len(s.machines))
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(s.machines)) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(s.machines)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				r.predicted[i], r.errs[i] = one(s.machines[i])
			}
		})
	}
	wait.Wait()
	return ctx.Err()
}

// failed is an error when some combinations could not be simulated: their rows have no time.
func (s *sweep) failed() error {
	n := 0
	var first error
	for _, r := range s.runs {
		for i, err := range r.errs {
			if err == nil {
				continue
			}
			if n++; first == nil {
				first = fmt.Errorf("%s, %s: %w", r.name, s.values(i), err)
			}
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d simulations have no time; the first: %w", n, len(s.runs)*len(s.machines), first)
}

// show prints or draws what was found.
func (s *sweep) show(a *app, c *cobra.Command, o *simulateOptions) error {
	rows := s.rows()
	if o.sweep.within != 0 {
		var err error
		if rows, err = s.ranges(o.sweep.within); err != nil {
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
	return output.Write(a.screen(), o.format, rows)
}

// column describes the column of a key.
func (a *sweepAxis) column() queries.Column {
	c := queries.Column{Name: a.key, Type: "BIGINT"}
	for _, x := range a.number {
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

// value is value i as a row of a column has it.
func (a *sweepAxis) value(i int, column queries.Column) any {
	switch column.Type {
	case "BIGINT":
		return int64(a.number[i])
	case "DOUBLE":
		return a.number[i]
	}
	return a.values[i]
}

// rows has one for each combination.
func (s *sweep) rows() queries.Rows {
	var columns []queries.Column
	if s.several {
		columns = append(columns, queries.Column{Name: "run", Type: "VARCHAR"})
	}
	keys := len(columns)
	for _, a := range s.axes {
		columns = append(columns, a.column())
	}
	columns = append(columns, queries.Column{Name: "predicted_ns", Type: "BIGINT", Unit: "ns"}, queries.Column{Name: "ratio", Type: "DOUBLE"})
	var rows [][]any
	for _, r := range s.runs {
		for i, ns := range r.predicted {
			var row []any
			if s.several {
				row = append(row, r.name)
			}
			for k, v := range s.at(i) {
				row = append(row, s.axes[k].value(v, columns[keys+k]))
			}
			if ns < 0 {
				row = append(row, nil, nil)
			} else {
				row = append(row, ns, any(r.ratio(i)))
			}
			rows = append(rows, row)
		}
	}
	return queries.RowsOf(columns, rows)
}

// ratio is the time of combination i over the reference's, to six decimals; nil where there is none.
func (r *sweptRun) ratio(i int) any {
	if r.predicted[i] < 0 || r.reference == 0 {
		return nil
	}
	return rounded6(float64(r.predicted[i]) / float64(r.reference))
}

// rounded6 is a number to six decimals.
func rounded6(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// near says whether the time of combination i is within a fraction of the reference's.
func (r *sweptRun) near(i int, within float64) bool {
	ratio, ok := r.ratio(i).(float64)
	return ok && math.Abs(ratio-1) <= within
}

// span is the least and the greatest value of a key among the combinations of a run that are near its reference, and how many
// these are.
func (s *sweep) span(r *sweptRun, key int, within float64) (least, most float64, n int) {
	least, most = math.Inf(1), math.Inf(-1)
	for i := range r.predicted {
		if r.near(i, within) {
			x := s.axes[key].number[s.at(i)[key]]
			least, most, n = min(least, x), max(most, x), n+1
		}
	}
	return least, most, n
}

// ranges has a row for each run and key: the paper's Figure 1.
func (s *sweep) ranges(within float64) (queries.Rows, error) {
	columns := []queries.Column{{Name: "run", Type: "VARCHAR"}, {Name: "parameter", Type: "VARCHAR"}, {Name: "least", Type: "DOUBLE"}, {Name: "greatest", Type: "DOUBLE"},
		{Name: "near", Type: "BIGINT"}, {Name: "combinations", Type: "BIGINT"}, {Name: "reference_ns", Type: "BIGINT", Unit: "ns"}}
	var rows [][]any
	for _, r := range s.runs {
		for k, a := range s.axes {
			if err := a.numeric(); err != nil {
				return nil, err
			}
			row := []any{r.name, a.key, nil, nil, int64(0), int64(len(s.machines)), r.reference}
			if least, most, n := s.span(r, k, within); n > 0 {
				row[2], row[3], row[4] = least, most, int64(n)
			}
			rows = append(rows, row)
		}
	}
	return queries.RowsOf(columns, rows), nil
}

// numeric is an error when a value is a word.
func (a *sweepAxis) numeric() error {
	for i, x := range a.number {
		if math.IsNaN(x) {
			return fmt.Errorf("--sweep %s: %q is no number, and has no place on an axis or in a range; leave it out, or --plot and --within", a.key, a.values[i])
		}
	}
	return nil
}
