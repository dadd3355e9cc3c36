package regress

import (
	"fmt"
	"math"
	"slices"
)

// near is how much worse the score of a form may be whose interval belongs to the answer: with it 95 of 100 intervals hold, whatever the law
// was (docs/validation/prediction.md).
const near = 2

// tie is how close two scores are between which the rolling-origin error decides.
const tie = 1.1

// At is the prediction for a number of ranks, by the curve's own choice of a form.
func (c *Curve) At(ranks int64) Prediction {
	var strong, weak []law
	for _, l := range c.laws {
		if _, ok := l.at(ranks); !ok {
			continue
		}
		if l.bits >= enough {
			strong = append(strong, l)
		} else {
			weak = append(weak, l)
		}
	}
	if len(strong) > 0 {
		return c.byLaws(ranks, append(strong, weak...), false)
	}
	if len(weak) > 0 {
		return c.byLaws(ranks, weak, true)
	}
	return c.byForms(ranks)
}

// byForms predicts by least squares: the best form's value, and the intervals of all that are about as good. A form that was refused and is
// better than the best widens the interval by what it says: it may be right.
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
	p.Warnings = append(p.Warnings, c.warnings(ranks)...)
	if refused != nil {
		other := c.predict(refused, ranks)
		p.Low, p.High = math.Min(p.Low, c.possible(other.Value)), math.Max(p.High, c.possible(other.Value))
		p.Warnings = append(p.Warnings, Warning{Refused, fmt.Sprintf("%s has a smaller error on points left out, but turns round or changes its sign on the way to %d ranks, where it says %s: a run on more ranks would decide", other.Formula, ranks, number(other.Value))})
	}
	if uncertain := c.uncertain(&p); uncertain != nil {
		p.Warnings = append(p.Warnings, *uncertain)
	}
	return p
}

// apart is the width of an interval, as a fraction of the prediction, from which on there is a warning.
const apart = 0.5

// uncertain is a warning where the interval is wide.
func (c *Curve) uncertain(p *Prediction) *Warning {
	if p.High-p.Low <= apart*math.Abs(p.Value) {
		return nil
	}
	text := "the values are scattered around every form"
	if n := len(p.Alternatives); n > 0 {
		text = fmt.Sprintf("%d forms have about the same error", n+1)
	}
	return &Warning{Uncertain, fmt.Sprintf("between %s and %s at %d ranks: %s; a run nearer to %d would tell", number(p.Low), number(p.High), p.Ranks, text, p.Ranks)}
}

// alternative is a prediction that another one mentions.
func (p *Prediction) alternative() Alternative {
	return Alternative{Form: p.Form, Formula: p.Formula, Value: p.Value, LeaveOneOut: p.LeaveOneOut}
}

// choose is the best candidate for a number of ranks, all that are about as good, and a better one that was refused.
func (c *Curve) choose(ranks int64) (best *candidate, good []*candidate, refused *candidate) {
	var sound []*candidate
	for i := range c.candidates {
		if k := &c.candidates[i]; c.sound(k, ranks) {
			sound = append(sound, k)
		} else if len(sound) == 0 && refused == nil && finite(k.score) {
			refused = k
		}
	}
	if len(c.ranks) == 2 {
		best, good = c.ofTwo(sound)
		return best, good, nil
	}
	best = sound[0] // there is one: a constant is always sound
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

// fair is the error of a form with one coefficient at two numbers of ranks below which it is taken for the law.
const fair = 0.05

// ofTwo chooses where there are two numbers of ranks: nothing can tell forms with two coefficients apart, so the interval is of them all.
func (c *Curve) ofTwo(sound []*candidate) (best *candidate, good []*candidate) {
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

// beyond is the number of ranks up to which a form should not change its sign, and the price of one that does: a line that falls has no
// value at enough ranks, and yet may be what was seen.
const (
	beyond    = 1 << 20
	lapsePaid = 2
)

// lapses reports whether a form changes its sign somewhere beyond the points.
func (c *Curve) lapses(k *fitted) bool {
	if !c.oneSign() {
		return false
	}
	for p := float64(c.ranks[len(c.ranks)-1]); p < beyond; p *= 2 {
		if k.at(p)*c.sign() < 0 {
			return true
		}
	}
	return false
}

// sound reports whether a form goes one way from the points to a number of ranks, without changing its sign.
func (c *Curve) sound(k *candidate, ranks int64) bool {
	first, last := float64(c.ranks[0]), float64(c.ranks[len(c.ranks)-1])
	to := float64(ranks)
	lo, hi := math.Min(first, to), math.Max(last, to)
	if !c.monotone() { // then a form may turn where points are
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
	before, up, down := k.at(lo), false, false
	for i := range steps + 1 {
		y := k.at(lo * math.Pow(hi/lo, float64(i)/steps))
		if !finite(y*c.scale) || c.oneSign() && y*c.sign() < -1e-9 {
			return false
		}
		eps := 1e-9 * math.Max(math.Abs(y), math.Abs(before))
		up, down = up || y > before+eps, down || y < before-eps
		before = y
	}
	return !up || !down
}

// oneSign reports whether no value has another sign than another, zeros apart.
func (c *Curve) oneSign() bool {
	least, most := c.points[0].Value, c.points[0].Value
	for _, p := range c.points {
		least, most = math.Min(least, p.Value), math.Max(most, p.Value)
	}
	return least >= 0 || most <= 0
}

// sign is that of the values where they have one.
func (c *Curve) sign() float64 {
	for _, p := range c.points {
		if p.Value != 0 {
			return math.Copysign(1, p.Value)
		}
	}
	return 1
}

// monotone reports whether the values go one way with the number of ranks.
func (c *Curve) monotone() bool {
	up, down := false, false
	for i, p := range c.points[1:] {
		up, down = up || p.Value > c.points[i].Value, down || p.Value < c.points[i].Value
	}
	return !up || !down
}

// predict is a candidate's prediction with its own interval.
func (c *Curve) predict(k *candidate, ranks int64) Prediction {
	to := float64(ranks)
	y := k.at(to)
	s := math.Max(k.s, c.leastNoise(k))
	noise := s
	if c.relative {
		noise = s * math.Abs(y)
	}
	low, high := k.interval(to, s, noise)
	if k.df == 0 { // the points say nothing of noise: what other forms say has to serve
		low, high = y, y
	}
	low, high = math.Min(c.possible(low), y), math.Max(c.possible(high), y) // a form that was asked for by name may say what cannot be
	low, high = math.Max(low*c.scale, -math.MaxFloat64), math.Min(high*c.scale, math.MaxFloat64)
	return Prediction{Ranks: ranks, Value: y * c.scale, Low: low, High: high, Form: k.form.family, Formula: c.formula(k),
		LeaveOneOut: fraction(k.leaveOneOut), RollingOrigin: fraction(k.rolling), Alternatives: []Alternative{}, Warnings: []Warning{}}
}

// possible is a value, or 0 where that has a sign that no value has: what is never negative will not be.
func (c *Curve) possible(y float64) float64 {
	if c.oneSign() && y*c.sign() < 0 {
		return 0
	}
	return y
}

// leastNoise is the standard deviation that comes of the values' last digit, of a value of weight 1.
func (c *Curve) leastNoise(k *candidate) float64 {
	var sum float64
	for _, p := range c.points {
		w := c.weight(p)
		if k.form.family == Power {
			w = 1 / (p.Value * p.Value)
		}
		sum += w * c.resolution * c.resolution / 12
	}
	return math.Sqrt(sum / float64(len(c.points)))
}

// formula is a candidate's text in the unit of the values.
func (c *Curve) formula(k *candidate) string {
	r := k.fitted
	r.c[0] *= c.scale
	if r.form.family != Power {
		r.c[1] *= c.scale
	}
	return r.text()
}

func fraction(x float64) *float64 {
	if !finite(x) {
		return nil
	}
	return &x
}

// AtForm is the prediction of the best form of a family (one of Forms), with that form's own interval.
func (c *Curve) AtForm(ranks int64, family string) (Prediction, error) {
	if !slices.Contains(Forms(), family) {
		return Prediction{}, fmt.Errorf("no form %q; there are %v", family, Forms())
	}
	want := family
	if family == PaperPower {
		want = Power
	}
	if family == Exact {
		if len(c.laws) == 0 {
			return Prediction{}, fmt.Errorf("no exact law has all %d values", len(c.points))
		}
		return c.byLaws(ranks, c.laws, false), nil
	}
	for _, k := range c.candidates {
		if k.form.family != want {
			continue
		}
		if family == PaperPower {
			k.c[1] = math.Round(k.c[1]*1000) / 1000
		}
		p := c.predict(&k, ranks)
		if p.Form = family; len(c.ranks) == 2 {
			all := c.byForms(ranks)
			p.Low, p.High = math.Min(p.Value, all.Low), math.Max(p.Value, all.High)
		}
		p.Warnings = append(p.Warnings, c.warnings(ranks)...)
		return p, nil
	}
	return Prediction{}, fmt.Errorf("the values do not determine a form of the family %s", family)
}
