package template

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Outside is the pseudo symbol before a rank's first event and after its last.
const Outside = -1

// Edge means that one symbol follows another. Level tells whether the second is at the same level of a recursion (0),
// a deeper one (1), or one less deep (-1).
type Edge struct {
	From, To int32
	Level    int8
}

// Flow counts how often each edge is taken, by one rank or by all ranks of a class.
type Flow map[Edge]int64

// class is a set of ranks whose flows have the same edges: they take the same ways through the program.
type class struct {
	edges     Flow           // all edges
	remaining Flow           // edges that have not been cut as the way back to the head of a loop
	symbols   map[int32]bool // of the edges
}

// classes groups flows by their edges, the class with most symbols first.
func classes(flows []Flow) []*class {
	byEdges := map[string]*class{}
	var all []*class
	var keys []string
	for _, f := range flows {
		key := f.key()
		c := byEdges[key]
		if c == nil {
			c = &class{edges: Flow{}, remaining: Flow{}, symbols: map[int32]bool{}}
			byEdges[key] = c
			all, keys = append(all, c), append(keys, key)
		}
		for e, n := range f {
			c.edges[e] += n
			c.remaining[e] += n
			for _, s := range [2]int32{e.From, e.To} {
				if s != Outside {
					c.symbols[s] = true
				}
			}
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(len(all[b].symbols), len(all[a].symbols)), cmp.Compare(keys[a], keys[b]))
	})
	sorted := make([]*class, len(all))
	for i, k := range order {
		sorted[i] = all[k]
	}
	return sorted
}

// key returns a string that is equal for flows with equal edges.
func (f Flow) key() string {
	edges := make([]Edge, 0, len(f))
	for e := range f {
		edges = append(edges, e)
	}
	slices.SortFunc(edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Level, b.Level))
	})
	var key []byte
	for _, e := range edges {
		key = binary.AppendVarint(binary.AppendVarint(key, int64(e.From)), int64(e.To))
		key = append(key, byte(e.Level))
	}
	return string(key)
}

// successors returns the symbols of a region that follow each of its symbols.
func (c *class) successors(region map[int32]bool) map[int32][]int32 {
	next := map[int32][]int32{}
	for e := range c.remaining {
		if region[e.From] && region[e.To] {
			next[e.From] = append(next[e.From], e.To)
		}
	}
	return next
}

// components returns the strongly connected components of a graph (Tarjan's algorithm), each sorted.
func components(region []int32, next map[int32][]int32) [][]int32 {
	t := tarjan{next: next, index: map[int32]int{}, low: map[int32]int{}, onStack: map[int32]bool{}}
	for _, s := range region {
		if t.index[s] == 0 {
			t.visit(s)
		}
	}
	return t.components
}

type tarjan struct {
	next       map[int32][]int32
	index      map[int32]int // 0: not visited
	low        map[int32]int
	onStack    map[int32]bool
	stack      []int32
	components [][]int32
}

func (t *tarjan) visit(s int32) {
	t.index[s] = len(t.index) + 1
	t.low[s] = t.index[s]
	t.stack, t.onStack[s] = append(t.stack, s), true
	for _, to := range t.next[s] {
		if t.index[to] == 0 {
			t.visit(to)
			t.low[s] = min(t.low[s], t.low[to])
		} else if t.onStack[to] {
			t.low[s] = min(t.low[s], t.index[to])
		}
	}
	if t.low[s] != t.index[s] {
		return
	}
	bottom := slices.Index(t.stack, s)
	component := slices.Clone(t.stack[bottom:])
	for _, x := range component {
		t.onStack[x] = false
	}
	t.stack = t.stack[:bottom]
	slices.Sort(component)
	t.components = append(t.components, component)
}
