package calibrate

import (
	"math"
	"slices"
)

// Errors that every range of a line has: times are whole nanoseconds, and the shortest, lower and median times are
// known to within 1 %, so that sums of them are nearer.
const (
	roundingNs   = 0.5
	rangeSlack   = 0.002
	jackknifeTwo = 2
)

// findRange finds Low and High, and the range of the line's time at each size.
func (f *Fit) findRange(points []Point) {
	var borders []int64
	for _, p := range f.Line.Pieces {
		borders = append(borders, p.AboveBytes)
	}
	lines := []Line{f.Line}
	for _, ns := range []func(*Point) float64{func(p *Point) float64 { return p.MinNs },
		func(p *Point) float64 { return p.MedianNs }} {
		if through := withTimes(points, ns); through != nil {
			l, _ := solve(through, borders)
			lines = append(lines, l)
		}
	}
	left := leaveOut(points, borders)
	f.Low, f.High = f.Line, f.Line
	f.Low.Pieces, f.High.Pieces = slices.Clone(f.Line.Pieces), slices.Clone(f.Line.Pieces)
	set := func(low, high *float64, slack float64, value func(*Line) float64) {
		*low, *high = rangeOver(lines, left, slack, value)
	}
	set(&f.Low.LatencyNs, &f.High.LatencyNs, roundingNs, func(l *Line) float64 { return l.LatencyNs })
	set(&f.Low.NsPerByte, &f.High.NsPerByte, 0, func(l *Line) float64 { return l.NsPerByte })
	for k := range borders {
		low, high := &f.Low.Pieces[k], &f.High.Pieces[k]
		set(&low.StepNs, &high.StepNs, roundingNs, func(l *Line) float64 { return l.Pieces[k].StepNs })
		set(&low.NsPerByte, &high.NsPerByte, 0, func(l *Line) float64 { return l.Pieces[k].NsPerByte })
	}
	for i := range f.Residuals {
		r := &f.Residuals[i]
		set(&r.LowNs, &r.HighNs, roundingNs, func(l *Line) float64 { return l.Ns(r.Bytes) })
	}
}

// withTimes returns points with other times; nil if they are not known.
func withTimes(points []Point, ns func(*Point) float64) []Point {
	points = slices.Clone(points)
	for i := range points {
		if points[i].Ns = ns(&points[i]); points[i].Ns <= 0 {
			return nil
		}
	}
	return points
}

// leaveOut fits a line without each of the sizes in turn, as long as every piece keeps two.
func leaveOut(points []Point, borders []int64) (lines []Line) {
	for i := range points {
		rest := slices.Delete(slices.Clone(points), i, i+1)
		if len(rest) > 2+2*len(borders) && rest[0].Bytes != rest[len(rest)-1].Bytes {
			l, _ := solve(rest, borders)
			lines = append(lines, l)
		}
	}
	return lines
}

// rangeOver returns the range of a number over lines, widened by the jackknife's standard error and by slack. left are
// the lines of which each lacks a point.
func rangeOver(lines, left []Line, slack float64, value func(*Line) float64) (low, high float64) {
	low, high = value(&lines[0]), value(&lines[0])
	for i := range lines {
		v := value(&lines[i])
		low, high = min(low, v), max(high, v)
	}
	mean, sum, n := 0.0, 0.0, float64(len(left))
	for i := range left {
		mean += value(&left[i]) / n
	}
	for i := range left {
		sum += math.Pow(value(&left[i])-mean, 2)
	}
	beyond := slack + rangeSlack*high
	if n > 1 {
		beyond += jackknifeTwo * math.Sqrt(sum*(n-1)/n)
	}
	return max(low-beyond, 0), high + beyond
}
