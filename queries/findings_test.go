package queries_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
)

// findingCases are runs with one fault that the finding file must name, and what it must say first: call site, call,
// ranks, cost in ns, and evidence.
var findingCases = []struct {
	name, rule, run string
	ranks           int32
	want            string
}{{
	// Rank 0 computes 900 ns between tests that take 300 ns, then gives up on what it tested 200 ns for.
	"tests between computing", "polling", `
events rank seq call class start_ns end_ns compute_ns polls poll_ns callsite
0 0 MPI_Irecv recv 0 10 0 - - 1
0 1 MPI_Test complete 1210 1220 900 9 300 2
0 2 MPI_Barrier collective 1420 1500 0 4 200 3
1 0 MPI_Barrier collective 0 1500 0 - - 3

callsites id
0
1
2
3
`, 2, "2 MPI_Test [0] 300 [9 300 900 0]; 3 MPI_Barrier [0] 200 [4 200 0 200]"},
	{
		// A loop of tests without computing only waits.
		"tests alone", "polling", `
events rank seq call class start_ns end_ns compute_ns polls poll_ns callsite
0 0 MPI_Irecv recv 0 10 0 - - 1
0 1 MPI_Test complete 1210 1220 0 900 1200 0

callsites id
0
1
`, 1, ""},
	{
		// The first message is transferred only when its receive is posted, the second one is copied, the third is
		// small, and the fourth is under way when the receive is posted.
		"large messages before their receive", "unexpected-messages", `
events rank seq call class start_ns end_ns callsite
1 0 MPI_Recv recv 500000 900000 0
1 1 MPI_Recv recv 900000 910000 0
1 2 MPI_Recv recv 910000 911000 0
1 3 MPI_Recv recv 911000 999000 0

messages src send_seq dst comm tag bytes send_start_ns send_end_ns recv_post_seq recv_done_seq recv_post_ns recv_start_ns recv_end_ns recv_callsite
0 0 1 0 0 1000000 0 900000 0 0 500000 500000 900000 0
0 1 1 0 0 8000 10 20 1 1 900000 900000 910000 0
0 2 1 0 0 4095 20 30 2 2 910000 910000 911000 0
0 3 1 0 0 1000000 900000 999000 3 3 911000 911000 999000 0

callsites id
0
`, 2, "0 MPI_Recv [1] 402000 [2 1008000 1399990]"},
	{
		// Rank 0 waits 50 ns for a lock, and rank 1 9 ns. Fences, known groups and known locks are the matter of delays
		// (models/critical).
		"wait for a lock", "one-sided-waits", `
events rank seq call class comm instance init_seq start_ns end_ns label callsite
0 0 MPI_Win_create rma 0 0 - 0 10 - 0
0 1 MPI_Win_fence rma 0 - 0 100 850 - 1
0 2 MPI_Win_lock rma 0 - 0 1200 1250 - 2
0 3 MPI_Win_lock rma 0 - 0 1300 1450 shared 2
0 4 MPI_Win_start rma 0 - 0 1500 1900 1 1
0 5 MPI_Win_complete rma 0 - 0 1900 1950 - 1
1 0 MPI_Win_create rma 0 0 - 0 10 - 0
1 1 MPI_Win_fence rma 0 - 0 800 850 - 1
1 2 MPI_Win_lock rma 0 - 0 1200 1209 - 2

callsites id
0
1
2
`, 2, "2 MPI_Win_lock [0] 50 [1 50]"},
	{
		// Ranks 0 and 3 exchange most, and so do 1 and 2, but 0 and 1 are on one node. A message takes 1000 ns between
		// nodes and 200 ns within one.
		"heavy pairs on different nodes", "locality", `
events rank seq call class start_ns end_ns
0 0 MPI_Send send 0 10
1 0 MPI_Send send 0 10
2 0 MPI_Recv recv 0 1000
3 0 MPI_Recv recv 0 1000
3 1 MPI_Recv recv 1000 1010

messages src send_seq dst comm tag bytes send_start_ns send_end_ns recv_post_seq recv_done_seq recv_post_ns recv_start_ns recv_end_ns
0 0 3 0 0 1000 10 20 0 0 0 0 1010
0 1 1 0 0 1 20 30 0 0 0 0 220
0 2 3 0 0 1000 1020 1030 1 1 1010 1010 2020
1 0 2 0 0 1000 10 20 0 0 0 0 1010

ranks rank host
0 0
1 0
2 1
3 1
`, 4, "-2147483648  [0 2] 1604 [swap 3000 1 3001]"},
	{
		// The second communicator has other neighbours.
		"topologies", "communicator-in-loop", `
events rank seq call class comm instance start_ns end_ns callsite
0 0 MPI_Dist_graph_create comm 0 0 0 10 1
0 1 MPI_Dist_graph_create comm 0 1 10 20 1
1 0 MPI_Dist_graph_create comm 0 0 0 10 1
1 1 MPI_Dist_graph_create comm 0 1 10 20 1

comms comm comm_rank world_rank parent kind graph_edges
0 0 0 - world -
0 1 1 - world -
3 0 0 0 graph 1
3 1 1 0 graph 0
4 0 0 0 graph 0
4 1 1 0 graph 1

callsites id
0
1
`, 2, ""},
}

// TestFindings: each finding file names the fault of a small run, with its cost.
func TestFindings(t *testing.T) {
	all, err := queries.Findings()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range findingCases {
		t.Run(c.rule+"/"+c.name, func(t *testing.T) {
			got := ""
			for _, a := range look(t, &queries.Search{}, newRun(t, "planted", c.run, example.Manifest(c.ranks)), all) {
				if a.Err != nil || a.Finding.Name == c.rule && a.Not != "" {
					t.Fatalf("%s: %v %s", a.Finding.Name, a.Err, a.Not)
				}
				for _, f := range a.Found {
					if a.Finding.Name != c.rule {
						t.Errorf("%s found %+v", a.Finding.Name, f)
						continue
					}
					if got != "" {
						got += "; "
					}
					got += fmt.Sprint(f.Callsite, " ", f.Call, " ", f.Ranks, " ", f.CostNs, " ", f.Evidence)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestOriginsOfFindings: a finding that only some times tell says so in its header, so that others are told that it was
// not looked for. A filter in its SQL would find nothing instead.
func TestOriginsOfFindings(t *testing.T) {
	for _, name := range queries.FindingNames() {
		text, err := os.ReadFile(filepath.Join("findings", name+".sql"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "time_origin") {
			t.Errorf("%s filters by time_origin; name the accepted origins in its header", name)
		}
	}
}
