package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/run"
)

// PathFinder finds the critical path of a run as commq critical-path does.
type PathFinder func(ctx context.Context, found run.Found) (Path, error)

// Path returns the parts of a critical path between two times, in ns since the start of the run: about most of them.
type Path func(fromNs, toNs int64, most int) PathParts

// PathParts are parts of a critical path, in order.
type PathParts struct {
	Parts []PathPart `json:"parts"`
	// StepNs is the length of a step if parts are joined, one per step and rank; 0 if each part is drawn by itself.
	StepNs int64 `json:"step_ns"`
	// Summary has the length of the whole path, and its shares.
	Summary string `json:"summary"`
	// Command is the command line with the same answer.
	Command string `json:"command"`
}

// PathPart is a part of a critical path on a rank, between two times in ns since the start of the run.
type PathPart struct {
	Rank   int32 `json:"rank"`
	FromNs int64 `json:"from_ns"`
	ToNs   int64 `json:"to_ns"`
	// Kind is that of commq critical-path; Call is the MPI function, for compute the one after it, and empty if
	// unknown.
	Kind string `json:"kind"`
	Call string `json:"call"`
}

// mostParts limits the parts of a path that the page draws.
const mostParts = 4000

// keptPaths limits the paths in memory: two runs beside each other need two.
const keptPaths = 2

// paths keeps the paths that were asked for last: finding one takes a pass over all rows of a run.
type paths struct {
	turn chan struct{} // holds a value while nobody looks for a path
	kept []foundPath   // the one found last comes last
}

// foundPath is the path of a run.
type foundPath struct {
	content string // see contentOf
	path    Path
}

// find returns the path of a run.
func (p *paths) find(ctx context.Context, found run.Found, find PathFinder) (Path, error) {
	select {
	case <-p.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { p.turn <- struct{}{} }()
	if at := slices.IndexFunc(p.kept, func(k foundPath) bool { return k.content == contentOf(found) }); at >= 0 {
		return p.kept[at].path, nil
	}
	if len(p.kept) == keptPaths {
		p.kept = slices.Delete(p.kept, 0, 1)
	}
	path, err := find(ctx, found)
	if err == nil {
		p.kept = append(p.kept, foundPath{contentOf(found), path})
	}
	return path, err
}

// criticalPath answers with the critical path between the values from-ns and to-ns.
func (s *Server) criticalPath(w http.ResponseWriter, r *http.Request) {
	found, err := s.singleRun(r)
	from, badFrom := strconv.ParseInt(r.URL.Query().Get("from-ns"), 10, 64)
	to, badTo := strconv.ParseInt(r.URL.Query().Get("to-ns"), 10, 64)
	if bad := errors.Join(badFrom, badTo); err == nil && (bad != nil || from < 0 || to <= from) {
		err = badRequest{fmt.Errorf("from-ns %q and to-ns %q: want two times", r.URL.Query().Get("from-ns"),
			r.URL.Query().Get("to-ns"))}
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	path, err := s.paths.find(r.Context(), found, s.options.CriticalPath)
	if err != nil {
		fail(w, r, badRequest{err})
		return
	}
	parts := path(from, to, mostParts)
	parts.Command = shellquote.Join(append([]string{"commq", "critical-path"}, s.predictions.args(found)...)...)
	answerAbout(w, found, parts)
}
