package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/commq/commq/internal/printable"
)

// progressEvery is the time between two changes of a progress line.
const progressEvery = 100 * time.Millisecond

// newProgress shows the progress of a long task on one line of stderr if that is a terminal and --quiet is not given;
// otherwise both functions do nothing. unit is a plural noun for what is counted. Calls of update must not overlap;
// finish removes the line.
func newProgress(a *app, what, unit string) (update func(done, total int64), finish func()) {
	f := a.stderr
	if a.quiet || !understands(f) {
		return func(done, total int64) {}, func() {}
	}
	what = printable.Line(what)
	began := time.Now()
	var last time.Time
	update = func(done, total int64) {
		if now := time.Now(); total > 0 && now.Sub(last) >= progressEvery {
			last = now
			fmt.Fprintf(f, "\r\x1b[K%s: %s", what, progressText(done, total, unit, now.Sub(began)))
		}
	}
	finish = func() {
		if !last.IsZero() {
			fmt.Fprint(f, "\r\x1b[K")
		}
		last = time.Time{}
	}
	return update, finish
}

// countProgress is newProgress for callers that report increments instead of totals.
func countProgress(a *app, what, unit string, total int64) (more func(n int), finish func()) {
	update, finish := newProgress(a, what, unit)
	var mu sync.Mutex
	done := int64(0)
	return func(n int) {
		mu.Lock()
		defer mu.Unlock()
		done = min(done+int64(n), total)
		update(done, total)
	}, finish
}

// statusLine shows the current step of a long task on one line of stderr, if that is a terminal and --quiet is not
// given; otherwise both functions do nothing. clear removes the line.
func statusLine(a *app) (show func(text string), clear func()) {
	f := a.stderr
	if a.quiet || !understands(f) {
		return func(string) {}, func() {}
	}
	return func(text string) { fmt.Fprintf(f, "\r\x1b[K%s", printable.Line(text)) }, func() { fmt.Fprint(f, "\r\x1b[K") }
}

// noteCompiling returns a function that says on a terminal what is being compiled: the first capture of a machine
// waits for it. It is nil where stderr is no terminal, and with --quiet.
func noteCompiling(a *app) func(what string) {
	if a.quiet || !onTerminal(a.stderr) {
		return nil
	}
	return func(what string) { a.note("compiling %s (once, about 10 s)", what) }
}

// progressText formats the completed part, the rate and the remaining time.
func progressText(done, total int64, unit string, elapsed time.Duration) string {
	rate := float64(done) / max(elapsed.Seconds(), 1e-3)
	text := fmt.Sprintf("%d%% of %s %s, %s/s", 100*done/total, grouped(total), unit, grouped(int64(rate)))
	if rate > 0 && done < total {
		left := time.Duration(float64(total-done) / rate * float64(time.Second))
		text += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return text
}
