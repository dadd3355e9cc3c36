package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/commq/commq/internal/testenv"
)

// onTerminalOf runs a command line with a terminal as stdout and stderr and returns what it shows there.
func onTerminalOf(t *testing.T, args ...string) (shown string, status int) {
	t.Helper()
	return onTerminalWide(t, 0, args...)
}

// onTerminalWide is onTerminalOf with a terminal of so many columns; 0: it does not tell.
func onTerminalWide(t *testing.T, columns uint16, args ...string) (shown string, status int) {
	t.Helper()
	t.Setenv("COLUMNS", "")
	t.Setenv("TERM", "xterm")
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		testenv.Skip(t, fmt.Sprintf("no terminals here: %v", err))
	}
	defer master.Close()
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&out, master) // ends with an error when the terminal is closed
	}()
	status = execute(context.Background(), args, strings.NewReader(""), terminal, terminal)
	terminal.Close()
	<-read
	return out.String(), status
}

// The first capture tells on a terminal that it compiles, and nowhere else.
func TestCompilingIsToldOnATerminal(t *testing.T) {
	mpicc := filepath.Join(t.TempDir(), "mpicc")
	text := `#!/bin/sh
case "$1" in
--version) echo gcc 12;;
-E) echo "#define OPEN_MPI 1"; echo "#define OMPI_MAJOR_VERSION 4"; echo "#define OMPI_MINOR_VERSION 1"; echo "#define OMPI_RELEASE_VERSION 6";;
*) exit 1;;
esac
`
	if err := os.WriteFile(mpicc, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("COMMQ_CACHE", t.TempDir())
	const note = "commq: compiling the capture library for Open MPI 4.1.6 (once, about 10 s)"
	line := []string{"capture", "build", "--mpi", "openmpi", "--mpicc", mpicc}
	shown, status := onTerminalOf(t, line...)
	if status != exitCannot || !strings.HasPrefix(shown, note+"\r\n") || !strings.Contains(shown, "mpicc failed (exit status 1)") {
		t.Errorf("status %d on a terminal:\n%s", status, shown)
	}
	if shown, _ := onTerminalOf(t, append(line, "--quiet")...); strings.Contains(shown, "compiling") {
		t.Errorf("with --quiet:\n%s", shown)
	}
	if got := runLine(line...); strings.Contains(got.stderr, "compiling") {
		t.Errorf("in a pipe:\n%s", got.stderr)
	}
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestElapsedTimeIsShownAndRemoved(t *testing.T) {
	var b buffer
	end := showElapsed(&b, "diff", time.Millisecond, time.Millisecond)
	w := before(&b, end)
	for strings.Count(b.String(), "working") < 2 {
		time.Sleep(time.Millisecond)
	}
	fmt.Fprint(w, "answer")
	end()
	fmt.Fprint(w, "\nmore")
	if !regexp.MustCompile(`^(\r\x1b\[Kdiff: working, \d+ s)+\r\x1b\[Kanswer\nmore$`).MatchString(b.String()) {
		t.Errorf("%q", b.String())
	}
	var soon buffer
	showElapsed(&soon, "diff", time.Hour, time.Hour)()
	if soon.String() != "" {
		t.Errorf("of a short command: %q", soon.String())
	}
}

// What a command shows of its work does not stay: the answer on a terminal is that in a pipe.
func TestAnswerOnATerminal(t *testing.T) {
	line := []string{"query", "density", "--store", "../../testdata/runs", "--run", "pingpong.2"}
	shown, status := onTerminalOf(t, line...)
	shown = workingLine.ReplaceAllString(shown, "")
	if want := runLine(line...).stdout; status != 0 || strings.ReplaceAll(shown, "\r\n", "\n") != want {
		t.Errorf("status %d\n%q, want\n%q", status, shown, want)
	}
}

var workingLine = regexp.MustCompile(`(\r\x1b\[K[a-z ]+: working, \d+ s)+\r\x1b\[K`)

// Tables fit a terminal that tells its width, also where the command shows that it works.
func TestTableFitsTheTerminal(t *testing.T) {
	shown, status := onTerminalWide(t, 60, "query", "callsites", "--store", "../../testdata/runs", "--run", "pingpong.2")
	shown = workingLine.ReplaceAllString(shown, "")
	if status != 0 || !strings.Contains(shown, "MPI_Recv") {
		t.Errorf("status %d\n%s", status, shown)
	}
	for line := range strings.Lines(shown) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\r\n")); n > 60 {
			t.Fatalf("%d columns in\n%s", n, shown)
		}
	}
}

// A report in place is counted in rows of the terminal: the next one replaces all of them.
func TestReportRows(t *testing.T) {
	parts := []string{"ring: 4 of 4 ranks, running", "fewest calls: rank 0 (100), rank 1 (101), rank 2 (102)"}
	for columns, want := range map[int]int{0: 2, 80: 2, 30: 3} {
		rows := reportRows(parts, columns)
		if strings.Count(rows, "\n") != want {
			t.Errorf("%d columns:\n%s", columns, rows)
		}
		for line := range strings.Lines(rows) {
			if columns > 0 && len(line) > columns {
				t.Errorf("%d columns: %q", columns, line)
			}
		}
	}
}
