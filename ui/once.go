package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Saved is an answer of the server inside a page that needs none.
type Saved struct {
	// Header has Content-Type and Commq-More.
	Header map[string]string `json:"header"`
	// Body is the answer, in base64.
	Body []byte `json:"body"`
}

// onceTimeline are the arguments of the timeline in a saved page, which does not know the size of its window
// beforehand; timeline-scene.ts has the same.
var onceTimeline = url.Values{"bins": {"600"}, "rows": {"300"}, "lines": {"1000"}}

// WritePage writes a page that shows the runs without a server: every view as it is when nothing is selected. What a
// run lacks the page says.
func (s *Server) WritePage(ctx context.Context, w io.Writer) error {
	found, err := s.options.Runs(ctx)
	if err != nil {
		return err
	}
	answers := map[string]Saved{}
	save := func(path string, values url.Values) error {
		a, err := s.saved(ctx, path, values)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		answers[savedKey(path, values)] = a
		return nil
	}
	if err := errors.Join(save("api/runs", nil), save("api/machines", nil)); err != nil {
		return err
	}
	for _, f := range found {
		lacks := s.lacks(f)
		for _, q := range onceQuestions(f.Name) {
			name, isQuery := strings.CutPrefix(q.path, "api/ask/")
			if isQuery && lacks[name] != "" {
				continue
			}
			// a run that cannot be diagnosed or simulated still has its queries
			optional := q.path == "api/diagnose" || q.path == "api/whatif"
			switch err := save(q.path, q.values); {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil && !optional:
				return err
			}
		}
	}
	return assemble(w, answers)
}

// onceQuestion is a question that the page asks.
type onceQuestion struct {
	path   string
	values url.Values
}

// onceQuestions are the questions of all views of a run when nothing is selected.
func onceQuestions(name string) (all []onceQuestion) {
	add := func(path string, values url.Values) {
		with := url.Values{"run": {name}}
		for k, v := range values {
			with[k] = v
		}
		all = append(all, onceQuestion{path, with})
	}
	add("api/facts", nil)
	add("api/diagnose", nil)
	add("api/ask/timeline", onceTimeline)
	add("api/ask/timeline-waits", onceTimeline)
	for _, query := range []string{"density", "data-density"} {
		for _, collectives := range []string{"rooted", "logical", "tree", "none"} {
			add("api/ask/"+query, url.Values{"collectives": {collectives}})
		}
	}
	for _, query := range []string{"callsites", "callsite-time"} {
		for _, by := range []string{"line", "path", "function"} {
			add("api/ask/"+query, url.Values{"by": {by}})
		}
	}
	add("api/ask/over-time", url.Values{"bins": {"500"}})
	add("api/whatif", url.Values{"machine": {"ethernet-40g"}})
	return all
}

// savedKey names an answer: the path, then the values in order. api.ts makes the same.
func savedKey(path string, values url.Values) string {
	var parts []string
	for name, all := range values {
		for _, v := range all {
			parts = append(parts, name+"="+v)
		}
	}
	slices.Sort(parts)
	return path + "?" + strings.Join(parts, "&")
}

// saved answers a question as the server does.
func (s *Server) saved(ctx context.Context, path string, values url.Values) (Saved, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/"+path+"?"+values.Encode(), nil)
	if err != nil {
		return Saved{}, err
	}
	a := &recorder{header: http.Header{}, status: http.StatusOK}
	s.routes.ServeHTTP(a, r)
	if a.status != http.StatusOK {
		return Saved{}, errors.New(strings.TrimSpace(a.body.String()))
	}
	header := map[string]string{}
	for _, name := range []string{"Content-Type", "Commq-More"} {
		if v := a.header.Get(name); v != "" {
			header[name] = v
		}
	}
	return Saved{header, a.body.Bytes()}, nil
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header               { return r.header }
func (r *recorder) WriteHeader(status int)            { r.status = status }
func (r *recorder) Write(b []byte) (n int, err error) { return r.body.Write(b) }

// assemble writes the page with its files and answers inside.
func assemble(w io.Writer, answers map[string]Saved) error {
	files := map[string]string{}
	for _, name := range []string{"index.html", "app.css", "app.js", "licenses.txt"} {
		text, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		files[name] = string(text)
	}
	data, err := json.Marshal(answers) // it escapes <, so nothing in it ends the element
	if err != nil {
		return err
	}
	script := strings.ReplaceAll(files["app.js"], "</script", `<\/script`)
	page := files["index.html"]
	for _, part := range [][2]string{
		{`<link rel="stylesheet" href="app.css">`, "<style>" + files["app.css"] + "</style>"},
		{`<script type="module" src="app.js"></script>`, `<script type="application/json" id="answers">` + string(data) +
			"</script>\n<script type=\"module\">" + script + "</script>"},
		{"</body>", "<!-- The page contains:\n" + strings.ReplaceAll(files["licenses.txt"], "--", "- -") + "--></body>"},
	} {
		before, after, found := strings.Cut(page, part[0])
		if !found {
			return fmt.Errorf("the page has no %s", part[0])
		}
		page = before + part[1] + after
	}
	_, err = io.WriteString(w, page)
	return err
}
