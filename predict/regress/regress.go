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

// Warning is an assumption behind a prediction, or a reason to doubt it.
type Warning struct {
	Name string `json:"name"` // few-points, extrapolation, uncertain and the like
	Text string `json:"text"` // a sentence with the reason and the remedy
}

// Names of warnings.
const (
	FewPoints  = "few-points"    // too few rank counts to tell forms apart
	FarAway    = "extrapolation" // far outside the training rank counts
	OneKind    = "one-kind"      // all training rank counts are squares or powers of two, but the predicted one is not
	LawsDiffer = "laws-differ"   // several exact laws fit and predict different values
	Uncertain  = "uncertain"     // the interval is wide
	Refused    = "form-refused"  // the form with the smallest error is not monotone or changes its sign
)

// Prediction is the prediction of a curve at one rank count.
type Prediction struct {
	// Ranks is the number of ranks.
	Ranks int64 `json:"ranks"`
	// Value is the predicted value, in the unit of the table.
	Value float64 `json:"prediction"`
	// Low and High bound the interval in which a value measured there lies with a probability of 95 %, if the form is
	// one of those tried. For exact laws they are the least and the largest value that the laws that fit all points give,
	// however a program rounds there, and those of the other forms where few points show the laws.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Form is the family of the form, one of Forms. Formula is the form with its coefficients; P is the number of
	// ranks.
	Form    string `json:"form"`
	Formula string `json:"formula"`
	// Exact means that none of the laws that fit all points gives another value there.
	Exact bool `json:"exact"`
	// LeaveOneOut is the symmetric mean absolute error (SMAPE, a fraction) of predicting each rank count from all
	// others, and RollingOrigin that of predicting each from those below it. null if there are too few points.
	LeaveOneOut   *float64 `json:"leave_one_out"`
	RollingOrigin *float64 `json:"rolling_origin"`
	// Alternatives are the other exact laws that fit, or the forms that are about as good, best first.
	Alternatives []Alternative `json:"alternatives"`
	// Warnings are assumptions behind the prediction.
	Warnings []Warning `json:"warnings"`
}

// Alternative is another form's prediction.
type Alternative struct {
	// Form is the family of the form.
	Form string `json:"form"`
	// Formula is the form with its coefficients.
	Formula string `json:"formula"`
	// Value is the value that it predicts.
	Value float64 `json:"prediction"`
	// LeaveOneOut is the error of predicting each rank count from all others, as a fraction; nil if there are too few
	// points.
	LeaveOneOut *float64 `json:"leave_one_out"`
}

// Curve is a value as a function of the number of ranks: the exact laws that fit the points, and the fitted forms.
type Curve struct {
	table      table
	candidates []candidate // by score
	laws       []law
}

// table is the training points of a curve. Values are divided by scale.
type table struct {
	points     []Point // by ranks, then value
	ranks      []int64 // rank counts, ascending
	scale      float64 // largest |value|, or 1 when all are 0
	relative   bool    // errors are relative, as all values have the same sign and none is 0
	resolution float64 // values are multiples of it
}

// candidate is a form fitted to all points, and its errors in cross-validation.
type candidate struct {
	fitted
	leaveOneOut, rolling float64 // NaN when there are too few points
	score                float64 // leaveOneOut times a penalty for the hypotheses tried; infinite when not known
}

// tiniest is the fraction of the largest value below which the squared relative error of a value would not be finite.
const tiniest = 1e-100

// ExactLaw is a law that all values follow exactly.
type ExactLaw struct {
	// Formula is the law as text.
	Formula string
	curve   *Curve
}

// FitExact finds the exact law that values by rank count follow; nil if there is none. There must be at least two
// rank counts.
func FitExact(byRanks map[int64]float64) (*ExactLaw, error) {
	var points []Point
	most := int64(0)
	for ranks, value := range byRanks {
		points, most = append(points, Point{Ranks: ranks, Value: value}), max(most, ranks)
	}
	curve, err := Fit(points)
	if err != nil {
		return nil, err
	}
	known := curve.Predict(most)
	if known.Form != Exact {
		return nil, nil
	}
	return &ExactLaw{known.Formula, curve}, nil
}

// ValueAt returns the law's value at a rank count, and the bounds within which other laws that the values allow are. ok
// is false where the law has no whole value, or another form.
func (l *ExactLaw) ValueAt(ranks int64) (value, low, high float64, ok bool) {
	p := l.curve.Predict(ranks)
	i := slices.IndexFunc(l.curve.laws, func(o law) bool { return o.text == l.Formula })
	s, has := l.curve.laws[i].value(ranks)
	whole := s.value == math.Trunc(s.value) && math.Abs(s.value) < 1<<53
	return p.Value, p.Low, p.High, has && whole && p.Formula == l.Formula
}

// Fit learns a curve from points in any order. There may be several points at one rank count, but there must be at
// least two different rank counts.
func Fit(points []Point) (*Curve, error) {
	t := table{points: slices.Clone(points), relative: true}
	slices.SortFunc(t.points, func(a, b Point) int { return cmp.Or(cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Value, b.Value)) })
	digits := 0
	for _, p := range t.points {
		switch {
		case p.Ranks < 1:
			return nil, fmt.Errorf("%d ranks: want at least one", p.Ranks)
		case !finite(p.Value):
			return nil, fmt.Errorf("%d ranks: value %v: want a finite number", p.Ranks, p.Value)
		}
		t.scale = max(t.scale, math.Abs(p.Value))
		t.relative = t.relative && p.Value != 0 && (p.Value > 0) == (t.points[0].Value > 0)
		digits = max(digits, decimals(p.Value))
		if len(t.ranks) == 0 || t.ranks[len(t.ranks)-1] != p.Ranks {
			t.ranks = append(t.ranks, p.Ranks)
		}
	}
	if len(t.ranks) < 2 {
		return nil, fmt.Errorf("%s: at least two rank counts are needed to learn how a value changes; run the program on another", describeRanks(t.ranks))
	}
	if t.scale == 0 {
		t.scale = 1
	}
	t.resolution = math.Pow(10, -float64(digits)) / t.scale
	c := &Curve{laws: exactLaws(t.points)}
	for i := range t.points {
		t.points[i].Value /= t.scale
		t.relative = t.relative && math.Abs(t.points[i].Value) > tiniest
	}
	c.table = t
	c.fitForms()
	return c, nil
}

// describeRanks describes the rank counts for an error.
func describeRanks(ranks []int64) string {
	if len(ranks) == 0 {
		return "no points"
	}
	return fmt.Sprintf("all points have %d ranks", ranks[0])
}

// decimals returns the number of digits after the decimal point of a value.
func decimals(x float64) int {
	text := strconv.FormatFloat(x, 'f', -1, 64)
	if _, after, ok := strings.Cut(text, "."); ok {
		return len(after)
	}
	return 0
}

// weight returns the weight of a point in least squares. It makes relative errors count equally, unless values are 0
// or have both signs.
func (t *table) weight(p Point) float64 {
	if !t.relative {
		return 1
	}
	return 1 / (p.Value * p.Value)
}

// relativeError returns the error of a prediction: symmetric as in SMAPE, or relative to the mean if values are 0 or
// have both signs.
func (t *table) relativeError(predicted, value float64) float64 {
	if t.relative {
		return 2 * math.Abs(predicted-value) / (math.Abs(predicted) + math.Abs(value))
	}
	var sum float64
	for _, p := range t.points {
		sum += math.Abs(p.Value)
	}
	return math.Abs(predicted-value) * float64(len(t.points)) / max(sum, math.SmallestNonzeroFloat64)
}

// roundingError returns the mean error due to the rounding of values to their last digit.
func (t *table) roundingError() float64 {
	var sum float64
	for _, p := range t.points {
		sum += t.relativeError(p.Value+t.resolution/math.Sqrt(12), p.Value)
	}
	return max(sum/float64(len(t.points)), 1e-12)
}

// fitForms fits all forms and sorts them by score.
func (c *Curve) fitForms() {
	all := forms()
	for i := range all {
		f := &all[i]
		for k := range f.terms {
			f.terms[k] = f.terms[k].cached(c.table.ranks)
		}
		r, ok := leastSquares(f, c.table.points, c.table.weight)
		if !ok {
			continue
		}
		k := candidate{fitted: r, leaveOneOut: c.table.leaveOneOut(f), rolling: c.table.rollingOrigin(f),
			score: math.Inf(1)}
		if df := len(c.table.ranks) - f.parameters(); df > 0 && finite(k.leaveOneOut) {
			k.score = max(k.leaveOneOut, c.table.roundingError()) * math.Pow(float64(f.tried), 1/float64(df))
			if c.table.changesSign(&r) {
				k.score *= signPenalty
			}
		}
		c.candidates = append(c.candidates, k)
	}
	slices.SortStableFunc(c.candidates, func(a, b candidate) int { return cmp.Compare(a.score, b.score) })
}

// leaveOneOut returns the mean error of predicting each rank count from the others.
func (t *table) leaveOneOut(f *form) float64 {
	var sum float64
	for _, ranks := range t.ranks {
		sum += t.errorAt(f, func(p Point) bool { return p.Ranks != ranks }, ranks)
	}
	return sum / float64(len(t.ranks))
}

// rollingOrigin returns the mean error of predicting each rank count from those below it, if these determine the
// form.
func (t *table) rollingOrigin(f *form) float64 {
	var sum float64
	n := 0
	for i := min(f.parameters()+1, len(t.ranks)-1); i < len(t.ranks); i++ {
		sum += t.errorAt(f, func(p Point) bool { return p.Ranks < t.ranks[i] }, t.ranks[i])
		n++
	}
	return sum / float64(n)
}

// errorAt returns the mean error at one rank count of a form that is fitted to the points for which train returns
// true. It is NaN when these do not determine the form.
func (t *table) errorAt(f *form, train func(Point) bool, ranks int64) float64 {
	var training []Point
	for _, p := range t.points {
		if train(p) {
			training = append(training, p)
		}
	}
	if len(training) == 0 {
		return math.NaN()
	}
	r, ok := leastSquares(f, training, t.weight)
	if !ok {
		return math.NaN()
	}
	var sum float64
	n := 0
	for _, p := range t.points {
		if p.Ranks == ranks {
			sum += t.relativeError(r.value(float64(ranks)), p.Value)
			n++
		}
	}
	return sum / float64(n)
}
