package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/models/sweep"
	"github.com/commq/commq/queries/plot"
)

// checkPlot returns an error if the times of that many runs cannot be drawn; call it before simulating.
func (o *sweepOptions) checkPlot(g *sweep.Grid, runs int) error {
	if o.plot == "" {
		return nil
	}
	for _, a := range g.Axes {
		if err := a.CheckNumeric(); err != nil {
			return err
		}
	}
	if o.within != 0 {
		return nil
	}
	return checkDrawable(len(g.Axes), runs)
}

// checkDrawable returns an error if times over that many keys cannot be drawn for that many runs.
func checkDrawable(keys, runs int) error {
	switch {
	case keys > 2:
		return fmt.Errorf("--plot: a sweep of %d keys has no picture; sweep one or two, or draw ranges with --within",
			keys)
	case keys == 2 && runs > 1:
		return fmt.Errorf("--plot: a heat map shows one run, and there are %d; give one, or draw ranges with "+
			"--within", runs)
	}
	return nil
}

// draw writes the picture.
func (s *sweepResult) draw(o *sweepOptions) error {
	var d plot.Drawing
	switch {
	case o.within != 0:
		d = s.rangeChart(o.within)
	case len(s.grid.Axes) == 1:
		d = s.lineChart()
	default:
		d = s.heatMap()
	}
	return o.writePicture(d)
}

// axisName splits the key of an axis into words and the unit that it ends with.
func axisName(a *sweep.Axis) (name, unit string) {
	name, unit = a.Key, "1"
	for end, of := range map[string]string{"_ns": "ns", "_bytes": "bytes", "_bytes_per_s": "bytes/s"} {
		if words, ok := strings.CutSuffix(a.Key, end); ok {
			name, unit = words, of
		}
	}
	return strings.NewReplacer("_", " ", ".", " ").Replace(name), unit
}

// plotAxis returns an axis of the picture.
func plotAxis(a *sweep.Axis) plot.Axis {
	name, unit := axisName(a)
	return plot.Axis{Name: name, Unit: unit, Log: a.Log, Integers: axisColumn(a).Type == "BIGINT"}
}

// title names the quantity drawn and its runs.
func (s *sweepResult) title(what string) string {
	if len(s.runs) > 1 {
		return fmt.Sprintf("%s: %d runs", what, len(s.runs))
	}
	return what + ": " + s.runs[0].Run
}

// lineChart draws times over one key. The times of several runs may differ widely, so they are drawn relative to
// their references.
func (s *sweepResult) lineChart() plot.Drawing {
	c := &plot.Chart{Title: s.title("Predicted time"), Note: s.note, Kind: "lines", X: plotAxis(s.grid.Axes[0]),
		Y: plot.Axis{Name: "predicted time", Unit: "ns"}, Series: "run"}
	several := len(s.runs) > 1
	if several {
		c.Y = plot.Axis{Name: "predicted time / reference", Unit: "1"}
	} else {
		c.Fit = "reference"
	}
	for _, r := range s.runs {
		for i, ns := range r.PredictedNs {
			v := plot.Value{Series: r.Run, X: s.grid.Axes[0].Numbers[i], Y: float64(ns), Fit: float64(r.ReferenceNs)}
			if several {
				v.Fit = math.NaN()
				v.Y, _ = r.Ratio(i)
			}
			if ns < 0 {
				v.Y = math.NaN()
			}
			c.Add(v)
		}
	}
	return c
}

// heatMap draws times over two keys, the first one across.
func (s *sweepResult) heatMap() plot.Drawing {
	r, x, y := s.runs[0], s.grid.Axes[0], s.grid.Axes[1]
	h := plot.NewHeatMap(x.Numbers, y.Numbers)
	h.Title, h.Note = s.title("Predicted time"), s.note+"; framed: within 10 % of the reference"
	h.X, h.Y = plotAxis(x), plotAxis(y)
	h.Value = plot.Axis{Name: "predicted time", Unit: "ns"}
	for i, ns := range r.PredictedNs {
		if indexes := s.grid.Indexes(i); ns >= 0 {
			h.Set(indexes[0], indexes[1], float64(ns), r.IsWithin(i, 0.1))
		}
	}
	return h
}

// rangeChart draws the ranges of the first key: a bar for each run.
func (s *sweepResult) rangeChart(within float64) plot.Drawing {
	a := s.grid.Axes[0]
	axis := plotAxis(a)
	c := &plot.Chart{Title: s.title("Values of " + axis.Name + " within " + percent(within) + " of the " +
		"reference's time"), Note: s.note, Kind: "ranges", Y: axis}
	c.X.Name = "run"
	for _, r := range s.runs {
		v := plot.Value{Category: r.Run, Y: math.NaN(), To: math.NaN()}
		if span := s.grid.FindSpan(r, 0, within); span.Combinations > 0 {
			v.Y, v.To = span.Least, span.Greatest
		}
		c.Add(v)
	}
	return c
}

// percent is a share for people: 38 %.
func percent(f float64) string { return units.Percent(f) }
