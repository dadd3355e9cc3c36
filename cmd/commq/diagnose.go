package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/capture/doctor"
	"github.com/commq/commq/diagnose"
	"github.com/commq/commq/internal/kept"
	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/run"
)

// diagnoseOptions are the flags of commq diagnose.
type diagnoseOptions struct {
	runs    []string // --run
	target  simulate.TargetOptions
	finding int     // --finding
	all     bool    // --all
	least   float64 // --least
	memory  int     // --memory
	most    int64   // --simulate-most
	format  string  // --format
	list    bool    // --list
	every   bool    // --every-rule

	machine  *simulate.Target // of target, once it is read
	examined bool             // the doubts of the recording are known
	doubts   []string         // as warnings
}

// diagnoseFormats are the values of --format.
var diagnoseFormats = []string{"table", "json", "csv", "markdown", "sarif", "junit"}

// diagnoseShown limits the findings that are shown without --all.
const diagnoseShown = 5

// diagnoseLeast is the default of --least.
const diagnoseLeast = 0.01

// diagnoseMost is the default of --simulate-most: a simulation takes about a second of a core for a million calls.
const diagnoseMost = 10_000_000

// newDiagnoseOptions returns the options of a diagnosis that another command asks for: the defaults of the flags, with the
// memory and machine of that command.
func newDiagnoseOptions(memoryMiB int, machine string) *diagnoseOptions {
	return &diagnoseOptions{target: simulate.TargetOptions{Machine: machine}, memory: memoryMiB, most: diagnoseMost,
		least: diagnoseLeast}
}

func newDiagnoseCommand(a *app) *cobra.Command {
	var o diagnoseOptions
	c := &cobra.Command{
		Use:   "diagnose RUN...",
		Short: "Name what makes a run slow: where, why, and what mending it would gain",
		Long: `diagnose explains the waits of a run by what the ranks that were waited for did instead, follows them back through
messages and collectives to where they began, and names the causes with their line: an imbalance, a late sender, a late
receiver, work of a root. Each cause is then removed in a simulation of the run; the time that this gains decides the
order. Calls that take long themselves are named too; their gain is that of messages and operations that take no time.

Further rules are files of SQL. Your own are files NAME.sql in $XDG_CONFIG_HOME/commq/findings (else
~/.config/commq/findings). --list lists all rules; one that the run has too little for is not looked for.

Over several runs of a program it tells which findings grow with the number of ranks, by which law, and on how many ranks
each becomes the largest. Runs on equally many ranks are repetitions.

Simulations use the machine of the run's times. For measured times that is an ideal network, on which messages take no
time, unless --machine names another; the gain of slow calls is then a bound, their time on the critical path.
docs/method/diagnose.md has the method and what it cannot see.`,
		Example: `  commq diagnose uneven.4
  commq diagnose uneven.4 --finding 1
  commq diagnose 'halo.*'
  commq diagnose mg.W.16 --machine ethernet-40g --all
  commq diagnose uneven.4 --format json
  commq diagnose --list
  commq diagnose uneven.4 --format sarif > findings.sarif
  commq diagnose uneven.4 --format junit --least 0.05 > findings.xml`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.list {
				if err := o.checkList(); err != nil {
					return err
				}
				return listRules(a, o.format)
			}
			if err := errors.Join(oneOf("format", o.format, diagnoseFormats...), o.check()); err != nil {
				return err
			}
			return runDiagnose(c.Context(), a, &o)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&o.runs, "run", nil, "`RUN` to diagnose: a name in the store, a path, or a pattern of either; "+
		"may be repeated")
	f.StringVar(&o.target.Machine, "machine", "", "`FILE` of the machine to simulate on: "+machineKinds())
	f.StringArrayVar(&o.target.Set, "set", nil, "change a `KEY=VALUE` of the machine; may be repeated")
	f.IntVar(&o.finding, "finding", 0, "show all evidence of the finding with this number `N`")
	f.BoolVar(&o.all, "all", false, fmt.Sprintf("list all findings, not only the first %d above "+
		"--least", diagnoseShown))
	f.BoolVar(&o.list, "list", false, "list the rules")
	f.BoolVar(&o.every, "every-rule", false, fmt.Sprintf("also look for what needs a look at all rows of a run with "+
		"more than %d billion", findingRows/1_000_000_000))
	f.Float64Var(&o.least, "least", diagnoseLeast, "least gain of a finding that is listed, as a fraction of "+
		"the run's time")
	f.IntVar(&o.memory, "memory", 4096, "memory in `MIB` that the rows of the run may take")
	f.Int64Var(&o.most, "simulate-most", diagnoseMost,
		"number of `CALLS` of a run above which gains are bounds, not simulated; 0 means no limit")
	f.StringVar(&o.format, "format", "table", "`FORMAT` of the answer: "+strings.Join(diagnoseFormats, ", ")+
		"; json and csv have all findings, junit a test per rule")
	register(c, completeRuns(a), "run")
	registerMachines(c)
	complete(c, "format", diagnoseFormats...)
	completeNothing(c, "finding", "least", "memory", "simulate-most")
	a.readsRuns(c)
	return c
}

func (o *diagnoseOptions) check() error {
	switch {
	case len(o.runs) == 0:
		return errNoRun
	case o.finding < 0:
		return fmt.Errorf("--finding %d: want the number of a finding, from 1", o.finding)
	case o.finding > 0 && (o.format == "junit" || o.format == "sarif"):
		return fmt.Errorf("--finding %d: --format %s is about all findings; leave out one of them", o.finding, o.format)
	case !(o.least >= 0 && o.least <= 1):
		return fmt.Errorf("--least %v: want a fraction from 0 to 1", o.least)
	case o.most < 0:
		return fmt.Errorf("--simulate-most %d: want a number of calls, 0 for no limit", o.most)
	case o.target.Machine == "" && len(o.target.Set) > 0:
		return errors.New("--set: it changes a machine; name one with --machine")
	}
	return checkMemory(o.memory, 1)
}

func runDiagnose(ctx context.Context, a *app, o *diagnoseOptions) error {
	found, err := run.FindAll(a.storeDir(), o.runs)
	if err != nil {
		return err
	}
	if err := o.readMachine(a, found); err != nil {
		return err
	}
	if len(found) > 1 {
		return runDiagnoseSeveral(ctx, a, o, found)
	}
	show, clear := statusLine(a)
	defer clear()
	d, err := o.diagnose(ctx, a, found[0], func(step string) { show("diagnose: " + step) })
	if err != nil {
		return err
	}
	clear()
	return o.print(a, d)
}

// readMachine reads the machine for the simulations of runs, if one is named and it is not read yet.
func (o *diagnoseOptions) readMachine(a *app, runs []run.Found) (err error) {
	if o.machine != nil || o.target.Machine == "" {
		return nil
	}
	if o.machine, err = readTarget(a, o.target); err != nil {
		return err
	}
	var ranks []int32
	for _, r := range runs {
		ranks = append(ranks, r.Manifest.Ranks)
	}
	noteOneNode(a, "--set", o.target.Set, ranks, o.machine.Machine)
	return nil
}

// diagnose diagnoses a run. progress is called with what is being done.
func (o *diagnoseOptions) diagnose(ctx context.Context, a *app, found run.Found,
	progress func(string)) (*diagnose.Diagnosis, error) {
	r, err := run.Open(ctx, found.Dir, diagnose.NeedFor(found.Manifest, o.target.Machine != ""))
	if err != nil {
		return nil, err
	}
	asked := slices.DeleteFunc(runArgs(a, queriedRuns([]run.Found{found})[0]),
		func(arg string) bool { return arg == "--run" })
	if err := o.readMachine(a, []run.Found{found}); err != nil {
		return nil, err
	}
	how := diagnose.Options{MemoryBytes: int64(o.memory) << 20, MostCalls: o.most, Finding: o.finding, Asked: asked,
		Kept: keptResults(found), Progress: progress, Target: o.machine}
	if err := o.askFiles(ctx, a, found, &how); err != nil {
		return nil, err
	}
	if err := askByHand(ctx, r, &how); err != nil {
		return nil, err
	}
	if how.Warnings = o.doubts; !o.examined {
		if how.Warnings, err = recordingDoubts(ctx, found); err != nil {
			return nil, err
		}
	}
	return diagnose.Run(ctx, r, how)
}

// Diagnoses of runs with at least keptCalls calls keep the sums of rows and the answers of rules from files. Those of
// smaller runs are made in a second.
const keptCalls = 1_000_000

// keptResults returns the results that diagnoses of a run keep; nil if they keep nothing.
func keptResults(found run.Found) *kept.Results {
	folder, err := kept.CacheFolder()
	if err != nil || found.Manifest.Counts.Calls < keptCalls {
		return nil
	}
	return kept.ResultsOf(found.Dir, filepath.Join(folder, "results"))
}

// Runs with at most doubtCalls calls are searched for messages received before they were sent and for calls recorded
// twice, as commq doctor does for any run.
const doubtCalls = 2_000_000

// recordingDoubts returns the findings of commq doctor that make the diagnosis of a run doubtful.
func recordingDoubts(ctx context.Context, found run.Found) (warnings []string, err error) {
	r := &doctor.Run{Name: found.Name, Dir: found.Dir, Manifest: found.Manifest}
	err = doctorEngine(ctx, r, func(ask rows.Ask) error {
		r.Ask = ask
		doubts, err := r.Doubts(ctx, doubtCalls)
		warnings = doubtTexts(doubts)
		return err
	})
	return warnings, err
}

// doubtTexts returns warnings about a doubtful recording.
func doubtTexts(doubts []doctor.Finding) (warnings []string) {
	for _, f := range doubts {
		warnings = append(warnings, fmt.Sprintf("the recording (%s): %s", f.Check, f.Found))
	}
	return warnings
}

// leastEngineBytes is the memory that the query engine needs for anything.
const leastEngineBytes = 64 << 20

// askFiles asks the rules that are files, and warns about files with mistakes.
func (o *diagnoseOptions) askFiles(ctx context.Context, a *app, found run.Found, to *diagnose.Options) error {
	l, err := readFindings()
	if err != nil {
		return err
	}
	// Half of the memory: the engine takes more than its limit, and commq has some too.
	engine := queries.Options{MemoryBytes: max(to.MemoryBytes/2, leastEngineBytes)}
	search := queries.Search{MostRows: findingRows, Kept: to.Kept, Engine: engine,
		Progress: func(rule string) { to.Progress("look for " + rule) }}
	if o.every {
		search.MostRows = 0
	}
	mistakes, err := l.ask(ctx, found, search, to)
	for _, mistake := range mistakes {
		a.warn("left out: %v", mistake)
	}
	return err
}

func (o *diagnoseOptions) print(a *app, d *diagnose.Diagnosis) error {
	shown := d.Shown(o.least, diagnoseShown)
	if o.all {
		shown = len(d.Findings)
	}
	if o.finding > len(d.Findings) {
		return fmt.Errorf("--finding %d: the run has %s", o.finding, counted(int64(len(d.Findings)), "finding"))
	} else if o.finding > 0 {
		d.Findings, shown = d.Findings[o.finding-1:o.finding], 1
	}
	switch o.format {
	case "json":
		return printJSON(a.stdout, d)
	case "csv":
		return d.CSV(a.stdout)
	case "markdown":
		return d.Markdown(a.stdout, shown)
	case "sarif":
		return d.SARIF(a.stdout, shown, version)
	case "junit":
		return d.JUnit(a.stdout, o.least)
	}
	var text strings.Builder
	var err error
	if o.finding > 0 {
		err = d.Detail(&text, &d.Findings[0])
	} else {
		err = d.Text(&text, shown, o.howToSeeRest())
	}
	return errors.Join(err, a.prose(text.String()))
}

// howToSeeRest says how to see what a diagnosis leaves out; "" means that it leaves out nothing.
func (o *diagnoseOptions) howToSeeRest() string {
	if o.all {
		return ""
	}
	return "--all lists them"
}
