package plot

import (
	"math"
	"slices"
	"strconv"
)

// Ruler is an axis that a page draws itself, with the units and ticks of the pictures.
type Ruler struct {
	axis  Axis
	scale scale
}

// Tick is a number at an axis: At is 0 at the start of the axis and 1 at its end.
type Tick struct {
	At    float64
	Label string
}

// NewRuler returns an axis that covers some values.
func NewRuler(a Axis, values []float64) Ruler {
	e := nothing()
	for _, v := range values {
		e.add(v)
	}
	if a.From != a.To && !a.Log {
		e.add(a.From)
		e.add(a.To)
	}
	return Ruler{a, scaleOf(e, a.Log, false)}
}

// Title is the name of the axis with its unit.
func (r Ruler) Title() string { return r.scale.unit(r.axis).titled(r.axis.Name) }

// Fraction returns the position of a value: 0 at the start of the axis, 1 at its end.
func (r Ruler) Fraction(v float64) float64 { return r.scale.fraction(v) }

// Ticks returns the numbers at the axis.
func (r Ruler) Ticks() []Tick { return r.placed(r.scale.ticks(r.axis)) }

// TicksAt returns the values themselves if they say more than round numbers do, else Ticks.
func (r Ruler) TicksAt(values []float64) []Tick {
	if own := r.axis.ownTicks(values); own != nil {
		return r.placed(own)
	}
	return r.Ticks()
}

func (r Ruler) placed(marks []mark) (all []Tick) {
	for _, m := range marks {
		if m.label != "" {
			all = append(all, Tick{r.scale.fraction(m.at), m.label})
		}
	}
	return all
}

// scale is the range of an axis.
type scale struct {
	least, most float64
	log         bool
}

// axisMargin is how much longer than its greatest value an axis is.
const axisMargin = 1.04

// scaleOf returns a range for values. It begins at 0 for bars, and for others if the values are not far above 0.
func scaleOf(e extent, log, bars bool) scale {
	if e.least > e.most {
		e = extent{0, 1}
		if log {
			e = extent{1, 10}
		}
	}
	s := scale{e.least, e.most, log}
	if log {
		if s.most = e.most * 1.3; bars { // the lowest bar must be visible
			s.least = math.Pow(10, math.Ceil(math.Log10(e.least)-1e-9)-1)
		} else {
			s.least = e.least / 1.3
		}
		return s
	}
	if e.least >= 0 && (bars || e.least <= e.most/2) {
		s.least = 0
	} else if bars {
		s.least = min(0, e.least)
	}
	margin := (s.most - s.least) * (axisMargin - 1)
	if margin == 0 {
		margin = max(math.Abs(s.most)*0.04, 1e-9)
		if s.most == 0 {
			s.most = 1
		}
	}
	s.most += margin
	if s.least != 0 {
		s.least -= margin
	}
	return s
}

// fraction returns the position of a value in the range: 0 at its start, 1 at its end.
func (s scale) fraction(v float64) float64 {
	if s.log {
		return math.Log(v/s.least) / math.Log(s.most/s.least)
	}
	return (v - s.least) / (s.most - s.least)
}

// unit returns the unit of an axis: that of its greatest value; of logarithmic times, that of the middle; of
// logarithmic sizes bytes, because the numbers have prefixes.
func (s scale) unit(a Axis) unit {
	most := max(math.Abs(s.least), math.Abs(s.most)/axisMargin)
	switch {
	case s.binary(a):
		most = 1
	case s.log:
		most = math.Sqrt(s.least * s.most)
	}
	return unitFor(a.Unit, most)
}

// binary reports whether an axis has powers of two: of sizes that differ enough to have some.
func (s scale) binary(a Axis) bool { return s.log && a.Unit == "bytes" && s.most >= 4*s.least }

// ticks returns the marks of a numeric axis.
func (s scale) ticks(a Axis) []mark {
	u := s.unit(a)
	switch {
	case s.binary(a):
		return s.binaryTicks()
	case s.log && a.Unit != "bytes":
		if marks := s.logTicks(u); labelled(marks) > 1 {
			return marks
		}
	}
	return s.evenTicks(a, u)
}

// evenTicks marks round numbers at equal distances in value.
func (s scale) evenTicks(a Axis, u unit) []mark {
	step := niceStep((s.most-s.least)/7/u.size) * u.size
	if a.Integers || a.Unit == "ns" || a.Unit == "bytes" {
		step = max(1, step)
	}
	var marks []mark
	for i := math.Ceil(s.least/step-1e-9) + 0; i*step <= s.most*(1+1e-12); i++ { // + 0 turns -0 into 0
		marks = append(marks, mark{i * step, u.number(i * step)})
	}
	return marks
}

// labelled returns the number of marks with a label.
func labelled(marks []mark) (n int) {
	for _, m := range marks {
		if m.label != "" {
			n++
		}
	}
	return n
}

// binaryTicks marks powers of two, at most about ten.
func (s scale) binaryTicks() []mark {
	low, high := math.Ceil(math.Log2(s.least)-1e-9), math.Floor(math.Log2(s.most)+1e-9)
	every := 1.0
	for _, e := range []float64{1, 2, 5, 10} {
		if every = e; (high-low)/e <= 10 {
			break
		}
	}
	var marks []mark
	for e := math.Ceil(low/every) * every; e <= high; e += every {
		marks = append(marks, mark{math.Exp2(e), binary(math.Exp2(e))})
	}
	return marks
}

// logTicks marks the powers of ten, with short ticks between them, which get numbers if there are few powers.
func (s scale) logTicks(u unit) []mark {
	var marks []mark
	decades := math.Log10(s.most / s.least)
	every := math.Ceil(decades / 12)
	for e := math.Floor(math.Log10(s.least)); math.Pow(10, e) <= s.most; e++ {
		for f := 1.0; f < 10; f++ {
			v := f * math.Pow(10, e)
			named := f == 1 && math.Mod(e, every) == 0 || decades < 3 && (f == 2 || f == 5) || decades < 1
			switch {
			case v < s.least || v > s.most:
			case named:
				marks = append(marks, mark{v, u.number(v)})
			case every == 1:
				marks = append(marks, mark{v, ""})
			}
		}
	}
	return marks
}

// ownTicks marks the values themselves if they are a few integers without unit on a logarithmic axis, such as numbers
// of ranks; else it returns nil.
func (a Axis) ownTicks(values []float64) []mark {
	if !a.Log || len(unitsOf(a.Unit)) > 1 {
		return nil
	}
	var xs []float64
	for _, x := range values {
		if !slices.Contains(xs, x) {
			xs = append(xs, x)
		}
		if len(xs) > 12 || x != math.Trunc(x) {
			return nil
		}
	}
	slices.Sort(xs)
	marks := make([]mark, len(xs))
	for i, x := range xs {
		marks[i] = mark{x, ownNumber(x)}
	}
	return marks
}

// ownNumber writes a value of the data itself, without a prefix unless it is long: 1024 ranks are not 1.024 k.
func ownNumber(x float64) string {
	if math.Abs(x) < 1e5 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return short(x)
}
