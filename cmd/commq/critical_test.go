package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/commq/commq/writer"
)

// namedRows runs a command that prints CSV and returns its rows as maps from column to value.
func namedRows(t *testing.T, args ...string) (rows []map[string]string) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(mustCommq(t, args...))).ReadAll()
	if err != nil || len(all) < 2 {
		t.Fatal(all, err)
	}
	for _, row := range all[1:] {
		named := map[string]string{}
		for i, name := range all[0] {
			named[name] = row[i]
		}
		rows = append(rows, named)
	}
	return rows
}

// sum adds up a column, in which no number may be negative.
func sum(t *testing.T, rows []map[string]string, column string) (total int64) {
	t.Helper()
	for _, row := range rows {
		n, err := strconv.ParseInt(row[column], 10, 64)
		if err != nil || n < 0 {
			t.Fatalf("%s: %q", column, row[column])
		}
		total += n
	}
	return total
}

// TestCriticalPathIsDrawn: the picture has a row for each rank, the kinds of the path's time and its changes of rank, and
// no rows are printed beside it unless they are asked for.
func TestCriticalPathIsDrawn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "path.svg")
	args := []string{"critical-path", "--store", "../../testdata/runs", "--run", "mg.W.16", "--plot", file}
	if out := mustCommq(t, args...); out != "" {
		t.Errorf("printed %q", out)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"Critical path: mg.W.16", "part of the path", "compute", "transfer", "collective", "point-to-point",
		"rank", "time since the start of the run [s]"} {
		if !strings.Contains(string(svg), ">"+text+"<") {
			t.Errorf("no text %q", text)
		}
	}
	if rows := mustCommq(t, append(args, "--format", "csv", "--theme", "dark", "--replace")...); !strings.Contains(rows, "path_ns") {
		t.Errorf("printed %q beside the picture", rows)
	}
}

// For every grouping, the parts of the path and its kinds add up to the duration of the run, in measured and in
// simulated times.
func TestCriticalPathAddsUpToTheRun(t *testing.T) {
	const store = "../../testdata/runs"
	for _, run := range []string{"mg.W.16", "cg.A.4", "is.W.16", "ft.W.16", "sp.W.4", "ep.W.4", "pingpong.2", "rma.3"} {
		times := namedRows(t, "sql", "--store", store, "--run", run, "--format", "csv",
			"SELECT max(end_ns) AS ns FROM events")
		duration := sum(t, times, "ns")
		for _, by := range [][]string{{"callsite,call"}, {"rank"}, {"call", "--until", "last"},
			{"callsite,call,rank"}} {
			rows := namedRows(t, append([]string{"critical-path", "--store", store, "--run", run, "--format", "csv",
				"--init", "include", "--by"}, by...)...)
			var kinds int64
			for _, c := range []string{"compute_ns", "point_to_point_ns", "transfer_ns", "collective_ns", "other_ns"} {
				kinds += sum(t, rows, c)
			}
			if path := sum(t, rows, "path_ns"); path != duration || kinds != duration {
				t.Errorf("%s by %v: the path takes %d ns, its kinds %d, and the run %d", run, by, path, kinds, duration)
			}
		}
		withoutStartup(t, store, run)
		out := mustCommq(t, "simulate", "--store", store, "--run", run, "--machine", "sgi-origin", "--critical-path",
			"--format", "json")
		var p struct {
			PredictedNs int64            `json:"predicted_ns"`
			Path        []map[string]any `json:"critical_path"`
		}
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Fatal(err)
		}
		path := 0.0
		for _, row := range p.Path {
			path += row["path_ns"].(float64)
		}
		if int64(path) != p.PredictedNs || path == 0 {
			t.Errorf("%s: the path takes %.0f of %d simulated ns", run, path, p.PredictedNs)
		}
	}
}

// withoutStartup checks that the path takes the time from the end of a rank's MPI_Init to the last start of MPI_Finalize,
// and no time in the two.
func withoutStartup(t *testing.T, store, run string) {
	t.Helper()
	rows := namedRows(t, "critical-path", "--store", store, "--run", run, "--format", "csv", "--by", "call")
	path := strconv.FormatInt(sum(t, rows, "path_ns"), 10)
	spans := namedRows(t, "sql", "--store", store, "--run", run, "--format", "csv",
		`SELECT DISTINCT (SELECT max(start_ns) FROM events WHERE call = 'MPI_Finalize') - end_ns AS ns
		FROM events WHERE call LIKE 'MPI_Init%'`)
	if !slices.ContainsFunc(spans, func(row map[string]string) bool { return row["ns"] == path }) {
		t.Errorf("%s: the path takes %s ns, the program by rank %v", run, path, spans)
	}
	for _, row := range rows {
		if row["call"] == "MPI_Finalize" && row["other_ns"] != "0" || row["call"] == "MPI_Init" {
			t.Errorf("%s: time of the startup: %v", run, row)
		}
	}
}

// On an ideal network the critical path consists of computing only.
func TestCriticalPathOnAnIdealNetworkComputes(t *testing.T) {
	for _, run := range []string{"mg.W.16", "cg.A.4", "is.W.16", "sp.W.4"} {
		rows := namedRows(t, "simulate", "--store", "../../testdata/runs", "--run", run, "--machine", "ideal",
			"--critical-path", "--format", "csv")
		if path, computing := sum(t, rows, "path_ns"), sum(t, rows, "compute_ns"); path != computing || path == 0 {
			t.Errorf("%s: %d of %d ns are computing", run, computing, path)
		}
	}
}

// A saved run has the critical path of the simulation that saved it.
func TestCriticalPathOfASavedRun(t *testing.T) {
	store := t.TempDir()
	linkRuns(t, store, runsDir)
	said := mustCommq(t, "simulate", "--store", store, "--run", "mg.W.16", "--machine", "sgi-origin",
		"--critical-path", "--format", "csv", "--name", "mg.saved")
	if m, err := writer.ReadManifest(store + "/mg.saved"); err != nil || m.TimeOrigin != "simulated" {
		t.Fatal(m, err)
	}
	if read := mustCommq(t, "critical-path", "--store", store, "--run", "mg.saved", "--format", "csv"); read != said {
		t.Errorf("the simulation says\n%s\nand its run\n%s", said, read)
	}
}
