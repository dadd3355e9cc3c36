package perfetto

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
	"github.com/commq/commq/writer"
)

// Perfetto reads from the file what the run has: a slice per call and per message, a pair of async events per
// completed request, a flow per message, and each end of a flow within a slice of its rank.
func TestExport(t *testing.T) {
	const dir = "../../testdata/runs/cg.A.4"
	var text strings.Builder
	if notes, err := Export(context.Background(), dir, &text); err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	var read struct {
		TraceEvents []struct {
			Ph, Name, Cat string
			ID2           struct{ Local string }
			Pid           int32
			TS, Dur       float64
		}
	}
	if err := json.Unmarshal([]byte(text.String()), &read); err != nil {
		t.Fatal(err)
	}
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	requests := int64(0)
	err = writer.ReadTable(context.Background(), dir, &schema.EventsTable, 4096, func(b schema.Batch) error {
		e := b.(*schema.Events)
		for i, done := range e.DoneSeq {
			if done != null64 && e.Request[i] != null64 {
				requests++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	phases := map[string]int64{}
	type request struct {
		pid int32
		id  string
	}
	begun := map[request]float64{}
	type at struct {
		pid int32
		ts  float64
	}
	starts := map[at]bool{}
	for _, e := range read.TraceEvents {
		phases[e.Ph]++
		switch e.Ph {
		case "X":
			starts[at{e.Pid, e.TS}] = true
		case "b":
			begun[request{e.Pid, e.ID2.Local}] = e.TS
		case "e":
			if b, ok := begun[request{e.Pid, e.ID2.Local}]; !ok || e.TS < b {
				t.Fatalf("request %s of rank %d ends at %v, and began at %v", e.ID2.Local, e.Pid, e.TS, b)
			}
		case "s":
			if !starts[at{e.Pid, e.TS}] {
				t.Fatalf("no call of rank %d starts at %v us", e.Pid, e.TS)
			}
		}
	}
	for phase, want := range map[string]int64{"X": m.Counts.Calls + m.Counts.Messages, "b": requests, "e": requests,
		"s": m.Counts.Messages, "f": m.Counts.Messages, "M": 8} {
		if phases[phase] != want || want == 0 {
			t.Errorf("%d events %s; want %d", phases[phase], phase, want)
		}
	}
}

// Of a killed run the calls that never returned are missing, and a note says so.
func TestExportOfAKilledRun(t *testing.T) {
	dir := t.TempDir()
	err := os.CopyFS(dir, os.DirFS("../../testdata/runs/pingpong.2"))
	file := filepath.Join(dir, "manifest.json")
	text, err2 := os.ReadFile(file)
	killed := regexp.MustCompile(`"in_progress": *0`).ReplaceAll(text, []byte(`"in_progress": 4`))
	if err := errors.Join(err, err2, os.WriteFile(file, killed, 0o666), schematest.SealManifest(file)); err != nil {
		t.Fatal(err)
	}
	notes, err := Export(context.Background(), dir, io.Discard)
	want := []string{"left out: calls that never returned, 4; the run's warnings name them (commq runs show)"}
	if err != nil || !slices.Equal(notes, want) {
		t.Errorf("%q, %v; want %q", notes, err, want)
	}
}

func TestUs(t *testing.T) {
	for ns, want := range map[int64]json.Number{0: "0.000", 7: "0.007", 1_234_567_891: "1234567.891"} {
		if got := us(ns); got != want {
			t.Errorf("%d ns: %s", ns, got)
		}
	}
}
