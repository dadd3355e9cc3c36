package output

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/commq/commq/queries"
)

// shownDigits is how many significant digits a fraction has in a table for people.
const shownDigits = 5

// Number writes a number for people: its whole part in groups of three and in full, and so many decimals that there are five
// significant digits, without zeros at the end: 1,234,568, 12.346, 0.00012346. What is 1e15 or more, or below 1e-4, has an
// exponent.
func Number(x float64) string {
	size := math.Abs(x)
	switch {
	case x == 0:
		return "0"
	case math.IsNaN(x), math.IsInf(x, 0):
		return strconv.FormatFloat(x, 'g', -1, 64)
	case size >= 1e15, size < 1e-4:
		return strconv.FormatFloat(x, 'g', shownDigits, 64)
	}
	decimals := max(0, shownDigits-1-int(math.Floor(math.Log10(size))))
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return group(text)
}

// group puts commas between groups of three digits of the whole part of a decimal number.
func group(text string) string {
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

// Shown is a value as a table for people has it; null is empty. Numbers that name something (a rank, a tag, a hash: no unit)
// keep their plain digits.
func Shown(v any, c queries.Column) string {
	if c.Unit == "" {
		return cell(v, c.Type)
	}
	switch x := v.(type) {
	case float64:
		return Number(x)
	case float32:
		return Number(float64(x))
	case *big.Int, duckdb.Decimal, uint64:
		return group(cell(v, c.Type))
	}
	if _, ok := integer(v); ok {
		return group(cell(v, c.Type))
	}
	return cell(v, c.Type)
}

// Header is a column's name as a table for people has it: with the unit where the name does not say it.
func Header(c queries.Column) string {
	if c.Unit == "" || c.Unit == "1" {
		return c.Name
	}
	if said := strings.ReplaceAll(c.Unit, "/", "_per_"); strings.Contains("_"+c.Name+"_", "_"+said+"_") {
		return c.Name
	}
	return c.Name + " (" + c.Unit + ")"
}
