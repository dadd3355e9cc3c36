package predict

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

func TestPhases(t *testing.T) {
	// Rank 0 is at the border: it lacks c. The last iteration of the outer loop ends with d.
	s, err := Sign(sites("iabbabbabbabbdz", "iacbbacbbacbbacbbdz"))
	if err != nil {
		t.Fatal(err)
	}
	if got := expression(s); got != "(i(ac(b))dz)" {
		t.Fatalf("the template is %s", got)
	}
	type phase struct {
		Weight, Least, Most int64
		Ranks               int32
		Forms               int
		Calls               int64
	}
	var got []phase
	for _, p := range s.Phases {
		got = append(got, phase{p.Weight, p.EventsMin, p.EventsMax, p.Ranks, p.Forms, p.Calls})
		if !p.Agrees(2) {
			t.Errorf("ranks do not agree on %+v", p)
		}
	}
	if d := cmp.Diff([]phase{{4, 3, 4, 2, 2, 28}}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// exchange makes a run of two ranks: each sends to the other and receives from it, in the order that scripts say: s, r, x for both at once.
func exchange(scripts [2]string) *Run {
	run := sites("", "")
	run.Events = func(add func(*schema.Events) error) error {
		b := &schema.Events{}
		for r, script := range scripts {
			for seq, c := range script {
				e := schema.NullEvent
				e.Rank, e.Seq, e.Callsite, e.Comm = int32(r), int64(seq), c, 0
				switch c {
				case 's':
					e.Call, e.Class = int16(schema.CallSend), int16(schema.ClassSend)
				case 'r':
					e.Call, e.Class = int16(schema.CallRecv), int16(schema.ClassRecv)
				case 'x':
					e.Call, e.Class = int16(schema.CallSendrecv), int16(schema.ClassSendrecv)
				}
				if c != 'r' {
					e.SendPeer, e.SendWorld, e.SendTag = int32(1-r), int32(1-r), 9
				}
				if c != 's' {
					e.RecvPeer, e.RecvWorld, e.RecvTag = int32(1-r), int32(1-r), 9
				}
				b.Append(&e)
			}
		}
		return add(b)
	}
	return run
}

func TestClock(t *testing.T) {
	// Rank 0 sends at 1 and 2; rank 1 receives at 2 and 3, sends at 4; rank 0 receives at 5.
	s, err := Sign(exchange([2]string{"ssr", "rrs"}))
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Clock()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([][]int32{{1, 2, 5}, {2, 3, 4}}, c.Ticks); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// MPI_Sendrecv sends before it waits: both ranks' at 1, to end at 2; then rank 0 sends at 3 what rank 1 takes at 4 with a call that sends at 3.
func TestClockOfSendrecv(t *testing.T) {
	s, err := Sign(exchange([2]string{"xsr", "xx"}))
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Clock()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([][]int32{{2, 3, 4}, {2, 4}}, c.Ticks); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestClockOfDeadlock(t *testing.T) {
	_, err := Sign(exchange([2]string{"srrs", "rsrs"}))
	want := "2 ranks wait for ever: rank 0 at seq 2, MPI_Recv, for message 1 from rank 1 with tag 9 on communicator 0, of which 1 are sent; " +
		"rank 1 at seq 2, MPI_Recv, for message 1 from rank 0 with tag 9 on communicator 0, of which 1 are sent"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}
