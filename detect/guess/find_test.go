package guess

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/run"
)

// program collects the messages that ranks send in an order of their own: each send and each completion of a receive
// has the next number of its rank.
type program struct {
	next []int64
	list []Message
	tag  int32
}

func newProgram(ranks int) *program { return &program{next: make([]int64, ranks)} }

// exchange lets all ranks send in one step, each with its number to to(rank), and then receive.
func (p *program) exchange(ranks []int32, bytes int64, to func(place int) int) {
	first := len(p.list)
	for place, r := range ranks {
		p.list = append(p.list, Message{Src: r, Dst: ranks[to(place)], Tag: p.tag, Bytes: bytes, SendSeq: p.next[r]})
		p.next[r]++
	}
	for i := first; i < len(p.list); i++ {
		m := &p.list[i]
		m.PostSeq, m.DoneSeq = p.next[m.Dst], p.next[m.Dst]
		p.next[m.Dst]++
	}
}

// lateReceives lets them receive what they are sent only after all steps: nothing is passed on.
func (p *program) lateReceives() {
	for i := range p.list {
		p.list[i].DoneSeq += 1000
	}
}

func on(shift, n int) func(int) int { return func(k int) int { return (k + shift + n) % n } }
func with(mask int) func(int) int   { return func(k int) int { return k ^ mask } }

func world(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// found describes what is found, an operation a line: how often, over which ranks, of how many bytes, by how many
// messages.
func found(p *program, ranks int) string {
	comms := []run.Comm{{ID: 0, Members: world(ranks)}}
	// The order of the messages of different ranks does not matter.
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(p.list), func(a, b int) { p.list[a], p.list[b] = p.list[b], p.list[a] })
	var lines []string
	used := map[int32]bool{}
	for _, s := range Find(p.list, comms, 3) {
		lines = append(lines, fmt.Sprintf("%s %v %d by %d", strings.TrimPrefix(s.Operation.String(), "MPI_"), s.Ranks, s.Bytes,
			len(s.Messages)))
		for _, m := range s.Messages {
			if used[m] {
				lines = append(lines, "a message is used twice")
			}
			used[m] = true
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestFind(t *testing.T) {
	five, eight := world(5), world(8)
	for name, c := range map[string]struct {
		ranks int
		do    func(p *program)
		want  string
	}{
		// 4 steps of 5 ranks pass each block on to all, 8 reduce and pass on; 12 are three times the first.
		"ring": {5, func(p *program) {
			for range 4 {
				p.exchange(five, 100, on(1, 5))
			}
		}, "Allgather [0 1 2 3 4] 100 by 20"},
		"ring that reduces, backwards, in an order of its own": {5, func(p *program) {
			for range 8 {
				p.exchange([]int32{3, 0, 4, 1, 2}, 100, on(-1, 5))
			}
		}, "Allreduce [0 1 2 3 4] 500 by 40"},
		"three rings": {5, func(p *program) {
			for range 12 {
				p.exchange(five, 100, on(1, 5))
			}
		}, strings.Repeat("Allgather [0 1 2 3 4] 100 by 20\n", 2) + "Allgather [0 1 2 3 4] 100 by 20"},
		"rings in two groups": {8, func(p *program) {
			for range 3 {
				p.exchange([]int32{0, 2, 4, 6}, 9, on(1, 4))
				p.exchange([]int32{1, 3, 5, 7}, 7, on(1, 4))
			}
		}, "Allgather [0 2 4 6] 9 by 12\nAllgather [1 3 5 7] 7 by 12"},
		"steps that are not as many as a ring's": {5, func(p *program) {
			for range 6 {
				p.exchange(five, 100, on(1, 5))
			}
		}, ""},
		"blocks that are sent before they come": {5, func(p *program) {
			for range 4 {
				p.exchange(five, 100, on(1, 5))
			}
			p.lateReceives()
		}, ""},
		"recursive doubling": {8, func(p *program) {
			for _, mask := range []int{1, 2, 4} {
				p.exchange(eight, 100, with(mask))
			}
		}, "Allreduce [0 1 2 3 4 5 6 7] 100 by 24"},
		"recursive doubling of an all-gather": {8, func(p *program) {
			for _, mask := range []int{1, 2, 4} {
				p.exchange(eight, 100*int64(mask), with(mask))
			}
		}, "Allgather [0 1 2 3 4 5 6 7] 100 by 24"},
		"recursive halving": {8, func(p *program) {
			for _, mask := range []int{4, 2, 1} {
				p.exchange(eight, 100*int64(mask), with(mask))
			}
		}, "Reduce_scatter_block [0 1 2 3 4 5 6 7] 800 by 24"},
		"recursive halving, then doubling (Rabenseifner)": {8, func(p *program) {
			for _, mask := range []int{4, 2, 1, 1, 2, 4} {
				p.exchange(eight, 100*int64(mask), with(mask))
			}
		}, "Allreduce [0 1 2 3 4 5 6 7] 800 by 48"},
		"dissemination": {5, func(p *program) {
			for _, shift := range []int{1, 2, 4} {
				p.exchange(five, 0, on(shift, 5))
			}
		}, "Barrier [0 1 2 3 4] 0 by 15"},
		// Of 5 ranks the last step of Bruck's algorithm sends the one block that is missing.
		"Bruck": {5, func(p *program) {
			for k, shift := range []int{1, 2, 4} {
				p.exchange(five, []int64{100, 200, 100}[k], on(-shift, 5))
			}
		}, "Allgather [0 1 2 3 4] 100 by 15"},
		"each with each": {5, func(p *program) {
			for shift := 1; shift < 5; shift++ {
				p.exchange(five, 100, on(shift, 5))
			}
		}, "Alltoall [0 1 2 3 4] 400 by 20"},
		"each with each, in the order of ranks": {5, func(p *program) {
			for range 2 {
				for src := range int32(5) {
					for dst := range int32(5) {
						if src != dst {
							p.list = append(p.list, Message{Src: src, Dst: dst, Bytes: 30, SendSeq: p.next[src], DoneSeq: 1000})
							p.next[src]++
						}
					}
				}
			}
		}, "Alltoall [0 1 2 3 4] 120 by 20\nAlltoall [0 1 2 3 4] 120 by 20"},
		"another size in between": {5, func(p *program) {
			for range 4 {
				p.exchange(five, 100, on(1, 5))
				p.list = append(p.list, Message{Src: 3, Dst: 1, Bytes: 7, SendSeq: p.next[3], DoneSeq: p.next[1]})
				p.next[3], p.next[1] = p.next[3]+1, p.next[1]+1
			}
		}, "Allgather [0 1 2 3 4] 100 by 20"},
		"a gather": {5, func(p *program) {
			for k := range int32(4) {
				p.list = append(p.list, Message{Src: k + 1, Dst: 0, Bytes: 100, SendSeq: 0, DoneSeq: int64(k)})
			}
		}, ""},
		"nothing": {5, func(*program) {}, ""},
	} {
		p := newProgram(c.ranks)
		p.tag = 9
		c.do(p)
		if got := found(p, c.ranks); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// Ranks count by their place in the communicator: of 4 ranks in another order, partners at the distances 1 and 2.
func TestPlacesInACommunicator(t *testing.T) {
	p := newProgram(8)
	order := []int32{6, 1, 4, 3}
	for _, mask := range []int{1, 2} {
		p.exchange(order, 16, with(mask))
	}
	for i := range p.list {
		p.list[i].Comm = 2
	}
	got := Find(p.list, []run.Comm{{ID: 0, Members: world(8)}, {ID: 2, Members: order}}, 3)
	if len(got) != 1 || got[0].Operation.String() != "MPI_Allreduce" || !slices.Equal(got[0].Ranks, []int32{1, 3, 4, 6}) {
		t.Errorf("%+v", got)
	}
}

// Messages at random are no operation of many steps, and nothing fails on them.
func TestRandomMessages(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		p := newProgram(6)
		for range r.IntN(60) {
			src, dst := int32(r.IntN(6)), int32(r.IntN(6))
			p.list = append(p.list, Message{Src: src, Dst: dst, Tag: int32(r.IntN(2)), Bytes: int64(r.IntN(2)), SendSeq: p.next[src],
				DoneSeq: p.next[dst]})
			p.next[src]++
			p.next[dst]++
		}
		if got := found(p, 6); strings.Contains(got, "twice") {
			t.Fatal(got)
		}
	}
}
