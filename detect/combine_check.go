package detect

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// kind is what elements are, as far as sums and first bytes of payloads tell about operations on them.
type kind struct {
	class kindClass
	bytes int
	index int // of pairs for MPI_MAXLOC: the bytes of the integer, or number, behind the value; 0: no pairs
}

type kindClass uint8

const (
	opaque kindClass = iota // nothing is known
	signed
	unsigned
	float
	complexFloat // sums only
)

// kindNames are the named datatypes with numbers.
var kindNames = map[string]kind{
	"MPI_2INT": pairOf(signed, 4, 4), "MPI_2INTEGER": pairOf(signed, 4, 4), "MPI_SHORT_INT": pairOf(signed, 2, 4), "MPI_LONG_INT": pairOf(signed, 8, 4),
	"MPI_FLOAT_INT": pairOf(float, 4, 4), "MPI_DOUBLE_INT": pairOf(float, 8, 4),
	"MPI_2REAL": pairOf(float, 4, 4), "MPI_2DOUBLE_PRECISION": pairOf(float, 8, 8),
	"MPI_INT": {signed, 4, 0}, "MPI_INTEGER": {signed, 4, 0}, "MPI_INTEGER4": {signed, 4, 0}, "MPI_INT32_T": {signed, 4, 0},
	"MPI_SHORT": {signed, 2, 0}, "MPI_INTEGER2": {signed, 2, 0}, "MPI_INT16_T": {signed, 2, 0},
	"MPI_SIGNED_CHAR": {signed, 1, 0}, "MPI_INTEGER1": {signed, 1, 0}, "MPI_INT8_T": {signed, 1, 0},
	"MPI_LONG": {signed, 8, 0}, "MPI_LONG_LONG": {signed, 8, 0}, "MPI_LONG_LONG_INT": {signed, 8, 0}, "MPI_INTEGER8": {signed, 8, 0}, "MPI_INT64_T": {signed, 8, 0},
	"MPI_AINT": {signed, 8, 0}, "MPI_OFFSET": {signed, 8, 0}, "MPI_COUNT": {signed, 8, 0},
	"MPI_UNSIGNED": {unsigned, 4, 0}, "MPI_UINT32_T": {unsigned, 4, 0}, "MPI_UNSIGNED_SHORT": {unsigned, 2, 0}, "MPI_UINT16_T": {unsigned, 2, 0},
	"MPI_UNSIGNED_CHAR": {unsigned, 1, 0}, "MPI_UINT8_T": {unsigned, 1, 0},
	"MPI_UNSIGNED_LONG": {unsigned, 8, 0}, "MPI_UNSIGNED_LONG_LONG": {unsigned, 8, 0}, "MPI_UINT64_T": {unsigned, 8, 0},
	"MPI_DOUBLE": {float, 8, 0}, "MPI_DOUBLE_PRECISION": {float, 8, 0}, "MPI_REAL8": {float, 8, 0},
	"MPI_FLOAT": {float, 4, 0}, "MPI_REAL": {float, 4, 0}, "MPI_REAL4": {float, 4, 0},
	"MPI_DOUBLE_COMPLEX": {complexFloat, 8, 0}, "MPI_C_DOUBLE_COMPLEX": {complexFloat, 8, 0}, "MPI_CXX_DOUBLE_COMPLEX": {complexFloat, 8, 0}, "MPI_COMPLEX16": {complexFloat, 8, 0},
	"MPI_COMPLEX": {complexFloat, 4, 0}, "MPI_C_COMPLEX": {complexFloat, 4, 0}, "MPI_C_FLOAT_COMPLEX": {complexFloat, 4, 0}, "MPI_CXX_FLOAT_COMPLEX": {complexFloat, 4, 0}, "MPI_COMPLEX8": {complexFloat, 4, 0},
}

func pairOf(class kindClass, value, index int) kind { return kind{class, value, index} }

// kindsOf are the kinds of datatypes by id. MPI_LONG and its like have 4 bytes on some machines. A derived type without a name is taken
// for doubles, unless payloads of it have sums: what else it may hold fits no operation.
func kindsOf(types []Datatype) map[int32]kind {
	out := map[int32]kind{}
	for _, t := range types {
		k := kindNames[t.Name]
		if value := int(t.Bytes) - k.index; value > 0 && value < k.bytes && k.class != complexFloat {
			k.bytes = value
		}
		if !t.Named {
			k = kind{class: complexFloat, bytes: 8}
		}
		out[t.ID] = k
	}
	return out
}

// reduction is an operation that combines elements.
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

var reductionNames = [reductionCount]string{"MPI_SUM", "MPI_MAX", "MPI_MIN", "MPI_PROD", "MPI_BAND", "MPI_BOR", "MPI_BXOR", "MPI_MAXLOC", "MPI_MINLOC"}

// selects says whether what comes out is one of what is combined, or made of parts of it.
func (r reduction) selects() bool {
	switch r {
	case opMax, opMin, opBand, opBor, opMaxloc, opMinloc:
		return true
	}
	return false
}

// reductions is a set of them.
type reductions uint16

const allReductions reductions = 1<<reductionCount - 1

// evidence is what comparisons of payloads with what others combine to say about the operation.
type evidence struct {
	ops    reductions // those that agree with all
	seen   int64
	broken bool                  // something that was only passed on had changed
	tells  [reductionCount]int64 // comparisons that say something for the operation: the result is none of what was combined
	wins   [reductionCount][2]int64
}

func newEvidence() evidence { return evidence{ops: allReductions} }

// add takes other evidence in.
func (e *evidence) add(f *evidence) {
	e.ops &= f.ops
	e.seen += f.seen
	for k := range e.tells {
		e.tells[k] += f.tells[k]
		e.wins[k][0] += f.wins[k][0]
		e.wins[k][1] += f.wins[k][1]
	}
}

// strong says whether one of the operations is shown, not only not excluded.
func (e *evidence) strong(ops reductions) bool {
	for op := range reductionCount {
		if ops>>op&1 != 0 && e.shown(op) {
			return true
		}
	}
	return false
}

// shown says whether the operation explains what nothing else would: a new value, or, where one of the operands comes out, now the
// rank's own and now what it got.
func (e *evidence) shown(op reduction) bool {
	if op.selects() {
		return e.tells[op] >= 4 && e.wins[op][0] > 0 && e.wins[op][1] > 0
	}
	return e.tells[op] > 0
}

// names are the operations that are shown.
func (e *evidence) names() (out []string) {
	for op := range reductionCount {
		if e.ops>>op&1 != 0 && e.shown(op) {
			out = append(out, reductionNames[op])
		}
	}
	return out
}

// compare notes which operations make of the parts the result.
func (f *folding) compare(e *evidence, result *operand, parts []*operand) {
	if len(parts) == 1 {
		e.seen++
		if result.hash != parts[0].hash {
			e.broken, e.ops = true, 0
		}
		return
	}
	k := f.kinds[result.datatype]
	if result.sum != schema.NullInt64 && k.class == complexFloat {
		k = kind{class: signed}
	}
	seen := false
	fronts := f.fronts(result, parts)
	for op := range reductionCount {
		agrees, can := f.agrees(op, k, result, parts, fronts)
		if !can {
			continue
		}
		seen = true
		if !agrees {
			e.ops &^= 1 << op
			continue
		}
		f.count(e, op, result, parts)
	}
	if seen {
		e.seen++
	}
}

// count notes what a comparison that agrees says for the operation.
func (f *folding) count(e *evidence, op reduction, result *operand, parts []*operand) {
	all, own, other := true, result.hash == parts[0].hash, false
	for _, p := range parts[1:] {
		other = other || result.hash == p.hash
		all = all && parts[0].hash == p.hash
	}
	switch {
	case op.selects():
		if all {
			return
		}
		e.tells[op]++
		if !own {
			e.wins[op][1]++
		}
		if !other {
			e.wins[op][0]++
		}
	case !own && !other:
		e.tells[op]++
	}
}

// agrees says whether the operation makes the result of the parts, as far as that can be seen; fronts are the result's and the parts'.
func (f *folding) agrees(op reduction, k kind, result *operand, parts []*operand, fronts []front) (agrees, can bool) {
	for _, p := range parts {
		if p.bytes != result.bytes {
			return false, true
		}
	}
	switch {
	case op == opMaxloc || op == opMinloc:
		return locates(op, k, result, parts, fronts)
	case k.index > 0:
		return false, true
	case op == opBxor:
		if k.class == float || k.class == complexFloat {
			return false, true
		}
		return f.exclusive(result, parts), true
	case k.class == opaque:
		return false, false
	case op == opSum && result.sum != schema.NullInt64:
		return summed(k, result, parts), true
	case k.bytes == 0:
		return false, false
	case k.class == complexFloat && op != opSum:
		return false, true
	case k.class == float || k.class == complexFloat:
		return floats(op, k, fronts)
	}
	return integersOf(op, k, fronts), true
}

// summed says whether linear hashes add up, in the bits in which elements do.
func summed(k kind, result *operand, parts []*operand) bool {
	left := uint64(result.sum)
	for _, p := range parts {
		if p.sum == schema.NullInt64 {
			return false
		}
		left -= uint64(p.sum)
	}
	bits := 8 * k.bytes
	if bits == 0 {
		bits = 32
	}
	return left<<(64-bits) == 0
}

// exclusive says whether the hashes are that of the exclusive or.
func (f *folding) exclusive(result *operand, parts []*operand) bool {
	left := uint64(result.hash)
	for _, p := range parts {
		left ^= uint64(p.hash)
	}
	if len(parts)%2 == 0 {
		left ^= f.crc.repeated(0, result.bytes)
	}
	return left == 0
}

// front is what is known of the bytes of a payload: the first 8, or all of one that has no more than that and its hash.
type front struct {
	bytes [16]byte
	n     int
}

// fronts are those of a result and its parts.
func (f *folding) fronts(result *operand, parts []*operand) []front {
	out := make([]front, 0, len(parts)+1)
	for _, m := range append([]*operand{result}, parts...) {
		w := front{n: int(min(8, m.bytes))}
		binary.LittleEndian.PutUint64(w.bytes[:], uint64(m.head))
		if more := m.bytes - 8; more > 0 && more <= int64(f.crc.width/8) {
			if rest, ok := f.crc.rest(m.head, int(more), uint64(m.hash)); ok {
				binary.LittleEndian.PutUint64(w.bytes[8:], rest)
				w.n = int(m.bytes)
			}
		}
		out = append(out, w)
	}
	return out
}

// known is how many bytes of all of them are.
func known(fronts []front) int {
	n := fronts[0].n
	for i := range fronts {
		n = min(n, fronts[i].n)
	}
	return n
}

// integersOf compares the first elements of integers.
func integersOf(op reduction, k kind, fronts []front) bool {
	for lane := range known(fronts) / k.bytes {
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

func (k kind) less(x, y int64) bool {
	if k.class == unsigned {
		return uint64(x) < uint64(y)
	}
	return x < y
}

// integer is an element from byte at on.
func (w *front) integer(k kind, at int) int64 {
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

// floats compares the first elements of floating-point numbers: sums and products within the rounding of each operation.
func floats(op reduction, k kind, fronts []front) (agrees, can bool) {
	epsilon := 0x1p-53
	if k.bytes == 4 {
		epsilon = 0x1p-24
	}
	for lane := range known(fronts) / k.bytes {
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

// float is an element from byte at on.
func (w *front) float(k kind, at int) float64 {
	if k.bytes == 8 {
		return math.Float64frombits(binary.LittleEndian.Uint64(w.bytes[at:]))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(w.bytes[at:])))
}

// locates says whether the result is the pair with the largest value (or the least), of equal ones that with the lowest index. Two numbers of
// one type are a pair too.
func locates(op reduction, k kind, result *operand, parts []*operand, fronts []front) (agrees, can bool) {
	if k.index == 0 {
		if k.bytes == 0 || k.class == opaque || k.class == complexFloat || result.bytes != int64(2*k.bytes) {
			return false, true
		}
		k.index = k.bytes
	}
	stride := k.bytes + k.index
	if result.bytes%int64(stride) != 0 {
		return false, true
	}
	seen := known(fronts)
	if seen < k.bytes {
		return false, false
	}
	order := func(a, b *front, at int) int { // negative: a comes out
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
		index := kind{class: signed, bytes: k.index} // which is not negative: as a floating-point number it is ordered as its bits are
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
	if result.bytes == int64(stride) { // one pair, which is one of the parts' as a whole
		return slices.ContainsFunc(parts, func(p *operand) bool { return p.hash == result.hash }), true
	}
	return true, true
}

// mostParts bounds how many blocks are tried in every order.
const mostParts = 5

// joined says whether the blocks one after the other, in some order, are the whole.
func (c *combiner) joined(whole *operand, blocks []*operand) bool {
	if len(blocks) > mostParts {
		byAddress := slices.Clone(blocks)
		slices.SortStableFunc(byAddress, func(a, b *operand) int {
			if a.dstBuffer < b.dstBuffer {
				return -1
			}
			return 1
		})
		return c.inOrder(whole, byAddress) || c.inOrder(whole, blocks)
	}
	found := false
	permute(blocks, 0, func() bool {
		found = c.inOrder(whole, blocks)
		return found
	})
	return found
}

// permute visits all orders of a list from place k on until visit says that it has seen enough.
func permute(list []*operand, k int, visit func() bool) bool {
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

func (c *combiner) inOrder(whole *operand, blocks []*operand) bool {
	h := uint64(0) // the hash of nothing
	for _, b := range blocks {
		h = c.crc.join(h, uint64(b.hash), b.bytes)
	}
	if c.crc.width == 32 {
		return uint32(h) == uint32(whole.hash)
	}
	return h == uint64(whole.hash)
}
