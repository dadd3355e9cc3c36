// Package regress says what a value will be at a number of ranks that nobody has run, from what it was at others.
//
// A Curve is of one value against the number of ranks: exact integer laws first, then forms by least squares, chosen by what they say of
// points that were left out, never by how close they come to those they have seen (R2). See docs/method/prediction-regression.md.
package regress

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Point is a value at a number of ranks.
type Point struct {
	Ranks int64   `json:"ranks"` // at least 1
	Value float64 `json:"value"` // in any unit; finite
}

// Warning is something a user has to know about a prediction.
type Warning struct {
	Name string `json:"name"` // one of the constants, for programs
	Text string `json:"text"` // what was found, and what would help
}

// Names of warnings.
const (
	FewPoints  = "few-points"    // fewer numbers of ranks than can tell forms apart
	FarAway    = "extrapolation" // far outside the numbers of ranks that were seen
	OneKind    = "one-kind"      // all seen are squares or powers of two, the one asked for is not
	LawsDiffer = "laws-differ"   // several exact laws remain and say different things
	Uncertain  = "uncertain"     // the interval is wide
	Refused    = "form-refused"  // the form with the smallest error turns round or changes its sign
)

// Prediction is what a curve says of a number of ranks.
type Prediction struct {
	Ranks int64   `json:"ranks"`
	Value float64 `json:"prediction"`
	// Low and High are where a value measured there is expected, with 95 % if the form is one of those tried; of exact laws the least and most
	// that those say which remain.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Form is the family of the form, one of Forms; Formula is it with its numbers, P being the number of ranks.
	Form    string `json:"form"`
	Formula string `json:"formula"`
	// Exact says that all laws that remain agree here.
	Exact bool `json:"exact"`
	// LeaveOneOut is the symmetric mean absolute error, a fraction, of predicting each number of ranks from all others; RollingOrigin of
	// predicting each from those below. Null where there are too few points.
	LeaveOneOut   *float64 `json:"leave_one_out"`
	RollingOrigin *float64 `json:"rolling_origin"`
	// Alternatives are what else could be: the other laws that remain, or the forms about as good, best first.
	Alternatives []Alternative `json:"alternatives"`
	Warnings     []Warning     `json:"warnings"`
}

// Alternative is another form's prediction.
type Alternative struct {
	Form        string   `json:"form"`
	Formula     string   `json:"formula"`
	Value       float64  `json:"prediction"`
	LeaveOneOut *float64 `json:"leave_one_out"`
}

// Curve is a value against the number of ranks.
type Curve struct {
	points     []Point // by ranks, then value
	ranks      []int64 // without repetitions
	scale      float64 // largest |value|, 1 where all are 0
	relative   bool    // errors are relative: all values have the same sign, none is 0
	resolution float64 // of the values: they are multiples of it, of scale
	candidates []candidate
	laws       []law
}

// candidate is a form fitted to all points, and what it says of points left out.
type candidate struct {
	fitted
	leaveOneOut, rolling float64 // NaN: too few points
	score                float64 // leaveOneOut with the price of the hypotheses tried; infinite where that is not known
}

// tiniest is the part of the largest value below which another has no relative error that floating point can square.
const tiniest = 1e-100

// Fit learns a curve from points in any order; a number of ranks may have several. There have to be two different ones.
func Fit(points []Point) (*Curve, error) {
	c := &Curve{points: slices.Clone(points), relative: true}
	slices.SortFunc(c.points, func(a, b Point) int { return cmp.Or(cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Value, b.Value)) })
	digits := 0
	for _, p := range c.points {
		switch {
		case p.Ranks < 1:
			return nil, fmt.Errorf("%d ranks: there is at least one", p.Ranks)
		case !finite(p.Value):
			return nil, fmt.Errorf("%d ranks: value %v: want a finite number", p.Ranks, p.Value)
		}
		c.scale = max(c.scale, math.Abs(p.Value))
		c.relative = c.relative && p.Value != 0 && (p.Value > 0) == (c.points[0].Value > 0)
		digits = max(digits, decimals(p.Value))
		if len(c.ranks) == 0 || c.ranks[len(c.ranks)-1] != p.Ranks {
			c.ranks = append(c.ranks, p.Ranks)
		}
	}
	if len(c.ranks) < 2 {
		return nil, fmt.Errorf("%s: at least two numbers of ranks say how a value changes with them; run the program on another", found(c.ranks))
	}
	if c.scale == 0 {
		c.scale = 1
	}
	c.resolution = math.Pow(10, -float64(digits)) / c.scale
	c.laws = exactLaws(c.points)
	for i := range c.points {
		c.points[i].Value /= c.scale
		c.relative = c.relative && math.Abs(c.points[i].Value) > tiniest
	}
	c.fitAll()
	return c, nil
}

// found says how many numbers of ranks there are, for an error.
func found(ranks []int64) string {
	if len(ranks) == 0 {
		return "no points"
	}
	return fmt.Sprintf("all points are of %d ranks", ranks[0])
}

// decimals is the number of digits after the decimal point that a value is written with.
func decimals(x float64) int {
	text := strconv.FormatFloat(x, 'f', -1, 64)
	if _, after, ok := strings.Cut(text, "."); ok {
		return len(after)
	}
	return 0
}

// weight is what a point counts in least squares: relative errors count alike, unless values are 0 or of both signs.
func (c *Curve) weight(p Point) float64 {
	if !c.relative {
		return 1
	}
	return 1 / (p.Value * p.Value)
}

// off is the error of a prediction, symmetric and relative as in SMAPE, or relative to the mean where values are 0 or of both signs.
func (c *Curve) off(predicted, value float64) float64 {
	if c.relative {
		return 2 * math.Abs(predicted-value) / (math.Abs(predicted) + math.Abs(value))
	}
	var sum float64
	for _, p := range c.points {
		sum += math.Abs(p.Value)
	}
	return math.Abs(predicted-value) * float64(len(c.points)) / max(sum, math.SmallestNonzeroFloat64)
}

// rounding is the error that comes of the values' last digit alone.
func (c *Curve) rounding() float64 {
	var sum float64
	for _, p := range c.points {
		sum += c.off(p.Value+c.resolution/math.Sqrt(12), p.Value)
	}
	return max(sum/float64(len(c.points)), 1e-12)
}

func (c *Curve) fitAll() {
	all := forms()
	for i := range all {
		f := &all[i]
		for k := range f.terms {
			f.terms[k] = f.terms[k].knownAt(c.ranks)
		}
		r, ok := leastSquares(f, c.points, c.weight)
		if !ok {
			continue
		}
		k := candidate{fitted: r, leaveOneOut: c.leaveOneOut(f), rolling: c.rollingOrigin(f), score: math.Inf(1)}
		if df := len(c.ranks) - f.parameters(); df > 0 && finite(k.leaveOneOut) {
			k.score = max(k.leaveOneOut, c.rounding()) * math.Pow(float64(f.tried), 1/float64(df))
			if c.lapses(&r) {
				k.score *= lapsePaid
			}
		}
		c.candidates = append(c.candidates, k)
	}
	slices.SortStableFunc(c.candidates, func(a, b candidate) int { return cmp.Compare(a.score, b.score) })
}

// leaveOneOut is the mean error of predicting each number of ranks from the others.
func (c *Curve) leaveOneOut(f *form) float64 {
	var sum float64
	for _, ranks := range c.ranks {
		sum += c.leftOut(f, func(p Point) bool { return p.Ranks != ranks }, ranks)
	}
	return sum / float64(len(c.ranks))
}

// rollingOrigin is the mean error of predicting each number of ranks from those below it, wherever these determine the form.
func (c *Curve) rollingOrigin(f *form) float64 {
	var sum float64
	n := 0
	for i := min(f.parameters()+1, len(c.ranks)-1); i < len(c.ranks); i++ {
		sum += c.leftOut(f, func(p Point) bool { return p.Ranks < c.ranks[i] }, c.ranks[i])
		n++
	}
	return sum / float64(n)
}

// leftOut is the mean error at a number of ranks of a form that is fitted to other points; NaN where they do not determine it.
func (c *Curve) leftOut(f *form, seen func(Point) bool, ranks int64) float64 {
	var train []Point
	for _, p := range c.points {
		if seen(p) {
			train = append(train, p)
		}
	}
	if len(train) == 0 {
		return math.NaN()
	}
	r, ok := leastSquares(f, train, c.weight)
	if !ok {
		return math.NaN()
	}
	var sum float64
	n := 0
	for _, p := range c.points {
		if p.Ranks == ranks {
			sum += c.off(r.at(float64(ranks)), p.Value)
			n++
		}
	}
	return sum / float64(n)
}
