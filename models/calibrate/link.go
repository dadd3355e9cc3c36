package calibrate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Point is the time of messages of one size.
type Point struct {
	// Bytes is their size, Messages their number (at least 1), and Ns the time that represents them (above 0).
	Bytes    int64   `json:"bytes"`
	Messages int64   `json:"messages"`
	Ns       float64 `json:"ns"`
	// MinNs and MedianNs are the shortest and the median time; 0: as Ns.
	MinNs    float64 `json:"-"`
	MedianNs float64 `json:"-"`
}

// Piece is the cost of the bytes of a message beyond AboveBytes: StepNs once, and NsPerByte for each of them.
type Piece struct {
	// AboveBytes is the size from which on the piece applies.
	AboveBytes int64 `json:"above_bytes"`
	// StepNs is a time that these messages take more.
	StepNs float64 `json:"step_ns"`
	// NsPerByte is the time of each byte beyond AboveBytes, in ns.
	NsPerByte float64 `json:"ns_per_byte"`
}

// Line is the time of a message by its size, L + S/B (equation 1 of Girona et al.), if necessary with pieces of other
// bandwidths. It never falls.
type Line struct {
	// LatencyNs is L, and NsPerByte is 1e9/B up to the first piece.
	LatencyNs float64 `json:"latency_ns"`
	NsPerByte float64 `json:"ns_per_byte"`
	// Pieces are in ascending order; each applies up to the next.
	Pieces []Piece `json:"pieces,omitempty"`
}

// Ns returns the time of a message of this size.
func (l *Line) Ns(bytes int64) float64 {
	t, from, slope := l.LatencyNs, int64(0), l.NsPerByte
	for _, p := range l.Pieces {
		if bytes <= p.AboveBytes {
			break
		}
		t += float64(p.AboveBytes-from)*slope + p.StepNs
		from, slope = p.AboveBytes, p.NsPerByte
	}
	return t + float64(bytes-from)*slope
}

// BytesPerSecond converts ns per byte into a bandwidth; 0 means infinite, as in models.Interconnect.
func BytesPerSecond(nsPerByte float64) int64 {
	if nsPerByte <= 1e-9 { // 1e18 bytes/s, the most that a machine can have
		return 0
	}
	return int64(math.Round(1e9 / nsPerByte))
}

// Residual is a point with its error.
type Residual struct {
	Point
	// FitNs is the line's time, and Error is (FitNs - Ns) / Ns.
	FitNs float64 `json:"fit_ns"`
	Error float64 `json:"error"`
	// LowNs and HighNs are the range of the line's time, see Fit.
	LowNs  float64 `json:"fit_low_ns"`
	HighNs float64 `json:"fit_high_ns"`
}

// Fit is a line through points, and its errors.
type Fit struct {
	// Line is the line for the machine, possibly with pieces, and Single the best line without.
	Line   Line `json:"line"`
	Single Line `json:"single"`
	// MinBytes and MaxBytes are the range of the points, and Messages the number of their messages.
	MinBytes int64 `json:"min_bytes"`
	MaxBytes int64 `json:"max_bytes"`
	Messages int64 `json:"messages"`
	// Residuals are those of Line. ErrorTypical and SingleErrorTypical are the medians of the absolute relative errors
	// of both lines, and ErrorMax is the largest of Line.
	Residuals          []Residual `json:"residuals"`
	ErrorTypical       float64    `json:"error_typical"`
	ErrorMax           float64    `json:"error_max"`
	SingleErrorTypical float64    `json:"single_error_typical"`
	// Low and High have the least and the largest value of each number of Line: over lines with the same pieces through
	// the shortest times, the times themselves and the medians, and twice the jackknife's standard error beyond.
	Low  Line `json:"low"`
	High Line `json:"high"`
}

// ErrOneSize is returned when latency and bandwidth cannot be told apart.
var ErrOneSize = errors.New("messages of two or more sizes are needed to tell latency from bandwidth")

// Assumptions of the fit about its data, as fractions of a time: no line is better than modelError, the time that
// represents n messages is uncertain by messageError/sqrt(n), and differences below leastError do not count.
const (
	modelError   = 0.05
	messageError = 0.5
	leastError   = 0.01
)

// Limits of pieces: their number, the number of sizes that each must have, and by how much the Bayesian information
// criterion has to fall for one more (10 is very strong evidence: Kass and Raftery, Bayes factors, 1995).
const (
	mostPieces  = 3
	sizesEach   = 3
	strongProof = 10
)

// FitLine fits a line to points by least squares of relative errors, so that small messages count as much as large
// ones. Outliers count less (Huber's weights). Latency, steps and times per byte are not negative. The points may be in
// any order, and several may have the same size. It returns ErrOneSize when all have.
func FitLine(points []Point, pieces bool) (*Fit, error) {
	points = slices.Clone(points)
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.Bytes, b.Bytes) })
	for _, p := range points {
		if p.Ns <= 0 || p.Bytes < 0 || p.Messages < 1 {
			return nil, fmt.Errorf("%d messages of %d bytes took %g ns; want a time above 0 (the clocks of two hosts "+
				"may differ by more than a message takes)", p.Messages, p.Bytes, p.Ns)
		}
	}
	if len(points) == 0 || points[0].Bytes == points[len(points)-1].Bytes {
		return nil, ErrOneSize
	}
	single, criterion := solve(points, nil)
	f := &Fit{Single: single, Line: single}
	if pieces {
		f.Line = addPieces(points, single, criterion)
	}
	f.computeErrors(points)
	f.findRange(points)
	return f, nil
}

// computeErrors fills in all fields but the lines.
func (f *Fit) computeErrors(points []Point) {
	var errs, single []float64
	f.MinBytes, f.MaxBytes = points[0].Bytes, points[len(points)-1].Bytes
	for _, p := range points {
		r := Residual{Point: p, FitNs: f.Line.Ns(p.Bytes)}
		r.Error = (r.FitNs - p.Ns) / p.Ns
		f.Residuals = append(f.Residuals, r)
		f.Messages += p.Messages
		f.ErrorMax = max(f.ErrorMax, math.Abs(r.Error))
		errs = append(errs, math.Abs(r.Error))
		single = append(single, math.Abs(f.Single.Ns(p.Bytes)-p.Ns)/p.Ns)
	}
	f.ErrorTypical, f.SingleErrorTypical = lowerMedian(errs), lowerMedian(single)
}

// lowerMedian returns the median, or the lower of the two in the middle.
func lowerMedian(values []float64) float64 {
	values = slices.Clone(values)
	slices.Sort(values)
	return stat.Quantile(0.5, stat.Empirical, values, nil)
}

// addPieces adds one piece after the other to a line, each time the one that lowers the criterion most, as long as the
// evidence for it is very strong.
func addPieces(points []Point, line Line, criterion float64) Line {
	var borders []int64
	for len(borders) < mostPieces {
		found, least := int64(-1), criterion-strongProof
		var better Line
		for i := sizesEach - 1; i+sizesEach < len(points); i++ {
			at := points[i].Bytes
			try := append(slices.Clone(borders), at)
			slices.Sort(try)
			if !populated(points, try) {
				continue
			}
			if l, c := solve(points, try); c < least {
				found, least, better = at, c, l
			}
		}
		if found < 0 {
			break
		}
		borders = append(borders, found)
		slices.Sort(borders)
		line, criterion = better, least
	}
	return line
}

// populated reports whether each piece has enough sizes.
func populated(points []Point, borders []int64) bool {
	counts := make([]int, len(borders)+1)
	for i, p := range points {
		if i > 0 && p.Bytes == points[i-1].Bytes {
			continue
		}
		piece, _ := slices.BinarySearch(borders, p.Bytes) // a border belongs to the piece below
		counts[piece]++
	}
	return slices.Min(counts) >= sizesEach
}

// solve fits a line with pieces above the borders. It also returns the line's Bayesian information criterion.
func solve(points []Point, borders []int64) (Line, float64) {
	n := 2 + 2*len(borders)
	weights := make([]float64, len(points))
	for i, p := range points {
		weights[i] = 1 / (modelError*modelError + messageError*messageError/float64(p.Messages))
	}
	trust := slices.Clone(weights)
	var line Line
	for range 20 { // reweighting has settled long before
		a, b := mat.NewDense(len(points), n, nil), make([]float64, len(points))
		scale := make([]float64, n) // of columns
		for i, p := range points {
			w := math.Sqrt(trust[i]) / p.Ns
			for j, v := range terms(p.Bytes, borders) {
				a.Set(i, j, v*w)
			}
			b[i] = p.Ns * w
		}
		for j := range n {
			if scale[j] = mat.Norm(a.ColView(j), 2); scale[j] == 0 {
				scale[j] = 1
			}
			for i := range points {
				a.Set(i, j, a.At(i, j)/scale[j])
			}
		}
		x := nonNegative(a, b)
		for j := range x {
			x[j] /= scale[j]
		}
		before := line
		line = newLine(x, borders)
		if equalWithin(before, line, points) {
			break
		}
		for i, h := range huber(points, &line) {
			trust[i] = weights[i] * h
		}
	}
	var chi, total float64
	for i, p := range points {
		e := (line.Ns(p.Bytes) - p.Ns) / p.Ns
		h := trust[i] / weights[i]
		chi += weights[i] * e * e * h
		total += weights[i]
	}
	count := float64(len(points))
	// a border is a parameter too
	return line, count*math.Log(chi/total+leastError*leastError) + float64(n+len(borders))*math.Log(count)
}

// terms returns the coefficients of a line's unknowns for a size: of the latency and the ns per byte up to the first
// border, then of the step and the ns per byte of each piece.
func terms(bytes int64, borders []int64) []float64 {
	t := make([]float64, 2+2*len(borders))
	t[0] = 1
	from := int64(0)
	for i := 0; ; i++ {
		if i == len(borders) || bytes <= borders[i] {
			t[1+2*i] = float64(bytes - from)
			return t
		}
		t[1+2*i] = float64(borders[i] - from)
		t[2+2*i] = 1
		from = borders[i]
	}
}

// newLine returns the line whose unknowns, as in terms, are x.
func newLine(x []float64, borders []int64) Line {
	l := Line{LatencyNs: x[0], NsPerByte: x[1]}
	for i, b := range borders {
		l.Pieces = append(l.Pieces, Piece{b, x[2+2*i], x[3+2*i]})
	}
	return l
}

// equalWithin reports whether two lines hardly differ at the points.
func equalWithin(a, b Line, points []Point) bool {
	for _, p := range points {
		if math.Abs(a.Ns(p.Bytes)-b.Ns(p.Bytes)) > 1e-6*p.Ns {
			return false
		}
	}
	return true
}

// huber returns Huber's weight of each point: 1 up to an error of 1.345 standard deviations, which are estimated from
// the median, and less beyond.
func huber(points []Point, l *Line) []float64 {
	errs := make([]float64, len(points))
	for i, p := range points {
		errs[i] = math.Abs(l.Ns(p.Bytes)-p.Ns) / p.Ns
	}
	deviation := max(lowerMedian(errs)/0.6745, leastError)
	weights := errs
	for i, e := range errs {
		weights[i] = min(1, 1.345*deviation/max(e, 1e-12))
	}
	return weights
}
