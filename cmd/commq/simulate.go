package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

type simulateOptions struct {
	runs    []string // --run
	run     string   // the one of them, where it is one
	machine string   // --machine
	dialect string   // --dialect
	set     []string // --set
	mapping string   // --mapping
	format  string   // --format
	split   bool     // --split
	save    string   // --save
	path    bool     // --critical-path
	sweep   sweepOptions
	memory  int // --memory-mib, without a sweep; 0 is no bound
	long    longOptions
}

// simulateMemoryMiB is how much memory, in MiB, calls that are read and not simulated yet may take if nothing else is said.
const simulateMemoryMiB = 4096

func newSimulateCommand(a *app) *cobra.Command {
	var o simulateOptions
	c := &cobra.Command{
		Use:   "simulate",
		Short: "What a run would take on another machine",
		Long: `simulate replays the calls of a run on a machine that is described: what ranks compute takes as long as it did, divided by the
machine's cpu_ratio, and what they communicate as long as its network needs, with what waits for links, buses, CPUs and receivers.
The machine is a YAML file (docs/method/time-model.md), one of those that commq knows by name, or a configuration of Dimemas. A
dialect says how messages and collectives behave: paper (Girona, Labarta and Badia, equations 1 to 4), or dimemas5, which does what
Dimemas 5.5.0 does; docs/method/simulator.md has both.

The answer has the predicted time and what ranks spend it on, and splits the program's efficiency: load balance (mean over largest
computing time), serialisation (largest computing time over the time on an ideal network), transfer (that over the predicted time).
A program that cannot go on, collectives that do not match and messages without a partner are errors.

With --sweep it simulates on many machines, as many at once as there are CPUs, and answers with a row for each, or a picture; see
docs/method/time-model.md. --critical-path says which calls the predicted time is made of.`,
		Example: `  commq simulate --run bt.C.64 --machine myrinet
  commq simulate --run bt.C.64 --machine cluster.yaml --set latency_ns=1500
  commq simulate --run lu.A.16 --machine m.cfg --dialect dimemas5 --format json
  commq simulate --run bt.C.64 --machine myrinet --save bt.C.64.myrinet
  commq simulate --run mg.W.16 --machine flat --sweep latency_ns=1e3..1e5:log:20
  commq simulate --run mg.W.16 --machine flat --sweep buses=1,2,4 --plot b.png
  commq simulate --run mg.W.16 --machine flat --critical-path
  commq simulate --run bt.C.64 --machine flat --checkpoint $HOME/bt.kept`,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf("format", o.format, runsFormats[:]...); err != nil {
				return err
			}
			if err := errors.Join(o.sweep.check(c), o.long.check(c)); err != nil {
				return err
			}
			if len(o.sweep.sweeps) > 0 && o.long.checkpoint != "" {
				return errors.New("--checkpoint: a sweep keeps none; simulate one machine at a time")
			}
			if len(o.sweep.sweeps) > 0 {
				return runSweep(c.Context(), a, c, &o)
			}
			if o.memory = simulateMemoryMiB; c.Flags().Changed("memory-mib") {
				o.memory = o.sweep.memory
			}
			return runSimulate(c.Context(), a, &o)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&o.runs, "run", nil, "`RUN` to simulate: a name in the store, or a path; a sweep takes several, and patterns ('cg.A.*')")
	f.StringVar(&o.machine, "machine", "", "machine to run it on: a YAML file, a configuration of Dimemas, or one of "+strings.Join(models.Names(), ", "))
	f.StringVar(&o.dialect, "dialect", "", "how messages and collectives behave: "+strings.Join(simulate.Dialects, ", ")+" (default: dimemas5 for a configuration of Dimemas, else paper)")
	f.StringArrayVar(&o.set, "set", nil, "change a `KEY=VALUE` of the machine: latency_ns, intra_node.buses, cpu_ratio, eager_threshold_bytes...; several times for several")
	f.StringVar(&o.mapping, "mapping", "", "node of each rank: block, cyclic, or a file with a node's number per line, rank by rank (default: the machine's)")
	f.StringVar(&o.save, "save", "", "also write the run with the times it gets, under this `NAME`")
	f.BoolVar(&o.split, "split", true, "also simulate an ideal network, which the split of the efficiency needs")
	f.BoolVar(&o.path, "critical-path", false, "also simulate once more for the critical path, by call site (docs/method/critical-path.md); with --format csv its rows are all that is printed")
	formatFlag(c, &o.format)
	o.sweep.flags(c)
	o.long.flags(c)
	register(c, completeRuns(a), "run")
	register(c, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return models.Names(), cobra.ShellCompDirectiveDefault
	}, "machine")
	complete(c, "dialect", simulate.Dialects...)
	completeFiles(c, "mapping")
	completeNothing(c, "set", "save")
	return c
}

// simulation is a run that is simulated, and the machine.
type runSimulation struct {
	dir      string
	name     string
	manifest *schema.Manifest
	machine  *models.Machine
	program  *simulate.Program
	options  simulate.Options
	changed  []string // on the machine
	kept     *keptSimulation
	read     func(rows int) // is told of rows that were read; nil: nobody is
}

func runSimulate(ctx context.Context, a *app, o *simulateOptions) (err error) {
	s, err := o.simulation(ctx, a)
	if err != nil {
		return err
	}
	if s.kept, err = newKeptSimulation(a, &o.long, s, writer.Fact{Name: "name to save it under", Value: o.save}, writer.Fact{Name: "split", Value: strconv.FormatBool(o.split)}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.kept.end(err)) }()
	parts := int64(1)
	if o.split {
		parts++
	}
	var finish func()
	s.read, finish = countProgress(a, "simulate "+s.name, "calls", parts*s.manifest.Counts.Calls)
	defer finish()
	r, v, err := s.run(ctx, a, o.save)
	if err != nil {
		return fmt.Errorf("simulate %s on %s: %w", s.name, s.machine.Name, err)
	}
	defer func() { err = errors.Join(err, v.end()) }()
	p := s.prediction(r)
	if o.split {
		ideal, err := s.kept.simulate(ctx, s, s.machine.Ideal(), onIdeal)
		if err != nil {
			return fmt.Errorf("simulate %s on an ideal network: %w; --split=false leaves this out", s.name, err)
		}
		p.split(r, ideal)
	}
	var path *pathOf
	if o.path {
		finish()
		if path, err = s.criticalPath(ctx); err != nil {
			return fmt.Errorf("critical path of %s on %s: %w", s.name, s.machine.Name, err)
		}
	}
	if err := v.commit(ctx); err != nil {
		return fmt.Errorf("simulate %s on %s: %w", s.name, s.machine.Name, err)
	}
	finish()
	switch {
	case o.format == "json":
		p.CriticalPath = path.json()
		return printJSON(a.stdout, p)
	case o.format == "csv" && path != nil:
		return output.Write(a.stdout, "csv", path.rows(sitesAndCalls))
	case o.format == "csv":
		return p.csv(a.stdout)
	}
	if err := p.table(a.stdout); err != nil || path == nil {
		return err
	}
	return path.table(a.stdout, s.name)
}

// run simulates, and keeps the rows' times for a run where that is to have a name.
func (s *runSimulation) run(ctx context.Context, a *app, name string) (*simulate.Result, *saving, error) {
	if name == "" {
		r, err := s.kept.simulate(ctx, s, s.machine, onMachine)
		return r, nil, err
	}
	return s.save(ctx, a.storeDir(), name)
}

// simulation reads what is to be simulated.
func (o *simulateOptions) simulation(ctx context.Context, a *app) (*runSimulation, error) {
	if o.run == "" {
		switch len(o.runs) {
		case 0:
			return nil, errors.New("no run given; name one with --run")
		case 1:
			o.run = o.runs[0]
		default:
			return nil, fmt.Errorf("%d runs given; simulate one at a time, or --sweep them", len(o.runs))
		}
	}
	if o.machine == "" {
		return nil, fmt.Errorf("no machine given; name one with --machine: a YAML file, a configuration of Dimemas, or one of %s", strings.Join(models.Names(), ", "))
	}
	dir, err := writer.Find(a.storeDir(), o.run)
	if err != nil {
		return nil, err
	}
	s := &runSimulation{dir: dir, name: filepath.Base(dir), options: simulate.Options{MemoryBytes: int64(o.memory) << 20}}
	if s.manifest, err = writer.ReadManifest(dir); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := o.readMachine(s); err != nil {
		return nil, err
	}
	return s, s.readProgram(ctx)
}

// check says what a run lacks for a simulation.
func (s *runSimulation) check() error {
	m := s.manifest
	switch {
	case m.Record != "all":
		return fmt.Errorf("simulate: run %q does not have the rows of all calls (record %s); capture it again with --record all", s.name, m.Record)
	case len(m.Filters) > 0:
		return fmt.Errorf("simulate: run %q does not have the rows of all calls (%s); capture it again without filters", s.name, strings.Join(m.Filters, ", "))
	case m.ComputeClock == "none":
		return fmt.Errorf("simulate: run %q was captured without compute times; capture it again with --clock cpu", s.name)
	case m.Counts.Dropped > 0:
		return fmt.Errorf("simulate: run %q misses %s that could not be recorded; capture it again with more space for the spool", s.name, counted(m.Counts.Dropped, "call"))
	}
	return nil
}

// readMachine reads the machine and what is to be changed on it.
func (o *simulateOptions) readMachine(s *runSimulation) error {
	m, err := readMachine(o.machine)
	if err != nil {
		return err
	}
	for _, kv := range o.set {
		key, value, ok := strings.Cut(kv, "=")
		if !ok {
			return fmt.Errorf("--set %s: want KEY=VALUE, for example latency_ns=1500", kv)
		}
		if err := m.Set(key, value); err != nil {
			return fmt.Errorf("--set %s: %w", kv, err)
		}
	}
	if err := m.Consistent(); err != nil {
		return fmt.Errorf("machine %s: %w", m.Name, err)
	}
	s.machine, s.changed = m, o.set
	if o.mapping != "" {
		s.changed = append(s.changed[:len(s.changed):len(s.changed)], "mapping="+o.mapping)
	}
	switch o.dialect {
	case "":
		if models.IsCFG([]byte(m.Description)) {
			s.options.Dialect = simulate.Dimemas5
		}
	default:
		if err := oneOf("dialect", o.dialect, simulate.Dialects...); err != nil {
			return err
		}
		if o.dialect == simulate.Dimemas5.String() {
			s.options.Dialect = simulate.Dimemas5
		}
	}
	return o.readMapping(m)
}

// readMapping changes which rank is where.
func (o *simulateOptions) readMapping(m *models.Machine) error {
	switch o.mapping {
	case "":
		return nil
	case "block":
		m.Mapping = models.Block
		return nil
	case "cyclic":
		if m.Nodes == 0 {
			return errors.New("--mapping cyclic: the machine has any number of nodes; say how many with --set nodes=N")
		}
		m.Mapping = models.RoundRobin
		return nil
	}
	f, err := os.Open(o.mapping)
	if err != nil {
		return fmt.Errorf("--mapping: %w; want block, cyclic or a file", err)
	}
	defer f.Close()
	m.Mapping, m.NodeOf = models.Listed, nil
	in := bufio.NewScanner(f)
	for line := 1; in.Scan(); line++ {
		text, _, _ := strings.Cut(in.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		node, err := strconv.Atoi(text)
		if err != nil || node < 0 {
			return fmt.Errorf("--mapping %s:%d: %q is no number of a node; want one from 0, for one rank in each line", o.mapping, line, text)
		}
		m.NodeOf = append(m.NodeOf, node)
	}
	return in.Err()
}

// smallRows is how many rows of a small table are read at once.
const smallRows = 4096

// readProgram reads who runs, and in which communicators.
func (s *runSimulation) readProgram(ctx context.Context) error {
	p := &simulate.Program{Callsite: s.callsite(ctx)}
	err := writer.ReadTable(ctx, s.dir, &schema.RanksTable, smallRows, func(b schema.Batch) error {
		p.Threads = append(p.Threads, b.(*schema.RankInfos).Threads...)
		return nil
	})
	if err != nil {
		return err
	}
	s.program = p
	comms, err := tableRows[schema.Comm](ctx, s.dir, &schema.CommsTable)
	p.Comms = simulatedComms(comms)
	return err
}

// simulatedComms are the communicators of the table comms as a simulation has them.
func simulatedComms(rows []schema.Comm) (comms []simulate.Comm) {
	for i := range rows {
		row := &rows[i]
		if n := len(comms); n == 0 || comms[n-1].ID != row.Comm {
			comms = append(comms, simulate.Comm{ID: row.Comm})
		}
		c := &comms[len(comms)-1]
		c.Inter = c.Inter || row.Remote != 0
		if row.WorldRank != schema.NullInt32 {
			c.Members = append(c.Members, row.WorldRank)
		}
	}
	return comms
}

// callsite finds a call site in words, and reads the table when it is asked the first time.
func (s *runSimulation) callsite(ctx context.Context) func(int32) string {
	var words []string
	return func(id int32) string {
		if words == nil {
			words = []string{}
			_ = writer.ReadTable(ctx, s.dir, &schema.CallsitesTable, smallRows, func(b schema.Batch) error { // an error just has fewer words
				t := b.(*schema.Callsites)
				for i := range t.ID {
					words = append(words, siteText(t, i))
				}
				return nil
			})
		}
		if id < 0 || int(id) >= len(words) {
			return ""
		}
		return words[id]
	}
}

// siteText is a call site in words: its line, else its function, else its module and offset.
func siteText(t *schema.Callsites, i int) string {
	switch {
	case t.File[i] != schema.NullText && t.Line[i] != schema.NullInt32:
		return fmt.Sprintf("%s:%d", t.File[i], t.Line[i])
	case t.Function[i] != schema.NullText:
		return t.Function[i]
	case t.Module[i] != schema.NullText:
		return fmt.Sprintf("%s+%#x", t.Module[i], t.Offset[i])
	}
	return ""
}

// eventRows is how many rows of events are read at once.
const eventRows = 1 << 13

// simulate runs the program on a machine.
func (s *runSimulation) simulate(ctx context.Context, m *models.Machine) (*simulate.Result, error) {
	rows, err := s.rows()
	if err != nil {
		return nil, err
	}
	return simulate.Simulate(m, s.program, &s.options, s.source(ctx, rows))
}

// prediction is the answer of commq simulate.
type prediction struct {
	Run         string `json:"run"`
	Machine     string `json:"machine"`
	Dialect     string `json:"dialect"`
	Nodes       int    `json:"nodes"`
	PredictedNs int64  `json:"predicted_ns"`
	// ParallelEfficiency is the product of the other three.
	ParallelEfficiency *float64 `json:"parallel_efficiency,omitempty"`
	LoadBalance        *float64 `json:"load_balance,omitempty"`
	Serialisation      *float64 `json:"serialisation,omitempty"`
	Transfer           *float64 `json:"transfer,omitempty"`
	IdealNs            *int64   `json:"ideal_ns,omitempty"`

	Messages                int64 `json:"messages"`
	MessageBytes            int64 `json:"message_bytes"`
	Collectives             int64 `json:"collectives"`
	CollectiveBytes         int64 `json:"collective_bytes"`
	FallbackCollectives     int64 `json:"fallback_collectives"`
	FallbackCollectiveBytes int64 `json:"fallback_collective_bytes"`

	FinishNs []int64         `json:"finish_ns"`
	Ranks    []predictedRank `json:"ranks"`

	// CriticalPath is there with --critical-path.
	CriticalPath []map[string]any `json:"critical_path,omitempty"`
}

// predictedRank is what a rank spends its time on.
type predictedRank struct {
	Rank           int   `json:"rank"`
	FinishNs       int64 `json:"finish_ns"`
	ComputeNs      int64 `json:"compute_ns"`
	PointToPointNs int64 `json:"point_to_point_ns"`
	CollectiveNs   int64 `json:"collective_ns"`
	WaitingNs      int64 `json:"waiting_ns"`
	CPUWaitNs      int64 `json:"cpu_wait_ns"`
}

// inNs is a time in whole nanoseconds, half up.
func inNs(p models.Picoseconds) int64 { return int64((p + 500) / 1000) }

func (s *runSimulation) prediction(r *simulate.Result) *prediction {
	p := &prediction{Run: s.name, Machine: s.machine.Name, Dialect: s.options.Dialect.String(), Nodes: r.Nodes, PredictedNs: inNs(r.Time),
		Messages: r.Messages, MessageBytes: r.Bytes, Collectives: r.Collectives, CollectiveBytes: r.CollectiveBytes,
		FallbackCollectives: r.FallbackCollectives, FallbackCollectiveBytes: r.FallbackCollectiveBytes}
	for rank, t := range r.Ranks {
		p.FinishNs = append(p.FinishNs, inNs(t.Finish))
		p.Ranks = append(p.Ranks, predictedRank{rank, inNs(t.Finish), inNs(t.Compute), inNs(t.PointToPoint), inNs(t.Collective), inNs(t.Waiting), inNs(t.CPUWait)})
	}
	return p
}

// split tells what the efficiency is lost to, given the same program on an ideal network. A program that takes no time has none.
func (p *prediction) split(r, ideal *simulate.Result) {
	var sum, most models.Picoseconds
	for _, t := range r.Ranks {
		sum += t.Compute
		most = max(most, t.Compute)
	}
	if most == 0 || ideal.Time == 0 || r.Time == 0 {
		return
	}
	ratio := func(a, b float64) *float64 { x := a / b; return &x }
	mean := float64(sum) / float64(len(r.Ranks))
	p.LoadBalance = ratio(mean, float64(most))
	p.Serialisation = ratio(float64(most), float64(ideal.Time))
	p.Transfer = ratio(float64(ideal.Time), float64(r.Time))
	p.ParallelEfficiency = ratio(mean, float64(r.Time))
	ns := inNs(ideal.Time)
	p.IdealNs = &ns
}

func (p *prediction) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"rank", "finish_ns", "compute_ns", "point_to_point_ns", "collective_ns", "waiting_ns", "cpu_wait_ns"}}
	for _, r := range p.Ranks {
		row := []string{strconv.Itoa(r.Rank)}
		for _, x := range []int64{r.FinishNs, r.ComputeNs, r.PointToPointNs, r.CollectiveNs, r.WaitingNs, r.CPUWaitNs} {
			row = append(row, strconv.FormatInt(x, 10))
		}
		rows = append(rows, row)
	}
	return out.WriteAll(rows)
}

// mostRanks is how many ranks the table for people lists one by one.
const mostRanks = 16

// table prints the answer for people.
func (p *prediction) table(w io.Writer) error {
	fmt.Fprintf(w, "%s on %s, dialect %s: predicted time %s s\n", p.Run, p.Machine, p.Dialect, seconds(p.PredictedNs))
	if p.ParallelEfficiency != nil {
		fmt.Fprintf(w, "parallel efficiency %.3f = load balance %.3f x serialisation %.3f x transfer %.3f (ideal network: %s s)\n",
			*p.ParallelEfficiency, *p.LoadBalance, *p.Serialisation, *p.Transfer, seconds(*p.IdealNs))
	}
	fmt.Fprintf(w, "%s of %s bytes, %s of %s bytes", counted(p.Messages, "message"), grouped(p.MessageBytes), counted(p.Collectives, "collective"), grouped(p.CollectiveBytes))
	if p.FallbackCollectives > 0 {
		fmt.Fprintf(w, ", of which %s of %s bytes by a fallback", grouped(p.FallbackCollectives), grouped(p.FallbackCollectiveBytes))
	}
	fmt.Fprint(w, "\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "rank\tfinish s\tcompute s\tpoint-to-point s\tcollective s\twaiting s\tfor a CPU s\t")
	for _, r := range p.listed() {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Rank, seconds(r.FinishNs), seconds(r.ComputeNs), seconds(r.PointToPointNs), seconds(r.CollectiveNs), seconds(r.WaitingNs), seconds(r.CPUWaitNs))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(p.Ranks) > mostRanks {
		fmt.Fprintf(w, "the first %d of %d ranks; --format csv has all\n", mostRanks, len(p.Ranks))
	}
	return nil
}

func (p *prediction) listed() []predictedRank { return p.Ranks[:min(mostRanks, len(p.Ranks))] }

// seconds is a time in seconds, to the nanosecond.
func seconds(ns int64) string { return fmt.Sprintf("%d.%09d", ns/1_000_000_000, ns%1_000_000_000) }
