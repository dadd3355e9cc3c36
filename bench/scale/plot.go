package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	pictures "gonum.org/v1/plot/vg/draw"
)

// mostUsed are the queries drawn.
const mostUsed = "density,data-density,sizes,ratio,pairs,partners,tags,collectives,by-rank,over-time,measures"

// quantity is something drawn against the number of messages.
type quantity struct {
	name string
	of   func(m measured) float64
}

// draw plots what queries take against the number of messages: CPU time above, memory below, and with results of an
// earlier version those beside them, with the same axes.
func draw(args []string) error {
	f := flag.NewFlagSet("plot", flag.ContinueOnError)
	output := f.String("output", "scale.png", "picture: png, svg or pdf")
	before := f.String("before", "", "results of an earlier version, drawn on the left")
	only := f.String("only", mostUsed, "names of queries with commas")
	if err := f.Parse(args); err != nil {
		return err
	}
	type side struct {
		title string
		files []string
	}
	sides := []side{{"", f.Args()}}
	if *before != "" {
		sides = []side{{"before", []string{*before}}, {"after", f.Args()}}
	}
	quantities := []quantity{{"cores' time of a query, s", func(m measured) float64 { return m.coreTimes }},
		{"peak memory, MiB", func(m measured) float64 { return m.peakMiB }}}
	names := strings.Split(*only, ",")
	plots := make([][]*plot.Plot, len(quantities))
	for _, s := range sides {
		all, err := read(s.files)
		if err != nil {
			return err
		}
		for i, q := range quantities {
			p, err := plotOf(all, names, q)
			if err != nil {
				return err
			}
			if i == 0 {
				p.Title.Text = s.title
			}
			plots[i] = append(plots[i], p)
		}
	}
	for _, row := range plots {
		shareAxes(row)
	}
	legend := plots[0][len(sides)-1]
	legend.Legend.Top, legend.Legend.Left = true, true
	for _, row := range plots {
		for _, p := range row {
			if p != legend {
				p.Legend = plot.NewLegend()
			}
		}
	}
	return save(plots, *output)
}

// plotOf draws a line for each query with results for two numbers of messages or more.
func plotOf(all []measured, names []string, q quantity) (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "messages", q.name
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Add(plotter.NewGrid())
	for k, name := range names {
		var xys plotter.XYs
		for _, m := range all {
			if m.what == name && m.failed == "" && q.of(m) > 0 {
				xys = append(xys, plotter.XY{X: float64(m.messages), Y: q.of(m)})
			}
		}
		if len(xys) < 2 {
			continue
		}
		l, points, err := plotter.NewLinePoints(xys)
		if err != nil {
			return nil, err
		}
		style(l, points, k)
		p.Add(l, points)
		p.Legend.Add(name, l, points)
	}
	return p, nil
}

// shareAxes gives plots the same ranges.
func shareAxes(row []*plot.Plot) {
	x, y := row[0].X, row[0].Y
	for _, p := range row {
		x.Min, x.Max = min(x.Min, p.X.Min), max(x.Max, p.X.Max)
		y.Min, y.Max = min(y.Min, p.Y.Min), max(y.Max, p.Y.Max)
	}
	for _, p := range row {
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = x.Min, x.Max, y.Min, y.Max*2
	}
}

// save writes plots in rows and columns as one picture.
func save(plots [][]*plot.Plot, output string) (err error) {
	columns := len(plots[0])
	canvas, err := pictures.NewFormattedCanvas(vg.Length(columns)*14*vg.Centimeter, 20*vg.Centimeter,
		strings.TrimPrefix(filepath.Ext(output), "."))
	if err != nil {
		return err
	}
	tiles := pictures.Tiles{Rows: len(plots), Cols: columns, PadX: vg.Millimeter * 4, PadY: vg.Millimeter * 4,
		PadTop: vg.Millimeter * 2, PadRight: vg.Millimeter * 3, PadBottom: vg.Millimeter * 2, PadLeft: vg.Millimeter * 2}
	for i, row := range plot.Align(plots, tiles, pictures.New(canvas)) {
		for k, c := range row {
			plots[i][k].Draw(c)
		}
	}
	file, err := os.Create(output)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(file)
	return errors.Join(err, file.Close())
}
