package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
)

// startedRun is a run of two ranks. Both make a persistent alltoallv, rank 1 with large counts, and start it twice.
// Then they call a neighbourhood allgather, in which rank 0 gives rank 1 two times 9 bytes and gets 17.
const startedRun = `
ranks rank=0 events=4 ended=finalized
ranks rank=1 events=4 ended=finalized
comms comm=0 comm_rank=0 world_rank=0
comms comm=0 comm_rank=1 world_rank=1
events rank=0 seq=0 call=MPI_Alltoallv_init start_ns=1 end_ns=2 comm=0 instance=0
events rank=0 seq=1 call=MPI_Start class=collective start_ns=3 end_ns=4 comm=0 instance=4294967296 init_seq=0 send_bytes=5 recv_bytes=3
events rank=0 seq=2 call=MPI_Startall class=collective start_ns=5 end_ns=6 comm=0 instance=4294967297 init_seq=0 send_bytes=5 recv_bytes=3
events rank=0 seq=3 call=MPI_Neighbor_allgather start_ns=7 end_ns=8 comm=0 instance=1 send_bytes=18 recv_bytes=17
events rank=1 seq=0 call=MPI_Alltoallv_init_c start_ns=1 end_ns=2 comm=0 instance=0
events rank=1 seq=1 call=MPI_Startall class=collective start_ns=3 end_ns=4 comm=0 instance=4294967296 init_seq=0 send_bytes=3 recv_bytes=5
events rank=1 seq=2 call=MPI_Startall class=collective start_ns=5 end_ns=6 comm=0 instance=4294967297 init_seq=0 send_bytes=3 recv_bytes=5
events rank=1 seq=3 call=MPI_Neighbor_allgather start_ns=7 end_ns=8 comm=0 instance=1 send_bytes=17 recv_bytes=18
parts rank=0 seq=1 peer_world=1 send_bytes=5 recv_bytes=3
parts rank=0 seq=2 peer_world=1 send_bytes=5 recv_bytes=3
parts rank=0 seq=3 peer_world=1 send_bytes=18 recv_bytes=17
parts rank=1 seq=1 peer_world=0 send_bytes=3 recv_bytes=5
parts rank=1 seq=2 peer_world=0 send_bytes=3 recv_bytes=5
parts rank=1 seq=3 peer_world=0 send_bytes=17 recv_bytes=18
`

func TestStartedCollectivesAreChecked(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		want           []string // rules
	}{
		{name: "whole"},
		{"a start twice", "instance=4294967297 init_seq=0 send_bytes=5",
			"instance=4294967296 init_seq=0 send_bytes=5", []string{"instances", "instances"}},
		{"a part of a start", "rank=0 seq=2 peer_world=1 send_bytes=5", "rank=0 seq=2 peer_world=1 send_bytes=6",
			[]string{"parts"}},
		{"a neighbour's part missing", "parts rank=1 seq=3 peer_world=0 send_bytes=17 recv_bytes=18\n", "",
			[]string{"parts", "parts"}},
		{"a neighbour's part on one side", "seq=3 peer_world=1 send_bytes=18 recv_bytes=17",
			"seq=3 peer_world=1 send_bytes=0 recv_bytes=17", []string{"parts"}},
	} {
		m := &schema.Manifest{SchemaVersion: schema.Version, Ranks: 2, TimeOrigin: "measured", ComputeClock: "cpu",
			Record: "all",
			Hash:   "none", Ended: "finalized",
			EndNs: 8, Epochs: 1, Counts: schema.Counts{Calls: 8, Collectives: 3},
			Collectives: map[string]int64{"MPI_Alltoallv_init": 2, "MPI_Neighbor_allgather": 1}}
		text := strings.Replace(startedRun, c.old, c.new, 1)
		var got []string
		checker := NewChecker(m, func(p Problem) {
			got = append(got, p.Rule)
			t.Logf("%s: %v", c.name, p)
		})
		for _, b := range schematest.ParseRows(t, text) {
			checker.Add(b.Table().Name, b)
		}
		checker.Finish()
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: rules (-want +got):\n%s", c.name, diff)
		}
	}
}
