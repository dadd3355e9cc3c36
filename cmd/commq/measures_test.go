package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The runs in the repository are of the smaller class W; the paper's statements hold for it, too.
func TestMeasuresOfCommittedRuns(t *testing.T) {
	for run, want := range map[string]string{
		"is.W.16": "MPI_Allreduce 11,MPI_Alltoall 11,MPI_Alltoallv 11,MPI_Bcast 1,MPI_Reduce 2",
		"ep.W.4":  "MPI_Allreduce 4,MPI_Barrier 1,MPI_Bcast 1",
		"cg.A.4":  "MPI_Barrier 1,MPI_Bcast 1,MPI_Reduce 1",
		"cg.A.16": "MPI_Barrier 1,MPI_Bcast 1,MPI_Reduce 1",
	} {
		var got []string
		for _, row := range query(t, "query", "collectives", "--run", run) {
			got = append(got, row[1]+" "+row[2])
		}
		if diff := cmp.Diff(want, strings.Join(got, ",")); diff != "" {
			t.Errorf("%s: %s", run, diff)
		}
	}
	// bt.C.64 has no rows of the calls of matched messages; 9654 messages and 11 collective operations per rank.
	for _, row := range query(t, "query", "ratio", "--run", "*") {
		share, err := strconv.ParseFloat(row[5], 64)
		if err != nil {
			t.Fatal(err)
		}
		app, _, _ := strings.Cut(row[0], ".")
		least, ofPaper := map[string]float64{"bt": 0.998, "cg": 0.99, "lu": 0.99, "sp": 0.99, "mg": 0.8, "ep": 0,
			"ft": 0, "is": 0}[app]
		if !ofPaper {
			continue
		}
		if row[0] == "bt.A.16" { // half as many messages per rank as bt.C.64, and as many collectives
			least = 0.997
		}
		if row[2] == "point-to-point" && (share < least || least == 0 && share > 0.03) {
			t.Errorf("%s: a share of %v is point-to-point", row[0], share)
		}
		if row[0] == "bt.C.64" && row[2] == "collective" && row[4] != "11" {
			t.Errorf("bt.C.64: %s collectives per rank, want 11", row[4])
		}
	}
}

// TestMeasuresAreInWorldRanks asks about comms.c, whose communicators have their ranks in another order than
// MPI_COMM_WORLD: split 4, 2, 0 and 3, 1, an intercommunicator between the two, and communicators of 4, 2, 0 made by
// group. comms.rows has its messages and calls.
func TestMeasuresAreInWorldRanks(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		t.Run(library, func(t *testing.T) {
			store := t.TempDir()
			exe := program{name: "comms"}.build(t, library, flavours()[0])
			if out := commq(t, "capture", "--store", store, "--name", "comms.5", "-q", "-n", "5", "--",
				exe); out != "ok\n" {
				t.Fatalf("the program prints %q, want ok", out)
			}
			// The messages of comms.rows. Collectives: barriers on all (fans with 0), 4 2 0 (with 4) and 3 1 (with
			// 3); an allreduce of 4 bytes on 4 2 0; a bcast of 4 from 4 to 3 and 1; an allgather of 4 bytes each
			// between 4 2 0 and 3 1, a fan-in to the other group's first and a fan-out of 8 and 12 from the own.
			for _, c := range []struct {
				query []string
				want  string
			}{
				{[]string{"density", "--collectives", "none"}, "0,1,1,4 2,3,1,4 3,1,1,4 4,1,1,4 4,2,3,12"},
				{[]string{"density"}, "0,1,2,4 0,2,1,0 0,3,2,4 0,4,3,4 1,0,1,0 1,3,1,0 1,4,1,4 2,0,1,0 2,3,2,8 2,4,2,4 3,0,1,0 3,1,3,16 3,4,1,4 " +
					"4,0,4,12 4,1,2,8 4,2,6,24 4,3,2,8"},
				{[]string{"collectives"}, "5,MPI_Allgather,1,1,20,48 5,MPI_Allreduce,1,0.6,12,12 5,MPI_Barrier,3,2,0,0 5,MPI_Bcast,1,1,4,8"},
				{[]string{"ratio"}, "5,point-to-point,7,1.4,0.23333333333333334 5,collective,23,4.6,0.7666666666666667"},
			} {
				out := commq(t, append(append([]string{"query"}, c.query...), "--store", store, "--run", "comms.5",
					"--format", "csv")...)
				_, rows, _ := strings.Cut(strings.ReplaceAll(out, "\r\n", "\n"), "\n")
				if diff := cmp.Diff(strings.Fields(c.want), strings.Fields(rows)); diff != "" {
					t.Errorf("%v: by hand (-) and captured (+) differ:\n%s", c.query, diff)
				}
			}
		})
	}
}
