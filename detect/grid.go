package detect

import (
	"slices"
)

// Neighbors says who exchanges with whom in an operation between neighbours.
type Neighbors struct {
	// Least and Most are the numbers of neighbours that a rank has.
	Least, Most int
	// Dims and Periods are the arguments of MPI_Cart_create that make the ranks, in the communicator's order, neighbours of those that they
	// exchange with. Nil where no grid does.
	Dims    []int
	Periods []bool
	// Along are the dimensions along which they exchange, from 0; nil: all. MPI_Cart_sub makes a communicator of each line.
	Along []int
}

// mostDims bounds the dimensions of a grid, and mostGrid its ranks.
const (
	mostDims = 4
	mostGrid = 1 << 16
)

// neighbors are those of the finding, by the ways of its messages.
func (d *detector) neighbors(f *Finding) *Neighbors {
	place := map[int32]int{}
	for i, rank := range d.order(f) {
		place[rank] = i
	}
	graph := make([]map[int]bool, len(f.Ranks))
	for i := range graph {
		graph[i] = map[int]bool{}
	}
	for _, i := range f.instances {
		for _, m := range i.messages {
			src, dst := place[d.messages[m].src], place[d.messages[m].dst]
			graph[src][dst], graph[dst][src] = true, true
		}
	}
	return neighborsOf(graph)
}

// neighborsOf are the neighbours in a graph of places: for each those that it exchanges with.
func neighborsOf(graph []map[int]bool) *Neighbors {
	x := &Neighbors{Least: len(graph)}
	for _, of := range graph {
		x.Least, x.Most = min(x.Least, len(of)), max(x.Most, len(of))
	}
	x.grid(graph)
	return x
}

// order are a finding's ranks in the order of its communicator.
func (d *detector) order(f *Finding) []int32 {
	for k := range d.run.Comms {
		if c := &d.run.Comms[k]; c.ID == f.Comm && len(c.Members) == len(f.Ranks) {
			return c.Members
		}
	}
	return f.Ranks
}

// grid looks for the grid of which the graph is: with the least dimensions, and along all of them if there is one.
func (x *Neighbors) grid(graph []map[int]bool) {
	n := len(graph)
	if x.Most > 2*mostDims || n > mostGrid {
		return
	}
	for count := 1; count <= mostDims; count++ {
		for _, dims := range factors(n, count) {
			for periods := range 1 << count {
				for along := 1<<count - 1; along > 0; along-- {
					if !fits(graph, dims, periods, along) {
						continue
					}
					x.Dims = dims
					for k := range dims {
						x.Periods = append(x.Periods, periods>>k&1 != 0)
						if along != 1<<count-1 && along>>k&1 != 0 {
							x.Along = append(x.Along, k)
						}
					}
					return
				}
			}
		}
	}
}

// factors are the products of so many numbers from 2 on that make n.
func factors(n, count int) (out [][]int) {
	if count == 1 {
		if n < 2 {
			return nil
		}
		return [][]int{{n}}
	}
	for first := 2; first <= n/2; first++ {
		if n%first != 0 {
			continue
		}
		for _, rest := range factors(n/first, count-1) {
			out = append(out, append([]int{first}, rest...))
		}
	}
	return out
}

// fits says whether the ranks of a grid, the last dimension's next to each other, have just their neighbours along some dimensions. A dimension of
// two is the same with and without a period; it is taken for one without.
func fits(graph []map[int]bool, dims []int, periods, along int) bool {
	for k, size := range dims {
		if size == 2 && periods>>k&1 != 0 {
			return false
		}
	}
	var have []int
	for rank, of := range graph {
		have = have[:0]
		for k, stride := len(dims)-1, 1; k >= 0; k-- {
			size := dims[k]
			at := rank / stride % size
			if along>>k&1 != 0 {
				for _, to := range [2]int{at - 1, at + 1} {
					if periods>>k&1 != 0 {
						to = (to + size) % size
					}
					if to >= 0 && to < size {
						have = append(have, rank+(to-at)*stride)
					}
				}
			}
			stride *= size
		}
		slices.Sort(have)
		have = slices.Compact(have)
		if len(have) != len(of) || slices.ContainsFunc(have, func(q int) bool { return !of[q] }) {
			return false
		}
	}
	return true
}
