package combine

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/commq/commq/detect/crc"
	weight "github.com/commq/commq/detect/evidence"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// elementKind is the type of elements, as precisely as checks on sums and first bytes of payloads need it.
type elementKind struct {
	class kindClass
	bytes int
	index int // for the pairs of MPI_MAXLOC: the size in bytes of the index behind the value; 0: not a pair
}

type kindClass uint8

const (
	opaque kindClass = iota // unknown
	signed
	unsigned
	float
	complexFloat // only sums are defined
)

// elementKinds maps names of numeric MPI datatypes to their kinds.
var elementKinds = map[string]elementKind{
	"MPI_2INT": pairOf(signed, 4, 4), "MPI_2INTEGER": pairOf(signed, 4, 4), "MPI_SHORT_INT": pairOf(signed, 2, 4),
	"MPI_LONG_INT":  pairOf(signed, 8, 4),
	"MPI_FLOAT_INT": pairOf(float, 4, 4), "MPI_DOUBLE_INT": pairOf(float, 8, 4),
	"MPI_2REAL": pairOf(float, 4, 4), "MPI_2DOUBLE_PRECISION": pairOf(float, 8, 8),
	"MPI_INT": {signed, 4, 0}, "MPI_INTEGER": {signed, 4, 0}, "MPI_INTEGER4": {signed, 4, 0},
	"MPI_INT32_T": {signed, 4, 0},
	"MPI_SHORT":   {signed, 2, 0}, "MPI_INTEGER2": {signed, 2, 0}, "MPI_INT16_T": {signed, 2, 0},
	"MPI_SIGNED_CHAR": {signed, 1, 0}, "MPI_INTEGER1": {signed, 1, 0}, "MPI_INT8_T": {signed, 1, 0},
	"MPI_LONG": {signed, 8, 0}, "MPI_LONG_LONG": {signed, 8, 0}, "MPI_LONG_LONG_INT": {signed, 8, 0},
	"MPI_INTEGER8": {signed, 8, 0}, "MPI_INT64_T": {signed, 8, 0},
	"MPI_AINT": {signed, 8, 0}, "MPI_OFFSET": {signed, 8, 0}, "MPI_COUNT": {signed, 8, 0},
	"MPI_UNSIGNED": {unsigned, 4, 0}, "MPI_UINT32_T": {unsigned, 4, 0}, "MPI_UNSIGNED_SHORT": {unsigned, 2, 0},
	"MPI_UINT16_T":      {unsigned, 2, 0},
	"MPI_UNSIGNED_CHAR": {unsigned, 1, 0}, "MPI_UINT8_T": {unsigned, 1, 0},
	"MPI_UNSIGNED_LONG": {unsigned, 8, 0}, "MPI_UNSIGNED_LONG_LONG": {unsigned, 8, 0}, "MPI_UINT64_T": {unsigned, 8, 0},
	"MPI_DOUBLE": {float, 8, 0}, "MPI_DOUBLE_PRECISION": {float, 8, 0}, "MPI_REAL8": {float, 8, 0},
	"MPI_FLOAT": {float, 4, 0}, "MPI_REAL": {float, 4, 0}, "MPI_REAL4": {float, 4, 0},
	"MPI_DOUBLE_COMPLEX": {complexFloat, 8, 0}, "MPI_C_DOUBLE_COMPLEX": {complexFloat, 8, 0},
	"MPI_CXX_DOUBLE_COMPLEX": {complexFloat, 8, 0}, "MPI_COMPLEX16": {complexFloat, 8, 0},
	"MPI_COMPLEX": {complexFloat, 4, 0}, "MPI_C_COMPLEX": {complexFloat, 4, 0},
	"MPI_C_FLOAT_COMPLEX": {complexFloat, 4, 0}, "MPI_CXX_FLOAT_COMPLEX": {complexFloat, 4, 0},
	"MPI_COMPLEX8": {complexFloat, 4, 0},
}

func pairOf(class kindClass, value, index int) elementKind { return elementKind{class, value, index} }

// kindsByDatatype returns the kinds of datatypes by id. MPI_LONG and similar types have 4 bytes on some machines. A
// derived datatype is assumed to consist of doubles unless its payloads have sums: no operation fits anything else
// that it may contain.
func kindsByDatatype(types []Datatype) map[int32]elementKind {
	out := map[int32]elementKind{}
	for _, t := range types {
		k := elementKinds[t.Name]
		if value := int(t.Bytes) - k.index; value > 0 && value < k.bytes && k.class != complexFloat {
			k.bytes = value
		}
		if !t.Named {
			k = elementKind{class: complexFloat, bytes: 8}
		}
		out[t.ID] = k
	}
	return out
}

// reduction is an operation that combines elements, such as MPI_SUM.
type reduction uint8

const (
	opSum reduction = iota
	opMax
	opMin
	opProd
	opBand
	opBor
	opBxor
	opMaxloc
	opMinloc
	reductionCount
)

var reductionNames = [reductionCount]string{"MPI_SUM", "MPI_MAX", "MPI_MIN", "MPI_PROD", "MPI_BAND", "MPI_BOR",
	"MPI_BXOR", "MPI_MAXLOC", "MPI_MINLOC"}

// selects reports whether the result is one of the operands, or made of parts of them.
func (r reduction) selects() bool {
	switch r {
	case opMax, opMin, opBand, opBor, opMaxloc, opMinloc:
		return true
	}
	return false
}

// reductions is a set of reductions, a bit for each.
type reductions uint16

const allReductions reductions = 1<<reductionCount - 1

// evidence summarizes the comparisons of results with their operands.
type evidence struct {
	ops    reductions // those that agree with all comparisons
	seen   int64
	broken bool // a payload that should only be forwarded had changed
	// The number of comparisons that support the operation: it could have had another result.
	telling [reductionCount]int64
	told    [reductionCount]weight.Comparisons
	wins    [reductionCount][2]int64
	// extent is the part of the payloads that these comparisons covered, the smallest of them.
	extent [reductionCount]ledger.Extent
}

func newEvidence() evidence { return evidence{ops: allReductions} }

// add merges other evidence into e.
func (e *evidence) add(f *evidence) {
	e.ops &= f.ops
	e.seen += f.seen
	for k := range e.telling {
		e.telling[k] += f.telling[k]
		e.told[k].Add(&f.told[k])
		e.wins[k][0] += f.wins[k][0]
		e.wins[k][1] += f.wins[k][1]
		e.extent[k] = max(e.extent[k], f.extent[k])
	}
}

// isStrong reports whether one of the operations is proved, not merely possible.
func (e *evidence) isStrong(ops reductions) bool {
	for op := range reductionCount {
		if ops>>op&1 != 0 && e.isShown(op) {
			return true
		}
	}
	return false
}

// isShown reports whether the comparisons prove the operation: a result was a new value or, for operations that
// select an operand, sometimes the rank's own and sometimes the received one.
func (e *evidence) isShown(op reduction) bool {
	if op.selects() {
		return e.telling[op] >= 4 && e.wins[op][0] > 0 && e.wins[op][1] > 0
	}
	return e.telling[op] > 0
}

// names returns the MPI names of the proved operations.
func (e *evidence) names() (out []string) {
	for op := range reductionCount {
		if e.ops>>op&1 != 0 && e.isShown(op) {
			out = append(out, reductionNames[op])
		}
	}
	return out
}

// checker compares payloads with the results of operations on others.
type checker struct {
	kinds map[int32]elementKind // by datatype
	crc   *crc.Arithmetic
}

// compare records which operations produce the result from the parts.
func (c *checker) compare(e *evidence, result *ledger.Operand, parts []*ledger.Operand) {
	if len(parts) == 1 {
		e.seen++
		if result.Hash != parts[0].Hash {
			e.broken, e.ops = true, 0
		}
		return
	}
	k := c.kinds[result.Datatype]
	if result.Sum != schema.NullInt64 && k.class == complexFloat {
		k = elementKind{class: signed}
	}
	seen := false
	fronts := c.prefixes(result, parts)
	for op := range reductionCount {
		agrees, can := c.check(op, k, result, parts, fronts)
		if !can {
			continue
		}
		seen = true
		if !agrees {
			e.ops &^= 1 << op
			continue
		}
		c.count(e, op, k, result, parts)
		e.extent[op] = max(e.extent[op], extentOf(op, k, result))
	}
	if seen {
		e.seen++
	}
}

// count records how much an agreeing comparison supports the operation. What cannot disagree tells nothing: a maximum
// of equal values, or a sum that equals one of its parts.
func (c *checker) count(e *evidence, op reduction, k elementKind, result *ledger.Operand, parts []*ledger.Operand) {
	value := compared(op, result)
	if op.selects() {
		chosen := false
		for _, p := range parts {
			if lost := compared(op, p); lost != value {
				chosen = true
				e.told[op].AddChoice(value, lost)
			}
		}
		if chosen {
			e.countWins(op, result, parts)
		}
		return
	}
	first := digits(k, result)
	if value != result.Head && value != 0 { // all elements were compared, of which the first may be zero
		first = max(first, 1)
	}
	if first > 0 && !slices.ContainsFunc(parts, func(p *ledger.Operand) bool { return compared(op, p) == value }) {
		e.telling[op]++
		e.told[op].AddResult(value, weight.ValueBits(first))
	}
}

// countWins records whether the result is a rank's own payload, or a received one.
func (e *evidence) countWins(op reduction, result *ledger.Operand, parts []*ledger.Operand) {
	e.telling[op]++
	if result.Hash != parts[0].Hash {
		e.wins[op][1]++
	}
	if !slices.ContainsFunc(parts[1:], func(p *ledger.Operand) bool { return p.Hash == result.Hash }) {
		e.wins[op][0]++
	}
}

// compared returns what a comparison looks at: sums of all elements, the exclusive or of all bytes, or the first bytes.
func compared(op reduction, m *ledger.Operand) int64 {
	switch {
	case op == opBxor:
		return m.Hash
	case op == opSum && m.Sum != schema.NullInt64:
		return m.Sum
	}
	return m.Head
}

// extentOf returns how much of payloads a comparison looks at.
func extentOf(op reduction, k elementKind, m *ledger.Operand) ledger.Extent {
	isFloat := k.class == float || k.class == complexFloat
	switch {
	case op == opBxor, op == opSum && m.Sum != schema.NullInt64, k.index > 0 && m.Bytes <= int64(k.bytes+k.index):
		return ledger.AllElements
	case k.index == 0 && (isFloat && m.Bytes <= int64(k.bytes) || !isFloat && m.Bytes <= 8):
		return ledger.AllElements
	case isFloat && k.index == 0 && !op.selects():
		return ledger.FirstElement
	}
	return ledger.FirstBytes
}

// leastExtent returns the part of the payloads that the comparisons of the proved operations covered.
func (e *evidence) leastExtent() (least ledger.Extent) {
	for op := range reductionCount {
		if e.ops>>op&1 != 0 && e.isShown(op) {
			least = max(least, e.extent[op])
		}
	}
	return least
}

// digits returns the number of significant bits of the first element of a payload.
func digits(k elementKind, m *ledger.Operand) int {
	switch {
	case k.bytes == 4 && (k.class == float || k.class == complexFloat):
		if uint32(m.Head) == 0 {
			return 0
		}
		return 1 + 23 - min(23, bits.TrailingZeros32(uint32(m.Head)))
	case k.class == float || k.class == complexFloat:
		if m.Head == 0 {
			return 0
		}
		return 1 + 52 - min(52, bits.TrailingZeros64(uint64(m.Head)))
	case 0 < k.bytes && k.bytes < 8:
		value := m.Head << (64 - 8*k.bytes) >> (64 - 8*k.bytes)
		return bits.Len64(uint64(max(value, -value)))
	}
	return bits.Len64(uint64(max(m.Head, -m.Head)))
}

// mostBits returns the bits of the proved operation that has most.
func (e *evidence) mostBits() (most float64) {
	for op := range reductionCount {
		if e.ops>>op&1 != 0 && e.isShown(op) {
			most = max(most, e.told[op].Bits())
		}
	}
	return most
}

// check reports whether the operation produces the result from the parts, and whether this can be decided at all.
// fronts are the known first bytes of the result and the parts.
func (c *checker) check(op reduction, k elementKind, result *ledger.Operand, parts []*ledger.Operand, fronts []prefix) (agrees, can bool) {
	for _, p := range parts {
		if p.Bytes != result.Bytes {
			return false, true
		}
	}
	switch {
	case op == opMaxloc || op == opMinloc:
		return isLocated(op, k, result, parts, fronts)
	case k.index > 0:
		return false, true
	case op == opBxor:
		if k.class == float || k.class == complexFloat {
			return false, true
		}
		return c.isXor(result, parts), true
	case k.class == opaque:
		return false, false
	case op == opSum && result.Sum != schema.NullInt64:
		return isSum(k, result, parts), true
	case k.bytes == 0:
		return false, false
	case k.class == complexFloat && op != opSum:
		return false, true
	case k.class == float || k.class == complexFloat:
		return isFloatResult(op, k, fronts)
	}
	return isIntegerResult(op, k, fronts), true
}

// isSum reports whether the linear hashes add up, in as many bits as an element has.
func isSum(k elementKind, result *ledger.Operand, parts []*ledger.Operand) bool {
	left := uint64(result.Sum)
	for _, p := range parts {
		if p.Sum == schema.NullInt64 {
			return false
		}
		left -= uint64(p.Sum)
	}
	bits := 8 * k.bytes
	if bits == 0 {
		bits = 32
	}
	return left<<(64-bits) == 0
}

// isXor reports whether the result's hash is that of the exclusive or of the parts.
func (c *checker) isXor(result *ledger.Operand, parts []*ledger.Operand) bool {
	left := uint64(result.Hash)
	for _, p := range parts {
		left ^= uint64(p.Hash)
	}
	if len(parts)%2 == 0 {
		left ^= c.crc.Repeated(0, result.Bytes)
	}
	return left == 0
}

// prefix is the known first bytes of a payload: 8 bytes, or all of a payload that exceeds them by no more than the
// width of its hash.
type prefix struct {
	bytes [16]byte
	n     int
}

// prefixes returns the known first bytes of a result and its parts, in this order.
func (c *checker) prefixes(result *ledger.Operand, parts []*ledger.Operand) []prefix {
	out := make([]prefix, 0, len(parts)+1)
	for _, m := range append([]*ledger.Operand{result}, parts...) {
		w := prefix{n: int(min(8, m.Bytes))}
		binary.LittleEndian.PutUint64(w.bytes[:], uint64(m.Head))
		if more := m.Bytes - 8; more > 0 && more <= int64(c.crc.Width/8) {
			if rest, ok := c.crc.Tail(m.Head, int(more), uint64(m.Hash)); ok {
				binary.LittleEndian.PutUint64(w.bytes[8:], rest)
				w.n = int(m.Bytes)
			}
		}
		out = append(out, w)
	}
	return out
}

// knownBytes returns how many first bytes are known of every payload.
func knownBytes(fronts []prefix) int {
	n := fronts[0].n
	for i := range fronts {
		n = min(n, fronts[i].n)
	}
	return n
}

// isIntegerResult reports whether the operation produces the first integers of the result.
func isIntegerResult(op reduction, k elementKind, fronts []prefix) bool {
	for lane := range knownBytes(fronts) / k.bytes {
		x := fronts[1].integer(k, lane*k.bytes)
		for i := range fronts[2:] {
			y := fronts[2+i].integer(k, lane*k.bytes)
			switch op {
			case opSum:
				x += y
			case opProd:
				x *= y
			case opBand:
				x &= y
			case opBor:
				x |= y
			case opMax, opMin:
				if k.less(x, y) == (op == opMax) {
					x = y
				}
			}
		}
		if shift := 64 - 8*k.bytes; x<<shift != fronts[0].integer(k, lane*k.bytes)<<shift {
			return false
		}
	}
	return true
}

func (k elementKind) less(x, y int64) bool {
	if k.class == unsigned {
		return uint64(x) < uint64(y)
	}
	return x < y
}

// integer returns the element at this byte offset.
func (w *prefix) integer(k elementKind, at int) int64 {
	x := uint64(0)
	for i := range k.bytes {
		x |= uint64(w.bytes[at+i]) << (8 * i)
	}
	shift := 64 - 8*k.bytes
	if k.class == signed {
		return int64(x<<shift) >> shift
	}
	return int64(x)
}

// isFloatResult reports whether the operation produces the first floating-point numbers of the result; sums and
// products must agree within the rounding errors.
func isFloatResult(op reduction, k elementKind, fronts []prefix) (agrees, can bool) {
	epsilon := 0x1p-53
	if k.bytes == 4 {
		epsilon = 0x1p-24
	}
	for lane := range knownBytes(fronts) / k.bytes {
		want, size := fronts[1].float(k, lane*k.bytes), 0.0
		size = math.Abs(want)
		for i := range fronts[2:] {
			y := fronts[2+i].float(k, lane*k.bytes)
			switch op {
			case opSum:
				want += y
				size += math.Abs(y)
			case opProd:
				want *= y
				size = math.Abs(want)
			case opMax:
				want = max(want, y)
			case opMin:
				want = min(want, y)
			default:
				return false, true
			}
		}
		got := fronts[0].float(k, lane*k.bytes)
		if math.IsNaN(want) || math.IsInf(want, 0) {
			return false, false
		}
		bound := 0.0
		if op == opSum || op == opProd {
			bound = 2 * float64(len(fronts)-1) * epsilon * size
		}
		if !(math.Abs(got-want) <= bound) {
			return false, true
		}
	}
	return true, true
}

// float returns the element at this byte offset.
func (w *prefix) float(k elementKind, at int) float64 {
	if k.bytes == 8 {
		return math.Float64frombits(binary.LittleEndian.Uint64(w.bytes[at:]))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(w.bytes[at:])))
}

// isLocated reports whether the result is the pair with the largest (or smallest) value, and of equal ones the one
// with the lowest index. Two numbers of one type are also a pair.
func isLocated(op reduction, k elementKind, result *ledger.Operand, parts []*ledger.Operand, fronts []prefix) (agrees, can bool) {
	if k.index == 0 {
		if k.bytes == 0 || k.class == opaque || k.class == complexFloat || result.Bytes != int64(2*k.bytes) {
			return false, true
		}
		k.index = k.bytes
	}
	stride := k.bytes + k.index
	if result.Bytes%int64(stride) != 0 {
		return false, true
	}
	seen := knownBytes(fronts)
	if seen < k.bytes {
		return false, false
	}
	order := func(a, b *prefix, at int) int { // negative if a is selected
		d := 0
		if k.class == float {
			d = cmp.Compare(a.float(k, at), b.float(k, at))
		} else if x, y := a.integer(k, at), b.integer(k, at); x != y {
			d = 1
			if k.less(x, y) {
				d = -1
			}
		}
		if op == opMaxloc {
			d = -d
		}
		if d != 0 || at+stride > seen {
			return d
		}
		// A non-negative floating-point number is ordered like its bits.
		index := elementKind{class: signed, bytes: k.index}
		return cmp.Compare(a.integer(index, at+k.bytes), b.integer(index, at+k.bytes))
	}
	for at := 0; at+k.bytes <= seen; at += stride {
		best := 1
		for i := 2; i < len(fronts); i++ {
			if order(&fronts[i], &fronts[best], at) < 0 {
				best = i
			}
		}
		if order(&fronts[0], &fronts[best], at) != 0 {
			return false, true
		}
	}
	if result.Bytes == int64(stride) { // a single pair must equal one of the parts completely
		return slices.ContainsFunc(parts, func(p *ledger.Operand) bool { return p.Hash == result.Hash }), true
	}
	return true, true
}

// maxPermuted is the largest number of blocks that are tried in every order.
const maxPermuted = 5

// permute visits all permutations of a list from place k on until visit returns true.
func permute(list []*ledger.Operand, k int, visit func() bool) bool {
	if k >= len(list)-1 {
		return visit()
	}
	for i := k; i < len(list); i++ {
		list[k], list[i] = list[i], list[k]
		if permute(list, k+1, visit) {
			return true
		}
		list[k], list[i] = list[i], list[k]
	}
	return false
}

// isConcatenation reports whether the whole consists of the blocks in some order.
func (c *checker) isConcatenation(whole *ledger.Operand, blocks []*ledger.Operand) bool {
	if len(blocks) > maxPermuted {
		byAddress := slices.Clone(blocks)
		slices.SortStableFunc(byAddress, func(a, b *ledger.Operand) int {
			if a.DstBuffer < b.DstBuffer {
				return -1
			}
			return 1
		})
		return c.isConcatenationInOrder(whole, byAddress) || c.isConcatenationInOrder(whole, blocks)
	}
	found := false
	permute(blocks, 0, func() bool {
		found = c.isConcatenationInOrder(whole, blocks)
		return found
	})
	return found
}

func (c *checker) isConcatenationInOrder(whole *ledger.Operand, blocks []*ledger.Operand) bool {
	h := uint64(0) // the hash of an empty payload
	for _, b := range blocks {
		h = c.crc.Join(h, uint64(b.Hash), b.Bytes)
	}
	if c.crc.Width == 32 {
		return uint32(h) == uint32(whole.Hash)
	}
	return h == uint64(whole.Hash)
}
