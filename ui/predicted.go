package ui

import (
	"cmp"
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

// mostPredicted limits the predicted runs that are kept: each is as large as the run from which it is made.
const mostPredicted = 4

// predictedRuns are the runs with simulated times that the page asked for, in a folder that Close removes.
type predictedRuns struct {
	options *Options
	turn    chan struct{} // holds a value while no run is made

	mu   sync.Mutex
	dir  string           // "" until the first
	made int              // runs made so far; each has a store of its own
	kept []predictedByKey // the one used last comes last
	// dropped are the folders of runs that are kept no more, which questions may still read.
	dropped []string
}

// predictedByKey is a predicted run and what it was made of.
type predictedByKey struct {
	key  string
	of   run.Found
	run  run.Found // its name has spaces, which no run of a store has
	name string    // what the command line calls it
	from []string  // the arguments of commq simulate
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

// keep adds a run. It drops one of the same name, whose captured run was replaced, and the one that was not used for
// longest if there are too many.
func (p *predictedRuns) keep(one predictedByKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	drop := func(at int) {
		p.dropped = append(p.dropped, p.kept[at].run.Dir)
		p.kept = slices.Delete(p.kept, at, at+1)
	}
	if at := slices.IndexFunc(p.kept, func(k predictedByKey) bool { return k.run.Name == one.run.Name }); at >= 0 {
		drop(at)
	}
	p.kept = append(p.kept, one)
	if len(p.kept) > mostPredicted {
		drop(0)
	}
}

// takeDropped returns the folders of the runs that were dropped since it was last called.
func (p *predictedRuns) takeDropped() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	dropped := p.dropped
	p.dropped = nil
	return dropped
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
	found, err := s.singleRun(r)
	machine, changes, badMachine := readMachine(r, s.options.Machines)
	if err = cmp.Or(err, badMachine, s.predictions.refuse(found)); err != nil {
		fail(w, r, err)
		return
	}
	one, err := s.predictions.predict(r.Context(), found, machine, changes)
	if err != nil {
		fail(w, r, err)
		return
	}
	answerAbout(w, found, Predicted{s.listed(one.run), shellquote.Join(append(one.from, "--name", one.name)...)})
}

// refuse returns an error for a run that is predicted itself.
func (p *predictedRuns) refuse(found run.Found) error {
	if one, predicted := p.named(found.Name); predicted {
		return badRequest{fmt.Errorf("%s is predicted; simulate %s", found.Name, one.of.Name)}
	}
	return nil
}

// predict returns the run on a machine. One is made at a time.
func (p *predictedRuns) predict(ctx context.Context, found run.Found, machine string, changes []string) (predictedByKey,
	error) {
	key := strings.Join(append([]string{contentOf(found), machine}, changes...), "\x00")
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
	name := predictedName(found.Name, machine, changes)
	if err := p.options.Predict(ctx, found, machine, changes, store, name); err != nil {
		return predictedByKey{}, badRequest{errors.Join(err, os.RemoveAll(store))}
	}
	made, err := run.Find(store, name)
	if err != nil {
		return predictedByKey{}, errors.Join(err, os.RemoveAll(store))
	}
	made.Name = fmt.Sprintf("%s on %s", found.Name, strings.Join(append([]string{machine}, changes...), ", "))
	one := predictedByKey{key: key, of: found, run: made, name: name,
		from: p.options.simulateCommand(found, machine, changes)}
	p.keep(one)
	return one, nil
}

// contentOf names a run by its place and its digest: another run may get its place.
func contentOf(found run.Found) string { return found.Dir + "\x00" + found.Manifest.Digest }

// predictedName names a run on a machine: RUN.MACHINE, and eight digits that differ with the changes.
func predictedName(of, machine string, changes []string) string {
	name := of + "." + machine
	if len(changes) == 0 {
		return name
	}
	sum := fnv.New32a()
	fmt.Fprint(sum, strings.Join(changes, "\x00"))
	return name + "." + hex.EncodeToString(sum.Sum(nil))
}

// args name a run on a command line: a predicted run as if commq simulate --name had written it.
func (p *predictedRuns) args(f run.Found) []string {
	one, predicted := p.named(f.Name)
	if !predicted || one.run.Dir != f.Dir {
		return p.options.Args(f)
	}
	args := slices.Clone(p.options.Args(one.of))
	args[len(args)-1] = one.name
	return args
}
