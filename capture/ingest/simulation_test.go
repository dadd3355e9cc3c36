package ingest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// The summaries of two simulator ranks: which machine it was, and how often real time decided.
func TestManifestTellsWhatWasSimulated(t *testing.T) {
	p := program{ranks: 3, body: func(int, *script) {}, header: virtual}
	dir := p.write(t)
	leave := func(k int, text string) string {
		name := fmt.Sprintf("%016x.simulator.%d.json", testJob, k)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	names := []string{
		leave(0, `{"machine": "/m/fast.yaml", "description": "abc", "choices": 9, "out_of_order": 7, "early": 3}`),
		leave(1, `{"machine": "/m/fast.yaml", "description": "abc", "choices": 8, "out_of_order": 5}`),
	}
	r := ingested(t, dir, Options{})
	// FIPS 180-2, B.1
	want := &schema.Simulation{Ranks: 2, Machine: "/m/fast.yaml", Description: "abc",
		Digest: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}
	if d := cmp.Diff(want, r.Origin.Simulation); d != "" {
		t.Error(d)
	}
	if c := r.Counts; c.Choices != 17 || c.OutOfOrder != 12 || c.EarlyCollectives != 3 || len(r.Warnings) != 2 ||
		!strings.HasPrefix(r.Warnings[0], "In 12 of 17 choices") || !strings.HasPrefix(r.Warnings[1], "3 nonblocking") {
		t.Errorf("counts %+v, warnings %q", c, r.Warnings)
	}
	info, err := Find(dir, "")
	if err != nil || !slices.Equal(info.Summaries, names) || len(info.Files) != 3 {
		t.Errorf("%+v, %v", info, err)
	}
	want.Ranks, want.Machine = 5, "ideal"
	known := &schema.Simulation{Ranks: 5, Machine: "ideal", Description: "abc"} // from the launcher
	if d := cmp.Diff(want, ingested(t, dir, Options{Origin: schema.Origin{Simulation: known}}).Origin.Simulation); d != "" {
		t.Error(d)
	}

	leave(1, `{"machine": "/m/fa`)
	if text := refused(t, dir, Options{}); !strings.Contains(text, names[1]+": not the summary of a simulator rank") {
		t.Errorf("error %s", text)
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if s := ingested(t, dir, Options{}).Origin.Simulation; s != nil {
		t.Errorf("where nothing was left: %+v", s)
	}
	p.header = nil
	if s := ingested(t, p.write(t), Options{Origin: schema.Origin{Simulation: known}}).Origin.Simulation; s != nil {
		t.Errorf("measured times are of %+v", s)
	}
}

// FuzzSummary reads summaries of simulator ranks: errors, or counts that a manifest can have.
func FuzzSummary(f *testing.F) {
	f.Add(`{"machine": "/m/fast.yaml", "description": "abc", "choices": 9, "out_of_order": 7, "early": 3}`, "{}")
	f.Add(`{"choices": -1}`, `{"early": 9223372036854775807}`)
	f.Add("null", `{"machine": 3}`)
	var h spool.Header
	h.Timer = spool.TimerVirtual
	names := []string{fmt.Sprintf("%016x.simulator.0.json", testJob), fmt.Sprintf("%016x.simulator.1.json", testJob)}
	f.Fuzz(func(t *testing.T, first, second string) {
		dir := t.TempDir()
		for i, text := range []string{first, second} {
			if err := os.WriteFile(filepath.Join(dir, names[i]), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		j := &job{dir: dir, summaries: names, ranks: []*rankSpool{{files: []*spool.File{{Header: h}}}}}
		s, err := readSimulation(j, nil)
		if err == nil && (s.choices < 0 || s.outOfOrder < 0 || s.early < 0 || s.origin == nil || s.origin.Ranks != 2) {
			t.Errorf("%+v", s)
		}
	})
}
