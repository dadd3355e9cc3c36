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
	"github.com/commq/commq/queries"
)

// wasteSteps is the number of steps that wasteful.c does.
const wasteSteps = 8

// wasteful are the cases of testdata/programs/wasteful.c. Small messages that follow each other overlap: the last one
// of each step is what the ranks wait for, with a latency of 3 us. Making a communicator takes 8 of them.
var wasteful = []struct {
	name  string
	rule  diagnose.Rule // "" means that no rule from a file may say anything
	ranks []int32       // nil means all
	// gainNs is the gain, and evidence has some of the values.
	gainNs   float64
	evidence map[string]float64
}{
	{"small_messages", "small-messages", []int32{0, 2}, wasteSteps * 3000 * 0.995, map[string]float64{"messages": 2 * wasteSteps * 200, "groups": 2 * wasteSteps,
		"mean_bytes": 8, "latency_ns": 3011}},
	{name: "answers"},
	{name: "pieces"},
	{"repeated_payloads", "repeated-payloads", []int32{0, 2}, (wasteSteps - 1) * 803_000, map[string]float64{"messages": 2 * wasteSteps,
		"repeated": 2 * (wasteSteps - 1), "repeated_bytes": 2 * (wasteSteps - 1) * 560_000}},
	{name: "changing_payloads"},
	{"communicator_in_loop", "communicator-in-loop", nil, (20*wasteSteps - 1) * 24_000, map[string]float64{"calls": 20 * wasteSteps, "repeats": 20*wasteSteps - 1}},
	{name: "other_communicators"},
}

// Rules that are files name waste of a known size at its line, and nothing where it is only alike.
func TestFindingsOfWastefulPrograms(t *testing.T) {
	captureEnvironment(t)
	lines := wasteLines(t)
	machine := filepath.Join(t.TempDir(), "machine.yaml")
	if err := os.WriteFile(machine, []byte(slowMachine), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, library := range []string{"openmpi", "mpich"} {
		exe := compileMPI(t, library, "wasteful.c", "-g", "-fno-optimize-sibling-calls")
		for _, c := range wasteful {
			t.Run(library+"/"+c.name, func(t *testing.T) {
				store := t.TempDir()
				commq(t, "capture", "--store", store, "--name", "r", "-q", "-n", "4", "--sim-ranks", "1", "--machine", machine,
					"--clock", "none", "--", exe, c.name, fmt.Sprint(wasteSteps))
				var d diagnose.Diagnosis
				if err := json.Unmarshal([]byte(commq(t, "diagnose", "--store", store, "r", "--format", "json")), &d); err != nil {
					t.Fatal(err)
				}
				found := fromFiles(&d)
				if c.rule == "" {
					for _, f := range found {
						t.Errorf("%s: %s", f.Rule, f.Title)
					}
					return
				}
				if len(found) != 1 {
					t.Fatalf("%d findings from files: %+v", len(found), found)
				}
				f := &found[0]
				if math.Abs(float64(f.GainNs)-c.gainNs) > c.gainNs/100 || f.Bound {
					t.Errorf("it gains %d ns (a bound: %v), want %.0f", f.GainNs, f.Bound, c.gainNs)
				}
				if f.Rule != c.rule || !slices.Equal(f.Ranks, c.ranks) || !strings.HasSuffix(f.Place, fmt.Sprintf("wasteful.c:%d", lines[c.name])) {
					t.Errorf("%s of ranks %v at %s; want %s of %v at line %d", f.Rule, f.Ranks, f.Place, c.rule, c.ranks, lines[c.name])
				}
				compareEvidence(t, f, c.evidence)
			})
		}
	}
}

// fromFiles are the findings of rules that are files.
func fromFiles(d *diagnose.Diagnosis) (found []diagnose.Finding) {
	for _, f := range d.Findings {
		if slices.Contains(queries.FindingNames(), string(f.Rule)) {
			found = append(found, f)
		}
	}
	return found
}

// compareEvidence compares some values, within 1 % because the times of transfers have steps of that size.
func compareEvidence(t *testing.T, f *diagnose.Finding, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		i := slices.IndexFunc(f.Evidence, func(v diagnose.Value) bool { return v.Name == name })
		if i < 0 {
			t.Errorf("no %s in %+v", name, f.Evidence)
		} else if got, _ := f.Evidence[i].Value.(float64); math.Abs(got-value) > value/100 {
			t.Errorf("%s is %v, want %v", name, got, value)
		}
	}
}

// wasteLines finds the lines of wasteful.c that end in the name of a case.
func wasteLines(t *testing.T) map[string]int {
	t.Helper()
	lines := map[string]int{}
	for i, line := range strings.Split(mustRead(t, filepath.Join(programsDir, "wasteful.c")), "\n") {
		if _, name, found := strings.Cut(line, "/* waste "); found {
			lines[strings.TrimSuffix(name, " */")] = i + 1
		}
	}
	return lines
}

// What commq detect does not list since chance may have made it is no finding of commq diagnose: here the messages of a
// root that always sends the same.
func TestDiagnoseHasNoCandidates(t *testing.T) {
	store := t.TempDir()
	writeStars(t, store, "same.4", slices.Repeat([]int32{0}, 20)...)
	var found struct{ Candidates int }
	answer := commq(t, "detect", "--store", store, "same.4", "--format", "json")
	if err := json.Unmarshal([]byte(answer), &found); err != nil {
		t.Fatal(err)
	}
	text := commq(t, "diagnose", "--store", store, "same.4", "--machine", "ethernet-40g", "--all")
	if found.Candidates == 0 || strings.Contains(text, string(diagnose.HandWritten)) {
		t.Errorf("%d candidates of commq detect:\n%s", found.Candidates, text)
	}
}

// TestDiagnosePricesCollectivesByHand: on the machine of TestDetectPricesFindings calling MPI_Bcast saves 3,097 ns.
// Where messages take no time nothing is saved, and nothing is looked for.
func TestDiagnosePricesCollectivesByHand(t *testing.T) {
	store := t.TempDir()
	writeStar(t, store, "star.4")
	machine := filepath.Join(store, "m.yaml")
	putFile(t, machine, "network:\n  latency_ns: 1000\n  bandwidth_bytes_per_s: 1e9\n  output_links: 1\n", 0o644)
	byHand := func(machine string) (found []diagnose.Finding) {
		var d diagnose.Diagnosis
		if err := json.Unmarshal([]byte(commq(t, "diagnose", "--store", store, "star.4", "--machine", machine, "--format", "json")),
			&d); err != nil {
			t.Fatal(err)
		}
		for _, f := range d.Findings {
			if f.Rule == diagnose.HandWritten {
				found = append(found, f)
			}
		}
		return found
	}
	found := byHand(machine)
	if len(found) != 1 || found[0].GainNs != 3097 || found[0].Bound || len(found[0].Ranks) != 4 ||
		!strings.HasPrefix(found[0].Title, "By hand: MPI_Bcast over ") {
		t.Errorf("%+v, want one MPI_Bcast that gains 3097 ns", found)
	}
	if found := byHand("ideal"); len(found) != 0 {
		t.Errorf("on an ideal machine: %+v", found)
	}
}
