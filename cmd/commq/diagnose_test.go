package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/diagnose"
	"github.com/commq/commq/diagnose/growth"
)

// planted is a fault of testdata/programs/planted.c and what commq diagnose must say of it first.
type planted struct {
	fault string
	rule  diagnose.Rule // "" means that nothing may cost 1 % of the time
	ranks []int32
	// gainUs is what mending it gains in each of the steps, in us, with us of the fault per step.
	gainUs, us int
	// simulated means that the fault is not in virtual times, but in simulated ones.
	simulated bool
}

// The others take over their part of an imbalance. many_broadcasts and many_messages do something once for every 10
// us: a broadcast takes 2 latencies of 3 us (log2 of 4 ranks) and a little for 8 bytes; a message and its answer take
// one latency each, at two lines that are findings of their own.
var plantedFaults = []planted{
	{fault: "none", us: 5000},
	{"imbalance_barrier", diagnose.Imbalance, []int32{1}, 3750, 5000, false},
	{"imbalance_alltoall", diagnose.Imbalance, []int32{2, 3}, 2500, 5000, false},
	{"imbalance_linear", diagnose.Imbalance, []int32{2, 3}, 1500 * 5, 5000, false},
	{"imbalance_ring", diagnose.Imbalance, []int32{2}, 3750, 5000, false},
	{"variation", diagnose.Variation, nil, 3750, 5000, false},
	{"late_sender", diagnose.LateSender, []int32{0, 2}, 5000, 5000, false},
	{"late_sender", diagnose.LateSender, []int32{0, 2}, 500, 500, false},
	{"late_sender_nonblocking", diagnose.LateSender, []int32{1}, 5000, 5000, false},
	{"late_sender_chain", diagnose.LateSender, []int32{0}, 5000, 5000, false},
	{"late_receiver", diagnose.LateReceiver, []int32{1, 3}, 5000, 5000, true},
	{"late_root", diagnose.LateRoot, []int32{0}, 5000, 5000, false},
	{"late_scatter", diagnose.LateRoot, []int32{3}, 5000, 5000, false},
	{"early_root", diagnose.EarlyRoot, []int32{2}, 5000, 5000, false},
	{"early_gather", diagnose.EarlyRoot, []int32{2}, 5000, 5000, false},
	{"late_collective", diagnose.LateCollective, []int32{1}, 5000, 5000, false},
	{"late_scan", diagnose.LateCollective, []int32{0}, 5000, 5000, false},
	{"many_broadcasts", diagnose.CollectiveTime, nil, 3000, 5000, false},
	{"many_messages", diagnose.Communication, nil, 1500, 5000, false},
	{"wait_order", "wait-order", []int32{0}, 5000, 5000, false},
	{"wildcard_receives", "wildcard-receives", []int32{0}, 5000, 5000, false},
	{"oversized_collective", "oversized-collective", []int32{2, 3}, 5000, 5000, false},
}

// plantedSteps is the number of steps that planted.c does.
const plantedSteps = 12

// diagnose names the planted fault first, at its line, with the gain that it was planted with, and nothing else that
// matters.
func TestDiagnoseFindsPlantedFaults(t *testing.T) {
	captureEnvironment(t)
	lines := plantedLines(t)
	for _, library := range []string{"openmpi", "mpich"} {
		exe := compileMPI(t, library, "planted.c", "-g", "-fno-optimize-sibling-calls")
		machine := filepath.Join(t.TempDir(), "machine.yaml")
		if err := os.WriteFile(machine, []byte(slowMachine), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, p := range plantedFaults {
			t.Run(fmt.Sprintf("%s/%s/%d", library, p.fault, p.us), func(t *testing.T) {
				store := t.TempDir()
				commq(t, "capture", "--store", store, "--name", "r", "-q", "-n", "4", "--sim-ranks", "1", "--machine", machine,
					"--clock", "none", "--", exe, p.fault, fmt.Sprint(p.us), fmt.Sprint(plantedSteps))
				line := []string{"diagnose", "--store", store, "r", "--format", "json"}
				if p.simulated {
					line = append(line, "--machine", machine)
				}
				var d diagnose.Diagnosis
				if err := json.Unmarshal([]byte(commq(t, line...)), &d); err != nil {
					t.Fatal(err)
				}
				p.compare(t, &d, lines)
			})
		}
	}
}

// compare checks a diagnosis of the fault. lines is the line of each fault in the program.
func (p *planted) compare(t *testing.T, d *diagnose.Diagnosis, lines map[string]int) {
	t.Helper()
	rest := d.Findings
	if p.rule != "" {
		if len(d.Findings) == 0 {
			t.Fatalf("nothing was found; want %s", p.rule)
		}
		if !slices.Contains(diagnose.Rules, p.rule) {
			// What the ranks wait for has other causes too, which rules that are not files name.
			rest = slices.DeleteFunc(slices.Clone(rest), func(f diagnose.Finding) bool {
				return f.Rule != p.rule && slices.Contains(diagnose.Rules, f.Rule)
			})
		}
		if len(rest) == 0 {
			t.Fatalf("no finding of a file; want %s", p.rule)
		}
		f := &rest[0]
		if f.Rule != p.rule || fmt.Sprint(f.Ranks) != fmt.Sprint(p.ranks) {
			t.Errorf("the first finding is %s of ranks %v, want %s of %v", f.Rule, f.Ranks, p.rule, p.ranks)
		}
		want := fmt.Sprintf("planted.c:%d", lines[p.fault])
		if p.rule != diagnose.Variation && !strings.HasSuffix(f.Place, want) {
			t.Errorf("it is at %s, want %s", f.Place, want)
		}
		gain := float64(p.gainUs) * 1000 * plantedSteps
		if math.Abs(float64(f.GainNs)-gain) > gain/10 {
			t.Errorf("it gains %d ns, want %.0f within 10 %%", f.GainNs, gain)
		}
		if f.Bound {
			t.Error("the gain is not simulated")
		}
		rest = rest[1:]
	}
	for _, f := range rest {
		// Both ends of a message wait for each other in many_messages.
		if share := float64(f.GainNs) / float64(d.TimeNs); share >= 0.01 && p.rule != diagnose.Communication {
			t.Errorf("%s at %s gains %.1f %% and was not planted", f.Rule, f.Place, 100*share)
		}
	}
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
			commq(t, "capture", "--store", store, "--name", "growing."+n, "-q", "-n", n, "--sim-ranks", "1", "--machine", machine,
				"--clock", "none", "--", exe)
		}
		var g growth.Growth
		if err := json.Unmarshal([]byte(commq(t, "diagnose", "--store", store, "growing.*", "--format", "json")), &g); err != nil {
			t.Fatal(err)
		}
		imbalance, root := g.Findings[0], g.Findings[1]
		if imbalance.Rule != diagnose.Imbalance || root.Rule != diagnose.LateRoot || imbalance.GainLaw == nil || root.GainLaw == nil {
			t.Fatalf("%s: %+v, %+v", library, imbalance, root)
		}
		if root.GainLaw.Formula != "0.003 P" || imbalance.GainLaw.Formula != "0.048 (P-1)/P" {
			t.Errorf("%s: the root gains %s, the imbalance %s", library, root.GainLaw.Formula, imbalance.GainLaw.Formula)
		}
		// 0.003 P is above 0.048 (P-1)/P from 15 ranks on.
		if fmt.Sprint(imbalance.First) != "[2 4 6 8]" || root.FirstByLaw < 14 || root.FirstByLaw > 16 {
			t.Errorf("%s: the imbalance is first on %v ranks, the root from %d on", library, imbalance.First, root.FirstByLaw)
		}
	}
}

// plantedLines finds the lines of planted.c that end in the name of a fault.
func plantedLines(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(programsDir, "planted.c"))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for i, line := range strings.Split(string(text), "\n") {
		if _, fault, found := strings.Cut(line, "/* fault "); found {
			lines[strings.TrimSuffix(fault, " */")] = i + 1
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
		if err := os.WriteFile(file, []byte(c.manifest), 0o644); err != nil {
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
