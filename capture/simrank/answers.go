package simrank

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// answers are events on their way out. Nobody who puts one waits: the simulator rank may be writing to us while we write to
// it, and if both waited for room in a pipe, neither would read. So there is no bound; what is not read yet is what the program has
// sent and not been told of.
type answers struct {
	mu      sync.Mutex
	some    sync.Cond
	pipe    *pipe // nil: not a pipe
	writing bool  // the goroutine is
	pending []byte
	closed  bool
	err     error
	done    chan struct{}
}

func newAnswers(w io.Writer) *answers {
	a := &answers{done: make(chan struct{})}
	a.some.L = &a.mu
	if a.pipe = newPipe(w); a.pipe != nil {
		w = a.pipe.f
	}
	go a.write(w)
	return a
}

// put writes events as far as the pipe has room at once; the goroutine, whose turn costs more, has the rest.
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
		a.some.Signal()
	}
}

// keepBytes is how large a buffer is kept for the next answers.
const keepBytes = 1 << 20

func (a *answers) write(w io.Writer) {
	defer close(a.done)
	var out []byte
	for {
		a.mu.Lock()
		a.writing = false
		for len(a.pending) == 0 && !a.closed {
			a.some.Wait()
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

// patience is how long the last answers may take at the end: a simulator rank that waits for us does not read them.
const patience = 10 * time.Second

// close waits until everything is written.
func (a *answers) close() error {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.some.Signal()
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
