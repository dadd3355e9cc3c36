package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"sync"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// colours is the number of series colours in page.css.
const colours = 10

// page is the page's template, parsed only when a page is written so that commq starts fast.
var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"colour": func(i int) int { return i % colours },
		"add":    func(a, b float64) float64 { return a + b },
		"half":   func(a float64) float64 { return a / 2 },
		"tenths": func() []float64 { return []float64{0.12, 0.22, 0.32, 0.42, 0.52, 0.61, 0.71, 0.81, 0.9, 1} },
		"times":  func(a int, b float64) float64 { return float64(a) * b },
	}).Parse(pageText))
})

// Write writes the page. It contains everything it shows; the browser is told to load nothing and to run only the
// page's own script.
func (r *Report) Write(w io.Writer) error {
	return page().Execute(w, struct {
		*Report
		Policy string
		CSS    template.CSS
		JS     template.JS
	}{r, policy(), template.CSS(pageCSS), template.JS(pageJS)})
}

// policy returns the page's Content-Security-Policy.
func policy() string {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src " +
		hash(pageCSS) + "; script-src " + hash(pageJS)
}
