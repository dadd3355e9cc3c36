package regress

import (
	"fmt"
	"math"
	"slices"
)

// near is the ratio to the best score up to which the interval of a form is included in the prediction's. With it 95 of
// 100 intervals hold for all laws tried (docs/validation/prediction.md).
const near = 2

// tie is the ratio of scores up to which the rolling-origin error decides.
const tie = 1.1

// Predict returns the prediction at a rank count: of the exact laws, if there are any, otherwise of the best form.
func (c *Curve) Predict(ranks int64) Prediction {
	if p, ok := c.predictExactly(ranks); ok {
		return p
	}
	return c.byForms(ranks)
}

// predictExactly returns the prediction of the exact laws; ok is false if none has a value at a rank count.
func (c *Curve) predictExactly(ranks int64) (p Prediction, ok bool) {
	var strong, weak []law
	for _, l := range c.laws {
		if _, ok := l.value(ranks); !ok {
			continue
		}
		if l.bits >= enough {
			strong = append(strong, l)
		} else {
			weak = append(weak, l)
		}
	}
	switch {
	case len(strong) > 0:
		return c.byLaws(ranks, append(strong, weak...), c.isThin(ranks) || c.isOfFewNumbers(strong)), true
	case len(weak) > 0:
		return c.byLaws(ranks, weak, true), true
	}
	return Prediction{}, false
}

// isThin reports whether laws with enough evidence may still be chance: if there are too few rank counts or values, or
// if the simplest law has a root or logarithm that is not whole at a rank count, and only others have a value there.
func (c *Curve) isThin(ranks int64) bool {
	values := map[float64]bool{}
	for _, p := range c.table.points {
		values[p.Value] = true
	}
	simplest := &c.laws[0]
	return len(c.table.ranks) < leastRanks || len(values) == tooFewValues ||
		simplest.hasRoots != nil && !simplest.hasRoots(ranks)
}

// leastRanks is the number of rank counts from which a table shows a law: two points are on many.
const leastRanks = 3

// isOfFewNumbers reports whether laws are all of blocks of all ranks and there are few rank counts, as
// Law.isOfFewNumbers does.
func (c *Curve) isOfFewNumbers(laws []law) bool {
	return len(c.table.ranks) <= fewNumbers && !slices.ContainsFunc(laws, func(l law) bool { return !l.onLine })
}

// byForms predicts by least squares: the value of the best form, with the intervals of all that are about as good. A
// form that was refused although its score is better widens the interval by its value, as it may be right.
func (c *Curve) byForms(ranks int64) Prediction {
	best, good, refused := c.choose(ranks)
	p := c.predict(best, ranks)
	for _, k := range good {
		if k == best {
			continue
		}
		other := c.predict(k, ranks)
		p.Low, p.High = math.Min(p.Low, other.Low), math.Max(p.High, other.High)
		p.Alternatives = append(p.Alternatives, other.alternative())
	}
	p.Warnings = append(p.Warnings, c.table.warnings(ranks)...)
	if refused != nil {
		other := c.predict(refused, ranks)
		if math.IsNaN(other.Value) { // too large for its terms
			p.Low, p.High = c.table.clip(-math.MaxFloat64), c.table.clip(math.MaxFloat64)
		} else {
			value := math.Max(-math.MaxFloat64, math.Min(c.table.clip(other.Value), math.MaxFloat64))
			p.Low, p.High = math.Min(p.Low, value), math.Max(p.High, value)
		}
		p.Warnings = append(p.Warnings, Warning{Refused,
			fmt.Sprintf("%s has a smaller error in cross-validation, but is not monotone or changes its sign on the way to %d ranks, where it predicts %s: a run on more ranks would decide", other.Formula, ranks, number(other.Value))})
	}
	if uncertain := uncertainty(&p); uncertain != nil {
		p.Warnings = append(p.Warnings, *uncertain)
	}
	return p
}

// wideInterval is the width of an interval, as a fraction of the prediction, above which there is a warning.
const wideInterval = 0.5

// uncertainty returns a warning if the interval is wide, otherwise nil.
func uncertainty(p *Prediction) *Warning {
	if p.High-p.Low <= wideInterval*math.Abs(p.Value) {
		return nil
	}
	text := "the values are scattered around every form"
	if n := len(p.Alternatives); n > 0 {
		text = fmt.Sprintf("%d forms have about the same error", n+1)
	}
	return &Warning{Uncertain, fmt.Sprintf("between %s and %s at %d ranks: %s; a run closer to %d would narrow this",
		number(p.Low), number(p.High), p.Ranks, text, p.Ranks)}
}

// alternative returns the prediction as an alternative of another one.
func (p *Prediction) alternative() Alternative {
	return Alternative{Form: p.Form, Formula: p.Formula, Value: p.Value, LeaveOneOut: p.LeaveOneOut}
}

// choose returns the best candidate for a rank count, all that are about as good, and a better one that was refused, or
// nil.
func (c *Curve) choose(ranks int64) (best *candidate, good []*candidate, refused *candidate) {
	var sound []*candidate
	for i := range c.candidates {
		if k := &c.candidates[i]; c.table.sound(k, ranks) {
			sound = append(sound, k)
		} else if len(sound) == 0 && refused == nil && finite(k.score) {
			refused = k
		}
	}
	if len(c.table.ranks) == 2 {
		best, good = chooseFromTwo(sound)
		return best, good, nil
	}
	best = sound[0] // exists, as a constant is always sound
	for _, k := range sound {
		if k.score <= near*sound[0].score {
			good = append(good, k)
		}
		if k.score <= tie*sound[0].score && k.rolling < best.rolling {
			best = k
		}
	}
	return best, good, refused
}

// fair is the error below which a form with one coefficient is chosen when there are two rank counts.
const fair = 0.05

// chooseFromTwo chooses when there are two rank counts. They cannot tell forms with two coefficients apart, so all
// such forms count as good.
func chooseFromTwo(sound []*candidate) (best *candidate, good []*candidate) {
	for _, k := range sound {
		if k.form.parameters() == 2 {
			good = append(good, k)
		}
	}
	if finite(sound[0].score) && sound[0].leaveOneOut <= fair || len(good) == 0 {
		return sound[0], append(good, sound[0])
	}
	best = good[0]
	for _, k := range good {
		if k.form.family == Power || best.form.family != Power && k.form.family == Log {
			best = k
		}
	}
	return best, good
}

// A falling line is negative at enough ranks, and yet may fit best: a form that changes its sign below signLimit
// ranks is not excluded, but its score is multiplied by signPenalty.
const (
	signLimit   = 1 << 20
	signPenalty = 2
)

// changesSign reports whether a form changes its sign beyond the points.
func (t *table) changesSign(k *fitted) bool {
	if !t.hasOneSign() {
		return false
	}
	for p := float64(t.ranks[len(t.ranks)-1]); p < signLimit; p *= 2 {
		if k.value(p)*t.sign() < 0 {
			return true
		}
	}
	return false
}

// sound reports whether a form is monotone from the points to a rank count and does not change its sign.
func (t *table) sound(k *candidate, ranks int64) bool {
	first, last := float64(t.ranks[0]), float64(t.ranks[len(t.ranks)-1])
	to := float64(ranks)
	lo, hi := math.Min(first, to), math.Max(last, to)
	if !t.monotone() { // then a form need not be monotone between the points
		switch {
		case to > last:
			lo = last
		case to < first:
			hi = first
		default:
			lo, hi = to, to
		}
	}
	const steps = 32
	before, up, down := k.value(lo), false, false
	for i := range steps + 1 {
		y := k.value(lo * math.Pow(hi/lo, float64(i)/steps))
		if !finite(y*t.scale) || t.hasOneSign() && y*t.sign() < -1e-9 {
			return false
		}
		eps := 1e-9 * math.Max(math.Abs(y), math.Abs(before))
		up, down = up || y > before+eps, down || y < before-eps
		before = y
	}
	return !up || !down
}

// hasOneSign reports whether all values but zeros have the same sign.
func (t *table) hasOneSign() bool {
	least, most := t.points[0].Value, t.points[0].Value
	for _, p := range t.points {
		least, most = math.Min(least, p.Value), math.Max(most, p.Value)
	}
	return least >= 0 || most <= 0
}

// sign returns the sign of the values, if they have one.
func (t *table) sign() float64 {
	for _, p := range t.points {
		if p.Value != 0 {
			return math.Copysign(1, p.Value)
		}
	}
	return 1
}

// monotone reports whether the values only rise or only fall with the number of ranks.
func (t *table) monotone() bool {
	up, down := false, false
	for i, p := range t.points[1:] {
		up, down = up || p.Value > t.points[i].Value, down || p.Value < t.points[i].Value
	}
	return !up || !down
}

// predict returns a candidate's prediction with its own interval.
func (c *Curve) predict(k *candidate, ranks int64) Prediction {
	to := float64(ranks)
	y := k.value(to)
	s := math.Max(k.s, c.table.leastNoise(k))
	noise := s
	if c.table.relative {
		noise = s * math.Abs(y)
	}
	low, high := k.interval(to, s, noise)
	if math.IsNaN(low) || math.IsNaN(high) { // the squares of values too far apart overflow
		low, high = math.Inf(-1), math.Inf(1)
	}
	if k.df == 0 { // the points do not tell the noise; the interval then comes from other forms
		low, high = y, y
	}
	// a form that was requested by name may have the wrong sign
	low, high = math.Min(c.table.clip(low), y), math.Max(c.table.clip(high), y)
	low, high = math.Max(low*c.table.scale, -math.MaxFloat64), math.Min(high*c.table.scale, math.MaxFloat64)
	return Prediction{Ranks: ranks, Value: y * c.table.scale, Low: low, High: high, Form: k.form.family,
		Formula:     c.formula(k),
		LeaveOneOut: fraction(k.leaveOneOut), RollingOrigin: fraction(k.rolling), Alternatives: []Alternative{},
		Warnings: []Warning{}}
}

// clip returns the value, or 0 if it has a sign that no training value has.
func (t *table) clip(y float64) float64 {
	if t.hasOneSign() && y*t.sign() < 0 {
		return 0
	}
	return y
}

// leastNoise returns the standard deviation, of a value of weight 1, due to rounding to the last digit.
func (t *table) leastNoise(k *candidate) float64 {
	var sum float64
	for _, p := range t.points {
		w := t.weight(p)
		if k.form.family == Power {
			w = 1 / (p.Value * p.Value)
		}
		sum += w * t.resolution * t.resolution / 12
	}
	return math.Sqrt(sum / float64(len(t.points)))
}

// formula returns the text of a candidate in the unit of the values.
func (c *Curve) formula(k *candidate) string {
	r := k.fitted
	r.c[0] *= c.table.scale
	if r.form.family != Power {
		r.c[1] *= c.table.scale
	}
	return r.text()
}

// fraction returns nil for an error that is not known.
func fraction(x float64) *float64 {
	if !finite(x) {
		return nil
	}
	return &x
}

// PredictWith returns the prediction of the best form of a family (one of Forms), with that form's own interval.
func (c *Curve) PredictWith(ranks int64, family string) (Prediction, error) {
	if !slices.Contains(Forms(), family) {
		return Prediction{}, fmt.Errorf("no form %q; there are %v", family, Forms())
	}
	want := family
	if family == PaperPower {
		want = Power
	}
	if family == Exact {
		if len(c.laws) == 0 {
			return Prediction{}, fmt.Errorf("no exact law fits all %d values", len(c.table.points))
		}
		p, ok := c.predictExactly(ranks)
		if !ok {
			return p, fmt.Errorf("no exact law has a value at %d ranks: that of %s is unknown there", ranks, c.laws[0].text)
		}
		return p, nil
	}
	for _, k := range c.candidates {
		if k.form.family != want {
			continue
		}
		if family == PaperPower {
			k.c[1] = math.Round(k.c[1]*1000) / 1000
		}
		p := c.predict(&k, ranks)
		if p.Form = family; len(c.table.ranks) == 2 {
			all := c.byForms(ranks)
			p.Low, p.High = math.Min(p.Value, all.Low), math.Max(p.Value, all.High)
		}
		p.Warnings = append(p.Warnings, c.table.warnings(ranks)...)
		return p, nil
	}
	return Prediction{}, fmt.Errorf("the values do not determine a form of the family %s", family)
}
