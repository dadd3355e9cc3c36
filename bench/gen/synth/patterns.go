package synth

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// patterns are the codes by name. Each makes a program of so many ranks with at least so many messages.
var patterns = map[string]func(ranks int, messages int64) (*Program, error){
	"shift": shift,
}

// Patterns are the names of the codes that New knows.
func Patterns() []string { return slices.Sorted(maps.Keys(patterns)) }

// New returns the program of a code on so many ranks, with at least so many messages and no more turns than that takes.
func New(name string, ranks int, messages int64) (*Program, error) {
	make := patterns[name]
	if make == nil {
		return nil, fmt.Errorf("no pattern %q; there are %s", name, strings.Join(Patterns(), ", "))
	}
	if ranks < 1 || messages < 1 {
		return nil, fmt.Errorf("pattern %s: %d ranks and %d messages; want at least one of each", name, ranks, messages)
	}
	return make(ranks, messages)
}

// turns is how often something with so many messages is done to have all.
func turns(messages, each int64) int64 { return max(1, (messages+each-1)/each) }

// dims deals ranks to n dimensions, as evenly as MPI_Dims_create: no dimension is shorter than the next.
func dims(ranks, n int) []int {
	d := make([]int, n)
	for i := range d {
		d[i] = 1
	}
	var factors []int
	for f := 2; ranks > 1; {
		if ranks%f == 0 {
			factors = append(factors, f)
			ranks /= f
		} else {
			f++
		}
	}
	for _, f := range slices.Backward(factors) {
		*minOf(d) *= f
	}
	slices.SortFunc(d, func(a, b int) int { return b - a })
	return d
}

func minOf(d []int) *int {
	least := &d[0]
	for i := range d {
		if d[i] < *least {
			least = &d[i]
		}
	}
	return least
}

// cart is a Cartesian grid of ranks; the last dimension changes fastest, as in MPI_Cart_create.
type cart []int

func (c cart) coords(rank int) []int {
	at := make([]int, len(c))
	for i := len(c) - 1; i >= 0; i-- {
		at[i] = rank % c[i]
		rank /= c[i]
	}
	return at
}

func (c cart) rank(at []int) int {
	r := 0
	for i := range c {
		r = r*c[i] + (at[i]+c[i])%c[i]
	}
	return r
}

// shifted is the rank step places further along an axis, around the end.
func (c cart) shifted(rank, axis, step int) int {
	at := c.coords(rank)
	at[axis] += step
	return c.rank(at)
}

func (c cart) text() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(c)), " ", ","), "[]")
}

func world() Comm { return Comm{Name: "MPI_COMM_WORLD", Kind: schema.CommWorld, Parent: None} }

// constant is a time that does not vary.
func constant(ns int32) Quantiles { return Quantiles{ns, ns} }

// shift is testdata/programs/shift.c: Jacobi's iteration on a periodic grid, 24^3 cells a rank; each step shifts six faces with MPI_Sendrecv, every tenth
// has an MPI_Allreduce. Its times are those of a capture of that program on 8 ranks and two cores, which are ten and more apart: bench/gen.md.
func shift(ranks int, messages int64) (*Program, error) {
	const face, steps = 8 * 24 * 24, 10
	grid := cart(dims(ranks, 3))
	periods := strings.TrimSuffix(strings.Repeat("1,", 3), ",")
	p := &Program{Name: "shift", Ranks: ranks, BufferBytes: face + 16,
		Comms: []Comm{world(), {Kind: schema.CommCart, Parent: 0, Dims: grid.text(), Periods: periods}},
		Sites: []string{"main", "main", "main", "main", "main", "main", "main", "main"},
		Gaps: []Quantiles{constant(1), constant(30000), // a quantile every tenth
			{1617, 10721, 27892, 31941, 39866, 47205, 49003, 51981, 55948, 63076, 110000}, // after relaxing
			{1337, 1810, 2506, 2917, 3480, 4190, 5100, 5972, 7084, 10839, 40000},
			{1500, 2200, 2713, 3110, 3570, 4102, 4585, 5142, 6146, 9087, 40000},
			{1278, 1756, 1916, 2367, 2720, 2913, 3074, 3276, 3683, 5657, 30000},
			{1300, 1826, 1962, 2385, 2771, 2953, 3108, 3276, 3542, 4525, 40000},
			{1250, 1593, 1873, 2272, 2561, 2758, 2927, 3111, 3363, 3961, 30000},
			{20054, 27216, 29482, 35016, 44148, 47235, 48794, 51923, 56041, 63266, 110000}},
		Noise: Noise{CallNs: Quantiles{1500, 3000, 6000, 20000, 90000}, Preempted: 0.03, PreemptedNs: 3e6, LatencyNs: 600, BytesPerUs: 5000},
	}
	p.section(1, func(_ int, do *calls) {
		do.add(schema.CallInit, 0, 0)
		do.collective(schema.CallCartCreate, 0, 1, 1)
		do.rooted(schema.CallBcast, 1, 2, 1, 4, 1)
	})
	p.section(turns(messages, int64(ranks)*6*steps), func(rank int, do *calls) {
		for range steps {
			for axis := range 3 {
				minus, plus := grid.shifted(rank, axis, -1), grid.shifted(rank, axis, 1)
				do.sendrecv(1, 3, 2+2*axis, side{plus, 2 * axis, face, 0}, side{minus, 2 * axis, face, 1})
				do.sendrecv(1, 4, 3+2*axis, side{minus, 2*axis + 1, face, 0}, side{plus, 2*axis + 1, face, 1})
			}
		}
		do.allreduce(1, 5, 8, 8)
	})
	p.section(1, func(_ int, do *calls) {
		do.add(schema.CallCommFree, 6, 1).Comm = 1
		do.add(schema.CallFinalize, 7, 1)
	})
	return p, nil
}
