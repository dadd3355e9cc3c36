// Command detect draws how often chance makes findings of so many bits, as predicted and as observed, from the table of
// TestChance:
//
//	COMMQ_DETECT_CHANCE=100000 COMMQ_DETECT_CHANCE_TABLE=$PWD/docs/validation/detect-chance.csv go test ./detect -run '^TestChance$'
//	go run ./bench/detect docs/validation/detect-chance.csv docs/img/detect-chance.png
package main

import (
	"encoding/csv"
	"fmt"
	"image/color"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "want two arguments: TABLE.csv PICTURE.png")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "chance:", err)
		os.Exit(2)
	}
}

// run draws the table of a file into another one.
func run(table, picture string) error {
	file, err := os.Open(table)
	if err != nil {
		return err
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return err
	}
	predicted, observed, err := curves(rows)
	if err != nil {
		return fmt.Errorf("%s: %w", table, err)
	}
	return draws(predicted, observed).Save(18*vg.Centimeter, 11*vg.Centimeter, picture)
}

// curves returns the programs that are predicted and observed to have a finding of at least so many bits. Where none
// was observed there is no point.
func curves(rows [][]string) (predicted, observed plotter.XYs, err error) {
	if len(rows) < 2 || len(rows[0]) < 3 || rows[0][0] != "bits" || rows[0][1] != "predicted" || rows[0][2] != "observed" {
		return nil, nil, fmt.Errorf("want the columns bits, predicted and observed, and rows")
	}
	for _, row := range rows[1:] {
		var cells [3]float64
		for k := range cells {
			if cells[k], err = strconv.ParseFloat(row[k], 64); err != nil {
				return nil, nil, err
			}
		}
		predicted = append(predicted, plotter.XY{X: cells[0], Y: cells[1]})
		if cells[2] > 0 {
			observed = append(observed, plotter.XY{X: cells[0], Y: cells[2]})
		}
	}
	return predicted, observed, nil
}

// draws returns the picture.
func draws(predicted, observed plotter.XYs) *plot.Plot {
	p := plot.New()
	p.X.Label.Text = "bits of a finding, at least"
	p.Y.Label.Text = fmt.Sprintf("programs of %.0f", predicted[0].Y)
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top = true
	line := plotter.Line{XYs: predicted, LineStyle: plotter.DefaultLineStyle}
	line.Color, line.Width = color.RGBA{R: 0x71, G: 0x80, B: 0x96, A: 255}, vg.Points(1.5)
	points := plotter.Scatter{XYs: observed, GlyphStyle: plotter.DefaultGlyphStyle}
	points.Color, points.Radius = color.RGBA{R: 0xc0, G: 0x56, B: 0x21, A: 255}, vg.Points(3.5)
	points.Shape = draw.CircleGlyph{}
	p.Add(plotter.NewGrid(), &line, &points)
	p.Legend.Add("predicted: one of 2^bits", &line)
	p.Legend.Add("observed", &points)
	p.Y.Min, p.Y.Max = 0.005, 2*predicted[0].Y
	return p
}
