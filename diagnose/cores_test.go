package diagnose

import (
	"strings"
	"testing"

	"github.com/commq/commq/internal/cores"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Variation that shared cores may have made comes after the findings that name something to do, and says so.
func TestVariationOnSharedCores(t *testing.T) {
	for _, c := range []struct {
		origin, clock string
		shared        bool
		want          bool
	}{
		{"measured", "cpu", true, true},
		{"measured", "cpu", false, false},
		{"virtual", "cpu", true, true},
		{"virtual", "none", true, false}, // the program says how long it computes
	} {
		m := &schema.Manifest{TimeOrigin: c.origin, ComputeClock: c.clock}
		if c.shared {
			m.Origin.Cores = []schema.HostCores{{SharingRanks: 4, SharedCores: 2}}
		}
		used := coresOf(&run.Run{Manifest: m}, &computing{})
		if got := variesByCores(m, used); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if variesByCores(&schema.Manifest{TimeOrigin: "measured"}, cores.Use{CPUShare: 1}) {
		t.Error("ranks with a core each")
	}
	d := &Diagnosis{TimeNs: 1000, Findings: []Finding{{Rule: Variation, Title: "x", GainNs: 300},
		{Rule: LateRoot, GainNs: 20},
		{Rule: Imbalance, GainNs: 200, timesMore: 0.25}, {Rule: FileTime, GainNs: 9},
		{Rule: Imbalance, GainNs: 250, timesMore: 0.05}, {Rule: "polling", Title: "y", GainNs: 310, Bound: true}}}
	q := &search{d: d}
	l := lackOf(&schema.Manifest{}, cores.Use{CPUShare: 0.5})
	q.doubtByCores(l, false)
	if polling := d.Findings[5]; polling.doubtful {
		t.Error("virtual times are not those of cores")
	}
	d.Findings[0].Title, d.Findings[4].Title = "x", ""
	q.doubtByCores(l, true)
	q.sort()
	var order []string
	for i := range d.Findings {
		order = append(order, string(d.Findings[i].Rule))
	}
	if got := strings.Join(order, " "); got != "imbalance late-root variation imbalance polling file-time" {
		t.Errorf("order: %s", got)
	}
	const doubted = "x; these ranks shared cores, which does this to a program without fault"
	if f := &d.Findings[2]; f.Title != doubted || f.Advice != l.advice || !d.Findings[3].doubtful ||
		d.Findings[0].doubtful || d.Shown(0.01, 0) != 5 ||
		d.Findings[4].Title != "y"+byTimesOfCores {
		t.Errorf("%+v", f)
	}
}

// Ranks that had a core each and waited for it did not share cores, and the texts of findings do not say so.
func TestLackOfCores(t *testing.T) {
	shared := &schema.Manifest{}
	shared.Origin.Cores = []schema.HostCores{{SharingRanks: 4, SharedCores: 2}}
	for _, c := range []struct {
		manifest *schema.Manifest
		used     cores.Use
		want     string
	}{
		{shared, cores.Use{Known: true, CPUShare: 0.5}, "these ranks shared cores"},
		{&schema.Manifest{}, cores.Use{CPUShare: 0.5}, "these ranks shared cores"},
		{&schema.Manifest{}, cores.Use{Known: true, CPUShare: 0.5}, "these ranks waited for a CPU"},
	} {
		if l := lackOf(c.manifest, c.used); l.of != c.want || strings.Contains(l.advice, "a core for each rank") !=
			strings.Contains(c.want, "shared") {
			t.Errorf("%+v: %+v, want %s", c.used, l, c.want)
		}
	}
}

// Variation that gains a third of the run and more is no effect of shared cores.
func TestLargeVariationOnSharedCores(t *testing.T) {
	d := &Diagnosis{TimeNs: 1000, Findings: []Finding{{Rule: LateCollective, GainNs: 130}, {Rule: Variation, GainNs: 500}}}
	q := &search{d: d}
	q.doubtByCores(lack{of: "these ranks shared cores"}, true)
	q.sort()
	if f := &d.Findings[0]; f.Rule != Variation || f.Title != "" {
		t.Errorf("%+v comes first", f)
	}
}

// A run that is simulated on an ideal network says what that leaves out, and how long it took if that was much longer.
func TestWarningOfSharedCores(t *testing.T) {
	m := &schema.Manifest{TimeOrigin: "measured", ComputeClock: "cpu"}
	u := cores.Use{Known: true, CPUShare: 1, Shared: []cores.Host{{Name: "n0", Ranks: 4, Cores: 2}}}
	for _, c := range []struct {
		machine    string
		recordedNs int64
		want       string
	}{
		{"x", 9e9, "the ranks computed"},
		{idealNetwork, 15e8, "so that rules about messages need --machine NAME"},
		{idealNetwork, 9e9, "The measured time was 9 s: the rest is communication, or ranks that waited in MPI for a core"},
	} {
		if got := sharedCores(m, u, c.machine, c.recordedNs, 1e9); !strings.HasSuffix(got, c.want) {
			t.Errorf("on %s: %s, want %s at the end", c.machine, got, c.want)
		}
	}
}
