package detect

import (
	"slices"
	"testing"
)

// TestReductionsOfPairs has the result of two payloads under a maximum, a minimum and their indexed forms, and asks which agree. Of 16 bytes all
// is known: two doubles of which the first wins and the second belongs to it are no MPI_MAX.
func TestReductionsOfPairs(t *testing.T) {
	operandOf := func(v vector) *operand {
		m := &operand{}
		m.datatype, m.bytes, m.hash, m.sum, m.head = v.payload()
		return m
	}
	doubles := func(x ...float64) vector { return vector{doubles: x} }
	ints := func(x ...int32) vector { return vector{ints: x} }
	for _, c := range []struct {
		name      string
		datatype  string
		result    vector
		parts     []vector
		agree, no []reduction
	}{
		{"pair of doubles", "MPI_DOUBLE", doubles(7.5, 3), []vector{doubles(7.5, 3), doubles(2.5, 5)}, []reduction{opMaxloc}, []reduction{opMax, opMinloc, opSum}},
		{"elementwise", "MPI_DOUBLE", doubles(7.5, 5), []vector{doubles(7.5, 3), doubles(2.5, 5)}, []reduction{opMax}, []reduction{opMaxloc, opMin}},
		{"least of doubles", "MPI_DOUBLE", doubles(2.5, 5), []vector{doubles(7.5, 3), doubles(2.5, 5)}, []reduction{opMinloc}, []reduction{opMaxloc, opMin}},
		{"equal values, lower index", "MPI_DOUBLE", doubles(7.5, 3), []vector{doubles(7.5, 5), doubles(7.5, 3)}, []reduction{opMaxloc, opMinloc}, []reduction{opMax}},
		{"equal values, higher index", "MPI_DOUBLE", doubles(7.5, 5), []vector{doubles(7.5, 5), doubles(7.5, 3)}, []reduction{opMax}, []reduction{opMaxloc, opMinloc}},
		{"pair of integers", "MPI_INT", ints(-4, 3), []vector{ints(-9, 5), ints(-4, 3)}, []reduction{opMaxloc}, []reduction{opMax, opMinloc}},
		{"MPI_2INT", "MPI_2INT", ints(-9, 5), []vector{ints(-9, 5), ints(-4, 3)}, []reduction{opMinloc}, []reduction{opMaxloc, opMin, opBxor}},
		{"two pairs", "MPI_2INT", ints(9, 5, 4, 3), []vector{ints(9, 5, 1, 5), ints(2, 3, 4, 3)}, []reduction{opMaxloc}, []reduction{opMinloc, opMax}},
		{"no pair of three", "MPI_INT", ints(9, 5, 1), []vector{ints(9, 5, 1), ints(2, 3, 0)}, []reduction{opMax}, []reduction{opMaxloc}},
	} {
		k := kindNames[c.datatype]
		f := &folding{combiner: &combiner{crc: newChecksum(64)}}
		result := operandOf(c.result)
		var parts []*operand
		for _, p := range c.parts {
			parts = append(parts, operandOf(p))
		}
		var got []reduction
		for op := range reductionCount {
			if agrees, can := f.agrees(op, k, result, parts, f.fronts(result, parts)); agrees && can {
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
