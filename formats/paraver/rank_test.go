package paraver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// threaded builds the text of a trace of two ranks with two threads each.
type threaded struct{ strings.Builder }

func newThreaded() *threaded {
	b := &threaded{}
	b.WriteString("#Paraver (x at y):900000_ns:1(4):1:2(2:1,2:1),1\nc:1:1:2:1:2\n")
	return b
}

// call adds a call of a thread.
func (b *threaded) call(rank, thread int, id schema.CallID, begin, end int) {
	for _, e := range []struct{ at, value int }{{begin, codes[id].value}, {end, 0}} {
		fmt.Fprintf(b, "2:1:1:%d:%d:%d:%d:%d\n", rank+1, thread+1, e.at, codes[id].typ, e.value)
	}
}

// message adds a message of rank 0 to rank 1, between the threads that the record tells.
func (b *threaded) message(tag, from, to, sent, posted, done int) {
	b.between(0, from, 1, to, tag, sent, posted, done)
}

func (b *threaded) between(src, from, dst, to, tag, sent, posted, done int) {
	fmt.Fprintf(b, "3:1:1:%d:%d:%d:%d:1:1:%d:%d:%d:%d:4097:%d\n", src+1, from+1, sent, sent, dst+1, to+1, posted, done,
		tag)
}

// endsOf returns the messages of a run as lines "TAG: SENT POSTED DONE", of calls as NAME.THREAD@BEGIN.
func endsOf(r *formatstest.Run) (lines []string) {
	call := func(rank int32, seq int64) string {
		for i := range r.Events {
			if e := &r.Events[i]; e.Rank == rank && e.Seq == seq {
				name := strings.TrimPrefix(schema.CallID(e.Call).String(), "MPI_")
				return fmt.Sprintf("%s.%d@%d", name, e.Thread, e.StartNs)
			}
		}
		return "none"
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		lines = append(lines, fmt.Sprintf("%d: %s %s %s", m.Tag, call(m.Src, m.SendSeq), call(m.Dst, m.RecvPostSeq),
			call(m.Dst, m.RecvDoneSeq)))
	}
	slices.Sort(lines)
	return lines
}

// Messages belong to the calls that sent, posted and completed them while calls of other threads last. An export writes
// all messages between first threads; Extrae writes the threads, and the end of a message while its wait lasts.
func TestThreads(t *testing.T) {
	const (
		send, isend, recv, irecv = schema.CallSend, schema.CallIsend, schema.CallRecv, schema.CallIrecv
		wait, waitall, startall  = schema.CallWait, schema.CallWaitall, schema.CallStartall
		mprobe, mrecv, imrecv    = schema.CallMprobe, schema.CallMrecv, schema.CallImrecv
	)
	receiveTwo := func(b *threaded) {
		b.call(0, 0, send, 5, 6)
		b.call(0, 0, send, 7, 8)
		b.call(1, 0, irecv, 1, 2)
		b.call(1, 1, irecv, 3, 4)
	}
	for name, c := range map[string]struct {
		trace func(b *threaded)
		want  []string
	}{
		"exported, a wait ends while another lasts": {func(b *threaded) {
			receiveTwo(b)
			b.message(8, 0, 0, 5, 3, 50)
			b.message(9, 0, 0, 7, 1, 100)
			b.call(1, 1, wait, 20, 50)
			b.call(1, 0, waitall, 10, 100)
		}, []string{"8: Send.0@5 Irecv.1@3 Wait.1@20", "9: Send.0@7 Irecv.0@1 Waitall.0@10"}},
		"traced, messages arrive while two waits last": {func(b *threaded) {
			receiveTwo(b)
			b.message(8, 0, 1, 5, 3, 70)
			b.message(9, 0, 0, 7, 1, 60)
			b.call(1, 1, wait, 20, 80)
			b.call(1, 0, waitall, 10, 100)
		}, []string{"8: Send.0@5 Irecv.1@3 Wait.1@20", "9: Send.0@7 Irecv.0@1 Waitall.0@10"}},
		"exported, a nonblocking receive while a blocking one lasts": {func(b *threaded) {
			b.call(0, 0, send, 5, 6)
			b.call(0, 0, send, 7, 8)
			b.call(1, 1, irecv, 3, 4)
			b.call(1, 1, wait, 20, 50)
			b.message(8, 0, 0, 5, 3, 50)
			b.message(9, 0, 0, 7, 1, 100)
			b.call(1, 0, recv, 1, 100)
		}, []string{"8: Send.0@5 Irecv.1@3 Wait.1@20", "9: Send.0@7 Recv.0@1 Recv.0@1"}},
		"exported, a blocking receive ends with a wait": {func(b *threaded) {
			b.call(0, 0, send, 5, 6)
			b.call(0, 0, send, 7, 8)
			b.call(1, 1, irecv, 10, 10)
			b.call(1, 1, wait, 20, 50)
			b.message(8, 0, 0, 5, 10, 50)
			b.message(9, 0, 0, 7, 10, 50)
			b.call(1, 0, recv, 10, 50)
		}, []string{"8: Send.0@5 Irecv.1@10 Wait.1@20", "9: Send.0@7 Recv.0@10 Recv.0@10"}},
		"exported, two blocking receives end at a time": {func(b *threaded) {
			b.call(0, 0, send, 5, 6)
			b.call(0, 0, send, 7, 8)
			b.message(8, 0, 0, 5, 20, 50)
			b.message(9, 0, 0, 7, 10, 50)
			b.call(1, 0, recv, 10, 50)
			b.call(1, 1, recv, 20, 50)
		}, []string{"8: Send.0@5 Recv.1@20 Recv.1@20", "9: Send.0@7 Recv.0@10 Recv.0@10"}},
		"traced, receives are posted after they began": {func(b *threaded) {
			b.call(0, 0, send, 5, 6)
			b.call(0, 0, send, 7, 8)
			b.message(8, 0, 0, 5, 21, 50)
			b.message(9, 0, 0, 7, 11, 50)
			b.call(1, 0, recv, 10, 50)
			b.call(1, 1, recv, 20, 50)
		}, []string{"8: Send.0@5 Recv.1@20 Recv.1@20", "9: Send.0@7 Recv.0@10 Recv.0@10"}},
		"exported, a blocking and a nonblocking receive begin at a time": {func(b *threaded) {
			b.call(0, 0, send, 5, 6)
			b.call(0, 0, send, 7, 8)
			b.message(8, 0, 0, 5, 10, 30)
			b.message(9, 0, 0, 7, 10, 50)
			b.call(1, 0, recv, 10, 30)
			b.call(1, 1, irecv, 10, 11)
			b.call(1, 1, wait, 20, 50)
		}, []string{"8: Send.0@5 Recv.0@10 Recv.0@10", "9: Send.0@7 Irecv.1@10 Wait.1@20"}},
		"traced, a message arrives in a wait when another wait ends": {func(b *threaded) {
			b.call(0, 0, send, 5, 6)
			b.call(0, 0, send, 7, 8)
			b.call(1, 1, irecv, 1, 2)
			b.call(1, 0, irecv, 20, 21)
			b.message(8, 0, 1, 5, 1, 50)
			b.message(9, 0, 0, 7, 20, 50)
			b.call(1, 1, wait, 10, 50)
			b.call(1, 0, wait, 30, 100)
		}, []string{"8: Send.0@5 Irecv.1@1 Wait.1@10", "9: Send.0@7 Irecv.0@20 Wait.0@30"}},
		"traced, sends of two threads begin at a time": {func(b *threaded) {
			b.message(8, 1, 0, 5, 10, 20)
			b.message(9, 0, 0, 5, 30, 40)
			b.call(0, 0, send, 5, 6)
			b.call(0, 1, send, 5, 6)
			b.call(1, 0, recv, 10, 20)
			b.call(1, 0, recv, 30, 40)
		}, []string{"8: Send.1@5 Recv.0@10 Recv.0@10", "9: Send.0@5 Recv.0@30 Recv.0@30"}},
		"traced, a thread sends and receives while another starts": {func(b *threaded) {
			b.message(7, 1, 1, 12, 12, 95)
			b.message(8, 1, 1, 20, 20, 90)
			b.message(9, 0, 0, 15, 15, 120)
			b.call(0, 1, isend, 12, 13)
			b.call(0, 1, isend, 20, 25)
			b.call(0, 0, startall, 10, 80)
			b.call(1, 1, irecv, 12, 13)
			b.call(1, 1, irecv, 20, 25)
			b.call(1, 0, startall, 10, 80)
			b.call(1, 1, waitall, 85, 95)
			b.call(1, 0, wait, 110, 120)
		}, []string{"7: Isend.1@12 Irecv.1@12 Waitall.1@85", "8: Isend.1@20 Irecv.1@20 Waitall.1@85",
			"9: Startall.0@10 Startall.0@10 Wait.0@110"}},
		"exported, the second thread starts": {func(b *threaded) {
			b.message(9, 0, 0, 10, 10, 50)
			b.call(0, 1, startall, 10, 20)
			b.call(1, 1, startall, 10, 20)
			b.call(1, 1, wait, 40, 50)
		}, []string{"9: Startall.1@10 Startall.1@10 Wait.1@40"}},
		"matched probes": {func(b *threaded) {
			for i, tag := range []int{7, 8, 9} {
				b.call(0, 0, send, 5+2*i, 6+2*i)
				b.message(tag, 0, 0, 5+2*i, 20+20*i, 30+20*i)
			}
			b.call(1, 0, mprobe, 20, 22)
			b.call(1, 0, mrecv, 24, 30)
			b.call(1, 0, mprobe, 40, 41)
			b.call(1, 0, imrecv, 42, 43)
			b.call(1, 0, wait, 45, 50)
			b.call(1, 0, mprobe, 60, 61)
			b.call(1, 0, mrecv, 62, 70)
		}, []string{"7: Send.0@5 Mrecv.0@24 Mrecv.0@24", "8: Send.0@7 Imrecv.0@42 Wait.0@45",
			"9: Send.0@9 Mrecv.0@62 Mrecv.0@62"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newThreaded()
			c.trace(b)
			r, err := imported(t, b.String(), "", "", Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d := gocmp.Diff(c.want, endsOf(r)); d != "" {
				t.Error(d)
			}
			for rank := range int32(2) {
				nothingHeld(t, b.String(), rank)
			}
			if n := r.Counts; n.UnmatchedSends+n.UnmatchedReceives+n.InProgress != 0 {
				t.Errorf("%+v", n)
			}
		})
	}
}

// nothingHeld checks that a reader holds nothing after its last call.
func nothingHeld(t *testing.T, trace string, rank int32) {
	t.Helper()
	in, err := newLines("trace.prv", strings.NewReader(trace), int64(len(trace)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := readLayout(in)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{scan: newScan(in, l, newLabels())}
	defer func() {
		if err := j.scan.items.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := j.scan.read(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	r, err := j.reader(rank)
	if err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		var c timed.Call
		if more, err = r.Next(&c); err != nil {
			t.Fatal(err)
		}
	}
	held := len(r.ends) + len(r.receivedAt) + len(r.posted) + len(r.pending.heap) + len(r.matched.order) +
		len(r.matched.waits)
	for _, p := range []*pool{r.sends, r.postings, r.received} {
		for _, l := range p.all {
			held += len(l.sides)
		}
	}
	if held > 0 || r.counts != (joined{}) {
		t.Errorf("rank %d holds %d after its last call; %+v", rank, held, r.counts)
	}
}

// Messages that arrive outside of calls are counted, and a receive does not take one that was posted before it began.
func TestArrivedOutside(t *testing.T) {
	b := newThreaded()
	for i, tag := range []int{7, 8, 9} {
		b.call(0, 0, schema.CallSend, 5+2*i, 6+2*i)
		b.message(tag, 0, 0, 5+2*i, []int{1, 3, 10}[i], []int{40, 50, 50}[i])
	}
	b.call(1, 0, schema.CallIrecv, 1, 2)
	b.call(1, 0, schema.CallRecv, 10, 50)
	b.call(1, 0, schema.CallWait, 60, 70)
	r, err := imported(t, b.String(), "", "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff([]string{"9: Send.0@9 Recv.0@10 Recv.0@10"}, endsOf(r)); d != "" {
		t.Error(d)
	}
	if said := formatstest.Tables(r)["said"]; !strings.Contains(said, "Communications that no call of MPI received: 2.") {
		t.Error(said)
	}
}

// An import's time grows with the number of messages and not with its square: a quadratic one takes minutes for these.
func TestManyWaiting(t *testing.T) {
	const n = 30_000
	for name, trace := range map[string]func(b *threaded){
		"a thread receives as long as another sends": func(b *threaded) {
			for i := range n {
				b.call(1, 1, schema.CallSend, 10*i+5, 10*i+6)
				b.between(1, 0, 0, 0, 9, 10*i+5, 10*i+5, 10*i+8)
				b.call(0, 0, schema.CallRecv, 10*i+5, 10*i+8)
			}
			b.call(1, 0, schema.CallRecv, 1, 10*n)
			b.message(8, 0, 0, 10*n, 1, 10*n)
			b.call(0, 0, schema.CallSend, 10*n, 10*n)
		},
		"a thread waits as long as another receives": func(b *threaded) {
			b.call(1, 0, schema.CallIrecv, 1, 1)
			for i := range n {
				b.call(0, 0, schema.CallSend, 10*i+5, 10*i+6)
				b.message(9, 0, 0, 10*i+5, 10*i+5, 10*i+9)
				b.call(1, 1, schema.CallIrecv, 10*i+5, 10*i+6)
				b.call(1, 1, schema.CallWait, 10*i+7, 10*i+9)
			}
			b.call(1, 0, schema.CallWaitall, 2, 10*n)
			b.message(8, 0, 0, 10*n, 1, 10*n)
			b.call(0, 0, schema.CallSend, 10*n, 10*n)
		},
		"blocking receives of a time": func(b *threaded) {
			for range n + 1 {
				b.call(0, 1, schema.CallSend, 5, 5)
				b.message(9, 0, 0, 5, 5, 5)
				b.call(1, 1, schema.CallRecv, 5, 5)
			}
		},
		"nonblocking receives of a time": func(b *threaded) {
			for range n + 1 {
				b.call(0, 0, schema.CallIsend, 5, 5)
				b.message(9, 0, 0, 5, 5, 5)
				b.call(1, 0, schema.CallIrecv, 5, 5)
				b.call(1, 0, schema.CallWait, 5, 5)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newThreaded()
			trace(b)
			r, err := imported(t, b.String(), "", "", Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Messages) != n+1 || r.Counts.UnmatchedSends+r.Counts.UnmatchedReceives != 0 {
				t.Errorf("%d messages, %+v", len(r.Messages), r.Counts)
			}
		})
	}
}
