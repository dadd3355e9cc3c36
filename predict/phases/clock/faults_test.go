package clock

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/signature/sign"
	"github.com/commq/commq/schema"
)

// pairs are calls of two ranks: rank 0 sends messages with tags 0, 1, ... to rank 1, which answers each; then with tags
// 0, 0 and 1 again, of which rank 1 receives as many as it is told to.
func pairs(received int) func(rank int) []testruns.Call {
	return func(rank int) (all []testruns.Call) {
		one := func(site, tag int, sends bool) {
			c := testruns.Call{Site: site, Call: schema.CallRecv, To: testruns.None, From: 1 - rank, Tag: tag, Root: testruns.None}
			if sends {
				c = testruns.Call{Site: site, Call: schema.CallSend, To: 1 - rank, From: testruns.None, Tag: tag, Root: testruns.None}
			}
			all = append(all, c)
		}
		for tag := range 1000 {
			one(2*rank, tag, rank == 0)
			one(2*rank+1, tag, rank == 1)
		}
		for i, tag := range []int{0, 0, 1} {
			if rank == 0 || i < received {
				one(2*rank, tag, rank == 0)
			}
		}
		return all
	}
}

// Channels without messages in flight are forgotten, and faults have the right numbers of messages all the same.
func TestChannelsAreForgotten(t *testing.T) {
	for _, c := range []struct {
		received int
		want     []string
	}{
		{3, nil},
		{1, []string{"rank 0 sends 3 messages with tag 0 on communicator 0 to rank 1, which receives 2",
			"rank 0 sends 2 messages with tag 1 on communicator 0 to rank 1, which receives 1"}},
	} {
		s, err := sign.FromRows(testruns.Calls(2, nil, pairs(c.received)))
		if err != nil {
			t.Fatal(err)
		}
		for _, most := range []int{mostDone, 16} {
			x := newClock(s, nil, func(int32, int64, int32) {})
			x.mostDone, x.sweepAt = most, most
			got, err := x.run()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got.Unmatched); d != "" {
				t.Errorf("at most %d channels: -want +got:\n%s", most, d)
			}
			if len(x.queues) > max(most, 2*16) && most < 1000 {
				t.Errorf("%d channels, want at most %d", len(x.queues), most)
			}
		}
	}
}

// A rank that waits for a message on a channel that was forgotten is told how many there were.
func TestMissingMessageOfForgottenChannel(t *testing.T) {
	calls := pairs(3)
	s, err := sign.FromRows(testruns.Calls(2, nil, func(rank int) []testruns.Call {
		if rank == 0 {
			return calls(0)[:2001]
		}
		return calls(1)
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := "1 ranks wait forever: rank 1 at seq 2001, MPI_Recv, for message 2 from rank 0 with tag 0 on communicator 0, of which 2 are sent"
	for _, most := range []int{mostDone, 16} {
		x := newClock(s, nil, func(int32, int64, int32) {})
		x.mostDone, x.sweepAt = most, most
		if _, err := x.run(); err == nil || err.Error() != want {
			t.Errorf("at most %d channels: got %v\nwant %s", most, err, want)
		}
	}
}
