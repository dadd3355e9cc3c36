package synth

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// made writes a run, checks it by every rule, and returns its manifest.
func made(t *testing.T, pattern string, ranks int, messages int64, o Options) (dir string, m *schema.Manifest) {
	t.Helper()
	p, err := New(pattern, ranks, messages)
	if err != nil {
		t.Fatal(err)
	}
	store := t.TempDir()
	o.Check = true
	if err := Write(p, store, pattern, o); err != nil {
		t.Fatalf("%s on %d ranks: %v", pattern, ranks, err)
	}
	dir = filepath.Join(store, pattern)
	if m, err = writer.ReadManifest(dir); err != nil {
		t.Fatal(err)
	}
	if m.Counts.Messages < messages || m.Counts.Messages != p.Messages() {
		t.Errorf("%s on %d ranks: %d messages; want %d, at least %d", pattern, ranks, m.Counts.Messages, p.Messages(),
			messages)
	}
	return dir, m
}

// ranksOf are numbers of ranks that a pattern can have: the smallest, and one whose grid is not square where it need
// not be.
var ranksOf = map[string][]int{"shift": {1, 12}, "halo": {1, 12}, "cg": {2, 8, 16}, "sp": {4, 9}, "lu": {2, 12},
	"mg": {1, 12}, "pencil": {1, 12}}

// TestRunsKeepAllRules checks runs of every pattern by the rules of commq runs check, with all that a run can hold
// and with the least.
func TestRunsKeepAllRules(t *testing.T) {
	for _, pattern := range Patterns() {
		for _, ranks := range ranksOf[pattern] {
			made(t, pattern, ranks, 999, Options{Seed: 3, Hash: true, Callsites: true, RanksPerHost: 3})
			made(t, pattern, ranks, 999, Options{Seed: 3, Record: "messages", TimeResolutionNs: 1 << 20})
		}
	}
}

// TestSeveralEpochs checks a run of more than one epoch, and its digests: they are those of the options, however many
// threads make it.
func TestSeveralEpochs(t *testing.T) {
	o := Options{Seed: 5, TimeResolutionNs: 1 << 20, epochRows: 5000}
	_, m := made(t, "shift", 27, 20_000, o)
	if m.Epochs < 6 {
		t.Errorf("%d epochs; want one before the iterations, at least four of them, and one behind", m.Epochs)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if _, alone := made(t, "shift", 27, 20_000, o); alone.Digest != m.Digest {
		t.Errorf("digest %s on one thread, %s on %d", alone.Digest, m.Digest, runtime.NumCPU())
	}
	o.Seed = 6
	if _, other := made(t, "shift", 27, 20_000, o); other.Digest == m.Digest {
		t.Errorf("digest %s with another seed too", m.Digest)
	}
}

// TestMessagesOfCG compares the messages between the ranks of CG with a real capture: 15 iterations and one before,
// equally many of each size.
func TestMessagesOfCG(t *testing.T) {
	real := pairsOf(t, "../../../testdata/runs/cg.A.16")
	dir, _ := made(t, "cg", 16, 47104, Options{})
	if diff := cmp.Diff(real, pairsOf(t, dir), cmp.AllowUnexported(pairBytes{})); diff != "" {
		t.Errorf("messages by source, destination and bytes (-captured +made):\n%s", diff)
	}
}

type pairBytes struct {
	src, dst int32
	bytes    int64
}

// pairsOf counts messages.
func pairsOf(t *testing.T, dir string) map[pairBytes]int {
	n := map[pairBytes]int{}
	err := writer.ReadTable(context.Background(), dir, &schema.MessagesTable, 1<<12, func(b schema.Batch) error {
		m := b.(*schema.Messages)
		for i := range m.Src {
			n[pairBytes{m.Src[i], m.Dst[i], m.Bytes[i]}]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestImpossibleOptionsAreRejected checks errors of New.
func TestImpossibleOptionsAreRejected(t *testing.T) {
	for _, c := range []struct {
		pattern string
		ranks   int
	}{{"cg", 12}, {"sp", 8}, {"sp", 1}, {"nothing", 4}, {"shift", 0}} {
		if _, err := New(c.pattern, c.ranks, 1); err == nil {
			t.Errorf("%s on %d ranks: no error", c.pattern, c.ranks)
		}
	}
}
