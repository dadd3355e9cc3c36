package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// combinedFindings are what testdata/programs/combined.* does by hand on 5 ranks: function, operation, reductions, certainty, ranks,
// roots, instances and bytes of each, messages, ranks whose own part is not seen.
var combinedFindings = []string{
	"central MPI_Allreduce [] inferred 0-4 [] 6 x 56 by 48 kept 2",
	"chain MPI_Scan [MPI_SUM] verified 0-4 [] 6 x 56 by 24 kept ",
	"doubling MPI_Allreduce [MPI_SUM] verified 0-4 [] 6 x 56 by 60 kept 0",
	"gather MPI_Gather [] addressed 0-4 [3] 6 x 280 by 24 kept 3",
	"gather_tree MPI_Gather [] verified 0-4 [0] 6 x 280 by 24 kept ",
	"growing MPI_Allgather [] verified 0-3 [] 6 x 56 by 48 kept ",
	"largest MPI_Allreduce [MPI_MAX] verified 0-3 [] 6 x 4 by 48 kept ",
	"reduce_recorded MPI_Reduce [MPI_SUM] verified 0-4 [0] 6 x 28 by 24 kept ",
	"reduce_tree MPI_Reduce [] inferred 0-4 [0] 6 x 56 by 24 kept 2",
	"ring MPI_Reduce_scatter_block [] inferred 0-4 [] 6 x 280 by 120 kept 0-4",
	"scan MPI_Scan [MPI_SUM] verified 0-4 [] 6 x 28 by 48 kept ",
	"scatter_tree MPI_Scatter [] addressed 0-4 [0] 6 x 280 by 24 kept 0,2",
	"scatterv MPI_Scatterv [] addressed 0-4 [1] 6 x 60 by 24 kept 1",
}

// TestDetectFindsWhatIsCombinedByHand captures gathers, scatters, reductions and scans, and what only looks like them, in C and
// Fortran under both libraries.
func TestDetectFindsWhatIsCombinedByHand(t *testing.T) {
	captureEnvironment(t)
	dir := t.TempDir()
	commq(t, "capture", "api", "--dir", dir)
	for _, library := range []string{"openmpi", "mpich"} {
		commq(t, "capture", "build", "--mpi", library)
		for _, f := range flavours() {
			t.Run(library+"/"+f.name, func(t *testing.T) {
				f.flags = append(slices.Clone(f.flags), "-g", "-I"+dir)
				if f.suffix == ".F90" {
					f.flags = append(f.flags, "-ffree-line-length-none", "-J"+t.TempDir(), filepath.Join(dir, "commq.f90"))
				}
				exe, store := program{name: "combined"}.build(t, library, f), t.TempDir()
				out := commq(t, "capture", "--store", store, "--run", "combined", "-q", "--hash", "crc64", "-n", "5", "--", exe)
				if out != "ok\n" {
					t.Fatalf("the program prints %q, want ok", out)
				}
				var d printedDetection
				if err := json.Unmarshal([]byte(commq(t, "detect", "--store", store, "--run", "combined", "--format", "json")), &d); err != nil {
					t.Fatal(err)
				}
				if diff := gocmp.Diff(combinedFindings, combinedLines(&d)); diff != "" {
					t.Errorf("want, got:\n%s", diff)
				}
			})
		}
	}
	s := "MPI_Allreduce of MPI_SUM over MPI_COMM_WORLD (5 ranks)"
	p := printedFinding{Operation: "MPI_Allreduce", Reductions: []string{"MPI_SUM"}, Communicator: new(int32), CommunicatorName: "MPI_COMM_WORLD",
		Ranks: []int32{0, 1, 2, 3, 4}, Certainty: "verified", Checks: 42, Completeness: 1}
	if got := p.over(); got != s {
		t.Errorf("the table says %q, want %q", got, s)
	}
	if got, want := p.remarks(), []string{"verified: 42 payloads compared, all agree"}; !slices.Equal(got, want) {
		t.Errorf("the table remarks %q, want %q", got, want)
	}
}

// TestDetectWords: roots that take turns, and who are neighbours.
func TestDetectWords(t *testing.T) {
	comm := int32(3)
	many := make([]int32, mostTurns+1)
	for i := range many {
		many[i] = int32(i)
	}
	for _, c := range []struct {
		finding printedFinding
		want    string
	}{
		{printedFinding{Roots: []int32{2}}, "root 2"},
		{printedFinding{Roots: []int32{0, 1, 2}, RootOrder: []int32{1, 2, 0}}, "root varies: 1,2,0 in turn"},
		{printedFinding{Roots: []int32{0, 1, 2, 5}}, "root varies: 0-2,5"},
		{printedFinding{Roots: many, RootOrder: many}, "root varies: 0-16 in turn"},
	} {
		f := &c.finding
		f.Operation, f.Communicator, f.Ranks = "MPI_Bcast", &comm, many
		if want := "MPI_Bcast over communicator 3 (17 ranks), " + c.want; f.over() != want {
			t.Errorf("%q, want %q", f.over(), want)
		}
	}
	for _, c := range []struct {
		neighbors printedNeighbors
		want      string
	}{
		{printedNeighbors{Least: 2, Most: 4, Dims: []int{3, 4}, Periods: []bool{false, true}}, "neighbours of a Cartesian grid: MPI_Cart_create with dims 3,4 and periods 0,1 makes its communicator"},
		{printedNeighbors{Least: 2, Most: 2, Dims: []int{3, 4}, Periods: []bool{false, true}, Along: []int{1}},
			"neighbours along dimension 1 of a Cartesian grid: MPI_Cart_create with dims 3,4 and periods 0,1, then MPI_Cart_sub, make its communicators"},
		{printedNeighbors{Least: 1, Most: 7}, "1 to 7 neighbours each: MPI_Dist_graph_create_adjacent makes a communicator of them"},
		{printedNeighbors{Least: 6, Most: 6}, "6 neighbours each: MPI_Dist_graph_create_adjacent makes a communicator of them"},
	} {
		if got := c.neighbors.text(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// combinedLines are findings as in combinedFindings. Names of Fortran's procedures have their module before them.
func combinedLines(d *printedDetection) []string {
	var out []string
	for _, f := range d.Findings {
		var functions []string
		for _, s := range f.SendSites {
			if name := s.Function[strings.LastIndex(s.Function, ":")+1:]; !slices.Contains(functions, name) {
				functions = append(functions, name)
			}
		}
		out = append(out, fmt.Sprintf("%s %s %v %s %s %v %d x %d by %d kept %s", strings.Join(functions, "+"), f.Operation, f.Reductions, f.Certainty,
			ranges(f.Ranks), f.Roots, f.Instances, f.PayloadBytesMax, f.Messages, ranges(f.KeptRanks)))
	}
	slices.Sort(out)
	return out
}

// TestDetectFindsTheRowsOfCG: CG of NPB adds up along the rows of its grid of ranks by hand, eight times in its source: w = A p, p.q, the
// residual and so on. On two by two ranks a row is two ranks, where only a vector's sum is sent on and can be compared.
func TestDetectFindsTheRowsOfCG(t *testing.T) {
	for _, c := range []struct {
		run  string
		rows [][2]int32
		// verified are the lines that send of findings that are verified, inferred of the others.
		verified, inferred string
	}{
		{"cg.A.4", [][2]int32{{0, 1}, {2, 3}}, "877x400 1068x16", "265x1 352x15 827x16 951x400 1008x400 1136x16"},
		{"cg.A.16", [][2]int32{{0, 3}, {4, 7}, {8, 11}, {12, 15}}, "265x1 352x15 827x16 877x400 951x400 1008x400 1068x16 1136x16", ""},
	} {
		var d printedDetection
		if err := json.Unmarshal([]byte(commq(t, "detect", "--store", runsDir, "--run", c.run, "--format", "json")), &d); err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for _, row := range c.rows {
			for certainty, lines := range map[string]string{"verified [MPI_SUM]": c.verified, "inferred []": c.inferred} {
				for _, l := range strings.Fields(lines) {
					want = append(want, fmt.Sprintf("MPI_Allreduce %s ranks %d-%d %s", certainty, row[0], row[1], l))
				}
			}
		}
		for _, f := range d.Findings {
			got = append(got, fmt.Sprintf("%s %s %v ranks %s %dx%d", f.Operation, f.Certainty, f.Reductions, ranges(f.Ranks), f.SendSites[0].Line, f.Instances))
			if name := f.SendSites[0].Function; name != "conj_grad" && name != "cg" {
				t.Errorf("%s: found in %q, want conj_grad or cg", c.run, name)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s: want, got:\n%s", c.run, diff)
		}
	}
}
