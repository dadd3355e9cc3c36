package derive

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
)

// collectiveEvents has a blocking call of two sizes on each of two ranks, one of which takes part once more, a
// persistent neighbourhood collective that rank 3 makes and starts twice, and a start of a request that no row made.
const collectiveEvents = `
events rank=3 seq=0 call=MPI_Bcast comm=2 instance=4 root_world=5 send_bytes=4097 recv_bytes=0 send_count=3 send_datatype=7
events rank=3 seq=1 call=MPI_Bcast comm=2 instance=5 root_world=5 send_bytes=8192 recv_bytes=0 send_count=4 send_datatype=7
events rank=3 seq=2 call=MPI_Bcast comm=2 instance=6 root_world=5 send_bytes=0 recv_bytes=4097 send_count=3 send_datatype=7
events rank=3 seq=3 call=MPI_Barrier comm=2 instance=7
events rank=3 seq=4 call=MPI_Send comm=2 send_bytes=99
events rank=3 seq=5 call=MPI_Neighbor_alltoall_init comm=9 instance=0 send_bytes=24 recv_bytes=24
events rank=3 seq=6 call=MPI_Start class=collective comm=9 instance=4294967296 init_seq=5 send_bytes=24 recv_bytes=24
events rank=3 seq=7 call=MPI_Start class=collective comm=9 instance=4294967297 init_seq=5 send_bytes=24 recv_bytes=24
events rank=3 seq=8 call=MPI_Start class=collective comm=9 instance=8589934592 init_seq=77 send_bytes=1
events rank=5 seq=0 call=MPI_Bcast comm=2 instance=5 root_world=5 send_bytes=8192 recv_bytes=0 send_count=4 send_datatype=7
events rank=5 seq=1 call=MPI_Barrier comm=2 instance=8
parts rank=3 seq=6 peer_world=5 send_bytes=16 recv_bytes=3
parts rank=3 seq=6 peer_world=8 send_bytes=8
parts rank=3 seq=7 peer_world=5 send_bytes=16
parts rank=3 seq=7 peer_world=8 send_bytes=0 recv_bytes=6
parts rank=3 seq=7 peer_world=9 send_bytes=1
parts rank=3 seq=4 peer_world=9 send_bytes=99
`

func TestCollectiveSums(t *testing.T) {
	s := NewCollectiveSums()
	for _, b := range schematest.ParseRows(t, collectiveEvents) {
		switch rows := b.(type) {
		case *schema.Events:
			s.Add(rows)
		case *schema.Parts:
			s.AddParts(rows)
		}
	}
	calls := s.Calls()
	type row struct {
		rank                                    int32
		nth                                     int64
		comm                                    int32
		call                                    string
		bytesPower, countPower                  int32
		calls, sendBytes, recvBytes, operations int64
	}
	var got []row
	for i := range calls.Rank {
		got = append(got, row{rank: calls.Rank[i], nth: calls.Nth[i], comm: calls.Comm[i],
			call: schema.CallNames[calls.Call[i]], bytesPower: calls.BytesPower[i], countPower: calls.CountPower[i],
			calls: calls.Calls[i], sendBytes: calls.SendBytes[i], recvBytes: calls.RecvBytes[i],
			operations: calls.Operations[i]})
	}
	want := []row{
		// Communicator 2 has the operations 4 to 8, and 9 three started ones.
		{3, 0, 2, "MPI_Barrier", -1, -1, 1, 0, 0, 5},
		{3, 1, 2, "MPI_Bcast", 13, 2, 1, 0, 4097, 0},
		{3, 2, 2, "MPI_Bcast", 13, 2, 2, 4097 + 8192, 0, 0},
		{3, 3, 9, "MPI_Neighbor_alltoall_init", 5, -1, 2, 48, 48, 3},
		{3, 4, 9, "MPI_Start", 0, -1, 1, 1, 0, 0},
		{5, 0, 2, "MPI_Barrier", -1, -1, 1, 0, 0, 0},
		{5, 1, 2, "MPI_Bcast", 13, 2, 1, 8192, 0, 0},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(row{})); d != "" {
		t.Errorf("calls: -want +got:\n%s", d)
	}
	parts := s.Parts()
	var gotParts [][5]int64
	for i := range parts.Rank {
		gotParts = append(gotParts, [5]int64{int64(parts.Rank[i]), parts.Nth[i], int64(parts.PeerWorld[i]), parts.Messages[i],
			parts.Bytes[i]})
	}
	if d := cmp.Diff([][5]int64{{3, 0, 5, 2, 32}, {3, 1, 8, 1, 8}, {3, 2, 9, 1, 1}}, gotParts); d != "" {
		t.Errorf("parts: -want +got:\n%s", d)
	}
}

// The sums do not depend on the order of the rows, also where a start comes before the call that made its request.
func TestCollectiveSumsInAnyOrder(t *testing.T) {
	var events *schema.Events
	for _, b := range schematest.ParseRows(t, collectiveEvents) {
		if rows, ok := b.(*schema.Events); ok {
			events = rows
		}
	}
	forth, back := NewCollectiveSums(), NewCollectiveSums()
	forth.Add(events)
	for i := events.Len() - 1; i >= 0; i-- {
		var row schema.Event
		events.Row(i, &row)
		one := &schema.Events{}
		one.Append(&row)
		back.Add(one)
	}
	if d := cmp.Diff(forth.Calls(), back.Calls()); d != "" {
		t.Errorf("-forth +back:\n%s", d)
	}
}

// Too many roots give no table, and leave the other one.
func TestCollectiveSumsAreBounded(t *testing.T) {
	s := NewCollectiveSums()
	s.most = 30
	e := &schema.Events{}
	row := schema.NullEvent
	row.Call, row.Class, row.Comm, row.Instance = int16(slices.Index(schema.CallNames, "MPI_Bcast")), int16(schema.ClassCollective), 0, 0
	e.Append(&row)
	for root := range int32(31) {
		if s.Calls() == nil {
			t.Fatalf("no calls of %d roots", root)
		}
		e.RootWorld[0] = root
		s.Add(e)
	}
	if s.Calls() != nil || s.Parts() == nil {
		t.Errorf("calls of 31 roots: %v; parts: %v", s.Calls(), s.Parts())
	}
}
