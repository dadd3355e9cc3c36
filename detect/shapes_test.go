package detect

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/detect/combine"
	"github.com/commq/commq/schema"
)

// shapes builds programs whose messages all have payloads and sizes of their own, unless told else.
type shapes struct {
	exchanges
	bytes func(src, dst int) int64
}

// pass sends a message and receives it before its ranks do anything else.
func (x *shapes) pass(src, dst int, site, tag int32) {
	m := x.add(src, dst, site, tag)
	x.messages[m].bytes = x.bytes(src, dst)
	x.send(m)
	x.recv(m)
}

// swap sends both ways between two ranks; both send first.
func (x *shapes) swap(a, b int, site int32) {
	there, back := x.add(a, b, site, 5), x.add(b, a, site, 5)
	for _, m := range []int{there, back} {
		x.messages[m].bytes = x.bytes(a, b)
		x.send(m)
	}
	x.recv(there)
	x.recv(back)
}

// tell sends one value to all others of rank 0 in this order.
func (x *shapes) tell(order ...int) {
	for _, to := range order {
		m := x.add(0, to, 1, 5)
		x.messages[m].payload, x.messages[m].head, x.messages[m].bytes = 100, 100, 4
		x.send(m)
		x.recv(m)
	}
}

// tree joins objects up a binomial tree.
func (x *shapes) tree() {
	for mask := 1; mask < x.ranks; mask *= 2 {
		for rank := mask; rank < x.ranks; rank += 2 * mask {
			x.pass(rank, rank-mask, 1, 5)
		}
	}
}

// doubling exchanges objects between ranks at distances of powers of two.
func (x *shapes) doubling() {
	for mask := 1; mask < x.ranks; mask *= 2 {
		for rank := range x.ranks {
			if rank&mask == 0 && rank|mask < x.ranks {
				x.swap(rank, rank|mask, 1)
			}
		}
	}
}

// receivedAt makes one call receive all messages.
func receivedAt(read func([]string, func(*schema.Messages, schema.Rest) error) error, site int32) func([]string,
	func(*schema.Messages, schema.Rest) error) error {
	return func(columns []string, add func(*schema.Messages, schema.Rest) error) error {
		return read(columns, func(b *schema.Messages, rest schema.Rest) error {
			for i := range b.RecvCallsite {
				b.RecvCallsite[i] = site
			}
			return add(b, rest)
		})
	}
}

// TestShapes: what shows by who sends to whom alone, and what looks like it.
func TestShapes(t *testing.T) {
	for _, c := range []struct {
		name  string
		ranks int
		times int
		build func(x *shapes)
		want  []string // findings that are no candidates
	}{
		{"told in order", 6, 1, func(x *shapes) { x.tell(1, 2, 3, 4, 5) }, []string{"MPI_Bcast inferred x 1 by 5"}},
		{"told in another order", 6, 1, func(x *shapes) { x.tell(3, 1, 5, 4, 2) }, nil},
		{"told to few", 4, 1, func(x *shapes) { x.tell(1, 2, 3) }, nil},
		{"told where one is told something else", 6, 1, func(x *shapes) {
			x.tell(1, 2, 3, 4, 5)
			x.pass(0, 2, 1, 5)
		}, nil},
		{"tree", 6, 2, (*shapes).tree, []string{"MPI_Reduce inferred x 2 by 10"}},
		{"tree with messages that do not reach the root", 6, 3, func(x *shapes) {
			x.tree()
			x.pass(3, 1, 1, 5)
		}, []string{"MPI_Reduce inferred x 3 by 18"}},
		{"chain", 6, 4, func(x *shapes) {
			for r := x.ranks - 1; r > 0; r-- {
				x.pass(r, r-1, 1, 5)
			}
		}, nil},
		{"doubling among six", 6, 2, (*shapes).doubling, []string{"MPI_Scan inferred x 2 by 28"}},
		{"doubling among eight is a cube's edges", 8, 4, (*shapes).doubling, nil},
		{"blocks of the same sizes at three calls", 4, 1, func(x *shapes) {
			x.bytes = func(src, dst int) int64 { return 100 + int64(src+dst)*8 }
			for site := int32(1); site < 7; site += 2 {
				for r := 1; r < x.ranks; r++ {
					if site < 5 {
						x.pass(r, 0, site, int32(r))
					} else {
						x.pass(0, r, site, int32(r))
					}
				}
			}
		}, []string{"MPI_Gatherv inferred x 1 by 3", "MPI_Gatherv inferred x 1 by 3", "MPI_Scatterv inferred x 1 by 3"}},
		{"first tasks and later ones", 8, 1, func(x *shapes) {
			for r := 1; r < x.ranks; r++ {
				x.pass(0, r, 1, 5)
			}
			for _, r := range []int{3, 1, 3, 7} {
				m := x.add(0, r, 3, 5)
				x.messages[m].bytes = int64(200 + r)
				x.send(m)
				x.recv(m)
			}
		}, nil},
		{"both faces along the axes of a cube", 8, 3, func(x *shapes) {
			x.bytes = func(int, int) int64 { return 64 }
			for mask := 1; mask < x.ranks; mask *= 2 {
				for range 2 {
					for rank := range x.ranks {
						if rank&mask == 0 {
							x.swap(rank, rank|mask, 1)
						}
					}
				}
			}
		}, []string{"MPI_Neighbor_alltoall inferred x 18 by 144"}},
		{"pings of all ranks", 6, 4, func(x *shapes) { x.pings() }, nil},
		{"comparing and exchanging along them", 8, 3, func(x *shapes) {
			x.bytes = func(int, int) int64 { return 64 }
			x.doubling()
		}, nil},
	} {
		x := &shapes{exchanges: exchanges{program: newProgram(c.ranks)}}
		x.bytes = func(src, dst int) int64 { return 20 + (x.payload*37+int64(src))%50 }
		for range c.times {
			c.build(x)
		}
		run := x.run(t, rand.New(rand.NewPCG(1, 2)), nil)
		run.Datatypes = []combine.Datatype{{ID: 7, Named: true, Name: "MPI_BYTE", Bytes: 1}}
		if c.name == "first tasks and later ones" { // all are received at one call
			run.Messages = receivedAt(run.Messages, 2)
		}
		r, err := Detect(run, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Certainty < Candidate {
				got = append(got, fmt.Sprintf("%v %v x %d by %d", f.Operation, f.Certainty, f.Instances, f.Messages))
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: want, got:\n%s", c.name, diff)
		}
	}
}
