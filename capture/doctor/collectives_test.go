package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// Collectives that ranks do in another order, or with another root, are found.
func TestCollectivesThatDoNotMatch(t *testing.T) {
	const none = schema.NullInt32
	type row struct {
		rank     int32
		call     schema.CallID
		comm     int32
		instance int64
		root     int32
	}
	for name, c := range map[string]struct {
		rows []row
		want []string
	}{
		"none": {[]row{{0, schema.CallSend, 0, schema.NullInt64, none}}, nil},
		"alike": {[]row{{0, schema.CallBcast, 0, 0, 1}, {0, schema.CallBarrier, 0, 1, none}, {1, schema.CallBcast, 0, 0, 1},
			{1, schema.CallBarrier, 0, 1, none}, {2, schema.CallIbcast, 0, 0, 1}, {0, schema.CallStart, 0, 1 << 32, none},
			{1, schema.CallStartall, 0, 1 << 32, none}}, []string{"ok collectives: all ranks did the same operations in the same order"}},
		"another order": {[]row{{0, schema.CallBcast, 0, 0, 1}, {0, schema.CallBarrier, 0, 1, none},
			{1, schema.CallBarrier, 0, 0, none}, {1, schema.CallBcast, 0, 1, 1}}, []string{"failed collectives: " +
			"2 calls do not match; first, instance 0 on communicator 0 is MPI_Bcast on rank 0, but MPI_Barrier on rank 1"}},
		"another root": {[]row{{0, schema.CallBcast, 4, 0, 1}, {1, schema.CallBcast, 4, 0, 2}}, []string{"failed collectives: " +
			"1 call does not match; first, instance 0 on communicator 4 is MPI_Bcast with root 1 on rank 0, but MPI_Bcast with root 2 on rank 1"}},
		"roots of two groups": {[]row{{0, schema.CallBcast, 3, 0, 0}, {1, schema.CallBcast, 3, 0, 1}},
			[]string{"ok collectives: all ranks did the same operations in the same order"}},
		"constructors": {[]row{{0, schema.CallCommDup, 0, 0, none}, {1, schema.CallCommSplit, 0, 0, none}}, []string{"failed collectives: " +
			"1 call does not match; first, instance 0 on communicator 0 is MPI_Comm_dup on rank 0, but MPI_Comm_split on rank 1"}},
	} {
		e := &schema.Events{}
		for _, r := range c.rows {
			e.Append(&schema.Event{Rank: r.rank, Call: int16(r.call), Comm: r.comm, Instance: r.instance, RootWorld: r.root,
				ErrorClass: none})
		}
		m := matching{recent: map[operation]member{}}
		m.add(e)
		if diff := cmp.Diff(c.want, lines(m.finding(map[int32]bool{3: true}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
