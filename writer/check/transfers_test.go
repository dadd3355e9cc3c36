package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// tinyWindows is a run of three ranks that make a window and open a file. Rank 0 puts 40 bytes to rank 2, fetches
// from rank 1, gets from MPI_PROC_NULL, flushes, writes 4097 bytes and posts a read that its Wait completes.
const tinyWindows = `
ranks rank=0 events=10 ended=finalized
ranks rank=1 events=2 ended=finalized
ranks rank=2 events=2 ended=finalized
comms comm=0 comm_rank=0 world_rank=0
comms comm=0 comm_rank=1 world_rank=1
comms comm=0 comm_rank=2 world_rank=2
comms comm=3 comm_rank=0 world_rank=0 kind=self
events rank=0 seq=0 call=MPI_Win_allocate start_ns=10 end_ns=20 comm=0 instance=0
events rank=0 seq=1 call=MPI_File_open start_ns=30 end_ns=40 comm=0 instance=1 label=results
events rank=0 seq=2 call=MPI_Put start_ns=50 end_ns=60 comm=0 send_peer=2 send_world=2 send_bytes=40 proc_null=0 init_seq=0
events rank=0 seq=3 call=MPI_Fetch_and_op start_ns=70 end_ns=80 comm=0 send_peer=1 send_world=1 send_bytes=8 recv_peer=1 recv_world=1 recv_bytes=8 proc_null=0 reduce_op=MPI_SUM init_seq=0
events rank=0 seq=4 call=MPI_Get start_ns=90 end_ns=100 comm=0 recv_bytes=0 proc_null=2 init_seq=0
events rank=0 seq=5 call=MPI_Win_flush start_ns=110 end_ns=120 comm=0 send_peer=2 send_world=2 proc_null=0 init_seq=0
events rank=0 seq=6 call=MPI_File_write_at start_ns=130 end_ns=140 comm=0 send_count=4097 send_bytes=4097 init_seq=1
events rank=0 seq=7 call=MPI_File_iread start_ns=150 end_ns=160 comm=0 recv_count=9 recv_bytes=5 request=1 done_seq=8 init_seq=1
events rank=0 seq=8 call=MPI_Wait start_ns=170 end_ns=180 request=1
events rank=0 seq=9 call=MPI_Win_create start_ns=190 end_ns=200 comm=3 instance=0
events rank=1 seq=0 call=MPI_Win_allocate start_ns=10 end_ns=20 comm=0 instance=0
events rank=1 seq=1 call=MPI_File_open start_ns=30 end_ns=40 comm=0 instance=1 label=results
events rank=2 seq=0 call=MPI_Win_allocate start_ns=10 end_ns=20 comm=0 instance=0
events rank=2 seq=1 call=MPI_File_open start_ns=30 end_ns=40 comm=0 instance=1 label=results
`

// Each breach of the rules about windows and files is found and placed.
func TestCheckerKnowsWindowsAndFiles(t *testing.T) {
	manifest := func() *schema.Manifest {
		return &schema.Manifest{SchemaVersion: schema.Version, Ranks: 3, TimeOrigin: "measured", ComputeClock: "cpu",
			Record: "all",
			Hash:   "none", Ended: "finalized",
			EndNs: 200, Epochs: 1, Counts: schema.Counts{Calls: 14}}
	}
	for _, test := range []struct{ old, new, want string }{
		{"", "", ""},
		{"send_peer=2 send_world=2 send_bytes=40 ", "send_bytes=40 ",
			"events: rank 0, seq 2: MPI_Put has no send_peer (rma)"},
		{"send_bytes=40 proc", "send_tag=9 send_bytes=40 proc",
			"events: rank 0, seq 2: MPI_Put has a tag, a root or posted_any (rma)"},
		{"send_bytes=40 proc", "send_bytes=40 recv_bytes=9 proc",
			"events: rank 0, seq 2: MPI_Put has recv_bytes 9 (rma)"},
		{"send_bytes=40 proc", "send_bytes=40 recv_peer=1 recv_world=1 proc",
			"events: rank 0, seq 2: MPI_Put has a recv side (rma)"},
		{"send_bytes=40 proc_null=0 init_seq=0", "send_bytes=40 proc_null=0 init_seq=1",
			"events: rank 0, seq 2: init_seq is 1, which is no earlier row that made a window or opened a file (rma)"},
		{"send_bytes=40 proc_null=0 init_seq=0", "send_bytes=40 proc_null=0 init_seq=9",
			"events: rank 0, seq 2: init_seq is 9, which is no earlier row that made a window or opened a file (rma)"},
		{"recv_peer=1 recv_world=1 recv_bytes=8", "recv_bytes=8",
			"events: rank 0, seq 3: MPI_Fetch_and_op has no recv_peer (rma)"},
		{"recv_bytes=0 proc_null=2", "recv_bytes=20 proc_null=2",
			"events: rank 0, seq 4: recv_bytes is not 0 with the target MPI_PROC_NULL (rma)"},
		{"recv_bytes=0 proc_null=2", "recv_bytes=0 proc_null=3",
			"events: rank 0, seq 4: MPI_Get has a send side (rma)"},
		{"call=MPI_Win_flush", "call=MPI_Win_unlock send_bytes=3",
			"events: rank 0, seq 5: MPI_Win_unlock has send_bytes 3 (rma)"},
		{"send_count=4097 send_bytes=4097", "send_count=4097 send_bytes=-3",
			"events: rank 0, seq 6: MPI_File_write_at moves a negative number of bytes (io)"},
		{"send_count=4097 send_bytes=4097", "recv_count=4097 recv_bytes=4097",
			"events: rank 0, seq 6: MPI_File_write_at has a receive side (io)"},
		{"send_count=4097", "send_count=4097 send_peer=1 send_world=1",
			"events: rank 0, seq 6: MPI_File_write_at has a peer (io)"},
		{"comm=0 send_count=4097", "comm=3 send_count=4097",
			"events: rank 0, seq 6: init_seq is 1, a row on communicator 0; this one is on 3 (io)"},
		{"call=MPI_File_iread", "call=MPI_File_iwrite",
			"events: rank 0, seq 7: MPI_File_iwrite has a receive side (io)"},
		{"comm=3 instance=0", "comm=3 instance=0 init_seq=0",
			"events: rank 0, seq 9: MPI_Win_create has init_seq 0 (rma)"},
		{"comm=3 instance=0", "comm=3 instance=4",
			"events: rank 0, seq 9: instance 4 on communicator 3, expected 0 (instances)"},
		{"comm=0 send_peer=2 send_world=2 proc_null=0", "comm=0 instance=2 proc_null=0 send_peer=2 send_world=2",
			"events: rank 0, seq 5: MPI_Win_flush has instance 2 (rma)\n" +
				"rank 1: 2 collective operations on communicator 0; its rank 0 made 3 (instances)\nrank 2: 2 collective operations on communicator 0; its rank 0 made 3 (instances)"},
	} {
		if test.old != "" && strings.Count(tinyWindows, test.old) != 1 {
			t.Fatalf("%q stands %d times in the run", test.old, strings.Count(tinyWindows, test.old))
		}
		text := strings.Replace(tinyWindows, test.old, test.new, 1)
		if d := cmp.Diff(test.want, strings.Join(checked(t, manifest(), text), "\n")); d != "" {
			t.Errorf("%s -> %s (-want +found):\n%s", test.old, test.new, d)
		}
	}
}
