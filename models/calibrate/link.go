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

// Point is how long messages of one size took.
type Point struct {
	// Bytes is their size, Messages how many there were, 1 or more, Ns the time that stands for them, greater than 0.
	Bytes    int64   `json:"bytes"`
	Messages int64   `json:"messages"`
	Ns       float64 `json:"ns"`
}

// Piece is what messages of more than AboveBytes cost beside: StepNs at once, and NsPerByte for each byte above.
type Piece struct {
	AboveBytes int64   `json:"above_bytes"`
	StepNs     float64 `json:"step_ns"`
	NsPerByte  float64 `json:"ns_per_byte"`
}

// Line is the time of a message by its size: L + S/B (equation 1 of Girona et al.), where the data ask for it with pieces of
// other bandwidths. It never falls.
type Line struct {
	// LatencyNs is L, NsPerByte 1e9/B up to the first piece.
	LatencyNs float64 `json:"latency_ns"`
	NsPerByte float64 `json:"ns_per_byte"`
	// Pieces are in the order of their sizes. Each holds up to the next.
	Pieces []Piece `json:"pieces,omitempty"`
}

// Ns is the time of a message of so many bytes.
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

// BytesPerSecond is the bandwidth of so many ns per byte; 0 means infinite, as in models.Interconnect.
func BytesPerSecond(nsPerByte float64) int64 {
	if nsPerByte <= 1e-9 { // 1e18 bytes/s, the most that a machine can have
		return 0
	}
	return int64(math.Round(1e9 / nsPerByte))
}

// Residual is a point, and what a line says of it.
type Residual struct {
	Point
	// FitNs is the line's time, Error (fit - measured) / measured.
	FitNs float64 `json:"fit_ns"`
	Error float64 `json:"error"`
}

// Fit is a line through points.
type Fit struct {
	// Line is the one that a machine has, which can have pieces; Single the best one without.
	Line   Line `json:"line"`
	Single Line `json:"single"`
	// MinBytes and MaxBytes is the range it was learnt on, Messages how many there were.
	MinBytes int64 `json:"min_bytes"`
	MaxBytes int64 `json:"max_bytes"`
	Messages int64 `json:"messages"`
	// Residuals are those of Line, ErrorTypical and SingleErrorTypical the median over the sizes of the relative errors' amounts of
	// both lines, ErrorMax the largest of Line's.
	Residuals          []Residual `json:"residuals"`
	ErrorTypical       float64    `json:"error_typical"`
	ErrorMax           float64    `json:"error_max"`
	SingleErrorTypical float64    `json:"single_error_typical"`
}

// ErrOneSize says that latency and bandwidth cannot be told apart.
var ErrOneSize = errors.New("messages of two sizes or more are needed to tell latency from bandwidth")

// What the fit takes for granted of its data, as fractions of a time: a line that is off by modelError is no worse than it can be,
// the time that stands for n messages is uncertain by messageError/sqrt(n), and no difference below least counts at all.
const (
	modelError   = 0.05
	messageError = 0.5
	leastError   = 0.01
)

// Bounds of pieces: how many, the sizes that each must have, and how much smaller the Bayesian information criterion has to be
// for one more (10 is very strong evidence: Kass and Raftery, Bayes factors, 1995).
const (
	mostPieces  = 3
	sizesEach   = 3
	strongProof = 10
)

// FitLine fits a line to points by least squares of relative errors, so that the smallest messages count as much as the largest.
// Points that are far off the others count less (Huber's weights). Latency, steps and times per byte are not negative. Points of
// the same size are no error, nor is their order. ErrOneSize is the error when there are not two sizes.
func FitLine(points []Point, pieces bool) (*Fit, error) {
	points = slices.Clone(points)
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.Bytes, b.Bytes) })
	for _, p := range points {
		if p.Ns <= 0 || p.Bytes < 0 || p.Messages < 1 {
			return nil, fmt.Errorf("messages of %d bytes: %d of them took %g ns; want a time above 0 (clocks of two hosts may differ by more than a message takes)", p.Bytes, p.Messages, p.Ns)
		}
	}
	if len(points) == 0 || points[0].Bytes == points[len(points)-1].Bytes {
		return nil, ErrOneSize
	}
	single, best := solve(points, nil)
	f := &Fit{Single: single, Line: single}
	if pieces {
		f.Line = split(points, single, best)
	}
	f.judge(points)
	return f, nil
}

// judge says how good the lines are.
func (f *Fit) judge(points []Point) {
	var off, single []float64
	f.MinBytes, f.MaxBytes = points[0].Bytes, points[len(points)-1].Bytes
	for _, p := range points {
		r := Residual{p, f.Line.Ns(p.Bytes), 0}
		r.Error = (r.FitNs - p.Ns) / p.Ns
		f.Residuals = append(f.Residuals, r)
		f.Messages += p.Messages
		f.ErrorMax = max(f.ErrorMax, math.Abs(r.Error))
		off = append(off, math.Abs(r.Error))
		single = append(single, math.Abs(f.Single.Ns(p.Bytes)-p.Ns)/p.Ns)
	}
	f.ErrorTypical, f.SingleErrorTypical = median(off), median(single)
}

// median is the lower one of an even number of values.
func median(values []float64) float64 {
	values = slices.Clone(values)
	slices.Sort(values)
	return stat.Quantile(0.5, stat.Empirical, values, nil)
}

// split adds the piece that helps most, as long as the data say so strongly.
func split(points []Point, line Line, criterion float64) Line {
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

// populated says whether each piece has sizes enough.
func populated(points []Point, borders []int64) bool {
	counts := make([]int, len(borders)+1)
	for i, p := range points {
		if i > 0 && p.Bytes == points[i-1].Bytes {
			continue
		}
		at, _ := slices.BinarySearch(borders, p.Bytes) // a border belongs to the piece below
		counts[at]++
	}
	return slices.Min(counts) >= sizesEach
}

// solve fits a line with pieces above the borders, and gives its Bayesian information criterion.
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
		line = lineOf(x, borders)
		if same(before, line, points) {
			break
		}
		for i, h := range huber(points, &line) {
			trust[i] = weights[i] * h
		}
	}
	var chi, of float64
	for i, p := range points {
		e := (line.Ns(p.Bytes) - p.Ns) / p.Ns
		h := trust[i] / weights[i]
		chi += weights[i] * e * e * h
		of += weights[i]
	}
	count := float64(len(points))
	return line, count*math.Log(chi/of+leastError*leastError) + float64(n+len(borders))*math.Log(count) // a border is a parameter too
}

// terms are what the unknowns of a line are multiplied with for a size: the latency and the ns per byte of the first piece, then
// the step and the ns per byte of each further one.
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

// lineOf is the line with the unknowns of terms.
func lineOf(x []float64, borders []int64) Line {
	l := Line{LatencyNs: x[0], NsPerByte: x[1]}
	for i, b := range borders {
		l.Pieces = append(l.Pieces, Piece{b, x[2+2*i], x[3+2*i]})
	}
	return l
}

// same says that two lines hardly differ at the points.
func same(a, b Line, points []Point) bool {
	for _, p := range points {
		if math.Abs(a.Ns(p.Bytes)-b.Ns(p.Bytes)) > 1e-6*p.Ns {
			return false
		}
	}
	return true
}

// huber is how much each point counts, by how far it is off in standard deviations as the median has them: 1 up to 1.345 of them.
func huber(points []Point, l *Line) []float64 {
	off := make([]float64, len(points))
	for i, p := range points {
		off[i] = math.Abs(l.Ns(p.Bytes)-p.Ns) / p.Ns
	}
	deviation := max(median(off)/0.6745, leastError)
	for i := range off {
		off[i] = min(1, 1.345*deviation/max(off[i], 1e-12))
	}
	return off
}
