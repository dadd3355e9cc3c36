package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/commq/commq/queries/plot"
)

// checkPlot says what cannot be drawn, before anything is simulated.
func (o *sweepOptions) checkPlot(s *sweep) error {
	if o.plot == "" {
		return nil
	}
	for _, a := range s.axes {
		if err := a.numeric(); err != nil {
			return err
		}
	}
	switch {
	case o.within != 0:
	case len(s.axes) > 2:
		return fmt.Errorf("--plot: a sweep of %d keys has no picture; sweep one or two, or draw ranges with --within", len(s.axes))
	case len(s.axes) == 2 && s.several:
		return fmt.Errorf("--plot: a heat map is of one run, and there are %d; give one, or draw ranges with --within", len(s.runs))
	}
	return nil
}

// draw writes the picture.
func (s *sweep) draw(o *sweepOptions) error {
	var d plot.Drawing
	switch {
	case o.within != 0:
		d = s.rangeChart(o.within)
	case len(s.axes) == 1:
		d = s.lineChart()
	default:
		d = s.heatMap()
	}
	return writeFile(o.plot, func(w io.Writer) error { return d.Draw(w, plot.FormatOf(o.plot)) })
}

// unit is that of a key, by its name's end.
func (a *sweepAxis) unit() string {
	for end, unit := range map[string]string{"_ns": "ns", "_bytes": "bytes", "_bytes_per_s": "bytes/s"} {
		if strings.HasSuffix(a.key, end) {
			return unit
		}
	}
	return "1"
}

func (a *sweepAxis) axis() plot.Axis {
	return plot.Axis{Name: a.key, Unit: a.unit(), Log: a.log, Whole: a.column().Type == "BIGINT"}
}

// title says what is drawn.
func (s *sweep) title(what string) string {
	if s.several {
		return fmt.Sprintf("%s of %d runs", what, len(s.runs))
	}
	return what + " of " + s.runs[0].name
}

// note says on which machine.
func (s *sweep) note() string {
	r := s.runs[0]
	text := fmt.Sprintf("%s, dialect %s", r.machine.Name, r.options.Dialect)
	if len(r.changed) > 0 {
		text += ", " + strings.Join(r.changed, ", ")
	}
	return text
}

// lineChart draws times over one key; of several runs over their reference's, which may be very different times.
func (s *sweep) lineChart() plot.Drawing {
	c := &plot.Chart{Title: s.title("Predicted time"), Note: s.note(), Kind: "lines", X: s.axes[0].axis(), Y: plot.Axis{Name: "predicted time", Unit: "ns"}, Series: "run"}
	if s.several {
		c.Y = plot.Axis{Name: "predicted time / reference", Unit: "1"}
	} else {
		c.Fit = "reference"
	}
	for _, r := range s.runs {
		for i, ns := range r.predicted {
			v := plot.Value{Series: r.name, X: s.axes[0].number[i], Y: float64(ns), Fit: float64(r.reference)}
			if s.several {
				v.Fit = math.NaN()
				v.Y, _ = r.ratio(i).(float64)
			}
			if ns < 0 {
				v.Y = math.NaN()
			}
			c.Add(v)
		}
	}
	return c
}

// heatMap draws times over the first key across and the second up.
func (s *sweep) heatMap() plot.Drawing {
	r, x, y := s.runs[0], s.axes[0], s.axes[1]
	h := plot.NewHeatMap(x.number, y.number)
	h.Title, h.Note, h.X, h.Y = s.title("Predicted time"), s.note()+"; framed: within 10 % of the reference", x.axis(), y.axis()
	h.Value = plot.Axis{Name: "predicted time", Unit: "ns"}
	for i, ns := range r.predicted {
		if at := s.at(i); ns >= 0 {
			h.Set(at[0], at[1], float64(ns), r.near(i, 0.1))
		}
	}
	return h
}

// rangeChart draws the ranges of the first key: a bar for each run.
func (s *sweep) rangeChart(within float64) plot.Drawing {
	a := s.axes[0]
	c := &plot.Chart{Title: s.title(a.key + " within " + percent(within) + " of the reference's time"), Note: s.note(), Kind: "ranges", Y: a.axis()}
	c.X.Name = "run"
	for _, r := range s.runs {
		v := plot.Value{Category: r.name, Y: math.NaN(), To: math.NaN()}
		if least, most, n := s.span(r, 0, within); n > 0 {
			v.Y, v.To = least, most
		}
		c.Add(v)
	}
	return c
}

// percent is a fraction in percent.
func percent(f float64) string { return fmt.Sprintf("%.4g %%", 100*f) }
