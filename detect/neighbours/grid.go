package neighbours

import (
	"slices"
)

// Neighbors describes the graph of an exchange between neighbours.
type Neighbors struct {
	// Least and Most are the smallest and the largest number of neighbours of a rank.
	Least, Most int
	// Graphs has a hash of each of the different graphs that instances exchange on; nil on a grid. Least and Most are
	// of each one.
	Graphs map[uint64]bool
	// Dims and Periods are the arguments of MPI_Cart_create that, with the ranks in the communicator's order, give
	// each rank the neighbours that it exchanges with. They are nil if no grid does.
	Dims    []int
	Periods []bool
	// Along lists the dimensions along which ranks exchange, counted from 0; nil means all. MPI_Cart_sub makes a
	// communicator of each line.
	Along []int
}

// Limits of the search for a grid: its dimensions and its ranks.
const (
	maxDims      = 4
	maxGridRanks = 1 << 16
)

// NeighborsOf describes a graph, which has for each rank, in the communicator's order, the set of ranks that it
// exchanges with.
func NeighborsOf(graph []map[int]bool) *Neighbors {
	x := &Neighbors{Least: len(graph)}
	for _, of := range graph {
		x.Least, x.Most = min(x.Least, len(of)), max(x.Most, len(of))
	}
	x.grid(graph)
	return x
}

// grid searches for a grid with these edges. It prefers few dimensions, and exchanges along all of them.
func (x *Neighbors) grid(graph []map[int]bool) {
	n := len(graph)
	if x.Most > 2*maxDims || n > maxGridRanks {
		return
	}
	for count := 1; count <= maxDims; count++ {
		for _, dims := range factors(n, count) {
			for periods := range 1 << count {
				for along := 1<<count - 1; along > 0; along-- {
					if !isGrid(graph, dims, periods, along) {
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

// factors returns all ways to write n as a product of count factors, each at least 2.
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

// isGrid reports whether the graph is that of a row-major grid, restricted to some of its dimensions. periods and
// along have a bit for each dimension. A dimension of two is the same with and without a period; it counts as one
// without.
func isGrid(graph []map[int]bool, dims []int, periods, along int) bool {
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
