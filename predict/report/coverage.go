package report

import (
	"math"
	"slices"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
)

// Coverage tells how well the intervals of a prediction hold for the bytes that calls send. On each rank, each distinct
// pair of a predicted and a measured number at a place in the program counts once.
type Coverage struct {
	// Numbers is how many pairs there are, Covered how many measured numbers lie in their interval.
	Numbers int64 `json:"numbers"`
	Covered int64 `json:"covered"`
	// Exact is how many numbers were predicted as exact, ExactRight how many of these are right.
	Exact      int64 `json:"exact"`
	ExactRight int64 `json:"exact_right"`
	// Wrong are the places in the program where numbers were predicted as exact and are wrong.
	Wrong []WrongNumber `json:"wrong"`
	// WidthMedian is the median width of the intervals of the other numbers, as a fraction of the number; null if there
	// are none, or half of the intervals are infinite.
	WidthMedian *float64 `json:"width_median"`
}

// WrongNumber is a place in the program where numbers were predicted as exact and are wrong.
type WrongNumber struct {
	// Call names the call and its place.
	Call string `json:"call"`
	// Numbers is how many are wrong. Rank, Predicted and Measured are those of the first one, in bytes.
	Numbers   int64 `json:"numbers"`
	Rank      int32 `json:"rank"`
	Predicted int64 `json:"predicted"`
	Measured  int64 `json:"measured"`
}

// coverageCounter compares the numbers of all ranks.
type coverageCounter struct {
	model         *model.Model
	prediction    *generate.Prediction
	measured      *signature.Signature
	paths         []string // of the predicted run's events
	measuredPaths []string
	coverage      Coverage
	widths        []float64
	wrong         map[int32]int // index in Wrong, by event
}

// numberPair is a predicted and a measured number of an event.
type numberPair struct {
	path                string
	predicted, measured int64
}

// Cover compares the intervals of a prediction with a measured run on the same number of ranks.
func Cover(m *model.Model, x *generate.Prediction, measured *signature.Signature) Coverage {
	c := coverageCounter{model: m, prediction: x, measured: measured,
		paths:         x.Signature.EventPaths(m.Joint.LevelsAsIterations),
		measuredPaths: measured.EventPaths(m.Joint.LevelsAsIterations), wrong: map[int32]int{},
		coverage: Coverage{Wrong: []WrongNumber{}}}
	for r := range min(x.Signature.Ranks, measured.Ranks) {
		c.addRank(r)
	}
	slices.Sort(c.widths)
	if n := len(c.widths); n > 0 && !math.IsInf(c.widths[n/2], 0) && c.widths[n/2] < 1e12 {
		c.coverage.WidthMedian = &c.widths[n/2]
	}
	return c.coverage
}

// addRank compares the numbers of a rank: at each event the first with the first, and so on.
func (c *coverageCounter) addRank(rank int32) {
	measured := map[string][]int64{} // by path
	c.measured.Walk(rank, func(n *template.Node, call *signature.Call) {
		if call.Send.HasBytes() {
			path := c.measuredPaths[n.ID]
			measured[path] = append(measured[path], int64(call.Send[signature.SideBytes]))
		}
	})
	next, seen := map[string]int{}, map[numberPair]bool{}
	c.prediction.Signature.Walk(rank, func(n *template.Node, call *signature.Call) {
		if !call.Send.HasBytes() {
			return
		}
		path := c.paths[n.ID]
		i := next[path]
		next[path]++
		if i >= len(measured[path]) {
			return // the score of messages shows that it is missing
		}
		pair := numberPair{path, int64(call.Send[signature.SideBytes]), measured[path][i]}
		if !seen[pair] {
			seen[pair] = true
			c.addPair(n, rank, pair)
		}
	})
}

// addPair counts a pair of numbers.
func (c *coverageCounter) addPair(n *template.Node, rank int32, p numberPair) {
	x := &c.coverage
	x.Numbers++
	site := c.model.SiteOf(n.ID)
	b, inexact := c.prediction.BoundsOf(site.Send.Bytes, p.predicted)
	if inexact {
		c.widths = append(c.widths, (float64(b.High)-float64(b.Low))/float64(max(p.predicted, 1)))
		if p.measured >= b.Low && p.measured <= b.High {
			x.Covered++
		}
		return
	}
	x.Exact++
	if p.measured == p.predicted {
		x.Covered++
		x.ExactRight++
		return
	}
	w, known := c.wrong[n.ID]
	if !known {
		w = len(x.Wrong)
		c.wrong[n.ID] = w
		x.Wrong = append(x.Wrong, WrongNumber{Call: c.model.NodeName(site.Event), Rank: rank, Predicted: p.predicted,
			Measured: p.measured})
	}
	x.Wrong[w].Numbers++
}
