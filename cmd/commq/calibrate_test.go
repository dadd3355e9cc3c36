package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/models"
)

// TestCalibrateFindsTheMachine: of a ping-pong in virtual times the machine that it was simulated with, and commq simulate takes it.
func TestCalibrateFindsTheMachine(t *testing.T) {
	for _, library := range []string{"openmpi", "mpich"} {
		t.Run(library, func(t *testing.T) {
			exe := compileMPI(t, library, "pingpong.c")
			dir := t.TempDir()
			machine := filepath.Join(dir, "true.yaml")
			text := "network:\n  latency_ns: 2300\n  bandwidth_bytes_per_s: 700000000\n  pieces:\n    - {above_bytes: 4096, step_ns: 5000, bandwidth_bytes_per_s: 3000000000}\n"
			if err := os.WriteFile(machine, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			mustCommq(t, "capture", "--store", dir, "--run", "pp.2", "--mpi", library, "-n", "2", "--sim-ranks", "1", "--machine", machine, "--clock", "cpu", "--", exe)
			found := filepath.Join(dir, "found.yaml")
			out := mustCommq(t, "calibrate", "--store", dir, "--run", "pp.2", "-o", found, "--plot", filepath.Join(dir, "fit.svg"))
			for _, want := range []string{"inside a node: latency 2.300 us, bandwidth 700.0 MB/s; above 4,096 bytes 5.000 us more and 3000.0 MB/s\n", "typical error 0.0 %, largest 0.0 %"} {
				if !strings.Contains(out, want) {
					t.Errorf("want %q:\n%s", want, out)
				}
			}
			m, err := readMachine(found)
			if err != nil {
				t.Fatal(err)
			}
			want := models.Piece{AboveBytes: 4096, Step: 5_000_000, BytesPerSecond: 3_000_000_000}
			got := m.IntraNode.Pieces[0]
			if got.AboveBytes != want.AboveBytes || !closeTo(int64(got.Step), int64(want.Step)) || !closeTo(got.BytesPerSecond, want.BytesPerSecond) ||
				!closeTo(int64(m.IntraNode.Latency), 2_300_000) || !closeTo(m.IntraNode.BytesPerSecond, 700_000_000) {
				t.Errorf("%+v", m.IntraNode)
			}
			if svg, err := os.ReadFile(filepath.Join(dir, "fit.svg")); err != nil || !strings.Contains(string(svg), "messages of pp.2") {
				t.Errorf("picture: %v", err)
			}
			mustCommq(t, "simulate", "--store", dir, "--run", "pp.2", "--machine", found)
		})
	}
}

// closeTo says that two values differ by less than 1 in 1000.
func closeTo(a, b int64) bool { return 1000*max(a-b, b-a) <= b }
