package ui

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/run"
)

// digestHeader has the digest of the run that an answer is about.
const digestHeader = "Commq-Digest"

// Limits of a request.
const (
	mostRows  = 1_000_000 // rows of an answer, unless the request says fewer
	sqlBytes  = 1 << 20   // of SQL
	arrowType = "application/vnd.apache.arrow.stream"
)

// question is a canned query with its arguments and its runs.
type question struct {
	query *queries.Query
	args  map[string]string
	found []run.Found
	limit int
	// unordered leaves out the last ORDER BY, for pictures.
	unordered bool
}

// readQuestion reads a question from a request: the values run, limit and order (any), and the query's parameters.
func (s *Server) readQuestion(r *http.Request) (question, error) {
	name := r.PathValue("query")
	at := slices.IndexFunc(s.options.Queries, func(q *queries.Query) bool { return q.Name == name })
	if at < 0 {
		return question{}, badRequest{fmt.Errorf("there is no query %q", name)}
	}
	found, err := s.named(r)
	if err != nil {
		return question{}, err
	}
	q := question{query: s.options.Queries[at], args: map[string]string{}, found: found, limit: mostRows}
	if err := q.query.CheckRuns(len(found)); err != nil {
		return question{}, badRequest{err}
	}
	for name, values := range r.URL.Query() {
		if name == "run" {
			continue
		}
		if err := q.set(name, values); err != nil {
			return question{}, badRequest{err}
		}
	}
	return q, nil
}

// set sets an argument or the limit. Files of the machine cannot be named.
func (q *question) set(name string, values []string) (err error) {
	if len(values) != 1 {
		return fmt.Errorf("%s is given %d times", name, len(values))
	}
	switch {
	case name == "limit":
		q.limit, err = limitOf(values[0])
		return err
	case name == "order" && values[0] == "any" && q.query.File == "": // a user's query may need its order
		q.unordered = true
		return nil
	}
	at := slices.IndexFunc(q.query.Params, func(p queries.Param) bool { return p.Name == name })
	if at < 0 {
		return fmt.Errorf("query %s has no parameter %q", q.query.Name, name)
	}
	p := &q.query.Params[at]
	if p.Kind == "file" {
		return fmt.Errorf("%s names a file, which only the command line may", name)
	}
	if err := p.Check(values[0]); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if values[0] != p.Default {
		q.args[name] = values[0]
	}
	return nil
}

// limitOf reads the most rows to answer with.
func limitOf(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostRows {
		return 0, fmt.Errorf("limit %q: want 1 to %d", text, mostRows)
	}
	return n, nil
}

// command returns the command line that asks the same.
func (q *question) command(args func(run.Found) []string) string {
	words := []string{"commq", "query", q.query.Name}
	for _, f := range q.found {
		words = append(words, args(f)...)
	}
	for _, p := range q.query.Params {
		if value, given := q.args[p.Name]; given {
			words = append(words, "--"+p.Name, value)
		}
	}
	return shellquote.Join(words...)
}

// ask answers a canned query.
func (s *Server) ask(w http.ResponseWriter, r *http.Request) {
	q, err := s.readQuestion(r)
	if err != nil {
		fail(w, r, err)
		return
	}
	if q.unordered {
		s.send(w, r, q.found, q.limit, s.engines.withPictures, func(db *queries.DB) (queries.Rows, error) {
			return db.Ask(r.Context(), q.query, q.args, queries.Unordered)
		})
		return
	}
	s.send(w, r, q.found, q.limit, s.engines.with, func(db *queries.DB) (queries.Rows, error) {
		return db.Ask(r.Context(), q.query, q.args)
	})
}

// Text is a question in words for other programs.
type Text struct {
	// SQL is its SQL, with the views of the runs that it reads, for the duckdb shell.
	SQL string `json:"sql"`
	// Command is the command line.
	Command string `json:"command"`
}

// text tells the SQL and the command line of a question.
func (s *Server) text(w http.ResponseWriter, r *http.Request) {
	q, err := s.readQuestion(r)
	if err != nil {
		fail(w, r, err)
		return
	}
	t := Text{Command: q.command(s.predictions.args)}
	err = s.engines.with(r.Context(), engineRuns(q.found), func(db *queries.DB) error {
		sql, err := db.Text(r.Context(), q.query, q.args)
		t.SQL = db.Runnable(sql)
		return err
	})
	if err != nil {
		fail(w, r, badRequest{err})
		return
	}
	answer(w, t)
}

// sql answers the user's own SQL, the body of the request.
func (s *Server) sql(w http.ResponseWriter, r *http.Request) {
	found, text, err := s.readSQL(w, r)
	if err != nil {
		fail(w, r, err)
		return
	}
	limit := mostRows
	if given := r.URL.Query().Get("limit"); given != "" {
		if limit, err = limitOf(given); err != nil {
			fail(w, r, badRequest{err})
			return
		}
	}
	s.send(w, r, found, limit, s.engines.with, func(db *queries.DB) (queries.Rows, error) {
		return db.Query(r.Context(), text)
	})
}

// readSQL reads the runs that a request names, and the user's SQL in its body.
func (s *Server) readSQL(w http.ResponseWriter, r *http.Request) (found []run.Found, text string, err error) {
	if found, err = s.named(r); err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, sqlBytes))
	if err != nil {
		return nil, "", badRequest{fmt.Errorf("SQL: %w", err)}
	}
	return found, string(body), nil
}

// own answers with a file NAME.sql that makes a query of the user's SQL, the body of the request: the values name,
// summary, chart, x and y are those of queries.Answered. The run named answers it once, so that the file can be used.
func (s *Server) own(w http.ResponseWriter, r *http.Request) {
	found, text, err := s.readSQL(w, r)
	if err == nil {
		text, err = s.ownFile(r, found, text)
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, text)
}

// ownFile returns the text of a user's file of SQL that runs answer.
func (s *Server) ownFile(r *http.Request, found []run.Found, sql string) (text string, err error) {
	given := r.URL.Query()
	a := queries.Answered{Name: given.Get("name"), Summary: given.Get("summary"), SQL: sql,
		Chart: given.Get("chart"), X: given.Get("x"), Y: given.Get("y")}
	if slices.ContainsFunc(s.options.Queries, func(q *queries.Query) bool { return q.Name == a.Name }) {
		return "", badRequest{fmt.Errorf("there is a query %q already; take another name", a.Name)}
	}
	err = s.engines.with(r.Context(), engineRuns(found), func(db *queries.DB) error {
		rows, err := db.Query(r.Context(), sql)
		if err != nil {
			return err
		}
		a.Columns = rows.Columns()
		if err := rows.Close(); err != nil {
			return err
		}
		var q *queries.Query
		if text, q, err = queries.OwnFile(a); err != nil {
			return err
		}
		if rows, err = db.Ask(r.Context(), q, nil); err != nil {
			return err
		}
		return rows.Close()
	})
	if err != nil {
		return "", badRequest{err}
	}
	return text, nil
}

// send answers with the rows of an answer of an engine as an Arrow stream. The stream is made before the first byte is
// sent, so that an error is never a truncated answer.
func (s *Server) send(w http.ResponseWriter, r *http.Request, found []run.Found, limit int, with withEngine,
	ask func(*queries.DB) (queries.Rows, error)) {
	var stream bytes.Buffer
	more := false
	err := with(r.Context(), engineRuns(found), func(db *queries.DB) error {
		stream.Reset() // it may be asked twice
		rows, err := ask(db)
		if err != nil {
			return err
		}
		limited := output.Limit(rows, limit)
		err = errors.Join(output.Write(&stream, "arrow", limited), rows.Close())
		more = limited.More()
		return err
	})
	if err != nil {
		fail(w, r, badRequest{err}) // what a run lacks, or a mistake in SQL
		return
	}
	w.Header().Set("Content-Type", arrowType)
	w.Header().Set("Commq-More", strconv.FormatBool(more))
	if len(found) == 1 {
		w.Header().Set(digestHeader, found[0].Manifest.Digest)
	}
	w.Write(stream.Bytes())
}

// engineRuns converts runs to the type of the engine.
func engineRuns(found []run.Found) (runs []queries.Run) {
	for _, f := range found {
		runs = append(runs, queries.Run{Name: f.Name, Dir: f.Dir, Manifest: f.Manifest})
	}
	return runs
}
