package plot

import (
	"math"
	"strconv"
	"strings"
)

// unit is the unit of the numbers along an axis.
type unit struct {
	name string // "" for plain numbers
	size float64
}

// unitsOf lists the units that a quantity is written in, ascending: those of tables and texts (package
// units). Only ticks of logarithmic axes of sizes are at powers of two.
func unitsOf(quantity string) []unit {
	switch quantity {
	case "ns":
		return []unit{{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}}
	case "bytes":
		return []unit{{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}}
	case "bytes/s":
		return []unit{{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}}
	case "elements":
		return []unit{{"elements", 1}}
	}
	return []unit{{"", 1}}
}

// unitFor returns the largest unit that is at most amount, or the smallest one.
func unitFor(quantity string, amount float64) unit {
	all := unitsOf(quantity)
	best := all[0]
	for _, u := range all {
		if u.size <= math.Abs(amount)*(1+1e-9) {
			best = u
		}
	}
	return best
}

// titled is a name with its unit in brackets.
func (u unit) titled(name string) string {
	if u.name == "" || name == u.name {
		return name
	}
	return name + " [" + u.name + "]"
}

// number writes a value in the unit: plain numbers with a decimal prefix.
func (u unit) number(v float64) string {
	if u.name == "" || u.name == "elements" {
		return short(v)
	}
	return plainNumber(v / u.size)
}

// rounded writes four digits of a value in the unit.
func (u unit) rounded(v float64) string { return u.number(rounded(v/u.size) * u.size) }

// plainNumber writes up to six digits of a number, and an exponent only if it saves many zeros.
func plainNumber(v float64) string {
	s := strconv.FormatFloat(v, 'g', 6, 64)
	if size := math.Abs(v); strings.Contains(s, "e") && size >= 1e-6 && size < 1e7 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return s
}

// short writes a number with a decimal prefix.
func short(v float64) string { return prefixed(v, 1000, "", " k", " M", " G", " T", " P", " E") }

// binary writes a number with a prefix that stands for a power of 1024.
func binary(v float64) string { return prefixed(v, 1024, "", " Ki", " Mi", " Gi", " Ti", " Pi") }

func prefixed(v, base float64, prefixes ...string) string {
	i := 0
	for math.Abs(v) >= base && i < len(prefixes)-1 {
		v /= base
		i++
	}
	return strconv.FormatFloat(v, 'g', 6, 64) + prefixes[i]
}
