package models

import (
	"maps"
	"math"
	"math/big"
	"math/bits"
	"strings"

	"github.com/commq/commq/schema"
)

// Factor is the number of messages in a phase of a collective with P ranks (Table 1).
type Factor uint8

// The factors: never, once, P times and Nsteps times (equation 4).
const (
	None Factor = iota
	CT
	LIN
	LOG
)

var factorNames = [...]string{"0", "CT", "LIN", "LOG"}

func (f Factor) String() string { return factorNames[f] }

// Size is the message size of a phase (Table 2), computed from the sizes s and r that the root sends and receives: the
// larger, the smaller, (s+r)/2, twice the larger, or s+r. Without a root it is the largest or smallest of all ranks, or
// the mean of s+r over the ranks. CURRENT, which Dimemas has in addition to the paper, is s in a fan-in and r in a
// fan-out.
type Size uint8

// The sizes.
const (
	MAX Size = iota
	MIN
	MEAN
	TwoMAX
	SumSR
	CURRENT
)

var sizeNames = [...]string{"MAX", "MIN", "MEAN", "2MAX", "S+R", "CURRENT"}

func (s Size) String() string { return sizeNames[s] }

// Phases describes the cost of a collective operation: a fan-in, then a fan-out (equations 2 and 3). Each sends FanIn
// or FanOut times a message of SizeIn or SizeOut.
type Phases struct {
	FanIn   Factor
	SizeIn  Size
	FanOut  Factor
	SizeOut Size
}

// String describes the cost in words, such as "log2(P) messages of twice the largest size, then P messages of the
// largest size".
func (p Phases) String() string {
	var phases []string
	for _, phase := range []struct {
		times Factor
		size  Size
	}{{p.FanIn, p.SizeIn}, {p.FanOut, p.SizeOut}} {
		if phase.times != None {
			phases = append(phases, factorWords[phase.times]+" of "+sizeWords[phase.size])
		}
	}
	if len(phases) == 0 {
		return "no message"
	}
	return strings.Join(phases, ", then ")
}

var (
	factorWords = [...]string{"", "one message", "P messages", "log2(P) messages"}
	sizeWords   = [...]string{"the largest size", "the smallest size", "the mean size", "twice the largest size",
		"what is sent and received together", "what is sent or received"}
)

// neighbours are the phases of neighbourhood collectives: one message to each neighbour, all at the same time.
var neighbours = Phases{None, MAX, CT, MAX}

// table3 is Table 3 of the paper, followed by the operations that are not in it. It is only read.
var table3 = map[schema.CallID]Phases{
	schema.CallBarrier:       {LIN, MAX, LIN, MAX},
	schema.CallBcast:         {LOG, MAX, None, MAX},
	schema.CallGather:        {LOG, MEAN, None, MAX},
	schema.CallGatherv:       {LOG, MEAN, None, MAX},
	schema.CallScatter:       {None, MAX, LOG, MEAN},
	schema.CallScatterv:      {None, MAX, LOG, MEAN},
	schema.CallAllgather:     {LOG, MEAN, LOG, MEAN},
	schema.CallAllgatherv:    {LOG, MEAN, LOG, MEAN},
	schema.CallAlltoall:      {LOG, MEAN, LOG, MAX},
	schema.CallAlltoallv:     {LOG, MEAN, LOG, MAX},
	schema.CallReduce:        {LOG, TwoMAX, None, MAX},
	schema.CallAllreduce:     {LOG, TwoMAX, LOG, MAX},
	schema.CallReduceScatter: {LOG, TwoMAX, LOG, MIN},
	schema.CallScan:          {LOG, MAX, LOG, MAX},

	schema.CallReduceScatterBlock: {LOG, TwoMAX, LOG, MIN},
	schema.CallAlltoallw:          {LOG, MEAN, LOG, MAX},
	schema.CallExscan:             {LOG, MAX, LOG, MAX},
	schema.CallNeighborAllgather:  neighbours,
	schema.CallNeighborAllgatherv: neighbours,
	schema.CallNeighborAlltoall:   neighbours,
	schema.CallNeighborAlltoallv:  neighbours,
	schema.CallNeighborAlltoallw:  neighbours,
}

// inTable3 are the operations in Table 3 of the paper.
var inTable3 = map[schema.CallID]bool{
	schema.CallBarrier: true, schema.CallBcast: true, schema.CallGather: true, schema.CallGatherv: true,
	schema.CallScatter:  true,
	schema.CallScatterv: true, schema.CallAllgather: true, schema.CallAllgatherv: true, schema.CallAlltoall: true,
	schema.CallAlltoallv: true, schema.CallReduce: true, schema.CallAllreduce: true, schema.CallReduceScatter: true,
	schema.CallScan: true,
}

// SetCollective sets the phases of an operation, given by its blocking form, and declares it.
func (m *Machine) SetCollective(operation schema.CallID, p Phases) {
	if m.Declared == nil {
		m.Declared = map[schema.CallID]bool{}
	}
	m.Collectives[operation], m.Declared[operation] = p, true
	if _, ok := m.NCCL.Algorithms[operation]; ok {
		m.NCCL.Algorithms = maps.Clone(m.NCCL.Algorithms) // copies of the machine share the map
		delete(m.NCCL.Algorithms, operation)
	}
}

// Fallback reports whether an operation, given by its blocking form, is in neither Table 3 of the paper nor the
// machine's description, nor done by NCCL, so that another operation's phases are used.
func (m *Machine) Fallback(operation schema.CallID) bool {
	_, byNCCL := m.NCCL.Algorithms[operation]
	return !inTable3[operation] && !m.Declared[operation] && !byNCCL
}

// Sizes accumulates the bytes that ranks send and receive in one instance of a collective: of the root only if there
// is one, else of all ranks. In the zero value all sizes are 0.
type Sizes struct {
	ranks          uint64
	max, min       uint64
	sent, received uint64 // the largest of each
	hi, lo         uint64 // the sum of sent and received
}

// Add adds a rank. Negative and null sizes count as 0.
func (z *Sizes) Add(sent, received int64) {
	s, r := uint64(max(sent, 0)), uint64(max(received, 0))
	if z.ranks == 0 {
		z.min = min(s, r)
	}
	z.ranks++
	z.max = max(z.max, s, r)
	z.sent, z.received = max(z.sent, s), max(z.received, r)
	z.min = min(z.min, s, r)
	var carry uint64
	z.lo, carry = bits.Add64(z.lo, s+r, 0)
	z.hi += carry
}

// Ranks returns the number of ranks that were added.
func (z *Sizes) Ranks() int { return int(z.ranks) }

// Largest returns the largest size that a rank sends or receives.
func (z *Sizes) Largest() int64 { return int64(min(z.max, math.MaxInt64)) }

// resolved replaces CURRENT, which is the size moved, by MAX.
func (z *Sizes) resolved(s Size, moved uint64) (Size, Sizes) {
	if s != CURRENT {
		return s, *z
	}
	return MAX, Sizes{ranks: z.ranks, max: moved}
}

// scaled returns a size in units of 1/(2 ranks) bytes, in which it is a whole number.
func (z *Sizes) scaled(s Size) *big.Int {
	n := new(big.Int)
	switch s {
	case MAX, TwoMAX:
		n.SetUint64(z.max)
	case MIN:
		n.SetUint64(z.min)
	default:
		n.SetUint64(z.hi).Lsh(n, 64)
		n.Add(n, new(big.Int).SetUint64(z.lo))
	}
	if s == MAX || s == MIN || s == TwoMAX {
		n.Mul(n, new(big.Int).SetUint64(2*z.ranks))
	}
	if s == TwoMAX || s == SumSR {
		n.Lsh(n, 1)
	}
	return n
}

// small returns a size scaled within the limits of quick, which are below 2^55.
func (z *Sizes) small(s Size) uint64 {
	switch s {
	case MAX:
		return 2 * z.ranks * z.max
	case MIN:
		return 2 * z.ranks * z.min
	case MEAN:
		return z.lo
	case TwoMAX:
		return 4 * z.ranks * z.max
	}
	return 2 * z.lo
}

// Collective returns how long a collective operation with these phases takes (equations 2 and 3): (L + SIZE_IN/B) x
// factor + (L + SIZE_OUT/B) x factor, rounded once.
func (i *Interconnect) Collective(p Phases, ranks int, z *Sizes) Picoseconds {
	in, out := i.factor(p.FanIn, ranks), i.factor(p.FanOut, ranks)
	if i.Pieces[0].AboveBytes != 0 {
		return i.phase(in, p.SizeIn, z, z.sent).plus(i.phase(out, p.SizeOut, z, z.received))
	}
	if t, ok := i.quick(p, uint64(in), uint64(out), z); ok {
		return t
	}
	t := big.NewInt(in + out)
	t.Mul(t, big.NewInt(int64(i.Latency)))
	per := new(big.Int).SetUint64(2 * max(z.ranks, 1))
	if i.BytesPerSecond != 0 {
		per.Mul(per, big.NewInt(i.BytesPerSecond))
	}
	t.Mul(t, per)
	if i.BytesPerSecond != 0 {
		sizeIn, zIn := z.resolved(p.SizeIn, z.sent)
		sizeOut, zOut := z.resolved(p.SizeOut, z.received)
		bytes, rest := zIn.scaled(sizeIn), zOut.scaled(sizeOut)
		bytes.Mul(bytes, big.NewInt(in))
		bytes.Add(bytes, rest.Mul(rest, big.NewInt(out)))
		bytes.Mul(bytes, big.NewInt(max(i.BytesPer, 1)))
		t.Add(t, bytes.Mul(bytes, big.NewInt(perSecond)))
	}
	return rounded(t, per)
}

// phase returns (L + SIZE/B) x factor where B is not the same for all sizes: SIZE is rounded to a whole byte, and its
// time to a whole picosecond before it is multiplied.
func (i *Interconnect) phase(factor int64, s Size, z *Sizes, moved uint64) Picoseconds {
	if factor == 0 {
		return 0
	}
	var bytes int64
	if z.ranks > 0 {
		size, of := z.resolved(s, moved)
		bytes = int64(rounded(of.scaled(size), new(big.Int).SetUint64(2*z.ranks)))
	}
	t := big.NewInt(int64(i.Latency.plus(i.Transfer(bytes))))
	return rounded(t.Mul(t, big.NewInt(factor)), big.NewInt(1))
}

// quick computes what Collective does in 128 bits, without allocation. It returns false when these may not suffice.
func (i *Interconnect) quick(p Phases, in, out uint64, z *Sizes) (Picoseconds, bool) {
	const fits = 1 << 31
	latency := uint64(i.Latency)
	if i.BytesPer > 1 || p.SizeIn == CURRENT || p.SizeOut == CURRENT {
		return 0, false
	}
	if latency >= fits<<10 || in >= fits>>10 || out >= fits>>10 || z.max >= fits || z.ranks >= fits>>10 ||
		uint64(i.BytesPerSecond) >= fits<<10 {
		return 0, false // otherwise all values that are not checked below fit into 64 bits
	}
	fixed := latency * (in + out)
	if i.BytesPerSecond == 0 || z.ranks == 0 {
		return Picoseconds(fixed), true
	}
	inHi, inLo := bits.Mul64(z.small(p.SizeIn), in)
	outHi, outLo := bits.Mul64(z.small(p.SizeOut), out)
	bytes, carry := bits.Add64(inLo, outLo, 0)
	if inHi+outHi+carry != 0 {
		return 0, false
	}
	den := 2 * z.ranks * uint64(i.BytesPerSecond)
	hi, lo := bits.Mul64(bytes, perSecond)
	lo, carry = bits.Add64(lo, den/2, 0) // den is even
	hi += carry
	if hi >= den {
		return 0, false
	}
	q, _ := bits.Div64(hi, lo, den)
	sum, carry := bits.Add64(fixed, q, 0)
	if carry != 0 || sum > uint64(Forever) {
		return Forever, true
	}
	return Picoseconds(sum), true
}

// factor returns MODEL_IN_FACTOR or MODEL_OUT_FACTOR for a number of ranks (Table 1).
func (i *Interconnect) factor(f Factor, ranks int) int64 {
	switch f {
	case CT:
		return 1
	case LIN:
		return int64(ranks)
	case LOG:
		return i.steps(ranks)
	}
	return 0
}

// steps returns Nsteps (equation 4): a binomial tree over P ranks has ceil(log2 P) phases. In phase p the C ranks whose
// number is 2^p - 1 modulo 2^(p+1), except the last rank, communicate at the same time, which takes ceil(C/B) steps
// over B buses.
func (i *Interconnect) steps(ranks int) int64 {
	phases := bits.Len(uint(max(ranks-1, 0)))
	if i.Buses == 0 {
		return int64(phases)
	}
	var n int64
	for p := range phases {
		half := int64(1) << p
		c := (int64(ranks) - 1 + half) / (2 * half)
		n += (c + int64(i.Buses) - 1) / int64(i.Buses)
	}
	return n
}
