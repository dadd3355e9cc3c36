package dumpi

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/formats/calls"
	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// sizes are whole and tiny passes.
var sizes = []Options{{}, {EpochRows: 3, ShardRows: 9, Keep: 1, Round: 2}}

// lines returns the rows of a rank as text.
func lines(events []schema.Event, rank int32) (all []string) {
	for i := range events {
		if events[i].Rank == rank {
			all = append(all, line(&events[i]))
		}
	}
	return all
}

// The public trace of SST's DUMPI is what its text form beside it says: a ring of 4 B, tag 1337.
func TestPublicRing(t *testing.T) {
	for _, o := range sizes {
		r, err := imported(t, "testdata/ring/testtrace.meta", o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Ranks != 4 || r.Ended != "finalized" || r.Counts.Messages != 4 || r.Counts.MessageBytes != 16 ||
			r.Warnings[1] != "Read: 36 calls; of them without a row: 4 MPI_Comm_rank, 4 MPI_Comm_size." ||
			len(r.Warnings) != 2 {
			t.Errorf("%+v %q", r.Counts, r.Warnings)
		}
		want := []string{"0.0 Init", "0.1 Barrier comm=0 sent=0 received=0 instance=0",
			"0.2 Isend comm=0 to=1 stag=1337 sent=4 request=1 done=4",
			"0.3 Recv comm=0 from=3 rtag=1337 received=4", "0.4 Wait request=1",
			"0.5 Allreduce comm=0 sent=4 received=4 instance=1 MPI_SUM", "0.6 Finalize"}
		if diff := cmp.Diff(want, lines(r.Events, 0)); diff != "" {
			t.Error(diff)
		}
		// 1296777956.737669 to .737670, where the earliest file of the trace begins at 1296777956.
		if e := &r.Events[0]; e.StartNs != 737669000 || e.EndNs != 737670000 {
			t.Errorf("%d to %d", e.StartNs, e.EndNs)
		}
	}
}

// The public trace of 7 ranks of a Blue Gene has the calls that dumpi2ascii counts: 49 MPI_Alltoall, 21 MPI_Barrier,
// 588 each of MPI_Isend and MPI_Irecv, 98 MPI_Waitall, one communicator by MPI_Comm_create.
func TestPublicBlueGene(t *testing.T) {
	for _, o := range sizes {
		r, err := imported(t, "testdata/bgp", o)
		if err != nil {
			t.Fatal(err)
		}
		c := r.Counts
		if r.Ranks != 7 || c.Calls != 1365 || c.Messages != 588 || c.MessageBytes != 418656 || c.Collectives != 10 ||
			c.UnmatchedSends+c.UnmatchedReceives != 0 || r.Collectives["MPI_Alltoall"] != 7 {
			t.Errorf("%+v %v", c, r.Collectives)
		}
		calls := map[string]int{}
		for i := range r.Events {
			calls[schema.CallID(r.Events[i].Call).String()]++
		}
		if diff := cmp.Diff(map[string]int{"MPI_Alltoall": 49, "MPI_Barrier": 21, "MPI_Comm_create": 7, "MPI_Finalize": 7,
			"MPI_Init": 7, "MPI_Irecv": 588, "MPI_Isend": 588, "MPI_Waitall": 98}, calls); diff != "" {
			t.Error(diff)
		}
		if len(r.Comms) <= 7 || r.Comms[7].Kind != int16(schema.CommCreate) || r.Comms[7].Parent != 0 {
			t.Errorf("%v", r.Comms)
		}
	}
}

// pair returns the files of two ranks that both begin and end like MPI programs.
func pair(between func(r *recorder, me, other int)) []*recorder {
	all := []*recorder{{}, {}}
	for me, r := range all {
		r.call("MPI_Init", []int{})
		between(r, me, 1-me)
		r.call("MPI_Finalize")
	}
	return all
}

const world, integer = commWorld, 9

// A receive whose status is ignored has the size of its message, and not of its buffer; one with a wildcard has the
// source and tag of its status.
func TestReceives(t *testing.T) {
	ranks := pair(func(r *recorder, me, other int) {
		if me == 0 {
			r.call("MPI_Irecv", 100, integer, -1, -1, world, 7)
			r.call("MPI_Recv", 50, integer, 1, 9, world, []calls.Status{})
			r.call("MPI_Wait", 7, []calls.Status{{Source: 1, Tag: 5, Bytes: 12}})
			return
		}
		r.call("MPI_Send", 3, integer, 0, 5, world)
		r.call("MPI_Send", 2, integer, 0, 9, world)
	})
	for _, o := range sizes {
		r, err := imported(t, written(t, ranks...), o)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"0.0 Init", "0.1 Irecv comm=0 from=1 rtag=5 received=12 request=1 done=3 any=3",
			"0.2 Recv comm=0 from=1 rtag=9 received=8", "0.3 Wait request=1", "0.4 Finalize"}
		if diff := cmp.Diff(want, lines(r.Events, 0)); diff != "" {
			t.Error(diff)
		}
		if c := r.Counts; c.Messages != 2 || c.MessageBytes != 20 || c.WildcardReceives != 1 {
			t.Errorf("%+v", c)
		}
	}
}

// A wildcard receive takes its message in the order in which it was posted, however late its request completes.
func TestWildcardCompletesLate(t *testing.T) {
	ranks := pair(func(r *recorder, me, other int) {
		if me == 0 {
			r.call("MPI_Irecv", 100, integer, -1, 5, world, 7)
			r.call("MPI_Recv", 50, integer, 1, 5, world, []calls.Status{})
			r.call("MPI_Recv", 50, integer, 1, 9, world, []calls.Status{}) // on another channel
			r.call("MPI_Barrier", commSelf)
			r.call("MPI_Wait", 7, []calls.Status{{Source: 1, Tag: 5, Bytes: 12}})
			return
		}
		r.call("MPI_Send", 3, integer, 0, 5, world)
		r.call("MPI_Send", 2, integer, 0, 5, world)
		r.call("MPI_Send", 4, integer, 0, 9, world)
	})
	want := []string{"0.0 Init", "0.1 Irecv comm=0 from=1 rtag=5 received=12 request=1 done=5 any=1",
		"0.2 Recv comm=0 from=1 rtag=5 received=8", "0.3 Recv comm=0 from=1 rtag=9 received=16"}
	for _, o := range sizes {
		r, err := imported(t, written(t, ranks...), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := lines(r.Events, 0)[:len(want)]; !cmp.Equal(want, got) || r.Counts.Messages != 3 {
			t.Error(cmp.Diff(want, got), r.Counts)
		}
	}
}

// Once a wildcard receive has taken a message that the trace does not tell, the later receives of its channels have no
// messages: theirs may be another. Those before it, and other channels, do.
func TestUnknownReceive(t *testing.T) {
	for _, blind := range [][]int{{-1, 5}, {1, -1}, {-1, -1}} {
		ranks := pair(func(r *recorder, me, other int) {
			for _, tag := range []int{5, 5, 5, 8} {
				if me == 1 {
					r.call("MPI_Send", 3, integer, 0, tag, world)
				}
			}
			if me == 0 {
				r.call("MPI_Recv", 3, integer, 1, 5, world, []calls.Status{})
				r.call("MPI_Recv", 25, integer, blind[0], blind[1], world, []calls.Status{})
				r.call("MPI_Recv", 25, integer, 1, 5, world, []calls.Status{})
				r.call("MPI_Recv", 25, integer, 1, 8, world, []calls.Status{})
			}
		})
		shadowed := int64(2)
		if blind[1] == 5 {
			shadowed = 1
		}
		for _, o := range sizes {
			r, err := imported(t, written(t, ranks...), o)
			if err != nil {
				t.Fatal(err)
			}
			if c := r.Counts; c.Messages != 3-shadowed || c.UnmatchedReceives != 1+shadowed ||
				c.UnmatchedSends != 1+shadowed || r.Messages[0].RecvPostSeq != 1 {
				t.Errorf("%v: %+v %q", blind, c, r.Warnings)
			}
			if e := &r.Events[3]; e.RecvBytes != 100 { // the size of its buffer
				t.Errorf("%v: %s", blind, line(e))
			}
		}
	}
}

// A receive with a wildcard that was cancelled takes no message.
func TestCancelledWildcard(t *testing.T) {
	ranks := pair(func(r *recorder, me, other int) {
		if me == 0 {
			r.call("MPI_Irecv", 100, integer, -1, 5, world, 7)
			r.call("MPI_Recv", 50, integer, 1, 5, world, []calls.Status{})
			r.call("MPI_Barrier", commSelf)
			r.call("MPI_Wait", 7, []calls.Status{{Source: -1, Tag: -1, Cancelled: true}})
			return
		}
		r.call("MPI_Send", 3, integer, 0, 5, world)
	})
	for _, o := range sizes {
		r, err := imported(t, written(t, ranks...), o)
		if err != nil {
			t.Fatal(err)
		}
		if c := r.Counts; c.Messages != 1 || c.UnmatchedReceives+c.UnmatchedSends != 0 || r.Events[2].RecvBytes != 12 {
			t.Errorf("%+v %s", c, line(&r.Events[2]))
		}
	}
}

// A status of a blocking receive that cannot be its own is none, as one of a request is: the receive has the size of
// the message that meets it. Sizes from 2 GiB on do not fit into DUMPI's 32 bits.
func TestStatusOfAnother(t *testing.T) {
	const large = 600_000_000 // times 4 B
	for _, c := range []struct {
		sent   int
		status calls.Status
	}{{2, calls.Status{Source: 0, Tag: 0}}, {2, calls.Status{Source: 1, Tag: 9, Bytes: -32766}},
		{2, calls.Status{Source: 1, Tag: 9, Bytes: 4*large - 1<<32}}, {3, calls.Status{Source: -1, Tag: 9, Bytes: 12}},
		{large, calls.Status{Source: 1, Tag: 9, Bytes: 4*large - 1<<32}},
		{2, calls.Status{Source: 1, Tag: 9, Bytes: 1<<31 - 1}}} {
		ranks := pair(func(r *recorder, me, other int) {
			if me == 0 {
				r.call("MPI_Recv", max(50, c.sent), integer, 1, 9, world, []calls.Status{c.status})
				return
			}
			r.call("MPI_Send", c.sent, integer, 0, 9, world)
		})
		for _, o := range sizes {
			r, err := imported(t, written(t, ranks...), o)
			if err != nil {
				t.Fatal(err)
			}
			if e := &r.Events[1]; e.RecvBytes != 4*int64(c.sent) || e.RecvWorld != 1 || r.Counts.Messages != 1 {
				t.Errorf("%+v: %s, %+v", c, line(e), r.Counts)
			}
		}
	}
}

// Persistent requests have a row for each start; numbers of requests are used again; tests that fail are polls.
func TestRequests(t *testing.T) {
	ranks := pair(func(r *recorder, me, other int) {
		r.call("MPI_Recv_init", 1, integer, other, 4, world, 2)
		r.call("MPI_Send_init", 1, integer, other, 4, world, 3)
		for range 2 {
			r.call("MPI_Startall", 2, []int{2, 3})
			r.call("MPI_Test", 2, 0, []calls.Status{})
			r.call("MPI_Waitsome", 2, []int{2, 3}, 2, []int{1, 0}, []calls.Status{{Source: 77}, {Source: int64(other), Tag: 4,
				Bytes: 4}})
		}
		r.call("MPI_Sendrecv", 1, integer, -7, 0, 1, integer, -7, 0, world, []calls.Status{})
	})
	for _, o := range sizes {
		r, err := imported(t, written(t, ranks...), o)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"1.0 Init", "1.1 Recv_init", "1.2 Send_init",
			"1.3 Startall comm=0 from=0 rtag=4 received=4 request=1 done=5 init=1",
			"1.4 Startall comm=0 to=0 stag=4 sent=4 request=2 done=5 init=2", "1.5 Waitsome polls=1",
			"1.6 Startall comm=0 from=0 rtag=4 received=4 request=3 done=8 init=1",
			"1.7 Startall comm=0 to=0 stag=4 sent=4 request=4 done=8 init=2", "1.8 Waitsome polls=1",
			"1.9 Sendrecv comm=0 null=3", "1.10 Finalize"}
		if diff := cmp.Diff(want, lines(r.Events, 1)); diff != "" {
			t.Error(diff)
		}
		if c := r.Counts; c.Messages != 4 || c.UnmatchedReceives+c.UnmatchedSends != 0 || c.Polls != 4 {
			t.Errorf("%+v", c)
		}
	}
}

// Communicators have the members that their constructors say, under numbers that are used again.
func TestCommunicators(t *testing.T) {
	ranks := []*recorder{{}, {}, {}, {}}
	for me, r := range ranks {
		r.call("MPI_Init", []int{})
		r.call("MPI_Comm_split", world, me%2, -me, 4) // {2,0} and {3,1}
		r.call("MPI_Comm_dup", 4, 5)
		r.call("MPI_Bcast", 2, integer, 0, 5) // from world ranks 2 and 3
		r.call("MPI_Comm_free", 5)
		r.call("MPI_Cart_create", world, 2, []int{2, 2}, []int{1, 0}, 0, 5)
		r.call("MPI_Cart_sub", 2, 5, []int{0, 1}, 6) // rows {0,1} and {2,3}
		if root := []any{me % 2, 1, integer, 1, 6, 1, integer}; me%2 == 1 {
			r.call("MPI_Gather", root...)
		} else {
			r.call("MPI_Gather", root[:5]...) // without the arguments of the root
		}
		r.call("MPI_Intercomm_create", 6, 0, world, 2-me/2*2, 8, 7)
		r.call("MPI_Sendrecv", 1, integer, me%2, 1, 1, integer, me%2, 1, 7, []calls.Status{})
		r.call("MPI_Intercomm_merge", 7, 1-me/2, 8) // {2,3,0,1}
		r.call("MPI_Comm_group", world, 3)
		r.call("MPI_Group_range_incl", 3, 1, [][]int{{3, 1, -2}}, 4) // {3,1}
		r.call("MPI_Group_excl", 3, 2, []int{3, 1}, 5)               // {0,2}
		r.call("MPI_Comm_create", 8, 5-me%2, 9)
		r.call("MPI_Barrier", 9)
		r.call("MPI_Barrier", commSelf)
		r.call("MPI_Finalize")
	}
	r, err := imported(t, written(t, ranks...), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	kinds := map[int32]string{}
	for _, c := range r.Comms {
		kinds[c.Comm] += " " + string(rune('0'+c.WorldRank))
		if c.CommRank == 0 && c.Remote == 0 {
			got = append(got, schema.CommKindNames[c.Kind])
		}
	}
	if want := []string{"world", "split", "split", "dup", "dup", "cart", "cart", "cart", "inter", "merge", "create",
		"create", "self", "self", "self", "self"}; !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
	if kinds[1] != " 2 0" || kinds[5] != " 0 1 2 3" || kinds[7] != " 2 3" || kinds[8] != " 0 1 2 3" ||
		kinds[9] != " 2 3 0 1" ||
		kinds[10] != " 0 2" && kinds[10] != " 3 1" {
		t.Errorf("%v", kinds)
	}
	want := []string{"3.0 Init", "3.1 Comm_split comm=0 instance=0", "3.2 Comm_dup comm=2 instance=0",
		"3.3 Bcast comm=4 root=3 sent=8 received=0 instance=0", "3.4 Comm_free comm=4",
		"3.5 Cart_create comm=0 instance=1", "3.6 Cart_sub comm=5 instance=0",
		"3.7 Gather comm=7 root=3 sent=4 received=8 instance=0", "3.8 Intercomm_create comm=7",
		"3.9 Sendrecv comm=8 to=1 stag=1 from=1 rtag=1 sent=4 received=4", "3.10 Intercomm_merge comm=8 instance=0",
		"3.11 Comm_create comm=9 instance=0", "3.12 Barrier comm=11 sent=0 received=0 instance=0",
		"3.13 Barrier comm=15 sent=0 received=0 instance=0", "3.14 Finalize"}
	if diff := cmp.Diff(want, lines(r.Events, 3)); diff != "" {
		t.Error(diff)
	}
	if r.Counts.Messages != 4 {
		t.Errorf("%+v", r.Counts)
	}
}

// Ranks that meet in different constructors make nothing that can be told.
func TestDifferentConstructors(t *testing.T) {
	ranks := pair(func(r *recorder, me, other int) {
		if me == 0 {
			r.call("MPI_Comm_dup", world, 4)
		} else {
			r.call("MPI_Comm_split", world, 0, 0, 4)
		}
		r.call("MPI_Barrier", 4)
	})
	_, err := imported(t, written(t, ranks...), Options{})
	const want = "MPI_Barrier: the trace does not tell who is in communicator 4"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// A constructor that not all ranks called makes nothing that can be told: a run without a call on its result, else an
// error.
func TestIncompleteConstructor(t *testing.T) {
	for _, uses := range []bool{false, true} {
		ranks := pair(func(r *recorder, me, other int) {
			if me == 0 {
				r.call("MPI_Comm_split", world, 0, 0, 4)
				r.call("MPI_Comm_dup", 4, 5)
				if uses {
					r.call("MPI_Barrier", 5)
				}
			}
		})
		r, err := imported(t, written(t, ranks...), Options{})
		const want = "x-0000.bin: byte 87: MPI_Barrier: the trace does not tell who is in communicator 5"
		if uses && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
		if !uses && (err != nil || r.Ended != "killed" || len(r.Comms) != 2) {
			t.Errorf("%+v %v", r, err)
		}
	}
}

// A communicator that is made of MPI_COMM_SELF has that of its rank as its parent.
func TestDupOfSelf(t *testing.T) {
	ranks := pair(func(r *recorder, me, other int) {
		r.call("MPI_Comm_dup", commSelf, 4)
		r.call("MPI_Barrier", 4)
	})
	dir := t.TempDir()
	_, err := ImportPath(context.Background(), written(t, ranks...), dir, "x", Options{})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := writer.Check(context.Background(), filepath.Join(dir, "x"))
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	for _, c := range formatstest.Stored(t, filepath.Join(dir, "x")).Comms {
		if c.Kind == int16(schema.CommDup) && c.Parent != 3+c.WorldRank { // 1 and 2 are the duplicates
			t.Errorf("%+v", c)
		}
	}
}

// Ranges that name more ranks than their group has make no group, at once.
func TestRangesBeyondTheGroup(t *testing.T) {
	for _, ranges := range [][][]int{{{0, 1<<31 - 1, 1}}, {{-5, 1, 1}}, {{0, 1, 1}, {1, 0, -1}}, {{0, 1, 0}}} {
		ranks := pair(func(r *recorder, me, other int) {
			r.call("MPI_Comm_group", world, 3)
			r.call("MPI_Group_range_incl", 3, len(ranges), ranges, 4)
			r.call("MPI_Comm_create", world, 4, 5)
		})
		r, err := imported(t, written(t, ranks...), Options{})
		if err != nil || len(r.Comms) != 2 {
			t.Errorf("%v: %v", ranges, err)
		}
	}
}

// The number of a datatype that was freed, or made by a call that does not tell its size, has the size in the file.
func TestDatatypesAreFreed(t *testing.T) {
	for _, name := range []string{"MPI_Type_free", "MPI_Type_create_darray"} {
		ranks := pair(func(r *recorder, me, other int) {
			r.call("MPI_Type_contiguous", 10, integer, 40)
			if name == "MPI_Type_free" {
				r.call(name, 40)
			} else {
				r.call(name, 1, 0, 1, []int{1000}, "x", []int{1}, []int{1}, 1, integer, 40)
			}
			r.call("MPI_Bcast", 1, 40, 0, world)
		})
		for _, r := range ranks {
			r.sizes = make([]int64, 41)
			r.sizes[40] = 4000
		}
		r, err := imported(t, written(t, ranks...), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(lines(r.Events, 0), "\n"), "Bcast comm=0 root=0 sent=4000") {
			t.Errorf("%s: %q", name, lines(r.Events, 0))
		}
	}
}

// Collectives with counts for each rank have parts; sizes of datatypes are those that constructors make.
func TestCollectivesAndDatatypes(t *testing.T) {
	ranks := pair(func(r *recorder, me, other int) {
		r.call("MPI_Type_vector", 3, 2, 9, integer, 40)                                // 24 B
		r.call("MPI_Type_struct", 2, []int{1, 2}, []int{0, 1}, []int{40, integer}, 41) // 32 B
		r.call("MPI_Alltoallv", 2, []int{1, 2}, []int{0, 1}, 41, []int{1 + me, 1 + me}, []int{0, 1}, 41, world)
		r.call("MPI_Reduce_scatter", 2, []int{3, 5}, integer, 1, world)
		r.call("MPI_Win_create", 800, 4, 0, world, 6)
		r.call("MPI_Win_fence", 0, 6)
		r.call("MPI_Put", 4, integer, other, 0, 4, integer, 6)
		r.call("MPI_Win_free", 6)
		r.call("MPI_File_open", world, "out.dat", 1, 0, 3)
		r.call("MPI_File_write_at", 3, 1<<33, 10, integer, []calls.Status{})
		r.call("MPI_File_close", 3)
	})
	r, err := imported(t, written(t, ranks...), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"1.0 Init", "1.1 Alltoallv comm=0 sent=96 received=128 instance=0",
		"1.2 Reduce_scatter comm=0 sent=32 received=20 instance=1 MPI_MAX", "1.3 Win_create comm=0 instance=2",
		"1.4 Win_fence comm=0 init=3", "1.5 Put comm=0 to=0 sent=16 init=3", "1.6 Win_free comm=0 init=3",
		"1.7 File_open comm=0 instance=3 label=out.dat", "1.8 File_write_at comm=0 sent=40 init=7",
		"1.9 File_close comm=0 init=7", "1.10 Finalize"}
	if diff := cmp.Diff(want, lines(r.Events, 1)); diff != "" {
		t.Error(diff)
	}
	if len(r.Parts) != 4 || r.Parts[1].SendBytes != 64 || r.Parts[1].PeerWorld != 1 {
		t.Errorf("%+v", r.Parts)
	}
}

// Seconds of times have 16 bits, and go on when these are used up; threads have their own compute times.
func TestTimes(t *testing.T) {
	r := &recorder{at: 65533}
	r.call("MPI_Init", []int{})       // 65533 to 65534
	r.callBy(1, "MPI_Barrier", world) // 65535 to 65536
	r.call("MPI_Barrier", world)      // 65537 to 65538
	r.callBy(1, "MPI_Barrier", world) // 65539 to 65540
	r.call("MPI_Finalize")
	run, err := imported(t, written(t, r), Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := run.Events
	const s = int64(1e9)
	if e[2].StartNs != 65537*s+7 || e[2].EndNs != 65538*s+7 || e[2].ComputeNs != 3*s || e[3].ComputeNs != 3*s ||
		e[3].Thread != 1 || run.RankInfos[0].Threads != 2 {
		t.Errorf("%+v", e)
	}
}

// The seconds begin again for all threads at once, also for one that did not call before, and after hours without a
// call; a long call that another thread's is within does not make a turn.
func TestTurns(t *testing.T) {
	const s = int64(1e9)
	r := &recorder{}
	r.call("MPI_Init", []int{}) // 0
	r.at = 40000
	r.callBy(1, "MPI_Barrier", commSelf)
	r.callTook(0, 39000, 40100, "MPI_Barrier", commSelf)
	r.at = 65536 + 20000
	r.call("MPI_Barrier", commSelf)
	r.callBy(2, "MPI_Barrier", commSelf) // first of its thread
	r.callTook(1, 2*65536-9, 2*65536+3, "MPI_Barrier", commSelf)
	r.at = 2*65536 + 100
	r.call("MPI_Finalize")
	run, err := imported(t, written(t, r), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for i := range run.Events {
		got = append(got, run.Events[i].StartNs/s, run.Events[i].EndNs/s)
	}
	want := []int64{0, 1, 40000, 40001, 39000, 40100, 85536, 85537, 85538, 85539, 131063, 131075, 131172, 131173}
	if !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
}

// What is wrong with a trace is told with its place.
func TestDamaged(t *testing.T) {
	plain := func(more func(r *recorder)) *recorder {
		r := &recorder{}
		r.call("MPI_Init", []int{})
		more(r)
		return r
	}
	for _, c := range []struct {
		want string
		r    *recorder
	}{
		{"byte 37: MPI_Send: a message to rank 3 of a communicator of 1 ranks",
			plain(func(r *recorder) { r.call("MPI_Send", 1, integer, 3, 0, world) })},
		{"byte 37: MPI_Barrier: communicator 9 was not made", plain(func(r *recorder) { r.call("MPI_Barrier", 9) })},
		{"byte 37: MPI_Bcast: datatype 77 was made by a call that the trace does not have",
			plain(func(r *recorder) { r.call("MPI_Bcast", 1, 77, 0, world) })},
		{"byte 37: MPI_Bcast: -1 elements of 4 bytes",
			plain(func(r *recorder) { r.call("MPI_Bcast", -1, integer, 0, world) })},
		{"byte 37: MPI_Bcast: root 5 of a communicator of 1 ranks",
			plain(func(r *recorder) { r.call("MPI_Bcast", 1, integer, 5, world) })},
		{"byte 37: MPI_Put: window 4 was not made",
			plain(func(r *recorder) { r.call("MPI_Put", 1, integer, 0, 0, 1, integer, 4) })},
		{"byte 37: function 300; want one below 290, or the end 293",
			plain(func(r *recorder) { r.data = binary.BigEndian.AppendUint16(r.data, 300) })},
		{"byte 37: function 128", plain(func(r *recorder) { r.call("MPI_Pcontrol") })},
		{"byte 37: the record has no times of the wall clock",
			plain(func(r *recorder) { r.at = noTimes; r.call("MPI_Barrier", world) })},
		{"byte 37: an array of 4000000 elements at byte", plain(func(r *recorder) {
			r.call("MPI_Waitall", 1)
			r.value('i', 4000000)
		})},
	} {
		_, err := imported(t, written(t, c.r), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "x-0000.bin: ") {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// Files that are cut, missing or of another kind are told so.
func TestFiles(t *testing.T) {
	for _, c := range []struct {
		want   string
		damage func(dir string)
	}{
		{"byte 1000: no index at the end", func(dir string) { cut(t, dir, 1000) }},
		{"want the first bytes of a trace of DUMPI", func(dir string) { cut(t, dir, 3) }},
		{"testtrace-0002.bin", func(dir string) { os.Remove(filepath.Join(dir, "testtrace-0002.bin")) }},
		{"numprocs=0; want a number of ranks", func(dir string) {
			os.WriteFile(filepath.Join(dir, "testtrace.meta"), []byte("hostname=x\nnumprocs=0\nfileprefix=x\n"), 0o666)
		}},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("testdata/ring")); err != nil {
			t.Fatal(err)
		}
		c.damage(dir)
		if _, err := imported(t, filepath.Join(dir, "testtrace.meta"), Options{}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func cut(t *testing.T, dir string, size int64) {
	t.Helper()
	if err := os.Truncate(filepath.Join(dir, "testtrace-0001.bin"), size); err != nil {
		t.Fatal(err)
	}
}

// The file of one rank names the whole trace: a gap is an error, with a .meta or without. Folders may have any name.
func TestGaps(t *testing.T) {
	all := pair(func(r *recorder, me, other int) { r.call("MPI_Barrier", world) })
	all = append(all, all...)
	for _, missing := range []string{"x-0002.bin", "x-0003.bin", ""} {
		for _, withMeta := range []bool{true, false} {
			dir := filepath.Join(t.TempDir(), "run[1]")
			if err := os.CopyFS(dir, os.DirFS(filepath.Dir(written(t, all...)))); err != nil {
				t.Fatal(err)
			}
			if missing != "" {
				os.Remove(filepath.Join(dir, missing))
			}
			path := dir
			if !withMeta {
				os.Remove(filepath.Join(dir, "x.meta"))
			}
			if missing != "" || !withMeta {
				path = filepath.Join(dir, "x-0000.bin")
			}
			r, err := imported(t, path, Options{})
			if missing == "" || missing == "x-0003.bin" && !withMeta { // nothing tells of a fourth rank
				if err != nil || r.Ranks != 4 && missing == "" {
					t.Errorf("%q, %v: %v", missing, withMeta, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), missing+" is missing: the trace has 4 ranks") {
				t.Errorf("%q, %v: %v", missing, withMeta, err)
			}
		}
	}
}

// A trace is found by its .meta, its folder and the file of a rank, and makes a run of the store that breaks no rule.
func TestImportPath(t *testing.T) {
	for _, path := range []string{"testdata/ring/testtrace.meta", "testdata/ring", "testdata/ring/testtrace-0001.bin"} {
		dir := t.TempDir()
		var o Options
		o.Origin.Commq = "test"
		m, err := ImportPath(context.Background(), path, dir, "", o)
		if err != nil {
			t.Fatal(err)
		}
		if m.Origin.Name != "testtrace" || m.Origin.Trace.Program != "DUMPI 1.0.0" || m.Ranks != 4 {
			t.Errorf("%+v", m.Origin)
		}
		problems, err := writer.Check(context.Background(), filepath.Join(dir, "testtrace"))
		if err != nil || len(problems) > 0 {
			t.Error(problems, err)
		}
	}
}

// A .meta that never ends, or is too long, is none.
func TestMetaWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "x.meta")); err != nil {
		t.Fatal(err)
	}
	if IsFolder(dir) {
		t.Error("a folder with a device is a trace")
	}
	if _, _, err := readMeta(filepath.Join(dir, "x.meta")); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a device: %v", err)
	}
	long := filepath.Join(dir, "y.meta")
	text := "hostname=a\nnumprocs=1\nfileprefix=y\n" + strings.Repeat("\n", mostMeta)
	if err := os.WriteFile(long, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readMeta(long); err == nil || !strings.Contains(err.Error(), "have at most 1048576") || IsFolder(dir) {
		t.Errorf("a long one: %v", err)
	}
}

// A folder of any .meta and names of files is no trace, or one whose files begin as those of ranks do.
func FuzzFolder(f *testing.F) {
	bin, err := os.ReadFile("testdata/ring/testtrace-0000.bin")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("hostname=a\nnumprocs=2\nfileprefix=dumpi-x\n", "dumpi-x-0000.bin", "dumpi-x-0001.bin", true)
	f.Add("numprocs=16777216\nfileprefix=../x", "x.meta", "y-16777215.bin", false)
	f.Add("", "a-0.bin", "a--1.bin", true)
	f.Fuzz(func(t *testing.T, meta, first, second string, whole bool) {
		dir := t.TempDir()
		body := bin
		if !whole {
			body = bin[:len(bin)/2]
		}
		for _, name := range []string{first, second} {
			if filepath.IsLocal(name) && filepath.Base(name) == name && name != "." && len(name) < 200 &&
				!strings.Contains(name, "\x00") {
				if err := os.WriteFile(filepath.Join(dir, name), body, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "x.meta"), []byte(meta), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{dir, filepath.Join(dir, "x.meta"), filepath.Join(dir, "a-0000.bin")} {
			if path == dir {
				_ = IsFolder(path)
			}
			if opened, err := openTrace(path); err == nil && len(opened.files) == 0 {
				t.Errorf("%s: a trace without ranks", path)
			}
		}
	})
}

// Damaged traces are errors or runs that break no rule; nothing else happens.
func FuzzImport(f *testing.F) {
	for _, name := range []string{"testdata/ring/testtrace-0000.bin", "testdata/bgp/testbgp-0003.bin"} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, b)
	}
	for _, ranks := range [][]*recorder{pair(func(r *recorder, me, other int) {
		r.call("MPI_Comm_split", world, 0, -me, 4)
		r.call("MPI_Intercomm_create", commSelf, 0, world, other, 8, 5)
		r.call("MPI_Intercomm_merge", 5, me, 6)
		r.call("MPI_Cart_create", 6, 2, []int{2, 1}, []int{1, 0}, 0, 5)
		r.call("MPI_Cart_sub", 2, 5, []int{0, 1}, 6)
		r.call("MPI_Irecv", 2, integer, -1, -1, 4, 9)
		r.call("MPI_Sendrecv", 1, integer, other, 1, 1, integer, other, 1, 4, []calls.Status{})
		r.call("MPI_Waitany", 1, []int{9}, 0, []calls.Status{{Source: int64(other), Tag: 1, Bytes: 4}})
		r.call("MPI_Alltoallv", 2, []int{1, 2}, []int{0, 1}, integer, []int{1, 1}, []int{0, 1}, integer, world)
	})} {
		f.Add(ranks[0].file(3), ranks[1].file(4))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		defer time.AfterFunc(4*time.Second, func() { panic("slow") }).Stop()
		dir := t.TempDir()
		for i, data := range [][]byte{a, b} {
			if err := os.WriteFile(filepath.Join(dir, "x-000"+string(rune('0'+i))+".bin"), data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = imported(t, filepath.Join(dir, "x-0000.bin"), Options{Keep: 2, EpochRows: 4, Round: 3})
	})
}
