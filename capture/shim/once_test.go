package shim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// countingCompiler is a countedCompiler that fails after a moment.
func countingCompiler(t *testing.T) (mpicc string, calls func() int) {
	t.Helper()
	return countedCompiler(t, "sleep 0.2; echo 'spool.c:7: error: odd' >&2; exit 1")
}

// touchAgain gives the remembered failures of a cache the present time, again and again until stop is called: however
// slow the machine is, they do not become too old in a test.
func touchAgain(t *testing.T, cache string) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			found, err := filepath.Glob(filepath.Join(cache, "shim", "*", failedFile))
			if err != nil {
				t.Error(err)
			}
			for _, path := range found {
				if err := os.Chtimes(path, time.Time{}, time.Now()); err != nil && !os.IsNotExist(err) {
					t.Error(err)
				}
			}
			select {
			case <-done:
				return
			case <-time.After(lockStep):
			}
		}
	})
	stop = sync.OnceFunc(func() { close(done); ended.Wait() })
	t.Cleanup(stop)
	return stop
}

// One rank of a job calls a compiler that fails. The other ranks do not: they take the library that commq brings, and
// their notes say that the failure is an earlier one. A process that is not a rank calls the compiler again, and so do
// the ranks of a later job.
func TestRanksCallAFailingCompilerOnce(t *testing.T) {
	bringing(t)
	mpicc, calls := countingCompiler(t)
	const ranks = 5
	var mutex sync.Mutex
	notes := map[string]int{}
	o := BuildOptions{Library: OpenMPI, Mpicc: mpicc, Cache: t.TempDir(), Ranks: true, Note: func(text string) {
		mutex.Lock()
		defer mutex.Unlock()
		notes[text]++
	}}
	stop := touchAgain(t, o.Cache)
	var all sync.WaitGroup
	for range ranks {
		all.Go(func() {
			path, err := Build(t.Context(), o)
			if err != nil {
				t.Error(err)
				return
			}
			checkBrought(t, path, "openmpi-4")
		})
	}
	all.Wait()
	before := mpicc + " failed (exit status 1) on the capture library for Open MPI 4.1.4 (" +
		filepath.Join(o.Cache, "shim", "compiler-openmpi.log") + ")"
	after := "; taking the capture library that commq brings for Open MPI 4"
	earlier := 0
	for text, n := range notes {
		if strings.HasPrefix(text, before+", an earlier failure, of ") && strings.HasSuffix(text, " s ago"+after) {
			earlier += n
		}
	}
	if calls() != 1 || notes[before+after] != 1 || earlier != ranks-1 {
		t.Errorf("%d calls, notes %v; want 1, once\n%s%s\nand else with its age", calls(), notes, before, after)
	}
	again := func(want int) {
		t.Helper()
		if _, err := Build(t.Context(), o); err != nil || calls() != want {
			t.Errorf("%d calls, %v; want %d", calls(), err, want)
		}
	}
	o.Ranks = false
	again(2)
	o.Ranks = true
	again(2)
	stop()
	found, err := filepath.Glob(filepath.Join(o.Cache, "shim", "*", failedFile))
	if err != nil || len(found) != 1 {
		t.Fatalf("files %q, %v", found, err)
	}
	old := time.Now().Add(-failedFor - time.Hour)
	if err := os.Chtimes(found[0], old, old); err != nil {
		t.Fatal(err)
	}
	again(3)
}

// Where commq brings no library all ranks end with the same error; all but the first say that it is an earlier one.
func TestRanksFailAlike(t *testing.T) {
	mpicc, calls := countingCompiler(t)
	o := BuildOptions{Library: OpenMPI, Mpicc: mpicc, Cache: t.TempDir(), Ranks: true}
	touchAgain(t, o.Cache)
	_, first := Build(t.Context(), o)
	_, second := Build(t.Context(), o)
	if first == nil || second == nil || calls() != 1 {
		t.Fatalf("%d calls, errors\n%v\nand\n%v", calls(), first, second)
	}
	rest, same := strings.CutPrefix(second.Error(), first.Error()+"\nthis is an earlier failure, of ")
	if !same || !strings.HasSuffix(rest, " s ago; the compiler is called again when it is older than 1m0s") {
		t.Errorf("errors\n%v\nand\n%v", first, second)
	}
}

// countedCompiler is a badCompiler that ends as its lines say. calls counts the builds that called it: each has a
// folder of its own, where it compiles several sources.
func countedCompiler(t *testing.T, lines string) (mpicc string, calls func() int) {
	t.Helper()
	count := filepath.Join(t.TempDir(), "count")
	mpicc = badCompiler(t, `for last; do :; done; echo "${last%/*}" >>`+count+"; "+lines)
	return mpicc, func() int {
		text, err := os.ReadFile(count)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		folders := strings.Fields(string(text))
		slices.Sort(folders)
		return len(slices.Compact(folders))
	}
}

// Ranks remember each failure of a build but those that may be of one host alone.
func TestRanksRememberWhatHoldsForAllHosts(t *testing.T) {
	for _, c := range []struct {
		name, lines string
		calls       int // of two ranks
	}{
		{"a library that is not accepted", `while [ "$1" != -o ]; do shift; done; echo odd >"$2"`, 1},
		{"no library", "exit 0", 1},
		{"error", "exit 1", 1},
		{"status of no signal", "exit 255", 1},
		{"killed", "kill -9 $$", 2},
		{"script whose compiler was killed", "exit 137", 2},
		{"killed part", "echo 'gcc: fatal error: Killed signal terminated program cc1' >&2; exit 1", 2},
		{"full", "echo 'cannot write out.o: No space left on device' >&2; exit 1", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			mpicc, calls := countedCompiler(t, c.lines)
			o := BuildOptions{Library: OpenMPI, Mpicc: mpicc, Cache: t.TempDir(), Ranks: true}
			touchAgain(t, o.Cache)
			for range 2 {
				if path, err := Build(t.Context(), o); err == nil {
					t.Errorf("no error, but %s", path)
				}
			}
			if calls() != c.calls {
				t.Errorf("%d calls, want %d", calls(), c.calls)
			}
		})
	}
}

// The age of a failure is that of the clock that dates the files of the folder, whatever the clock of this host says.
func TestFailuresAgeByTheClockOfTheirFolder(t *testing.T) {
	folder := t.TempDir()
	o := BuildOptions{Cache: folder}
	o.remember(folder, errors.New("odd"))
	year := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(folder, failedFile), year, year); err != nil {
		t.Fatal(err)
	}
	if err := failed(folder); err != nil {
		t.Errorf("a failure of 2001: %v", err)
	}
	if err := failedBefore(folder, year.Add(failedFor+time.Second)); err != nil {
		t.Errorf("an old failure: %v", err)
	}
	want := "odd\nthis is an earlier failure, of 42 s ago; the compiler is called again when it is older than 1m0s"
	if err := failedBefore(folder, year.Add(42*time.Second)); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	dated, err := clockOf(folder)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "later")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	later, err := os.Stat(path)
	if err != nil || later.ModTime().Before(dated) || dated.Before(year) {
		t.Errorf("dated %s, then %v, %v", dated, later, err)
	}
	if left, err := filepath.Glob(filepath.Join(folder, ".failed-*")); err != nil || left != nil {
		t.Errorf("files left: %q, %v", left, err)
	}
}

// A process can be stopped while it waits for another one that builds.
func TestWaitingForAnotherBuildEnds(t *testing.T) {
	folder := t.TempDir()
	told := 0
	tell := func() { told++ }
	release, err := lockFolder(t.Context(), folder, 0, tell)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(2*lockStep, func() { cancel(errors.New("interrupted")) })
	if _, err := lockFolder(ctx, folder, time.Hour, tell); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("error %v", err)
	}
	release()
	release, err = lockFolder(t.Context(), folder, 0, tell)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if told != 0 {
		t.Errorf("told %d times of waiting", told)
	}
}

// A process that waits for another one tells once, with the folder: as a note only if nothing else is called for that.
func TestWaitingForAnotherBuildIsTold(t *testing.T) {
	mpicc, _ := countedCompiler(t, "exit 1")
	o := BuildOptions{Library: OpenMPI, Mpicc: mpicc, Cache: t.TempDir()}
	if _, err := Build(t.Context(), o); err == nil {
		t.Fatal("no error")
	}
	found, err := filepath.Glob(filepath.Join(o.Cache, "shim", "*", ".lock"))
	if err != nil || len(found) != 1 {
		t.Fatalf("locks %q, %v", found, err)
	}
	folder := filepath.Dir(found[0])
	for _, apart := range []bool{false, true} {
		var told, notes []string
		release, err := lockFolder(t.Context(), folder, time.Hour, nil)
		if err != nil {
			t.Fatal(err)
		}
		tell := func(text string) {
			told = append(told, text)
			time.AfterFunc(5*lockStep, release)
		}
		o.Note = tell
		if apart {
			o.Note, o.Waiting = func(text string) { notes = append(notes, text) }, tell
		}
		if _, err := Build(t.Context(), o); err == nil {
			t.Error("no error")
		}
		want := "waiting for another process that builds the capture library in " + folder
		if len(told) != 1 || told[0] != want || len(notes) > 0 {
			t.Errorf("apart %v: told %q, notes %q; want %q once", apart, told, notes, want)
		}
	}
}

// The sources that are compiled twice are those whose code depends on the program that they are for.
func TestBridgeSources(t *testing.T) {
	names, files, err := sourceFiles()
	if err != nil {
		t.Fatal(err)
	}
	var depend []string
	for _, n := range names {
		if regexp.MustCompile(`(?m)^#\s*(el)?if.*\bCQ_BRIDGE\b`).Match(files[n]) {
			depend = append(depend, n)
		}
	}
	if !slices.Equal(depend, bridgeSources) {
		t.Errorf("%q depend on CQ_BRIDGE; build.go has %q", depend, bridgeSources)
	}
}
