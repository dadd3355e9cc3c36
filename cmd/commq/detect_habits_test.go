package main

import (
	"encoding/json"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/detect/report"
)

// habits are the collectives that testdata/programs/habits.* does by hand, in the style of real programs; columns as
// in combinedFindings.
var habits = map[string]struct {
	ranks    string
	findings []string
}{
	".c": {"8", []string{
		"bruck_alltoall MPI_Alltoall [] inferred 0-7 [] 6 x 252 by 144 kept ",
		"butterfly_barrier MPI_Barrier [] inferred 0,2,4,6 [] 6 x 0 by 48 kept ",
		"collect_testsome MPI_Gather [] inferred 0-7 [3] 6 x 576 by 42 kept 3",
		"collect_waitany MPI_Gatherv [] inferred 0-7 [7] 6 x 396 by 42 kept 7",
		"dissemination_barrier MPI_Barrier [] inferred 0-7 [] 6 x 0 by 144 kept ",
		"doubling_allgather MPI_Allgather [] verified 0-7 [] 6 x 72 by 144 kept ",
		"master_any_source MPI_Gather [] inferred 0-7 [0] 6 x 576 by 42 kept 0",
		"persistent_halo MPI_Neighbor_alltoallv [] inferred 0-7 [] 6 x 288 by 192 kept ",
		"pivots MPI_Allreduce [MPI_MAXLOC] verified 0-7 [] 6 x 12 by 144 kept ",
		"pivots MPI_Allreduce [MPI_MINLOC] verified 0-7 [] 6 x 16 by 144 kept ",
		"reduce_columns MPI_Reduce [] inferred 0-7 [0] 6 x 192 by 42 kept 2,4,6",
		"ring_allreduce MPI_Allreduce [] inferred 0-7 [] 6 x 4012 by 672 kept 0-7",
		"sum_and_tell MPI_Allreduce [] inferred 0-7 [] 6 x 8 by 84 kept 0",
		"systolic MPI_Allgather [] verified 0-7 [] 6 x 72 by 336 kept ",
		"transpose MPI_Alltoall [] inferred 0-7 [] 6 x 504 by 336 kept ",
		"tree MPI_Bcast [] verified 0-7 [2] 18 x 8024 by 126 kept ",
		"writers MPI_Gather [] inferred 0-7 [0 1 2 3 4 5 6 7] 12 x 576 by 84 kept 0-7",
	}},
	".F90": {"6", []string{
		"chain_sum MPI_Allreduce [] inferred 0-5 [] 7 x 88 by 70 kept 1-5",
		"columns MPI_Gather [] inferred 0-5 [0] 7 x 528 by 35 kept 0",
		"columns MPI_Scatter [] inferred 0-5 [0] 7 x 528 by 35 kept 0",
		"largest MPI_Allreduce [] inferred 0-5 [] 7 x 8 by 70 kept 0,2,4",
		"parameters MPI_Bcast [] inferred 0-5 [0] 1 x 20 by 5 kept ",
		"parameters MPI_Bcast [] inferred 0-5 [0] 1 x 24 by 5 kept ",
		"pivot_rows MPI_Bcast [] verified 0-5 [0 1 2 3 4 5] 14 x 88 by 70 kept ",
		"transpose_blocks MPI_Alltoall [] inferred 0-5 [] 7 x 440 by 210 kept ",
	}},
}

// textbook are the collectives that testdata/programs/textbook.c does by hand.
var textbook = []string{
	"bruck_allgather MPI_Allgather [] verified 0-5 [] 5 x 56 by 90 kept ",
	"bruck_alltoall MPI_Alltoall [] inferred 0-5 [] 5 x 280 by 90 kept ",
	"dissemination_barrier MPI_Barrier [] inferred 0-5 [] 5 x 0 by 90 kept ",
	"election MPI_Allreduce [] inferred 0-5 [] 5 x 4 by 60 kept 1-5",
	"energy MPI_Reduce [] inferred 0-5 [0] 5 x 24 by 25 kept 0",
	"flags MPI_Neighbor_alltoallw [] inferred 0-5 [] 10 x 120 by 240 kept ",
	"floyd MPI_Bcast [] verified 0-5 [0 1 2 3 4 5] 18 x 96 by 90 kept ",
	"folded_norm MPI_Allreduce [MPI_SUM] verified 0-5 [] 5 x 8 by 60 kept 0-1",
	"gauss_pipeline MPI_Bcast [] verified 0-5 [0 1 2 3 4 5] 12 x 192 by 60 kept ",
	"jacobi MPI_Allreduce [] inferred 0-5 [] 15 x 8 by 150 kept 0",
	"jacobi MPI_Neighbor_alltoall [] inferred 0-5 [] 15 x 384 by 150 kept ",
	"packed_gather MPI_Gather [] inferred 0-5 [0] 5 x 168 by 25 kept 0,2,4",
	"sample_sort MPI_Alltoall [] inferred 0-5 [] 5 x 20 by 150 kept ",
	"sample_sort MPI_Alltoallv [] inferred 0-5 [] 5 x 232 by 150 kept ",
	"sample_sort MPI_Bcast [] verified 0-5 [0] 5 x 24 by 25 kept ",
	"sample_sort MPI_Gather [] inferred 0-5 [0] 5 x 72 by 25 kept 0",
	"summa MPI_Bcast [] verified 0-2 [0 1 2] 6 x 192 by 12 kept ",
	"summa MPI_Bcast [] verified 3-5 [3 4 5] 6 x 192 by 12 kept ",
	"two_level_broadcast MPI_Bcast [] verified 0-5 [0] 5 x 192 by 25 kept ",
	"two_level_sum MPI_Allreduce [MPI_SUM] verified 0-5 [] 5 x 16 by 50 kept 0,3",
}

// irregular are the collectives that testdata/programs/irregular.c does by hand.
var irregular = []string{
	"acknowledge MPI_Gatherv [] inferred 0-5 [0] 6 x 672 by 30 kept 0",
	"ask_around MPI_Alltoallv [] inferred 0-5 [] 6 x 40 by 157 kept ",
	"coarse_grid MPI_Alltoallv [] inferred 0-5 [] 12 x 120 by 120 kept ",
	"count_first MPI_Allgather [] verified 0-5 [] 6 x 4 by 180 kept ",
	"count_first MPI_Allgatherv [] verified 0-5 [] 6 x 320 by 180 kept ",
	"elect MPI_Allreduce [] inferred 0-5 [] 6 x 32 by 60 kept 0-2",
	"join_extents MPI_Allreduce [] inferred 0-5 [] 6 x 32 by 72 kept 0-1",
	"particles MPI_Alltoallv [] inferred 0-5 [] 12 x 2176 by 212 kept ",
	"print_blocks MPI_Gatherv [] inferred 0-5 [0] 6 x 1360 by 30 kept 0",
	"read_in_turn MPI_Scatterv [] inferred 0-5 [0] 6 x 2880 by 30 kept 0",
	"reduce_extents MPI_Reduce [] inferred 0-5 [0] 6 x 32 by 30 kept 2,4",
	"remap MPI_Alltoallv [] inferred 0-5 [] 6 x 464 by 84 kept ",
	"steps MPI_Neighbor_alltoall [] inferred 0-5 [] 6 x 176 by 60 kept ",
	"sum_as_it_comes MPI_Reduce [] inferred 0-5 [0] 6 x 88 by 30 kept 0",
	"told_twice MPI_Bcast [] verified 0-5 [0] 6 x 480 by 30 kept ",
	"write_in_turn MPI_Gatherv [] inferred 0-5 [0] 6 x 2080 by 30 kept 0",
}

// shapes are the collectives that testdata/programs/shapes.c does by hand.
var shapes = []string{
	"borders MPI_Neighbor_alltoall [] inferred 0-5 [] 6 x 256 by 48 kept ",
	"collect_state MPI_Gatherv [] inferred 0-5 [0] 2 x 1504 by 10 kept 0",
	"distribute_state MPI_Scatterv [] inferred 0-5 [0] 1 x 1504 by 5 kept 0",
	"reduce_objects MPI_Reduce [] inferred 0-5 [0 1 2 3 4 5] 6 x 58 by 35 kept 0-5",
	"scan_objects MPI_Scan [] inferred 0-5 [] 6 x 85 by 84 kept 0-5",
	"swap_borders MPI_Neighbor_alltoall [] inferred 0-3 [] 24 x 192 by 96 kept ",
	"swap_borders MPI_Neighbor_alltoall [] inferred 0-5 [] 6 x 192 by 36 kept ",
	"tell_once MPI_Bcast [] inferred 0-5 [0] 1 x 4 by 5 kept ",
}

// TestDetectFindsShapes captures collectives that show by who sends to whom, on six ranks: done once, of constants, of
// packed objects, and exchanges along axes of two ranks. It must find nothing in tasks of which the first go out in
// order, nor in a sort along the edges of a square.
func TestDetectFindsShapes(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		t.Run(library, func(t *testing.T) { detectsIn(t, library, "shapes", shapes) })
	}
}

// detectsIn captures a program on six ranks, and wants these findings besides candidates, in the words of
// combinedLines.
func detectsIn(t *testing.T, library, name string, want []string) {
	t.Helper()
	commq(t, "capture", "build", "--mpi", library)
	exe, store := program{name: name}.build(t, library,
		flavour{"c", ".c", "mpicc.", []string{"-w", "-g"}}), t.TempDir()
	if out := commq(t, "capture", "--store", store, "--name", name, "-q", "--hash", "crc64", "-n", "6",
		"--", exe); out != "ok\n" {
		t.Fatalf("the program prints %q, want ok", out)
	}
	var d report.Report
	if err := json.Unmarshal([]byte(commq(t, "detect", "--store", store, "--run", name, "--format",
		"json")), &d); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, combinedLines(&d)); diff != "" {
		t.Errorf("want, got:\n%s", diff)
	}
}

// TestDetectFindsIrregular captures collectives that programs do in irregular ways, on six ranks: exchanges without
// some pairs of ranks, blocks that come in turn or into one buffer, operations of the program's own on bytes, steps as
// tags. It must find nothing in tasks that a master deals out, in tokens, acknowledgements and ping-pongs, and in what
// leaves a rank for its neighbours; and no broadcasts in answers of all to all, nor in what one rank sends in an
// exchange.
func TestDetectFindsIrregular(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		t.Run(library, func(t *testing.T) { detectsIn(t, library, "irregular", irregular) })
	}
}

// TestDetectFindsTextbooks captures collectives as in textbooks, on six ranks: in rounds with a datatype each, with
// surplus ranks that use other calls, in two levels, packed. It must find nothing in pipelines whose stages change
// the data, and in offsets that go from rank to rank, which may be pipelines, too.
func TestDetectFindsTextbooks(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		t.Run(library, func(t *testing.T) {
			commq(t, "capture", "build", "--mpi", library)
			exe, store := program{name: "textbook"}.build(t, library,
				flavour{"c", ".c", "mpicc.", []string{"-w", "-g"}}), t.TempDir()
			if out := commq(t, "capture", "--store", store, "--name", "textbook", "-q", "--hash", "crc64", "-n", "6",
				"--", exe); out != "ok\n" {
				t.Fatalf("the program prints %q, want ok", out)
			}
			var d report.Report
			if err := json.Unmarshal([]byte(commq(t, "detect", "--store", store, "--run", "textbook", "--all",
				"--format",
				"json")), &d); err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(textbook, combinedLines(&d)); diff != "" {
				t.Errorf("want, got:\n%s", diff)
			}
			for _, f := range d.Findings {
				others := strings.Join(f.Others, " ")
				if want := map[bool]string{true: "MPI_Gather"}[f.Operation == "MPI_Reduce"]; others != want {
					t.Errorf("%s fits %q as well, want %q: what a root receives at one address it may add up",
						f.Operation, others, want)
				}
			}
		})
	}
}

// TestDetectFindsHabits captures collectives as in other programs: with persistent requests, probes, MPI_Waitany and
// MPI_Testsome, derived datatypes, segments of unequal sizes, and all modes of sending. It must find nothing in tasks
// dealt out by a master, in a sort, in sweeps and in shifts.
func TestDetectFindsHabits(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		commq(t, "capture", "build", "--mpi", library)
		for _, f := range []flavour{
			{"c", ".c", "mpicc.", []string{"-w", "-g"}},
			{"usempi", ".F90", "mpif90.", []string{"-w", "-g", "-fallow-argument-mismatch", "-DUSEMPI", "-J" +
				t.TempDir()}},
		} {
			t.Run(library+"/"+f.name, func(t *testing.T) {
				want := habits[f.suffix]
				exe, store := program{name: "habits"}.build(t, library, f), t.TempDir()
				out := commq(t, "capture", "--store", store, "--name", "habits", "-q", "--hash", "crc64", "-n",
					want.ranks, "--", exe)
				if out != "ok\n" {
					t.Fatalf("the program prints %q, want ok", out)
				}
				var d report.Report
				if err := json.Unmarshal([]byte(commq(t, "detect", "--store", store, "--run", "habits", "--all",
					"--format", "json")), &d); err != nil {
					t.Fatal(err)
				}
				if diff := gocmp.Diff(want.findings, combinedLines(&d)); diff != "" {
					t.Errorf("want, got:\n%s", diff)
				}
			})
		}
	}
}
