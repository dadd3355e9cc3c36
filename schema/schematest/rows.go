// Package schematest helps tests of the packages that work on rows: it reads rows written as text.
package schematest

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

// TinyRun is a run of three ranks in two epochs. Rank 0 sends 40 bytes to itself (Isend, Recv, completed by the Wait)
// and 4097 to rank 1 (Send to an Irecv and Wait); on communicator 3, where ranks 2 and 0 are 0 and 1, rank 2 sends 5
// bytes, which rank 0 gets by Mprobe and Mrecv. Rank 2 posts a receive that nothing matches. All make an Alltoallv.
const TinyRun = `
ranks rank=0 events=7 polls=2 ended=finalized
ranks rank=1 events=3 ended=finalized
ranks rank=2 events=3 ended=finalized
comms comm=0 comm_rank=0 world_rank=0
comms comm=0 comm_rank=1 world_rank=1
comms comm=0 comm_rank=2 world_rank=2
comms comm=3 comm_rank=0 world_rank=2 parent=0 kind=split
comms comm=3 comm_rank=1 world_rank=0 parent=0 kind=split
datatypes id=5 name=MPI_BYTE bytes=1 extent_bytes=1
callsites id=0
callsites id=1 parent=0
callsites id=2
events rank=0 seq=0 call=MPI_Isend start_ns=100 end_ns=110 comm=0 send_peer=0 send_world=0 send_tag=9 send_bytes=40 send_datatype=5 proc_null=0 request=1 done_seq=4 callsite=1
events rank=0 seq=1 call=MPI_Recv start_ns=120 end_ns=150 comm=0 recv_peer=0 recv_world=0 recv_tag=9 recv_bytes=40 recv_datatype=5 posted_any=1 proc_null=0
events rank=0 seq=2 call=MPI_Alltoallv start_ns=200 end_ns=300 comm=0 instance=0 send_bytes=100 recv_bytes=30
events rank=1 seq=0 call=MPI_Irecv start_ns=90 end_ns=95 comm=0 recv_peer=0 recv_world=0 recv_tag=9 recv_bytes=4097 posted_any=0 proc_null=0 request=1 done_seq=2
events rank=1 seq=1 call=MPI_Alltoallv start_ns=210 end_ns=310 comm=0 instance=0 send_bytes=10 recv_bytes=70
events rank=2 seq=0 call=MPI_Alltoallv start_ns=220 end_ns=320 comm=0 instance=0 send_bytes=20 recv_bytes=30
events rank=0 seq=3 epoch=1 call=MPI_Send start_ns=400 end_ns=500 comm=0 send_peer=1 send_world=1 send_tag=9 send_bytes=4097 proc_null=0
events rank=0 seq=4 epoch=1 call=MPI_Wait start_ns=510 end_ns=520 request=1
events rank=0 seq=5 epoch=1 call=MPI_Mprobe start_ns=530 end_ns=540 comm=3 recv_peer=0 recv_world=2 recv_tag=9 recv_bytes=5 posted_any=2 proc_null=0
events rank=0 seq=6 epoch=1 call=MPI_Mrecv start_ns=550 end_ns=560 comm=3 recv_peer=0 recv_world=2 recv_tag=9 recv_bytes=5 posted_any=2 proc_null=0 init_seq=5
events rank=1 seq=2 epoch=1 call=MPI_Wait start_ns=410 end_ns=900 request=1
events rank=2 seq=1 epoch=1 call=MPI_Send start_ns=420 end_ns=430 comm=3 send_peer=1 send_world=0 send_tag=9 send_bytes=5 proc_null=0
events rank=2 seq=2 epoch=1 call=MPI_Irecv start_ns=440 end_ns=450 comm=0 posted_any=3 request=1
messages src=0 dst=0 comm=0 tag=9 bytes=40 send_seq=0 send_start_ns=100 send_end_ns=110 recv_post_seq=1 recv_done_seq=1 recv_post_ns=120 recv_start_ns=120 recv_end_ns=150
messages src=0 dst=1 epoch=1 comm=0 tag=9 bytes=4097 send_seq=3 send_start_ns=400 send_end_ns=500 recv_post_seq=0 recv_done_seq=2 recv_post_ns=90 recv_start_ns=410 recv_end_ns=900
messages src=2 dst=0 epoch=1 comm=3 tag=9 bytes=5 send_seq=1 send_start_ns=420 send_end_ns=430 recv_post_seq=5 recv_done_seq=6 recv_post_ns=530 recv_start_ns=550 recv_end_ns=560
parts rank=0 seq=2 peer_world=1 send_bytes=70 recv_bytes=10
parts rank=0 seq=2 peer_world=2 send_bytes=30 recv_bytes=20
parts rank=1 seq=1 peer_world=0 send_bytes=10 recv_bytes=70
parts rank=2 seq=0 peer_world=0 send_bytes=20 recv_bytes=30
`

// TinyManifest describes TinyRun.
func TinyManifest() *schema.Manifest {
	return &schema.Manifest{SchemaVersion: schema.Version, Ranks: 3, TimeOrigin: "measured", ComputeClock: "cpu", Record: "all",
		Hash: "none", Callsites: true, Stack: 2, Ended: "finalized",
		EndNs: 900, Epochs: 2, Counts: schema.Counts{Calls: 13, Polls: 2, Messages: 3, MessageBytes: 4142, Collectives: 1,
			UnmatchedReceives: 1}}
}

// ParseRows reads rows written as in TinyRun: a table and some of its columns. The other columns are null, or 0 and the
// first name where they cannot be null. A row with a call has its class. There is one batch per table, in the order of
// definitions, events, messages and parts; tables without rows have an empty one.
func ParseRows(t *testing.T, text string) []schema.Batch {
	t.Helper()
	var batches []schema.Batch
	for _, table := range []*schema.Table{&schema.RanksTable, &schema.CommsTable, &schema.DatatypesTable, &schema.CallsitesTable, &schema.EventsTable,
		&schema.MessagesTable, &schema.PartsTable} {
		b := schema.NewBatch(table)
		for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
			if cells := strings.Fields(line); cells[0] == table.Name {
				b.(interface{ Resize(int) }).Resize(b.Len() + 1)
				parseRow(t, b, cells[1:])
			}
		}
		batches = append(batches, b)
	}
	return batches
}

// parseRow fills the last row of b.
func parseRow(t *testing.T, b schema.Batch, cells []string) {
	t.Helper()
	given := map[string]string{}
	for _, cell := range cells {
		name, value, _ := strings.Cut(cell, "=")
		if c, _ := b.Table().Column(name); c == nil {
			t.Fatalf("%s has no column %s", b.Table().Name, name)
		}
		given[name] = value
	}
	if call := slices.Index(schema.CallNames, given["call"]); call > 0 && given["class"] == "" {
		given["class"] = schema.Calls[call].Class.String()
	}
	for i := range b.Table().Columns {
		c := &b.Table().Columns[i]
		value, ok := given[c.Name]
		if !ok && !c.Nullable && c.Type != schema.Enum {
			value, ok = "0", true
		}
		if !ok && !c.Nullable {
			value, ok = c.Names[0], true
		}
		setCell(t, b.Data(i), b.Len()-1, c, value, ok && value != "null")
	}
}

func setCell(t *testing.T, data any, row int, c *schema.Column, value string, present bool) {
	t.Helper()
	number := int64(0)
	if present && (c.Type == schema.Int32 || c.Type == schema.Int64) {
		var err error
		if number, err = strconv.ParseInt(value, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	switch v := data.(type) {
	case []int32:
		if v[row] = int32(number); !present {
			v[row] = schema.NullInt32
		}
	case []int64:
		if v[row] = number; !present {
			v[row] = schema.NullInt64
		}
	case []int16:
		if v[row] = int16(slices.Index(c.Names, value)); present && v[row] < 0 {
			t.Fatalf("%s is not a %s", value, c.Name)
		}
	case []string:
		if v[row] = value; !present {
			v[row] = schema.NullText
		}
	}
}

// HasWholeRows reports whether all columns of a batch have as many rows as it says.
func HasWholeRows(b schema.Batch) bool {
	for i := range b.Table().Columns {
		if reflect.ValueOf(b.Data(i)).Len() != b.Len() {
			return false
		}
	}
	return true
}
