package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/models/simulate/stored"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/writer"
)

// mustCommq runs a command line, which must succeed, and returns what it printed.
func mustCommq(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	if status := execute(context.Background(), args, strings.NewReader(""), &out, &errs); status != 0 {
		t.Fatalf("commq %s: exit status %d\n%s", strings.Join(args, " "), status, errs.String())
	}
	return out.String()
}

// After import dim, with the .cfg, every rank ends within 2 ns of its time in Dimemas, and the program within 1 ns of
// the paper's formulas where they apply. models/simulate tests the same with runs made from case.json.
func TestSimulateGoldenCases(t *testing.T) {
	files, err := filepath.Glob("../../testdata/golden/dimemas/*/case.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	store := t.TempDir()
	for _, file := range files {
		var c struct {
			Name     string
			Flags    []string `json:"dimemas_flags"`
			Expected struct {
				Finish []float64 `json:"finish_seconds"`
				Total  float64   `json:"total_seconds"`
			}
			Paper *struct {
				Total float64 `json:"total_seconds"`
			} `json:"paper_formula"`
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		if len(c.Flags) > 0 {
			t.Fatalf("%s: flags %v", c.Name, c.Flags)
		}
		dir := filepath.Dir(file)
		mustCommq(t, "import", "dim", filepath.Join(dir, "trace.dim"), "--name", c.Name, "--store", store)
		predict := func(dialect string) (p stored.Answer) {
			out := mustCommq(t, "simulate", "--run", c.Name, "--store", store, "--machine",
				filepath.Join(dir, "machine.cfg"), "--dialect", dialect, "--format", "json")
			if err := json.Unmarshal([]byte(out), &p); err != nil {
				t.Fatal(err)
			}
			return p
		}
		p := predict("dimemas5")
		if math.Abs(float64(p.PredictedNs)-c.Expected.Total*1e9) > 2 || len(p.Ranks) != len(c.Expected.Finish) {
			t.Errorf("%s: %d ns on %d ranks; Dimemas says %.0f ns", c.Name, p.PredictedNs, len(p.Ranks),
				c.Expected.Total*1e9)
			continue
		}
		for rank, want := range c.Expected.Finish {
			if math.Abs(float64(p.Ranks[rank].FinishNs)-want*1e9) > 2 || p.Ranks[rank].Rank != rank {
				t.Errorf("%s: rank %d ends after %d ns; Dimemas says %.0f ns", c.Name, rank, p.Ranks[rank].FinishNs, want*1e9)
			}
		}
		if c.Paper != nil {
			if p := predict("paper"); math.Abs(float64(p.PredictedNs)-c.Paper.Total*1e9) > 1 {
				t.Errorf("%s: paper: %d ns; the formula says %.3f ns", c.Name, p.PredictedNs, c.Paper.Total*1e9)
			}
		}
	}
}

// Real runs of MPI programs can be simulated in both dialects, which compute equally long.
func TestSimulateRealRuns(t *testing.T) {
	for _, name := range []string{"cg.A.16", "ep.W.4", "ft.W.16", "is.W.16", "mg.W.16", "sp.W.4"} {
		computed := map[string]int64{}
		for _, dialect := range []string{"paper", "dimemas5"} {
			var p stored.Answer
			out := mustCommq(t, "simulate", "--run", name, "--store", "../../testdata/runs", "--machine", "flat",
				"--dialect", dialect, "--format", "json")
			if err := json.Unmarshal([]byte(out), &p); err != nil {
				t.Fatal(err)
			}
			for _, r := range p.Ranks {
				computed[dialect] += r.ComputeNs
				if r.ComputeNs+r.PointToPointNs+r.CollectiveNs+r.CPUWaitNs > r.FinishNs+3 ||
					r.FinishNs > p.PredictedNs {
					t.Errorf("%s, %s: rank %d: %+v", name, dialect, r.Rank, r)
				}
			}
			if *p.Transfer > 1 || *p.Serialisation > 1 || *p.LoadBalance > 1 ||
				math.Abs(*p.Transfer**p.Serialisation**p.LoadBalance-*p.ParallelEfficiency) > 1e-9 {
				t.Errorf("%s, %s: %v x %v x %v = %v", name, dialect, *p.LoadBalance, *p.Serialisation, *p.Transfer,
					*p.ParallelEfficiency)
			}
		}
		if computed["paper"] != computed["dimemas5"] {
			t.Errorf("%s: the dialects compute %v", name, computed)
		}
	}
}

// Every query that accepts simulated times works on a saved run, and the run passes its checks, also with one-sided
// calls and I/O. Simulating the saved run again gives the same times.
func TestSimulateSave(t *testing.T) {
	store := t.TempDir()
	ranks := map[string]string{"rma.3": "paper", "cg.A.4": "dimemas5", "ft.W.16": "paper"}
	for name, dialect := range ranks {
		simulate := func(run string, more ...string) (p stored.Answer) {
			args := []string{"simulate", "--run", run, "--store", store, "--machine", "flat", "--dialect", dialect,
				"--format", "json", "--split=false"}
			if err := json.Unmarshal([]byte(mustCommq(t, append(args, more...)...)), &p); err != nil {
				t.Fatal(err)
			}
			return p
		}
		saved := filepath.Join(store, name)
		p := simulate("../../testdata/runs/"+name, "--name", name)
		if out := mustCommq(t, "runs", "check", saved); !strings.Contains(out, "ok") {
			t.Errorf("%s: %s", name, out)
		}
		if again := simulate(saved); again.PredictedNs != p.PredictedNs {
			t.Errorf("%s: %d ns, of the saved run %d ns", name, p.PredictedNs, again.PredictedNs)
		}
		m, err := writer.ReadManifest(saved)
		if err != nil {
			t.Fatal(err)
		}
		if m.TimeOrigin != "simulated" || m.EndNs != p.PredictedNs || m.Origin.Simulation.Run != name {
			t.Errorf("%s: time_origin %s, end_ns %d of %d, %+v", name, m.TimeOrigin, m.EndNs, p.PredictedNs,
				m.Origin.Simulation)
		}
		asked := 0
		for _, q := range allQueries(t) {
			if !slices.Contains(q.Origins, "simulated") ||
				q.Check(queries.Run{Name: name, Dir: saved, Manifest: m}) != nil {
				continue
			}
			asked++
			if status, _, errs := commandLine("", "query", q.Name, "--run", saved, "--format",
				"csv"); status != exitDone {
				t.Errorf("%s: query %s: status %d, %s", name, q.Name, status, errs)
			}
		}
		if asked < 8 {
			t.Errorf("%s: only %d queries of times can be asked", name, asked)
		}
	}
}

// A simulation that fails leaves nothing in the store.
func TestSimulateSavesNothingOnFailure(t *testing.T) {
	store := t.TempDir()
	const trace = "#DIMEMAS:\"stuck\":1,0129:2(1,1),1,0,0\nd:1:1:2:0:1\n1:0:0:0.001000000\n2:0:0:1:-1:4097:7:1:0\n1:1:0:0.002000000\n3:1:0:0:-1:4097:9:1:0\ns:0:49\ns:1:89\n"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "stuck.dim"), []byte(trace), 0o666); err != nil {
		t.Fatal(err)
	}
	mustCommq(t, "import", "dim", filepath.Join(dir, "stuck.dim"), "--name", "stuck", "--store", dir)
	for _, more := range [][]string{
		{"--run", filepath.Join(dir, "stuck")},
		{"--run", "../../testdata/runs/cg.A.4", "--mapping", "cyclic", "--set", "nodes=0"},
		{"--run", "../../testdata/runs/cg.A.4", "--mapping", filepath.Join(dir, "stuck.dim")},
	} {
		args := append([]string{"simulate", "--machine", "flat", "--store", store, "--name", "half"}, more...)
		if status, out, errs := commandLine("", args...); status != exitCannot || out != "" || errs == "" {
			t.Errorf("%v: status %d, %q, %q", more, status, out, errs)
		}
		if left, err := os.ReadDir(store); err != nil || len(left) > 0 {
			t.Errorf("%v: the store has %v, %v", more, left, err)
		}
	}
}

// The digest of a saved run does not depend on GOMAXPROCS.
func TestDigestDoesNotDependOnProcessorCount(t *testing.T) {
	store := t.TempDir()
	var digests []string
	for _, cores := range []int{1, 4} {
		before := runtime.GOMAXPROCS(cores)
		name := fmt.Sprintf("cg.%d", cores)
		mustCommq(t, "simulate", "--run", "../../testdata/runs/cg.A.4", "--store", store, "--machine", "flat",
			"--set", "network.buses=2", "--split=false", "--name", name)
		runtime.GOMAXPROCS(before)
		m, err := writer.ReadManifest(filepath.Join(store, name))
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, m.Digest)
	}
	if digests[0] == "" || digests[0] != digests[1] {
		t.Errorf("digests %q", digests)
	}
}
