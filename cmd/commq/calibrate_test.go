package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/calibrate"
	"github.com/commq/commq/models/simulate/stored"
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
			for _, want := range []string{"between nodes: latency 2.30 us, bandwidth 700 MB/s up to 4,096 bytes; above 4,096 bytes 5.00 us more and 3.00 GB/s\n", "typical error "} {
				if !strings.Contains(out, want) {
					t.Errorf("want %q:\n%s", want, out)
				}
			}
			m, err := models.Load(found)
			if err != nil {
				t.Fatal(err)
			}
			want := models.Piece{AboveBytes: 4096, Step: 5_000_000, BytesPerSecond: 3_000_000_000}
			got := m.Network.Pieces[0]
			if got.AboveBytes != want.AboveBytes || !closeTo(int64(got.Step), int64(want.Step)) ||
				!closeTo(got.BytesPerSecond, want.BytesPerSecond) ||
				!closeTo(int64(m.Network.Latency), 2_300_000) || !closeTo(m.Network.BytesPerSecond, 700_000_000) {
				t.Errorf("%+v", m.Network)
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
				"65536", "--name", "measured", "--store", dir,
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
			var p stored.Answer
			if err := json.Unmarshal([]byte(mustCommq(t, "simulate", "--run", "measured", "--store", dir, "--machine",
				machine, "--format", "json")), &p); err != nil {
				t.Fatal(err)
			}
			// MPI_Comm_split for 2 and for 3 ranks
			if p.PredictedNs <= 0 || p.Messages == 0 || p.ObjectOperations != 2 {
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestCalibrateLaunchThatFails: a launcher that fails is an error with a sentence, and its status is not calibrate's.
func TestCalibrateLaunchThatFails(t *testing.T) {
	captureEnvironment(t)
	status, out, errs := commandLine("", "calibrate", "--launch", "--mpi", "openmpi", "--launcher", "false")
	want := "commq: calibrate: the measuring program ended with status 1; "
	if status != exitCannot || out != "" || !strings.Contains(errs, want) {
		t.Errorf("status %d, %q %q; want %d and %q", status, out, errs, exitCannot, want)
	}
}

// TestCalibrateWrongUse: each error says what to do.
func TestCalibrateWrongUse(t *testing.T) {
	t.Setenv("COMMQ_STORE", runsDir)
	for _, c := range []struct{ words, want string }{
		{"calibrate", "no run given; name one as an argument or with --run, or measure with --launch"},
		{"calibrate --run cg.A.4 -n 3", "--ranks: it is for --launch"},
		{"calibrate --run cg.A.4 -- --oversubscribe", `"--oversubscribe": only with --launch are there arguments`},
		{"calibrate --launch --run a", "--run a: with --launch there is no run yet; --name keeps it"},
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

// knownMachines are machines to be learnt back from a simulation of the measuring program on 8 ranks.
var knownMachines = map[string]string{
	"nothing waits":          "network: {latency_ns: 10000, bandwidth_bytes_per_s: 1e9}\n",
	"a link in and out":      "network: {latency_ns: 7000, bandwidth_bytes_per_s: 250e6, input_links: 1, output_links: 1}\neager_threshold_bytes: 32768\n",
	"half duplex":            "network: {latency_ns: 25000, bandwidth_bytes_per_s: 87500000, buses: 16, input_links: 1, output_links: 1, half_duplex: true}\n",
	"one bus":                "network: {latency_ns: 3000, bandwidth_bytes_per_s: 700e6, buses: 1}\n",
	"two buses":              "network: {latency_ns: 1930, bandwidth_bytes_per_s: 4653750000, buses: 2}\n",
	"two links in":           "network: {latency_ns: 1300, bandwidth_bytes_per_s: 9607e6, input_links: 2, output_links: 1}\neager_threshold_bytes: 8192\n",
	"three links out":        "network: {latency_ns: 5000, bandwidth_bytes_per_s: 2e9, input_links: 1, output_links: 3}\n",
	"another bandwidth":      "network: {latency_ns: 2300, bandwidth_bytes_per_s: 700e6, pieces: [{above_bytes: 4096, step_ns: 5000, bandwidth_bytes_per_s: 3e9}]}\n",
	"two CPUs in a node":     "cpus_per_node: 2\nnetwork: {latency_ns: 3000, bandwidth_bytes_per_s: 1e9, input_links: 1, output_links: 1}\nintra_node: {latency_ns: 600, bandwidth_bytes_per_s: 5e9, buses: 1}\n",
	"three buses, all waits": "network: {latency_ns: 1610, bandwidth_bytes_per_s: 24600e6, buses: 3}\neager_threshold_bytes: 65536\n",
}

// TestCalibrateGivesMachinesBack captures the measuring program once and simulates it on known machines. Each
// calibration gives the machine's values back within its ranges, whatever the cores that the capture had.
func TestCalibrateGivesMachinesBack(t *testing.T) {
	captureEnvironment(t)
	store := t.TempDir()
	mustCommq(t, "calibrate", "--launch", "--mpi", "openmpi", "-n", "8", "--rounds", "20", "--max-bytes", "4194304",
		"--store", store, "--name", "patterns", "--format", "json", "--quiet")
	for name, text := range knownMachines {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "true.yaml")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			want, err := models.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			run := strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "")
			mustCommq(t, "simulate", "--store", store, "--run", "patterns", "--machine", file, "--name", run, "--quiet")
			var got calibrationAnswer
			if err := json.Unmarshal([]byte(mustCommq(t, "calibrate", "--store", store, "--run", run, "--format",
				"json",
				"--quiet")), &got); err != nil {
				t.Fatal(err)
			}
			checkLink(t, "network", &want.Network, got.Between, got.BetweenContention)
			if want.CPUsPerNode > 1 {
				checkLink(t, "intra_node", &want.IntraNode, got.Inside, got.InsideContention)
			}
			if e := got.Threshold; e == nil || want.EagerThresholdBytes <= e.EagerBytes ||
				want.EagerThresholdBytes > e.Bytes {
				t.Errorf("eager threshold %+v, want %d", e, want.EagerThresholdBytes)
			}
			for _, o := range got.Collectives {
				if o.Table3Factor > 1.02 && want.CPUsPerNode == 1 {
					t.Errorf("%s: Table 3, which the machine has, is off by %.3f", o.Name, o.Table3Factor)
				}
			}
		})
	}
}

// checkLink checks that the values of an interconnect are in the ranges that were learnt.
func checkLink(t *testing.T, key string, want *models.Interconnect, fit *calibrate.Fit, links *calibrate.Contention) {
	t.Helper()
	if fit == nil || links == nil {
		t.Fatalf("%s: not learnt: %+v, %+v", key, fit, links)
	}
	in := func(what string, low, want, high float64) {
		if want < low || want > high {
			t.Errorf("%s: %s is %g, not within %g to %g", key, what, want, low, high)
		}
		if high > 1.05*low+2 {
			t.Errorf("%s: %s: the range %g to %g says little", key, what, low, high)
		}
	}
	in("latency_ns", fit.Low.LatencyNs, float64(want.Latency)/1000, fit.High.LatencyNs)
	in("ns per byte", fit.Low.NsPerByte, 1e9/float64(want.BytesPerSecond), fit.High.NsPerByte)
	for k, p := range fit.Line.Pieces {
		w := want.Pieces[k]
		if p.AboveBytes != w.AboveBytes {
			t.Fatalf("%s: a piece above %d bytes, want %d", key, p.AboveBytes, w.AboveBytes)
		}
		in("step", fit.Low.Pieces[k].StepNs, float64(w.Step)/1000, fit.High.Pieces[k].StepNs)
		in("ns per byte", fit.Low.Pieces[k].NsPerByte, 1e9/float64(w.BytesPerSecond), fit.High.Pieces[k].NsPerByte)
	}
	for _, l := range []struct {
		what string
		got  calibrate.Limit
		want int
	}{{"input links", links.InputLinks, want.InputLinks}, {"output links", links.OutputLinks, want.OutputLinks},
		{"buses", links.Buses, want.Buses}} {
		if !l.got.Contains(l.want) {
			t.Errorf("%s: %s %s, want %d (0: unlimited)", key, l.what, l.got, l.want)
		}
		if l.want != 0 && l.want < 4 && l.got.Low != l.want {
			t.Errorf("%s: %s %s: the rounds show %d", key, l.what, l.got, l.want)
		}
	}
	if links.HalfDuplexKnown && links.HalfDuplex != want.HalfDuplex {
		t.Errorf("%s: half duplex is %v, want %v", key, links.HalfDuplex, want.HalfDuplex)
	}
}
