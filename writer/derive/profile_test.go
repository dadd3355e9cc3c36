package derive

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
)

// Two threads of rank 3 and rank 5; the second window begins with epoch 1. Only calls that agree in everything are
// summed: not the failed send, the one of thread 1, the one to MPI_PROC_NULL, or the receives by a wildcard from
// different senders; and not those that never returned. Nulls add nothing, and a sum of nulls is null.
const profiledRows = `
events rank=3 seq=0 call=MPI_Send start_ns=100 end_ns=110 comm=0 callsite=4 send_peer=5 send_bytes=40 proc_null=0 compute_ns=7 polls=2 poll_ns=20
events rank=3 seq=1 call=MPI_Send start_ns=200 end_ns=203 comm=0 callsite=4 send_peer=6 send_bytes=4097 proc_null=0 compute_ns=9
events rank=3 seq=2 call=MPI_Send start_ns=300 end_ns=350 comm=0 callsite=4 send_peer=5 send_bytes=40 proc_null=0 error_class=15
events rank=3 seq=3 call=MPI_Send start_ns=400 end_ns=401 comm=0 callsite=4 send_bytes=0 proc_null=1
events rank=3 seq=4 thread=1 call=MPI_Send start_ns=410 end_ns=490 comm=0 callsite=4 send_peer=5 send_bytes=9 proc_null=0
events rank=3 seq=5 call=MPI_Send start_ns=500 end_ns=505 comm=0 callsite=4 send_peer=5 send_bytes=1 proc_null=0
events rank=3 seq=6 call=MPI_Send start_ns=600 comm=0 callsite=4 send_peer=5 send_bytes=2 proc_null=0
events rank=5 seq=0 call=MPI_Recv start_ns=100 end_ns=170 comm=0 recv_peer=3 recv_world=3 recv_tag=9 recv_bytes=40 posted_any=1 proc_null=0
events rank=5 seq=1 call=MPI_Recv start_ns=200 end_ns=210 comm=0 recv_peer=3 recv_world=3 recv_tag=9 recv_bytes=41 posted_any=1 proc_null=0
events rank=5 seq=2 call=MPI_Recv start_ns=300 end_ns=310 comm=0 recv_peer=4 recv_world=4 recv_tag=9 recv_bytes=42 posted_any=1 proc_null=0
events rank=5 seq=3 call=MPI_Recv start_ns=400 end_ns=410 comm=0 recv_peer=4 recv_world=4 recv_tag=9 recv_bytes=43 posted_any=0 proc_null=0
events rank=5 seq=4 call=MPI_Recv start_ns=500 end_ns=510 comm=0 recv_peer=3 recv_world=3 recv_tag=8 recv_bytes=44 posted_any=0 proc_null=0
`

const laterRows = `
events rank=3 seq=7 epoch=1 call=MPI_Send start_ns=700 end_ns=709 comm=0 callsite=4 send_peer=5 send_bytes=40 proc_null=0
events rank=5 seq=5 epoch=1 call=MPI_Recv start_ns=700 end_ns=720 comm=0 recv_peer=4 recv_world=4 recv_tag=9 recv_bytes=45 posted_any=0 proc_null=0
`

// profileOf prints the rows of profile of the rows of events in text, a window a paragraph.
func profileOf(t *testing.T, most int, text string) string {
	t.Helper()
	var out strings.Builder
	full := func(b *schema.Profiles) error {
		var r schema.Profile
		n := func(x int64) string {
			if x == schema.NullInt64 || x == int64(schema.NullInt32) {
				return "-"
			}
			return fmt.Sprint(x)
		}
		for i := range b.Len() {
			b.Row(i, &r)
			fmt.Fprintf(&out, "%d %d.%d t%d %s", r.Epoch, r.Rank, r.Nth, r.Thread, schema.CallNames[r.Call])
			for _, x := range []int32{r.ErrorClass, r.PostedAny, r.ProcNull, r.InProgress, r.RecvWorld, r.RecvTag} {
				fmt.Fprint(&out, " ", n(int64(x)))
			}
			fmt.Fprintf(&out, " | %d %d %d", r.Calls, r.Sends, r.Receives)
			for _, x := range []int64{r.SendBytes, r.RecvBytes, r.TimeNs, r.MinNs, r.MaxNs, r.FirstNs, r.LastNs,
				r.ComputeNs, r.Polls, r.PollNs} {
				fmt.Fprint(&out, " ", n(x))
			}
			fmt.Fprintln(&out)
		}
		fmt.Fprintln(&out)
		return nil
	}
	p := NewProfiler()
	p.most = most
	for _, b := range schematest.ParseRows(t, text) {
		if e, ok := b.(*schema.Events); ok {
			if err := p.Add(e, full); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := p.Flush(full); err != nil {
		t.Fatal(err)
	}
	return "\n" + out.String()
}

func TestProfile(t *testing.T) {
	const whole = `
0 3.0 t0 MPI_Send - - 0 0 - - | 4 4 0 4178 - 27 3 10 100 709 16 2 20
0 3.1 t0 MPI_Send 15 - 0 0 - - | 1 1 0 40 - 50 50 50 300 350 - - -
0 3.2 t0 MPI_Send - - 1 0 - - | 1 0 0 0 - 1 1 1 400 401 - - -
0 3.3 t1 MPI_Send - - 0 0 - - | 1 1 0 9 - 80 80 80 410 490 - - -
0 3.4 t0 MPI_Send - - 0 1 - - | 1 1 0 2 - - - - 600 600 - - -
0 5.0 t0 MPI_Recv - 1 0 0 3 9 | 2 0 2 - 81 80 10 70 100 210 - - -
0 5.1 t0 MPI_Recv - 1 0 0 4 9 | 1 0 1 - 42 10 10 10 300 310 - - -
0 5.2 t0 MPI_Recv - 0 0 0 - - | 3 0 3 - 132 40 10 20 400 720 - - -

`
	if d := cmp.Diff(whole, profileOf(t, 8, profiledRows+strings.TrimLeft(laterRows, "\n"))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// With fewer rows at a time, epoch 1 gets sums of its own.
	const windows = `
0 3.0 t0 MPI_Send - - 0 0 - - | 3 3 0 4138 - 18 3 10 100 505 16 2 20
0 3.1 t0 MPI_Send 15 - 0 0 - - | 1 1 0 40 - 50 50 50 300 350 - - -
0 3.2 t0 MPI_Send - - 1 0 - - | 1 0 0 0 - 1 1 1 400 401 - - -
0 3.3 t1 MPI_Send - - 0 0 - - | 1 1 0 9 - 80 80 80 410 490 - - -
0 3.4 t0 MPI_Send - - 0 1 - - | 1 1 0 2 - - - - 600 600 - - -
0 5.0 t0 MPI_Recv - 1 0 0 3 9 | 2 0 2 - 81 80 10 70 100 210 - - -
0 5.1 t0 MPI_Recv - 1 0 0 4 9 | 1 0 1 - 42 10 10 10 300 310 - - -
0 5.2 t0 MPI_Recv - 0 0 0 - - | 2 0 2 - 87 20 10 10 400 510 - - -

1 3.5 t0 MPI_Send - - 0 0 - - | 1 1 0 40 - 9 9 9 700 709 - - -
1 5.3 t0 MPI_Recv - 0 0 0 - - | 1 0 1 - 45 20 20 20 700 720 - - -

`
	if d := cmp.Diff(windows, profileOf(t, 7, profiledRows+strings.TrimLeft(laterRows, "\n"))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// The hash table grows. Whatever its size, the sums have all rows.
func TestProfileOfManyCallSites(t *testing.T) {
	p, calls, rows := NewProfiler(), int64(0), 0
	full := func(b *schema.Profiles) error {
		for i, n := range b.Calls {
			if b.SendBytes[i] != int64(b.Callsite[i])*n {
				t.Errorf("call site %d: %d bytes in %d calls", b.Callsite[i], b.SendBytes[i], n)
			}
			calls, rows = calls+n, rows+1
		}
		return nil
	}
	var e schema.Events
	row := schema.NullEvent
	for i := range 30000 {
		row.Rank, row.Callsite, row.SendBytes = int32(i%3), int32(i*i%5003), int64(i*i%5003)
		e.Append(&row)
	}
	if err := p.Add(&e, full); err != nil {
		t.Fatal(err)
	}
	if err := p.Flush(full); err != nil {
		t.Fatal(err)
	}
	if calls != 30000 || rows != 3*2502 { // 2502 squares modulo the prime 5003, 0 among them
		t.Errorf("%d calls in %d rows", calls, rows)
	}
}

// BenchmarkProfiler measures a row of events: 64 ranks in turn, each with a hundred calls of 17 call sites.
func BenchmarkProfiler(b *testing.B) {
	var e schema.Events
	row := schema.NullEvent
	for i := range 64 * 100 {
		row.Rank, row.Seq, row.Callsite, row.Comm = int32(i/100), int64(i%100), int32(i%17), 0
		row.Call, row.Class = int16(schema.CallSend)+int16(i%17%3), int16(schema.ClassSend)
		row.StartNs, row.EndNs, row.SendBytes, row.ComputeNs = int64(1000*i), int64(1000*i+i%97), 4097, 9
		e.Append(&row)
	}
	p := NewProfiler()
	for b.Loop() {
		if err := p.Add(&e, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(e.Len()), "ns/row")
}
