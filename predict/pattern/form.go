package pattern

import (
	"fmt"
	"math"
	"slices"
)

// NumberKind is a kind of Number.
type NumberKind string

// The kinds of numbers; g is the extent of an axis, i a component of the slot's index.
const (
	Literal NumberKind = "literal" // C + B*i
	Power   NumberKind = "power"   // 2^max(0, Log + B*i + C)
	Divided NumberKind = "divided" // floor(g / 2^(B*i + C))
)

// NumberLog is the logarithm that a Power counts from.
type NumberLog string

// The logarithms of a Power.
const (
	NoLog    NumberLog = ""      // 0
	FloorLog NumberLog = "floor" // floor(log2 g)
	CeilLog  NumberLog = "ceil"  // ceil(log2 g)
)

// Number is a displacement, mask or coordinate that may depend on the extent of an axis and on the slot's index.
type Number struct {
	Kind     NumberKind `json:"kind"`
	Negative bool       `json:"negative,omitempty"`
	Log      NumberLog  `json:"log,omitempty"`
	B        int32      `json:"b,omitempty"`
	// Component is the component of the index that B multiplies.
	Component int   `json:"component,omitempty"`
	C         int32 `json:"c,omitempty"`
}

// Value returns the number for an extent and an index.
func (n Number) Value(g int32, index []int32) int32 {
	e := n.C
	if n.B != 0 {
		e += n.B * index[n.Component]
	}
	switch n.Kind {
	case Power:
		switch n.Log {
		case FloorLog:
			e += log2(g)
		case CeilLog:
			e += log2up(g)
		}
		e = 1 << min(max(e, 0), 30)
	case Divided:
		e = g >> min(max(e, 0), 30)
	}
	if n.Negative {
		return -e
	}
	return e
}

// cost returns the description length of the number, in bits.
func (n Number) cost() float64 {
	c := 0.0
	switch n.Kind {
	case Literal:
		if n.B == 0 {
			if abs(n.C) < 2 {
				return 0
			}
			return 1 + 2*math.Log2(float64(abs(n.C)))
		}
		return 1.5 + 1.5*float64(abs(n.C))
	case Power:
		c = 1.5
	case Divided:
		c = 1.5 + 3*float64(abs(n.C-1))
		if n.B != 0 {
			c += 1
		}
		return c
	}
	if n.Log != NoLog {
		c++
	}
	if n.Log == CeilLog {
		c += 0.5
	}
	if n.B != 0 {
		c++
	}
	switch {
	case n.Log == NoLog:
	case n.B > 0: // steps that grow from a size that depends on the extent
		c += 5
	case n.B < 0:
		c += 2
	}
	return c + float64(abs(n.C))
}

func (n Number) String() string {
	sum := ""
	if n.B != 0 {
		name := "i"
		if n.Component > 0 {
			name = fmt.Sprintf("i%d", n.Component)
		}
		switch n.B {
		case 1:
			sum = name
		case -1:
			sum = "-" + name
		default:
			sum = fmt.Sprintf("%d%s", n.B, name)
		}
	}
	if n.C != 0 || sum == "" && n.Log == NoLog {
		if sum != "" || n.Log != NoLog {
			sum += fmt.Sprintf("%+d", n.C)
		} else {
			sum = fmt.Sprint(n.C)
		}
	}
	switch n.Kind {
	case Power:
		if n.Log != NoLog {
			if sum != "" && sum[0] != '+' && sum[0] != '-' {
				sum = "+" + sum
			}
			sum = map[NumberLog]string{FloorLog: "log2 g", CeilLog: "ceil log2 g"}[n.Log] + sum
		}
		sum = "2^(" + sum + ")"
		if n.Log == NoLog && n.C == 0 && n.B == 1 {
			sum = "2^i"
		}
	case Divided:
		if n.B == 0 {
			sum = fmt.Sprintf("g/%d", 1<<n.C)
		} else {
			sum = "g/2^(" + sum + ")"
		}
	}
	if n.Negative {
		if n.Kind == Literal && n.B != 0 {
			return "-(" + sum + ")"
		}
		return "-" + sum
	}
	return sum
}

// Op is an operation on a coordinate.
type Op string

// The operations on a coordinate x of an axis of extent g, with a number n.
const (
	Keep       Op = "keep"        // x
	Shift      Op = "shift"       // x+n; a rank for which this is outside the axis does not send
	Wrap       Op = "wrap"        // (x+n) mod g
	Xor        Op = "xor"         // x ^ n; a rank for which this is outside the axis does not send
	Reflect    Op = "reflect"     // (n-x) mod g: with -1 the mirror image
	Constant   Op = "at"          // n mod g: with -1 the last
	ParentLow  Op = "parent-low"  // x without its lowest bit; 0 does not send. The parent in a binomial tree
	ParentHigh Op = "parent-high" // x without its highest bit; 0 does not send. The parent in a tree that doubles
	ChildDown  Op = "child-down"  // the n-th child in a binomial tree, farthest first, n from 0
	HeapParent Op = "heap-parent" // (x-1)/n; 0 does not send
	HeapChild  Op = "heap-child"  // 2x+1+n; a rank for which this is outside the axis does not send
	// x ^ n among 2^floor(log2 g) that are left when the first even coordinates have folded into odd ones
	FoldXor Op = "fold-xor"
	// the other one of pairs, which begin at the even coordinates where n is even, at the odd ones where it is odd
	Pair   Op = "pair"
	Skew   Op = "skew"   // (x + n times the coordinate on axis From) mod g
	Others Op = "others" // the n-th coordinate, from 0, of those that are not x
)

// Rule is the operation on one coordinate, and the condition for taking part.
type Rule struct {
	// From is the axis of the source's coordinate, which differs from the rule's own axis in a transpose.
	From int    `json:"from"`
	Op   Op     `json:"op"`
	N    Number `json:"n"`
	// Root is the coordinate that counts as 0 in Op and Guard: they work on (x-Root) mod g, and Root is added to the
	// result.
	Root  Number `json:"root"`
	Guard Guard  `json:"guard"`
}

// apply returns the destination's coordinate on an axis of extent g for coordinate x, with the rule's number n.
func apply(op Op, n, x, g int32) (int32, bool) {
	switch op {
	case Keep:
		return x, true
	case Shift:
		y := x + n
		return y, y >= 0 && y < g
	case Wrap:
		return mod(x+n, g), true
	case Xor:
		y := x ^ n
		return y, y >= 0 && y < g
	case Reflect:
		return mod(n-x, g), true
	case Constant:
		return mod(n, g), true
	case ParentLow:
		return x & (x - 1), x > 0
	case ParentHigh:
		if x == 0 {
			return 0, false
		}
		return x ^ 1<<log2(x), true
	case ChildDown:
		return childDown(n, x, g)
	case HeapParent:
		if n < 1 || x == 0 {
			return 0, false
		}
		return (x - 1) / n, true
	case HeapChild:
		y := 2*x + 1 + n
		return y, y >= 0 && y < g
	case FoldXor:
		return foldXor(n, x, g)
	case Others:
		if n >= x {
			n++
		}
		return n, n >= 0 && n < g
	case Pair:
		n = mod(n, 2)
		y := (x + n) ^ 1 - n
		return y, y >= 0 && y < g
	}
	return 0, false
}

// childDown returns the n-th child of x in a binomial tree of g, farthest first: x + 2^j for the j below x's lowest
// bit.
func childDown(n, x, g int32) (int32, bool) {
	top := log2up(g)
	for j := top - 1; j >= 0; j-- {
		if x&(1<<(j+1)-1) != 0 || x+1<<j >= g {
			continue
		}
		if n == 0 {
			return x + 1<<j, true
		}
		n--
	}
	return 0, false
}

// foldXor returns the partner in a recursive doubling over any extent: in each pair of the first 2*rest coordinates,
// only the odd one takes part.
func foldXor(n, x, g int32) (int32, bool) {
	core := int32(1) << log2(g)
	rest := g - core
	new := x - rest
	if x < 2*rest {
		if x%2 == 0 {
			return 0, false
		}
		new = x / 2
	}
	to := new ^ n
	if to < 0 || to >= core {
		return 0, false
	}
	if to < rest {
		return 2*to + 1, true
	}
	return to + rest, true
}

func mod(x, g int32) int32 {
	if x %= g; x < 0 {
		x += g
	}
	return x
}

// rooted applies an operation to coordinates counted from root.
func rooted(op Op, n, root, x, g int32) (int32, bool) {
	if root == 0 {
		return apply(op, n, x, g)
	}
	y, ok := apply(op, n, mod(x-root, g), g)
	return mod(y+root, g), ok
}

// cost returns the description length of the rule without its guard, in bits.
func (r Rule) cost() float64 {
	c := r.Op.cost()
	if r.numbered() {
		c += r.N.cost()
	}
	if r.Op == Reflect && r.N != literal(-1) {
		c += 3
	}
	if r.Root != zero {
		c += 3 + r.Root.cost()
	}
	return c
}

func (op Op) cost() float64 {
	switch op {
	case Keep:
		return 0
	case Shift, Wrap, Constant:
		return 2
	case Xor:
		return 2.5
	case Reflect:
		return 3
	case Pair, Skew, Others:
		return 3.5
	case FoldXor:
		return 4
	}
	return 6.5
}

// numbered reports whether the operation has a number.
func (r Rule) numbered() bool { return r.Op != Keep && r.Op != ParentLow && r.Op != ParentHigh }

// cost returns the description length of a form, in bits. A repeated number or guard costs almost nothing, as it
// comes from one expression in the program.
func (f Form) cost() float64 {
	const again = 0.5
	const unlike = 6 // axes that go by the index in different ways
	c := 0.0
	ways := 0
	var numbers []Number
	seen := func(n Number) bool {
		n.Negative = false
		if n.Kind == Literal && n.B == 0 {
			return false
		}
		if slices.Contains(numbers, n) {
			return true
		}
		numbers = append(numbers, n)
		return false
	}
	for a, r := range f.Rules {
		c += r.cost()
		if r.numbered() && seen(r.N) {
			c += again - r.N.cost()
		} else if r.numbered() && r.N.B != 0 {
			if ways++; ways > 1 {
				c += unlike
			}
		}
		switch {
		case slices.ContainsFunc(f.Rules[:a], func(o Rule) bool { return o.Guard == r.Guard && r.Guard.Kind != All }):
			c += again
		case r.Guard.N != zero && seen(r.Guard.N):
			c += r.Guard.cost() - r.Guard.N.cost() + again
		default:
			c += r.Guard.cost()
		}
	}
	if f.Where != Anywhere {
		c += 5
	}
	return c
}

// zero is the number 0.
var zero = Number{Kind: Literal}

// literal returns the number c.
func literal(c int32) Number {
	if c < 0 {
		return Number{Kind: Literal, Negative: true, C: -c}
	}
	return Number{Kind: Literal, C: c}
}

func abs(x int32) int32 { return max(x, -x) }
