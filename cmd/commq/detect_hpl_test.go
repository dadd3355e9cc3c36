package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/detect/report"
	"github.com/commq/commq/internal/testenv"
)

// hplBroadcasts are HPL's six kinds of broadcasts of panels in a row of three processes, for N = 200 and NB = 40:
// five panels, the first of 38,728 bytes. The long kinds cut a panel: into three parts, or, in the modified one, into
// two for the processes other than the root and the one next to it, which gets the whole panel. They scatter the
// parts and pass them on. Per panel that takes 3 messages instead of 2, and 5 or 8 in the plain one, which also sends
// parts to processes that have them.
var hplBroadcasts = []string{
	"1 segments 10 messages [MPI_Send]", // 1rg
	"1 segments 10 messages [MPI_Send]", // 1rM
	"1 segments 10 messages [MPI_Send]", // 2rg
	"1 segments 10 messages [MPI_Send]", // 2rM
	"2 segments 15 messages [MPI_Issend MPI_Ssend]",
	"3 segments 40 messages [MPI_Issend MPI_Ssend]",
}

// TestDetectFindsHPLsBroadcasts runs HPL with all of its broadcasts on 2 x 3 processes.
func TestDetectFindsHPLsBroadcasts(t *testing.T) {
	testenv.MPI(t, "openmpi")
	testenv.Need(t, "hpcc")
	captureEnvironment(t)
	commq(t, "capture", "build", "--mpi", "openmpi")
	store := t.TempDir()
	t.Chdir(t.TempDir())
	input := strings.NewReplacer("500 Ns", "200 Ns", "2 Qs", "3 Qs", "1 # of broadcast", "6 # of broadcast",
		"1 BCASTs", "0 1 2 3 4 5 BCASTs").Replace(hpccInput)
	if err := os.WriteFile("hpccinf.txt", []byte(input), 0o644); err != nil {
		t.Fatal(err)
	}
	commq(t, "capture", "--store", store, "--name", "hpl.6", "-q", "--hash", "crc64", "-n", "6", "--", "hpcc")
	var d report.Report
	if err := json.Unmarshal([]byte(commq(t, "detect", "--store", store, "--run", "hpl.6", "--all", "--format", "json")),
		&d); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"0-2", "3-5"} {
		var got []string
		for _, f := range d.Findings {
			if f.Operation != "MPI_Bcast" || f.PayloadBytesMin != 13128 || f.PayloadBytesMax != 38728 {
				continue
			}
			for _, g := range f.Groups {
				if report.Ranges(g.Ranks) != row {
					continue
				}
				if g.Communicator == nil || g.Instances != 5 || report.Ranges(g.Roots) != row || g.Completeness != 1 {
					t.Errorf("row %s: communicator %v, %d instances, roots %v, completeness %v; want one, 5, all and 1",
						row, g.Communicator, g.Instances, g.Roots, g.Completeness)
				}
				got = append(got, fmt.Sprintf("%d segments %d messages %v", f.Segments, g.Messages, callsAt(f.SendSites)))
			}
		}
		slices.Sort(got)
		if diff := gocmp.Diff(hplBroadcasts, got); diff != "" {
			t.Errorf("row %s: want, got:\n%s", row, diff)
		}
	}
}
