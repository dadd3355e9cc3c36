package detect

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/commq/commq/internal/payloads"
	"github.com/commq/commq/schema"
)

// spilling makes payloads spill to a file, counted in files, and lets detection hold only a few in memory.
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

// Findings do not depend on how many payloads fit in memory.
func TestSpilledPayloadsChangeNothing(t *testing.T) {
	files := 0
	for seed := range uint64(40) {
		run, kinds := RandomSpreading(t, seed)
		if seed%2 == 1 {
			run, kinds = RandomCombining(seed)
		}
		want := found(t, run, Options{})
		o := Options{}
		spilling(t, run, &o, &files)
		if d := cmp.Diff(want, found(t, run, o)); d != "" {
			t.Errorf("seed %d (%v): held, spilled:\n%s", seed, kinds, d)
		}
	}
	if files < 20 {
		t.Errorf("%d runs spill; want more", files)
	}
}

// detected returns a whole result, with the messages of all instances.
func detected(t *testing.T, run *Run, o Options) *Result {
	t.Helper()
	o.Messages = true
	r, err := Detect(run, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// instances counts the instances of all findings.
func instances(r *Result) (n int64) {
	for i := range r.Findings {
		n += r.Findings[i].Instances
	}
	return n
}

// Detection in passes finds the same as in one pass, however few messages a pass has.
func TestPassesChangeNothing(t *testing.T) {
	passes, before := 0, 0
	for seed := range uint64(40) {
		run, kinds := RandomSpreading(t, seed)
		if seed%4 == 3 {
			run, kinds = RandomCombining(seed)
		}
		read := run.Messages
		run.Messages = func(columns []string, add func(*schema.Messages, schema.Rest) error) error {
			passes++
			return read(columns, add)
		}
		want := detected(t, run, Options{})
		before, passes = before+passes, 0
		for _, part := range []int64{1, 12} {
			got := detected(t, run, Options{part: part})
			if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Finding{})); d != "" {
				t.Fatalf("seed %d (%v), %d messages in a pass: at once, in passes:\n%s", seed, kinds, part, d)
			}
		}
		before, passes = before-passes/2, 0
	}
	if before > -40*2 {
		t.Errorf("%d passes more than at once; want more", -before)
	}
}

// The memory limit does not limit the findings: payloads whose messages do not fit get passes of their own. Only
// found instances must be kept; messages beyond the limit are counted.
func TestMemoryLimitsOnlyFoundInstances(t *testing.T) {
	run := script(5, "0>1 a\n0>2 a\n0>3 a\n0>4 a\n1>2 b\n1>3 b\n1>4 b\n1>0 b\n2>0 c\n2>1 c\n2>3 c\n2>4 c").run(t,
		rand.New(rand.NewPCG(3, 5)), nil)
	whole := detected(t, run, Options{})
	if whole.NoRoom != 0 || whole.Replayed != 12 || instances(whole) != 3 {
		t.Fatalf("%d replayed, no room for %d, %d instances; want 12, 0 and 3", whole.Replayed, whole.NoRoom,
			instances(whole))
	}
	if d := cmp.Diff(whole, detected(t, run, Options{MemoryBytes: 8 * replayedBytes}),
		cmpopts.IgnoreUnexported(Finding{})); d != "" {
		t.Errorf("with memory for 8 of 12 messages:\n%s", d)
	}
	part := detected(t, run, Options{MemoryBytes: 5 * replayedBytes})
	if part.Replayed != 8 || part.NoRoom != 4 || part.LeftOut != 4 || instances(part) != 2 {
		t.Errorf("with memory for 5: %d replayed, no room for %d, %d left out, %d instances; want 8, 4, 4 and 2",
			part.Replayed, part.NoRoom, part.LeftOut, instances(part))
	}
}

func TestDetectionStopsOnRequest(t *testing.T) {
	run := script(5, "0>1 a\n0>2 a\n0>3 a\n0>4 a").run(t, rand.New(rand.NewPCG(3, 5)), nil)
	stop := errors.New("stop")
	run.Stopped = func() error { return stop }
	if _, err := Detect(run, Options{}); !errors.Is(err, stop) {
		t.Errorf("%v, want %v", err, stop)
	}
}

func TestSpillFileErrorsAreReturned(t *testing.T) {
	run, _ := RandomSpreading(t, 3)
	full := errors.New("full")
	run.Spill = func() (payloads.Spill, error) { return nil, full }
	if _, err := Detect(run, Options{held: 1}); !errors.Is(err, full) {
		t.Errorf("%v, want %v", err, full)
	}
}

// The same run gives the same findings, with the same instances, on any number of processors.
func TestFindingsDoNotDependOnProcessorCount(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	inside := cmp.Exporter(func(reflect.Type) bool { return true })
	for seed := range uint64(12) {
		var first *Result
		for _, n := range []int{1, 2, 5} {
			runtime.GOMAXPROCS(n)
			rng := rand.New(rand.NewPCG(seed, 11))
			g := &generator{Rand: rng}
			p := g.program()
			for range 60 { // enough payloads for several goroutines
				g.site += 10
				g.broadcast(g.ranks())
			}
			r, err := Detect(p.run(t, rng, g.noise()), Options{Messages: true})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = r
			} else if d := cmp.Diff(first, r, inside); d != "" {
				t.Fatal(fmt.Sprintf("seed %d, %d processors: ", seed, n) + d)
			}
		}
	}
}
