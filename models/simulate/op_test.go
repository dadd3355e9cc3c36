package simulate

import (
	"math/rand/v2"
	"testing"
)

// Operations leave queues as they entered: with few types, with more types than there are numbers, and with values
// that do not fit a type.
func TestOpQueue(t *testing.T) {
	g := rand.New(rand.NewPCG(7, 5))
	var pool opPool
	var queues [3]opQueue
	var want [3][]op
	seq := [3]int64{}
	take := func(q int) {
		var o op
		pool.take(&queues[q], &o, int32(q))
		if o.step, o.operands = 0, 0; o != want[q][0] {
			t.Fatalf("queue %d: %+v came out, %+v went in", q, o, want[q][0])
		}
		want[q] = want[q][1:]
	}
	for i := range 400_000 {
		q := g.IntN(len(queues))
		seq[q] += []int64{0, 1, 1, 1, 7, 1 << 40}[g.IntN(6)]
		o := op{compute: []int64{0, 977, 1<<computeBits - 1, 1 << computeBits}[g.IntN(4)], seq: seq[q], req: none}
		o.tag, o.comm, o.kind = 9, 3, opKind(g.IntN(int(opGet)+1))
		switch g.IntN(4) {
		case 0:
			o.peer, o.req = int32(g.IntN(40))-2, int32(g.IntN(1<<20))
		case 1:
			o.instance, o.recv, o.flags, o.call = g.Int64()-1<<62, g.Int64(), flagPart|flagRooted, int16(g.IntN(500))
		case 2:
			if i > 100_000 { // more sizes than types have numbers
				o.send = g.Int64()
			}
			o.site = int32(g.IntN(5)) - 1
		}
		want[q] = append(want[q], o)
		pool.put(&queues[q], &o, int32(q), nil)
		for range g.IntN(3) {
			if q := g.IntN(len(queues)); len(want[q]) > 0 {
				take(q)
			}
		}
	}
	for q := range queues {
		for len(want[q]) > 0 {
			take(q)
		}
		if !queues[q].empty() || queues[q].acts != 0 {
			t.Errorf("queue %d: empty %v, acts %d", q, queues[q].empty(), queues[q].acts)
		}
	}
	if len(pool.types) != noType {
		t.Errorf("%d types; want %d, as many as have numbers", len(pool.types), noType)
	}
}
