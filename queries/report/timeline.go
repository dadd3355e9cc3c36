package report

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html/template"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

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
func (a *artist) drawTimeline(q *queries.Query, rows queries.Rows, run queries.Run) (*picture, error) {
	d, err := q.Drawing(rows, []queries.Run{run}, nil)
	if err != nil {
		return nil, err
	}
	return a.pictureOf(d, fmt.Sprintf("Timeline of %d ranks: what each does over time, and what is "+
		"sent", run.Manifest.Ranks)), nil
}

// artist draws pictures while queries are asked.
type artist struct{ group errgroup.Group }

// newArtist returns an artist who draws as many pictures at once as there are cores.
func newArtist() *artist {
	a := &artist{}
	a.group.SetLimit(runtime.GOMAXPROCS(0))
	return a
}

// pictureOf draws a picture for light and for dark pages. It is there when finish has returned; until then nothing may
// change the drawing.
func (a *artist) pictureOf(d plot.Drawing, label string) *picture {
	p := &picture{Label: label}
	draw := func(theme string, take func(url string)) {
		a.group.Go(func() error {
			var b bytes.Buffer
			err := d.Draw(&b, plot.Options{Format: "png", Theme: theme, Quick: true})
			take("data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes()))
			return err
		})
	}
	themes := plot.Themes()
	draw(themes[0], func(url string) { p.Light = template.URL(url) })
	draw(themes[1], func(url string) { p.Dark = template.Srcset(url) })
	return p
}

// finish waits until all pictures are drawn.
func (a *artist) finish() error { return a.group.Wait() }
