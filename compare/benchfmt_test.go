package compare

import (
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

// Exact measures are declared once. Times are in seconds. Fingerprints, numbers of ranks, call sites, and parts whose
// names have angle brackets, are left out.
func TestWriteBenchfmt(t *testing.T) {
	m := &schema.Manifest{Ranks: 4, Origin: schema.Origin{Command: []string{"/opt/bin/halo-x", "8"}}}
	values := []Value{{Measure: "ranks", Value: 4, Unit: "1"}, {Measure: "messages", Value: 12, Unit: "1", Exact: true},
		{Measure: "calls", Item: "MPI_Send", Value: 9, Unit: "1", Exact: true}, {Measure: "end_ns", Value: 1_500, Unit: "ns"},
		{Measure: "wait_ns", Value: 2_000_000_000, Unit: "ns"}, {Measure: "compute_ns_max", Value: 771_054_269, Unit: "ns"}, {Measure: "calls", Item: "a<b>", Value: 1, Unit: "1"},
		{Measure: "site_calls", Item: "a.c:3", Value: 1, Unit: "1"}, {Measure: "content", Value: 77, Unit: Fingerprint}}
	samples := []Sample{{Run: "a", Ranks: 4, Values: values}, {Run: "b", Ranks: 4, Values: values[:2]}}
	for name, want := range map[string]string{
		"": `Unit messages assume=exact
Unit calls/MPI_Send assume=exact
BenchmarkHalo_x/ranks=4 1 12 messages 9 calls/MPI_Send 1.5e-06 sec/op 2 wait-sec/op 0.771054269 compute_max-sec/op
BenchmarkRun/ranks=4 1 12 messages
`,
		"step one": `Unit messages assume=exact
Unit calls/MPI_Send assume=exact
BenchmarkStep_one/ranks=4 1 12 messages 9 calls/MPI_Send 1.5e-06 sec/op 2 wait-sec/op 0.771054269 compute_max-sec/op
BenchmarkStep_one/ranks=4 1 12 messages
`,
	} {
		var b strings.Builder
		err := WriteBenchfmt(&b, name, []Run{{Manifest: m}, {Manifest: &schema.Manifest{Ranks: 4}}}, samples)
		if err != nil || b.String() != want {
			t.Errorf("%q: %v\n%s\nwant\n%s", name, err, b.String(), want)
		}
	}
	if got := BenchfmtLeavesOut(samples); !slices.Equal(got, []string{"calls/...", "site_calls/...", "content"}) {
		t.Errorf("left out: %q", got)
	}
	if err := WriteBenchfmt(&strings.Builder{}, "", nil, nil); err == nil {
		t.Error("no run is no error")
	}
}
