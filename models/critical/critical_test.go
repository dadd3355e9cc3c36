package critical

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// call is a row of a test.
type call struct {
	rank     int32
	call     schema.CallID
	from, to int64
	done     int64 // seq of the row that completes it; 0 means itself
	comm     int32
	instance int64 // of a collective, from 1
	root     int32
	thread   int32
	window   int64 // of a call with a window: seq of the row that made it, plus 1
	label    string
	target   int32 // of a lock: the rank plus 1
}

// graph returns a graph of rows. seq counts from 0 on each rank, and a call's site is its rank times 100 plus seq.
func graph(t *testing.T, ranks int, o Options, rows ...call) *Graph {
	t.Helper()
	g := New(ranks, o)
	g.rows(t, rows...)
	return g
}

// rows adds the first rows of some ranks.
func (g *Graph) rows(t *testing.T, rows ...call) {
	t.Helper()
	next := make([]int64, len(g.ranks))
	for _, c := range rows {
		e := schema.NullEvent
		e.Rank, e.Seq, e.Thread, e.Call, e.Class = c.rank, next[c.rank], c.thread, int16(c.call),
			int16(schema.Calls[c.call].Class)
		e.StartNs, e.EndNs, e.Callsite = c.from, c.to, c.rank*100+int32(next[c.rank])
		if c.done != 0 {
			e.Request, e.DoneSeq = 1, c.done
		}
		if c.instance != 0 {
			e.Comm, e.Instance, e.RootWorld = c.comm, c.instance, c.root
		}
		if c.window != 0 {
			e.InitSeq = c.window - 1
			if c.label != "" {
				e.Label = c.label
			}
			if c.target != 0 {
				e.SendWorld = c.target - 1
			}
		}
		next[c.rank]++
		b := &schema.Events{}
		b.Append(&e)
		if err := g.AddEvents(b); err != nil {
			t.Fatal(err)
		}
	}
}

// message adds a message from row send of src, which the rows post and done of dst receive.
func (g *Graph) message(src int32, send int64, dst int32, post, done int64) {
	b := &schema.Messages{}
	m := schema.NullMessage
	m.Src, m.SendSeq, m.Dst, m.RecvPostSeq, m.RecvDoneSeq = src, send, dst, post, done
	b.Append(&m)
	g.AddMessages(b)
}

// walk returns the path as text, the last segment first. It checks that the segments add up to the duration.
func walk(t *testing.T, g *Graph) string {
	t.Helper()
	var lines []string
	at, sum := int64(-1), int64(0)
	duration := g.Walk(nil, func(s Segment) {
		if s.To <= s.From || at >= 0 && s.To != at {
			t.Errorf("%+v after %d", s, at)
		}
		at = s.From
		sum += s.To - s.From
		lines = append(lines, fmt.Sprintf("%d-%d rank %d %s %s", s.From, s.To, s.Rank, s.Kind, s.Call))
	})
	if sum != duration {
		t.Errorf("the path takes %d of %d ns", sum, duration)
	}
	return strings.Join(lines, "\n")
}

const final = schema.CallFinalize

// Paths worked out by hand.
func TestWalk(t *testing.T) {
	for _, c := range []struct {
		name string
		make func() *Graph
		want string
	}{
		// Rank 1 waits from 30 for a message that rank 0 sends at 100, and has it at 130.
		{"late sender", func() *Graph {
			g := graph(t, 2, Options{}, call{rank: 0, call: schema.CallSend, from: 100, to: 110},
				call{rank: 0, call: final, from: 150, to: 160},
				call{rank: 1, call: schema.CallRecv, from: 30, to: 130}, call{rank: 1, call: final, from: 170, to: 180})
			g.message(0, 0, 1, 0, 0)
			return g
		}, `170-180 rank 1 other MPI_Finalize
130-170 rank 1 compute MPI_Finalize
100-130 rank 1 transfer MPI_Recv
0-100 rank 0 compute MPI_Send`},
		// Rank 1 begins its receive after the send and does not wait: the time is its own.
		{"no wait", func() *Graph {
			g := graph(t, 2, Options{}, call{rank: 0, call: schema.CallSend, from: 20, to: 25},
				call{rank: 1, call: schema.CallRecv, from: 30, to: 47})
			g.message(0, 0, 1, 0, 0)
			return g
		}, `30-47 rank 1 point-to-point MPI_Recv
0-30 rank 1 compute MPI_Recv`},
		// Rank 0 leaves MPI_Init at 50, rank 1 at 70. Rank 1 waits for a message, and ends its part of the program
		// last, at 190, though rank 0 ends MPI_Finalize later.
		{"without startup", func() *Graph {
			g := graph(t, 2, Options{LeaveOutStartup: true}, call{rank: 0, call: schema.CallInit, from: 0, to: 50},
				call{rank: 0, call: schema.CallSend, from: 100, to: 110},
				call{rank: 0, call: final, from: 160, to: 300},
				call{rank: 1, call: schema.CallInitThread, from: 5, to: 70},
				call{rank: 1, call: schema.CallRecv, from: 80, to: 130}, call{rank: 1, call: final, from: 190, to: 200})
			g.message(0, 1, 1, 1, 1)
			return g
		}, `130-190 rank 1 compute MPI_Finalize
100-130 rank 1 transfer MPI_Recv
50-100 rank 0 compute MPI_Send`},
		// A rank that is killed in MPI_Finalize, on a thread that did not call MPI_Init: the path ends with MPI_Init
		// all the same.
		{"killed without startup", func() *Graph {
			return graph(t, 1, Options{LeaveOutStartup: true}, call{call: schema.CallInit, from: 0, to: 50},
				call{call: schema.CallSend, from: 60, to: 65, thread: 1},
				call{call: final, from: 75, to: unknown, thread: 1})
		}, `65-75 rank 0 compute MPI_Finalize
60-65 rank 0 point-to-point MPI_Send
50-60 rank 0 compute MPI_Send`},
		// Rank 0 sends from 20 on, rank 1 posts its receive at 60.
		{"late receiver", func() *Graph {
			g := graph(t, 2, Options{}, call{rank: 0, call: schema.CallSsend, from: 20, to: 90},
				call{rank: 0, call: final, from: 200, to: 205},
				call{rank: 1, call: schema.CallRecv, from: 60, to: 95})
			g.message(0, 0, 1, 0, 0)
			return g
		}, `200-205 rank 0 other MPI_Finalize
90-200 rank 0 compute MPI_Finalize
60-90 rank 0 transfer MPI_Ssend
0-60 rank 1 compute MPI_Recv`},
		// The same when no send waits for its receiver.
		{"eager", func() *Graph {
			g := graph(t, 2, Options{Eager: true}, call{rank: 0, call: schema.CallSend, from: 20, to: 90},
				call{rank: 1, call: schema.CallRecv, from: 60, to: 85})
			g.message(0, 0, 1, 0, 0)
			return g
		}, `20-90 rank 0 point-to-point MPI_Send
0-20 rank 0 compute MPI_Send`},
		// Two receives are posted early and waited for together. The path goes through the message sent last: by rank
		// 2 at 70, which had waited for rank 0.
		{"waitall", func() *Graph {
			g := graph(t, 3, Options{},
				call{rank: 0, call: schema.CallSend, from: 40, to: 41},
				call{rank: 0, call: schema.CallSend, from: 55, to: 56},
				call{rank: 1, call: schema.CallIrecv, from: 1, to: 2, done: 2},
				call{rank: 1, call: schema.CallIrecv, from: 3, to: 4, done: 2},
				call{rank: 1, call: schema.CallWaitall, from: 10, to: 80},
				call{rank: 2, call: schema.CallRecv, from: 5, to: 65},
				call{rank: 2, call: schema.CallIsend, from: 70, to: 71, done: 2},
				call{rank: 2, call: schema.CallWait, from: 71, to: 72})
			g.message(0, 0, 1, 0, 2)
			g.message(0, 1, 2, 0, 0)
			g.message(2, 1, 1, 1, 2)
			return g
		}, `70-80 rank 1 transfer MPI_Waitall
65-70 rank 2 compute MPI_Isend
55-65 rank 2 transfer MPI_Recv
41-55 rank 0 compute MPI_Send
40-41 rank 0 point-to-point MPI_Send
0-40 rank 0 compute MPI_Send`},
		// A probe waits for the message that the receive after it takes.
		{"probe", func() *Graph {
			g := graph(t, 2, Options{}, call{rank: 0, call: schema.CallSend, from: 100, to: 105},
				call{rank: 1, call: schema.CallProbe, from: 30, to: 120},
				call{rank: 1, call: schema.CallRecv, from: 121, to: 130})
			g.message(0, 0, 1, 1, 1)
			return g
		}, `121-130 rank 1 point-to-point MPI_Recv
120-121 rank 1 compute MPI_Recv
100-120 rank 1 transfer MPI_Probe
0-100 rank 0 compute MPI_Send`},
		// All wait for rank 2, which enters at 50; rank 0 leaves last.
		{"barrier", func() *Graph {
			return graph(t, 3, Options{}, call{rank: 0, call: schema.CallBarrier, from: 10, to: 57, instance: 3},
				call{rank: 1, call: schema.CallBarrier, from: 40, to: 55, instance: 3},
				call{rank: 2, call: schema.CallBarrier, from: 50, to: 56, instance: 3})
		}, `50-57 rank 0 collective MPI_Barrier
0-50 rank 2 compute MPI_Barrier`},
		// A broadcast waits for its root 1, which enters at 20, and not for rank 2.
		{"broadcast", func() *Graph {
			return graph(t, 3, Options{}, call{rank: 0, call: schema.CallBcast, from: 10, to: 57, instance: 3,
				root: 1}, call{rank: 1, call: schema.CallBcast, from: 20, to: 30, instance: 3, root: 1},
				call{rank: 2, call: schema.CallBcast, from: 50, to: 56, instance: 3, root: 1})
		}, `20-57 rank 0 collective MPI_Bcast
0-20 rank 1 compute MPI_Bcast`},
		{"broadcast in a simulation", func() *Graph {
			return graph(t, 3, Options{Last: true},
				call{rank: 0, call: schema.CallBcast, from: 10, to: 57, instance: 3, root: 1},
				call{rank: 1, call: schema.CallBcast, from: 20, to: 57, instance: 3, root: 1},
				call{rank: 2, call: schema.CallBcast, from: 50, to: 57, instance: 3, root: 1})
		}, `50-57 rank 0 collective MPI_Bcast
0-50 rank 2 compute MPI_Bcast`},
		// On the intercommunicator of {0, 1} and {2, 3} rank 0 waits for the other group, of which rank 2 enters last.
		{"barrier of two groups", func() *Graph {
			g := graph(t, 4, Options{}, call{rank: 0, call: schema.CallBarrier, from: 1, to: 45, comm: 9, instance: 3},
				call{rank: 1, call: schema.CallBarrier, from: 40, to: 44, comm: 9, instance: 3},
				call{rank: 2, call: schema.CallBarrier, from: 30, to: 42, comm: 9, instance: 3},
				call{rank: 3, call: schema.CallBarrier, from: 20, to: 42, comm: 9, instance: 3})
			g.AddToSecondGroup(9, 2)
			g.AddToSecondGroup(9, 3)
			return g
		}, `30-45 rank 0 collective MPI_Barrier
0-30 rank 2 compute MPI_Barrier`},
		// Its broadcast from rank 1 reaches the other group; rank 0 waits for nobody.
		{"broadcast to the other group", func() *Graph {
			g := graph(t, 3, Options{},
				call{rank: 0, call: schema.CallBcast, from: 10, to: 57, comm: 9, instance: 3, root: 1},
				call{rank: 1, call: schema.CallBcast, from: 20, to: 30, comm: 9, instance: 3, root: 1},
				call{rank: 2, call: schema.CallBcast, from: 5, to: 56, comm: 9, instance: 3, root: 1})
			g.AddToSecondGroup(9, 2)
			return g
		}, `10-57 rank 0 collective MPI_Bcast
0-10 rank 0 compute MPI_Bcast`},
		// In a reduction only the root 1 waits, for rank 2.
		{"reduce", func() *Graph {
			return graph(t, 3, Options{}, call{rank: 0, call: schema.CallReduce, from: 10, to: 30, instance: 3,
				root: 1}, call{rank: 1, call: schema.CallReduce, from: 20, to: 60, instance: 3, root: 1},
				call{rank: 2, call: schema.CallReduce, from: 50, to: 59, instance: 3, root: 1})
		}, `50-60 rank 1 collective MPI_Reduce
0-50 rank 2 compute MPI_Reduce`},
		// In a scan a rank waits for those before it. In the order 2, 0, 1 of the communicator rank 0 waits for rank 2
		// (20), not for rank 1 (50).
		{"scan", func() *Graph {
			g := graph(t, 3, Options{}, call{rank: 0, call: schema.CallScan, from: 10, to: 70, comm: 9, instance: 3},
				call{rank: 1, call: schema.CallScan, from: 50, to: 60, comm: 9, instance: 3},
				call{rank: 2, call: schema.CallScan, from: 20, to: 21, comm: 9, instance: 3})
			for _, rank := range []int32{2, 0, 1} {
				g.AddMember(9, rank)
			}
			return g
		}, `20-70 rank 0 collective MPI_Scan
0-20 rank 2 compute MPI_Scan`},
		// The wait for a nonblocking barrier is in MPI_Wait, from 15 to 57; rank 1 enters at 40.
		{"nonblocking", func() *Graph {
			return graph(t, 2, Options{}, call{rank: 0, call: schema.CallIbarrier, from: 10, to: 11, instance: 3,
				done: 1}, call{rank: 0, call: schema.CallWait, from: 15, to: 57},
				call{rank: 1, call: schema.CallIbarrier, from: 40, to: 41, instance: 3, done: 1},
				call{rank: 1, call: schema.CallWait, from: 42, to: 50})
		}, `40-57 rank 0 collective MPI_Wait
0-40 rank 1 compute MPI_Ibarrier`},
		// Two threads of a rank: the path stays on the thread that ends last.
		{"threads", func() *Graph {
			return graph(t, 1, Options{}, call{call: schema.CallSend, from: 10, to: 20},
				call{call: schema.CallRecv, from: 15, to: 60, thread: 1}, call{call: schema.CallSend, from: 70, to: 90})
		}, `70-90 rank 0 point-to-point MPI_Send
20-70 rank 0 compute MPI_Send
10-20 rank 0 point-to-point MPI_Send
0-10 rank 0 compute MPI_Send`},
		// On a network that takes no time rank 1 has the message when it is sent.
		{"no time", func() *Graph {
			g := graph(t, 2, Options{}, call{rank: 0, call: schema.CallSend, from: 100, to: 100},
				call{rank: 1, call: schema.CallRecv, from: 30, to: 100}, call{rank: 1, call: final, from: 120, to: 120})
			g.message(0, 0, 1, 0, 0)
			return g
		}, `100-120 rank 1 compute MPI_Finalize
0-100 rank 0 compute MPI_Send`},
		// An impossible run: each rank's receive ends with the other's send, which comes after its own receive. The
		// walk must not go round in a circle.
		{"circle", func() *Graph {
			g := graph(t, 2, Options{}, call{rank: 0, call: schema.CallRecv, from: 20, to: 100},
				call{rank: 0, call: schema.CallSend, from: 100, to: 100},
				call{rank: 1, call: schema.CallRecv, from: 30, to: 100},
				call{rank: 1, call: schema.CallSend, from: 100, to: 100})
			g.message(0, 1, 1, 0, 0)
			g.message(1, 1, 0, 0, 0)
			return g
		}, `20-100 rank 0 point-to-point MPI_Recv
0-20 rank 0 compute MPI_Recv`},
		// A call that never returned, and clocks that disagree: rank 1 has its message before it was sent.
		{"crash", func() *Graph {
			g := graph(t, 2, Options{}, call{rank: 0, call: schema.CallSend, from: 100, to: 105},
				call{rank: 0, call: schema.CallRecv, from: 120, to: unknown},
				call{rank: 1, call: schema.CallRecv, from: 30, to: 90})
			g.message(0, 0, 1, 0, 0)
			return g
		}, `105-120 rank 0 compute MPI_Recv
100-105 rank 0 point-to-point MPI_Send
0-100 rank 0 compute MPI_Send`},
		{"untimed", func() *Graph {
			return graph(t, 1, Options{}, call{call: schema.CallSend, from: unknown, to: unknown})
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, walk(t, c.make())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A rank that ends after its last call computes until then.
func TestWalkFromFinish(t *testing.T) {
	g := graph(t, 2, Options{}, call{rank: 0, call: schema.CallSend, from: 3, to: 5},
		call{rank: 1, call: schema.CallSend, from: 4, to: 6})
	var got []Segment
	duration := g.Walk([]int64{17, 6}, func(s Segment) { got = append(got, s) })
	want := []Segment{{0, 0, schema.CallSend, Compute, 5, 17}, {0, 0, schema.CallSend, PointToPoint, 3, 5},
		{0, 0, schema.CallSend, Compute, 0, 3}}
	if diff := cmp.Diff(want, got); diff != "" || duration != 17 {
		t.Error(duration, diff)
	}
}

// Whatever the times and messages are, no segment is empty or negative, they join, and they add up to the duration.
func TestWalkAddsUpToDuration(t *testing.T) {
	jumps := 0
	for seed := range uint64(3000) {
		if path := walk(t, randomGraph(t, seed)); strings.Contains(path, Transfer.String()) {
			jumps++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if jumps < 300 {
		t.Errorf("%d of 3000 paths have a transfer", jumps)
	}
}

// randomGraph returns rows that no program would make: with clocks that disagree, calls that never return, and messages
// between any of them.
func randomGraph(t *testing.T, seed uint64) *Graph {
	t.Helper()
	calls := []schema.CallID{schema.CallSend, schema.CallRecv, schema.CallBarrier, schema.CallBcast, schema.CallScan,
		schema.CallWaitall, schema.CallProbe, schema.CallReduce, schema.CallWinCreate, schema.CallWinFence}
	r := rand.New(rand.NewPCG(seed, 17))
	ranks := 1 + r.IntN(5)
	var rows []call
	count := make([]int64, ranks)
	at := make([]int64, ranks)
	for range r.IntN(60) {
		rank := r.IntN(ranks)
		c := call{rank: int32(rank), call: calls[r.IntN(len(calls))], thread: int32(r.IntN(10) / 9),
			from: at[rank] + r.Int64N(20) - r.Int64N(3)}
		c.to = c.from + r.Int64N(40)
		if at[rank] = c.to; r.IntN(20) == 0 {
			c.to = unknown
		}
		if schema.Calls[c.call].Class == schema.ClassCollective || c.call == schema.CallWinCreate {
			c.instance, c.root = 1+r.Int64N(9), int32(r.IntN(ranks))
		} else if c.call == schema.CallWinFence && count[rank] > 0 {
			c.window = 1 + r.Int64N(count[rank])
		}
		count[rank]++
		rows = append(rows, c)
	}
	g := graph(t, ranks, Options{Last: r.IntN(2) == 0, Eager: r.IntN(2) == 0}, rows...)
	for range r.IntN(40) {
		src, dst := r.IntN(ranks), r.IntN(ranks)
		if count[src] > 0 && count[dst] > 0 {
			g.message(int32(src), r.Int64N(count[src]), int32(dst), r.Int64N(count[dst]), r.Int64N(count[dst]))
		}
	}
	return g
}

// Rows may be missing, but must be in order.
func TestAddEventsNeedsOrder(t *testing.T) {
	g := New(1, Options{})
	b := &schema.Events{}
	e := schema.NullEvent
	e.Rank, e.Call = 0, int16(schema.CallSend)
	for _, seq := range []int64{5, 6, 9, 17} {
		e.Seq = seq
		b.Append(&e)
	}
	if err := g.AddEvents(b); err != nil {
		t.Fatal(err)
	}
	var got []int32
	for _, seq := range []int64{4, 5, 6, 7, 9, 17, 18} {
		got = append(got, g.ranks[0].find(seq))
	}
	if want := []int32{-1, 0, 1, -1, 2, 3, -1}; !slices.Equal(got, want) {
		t.Errorf("%v; want %v", got, want)
	}
	if err := g.AddEvents(b); err == nil || err.Error() != "rank 0: seq 5 comes after 17" {
		t.Error(err)
	}
	if size := unsafe.Sizeof(row{}); size > 56 {
		t.Errorf("a row takes %d bytes", size)
	}
}

// MPI_Wait waits for the receiver of a synchronous persistent send, unless the times say that no send waits.
func TestWaitsOfPersistentSends(t *testing.T) {
	var asked []schema.CallID
	for _, waits := range []bool{true, false} {
		ask := func(call schema.CallID, src, dst int32, bytes int64, nonblocking bool) bool {
			if asked = append(asked, call); src != 0 || dst != 1 || bytes != 64 || !nonblocking {
				t.Errorf("rank %d to %d, %d bytes, nonblocking %t", src, dst, bytes, nonblocking)
			}
			return waits
		}
		g := graph(t, 2, Options{SendWaits: ask},
			call{rank: 0, call: schema.CallSsendInit, from: 0, to: 1},
			call{rank: 0, call: schema.CallStart, from: 2, to: 3, window: 1, done: 2},
			call{rank: 0, call: schema.CallWait, from: 4, to: 50},
			call{rank: 1, call: schema.CallRecv, from: 40, to: 60})
		b, m := &schema.Messages{}, schema.NullMessage
		m.Src, m.Dst, m.Bytes, m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = 0, 1, 64, 1, 0, 0
		b.Append(&m)
		g.AddMessages(b)
		if w := g.ranks[0].rowAt(2); (w.waitedRank == 1) != waits || waits && w.awaits != AwaitsReceiverSync {
			t.Errorf("sends wait: %t; MPI_Wait waits for rank %d (%s)", waits, w.waitedRank, w.awaits)
		}
	}
	if !slices.Equal(asked, []schema.CallID{schema.CallSsendInit, schema.CallSsendInit}) {
		t.Errorf("asked for %v", asked)
	}
}
