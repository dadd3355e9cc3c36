package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/internal/private"
)

// CompileError is a failure of the compiler on one of commq's own sources.
type CompileError struct {
	// What was compiled, for example the capture library for Open MPI 4.1.4.
	What string
	// Compiler is the compiler wrapper.
	Compiler string
	// Err is why it ended, Output what it printed.
	Err    error
	Output string
}

// outputLines is how many of the compiler's last lines an error shows, outputWidth how much of each.
const outputLines, outputWidth = 5, 200

// Error returns several lines: what failed, the compiler's last lines, and what to do.
func (e *CompileError) Error() string {
	var b strings.Builder
	b.WriteString(e.summary())
	for _, line := range e.lastLines() {
		b.WriteString("\n    " + line)
	}
	b.WriteString("\n" + e.advice())
	return b.String()
}

// Unwrap returns why the compiler ended.
func (e *CompileError) Unwrap() error { return e.Err }

// summary is the first line of Error.
func (e *CompileError) summary() string {
	return fmt.Sprintf("%s %s on %s", e.Compiler, e.how(), e.What)
}

// HeaderError is a compiler wrapper that cannot compile a file with mpi.h, for example because mpi.h is not installed.
type HeaderError struct {
	// Compiler is the compiler wrapper.
	Compiler string
	// Err is why it ended, Output what it printed.
	Err    error
	Output string
}

// Error returns what failed, and below it the compiler's messages.
func (e *HeaderError) Error() string {
	if e.Output == "" {
		return "build the shim: " + e.summary()
	}
	return "build the shim: " + e.summary() + "\n" + e.Output
}

// Unwrap returns why the compiler ended.
func (e *HeaderError) Unwrap() error { return e.Err }

func (e *HeaderError) summary() string {
	return fmt.Sprintf("%s cannot compile a file with mpi.h: %v", e.Compiler, e.Err)
}

// summary is an error on one line. What a compiler said is kept in a file, which the line names.
func (o *BuildOptions) summary(err error) string {
	var compile *CompileError
	var before *failedError
	switch {
	case errors.As(err, &compile):
		return compile.summary() + o.keepLog(compile.Output)
	case errors.As(err, &before):
		return before.oneLine()
	}
	return firstLine([]byte(err.Error()))
}

// keepLog writes what a compiler said to the cache and returns a remark with the file's name; empty if there is
// nothing to keep, or no place for it.
func (o *BuildOptions) keepLog(output string) string {
	cache, err := cacheFolder(o.Cache)
	if output = strings.TrimSpace(output); err != nil || output == "" {
		return ""
	}
	path := filepath.Join(cache, "shim", "compiler-"+o.Library+".log")
	if _, err := private.Folder(filepath.Dir(path)); err != nil {
		return ""
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".log-") // many ranks may write it at once
	if err != nil {
		return ""
	}
	_, err = f.WriteString(output + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // there is no log
		return ""
	}
	return " (" + path + ")"
}

// how says in plain words how the compiler ended.
func (e *CompileError) how() string {
	if signal, ok := e.signal(); ok {
		return fmt.Sprintf("was stopped by a signal (%s) while it worked", signal)
	}
	return fmt.Sprintf("failed (%v)", e.Err)
}

func (e *CompileError) signal() (syscall.Signal, bool) {
	var exit *exec.ExitError
	if !errors.As(e.Err, &exit) {
		return 0, false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return status.Signal(), ok && status.Signaled()
}

// fromSignal is what a shell adds to the number of a signal that ended a program, lastSignal the largest number of
// one that has a name.
const fromSignal, lastSignal = 128, 31

// ofHost reports whether the failure may be of this host alone: the compiler or a part of it was stopped by a signal,
// as where memory runs out, or a file system is full. Some wrappers are scripts, which report a signal in their status.
func (e *CompileError) ofHost() bool {
	if _, ok := e.signal(); ok {
		return true
	}
	var exit *exec.ExitError
	if errors.As(e.Err, &exit) && exit.ExitCode() > fromSignal && exit.ExitCode() <= fromSignal+lastSignal {
		return true
	}
	text := strings.ToLower(e.Output)
	return strings.Contains(text, "signal terminated program") || strings.Contains(text, "fatal error: killed") ||
		strings.Contains(text, "no space left")
}

// advice says what the user should do.
func (e *CompileError) advice() string {
	killed, ok := e.signal()
	text := strings.ToLower(e.Output)
	switch {
	case ok && killed == syscall.SIGKILL || strings.Contains(text, "fatal error: killed"):
		return "the machine may have run out of memory, or a limit of the batch system was reached: try again on a login node"
	case strings.Contains(text, "no space left"):
		return "name a cache folder with more space in $COMMQ_CACHE, and one for temporary files in $TMPDIR"
	}
	return "check that the wrapper compiles a program of your own, or name another one with --mpicc"
}

// lastLines are the last lines of the output that are not empty.
func (e *CompileError) lastLines() (lines []string) {
	for _, line := range strings.Split(e.Output, "\n") {
		if line = strings.TrimRight(printable.Text(line), " \t\r"); line != "" {
			if runes := []rune(line); len(runes) > outputWidth {
				line = string(runes[:outputWidth]) + " ..."
			}
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-outputLines):]
}

// compile runs the compiler wrapper on sources in a folder, which messages leave out. Its error is a CompileError, or
// that of ctx.
func (t Target) compile(ctx context.Context, what, folder string, args []string) error {
	cmd := exec.CommandContext(ctx, t.Mpicc, args...)
	text, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("compiling %s: %w", what, context.Cause(ctx))
	}
	return &CompileError{What: what, Compiler: t.Mpicc, Err: err, Output: strings.ReplaceAll(string(text), folder+"/", "")}
}

// mostCompilers limits the compilers that run at once, also where there are more cores: login nodes are shared.
const mostCompilers = 8

// compileEach compiles the sources in a folder, several at once in their order, and returns the paths of the objects: those
// of the sources with an ending more.
// Its error is that of the first source that fails; it waits for the compilers that run then, and starts no other.
func (t Target) compileEach(ctx context.Context, what, folder string, flags, sources []string,
	ending string) (objects []string, err error) {
	all, within := errgroup.WithContext(ctx)
	all.SetLimit(min(runtime.NumCPU(), mostCompilers))
	for _, name := range sources {
		source := filepath.Join(folder, name)
		object := source + ending
		objects = append(objects, object)
		all.Go(func() error {
			return t.compile(within, what, folder, slices.Concat(flags, []string{"-c", "-o", object, source}))
		})
	}
	slices.Sort(objects) // linked in the order of their names, as in the libraries that commq brings
	return objects, all.Wait()
}

// Title is the library with its version for people, for example Open MPI 4.1.4.
func (t Target) Title() string {
	if a := t.abi(); a.Standard {
		return a.Title
	}
	title := t.Library
	if lib, err := known(t.Library); err == nil {
		title = lib.title
	}
	return title + " " + t.Version
}
