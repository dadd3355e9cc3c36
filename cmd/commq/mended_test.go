package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/commq/commq/diagnose"
)

// mendable is a fault of testdata/programs/mended.c.
type mendable struct {
	fault string
	rule  diagnose.Rule // that names it
	us    int           // per step
	// all means that the mended program does not do the work at all, instead of elsewhere.
	all bool
	// simulated means that the fault is not in virtual times, but in simulated ones.
	simulated bool
}

var mendableFaults = []mendable{
	{"uneven", diagnose.Imbalance, 5000, false, false},
	{"uneven_part", diagnose.Imbalance, 5000, false, false},
	{"triangle", diagnose.Imbalance, 1000, false, false},
	{"write_alone", diagnose.Imbalance, 5000, true, false},
	{"in_turn", diagnose.Variation, 5000, false, false},
	{"barrier", diagnose.Variation, 5000, false, false},
	{"send_late", diagnose.LateSender, 5000, false, false},
	{"chain", diagnose.LateSender, 5000, false, false},
	{"receive_late", diagnose.LateReceiver, 5000, false, true},
	{"synchronous", diagnose.LateReceiver, 5000, false, true},
	{"broadcast_late", diagnose.LateRoot, 5000, false, false},
	{"gather_late", diagnose.EarlyRoot, 5000, false, false},
	{"sum_late", diagnose.LateCollective, 5000, false, false},
	{"sum_often", diagnose.CollectiveTime, 5000, false, false},
	{"pieces", diagnose.Communication, 0, false, false},
	{"repeated", diagnose.Communication, 0, false, false},
}

// The gain that diagnose predicts of a fault is what the program gains when its source is mended. The gains of calls
// that take long themselves are bounds, since the mended program still does one of them.
func TestDiagnosePredictsGains(t *testing.T) {
	captureEnvironment(t)
	exe := compileMPI(t, "openmpi", "mended.c", "-g", "-fno-optimize-sibling-calls")
	machine := filepath.Join(t.TempDir(), "machine.yaml")
	if err := os.WriteFile(machine, []byte(slowMachine), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, m := range mendableFaults {
		t.Run(m.fault, func(t *testing.T) {
			faulty := m.diagnosed(t, exe, machine, "faulty")
			mended := m.diagnosed(t, exe, machine, "mended")
			m.compare(t, faulty, faulty.TimeNs-mended.TimeNs)
		})
	}
}

// diagnosed captures a version of the program in virtual time and diagnoses it.
func (m *mendable) diagnosed(t *testing.T, exe, machine, version string) *diagnose.Diagnosis {
	t.Helper()
	store := t.TempDir()
	commq(t, "capture", "--store", store, "--name", "r", "-q", "-n", "4", "--sim-ranks", "1", "--machine", machine,
		"--clock", "none", "--", exe, m.fault, fmt.Sprint(m.us), fmt.Sprint(plantedSteps), version)
	line := []string{"diagnose", "--store", store, "r", "--format", "json"}
	if m.simulated {
		line = append(line, "--machine", machine)
	}
	var d diagnose.Diagnosis
	if err := json.Unmarshal([]byte(commq(t, line...)), &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// compare checks the diagnosis of the faulty program against what the mended one takes less.
func (m *mendable) compare(t *testing.T, d *diagnose.Diagnosis, measuredNs int64) {
	t.Helper()
	if len(d.Findings) == 0 {
		t.Fatalf("nothing was found; want %s", m.rule)
	}
	f := &d.Findings[0]
	predicted := f.GainNs
	if m.all {
		predicted = f.MostNs
	}
	off := float64(predicted)/float64(measuredNs) - 1
	t.Logf("%s: predicted %.2f ms, measured %.2f ms, %+.1f %%", f.Rule, float64(predicted)/1e6, float64(measuredNs)/1e6, 100*off)
	if f.Rule != m.rule {
		t.Errorf("the first finding is %s, want %s", f.Rule, m.rule)
	}
	if math.Abs(off) > 0.1 {
		t.Errorf("the predicted gain is off by more than 10 %%")
	}
}
