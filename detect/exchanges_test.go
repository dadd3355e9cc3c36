package detect

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exchanges builds programs in which all messages have payloads of their own, unless their ranks say else.
type exchanges struct {
	*program
	payload int64
}

// add adds a message that is sent at a site with a tag, with a payload of its own.
func (x *exchanges) add(src, dst int, site, tag int32) int {
	x.payload++
	return x.message(sent{src: int32(src), dst: int32(dst), site: site, tag: tag, bytes: 64, payload: x.payload<<20 | 1, head: x.payload})
}

// questions lets every rank ask all others and answer whoever asks, one after the other.
func (x *exchanges) questions() {
	n := x.ranks
	asked, answers := map[[2]int]int{}, map[[2]int]int{}
	for src := range n {
		for step := 1; step < n; step++ {
			dst := (src + step) % n
			asked[[2]int{src, dst}] = x.add(src, dst, 1, 5)
			x.send(asked[[2]int{src, dst}])
			answers[[2]int{dst, src}] = x.add(dst, src, 3, 6)
		}
	}
	for rank := range n {
		for _, step := range rand.New(rand.NewPCG(uint64(rank), 1)).Perm(n - 1) {
			from := (rank + step + 1) % n
			x.recv(asked[[2]int{from, rank}])
			x.send(answers[[2]int{rank, from}])
		}
		for step := 1; step < n; step++ {
			x.recv(answers[[2]int{(rank + step) % n, rank}])
		}
	}
}

// steps lets every rank exchange with all others, one after the other. The tag is the step.
func (x *exchanges) steps() {
	n := x.ranks
	for step := 1; step < n; step++ {
		on := make([]int, n)
		for src := range n {
			on[src] = x.add(src, (src+step)%n, 1, int32(step))
			x.send(on[src])
		}
		for rank := range n {
			x.recv(on[(rank+n-step)%n])
		}
	}
}

// ring lets every rank send to both neighbours: the same, or something else to each.
func (x *exchanges) ring(same bool) {
	n := x.ranks
	var on []int
	for src := range n {
		left, right := x.add(src, (src+n-1)%n, 1, 7), x.add(src, (src+1)%n, 1, 7)
		if same {
			x.messages[right].payload, x.messages[right].head = x.messages[left].payload, x.messages[left].head
		}
		x.send(left)
		x.send(right)
		on = append(on, left, right)
	}
	for _, m := range on {
		x.recv(m)
	}
}

// acknowledged lets every rank send to all others, and receive from all; an empty message at another call answers each.
func (x *exchanges) acknowledged() {
	n := x.ranks
	data, answers := map[[2]int]int{}, map[[2]int]int{}
	for src := range n {
		for step := 1; step < n; step++ {
			dst := (src + step) % n
			data[[2]int{src, dst}] = x.add(src, dst, 1, 5)
			x.send(data[[2]int{src, dst}])
			answers[[2]int{dst, src}] = x.message(sent{src: int32(dst), dst: int32(src), site: 3, tag: 6})
		}
	}
	for rank := range n {
		for _, step := range rand.New(rand.NewPCG(uint64(rank), 1)).Perm(n - 1) {
			from := (rank + step + 1) % n
			x.recv(data[[2]int{from, rank}])
			x.send(answers[[2]int{rank, from}])
		}
		for step := 1; step < n; step++ {
			x.recv(answers[[2]int{(rank + step) % n, rank}])
		}
	}
}

// owners lets ranks that share points with lower ones send these their parts, and get the sums back.
func (x *exchanges) owners(pairs [][2]int) {
	for _, site := range []int32{1, 3} {
		for _, p := range pairs {
			if site == 1 {
				p[0], p[1] = p[1], p[0]
			}
			m := x.add(p[0], p[1], site, 5)
			x.send(m)
			x.recv(m)
		}
	}
}

// pings lets every rank send one large message of its own to each other rank, which answers with one of its own at
// another call before the next one is sent.
func (x *exchanges) pings() {
	for root := range x.ranks {
		own := x.payload + 1
		for step := 1; step < x.ranks; step++ {
			to := (root + step) % x.ranks
			ping := x.add(root, to, 1, 5)
			x.messages[ping].payload, x.messages[ping].head = own<<20|1, own
			pong := x.add(to, root, 3, 6)
			for _, m := range []int{ping, pong} {
				x.send(m)
				x.recv(m)
			}
		}
	}
}

// blocks lets every rank send to all others blocks that lie side by side, and then receive such blocks.
func (x *exchanges) blocks() {
	var all []int
	for src := range x.ranks {
		at := int64(4096)
		for dst := range x.ranks {
			if dst == src {
				continue
			}
			m := x.add(src, dst, 1, int32(src))
			x.messages[m].bytes = int64(64 + 8*src + 16*dst)
			x.messages[m].buffer, x.messages[m].to = at, int64(1<<20+4096*src)
			at += x.messages[m].bytes
			x.send(m)
			all = append(all, m)
		}
	}
	for _, m := range all {
		x.recv(m)
	}
}

// halfEmpty lets every rank send to all others and then receive. Blocks for ranks that are an even number of places
// away are empty.
func (x *exchanges) halfEmpty() {
	var all []int
	for src := range x.ranks {
		for dst := range x.ranks {
			switch {
			case dst == src:
				continue
			case (src+dst)%2 == 0:
				all = append(all, x.message(sent{src: int32(src), dst: int32(dst), site: 1, tag: 5}))
			default:
				all = append(all, x.add(src, dst, 1, 5))
			}
			x.send(all[len(all)-1])
		}
	}
	for _, m := range all {
		x.recv(m)
	}
}

// broadcasts lets rank 0 send to all others, times times. Each time of which every is a divisor, rank 1 sends something
// to rank 0 at the same call before it receives.
func (x *exchanges) broadcasts(times, every int) {
	for k := range times {
		own := x.payload + 1
		var all []int
		for dst := 1; dst < x.ranks; dst++ {
			m := x.add(0, dst, 1, 5)
			x.messages[m].payload, x.messages[m].head = own<<20|1, own
			x.send(m)
			all = append(all, m)
		}
		if (k+1)%every == 0 {
			m := x.add(1, 0, 1, 5)
			x.send(m)
			all = append(all, m)
		}
		for _, m := range all {
			x.recv(m)
		}
	}
}

func TestExchangesAreWhatTheirLineDoes(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(x *exchanges)
		want  []string
	}{
		{"answers are no exchange, the questions are", func(x *exchanges) { x.questions() },
			[]string{"MPI_Alltoall ranks [0 1 2 3 4 5] bytes 320 x 1 messages 30"}},
		{"acknowledgements are no barrier", (*exchanges).acknowledged,
			[]string{"MPI_Alltoall ranks [0 1 2 3 4 5] bytes 320 x 1 messages 30"}},
		{"sums at shared points are no exchange", func(x *exchanges) {
			for range 5 {
				x.owners([][2]int{{0, 1}, {0, 3}, {0, 4}, {1, 2}, {1, 3}, {1, 4}, {1, 5}, {2, 4}, {2, 5}, {3, 4}, {4, 5}})
			}
		}, nil},
		{"blocks that lie side by side, from all to all", func(x *exchanges) { x.blocks() },
			[]string{"MPI_Alltoallv ranks [0 1 2 3 4 5] bytes 680 x 1 messages 30"}},
		{"blocks of which some are empty", func(x *exchanges) { x.halfEmpty(); x.halfEmpty() },
			[]string{"MPI_Alltoallv ranks [0 1 2 3 4 5] bytes 192 x 2 messages 60"}},
		{"steps with a tag each", func(x *exchanges) { x.steps(); x.steps() },
			[]string{"MPI_Alltoall ranks [0 1 2 3 4 5] bytes 320 x 2 messages 60"}},
		{"neighbours that sometimes get the same", func(x *exchanges) {
			for k := range 12 {
				x.ring(k%4 == 0)
			}
		}, []string{"MPI_Neighbor_alltoall ranks [0 1 2 3 4 5] bytes 128 x 12 messages 144"}},
		{"neighbours that mostly get the same", func(x *exchanges) {
			for range 12 {
				x.ring(true)
			}
		}, []string{"MPI_Neighbor_allgather ranks [0 1 2 3 4 5] bytes 64 x 12 messages 144"}},
		{"broadcasts of which every fifth crosses a message", func(x *exchanges) { x.broadcasts(120, 5) },
			[]string{"MPI_Bcast ranks [0 1 2 3 4 5] roots [0] possible [0] bytes 64 x 96 messages 480"}},
		{"broadcasts of which every second crosses a message", func(x *exchanges) { x.broadcasts(120, 2) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := &exchanges{program: newProgram(6)}
			c.build(x)
			for seed := range uint64(5) {
				if d := cmp.Diff(c.want, found(t, x.run(t, rand.New(rand.NewPCG(seed, 1)), nil), Options{})); d != "" {
					t.Fatalf("seed %d: want, got:\n%s", seed, d)
				}
			}
		})
	}
}
