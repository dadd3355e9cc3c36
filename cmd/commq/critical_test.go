package main

import (
	"encoding/csv"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/commq/commq/writer"
)

// pathRows are the rows of commq critical-path: each by the names of its columns.
func pathRows(t *testing.T, args ...string) (rows []map[string]string) {
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

// sum adds a column up, and wants no negative number in it.
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

// Whatever the rows are by, the path is the run, in measured and simulated times, and its kinds are its sum.
func TestCriticalPathIsTheRun(t *testing.T) {
	const store = "../../testdata/runs"
	for _, run := range []string{"mg.W.16", "cg.A.4", "is.W.16", "ft.W.16", "sp.W.4", "ep.W.4", "pingpong.2", "rma.3"} {
		times := pathRows(t, "sql", "--store", store, "--run", run, "--format", "csv", "SELECT max(end_ns) AS ns FROM events")
		duration := sum(t, times, "ns")
		for _, by := range [][]string{{"callsite,call"}, {"rank"}, {"call", "--until", "last"}, {"callsite,call,rank"}} {
			rows := pathRows(t, append([]string{"critical-path", "--store", store, "--run", run, "--format", "csv", "--by"}, by...)...)
			var kinds int64
			for _, c := range []string{"compute_ns", "point_to_point_ns", "transfer_ns", "collective_ns", "other_ns"} {
				kinds += sum(t, rows, c)
			}
			if path := sum(t, rows, "path_ns"); path != duration || kinds != duration {
				t.Errorf("%s by %v: the path takes %d ns, its kinds %d, and the run %d", run, by, path, kinds, duration)
			}
		}
		out := mustCommq(t, "simulate", "--store", store, "--run", run, "--machine", "sgi-origin", "--critical-path", "--format", "json")
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

// On an ideal network all that is on the path is computing: the law of the longest path.
func TestCriticalPathOnAnIdealNetworkComputes(t *testing.T) {
	for _, run := range []string{"mg.W.16", "cg.A.4", "is.W.16", "sp.W.4"} {
		rows := pathRows(t, "simulate", "--store", "../../testdata/runs", "--run", run, "--machine", "ideal", "--critical-path", "--format", "csv")
		if path, computing := sum(t, rows, "path_ns"), sum(t, rows, "compute_ns"); path != computing || path == 0 {
			t.Errorf("%s: %d of %d ns are computing", run, computing, path)
		}
	}
}

// The path of a run that a simulation saved is the simulation's.
func TestCriticalPathOfASavedRun(t *testing.T) {
	store := t.TempDir()
	linkRuns(t, store, runsDir)
	said := mustCommq(t, "simulate", "--store", store, "--run", "mg.W.16", "--machine", "sgi-origin", "--critical-path", "--format", "csv", "--save", "mg.saved")
	if m, err := writer.ReadManifest(store + "/mg.saved"); err != nil || m.TimeOrigin != "simulated" {
		t.Fatal(m, err)
	}
	if read := mustCommq(t, "critical-path", "--store", store, "--run", "mg.saved", "--format", "csv"); read != said {
		t.Errorf("the simulation says\n%s\nand its run\n%s", said, read)
	}
}
