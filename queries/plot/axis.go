package plot

import "math"

// scale is the range of an axis.
type scale struct {
	least, most float64
	log         bool
}

// scaleOf makes a range for values. That of bars begins at 0, that of others too where the values are not far above it.
func scaleOf(e extent, log, bars bool) scale {
	if e.least > e.most {
		e = extent{0, 1}
		if log {
			e = extent{1, 10}
		}
	}
	s := scale{e.least, e.most, log}
	if log {
		if s.most = e.most * 1.3; bars { // the least bar can be seen too
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
	margin := (s.most - s.least) * 0.04
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

// at is where a value lies, as a fraction of the range.
func (s scale) at(v float64) float64 {
	if s.log {
		return math.Log(v/s.least) / math.Log(s.most/s.least)
	}
	return (v - s.least) / (s.most - s.least)
}

// ticks are the marks of an axis of numbers.
func (s scale) ticks(a Axis) []mark {
	if s.log {
		return s.logTicks(a)
	}
	step := niceStep((s.most - s.least) / 7)
	if a.Whole || a.Unit == "ns" || a.Unit == "bytes" {
		step = max(1, step)
	}
	var marks []mark
	for i := math.Ceil(s.least/step-1e-9) + 0; i*step <= s.most; i++ { // + 0: of -0 it makes 0
		marks = append(marks, mark{i * step, withUnit(i*step, a.Unit)})
	}
	return marks
}

// logTicks are at powers of ten, with short ones between them, which have numbers where powers are few.
func (s scale) logTicks(a Axis) []mark {
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
				marks = append(marks, mark{v, withUnit(v, a.Unit)})
			case every == 1:
				marks = append(marks, mark{v, ""})
			}
		}
	}
	return marks
}
