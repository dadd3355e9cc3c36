package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/models"
)

// TestCalibrateFindsTheMachine calibrates a ping-pong in virtual times. The result is the machine that simulated it,
// and commq simulate reads it.
func TestCalibrateFindsTheMachine(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		t.Run(library, func(t *testing.T) {
			exe := compileMPI(t, library, "pingpong.c")
			dir := t.TempDir()
			machine := filepath.Join(dir, "true.yaml")
			text := "network:\n  latency_ns: 2300\n  bandwidth_bytes_per_s: 700000000\n  pieces:\n    - {above_bytes: 4096, step_ns: 5000, bandwidth_bytes_per_s: 3000000000}\n"
			if err := os.WriteFile(machine, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			mustCommq(t, "capture", "--store", dir, "--name", "pp.2", "--mpi", library, "-n", "2", "--sim-ranks", "1",
				"--machine", machine, "--clock", "cpu", "--", exe)
			found := filepath.Join(dir, "found.yaml")
			out := mustCommq(t, "calibrate", "--store", dir, "--run", "pp.2", "-o", found, "--plot",
				filepath.Join(dir, "fit.svg"))
			for _, want := range []string{"inside a node: latency 2.30 us, bandwidth 700 MB/s; above 4,096 bytes 5.00 us more and 3.00 GB/s\n", "typical error "} {
				if !strings.Contains(out, want) {
					t.Errorf("want %q:\n%s", want, out)
				}
			}
			m, err := models.Load(found)
			if err != nil {
				t.Fatal(err)
			}
			want := models.Piece{AboveBytes: 4096, Step: 5_000_000, BytesPerSecond: 3_000_000_000}
			got := m.IntraNode.Pieces[0]
			if got.AboveBytes != want.AboveBytes || !closeTo(int64(got.Step), int64(want.Step)) ||
				!closeTo(got.BytesPerSecond, want.BytesPerSecond) ||
				!closeTo(int64(m.IntraNode.Latency), 2_300_000) || !closeTo(m.IntraNode.BytesPerSecond, 700_000_000) {
				t.Errorf("%+v", m.IntraNode)
			}
			if svg, err := os.ReadFile(filepath.Join(dir, "fit.svg")); err != nil ||
				!strings.Contains(string(svg), "Time of messages by size: pp.2") {
				t.Errorf("picture: %v", err)
			}
			mustCommq(t, "simulate", "--store", dir, "--run", "pp.2", "--machine", found)
		})
	}
}

// TestCalibrateLaunch runs the measuring program with both libraries. commq simulate can simulate its run on the
// machine learnt from it.
func TestCalibrateLaunch(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		t.Run(library, func(t *testing.T) {
			dir := t.TempDir()
			machine := filepath.Join(dir, "m.yaml")
			out := mustCommq(t, "calibrate", "--launch", "--mpi", library, "-n", "3", "--rounds", "20", "--max-bytes",
				"65536", "--run", "measured", "--store", dir,
				"-o", machine, "--cpus-per-node", "4", "--format", "json", "--quiet")
			var answer struct {
				Inside struct {
					Line struct {
						LatencyNs float64 `json:"latency_ns"`
					}
					MinBytes int64 `json:"min_bytes"`
					MaxBytes int64 `json:"max_bytes"`
				} `json:"intra_node"`
				Threshold   struct{ Sends int64 } `json:"eager_threshold"`
				CycleNs     float64               `json:"cycle_ns"`
				Collectives []struct {
					Operation string
					MinRanks  int `json:"min_ranks"`
					MaxRanks  int `json:"max_ranks"`
				}
			}
			if err := json.Unmarshal([]byte(out), &answer); err != nil {
				t.Fatal(err)
			}
			// Processors have cycles of 0.1 to 2 ns; if the compiler had removed the additions, the result would be
			// smaller.
			if answer.CycleNs < 0.1 || answer.CycleNs > 2 {
				t.Errorf("a cycle of %v ns", answer.CycleNs)
			}
			if m, err := models.Load(machine); err != nil || math.Abs(m.CycleNs/answer.CycleNs-1) > 1e-5 {
				t.Errorf("the machine has %+v, %v; want a cycle of %v ns", m, err, answer.CycleNs)
			}
			if answer.Inside.Line.LatencyNs <= 0 || answer.Inside.MinBytes != 0 || answer.Inside.MaxBytes < 32768 ||
				answer.Threshold.Sends == 0 {
				t.Errorf("%s", out)
			}
			if len(answer.Collectives) != 10 {
				t.Errorf("%d collective operations; want 10: %+v", len(answer.Collectives), answer.Collectives)
			}
			for _, c := range answer.Collectives {
				if c.MinRanks != 2 || c.MaxRanks != 3 {
					t.Errorf("%s: %+v", library, c)
				}
			}
			m, err := models.Load(machine)
			if err != nil {
				t.Fatal(err)
			}
			if m.Nodes != 1 || m.CPUsPerNode != 4 || len(m.Declared) != 10 {
				t.Errorf("%+v", m)
			}
			var p prediction
			if err := json.Unmarshal([]byte(mustCommq(t, "simulate", "--run", "measured", "--store", dir, "--machine",
				machine, "--format", "json")), &p); err != nil {
				t.Fatal(err)
			}
			// MPI_Comm_split for 2 and for 3 ranks
			if p.PredictedNs <= 0 || p.Messages == 0 || p.FallbackCollectives != 2 {
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestCalibrateWrongUse: each error says what to do.
func TestCalibrateWrongUse(t *testing.T) {
	t.Setenv("COMMQ_STORE", runsDir)
	for _, c := range []struct{ words, want string }{
		{"calibrate", "no run given; name one as an argument or with --run, or measure with --launch"},
		{"calibrate --run cg.A.4 -n 3", "--ranks: it is for --launch"},
		{"calibrate --run cg.A.4 -- --oversubscribe", `"--oversubscribe": only with --launch are there arguments`},
		{"calibrate --launch -n 1", "-n 1: want 2 ranks or more"},
		{"calibrate --launch --max-bytes 9", "--max-bytes 9: want 1024 to 1073741824"},
		{"calibrate --run ft.A.4", `run "ft.A.4" has no messages of two or more sizes whose receiver was waiting`},
		{"calibrate --run sp.A.4", "capture it again without --time-resolution-ns"},
		{"calibrate --run cg.A.4 --through mean", "--through mean: want one of minimum, quartile, median"},
		{"calibrate --run cg.A.4 --where size>3", "size"},
	} {
		status, out, errs := commandLine("", strings.Fields(c.words)...)
		if status != exitCannot || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: status %d, %q %q; want %q", c.words, status, out, errs, c.want)
		}
	}
}

// closeTo reports whether two values differ by less than 1 in 1000.
func closeTo(a, b int64) bool { return 1000*max(a-b, b-a) <= b }
