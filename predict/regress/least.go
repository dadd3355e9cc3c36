package regress

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// fitted is a form with its coefficients.
type fitted struct {
	form *form
	c    [2]float64
	// Of the regression z = c0 + c1 x with z = y/g0, x = g1/g0 and weights v = w g0^2: the sum of v, the mean of x, and
	// the weighted sum of squares of x.
	sumV, meanX, sxx float64
	s                float64 // standard deviation of a value of weight 1
	df               int     // degrees of freedom
}

// leastSquares fits a form to points with weights. ok is false when they do not determine it.
func leastSquares(f *form, points []Point, weight func(Point) float64) (r fitted, ok bool) {
	n := len(points)
	x, z, v := make([]float64, n), make([]float64, n), make([]float64, n)
	for i, p := range points {
		p0 := float64(p.Ranks)
		switch {
		case f.family == Power:
			if p.Value == 0 || (p.Value > 0) != (points[0].Value > 0) {
				return r, false
			}
			x[i], z[i], v[i] = math.Log(p0), math.Log(math.Abs(p.Value)), 1
			continue
		case len(f.terms) == 1:
			x[i], z[i], v[i] = f.terms[0].value(p0), p.Value, weight(p)
			continue
		}
		g := f.terms[0].value(p0)
		x[i], z[i], v[i] = f.terms[1].value(p0)/g, p.Value/g, weight(p)*g*g
	}
	r = fitted{form: f, df: n - f.parameters()}
	if r.df < 0 {
		return r, false
	}
	if f.parameters() == 1 {
		_, r.c[0] = stat.LinearRegression(x, z, v, true)
	} else {
		r.c[0], r.c[1] = stat.LinearRegression(x, z, v, false)
		r.meanX = stat.Mean(x, v)
	}
	var rss float64
	for i := range x {
		residual := z[i] - r.c[0] - r.c[1]*x[i]
		if f.parameters() == 1 {
			residual = z[i] - r.c[0]*x[i]
		}
		rss += v[i] * residual * residual
		r.sumV += v[i]
		r.sxx += v[i] * (x[i] - r.meanX) * (x[i] - r.meanX)
	}
	if r.df > 0 {
		r.s = math.Sqrt(rss / float64(r.df))
	}
	if f.family == Power {
		r.c[0] = math.Exp(r.c[0]) * math.Copysign(1, points[0].Value)
	}
	if f.parameters() == 2 && r.sxx <= 1e-12*r.sumV*r.meanX*r.meanX || r.sxx == 0 {
		return r, false // one rank count, or a form with the same value at all of them
	}
	return r, finite(r.c[0]) && finite(r.c[1]) && finite(r.s)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// value returns the value of the form.
func (r *fitted) value(ranks float64) float64 {
	if r.form.family == Power {
		return r.c[0] * math.Pow(ranks, r.c[1])
	}
	y := r.c[0] * r.form.terms[0].value(ranks)
	if len(r.form.terms) == 2 {
		y += r.c[1] * r.form.terms[1].value(ranks)
	}
	return y
}

// interval returns the 95 % prediction interval at a rank count, by Student's t. s is the standard deviation of a
// value of weight 1, and noise that of a value there. It is infinite without a degree of freedom.
func (r *fitted) interval(ranks, s, noise float64) (low, high float64) {
	y := r.value(ranks)
	if r.df == 0 {
		return math.Inf(-1), math.Inf(1)
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(r.df)}.Quantile(0.975)
	switch {
	case r.form.family == Power:
		d := math.Log(ranks) - r.meanX
		half := t * s * math.Sqrt(1+1/r.sumV+d*d/r.sxx)
		low, high = y*math.Exp(-half), y*math.Exp(half)
		return math.Min(low, high), math.Max(low, high)
	case len(r.form.terms) == 1:
		g := r.form.terms[0].value(ranks)
		half := t * math.Sqrt(noise*noise+s*s*g*g/r.sxx)
		return y - half, y + half
	}
	g := r.form.terms[0].value(ranks)
	d := r.form.terms[1].value(ranks)/g - r.meanX
	half := t * math.Sqrt(noise*noise+s*s*g*g*(1/r.sumV+d*d/r.sxx))
	return y - half, y + half
}

// text formats the form with its coefficients.
func (r *fitted) text() string {
	if r.form.family == Power {
		return fmt.Sprintf("%s P^%s", number(r.c[0]), number(r.c[1]))
	}
	var b strings.Builder
	for i, t := range r.form.terms {
		c := r.c[i]
		switch {
		case i > 0 && c < 0:
			b.WriteString(" - ")
			c = -c
		case i > 0:
			b.WriteString(" + ")
		}
		b.WriteString(number(c))
		if t.name != "" {
			b.WriteString(" " + t.name)
		}
	}
	return b.String()
}

// number formats a coefficient with six digits.
func number(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// exactNumber formats a constant of an exact law: a whole number with all its digits, others as number does.
func exactNumber(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return strconv.FormatInt(int64(x), 10)
	}
	return number(x)
}
