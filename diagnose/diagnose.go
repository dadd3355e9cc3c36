package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/commq/commq/internal/kept"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/models"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/models/simulate/stored"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Need lists the requirements on a run that is to be diagnosed.
var Need = run.Need{Command: "diagnose", AllCalls: true, NoneDropped: true, Times: true}

// NeedFor returns the requirements on a run with this manifest. A run that is simulated on a machine needs no times of
// calls if it has compute times.
func NeedFor(m *schema.Manifest, machine bool) run.Need {
	need := Need
	need.Times = !machine || m.ComputeClock == "none"
	return need
}

// Options select how to diagnose.
type Options struct {
	// Target is the machine on which the run is simulated without its faults. nil means the machine that the run's
	// times are from; for measured times an ideal network, on which messages take no time.
	Target *simulate.Target
	// MemoryBytes limits the memory for the rows of the run; 0 means no limit.
	MemoryBytes int64
	// Evidence has what rules from files, and package detect, found in the run. Of each rule the largest cost comes
	// first.
	Evidence []Evidence
	// NotLookedFor are the rules from files that were not asked, with the reasons.
	NotLookedFor []NotLookedFor
	// MostCalls limits the simulations: a run with more calls gets bounds of its gains instead. 0 means no limit.
	MostCalls int64
	// Warnings are doubts about the recording. They come before the warnings of the diagnosis.
	Warnings []string
	// Finding is the number of a finding, from 1, whose rows are read again for all its evidence; 0 means none.
	Finding int
	// Asked are the arguments of commq's commands that name the run; nil means its name.
	Asked []string
	// Kept has the results of earlier diagnoses of the run that its rows were read for; nil means nothing is kept.
	Kept *kept.Results
	// Progress is called with the name of each step; nil means no callback.
	Progress func(step string)
}

// Diagnosis is the answer: the findings that limit a run, and its efficiency.
type Diagnosis struct {
	// Run is the run's name.
	Run string `json:"run"`
	// Ranks is its number of ranks.
	Ranks int `json:"ranks"`
	// TimeNs is the duration of the program from the end of MPI_Init to the start of MPI_Finalize.
	TimeNs int64 `json:"time_ns"`
	// StartupNs is the time in MPI_Init and MPI_Finalize, which is left out.
	StartupNs int64 `json:"startup_ns"`
	// Machine is the machine of the simulations.
	Machine string `json:"machine"`
	// TimesSimulated means that waits, and when they were, are of the run as it was simulated on that machine, and not
	// of the run's own times.
	TimesSimulated bool `json:"times_simulated"`
	// SimulatedNs is the time of the unchanged run there, with MPI_Init and MPI_Finalize; 0 if it was not simulated.
	SimulatedNs int64 `json:"simulated_ns"`
	// Efficiency splits the parallel efficiency on that machine. A program that takes no time has none.
	Efficiency *Efficiency `json:"efficiency,omitempty"`
	// TogetherNs is the time that the run would gain without the causes of the first three findings that were
	// simulated, at least the largest of their gains: causes that share computing can gain less together than one of
	// them alone.
	TogetherNs int64 `json:"together_ns"`
	// Warnings say what makes these numbers doubtful.
	Warnings []string `json:"warnings"`
	// Findings are what was found, the one with the largest gain first.
	Findings []Finding `json:"findings"`
	// Start is the finding late-start, which costs time before that of the diagnosis; absent if there is none.
	Start *Finding `json:"start,omitempty"`
	// NotLookedFor are the rules that the run has too little for, or too much.
	NotLookedFor []NotLookedFor `json:"not_looked_for"`

	asked     []string // the arguments of commands that name the run
	computing []int64  // of each rank in the whole run, in ns
}

// Efficiency has the factors of the parallel efficiency in the simulation of the unchanged run, each a share of 1.
type Efficiency struct {
	// Parallel is the product of the others: the mean computing time over the time.
	Parallel float64 `json:"parallel"`
	// LoadBalance is the mean over the largest computing time of a rank.
	LoadBalance float64 `json:"load_balance"`
	// Serialisation is the largest computing time over the time on an ideal network.
	Serialisation float64 `json:"serialisation"`
	// Transfer is the time on an ideal network over the time; null if no network was simulated.
	Transfer *float64 `json:"transfer"`
}

// Finding is one thing that makes the run slow.
type Finding struct {
	// Rule is the kind of finding: one of Rules, or the name of a file.
	Rule Rule `json:"rule"`
	// Place is the MPI call's place in the program, with file and line if they are known. A cause that is computing
	// stands before the call. It is empty where there is no one place.
	Place string `json:"callsite"`
	// Call is the MPI call at that place.
	Call string `json:"call"`
	// Function is the function that makes the call; it is empty if no caller of it was recorded, or if it is not known.
	Function string `json:"function"`
	// Callers are the places from which that function is called, the one with the largest part of the finding first. A
	// function from which MPI is reached at one place only is a wrapper: then they are those that call the wrapper. It
	// is empty unless there are several.
	Callers []Caller `json:"callers"`
	// Ranks are the ranks that cause it.
	Ranks []int32 `json:"ranks"`
	// Computing is what these ranks compute in the whole run; of an imbalance only.
	Computing []RankTime `json:"computing"`
	// Title says what is the matter in one sentence.
	Title string `json:"title"`
	// Advice says what to do.
	Advice string `json:"advice"`
	// GainNs is the time by which the run would be shorter without the cause: of an imbalance and of a serial section,
	// if the work were shared out evenly.
	GainNs int64 `json:"gain_ns"`
	// Bound means that the gain was not simulated and is at most this: the time of the calls on the critical path.
	Bound bool `json:"bound"`
	// MostNs is the gain if the excess were not computed at all. Only serial sections and imbalances of the whole run
	// have it; 0 in other findings.
	MostNs int64 `json:"most_ns,omitempty"`
	// WaitNs is the time that ranks waited because of the cause, all of them together.
	WaitNs int64 `json:"wait_ns"`
	// Parts are all places of the cause, the longest first.
	Parts []Part `json:"parts"`
	// Waits are the calls that waited, the longest first.
	Waits []Wait `json:"waits"`
	// Window is where the finding is seen best: around its longest wait. Findings without waits have none, nor have
	// those whose waits are of simulated times, which the run does not have.
	Window *Window `json:"window,omitempty"`
	// Instances are its ranks, when it was, and the calls before. Findings that nobody waited for have them only if
	// they are asked for by number.
	Instances *Instances `json:"instances,omitempty"`
	// Evidence are the values that a rule from a file gives.
	Evidence []Value `json:"evidence,omitempty"`

	// without makes the change that removes the cause; nil if the gain was not simulated. boundNs is an upper bound of
	// the gain; 0 if there is none.
	without func() *change
	boundNs int64
	// least makes the change after which nobody computes the excess, or nil.
	least func() *change
	sites []int32 // of Callsites
	// bySite is the cost of computing by call site; nil if setCallers is to find it.
	bySite map[int32]int64
	inTurn [][]float64 // of InTurn
	// mean is the mean computing before a call, in ns; of variation only.
	mean map[rankSite]int64
	// timesMore is how much longer these ranks compute than the others, as a fraction; of an imbalance only.
	timesMore float64
	// doubtful means that too few cores may be the cause, not the program.
	doubtful bool
	// keeping makes the change after which this part of the excess, from 0 to 1, is computed; nil for an imbalance.
	keeping func(part float64) *change
	// excessNs is the excess of all ranks together.
	excessNs int64
	// excess means that the bound is the excess computing of these ranks, not time on the critical path.
	excess bool
}

// Part is a place of a cause: a call before which ranks computed longer than they had to.
type Part struct {
	// Place is the call's place in the program.
	Place string `json:"callsite"`
	// Call is the MPI call there.
	Call string `json:"call"`
	// Ranks are the ranks that compute there, of those that cause the finding.
	Ranks []int32 `json:"ranks"`
	// ExcessNs is how much longer they computed, all ranks together.
	ExcessNs int64 `json:"excess_ns"`
}

// RankTime is what a rank computes in the whole run.
type RankTime struct {
	// Rank is the rank.
	Rank int32 `json:"rank"`
	// ComputeNs is its computing time, on the CPUs of the machine of the simulations.
	ComputeNs int64 `json:"compute_ns"`
	// TimesMean is that time over the mean of all ranks.
	TimesMean float64 `json:"times_mean"`
}

// Wait is a call that waited because of a finding's cause.
type Wait struct {
	// For is what it waited for: late sender, late receiver, wait at collective, late post, late complete or lock held.
	For string `json:"for"`
	// Place is the call's place in the program.
	Place string `json:"callsite"`
	// Call is the MPI call there.
	Call string `json:"call"`
	// Ns is the time waited, by all ranks together.
	Ns int64 `json:"wait_ns"`
	// Calls is the number of calls that waited. A call that waited for several causes counts for each with a part.
	Calls int64 `json:"calls"`
	// LongestNs is the longest of these waits.
	LongestNs int64 `json:"longest_ns"`
	// LongestRank is the rank that waited longest.
	LongestRank int32 `json:"longest_rank"`
	// LongestAtNs is when that wait began, after the start of the run.
	LongestAtNs int64 `json:"longest_at_ns"`

	// Function has the call in it, and Callers are the places that call it, if there are several, the one with the
	// longest waits first.
	Function string   `json:"function"`
	Callers  []Caller `json:"callers"`

	calls  float64         // Calls before it is rounded
	bySite map[int32]int64 // Ns by call site
}

// Run diagnoses a run.
func Run(ctx context.Context, r *run.Run, o Options) (*Diagnosis, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	d := &Diagnosis{Run: r.Name, Ranks: int(r.Manifest.Ranks), Warnings: append([]string{}, o.Warnings...),
		Findings:     []Finding{},
		NotLookedFor: append([]NotLookedFor{}, o.NotLookedFor...)}
	if d.asked = o.Asked; d.asked == nil {
		d.asked = []string{r.Name}
	}
	target, err := TargetOf(r.Manifest, o.Target)
	if err != nil {
		return nil, fmt.Errorf("diagnose %s: %w", r.Name, err)
	}
	program, err := stored.ProgramOf(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("diagnose %s: %w", r.Name, err)
	}
	q := &search{d: d, w: &whatIf{simulation: &stored.Simulation{Run: r, Target: target, Program: program},
		step: o.Progress, memory: o.MemoryBytes,
		bounds: o.MostCalls > 0 && r.Manifest.Counts.Calls > o.MostCalls, kept: o.Kept}}
	if !q.w.bounds {
		err = q.w.keepRows(ctx)
	}
	if err == nil {
		err = q.run(ctx, r, target, o)
	}
	if err != nil {
		return nil, fmt.Errorf("diagnose %s: %w", r.Name, err)
	}
	return d, nil
}

// search makes a diagnosis: its stages add findings to d and simulate the run without them.
type search struct {
	d *Diagnosis
	w *whatIf
	// recordedNs is the measured duration of the program; 0 if unknown.
	recordedNs int64
}

// run does all stages, in their order.
func (q *search) run(ctx context.Context, r *run.Run, target *simulate.Target, o Options) error {
	computed, path, causes, err := q.explain(ctx, o.Target != nil)
	if err != nil {
		return err
	}
	q.d.TimeNs, q.d.StartupNs, q.d.Machine = path.DurationNs, path.StartupNs, target.Machine.Name
	used := coresOf(r, computed)
	simulated := o.Target != nil || simulatedInstead(r.Manifest, used)
	q.d.TimesSimulated = simulated
	if used.Waited() {
		q.d.Warnings = append(q.d.Warnings,
			sharedCores(r.Manifest, used, target.Machine.Name, q.recordedNs, q.d.TimeNs))
	}
	if q.w.bounds {
		q.bound(causes, r.Manifest.Counts.Calls, o.MostCalls)
	} else if err := q.simulate(ctx, causes); err != nil {
		return err
	}
	if q.d.SimulatedNs > 0 && float64(q.d.SimulatedNs) < mostlyComputing*float64(q.d.TimeNs) &&
		target.Machine.Name == idealNetwork && !used.Known {
		q.d.Warnings = append(q.d.Warnings, maybeSharedCores(q.d))
	}
	calls := onPath(path, r.Place(ctx))
	if err := q.simulateCalls(ctx, calls); err != nil {
		return err
	}
	q.d.Findings = append(q.d.Findings, calls...)
	if err := q.fromFiles(ctx, byLine(o.Evidence, r.Place(ctx)),
		q.bounds(path, simulated, r.Place(ctx))); err != nil {
		return err
	}
	var few *lack
	if variesByCores(r.Manifest, used) {
		l := lackOf(r.Manifest, used)
		few = &l
		q.doubtByCores(l, r.Manifest.TimeOrigin == "measured")
	}
	q.sort()
	q.limitGains()
	if err := q.sayInstead(ctx, r); err != nil {
		return err
	}
	ways, cost := pathsOf(r.Frames(ctx)), costsOf(computed, path)
	for i := range q.d.Findings {
		f := &q.d.Findings[i]
		f.Window = q.d.window(f)
		f.attach(computed, r.Place(ctx), q.d.Ranks)
		f.setCallers(ways, cost)
	}
	if n := o.Finding; n > 0 && n <= len(q.d.Findings) {
		if err := q.look(ctx, &q.d.Findings[n-1], path); err != nil {
			return err
		}
	}
	if q.d.Start, err = lateStart(ctx, r, few); err != nil {
		return err
	}
	return q.together(ctx)
}

// A doubtful finding is sorted as if it gained at most leastNamed of the time.
const leastNamed = 0.01

// sort sorts the findings by gain. Doubtful ones come after all others that gain at least leastNamed of the time: the
// others name something to do.
func (q *search) sort() {
	slices.SortStableFunc(q.d.Findings, func(a, b Finding) int { return cmp.Compare(q.weight(&b), q.weight(&a)) })
}

// weight returns the key by which findings are sorted, in ns.
func (q *search) weight(f *Finding) int64 {
	if f.doubtful {
		return min(f.GainNs, int64(leastNamed*float64(q.d.TimeNs)))
	}
	return f.GainNs
}

// limitGains limits the sum of the gains of sorted findings to the time of the run: two causes that share computing
// cannot both gain it. Costs that a rule from a file gives are not limited, and beside simulated gains a bound takes
// nothing from the others.
func (q *search) limitGains() {
	left := q.d.TimeNs
	for i := range q.d.Findings {
		switch f := &q.d.Findings[i]; {
		case f.excess && !q.w.bounds:
			f.GainNs = min(f.GainNs, q.d.TimeNs)
		case f.without != nil || f.boundNs > 0:
			f.GainNs = min(f.GainNs, left)
			left -= f.GainNs
		}
	}
	q.sort()
}

// explain finds the critical path and the causes of waits. It uses simulated times if they are asked for, or if the
// ranks waited for CPUs; otherwise the times of the run.
func (q *search) explain(ctx context.Context, simulated bool) (*computing, *critical.Path, []*cause,
	error) {
	r := q.w.simulation.Run
	rows, err := q.w.rows(ctx, simulated)
	if err != nil {
		return nil, nil, nil, err
	}
	e := rows.waits
	if r.Manifest.TimeOrigin == "measured" && e != nil {
		q.recordedNs = e.Path.DurationNs
	}
	if simulated || simulatedInstead(r.Manifest, coresOf(r, rows.computed)) {
		if e, err = q.w.explainUnchanged(ctx); err != nil {
			return nil, nil, nil, err
		}
	}
	if !q.w.bounds {
		if err := rows.computed.divide(ctx, r); err != nil {
			return nil, nil, nil, err
		}
	}
	machine, err := speedsOf(q.w.simulation.Target.Machine, int(r.Manifest.Ranks))
	if err != nil {
		return nil, nil, nil, err
	}
	causes := causesOf(e.Delays, rows.computed, r.Place(ctx), int(r.Manifest.Ranks), machine)
	q.d.computing = rows.computed.total(q.d.Ranks)
	for rank, ns := range q.d.computing {
		q.d.computing[rank] = machine.onMachine(int32(rank), ns)
	}
	if r.Manifest.Origin.Prediction != nil {
		causes = slices.DeleteFunc(causes, func(c *cause) bool { return c.rule == Variation })
		q.d.NotLookedFor = append(q.d.NotLookedFor, NotLookedFor{Variation,
			"the run was predicted; its computing does not vary as that of a run would"})
	}
	for _, c := range causes {
		c.found = c.instances(e.Path, r.Place(ctx))
	}
	return rows.computed, e.Path, causes, nil
}

// idealNetwork is the name of the machine on which messages take no time.
const idealNetwork = "an ideal network"

// isMachineOf reports whether a target is the one that a run was simulated on.
func isMachineOf(s *schema.Simulation, target *simulate.Target) bool {
	given := target.Origin()
	return s != nil && s.Machine == given.Machine && s.Digest == given.Digest && slices.Equal(s.Set, given.Set)
}

// withTimesOfMachine returns a target for compute times that are those of its CPUs already.
func withTimesOfMachine(target *simulate.Target) *simulate.Target {
	t, m := *target, *target.Machine
	m.CPURatio, m.Uneven = 1, slices.Clone(m.Uneven)
	for i := range m.Uneven {
		m.Uneven[i].CPURatio = 1
	}
	t.Machine = &m
	return &t
}

// TargetOf returns the machine for the simulations of a run with this manifest: the given one, else the one that its
// times are from, else an ideal network.
func TargetOf(m *schema.Manifest, given *simulate.Target) (*simulate.Target, error) {
	if given != nil && m.TimeOrigin == "simulated" && isMachineOf(m.Origin.Simulation, given) {
		return withTimesOfMachine(given), nil
	}
	if given != nil {
		return given, nil
	}
	if s := m.Origin.Simulation; s != nil && s.Description != "" && m.TimeOrigin != "measured" {
		target, err := simulate.TargetOf(s)
		if err != nil {
			return nil, fmt.Errorf("the machine of its times: %w", err)
		}
		// The compute times of a saved run, and of one where they are the gaps between calls, are the machine's
		// already.
		if m.TimeOrigin == "simulated" || m.ComputeClock == "none" {
			return withTimesOfMachine(target), nil
		}
		return target, nil
	}
	machine, err := models.Named("flat")
	if err != nil {
		return nil, err
	}
	ideal := machine.Ideal()
	ideal.Name = idealNetwork
	return &simulate.Target{Machine: ideal}, nil
}

// At most mostSimulated causes are simulated, those with the longest excess. Causes whose excess is below
// leastSimulated of the run's time are not simulated: removing them gains too little to be listed.
const (
	mostSimulated  = 8
	leastSimulated = 0.002
)

// simulate simulates the unchanged run, the run on an ideal network, and the run without each of the causes.
func (q *search) simulate(ctx context.Context, causes []*cause) error {
	result, err := q.w.unchanged(ctx)
	if err != nil {
		return err
	}
	q.w.baseNs = simulate.Nanoseconds(result.Time)
	q.d.SimulatedNs = q.w.baseNs
	ideal := result
	if !q.w.idealNetwork() {
		q.w.step("simulate: on an ideal network")
		if ideal, err = q.w.changed().SimulateIdeal(ctx); err != nil {
			return err
		}
	}
	if e := simulate.NewEfficiency(result, ideal); e != nil {
		q.d.Efficiency = &Efficiency{e.Parallel, e.LoadBalance, e.Serialisation, &e.Transfer}
		if q.d.Machine == idealNetwork {
			q.d.Efficiency.Transfer = nil
		}
	}
	q.d.Findings = append(q.d.Findings, q.ofCauses(causes)...)
	var gains []*gain
	for i := range q.d.Findings {
		f := &q.d.Findings[i]
		if f.without == nil {
			continue
		}
		what := fmt.Sprintf("without cause %d of %d", i+1, len(q.d.Findings))
		gains = append(gains, &gain{what, []*change{f.without()}, &f.GainNs})
		if least := f.least(); least != nil {
			gains = append(gains, &gain{what, []*change{least}, &f.MostNs})
		}
	}
	err = q.w.gains(ctx, gains)
	for i := range q.d.Findings { // a run can get longer, for example where messages then meet on a link
		q.d.Findings[i].GainNs = max(q.d.Findings[i].GainNs, 0)
	}
	if err != nil {
		return err
	}
	return q.serialSections(ctx)
}

// ofCauses returns the findings of the causes that may gain enough to be listed.
func (q *search) ofCauses(causes []*cause) (all []Finding) {
	for _, c := range causes[:min(mostSimulated, len(causes))] {
		if c.rule == Variation || float64(c.excessNs()) >= leastSimulated*float64(q.d.TimeNs) {
			f := c.finding()
			if q.sendsGoFree(c) {
				f.boundByExcess(q.d.TimeNs)
			}
			all = append(all, f)
		}
	}
	return all
}

// sendsGoFree reports whether simulations cannot show the gain of a cause: most of the sends that waited for it in the
// run's own times are not synchronous, so that they wait for nobody on an ideal network.
func (q *search) sendsGoFree(c *cause) bool {
	return c.rule == LateReceiver && c.standardNs > c.syncNs && q.d.Machine == idealNetwork && !q.d.TimesSimulated
}

// boundByExcess makes the excess of all ranks together the bound of the gain, which is not simulated then.
func (f *Finding) boundByExcess(timeNs int64) {
	f.without, f.boundNs = nil, min(timeNs, f.excessNs)
	f.GainNs, f.Bound, f.excess = f.boundNs, true, true
}

// bound adds the findings of causes without simulating them. The excess of all ranks together bounds the gain;
// variation has no bound and is left out.
func (q *search) bound(causes []*cause, calls, most int64) {
	for _, c := range causes {
		if c.rule == Variation {
			continue
		}
		for _, f := range q.ofCauses([]*cause{c}) {
			f.boundByExcess(q.d.TimeNs)
			q.d.Findings = append(q.d.Findings, f)
		}
	}
	q.d.Warnings = append(q.d.Warnings, fmt.Sprintf("the run has %s; above %s gains are bounds, not simulated; "+
		"--simulate-most %d simulates", units.Count(calls, "call"), units.Comma(most), calls))
}

// together simulates the run without the causes of the first three findings whose gains were simulated.
func (q *search) together(ctx context.Context) (err error) {
	simulated, largest := simulatedFirst(q.d)
	if len(simulated) == 0 {
		return nil
	}
	if len(simulated) > 1 {
		var causes []*change
		for _, i := range simulated {
			causes = append(causes, q.d.Findings[i].without())
		}
		if q.d.TogetherNs, err = q.w.gain(ctx, "without the first causes", causes...); err != nil {
			return err
		}
	}
	q.d.TogetherNs = max(q.d.TogetherNs, q.d.Findings[largest].GainNs)
	return nil
}
