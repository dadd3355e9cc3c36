package ui

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/run"
)

// Predictor simulates a run on a machine with changes KEY=VALUE, and writes the run with its new times into a store, as
// commq simulate --name does.
type Predictor func(ctx context.Context, found run.Found, machine string, changes []string, store, name string) error

// Predicted is a run with simulated times that only this server has.
type Predicted struct {
	// Run lists it like any other run.
	Run Listed `json:"run"`
	// Command is the command line that writes it into the store.
	Command string `json:"command"`
}

// mostPredicted is how many predicted runs are kept: each is as large as the run that it was made of.
const mostPredicted = 4

// predictedRuns are the runs with simulated times that the page asked for, in a folder that Close removes.
type predictedRuns struct {
	turn chan struct{} // holds a value while no run is made

	mu   sync.Mutex
	dir  string           // "" until the first
	made int              // runs made so far; each has a store of its own
	kept []predictedByKey // the one used last comes last
}

// predictedByKey is a predicted run and what it was made of.
type predictedByKey struct {
	key  string
	of   run.Found
	run  run.Found
	from []string // the arguments of commq simulate
}

// find returns the predicted run with a key and makes it the one used last.
func (p *predictedRuns) find(is func(*predictedByKey) bool) (predictedByKey, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.kept, func(k predictedByKey) bool { return is(&k) })
	if at < 0 {
		return predictedByKey{}, false
	}
	one := p.kept[at]
	p.kept = append(slices.Delete(p.kept, at, at+1), one)
	return one, true
}

// named returns the predicted run with a name.
func (p *predictedRuns) named(name string) (predictedByKey, bool) {
	return p.find(func(k *predictedByKey) bool { return k.run.Name == name })
}

// folder returns a new store for one predicted run.
func (p *predictedRuns) folder() (store string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == "" {
		if p.dir, err = os.MkdirTemp("", "commq-ui-*"); err != nil {
			return "", err
		}
	}
	p.made++
	return filepath.Join(p.dir, strconv.Itoa(p.made)), nil
}

// keep adds a run, and removes the one that was not used for longest if there are too many.
func (p *predictedRuns) keep(one predictedByKey) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = append(p.kept, one)
	if len(p.kept) <= mostPredicted {
		return nil
	}
	old := p.kept[0]
	p.kept = slices.Delete(p.kept, 0, 1)
	return os.RemoveAll(filepath.Dir(old.run.Dir))
}

// close removes all of them.
func (p *predictedRuns) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == "" {
		return nil
	}
	return os.RemoveAll(p.dir)
}

// predicted answers with a run on a machine, which it makes if it is not there yet.
func (s *Server) predicted(w http.ResponseWriter, r *http.Request) {
	found, machine, changes, err := s.readWhatIf(r)
	if err != nil {
		fail(w, r, err)
		return
	}
	one, err := s.predict(r.Context(), found, machine, changes)
	if err != nil {
		fail(w, r, badRequest{err})
		return
	}
	answer(w, Predicted{s.listed(one.run), shellquote.Join(append(one.from, "--name", one.run.Name)...)})
}

// predict returns the run on a machine. One is made at a time.
func (s *Server) predict(ctx context.Context, found run.Found, machine string, changes []string) (predictedByKey, error) {
	key := strings.Join(append([]string{found.Dir, machine}, changes...), "\x00")
	p := &s.predictions
	select {
	case <-p.turn:
	case <-ctx.Done():
		return predictedByKey{}, context.Cause(ctx)
	}
	defer func() { p.turn <- struct{}{} }()
	if one, known := p.find(func(k *predictedByKey) bool { return k.key == key }); known {
		return one, nil
	}
	store, err := p.folder()
	if err != nil {
		return predictedByKey{}, err
	}
	name, err := s.predictedName(ctx, found.Name, machine, changes)
	if err != nil {
		return predictedByKey{}, err
	}
	if err := s.options.Predict(ctx, found, machine, changes, store, name); err != nil {
		return predictedByKey{}, errors.Join(err, os.RemoveAll(store))
	}
	made, err := run.Find(store, name)
	if err != nil {
		return predictedByKey{}, err
	}
	one := predictedByKey{key: key, of: found, run: made, from: s.simulateCommand(found, machine, changes)}
	return one, p.keep(one)
}

// predictedName names a run on a machine: RUN.MACHINE, and eight digits that differ with the changes. It is no name of a
// run of the store.
func (s *Server) predictedName(ctx context.Context, of, machine string, changes []string) (string, error) {
	name := of + "." + machine
	if len(changes) > 0 {
		sum := fnv.New32a()
		fmt.Fprint(sum, strings.Join(changes, "\x00"))
		name += "." + hex.EncodeToString(sum.Sum(nil))
	}
	stored, err := s.found.all(ctx, s.options.Runs)
	for _, taken := stored[name]; taken; _, taken = stored[name] {
		name += ".predicted"
	}
	return name, err
}

// args name a run on a command line: a predicted run as if commq simulate --name had written it.
func (s *Server) args(f run.Found) []string {
	one, predicted := s.predictions.named(f.Name)
	if !predicted || one.run.Dir != f.Dir {
		return s.options.Args(f)
	}
	args := slices.Clone(s.options.Args(one.of))
	args[len(args)-1] = f.Name
	return args
}
