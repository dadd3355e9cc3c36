package report

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/plot"
)

// picture is an image of a timeline, for light and for dark pages.
type picture struct {
	Run, Label string
	Light      template.URL
	Dark       template.Srcset
}

// isTimeline reports whether a query is drawn over ranks and time.
func isTimeline(q *queries.Query) bool { return q.Plot != nil && q.Plot.Kind == "timeline" }

// argsOf returns the arguments that a report asks a query with; nil for its defaults. A timeline has fewer steps and
// rows than a picture in a file, so that the page stays small.
func argsOf(q *queries.Query) map[string]string {
	if !isTimeline(q) {
		return nil
	}
	args := map[string]string{}
	for name, value := range map[string]string{"bins": "275", "rows": "64"} {
		if slices.ContainsFunc(q.Params, func(p queries.Param) bool { return p.Name == name }) {
			args[name] = value
		}
	}
	return args
}

// drawTimeline draws the rows of a run.
func drawTimeline(q *queries.Query, rows queries.Rows, run queries.Run) (*picture, error) {
	d, err := q.Drawing(rows, []queries.Run{run}, nil)
	if err != nil {
		return nil, err
	}
	return pictureOf(d, fmt.Sprintf("Timeline of %d ranks: what each does over time, and what is "+
		"sent", run.Manifest.Ranks))
}

// pictureOf draws a picture for light and for dark pages.
func pictureOf(d plot.Drawing, label string) (*picture, error) {
	image := func(theme string) (string, error) {
		var b bytes.Buffer
		err := d.Draw(&b, plot.Options{Format: "png", Theme: theme})
		return "data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes()), err
	}
	themes := plot.Themes()
	light, err := image(themes[0])
	if err != nil {
		return nil, err
	}
	dark, err := image(themes[1])
	if err != nil {
		return nil, err
	}
	return &picture{Light: template.URL(light), Dark: template.Srcset(dark), Label: label}, nil
}
