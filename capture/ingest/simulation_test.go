package ingest

import (
	"encoding/json"
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

// What simulator ranks leave: which machine it was, and how often the order of real time was another than the virtual one.
func TestTheRunSaysWhatWasSimulated(t *testing.T) {
	p := program{ranks: 3, body: func(int, *script) {}, header: func(h *spool.Header) {
		virtual(h)
		h.Sims, h.OutOfOrder, h.Early = 2, uint64(3+h.Rank), uint64(h.Rank)
	}}
	dir := p.write(t)
	left := &schema.Simulation{Ranks: 2, Machine: "/m/fast.yaml", Description: "network:\n  latency_ns: 7\n", Digest: "abc"}
	text, err := json.Marshal(left)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("%016x%s", testJob, SimulationSuffix)
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
		t.Fatal(err)
	}
	r := ingested(t, dir, Options{})
	if d := cmp.Diff(left, r.Origin.Simulation); d != "" {
		t.Error(d)
	}
	if r.Counts.OutOfOrder != 12 || r.Counts.EarlyCollectives != 3 || len(r.Warnings) != 2 || !strings.HasPrefix(r.Warnings[0], "12 receives") || !strings.HasPrefix(r.Warnings[1], "3 nonblocking") {
		t.Errorf("counts %+v, warnings %q", r.Counts, r.Warnings)
	}
	info, err := Find(dir, "")
	if err != nil || info.Simulation != name || slices.Contains(info.Files, name) {
		t.Errorf("%+v, %v", info, err)
	}

	if err := os.WriteFile(filepath.Join(dir, name), text[:9], 0o644); err != nil {
		t.Fatal(err)
	}
	if said := refused(t, dir, Options{}); !strings.Contains(said, name+": not what a simulator rank left") {
		t.Errorf("error %s", said)
	}
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&schema.Simulation{Ranks: 2}, ingested(t, dir, Options{}).Origin.Simulation); d != "" {
		t.Errorf("where nothing was left: %s", d)
	}
	p.header = nil
	if s := ingested(t, p.write(t), Options{}).Origin.Simulation; s != nil {
		t.Errorf("a measured run has %+v", s)
	}
}
