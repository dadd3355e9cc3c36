package combine

import (
	"encoding/binary"
	"hash/crc64"
	"math"
	"slices"
	"testing"

	"github.com/commq/commq/detect/crc"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// sumBase is the base of payload_sum; see docs/method/payload-hashes.md.
const sumBaseX = 0x9e3779b97f4a7c15

// operandOf returns a payload of these bytes.
func operandOf(b []byte, sum int64) *ledger.Operand {
	var first [8]byte
	copy(first[:], b)
	m := &ledger.Operand{Sum: sum}
	m.Bytes, m.Hash, m.Head = int64(len(b)), int64(crc64.Checksum(b, crc64.MakeTable(crc64.ECMA))), int64(binary.LittleEndian.Uint64(first[:]))
	return m
}

// TestReductionsOfPairs passes the result of two payloads under maximum, minimum and their indexed forms, and checks
// which operations agree. All 16 bytes are known: two doubles of which the first wins and the second belongs to it
// are not an MPI_MAX.
func TestReductionsOfPairs(t *testing.T) {
	doubles := func(x ...float64) *ledger.Operand {
		var b []byte
		for _, v := range x {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		return operandOf(b, schema.NullInt64)
	}
	ints := func(x ...int32) *ledger.Operand {
		var b []byte
		sum := uint64(0)
		for _, v := range x {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
			sum = sum*sumBaseX + uint64(int64(v))
		}
		return operandOf(b, int64(sum))
	}
	for _, c := range []struct {
		name      string
		datatype  string
		result    *ledger.Operand
		parts     []*ledger.Operand
		agree, no []reduction
	}{
		{"pair of doubles", "MPI_DOUBLE", doubles(7.5, 3), []*ledger.Operand{doubles(7.5, 3), doubles(2.5, 5)},
			[]reduction{opMaxloc}, []reduction{opMax, opMinloc, opSum}},
		{"elementwise", "MPI_DOUBLE", doubles(7.5, 5), []*ledger.Operand{doubles(7.5, 3), doubles(2.5, 5)}, []reduction{opMax},
			[]reduction{opMaxloc, opMin}},
		{"least of doubles", "MPI_DOUBLE", doubles(2.5, 5), []*ledger.Operand{doubles(7.5, 3), doubles(2.5, 5)},
			[]reduction{opMinloc}, []reduction{opMaxloc, opMin}},
		{"equal values, lower index", "MPI_DOUBLE", doubles(7.5, 3), []*ledger.Operand{doubles(7.5, 5), doubles(7.5, 3)},
			[]reduction{opMaxloc, opMinloc}, []reduction{opMax}},
		{"equal values, higher index", "MPI_DOUBLE", doubles(7.5, 5), []*ledger.Operand{doubles(7.5, 5), doubles(7.5, 3)},
			[]reduction{opMax}, []reduction{opMaxloc, opMinloc}},
		{"pair of integers", "MPI_INT", ints(-4, 3), []*ledger.Operand{ints(-9, 5), ints(-4, 3)}, []reduction{opMaxloc},
			[]reduction{opMax, opMinloc}},
		{"MPI_2INT", "MPI_2INT", ints(-9, 5), []*ledger.Operand{ints(-9, 5), ints(-4, 3)}, []reduction{opMinloc},
			[]reduction{opMaxloc, opMin, opBxor}},
		{"two pairs", "MPI_2INT", ints(9, 5, 4, 3), []*ledger.Operand{ints(9, 5, 1, 5), ints(2, 3, 4, 3)},
			[]reduction{opMaxloc}, []reduction{opMinloc, opMax}},
		{"no pair of three", "MPI_INT", ints(9, 5, 1), []*ledger.Operand{ints(9, 5, 1), ints(2, 3, 0)}, []reduction{opMax},
			[]reduction{opMaxloc}},
	} {
		k := elementKinds[c.datatype]
		check := &checker{crc: crc.New(64)}
		var got []reduction
		for op := range reductionCount {
			if agrees, can := check.check(op, k, c.result, c.parts, check.prefixes(c.result, c.parts)); agrees && can {
				got = append(got, op)
			}
		}
		for _, op := range c.agree {
			if !slices.Contains(got, op) {
				t.Errorf("%s: %s does not agree", c.name, reductionNames[op])
			}
		}
		for _, op := range c.no {
			if slices.Contains(got, op) {
				t.Errorf("%s: %s agrees", c.name, reductionNames[op])
			}
		}
	}
}

// TestExtents: sums of integers and exclusive ors are of all elements, what other operations compare is at the front.
func TestExtents(t *testing.T) {
	for _, c := range []struct {
		op       reduction
		datatype string
		bytes    int64
		want     ledger.Extent
	}{
		{opSum, "MPI_DOUBLE", 8, ledger.AllElements},
		{opSum, "MPI_DOUBLE", 16, ledger.FirstElement},
		{opSum, "MPI_INT", 256, ledger.AllElements},
		{opMax, "MPI_INT", 256, ledger.FirstBytes},
		{opMax, "MPI_INT", 8, ledger.AllElements},
		{opBxor, "MPI_UNSIGNED", 256, ledger.AllElements},
		{opMax, "MPI_DOUBLE", 512, ledger.FirstBytes},
		{opProd, "MPI_INT", 256, ledger.FirstBytes},
		{opMaxloc, "MPI_2INT", 8, ledger.AllElements},
		{opMaxloc, "MPI_2INT", 24, ledger.FirstBytes},
	} {
		m := &ledger.Operand{Message: ledger.Message{Bytes: c.bytes}, Sum: schema.NullInt64}
		k := elementKinds[c.datatype]
		if k.class == signed {
			m.Sum = 1
		}
		if got := extentOf(c.op, k, m); got != c.want {
			t.Errorf("%s of %d bytes of %s: %s, want %s", reductionNames[c.op], c.bytes, c.datatype, got, c.want)
		}
	}
}
