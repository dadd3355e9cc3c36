package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// Commands that take longer than workingAfter show on a terminal that they work, with the seconds so far, until they
// print or show progress of their own.
const (
	workingAfter = time.Second
	workingEvery = time.Second
)

// ownOutput are the commands that do not show that they work: they run the user's program, whose output must not be
// touched, or show all the time what they see.
var ownOutput = []string{"capture", "exec", "watch", "replay", "calibrate", "completion", "simrank", "ui"}

// showWorking makes a command and its subcommands show that they work.
func showWorking(a *app, c *cobra.Command) {
	if slices.Contains(ownOutput, c.Name()) || c.Hidden {
		return
	}
	for _, sub := range c.Commands() {
		showWorking(a, sub)
	}
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			defer a.working(strings.TrimPrefix(c.CommandPath(), "commq "))()
			return run(c, args)
		}
	}
}

// working shows that a command works if stderr is a terminal and --quiet is not given. The first write to stdout or
// stderr, or stop, removes what it shows.
func (a *app) working(what string) (stop func()) {
	if a.quiet || !understands(a.stderr) {
		return func() {}
	}
	end := showElapsed(a.stderr, what, workingAfter, workingEvery)
	stdout, stderr := a.stdout, a.stderr
	a.stdout, a.stderr = before(stdout, end), before(stderr, end)
	return func() {
		end()
		a.stdout, a.stderr = stdout, stderr
	}
}

// showElapsed writes a line with the time that has passed, first after some time and then regularly. end removes the
// line; it may be called several times.
func showElapsed(w io.Writer, what string, after, every time.Duration) (end func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	began := time.Now()
	go func() {
		defer close(stopped)
		shown := false
		for next := after; ; next = every {
			select {
			case <-stop:
				if shown {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			case <-time.After(next):
				shown = true
				fmt.Fprintf(w, "\r\x1b[K%s: working, %d s", what, int(time.Since(began).Seconds()))
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-stopped
	})
}

// before returns a writer that calls first before every write. That of a file is a file to onTerminal.
func before(w io.Writer, first func()) io.Writer {
	if f, ok := w.(file); ok {
		return &fileAfter{f, first}
	}
	return &writerAfter{w, first}
}

type writerAfter struct {
	w     io.Writer
	first func()
}

func (w *writerAfter) Write(b []byte) (int, error) {
	w.first()
	return w.w.Write(b)
}

// file is a writer with a descriptor.
type file interface {
	io.Writer
	Fd() uintptr
}

type fileAfter struct {
	f     file
	first func()
}

func (f *fileAfter) Write(b []byte) (int, error) {
	f.first()
	return f.f.Write(b)
}

// Fd is the file's descriptor.
func (f *fileAfter) Fd() uintptr { return f.f.Fd() }
