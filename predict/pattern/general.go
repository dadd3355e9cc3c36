package pattern

import (
	"fmt"
	"slices"
	"strings"
)

// GeneralEquation is the paper's general equation of one communication (figure 7): the displacements of the local
// equations as expressions in the extents of the grid, and these in K, the hops from the last process count of the
// runs.
type GeneralEquation struct {
	// Terms are the displacements in the order of the ranks at which they begin.
	Terms []Term `json:"terms"`
	// Extents name the variables of the terms, "q = 6+K" or "g0, g1 of a ... grid".
	Extents string `json:"extents"`
	// Ranks is the last characterised process count: K counts from it.
	Ranks int32 `json:"ranks"`
}

// Term is one displacement of a GeneralEquation: numbers as in Displacement, as text.
type Term struct {
	By     string `json:"by"`
	Length string `json:"length"`
	// Strides are of the repeats, innermost first.
	Strides []string `json:"strides"`
}

// String formats the equation as the paper does: [+1{+(q-1),+q}], [-(q-1){+1,+q}], q = 6+K.
func (g GeneralEquation) String() string {
	parts := make([]string, len(g.Terms))
	for i, t := range g.Terms {
		parts[i] = fmt.Sprintf("[%s{%s}]", signed(t.By), signed(t.Length)+","+strings.Join(signedAll(t.Strides), ","))
	}
	return fmt.Sprintf("%s; %s, K hops from P = %d", strings.Join(parts, ", "), g.Extents, g.Ranks)
}

func signedAll(s []string) []string {
	out := make([]string, len(s))
	for i := range s {
		out[i] = signed(s[i])
	}
	return out
}

// signed returns an expression with a sign before it.
func signed(s string) string {
	if strings.HasPrefix(s, "-") {
		return s
	}
	return "+" + s
}

// General returns the general equation of a member of the law. It returns false when its local equations are dynamic or
// differ in their number of displacements, or when a number is not a product of extents.
func (l Law) General(m Member) (GeneralEquation, bool) {
	eq := GeneralEquation{}
	if len(l.Forms) == 0 {
		return eq, false
	}
	f := l.Forms[0]
	var runs []EC2
	var dims [][]int32
	for _, e := range m.Local {
		d, ok := f.Grids[0].Dims(e.Ranks)
		if e.EC2 == nil || !ok {
			return eq, false
		}
		// A short axis hides displacements; the equation is that of the runs that show all.
		if len(runs) > 0 && len(e.EC2.Displacements) > len(runs[0].Displacements) {
			runs, dims = nil, nil
		}
		if len(runs) == 0 || len(e.EC2.Displacements) == len(runs[0].Displacements) {
			runs, dims = append(runs, *e.EC2), append(dims, d)
		}
		eq.Ranks = e.Ranks
	}
	if len(runs) < 2 {
		return eq, false
	}
	vars := variables(f.Grids[0])
	for i := range runs[0].Displacements {
		t, ok := term(runs, dims, vars, i)
		if !ok {
			return eq, false
		}
		eq.Terms = append(eq.Terms, t)
	}
	eq.Extents = hops(f.Grids[0], eq.Ranks, vars)
	return eq, true
}

// variables returns the names of the extents: P of the line, q of a cube, g0, g1, ... of other grids.
func variables(g Grid) []string {
	switch g.Shape {
	case Line:
		return []string{"P"}
	case Cubic:
		return slices.Repeat([]string{"q"}, g.Axes)
	}
	out := make([]string, g.Axes)
	for a := range out {
		out[a] = fmt.Sprintf("g%d", a)
	}
	return out
}

// hops describes the extents as a function of K.
func hops(g Grid, last int32, vars []string) string {
	dims, _ := g.Dims(last)
	switch g.Shape {
	case Line:
		return fmt.Sprintf("P = %d+K", last)
	case Cubic:
		return fmt.Sprintf("q = %d+K", dims[0])
	case Deal:
		return fmt.Sprintf("%s of a %s, n = %d+K", strings.Join(vars, ", "), g, log2(last))
	}
	return fmt.Sprintf("%s of a %s, P = %d+K", strings.Join(vars, ", "), g, last)
}

func term(runs []EC2, dims [][]int32, vars []string, i int) (Term, bool) {
	number := func(of func(Displacement) (int32, bool)) (string, bool) {
		values := make([]int32, len(runs))
		for r, e := range runs {
			v, ok := of(e.Displacements[i])
			if !ok {
				return "", false
			}
			values[r] = v
		}
		return expression(values, dims, vars)
	}
	var t Term
	var ok1, ok2 bool
	t.By, ok1 = number(func(d Displacement) (int32, bool) { return d.By, true })
	t.Length, ok2 = number(func(d Displacement) (int32, bool) { return d.Length, true })
	if !ok1 || !ok2 {
		return t, false
	}
	for k := range runs[0].Displacements[i].Repeats {
		s, ok := number(func(d Displacement) (int32, bool) {
			if k >= len(d.Repeats) || len(d.Repeats) != len(runs[0].Displacements[i].Repeats) {
				return 0, false
			}
			return d.Repeats[k].Stride, true
		})
		if !ok {
			return t, false
		}
		t.Strides = append(t.Strides, s)
	}
	return t, true
}

// expression returns values as a number, or as a product of extents, one of which may be reduced by one or two.
func expression(values []int32, dims [][]int32, vars []string) (string, bool) {
	if !slices.ContainsFunc(values, func(v int32) bool { return v != values[0] }) {
		if values[0] < 0 {
			return fmt.Sprint(values[0]), true
		}
		return fmt.Sprint(values[0]), true
	}
	k := len(vars)
	for mask := 1; mask < 1<<k; mask++ {
		for less := range int32(3) {
			for at := range k {
				if mask>>at&1 == 0 || less == 0 && mask&(1<<at-1) != 0 {
					continue
				}
				for _, sign := range []int32{1, -1} {
					if matches(values, dims, mask, at, less, sign) {
						return product(vars, mask, at, less, sign), true
					}
				}
			}
		}
	}
	return "", false
}

func matches(values []int32, dims [][]int32, mask, at int, less, sign int32) bool {
	for r, v := range values {
		p := sign
		for a, d := range dims[r] {
			if mask>>a&1 == 0 {
				continue
			}
			if a == at {
				d -= less
			}
			p *= d
		}
		if p != v {
			return false
		}
	}
	return true
}

func product(vars []string, mask, at int, less, sign int32) string {
	var parts []string
	for a, v := range vars {
		if mask>>a&1 == 0 {
			continue
		}
		if a == at && less > 0 {
			v = fmt.Sprintf("(%s-%d)", v, less)
		}
		parts = append(parts, v)
	}
	text := strings.Join(parts, "*")
	if sign < 0 {
		return "-" + text
	}
	return text
}
