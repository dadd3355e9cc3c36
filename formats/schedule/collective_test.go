package schedule

import (
	"slices"
	"testing"

	"github.com/commq/commq/schema"
)

// flow is what goes from a place to another: the sizes in order.
type flow struct{ from, to int }

// flows returns what all ranks of an operation say that they send, and that they receive.
func flows(calls []*Collective) (sent, received map[flow][]int64) {
	sent, received = map[flow][]int64{}, map[flow][]int64{}
	for me, c := range calls {
		for _, round := range c.Rounds() {
			for _, m := range round {
				if m.Send {
					sent[flow{me, m.Place}] = append(sent[flow{me, m.Place}], m.Bytes)
				} else {
					received[flow{m.Place, me}] = append(received[flow{m.Place, me}], m.Bytes)
				}
			}
		}
	}
	return sent, received
}

// finishes plays the rounds with messages that are sent at once, and reports whether all ranks come to the end.
func finishes(calls []*Collective) bool {
	type state struct {
		rounds [][]Message
		begun  bool
	}
	ranks := make([]state, len(calls))
	under := map[flow]int{}
	for me, c := range calls {
		ranks[me].rounds = c.Rounds()
	}
	for moved := true; moved; {
		moved = false
		for me := range ranks {
			r := &ranks[me]
			if len(r.rounds) == 0 {
				continue
			}
			need := map[flow]int{}
			for _, m := range r.rounds[0] {
				if m.Send && !r.begun {
					under[flow{me, m.Place}]++
				} else if !m.Send {
					need[flow{m.Place, me}]++
				}
			}
			ready := true
			for f, n := range need {
				ready = ready && under[f] >= n
			}
			moved = moved || !r.begun
			r.begun = true
			if ready {
				for f, n := range need {
					under[f] -= n
				}
				r.rounds, r.begun, moved = r.rounds[1:], false, true
			}
		}
	}
	for me := range ranks {
		if len(ranks[me].rounds) > 0 {
			return false
		}
	}
	for _, n := range under {
		if n > 0 {
			return false
		}
	}
	return true
}

// callsOf returns the calls of an operation of n ranks: rank i has 100+i bytes where sizes may differ, else 100 do.
func callsOf(op schema.CallID, n, root int) (calls []*Collective) {
	members := make([]int32, n)
	total := int64(0)
	size := func(i int) int64 {
		switch op {
		case schema.CallGatherv, schema.CallScatterv, schema.CallAllgatherv:
			return 100 + int64(i)
		}
		return 100
	}
	for i := range members {
		members[i] = 3 * int32(i)
		total += size(i)
	}
	for me := range n {
		c := &Collective{Op: op, Blocking: true, Members: members, Me: me, Root: root, SendBytes: size(me),
			RecvBytes: size(me)}
		sizes := make([]int64, n)
		for i := range sizes {
			sizes[i] = size(i)
		}
		switch op {
		case schema.CallGather, schema.CallScatter, schema.CallGatherv, schema.CallScatterv:
			if me == root && (op == schema.CallGather || op == schema.CallGatherv) {
				c.RecvBytes, c.RecvFrom = total, sizes
			} else if me == root {
				c.SendBytes, c.SendTo = total, sizes
			}
		case schema.CallAllgather:
			c.RecvBytes = total
		case schema.CallAllgatherv:
			c.RecvBytes, c.RecvFrom = total, sizes
		case schema.CallAlltoall:
			c.SendBytes, c.RecvBytes = total, total
		case schema.CallAlltoallv, schema.CallNeighborAlltoallv:
			c.SendTo, c.RecvFrom = make([]int64, n), make([]int64, n)
			for i := range n {
				c.SendTo[i], c.RecvFrom[i] = int64(10*me+i), int64(10*i+me)
			}
		case schema.CallReduceScatter:
			c.SendBytes = total
		}
		calls = append(calls, c)
	}
	return calls
}

// In every operation each message that a rank sends is received with its size and in its order, and all come to the
// end.
func TestRoundsFitTogether(t *testing.T) {
	for _, op := range []schema.CallID{schema.CallBarrier, schema.CallBcast, schema.CallReduce, schema.CallAllreduce,
		schema.CallGather, schema.CallGatherv, schema.CallScatter, schema.CallScatterv, schema.CallAllgather,
		schema.CallAllgatherv, schema.CallAlltoall, schema.CallAlltoallv, schema.CallReduceScatter, schema.CallScan,
		schema.CallExscan, schema.CallNeighborAlltoallv} {
		for n := 1; n <= 9; n++ {
			for root := range n {
				calls := callsOf(op, n, root)
				sent, received := flows(calls)
				for f := range sent {
					if !slices.Equal(sent[f], received[f]) {
						t.Fatalf("%v of %d, root %d: %v sends %v and gets %v", op, n, root, f, sent[f], received[f])
					}
				}
				if len(sent) != len(received) || !finishes(calls) {
					t.Fatalf("%v of %d, root %d: does not come to its end", op, n, root)
				}
			}
		}
	}
}

// Without parts all ranks exchange with each other, however few bytes each of them has: each send has its receive.
func TestUnknownPartsFitTogether(t *testing.T) {
	for _, op := range []schema.CallID{schema.CallAlltoallv, schema.CallAlltoallw, schema.CallAllgatherv} {
		var calls []*Collective
		for me, bytes := range [][2]int64{{0, 10}, {2, 0}, {9, 1}, {0, 0}} {
			calls = append(calls, &Collective{Op: op, Blocking: true, Members: []int32{0, 3, 6, 9}, Me: me,
				SendBytes: bytes[0], RecvBytes: bytes[1], NoParts: true})
		}
		sent, received := flows(calls)
		if len(sent) != 12 || len(received) != 12 || !finishes(calls) {
			t.Errorf("%v: %v sent, %v received", op, sent, received)
		}
		for f := range sent {
			if len(sent[f]) != 1 || len(received[f]) != 1 {
				t.Errorf("%v: %v sends %v and gets %v", op, f, sent[f], received[f])
			}
		}
	}
}

// Numbers of messages and bytes for five ranks with root 3, from the algorithms' definitions.
func TestRounds(t *testing.T) {
	for op, want := range map[schema.CallID]struct{ messages, bytes int64 }{
		schema.CallBarrier:       {5 * 3, 5 * 3},             // three rounds of distances 1, 2, 4
		schema.CallBcast:         {4, 400},                   // everyone but the root gets it once
		schema.CallReduce:        {4, 400},                   //
		schema.CallAllreduce:     {8, 800},                   // there and back
		schema.CallGatherv:       {4, 100 + 101 + 102 + 104}, // all but the root's
		schema.CallScatterv:      {4, 100 + 101 + 102 + 104},
		schema.CallAllgather:     {5 * 4, 5 * 4 * 100},
		schema.CallAlltoall:      {5 * 4, 5 * 4 * 100},
		schema.CallReduceScatter: {8, 4*500 + 4*100}, // all of it to the first rank, a part from there
		schema.CallScan:          {4, 400},
	} {
		sent, _ := flows(callsOf(op, 5, 3))
		messages, bytes := int64(0), int64(0)
		for _, sizes := range sent {
			for _, b := range sizes {
				messages, bytes = messages+1, bytes+b
			}
		}
		if messages != want.messages || bytes != want.bytes {
			t.Errorf("%v: %d messages of %d bytes; want %d of %d", op, messages, bytes, want.messages, want.bytes)
		}
	}
}
