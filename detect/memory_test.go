package detect

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema/payloads"
)

// spilling makes a run's payloads go to a file, which it counts in, and makes detection hold only a few.
func spilling(t *testing.T, run *Run, o *Options, files *int) {
	o.held = 20
	run.Spill = func() (payloads.Spill, error) {
		*files++
		f, err := os.Create(filepath.Join(t.TempDir(), "payloads"))
		if err == nil {
			t.Cleanup(func() { f.Close() })
		}
		return f, err
	}
}

// What is found does not depend on how many payloads there is memory for.
func TestSpilledPayloadsChangeNothing(t *testing.T) {
	files := 0
	for seed := range uint64(40) {
		run, kinds := RandomSpreading(t, seed)
		if seed%2 == 1 {
			run, kinds = RandomCombining(seed)
		}
		want := found(t, run, Options{Neighbors: true})
		o := Options{Neighbors: true}
		spilling(t, run, &o, &files)
		if d := cmp.Diff(want, found(t, run, o)); d != "" {
			t.Errorf("seed %d (%v): held, spilled:\n%s", seed, kinds, d)
		}
	}
	if files < 20 {
		t.Errorf("%d runs spill; want more", files)
	}
}

// What there is no room for is counted, and the rest is looked at as it is.
func TestWithoutRoomMessagesAreLeftOut(t *testing.T) {
	run := script(5, "0>1 a\n0>2 a\n0>3 a\n0>4 a\n1>2 b\n1>3 b\n1>4 b\n1>0 b").run(t, rand.New(rand.NewPCG(3, 5)), nil)
	whole, err := Detect(run, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if whole.NoRoom != 0 || whole.Replayed != 8 {
		t.Fatalf("%d replayed, no room for %d; want 8 and 0", whole.Replayed, whole.NoRoom)
	}
	part, err := Detect(run, Options{MemoryBytes: 5 * replayedBytes})
	if err != nil {
		t.Fatal(err)
	}
	if part.Replayed != 5 || part.NoRoom < 3 || part.LeftOut < part.NoRoom {
		t.Errorf("%d replayed, no room for %d, %d left out; want 5, 3 or more, and no less", part.Replayed, part.NoRoom, part.LeftOut)
	}
}

func TestDetectionStopsWhenAsked(t *testing.T) {
	run := script(5, "0>1 a\n0>2 a\n0>3 a\n0>4 a").run(t, rand.New(rand.NewPCG(3, 5)), nil)
	stop := errors.New("stop")
	run.Stopped = func() error { return stop }
	if _, err := Detect(run, Options{}); !errors.Is(err, stop) {
		t.Errorf("%v, want %v", err, stop)
	}
}

func TestErrorsOfTheFileOfPayloadsAreReturned(t *testing.T) {
	run, _ := RandomSpreading(t, 3)
	full := errors.New("full")
	run.Spill = func() (payloads.Spill, error) { return nil, full }
	if _, err := Detect(run, Options{held: 1}); !errors.Is(err, full) {
		t.Errorf("%v, want %v", err, full)
	}
}
