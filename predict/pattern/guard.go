package pattern

import "fmt"

// GuardKind is a kind of condition on a coordinate.
type GuardKind string

// The kinds of guards on a coordinate x of an axis of extent g, with a number n.
const (
	All      GuardKind = "all"
	First    GuardKind = "first"     // x = 0
	Last     GuardKind = "last"      // x = g-1
	NotFirst GuardKind = "not-first" // x > 0
	NotLast  GuardKind = "not-last"  // x < g-1
	Interior GuardKind = "interior"  // 0 < x < g-1
	Border   GuardKind = "border"    // x = 0 or x = g-1
	Equal    GuardKind = "equal"     // x = n mod g
	NotEqual GuardKind = "not-equal" // x != n mod g
	Below    GuardKind = "below"     // x < n
	FromOn   GuardKind = "from"      // x >= n
	// x mod n = Offset, n a power of two or a small literal; Offset -1 is n-1, -2 is n/2
	LowBits  GuardKind = "low-bits"
	BitSet   GuardKind = "bit-set"   // x & n != 0
	BitClear GuardKind = "bit-clear" // x & n = 0
	// x < 2(g - 2^floor(log2 g)) and x mod 2 = Offset: ranks that fold in or out of a power of two
	Folded GuardKind = "folded"
	// all but Folded with Offset 0: ranks that take part in the exchange of a power of two
	Core GuardKind = "core"
)

// Guard is a condition on a coordinate.
type Guard struct {
	Kind   GuardKind `json:"kind"`
	N      Number    `json:"n"`
	Offset int32     `json:"offset,omitempty"`
}

// holds reports whether coordinate x on an axis of extent g takes part; n is the guard's number there.
func holds(kind GuardKind, n, offset, x, g int32) bool {
	switch kind {
	case All:
		return true
	case First:
		return x == 0
	case Last:
		return x == g-1
	case NotFirst:
		return x > 0
	case NotLast:
		return x < g-1
	case Interior:
		return x > 0 && x < g-1
	case Border:
		return x == 0 || x == g-1
	case Equal:
		return x == mod(n, g)
	case NotEqual:
		return x != mod(n, g)
	case Below:
		return x < n
	case FromOn:
		return x >= n
	case LowBits:
		switch offset {
		case -1:
			offset = n - 1
		case -2:
			if n < 2 {
				return false
			}
			offset = n / 2
		}
		return n > 0 && x%n == offset
	case BitSet:
		return x&n != 0
	case BitClear:
		return x&n == 0
	case Folded:
		return x < 2*(g-1<<log2(g)) && x%2 == offset
	case Core:
		return x >= 2*(g-1<<log2(g)) || x%2 == 1
	}
	return false
}

// cost returns the description length of the guard in bits. It is above the margin between rivals, so that no guard
// is assumed if all ranks send.
func (g Guard) cost() float64 {
	const any = 3
	switch g.Kind {
	case "", All:
		return 0
	case First, Last, NotFirst, NotLast:
		return any + 1.5
	case Interior, Border:
		return any + 2
	case Folded:
		return any + 3
	case Core:
		return any + 5
	case LowBits:
		if g.N == literal(2) {
			return any + 2
		}
		if g.N.Kind == Literal {
			return any + 2 + float64(g.N.C) + float64(abs(g.Offset))/2
		}
		return any + 1 + g.N.cost() + float64(abs(g.Offset))/4
	}
	return any + 2 + g.N.cost()
}

// text formats the guard as a condition on a coordinate, "" for All.
func (g Guard) text(x string) string {
	switch g.Kind {
	case "", All:
		return ""
	case First:
		return x + " first"
	case Last:
		return x + " last"
	case NotFirst:
		return x + " not first"
	case NotLast:
		return x + " not last"
	case Interior:
		return x + " neither first nor last"
	case Border:
		return x + " first or last"
	case Equal:
		return fmt.Sprintf("%s = %s", x, g.N)
	case NotEqual:
		return fmt.Sprintf("%s != %s", x, g.N)
	case Below:
		return fmt.Sprintf("%s < %s", x, g.N)
	case FromOn:
		return fmt.Sprintf("%s >= %s", x, g.N)
	case LowBits:
		offset := fmt.Sprint(g.Offset)
		switch g.Offset {
		case -1:
			offset = fmt.Sprintf("%s-1", g.N)
		case -2:
			offset = fmt.Sprintf("%s/2", g.N)
		}
		return fmt.Sprintf("%s mod %s = %s", x, g.N, offset)
	case BitSet:
		return fmt.Sprintf("%s has bit %s", x, g.N)
	case BitClear:
		return fmt.Sprintf("%s does not have bit %s", x, g.N)
	case Folded:
		return fmt.Sprintf("%s < 2(g-2^floor(log2 g)) and mod 2 = %d", x, g.Offset)
	case Core:
		return fmt.Sprintf("%s in the folded power of two", x)
	}
	return string(g.Kind)
}
