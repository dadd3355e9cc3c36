package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/queries"
)

// TestExtrapolatedQueries captures a stencil with persistent requests, communicators that are parts of a grid and
// collectives with a count per rank on 4 to 20 ranks and on 16, and extrapolates to 16 from the others. All queries that
// an untimed run without payload hashes can answer have the same answer on both runs. The rows of persistent requests,
// of parts, and the extents of communicators are equal too, and the run passes its checks.
func TestExtrapolatedQueries(t *testing.T) {
	captureEnvironment(t)
	exe := compileMPI(t, "openmpi", "grids.c")
	dir := t.TempDir()
	training, measured, made := filepath.Join(dir, "training"), filepath.Join(dir, "measured"),
		filepath.Join(dir, "made")
	capture := func(store string, ranks int) string {
		mustCommq(t, "capture", "--store", store, "--name", fmt.Sprintf("grids.%d", ranks), "-n", fmt.Sprint(ranks),
			"--mpi", "openmpi", "--stack", "16", "--hash", "none",
			"--clock", "none", "--", exe)
		return filepath.Join(store, fmt.Sprintf("grids.%d", ranks))
	}
	var runs []string
	for _, p := range []int{4, 6, 9, 12, 20} {
		runs = append(runs, capture(training, p))
	}
	capture(measured, 16)
	models := filepath.Join(dir, "models.json")
	mustCommq(t, append([]string{"fit", "-o", models}, runs...)...)
	mustCommq(t, "predict", "--store", made, "--models", models, "--ranks", "16", "--name", "grids.16")

	all, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, q := range all {
		got, refused := answer(made, q.Name)
		if refused != "" {
			if !strings.Contains(refused, "is untimed") && !strings.Contains(refused, "without payload hashes") {
				t.Errorf("%s: %s", q.Name, refused)
			}
			continue
		}
		want, refused := answer(measured, q.Name)
		if refused != "" {
			t.Errorf("%s of the captured run: %s", q.Name, refused)
		}
		if got != want {
			t.Errorf("%s: extrapolated\n%s\ncaptured\n%s", q.Name, got, want)
		}
		asked++
	}
	if asked < 15 {
		t.Errorf("%d queries were compared", asked)
	}
	sites := "SELECT src, dst, send_callsite, recv_callsite, send_seq, recv_post_seq, recv_done_seq FROM messages ORDER BY src, send_seq"
	got, want := mustCommq(t, "sql", "--store", made, "--run", "grids.16", "--format", "csv", sites),
		mustCommq(t, "sql", "--store", measured, "--run", "grids.16", "--format", "csv", sites)
	if strings.Count(got, "\n") != 2561 || places(got) != places(want) {
		t.Errorf("messages: extrapolated\n%.600s\ncaptured\n%.600s", got, want)
	}
	mustCommq(t, "runs", "check", "--store", made, "grids.16")
	for name, c := range map[string]struct {
		sql  string
		rows int
	}{
		// Each rank has 8 events before the steps, eleven in each step, four for the error, 4 collectives, and 8 at
		// the end: requests, communicators and MPI.
		"events": {"SELECT * EXCLUDE (callsite, start_ns, end_ns, polls, poll_ns, send_buffer, recv_buffer) FROM events ORDER BY rank, seq", 16 * 464},
		// Each rank has 4 peers in MPI_Allgatherv and in MPI_Alltoallv; four roots have 4 each in MPI_Gatherv and
		// MPI_Scatterv.
		"parts": {"SELECT rank, seq, peer_world, send_bytes, recv_bytes FROM parts ORDER BY ALL",
			16*2*4 + 4*2*4},
		"communicators": {"SELECT * FROM comms ORDER BY comm, comm_rank", 2*16 + 2*16},
	} {
		got, want := mustCommq(t, "sql", "--store", made, "--run", "grids.16", "--format", "csv", c.sql),
			mustCommq(t, "sql", "--store", measured, "--run", "grids.16", "--format", "csv", c.sql)
		if got != want || strings.Count(want, "\n") != 1+c.rows {
			t.Errorf("%s: extrapolated\n%.2000s\ncaptured, %d rows\n%.2000s", name, got, strings.Count(want, "\n")-1,
				want)
		}
	}
}

// places returns the rows of messages without the ids of call sites, which two runs may number differently; null ids
// are kept.
func places(rows string) string {
	var b strings.Builder
	for _, row := range strings.Split(strings.TrimSpace(rows), "\n")[1:] {
		f := strings.Split(row, ",")
		fmt.Fprintln(&b, f[0], f[1], f[2] == "", f[3] == "", f[4:])
	}
	return b.String()
}

// answer returns the answer to a query of the run grids.16 of a store, or why the run refuses it. It omits times from
// measures, because an untimed run has none.
func answer(store, query string) (rows, refused string) {
	var out, errs strings.Builder
	if execute(context.Background(), []string{"query", query, "--store", store, "--run", "grids.16", "--format", "csv"},
		strings.NewReader(""), &out, &errs) != 0 {
		return "", errs.String()
	}
	if query != "measures" {
		return out.String(), ""
	}
	lines := strings.Split(out.String(), "\n")
	return strings.Join(slices.DeleteFunc(lines,
		func(line string) bool { return strings.Contains(line, ",ns,") }), "\n"), ""
}
