// Package training collects what predictions learn from: it signs runs on disk, reads signatures and models from files,
// and finds the laws of them all. evidence.go keeps out runs that commq made.
package training

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/commq/commq/predict"
	"github.com/commq/commq/predict/communications"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Open opens the run in folder dir for prediction.
func Open(ctx context.Context, dir string) (*signature.Run, error) {
	r, err := run.Open(ctx, dir, run.Need{})
	if err != nil {
		return nil, err
	}
	p := &signature.Run{Name: r.Name, Manifest: r.Manifest, Datatypes: r.Datatypes,
		Events: r.Events(ctx, signature.Columns...),
		Parts:  r.Parts(ctx)}
	if p.Comms, err = run.Rows[schema.Comm](ctx, r, &schema.CommsTable); err != nil {
		return nil, err
	}
	p.Callsites, err = run.Rows[schema.Callsite](ctx, r, &schema.CallsitesTable)
	return p, err
}

// SignRun makes the signature of the run in folder dir.
func SignRun(ctx context.Context, dir string) (*signature.Signature, error) {
	r, err := Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	s, _, err := predict.Sign(r)
	return s, err
}

// SignOrRead makes the signature of the run that a name or path names, or reads it from the file that a pattern
// matches. With check it compares the signature with the rows of the run.
func SignOrRead(ctx context.Context, store, name string, check bool) (*signature.Signature, error) {
	files, err := FindFiles(name)
	switch {
	case err != nil:
		return nil, err
	case len(files) > 1:
		return nil, fmt.Errorf("--run %s: %d files; name one", name, len(files))
	case len(files) == 1 && check:
		return nil, fmt.Errorf("--check: compares a signature with the rows of its run, and %s has none; name the run",
			files[0])
	case len(files) == 1:
		s, err := ReadFile(files[0])
		if err == nil {
			s.Communications, s.Irregular = communications.Find(s)
		}
		return s, err
	}
	found, err := run.Find(store, name)
	if err != nil {
		return nil, err
	}
	r, err := Open(ctx, found.Dir)
	if err != nil {
		return nil, err
	}
	s, _, err := predict.Sign(r)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	if check {
		if err := s.Compare(r); err != nil {
			return nil, fmt.Errorf("sign of %s: %w", r.Name, err)
		}
	}
	return s, nil
}

// Watch tells what SignAll does. Its functions are never called concurrently.
type Watch struct {
	// Progress is called after each signature.
	Progress func(done, total int)
	// Skipped is called with a sentence for each run that a pattern matches and commq made.
	Skipped func(text string)
}

// SignAll makes or reads the signatures of all runs and signature files that names and patterns match, by their number
// of ranks. It signs as many at once as there are CPUs. Runs that commq made are no evidence of what a program does:
// patterns skip them, and it is an error to name one. Only a replayed run may be named.
func SignAll(ctx context.Context, store string, patterns []string, w Watch) ([]*signature.Signature, error) {
	sources, err := findSources(store, patterns, w.Skipped)
	if err != nil {
		return nil, err
	}
	all, err := parallel(ctx, sources, w.Progress)
	if err != nil {
		return nil, err
	}
	if all, err = keepEvidence(all, sources, w.Skipped); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b *signature.Signature) int { return int(a.Ranks) - int(b.Ranks) })
	return all, nil
}

// signatureSource makes or reads a signature.
type signatureSource struct {
	name   string // of the run or file
	listed bool   // a pattern matched it
	sign   func(context.Context) (*signature.Signature, error)
}

func findSources(store string, patterns []string, skipped func(string)) (sources []signatureSource, err error) {
	for _, pattern := range patterns {
		files, err := FindFiles(pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			sources = append(sources, signatureSource{file, file != pattern,
				func(context.Context) (*signature.Signature, error) { return ReadFile(file) }})
		}
		if files != nil {
			continue
		}
		runs, listed, err := FindRuns(store, pattern, skipped)
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			sources = append(sources, signatureSource{r.Name, listed,
				func(ctx context.Context) (*signature.Signature, error) { return SignRun(ctx, r.Dir) }})
		}
	}
	return sources, nil
}

// parallel calls all sources and returns their signatures in order. The first error ends it.
func parallel(ctx context.Context, sources []signatureSource,
	progress func(done, total int)) ([]*signature.Signature, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all, errs := make([]*signature.Signature, len(sources)), make([]error, len(sources))
	var wait sync.WaitGroup
	var mu sync.Mutex
	next, done := 0, 0
	for range min(len(sources), runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(sources) || ctx.Err() != nil {
					return
				}
				if all[i], errs[i] = sources[i].sign(ctx); errs[i] != nil {
					cancel()
				}
				mu.Lock()
				done++
				progress(done, len(sources))
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	for _, err := range errs { // the first that is not a consequence of another
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
	return all, errors.Join(errors.Join(errs...), ctx.Err())
}
