package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/bench"
	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/models"
	"github.com/commq/commq/models/calibrate"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/plot"
	"github.com/commq/commq/run"
)

// calibrateOptions are the flags of commq calibrate.
type calibrateOptions struct {
	run     string // --run
	machine string // --output
	pictureOptions
	through string // --through
	where   string // --where
	cpus    int    // --cpus-per-node
	pieces  bool   // --pieces
	format  string // --format

	launch bool   // --launch
	name   string // --name
	launchOptions
}

// launchOptions are the flags that go with --launch.
type launchOptions struct {
	ranks    int    // --ranks
	rounds   int    // --rounds
	maxBytes int64  // --max-bytes
	launcher string // --launcher
	mpi      string // --mpi
	mpicc    string // --mpicc
	gather   string // --gather
}

func newCalibrateCommand(a *app) *cobra.Command {
	var o calibrateOptions
	c := &cobra.Command{
		Use:   "calibrate [RUN] [flags] [-- mpirun options]",
		Short: "Learn a machine from a run's messages and collectives",
		Long: `calibrate learns a machine for commq simulate from what a run measured (docs/method/calibrate.md).

Latency and bandwidth come from messages whose receiver was waiting: a line through the times of each size, by least
squares of relative errors, which outliers hardly move, and in pieces where the sizes clearly differ. The eager
threshold comes from sends that returned before their receive was posted, and from sends that did not. Each collective
operation gets the phases of the paper's model that fit best. The answer shows what was found, how far off it is, and
from which sizes and numbers of ranks it was learnt.

With --launch it first compiles and captures a program of its own: ping-pongs of the first rank with the second and the
last, sends whose receiver comes late, messages that several ranks send at once, collectives on 2 ranks up to all, and
chains of additions. From these it also learns links, buses and the cycle time; with more ranks than CPUs it learns no
links and buses. Arguments after -- go to mpirun. --name keeps the run, from which calibrate learns the same again.`,
		Example: `  commq calibrate --launch --mpi openmpi -n 2 --name patterns -o node.yaml
  commq calibrate --launch --mpi openmpi -n 16 -o cluster.yaml -- --map-by node
  commq calibrate pingpong.2 -o cluster.yaml
  commq calibrate --run pingpong.2 --through median --plot fit.svg
  commq simulate --run bt.C.64 --machine cluster.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if n := c.ArgsLenAtDash(); n >= 0 {
				args = args[n:] // the launcher's
			} else {
				args = nil
			}
			if err := o.check(c, args); err != nil {
				return err
			}
			return runCalibrate(c.Context(), a, &o, args)
		},
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "`RUN` to learn from: a name in the store, or a path")
	f.StringVarP(&o.machine, "output", "o", "", "`FILE` to write the machine to, as YAML; - is standard output, "+
		"without the report")
	o.pictureFlags(c, "`FILE` to draw the messages' times and the fitted line in: .png, .svg or .pdf")
	f.StringVar(&o.through, "through", "quartile",
		"time that stands for equal messages and operations: minimum, quartile (the lower one) or median")
	f.StringVar(&o.where, "where", "", "which messages latency and bandwidth are learnt from: a `CONDITION` on the "+
		"columns of messages (default: all; of a run of --launch its ping-pongs)")
	f.IntVar(&o.cpus, "cpus-per-node", 0, "CPUs of a node of the machine (default: the most ranks on a host)")
	f.BoolVar(&o.pieces, "pieces", true, "learn bandwidths that depend on the size, where the data clearly show them")
	f.StringVar(&o.format, "format", "text", "`FORMAT` of the answer: text or json")
	f.BoolVar(&o.launch, "launch", false, "first run a measuring program, and learn from that")
	f.StringVar(&o.name, "name", "", "with --launch: keep the run under this `NAME` (default: it is removed)")
	f.IntVarP(&o.ranks, "ranks", "n", 2, "with --launch: number `N` of ranks")
	f.IntVar(&o.rounds, "rounds", 100, "with --launch: how often small messages are measured; larger ones are "+
		"measured less often")
	f.Int64Var(&o.maxBytes, "max-bytes", 4<<20,
		"with --launch: size of the largest message; collectives move up to a 16th of it")
	f.StringVar(&o.launcher, "launcher", "", `with --launch: launcher and its options, for example "srun -N 2" `+
		"(default: the mpirun of the MPI library)")
	f.StringVar(&o.mpi, "mpi", "", "with --launch: MPI library, openmpi or mpich (default: the one that is installed)")
	f.StringVar(&o.mpicc, "mpicc", "", "with --launch: MPI compiler wrapper (default: found in $PATH)")
	f.StringVar(&o.gather, "gather", "", "with --launch: shell command that copies the records of other nodes into "+
		"the folder $COMMQ_SPOOL")
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	a.writes(c)
	completeFiles(c, "output", "yaml", "yml")
	complete(c, "through", calibrate.Throughs...)
	complete(c, "format", "text", "json")
	complete(c, "mpi", "openmpi", "mpich")
	completeFiles(c, "launcher")
	completeFiles(c, "mpicc")
	completeNothing(c, "where", "name", "cpus-per-node", "ranks", "rounds", "max-bytes", "gather")
	return c
}

func (o *calibrateOptions) check(c *cobra.Command, args []string) error {
	if err := o.checkLaunch(c, args); err != nil {
		return err
	}
	if o.cpus < 0 {
		return fmt.Errorf("--cpus-per-node %d: want 1 or more", o.cpus)
	}
	if err := o.checkPicture(); err != nil {
		return err
	}
	if err := oneOf("through", o.through, calibrate.Throughs...); err != nil {
		return err
	}
	return oneOf("format", o.format, "text", "json")
}

// checkLaunch checks the flags that --launch needs, and those that need --launch.
func (o *calibrateOptions) checkLaunch(c *cobra.Command, args []string) error {
	switch {
	case o.launch && o.ranks < 2:
		return fmt.Errorf("-n %d: want 2 ranks or more", o.ranks)
	case o.launch && o.run != "":
		return fmt.Errorf("--run %s: with --launch there is no run yet; --name keeps it", o.run)
	case o.launch && o.rounds < 1:
		return fmt.Errorf("--rounds %d: want 1 or more", o.rounds)
	case o.launch && (o.maxBytes < 1024 || o.maxBytes > 1<<30):
		return fmt.Errorf("--max-bytes %d: want 1024 to 1073741824", o.maxBytes)
	case o.launch:
		return nil
	case o.run == "":
		return errors.New("no run given; name one as an argument or with --run, or measure with --launch")
	case len(args) > 0:
		return fmt.Errorf("%q: only with --launch are there arguments, for mpirun", args[0])
	}
	for _, name := range []string{"name", "ranks", "rounds", "max-bytes", "launcher", "mpi", "mpicc", "gather"} {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--%s: it is for --launch; without it the run is there already", name)
		}
	}
	return nil
}

func runCalibrate(ctx context.Context, a *app, o *calibrateOptions, args []string) error {
	if o.launch {
		remove, err := o.measure(ctx, a, args)
		if err != nil {
			return err
		}
		defer remove()
	}
	found, err := run.FindAll(a.storeDir(), []string{o.run})
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("--run %s: %d runs match; want one", o.run, len(found))
	}
	measured := queriedRuns(found)[0]
	learnt, err := o.learn(ctx, measured)
	if n := measured.Manifest.TimeResolutionNs; err != nil && n > 1 {
		err = fmt.Errorf("%w; the times of run %q are multiples of %d ns: capture it again without "+
			"--time-resolution-ns", err, measured.Name, n)
	}
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	if err := noteSharedCoresOf(ctx, a, found[0]); err != nil {
		return err
	}
	return o.report(a, measured, learnt)
}

// report writes, draws and prints the machine.
func (o *calibrateOptions) report(a *app, run queries.Run, found *calibrate.Calibration) error {
	if o.machine != "" {
		from := fmt.Sprintf("run %s (%s times, digest %s), %s of equal ones", run.Name, run.Manifest.TimeOrigin,
			run.Manifest.Digest, o.through)
		if o.where != "" {
			from += ", messages where " + o.where
		}
		notes := found.Notes(from)
		write := func(w io.Writer) error { return found.Machine.WriteYAML(w, notes) }
		if err := a.writeFile(o.machine, write); err != nil {
			return err
		}
	}
	if o.plot != "" {
		if err := o.writePicture(drawCalibration(found, run.Name, o.through)); err != nil {
			return err
		}
	}
	if o.format == "json" && o.machine != standardOutput {
		return printJSON(a.stdout, calibrationJSON(run.Name, found))
	}
	for _, w := range found.Warnings {
		a.note("%s", w)
	}
	if o.machine == standardOutput {
		return nil
	}
	if err := printCalibration(a, run.Name, o.through, found); err != nil {
		return err
	}
	if o.machine == "" {
		a.note("-o machine.yaml keeps the machine for commq simulate")
	}
	return nil
}

// learn learns a machine from the run.
func (o *calibrateOptions) learn(ctx context.Context, measured queries.Run) (found *calibrate.Calibration, err error) {
	r, err := run.Open(ctx, measured.Dir, run.Need{})
	if err != nil {
		return nil, err
	}
	options, err := o.learnOptions(measured)
	if err != nil {
		return nil, err
	}
	err = withEngine(ctx, []queries.Run{measured}, queries.Options{}, func(ask rows.Ask) (err error) {
		found, err = calibrate.Learn(ctx, r, ask, options)
		return err
	})
	return found, err
}

func (o *calibrateOptions) learnOptions(measured queries.Run) (l calibrate.LearnOptions, err error) {
	l = calibrate.LearnOptions{CPUsPerNode: o.cpus, Through: o.through, Where: cmp.Or(o.where, "TRUE"),
		Pieces: o.pieces}
	command := measured.Manifest.Origin.Command
	if len(command) > 0 && strings.HasPrefix(filepath.Base(command[0]), bench.Name) {
		l.Launched = &calibrate.Launched{CycleTag: bench.CycleTag, CycleAdds: bench.CycleAdds, ClockTag: bench.ClockTag,
			TopClockTag: bench.TopClockTag, RoundTag: bench.RoundTag}
		l.Where = cmp.Or(o.where, bench.PingPongs)
	}
	l.Eager, err = canAnswer(measured, "eager")
	return l, err
}

// canAnswer reports whether a run has the data that a query needs.
func canAnswer(r queries.Run, query string) (bool, error) {
	all, err := queries.Named([]string{query})
	if err != nil {
		return false, err
	}
	return all[0].Check(r) == nil, nil
}

// calibrationAnswer is the answer in JSON.
type calibrationAnswer struct {
	// Run is the name of the run.
	Run string `json:"run"`
	*calibrate.Calibration
	// Collectives are the models of collective operations.
	Collectives []operationAnswer `json:"collectives"`
	// Machine is the machine for commq simulate, as the text of its YAML file.
	Machine string `json:"machine"`
}

type operationAnswer struct {
	// Name is the MPI function, the blocking form.
	Name string `json:"operation"`
	// FanIn is how the time of the fan-in grows with the number of ranks: 0, CT, LIN or LOG.
	FanIn string `json:"fan_in"`
	// SizeIn is the size that the fan-in depends on: MAX, MIN, MEAN, 2MAX, S+R or CURRENT.
	SizeIn string `json:"size_in"`
	// FanOut is the same as FanIn, of the fan-out.
	FanOut string `json:"fan_out"`
	// SizeOut is the same as SizeIn, of the fan-out.
	SizeOut string `json:"size_out"`
	calibrate.Operation
}

func calibrationJSON(run string, found *calibrate.Calibration) *calibrationAnswer {
	answer := &calibrationAnswer{Run: run, Calibration: found, Collectives: []operationAnswer{}}
	for _, o := range found.Operations {
		p := o.Phases
		answer.Collectives = append(answer.Collectives,
			operationAnswer{o.Call.String(), p.FanIn.String(), p.SizeIn.String(), p.FanOut.String(),
				p.SizeOut.String(), o})
	}
	var text strings.Builder
	if err := found.Machine.WriteYAML(&text, nil); err != nil {
		panic(err) // writing a text to memory cannot fail
	}
	answer.Machine = text.String()
	return answer
}

// printCalibration prints a calibration for people.
func printCalibration(a *app, run, through string, found *calibrate.Calibration) error {
	w := a.out()
	fmt.Fprintf(w, "%s: machine from the %s of equal messages and operations\n", run, through)
	for _, part := range []struct {
		name  string
		fit   *calibrate.Fit
		links *calibrate.Contention
	}{{"inside a node", found.Inside, found.InsideContention},
		{"between nodes", found.Between, found.BetweenContention}} {
		if part.fit == nil {
			continue
		}
		if err := printFit(a, part.name, part.fit); err != nil {
			return err
		}
		if c := part.links; c != nil {
			if err := a.prose(contentionText(c)); err != nil {
				return err
			}
		}
	}
	if c := found.Cycle; c != nil {
		fmt.Fprintf(w, "\nreal cycle time: %s ns (%s GHz), most of %s %s to %s ns%s\n", units.Number(c.Ns),
			units.Number(1/c.Ns), counted(int64(c.Samples), "sample"), units.Number(c.LowNs), units.Number(c.HighNs),
			statedText(c))
	}
	if err := a.prose(thresholdText(found.Threshold)); err != nil {
		return err
	}
	if len(found.Operations) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	var rows [][]any
	for _, o := range found.Operations {
		rows = append(rows, []any{o.Call.String(), phaseText(o.Phases.FanIn, o.Phases.SizeIn),
			phaseText(o.Phases.FanOut, o.Phases.SizeOut), o.Factor, o.Table3Factor, o.Count,
			rangeText(int64(o.MinRanks), int64(o.MaxRanks)), rangeText(o.MinBytes, o.MaxBytes)})
	}
	return a.writeRows("table", queries.RowsOf(operationColumns, rows))
}

// statedText tells the clock by the operating system; empty if it does not name one.
func statedText(c *calibrate.Cycle) string {
	switch {
	case c.StatedMHz == 0:
		return ""
	case c.StatedTop:
		return fmt.Sprintf("; the operating system says at most %d MHz", c.StatedMHz)
	}
	return fmt.Sprintf("; the operating system says %d MHz", c.StatedMHz)
}

// contentionText tells how many messages the network carries at a time.
func contentionText(c *calibrate.Contention) string {
	duplex := "full duplex"
	switch {
	case !c.HalfDuplexKnown:
		duplex = "full or half duplex"
	case c.HalfDuplex:
		duplex = "half duplex"
	}
	return fmt.Sprintf("input links: %s, output links: %s, %s; buses: %s (from %s of up to %d messages of %s bytes "+
		"at once)\n", c.InputLinks, c.OutputLinks, duplex, c.Buses, counted(int64(len(c.Rounds)), "set"), c.AtOnce,
		grouped(c.Bytes))
}

// operationColumns are the columns of the collectives for people.
var operationColumns = []queries.Column{{Name: "collective", Type: "VARCHAR"}, {Name: "fan_in", Type: "VARCHAR"},
	{Name: "fan_out", Type: "VARCHAR"}, {Name: "off_by_factor", Type: "DOUBLE", Unit: "1"},
	{Name: "table_3_off_by_factor", Type: "DOUBLE", Unit: "1"}, {Name: "count", Type: "BIGINT", Unit: "1"},
	{Name: "ranks", Type: "VARCHAR"}, {Name: "bytes", Type: "VARCHAR"}}

// thresholdText tells from which size on sends wait; empty if that is not known.
func thresholdText(t *calibrate.Threshold) string {
	if t == nil {
		return ""
	}
	text := "no send waited for its receiver"
	if t.Bytes != models.NoThreshold {
		text = fmt.Sprintf("sends of %s bytes or more wait for their receiver", grouped(t.Bytes))
	}
	if t.EagerBytes >= 0 {
		text += fmt.Sprintf(", those of %s did not", grouped(t.EagerBytes))
	} else {
		text += ", perhaps smaller ones too: all did"
	}
	return fmt.Sprintf("\neager threshold: %s (%s whose receive was posted late, %s otherwise)\n", text,
		counted(t.Sends, "send"), grouped(t.Against))
}

// residualColumns are the columns of the times of sizes for people.
var residualColumns = []queries.Column{{Name: "bytes", Type: "BIGINT", Unit: "bytes"},
	{Name: "messages", Type: "BIGINT", Unit: "1"}, {Name: "time_ns", Type: "DOUBLE", Unit: "ns"},
	{Name: "fitted_ns", Type: "DOUBLE", Unit: "ns"}, {Name: "off_by", Type: "DOUBLE", Unit: "1", Share: true}}

func printFit(a *app, name string, f *calibrate.Fit) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: latency %s, bandwidth %s", name, timeText(f.Line.LatencyNs), bandwidthText(f.Line.NsPerByte))
	for i, p := range f.Line.Pieces {
		if i == 0 {
			fmt.Fprintf(&b, " up to %s bytes", grouped(p.AboveBytes))
		}
		fmt.Fprintf(&b, "; above %s bytes %s more and %s", grouped(p.AboveBytes), timeText(p.StepNs),
			bandwidthText(p.NsPerByte))
	}
	fmt.Fprintf(&b, "\ntypical error %s, largest %s", percent(f.ErrorTypical), percent(f.ErrorMax))
	if len(f.Line.Pieces) > 0 {
		fmt.Fprintf(&b, "; in one piece: latency %s, bandwidth %s, typical error %s",
			timeText(f.Single.LatencyNs), bandwidthText(f.Single.NsPerByte), percent(f.SingleErrorTypical))
	}
	fmt.Fprintf(&b, "\nrange of the latency %s to %s, of the bandwidth %s to %s", timeText(f.Low.LatencyNs),
		timeText(f.High.LatencyNs), bandwidthText(f.High.NsPerByte), bandwidthText(f.Low.NsPerByte))
	fmt.Fprintf(&b, "\nlearnt on %s of %s to %s bytes\n", counted(f.Messages, "message"), grouped(f.MinBytes),
		grouped(f.MaxBytes))
	if err := a.prose(b.String()); err != nil {
		return err
	}
	shown := thinOut(f.Residuals)
	var rows [][]any
	for _, r := range shown {
		rows = append(rows, []any{r.Bytes, r.Messages, r.Ns, r.FitNs, r.Error})
	}
	if err := a.writeRows("table", queries.RowsOf(residualColumns, rows)); err != nil {
		return err
	}
	if len(shown) < len(f.Residuals) {
		fmt.Fprintf(a.out(), "%d of %d sizes; --format json has all\n", len(shown), len(f.Residuals))
	}
	return nil
}

// sizesListed is the number of sizes in the table for people.
const sizesListed = 32

// thinOut picks sizesListed residuals, evenly spaced, including the first and the last.
func thinOut(all []calibrate.Residual) []calibrate.Residual {
	if len(all) <= sizesListed {
		return all
	}
	var picked []calibrate.Residual
	for i := range sizesListed {
		picked = append(picked, all[i*(len(all)-1)/(sizesListed-1)])
	}
	return picked
}

func bandwidthText(nsPerByte float64) string {
	b := calibrate.BytesPerSecond(nsPerByte)
	if b == 0 {
		return "infinite"
	}
	return units.Rate(float64(b))
}

// timeText writes a time that may be a fraction of a nanosecond.
func timeText(ns float64) string { return units.WithUnit(ns, units.Times) }

func phaseText(f models.Factor, s models.Size) string {
	if f == models.None {
		return "0"
	}
	return f.String() + " " + s.String()
}

func rangeText(least, most int64) string {
	if least == most {
		return grouped(least)
	}
	return grouped(least) + " to " + grouped(most)
}

// drawCalibration draws the times over the sizes, and the fitted lines.
func drawCalibration(found *calibrate.Calibration, run, through string) plot.Drawing {
	c := &plot.Chart{Title: "Time of messages by size: " + filepath.Base(run),
		Note: through + " of the messages of each size", Kind: "points", Series: "messages", Fit: "fitted line",
		X: plot.Axis{Name: "message size", Unit: "bytes", Log: true},
		Y: plot.Axis{Name: "time from send to receive", Unit: "ns", Log: true}}
	for _, part := range []struct {
		name string
		fit  *calibrate.Fit
	}{{"inside a node", found.Inside}, {"between nodes", found.Between}} {
		if part.fit == nil {
			continue
		}
		for _, r := range part.fit.Residuals {
			c.Add(plot.Value{Series: part.name, X: float64(r.Bytes), Y: r.Ns, Fit: r.FitNs})
		}
	}
	return c
}
