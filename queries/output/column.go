package output

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/queries"
)

// kind is how people read the values of a column.
type kind int

const (
	plain    kind = iota // a name, a text, or a number that names something, such as a rank: as it is
	count                // a number: digits in groups
	share                // a part of 1: in percent
	duration             // a time in ns
	size                 // a size in bytes
	rate                 // bytes/s
)

// unitsOf are the units of the kinds that have some.
var unitsOf = map[kind][]units.Unit{duration: units.Times, size: units.Sizes, rate: units.Rates}

// kindOf returns the kind of a column from its unit. A number without one has the kind that its name ends in, as in
// the user's own SQL: wait_ns, sent_bytes, bytes_per_s, time_share, app_fraction.
func kindOf(c queries.Column) kind {
	switch {
	case c.Unit == "" || !numeric(c.Type):
		return plain
	case c.Unit == "ns":
		return duration
	case c.Unit == "bytes":
		return size
	case c.Unit == "bytes/s":
		return rate
	case c.Share:
		return share
	case c.Unit != "1":
		return count
	}
	name := "_" + c.Name
	switch real := c.Type == "DOUBLE" || c.Type == "FLOAT"; {
	case strings.HasSuffix(name, "_ns"):
		return duration
	case strings.HasSuffix(name, "_bytes"):
		return size
	case strings.HasSuffix(name, "_bytes_per_s"):
		return rate
	case real && (strings.HasSuffix(name, "_share") || strings.HasSuffix(name, "_fraction")):
		return share
	}
	return count
}

// floatOf returns a number of the engine as a float; ok is false for other values.
func floatOf(v any) (x float64, ok bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case float32:
		return float64(n), true
	case uint64:
		return float64(n), true
	case *big.Int:
		x, _ = new(big.Float).SetInt(n).Float64()
		return x, true
	case duckdb.Decimal:
		return n.Float64(), true
	}
	n, ok := integer(v)
	return float64(n), ok
}

// Shown returns a single value for people, with its unit: 1.26 ms, 38 %; null is empty. Numbers that name something (a
// rank, a tag, a hash: no unit) keep their plain digits, counts all of theirs in groups of three.
func Shown(v any, c queries.Column) string {
	x, ok := floatOf(v)
	k := kindOf(c)
	switch {
	case !ok || k == plain:
		return cell(v, c.Type)
	case k == share:
		return units.Percent(x)
	case k != count:
		return units.WithUnit(x, unitsOf[k])
	}
	return countText(v, x, c)
}

// countText writes a number without unit: whole ones with all their digits.
func countText(v any, x float64, c queries.Column) string {
	if c.Type == "DOUBLE" || c.Type == "FLOAT" {
		return units.Number(x)
	}
	return units.Group(cell(v, c.Type))
}

// column is a column of a table for people.
type column struct {
	queries.Column
	kind kind
	// unit is the common unit of all values, named by the header; its Size is 0 if each value has its own.
	unit units.Unit
	// decimals is the greatest width of a point and the digits after it: numbers are aligned by their points.
	decimals int
	head     string
}

// setUnits chooses the units of columns from a sample of their values: one for all times of the table if that fits, so
// that they compare, else one for all values of a column, else none.
func setUnits(columns []*column, values [][]any) {
	for k, all := range unitsOf {
		var together []any
		number := 0
		for i, c := range columns {
			if c.kind == k {
				together = append(together, values[i]...)
				number++
			}
		}
		var shared units.Unit
		if k == duration && number > 1 {
			shared = sharedUnit(together, all)
		}
		for i, c := range columns {
			if c.kind != k {
				continue
			}
			if c.unit = shared; shared.Size == 0 {
				c.unit = commonUnit(values[i], all)
			}
		}
	}
	for i, c := range columns {
		if _, most := extent(values[i]); c.kind == share && !c.Share && most > 1 {
			c.kind = count // only its name is that of a share
		}
		if c.kind == share {
			c.unit = units.Unit{Name: "%", Size: 0.01}
		}
		for _, v := range values[i] {
			c.decimals = max(c.decimals, c.after(c.text(v)))
		}
	}
}

// Values share a unit if the least of them is not below a hundredth of it; those of several columns, and sizes in
// bytes, if the greatest has no more than five digits before its point.
const (
	leastOfUnit = 0.01
	mostOfUnit  = 100_000
)

// extent returns the smallest and the greatest absolute value that is not 0.
func extent(values []any) (least, most float64) {
	least = math.Inf(1)
	for _, v := range values {
		if x, ok := floatOf(v); ok && x != 0 {
			least, most = min(least, math.Abs(x)), max(most, math.Abs(x))
		}
	}
	return least, most
}

// sharedUnit returns the largest unit that fits the values of several columns, or none.
func sharedUnit(values []any, all []units.Unit) (fit units.Unit) {
	least, most := extent(values)
	for _, u := range all {
		if most >= u.Size && least >= leastOfUnit*u.Size && most < mostOfUnit*u.Size {
			fit = u
		}
	}
	return fit
}

// commonUnit returns the unit that fits all values of a column, or none.
func commonUnit(values []any, all []units.Unit) units.Unit {
	least, most := extent(values)
	fit := units.Fit(most, all)
	switch {
	case all[0].Name == "B" && most < mostOfUnit: // programs chose such sizes
		return all[0]
	case most == 0 || math.IsInf(most, 0) || least < leastOfUnit*fit.Size:
		return units.Unit{}
	}
	return fit
}

// text writes a value of the column, not aligned yet.
func (t *column) text(v any) string {
	x, ok := floatOf(v)
	switch {
	case v == nil:
		return ""
	case !ok || t.kind == plain:
		return cell(v, t.Type)
	case t.kind == share:
		return units.Hundredths(x)
	case t.kind == count:
		return countText(v, x, t.Column)
	case x == 0:
		return "0"
	case t.unit.Size != 0:
		return units.Number(x / t.unit.Size)
	}
	return units.WithUnit(x, unitsOf[t.kind])
}

// after returns the width of the point and the digits after it.
func (t *column) after(text string) int {
	if i := strings.IndexByte(text, '.'); i >= 0 && t.aligned() {
		return len(text) - i
	}
	return 0
}

// aligned reports whether the column's numbers stand with their points below each other.
func (t *column) aligned() bool {
	return t.kind == share || t.kind == count || t.unit.Size != 0
}

// cell writes a value of the column as wide as its alignment needs, without the blanks before it.
func (t *column) cell(v any) string {
	text := t.text(v)
	if text == "" || t.kind == plain {
		return printable.Line(text)
	}
	return text + strings.Repeat(" ", max(0, t.decimals-t.after(text)))
}

// nameRe matches names of columns that are words.
var nameRe = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]*(_[a-zA-Z0-9]+)*$`)

// heads writes the headers of columns in words: without the unit that their name ends in, with that of all their
// values.
func heads(columns []*column) {
	taken := map[string]int{}
	for _, c := range columns {
		c.head = c.words(true)
		taken[c.head]++
	}
	for _, c := range columns {
		if taken[c.head] > 1 {
			c.head = c.words(false)
		}
	}
}

// words returns the column's header; short leaves out the unit that the name has, if that leaves something.
func (t *column) words(short bool) string {
	name := t.Name
	if !nameRe.MatchString(name) {
		return printable.Line(name)
	}
	cut := func(suffix string) {
		if rest, ok := strings.CutSuffix(name, suffix); ok && rest != "" {
			name = rest
		}
	}
	switch t.kind {
	case duration:
		if cut("_ns"); !short {
			name += "_time"
		}
	case size:
		if short && t.unit.Size != 0 {
			cut("_bytes")
		}
	case rate:
		if name == "bytes_per_s" && t.unit.Size != 0 {
			return t.unit.Name
		}
		if short && t.unit.Size != 0 {
			cut("_bytes_per_s")
		}
	}
	name = strings.ReplaceAll(name, "_", " ")
	switch {
	case t.unit.Size == 0:
		if t.kind == count && t.Unit != "1" && !strings.Contains(" "+name+" ", " "+t.Unit+" ") {
			return fmt.Sprintf("%s (%s)", name, t.Unit)
		}
		return name
	case name == "bytes" && t.unit.Name == "B":
		return name
	}
	return fmt.Sprintf("%s (%s)", name, t.unit.Name)
}

// Head returns the name of a column whose values have their units, in words, as Shown writes them.
func Head(c queries.Column) string {
	t := &column{Column: c, kind: kindOf(c)}
	return t.words(true)
}
