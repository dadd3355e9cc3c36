package formatstest

import (
	"cmp"
	"path/filepath"
	"testing"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
	"github.com/commq/commq/writer"
)

// failed is a run in which rank 1 cancels a receive of tag 7 before it receives 31 bytes with that tag, and posts one
// of tag 8 that is too small for its message of 50 bytes. Rank 0 first fails to send, and both fail to broadcast.
const failed = `
ranks rank=0 events=5 ended=finalized
ranks rank=1 events=8 ended=finalized
comms comm=0 comm_rank=0 world_rank=0
comms comm=0 comm_rank=1 world_rank=1
events rank=0 seq=0 call=MPI_Send start_ns=10 end_ns=11 compute_ns=5 comm=0 send_peer=1 send_world=1 send_tag=7 proc_null=0 error_class=2
events rank=0 seq=1 call=MPI_Send start_ns=20 end_ns=21 compute_ns=5 comm=0 send_peer=1 send_world=1 send_tag=7 send_bytes=31 proc_null=0
events rank=0 seq=2 call=MPI_Send start_ns=30 end_ns=31 compute_ns=5 comm=0 send_peer=1 send_world=1 send_tag=8 send_bytes=50 proc_null=0
events rank=0 seq=3 call=MPI_Bcast start_ns=40 end_ns=41 compute_ns=5 comm=0 instance=0 root_world=0 error_class=2
events rank=0 seq=4 call=MPI_Finalize start_ns=90 end_ns=91 compute_ns=5
events rank=1 seq=0 call=MPI_Irecv start_ns=10 end_ns=11 compute_ns=5 comm=0 recv_peer=0 recv_world=0 recv_tag=7 posted_any=0 proc_null=0 request=1 done_seq=2
events rank=1 seq=1 call=MPI_Cancel start_ns=12 end_ns=13 compute_ns=5 request=1
events rank=1 seq=2 call=MPI_Wait start_ns=14 end_ns=15 compute_ns=5 request=1
events rank=1 seq=3 call=MPI_Recv start_ns=20 end_ns=25 compute_ns=5 comm=0 recv_peer=0 recv_world=0 recv_tag=7 recv_bytes=31 posted_any=0 proc_null=0
events rank=1 seq=4 call=MPI_Irecv start_ns=30 end_ns=31 compute_ns=5 comm=0 recv_peer=0 recv_world=0 recv_tag=8 posted_any=0 proc_null=0 request=2 done_seq=5
events rank=1 seq=5 call=MPI_Waitall start_ns=32 end_ns=39 compute_ns=5 error_class=18
events rank=1 seq=6 call=MPI_Bcast start_ns=40 end_ns=41 compute_ns=5 comm=0 instance=0 root_world=0 error_class=2
events rank=1 seq=7 call=MPI_Finalize start_ns=90 end_ns=91 compute_ns=5
messages src=0 dst=1 comm=0 tag=7 bytes=31 send_seq=1 send_start_ns=20 send_end_ns=21 recv_post_seq=3 recv_done_seq=3 recv_post_ns=20 recv_start_ns=20 recv_end_ns=25
messages src=0 dst=1 comm=0 tag=8 bytes=50 send_seq=2 send_start_ns=30 send_end_ns=31 recv_post_seq=4 recv_done_seq=5 recv_post_ns=30 recv_start_ns=32 recv_end_ns=39
`

// WriteFailed writes the run failed and returns its folder.
func WriteFailed(t *testing.T) string {
	t.Helper()
	return WriteRows(t, failed, &schema.Manifest{Ranks: 2, EndNs: 91,
		Counts: schema.Counts{Calls: 13, Messages: 2, MessageBytes: 81}})
}

// WriteRows writes a run of one epoch with these rows and returns its folder. The manifest has the number of ranks, the
// end, the counts, and how the run ended if that is not finalized.
func WriteRows(t *testing.T, rows string, m *schema.Manifest) string {
	t.Helper()
	store := t.TempDir()
	out, err := writer.Create(store, "rows", writer.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	for _, b := range schematest.ParseRows(t, rows) {
		if err := out.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	m.TimeOrigin, m.ComputeClock, m.Record, m.Hash, m.Epochs = "measured", "cpu", "all", "none", 1
	m.Ended = cmp.Or(m.Ended, schema.EndedNames[schema.EndedFinalized])
	if err := out.Commit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(store, "rows")
}
