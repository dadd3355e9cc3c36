// Package units writes counts, sizes, times, rates and shares for people: in a unit that fits, with three significant
// digits. Sizes have decimal units, as bandwidths do: 1 kB is 1000 bytes.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// digits is the number of significant digits for people.
const digits = 3

// Comma returns an integer with its digits in groups of three: 617,856.
func Comma(n int64) string { return humanize.Comma(n) }

// Count returns a number and a noun, in the singular for 1 and else with an s: 3 calls.
func Count(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Comma(n) + " " + noun
}

// Unit is a unit of numbers for people. Size is its size in the unit of the stored numbers.
type Unit struct {
	Name string
	Size float64
}

// Times, Sizes and Rates are the units of numbers of ns, bytes and bytes/s, smallest first.
var (
	Times = []Unit{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}
	Sizes = []Unit{{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}, {"EB", 1e18}}
	Rates = []Unit{{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}, {"PB/s", 1e15}}
)

// wholeBytes is the size below which all digits are written: programs choose small sizes with care, 4,097 is not 4,096.
const wholeBytes = 10_000

// Fit returns the unit in which a number has one to three digits before its point, or the last one. Sizes of a few
// thousand bytes are in bytes.
func Fit(x float64, all []Unit) Unit {
	x = math.Abs(x)
	if all[0].Name == "B" && x < wholeBytes {
		return all[0]
	}
	x = significant(x)
	fit := all[0]
	for _, u := range all[1:] {
		if x >= u.Size {
			fit = u
		}
	}
	return fit
}

// significant rounds to the digits that are written.
func significant(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', digits-1, 64), 64)
	if err != nil {
		return x
	}
	return rounded
}

// WithUnit returns a number in the unit that fits it: 1.26 ms.
func WithUnit(x float64, all []Unit) string {
	u := Fit(x, all)
	return Number(x/u.Size) + " " + u.Name
}

// Duration returns a time in ns: 13.3 us.
func Duration(ns int64) string { return WithUnit(float64(ns), Times) }

// Bytes returns a size: 195 MB.
func Bytes(n int64) string { return WithUnit(float64(n), Sizes) }

// Rate returns a bandwidth: 3.33 GB/s.
func Rate(bytesPerSecond float64) string { return WithUnit(bytesPerSecond, Rates) }

// ExactBytes returns a size in bytes, followed by the same size in a larger unit if that is shorter:
// 186,395,648 bytes (186 MB).
func ExactBytes(n int64) string {
	if n < wholeBytes {
		return Count(n, "byte")
	}
	return fmt.Sprintf("%s bytes (%s)", Comma(n), Bytes(n))
}

// Percent returns a share of 1: 38 %.
func Percent(x float64) string { return Hundredths(x) + " %" }

// Hundredths returns a share of 1 in percent, without the sign. Small shares have three decimals; what is not all is
// not 100, and what is not nothing is not 0.
func Hundredths(x float64) string {
	switch p := math.Abs(x) * 100; {
	case math.IsNaN(x), math.IsInf(x, 0):
		return Number(x)
	case p > 0 && p < 0.001:
		if x < 0 {
			return ">-0.001"
		}
		return "<0.001"
	case p < 0.1:
		return trimmed(roundoff(x*100), 3)
	case p < 100 && p >= 99.95:
		if x < 0 {
			return "<-99.9"
		}
		return ">99.9"
	}
	return Number(roundoff(x * 100))
}

// roundoff removes the error of a multiplication by 100: 0.07 x 100 is 7.
func roundoff(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 14, 64), 64)
	if err != nil {
		return x
	}
	return rounded
}

// Number writes a number with three significant digits, and its whole part in full, in groups of three: 1,234,568,
// 12.3, 0.00123. Zeros at the end of the decimals show that the number was rounded. Only from 1e15 on and below 1e-6
// there is a power of ten: 9.12×10^20.
func Number(x float64) string {
	size := math.Abs(x)
	switch {
	case x == 0:
		return "0"
	case math.IsNaN(x), math.IsInf(x, 0):
		return strconv.FormatFloat(x, 'g', -1, 64)
	case size >= 1e15, size < 1e-6:
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', digits-1, 64), "e")
		n, err := strconv.Atoi(exponent)
		if err != nil {
			return strconv.FormatFloat(x, 'g', digits, 64)
		}
		return mantissa + "×10^" + strconv.Itoa(n)
	}
	before := int(math.Floor(math.Log10(significant(size)))) + 1
	return trimmed(x, max(0, digits-before))
}

// trimmed writes a number with so many decimals, or fewer if those say all.
func trimmed(x float64, decimals int) string {
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	if short := strings.TrimRight(strings.TrimRight(text, "0"), "."); strings.Contains(text, ".") {
		if value, err := strconv.ParseFloat(short, 64); err == nil && value == x {
			text = short
		}
	}
	return Group(text)
}

// Group puts commas between groups of three digits in the whole part of a decimal number.
func Group(text string) string {
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	whole, rest, point := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		whole += "." + rest
	}
	return sign + whole
}
