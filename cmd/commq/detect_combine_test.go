package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/detect/report"
)

// combinedFindings are the collectives that testdata/programs/combined.* does by hand on 5 ranks: function,
// operation, reductions, certainty, ranks, roots, instances and bytes of each, messages, ranks whose own part is not
// recorded.
var combinedFindings = []string{
	"central MPI_Allreduce [] inferred 0-4 [] 6 x 56 by 48 kept 2",
	"chain MPI_Scan [MPI_SUM] verified 0-4 [] 6 x 56 by 24 kept ",
	"doubling MPI_Allreduce [MPI_SUM] verified 0-4 [] 6 x 56 by 60 kept 0",
	"gather MPI_Gather [] inferred 0-4 [3] 6 x 280 by 24 kept 3",
	"gather_tree MPI_Gather [] verified 0-4 [0] 6 x 280 by 24 kept ",
	"growing MPI_Allgather [] verified 0-3 [] 6 x 56 by 48 kept ",
	"largest MPI_Allreduce [MPI_MAX] inferred 0-3 [] 6 x 4 by 48 kept ",
	"reduce_recorded MPI_Reduce [MPI_SUM] verified 0-4 [0] 6 x 28 by 24 kept ",
	"reduce_tree MPI_Reduce [] inferred 0-4 [0] 6 x 56 by 24 kept 2",
	"ring MPI_Reduce_scatter_block [] inferred 0-4 [] 6 x 280 by 120 kept 0-4",
	"scan MPI_Scan [MPI_SUM] verified 0-4 [] 6 x 28 by 48 kept ",
	"scatter_tree MPI_Scatter [] inferred 0-4 [0] 6 x 280 by 24 kept 0,2",
	"scatterv MPI_Scatterv [] inferred 0-4 [1] 6 x 60 by 24 kept 1",
}

// TestDetectFindsCombiningByHand captures gathers, scatters, reductions and scans, and similar patterns that are none
// of these, in C and Fortran under both libraries.
func TestDetectFindsCombiningByHand(t *testing.T) {
	captureEnvironment(t)
	dir := t.TempDir()
	commq(t, "capture", "api", "--dir", dir)
	for _, library := range []string{"openmpi", "mpich"} {
		commq(t, "capture", "build", "--mpi", library)
		for _, f := range flavours() {
			t.Run(library+"/"+f.name, func(t *testing.T) {
				f.flags = append(slices.Clone(f.flags), "-g", "-I"+dir)
				if f.suffix == ".F90" {
					f.flags = append(f.flags, "-ffree-line-length-none", "-J"+t.TempDir(),
						filepath.Join(dir, "commq.f90"))
				}
				exe, store := program{name: "combined"}.build(t, library, f), t.TempDir()
				out := commq(t, "capture", "--store", store, "--name", "combined", "-q", "--hash", "crc64", "-n", "5",
					"--", exe)
				if out != "ok\n" {
					t.Fatalf("the program prints %q, want ok", out)
				}
				var d report.Report
				if err := json.Unmarshal([]byte(commq(t, "detect", "--store", store, "--run", "combined", "--all", "--format",
					"json")), &d); err != nil {
					t.Fatal(err)
				}
				if diff := gocmp.Diff(combinedFindings, combinedLines(&d)); diff != "" {
					t.Errorf("want, got:\n%s", diff)
				}
			})
		}
	}
}

// combinedLines returns findings as in combinedFindings. The names of Fortran procedures begin with their module.
func combinedLines(d *report.Report) []string {
	var out []string
	for _, f := range d.Findings {
		var functions []string
		for _, s := range f.SendSites {
			if name := s.Function[strings.LastIndex(s.Function, ":")+1:]; !slices.Contains(functions, name) {
				functions = append(functions, name)
			}
		}
		for _, g := range f.Groups {
			out = append(out, fmt.Sprintf("%s %s %v %s %s %v %d x %d by %d kept %s", strings.Join(functions, "+"),
				f.Operation, f.Reductions, f.Certainty,
				report.Ranges(g.Ranks), g.Roots, g.Instances, f.PayloadBytesMax, g.Messages, report.Ranges(g.KeptRanks)))
		}
	}
	slices.Sort(out)
	return out
}

// TestDetectFindsTheRowsOfCG: CG of NPB sums along the rows of its grid of ranks by hand, at eight places in its
// source: w = A p, p.q, the residual and so on. On 2 x 2 ranks a row has two ranks, and only a vector's sum is sent
// on, so that it can be compared.
func TestDetectFindsTheRowsOfCG(t *testing.T) {
	for _, c := range []struct {
		run  string
		rows [][2]int32
		// verified are the sending lines of verified findings, inferred those of inferred ones.
		verified, inferred string
	}{
		{"cg.A.4", [][2]int32{{0, 1}, {2, 3}}, "877x400 1068x16", "352x15 827x16 951x400 1008x400 1136x16"},
		{"cg.A.16", [][2]int32{{0, 3}, {4, 7}, {8, 11}, {12, 15}},
			"265x1 352x15 827x16 877x400 951x400 1008x400 1068x16 1136x16", ""},
	} {
		var d report.Report
		if err := json.Unmarshal([]byte(commq(t, "detect", "--store", runsDir, "--run", c.run, "--format", "json")),
			&d); err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for _, row := range c.rows {
			for certainty, lines := range map[string]string{"verified [MPI_SUM]": c.verified,
				"inferred []": c.inferred} {
				for _, l := range strings.Fields(lines) {
					want = append(want, fmt.Sprintf("MPI_Allreduce %s ranks %d-%d %s", certainty, row[0], row[1], l))
				}
			}
		}
		for _, f := range d.Findings {
			for _, g := range f.Groups {
				got = append(got, fmt.Sprintf("%s %s %v ranks %s %dx%d", f.Operation, f.Certainty, f.Reductions,
					report.Ranges(g.Ranks), f.SendSites[0].Line, g.Instances))
			}
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
