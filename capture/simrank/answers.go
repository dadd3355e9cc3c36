package simrank

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// answers is a queue of events for the simulator rank. Adding to it never waits: the simulator rank may be writing to
// us while we write to it, and if both waited for room in a pipe, neither would read. So the queue has no bound. It
// holds the answers to what the program has sent and that the simulator rank has not read yet.
type answers struct {
	mu      sync.Mutex
	wake    sync.Cond // there is something to write, or closed
	pipe    *pipe     // nil: not a pipe
	writing bool      // the goroutine is
	pending []byte
	closed  bool
	err     error
	done    chan struct{}
}

func newAnswers(w io.Writer) *answers {
	a := &answers{done: make(chan struct{})}
	a.wake.L = &a.mu
	if a.pipe = newPipe(w); a.pipe != nil {
		w = a.pipe.f
	}
	go a.write(w)
	return a
}

// put writes as much as the pipe has room for. The goroutine writes the rest, which costs a switch to it.
func (a *answers) put(events []byte) {
	a.mu.Lock()
	if a.pipe != nil && !a.writing && len(a.pending) == 0 {
		events = events[a.pipe.try(events):]
	}
	if a.err == nil {
		a.pending = append(a.pending, events...)
	}
	rest := len(a.pending) > 0
	a.mu.Unlock()
	if rest {
		a.wake.Signal()
	}
}

// keepBytes is the largest buffer that is kept for the next answers.
const keepBytes = 1 << 20

func (a *answers) write(w io.Writer) {
	defer close(a.done)
	var out []byte
	for {
		a.mu.Lock()
		a.writing = false
		for len(a.pending) == 0 && !a.closed {
			a.wake.Wait()
		}
		a.writing = true
		if cap(out) > keepBytes {
			out = nil
		}
		out, a.pending = a.pending, out[:0]
		a.mu.Unlock()
		if len(out) == 0 {
			return
		}
		if _, err := w.Write(out); err != nil {
			a.fail(err)
			return
		}
	}
}

func (a *answers) fail(err error) {
	a.mu.Lock()
	a.err = fmt.Errorf("answer the simulator rank: %w", err)
	a.pending = nil
	a.mu.Unlock()
}

// patience limits the time for writing the last answers: a simulator rank that waits for us does not read them.
const patience = 10 * time.Second

// close waits until everything is written.
func (a *answers) close() error {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.wake.Signal()
	select {
	case <-a.done:
	case <-time.After(patience):
		return fmt.Errorf("answer the simulator rank: it does not read the last answers")
	}
	if a.pipe != nil {
		_ = a.pipe.f.Close()
	}
	return a.err
}
