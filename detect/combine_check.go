package detect

import (
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// kind is what elements are, as far as sums and first bytes of payloads tell about operations on them.
type kind struct {
	class kindClass
	bytes int
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
	"MPI_INT": {signed, 4}, "MPI_INTEGER": {signed, 4}, "MPI_INTEGER4": {signed, 4}, "MPI_INT32_T": {signed, 4},
	"MPI_SHORT": {signed, 2}, "MPI_INTEGER2": {signed, 2}, "MPI_INT16_T": {signed, 2},
	"MPI_SIGNED_CHAR": {signed, 1}, "MPI_INTEGER1": {signed, 1}, "MPI_INT8_T": {signed, 1},
	"MPI_LONG": {signed, 8}, "MPI_LONG_LONG": {signed, 8}, "MPI_LONG_LONG_INT": {signed, 8}, "MPI_INTEGER8": {signed, 8}, "MPI_INT64_T": {signed, 8},
	"MPI_AINT": {signed, 8}, "MPI_OFFSET": {signed, 8}, "MPI_COUNT": {signed, 8},
	"MPI_UNSIGNED": {unsigned, 4}, "MPI_UINT32_T": {unsigned, 4}, "MPI_UNSIGNED_SHORT": {unsigned, 2}, "MPI_UINT16_T": {unsigned, 2},
	"MPI_UNSIGNED_CHAR": {unsigned, 1}, "MPI_UINT8_T": {unsigned, 1},
	"MPI_UNSIGNED_LONG": {unsigned, 8}, "MPI_UNSIGNED_LONG_LONG": {unsigned, 8}, "MPI_UINT64_T": {unsigned, 8},
	"MPI_DOUBLE": {float, 8}, "MPI_DOUBLE_PRECISION": {float, 8}, "MPI_REAL8": {float, 8},
	"MPI_FLOAT": {float, 4}, "MPI_REAL": {float, 4}, "MPI_REAL4": {float, 4},
	"MPI_DOUBLE_COMPLEX": {complexFloat, 8}, "MPI_C_DOUBLE_COMPLEX": {complexFloat, 8}, "MPI_CXX_DOUBLE_COMPLEX": {complexFloat, 8}, "MPI_COMPLEX16": {complexFloat, 8},
	"MPI_COMPLEX": {complexFloat, 4}, "MPI_C_COMPLEX": {complexFloat, 4}, "MPI_C_FLOAT_COMPLEX": {complexFloat, 4}, "MPI_CXX_FLOAT_COMPLEX": {complexFloat, 4}, "MPI_COMPLEX8": {complexFloat, 4},
}

// kindsOf are the kinds of datatypes by id. MPI_LONG and its like have 4 bytes on some machines. A derived type without a name is taken
// for doubles, unless payloads of it have sums: what else it may hold fits no operation.
func kindsOf(types []Datatype) map[int32]kind {
	out := map[int32]kind{}
	for _, t := range types {
		k := kindNames[t.Name]
		if t.Bytes > 0 && int(t.Bytes) < k.bytes && k.class != complexFloat {
			k.bytes = int(t.Bytes)
		}
		if !t.Named {
			k = kind{complexFloat, 8}
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
	reductionCount
)

var reductionNames = [reductionCount]string{"MPI_SUM", "MPI_MAX", "MPI_MIN", "MPI_PROD", "MPI_BAND", "MPI_BOR", "MPI_BXOR"}

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
	switch op {
	case opMax, opMin, opBand, opBor:
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
		k = kind{signed, 0}
	}
	seen := false
	for op := range reductionCount {
		agrees, can := f.agrees(op, k, result, parts)
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
	case op == opMax || op == opMin || op == opBand || op == opBor:
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

// agrees says whether the operation makes the result of the parts, as far as that can be seen.
func (f *folding) agrees(op reduction, k kind, result *operand, parts []*operand) (agrees, can bool) {
	for _, p := range parts {
		if p.bytes != result.bytes {
			return false, true
		}
	}
	switch {
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
		return floats(op, k, result, parts)
	}
	return integersOf(op, k, result, parts), true
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

// lanes is how many whole elements the first 8 bytes of a payload hold.
func lanes(k kind, bytes int64) int { return int(min(8, bytes)) / k.bytes }

// integersOf compares the first elements of integers.
func integersOf(op reduction, k kind, result *operand, parts []*operand) bool {
	for lane := range lanes(k, result.bytes) {
		x := k.integer(parts[0].head, lane)
		for _, p := range parts[1:] {
			y := k.integer(p.head, lane)
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
				less := x < y
				if k.class == unsigned {
					less = uint64(x) < uint64(y)
				}
				if less == (op == opMax) {
					x = y
				}
			}
		}
		if shift := 64 - 8*k.bytes; x<<shift != k.integer(result.head, lane)<<shift {
			return false
		}
	}
	return true
}

// integer is an element of the first 8 bytes.
func (k kind) integer(head int64, lane int) int64 {
	x := uint64(head) >> (8 * k.bytes * lane)
	shift := 64 - 8*k.bytes
	if k.class == signed {
		return int64(x<<shift) >> shift
	}
	return int64(x << shift >> shift)
}

// floats compares the first elements of floating-point numbers: sums and products within the rounding of each operation.
func floats(op reduction, k kind, result *operand, parts []*operand) (agrees, can bool) {
	epsilon := 0x1p-53
	if k.bytes == 4 {
		epsilon = 0x1p-24
	}
	for lane := range lanes(k, result.bytes) {
		want, size := k.float(parts[0].head, lane), 0.0
		size = math.Abs(want)
		for _, p := range parts[1:] {
			y := k.float(p.head, lane)
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
		got := k.float(result.head, lane)
		if math.IsNaN(want) || math.IsInf(want, 0) {
			return false, false
		}
		bound := 0.0
		if op == opSum || op == opProd {
			bound = 2 * float64(len(parts)) * epsilon * size
		}
		if !(math.Abs(got-want) <= bound) {
			return false, true
		}
	}
	return true, true
}

// float is an element of the first 8 bytes.
func (k kind) float(head int64, lane int) float64 {
	if k.bytes == 8 {
		return math.Float64frombits(uint64(head))
	}
	return float64(math.Float32frombits(uint32(uint64(head) >> (32 * lane))))
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
