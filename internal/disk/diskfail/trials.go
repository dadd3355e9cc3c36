package diskfail

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"testing"
)

// Story is something that is done to a folder, of which every failure is tried.
type Story struct {
	// Before makes what is there at the beginning; nil is an empty folder.
	Before func(dir string) error
	// Do is tried. Afterwards it is done again, without a failure.
	Do func(dir string) error
	// After checks the folder. did tells that Do returned without an error; otherwise the power or an operation failed.
	After func(dir string, did bool) error
}

// Trials is the number of trials per story: $COMMQ_TEST_FAULTS, else 200.
func Trials() int {
	n, err := strconv.Atoi(os.Getenv("COMMQ_TEST_FAULTS"))
	if err != nil || n <= 0 {
		return 200
	}
	return n
}

// Try tries failures of a story: each error at each operation and a power failure before each, in a shuffled order, and
// then schedules of several failures at random. It stops at the first trial that fails. Trials are numbered: the same
// number makes the same trial.
func Try(t *testing.T, s Story, trials int) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // else a third of the time goes into collecting small heaps
	r := runner{story: s, base: fastFolder(t)}
	if s.Before != nil {
		if err := s.Before(r.path("before")); err != nil {
			t.Fatal(err)
		}
	}
	count, err := r.countOperations()
	if err != nil {
		t.Fatalf("without a failure: %v", err)
	}
	all := schedules(count)
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range trials {
		faults := several(rand.New(rand.NewPCG(3, uint64(i))), count)
		if i < len(all) {
			faults = all[i]
		}
		if err := r.trial(uint64(i), faults); err != nil {
			t.Fatalf("trial %d of %d operations, %v: %v", i, count, faults, err)
		}
	}
	t.Logf("%d trials; %d operations, %d ways in which one of them can fail", trials, count, len(all))
}

// schedules lists all single failures.
func schedules(count int) (all [][]Fault) {
	for at := 1; at <= count; at++ {
		for range 4 { // ways to lose what is not synced, at random
			all = append(all, []Fault{{At: at}})
		}
		for _, err := range Errors {
			all = append(all, []Fault{{At: at, Err: err}}, []Fault{{At: at, Err: err, From: true, Part: at % 16}})
		}
	}
	return all
}

// several makes a schedule of some errors, and in half of the cases a power failure.
func several(random *rand.Rand, count int) (faults []Fault) {
	for range 1 + random.IntN(3) {
		faults = append(faults, Fault{At: 1 + random.IntN(count), Err: Errors[random.IntN(len(Errors))],
			From: random.IntN(2) == 0, Part: random.IntN(16)})
	}
	if random.IntN(2) == 0 {
		faults = append([]Fault{{At: 1 + random.IntN(count+count/2)}}, faults...)
	}
	return faults
}

// runner runs the trials of a story in a folder each.
type runner struct {
	story Story
	base  string
	n     int
}

// fastFolder is a folder in memory, if the machine has one.
func fastFolder(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "commq-trials-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// path makes a folder of the trials.
func (r *runner) path(name string) string {
	dir := filepath.Join(r.base, name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		panic(err)
	}
	return dir
}

// start makes a folder with what is there before.
func (r *runner) start() (string, error) {
	r.n++
	dir := r.path(fmt.Sprint("trial", r.n))
	return dir, os.CopyFS(dir, os.DirFS(r.path("before")))
}

// countOperations does the story without a failure, returns its number of operations, and checks that what is done is
// durable.
func (r *runner) countOperations() (int, error) {
	dir, err := r.start()
	if err != nil {
		return 0, err
	}
	d, err := New(dir)
	if err != nil {
		return 0, err
	}
	if err := d.Run(func() error { return r.story.Do(dir) }); err != nil {
		return 0, err
	}
	if err := r.story.After(dir, true); err != nil {
		return 0, err
	}
	for seed := range uint64(12) {
		after := r.path(fmt.Sprint("whole", seed))
		if err := d.Crash(after, rand.New(rand.NewPCG(seed, 0)).IntN); err != nil {
			return 0, err
		}
		if err := r.story.After(after, true); err != nil {
			return 0, fmt.Errorf("after a power failure at the end: %w", err)
		}
	}
	return d.Count(), os.RemoveAll(dir)
}

func (r *runner) trial(seed uint64, faults []Fault) error {
	dir, err := r.start()
	if err != nil {
		return err
	}
	d, err := New(dir, faults...)
	if err != nil {
		return err
	}
	did := d.Run(func() error { return r.story.Do(dir) })
	left := dir
	if d.Dead() {
		left = dir + ".after"
		if err := d.Crash(left, rand.New(rand.NewPCG(seed, 7)).IntN); err != nil {
			return err
		}
	}
	if err := r.story.After(left, did == nil); err != nil {
		return fmt.Errorf("at %s (%v): %w", d.Failed(), did, err)
	}
	if err := r.story.Do(left); err != nil {
		return fmt.Errorf("at %s (%v): a second try: %w", d.Failed(), did, err)
	}
	if err := r.story.After(left, true); err != nil {
		return fmt.Errorf("at %s (%v): after a second try: %w", d.Failed(), did, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir + ".after")
}
