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
	q.doubtByCores(false)
	if polling := d.Findings[5]; polling.doubtful {
		t.Error("virtual times are not those of cores")
	}
	d.Findings[0].Title, d.Findings[4].Title = "x", ""
	q.doubtByCores(true)
	q.sort()
	var order []string
	for i := range d.Findings {
		order = append(order, string(d.Findings[i].Rule))
	}
	if got := strings.Join(order, " "); got != "imbalance late-root variation imbalance polling file-time" {
		t.Errorf("order: %s", got)
	}
	if f := &d.Findings[2]; f.Title != "x"+ofCores || f.Advice != coresAtFirst || !d.Findings[3].doubtful ||
		d.Findings[0].doubtful || d.Shown(0.01, 0) != 5 ||
		d.Findings[4].Title != "y"+byTimesOfCores {
		t.Errorf("%+v", f)
	}
}
