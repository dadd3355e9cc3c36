package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate/stored"
)

// TestCalibrateReturnsTheTimes: a simulation on the machine learnt from a run gives the run's times, within the error
// that the calibration reports. The runs are those of real programs, simulated on random machines, so that their
// times follow a machine's rules.
func TestCalibrateReturnsTheTimes(t *testing.T) {
	told := 0
	names := []string{"cg.A.4", "cg.A.16", "sp.W.4", "pingpong.2"}
	const machines = 8
	for seed := range machines {
		for _, name := range names {
			g := rand.New(rand.NewPCG(uint64(seed), 12))
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				dir := t.TempDir()
				truth, waits := filepath.Join(dir, "truth.yaml"), seed%2 == 1
				drawMachine(t, g, waits, truth)
				simulated := func(run, machine string, more ...string) (p stored.Answer) {
					out := mustCommq(t, append([]string{"simulate", "--run", run, "--store", dir, "--machine",
						machine, "--split=false", "--format", "json"}, more...)...)
					if err := json.Unmarshal([]byte(out), &p); err != nil {
						t.Fatal(err)
					}
					return p
				}
				r := simulated(filepath.Join(runsDir, name), truth, "--name", "r")
				found := filepath.Join(dir, "found.yaml")
				var c calibrationAnswer
				if err := json.Unmarshal([]byte(mustCommq(t, "calibrate", "--run", "r", "--store", dir, "-o", found,
					"--format", "json", "--quiet")), &c); err != nil {
					t.Fatal(err)
				}
				if waits && c.Threshold == nil { // no send shows it: then the calibration has warned
					return
				}
				told++
				// Every duration on the longest path is off by no more than that share. Times in tables are whole ns:
				// the start and end of a row are off by 1 together.
				off := c.Inside.ErrorMax
				for _, o := range c.Collectives {
					for _, p := range o.Points {
						off = max(off, p.FitNs/max(p.Ns, 1)-1, p.Ns/max(p.FitNs, 1)-1)
					}
				}
				if off > 0.01 {
					t.Errorf("the calibration is off by %.3f where the times are those of a machine\n%s", off,
						c.Machine)
				}
				again := simulated("r", found)
				for rank := range r.Ranks {
					want, got := r.Ranks[rank].FinishNs, again.Ranks[rank].FinishNs
					if bound := off*float64(want) + float64(eventsOf(t, dir, "r")); float64(max(got-want,
						want-got)) > bound {
						text, _ := os.ReadFile(truth)
						t.Errorf("rank %d ends after %d ns, by the machine learnt after %d; the calibration is off by %.5f, which allows %.0f ns\n%s%s", rank, want, got, off, bound, text, c.Machine)
					}
				}
			})
		}
	}
	if told < machines*len(names)*2/3 {
		t.Errorf("%d of %d runs tell their machine", told, machines*len(names))
	}
}

// drawMachine writes a random machine of one node with a CPU for each rank and unlimited links and buses, so that
// ranks wait only for partners: what a calibration can learn. waits sets an eager threshold.
func drawMachine(t *testing.T, g *rand.Rand, waits bool, file string) {
	m, err := models.Named("flat")
	if err != nil {
		t.Fatal(err)
	}
	m.Nodes, m.CPUsPerNode = 1, 64
	m.Network = models.Interconnect{Latency: models.Picoseconds(200_000 + g.Int64N(20_000_000)),
		BytesPerSecond: 50_000_000 + g.Int64N(20_000_000_000)}
	m.IntraNode = m.Network
	if waits {
		m.EagerThresholdBytes, m.EagerThresholdGiven = 1+g.Int64N(50_000), true
	}
	for op := range m.Collectives {
		p := models.Phases{FanOut: models.Factor(1 + g.IntN(3)), SizeOut: models.Size(g.IntN(5))}
		if g.IntN(2) == 0 {
			p.FanIn, p.SizeIn = models.Factor(1+g.IntN(3)), models.Size(g.IntN(5))
		}
		m.SetCollective(op, p)
	}
	var text strings.Builder
	if err := m.WriteYAML(&text, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// eventsOf returns the number of rows of events of a run.
func eventsOf(t *testing.T, store, run string) (rows int64) {
	out := mustCommq(t, "sql", "--store", store, "--run", run, "--format", "csv", "SELECT COUNT(*) AS n FROM events")
	if _, err := fmt.Sscanf(out, "n\n%d", &rows); err != nil {
		t.Fatal(out, err)
	}
	return rows
}
