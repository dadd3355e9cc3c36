package ui

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/run"
)

//go:embed assets
var assets embed.FS

// Options are what a server needs.
type Options struct {
	// Token is the secret of the address; see NewToken.
	Token string
	// Runs returns the runs to show, in the order of the list. It is called for each list, so that new runs appear.
	Runs func(context.Context) ([]run.Found, error)
	// Args returns the arguments of a command line that name a run: --run NAME, with --store where it is needed.
	Args func(run.Found) []string
	// Queries are the queries that can be asked by name.
	Queries []*queries.Query
	// Diagnose returns what makes a run slow, as a value to be encoded in JSON.
	Diagnose func(context.Context, run.Found) (any, error)
	// Machines are the machines to simulate runs on, and Simulate does it.
	Machines []Machine
	Simulate Simulation
	// Predict writes a run with the times of a machine, for the page to show beside the captured one.
	Predict Predictor
	// CriticalPath finds critical paths.
	CriticalPath PathFinder
	// Engine limits each engine; at most six are open, each with these limits.
	Engine queries.Options
	// Timeout limits the time of a question.
	Timeout time.Duration
	// Version is that of commq.
	Version string
}

// Server answers the requests of the page. Close it after use.
type Server struct {
	options     Options
	engines     engines
	found       foundRuns
	paths       paths
	predictions predictedRuns
	questions   questions
	patience    time.Duration // how long Close waits for questions
	routes      http.Handler  // what is answered, to whoever asks
	handler     http.Handler  // the same, to those who may ask
}

// questions counts the questions that are being answered.
type questions struct {
	mu         sync.Mutex
	inProgress int
	removing   int        // ended questions that remove the runs that were dropped
	closed     bool       // no more are answered
	ended      *sync.Cond // none is in progress, and none removes runs
}

// closePatience is how long Close waits for questions: not all work for them ends with the context.
const closePatience = 10 * time.Second

// New makes a server.
func New(o Options) (*Server, error) {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, engines: engines{options: o.Engine}, paths: paths{turn: make(chan struct{}, 1)},
		predictions: predictedRuns{turn: make(chan struct{}, 1)}, patience: closePatience}
	s.questions.ended = sync.NewCond(&s.questions.mu)
	s.predictions.options = &s.options
	s.paths.turn <- struct{}{}
	s.predictions.turn <- struct{}{}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /api/runs", s.runs)
	mux.HandleFunc("GET /api/facts", s.limited(s.facts, errTooLong))
	mux.HandleFunc("GET /api/queries", s.queries)
	mux.HandleFunc("GET /api/diagnose", s.limited(s.diagnose, errTooLong))
	mux.HandleFunc("GET /api/machines", s.machines)
	mux.HandleFunc("GET /api/whatif", s.limited(s.whatIf, errSimulationTooLong))
	mux.HandleFunc("GET /api/predicted", s.limited(s.predicted, errSimulationTooLong))
	mux.HandleFunc("GET /api/path", s.limited(s.criticalPath, errTooLong))
	mux.HandleFunc("GET /api/ask/{query}", s.limited(s.ask, errTooLong))
	mux.HandleFunc("GET /api/text/{query}", s.limited(s.text, errTooLong))
	mux.HandleFunc("POST /api/sql", s.limited(s.sql, errTooLong))
	mux.HandleFunc("POST /api/own", s.limited(s.own, errTooLong))
	s.routes, s.handler = mux, &guard{token: o.Token, next: mux}
	return s, nil
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close waits for the questions that are being answered, closes the engines and removes the predicted runs. Later
// questions are refused. After 10 s it waits no longer and leaves the engines that are in use open, with an error: the
// process is about to end.
func (s *Server) Close() error {
	var err error
	if !s.questions.close(s.patience) {
		err = fmt.Errorf("some questions are still being answered after %v", s.patience)
	}
	return errors.Join(err, s.engines.close(), s.predictions.close())
}

// removeRuns removes predicted runs that no question reads or can find.
func (e *engines) removeRuns(dirs []string) {
	for _, dir := range dirs {
		e.forget(dir)
		_ = os.RemoveAll(filepath.Dir(dir)) // what stays is removed with the folder, in close
	}
}

// close refuses further questions and waits for those in progress; false if they last longer than patience.
func (q *questions) close(patience time.Duration) bool {
	late := false
	timer := time.AfterFunc(patience, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		late = true
		q.ended.Broadcast()
	})
	defer timer.Stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for q.inProgress+q.removing > 0 && !late {
		q.ended.Wait()
	}
	return q.inProgress+q.removing == 0
}

// begin notes that a question is being answered, until end. It returns false after close.
func (q *questions) begin() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.inProgress++
	return true
}

// end ends a question. If no other one is in progress it removes the runs that dropped returns: later questions cannot
// find them, so they need not wait for that.
func (q *questions) end(dropped func() []string, remove func([]string)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.inProgress--; q.inProgress > 0 {
		return
	}
	if dirs := dropped(); len(dirs) > 0 {
		q.removing++
		q.mu.Unlock()
		remove(dirs)
		q.mu.Lock()
		q.removing--
	}
	q.ended.Broadcast()
}

// limited ends the work for a request after the timeout, with an error that says so, or when the page that asked went
// away.
func (s *Server) limited(next http.HandlerFunc, late error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.questions.begin() {
			http.Error(w, "the server has ended", http.StatusServiceUnavailable)
			return
		}
		defer s.questions.end(s.predictions.takeDropped, s.engines.removeRuns)
		ctx, cancel := context.WithTimeoutCause(r.Context(), s.options.Timeout, late)
		defer cancel()
		next(w, r.WithContext(ctx))
	}
}
