package plot

import "math"

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

// unit returns the unit of an axis: that of its greatest value; of logarithmic times, that of the middle; of logarithmic
// sizes bytes, because the numbers have prefixes.
func (s scale) unit(a Axis) unit {
	most := max(math.Abs(s.least), math.Abs(s.most)/axisMargin)
	switch {
	case s.log && a.Unit == "bytes":
		most = 1
	case s.log:
		most = math.Sqrt(s.least * s.most)
	}
	return unitFor(a.Unit, most)
}

// ticks returns the marks of a numeric axis.
func (s scale) ticks(a Axis) []mark {
	u := s.unit(a)
	switch {
	case s.log && a.Unit == "bytes":
		return s.binaryTicks()
	case s.log:
		return s.logTicks(u)
	}
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

// binaryTicks marks powers of two, at most about ten.
func (s scale) binaryTicks() []mark {
	low, high := math.Ceil(math.Log2(s.least)-1e-9), math.Floor(math.Log2(s.most)+1e-9)
	if high-low < 1 {
		return s.logTicks(unit{"B", 1})
	}
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
