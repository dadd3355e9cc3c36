package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The tests in this file ask captured runs of the NAS Parallel Benchmarks for the measures of Riesen, Communication
// Patterns (2006), and compare the answers with the paper's statements. The answers of runs that are too large for
// this repository are in docs/validation/measures.

const measuresDir = "../../docs/validation/measures"

// measuredRuns are the runs in the tables.
var measuredRuns = strings.Fields(`
	bt.A.16 bt.A.64 bt.B.64 bt.C.64
	cg.A.4 cg.A.16 cg.A.64 cg.B.64 cg.C.64
	ep.A.4 ep.A.64 ep.B.64 ep.C.64
	ft.A.4 ft.A.16 ft.A.64 ft.B.64 ft.C.64
	is.A.4 is.A.16 is.A.64 is.B.64 is.C.64
	lu.A.64 lu.B.64 lu.C.64
	mg.A.16 mg.A.64 mg.B.64 mg.C.64
	sp.A.4 sp.A.16 sp.A.64 sp.B.64 sp.C.64`)

// measuredBy lists the tables with the questions that they answer.
var measuredBy = map[string][]string{
	"ratio":       {"ratio"},
	"collectives": {"collectives"},
	"sizes":       {"sizes", "--unit", "elements"},
	"calls":       {"sizes", "--unit", "elements", "--collectives", "calls"},
}

// answersOf asks a run for all measures. It returns rows by table, without the header, after the run's name.
func answersOf(t *testing.T, store, name string) map[string][][]string {
	t.Helper()
	all := map[string][][]string{}
	for table, args := range measuredBy {
		out := commq(t, append(append([]string{"query"}, args...), "--store", store, "--run", name, "--format",
			"csv")...)
		rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows[1:] {
			all[table] = append(all[table], append([]string{name}, row...))
		}
	}
	return all
}

// measures are the committed tables: rows by table and run.
type measures map[string]map[string][][]string

func readMeasures(t *testing.T) measures {
	t.Helper()
	all := measures{}
	for table := range measuredBy {
		all[table] = map[string][][]string{}
		for _, row := range readCSV(t, filepath.Join(measuresDir, table+".csv"))[1:] {
			all[table][row[0]] = append(all[table][row[0]], row)
		}
	}
	return all
}

// write writes the tables, with the header that the first query of a run gives.
func (m measures) write(t *testing.T) {
	t.Helper()
	for table, args := range measuredBy {
		out := commq(t, append(append([]string{"query"}, args...), "--store", runsDir, "--run", "cg.A.4", "--format",
			"csv")...)
		header, _, _ := strings.Cut(out, "\n")
		var b strings.Builder
		b.WriteString("run," + strings.TrimSpace(header) + "\n")
		w := csv.NewWriter(&b)
		for _, run := range slices.Sorted(slices.Values(measuredRuns)) {
			if err := w.WriteAll(m[table][run]); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(measuresDir, table+".csv"), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMeasuredTables asks the runs that are in this repository again. It writes the rows of the others if
// $COMMQ_FIGURES names a store that has them, or $COMMQ_NPB a folder with their programs, which it then captures.
func TestMeasuredTables(t *testing.T) {
	tables, folder, kept := readMeasures(t), os.Getenv("COMMQ_NPB"), os.Getenv("COMMQ_FIGURES")
	written := false
	write := func(store, name string) {
		for table, rows := range answersOf(t, store, name) {
			tables[table][name] = rows
		}
		written = true
	}
	for _, name := range measuredRuns {
		part := strings.Split(name, ".")
		n := npb{"openmpi", part[0], part[1], int(parsed(t, part[2]))}
		if _, err := os.Stat(filepath.Join(runsDir, name)); err == nil {
			for table, rows := range answersOf(t, runsDir, name) {
				if diff := cmp.Diff(tables[table][name], rows); diff != "" {
					t.Errorf("%s of %s: committed (-) and asked (+) differ:\n%s", table, name, diff)
				}
			}
			continue
		}
		if _, err := os.Stat(filepath.Join(kept, name)); kept != "" && err == nil {
			write(kept, name)
			continue
		}
		if _, err := os.Stat(filepath.Join(folder, n.library, n.app+"."+n.class+".x")); folder == "" || err != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			store := t.TempDir()
			n.capture(t, folder, store, "--record", "messages", "--hash", "none", "--stack", "0", "--clock", "none")
			write(store, name)
		})
	}
	if written {
		tables.write(t)
	}
	for _, name := range measuredRuns {
		if len(tables["ratio"][name]) == 0 {
			t.Errorf("no rows of %s in %s", name, measuresDir)
		}
	}
}

// of returns the rows of the runs whose names match a pattern, "*.A.64", in the order of measuredRuns.
func (m measures) of(t *testing.T, table, pattern string) map[string][][]string {
	t.Helper()
	found := map[string][][]string{}
	for run, rows := range m[table] {
		if ok, err := filepath.Match(pattern, run); err != nil {
			t.Fatal(err)
		} else if ok {
			found[run] = rows
		}
	}
	if len(found) == 0 {
		t.Errorf("no run %s in the table %s", pattern, table)
	}
	return found
}

func parsed(t *testing.T, number string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// shareOf returns the share of one kind in a run's operations per rank.
func (m measures) shareOf(t *testing.T, run, kind string) float64 {
	t.Helper()
	for _, row := range m["ratio"][run] {
		if row[2] == kind {
			return parsed(t, row[5])
		}
	}
	t.Fatalf("no %s operations of %s", kind, run)
	return 0
}

// Section 3.3: "the BT, CG, LU, and SP benchmarks use point-to-point almost exclusively, while EP, FT, and IS make
// heavy use of collective operations", section 3.1: FT and IS "use collective operations almost exclusively", on 64
// nodes.
func TestBenchmarksAreOfOneKind(t *testing.T) {
	tables := readMeasures(t)
	for app, kind := range map[string]string{"bt": "point-to-point", "cg": "point-to-point", "lu": "point-to-point",
		"sp": "point-to-point",
		"ep": "collective", "ft": "collective", "is": "collective"} {
		for run := range tables.of(t, "ratio", app+".*.64") {
			if share := tables.shareOf(t, run, kind); share < 0.97 {
				t.Errorf("%s: a share of %v is %s", run, share, kind)
			}
		}
	}
}

// Section 3.3: MG uses fewer collectives "with increasing class size".
func TestRatioOfMGFallsWithTheClass(t *testing.T) {
	tables := readMeasures(t)
	last := 1.0
	for _, class := range []string{"A", "B", "C"} {
		share := tables.shareOf(t, "mg."+class+".64", "collective")
		if share >= last {
			t.Errorf("class %s: a share of %v is collective, not less than the %v of the class before", class, share,
				last)
		}
		last = share
	}
}

// Section 3.3: "the ratio does depend on the class of FT". FT of NPB 3.4 sends no messages at all, so that its ratio
// cannot fall. The number of collectives depends on the class: a Reduce and an Alltoall for each of 6 iterations in
// class A and 20 in B and C, and 8 more.
func TestCollectivesOfFTDependOnTheClass(t *testing.T) {
	tables := readMeasures(t)
	for run, want := range map[string]string{"ft.A.64": "20", "ft.B.64": "48", "ft.C.64": "48"} {
		if share := tables.shareOf(t, run, "collective"); share != 1 {
			t.Errorf("%s: a share of %v is collective, want all", run, share)
		}
		for _, row := range tables["ratio"][run] {
			if row[2] == "collective" && row[4] != want {
				t.Errorf("%s: %s collectives per rank, want %s", run, row[4], want)
			}
		}
	}
}

// Section 3.4, with the Bcasts that NPB 3.4 has in addition to the paper's version: CG uses one Reduce and one
// Barrier, EP four Allreduce and one Barrier, IS two Reduce and eleven each of Allreduce, Alltoall and Alltoallv, for
// all classes and numbers of nodes.
func TestCollectivesMatchThePaper(t *testing.T) {
	tables := readMeasures(t)
	for app, want := range map[string]string{
		"cg": "MPI_Barrier 1, MPI_Bcast 1, MPI_Reduce 1",
		"ep": "MPI_Allreduce 4, MPI_Barrier 1, MPI_Bcast 1",
		"is": "MPI_Allreduce 11, MPI_Alltoall 11, MPI_Alltoallv 11, MPI_Bcast 1, MPI_Reduce 2",
	} {
		for run, rows := range tables.of(t, "collectives", app+".*") {
			var got []string
			for _, row := range rows {
				got = append(got, row[2]+" "+row[3])
			}
			if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("%s: %s", run, diff)
			}
		}
	}
}

// Section 3.4: "BT, LU, MG, and SP behave the same way: various collective operations are used a small, fixed number
// of times". Their number of Bcasts no longer grows with the number of nodes in NPB 3.4.
func TestCollectivesDoNotDependOnRanks(t *testing.T) {
	tables := readMeasures(t)
	for _, app := range []string{"bt", "cg", "ep", "ft", "is", "mg", "sp"} {
		var before, first string
		for run, rows := range tables.of(t, "collectives", app+".A.*") {
			var counts []string
			for _, row := range rows {
				counts = append(counts, row[2]+" "+row[3])
			}
			if got := strings.Join(counts, ", "); before == "" {
				before, first = got, run
			} else if got != before {
				t.Errorf("%s: %s; %s: %s", first, before, run, got)
			}
		}
	}
}

// Section 3.5 and Figure 14: SP class A sends about 15,000 messages of up to 16 Ki and 5,000 of up to 64 Ki on 4
// nodes, 96,000 of up to 16 Ki and 58,000 of up to 4 Ki on 16, 155,000, 540,000 and 540,000 of up to 16, 4 and 1 Ki
// on 64. The paper writes kB, but its numbers are those of elements.
func TestSizesOfSPMatchThePaper(t *testing.T) {
	tables := readMeasures(t)
	for run, want := range map[string]string{
		"sp.A.4":  "<= 16 Ki 14460, <= 64 Ki 4812",
		"sp.A.16": "<= 4 Ki 57744, <= 16 Ki 96336",
		"sp.A.64": "<= 1 Ki 538944, <= 4 Ki 538944, <= 16 Ki 154368",
	} {
		var got []string
		for _, row := range tables["sizes"][run] {
			if row[5] != "0" {
				got = append(got, row[3]+" "+row[5])
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s: %s", run, diff)
		}
	}
}

// Section 3.5: EP "does not send messages larger than 16": all of its collectives are of 16 elements or fewer.
func TestEPSendsNothingLarge(t *testing.T) {
	for run, rows := range readMeasures(t).of(t, "calls", "ep.*") {
		for _, row := range rows {
			if bucket, calls := row[2], row[5]; (bucket == "1") != (calls != "0") {
				t.Errorf("%s: %s calls of %s elements", run, calls, row[3])
			}
		}
	}
}
