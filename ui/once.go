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
	"strconv"
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

// WritePage writes a page that shows the runs without a server: every view of one run as it is when nothing is
// selected, but for SQL. What a run lacks the page says.
func (s *Server) WritePage(ctx context.Context, w io.Writer) error {
	found, err := s.options.Runs(ctx)
	if err != nil {
		return err
	}
	answers := map[string]Saved{}
	save := func(q onceQuestion) error {
		a, err := s.saved(ctx, q)
		if err != nil {
			return fmt.Errorf("%s: %w", q.path, err)
		}
		answers[q.key()] = a
		return nil
	}
	if err := errors.Join(save(onceQuestion{path: "api/runs"}), save(onceQuestion{path: "api/machines"})); err != nil {
		return err
	}
	for _, f := range found {
		lacks := s.lacks(f)
		for _, q := range onceQuestions(f.Name, int(f.Manifest.Ranks)) {
			if lacks[q.query()] != "" {
				continue
			}
			// a run that cannot be diagnosed or simulated still has its queries
			optional := q.path == "api/diagnose" || q.path == "api/whatif"
			switch err := save(q); {
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
	sql    string // the body, for api/sql
}

// query is the canned query that a run needs to be able to answer; "" for none.
func (q *onceQuestion) query() string {
	if q.sql != "" {
		return "data-density"
	}
	name, _ := strings.CutPrefix(q.path, "api/ask/")
	return name
}

// key names the answer: the path, then the values in order, and SQL. api.ts makes the same.
func (q *onceQuestion) key() string {
	var parts []string
	for name, all := range q.values {
		for _, v := range all {
			parts = append(parts, name+"="+v)
		}
	}
	slices.Sort(parts)
	return q.path + "?" + strings.Join(parts, "&") + q.sql
}

// onceQuestions are the questions of all views of a run when nothing is selected.
func onceQuestions(name string, ranks int) (all []onceQuestion) {
	add := func(path string, values url.Values) {
		with := url.Values{"run": {name}}
		for k, v := range values {
			with[k] = v
		}
		all = append(all, onceQuestion{path: path, values: with})
	}
	addSQL := func(text string) {
		all = append(all, onceQuestion{"api/sql", url.Values{"run": {name}, "limit": {strconv.Itoa(mostRows)}}, text})
	}
	add("api/facts", nil)
	add("api/diagnose", nil)
	add("api/ask/timeline", onceTimeline)
	add("api/ask/timeline-waits", onceTimeline)
	if ranks > mostPairRanks {
		addSQL(pairsSQL((ranks+mostPairRanks-1)/mostPairRanks, "TRUE"))
		addSQL(pairsSQL(1, fmt.Sprintf("(src BETWEEN 0 AND %[1]d OR dst BETWEEN 0 AND %[1]d)", onceGraphRanks-1)))
	} else {
		for _, query := range []string{"density", "data-density"} {
			for _, collectives := range []string{"rooted", "logical", "tree", "none"} {
				add("api/ask/"+query, url.Values{"collectives": {collectives}})
			}
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

// Of runs of more than mostPairRanks the page asks SQL for the matrix, and for the graph of the first onceGraphRanks:
// not all pairs fit into an answer. pairs.ts and graph.tsx have the same.
const (
	mostPairRanks  = 1000
	onceGraphRanks = 64
)

// pairsSQL is what blocks of perCell ranks send each other, as pairs.ts has it.
func pairsSQL(perCell int, where string) string {
	return fmt.Sprintf("SELECT CAST(FLOOR(src / %[1]d) AS INTEGER) AS src, "+
		"CAST(FLOOR(dst / %[1]d) AS INTEGER) AS dst, "+
		"CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(bytes) AS BIGINT) AS bytes FROM channels "+
		"WHERE %[2]s GROUP BY 1, 2", perCell, where)
}

// saved answers a question as the server does.
func (s *Server) saved(ctx context.Context, q onceQuestion) (Saved, error) {
	method := http.MethodGet
	if q.sql != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, "/"+q.path+"?"+q.values.Encode(), strings.NewReader(q.sql))
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
