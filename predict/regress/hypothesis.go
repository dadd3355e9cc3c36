package regress

import (
	"fmt"
	"math"
	"strings"
	"sync"
)

// Hypothesis is an exact law that reproduces every sample of a group: a constant, or a product of C, powers of
// extents, a factor and cuts, plus a sum. Its fields are numbers and names, so that it can be stored as JSON.
type Hypothesis struct {
	// C is the constant, or the coefficient of the product.
	C float64 `json:"c"`
	// Powers are the exponents of the grid's extents g in the product.
	Powers []int `json:"powers,omitempty"`
	// Factor is a function of the place (see variables) in the product; empty for none.
	Factor string `json:"factor,omitempty"`
	// Sum are functions of the place with coefficients, which are added.
	Sum []Summand `json:"sum,omitempty"`
	// Level is how the index LevelIndex changes the extents of the cuts.
	Level      Level `json:"level,omitempty"`
	LevelIndex int   `json:"level_index,omitempty"`
	// Axes are the axes that have a cut as a factor. Cuts are, for each of them, the cuts with the same value at all
	// samples; at other places any of them may hold.
	Axes []int   `json:"axes,omitempty"`
	Cuts [][]Cut `json:"cuts,omitempty"`
	// Partition is a sum over the cells of a diagonal multipartition; Cuts are then along the axes of its cells.
	Partition *Partition `json:"partition,omitempty"`
}

// Summand is a function of the place with its coefficient.
type Summand struct {
	C        float64 `json:"c"`
	Variable string  `json:"variable"`
}

// Partition is the diagonal multipartition of a cube on q x q ranks: rank (x, y) has q cells, cell c is at (x+s c,
// y-s c, c) modulo q. A communication along axis Normal sends a face of every cell, or of all but the first or last
// along it.
type Partition struct {
	Sign   int64 `json:"sign"`   // s, 1 or -1
	Swap   bool  `json:"swap"`   // x and y are exchanged
	Normal int   `json:"normal"` // axis of the cells, 0 to 2
	Skip   Trim  `json:"skip"`   // TrimFirst, TrimLast or NoTrim
	// Step is 0 when all cells send at once. It is 1 when each step of a sweep sends the face of the cell at the index
	// StepIndex along Normal, and -1 when that counts from the last cell.
	Step      int `json:"step,omitempty"`
	StepIndex int `json:"step_index,omitempty"`
}

// variable is a function of a place; ok is false where it has no value.
type variable struct {
	name  string
	value func(r *row) (y float64, ok bool)
}

// variables returns the functions of places with these numbers of axes and indices.
func variables(axes, indices int) (all []variable) {
	add := func(name string, value func(r *row) (float64, bool)) { all = append(all, variable{name, value}) }
	lg := func(n int64) (float64, bool) {
		l := math.Round(math.Log2(float64(n)))
		return l, n > 0 && math.Exp2(l) == float64(n)
	}
	add("P", func(r *row) (float64, bool) { return float64(r.ranks), true })
	add("log2(P)", func(r *row) (float64, bool) { return lg(r.ranks) })
	for a := range axes {
		add(fmt.Sprintf("g%d", a), func(r *row) (float64, bool) { return float64(r.g[a]), true })
		add(fmt.Sprintf("log2(g%d)", a), func(r *row) (float64, bool) { return lg(r.g[a]) })
		add(fmt.Sprintf("x%d", a), func(r *row) (float64, bool) { return float64(r.x[a]), true })
		add(fmt.Sprintf("(g%d-1)", a), func(r *row) (float64, bool) { return float64(r.g[a] - 1), true })
		add(fmt.Sprintf("(g%d-1-x%d)", a, a),
			func(r *row) (float64, bool) { return float64(r.g[a] - 1 - r.x[a]), true })
		add(fmt.Sprintf("[x%d=0]", a), func(r *row) (float64, bool) { return indicator(r.x[a] == 0), true })
		add(fmt.Sprintf("[x%d=last]", a), func(r *row) (float64, bool) { return indicator(r.x[a] == r.g[a]-1), true })
	}
	for i := range indices {
		add(fmt.Sprintf("i%d", i), func(r *row) (float64, bool) { return float64(r.index[i]), true })
		add(fmt.Sprintf("2^i%d", i), func(r *row) (float64, bool) { return math.Exp2(float64(r.index[i])), true })
		add(fmt.Sprintf("2^-i%d", i), func(r *row) (float64, bool) { return math.Exp2(-float64(r.index[i])), true })
	}
	return all
}

// indicator returns 1 for true and 0 for false.
func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// names caches variables by name for shapes of places. It is safe for concurrent use.
type names struct{ shapes sync.Map } // from shape to map[string]*variable

type shape struct{ axes, indices int }

// lookup returns the variable with a name, or nil when places of this shape have none.
func (n *names) lookup(name string, r *row) *variable {
	k := shape{len(r.g), len(r.index)}
	m, ok := n.shapes.Load(k)
	if !ok {
		all := map[string]*variable{}
		for _, v := range variables(k.axes, k.indices) {
			all[v.name] = &v
		}
		m, _ = n.shapes.LoadOrStore(k, all)
	}
	return m.(map[string]*variable)[name]
}

// value returns the law's value at a place; ok is false where it has none.
func (h *Hypothesis) value(r *row, names *names) (s bounds, ok bool) {
	return h.evaluate(r, names, false)
}

// valueOfAnyCut is like value, but also has a result where the preferred cut of an axis has no cells and others have:
// low and high are then those of the others.
func (h *Hypothesis) valueOfAnyCut(r *row, names *names) (s bounds, ok bool) {
	return h.evaluate(r, names, true)
}

func (h *Hypothesis) evaluate(r *row, names *names, anyCut bool) (s bounds, ok bool) {
	y := h.C
	for a, p := range h.Powers {
		if a >= len(r.g) {
			return s, false
		}
		y *= math.Pow(float64(r.g[a]), float64(p))
	}
	if h.Factor != "" {
		v := names.lookup(h.Factor, r)
		if v == nil {
			return s, false
		}
		f, ok := v.value(r)
		if !ok {
			return s, false
		}
		y *= f
	}
	for _, t := range h.Sum {
		v := names.lookup(t.Variable, r)
		if v == nil {
			return s, false
		}
		f, ok := v.value(r)
		if !ok {
			return s, false
		}
		y += t.C * f
	}
	s = bounds{y, y, y}
	if h.Partition != nil {
		return h.partition(r, s)
	}
	for k, a := range h.Axes {
		i := int64(0)
		if h.Level != NoLevel {
			if h.LevelIndex >= len(r.index) {
				return s, false
			}
			i = r.index[h.LevelIndex]
		}
		if a >= len(r.g) {
			return s, false
		}
		low, value, high, ok := cutBounds(h.Cuts[k], h.Level, i, r.g[a], r.x[a])
		if !ok && !(anyCut && low <= high) {
			return s, false
		}
		s.low, s.value, s.high = s.low*float64(low), s.value*float64(value), s.high*float64(high)
	}
	return s, true
}

// partition returns the sum over a rank's cells.
func (h *Hypothesis) partition(r *row, s bounds) (bounds, bool) {
	if len(r.g) != 2 || r.g[0] != r.g[1] {
		return s, false
	}
	var low, value, high float64
	ok := h.Partition.cells(r, func(cell [3]int64) bool {
		var l, v, u float64 = 1, 1, 1
		for k, a := range h.Axes {
			cl, cv, cu, ok := cutBounds(h.Cuts[k], NoLevel, 0, r.g[0], cell[a])
			if !ok {
				return false
			}
			l, v, u = l*float64(cl), v*float64(cv), u*float64(cu)
		}
		low, value, high = low+l, value+v, high+u
		return true
	})
	return bounds{s.low * low, s.value * value, s.high * high}, ok && value > 0
}

// cells calls visit with the cells of a rank whose face is sent, until it returns false.
func (p *Partition) cells(r *row, visit func(cell [3]int64) bool) bool {
	q, x0, x1 := r.g[0], r.x[0], r.x[1]
	if p.Swap {
		x0, x1 = x1, x0
	}
	only := int64(-1)
	if p.Step != 0 {
		if p.StepIndex >= len(r.index) {
			return false
		}
		if only = r.index[p.StepIndex]; p.Step < 0 {
			only = q - 1 - only
		}
		if only < 0 || only >= q {
			return false
		}
	}
	for c := range q {
		cell := [3]int64{(x0 + p.Sign*c + q) % q, (x1 - p.Sign*c + q) % q, c}
		n := cell[p.Normal]
		if only >= 0 && n != only || p.Skip == TrimFirst && n == 0 || p.Skip == TrimLast && n == q-1 {
			continue
		}
		if !visit(cell) {
			return false
		}
	}
	return true
}

// Domain returns the number of cells along the axes of the grid that the law cuts, by axis, from the preferred cuts.
// It is empty for laws with levels or without cuts.
func (h *Hypothesis) Domain() map[int]int64 {
	all := map[int]int64{}
	if h.Level != NoLevel {
		return all
	}
	for k, a := range h.Axes {
		if h.Partition != nil {
			a = 0 // both axes of the ranks cut all three of the cells
		}
		all[a] = h.Cuts[k][0].Extent
	}
	return all
}

// String formats the law, with g0, g1, ... for the grid's extents, x0, ... for coordinates, i0, ... for indices and P
// for the number of ranks.
func (h *Hypothesis) String() string {
	var parts []string
	if h.C != 1 || len(h.Axes) == 0 && len(h.Powers) == 0 && h.Factor == "" {
		parts = append(parts, exactNumber(h.C))
	}
	for a, p := range h.Powers {
		switch p {
		case 0:
		case 1:
			parts = append(parts, fmt.Sprintf("g%d", a))
		default:
			parts = append(parts, fmt.Sprintf("g%d^%d", a, p))
		}
	}
	if h.Factor != "" {
		parts = append(parts, h.Factor)
	}
	var cuts []string
	for k, a := range h.Axes {
		axis := fmt.Sprintf("g%d", a)
		if h.Partition != nil {
			axis = "q"
		}
		text := h.Cuts[k][0].text(axis)
		switch h.Level {
		case Halved:
			text = strings.Replace(text, "/", fmt.Sprintf("/2^i%d/", h.LevelIndex), 1)
		case Doubled:
			text = strings.Replace(text, "/", fmt.Sprintf(" 2^i%d/", h.LevelIndex), 1)
		}
		if n := len(h.Cuts[k]); n > 1 {
			text += fmt.Sprintf("{or %d others}", n-1)
		}
		cuts = append(cuts, text)
	}
	if p := h.Partition; p != nil {
		skip := map[Trim]string{NoTrim: "", TrimFirst: fmt.Sprintf(" but the first along axis %d", p.Normal),
			TrimLast: fmt.Sprintf(" but the last along axis %d", p.Normal)}[p.Skip]
		if p.Step != 0 {
			from := map[int]string{1: "first", -1: "last"}[p.Step]
			cuts = []string{fmt.Sprintf("%s of the cell that is i%d from the %s along axis %d",
				strings.Join(cuts, " "), p.StepIndex, from, p.Normal)}
			return strings.Join(append(parts, cuts...), " ")
		}
		cuts = []string{fmt.Sprintf("sum over the q cells of a rank%s of %s", skip, strings.Join(cuts, " "))}
	}
	text := strings.Join(append(parts, cuts...), " ")
	for _, t := range h.Sum {
		sign, c := " + ", t.C
		if c < 0 {
			sign, c = " - ", -c
		}
		if text == "0" && sign == " + " {
			text, sign = "", ""
		}
		text += sign
		if c != 1 {
			text += exactNumber(c) + " "
		}
		text += t.Variable
	}
	return text
}
