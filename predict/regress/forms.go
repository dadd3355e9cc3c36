package regress

import (
	"fmt"
	"math"
	"strings"
)

// Families of forms, in the order in which they are tried. Later ones must fit better, see form.tried.
const (
	// Exact is an integer law that reproduces every value of the table.
	Exact = "exact"
	// Constant is c.
	Constant = "const"
	// Power is c P^a, by least squares of logarithms.
	Power = "power-law"
	// PaperPower is the power law with its exponent rounded to three digits, like the trend lines of spreadsheets that
	// Panadero et al. use (section 5, figure 7). It is never chosen, but can be requested.
	PaperPower = "power"
	// Linear is c0 + c1 P.
	Linear = "linear"
	// Log is c0 + c1 log2 P.
	Log = "log"
	// Scaled is c g(P), where g is a power of P, possibly times a logarithm.
	Scaled = "scaled"
	// Boundary is c g(P), where g is a surface or volume without its last block, such as (q-1)/q^2 with q = sqrt P.
	Boundary = "boundary"
	// Geometric is c1 g(P) + c2 h(P), where g and h are powers of the edge of a square or cube of ranks, or one of them
	// is such a power and the other a growing cost.
	Geometric = "geometric"
	// PMNF is a constant and one term of the performance model normal form of Calotoiu et al. (SC 2013), whose
	// exponents may be negative here.
	PMNF = "pmnf"
)

// Forms returns the families that Curve.PredictWith accepts.
func Forms() []string {
	return []string{Exact, Constant, PaperPower, Power, Linear, Log, Scaled, Boundary, Geometric, PMNF}
}

// term is a function of the number of ranks that is multiplied by a coefficient.
type term struct {
	name  string // "" for 1
	value func(ranks float64) float64
}

// cached returns the same term, which remembers its values at some rank counts, as cross-validation needs them often.
func (t term) cached(ranks []int64) term {
	known := make([]struct{ ranks, value float64 }, len(ranks))
	for i, p := range ranks {
		known[i].ranks, known[i].value = float64(p), t.value(float64(p))
	}
	return term{t.name, func(p float64) float64 {
		for i := range known {
			if known[i].ranks == p {
				return known[i].value
			}
		}
		return t.value(p)
	}}
}

// form is a hypothesis: one or two terms with a coefficient each, or the power law.
type form struct {
	family string
	terms  []term
	tried  int // number of hypotheses tried with this one: those of simpler families, and all of its own
}

// parameters returns the number of coefficients.
func (f *form) parameters() int {
	if f.family == Power {
		return 2
	}
	return len(f.terms)
}

// power returns the term P^(num/den) log2(P)^logs.
func power(num, den, logs int) term {
	e := float64(num) / float64(den)
	var name []string
	switch {
	case num == 0:
	case num == den:
		name = append(name, "P")
	case den == 1:
		name = append(name, fmt.Sprintf("P^%d", num))
	default:
		name = append(name, fmt.Sprintf("P^(%d/%d)", num, den))
	}
	switch logs {
	case 0:
	case 1:
		name = append(name, "log2(P)")
	default:
		name = append(name, fmt.Sprintf("log2(P)^%d", logs))
	}
	return term{strings.Join(name, " "), func(p float64) float64 { return math.Pow(p, e) * math.Pow(math.Log2(p), float64(logs)) }}
}

// constant is the term 1.
var constant = term{"", func(float64) float64 { return 1 }}

// boundaries returns surfaces and volumes whose last block sends nothing: (g-1)/g^b, where g is the edge of a line,
// square or cube.
func boundaries() (all []term) {
	for _, edge := range []struct {
		name string
		root float64
	}{{"P", 1}, {"sqrt(P)", 2}, {"cbrt(P)", 3}} {
		for below := range int(edge.root) + 1 {
			name := fmt.Sprintf("(%s-1)", edge.name)
			if below == 1 {
				name += "/" + edge.name
			} else if below > 1 {
				name += fmt.Sprintf("/%s^%d", edge.name, below)
			}
			all = append(all, term{name, func(p float64) float64 {
				g := math.Pow(p, 1/edge.root)
				if r := math.Round(g); math.Abs(g-r) < 1e-9 {
					g = r
				}
				return (g - 1) / math.Pow(g, float64(below))
			}})
		}
	}
	return all
}

// forms returns the hypotheses, simplest first. There are as many as a table of five values can tell apart when each
// is penalized for those before it.
func forms() []form {
	var all []form
	tier := func(fs ...form) {
		for i := range fs {
			fs[i].tried = len(all) + len(fs)
		}
		all = append(all, fs...)
	}
	newForm := func(family string, ts ...term) form { return form{family: family, terms: ts} }
	tier(newForm(Constant, constant), newForm(Power), newForm(Linear, constant, power(1, 1, 0)),
		newForm(Log, constant, power(0, 1, 1)),
		newForm(Scaled, power(-1, 1, 0)), newForm(Scaled, power(1, 1, 0)), newForm(PMNF, constant, power(-1, 1, 0)))
	var second []form
	for _, e := range [][2]int{{-2, 3}, {-1, 2}, {-1, 3}, {1, 2}, {2, 1}, {-2, 1}} {
		second = append(second, newForm(Scaled, power(e[0], e[1], 0)))
	}
	second = append(second, newForm(Scaled, power(0, 1, 1)), newForm(Scaled, power(1, 1, 1)),
		newForm(Scaled, power(-1, 1, 1)),
		newForm(Scaled, power(-1, 2, 1)))
	for _, b := range boundaries() {
		second = append(second, newForm(Boundary, b))
	}
	second = append(second,
		newForm(Geometric, power(-1, 2, 0), power(-1, 1, 0)),
		newForm(Geometric, power(-1, 3, 0), power(-2, 3, 0)),
		newForm(Geometric, power(-2, 3, 0), power(-1, 1, 0)),
		newForm(Geometric, power(-1, 1, 0), power(0, 1, 1)),
		newForm(Geometric, power(-1, 1, 0), power(1, 2, 0)),
		newForm(Geometric, power(-1, 1, 0), power(1, 1, 0)))
	tier(second...)
	var third []form
	for _, e := range [][2]int{{-2, 1}, {-3, 2}, {-1, 1}, {-3, 4}, {-2, 3}, {-1, 2}, {-1, 3}, {-1, 4}, {0, 1}, {1, 4},
		{1, 3}, {1, 2}, {2, 3}, {3, 4}, {1, 1}, {3, 2}, {2, 1}, {3, 1}} {
		for logs := range 3 {
			if contains(all, e, logs) {
				continue
			}
			third = append(third, newForm(PMNF, constant, power(e[0], e[1], logs)))
		}
	}
	tier(third...)
	return all
}

// contains reports whether a constant with this term is already among the forms, or is none.
func contains(all []form, e [2]int, logs int) bool {
	if e[0] == 0 && logs == 0 {
		return true
	}
	name := power(e[0], e[1], logs).name
	for _, f := range all {
		if len(f.terms) == 2 && f.terms[0].name == "" && f.terms[1].name == name {
			return true
		}
	}
	return false
}
