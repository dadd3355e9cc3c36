package pattern

import (
	"fmt"
	"slices"
	"strings"
)

// Algorithm is the operation on the bits of ranks in a dynamic pattern.
type Algorithm string

// The algorithms of EC1.
const (
	Exchange    Algorithm = "exchange"    // the destination is the source with some bits inverted
	Permutation Algorithm = "permutation" // the destination is the source with its bits in another order
)

// EC1 is the paper's communication structure of a dynamic pattern: an algorithm and the bits involved. The slot has the
// numbers of phase and communication.
type EC1 struct {
	// Algorithm is exchange, where the destination is the source with some bits inverted, or permutation, where its
	// bits are in another order.
	Algorithm Algorithm `json:"algorithm"`
	// Bits of an exchange are those that are inverted, ascending from 0 for the lowest. A permutation has one for
	// each bit of a rank: bit j of the destination is bit Bits[j] of the source.
	Bits []int32 `json:"bits"`
}

func (e EC1) String() string { return fmt.Sprintf("{%s, %s}", e.Algorithm, list(e.Bits)) }

// Dst returns the destination of a rank.
func (e EC1) Dst(rank int32) int32 {
	if e.Algorithm == Exchange {
		for _, b := range e.Bits {
			rank ^= 1 << b
		}
		return rank
	}
	return permuted(e.Bits, rank)
}

func permuted(order []int32, rank int32) int32 {
	d := int32(0)
	for j, b := range order {
		d |= rank >> b & 1 << j
	}
	return d
}

// EC2 is the paper's communication structure of a static pattern: the displacements in the order of the ranks at which
// they begin.
type EC2 struct {
	// Displacements are the blocks of sources with the same displacement.
	Displacements []Displacement `json:"displacements"`
}

// Displacement is a difference between destination and source, and the ranks that have it: Length consecutive ranks
// from Start on, repeated.
type Displacement struct {
	// By is the destination minus the source, as ranks.
	By int32 `json:"by"`
	// Start is the first source.
	Start int32 `json:"start"`
	// Length is the number of consecutive sources.
	Length int32 `json:"length"`
	// Repeats are the repetitions, innermost first: {3, +4} means three times, 4 ranks apart.
	Repeats []Repeat `json:"repeats,omitempty"`
}

// Repeat is a number of repetitions and their distance in ranks.
type Repeat struct {
	// Times is how often the block is there.
	Times int32 `json:"times"`
	// Stride is the distance from one to the next, in ranks.
	Stride int32 `json:"stride"`
}

// String formats displacements as in table 1 of the paper, [+1{+3,+4}], [-3{+1,+4}]: displacement, length, stride. A
// displacement begins where the one before ended, unless its start follows an @. Inner repetitions have a number,
// xTIMES.
func (e EC2) String() string {
	parts := make([]string, len(e.Displacements))
	at := int32(0)
	for i, d := range e.Displacements {
		start := ""
		if d.Start != at {
			start = fmt.Sprintf("@%d", d.Start)
		}
		at = d.Start + d.Length
		var strides strings.Builder
		for j, r := range d.Repeats {
			fmt.Fprintf(&strides, ",%+d", r.Stride)
			if len(d.Repeats) > 1 && j < len(d.Repeats)-1 {
				fmt.Fprintf(&strides, "x%d", r.Times)
			}
		}
		parts[i] = fmt.Sprintf("[%+d%s{%+d%s}]", d.By, start, d.Length, strides.String())
	}
	return strings.Join(parts, ", ")
}

// sources calls f with each rank of a displacement.
func (d Displacement) sources(f func(rank int32)) {
	starts := []int32{d.Start}
	for _, r := range d.Repeats {
		var next []int32
		for k := range r.Times {
			for _, s := range starts {
				next = append(next, s+k*r.Stride)
			}
		}
		starts = next
	}
	for _, s := range starts {
		for k := range d.Length {
			f(s + k)
		}
	}
}

// Mapping returns the destinations at a process count.
func (e EC2) Mapping(ranks int32) Mapping {
	m := Mapping{Ranks: ranks, Dst: make([]int32, ranks)}
	for r := range m.Dst {
		m.Dst[r] = None
	}
	for _, d := range e.Displacements {
		d.sources(func(r int32) { m.Dst[r] = r + d.By })
	}
	return m
}

// LocalEquation is the equation of one slot at one process count (eq_processes.phase in the paper): EC1 for a dynamic
// pattern, else EC2.
type LocalEquation struct {
	Ranks     int32 `json:"ranks"`
	Dynamic   bool  `json:"dynamic"`
	Dependent bool  `json:"dependent"`
	EC1       *EC1  `json:"ec1,omitempty"`
	EC2       *EC2  `json:"ec2,omitempty"`
}

func (e LocalEquation) String() string {
	dependence := "no-dependent"
	if e.Dependent {
		dependence = "dependent"
	}
	if e.Dynamic {
		return fmt.Sprintf("%4d  %s  dynamic, %s", e.Ranks, e.EC1, dependence)
	}
	return fmt.Sprintf("%4d  %s  static, %s", e.Ranks, e.EC2, dependence)
}

// LocalEquations returns the slot's equations by process count, ascending. The pattern is dynamic when each run is an
// exchange, or each a permutation, of rank bits by all ranks; on two ranks a shift is an exchange too, so that one
// run alone does not tell.
func (s Slot) LocalEquations() []LocalEquation {
	runs := slices.Clone(s.Runs)
	slices.SortStableFunc(runs, func(a, b Mapping) int { return int(a.Ranks) - int(b.Ranks) })
	runs = slices.CompactFunc(runs, func(a, b Mapping) bool { return a.Ranks == b.Ranks })
	ec1 := commonEC1(runs)
	out := make([]LocalEquation, 0, len(runs))
	for i, m := range runs {
		e := LocalEquation{Ranks: m.Ranks, Dependent: m.Dependent()}
		if ec1 != nil {
			e.Dynamic, e.EC1 = true, &ec1[i]
		} else {
			e2 := m.EC2()
			e.EC2 = &e2
		}
		out = append(out, e)
	}
	return out
}

// commonEC1 returns the dynamic structure of each run when all have one of the same algorithm, else nil.
func commonEC1(runs []Mapping) []EC1 {
	for _, find := range []func(Mapping) (EC1, bool){Mapping.exchange, Mapping.permutation} {
		var out []EC1
		for _, m := range runs {
			e, ok := find(m)
			if !ok {
				break
			}
			out = append(out, e)
		}
		if len(out) == len(runs) && len(out) > 0 {
			return out
		}
	}
	return nil
}

// exchange returns the bits that every rank's destination has inverted.
func (m Mapping) exchange() (EC1, bool) {
	mask := m.Dst[0]
	if mask <= 0 {
		return EC1{}, false
	}
	for r, d := range m.Dst {
		if d != int32(r)^mask {
			return EC1{}, false
		}
	}
	e := EC1{Algorithm: Exchange}
	for b := range int32(31) {
		if mask>>b&1 == 1 {
			e.Bits = append(e.Bits, b)
		}
	}
	return e, true
}

// permutation returns the order of bits that gives every rank's destination.
func (m Mapping) permutation() (EC1, bool) {
	if !powerOfTwo(m.Ranks) {
		return EC1{}, false
	}
	n := log2(m.Ranks)
	e := EC1{Algorithm: Permutation, Bits: make([]int32, n)}
	for b := range n {
		d := m.Dst[1<<b]
		if d <= 0 || !powerOfTwo(d) {
			return EC1{}, false
		}
		e.Bits[log2(d)] = b
	}
	for r, d := range m.Dst {
		if d != e.Dst(int32(r)) {
			return EC1{}, false
		}
	}
	return e, true
}

// block is a run of consecutive ranks with one displacement.
type block struct{ by, start, length int32 }

// EC2 returns the structure of the mapping, whatever its pattern: the blocks of equal displacement, those of one
// displacement and length joined where their starts repeat.
func (m Mapping) EC2() EC2 {
	var blocks []block
	for r, d := range m.Dst {
		if d == None {
			continue
		}
		by := d - int32(r)
		if k := len(blocks) - 1; k >= 0 && blocks[k].by == by && blocks[k].start+blocks[k].length == int32(r) {
			blocks[k].length++
			continue
		}
		blocks = append(blocks, block{by: by, start: int32(r), length: 1})
	}
	type class struct{ by, length int32 }
	starts := map[class][]int32{}
	for _, b := range blocks {
		starts[class{b.by, b.length}] = append(starts[class{b.by, b.length}], b.start)
	}
	var e EC2
	for c, at := range starts {
		for _, p := range progressions(at) {
			d := Displacement{By: c.by, Start: p.start, Length: c.length, Repeats: p.repeats}
			if len(d.Repeats) == 0 {
				d.Repeats = []Repeat{{Times: 1, Stride: m.Ranks}}
			}
			e.Displacements = append(e.Displacements, d)
		}
	}
	slices.SortFunc(e.Displacements, func(a, b Displacement) int { return int(a.Start) - int(b.Start) })
	return e
}

// progression is a set of ranks: a start and repeats, innermost first.
type progression struct {
	start   int32
	repeats []Repeat
}

// progressions writes ascending starts as few nested arithmetic progressions.
func progressions(starts []int32) []progression {
	ps := make([]progression, len(starts))
	for i, s := range starts {
		ps[i].start = s
	}
	for {
		joined := joinRuns(ps)
		if len(joined) == len(ps) {
			return ps
		}
		ps = joined
	}
}

// joinRuns joins consecutive progressions with equal repeats and equally spaced starts. Every group must have as many
// members as the first, so that the outer level can join the groups; the rest is not joined.
func joinRuns(ps []progression) []progression {
	var out []progression
	for i := 0; i < len(ps); {
		j := i + 1
		for j < len(ps) && sameRepeats(ps[i], ps[j]) && ps[j].start-ps[j-1].start == ps[i+1].start-ps[i].start {
			j++
		}
		if j-i < 2 {
			out = append(out, ps[i])
			i++
			continue
		}
		p := progression{start: ps[i].start, repeats: slices.Clone(ps[i].repeats)}
		p.repeats = append(p.repeats, Repeat{Times: int32(j - i), Stride: ps[i+1].start - ps[i].start})
		out = append(out, p)
		i = j
	}
	return out
}

func sameRepeats(a, b progression) bool { return slices.Equal(a.repeats, b.repeats) }

// list formats numbers as [0 2 1].
func list(v []int32) string { return fmt.Sprint(v) }
