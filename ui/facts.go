package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/run"
)

// Listed is a run in the list.
type Listed struct {
	// Name is the run's name in the list.
	Name string `json:"name"`
	// Ranks, Calls and Messages are the run's numbers.
	Ranks    int32 `json:"ranks"`
	Calls    int64 `json:"calls"`
	Messages int64 `json:"messages"`
	// EndNs is when the last call ended, in ns since the run's start; 0 if the run has no times.
	EndNs int64 `json:"end_ns"`
	// Args name the run on a command line.
	Args []string `json:"args"`
	// Lacks has, by the name of a query, the reason why it cannot be asked of the run.
	Lacks map[string]string `json:"lacks"`
	// Digest is the run's. Answers about one run have it too, so that a page sees that a run was replaced.
	Digest string `json:"digest"`
}

// runs lists the runs.
func (s *Server) runs(w http.ResponseWriter, r *http.Request) {
	found, err := s.options.Runs(r.Context())
	if err != nil {
		fail(w, r, err)
		return
	}
	list := make([]Listed, 0, len(found))
	for _, f := range found {
		list = append(list, s.listed(f))
	}
	answer(w, list)
}

// listed describes a run for the list.
func (s *Server) listed(f run.Found) Listed {
	m := f.Manifest
	return Listed{Name: f.Name, Ranks: m.Ranks, Calls: m.Counts.Calls, Messages: m.Counts.Messages,
		EndNs: m.EndNs, Args: s.predictions.args(f), Lacks: s.lacks(f), Digest: m.Digest}
}

// facts answers with what commq runs show prints of a run, and what the run discloses of the machine.
func (s *Server) facts(w http.ResponseWriter, r *http.Request) {
	found, err := s.singleRun(r)
	if err != nil {
		fail(w, r, err)
		return
	}
	facts := append(found.Facts(false), found.CaptureFacts()...)
	tells, err := run.Discloses(r.Context(), found.Dir, found.Manifest)
	if err != nil {
		fail(w, r, err)
		return
	}
	if tells != "" {
		facts = append(facts, run.Fact{Name: "discloses", Value: tells})
	}
	answerAbout(w, found, facts)
}

// lacks returns, by query, the reasons why it cannot be asked of a run.
func (s *Server) lacks(f run.Found) map[string]string {
	lacks := map[string]string{}
	for _, q := range s.options.Queries {
		if err := q.Check(engineRuns([]run.Found{f})[0]); err != nil {
			lacks[q.Name] = err.Error()
		}
	}
	return lacks
}

// Described is the description of a query, with its parameters and its picture if it has one.
type Described struct {
	Name    string          `json:"name"`
	Summary string          `json:"summary"`
	Params  []queries.Param `json:"params"`
	Plot    *queries.Plot   `json:"plot"`
}

// queries lists the queries.
func (s *Server) queries(w http.ResponseWriter, _ *http.Request) {
	list := make([]Described, 0, len(s.options.Queries))
	for _, q := range s.options.Queries {
		list = append(list, Described{Name: q.Name, Summary: q.Summary, Params: q.Params, Plot: q.Plot})
	}
	answer(w, list)
}

// diagnose answers with the diagnosis of a run.
func (s *Server) diagnose(w http.ResponseWriter, r *http.Request) {
	found, err := s.singleRun(r)
	if err != nil {
		fail(w, r, err)
		return
	}
	d, err := s.options.Diagnose(r.Context(), found)
	if err != nil {
		fail(w, r, badRequest{err})
		return
	}
	answerAbout(w, found, d)
}

// named returns the runs that a request names by its values run.
func (s *Server) named(r *http.Request) (named []run.Found, err error) {
	byName, err := s.found.all(r.Context(), s.options.Runs)
	if err != nil {
		return nil, err
	}
	for _, name := range r.URL.Query()["run"] {
		f, known := byName[name]
		if !known {
			var predicted predictedByKey
			predicted, known = s.predictions.named(name)
			f = predicted.run
		}
		if !known {
			return nil, badRequest{fmt.Errorf("there is no run %q here", name)}
		}
		named = append(named, f)
	}
	if len(named) == 0 {
		return nil, badRequest{errors.New("no run named; want ?run=NAME")}
	}
	return named, nil
}

// singleRun returns the run that a request names; more are a mistake.
func (s *Server) singleRun(r *http.Request) (run.Found, error) {
	named, err := s.named(r)
	if err != nil {
		return run.Found{}, err
	}
	if len(named) != 1 {
		return run.Found{}, badRequest{errors.New("want one run")}
	}
	return named[0], nil
}

// foundFor is how long questions use a list of runs before it is read again.
const foundFor = 2 * time.Second

// foundRuns keeps the list of runs for a moment: a page asks several questions at once, and a store may have thousands
// of manifests.
type foundRuns struct {
	mu     sync.Mutex
	read   time.Time
	byName map[string]run.Found
}

// all returns the runs by their names.
func (f *foundRuns) all(ctx context.Context, read func(context.Context) ([]run.Found, error)) (map[string]run.Found,
	error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byName != nil && time.Since(f.read) < foundFor {
		return f.byName, nil
	}
	all, err := read(ctx)
	if err != nil {
		return nil, err
	}
	f.byName, f.read = map[string]run.Found{}, time.Now()
	for _, one := range all {
		f.byName[one.Name] = one
	}
	return f.byName, nil
}

// badRequest is a mistake of the request.
type badRequest struct{ error }

func (b badRequest) Unwrap() error { return b.error }

// errTooLong ends work that takes longer than the timeout.
var errTooLong = errors.New("the question took too long; a smaller window of time or fewer ranks take less, and " +
	"--timeout allows more")

// errSimulationTooLong ends a simulation that takes longer than the timeout.
var errSimulationTooLong = errors.New("the simulation took too long; --timeout allows more, and commq simulate has no limit")

// fail answers with an error, as text.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	var bad badRequest
	if errors.As(err, &bad) {
		status = http.StatusBadRequest
	}
	if r.Context().Err() != nil { // whatever the work says of that
		status = http.StatusGatewayTimeout
		err = context.Cause(r.Context())
	}
	http.Error(w, err.Error(), status)
}

// answerAbout answers with a value in JSON that is about a run, whose digest it tells.
func answerAbout(w http.ResponseWriter, found run.Found, v any) {
	w.Header().Set(digestHeader, found.Manifest.Digest)
	answer(w, v)
}

// answer answers with a value in JSON.
func answer(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}
