package pattern

import (
	"fmt"
	"slices"
	"strings"
)

// Where is a condition on a rank as a whole, in addition to the guards of the axes.
type Where string

// The conditions on whole ranks. x and y are the coordinates on axes 0 and 1.
const (
	Anywhere    Where = ""
	NotSelf     Where = "not-self"     // the destination is another rank
	NotOrigin   Where = "not-origin"   // some coordinate is not 0
	NotCorner   Where = "not-corner"   // some coordinate is not the last
	OnDiagonal  Where = "on-diagonal"  // x = y
	OffDiagonal Where = "off-diagonal" // x != y
	AboveDiag   Where = "above"        // x > y
	BelowDiag   Where = "below"        // x < y
	EvenSum     Where = "even-sum"     // the coordinates' sum is even
	OddSum      Where = "odd-sum"      // the coordinates' sum is odd
	OnBorder    Where = "on-border"    // some coordinate is the first or the last
	Inside      Where = "inside"       // no coordinate is the first or the last
	Upwards     Where = "upwards"      // the destination is a higher rank
	Downwards   Where = "downwards"    // the destination is a lower rank
)

// wheres are the conditions that are tried; those that need two axes come last.
var wheres = []Where{NotSelf, Upwards, Downwards, NotOrigin, NotCorner, OnBorder, Inside, EvenSum, OddSum, OnDiagonal,
	OffDiagonal, AboveDiag, BelowDiag}

// holds reports whether a rank with coordinates x on extents dims takes part.
func (w Where) holds(x, dims []int32, rank, dst int32) bool {
	switch w {
	case Anywhere:
		return true
	case NotSelf:
		return rank != dst
	case Upwards:
		return dst > rank
	case Downwards:
		return dst < rank
	case NotOrigin:
		return rank != 0
	case NotCorner:
		for a, d := range dims {
			if x[a] != d-1 {
				return true
			}
		}
		return false
	case EvenSum, OddSum:
		sum := int32(0)
		for a := range dims {
			sum += x[a]
		}
		return (sum%2 == 0) == (w == EvenSum)
	case OnBorder, Inside:
		for a, d := range dims {
			if x[a] == 0 || x[a] == d-1 {
				return w == OnBorder
			}
		}
		return w == Inside
	}
	switch w {
	case OnDiagonal:
		return x[0] == x[1]
	case OffDiagonal:
		return x[0] != x[1]
	case AboveDiag:
		return x[0] > x[1]
	}
	return x[0] < x[1]
}

// BitOrder is a law that reorders the bits of a rank; the process count must be a power of two, 2^n.
type BitOrder string

// The orders of bits.
const (
	NoBits     BitOrder = ""
	Reverse    BitOrder = "reverse"     // bit j goes to n-1-j
	RotateUp   BitOrder = "rotate-up"   // bit j goes to j+1 mod n: a perfect shuffle
	RotateDown BitOrder = "rotate-down" // bit j goes to j-1 mod n
	// the upper and the lower floor(n/2) bits change places; of odd n the lowest bit stays
	SwapLow    BitOrder = "swap-low"
	SwapMiddle BitOrder = "swap-middle" // the same, the bit between them stays
	SwapHigh   BitOrder = "swap-high"   // the same, the highest bit stays
	RotateHalf BitOrder = "rotate-half" // bit j goes to j+floor(n/2) mod n
	RotateCeil BitOrder = "rotate-ceil" // bit j goes to j+ceil(n/2) mod n
)

var bitOrders = []BitOrder{Reverse, SwapLow, SwapMiddle, SwapHigh, RotateHalf, RotateCeil, RotateUp, RotateDown}

// order returns, for each bit of the destination, the bit of the source.
func (b BitOrder) order(n int32) []int32 {
	o := make([]int32, n)
	for j := range n {
		to, h := j, n/2
		switch b {
		case Reverse:
			to = n - 1 - j
		case RotateUp:
			to = (j + 1) % n
		case RotateDown:
			to = (j + n - 1) % n
		case RotateHalf:
			to = (j + h) % n
		case RotateCeil:
			to = (j + n - h) % n
		case SwapLow:
			to = swapped(j, n%2, n%2+h, h)
		case SwapMiddle:
			to = swapped(j, 0, n-h, h)
		case SwapHigh:
			to = swapped(j, 0, h, h)
		}
		o[to] = j
	}
	return o
}

// swapped returns the place of j after the fields [a, a+w) and [b, b+w) have changed places.
func swapped(j, a, b, w int32) int32 {
	switch {
	case j >= a && j < a+w:
		return j - a + b
	case j >= b && j < b+w:
		return j - b + a
	}
	return j
}

// Presence is a condition on the process counts at which the communication takes place.
type Presence struct {
	Kind PresenceKind `json:"kind"`
	// Axis and N belong to Extent; of FromRanks, N is the process count.
	Axis int   `json:"axis,omitempty"`
	N    int32 `json:"n,omitempty"`
}

// PresenceKind is a condition on a process count P of a run.
type PresenceKind string

// The conditions.
const (
	Always       PresenceKind = ""
	FromRanks    PresenceKind = "from"          // P >= N
	PowersOnly   PresenceKind = "powers-of-two" // P is a power of two
	PowersNever  PresenceKind = "no-power"      // P is not a power of two
	MultipleOf   PresenceKind = "multiple"      // P is a multiple of N
	EvenRanks    PresenceKind = "even"          // P is even
	OddRanks     PresenceKind = "odd"           // P is odd
	EvenExponent PresenceKind = "even-exponent" // log2 P is even
	OddExponent  PresenceKind = "odd-exponent"  // log2 P is odd
	Extent       PresenceKind = "extent"        // the extent of axis Axis is above N
	OddExtent    PresenceKind = "odd-extent"    // the extent of axis Axis is odd
	Erratic      PresenceKind = "erratic"       // no condition fits the runs: the form cannot be used
)

func (p Presence) holds(ranks int32, dims []int32) bool {
	switch p.Kind {
	case FromRanks:
		return ranks >= p.N
	case PowersOnly:
		return powerOfTwo(ranks)
	case PowersNever:
		return !powerOfTwo(ranks)
	case MultipleOf:
		return ranks%p.N == 0
	case EvenRanks:
		return ranks%2 == 0
	case OddRanks:
		return ranks%2 == 1
	case EvenExponent:
		return powerOfTwo(ranks) && log2(ranks)%2 == 0
	case OddExponent:
		return powerOfTwo(ranks) && log2(ranks)%2 == 1
	case Extent:
		return dims[p.Axis] > p.N
	case OddExtent:
		return dims[p.Axis]%2 == 1
	}
	return true
}

// Form is one hypothesis about a communication that reproduces all its training runs: a grid, an operation on each
// coordinate, and conditions on the senders.
type Form struct {
	// Grids are the grid laws that the training runs cannot tell apart, simplest first.
	Grids []Grid `json:"grids"`
	Rules []Rule `json:"rules,omitempty"`
	// Bits is set when the form reorders the bits of the rank instead.
	Bits BitOrder `json:"bits,omitempty"`
	// Listed is set when the form lists the destinations by rank instead, the same on any number of ranks.
	Listed   []int32  `json:"listed,omitempty"`
	Where    Where    `json:"where,omitempty"`
	Presence Presence `json:"presence,omitzero"`
	// Cost is the description length, in bits, by which forms of one slot are compared.
	Cost float64 `json:"cost"`

	// Short are axes along which the form moves though no run has more than two ranks there: it cannot be applied to
	// longer ones.
	Short []int `json:"short,omitempty"`
	// Narrow are axes on which a guard names a coordinate though no run has more than narrowExtent ranks there.
	Narrow []int `json:"narrow,omitempty"`
	// Unaligned means that the levels of the form's guards are those of a hierarchy that the program visits the other
	// way round, or may: on extents which the runs have they do not matter.
	Unaligned bool `json:"unaligned,omitempty"`

	joint bool // guards were extended to axes that are too short to show them
}

// Map is a form at one process count and index.
type Map struct {
	Ranks int32
	// Dims are the extents of the grid, axis 0 first.
	Dims []int32
	// Borrowed means that a sign or shape was taken from siblings, as the training runs have at most two ranks on an
	// axis.
	Borrowed bool

	rules  []boundRule
	bits   []int32
	where  Where
	absent bool
	table  []int32 // by rank, instead of all rules
}

type boundRule struct {
	from                       int
	op                         Op
	n, root, g, stride, guardN int32
	guard                      GuardKind
	offset                     int32
}

// bind evaluates a form on extents.
func (f Form) bind(ranks int32, dims, index []int32) *Map {
	m := &Map{Ranks: ranks, Dims: dims, where: f.Where, absent: !f.Presence.holds(ranks, dims)}
	if f.Listed != nil {
		m.table = f.lists(ranks)
		m.absent = m.absent || m.table == nil
		return m
	}
	if f.Bits != NoBits {
		m.absent = m.absent || !powerOfTwo(ranks)
		if !m.absent {
			m.bits = f.Bits.order(log2(ranks))
		}
		return m
	}
	stride := int32(1)
	m.rules = make([]boundRule, len(f.Rules))
	for a, r := range f.Rules {
		g := dims[a]
		m.rules[a] = boundRule{from: r.From, op: r.Op, n: r.N.Value(g, index), root: mod(r.Root.Value(g, index), g),
			g:      g,
			stride: stride,
			guard:  r.Guard.Kind, guardN: r.Guard.N.Value(g, index), offset: r.Guard.Offset}
		stride *= g
	}
	return m
}

// maxAxes is the largest number of axes of a grid.
const maxAxes = 5

// Dst returns the rank to which a rank sends, and false when it does not send.
func (m *Map) Dst(rank int32) (dst int32, sends bool) {
	if m.absent || rank < 0 || rank >= m.Ranks {
		return None, false
	}
	if m.table != nil {
		return m.table[rank], m.table[rank] != None
	}
	var x [maxAxes]int32
	if m.rules == nil {
		dst = permuted(m.bits, rank)
		if !m.where.holds(x[:1], m.Dims, rank, dst) {
			return None, false
		}
		return dst, true
	}
	rest := rank
	for a, r := range m.rules {
		x[a] = rest % r.g
		rest /= r.g
	}
	for a, r := range m.rules {
		if !holds(r.guard, r.guardN, r.offset, mod(x[a]-r.root, r.g), r.g) {
			return None, false
		}
		y, ok := r.coordinate(a, x[:])
		if !ok || y >= r.g {
			return None, false
		}
		dst += y * r.stride
	}
	if !m.where.holds(x[:], m.Dims, rank, dst) {
		return None, false
	}
	return dst, true
}

// coordinate returns the destination's coordinate on the rule's axis, for a rank with coordinates x.
func (r *boundRule) coordinate(axis int, x []int32) (int32, bool) {
	if r.op == Skew {
		return mod(x[axis]+r.n*x[r.from], r.g), true
	}
	return rooted(r.op, r.n, r.root, x[r.from], r.g)
}

// Mapping returns the destinations of all ranks.
func (m *Map) Mapping() Mapping {
	t := Mapping{Ranks: m.Ranks, Dst: make([]int32, m.Ranks)}
	for r := range t.Dst {
		t.Dst[r] = None
		if d, ok := m.Dst(int32(r)); ok {
			t.Dst[r] = d
		}
	}
	return t
}

// axisName returns the name of an axis.
func axisName(a int) string { return string("xyzuvw"[a]) }

// String formats the form: "dst = wrap_x(+1) on a q x q grid".
func (f Form) String() string {
	var b strings.Builder
	b.WriteString("dst = ")
	switch {
	case f.Listed != nil:
		b.WriteString("as in the runs: ")
		for r, d := range f.Listed {
			if d != None {
				fmt.Fprintf(&b, "%d to %d, ", r, d)
			}
		}
		b.WriteString("no other rank")
	case f.Bits != NoBits:
		fmt.Fprintf(&b, "bits %s of the rank, P a power of two", f.Bits)
	default:
		b.WriteString(f.ruleText())
	}
	if guards := f.guardText(); len(guards) > 0 {
		b.WriteString(" if " + strings.Join(guards, ", "))
	}
	if f.Bits == NoBits && f.Listed == nil {
		fmt.Fprintf(&b, " on a %s", f.Grids[0])
	}
	if p := f.Presence; p.Kind != Always {
		fmt.Fprintf(&b, ", only when %s", p)
	}
	return b.String()
}

func (f Form) ruleText() string {
	var parts []string
	for a, r := range f.Rules {
		if r.Op == Keep && r.From == a {
			continue
		}
		name, from := axisName(a), axisName(r.From)
		if len(f.Rules) == 1 {
			name, from = "rank", "rank"
		}
		n := r.N.String()
		if (r.Op == Shift || r.Op == Wrap) && n[0] != '-' {
			n = "+" + n
		}
		text := fmt.Sprintf("%s_%s(%s)", r.Op, name, n)
		switch r.Op {
		case Keep:
			text = fmt.Sprintf("%s := %s", name, from)
		case Reflect:
			if r.N == literal(-1) {
				text = "mirror_" + name
			}
		case ParentLow, ParentHigh:
			text = fmt.Sprintf("%s_%s", r.Op, name)
		}
		if r.Op == Skew {
			text = fmt.Sprintf("skew_%s(%s%s)", name, n, from)
			if n[0] != '-' {
				text = fmt.Sprintf("skew_%s(+%s%s)", name, n, from)
			}
			text = strings.Replace(text, "1"+from, from, 1)
		} else if r.From != a && r.Op != Keep {
			text += " of " + from
		}
		if r.Root != zero {
			text += fmt.Sprintf(" from root %s", r.Root)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "self"
	}
	return strings.Join(parts, " ")
}

func (f Form) guardText() []string {
	var out []string
	for a, r := range f.Rules {
		name := axisName(a)
		if len(f.Rules) == 1 {
			name = "rank"
		}
		if t := r.Guard.text(name); t != "" {
			out = append(out, t)
		}
	}
	if f.Where != Anywhere {
		out = append(out, string(f.Where))
	}
	return out
}

func (p Presence) String() string {
	switch p.Kind {
	case FromRanks:
		return fmt.Sprintf("P >= %d", p.N)
	case MultipleOf:
		return fmt.Sprintf("P is a multiple of %d", p.N)
	case Extent:
		return fmt.Sprintf("%s has more than %d", axisName(p.Axis), p.N)
	case OddExtent:
		return fmt.Sprintf("%s has an odd number", axisName(p.Axis))
	case PowersOnly:
		return "P is a power of two"
	case PowersNever:
		return "P is not a power of two"
	case EvenExponent:
		return "log2 P is even"
	case OddExponent:
		return "log2 P is odd"
	}
	return "P is " + string(p.Kind)
}

// equalMaps reports whether two maps have the same destinations.
func equalMaps(a, b *Map) bool {
	if a.absent && b.absent {
		return true
	}
	if a.absent == b.absent && a.table == nil && b.table == nil && slices.Equal(a.Dims, b.Dims) && slices.Equal(a.rules, b.rules) &&
		slices.Equal(a.bits, b.bits) && a.where == b.where {
		return true
	}
	for r := range a.Ranks {
		da, _ := a.Dst(r)
		db, _ := b.Dst(r)
		if da != db {
			return false
		}
	}
	return true
}

// HasSender reports whether a rank sends.
func (m *Map) HasSender() bool {
	for r := range m.Ranks {
		if _, ok := m.Dst(r); ok {
			return true
		}
	}
	return false
}

// ShowsNoPartner reports whether in all runs every rank that sends does so to itself. That may be a copy, or an axis of
// one rank, which does not show to whom.
func (l *Law) ShowsNoPartner() bool {
	if len(l.Forms) == 0 || l.Forms[0].Bits != NoBits || l.Forms[0].Listed != nil {
		return false
	}
	for a, r := range l.Forms[0].Rules {
		if r.moves(a) {
			return false
		}
	}
	return true
}

// IsGuarded reports whether only some of the ranks send by a law.
func IsGuarded(l *Law) bool {
	return len(l.Forms) > 0 && (l.Forms[0].Where != Anywhere ||
		slices.ContainsFunc(l.Forms[0].Rules, func(r Rule) bool { return r.Guard.Kind != All }))
}
