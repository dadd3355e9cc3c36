package synth

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// patterns are the codes by name. Each returns a program for this number of ranks with at least this number of
// messages.
var patterns = map[string]func(ranks int, messages int64) (*Program, error){
	"shift":  shift,
	"halo":   halo,
	"cg":     cg,
	"sp":     sp,
	"lu":     lu,
	"mg":     mg,
	"pencil": pencil,
}

// Patterns lists the names of the codes that New knows.
func Patterns() []string { return slices.Sorted(maps.Keys(patterns)) }

// New returns the program of a code for a number of ranks, with at least this number of messages and the fewest turns
// for that.
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

// turns returns the number of repetitions, of each messages, that reach the total.
func turns(messages, each int64) int64 { return max(1, (messages+each-1)/each) }

// dims divides ranks into n dimensions, as evenly as MPI_Dims_create: no dimension is shorter than the next.
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

// shifted returns the rank step places further along an axis, periodically.
func (c cart) shifted(rank, axis, step int) int {
	at := c.coords(rank)
	at[axis] += step
	return c.rank(at)
}

func (c cart) text() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(c)), " ", ","), "[]")
}

func world() Comm { return Comm{Name: "MPI_COMM_WORLD", Kind: schema.CommWorld, Parent: None} }

// sites returns n call sites of functions with numbered names.
func sites(n int, name string) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = name
	}
	return s
}

// begin and end add the calls that programs make first and last.
func (p *Program) begin(init Timing, more func(do *calls)) int {
	p.Timings = append(p.Timings, init)
	at := len(p.Timings) - 1
	p.section(1, func(_ int, do *calls) {
		do.add(schema.CallInit, 0, at)
		if more != nil {
			more(do)
		}
	})
	return at
}

func (p *Program) end(timing int) {
	p.section(1, func(_ int, do *calls) { do.add(schema.CallFinalize, 1, timing) })
}

// start is the timing of MPI_Init and MPI_Finalize.
var start = Timing{Quantiles{1, 30000}, Quantiles{50_000_000, 80_000_000}}

// network is that within one host.
var network = Network{LatencyNs: 600, BytesPerUs: 5000}

// shift is testdata/programs/shift.c: Jacobi's iteration on a periodic grid, 24^3 cells a rank. Each step shifts six
// faces with MPI_Sendrecv; every tenth (with half a million ranks or more, every few) has an MPI_Allreduce. Nearly
// all of the calls' time is waiting, for other ranks and for a core.
func shift(ranks int, messages int64) (*Program, error) {
	const face = 8 * 24 * 24
	steps := max(1, min(10, (1<<20)/ranks)) // a turn must fit into memory
	grid := cart(dims(ranks, 3))
	p := &Program{Name: "shift", Ranks: ranks, BufferBytes: face + 16, HeadBits: 45, Sites: sites(8, "main"),
		Timings: shiftTimings, OwnShare: 0.13, Network: network,
		Comms: []Comm{world(), {Kind: schema.CommCart, Parent: 0, Dims: grid.text(), Periods: "1,1,1"}}}
	p.section(1, func(_ int, do *calls) {
		do.add(schema.CallInit, 0, 0)
		do.collective(schema.CallCartCreate, 0, 1, 1)
		do.rooted(schema.CallBcast, 1, 2, 2, 4, 1)
	})
	p.section(turns(messages, int64(ranks*6*steps)), func(rank int, do *calls) {
		for range steps {
			for axis := range 3 {
				minus, plus := grid.shifted(rank, axis, -1), grid.shifted(rank, axis, 1)
				do.sendrecv(1, 3, 3+axis, side{plus, 2 * axis, face, 0}, side{minus, 2 * axis, face, 1})
				do.sendrecv(1, 4, 6+axis, side{minus, 2*axis + 1, face, 0}, side{plus, 2*axis + 1, face, 1})
			}
		}
		do.allreduce(1, 5, 9, 8)
	})
	p.section(1, func(_ int, do *calls) {
		do.add(schema.CallCommFree, 6, 10).Comm = 1
		do.add(schema.CallFinalize, 7, 11)
	})
	return p, nil
}

// halo returns a stencil with 26 neighbours on a periodic grid, nonblocking: MPI_Irecv from all, MPI_Isend to all,
// MPI_Waitall; every second step has two MPI_Allreduce, as solvers have for dot products. The times are invented.
func halo(ranks int, messages int64) (*Program, error) {
	const n, steps = 32, 2
	grid := cart(dims(ranks, 3))
	p := &Program{Name: "halo", Ranks: ranks, BufferBytes: 8*n*n + 16, HeadBits: 50, Sites: sites(6, "exchange"),
		OwnShare: 1, Network: network, Comms: []Comm{world()},
		Timings: []Timing{{Quantiles{60, 150, 400}, Quantiles{90, 200, 900}},
			{Quantiles{80_000, 90_000, 120_000}, Quantiles{300, 900, 9000}}}}
	finish := p.begin(start, nil)
	p.section(turns(messages, int64(ranks)*26*steps), func(rank int, do *calls) {
		for range steps {
			first, timing := do.here(), 1
			way := func(to func(way, peer, bytes int)) {
				for w := range 27 {
					d := [3]int{w/9 - 1, w/3%3 - 1, w%3 - 1}
					if d == [3]int{} {
						continue
					}
					at, bytes := grid.coords(rank), 8
					for i, x := range d {
						at[i] += x
						if x == 0 {
							bytes *= n
						}
					}
					to(w, grid.rank(at), bytes)
				}
			}
			way(func(w, peer, bytes int) {
				do.recv(schema.CallIrecv, 0, 2, timing, side{peer, 26 - w, bytes, w})
				timing = 0
			})
			way(func(w, peer, bytes int) { do.send(schema.CallIsend, 0, 3, 0, side{peer, w, bytes, 30 + w}) })
			do.wait(schema.CallWaitall, 4, 1, first)
		}
		do.allreduce(0, 5, 1, 8)
		do.allreduce(0, 5, 1, 8)
	})
	p.end(finish)
	return p, nil
}

// cg is CG of the NAS Parallel Benchmarks, class A. Each iteration sums along rows of ranks by recursive halving,
// exchanges with the transposed rank, and computes two dot products along the rows; an outer iteration has 25 of
// them. The number of ranks must be a power of two.
func cg(ranks int, messages int64) (*Program, error) {
	columns, rows, steps := 1, 1, 0
	for columns*rows < ranks {
		if columns == rows {
			columns *= 2
			steps++
		} else {
			rows *= 2
		}
	}
	if columns*rows != ranks {
		return nil, fmt.Errorf("pattern cg: %d ranks; want a power of two", ranks)
	}
	bytes := 8 * ((14000 + columns - 1) / columns)
	p := &Program{Name: "cg", Ranks: ranks, BufferBytes: int64(bytes) + 64, HeadBits: 64,
		Sites: sites(35, "conj_grad"), Timings: cgTimings, OwnShare: 1, Network: network, Comms: []Comm{world()}}
	p.section(1, func(_ int, do *calls) {
		do.add(schema.CallInit, 24, 24)
		do.rooted(schema.CallBcast, 0, 25, 25, 4, 1)
	})
	peers := func(rank int) (row []int, transposed int) {
		for div := columns; div > 1; div /= 2 {
			c := rank % columns
			row = append(row, rank/columns*columns+(c+div/2)%div+c/div*div)
		}
		if rows == columns {
			return row, rank%rows*rows + rank/rows
		}
		return row, 2*(rank/2%rows*rows+rank/2/rows) + rank%2
	}
	p.section(turns(messages, int64(ranks)*int64(26*(2*steps+1)+25*steps+2*steps)), func(rank int, do *calls) {
		row, transposed := peers(rank)
		swap := func(site, peer, tag, back, bytes, buf int) {
			k := do.recv(schema.CallIrecv, 0, site, site, side{peer, back, bytes, buf})
			do.send(schema.CallSend, 0, site+1, site+1, side{peer, tag, bytes, buf + 1})
			do.wait(schema.CallWait, site+2, site+2, k)
		}
		scalar := func(site, bytes int) {
			for i, peer := range row {
				swap(site, peer, i+1, i+1, bytes, stackBuf)
			}
		}
		vector := func(site, across int) {
			for i, peer := range slices.Backward(row) {
				swap(site, peer, i+1, i+1, bytes, 0)
			}
			swap(across, transposed, 1, 1, bytes, 2)
		}
		scalar(0, 8)
		for range 25 {
			vector(3, 6)
			scalar(9, 8)
			scalar(12, 8)
		}
		vector(15, 21)
		scalar(18, 8)
		scalar(30, 16)
	})
	p.section(1, func(_ int, do *calls) {
		do.rooted(schema.CallReduce, 0, 33, 33, 8, 0)
		do.add(schema.CallFinalize, 34, 34)
	})
	return p, nil
}

// sp is SP of the NAS Parallel Benchmarks, class W. Each step exchanges the faces of all cells with six neighbours,
// and has, in each direction, a pipeline through the cells of the multi-partition, forth and back. The number of
// ranks must be a square.
func sp(ranks int, messages int64) (*Program, error) {
	q := 1
	for q*q < ranks {
		q++
	}
	if q*q != ranks || q < 2 {
		return nil, fmt.Errorf("pattern sp: %d ranks; want a square, 4 or more", ranks)
	}
	cells := 36 / min(q, 18)
	face, forth, back := 8*5*q*cells*cells*2, 8*22*(cells-1)*(cells-1), 8*10*(cells-1)*(cells-1)
	p := &Program{Name: "sp", Ranks: ranks, BufferBytes: int64(face), HeadBits: 53, Sites: sites(45, "adi"),
		Timings: spTimings, OwnShare: 1, Network: network,
		Comms: []Comm{world(), {Kind: schema.CommDup, Parent: 0}, {Kind: schema.CommDup, Parent: 1}}}
	p.section(1, func(_ int, do *calls) {
		do.add(schema.CallInit, 41, 41)
		do.collective(schema.CallCommDup, 0, 43, 43)
		do.collective(schema.CallCommDup, 1, 44, 44)
		do.rooted(schema.CallBcast, 0, 0, 0, 4, 1)
	})
	p.section(turns(messages, int64(ranks)*int64(6+6*(q-1))), func(rank int, do *calls) {
		i, j := rank%q, rank/q
		at := func(i, j int) int { return (i+q)%q + (j+q)%q*q }
		next := [3]int{at(i+1, j), at(i, j+1), at(i-1, j-1)}
		last := [3]int{at(i-1, j), at(i, j-1), at(i+1, j+1)}
		first := do.here()
		for axis := range 3 {
			do.recv(schema.CallIrecv, 2, 8+2*axis, 8+2*axis, side{next[axis], 3 + 2*axis, face, 10 + 2*axis})
			do.recv(schema.CallIrecv, 2, 9+2*axis, 9+2*axis, side{last[axis], 2 + 2*axis, face, 11 + 2*axis})
		}
		for axis := range 3 {
			do.send(schema.CallIsend, 2, 14+2*axis, 14+2*axis, side{next[axis], 2 + 2*axis, face, 2 * axis})
			do.send(schema.CallIsend, 2, 15+2*axis, 15+2*axis, side{last[axis], 3 + 2*axis, face, 2*axis + 1})
		}
		do.wait(schema.CallWaitall, 20, 20, first)
		for axis := range 3 {
			pipeline := func(to, from [3]int, bytes, send, recv, wait int) {
				for range q - 1 {
					k := do.here()
					do.send(schema.CallIsend, 1, send, send, side{to[axis], 0, bytes, 0})
					do.recv(schema.CallIrecv, 1, recv, recv, side{from[axis], 0, bytes, 1})
					do.wait(schema.CallWaitall, wait, wait, k)
				}
			}
			pipeline(next, last, forth, 26+6*axis, 21+6*axis, 22+6*axis)
			pipeline(last, next, back, 25+6*axis, 23+6*axis, 24+6*axis)
		}
	})
	p.section(1, func(_ int, do *calls) {
		do.allreduce(0, 39, 39, 40)
		do.rooted(schema.CallReduce, 0, 7, 7, 8, 0)
		do.add(schema.CallFinalize, 5, 5)
	})
	return p, nil
}

// lu is LU of the NAS Parallel Benchmarks, class S: wavefronts through a grid of ranks, plane by plane, to one corner
// and back, then the faces of all cells. Ranks at the edges have fewer neighbours and so make fewer calls.
func lu(ranks int, messages int64) (*Program, error) {
	d := dims(ranks, 2)
	wide, high := d[1], d[0]
	const planes, edge, face = 10, 8 * 5 * 5, 8 * 10 * 72
	p := &Program{Name: "lu", Ranks: ranks, BufferBytes: face, HeadBits: 52, Sites: sites(len(luTimings), "ssor"),
		Timings: luTimings, OwnShare: 1, Network: network, Comms: []Comm{world()}}
	p.section(1, func(_ int, do *calls) {
		do.add(schema.CallInit, 1, 1)
		do.rooted(schema.CallBcast, 0, 2, 2, 4, 1)
	})
	each := int64(2*planes+2) * int64((wide-1)*high+wide*(high-1))
	p.section(turns(messages, max(1, each)), func(rank int, do *calls) {
		x, y := rank%wide, rank/wide
		for range planes {
			if x > 0 {
				do.recv(schema.CallRecv, 0, 18, 18, side{rank - 1, 2, edge, 0})
			}
			if y > 0 {
				do.recv(schema.CallRecv, 0, 19, 19, side{rank - wide, 4, edge, 1})
			}
			if x < wide-1 {
				do.send(schema.CallSend, 0, 20, 20, side{rank + 1, 2, edge, 2})
			}
			if y < high-1 {
				do.send(schema.CallSend, 0, 21, 21, side{rank + wide, 4, edge, 3})
			}
		}
		for range planes {
			if x < wide-1 {
				do.recv(schema.CallRecv, 0, 18, 18, side{rank + 1, 1, edge, 0})
			}
			if y < high-1 {
				do.recv(schema.CallRecv, 0, 19, 19, side{rank + wide, 3, edge, 1})
			}
			if x > 0 {
				do.send(schema.CallSend, 0, 20, 20, side{rank - 1, 1, edge, 2})
			}
			if y > 0 {
				do.send(schema.CallSend, 0, 21, 21, side{rank - wide, 3, edge, 3})
			}
		}
		faces := func(to, tag int, there bool, send, recv, wait int) {
			if !there {
				return
			}
			back := tag - 1 + tag%2*2
			do.send(schema.CallSend, 0, send, send, side{to, tag, face, 4})
			k := do.recv(schema.CallIrecv, 0, recv, recv, side{to, back, face, 5})
			do.wait(schema.CallWait, wait, wait, k)
		}
		faces(rank+1, 2, x < wide-1, 22, 23, 28)
		faces(rank-1, 1, x > 0, 22, 23, 28)
		faces(rank+wide, 4, y < high-1, 24, 31, 33)
		faces(rank-wide, 3, y > 0, 24, 31, 33)
	})
	p.section(1, func(_ int, do *calls) {
		do.allreduce(0, 13, 13, 40)
		do.add(schema.CallFinalize, 0, 1)
	})
	return p, nil
}

// mg is MG of the NAS Parallel Benchmarks: V cycles on a periodic grid of ranks. Each level, down and up, exchanges
// faces along one axis after the other in both directions; coarse levels send less. (In the benchmark some ranks skip
// the coarsest levels; here all take part.)
func mg(ranks int, messages int64) (*Program, error) {
	grid := cart(dims(ranks, 3))
	levels := []int{32, 16, 8, 4, 2, 4, 8, 16, 32}
	p := &Program{Name: "mg", Ranks: ranks, BufferBytes: 40000, HeadBits: 50, Sites: sites(len(mgTimings), "comm3"),
		Timings: mgTimings, OwnShare: 1, Network: network, Comms: []Comm{world()}}
	p.section(1, func(_ int, do *calls) {
		do.add(schema.CallInit, 18, 18)
		do.rooted(schema.CallBcast, 0, 22, 22, 4, 1)
	})
	p.section(turns(messages, int64(ranks)*int64(6*len(levels))), func(rank int, do *calls) {
		for _, n := range levels {
			for axis := range 3 {
				minus, plus, bytes := grid.shifted(rank, axis, -1), grid.shifted(rank, axis, 1), 8*n*(n+2*min(axis, 1))
				a := do.recv(schema.CallIrecv, 0, 5, 5, side{minus, 1000*(axis+1) + 100, bytes, 0})
				b := do.recv(schema.CallIrecv, 0, 5, 5, side{plus, 1000*(axis+1) + 300, bytes, 1})
				do.send(schema.CallSend, 0, 7+axis, 7+axis, side{minus, 1000*(axis+1) + 300, bytes, 2})
				do.send(schema.CallSend, 0, 7+axis, 7+axis, side{plus, 1000*(axis+1) + 100, bytes, 3})
				do.wait(schema.CallWait, 6, 6, a)
				do.wait(schema.CallWait, 6, 6, b)
			}
		}
		do.allreduce(0, 0, 0, 8)
		do.allreduce(0, 1, 1, 8)
	})
	p.section(1, func(_ int, do *calls) { do.add(schema.CallFinalize, 20, 20) })
	return p, nil
}

// pencil returns a Fourier transform on a grid of ranks: MPI_Alltoall along rows, then along columns, and a checksum.
// In every step each rank also sends its boundary along the row with MPI_Sendrecv. The times are invented.
func pencil(ranks int, messages int64) (*Program, error) {
	d := cart(dims(ranks, 2))
	p := &Program{Name: "pencil", Ranks: ranks, BufferBytes: 1 << 20, HeadBits: 52, Sites: sites(7, "fft"),
		OwnShare: 1, Network: network, Comms: []Comm{world()},
		Timings: []Timing{{Quantiles{300_000, 400_000, 700_000}, Quantiles{2000, 9000, 60_000}},
			{Quantiles{200, 900, 4000}, Quantiles{400, 900, 9000}}}}
	lines := [2][]int32{make([]int32, ranks), make([]int32, ranks)}
	for axis := range 2 {
		byLine := map[int]int32{}
		for rank := range ranks {
			line := d.coords(rank)[1-axis]
			id, ok := byLine[line]
			if !ok {
				id = int32(len(p.Comms))
				byLine[line] = id
				p.Comms = append(p.Comms, Comm{Kind: schema.CommSplit, Parent: 0})
			}
			p.Comms[id].Members = append(p.Comms[id].Members, int32(rank))
			lines[axis][rank] = id
		}
	}
	finish := p.begin(start, func(do *calls) {
		do.collective(schema.CallCommSplit, 0, 2, 1)
		do.collective(schema.CallCommSplit, 0, 2, 1)
	})
	p.section(turns(messages, int64(ranks)), func(rank int, do *calls) {
		for axis := range 2 {
			o := do.collective(schema.CallAlltoall, int(lines[axis][rank]), 3+axis, 0)
			o.SendBytes = int32(4096 * len(p.Comms[lines[axis][rank]].Members))
			o.RecvBytes, o.SendBuf, o.RecvBuf = o.SendBytes, 0, 1
		}
		do.sendrecv(0, 5, 1, side{d.shifted(rank, 1, 1), 5, 4096, 2}, side{d.shifted(rank, 1, -1), 5, 4096, 3})
		do.allreduce(0, 6, 1, 16)
	})
	p.end(finish)
	return p, nil
}
