package pattern

import (
	"math"
	"slices"
)

// observation is a slot at one training process count at which a rank sends.
type observation struct {
	size  int // index of the process count among the training's
	index []int32
	m     Mapping
}

// class is the grid laws that have the same extents at all training sizes, so that the runs cannot tell them apart.
type class struct {
	grids []Grid
	dims  [][]int32 // per training size
	// coords has, per training size, the coordinates of all ranks, rank by rank.
	coords [][]int32
}

// margin is the number of bits by which a law may cost more than the cheapest one and still be kept as a rival.
const margin = 4

// classes returns the grid laws that have extents at all sizes, grouped by these extents. Laws with an axis that is
// never longer than 1 are left out, as they are laws of fewer axes. Classes with fewest axes come first.
func classes(sizes []int32) []*class { return classesOf(grids(sizes), sizes) }

// classesOf returns the classes of some grid laws.
func classesOf(laws []Grid, sizes []int32) []*class {
	var out []*class
	for _, g := range laws {
		dims := make([][]int32, len(sizes))
		longest := make([]int32, g.Axes)
		ok := true
		for i, p := range sizes {
			var d []int32
			if d, ok = g.Dims(p); !ok {
				break
			}
			dims[i] = d
			for a := range d {
				longest[a] = max(longest[a], d[a])
			}
		}
		if !ok || slices.Contains(longest, 1) && g.Axes > 1 {
			continue
		}
		at := slices.IndexFunc(out, func(c *class) bool { return slices.EqualFunc(c.dims, dims, slices.Equal) })
		if at < 0 {
			out = append(out, &class{dims: dims, coords: make([][]int32, len(sizes))})
			at = len(out) - 1
		}
		out[at].grids = append(out[at].grids, g)
	}
	for _, c := range out {
		// A fixed extent beside a plane is an unusual law: it counts only where no other has these extents.
		if usual := slices.DeleteFunc(slices.Clone(c.grids), Grid.unusual); len(usual) > 0 {
			c.grids = usual
		}
	}
	slices.SortStableFunc(out, func(a, b *class) int { return len(a.dims[0]) - len(b.dims[0]) })
	return out
}

// grids returns the library of grid laws; the fixed extents are those that divide all sizes.
func grids(sizes []int32) []Grid {
	line := Grid{Shape: Line, Axes: 1, Order: []int{0}}
	out := []Grid{line}
	var plane []Grid
	for k := 2; k <= 4; k++ {
		up := make([]int, k)
		for i := range up {
			up[i] = i
		}
		down := slices.Clone(up)
		slices.Reverse(down)
		if k < 4 {
			out = append(out, Grid{Shape: Cubic, Axes: k, Order: up})
		}
		for _, o := range permutations(k) {
			out = append(out, Grid{Shape: Deal, Axes: k, Order: o})
		}
		for _, s := range []Shape{Balanced, Greedy, Compact} {
			for _, o := range [][]int{up, down} {
				if s != Compact || k > 2 {
					out = append(out, Grid{Shape: s, Axes: k, Order: o})
				}
			}
		}
		if k == 3 {
			for _, o := range permutations(k) {
				out = append(out, Grid{Shape: Cascade, Axes: k, Order: o})
			}
		}
		if k == 2 {
			plane = slices.Clone(out[1:])
		}
	}
	common := int32(0)
	for _, p := range sizes {
		common = gcd(common, p)
	}
	for f := int32(2); f <= min(common, 64); f++ {
		if common%f != 0 {
			continue
		}
		for _, o := range permutations(2) {
			out = append(out, Grid{Shape: Columns, Axes: 2, Order: o, Fixed: f, Rest: &line})
		}
		for _, rest := range plane {
			for _, o := range [][]int{{0, 1, 2}, {1, 0, 2}, {1, 2, 0}} {
				out = append(out, Grid{Shape: Columns, Axes: 3, Order: o, Fixed: f, Rest: &rest})
			}
		}
	}
	return out
}

func gcd[T int32 | int64](a, b T) T {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// permutations of 0..k-1, ascending first.
func permutations(k int) [][]int {
	if k == 1 {
		return [][]int{{0}}
	}
	var out [][]int
	for first := range k {
		for _, p := range permutations(k - 1) {
			o := []int{first}
			for _, v := range p {
				if v >= first {
					v++
				}
				o = append(o, v)
			}
			out = append(out, o)
		}
	}
	return out
}

// coordsOf returns the coordinates of all ranks at a training size.
func (c *class) coordsOf(size int) []int32 {
	if c.coords[size] == nil {
		p := int32(1)
		for _, d := range c.dims[size] {
			p *= d
		}
		var all []int32
		for r := range p {
			all = append(all, coords(c.dims[size], r)...)
		}
		c.coords[size] = all
	}
	return c.coords[size]
}

// projection is one observation projected to the axes of a grid.
type projection struct {
	dims  []int32
	index []int32
	// to[a][b], when not nil, is the destination's coordinate on axis a as a function of the source's on axis b; -1:
	// not seen.
	to [][][]int32
	// used[a] are the coordinates of senders on axis a.
	used [][]bool
	// box means that all ranks with used coordinates send.
	box bool
}

func (c *class) project(o observation) projection {
	dims := c.dims[o.size]
	k := len(dims)
	p := projection{dims: dims, index: o.index, to: make([][][]int32, k), used: make([][]bool, k)}
	for a := range k {
		p.used[a] = make([]bool, dims[a])
		p.to[a] = make([][]int32, k)
		for b := range k {
			t := make([]int32, dims[b])
			for i := range t {
				t[i] = -1
			}
			p.to[a][b] = t
		}
	}
	all := c.coordsOf(o.size)
	senders := 0
	for r, d := range o.m.Dst {
		if d == None {
			continue
		}
		senders++
		x, y := all[r*k:(r+1)*k], all[int(d)*k:(int(d)+1)*k]
		for a := range k {
			p.used[a][x[a]] = true
			for b := range k {
				if t := p.to[a][b]; t != nil && t[x[b]] < 0 {
					t[x[b]] = y[a]
				} else if t != nil && t[x[b]] != y[a] {
					p.to[a][b] = nil
				}
			}
		}
	}
	volume := 1
	for a := range k {
		n := 0
		for _, u := range p.used[a] {
			if u {
				n++
			}
		}
		volume *= n
	}
	p.box = volume == senders
	return p
}

// fitClass returns the forms on a class of grids that reproduce all observations, cheapest first.
func fitClass(c *class, obs []observation, lib *library) []Form {
	ps := make([]projection, len(obs))
	k := len(c.dims[0])
	box := true
	for i, o := range obs {
		ps[i] = c.project(o)
		box = box && ps[i].box
		for a := range k {
			if !slices.ContainsFunc(ps[i].to[a], func(t []int32) bool { return t != nil }) {
				return c.fitSkew(obs)
			}
		}
	}
	if k == 1 && !box {
		return nil
	}
	rules := axisRules(ps, k, lib)
	if box {
		return c.combine(obs, rules, Anywhere)
	}
	// The senders are no product of coordinates: a condition on whole ranks may cut it.
	var out []Form
	for _, w := range wheres {
		out = append(out, c.combine(obs, rules, w)...)
	}
	return cheapest(out)
}

// fitSkew returns the forms on a plane that move along one axis by the coordinate on the other, as the blocks of a
// matrix do before Cannon's algorithm.
func (c *class) fitSkew(obs []observation) []Form {
	if len(c.dims[0]) != 2 {
		return nil
	}
	var out []Form
	for a := range 2 {
		for _, n := range []Number{literal(1), literal(-1)} {
			rules := make([]Rule, 2)
			for b := range rules {
				rules[b] = Rule{From: b, Op: Keep, N: zero, Root: zero, Guard: Guard{Kind: All, N: zero}}
			}
			rules[a].From, rules[a].Op, rules[a].N = 1-a, Skew, n
			for _, w := range []Where{Anywhere, NotSelf} {
				f := Form{Grids: c.grids, Rules: rules, Where: w}
				if f.Cost = f.cost(); c.explains(f, obs) {
					out = append(out, f)
				}
			}
		}
	}
	return cheapest(out)
}

// axisRules returns, for each axis, the rules that give the coordinates of all destinations; nil if an axis has none.
// Their guards select exactly the coordinates that senders have.
func axisRules(ps []projection, k int, lib *library) [][]Rule {
	out := make([][]Rule, k)
	for a := range k {
		from := a
		if slices.ContainsFunc(ps, func(p projection) bool { return p.to[a][a] == nil }) {
			from = -1
			for b := range k {
				if b != a && !slices.ContainsFunc(ps,
					func(p projection) bool { return p.to[a][b] == nil || p.dims[a] != p.dims[b] }) {
					from = b
					break
				}
			}
			if from < 0 {
				return nil
			}
		}
		for _, root := range lib.roots {
			if out[a] = rulesOf(ps, a, from, root, lib); len(out[a]) > 0 {
				break
			}
			if root == zero && k > 2 {
				break
			}
		}
		if len(out[a]) == 0 {
			return nil
		}
	}
	return out
}

// rulesOf returns the rules of axis a with one root, cheapest first, within the margin.
func rulesOf(ps []projection, a, from int, root Number, lib *library) []Rule {
	var steps []Rule
	least := math.Inf(1)
	for _, s := range lib.steps {
		if s.cost > least+margin {
			break
		}
		if from != a && s.op != Keep && s.op != Reflect {
			continue
		}
		r := Rule{From: from, Op: s.op, N: s.n, Root: root, Guard: Guard{Kind: All, N: zero}}
		if root != zero && (s.op == Keep || s.op == Wrap) && root.Kind == Literal {
			// A turned ring is a ring; only its guard can have a root.
			if !lib.indexed {
				continue
			}
		}
		if !gives(ps, a, r) || !grows(ps, a, r.N) || !fits(ps, a, r) {
			continue
		}
		steps = append(steps, r)
		least = min(least, s.cost)
	}
	type priced struct {
		rule int
		cost float64
	}
	var rules []Rule
	var order []priced
	memo := map[string][]Guard{}
	for _, s := range steps {
		able, key := ability(ps, a, s)
		guards, ok := memo[key]
		if !ok {
			guards = guardsOf(ps, a, s.Root, able, lib)
			memo[key] = guards
		}
		for _, g := range guards {
			r := s
			r.Guard = g
			order = append(order, priced{len(rules), r.total()})
			rules = append(rules, r)
		}
	}
	slices.SortStableFunc(order, func(x, y priced) int { return compare(x.cost, y.cost) })
	var out []Rule
	for i, o := range order {
		if o.cost > order[0].cost+margin || i == 40 {
			break
		}
		out = append(out, rules[o.rule])
	}
	return out
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// total returns the cost of the rule with its guard.
func (r Rule) total() float64 { return r.cost() + r.Guard.cost() }

// gives reports whether a rule's step gives the destination's coordinate of every sender.
func gives(ps []projection, a int, r Rule) bool {
	for i := range ps {
		p := &ps[i]
		g := p.dims[a]
		n, root := r.N.Value(g, p.index), mod(r.Root.Value(g, p.index), g)
		for x, y := range p.to[a][r.From] {
			if y < 0 {
				continue
			}
			if got, ok := rooted(r.Op, n, root, int32(x), g); !ok || got != y {
				return false
			}
		}
	}
	return true
}

// grows reports whether the runs show that a number is a power of the extent. A number that is 1 in most runs,
// because its exponent starts far below 0, would fit anything that changed once.
func grows(ps []projection, a int, n Number) bool {
	if n.Kind != Power || n.Log == NoLog || n.B != 0 || abs(n.C) < 3 {
		return true
	}
	var seen []int32
	for i := range ps {
		if v := n.Value(ps[i].dims[a], ps[i].index); !slices.Contains(seen, v) {
			seen = append(seen, v)
		}
	}
	return len(seen) > 2
}

// fits reports whether a constant distance around an axis is less than its extent in some run. A longer one goes round
// the axis in every run: it is chosen only because it ends at the right rank by chance.
func fits(ps []projection, a int, r Rule) bool {
	return r.Op != Wrap || r.N.Kind != Literal || r.N.B != 0 ||
		slices.ContainsFunc(ps, func(p projection) bool { return r.N.C < p.dims[a] })
}

// ability returns, per observation, from which coordinates of axis a the step can send, and a key of that.
func ability(ps []projection, a int, r Rule) ([][]bool, string) {
	out := make([][]bool, len(ps))
	var key []byte
	for i := range ps {
		p := &ps[i]
		g := p.dims[a]
		n, root := r.N.Value(g, p.index), mod(r.Root.Value(g, p.index), g)
		out[i] = make([]bool, g)
		for x := range g {
			ok := true
			if r.From == a {
				var y int32
				y, ok = rooted(r.Op, n, root, x, g)
				ok = ok && y < g
			}
			out[i][x] = ok
			if ok {
				key = append(key, 1)
			} else {
				key = append(key, 0)
			}
		}
	}
	return out, string(key)
}

// guardsOf returns the guards that select exactly the senders' coordinates of those from which the step can send,
// cheapest first.
func guardsOf(ps []projection, a int, root Number, able [][]bool, lib *library) []Guard {
	var out []Guard
	least := math.Inf(1)
	for _, c := range lib.guards {
		if c.cost > least+margin {
			break
		}
		if guards(ps, a, root, able, c.guard) && grows(ps, a, c.guard.N) {
			out = append(out, c.guard)
			least = min(least, c.cost)
		}
	}
	return out
}

func guards(ps []projection, a int, rootN Number, able [][]bool, c Guard) bool {
	for i := range ps {
		p := &ps[i]
		g := p.dims[a]
		n, root := c.N.Value(g, p.index), mod(rootN.Value(g, p.index), g)
		for x, used := range p.used[a] {
			if able[i][x] && holds(c.Kind, n, c.Offset, mod(int32(x)-root, g), g) != used {
				return false
			}
			if used && !able[i][x] {
				return false
			}
		}
	}
	return true
}

// combine makes the forms of the axes' rules and keeps those that give all observations.
func (c *class) combine(obs []observation, rules [][]Rule, where Where) []Form {
	if rules == nil {
		return nil
	}
	if len(rules) < 2 && (where == OnDiagonal || where == OffDiagonal || where == AboveDiag || where == BelowDiag) {
		return nil
	}
	var out []Form
	keep := func(rules []Rule, joint bool) {
		f := Form{Grids: c.grids, Rules: slices.Clone(rules), Where: where, joint: joint}
		f.Cost = f.cost()
		if !slices.ContainsFunc(out, func(o Form) bool { return slices.Equal(o.Rules, f.Rules) }) &&
			c.explains(f, obs) {
			out = append(out, f)
		}
	}
	pick := make([]Rule, len(rules))
	least := 0.0
	for _, r := range rules {
		least += r[0].total()
	}
	var try func(a int, cost float64)
	try = func(a int, cost float64) {
		if len(out) == 100 {
			return
		}
		if a == len(rules) {
			keep(pick, false)
			return
		}
		for _, r := range rules[a] {
			extra := r.total() - rules[a][0].total()
			if cost+extra > least+margin {
				break
			}
			pick[a] = r
			try(a+1, cost+extra)
		}
	}
	try(0, least)
	for _, f := range out[:min(len(out), 20)] {
		f.joined(func(rules []Rule) { keep(rules, true) })
	}
	return cheapest(out)
}

// joined calls yield with variants of the form's rules: a power of two that guards one axis guards all of them, and
// is also the displacement. In a hierarchy of grids all axes are thinned out in the same way, but short axes do not
// show it.
func (f Form) joined(yield func([]Rule)) {
	var done []Guard
	for _, r := range f.Rules {
		if r.Guard.Kind != LowBits || r.Guard.N.Kind != Power || slices.Contains(done, r.Guard) || len(f.Rules) == 1 {
			continue
		}
		done = append(done, r.Guard)
		all := slices.Clone(f.Rules)
		for a := range all {
			if all[a].Guard.Kind == All {
				all[a].Guard = r.Guard
			}
		}
		yield(all)
		for a := range all {
			if all[a].Op == Shift || all[a].Op == Wrap {
				n := r.Guard.N
				n.Negative = all[a].N.Negative
				all[a].N = n
			}
		}
		yield(all)
	}
}

// explains reports whether a form reproduces every observation.
func (c *class) explains(f Form, obs []observation) bool {
	for _, o := range obs {
		m := f.bind(o.m.Ranks, c.dims[o.size], o.index)
		for r, want := range o.m.Dst {
			if got, ok := m.Dst(int32(r)); ok != (want != None) || ok && got != want {
				return false
			}
		}
	}
	return true
}

// cheapest sorts forms by cost and keeps those within the margin of the first.
func cheapest(forms []Form) []Form {
	slices.SortStableFunc(forms, func(a, b Form) int { return compare(a.Cost, b.Cost) })
	for i, f := range forms {
		if f.Cost > forms[0].Cost+margin {
			return forms[:i]
		}
	}
	return forms
}

// fitBits returns the laws that reorder the bits of the rank.
func fitBits(line *class, obs []observation) []Form {
	var out []Form
	for _, o := range obs {
		if !powerOfTwo(o.m.Ranks) {
			return nil
		}
	}
	for i, b := range bitOrders {
		for _, w := range []Where{Anywhere, NotSelf} {
			f := Form{Grids: line.grids, Bits: b, Where: w, Cost: 4 + float64(i)/2}
			if w != Anywhere {
				f.Cost += 3
			}
			if line.explains(f, obs) {
				out = append(out, f)
			}
		}
	}
	return cheapest(out)
}

// evidence returns the information in the observations, in bits: which ranks send, and to whom.
func evidence(obs []observation) float64 {
	bits := 0.0
	for _, o := range obs {
		p, s := float64(o.m.Ranks), float64(o.m.senders())
		whole, _ := math.Lgamma(p + 1)
		some, _ := math.Lgamma(s + 1)
		rest, _ := math.Lgamma(p - s + 1)
		bits += (whole-some-rest)/math.Ln2 + s*math.Log2(p)
	}
	return bits
}
