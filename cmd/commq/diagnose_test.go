package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/diagnose"
	"github.com/commq/commq/diagnose/growth"
	"github.com/commq/commq/schema/schematest"
)

// planted is a fault of a program and what commq diagnose must say of it first.
type planted struct {
	fault string
	rule  diagnose.Rule // "" means that nothing may cost 1 % of the time
	ranks []int32
	// gain is what mending it gains in the whole run, by the size of the fault: the us that the program is given. 0
	// means that nobody knows: how long a library takes for a message, for example.
	gain float64
	// how is the machine that the diagnosis simulates the run on: none, rendezvous or simulatedFirst.
	how string
}

// plantedSteps is the number of steps that the programs do.
const plantedSteps = 12

// plantedIn has the faults of each program on 4 ranks. The arithmetic of the gains: of an imbalance, the others take
// over their part; what comes too early can come later as a whole.
var plantedIn = map[string][]planted{
	"planted.c": {
		{"imbalance_barrier", diagnose.Imbalance, []int32{1}, plantedSteps * 3. / 4, ""},
		{"imbalance_alltoall", diagnose.Imbalance, []int32{2, 3}, plantedSteps / 2., ""},
		{"imbalance_last", diagnose.Imbalance, []int32{1}, plantedSteps * 3. / 4, ""},
		{"imbalance_growing", diagnose.Imbalance, []int32{1}, plantedSteps * 3. / 4, ""},
		{"imbalance_linear", diagnose.Imbalance, []int32{2, 3}, plantedSteps * (3 - 6./4), ""},
		{"imbalance_ring", diagnose.Imbalance, []int32{2}, plantedSteps * 3. / 4, ""},
		{"imbalance_everywhere", diagnose.Imbalance, []int32{1}, plantedSteps * 3. / 4, ""},
		{"variation", diagnose.Variation, nil, plantedSteps * 3. / 4, ""},
		{"late_sender", diagnose.LateSender, []int32{0, 2}, plantedSteps, ""},
		{"late_sender_nonblocking", diagnose.LateSender, []int32{1}, plantedSteps, ""},
		{"late_sender_neighbours", diagnose.LateSender, []int32{1}, plantedSteps, ""},
		{"late_sender_chain", diagnose.LateSender, []int32{0}, plantedSteps, ""},
		{"late_receiver", diagnose.LateReceiver, []int32{1, 3}, plantedSteps, rendezvous},
		{"late_root", diagnose.LateRoot, []int32{0}, plantedSteps, ""},
		{"late_scatter", diagnose.LateRoot, []int32{3}, plantedSteps, ""},
		{"early_root", diagnose.EarlyRoot, []int32{2}, plantedSteps, ""},
		{"early_gather", diagnose.EarlyRoot, []int32{2}, plantedSteps, ""},
		{"late_collective", diagnose.LateCollective, []int32{1}, plantedSteps, ""},
		{"late_scan", diagnose.LateCollective, []int32{0}, plantedSteps, ""},
		// A broadcast for every 50 us takes 2 latencies of 3 us (log2 of 4 ranks) and a little for 8 bytes.
		{"many_broadcasts", diagnose.CollectiveTime, nil, plantedSteps * 6. / 50, ""},
		// Messages for every 25 us take a latency.
		{"many_messages", diagnose.Communication, nil, plantedSteps * 3. / 25, ""},
		{"imbalance_waitall", diagnose.Imbalance, []int32{3}, plantedSteps * 3. / 4, ""},
		{"imbalance_testall", diagnose.Imbalance, []int32{3}, plantedSteps * 3. / 4, ""},
		{"imbalance_sendrecv", diagnose.Imbalance, []int32{0}, plantedSteps * 3. / 4, ""},
		{"imbalance_persistent", diagnose.Imbalance, []int32{1}, plantedSteps * 3. / 4, ""},
		{"imbalance_pair", diagnose.Imbalance, []int32{2, 3}, plantedSteps / 2., ""},
		{"imbalance_subcommunicator", diagnose.Imbalance, []int32{1}, plantedSteps * 3. / 4, ""},
		// Three ranks compute.
		{"imbalance_worker", diagnose.Imbalance, []int32{2}, plantedSteps * 2. / 3, ""},
		{"imbalance_pipeline", diagnose.Imbalance, []int32{2}, plantedSteps * 3. / 4, ""},
		{"imbalance_fence", diagnose.Imbalance, []int32{1}, plantedSteps * 3. / 4, ""},
		{"variation_ring", diagnose.Variation, nil, plantedSteps * 3. / 4, ""},
		{"late_sender_waitall", diagnose.LateSender, []int32{0, 2}, plantedSteps, ""},
		{"late_sender_probe", diagnose.LateSender, []int32{3}, plantedSteps, ""},
		{"late_sender_persistent", diagnose.LateSender, []int32{1, 3}, plantedSteps, ""},
		// Four ranks compute one after the other, and then all at once.
		{"serialised_chain", diagnose.LateSender, []int32{0, 1, 2, 3}, plantedSteps * 3, ""},
		// So do four ranks for 4 us; the last then computes alone as long again.
		{"token", diagnose.LateSender, []int32{0, 1, 2, 3}, plantedSteps*8 + 4, ""},
		{"late_receiver_rendezvous", diagnose.LateReceiver, []int32{1}, plantedSteps, rendezvous},
		{"late_receiver_nonblocking", diagnose.LateReceiver, []int32{2}, plantedSteps, rendezvous},
		{"late_broadcast_subcommunicator", diagnose.LateRoot, []int32{2}, plantedSteps, ""},
		{"late_ibcast", diagnose.LateRoot, []int32{1}, plantedSteps, ""},
		{"early_gatherv", diagnose.EarlyRoot, []int32{3}, plantedSteps, ""},
		{"late_alltoallv", diagnose.LateCollective, []int32{2}, plantedSteps, ""},
		{"late_exscan", diagnose.LateCollective, []int32{0}, plantedSteps, ""},
		{"late_iallreduce", diagnose.LateCollective, []int32{3}, plantedSteps, ""},
		// A barrier for every 100 us takes 8 latencies.
		{"many_barriers", diagnose.CollectiveTime, nil, plantedSteps * 24. / 100, ""},
		// 560 bytes for each us, at 700 bytes per us.
		{"long_messages", diagnose.Communication, nil, plantedSteps * 560 / 700., ""},
		{"wait_order", "wait-order", []int32{0}, plantedSteps, ""},
		{"wildcard_receives", "wildcard-receives", []int32{0}, plantedSteps, ""},
		{"oversized_collective", "oversized-collective", []int32{2, 3}, plantedSteps, ""},
		{"late_neighbour", diagnose.LateCollective, []int32{1}, plantedSteps, ""},
		// The four ranks share it.
		{"serial_section", diagnose.SerialSection, []int32{0}, plantedSteps * 3. / 4, ""},
		{"serial_messages", diagnose.SerialSection, []int32{3}, plantedSteps * 3. / 4, ""},
		{"synchronous_send", "synchronous-sends", []int32{0, 2}, plantedSteps, simulatedFirst},
		{"synchronous_nonblocking", "synchronous-sends", []int32{0, 2}, plantedSteps, simulatedFirst},
		{"synchronous_persistent", "synchronous-sends", []int32{0, 2}, plantedSteps, simulatedFirst},
		{"late_fence", diagnose.LateCollective, []int32{1}, plantedSteps, rendezvous},
		{"late_post", diagnose.LatePost, []int32{1, 3}, plantedSteps, rendezvous},
		{"late_complete", diagnose.LateComplete, []int32{0, 2}, plantedSteps, rendezvous},
		// The other rank wants the lock after a tenth of the time for which it is kept.
		{"long_lock", diagnose.LongLock, []int32{0, 2}, plantedSteps * 9. / 10, rendezvous},
	},
	"planted_f.F90": {
		{fault: "none"},
		{"imbalance_allreduce", diagnose.Imbalance, []int32{2}, plantedSteps * 3. / 4, ""},
		{"imbalance_sendrecv", diagnose.Imbalance, []int32{3}, plantedSteps * 3. / 4, ""},
		{"variation", diagnose.Variation, nil, plantedSteps * 3. / 4, ""},
		{"late_sender", diagnose.LateSender, []int32{0, 2}, plantedSteps, ""},
		{"late_receiver", diagnose.LateReceiver, []int32{1, 3}, plantedSteps, rendezvous},
		{"late_root", diagnose.LateRoot, []int32{1}, plantedSteps, ""},
		{"early_root", diagnose.EarlyRoot, []int32{3}, plantedSteps, ""},
		{"late_collective", diagnose.LateCollective, []int32{2}, plantedSteps, ""},
		{"late_scan", diagnose.LateCollective, []int32{0}, plantedSteps, ""},
		{"many_broadcasts", diagnose.CollectiveTime, nil, plantedSteps * 6. / 50, ""},
		{"long_messages", diagnose.Communication, nil, plantedSteps * 560 / 700., ""},
		{"serialised_chain", diagnose.LateSender, []int32{0, 1, 2, 3}, plantedSteps * 3, ""},
		{"serial_section", diagnose.SerialSection, []int32{0}, plantedSteps * 3. / 4, ""},
		{"wait_order", "wait-order", []int32{0}, plantedSteps, ""},
		{"wildcard_receives", "wildcard-receives", []int32{0}, plantedSteps, ""},
		{"oversized_collective", "oversized-collective", []int32{2, 3}, plantedSteps, ""},
	},
	"planted_none.c": {
		{fault: "shift"}, {fault: "ring"}, {fault: "alltoall"}, {fault: "stencil"}, {fault: "butterfly"},
		{fault: "pipeline"},
		{fault: "master_worker"}, {fault: "overlap"}, {fault: "subcommunicators"}, {fault: "persistent"},
		{fault: "one_sided"}, {fault: "exposure"},
	},
}

// rendezvous is what to add to slowMachine so that sends of long messages wait. In virtual times no send waits.
const rendezvous = "eager_threshold_bytes: 32768\n"

// simulatedFirst is the same machine, on which the run is simulated first: rules that are files ask its times.
const simulatedFirst = rendezvous + "# saved\n"

// plantedUs are the sizes of each fault in us per step. The programs compute 20 ms in each.
var plantedUs = []int{5000, 500}

// diagnose names the planted fault first, at its line, with the gain that it was planted with, and nothing else that
// matters. Each fault is run by both MPI libraries, large by one and small by the other.
func TestDiagnoseFindsPlantedFaults(t *testing.T) {
	captureEnvironment(t)
	machines := map[string]string{}
	for _, how := range []string{"", rendezvous, simulatedFirst} {
		machines[how] = filepath.Join(t.TempDir(), "machine.yaml")
		if err := os.WriteFile(machines[how], []byte(slowMachine+how), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for source, faults := range plantedIn {
		lines := plantedLines(t, source)
		for l, library := range []string{"openmpi", "mpich"} {
			exe := compilePlanted(t, library, source)
			for i, p := range faults {
				for k, us := range plantedUs {
					if p.rule == "" && k > 0 || p.rule != "" && (i+k)%2 != l {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%s/%d", library, source, p.fault, us), func(t *testing.T) {
						if p.how != simulatedFirst {
							p.compare(t, p.diagnosed(t, exe, machines, us), us, lines[p.fault])
							return
						}
						// Simulations need compute times that were measured, and a machine that is busy in the middle
						// of a step changes these: such a capture is repeated.
						exe := compilePlanted(t, library, source, "-DNATIVE")
						d := p.diagnosed(t, exe, machines, us)
						for tries := 1; tries < 3 && !p.gains(d, us); tries++ {
							d = p.diagnosed(t, exe, machines, us)
						}
						p.compare(t, d, us, lines[p.fault])
					})
				}
			}
		}
	}
}

// diagnosed captures the program with this fault in virtual times, and diagnoses it on the machine that the fault needs.
func (p *planted) diagnosed(t *testing.T, exe string, machines map[string]string, us int) *diagnose.Diagnosis {
	t.Helper()
	store, clock := t.TempDir(), "none"
	if p.how == simulatedFirst {
		clock = "cpu"
	}
	commq(t, "capture", "--store", store, "--name", "r", "-q", "-n", "4", "--sim-ranks", "1", "--machine", machines[""],
		"--clock", clock, "--", exe, p.fault, fmt.Sprint(us), fmt.Sprint(plantedSteps))
	line := []string{"diagnose", "--store", store, "r", "--format", "json"}
	if p.how == simulatedFirst {
		commq(t, "simulate", "--store", store, "r", "--machine", machines[p.how], "--name", "s", "-q")
		line[3] = "s"
	} else if p.how != "" {
		line = append(line, "--machine", machines[p.how])
	}
	d := new(diagnose.Diagnosis)
	if err := json.Unmarshal([]byte(commq(t, line...)), d); err != nil {
		t.Fatal(err)
	}
	return d
}

// gains is true if a finding of the fault's rule gains what the fault costs, within 10 %.
func (p *planted) gains(d *diagnose.Diagnosis, us int) bool {
	want := p.gain * float64(us) * 1000
	return slices.ContainsFunc(d.Findings, func(f diagnose.Finding) bool {
		return f.Rule == p.rule && math.Abs(float64(f.GainNs)-want) <= 0.1*want
	})
}

// compilePlanted compiles a program so that its call sites are known; modules go to a folder of their own.
func compilePlanted(t *testing.T, library, source string, flags ...string) string {
	t.Helper()
	flags = append(flags, "-g", "-fno-optimize-sibling-calls")
	if strings.HasSuffix(source, ".F90") {
		flags = append(flags, "-J"+t.TempDir())
	}
	return compileMPI(t, library, source, flags...)
}

// Faults are found in measured times too. Two ranks have a core each on most machines; where they have not, diagnose
// says so and uses the CPU times, so that other processes change nothing. The late rank and the one that it delays can
// both be mended, so that other findings matter as well.
func TestDiagnoseFindsPlantedFaultsInMeasuredTimes(t *testing.T) {
	captureEnvironment(t)
	const steps, us = 8, 30000
	lines := plantedLines(t, "planted.c")
	for _, library := range []string{"openmpi", "mpich"} {
		exe := compilePlanted(t, library, "planted.c", "-DNATIVE")
		for _, p := range []planted{
			{"imbalance_barrier", diagnose.Imbalance, []int32{1}, steps / 2., ""},
			{"imbalance_sendrecv", diagnose.Imbalance, []int32{0}, steps / 2., ""},
			{"late_sender", diagnose.LateSender, []int32{0}, steps, ""},
			{"late_root", diagnose.LateRoot, []int32{0}, steps, ""},
			{"late_collective", diagnose.LateCollective, []int32{1}, steps, ""},
		} {
			t.Run(library+"/"+p.fault, func(t *testing.T) {
				p.compareFirst(t, diagnoseMeasured(t, exe, p.fault, us, steps, "cpu"), us, lines[p.fault])
			})
		}
	}
}

// Tests and probes in vain, messages before their receive, slow files and ranks that start late are there in measured
// times only. The first two are lost where times are simulated for want of cores, as they are with a clock that stops
// for other processes. Without one all time between calls is computing. On a busy machine a rank polls for longer,
// wakes up later from a slow file, and starts still later.
func TestDiagnoseFindsPlantedFaultsOfMeasuredTimes(t *testing.T) {
	captureEnvironment(t)
	const steps = 8
	lines := plantedLines(t, "planted_measured.c")
	maps.Copy(lines, plantedLines(t, "planted.h"))
	for _, library := range []string{"openmpi", "mpich"} {
		exe := compilePlanted(t, library, "planted_measured.c")
		for _, c := range []struct {
			us    int // of late_start so long that it counts on a busy machine
			clock string
			planted
			least float64 // steps of the gain, which a busy machine may change
		}{
			{30000, "none", planted{"polling", "polling", []int32{0}, 0, ""}, steps},
			{30000, "none", planted{"unexpected_messages", "unexpected-messages", []int32{1}, 0, ""}, 0},
			{30000, "cpu", planted{"file_time", diagnose.FileTime, nil, 0, ""}, steps},
			// The launcher may start the other rank late, too.
			{250000, "cpu", planted{"late_start", diagnose.LateStart, []int32{1}, 0, ""}, 0.75 * steps},
		} {
			t.Run(library+"/"+c.fault, func(t *testing.T) {
				d := diagnoseMeasured(t, exe, c.fault, c.us, steps, c.clock)
				if c.rule == diagnose.LateStart && d.Start != nil {
					d.Findings = []diagnose.Finding{*d.Start}
				}
				c.compareFirst(t, d, c.us, lines[c.fault])
				i := slices.IndexFunc(d.Findings, func(f diagnose.Finding) bool { return f.Rule == c.rule })
				if least := 0.9 * c.least * float64(c.us) * 1000; i >= 0 && float64(d.Findings[i].GainNs) < least {
					t.Errorf("%s gains %d ns, want %.0f at least", c.rule, d.Findings[i].GainNs, least)
				}
			})
		}
	}
}

// diagnoseMeasured captures a program on two ranks with this clock for computing, and diagnoses it.
func diagnoseMeasured(t *testing.T, exe, fault string, us, steps int, clock string) *diagnose.Diagnosis {
	t.Helper()
	store := t.TempDir()
	commq(t, "capture", "--store", store, "--name", "r", "-q", "-n", "2", "--clock", clock, "--", exe, fault,
		fmt.Sprint(us), fmt.Sprint(steps))
	var d diagnose.Diagnosis
	if err := json.Unmarshal([]byte(commq(t, "diagnose", "--store", store, "r", "--format", "json")), &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// compare checks a diagnosis of the fault with us per step. line is where the fault is in the program.
func (p *planted) compare(t *testing.T, d *diagnose.Diagnosis, us int, line string) {
	t.Helper()
	rest := d.Findings
	if p.rule != "" {
		rest = p.compareFirst(t, d, us, line)
	}
	for _, f := range rest {
		if p.rule == diagnose.Communication && f.Rule == "small-messages" && strings.HasSuffix(f.Place, line) {
			continue // another name for the same
		}
		if share := float64(f.GainNs) / float64(d.TimeNs); share >= 0.01 {
			t.Errorf("%s of %v at %s gains %.1f %% and was not planted", f.Rule, f.Ranks, f.Place, 100*share)
		}
	}
}

// compareFirst checks the rule, ranks, line and gain of the first finding, and returns the others.
func (p *planted) compareFirst(t *testing.T, d *diagnose.Diagnosis, us int, line string) []diagnose.Finding {
	t.Helper()
	all := d.Findings
	if !slices.Contains(diagnose.Rules, p.rule) {
		// What the ranks wait for has other causes too, which rules that are not files name.
		all = slices.DeleteFunc(slices.Clone(all), func(f diagnose.Finding) bool {
			return f.Rule != p.rule && slices.Contains(diagnose.Rules, f.Rule)
		})
	}
	if len(all) == 0 {
		t.Fatalf("nothing was found; want %s", p.rule)
	}
	f := &all[0]
	if f.Rule != p.rule || fmt.Sprint(f.Ranks) != fmt.Sprint(p.ranks) {
		t.Errorf("the first finding is %s of ranks %v, want %s of %v", f.Rule, f.Ranks, p.rule, p.ranks)
	}
	if p.rule != diagnose.Variation && !strings.HasSuffix(f.Place, line) {
		t.Errorf("it is at %s, want %s", f.Place, line)
	}
	gain := p.gain * float64(us) * 1000
	if math.Abs(float64(f.GainNs)-gain) > gain/10 && p.gain > 0 || f.GainNs <= 0 {
		t.Errorf("it gains %d ns, want %.0f within 10 %%", f.GainNs, gain)
	}
	if f.Bound && slices.Contains(diagnose.Rules, f.Rule) {
		t.Error("the gain is not simulated")
	}
	return all[1:]
}

// Over several runs diagnose finds the laws of growing.c: rank 1 computes 12 times 4 ms more, of which the others could
// take over all but 1 of P parts, and the root works 12 times 250 us for each rank.
func TestDiagnoseSeveralRuns(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		exe := compileMPI(t, library, "growing.c", "-g", "-fno-optimize-sibling-calls")
		store, machine := t.TempDir(), filepath.Join(t.TempDir(), "machine.yaml")
		if err := os.WriteFile(machine, []byte(slowMachine), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, n := range []string{"2", "4", "6", "8"} {
			commq(t, "capture", "--store", store, "--name", "growing."+n, "-q", "-n", n, "--sim-ranks", "1",
				"--machine", machine,
				"--clock", "none", "--", exe)
		}
		var g growth.Growth
		if err := json.Unmarshal([]byte(commq(t, "diagnose", "--store", store, "growing.*", "--format", "json")),
			&g); err != nil {
			t.Fatal(err)
		}
		imbalance, root := g.Findings[0], g.Findings[1]
		if imbalance.Rule != diagnose.Imbalance || root.Rule != diagnose.LateRoot || imbalance.GainLaw == nil ||
			root.GainLaw == nil {
			t.Fatalf("%s: %+v, %+v", library, imbalance, root)
		}
		if root.GainLaw.Formula != "0.003 P" || imbalance.GainLaw.Formula != "0.048 (P-1)/P" {
			t.Errorf("%s: the root gains %s, the imbalance %s", library, root.GainLaw.Formula,
				imbalance.GainLaw.Formula)
		}
		// 0.003 P is above 0.048 (P-1)/P from 15 ranks on.
		if fmt.Sprint(imbalance.First) != "[2 4 6 8]" || root.FirstByLaw < 14 || root.FirstByLaw > 16 {
			t.Errorf("%s: the imbalance is first on %v ranks, the root from %d on", library, imbalance.First,
				root.FirstByLaw)
		}
	}
}

// plantedLines finds the lines of a program that end in the name of a fault: its file and number by fault.
func plantedLines(t *testing.T, source string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(programsDir, source))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for i, line := range strings.Split(string(text), "\n") {
		for _, comment := range []string{"/* fault ", "! fault "} {
			if _, fault, found := strings.Cut(line, comment); found {
				lines[strings.TrimSuffix(fault, " */")] = fmt.Sprintf("%s:%d", source, i+1)
			}
		}
	}
	return lines
}

// What commq doctor finds wrong with a recording is a warning of the diagnosis.
func TestDiagnoseWarnsOfTheRecording(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uneven.4")
	if err := os.CopyFS(dir, os.DirFS("../../testdata/runs/uneven.4")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "manifest.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), `"unmatched_sends": 0`, `"unmatched_sends": 3`, 1)
	if changed == string(text) {
		t.Fatal("the manifest does not count unmatched sends")
	}
	for _, c := range []struct{ manifest, want string }{
		{string(text), ""},
		{changed, "the recording (unmatched): 3 sends and 0 receives without a partner"},
	} {
		err := errors.Join(os.WriteFile(file, []byte(c.manifest), 0o644), schematest.SealManifest(file))
		if err != nil {
			t.Fatal(err)
		}
		var d diagnose.Diagnosis
		if err := json.Unmarshal([]byte(commq(t, "diagnose", "--run", dir, "--format", "json")), &d); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(d.Warnings, "; "); got != c.want {
			t.Errorf("warnings %q, want %q", got, c.want)
		}
	}
}

// Computing of an extrapolated run does not vary as that of a run: diagnose does not look for variation there.
func TestDiagnoseOfAPredictedRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uneven.4")
	if err := os.CopyFS(dir, os.DirFS("../../testdata/runs/uneven.4")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "manifest.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, predicted := range []bool{false, true} {
		if predicted {
			text = []byte(strings.Replace(string(text), `"origin": {`,
				`"origin": {"prediction": {"runs": [{"name": "uneven.2", "ranks": 2}]},`, 1))
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var d diagnose.Diagnosis
		if err := json.Unmarshal([]byte(commq(t, "diagnose", "--run", dir, "--format", "json")), &d); err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(d.Findings, func(f diagnose.Finding) bool { return f.Rule == diagnose.Variation })
		not := slices.ContainsFunc(d.NotLookedFor, func(n diagnose.NotLookedFor) bool { return n.Rule == diagnose.Variation })
		if found == predicted || not != predicted {
			t.Errorf("predicted %v: variation found %v, not looked for %v", predicted, found, not)
		}
	}
}

// Ranks that compute longer at different lines are findings of their own, each with its ranks, line and gain.
func TestDiagnoseTellsGroupsOfRanksApart(t *testing.T) {
	captureEnvironment(t)
	lines := plantedLines(t, "planted.c")
	for _, library := range []string{"openmpi", "mpich"} {
		exe := compilePlanted(t, library, "planted.c")
		machine, store := filepath.Join(t.TempDir(), "machine.yaml"), t.TempDir()
		if err := os.WriteFile(machine, []byte(slowMachine), 0o644); err != nil {
			t.Fatal(err)
		}
		commq(t, "capture", "--store", store, "--name", "r", "-q", "-n", "4", "--sim-ranks", "1", "--machine", machine,
			"--clock", "none", "--", exe, "two_groups", "5000", fmt.Sprint(plantedSteps))
		var d diagnose.Diagnosis
		if err := json.Unmarshal([]byte(commq(t, "diagnose", "--store", store, "r", "--format", "json")),
			&d); err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct {
			fault  string
			ranks  []int32
			gainNs float64
		}{{"two_groups", []int32{3}, 5e6 * plantedSteps}, {"two_groups_send", []int32{0, 1}, 3e6 * plantedSteps}} {
			f := d.Findings[i]
			if f.Rule != diagnose.Imbalance || fmt.Sprint(f.Ranks) != fmt.Sprint(want.ranks) ||
				!strings.HasSuffix(f.Place, lines[want.fault]) ||
				math.Abs(float64(f.GainNs)-want.gainNs) > want.gainNs/10 {
				t.Errorf("%s of ranks %v at %s gains %d ns; want %+v", f.Rule, f.Ranks, f.Place, f.GainNs, want)
			}
		}
		if third := d.Findings[2]; float64(third.GainNs) >= 0.01*float64(d.TimeNs) {
			t.Errorf("%s gains %d ns and was not planted", third.Title, third.GainNs)
		}
	}
}

// Other commands that diagnose have the limits of commq diagnose.
func TestDefaultsOfOtherDiagnoses(t *testing.T) {
	flags := newDiagnoseCommand(&app{}).Flags()
	how := newDiagnoseOptions(4096, "")
	for name, got := range map[string]any{"memory": how.memory, "simulate-most": how.most, "least": how.least} {
		if want := flags.Lookup(name).DefValue; fmt.Sprint(got) != want {
			t.Errorf("--%s: %v, want %s", name, got, want)
		}
	}
}
