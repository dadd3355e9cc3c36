package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/models"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/models/simulate/stored"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/run"
)

// simulateOptions are the flags of commq simulate.
type simulateOptions struct {
	runs   []string // --run
	target simulate.TargetOptions
	format string // --format
	split  bool   // --split
	name   string // --name
	path   bool   // --critical-path
	sweep  sweepOptions
	memory int // --memory
	long   longOptions
}

// simulateMemoryMiB limits, unless the user says otherwise, the memory of calls that are read and not simulated yet.
const simulateMemoryMiB = 4096

func newSimulateCommand(a *app) *cobra.Command {
	var o simulateOptions
	c := &cobra.Command{
		Use:   "simulate RUN",
		Short: "Predict how long a run takes on another machine",
		Long: `simulate replays the calls of a run on a described machine. Computing takes as long as it did, divided by
the machine's cpu_ratio. Communicating takes as long as the machine's network needs, with all waiting for links, buses,
CPUs and receivers. The machine is a YAML file (docs/reference/machines.md), a machine that commq knows by name, or a
configuration of Dimemas. A dialect sets how messages and collectives behave: paper (Girona, Labarta and Badia,
equations 1 to 4), or dimemas5, which does what Dimemas 5.5.0 does; docs/method/simulator.md describes both. On a
machine of GPUs (dgx-h100) collectives take what NCCL estimates for the algorithm that it chooses; docs/method/nccl.md.

The answer has the predicted time and how ranks spend it, and splits the program's efficiency: load balance (mean over
largest computing time), serialisation (largest computing time over the time on an ideal network) and transfer (the time
on an ideal network over the predicted time). A program that cannot go on, collectives that do not match and messages
without a partner are errors.

With --sweep it simulates many machines, as many at once as there are CPUs, and answers with a row for each or with a
picture; see docs/method/time-model.md. --critical-path shows which calls the predicted time consists of.`,
		Example: `  commq simulate bt.C.64 --machine myrinet
  commq simulate --run bt.C.64 --machine cluster.yaml --set latency_ns=1500
  commq simulate --run lu.A.16 --machine m.cfg --dialect dimemas5 --format json
  commq simulate --run bt.C.64 --machine myrinet --name bt.C.64.myrinet
  commq simulate --run mg.W.16 --machine flat --sweep latency_ns=1e3..1e5:log:20
  commq simulate --run mg.W.16 --machine flat --sweep buses=1,2,4 --plot b.png
  commq simulate --run mg.W.16 --machine flat --critical-path
  commq simulate gpt.8 --machine dgx-h100 --set collectives.all=nccl-tree
  commq simulate --run bt.C.64 --machine flat --checkpoint $HOME/bt.kept`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf("format", o.format, runsFormats[:]...); err != nil {
				return err
			}
			if err := errors.Join(o.sweep.check(c), o.long.check(c)); err != nil {
				return err
			}
			if len(o.sweep.sweeps) > 0 && o.long.checkpoint != "" {
				return errors.New("--checkpoint: a sweep has no checkpoints; simulate one machine at a time")
			}
			if len(o.sweep.sweeps) > 0 {
				return runSweep(c.Context(), a, c, &o)
			}
			if o.memory = simulateMemoryMiB; c.Flags().Changed("memory") {
				o.memory = o.sweep.memory
			}
			return runSimulate(c.Context(), a, &o)
		},
	}
	o.flags(c)
	a.writes(c)
	a.exactFlag(c)
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	return c
}

func (o *simulateOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&o.runs, "run", nil, "`RUN` to simulate: a name in the store, or a path; "+
		"a sweep takes several, and patterns ('cg.A.*')")
	f.StringVar(&o.target.Machine, "machine", "", "`FILE` of the machine to run it on: "+machineKinds())
	f.StringVar(&o.target.Dialect, "dialect", "", "how messages and collectives behave: "+dialectKinds)
	f.StringArrayVar(&o.target.Set, "set", nil, "change a `KEY=VALUE` of the machine: latency_ns, "+
		"intra_node.buses, cpu_ratio, eager_threshold_bytes...; may be repeated")
	f.StringVar(&o.target.Mapping, "mapping", "",
		"node of each rank: block, cyclic, or a file with the number of a node "+
			"per line, rank by rank (default: the machine's)")
	f.StringVar(&o.name, "name", "", "also write the run with its new times, under this `NAME`")
	f.BoolVar(&o.split, "split", true, "also simulate an ideal network, which splitting the efficiency needs")
	f.BoolVar(&o.path, "critical-path", false, "also find the critical path by call site, in one more simulation "+
		"(docs/method/critical-path.md); with --format csv only its rows are printed")
	formatFlag(c, &o.format)
	o.sweep.flags(c)
	o.long.flags(c)
	registerMachines(c)
	complete(c, "dialect", simulate.Dialects...)
	completeFiles(c, "mapping")
	completeNothing(c, "name")
}

// dialectKinds lists the dialects for help texts.
var dialectKinds = strings.Join(simulate.Dialects, ", ") +
	" (default: dimemas5 for a configuration of Dimemas, else paper)"

// registerMachines completes --machine with the names of machines, and files; and --set with their keys.
func registerMachines(c *cobra.Command) {
	register(c, fixed(models.Names(), cobra.ShellCompDirectiveDefault), "machine")
	if c.Flags().Lookup("set") == nil {
		return
	}
	var keys []string
	for _, key := range models.SetKeys() {
		keys = append(keys, key+"=")
	}
	register(c, fixed(keys, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace), "set")
}

// machineKinds lists what a machine may be, for help texts.
func machineKinds() string {
	return "a YAML file, a configuration of Dimemas, or one of " + strings.Join(models.Names(), ", ")
}

// readTarget reads the machine that the flags name, and notes what --set took from it.
func readTarget(a *app, o simulate.TargetOptions) (*simulate.Target, error) {
	if o.Machine == "" {
		return nil, fmt.Errorf("no machine given; name one with --machine: %s", machineKinds())
	}
	t, err := simulate.ReadTarget(o)
	if err != nil {
		return nil, err
	}
	for _, change := range t.LostPieces {
		noteLostPieces(a, "--set "+change)
	}
	return t, nil
}

// noteLostPieces notes that a bandwidth that was set replaced bandwidths by size.
func noteLostPieces(a *app, change string) {
	a.note("%s replaces the machine's pieces: one bandwidth for messages of all sizes", change)
}

// noteOneNode notes that changes of the network between nodes (KEY or KEY=VALUE, of this flag) change no message of
// programs on so many ranks, because on each of the machines all ranks are on one node.
func noteOneNode(a *app, flag string, changes []string, ranks []int32, machines ...*models.Machine) {
	idle := models.IdleChanges(changes, ranks, machines...)
	if len(idle) == 0 {
		return
	}
	for i := range idle {
		idle[i] = flag + " " + idle[i]
	}
	a.note("all ranks are on one node of the machine, so %s changes no message: the keys of intra_node do",
		strings.Join(idle, ", "))
}

// openSimulation opens a run of the store for a simulation.
func openSimulation(ctx context.Context, a *app, nameOrPath string, o simulate.TargetOptions) (*stored.Simulation,
	error) {
	target, err := readTarget(a, o)
	if err != nil {
		return nil, err
	}
	found, err := run.Find(a.storeDir(), nameOrPath)
	if err != nil {
		return nil, err
	}
	s, err := stored.Open(ctx, found.Dir, target)
	if err != nil {
		return nil, err
	}
	noteOneNode(a, "--set", o.Set, []int32{found.Manifest.Ranks}, target.Machine)
	noteUntimed(a, s)
	warnOfThreads(a, s)
	return s, nil
}

// warnOfThreads tells what a simulation does not know of ranks with several threads.
func warnOfThreads(a *app, s *stored.Simulation) {
	if most := slices.Max(append([]int32{0}, s.Program.Threads...)); most > 1 {
		a.warn("ranks of %s have up to %d threads that call MPI. In a simulation each thread begins at the start "+
			"and waits for none of its rank, as a run does not tell when threads are made and joined: the predicted "+
			"time may be too short, and there is no efficiency", s.Run.Name, most)
	}
}

// noteUntimed tells that a run without compute times computes nothing in a simulation.
func noteUntimed(a *app, s *stored.Simulation) {
	if s.Untimed() {
		a.note("run %q was captured without compute times: computing takes no time here; capture it with --clock cpu "+
			"for the whole time", s.Run.Name)
	}
}

func runSimulate(ctx context.Context, a *app, o *simulateOptions) (err error) {
	switch n := len(o.runs); {
	case n == 0:
		return errNoRun
	case n > 1:
		return fmt.Errorf("%d runs given; simulate one at a time, or --sweep them", n)
	}
	s, err := openSimulation(ctx, a, o.runs[0], o.target)
	if err != nil {
		return err
	}
	s.MemoryBytes = int64(o.memory) << 20
	end, err := o.keep(a, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end(err)) }()
	parts := int64(1)
	if o.split {
		parts++
	}
	progress, finish := countProgress(a, "simulate "+s.Run.Name, "calls", parts*s.Run.Manifest.Counts.Calls)
	s.Progress = progress
	defer finish()
	found, err := s.Predict(ctx, stored.Wanted{Ideal: o.split, Path: o.path, Store: a.storeDir(), Save: o.name,
		Replace: a.replace,
		Commq:   version})
	if err != nil {
		return err
	}
	finish()
	if err := o.print(ctx, a, s, found); err != nil {
		return err
	}
	noteLeftOutOf(ctx, a, s.Run)
	return nil
}

// keep opens the checkpoint of the simulation, if the flags ask for one. end closes it.
func (o *simulateOptions) keep(a *app, s *stored.Simulation) (end func(error) error, err error) {
	facts := append([][2]string{{"task", "simulate"}}, s.Identity()...)
	facts = append(facts, [2]string{"name to save it under", o.name}, [2]string{"split", strconv.FormatBool(o.split)})
	folder, err := o.long.open(a, checkpointFacts(facts)...)
	if folder == nil {
		return func(error) error { return nil }, err
	}
	if s.Checkpoint, err = stored.NewCheckpoint(folder); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return func(failed error) error { return endCheckpoint(folder, failed) }, nil
}

// print prints the answer, with the critical path unless it is nil.
func (o *simulateOptions) print(ctx context.Context, a *app, s *stored.Simulation, found *stored.Prediction) error {
	place, path := s.Run.Place(ctx), found.Path
	p := s.Answer(found)
	switch {
	case o.format == "json":
		if path != nil {
			p.CriticalPath = path.Parts(critical.Keys, place)
		}
		return printJSON(a.stdout, p)
	case o.format == "csv" && path != nil:
		return output.Write(a.stdout, "csv", pathRows(path, sitesAndCalls, place))
	case o.format == "csv":
		return predictionCSV(a.stdout, p)
	}
	if err := predictionTable(a, p); err != nil || path == nil {
		return err
	}
	fmt.Fprintln(a.out())
	if err := pathSummary(a, path, s.Run.Name); err != nil {
		return err
	}
	return a.writeRows("table", pathRows(path, sitesAndCalls, place))
}

func predictionCSV(w io.Writer, p *stored.Answer) error {
	out := printable.NewCSV(w)
	head := []string{"rank"}
	for _, c := range predictedColumns {
		head = append(head, c.name)
	}
	rows := [][]string{head}
	for i := range p.Ranks {
		row := []string{strconv.Itoa(p.Ranks[i].Rank)}
		for _, c := range predictedColumns {
			row = append(row, strconv.FormatInt(c.ns(&p.Ranks[i]), 10))
		}
		rows = append(rows, row)
	}
	return out.WriteAll(rows)
}

// ranksListed limits the ranks in the table for people.
const ranksListed = 16

// rankTable is the table of ranks for people: the first ranks. It tells of I/O where there is some.
func rankTable(p *stored.Answer) (columns []queries.Column, rows [][]any) {
	files := slices.ContainsFunc(p.Ranks, func(r stored.PredictedRank) bool { return r.IONs > 0 })
	rows = make([][]any, min(ranksListed, len(p.Ranks)))
	for _, c := range predictedColumns {
		if c.name == "io_ns" && !files {
			continue
		}
		columns = append(columns, queries.Column{Name: c.name, Type: "BIGINT", Unit: "ns"})
		for i := range rows {
			rows[i] = append(rows[i], c.ns(&p.Ranks[i]))
		}
	}
	columns = slices.Insert(columns, 0, queries.Column{Name: "rank", Type: "INTEGER"})
	for i := range rows {
		rows[i] = slices.Insert(rows[i], 0, any(int32(p.Ranks[i].Rank)))
	}
	return columns, rows
}

// predictedColumns are the columns of a rank.
var predictedColumns = [...]struct {
	name string
	ns   func(r *stored.PredictedRank) int64
}{
	{"finish_ns", func(r *stored.PredictedRank) int64 { return r.FinishNs }},
	{"compute_ns", func(r *stored.PredictedRank) int64 { return r.ComputeNs }},
	{"io_ns", func(r *stored.PredictedRank) int64 { return r.IONs }},
	{"point_to_point_ns", func(r *stored.PredictedRank) int64 { return r.PointToPointNs }},
	{"collective_ns", func(r *stored.PredictedRank) int64 { return r.CollectiveNs }},
	{"waiting_ns", func(r *stored.PredictedRank) int64 { return r.WaitingNs }},
	{"cpu_wait_ns", func(r *stored.PredictedRank) int64 { return r.CPUWaitNs }},
}

// predictionTable prints the prediction for people.
func predictionTable(a *app, p *stored.Answer) error {
	w := a.out()
	fmt.Fprintf(w, "%s on %s, dialect %s: predicted time %s\n", p.Run, p.Machine, p.Dialect, a.duration(p.PredictedNs))
	if p.ParallelEfficiency != nil {
		fmt.Fprintf(w, "parallel efficiency %.3f = load balance %.3f x serialisation %.3f x transfer %.3f "+
			"(ideal network: %s)\n",
			*p.ParallelEfficiency, *p.LoadBalance, *p.Serialisation, *p.Transfer, a.duration(*p.IdealNs))
	}
	fmt.Fprintf(w, "%s of %s, %s of %s", counted(p.Messages, "message"), a.size(p.MessageBytes),
		counted(p.Collectives, "collective"), a.size(p.CollectiveBytes))
	if p.FallbackCollectives > 0 {
		fmt.Fprintf(w, ", of which %s of %s by a fallback", grouped(p.FallbackCollectives),
			a.size(p.FallbackCollectiveBytes))
	}
	if p.ObjectOperations > 0 {
		fmt.Fprintf(w, ", and %s on communicators, windows or files", counted(p.ObjectOperations, "operation"))
	}
	for i, n := range p.NCCL {
		fmt.Fprintf(w, "%s%s by %s %s", [...]string{"; NCCL does ", ", "}[min(i, 1)], grouped(n.Collectives), n.Algorithm,
			n.Protocol)
	}
	fmt.Fprint(w, "\n\n")
	columns, rows := rankTable(p)
	if err := a.writeRows("table", queries.RowsOf(columns, rows)); err != nil {
		return err
	}
	if len(p.Ranks) > ranksListed {
		fmt.Fprintf(w, "the first %d of %d ranks; --format csv has all\n", ranksListed, len(p.Ranks))
	}
	return nil
}

// seconds writes a time in seconds, to the nanosecond.
func seconds(ns int64) string { return fmt.Sprintf("%d.%09d", ns/1_000_000_000, ns%1_000_000_000) }
