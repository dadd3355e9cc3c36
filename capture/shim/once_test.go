package shim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// countingCompiler is a badCompiler that fails after a moment; calls counts how often it did.
func countingCompiler(t *testing.T) (mpicc string, calls func() int) {
	t.Helper()
	count := filepath.Join(t.TempDir(), "count")
	mpicc = badCompiler(t, "sleep 0.2; echo called >>"+count+"; echo 'spool.c:7: error: odd' >&2; exit 1")
	return mpicc, func() int {
		text, err := os.ReadFile(count)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Count(string(text), "called")
	}
}

// Of the ranks of a job one calls a compiler that fails; the others take the library that commq brings, with the same
// note. Whoever is no rank calls it again, and so do ranks of a later job.
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
	var all sync.WaitGroup
	for range ranks {
		all.Go(func() {
			path, err := Build(t.Context(), o)
			if err != nil {
				t.Error(err)
				return
			}
			if data, err := os.ReadFile(path); string(data) != "openmpi-4" {
				t.Errorf("%s has %q, %v", path, data, err)
			}
		})
	}
	all.Wait()
	want := mpicc + " failed (exit status 1) on the capture library for Open MPI 4.1.4 (" +
		filepath.Join(o.Cache, "shim", "compiler-openmpi.log") + "); taking the capture library that commq brings for Open MPI 4"
	if calls() != 1 || notes[want] != ranks {
		t.Errorf("%d calls, notes %v; want 1 and %d times\n%s", calls(), notes, ranks, want)
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
	found, err := filepath.Glob(filepath.Join(o.Cache, "shim", "*", failedFile))
	if err != nil || len(found) != 1 {
		t.Fatalf("files %q, %v", found, err)
	}
	before := time.Now().Add(-failedFor - time.Hour)
	if err := os.Chtimes(found[0], before, before); err != nil {
		t.Fatal(err)
	}
	again(3)
}

// Where commq brings no library all ranks end with the same error.
func TestRanksFailAlike(t *testing.T) {
	mpicc, calls := countingCompiler(t)
	o := BuildOptions{Library: OpenMPI, Mpicc: mpicc, Cache: t.TempDir(), Ranks: true}
	_, first := Build(t.Context(), o)
	_, second := Build(t.Context(), o)
	if first == nil || second == nil || first.Error() != second.Error() || calls() != 1 {
		t.Errorf("%d calls, errors\n%v\nand\n%v", calls(), first, second)
	}
}

// Who waits for another process can be stopped.
func TestWaitingForAnotherBuildEnds(t *testing.T) {
	folder := t.TempDir()
	release, err := lockFolder(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(2*lockStep, func() { cancel(errors.New("interrupted")) })
	if _, err := lockFolder(ctx, folder); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("error %v", err)
	}
	release()
	release, err = lockFolder(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	release()
}
