package ui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/commq/commq/queries"
)

// openEngines is how many engines stay open: two runs beside each other have four. Opening one takes 40 ms and more on
// large runs.
const openEngines = 6

// engines are the engines of the runs that were asked last. An engine answers one question at a time.
type engines struct {
	options queries.Options

	mu   sync.Mutex
	open []*engine // the one used last comes last
}

// engine is an open engine on some runs.
type engine struct {
	names   string
	options queries.Options
	turn    chan struct{} // holds a value while nobody asks
	db      *queries.DB   // nil until it is first used
	users   int           // questions that have it or wait for it; guarded by engines.mu
}

// withEngine gives a function an engine on runs; see engines.with.
type withEngine func(context.Context, []queries.Run, func(*queries.DB) error) error

// with gives use an engine on runs, alone. It waits until earlier questions about these runs are answered or ctx ends.
// If the engine breaks, use is called once more, with a new one.
func (e *engines) with(ctx context.Context, runs []queries.Run, use func(*queries.DB) error) error {
	return e.asking(ctx, e.take(runs, e.options), runs, use)
}

// withPictures is with for an engine that makes the joins of a statement in the order in which they are written:
// pictures ask a few statements, whose order is good.
func (e *engines) withPictures(ctx context.Context, runs []queries.Run, use func(*queries.DB) error) error {
	options := e.options
	options.AsWritten = true
	return e.asking(ctx, e.take(runs, options), runs, use)
}

// asking is with for an engine that take gave.
func (e *engines) asking(ctx context.Context, one *engine, runs []queries.Run, use func(*queries.DB) error) error {
	defer e.release(one)
	select {
	case <-one.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { one.turn <- struct{}{} }()
	err := one.use(ctx, runs, use)
	if queries.IsBroken(err) {
		err = one.use(ctx, runs, use)
	}
	return err
}

// use gives use the engine, which it opens if need be. An engine that breaks is closed, so that the next question gets
// a new one.
func (o *engine) use(ctx context.Context, runs []queries.Run, use func(*queries.DB) error) error {
	if o.db == nil {
		db, err := queries.Open(context.WithoutCancel(ctx), runs, o.options)
		if err != nil {
			return err
		}
		o.db = db
	}
	err := use(o.db)
	if queries.IsBroken(err) {
		_ = o.db.Close() // it cannot say more than err
		o.db = nil
	}
	return err
}

// take finds or adds the engine of runs with options.
func (e *engines) take(runs []queries.Run, options queries.Options) *engine {
	var dirs []string
	for _, r := range runs {
		dirs = append(dirs, r.Dir, r.Manifest.Digest)
	}
	names := strings.Join(dirs, "\x00")
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, one := range e.open {
		if one.names == names && one.options.AsWritten == options.AsWritten {
			e.open = append(append(e.open[:i:i], e.open[i+1:]...), one)
			one.users++
			return one
		}
	}
	one := &engine{names: names, options: options, turn: make(chan struct{}, 1), users: 1}
	one.turn <- struct{}{}
	e.open = append(e.open, one)
	return one
}

// release closes engines that nobody uses while more than openEngines are open.
func (e *engines) release(one *engine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	one.users--
	for i := 0; i < len(e.open) && len(e.open) > openEngines; {
		if old := e.open[i]; old.users == 0 {
			e.open = append(e.open[:i:i], e.open[i+1:]...)
			_ = old.close() // it answered all its questions; what its temporary folder leaves is the system's to clear
		} else {
			i++
		}
	}
}

// forget closes the engines on a run, about which no question may be asked any more.
func (e *engines) forget(dir string) {
	for _, one := range e.remove(func(one *engine) bool { return slices.Contains(strings.Split(one.names, "\x00"), dir) }) {
		_ = one.close() // as in release
	}
}

// remove takes the engines of a kind out of the open ones and returns them.
func (e *engines) remove(is func(*engine) bool) (removed []*engine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = slices.DeleteFunc(e.open, func(one *engine) bool {
		if !is(one) {
			return false
		}
		removed = append(removed, one)
		return true
	})
	return removed
}

func (o *engine) close() error {
	if o.db == nil {
		return nil
	}
	return o.db.Close()
}

// close closes the engines that no question uses. No further question may be asked.
func (e *engines) close() (err error) {
	for _, one := range e.remove(func(one *engine) bool { return one.users == 0 }) {
		err = errors.Join(err, one.close())
	}
	return err
}
