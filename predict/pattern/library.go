package pattern

import "slices"

// library is the steps, guards and roots that are tried, each cheapest first.
type library struct {
	steps   []step
	guards  []guardCandidate
	roots   []Number
	indexed bool
}

type step struct {
	op   Op
	n    Number
	cost float64
}

type guardCandidate struct {
	guard Guard
	cost  float64
}

// newLibrary returns the candidates. vary are the components of the index that differ within the family; literals are
// displacements to try in addition to small ones.
func newLibrary(vary []int, literals []int32) *library {
	l := &library{indexed: len(vary) > 0, roots: []Number{zero, literal(-1), literal(1), {Kind: Divided, C: 1}}}
	for c := int32(2); c <= 8; c++ {
		l.roots = append(l.roots, literal(c))
	}
	l.addSteps(vary, literals)
	l.addGuards(vary)
	slices.SortStableFunc(l.steps, func(a, b step) int { return compare(a.cost, b.cost) })
	slices.SortStableFunc(l.guards, func(a, b guardCandidate) int { return compare(a.cost, b.cost) })
	return l
}

func (l *library) addStep(op Op, ns ...Number) {
	for _, n := range ns {
		r := Rule{Op: op, N: n, Root: zero}
		l.steps = append(l.steps, step{op: op, n: n, cost: r.cost()})
	}
}

func (l *library) addSteps(vary []int, literals []int32) {
	counts := []int32{1, 2, 3, 4, 5, 6, 7, 8}
	for _, c := range literals {
		if c = abs(c); c > 0 && !slices.Contains(counts, c) {
			counts = append(counts, c)
		}
	}
	var small []Number
	for _, c := range counts {
		small = append(small, literal(c))
	}
	grown := slices.Concat(indexed(vary, -2, 2), powers(vary), halves(vary))
	l.addStep(Keep, zero)
	for _, op := range []Op{Shift, Wrap} {
		l.addStep(op, slices.Concat(small, negated(small), grown, negated(grown))...)
	}
	l.addStep(Xor, slices.Concat(small, grown)...)
	l.addStep(Reflect, slices.Concat([]Number{literal(-1), zero, literal(1), literal(-2)}, indexed(vary, -1, 1),
		negated(indexed(vary, -1, 1)))...)
	l.addStep(Constant, slices.Concat([]Number{zero, literal(-1), literal(-2), literal(-3)}, small,
		indexed(vary, -1, 1),
		negated(indexed(vary, 0, 2)), powers(vary), halves(vary))...)
	l.addStep(ParentLow, zero)
	l.addStep(ParentHigh, zero)
	l.addStep(FoldXor, slices.Concat([]Number{literal(1), literal(2), literal(4)}, powers(vary))...)
	l.addStep(Pair, slices.Concat([]Number{literal(1)}, indexed(vary, 0, 1))...)
	l.addStep(Others, indexed(vary, 0, 0)...)
	l.addStep(HeapParent, literal(2), literal(3), literal(4))
	l.addStep(HeapChild, slices.Concat([]Number{zero, literal(1), literal(2)}, indexed(vary, -1, 0))...)
	l.addStep(ChildDown, slices.Concat([]Number{zero, literal(1), literal(2), literal(3), literal(4)},
		indexed(vary, -1, 0))...)
}

func (l *library) addGuard(kind GuardKind, offset int32, ns ...Number) {
	for _, n := range ns {
		g := Guard{Kind: kind, N: n, Offset: offset}
		l.guards = append(l.guards, guardCandidate{guard: g, cost: g.cost()})
	}
}

func (l *library) addGuards(vary []int) {
	for _, k := range []GuardKind{All, First, Last, NotFirst, NotLast, Interior, Border, Core} {
		l.addGuard(k, 0, zero)
	}
	l.addGuard(Folded, 0, zero)
	l.addGuard(Folded, 1, zero)
	var small, ends []Number
	for c := int32(1); c <= 8; c++ {
		small = append(small, literal(c))
		ends = append(ends, literal(-c))
	}
	counts := slices.Concat(small, indexed(vary, -1, 2), powers(vary), halves(vary))
	l.addGuard(Equal, 0, slices.Concat(counts, ends[1:], negated(indexed(vary, 0, 2)))...)
	l.addGuard(NotEqual, 0, slices.Concat(counts, ends[1:], negated(indexed(vary, 0, 2)))...)
	l.addGuard(Below, 0, slices.Concat(counts[1:], ends[1:], negated(indexed(vary, -1, 2)))...)
	l.addGuard(FromOn, 0, slices.Concat(counts[1:], ends[1:], negated(indexed(vary, -1, 2)))...)
	for _, o := range []int32{0, -1, -2} {
		l.addGuard(LowBits, o, powers(vary)...)
	}
	for n := int32(2); n <= 8; n++ {
		for o := range n {
			l.addGuard(LowBits, o, literal(n))
		}
	}
	bits := slices.Concat([]Number{literal(1), literal(2), literal(4)}, powers(vary))
	l.addGuard(BitSet, 0, bits[1:]...)
	l.addGuard(BitClear, 0, bits[1:]...)
}

// indexed returns the literals i+c of the components of the index.
func indexed(vary []int, from, to int32) []Number {
	var out []Number
	for _, v := range vary {
		for c := from; c <= to; c++ {
			out = append(out, Number{Kind: Literal, B: 1, Component: v, C: c})
		}
	}
	return out
}

// powers returns the powers of two whose exponent depends on the extent, on the index or on both.
func powers(vary []int) []Number {
	var out []Number
	add := func(log NumberLog, b int32, component int) {
		for c := int32(-7); c <= 7; c++ {
			out = append(out, Number{Kind: Power, Log: log, B: b, Component: component, C: c})
		}
	}
	for _, log := range []NumberLog{FloorLog, CeilLog} {
		add(log, 0, 0)
	}
	for _, v := range vary {
		for _, log := range []NumberLog{NoLog, FloorLog, CeilLog} {
			add(log, 1, v)
			add(log, -1, v)
		}
	}
	return out
}

// halves returns fractions of the extent: a half, a quarter, and repeated halves by the index.
func halves(vary []int) []Number {
	out := []Number{{Kind: Divided, C: 1}, {Kind: Divided, C: 2}}
	for _, v := range vary {
		for c := int32(0); c <= 2; c++ {
			out = append(out, Number{Kind: Divided, B: 1, Component: v, C: c})
		}
	}
	return out
}

func negated(ns []Number) []Number {
	out := slices.Clone(ns)
	for i := range out {
		out[i].Negative = !out[i].Negative
	}
	return out
}
